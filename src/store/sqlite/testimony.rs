//! Testimony: what the witness says about a store, which may have lost something or replaced another one.
//!
//! Invariant: an unreadable witness proves nothing, and neither does a damaged id of the store.

use std::path::PathBuf;

use crate::{
    model::WITNESS,
    store::{
        Fault, FaultKind, OTHER_WITNESS, StoreError,
        answer::Layered as _,
        sqlite::{
            Access, SqliteStore, journal,
            witness::{self, Condition, Witness},
        },
    },
};

/// What the witness of a store says.
pub struct Testimony<'a> {
    pub(super) store: &'a SqliteStore,
    /// The path of the witness file.
    pub(super) path: PathBuf,
}

impl Testimony<'_> {
    /// Returns how far the store had come and how far it has, if it lost operations or has different ones in their place.
    pub fn forgotten(&self) -> Result<Option<(u64, u64)>, StoreError> {
        let Ok(Some(witness)) = self.witness() else { return Ok(None) };
        let found = self.lacks(&witness)?;
        if found.is_none() || self.store.access != Access::Read {
            return Ok(found);
        }
        // This reader sees the store as of its opening, and other programs may have written since. A reader opened now has
        // whatever the witness had seen before, unless a redaction removed that witness.
        let found =
            SqliteStore::open(&self.store.path, Access::Read)?.testimony().lacks(&witness)?;
        let is_still_there = || self.witness().is_ok_and(|now| now.as_ref() == Some(&witness));
        Ok(found.filter(|_| is_still_there()))
    }

    /// Returns how far the witness has seen the store come and how far it has, if it lacks the witnessed operation.
    fn lacks(&self, witness: &Witness) -> Result<Option<(u64, u64)>, StoreError> {
        let _snapshot = self.store.begin_look()?;
        // The journal knows the newest operation and is needed later anyway. If it is unreadable, ask the tables.
        let newest = self.store.refresh().ok().and_then(|()| self.store.journal.borrow().newest);
        if newest == Some((witness.seq, witness.hash)) {
            return Ok(None);
        }
        let newest = journal::newest_seq(self.store.db())?;
        let is_other = || {
            Ok::<_, StoreError>(
                journal::hash_at(self.store.db(), witness.seq)?
                    .is_some_and(|hash| hash != witness.hash),
            )
        };
        Ok((witness.seq > newest || is_other()?).then_some((witness.seq, newest)))
    }

    /// Returns what is wrong with the witness file itself, if anything.
    pub fn problem(&self) -> Result<Option<&'static str>, StoreError> {
        Ok(match witness::condition(&self.path).map_err(StoreError::at(&self.path))? {
            Condition::Damaged => Some("part of it is damaged; the next changes rewrite it"),
            // The first change of a store may have been interrupted before it wrote a witness.
            Condition::Missing if self.store.newest()?.is_some_and(|(seq, _)| seq > 1) => Some(
                "it is missing, so undertext cannot tell whether the store has lost changes; the next change rewrites it",
            ),
            Condition::Missing | Condition::Whole => None,
        })
    }

    /// Replaces a damaged or missing witness.
    pub fn renew(&self) -> Result<(), StoreError> {
        if let Some(newest) = self.store.newest()? {
            let mut file = self.store.witness.borrow_mut();
            file.forget().map_err(StoreError::at(&self.path))?;
            file.bear(self.store.own_id(), newest);
        }
        Ok(())
    }

    /// Returns true if the witness has seen only another store, which this one then replaced.
    pub fn is_of_another(&self) -> Result<bool, StoreError> {
        let seen = witness::read_all(&self.path).unwrap_or_default();
        let own = self.store.own_id();
        let is_others = !seen.is_empty() && seen.iter().all(|witness| witness.store != own);
        Ok(is_others && self.store.has_its_id()?)
    }

    /// Returns how far the store had come according to the witness, if there is one.
    pub fn witness(&self) -> Result<Option<Witness>, StoreError> {
        witness::read(&self.path, self.store.own_id()).map_err(StoreError::at(&self.path))
    }

    /// Compares the current state of the store, not this connection's snapshot, with its witness.
    pub(super) fn check(&self, report: &mut dyn FnMut(Fault)) -> Result<(), StoreError> {
        let problem = match self.witness() {
            Ok(None) if self.is_of_another()? => OTHER_WITNESS.to_owned(),
            Ok(None) => return self.check_file(report),
            Err(error) => error.to_string(),
            Ok(Some(witness)) => match self.forgotten()? {
                None => return self.check_file(report),
                Some((witnessed, newest)) if newest < witnessed => {
                    format!("it has seen change {witnessed}, but the store has only {newest}")
                }
                Some(_) => format!("it has seen a different change {} in the store", witness.seq),
            },
        };
        report(Fault { kind: FaultKind::Forgotten, ..Fault::of(None, WITNESS, problem) });
        Ok(())
    }

    fn check_file(&self, report: &mut dyn FnMut(Fault)) -> Result<(), StoreError> {
        let problem = self.problem()?;
        let fault =
            |problem| Fault { kind: FaultKind::Witness, ..Fault::of(None, WITNESS, problem) };
        problem.map(fault).into_iter().for_each(report);
        Ok(())
    }
}
