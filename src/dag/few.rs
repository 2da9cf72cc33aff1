//! Short lists: most nodes have one parent, which needs no allocation.

use std::ops::Deref;

/// A list of indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Few {
    /// Exactly one.
    One(usize),
    /// None or several.
    Others(Vec<usize>),
}

impl Few {
    /// Appends an index.
    pub fn push(&mut self, index: usize) {
        match self {
            Self::One(first) => *self = Self::Others(vec![*first, index]),
            Self::Others(none) if none.is_empty() => *self = Self::One(index),
            Self::Others(several) => several.push(index),
        }
    }
}

impl Default for Few {
    fn default() -> Self {
        Self::Others(Vec::new())
    }
}

impl Deref for Few {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        match self {
            Self::One(index) => std::slice::from_ref(index),
            Self::Others(others) => others,
        }
    }
}

impl FromIterator<usize> for Few {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut few = Self::default();
        for index in indices {
            few.push(index);
        }
        few
    }
}
