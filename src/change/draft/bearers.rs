//! A cache for growing generations: the last entry with an ambiguous name, and the last message that a compaction keeps after its
//! summary.
//!
//! A view of the growth gives the same answers, but each view costs time proportional to the growth's spans and ambiguous names.
//! One view per turn would take quadratic time.
//!
//! Invariant: a cached answer never differs from that of a view.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{EntryNumber, GenerationNumber, Kind, NameTag},
    session::Growth,
};

/// The last bearers of names, and the last messages after summaries, in a generation that grew to a number of entries.
#[derive(Default)]
pub(crate) struct Bearers {
    of: (GenerationNumber, u64),
    last: BTreeMap<NameTag, EntryNumber>,
    /// By summary. Another compaction, or a repeated record, may change any of them.
    kept: BTreeMap<EntryNumber, EntryNumber>,
}

impl Bearers {
    /// Updates the cache for an entry appended to a growth. `twins` are the names that several new entries share.
    pub(crate) fn see(
        &mut self,
        growth: &Growth,
        n: EntryNumber,
        name: Option<NameTag>,
        kind: Kind,
        twins: &BTreeSet<NameTag>,
    ) {
        self.meet(growth, 1);
        let again = name.filter(|name| twins.contains(name) || self.last.contains_key(name));
        if let Some(name) = again {
            self.last.insert(name, n);
        }
        if again.is_some() || kind == Kind::Boundary {
            self.kept.clear();
        }
    }

    /// Returns the last entry with this name at the end of a growth, if cached.
    pub(crate) fn last(&mut self, growth: &Growth, name: NameTag) -> Option<EntryNumber> {
        self.meet(growth, 0);
        self.last.get(&name).copied()
    }

    /// Caches the last entry with this name at the end of a growth.
    pub(crate) fn keep(&mut self, name: NameTag, last: EntryNumber) {
        self.last.insert(name, last);
    }

    /// Returns the last message that is kept after a summary, at the end of a growth, if cached.
    pub(crate) fn kept(&mut self, growth: &Growth, summary: EntryNumber) -> Option<EntryNumber> {
        self.meet(growth, 0);
        self.kept.get(&summary).copied()
    }

    /// Caches the last message that is kept after a summary.
    pub(crate) fn keep_behind(&mut self, summary: EntryNumber, last: EntryNumber) {
        self.kept.insert(summary, last);
    }

    /// Clears the cache for another growth, or if this one has not grown by exactly `came` entries since the last call.
    fn meet(&mut self, growth: &Growth, came: u64) {
        if self.of != (growth.generation, growth.entries.saturating_sub(came)) {
            self.last.clear();
            self.kept.clear();
        }
        self.of = (growth.generation, growth.entries);
    }
}
