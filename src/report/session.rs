//! Sessions: created, hidden, attached to a file, and detached.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    done::Done,
    notice::Notice,
    shape::{id, path, paths, report, some_path},
};
use crate::{
    model::{OperationNumber, Timestamp},
    session::Session,
};

/// A session that was created.
#[derive(Clone, Debug, Serialize)]
pub struct Created {
    /// The session.
    #[serde(serialize_with = "id")]
    pub session: Session,
    /// The path of the live file, if the session has one.
    #[serde(serialize_with = "some_path")]
    pub live: Option<PathBuf>,
    /// The number of the session's first operation.
    pub operation: OperationNumber,
}

/// The result of attaching or detaching.
#[derive(Clone, Debug, Serialize)]
pub struct Attached {
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// Whether the file is attached now.
    pub attached: bool,
    /// The branch that preserves the previous position of `main`, if a command had moved it away from where the agent would
    /// resume.
    pub left: Option<String>,
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
}

/// The result of a verb that changes a session.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The session.
    pub session: Session,
    /// The number of its operation.
    pub operation: OperationNumber,
    /// What it did.
    pub done: Done,
}

report!(Created, "session");
report!(Attached, "attach");

/// A session whose files were deleted.
#[derive(Clone, Debug, Serialize)]
pub struct LostFile {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// The path of the agent's file, if it was deleted.
    #[serde(serialize_with = "some_path")]
    pub path: Option<PathBuf>,
    /// The paths of its deleted sidecars.
    #[serde(serialize_with = "paths")]
    pub sidecars: Vec<PathBuf>,
    /// When the agent last used the session.
    #[serde(skip)]
    pub used: Timestamp,
    /// The modification time that the restored files get.
    #[serde(skip)]
    pub at: Timestamp,
}

report!(LostFile, "lost");

/// The result of a restore.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Restored {
    /// The path of the agent's file; `null` if it already existed.
    #[serde(serialize_with = "some_path")]
    pub path: Option<PathBuf>,
    /// The files that were written; the one that the agent reads comes last.
    #[serde(serialize_with = "paths")]
    pub files: Vec<PathBuf>,
    /// What happened to the sidecars.
    #[serde(flatten)]
    pub sidecars: Sidecars,
    /// The new path of the restored file, if undertext renamed it and wrote one that continues from the current position.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The branch that keeps the previous position of `main`.
    pub left: Option<String>,
    /// The operation that attached the file; `null` if it was not attached.
    pub operation: Option<OperationNumber>,
    /// The notices about the file.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

/// What happened to the sidecars of a session in a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sidecars {
    /// The sidecars that were written.
    #[serde(rename = "sidecars", serialize_with = "paths")]
    pub written: Vec<PathBuf>,
    /// Existing files with different contents, which were left unchanged.
    #[serde(serialize_with = "paths")]
    pub others: Vec<PathBuf>,
}

report!(Restored, "restore");

/// A session that lists hide from now on, or show again.
#[derive(Clone, Debug, Serialize)]
pub struct Concealed {
    /// Whether lists hide it.
    pub hidden: bool,
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
}

report!(Concealed, "hide");
