//! Sidecars: files that an agent keeps for a session besides its records, such as the long output of a tool.
//!
//! The format derives their paths from the path of the session's file. A path inside a record is never followed, because anybody
//! may have written the record.
//!
//! Invariant: only regular files are imported, only from the session's folder or its agent's folders, and never through a link.

use std::{
    ffi::OsString,
    fs::File,
    io::ErrorKind,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    rc::Rc,
};

use rustix::fs::OFlags;

use crate::{
    archive::{Archive, At, SyncError},
    change::draft::{Change, whole_files},
    disk::{self, Links, Refusal},
    files::{Source, deletion::is_gone, sources},
    json::Raw,
    live,
    model::{Digest, FileNumber, OperationNumber, Sidecar},
    store::Sighting,
    wire::{Annex, Share},
};

/// The largest sidecar.
const LONGEST: u64 = 64 << 20;
/// The maximum number of sidecars of a session.
const MOST: usize = 1000;
/// The maximum total size of a session's sidecars.
const ALL: u64 = 256 << 20;

/// A sidecar that may have something new.
pub(crate) struct Changed {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its folder and its name there; nothing for a folder that cannot be listed.
    place: Option<(Rc<File>, OsString)>,
    /// Its current sighting; nothing if it cannot be read.
    sighting: Option<Sighting>,
    /// The session's lines, for a list with lines of many sessions.
    lines: Option<Vec<u8>>,
}

/// What was done with a sidecar.
pub(crate) enum Taken {
    /// The store has it in this state; `is_new` if it did not before.
    Held { seen: Sighting, is_new: bool },
    /// It was skipped.
    LeftOut { seen: Option<Sighting>, why: &'static str },
}

/// Returns the sidecars of a file's session that have changed since they were last looked at.
pub(crate) fn changed(archive: &Archive, source: &Source) -> Result<Vec<Changed>, SyncError> {
    let mut changed = Vec::new();
    for annex in source.format.annexes(&source.path, &source.session.id) {
        let path = annex.from.join(&annex.folder);
        let id = source.session.id.as_str();
        match annex.share {
            Share::Lines => {
                changed.extend(lines(archive, source, &annex.path())?);
                continue;
            }
            Share::Project if !archive.shared.borrow_mut().is_first(&path, id) => continue,
            _ => {}
        }
        // If the session's own folder is a link, its target does not matter here: the link is reported below.
        let is_agents = |above| archive.writable.has(source.format.name(), above);
        if annex.is_apart && !path.parent().is_some_and(is_agents) {
            continue;
        }
        let listed = disk::folder_below(&annex.from, &annex.folder).and_then(|folder| {
            let names = annex.name.map(|name| vec![name.into()]);
            Ok((names.map_or_else(|| disk::names(&folder), Ok)?, Rc::new(folder)))
        });
        let Ok((names, folder)) = listed else {
            if !is_gone(&path) && !path.is_file() {
                changed.push(Changed { path, place: None, sighting: None, lines: None });
            }
            continue;
        };
        for name in names {
            let place = (Rc::clone(&folder), name);
            let path = path.join(&place.1);
            let mut found = Changed { path, place: Some(place), sighting: None, lines: None };
            match found.open() {
                Ok((_, sighting)) if !is_seen(archive, &sighting)? => {
                    found.sighting = Some(sighting);
                }
                Err(error) if is_left(&error) => {}
                _ => continue,
            }
            if !live::is_aside(&found.path) {
                changed.push(found);
            }
        }
    }
    Ok(changed)
}

/// Returns a session's lines in a list of its agent, unless they are unchanged since the last look.
fn lines(archive: &Archive, source: &Source, list: &Path) -> Result<Option<Changed>, SyncError> {
    if !archive.writable.is_agents(list) {
        return Ok(None);
    }
    let (mut shared, id) = (archive.shared.borrow_mut(), source.session.id.as_str());
    let Some(lines) = shared.lines(list, LONGEST, source.format, id) else { return Ok(None) };
    let hash = Digest::of_bytes(lines).as_bytes().first_chunk().copied().unwrap_or_default();
    let sighting = Sighting {
        path: [list.as_os_str().as_bytes(), id.as_bytes()].join(&0),
        inode: 0,
        length: lines.len() as u64,
        modified: i64::from_be_bytes(hash),
        changed: 0,
    };
    if is_seen(archive, &sighting)? {
        return Ok(None);
    }
    let (path, lines) = (list.to_owned(), Some(lines.to_vec()));
    Ok(Some(Changed { path, place: None, sighting: Some(sighting), lines }))
}

/// Returns true if a readable sidecar of a file's session has changed.
pub(crate) fn are_changed(archive: &Archive, source: &Source) -> Result<bool, SyncError> {
    Ok(changed(archive, source)?.iter().any(|found| found.sighting.is_some()))
}

/// Returns true if a sidecar is unchanged since the last look.
fn is_seen(archive: &Archive, sighting: &Sighting) -> Result<bool, SyncError> {
    Ok(archive.store.sighting(&sighting.path)?.as_ref() == Some(sighting))
}

/// Returns true if an error means that something exists and is not a folder. A folder may have other sidecars.
fn is_left(error: &std::io::Error) -> bool {
    !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory)
}

