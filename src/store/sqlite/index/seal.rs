//! The seal of a word index: a file next to it with the length and time of its last write. An index that does not match its seal
//! was damaged or written by another program, and is not used.
//!
//! ```text
//! search.db        length and time of the last write   ─┐
//! search.seal      length and time                     ─┴─ equal: the index is as its writer left it
//! search.db-wal    what was added since; SQLite verifies each of its pages
//! ```
//!
//! Reading the whole index in each search to detect every changed bit would take longer than the search. So a disk that returns
//! wrong bytes is not detected.
//!
//! Invariant: an index file never matches its seal if anything but [`renew`] wrote to it, even after a crash.

use std::{
    fs::{Metadata, TryLockError},
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use crate::{
    disk::{self, Links},
    model::SEAL,
    store::StoreError,
};

/// How often a reader looks again while a writer is sealing, and how long it waits each time.
const PATIENCE: u32 = 20;
const A_WHILE: Duration = Duration::from_millis(10);

/// The sealed values: length, seconds and nanoseconds.
type Seal = [u8; 24];

/// Returns the path of an index's seal.
pub(crate) fn path(index: &Path) -> PathBuf {
    index.with_file_name(SEAL)
}

/// Returns true if an index matches its seal.
pub(crate) fn holds(index: &Path) -> io::Result<bool> {
    for _ in 0..PATIENCE {
        if fits(index)? {
            return Ok(true);
        }
        // A program may be writing right now and not have sealed yet.
        let seal = disk::open(&path(index), Links::Refuse)?;
        match seal.try_lock_shared() {
            Ok(()) => return fits(index),
            Err(TryLockError::WouldBlock) => thread::sleep(A_WHILE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// Writes to an index and seals it. Returns false, without writing, while another program does so.
pub(crate) fn renew(
    index: &Path,
    write: impl FnOnce() -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    let path = path(index);
    let io = StoreError::at(&path);
    let seal = disk::open_or_make(&path).map_err(io)?;
    match seal.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(false),
        Err(TryLockError::Error(error)) => return Err(io(error)),
    }
    write()?;
    let now = index.symlink_metadata().map_err(io)?;
    disk::write_at(&seal, &of(&now), 0).map_err(io)?;
    Ok(true)
}

fn fits(index: &Path) -> io::Result<bool> {
    let mut sealed = Seal::default();
    let mut seal = disk::open(&path(index), Links::Refuse)?;
    match seal.read_exact(&mut sealed) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        read => Ok(read.is_ok() && sealed == of(&index.symlink_metadata()?)),
    }
}

fn of(file: &Metadata) -> Seal {
    let mut seal = Seal::default();
    let numbers = [file.len(), file.mtime().cast_unsigned(), file.mtime_nsec().cast_unsigned()];
    for (place, number) in seal.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    seal
}
