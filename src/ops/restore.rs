//! Restoring: the files of a session that somebody deleted come back, and the agent's is its live file again.

use std::path::PathBuf;

use crate::{
    model::{Command, MAIN, State},
    ops::{OpsError, attach::attach_file, members::family},
    report::{Attached, LostFile, Restored, Sidecars},
    session::{
        Session,
        plan::{Plan, Steps, branch_text},
    },
    sync::{
        self, Archive, Notice, PutBack, SyncError, Vain, gone, live_file::live_file, reach::Reach,
    },
};

/// Puts the files of a session that are gone back where its agent reads them, with those that it kept next to them, and
/// attaches the agent's.
pub fn restore(archive: &mut Archive, session: &Session) -> Result<Restored, OpsError> {
    // What is decided in one step holds in the next ones.
    sync::exclusively(archive, |_| put_back(archive, session))
}

fn put_back(archive: &Archive, session: &Session) -> Result<Restored, OpsError> {
    let PutBack { files, unlisted } = sync::put_back(archive, session)?;
    let sidecars = sync::put_sidecars_back(archive, session)?;
    let Some(last) = files.last() else {
        if sidecars == Sidecars::default() {
            return Err(nothing(archive, session)?.into());
        }
        let notices = Vec::new();
        return Ok(Restored { files, attached: None, rotated: None, notices, sidecars });
    };
    let stood = archive.store().state(session.key)?;
    // The agent's file is there where only one came back from which it goes on.
    if live_file(archive, &stood).is_some_and(|live| live.path != *last) {
        let notices = Vec::new();
        return Ok(Restored { files, attached: None, rotated: None, notices, sidecars });
    }
    let unlisted = unlisted.map(|why| Notice::Unlisted { why: why.to_string() });
    let mut rotated = None;
    let (attached, notices) = match attach_file(archive, session, Some(last)) {
        Ok(mut attached) if attached.attached => {
            attached.notices.extend(unlisted);
            rotated = go_on(archive, session, &stood, &mut attached)?;
            (Some(attached), Vec::new())
        }
        // A file that its agent does not resume is there, and that is all.
        Ok(_) => (None, Vec::new()),
        // Nor is one that cannot be written to, or from which its agent went on, any less there.
        Err(OpsError::Sync(
            why @ (SyncError::Own(_) | SyncError::Compressed(_) | SyncError::Left { .. }),
        )) => (None, vec![Notice::Unattached { why: why.to_string() }]),
        Err(error) => return Err(error),
    };
    Ok(Restored { files, attached, rotated, notices, sidecars })
}

/// Takes the agent to where the session stood while its file was gone, if its format can say the way: what was said since
/// may be in the file, and undone again. Returns where the file is that was put back, if another one took its place.
fn go_on(
    archive: &Archive,
    session: &Session,
    stood: &State,
    attached: &mut Attached,
) -> Result<Option<PathBuf>, OpsError> {
    let (Some(target), current) = (stood.position(), stood.current()) else { return Ok(None) };
    if attached.left.is_none() && current == MAIN {
        return Ok(None);
    }
    let done = sync::execute(archive, session, |before| {
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
        Ok(((), done)) => {
            attached.left = None;
            attached.notices.extend(done.notices);
            Ok(done.reached.flatten().and_then(|reached| reached.aside))
        }
        Err(SyncError::OutOfReach { .. } | SyncError::Nothing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns why there is nothing to restore.
fn nothing(archive: &Archive, session: &Session) -> Result<SyncError, OpsError> {
    let live = live_file(archive, &archive.store().state(session.key)?);
    let there = live.filter(|live| live.attached).map(|live| live.path);
    Ok(SyncError::Nothing(Vain::Restore { there }))
}

/// Returns the sessions, of a format or of all, of which files are gone.
pub fn lost(archive: &Archive, format: Option<&str>) -> Result<Vec<LostFile>, OpsError> {
    let mut all = Vec::new();
    for session in archive.every()? {
        if format.is_some_and(|format| format != session.name.format) {
            continue;
        }
        all.extend(lost_files(archive, &session)?);
    }
    Ok(all)
}

/// Returns which files of a session are gone, and of the sub-agents that worked for it, those of each behind the session's own.
pub fn lost_with_sub_agents(
    archive: &Archive,
    session: &Session,
) -> Result<Vec<LostFile>, OpsError> {
    let mut all = Vec::new();
    for session in &family(archive.store(), session)? {
        all.extend(lost_files(archive, session)?);
    }
    Ok(all)
}

/// Returns the agent's file of a session, if it is gone.
pub fn lost_file(archive: &Archive, session: &Session) -> Result<Option<PathBuf>, OpsError> {
    let state = archive.store().state(session.key)?;
    Ok(gone::lost(archive, session, &state)?.map(|lost| lost.path))
}

/// Returns which files of a session are gone, if any are.
fn lost_files(archive: &Archive, session: &Session) -> Result<Option<LostFile>, OpsError> {
    let state = archive.store().state(session.key)?;
    let path = gone::lost(archive, session, &state)?.map(|lost| lost.path);
    let sidecars = sync::sidecars::lost(archive, session, &state);
    let is_lost = path.is_some() || !sidecars.is_empty();
    Ok(is_lost.then(|| LostFile { session: session.clone(), path, sidecars }))
}
