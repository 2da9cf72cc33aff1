//! Moves: the position of a branch after a revert, a switch or an undo.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    hint::{Hint, Line},
    landing::Landing,
    notice::Notice,
    shape::{report, some_path},
};
use crate::model::{CheckpointNumber, EntryId, Operation, OperationNumber, SessionName, Timestamp};

/// The result of a revert.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reverted {
    /// The checkpoint that it reverted to, if one was named.
    pub checkpoint: Option<CheckpointNumber>,
    /// The current head of the branch; none before the first entry.
    pub entry: Option<EntryId>,
    /// The branch that was reverted.
    pub branch: String,
    /// The branch that preserves the old end.
    pub left: Option<String>,
    /// How many entries are no longer on the path.
    pub dropped: u64,
    /// The entry of the note, if one was added.
    pub note: Option<EntryId>,
    /// The old live file, if it was rotated.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    #[serde(serialize_with = "some_path")]
    pub written: Option<PathBuf>,
    /// The operation; none if the branch was already there.
    pub operation: Option<OperationNumber>,
    /// Where the session is now.
    #[serde(flatten)]
    pub landing: Landing,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Reverted, "revert", hints: |it| it.operation.map(|_| Hint::undo()));

/// The result of creating or renaming a branch.
#[derive(Clone, Debug, Serialize)]
pub struct Branched {
    /// The branch.
    pub branch: String,
    /// Its head; none before the first entry.
    pub entry: Option<EntryId>,
    /// Its previous name.
    pub from: Option<String>,
    /// Whether lists hide it from now on.
    pub hidden: bool,
    /// The operation.
    pub operation: Option<OperationNumber>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Branched, "branch", hints: |it| {
    let is_new = it.from.is_none() && !it.hidden;
    let switch = || Line::about("switch").with(&it.branch).to("to continue on that branch");
    it.operation.map(|n| if is_new { switch() } else { Hint::undo_of(n) })
});

/// The result of a switch.
#[derive(Clone, Debug, Serialize)]
pub struct Switched {
    /// The branch.
    pub branch: String,
    /// Its head; none before the first entry.
    pub entry: Option<EntryId>,
    /// The old live file, if it was rotated.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    #[serde(serialize_with = "some_path")]
    pub written: Option<PathBuf>,
    /// The operation; none if the branch was already current.
    pub operation: Option<OperationNumber>,
    /// Where the session is now.
    #[serde(flatten)]
    pub landing: Landing,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Switched, "switch", hints: |it| it.operation.map(|_| Hint::undo()));

/// An operation in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationView {
    /// The session.
    pub session: SessionName,
    /// The operation.
    pub operation: Operation,
    /// The number of results that it truncated.
    pub cut: u64,
    /// Whether it was undone.
    pub undone: bool,
}

/// The result of an undo or a redo.
#[derive(Clone, Debug, Serialize)]
pub struct Undone {
    /// The operation.
    pub operation: OperationNumber,
    /// The operation that it undid.
    pub undoes: OperationNumber,
    /// The same operation; for a redo, the operation that was redone.
    #[serde(skip)]
    pub original: OperationNumber,
    /// The command of that operation.
    pub command: &'static str,
    /// The branches that preserve the entries added since.
    pub left: Vec<String>,
    /// Whether lists hide the session now, if that changed.
    #[serde(skip)]
    pub hidden: Option<bool>,
    /// The old live file, if it was rotated.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    #[serde(serialize_with = "some_path")]
    pub written: Option<PathBuf>,
    /// Where the session is now.
    #[serde(flatten)]
    pub landing: Landing,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(OperationView, "operation", |it| {
    session: it.session.id,
    operation: it.operation.n,
    at: it.operation.at,
    command: it.operation.command.as_str(),
    detail: it.operation.command.to_json(),
    entries: it.operation.count(),
    undoes: it.operation.undoes(),
    undone: it.undone,
    hash: it.operation.hash,
});

/// A branch in a list.
#[derive(Clone, Debug, Serialize)]
pub struct ListedBranch {
    /// Its name.
    pub branch: String,
    /// Its head; none before the first entry.
    pub entry: Option<EntryId>,
    /// Whether it is current.
    pub current: bool,
    /// The time of its last message.
    pub time: Option<Timestamp>,
    /// The beginning of that message.
    pub words: Option<String>,
    /// Whether it was reverted: its end is not on the current path.
    pub reverted: bool,
    /// If reverted, the turn of the current path that it follows.
    pub after: Option<CheckpointNumber>,
    /// If reverted, the number of its turns that are not on the current path.
    pub turns: Option<u64>,
}

report!(ListedBranch, "branch");

/// The result of clearing the current branch.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Cleared<'a>(pub &'a Reverted);

report!(Cleared<'_>, "clear", hints: |it| it.0.hints());

report!(Undone, "undo", hints: |_| [Line::about("redo").to("to redo")]);

/// The result of a redo, which is the undo of an undo.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Redone<'a>(pub &'a Undone);

report!(Redone<'_>, "redo", hints: |it| [Hint::undo_of(it.0.original)]);

/// A checkpoint that was set, or already existed.
#[derive(Clone, Debug, Serialize)]
pub struct Marked {
    /// Its number.
    pub checkpoint: CheckpointNumber,
    /// The operation; none if the checkpoint already existed.
    pub operation: Option<OperationNumber>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Marked, "checkpoint", hints: |it| {
    [Line::about("revert").with(it.checkpoint.to_string()).to("to come back to this checkpoint")]
});
