//! Restoring: writes the deleted files of a session again, and attaches the agent's file.

use std::{cmp::Reverse, collections::BTreeMap, path::PathBuf};

use crate::{
    archive::{Archive, At, SyncError, Vain},
    change::{self, goal::reach::Reach},
    disk::Stamp,
    files::{deletion, live_file::live_file},
    intake::{self, PutBack},
    model::{Command, MAIN, Timestamp},
    report::{Attached, LostFile, Notice, Restored, Sidecars},
    session::{
        Session,
        plan::{Plan, Steps, branch_text},
    },
    verbs::{OpsError, find::members::family, upkeep::attach::attach},
};

/// How many milliseconds apart the times of two restored sessions are, which leaves room for the files of each.
const APART: i64 = 10_000;
/// A restored session is kept older than an existing file only if that file is at most this old, in milliseconds: agents delete
/// old files.
const OLDEST: i64 = 15 * 86_400_000;

/// Writes the deleted files of a session back to where its agent reads them, with their sidecars, and attaches the agent's file.
pub fn restore(session: &At<'_>) -> Result<Restored, OpsError> {
    let now = session.archive.now();
    restore_at(session, now)
}

/// Restores one of several sessions. Their files get times in the order of last use, because agents choose the session to
/// continue by time.
pub fn restore_lost(archive: &mut Archive, lost: &LostFile) -> Result<Restored, OpsError> {
    restore_at(&archive.at(&lost.session)?, lost.at)
}

fn restore_at(session: &At<'_>, at: Timestamp) -> Result<Restored, OpsError> {
    // One lock for all steps, so that the result of each still holds in the next.
    change::exclusively(session.archive, |_| put_back(&session.again()?, at))
}

fn put_back(session: &At<'_>, at: Timestamp) -> Result<Restored, OpsError> {
    let PutBack { files, unlisted } = intake::put_back(session, at)?;
    let session = &session.again()?;
    let sidecars = intake::put_sidecars_back(session, at)?;
    let live = live_file(session.archive, &session.state);
    if files.is_empty() && sidecars == Sidecars::default() {
        let there = live.filter(|live| live.attached).map(|live| live.path);
        return Err(SyncError::Nothing(Vain::Restore { there }).into());
    }
    let path = files.last().cloned();
    let mut restored = Restored { path: path.clone(), files, sidecars, ..Restored::default() };
    let Some(last) = path else { return Ok(restored) };
    // If only an older file came back, the session still has the agent's file that continues from it.
    if live.is_some_and(|live| live.path != last) {
        return Ok(restored);
    }
    let unlisted = unlisted.map(|why| Notice::Unlisted { why: why.to_string() });
    match attach(session, Some(&last)) {
        Ok(mut attached) if attached.attached => {
            attached.done.notices.extend(unlisted);
            restored.rotated = go_on(session, &mut attached)?;
            (restored.left, restored.operation) = (attached.left, attached.done.operation);
            restored.notices = attached.done.notices;
        }
        // The agent cannot resume this file; it stays unattached.
        Ok(_) => {}
        // Restored but unattached, too, if it cannot be written or the agent continued in another file.
        Err(OpsError::Sync(
            why @ (SyncError::Own(_) | SyncError::Compressed(_) | SyncError::Left { .. }),
        )) => restored.notices.push(Notice::Unattached { why: why.to_string() }),
        Err(error) => return Err(error),
    }
    Ok(restored)
}

