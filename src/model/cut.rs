//! Cuts in a text: the offset, the words that replace the rest, and sizes before and after.

use std::ops::AddAssign;

use serde::{Serialize, Serializer};

/// A cut in a text. Characters are Unicode scalar values, so counts, displays and reports agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The offset of the cut in bytes, on a character boundary.
    pub at: usize,
    /// The number of characters before the cut.
    pub kept: usize,
    /// The number of characters of the whole text.
    pub whole: usize,
    /// The words that replace the rest.
    pub suffix: String,
}

impl Cut {
    /// Returns the number of characters that were cut off.
    pub fn hidden(&self) -> usize {
        self.whole - self.kept
    }

    /// Returns the text up to the cut, followed by the suffix.
    pub fn shown(&self, text: &str) -> String {
        format!("{}{}", text.get(..self.at).unwrap_or(text), self.suffix)
    }
}

/// A size before and after a cut, in characters or tokens; in JSON, a list of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resized {
    /// The size before.
    pub before: u64,
    /// The size after.
    pub after: u64,
}

impl AddAssign for Resized {
    fn add_assign(&mut self, other: Self) {
        self.before += other.before;
        self.after += other.after;
    }
}

impl Serialize for Resized {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.before, self.after).serialize(to)
    }
}
