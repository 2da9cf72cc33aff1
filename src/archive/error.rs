//! Errors between files and the store: [`SyncError`] and the reasons it carries.

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
    model::{
        CheckpointNumber, OperationNumber, SessionName,
        hint::{Hint, Line},
    },
    session::{Elsewhere, Gap, SessionError},
    settings::Exclusion,
    store::{ErrorKind, StoreError, elsewhere, full},
    wire::{Failure, jsonl::ReadError},
};

/// Maximum number of characters of a session's title in an error.
const TITLE: usize = 40;

/// What a command wanted but found nothing to work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vain {
    /// No operation can be undone.
    Undo,
    /// No undo can be redone.
    Redo,
    /// The session has no state to append to.
    Append,
    /// The session has no state to branch from.
    Branch,
    /// The session has no state to put a checkpoint on.
    Checkpoint,
    /// The session has no state to compact.
    Compact,
    /// The session has no state to truncate.
    Truncate,
    /// The session has no state to go back to.
    Reach,
    /// The session has no file, or no state of one, to catch up with.
    CatchUp,
    /// The session has no file on this machine to attach.
    Attach,
    /// The session follows no agent's file.
    Detach,
    /// None of the session's files was deleted.
    Restore {
        /// The file that the agent reads, which exists.
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

/// Why a file was not written: the agent would misread it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// The format has no record for what the change should say.
    #[error("the agent's format cannot store a compaction")]
    NoRecord,
    /// The agent could not resume the session.
    #[error("the change would leave the agent unable to resume the session")]
    Nothing,
    /// The agent would read something other than intended.
    #[error("the agent would read a context that differs from what undertext shows")]
    Otherwise,
    /// The agent would read only part of what was intended.
    #[error("the agent would not read all the messages that should be kept")]
    Less,
    /// The agent would read a result in an earlier file, which cannot be changed.
    #[error("one of the results is in an earlier file of the session, which cannot be changed")]
    Earlier,
}

/// Why a store or a file cannot be created at a path that the user named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlace {
    /// The path does not end in a name, for example `..`.
    #[error("does not end in the name of a file or folder")]
    NoName,
    /// The disk has no room for a second store.
    #[error("has {free} MB free, and the repaired store needs {needed} MB beside the damaged one")]
    Full {
        /// Megabytes needed.
        needed: u64,
        /// Megabytes free.
        free: u64,
    },
    /// The path is inside a store: the one to be copied, or another.
    #[error("is inside a store; name a place outside the store")]
    InStore,
    /// The path is an agent's session file.
    #[error("is a session file that an agent reads")]
    AgentsFile,
    /// The folder contains files that undertext did not create.
    #[error("has files but no store; undertext creates a store only in a new or empty folder")]
    Taken,
}

