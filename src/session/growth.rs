//! Growth: a generation while lines are added to it.
//!
//! Invariant: a growth and a reading of its file say the same: the same entries, separators and tail.

use crate::model::{
    EntryId, EntryNumber, Gaps, GenerationNumber, LineId, Run, Running, line::Line,
};

/// A generation while it grows.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    pub(crate) generation: GenerationNumber,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) running: Running,
    pub(crate) tail: Vec<u8>,
    /// The entry before the next one.
    pub(crate) last: Option<(EntryNumber, EntryId)>,
    run: Option<Run>,
    runs: Vec<Run>,
    grown: bool,
}

impl Growth {
    /// Begins an empty generation.
    pub(crate) fn empty(generation: GenerationNumber) -> Self {
        Self {
            generation,
            entries: 0,
            bytes: 0,
            running: Running::EMPTY,
            tail: Vec::new(),
            last: None,
            run: None,
            runs: Vec::new(),
            grown: false,
        }
    }

    /// Takes up a generation that ends with a run, and whose last entry is this one.
    pub(crate) fn at(end: &Run, last: Option<(EntryNumber, EntryId)>) -> Self {
        Self {
            entries: end.end(),
            bytes: end.bytes,
            running: end.running,
            tail: end.tail.clone(),
            last,
            ..Self::empty(end.generation)
        }
    }

    /// Returns the length that the file has.
    pub(crate) fn length(&self) -> u64 {
        self.bytes + self.tail.len() as u64
    }

    /// Returns the id that a line has at the end.
    pub(crate) fn id_of(&self, line: &Line<'_>) -> EntryId {
        let is_named = line.shape.as_ref().is_some_and(|shape| shape.name.is_some());
        let link = self.last.filter(|_| !is_named);
        EntryId::of(link.map(|(_, id)| id), LineId::of(line.bytes))
    }

    /// Adds an entry whose line has `length` bytes.
    pub(crate) fn place(&mut self, n: EntryNumber, id: EntryId, separator: &[u8], length: u64) {
        self.grown = true;
        self.bytes += separator.len() as u64 + length;
        self.running = self.running.then(separator, id);
        self.last = Some((n, id));
        let position = self.entries;
        self.entries += 1;
        if self.run.as_ref().is_none_or(|run| run.entries().end != n) {
            self.runs.extend(self.run.take());
        }
        let run = self.run.get_or_insert_with(|| Run {
            generation: self.generation,
            start: position,
            first: n,
            count: 0,
            gaps: Gaps::default(),
            bytes: 0,
            running: Running::EMPTY,
            tail: Vec::new(),
        });
        run.gaps.push(run.count, position, separator);
        run.count += 1;
        (run.bytes, run.running) = (self.bytes, self.running);
    }

    /// Sets the bytes behind the last entry.
    pub(crate) fn end(&mut self, tail: Vec<u8>) {
        self.grown |= self.tail != tail;
        self.tail = tail;
    }

    /// Takes out the lines that were added so far, as a growth of its own.
    pub(crate) fn part(&mut self) -> Self {
        let rest = Self { run: None, runs: Vec::new(), grown: false, ..self.clone() };
        std::mem::replace(self, rest)
    }

    /// Returns the entries that were added here, in order.
    pub(crate) fn sequence(&self) -> Vec<EntryNumber> {
        self.runs.iter().chain(&self.run).flat_map(|run| EntryNumber::each(run.entries())).collect()
    }

    /// Returns the runs by which the generation grew so far.
    pub(crate) fn runs(&self) -> Vec<Run> {
        self.runs.iter().chain(&self.run).cloned().collect()
    }

    /// Returns the runs by which the generation grew.
    pub(crate) fn finish(self) -> Vec<Run> {
        let mut runs = self.runs;
        runs.extend(self.run);
        match runs.last_mut() {
            Some(last) => last.tail = self.tail,
            None if self.grown => runs.push(Run {
                generation: self.generation,
                start: self.entries,
                first: EntryNumber::default(),
                count: 0,
                gaps: Gaps::default(),
                bytes: self.bytes,
                running: self.running,
                tail: self.tail,
            }),
            None => {}
        }
        runs
    }
}
