//! Damage: entries whose lines were requested and could not be read.
//!
//! A verb that changes a session needs every line that it requests, and fails at the first damaged one. A verb that shows a
//! session skips damaged lines and reports them.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc};

use crate::{
    model::{EntryId, EntryNumber},
    session::{SessionError, Stored, entry_ids},
    store::{SessionKey, Store, StoreError},
};

/// An entry with a damaged line.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Damaged {
    /// The entry, if its id can be read.
    pub entry: Option<EntryId>,
    /// What is wrong with it.
    pub problem: String,
}

/// What a reader does about damaged lines. By default it fails at the first one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Damages(Option<Rc<RefCell<BTreeMap<EntryNumber, String>>>>);

impl Damages {
    /// Makes a reader skip damaged lines and gather them here.
    pub(crate) fn gathered() -> Self {
        Self(Some(Rc::default()))
    }

    /// Passes on the lines of these entries, in this order; `None` for a damaged one if damage is gathered.
    pub(crate) fn each_line(
        &self,
        store: &dyn Store,
        session: SessionKey,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Option<Vec<u8>>),
    ) -> Result<(), StoreError> {
        let mut failed = None;
        store.lines(session, entries, &mut |n, line| match line {
            _ if failed.is_some() => {}
            Ok(line) => each(n, Some(line)),
            Err(error) => match self.gather(n, error) {
                Ok(()) => each(n, None),
                Err(error) => failed = Some(error),
            },
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Passes on the intact lines of these entries, in this order.
    pub(crate) fn lines(
        &self,
        store: &dyn Store,
        session: SessionKey,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Vec<u8>),
    ) -> Result<(), StoreError> {
        self.each_line(store, session, entries, &mut |n, line| {
            if let Some(line) = line {
                each(n, line);
            }
        })
    }

    /// Gathers the damage of an entry, or returns it as an error.
    fn gather(&self, n: EntryNumber, error: StoreError) -> Result<(), StoreError> {
        match (&self.0, error) {
            (Some(gathered), StoreError::Corrupt(fault)) => {
                gathered.borrow_mut().insert(n, fault.problem);
                Ok(())
            }
            (_, error) => Err(error),
        }
    }

    /// Returns the damage gathered for an entry.
    pub(crate) fn of(&self, n: EntryNumber) -> Option<String> {
        self.0.as_ref().and_then(|gathered| gathered.borrow().get(&n).cloned())
    }

    /// Returns the damaged entries gathered so far, in order.
    pub(crate) fn met(&self, session: &Stored<'_>) -> Result<Vec<Damaged>, SessionError> {
        let Some(gathered) = &self.0 else { return Ok(Vec::new()) };
        let gathered = gathered.borrow();
        let ids = entry_ids(session.store, session, &gathered.keys().copied().collect())?;
        let damaged = |(n, problem): (&EntryNumber, &String)| Damaged {
            entry: ids.get(n).copied(),
            problem: problem.clone(),
        };
        Ok(gathered.iter().map(damaged).collect())
    }
}
