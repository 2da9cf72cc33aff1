//! Live files: the only code that writes a file that an agent reads.
//!
//! An owned file is written after its operation is committed, so that it follows the store; its modification time is set to
//! the operation's, to the millisecond, which no other writer does: a file of the expected length with that time is the one
//! that was left there.
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
//! Which files may be written says [`Writable`]: it alone makes a [`WritableFile`], and nothing is written but through one.
//!
//! Invariant: a file of an agent is only ever appended to, linked, or renamed over by a complete one of the same owner.

mod file;
mod loaded;
mod writable;

pub use file::{Fresh, WritableFile};
pub use loaded::{Holder, holders};
pub use writable::{Denied, TRANSCRIPTS, Writable};

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::model::Timestamp;

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its length.
    pub length: u64,
    /// Its inode.
    pub inode: u64,
    /// Its modification time, if that is a whole millisecond.
    pub stamp: Option<Timestamp>,
}

impl From<&fs::Metadata> for Seen {
    fn from(meta: &fs::Metadata) -> Self {
        let whole = meta.mtime_nsec() % 1_000_000 == 0;
        let millis =
            meta.mtime().saturating_mul(1000).saturating_add(meta.mtime_nsec() / 1_000_000);
        Self { length: meta.len(), inode: meta.ino(), stamp: whole.then_some(Timestamp(millis)) }
    }
}

/// Returns what is known of a file, if it is there.
pub fn look(path: &Path) -> io::Result<Option<Seen>> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(Seen::from(&meta))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The name beside a live file under which its successor is written.
pub fn fresh_path(live: &Path) -> PathBuf {
    live.with_file_name(beside(live.file_name().unwrap_or_default(), NEW))
}

/// Returns whether a file of this name was set aside here.
pub fn is_aside(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once(MARK).is_some_and(|(_, what)| {
        what == NEW || (!what.is_empty() && what.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// What stands between a live file's name and the number of a rotation.
const MARK: &str = ".undertext-";
/// What stands there for the successor.
const NEW: &str = "new";

fn beside(name: &OsStr, what: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(MARK);
    name.push(what);
    name
}
