//! Copying an archive: its store and its transcripts as they are at one moment, while other programs go on.
//!
//! ```text
//! under the lock   look at the store as it is now, copy the transcripts      short
//! without it       copy the store as it was at that look                     long
//! ```

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
};

use crate::{
    disk::{self, Disk, Kernel, Links},
    live::{TRANSCRIPTS, is_fresh},
    store::{Access, SqliteStore},
    sync::{SyncError, Waiting, lock_if_there},
};

/// The files of a store's folder that are copied besides its database: what its user set, and what keeps it out of git.
const BESIDE: [&str; 2] = ["config.toml", ".gitignore"];

/// Copies an archive into a new folder, tells how many bytes of its store are copied and how many there are, and returns how
/// many files lie next to the store.
pub(crate) fn copy(
    root: &Path,
    to: &Path,
    each: &mut dyn FnMut(u64, u64),
) -> Result<u64, SyncError> {
    let io = |path: &Path| {
    waiting: &Waiting,
        let path = path.to_owned();
        move |source| SyncError::Io { path, source }
    };
    let make = |folder: &Path| DirBuilder::new().mode(0o700).create(folder).map_err(io(folder));
    let lock = match lock_if_there(root, waiting) {
        // Where nobody may write, nobody has to wait.
        Err(SyncError::Io { source, .. })
            if matches!(
                source.kind(),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            None
        }
        lock => lock?,
    };
    let store = SqliteStore::open(&root.join("store.db"), Access::Read)?;
    make(to)?;
    make(&to.join(TRANSCRIPTS))?;
    let mut files = 0;
    let transcripts = root.join(TRANSCRIPTS);
    match fs::read_dir(&transcripts) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        names => {
            for name in names.map_err(io(&transcripts))? {
                let name = name.map_err(io(&transcripts))?.file_name();
                if !is_fresh(&name) {
                    let path = transcripts.join(&name);
                    copy_file(&transcripts, &to.join(TRANSCRIPTS), &name).map_err(io(&path))?;
                    files += 1;
                }
            }
        }
    }
    for name in BESIDE {
        match copy_file(root, to, OsStr::new(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            copied => copied.map_err(io(&root.join(name)))?,
        }
    }
    drop(lock);
    let page = store.page_size()?;
    store.copy(&to.join("store.db"), &mut |done, all| each(done * page, all * page))?;
    Ok(files)
}

/// Copies a file with the time of its modification, by which the store tells that nobody else wrote it.
fn copy_file(from: &Path, to: &Path, name: &OsStr) -> io::Result<()> {
    let source = disk::open(&from.join(name), Links::Refuse)?;
    let meta = source.metadata()?;
    let file = disk::make(&to.join(name))?;
    Kernel.copy(&file, &source, meta.size())?;
    Kernel.stamp(&file, meta.modified()?)?;
    Kernel.sync(&file)
}
