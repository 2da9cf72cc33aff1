//! A text that is cut: where, the words in place of the rest, and its size before and after.

use std::ops::AddAssign;

use serde::{Serialize, Serializer};

/// A cut in a text. Characters are Unicode scalar values: counts, displays and reports agree everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// How many bytes of the text stay: a character ends there.
    pub at: usize,
    /// How many characters these bytes are.
    pub kept: usize,
    /// How many characters the text has.
    pub whole: usize,
    /// The text that comes after them.
    pub suffix: String,
}

impl Cut {
    /// Returns how many characters are not shown.
    pub fn hidden(&self) -> usize {
        self.whole - self.kept
    }

    /// Returns the text as it is shown.
    pub fn shown(&self, text: &str) -> String {
        format!("{}{}", text.get(..self.at).unwrap_or(text), self.suffix)
    }
}

/// A size before a cut and after it, in characters or in tokens; in JSON a list of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resized {
    /// How much it was.
    pub before: u64,
    /// How much it is.
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
