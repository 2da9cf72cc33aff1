//! Held open: the stores that this process has open. To close a file ends all locks that the process has on it, whoever took
//! them, and SQLite holds a store by such locks: a store that is open is not opened by another way beside SQLite's.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The device and the inode of a file.
pub(super) type FileId = (u64, u64);

/// The stores that are open, each with how many connections have it.
static OPEN: Mutex<BTreeMap<FileId, usize>> = Mutex::new(BTreeMap::new());

/// A store's file, which counts as open until this is dropped: after the connection that has it.
pub(super) struct HeldOpen(Option<FileId>);

impl HeldOpen {
    /// Counts a file as open; `look` looks at it before, which no connection of this process has then.
    pub(super) fn of<E>(path: &Path, look: impl FnOnce() -> Result<(), E>) -> Result<Self, E> {
        let mut open = all();
        let file = file_at(path);
        if file.is_none_or(|file| !open.contains_key(&file)) {
            look()?;
        }
        // What is not there yet may be made by this look.
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

/// Returns which file is at a path, if the system shows it; what a link leads to is another one.
pub(super) fn file_at(path: &Path) -> Option<FileId> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}
