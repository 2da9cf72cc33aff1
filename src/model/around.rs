//! The lines around one of a text: those of a text that has the same words again and again are kept once.

use std::{
    ops::{Deref, Range},
    sync::Arc,
};

use serde::{Serialize, Serializer};

/// Some lines of a text, which others of the same text share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    text: Arc<[String]>,
    range: Range<usize>,
}

impl Around {
    /// Returns the lines of a text from one to before another, as far as there are any.
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
