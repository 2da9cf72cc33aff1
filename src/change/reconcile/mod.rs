//! Reconcile: makes a session and its files agree before the session is changed.

pub(crate) mod agent_file;
pub(crate) mod catch_up;
pub(crate) mod comeback;
pub(crate) mod shelf;

pub(crate) use catch_up::catch_up_all;
pub use catch_up::{follow, live_state};
