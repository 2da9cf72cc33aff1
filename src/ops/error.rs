//! What can go wrong in a verb, by what the caller can do about it.

use std::path::{Path, PathBuf};

use crate::{
    context::{model::ModelError, recover::Unrecovered, stages::SummaryError},
    live::Denied,
    model::{SessionName, Timestamp},
    ops::Elsewhere,
    store::{Listed, StoreError},
    wire::Failure,
};

/// A verb's failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The file system failed.
    #[error("cannot access {path}")]
    Io {
        /// What was accessed.
        path: PathBuf,
        /// How it failed.
        #[source]
        source: std::io::Error,
    },
    /// A model's window is too small to work with.
    #[error("a window of {tokens} tokens is too small; {least} are the least")]
    Window {
        /// The window.
        tokens: u64,
        /// What would do.
        least: u64,
    },
    /// What was asked for could not be written where it should go.
    #[error("cannot write")]
    Write {
        /// How it failed.
        #[source]
        source: std::io::Error,
    },
    /// The operation is safe in the store, but the live file could not follow; the next command tries again.
    #[error("operation {operation} is kept, but the live file {path} could not follow")]
    Behind {
        /// The operation.
        operation: u64,
        /// The live file.
        path: PathBuf,
        /// How it failed.
        #[source]
        source: std::io::Error,
    },
    /// A session's file is not written, wherever a store says that it lies.
    #[error("{path} is not written: {why}")]
    Denied {
        /// The session's id.
        session: String,
        /// The file.
        path: PathBuf,
        /// Why.
        why: Denied,
    },
    /// A store belongs to another user than the one who would change it.
    #[error("{path} belongs to {owner}, and only {owner} changes it")]
    Foreign {
        /// The store's folder, or the one in which it would be made.
        path: PathBuf,
        /// The user.
        owner: String,
    },
    /// A process has the session of an agent's file loaded, and would not see what is written.
    #[error("{path} is in use: {}", .holders.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Loaded {
        /// The agent's file.
        path: PathBuf,
        /// Who has it loaded.
        holders: Vec<crate::live::Holder>,
    },
    /// The agent goes on in another file of the session, and would not see what is written.
    #[error("{path} is no longer read: the agent goes on in {by}")]
    Left {
        /// The file.
        path: PathBuf,
        /// The one that the agent reads.
        by: PathBuf,
    },
    /// The change would take a history from the agent that cannot be read here.
    #[error("{0}; it is not shown here, and this would take it from the agent: nothing is changed")]
    Unread(Elsewhere),
    /// The agent would not take the session, because its list of folders lacks one.
    #[error("{index}: {why}")]
    Unlisted {
        /// The list.
        index: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The agent would not resume where it is to be brought.
    #[error("{path} cannot be brought there: {why}")]
    OutOfReach {
        /// The agent's file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// There is no such session.
    #[error("no session matches {0:?}")]
    NoSession(String),
    /// There is no session that works in this folder.
    #[error("no session works in {0}")]
    NoSessionHere(PathBuf),
    /// Several sessions match.
    #[error("{wanted:?} matches {} sessions", .matches.len())]
    AmbiguousSession {
        /// What was asked for.
        wanted: String,
        /// They.
        matches: Vec<Listed>,
    },
    /// There is no such entry.
    #[error("no entry matches {0:?}")]
    NoEntry(String),
    /// Several entries match.
    #[error("{wanted:?} matches {} entries", .matches.len())]
    AmbiguousEntry {
        /// What was asked for.
        wanted: String,
        /// Their ids.
        matches: Vec<String>,
    },
    /// There is no such checkpoint.
    #[error("no checkpoint matches {wanted:?}")]
    NoCheckpoint {
        /// What was asked for.
        wanted: String,
        /// The nearest ones, with what stands there.
        nearest: Vec<(u64, String)>,
    },
    /// There is no such branch.
    #[error("no branch is called {wanted:?}")]
    NoBranch {
        /// What was asked for.
        wanted: String,
        /// Those that there are.
        branches: Vec<String>,
    },
    /// A branch has that name already.
    #[error("a branch is called {0:?} already")]
    BranchExists(String),
    /// A name that no branch may have.
    #[error("a branch cannot be called {name:?}: {why}")]
    BadName {
        /// The name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// A record that cannot be appended.
    #[error("{}{why}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Invalid {
        /// On which line it stands, from 1.
        line: Option<usize>,
        /// Why.
        why: String,
    },
    /// A file's name selects none, or several.
    #[error("{} is the name of no file of the session, or of several", .wanted.display())]
    NoFile {
        /// What was asked for.
        wanted: PathBuf,
        /// Those that it has.
        among: Vec<PathBuf>,
    },
    /// A state of a file was never compressed.
    #[error("generation {generation} was not compressed")]
    NoContainer {
        /// Its number.
        generation: u64,
    },
    /// There is no such generation.
    #[error("there is no generation {wanted}")]
    NoGeneration {
        /// What was asked for.
        wanted: u64,
        /// The newest one.
        newest: u64,
    },
    /// Nothing is left to undo or redo.
    #[error("there is nothing to {0}")]
    Nothing(&'static str),
    /// The operation cannot be undone.
    #[error("operation {n} cannot be undone: {why}")]
    NotUndoable {
        /// The operation.
        n: u64,
        /// Why.
        why: &'static str,
    },
    /// There is no such operation.
    #[error("there is no operation {0}")]
    NoOperation(u64),
    /// The session's records are of a format that is not known here.
    #[error("the format {0:?} is not known")]
    UnknownFormat(String),
    /// A file holds no session that is known.
    #[error("{0} holds no session of a known format")]
    NoFormat(PathBuf),
    /// There is no summary.
    #[error("there is no summary, and nothing is changed")]
    Summary(#[from] SummaryError),
    /// A model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The session could not be brought under its window.
    #[error(transparent)]
    Unrecovered(#[from] Unrecovered),
    /// A command of the settings stopped what was begun.
    #[error("{hook} stopped it, and nothing is changed: {why}")]
    Hook {
        /// Which.
        hook: &'static str,
        /// What it said.
        why: String,
    },
    /// The session went elsewhere while something was prepared for it.
    #[error("the session was taken elsewhere meanwhile, and nothing is changed")]
    Overtaken,
    /// The session cannot be changed in this way.
    #[error("{0}")]
    Unsupported(String),
    /// A file could not be read as lines.
    #[error(transparent)]
    Read(#[from] crate::wire::jsonl::ReadError),
    /// The live file was changed by another program in a way that is no append, and cannot be put right.
    #[error("the live file {path} was changed at {at} by another program, and cannot be set aside")]
    Changed {
        /// The live file.
        path: PathBuf,
        /// When.
        at: Timestamp,
    },
}

impl OpsError {
    /// Says why a file may not be written.
    pub(super) fn denied(session: &SessionName, path: &Path, why: Denied) -> Self {
        let path = path.to_owned();
        match why {
            Denied::Io(source) => Self::Io { path, source },
            why => Self::Denied { session: session.id.clone(), path, why },
        }
    }
}

impl From<StoreError> for OpsError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Failure> for OpsError {
    /// Takes a failure beneath a graph apart again.
    fn from(failure: Failure) -> Self {
        match failure.downcast::<StoreError>() {
            Ok(error) => Self::Store(*error),
            Err(failure) => Self::Store(StoreError::Database(failure)),
        }
    }
}
