//! The stamp of a file, which differs once another file takes its place or bytes are written to it.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use super::is_absent;

/// What tells that a file did not change: its inode, its length and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its inode.
    pub inode: u64,
    /// Its length.
    pub length: u64,
    /// When it was modified: seconds, and nanoseconds behind them.
    pub modified: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of the file that is at a path or that a link there leads to, if there is one.
    pub fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Err(error) if is_absent(&error) => Ok(None),
            meta => Ok(Some(Self::from(&meta?))),
        }
    }
}

impl From<&Metadata> for Stamp {
    fn from(meta: &Metadata) -> Self {
        let modified = (meta.mtime(), meta.mtime_nsec());
        Self { inode: meta.ino(), length: meta.len(), modified }
    }
}
