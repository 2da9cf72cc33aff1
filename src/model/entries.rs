//! Sets of entries, as bitmaps: entries that are used together have nearby numbers.

use std::collections::BTreeMap;

use crate::model::EntryNumber;

/// The number of entries in one word of the bitmap.
const BITS: u64 = 64;

/// A set of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntrySet {
    /// The words that are not zero, keyed by entry number divided by [`BITS`].
    words: BTreeMap<u64, u64>,
}

impl EntrySet {
    /// Adds an entry, and returns true if it was not in the set.
    pub fn insert(&mut self, entry: EntryNumber) -> bool {
        let (at, bit) = place(entry);
        let word = self.words.entry(at).or_default();
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Removes an entry, and returns true if it was in the set.
    pub fn remove(&mut self, entry: EntryNumber) -> bool {
        let (at, bit) = place(entry);
        let Some(word) = self.words.get_mut(&at) else { return false };
        let was_there = *word & bit != 0;
        *word &= !bit;
        if *word == 0 {
            self.words.remove(&at);
        }
        was_there
    }

    /// Returns true if the set contains the entry.
    pub fn contains(&self, entry: EntryNumber) -> bool {
        let (at, bit) = place(entry);
        self.words.get(&at).is_some_and(|word| word & bit != 0)
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the entries in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = EntryNumber> + '_ {
        self.words.iter().flat_map(|(at, word)| {
            let bits = (0..BITS).filter(|bit| *word & 1 << bit != 0);
            bits.map(|bit| EntryNumber::new(*at * BITS + bit))
        })
    }
}

/// Returns the key of an entry's word, and its bit in that word.
fn place(entry: EntryNumber) -> (u64, u64) {
    (entry.get() / BITS, 1 << (entry.get() % BITS))
}

impl Extend<EntryNumber> for EntrySet {
    fn extend<I: IntoIterator<Item = EntryNumber>>(&mut self, entries: I) {
        for entry in entries {
            self.insert(entry);
        }
    }
}

impl<'e> Extend<&'e EntryNumber> for EntrySet {
    fn extend<I: IntoIterator<Item = &'e EntryNumber>>(&mut self, entries: I) {
        self.extend(entries.into_iter().copied());
    }
}

impl FromIterator<EntryNumber> for EntrySet {
    fn from_iter<I: IntoIterator<Item = EntryNumber>>(entries: I) -> Self {
        let mut set = Self::default();
        set.extend(entries);
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_entries_is_a_set(
            steps in proptest::collection::vec((0..4u8, prop_oneof![0..200u64, any::<u64>()]), 0..200),
        ) {
            let (mut set, mut expected) = (EntrySet::default(), BTreeSet::new());
            for (step, n) in steps {
                let entry = EntryNumber::new(n);
                match step {
                    0 => prop_assert_eq!(set.remove(entry), expected.remove(&entry)),
                    1 => prop_assert_eq!(set.contains(entry), expected.contains(&entry)),
                    _ => prop_assert_eq!(set.insert(entry), expected.insert(entry)),
                }
                prop_assert_eq!(set.is_empty(), expected.is_empty());
            }
            prop_assert!(set.iter().eq(expected.iter().copied()));
            prop_assert!(set.iter().rev().eq(expected.iter().rev().copied()));
            prop_assert_eq!(expected.into_iter().collect::<EntrySet>(), set);
        }
    }
}