/// Why a change was not made, or why a file could not follow it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// The operation is saved, but its live file could not be updated. The next command retries.
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
    /// The store lost an operation that stamped a live file. Nothing is written until the user decides.
    #[error("the store has lost a change that {path} still contains")]
    Ahead {
        /// The live file.
        path: PathBuf,
    },
    /// Another program holds the store's lock.
    #[error("another program is changing the store at {path} (waited {} s): {}", .limit.as_secs(), words(.holder.as_ref()))]
    Held {
        /// The store's folder.
        path: PathBuf,
        /// The process, if the system reports it.
        holder: Option<Holder>,
        /// How long this program waited.
        limit: Duration,
    },
    /// Another program is watching this archive.
    #[error("another program is already running `watch` for the store at {path}: {}", words(.holder.as_ref()))]
    Watched {
        /// The store's folder.
        path: PathBuf,
        /// The process, if the system reports it.
        holder: Option<Holder>,
    },
    /// The session's file must not be written, whatever the store says about its place.
    #[error("cannot write to {path}: {why}")]
    Denied {
        /// The session's id.
        session: String,
        /// The file.
        path: PathBuf,
        /// Why.
        why: Denied,
    },
    /// A session and its agent's file could not be reconciled, so the session was not changed.
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
    /// The store belongs to another user.
    #[error("{path} belongs to {owner}, and only {owner} may change it")]
    Foreign {
        /// The store's folder, or the folder where it would be created.
        path: PathBuf,
        /// The owner.
        owner: String,
    },
    /// A process has the session open and would not see new lines in its file.
    #[error("{}", in_use(session, .title.as_deref(), .holders))]
    Loaded {
        /// The agent's file.
        path: PathBuf,
        /// The session, as the shortest prefix the user can type.
        session: String,
        /// The session's title.
        title: Option<String>,
        /// Who has it open; empty if the system does not show who.
        holders: Vec<crate::live::Holder>,
        /// True if `--force` does not help: the agent would write the redacted text again.
        is_final: bool,
    },
    /// The session continues in another file than the one the user named.
    #[error("nothing was changed: session {session} continues in {live}, not in {path}")]
    Another {
        /// The named file.
        path: PathBuf,
        /// The session's id.
        session: String,
        /// Its live file.
        live: PathBuf,
    },
    /// The agent continues the session in another file and would not see new lines in this one.
    #[error("the agent no longer reads {path}: the session continues in {by}")]
    Left {
        /// The file.
        path: PathBuf,
        /// The file that the agent reads.
        by: PathBuf,
    },
    /// The change would hide history from the agent that undertext cannot read.
    #[error(
        "nothing was changed: {0}, so undertext cannot read that history, and the change would hide it from the agent"
    )]
    Unread(Elsewhere),
    /// The agent would not accept the session, because its list of folders lacks one.
    #[error("{index}: {why}")]
    Unlisted {
        /// The list.
        index: PathBuf,
        /// Why the agent would not accept the session.
        why: String,
    },
    /// The agent would not resume at the requested position.
    #[error("cannot write that state to {path}: {why}")]
    OutOfReach {
        /// The agent's file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A record cannot be appended.
    #[error("{}{why}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Invalid {
        /// Its line number, from 1.
        line: Option<usize>,
        /// Why.
        why: String,
    },
    /// There is nothing to work on.
    #[error("there is nothing to {0}")]
    Nothing(Vain),
    /// The file is not a session in a known format.
    #[error("{0} is not a session in a known format")]
    NoFormat(PathBuf),
    /// The file belongs to an agent that undertext does not read yet.
    #[error("{path} belongs to {agent}, whose files undertext does not read yet")]
    UnreadAgent {
        /// The file.
        path: PathBuf,
        /// The agent.
        agent: &'static str,
    },
    /// The user's settings exclude the file's session.
    #[error("{path} was not imported: your settings exclude it ({by})")]
    Excluded {
        /// The file.
        path: PathBuf,
        /// The setting.
        by: Exclusion,
    },
    /// The user's settings exclude the session whose file would be written.
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
    /// An interrupted redaction cannot be finished now.
    #[error("an interrupted redaction cannot be finished now")]
    Unredacted(#[source] Box<SyncError>),
    /// The file could not be split into lines.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Undertext created this session, so an agent's file cannot be its live file.
    #[error("this session was created by undertext, so only {0} can be its file")]
    Own(PathBuf),
    /// The file is compressed. Its agent unpacks it before writing to it.
    #[error("{0} is compressed, so undertext cannot keep the session in sync with it")]
    Compressed(PathBuf),
    /// This place already has a checkpoint with another note.
    #[error("this place already has checkpoint {0}, and a checkpoint's note cannot be changed")]
    Marked(CheckpointNumber),
    /// The agent would misread the changed file.
    #[error("nothing was changed: {0}")]
    Misread(Misread),
    /// A store or a file cannot be created at this path.
    #[error("cannot use {path}: it {why}")]
    NoPlace {
        /// The place.
        path: PathBuf,
        /// Why.
        why: NoPlace,
    },
}

