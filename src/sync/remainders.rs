//! Remainders: the successors of files that a change which was cut short never put in their places, next to any file of a session,
//! whether that is there or not. Where an agent goes on in another file, that of a file which no session knows, too.
//!
//! Invariant: a successor for which a rotation waits is no remainder.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    live::{self, WritableFile, fresh_path},
    model::{FileNumber, State},
    session::Session,
    sync::{
        Archive, SyncError,
        beside::{self, Unplaced},
        file,
        gone::is_gone,
        live_file::{file_of, live_file},
    },
};

/// Returns the remainders next to the files of all sessions that can be read, each with whether it may be deleted.
pub(crate) fn remainders(archive: &Archive) -> Result<Vec<(PathBuf, bool)>, SyncError> {
    let mut found = Vec::new();
    let mut unplaced = Unplaced::default();
    for session in archive.every()? {
        let state = archive.store().state(session.key);
        let looked = state.map_err(SyncError::from);
        match looked.and_then(|state| of_session(archive, &session, &state, &mut unplaced)) {
            Ok(here) => found.extend(here.into_iter().map(|(path, to)| (path, to.is_some()))),
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Returns the remainders next to the files of a session, each with its file if that may be written.
pub(super) fn of_session(
    archive: &Archive,
    session: &Session,
    state: &State,
    unplaced: &mut Unplaced,
) -> Result<Vec<(PathBuf, Option<WritableFile>)>, SyncError> {
    let mut found = Vec::new();
    let (mut met, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    for (n, _) in FileNumber::FIRST.onwards().zip(&state.files) {
        let Some(file) = file_of(archive, state, n) else { continue };
        let rotations = state.rotations.iter().filter(|_| !state.sidecars.contains_key(&n));
        let asides = rotations.map(|(_, rotation)| OsStr::from_bytes(&rotation.aside));
        for name in file.path.file_name().into_iter().chain(asides) {
            let path = fresh_path(&file.path.with_file_name(name));
            met.insert(path.clone());
            if is_gone(&path) || found.iter().any(|(known, _)| *known == path) {
                continue;
            }
            let live = archive.writable_file(&session.name, &file).ok();
            let is_live = state.live == Some(n);
            if let Some(live) = live.as_ref().filter(|_| is_live)
                && file::is_only_set_aside(live, state)?
            {
                continue;
            }
            found.push((path, live.and_then(|live| live.sibling(name).ok())));
        }
        elsewhere.append(&mut unplaced.of(session.format, &file.path));
    }
    for path in elsewhere.difference(&met) {
        found.push((path.clone(), target(archive, session, path)));
    }
    Ok(found)
}

/// Deletes what was left of a change that began another file for a session, in whichever folder it is.
pub(super) fn sweep(archive: &Archive, session: &Session, state: &State) {
    let live = live_file(archive, state).filter(|live| live.attached);
    let begun = live.as_ref().and_then(|live| beside::name(session.format, &live.path));
    let Some((live, begun)) = live.zip(begun) else { return };
    for path in Unplaced::since(begun.begun).of(session.format, &live.path) {
        if let Some(target) = target(archive, session, &path) {
            // What cannot be deleted now is later, and hinders nothing.
            let _later = target.sweep();
        }
    }
}

/// Returns the file in whose place a successor was to be put, if that may be written.
fn target(archive: &Archive, session: &Session, fresh: &Path) -> Option<WritableFile> {
    let format = session.format.name();
    archive.writable.agents_file(&archive.disk, format, &live::placed(fresh)?).ok()
}
