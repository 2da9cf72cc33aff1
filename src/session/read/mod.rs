//! What a person names of a session, and what of it is shown: places, passages, lines, checkpoints.

pub(crate) mod checkpoints;
pub(crate) mod lines;
pub(crate) mod listing;
pub(crate) mod passage;
pub(crate) mod reader;
pub(crate) mod select;
pub(crate) mod status;
pub(crate) mod tools;
