//! Redaction: replaces secret bytes in every session that contains them, in lines and in files that are stored whole, and then
//! purges them from everywhere else.
//!
//! ```text
//! mark      a file in the store's folder says that a redaction is in progress
//! commit    one operation per session, with a tombstone for each line; the lines are replaced
//! purge     removes the bytes from everywhere else: see `purge/mod.rs`
//! unmark
//! ```
//!
//! Invariant: a redaction interrupted before the commit has changed nothing; after the commit, the next change finishes it.

pub(crate) mod neighbours;

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    archive::{Archive, SyncError},
    change::draft::{Buried, Change, Writing, batch::Together},
    cover::Secrets,
    files::occupancy,
    model::{
        Command, CoveredFile, CoveredRuns, Digest, EntryNumber, FileNumber, LineId, Named,
        OperationNumber, Run, SessionName, Tombstone,
    },
    purge::{Purged, cover_files, finish, is_in_log, mark},
    report::Notice,
    session::{Session, Stored, rows},
    store::{Covering, Coverings, FileCovering, RunsCovering, TakenOut, whole_lines},
};

/// What to redact in a session.
#[derive(Clone, Debug)]
pub(crate) struct Redaction {
    /// The session.
    pub(crate) session: Session,
    /// Entries with the lines that replace theirs.
    pub(crate) lines: Vec<(EntryNumber, Vec<u8>)>,
    /// The rule that found each secret, for secrets found by rules.
    pub(crate) rules: BTreeMap<EntryNumber, String>,
    /// Words of the user to remove.
    pub(crate) words: Vec<TakenOut>,
    /// Files that are stored whole and contain the secret, with their replacements.
    pub(crate) kept: Vec<Kept>,
    /// Operations that read unfinished lines to be redacted.
    pub(crate) unfinished: Vec<Unfinished>,
    /// Descriptions of places that contain the secret but cannot be redacted, such as a name.
    pub(crate) fixed: Vec<String>,
}

/// The runs of an operation, without the redacted unfinished lines.
#[derive(Clone, Debug)]
pub(crate) struct Unfinished {
    /// The operation.
    pub(crate) operation: OperationNumber,
    /// All its runs, with the unfinished lines replaced.
    pub(crate) runs: Vec<Run>,
    /// The ids of the redacted unfinished lines.
    pub(crate) lines: Vec<LineId>,
}

/// A file that an operation stores whole, with its replacement.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// The file's number.
    pub(crate) file: Option<FileNumber>,
    /// The operation, and the file's index among those it stores.
    pub(crate) at: (OperationNumber, u64),
    /// The replacement.
    pub(crate) bytes: Vec<u8>,
}

impl Redaction {
    /// Returns true if nothing in the session has to be redacted.
    pub(crate) fn is_nothing(&self) -> bool {
        self.lines.is_empty()
            && self.words.is_empty()
            && self.kept.is_empty()
            && self.unfinished.is_empty()
    }
}

/// What a redaction found.
pub(crate) struct Found<'f> {
    /// The redactions, one for each session that contains the secret.
    pub(crate) redactions: Vec<&'f Redaction>,
    /// The secrets, as far as they are known by their characters.
    pub(crate) secrets: &'f Secrets,
    /// True if whole lines are redacted as well.
    pub(crate) has_whole: bool,
}

/// Redacts what a verb has found, after every session has caught up, then searches agents' folders. If nothing was found, covers
/// the files where an older copy brought redacted lines back.
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
        // Other sessions' files were redacted before; `doctor` reports those.
        purged.left.retain(|(key, _)| changed.iter().any(|session| session.key == *key));
    }
    neighbours::search(archive, folders, &changed, found, &mut purged)?;
    Ok(purged)
}

/// Marks a refusal as one that `--force` cannot override.
fn finally(mut error: SyncError) -> SyncError {
    if let SyncError::Loaded { is_final, .. } = &mut error {
        *is_final = true;
    }
    error
}

/// Refuses to redact sessions that an agent has open: it would continue with its own copy and write the bytes again.
fn refuse_if_loaded(archive: &Archive, sessions: &[Session]) -> Result<(), SyncError> {
    for session in sessions {
        let session = archive.at(session)?;
        let change = Change::bare(&session)?;
        if let Some(live) = change.before.live_file() {
            change.before.writable_file(&live)?;
            if live.attached {
                occupancy::refuse_if_loaded(&session, &live.path).map_err(finally)?;
            }
        }
    }
    Ok(())
}

/// Adds the operations and replaces the lines, in one transaction.
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
        let came = lines_that_came(&Stored::of(store, session)?, &redaction.lines)?;
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
            let digest = Named::of(&runs).unwrap_or_default().digest;
            covered_runs.push(CoveredRuns { operation, digest, lines });
            coverings.runs.push(RunsCovering { session: session.key, operation, runs });
        }
        coverings.words.extend(redaction.words.iter().copied());
        let count = tombstones.len() as u64;
        let buried = Buried { tombstones, covered_files, covered_runs };
        Change::of(&archive.at(session)?, Writing::Among(&mut together))?
            .bury(command(count), buried)?;
    }
    together.writing()?.cover(coverings)?;
    // A file that was skipped belongs to no session; its path is stored only as a sighting.
    together.writing()?.unsight(&|path| found.secrets.is_in(path))?;
    for Redaction { session, .. } in &found.redactions {
        let derived = rows::derived(store, session)?;
        together.writing()?.derive(session.key, &derived)?;
    }
    Ok(together.end()?)
}

/// Returns the original line ids of these entries, including those of lines redacted before.
fn lines_that_came(
    session: &Stored<'_>,
    lines: &[(EntryNumber, Vec<u8>)],
) -> Result<BTreeMap<EntryNumber, LineId>, SyncError> {
    let mut came = BTreeMap::new();
    let mut as_they_came = Vec::new();
    for (entry, _) in lines {
        match session.state.covered(*entry) {
            Some((line, _)) => drop(came.insert(*entry, line)),
            None => as_they_came.push(*entry),
        }
    }
    whole_lines(session.store, session.key, &as_they_came, &mut |entry, line| {
        came.insert(entry, LineId::of(&line));
    })?;
    Ok(came)
}
