//! The index of words, a file of its own next to the store.

pub(crate) mod seal;
pub(crate) mod words;
