//! Bearers: of the entries that have one name, the one that stands last where a generation grows.
//!
//! A view of the growth tells the same, and costs as much as there are stretches in it and names that stand twice: one for
//! each turn would take the square of them.
//!
//! Invariant: what is remembered is what such a view says.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{EntryNumber, GenerationNumber, NameTag},
    session::Growth,
};

/// The last bearers of names in a generation that grew to a number of entries.
#[derive(Default)]
pub(super) struct Bearers {
    of: (GenerationNumber, u64),
    last: BTreeMap<NameTag, EntryNumber>,
}

impl Bearers {
    /// Sees an entry that was added at the end of a growth. `twins` are the names that several new entries have.
    pub(super) fn see(
        &mut self,
        growth: &Growth,
        n: EntryNumber,
        name: Option<NameTag>,
        twins: &BTreeSet<NameTag>,
    ) {
        self.meet(growth, 1);
        if let Some(name) = name
            && (twins.contains(&name) || self.last.contains_key(&name))
        {
            self.last.insert(name, n);
        }
    }

    /// Returns the last bearer of a name at the end of a growth, if it is remembered.
    pub(super) fn last(&mut self, growth: &Growth, name: NameTag) -> Option<EntryNumber> {
        self.meet(growth, 0);
        self.last.get(&name).copied()
    }

    /// Remembers the last bearer of a name at the end of a growth.
    pub(super) fn keep(&mut self, name: NameTag, last: EntryNumber) {
        self.last.insert(name, last);
    }

    /// Forgets everything if this is another growth, or one that has grown by more or less than `came` entries since it was seen.
    fn meet(&mut self, growth: &Growth, came: u64) {
        if self.of != (growth.generation, growth.entries.saturating_sub(came)) {
            self.last.clear();
        }
        self.of = (growth.generation, growth.entries);
    }
}
