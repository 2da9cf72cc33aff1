//! The word index, a separate file next to the store.

pub(crate) mod seal;
pub(crate) mod words;
