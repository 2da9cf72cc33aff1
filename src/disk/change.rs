//! Changing the disk: every step that changes a live file, its successor, an agent's list of folders, or the lock of an
//! archive.
//!
//! Each method is one event: it happens or fails as one, and the tests break each in turn. A file or a folder is an
//! open one, and a name is a name in such a folder, so that no step follows a link.
//!
//! The database, the files next to it for its sake, and settings are changed elsewhere; reading changes nothing.

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
    /// Makes a private file that is not there yet, to write it. It is locked until it is closed.
    fn make(&self, folder: &File, name: &OsStr) -> io::Result<File>;

    /// Writes bytes where the file is, or behind all others if it was opened to append.
    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()>;

    /// Cuts a file off after as many bytes.
    fn cut(&self, file: &File, length: u64) -> io::Result<()>;

    /// Writes as many bytes of another file, from where that is, and returns how many it had.
    fn copy(&self, file: &File, from: &File, length: u64) -> io::Result<u64>;

    /// Gives a file the owner, the group and the mode of another one.
    fn own(&self, file: &File, like: &File) -> io::Result<()>;

    /// Sets the time of a file's modification.
    fn stamp(&self, file: &File, at: SystemTime) -> io::Result<()>;

    /// Waits until the bytes of a file, or the names in a folder, are safe from a power cut.
    fn sync(&self, file: &File) -> io::Result<()>;

    /// Gives a file another name, which is not taken.
    fn link(&self, folder: &File, name: &OsStr, other: &OsStr) -> io::Result<()>;

    /// Gives a file another name in place of its own; a file that has that name loses it.
    fn rename(&self, folder: &File, name: &OsStr, to: &OsStr) -> io::Result<()>;

    /// Takes a name from a file.
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

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kernel;

impl Disk for Kernel {
    fn make(&self, folder: &File, name: &OsStr) -> io::Result<File> {
        let file = make_at(folder, Path::new(name), Mode::RUSR | Mode::WUSR)?;
        // A file system without locks cannot say who writes a file.
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

/// A disk on paper: every step succeeds, and nothing on the disk of this machine is changed by it.
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

/// Opens a file that holds nothing and takes in everything.
fn nothing() -> io::Result<File> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?.into())
}
