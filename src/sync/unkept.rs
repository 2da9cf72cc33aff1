//! Unkept files: what an agent keeps next to a session or under its name and undertext does not, such as a file that is too long, one
//! that is a link, a list of things to do, a second record of the same conversation, or a list of all its sessions.
//!
//! Invariant: they are read at most, and never written.

use std::{
    ffi::OsString,
    io::{self, BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
};

use crate::{
    cover::{Secret, Secrets},
    disk::{self, Links},
    json::Frame,
    live,
    model::{FileNumber, State},
    session::Session,
    sync::{Archive, SyncError, gone::is_gone},
    wire::Trace,
};

/// How many bytes of a file are looked at together.
const PART: u64 = 4 << 20;
/// How many of them are looked at again with the next ones, for what lies across.
const OVERLAP: usize = 64 << 10;
/// How deep folders may lie in each other that are looked through.
const DEPTH: usize = 8;

/// What lies near a session and is not kept of it.
#[derive(Default)]
struct Near {
    /// What is next to it or under its name.
    found: Vec<PathBuf>,
    /// The lists in which the agent has its sessions.
    lists: Vec<PathBuf>,
    /// The folders that could not be looked through.
    unseen: Vec<PathBuf>,
}

/// Returns the files next to a session that are not kept of it, and have any of these secrets or cannot be read; `all` of them if what
/// they may have is not known, and of lists of sessions those that name it. Then the folders that could not be looked through.
pub(super) fn with_any(
    archive: &Archive,
    session: &Session,
    (secrets, all): (&Secrets, bool),
) -> Result<(Vec<PathBuf>, Vec<PathBuf>), SyncError> {
    let state = archive.store().state(session.key)?;
    let Near { mut found, mut lists, unseen } = unkept(archive, session, &state)?;
    let is_named = |path: &Path| secrets.is_in(path.as_os_str().as_encoded_bytes());
    let has = |path: &Path, any: &Secrets| has_any(path, any).unwrap_or(true);
    found.retain(|path| all || is_named(path) || has(path, secrets));
    let id = Secrets::new(Secret::new(&session.name.id, &Frame::NONE).into_iter().collect());
    lists.retain(|path| has(path, secrets) || all && has(path, &id));
    found.append(&mut lists);
    Ok((found, unseen))
}

/// Returns the session's own files that have any of these secrets in a line, or cannot be read: as far as the store has not taken them
/// in, nothing in them was covered.
pub(super) fn own_with_any(
    archive: &Archive,
    session: &Session,
    secrets: &Secrets,
) -> Result<Vec<PathBuf>, SyncError> {
    let state = archive.store().state(session.key)?;
    let mut own: Vec<PathBuf> =
        state.files.iter().filter_map(|place| archive.path_of(place)).collect();
    own.retain(|path| match line_has_any(path, secrets) {
        Ok(has_any) => has_any,
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    });
    Ok(own)
}

/// Looks for what lies near a session.
fn unkept(archive: &Archive, session: &Session, state: &State) -> Result<Near, SyncError> {
    let own = FileNumber::FIRST.onwards().zip(&state.files);
    let own = own.map(|(n, place)| (state.sidecars.contains_key(&n), archive.path_of(place)));
    let own: Vec<(bool, PathBuf)> =
        own.filter_map(|(is_sidecar, path)| Some((is_sidecar, path?))).collect();
    let mut folders: Vec<(PathBuf, PathBuf, Option<OsString>)> = Vec::new();
    let mut near = Near::default();
    for (_, path) in own.iter().filter(|(is_sidecar, _)| !is_sidecar) {
        let annexes = session.format.annexes(path, &session.name.id).into_iter();
        let annexes = annexes.filter(|annex| {
            let folder = annex.from.join(&annex.folder);
            !annex.is_apart || archive.writable.has(session.format.name(), &folder)
        });
        folders.extend(annexes.map(|annex| (annex.from, annex.folder, annex.name.map(Into::into))));
        for trace in session.format.traces(path, &session.name.id) {
            near.gather(&trace, &session.name.id);
        }
        // Where each session has a folder, all in there is of the session.
        let name = path.file_name().and_then(|name| name.to_str());
        if let (Some(folder), true) =
            (path.parent(), name.is_some() && name == session.format.traits().live_name)
        {
            folders.push((folder.to_owned(), PathBuf::new(), None));
        }
    }
    folders.sort();
    folders.dedup();
    for (from, below, name) in folders {
        let mut inner = near.within(&from, &below);
        if let Some(name) = name {
            let path = from.join(&below).join(name);
            inner.retain(|found| *found == path);
        }
        near.found.append(&mut inner);
    }
    let Near { mut found, mut lists, mut unseen } = near;
    found.retain(|path| {
        let is_folder = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        !is_folder
            && !is_gone(path)
            && !path.file_name().is_some_and(live::is_fresh)
            && !own.iter().any(|(_, own)| own == path)
    });
    let asides = state.rotations.iter().map(|(_, rotation)| rotation.aside.as_slice());
    let asides: Vec<&[u8]> = asides.collect();
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        !asides.contains(&name)
    });
    found.sort();
    found.dedup();
    unseen.retain(|folder| found.binary_search(folder).is_err());
    let mut unkept = Vec::new();
    for path in found {
        // A sub-agent's is of a session of its own.
        if archive.store().files(&archive.place_of(&path))?.is_empty() {
            unkept.push(path);
        }
    }
    lists.retain(|list| !is_gone(list));
    for all in [&mut lists, &mut unseen] {
        all.sort();
        all.dedup();
    }
    Ok(Near { found: unkept, lists, unseen })
}

