//! Matching lines, and the context lines around them. All hits in a text share one copy of its lines.

use std::{
    ops::{Deref, Range},
    sync::Arc,
};

use serde::{Serialize, Serializer};

/// A range of the lines of a text. Other ranges of the same text share the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    text: Arc<[String]>,
    range: Range<usize>,
}

impl Around {
    /// Returns the lines of `text` in `range`, clamped to the end of the text.
    pub(crate) fn new(text: &Arc<[String]>, range: Range<usize>) -> Self {
        let end = range.end.min(text.len());
        Self { text: Arc::clone(text), range: range.start.min(end)..end }
    }
}

impl Deref for Around {
    type Target = [String];

    fn deref(&self) -> &[String] {
        self.text.get(self.range.clone()).unwrap_or_default()
    }
}

impl Serialize for Around {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter())
    }
}

/// A matching line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HitLine {
    /// The number of the line in the text, from 1.
    #[serde(rename = "line")]
    pub n: usize,
    /// The line itself.
    #[serde(rename = "text")]
    pub line: String,
    /// The start and end of each match, as byte offsets in `text`.
    #[serde(serialize_with = "ranges")]
    pub matches: Vec<Range<usize>>,
    /// The lines before the match, if you asked for them with `-C`.
    pub before: Around,
    /// The lines after the match, if you asked for them with `-C`.
    pub after: Around,
}

fn ranges<S: Serializer>(ranges: &[Range<usize>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(ranges.iter().map(|range| [range.start, range.end]))
}
