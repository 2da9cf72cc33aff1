//! Session files on disk: finds them, identifies them, and compares them with what a session has of them.
//!
//! Invariants: nothing here changes a session, and only `file` and `live_file` return files that may be written.

pub(crate) mod at;
pub(crate) mod deletion;
pub(crate) mod file;
pub(crate) mod judge;
pub(crate) mod live_file;
pub(crate) mod look;
pub(crate) mod mover;
pub(crate) mod numbers;
pub(crate) mod occupancy;
pub(crate) mod rotations;
pub(crate) mod scan;
pub(crate) mod siblings;
pub(crate) mod sources;
pub(crate) mod states;

pub(crate) use deletion::missing;
pub(crate) use live_file::{mark, may_be_behind};
pub use occupancy::open_in;
pub use rotations::rotations;
pub(crate) use sources::cover_packed;
pub use sources::{Source, file_of_session, sources};
pub use states::generations;
