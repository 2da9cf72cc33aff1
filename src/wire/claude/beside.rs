//! Entries of a path that following parents does not reach: further blocks and results of its messages, program text after
//! those, and the followers of the head.
//!
//! ```text
//! b1 ─ b2 ─ r2 ─ a       the chain: b1 and b2 call tools, r2 is the result of the second call
//!  └─ r1 ─ q ─ h         r1 is the result of the first, and the single file of followers after it goes with it
//! ```
//!
//! Invariant: an index never reads an entry twice, however many chains it serves, and never reads before their first entry. No
//! entry is inserted twice.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use super::read::{Hint, is_message, is_queued};
use crate::{
    model::{EntryNumber, EntrySet, Kind, NameTag, PlaceNumber, Record},
    wire::{Failure, Graph},
};

/// The entries that may belong to a chain without being on it, from the part of the file read so far.
pub(super) struct Index<'g> {
    graph: &'g dyn Graph,
    /// Everything from this place on was read.
    from: PlaceNumber,
    /// The blocks of each message, and the results of its calls, by place.
    blocks: BTreeMap<(NameTag, PlaceNumber), EntryNumber>,
    results: BTreeMap<(NameTag, PlaceNumber), EntryNumber>,
    /// The first entry of each run of program text after a block or result, by place, and whether it follows a block.
    runs: BTreeMap<(NameTag, PlaceNumber), (EntryNumber, bool)>,
    /// The messages that call tools, with the place of the last call.
    calling: BTreeMap<NameTag, PlaceNumber>,
    /// The followers of each entry except results, last one first.
    followers: BTreeMap<EntryNumber, Vec<Follower>>,
    /// Whether it serves several chains. Then entries on a chain are indexed too, because they may belong to another chain.
    is_shared: bool,
}

#[derive(Clone, Copy)]
struct Follower {
    place: PlaceNumber,
    entry: EntryNumber,
    is_side: bool,
    class: Class,
}

/// What kind of follower an entry is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Program text.
    Words,
    /// Program text in the user's place.
    Meta,
    /// An entry that the program skips; its followers count as followers of its parent.
    Passing,
    /// A message or a boundary.
    Other,
}

/// The entries that belong to a chain without being on it.
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct Beside {
    /// Blocks of messages on the chain, program text between them, and program text that follows program text on the chain.
    /// Grouped by the chain entry after which they are inserted, in file order.
    behind: BTreeMap<EntryNumber, Vec<EntryNumber>>,
    /// The results of their calls, and the program text after those and after the last block, with their places. Grouped by the
    /// last block on the chain.
    results: BTreeMap<EntryNumber, Vec<(PlaceNumber, EntryNumber)>>,
    /// The entries after the head that are not messages.
    tail: Vec<EntryNumber>,
}

/// The blocks of a message on the chain, by place.
type Anchors = Vec<(PlaceNumber, EntryNumber)>;

/// How many entries may be between a result and its call.
const PARALLEL: usize = 64;

impl<'g> Index<'g> {
    /// Makes an empty index for one chain.
    pub(super) fn new(graph: &'g dyn Graph) -> Self {
        Self {
            graph,
            from: graph.end(),
            blocks: BTreeMap::new(),
            results: BTreeMap::new(),
            runs: BTreeMap::new(),
            calling: BTreeMap::new(),
            followers: BTreeMap::new(),
            is_shared: false,
        }
    }

    /// Makes an empty index for several chains.
    pub(super) fn shared(graph: &'g dyn Graph) -> Self {
        Self { is_shared: true, ..Self::new(graph) }
    }

