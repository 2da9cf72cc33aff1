//! `doctor`: checks the folder of a store, its file modes, and what crashes left in it.

use std::{
    error::Error as _,
    fs::{self, Metadata},
    io::ErrorKind,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Access as Reach, AtFlags, CWD};

use crate::{
    archive::{self, Archive, SyncError, Waiting},
    disk::{self, Links},
    json::Raw,
    live, mend,
    model::{self, DATABASE, MENDING, SEAL, TRANSCRIPTS, WITNESS, WORDS},
    purge,
    report::{Ailment, Cure, Forgetful},
    store::{Access, Fault, OTHER_WITNESS, SqliteStore, StoreError, has_others},
    verbs::OpsError,
    wire::discover::{self, Keeping, User},
};

/// What kind of file system a folder is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A local disk, as far as can be determined.
    Local,
    /// A network file system, where a WAL is not safe.
    Network,
    /// A folder that a program synchronises file by file, possibly in the middle of a write.
    Synced,
}

/// How many bytes of an agent's settings are read.
const SETTINGS: u64 = 1 << 20;

/// The problem of a successor that never replaced its file.
const CUT_SHORT: &str = "it is left over from an interrupted change";

/// Names of synchronised folders.
const SYNCED: [&str; 8] = [
    "Dropbox",
    "OneDrive",
    "Google Drive",
    "GoogleDrive",
    "Nextcloud",
    "Syncthing",
    "Sync",
    "Mobile Documents",
];

/// Checks the folder of a store. Changes nothing, and the store need not be healthy. Refuses a folder without a store.
pub fn doctor(root: &Path) -> Result<Vec<Ailment>, OpsError> {
    let (given, root) = (root, folder(root)?);
    let mut ailments = Vec::new();
    let mut ail = |path: &Path, problem: &str, cure| {
        ailments.push(Ailment::new(path, problem, cure));
    };
    if fs::symlink_metadata(given).map_err(SyncError::at(given))?.is_symlink() {
        ail(given, "it is a link; the store is at its target", Cure::Person);
    }
    if let Some(problem) = misplaced(&root) {
        ail(&root, problem, Cure::Person);
    }
    let transcripts = root.join(TRANSCRIPTS);
    let listed = paths(&root)?;
    let meta = fs::symlink_metadata(&root).map_err(SyncError::at(&root))?;
    if is_own(&meta) && meta.mode() & 0o500 != 0o500 {
        // Its contents cannot be checked.
        ail(&root, &too_strict(&meta), Cure::Mode(wanted_mode(&meta)));
        return Ok(ailments);
    }
    let unopened = look_at_database(&root, &mut ail)?;
    if purge::has_uncovered(&root) {
        ail(
            &root,
            "session files still contain redacted text: a process has them open, or undertext may not write there. Each change tries again",
            Cure::Person,
        );
    }
    if purge::is_in_log(&root) {
        ail(
            &root.join(DATABASE),
            "it or its log still contains redacted text. The next change rewrites it, once no other program is reading it",
            Cure::Person,
        );
    }
    // Files that someone else put there, and a folder that is not only for the store, may have any mode.
    let is_shared = has_others(&root);
    let is_judged = |path: &Path| match path.parent() {
        _ if path == root => !is_shared,
        Some(folder) if folder == root => path.file_name().is_some_and(model::is_own),
        _ => true,
    };
    let (mut is_kept_out, mut is_read_only) = (false, false);
    for path in &listed {
        let meta = match fs::symlink_metadata(path) {
            // The mode of its folder, which can be listed but not entered, is reported.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                is_kept_out = true;
                continue;
            }
            // Another program removed it after the folder was listed.
            Err(error) if error.kind() == ErrorKind::NotFound && *path != root => continue,
            meta => meta.map_err(SyncError::at(path))?,
        };
        if let Some(problem) = is_in_the_way(&root, path) {
            ail(path, &problem, Cure::Person);
            is_kept_out = true;
            continue;
        }
        let wanted = wanted_mode(&meta);
        let mode = meta.mode() & 0o7777;
        if is_judged(path) && !is_own(&meta) {
            ail(path, "it belongs to another user", Cure::Person);
        } else if is_judged(path) && !meta.is_symlink() && mode & 0o077 != 0 {
            ail(
                path,
                &format!("its mode is {mode:04o}: other users can access it"),
                Cure::Mode(wanted),
            );
        }
        if is_own(&meta) && is_too_strict(&root, path, &meta) {
            ail(path, &too_strict(&meta), Cure::Mode(wanted));
            is_kept_out = true;
        } else if is_needed(&root, path, &meta)
            && let Err(error) = reach(path)
        {
            is_kept_out = true;
            if error.kind() == ErrorKind::ReadOnlyFilesystem {
                is_read_only = true;
                continue;
            }
            let why = disk::words(&error);
            let problem =
                format!("undertext cannot read and write it: {why}. Give yourself permission");
            ail(path, &problem, Cure::Person);
        }
        if path.parent() == Some(&transcripts) && !meta.is_file() {
            ail(path, "it is not a file", Cure::Person);
        }
    }
    for (path, cure) in left_behind(Some(&root), &|| fresh(&root))? {
        ail(&path, CUT_SHORT, cure);
    }
    if is_read_only {
        let problem = "it is on a read-only disk, so no command can change it";
        ail(&root, problem, Cure::Person);
    }
    if let Some(problem) = unopened.filter(|_| !is_kept_out) {
        ail(&root.join(DATABASE), &problem, Cure::Person);
    }
    Ok(ailments)
}

