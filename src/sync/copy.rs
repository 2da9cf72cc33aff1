//! Copying an archive: its store and its transcripts as they are at one moment, while other programs go on.
//!
//! ```text
//! under the lock   look at the store as it is now, copy the transcripts      short
//! without it       copy the store as it was at that look                     long
//! ```
//!
//! What is next to the store and is no file of its own, or cannot be opened, is left out, and named.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
};

use crate::{
    disk::{self, Disk, Kernel, Links},
    live::is_fresh,
    model::{BESIDE, DATABASE, TRANSCRIPTS},
    report::LeftOut,
    store::Access,
    sync::{SyncError, Waiting, archive::database, lock_if_there},
};

/// Copies an archive into a new folder, tells how many bytes of its store are copied and how many there are, and returns how
/// many transcripts were copied, and what was left out.
pub(crate) fn copy(
    root: &Path,
    to: &Path,
    waiting: &Waiting,
    each: &mut dyn FnMut(u64, u64),
) -> Result<(u64, Vec<LeftOut>), SyncError> {
    let make =
        |folder: &Path| DirBuilder::new().mode(0o700).create(folder).map_err(SyncError::at(folder));
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
    let store = database(root, Access::Read)?;
    make(to)?;
    make(&to.join(TRANSCRIPTS))?;
    let (mut files, mut left_out) = (0, Vec::new());
    let transcripts = root.join(TRANSCRIPTS);
    match fs::read_dir(&transcripts) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        names => {
            for name in names.map_err(SyncError::at(&transcripts))? {
                let name = name.map_err(SyncError::at(&transcripts))?.file_name();
                if !is_fresh(&name) {
                    let copied =
                        copy_file(&transcripts, &to.join(TRANSCRIPTS), &name, &mut left_out);
                    files += u64::from(copied.map_err(SyncError::at(&transcripts.join(&name)))?);
                }
            }
        }
    }
    for name in BESIDE {
        copy_file(root, to, OsStr::new(name), &mut left_out)
            .map_err(SyncError::at(&root.join(name)))?;
    }
    drop(lock);
    let page = store.page_size()?;
    store.copy(&to.join(DATABASE), &mut |done, all| each(done * page, all * page))?;
    Ok((files, left_out))
}

/// Copies a file, if it is there, with the time of its modification, by which the store tells that nobody else wrote it. Returns
/// whether it did; what is there and cannot be opened is left out.
fn copy_file(
    from: &Path,
    to: &Path,
    name: &OsStr,
    left_out: &mut Vec<LeftOut>,
) -> io::Result<bool> {
    let path = from.join(name);
    let source = match disk::open(&path, Links::Refuse) {
        Err(error) => {
            let is_there = error.kind() != ErrorKind::NotFound;
            left_out.extend(is_there.then(|| LeftOut { path, why: error.to_string() }));
            return Ok(false);
        }
        Ok(source) => source,
    };
    let meta = source.metadata()?;
    let file = disk::make(&to.join(name))?;
    Kernel.copy(&file, &source, meta.size())?;
    Kernel.stamp(&file, meta.modified()?)?;
    Kernel.sync(&file).map(|()| true)
}
