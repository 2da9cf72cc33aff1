//! The lock of an archive: one program at a time changes it.

use std::{
    fs::File,
    io::{self, ErrorKind},
    path::Path,
};

use rustix::fs::{CWD, OFlags};

use crate::disk::{self, Disk, Links};

/// Waits until no other program changes the archive in a folder, and keeps the others out while the answer lives.
pub(crate) fn lock(disk: &dyn Disk, root: &Path) -> io::Result<File> {
    disk.lock(&root.join(NAME))
}

/// Locks a folder that may hold no archive, and makes nothing there.
pub(crate) fn lock_if_there(root: &Path) -> io::Result<Option<File>> {
    match disk::open_at(CWD, &root.join(NAME), Links::Refuse, OFlags::WRONLY) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.and_then(|file| file.lock().map(|()| Some(file))),
    }
}

const NAME: &str = "lock";
