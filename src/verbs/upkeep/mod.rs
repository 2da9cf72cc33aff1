//! Keeping a store whole: checks, repairs, copies, files that are put back, and what calls undertext by itself.

pub(crate) mod attach;
pub(crate) mod bundle;
pub(crate) mod compare;
pub(crate) mod doctor;
pub(crate) mod hook;
pub(crate) mod mend;
pub(crate) mod pack;
pub(crate) mod rebuild;
pub(crate) mod restore;
pub(crate) mod setup;
pub(crate) mod verify;