    /// Reads backwards to a place. What was read before is not read again.
    pub(super) fn reach(&mut self, from: PlaceNumber, on_chain: &EntrySet) -> Result<(), Failure> {
        for place in PlaceNumber::each(from..self.from).rev() {
            let Some(entry) = self.graph.at(place)? else { continue };
            let record = self.graph.record(entry)?;
            let hint = Hint::of(&record);
            if !hint.has(Hint::CHAIN)
                || self.graph.is_glued(place)?
                || !is_last(self.graph, &record, place)?
            {
                continue;
            }
            let own = message(&record);
            if let Some(own) = own.filter(|_| hint.has(Hint::CALLS)) {
                self.calling.entry(own).or_insert(place);
            }
            if !self.is_shared && on_chain.contains(entry) {
                continue;
            }
            if let Some(own) = own {
                self.blocks.insert((own, place), entry);
            }
            if record.kind == Kind::Result {
                if let Some(caller) = caller(self.graph, entry)? {
                    self.results.insert((caller, place), entry);
                }
            } else {
                self.follow(&record, place)?;
            }
        }
        self.from = self.from.min(from);
        Ok(())
    }

    /// Records an entry as a follower of its parent.
    fn follow(&mut self, record: &Record, place: PlaceNumber) -> Result<(), Failure> {
        let (entry, hint) = (record.n, Hint::of(record));
        let Some(parent) = self.graph.parent(entry)? else { return Ok(()) };
        let class = match record.kind {
            Kind::Note if hint.has(Hint::META) => Class::Meta,
            _ if is_beside(record) => Class::Words,
            _ if hint.has(Hint::PROGRESS) => Class::Passing,
            _ => Class::Other,
        };
        let is_side = hint.has(Hint::SIDE);
        let follower = Follower { place, entry, is_side, class };
        self.followers.entry(parent).or_default().push(follower);
        if matches!(class, Class::Passing | Class::Other) {
            return Ok(());
        }
        let mut above = self.graph.record(parent)?;
        for _ in 0..PARALLEL {
            if !Hint::of(&above).has(Hint::PROGRESS) {
                break;
            }
            let Some(parent) = self.graph.parent(above.n)? else { return Ok(()) };
            above = self.graph.record(parent)?;
        }
        if Hint::of(&above).has(Hint::SIDE) != is_side {
            return Ok(());
        }
        let of = match above.kind {
            Kind::Result => caller(self.graph, above.n)?,
            _ => message(&above),
        };
        if let Some(of) = of {
            self.runs.insert((of, place), (entry, above.kind != Kind::Result));
        }
        Ok(())
    }

    /// Returns true if the program text that starts at an entry is sent with the answer it follows. The whole file must have been
    /// read.
    pub(super) fn is_run(&self, first: EntryNumber) -> Result<bool, Failure> {
        let of = caller(self.graph, first)?.filter(|of| self.calling.contains_key(of));
        let Some(of) = of else { return Ok(false) };
        Ok(!self.run(first, of, PlaceNumber::FIRST, &EntrySet::default())?.is_empty())
    }

    /// Returns the run of program text that starts at an entry, if each entry of it has a single follower up to the end or up to
    /// blocks of the same message. Followers before `from` are ignored.
    fn run(
        &self,
        first: EntryNumber,
        of: NameTag,
        from: PlaceNumber,
        on_chain: &EntrySet,
    ) -> Result<Vec<(PlaceNumber, EntryNumber)>, Failure> {
        let is_side = Hint::of(&self.graph.record(first)?).has(Hint::SIDE);
        let mut seen = EntrySet::default();
        let mut run = Vec::new();
        let mut at = self.graph.place(first)?.map(|place| (place, first));
        while let Some((place, entry)) = at {
            if on_chain.contains(entry) || !seen.insert(entry) {
                return Ok(Vec::new());
            }
            run.push((place, entry));
            at = None;
            let mut open = vec![entry];
            while let Some(above) = open.pop() {
                for next in self.followers.get(&above).into_iter().flatten() {
                    if next.place < from || on_chain.contains(next.entry) {
                        continue;
                    }
                    match next.class {
                        Class::Passing if seen.insert(next.entry) => open.push(next.entry),
                        Class::Words | Class::Meta if next.is_side == is_side && at.is_none() => {
                            at = Some((next.place, next.entry));
                        }
                        Class::Other if message(&self.graph.record(next.entry)?) == Some(of) => {}
                        _ => return Ok(Vec::new()),
                    }
                }
            }
        }
        Ok(run)
    }

