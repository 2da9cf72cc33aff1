//! Back: the agent's file of a session, which was deleted, is there again, and the session follows it.
//!
//! Invariant: no file is written, and nothing is taken in: what is new in the file is found by who follows it.

use crate::{
    archive::{Archive, SyncError},
    change::draft::Change,
    files::{at::Standing, deletion::is_gone, live_file::deleted, mover::is_detached, sources},
    model::{Command, State},
    session::Session,
};

/// Has a session follow the file again in which it is, if that was deleted, is there again and is still the session's; returns
/// where the session is then. One that went on without its file is taken back to it by an import alone.
pub(crate) fn follow(
    archive: &Archive,
    session: &Session,
    tip: &State,
) -> Result<Option<State>, SyncError> {
    let Some(file) = deleted(archive, tip).filter(|file| !is_gone(&file.path)) else {
        return Ok(None);
    };
    let is_its = archive.exclusion(&session.name, session.format, Some(&file.path)).is_none()
        && archive.writable_file(&session.name, &file).is_ok()
        && sources::length(&file.path).is_ok_and(|length| length.is_some())
        && sources::identify(&file.path).is_ok_and(|(_, name)| name == session.name);
    if !is_its || !is_resumed(&Standing::of(archive, session)?)? {
        return Ok(None);
    }
    let mut change = Change::bare(archive, session)?;
    change.set_live(Some(file.n));
    change.commit(Command::CatchUp { entries: 0, branch: None, left: None })?;
    Ok(Some(archive.store.state(session.key)?))
}

/// Returns whether an agent goes on where a session is, and nobody let its file go.
fn is_resumed(before: &Standing<'_>) -> Result<bool, SyncError> {
    let view = before.position().and_then(|at| before.view(at));
    let Some(view) = view.filter(|_| before.session.is_some()) else { return Ok(false) };
    Ok(view.unresumed()?.is_none() && !is_detached(before)?)
}
