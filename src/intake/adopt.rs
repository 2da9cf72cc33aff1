//! Adopts the beginning of another session's file, for a session whose history starts there.
//!
//! ```text
//! parent   a b c d e         fork   (the parent's file, up to c) x y
//!                            its files: bases/<name of the parent's file>   a b c
//!                                       its own                             x y
//! ```
//!
//! Equal lines are stored once. The adopted part never grows. Its place is in the store's folder, but no file exists there.
//!
//! Invariant: it never imports more of another session's file than the history continues from, and nothing of a session that the
//! user's settings exclude.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, SyncError},
    change::draft::Change,
    files::{
        deletion,
        siblings::{self, Shelved},
        sources,
    },
    json::Raw,
    model::{FileNumber, Place, SessionName},
    session::{
        Session, Stored,
        graph::{
            beginning::{BASES, FOLLOWED},
            content,
        },
    },
    wire::{Base, Format, jsonl::Reader},
};

/// The beginning of another session's file.
struct Part {
    /// The file's name.
    name: String,
    /// How many bytes belong to the history.
    bytes: u64,
    lies: Lies,
}

/// Where the content of a part is.
enum Lies {
    /// In a file.
    File(PathBuf),
    /// In the store.
    Held(Vec<u8>),
}

impl Part {
    /// Opens the part, as far as it exists.
    fn open(&self) -> Result<impl Read, SyncError> {
        let stream: Box<dyn Read + '_> = match &self.lies {
            Lies::File(path) => sources::open(path, 0).map_err(SyncError::at(path))?,
            Lies::Held(bytes) => Box::new(bytes.as_slice()),
        };
        Ok(stream.take(self.bytes))
    }

    /// Returns the part's actual length: a history may refer to more bytes than the file has.
    fn length(&self) -> Result<u64, SyncError> {
        let copied = io::copy(&mut self.open()?, &mut io::sink());
        copied.map_err(SyncError::at(Path::new(&self.name)))
    }
}

/// Adopts the parts of other sessions' files that a file continues from. Returns true if any was new.
pub(crate) fn adopt(
    change: &mut Change<'_>,
    file: &Path,
    shelved: &mut Shelved,
) -> Result<bool, SyncError> {
    let before = &change.before;
    let parts = parts(before.archive, before.format, &before.name, file, shelved)?;
    let mut is_new = false;
    for part in parts {
        let place = Place::Store(Path::new(BASES).join(&part.name).as_os_str().as_bytes().into());
        let known = change.held_file(&place);
        if let Some((_, held)) = known
            && (held >= part.bytes || held >= part.length()?)
        {
            continue;
        }
        let n = known.map_or_else(|| change.file(place), |(n, _)| n);
        let mut growth = change.generation(Some(n));
        change.read(&mut growth, part.open()?)?;
        change.grown(growth);
        is_new = true;
    }
    Ok(is_new)
}

/// Returns the parts of other sessions' files that lead to a file, oldest first, as far as they are found on the agent's shelves
/// or in the store.
fn parts(
    archive: &Archive,
    format: &dyn Format,
    session: &SessionName,
    file: &Path,
    shelved: &mut Shelved,
) -> Result<Vec<Part>, SyncError> {
    let Some(mut wanted) = siblings::base(format, file) else { return Ok(Vec::new()) };
    let mut parts = Vec::new();
    let mut met: BTreeSet<String> =
        siblings::name(format, file).map(|own| own.id).into_iter().collect();
    let mut holders = vec![session.id.clone()];
    while met.len() < FOLLOWED && met.insert(wanted.file.clone()) {
        let Some(bytes) = wanted.bytes else { break };
        holders.extend(wanted.session.clone());
        holders.push(wanted.file.clone());
        let found = shelved.find(format, file, &wanted.file);
        let found = found.filter(|(name, path)| {
            let owner = SessionName { format: format.name().to_owned(), id: name.session.clone() };
            owner == *session || archive.exclusion(&owner, format, Some(path)).is_none()
        });
        let (owner, part, next) = if let Some((name, path)) = found {
            let file = path.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
            let part = Part { name: file, bytes, lies: Lies::File(path.clone()) };
            (name.session.clone(), part, siblings::base(format, path))
        } else {
            let Some((owner, name, held)) = held(archive, format, &holders, &wanted)? else {
                break;
            };
            let next = base_of(format, &held);
            (owner, Part { name, bytes, lies: Lies::Held(held) }, next)
        };
        holders.push(owner.clone());
        if owner != session.id {
            parts.push(part);
        }
        let Some(next) = next else { break };
        wanted = next;
    }
    parts.reverse();
    Ok(parts)
}

/// Returns the owner of the wanted file, its name, and the wanted part of its content, if one of these sessions has it.
fn held(
    archive: &Archive,
    format: &dyn Format,
    holders: &[String],
    wanted: &Base,
) -> Result<Option<(String, String, Vec<u8>)>, SyncError> {
    let store = archive.store.as_ref();
    for id in holders.iter().rev() {
        let name = SessionName { format: format.name().to_owned(), id: id.clone() };
        let Some(session) = Session::find(store, &name)? else { continue };
        let session = Stored::of(store, &session)?;
        for (n, place) in FileNumber::FIRST.onwards().zip(&session.state.files) {
            let Some(file) = place.name() else { continue };
            let Some(named) = format.file_name(file).filter(|name| name.id == wanted.file) else {
                continue;
            };
            let newest = deletion::newest(&session.state).find(|(file, _)| *file == n);
            let Some((_, generation)) = newest else { continue };
            let runs = store.runs(session.key, generation, 0)?;
            let mut bytes = content::bytes(&session, &runs)?;
            bytes.truncate(wanted.bytes.and_then(|n| usize::try_from(n).ok()).unwrap_or(0));
            return Ok(Some((named.session, file.to_owned(), bytes)));
        }
    }
    Ok(None)
}

/// Returns where the history of a content begins, if in another file.
fn base_of(format: &dyn Format, content: &[u8]) -> Option<Base> {
    let mut reader = Reader::new(content);
    let first = reader.next_line().ok()??;
    format.base(Raw::object(first.line.bytes)?)
}
