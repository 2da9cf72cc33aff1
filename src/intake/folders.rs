//! The folders on this machine in which agents keep session files, including agents that undertext does not read yet.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::{Path, PathBuf},
};

use crate::{
    archive::Archive,
    files::sources::children,
    live::{self, OpenSession},
    model::Tagged as _,
    store::StoreError,
    wire::{
        self, Folder, Traits,
        discover::{self, Home, User},
        unread::{self, UnreadHome},
    },
};

/// A folder where an agent keeps its sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFolder {
    /// The agent.
    pub agent: &'static str,
    /// The format of its sessions.
    pub format: &'static str,
    /// Its path.
    pub path: PathBuf,
}

/// Returns the folders where agents keep sessions on this machine.
pub fn agent_folders(user: &User<'_>) -> Vec<AgentFolder> {
    let mut folders = Vec::new();
    for Home { agent, format, path, each, .. } in discover::homes(user) {
        let paths = match each {
            None => vec![path],
            Some(below) => {
                let inner = children(&path).unwrap_or_default();
                inner.into_iter().map(|path| path.join(below)).collect()
            }
        };
        folders.extend(paths.into_iter().map(|path| AgentFolder { agent, format, path }));
    }
    folders.retain(|folder| folder.path.is_dir());
    folders
}

/// Returns the sessions that agents with these folders report as open. It does not look for processes that have a session's file
/// open; `open_in` does, for one session.
pub fn open_sessions(folders: &[AgentFolder]) -> Vec<OpenSession> {
    let home = |folder: &AgentFolder| {
        let traits = wire::by_name(folder.format)?.traits();
        let is_shelf = |of: &&Folder| !of.sessions.is_empty() && folder.path.ends_with(of.sessions);
        let shelf = traits.folders.iter().find(is_shelf)?;
        let depth = Path::new(shelf.sessions).components().count();
        Some((folder.path.ancestors().nth(depth)?.to_owned(), traits))
    };
    let mut homes: Vec<(PathBuf, &'static Traits)> = folders.iter().filter_map(home).collect();
    homes.dedup_by(|one, other| one.0 == other.0);
    live::open_sessions(homes.iter().map(|(home, traits)| (home.as_path(), *traits)))
}

/// What agents' folders contained at the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The time of the look: seconds and nanoseconds of the file system's clock.
    pub at: (i64, i64),
    /// All folders.
    pub folders: BTreeSet<PathBuf>,
    /// Files that have the name of a session file and belong to no session.
    pub files: BTreeSet<PathBuf>,
}

/// What agents' folders contain now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// All folders.
    pub folders: BTreeSet<PathBuf>,
    /// Files that have the name of a session file and belong to no session.
    pub files: BTreeSet<PathBuf>,
    /// Those that are new or have changed since the last look.
    pub new: Vec<PathBuf>,
    /// True if a folder has changed since the last look.
    pub has_changed: bool,
}

/// Looks for session files that belong to no session of an archive. A folder that has not changed since the last look has no new
/// files and is not read. Anything unreadable is skipped, because an import reports it. No link is followed.
pub fn new_files(
    archive: Option<&Archive>,
    folders: &[AgentFolder],
    last: Option<&Look>,
) -> Looked {
    let (never, mut looked) = (Look::default(), Looked::default());
    let known = last.unwrap_or(&never);
    let is_changed = |path: &Path| {
        let meta = fs::symlink_metadata(path).ok()?;
        Some(last.is_none_or(|last| (meta.ctime(), meta.ctime_nsec()) >= last.at))
    };
    let roots: Vec<PathBuf> =
        folders.iter().filter_map(|folder| live::real(&folder.path).ok()).collect();
    let is_below = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    let mut waiting: Vec<PathBuf> =
        roots.iter().filter(|root| !known.folders.contains(*root)).cloned().collect();
    for folder in known.folders.iter().filter(|folder| is_below(folder)) {
        match is_changed(folder) {
            Some(false) => drop(looked.folders.insert(folder.clone())),
            Some(true) => waiting.push(folder.clone()),
            None => looked.has_changed = true,
        }
    }
    let mut files = Vec::new();
    while let Some(folder) = waiting.pop() {
        looked.has_changed = true;
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            if kind.is_dir() {
                let inner = folder.join(name);
                if !known.folders.contains(&inner) {
                    waiting.push(inner);
                }
            } else if kind.is_file() && is_named(&name) {
                files.push(folder.join(name));
            }
        }
        looked.folders.insert(folder);
    }
    for file in known.files.iter().filter(|file| is_below(file)) {
        match is_changed(file) {
            Some(false) => drop(looked.files.insert(file.clone())),
            Some(true) => files.push(file.clone()),
            None => looked.has_changed = true,
        }
    }
    if files.is_empty() {
        return looked;
    }
    // If the store cannot be read, no file is known to be new.
    let Ok(held) = archive.map(held_places).transpose() else { return Looked::default() };
    for file in files {
        let is_held = held.as_ref().is_some_and(|is_held| is_held(&file));
        if !is_held && looked.files.insert(file.clone()) {
            looked.new.push(file);
        }
    }
    looked
}

/// Removes the files that sessions of an archive have by now.
pub fn leave_out_held(archive: &Archive, looked: &mut Looked) {
    // If the store cannot be read, they stay and are looked at again.
    if let Ok(is_held) = held_places(archive) {
        looked.files.retain(|file| !is_held(file));
    }
}

/// Returns a predicate that is true for a file that a session of the archive has.
fn held_places(archive: &Archive) -> Result<impl Fn(&Path) -> bool, StoreError> {
    let places = archive.store().places()?;
    Ok(move |file: &Path| places.binary_search(&archive.place_of(file).to_bytes()).is_ok())
}

/// Returns true for the name of a session file that undertext did not set aside.
fn is_named(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    (bytes.ends_with(b".jsonl") || bytes.ends_with(b".jsonl.zst"))
        && !live::is_aside(Path::new(name))
}

/// Returns the folders on this machine with session files that undertext does not read yet, each with the number of files.
pub fn unread_folders(user: &User<'_>) -> Vec<(UnreadHome, u64)> {
    let homes = unread::homes(user).into_iter().filter(|home| home.path.is_dir());
    let counted = homes.map(|home| {
        let files = count_files(&home.path, &home.files.split('/').collect::<Vec<_>>());
        (home, files)
    });
    counted.collect()
}

/// Counts the files below a folder whose path components match `names`; a `*` matches any characters.
fn count_files(folder: &Path, names: &[&str]) -> u64 {
    let Some((name, below)) = names.split_first() else { return u64::from(folder.is_file()) };
    let Some((begin, end)) = name.split_once('*') else {
        return count_files(&folder.join(name), below);
    };
    let is_meant = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        name.strip_prefix(begin.as_bytes()).is_some_and(|rest| rest.ends_with(end.as_bytes()))
    };
    let inner = children(folder).unwrap_or_default().into_iter().filter(is_meant);
    inner.map(|path| count_files(&path, below)).sum()
}
