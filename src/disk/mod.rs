//! The disk: the only way to open and read files that others could have written, and the steps that change files.
//!
//! A path in a folder, a store or a transcript may lead to anything: a pipe without a writer, an endless device, a file that
//! grows while it is read. So every such file is opened here.
//!
//! Invariant: only regular files are opened, opening never blocks, and no read exceeds the limit that the caller states.

mod change;
#[cfg(feature = "watch")]
mod events;
mod stamp;
#[cfg(feature = "watch")]
mod watch;

use std::{
    ffi::{OsStr, OsString},
    fmt,
    fs::{DirBuilder, File, TryLockError},
    io::{self, Read, Write},
    os::{
        fd::AsFd,
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, FileExt},
        },
    },
    path::{Component, Path},
};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};

pub use change::{Disk, IfHeld, Kernel, Paper};
pub use stamp::Stamp;
#[cfg(feature = "watch")]
pub use watch::{Changes, Watch};

/// The maximum length of a small file: git's own files, a lock, a list of folders.
pub const SMALL: u64 = 1 << 20;
/// The maximum length of a text file that a person or a tool wrote: a manifest, settings, certificates.
pub const TEXT: u64 = 16 << 20;

/// What to do with a link in the last component of a path. Links in earlier components are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Follow it.
    Follow,
    /// Refuse it.
    Refuse,
}

/// Why a file is not opened, or not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is not a regular file.
    NoFile(&'static str),
    /// It is a link, and links are refused here.
    Link,
    /// It is in a virtual file system, such as `/proc`.
    MadeUp,
    /// It exceeds this length in bytes.
    TooLong(u64),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile(kind) => write!(f, "it is {kind}, not a file"),
            Self::Link => write!(f, "it is a link, not a file"),
            Self::MadeUp => write!(f, "it is in a virtual file system (such as /proc)"),
            Self::TooLong(cap) => write!(f, "it is longer than {cap} bytes"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::TooLong(_) => io::ErrorKind::FileTooLarge,
            Refusal::NoFile("a folder") => io::ErrorKind::IsADirectory,
            _ => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, refusal)
    }
}

impl Refusal {
    /// Returns the refusal inside an error, if there is one.
    pub fn of(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// Returns true if the error means that nothing exists at the path; part of the path may be a file.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the result of an access, or nothing if the file does not exist.
pub(crate) fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Returns an error as plain words. The system's own words for common errors are not understood by everyone.
pub fn words(error: &io::Error) -> String {
    let told = error.to_string();
    if error.raw_os_error().is_none() {
        return told;
    }
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        io::ErrorKind::NotADirectory => "part of the path is a file, not a folder".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder".to_owned(),
        io::ErrorKind::AlreadyExists => "something with that name already exists".to_owned(),
        _ => told.split(" (os error").next().unwrap_or_default().to_lowercase(),
    }
}

/// Opens a regular file for reading.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    open_at(CWD, path, links, OFlags::RDONLY)
}

/// Opens a regular file in an open folder, for reading or writing.
pub(crate) fn open_at(
    folder: impl AsFd,
    path: &Path,
    links: Links,
    access: OFlags,
) -> io::Result<File> {
    let (at, no_follow) = match links {
        Links::Follow => (AtFlags::empty(), OFlags::empty()),
        Links::Refuse => (AtFlags::SYMLINK_NOFOLLOW, OFlags::NOFOLLOW),
    };
    // Opening a device can have side effects, so the path is checked first. The descriptor is checked again in case it changed.
    regular(&rustix::fs::statat(&folder, path, at)?)?;
    let calm = OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = rustix::fs::openat(&folder, path, access | calm | no_follow, Mode::empty())?;
    regular(&rustix::fs::fstat(&file)?)?;
    if is_made_up(&file) {
        return Err(Refusal::MadeUp.into());
    }
    Ok(file.into())
}

