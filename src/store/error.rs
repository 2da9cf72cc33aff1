//! Errors of a store, by what the caller can do about them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    model::{
        BESIDE, OperationNumber,
        hint::{Hint, Line},
        is_own,
    },
    store::Fault,
};

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A strange record of an agent; not damage.
    Oddity,
    /// The whole store is damaged, so further damage is unknown.
    Store,
    /// A session cannot be read.
    Session,
    /// One item differs from what was written.
    Thing,
    /// Derived rows differ from what the facts give.
    Derived,
    /// The store has lost changes.
    Forgotten,
    /// A line was recorded as lost when the store was mended; a file may still restore it.
    Lost,
    /// The witness is damaged or missing; the next change rewrites it.
    Witness,
    /// A session file differs from what the store wrote; the store itself is intact.
    File,
    /// A file has data that the store has lost.
    Ahead,
    /// A session file cannot be read and was not checked.
    Unread,
    /// Something that a person may want to know.
    Note,
}

impl FaultKind {
    /// Returns true if something differs from its recorded state.
    pub fn is_damage(self) -> bool {
        !matches!(self, Self::Oddity | Self::Witness | Self::Unread | Self::Note)
    }

    /// Returns `damage` or `note`.
    pub fn severity(self) -> &'static str {
        if self.is_damage() { "damage" } else { "note" }
    }
}

/// What a caller can do about an error. It decides the exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request cannot be met: ask for something else.
    User,
    /// What was asked for does not exist.
    Absent,
    /// Something failed that should have worked.
    Failed,
    /// A newer version of the program wrote the data.
    Newer,
}

/// A store's failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The session has a newer operation than the caller knew: load it again and repeat.
    #[error("the change was not made: another program changed the session in the meantime")]
    Conflict,
    /// A change contradicts the store's content, or is invalid in itself.
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
        /// The first operation of the session with such facts.
        operation: OperationNumber,
    },
    /// The store has lost operations, or was replaced by an older copy.
    #[error("the store at {path} has lost changes: it had {witnessed}, but has only {newest} now")]
    Forgotten {
        /// Where the store is.
        path: PathBuf,
        /// How many operations it had, according to its witness.
        witnessed: u64,
        /// How many it has.
        newest: u64,
    },
    /// The file exists but is not a store.
    #[error("{path} is not an undertext store")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// There is no store.
    #[error("there is no store at {path}")]
    Absent {
        /// Where it was expected.
        path: PathBuf,
    },
    /// The store is read-only.
    #[error("cannot write to the store at {path}")]
    ReadOnly {
        /// Where the store is.
        path: PathBuf,
    },
    /// The store was mended or otherwise replaced since it was opened.
    #[error("the store at {path} was replaced while this command was running")]
    Replaced {
        /// Where the store is.
        path: PathBuf,
    },
    /// An earlier write failed, so it is unknown what is on disk.
    #[error("an earlier write to the store at {path} failed, so this command cannot continue")]
    Unsure {
        /// Where the store is.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no disk space is left for the store")]
    Full,
    /// Another program has locked the store for too long.
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

/// The problem of a witness that belongs to another store.
pub(crate) const OTHER_WITNESS: &str = "it belongs to a different store from the one next to it";

impl StoreError {
    /// Returns the next steps.
    pub fn hints(&self) -> Vec<Hint> {
        match self {
            Self::Forgotten { .. } => {
                vec![
                    Line::new("doctor").to("to see what this means and what you can do"),
                    Line::new("doctor")
                        .flag("fix")
                        .to("to recover lost changes from session files"),
                ]
            }
            Self::Old { .. } => vec![
                Line::new("import")
                    .to("move the store away, then import your agents' sessions again"),
            ],
            Self::Newer { .. } | Self::NewerFacts { .. } => {
                vec!["update undertext, or name another store with --store".into()]
            }
            Self::Absent { path } if has_others(path) => vec![elsewhere()],
            Self::Absent { .. } => beginnings().into(),
            Self::Foreign { .. } => vec![
                Line::new("doctor").to("check the store's folder"),
                "or name another folder with --store".into(),
            ],
            Self::ReadOnly { path } if path.exists() => {
                vec!["commands that only read still work".into()]
            }
            Self::ReadOnly { .. } => vec!["name another folder with --store".into()],
            Self::Full => vec![full()],
            Self::Corrupt { .. } => damage(),
            Self::Refused(_) => vec![Line::new("verify").to("check the store for damage")],
            Self::Busy | Self::Conflict | Self::Replaced { .. } | Self::Unsure { .. } => {
                vec!["try again".into()]
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => vec![full()],
            Self::Io { .. } | Self::Database(_) => {
                vec![Line::new("doctor").to("check the store's folder")]
            }
        }
    }

    /// Returns what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Newer { .. } | Self::NewerFacts { .. } => ErrorKind::Newer,
            Self::Absent { .. } => ErrorKind::Absent,
            Self::Foreign { .. } => ErrorKind::User,
            _ => ErrorKind::Failed,
        }
    }

    /// Makes a [`StoreError::Io`] for a path.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Makes a [`StoreError::Corrupt`] for one item.
    pub(crate) fn corrupt(item: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Corrupt(Fault::of(None, item, problem))
    }

    /// Makes a [`StoreError::Corrupt`] for the whole store.
    pub fn database(problem: impl Into<String>) -> Self {
        Self::Corrupt(Fault::of_store(problem))
    }
}

/// Turns an error about damage into `None`.
pub(crate) fn sound<T>(answer: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(StoreError::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns true if a folder contains files that undertext did not create, as far as it can be listed.
pub(crate) fn has_others(folder: &Path) -> bool {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|one| one.file_name());
    names.into_iter().any(|name| !is_own(&name) && BESIDE.iter().all(|one| name != *one))
}

/// Returns the hint for a folder that has no store.
pub(crate) fn elsewhere() -> Hint {
    "with --store, name a folder that has a store, is empty, or does not exist yet".into()
}

/// Returns the two ways to get a first session.
pub(crate) fn beginnings() -> [Hint; 2] {
    [
        Line::new("import").to("import your agents' sessions"),
        Line::new("new").to("start a session for your own agent"),
    ]
}

/// Returns the hint for a full disk.
pub(crate) fn full() -> Hint {
    "nothing is lost; make room and try again".into()
}

/// Returns hints for a damaged store.
pub(crate) fn damage() -> Vec<Hint> {
    vec![Line::new("verify").to("see what is damaged"), Hint::mend()]
}
