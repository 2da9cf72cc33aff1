//! Redacting: bytes are taken out of lines, and of files that are kept whole, in every session that has them, and then wherever
//! else they lie.
//!
//! ```text
//! mark      the store's folder says that bytes are being taken out
//! commit    an operation a session, with a tombstone for each line; other bytes stand in the lines' places
//! purge     they go from wherever else they lie: see `sync/purge.rs`
//! unmark
//! ```
//!
//! Invariant: what is cut short before the commit has changed nothing, and what is cut short behind it is carried out by the next
//! change.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    cover::Secrets,
    model::{
        Command, CoveredFile, CoveredRuns, Digest, EntryNumber, FileNumber, LineId, Named,
        OperationNumber, Run, SessionName, Tombstone,
    },
    session::{Session, rows},
    store::{Covering, Coverings, FileCovering, RunsCovering, Store, TakenOut, whole_lines},
    sync::{
        Archive, Notice, SyncError, catch_up,
        change::{Buried, Change},
        loaded,
        neighbours::{self, Neighbours},
        purge::{Purged, cover_files, finish, is_in_log, mark},
        together::Together,
    },
};

/// The lines of a session that are to be covered.
#[derive(Clone, Debug)]
pub(crate) struct Redaction {
    /// The session.
    pub(crate) session: Session,
    /// Its entries, each with what is to stand in its line's place.
    pub(crate) lines: Vec<(EntryNumber, Vec<u8>)>,
    /// The rules by which something was found in these, where rules found it.
    pub(crate) rules: BTreeMap<EntryNumber, String>,
    /// The words of persons that are taken out.
    pub(crate) words: Vec<TakenOut>,
    /// The files that are kept whole and have it, each with what is to stand in its place.
    pub(crate) kept: Vec<Kept>,
    /// The operations that read unfinished lines which are taken out.
    pub(crate) unfinished: Vec<Unfinished>,
    /// The places in which it is and cannot be covered, such as a name, in words.
    pub(crate) fixed: Vec<String>,
}

/// The runs of an operation without unfinished lines that are taken out.
#[derive(Clone, Debug)]
pub(crate) struct Unfinished {
    /// The operation.
    pub(crate) operation: OperationNumber,
    /// All its runs, as they are to stand there.
    pub(crate) runs: Vec<Run>,
    /// The unfinished lines that are taken out.
    pub(crate) lines: Vec<LineId>,
}

/// A file that an operation keeps whole, and what is to stand in its place.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The file.
    pub(crate) file: Option<FileNumber>,
    /// The operation, and the file's place among those that it keeps.
    pub(crate) at: (OperationNumber, u64),
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
}

impl Redaction {
    /// Returns whether nothing of the session has it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.lines.is_empty()
            && self.words.is_empty()
            && self.kept.is_empty()
            && self.unfinished.is_empty()
    }
}

/// What is to be taken out.
#[derive(Default)]
pub(crate) struct Found {
    /// In each session that has it.
    pub(crate) redactions: Vec<Redaction>,
    /// What it is, as far as it is known by its characters.
    pub(crate) secrets: Secrets,
    /// Whether whole lines are redacted as well.
    pub(crate) has_whole: bool,
}

/// Covers lines wherever a verb finds them once every session has caught up, under the rule by which they were found.
pub(crate) fn redact<E: From<SyncError>>(
    archive: &Archive,
    folders: &[PathBuf],
    command: &dyn Fn(u64) -> Command,
    rule: Option<&str>,
    find: impl FnOnce() -> Result<Found, E>,
) -> Result<(Vec<Redaction>, Purged), E> {
    let _lock = archive.lock()?;
    let mut notices = catch_up::catch_up_all(archive)?;
    let Found { redactions, secrets, has_whole } = find()?;
    let changed = redactions.iter().filter(|one| !one.is_nothing());
    let changed: Vec<Session> = changed.map(|one| one.session.clone()).collect();
    let is_changed = |name: &SessionName| changed.iter().any(|session| session.name == *name);
    notices.retain(|(name, notice)| is_changed(name) || matches!(notice, Notice::Unsought { .. }));
    if redactions.iter().all(Redaction::is_nothing) {
        return Ok((redactions, Purged { notices, ..Purged::default() }));
    }
    refuse_if_loaded(archive, &redactions)?;
    mark(archive)?;
    commit(archive, (command, rule), &redactions, &secrets)?;
    let mut purged = Purged { notices, ..finish(archive, archive.waiting.limit)? };
    // What the files of other sessions hold was taken out before, and is for the doctor to tell of.
    purged.left.retain(|(key, _)| changed.iter().any(|session| session.key == *key));
    let named = if has_whole { changed.as_slice() } else { &[] };
    purged.add(neighbours::search(archive, folders, &changed, named, &secrets)?);
    Ok((redactions, purged))
}

