//! Changes from their beginning to their end: the lock is taken and the session catches up before, and again after where
//! another program wrote to the live file meanwhile.

use crate::{
    model::{Command, SessionName},
    session::Session,
    store::{Store, StoreError, Transaction},
    sync::{Archive, Outcome, SyncError, catch_up, change::Change},
    wire::Format,
};

/// Begins a change of a session: locks the archive, catches up, and sees where the session stands.
pub(crate) fn begin<'a>(archive: &'a Archive, session: &Session) -> Result<Change<'a>, SyncError> {
    let lock = archive.lock()?;
    let notices = catch_up::catch_up(archive, session)?;
    Change::locked(archive, session, lock, notices)
}

/// Begins to attach another file, or none: the way out where the live file may not be written, so that the session does
/// not have to have caught up with it.
pub(crate) fn begin_to_attach<'a>(
    archive: &'a Archive,
    session: &Session,
) -> Result<Change<'a>, SyncError> {
    let lock = archive.lock()?;
    let notices = match catch_up::catch_up(archive, session) {
        Err(SyncError::Denied { .. }) => Vec::new(),
        caught_up => caught_up?,
    };
    Change::locked(archive, session, lock, notices)
}

/// Begins a change of a session that may not be there yet.
pub(crate) fn begin_or_create<'a>(
    archive: &'a Archive,
    name: SessionName,
    format: &'static dyn Format,
) -> Result<Change<'a>, SyncError> {
    let lock = archive.lock()?;
    match archive.session(&name)? {
        Some(session) => {
            let notices = catch_up::catch_up(archive, &session)?;
            Change::locked(archive, &session, lock, notices)
        }
        None => Change::create(archive, name, format, lock),
    }
}

/// Commits a change and lets the live file follow.
pub(crate) fn commit(mut change: Change<'_>, command: Command) -> Result<Outcome, SyncError> {
    let (mut outcome, is_alone) = change.commit(command)?;
    if !is_alone {
        outcome.notices.extend(catch_up::catch_up(change.archive, &outcome.session)?);
    }
    Ok(outcome)
}

/// Does something to a store that is no operation, while no other program changes it.
pub(crate) fn exclusively<T>(
    archive: &Archive,
    work: impl FnOnce(&dyn Store) -> Result<T, SyncError>,
) -> Result<T, SyncError> {
    let _lock = archive.lock()?;
    work(archive.store())
}

/// Writes to the caches of a store, which are no facts.
pub(crate) fn cache(
    archive: &Archive,
    work: impl FnOnce(&mut dyn Transaction) -> Result<(), StoreError>,
) -> Result<(), SyncError> {
    let mut writing = archive.store.begin()?;
    work(writing.as_mut())?;
    writing.commit()?;
    Ok(())
}
