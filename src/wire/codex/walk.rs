//! Walking: a replay that runs backwards, on through all files of a thread, and drops what a rollback drops.
//!
//! Invariant: a path is found from its head backwards; records before the path are not read.

use std::collections::VecDeque;

use super::hint::{
    BASE, ROLLBACK, SUMMARY, has_turn, hint, is_conversation, is_turn, prepares, starts,
};
use crate::{
    model::{EntryNumber, Kind, PlaceNumber, Record},
    wire::{Before, Failure, Graph, Path, Sent},
};

/// How much of the user's messages a compaction without a history keeps, in tokens.
const KEPT_TOKENS: u64 = 20_000;

/// Returns the entry at which Codex would resume: the last of the conversation that no rollback dropped.
pub(super) fn head(graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
    let seen = replay(graph, graph.end(), |seen| !seen.dropped && is_conversation(seen.kind))?;
    let last =
        seen.iter().find(|seen| !seen.dropped && is_conversation(seen.kind)).or(seen.first());
    Ok(last.map(|seen| seen.entry))
}

/// Returns the last `limit` entries that led to a head; `resumed` is where Codex would resume.
///
/// A rollback behind that place tells which histories before it still count. From anywhere else the files are read as if
/// they ended there.
pub(super) fn path(
    graph: &dyn Graph,
    head: EntryNumber,
    limit: usize,
    resumed: Option<EntryNumber>,
) -> Result<Path, Failure> {
    let Some((graph, end)) = before(graph, head, resumed)? else { return Ok(Path::default()) };
    let (mut left, mut is_met) = (limit, false);
    let seen = replay(graph, end, |one| {
        // A history that is dropped goes for good, and no path leads to it.
        if one.dropped {
            return one.entry == head && one.kind == Kind::Boundary;
        }
        is_met |= one.entry == head;
        left = left.saturating_sub(usize::from(is_met));
        left == 0
    })?;
    let kept = seen.into_iter().filter(|seen| !seen.dropped).map(|seen| seen.entry);
    let mut entries: Vec<EntryNumber> =
        kept.skip_while(|entry| *entry != head).take(limit).collect();
    entries.reverse();
    Ok(Path { entries, repairs: Vec::new() })
}

/// Returns the entries behind the place where Codex would resume, if it is this one, that no rollback dropped.
pub(super) fn behind(
    graph: &dyn Graph,
    resumed: Option<EntryNumber>,
) -> Result<Vec<EntryNumber>, Failure> {
    let Some(resumed) = head(graph)?.filter(|head| resumed == Some(*head)) else {
        return Ok(Vec::new());
    };
    let seen = replay(graph, graph.end(), |one| !one.dropped && one.entry == resumed)?;
    let kept = seen.into_iter().filter(|seen| !seen.dropped).map(|seen| seen.entry);
    let mut entries: Vec<EntryNumber> = kept.take_while(|entry| *entry != resumed).collect();
    entries.reverse();
    Ok(entries)
}

/// Returns the last entry that stays when all turns of a path are dropped: the last of the conversation before the first.
pub(super) fn start(
    graph: &dyn Graph,
    path: &[EntryNumber],
) -> Result<Option<EntryNumber>, Failure> {
    let mut last = None;
    for &entry in path {
        let record = graph.record(entry)?;
        if is_turn(&record) {
            break;
        }
        last = if is_conversation(record.kind) { Some(entry) } else { last };
    }
    Ok(last)
}

