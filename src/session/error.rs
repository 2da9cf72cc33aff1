//! What can go wrong while a session is read.

use std::{error::Error, path::PathBuf};

use crate::{
    model::CheckpointNumber,
    store::{Listed, StoreError},
    wire::Failure,
};

/// A session that cannot be read, or something that it does not have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// There is no such session.
    #[error("no session matches {0:?}")]
    NoSession(String),
    /// There is no session that works in this folder.
    #[error("there is no session in {0}")]
    NoSessionHere(PathBuf),
    /// Several sessions match.
    #[error("{wanted:?} matches {} sessions", .matches.len())]
    AmbiguousSession {
        /// What was asked for.
        wanted: String,
        /// The sessions.
        matches: Vec<Listed>,
    },
    /// There is no such entry.
    #[error("no entry matches {0:?}")]
    NoEntry(String),
    /// The start is no entry.
    #[error("that place is before the first entry of the session")]
    Start,
    /// Several entries match.
    #[error("{wanted:?} matches {} entries", .matches.len())]
    AmbiguousEntry {
        /// What was asked for.
        wanted: String,
        /// Their ids.
        matches: Vec<String>,
    },
    /// No path has both ends of a range.
    #[error("these places are on different branches: {}", .ends.iter().map(|(end, on)| format!("{end} is on {on}")).collect::<Vec<_>>().join(", "))]
    Apart {
        /// Each end, and the branch that has it.
        ends: Vec<(String, String)>,
    },
    /// The turn has no such step.
    #[error("there is no {wanted}: the last step of that turn is {last}")]
    NoStep {
        /// What was asked for.
        wanted: String,
        /// The last one that there is.
        last: String,
    },
    /// There is no such checkpoint.
    #[error("no checkpoint matches {wanted:?}")]
    NoCheckpoint {
        /// What was asked for.
        wanted: String,
        /// The nearest ones, each with the words there.
        nearest: Vec<(CheckpointNumber, String)>,
    },
    /// The session's records are of a format that is not known here.
    #[error("unknown agent format {0:?}")]
    UnknownFormat(String),
    /// The output could not be written where it should go.
    #[error("cannot write the output")]
    Write {
        /// How it failed.
        #[source]
        source: std::io::Error,
    },
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for SessionError {
    /// Takes a failure beneath a graph apart again.
    fn from(failure: Failure) -> Self {
        match failure.downcast().map_err(<dyn Error + Send + Sync>::downcast) {
            Ok(error) => *error,
            Err(Ok(error)) => Self::Store(*error),
            Err(Err(failure)) => Self::Store(StoreError::Database(failure)),
        }
    }
}
