//! Finds paths by replaying a thread backwards, across all its files, and dropping what a rollback drops.
//!
//! Invariant: a path is searched backwards from its head; records before the path are never read.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use super::{
    Codex,
    backwards::Backwards,
    hint::{
        BASE, ROLLBACK, TURN, call, has_turn, hint, is_firm, is_turn, prepares, starts, turns_in,
    },
    read::{calls_of, is_of_kind},
};
use crate::{
    json::Raw,
    model::{EntryNumber, Kind, PlaceNumber, Record},
    wire::{Before, Edit, Failure, Graph, Path, Paths, Sent, Walk},
};

/// How many tokens of the user's messages a compaction without a history keeps.
const KEPT_TOKENS: u64 = 20_000;

impl Walk for Codex {
    /// Returns the entry at which Codex would resume: the last entry of the conversation that no rollback dropped.
    fn head(&self, graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
        let seen = replay(graph, graph.end(), |seen| !seen.dropped && seen.kind.is_conversation())?;
        let last =
            seen.iter().find(|seen| !seen.dropped && seen.kind.is_conversation()).or(seen.first());
        Ok(last.map(|seen| seen.entry))
    }

    fn path(&self, graph: &dyn Graph, head: EntryNumber, limit: usize) -> Result<Path, Failure> {
        path(graph, head, limit, self.head(graph)?)
    }

    fn paths<'g>(&'g self, graph: &'g dyn Graph) -> Result<Paths<'g>, Failure> {
        let resumed = self.head(graph)?;
        Ok(Box::new(move |head, limit| path(graph, head, limit, resumed)))
    }

    /// Returns the last entry that remains when all turns of a path are dropped: the last of the conversation before the first turn.
    fn start(
        &self,
        graph: &dyn Graph,
        path: &[EntryNumber],
    ) -> Result<Option<EntryNumber>, Failure> {
        let mut last = None;
        for &entry in path {
            let record = graph.record(entry)?;
            if is_turn(&record) {
                break;
            }
            last = if record.kind.is_conversation() { Some(entry) } else { last };
        }
        Ok(last)
    }

