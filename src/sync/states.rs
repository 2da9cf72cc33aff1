//! The states of files that a session holds, each with where its file is now.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use crate::{
    model::{GenerationNumber, OperationNumber, Run, State},
    report::Held,
    session::Session,
    sync::{Archive, SyncError},
};

/// Returns the states of files that a session holds, in order.
pub fn generations(archive: &Archive, session: &Session) -> Result<Vec<Held>, SyncError> {
    let tip = archive.store.state(session.key)?;
    let current = tip.position().map(|at| at.generation);
    let mut held = Vec::with_capacity(tip.generations.len());
    for (operation, generation) in &tip.generations {
        let end = tip.ends.get(&generation.n);
        let path = generation.file.and_then(|file| archive.path_of(tip.file(file)?));
        let aside = tip.rotations.iter().find(|(_, rotation)| rotation.old == generation.n);
        held.push(Held {
            generation: generation.n,
            file: path.map(|path| match aside {
                Some((_, aside)) => path.with_file_name(OsStr::from_bytes(&aside.aside)),
                None => path,
            }),
            entries: end.map_or(0, Run::end),
            bytes: end.map_or(0, Run::length),
            operation: *operation,
            container: container(&tip, generation.n).map(|(.., size)| size),
            is_current: Some(generation.n) == current,
        });
    }
    Ok(held)
}

/// Returns the compressed file that held a generation: its operation, its place among that one's files, and its size.
pub(crate) fn container(
    tip: &State,
    generation: GenerationNumber,
) -> Option<(OperationNumber, u64, u64)> {
    let mut newest = tip.containers.iter().rev();
    let found = newest.find(|(.., container)| container.generation == generation);
    found.map(|(operation, at, container)| (*operation, *at, container.size))
}
