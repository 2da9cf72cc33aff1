//! Repair: salvages a damaged store into a fresh one, fills gaps from the files of its sessions, and swaps the two.
//!
//! ```text
//! salvage   mending/store.db      what can be read of the damaged store
//! fill      lines and whole files that were lost, from every file a session was ever found in
//! derive    rows that are functions of facts and bytes
//! swap      damaged-1/store.db    the damaged store is linked there, with its log and its witness
//!           store.db              the fresh store is renamed over it
//! ```
//!
//! Invariant: the damaged store is never changed, and at every moment one of the two has the store's name.

pub(crate) mod live_files;

pub(crate) use live_files::{strays, take_back};

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    archive::{
        Here, NoPlace, SyncError,
        lock::{self, Waiting},
        old_store::{clear, remove, remove_file, set_aside},
        rebuild::rebuild_all,
    },
    disk::{self, Disk, Kernel},
    files::{Source, sources},
    live::{self, Writable},
    model::{
        DATABASE, EntryId, LOG, LineId, MENDING, SHARED, STRAYS, SessionName, TRANSCRIPTS, WITNESS,
        damaged_folder,
    },
    report::Refilled,
    settings::Exclude,
    store::{self, Access, Loss, Salvage, SessionKey, SqliteStore, StoreError, WordIndex},
    wire::jsonl::Reader,
};

/// The files of a store's database, the database itself first.
const FILES: [&str; 3] = [DATABASE, LOG, WITNESS];
/// The longest file that may have been stored whole.
const KEPT: u64 = 1 << 30;
/// How many links of lost lines to try with each line of a file.
const LINKS: usize = 64;

/// Returns true if an error means that the store is too damaged to open.
pub(crate) fn is_broken(root: &Path, error: &StoreError) -> bool {
    match error {
        StoreError::Corrupt { .. } | StoreError::Forgotten { .. } => true,
        // The database is missing, but its witness exists.
        StoreError::Absent { .. } => store::is_witnessed(&root.join(DATABASE)),
        _ => false,
    }
}

/// Takes the lock of the archive in a folder; it is held until the returned file is dropped.
pub(crate) fn lock_to_mend(root: &Path) -> Result<File, SyncError> {
    let disk: Arc<dyn Disk> = Arc::new(Kernel);
    lock::lock(&disk, root, &Waiting::default())
}

/// Cleans up after an interrupted repair.
pub(crate) fn sweep(root: &Path) -> Result<(), SyncError> {
    let _lock = lock_to_mend(root)?;
    put_back(root)
        .and_then(|()| finish(root))
        .and_then(|()| clear(&root.join(MENDING)))
        .map_err(SyncError::at(root))
}

/// What a repair has to know about this machine's agents.
#[derive(Debug)]
pub struct Agents<'a> {
    /// This machine.
    pub here: &'a Here,
    /// The agents' folders.
    pub folders: &'a [PathBuf],
    /// Settings that exclude sessions.
    pub exclude: Exclude,
    /// The files that may be written.
    pub writable: Writable,
}

/// A fresh store with everything that could be salvaged. It is deleted when dropped.
pub(crate) struct Mending {
    root: PathBuf,
    folder: PathBuf,
    /// The files that lines were restored from.
    pub(crate) refilled: Vec<Refilled>,
    /// How many operations the damaged store had lost, according to its witness.
    pub(crate) forgotten: u64,
    /// What could not be restored.
    pub(crate) lost: Vec<Loss>,
    /// True if nothing was found in a store that was not empty.
    pub(crate) is_empty: bool,
    _lock: File,
}

impl Mending {
    /// Salvages the damaged store in a folder. Calls `each` with the amount read so far and the total.
    pub(crate) fn begin(
        root: &Path,
        lock: File,
        agents: &Agents<'_>,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, SyncError> {
        has_room(root)?;
        let folder = root.join(MENDING);
        DirBuilder::new().mode(0o700).create(&folder).map_err(SyncError::at(&folder))?;
        let fresh = folder.join(DATABASE);
        // Created first, so that its drop cleans up if a step fails.
        let mut mending = Self {
            root: root.to_owned(),
            folder,
            refilled: Vec::new(),
            forgotten: 0,
            lost: Vec::new(),
            is_empty: false,
            _lock: lock,
        };
        let mut salvage = Salvage::begin(&root.join(DATABASE), &fresh, each)?;
        let whereabouts = Whereabouts::of(root, agents, &salvage);
        mending.refilled = fill(&whereabouts, &mut salvage)?;
        mending.forgotten = salvage.forgotten()?;
        mending.is_empty = salvage.is_empty();
        salvage.write_strays(&mending.folder.join(STRAYS))?;
        mending.lost = salvage.finish()?;
        let store = SqliteStore::open(&fresh, Access::Write)?;
        rebuild_all(&store, &mut |_, _| ())?;
        store.close_log()?;
        Ok(mending)
    }

