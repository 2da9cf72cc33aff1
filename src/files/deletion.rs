//! Deleted files: finds out which of a session's files were deleted, for example old transcripts by their agent.

use std::{
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, At, SyncError},
    disk,
    files::{
        live_file::{LiveFile, length_of},
        mover::last_live,
        siblings, sources,
    },
    model::{FileNumber, GenerationNumber, Place, State, Timestamp},
};

/// Returns true if there is no file at this path. A path that cannot be looked at counts as existing.
pub(crate) fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| disk::is_absent(&error))
}

/// Returns the last known modification time of a file that may have been deleted, if the store has a sighting of it.
pub(crate) fn used(archive: &Archive, path: &Path) -> Result<Option<Timestamp>, SyncError> {
    let seen = archive.store.sighting(path.as_os_str().as_bytes())?;
    Ok(seen.map(|seen| Timestamp(seen.modified / 1_000_000)))
}

/// Returns the file where the agent had the session, if it was deleted and is nowhere else. If it still exists, returns the
/// first deleted file that it continues from: without it the agent does not resume the session.
pub(crate) fn lost(session: &At<'_>) -> Result<Option<LiveFile>, SyncError> {
    match missing(session)? {
        Some(file) => Ok(Some(file).filter(|file| elsewhere(session, file).is_none())),
        None => lost_base(session),
    }
}

/// Returns the first file that the live file continues from and that was deleted and is nowhere else.
pub(crate) fn lost_base(session: &At<'_>) -> Result<Option<LiveFile>, SyncError> {
    let Some(live) = session.attached() else {
        return Ok(None);
    };
    if siblings::name(session.format, &live.path).is_none() {
        return Ok(None);
    }
    let held = newest(&session.state).find(|(n, _)| *n == live.n);
    let gone = newest(&session.state).filter_map(|(n, _)| session.file(n));
    let gone: Vec<LiveFile> = gone
        .filter(|file| file.attached && file.n != live.n && is_gone(&file.path))
        .filter(|file| elsewhere(session, file).is_none())
        .collect();
    let Some((_, held)) = held.filter(|_| !gone.is_empty()) else { return Ok(None) };
    let mut bases = Vec::new();
    let view = session.whole(held);
    view.climb(&mut |view| {
        bases.extend(session.state.file_of(view.position.generation));
        Ok(())
    })?;
    Ok(gone.into_iter().find(|file| bases.contains(&file.n)))
}

/// Returns the file where the agent had the session, if it is missing: the live file, or, for a session without one, the file
/// that the agent read last. A session has no live file if no agent resumes it or if the file is known to be deleted.
pub(crate) fn missing(session: &At<'_>) -> Result<Option<LiveFile>, SyncError> {
    let live = match session.live_file() {
        Some(live) => Some(live).filter(|live| live.attached),
        None if session.state.live.is_some() => None,
        None => last_of_agent(session)?,
    };
    Ok(live.filter(|live| is_gone(&live.path)))
}

/// Returns the new path of a file that its agent moved or compressed. A shorter file is a copy of an older state and does not
/// count.
pub(crate) fn elsewhere(session: &At<'_>, file: &LiveFile) -> Option<PathBuf> {
    let state = &session.state;
    let held = |n: FileNumber| {
        let (_, generation) = newest(state).find(|(file, _)| *file == n)?;
        Some(length_of(state.ends.get(&generation)))
    };
    let length = held(file.n).unwrap_or(0);
    let is_it = |path: &PathBuf| {
        let Ok(found) = sources::length(path) else { return false };
        let known = || {
            let place = session.archive.place_of(path);
            let mut files = FileNumber::FIRST.onwards().zip(&state.files);
            files.find(|(_, known)| **known == place).and_then(|(n, _)| held(n))
        };
        found.or_else(known).is_none_or(|found| found >= length)
    };
    siblings::namesakes(session.format, &file.path).into_iter().find(is_it)
}

/// For a session without a live file, returns the file that its agent read last; nothing if none of its files was deleted.
fn last_of_agent(session: &At<'_>) -> Result<Option<LiveFile>, SyncError> {
    let located = |(n, _)| {
        let place = session.state.file(n).filter(|place| !matches!(place, Place::Store(_)))?;
        let path = session.archive.path_of(place)?;
        let is_read = !sources::is_set_aside(&path, session.format);
        is_read.then_some(LiveFile { n, path, attached: true })
    };
    let mut files: Vec<LiveFile> = newest(&session.state).filter_map(located).collect();
    // Usually all files exist. Then no folder needs to be resolved.
    if !files.iter().any(|file| is_gone(&file.path)) {
        return Ok(None);
    }
    // The file that was deleted while it was the live file takes precedence over any copy found later.
    let last = last_live(session.store, session.key, &session.state)?
        .filter(|n| session.state.gone.contains(n));
    if let Some(last) = last.and_then(|last| files.iter().find(|file| file.n == last)) {
        return Ok(Some(last.clone()));
    }
    let is_agents = |file: &LiveFile| {
        let folder = file.path.parent();
        session.state.gone.contains(&file.n)
            || folder
                .is_some_and(|folder| session.archive.writable.has(session.format.name(), folder))
    };
    files.retain(is_agents);
    Ok(files.pop())
}

/// Returns the files of a session with the newest generation of each, sorted by generation.
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