/// Returns the entries of a path that Codex sends.
pub(super) fn context(graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure> {
    let mut context: Vec<EntryNumber> = Vec::new();
    let mut is_whole = false;
    for &entry in path.iter().rev() {
        let record = graph.record(entry)?;
        if is_conversation(record.kind) {
            context.push(entry);
            is_whole = hint(&record).0 & BASE != 0;
            if is_whole {
                break;
            }
        }
    }
    context.reverse();
    let mut sent = Vec::new();
    for entry in context {
        let record = graph.record(entry)?;
        if record.kind == Kind::Boundary && hint(&record).0 & BASE == 0 {
            sent = kept(graph, sent)?;
        }
        sent.push(entry);
    }
    Ok(Sent { entries: sent, is_whole, ..Sent::default() })
}

/// Returns those of the last entries of a path that are settled: turns from which on nothing is to be dropped, unless a
/// compaction without a history behind them keeps some of the messages before them.
pub(super) fn settled(
    graph: &dyn Graph,
    last: &[EntryNumber],
) -> Result<Vec<EntryNumber>, Failure> {
    let (Some(&first), Some(&end)) = (last.first(), last.last()) else { return Ok(Vec::new()) };
    let Some((graph, end)) = before(graph, end, head(graph)?)? else { return Ok(Vec::new()) };
    let seen = replay(graph, end, |one| !one.dropped && one.entry == first)?;
    let mut last = last.iter().rev().peekable();
    let mut settled = Vec::new();
    // Whether a compaction behind this place keeps messages, and none behind it has a history.
    let mut keeps = None;
    for one in seen.iter().filter(|one| !one.dropped) {
        if last.next_if_eq(&&one.entry).is_none() {
            continue;
        }
        if one.is_firm && keeps != Some(true) {
            settled.push(one.entry);
        }
        if one.kind == Kind::Boundary && keeps != Some(false) {
            keeps = Some(hint(&graph.record(one.entry)?).0 & BASE == 0);
        }
    }
    settled.reverse();
    Ok(settled)
}

/// Returns the last entry of each stretch that a rollback dropped.
pub(super) fn leaves(graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
    let seen = replay(graph, graph.end(), |_| false)?;
    let mut leaves: Vec<EntryNumber> =
        seen.iter().filter(|seen| seen.dropped && seen.ends).map(|seen| seen.entry).collect();
    leaves.reverse();
    Ok(leaves)
}

/// Returns the file, and the place in it before which the records lie that tell the path to a head.
fn before(
    graph: &dyn Graph,
    head: EntryNumber,
    resumed: Option<EntryNumber>,
) -> Result<Option<(&dyn Graph, PlaceNumber)>, Failure> {
    if resumed == Some(head) {
        return Ok(Some((graph, graph.end())));
    }
    Ok(standing(graph, head)?.map(|(graph, place)| (graph, place.next())))
}

/// Returns the file of a session in which an entry stands, of those that lead to the end of a graph, and its place there.
fn standing(
    graph: &dyn Graph,
    entry: EntryNumber,
) -> Result<Option<(&dyn Graph, PlaceNumber)>, Failure> {
    let mut graph = graph;
    loop {
        if let Some(place) = graph.place(entry)? {
            return Ok(Some((graph, place)));
        }
        let Before::File(before) = graph.before()? else { return Ok(None) };
        graph = before;
    }
}

/// An entry as a replay that runs backwards meets it.
struct Seen {
    entry: EntryNumber,
    kind: Kind,
    /// Whether a rollback dropped it.
    dropped: bool,
    /// Whether it is the last of the conversation before a rollback.
    ends: bool,
    /// Whether it is a turn that stays, and no rollback behind it drops anything before it.
    is_firm: bool,
}

/// The records before a place, the last one first, on through all files that lead there.
struct Backwards<'g> {
    graph: &'g dyn Graph,
    end: PlaceNumber,
    /// Those that were looked at and are not yet met.
    ahead: VecDeque<Record>,
    /// How many of them, the first ones, are neither a rollback nor the start of a task.
    plain: usize,
    /// Whether something that cannot be read stands before the first one.
    is_cut_short: bool,
}

impl<'g> Backwards<'g> {
    fn new(graph: &'g dyn Graph, end: PlaceNumber) -> Self {
        Self { graph, end, ahead: VecDeque::new(), plain: 0, is_cut_short: false }
    }

    fn next(&mut self) -> Result<Option<Record>, Failure> {
        self.plain = self.plain.saturating_sub(1);
        match self.ahead.pop_front() {
            None => self.read(),
            met => Ok(met),
        }
    }

    fn read(&mut self) -> Result<Option<Record>, Failure> {
        loop {
            while self.end > PlaceNumber::FIRST {
                self.end = self.end.minus(1);
                if let Some(entry) = self.graph.at(self.end)? {
                    return self.graph.record(entry).map(Some);
                }
            }
            match self.graph.before()? {
                Before::File(before) => (self.graph, self.end) = (before, before.end()),
                Before::Nothing => return Ok(None),
                Before::Unread => {
                    self.is_cut_short = true;
                    return Ok(None);
                }
            }
        }
    }

