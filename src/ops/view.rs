//! Looking: a session as a graph, read from the store only as far as it is asked for.

use std::{
    cell::{OnceCell, RefCell},
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
};

use crate::{
    model::{NameTag, Parent, Position, Record, Run, json::Raw},
    ops::{OpsError, Session},
    store::{Find, NewLine, Store, StoreError},
    wire::{Failure, Graph, Link, Path},
};

/// How many records are read at a time.
const CHUNK: u64 = 1024;

/// What a change has gathered and not committed yet.
pub(super) struct Pending<'a> {
    pub(super) first: u64,
    pub(super) records: &'a [Record],
    pub(super) lines: &'a [NewLine],
    pub(super) twins: &'a BTreeSet<NameTag>,
    pub(super) runs: Vec<Run>,
}

impl Pending<'_> {
    fn index(&self, entry: u64) -> Option<usize> {
        usize::try_from(entry.checked_sub(self.first)?).ok()
    }
}

/// A session as it is seen from a position.
pub struct View<'a> {
    store: &'a dyn Store,
    session: &'a Session,
    position: Position,
    last: Option<Run>,
    runs: OnceCell<Vec<Run>>,
    twins: OnceCell<BTreeSet<NameTag>>,
    records: RefCell<BTreeMap<u64, Vec<Record>>>,
    pending: Option<Pending<'a>>,
}

impl<'a> View<'a> {
    /// Makes a view; `last` is the generation's newest run, if it is at hand.
    pub fn new(
        store: &'a dyn Store,
        session: &'a Session,
        position: Position,
        last: Option<Run>,
    ) -> Self {
        Self {
            store,
            session,
            position,
            last: last.filter(|run| run.generation == position.generation),
            runs: OnceCell::new(),
            twins: OnceCell::new(),
            records: RefCell::default(),
            pending: None,
        }
    }

    /// Looks at another generation, with what was read so far at hand.
    pub(super) fn moved(self, position: Position) -> Self {
        Self { position, last: None, runs: OnceCell::new(), ..self }
    }

    /// Shows what a change has gathered too.
    pub(super) fn add(&mut self, pending: Pending<'a>) {
        self.pending = Some(pending);
    }

    /// Returns the runs of the generation within the horizon, neighbours joined.
    pub fn runs(&self) -> Result<&[Run], StoreError> {
        if self.runs.get().is_none() {
            let mut joined: Vec<Run> = Vec::new();
            let held = self.store.runs(self.session.key, self.position.generation, 0)?;
            let fresh = self.pending.iter().flat_map(|pending| pending.runs.iter().cloned());
            for mut run in held.into_iter().chain(fresh) {
                run.count = run.count.min(self.position.horizon.saturating_sub(run.start));
                match joined.last_mut() {
                    _ if run.count == 0 => {}
                    Some(last)
                        if last.first + last.count == run.first && plain(last) && plain(&run) =>
                    {
                        last.count += run.count;
                        (last.bytes, last.running, last.tail) = (run.bytes, run.running, run.tail);
                    }
                    _ => joined.push(run),
                }
            }
            let _ = self.runs.set(joined);
        }
        Ok(self.runs.get().map_or(&[], Vec::as_slice))
    }

    /// Returns the entries of the generation within the horizon, in order.
    pub fn sequence(&self) -> Result<Vec<u64>, StoreError> {
        Ok(self.runs()?.iter().flat_map(|run| run.first..run.first + run.count).collect())
    }

    /// Returns the last place of an entry within the horizon.
    pub fn place(&self, entry: u64) -> Result<Option<u64>, StoreError> {
        let holds = |run: &&Run| run.first <= entry && entry < run.first + run.count;
        Ok(self.runs()?.iter().rev().find(holds).map(|run| run.start + (entry - run.first)))
    }

    /// Returns the path to the head.
    pub fn path(&self, limit: usize) -> Result<Path, OpsError> {
        match self.position.head {
            Some(head) => Ok(self.session.format.path(self, head, limit)?),
            None => Ok(Path::default()),
        }
    }

