//! Redacting: a secret, an entry or a session is taken out wherever it is kept, and the chain of operations still verifies.

use std::{
    cell::OnceCell, collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf,
};

use crate::{
    model::{Command, DATABASE, LOG},
    ops::{
        OpsError,
        wanted::{Search, Wanted},
    },
    report::{Redacted, RedactedSession, Remaining},
    session::plan::given,
    settings::Exclude,
    store::SessionKey,
    sync::{self, Archive, Found, Redaction, Step, SyncError, Why},
};

/// Who takes something out, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cause<'c> {
    /// The rule by which it was found.
    pub rule: Option<&'c str>,
    /// The user.
    pub by: Option<&'c str>,
    /// The reason.
    pub reason: Option<&'c str>,
}

/// Returns what would be taken out.
pub fn redaction(
    archive: &Archive,
    wanted: &Wanted<'_>,
    cause: Cause<'_>,
) -> Result<Redacted, OpsError> {
    let search = Search::new(archive, wanted)?;
    let found = search.all(archive)?;
    refuse_said(&search, cause)?;
    let mut redacted = report(archive, &found, Some(&search))?;
    (redacted.rules, redacted.fixed) = (search.rules(), remaining(&search, &found));
    Ok(redacted)
}

/// Takes something out of every session that has it, and leaves no trace of it in the store or in the sessions' own files. Then
/// searches agents' folders for it.
pub fn redact(
    archive: &mut Archive,
    wanted: &Wanted<'_>,
    cause: Cause<'_>,
    folders: &[PathBuf],
) -> Result<Redacted, OpsError> {
    let whole = matches!(wanted, Wanted::Session(_));
    let rules: OnceCell<Vec<String>> = OnceCell::new();
    let mut fixed = Vec::new();
    let all_rules = || rules.get().map(|rules| rules.join(", ")).filter(|rules| !rules.is_empty());
    let command = |lines| Command::Redact {
        lines,
        rule: cause.rule.map(str::to_owned).or_else(all_rules),
        whole,
        by: cause.by.map(given),
        reason: cause.reason.map(given),
    };
    let archive = &*archive;
    let (found, done) = sync::redact(archive, folders, &command, cause.rule, || {
        let search = Search::new(archive, wanted)?;
        let redactions = search.all(archive)?;
        fixed = remaining(&search, &redactions);
        refuse_said(&search, cause)?;
        rules.get_or_init(|| search.rules());
        let has_whole = search.has_whole();
        Ok::<_, OpsError>(Found { redactions, secrets: search.secrets, has_whole })
    })?;
    let mut redacted = report(archive, &found, None)?;
    redacted.fixed = fixed;
    redacted.rules = rules.into_inner().unwrap_or_default();
    redacted.covered = done.covered;
    redacted.left = left(archive, done.left, done.is_in_log);
    redacted.deleted = done.deleted;
    redacted.is_in_log = done.is_in_log;
    redacted.beside = done.beside;
    redacted.unseen = done.unseen;
    redacted.notices = done.notices;
    Ok(redacted)
}

/// Takes in the files of the sessions that have it which an agent moved below these folders, or compressed there, since they were taken
/// in last: what is not known is not covered. Returns what could not be looked through for them, or not be taken in.
pub fn follow_moved(
    archive: &mut Archive,
    plan: &Redacted,
    folders: &[PathBuf],
) -> Result<Vec<PathBuf>, OpsError> {
    let mut lost = BTreeSet::new();
    for session in archive.every()? {
        let is_it = |one: &RedactedSession| {
            one.session == session.name.id && one.format == session.name.format
        };
        if plan.sessions.iter().any(is_it)
            && sync::missing(archive, &session, &archive.store().state(session.key)?)?.is_some()
        {
            lost.insert(session.name);
        }
    }
    let mut unseen = Vec::new();
    if lost.is_empty() {
        return Ok(unseen);
    }
    let mut found = sync::sources(folders, &Exclude::default(), &mut |skipped| {
        unseen.extend(matches!(skipped.why, Why::Unreadable(_)).then_some(skipped.path));
    });
    found.retain(|source| lost.contains(&source.session));
    let paths: Vec<PathBuf> = found.into_iter().map(|source| source.path).collect();
    sync::import(archive, &paths, folders, &mut |step| {
        if let Step::Skipped(skipped) = step {
            unseen.push(skipped.path);
        }
    })?;
    Ok(unseen)
}

