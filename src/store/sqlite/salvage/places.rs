//! Places: where operations put their entries, in the generations of a session, where the rows that told it are lost.
//!
//! ```text
//! grown     an operation only added its entries behind those that a generation had
//! offered   what a caller has read of a file of the session, or of a generation that was written again
//! ```
//!
//! Invariant: runs are taken only if they are those that the record of their operation names.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use rusqlite::params;

use super::Salvage;
use crate::{
    model::{
        Bulk, EntryId, EntryNumber, Gaps, GenerationNumber, IdPrefix, LineId, Operation,
        OperationNumber, Origin, Run,
    },
    store::{
        ByteStore, FactStore, SessionKey, StoreError,
        sqlite::{
            add::{self, Placed},
            covered,
            query::collect,
        },
    },
};

/// How many generations are tried, from the newest on, as the one that an operation added to.
const GENERATIONS: usize = 8;

/// An operation of which it is not known where it put its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    /// The session.
    pub session: SessionKey,
    /// The operation.
    pub operation: Operation,
    /// The number of the next generation behind it.
    pub(super) next: GenerationNumber,
}

impl Salvage {
    /// Returns the operations of which it is not known where they put their entries, those of each session in order.
    pub fn unplaced(&self) -> &[Unplaced] {
        &self.unplaced
    }

    /// Returns where the generations end that an operation may have added to, the one that grew last first; those without a run
    /// are empty.
    pub fn ends_before(&self, one: &Unplaced) -> Result<Vec<Run>, StoreError> {
        let before = OperationNumber::FIRST..one.operation.n;
        let grown = self.fresh.growths(one.session, before)?;
        let mut ends: Vec<Run> = grown.into_iter().rev().map(|(_, run)| run).collect();
        let begun = GenerationNumber::each(GenerationNumber::FIRST..one.next).rev();
        ends.extend(begun.take(GENERATIONS).map(|generation| Run { generation, ..Run::default() }));
        let mut seen = BTreeSet::new();
        ends.retain(|end| seen.insert(end.generation));
        Ok(ends)
    }