    /// Finds the entries that belong to a chain with this head; of many, those among the last `limit` entries of the path.
    ///
    /// If the chain is only a part of the whole, an entry before that part in the file does not belong to it.
    pub(super) fn find(
        &mut self,
        chain: &[EntryNumber],
        head: EntryNumber,
        is_part: bool,
        limit: usize,
    ) -> Result<Beside, Failure> {
        let on_chain: EntrySet = chain.iter().copied().collect();
        let mut anchors: BTreeMap<NameTag, Anchors> = BTreeMap::new();
        let mut from = if is_part { self.graph.end() } else { PlaceNumber::FIRST };
        for &entry in chain {
            let place = self.graph.place(entry)?;
            if let Some(message) = message(&self.graph.record(entry)?) {
                anchors.entry(message).or_default().push((place.unwrap_or_default(), entry));
            }
            from = from.min(place.unwrap_or(from));
        }
        // A chain without a message has only followers of its head, and these come after the head in the file.
        if anchors.is_empty() {
            from = self.graph.place(head)?.unwrap_or(from);
        }
        self.reach(from, &on_chain)?;
        let (mut behind, mut results) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        let mut taken = on_chain.clone();
        for (&message, anchors) in &anchors {
            let [(_, first), ..] = anchors[..] else { continue };
            let mut words = Vec::new();
            if self.calls(message, from) {
                let firsts = self.runs.range((message, from)..(message, self.graph.end()));
                for (_, &(first, is_behind_block)) in firsts {
                    let run = self.run(first, message, from, &on_chain)?;
                    words.extend(run.into_iter().map(|word| (word, is_behind_block)));
                }
            }
            // If program text splits the blocks, the order after it depends on all earlier blocks.
            let mut limit = limit;
            for ((_, word), _) in &words {
                limit = if is_between(&self.graph.record(*word)?) { limit } else { usize::MAX };
            }
            let apart = |group: &BTreeMap<(NameTag, PlaceNumber), EntryNumber>| {
                let placed = group.range((message, from)..(message, self.graph.end())).rev();
                let placed = placed.map(|((_, place), entry)| (*place, *entry));
                let mut apart: Vec<_> =
                    placed.filter(|(_, entry)| !on_chain.contains(*entry)).take(limit).collect();
                apart.reverse();
                apart
            };
            let (mut blocks, mut apart) = (apart(&self.blocks), apart(&self.results));
            let last = anchors.iter().chain(&blocks).map(|(place, _)| *place).max();
            for (word, is_behind_block) in words {
                taken.insert(word.1);
                let is_between = is_behind_block && Some(word.0) < last;
                if is_between { &mut blocks } else { &mut apart }.push(word);
            }
            blocks.sort_unstable();
            apart.sort_unstable();
            for (place, block) in blocks {
                let before = anchors.iter().rfind(|(anchor, _)| *anchor < place);
                let anchor = before.map_or(first, |(_, entry)| *entry);
                behind.entry(anchor).or_default().push(block);
            }
            taken.extend(apart.iter().map(|(_, entry)| *entry));
            if let Some((_, last)) = anchors.last().filter(|_| !apart.is_empty()) {
                results.insert(*last, apart);
            }
        }
        for (entry, run) in self.anchored(chain, &anchors, from, &on_chain)? {
            taken.extend(run.iter().copied());
            behind.entry(entry).or_default().extend(run);
        }
        Ok(Beside { behind, results, tail: self.tail(from, head, &taken)? })
    }

    /// Returns true if a message calls a tool at or after a place.
    fn calls(&self, message: NameTag, from: PlaceNumber) -> bool {
        self.calling.get(&message).is_some_and(|place| *place >= from)
    }

