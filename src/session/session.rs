//! Sessions: one conversation of one agent, as a store knows it.

use crate::{
    model::SessionName,
    session::SessionError,
    store::{SessionKey, Store},
    wire::{self, Format},
};

/// A session of an archive.
#[derive(Clone)]
pub struct Session {
    /// The store's number.
    pub key: SessionKey,
    /// The name.
    pub name: SessionName,
    /// The format of its records.
    pub format: &'static dyn Format,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({}:{})", self.name.format, self.name.id)
    }
}

impl Session {
    /// Returns a session of a store; its records can be read only if their format is known.
    pub(crate) fn from_store(key: SessionKey, name: SessionName) -> Result<Self, SessionError> {
        let format = wire::by_name(&name.format);
        let format = format.ok_or_else(|| SessionError::UnknownFormat(name.format.clone()))?;
        Ok(Self { key, name, format })
    }

    /// Finds the session of a name.
    pub(crate) fn find(
        store: &dyn Store,
        name: &SessionName,
    ) -> Result<Option<Self>, SessionError> {
        let key = store.session(name)?;
        key.map(|key| Self::from_store(key, name.clone())).transpose()
    }
}
