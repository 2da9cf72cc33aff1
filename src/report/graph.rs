//! Graphs: nodes of consecutive entries, their edges, and the branches at their ends.

use std::collections::BTreeMap;

use serde::Serialize;

use super::shape::{report, through};
use super::spending::Expense;
use crate::{
    model::{Checkpoint, CheckpointNumber, EntryId, Kind, OperationNumber, Timestamp},
    session::{Damaged, Kin, Spot},
    wire::Departure,
};

/// What the model did in a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acts {
    /// The number of calls that edited a file.
    pub edits: u64,
    /// The number of calls that ran a command.
    pub commands: u64,
    /// The number of calls that failed.
    pub failed: u64,
}

/// A file that a session mentions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UsedFile {
    /// The path of the file.
    pub path: String,
    /// How many calls changed the file.
    pub edits: u64,
    /// How often the file was mentioned.
    pub mentions: u64,
    /// The last turn that mentioned the file.
    pub turn: Option<CheckpointNumber>,
}

report!(UsedFile, "file");

/// A reverted end: one that is not on the current path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevertedEnd {
    /// The branches at this end.
    pub branches: Vec<String>,
    /// The last entry.
    pub entry: EntryId,
    /// The turn of the current path that it follows.
    pub after: Option<CheckpointNumber>,
    /// How many turns only this end has, or only reverted ends have.
    pub turns: u64,
    /// The time of its last message.
    pub time: Option<Timestamp>,
    /// The beginning of that message.
    pub words: String,
}

/// Consecutive entries without a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own, and several may be set"
)]
pub struct GraphNode {
    /// The index of the node in this list, from 0.
    pub node: usize,
    /// The node's first entry that is part of the conversation.
    #[serde(rename = "entry")]
    pub id: EntryId,
    /// The id of that entry in the agent's own record.
    pub uuid: Option<String>,
    /// The node's last entry.
    pub last: EntryId,
    /// The kind of the first entry.
    pub kind: Kind,
    /// The time of the first entry.
    pub time: Option<Timestamp>,
    /// The first words of its text.
    pub words: String,
    /// The damage of that entry, if it is damaged; it then has no text.
    #[serde(skip)]
    pub damage: Option<String>,
    /// How many entries the node has.
    pub entries: u64,
    /// How many of the entries have hidden text.
    pub cut: u64,
    /// How many of the entries contain the words of `--grep`.
    pub found: u64,
    /// How often the agent cleared older tool results in the node.
    pub cleared: u64,
    /// For a compaction, the size of the context before, if its record has it.
    pub tokens_before: Option<u64>,
    /// For a compaction, the size of the context after, if its record has it.
    pub tokens_after: Option<u64>,
    /// For a compaction, how many names and requests its summary lost, if that was counted.
    pub lost: Option<u64>,
    /// The indexes of the nodes that this node follows.
    pub parents: Vec<usize>,
    /// The number of the checkpoint just before the node.
    pub checkpoint: Option<CheckpointNumber>,
    /// The agent's own number for that checkpoint, such as `kimi:3`.
    pub own: Option<String>,
    /// The checkpoints at the end of the node.
    #[serde(rename = "checkpoints")]
    pub marks: Vec<Checkpoint>,
    /// The branches at the end of the node.
    pub branches: Vec<String>,
    /// Whether the current branch ends at this node.
    #[serde(rename = "head")]
    pub is_head: bool,
    /// Whether the node is an end that no branch names.
    #[serde(rename = "unnamed")]
    pub is_unnamed: bool,
    /// Whether the node is not on the current path.
    #[serde(rename = "reverted")]
    pub is_reverted: bool,
    /// Whether the operation that added the node was undone; such nodes appear only with `--undone`.
    #[serde(rename = "undone")]
    pub is_undone: bool,
    /// What was done in it, if that was counted.
    #[serde(flatten, serialize_with = "through::<Did, _, _>")]
    pub acts: Option<Acts>,
    /// What the answers in it used; the key is present only with `-v`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Expense>,
    /// Whether the node is the work of a sub-agent in the session's file.
    #[serde(rename = "sub_agent")]
    pub is_sub_agent: bool,
    /// Whether no path leads to the node; such nodes appear only with `--all`.
    #[serde(rename = "aside")]
    pub is_aside: bool,
    /// What the agent did at the end of this node before it continued in another file.
    pub left: Option<Departure>,
    /// The agent's own number of the place that the agent went back to.
    pub to: Option<String>,
    /// Whether the node is a note for the model from `revert -m`.
    #[serde(rename = "later")]
    pub is_from_later: bool,
}

/// What the model did in a node, as a report.
#[derive(Serialize)]
struct Did {
    /// How many calls edited a file.
    edits: Option<u64>,
    /// How many calls ran a command.
    commands: Option<u64>,
    /// How many calls failed.
    failed: Option<u64>,
}

impl From<&Option<Acts>> for Did {
    fn from(acts: &Option<Acts>) -> Self {
        let count = |of: fn(&Acts) -> u64| acts.as_ref().map(of);
        let (edits, commands) = (count(|acts| acts.edits), count(|acts| acts.commands));
        Self { edits, commands, failed: count(|acts| acts.failed) }
    }
}

/// A session as a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphView {
    /// The nodes, newest first, each before its parents.
    pub nodes: Vec<GraphNode>,
    /// The current branch.
    pub current: String,
    /// Its position relative to the checkpoints.
    pub at: Option<Spot>,
    /// The branches that are before the first entry.
    pub empty: Vec<String>,
    /// The branches that preserve the state before an operation rewrote it.
    pub before: BTreeMap<String, OperationNumber>,
    /// The session that it was created from.
    pub kin: Option<Kin>,
    /// The damaged entries that were found.
    pub damaged: Vec<Damaged>,
}

report!(GraphNode, "node");
report!(Kin, "kin");

/// A branch that is before the first entry.
#[derive(Clone, Debug, Serialize)]
pub struct EmptyBranch<'a> {
    /// The branch.
    pub branch: &'a str,
    /// Always `null`.
    pub entry: (),
    /// Whether it is the current branch.
    #[serde(rename = "head")]
    pub is_current: bool,
}

report!(EmptyBranch<'_>, "branch");