impl Changed {
    fn open(&self) -> std::io::Result<(File, Sighting)> {
        let Some((folder, name)) = &self.place else { return Err(ErrorKind::IsADirectory.into()) };
        let file = disk::open_at(folder, Path::new(name), Links::Refuse, OFlags::RDONLY)?;
        let sighting = sources::sighting(&self.path, &file.metadata()?);
        Ok((file, sighting))
    }

    /// Adds the sidecar to a change, unless the session already has it in this state.
    pub(crate) fn take(&self, change: &mut Change<'_>) -> Result<Taken, SyncError> {
        let left_out = |seen, why| Ok(Taken::LeftOut { seen, why });
        if let (Some(lines), Some(seen)) = (&self.lines, self.sighting.clone()) {
            let place = change.before.archive.place_of(&self.path);
            return Ok(Taken::Held {
                seen,
                is_new: whole_files::sidecar(change, place, lines.clone()),
            });
        }
        let (file, seen) = match self.open() {
            Ok(opened) => opened,
            Err(error) if matches!(Refusal::of(&error), Some(Refusal::Link)) => {
                return left_out(None, "it is a link next to the session and is not followed");
            }
            Err(_) if self.place.is_none() => {
                return left_out(
                    None,
                    "it is a folder next to the session that is a link or cannot be listed",
                );
            }
            Err(_) => return left_out(None, "it is next to the session and cannot be read"),
        };
        if seen.length > LONGEST {
            return left_out(Some(seen), "it is next to the session and is longer than 64 MiB");
        }
        let place = change.before.archive.place_of(&self.path);
        let (count, size) = whole_files::sidecars_besides(change, &place);
        if count >= MOST {
            return left_out(Some(seen), "the store already has 1,000 files next to the session");
        }
        if size + seen.length > ALL {
            return left_out(
                Some(seen),
                "the store already has 256 MiB of files next to the session",
            );
        }
        match disk::whole(file, LONGEST) {
            Ok(bytes) => {
                Ok(Taken::Held { seen, is_new: whole_files::sidecar(change, place, bytes) })
            }
            Err(_) => left_out(None, "it is next to the session and cannot be read"),
        }
    }
}

/// A stored sidecar and the path where it belongs.
pub(crate) struct Kept {
    /// The path where it belongs.
    pub(crate) path: PathBuf,
    /// The operation that stored it, and its index among that operation's files.
    pub(crate) at: (OperationNumber, u64),
    /// The stored state.
    pub(crate) sidecar: Sidecar,
    /// Which sessions it belongs to.
    share: Share,
}