/// Covers the files of sessions that hold again what was taken out of them before, as an older copy brings it back, and searches
/// agents' folders for these secrets.
pub(crate) fn cover_again(
    archive: &Archive,
    folders: &[PathBuf],
    secrets: &Secrets,
) -> Result<Purged, SyncError> {
    let _lock = archive.lock()?;
    let is_in_log = archive.root().is_some_and(is_in_log);
    let mut purged = Purged { is_in_log, ..Purged::default() };
    cover_files(archive, &mut purged)?;
    purged.add(neighbours::search(archive, folders, &[], &[], secrets)?);
    Ok(purged)
}

impl Purged {
    /// Adds what agents' folders still have.
    fn add(&mut self, Neighbours { left, beside, unseen }: Neighbours) {
        self.covered.retain(|path| !left.iter().any(|(_, found)| found == path));
        let is_new = |(_, path): &(_, PathBuf)| !self.left.iter().any(|(_, known)| known == path);
        let left: Vec<_> = left.into_iter().filter(is_new).collect();
        self.left.extend(left);
        (self.beside, self.unseen) = (beside, unseen.into_iter().collect());
    }
}

/// Says of a refusal that nobody may insist.
fn finally(mut error: SyncError) -> SyncError {
    if let SyncError::Loaded { is_final, .. } = &mut error {
        *is_final = true;
    }
    error
}

/// Refuses to take bytes out of sessions that an agent has loaded: it would go on with them, and write them again.
fn refuse_if_loaded(archive: &Archive, redactions: &[Redaction]) -> Result<(), SyncError> {
    for Redaction { session, .. } in redactions {
        let change = Change::bare(archive, session)?;
        if let Some(live) = change.before.live_file() {
            change.before.writable_file(&live)?;
            if live.attached {
                loaded::refuse_if_loaded(archive, session, &live.path).map_err(finally)?;
            }
        }
    }
    Ok(())
}

/// Adds the operations and puts the covered lines in their places, in one transaction.
fn commit(
    archive: &Archive,
    (command, rule): (&dyn Fn(u64) -> Command, Option<&str>),
    redactions: &[Redaction],
    secrets: &Secrets,
) -> Result<(), SyncError> {
    let store = archive.store();
    let mut together = Together::new(archive);
    together.open()?;
    let mut coverings = Coverings::default();
    for redaction in redactions.iter().filter(|one| !one.is_nothing()) {
        let session = &redaction.session;
        let (mut tombstones, mut covered_files) = (Vec::new(), Vec::new());
        let came = lines_that_came(store, session, &redaction.lines)?;
        for (entry, line) in &redaction.lines {
            let rule = redaction.rules.get(entry).map(String::as_str).or(rule);
            let (line_came, covered) = (came.get(entry).copied(), Some(LineId::of(line)));
            tombstones.push(Tombstone {
                entry: *entry,
                size: line.len() as u64,
                line: line_came,
                covered,
                rule: rule.map(str::to_owned),
            });
            let covering = Covering { session: session.key, entry: *entry, line: line.clone() };
            coverings.lines.push(covering);
        }
        for Kept { at: (operation, at), bytes, .. } in &redaction.kept {
            let (operation, at, bytes) = (*operation, *at, bytes.clone());
            let (digest, size) = (Digest::of_bytes(&bytes), bytes.len() as u64);
            let rule = rule.map(str::to_owned);
            covered_files.push(CoveredFile { operation, at, digest, size, rule });
            coverings.files.push(FileCovering { session: session.key, operation, at, bytes });
        }
        let mut covered_runs = Vec::new();
        for Unfinished { operation, runs, lines } in &redaction.unfinished {
            let (operation, runs, lines) = (*operation, runs.clone(), lines.clone());
            let digest = Named::runs(&runs).unwrap_or_default().digest;
            covered_runs.push(CoveredRuns { operation, digest, lines });
            coverings.runs.push(RunsCovering { session: session.key, operation, runs });
        }
        coverings.words.extend(redaction.words.iter().copied());
        let count = tombstones.len() as u64;
        let buried = Buried { tombstones, covered_files, covered_runs };
        Change::also(archive, session, &mut together)?.bury(command(count), buried)?;
    }
    together.cover(coverings)?;
    // A file that was left out is no session's, and its name is kept nowhere else.
    together.unsight(&|path| secrets.is_in(path))?;
    for Redaction { session, .. } in redactions {
        let derived = rows::derived(store, session)?;
        together.derive(session.key, &derived)?;
    }
    Ok(together.end()?)
}

/// Returns the lines that came of entries whose lines are covered now, also where they were covered before.
fn lines_that_came(
    store: &dyn Store,
    session: &Session,
    lines: &[(EntryNumber, Vec<u8>)],
) -> Result<BTreeMap<EntryNumber, LineId>, SyncError> {
    let state = store.state(session.key)?;
    let mut came = BTreeMap::new();
    let mut as_they_came = Vec::new();
    for (entry, _) in lines {
        match state.covered(*entry) {
            Some((line, _)) => drop(came.insert(*entry, line)),
            None => as_they_came.push(*entry),
        }
    }
    whole_lines(store, session.key, &as_they_came, &mut |entry, line| {
        came.insert(entry, LineId::of(&line));
    })?;
    Ok(came)
}
