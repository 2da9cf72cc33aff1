//! Gone files: what somebody deleted of a session's files, such as an agent its old transcripts.

use std::{fs, io::ErrorKind, path::Path};

use crate::{
    model::{FileNumber, GenerationNumber, State},
    sync::{
        Archive,
        live_file::{LiveFile, live_file},
    },
};

/// Returns whether a path holds no file; a path that cannot be looked at may hold one.
pub(crate) fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Returns the file in which the agent had a session, if it is gone.
pub(crate) fn lost(archive: &Archive, state: &State) -> Option<LiveFile> {
    let live = match live_file(archive, state) {
        Some(live) => Some(live).filter(|live| live.attached),
        // One that is known to be gone: the newest.
        None => newest(state)
            .filter(|(n, _)| state.gone.contains(n))
            .filter_map(|(n, _)| {
                Some(LiveFile { n, path: archive.path_of(state.file(n)?)?, attached: true })
            })
            .next_back(),
    };
    live.filter(|live| is_gone(&live.path))
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
