//! Sizes: how much an archive or a session holds.

use crate::{
    archive::{Archive, At},
    files::generations,
    model::EntryNumber,
    report::{AgentSizes, SessionSizes},
    session::read::checkpoints,
    store::Total,
    verbs::OpsError,
};

/// How many lines are counted together.
const BATCH: usize = 1 << 16;

/// Returns totals by format.
pub fn sizes(archive: &Archive) -> Result<Vec<AgentSizes>, OpsError> {
    let totals = archive.store().totals()?.into_iter();
    Ok(totals
        .map(|Total { format, sessions, entries, bytes }| AgentSizes {
            agent: format,
            sessions,
            entries,
            bytes,
        })
        .collect())
}

/// Returns the totals of one session.
pub fn sizes_of(session: &At<'_>) -> Result<SessionSizes, OpsError> {
    let name = session.name.clone();
    let mut bytes = 0;
    for batch in EntryNumber::batches(EntryNumber::FIRST..session.state.next_entry(), BATCH) {
        bytes += session.store.lengths(session.key, batch)?.iter().sum::<u64>();
    }
    Ok(SessionSizes {
        session: name.id,
        agent: name.format,
        entries: session.state.entries(),
        bytes,
        turns: session.store.card(session.key)?.turns,
        branches: session.state.branches.len() as u64,
        checkpoints: checkpoints::count(session)?,
        states: generations(session)?.len() as u64,
    })
}
