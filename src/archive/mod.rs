//! The archive: a store together with its live files, and everything its changes need from the machine (clock, time zone,
//! randomness, disk, lock).
//!
//! Invariants: the library never reads the clock, the time zone or a random source except through [`Ambient`]. Opening for
//! reading never creates a store. A store that is refused gets no new file and no new folder.

mod at;
pub(crate) mod busy;
pub(crate) mod error;
pub(crate) mod holder;
pub(crate) mod lists;
pub(crate) mod lock;
pub(crate) mod old_store;
pub(crate) mod owner;
pub(crate) mod rebuild;
pub(crate) mod skip;
pub(crate) mod workspace;

pub use at::At;
pub use error::{Misread, NoPlace, SyncError, Vain};
pub use holder::Holder;
pub use lock::{Told, Waiting};
pub(crate) use lock::{is_lock, lock_if_there};
pub(crate) use old_store::set_aside;
pub use skip::{Skipped, Why};
pub(crate) use workspace::without_credentials;
pub use workspace::{Workspace, dependencies, workspace};

use std::{
    cell::RefCell,
    ffi::OsStr,
    fs::{self, File},
    io::ErrorKind,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::SystemTime,
};

#[expect(clippy::disallowed_types, reason = "this is where the machine's time zone comes in")]
use chrono::Local;
use chrono::{FixedOffset, Offset as _, TimeZone as _, Utc};
use uuid::Uuid;

use crate::{
    archive::{lists::Shared, rebuild::rebuild_all},
    disk::{self, Disk, Kernel, Paper},
    live::Writable,
    model::{self, DATABASE, MachineId, SessionName, TRANSCRIPTS, Timestamp},
    session::Session,
    settings::Exclude,
    store::{Access, Fault, MemoryStore, SessionFilter, SqliteStore, Store, StoreError},
};

/// Opens the database in a store's folder. If it does not exist, the error names the folder, as the user typed it.
pub(crate) fn database(root: &Path, access: Access) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(&root.join(DATABASE), access).map_err(|error| match error {
        StoreError::Absent { .. } => StoreError::Absent { path: root.to_owned() },
        error => error,
    })
}

/// Clock, time zone and randomness. The library reads them only through this trait.
pub trait Ambient: Send {
    /// Returns the time.
    fn now(&mut self) -> Timestamp;
    /// Returns the local offset from UTC at a time; some agents put local time into file names. UTC if unknown.
    fn offset(&mut self, _at: Timestamp) -> FixedOffset {
        Utc.fix()
    }
    /// Returns a fresh random id.
    fn uuid(&mut self) -> Uuid;
    /// Returns a salt for hashing words that a person entered.
    fn salt(&mut self) -> [u8; 16] {
        self.uuid().into_bytes()
    }
}

/// The machine's own clock, time zone and random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Ambient for Machine {
    #[expect(clippy::disallowed_methods, reason = "this is where the machine's clock comes in")]
    fn now(&mut self) -> Timestamp {
        SystemTime::now().into()
    }

    fn offset(&mut self, at: Timestamp) -> FixedOffset {
        Local.offset_from_utc_datetime(&at.utc().naive_utc())
    }

    fn uuid(&mut self) -> Uuid {
        Uuid::new_v4()
    }
}

/// The account on a computer that file paths refer to, and its home folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// A random number, drawn once for this account on this computer.
    pub machine: MachineId,
    /// The home folder. Paths inside it are stored relative to it.
    pub home: Option<PathBuf>,
}

impl Here {
    /// Returns a file's place, as the store writes it.
    fn place_of(&self, path: &Path) -> model::Place {
        let below = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        match below {
            Some(below) => model::Place::Home(self.machine, below.as_os_str().as_bytes().to_vec()),
            None => model::Place::Path(self.machine, path.as_os_str().as_bytes().to_vec()),
        }
    }

    /// Returns the path of a session's file, or nothing if it is on another computer or account; `root` is the store's folder.
    pub(crate) fn path_of(&self, root: Option<&Path>, place: &model::Place) -> Option<PathBuf> {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        match place {
            model::Place::Store(below) => Some(root?.join(path(below))),
            model::Place::Home(machine, below) if *machine == self.machine => {
                Some(self.home.as_deref()?.join(path(below)))
            }
            model::Place::Path(machine, whole) if *machine == self.machine => Some(path(whole)),
            _ => None,
        }
    }
}

/// What a thread needs to resolve the places of an archive's files.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    here: Here,
    root: Option<PathBuf>,
}

impl Places {
    /// Returns the path of a session's file, or nothing if it is on another computer or account.
    pub(crate) fn path_of(&self, place: &model::Place) -> Option<PathBuf> {
        self.here.path_of(self.root.as_deref(), place)
    }
}

