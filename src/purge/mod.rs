//! Purging: after a redaction, removes the redacted bytes from everywhere else.
//!
//! ```text
//! database    rewritten, so that no row, page or log contains them
//! index       of words, deleted
//! files       of the sessions: redacted lines are replaced, a redacted unfinished line is overwritten with blanks
//! remainders  successors that were never moved into place, deleted
//! backups     damaged stores that a repair set aside, deleted
//! ```
//!
//! A mark in the store's folder says that a purge is due. The next change finishes an interrupted purge: the tombstones say
//! what still has to be covered. A file that a process has open is left alone, because what the process writes would be lost with
//! the old file. So is a file that cannot be written now. A second mark lists the sessions with such files, and each change tries
//! them again.
//!
//! Invariant: a covered file keeps its generation and replaces the old file by one atomic rename; nothing is set aside.
//! Invariant: a change never fails because a file of another session cannot be covered.

pub(crate) mod apart;
pub(crate) mod remainders;

pub use apart::check_apart;
pub(crate) use remainders::remainders;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    archive::{Archive, At, SyncError, old_store},
    disk::{self, Disk, Kernel, Links, Refusal},
    files::{
        deletion::{self, is_gone},
        file,
        live_file::{length_of, live_file},
        siblings::Unplaced,
        sources,
    },
    live::{self, Seen, WritableFile},
    model::{
        Digest, EntryNumber, FileNumber, LineId, OperationNumber, REDACTING, SessionName, State,
        Timestamp, UNCOVERED,
    },
    purge::remainders::{Own, own_files},
    report::Notice,
    session::{Damages, Session, Stored},
    store::{SessionKey, StoreError, WordIndex},
    wire::jsonl::Reader,
};

/// How often to retry covering a file that another program keeps writing to.
const TRIED: usize = 3;

/// The result of purging.
#[derive(Clone, Debug, Default)]
pub(crate) struct Purged {
    /// Files where redacted lines were replaced.
    pub(crate) covered: Vec<PathBuf>,
    /// Files that still contain redacted bytes, each with its session.
    pub(crate) left: Vec<(SessionKey, PathBuf)>,
    /// Deleted folders of damaged stores, and deleted successors that were never moved into place.
    pub(crate) deleted: Vec<PathBuf>,
    /// Other files in agents' folders that contain redacted bytes or may contain them.
    pub(crate) beside: Vec<PathBuf>,
    /// Paths in agents' folders that could not be searched.
    pub(crate) unseen: BTreeSet<PathBuf>,
    /// True if the store's log still contains redacted bytes because another program reads an older state of the store.
    pub(crate) is_in_log: bool,
    /// Notices, each with its session.
    pub(crate) notices: Vec<(SessionName, Notice)>,
}

impl Archive {
    /// Takes the archive's lock, which keeps other programs from changing it until the lock is dropped. First finishes an
    /// interrupted redaction.
    pub(crate) fn lock(&self) -> Result<Option<Arc<File>>, SyncError> {
        if let Some(held) = self.held_lock() {
            return Ok(Some(held));
        }
        let lock = self.lock_alone()?;
        if let Some(root) = self.root().filter(|_| lock.is_some()) {
            let done = if is_in_log(root) {
                // A reader of an older state keeps the bytes in the log, but it must not block changes.
                finish(self, Duration::ZERO, &mut Purged::default())
            } else if has_uncovered(root) {
                try_again(self, root)
            } else {
                Ok(())
            };
            done.map_err(|error| SyncError::Unredacted(Box::new(error)))?;
        }
        Ok(lock)
    }
}

/// Returns true if this is the name of a mark in a store's folder.
pub(crate) fn is_mark(name: &OsStr) -> bool {
    name == REDACTING || name == UNCOVERED
}

/// Returns true if the store's database still has to be rewritten without redacted bytes.
pub(crate) fn is_in_log(root: &Path) -> bool {
    !is_gone(&root.join(REDACTING))
}

