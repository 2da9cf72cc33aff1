//! Catches up: reconciles the store and the live file before a session is changed. This file handles the store's own file;
//! `agent_file` handles an agent's.
//!
//! | verdict on the live file | action |
//! |---|---|
//! | same | nothing |
//! | unfinished | finish the rotation |
//! | gone | write it again; look for an agent's file where the agent moves its files |
//! | short | append the rest |
//! | grown | import the new lines |
//! | other, with all known entries and more between them | import it as a new generation |
//! | other | set it aside, import it as a branch of its own, and write the file again |
//!
//! An agent's file whose session the user's settings exclude is ignored, even if it has new lines.
//!
//! If a file that was set aside still grows, because a program has it open, its new lines are imported into the old generation.
//!
//! Invariant: no byte that another program wrote is overwritten or missing from the store.

use std::{cmp::Reverse, collections::BTreeSet};

use crate::{
    archive::{Archive, At, SyncError, Vain},
    change::{
        draft::{Change, listing, live::exchange_live},
        goal::segment,
        reconcile::{agent_file, comeback, shelf},
    },
    files::{
        deletion::is_gone,
        file::{self, aside_of, finish_rotation, from, is_subsequence, write_fresh},
        judge::{Judgement, Known, Looked, Seen, Verdict, Whose, judge},
        live_file::{self, LiveFile, expected, length_of},
        numbers::counted,
    },
    live::WritableFile,
    model::{Command, OperationNumber, Position, Rotation, SessionName},
    report::{LiveState, Notice},
    session::{
        graph::content,
        plan::{OUTSIDE, branch_text},
    },
};

/// Reconciles the store and the live file. The caller holds the lock and opened the session under it.
pub(crate) fn catch_up(session: &At<'_>) -> Result<Vec<Notice>, SyncError> {
    bring_together(session).map_err(|error| {
        match session.attached().filter(|_| error.is_of_a_file()) {
            Some(LiveFile { path, .. }) => {
                let session = session.name.id.clone();
                SyncError::Uncaught { session, path, why: Box::new(error) }
            }
            None => error,
        }
    })
}

fn bring_together(session: &At<'_>) -> Result<Vec<Notice>, SyncError> {
    let mut notices = Vec::new();
    let Some(live) = session.live_file() else {
        let is_elsewhere = session.archive.root.is_some() && session.state.live.is_some();
        notices.extend(is_elsewhere.then_some(Notice::Elsewhere));
        if let Some(at) = session.state.position() {
            let view = session.view(at);
            notices.extend(view.unresumed()?.map(|why| Notice::Unresumed { why }));
        }
        return Ok(notices);
    };
    if is_left_out(session, &live) {
        return Ok(notices);
    }
    // A preview leaves unfinished work to the next change.
    if session.archive.is_preview && segment::unfinished(session, &live)?.is_some() {
        return Ok(notices);
    }
    notices.extend(segment::finish(session, &live)?);
    if live.attached && is_gone(&live.path) {
        if let Some(to) = shelf::follow(session, &live)? {
            notices.push(Notice::Gone { path: live.path, to: Some(to) });
            notices.extend(catch_up(&session.again()?)?);
            return Ok(notices);
        }
        notices.push(agent_file::record_loss(session, &live)?);
        return Ok(notices);
    }
    // A file that must not be written is not read either: nothing is imported from it, and no change is made without it.
    let target = session.archive.writable_file(&session.name, &live)?;
    if live.attached {
        notices.extend(agent_file::agree(session, &live, &target)?);
        listing::sweep(session, &target)?;
        segment::sweep(session.format, &session.name.id, &target)?;
    } else {
        notices.extend(agree(session, &live, &target)?);
    }
    target.sweep().map_err(SyncError::at(target.path()))?;
    for rotated in &session.state.rotations {
        notices.extend(late(session, &target, rotated.0, &rotated.1)?);
    }
    Ok(notices)
}

/// Returns true if the user's settings exclude an agent's file that exists.
pub(crate) fn is_left_out(session: &At<'_>, live: &LiveFile) -> bool {
    live.attached
        && session.archive.exclusion(&session.name, session.format, Some(&live.path)).is_some()
        && !is_gone(&live.path)
}

/// Reconciles all sessions with their live files, and returns the notices, each with its session. For a damaged session, the
/// notice says that its file was not searched for new lines.
pub(crate) fn catch_up_all(archive: &Archive) -> Result<Vec<(SessionName, Notice)>, SyncError> {
    let mut all = Vec::new();
    for session in archive.every()? {
        let session = archive.at(&session)?;
        let notices = match catch_up(&session) {
            Err(error) if error.is_damage() => {
                let live = session.live_file();
                let unsought = |live: LiveFile| {
                    let why = error.to_string();
                    Notice::Unsought { path: live.path, why }
                };
                live.map(unsought).into_iter().collect()
            }
            caught_up => caught_up?,
        };
        all.extend(notices.into_iter().map(|notice| (session.name.clone(), notice)));
    }
    Ok(all)
}

