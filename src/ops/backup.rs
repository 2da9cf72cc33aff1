//! Backup: a checked copy of an archive in a folder of its own, which is a store.
//!
//! Invariant: a folder has the name that was asked for only when all of it is there, was checked and is safe from a power
//! cut. What was cut short has another name, which says so.

use std::{
    ffi::OsStr,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::{
    disk::{self, Links},
    live::{Leftovers, temporary_path},
    model::{DATABASE, LOG, SHARED, TRANSCRIPTS},
    ops::{
        OpsError,
        verify::{Verifying, verify},
    },
    report::{BackedUp, Finding, Severity},
    store::Access,
    sync::{self, Archive, Machine, NoPlace, SyncError, Waiting},
};

/// How far a backup has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// How many bytes of the store are copied, and how many there are.
    Store(u64, u64),
    /// The copy is read again, and every hash computed: of how many sessions, and how many there are.
    Checking(u64, u64),
}

/// Copies the archive in a folder into another folder, which is empty or not there yet, while other programs go on with it; it
/// waits for one that changes the archive.
pub fn backup(
    root: &Path,
    to: &Path,
    waiting: &Waiting,
    leftovers: Option<&Leftovers>,
    each: &mut dyn FnMut(Copying),
) -> Result<BackedUp, OpsError> {
    let root = fs::canonicalize(root).map_err(SyncError::at(root))?;
    let to = place(&root, to)?;
    let folder = to.parent().unwrap_or(Path::new("/"));
    let fresh = temporary_path(&to);
    if fs::symlink_metadata(&fresh).is_ok() {
        return Err(SyncError::NoPlace { path: fresh, why: NoPlace::Unfinished }.into());
    }
    // Who cannot write to the state folder can make a backup all the same.
    let _writing = leftovers.and_then(|leftovers| leftovers.note(&fresh).ok());
    let made = fill(&root, &fresh, waiting, each).and_then(|mut made| {
        fs::rename(&fresh, &to).map_err(SyncError::at(&to))?;
        disk::sync_folder(folder).map_err(SyncError::at(folder))?;
        made.path.clone_from(&to);
        Ok(made)
    });
    if made.is_err() {
        // The first error is the one to tell.
        let _ = fs::remove_dir_all(&fresh);
    }
    made
}

/// Returns where a backup is made, without a link on the way to it.
fn place(root: &Path, to: &Path) -> Result<PathBuf, OpsError> {
    let refuse = |why| Err(SyncError::NoPlace { path: to.to_owned(), why }.into());
    let Some(name) = to.file_name() else { return refuse(NoPlace::NoName) };
    let parent = to.parent().filter(|parent| *parent != OsStr::new("")).unwrap_or(Path::new("."));
    let found = fs::canonicalize(parent);
    let parent = found.map_err(SyncError::at(parent))?;
    let place = parent.join(name);
    let place = fs::canonicalize(&place).unwrap_or(place);
    if place.starts_with(root) || sync::is_in_store(&parent) {
        return refuse(NoPlace::InStore);
    }
    match fs::read_dir(&place).map(|mut names| names.next().is_none()) {
        Ok(true) => Ok(place),
        Ok(false) => refuse(NoPlace::NotEmpty),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(place),
        Err(error) if error.kind() == ErrorKind::NotADirectory => refuse(NoPlace::NotAFolder),
        Err(source) => Err(SyncError::Io { path: place, source }.into()),
    }
}

/// Copies the archive into a new folder, checks the copy, and waits until it is on the disk.
fn fill(
    root: &Path,
    fresh: &Path,
    waiting: &Waiting,
    each: &mut dyn FnMut(Copying),
) -> Result<BackedUp, OpsError> {
    let mut bytes = 0;
    let (files, left_out) = sync::copy(root, fresh, waiting, &mut |done, all| {
        bytes = all;
        each(Copying::Store(done, all));
    })?;
    let copy = Archive::open(fresh, Access::Read, Box::new(Machine))?;
    let mut first = None;
    let verified = verify(&copy, None, &mut |told| match told {
        Verifying::Session(done, all) => each(Copying::Checking(done, all)),
        Verifying::Found(Finding { severity, item, problem, .. }) => {
            if *severity == Severity::Damage && first.is_none() {
                first = Some(format!("{item}: {problem}"));
            }
        }
    })?;
    if let Some(first) = first {
        return Err(OpsError::NoBackup { damaged: verified.damaged, first });
    }
    drop(copy);
    let database = fresh.join(DATABASE);
    // Reading has left an empty log, and an index of it.
    for name in [LOG, SHARED] {
        match fs::remove_file(fresh.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(SyncError::at(&fresh.join(name))(error).into());
            }
            _ => {}
        }
    }
    let synced = disk::open(&database, Links::Refuse).and_then(|file| disk::sync_data(&file));
    synced.map_err(SyncError::at(&database))?;
    for folder in [&fresh.join(TRANSCRIPTS), fresh] {
        disk::sync_folder(folder).map_err(SyncError::at(folder))?;
    }
    Ok(BackedUp {
        path: fresh.to_owned(),
        sessions: verified.sessions,
        operations: verified.operations,
        entries: verified.entries,
        files,
        bytes,
        left_out,
    })
}