    /// Returns whether a rollback stands between here and the start of the task.
    fn meets_rollback(&mut self) -> Result<bool, Failure> {
        loop {
            if self.plain == self.ahead.len() {
                let Some(record) = self.read()? else { return Ok(false) };
                self.ahead.push_back(record);
            }
            let Some(record) = self.ahead.get(self.plain) else { return Ok(false) };
            let (flags, number) = hint(record);
            if flags & ROLLBACK != 0 && number > 0 {
                return Ok(true);
            }
            if starts(flags) {
                return Ok(false);
            }
            self.plain += 1;
        }
    }
}

/// Reads entries from before a place backwards until one is enough, or to the beginning.
fn replay(
    graph: &dyn Graph,
    end: PlaceNumber,
    mut enough: impl FnMut(&Seen) -> bool,
) -> Result<Vec<Seen>, Failure> {
    let mut seen: Vec<Seen> = Vec::new();
    // How many turns are still to be dropped, and how many tasks that have one, with the histories that are put in the
    // place of others there.
    let (mut pending, mut tasks) = (0u64, 0u64);
    // Whether the task has a turn.
    let mut counts = false;
    // Where in `seen` what precedes the last dropped turn or rollback begins: it all returns if no turn precedes it.
    let mut since = None;
    // Where in `seen` what prepared a dropped turn stands: it returns too if no turn preceded it.
    let mut trimmed: Vec<usize> = Vec::new();
    let mut trims = false;
    let mut ends = false;
    let mut files = Backwards::new(graph, end);
    while let Some(record) = files.next()? {
        let (entry, kind) = (record.n, record.kind);
        let (flags, number) = hint(&record);
        if kind == Kind::Opaque {
            continue;
        }
        let is_turn = is_turn(&record);
        counts |= has_turn(kind, flags);
        let mut dropped = pending > 0;
        if flags & ROLLBACK != 0 {
            (pending, tasks) = (pending.saturating_add(number), tasks.saturating_add(number));
            ends |= number > 0;
        } else if starts(flags) {
            tasks -= u64::from(counts && tasks > 0);
            counts = false;
            dropped |= trims;
            trimmed.extend(trims.then_some(seen.len()));
        } else if flags & BASE != 0 {
            let is_firm = number > 0;
            dropped = !is_firm && (tasks > 0 || files.meets_rollback()?);
            if !dropped {
                // What is to be dropped was said after it.
                (pending, tasks, since, trims) = (0, 0, None, false);
                trimmed.clear();
            }
        } else if is_turn && pending > 0 {
            pending -= 1;
            trims = pending == 0;
        } else if trims && prepares(kind, flags) {
            dropped = true;
            trimmed.push(seen.len());
        } else if is_conversation(kind) {
            trims = false;
        }
        let is_leaf = ends && is_conversation(kind);
        ends &= !is_leaf;
        let is_firm = is_turn && !dropped && (pending, tasks) == (0, 0);
        let one = Seen { entry, kind, dropped, ends: is_leaf, is_firm };
        let is_enough = enough(&one);
        seen.push(one);
        if is_turn {
            since = dropped.then_some(seen.len());
            trimmed.truncate(if dropped { trimmed.len() } else { 0 });
        } else if flags & ROLLBACK != 0 {
            since = since.or(Some(seen.len()));
        }
        if is_enough {
            return Ok(seen);
        }
    }
    // An unreadable history has turns too.
    if !files.is_cut_short {
        for n in trimmed {
            seen.get_mut(n).into_iter().for_each(|one| one.dropped = false);
        }
        // A history that was put in the place of another goes for good.
        let since = since.unwrap_or(seen.len());
        for one in seen.iter_mut().skip(since).filter(|one| one.kind != Kind::Boundary) {
            one.dropped = false;
        }
    }
    Ok(seen)
}

/// Returns the records that a compaction without a history keeps: the newest of the user's messages.
fn kept(graph: &dyn Graph, sent: Vec<EntryNumber>) -> Result<Vec<EntryNumber>, Failure> {
    let mut left = KEPT_TOKENS;
    let mut kept = Vec::new();
    for entry in sent.into_iter().rev() {
        let record = graph.record(entry)?;
        let (flags, tokens) = hint(&record);
        let is_users =
            record.kind == Kind::User || record.kind == Kind::Boundary && flags & SUMMARY == 0;
        if flags & BASE != 0 {
            kept.push(entry);
        } else if is_users && left > 0 {
            left = left.saturating_sub(tokens);
            kept.push(entry);
        }
    }
    kept.reverse();
    Ok(kept)
}
