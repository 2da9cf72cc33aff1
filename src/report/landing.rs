//! Where a move took a session, and what a user needs to know to continue from there.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    later::Waiting,
    shape::{Owner, report, some_path, through},
};
use crate::{
    model::{Block, CheckpointNumber, Position, Timestamp},
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
    /// The next turn after the current position, or `null` if it is the end.
    pub before: Option<Turn>,
    /// The newest turn in the context.
    pub at: Option<Turn>,
    /// The turns that the change removed from the context.
    pub turns: Vec<CheckpointNumber>,
    /// The branch that now contains these turns.
    pub kept: Option<Kept>,
    /// The times of the compactions that the change removed from the context.
    pub compactions: Vec<Option<Timestamp>>,
    /// The size of the context.
    pub tokens: Option<Tokens>,
    /// The files that the agent edited in these turns; undertext does not restore them.
    pub files: Vec<TouchedFile>,
    /// The calls in these turns that did not fail.
    #[serde(skip)]
    pub calls: Vec<Block>,
    /// Your prompt from the turn that the session went back to.
    pub prompt: Option<String>,
    /// How to resume the session with its agent.
    pub resume: Option<Resume>,
    /// Whether this was a dry run, which changes nothing.
    pub dry_run: bool,
}

/// A turn of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The number of the turn.
    pub checkpoint: CheckpointNumber,
    /// The first words of its prompt.
    pub words: Option<String>,
}

/// The token counts of a context before and after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tokens {
    /// The size before the change.
    pub before: u64,
    /// The size after the change.
    pub after: u64,
    /// The size of the model's context window in tokens.
    pub window: u64,
    /// Whether the model itself reported both numbers.
    #[serde(skip)]
    pub is_reported: bool,
}

/// Turns that are no longer in a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The branch; `null` if only an undone operation has the turns.
    pub branch: Option<String>,
    /// The number of the first of these turns.
    pub first: CheckpointNumber,
    /// The number of the last of these turns.
    pub last: CheckpointNumber,
    /// How many turns there are.
    pub turns: u64,
}

/// A file that an agent changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TouchedFile {
    /// The path, as the agent names it.
    pub path: String,
    /// How often the agent edited the file.
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
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Resumed<'a> {
    /// The session.
    #[serde(flatten, serialize_with = "through::<Owner<'_>, Session, _>")]
    pub session: &'a Session,
    /// The command.
    #[serde(flatten)]
    pub resume: &'a Resume,
    /// The waiting change, if any.
    pub waiting: Option<&'a Waiting>,
}

report!(Resumed<'_>, "resume");
