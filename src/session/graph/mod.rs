//! A session as a graph of entries, read from the store on demand.

pub(crate) mod beginning;
pub(crate) mod content;
pub(crate) mod names;
pub(crate) mod places;
pub(crate) mod recent;
pub(crate) mod replay;
pub(crate) mod view;