/// Moves the agent to where the session was while its file did not exist, if the format can express that: the file may contain
/// turns that were reverted since. Returns the path of the restored file if another one replaced it.
fn go_on(session: &At<'_>, attached: &mut Attached) -> Result<Option<PathBuf>, OpsError> {
    let stood = &session.state;
    let (Some(target), current) = (stood.position(), stood.current()) else { return Ok(None) };
    if attached.left.is_none() && current == MAIN {
        return Ok(None);
    }
    let done = change::execute(session, |before| {
        let mut steps = Steps::default();
        if let Some(left) = &attached.left {
            steps.set(left, None);
        }
        if current != MAIN {
            steps.set(MAIN, stood.branches.get(MAIN).copied());
            steps.current = Some(current.to_owned());
        }
        let goal = (before.position() != Some(target)).then_some(Reach { target, note: None });
        let branch = Some(branch_text(attached.left.as_deref().unwrap_or(current)));
        let (checkpoint, entry, message, left) = (None, None, None, None);
        let command = Command::Revert { checkpoint, entry, branch, message, left };
        Ok::<_, SyncError>(((), Some(Plan { command, steps, goal })))
    });
    match done {
        Ok(((), made)) => {
            attached.left = None;
            attached.done.notices.extend(made.done.notices);
            Ok(made.done.rotated)
        }
        Err(SyncError::OutOfReach { .. } | SyncError::Nothing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the sessions with deleted files, of one format or of all, the last used first.
pub fn lost(archive: &Archive, format: Option<&str>) -> Result<Vec<LostFile>, OpsError> {
    let mut sessions = archive.every()?;
    sessions.retain(|session| format.is_none_or(|format| format == session.name.format));
    lost_of(archive, &sessions)
}

/// Returns the deleted files of a session and its sub-agents.
pub fn lost_with_sub_agents(session: &At<'_>) -> Result<Vec<LostFile>, OpsError> {
    lost_of(session.archive, &family(session.store, session)?)
}

/// Returns the deleted files of these sessions, each with the time that its restored file gets. The times are close to now, so
/// that the agent does not delete the files again, and keep the order of last use, also relative to the newest existing file of
/// the same project.
fn lost_of(archive: &Archive, sessions: &[Session]) -> Result<Vec<LostFile>, OpsError> {
    let (mut all, mut newest) = (Vec::new(), BTreeMap::new());
    for session in sessions {
        let project = (session.name.format.clone(), archive.store().card(session.key)?.folder);
        let session = archive.at(session)?;
        let lost = lost_files(&session)?;
        if lost.as_ref().is_none_or(|lost| lost.path.is_none())
            && let Some(live) = live_file(archive, &session.state)
            && let Ok(Some(Stamp { modified: (seconds, nanos), .. })) = Stamp::at(&live.path)
        {
            let at = Timestamp(seconds.saturating_mul(1000) + nanos / 1_000_000);
            let last = newest.entry(project.clone()).or_insert(at);
            *last = at.max(*last);
        }
        all.extend(lost.map(|lost| (lost, project)));
    }
    all.sort_by_key(|(lost, _)| Reverse(lost.used));
    let now = archive.now().0;
    let mut next = now;
    for (lost, project) in &mut all {
        let later = newest.get(project).filter(|at| **at > lost.used && at.0 > now - OLDEST);
        next = later.map_or(next, |at| next.min(at.0 - APART));
        lost.at = Timestamp(next);
        next -= APART;
    }
    Ok(all.into_iter().map(|(lost, _)| lost).collect())
}

/// Returns the agent's file of a session if it was deleted.
pub fn lost_file(session: &At<'_>) -> Result<Option<PathBuf>, OpsError> {
    Ok(deletion::lost(session)?.map(|lost| lost.path))
}

/// Returns the deleted files of a session, if any.
fn lost_files(session: &At<'_>) -> Result<Option<LostFile>, OpsError> {
    let path = deletion::lost(session)?.map(|lost| lost.path);
    let sidecars = intake::sidecars::lost(session);
    if path.is_none() && sidecars.is_empty() {
        return Ok(None);
    }
    let seen =
        path.as_ref().map(|path| deletion::used(session.archive, path)).transpose()?.flatten();
    let active = || Ok(session.store.card(session.key)?.active.unwrap_or_default());
    let used = seen.map_or_else(active, Ok::<_, OpsError>)?;
    Ok(Some(LostFile { session: session.session.clone(), path, sidecars, used, at: used }))
}
