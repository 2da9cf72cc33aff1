//! A process that has an agent's session open keeps its file from being written: it would not see what is written, and continue from
//! what it knows.

use std::path::Path;

use crate::{
    archive::{Archive, SyncError},
    files::live_file::live_file,
    live::{self, Holder, How, Index, Lock, Locking},
    report::OpenIn,
    session::{Session, short_name},
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

/// Returns the processes that have a session open, but not those that only may have it.
pub fn open_in(archive: &Archive, session: &Session) -> Vec<OpenIn> {
    let state = archive.store().state(session.key).unwrap_or_default();
    let Some(live) = live_file(archive, &state).filter(|live| live.attached) else {
        return Vec::new();
    };
    let lock =
        session.format.home(&live.path).map(|home| Index::of(home).lock_of(&session.name.id));
    let of = |file: &Path| live::holders(file, None, session.format.traits()).unwrap_or_default();
    let mut found = of(&live.path);
    found.extend(lock.iter().flat_map(|lock| of(lock)));
    found.retain(|holder| !holder.how.is_guess());
    found.sort_by_key(|holder| holder.pid);
    found.dedup_by_key(|holder| holder.pid);
    let open = found.into_iter().map(|Holder { name: agent, pid, terminal, .. }| OpenIn {
        agent,
        pid,
        terminal,
    });
    open.collect()
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
    let session = short_name(archive.store(), session)?;
    Ok(SyncError::Loaded { path: path.to_owned(), session, title, holders, is_final: false })
}
