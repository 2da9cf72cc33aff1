//! A live file that may be written: a name in a folder that is kept open.
//!
//! If someone replaces the folder, or one above it, after the file was found writable, that does not redirect any write.
//!
//! Invariant: links are never followed, and only regular files are read or written. The successor of a file has the same owner,
//! group and mode.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write},
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{Access, AtFlags, Dir, Mode, OFlags},
    io::Errno,
};

use super::{
    name::{NEW, beside, successor_of},
    seen::Seen,
};
use crate::{
    disk::{self, Disk, Links},
    model::Timestamp,
};

/// A live file that may be written. It need not exist.
#[derive(Clone, Debug)]
pub struct WritableFile {
    disk: Arc<dyn Disk>,
    folder: Arc<File>,
    name: OsString,
    path: PathBuf,
}

impl WritableFile {
    /// Opens `folder`, which must not be a link, for the file `name` in it.
    pub(super) fn of(disk: &Arc<dyn Disk>, folder: &Path, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = rustix::fs::open(folder, flags, Mode::empty())?;
        let (disk, path) = (Arc::clone(disk), folder.join(name));
        Ok(Self { disk, folder: Arc::new(open.into()), name: name.to_owned(), path })
    }

    /// Returns a file in a folder above this one, or in the same folder.
    pub(super) fn above(&self, folder: &Path, name: &OsStr) -> io::Result<Self> {
        Self::of(&self.disk, folder, name)
    }

