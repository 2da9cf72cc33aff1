//! Sessions: created, hidden, attached to a file, and detached.

use std::{borrow::Cow, path::PathBuf};

use serde::Serialize;

use super::{
    notice::Notice,
    shape::{object, path, report},
};
use crate::{
    model::{OperationNumber, SessionName, Timestamp},
    session::Session,
};

/// A session that was created.
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
    /// Whether the file is attached now.
    pub attached: bool,
    /// The branch that preserves the previous position of `main`, if a command had moved it away from where the agent would
    /// resume.
    pub left: Option<String>,
    /// The operation; none if nothing changed.
    pub operation: Option<OperationNumber>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

/// The result of a verb that changes a session.
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

/// A session whose files were deleted.
#[derive(Clone, Debug)]
pub struct LostFile {
    /// The session.
    pub session: Session,
    /// The path of the agent's file, if it was deleted.
    pub path: Option<PathBuf>,
    /// The paths of its deleted sidecars.
    pub sidecars: Vec<PathBuf>,
    /// When the agent last used the session.
    pub used: Timestamp,
    /// The modification time that the restored files get.
    pub at: Timestamp,
}

report!(LostFile, "lost", |it| {
    session: it.session.name.id,
    agent: it.session.name.format,
    path: it.path.as_ref().map(|path| path.to_string_lossy()),
    sidecars: paths(&it.sidecars),
});

/// The result of a restore.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The files that were written; the one that the agent reads comes last.
    pub files: Vec<PathBuf>,
    /// How that file became the live file; none if it already existed, if its agent does not resume it, or if it cannot be
    /// attached.
    pub attached: Option<Attached>,
    /// The restored agent's file, if it was set aside for a successor that continues from the session's position.
    pub rotated: Option<PathBuf>,
    /// The notices about a file that cannot be attached.
    pub notices: Vec<Notice>,
    /// What happened to the sidecars.
    pub sidecars: Sidecars,
}

/// What happened to the sidecars of a session in a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sidecars {
    /// The sidecars that were written.
    pub written: Vec<PathBuf>,
    /// The sidecars whose path is taken by something else, which is left alone.
    pub others: Vec<PathBuf>,
}

report!(Restored, "restore", |it| {
    path: it.files.last().map(|file| file.to_string_lossy()),
    files: paths(&it.files),
    sidecars: paths(&it.sidecars.written),
    others: paths(&it.sidecars.others),
    rotated: it.rotated.as_ref().map(|path| path.to_string_lossy()),
    left: it.attached.as_ref().and_then(|attached| attached.left.as_ref()),
    operation: it.attached.as_ref().and_then(|attached| attached.operation),
});

fn paths(paths: &[PathBuf]) -> Vec<Cow<'_, str>> {
    paths.iter().map(|path| path.to_string_lossy()).collect()
}

/// A session that lists hide from now on, or show again.
#[derive(Clone, Debug, Serialize)]
pub struct Concealed {
    /// Whether lists hide it.
    pub hidden: bool,
    /// The operation; none if nothing changed.
    pub operation: Option<OperationNumber>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Concealed, "hide");

object!(SessionName, |it| { session: it.id, agent: it.format });

object!(Session, |it| { session: it.name.id, agent: it.name.format });
