//! Live files: the only code that writes a file that an agent reads.
//!
//! An owned file is written after its operation is committed, so that it follows the store; its modification time is set to
//! the operation's, to the millisecond, which no other writer does: a file of the expected length with that time is the one
//! that was left there.
//!
//! A rotation never leaves the name without a file:
//!
//! ```text
//! 1  <live>.undertext-new   written, synced
//! 2  commit                 (the caller's)
//! 3  link   <live> -> <live>.undertext-1
//! 4  rename <live>.undertext-new over <live>
//! 5  sync the folder
//! ```
//!
//! Invariant: a file of an agent is only ever appended to, linked, or renamed over by a complete one.

mod loaded;

pub use loaded::{Holder, holders};

use std::{
    fs::{self, File},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::model::Timestamp;

/// What is known of a file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its length.
    pub length: u64,
    /// Its inode.
    pub inode: u64,
    /// Its modification time, if that is a whole millisecond.
    pub stamp: Option<Timestamp>,
}

/// Returns what is known of a file, if it is there.
pub fn look(path: &Path) -> io::Result<Option<Seen>> {
    match fs::metadata(path) {
        Ok(meta) => {
            let whole = meta.mtime_nsec() % 1_000_000 == 0;
            let millis =
                meta.mtime().saturating_mul(1000).saturating_add(meta.mtime_nsec() / 1_000_000);
            Ok(Some(Seen {
                length: meta.len(),
                inode: meta.ino(),
                stamp: whole.then_some(Timestamp(millis)),
            }))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the bytes of a file from one offset to another, or to its end.
pub fn read(path: &Path, from: u64, to: Option<u64>) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(to.map_or(u64::MAX, |to| to.saturating_sub(from))).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Appends to a live file in one write and returns whether it now ends where it should: if not, another program wrote too.
pub fn append(path: &Path, bytes: &[u8], end: u64, at: Timestamp) -> io::Result<bool> {
    let mut file = File::options().append(true).open(path)?;
    file.write_all(bytes)?;
    let alone = file.stream_position()? == end && file.metadata()?.len() == end;
    if alone {
        file.set_modified(moment(at))?;
    }
    Ok(alone)
}

/// Appends to an agent's file in one write, waits until it is on the disk, and returns whether it ends where it should.
pub fn append_synced(path: &Path, bytes: &[u8], end: u64) -> io::Result<bool> {
    let mut file = File::options().append(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    Ok(file.stream_position()? == end && file.metadata()?.len() == end)
}

/// Sets a file's modification time.
pub fn stamp(path: &Path, at: Timestamp) -> io::Result<()> {
    File::options().append(true).open(path)?.set_modified(moment(at))
}

fn moment(at: Timestamp) -> SystemTime {
    let since = Duration::from_millis(at.0.unsigned_abs());
    if at.0 < 0 { SystemTime::UNIX_EPOCH - since } else { SystemTime::UNIX_EPOCH + since }
}

/// The name beside a live file under which its successor is written.
pub fn fresh_path(live: &Path) -> PathBuf {
    beside(live, NEW)
}

/// Returns the name that a live file gets as it is set aside: the one that its agent would give it, told from the names
/// in the folder, or one with the first number from `n` on that is free.
pub fn aside_path(
    live: &Path,
    n: u64,
    own: &dyn Fn(&[String]) -> Option<String>,
) -> io::Result<PathBuf> {
    let folder = live.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut names = Vec::new();
    for found in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        names.extend(found?.file_name().into_string());
    }
    if let Some(name) = own(&names) {
        return Ok(live.with_file_name(name));
    }
    let asides = (n..).map(|n| beside(live, &n.to_string()));
    for aside in asides {
        if look(&aside)?.is_none() {
            return Ok(aside);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Returns whether a file of this name was set aside here.
pub fn is_aside(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once(MARK).is_some_and(|(_, what)| {
        what == NEW || (!what.is_empty() && what.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// What stands between a live file's name and the number of a rotation.
const MARK: &str = ".undertext-";
/// What stands there for the successor.
const NEW: &str = "new";

fn beside(live: &Path, what: &str) -> PathBuf {
    let mut name = live.as_os_str().to_owned();
    name.push(MARK);
    name.push(what);
    PathBuf::from(name)
}

/// The successor of a live file while it is written beside it.
#[derive(Debug)]
pub struct Fresh {
    file: BufWriter<File>,
    live: PathBuf,
}

impl Fresh {
    /// Begins a successor, with the mode of the live file, or private.
    pub fn begin(live: &Path) -> io::Result<Self> {
        let path = fresh_path(live);
        sweep(live)?;
        let mode = fs::metadata(live).map_or(0o600, |meta| meta.mode() & 0o777);
        let file = File::options().write(true).create_new(true).mode(mode).open(path)?;
        Ok(Self { file: BufWriter::with_capacity(1 << 20, file), live: live.to_owned() })
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Adds bytes of another file from an offset on, if it has so many.
    pub fn copy(&mut self, from: &Path, offset: u64, length: u64) -> io::Result<()> {
        self.file.flush()?;
        let mut from = File::open(from)?;
        from.seek(SeekFrom::Start(offset))?;
        let copied = io::copy(&mut from.take(length), self.file.get_mut())?;
        if copied == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Ends it: what was written is safe on the disk, under the temporary name.
    pub fn finish(self, at: Timestamp) -> io::Result<()> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.set_modified(moment(at))?;
        file.sync_all()?;
        sync_folder(&self.live)
    }
}

/// Deletes a successor that was never put in the live file's place.
pub fn sweep(live: &Path) -> io::Result<()> {
    match fs::remove_file(fresh_path(live)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Puts the successor in the place of the live file, which gets another name; both steps may have been done already.
pub fn exchange(live: &Path, aside: &Path) -> io::Result<()> {
    match fs::hard_link(live, aside) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && same_file(live, aside)? => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Where a file cannot have two names there is an instant without a live file.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(live, aside)?,
        Err(error) => return Err(error),
    }
    install(live)
}

/// Puts the successor where the live file belongs, whatever is there.
pub fn install(live: &Path) -> io::Result<()> {
    fs::rename(fresh_path(live), live)?;
    sync_folder(live)
}

fn same_file(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(look(one)?.map(|seen| seen.inode) == look(other)?.map(|seen| seen.inode))
}

/// Makes a live file that is not there.
pub fn create(live: &Path, at: Timestamp) -> io::Result<()> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(live)?;
    file.set_modified(moment(at))?;
    sync_folder(live)
}

fn sync_folder(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(folder) if folder.as_os_str().is_empty() => File::open(".")?.sync_all(),
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
