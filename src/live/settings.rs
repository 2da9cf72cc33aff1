//! The settings of an agent: read, and replaced as a whole.
//!
//! If the path is a link, the file that it leads to is changed: users who keep their settings elsewhere want them there.
//!
//! Invariant: a file of another user, a read-only file, and a file that changed in the meantime are never changed.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::file::WritableFile;
use crate::{
    disk::{self, Disk, Kernel, Links},
    model::Timestamp,
};

/// Returns the content of the settings, if they exist. Fails if they may not be changed.
pub fn settings(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let (folder, name) = place(path)?;
    let opened = disk::found(disk::open(&folder.join(name), Links::Refuse))?;
    let Some(file) = opened else { return Ok(None) };
    let meta = file.metadata()?;
    let denied = |why: &str| io::Error::new(ErrorKind::PermissionDenied, why);
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(denied("it belongs to another user"));
    }
    if meta.mode() & 0o200 == 0 {
        return Err(denied("it is read-only"));
    }
    disk::whole(file, disk::SMALL).map(Some)
}

/// Replaces the settings, if they are still as the caller read them. None means that there is no file.
pub fn exchange_settings(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    at: Timestamp,
) -> io::Result<()> {
    let (folder, name) = place(path)?;
    if !folder.is_dir() {
        DirBuilder::new().create(&folder)?;
    }
    let meanwhile =
        || io::Error::new(ErrorKind::ResourceBusy, "another program changed it in the meantime");
    let disk: Arc<dyn Disk> = Arc::new(Kernel);
    let file = WritableFile::of(&disk, &folder, &name)?;
    if let Some(after) = after {
        let mut fresh = file.fresh()?;
        fresh.write(after)?;
        fresh.finish(at)?;
    }
    if settings(path)?.as_deref() != before {
        file.sweep()?;
        return Err(meanwhile());
    }
    match (before, after) {
        (None, None) => Ok(()),
        (Some(_), None) => file.remove(),
        (Some(_), Some(_)) => file.install(),
        (None, Some(_)) if file.install_new()? => Ok(()),
        (None, Some(_)) => Err(meanwhile()),
    }
}

/// Returns the folder and name of the file that a path leads to.
fn place(path: &Path) -> io::Result<(PathBuf, OsString)> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    let real = if is_link {
        path.canonicalize().map_err(|error| match error.kind() {
            ErrorKind::NotFound => io::Error::new(ErrorKind::InvalidInput, "it is a broken link"),
            _ => error,
        })?
    } else {
        path.to_owned()
    };
    let none = || io::Error::from(ErrorKind::InvalidInput);
    let (folder, name) = real.parent().zip(real.file_name()).ok_or_else(none)?;
    // The folder may not exist yet.
    Ok((folder.canonicalize().unwrap_or_else(|_| folder.to_owned()), name.to_owned()))
}