    /// Returns the program text that follows program text on the chain, among the blocks and results of a message with calls.
    fn anchored(
        &self,
        chain: &[EntryNumber],
        anchors: &BTreeMap<NameTag, Anchors>,
        from: PlaceNumber,
        on_chain: &EntrySet,
    ) -> Result<Vec<(EntryNumber, Vec<EntryNumber>)>, Failure> {
        let mut found = Vec::new();
        if self.followers.is_empty() {
            return Ok(found);
        }
        let mut calling = None;
        for &entry in chain {
            let record = self.graph.record(entry)?;
            if !is_beside(&record) {
                let is_calling = |of: &NameTag| anchors.contains_key(of) && self.calls(*of, from);
                calling = match message(&record) {
                    Some(message) => Some(message).filter(is_calling),
                    None => calling.filter(|_| record.kind == Kind::Result),
                };
                continue;
            }
            let Some(of) = calling else { continue };
            let side = Hint::of(&record).has(Hint::SIDE);
            let next = self.followers.get(&entry).into_iter().flatten();
            let is_first = |next: &&Follower| {
                let is_words = matches!(next.class, Class::Words | Class::Meta);
                is_words && next.is_side == side && next.place >= from
            };
            let mut run = Vec::new();
            for first in next.rev().filter(is_first) {
                let found = self.run(first.entry, of, from, on_chain)?;
                run.extend(found.into_iter().map(|(_, one)| one));
            }
            if !run.is_empty() {
                found.push((entry, run));
            }
        }
        Ok(found)
    }

    /// Returns the followers of the head that are not messages, and their followers, as long as each comes after its parent in
    /// the file.
    fn tail(
        &self,
        from: PlaceNumber,
        head: EntryNumber,
        taken: &EntrySet,
    ) -> Result<Vec<EntryNumber>, Failure> {
        let is_side = Hint::of(&self.graph.record(head)?).has(Hint::SIDE);
        let behind = |entry: EntryNumber, least: PlaceNumber| {
            let followers = self.followers.get(&entry).into_iter().flatten();
            let is_next = move |next: &&Follower| {
                matches!(next.class, Class::Words | Class::Passing)
                    && next.place >= least
                    && next.is_side == is_side
                    && !taken.contains(next.entry)
            };
            followers.filter(is_next).map(|next| Reverse((next.place, next.entry)))
        };
        let first = self.graph.place(head)?.map_or(from, PlaceNumber::next);
        let mut next: BinaryHeap<_> = behind(head, first).collect();
        let mut tail = Vec::new();
        while let Some(Reverse((place, entry))) = next.pop() {
            tail.push(entry);
            next.extend(behind(entry, place.next()));
        }
        Ok(tail)
    }
}

impl Beside {
    /// Returns the entries that have parents elsewhere.
    pub(super) fn apart(&self) -> impl Iterator<Item = EntryNumber> {
        let results = self.results.values().flatten().map(|(_, entry)| entry);
        self.behind.values().flatten().chain(results).copied()
    }

    /// Inserts the entries into the chain, in file order: blocks among those on the chain, after the first one, and results and
    /// program text among the entries that follow them.
    pub(super) fn insert(
        mut self,
        graph: &dyn Graph,
        chain: Vec<EntryNumber>,
    ) -> Result<Vec<EntryNumber>, Failure> {
        if self.behind.is_empty() && self.results.is_empty() && self.tail.is_empty() {
            return Ok(chain);
        }
        let mut entries = Vec::new();
        let mut results = Vec::new().into_iter().peekable();
        for entry in chain {
            if results.peek().is_some() {
                let record = graph.record(entry)?;
                let end = if is_of_answer(&record) { graph.place(entry)? } else { None };
                while let Some((_, result)) =
                    results.next_if(|(place, _)| end.is_none_or(|end| *place < end))
                {
                    entries.push(result);
                }
            }
            entries.push(entry);
            entries.extend(self.behind.remove(&entry).into_iter().flatten());
            if let Some(apart) = self.results.remove(&entry) {
                results = apart.into_iter().peekable();
            }
        }
        entries.extend(results.map(|(_, result)| result));
        entries.append(&mut self.tail);
        Ok(entries)
    }
}

/// Moves the blocks of a message together, across results and attachments between them.
pub(super) fn join(
    graph: &dyn Graph,
    entries: Vec<EntryNumber>,
) -> Result<Vec<EntryNumber>, Failure> {
    let mut joined = Vec::with_capacity(entries.len());
    let mut open = None;
    // The entries between blocks of the current message.
    let mut between = Vec::new();
    for entry in entries {
        let record = graph.record(entry)?;
        let message = message(&record);
        if message.is_none() && open.is_some() && is_between(&record) {
            between.push(entry);
            continue;
        }
        if message.is_none() || message != open {
            joined.append(&mut between);
            open = message;
        }
        joined.push(entry);
    }
    joined.append(&mut between);
    Ok(joined)
}

