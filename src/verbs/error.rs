//! Errors of a verb, by what the caller can do about them.

use std::path::PathBuf;

use crate::{
    archive::SyncError,
    context::{
        model::ModelError,
        recover::Unrecovered,
        stages::SummaryError,
        window::{Source, too_small},
    },
    model::{GenerationNumber, OperationNumber, State},
    session::SessionError,
    store::{BundleError, StoreError},
    wire::Failure,
};

/// A verb's failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
    /// The session cannot be read, or does not have the thing asked for.
    #[error(transparent)]
    Session(SessionError),
    /// The files and the store could not be brought to agree.
    #[error(transparent)]
    Sync(SyncError),
    /// A model's window is too small to work with.
    #[error("{}", too_small(*.tokens, *.by, *.least))]
    Window {
        /// The window.
        tokens: u64,
        /// By whose word.
        by: Source,
        /// The least that would do.
        least: u64,
    },
    /// There is no such branch.
    #[error("there is no branch {wanted:?}")]
    NoBranch {
        /// The name asked for.
        wanted: String,
        /// The branches of the session.
        branches: Vec<String>,
    },
    /// A branch has that name already.
    #[error("there is already a branch {0:?}")]
    BranchExists(String),
    /// The branch is the current one, which lists always show.
    #[error("cannot hide {0}: it is the current branch")]
    CurrentBranch(String),
    /// A name that no branch may have.
    #[error("invalid branch name {name:?}: {why}")]
    BadName {
        /// The name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// A file's name selects no file, or several.
    #[error("the session has no file {}, or several with that name", .wanted.display())]
    NoFile {
        /// The name asked for.
        wanted: PathBuf,
        /// The files of the session.
        among: Vec<PathBuf>,
    },
    /// A state of a file was never compressed.
    #[error("cannot use --container: generation {generation} was not compressed")]
    NoContainer {
        /// Its number.
        generation: GenerationNumber,
    },
    /// There is no such generation.
    #[error("there is no generation {wanted}")]
    NoGeneration {
        /// The number asked for.
        wanted: GenerationNumber,
        /// The newest one.
        newest: GenerationNumber,
    },
    /// What is to be taken out is too short to be told from anything else.
    #[error("text to redact must have at least {least} bytes: shorter text would match everywhere")]
    TooShort {
        /// How many bytes it must have.
        least: usize,
    },
    /// The reason of a redaction has the text that is redacted, and reasons are kept.
    #[error("the reason contains the text to redact; nothing was changed")]
    SecretReason,
    /// The operation cannot be undone.
    #[error("operation {n} cannot be undone: {why}")]
    NotUndoable {
        /// The operation.
        n: OperationNumber,
        /// Why.
        why: &'static str,
    },
    /// A turn cannot be kept, because there is nothing after it to take back.
    #[error("cannot use --keep with {wanted}: {why}")]
    NotKept {
        /// The turn that was asked for.
        wanted: String,
        /// Why.
        why: &'static str,
    },
    /// There is no such operation.
    #[error("there is no operation {0}")]
    NoOperation(OperationNumber),
    /// There is no summary.
    #[error("nothing was changed: no summary could be written")]
    Summary {
        /// How it failed.
        #[source]
        error: SummaryError,
        /// Whether statistics may not stand for one.
        strict: bool,
    },
    /// A model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The session could not be brought under its window.
    #[error(transparent)]
    Unrecovered(#[from] Unrecovered),
    /// A command of the settings stopped the change.
    #[error("nothing was changed: a command in your settings refused the compaction: {why}")]
    Hook {
        /// The hook.
        hook: &'static str,
        /// Its words.
        why: String,
    },
    /// A bundle would lack what is damaged in the store; this is the first of it.
    #[error("the bundle was not written because the store is damaged: {0}")]
    NoBundle(String),
    /// A bundle cannot be read.
    #[error("cannot read {}: {why}; {} imported from it", .path.display(), sessions(*.imported))]
    Bundle {
        /// The file.
        path: PathBuf,
        /// Why.
        why: BundleError,
        /// How many sessions before the place were imported.
        imported: u64,
    },
    /// The settings of an agent are not ones that can be changed.
    #[error("{} was not changed: {why}", .path.display())]
    Unset {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A turn without a prompt has nothing to go on from.
    #[error("there is nothing to continue: the model has already answered")]
    NothingAsked,
    /// The session went elsewhere while something was prepared for it.
    #[error("nothing was changed: another command changed the session's position in the meantime")]
    Overtaken,
}

fn sessions(imported: u64) -> String {
    match imported {
        0 => "nothing was".to_owned(),
        1 => "1 session was".to_owned(),
        n => format!("{n} sessions were"),
    }
}

impl From<StoreError> for OpsError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<SessionError> for OpsError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Store(error) => Self::Store(error),
            error => Self::Session(error),
        }
    }
}

impl From<SyncError> for OpsError {
    fn from(error: SyncError) -> Self {
        match error {
            SyncError::Store(error) => Self::Store(error),
            SyncError::Session(error) => Self::Session(error),
            error => Self::Sync(error),
        }
    }
}

impl From<Failure> for OpsError {
    fn from(failure: Failure) -> Self {
        SessionError::from(failure).into()
    }
}

impl OpsError {
    /// Returns the error of a branch that a session does not have.
    pub(super) fn no_branch(state: &State, wanted: &str) -> Self {
        let branches = state.branches.keys().cloned().collect();
        Self::NoBranch { wanted: wanted.to_owned(), branches }
    }
}
