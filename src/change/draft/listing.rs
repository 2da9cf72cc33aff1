//! Listing: some agents take a session only from a folder that is in a list of theirs, which is written before the
//! session's file is.
//!
//! Invariant: the list is never written over: a complete one takes its place, and the old one keeps a name.

use std::io::{self, ErrorKind};

use crate::{
    archive::{Archive, SyncError},
    change::draft::follow::{Follow, Step},
    disk,
    live::{Denied, Writable, WritableFile},
    model::{SessionName, Timestamp},
    wire::Format,
};

/// Returns the step that puts the folder of a session's file into its agent's list, and that list, if it lacks the folder.
pub(crate) fn list_folder(
    archive: &Archive,
    format: &dyn Format,
    session: &SessionName,
    file: &WritableFile,
) -> Result<Option<(WritableFile, Step)>, SyncError> {
    let Some(list) = list_of(format, session, file)? else { return Ok(None) };
    let io = SyncError::at(list.path());
    let held = read(&list).map_err(io)?;
    // A listing that was cut short knew the folder.
    let begun = read(&list.successor()).map_err(io)?;
    let begun = format.listed_folder(file.path(), &begun);
    // What the store knows of the folder, an older list said.
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

/// Has a session's folder listed before its file is brought to where a commit said, or is put back where it was.
pub(crate) fn finish(
    archive: &Archive,
    format: &dyn Format,
    session: &SessionName,
    file: &WritableFile,
    at: Timestamp,
) -> Result<(), SyncError> {
    let Some(only) = list_folder(archive, format, session, file)? else { return Ok(()) };
    let mut follow = Follow::from(only);
    let is_preview = archive.is_preview;
    let done = follow.prepare(at, is_preview).and_then(|()| follow.carry_out(at));
    done.map(|_| ()).map_err(|(path, source)| SyncError::Io { path, source })
}

/// Deletes the successor of a list whose operation was never committed.
pub(crate) fn sweep(
    format: &dyn Format,
    session: &SessionName,
    file: &WritableFile,
) -> Result<(), SyncError> {
    match list_of(format, session, file)? {
        Some(list) => list.sweep().map_err(SyncError::at(list.path())),
        None => Ok(()),
    }
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
    match list.open() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        opened => opened.and_then(|file| disk::whole(file, disk::TEXT)),
    }
}
