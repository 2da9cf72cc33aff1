//! The files of a session, including those set aside next to them; and remainders, the successors that an interrupted change
//! never moved into place. A remainder is next to any of these files, whether or not that file exists. If an agent keeps a
//! session in several files, a remainder may also belong to a file that no session has.
//!
//! Invariant: a successor that a rotation waits for is not a remainder.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    iter,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, At, SyncError},
    files::{
        deletion::is_gone,
        file,
        siblings::{self, Unplaced},
    },
    live::{self, WritableFile, fresh_path},
    model::FileNumber,
};

/// Returns the remainders of all readable sessions, each with whether it may be deleted.
pub(crate) fn remainders(archive: &Archive) -> Result<Vec<(PathBuf, bool)>, SyncError> {
    let mut found = Vec::new();
    let mut unplaced = Unplaced::default();
    for session in archive.every()? {
        let opened = archive.at(&session).map_err(SyncError::from);
        match opened.and_then(|session| of_session(&session, &mut unplaced)) {
            Ok(here) => found.extend(here.into_iter().map(|(path, to)| (path, to.is_some()))),
            Err(error) if error.is_damage() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// A file of a session, or one that was set aside.
pub(crate) struct Own {
    pub(crate) path: PathBuf,
    /// The file as one that may be written, or why it must not be.
    pub(crate) target: Result<WritableFile, SyncError>,
    /// Its number, or nothing if it was set aside.
    pub(crate) n: Option<FileNumber>,
    /// True if it is where an agent reads it.
    pub(crate) is_attached: bool,
}

/// Returns the files of a session, the live one first, each followed by the files set aside next to it. All set-aside names are
/// tried next to every file, because set-aside files may have been moved together with it.
pub(crate) fn own_files(session: &At<'_>) -> Vec<Own> {
    let numbers = FileNumber::FIRST.onwards().zip(&session.state.files).map(|(n, _)| n);
    let (mut own, mut met) = (Vec::new(), BTreeSet::new());
    for n in session.state.live.into_iter().chain(numbers) {
        let Some(file) = session.file(n) else { continue };
        let rotations =
            session.state.rotations.iter().filter(|_| !session.state.sidecars.contains_key(&n));
        for rotation in iter::once(None).chain(rotations.map(|(_, rotation)| Some(rotation))) {
            let name = rotation.map(|rotation| OsStr::from_bytes(&rotation.aside));
            let path = name.map_or(file.path.clone(), |name| file.path.with_file_name(name));
            if met.insert(path.clone()) {
                let target = session.archive.writable_file(&session.name, &file);
                let target = target.and_then(|target| match rotation {
                    Some(rotation) => file::aside_of(&target, rotation),
                    None => Ok(target),
                });
                let n = rotation.is_none().then_some(n);
                own.push(Own { path, target, n, is_attached: file.attached });
            }
        }
    }
    own
}

/// Returns the remainders next to a session's files, each with the file it would replace, if that may be written.
pub(crate) fn of_session(
    session: &At<'_>,
    unplaced: &mut Unplaced,
) -> Result<Vec<(PathBuf, Option<WritableFile>)>, SyncError> {
    let mut found = Vec::new();
    let (mut met, mut elsewhere) = (BTreeSet::new(), BTreeSet::new());
    for Own { path, target, n, .. } in own_files(session) {
        if n.is_some() {
            elsewhere.append(&mut unplaced.of(session.format, &path));
        }
        let path = fresh_path(&path);
        met.insert(path.clone());
        let target = target.ok();
        if is_gone(&path) {
            continue;
        }
        if let Some(live) = target.as_ref().filter(|_| n.is_some() && n == session.state.live)
            && file::is_only_set_aside(live, &session.state)?
        {
            continue;
        }
        found.push((path, target));
    }
    for path in elsewhere.difference(&met) {
        found.push((path.clone(), target(session, path)));
    }
    Ok(found)
}

/// Deletes the remainders of a change that was starting another file for the session, whichever folder they are in.
pub(crate) fn sweep(session: &At<'_>) {
    let live = session.attached();
    let begun = live.as_ref().and_then(|live| siblings::name(session.format, &live.path));
    let Some((live, begun)) = live.zip(begun) else { return };
    for path in Unplaced::since(begun.begun).of(session.format, &live.path) {
        if let Some(target) = target(session, &path) {
            // If it cannot be deleted now, a later command will do it.
            let _later = target.sweep();
        }
    }
}

/// Returns the file that a successor was to replace, if that may be written.
fn target(session: &At<'_>, fresh: &Path) -> Option<WritableFile> {
    let format = session.format.name();
    session.archive.writable.agents_file(&session.archive.disk, format, &live::placed(fresh)?).ok()
}
