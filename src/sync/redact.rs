//! Redacting: bytes are taken out of lines, in every session that has them, and then wherever else they lie.
//!
//! ```text
//! mark      the store's folder says that bytes are being taken out
//! commit    an operation a session, with a tombstone for each line; other bytes stand in the lines' places
//! purge     the database is written in order, the index of words goes, files of the sessions are covered in the same way
//! unmark
//! ```
//!
//! What is cut short behind the commit is carried out by the next change: tombstones tell what is still to be covered.
//!
//! Invariant: a covered file holds the same generation, and is put in its place in one step; nothing of it is set aside.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{ErrorKind, Read},
    path::{Path, PathBuf},
};

use crate::{
    disk::{self, Links},
    live::{self, WritableFile},
    model::{Command, EntryNumber, FileNumber, LineId, State, Timestamp, Tombstone},
    session::{Session, rows},
    store::{Covering, Store, TakenOut, WordIndex, whole_lines},
    sync::{
        Archive, Notice, SyncError, catch_up, change::Change, file, live_file::live_file,
        together::Together,
    },
    wire::jsonl::Reader,
};

/// The file in the store's folder that says that bytes are being taken out.
const MARK: &str = "redacting";

/// The lines of a session that are to be covered.
#[derive(Clone, Debug)]
pub(crate) struct Redaction {
    /// The session.
    pub(crate) session: Session,
    /// Its entries, each with what is to stand in its line's place.
    pub(crate) lines: Vec<(EntryNumber, Vec<u8>)>,
    /// The words of persons that are taken out.
    pub(crate) words: Vec<TakenOut>,
    /// The files that are kept whole and have it: their bytes stay as they are.
    pub(crate) kept: Vec<FileNumber>,
    /// A place in which it stands and cannot be covered, such as a name.
    pub(crate) fixed: Option<String>,
}

/// What redactions came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Purged {
    /// Files in which the same lines were covered.
    pub(crate) covered: Vec<PathBuf>,
    /// Files that still hold what was taken out.
    pub(crate) left: Vec<PathBuf>,
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

/// Covers lines wherever a verb finds them once every session has caught up, under the rule by which they were found.
pub(crate) fn redact<E: From<SyncError>>(
    archive: &Archive,
    command: &dyn Fn(u64) -> Command,
    rule: Option<&str>,
    find: impl FnOnce() -> Result<Vec<Redaction>, E>,
) -> Result<(Vec<Redaction>, Purged), E> {
    let _lock = archive.lock()?;
    let mut purged = Purged::default();
    for session in archive.every()? {
        purged.notices.extend(catch_up::catch_up(archive, &session)?);
    }
    let redactions = find()?;
    // One that cannot be covered is for the caller to tell of.
    let is_nothing = |one: &Redaction| one.lines.is_empty() && one.words.is_empty();
    if redactions.iter().all(is_nothing) || redactions.iter().any(|one| one.fixed.is_some()) {
        return Ok((redactions, purged));
    }
    refuse_if_loaded(archive, &redactions)?;
    mark(archive)?;
    commit(archive, command, rule, &redactions)?;
    (purged.covered, purged.left) = finish(archive)?;
    Ok((redactions, purged))
}

/// Refuses to take bytes out of sessions that an agent has loaded: it would go on with them, and write them again.
fn refuse_if_loaded(archive: &Archive, redactions: &[Redaction]) -> Result<(), SyncError> {
    for Redaction { session, .. } in redactions {
        let change = Change::bare(archive, session)?;
        if let Some(live) = change.before.live_file() {
            change.before.writable_file(&live)?;
            if live.attached {
                change.refuse_if_loaded(&live.path)?;
            }
        }
    }
    Ok(())
}