/// How changes write an agent's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Write it even if a process may have its session open.
    pub force: bool,
    /// Set the file aside and write a successor, even where appending would be enough.
    pub rotate: bool,
    /// The folder where the session may work, for agents that keep a list of folders.
    pub folder: Option<String>,
}

/// A store with its live files, on which the verbs work.
pub struct Archive {
    pub(crate) store: Box<dyn Store>,
    pub(crate) root: Option<PathBuf>,
    ambient: RefCell<Box<dyn Ambient>>,
    pub(crate) disk: Arc<dyn Disk>,
    here: Here,
    pub(crate) manner: Manner,
    pub(crate) writable: Writable,
    pub(crate) exclude: Exclude,
    pub(crate) waiting: Waiting,
    /// The lock, while anything in this archive holds it.
    held: RefCell<Weak<File>>,
    /// Folders and lists that several sessions share.
    pub(crate) shared: RefCell<Shared>,
    /// True if changes are only layered over the store and no file is written.
    pub(crate) is_preview: bool,
    /// Why the store's last changes cannot be read, if they cannot.
    torn: Option<Fault>,
    /// How many operations the store once had and how many it has now, if it lost some.
    forgotten: Option<(u64, u64)>,
}

impl Archive {
    /// Opens the archive in a folder. Unless access is read-only, creates missing folders and files, readable only by their
    /// owner.
    pub fn open(root: &Path, access: Access, ambient: Box<dyn Ambient>) -> Result<Self, SyncError> {
        Self::open_telling(root, access, ambient, &mut |_, _| ())
    }

    /// Like [`open`](Self::open). If derived rows of an older version are rebuilt, reports progress: sessions done, sessions in
    /// total.
    pub fn open_telling(
        root: &Path,
        access: Access,
        ambient: Box<dyn Ambient>,
        told: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, SyncError> {
        let make = |folder: &Path| {
            disk::make_folders(folder).map_err(|source| match source.kind() {
                ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                    StoreError::ReadOnly { path: root.to_owned() }.into()
                }
                _ => SyncError::at(folder)(source),
            })
        };
        if access != Access::Read {
            owner::check(root)?;
            owner::check_place(root)?;
            make(root)?;
        }
        // Resolve links once, so that they cannot change target between two steps.
        let root = match fs::canonicalize(root) {
            Err(error) if error.kind() == ErrorKind::NotFound => root.to_owned(),
            other => other.map_err(SyncError::at(root))?,
        };
        let mut store = database(&root, access)?;
        // Any other damage is reported when something reads the damaged part.
        let torn = store.leave_torn().ok().flatten();
        // Opening for writing has already failed if the store lost changes.
        let forgotten = if access == Access::Read {
            store.testimony().forgotten().ok().flatten()
        } else {
            None
        };
        // A refused store gets nothing new, not even a folder.
        if access != Access::Read {
            make(&root.join(TRANSCRIPTS))?;
        }
        let opened = Self::over(Box::new(store), ambient);
        let archive = Self { root: Some(root), torn, forgotten, ..opened };
        if access != Access::Read && archive.store.is_stale()? {
            let _lock = archive.lock_alone()?;
            rebuild_all(archive.store(), told)?;
        }
        Ok(archive)
    }

    /// Creates an archive over any store, without live files.
    pub fn over(store: Box<dyn Store>, ambient: Box<dyn Ambient>) -> Self {
        Self {
            store,
            root: None,
            ambient: RefCell::new(ambient),
            disk: Arc::new(Kernel),
            here: Here::default(),
            manner: Manner::default(),
            writable: Writable::default(),
            exclude: Exclude::default(),
            waiting: Waiting::default(),
            held: RefCell::default(),
            shared: RefCell::default(),
            is_preview: false,
            torn: None,
            forgotten: None,
        }
    }

    /// Opens the archive again for reading, in its current state; nothing if it is only in memory.
    pub(crate) fn reopened(&self) -> Result<Option<Self>, SyncError> {
        let Some(root) = &self.root else { return Ok(None) };
        let opened = Self::open(root, Access::Read, Box::new(Machine))?;
        let (here, writable) = (self.here.clone(), self.writable.clone());
        Ok(Some(Self { here, writable, exclude: self.exclude.clone(), ..opened }))
    }

    /// Turns the archive into a preview: its changes stay in memory, no file is written, and dropping the value discards them.
    pub fn preview(self) -> Result<Self, SyncError> {
        if self.is_preview {
            return Ok(self);
        }
        let store = Box::new(MemoryStore::over(self.store)?);
        Ok(Self { store, disk: Arc::new(Paper), is_preview: true, ..self })
    }

