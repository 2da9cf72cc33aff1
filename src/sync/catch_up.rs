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
    fs::{self},
    io::ErrorKind,
    path::Path,
};

use crate::{
    live::{self, WritableFile},
    model::{Command, Position, Rotation, Run, State},
    session::{Session, View, content},
    sync::{
        Archive, Notice, SyncError, attached,
        change::{Change, OUTSIDE},
        file::{
            aside_of, failed, finish_rotation, from, is_subsequence, newest, pending, write_fresh,
        },
        live_file::{expected, live_file},
    },
};

/// How many bytes before the expected end are compared when a file has grown.
const COMPARED: u64 = 64 << 10;

/// Brings the store and the live file to agree; the caller holds the lock.
pub(crate) fn catch_up(archive: &Archive, session: &Session) -> Result<Vec<Notice>, SyncError> {
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

fn restore(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    tip: &State,
) -> Result<(), SyncError> {
    write_fresh(archive, session, live, tip)?;
    live.install().map_err(failed(live))
}

/// Handles a live file that is there and is not as it was left.
fn agree(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    tip: &State,
) -> Result<Option<Notice>, SyncError> {
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

/// Takes in what another program appended.
fn take_in(archive: &Archive, session: &Session, live: &WritableFile) -> Result<Notice, SyncError> {
    let mut change = Change::bare(archive, session)?;
    let Some(position) = change.tip.position() else {
        return Err(SyncError::Nothing("catch up with"));
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
    let (outcome, _) = change.commit(Command::CatchUp { entries, branch: None, left: None })?;
    Ok(Notice::Appended { entries, operation: outcome.operation })
}

/// Reads the whole live file and decides what it is.
fn compare_whole(
    archive: &Archive,
    session: &Session,
    target: &WritableFile,
    tip: &State,
    position: Position,
) -> Result<Option<Notice>, SyncError> {
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
        let (outcome, _) = change.commit(Command::CatchUp { entries, branch: None, left: None })?;
        return Ok(Some(Notice::Appended { entries, operation: outcome.operation }));
    }
    let branch = change.left_name(OUTSIDE);
    change.set_branch(&branch, Some(taken));
    let mut fresh = target.fresh().map_err(&io)?;
    content::write(change.archive.store.as_ref(), session, &runs, &mut |part| fresh.write(part))?;
    let aside = change.exchange_live(&live, fresh, (taken.generation, position.generation))?;
    let entries = change.entries() - tip.entries();
    let kept = Some(change.branch_text(&branch));
    let (outcome, _) = change.commit(Command::CatchUp { entries, branch: kept, left: None })?;
    Ok(Some(Notice::SetAside { aside, branch, operation: outcome.operation }))
}

/// Takes in what came to a file after it was set aside.
fn late(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    rotation: &Rotation,
) -> Result<Option<Notice>, SyncError> {
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
