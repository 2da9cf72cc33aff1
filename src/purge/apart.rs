//! What a person has written into a file or a folder of their choice lies apart from stores, and from the files that agents read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, NoPlace, SyncError},
    model::{DATABASE, TRANSCRIPTS, WITNESS},
};

/// Refuses a path at which a file is to be written for a person, if it is in a store, or has a file that an agent reads.
///
/// Links are followed, and each folder above is looked at where it is, so that no spelling of a path leads past this.
pub fn check_apart(archive: &Archive, path: &Path) -> Result<(), SyncError> {
    let refuse = |why| Err(SyncError::NoPlace { path: path.to_owned(), why });
    let name = path.file_name().zip(path.parent());
    let Some((name, folder)) = name else { return refuse(NoPlace::NoName) };
    // Where no folder is, nothing is written either.
    let Ok(folder) = fs::canonicalize(folder) else { return Ok(()) };
    if archive.root().is_some_and(|root| folder.starts_with(root)) || is_in_store(&folder) {
        return refuse(NoPlace::InStore);
    }
    let file: Option<PathBuf> = fs::canonicalize(folder.join(name)).ok();
    let Some(file) = file.filter(|file| file.is_file()) else { return Ok(()) };
    let is_known = !archive.store().files(&archive.place_of(&file))?.is_empty();
    if is_known || archive.writable.is_agents(&file) {
        return refuse(NoPlace::AgentsFile);
    }
    Ok(())
}

/// Returns whether a folder is that of a store, or is in one.
fn is_in_store(folder: &Path) -> bool {
    let is_store = |folder: &Path| {
        let has = |name: &&str| folder.join(name).is_file();
        [DATABASE, WITNESS].iter().any(has) && folder.join(TRANSCRIPTS).is_dir()
    };
    folder.ancestors().any(is_store)
}
