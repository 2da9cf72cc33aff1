//! Growth: a generation while lines are appended to it.
//!
//! Invariant: a growth never differs from a reading of its file: it has the same entries, separators and tail.

use crate::model::{
    EntryId, EntryNumber, GenerationNumber, LineId, Position, Run, Running, line::Line,
};

/// A generation while it grows.
#[derive(Clone, Debug, Default)]
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
        Self { generation, ..Self::default() }
    }

    /// Continues a generation from its last run and its last entry.
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

    /// Returns the length of the file.
    pub(crate) fn length(&self) -> u64 {
        self.bytes + self.tail.len() as u64
    }

    /// Returns the position at the end, with this head.
    pub(crate) fn position(&self, head: Option<EntryNumber>) -> Position {
        Position { generation: self.generation, head, horizon: self.entries }
    }

    /// Returns the id that a line would have at the end.
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
        let (generation, start) = (self.generation, position);
        let begin = || Run { generation, start, first: n, ..Run::default() };
        let run = self.run.get_or_insert_with(begin);
        run.gaps.push(run.count, position, separator);
        run.count += 1;
        (run.bytes, run.running) = (self.bytes, self.running);
    }

    /// Sets the bytes after the last entry.
    pub(crate) fn end(&mut self, tail: Vec<u8>) {
        self.grown |= self.tail != tail;
        self.tail = tail;
    }

    /// Splits off the lines added so far as a growth of their own.
    pub(crate) fn part(&mut self) -> Self {
        let rest = Self { run: None, runs: Vec::new(), grown: false, ..self.clone() };
        std::mem::replace(self, rest)
    }

    /// Returns the entries added here, in order.
    pub(crate) fn sequence(&self) -> Vec<EntryNumber> {
        self.runs.iter().chain(&self.run).flat_map(|run| EntryNumber::each(run.entries())).collect()
    }

    /// Returns the runs added so far.
    pub(crate) fn runs(&self) -> Vec<Run> {
        self.runs.iter().chain(&self.run).cloned().collect()
    }

    /// Returns the runs added here, with the tail.
    pub(crate) fn finish(self) -> Vec<Run> {
        let mut runs = self.runs;
        runs.extend(self.run);
        match runs.last_mut() {
            Some(last) => last.tail = self.tail,
            None if self.grown => runs.push(Run {
                generation: self.generation,
                start: self.entries,
                bytes: self.bytes,
                running: self.running,
                tail: self.tail,
                ..Run::default()
            }),
            None => {}
        }
        runs
    }
}
