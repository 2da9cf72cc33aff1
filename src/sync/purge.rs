//! Purging: what was taken out of lines goes from wherever else it lies.
//!
//! ```text
//! database    written in order, so that no row, page or log has it
//! index       of words, deleted
//! files       of the sessions, covered as their lines are
//! backups     damaged stores that were set aside when they were mended, deleted
//! ```
//!
//! A mark in the store's folder says that this is to be done. What is cut short is done by the next change: tombstones tell what
//! is still to be covered.
//!
//! Invariant: a covered file holds the same generation, and is put in its place in one step; nothing of it is set aside.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use crate::{
    disk::{self, Links},
    live::{self, WritableFile},
    model::{Digest, FileNumber, LineId, OperationNumber, State, Timestamp},
    report::Rekeyed,
    session::Session,
    store::{Store, WordIndex, whole_lines},
    sync::{Archive, Notice, SyncError, file, live_file::live_file, mend},
    wire::jsonl::Reader,
};

/// The file in the store's folder that says that bytes are being taken out.
const MARK: &str = "redacting";

/// What purging came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Purged {
    /// Files in which the same lines were covered.
    pub(crate) covered: Vec<PathBuf>,
    /// Files that still hold what was taken out.
    pub(crate) left: Vec<PathBuf>,
    /// Folders with damaged stores, which are deleted.
    pub(crate) deleted: Vec<PathBuf>,
    /// Sessions that have other ids now.
    pub(crate) rekeyed: Vec<Rekeyed>,
    /// The notices on the way.
    pub(crate) notices: Vec<Notice>,
}

impl Archive {
    /// Waits until no other program changes this archive, and keeps the others out while the answer lives. A redaction that was
    /// cut short is carried out first.
    pub(crate) fn lock(&self) -> Result<Option<File>, SyncError> {
        let lock = self.lock_alone()?;
        if let Some(root) = self.root().filter(|_| lock.is_some())
            && root.join(MARK).exists()
        {
            finish(self)?;
        }
        Ok(lock)
    }
}

/// Says in the store's folder that bytes are being taken out.
pub(super) fn mark(archive: &Archive) -> Result<(), SyncError> {
    let Some(root) = archive.root() else { return Ok(()) };
    let path = root.join(MARK);
    let made = disk::open_or_make(&path).and_then(|_| disk::sync_folder(root));
    made.map_err(|source| SyncError::Io { path, source })
}

/// Leaves nothing of what was taken out: not in the database, not in the index of words, not in the sessions' files.
pub(super) fn finish(archive: &Archive) -> Result<Purged, SyncError> {
    archive.store().purge()?;
    let mut purged = Purged::default();
    let Some(root) = archive.root() else { return Ok(purged) };
    WordIndex::remove(root)?;
    for session in archive.every()? {
        let state = archive.store().state(session.key)?;
        if state.is_covered() {
            files(archive, &session, &state, &mut purged)?;
        }
    }
    for path in mend::set_aside(root) {
        fs::remove_dir_all(&path).map_err(|source| SyncError::Io { path: path.clone(), source })?;
        purged.deleted.push(path);
    }
    let unmarked = fs::remove_file(root.join(MARK)).and_then(|()| disk::sync_folder(root));
    match unmarked {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(SyncError::Io { path: root.join(MARK), source })
        }
        _ => Ok(purged),
    }
}

/// Covers the live file of a session and those that were set aside, and its other files where they may be written and no
/// process has them.
fn files(
    archive: &Archive,
    session: &Session,
    state: &State,
    Purged { covered, left, .. }: &mut Purged,
) -> Result<(), SyncError> {
    let lines = covered_lines(archive.store(), session, state)?;
    let live = live_file(archive, state);
    let mut own: Vec<PathBuf> = Vec::new();
    if let Some(live) = &live {
        let target = archive.writable_file(&session.name, live)?;
        let asides = state.rotations.iter().map(|(_, rotation)| file::aside_of(&target, rotation));
        for target in std::iter::once(Ok(target.clone())).chain(asides) {
            let target = target?;
            let at = if live.attached { archive.now() } else { state.at() };
            if cover_file(&target, &lines, at)? {
                if target.path() == live.path && live.attached {
                    file::saw(archive, &target)?;
                }
                covered.push(target.path().to_owned());
            }
            own.push(target.path().to_owned());
        }
    }
    let whole = whole_files(state);
    for (n, place) in FileNumber::FIRST.onwards().zip(&state.files) {
        let Some(path) = archive.path_of(place).filter(|path| !own.contains(path)) else {
            continue;
        };
        let kept = whole.get(&n);
        let has_it = match kept {
            Some((came, _)) => digest_of(&path) == Some(*came),
            None if state.sidecars.contains_key(&n) => false,
            None => holds(&path, &lines)?,
        };
        if !has_it {
            continue;
        }
        let target = archive.writable.agents_file(&archive.disk, &session.name.format, &path);
        let is_free = live::holders(&path, None, session.format.traits()).is_empty();
        let Some(target) = target.ok().filter(|_| is_free) else {
            left.push(path);
            continue;
        };
        match kept {
            Some((_, at)) => put_kept(archive, session, &target, *at)?,
            None => drop(cover_file(&target, &lines, archive.now())?),
        }
        file::saw(archive, &target)?;
        covered.push(path);
    }
    Ok(())
}

