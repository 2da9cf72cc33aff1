//! Sessions: a conversation of an agent, as a store knows it.

use crate::{
    model::SessionName,
    session::SessionError,
    store::{SessionKey, Store},
    wire::{self, Format},
};

/// A session of an archive.
#[derive(Clone)]
pub struct Session {
    /// Its key in the store.
    pub key: SessionKey,
    /// Its name.
    pub name: SessionName,
    /// The format of its records.
    pub format: &'static dyn Format,
}

impl serde::Serialize for Session {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(to)
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({}:{})", self.name.format, self.name.id)
    }
}

impl Session {
    /// Returns a session of a store. Fails if its format is unknown.
    pub(crate) fn from_store(key: SessionKey, name: SessionName) -> Result<Self, SessionError> {
        let format = wire::by_name(&name.format);
        let format = format.ok_or_else(|| SessionError::UnknownFormat(name.format.clone()))?;
        Ok(Self { key, name, format })
    }

    /// Finds the session with a name.
    pub(crate) fn find(
        store: &dyn Store,
        name: &SessionName,
    ) -> Result<Option<Self>, SessionError> {
        let key = store.session(name)?;
        key.map(|key| Self::from_store(key, name.clone())).transpose()
    }
}