impl Near {
    /// Gathers all that is somewhere under the name of a session, and the lists that may name it.
    fn gather(&mut self, trace: &Trace, session: &str) {
        match trace {
            Trace::Below(folder) => self.walk(folder, DEPTH),
            Trace::Named(home) => {
                for folder in self.within(home, Path::new("")) {
                    self.named(&folder, session.as_bytes());
                }
            }
            Trace::Beside(path) => {
                if let (Some(folder), Some(name)) = (path.parent(), path.file_name()) {
                    self.named(folder, name.as_encoded_bytes());
                }
            }
            Trace::List(list) => self.lists.push(list.clone()),
        }
    }

    /// Gathers what is in a folder under names that begin so.
    fn named(&mut self, folder: &Path, begin: &[u8]) {
        for path in self.within(folder, Path::new("")) {
            if path.file_name().unwrap_or_default().as_encoded_bytes().starts_with(begin) {
                self.walk(&path, DEPTH);
                self.found.push(path);
            }
        }
    }

    /// Gathers all that is below a folder. No link is followed.
    fn walk(&mut self, folder: &Path, depth: usize) {
        for path in self.within(folder, Path::new("")) {
            if depth > 0 {
                self.walk(&path, depth - 1);
            } else if path.is_dir() {
                self.unseen.push(path.clone());
            }
            self.found.push(path);
        }
    }

    /// Returns the paths of what is in a folder below another, or nothing if there is no such folder. A folder that cannot
    /// be listed is noted. So is a link, which is not followed.
    fn within(&mut self, from: &Path, below: &Path) -> Vec<PathBuf> {
        let names = disk::folder_below(from, below).and_then(|folder| disk::names(&folder));
        let folder: PathBuf = from.join(below).components().collect();
        if names.is_err() && !is_gone(&folder) && !folder.is_file() {
            self.unseen.push(folder.clone());
        }
        names.unwrap_or_default().into_iter().map(|name| folder.join(name)).collect()
    }
}

/// Returns whether a line of a file has any of these secrets: what tells what a record is counts only in the record.
fn line_has_any(path: &Path, secrets: &Secrets) -> io::Result<bool> {
    let mut file = BufReader::new(disk::open(path, Links::Refuse)?);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        if secrets.is_in(&line) {
            return Ok(true);
        }
        line.clear();
    }
    Ok(false)
}

/// Returns whether a file has any of these secrets.
fn has_any(path: &Path, secrets: &Secrets) -> io::Result<bool> {
    let mut file = disk::open(path, Links::Refuse)?;
    let mut part = Vec::new();
    loop {
        let read = file.by_ref().take(PART).read_to_end(&mut part)?;
        if secrets.is_in(&part) {
            return Ok(true);
        }
        if read == 0 {
            return Ok(false);
        }
        part.drain(..part.len().saturating_sub(OVERLAP));
    }
}
