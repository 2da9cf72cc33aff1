//! Tombstones: what was taken out of a session's lines, found by entry and by line however much it is.

use std::{collections::BTreeMap, fmt, ops::Deref, sync::OnceLock, vec};

use super::{EntryNumber, LineId, Malformed, Tombstone, tagged::Field};

/// The lines of a session that were taken out, in the order in which they were.
#[derive(Clone, Default)]
pub struct Tombstones {
    all: Vec<Tombstone>,
    /// Where they are found, once it was asked for.
    index: OnceLock<Index>,
}

#[derive(Clone)]
struct Index {
    /// The newest one of each entry.
    newest: BTreeMap<EntryNumber, usize>,
    /// The first entry of each line that came and has another one in its place.
    came: BTreeMap<LineId, EntryNumber>,
}

impl Tombstones {
    /// Adds some.
    pub fn extend(&mut self, more: &[Tombstone]) {
        if !more.is_empty() {
            self.all.extend_from_slice(more);
            self.index.take();
        }
    }

    /// Returns the newest one of an entry.
    pub fn newest(&self, entry: EntryNumber) -> Option<&Tombstone> {
        self.all.get(*self.index().newest.get(&entry)?)
    }

    /// Returns the newest one of an entry for which this line came, and which has another one in its place.
    pub fn of_line(&self, line: LineId) -> Option<&Tombstone> {
        self.newest(*self.index().came.get(&line)?)
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let came = |one: &Tombstone| one.line.filter(|_| one.covered.is_some());
            let newest = self.all.iter().enumerate().map(|(at, one)| (one.entry, at));
            let first = self.all.iter().rev().filter_map(|one| Some((came(one)?, one.entry)));
            Index { newest: newest.collect(), came: first.collect() }
        })
    }
}

impl fmt::Debug for Tombstones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.all).finish()
    }
}

impl Deref for Tombstones {
    type Target = [Tombstone];

    fn deref(&self) -> &[Tombstone] {
        &self.all
    }
}

impl Field for Tombstones {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        self.all.put(tag, out);
    }

    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
        self.index.take();
        self.all.take(payload, unknown)
    }
}

impl IntoIterator for Tombstones {
    type Item = Tombstone;
    type IntoIter = vec::IntoIter<Tombstone>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

impl PartialEq for Tombstones {
    fn eq(&self, other: &Self) -> bool {
        self.all == other.all
    }
}

impl Eq for Tombstones {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_its_newest_one_and_a_line_its_first() {
        let line = |byte| LineId::of(&[byte]);
        let one = |n, came, covered: Option<u8>| Tombstone {
            entry: EntryNumber::new(n),
            line: Some(line(came)),
            covered: covered.map(line),
            ..Tombstone::default()
        };
        let all = [one(2, 7, None), one(2, 7, Some(9)), one(1, 7, Some(8)), one(1, 7, Some(6))];
        let mut tombstones = Tombstones::default();
        tombstones.extend(&all[..3]);
        assert_eq!(tombstones.newest(EntryNumber::new(1)), Some(&all[2]));
        tombstones.extend(&all[3..]);
        assert_eq!(tombstones.newest(EntryNumber::new(1)), Some(&all[3]));
        assert_eq!(tombstones.newest(EntryNumber::new(3)), None);
        assert_eq!(tombstones.of_line(line(7)), Some(&all[1]));
        assert_eq!(tombstones.of_line(line(9)), None);
    }
}
