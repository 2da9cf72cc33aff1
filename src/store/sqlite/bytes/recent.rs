//! What a connection knows by heart: the lines and the strings that it added, by their whole hashes.

use std::collections::BTreeMap;

use crate::store::sqlite::bytes::body::Place;

/// How many lines, and how many strings, are remembered.
const MOST: usize = 1 << 20;

/// A hash as numbers, which are compared faster than its bytes.
type Words = [u64; 4];

fn words(hash: &[u8; 32]) -> Words {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(hash.as_chunks().0) {
        *word = u64::from_be_bytes(*bytes);
    }
    words
}

/// Lines and strings that were added.
#[derive(Default)]
pub(crate) struct Known {
    texts: BTreeMap<Words, Place>,
    lines: BTreeMap<Words, i64>,
    /// Whether these are every line and every string of the store.
    is_all: bool,
}

impl Known {
    /// Begins a transaction on a store with this last line: other programs may have added lines.
    pub(crate) fn begin(&mut self, last: i64) {
        if last == 0 {
            *self = Self { is_all: true, ..Self::default() };
        }
        self.is_all &= i64::try_from(self.lines.len()) == Ok(last);
    }

    /// Forgets the lines, after a transaction that is no import.
    pub(crate) fn forget_lines(&mut self) {
        self.lines.clear();
        self.is_all = false;
    }

    /// Returns whether the store has no line and no string but these.
    pub(crate) fn is_all(&self) -> bool {
        self.is_all
    }

    /// Returns the number of a line.
    pub(crate) fn line(&self, hash: &[u8; 32]) -> Option<i64> {
        self.lines.get(&words(hash)).copied()
    }

    /// Returns where a string is.
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
