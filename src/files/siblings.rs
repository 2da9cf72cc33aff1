//! Finds the other files of a session by their names, for agents that keep a session in several files.
//!
//! Invariant: it never follows a link, and never looks at more than [`LOOKED`] names of a shelf.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use crate::{
    files::{deletion::is_gone, sources},
    json::Raw,
    live::{self, Index, is_same},
    model::SessionName,
    session::graph::beginning::FOLLOWED,
    wire::{Base, FileName, Format, Shelf, jsonl::Reader},
};

/// How many names of a shelf to look at.
const LOOKED: usize = 100_000;
/// The extension of a file that its agent compressed.
const PACKED: &str = ".zst";

/// Returns the parts of a file's name, if its agent keeps a session in several files.
pub(crate) fn name(format: &dyn Format, path: &Path) -> Option<FileName> {
    format.file_name(path.file_name()?.to_str()?)
}

/// A cache of the files on shelves, by file id. Each shelf is listed once; the first file with an id wins.
#[derive(Default)]
pub(crate) struct Shelved(BTreeMap<PathBuf, BTreeMap<String, (FileName, PathBuf)>>);

impl Shelved {
    /// Returns the file with this id, if it is on one of the shelves of `file`.
    pub(crate) fn find(
        &mut self,
        format: &dyn Format,
        file: &Path,
        id: &str,
    ) -> Option<&(FileName, PathBuf)> {
        let shelves = format.shelves(&real(file));
        for shelf in &shelves {
            self.0.entry(shelf.path.clone()).or_insert_with(|| {
                let mut files = BTreeMap::new();
                for (name, path) in look(shelf, None, &|path| name(format, path)) {
                    files.entry(name.id.clone()).or_insert((name, path));
                }
                files
            });
        }
        shelves.iter().find_map(|shelf| self.0.get(&shelf.path)?.get(id))
    }
}

/// Successors on shelves that no change moved into place. Each shelf is listed once.
#[derive(Default)]
pub(crate) struct Unplaced {
    since: Option<String>,
    shelves: BTreeMap<PathBuf, Vec<(FileName, PathBuf)>>,
}

impl Unplaced {
    /// Skips folders whose names show that all their files were begun before this time.
    pub(crate) fn since(begun: String) -> Self {
        Self { since: Some(begun), ..Self::default() }
    }

    /// Returns the unplaced successors of the session that `file` belongs to.
    pub(crate) fn of(&mut self, format: &dyn Format, file: &Path) -> BTreeSet<PathBuf> {
        let Some(own) = name(format, file) else { return BTreeSet::new() };
        let mut found = BTreeSet::new();
        for shelf in format.shelves(&real(file)) {
            let since = self.since.as_deref();
            let placed = |path: &Path| name(format, &live::placed(path)?);
            let all = self.shelves.entry(shelf.path.clone());
            let all = all.or_insert_with(|| look(&shelf, since, &placed));
            let own = all.iter().filter(|(name, _)| name.session == own.session);
            found.extend(own.map(|(_, path)| path.clone()));
        }
        found
    }
}

/// Returns the files that a file continues from, oldest first. Stops at a missing file or one of another session.
pub(crate) fn bases(
    format: &dyn Format,
    session: &SessionName,
    path: &Path,
    shelved: &mut Shelved,
) -> Vec<PathBuf> {
    let Some(mut wanted) = base(format, path) else { return Vec::new() };
    let mut bases: Vec<PathBuf> = Vec::new();
    let mut met: BTreeSet<String> = name(format, path).into_iter().map(|own| own.id).collect();
    while bases.len() < FOLLOWED && met.insert(wanted.file.clone()) {
        let Some((_, file)) = shelved.find(format, path, &wanted.file) else { break };
        if !sources::identify(file).is_ok_and(|(_, name)| name == *session) {
            break;
        }
        bases.push(file.clone());
        let Some(next) = base(format, file) else { break };
        wanted = next;
    }
    bases.reverse();
    bases
}

/// Returns where the history of a file begins, if in another file.
pub(crate) fn base(format: &dyn Format, path: &Path) -> Option<Base> {
    name(format, path)?;
    let mut reader = Reader::new(sources::open(path, 0).ok()?);
    format.base(Raw::object(reader.next_line().ok()??.line.bytes)?)
}

