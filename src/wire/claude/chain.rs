//! The walk of a resume: how it follows parents backwards, and where it inserts entries that are not on the chain.
//!
//! ```text
//!          1 ─ 2 ─ 3 ─ 4 ─ [boundary] ─ S ─ 7 ─ 8        the file; the boundary keeps 3 and 4
//!  path    1   2   [boundary]   S   3   4   7   8        each entry once; the kept ones are moved
//!  context                      S   3   4   7   8
//! ```
//!
//! Invariant: a walk never visits an entry twice, so it ends. Nothing recurses, and replacements for missing parents are found
//! in sorted sets.

use std::{
    cell::OnceCell,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use super::{
    Claude,
    beside::{Index, is_last, is_of_answer, join, message},
    read::{Hint, is_aside, is_message, is_queued},
    sent,
};
use crate::{
    json::Raw,
    model::{EntryNumber, EntrySet, Kind, Landmark, Parent, PlaceNumber, Record, Timestamp},
    wire::{Edit, Failure, Graph, Path, Read as _, Repair, Sent},
};

/// A larger file is not read whole: entries before the last boundary do not exist unless it keeps them.
const READ_WHOLE: u64 = 5 << 20;

/// A missing parent is replaced with a record written at most this many milliseconds earlier.
const MENDED_WITHIN: i64 = 5_000;

/// Finds paths of one graph. Entries read for one path are reused for the next.
pub(super) struct Paths<'g> {
    graph: &'g dyn Graph,
    ground: Rc<Ground>,
    beside: Index<'g>,
    /// Whether the index of entries is shared by many paths.
    is_shared: bool,
}

impl<'g> Paths<'g> {
    /// Prepares to find one path.
    pub(super) fn new(graph: &'g dyn Graph) -> Result<Self, Failure> {
        let ground = Rc::new(Ground::of(graph)?);
        Ok(Self { graph, ground, beside: Index::new(graph), is_shared: false })
    }

    /// Prepares to find many paths.
    pub(super) fn shared(graph: &'g dyn Graph) -> Result<Self, Failure> {
        Ok(Self { beside: Index::shared(graph), is_shared: true, ..Self::new(graph)? })
    }

    /// Returns the last `limit` entries of the path from the beginning to a head.
    ///
    /// The walk goes further back than that, to the point before which no message can have entries among them.
    pub(super) fn path(&mut self, head: EntryNumber, limit: usize) -> Result<Path, Failure> {
        let mut walk = Walk::over(self.graph, Rc::clone(&self.ground));
        if let Some(kept) = &self.ground.kept {
            walk.seen.extend(kept.words_behind(self.graph, head)?);
        }
        let mut entries = Vec::new();
        let mut open = None;
        let mut told = usize::MAX;
        let mut at = Some(head);
        while let Some(entry) = at {
            entries.push(entry);
            at = walk.step(entry)?;
            if entries.len() < limit {
                continue;
            }
            told = told.min(walk.repairs.len());
            let record = self.graph.record(entry)?;
            if !is_of_answer(&record) {
                match message(&record) {
                    Some(message) if open.is_none_or(|open| open == message) => {
                        open = Some(message);
                    }
                    _ => break,
                }
            }
        }
        entries.reverse();
        let mut repairs = walk.repairs;
        repairs.truncate(told);
        repairs.reverse();
        // For a partial path, read no more of the file than necessary.
        let is_part = at.is_some() && !self.is_shared;
        let beside = self.beside.find(&entries, head, is_part, limit)?;
        let apart: Vec<EntryNumber> = beside.apart().collect();
        let mut entries = join(self.graph, beside.insert(self.graph, entries)?)?;
        entries.drain(..entries.len().saturating_sub(limit));
        if !apart.is_empty() {
            let shown: EntrySet = entries.iter().copied().collect();
            let what = "side record, not on the resumed path";
            let apart = apart.into_iter().filter(|entry| shown.contains(*entry));
            repairs.extend(apart.map(|entry| Repair { entry, what }));
        }
        Ok(Path { entries, repairs })
    }
}