/// Returns true if files of this store's sessions still have to be covered.
pub(crate) fn has_uncovered(root: &Path) -> bool {
    !is_gone(&root.join(UNCOVERED))
}

/// Writes the mark that says that a redaction is in progress.
pub(crate) fn mark(archive: &Archive) -> Result<(), SyncError> {
    let Some(root) = archive.root() else { return Ok(()) };
    let path = root.join(REDACTING);
    let made = disk::open_or_make(&path).and_then(|_| disk::sync_folder(root));
    made.map_err(SyncError::at(&path))
}

/// Removes redacted bytes from the database, the word index and the sessions' files. If another program reads an older state for
/// longer than `patience`, they stay in the database's log until the next change.
pub(crate) fn finish(
    archive: &Archive,
    patience: Duration,
    purged: &mut Purged,
) -> Result<(), SyncError> {
    purged.is_in_log = match archive.store().purge(patience) {
        Err(StoreError::Busy) => true,
        done => done.map(|()| false)?,
    };
    let Some(root) = archive.root() else { return Ok(()) };
    WordIndex::remove(root)?;
    cover_files(archive, None, purged)?;
    for path in old_store::set_aside(root).map_err(SyncError::at(root))? {
        old_store::clear(&path).map_err(SyncError::at(&path))?;
        purged.deleted.push(path);
    }
    if purged.is_in_log { Ok(()) } else { unmark(root, REDACTING) }
}

/// Covers the files that could not be covered before, where possible now.
fn try_again(archive: &Archive, root: &Path) -> Result<(), SyncError> {
    let path = root.join(UNCOVERED);
    let text = disk::read(&path, disk::TEXT).map_err(SyncError::at(&path))?;
    // If the list cannot be read, any session may have been on it: try all.
    cover_files(archive, left_in(&text).as_ref(), &mut Purged::default())
}

/// Covers the files of the `named` sessions, or of all sessions, and stores which sessions have files that could not be covered.
pub(crate) fn cover_files(
    archive: &Archive,
    named: Option<&BTreeSet<SessionKey>>,
    purged: &mut Purged,
) -> Result<(), SyncError> {
    let Some(root) = archive.root() else { return Ok(()) };
    let mut left = BTreeSet::new();
    let mut unplaced = Unplaced::default();
    for session in archive.every()? {
        let is_meant = named.is_none_or(|named| named.contains(&session.key));
        if is_meant && !cover(archive, &session, &mut unplaced, purged)? {
            left.insert(session.key);
        }
    }
    if Some(&left) == named { Ok(()) } else { keep_left(root, &left) }
}

/// Returns the listed sessions, if the list can be read.
fn left_in(text: &[u8]) -> Option<BTreeSet<SessionKey>> {
    let keys = str::from_utf8(text).ok()?.lines().map(|key| key.parse().ok().map(SessionKey));
    keys.collect()
}

/// Stores which sessions have files that still have to be covered.
fn keep_left(root: &Path, left: &BTreeSet<SessionKey>) -> Result<(), SyncError> {
    if left.is_empty() {
        return unmark(root, UNCOVERED);
    }
    let fresh = format!("{UNCOVERED}.new");
    unmark(root, &fresh)?;
    let (path, fresh) = (root.join(UNCOVERED), root.join(fresh));
    let keys: Vec<String> = left.iter().map(|key| key.0.to_string()).collect();
    let write = || {
        let file = disk::make(&fresh)?;
        Kernel.write(&file, keys.join("\n").as_bytes())?;
        Kernel.sync(&file)?;
        fs::rename(&fresh, &path)?;
        disk::sync_folder(root)
    };
    write().map_err(SyncError::at(&path))
}

/// Removes a file from the store's folder.
fn unmark(root: &Path, name: &str) -> Result<(), SyncError> {
    let path = root.join(name);
    let removed = fs::remove_file(&path).and_then(|()| disk::sync_folder(root));
    disk::found(removed).map(drop).map_err(SyncError::at(&path))
}