/// Returns the id of the message that an entry is a block of.
pub(super) fn message(record: &Record) -> Option<NameTag> {
    Hint::of(record).tags().next().filter(|_| record.kind == Kind::Assistant)
}

/// Returns true for program text, which may be sent with a chain without being on it, also in the user's place.
pub(super) fn is_beside(record: &Record) -> bool {
    let hint = Hint::of(record);
    let is_note = record.kind == Kind::Note && (hint.has(Hint::META) || hint.has(Hint::SENT));
    hint.has(Hint::CHAIN) && (is_note || record.kind == Kind::System)
}

/// Returns true if the blocks of a message may continue after an entry.
fn is_between(record: &Record) -> bool {
    (!is_message(record.kind) || record.kind == Kind::Result || is_queued(record))
        && !is_said(record)
}

/// Returns true if an entry is not a message but is sent as one of the user: the output of a command.
fn is_said(record: &Record) -> bool {
    record.kind == Kind::System && Hint::of(record).has(Hint::LOCAL | Hint::SENT)
}

/// Returns true for an entry that an answer of the model may cause: a result or program text.
pub(super) fn is_of_answer(record: &Record) -> bool {
    let is_other = is_message(record.kind) || record.kind == Kind::Boundary;
    !is_other || record.kind == Kind::Result || is_beside(record)
}

/// Returns the message that caused an entry, found through its parents. Results of parallel calls may follow each other, with
/// program text between them.
fn caller(graph: &dyn Graph, entry: EntryNumber) -> Result<Option<NameTag>, Failure> {
    let mut at = graph.parent(entry)?;
    for _ in 0..PARALLEL {
        let Some(entry) = at else { break };
        let record = graph.record(entry)?;
        if !is_of_answer(&record) {
            return Ok(message(&record));
        }
        at = graph.parent(entry)?;
    }
    Ok(None)
}

