//! The archive: a store with its live files, and the parts of the machine that its changes see.

pub(crate) mod error;
pub(crate) mod holder;
pub(crate) mod lists;
pub(crate) mod lock;
pub(crate) mod old_store;
pub(crate) mod owner;
pub(crate) mod rebuild;
pub(crate) mod skip;
pub(crate) mod workspace;

pub use error::{Misread, NoPlace, SyncError, Vain};
pub use holder::Holder;
pub use lock::{Told, Waiting};
pub(crate) use lock::{is_lock, lock_if_there};
pub(crate) use old_store::set_aside;
pub(crate) use owner::has_others;
pub use skip::{Skipped, Why};
pub(crate) use workspace::without_credentials;
pub use workspace::{Workspace, workspace};

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

/// Opens the database in a store's folder; a store that is not there is named by the folder, as it was asked for.
pub(crate) fn database(root: &Path, access: Access) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(&root.join(DATABASE), access).map_err(|error| match error {
        StoreError::Absent { .. } => StoreError::Absent { path: root.to_owned() },
        error => error,
    })
}

/// Clock, time zone and chance, which the library never reads by itself.
pub trait Ambient: Send {
    /// Returns the time.
    fn now(&mut self) -> Timestamp;
    /// Returns how far local time is from UTC at a time: an agent names some of its files by it. Unless it is known, it is UTC.
    fn offset(&mut self, _at: Timestamp) -> FixedOffset {
        Utc.fix()
    }
    /// Returns a fresh random id.
    fn uuid(&mut self) -> Uuid;
    /// Returns the salt of words that a person gave.
    fn salt(&mut self) -> [u8; 16] {
        self.uuid().into_bytes()
    }
}

/// The clock, the time zone and the chance of the machine.
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

/// Where paths of files belong: an account on a computer, and its home folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Here {
    /// The number that was drawn for this account on this computer.
    pub machine: MachineId,
    /// The home folder: paths below it are kept relative to it.
    pub home: Option<PathBuf>,
}

impl Here {
    /// Returns the place of a file as the store keeps it.
    fn place_of(&self, path: &Path) -> model::Place {
        let below = self.home.as_ref().and_then(|home| path.strip_prefix(home).ok());
        match below {
            Some(below) => model::Place::Home(self.machine, below.as_os_str().as_bytes().to_vec()),
            None => model::Place::Path(self.machine, path.as_os_str().as_bytes().to_vec()),
        }
    }

    /// Returns where a file of a session is, if that is here; `root` is the store's folder.
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

/// Where the files of an archive lie, for a thread that reads them.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    here: Here,
    root: Option<PathBuf>,
}

impl Places {
    /// Returns where a file of a session is, if that is here.
    pub(crate) fn path_of(&self, place: &model::Place) -> Option<PathBuf> {
        self.here.path_of(self.root.as_deref(), place)
    }
}

/// How changes treat a file of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Write it even if a process may have its session open.
    pub force: bool,
    /// Set it aside and write a new one even where appending would do.
    pub rotate: bool,
    /// The folder in which the session may work, for an agent that lists them.
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
    /// The lock, as long as anything here holds it.
    held: RefCell<Weak<File>>,
    /// What sessions share next to their files.
    pub(crate) shared: RefCell<Shared>,
    /// Whether changes are only laid over the store, and no file is written.
    pub(crate) is_preview: bool,
    /// Why the store's last changes cannot be read, if they cannot.
    torn: Option<Fault>,
    /// How far the store had come, and how far it has, if it lost changes.
    forgotten: Option<(u64, u64)>,
}

impl Archive {
    /// Opens the archive in a folder; unless the access is only to read, makes its missing folders and files, private.
    pub fn open(root: &Path, access: Access, ambient: Box<dyn Ambient>) -> Result<Self, SyncError> {
        Self::open_telling(root, access, ambient, &mut |_, _| ())
    }

    /// Does the same, and tells how many sessions have come, and of how many, where rows that an older version left are made again.
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
        // Links are followed once, so that they cannot lead elsewhere between two steps.
        let root = match fs::canonicalize(root) {
            Err(error) if error.kind() == ErrorKind::NotFound => root.to_owned(),
            other => other.map_err(SyncError::at(root))?,
        };
        let mut store = database(&root, access)?;
        // What else cannot be read fails where it is asked for.
        let torn = store.leave_torn().ok().flatten();
        // A writer of a store that lost changes is refused above.
        let forgotten =
            if access == Access::Read { store.forgotten().ok().flatten() } else { None };
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

    /// Makes an archive over any store, without live files.
    pub fn over(store: Box<dyn Store>, ambient: Box<dyn Ambient>) -> Self {
        let (manner, writable) = (Manner::default(), Writable::default());
        let (ambient, here) = (RefCell::new(ambient), Here::default());
        let (disk, waiting) = (Arc::new(Kernel), Waiting::default());
        let (root, is_preview, exclude) = (None, false, Exclude::default());
        let (held, shared) = (RefCell::default(), RefCell::default());
        Self {
            store,
            root,
            ambient,
            disk,
            here,
            manner,
            writable,
            exclude,
            waiting,
            held,
            shared,
            is_preview,
            torn: None,
            forgotten: None,
        }
    }

