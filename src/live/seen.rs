//! The length, inode and time of a file, found without reading it.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use crate::{disk, model::Timestamp};

/// The length, inode and time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its length.
    pub length: u64,
    /// Its inode.
    pub inode: u64,
    /// Its modification time, if it is a whole millisecond.
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

/// Returns the length, inode and time of a file, if it exists.
pub fn look(path: &Path) -> io::Result<Option<Seen>> {
    match fs::metadata(path) {
        Ok(meta) => Ok(Some(Seen::from(&meta))),
        Err(error) if disk::is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}
