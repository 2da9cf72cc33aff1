//! Catching up: before a session is changed, the store and the live file are brought to agree. Here it is the store's own;
//! an agent's is handled in `attached`.
//!
//! | the live file | what is done |
//! |---|---|
//! | has the expected length and the stamp of the newest operation | nothing |
//! | is still the old file of a committed rotation | the rotation is carried out |
//! | is not there | written anew |
//! | ends within the newest operation | the rest is appended |
//! | goes on behind its expected end | what came is taken in |
//! | holds everything, and more in between | taken in as a new generation |
//! | is anything else | set aside, taken in as a branch of its own, and written anew |
//!
//! A file that was set aside and goes on growing, because a program still holds it open, is taken in where it belongs.
//!
//! Invariant: no byte that another program wrote is overwritten or left out of the store.

use std::{
    ffi::OsStr,
    fmt,
    fs::{self, File},
    io::{self, ErrorKind, Seek, SeekFrom},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    attached,
    change::{Change, OUTSIDE},
    content,
    follow::LiveFile,
    sources,
};
use crate::{
    live::{self, WritableFile},
    model::{Command, Place, Position, Rotation, Run, State},
    ops::{Archive, OpsError, Session, View},
};

/// How many bytes before the expected end are compared when a file has grown.
const COMPARED: u64 = 64 << 10;

/// Something about the live file that a person should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Another program appended entries, which are taken in.
    Appended {
        /// How many.
        entries: u64,
        /// The operation that took them in.
        operation: u64,
    },
    /// A change that was cut short is carried out.
    Finished {
        /// The live file.
        path: PathBuf,
    },
    /// The live file was missing and is written anew.
    Restored {
        /// The live file.
        path: PathBuf,
    },
    /// The live file was changed by another program: its state is set aside and kept as a branch.
    SetAside {
        /// Where it is.
        aside: PathBuf,
        /// The branch that holds it.
        branch: String,
        /// The operation that took it in.
        operation: u64,
    },
    /// Another program wrote into another state of the agent's file, and that is followed.
    Followed {
        /// The agent's file.
        path: PathBuf,
        /// How many entries are new.
        entries: u64,
        /// The branch that keeps where the current one stood, if a command had put it there.
        left: Option<String>,
        /// The operation that took it in.
        operation: u64,
    },
    /// An agent that knew only the old state wrote behind it.
    Joined {
        /// How many entries.
        entries: u64,
        /// The branch that they joined.
        branch: String,
    },
    /// What the store puts off until there is more of it could not be done; nothing is lost by it.
    Unsettled {
        /// Why.
        why: String,
    },
    /// The live file lies on another computer, or in another account: only the store is changed.
    Elsewhere,
    /// The agent's file is gone, and the session goes on without it.
    Gone {
        /// Where it was.
        path: PathBuf,
    },
    /// A file that was set aside has grown, and what came is taken in.
    Late {
        /// The file.
        aside: PathBuf,
        /// How many entries.
        entries: u64,
        /// The branch that they joined.
        branch: Option<String>,
    },
}