    /// Returns the folder of the fresh store.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Replaces the damaged store with the fresh one, and returns the folder where the damaged one is kept.
    pub(crate) fn accept(&self) -> Result<PathBuf, SyncError> {
        // The index refers to sessions by number. Salvaged sessions keep theirs, but the number of a lost session may be reused.
        WordIndex::remove(&self.root)?;
        change_places(&self.root, &self.folder).map_err(SyncError::at(&self.root))
    }
}

impl Drop for Mending {
    fn drop(&mut self) {
        // If this fails, the next repair removes it.
        let _ = clear(&self.folder);
    }
}

/// Fails if the disk has no room for a second store.
fn has_room(root: &Path) -> Result<(), SyncError> {
    let length = |name| fs::metadata(root.join(name)).map_or(0, |meta| meta.len());
    let needed = length(DATABASE) + length(LOG);
    let free = rustix::fs::statvfs(root).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    match free {
        Ok(free) if free < needed => {
            let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
            let (needed, free) = (megabytes(needed), megabytes(free));
            Err(SyncError::NoPlace { path: root.to_owned(), why: NoPlace::Full { needed, free } })
        }
        _ => Ok(()),
    }
}

/// Where the files of sessions are.
struct Whereabouts<'a> {
    root: &'a Path,
    here: &'a Here,
    /// Session files found in agents' folders, for sessions whose own facts about their files may be lost.
    met: BTreeMap<SessionName, Vec<PathBuf>>,
}

impl<'a> Whereabouts<'a> {
    fn of(root: &'a Path, agents: &Agents<'a>, salvage: &Salvage) -> Self {
        let mut met: BTreeMap<SessionName, Vec<PathBuf>> = BTreeMap::new();
        if salvage.wanted().next().is_some() || !salvage.wanted_files().is_empty() {
            for Source { session, path, .. } in sources::sources(agents.folders, &mut |_| ()) {
                met.entry(session).or_default().push(path);
            }
        }
        Self { root, here: agents.here, met }
    }
}

/// Searches the files of damaged sessions for lost lines and for lost files that were stored whole.
fn fill(whereabouts: &Whereabouts<'_>, salvage: &mut Salvage) -> Result<Vec<Refilled>, SyncError> {
    let mut wanted: BTreeMap<SessionKey, Sought> = BTreeMap::new();
    for line in salvage.wanted() {
        let Sought { left, covered, links } = wanted.entry(line.session).or_default();
        left.insert(line.id);
        if let Some(line_id) = line.covered {
            covered.entry(line_id).or_default().push(line.id);
        }
        links.extend(line.link.filter(|_| links.len() < LINKS));
    }
    let kept = salvage.wanted_files().iter().map(|file| file.session);
    let sessions: BTreeSet<SessionKey> = kept.chain(wanted.keys().copied()).collect();
    let mut refilled = Vec::new();
    for session in sessions {
        let Some(name) = salvage.sessions_found().get(&session).cloned() else { continue };
        for path in files(whereabouts, salvage, session, &name)? {
            let whole = fill_file(salvage, session, &path)?;
            let sought = wanted.get_mut(&session).filter(|sought| !sought.left.is_empty());
            let lines = sought.map_or(Ok(0), |sought| found_in(&path, sought, salvage))?;
            if whole || lines > 0 {
                let session = name.id.clone();
                refilled.push(Refilled { session, path, lines, whole });
            }
        }
    }
    Ok(refilled)
}

/// Restores a file that was stored whole, if this is a lost one.
fn fill_file(salvage: &mut Salvage, session: SessionKey, path: &Path) -> Result<bool, SyncError> {
    if !salvage.wanted_files().iter().any(|file| file.session == session) {
        return Ok(false);
    }
    // A file that does not exist or cannot be read restores nothing.
    let Ok(bytes) = disk::read(path, KEPT) else { return Ok(false) };
    Ok(salvage.fill_file(&bytes)? > 0)
}

/// Returns every file where a session was ever found or is found now, including those that were set aside.
fn files(
    whereabouts: &Whereabouts<'_>,
    salvage: &Salvage,
    session: SessionKey,
    name: &SessionName,
) -> Result<Vec<PathBuf>, SyncError> {
    let Whereabouts { root, here, met } = whereabouts;
    let mut paths = Vec::new();
    for operation in salvage.operations(session)? {
        let places = operation.facts.files.iter();
        paths.extend(places.filter_map(|file| here.path_of(Some(*root), &file.place)));
    }
    paths.extend(met.get(name).into_iter().flatten().cloned());
    // Any other file in the store's own folder that starts with the session's id.
    let own = list(&root.join(TRANSCRIPTS));
    paths.extend(own.into_iter().filter(|path| {
        path.file_name().is_some_and(|file| file.as_bytes().starts_with(name.id.as_bytes()))
    }));
    let beside = paths.iter().flat_map(|path| {
        let is_of =
            |other: &PathBuf| live::is_aside(other) && other.file_stem() == path.file_name();
        path.parent().map(list).unwrap_or_default().into_iter().filter(is_of)
    });
    let beside: Vec<PathBuf> = beside.collect();
    paths.extend(beside);
    let mut seen = BTreeSet::new();
    paths.retain(|path| seen.insert(path.clone()) && path.is_file());
    Ok(paths)
}

