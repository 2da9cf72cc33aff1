//! Keeping a store healthy: checks, repairs, copies, restored files, and the hooks with which agents call undertext.

pub(crate) mod attach;
pub(crate) mod bundle;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod mend;
pub(crate) mod pack;
pub(crate) mod rebuild;
pub(crate) mod restore;
pub(crate) mod setup;
pub(crate) mod verify;