/// Checks the database for damage that is visible at once. Returns why it cannot be opened, if that has another reason.
fn look_at_database(
    root: &Path,
    ail: &mut dyn FnMut(&Path, &str, Cure),
) -> Result<Option<String>, OpsError> {
    let (database, witness) = (root.join(DATABASE), root.join(WITNESS));
    let mut look = || {
        let store = SqliteStore::open(&database, Access::Read)?;
        let testimony = store.testimony();
        if let Some(problem) = testimony.problem()? {
            ail(&witness, problem, Cure::Mend);
        }
        if testimony.is_of_another()? {
            let problem = format!(
                "{OTHER_WITNESS}. Put the other store back, with its -wal file, or delete store.witness to keep this one"
            );
            ail(&witness, &problem, Cure::Person);
        }
        if !store.has_its_id()? {
            let problem = "it is damaged: the hash of its first operation does not match its id";
            ail(&database, problem, Cure::Mend);
        } else if let Some((witnessed, newest)) = testimony.forgotten()? {
            let problem = format!(
                "it has lost changes: store.witness saw {witnessed}, but it has only {newest} now. If you have a newer copy of the store, put it back, with its -wal file; otherwise, session files may still contain what was lost"
            );
            ail(&database, &problem, Cure::Mend);
        }
        Ok(())
    };
    Ok(match look() {
        Err(error) if mend::is_broken(root, &error) => {
            // The error contains the path of the store.
            let problem = match error {
                StoreError::Corrupt(Fault { problem, .. }) => format!("it is damaged: {problem}"),
                _ => "it is missing or empty, but store.witness recorded changes in it".to_owned(),
            };
            ail(&database, &problem, Cure::Mend);
            None
        }
        Err(error @ (StoreError::Newer { .. } | StoreError::Old { .. })) => {
            return Err(error.into());
        }
        // An empty new store has no problem, and a busy one is checked by whoever waits for it.
        Ok(()) | Err(StoreError::Absent { .. } | StoreError::Busy) => None,
        Err(StoreError::Io { source, .. }) => {
            Some(format!("it cannot be opened: {}", disk::words(&source)))
        }
        Err(StoreError::Foreign { .. }) => Some(
            "it is not an undertext store. Move it away, then import your sessions again"
                .to_owned(),
        ),
        Err(error) => {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            Some(format!("it cannot be opened: {why}"))
        }
    })
}

/// Returns true if something in a store's folder blocks the place of a file or folder that undertext must create.
pub fn is_obstructed(root: &Path) -> Result<bool, OpsError> {
    let root = folder(root)?;
    Ok(paths(&root)?.iter().any(|path| is_in_the_way(&root, path).is_some()))
}

/// Returns what is wrong with a part of a store's folder that is a file instead of a folder, or vice versa. The database is
/// checked when it is opened.
fn is_in_the_way(root: &Path, path: &Path) -> Option<String> {
    let name = path.file_name().filter(|_| path.parent() == Some(root))?;
    // The folder's mode may hide it; then it is not known to be in the way.
    fs::symlink_metadata(path).ok()?;
    let bytes = name.as_encoded_bytes();
    let is_folder = name == TRANSCRIPTS || name == MENDING;
    let is_file = name == WITNESS
        || [WORDS, SEAL].iter().any(|one| bytes.starts_with(one.as_bytes()))
        || purge::is_mark(name)
        || archive::is_lock(name);
    if is_folder && !path.is_dir() {
        return Some(
            "it is not a folder, so undertext cannot create its own there. Move it away".to_owned(),
        );
    }
    let error = disk::look(path).err().filter(|_| is_file)?;
    Some(format!("{}: undertext cannot create its own there. Move it away", disk::words(&error)))
}