/// Returns the paths in a folder, sorted by name; nothing if it cannot be read.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The lost lines of a session.
#[derive(Default)]
struct Sought {
    /// The ids of their entries.
    left: BTreeSet<EntryId>,
    /// Redacted lines among them: the id of the replacement, with the ids of its entries.
    covered: BTreeMap<LineId, Vec<EntryId>>,
    /// The ids of entries that lost lines are linked to.
    links: BTreeSet<EntryId>,
}

/// Restores the lost lines that a file contains, and returns how many. A file that cannot be opened or read further restores
/// nothing more.
fn found_in(
    path: &Path,
    Sought { left, covered, links }: &mut Sought,
    salvage: &mut Salvage,
) -> Result<u64, SyncError> {
    let Ok(file) = sources::open(path, 0) else { return Ok(0) };
    let mut reader = Reader::new(file);
    let mut before: Option<EntryId> = None;
    let mut lines = 0;
    while let Ok(Some(located)) = reader.next_line() {
        let line = LineId::of(located.line.bytes);
        let named = located.line.shape.as_ref().is_some_and(|shape| shape.name.is_some());
        let id = EntryId::of(before.filter(|_| !named), line);
        before = Some(id);
        // The entry may be linked to one that is not before it in this file.
        let elsewhere = links.iter().map(|link| EntryId::of(Some(*link), line));
        let instead = covered.get(&line).into_iter().flatten().copied();
        let ids = [id, EntryId::of(None, line)].into_iter().chain(elsewhere).chain(instead);
        let found: BTreeSet<EntryId> = ids.filter(|id| left.contains(id)).collect();
        for id in found {
            let filled = salvage.fill(id, located.line.bytes)? as u64;
            if filled > 0 {
                left.remove(&id);
            }
            lines += filled;
        }
    }
    Ok(lines)
}

/// Moves the damaged store to a folder of its own, puts the fresh one in its place, and returns that folder.
fn change_places(root: &Path, mending: &Path) -> io::Result<PathBuf> {
    let kept = (1..u32::MAX)
        .map(|n| root.join(damaged_folder(n)))
        .find(|path| fs::symlink_metadata(path).is_err())
        .ok_or(ErrorKind::AlreadyExists)?;
    DirBuilder::new().mode(0o700).create(&kept)?;
    for name in FILES {
        disk::found(fs::hard_link(root.join(name), kept.join(name)))?;
    }
    disk::found(fs::rename(mending.join(STRAYS), kept.join(STRAYS)))?;
    disk::sync_folder(&kept)?;
    disk::sync_folder(root)?;
    // A remaining log would be used as the fresh store's.
    for name in [LOG, SHARED] {
        remove_file(&root.join(name))?;
    }
    disk::sync_folder(root)?;
    fs::rename(mending.join(DATABASE), root.join(DATABASE))?;
    if disk::found(fs::rename(mending.join(WITNESS), root.join(WITNESS)))?.is_none() {
        remove_file(&root.join(WITNESS))?;
    }
    disk::sync_folder(root)?;
    Ok(kept)
}

/// Restores the damaged store's log, if a swap was interrupted after removing it. A program that has read the store since may
/// have created an empty log. A log that is not empty is newer than the saved one, which then stays where it is.
fn put_back(root: &Path) -> io::Result<()> {
    let Some(store) = identity(&root.join(DATABASE))? else { return Ok(()) };
    for kept in set_aside(root)? {
        if identity(&kept.join(DATABASE))? != Some(store) {
            // Removes the folder if it is empty.
            let _ = fs::remove_dir(&kept);
            continue;
        }
        let (log, kept_log) = (root.join(LOG), kept.join(LOG));
        let known = identity(&kept_log)?;
        if known.is_some() && known != identity(&log)? {
            if fs::symlink_metadata(&log).is_ok_and(|meta| meta.len() > 0) {
                continue;
            }
            // The shared index of the empty log would hide the content of the restored one.
            remove_file(&root.join(SHARED))?;
            fs::rename(&kept_log, &log)?;
            disk::sync_folder(root)?;
        }
        // The second link to the database goes last: it identifies the folder.
        for name in [LOG, WITNESS, DATABASE] {
            remove_file(&kept.join(name))?;
        }
        remove(&kept)?;
    }
    Ok(())
}

/// Returns device and inode of a file, if it exists.
fn identity(path: &Path) -> io::Result<Option<(u64, u64)>> {
    disk::found(fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino())))
}

/// Installs the fresh store's witness, if a swap was interrupted after renaming the database: the damaged store's witness would
/// report lost operations.
fn finish(root: &Path) -> io::Result<()> {
    let mending = root.join(MENDING);
    if fs::symlink_metadata(mending.join(DATABASE)).is_ok() {
        return Ok(());
    }
    let renamed = disk::found(fs::rename(mending.join(WITNESS), root.join(WITNESS)))?;
    renamed.map_or(Ok(()), |()| disk::sync_folder(root))
}
