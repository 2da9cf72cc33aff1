//! A session as a graph of entries, read from the store only as far as it is asked for.

pub(crate) mod beginning;
pub(crate) mod content;
pub(crate) mod places;
pub(crate) mod recent;
pub(crate) mod replay;
pub(crate) mod view;
