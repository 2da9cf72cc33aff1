//! Reconciles a session with its agent's own file: imports what the agent wrote, and finishes an interrupted command in the file.
//!
//! | verdict on the file | action |
//! |---|---|
//! | same | nothing |
//! | unfinished | finish the rotation |
//! | gone | record the loss; the session continues without a file |
//! | grown | import the new lines |
//! | other, and it ends within the lines of the newest command | append the rest of these lines |
//! | other | import it as a new generation, and the current branch follows it |
//!
//! If an agent continued in its file without the lines that a command wrote, or was to write, the session follows the agent: its
//! newest work is in its context until the user reverts it. The command's state is kept as a branch.
//!
//! An idle agent keeps its conversation in memory and may continue from an entry that its file no longer has. Its records then
//! join the branch that has that entry:
//!
//! ```text
//! old file   A B C        main.1: C          joined, a generation of its own   A B C D     main.1: D
//! new file   A N          main: N            the file                          A N D       main: N, and lines that make
//!                 D follows C, which the file does not have                                the agent resume N again
//! ```
//!
//! Invariant: nothing that another program wrote is removed from the file, and each of its lines is in a generation.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    os::unix::fs::MetadataExt,
    path::Path,
};

use crate::{
    archive::{At, SyncError},
    change::{
        draft::{Change, Gathering, Writing, commit, listing, live::append_live},
        goal::{reach, segment, setting},
    },
    disk::{self, Links},
    files::{
        deletion::elsewhere,
        file::{self, finish_rotation, from, is_subsequence, saw},
        judge::{Seen, Verdict, Whose},
        live_file::{self, LiveFile},
        mover::{is_of_a_person, is_to_be_kept},
        numbers::counted,
        occupancy::refuse_if_loaded,
        sources,
    },
    live::WritableFile,
    model::{Command, EntryNumber, Kind, Parent, Position},
    report::Notice,
    session::{
        Growth,
        graph::content,
        plan::{LATE, branch_text},
    },
    store::Sighting,
    wire::Graph,
};

/// Makes a session and its agent's file agree. The caller holds the lock.
pub(crate) fn agree(
    session: &At<'_>,
    live: &LiveFile,
    target: &WritableFile,
) -> Result<Vec<Notice>, SyncError> {
    let meta =
        target.open().and_then(|file| file.metadata()).map_err(SyncError::at(target.path()))?;
    let sighting = sources::sighting(target.path(), &meta);
    let last = session.store.sighting(&sighting.path)?;
    let is_untouched = last.as_ref() == Some(&sighting);
    let replaced = last.filter(|last| last.inode != sighting.inode);
    let seen = Seen { inode: meta.ino(), length: Some(meta.len()), is_untouched };
    let verdict = file::verdict(session, target, Whose::Agent, Some(&seen))?;
    let (mut notices, is_alone) = match verdict {
        Verdict::Same | Verdict::Gone if is_untouched => return Ok(Vec::new()),
        Verdict::Same | Verdict::Gone => (Vec::new(), true),
        Verdict::Unfinished => {
            if !session.archive.is_preview {
                refuse_if_loaded(session, target.path())?;
                listing::finish(session, target, session.state.at())?;
                finish_rotation(session, target)?;
            }
            (vec![Notice::Finished { path: live.path.clone() }], true)
        }
        Verdict::Grown => take_in(Change::bare(session)?, live, target)?,
        Verdict::Short | Verdict::Other => {
            let there = target.read(0, None).map_err(SyncError::at(target.path()))?;
            if put_right(session, target, (&there, replaced.as_ref()))? {
                (vec![Notice::Finished { path: live.path.clone() }], true)
            } else {
                take_in_whole(session, live, target)?
            }
        }
    };
    if !is_alone {
        notices.extend(agree(&session.again()?, live, target)?);
    } else if live.path.exists() {
        saw(session.archive, session.key, target)?;
    }
    Ok(notices)
}

/// Records that a file of a session was deleted; the session then has no live file if it was this one. If a rotation was
/// interrupted on a file system without hard links, moves the successor into place instead.
pub(crate) fn record_loss(session: &At<'_>, live: &LiveFile) -> Result<Notice, SyncError> {
    if let Ok(target) = session.archive.writable_file(&session.name, live)
        && file::is_only_set_aside(&target, &session.state)?
    {
        listing::finish(session, &target, session.state.at())?;
        finish_rotation(session, &target)?;
        saw(session.archive, session.key, &target)?;
        return Ok(Notice::Finished { path: live.path.clone() });
    }
    let mut change = Change::bare(session)?;
    if session.state.live == Some(live.n) {
        change.set_live(None);
    }
    change.facts.gone.push(live.n);
    change.commit(Command::CatchUp { entries: 0, branch: None, left: None })?;
    // If the agent had moved the file unchanged, the session would have followed it.
    let put_away = elsewhere(session, live);
    Ok(match put_away.filter(|path| sources::length(path).is_ok_and(|length| length.is_none())) {
        Some(path) => Notice::Packed { path },
        None => Notice::Gone { path: live.path.clone(), to: None },
    })
}

