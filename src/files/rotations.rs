//! Rotations: lists the files that were set aside and checks whether their content is unchanged.

use std::{
    collections::{BTreeMap, VecDeque},
    ffi::OsStr,
    io::Read,
    ops::Range,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use crate::{
    archive::{At, SyncError},
    disk::{self, Links},
    files::{deletion::is_gone, live_file::LiveFile},
    live,
    model::{EntryId, EntryNumber, LineId, Rotation, Run, Running},
    report::{Rotated, RotatedState},
    store::{SessionKey, Store, StoreError},
    wire::jsonl::{ReadError, Reader},
};

/// Returns the set-aside files in order, each checked against its running hash.
pub fn rotations(session: &At<'_>) -> Result<Vec<Rotated>, SyncError> {
    let covered = session.state.coverings();
    let mut rotated = Vec::new();
    for (n, rotation) in &session.state.rotations {
        // The session may have another live file by now, or none.
        let Some(LiveFile { path: live, .. }) = session.file(rotation.file) else {
            continue;
        };
        let by = session.store.operations(session.key, n.alone())?.pop();
        let next_to = |live: &Path| live.with_file_name(OsStr::from_bytes(&rotation.aside));
        let there = next_to(&live);
        // The set-aside file may have been moved together with the live file.
        let moved = session.live_file().map(|now| next_to(&now.path));
        let path = moved.filter(|path| is_gone(&there) && !is_gone(path)).unwrap_or(there);
        // Only the newest can be pending: every change first finishes the one before.
        let is_newest = session.state.newest.is_some_and(|newest| newest.n == *n);
        let state = state(session, &live, &path, rotation, is_newest, &covered);
        let (state, why) = match state {
            Ok(state) => (state, None),
            Err(error) => (RotatedState::Unread, Some(unread(error)?)),
        };
        rotated.push(Rotated {
            operation: *n,
            command: by.map_or("", |by| by.command.as_str()),
            state,
            why,
            length: rotation.length,
            path,
        });
    }
    Ok(rotated)
}

/// Returns a description of why a file cannot be read; any other error is passed on.
pub(crate) fn unread(error: SyncError) -> Result<String, SyncError> {
    match error {
        SyncError::Io { source, .. } | SyncError::Read(ReadError::Io { source, .. }) => {
            Ok(disk::words(&source))
        }
        SyncError::Read(error) => Ok(error.to_string()),
        error => Err(error),
    }
}

fn state(
    session: &At<'_>,
    live: &Path,
    path: &Path,
    rotation: &Rotation,
    is_newest: bool,
    covered: &BTreeMap<LineId, LineId>,
) -> Result<RotatedState, SyncError> {
    let io = SyncError::at(path);
    let seen = live::look(path).map_err(io)?;
    // If the set-aside name has another inode, that of the old file may have been reused.
    let is_elsewhere = seen.is_some_and(|seen| seen.inode != rotation.inode);
    let is_old = |live: live::Seen| live.inode == rotation.inode && !is_elsewhere;
    if is_newest && live::look(live).map_err(io)?.is_some_and(is_old) {
        return Ok(RotatedState::Pending);
    }
    let Some(seen) = seen else { return Ok(RotatedState::Deleted) };
    let runs = session.store.runs(session.key, rotation.old, 0)?;
    let (running, tail) =
        runs.last().map_or((Running::EMPTY, &[][..]), |run| (run.running, run.tail.as_slice()));
    let length = runs.last().map_or(0, Run::length);
    let file = disk::open(path, Links::Refuse).map_err(io)?.take(length);
    let mut links = Linked::of(session.store, session.key, &runs);
    let found = running_hash(file, covered, &mut links)?;
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

/// How many entries to read at a time.
const BATCH: usize = 1 << 12;

/// The links of the entries that a file should contain, in file order.
///
/// An entry's link never changes, but the linked entry need not be in the file: a revert that does not break a line leaves a gap.
pub(crate) struct Linked<'a> {
    store: &'a dyn Store,
    session: SessionKey,
    batches: Box<dyn Iterator<Item = Range<EntryNumber>> + 'a>,
    /// Links that were read but not returned yet.
    ready: VecDeque<Option<EntryId>>,
    /// The entry read last.
    last: Option<(EntryNumber, EntryId)>,
}

impl<'a> Linked<'a> {
    pub(crate) fn of(store: &'a dyn Store, session: SessionKey, runs: &'a [Run]) -> Self {
        let batches = runs.iter().flat_map(|run| EntryNumber::batches(run.entries(), BATCH));
        let (batches, ready) = (Box::new(batches), VecDeque::new());
        Self { store, session, batches, ready, last: None }
    }

    /// Returns the link of the next entry. After the last entry, or from a missing one on, returns `beyond`.
    fn next_or(&mut self, beyond: Option<EntryId>) -> Result<Option<EntryId>, StoreError> {
        while self.ready.is_empty() {
            let Some(batch) = self.batches.next() else { return Ok(beyond) };
            let first = batch.start;
            let entries = self.store.entries(self.session, batch.clone())?;
            if entries.len() as u64 != batch.end.since(first) {
                self.batches = Box::new(std::iter::empty());
            }
            let there = entries.into_iter().zip(first.onwards()).take_while(|(e, n)| e.n == *n);
            for (entry, n) in there {
                let link = match (entry.link, self.last) {
                    (None, _) => None,
                    (Some(link), Some((last, id))) if last == link => Some(id),
                    (Some(link), _) => {
                        let linked = self.store.entries(self.session, link.alone())?.pop();
                        linked.map(|linked| linked.id)
                    }
                };
                self.ready.push_back(link);
                self.last = Some((n, entry.id));
            }
        }
        Ok(self.ready.pop_front().unwrap_or(beyond))
    }
}

/// Returns the running hash and the tail of a file. A redacted line counts as its original, and each line is linked like the
/// entry that should be there.
pub(crate) fn running_hash(
    file: impl std::io::Read,
    covered: &BTreeMap<LineId, LineId>,
    links: &mut Linked<'_>,
) -> Result<(Running, Vec<u8>), SyncError> {
    let mut reader = Reader::new(file);
    let mut running = Running::EMPTY;
    let mut before: Option<EntryId> = None;
    while let Some(located) = reader.next_line()? {
        let line = located.line;
        let named = line.shape.is_some_and(|shape| shape.name.is_some());
        let line_id = LineId::of(line.bytes);
        let line_id = covered.get(&line_id).copied().unwrap_or(line_id);
        let link = links.next_or(before.filter(|_| !named))?;
        let id = EntryId::of(link, line_id);
        running = running.then(line.separator, id);
        before = Some(id);
    }
    Ok((running, reader.into_tail().bytes))
}
