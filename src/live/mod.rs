//! Live files: the only code that writes a file that an agent reads.
//!
//! An owned file is written after its operation is committed, so that it follows the store; its modification time is set to
//! the operation's, to the millisecond, which no other writer does: a file of the expected length with that time is the
//! one that the store left there.
//!
//! A rotation never leaves the name without a file:
//!
//! ```text
//! 1  <live>.undertext-new   written, synced
//! 2  commit                 (the caller's)
//! 3  link   <live> -> <live>.undertext-1
//! 4  rename <live>.undertext-new over <live>
//! 5  sync the folder
//! ```
//!
//! [`Writable`] says which files may be written: it alone makes a [`WritableFile`], and all writing goes through one.
//!
//! Invariant: a file of an agent is only ever appended to, linked, or renamed over by a complete one of the same owner; what is
//! cut off is the half of an own line that could not be written whole.

mod file;
mod index;
mod leftovers;
mod loaded;
mod name;
mod seen;
mod settings;
mod writable;

pub use file::{Fresh, WritableFile};
pub use index::{Index, Lock, Locking, is_same};
pub use leftovers::{Leftovers, Writing};
pub(crate) use loaded::flocks;
pub use loaded::{Holder, How, OpenSession, holders, open_sessions};
pub(crate) use name::{fresh_path, placed, set_aside_from};
pub use name::{is_aside, is_fresh, temporary_path};
pub use seen::{Seen, look};
pub use settings::{exchange_settings, settings};
pub(crate) use writable::real;
pub use writable::{Denied, Writable};
