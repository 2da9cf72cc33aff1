//! Changing the disk: every step that changes a live file, its successor, an agent's list of folders, or an archive's lock.
//!
//! Each method is atomic for the tests: it succeeds or fails as a whole, and tests make each one fail in turn. Files and folders
//! are passed open, and names are relative to such a folder, so no step follows a link.
//!
//! The database with its companion files, and settings, are changed elsewhere. Reading changes nothing.

use std::{
    ffi::OsStr,
    fmt,
    fs::{File, Permissions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::SystemTime,
};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};

use crate::disk::{make_at, open_or_make};

/// The steps that change files.
pub trait Disk: fmt::Debug + Send + Sync {
    /// Creates a private file for writing. Fails if it exists. It stays locked until it is closed.
    fn make(&self, folder: &File, name: &OsStr) -> io::Result<File>;

    /// Writes bytes at the current offset, or at the end if the file was opened for appending.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()>;

    /// Truncates a file to `length` bytes.
    fn cut(&self, file: &File, length: u64) -> io::Result<()>;

    /// Copies up to `length` bytes of another file from its current offset, and returns how many it copied.
    fn copy(&self, file: &File, from: &File, length: u64) -> io::Result<u64>;

    /// Gives a file the owner, group and mode of another file.
    fn own(&self, file: &File, like: &File) -> io::Result<()>;

    /// Sets a file's modification time.
    fn stamp(&self, file: &File, at: SystemTime) -> io::Result<()>;

    /// Waits until the bytes of a file, or the names in a folder, are on the disk.
    fn sync(&self, file: &File) -> io::Result<()>;

    /// Gives a file an additional name. Fails if the name exists.
    fn link(&self, folder: &File, name: &OsStr, other: &OsStr) -> io::Result<()>;

    /// Renames a file, replacing an existing file.
    fn rename(&self, folder: &File, name: &OsStr, to: &OsStr) -> io::Result<()>;

    /// Removes a name of a file.
    fn remove(&self, folder: &File, name: &OsStr) -> io::Result<()>;

    /// Takes the lock of a file, which is made if it is not there; the lock lasts as long as the answer.
    fn lock(&self, path: &Path, if_held: IfHeld) -> io::Result<Option<File>>;
}

/// What to do about a lock that another program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfHeld {
    /// Wait for it.
    Wait,
    /// Take none.
    GiveUp,
}

/// The real disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl Disk for Kernel {
    fn make(&self, folder: &File, name: &OsStr) -> io::Result<File> {
        let file = make_at(folder, Path::new(name), Mode::RUSR | Mode::WUSR)?;
        // On a file system without locks, nobody can see who writes a file.
        let _ = file.try_lock();
        Ok(file)
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn copy(&self, mut file: &File, from: &File, length: u64) -> io::Result<u64> {
        io::copy(&mut from.take(length), &mut file)
    }

    fn own(&self, file: &File, like: &File) -> io::Result<()> {
        let (is, was) = (file.metadata()?, like.metadata()?);
        let uid = (is.uid() != was.uid()).then(|| Uid::from_raw(was.uid()));
        let gid = (is.gid() != was.gid()).then(|| Gid::from_raw(was.gid()));
        if (uid, gid) != (None, None)
            && let Err(error) = rustix::fs::fchown(file, uid, gid)
        {
            let owner = format!("user {} and group {}", was.uid(), was.gid());
            let why = format!("it belongs to {owner}, but its replacement would not: {error}");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        file.set_permissions(Permissions::from_mode(was.mode() & 0o777))
    }

    fn stamp(&self, file: &File, at: SystemTime) -> io::Result<()> {
        file.set_modified(at)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn link(&self, folder: &File, name: &OsStr, other: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(folder, name, folder, other, AtFlags::empty())?)
    }

    fn rename(&self, folder: &File, name: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(folder, name, folder, to)?)
    }

    fn remove(&self, folder: &File, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?)
    }

    fn lock(&self, path: &Path, if_held: IfHeld) -> io::Result<Option<File>> {
        let file = open_or_make(path)?;
        if if_held == IfHeld::Wait {
            file.lock()?;
            return Ok(Some(file));
        }
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A disk for dry runs: every step succeeds, and nothing is changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paper;

impl Disk for Paper {
    fn make(&self, _folder: &File, _name: &OsStr) -> io::Result<File> {
        nothing()
    }

    fn write(&self, _file: &File, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn cut(&self, _file: &File, _length: u64) -> io::Result<()> {
        Ok(())
    }

    fn copy(&self, _file: &File, _from: &File, length: u64) -> io::Result<u64> {
        Ok(length)
    }

    fn own(&self, _file: &File, _like: &File) -> io::Result<()> {
        Ok(())
    }

    fn stamp(&self, _file: &File, _at: SystemTime) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self, _file: &File) -> io::Result<()> {
        Ok(())
    }

    fn link(&self, _folder: &File, _name: &OsStr, _other: &OsStr) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, _folder: &File, _name: &OsStr, _to: &OsStr) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _folder: &File, _name: &OsStr) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, _path: &Path, _if_held: IfHeld) -> io::Result<Option<File>> {
        nothing().map(Some)
    }
}

/// Opens `/dev/null`, which is empty and discards writes.
fn nothing() -> io::Result<File> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?.into())
}
