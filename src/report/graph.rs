//! Graphs: stretches of entries, where they part, and the names at their ends.

use std::collections::BTreeMap;

use super::{entry::marks, shape::report};
use crate::{
    model::{Checkpoint, CheckpointNumber, EntryId, Kind, OperationNumber, Timestamp},
    session::{Damaged, Kin, Spot},
    wire::Departure,
};

/// What a model did in a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acts {
    /// How many calls edited a file.
    pub edits: u64,
    /// How many ran a command.
    pub commands: u64,
    /// How many calls failed.
    pub failed: u64,
}

/// A file that a session names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedFile {
    /// Its absolute path.
    pub path: String,
    /// How many calls changed it.
    pub edits: u64,
    /// How often it was named.
    pub mentions: u64,
    /// The turn that named it last.
    pub turn: Option<CheckpointNumber>,
}

report!(UsedFile, "file", |it| {
    path: it.path,
    edits: it.edits,
    mentions: it.mentions,
    turn: it.turn,
});

/// An end that was reverted: it is not on the current path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevertedEnd {
    /// The branches there.
    pub branches: Vec<String>,
    /// The last entry.
    pub entry: EntryId,
    /// The turn of the current path that it follows.
    pub after: Option<CheckpointNumber>,
    /// How many turns are on it alone, or on it and other reverted ends.
    pub turns: u64,
    /// When something was said there last.
    pub time: Option<Timestamp>,
    /// The first words of that.
    pub words: String,
}

/// A stretch of entries, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own, and several may be set"
)]
pub struct GraphNode {
    /// Its place in the list, from 0.
    pub node: usize,
    /// The id of its first entry that is part of the conversation.
    pub id: EntryId,
    /// The name of that entry's record.
    pub uuid: Option<String>,
    /// The id of its last entry.
    pub last: EntryId,
    /// The kind of that entry.
    pub kind: Kind,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// Its first words.
    pub words: String,
    /// The damage of that entry, which then has no words.
    pub damage: Option<String>,
    /// How many entries it holds.
    pub entries: u64,
    /// How many of them hide a part of their origins.
    pub cut: u64,
    /// How many of them hold what was looked for.
    pub found: u64,
    /// How many times the agent cleared older answers of tools in it.
    pub cleared: u64,
    /// Of a compaction, how many tokens it found and left, as far as its record tells.
    pub tokens: (Option<u64>, Option<u64>),
    /// The nodes that it follows, by their places in the list.
    pub parents: Vec<usize>,
    /// The checkpoint that comes before it.
    pub checkpoint: Option<CheckpointNumber>,
    /// The agent's own number of that checkpoint, as a selector.
    pub own: Option<String>,
    /// The checkpoints that were put at its end.
    pub marks: Vec<Checkpoint>,
    /// The branches that stand at its end.
    pub branches: Vec<String>,
    /// Whether the current branch is at its end.
    pub is_head: bool,
    /// Whether nothing follows it and no branch is at its end.
    pub is_unnamed: bool,
    /// Whether it is neither on the path to the current branch's end nor the rest of the turn there.
    pub is_reverted: bool,
    /// Whether the command that added it was undone.
    pub is_undone: bool,
    /// What was done in it, if that is counted.
    pub acts: Option<Acts>,
    /// Of a compaction, how many things its summary no longer names, if that is counted.
    pub lost: Option<u64>,
    /// Whether a sub-agent works there, in the file of its session.
    pub is_sub_agent: bool,
    /// How the agent left its end for another state of its file.
    pub left: Option<Departure>,
    /// Whether no path comes to it, not even that of an end that was left: a command's talk, or a record that another
    /// of its name replaced. Only with all entries.
    pub is_aside: bool,
    /// Whether it is a message from a later state of the conversation.
    pub is_from_later: bool,
}

/// A session as a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphView {
    /// The nodes, each before its parents, the newest first.
    pub nodes: Vec<GraphNode>,
    /// The current branch.
    pub current: String,
    /// Where it ends, among the checkpoints.
    pub at: Option<Spot>,
    /// The branches that stand before the first entry.
    pub empty: Vec<String>,
    /// The branches that show the state before an operation wrote it again.
    pub before: BTreeMap<String, OperationNumber>,
    /// The session that it was made of.
    pub kin: Option<Kin>,
    /// The damaged entries that were met.
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

/// A branch that comes before the first entry.
#[derive(Clone, Debug)]
pub struct EmptyBranch<'a> {
    /// Its name.
    pub branch: &'a str,
    /// Whether it is current.
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
