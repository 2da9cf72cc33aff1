//! Errors of reading a session.

use std::{error::Error, path::PathBuf};

use crate::{
    model::CheckpointNumber,
    store::{Listed, StoreError},
    wire::Failure,
};

/// The session cannot be read, or does not have what was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// There is no such session.
    #[error("no session matches {0:?}")]
    NoSession(String),
    /// No session works in this folder.
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
    /// The place is before the first entry.
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
    /// The ends of a range are not on one path.
    #[error("these places are on different branches: {}", .ends.iter().map(|(end, on)| format!("{end} is on {on}")).collect::<Vec<_>>().join(", "))]
    Apart {
        /// Each end, and the branch it is on.
        ends: Vec<(String, String)>,
    },
    /// The turn has no such step.
    #[error("there is no {wanted}: the last step of that turn is {last}")]
    NoStep {
        /// What was asked for.
        wanted: String,
        /// The last step of the turn.
        last: String,
    },
    /// There is no such checkpoint.
    #[error("no checkpoint matches {wanted:?}")]
    NoCheckpoint {
        /// What was asked for.
        wanted: String,
        /// The nearest checkpoints, with their prompts.
        nearest: Vec<(CheckpointNumber, String)>,
    },
    /// The session has a format that is unknown here.
    #[error("unknown agent format {0:?}")]
    UnknownFormat(String),
    /// The output could not be written.
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
    /// Converts an error of a graph back to the error it wraps.
    fn from(failure: Failure) -> Self {
        match failure.downcast().map_err(<dyn Error + Send + Sync>::downcast) {
            Ok(error) => *error,
            Err(Ok(error)) => Self::Store(*error),
            Err(Err(failure)) => Self::Store(StoreError::Database(failure)),
        }
    }
}