/// Imports the lines that an agent appended to the live file of a session, in a shared transaction. Returns nothing if the file
/// needs anything else. The caller holds the lock.
pub(crate) fn gather(
    session: &At<'_>,
    path: &Path,
    gathering: &mut dyn Gathering,
) -> Result<Option<Vec<Notice>>, SyncError> {
    let live = session.attached().filter(|live| live.path == path);
    let Some(live) = live.filter(|_| session.state.rotations.is_empty()) else { return Ok(None) };
    let target = session.archive.writable_file(&session.name, &live)?;
    let seen = target.look().map_err(SyncError::at(path))?.map(Seen::from);
    let is_unfinished = segment::unfinished(session, &live)?.is_some();
    let verdict = file::verdict(session, &target, Whose::Agent, seen.as_ref())?;
    if is_unfinished || verdict != Verdict::Grown {
        return Ok(None);
    }
    let (notices, _) = take_in(Change::of(session, Writing::Among(gathering))?, &live, &target)?;
    Ok(Some(notices))
}

/// Imports the lines that the agent appended. Also returns true if no other program wrote to the file meanwhile.
fn take_in(
    mut change: Change<'_>,
    live: &LiveFile,
    target: &WritableFile,
) -> Result<(Vec<Notice>, bool), SyncError> {
    let Some(before) = change.before.position() else { return Ok((Vec::new(), true)) };
    let mut growth = change.growth(before.generation)?;
    let (file, begin) = (from(target, growth.length())?, growth.bytes);
    change.read(&mut growth, file).map_err(|error| counted(error, target.path(), begin))?;
    follow(change, live, before, growth, Came::Appended)
}

/// Appends the lines of a command that the file lacks. Returns true if it lacked any.
fn put_right(
    session: &At<'_>,
    target: &WritableFile,
    there: (&[u8], Option<&Sighting>),
) -> Result<bool, SyncError> {
    let Some(rest) = lacking(session, there.0, there.1)? else { return Ok(false) };
    if !session.archive.is_preview {
        refuse_if_loaded(session, target.path())?;
        target.may_append().map_err(SyncError::at(target.path()))?;
        listing::finish(session, target, session.state.at())?;
        let end = (there.0.len() + rest.len()) as u64;
        target.append_synced(&rest, end).map_err(SyncError::at(target.path()))?;
    }
    Ok(true)
}

/// Returns the bytes of the stored state that the file lacks, if the newest operation is a command that still has to write them
/// and nothing else was written there. `replaced` is the last sighting of the file, if another file is in its place now.
fn lacking(
    session: &At<'_>,
    there: &[u8],
    replaced: Option<&Sighting>,
) -> Result<Option<Vec<u8>>, SyncError> {
    let Some(newest) = session.state.newest.map(|newest| newest.n) else { return Ok(None) };
    let by = session.store.operations(session.key, newest.alone())?.pop();
    if !by.is_some_and(|by| is_of_a_person(&by.command) && by.runs.is_some()) {
        return Ok(None);
    }
    let generation = session.state.generation();
    // A new generation is written as a whole file and exchanged. If a part of it is missing, the agent cut it.
    if session.state.generations.iter().any(|(by, begun)| *by == newest && begun.n == generation) {
        return Ok(None);
    }
    let runs = session.store.runs(session.key, generation, 0)?;
    let known = match content::bytes(session, &runs).map_err(SyncError::from) {
        // If the lines cannot be compared, the file is not known to lack any.
        Err(error) if error.is_damage() => return Ok(None),
        known => known?,
    };
    // A file with which the agent replaced the written one never had the command's lines.
    if replaced.is_some_and(|was| was.length == known.len() as u64) {
        return Ok(None);
    }
    let said = content::newest(session, generation)?;
    let has_all_before = there.len() >= known.len().saturating_sub(said.len());
    let rest = known.strip_prefix(there).filter(|rest| has_all_before && !rest.is_empty());
    Ok(rest.map(<[u8]>::to_vec))
}