    fn twins(&self) -> Result<&BTreeSet<NameTag>, StoreError> {
        if self.twins.get().is_none() {
            let held = self.store.twins(self.session.key)?;
            let fresh = self.pending.iter().flat_map(|pending| pending.twins.iter().copied());
            let _ = self.twins.set(held.into_iter().chain(fresh).collect());
        }
        self.twins.get().ok_or_else(|| StoreError::Refused("no twins".into()))
    }

    /// Returns the last entry of a name within the horizon.
    fn named(&self, tag: NameTag) -> Result<Option<u64>, StoreError> {
        let mut best = None;
        let mut entries = self.store.find(self.session.key, &Find::Name(tag, tag))?;
        let fresh = self.pending.iter().flat_map(|pending| pending.records);
        entries.extend(fresh.filter(|record| record.name == Some(tag)).map(|record| record.n));
        for entry in entries {
            best = best.max(self.place(entry)?.map(|place| (place, entry)));
        }
        Ok(best.map(|(_, entry)| entry))
    }
}

/// Returns the stretches of consecutive numbers in a list.
pub(super) fn ranges(entries: &[u64]) -> Vec<std::ops::Range<u64>> {
    let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
    for &entry in entries {
        match ranges.last_mut() {
            Some(range) if range.end == entry => range.end += 1,
            _ => ranges.push(entry..entry + 1),
        }
    }
    ranges
}

/// Returns whether a run has only usual separators behind its first entry, so that a longer run may hold it.
fn plain(run: &Run) -> bool {
    run.gaps.0.is_empty()
}

impl Graph for View<'_> {
    fn len(&self) -> u64 {
        self.position.horizon
    }

    fn at(&self, place: u64) -> Result<Option<u64>, Failure> {
        if place >= self.position.horizon {
            return Ok(None);
        }
        let within = |run: &&Run| run.start <= place && place < run.start + run.count;
        let pending = self.pending.iter().flat_map(|pending| &pending.runs);
        if let Some(run) = self.last.iter().chain(pending).find(within) {
            return Ok(Some(run.first + (place - run.start)));
        }
        let runs = self.runs()?;
        let after = runs.partition_point(|run| run.start <= place);
        let run = after.checked_sub(1).and_then(|i| runs.get(i)).filter(within);
        Ok(run.map(|run| run.first + (place - run.start)))
    }

    fn record(&self, entry: u64) -> Result<Record, Failure> {
        let fresh =
            self.pending.as_ref().and_then(|pending| pending.records.get(pending.index(entry)?));
        if let Some(record) = fresh {
            return Ok(record.clone());
        }
        let chunk = entry / CHUNK;
        let mut records = self.records.borrow_mut();
        let chunk = match records.entry(chunk) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => {
                let range = (chunk * CHUNK).max(1)..(chunk + 1) * CHUNK;
                unread.insert(self.store.records(self.session.key, range)?)
            }
        };
        let found =
            chunk.binary_search_by_key(&entry, |record| record.n).ok().and_then(|i| chunk.get(i));
        let missing = || StoreError::corrupt(format!("entry {entry}"), "it has no record");
        Ok(found.ok_or_else(missing)?.clone())
    }

    fn parent(&self, entry: u64) -> Result<Option<u64>, Failure> {
        let record = self.record(entry)?;
        let twins = self.twins()?;
        let tag = match record.parent {
            Parent::Root => return Ok(None),
            Parent::Entry(parent) => match self.record(parent)?.name {
                Some(name) if twins.contains(&name) => name,
                _ => return Ok(Some(parent)),
            },
            Parent::Missing => {
                let line = self.line(entry)?;
                let link =
                    Raw::object(&line).map(|record| self.session.format.envelope(record).parent);
                match link {
                    Some(Link::Named(name)) => NameTag::of(&name),
                    _ => return Ok(None),
                }
            }
        };
        Ok(self.named(tag)?)
    }

    fn line(&self, entry: u64) -> Result<Vec<u8>, Failure> {
        let fresh =
            self.pending.as_ref().and_then(|pending| pending.lines.get(pending.index(entry)?));
        if let Some(line) = fresh {
            return Ok(line.bytes().to_vec());
        }
        let mut found = Vec::new();
        self.store.lines(self.session.key, &[entry], &mut |_, line| found = line)?;
        Ok(found)
    }
}