fn words(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "the system does not say which one".to_owned(), ToString::to_string)
}

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
    /// Returns a function that wraps an I/O error at this path in [`SyncError::Io`].
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// Returns true if one session's data in the store is damaged or contradicts what would be added to it. Other sessions are
    /// not affected.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Store(StoreError::Corrupt { .. } | StoreError::Refused(_)))
    }

    /// Returns the error and its causes in one line. For [`SyncError::Uncaught`] the cause alone is enough.
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

    /// Returns true if the error concerns one session's file, which cannot be read or written, or not now.
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

    /// Returns the next steps.
    pub fn hints(&self) -> Vec<Hint> {
        match self {
        Self::Store(error) => error.hints(),
        Self::Session(error) => error.hints(),
        Self::Held { .. } => vec!["try again, or wait longer with --wait SECONDS".into()],
        Self::Loaded { holders, is_final, .. } => loaded(holders, *is_final),
        Self::Uncaught { session, why, .. } => {
            let first = match why.as_ref() {
                Self::Loaded { holders, .. } => {
                    let why = "end the agent; the next command then finishes the write";
                    let ways = holders.iter().map(|holder| holder.way_to_end().into());
                    ways.chain([why.into()]).collect()
                }
                Self::OutOfReach { .. } | Self::Behind { .. } => Vec::new(),
                why => why.hints(),
            };
            let_go(session, first)
        }
        Self::Another { path, session, .. } => vec![
            Line::new("status")
                .option("session", session)
                .to("name the session by its id or by the file in which it continues, as in"),
            Line::new("attach").with(path).to("or make the session continue in the file that you named"),
        ],
        Self::Left { by, .. } => {
            vec![
                Line::new("import").with(by).to("import the newer file to continue in it"),
            ]
        }
        Self::Unread(Elsewhere { gap: Gap::Parent(_), .. }) => {
            vec!["you can still append messages, and revert turns of the fork itself".into()]
        }
        Self::Unread(_) => {
            vec![Line::new("import").flag("help").to("if you have an intact copy of that file, import it")]
        }
        Self::Unlisted { .. } => {
            vec!["run this command again in the session's folder".into()]
        }
        Self::OutOfReach { .. } => vec![
            Line::about("export")
                .flag("list")
                .to("list the states that can be exported to a file"),
        ],
        Self::NoFormat(_) | Self::UnreadAgent { .. } => {
            vec![Line::new("import").flag("help").to("see which agents' sessions undertext reads")]
        }
        Self::Excluded { .. } | Self::LeftOut { by: Exclusion::Unread(_), .. } => {
            vec![Hint::settings("")]
        }
        Self::LeftOut { session, .. } => vec![
            Line::new("attach")
                .option("session", session)
                .flag("off")
                .to("to change the session only in the store, tell undertext to leave the file alone"),
            Hint::settings(""),
        ],
        Self::Unredacted(error) => error.hints(),
        Self::Nothing(Vain::Undo | Vain::Redo) => {
            vec![Line::about("undo").flag("list").to("list the operations")]
        }
        Self::Compressed(_) => vec![
            "decompress the file with the agent or `zstd -d`, then import it; undertext will keep the session in sync with it again".into(),
        ],
        Self::Nothing(Vain::Attach) => {
            vec![Line::about("restore").to("restore the session's deleted files")]
        }
        Self::Ahead { .. } => {
            vec![Line::new("doctor").flag("fix").to("import what the session's file still contains")]
        }
        Self::Behind { .. } => {
            vec!["nothing is lost; the next command that changes the session tries again".into()]
        }
        Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => vec![full()],
        Self::Denied { session, path, why } => denied(session, path, why),
        Self::NoPlace { why: NoPlace::Taken, .. } => vec![elsewhere()],
        Self::NoPlace { why: NoPlace::AgentsFile, .. } => vec![
            "name another file; to change an agent's own file, use revert, switch or restore, which keep the old content".into(),
        ],
        Self::Foreign { owner, .. } => vec![
            format!("run this as {owner}, without sudo").into(),
            "commands that only read still work".into(),
        ],
        _ => Vec::new(),
        }
    }

    /// Returns what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Session(error) => error.kind(),
            Self::NoFormat(_)
            | Self::Another { .. }
            | Self::UnreadAgent { .. }
            | Self::Excluded { .. }
            | Self::LeftOut { .. }
            | Self::Invalid { .. }
            | Self::Nothing(_)
            | Self::Own(_)
            | Self::Compressed(_)
            | Self::Marked(_)
            | Self::Misread(_)
            | Self::NoPlace { .. }
            | Self::Read(_) => ErrorKind::User,
            _ => ErrorKind::Failed,
        }
    }

    /// Returns the error for a file that must not be written.
    pub(crate) fn denied(session: &SessionName, path: &Path, why: Denied) -> Self {
        let path = path.to_owned();
        match why {
            Denied::Io(source) => Self::Io { path, source },
            why => Self::Denied { session: session.id.clone(), path, why },
        }
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

/// Returns hints for a session that other processes have open.
fn loaded(holders: &[crate::live::Holder], is_final: bool) -> Vec<Hint> {
    let why = if is_final {
        "close the session there and run this again; while it is open, the agent would write the redacted text back"
    } else {
        "close the session there and run this again; while it is open, the agent continues from memory and would not see the change"
    };
    let hidden = holders.iter().filter(|holder| holder.terminal.is_none());
    let ways = hidden.map(|holder| holder.way_to_end().into());
    let is_guess = !is_final && !holders.is_empty() && holders.iter().all(|one| one.how.is_guess());
    let force = is_guess.then(|| "if the agent has another session open there, add --force".into());
    [why.into()].into_iter().chain(ways).chain(force).collect()
}

/// Returns hints for a file that must not be written.
fn denied(session: &str, path: &Path, why: &Denied) -> Vec<Hint> {
    match why {
        Denied::Outside => vec![
            Line::new("attach").with(path).to("if this is the session's own file, attach it"),
            Line::new("attach")
                .option("session", session)
                .flag("off")
                .to("or tell undertext to leave the file alone"),
        ],
        Denied::Gone => vec![
            "if the agent keeps sessions there, create the folder and try again".into(),
            Line::new("export")
                .option("session", session)
                .option("out", path.file_name().unwrap_or_default())
                .to("or write the session to a file in the current folder"),
        ],
        Denied::InPlace(_) => vec![
            "move it away; the next command that changes the session writes the file again".into(),
        ],
        Denied::Io(error) if error.kind() == io::ErrorKind::StorageFull => {
            let_go(session, vec![full()])
        }
        _ => let_go(session, Vec::new()),
    }
}

/// Appends to `first` the hint to detach the file.
fn let_go(session: &str, first: Vec<Hint>) -> Vec<Hint> {
    let or = if first.is_empty() { "" } else { "or " };
    let off = Line::new("attach").option("session", session).flag("off");
    let off = off.to(format!("{or}tell undertext to leave the file alone"));
    first.into_iter().chain([off]).collect()
}
