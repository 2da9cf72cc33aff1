//! Ownership of stores: only the owner changes a store, so `sudo` cannot put files of another user into it; and a new store gets
//! a folder of its own.

use std::{fs, io::ErrorKind, os::unix::fs::MetadataExt, path::Path};

use crate::{
    archive::{NoPlace, SyncError},
    disk,
    model::{DATABASE, WITNESS},
    store::has_others,
};

/// Refuses to change a store that belongs to another user. Refuses root if the nearest existing folder belongs to another user.
pub(crate) fn check(root: &Path) -> Result<(), SyncError> {
    let own = rustix::process::geteuid().as_raw();
    let foreign = |path: &Path, owner: u32| {
        Err(SyncError::Foreign { path: path.to_owned(), owner: name_of(owner) })
    };
    for part in [root.join(DATABASE), root.to_owned()] {
        match fs::metadata(&part) {
            Ok(meta) if meta.uid() != own => return foreign(root, meta.uid()),
            Err(error)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(SyncError::at(&part)(error));
            }
            _ => {}
        }
    }
    if own != 0 {
        return Ok(());
    }
    let above = root.ancestors().find_map(|above| Some((above, fs::metadata(above).ok()?)));
    match above {
        Some((above, meta)) if meta.uid() != own => foreign(above, meta.uid()),
        _ => Ok(()),
    }
}

fn name_of(user: u32) -> String {
    let all = disk::read(Path::new("/etc/passwd"), disk::TEXT).unwrap_or_default();
    let all = String::from_utf8_lossy(&all);
    let name = all.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user.to_string()).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("user {user}"))
}

/// Refuses to create a store among other files, to protect a folder that was named by mistake.
pub(crate) fn check_place(root: &Path) -> Result<(), SyncError> {
    let is_there = |name: &&str| fs::symlink_metadata(root.join(name)).is_ok();
    if [DATABASE, WITNESS].iter().any(is_there) || !has_others(root) {
        return Ok(());
    }
    Err(SyncError::NoPlace { path: root.to_owned(), why: NoPlace::Taken })
}
