//! The stamp of a file: it changes when the file is replaced or written to.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use super::is_absent;

/// Identifies an unchanged file: its inode, length and modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its inode.
    pub inode: u64,
    /// Its length.
    pub length: u64,
    /// Its modification time: seconds and nanoseconds.
    pub modified: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of the file at a path, following links, if it exists.
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
