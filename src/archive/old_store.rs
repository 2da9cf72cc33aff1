//! Stores no longer in use: damaged ones that a repair replaced, and leftovers of an interrupted repair.

use std::{
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use crate::model::{DATABASE, MENDING, WITNESS, is_damaged_folder};

/// Returns the folders with damaged stores that a repair replaced, and the folder that an interrupted repair left unfinished.
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

/// Removes an unused store. Its witness goes first: a witness left without a database would look like that of the store in use.
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
