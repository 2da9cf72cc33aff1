//! Sessions: made, hidden, attached to a file, and let go.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    notice::Notice,
    shape::{object, path, report},
};
use crate::{
    model::{OperationNumber, SessionName},
    session::Session,
};

/// A session that was made.
#[derive(Clone, Debug)]
pub struct Created {
    /// The session.
    pub session: Session,
    /// The operation.
    pub operation: OperationNumber,
    /// Its live file, if it has one.
    pub live: Option<PathBuf>,
}

/// The result of attaching or detaching.
#[derive(Clone, Debug, Serialize)]
pub struct Attached {
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
    /// Whether it is attached now.
    pub attached: bool,
    /// The branch that holds where `main` stood, if a command had put it elsewhere than where the agent would resume.
    pub left: Option<String>,
    /// The operation; none if the file was so already.
    pub operation: Option<OperationNumber>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

/// The result of a changing verb.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The session.
    pub session: Session,
    /// The operation's number.
    pub operation: OperationNumber,
    /// The notices of the change.
    pub notices: Vec<Notice>,
}

report!(Created, "session", |it| {
    session: it.session.name.id,
    live: it.live.as_ref().map(|path| path.to_string_lossy()),
    operation: it.operation,
});

report!(Attached, "attach");

/// A session whose agent's file is gone.
#[derive(Clone, Debug, Serialize)]
pub struct LostFile {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Where the file was.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
}

report!(LostFile, "lost");

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The files that were written, the one that the agent reads last.
    pub files: Vec<PathBuf>,
    /// How that one became the live file.
    pub attached: Attached,
}

report!(Restored, "restore", |it| {
    path: it.attached.path.to_string_lossy(),
    files: it.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>(),
    left: it.attached.left,
    operation: it.attached.operation,
});

/// A session that lists leave out from now on, or show again.
#[derive(Clone, Debug, Serialize)]
pub struct Concealed {
    /// Whether they leave it out.
    pub hidden: bool,
    /// The operation.
    pub operation: OperationNumber,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Concealed, "hide");

object!(SessionName, |it| { session: it.id, agent: it.format });

object!(Session, |it| { session: it.name.id, agent: it.name.format });