/// A digest of a file's bytes as they came, and where the operation keeps those that take their place.
type CameAndKept = (Digest, (OperationNumber, u64));

/// Returns the files of a session that are kept whole and of which bytes were taken out.
fn whole_files(state: &State) -> BTreeMap<FileNumber, CameAndKept> {
    let containers = state.containers.iter().filter_map(|(operation, at, held)| {
        Some((state.file_of(held.generation)?, held.digest, (*operation, *at)))
    });
    let sidecars = state.sidecars.iter();
    let sidecars = sidecars.map(|(n, (operation, at, held))| (*n, held.digest, (*operation, *at)));
    let covered = containers.chain(sidecars);
    let covered = covered.filter(|(_, _, (by, at))| state.covered_file(*by, *at).is_some());
    covered.map(|(n, digest, at)| (n, (digest, at))).collect()
}

/// Returns the digest of a file, if there is one.
fn digest_of(path: &Path) -> Option<Digest> {
    let mut bytes = Vec::new();
    disk::open(path, Links::Refuse).ok()?.read_to_end(&mut bytes).ok()?;
    Some(Digest::of_bytes(&bytes))
}

/// Puts what is kept of a file in its place.
fn put_kept(
    archive: &Archive,
    session: &Session,
    target: &WritableFile,
    (operation, at): (OperationNumber, u64),
) -> Result<(), SyncError> {
    let io = file::failed(target);
    let mut fresh = target.fresh().map_err(&io)?;
    fresh.write(&archive.store().kept(session.key, operation, at)?).map_err(&io)?;
    fresh.finish(archive.now()).map_err(&io)?;
    target.install().map_err(&io)
}

/// Returns the lines that came and were covered, and those that stood in their places for a while, each with what stands there.
fn covered_lines(
    store: &dyn Store,
    session: &Session,
    state: &State,
) -> Result<BTreeMap<LineId, Vec<u8>>, SyncError> {
    let mut lines = BTreeMap::new();
    for tombstone in &state.tombstones {
        if let (Some(came), Some(covered)) = (tombstone.line, tombstone.covered) {
            whole_lines(store, session.key, &[tombstone.entry], &mut |_, line| {
                let is_now = LineId::of(&line) == covered;
                let before = [came].into_iter().chain((!is_now).then_some(covered));
                lines.extend(before.map(|before| (before, line.clone())));
            })?;
        }
    }
    Ok(lines)
}

/// Puts covered lines in the place of those that came, in a file that may not be there; returns whether it had any.
fn cover_file(
    target: &WritableFile,
    lines: &BTreeMap<LineId, Vec<u8>>,
    at: Timestamp,
) -> Result<bool, SyncError> {
    let io = file::failed(target);
    let open = match target.open() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        open => open.map_err(&io)?,
    };
    let found = stretches(open, lines)?;
    if found.is_empty() {
        return Ok(false);
    }
    let length = target.look().map_err(&io)?.map_or(0, |seen| seen.length);
    let mut fresh = target.fresh().map_err(&io)?;
    let mut from = 0;
    for (offset, id) in found {
        let line = lines.get(&id).map(Vec::as_slice).unwrap_or_default();
        fresh.copy(from, offset - from).and_then(|()| fresh.write(line)).map_err(&io)?;
        from = offset + line.len() as u64;
    }
    fresh.copy(from, length.saturating_sub(from)).map_err(&io)?;
    fresh.finish(at).map_err(&io)?;
    target.install().map_err(&io)?;
    Ok(true)
}

/// Returns where lines stand in a file, in order.
fn stretches(
    file: impl Read,
    lines: &BTreeMap<LineId, Vec<u8>>,
) -> Result<Vec<(u64, LineId)>, SyncError> {
    let mut reader = Reader::new(file);
    let mut found = Vec::new();
    while let Some(located) = reader.next_line()? {
        let id = LineId::of(located.line.bytes);
        if lines.contains_key(&id) {
            found.push((located.offset, id));
        }
    }
    Ok(found)
}

/// Returns whether a file holds any of these lines.
fn holds(path: &Path, lines: &BTreeMap<LineId, Vec<u8>>) -> Result<bool, SyncError> {
    match disk::open(path, Links::Refuse) {
        Ok(file) => Ok(!stretches(file, lines)?.is_empty()),
        // What is not there, or is no file of its own any more, is not one of the session's.
        Err(_) => Ok(false),
    }
}