    /// Creates an archive in memory. It is discarded with the value.
    pub fn in_memory(ambient: Box<dyn Ambient>) -> Self {
        Self::over(Box::new(MemoryStore::new()), ambient)
    }

    /// Sets how changes write agents' files.
    pub fn set_manner(&mut self, manner: Manner) {
        self.manner = manner;
    }

    /// Sets the disk through which files are changed. The default is this machine's disk.
    pub fn set_disk(&mut self, disk: Arc<dyn Disk>) {
        self.disk = disk;
    }

    /// Returns the computer and the account that paths refer to.
    pub(crate) fn here(&self) -> &Here {
        &self.here
    }

    /// Sets the computer and the account that paths refer to.
    pub fn set_here(&mut self, here: Here) {
        self.here = here;
    }

    /// Sets which agents' files may be written. By default only the store's own transcripts may be.
    pub fn set_writable(&mut self, writable: Writable) {
        self.writable = writable;
    }

    /// Sets which sessions to exclude. The default excludes none.
    pub fn set_exclude(&mut self, exclude: Exclude) {
        self.exclude = exclude;
    }

    /// Sets how long changes wait for another program.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Returns true for a preview.
    pub fn is_preview(&self) -> bool {
        self.is_preview
    }

    /// Returns why the store's last changes cannot be read, if they cannot. Reads then show the store as it was before those
    /// changes.
    pub fn torn(&self) -> Option<&Fault> {
        self.torn.as_ref()
    }

    /// Returns how many operations the store once had and how many it has now, if it lost some. Changes to such a store are
    /// refused.
    pub fn forgotten(&self) -> Option<(u64, u64)> {
        self.forgotten
    }

    /// Returns the store's folder, if it has one.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Returns the sessions with their cards, newest first.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<crate::store::Listed>, SyncError> {
        Ok(self.store.sessions(filter)?)
    }

    /// Returns all sessions, including those hidden from lists.
    pub fn every(&self) -> Result<Vec<Session>, SyncError> {
        let known =
            self.store.names()?.into_iter().map(|(key, name)| Session::from_store(key, name));
        Ok(known.collect::<Result<_, _>>()?)
    }

    /// Returns the session with this name.
    pub fn session(&self, name: &SessionName) -> Result<Option<Session>, SyncError> {
        Ok(Session::find(self.store.as_ref(), name)?)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.ambient.borrow_mut().now()
    }

    pub(crate) fn offset(&self, at: Timestamp) -> FixedOffset {
        self.ambient.borrow_mut().offset(at)
    }

    pub(crate) fn uuid(&self) -> Uuid {
        self.ambient.borrow_mut().uuid()
    }

    pub(crate) fn salt(&self) -> [u8; 16] {
        self.ambient.borrow_mut().salt()
    }

    /// Takes the lock without first finishing what an interrupted program left half-done.
    pub(crate) fn lock_alone(&self) -> Result<Option<Arc<File>>, SyncError> {
        let Some(root) = self.root.as_ref().filter(|_| !self.is_preview) else { return Ok(None) };
        let lock = Arc::new(lock::lock(&self.disk, root, &self.waiting)?);
        self.held.replace(Arc::downgrade(&lock));
        Ok(Some(lock))
    }

    /// Returns the lock if this archive already holds it, so that a command of several steps holds one lock throughout.
    pub(crate) fn held_lock(&self) -> Option<Arc<File>> {
        self.held.borrow().upgrade()
    }

    /// Takes the watch lock, which keeps other programs from watching this archive until it is dropped. Returns `before`, an
    /// earlier watch lock, unless it belongs to a store that no longer exists.
    pub fn watch_alone(&self, before: Option<File>) -> Result<Option<File>, SyncError> {
        let alone = |root: &PathBuf| lock::watch_alone(&self.disk, root, before);
        self.root.as_ref().map(alone).transpose()
    }

    /// Returns a file's place, as the store writes it.
    pub fn place_of(&self, path: &Path) -> model::Place {
        self.here.place_of(path)
    }

    /// Returns the place of a file in the store's folder.
    pub(crate) fn place_in(&self, path: &Path) -> model::Place {
        let below = self.root.as_deref().and_then(|root| path.strip_prefix(root).ok());
        model::Place::Store(below.unwrap_or(path).as_os_str().as_bytes().to_vec())
    }

    /// Returns the path of a session's file, or nothing if it is on another computer or account.
    pub fn path_of(&self, place: &model::Place) -> Option<PathBuf> {
        self.here.path_of(self.root.as_deref(), place)
    }

    /// Returns what a thread needs to resolve the places of this archive's files.
    pub(crate) fn places(&self) -> Places {
        Places { here: self.here.clone(), root: self.root.clone() }
    }
}
