//! Verbs: one file each; a function, not an object.
//!
//! A changing verb takes the archive's lock, catches up with the live file, builds one `change::Change` and commits it;
//! the live file follows. A reading verb looks through a [`View`] and writes nothing.
//!
//! Invariant: a verb that fails before its commit has changed nothing but a temporary file.

mod append;
mod attach;
mod attached;
mod audit;
mod beside;
mod branch;
mod catch_up;
mod change;
mod checkpoint;
mod compact;
mod content;
mod context;
mod derive;
mod diff;
mod doctor;
mod error;
mod excerpts;
mod follow;
mod graph;
mod growth;
mod handle;
mod import;
mod intake;
mod kin;
mod new;
mod oddities;
mod origin;
mod owner;
mod reach;
mod read;
mod rebuild;
mod recover;
mod replay;
mod revert;
mod rotations;
mod scan;
mod select;
mod sources;
mod stats;
mod truncate;
mod turn;
mod undo;
mod verify;
mod view;
mod workspace;

pub use append::{Appended, AppendedEntry, append, append_cut};
pub use attach::{Attached, attach, detach, take_up};
pub use audit::{Audit, Replaced, audit};
pub use branch::{Branched, branch, branches, is_branch_name, switch};
pub use catch_up::Notice;
pub use change::Outcome;
pub use checkpoint::{Shown, checkpoint, checkpoints};
pub use compact::{
    Compacted, Compacting, Hook, Part, Parts, Planned, Rule, compact, plan_compaction,
};
pub use context::{
    Asked, Context, Explained, Fullness, context, counts, explain, fullness, keep_counts,
    session_key, window,
};
pub use diff::{Diff, Difference, Side, diff};
pub use doctor::{Ailment, Cure, Place, doctor, place_of, treat};
pub use error::OpsError;
pub use graph::{GraphNode, GraphView, graph};
pub use handle::Handle;
pub use import::{Imported, Oddity, Quirk, Step, Summary, import, peek};
pub use kin::{Bond, Kin, kin};
pub use new::{Created, Layers, hide, layers, new};
pub use origin::{Hidden, HiddenText, hidden, original};
pub use read::{
    Held, Line, Log, Status, elsewhere, export, export_container, generation_of, generations,
    is_behind, left_for, log, log_all, messages, show, status,
};
pub use rebuild::{Rebuilt, rebuild, rebuild_all};
pub use recover::{Recovered, recover};
pub use revert::{Reverted, clear, revert};
pub use rotations::{Rotated, RotatedState, rotations};
pub use select::{Target, find_entry, find_place, find_session, short_name};
pub use sources::{AgentFolder, Skipped, Source, Why, agent_folders, sources};
pub use stats::{Stats, stats, stats_of};
pub use truncate::{Bound, Oversized, Truncated, oversized, truncate};
pub use turn::{Answer, Call, STEPS, Turned, Turning, turn};
pub use undo::{OperationView, Undone, operations, redo, undo};
pub use verify::{Finding, Severity, Verified, verify, verify_ids};
pub use view::{Elsewhere, Gap, View};
pub use workspace::{Workspace, workspace};

use std::{
    cell::RefCell,
    ffi::OsStr,
    fs::{self, DirBuilder, File},
    io::ErrorKind,
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use uuid::Uuid;

use follow::LiveFile;

use crate::{
    disk,
    live::{TRANSCRIPTS, Writable, WritableFile},
    model::{self, MachineId, SessionName, Timestamp},
    store::{Access, MemoryStore, SessionFilter, SessionKey, SqliteStore, Store, StoreError},
    wire::{self, Format},
};

/// Clock and chance, which the library never reads by itself.
pub trait Ambient: Send {
    /// Returns the time.
    fn now(&mut self) -> Timestamp;
    /// Returns a fresh random id.
    fn uuid(&mut self) -> Uuid;
    /// Returns the salt of words that a person gave.
    fn salt(&mut self) -> [u8; 16] {
        self.uuid().into_bytes()
    }
}

/// The clock and the chance of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machine;

impl Ambient for Machine {
    fn now(&mut self) -> Timestamp {
        Timestamp(chrono::Utc::now().timestamp_millis())
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
}

/// How changes treat a file of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// Write it even if a process has its session loaded.
    pub force: bool,
    /// Set it aside and write a new one even where appending would do.
    pub rotate: bool,
    /// The folder in which the session may work, for an agent that lists them.
    pub folder: Option<String>,
}

/// A store with its live files: what the verbs work on.
pub struct Archive {
    store: Box<dyn Store>,
    root: Option<PathBuf>,
    ambient: RefCell<Box<dyn Ambient>>,
    here: Here,
    manner: Manner,
    writable: Writable,
}

/// A session of an archive.
#[derive(Clone)]
pub struct Session {
    /// The store's number.
    pub key: SessionKey,
    /// The name.
    pub name: SessionName,
    /// The format of its records.
    pub format: &'static dyn Format,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({}:{})", self.name.format, self.name.id)
    }
}

