//! Entries of a path that a walk by parents misses: blocks and results of its messages, and the followers of the head.
//!
//! Invariant: the file is read once from the first entry of the chains on, however many there are, and no entry is put in
//! twice.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
};

use super::read::{Hint, is_message};
use crate::{
    model::{EntryNumber, EntrySet, Kind, NameTag, PlaceNumber, Record},
    wire::{Failure, Graph},
};

/// The entries that may hang next to a chain, in the part of the file that was read for it.
pub(super) struct Index<'g> {
    graph: &'g dyn Graph,
    /// Entries from this place on were read.
    from: PlaceNumber,
    /// The blocks of each message, and the results of its calls, by their places.
    blocks: BTreeMap<(NameTag, PlaceNumber), EntryNumber>,
    results: BTreeMap<(NameTag, PlaceNumber), EntryNumber>,
    /// The followers of an entry that are no messages, the last one first.
    followers: BTreeMap<EntryNumber, Vec<Follower>>,
    /// Whether it serves several chains: what stands on one may hang next to another.
    is_shared: bool,
}

/// An entry that is no message, behind its place, and whether it belongs to a sub-agent.
type Follower = (PlaceNumber, EntryNumber, bool);

/// The entries that hang next to a chain and belong to it.
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct Beside {
    /// The blocks of messages on the chain, each by the block on the chain behind which it belongs, in the order of the file.
    blocks: BTreeMap<EntryNumber, Vec<EntryNumber>>,
    /// The results of their calls behind their places, by the last block on the chain.
    results: BTreeMap<EntryNumber, Vec<(PlaceNumber, EntryNumber)>>,
    /// The entries behind the head that are no messages.
    tail: Vec<EntryNumber>,
}

/// How many results may stand between a result and its call.
const PARALLEL: usize = 64;

impl<'g> Index<'g> {
    /// Makes an index for one chain, for which nothing was read.
    pub(super) fn new(graph: &'g dyn Graph) -> Self {
        Self {
            graph,
            from: graph.end(),
            blocks: BTreeMap::new(),
            results: BTreeMap::new(),
            followers: BTreeMap::new(),
            is_shared: false,
        }
    }

    /// Makes an index for several chains.
    pub(super) fn shared(graph: &'g dyn Graph) -> Self {
        Self { is_shared: true, ..Self::new(graph) }
    }

