//! Graphs: nodes of consecutive entries, their edges, and the branches at their ends.

use std::collections::BTreeMap;

use super::{entry::marks, shape::report};
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFile {
    /// Its absolute path.
    pub path: String,
    /// The number of calls that changed it.
    pub edits: u64,
    /// The number of mentions.
    pub mentions: u64,
    /// The last turn that mentions it.
    pub turn: Option<CheckpointNumber>,
}

report!(UsedFile, "file", |it| {
    path: it.path,
    edits: it.edits,
    mentions: it.mentions,
    turn: it.turn,
});

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
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own, and several may be set"
)]
pub struct GraphNode {
    /// Its index in the list.
    pub node: usize,
    /// The id of its first entry in the conversation.
    pub id: EntryId,
    /// The name of that entry's record.
    pub uuid: Option<String>,
    /// The id of its last entry.
    pub last: EntryId,
    /// The kind of that last entry.
    pub kind: Kind,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// The beginning of its text.
    pub words: String,
    /// The damage of that entry, if it is damaged; it then has no text.
    pub damage: Option<String>,
    /// Its number of entries.
    pub entries: u64,
    /// How many of them are truncated.
    pub cut: u64,
    /// How many of them match the search.
    pub found: u64,
    /// How often the agent cleared older tool results in it.
    pub cleared: u64,
    /// For a compaction, the token counts before and after, if its record has them.
    pub tokens: (Option<u64>, Option<u64>),
    /// The indexes of its parents in the list.
    pub parents: Vec<usize>,
    /// The checkpoint that comes before it.
    pub checkpoint: Option<CheckpointNumber>,
    /// The agent's own number of that checkpoint, as a selector.
    pub own: Option<String>,
    /// The checkpoints that were set at its end.
    pub marks: Vec<Checkpoint>,
    /// The branches at its end.
    pub branches: Vec<String>,
    /// Whether the current branch ends here.
    pub is_head: bool,
    /// Whether nothing follows it and no branch ends here.
    pub is_unnamed: bool,
    /// Whether it is outside both the current path and the rest of its last turn.
    pub is_reverted: bool,
    /// Whether the command that added it was undone.
    pub is_undone: bool,
    /// What was done in it, if that was counted.
    pub acts: Option<Acts>,
    /// For a compaction, how many things its summary no longer mentions, if that was counted.
    pub lost: Option<u64>,
    /// Whether a sub-agent works there, in a session file of its own.
    pub is_sub_agent: bool,
    /// How the agent left its end for another state of the file.
    pub left: Option<Departure>,
    /// Whether no path reaches it, not even the path of a reverted end: it is output of a command, or a record that another
    /// record of the same name replaced. Only in a graph of all entries.
    pub is_aside: bool,
    /// Whether it is a message from a later state of the conversation.
    pub is_from_later: bool,
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

report!(RevertedEnd, "branch", |it| {
    branch: (),
    entry: it.entry,
    current: false,
    time: it.time,
    words: it.words,
    reverted: true,
    after: it.after,
    turns: it.turns,
});

report!(GraphNode, "node", |it| {
    node: it.node,
    entry: it.id,
    uuid: it.uuid,
    last: it.last,
    kind: it.kind.as_str(),
    time: it.time,
    words: it.words,
    entries: it.entries,
    cut: it.cut,
    found: it.found,
    cleared: it.cleared,
    tokens_before: it.tokens.0,
    tokens_after: it.tokens.1,
    lost: it.lost,
    parents: it.parents,
    checkpoint: it.checkpoint,
    own: it.own,
    checkpoints: marks(&it.marks),
    branches: it.branches,
    head: it.is_head,
    unnamed: it.is_unnamed,
    reverted: it.is_reverted,
    undone: it.is_undone,
    edits: it.acts.map(|acts| acts.edits),
    commands: it.acts.map(|acts| acts.commands),
    failed: it.acts.map(|acts| acts.failed),
    sub_agent: it.is_sub_agent,
    aside: it.is_aside,
    left: it.left.as_ref().map(Departure::as_str),
    to: it.left.as_ref().and_then(Departure::own),
    later: it.is_from_later,
});

/// A branch that is before the first entry.
#[derive(Clone, Debug)]
pub struct EmptyBranch<'a> {
    /// Its name.
    pub branch: &'a str,
    /// Whether it is the current branch.
    pub is_current: bool,
}

report!(EmptyBranch<'_>, "branch", |it| { branch: it.branch, entry: (), head: it.is_current });

report!(Kin, "kin", |it| {
    bond: it.bond.as_str(),
    session: it.session,
    held: it.is_held,
    continues: it.continues,
    shown: !it.continues,
    here: it.here,
    there: it.there,
});
