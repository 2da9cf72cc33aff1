//! Live files: the only code that writes a file that an agent reads.
//!
//! A file that the store owns is written after its operation is committed, so it follows the store. Its modification time is set
//! to the operation's time in whole milliseconds, which no other program does: a file with that time and the expected length is
//! the one that the store wrote.
//!
//! During a rotation, the live name always exists:
//!
//! ```text
//! 1  <live>.undertext-new   written, synced
//! 2  commit                 (by the caller)
//! 3  link   <live> -> <live>.undertext-1
//! 4  rename <live>.undertext-new over <live>
//! 5  sync the folder
//! ```
//!
//! [`Writable`] decides which files may be written: only it creates a [`WritableFile`], and all writes go through one.
//!
//! Invariant: an agent's file is only ever appended to, linked, or renamed over by a complete file of the same owner. The only
//! bytes ever truncated are those of undertext's own failed write.

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