/// Adds the operations and puts the covered lines in their places, in one transaction.
fn commit(
    archive: &Archive,
    command: &dyn Fn(u64) -> Command,
    rule: Option<&str>,
    redactions: &[Redaction],
) -> Result<(), SyncError> {
    let store = archive.store();
    let mut together = Together::new(archive);
    together.open()?;
    let (mut coverings, mut words) = (Vec::new(), Vec::new());
    for redaction in redactions.iter().filter(|one| !one.lines.is_empty() || !one.words.is_empty())
    {
        let session = &redaction.session;
        let mut tombstones = Vec::new();
        for (entry, line) in &redaction.lines {
            tombstones.push(tombstone(store, session, *entry, line, rule)?);
            coverings.push(Covering { session: session.key, entry: *entry, line: line.clone() });
        }
        words.extend(redaction.words.iter().copied());
        let count = tombstones.len() as u64;
        Change::also(archive, session, &mut together)?.bury(command(count), tombstones)?;
    }
    together.cover(coverings, &words)?;
    for Redaction { session, .. } in redactions {
        let derived = rows::derived(store, session)?;
        together.derive(session.key, &derived)?;
    }
    Ok(together.end()?)
}

/// Returns the tombstone of an entry whose line is covered: it names the line that came, also where that was covered before.
fn tombstone(
    store: &dyn Store,
    session: &Session,
    entry: EntryNumber,
    line: &[u8],
    rule: Option<&str>,
) -> Result<Tombstone, SyncError> {
    let before = store.state(session.key)?.covered(entry).map(|(came, _)| came);
    let came = if let Some(came) = before {
        came
    } else {
        let mut came = LineId::default();
        whole_lines(store, session.key, &[entry], &mut |_, line| came = LineId::of(&line))?;
        came
    };
    let (line, covered, size) = (Some(came), Some(LineId::of(line)), line.len() as u64);
    Ok(Tombstone { entry, size, line, covered, rule: rule.map(str::to_owned) })
}

/// Says in the store's folder that bytes are being taken out.
fn mark(archive: &Archive) -> Result<(), SyncError> {
    let Some(root) = archive.root() else { return Ok(()) };
    let path = root.join(MARK);
    let made = disk::open_or_make(&path).and_then(|_| disk::sync_folder(root));
    made.map_err(|source| SyncError::Io { path, source })
}

/// Leaves nothing of what was taken out: not in the database, not in the index of words, not in the sessions' files. Returns
/// the files that were covered, and those that still hold it.
fn finish(archive: &Archive) -> Result<(Vec<PathBuf>, Vec<PathBuf>), SyncError> {
    archive.store().purge()?;
    let (mut covered, mut left) = (Vec::new(), Vec::new());
    let Some(root) = archive.root() else { return Ok((covered, left)) };
    WordIndex::remove(root)?;
    for session in archive.every()? {
        let state = archive.store().state(session.key)?;
        if state.tombstones.iter().any(|one| one.covered.is_some()) {
            files(archive, &session, &state, &mut covered, &mut left)?;
        }
    }
    let unmarked = fs::remove_file(root.join(MARK)).and_then(|()| disk::sync_folder(root));
    match unmarked {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(SyncError::Io { path: root.join(MARK), source })
        }
        _ => Ok((covered, left)),
    }
}

/// Covers the live file of a session and those that were set aside, and its other files where they may be written and no
/// process has them.
fn files(
    archive: &Archive,
    session: &Session,
    state: &State,
    covered: &mut Vec<PathBuf>,
    left: &mut Vec<PathBuf>,
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
    // A compressed file is kept with its own bytes, which no hash of a line covers.
    let packed = state.containers.iter().filter_map(|(_, _, held)| state.file_of(held.generation));
    let packed: BTreeSet<FileNumber> = packed.collect();
    for (n, place) in FileNumber::FIRST.onwards().zip(&state.files) {
        let Some(path) = archive.path_of(place).filter(|path| !own.contains(path)) else {
            continue;
        };
        if packed.contains(&n) {
            left.push(path);
        } else if holds(&path, &lines)? {
            let target = archive.writable.agents_file(&archive.disk, &session.name.format, &path);
            let is_free = live::holders(&path, None, session.format.traits()).is_empty();
            match target.ok().filter(|_| is_free) {
                Some(target) => {
                    cover_file(&target, &lines, archive.now())?;
                    file::saw(archive, &target)?;
                    covered.push(path);
                }
                None => left.push(path),
            }
        }
    }
    Ok(())
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
