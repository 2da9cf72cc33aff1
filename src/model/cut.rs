//! A text that is cut: where, and the words in the place of the rest.

/// A cut in a text. Characters are Unicode scalar values: counts, displays and reports agree everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// How many bytes of the text stay: a character ends there.
    pub at: usize,
    /// How many characters these bytes are.
    pub kept: usize,
    /// How many characters the text has.
    pub whole: usize,
    /// The text that stands behind them.
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
