//! Going elsewhere: the place of a branch after going back, a switch, an undo.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    hint::{Hint, Line},
    landing::Landing,
    notice::Notice,
    shape::{report, some_path},
};
use crate::model::{CheckpointNumber, EntryId, Operation, OperationNumber, SessionName, Timestamp};

/// The result of going back.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reverted {
    /// The checkpoint that it went back to, if one was named.
    pub checkpoint: Option<CheckpointNumber>,
    /// Where the branch is now; none before the first entry.
    pub entry: Option<EntryId>,
    /// The branch that went back.
    pub branch: String,
    /// The branch that holds the old end.
    pub left: Option<String>,
    /// How many entries that stood there are no longer on the path.
    pub dropped: u64,
    /// The note, if one was left.
    pub note: Option<EntryId>,
    /// The old live file, if it was exchanged.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    #[serde(serialize_with = "some_path")]
    pub written: Option<PathBuf>,
    /// The operation; none if the branch stood there already.
    pub operation: Option<OperationNumber>,
    /// Where it is now.
    #[serde(flatten)]
    pub landing: Landing,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Reverted, "revert", hints: |it| it.operation.map(|_| Hint::undo()));

/// The result of making a branch, or of giving it another name.
#[derive(Clone, Debug, Serialize)]
pub struct Branched {
    /// The branch.
    pub branch: String,
    /// The entry at which it is; none before the first one.
    pub entry: Option<EntryId>,
    /// The name that it had before.
    pub from: Option<String>,
    /// Whether it is left out of lists from now on.
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

/// The result of making a branch current.
#[derive(Clone, Debug, Serialize)]
pub struct Switched {
    /// The branch.
    pub branch: String,
    /// The entry at which it is; none before the first one.
    pub entry: Option<EntryId>,
    /// The old live file, if it was exchanged.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    #[serde(serialize_with = "some_path")]
    pub written: Option<PathBuf>,
    /// The operation; none if it was current already.
    pub operation: Option<OperationNumber>,
    /// Where it is now.
    #[serde(flatten)]
    pub landing: Landing,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Switched, "switch", hints: |it| it.operation.map(|_| Hint::undo()));

/// An operation as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationView {
    /// The session.
    pub session: SessionName,
    /// The operation.
    pub operation: Operation,
    /// How many results it cut.
    pub cut: u64,
    /// Whether it is undone.
    pub undone: bool,
}

/// The result of an undo or a redo.
#[derive(Clone, Debug, Serialize)]
pub struct Undone {
    /// The operation.
    pub operation: OperationNumber,
    /// The operation that it took back.
    pub undoes: OperationNumber,
    /// The same, or of a redo the operation that is done again.
    #[serde(skip)]
    pub original: OperationNumber,
    /// The command of that operation.
    pub command: &'static str,
    /// The branches that hold the entries since.
    pub left: Vec<String>,
    /// Whether lists leave the session out now, if that changed.
    #[serde(skip)]
    pub hidden: Option<bool>,
    /// The old live file, if it was exchanged.
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
    /// The entry at which it is; none at the start.
    pub entry: Option<EntryId>,
    /// Whether it is current.
    pub current: bool,
    /// When its last message was said.
    pub time: Option<Timestamp>,
    /// The first words of that message.
    pub words: Option<String>,
    /// Whether it was reverted: it ends on another path than the current one.
    pub reverted: bool,
    /// The turn of the current path that it follows then.
    pub after: Option<CheckpointNumber>,
    /// How many turns it has then beside that path.
    pub turns: Option<u64>,
}

report!(ListedBranch, "branch");

/// The result of going back to before the first entry.
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

/// A checkpoint that was set, or stood there.
#[derive(Clone, Debug, Serialize)]
pub struct Marked {
    /// Its number.
    pub checkpoint: CheckpointNumber,
    /// The operation; none if it stood there.
    pub operation: Option<OperationNumber>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Marked, "checkpoint", hints: |it| {
    [Line::about("revert").with(it.checkpoint.to_string()).to("to come back to this checkpoint")]
});
