//! Searches agents' folders for files that still contain what was redacted, whatever they are: lists of sessions and prompts,
//! debug logs, settings, records that undertext does not import.
//!
//! Invariant: these files are read and never written, and no link is followed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, SyncError},
    cover::{Secret, Secrets},
    disk::{self, Links},
    files::deletion::is_gone,
    json::Frame,
    live,
    purge::{Purged, remainders::own_files},
    redaction::Found,
    session::Session,
};

/// How many bytes of a file to search at a time; the rest of the last line is added.
const PART: u64 = 256 << 10;
/// The longest line that is searched as a whole.
const LONGEST: u64 = 64 << 20;
/// How many bytes to search again with the next part, for a secret that spans lines.
const OVERLAP: usize = 64 << 10;
/// How deep to search folders.
const DEPTH: usize = 16;

/// Searches agents' folders and the files of these sessions for the secrets. If whole lines were redacted, also searches for the
/// sessions' ids, because another file that names such a session may say anything. Adds the files that still contain something.
pub(crate) fn search(
    archive: &Archive,
    folders: &[PathBuf],
    sessions: &[Session],
    found: &Found<'_>,
    purged: &mut Purged,
) -> Result<(), SyncError> {
    let secrets = found.secrets;
    let mut files = Files::of(folders);
    let mut own = BTreeMap::new();
    for session in sessions {
        let files = own_files(&archive.at(session)?);
        own.extend(files.into_iter().map(|own| (own.path, session.key)));
    }
    let named = sessions.iter().filter(|_| found.has_whole);
    let ids = named.filter_map(|session| Secret::new(&session.name.id, &Frame::NONE));
    let both = [secrets, &Secrets::new(ids.collect())];
    purged.unseen.append(&mut files.unseen);
    files.all.extend(own.keys().cloned());
    for path in files.all {
        let others = archive.store().files(&archive.place_of(&path))?;
        let known = own.get(&path).or(others.first().map(|(session, ..)| session)).copied();
        if let Some(session) = known {
            let read = || has_any(&path, &[secrets]);
            if !secrets.is_empty() && read().unwrap_or_else(|error| !disk::is_absent(&error)) {
                purged.covered.retain(|covered| *covered != path);
                if purged.left.iter().all(|(_, left)| *left != path) {
                    purged.left.push((session, path));
                }
            }
        } else if !path.file_name().is_some_and(live::is_fresh) {
            let is_named = both.iter().any(|any| any.is_in(path.as_os_str().as_bytes()));
            match has_any(&path, &both) {
                Ok(has_any) if !is_named && !has_any => {}
                Err(error) if disk::is_absent(&error) => {}
                Err(_) if !is_named => _ = purged.unseen.insert(path),
                _ => purged.beside.push(path),
            }
        }
    }
    Ok(())
}

/// The files below some folders.
#[derive(Default)]
struct Files {
    all: BTreeSet<PathBuf>,
    unseen: BTreeSet<PathBuf>,
    /// The folders with links resolved.
    roots: Vec<PathBuf>,
}

impl Files {
    fn of(folders: &[PathBuf]) -> Self {
        let roots = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok()).collect();
        let mut files = Self { roots, ..Self::default() };
        for folder in folders {
            let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
            files.walk(folder, &real, DEPTH);
        }
        files
    }

    fn walk(&mut self, folder: &Path, real: &Path, depth: usize) {
        let names = disk::folder_below(real, Path::new("")).and_then(|open| disk::names(&open));
        if names.is_err() && !is_gone(folder) {
            self.unseen.insert(folder.to_owned());
        }
        for name in names.unwrap_or_default() {
            let path = folder.join(name);
            let Ok(kind) = path.symlink_metadata().map(|meta| meta.file_type()) else { continue };
            if kind.is_dir() && depth > 0 {
                self.walk(&path, &path, depth - 1);
            } else if kind.is_file() {
                self.all.insert(path);
            } else if kind.is_dir() || kind.is_symlink() && self.leads_out(&path) {
                self.unseen.insert(path);
            }
        }
    }

    /// Returns true if a link leads out of all the folders.
    fn leads_out(&self, link: &Path) -> bool {
        let real = fs::canonicalize(link);
        real.is_ok_and(|real| !self.roots.iter().any(|root| real.starts_with(root)))
    }
}

/// Returns true if a file contains any of these secrets.
fn has_any(path: &Path, any: &[&Secrets]) -> io::Result<bool> {
    let mut file = BufReader::new(disk::open(path, Links::Refuse)?);
    let mut part = Vec::new();
    loop {
        let begin = part.len();
        file.by_ref().take(PART).read_to_end(&mut part)?;
        file.by_ref().take(LONGEST).read_until(b'\n', &mut part)?;
        if any.iter().any(|secrets| secrets.are_in_lines(&part)) {
            return Ok(true);
        }
        if part.len() == begin {
            return Ok(false);
        }
        // Cut at a line: a secret's context within its record counts only in a whole line.
        let from = part.len().saturating_sub(OVERLAP);
        let line = memchr::memchr(b'\n', part.get(from..).unwrap_or_default());
        part.drain(..line.map_or(from, |at| from + at + 1));
    }
}
