//! Where a change of place took a session, and what a person needs to know to go on from there.

use std::path::PathBuf;

use serde::Serialize;

use super::shape::{report, some_path};
use crate::{model::CheckpointNumber, session::Session};

/// Where a session stands after it went elsewhere, and what that left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Landing {
    /// The turn just before which it stands, if it went back to before one.
    pub before: Option<Turn>,
    /// The newest turn that its context has.
    pub at: Option<Turn>,
    /// Whether something was said there, though in no turn: a note, say.
    #[serde(skip)]
    pub is_begun: bool,
    /// The turns that its context had and has no longer.
    pub kept: Option<Kept>,
    /// The files that the agent changed in what its context has no longer: they are as the agent left them.
    pub files: Vec<TouchedFile>,
    /// How the agent goes on there.
    pub resume: Option<Resume>,
    /// Whether nothing was changed, and this is what would be.
    pub dry_run: bool,
}

/// A turn of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The checkpoint before it.
    pub checkpoint: CheckpointNumber,
    /// Its first words.
    pub words: Option<String>,
}

/// Turns that left a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The branch that has them now, unless only an undone operation does.
    pub branch: Option<String>,
    /// The first of them.
    pub first: CheckpointNumber,
    /// The last.
    pub last: CheckpointNumber,
    /// How many there are.
    pub turns: u64,
}

/// A file that an agent changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TouchedFile {
    /// Where it lies, as the agent has it.
    pub path: String,
    /// How often.
    pub edits: u64,
}

/// How an agent is started in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resume {
    /// The folder in which the session works.
    #[serde(serialize_with = "some_path")]
    pub folder: Option<PathBuf>,
    /// The agent's program and its arguments.
    pub command: Vec<String>,
}

/// The command that starts an agent in a session, as programs are told it.
#[derive(Clone, Copy, Debug)]
pub struct Resumed<'a> {
    /// The session.
    pub session: &'a Session,
    /// The command.
    pub resume: &'a Resume,
}

report!(Resumed<'_>, "resume", |it| {
    session: it.session.name.id,
    format: it.session.name.format,
    folder: it.resume.folder.as_ref().map(|folder| folder.to_string_lossy()),
    command: it.resume.command,
});
