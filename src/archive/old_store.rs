//! Stores that are in use no more: damaged ones that a repair has replaced, and what a repair that was cut short left.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use crate::model::{DATABASE, MENDING, WITNESS, is_damaged_folder};

/// Returns the folders in which damaged stores are kept, and what a mending that was cut short made of one.
pub(crate) fn set_aside(root: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(root)?.collect::<io::Result<Vec<_>>>()?.into_iter();
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    let is_one = |path: &PathBuf| {
        let is_damaged = path.file_name().is_some_and(is_damaged_folder);
        let is_unfinished = path.ends_with(MENDING) && is_there(&path.join(DATABASE));
        (is_damaged || is_unfinished) && fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
    found.sort();
    Ok(found)
}

/// Removes a store that is in no use: its witness first, for one that is left alone of a fresh store is that of one which took its place.
pub(crate) fn clear(mending: &Path) -> io::Result<()> {
    remove_file(&mending.join(WITNESS))?;
    remove(mending)
}

pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
