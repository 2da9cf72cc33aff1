//! A session with its state, which is read once.

use std::ops::Deref;

use crate::{
    model::{GenerationNumber, Position, Run, State},
    session::{Session, View},
    store::{Store, StoreError},
};

/// A session of a store, with the state that it had when it was opened.
///
/// After a change, the session must be opened again.
#[derive(Clone)]
pub struct Stored<'a> {
    /// The store.
    pub(crate) store: &'a dyn Store,
    /// The session.
    pub session: Session,
    /// Its state.
    pub state: State,
}

impl Deref for Stored<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl<'a> Stored<'a> {
    /// Reads the state of a session.
    pub fn of(store: &'a dyn Store, session: &Session) -> Result<Self, StoreError> {
        Ok(Self { store, session: session.clone(), state: store.state(session.key)? })
    }

    /// Returns the session as seen from a position.
    pub fn view(&self, position: Position) -> View<'a> {
        View::new(self.store, self, position, Some(&self.state.spans))
    }

    /// Returns a view of a whole generation.
    pub(crate) fn whole(&self, generation: GenerationNumber) -> View<'a> {
        let horizon = self.state.ends.get(&generation).map_or(0, Run::end);
        self.view(Position { generation, head: None, horizon })
    }
}