impl Archive {
    /// Opens the archive in a folder; unless it is only read, what is not there is made, private.
    pub fn open(root: &Path, access: Access, ambient: Box<dyn Ambient>) -> Result<Self, OpsError> {
        let io = |source| OpsError::Io { path: root.to_owned(), source };
        let make = |folder: &Path| {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|source| match source.kind() {
                ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
                    StoreError::ReadOnly { path: root.to_owned() }.into()
                }
                _ => io(source),
            })
        };
        if access != Access::Read {
            owner::check(root)?;
            make(root)?;
        }
        // Links are followed once, so that they cannot lead elsewhere between two steps.
        let root = match fs::canonicalize(root) {
            Err(error) if error.kind() == ErrorKind::NotFound => root.to_owned(),
            other => other.map_err(io)?,
        };
        let store = SqliteStore::open(&root.join("store.db"), access)?;
        // A store that is refused has got nothing new, not even a folder.
        if access != Access::Read {
            make(&root.join(TRANSCRIPTS))?;
        }
        let mut archive = Self { root: Some(root), ..Self::over(Box::new(store), ambient) };
        if access != Access::Read && archive.store.is_stale()? {
            rebuild_all(&mut archive)?;
        }
        Ok(archive)
    }

    /// Makes an archive over any store, without live files.
    pub fn over(store: Box<dyn Store>, ambient: Box<dyn Ambient>) -> Self {
        let (manner, writable) = (Manner::default(), Writable::default());
        let (ambient, here) = (RefCell::new(ambient), Here::default());
        Self { store, root: None, ambient, here, manner, writable }
    }

    /// Makes an archive that lasts as long as its value.
    pub fn in_memory(ambient: Box<dyn Ambient>) -> Self {
        Self::over(Box::new(MemoryStore::new()), ambient)
    }

    /// Says how changes treat files of agents from now on.
    pub fn set_manner(&mut self, manner: Manner) {
        self.manner = manner;
    }

    /// Says on which computer, and in whose account, paths are met from now on.
    pub fn set_here(&mut self, here: Here) {
        self.here = here;
    }

    /// Says which files of agents may be written from now on; until then none is, only the store's own transcripts.
    pub fn set_writable(&mut self, writable: Writable) {
        self.writable = writable;
    }

    /// Returns the store.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// Returns the folder, if there is one.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// Returns the sessions, the newest first, each with its card.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<crate::store::Listed>, OpsError> {
        Ok(self.store.sessions(filter)?)
    }

    /// Returns all sessions, whether lists show them or not.
    pub fn every(&self) -> Result<Vec<Session>, OpsError> {
        self.store.names()?.into_iter().map(|(key, name)| Self::known(key, name)).collect()
    }

    /// Returns the session of a name.
    pub fn session(&self, name: &SessionName) -> Result<Option<Session>, OpsError> {
        let key = self.store.session(name)?;
        key.map(|key| Self::known(key, name.clone())).transpose()
    }

    fn now(&self) -> Timestamp {
        self.ambient.borrow_mut().now()
    }

    fn uuid(&self) -> Uuid {
        self.ambient.borrow_mut().uuid()
    }

    fn salt(&self) -> [u8; 16] {
        self.ambient.borrow_mut().salt()
    }

    fn known(key: SessionKey, name: SessionName) -> Result<Session, OpsError> {
        let format = wire::by_name(&name.format);
        let format = format.ok_or_else(|| OpsError::UnknownFormat(name.format.clone()))?;
        Ok(Session { key, name, format })
    }

    /// Waits until no other program changes this archive, and keeps it so while the answer lives.
    fn lock(&self) -> Result<Option<File>, OpsError> {
        let Some(root) = &self.root else { return Ok(None) };
        let path = root.join("lock");
        let open = || {
            let file = disk::open_or_make(&path)?;
            file.lock()?;
            Ok(file)
        };
        open().map(Some).map_err(|source| OpsError::Io { path: path.clone(), source })
    }

    /// Returns a live file as one that may be written.
    fn writable_file(
        &self,
        session: &SessionName,
        live: &LiveFile,
    ) -> Result<WritableFile, OpsError> {
        let file = match &self.root {
            Some(root) if !live.attached => Writable::transcript(root, &live.path),
            _ => self.writable.agents_file(&session.format, &live.path),
        };
        file.map_err(|why| OpsError::denied(session, &live.path, why))
    }

    /// Returns where a file lies as the store keeps it.
    pub fn place_of(&self, path: &Path) -> model::Place {
        self.here.place_of(path)
    }

    /// Returns where a file of a session lies, if that is on this computer and in this account.
    pub fn path_of(&self, place: &model::Place) -> Option<PathBuf> {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        match place {
            model::Place::Store(below) => Some(self.root.as_deref()?.join(path(below))),
            model::Place::Home(machine, below) if *machine == self.here.machine => {
                Some(self.here.home.as_deref()?.join(path(below)))
            }
            model::Place::Path(machine, whole) if *machine == self.here.machine => {
                Some(path(whole))
            }
            _ => None,
        }
    }
}