    /// Takes the runs of an operation that only added entries behind those that a generation had, if that is what its record
    /// names.
    pub fn place_grown(&mut self, one: &Unplaced) -> Result<bool, StoreError> {
        let by = &one.operation;
        let entries = self.fresh.entries(one.session, by.added())?;
        let lengths = self.lengths_of(one.session, by.added())?;
        for end in self.ends_before(one)? {
            let start = end.end();
            let (mut running, mut bytes) = (end.running, end.bytes);
            for ((place, entry), length) in (start..).zip(&entries).zip(&lengths) {
                let separator = Gaps::usual(place);
                running = running.then(separator, entry.id);
                bytes += separator.len() as u64 + length;
            }
            for tail in [&b""[..], b"\n"] {
                let run = Run {
                    generation: end.generation,
                    start,
                    first: by.first,
                    count: entries.len() as u64,
                    gaps: Gaps::default(),
                    bytes,
                    running,
                    tail: tail.to_vec(),
                };
                if self.place(one, vec![run])? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns whether runs are those that the record of an operation names, or those that stand there since unfinished lines were
    /// taken out of them.
    pub(super) fn are_runs_of(
        &self,
        session: SessionKey,
        by: &Operation,
        runs: &[Run],
    ) -> Result<bool, StoreError> {
        if by.names_runs(runs, None) {
            return Ok(true);
        }
        let covered = covered::runs_by_operations(self.db(), session, by.n)?;
        Ok(by.names_runs(runs, covered))
    }

    /// Takes the runs of an operation, if they are those that its record names.
    pub fn place(&mut self, one: &Unplaced, runs: Vec<Run>) -> Result<bool, StoreError> {
        let Unplaced { session, operation, .. } = one;
        let bulk = Bulk { runs, ..Bulk::default() };
        if !self.are_runs_of(*session, operation, &bulk.runs)? {
            return Ok(false);
        }
        self.drop_runs(*session, operation.n)?;
        let (session, seq, lines, kept) = (*session, 0, vec![], vec![]);
        add::add_growth(
            self.db(),
            &[Placed { session, seq, operation, bulk: &bulk, lines, kept }],
        )?;
        self.unplaced.retain(|other| other != one);
        Ok(true)
    }

    /// Leaves out the runs of operations of which some cannot be read.
    pub(super) fn drop_torn_runs(&self, session: SessionKey) -> Result<(), StoreError> {
        if self.growths_of(session, OperationNumber::ALL)?.is_some() {
            return Ok(());
        }
        let sql = "SELECT DISTINCT operation FROM run WHERE session = ?";
        for n in collect(self.db(), sql, [session.0], |row| row.get::<_, OperationNumber>(0))? {
            if self.growths_of(session, n.alone())?.is_none() {
                self.drop_runs(session, n)?;
            }
        }
        Ok(())
    }

    fn growths_of(
        &self,
        session: SessionKey,
        operations: Range<OperationNumber>,
    ) -> Result<Option<Vec<(OperationNumber, Run)>>, StoreError> {
        match self.fresh.growths(session, operations) {
            Err(StoreError::Corrupt { .. }) => Ok(None),
            found => found.map(Some),
        }
    }

    fn drop_runs(&self, session: SessionKey, n: OperationNumber) -> Result<(), StoreError> {
        self.db()
            .prepare_cached("DELETE FROM run WHERE session = ? AND operation = ?")?
            .execute(params![session.0, n])?;
        Ok(())
    }

    /// Returns the entry of a session with an id.
    pub fn entry(
        &self,
        session: SessionKey,
        id: &EntryId,
    ) -> Result<Option<EntryNumber>, StoreError> {
        Ok(self.fresh.find(session, &IdPrefix::whole(id))?.first().copied())
    }

    /// Returns the lines that replace others, each with the one that came.
    pub fn coverings(&self, session: SessionKey) -> Result<BTreeMap<LineId, LineId>, StoreError> {
        let covered = covered::by_operations(self.db(), session)?;
        Ok(covered.into_values().map(|(came, now)| (now, came)).collect())
    }

    /// Returns which entries an operation put in place of others.
    pub fn origins_by(&self, one: &Unplaced) -> Result<Vec<Origin>, StoreError> {
        let origins = self.fresh.origins(one.session, EntryNumber::ALL)?;
        let by = |(by, _): &(_, Origin)| *by == one.operation.n;
        Ok(origins.into_iter().filter(by).map(|(_, origin)| origin).collect())
    }

    /// Returns the id of an entry and how long its line is.
    pub fn measure(
        &self,
        session: SessionKey,
        n: EntryNumber,
    ) -> Result<Option<(EntryId, u64)>, StoreError> {
        let length = self.lengths_of(session, n.alone())?.pop();
        let entry = self.fresh.entries(session, n.alone())?.pop();
        Ok(entry.map(|entry| entry.id).zip(length))
    }

    /// Says of which operations it stays unknown where they put their entries.
    pub(super) fn lose_places(&mut self) {
        for Unplaced { session, operation, .. } in std::mem::take(&mut self.unplaced) {
            self.lose(session, format!("where operation {} put its entries", operation.n));
        }
    }

    /// Returns how long lines are; a lost one counts for nothing, and its digest will not be right.
    fn lengths_of(
        &self,
        session: SessionKey,
        numbers: Range<EntryNumber>,
    ) -> Result<Vec<u64>, StoreError> {
        let length = |n: EntryNumber| match self.fresh.lengths(session, n.alone()) {
            Ok(found) => Ok(found.first().copied().unwrap_or(0)),
            Err(StoreError::Corrupt { .. }) => Ok(0),
            Err(error) => Err(error),
        };
        EntryNumber::each(numbers).map(length).collect()
    }
}
