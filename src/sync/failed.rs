//! Failed: a session that could not be taken in, because of one of its files or of the store.

use crate::{
    session::SessionError,
    store::StoreError,
    sync::{SyncError, Why},
};

/// Why a session could not be taken in.
pub(crate) enum Failed {
    /// One of its files cannot be read.
    File(usize, Why),
    /// The store failed.
    Verb(SyncError),
}

impl From<SyncError> for Failed {
    fn from(error: SyncError) -> Self {
        Self::Verb(error)
    }
}

impl From<SessionError> for Failed {
    fn from(error: SessionError) -> Self {
        Self::Verb(error.into())
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Verb(error.into())
    }
}

impl Failed {
    /// Returns it for a file that was read from behind some lines, which were not counted.
    pub(crate) fn behind(self, lines: u64) -> Self {
        match self {
            Self::File(n, Why::Lines(error)) => Self::File(n, Why::Lines(error.behind(lines))),
            other => other,
        }
    }
}