/// Returns true if an agent's file only lacks what the newest operation still has to write.
pub(crate) fn is_pending(session: &At<'_>, path: &Path) -> Result<bool, SyncError> {
    let io = SyncError::at(path);
    let mut file = disk::open(path, Links::Refuse).map_err(io)?;
    let meta = file.metadata().map_err(io)?;
    // A file that is not shorter than expected need not be read.
    if meta.len() >= live_file::expected(&session.state) {
        return Ok(false);
    }
    let sighting = sources::sighting(path, &meta);
    let last = session.store.sighting(&sighting.path)?;
    let replaced = last.filter(|last| last.inode != sighting.inode);
    let mut there = Vec::new();
    file.read_to_end(&mut there).map_err(io)?;
    Ok(lacking(session, &there, replaced.as_ref())?.is_some())
}

/// Imports a file with other content.
fn take_in_whole(
    session: &At<'_>,
    live: &LiveFile,
    target: &WritableFile,
) -> Result<(Vec<Notice>, bool), SyncError> {
    let mut change = Change::bare(session)?;
    let Some(before) = change.before.position() else { return Ok((Vec::new(), true)) };
    let mut growth = change.generation(Some(live.n));
    change.read(&mut growth, from(target, 0)?)?;
    follow(change, live, before, growth, Came::Rewritten)
}

/// How many entries before the new ones to search first for the session's old head.
const NEAR: usize = 64;

/// Entries of an agent that knew only an older state.
struct Late {
    /// The entry from which it continued.
    base: EntryNumber,
    /// The entries that it wrote, in order.
    entries: Vec<EntryNumber>,
}

/// How new content came into the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    Appended,
    Rewritten,
}

/// Moves the branches according to a growth of the file.
fn follow(
    mut change: Change<'_>,
    live: &LiveFile,
    before: Position,
    growth: Growth,
    came: Came,
) -> Result<(Vec<Notice>, bool), SyncError> {
    let is_rewritten = came == Came::Rewritten;
    let first = change.before.state.next_entry();
    let found = if is_rewritten { growth.sequence() } else { Vec::new() };
    let entries = change.next_entry().since(first);
    let mut position = change.end_of(&growth)?;
    let head = position.head;
    change.grown(growth);
    let current = change.before.state.current().to_owned();
    let mut notices = Vec::new();
    let operation = change.before.state.next_operation();
    let late = late(&change, position, first)?;
    let is_apart = late.iter().any(|late| head.is_some_and(|head| late.entries.contains(&head)));
    let mut is_held = false;
    for late in &late {
        if let Some(branch) = join(&mut change, late, position, &current)? {
            let entries = late.entries.len() as u64;
            is_held |= before.head == Some(late.base);
            notices.push(Notice::Joined { entries, branch, operation });
        }
    }
    change.set_branch(&current, Some(position));
    // The agent would resume entries that belong to another branch. If its file may be written and its format can express it,
    // lines bring it back to the current branch. Otherwise the current branch continues where the agent is.
    let mut is_led = is_apart;
    if is_apart
        && let Some(lines) = reach::way_to(&mut change, position, before.head)?
        && commit::may_write(&change, live)
    {
        position = say(&mut change, position, &lines)?;
        is_led = false;
    }
    let goes_on = if is_rewritten {
        let held = change.before.view(before).map(|view| view.sequence()).transpose()?;
        is_subsequence(&held.unwrap_or_default(), &found)
    } else {
        match before.head.map(|stood| is_on_path(&change, position, stood, entries)) {
            // If the path is damaged, nothing shows that the agent left it.
            Some(Err(error)) if error.is_damage() => true,
            is_on_path => is_on_path.transpose()?.unwrap_or(true),
        }
    };
    let is_kept = is_led && !is_held || is_to_be_kept(&change.before, &current, position)?;
    let left = (!goes_on && is_kept).then(|| change.leave(&current, Some(before)));
    change.set_branch(&current, Some(position));
    // A file that the agent no longer resumes is not written any more.
    let unresumed = is_rewritten.then(|| change.look(position).unresumed()).transpose()?.flatten();
    if let Some(why) = unresumed {
        change.set_live(None);
        notices.push(Notice::Unresumed { why });
    }
    let kept = left.as_ref().map(|left| branch_text(left));
    let (outcome, is_alone) =
        change.commit(Command::CatchUp { entries, branch: None, left: kept })?;
    notices.extend(outcome.done.notices);
    let path = live.path.clone();
    let joined: u64 = late.iter().map(|late| late.entries.len() as u64).sum();
    let entries = entries.saturating_sub(joined);
    if is_rewritten || left.is_some() {
        notices.push(Notice::Followed { path, is_rewritten, entries, left, operation });
    } else if entries > 0 {
        notices.push(Notice::Appended { entries, operation });
    } else if joined == 0 {
        notices.push(Notice::Ending { path, operation });
    }
    Ok((notices, is_alone))
}

