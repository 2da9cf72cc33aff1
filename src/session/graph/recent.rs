//! A cache of recently read records, so that following a path reads each record once.

use std::{cell::RefCell, collections::BTreeMap, mem};

use crate::{
    model::{EntryNumber, Record},
    store::{SessionKey, Store, StoreError},
};

/// How many records are read at a time.
const CHUNK: u64 = 256;
/// How many chunks are cached. A path usually continues close to where it was.
const CHUNKS: usize = 1024;

/// The cached records.
#[derive(Default)]
pub(crate) struct AtHand(RefCell<Chunks>);

/// Adjacent records, by chunk number.
#[derive(Default)]
struct Chunks {
    /// The most recently used chunk; the next request is usually in it too.
    number: u64,
    records: Vec<Record>,
    others: BTreeMap<u64, Vec<Record>>,
}

impl AtHand {
    /// Returns the record of an entry. If it is not cached, its whole chunk is read.
    pub(crate) fn get(
        &self,
        store: &dyn Store,
        session: SessionKey,
        entry: EntryNumber,
    ) -> Result<Record, StoreError> {
        let mut chunks = self.0.borrow_mut();
        let number = entry.get() / CHUNK;
        if number != chunks.number {
            chunks.turn_to(number);
        }
        let records = &mut chunks.records;
        // Another program may have added to the session since this chunk was read.
        if records.last().is_none_or(|last| last.n < entry) {
            let first = EntryNumber::new(number * CHUNK);
            *records = store.records(session, first.max(EntryNumber::FIRST)..first.plus(CHUNK))?;
        }
        // Without gaps, the index of a record is its distance from the first one.
        let found = records.first().and_then(|first| records.get(entry.index_from(first.n)?));
        let found = found.filter(|record| record.n == entry).or_else(|| {
            let at = records.binary_search_by_key(&entry, |record| record.n).ok()?;
            records.get(at)
        });
        let missing = || StoreError::corrupt(format!("entry {entry}"), "it has no record");
        found.cloned().ok_or_else(missing)
    }
}

impl Chunks {
    /// Makes a chunk the current one; it is empty if it is not cached.
    fn turn_to(&mut self, number: u64) {
        let next = self.others.remove(&number).unwrap_or_default();
        let (last, records) =
            (mem::replace(&mut self.number, number), mem::replace(&mut self.records, next));
        self.others.insert(last, records);
        if self.others.len() >= CHUNKS {
            let middle = self.others.keys().nth(CHUNKS / 2);
            let is_late = middle.is_some_and(|middle| *middle < number);
            let _farthest = if is_late { self.others.pop_first() } else { self.others.pop_last() };
        }
    }
}