impl Notice {
    /// Returns the operation that took something in, and how many entries.
    pub(super) fn taken_in(&self) -> Option<(u64, u64)> {
        match self {
            Self::Appended { entries, operation } | Self::Followed { entries, operation, .. } => {
                Some((*operation, *entries))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Appended { entries, .. } => {
                let noun = if *entries == 1 { "entry" } else { "entries" };
                write!(f, "took in {entries} {noun} that another program appended to the live file")
            }
            Self::Finished { path } => {
                write!(f, "an interrupted change of {} is carried out", path.display())
            }
            Self::Restored { path } => {
                write!(f, "{} was missing and is written anew", path.display())
            }
            Self::SetAside { aside, branch, .. } => write!(
                f,
                "another program rewrote the live file; what it wrote is kept as {} and as branch {branch}",
                aside.display()
            ),
            Self::Followed { path, entries, left, .. } => {
                let noun = if *entries == 1 { "new entry" } else { "new entries" };
                write!(
                    f,
                    "{} was rewritten; its state is followed, {entries} {noun}",
                    path.display()
                )?;
                left.as_ref()
                    .map_or(Ok(()), |left| write!(f, "; what stood there is branch {left}"))
            }
            Self::Joined { entries, branch } => {
                let noun = if *entries == 1 { "entry" } else { "entries" };
                write!(
                    f,
                    "{entries} {noun} from an agent that knew only the old state joined branch {branch}"
                )
            }
            Self::Unsettled { why } => write!(
                f,
                "the change is made, but the store could not be put in order: {why}; it is tried again later"
            ),
            Self::Elsewhere => f.write_str(
                "the session's file lies on another computer or in another account; only the store is changed",
            ),
            Self::Gone { path } => {
                write!(f, "{} is gone; the session goes on without it", path.display())
            }
            Self::Late { aside, entries, branch } => {
                let noun = if *entries == 1 { "entry" } else { "entries" };
                write!(f, "{entries} {noun} came late to {}", aside.display())?;
                branch.as_ref().map_or(Ok(()), |branch| write!(f, " and joined branch {branch}"))
            }
        }
    }
}

/// Returns a session's live file.
pub(super) fn live_file(archive: &Archive, tip: &State) -> Option<LiveFile> {
    let n = tip.live?;
    let place = tip.file(n)?;
    let attached = !matches!(place, Place::Store(_));
    Some(LiveFile { n, path: archive.path_of(place)?, attached })
}

/// Keeps how an agent's file looks now that all of it is in the store.
pub(super) fn saw(archive: &Archive, live: &WritableFile) -> Result<(), OpsError> {
    let meta = live.open().and_then(|file| file.metadata()).map_err(failed(live))?;
    let mut writing = archive.store.begin()?;
    writing.sight(&[sources::sighting(live.path(), &meta)])?;
    writing.commit()?;
    Ok(())
}

/// Returns the error of an access to a live file.
pub(super) fn failed(live: &WritableFile) -> impl Fn(io::Error) -> OpsError + use<> {
    let path = live.path().to_owned();
    move |source| OpsError::Io { path: path.clone(), source }
}

/// What a reading command may say about the live file without touching it.
pub(super) fn is_behind(archive: &Archive, tip: &State) -> Result<bool, OpsError> {
    let Some(LiveFile { path, attached, .. }) = live_file(archive, tip) else {
        return Ok(false);
    };
    let seen = live::look(&path).map_err(|source| OpsError::Io { path, source })?;
    if attached {
        return Ok(seen.is_some_and(|seen| seen.length != expected(tip)));
    }
    Ok(seen.is_none_or(|seen| seen.length != expected(tip) || seen.stamp != Some(tip.at())))
}

/// Returns how long the live file should be.
pub(super) fn expected(tip: &State) -> u64 {
    tip.growth().map_or(0, |run| run.bytes + run.tail.len() as u64)
}

/// Brings the store and the live file to agree; the caller holds the lock.
pub(super) fn catch_up(archive: &Archive, session: &Session) -> Result<Vec<Notice>, OpsError> {
    let mut notices = Vec::new();
    let tip = archive.store.state(session.key)?;
    let Some(live) = live_file(archive, &tip) else {
        let is_elsewhere = archive.root.is_some() && tip.live.is_some();
        notices.extend(is_elsewhere.then_some(Notice::Elsewhere));
        return Ok(notices);
    };
    if live.attached && is_gone(&live.path) {
        return Ok(vec![attached::gone(archive, session, &live)?]);
    }
    // What may not be written is not read either: nothing of it comes into the store, and no change is made without it.
    let target = archive.writable_file(&session.name, &live)?;
    let io = failed(&target);
    let seen = target.look().map_err(&io)?;
    let is_as_left =
        |seen: live::Seen| seen.length == expected(&tip) && seen.stamp == Some(tip.at());
    if live.attached {
        notices.extend(attached::agree(archive, session, &live, &target, &tip)?);
    } else if !seen.is_some_and(is_as_left) {
        if let Some(rotation) = pending(archive, session, &target, &tip)? {
            finish_rotation(archive, session, &target, &rotation, &tip)?;
            notices.push(Notice::Finished { path: live.path });
        } else if seen.is_none() {
            restore(archive, session, &target, &tip)?;
            notices.push(Notice::Restored { path: live.path });
        } else {
            notices.extend(agree(archive, session, &target, &tip)?);
        }
    }
    target.sweep().map_err(&io)?;
    for (_, rotation) in &tip.rotations {
        notices.extend(late(archive, session, &target, rotation)?);
    }
    Ok(notices)
}

/// Returns whether nothing is at a path; what cannot be looked at may be there.
fn is_gone(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Returns the rotation that the newest operation asks for, if the live file is still the old one.
///
/// An inode alone does not say so: when the old file is gone, its number may be given to a new one.
pub(super) fn pending(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    tip: &State,
) -> Result<Option<Rotation>, OpsError> {
    let io = failed(live);
    let newest = tip.rotations.last().filter(|(operation, _)| *operation == tip.operations());
    let newest = newest.map(|(_, rotation)| rotation.clone());
    let Some((rotation, seen)) = newest.zip(live.look().map_err(&io)?) else { return Ok(None) };
    if seen.inode != rotation.inode || seen.length < rotation.length {
        return Ok(None);
    }
    let runs = archive.store.runs(session.key, rotation.old, 0)?;
    let old = content::bytes(archive.store.as_ref(), session, &runs)?;
    let found = live.read(0, Some(rotation.length)).map_err(&io)?;
    Ok(old.starts_with(&found).then_some(rotation))
}

/// Opens a live file at an offset.
pub(super) fn from(live: &WritableFile, offset: u64) -> Result<File, OpsError> {
    let at = |mut file: File| file.seek(SeekFrom::Start(offset)).map(|_| file);
    live.open().and_then(at).map_err(failed(live))
}

/// Writes the current state under the temporary name.
fn write_fresh(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    tip: &State,
) -> Result<(), OpsError> {
    let io = failed(live);
    let mut fresh = live.fresh().map_err(&io)?;
    let generation = tip.position().map_or(0, |at| at.generation);
    let runs = archive.store.runs(session.key, generation, 0)?;
    content::write(archive.store.as_ref(), session, &runs, &mut |part| fresh.write(part))?;
    fresh.finish(tip.at()).map_err(io)
}

pub(super) fn finish_rotation(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    rotation: &Rotation,
    tip: &State,
) -> Result<(), OpsError> {
    let aside = aside_of(live, rotation)?;
    write_fresh(archive, session, live, tip)?;
    live.exchange(&aside).map_err(failed(live))
}

/// Returns the file that a rotation set aside; its name is a fact of the store.
fn aside_of(live: &WritableFile, rotation: &Rotation) -> Result<WritableFile, OpsError> {
    live.sibling(OsStr::from_bytes(&rotation.aside)).map_err(failed(live))
}

fn restore(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    tip: &State,
) -> Result<(), OpsError> {
    write_fresh(archive, session, live, tip)?;
    live.install().map_err(failed(live))
}

/// Handles a live file that is there and is not as it was left.
fn agree(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    tip: &State,
) -> Result<Option<Notice>, OpsError> {
    let io = failed(live);
    let Some(position) = tip.position() else { return Ok(None) };
    let length = live.look().map_err(&io)?.map_or(0, |seen| seen.length);
    let expected = expected(tip);
    let from = position.horizon.saturating_sub(64);
    let last = archive.store.runs(session.key, position.generation, from)?;
    let known = content::bytes(archive.store.as_ref(), session, &last)?;
    let begin = expected - known.len() as u64;
    if length > expected {
        let compared = known.len().min(usize::try_from(COMPARED).unwrap_or(usize::MAX));
        let before = live.read(expected - compared as u64, Some(expected)).map_err(&io)?;
        if known.ends_with(&before) && before.len() == compared {
            return take_in(archive, session, live).map(Some);
        }
    } else if length >= expected - newest(archive, session, &last)? {
        // Only the newest operation can be missing, because each one begins by catching up.
        let there = live.read(begin, None).map_err(&io)?;
        if let Some(rest) = known.strip_prefix(there.as_slice()).filter(|rest| !rest.is_empty()) {
            live.append(rest, expected, tip.at()).map_err(&io)?;
            return Ok(Some(Notice::Finished { path: live.path().to_owned() }));
        }
    }
    compare_whole(archive, session, live, tip, position)
}

/// Returns how many bytes of a file its newest run made.
pub(super) fn newest(archive: &Archive, session: &Session, runs: &[Run]) -> Result<u64, OpsError> {
    let last = runs.len().saturating_sub(1);
    let newest =
        content::bytes(archive.store.as_ref(), session, runs.get(last..).unwrap_or_default())?;
    Ok(newest.len() as u64)
}

/// Takes in what another program appended.
fn take_in(archive: &Archive, session: &Session, live: &WritableFile) -> Result<Notice, OpsError> {
    let mut change = Change::bare(archive, session)?;
    let Some(position) = change.tip.position() else {
        return Err(OpsError::Nothing("catch up with"));
    };
    let mut growth = change.growth(position.generation)?;
    let file = from(live, growth.length())?;
    let before = growth.entries;
    change.read(&mut growth, file)?;
    let entries = growth.entries - before;
    let head = change.head(&growth)?;
    let branch = change.tip.current().to_owned();
    change.set_branch(&branch, Some(Position { head, horizon: growth.entries, ..position }));
    change.grown(growth);
    let outcome = change.commit(Command::CatchUp { entries, branch: None, left: None })?;
    Ok(Notice::Appended { entries, operation: outcome.operation })
}

/// Reads the whole live file and decides what it is.
fn compare_whole(
    archive: &Archive,
    session: &Session,
    target: &WritableFile,
    tip: &State,
    position: Position,
) -> Result<Option<Notice>, OpsError> {
    let io = failed(target);
    let Some(live) = live_file(archive, tip) else { return Ok(None) };
    let runs = archive.store.runs(session.key, position.generation, 0)?;
    let held = View::new(archive.store.as_ref(), session, position, None).sequence()?;
    let mut change = Change::bare(archive, session)?;
    let mut growth = change.generation(Some(live.n));
    change.read(&mut growth, from(target, 0)?)?;
    let at_end = runs.last();
    if at_end.is_some_and(|run| run.running == growth.running && run.tail == growth.tail)
        || (at_end.is_none() && growth.length() == 0)
    {
        target.stamp(tip.at()).map_err(&io)?;
        return Ok(None);
    }
    let head = change.head(&growth)?;
    let taken = Position { generation: growth.generation, head, horizon: growth.entries };
    let found = growth.sequence();
    let entries = growth.entries.saturating_sub(held.len() as u64);
    change.grown(growth);
    if is_subsequence(&held, &found) {
        let branch = change.tip.current().to_owned();
        change.set_branch(&branch, Some(taken));
        let outcome = change.commit(Command::CatchUp { entries, branch: None, left: None })?;
        return Ok(Some(Notice::Appended { entries, operation: outcome.operation }));
    }
    let branch = change.left_name(OUTSIDE);
    change.set_branch(&branch, Some(taken));
    let mut fresh = target.fresh().map_err(&io)?;
    content::write(change.archive.store.as_ref(), session, &runs, &mut |part| fresh.write(part))?;
    let aside = change.exchange_live(&live, fresh, (taken.generation, position.generation))?;
    let entries = change.entries() - tip.entries();
    let kept = Some(change.branch_text(&branch));
    let outcome = change.commit(Command::CatchUp { entries, branch: kept, left: None })?;
    Ok(Some(Notice::SetAside { aside, branch, operation: outcome.operation }))
}

pub(super) fn is_subsequence(wanted: &[u64], found: &[u64]) -> bool {
    let mut found = found.iter();
    wanted.iter().all(|entry| found.any(|other| other == entry))
}

/// Takes in what came to a file after it was set aside.
fn late(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    rotation: &Rotation,
) -> Result<Option<Notice>, OpsError> {
    let aside = aside_of(live, rotation)?;
    let Some(seen) = aside.look().map_err(failed(&aside))? else { return Ok(None) };
    if seen.inode != rotation.inode || seen.length <= rotation.length {
        return Ok(None);
    }
    let ends = |runs: &[Run]| runs.last().map_or(0, |run| run.bytes + run.tail.len() as u64);
    if seen.length <= ends(&archive.store.runs(session.key, rotation.old, 0)?) {
        return Ok(None);
    }
    let mut change = Change::bare(archive, session)?;
    let mut growth = change.growth(rotation.old)?;
    let before = growth.entries;
    let file = from(&aside, growth.length())?;
    change.read(&mut growth, file)?;
    let head = change.head(&growth)?;
    let entries = growth.entries - before;
    // The branch that stood at the end of the file goes on with it.
    let at_end = |at: &Position| at.generation == rotation.old && at.horizon == before;
    let mut branches = change.tip.branches.iter();
    let branch = branches.find(|(_, at)| at_end(at)).map(|(name, _)| name.clone());
    if let Some(branch) = &branch {
        let to = Position { generation: rotation.old, head, horizon: growth.entries };
        change.set_branch(branch, Some(to));
    }
    change.grown(growth);
    let joined = branch.as_ref().map(|branch| change.branch_text(branch));
    change.commit(Command::CatchUp { entries, branch: joined, left: None })?;
    Ok(Some(Notice::Late { aside: aside.path().to_owned(), entries, branch }))
}
