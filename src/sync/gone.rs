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
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Returns the file in which the agent had a session, if it is gone: its live file, or the newest of a session that has none,
/// because no agent resumes it or because that file is known to be gone.
pub(crate) fn lost(archive: &Archive, session: &Session, state: &State) -> Option<LiveFile> {
    let live = match live_file(archive, state) {
        Some(live) => Some(live).filter(|live| live.attached),
        None if state.live.is_some() => None,
        None => newest(state).rev().find_map(|(n, _)| agents(archive, session, state, n)),
    };
    live.filter(|live| is_gone(&live.path))
}

/// Returns a file of a session, if it lies where its agent reads it, or did.
fn agents(archive: &Archive, session: &Session, state: &State, n: FileNumber) -> Option<LiveFile> {
    let place = state.file(n).filter(|place| !matches!(place, Place::Store(_)))?;
    let path = archive.path_of(place)?;
    let is_agents =
        state.gone.contains(&n) || archive.writable.has(session.format.name(), path.parent()?);
    is_agents.then_some(LiveFile { n, path, attached: true })
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