/// Opens a file for writing, and creates it, private, if it is missing. Links are not followed.
pub fn open_or_make(path: &Path) -> io::Result<File> {
    loop {
        match open_at(CWD, path, Links::Refuse, OFlags::WRONLY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match make_at(CWD, path, Mode::RUSR | Mode::WUSR) {
            // Another program created it in the meantime.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
}

/// Appends bytes to a file, and creates it, private, if it is missing. Links are not followed.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = open_or_make(path)?;
    rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
    (&file).write_all(bytes)
}

/// Creates a private file for writing. Fails if it exists.
pub fn make(path: &Path) -> io::Result<File> {
    make_at(CWD, path, Mode::RUSR | Mode::WUSR)
}

/// Creates a file in an open folder, for writing. Fails if it exists.
pub(crate) fn make_at(folder: impl AsFd, path: &Path, mode: Mode) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, path, flags, mode)?.into())
}

/// Returns true if a folder is in a virtual file system.
pub(crate) fn is_made_up_folder(folder: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::empty()).is_ok_and(is_made_up)
}

/// Writes bytes at an offset, and extends the file if it is shorter.
pub(crate) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// Opens a folder below another. Every component must be a plain name and not a link.
pub(crate) fn folder_below(from: &Path, below: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open(from, flags, Mode::empty())?;
    for part in below.components() {
        let Component::Normal(name) = part else { return Err(Refusal::Link.into()) };
        folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    }
    Ok(folder.into())
}

/// Returns the names in an open folder, sorted.
pub(crate) fn names(folder: &File) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for found in Dir::read_from(folder)? {
        names.push(OsStr::from_bytes(found?.file_name().to_bytes()).to_owned());
    }
    names.retain(|name| name != "." && name != "..");
    names.sort();
    Ok(names)
}

/// Waits until the bytes written to a file are on the disk.
pub(crate) fn sync_data(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// Waits until the names in a folder are on the disk.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    File::from(rustix::fs::open(folder, flags, Mode::empty())?).sync_all()
}

/// Creates a folder and its missing parents, private, and waits until their names are on the disk.
pub fn make_folders(folder: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|one| !one.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for parent in missing.iter().filter_map(|made| made.parent()) {
        let is_here = parent.as_os_str().is_empty();
        sync_folder(if is_here { Path::new(".") } else { parent })?;
    }
    Ok(())
}

/// Returns true if a file exists at a path, without opening it. Everything except a regular file is refused, links too.
pub fn look(path: &Path) -> io::Result<bool> {
    match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => regular(&stat).map(|()| true),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns true if a process has the lock of an open file, as undertext does while it writes one.
pub fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Refuses everything except a regular file.
pub(crate) fn regular(stat: &Stat) -> io::Result<()> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Symlink => return Err(Refusal::Link.into()),
        FileType::Directory => "a folder",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    };
    Err(Refusal::NoFile(kind).into())
}

/// Returns true if a file is in a virtual file system. Some of those files never end, and others block.
#[cfg(target_os = "linux")]
pub(crate) fn is_made_up(file: impl AsFd) -> bool {
    // proc, sysfs, debugfs, tracefs, securityfs, cgroup 1 and 2, bpf, pstore, configfs, selinux, binfmt_misc, nsfs,
    // efivarfs, fusectl, mqueue: the magic numbers of statfs(2).
    const MADE_UP: [i64; 16] = [
        0x9fa0,
        0x6265_6572,
        0x6462_6720,
        0x7472_6163,
        0x7363_6673,
        0x0027_e0eb,
        0x6367_7270,
        0xcafe_4a11,
        0x6165_676c,
        0x6265_6570,
        0xf97c_ff8c,
        0x4249_4e4d,
        0x6e73_6673,
        0xde5e_81e4,
        0x6573_5543,
        0x1980_0202,
    ];
    let magic = rustix::fs::fstatfs(file).map(|stat| stat.f_type & 0xffff_ffff);
    magic.is_ok_and(|magic| MADE_UP.contains(&magic))
}

