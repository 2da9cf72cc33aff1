//! Tombstones: the redacted lines of a session, indexed by entry and by line.

use std::{collections::BTreeMap, ops::Deref};

use super::{EntryNumber, LineId, Malformed, Tombstone, tagged::Field};

/// The redacted lines of a session, in the order of redaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tombstones {
    all: Vec<Tombstone>,
    /// The newest tombstone of each entry.
    newest: BTreeMap<EntryNumber, usize>,
    /// The first entry of each original line that was replaced.
    came: BTreeMap<LineId, EntryNumber>,
}

impl Tombstones {
    /// Appends tombstones.
    pub fn extend(&mut self, more: &[Tombstone]) {
        for one in more {
            self.newest.insert(one.entry, self.all.len());
            if let (Some(line), Some(_)) = (one.line, one.covered) {
                self.came.entry(line).or_insert(one.entry);
            }
            self.all.push(one.clone());
        }
    }

    /// Returns the newest tombstone of an entry.
    pub fn newest(&self, entry: EntryNumber) -> Option<&Tombstone> {
        self.all.get(*self.newest.get(&entry)?)
    }

    /// Returns the newest tombstone of the entry whose original line this is.
    pub fn of_line(&self, line: LineId) -> Option<&Tombstone> {
        self.newest(*self.came.get(&line)?)
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
        let mut one: Vec<Tombstone> = Vec::new();
        one.take(payload, unknown)?;
        self.extend(&one);
        Ok(())
    }
}

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