    fn context(&self, graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure> {
        let mut context: Vec<EntryNumber> = Vec::new();
        let (mut is_whole, mut is_rolled_back) = (false, false);
        for &entry in path.iter().rev() {
            let record = graph.record(entry)?;
            let flags = hint(&record).0;
            is_rolled_back |= flags & ROLLBACK != 0;
            if record.kind.is_conversation() {
                context.push(entry);
                is_whole = flags & BASE != 0;
                if is_whole {
                    break;
                }
            }
        }
        context.reverse();
        let mut edits = Vec::new();
        // A rollback into the history comes after it and before everything that was said since.
        if let (true, Some(&base), Some(&head)) = (is_whole, context.first(), path.last())
            && (is_rolled_back || context.len() == 1)
        {
            edits.extend(left_of(graph, base, head)?.map(|turns| (base, Edit::Turns(turns))));
        }
        let mut sent = Vec::new();
        for entry in context {
            let record = graph.record(entry)?;
            if record.kind == Kind::Boundary && hint(&record).0 & BASE == 0 {
                sent = kept(graph, sent)?;
            }
            sent.push(entry);
        }
        Ok(Sent { entries: of_their_kinds(graph, sent)?, edits, is_whole })
    }

    /// Returns which of the last entries of a path are settled: turns after which nothing before them can be dropped, unless a later
    /// compaction without a history keeps some of the messages before them.
    fn settled(
        &self,
        graph: &dyn Graph,
        last: &[EntryNumber],
    ) -> Result<Vec<EntryNumber>, Failure> {
        let (Some(&first), Some(&end)) = (last.first(), last.last()) else { return Ok(Vec::new()) };
        let Some((graph, end)) = before(graph, end, self.head(graph)?)? else {
            return Ok(Vec::new());
        };
        let seen = replay(graph, end, |one| !one.dropped && one.entry == first)?;
        let mut last = last.iter().rev().peekable();
        let mut settled = Vec::new();
        // Whether a compaction after this place keeps messages and none after it has a history.
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
    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
        let seen = replay(graph, graph.end(), |_| false)?;
        let mut leaves: Vec<EntryNumber> =
            seen.iter().filter(|seen| seen.dropped && seen.ends).map(|seen| seen.entry).collect();
        leaves.reverse();
        Ok(leaves)
    }
}

/// Returns the last `limit` entries of the path to a head. `resumed` is where Codex would resume.
///
/// For `resumed`, rollbacks after it decide which histories before it still count. For any other head the files are read as if
/// they ended there.
pub(super) fn path(
    graph: &dyn Graph,
    head: EntryNumber,
    limit: usize,
    resumed: Option<EntryNumber>,
) -> Result<Path, Failure> {
    let Some((graph, end)) = before(graph, head, resumed)? else { return Ok(Path::default()) };
    let is_history = hint(&graph.record(head)?).0 & BASE != 0;
    let mut counted = limit;
    loop {
        let (mut left, mut is_met) = (counted, false);
        let seen = replay(graph, end, |one| {
            // A dropped history is never used again, and no path leads to it.
            if one.dropped {
                return is_history && one.entry == head;
            }
            is_met |= one.entry == head;
            left = left.saturating_sub(usize::from(is_met));
            left == 0
        })?;
        let kept = seen.into_iter().filter(|seen| !seen.dropped).map(|seen| seen.entry);
        let mut entries: Vec<EntryNumber> =
            kept.skip_while(|entry| *entry != head).take(limit).collect();
        // Some of the entries that were counted may have been dropped by records before them.
        if left > 0 || entries.len() >= limit {
            entries.reverse();
            return Ok(Path { entries, repairs: Vec::new() });
        }
        counted = counted.saturating_mul(2);
    }
}

/// Returns the entries after `resumed` that no rollback dropped; nothing if Codex would resume elsewhere.
pub(super) fn behind(
    graph: &dyn Graph,
    resumed: Option<EntryNumber>,
) -> Result<Vec<EntryNumber>, Failure> {
    let Some(resumed) = Codex.head(graph)?.filter(|head| resumed == Some(*head)) else {
        return Ok(Vec::new());
    };
    let seen = replay(graph, graph.end(), |one| !one.dropped && one.entry == resumed)?;
    let kept = seen.into_iter().filter(|seen| !seen.dropped).map(|seen| seen.entry);
    let mut entries: Vec<EntryNumber> = kept.take_while(|entry| *entry != resumed).collect();
    entries.reverse();
    Ok(entries)
}

/// Drops results whose call is of another kind. The call may be in the history at which the replay begins.
fn of_their_kinds(
    graph: &dyn Graph,
    mut sent: Vec<EntryNumber>,
) -> Result<Vec<EntryNumber>, Failure> {
    let mut calls: BTreeMap<u64, u8> = BTreeMap::new();
    let mut answers = Vec::new();
    let mut base = None;
    for &entry in &sent {
        let record = graph.record(entry)?;
        let (flags, number) = hint(&record);
        if flags & BASE != 0 {
            base = Some(entry);
            continue;
        }
        let Some((id, kind)) = call(number) else { continue };
        match record.kind {
            Kind::Assistant => *calls.entry(id).or_default() |= kind,
            Kind::Result => answers.push((entry, id, kind)),
            _ => {}
        }
    }
    if let Some(base) = base.filter(|_| answers.iter().any(|(_, id, _)| !calls.contains_key(id))) {
        let line = graph.line(base)?;
        for (id, kinds) in Raw::object(&line).map(calls_of).unwrap_or_default() {
            *calls.entry(id).or_default() |= kinds;
        }
    }
    let other: BTreeSet<EntryNumber> = answers
        .into_iter()
        .filter_map(|(entry, id, kind)| (!is_of_kind(&calls, id, kind)).then_some(entry))
        .collect();
    sent.retain(|entry| !other.contains(entry));
    Ok(sent)
}

/// Returns how many turns of the history at which the replay of a path begins were kept by a rollback; None if no rollback
/// reached into it.
fn left_of(
    graph: &dyn Graph,
    base: EntryNumber,
    path_head: EntryNumber,
) -> Result<Option<u64>, Failure> {
    let Some((graph, end)) = before(graph, path_head, Codex.head(graph)?)? else { return Ok(None) };
    let replay = run(graph, end, |one| !one.dropped && one.entry == base)?;
    Ok(replay.base.filter(|(entry, _)| *entry == base).and_then(|(_, left)| left))
}

/// Returns the file, and the place in it before which the records of the path to a head are.
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

/// Returns the file with an entry, among those that lead to the end of a graph, and the entry's place in it.
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

/// An entry as seen by the backward replay.
struct Seen {
    entry: EntryNumber,
    kind: Kind,
    /// True if a rollback dropped it.
    dropped: bool,
    /// True if it is the last entry of the conversation before a rollback.
    ends: bool,
    /// True if it is a turn that stays, and no rollback after it drops anything before it.
    is_firm: bool,
}

/// A record seen since the last turn that stays. Whether it is dropped depends on what comes before it.
struct Open {
    /// Its index in `seen`.
    at: usize,
    kind: Kind,
    flags: u8,
    number: u64,
}

impl Open {
    fn is_turn(&self) -> bool {
        self.kind.is_conversation() && self.flags & TURN != 0
    }

