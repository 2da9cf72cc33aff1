//! Bearers: of the entries that have one name, the one that comes last where a generation grows; of the messages that a
//! compaction keeps behind a summary, the last.
//!
//! A view of the growth tells the same, and costs as much as there are stretches in it and names that stand twice: one for
//! each turn would take the square of them.
//!
//! Invariant: what is remembered is what such a view says.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{EntryNumber, GenerationNumber, Kind, NameTag},
    session::Growth,
};

/// The last bearers of names in a generation that grew to a number of entries, and the last messages behind summaries.
#[derive(Default)]
pub(crate) struct Bearers {
    of: (GenerationNumber, u64),
    last: BTreeMap<NameTag, EntryNumber>,
    /// By its summary. A further compaction, and a record that is said again, may change each of them.
    kept: BTreeMap<EntryNumber, EntryNumber>,
}

impl Bearers {
    /// Sees an entry that was added at the end of a growth. `twins` are the names that several new entries have.
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

    /// Returns the last bearer of a name at the end of a growth, if it is remembered.
    pub(crate) fn last(&mut self, growth: &Growth, name: NameTag) -> Option<EntryNumber> {
        self.meet(growth, 0);
        self.last.get(&name).copied()
    }

    /// Remembers the last bearer of a name at the end of a growth.
    pub(crate) fn keep(&mut self, name: NameTag, last: EntryNumber) {
        self.last.insert(name, last);
    }

    /// Returns the last message that is kept behind a summary at the end of a growth, if it is remembered.
    pub(crate) fn kept(&mut self, growth: &Growth, summary: EntryNumber) -> Option<EntryNumber> {
        self.meet(growth, 0);
        self.kept.get(&summary).copied()
    }

    /// Remembers the last message that is kept behind a summary at the end of a growth.
    pub(crate) fn keep_behind(&mut self, summary: EntryNumber, last: EntryNumber) {
        self.kept.insert(summary, last);
    }

    /// Forgets everything if this is another growth, or one that has grown by more or less than `came` entries since it was seen.
    fn meet(&mut self, growth: &Growth, came: u64) {
        if self.of != (growth.generation, growth.entries.saturating_sub(came)) {
            self.last.clear();
            self.kept.clear();
        }
        self.of = (growth.generation, growth.entries);
    }
}
