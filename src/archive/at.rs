//! An opened session of an archive: the value that the verbs work on.

use std::ops::Deref;

use crate::{
    archive::Archive,
    model::State,
    session::{Session, Stored},
    store::StoreError,
};

/// A session of an archive, with the state that it had when it was opened.
///
/// Verbs are functions of it. After a change, the session must be opened again.
#[derive(Clone)]
pub struct At<'a> {
    /// The archive.
    pub archive: &'a Archive,
    stored: Stored<'a>,
}

impl<'a> Deref for At<'a> {
    type Target = Stored<'a>;

    fn deref(&self) -> &Stored<'a> {
        &self.stored
    }
}

impl<'a> At<'a> {
    /// Returns a session in a state that was read before.
    pub(crate) fn in_state(archive: &'a Archive, session: Session, state: State) -> Self {
        Self { archive, stored: Stored { store: archive.store(), session, state } }
    }

    /// Opens the session again, after a change or under a lock.
    pub fn again(&self) -> Result<Self, StoreError> {
        self.archive.at(self)
    }
}

impl Archive {
    /// Opens one of its sessions: reads its state.
    pub fn at(&self, session: &Session) -> Result<At<'_>, StoreError> {
        Ok(At { archive: self, stored: Stored::of(self.store(), session)? })
    }
}
