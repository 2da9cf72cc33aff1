//! The steps of a change on the live file: create it, append to it, or exchange it for a successor.

use std::{os::unix::ffi::OsStrExt, path::PathBuf};

use crate::{
    archive::SyncError,
    change::draft::{Change, follow::Step},
    files::live_file::{LiveFile, length_of},
    live::{Fresh, WritableFile},
    model::{GenerationNumber, Rotation},
};

impl Change<'_> {
    /// Returns the length of a generation, including what this change added.
    pub(crate) fn length_of(&self, generation: GenerationNumber) -> u64 {
        let fresh = self.bulk.runs.iter().rev().find(|run| run.generation == generation);
        length_of(fresh.or_else(|| self.before.state.ends.get(&generation)))
    }
}

/// Makes the commit create an empty live file.
pub(crate) fn create_live(change: &mut Change<'_>, live: &LiveFile) -> Result<(), SyncError> {
    change.follow = (change.before.writable_file(live)?, Step::Create).into();
    Ok(())
}

/// Makes the commit begin another file of the agent, which becomes the live file.
pub(crate) fn begin_live(change: &mut Change<'_>, target: WritableFile, step: Step) {
    change.follow = (target, step).into();
}

/// Makes the commit append bytes to the live file.
pub(crate) fn append_live(
    change: &mut Change<'_>,
    bytes: Vec<u8>,
    end: u64,
) -> Result<(), SyncError> {
    if let Some(live) = change.before.live_file() {
        let target = change.before.writable_file(&live)?;
        change.follow = (target, Step::Append { attached: live.attached, bytes, end }).into();
    }
    Ok(())
}

/// Makes the commit exchange the live file for a successor; `old` is the generation of the old file.
pub(crate) fn exchange_live(
    change: &mut Change<'_>,
    live: &LiveFile,
    fresh: Fresh,
    old: GenerationNumber,
    new: GenerationNumber,
) -> Result<PathBuf, SyncError> {
    let io = SyncError::at(&live.path);
    let (target, attached) = (fresh.live().clone(), live.attached);
    let seen = target.look().map_err(io)?;
    let aside = target.aside(change.before.state.generations.len() as u64, &|names| {
        change.before.format.archived_name(names)
    });
    let aside = aside.map_err(io)?;
    let path = aside.path().to_owned();
    change.facts.rotations.push(Rotation {
        file: live.n,
        aside: path.file_name().map(|name| name.as_bytes().to_vec()).unwrap_or_default(),
        old,
        new,
        inode: seen.map_or(0, |seen| seen.inode),
        // Lines that the agent has appended since are not in the store; they are imported late.
        length: seen.map_or(0, |_| change.length_of(old)),
    });
    let fresh = Some(Box::new(fresh));
    change.follow = (target, Step::Exchange { attached, aside, fresh }).into();
    Ok(path)
}
