//! A SQLite VFS that fails on purpose: the n-th write or sync of the files below a folder, and every one after it. It also
//! counts what is read of them. [`crate::faults`] has a [`undertext::disk::Disk`] that fails by the same count.
//!
//! It is registered as the default one and passes everything on to the one that was, so that the store is opened as ever;
//! only files below a folder that a test has named are touched. Below it stand the syncs of all files, which are noted.
//!
//! Invariant: this is the only unsafe code; a file's table of methods is replaced by one that asks first.

#![expect(unsafe_code, reason = "SQLite's interface to the file system is one of C")]

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_int, c_void},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicI64, Ordering},
    },
};

use rusqlite::ffi::{
    SQLITE_FULL, SQLITE_IOERR_DELETE, SQLITE_IOERR_FSYNC, SQLITE_IOERR_READ, SQLITE_IOERR_TRUNCATE,
    SQLITE_IOERR_WRITE, SQLITE_OK, sqlite3_file, sqlite3_initialize, sqlite3_io_methods,
    sqlite3_vfs, sqlite3_vfs_find, sqlite3_vfs_register,
};

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A write, because the disk is full.
    Full,
    /// A write.
    Write,
    /// A read.
    Read,
    /// A sync.
    Sync,
    /// The process: it is killed before it writes or syncs.
    Kill,
    /// Whatever changes a file: a write, a sync, any other step of the store's files or of the disk.
    Step,
}

/// What is about to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Read,
    Write,
    Sync,
    /// A file is cut, named, stamped, deleted or locked.
    Other,
}

/// A folder whose files are about to fail.
#[derive(Debug)]
pub(crate) struct Faults {
    folder: PathBuf,
    n: i64,
    countdown: Arc<Countdown>,
}

/// Counts events and says which of them fail.
#[derive(Debug)]
pub(crate) struct Countdown {
    failure: Failure,
    left: AtomicI64,
    forever: bool,
    /// How often a file was read.
    reads: AtomicI64,
}

impl Countdown {
    /// Counts an event, if it is of the kind that fails, and returns whether it must.
    pub(crate) fn fails(&self, event: Event) -> bool {
        let counts = match self.failure {
            Failure::Full | Failure::Write => event == Event::Write,
            Failure::Sync => event == Event::Sync,
            Failure::Read => event == Event::Read,
            Failure::Kill => !matches!(event, Event::Other | Event::Read),
            Failure::Step => event != Event::Read,
        };
        if !counts {
            return false;
        }
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        if self.failure == Failure::Kill && left == 1 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
        }
        left == 1 || (left < 1 && self.forever)
    }

    /// Returns whether any event has failed.
    pub(crate) fn fired(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 1
    }
}

/// The folders that are watched, and the files that are open below them.
struct Watched {
    folders: Vec<(PathBuf, Arc<Countdown>)>,
    files: BTreeMap<usize, Opened>,
}

/// A file that is open, with the methods that it came with.
#[derive(Clone)]
struct Opened {
    countdown: Arc<Countdown>,
    methods: sqlite3_io_methods,
}

static WATCHED: Mutex<Watched> =
    Mutex::new(Watched { folders: Vec::new(), files: BTreeMap::new() });
static VFS: OnceLock<Original> = OnceLock::new();

struct Original(sqlite3_vfs);

// SAFETY: the copy is only read, and what it points at belongs to SQLite for as long as the process lives.
unsafe impl Send for Original {}
// SAFETY: as above.
unsafe impl Sync for Original {}

impl Faults {
    /// Lets the `n`-th call fail from now on, and every one after it if it is to be so `forever`; it holds for the files
    /// that are opened while this value lives.
    pub(crate) fn arm(folder: &Path, failure: Failure, n: i64, forever: bool) -> Self {
        VFS.get_or_init(register);
        let folder = folder.canonicalize().unwrap();
        let (left, reads) = (AtomicI64::new(n), AtomicI64::new(0));
        let countdown = Arc::new(Countdown { failure, left, forever, reads });
        WATCHED.lock().unwrap().folders.push((folder.clone(), Arc::clone(&countdown)));
        Self { folder, n, countdown }
    }

    /// Lets nothing fail, and counts.
    pub(crate) fn none(folder: &Path) -> Self {
        Self::arm(folder, Failure::Write, i64::MAX, false)
    }

