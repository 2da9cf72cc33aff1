//! Going elsewhere: where a branch stands after going back, a switch, an undo.

use std::path::PathBuf;

use crate::{
    model::{EntryId, Operation, Position},
    report::Notice,
};

/// What going back did.
#[derive(Clone, Debug, Default)]
pub struct Reverted {
    /// The operation; none if the branch stood there already.
    pub operation: Option<u64>,
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
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<PathBuf>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}

/// What a change of branches did.
#[derive(Clone, Debug)]
pub struct Branched {
    /// The operation; none if nothing had to change.
    pub operation: Option<u64>,
    /// The branch.
    pub branch: String,
    /// Where it stands.
    pub position: Position,
    /// The old live file, if it was exchanged.
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<PathBuf>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}

/// An operation as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationView {
    /// The operation.
    pub operation: Operation,
    /// Whether it is undone.
    pub undone: bool,
}

/// What an undo or a redo did.
#[derive(Clone, Debug)]
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
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<PathBuf>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}
