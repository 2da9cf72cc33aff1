//! A process that has an agent's session open keeps its file from being written: it would not see what is written, and continue from
//! what it knows.

use std::path::Path;

use crate::{
    live::{self, Holder, How, Index, Lock, Locking},
    session::Session,
    sync::{Archive, SyncError},
};

/// Refuses to write an agent's file if a process has its session open; if the caller insists, only where that is certain. Also keeps
/// the agent from opening the session while the answer lives, if it has a lock for that.
pub(crate) fn refuse_if_loaded(
    archive: &Archive,
    session: &Session,
    path: &Path,
) -> Result<Option<Lock>, SyncError> {
    // It writes nothing.
    if archive.is_preview {
        return Ok(None);
    }
    let lock = agents_lock(archive, session, path)?;
    let folder = archive.store.card(session.key)?.folder;
    // An agent that locks what it opens would have locked this.
    let folder = folder.as_deref().map(Path::new).filter(|_| lock.is_none());
    let holders = live::holders(path, folder, session.format.traits());
    let holders = match holders {
        Ok(mut holders) if archive.manner.force => {
            holders.retain(|holder| !holder.how.is_guess());
            holders
        }
        Err(_) if archive.manner.force => Vec::new(),
        holders => holders.map_err(SyncError::at(path))?,
    };
    if holders.is_empty() { Ok(lock) } else { Err(loaded(archive, session, path, holders)?) }
}

/// Keeps a session from being opened by its agent while the answer lives, if the agent has a lock for that; it is an error if
/// a process holds that.
pub(crate) fn agents_lock(
    archive: &Archive,
    session: &Session,
    path: &Path,
) -> Result<Option<Lock>, SyncError> {
    let Some(index) = session.format.home(path).map(Index::of) else { return Ok(None) };
    match index.lock(&archive.disk, &session.name.id).map_err(SyncError::at(path))? {
        Locking::Unknown => Ok(None),
        Locking::Taken(lock) => Ok(Some(lock)),
        Locking::Held(held) => {
            // Whoever it is, the lock is held.
            let holders = live::holders(&held, None, session.format.traits()).unwrap_or_default();
            let holders = holders.into_iter().map(|one| Holder { how: How::Lock, ..one });
            Err(loaded(archive, session, path, holders.collect())?)
        }
    }
}

fn loaded(
    archive: &Archive,
    session: &Session,
    path: &Path,
    holders: Vec<Holder>,
) -> Result<SyncError, SyncError> {
    let title = archive.store.card(session.key)?.title;
    Ok(SyncError::Loaded { path: path.to_owned(), title, holders, is_final: false })
}
