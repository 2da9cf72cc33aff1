//! Context lines around a hit. All hits in a text share one copy of its lines.

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
