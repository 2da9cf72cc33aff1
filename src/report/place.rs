//! Going elsewhere: where a branch stands after going back, a switch, an undo.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    notice::Notice,
    shape::{report, some_path},
};
use crate::model::{EntryId, Operation};

/// What going back did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Reverted {
    /// The checkpoint that it went back to, if one was named.
    pub checkpoint: Option<u64>,
    /// Where the branch stands now; none before the first entry.
    pub entry: Option<EntryId>,
    /// The branch that went back.
    pub branch: String,
    /// The branch that holds what was left.
    pub left: Option<String>,
    /// How many entries that stood there are left behind.
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
    pub operation: Option<u64>,
    /// What was noticed on the way.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Reverted, "revert");

/// What making a branch did.
#[derive(Clone, Debug, Serialize)]
pub struct Branched {
    /// The branch.
    pub branch: String,
    /// The entry at which it stands; none before the first one.
    pub entry: Option<EntryId>,
    /// The operation.
    pub operation: Option<u64>,
    /// What was noticed on the way.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Branched, "branch");

/// What making a branch current did.
#[derive(Clone, Debug, Serialize)]
pub struct Switched {
    /// The branch.
    pub branch: String,
    /// The entry at which it stands; none before the first one.
    pub entry: Option<EntryId>,
    /// The old live file, if it was exchanged.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    #[serde(serialize_with = "some_path")]
    pub written: Option<PathBuf>,
    /// The operation; none if it was current already.
    pub operation: Option<u64>,
    /// What was noticed on the way.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Switched, "switch");

/// An operation as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationView {
    /// The operation.
    pub operation: Operation,
    /// Whether it is undone.
    pub undone: bool,
}

/// What an undo or a redo did.
#[derive(Clone, Debug, Serialize)]
pub struct Undone {
    /// The operation.
    pub operation: u64,
    /// The operation that it took back.
    pub undoes: u64,
    /// The command of that operation.
    pub command: &'static str,
    /// The branches that hold what had come since.
    pub left: Vec<String>,
    /// The old live file, if it was exchanged.
    #[serde(serialize_with = "some_path")]
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    #[serde(serialize_with = "some_path")]
    pub written: Option<PathBuf>,
    /// What was noticed on the way.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(OperationView, "operation", |it| {
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
    /// The entry at which it stands; none at the start.
    pub entry: Option<EntryId>,
    /// Whether it is current.
    pub current: bool,
}

report!(ListedBranch, "branch");

/// What going back to before the first entry did.
#[derive(Clone, Copy, Debug)]
pub struct Cleared<'a>(pub &'a Reverted);

report!(Cleared<'_>, "clear", |it| {
    branch: it.0.branch,
    left: it.0.left,
    dropped: it.0.dropped,
    note: it.0.note,
    rotated: it.0.rotated.as_ref().map(|path| path.to_string_lossy()),
    written: it.0.written.as_ref().map(|path| path.to_string_lossy()),
    operation: it.0.operation,
});

report!(Undone, "undo");

/// What a redo did, which is the undo of an undo.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
pub struct Redone<'a>(pub &'a Undone);

report!(Redone<'_>, "redo");

/// A checkpoint that was set, or stood there.
#[derive(Clone, Debug, Serialize)]
pub struct Marked {
    /// Its number.
    pub checkpoint: u64,
    /// The operation; none if it stood there.
    pub operation: Option<u64>,
    /// What was noticed on the way.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Marked, "checkpoint");
