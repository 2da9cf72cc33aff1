//! Where a move took a session, and what a user needs to know to continue from there.

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

/// Where a session is after a move, and what the move left out of its context.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Landing {
    /// Its position relative to the checkpoints.
    #[serde(skip)]
    pub spot: Option<Spot>,
    /// Its previous position, if it is different.
    #[serde(skip)]
    pub from: Option<Position>,
    /// The turn right after its position, if there is one.
    pub before: Option<Turn>,
    /// The newest turn in its context.
    pub at: Option<Turn>,
    /// The turns that are no longer in its context.
    pub turns: Vec<CheckpointNumber>,
    /// The branch that has those turns, and their numbers.
    pub kept: Option<Kept>,
    /// The times of the compactions that are no longer in its context.
    pub compactions: Vec<Option<Timestamp>>,
    /// How full the context window was before and is now.
    pub tokens: Option<Tokens>,
    /// The files that the agent changed in the turns that are no longer in its context. They keep those changes.
    pub files: Vec<TouchedFile>,
    /// The user's prompt in the turn that the revert went back to.
    pub prompt: Option<String>,
    /// How to resume the agent there.
    pub resume: Option<Resume>,
    /// Whether this was a dry run and nothing was changed.
    pub dry_run: bool,
}

/// A turn of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The checkpoint before it.
    pub checkpoint: CheckpointNumber,
    /// The beginning of its prompt.
    pub words: Option<String>,
}

/// The token counts of a context before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// Before the change.
    pub before: u64,
    /// After it.
    pub after: u64,
    /// The model's context window.
    pub window: u64,
    /// Whether the model itself reported both numbers.
    #[serde(skip)]
    pub is_reported: bool,
}

/// Turns that are no longer in a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The branch that has them now; none if only an undone operation has them.
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
    /// Its path, as the agent names it.
    pub path: String,
    /// The number of edits.
    pub edits: u64,
}

/// How to start an agent in a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resume {
    /// The working folder of the session.
    #[serde(serialize_with = "some_path")]
    pub folder: Option<PathBuf>,
    /// The agent's program and its arguments.
    pub command: Vec<String>,
}

/// The command that starts an agent in a session, as a report.
#[derive(Clone, Copy, Debug)]
pub struct Resumed<'a> {
    /// The session.
    pub session: &'a Session,
    /// The command.
    pub resume: &'a Resume,
    /// The waiting change.
    pub waiting: Option<&'a Waiting>,
}

report!(Resumed<'_>, "resume", |it| {
    session: it.session.name.id,
    format: it.session.name.format,
    folder: it.resume.folder.as_ref().map(|folder| folder.to_string_lossy()),
    command: it.resume.command,
    waiting: it.waiting,
});
