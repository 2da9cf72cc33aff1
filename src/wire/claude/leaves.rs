//! Where the conversation went on elsewhere and was left.
//!
//! A branch is a stretch that no resume reaches: after a rewind, before a second root, of a sub-agent. Blocks and results
//! of a message, copies with the same time, and the talk of a command next to its made-up answer are not, and
//! neither are errors of the interface. A conversation before a `/clear` is no rewind, but nothing else reaches it: its end is a leaf too.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    beside,
    chain::{self, Walk},
    read::{self, Hint},
};
use crate::{
    model::{EntryNumber, Kind, NameTag, Timestamp},
    wire::{Failure, Graph},
};

/// Returns the last entry of each stretch that no resume reaches, in order.
pub(super) fn leaves(graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
    let mut reached = BTreeSet::new();
    if let Some(head) = chain::head(graph)? {
        reached.extend(chain::Paths::new(graph)?.path(head, usize::MAX)?.entries);
    }
    let mut messages = Vec::new();
    let mut blocks: BTreeMap<NameTag, Vec<EntryNumber>> = BTreeMap::new();
    let mut results: BTreeMap<EntryNumber, Vec<EntryNumber>> = BTreeMap::new();
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        let is_message = read::is_message(record.kind) && Hint::of(&record).has(Hint::CHAIN);
        if !is_message || !beside::is_last(graph, &record, place)? {
            continue;
        }
        messages.push(entry);
        if let Some(message) = beside::message(&record) {
            blocks.entry(message).or_default().push(entry);
        } else if record.kind == Kind::Result
            && let Some(call) = graph.parent(entry)?
        {
            results.entry(call).or_default().push(entry);
        }
    }
    let mut twins = BTreeSet::new();
    for &entry in &messages {
        if reached.contains(&entry) {
            twins.insert((graph.parent(entry)?, graph.record(entry)?.time));
        }
    }
    let mut leaves = Vec::new();
    let mut walk = Walk::new(graph)?;
    for &leaf in messages.iter().rev() {
        let mut stretch = Vec::new();
        let mut at = Some(leaf);
        while let Some(entry) = at.filter(|entry| !reached.contains(entry)) {
            stretch.push(entry);
            at = walk.step(entry)?;
        }
        let forks = at.is_some();
        if !stretch.is_empty() && (!forks || !is_technical(graph, &stretch, &twins)?) {
            leaves.push(leaf);
        }
        for entry in stretch {
            reached.insert(entry);
            let Some(message) = beside::message(&graph.record(entry)?) else { continue };
            for block in blocks.remove(&message).unwrap_or_default() {
                reached.insert(block);
                reached.extend(results.remove(&block).unwrap_or_default());
            }
        }
    }
    leaves.reverse();
    Ok(leaves)
}

/// Returns whether a stretch that forks off is no branch: a command's talk, or a copy of the entries next to it.
fn is_technical(
    graph: &dyn Graph,
    stretch: &[EntryNumber],
    twins: &BTreeSet<(Option<EntryNumber>, Option<Timestamp>)>,
) -> Result<bool, Failure> {
    if let &[entry] = stretch
        && twins.contains(&(graph.parent(entry)?, graph.record(entry)?.time))
    {
        return Ok(true);
    }
    for &entry in stretch {
        let record = graph.record(entry)?;
        let hint = Hint::of(&record);
        let is_silent = hint.has(Hint::LOCAL) || hint.has(Hint::UNSENT);
        if read::is_message(record.kind) && !is_silent {
            return Ok(false);
        }
    }
    Ok(true)
}