/// Appends lines to the file and to its generation.
fn say(
    change: &mut Change<'_>,
    position: Position,
    lines: &[Vec<u8>],
) -> Result<Position, SyncError> {
    let mut growth = change.growth(position.generation)?;
    let more = setting::behind(&growth, lines);
    change.read_bytes(&mut growth, &more)?;
    let said = change.end_of(&growth)?;
    let end = growth.length();
    change.grown(growth);
    append_live(change, more, end)?;
    Ok(said)
}

fn is_on_path(
    change: &Change<'_>,
    position: Position,
    entry: EntryNumber,
    fresh: u64,
) -> Result<bool, SyncError> {
    // If the agent continued from there, it comes right before the new entries.
    let near = usize::try_from(fresh).unwrap_or(usize::MAX).saturating_add(NEAR);
    Ok(change.path(position, near)?.contains(&entry)
        || change.path(position, usize::MAX)?.contains(&entry))
}

/// Returns the entries of agents that knew only an older state, or that continued from the head of another branch.
fn late(
    change: &Change<'_>,
    position: Position,
    first: EntryNumber,
) -> Result<Vec<Late>, SyncError> {
    let view = change.look(position);
    let mut base: BTreeMap<EntryNumber, EntryNumber> = BTreeMap::new();
    let mut found: BTreeMap<EntryNumber, Vec<EntryNumber>> = BTreeMap::new();
    let current = change.before.state.current();
    let others = change.before.state.branches.iter().filter(|(name, _)| *name != current);
    let heads: BTreeSet<EntryNumber> = others.filter_map(|(_, at)| at.head).collect();
    for entry in EntryNumber::each(first..change.next_entry()) {
        if view.place(entry)?.is_none() {
            continue;
        }
        let record = view.record(entry)?;
        if record.kind == Kind::Opaque {
            continue;
        }
        // In this file, the parent's name may belong to another entry than the newest one with that name.
        let parent = match (view.parent(entry)?, record.parent) {
            (Some(parent), _) | (None, Parent::Entry(parent)) => parent,
            (None, Parent::Root | Parent::Missing) => continue,
        };
        let from = match base.get(&parent) {
            Some(&from) => from,
            None if parent >= first => continue,
            None if view.place(parent)?.is_none() || heads.contains(&parent) => parent,
            None => continue,
        };
        base.insert(entry, from);
        found.entry(from).or_default().push(entry);
    }
    drop(view);
    // The whole path is read only if there are candidates.
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let on_path: BTreeSet<EntryNumber> = change.path(position, usize::MAX)?.into_iter().collect();
    // Entries that continue from the agent's path and that the agent itself resumes are on its own branch and not late.
    let is_late = |(base, entries): &(EntryNumber, Vec<EntryNumber>)| {
        !on_path.contains(base) || !entries.iter().any(|entry| on_path.contains(entry))
    };
    let late = found.into_iter().filter(is_late);
    Ok(late.map(|(base, entries)| Late { base, entries }).collect())
}

/// Adds late entries to the branch whose head they continue, and returns the name of that branch.
fn join(
    change: &mut Change<'_>,
    late: &Late,
    position: Position,
    current: &str,
) -> Result<Option<String>, SyncError> {
    let stands = |(name, at): &(&String, &Position)| *name != current && at.head == Some(late.base);
    let branch = change.before.state.branches.iter().find(stands);
    let branch = branch.map(|(name, at)| (name.clone(), *at));
    if change.look(position).place(late.base)?.is_some() {
        let Some((branch, _)) = branch else { return Ok(None) };
        let to = Position { head: late.entries.last().copied(), ..position };
        change.set_branch(&branch, Some(to));
        return Ok(Some(branch));
    }
    let (branch, at) = match branch {
        Some((branch, at)) => (branch, Some(at)),
        None => (change.left_name(LATE), holding(change, late.base)?),
    };
    let Some(at) = at else { return Ok(None) };
    // No file ever had the old state followed by these entries.
    let mut growth = change.generation(None);
    reach::place_spans(change, &mut growth, at)?;
    let pending = change.look(position);
    for &entry in &late.entries {
        growth.place(entry, change.id_of(entry)?, b"\n", pending.line(entry)?.len() as u64);
    }
    drop(pending);
    growth.end(b"\n".to_vec());
    let to = growth.position(late.entries.last().copied());
    change.grown(growth);
    change.set_branch(&branch, Some(to));
    Ok(Some(branch))
}

/// Returns the end of the newest generation that contains an entry.
fn holding(change: &Change<'_>, entry: EntryNumber) -> Result<Option<Position>, SyncError> {
    let session = change.before.opened()?;
    let all = session.state.next_generation().earlier();
    for generation in all.rev() {
        let view = session.whole(generation);
        if view.place(entry)?.is_some() {
            return Ok(Some(Position { head: Some(entry), ..view.position }));
        }
    }
    Ok(None)
}
