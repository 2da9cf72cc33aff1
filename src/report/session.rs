//! Sessions: made, hidden, attached to a file, and let go.

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

/// A session of which files no longer exist.
#[derive(Clone, Debug)]
pub struct LostFile {
    /// The session.
    pub session: Session,
    /// Where the agent's file was, if it no longer exists.
    pub path: Option<PathBuf>,
    /// Where those files were that the agent kept next to it and that no longer exist.
    pub sidecars: Vec<PathBuf>,
    /// When the agent used the session last.
    pub used: Timestamp,
    /// The modification time that the files get when they are restored.
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
    /// The files that were written, the one that the agent reads last.
    pub files: Vec<PathBuf>,
    /// How that one became the live file; none if it was there, if its agent does not resume it, or if it cannot be.
    pub attached: Option<Attached>,
    /// The agent's file as it was put back, if another one that goes on from where the session is took its place.
    pub rotated: Option<PathBuf>,
    /// The notices of a file that cannot be.
    pub notices: Vec<Notice>,
    /// What became of the files that the agent kept next to it.
    pub sidecars: Sidecars,
}

/// What became of the files that an agent kept next to a session's own, where they were to be restored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sidecars {
    /// Those that were written.
    pub written: Vec<PathBuf>,
    /// Those in whose place something else is, which is left alone.
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

/// A session that lists leave out from now on, or show again.
#[derive(Clone, Debug, Serialize)]
pub struct Concealed {
    /// Whether they leave it out.
    pub hidden: bool,
    /// The operation; none if it was so already.
    pub operation: Option<OperationNumber>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Concealed, "hide");

object!(SessionName, |it| { session: it.id, agent: it.format });

object!(Session, |it| { session: it.name.id, agent: it.name.format });
