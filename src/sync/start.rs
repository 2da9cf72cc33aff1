//! Starting the agent in a session: the command by which it resumes what is shown.

use crate::{
    report::Resume,
    session::{Session, View},
    sync::{Archive, SyncError, gone::is_gone, live_file::live_file},
};

/// Returns how the agent of a session is started in it, if it would resume the session.
pub fn resume(archive: &Archive, session: &Session) -> Result<Option<Resume>, SyncError> {
    let state = archive.store.state(session.key)?;
    let Some(live) = live_file(archive, &state).filter(|live| live.attached) else {
        return Ok(None);
    };
    // What a preview writes is nowhere.
    if is_gone(&live.path) && !archive.is_preview {
        return Ok(None);
    }
    if let Some(at) = state.position()
        && View::new(archive.store(), session, at, Some(&state.spans)).unresumed()?.is_some()
    {
        return Ok(None);
    }
    let command = session.format.resume(&session.name.id, &live.path);
    let folder = archive.store.card(session.key)?.folder.map(Into::into);
    Ok(command.map(|command| Resume { folder, command }))
}