    /// Returns another file of the same folder. Fails if `name` is not a plain file name.
    pub fn sibling(&self, name: &OsStr) -> io::Result<Self> {
        let mut parts = Path::new(name).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(part)), None) if part == name => {
                Ok(self.named(part.to_owned()))
            }
            _ => Err(io::Error::new(ErrorKind::InvalidInput, "the file name is not valid")),
        }
    }

    fn named(&self, name: OsString) -> Self {
        let path = self.path.with_file_name(&name);
        Self { disk: Arc::clone(&self.disk), folder: Arc::clone(&self.folder), name, path }
    }

    fn fresh_name(&self) -> OsString {
        beside(&self.name, NEW)
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its length, inode and time, if it exists.
    pub fn look(&self) -> io::Result<Option<Seen>> {
        disk::found(self.open().and_then(|file| Ok(Seen::from(&file.metadata()?))))
    }

    /// Opens it for reading.
    pub fn open(&self) -> io::Result<File> {
        self.with(OFlags::RDONLY)
    }

    fn with(&self, access: OFlags) -> io::Result<File> {
        disk::open_at(&self.folder, Path::new(&self.name), Links::Refuse, access)
    }

    /// Reads its bytes from one offset to another, or to the end.
    pub fn read(&self, from: u64, to: Option<u64>) -> io::Result<Vec<u8>> {
        let mut file = self.open()?;
        file.seek(SeekFrom::Start(from))?;
        match to {
            Some(to) => {
                let mut bytes = Vec::new();
                file.take(to.saturating_sub(from)).read_to_end(&mut bytes)?;
                Ok(bytes)
            }
            None => disk::whole(file, WHOLE),
        }
    }

    /// Checks that it may be appended to.
    pub fn may_append(&self) -> io::Result<()> {
        self.with(OFlags::WRONLY | OFlags::APPEND).map(drop)
    }

    /// Appends to it in one write. Returns false if it does not end at `end` afterwards: then another program wrote to it as
    /// well.
    pub fn append(&self, bytes: &[u8], end: u64, at: Timestamp) -> io::Result<bool> {
        let mut file = self.add(bytes)?;
        let alone = file.stream_position()? == end && file.metadata()?.len() == end;
        if alone {
            self.disk.stamp(&file, moment(at))?;
        }
        Ok(alone)
    }

    /// Appends to it in one write and syncs it. Returns true if it ends at `end` afterwards.
    pub fn append_synced(&self, bytes: &[u8], end: u64) -> io::Result<bool> {
        let mut file = self.add(bytes)?;
        self.disk.sync(&file)?;
        Ok(file.stream_position()? == end && file.metadata()?.len() == end)
    }

    /// Writes bytes at the end of the file. A failed write is undone, because another program may append its next record to half
    /// a line.
    fn add(&self, bytes: &[u8]) -> io::Result<File> {
        let file = self.with(OFlags::RDWR | OFlags::APPEND)?;
        let start = file.metadata()?.len();
        match self.disk.write(&file, bytes) {
            Ok(()) => Ok(file),
            Err(error) => {
                // If this fails too, the next change completes the line.
                let _stays = self.take_back(&file, start, bytes);
                Err(error)
            }
        }
    }

    /// Truncates the file to `start` if the bytes after `start` are a prefix of `bytes`, which shows that nothing else was written there.
    fn take_back(&self, mut file: &File, start: u64, bytes: &[u8]) -> io::Result<()> {
        let mut written = Vec::new();
        file.seek(SeekFrom::Start(start))?;
        file.take(bytes.len() as u64 + 1).read_to_end(&mut written)?;
        if !written.is_empty() && bytes.starts_with(&written) {
            self.disk.cut(file, start)?;
        }
        Ok(())
    }

    /// Sets its modification time.
    pub fn stamp(&self, at: Timestamp) -> io::Result<()> {
        self.disk.stamp(&self.with(OFlags::WRONLY)?, moment(at))
    }

    /// Creates it empty. Fails if it exists.
    pub fn create(&self, at: Timestamp) -> io::Result<()> {
        let file = self.disk.make(&self.folder, &self.name)?;
        self.disk.stamp(&file, moment(at))?;
        self.sync_folder()
    }

    /// Returns the name under which the file is set aside: the one that its agent would choose, given the names in the folder;
    /// otherwise the first number from `n` on that is free, or that already is this file because a rotation was interrupted.
    pub fn aside(&self, n: u64, own: &dyn Fn(&[String]) -> Option<String>) -> io::Result<Self> {
        let mut names = Vec::new();
        for found in Dir::read_from(&self.folder)? {
            names.extend(found?.file_name().to_str().ok().map(str::to_owned));
        }
        if let Some(name) = own(&names) {
            return self.sibling(OsStr::new(&name));
        }
        for n in n.. {
            let aside = self.named(beside(&self.name, &n.to_string()));
            // A dangling link also occupies the name.
            match rustix::fs::statat(&self.folder, &aside.name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => return Ok(aside),
                found => drop(found?),
            }
            if self.is_same(&aside).unwrap_or(false) {
                return Ok(aside);
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Checks that a successor may be written in its folder.
    pub fn may_have_successor(&self) -> io::Result<()> {
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        Ok(rustix::fs::accessat(&self.folder, ".", wanted, AtFlags::empty())?)
    }

    /// Returns its successor as a file, which may exist.
    #[must_use]
    pub fn successor(&self) -> Self {
        self.named(self.fresh_name())
    }

    /// Deletes it.
    pub(crate) fn remove(&self) -> io::Result<()> {
        self.disk.remove(&self.folder, &self.name)?;
        self.sync_folder()
    }

    /// Starts writing a successor.
    pub fn fresh(&self) -> io::Result<Fresh> {
        Fresh::begin(self)
    }

    /// Deletes a successor that was never installed. Fails if a process is writing it.
    pub fn sweep(&self) -> io::Result<()> {
        let fresh = self.fresh_name();
        match rustix::fs::statat(&self.folder, &fresh, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            _ if self.is_written(&fresh) => {
                Err(io::Error::new(ErrorKind::ResourceBusy, "another process is writing it"))
            }
            _ => self.disk.remove(&self.folder, &fresh),
        }
    }

    /// Deletes the successors of those other files in the folder that `is_meant` selects, unless a process is writing them.
    pub fn sweep_beside(&self, is_meant: &dyn Fn(&str) -> bool) -> io::Result<()> {
        for found in Dir::read_from(&self.folder)? {
            let found = found?;
            let name = OsStr::from_bytes(found.file_name().to_bytes());
            if successor_of(name).is_some_and(is_meant) && !self.is_written(name) {
                self.disk.remove(&self.folder, name)?;
            }
        }
        Ok(())
    }

    /// Returns true if a process is writing the file `name` of the folder.
    fn is_written(&self, name: &OsStr) -> bool {
        let file = disk::open_at(&self.folder, Path::new(name), Links::Refuse, OFlags::RDONLY);
        file.is_ok_and(|file| disk::is_locked(&file))
    }

    /// Sets the file aside and renames the successor to its name. Either step may have been done already.
    pub fn exchange(&self, aside: &Self) -> io::Result<()> {
        use ErrorKind::{AlreadyExists, NotFound, PermissionDenied, TooManyLinks, Unsupported};
        match self.disk.link(&self.folder, &self.name, &aside.name) {
            Ok(()) => {}
            Err(error) => match error.kind() {
                NotFound => {}
                AlreadyExists if self.is_same(aside)? => {}
                // On a file system without hard links, the live file is missing for an instant.
                PermissionDenied | TooManyLinks | Unsupported => {
                    self.disk.rename(&self.folder, &self.name, &aside.name)?;
                }
                _ => return Err(error),
            },
        }
        self.install()
    }

    /// Renames the successor to the live file's name, replacing an existing file.
    pub fn install(&self) -> io::Result<()> {
        self.disk.rename(&self.folder, &self.fresh_name(), &self.name)?;
        self.sync_folder()
    }

    /// Renames the successor to the file's name unless that name exists, and returns true if it did. Otherwise deletes the
    /// successor.
    pub fn install_new(&self) -> io::Result<bool> {
        use ErrorKind::{AlreadyExists, PermissionDenied, TooManyLinks, Unsupported};
        let fresh = self.fresh_name();
        match self.disk.link(&self.folder, &fresh, &self.name) {
            Ok(()) => self.disk.remove(&self.folder, &fresh)?,
            Err(error) => match error.kind() {
                AlreadyExists => {
                    self.sweep()?;
                    return Ok(false);
                }
                // On a file system without hard links, we assume that nobody else creates the file at this instant.
                PermissionDenied | TooManyLinks | Unsupported => {
                    self.disk.rename(&self.folder, &fresh, &self.name)?;
                }
                _ => return Err(error),
            },
        }
        self.sync_folder()?;
        Ok(true)
    }

    fn is_same(&self, other: &Self) -> io::Result<bool> {
        Ok(self.look()?.map(|seen| seen.inode) == other.look()?.map(|seen| seen.inode))
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.disk.sync(&self.folder)
    }
}

/// The maximum length of a live file that is read into memory.
const WHOLE: u64 = 8 << 30;

fn moment(at: Timestamp) -> SystemTime {
    let since = Duration::from_millis(at.0.unsigned_abs());
    if at.0 < 0 { SystemTime::UNIX_EPOCH - since } else { SystemTime::UNIX_EPOCH + since }
}

/// Copies up to this many bytes go through the write buffer.
const PIECE: u64 = 8 << 10;

/// The successor of a live file while it is written next to it. It is deleted on drop unless it was finished.
#[derive(Debug)]
pub struct Fresh {
    file: BufWriter<Writing>,
    live: Unended,
    /// The live file as it was at the start, if it existed.
    old: Option<File>,
}

/// The live file of an unfinished successor.
#[derive(Debug)]
struct Unended {
    live: WritableFile,
    is_ended: bool,
}

impl Drop for Unended {
    fn drop(&mut self) {
        if !self.is_ended {
            // If it cannot be deleted now, the next change deletes it.
            let _later = self.live.sweep();
        }
    }
}

/// A file that is written through [`Disk`].
#[derive(Debug)]
struct Writing {
    disk: Arc<dyn Disk>,
    file: File,
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.write(&self.file, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Fresh {
    /// Creates a successor with the owner, group and mode of the live file; without a live file, it is private.
    fn begin(live: &WritableFile) -> io::Result<Self> {
        live.sweep()?;
        let file = live.disk.make(&live.folder, &live.fresh_name())?;
        let unended = Unended { live: live.clone(), is_ended: false };
        let old = disk::found(live.open())?;
        old.as_ref().map_or(Ok(()), |old| live.disk.own(&file, old))?;
        let writing = Writing { disk: Arc::clone(&live.disk), file };
        Ok(Self { file: BufWriter::with_capacity(1 << 20, writing), live: unended, old })
    }

    /// Returns the live file that it will replace.
    pub fn live(&self) -> &WritableFile {
        &self.live.live
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Adds bytes of the live file, starting at an offset. Fails if the live file is too short.
    pub fn copy(&mut self, offset: u64, length: u64) -> io::Result<()> {
        let mut from = self.old.as_ref().ok_or(ErrorKind::NotFound)?;
        from.seek(SeekFrom::Start(offset))?;
        let copied = if length > PIECE {
            self.file.flush()?;
            self.live.live.disk.copy(&self.file.get_ref().file, from, length)?
        } else {
            io::copy(&mut from.take(length), &mut self.file)?
        };
        if copied == length { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// Finishes it: the bytes are synced to disk under the temporary name.
    pub fn finish(self, at: Timestamp) -> io::Result<()> {
        let Self { file, mut live, .. } = self;
        let Writing { disk, file } = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        disk.stamp(&file, moment(at))?;
        disk.sync(&file)?;
        live.live.sync_folder()?;
        live.is_ended = true;
        Ok(())
    }
}