    fn prepares(&self) -> bool {
        prepares(self.kind, self.flags)
    }

    /// Returns true if a compaction without a history drops it.
    fn is_left_out(&self) -> bool {
        self.kind.is_conversation() && !is_kept(self.kind, self.flags, self.number)
    }
}

/// Replays entries before a place, backwards, until `enough` returns true for one, or to the beginning.
fn replay(
    graph: &dyn Graph,
    end: PlaceNumber,
    enough: impl FnMut(&Seen) -> bool,
) -> Result<Vec<Seen>, Failure> {
    Ok(run(graph, end, enough)?.seen)
}

fn run(
    graph: &dyn Graph,
    end: PlaceNumber,
    mut enough: impl FnMut(&Seen) -> bool,
) -> Result<Replay, Failure> {
    let mut files = Backwards::new(graph, end);
    let mut replay = Replay::default();
    while let Some(record) = files.next()? {
        if record.kind == Kind::Opaque {
            continue;
        }
        let one = replay.meet(&record, &mut files)?;
        let is_enough = enough(&one);
        replay.seen.push(one);
        if is_enough && !replay.is_trimmed {
            return Ok(replay);
        }
    }
    // A history that cannot be read may contain turns too.
    if !files.is_cut_short {
        replay.resolve(0);
    }
    Ok(replay)
}

/// A backward replay.
///
/// A dropped turn takes the records that prepare it along, unless it was the first one. That is known at the next turn that
/// stays.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own to what was met")]
struct Replay {
    seen: Vec<Seen>,
    /// How many turns are still to be dropped, and how many of these came before the compaction that dropped messages.
    pending: u64,
    earlier: u64,
    /// How many tasks with a turn are still to be dropped, with the histories in them.
    tasks: u64,
    /// True if the current task has a turn.
    counts: bool,
    /// True if the records that prepare the last dropped turn are next, and true if one was seen since the last turn that stays.
    trims: bool,
    is_trimmed: bool,
    /// True if the next entry of the conversation is the last one before a rollback.
    ends: bool,
    is_compacted: bool,
    /// True if a compaction without a history was dropped. The messages that it dropped do not come back.
    is_left_out: bool,
    /// The records seen since the last turn that stays, once there is a rollback, and whether such a compaction comes after it.
    open: Option<(Vec<Open>, bool)>,
    /// The newest history that stays, and how many of its turns a rollback kept, if one reached into it.
    base: Option<(EntryNumber, Option<u64>)>,
}

impl Replay {
    /// Decides on the previous record.
    fn meet(&mut self, record: &Record, files: &mut Backwards<'_>) -> Result<Seen, Failure> {
        let (flags, number) = hint(record);
        let this = Open { at: self.seen.len(), kind: record.kind, flags, number };
        let is_base = flags & BASE != 0;
        let is_gone = self.is_left_out && this.is_left_out() && !is_base;
        let is_turn = this.is_turn() && (!is_gone || self.earlier > 0);
        let is_said = this.kind.is_conversation();
        let leaves_out = this.kind == Kind::Boundary;
        self.counts |= has_turn(this.kind, flags);
        let mut dropped = self.pending > 0 || is_gone;
        if flags & ROLLBACK != 0 {
            self.roll_back(number);
        } else if starts(flags) {
            self.tasks -= u64::from(self.counts && self.tasks > 0);
            self.counts = false;
            dropped |= self.trims;
            self.is_trimmed |= self.trims;
        } else if is_base {
            let is_firm = is_firm(number) && !self.is_compacted;
            dropped = !is_firm && (self.tasks > 0 || files.meets_rollback()?);
            if !dropped {
                // Whatever is still to be dropped came after the history or is part of it.
                let left = self.resolve(turns_in(number));
                self.base.get_or_insert((record.n, left));
            }
        } else if (is_turn || leaves_out) && self.pending > 0 {
            self.pending -= u64::from(is_turn);
            self.earlier = if leaves_out { 0 } else { self.earlier.saturating_sub(1) };
            self.trims = self.pending == 0;
            self.is_left_out |= leaves_out;
        } else if self.trims && this.prepares() {
            dropped = true;
            self.is_trimmed = true;
        } else if is_said {
            self.trims = false;
        }
        self.is_compacted |= this.kind == Kind::Boundary;
        let stays = is_turn && !dropped;
        if stays {
            (self.open, self.is_trimmed) = (None, false);
        }
        let ends = self.ends && is_said;
        self.ends &= !ends;
        if let Some((open, _)) = &mut self.open {
            open.push(this);
        }
        let is_firm = stays && self.tasks == 0 && !self.is_left_out;
        Ok(Seen { entry: record.n, kind: record.kind, dropped, ends, is_firm })
    }