    /// Opens the archive once more, to read it as it is now; nothing if it is in memory alone.
    pub(crate) fn reopened(&self) -> Result<Option<Self>, SyncError> {
        let Some(root) = &self.root else { return Ok(None) };
        let opened = Self::open(root, Access::Read, Box::new(Machine))?;
        let (here, writable) = (self.here.clone(), self.writable.clone());
        Ok(Some(Self { here, writable, exclude: self.exclude.clone(), ..opened }))
    }

    /// Makes of an archive one in which changes can be looked at: nobody else sees them, no file is written, and they end with
    /// the value.
    pub fn preview(self) -> Result<Self, SyncError> {
        if self.is_preview {
            return Ok(self);
        }
        let store = Box::new(MemoryStore::over(self.store)?);
        Ok(Self { store, disk: Arc::new(Paper), is_preview: true, ..self })
    }

    /// Makes an archive that lasts as long as its value.
    pub fn in_memory(ambient: Box<dyn Ambient>) -> Self {
        Self::over(Box::new(MemoryStore::new()), ambient)
    }

    /// Sets how changes treat files of agents from now on.
    pub fn set_manner(&mut self, manner: Manner) {
        self.manner = manner;
    }

    /// Sets the disk through which files are changed from now on; until then it is the disk of this machine.
    pub fn set_disk(&mut self, disk: Arc<dyn Disk>) {
        self.disk = disk;
    }

    /// Returns the computer and the account in which paths are met.
    pub(crate) fn here(&self) -> &Here {
        &self.here
    }

    /// Sets the computer and the account in which paths are met from now on.
    pub fn set_here(&mut self, here: Here) {
        self.here = here;
    }

    /// Sets which files of agents may be written from now on; until then only the store's own transcripts are.
    pub fn set_writable(&mut self, writable: Writable) {
        self.writable = writable;
    }

    /// Sets which sessions are left out from now on; until then none is.
    pub fn set_exclude(&mut self, exclude: Exclude) {
        self.exclude = exclude;
    }

    /// Sets how long changes wait for another program from now on.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Returns whether changes are only looked at.
    pub fn is_preview(&self) -> bool {
        self.is_preview
    }

    /// Returns why the store's last changes cannot be read, if they cannot: what it held before them is what is read.
    pub fn torn(&self) -> Option<&Fault> {
        self.torn.as_ref()
    }

    /// Returns how far the store had come, and how far it has, if it lost changes; a change of it is refused.
    pub fn forgotten(&self) -> Option<(u64, u64)> {
        self.forgotten
    }

    /// Returns the folder, if there is one.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Returns the sessions, the newest first, each with its card.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<crate::store::Listed>, SyncError> {
        Ok(self.store.sessions(filter)?)
    }

    /// Returns all sessions, whether lists show them or not.
    pub fn every(&self) -> Result<Vec<Session>, SyncError> {
        let known =
            self.store.names()?.into_iter().map(|(key, name)| Session::from_store(key, name));
        Ok(known.collect::<Result<_, _>>()?)
    }

    /// Returns the session of a name.
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

    /// Takes the lock, whatever another program has left half-done.
    pub(crate) fn lock_alone(&self) -> Result<Option<Arc<File>>, SyncError> {
        let Some(root) = self.root.as_ref().filter(|_| !self.is_preview) else { return Ok(None) };
        let lock = Arc::new(lock::lock(&self.disk, root, &self.waiting)?);
        self.held.replace(Arc::downgrade(&lock));
        Ok(Some(lock))
    }

    /// Returns the lock, if this archive holds it already: what is done of several steps holds it all the time.
    pub(crate) fn held_lock(&self) -> Option<Arc<File>> {
        self.held.borrow().upgrade()
    }

    /// Keeps other programs from watching for this archive while the answer lives: what did so before, unless it belongs to a
    /// store that no longer exists.
    pub fn watch_alone(&self, before: Option<File>) -> Result<Option<File>, SyncError> {
        let alone = |root: &PathBuf| lock::watch_alone(&self.disk, root, before);
        self.root.as_ref().map(alone).transpose()
    }

    /// Returns where a file is as the store keeps it.
    pub fn place_of(&self, path: &Path) -> model::Place {
        self.here.place_of(path)
    }

    /// Returns where a file is below the store's folder.
    pub(crate) fn place_in(&self, path: &Path) -> model::Place {
        let below = self.root.as_deref().and_then(|root| path.strip_prefix(root).ok());
        model::Place::Store(below.unwrap_or(path).as_os_str().as_bytes().to_vec())
    }

    /// Returns where a file of a session is, if that is on this computer and in this account.
    pub fn path_of(&self, place: &model::Place) -> Option<PathBuf> {
        self.here.path_of(self.root.as_deref(), place)
    }

    /// Returns where its files lie.
    pub(crate) fn places(&self) -> Places {
        Places { here: self.here.clone(), root: self.root.clone() }
    }
}