/// Returns the entries of a path that are sent: everything after the last boundary, and the messages that it keeps.
///
/// A message queued while the model worked is sent directly after the last answer or result before it, and so before a prompt
/// that it follows.
pub(super) fn context(graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure> {
    let mut sent = Sent::default();
    // For each call, the first record which says that its result is sent truncated.
    let mut cuts = BTreeMap::new();
    let mut queued = Vec::new();
    for &entry in path.iter().rev() {
        let record = graph.record(entry)?;
        if record.kind == Kind::Boundary {
            sent.is_whole = true;
            sent.entries.append(&mut queued);
            if let Some(kept) = Kept::find(graph)?.filter(|kept| kept.boundary == entry) {
                let mut exist = EntrySet::default();
                for &entry in &sent.entries {
                    if kept.holds(entry) || graph.place(entry)? > Some(kept.place) {
                        exist.insert(entry);
                    }
                }
                sent.edits.retain(|(entry, _)| exist.contains(*entry));
                sent.entries.retain(|entry| exist.contains(*entry));
            }
            break;
        }
        let hint = Hint::of(&record);
        let is_message = is_message(record.kind) && !hint.has(Hint::UNSENT);
        let is_sent = is_message || record.kind == Kind::System && hint.has(Hint::SENT);
        if is_sent && is_queued(&record) {
            queued.push(entry);
        } else if is_sent {
            if matches!(record.kind, Kind::Assistant | Kind::Result) {
                sent.entries.append(&mut queued);
            }
            sent.entries.push(entry);
        }
        if record.kind == Kind::System && hint.has(Hint::CLEARS) {
            let line = graph.line(entry)?;
            let calls = Raw::object(&line).and_then(sent::cut).map(|(calls, _)| calls);
            cuts.extend(calls.into_iter().flatten().map(|call| (call.into_owned(), entry)));
        } else if record.kind == Kind::Result && !cuts.is_empty() {
            let line = graph.line(entry)?;
            let answers = Raw::object(&line).map(|record| Claude.answers(record).sent);
            let calls = answers.into_iter().flatten().map(|answer| answer.call);
            let cut: BTreeSet<EntryNumber> =
                calls.filter_map(|call| cuts.get(&call)).copied().collect();
            sent.edits.extend(cut.into_iter().rev().map(|cut| (entry, Edit::Content(cut))));
        }
    }
    sent.entries.append(&mut queued);
    sent.entries.reverse();
    sent.edits.reverse();
    Ok(sent)
}

/// A link of the main chain, sorted by time; of links with the same time, the last one in the file comes first.
type Timed = (Timestamp, Reverse<PlaceNumber>, EntryNumber);

/// Data shared by all walks over one graph.
struct Ground {
    /// The messages kept by the newest boundary.
    kept: Option<Kept>,
    /// The newest boundary and its place, if nothing before it is read except what it keeps.
    floor: Option<(EntryNumber, PlaceNumber)>,
    /// All links of the main chain. Computed when the first missing parent is replaced.
    times: OnceCell<Vec<Timed>>,
}

impl Ground {
    fn of(graph: &dyn Graph) -> Result<Self, Failure> {
        let found = Boundary::newest(graph)?;
        let kept = found.as_ref().map_or(Ok(None), |boundary| boundary.kept(graph))?;
        let floor = match found {
            Some(boundary) if kept.is_some() || boundary.drops(graph)? => {
                Some((boundary.record.n, boundary.place))
            }
            _ => None,
        };
        Ok(Self { kept, floor, times: OnceCell::new() })
    }

    /// Returns true if an entry comes before the floor and is not kept.
    fn is_unread(&self, graph: &dyn Graph, entry: EntryNumber) -> Result<bool, Failure> {
        let may_be = self.floor.is_some();
        Ok(may_be && graph.place(entry)?.is_some_and(|place| self.is_below(place, entry)))
    }

    fn is_below(&self, place: PlaceNumber, entry: EntryNumber) -> bool {
        self.floor.is_some_and(|(_, floor)| place < floor)
            && !self.kept.as_ref().is_some_and(|kept| kept.holds(entry))
    }

    fn times(&self, graph: &dyn Graph) -> Result<&[Timed], Failure> {
        if self.times.get().is_none() {
            let _ = self.times.set(times(graph)?);
        }
        Ok(self.times.get().map_or(&[], Vec::as_slice))
    }
}

/// A backward walk along the chain.
pub(super) struct Walk<'g> {
    pub(super) graph: &'g dyn Graph,
    ground: Rc<Ground>,
    seen: EntrySet,
    /// Whether the walk has crossed the newest boundary.
    is_crossed: bool,
    /// Skips over visited links in `times`: each maps to the first of the visited links before it.
    passed: BTreeMap<usize, usize>,
    /// Skips over places visited while crossing boundaries: each maps to the first of the visited places before it.
    passed_places: BTreeMap<PlaceNumber, PlaceNumber>,
    repairs: Vec<Repair>,
}

