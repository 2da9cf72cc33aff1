//! Full-text search over all sessions.

pub(crate) mod hits;
pub(crate) mod index;
pub(crate) mod members;
pub(crate) mod pieces;
pub(crate) mod query;
pub(crate) mod ranking;
pub(crate) mod search;
pub(crate) mod threads;
pub(crate) mod words;