/// Returns true if no later place contains this record, or another record of its name.
pub(super) fn is_last(
    graph: &dyn Graph,
    record: &Record,
    place: PlaceNumber,
) -> Result<bool, Failure> {
    Ok(graph.bears(record)? && graph.place(record.n)? == Some(place))
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test stops at the first surprise")]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{Landmark, Parent};

    /// Entries that stand in the order of their numbers, from 1.
    struct Plain(Vec<Record>);

    impl Graph for Plain {
        fn end(&self) -> PlaceNumber {
            PlaceNumber::new(self.0.len() as u64)
        }

        fn at(&self, place: PlaceNumber) -> Result<Option<EntryNumber>, Failure> {
            Ok((place < self.end()).then(|| EntryNumber::new(place.get() + 1)))
        }

        fn place(&self, entry: EntryNumber) -> Result<Option<PlaceNumber>, Failure> {
            Ok(Some(PlaceNumber::new(entry.get() - 1)).filter(|place| *place < self.end()))
        }

        fn record(&self, entry: EntryNumber) -> Result<Record, Failure> {
            Ok(self.0[entry.index().unwrap()].clone())
        }

        fn parent(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
            Ok(match self.record(entry)?.parent {
                Parent::Entry(parent) => Some(parent),
                Parent::Root | Parent::Missing => None,
            })
        }

        fn line(&self, _: EntryNumber) -> Result<Vec<u8>, Failure> {
            Err("a walk reads no line".into())
        }

        fn named(&self, _: NameTag) -> Result<Option<EntryNumber>, Failure> {
            Ok(None)
        }

        fn landmark(
            &self,
            _: Landmark,
            _: PlaceNumber,
        ) -> Result<Option<(PlaceNumber, EntryNumber)>, Failure> {
            Ok(None)
        }

        fn is_glued(&self, place: PlaceNumber) -> Result<bool, Failure> {
            Ok(place.get() % 17 == 16)
        }

        fn bytes(&self) -> Result<u64, Failure> {
            Ok(0)
        }
    }

    /// Finds the same by its definition: the file is read for this chain alone.
    fn by_definition(
        graph: &Plain,
        chain: &[EntryNumber],
        head: EntryNumber,
        is_part: bool,
    ) -> Beside {
        let record = |entry| graph.record(entry).unwrap();
        let of = |message_of: NameTag| -> Vec<EntryNumber> {
            let is_block = |entry: &EntryNumber| message(&record(*entry)) == Some(message_of);
            chain.iter().copied().filter(is_block).collect()
        };
        let first = chain
            .iter()
            .min()
            .filter(|_| is_part)
            .map_or(PlaceNumber::FIRST, |first| PlaceNumber::new(first.get() - 1));
        let is_there = |entry: &EntryNumber| {
            let place = PlaceNumber::new(entry.get() - 1);
            let is_read = place >= first && !graph.is_glued(place).unwrap();
            is_read && Hint::of(&record(*entry)).has(Hint::CHAIN)
        };
        let all: Vec<_> =
            EntryNumber::each(EntryNumber::FIRST..EntryNumber::new(graph.end().get() + 1))
                .filter(is_there)
                .collect();
        let apart = || all.iter().copied().filter(|entry| !chain.contains(entry));
        let placed = |entry: EntryNumber| (PlaceNumber::new(entry.get() - 1), entry);
        let side = |entry| Hint::of(&record(entry)).has(Hint::SIDE);
        let calls = |message_of| {
            all.iter().any(|entry| {
                let record = record(*entry);
                message(&record) == Some(message_of) && Hint::of(&record).has(Hint::CALLS)
            })
        };
        let (mut behind, mut results) =
            (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        let mut taken = BTreeSet::new();
        for entry in apart() {
            let above = above(graph, entry);
            let words = || {
                let above = above
                    .filter(|above| is_beside(&record(entry)) && side(*above) == side(entry))?;
                match record(above).kind {
                    Kind::Result => caller(graph, above).unwrap(),
                    _ => message(&record(above)),
                }
                .filter(|of| calls(*of))
            };
            let own = message(&record(entry));
            let result =
                || caller(graph, entry).unwrap().filter(|_| record(entry).kind == Kind::Result);
            let owner = own.or_else(result).or_else(words);
            let on_chain = owner.map(of).unwrap_or_default();
            let Some((&first, &last)) = on_chain.first().zip(on_chain.last()) else { continue };
            if own.is_some() {
                let before = on_chain.into_iter().rev().find(|anchor| *anchor < entry);
                behind.entry(before.unwrap_or(first)).or_default().push(entry);
                continue;
            }
            let is_result = record(entry).kind == Kind::Result;
            let found =
                if is_result { vec![entry] } else { run(graph, entry, owner, &apart().collect()) };
            taken.extend(found.iter().copied());
            let is_block = |entry: &EntryNumber| message(&record(*entry)) == owner;
            let end = all.iter().chain(chain).copied().filter(is_block).max();
            let is_behind_block = above.is_some_and(|above| record(above).kind != Kind::Result);
            for found in found {
                if !is_result && is_behind_block && Some(found) < end {
                    let before = on_chain.iter().rev().find(|anchor| **anchor < found);
                    behind.entry(*before.unwrap_or(&first)).or_default().push(found);
                } else {
                    results.entry(last).or_default().push(placed(found));
                }
            }
        }
        for behind in behind.values_mut() {
            behind.sort();
        }
        for results in results.values_mut() {
            results.sort();
        }
        let mut calling = None;
        for &entry in chain {
            let own = record(entry);
            if !is_beside(&own) {
                calling = match message(&own) {
                    Some(message) => Some(message).filter(|message| calls(*message)),
                    None => calling.filter(|_| own.kind == Kind::Result),
                };
                continue;
            }
            for next in apart().filter(|_| calling.is_some()) {
                let follows =
                    graph.parent(next).unwrap() == Some(entry) && side(next) == side(entry);
                if follows && is_beside(&record(next)) {
                    let run = run(graph, next, calling, &apart().collect());
                    taken.extend(run.iter().copied());
                    if !run.is_empty() {
                        behind.entry(entry).or_default().extend(run);
                    }
                }
            }
        }
        let left: Vec<_> = apart().filter(|entry| !taken.contains(entry)).collect();
        let tail = tail_by_definition(graph, &left, head);
        Beside { behind, results, tail }
    }

    /// Returns the words among these entries that follow the head, one behind another.
    fn tail_by_definition(
        graph: &Plain,
        left: &[EntryNumber],
        head: EntryNumber,
    ) -> Vec<EntryNumber> {
        let record = |entry| graph.record(entry).unwrap();
        let side = |entry| Hint::of(&record(entry)).has(Hint::SIDE);
        let mut after = BTreeSet::from([head]);
        let mut tail = Vec::new();
        for entry in left.iter().copied().filter(|entry| *entry > head) {
            let one = record(entry);
            let is_words =
                is_beside(&one) && !(one.kind == Kind::Note && Hint::of(&one).has(Hint::META));
            if (is_words || one.kind == Kind::Meta)
                && side(entry) == side(head)
                && graph.parent(entry).unwrap().is_some_and(|parent| after.contains(&parent))
            {
                after.insert(entry);
                tail.push(entry);
            }
        }
        tail
    }

    /// Returns the entry that one follows, over those that are nothing to the program.
    fn above(graph: &Plain, entry: EntryNumber) -> Option<EntryNumber> {
        let mut above = graph.parent(entry).unwrap();
        for _ in 0..PARALLEL {
            let Some(passed) = above else { break };
            if !Hint::of(&graph.record(passed).unwrap()).has(Hint::PROGRESS) {
                return above;
            }
            above = graph.parent(passed).unwrap();
        }
        None
    }

    /// Returns the words from an entry on, if no more than one of these entries follows any of them, blocks of a message apart.
    fn run(
        graph: &Plain,
        first: EntryNumber,
        of: Option<NameTag>,
        apart: &BTreeSet<EntryNumber>,
    ) -> Vec<EntryNumber> {
        let record = |entry| graph.record(entry).unwrap();
        let side = |entry| Hint::of(&record(entry)).has(Hint::SIDE);
        let mut run = vec![first];
        let mut seen = BTreeSet::from([first]);
        while let Some(&last) = run.last() {
            let mut next: Vec<EntryNumber> = Vec::new();
            let mut passed = vec![last];
            while let Some(above) = passed.pop() {
                let is_passed = |entry: &EntryNumber| {
                    let own = record(*entry);
                    own.kind == Kind::Result || message(&own).is_some() && message(&own) == of
                };
                for entry in apart.iter().copied().filter(|entry| !is_passed(entry)) {
                    if graph.parent(entry).unwrap() != Some(above) {
                        continue;
                    }
                    if !seen.insert(entry) {
                        return Vec::new();
                    }
                    let is_passing = record(entry).kind == Kind::Meta;
                    if is_passing { passed.push(entry) } else { next.push(entry) }
                }
            }
            match next[..] {
                [] => return run,
                [next] if is_beside(&record(next)) && side(next) == side(first) => run.push(next),
                _ => return Vec::new(),
            }
        }
        run
    }

    /// Joins the same by its definition: each block moves over the entries between it and those before it.
    fn joined(graph: &Plain, mut entries: Vec<EntryNumber>) -> Vec<EntryNumber> {
        let mut open: Option<(NameTag, usize)> = None;
        for at in 0..entries.len() {
            let record = graph.record(entries[at]).unwrap();
            match (message(&record), open) {
                (Some(message), Some((same, end))) if message == same => {
                    entries[end..=at].rotate_right(1);
                    open = Some((message, end + 1));
                }
                (Some(message), _) => open = Some((message, at + 1)),
                (None, _) if is_said(&record) => open = None,
                (None, _) if is_queued(&record) => {}
                (None, _) if is_message(record.kind) && record.kind != Kind::Result => open = None,
                (None, _) => {}
            }
        }
        entries
    }

    /// Records of a few messages, each of which follows any other or none.
    fn records() -> impl Strategy<Value = Vec<Record>> {
        let kinds = [
            Kind::User,
            Kind::Assistant,
            Kind::Assistant,
            Kind::Result,
            Kind::System,
            Kind::Note,
            Kind::Meta,
        ];
        let one = (prop::sample::select(kinds.to_vec()), 0u64..40, 0u64..5, 0u8..8);
        prop::collection::vec(one, 1..40).prop_map(|all| {
            let count = all.len() as u64;
            let record = |(n, (kind, parent, tag, flags)): (EntryNumber, (Kind, u64, u64, u8))| {
                let mut hint = vec![match flags {
                    0 => 0,
                    1 => Hint::CHAIN | Hint::SIDE,
                    _ => Hint::CHAIN,
                }];
                if hint[0] > 0 {
                    hint[0] |= match kind {
                        Kind::Assistant if flags > 3 => Hint::CALLS,
                        Kind::Note if flags > 5 => Hint::META,
                        Kind::Note if flags > 3 => Hint::SENT,
                        Kind::System if flags > 5 => Hint::LOCAL | Hint::SENT,
                        Kind::Meta => Hint::PROGRESS,
                        _ => 0,
                    };
                }
                if kind == Kind::Assistant && tag > 0 {
                    hint.extend(tag.to_le_bytes());
                }
                let parent = if parent == 0 {
                    Parent::Root
                } else {
                    Parent::Entry(EntryNumber::new(1 + parent % count))
                };
                Record { n, kind, name: None, parent, time: None, hint: hint.into() }
            };
            EntryNumber::FIRST.onwards().zip(all).map(record).collect()
        })
    }

    proptest! {
        #[test]
        fn what_hangs_beside_chains_is_found_as_if_each_were_alone(
            records in records(),
            chains in prop::collection::vec((prop::collection::vec(any::<prop::sample::Index>(), 1..9), any::<bool>(), 1..9usize), 1..5),
        ) {
            let graph = Plain(records);
            let mut index = Index::shared(&graph);
            for (chain, is_part, limit) in chains {
                let mut unique = BTreeSet::new();
                let entries = chain.iter().map(|at| at.index(graph.0.len()) as u64 + 1);
                let entries = entries.map(EntryNumber::new);
                let chain: Vec<_> = entries.filter(|entry| unique.insert(*entry)).collect();
                let head = *chain.last().unwrap();
                let expected = by_definition(&graph, &chain, head, is_part);
                let mut find = |limit| index.find(&chain, head, is_part, limit).unwrap();
                let (all, last) = (find(usize::MAX), find(limit));
                prop_assert_eq!(&all, &expected);
                let alone = Index::new(&graph).find(&chain, head, is_part, usize::MAX).unwrap();
                prop_assert_eq!(alone, expected);
                let path = |beside: Beside| {
                    join(&graph, beside.insert(&graph, chain.clone()).unwrap()).unwrap()
                };
                let (all, last) = (path(all), path(last));
                let behind = |path: &[EntryNumber]| path[path.len().saturating_sub(limit)..].to_vec();
                prop_assert_eq!(behind(&last), behind(&all));
                prop_assert_eq!(join(&graph, chain.clone()).unwrap(), joined(&graph, chain));
            }
        }
    }

    #[test]
    fn blocks_that_results_stand_between_are_joined_in_one_pass() {
        let count = 100_000;
        let all = EntryNumber::FIRST..EntryNumber::new(2 * count + 1);
        let tag = [&[Hint::CHAIN][..], &7u64.to_le_bytes()].concat();
        let record = |n: EntryNumber| match n.get() % 2 {
            1 => (Kind::Assistant, tag.clone()),
            _ => (Kind::Result, vec![Hint::CHAIN]),
        };
        let records = EntryNumber::each(all.clone()).map(|n| {
            let (kind, hint) = record(n);
            Record { n, kind, name: None, parent: Parent::Root, time: None, hint: hint.into() }
        });
        let graph = Plain(records.collect());
        let joined = join(&graph, EntryNumber::each(all).collect()).unwrap();
        let expected = (0..count).map(|n| 2 * n + 1).chain((1..=count).map(|n| 2 * n));
        assert!(joined.into_iter().eq(expected));
    }
}
