//! At hand: the records of a session that were read last, so that each is read once on the way along a path.

use std::{
    cell::RefCell,
    collections::{BTreeMap, btree_map::Entry},
};

use crate::{
    model::{EntryNumber, Record},
    store::{SessionKey, Store, StoreError},
};

/// How many records are read at a time.
const CHUNK: u64 = 256;
/// How many times that are kept at hand: a path goes on near to where it was.
const CHUNKS: usize = 1024;

/// Records that lie together, by where they begin.
#[derive(Default)]
pub(super) struct AtHand(RefCell<BTreeMap<u64, Vec<Record>>>);

impl AtHand {
    /// Returns the record of an entry, which is read with those around it if it is not at hand.
    pub(super) fn get(
        &self,
        store: &dyn Store,
        session: SessionKey,
        entry: EntryNumber,
    ) -> Result<Record, StoreError> {
        let chunk = entry.get() / CHUNK;
        let mut records = self.0.borrow_mut();
        if records.len() >= CHUNKS && !records.contains_key(&chunk) {
            let is_late = records.keys().nth(CHUNKS / 2).is_some_and(|middle| *middle < chunk);
            let _farthest = if is_late { records.pop_first() } else { records.pop_last() };
        }
        let first = EntryNumber::new(chunk * CHUNK);
        let range = first.max(EntryNumber::FIRST)..first.plus(CHUNK);
        let is_read = records.contains_key(&chunk);
        let chunk = match records.entry(chunk) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => unread.insert(store.records(session, range.clone())?),
        };
        // Another program may have added to the session since these were read.
        if is_read && chunk.last().is_none_or(|last| last.n < entry) {
            *chunk = store.records(session, range)?;
        }
        // Where none is missing, a record stands as far behind the first one as its number says.
        let found = chunk.first().and_then(|first| chunk.get(entry.index_from(first.n)?));
        let found = found.filter(|record| record.n == entry).or_else(|| {
            let at = chunk.binary_search_by_key(&entry, |record| record.n).ok()?;
            chunk.get(at)
        });
        let missing = || StoreError::corrupt(format!("entry {entry}"), "it has no record");
        found.cloned().ok_or_else(missing)
    }
}