    /// Reads what lies before a place no more than once.
    fn reach(&mut self, from: PlaceNumber, on_chain: &EntrySet) -> Result<(), Failure> {
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
            let of_message = match record.kind {
                Kind::Assistant => Some((&mut self.blocks, message(&record))),
                Kind::Result => {
                    let call = called(self.graph, entry)?;
                    let call = call.map(|call| self.graph.record(call)).transpose()?;
                    Some((&mut self.results, call.as_ref().and_then(message)))
                }
                _ => None,
            };
            if let Some((group, message)) = of_message {
                if let Some(message) = message
                    && (self.is_shared || !on_chain.contains(entry))
                {
                    group.insert((message, place), entry);
                }
            } else if matches!(record.kind, Kind::System | Kind::Meta)
                && let Some(parent) = self.graph.parent(entry)?
            {
                let follower = (place, entry, hint.has(Hint::SIDE));
                self.followers.entry(parent).or_default().push(follower);
            }
        }
        self.from = self.from.min(from);
        Ok(())
    }

    /// Finds the entries that belong to a chain that ends at a head, or of many those that are among the last `limit` of the
    /// path. An entry that lies in the file before a part of a chain does not belong to that part.
    pub(super) fn find(
        &mut self,
        chain: &[EntryNumber],
        head: EntryNumber,
        is_part: bool,
        limit: usize,
    ) -> Result<Beside, Failure> {
        let on_chain: EntrySet = chain.iter().copied().collect();
        // The blocks of each message on the chain.
        let mut anchors: BTreeMap<NameTag, Vec<(PlaceNumber, EntryNumber)>> = BTreeMap::new();
        let mut from = if is_part { self.graph.end() } else { PlaceNumber::FIRST };
        for &entry in chain {
            let place = self.graph.place(entry)?;
            if let Some(message) = message(&self.graph.record(entry)?) {
                anchors.entry(message).or_default().push((place.unwrap_or_default(), entry));
            }
            from = from.min(place.unwrap_or(from));
        }
        // To a chain without a message only what follows its head belongs, and that stands behind it.
        if anchors.is_empty() {
            from = self.graph.place(head)?.unwrap_or(from);
        }
        self.reach(from, &on_chain)?;
        let (mut blocks, mut results) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::new());
        for (message, anchors) in anchors {
            let [(_, first), ..] = anchors[..] else { continue };
            let apart = |group: &BTreeMap<(NameTag, PlaceNumber), EntryNumber>| {
                let placed = group.range((message, from)..(message, self.graph.end())).rev();
                let placed = placed.map(|((_, place), entry)| (*place, *entry));
                let mut apart: Vec<_> =
                    placed.filter(|(_, entry)| !on_chain.contains(*entry)).take(limit).collect();
                apart.reverse();
                apart
            };
            for (place, block) in apart(&self.blocks) {
                let before = anchors.iter().rfind(|(anchor, _)| *anchor < place);
                let anchor = before.map_or(first, |(_, entry)| *entry);
                blocks.entry(anchor).or_default().push(block);
            }
            let apart = apart(&self.results);
            if let Some((_, last)) = anchors.last().filter(|_| !apart.is_empty()) {
                results.insert(*last, apart);
            }
        }
        Ok(Beside { blocks, results, tail: self.tail(from, head, &on_chain)? })
    }

    /// Returns the followers of the head that are no messages, and theirs, each behind its parent in the file.
    fn tail(
        &self,
        from: PlaceNumber,
        head: EntryNumber,
        on_chain: &EntrySet,
    ) -> Result<Vec<EntryNumber>, Failure> {
        let is_side = Hint::of(&self.graph.record(head)?).has(Hint::SIDE);
        let behind = |entry: EntryNumber, least: PlaceNumber| {
            let followers = self.followers.get(&entry).into_iter().flatten();
            let is_next = move |(place, entry, side): &&Follower| {
                *place >= least && *side == is_side && !on_chain.contains(*entry)
            };
            followers.filter(is_next).map(|(place, entry, _)| Reverse((*place, *entry)))
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
    /// Returns the blocks and results that hang elsewhere.
    pub(super) fn apart(&self) -> impl Iterator<Item = EntryNumber> {
        let results = self.results.values().flatten().map(|(_, entry)| entry);
        self.blocks.values().flatten().chain(results).copied()
    }

    /// Puts blocks among those on the chain, the first of which stays the first, and results among those that follow them, in the
    /// order of the file.
    pub(super) fn insert(
        mut self,
        graph: &dyn Graph,
        chain: Vec<EntryNumber>,
    ) -> Result<Vec<EntryNumber>, Failure> {
        if self.blocks.is_empty() && self.results.is_empty() && self.tail.is_empty() {
            return Ok(chain);
        }
        let mut entries = Vec::new();
        let mut results = Vec::new().into_iter().peekable();
        for entry in chain {
            let kind = graph.record(entry)?.kind;
            if results.peek().is_some() && is_message(kind) {
                let end = if kind == Kind::Result { graph.place(entry)? } else { None };
                while let Some((_, result)) =
                    results.next_if(|(place, _)| end.is_none_or(|end| *place < end))
                {
                    entries.push(result);
                }
            }
            entries.push(entry);
            entries.extend(self.blocks.remove(&entry).into_iter().flatten());
            if let Some(apart) = self.results.remove(&entry) {
                results = apart.into_iter().peekable();
            }
        }
        entries.extend(results.map(|(_, result)| result));
        entries.append(&mut self.tail);
        Ok(entries)
    }
}

/// Moves the blocks of a message together, over the results between them.
pub(super) fn join(
    graph: &dyn Graph,
    entries: Vec<EntryNumber>,
) -> Result<Vec<EntryNumber>, Failure> {
    let mut joined = Vec::with_capacity(entries.len());
    let mut open = None;
    // The entries between the blocks of the message that is open.
    let mut between = Vec::new();
    for entry in entries {
        let record = graph.record(entry)?;
        let message = message(&record);
        let is_between = message.is_none()
            && open.is_some()
            && (!is_message(record.kind) || record.kind == Kind::Result);
        if is_between {
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

/// Returns the message of which an entry is a block.
pub(super) fn message(record: &Record) -> Option<NameTag> {
    Hint::of(record).tags().next().filter(|_| record.kind == Kind::Assistant)
}

/// Returns the entry whose call a result answers, as the parents say: results of calls that were made together may follow each
/// other.
fn called(graph: &dyn Graph, result: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
    let mut call = graph.parent(result)?;
    for _ in 0..PARALLEL {
        let Some(entry) = call else { break };
        if graph.record(entry)?.kind != Kind::Result {
            break;
        }
        call = graph.parent(entry)?;
    }
    Ok(call)
}

/// Returns whether no later place holds the record, or another of its name.
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
        let is_side = Hint::of(&record(head)).has(Hint::SIDE);
        let mut after = BTreeSet::from([head]);
        let (mut blocks, mut tail) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
        let mut results = BTreeMap::<_, Vec<_>>::new();
        for place in PlaceNumber::each(first..graph.end()) {
            let entry = EntryNumber::new(place.get() + 1);
            let record = record(entry);
            let hint = Hint::of(&record);
            let is_glued = graph.is_glued(place).unwrap();
            if chain.contains(&entry) || is_glued || !hint.has(Hint::CHAIN) {
                continue;
            }
            let owner = match record.kind {
                Kind::Assistant => Some(entry),
                Kind::Result => called(graph, entry).unwrap(),
                _ => None,
            };
            if let Some(owner) = owner {
                let owned = message(&graph.record(owner).unwrap());
                let on_chain = owned.map(of).unwrap_or_default();
                let Some((&first, &last)) = on_chain.first().zip(on_chain.last()) else { continue };
                if owner == entry {
                    let before = on_chain.into_iter().rev().find(|anchor| *anchor < entry);
                    blocks.entry(before.unwrap_or(first)).or_default().push(entry);
                } else {
                    results.entry(last).or_default().push((place, entry));
                }
            } else if matches!(record.kind, Kind::System | Kind::Meta)
                && entry > head
                && hint.has(Hint::SIDE) == is_side
                && graph.parent(entry).unwrap().is_some_and(|parent| after.contains(&parent))
            {
                after.insert(entry);
                tail.push(entry);
            }
        }
        Beside { blocks, results, tail }
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
                (None, _) if is_message(record.kind) && record.kind != Kind::Result => open = None,
                (None, _) => {}
            }
        }
        entries
    }

    /// Records of a few messages, each of which follows any other or none.
    fn records() -> impl Strategy<Value = Vec<Record>> {
        let kinds =
            [Kind::User, Kind::Assistant, Kind::Assistant, Kind::Result, Kind::System, Kind::Meta];
        let one = (prop::sample::select(kinds.to_vec()), 0u64..40, 0u64..5, 0u8..8);
        prop::collection::vec(one, 1..40).prop_map(|all| {
            let count = all.len() as u64;
            let record = |(n, (kind, parent, tag, flags)): (EntryNumber, (Kind, u64, u64, u8))| {
                let mut hint = vec![match flags {
                    0 => 0,
                    1 => Hint::CHAIN | Hint::SIDE,
                    _ => Hint::CHAIN,
                }];
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