/// In a preview, adds what a session's live file has beyond the stored state. Returns true if the file has more.
pub fn follow(session: &At<'_>) -> Result<bool, SyncError> {
    Ok(!matches!(live_state(session)?, LiveState::Same | LiveState::LeftOut))
}

/// In a preview, adds what a session's live file has beyond the stored state. Returns how the file compares with that state.
pub fn live_state(session: &At<'_>) -> Result<LiveState, SyncError> {
    if !session.archive.is_preview {
        return Ok(LiveState::Same);
    }
    let session = &comeback::follow(session.clone())?;
    // A file that an interrupted change was to begin is judged after the next change has finished it.
    let unfinished = |live: LiveFile| segment::unfinished(session, &live);
    if session.live_file().map(unfinished).transpose()?.flatten().is_some() {
        return Ok(LiveState::Pending);
    }
    let is_put_away = || {
        let live = session.live_file();
        live.is_some_and(|live| shelf::place(session, &live).is_some())
    };
    if !live_file::is_behind(session.archive, &session.state)? && !is_put_away() {
        return Ok(LiveState::Same);
    }
    if session.live_file().is_some_and(|live| is_left_out(session, &live)) {
        return Ok(LiveState::LeftOut);
    }
    let notices = catch_up(session)?;
    let state = |notice: &Notice| match notice {
        Notice::Followed { .. } => Some(LiveState::Rewritten),
        Notice::SetAside { .. } => Some(LiveState::Replaced),
        Notice::Appended { .. } | Notice::Ending { .. } | Notice::Joined { .. } => {
            Some(LiveState::Grown)
        }
        Notice::Gone { to: Some(_), .. } => Some(LiveState::Same),
        Notice::Restored { .. } | Notice::Packed { .. } | Notice::Gone { to: None, .. } => {
            Some(LiveState::Missing)
        }
        Notice::Finished { .. } => Some(LiveState::Pending),
        _ => None,
    };
    let found = notices.iter().filter_map(state).max();
    // An agent's file with another length but nothing new lacks what a change still has to write.
    Ok(found.unwrap_or_else(|| {
        if session.attached().is_some() { LiveState::Pending } else { LiveState::Same }
    }))
}

/// Reconciles the store with its own file.
fn agree(
    session: &At<'_>,
    live: &LiveFile,
    target: &WritableFile,
) -> Result<Option<Notice>, SyncError> {
    let io = SyncError::at(target.path());
    let seen = target.look().map_err(io)?;
    if seen.is_some_and(|seen| live_file::is_ahead(&seen, &session.state)) {
        return Err(SyncError::Ahead { path: live.path.clone() });
    }
    let seen = seen.map(|seen| Seen {
        is_untouched: seen.stamp == Some(session.state.at())
            && !live_file::ends_in_zero(&live.path, &session.state),
        ..Seen::from(seen)
    });
    let path = live.path.clone();
    Ok(match file::verdict(session, target, Whose::Store, seen.as_ref())? {
        Verdict::Same => {
            if seen.is_some_and(|seen| !seen.is_untouched) {
                target.stamp(session.state.at()).map_err(io)?;
            }
            None
        }
        Verdict::Gone => {
            write_fresh(session, target)?;
            target.install().map_err(io)?;
            Some(Notice::Restored { path })
        }
        Verdict::Unfinished => {
            finish_rotation(session, target)?;
            Some(Notice::Finished { path })
        }
        Verdict::Short => {
            let end = expected(&session.state);
            let there = seen.and_then(|seen| seen.length).unwrap_or(0);
            let missing = usize::try_from(end - there).unwrap_or(usize::MAX);
            let generation = session.state.generation();
            let known = content::last(session, generation, session.state.growth(), missing)?;
            let rest = known.get(known.len().saturating_sub(missing)..).unwrap_or_default();
            target.append(rest, end, session.state.at()).map_err(io)?;
            Some(Notice::Finished { path })
        }
        Verdict::Grown => Some(take_in(session, target)?),
        Verdict::Other => Some(take_in_whole(session, live, target)?),
    })
}

