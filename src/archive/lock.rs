//! The lock of an archive: one program at a time changes it. Who waits is told for whom, and waits for a while only.

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
    disk::{self, Disk, Links},
    model::{LOCK, WATCHED},
};

/// How long a program waits before it is told for whom.
const SILENT: Duration = Duration::from_secs(1);

/// Is told who holds the lock, where the system tells.
pub type Told = Box<dyn Fn(Option<&Holder>) + Send>;

/// How long a change waits for another program, and who is told that it waits.
pub struct Waiting {
    /// How long.
    pub limit: Duration,
    /// Is told once, after a second.
    pub told: Told,
}

impl Default for Waiting {
    /// Waits for half a minute, and tells nobody.
    fn default() -> Self {
        Self { limit: Duration::from_secs(30), told: Box::new(|_| ()) }
    }
}

/// Waits until no other program changes the archive in a folder, and keeps the others out while the answer lives.
pub(crate) fn lock(
    disk: &Arc<dyn Disk>,
    root: &Path,
    waiting: &Waiting,
) -> Result<File, SyncError> {
    let (disk, path) = (Arc::clone(disk), root.join(LOCK));
    wait(root, waiting, move |waits| disk.lock(&path, waits))
}

/// Locks a folder that may hold no archive, and makes nothing there.
pub(crate) fn lock_if_there(root: &Path, waiting: &Waiting) -> Result<Option<File>, SyncError> {
    let path = root.join(LOCK);
    let taken = wait(root, waiting, move |waits| {
        let file = disk::open_at(CWD, &path, Links::Refuse, OFlags::WRONLY)?;
        if waits {
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

/// Waits for the lock of an archive, which `take` takes: at once or not at all, or once it is free.
fn wait(
    root: &Path,
    waiting: &Waiting,
    take: impl Fn(bool) -> io::Result<Option<File>> + Send + 'static,
) -> Result<File, SyncError> {
    let path = root.join(LOCK);
    let io = SyncError::at(&path);
    if let Some(file) = take(false).map_err(io)? {
        return Ok(file);
    }
    // The kernel wakes those who wait in their order. One that waits too long is left to wait for nothing.
    let (send, receive) = mpsc::channel();
    let waiter = thread::Builder::new().spawn(move || drop(send.send(take(true))));
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

/// Keeps other programs from watching for the archive in a folder while the answer lives, which is what did so before if that
/// still is there.
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
    let taken = disk.lock(&path, false);
    let taken = taken.map_err(SyncError::at(&path))?;
    taken.ok_or_else(|| SyncError::Watched { path: root.to_owned(), holder: holder(&path) })
}

/// Returns whether a name in a store's folder is that of a file whose lock programs hold.
pub(crate) fn is_lock(name: &OsStr) -> bool {
    name == LOCK || name == WATCHED
}
