//! Unfinished lines: what was read of lines before they were finished.

use std::collections::BTreeSet;

use crate::{
    model::{GenerationNumber, OperationNumber, Run, State},
    ops::OpsError,
    sync::Archive,
};

/// Returns the unfinished lines that were read of any session.
pub(super) fn unfinished_lines(archive: &Archive) -> Result<BTreeSet<Vec<u8>>, OpsError> {
    let mut lines = BTreeSet::new();
    for session in archive.every()? {
        for (_, run) in archive.store().growths(session.key, OperationNumber::ALL)? {
            lines.extend(run.unfinished().map(<[u8]>::to_vec));
        }
    }
    Ok(lines)
}

/// Returns whether a run is the end of what its file holds now: its unfinished line is the beginning of none that is finished.
pub(super) fn is_current(state: &State, run: &Run) -> bool {
    let is_later = |generation: GenerationNumber| {
        let file = state.file_of(run.generation);
        generation > run.generation && file.is_some() && state.file_of(generation) == file
    };
    state.ends.get(&run.generation) == Some(run) && !state.next_generation().earlier().any(is_later)
}