/// Returns the file that the agent's index names for a session, if that file exists. `path` is any file of the session.
pub(crate) fn named(format: &dyn Format, session: &str, path: &Path) -> Option<PathBuf> {
    let named = Index::of(format.home(path)?).file(session).ok()??;
    Some(named).filter(|named| !is_gone(named))
}

/// Returns the file that an agent reads instead of this one: the one its index names, otherwise one that was begun later.
pub(crate) fn read_instead(format: &dyn Format, session: &str, path: &Path) -> Option<PathBuf> {
    match named(format, session, path) {
        Some(named) => Some(named).filter(|named| !is_same(named, path)),
        None => successor(format, path),
    }
}

/// Returns the session's newest file that was begun later than this one; the agent reads it instead.
pub(crate) fn successor(format: &dyn Format, path: &Path) -> Option<PathBuf> {
    let own = name(format, path)?;
    let is_later = |name: &FileName| name.session == own.session && *name > own;
    let found = since(format, path, &own.begun, &is_later).into_iter();
    found.max_by(|(one, _), (other, _)| one.cmp(other)).map(|(_, path)| path)
}

/// Returns other files with the same name on the file's shelves, compressed or not: where its agent may have moved it.
pub(crate) fn namesakes(format: &dyn Format, path: &Path) -> Vec<PathBuf> {
    let Some(own) = name(format, path) else { return Vec::new() };
    let Some(file) = path.file_name().and_then(OsStr::to_str) else { return Vec::new() };
    let plain = file.strip_suffix(PACKED).unwrap_or(file);
    let day: PathBuf = own.begun.split('T').take(1).flat_map(|day| day.split('-')).collect();
    let shelves = format.shelves(&real(path));
    let folders = shelves.iter().flat_map(|shelf| [shelf.path.clone(), shelf.path.join(&day)]);
    let names = [plain.to_owned(), format!("{plain}{PACKED}")];
    let files = folders.flat_map(|folder| names.each_ref().map(|name| folder.join(name)));
    let is_other =
        |file: &PathBuf| file != path && file.symlink_metadata().is_ok_and(|meta| meta.is_file());
    files.filter(is_other).collect()
}

/// Returns the files on the shelves of a file that `is_meant` accepts. Skips folders whose names show that all their files were
/// begun earlier.
pub(crate) fn since(
    format: &dyn Format,
    path: &Path,
    begun: &str,
    is_meant: &dyn Fn(&FileName) -> bool,
) -> Vec<(FileName, PathBuf)> {
    let shelves = format.shelves(&real(path));
    let is_meant = |path: &Path| name(format, path).filter(is_meant);
    shelves.iter().flat_map(|shelf| look(shelf, Some(begun), &is_meant)).collect()
}

fn real(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}

/// Lists the files on a shelf whose names `parts` accepts, in folder order. Skips folders whose names show that all their files
/// were begun before `since`.
fn look(
    shelf: &Shelf,
    since: Option<&str>,
    parts: &dyn Fn(&Path) -> Option<FileName>,
) -> Vec<(FileName, PathBuf)> {
    let mut found = Vec::new();
    let mut looked = 0;
    let mut ahead = vec![(shelf.path.clone(), 0)];
    while let Some((folder, depth)) = ahead.pop() {
        let Ok(children) = fs::read_dir(&folder) else { continue };
        let mut children: Vec<fs::DirEntry> =
            children.flatten().take(LOOKED.saturating_sub(looked)).collect();
        looked += children.len();
        children.sort_by_key(fs::DirEntry::file_name);
        for child in children {
            let path = child.path();
            let Ok(kind) = child.file_type() else { continue };
            if kind.is_dir() && depth < shelf.depth && !is_before(&shelf.path, &path, since) {
                ahead.push((path, depth + 1));
            } else if kind.is_file()
                && let Some(name) = parts(&path)
            {
                found.push((name, path));
            }
        }
    }
    found
}

/// Returns true if a folder, named by year, month and day, has only files begun before a time.
fn is_before(shelf: &Path, folder: &Path, since: Option<&str>) -> bool {
    let Ok(day) = folder.strip_prefix(shelf) else { return false };
    let day = day.to_string_lossy().replace('/', "-");
    let is_day = day.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let since = since.and_then(|since| since.get(..day.len()));
    is_day && since.is_some_and(|since| day.as_str() < since)
}
