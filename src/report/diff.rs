//! Differences: where two sides diverge, and the differing rows.

use serde::Serialize;

use super::{entry::Entry, shape::report};
use crate::{
    model::EntryId,
    session::{Damaged, Line},
};

/// A side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The side named first.
    One,
    /// The side named second.
    Other,
}

/// A row of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The number of consecutive entries that both sides share.
    Same(u64),
    /// An entry that only one side has.
    Only(Side, Line),
    /// Entries with the same content but different ids on the two sides.
    Renewed(Vec<(EntryId, EntryId)>),
    /// An entry with different content on the two sides.
    Changed(Line, Box<Line>),
}

/// How two sides differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The fork point: the last entry that both sides have in common.
    #[serde(rename = "entry")]
    pub fork: Option<EntryId>,
    /// How many entries both sides have in common up to there.
    pub common: u64,
    /// The rows after the fork point, in order.
    #[serde(skip)]
    pub rows: Vec<Difference>,
    /// The damaged entries; only their ids were compared.
    #[serde(skip)]
    pub damaged: Vec<Damaged>,
}

report!(Diff, "fork");

/// Consecutive entries that both sides share.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Same {
    /// How many entries they are.
    pub entries: u64,
}

report!(Same, "same");

/// An entry that only one side has.
#[derive(Clone, Debug, Serialize)]
pub struct Only<'a> {
    /// The side that has the entry.
    pub side: Side,
    /// The entry.
    #[serde(flatten)]
    pub line: Entry<'a>,
}

report!(Only<'_>, "only");

/// An entry with the same content but different ids on the two sides.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Renewed {
    /// The entry on the first side.
    pub one: EntryId,
    /// The entry on the second side.
    pub other: EntryId,
}

report!(Renewed, "renewed");

/// An entry with different content on the two sides.
#[derive(Clone, Debug, Serialize)]
pub struct Reworded {
    /// The entry on the first side.
    pub one: Option<EntryId>,
    /// The entry on the second side.
    pub other: Option<EntryId>,
    /// The text that differs, as a unified diff.
    pub diff: String,
}

report!(Reworded, "changed");

/// The number of differences.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Tally {
    /// How many entries are the same on both sides.
    pub same: u64,
    /// How many entries have the same text but different ids.
    pub renewed: u64,
    /// How many entries have different text.
    pub changed: u64,
    /// The entries that only the first side has.
    pub one: Surplus,
    /// The entries that only the second side has.
    pub other: Surplus,
}

report!(Tally, "stat");

/// The entries that only one side has.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Surplus {
    /// The number of entries.
    pub entries: u64,
    /// The number of characters in them.
    pub characters: u64,
}
