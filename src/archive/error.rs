//! What can go wrong between the files and the store.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    archive::holder::Holder,
    disk,
    live::Denied,
    model::{CheckpointNumber, OperationNumber, SessionName},
    session::{Elsewhere, SessionError},
    settings::Exclusion,
    store::StoreError,
    wire::{Failure, jsonl::ReadError},
};

/// How many characters of a session's title an error shows.
const TITLE: usize = 40;

/// What is wanted in vain, because there is nothing for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vain {
    /// No operation is left that can be undone.
    Undo,
    /// No undo is left that can be taken back.
    Redo,
    /// The session has no state to append to.
    Append,
    /// It has none to branch from.
    Branch,
    /// It has none to put a checkpoint on.
    Checkpoint,
    /// It has none to compact.
    Compact,
    /// It has none to truncate.
    Truncate,
    /// It has none to go back to.
    Reach,
    /// It has no file, or no state of one, to catch up with.
    CatchUp,
    /// No file of the session is there to be attached.
    Attach,
    /// The session follows no file of an agent.
    Detach,
    /// No file of the session was deleted.
    Restore {
        /// The file that its agent reads, which is there.
        there: Option<PathBuf>,
    },
}

impl fmt::Display for Vain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Restore { there: Some(path) } => {
                return write!(f, "restore: {} exists", path.display());
            }
            Self::Restore { there: None } => "restore: none of this session's files was deleted",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Append => "append to: the session is empty",
            Self::Branch => "branch from: the session is empty",
            Self::Checkpoint => "put a checkpoint on: the session is empty",
            Self::Compact => "compact",
            Self::Truncate => "truncate",
            Self::Reach => "go back to",
            Self::CatchUp => "import: there are no new records",
            Self::Attach => "attach: the session has no file on this machine",
            Self::Detach => "detach: the session is not attached to an agent's file",
        })
    }
}

/// What an agent would read of a file that was to be written, so that it is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// It has no record for what the file was to say.
    #[error("the agent's format cannot store a compaction")]
    NoRecord,
    /// It would resume nothing.
    #[error("the change would leave the agent unable to resume the session")]
    Nothing,
    /// It would read what was not meant.
    #[error("the agent would read a context that differs from what undertext shows")]
    Otherwise,
    /// It would not read all that was meant.
    #[error("the agent would not read all the messages that should be kept")]
    Less,
    /// It would read a result in a file that is left as it is.
    #[error("one of the results is in an earlier file of the session, which cannot be changed")]
    Earlier,
}

/// Why a store or a file is not made in a place that a person named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// It names nothing, such as `..`.
    #[error("does not end in the name of a file or folder")]
    NoName,
    /// It has no room for a second store.
    #[error("has {free} MB free, and the repaired store needs {needed} MB beside the damaged one")]
    Full {
        /// How many megabytes are needed.
        needed: u64,
        /// How many are free.
        free: u64,
    },
    /// It is in what would be copied, or in another store.
    #[error("is inside a store; name a place outside the store")]
    InStore,
    /// It has a file of a session.
    #[error("is a session file that an agent reads")]
    AgentsFile,
    /// It holds what undertext has not made.
    #[error("has files but no store; undertext creates a store only in a new or empty folder")]
    Taken,
}

