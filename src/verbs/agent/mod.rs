//! For programs that are agents themselves: new sessions, turns, and a handle that stays open.

pub(crate) mod append;
pub(crate) mod dmail;
pub(crate) mod gate;
pub(crate) mod handle;
pub(crate) mod handoff;
pub(crate) mod new;
pub(crate) mod turn;
