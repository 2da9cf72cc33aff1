//! Errors of the verbs, by what the caller can do about them.

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
    /// The session cannot be read, or does not have what was asked for.
    #[error(transparent)]
    Session(SessionError),
    /// The session files and the store could not be reconciled.
    #[error(transparent)]
    Sync(SyncError),
    /// The window of a model is too small to work with.
    #[error("{}", too_small(*.tokens, *.by, *.least))]
    Window {
        /// The window.
        tokens: u64,
        /// Who set it.
        by: Source,
        /// The smallest window that would work.
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
    /// A branch with this name already exists.
    #[error("there is already a branch {0:?}")]
    BranchExists(String),
    /// The branch is the current one, which lists always show.
    #[error("cannot hide {0}: it is the current branch")]
    CurrentBranch(String),
    /// The name is invalid for a branch.
    #[error("invalid branch name {name:?}: {why}")]
    BadName {
        /// The name.
        name: String,
        /// Why.
        why: &'static str,
    },
    /// A file name matches no file, or several.
    #[error("the session has no file {}, or several with that name", .wanted.display())]
    NoFile {
        /// The name asked for.
        wanted: PathBuf,
        /// The files of the session.
        among: Vec<PathBuf>,
    },
    /// The generation was never compressed.
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
    /// The text to redact is so short that it would match everywhere.
    #[error("text to redact must have at least {least} bytes: shorter text would match everywhere")]
    TooShort {
        /// The minimum in bytes.
        least: usize,
    },
    /// The reason for a redaction contains the text to redact, and reasons are stored.
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
    /// A turn cannot be kept because no turn after it could be reverted.
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
    /// No summary could be written.
    #[error("nothing was changed: no summary could be written")]
    Summary {
        /// How it failed.
        #[source]
        error: SummaryError,
        /// Whether statistics are refused as a substitute.
        strict: bool,
    },
    /// A model failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The session could not be made to fit its window.
    #[error(transparent)]
    Unrecovered(#[from] Unrecovered),
    /// A hook in the settings refused the change.
    #[error("nothing was changed: a command in your settings refused the compaction: {why}")]
    Hook {
        /// The hook.
        hook: &'static str,
        /// Its message.
        why: String,
    },
    /// The store is damaged, so a bundle would be incomplete; this is the first damage found.
    #[error("the bundle was not written because the store is damaged: {0}")]
    NoBundle(String),
    /// The bundle cannot be read.
    #[error("cannot read {}: {why}; {} imported from it", .path.display(), sessions(*.imported))]
    Bundle {
        /// The file.
        path: PathBuf,
        /// Why.
        why: BundleError,
        /// How many sessions were imported before the damage.
        imported: u64,
    },
    /// The settings file of an agent cannot be edited.
    #[error("{} was not changed: {why}", .path.display())]
    Unset {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A turn without a prompt has nothing to continue from.
    #[error("there is nothing to continue: the model has already answered")]
    NothingAsked,
    /// Another command moved the session while this one was preparing its change.
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
    /// Returns the error for a branch that a session does not have.
    pub(super) fn no_branch(state: &State, wanted: &str) -> Self {
        let branches = state.branches.keys().cloned().collect();
        Self::NoBranch { wanted: wanted.to_owned(), branches }
    }
}