    fn roll_back(&mut self, n_turns: u64) {
        self.pending = self.pending.saturating_add(n_turns);
        self.tasks = self.tasks.saturating_add(n_turns);
        if self.is_left_out {
            self.earlier = self.earlier.saturating_add(n_turns);
        }
        if n_turns > 0 {
            self.ends = true;
            self.open.get_or_insert_with(|| (Vec::new(), self.is_left_out));
        }
    }

    /// Decides which open records stay, given the number of turns in the history before them. Returns how many of those turns
    /// stay if a rollback reached into the history. No rollback seen so far reaches further.
    fn resolve(&mut self, n_turns: u64) -> Option<u64> {
        let open = self.open.take();
        let left = open
            .and_then(|(open, is_left_out)| resolve(&mut self.seen, &open, n_turns, is_left_out));
        let (seen, ends, counts) = (mem::take(&mut self.seen), self.ends, self.counts);
        let base = self.base;
        *self = Self { seen, ends, counts, base, is_compacted: true, ..Self::default() };
        left
    }
}

/// Replays the open records forwards, as Codex does, and marks the dropped ones. `n_turns` is the number of turns in the history
/// before them. Returns how many of those stay if a rollback reached into it.
fn resolve(seen: &mut [Seen], open: &[Open], n_turns: u64, is_left_out: bool) -> Option<u64> {
    let mut stays = Stays { n_before: n_turns, ..Stays::default() };
    // What each compaction without a history dropped. It stays on the path before the compaction.
    let mut above: BTreeMap<usize, Vec<&Open>> = BTreeMap::new();
    // A dropped history is never used again.
    for one in open.iter().rev().filter(|one| one.flags & BASE == 0) {
        if one.flags & ROLLBACK != 0 {
            stays.roll_back(one.number);
        } else if one.kind == Kind::Boundary {
            above.insert(one.at, stays.leave_out());
        }
        stays.push(one);
    }
    let mut say = |one: &Open, dropped| {
        if let Some(seen) = seen.get_mut(one.at) {
            seen.dropped = dropped;
        }
    };
    for one in open {
        say(one, true);
    }
    let left = stays.left;
    let mut stay = stays.records;
    while let Some(one) = stay.pop() {
        if !(is_left_out && one.is_left_out()) {
            say(one, false);
            stay.extend(above.remove(&one.at).unwrap_or_default());
        }
    }
    left
}

/// The records that stay, oldest first.
#[derive(Default)]
struct Stays<'o> {
    records: Vec<&'o Open>,
    /// The indexes of records that begin a turn, and of those that are conversation or prepare a turn.
    turns: Vec<usize>,
    said: Vec<usize>,
    /// The length of the prefix from which a compaction has already dropped everything it drops.
    n_kept: usize,
    /// The number of turns before the records.
    n_before: u64,
    /// `n_before` after a rollback reached the history. A compaction without a history freezes it.
    left: Option<u64>,
    is_compacted: bool,
}