/// Covers the files of sessions that hold again what was taken out of them before, as an older copy brings it back, and searches
/// agents' folders for what is wanted.
pub fn cover_again(
    archive: &mut Archive,
    wanted: &Wanted<'_>,
    folders: &[PathBuf],
) -> Result<Redacted, OpsError> {
    let search = Search::new(archive, wanted)?;
    let done = sync::cover_again(archive, folders, &search.secrets)?;
    let left = left(archive, done.left, done.is_in_log);
    let sync::Purged { covered, deleted, is_in_log, beside, unseen, .. } = done;
    Ok(Redacted { covered, left, beside, unseen, deleted, is_in_log, ..Redacted::default() })
}

/// Returns the files that still hold it: those of sessions, and those of a database that another program reads.
fn left(archive: &Archive, left: Vec<(SessionKey, PathBuf)>, is_in_log: bool) -> Vec<PathBuf> {
    let root = archive.root().filter(|_| is_in_log);
    let database = root.into_iter().flat_map(|root| [DATABASE, LOG].map(|name| root.join(name)));
    left.into_iter().map(|(_, path)| path).chain(database).collect()
}

/// Returns where something is that cannot be covered there.
fn remaining(search: &Search, found: &[Redaction]) -> Vec<Remaining> {
    let of_one = |one: &Redaction| {
        let session = search.told_id(&one.session);
        let places = one.fixed.clone().into_iter();
        places.map(move |place| Remaining { session: session.clone(), place }).collect::<Vec<_>>()
    };
    found.iter().flat_map(of_one).collect()
}

/// Refuses to keep a reason that says it.
fn refuse_said(search: &Search, cause: Cause<'_>) -> Result<(), OpsError> {
    if cause.reason.is_some_and(|reason| search.secrets.is_in(reason.as_bytes())) {
        return Err(OpsError::SecretReason);
    }
    Ok(())
}

/// Reports what was taken out, or would be by a search.
fn report(
    archive: &Archive,
    found: &[Redaction],
    search: Option<&Search>,
) -> Result<Redacted, OpsError> {
    let planned = search.is_some();
    let has_it = |title: &String| {
        let (Some(search), title) = (search, title.as_bytes()) else { return false };
        let secrets = &search.secrets;
        search.has_whole() || secrets.is_in(title) || secrets.are_cut_by(title)
    };
    let mut redacted = Redacted { planned, ..Redacted::default() };
    if planned && let Some(root) = archive.root() {
        redacted.deleted = sync::set_aside(root).map_err(SyncError::at(root))?;
    }
    for redaction in found.iter().filter(|one| !one.is_nothing()) {
        let Redaction { session, lines, words, kept, unfinished, .. } = redaction;
        let card = archive.store().card(session.key)?;
        let count = lines.len() as u64;
        redacted.lines += count;
        let state = archive.store().state(session.key)?;
        let files: BTreeSet<_> = kept.iter().filter_map(|kept| kept.file).collect();
        let places = files.into_iter().filter_map(|n| state.file(n));
        redacted.files.extend(places.map(|place| match archive.path_of(place) {
            Some(path) => path,
            None => OsStr::from_bytes(place.path()).into(),
        }));
        redacted.notes += words.len() as u64;
        redacted.unfinished += unfinished.iter().map(|one| one.lines.len() as u64).sum::<u64>();
        redacted.sessions.push(RedactedSession {
            session: session.name.id.clone(),
            format: session.name.format.clone(),
            title: card.title.filter(|title| !has_it(title)),
            lines: count,
        });
    }
    Ok(redacted)
}
