//! Keeps files that undertext writes at a path of the user's choice out of stores, and away from agents' files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, NoPlace, SyncError},
    model::{DATABASE, TRANSCRIPTS, WITNESS},
};

/// Refuses to write a file for the user at a path that is in a store or that is an agent's file.
///
/// Links are followed and every parent folder is checked, so no spelling of a path gets around this.
pub fn check_apart(archive: &Archive, path: &Path) -> Result<(), SyncError> {
    let refuse = |why| Err(SyncError::NoPlace { path: path.to_owned(), why });
    let name = path.file_name().zip(path.parent());
    let Some((name, folder)) = name else { return refuse(NoPlace::NoName) };
    // Without the folder, nothing can be written either.
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

/// Returns true if a folder is a store or is inside one.
fn is_in_store(folder: &Path) -> bool {
    let is_store = |folder: &Path| {
        let has = |name: &&str| folder.join(name).is_file();
        [DATABASE, WITNESS].iter().any(has) && folder.join(TRANSCRIPTS).is_dir()
    };
    folder.ancestors().any(is_store)
}
