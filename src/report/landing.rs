//! Where a change of place took a session, and what a person needs to know to go on from there.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    later::Waiting,
    shape::{report, some_path},
};
use crate::{
    model::{CheckpointNumber, Position, Timestamp},
    session::{Session, Spot},
};

/// Where a session is after it went elsewhere, and what that left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Landing {
    /// Where it is, among the checkpoints.
    #[serde(skip)]
    pub spot: Option<Spot>,
    /// Where it was, if that is another place.
    #[serde(skip)]
    pub from: Option<Position>,
    /// The turn that it is just before, if it is before one.
    pub before: Option<Turn>,
    /// The newest turn that its context has.
    pub at: Option<Turn>,
    /// The numbers of the turns that its context had and no longer has.
    pub turns: Vec<CheckpointNumber>,
    /// The branch that has them, and all numbers there.
    pub kept: Option<Kept>,
    /// When the compactions were made that its context no longer has.
    pub compactions: Vec<Option<Timestamp>>,
    /// How full its window was and is.
    pub tokens: Option<Tokens>,
    /// The files that the agent changed in what its context has no longer: they are as the agent left them.
    pub files: Vec<TouchedFile>,
    /// What the user said in the turn before which it went back.
    pub prompt: Option<String>,
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

/// How many tokens a context had and has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Before the change.
    pub before: u64,
    /// After it.
    pub after: u64,
    /// The window of the model.
    pub window: u64,
    /// Whether the model itself reported both.
    #[serde(skip)]
    pub is_reported: bool,
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
    /// Where it is, as the agent has it.
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
    /// The change that waits.
    pub waiting: Option<&'a Waiting>,
}

report!(Resumed<'_>, "resume", |it| {
    session: it.session.name.id,
    format: it.session.name.format,
    folder: it.resume.folder.as_ref().map(|folder| folder.to_string_lossy()),
    command: it.resume.command,
    waiting: it.waiting,
});
