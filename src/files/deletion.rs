//! Gone files: what somebody deleted of a session's files, such as an agent its old transcripts.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, SyncError},
    disk,
    files::{
        live_file::{LiveFile, file_of, length_of, live_file},
        mover::last_live,
        siblings, sources,
    },
    model::{FileNumber, GenerationNumber, Place, State, Timestamp},
    session::{Session, View},
    wire::Format,
};

/// Returns whether a path holds no file; a path that cannot be looked at may hold one.
pub(crate) fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| disk::is_absent(&error))
}

/// Returns when a file was written last that may be gone, as far as that was seen.
pub(crate) fn used(archive: &Archive, path: &Path) -> Result<Option<Timestamp>, SyncError> {
    let seen = archive.store.sighting(path.as_os_str().as_bytes())?;
    Ok(seen.map(|seen| Timestamp(seen.modified / 1_000_000)))
}

/// Returns the file in which the agent had a session, if it is deleted for good; else the first of those from which it goes on that
/// is, for without them the agent does not resume it.
pub(crate) fn lost(
    archive: &Archive,
    session: &Session,
    state: &State,
) -> Result<Option<LiveFile>, SyncError> {
    let missing = missing(archive, session, state)?;
    match missing {
        Some(file) => {
            Ok(Some(file).filter(|file| is_nowhere(archive, session.format, state, file)))
        }
        None => lost_base(archive, session, state),
    }
}

/// Returns the first of the files from which a session's live file goes on that is deleted for good.
pub(crate) fn lost_base(
    archive: &Archive,
    session: &Session,
    state: &State,
) -> Result<Option<LiveFile>, SyncError> {
    let Some(live) = live_file(archive, state).filter(|live| live.attached) else {
        return Ok(None);
    };
    if siblings::name(session.format, &live.path).is_none() {
        return Ok(None);
    }
    let held = newest(state).find(|(n, _)| *n == live.n);
    let gone = newest(state).filter_map(|(n, _)| file_of(archive, state, n));
    let gone: Vec<LiveFile> = gone
        .filter(|file| file.attached && file.n != live.n && is_gone(&file.path))
        .filter(|file| is_nowhere(archive, session.format, state, file))
        .collect();
    let Some((_, held)) = held.filter(|_| !gone.is_empty()) else { return Ok(None) };
    let mut bases = Vec::new();
    let view = View::whole(archive.store.as_ref(), session, state, held);
    view.climb(&mut |view| {
        bases.extend(state.file_of(view.position().generation));
        Ok(())
    })?;
    Ok(gone.into_iter().find(|file| bases.contains(&file.n)))
}

fn is_nowhere(archive: &Archive, format: &dyn Format, state: &State, file: &LiveFile) -> bool {
    elsewhere(archive, format, state, file).is_none()
}

/// Returns the file in which the agent had a session, if it is not in its place: its live file, or the one that the agent read
/// last of a session that has none, because no agent resumes it or because that file is known to be deleted.
pub(crate) fn missing(
    archive: &Archive,
    session: &Session,
    state: &State,
) -> Result<Option<LiveFile>, SyncError> {
    let live = match live_file(archive, state) {
        Some(live) => Some(live).filter(|live| live.attached),
        None if state.live.is_some() => None,
        None => last_of_agent(archive, session, state)?,
    };
    Ok(live.filter(|live| is_gone(&live.path)))
}

/// Returns where a file is that its agent put away or compressed. What is shorter than the file was is a copy of an older
/// state.
pub(crate) fn elsewhere(
    archive: &Archive,
    format: &dyn Format,
    state: &State,
    file: &LiveFile,
) -> Option<PathBuf> {
    let held = |n: FileNumber| {
        let (_, generation) = newest(state).find(|(file, _)| *file == n)?;
        Some(length_of(state.ends.get(&generation)))
    };
    let length = held(file.n).unwrap_or(0);
    let is_it = |path: &PathBuf| {
        let Ok(found) = sources::length(path) else { return false };
        let known = || {
            let place = archive.place_of(path);
            let mut files = FileNumber::FIRST.onwards().zip(&state.files);
            files.find(|(_, known)| **known == place).and_then(|(n, _)| held(n))
        };
        found.or_else(known).is_none_or(|found| found >= length)
    };
    siblings::namesakes(format, &file.path).into_iter().find(is_it)
}

/// Returns the file of a session without a live one that its agent read last; none if no file of the session was deleted.
fn last_of_agent(
    archive: &Archive,
    session: &Session,
    state: &State,
) -> Result<Option<LiveFile>, SyncError> {
    let located = |(n, _)| {
        let place = state.file(n).filter(|place| !matches!(place, Place::Store(_)))?;
        let path = archive.path_of(place)?;
        let is_read = !sources::is_set_aside(&path, session.format);
        is_read.then_some(LiveFile { n, path, attached: true })
    };
    let mut files: Vec<LiveFile> = newest(state).filter_map(located).collect();
    // Most are there, and then no folder has to be resolved.
    if !files.iter().any(|file| is_gone(&file.path)) {
        return Ok(None);
    }
    // Whatever copies of it were met later, the one that was deleted while it was the live file is the one.
    let last = last_live(archive.store(), session.key, state)?.filter(|n| state.gone.contains(n));
    if let Some(last) = last.and_then(|last| files.iter().find(|file| file.n == last)) {
        return Ok(Some(last.clone()));
    }
    let is_agents = |file: &LiveFile| {
        let folder = file.path.parent();
        state.gone.contains(&file.n)
            || folder.is_some_and(|folder| archive.writable.has(session.format.name(), folder))
    };
    files.retain(is_agents);
    Ok(files.pop())
}

/// Returns the files of a session, each with its newest generation, in the order of these.
pub(crate) fn newest(
    state: &State,
) -> impl DoubleEndedIterator<Item = (FileNumber, GenerationNumber)> {
    let files = state.generations.iter().filter_map(|(_, held)| Some((held.file?, held.n)));
    let mut newest: Vec<(FileNumber, GenerationNumber)> = Vec::new();
    for (file, generation) in files {
        newest.retain(|(known, _)| *known != file);
        newest.push((file, generation));
    }
    newest.into_iter()
}
