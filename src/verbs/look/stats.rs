//! Statistics: the content of an archive, and its size.

use crate::{
    archive::Archive,
    files::generations,
    model::EntryNumber,
    report::{SessionStats, Stats},
    session::{Session, read::checkpoints},
    store::{SessionKey, Total},
    verbs::OpsError,
};

/// How many lines are counted together.
const BATCH: usize = 1 << 16;

/// Returns totals by format.
pub fn stats(archive: &Archive) -> Result<Vec<Stats>, OpsError> {
    let totals = archive.store().totals()?.into_iter();
    Ok(totals
        .map(|Total { format, sessions, entries, bytes }| Stats {
            agent: format,
            sessions,
            entries,
            bytes,
        })
        .collect())
}

/// Returns the totals of one session.
pub fn stats_of(archive: &Archive, session: &Session) -> Result<SessionStats, OpsError> {
    let (store, name) = (archive.store(), session.name.clone());
    let (entries, bytes) = count(archive, session.key)?;
    Ok(SessionStats {
        session: name.id,
        agent: name.format,
        entries,
        bytes,
        turns: store.card(session.key)?.turns,
        branches: store.state(session.key)?.branches.len() as u64,
        checkpoints: checkpoints::count(store, session)?,
        states: generations(archive, session)?.len() as u64,
    })
}

/// Returns the number of entries of a session, and the total length of their lines.
fn count(archive: &Archive, key: SessionKey) -> Result<(u64, u64), OpsError> {
    let store = archive.store();
    let state = store.state(key)?;
    let mut bytes = 0;
    for batch in EntryNumber::batches(EntryNumber::FIRST..state.next_entry(), BATCH) {
        bytes += store.lengths(key, batch)?.iter().sum::<u64>();
    }
    Ok((state.entries(), bytes))
}