/// Returns true if a file is in a virtual file system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_made_up(_: impl AsFd) -> bool {
    false
}

/// Reads a whole file. Fails if it is longer than `cap`.
pub fn read(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    whole(open(path, Links::Follow)?, cap)
}

/// Reads a whole file as text. Fails if it is longer than `cap`.
pub fn read_text(path: &Path, cap: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, cap)?);
    text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads a whole stream. Fails if it is longer than `cap`.
pub fn whole(stream: impl Read, cap: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(cap.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > cap { Err(Refusal::TooLong(cap).into()) } else { Ok(bytes) }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes what is read then")]
mod tests {
    use std::{
        fs,
        io::Write,
        os::unix::{fs::symlink, net::UnixListener},
    };

    use super::*;

    fn word(result: io::Result<impl Sized>) -> String {
        result.map_or_else(|error| error.to_string(), |_| "read".to_owned())
    }

    #[test]
    fn nothing_but_a_file_is_opened_and_nothing_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        rustix::fs::mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        fs::write(path("file"), "said").unwrap();
        symlink("/dev/zero", path("to-zero")).unwrap();
        symlink(path("file"), path("to-file")).unwrap();
        symlink(path("pipe"), path("to-pipe")).unwrap();
        symlink("nowhere", path("dangling")).unwrap();
        symlink("loop", path("loop")).unwrap();
        let check = |name: &str, follow: &str, refuse: &str| {
            let path = path(name);
            assert_eq!(word(open(&path, Links::Follow)), follow, "{name}, followed");
            assert_eq!(word(open(&path, Links::Refuse)), refuse, "{name}, not followed");
        };
        let absent = "No such file or directory (os error 2)";
        let [device, link] = ["it is a device, not a file", "it is a link, not a file"];
        check("file", "read", "read");
        check("to-file", "read", link);
        check("pipe", "it is a pipe, not a file", "it is a pipe, not a file");
        check("to-pipe", "it is a pipe, not a file", link);
        check("/dev/zero", device, device);
        check("to-zero", device, link);
        check(".", "it is a folder, not a file", "it is a folder, not a file");
        check("absent", absent, absent);
        check("dangling", absent, link);
        assert_eq!(word(open(&path("socket"), Links::Follow)), "it is a socket, not a file");
        assert_eq!(word(open(&path("loop"), Links::Refuse)), link);
        assert!(open(&path("loop"), Links::Follow).is_err());
        assert_eq!(word(open_or_make(&path("pipe"))), "it is a pipe, not a file");
        assert_eq!(word(open_or_make(&path("dangling"))), link);
        assert_eq!(
            word(open_or_make(&path("made")).and_then(|_| open_or_make(&path("made")))),
            "read"
        );
        let write = |name: &str| open_at(CWD, &path(name), Links::Refuse, OFlags::WRONLY);
        assert_eq!(word(write("pipe")), "it is a pipe, not a file");
        assert_eq!(word(write(".")), "it is a folder, not a file");
        assert_eq!(word(write("to-file")), link);
    }

    #[test]
    fn what_the_system_makes_up_is_no_file() {
        if cfg!(target_os = "linux") {
            let made_up = read(Path::new("/proc/self/status"), SMALL).unwrap_err();
            assert_eq!(Refusal::of(&made_up), Some(Refusal::MadeUp));
        }
    }

    #[test]
    fn a_file_is_read_to_its_cap_even_if_it_grows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "said").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"said");
        assert_eq!(read_text(&path, 4).unwrap(), "said");
        assert_eq!(word(read(&path, 3)), "it is longer than 3 bytes");
        let opened = open(&path, Links::Follow).unwrap();
        File::options().append(true).open(&path).unwrap().write_all(b" more").unwrap();
        let error = whole(opened, 4).unwrap_err();
        assert_eq!(Refusal::of(&error), Some(Refusal::TooLong(4)));
        assert_eq!(word(whole(io::repeat(0), 1 << 10)), "it is longer than 1024 bytes");
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_text(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