impl<'o> Stays<'o> {
    fn push(&mut self, one: &'o Open) {
        let at = self.records.len();
        self.turns.extend(one.is_turn().then_some(at));
        self.said.extend((one.kind.is_conversation() || one.prepares()).then_some(at));
        self.records.push(one);
    }

    /// Drops the last turns, with the records that prepare the first of them unless no turn comes before it.
    fn roll_back(&mut self, n_turns: u64) {
        let n_here = self.turns.len() as u64;
        if n_turns == 0 || self.n_before + n_here == 0 {
            return;
        }
        let first = if self.n_before > 0 { 0 } else { self.turns.first().copied().unwrap_or(0) };
        let left = usize::try_from(n_here.saturating_sub(n_turns)).unwrap_or(0);
        let goes = n_turns > n_here && self.n_before > 0;
        let turn = self.turns.get(left).copied().filter(|_| !goes);
        let mut cut = turn.unwrap_or(first);
        self.said.truncate(self.said.partition_point(|&at| at < cut));
        while let Some(at) = self
            .said
            .pop_if(|at| *at >= first && self.records.get(*at).is_some_and(|one| one.prepares()))
        {
            cut = at;
        }
        self.turns.truncate(self.turns.partition_point(|&at| at < cut));
        self.records.truncate(cut);
        self.n_kept = self.n_kept.min(cut);
        let reaches = self.n_before > 0 && self.said.is_empty() && !self.is_compacted;
        self.n_before = self.n_before.saturating_sub(n_turns.saturating_sub(n_here));
        self.left = if reaches { Some(self.n_before) } else { self.left };
    }

    /// Removes and returns the records that a compaction without a history drops.
    fn leave_out(&mut self) -> Vec<&'o Open> {
        self.is_compacted = true;
        let begin = self.n_kept;
        let behind = self.records.split_off(begin);
        self.turns.truncate(self.turns.partition_point(|&at| at < begin));
        self.said.truncate(self.said.partition_point(|&at| at < begin));
        let (left_out, kept): (Vec<_>, Vec<_>) =
            behind.into_iter().partition(|one| one.is_left_out());
        for one in kept {
            self.push(one);
        }
        self.n_kept = self.records.len();
        left_out
    }
}

/// Returns the records that a compaction without a history keeps: the newest of the user's messages.
fn kept(graph: &dyn Graph, sent: Vec<EntryNumber>) -> Result<Vec<EntryNumber>, Failure> {
    let mut left = KEPT_TOKENS;
    let mut kept = Vec::new();
    for entry in sent.into_iter().rev() {
        let record = graph.record(entry)?;
        let (flags, tokens) = hint(&record);
        if flags & BASE != 0 {
            kept.push(entry);
        } else if is_kept(record.kind, flags, tokens) && left > 0 {
            left = left.saturating_sub(tokens);
            kept.push(entry);
        }
    }
    kept.reverse();
    Ok(kept)
}

/// Returns true if a compaction without a history keeps a record: a message in the user's place that is not a summary.
fn is_kept(kind: Kind, flags: u8, tokens: u64) -> bool {
    let is_said = matches!(kind, Kind::User | Kind::Boundary) || kind == Kind::Note && tokens > 0;
    is_said && flags & TURN != 0
}
