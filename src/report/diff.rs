//! Differences: where two sides diverge, and the differing rows.

use serde::Serialize;

use super::shape::report;
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The fork point: the last entry before the sides diverge.
    pub fork: Option<EntryId>,
    /// The number of shared entries up to the fork point.
    pub common: u64,
    /// The rows after the fork point, in order.
    pub rows: Vec<Difference>,
    /// The damaged entries; only their ids were compared.
    pub damaged: Vec<Damaged>,
}

report!(Diff, "fork", |it| { entry: it.fork, common: it.common });

/// Consecutive entries that both sides share.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Same {
    /// Their number.
    pub entries: u64,
}

report!(Same, "same");

/// An entry that only one side has.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Only<'a> {
    /// The side.
    pub side: Side,
    /// The entry.
    #[serde(flatten)]
    pub line: &'a Line,
}

report!(Only<'_>, "only");

/// An entry with the same content but different ids on the two sides.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Renewed {
    /// Its id on the first side.
    pub one: EntryId,
    /// Its id on the second side.
    pub other: EntryId,
}

report!(Renewed, "renewed");

/// An entry with different content on the two sides.
#[derive(Clone, Debug, Serialize)]
pub struct Reworded {
    /// Its id on the first side.
    pub one: Option<EntryId>,
    /// Its id on the second side.
    pub other: Option<EntryId>,
    /// The text that differs, as a unified diff.
    pub diff: String,
}

report!(Reworded, "changed");

/// The number of differences.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Tally {
    /// Entries that both sides share.
    pub same: u64,
    /// Entries with the same content but different ids.
    pub renewed: u64,
    /// Entries with different content.
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
    /// Entries.
    pub entries: u64,
    /// Characters in them.
    pub characters: u64,
}