impl<'g> Walk<'g> {
    /// Prepares a walk.
    pub(super) fn new(graph: &'g dyn Graph) -> Result<Self, Failure> {
        Ok(Self::over(graph, Rc::new(Ground::of(graph)?)))
    }

    fn over(graph: &'g dyn Graph, ground: Rc<Ground>) -> Self {
        Self {
            graph,
            ground,
            seen: EntrySet::default(),
            is_crossed: false,
            passed: BTreeMap::new(),
            passed_places: BTreeMap::new(),
            repairs: Vec::new(),
        }
    }

    /// Marks an entry as visited and returns the next one to visit.
    pub(super) fn step(&mut self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
        self.seen.insert(entry);
        let mut at = entry;
        let mut passed = 0;
        loop {
            let Some(parent) = self.parent(at)? else { return Ok(None) };
            if !self.seen.contains(parent) {
                return Ok(Some(parent));
            }
            // Kept messages were already visited. Above the boundary the walk skips them and continues with the old conversation.
            let kept = self.ground.kept.as_ref().filter(|_| self.is_crossed);
            if parent != at
                && kept.is_some_and(|kept| kept.holds(parent) && passed < kept.order.len())
            {
                at = parent;
                passed += 1;
                continue;
            }
            return self.mend(&self.graph.record(at)?, "its parents form a cycle");
        }
    }

    /// Returns the parent of an entry, with missing parents replaced and kept messages moved.
    fn parent(&mut self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
        let record = self.graph.record(entry)?;
        if record.kind == Kind::Boundary {
            if self.ground.floor.is_some_and(|(floor, _)| floor == entry) {
                self.is_crossed = true;
                // Links that were skipped because they were not read are above the boundary.
                self.passed.clear();
            }
            return self.before(entry);
        }
        let named = self.graph.parent(entry)?;
        let kept = self.ground.kept.as_ref().filter(|_| !self.is_crossed);
        let moved = kept.map_or(Ok(None), |kept| kept.parent(self.graph, &record, named))?;
        match (moved, named) {
            (Some(Parent::Entry(parent)), _) => Ok(Some(parent)),
            (None, Some(parent))
                if parent != entry
                    && !is_missed(self.graph, entry, parent)?
                    && !self.is_cut_off(entry, parent)? =>
            {
                Ok(Some(parent))
            }
            (None, None) if record.parent == Parent::Root => Ok(None),
            _ => self.mend(&record, "its parent is not in the file"),
        }
    }

    /// Returns true if an entry is read and its parent is not.
    fn is_cut_off(&self, entry: EntryNumber, parent: EntryNumber) -> Result<bool, Failure> {
        let ground = &self.ground;
        Ok(!self.is_crossed
            && ground.is_unread(self.graph, parent)?
            && !ground.is_unread(self.graph, entry)?)
    }

