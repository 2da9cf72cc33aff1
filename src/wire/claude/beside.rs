//! What a walk by parents does not come past, and belongs to it: blocks and results of its messages, and what follows the head.
//!
//! Invariant: the file is read once from the first entry of the chain on, and no entry is put in twice.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    chain::{is_last, is_message},
    read::Hint,
};
use crate::{
    model::{Kind, NameTag, Record},
    wire::{Failure, Graph},
};

/// What hangs beside a chain and belongs to it.
pub(super) struct Beside {
    /// What belongs to messages on the chain, by the last block on the chain.
    found: BTreeMap<u64, Apart>,
    /// What was written behind the head and is no message.
    tail: Vec<u64>,
}

/// Blocks and results of a message, each behind its place, in the order of the file.
#[derive(Default)]
struct Apart {
    blocks: Vec<(u64, u64)>,
    results: Vec<(u64, u64)>,
}

impl Beside {
    /// Finds what belongs to a chain that ends at a head.
    pub(super) fn find(graph: &dyn Graph, chain: &[u64], head: u64) -> Result<Self, Failure> {
        let on_chain: BTreeSet<u64> = chain.iter().copied().collect();
        let mut anchors = BTreeMap::new();
        let mut from = graph.len();
        for &entry in chain {
            let record = graph.record(entry)?;
            if let Some(message) = message(&record) {
                anchors.insert(message, entry);
            }
            from = from.min(graph.place(entry)?.unwrap_or(from));
        }
        let is_side = Hint::of(&graph.record(head)?).has(Hint::SIDE);
        let head_place = graph.place(head)?;
        let mut after = BTreeSet::from([head]);
        let mut found: BTreeMap<u64, Apart> = BTreeMap::new();
        let mut tail = Vec::new();
        for place in from..graph.len() {
            let Some(entry) = graph.at(place)? else { continue };
            if on_chain.contains(&entry) {
                continue;
            }
            let record = graph.record(entry)?;
            let hint = Hint::of(&record);
            if !hint.has(Hint::CHAIN) || graph.is_glued(place)? || !is_last(graph, &record, place)?
            {
                continue;
            }
            let owner = match record.kind {
                Kind::Assistant => Some(entry),
                Kind::Result => graph.parent(entry)?,
                _ => None,
            };
            if let Some(owner) = owner {
                let anchor =
                    message(&graph.record(owner)?).and_then(|message| anchors.get(&message));
                if let Some(&anchor) = anchor {
                    let apart = found.entry(anchor).or_default();
                    let group = if owner == entry { &mut apart.blocks } else { &mut apart.results };
                    group.push((place, entry));
                }
            } else if matches!(record.kind, Kind::System | Kind::Meta)
                && Some(place) > head_place
                && hint.has(Hint::SIDE) == is_side
                && graph.parent(entry)?.is_some_and(|parent| after.contains(&parent))
            {
                after.insert(entry);
                tail.push(entry);
            }
        }
        Ok(Self { found, tail })
    }

    /// Returns the blocks and results that hang elsewhere.
    pub(super) fn apart(&self) -> impl Iterator<Item = u64> {
        let groups =
            self.found.values().flat_map(|apart| apart.blocks.iter().chain(&apart.results));
        groups.map(|(_, entry)| *entry)
    }

    /// Puts blocks behind the last one on the chain, and results among those that follow it, in the order of the file.
    pub(super) fn insert(
        mut self,
        graph: &dyn Graph,
        chain: Vec<u64>,
    ) -> Result<Vec<u64>, Failure> {
        if self.found.is_empty() && self.tail.is_empty() {
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
            if let Some(apart) = self.found.remove(&entry) {
                entries.extend(apart.blocks.into_iter().map(|(_, block)| block));
                results = apart.results.into_iter().peekable();
            }
        }
        entries.extend(results.map(|(_, result)| result));
        entries.append(&mut self.tail);
        Ok(entries)
    }
}

/// Moves the blocks of a message together, over the results between them.
pub(super) fn join(graph: &dyn Graph, entries: &mut [u64]) -> Result<(), Failure> {
    let mut open: Option<(NameTag, usize)> = None;
    for at in 0..entries.len() {
        let Some(&entry) = entries.get(at) else { break };
        let record = graph.record(entry)?;
        match (message(&record), open) {
            (Some(message), Some((same, end))) if message == same => {
                if let Some(part) = entries.get_mut(end..=at) {
                    part.rotate_right(1);
                }
                open = Some((message, end + 1));
            }
            (Some(message), _) => open = Some((message, at + 1)),
            (None, _) if is_message(record.kind) && record.kind != Kind::Result => open = None,
            (None, _) => {}
        }
    }
    Ok(())
}

/// Returns the message of which an entry is a block.
pub(super) fn message(record: &Record) -> Option<NameTag> {
    Hint::of(record).tags.first().copied().filter(|_| record.kind == Kind::Assistant)
}
