//! Restoring: the files of a session that somebody deleted come back, and the agent's is its live file again.

use crate::{
    ops::{OpsError, attach},
    report::{LostFile, Restored},
    session::Session,
    sync::{self, Archive, SyncError, gone},
};

/// Puts the files of a session that are gone back where its agent reads them, and attaches the agent's.
pub fn restore(archive: &mut Archive, session: &Session) -> Result<Restored, OpsError> {
    let files = sync::exclusively(archive, |_| sync::put_back(archive, session))?;
    let Some(last) = files.last() else { return Err(nothing(archive, session)?.into()) };
    let attached = attach(archive, session, Some(last))?;
    Ok(Restored { files, attached })
}

/// Returns why there is nothing to restore.
fn nothing(archive: &Archive, session: &Session) -> Result<SyncError, OpsError> {
    let live = sync::live_file::live_file(archive, &archive.store().state(session.key)?);
    Ok(match live {
        Some(live) if live.attached => SyncError::Unsupported(format!(
            "there is nothing to restore: {} is there",
            live.path.display()
        )),
        _ => SyncError::Unsupported(
            "there is nothing to restore: no agent's file of this session was deleted".to_owned(),
        ),
    })
}

/// Returns the sessions, of a format or of all, whose agent's file is gone, with that file.
pub fn lost(archive: &Archive, format: Option<&str>) -> Result<Vec<LostFile>, OpsError> {
    let mut all = Vec::new();
    for session in archive.every()? {
        if format.is_some_and(|format| format != session.name.format) {
            continue;
        }
        if let Some(path) = lost_file(archive, &session)? {
            all.push(LostFile { session, path });
        }
    }
    Ok(all)
}

/// Returns the agent's file of a session, if it is gone.
pub fn lost_file(
    archive: &Archive,
    session: &Session,
) -> Result<Option<std::path::PathBuf>, OpsError> {
    let state = archive.store().state(session.key)?;
    Ok(gone::lost(archive, &state).map(|lost| lost.path))
}