    /// Returns how often a file was read: mostly a page at a time.
    pub(crate) fn reads(&self) -> i64 {
        self.countdown.reads.load(Ordering::SeqCst)
    }

    /// Returns whether any call has failed.
    pub(crate) fn fired(&self) -> bool {
        self.countdown.fired()
    }

    /// Returns what counts, for whatever else is to fail by the same count.
    pub(crate) fn countdown(&self) -> Arc<Countdown> {
        Arc::clone(&self.countdown)
    }

    /// Returns how many calls were counted.
    pub(crate) fn counted(&self) -> i64 {
        self.n - self.countdown.left.load(Ordering::SeqCst)
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        WATCHED.lock().unwrap().folders.retain(|(folder, _)| *folder != self.folder);
        self.countdown.left.store(i64::MAX, Ordering::SeqCst);
    }
}

fn register() -> Original {
    // SAFETY: SQLite is initialised, so that it has a default VFS; ours is leaked, because SQLite keeps it.
    unsafe {
        sqlite3_initialize();
        let original = *sqlite3_vfs_find(std::ptr::null());
        let ours = Box::leak(Box::new(original));
        ours.zName = c"failing".as_ptr();
        ours.pNext = std::ptr::null_mut();
        ours.xOpen = Some(open);
        ours.xDelete = Some(delete);
        assert_eq!(sqlite3_vfs_register(ours, 1), SQLITE_OK);
        Original(original)
    }
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const std::ffi::c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: every argument is handed on as it came. A file that was opened has a table of methods.
    unsafe {
        let Some(original) = VFS.get().and_then(|vfs| vfs.0.xOpen) else {
            return SQLITE_IOERR_WRITE;
        };
        let code = original(vfs, name, file, flags, out);
        if code != SQLITE_OK || name.is_null() {
            return code;
        }
        let path = Path::new(std::ffi::OsStr::from_bytes(CStr::from_ptr(name).to_bytes()));
        let mut watched = WATCHED.lock().unwrap();
        let found = watched.folders.iter().find(|(folder, _)| path.starts_with(folder));
        if let Some(countdown) = found.map(|(_, countdown)| Arc::clone(countdown)) {
            // Files differ in their methods; a table lives for as long as the process, because SQLite may hold on to it.
            let methods = *(*file).pMethods;
            let ours = Box::leak(Box::new(methods));
            ours.xRead = Some(read);
            ours.xWrite = Some(write);
            ours.xSync = Some(sync);
            ours.xTruncate = Some(truncate);
            ours.xClose = Some(close);
            watched.files.insert(file as usize, Opened { countdown, methods });
            (*file).pMethods = ours;
        }
        code
    }
}

