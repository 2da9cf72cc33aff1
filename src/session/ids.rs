//! Ids: which entry a number stands for.

use std::collections::BTreeMap;

use crate::{
    model::{EntryId, EntryNumber, EntrySet},
    session::{Session, SessionError},
    store::Store,
};

/// How far apart two numbers are that are still asked for together.
pub(crate) const NEAR: u64 = 64;

/// Returns the id of an entry, if a number is given and there is one.
pub(crate) fn entry_id(
    store: &dyn Store,
    session: &Session,
    entry: Option<EntryNumber>,
) -> Result<Option<EntryId>, SessionError> {
    let Some(n) = entry else { return Ok(None) };
    let found = store.entries(session.key, n.alone())?;
    Ok(found.first().map(|entry| entry.id))
}

/// Returns the ids of entries, and perhaps of others between them.
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
