//! Refuses to write an agent's file while a process has its session open. The process would not see the new lines and would
//! continue from its own state.

use std::path::Path;

use crate::{
    archive::{At, SyncError},
    live::{self, Holder, How, Index, Lock, Locking},
    report::OpenIn,
    session::short_name,
};

/// Refuses to write an agent's file if a process has its session open. With `force`, only certain evidence counts. If the agent
/// has a lock for its sessions, returns it; while it is held the agent cannot open the session.
pub(crate) fn refuse_if_loaded(session: &At<'_>, path: &Path) -> Result<Option<Lock>, SyncError> {
    let archive = session.archive;
    // A preview writes nothing.
    if archive.is_preview {
        return Ok(None);
    }
    let lock = agents_lock(session, path)?;
    let folder = session.store.card(session.key)?.folder;
    // An agent that locks the sessions it opens would hold this lock.
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
    if holders.is_empty() { Ok(lock) } else { Err(loaded(session, path, holders)?) }
}

/// Returns the processes that certainly have a session open.
pub fn open_in(session: &At<'_>) -> Vec<OpenIn> {
    let Some(live) = session.attached() else { return Vec::new() };
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

/// Takes the agent's own lock on a session, if the agent has one; fails if a process holds it.
pub(crate) fn agents_lock(session: &At<'_>, path: &Path) -> Result<Option<Lock>, SyncError> {
    let Some(index) = session.format.home(path).map(Index::of) else { return Ok(None) };
    match index.lock(&session.archive.disk, &session.name.id).map_err(SyncError::at(path))? {
        Locking::Unknown => Ok(None),
        Locking::Taken(lock) => Ok(Some(lock)),
        Locking::Held(held) => {
            // The lock proves it, whatever was found about the process.
            let holders = live::holders(&held, None, session.format.traits()).unwrap_or_default();
            let holders = holders.into_iter().map(|one| Holder { how: How::Lock, ..one });
            Err(loaded(session, path, holders.collect())?)
        }
    }
}

fn loaded(session: &At<'_>, path: &Path, holders: Vec<Holder>) -> Result<SyncError, SyncError> {
    let title = session.store.card(session.key)?.title;
    let session = short_name(session.store, session)?;
    Ok(SyncError::Loaded { path: path.to_owned(), session, title, holders, is_final: false })
}