/// A change that was not made, or a file that could not follow it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The session cannot be read.
    #[error(transparent)]
    Session(SessionError),
    /// The file system failed.
    #[error("cannot access {path}")]
    Io {
        /// The path of the failed access.
        path: PathBuf,
        /// How it failed.
        #[source]
        source: std::io::Error,
    },
    /// The operation is safe in the store, but the live file could not follow; the next command tries again.
    #[error("operation {operation} is saved, but the session's file {path} could not be updated")]
    Behind {
        /// The operation.
        operation: OperationNumber,
        /// The live file.
        path: PathBuf,
        /// How it failed.
        #[source]
        source: std::io::Error,
    },
    /// The store has lost an operation that a live file was stamped by, so that nothing is written until a person has chosen.
    #[error("the store has lost a change that {path} still contains")]
    Ahead {
        /// The live file.
        path: PathBuf,
    },
    /// Another program holds the lock of the store.
    #[error("another program is changing the store at {path} (waited {} s): {}", .limit.as_secs(), words(.holder.as_ref()))]
    Held {
        /// The store's folder.
        path: PathBuf,
        /// Who that is, where the system tells.
        holder: Option<Holder>,
        /// How long it was waited for.
        limit: Duration,
    },
    /// Another program watches for the archive.
    #[error("another program is already running `watch` for the store at {path}: {}", words(.holder.as_ref()))]
    Watched {
        /// The store's folder.
        path: PathBuf,
        /// Who that is, where the system tells.
        holder: Option<Holder>,
    },
    /// A session's file is not written, wherever a store says that it is.
    #[error("cannot write to {path}: {why}")]
    Denied {
        /// The session's id.
        session: String,
        /// The file.
        path: PathBuf,
        /// Why.
        why: Denied,
    },
    /// A session and its agent's file could not be brought to agree, so that the session is not changed.
    #[error("cannot sync session {session} with its file")]
    Uncaught {
        /// The session's id.
        session: String,
        /// The agent's file.
        path: PathBuf,
        /// Why.
        #[source]
        why: Box<SyncError>,
    },
    /// A store belongs to another user than the one who would change it.
    #[error("{path} belongs to {owner}, and only {owner} may change it")]
    Foreign {
        /// The store's folder, or the one in which it would be made.
        path: PathBuf,
        /// The user.
        owner: String,
    },
    /// A process has the session of an agent's file open, and would not see new lines in the file.
    #[error("{}", in_use(session, .title.as_deref(), .holders))]
    Loaded {
        /// The agent's file.
        path: PathBuf,
        /// The session, as short as it can be typed.
        session: String,
        /// The session's title.
        title: Option<String>,
        /// Who has it open; nobody whom the system shows, if there is none.
        holders: Vec<crate::live::Holder>,
        /// Whether no caller may insist: the agent would write again what is taken out.
        is_final: bool,
    },
    /// A session goes on in another file than the one by which it was named.
    #[error("nothing was changed: session {session} continues in {live}, not in {path}")]
    Another {
        /// The file that was named.
        path: PathBuf,
        /// The session's id.
        session: String,
        /// Its live file.
        live: PathBuf,
    },
    /// The agent goes on in another file of the session, and would not see new lines in this one.
    #[error("the agent no longer reads {path}: the session continues in {by}")]
    Left {
        /// The file.
        path: PathBuf,
        /// The one that the agent reads.
        by: PathBuf,
    },
    /// The change would take a history from the agent that cannot be read here.
    #[error(
        "nothing was changed: {0}, so undertext cannot read that history, and the change would hide it from the agent"
    )]
    Unread(Elsewhere),
    /// The agent would not take the session, because its list of folders lacks one.
    #[error("{index}: {why}")]
    Unlisted {
        /// The list.
        index: PathBuf,
        /// Why the agent would not take the session.
        why: String,
    },
    /// The agent would not resume where it is to be brought.
    #[error("cannot write that state to {path}: {why}")]
    OutOfReach {
        /// The agent's file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A record that cannot be appended.
    #[error("{}{why}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Invalid {
        /// On which line it is, from 1.
        line: Option<usize>,
        /// Why.
        why: String,
    },
    /// There is nothing for what is wanted.
    #[error("there is nothing to {0}")]
    Nothing(Vain),
    /// A file holds no session that is known.
    #[error("{0} is not a session in a known format")]
    NoFormat(PathBuf),
    /// A file is of an agent whose files are not read yet.
    #[error("{path} belongs to {agent}, whose files undertext does not read yet")]
    UnreadAgent {
        /// The file.
        path: PathBuf,
        /// The agent.
        agent: &'static str,
    },
    /// The user's settings leave the session of a file out.
    #[error("{path} was not imported: your settings exclude it ({by})")]
    Excluded {
        /// The file.
        path: PathBuf,
        /// The setting.
        by: Exclusion,
    },
    /// The user's settings leave the session out whose file would be written.
    #[error(
        "session {session} was not changed: your settings exclude it ({by}), so undertext neither reads nor writes {path}"
    )]
    LeftOut {
        /// The session's id.
        session: String,
        /// The agent's file.
        path: PathBuf,
        /// The setting.
        by: Exclusion,
    },
    /// A redaction was cut short, and cannot be carried out now.
    #[error("an interrupted redaction cannot be finished now")]
    Unredacted(#[source] Box<SyncError>),
    /// A file could not be read as lines.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No agent keeps the session, so that no file of an agent can be its live file.
    #[error("this session was created by undertext, so only {0} can be its file")]
    Own(PathBuf),
    /// A file is compressed: its agent unpacks it before it writes to it.
    #[error("{0} is compressed, so undertext cannot keep the session in sync with it")]
    Compressed(PathBuf),
    /// A checkpoint with another note is already there.
    #[error("this place already has checkpoint {0}, and a checkpoint's note cannot be changed")]
    Marked(CheckpointNumber),
    /// The agent would read something else than what the change was to say to it.
    #[error("nothing was changed: {0}")]
    Misread(Misread),
    /// Entries of a session that what was taken out distinguished would get the same id.
    #[error(
        "nothing was redacted: two entries of session {session} would become identical, but each needs its own id"
    )]
    Twins {
        /// The session's id.
        session: String,
    },
    /// A store or a file is not made there.
    #[error("cannot use {path}: it {why}")]
    NoPlace {
        /// The place.
        path: PathBuf,
        /// Why.
        why: NoPlace,
    },
}

