//! The lock of an archive: only one program changes it at a time. A waiting program reports which process it waits for, and gives
//! up after a limit.

use std::{
    ffi::OsStr,
    fs::{self, File, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt as _,
    path::Path,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use rustix::fs::{CWD, OFlags};

use crate::{
    archive::{
        SyncError,
        holder::{Holder, holder},
    },
    disk::{self, Disk, IfHeld, Links},
    model::{COMPACTING, LOCK, WATCHED},
};

/// How long a program waits before it reports that it is waiting.
const SILENT: Duration = Duration::from_secs(1);

/// Called with the process that holds the lock, where the system reports it.
pub type Told = Box<dyn Fn(Option<&Holder>) + Send>;

/// How long a change waits for another program, and whom to notify.
pub struct Waiting {
    /// How long to wait.
    pub limit: Duration,
    /// Called once, after one second of waiting.
    pub told: Told,
}

impl Default for Waiting {
    /// Waits up to 30 seconds and notifies nobody.
    fn default() -> Self {
        Self { limit: Duration::from_secs(30), told: Box::new(|_| ()) }
    }
}

/// Waits for the archive's lock. It is held until the returned file is dropped.
pub(crate) fn lock(
    disk: &Arc<dyn Disk>,
    root: &Path,
    waiting: &Waiting,
) -> Result<File, SyncError> {
    let (disk, path) = (Arc::clone(disk), root.join(LOCK));
    wait(root, waiting, move |if_held| disk.lock(&path, if_held))
}

/// Locks a folder if it contains a lock file; creates nothing.
pub(crate) fn lock_if_there(root: &Path, waiting: &Waiting) -> Result<Option<File>, SyncError> {
    let path = root.join(LOCK);
    let taken = wait(root, waiting, move |if_held| {
        let file = disk::open_at(CWD, &path, Links::Refuse, OFlags::WRONLY)?;
        if if_held == IfHeld::Wait {
            return file.lock().map(|()| Some(file));
        }
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    });
    match taken {
        Err(SyncError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        taken => taken.map(Some),
    }
}

/// Waits for an archive's lock. `take` tries once, or blocks until the lock is free.
fn wait(
    root: &Path,
    waiting: &Waiting,
    take: impl Fn(IfHeld) -> io::Result<Option<File>> + Send + 'static,
) -> Result<File, SyncError> {
    let path = root.join(LOCK);
    let io = SyncError::at(&path);
    if let Some(file) = take(IfHeld::GiveUp).map_err(io)? {
        return Ok(file);
    }
    // A blocking call, so that the kernel wakes waiters in order. After a timeout the thread keeps waiting and nobody uses its
    // result.
    let (send, receive) = mpsc::channel();
    let waiter = thread::Builder::new().spawn(move || drop(send.send(take(IfHeld::Wait))));
    waiter.map_err(io)?;
    let mut taken = receive.recv_timeout(SILENT.min(waiting.limit));
    if matches!(taken, Err(RecvTimeoutError::Timeout)) && waiting.limit > SILENT {
        (waiting.told)(holder(&path).as_ref());
        taken = receive.recv_timeout(waiting.limit.saturating_sub(SILENT));
    }
    match taken {
        Ok(Ok(Some(file))) => Ok(file),
        Ok(Err(source)) => Err(io(source)),
        Ok(Ok(None)) | Err(_) => {
            let (path, limit) = (root.to_owned(), waiting.limit);
            Err(SyncError::Held { path, holder: holder(&root.join(LOCK)), limit })
        }
    }
}

/// Takes the watch lock of the archive in a folder; it is held until the returned file is dropped. Returns `before`, an earlier
/// watch lock, if it still is the file in the folder.
pub(crate) fn watch_alone(
    disk: &Arc<dyn Disk>,
    root: &Path,
    before: Option<File>,
) -> Result<File, SyncError> {
    let path = root.join(WATCHED);
    if let Some(before) = before
        && let (Ok(held), Ok(there)) = (before.metadata(), fs::symlink_metadata(&path))
        && (held.dev(), held.ino()) == (there.dev(), there.ino())
    {
        return Ok(before);
    }
    let taken = disk.lock(&path, IfHeld::GiveUp);
    let taken = taken.map_err(SyncError::at(&path))?;
    taken.ok_or_else(|| SyncError::Watched { path: root.to_owned(), holder: holder(&path) })
}

/// Returns true if this is the name of a lock file in a store's folder.
pub(crate) fn is_lock(name: &OsStr) -> bool {
    name == LOCK || name == WATCHED || name.as_encoded_bytes().starts_with(COMPACTING.as_bytes())
}
