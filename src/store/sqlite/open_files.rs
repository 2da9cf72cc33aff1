//! The stores that this process has open. Closing a file releases all locks that the process has on it, whoever took them, and
//! SQLite locks a store this way. So a file of an open store is never opened except by SQLite.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The device and the inode of a file.
pub(super) type FileId = (u64, u64);

/// The open stores, each with its number of connections.
static OPEN: Mutex<BTreeMap<FileId, usize>> = Mutex::new(BTreeMap::new());

/// A store's file, which counts as open until this is dropped, after its connection.
pub(super) struct HeldOpen(Option<FileId>);

impl HeldOpen {
    /// Counts a file as open. Calls `look` first, but only if no connection of this process has the file.
    pub(super) fn of<E>(path: &Path, look: impl FnOnce() -> Result<(), E>) -> Result<Self, E> {
        let mut open = all();
        let file = file_at(path);
        if file.is_none_or(|file| !open.contains_key(&file)) {
            look()?;
        }
        // `look` may have created the file.
        let file = file.or_else(|| file_at(path));
        if let Some(file) = file {
            *open.entry(file).or_default() += 1;
        }
        Ok(Self(file))
    }
}

impl Drop for HeldOpen {
    fn drop(&mut self) {
        let Some(file) = self.0 else { return };
        let mut open = all();
        if let Some(count) = open.get_mut(&file) {
            *count -= 1;
            if *count == 0 {
                open.remove(&file);
            }
        }
    }
}

fn all() -> MutexGuard<'static, BTreeMap<FileId, usize>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the identity of the file at a path, if the system reports it. Links are not followed.
pub(super) fn file_at(path: &Path) -> Option<FileId> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}