impl Kept {
    /// Returns its bytes. For a shared sidecar, combines those of all sessions that have it: the newest copy of a project's file,
    /// all lines of a list.
    pub(crate) fn bytes(&self, session: &At<'_>) -> Result<Vec<u8>, SyncError> {
        if self.share == Share::Session {
            return Ok(session.store.kept(session.key, self.at.0, self.at.1)?);
        }
        let mut copies = Vec::new();
        for (key, name, file) in session.store.files(&session.archive.place_of(&self.path))? {
            let state = session.store.state(key)?;
            let Some((operation, n, _)) = state.sidecars.get(&file) else { continue };
            let is_left_out = session.archive.exclusion(&name, session.format, None).is_some();
            if is_left_out && key != session.key {
                continue;
            }
            let at = session.store.operations(key, operation.alone())?.pop().map(|by| by.at);
            copies.push((at, session.store.kept(key, *operation, *n)?));
        }
        if self.share == Share::Project {
            return Ok(copies.into_iter().max().map(|(_, bytes)| bytes).unwrap_or_default());
        }
        let lines = copies.iter().flat_map(|(_, bytes)| bytes.split_inclusive(|&b| b == b'\n'));
        let mut lines: Vec<&[u8]> = lines.collect();
        lines.sort_by_cached_key(|line| {
            Raw::object(line.trim_ascii())
                .and_then(|line| session.format.owner(line))
                .map(|it| it.1)
        });
        Ok(lines.concat())
    }
}

/// Returns a session's sidecars that belong where its agent keeps them on this computer.
pub(crate) fn kept(session: &At<'_>) -> Vec<Kept> {
    let format = session.format;
    let own = FileNumber::FIRST.onwards().zip(&session.state.files);
    let own = own.filter(|(n, _)| !session.state.sidecars.contains_key(n));
    let own = own.filter_map(|(_, place)| session.archive.path_of(place));
    let annexes: Vec<Annex> =
        own.flat_map(|file| format.annexes(&file, &session.name.id)).collect();
    // That a session has a file is only a fact in its store. It does not permit writing there.
    let share_of = |path: &Path| {
        let (folder, name) = (path.parent()?, path.file_name()?);
        let mut annexes = annexes.iter().filter(|annex| annex.from.join(&annex.folder) == folder);
        let annex =
            annexes.find(|annex| annex.name.as_deref().is_none_or(|meant| name == meant))?;
        let may_be_written = match annex.share {
            Share::Lines => session.archive.writable.is_agents(path),
            _ => session.archive.writable.has(format.name(), folder),
        };
        // The agent's copy of something that sessions share may be newer.
        let is_wanted = annex.share == Share::Session || is_gone(path);
        Some(annex.share).filter(|_| may_be_written && is_wanted)
    };
    let kept = |(file, (operation, at, sidecar)): (&FileNumber, &(_, _, Sidecar))| {
        let path = session.archive.path_of(session.state.file(*file)?)?;
        let share = share_of(&path)?;
        let covered = session.state.covered_file(*operation, *at);
        let (digest, size) =
            covered.map_or((sidecar.digest, sidecar.size), |file| (file.digest, file.size));
        let sidecar = Sidecar { digest, size, ..sidecar.clone() };
        Some(Kept { path, at: (*operation, *at), sidecar, share })
    };
    session.state.sidecars.iter().filter_map(kept).collect()
}

/// Returns the paths of such sidecars that do not exist any more.
pub(crate) fn lost(session: &At<'_>) -> Vec<PathBuf> {
    let kept = kept(session).into_iter().map(|kept| kept.path);
    kept.filter(|path| is_gone(path)).collect()
}

/// Returns true if a file has the bytes of a sidecar.
pub(crate) fn is_same(path: &Path, sidecar: &Sidecar) -> bool {
    let bytes = disk::open(path, Links::Refuse).and_then(|file| disk::whole(file, LONGEST));
    bytes.is_ok_and(|bytes| Digest::of_bytes(&bytes) == sidecar.digest)
}
