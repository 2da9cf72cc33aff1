//! Reads the records of a thread backwards, without those that Codex skips.

use std::collections::VecDeque;

use super::hint::{OPENS, ROLLBACK, hint, is_unframed, starts};
use crate::{
    model::{HintBytes, Kind, PlaceNumber, Record},
    wire::{Before, Failure, Graph, first_record},
};

/// The records before a place, last one first, across all files that lead there.
pub(super) struct Backwards<'g> {
    graph: &'g dyn Graph,
    end: PlaceNumber,
    /// Records that were read ahead.
    ahead: VecDeque<Record>,
    /// How many of the first of them are neither a rollback nor the start of a task.
    plain: usize,
    /// True if records before the first one exist but cannot be read.
    pub(super) is_cut_short: bool,
    /// Whether Codex skips records without an envelope in the current file; None until it is needed.
    passes: Option<bool>,
}

impl<'g> Backwards<'g> {
    pub(super) fn new(graph: &'g dyn Graph, end: PlaceNumber) -> Self {
        Self { graph, end, ahead: VecDeque::new(), plain: 0, is_cut_short: false, passes: None }
    }

    /// Returns the previous record.
    pub(super) fn next(&mut self) -> Result<Option<Record>, Failure> {
        self.plain = self.plain.saturating_sub(1);
        match self.ahead.pop_front() {
            None => self.read(),
            met => Ok(met),
        }
    }

    fn read(&mut self) -> Result<Option<Record>, Failure> {
        loop {
            while self.end > PlaceNumber::FIRST {
                self.end = self.end.minus(1);
                if let Some(entry) = self.graph.at(self.end)? {
                    let mut record = self.graph.record(entry)?;
                    if is_unframed(&record) && self.passes()? {
                        (record.kind, record.hint) = (Kind::Opaque, HintBytes::default());
                    }
                    return Ok(Some(record));
                }
            }
            match self.graph.before()? {
                Before::File(before) => {
                    (self.graph, self.end, self.passes) = (before, before.end(), None);
                }
                Before::Nothing => return Ok(None),
                Before::Unread => {
                    self.is_cut_short = true;
                    return Ok(None);
                }
            }
        }
    }

    /// Returns true if Codex skips records without an envelope in this file.
    fn passes(&mut self) -> Result<bool, Failure> {
        if let Some(passes) = self.passes {
            return Ok(passes);
        }
        let passes = first_record(self.graph)?
            .is_some_and(|first| hint(&first).0 & OPENS != 0 && !is_unframed(&first));
        self.passes = Some(passes);
        Ok(passes)
    }

    /// Returns true if there is a rollback between here and the start of the task.
    pub(super) fn meets_rollback(&mut self) -> Result<bool, Failure> {
        loop {
            if self.plain == self.ahead.len() {
                let Some(record) = self.read()? else { return Ok(false) };
                self.ahead.push_back(record);
            }
            let Some(record) = self.ahead.get(self.plain) else { return Ok(false) };
            let (flags, number) = hint(record);
            if flags & ROLLBACK != 0 && number > 0 {
                return Ok(true);
            }
            if starts(flags) {
                return Ok(false);
            }
            self.plain += 1;
        }
    }
}
