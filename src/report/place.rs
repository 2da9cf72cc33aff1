//! Moves: the position of a branch after a revert, a switch or an undo.

use serde::Serialize;
use serde_json::Value;

use super::{
    done::Done,
    graph::RevertedEnd,
    landing::Landing,
    shape::{name_id, report, through},
};
use crate::model::hint::{Hint, Line};
use crate::model::{
    CheckpointNumber, EntryId, Operation, OperationId, OperationNumber, SessionName, Timestamp,
};

/// The result of a revert.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reverted {
    /// The checkpoint number that you named; `null` if you named another kind of place.
    pub checkpoint: Option<CheckpointNumber>,
    /// The last entry of the branch now; `null` at the start of the session.
    pub entry: Option<EntryId>,
    /// The branch that was reverted.
    pub branch: String,
    /// The branch that keeps the old end.
    pub left: Option<String>,
    /// How many entries are now only on the branch `left`.
    pub dropped: u64,
    /// The entry with the note for the model, if one was added.
    pub note: Option<EntryId>,
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
    /// Where the session is now.
    #[serde(flatten)]
    pub landing: Landing,
}

report!(Reverted, "revert", hints: |it| it.done.operation.map(|_| Hint::undo()));

/// The result of creating or renaming a branch.
#[derive(Clone, Debug, Serialize)]
pub struct Branched {
    /// The branch.
    pub branch: String,
    /// The last entry of the branch; `null` at the start of the session.
    pub entry: Option<EntryId>,
    /// The previous name of the branch.
    pub from: Option<String>,
    /// Whether lists hide the branch now.
    pub hidden: bool,
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
}

report!(Branched, "branch", hints: |it| {
    let is_new = it.from.is_none() && !it.hidden;
    let switch = || Line::about("switch").with(&it.branch).to("to continue on that branch");
    it.done.operation.map(|n| if is_new { switch() } else { Hint::undo_of(n) })
});

/// The result of a switch.
#[derive(Clone, Debug, Serialize)]
pub struct Switched {
    /// The branch.
    pub branch: String,
    /// The last entry of the branch; `null` at the start of the session.
    pub entry: Option<EntryId>,
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
    /// Where the session is now.
    #[serde(flatten)]
    pub landing: Landing,
}

report!(Switched, "switch", hints: |it| it.done.operation.map(|_| Hint::undo()));

/// An operation in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OperationView {
    /// The session.
    #[serde(serialize_with = "name_id")]
    pub session: SessionName,
    /// The operation.
    #[serde(flatten, serialize_with = "through::<Listed<'_>, _, _>")]
    pub operation: Operation,
    /// The number of results that it truncated.
    #[serde(skip)]
    pub cut: u64,
    /// Whether the operation was undone.
    pub undone: bool,
}

/// The result of an undo or a redo.
#[derive(Clone, Debug, Serialize)]
pub struct Undone {
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
    /// The number of the operation that was undone.
    pub undoes: OperationNumber,
    /// The same operation; for a redo, the operation that was redone.
    #[serde(skip)]
    pub original: OperationNumber,
    /// The command of the operation that was undone.
    pub command: &'static str,
    /// The branches that keep the entries added after that operation.
    pub left: Vec<String>,
    /// Whether lists hide the session now, if that changed.
    #[serde(skip)]
    pub hidden: Option<bool>,
    /// Where the session is now.
    #[serde(flatten)]
    pub landing: Landing,
}

report!(OperationView, "operation");

/// An operation, as a report.
#[derive(Serialize)]
struct Listed<'a> {
    /// The number of the operation.
    operation: OperationNumber,
    /// The time of the operation.
    at: Timestamp,
    /// The command.
    command: &'a str,
    /// The contents of the operation's record, which depend on `command`.
    detail: Value,
    /// How many entries the operation added.
    entries: u64,
    /// The number of the operation that this one undid.
    undoes: Option<OperationNumber>,
    /// A hash that covers this operation and all earlier ones.
    hash: OperationId,
}

impl<'a> From<&'a Operation> for Listed<'a> {
    fn from(of: &'a Operation) -> Self {
        let (command, detail) = (of.command.as_str(), of.command.to_json());
        let (entries, undoes) = (of.count(), of.undoes());
        Self { operation: of.n, at: of.at, command, detail, entries, undoes, hash: of.hash }
    }
}

/// A branch in a list.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ListedBranch {
    /// The branch; `null` if no branch names this end.
    pub branch: Option<String>,
    /// The last entry of the branch; `null` at the start of the session.
    pub entry: Option<EntryId>,
    /// Whether the branch is the current one.
    pub current: bool,
    /// The time of the last message of the branch.
    pub time: Option<Timestamp>,
    /// The first words of that message.
    pub words: Option<String>,
    /// Whether the branch was reverted: its end is not on the current path.
    pub reverted: bool,
    /// If reverted, the turn after which the branch begins.
    pub after: Option<CheckpointNumber>,
    /// If reverted, how many turns are only on this branch.
    pub turns: Option<u64>,
}

impl ListedBranch {
    /// Returns the report on a reverted end that no branch names.
    pub fn unnamed(end: RevertedEnd) -> Self {
        Self {
            branch: None,
            entry: Some(end.entry),
            current: false,
            time: end.time,
            words: Some(end.words),
            reverted: true,
            after: end.after,
            turns: Some(end.turns),
        }
    }

    /// Returns true if it has this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.branch.as_deref() == Some(name)
    }
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
    /// The number of the checkpoint.
    pub checkpoint: CheckpointNumber,
    /// The number that the model sees, which is the agent's own if it numbers checkpoints itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<u64>,
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
}

report!(Marked, "checkpoint", hints: |it| {
    [Line::about("revert").with(it.checkpoint.to_string()).to("to come back to this checkpoint")]
});