/// Returns the successors in a store's folder.
fn fresh(root: &Path) -> Result<Vec<(PathBuf, Cure)>, OpsError> {
    let mut paths = paths(root)?;
    paths.retain(|path| path.file_name().is_some_and(live::is_fresh));
    Ok(paths.into_iter().map(|path| (path, Cure::Delete)).collect())
}

/// Returns what interrupted changes left next to session files.
pub fn remainders(archive: &Archive) -> Result<Vec<Ailment>, OpsError> {
    let cure = |is_writable| if is_writable { Cure::Delete } else { Cure::Person };
    let successors = || {
        let found = purge::remainders(archive)?.into_iter();
        Ok(found.map(|(path, is_writable)| (path, cure(is_writable))).collect())
    };
    let found = left_behind(archive.root(), &successors)?.into_iter();
    Ok(found.map(|(path, cure)| Ailment::new(&path, CUT_SHORT, cure)).collect())
}

/// Returns the successors left by an interrupted change: those that still exist once no program changes the store, except those
/// locked by a program that works on another store of the same session.
fn left_behind(
    root: Option<&Path>,
    successors: &dyn Fn() -> Result<Vec<(PathBuf, Cure)>, OpsError>,
) -> Result<Vec<(PathBuf, Cure)>, OpsError> {
    let mut found = successors()?;
    if let Some(root) = root.filter(|_| !found.is_empty()) {
        // If the lock cannot be taken, as on a read-only disk, the files are judged as they are.
        let _lock = archive::lock_if_there(root, &Waiting::default());
        found = successors()?;
        found.retain(|(path, _)| !is_written(path));
    }
    Ok(found)
}

/// Resolves links in the path of a store's folder. Refuses a folder with neither a store nor a witness: undertext created nothing
/// in it.
fn folder(root: &Path) -> Result<PathBuf, OpsError> {
    let is_absent = |name: &&str| {
        let meta = fs::symlink_metadata(root.join(name));
        meta.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    if [DATABASE, WITNESS].iter().all(is_absent) {
        return Err(StoreError::Absent { path: root.to_owned() }.into());
    }
    Ok(fs::canonicalize(root).map_err(SyncError::at(root))?)
}

/// Returns why a store is not safe in its folder.
fn misplaced(root: &Path) -> Option<&'static str> {
    match place_of(root) {
        Place::Local => None,
        Place::Network => Some("it is on a network file system, where a store is not safe"),
        Place::Synced => {
            Some("it is in a synchronised folder, which may copy a store in the middle of a write")
        }
    }
}

/// Corrects the modes that keep this user out of a store's folder and its files, and returns them as cured.
pub fn let_in(root: &Path) -> Result<Vec<Ailment>, OpsError> {
    let root = folder(root)?;
    let mut cured = Vec::new();
    // Each pass may make further folders readable.
    for _ in 0..3 {
        for path in paths(&root)? {
            // A file removed after the folder was listed needs no mode.
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if !is_own(&meta) || !is_too_strict(&root, &path, &meta) {
                continue;
            }
            let wanted = wanted_mode(&meta);
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted))
                .map_err(SyncError::at(&path))?;
            let ailment = Ailment::new(&path, too_strict(&meta), Cure::Mode(wanted));
            cured.push(Ailment { cured: true, ..ailment });
        }
    }
    Ok(cured)
}

