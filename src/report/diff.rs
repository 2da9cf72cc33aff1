//! Differences: where two sides part, and the rows on each.

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
    /// A number of entries that are on both sides.
    Same(u64),
    /// An entry of one side.
    Only(Side, Line),
    /// Entries that say the same on both sides, and are others on each.
    Renewed(Vec<(EntryId, EntryId)>),
    /// An entry that says something else on each side.
    Changed(Line, Box<Line>),
}

/// How two sides differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// The last entry before the sides part.
    pub fork: Option<EntryId>,
    /// How many entries they have in common up to there.
    pub common: u64,
    /// The rows behind the fork, in order.
    pub rows: Vec<Difference>,
    /// The damaged entries that were met: of these only the ids were compared.
    pub damaged: Vec<Damaged>,
}

report!(Diff, "fork", |it| { entry: it.fork, common: it.common });

/// A number of entries that are on both sides.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Same {
    /// How many.
    pub entries: u64,
}

report!(Same, "same");

/// An entry of one side.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Only<'a> {
    /// The side.
    pub side: Side,
    /// The entry.
    #[serde(flatten)]
    pub line: &'a Line,
}

report!(Only<'_>, "only");

/// An entry that says the same on both sides, and is another on each.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Renewed {
    /// On the first side.
    pub one: EntryId,
    /// On the second.
    pub other: EntryId,
}

report!(Renewed, "renewed");

/// An entry that says something else on each side.
#[derive(Clone, Debug, Serialize)]
pub struct Reworded {
    /// On the first side.
    pub one: Option<EntryId>,
    /// On the second.
    pub other: Option<EntryId>,
    /// The words that differ, as a unified diff.
    pub diff: String,
}

report!(Reworded, "changed");

/// How much differs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Tally {
    /// Entries on both sides.
    pub same: u64,
    /// Entries that say the same on both sides, and are others on each.
    pub renewed: u64,
    /// Entries that say something else on each side.
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
