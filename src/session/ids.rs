//! Ids: maps entry numbers to ids, and finds the operation that added an entry.

use std::collections::BTreeMap;

use crate::{
    model::{EntryId, EntryNumber, EntrySet, Operation, OperationNumber, State},
    session::{Session, SessionError},
    store::{Store, StoreError},
};

/// Numbers that are at most this far apart are read in one query.
pub(crate) const NEAR: u64 = 64;

/// Returns the id of an entry, if a number is given and the entry exists.
pub(crate) fn entry_id(
    store: &dyn Store,
    session: &Session,
    entry: Option<EntryNumber>,
) -> Result<Option<EntryId>, SessionError> {
    let Some(n) = entry else { return Ok(None) };
    let found = store.entries(session.key, n.alone())?;
    Ok(found.first().map(|entry| entry.id))
}

/// Returns the id of an entry that must exist.
pub(crate) fn id_of(
    store: &dyn Store,
    session: &Session,
    entry: EntryNumber,
) -> Result<EntryId, SessionError> {
    let found = entry_id(store, session, Some(entry))?;
    found.ok_or_else(|| SessionError::NoEntry(entry.to_string()))
}

/// Returns the operation that added an entry.
pub(crate) fn added_by(
    store: &dyn Store,
    session: &Session,
    state: &State,
    entry: EntryNumber,
) -> Result<Option<Operation>, StoreError> {
    let (mut from, mut to) = (0, state.operations());
    let mut found = None;
    // Entry numbers increase with operations.
    while from < to {
        let middle = from.midpoint(to);
        let n = OperationNumber::FIRST.plus(middle);
        match store.operations(session.key, n.alone())?.pop() {
            Some(operation) if operation.first <= entry => {
                from = middle + 1;
                found = Some(operation);
            }
            _ => to = middle,
        }
    }
    Ok(found.filter(|operation| operation.added().contains(&entry)))
}

/// Returns the ids of entries, and possibly of others between them.
pub fn entry_ids(
    store: &dyn Store,
    session: &Session,
    wanted: &EntrySet,
) -> Result<BTreeMap<EntryNumber, EntryId>, SessionError> {
    let mut ids = BTreeMap::new();
    for range in EntryNumber::ranges(wanted.iter(), NEAR) {
        let entries = store.entries(session.key, range)?;
        ids.extend(entries.into_iter().map(|entry| (entry.n, entry.id)));
    }
    Ok(ids)
}