/// Returns who holds a lock, in words.
fn words(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "the system does not say which one".to_owned(), ToString::to_string)
}

/// Says who has a session open.
fn in_use(session: &str, title: Option<&str>, holders: &[crate::live::Holder]) -> String {
    let title = title.and_then(|title| title.lines().next()).unwrap_or_default();
    let mut short: String = title.chars().take(TITLE).collect();
    if short.len() < title.len() {
        short.push('…');
    }
    let name = if short.is_empty() { session.to_owned() } else { format!("{session} {short:?}") };
    if holders.is_empty() {
        return format!("{name} is open: an unidentified process holds the session's lock");
    }
    let says = |holder: &crate::live::Holder| {
        let verb = if holder.how.is_guess() { "may have" } else { "has" };
        format!("{} {verb} {name} open ({holder})", holder.name)
    };
    holders.iter().map(says).collect::<Vec<_>>().join("; ")
}

impl SyncError {
    /// Makes a [`SyncError::Io`] of a failure of the file system at a path.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Returns whether something that the store holds of a session is damaged, or contradicts what would come to it: others are
    /// not concerned.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Store(StoreError::Corrupt { .. } | StoreError::Refused(_)))
    }

    /// Returns the error and its causes in one line; what a session could not catch up for says which it is by itself.
    pub(crate) fn in_full(&self) -> String {
        let error = if let Self::Uncaught { why, .. } = self { why } else { self };
        let mut told = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let io = error.downcast_ref::<io::Error>();
            told += ": ";
            told += &io.map_or_else(|| error.to_string(), disk::words);
            cause = error.source();
        }
        told
    }

    /// Returns whether the file of one session cannot be read or written, or not now.
    pub(crate) fn is_of_a_file(&self) -> bool {
        matches!(
            self,
            Self::Io { .. }
                | Self::Behind { .. }
                | Self::Loaded { .. }
                | Self::Left { .. }
                | Self::Unlisted { .. }
                | Self::OutOfReach { .. }
        )
    }

    /// Says why a file may not be written.
    pub(crate) fn denied(session: &SessionName, path: &Path, why: Denied) -> Self {
        let path = path.to_owned();
        match why {
            Denied::Io(source) => Self::Io { path, source },
            why => Self::Denied { session: session.id.clone(), path, why },
        }
    }
}

impl From<StoreError> for SyncError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SessionError> for SyncError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => Self::Store(error),
            error => Self::Session(error),
        }
    }
}

impl From<Failure> for SyncError {
    fn from(failure: Failure) -> Self {
        SessionError::from(failure).into()
    }
}
