//! Files and folders that an import passes over, each with the reason, and why a session could not be imported.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
};

use crate::{
    archive::SyncError, model::SessionName, session::SessionError, settings::Exclusion,
    store::StoreError, wire::jsonl::ReadError,
};

/// How many files and folders are met at most: a folder is somebody's, and may hold any number.
pub(crate) const MOST: usize = 1_000_000;

/// A file or a folder that was left out.
#[derive(Debug)]
pub struct Skipped {
    /// Where it is.
    pub path: PathBuf,
    /// Why.
    pub why: Why,
    /// Whether it was asked for by name, not met in a folder.
    pub asked: bool,
}

/// Why a file or a folder is left out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// The system does not let it be read.
    #[error("cannot read it: {0}")]
    Unreadable(#[from] io::Error),
    /// It is a device, a pipe or a socket.
    #[error("it is neither a file nor a folder")]
    Special,
    /// It was met before, under another name.
    #[error("it was already read under another name")]
    Twice,
    /// It is a link in a folder.
    #[error("it is a link, and links are not followed; name the target instead")]
    Link,
    /// It is where the system shows itself as files.
    #[error("it is in a virtual file system (such as /proc)")]
    MadeUp,
    /// Too many files and folders were met: the rest is not looked at.
    #[error("more than {MOST} files and folders were found; name a smaller folder")]
    TooMany,
    /// It was set aside by a command, which keeps its content.
    #[error("an earlier change renamed and replaced this file, and the store has its content")]
    Aside,
    /// It was set aside by a command on another store, and may have what its session lacks.
    #[error(
        "an earlier change renamed and replaced this file, and this store lacks its content; name the file to import it"
    )]
    Unheld,
    /// It is the store's own.
    #[error("it is one of the store's own files")]
    Store,
    /// It is next to a session and holds none.
    #[error("{0} keeps it next to a session; undertext leaves it alone")]
    Beside(&'static str),
    /// It is of an agent whose files are not read yet.
    #[error("it is a file of {0}, which undertext does not read yet")]
    Unread(&'static str),
    /// It holds no session that is known.
    #[error("it is not a session in a known format")]
    NoFormat,
    /// It held a session that the store holds, and holds none any more.
    #[error("it no longer contains a session; its old content is kept as session {}", .0.id)]
    Emptied(SessionName),
    /// The user's settings leave its session out.
    #[error("your settings exclude it: {by}")]
    Excluded {
        /// The session.
        session: SessionName,
        /// The setting.
        by: Exclusion,
    },
    /// Its session has a live file that may not be written, or is damaged.
    #[error("its session cannot be changed: {}", .0.in_full())]
    Denied(Box<SyncError>),
    /// Another file of its session is left out for a reason that holds for it too.
    #[error("another file of the same session cannot be imported")]
    Along,
    /// It cannot be read as lines.
    #[error(transparent)]
    Lines(ReadError),
}

impl From<ReadError> for Why {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io { source, .. } => Self::Unreadable(source),
            error @ ReadError::TooLong { .. } => Self::Lines(error),
        }
    }
}

impl Why {
    /// Returns whether the store is damaged there.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Denied(error) if error.is_damage())
    }

    /// Returns the number of the system's error, if it is one.
    pub(crate) fn os_error(&self) -> Option<i32> {
        let mut cause: &dyn Error = self;
        if let Self::Denied(error) = self {
            cause = error;
        }
        loop {
            if let Some(error) = cause.downcast_ref::<io::Error>() {
                return error.raw_os_error();
            }
            cause = cause.source()?;
        }
    }

    /// Returns its name, for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::Special => "special",
            Self::Twice => "twice",
            Self::Link => "link",
            Self::MadeUp => "made-up",
            Self::TooMany => "too-many",
            Self::Aside => "aside",
            Self::Unheld => "unheld",
            Self::Store => "store",
            Self::Beside(_) => "beside",
            Self::Unread(_) => "unread",
            Self::NoFormat => "no-format",
            Self::Emptied(_) => "emptied",
            Self::Excluded { .. } => "excluded",
            Self::Denied(_) | Self::Along => "denied",
            Self::Lines(_) => "too-long",
        }
    }

    /// Returns the error of a verb that needed the file.
    pub(crate) fn of(self, path: &Path) -> SyncError {
        let path = path.to_owned();
        match self {
            Self::Unreadable(source) => SyncError::Io { path, source },
            Self::Lines(error) => SyncError::Read(error),
            Self::Denied(error) => *error,
            Self::Unread(agent) => SyncError::UnreadAgent { path, agent },
            Self::Excluded { by, .. } => SyncError::Excluded { path, by },
            _ => SyncError::NoFormat(path),
        }
    }
}

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
