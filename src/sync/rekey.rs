//! Rekeying: sessions of which bytes were taken out get ids that are made of the lines that they have now, in the store and in all
//! sessions that refer to their entries. Files stay as they are: they were covered before, and hold these lines already.
//!
//! The old chain is kept nowhere. A commitment to the hash with which it ended is part of the new one; its salt is told once, so
//! that whoever asked for it can show one day which chain that was, and nobody else can try guesses.
//!
//! Invariant: what the store holds afterwards was read and checked before it is committed.

use std::collections::BTreeMap;

use crate::{
    model::{Command, Digest, EntryId, EntryNumber, State, Text},
    report::Rekeyed,
    session::{
        Session,
        rekey::{NewIds, new_ids, rekeyed},
        rows,
    },
    store::{SessionKey, Store, whole_lines},
    sync::{
        Archive, SyncError, catch_up,
        change::{Buried, Change},
        purge::{Purged, finish, mark},
        together::Together,
    },
};

/// How many lines are checked together.
const BATCH: usize = 1024;

/// Gives a session of which bytes were taken out other ids.
pub(crate) fn rekey(
    archive: &Archive,
    session: &Session,
    by: Option<&Text>,
) -> Result<Purged, SyncError> {
    let _lock = archive.lock()?;
    let mut notices = catch_up::catch_up_all(archive)?;
    notices.retain(|(name, _)| *name == session.name);
    mark(archive)?;
    let mut purged = Purged { notices, ..finish(archive, archive.waiting.limit)? };
    rekey_purged(archive, std::slice::from_ref(session), by, &mut purged)?;
    Ok(purged)
}

/// Gives sessions that were purged other ids, unless a file of theirs still holds what was taken out: it would be read as other
/// lines then. The caller holds the lock.
pub(super) fn rekey_purged(
    archive: &Archive,
    sessions: &[Session],
    by: Option<&Text>,
    purged: &mut Purged,
) -> Result<(), SyncError> {
    if purged.left.is_empty() {
        mark(archive)?;
        let mut together = Together::new(archive);
        together.open()?;
        purged.rekeyed = rekey_all(archive, &mut together, sessions, by)?;
        together.end()?;
        purged.is_in_log |= finish(archive, archive.waiting.limit)?.is_in_log;
    }
    Ok(())
}

/// Gives sessions, and those that refer to their entries, other ids, within the transaction that is open.
fn rekey_all(
    archive: &Archive,
    together: &mut Together<'_>,
    sessions: &[Session],
    by: Option<&Text>,
) -> Result<Vec<Rekeyed>, SyncError> {
    let store = archive.store();
    let (mut found, mut ids) = (BTreeMap::new(), NewIds::new());
    for session in sessions {
        ids.extend(see(archive, session, &mut found)?);
    }
    // What refers to an entry whose id becomes another one becomes another one itself.
    loop {
        let mut more = Vec::new();
        for session in archive.every()? {
            let is_new = !found.contains_key(&session.key);
            if is_new && refers(store, &session, &ids)? {
                more.push(session);
            }
        }
        if more.is_empty() {
            break;
        }
        for session in &more {
            ids.extend(see(archive, session, &mut found)?);
        }
    }
    let mut done = Vec::new();
    for (session, state) in found.into_values() {
        let chain = rekeyed(store, &session, &state, &ids)?;
        let (before, after) = (state.hash(), chain.last().map(|(last, _)| last.hash));
        if before == after {
            continue;
        }
        together.rekey(session.key, &chain)?;
        together.derive(session.key, &rows::derived(store, &session)?)?;
        for batch in EntryNumber::batches(EntryNumber::FIRST..state.next_entry(), BATCH) {
            let entries: Vec<EntryNumber> = EntryNumber::each(batch).collect();
            whole_lines(store, session.key, &entries, &mut |_, _| {})?;
        }
        let (head, salt) = (before.unwrap_or_default(), archive.salt());
        let command =
            Command::Rekey { before: Some(Digest::commitment(&salt, head)), by: by.cloned() };
        Change::also(archive, &session, together)?.bury(command, Buried::default())?;
        done.push(Rekeyed {
            session: session.name.id.clone(),
            format: session.name.format.clone(),
            head: head.to_string(),
            salt: format!("{:032x}", u128::from_be_bytes(salt)),
        });
    }
    Ok(done)
}

/// Adds a session to those that get other ids, and returns these.
fn see(
    archive: &Archive,
    session: &Session,
    found: &mut BTreeMap<SessionKey, (Session, State)>,
) -> Result<NewIds, SyncError> {
    let state = archive.store().state(session.key)?;
    if let Some(operation) = state.unknown {
        return Err(crate::store::StoreError::NewerFacts { operation }.into());
    }
    let ids = new_ids(archive.store(), session, &state)?
        .ok_or_else(|| SyncError::Twins { session: session.name.id.clone() })?;
    found.insert(session.key, (session.clone(), state));
    Ok(ids)
}

/// Returns whether a session refers to an entry whose id becomes another one.
fn refers(store: &dyn Store, session: &Session, ids: &NewIds) -> Result<bool, SyncError> {
    let is_one = |id: Option<EntryId>| id.is_some_and(|id| ids.contains_key(&id));
    let state = store.state(session.key)?;
    let waiting = state.waiting.map(|n| store.operations(session.key, n.alone())).transpose()?;
    let requests = waiting.iter().flatten().filter_map(|by| by.facts.request.as_ref());
    Ok(state.bases.iter().any(|base| is_one(base.entry))
        || requests.map(|request| request.entry).any(is_one))
}
