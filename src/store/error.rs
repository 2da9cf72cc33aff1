//! What can go wrong in a store, by what the caller can do about it.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{model::OperationNumber, store::Fault};

/// What damage comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A record that an agent wrote, which is odd and no damage.
    Oddity,
    /// All of the store is damaged: nothing says what else is.
    Store,
    /// A session cannot be read.
    Session,
    /// One thing is not what was written.
    Thing,
    /// Derived rows are not what the facts give.
    Derived,
    /// The store does not hold changes that it held.
    Forgotten,
    /// A line was given up when the store was mended: that it is lost is known, and a file may give it back.
    Lost,
    /// The witness is damaged or missing, and the next change writes it again.
    Witness,
    /// A file of a session is not as the store left it; in the store nothing is damaged.
    File,
    /// A file has what the store has lost.
    Ahead,
    /// A file of a session cannot be read, so that nothing is known of it.
    Unread,
    /// A fact that a person may want to know.
    Note,
}

impl FaultKind {
    /// Returns true if something differs from its recorded state.
    pub fn is_damage(self) -> bool {
        !matches!(self, Self::Oddity | Self::Witness | Self::Unread | Self::Note)
    }
}

/// A store's failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The session has a newer operation than the caller knew: load it again and repeat.
    #[error("the change was not made: another program changed the session in the meantime")]
    Conflict,
    /// An addition contradicts the store's content, or was never put together rightly.
    #[error("the store refused a change: {0}")]
    Refused(String),
    /// The data read is not the data written.
    #[error("{} is damaged: {}", .0.item, .0.problem)]
    Corrupt(Fault),
    /// The store was written by a newer version of the program.
    #[error("the store at {path} has version {found}, but this undertext reads version {known}")]
    Newer {
        /// Where the store is.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// The store was written by an older version of the program, before the first release.
    #[error("the store at {path} has version {found}, but this undertext reads version {known}")]
    Old {
        /// Where the store is.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version that this program reads.
        known: i64,
    },
    /// A newer version of the program has written facts that this one does not know.
    #[error("operation {operation} of the session was written by a newer version of undertext")]
    NewerFacts {
        /// The first of the session's operations that has any.
        operation: OperationNumber,
    },
    /// The store has lost operations that it had, or an older copy is in its place.
    #[error("the store at {path} has lost changes: it had {witnessed}, but has only {newest} now")]
    Forgotten {
        /// Where the store is.
        path: PathBuf,
        /// How many operations it had, by the word of its witness.
        witnessed: u64,
        /// How many it has.
        newest: u64,
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
    #[error("cannot write to the store at {path}")]
    ReadOnly {
        /// Where the store is.
        path: PathBuf,
    },
    /// The store was mended, or replaced in another way, since it was opened.
    #[error("the store at {path} was replaced while this command was running")]
    Replaced {
        /// Where the store is.
        path: PathBuf,
    },
    /// An earlier write failed, and how much of it reached the disk is not known.
    #[error("an earlier write to the store at {path} failed, so this command cannot continue")]
    Unsure {
        /// Where the store is.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no disk space is left for the store")]
    Full,
    /// Another program holds the store.
    #[error("the store is busy: another program has been writing to it for too long")]
    Busy,
    /// The file system failed.
    #[error("cannot access {path}")]
    Io {
        /// The path that was accessed.
        path: PathBuf,
        /// How it failed.
        #[source]
        source: io::Error,
    },
    /// The database failed.
    #[error("the store's database failed")]
    Database(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// The problem of a witness that has seen nothing of the store that is next to it.
pub(crate) const OTHER_WITNESS: &str = "it belongs to a different store from the one next to it";

impl StoreError {
    /// Makes a [`StoreError::Io`] of a failure of the file system at a path.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Makes a [`StoreError::Corrupt`] of one thing.
    pub(crate) fn corrupt(item: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Corrupt(Fault::of(None, item, problem))
    }

    /// Makes one of all of the store.
    pub fn database(problem: impl Into<String>) -> Self {
        Self::Corrupt(Fault::of_store(problem))
    }
}

/// Returns an answer that may rest on damaged bytes: a damaged item counts as absent.
pub(crate) fn sound<T>(answer: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(StoreError::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