    /// Returns the entry above a boundary: the one that it names, else the last link before it in the file.
    fn before(&mut self, boundary: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
        let Some(place) = self.graph.place(boundary)? else { return Ok(None) };
        if let Some(named) = self.graph.parent(boundary)?
            && self.graph.place(named)?.is_some_and(|above| above < place)
        {
            return Ok(Some(named));
        }
        // A place that was skipped once is never needed again: it is not a link, or was visited.
        let (mut end, mut passed, mut found) = (place, Vec::new(), None);
        while let Some(last) = end.earlier().next_back() {
            let before = self.passed_places.get(&last).copied();
            if let (None, Some(entry)) = (before, self.graph.at(last)?) {
                let record = self.graph.record(entry)?;
                let hint = Hint::of(&record);
                if hint.has(Hint::CHAIN) && !hint.has(Hint::SIDE) && !self.seen.contains(entry) {
                    found = Some(entry);
                    break;
                }
            }
            passed.push(last);
            end = before.unwrap_or(last);
        }
        self.passed_places.extend(passed.into_iter().map(|place| (place, end)));
        if found.is_some() {
            self.repairs.push(Repair { entry: boundary, what: "its parent is not in the file" });
        }
        Ok(found)
    }

    /// Returns the replacement for a missing parent: the latest entry at most [`MENDED_WITHIN`] before; of several with the same
    /// time, which may be the entry's own, the first one in the file.
    fn mend(
        &mut self,
        record: &Record,
        what: &'static str,
    ) -> Result<Option<EntryNumber>, Failure> {
        self.repairs.push(Repair { entry: record.n, what });
        let Some(time) = record.time.filter(|_| !Hint::of(record).has(Hint::SIDE)) else {
            return Ok(None);
        };
        let ground = Rc::clone(&self.ground);
        let times = ground.times(self.graph)?;
        let reads_all = self.is_crossed || ground.is_unread(self.graph, record.n)?;
        let since = Timestamp(time.0.saturating_sub(MENDED_WITHIN));
        let from = times.partition_point(|(at, ..)| *at < since);
        let mut end = times.partition_point(|(at, ..)| *at <= time);
        let mut passed = Vec::new();
        let mut found = None;
        while let Some(last) = end.checked_sub(1).filter(|last| *last >= from) {
            if let Some(&(_, Reverse(place), entry)) = times.get(last)
                && (reads_all || !ground.is_below(place, entry))
                && !self.passed.contains_key(&last)
                && !self.seen.contains(entry)
            {
                found = Some(entry);
                break;
            }
            passed.push(last);
            end = self.passed.get(&last).copied().unwrap_or(last);
        }
        self.passed.extend(passed.into_iter().map(|last| (last, end)));
        Ok(found)
    }

    /// Returns the parent that a record names, with kept messages moved but missing parents not replaced. A boundary has none.
    pub(super) fn named(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
        let record = self.graph.record(entry)?;
        if record.kind == Kind::Boundary {
            return Ok(None);
        }
        let named = self.graph.parent(entry)?;
        let kept = self.ground.kept.as_ref();
        let moved = kept.map_or(Ok(None), |kept| kept.parent(self.graph, &record, named))?;
        match (moved, named) {
            (Some(Parent::Entry(parent)), _) => Ok(Some(parent)),
            (None, Some(parent)) if !is_missed(self.graph, entry, parent)? => Ok(Some(parent)),
            _ => Ok(None),
        }
    }

    /// Returns the last kept message of the newest boundary if the entry is its summary, else the entry; None if nothing is kept.
    pub(super) fn behind_kept(&self, entry: EntryNumber) -> Option<EntryNumber> {
        self.ground.kept.as_ref().map(|kept| kept.behind(entry))
    }

    /// Returns true if a resume can send an entry and the newest boundary did not drop it.
    pub(super) fn can_be_head(&self, entry: EntryNumber) -> Result<bool, Failure> {
        let record = self.graph.record(entry)?;
        let hint = Hint::of(&record);
        let is_passing = hint.has(Hint::PROGRESS) || record.kind == Kind::Boundary;
        if !hint.has(Hint::CHAIN) || hint.has(Hint::SIDE) || is_passing {
            return Ok(false);
        }
        Ok(!self.ground.is_unread(self.graph, entry)?)
    }
}

