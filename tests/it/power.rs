//! Power: what a cut of it leaves of a folder, namely what was synced of each file when it was last, and the names that each
//! folder had when it was.
//!
//! Invariant: a file that is put back is the same file, with its inode, because the store knows live files by that.

#![cfg(target_os = "linux")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use tempfile::TempDir;

use crate::vfs::Countdown;

/// What is safe of a folder and of those below it.
#[derive(Debug)]
pub(crate) struct Image {
    root: PathBuf,
    /// Every file has a name here too, so that it outlives its own.
    vault: TempDir,
    files: BTreeMap<u64, (Vec<u8>, SystemTime)>,
    names: BTreeMap<PathBuf, u64>,
    /// Once this says that an event failed, the power is off.
    power: Option<Arc<Countdown>>,
}

/// What a power cut leaves of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Those that were synced.
    Synced,
    /// Those that were given, which the disk learned sooner than it had to.
    Given,
}

impl Image {
    /// Takes all of a folder for safe.
    pub(crate) fn of(root: &Path, power: Option<Arc<Countdown>>) -> Self {
        let root = root.canonicalize().unwrap();
        let vault = tempfile::tempdir_in(root.parent().unwrap()).unwrap();
        let (files, names) = (BTreeMap::new(), BTreeMap::new());
        let mut image = Self { root, vault, files, names, power: None };
        for path in below(&image.root) {
            image.keep_file(&path);
            image.names.insert(path.clone(), fs::metadata(&path).unwrap().ino());
        }
        Self { power, ..image }
    }

    /// Keeps what a file holds: it is synced.
    pub(crate) fn keep_file(&mut self, path: &Path) {
        if self.concerns(path) {
            let inode = self.hold(path);
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            self.files.insert(inode, (fs::read(path).unwrap(), modified));
        }
    }

    /// Keeps the names that a folder has: it is synced.
    pub(crate) fn keep_names(&mut self, folder: &Path) {
        if self.concerns(folder) {
            self.names.retain(|path, _| path.parent() != Some(folder));
            for path in below(folder).into_iter().filter(|path| path.parent() == Some(folder)) {
                let inode = self.hold(&path);
                self.names.insert(path, inode);
            }
        }
    }

    /// Returns what is safe of a file.
    pub(crate) fn safe(&self, path: &Path) -> Vec<u8> {
        let kept = self.names.get(path).and_then(|inode| self.files.get(inode));
        kept.map(|(bytes, _)| bytes.clone()).unwrap_or_default()
    }

    /// Leaves in the folder what is safe; nobody has a file of it open.
    pub(crate) fn cut(&self, names: Names) {
        let given: Vec<(PathBuf, u64)> = below(&self.root)
            .into_iter()
            .map(|path| (path.clone(), fs::metadata(path).unwrap().ino()))
            .collect();
        let left: BTreeMap<PathBuf, u64> = match names {
            Names::Synced => self.names.clone(),
            Names::Given => given.iter().cloned().collect(),
        };
        for (path, inode) in &given {
            let held = self.held(*inode);
            if !held.exists() {
                fs::hard_link(path, held).unwrap();
            }
            fs::remove_file(path).unwrap();
        }
        // The index of the WAL is memory.
        for (path, inode) in left.iter().filter(|(path, _)| !path.ends_with("store.db-shm")) {
            fs::hard_link(self.held(*inode), path).unwrap();
            // What was never synced is empty.
            let (bytes, modified) =
                self.files.get(inode).cloned().unwrap_or((Vec::new(), SystemTime::UNIX_EPOCH));
            let mut file = fs::File::options().write(true).truncate(true).open(path).unwrap();
            std::io::Write::write_all(&mut file, &bytes).unwrap();
            file.set_modified(modified).unwrap();
        }
    }

    fn concerns(&self, path: &Path) -> bool {
        path.starts_with(&self.root) && !self.power.as_ref().is_some_and(|power| power.fired())
    }

    fn held(&self, inode: u64) -> PathBuf {
        self.vault.path().join(inode.to_string())
    }

    /// Has a file outlive its name, and returns its inode.
    fn hold(&self, path: &Path) -> u64 {
        let inode = fs::metadata(path).unwrap().ino();
        let held = self.held(inode);
        if !held.exists() {
            fs::hard_link(path, held).unwrap();
        }
        inode
    }
}

/// Returns the files below a folder.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(below(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
}
