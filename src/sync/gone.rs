//! Gone files: what somebody deleted of a session's files, such as an agent its old transcripts.

use std::{fs, io::ErrorKind, path::Path};

use crate::{
    model::{FileNumber, GenerationNumber, Place, State},
    session::Session,
    sync::{
        Archive,
        live_file::{LiveFile, live_file},
    },
};

/// Returns whether a path holds no file; a path that cannot be looked at may hold one.
pub(crate) fn is_gone(path: &Path) -> bool {
    let is_nowhere = |kind| matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory);
    fs::symlink_metadata(path).is_err_and(|error| is_nowhere(error.kind()))
}

/// Returns the file in which the agent had a session, if it is gone: its live file, or the newest of a session that has none,
/// because no agent resumes it or because that file is known to be gone.
pub(crate) fn lost(archive: &Archive, session: &Session, state: &State) -> Option<LiveFile> {
    let live = match live_file(archive, state) {
        Some(live) => Some(live).filter(|live| live.attached),
        None if state.live.is_some() => None,
        None => newest_of_agent(archive, session, state),
    };
    live.filter(|live| is_gone(&live.path))
}

/// Returns whether the file in which the agent had a session is gone.
pub(crate) fn has_lost(archive: &Archive, session: &Session, state: &State) -> bool {
    lost(archive, session, state).is_some()
}

/// Returns the newest file of a session that lies where its agent reads it, or did; none if no file of the session is gone.
fn newest_of_agent(archive: &Archive, session: &Session, state: &State) -> Option<LiveFile> {
    let located = |(n, _)| {
        let place = state.file(n).filter(|place| !matches!(place, Place::Store(_)))?;
        Some(LiveFile { n, path: archive.path_of(place)?, attached: true })
    };
    let mut files: Vec<LiveFile> = newest(state).filter_map(located).collect();
    // Most are there, and then no folder has to be resolved.
    if !files.iter().any(|file| is_gone(&file.path)) {
        return None;
    }
    let is_agents = |file: &LiveFile| {
        let folder = file.path.parent();
        state.gone.contains(&file.n)
            || folder.is_some_and(|folder| archive.writable.has(session.format.name(), folder))
    };
    files.retain(is_agents);
    files.pop()
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
