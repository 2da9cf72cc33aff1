//! Comeback: the deleted file of an agent's session exists again, and the session follows it.
//!
//! Invariant: no file is written and nothing is imported here. The caller catches up with the file afterwards.

use crate::{
    archive::{At, SyncError},
    change::draft::Change,
    files::{at::Standing, deletion::is_gone, live_file::deleted, mover::is_detached, sources},
    model::Command,
};

/// Attaches the session's deleted file again, if it exists again and still belongs to the session. Returns the session as it is
/// then. If the session has continued without its file, only an import attaches it again.
pub(crate) fn follow(session: At<'_>) -> Result<At<'_>, SyncError> {
    let Some(file) = deleted(session.archive, &session.state).filter(|file| !is_gone(&file.path))
    else {
        return Ok(session);
    };
    let is_its =
        session.archive.exclusion(&session.name, session.format, Some(&file.path)).is_none()
            && session.archive.writable_file(&session.name, &file).is_ok()
            && sources::length(&file.path).is_ok_and(|length| length.is_some())
            && sources::identify(&file.path).is_ok_and(|(_, name)| name == session.name);
    if !is_its || !is_resumed(&Standing::of(&session)?)? {
        return Ok(session);
    }
    let mut change = Change::bare(&session)?;
    change.set_live(Some(file.n));
    change.commit(Command::CatchUp { entries: 0, branch: None, left: None })?;
    Ok(session.again()?)
}

/// Returns true if an agent would resume the session and nobody detached it.
fn is_resumed(before: &Standing<'_>) -> Result<bool, SyncError> {
    let view = before.position().and_then(|at| before.view(at));
    let Some(view) = view.filter(|_| before.session.is_some()) else { return Ok(false) };
    Ok(view.unresumed()?.is_none() && !is_detached(before)?)
}
