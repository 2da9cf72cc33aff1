//! A cache of the lines and strings that a connection has added, by their full hashes.

use std::collections::BTreeMap;

use crate::store::sqlite::bytes::body::Place;

/// How many lines, and how many strings, are cached.
const MOST: usize = 1 << 20;

/// A hash as integers, which compare faster than bytes.
type Words = [u64; 4];

fn words(hash: &[u8; 32]) -> Words {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(hash.as_chunks().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    words
}

/// The lines and strings that were added.
#[derive(Default)]
pub(crate) struct Known {
    texts: BTreeMap<Words, Place>,
    lines: BTreeMap<Words, i64>,
    /// Whether these are all lines and strings of the store.
    is_all: bool,
}

impl Known {
    /// Begins a transaction, given the store's last line: other programs may have added lines.
    pub(crate) fn begin(&mut self, last: i64) {
        if last == 0 {
            *self = Self { is_all: true, ..Self::default() };
        }
        self.is_all &= i64::try_from(self.lines.len()) == Ok(last);
    }

    /// Forgets the lines, after a transaction that is not an import.
    pub(crate) fn forget_lines(&mut self) {
        self.lines.clear();
        self.is_all = false;
    }

    /// Returns true if the store has no other lines and strings.
    pub(crate) fn is_all(&self) -> bool {
        self.is_all
    }

    /// Returns the number of a line.
    pub(crate) fn line(&self, hash: &[u8; 32]) -> Option<i64> {
        self.lines.get(&words(hash)).copied()
    }

    /// Returns the place of a string.
    pub(crate) fn text(&self, hash: &[u8; 32]) -> Option<Place> {
        self.texts.get(&words(hash)).copied()
    }

    pub(crate) fn add_line(&mut self, hash: &[u8; 32], line: i64) {
        if self.lines.len() >= MOST {
            self.forget_lines();
        }
        self.lines.insert(words(hash), line);
    }

    pub(crate) fn add_text(&mut self, hash: &[u8; 32], place: Place) {
        if self.texts.len() >= MOST {
            self.texts.clear();
            self.is_all = false;
        }
        self.texts.insert(words(hash), place);
    }
}