/// The messages kept by the newest boundary.
#[derive(Debug)]
pub(super) struct Kept {
    boundary: EntryNumber,
    /// The place of the boundary.
    place: PlaceNumber,
    /// The entry that the first of them follows: the summary, unless it is missing.
    pub(super) anchor: Option<EntryNumber>,
    /// The kept messages, each with the one before it.
    order: BTreeMap<EntryNumber, Option<EntryNumber>>,
    last: EntryNumber,
}

/// A boundary.
pub(super) struct Boundary {
    pub(super) record: Record,
    pub(super) place: PlaceNumber,
}

impl Boundary {
    /// Returns the newest boundary, including boundaries of side chains.
    fn newest(graph: &dyn Graph) -> Result<Option<Self>, Failure> {
        Self::before(graph, graph.end())
    }

    /// Returns the last boundary before a place.
    pub(super) fn before(graph: &dyn Graph, place: PlaceNumber) -> Result<Option<Self>, Failure> {
        let Some((place, entry)) = graph.landmark(Landmark::Boundary, place)? else {
            return Ok(None);
        };
        Ok(Some(Self { record: graph.record(entry)?, place }))
    }

    /// Returns the messages that it keeps; None if any of them is missing or not a message.
    pub(super) fn kept(&self, graph: &dyn Graph) -> Result<Option<Kept>, Failure> {
        let hint = Hint::of(&self.record);
        let is_segment = hint.has(Hint::SEGMENT);
        // The program skips the progress notes of a running tool.
        let named = |tag| {
            let Some(entry) = graph.named(tag)? else { return Ok(None) };
            let is_passed = Hint::of(&graph.record(entry)?).has(Hint::PROGRESS);
            Ok::<_, Failure>((!is_passed).then_some(entry))
        };
        let mut tags = hint.tags();
        let anchor = tags.next().map_or(Ok(None), named)?;
        let Some(named) = tags.map(named).collect::<Result<Option<Vec<_>>, _>>()? else {
            return Ok(None);
        };
        let mut entries = named.as_slice();
        let segment;
        if let (true, &[first, last]) = (is_segment, entries) {
            let Some(found) = between(graph, first, last)? else { return Ok(None) };
            segment = found;
            entries = &segment;
        }
        let mut above = anchor;
        let mut order = BTreeMap::new();
        for &entry in entries {
            if order.insert(entry, above).is_some() || Some(entry) == anchor {
                return Ok(None);
            }
            above = Some(entry);
        }
        let (boundary, place) = (self.record.n, self.place);
        let last = entries.last();
        Ok(last.map(|&last| Kept { boundary, place, anchor, order, last }))
    }

    /// Returns true if everything before a boundary that keeps nothing is dropped: in a large file, if the boundary says that it
    /// keeps nothing, and if an older one says that it keeps something.
    fn drops(&self, graph: &dyn Graph) -> Result<bool, Failure> {
        Ok(graph.bytes()? > READ_WHOLE
            || match Hint::of(&self.record).tags().count() {
                0 => graph.landmark(Landmark::Keeper, self.place)?.is_some(),
                named => named == 1,
            })
    }
}

impl Kept {
    /// Returns the messages kept by the newest boundary.
    pub(super) fn find(graph: &dyn Graph) -> Result<Option<Self>, Failure> {
        Boundary::newest(graph)?.map_or(Ok(None), |boundary| boundary.kept(graph))
    }

    /// Returns the kept entries.
    pub(super) fn entries(&self) -> impl Iterator<Item = EntryNumber> {
        self.order.keys().copied()
    }

    /// Returns their number.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the place after the summary.
    pub(super) fn begin(&self, graph: &dyn Graph) -> Result<Option<PlaceNumber>, Failure> {
        let Some(anchor) = self.anchor else { return Ok(None) };
        Ok(graph.place(anchor)?.map(PlaceNumber::next))
    }