fn opened(file: *mut sqlite3_file) -> Option<Opened> {
    WATCHED.lock().unwrap().files.get(&(file as usize)).cloned()
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    bytes: *mut c_void,
    count: c_int,
    at: i64,
) -> c_int {
    let Some(Opened { countdown, methods }) = opened(file) else { return SQLITE_IOERR_READ };
    countdown.reads.fetch_add(1, Ordering::SeqCst);
    if countdown.fails(Event::Read) {
        return SQLITE_IOERR_READ;
    }
    // SAFETY: every argument is handed on as it came.
    methods.xRead.map_or(SQLITE_IOERR_READ, |own| unsafe { own(file, bytes, count, at) })
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    bytes: *const c_void,
    count: c_int,
    at: i64,
) -> c_int {
    match opened(file) {
        Some(Opened { countdown, .. }) if countdown.fails(Event::Write) => {
            match countdown.failure {
                Failure::Full => SQLITE_FULL,
                _ => SQLITE_IOERR_WRITE,
            }
        }
        // SAFETY: every argument is handed on as it came.
        Some(Opened { methods, .. }) => {
            methods.xWrite.map_or(SQLITE_IOERR_WRITE, |own| unsafe { own(file, bytes, count, at) })
        }
        None => SQLITE_IOERR_WRITE,
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    match opened(file) {
        Some(Opened { countdown, .. }) if countdown.fails(Event::Sync) => SQLITE_IOERR_FSYNC,
        // SAFETY: every argument is handed on as it came.
        Some(Opened { methods, .. }) => {
            methods.xSync.map_or(SQLITE_IOERR_FSYNC, |own| unsafe { own(file, flags) })
        }
        None => SQLITE_IOERR_FSYNC,
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: i64) -> c_int {
    match opened(file) {
        Some(Opened { countdown, .. }) if countdown.fails(Event::Other) => SQLITE_IOERR_TRUNCATE,
        // SAFETY: every argument is handed on as it came.
        Some(Opened { methods, .. }) => {
            methods.xTruncate.map_or(SQLITE_IOERR_TRUNCATE, |own| unsafe { own(file, length) })
        }
        None => SQLITE_IOERR_TRUNCATE,
    }
}

unsafe extern "C" fn delete(
    vfs: *mut sqlite3_vfs,
    name: *const std::ffi::c_char,
    sync_folder: c_int,
) -> c_int {
    // SAFETY: every argument is handed on as it came.
    unsafe {
        let path = Path::new(std::ffi::OsStr::from_bytes(CStr::from_ptr(name).to_bytes()));
        let watched = WATCHED.lock().unwrap();
        let found = watched.folders.iter().find(|(folder, _)| path.starts_with(folder));
        if found.is_some_and(|(_, countdown)| countdown.fails(Event::Other)) {
            return SQLITE_IOERR_DELETE;
        }
        drop(watched);
        let original = VFS.get().and_then(|vfs| vfs.0.xDelete);
        original.map_or(SQLITE_IOERR_DELETE, |own| own(vfs, name, sync_folder))
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let opened = WATCHED.lock().unwrap().files.remove(&(file as usize));
    let own = opened.and_then(|opened| opened.methods.xClose);
    // SAFETY: the file is closed by what has opened it.
    own.map_or(SQLITE_OK, |own| unsafe { own(file) })
}

/// What was synced, by whichever part of the program: this binary has an `fsync` and an `fdatasync` of its own, which the
/// standard library and SQLite call in the place of libc's. Each says which file it was asked to sync, and asks the kernel.
///
/// Invariant: each thread sees its own syncs only, so that tests do not see those of others.
#[cfg(target_os = "linux")]
mod syncs {
    use std::{cell::RefCell, ffi::c_int, fs, os::fd::BorrowedFd, path::PathBuf};

    use crate::power::Image;

    /// What was synced: a file and how long it was, or a folder and what was in it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) enum Synced {
        File(PathBuf, u64),
        Folder(PathBuf, Vec<String>),
    }

    thread_local! {
        static SEEN: RefCell<Vec<Synced>> = const { RefCell::new(Vec::new()) };
        static IMAGE: RefCell<Option<Image>> = const { RefCell::new(None) };
    }

    /// Has what this thread syncs from now on be kept in an image of what a power cut leaves, and returns the one so far.
    pub(crate) fn keep_synced(image: Option<Image>) -> Option<Image> {
        IMAGE.replace(image)
    }

    /// Returns what this thread has synced since it was asked last.
    pub(crate) fn synced() -> Vec<Synced> {
        SEEN.take()
    }

    #[unsafe(no_mangle)]
    extern "C" fn fsync(fd: c_int) -> c_int {
        note(fd);
        // SAFETY: the caller has the descriptor open until this returns.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::fs::fsync(file).map_or(-1, |()| 0)
    }

    #[unsafe(no_mangle)]
    extern "C" fn fdatasync(fd: c_int) -> c_int {
        note(fd);
        // SAFETY: the caller has the descriptor open until this returns.
        let file = unsafe { BorrowedFd::borrow_raw(fd) };
        rustix::fs::fdatasync(file).map_or(-1, |()| 0)
    }

    fn note(fd: c_int) {
        let Ok(path) = fs::read_link(format!("/proc/self/fd/{fd}")) else { return };
        let Ok(meta) = fs::metadata(&path) else { return };
        let synced = if meta.is_dir() {
            let names = fs::read_dir(&path).into_iter().flatten().flatten();
            let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.collect();
            names.sort();
            Synced::Folder(path, names)
        } else {
            Synced::File(path, meta.len())
        };
        let _ = IMAGE.try_with(|image| {
            if let Some(image) = &mut *image.borrow_mut() {
                match &synced {
                    Synced::File(path, _) => image.keep_file(path),
                    Synced::Folder(path, _) => image.keep_names(path),
                }
            }
        });
        // A thread that ends has nowhere to note it.
        let _ = SEEN.try_with(|seen| seen.borrow_mut().push(synced));
    }
}

#[cfg(target_os = "linux")]
pub(crate) use syncs::{Synced, keep_synced, synced};
