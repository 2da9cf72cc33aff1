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
    model::{
        GenerationNumber, OperationNumber, State,
        hint::{Hint, Line},
    },
    report::Stopped,
    session::{SessionError, error::listed},
    store::{BundleError, ErrorKind, StoreError, damage},
    wire::Failure,
};

/// A verb's failure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
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
    /// There is already a session with this id.
    #[error("there is already a session {0:?}")]
    SessionExists(String),
    /// The id is invalid for a new session.
    #[error("invalid session id {id:?}: {why}")]
    BadId {
        /// The id.
        id: String,
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
    /// The time of the command is over.
    #[error("the deadline has passed")]
    Deadline(Box<Stopped>),
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
    /// Returns hints for what to do next.
    pub fn hints(&self) -> Vec<Hint> {
        match self {
            Self::Store(error) => error.hints(),
            Self::Session(error) => error.hints(),
            Self::Sync(error) => error.hints(),
            Self::NoBundle(_) => damage(),
            Self::Bundle { why: BundleError::Newer(_), .. } => vec!["update undertext".into()],
            Self::Bundle { why: BundleError::Short | BundleError::Damaged(_), .. } => {
                vec!["copy the file again from where it was written, or use another backup".into()]
            }
            Self::Bundle { .. } => {
                vec![Line::new("import").flag("help").to("see what can be imported")]
            }
            Self::Overtaken => vec!["try again".into()],
            Self::NoBranch { branches, .. } => {
                vec![Line::about("branch").to(format!("{}; list them", there_are(branches)))]
            }
            Self::CurrentBranch(_) => {
                vec![Line::about("branch").to("switch to another branch first; list the branches")]
            }
            Self::BranchExists(name) => {
                vec![Line::about("switch").with(name).to("to switch to it")]
            }
            Self::SessionExists(id) => {
                let append = Line::new("append").option("session", id);
                vec![append.to("use another id, or continue in it")]
            }
            Self::BadId { .. } => {
                vec![Line::new("new").flag("help").to("review-42 is a valid id; see the help")]
            }
            Self::NoOperation(_) | Self::NotUndoable { .. } => {
                vec![Line::about("undo").flag("list").to("list the operations")]
            }
            Self::NotKept { wanted, .. } => {
                vec![
                    Line::about("revert")
                        .with(wanted)
                        .to(format!("to go back to {wanted} itself, leave out --keep")),
                ]
            }
            Self::NoFile { among, .. } => {
                let among: Vec<String> = among
                    .iter()
                    .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
                    .collect();
                let names = there_are(&among);
                vec![Line::about("export").flag("list").to(format!("{names}; list them"))]
            }
            Self::NoContainer { .. } => {
                vec!["leave out --container, and name a file that does not end in .zst".into()]
            }
            Self::NoGeneration { newest, .. } => {
                let words = format!("generations 1 to {newest} exist; list them");
                vec![Line::about("export").flag("list").to(words)]
            }
            Self::Window { .. } | Self::Unrecovered(Unrecovered::Blocked { .. }) => {
                let words =
                    "set another window with --window, or lower window.block in config.toml";
                vec![Hint::settings(words)]
            }
            Self::Unrecovered(Unrecovered::DoesNotFit { largest, .. }) => {
                let largest = largest.first().map(|large| {
                    Line::about("show").with(&large.entry).to("see what is in the largest entry")
                });
                let rest = [
                    Line::about("log")
                        .flag("checkpoints")
                        .to("list the turns that you can go back to"),
                    "or use a model with a larger window".into(),
                ];
                largest.into_iter().chain(rest).collect()
            }
            Self::Summary { strict, .. } => {
                let extract = Line::about("compact")
                    .option("summarizer", "extract")
                    .to("to compact without a model");
                let statistics = "or leave out --strict to accept an extract instead of a summary";
                [extract].into_iter().chain(strict.then(|| statistics.into())).collect()
            }
            Self::Hook { .. } => vec!["the setting is compaction.before in config.toml".into()],
            Self::Unset { .. } => {
                let words = "fix the file, or change it in the agent, then run the command again";
                vec![words.into()]
            }
            Self::TooShort { .. } => {
                vec!["include some of the text around it, exactly as it appears there".into()]
            }
            Self::SecretReason => vec!["give a reason without it: reasons are kept".into()],
            Self::Deadline(_) => vec!["give it more time with --deadline".into()],
            Self::NothingAsked => vec!["give a PROMPT".into()],
            Self::BadName { .. } => {
                vec![
                    Line::new("branch")
                        .flag("help")
                        .to("a name such as second-try is valid; see the help"),
                ]
            }
            Self::Model(error) if error.fault.is_transient() => vec!["try again later".into()],
            Self::Model(_) => vec![Hint::settings("check the provider's settings in config.toml")],
        }
    }

    /// Returns what a caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Session(error) => error.kind(),
            Self::Sync(error) => error.kind(),
            Self::Bundle { why: BundleError::Newer(_), .. } => ErrorKind::Newer,
            Self::NoBranch { .. }
            | Self::NoOperation(_)
            | Self::NoFile { .. }
            | Self::NoContainer { .. }
            | Self::NoGeneration { .. } => ErrorKind::Absent,
            Self::BranchExists(_)
            | Self::SessionExists(_)
            | Self::BadId { .. }
            | Self::CurrentBranch(_)
            | Self::BadName { .. }
            | Self::TooShort { .. }
            | Self::SecretReason
            | Self::NotUndoable { .. }
            | Self::NotKept { .. }
            | Self::NothingAsked
            | Self::Bundle { why: BundleError::Foreign, .. }
            | Self::Window { .. }
            | Self::Unrecovered(Unrecovered::Blocked { .. }) => ErrorKind::User,
            _ => ErrorKind::Failed,
        }
    }

    /// Returns the error for a branch that a session does not have.
    pub(super) fn no_branch(state: &State, wanted: &str) -> Self {
        let branches = state.branches.keys().cloned().collect();
        Self::NoBranch { wanted: wanted.to_owned(), branches }
    }
}

/// Returns "available: " and the names.
fn there_are(names: &[String]) -> String {
    format!("available: {}", listed(names))
}
