//! Selecting and reading: what you type to name a place, and what is shown of it: passages, lines, checkpoints.

pub(crate) mod checkpoints;
pub(crate) mod lines;
pub(crate) mod listing;
pub(crate) mod passage;
pub(crate) mod reader;
pub(crate) mod select;
pub(crate) mod status;
pub(crate) mod tools;
