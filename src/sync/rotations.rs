//! Rotations: the files that were set aside, and whether their content is unchanged.

use std::{collections::BTreeMap, io::Read, os::unix::ffi::OsStrExt};

use crate::{
    disk::{self, Links},
    live,
    model::{EntryId, LineId, Rotation, Running},
    report::{Rotated, RotatedState},
    session::Session,
    sync::{
        Archive, SyncError,
        live_file::{LiveFile, live_file},
    },
    wire::jsonl::Reader,
};

/// Returns the files that were set aside, in order, each checked by its hash.
pub fn rotations(archive: &Archive, session: &Session) -> Result<Vec<Rotated>, SyncError> {
    let tip = archive.store.state(session.key)?;
    let Some(LiveFile { path: live, .. }) = live_file(archive, &tip) else {
        return Ok(Vec::new());
    };
    let covered = tip.coverings();
    let mut rotated = Vec::new();
    for (n, rotation) in &tip.rotations {
        let by = archive.store.operations(session.key, n.alone())?.pop();
        let path = live.with_file_name(std::ffi::OsStr::from_bytes(&rotation.aside));
        rotated.push(Rotated {
            operation: *n,
            command: by.map_or("", |by| by.command.as_str()),
            state: state(archive, session, &live, &path, (rotation, &covered))?,
            length: rotation.length,
            path,
        });
    }
    Ok(rotated)
}

fn state(
    archive: &Archive,
    session: &Session,
    live: &std::path::Path,
    path: &std::path::Path,
    (rotation, covered): (&Rotation, &BTreeMap<LineId, LineId>),
) -> Result<RotatedState, SyncError> {
    let io = |source| SyncError::Io { path: path.to_owned(), source };
    let seen = live::look(path).map_err(io)?;
    // The old file's number may have been given to another one, if the old one lies where it was to be set aside.
    let is_elsewhere = seen.is_some_and(|seen| seen.inode != rotation.inode);
    let is_old = |live: live::Seen| live.inode == rotation.inode && !is_elsewhere;
    if live::look(live).map_err(io)?.is_some_and(is_old) {
        return Ok(RotatedState::Pending);
    }
    let Some(seen) = seen else { return Ok(RotatedState::Deleted) };
    let runs = archive.store.runs(session.key, rotation.old, 0)?;
    let (running, tail) =
        runs.last().map_or((Running::EMPTY, &[][..]), |run| (run.running, run.tail.as_slice()));
    let length = runs.last().map_or(0, |run| run.bytes) + tail.len() as u64;
    let file = disk::open(path, Links::Refuse).map_err(io)?.take(length);
    let found = running_hash(file, covered)?;
    Ok(if (found.0, found.1.as_slice()) != (running, tail) {
        RotatedState::Changed
    } else if seen.length == length {
        RotatedState::Whole
    } else if seen.inode == rotation.inode {
        RotatedState::Grown
    } else {
        RotatedState::Changed
    })
}

/// Returns the running hash and the tail of a file as it stands, with covered lines taken for those that came.
pub(crate) fn running_hash(
    file: impl std::io::Read,
    covered: &BTreeMap<LineId, LineId>,
) -> Result<(Running, Vec<u8>), SyncError> {
    let mut reader = Reader::new(file);
    let mut running = Running::EMPTY;
    let mut before: Option<EntryId> = None;
    while let Some(located) = reader.next_line()? {
        let line = located.line;
        let named = line.shape.is_some_and(|shape| shape.name.is_some());
        let line_id = LineId::of(line.bytes);
        let line_id = covered.get(&line_id).copied().unwrap_or(line_id);
        let id = EntryId::of(before.filter(|_| !named), line_id);
        running = running.then(line.separator, id);
        before = Some(id);
    }
    Ok((running, reader.into_tail().bytes))
}
