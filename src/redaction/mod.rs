//! Redacting: bytes are taken out of lines, and of files that are kept whole, in every session that has them, and then wherever
//! else they lie.
//!
//! ```text
//! mark      the store's folder says that bytes are being taken out
//! commit    an operation a session, with a tombstone for each line; other bytes stand in the lines' places
//! purge     they go from wherever else they lie: see `purge/mod.rs`
//! unmark
//! ```
//!
//! Invariant: what is cut short before the commit has changed nothing, and what is cut short behind it is carried out by the next
//! change.

pub(crate) mod neighbours;

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    archive::{Archive, SyncError},
    change::draft::{Buried, Change, batch::Together},
    cover::Secrets,
    files::occupancy,
    model::{
        Command, CoveredFile, CoveredRuns, Digest, EntryNumber, FileNumber, LineId, Named,
        OperationNumber, Run, SessionName, Tombstone,
    },
    purge::{Purged, cover_files, finish, is_in_log, mark},
    report::Notice,
    session::{Session, rows},
    store::{Covering, Coverings, FileCovering, RunsCovering, Store, TakenOut, whole_lines},
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
pub(crate) struct Found<'f> {
    /// Of each session that has it.
    pub(crate) redactions: Vec<&'f Redaction>,
    /// What it is, as far as it is known by its characters.
    pub(crate) secrets: &'f Secrets,
    /// Whether whole lines are redacted as well.
    pub(crate) has_whole: bool,
}

/// Covers what a verb has found once every session has caught up. If that is nothing, covers the files of sessions that hold again
/// what was taken out of them before, as an older copy brings it back. Then searches agents' folders.
pub(crate) fn redact(
    archive: &Archive,
    folders: &[PathBuf],
    command: &dyn Fn(u64) -> Command,
    found: &Found<'_>,
    mut notices: Vec<(SessionName, Notice)>,
) -> Result<Purged, SyncError> {
    let changed: Vec<Session> = found.redactions.iter().map(|one| one.session.clone()).collect();
    let is_changed = |name: &SessionName| changed.iter().any(|session| session.name == *name);
    notices.retain(|(name, notice)| is_changed(name) || matches!(notice, Notice::Unsought { .. }));
    let mut purged = Purged { notices, ..Purged::default() };
    if changed.is_empty() {
        purged.is_in_log = archive.root().is_some_and(is_in_log);
        cover_files(archive, None, &mut purged)?;
    } else {
        refuse_if_loaded(archive, &changed)?;
        mark(archive)?;
        commit(archive, command, found)?;
        finish(archive, archive.waiting.limit, &mut purged)?;
        // What the files of other sessions hold was taken out before, and is for the doctor to tell of.
        purged.left.retain(|(key, _)| changed.iter().any(|session| session.key == *key));
    }
    neighbours::search(archive, folders, &changed, found, &mut purged)?;
    Ok(purged)
}

/// Says of a refusal that nobody may insist.
fn finally(mut error: SyncError) -> SyncError {
    if let SyncError::Loaded { is_final, .. } = &mut error {
        *is_final = true;
    }
    error
}

/// Refuses to take bytes out of sessions that an agent has loaded: it would go on with them, and write them again.
fn refuse_if_loaded(archive: &Archive, sessions: &[Session]) -> Result<(), SyncError> {
    for session in sessions {
        let change = Change::bare(archive, session)?;
        if let Some(live) = change.before.live_file() {
            change.before.writable_file(&live)?;
            if live.attached {
                occupancy::refuse_if_loaded(archive, session, &live.path).map_err(finally)?;
            }
        }
    }
    Ok(())
}

/// Adds the operations and puts the covered lines in their places, in one transaction.
fn commit(
    archive: &Archive,
    command: &dyn Fn(u64) -> Command,
    found: &Found<'_>,
) -> Result<(), SyncError> {
    let store = archive.store();
    let mut together = Together::new(archive);
    together.open()?;
    let mut coverings = Coverings::default();
    for redaction in &found.redactions {
        let session = &redaction.session;
        let (mut tombstones, mut covered_files) = (Vec::new(), Vec::new());
        let came = lines_that_came(store, session, &redaction.lines)?;
        for (entry, line) in &redaction.lines {
            tombstones.push(Tombstone {
                entry: *entry,
                size: line.len() as u64,
                line: came.get(entry).copied(),
                covered: Some(LineId::of(line)),
                rule: redaction.rules.get(entry).cloned(),
            });
            let covering = Covering { session: session.key, entry: *entry, line: line.clone() };
            coverings.lines.push(covering);
        }
        for Kept { at: (operation, at), bytes, .. } in &redaction.kept {
            let (operation, at, bytes) = (*operation, *at, bytes.clone());
            let (digest, size) = (Digest::of_bytes(&bytes), bytes.len() as u64);
            covered_files.push(CoveredFile { operation, at, digest, size, rule: None });
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
    together.unsight(&|path| found.secrets.is_in(path))?;
    for Redaction { session, .. } in &found.redactions {
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