/// Covers the files of a session that has redactions. Returns true if no file has to be retried. A file or session that cannot be
/// read or written does not affect others.
fn cover(
    archive: &Archive,
    session: &Session,
    unplaced: &mut Unplaced,
    purged: &mut Purged,
) -> Result<bool, SyncError> {
    let mut live = None;
    let covered = archive.at(session).map_err(SyncError::from).and_then(|session| {
        live = live_file(archive, &session.state);
        if session.state.is_covered() { files(&session, unplaced, purged) } else { Ok(true) }
    });
    match covered {
        Err(error) if error.is_damage() => {
            purged.left.extend(live.map(|live| (session.key, live.path)));
            Ok(false)
        }
        covered => covered,
    }
}

/// Covers the files of a session, where they may be written and no process has them open, and deletes successors that were never
/// moved into place.
fn files(
    session: &At<'_>,
    unplaced: &mut Unplaced,
    purged: &mut Purged,
) -> Result<bool, SyncError> {
    let Purged { covered, left, deleted, .. } = purged;
    let mut is_done = true;
    for (path, target) in remainders::of_session(session, unplaced)? {
        if target.is_some_and(|target| target.sweep().is_ok()) {
            deleted.push(path);
        } else {
            left.push((session.key, path));
            is_done = false;
        }
    }
    let (lines, whole) = (covered_lines(session)?, whole_files(&session.state));
    for own in own_files(session) {
        let (path, n) = (own.path.clone(), own.n);
        let is_read_only = n.is_some() && n != session.state.live;
        let kept = n.and_then(|n| whole.get(&n));
        if kept.is_none() && n.is_some_and(|n| session.state.sidecars.contains_key(&n)) {
            continue;
        }
        // Something else in the place of a file that undertext writes may point to that file.
        let is_denied = !is_read_only && own.target.is_err() && !is_gone(&path);
        let done = if is_denied {
            own.target.map(|_| Covered::Nothing)
        } else {
            cover_file(session, own, kept, &lines)
        };
        match done {
            Ok(Covered::Nothing) => {}
            Ok(Covered::Done) => covered.push(path),
            // This file can never be written, so there is no point in retrying.
            Err(SyncError::Denied { .. }) if is_read_only => left.push((session.key, path)),
            Ok(Covered::Held)
            | Err(SyncError::Io { .. } | SyncError::Read(_) | SyncError::Denied { .. }) => {
                left.push((session.key, path));
                is_done = false;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(is_done)
}

/// Covers a file if it contains anything redacted.
fn cover_file(
    session: &At<'_>,
    own: Own,
    kept: Option<&CameAndKept>,
    lines: &CoveredLines,
) -> Result<Covered, SyncError> {
    let has_it = match kept {
        Some((came, _)) => digest_of(&own.path)? == Some(*came),
        None => holds(&own.path, &|found| lines.has(found) || lines.lost.contains(&found.id))?,
    };
    if !has_it {
        return Ok(Covered::Nothing);
    }
    let (target, state) = (own.target?, &session.state);
    if let Some((_, at)) = kept {
        if is_held(&target, session) {
            return Ok(Covered::Held);
        }
        put_kept(session, &target, *at)?;
        file::sight(session.archive, &target)?;
        return Ok(Covered::Done);
    }
    let at = if own.is_attached { session.archive.now() } else { state.at() };
    let done = cover_lines(&target, session, lines, at)?;
    if done == Covered::Done && own.is_attached && is_known(state, own.n, &target)? {
        file::sight(session.archive, &target)?;
    }
    let lost = &lines.lost;
    let is_left = !lost.is_empty() && holds(target.path(), &|found| lost.contains(&found.id))?;
    Ok(if is_left { Covered::Held } else { done })
}

/// Returns true if a process has the file open, or may have: what it writes would be lost with the old file.
fn is_held(target: &WritableFile, session: &Session) -> bool {
    let holders = live::holders(target.path(), None, session.format.traits());
    holders.map_or(true, |holders| !holders.is_empty())
}

/// Returns true if the store has all of a file.
fn is_known(
    state: &State,
    file: Option<FileNumber>,
    target: &WritableFile,
) -> Result<bool, SyncError> {
    let length = target.look().map_err(SyncError::at(target.path()))?.map(|seen| seen.length);
    let newest = deletion::newest(state).find(|(n, _)| Some(*n) == file);
    Ok(newest.is_some_and(|(_, held)| length == Some(length_of(state.ends.get(&held)))))
}

/// The digest of a file's original bytes, and where the store has the bytes that replace them.
type CameAndKept = (Digest, (OperationNumber, u64));

/// Returns the redacted files among those of a session that are stored whole.
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

/// Returns the digest of a file, unless it is missing or longer than any file that is stored whole.
fn digest_of(path: &Path) -> Result<Option<Digest>, SyncError> {
    let Some(file) = own_file(path)? else { return Ok(None) };
    match disk::whole(file, sources::CONTAINER) {
        Err(error) if Refusal::of(&error).is_some() => Ok(None),
        bytes => Ok(Some(Digest::of_bytes(&bytes.map_err(SyncError::at(path))?))),
    }
}

/// Replaces a file with its stored bytes.
fn put_kept(
    session: &At<'_>,
    target: &WritableFile,
    kept: (OperationNumber, u64),
) -> Result<(), SyncError> {
    let io = SyncError::at(target.path());
    let mut fresh = target.fresh().map_err(io)?;
    fresh.write(&session.store.kept(session.key, kept.0, kept.1)?).map_err(io)?;
    fresh.finish(session.archive.now()).map_err(io)?;
    target.install().map_err(io)
}

/// The redacted lines of a session.
struct CoveredLines {
    /// Each with its replacement.
    lines: BTreeMap<LineId, Vec<u8>>,
    /// Lines whose replacement is lost.
    lost: BTreeSet<LineId>,
    /// Lines that were unfinished when they were read.
    unfinished: BTreeSet<LineId>,
}

impl CoveredLines {
    /// Returns true if the replacement of a stretch is known.
    fn has(&self, Stretch { id, is_unfinished, .. }: &Stretch) -> bool {
        if *is_unfinished { self.unfinished.contains(id) } else { self.lines.contains_key(id) }
    }
}

/// Returns the original lines of redacted entries, and the lines that replaced them for a while.
fn covered_lines(session: &Stored<'_>) -> Result<CoveredLines, SyncError> {
    let mut before: BTreeMap<EntryNumber, BTreeSet<LineId>> = BTreeMap::new();
    let mut lost = BTreeSet::new();
    for tombstone in session.state.tombstones.iter() {
        if let (Some(came), Some(covered)) = (tombstone.line, tombstone.covered) {
            before.entry(tombstone.entry).or_default().extend([came, covered]);
            lost.insert(came);
        }
    }
    let entries: Vec<EntryNumber> = before.keys().copied().collect();
    let mut lines = BTreeMap::new();
    Damages::gathered().lines(session.store, session.key, &entries, &mut |entry, line| {
        let now = LineId::of(&line);
        let before = before.get(&entry).into_iter().flatten().filter(|before| **before != now);
        lines.extend(before.map(|before| (*before, line.clone())));
    })?;
    lost.retain(|came| !lines.contains_key(came));
    let unfinished = session.state.covered_runs.iter().flat_map(|runs| runs.lines.iter().copied());
    Ok(CoveredLines { lines, lost, unfinished: unfinished.collect() })
}

/// The result of covering a file.
#[derive(PartialEq, Eq)]
enum Covered {
    /// The file has nothing to cover.
    Nothing,
    /// The file is covered.
    Done,
    /// Lines are left: a process has the file open or keeps writing to it, or their replacement is lost.
    Held,
}

/// Replaces the redacted lines in a file, and overwrites redacted unfinished lines with blanks.
fn cover_lines(
    target: &WritableFile,
    session: &Session,
    covered: &CoveredLines,
    at: Timestamp,
) -> Result<Covered, SyncError> {
    let io = SyncError::at(target.path());
    for _ in 0..TRIED {
        let Some(open) = disk::found(target.open()).map_err(io)? else {
            return Ok(Covered::Nothing);
        };
        let found = stretches(&open, &|found| covered.has(found))?;
        if found.is_empty() {
            return Ok(Covered::Nothing);
        }
        if is_held(target, session) {
            return Ok(Covered::Held);
        }
        let seen = Seen::from(&open.metadata().map_err(io)?);
        let mut fresh = target.fresh().map_err(io)?;
        let mut from = 0;
        for Stretch { offset, length, id, is_unfinished } in found {
            let line = covered.lines.get(&id).filter(|_| !is_unfinished).cloned();
            let line = line.unwrap_or_else(|| vec![b' '; length]);
            fresh.copy(from, offset - from).and_then(|()| fresh.write(&line)).map_err(io)?;
            from = offset + line.len() as u64;
        }
        fresh.copy(from, seen.length.saturating_sub(from)).map_err(io)?;
        fresh.finish(at).map_err(io)?;
        // A process that opened the file since then would write to a file without a name.
        let is_held = is_held(target, session);
        if is_held || target.look().map_err(io)? != Some(seen) {
            target.sweep().map_err(io)?;
            if is_held {
                break;
            }
            continue;
        }
        target.install().map_err(io)?;
        take_over(open, seen.length, target).map_err(io)?;
        return Ok(Covered::Done);
    }
    Ok(Covered::Held)
}

/// Appends what was written to the old file at the last moment to the file that replaced it.
fn take_over(mut old: File, from: u64, target: &WritableFile) -> io::Result<()> {
    let rest = old.metadata()?.len().saturating_sub(from);
    if rest == 0 {
        return Ok(());
    }
    old.seek(SeekFrom::Start(from))?;
    let rest = disk::whole(old.take(rest), rest)?;
    let end = target.look()?.map_or(0, |seen| seen.length) + rest.len() as u64;
    target.append_synced(&rest, end).map(drop)
}

/// A part of a file: a line, or the unfinished line at its end.
struct Stretch {
    offset: u64,
    length: usize,
    id: LineId,
    is_unfinished: bool,
}

/// Returns the lines of a file that `is_asked` accepts, in order, and the unfinished line at the end if it does.
fn stretches(
    file: impl Read,
    is_asked: &dyn Fn(&Stretch) -> bool,
) -> Result<Vec<Stretch>, SyncError> {
    let mut reader = Reader::new(file);
    let mut found = Vec::new();
    let stretch = |offset, bytes: &[u8], is_unfinished| Stretch {
        offset,
        length: bytes.len(),
        id: LineId::of(bytes),
        is_unfinished,
    };
    while let Some(located) = reader.next_line()? {
        let line = stretch(located.offset, located.line.bytes, false);
        found.extend(Some(line).filter(is_asked));
    }
    let tail = reader.into_tail();
    let unfinished = tail.bytes.trim_ascii();
    let blank = tail.bytes.len() - tail.bytes.trim_ascii_start().len();
    let unfinished = stretch(tail.offset + blank as u64, unfinished, true);
    found.extend(Some(unfinished).filter(is_asked));
    Ok(found)
}

/// Returns true if a file contains a line that `is_asked` accepts.
fn holds(path: &Path, is_asked: &dyn Fn(&Stretch) -> bool) -> Result<bool, SyncError> {
    let found = own_file(path)?.map(|file| stretches(file, is_asked)).transpose()?;
    Ok(found.is_some_and(|found| !found.is_empty()))
}

/// Opens a file of a session for reading. Returns nothing if it does not exist or is not a plain file any more. A file that
/// cannot be opened is an error, because it may contain anything.
fn own_file(path: &Path) -> Result<Option<File>, SyncError> {
    match disk::open(path, Links::Refuse) {
        Err(error) if disk::is_absent(&error) || Refusal::of(&error).is_some() => Ok(None),
        opened => opened.map(Some).map_err(SyncError::at(path)),
    }
}
