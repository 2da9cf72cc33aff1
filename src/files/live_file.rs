//! The live file of a session: where it is, and whether it is as the store left it.

use std::{
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, At, Places, SyncError},
    disk::{self, Links},
    live::{self, Seen, Writable, WritableFile},
    model::{FileNumber, Place, Run, SessionName, State},
    store::Mark,
};

/// A session's current or former live file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveFile {
    /// Its number in the session.
    pub(crate) n: FileNumber,
    /// Its path.
    pub(crate) path: PathBuf,
    /// True if it is the agent's own file, false if the store's.
    pub(crate) attached: bool,
}

/// Returns a session's live file.
pub(crate) fn live_file(archive: &Archive, tip: &State) -> Option<LiveFile> {
    file_of(archive, tip, tip.live?)
}

/// Returns the agent's deleted file if the session's current generation is in it and the session has no live file. It may exist
/// again.
pub(crate) fn deleted(archive: &Archive, tip: &State) -> Option<LiveFile> {
    let n = tip.file_of(tip.generation())?;
    let is_deleted = tip.live.is_none() && tip.gone.contains(&n);
    file_of(archive, tip, n).filter(|file| is_deleted && file.attached)
}

/// Returns a file of a session, if its place is on this machine.
pub(crate) fn file_of(archive: &Archive, tip: &State, n: FileNumber) -> Option<LiveFile> {
    located(tip, n, |place| archive.path_of(place))
}

impl At<'_> {
    /// Returns the live file.
    pub(crate) fn live_file(&self) -> Option<LiveFile> {
        live_file(self.archive, &self.state)
    }

    /// Returns the live file if it is the agent's own.
    pub(crate) fn attached(&self) -> Option<LiveFile> {
        self.live_file().filter(|live| live.attached)
    }

    /// Returns a file of the session, if its place is on this machine.
    pub(crate) fn file(&self, n: FileNumber) -> Option<LiveFile> {
        file_of(self.archive, &self.state, n)
    }
}

impl Places {
    /// Returns a session's live file.
    pub(crate) fn live_file(&self, tip: &State) -> Option<LiveFile> {
        located(tip, tip.live?, |place| self.path_of(place))
    }
}

fn located(
    tip: &State,
    n: FileNumber,
    path_of: impl Fn(&Place) -> Option<PathBuf>,
) -> Option<LiveFile> {
    let place = tip.file(n)?;
    let attached = !matches!(place, Place::Store(_));
    Some(LiveFile { n, path: path_of(place)?, attached })
}

/// Returns true if the live file is not as the store left it, as far as a read-only command can tell.
pub(crate) fn is_behind(archive: &Archive, tip: &State) -> Result<bool, SyncError> {
    let Some(LiveFile { path, attached, .. }) = live_file(archive, tip) else {
        return Ok(false);
    };
    if attached {
        return is_longer_or_shorter(path, expected(tip));
    }
    let seen = live::look(&path).map_err(SyncError::at(&path))?;
    let is_left = |seen: Seen| seen.length == expected(tip) && seen.stamp == Some(tip.at());
    Ok(!seen.is_some_and(is_left) || ends_in_zero(&path, tip))
}

/// Returns true if a live file ends in a zero byte that the store did not write. After a power cut a file may have its full
/// length and its time, but zeros instead of its last bytes.
pub(crate) fn ends_in_zero(path: &Path, tip: &State) -> bool {
    let length = expected(tip);
    if length == 0 || tip.growth().is_some_and(|end| end.tail.last() == Some(&0)) {
        return false;
    }
    let mut last = [1];
    let read = disk::open(path, Links::Refuse).and_then(|file| file.read_at(&mut last, length - 1));
    read.is_ok() && last == [0]
}

/// Returns true if an agent's own file exists and its length is not the expected one.
fn is_longer_or_shorter(path: PathBuf, expected: u64) -> Result<bool, SyncError> {
    match live::look(&path) {
        Ok(Some(seen)) => Ok(seen.length != expected),
        // A dangling link exists, but is not a file.
        Ok(None) => Ok(path.is_symlink()),
        Err(source) => Err(SyncError::Io { path, source }),
    }
}

/// Returns a mark for a cheap check whether the live file has changed. It is valid until the session's next operation.
pub(crate) fn mark(archive: &Archive, tip: &State) -> Mark {
    match (tip.live, live_file(archive, tip).or_else(|| deleted(archive, tip))) {
        (None, None) => Mark::Nothing,
        (_, Some(LiveFile { path, attached: true, .. })) => {
            Mark::File { path, length: expected(tip) }
        }
        _ => Mark::Unknown,
    }
}

/// Returns true if a session's live file may have changed, according to its mark.
pub(crate) fn may_be_behind(archive: &Archive, mark: &Mark) -> bool {
    match mark {
        Mark::Nothing => false,
        Mark::File { path, length } => {
            archive.is_preview && is_longer_or_shorter(path.clone(), *length).unwrap_or(true)
        }
        Mark::Unknown => true,
    }
}

/// Returns true if one of the store's own transcripts has the stamp of an operation that the store does not have.
///
/// Times of whole seconds prove nothing: some file systems and some copy programs store only whole seconds.
pub(crate) fn is_ahead(seen: &Seen, tip: &State) -> bool {
    seen.stamp.is_some_and(|at| at > tip.at() && at.0 % 1000 != 0)
}

/// Returns the expected length of the live file.
pub(crate) fn expected(tip: &State) -> u64 {
    length_of(tip.growth())
}

/// Returns the length of a file whose content ends with this run.
pub(crate) fn length_of(end: Option<&Run>) -> u64 {
    end.map_or(0, Run::length)
}

impl Archive {
    /// Returns a live file as one that may be written.
    pub(crate) fn writable_file(
        &self,
        session: &SessionName,
        live: &LiveFile,
    ) -> Result<WritableFile, SyncError> {
        let file = match &self.root {
            Some(root) if !live.attached => Writable::transcript(&self.disk, root, &live.path),
            _ => self.writable.agents_file(&self.disk, &session.format, &live.path),
        };
        file.map_err(|why| SyncError::denied(session, &live.path, why))
    }
}
