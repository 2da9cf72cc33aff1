//! Files and folders that an import skips, each with the reason; and why a session could not be imported.

use std::{
    error::Error,
    io,
    path::{Path, PathBuf},
};

use crate::{
    archive::SyncError, model::SessionName, session::SessionError, settings::Exclusion,
    store::StoreError, wire::jsonl::ReadError,
};

/// Maximum number of files and folders to look at: a folder from outside may contain any number.
pub(crate) const MOST: usize = 1_000_000;

/// A skipped file or folder.
#[derive(Debug)]
pub struct Skipped {
    /// Where it is.
    pub path: PathBuf,
    /// Why.
    pub why: Why,
    /// True if the user named it; false if it was found in a folder.
    pub asked: bool,
}

/// Why a file or folder is skipped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
    /// The system refuses to read it.
    #[error("cannot read it: {0}")]
    Unreadable(#[from] io::Error),
    /// It is a device, a pipe or a socket.
    #[error("it is neither a file nor a folder")]
    Special,
    /// It was already found under another name.
    #[error("it was already read under another name")]
    Twice,
    /// It is a link found in a folder.
    #[error("it is a link, and links are not followed; name the target instead")]
    Link,
    /// It is in a virtual file system, such as `/proc`.
    #[error("it is in a virtual file system (such as /proc)")]
    MadeUp,
    /// Too many files and folders were found; the rest was not looked at.
    #[error("more than {MOST} files and folders were found; name a smaller folder")]
    TooMany,
    /// A command set it aside, and this store has its content.
    #[error("an earlier change renamed and replaced this file, and the store has its content")]
    Aside,
    /// A command on another store set it aside, and this store may lack its content.
    #[error(
        "an earlier change renamed and replaced this file, and this store lacks its content; name the file to import it"
    )]
    Unheld,
    /// It is one of the store's own files.
    #[error("it is one of the store's own files")]
    Store,
    /// An agent keeps it next to a session, and it contains no session.
    #[error("{0} keeps it next to a session; undertext leaves it alone")]
    Beside(&'static str),
    /// It belongs to an agent that undertext does not read yet.
    #[error("it is a file of {0}, which undertext does not read yet")]
    Unread(&'static str),
    /// It is not a session in a known format.
    #[error("it is not a session in a known format")]
    NoFormat,
    /// It used to contain a session that the store has, and no longer does.
    #[error("it no longer contains a session; its old content is kept as session {}", .0.id)]
    Emptied(SessionName),
    /// The user's settings exclude its session.
    #[error("your settings exclude it: {by}")]
    Excluded {
        /// The session.
        session: SessionName,
        /// The setting.
        by: Exclusion,
    },
    /// Its session is damaged, or has a live file that must not be written.
    #[error("its session cannot be changed: {}", .0.in_full())]
    Denied(Box<SyncError>),
    /// Another file of its session is skipped, for a reason that applies to the whole session.
    #[error("another file of the same session cannot be imported")]
    Along,
    /// It cannot be split into lines.
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
    /// Returns true if the reason is damage in the store.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Denied(error) if error.is_damage())
    }

    /// Returns the system's error number, if there is one.
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

    /// Returns the name used in JSON output.
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

    /// Returns the error for a command that needed this file.
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

/// Why a session could not be imported.
pub(crate) enum Failed {
    /// The file with this index cannot be read.
    File(usize, Why),
    /// The command failed.
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
    /// Adds `lines` to the line number of a file that was read from the middle.
    pub(crate) fn behind(self, lines: u64) -> Self {
        match self {
            Self::File(n, Why::Lines(error)) => Self::File(n, Why::Lines(error.behind(lines))),
            other => other,
        }
    }
}
