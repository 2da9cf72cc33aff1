//! Leftovers: files that commands write under a temporary name wherever the user wants them, such as exports and backups, and
//! that remain if the command is killed.
//!
//! ```text
//! <state>/unfinished/<process>-<n>     the path of a file that a process is writing; locked by the process
//! ```
//!
//! Invariant: a file is only deleted if a note of this user names it, no process locks that note, and its name is one that
//! undertext gives to temporary files. Links are never followed.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind, Write},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use super::name::is_temporary;
use crate::disk::{self, Links};

/// The maximum number of notes of one process.
const NOTES: u64 = 1_000;

/// The leftovers of a user's commands.
#[derive(Clone, Debug)]
pub struct Leftovers {
    folder: PathBuf,
}

/// A note about a file that this process is writing; removed on drop.
#[derive(Debug)]
pub struct Writing {
    lock: File,
    note: PathBuf,
}

impl Drop for Writing {
    fn drop(&mut self) {
        // If the note cannot be removed, it names a file that does not exist.
        let _ = fs::remove_file(&self.note);
        let _ = self.lock.unlock();
    }
}

impl Leftovers {
    /// Uses the notes in a user's state folder, which need not exist.
    pub fn of(state: &Path) -> Self {
        Self { folder: state.join("unfinished") }
    }

    /// Records that this process is about to write a file.
    pub fn note(&self, path: &Path) -> io::Result<Writing> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        for n in 0..NOTES {
            let note = self.folder.join(format!("{}-{n}", std::process::id()));
            let mut file = match disk::make(&note) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            };
            // Another process may clear the note before it is locked.
            if file.try_lock().is_ok() && fs::symlink_metadata(&note).is_ok() {
                file.write_all(path.as_os_str().as_bytes())?;
                file.sync_all()?;
                disk::sync_folder(&self.folder)?;
                return Ok(Writing { lock: file, note });
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Returns the leftovers of killed commands.
    pub fn find(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        self.each(&mut |path| {
            found.extend(path.map(Path::to_owned));
            false
        })?;
        Ok(found)
    }

    /// Deletes the leftovers of killed commands. Returns the deleted files and those that could not be deleted.
    pub fn clear(&self) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let (mut deleted, mut left) = (Vec::new(), Vec::new());
        self.each(&mut |path| {
            let Some(path) = path else { return true };
            let done = fs::remove_file(path);
            let all = if done.is_ok() { &mut deleted } else { &mut left };
            all.push(path.to_owned());
            done.is_ok()
        })?;
        Ok((deleted, left))
    }

    /// Calls `of` with the leftover of each note that no process locks, or with none if the leftover no longer exists. Deletes
    /// the note if `of` returns true.
    fn each(&self, of: &mut dyn FnMut(Option<&Path>) -> bool) -> io::Result<()> {
        let notes = match fs::read_dir(&self.folder) {
            Err(error) if disk::is_absent(&error) => return Ok(()),
            notes => notes?,
        };
        for note in notes {
            let note = note?.path();
            let Ok(file) = disk::open(&note, Links::Refuse) else { continue };
            let is_ours = file.metadata()?.uid() == rustix::process::geteuid().as_raw();
            if !is_ours || file.try_lock().is_err() {
                continue;
            }
            let Ok(path) = disk::whole(&file, disk::SMALL) else { continue };
            let path = Path::new(OsStr::from_bytes(&path));
            if of(Some(path).filter(|path| is_leftover(path))) {
                fs::remove_file(&note)?;
            }
        }
        Ok(())
    }
}

/// Returns true if there is a file at this path, under a temporary name.
fn is_leftover(path: &Path) -> bool {
    path.is_absolute()
        && path.file_name().is_some_and(is_temporary)
        && match fs::symlink_metadata(path) {
            Ok(meta) => meta.is_file(),
            Err(error) => !disk::is_absent(&error),
        }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes what is deleted then")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::live::temporary_path;

    #[test]
    fn what_no_process_writes_is_deleted_if_undertext_wrote_it() {
        let home = tempfile::tempdir().unwrap();
        let leftovers = Leftovers::of(home.path());
        let path = |name: &str| temporary_path(&home.path().join(name));
        let [file, other, link, gone] = ["file", "other", "link", "gone"].map(path);
        let plain = home.path().join("plain");
        for written in [&file, &plain] {
            fs::write(written, "words").unwrap();
        }
        fs::create_dir(&other).unwrap();
        fs::write(other.join("thesis.txt"), "words").unwrap();
        symlink(&other, &link).unwrap();
        let all = [&file, &other, &link, &gone, &plain];
        let notes = all.map(|path| leftovers.note(path).unwrap());
        assert_eq!(leftovers.find().unwrap(), [""; 0].map(PathBuf::from));
        assert_eq!(leftovers.clear().unwrap(), (Vec::new(), Vec::new()));
        // A process that is killed gives its locks back and does nothing else.
        for note in notes {
            note.lock.unlock().unwrap();
            std::mem::forget(note);
        }
        assert_eq!(leftovers.find().unwrap(), std::slice::from_ref(&file));
        assert_eq!(leftovers.clear().unwrap(), (vec![file.clone()], Vec::new()));
        assert!(!file.exists());
        assert!(plain.exists() && link.is_symlink() && other.join("thesis.txt").exists());
        assert_eq!(leftovers.find().unwrap(), [""; 0].map(PathBuf::from));
        assert_eq!(fs::read_dir(home.path().join("unfinished")).unwrap().count(), 0);
        assert_eq!(Leftovers::of(&plain).find().unwrap(), [""; 0].map(PathBuf::from));
    }
}