/// Imports the lines that another program appended.
fn take_in(session: &At<'_>, live: &WritableFile) -> Result<Notice, SyncError> {
    let mut change = Change::bare(session)?;
    let Some(position) = change.before.state.position() else {
        return Err(SyncError::Nothing(Vain::CatchUp));
    };
    let mut growth = change.growth(position.generation)?;
    let (file, begin) = (from(live, growth.length())?, growth.bytes);
    let before = growth.entries;
    change.read(&mut growth, file).map_err(|error| counted(error, live.path(), begin))?;
    let entries = growth.entries - before;
    let branch = change.before.state.current().to_owned();
    change.set_branch(&branch, Some(change.end_of(&growth)?));
    change.grown(growth);
    let (outcome, _) = change.commit(Command::CatchUp { entries, branch: None, left: None })?;
    Ok(Notice::Appended { entries, operation: outcome.operation })
}

/// Imports a live file with other content. If it has all known entries and more between them, the session follows it. Otherwise
/// it is set aside.
fn take_in_whole(
    session: &At<'_>,
    live: &LiveFile,
    target: &WritableFile,
) -> Result<Notice, SyncError> {
    let Some(position) = session.state.position() else {
        return Err(SyncError::Nothing(Vain::CatchUp));
    };
    let runs = session.store.runs(session.key, position.generation, 0)?;
    let held = session.view(position).sequence()?;
    let mut change = Change::bare(session)?;
    let mut growth = change.generation(Some(live.n));
    change.read(&mut growth, from(target, 0)?)?;
    let taken = change.end_of(&growth)?;
    let found = growth.sequence();
    let entries = growth.entries.saturating_sub(held.len() as u64);
    change.grown(growth);
    if is_subsequence(&held, &found) {
        let branch = change.before.state.current().to_owned();
        change.set_branch(&branch, Some(taken));
        let (outcome, _) = change.commit(Command::CatchUp { entries, branch: None, left: None })?;
        return Ok(Notice::Appended { entries, operation: outcome.operation });
    }
    let branch = change.leave(OUTSIDE, Some(taken));
    let mut fresh = target.fresh().map_err(SyncError::at(target.path()))?;
    content::write(session, &runs, &mut |part| fresh.write(part))?;
    let aside = exchange_live(&mut change, live, fresh, taken.generation, position.generation)?;
    let entries = change.next_entry().since(session.state.next_entry());
    let kept = Some(branch_text(&branch));
    let (outcome, _) = change.commit(Command::CatchUp { entries, branch: kept, left: None })?;
    Ok(Notice::SetAside { aside, branch, operation: outcome.operation })
}

/// Imports the lines that were written to a file after it was set aside.
fn late(
    session: &At<'_>,
    live: &WritableFile,
    by: OperationNumber,
    rotation: &Rotation,
) -> Result<Option<Notice>, SyncError> {
    let aside = aside_of(live, rotation)?;
    // A set-aside file that was moved or cannot be read does not block a change.
    let seen = aside.look().ok().flatten().map(Seen::from);
    let known = Known {
        whose: Whose::Aside,
        length: rotation.length.max(length_of(session.state.ends.get(&rotation.old))),
        rotation: Some((rotation.inode, rotation.length)),
    };
    if judge(&known, seen.as_ref(), Looked::default()) != Judgement::Is(Verdict::Grown) {
        return Ok(None);
    }
    let mut change = Change::bare(session)?;
    let mut growth = change.growth(rotation.old)?;
    let before = growth.entries;
    let (file, begin) = (from(&aside, growth.length())?, growth.bytes);
    change.read(&mut growth, file).map_err(|error| counted(error, aside.path(), begin))?;
    let to = change.end_of(&growth)?;
    let entries = growth.entries - before;
    // The branch at the end of the old file continues with it: the one that the rotation left there, or one that somebody
    // created.
    let rotated = session.store.operations(session.key, by.alone())?;
    let moves = rotated.iter().flat_map(|rotated| &rotated.facts.moves);
    let left: BTreeSet<String> = moves.map(|step| step.branch.to_text()).collect();
    let at_end = |at: &Position| at.generation == rotation.old && at.horizon == before;
    let branches = change.before.state.branches.iter().filter(|(_, at)| at_end(at));
    let branch =
        branches.map(|(name, _)| name).max_by_key(|name| (left.contains(*name), Reverse(*name)));
    let branch = branch.cloned();
    if let Some(branch) = &branch {
        change.set_branch(branch, Some(to));
    }
    change.grown(growth);
    let joined = branch.as_ref().map(|branch| branch_text(branch));
    change.commit(Command::CatchUp { entries, branch: joined, left: None })?;
    Ok(Some(Notice::Late { aside: aside.path().to_owned(), entries, branch }))
}
