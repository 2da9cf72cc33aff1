//! What can go wrong in a store, by what the caller can do about it.

use std::path::PathBuf;

/// A store's failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The session has a newer operation than the caller knew: load it again and repeat.
    #[error("the session was changed by another program meanwhile")]
    Conflict,
    /// What was to be added contradicts what is there, or was never put together rightly.
    #[error("the store refused a change: {0}")]
    Refused(String),
    /// What was read is not what was written.
    #[error("{item} is damaged: {problem}")]
    Corrupt {
        /// What is damaged.
        item: String,
        /// How that shows.
        problem: String,
    },
    /// The store was written by a newer version of the program.
    #[error(
        "the store at {path} has version {found}, and this program knows versions up to {known}"
    )]
    Newer {
        /// Where the store is.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// The file is there but is no store.
    #[error("{path} is not an undertext store")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// There is no store.
    #[error("there is no store at {path}")]
    Absent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The store can be read only.
    #[error("the store at {path} cannot be written")]
    ReadOnly {
        /// Where the store is.
        path: PathBuf,
    },
    /// An earlier write failed, and how much of it reached the disk is not known.
    #[error("an earlier write to the store at {path} failed; it has to be opened again")]
    Unsure {
        /// Where the store is.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("there is no room left for the store")]
    Full,
    /// Another program holds the store.
    #[error("the store is busy: another program has been writing to it for too long")]
    Busy,
    /// The file system failed.
    #[error("cannot access {path}")]
    Io {
        /// What was accessed.
        path: PathBuf,
        /// How it failed.
        #[source]
        source: std::io::Error,
    },
    /// The database failed.
    #[error("the database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl StoreError {
    /// Makes a [`StoreError::Corrupt`].
    pub(crate) fn corrupt(item: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Corrupt { item: item.into(), problem: problem.into() }
    }
}
