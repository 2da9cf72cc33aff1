//! The seal of an index of words: how long its file was and when it was written last, kept in a file beside it. What is not as it
//! was sealed was damaged or written by another hand, and is not asked.
//!
//! ```text
//! search.db        length and time of the last write   ─┐
//! search.seal      length and time                     ─┴─ the same: the index is as its writer left it
//! search.db-wal    what was added since; SQLite vouches for each of its pages
//! ```
//!
//! To read all of an index at each search, so as to know that no bit of it changed, takes longer than the search. A disk that
//! tells other bytes than were written is not noticed by this.
//!
//! Invariant: an index file that something else than [`renew`] wrote to does not fit its seal, whenever a program is killed.

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

/// How often a reader looks again while a writer is about to seal, and how long it waits before.
const PATIENCE: u32 = 20;
const A_WHILE: Duration = Duration::from_millis(10);

/// What is sealed: the length, and the time in seconds and nanoseconds.
type Seal = [u8; 24];

/// Returns where the seal of an index is.
pub(crate) fn path(index: &Path) -> PathBuf {
    index.with_file_name(SEAL)
}

/// Returns whether an index is as it was sealed.
pub(crate) fn holds(index: &Path) -> io::Result<bool> {
    for _ in 0..PATIENCE {
        if fits(index)? {
            return Ok(true);
        }
        // What a program writes now is not sealed yet.
        let seal = disk::open(&path(index), Links::Refuse)?;
        match seal.try_lock_shared() {
            Ok(()) => return fits(index),
            Err(TryLockError::WouldBlock) => thread::sleep(A_WHILE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(false)
}

/// Writes to an index, and seals it as it is then; returns whether it did, which it does not while another program does.
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
