//! Ids: which entry a number stands for.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    model::EntryId,
    session::{Session, SessionError},
    store::Store,
};

/// How far apart two numbers are that are still asked for together.
pub(crate) const NEAR: u64 = 64;

/// Returns the id of an entry, if a number is given and there is one.
pub(crate) fn entry_id(
    store: &dyn Store,
    session: &Session,
    entry: Option<u64>,
) -> Result<Option<EntryId>, SessionError> {
    let Some(n) = entry else { return Ok(None) };
    let found = store.entries(session.key, n..n.saturating_add(1))?;
    Ok(found.first().map(|entry| entry.id))
}

/// Returns the ids of entries, and perhaps of others between them.
pub fn entry_ids(
    store: &dyn Store,
    session: &Session,
    wanted: &BTreeSet<u64>,
) -> Result<BTreeMap<u64, EntryId>, SessionError> {
    let mut ids = BTreeMap::new();
    for range in near(wanted) {
        let entries = store.entries(session.key, range)?;
        ids.extend(entries.into_iter().map(|entry| (entry.n, entry.id)));
    }
    Ok(ids)
}

/// Returns stretches that hold all of these numbers and not many others.
pub(crate) fn near(numbers: &BTreeSet<u64>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for &n in numbers {
        match ranges.last_mut() {
            Some(range) if n < range.end + NEAR => range.end = n + 1,
            _ => ranges.push(n..n + 1),
        }
    }
    ranges
}
