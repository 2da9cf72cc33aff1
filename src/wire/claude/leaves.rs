//! Leaves: the ends of branches that the user reverted.
//!
//! A branch is a stretch of entries that no resume reaches: after a rewind, before a second root, or of a sub-agent. Not a branch
//! are: blocks and results of a message, copies with the same time, the report of a command with its made-up answer, and API
//! errors. A conversation before a `/clear` was not rewound, but nothing else reaches it, so its end is a leaf too.

use std::{cell::OnceCell, collections::BTreeSet};

use super::{
    beside::{self, Index},
    chain::{self, Walk},
    head,
    read::{self, Hint},
};
use crate::{
    model::{EntryNumber, EntrySet, Kind, NameTag, PlaceNumber, Timestamp},
    wire::{Failure, Graph},
};

/// Returns the last entry of each stretch that no resume reaches, in order.
pub(super) fn leaves(graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
    let mut reached = EntrySet::default();
    if let Some(head) = head::head(graph)? {
        reached.extend(chain::Paths::new(graph)?.path(head, usize::MAX)?.entries);
    }
    let mut messages = Vec::new();
    // The blocks of each message, and the results after each entry.
    let mut blocks: BTreeSet<(NameTag, EntryNumber)> = BTreeSet::new();
    let mut results: BTreeSet<(EntryNumber, EntryNumber)> = BTreeSet::new();
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        let is_message = read::is_message(record.kind) && Hint::of(&record).has(Hint::CHAIN);
        if !is_message || !beside::is_last(graph, &record, place)? {
            continue;
        }
        messages.push(entry);
        if let Some(message) = beside::message(&record) {
            blocks.insert((message, entry));
        } else if record.kind == Kind::Result
            && let Some(call) = graph.parent(entry)?
        {
            results.insert((call, entry));
        }
    }
    let twins =
        Twins { graph, resumed: reached.clone(), messages: &messages, found: OnceCell::new() };
    let words = Words { graph, index: OnceCell::new() };
    let mut leaves = Vec::new();
    let mut walk = Walk::new(graph)?;
    for &leaf in messages.iter().rev() {
        let mut stretch = Vec::new();
        let mut at = Some(leaf);
        while let Some(entry) = at.filter(|entry| !reached.contains(*entry)) {
            stretch.push(entry);
            at = walk.step(entry)?;
        }
        let forks = at.is_some();
        let is_leaf = !stretch.is_empty()
            && (!forks || !is_technical(&twins, &stretch)? && !words.are_sent(&stretch)?);
        if is_leaf {
            leaves.push(leaf);
        }
        for entry in stretch {
            reached.insert(entry);
            let Some(message) = beside::message(&graph.record(entry)?) else { continue };
            for block in taken(&mut blocks, message) {
                reached.insert(block);
                reached.extend(taken(&mut results, block));
            }
        }
    }
    leaves.reverse();
    Ok(leaves)
}

/// Removes and returns the entries of a key.
fn taken<K: Copy + Ord>(of: &mut BTreeSet<(K, EntryNumber)>, key: K) -> Vec<EntryNumber> {
    let all = (key, EntryNumber::ALL.start)..=(key, EntryNumber::ALL.end);
    let found: Vec<EntryNumber> = of.range(all).map(|(_, entry)| *entry).collect();
    for &entry in &found {
        of.remove(&(key, entry));
    }
    found
}

/// Finds program text that is sent with the answer it follows. The index is built when the first stretch may be such text.
struct Words<'g> {
    graph: &'g dyn Graph,
    index: OnceCell<Index<'g>>,
}

impl Words<'_> {
    /// Returns true if a stretch is sent with the answer that it follows.
    fn are_sent(&self, stretch: &[EntryNumber]) -> Result<bool, Failure> {
        for &entry in stretch {
            if !beside::is_beside(&self.graph.record(entry)?) {
                return Ok(false);
            }
        }
        if self.index.get().is_none() {
            let mut index = Index::shared(self.graph);
            index.reach(PlaceNumber::FIRST, &EntrySet::default())?;
            let _ = self.index.set(index);
        }
        match (self.index.get(), stretch.last()) {
            (Some(index), Some(&first)) => index.is_run(first),
            _ => Ok(false),
        }
    }
}

/// The parents and times of the messages that a resume reaches. Computed when the first stretch may be a copy.
struct Twins<'g> {
    graph: &'g dyn Graph,
    /// The entries reached by a resume.
    resumed: EntrySet,
    messages: &'g [EntryNumber],
    found: OnceCell<Vec<(Option<EntryNumber>, Option<Timestamp>)>>,
}

impl Twins<'_> {
    /// Returns true if a resume reaches a message with the parent and time of this entry.
    fn has(&self, entry: EntryNumber) -> Result<bool, Failure> {
        let twin = |entry| -> Result<_, Failure> {
            Ok((self.graph.parent(entry)?, self.graph.record(entry)?.time))
        };
        if self.found.get().is_none() {
            let resumed = self.messages.iter().filter(|entry| self.resumed.contains(**entry));
            let mut found = resumed.map(|entry| twin(*entry)).collect::<Result<Vec<_>, _>>()?;
            found.sort_unstable();
            let _ = self.found.set(found);
        }
        let wanted = twin(entry)?;
        Ok(self.found.get().is_some_and(|found| found.binary_search(&wanted).is_ok()))
    }
}

/// Returns true if a stretch that forks off is not a branch: the report of a command, or a copy of the entry next to it.
fn is_technical(twins: &Twins<'_>, stretch: &[EntryNumber]) -> Result<bool, Failure> {
    if let &[entry] = stretch
        && twins.has(entry)?
    {
        return Ok(true);
    }
    for &entry in stretch {
        let record = twins.graph.record(entry)?;
        let hint = Hint::of(&record);
        let is_silent = hint.has(Hint::LOCAL) || hint.has(Hint::UNSENT);
        if read::is_message(record.kind) && !is_silent {
            return Ok(false);
        }
    }
    Ok(true)
}
