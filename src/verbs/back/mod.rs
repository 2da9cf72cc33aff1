//! Going back: reverts, undo, branches, checkpoints, and reports of where a session landed.

pub(crate) mod branch;
pub(crate) mod checkpoint;
pub(crate) mod landing;
pub(crate) mod later;
pub(crate) mod revert;
pub(crate) mod target;
pub(crate) mod undo;
