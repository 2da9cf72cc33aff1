//! Lists of folders: some agents accept a session only from a folder that is in their list. The list is updated before the
//! session's file is written.
//!
//! Invariant: a list is never overwritten. A complete new list replaces it, and the old list is kept under another name.

use std::io;

use crate::{
    archive::{Archive, At, SyncError},
    change::draft::follow::{Follow, Step},
    disk,
    live::{Denied, Writable, WritableFile},
    model::{SessionName, Timestamp},
    wire::Format,
};

/// Returns the agent's list and the step that adds the folder of a session's file to it, if the list lacks the folder.
pub(crate) fn list_folder(
    archive: &Archive,
    format: &dyn Format,
    session: &SessionName,
    file: &WritableFile,
) -> Result<Option<(WritableFile, Step)>, SyncError> {
    let Some(list) = list_of(format, session, file)? else { return Ok(None) };
    let io = SyncError::at(list.path());
    let held = read(&list).map_err(io)?;
    // An interrupted update of the list had the folder.
    let begun = read(&list.successor()).map_err(io)?;
    let begun = format.listed_folder(file.path(), &begun);
    // The store knows the folder from an older list.
    let known = match archive.session(session)? {
        Some(session) => archive.store.card(session.key)?.folder,
        None => None,
    };
    let folders = [archive.manner.folder.as_deref(), begun.as_deref(), known.as_deref()];
    let folders: Vec<&str> = folders.into_iter().flatten().collect();
    let listed = format.list_folder(file.path(), &held, &folders);
    let unlisted = |why: crate::wire::Invalid| SyncError::Unlisted {
        index: list.path().to_owned(),
        why: why.0,
    };
    let Some(listed) = listed.map_err(unlisted)? else { return Ok(None) };
    let aside = list.aside(1, &|_| None).map_err(io)?;
    let mut fresh = list.fresh().map_err(io)?;
    fresh.write(&listed).map_err(io)?;
    Ok(Some((list, Step::Exchange { attached: false, aside, fresh: Some(Box::new(fresh)) })))
}

/// Lists a session's folder before its file is updated to a committed state or is restored.
pub(crate) fn finish(
    session: &At<'_>,
    file: &WritableFile,
    at: Timestamp,
) -> Result<(), SyncError> {
    let archive = session.archive;
    let only = list_folder(archive, session.format, &session.name, file)?;
    let Some(mut follow) = only.map(Follow::from) else { return Ok(()) };
    let done = follow.prepare(at, archive.is_preview).and_then(|()| follow.carry_out(at));
    done.map(|_| ()).map_err(|(path, source)| SyncError::Io { path, source })
}

/// Deletes the successor of a list whose operation was never committed.
pub(crate) fn sweep(session: &At<'_>, file: &WritableFile) -> Result<(), SyncError> {
    let list = list_of(session.format, &session.name, file)?;
    list.map_or(Ok(()), |list| list.sweep().map_err(SyncError::at(list.path())))
}

fn list_of(
    format: &dyn Format,
    session: &SessionName,
    file: &WritableFile,
) -> Result<Option<WritableFile>, SyncError> {
    let Some(path) = format.index(file.path()) else { return Ok(None) };
    let list = Writable::index(file, &path);
    list.map(Some).map_err(|why: Denied| SyncError::denied(session, &path, why))
}

fn read(list: &WritableFile) -> io::Result<Vec<u8>> {
    disk::found(list.open())?.map_or(Ok(Vec::new()), |file| disk::whole(file, disk::TEXT))
}
