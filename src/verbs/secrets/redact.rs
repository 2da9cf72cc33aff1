//! Redacting: removes a secret, an entry or a session from everywhere it is stored. The chain of operations still verifies.

use std::{collections::BTreeSet, ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf};

use crate::{
    archive::{self, Archive, SyncError, Why},
    change::{self, reconcile},
    files,
    intake::{self, Step},
    model::{Command, DATABASE, LOG, SessionName},
    redaction::{self, Found, Redaction},
    report::{Redacted, RedactedSession, Remaining},
    session::plan::given,
    verbs::{
        OpsError,
        secrets::findings::{Search, Wanted},
    },
};

/// Who redacts something, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cause<'c> {
    /// The user.
    pub by: Option<&'c str>,
    /// The reason.
    pub reason: Option<&'c str>,
}

/// Returns what would be redacted.
pub fn redaction(
    archive: &Archive,
    wanted: &Wanted<'_>,
    cause: Cause<'_>,
) -> Result<Redacted, OpsError> {
    let (search, found) = look(archive, wanted, cause)?;
    let mut redacted = Redacted { planned: true, ..report(archive, &search, &found)? };
    for session in &mut redacted.sessions {
        session.title.take_if(|title| search.may_be_in(title));
    }
    if let Some(root) = archive.root() {
        redacted.deleted = archive::set_aside(root).map_err(SyncError::at(root))?;
    }
    Ok(redacted)
}

/// Redacts something from every session that contains it, and leaves no trace in the store or in the sessions' own files. If no
/// session contains it, covers it in files that contain it again after an earlier redaction. Then searches agents' folders for
/// it.
pub fn redact(
    archive: &mut Archive,
    wanted: &Wanted<'_>,
    cause: Cause<'_>,
    folders: &[PathBuf],
) -> Result<Redacted, OpsError> {
    change::exclusively(archive, |_| {
        let notices = reconcile::catch_up_all(archive)?;
        let (search, redactions) = look(archive, wanted, cause)?;
        let rules = Some(search.rules().join(", ")).filter(|rules| !rules.is_empty());
        let command = |lines| Command::Redact {
            lines,
            rule: rules.clone(),
            whole: matches!(wanted, Wanted::Session(_)),
            by: cause.by.map(given),
            reason: cause.reason.map(given),
        };
        let found = Found {
            redactions: redactions.iter().filter(|one| !one.is_nothing()).collect(),
            secrets: &search.secrets,
            has_whole: search.has_whole(),
        };
        let done = redaction::redact(archive, folders, &command, &found, notices)?;
        let root = archive.root().filter(|_| done.is_in_log).into_iter();
        let database = root.flat_map(|root| [DATABASE, LOG].map(|name| root.join(name)));
        Ok(Redacted {
            covered: done.covered,
            left: done.left.into_iter().map(|(_, path)| path).chain(database).collect(),
            deleted: done.deleted,
            is_in_log: done.is_in_log,
            beside: done.beside,
            unseen: done.unseen.into_iter().collect(),
            notices: done.notices,
            ..report(archive, &search, &redactions)?
        })
    })
}

/// Searches all sessions. Refuses a reason that contains the secret.
fn look(
    archive: &Archive,
    wanted: &Wanted<'_>,
    cause: Cause<'_>,
) -> Result<(Search, Vec<Redaction>), OpsError> {
    let search = Search::new(archive, wanted)?;
    let found = search.all(archive)?;
    if cause.reason.is_some_and(|reason| search.secrets.is_in(reason.as_bytes())) {
        return Err(OpsError::SecretReason);
    }
    Ok((search, found))
}

/// Imports session files that an agent moved below these folders, or compressed, since the last import: what is not known cannot
/// be covered. Returns the paths that could not be searched or imported.
pub fn follow_moved(
    archive: &mut Archive,
    plan: &Redacted,
    folders: &[PathBuf],
) -> Result<Vec<PathBuf>, OpsError> {
    let mut lost = BTreeSet::new();
    for one in &plan.sessions {
        let name = SessionName { format: one.format.clone(), id: one.session.clone() };
        if let Some(session) = archive.session(&name)?
            && files::missing(&archive.at(&session)?)?.is_some()
        {
            lost.insert(name);
        }
    }
    let mut unseen = Vec::new();
    if lost.is_empty() {
        return Ok(unseen);
    }
    let mut found = files::sources(folders, &mut |skipped| {
        unseen.extend(matches!(skipped.why, Why::Unreadable(_)).then_some(skipped.path));
    });
    found.retain(|source| lost.contains(&source.session));
    let paths: Vec<PathBuf> = found.into_iter().map(|source| source.path).collect();
    intake::import(archive, &paths, folders, &mut |step| {
        if let Step::Skipped(skipped) = step {
            unseen.push(skipped.path);
        }
    })?;
    Ok(unseen)
}

/// Reports what was, or would be, redacted.
fn report(archive: &Archive, search: &Search, found: &[Redaction]) -> Result<Redacted, OpsError> {
    let mut redacted = Redacted { rules: search.rules(), ..Redacted::default() };
    for redaction in found {
        let Redaction { session, lines, words, kept, unfinished, fixed, .. } = redaction;
        let id = search.told_id(session);
        let remaining = |place: &String| Remaining { session: id.clone(), place: place.clone() };
        redacted.fixed.extend(fixed.iter().map(remaining));
        if redaction.is_nothing() {
            continue;
        }
        let card = archive.store().card(session.key)?;
        let count = lines.len() as u64;
        redacted.lines += count;
        let state = archive.at(session)?.state.clone();
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
            title: card.title,
            lines: count,
        });
    }
    Ok(redacted)
}