    /// Returns the kept entries after `head` if `head` is kept and they are all program text. They follow it, not the summary.
    fn words_behind(
        &self,
        graph: &dyn Graph,
        head: EntryNumber,
    ) -> Result<Vec<EntryNumber>, Failure> {
        let mut words = Vec::new();
        let mut at = Some(self.last);
        while let Some(entry) = at.filter(|at| *at != head) {
            if is_message(graph.record(entry)?.kind) {
                return Ok(Vec::new());
            }
            words.push(entry);
            at = self.order.get(&entry).copied().flatten();
        }
        Ok(if at.is_some() { words } else { Vec::new() })
    }

    /// Returns the last kept message if the entry is the summary, else the entry.
    pub(super) fn behind(&self, entry: EntryNumber) -> EntryNumber {
        if Some(entry) == self.anchor { self.last } else { entry }
    }

    /// Returns true if a message is kept.
    pub(super) fn holds(&self, entry: EntryNumber) -> bool {
        self.order.contains_key(&entry)
    }

    /// Returns the parent of a record if it differs from the one that the record names; no parent if the summary is missing.
    fn parent(
        &self,
        graph: &dyn Graph,
        record: &Record,
        named: Option<EntryNumber>,
    ) -> Result<Option<Parent>, Failure> {
        let entry = record.n;
        if let Some(&before) = self.order.get(&entry) {
            return Ok(Some(before.map_or(Parent::Missing, Parent::Entry)));
        }
        // The summary is missing, and so is this record's parent: treat the record as a follower of the summary.
        if self.anchor.is_none() && record.parent == Parent::Missing {
            let is_behind = graph.place(entry)? > Some(self.place);
            return Ok(is_behind.then_some(Parent::Entry(self.last)));
        }
        let Some(named) = named.filter(|_| Some(entry) != self.anchor) else { return Ok(None) };
        if Some(named) == self.anchor {
            return Ok(Some(Parent::Entry(self.last)));
        }
        let is_dropped =
            graph.place(named)?.is_some_and(|place| place < self.place) && !self.holds(named);
        let is_behind = is_dropped && graph.place(entry)?.is_some_and(|place| place > self.place);
        // Program text whose parent was dropped has no parent.
        let is_said = is_message(record.kind) && !is_queued(record);
        let is_main = is_said && !Hint::of(record).has(Hint::SIDE);
        Ok((is_behind && is_main).then_some(Parent::Entry(self.last)))
    }
}

/// Returns the entries from one to another, both included, if the second descends from the first.
fn between(
    graph: &dyn Graph,
    first: EntryNumber,
    last: EntryNumber,
) -> Result<Option<Vec<EntryNumber>>, Failure> {
    let mut entries = Vec::new();
    let mut seen = EntrySet::default();
    let mut at = Some(last);
    while let Some(entry) = at.filter(|entry| seen.insert(*entry)) {
        entries.push(entry);
        if entry == first {
            entries.reverse();
            return Ok(Some(entries));
        }
        at = graph.parent(entry)?;
    }
    Ok(None)
}

pub(super) fn newest_boundary(graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
    Ok(Boundary::newest(graph)?.map(|boundary| boundary.record.n))
}

/// Returns true if the program does not find the parent that an entry names: the parent is not the first object on its physical
/// line, or it is a progress note later in the file.
fn is_missed(graph: &dyn Graph, entry: EntryNumber, parent: EntryNumber) -> Result<bool, Failure> {
    let Some(place) = graph.place(parent)? else { return Ok(false) };
    let is_passed = Hint::of(&graph.record(parent)?).has(Hint::PROGRESS);
    Ok(is_passed && Some(place) > graph.place(entry)? || graph.is_glued(place)?)
}

/// Returns all links of the main chain.
fn times(graph: &dyn Graph) -> Result<Vec<Timed>, Failure> {
    let mut times = Vec::new();
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        let hint = Hint::of(&record);
        if let Some(time) = record.time
            && hint.has(Hint::CHAIN)
            && !hint.has(Hint::SIDE)
            && !hint.has(Hint::PROGRESS)
            && !is_aside(&record)
            && !graph.is_glued(place)?
            && is_last(graph, &record, place)?
        {
            times.push((time, Reverse(place), entry));
        }
    }
    times.sort_unstable();
    Ok(times)
}