/// Returns a store's folder and its contents, as far as it can be listed.
fn paths(root: &Path) -> Result<Vec<PathBuf>, OpsError> {
    let mut paths = vec![root.to_owned()];
    for folder in [root.to_owned(), root.join(TRANSCRIPTS)] {
        match fs::read_dir(&folder) {
            Ok(entries) => {
                for entry in entries {
                    paths.push(entry.map_err(SyncError::at(&folder))?.path());
                }
            }
            // A file in place of the folder is reported under its own name.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            // A mode that keeps the owner out is reported. Another user's private folder cannot be checked.
            Err(error)
                if error.kind() == ErrorKind::PermissionDenied
                    && fs::metadata(root).is_ok_and(|meta| is_own(&meta)) => {}
            Err(error) => return Err(SyncError::at(&folder)(error).into()),
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns true if something belongs to this user.
fn is_own(meta: &Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw()
}

/// Returns the mode that a file or folder of a store should have.
fn wanted_mode(meta: &Metadata) -> u32 {
    if meta.is_dir() { 0o700 } else { 0o600 }
}

/// Returns true if undertext needs to read and write this file or folder of a store.
fn is_needed(root: &Path, path: &Path, meta: &Metadata) -> bool {
    let is_own = model::is_own(path.file_name().unwrap_or_default());
    let transcripts = root.join(TRANSCRIPTS);
    let is_live = || path.extension().is_some_and(|end| end == "jsonl");
    (meta.is_dir() && (path == root || path == transcripts))
        || (meta.is_file() && path.parent() == Some(root) && is_own)
        || (meta.is_file() && path.parent() == Some(&transcripts) && is_live())
}

/// Returns true if a mode keeps the owner from something that undertext needs.
fn is_too_strict(root: &Path, path: &Path, meta: &Metadata) -> bool {
    let wanted = wanted_mode(meta);
    is_needed(root, path, meta) && meta.mode() & wanted != wanted
}

fn too_strict(meta: &Metadata) -> String {
    format!("its mode is {:04o}: undertext cannot read and write it", meta.mode() & 0o7777)
}

/// Asks the system whether this user may read and write a file or folder.
fn reach(path: &Path) -> std::io::Result<()> {
    let wanted = Reach::READ_OK | Reach::WRITE_OK;
    Ok(rustix::fs::accessat(CWD, path, wanted, AtFlags::EACCESS)?)
}

/// Cures each ailment of a store's folder that can be cured; only a person can fix the rest.
pub fn treat(root: &Path, ailments: &mut [Ailment]) -> Result<(), OpsError> {
    // Under the lock, a successor that another program of this store was writing is either finished or a leftover.
    let _lock = archive::lock_if_there(root, &Waiting::default())?;
    for ailment in ailments {
        let done = match ailment.cure {
            Cure::Mode(mode) => {
                fs::set_permissions(&ailment.path, fs::Permissions::from_mode(mode))
            }
            Cure::Delete if is_written(&ailment.path) => continue,
            Cure::Delete => match fs::remove_file(&ailment.path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
            // A store that cannot be written is mended first, which also renews the witness.
            Cure::Mend if ailment.path.ends_with(WITNESS) => {
                let store = SqliteStore::open(&root.join(DATABASE), Access::Write);
                ailment.cured = store.and_then(|store| store.testimony().renew()).is_ok();
                continue;
            }
            Cure::Mend | Cure::Person => continue,
        };
        done.map_err(SyncError::at(&ailment.path))?;
        ailment.cured = true;
    }
    Ok(())
}

/// Returns true if a process is writing a file, such as one that works on another store of the same session.
fn is_written(path: &Path) -> bool {
    disk::open(path, Links::Refuse).is_ok_and(|file| disk::is_locked(&file))
}

/// An agent that keeps sessions for at least this many days is not reported.
const LONG: u64 = 365;

/// Returns the agents of a user that delete sessions before long, according to their settings.
pub fn forgetful(user: &User<'_>) -> Vec<Forgetful> {
    let keepings = discover::keepings(user).into_iter();
    let there = keepings.filter(|keeping| keeping.settings.parent().is_some_and(Path::is_dir));
    let read = there.map(|Keeping { agent, settings, cleanup }| {
        // Unreadable settings count as the defaults.
        let text = disk::read(&settings, SETTINGS).unwrap_or_default();
        let days = Raw::file(&text).and_then(|all| all.get(cleanup.field)?.u64());
        Forgetful { agent, settings, field: cleanup.field, days: days.unwrap_or(cleanup.days) }
    });
    read.filter(|agent| agent.days < LONG).collect()
}

/// Returns what kind of file system a folder is on.
pub fn place_of(folder: &Path) -> Place {
    if is_network(folder) {
        return Place::Network;
    }
    let synced =
        folder.components().any(|part| SYNCED.iter().any(|name| part.as_os_str() == *name));
    if synced { Place::Synced } else { Place::Local }
}

#[cfg(target_os = "linux")]
fn is_network(folder: &Path) -> bool {
    // NFS, SMB and its kin, AFS, Ceph, 9P, Coda, GFS2, OCFS2, Lustre: the magic numbers of statfs(2).
    const NETWORK: [i64; 11] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x00c3_6400,
        0x0102_1997,
        0x7375_7245,
        0x0116_1970,
        0x7461_636f,
        0x0bd0_0bd0,
    ];
    let magic = rustix::fs::statfs(folder).map(|stat| stat.f_type & 0xffff_ffff);
    magic.is_ok_and(|magic| NETWORK.contains(&magic))
}

#[cfg(not(target_os = "linux"))]
fn is_network(folder: &Path) -> bool {
    let local = |stat: rustix::fs::StatVfs| stat.f_flag.bits() & 0x1000 != 0;
    cfg!(target_os = "macos") && rustix::fs::statvfs(folder).is_ok_and(|stat| !local(stat))
}
