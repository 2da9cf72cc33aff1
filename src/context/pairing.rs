//! Pairs: each call is directly followed by its result, and each result by no other call's.
//!
//! ```text
//! session    call a   call b   "wait"   result b   result x   call a   result a   result a   result a*
//! sent       call a   result a*   call b   result b   "wait"   call a   result a
//!                     late        moved               x: orphan         the second a: duplicate
//! ```
//!
//! Each result is assigned to a call in this order, real results before synthetic ones: the first unresolved call with
//! its id in the message that it follows; else the nearest unresolved one before it; else the nearest after it. A
//! result without a call is a duplicate if some call has its id, else an orphan. Text that an agent inserts for a missing result
//! is recognised, so that a late real result replaces it.
//!
//! A call without a result gets a synthetic one. If its message failed or was aborted, the call is dropped instead, because
//! it may be incomplete. Ids shared by several calls are made different, because providers require it.
//!
//! Other implementations of this repair count a result that was in its place as moved, do not count a duplicate next to
//! its twin, and drop real results of a message that failed. Here all four figures are correct and results with a call are kept.
//!
//! Invariant: repairing a repaired request changes nothing.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    context::{Act, Change, Entries, Item, Step, packing::Half},
    model::{Block, Message, Role},
};

/// The text of a synthetic result.
const MISSING: &str = "[undertext: the result of this call is missing in the session]";
/// The texts of other programs for it.
const THEIRS: [&str; 3] = [
    "missing tool result in session history; inserted synthetic error result",
    "[Tool result missing due to internal error]",
    "[Tool call interrupted: the session ended before this call's result was recorded",
];

/// The figures of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Repaired {
    /// How many synthetic tool results were inserted.
    pub added: u64,
    /// How many tool results were dropped because their call has another one.
    pub duplicates: u64,
    /// How many tool results were dropped because they answer no call.
    pub orphans: u64,
    /// How many tool results were moved directly after their call.
    pub moved: u64,
}

/// A call and its result.
struct Call<'a> {
    item: usize,
    block: usize,
    id: &'a str,
    /// The index of the item with its result.
    result: Option<usize>,
}

/// What happens to each message. It is computed without changing any, so that it also predicts the form of a part of the history.
struct Plan {
    /// The results that are not sent, by item, and why.
    dropped: BTreeMap<usize, &'static str>,
    /// The results that are moved.
    moved: BTreeSet<usize>,
    /// The calls that are dropped.
    gone: BTreeSet<(usize, usize)>,
    /// The new ids of calls, by item and block, and of results, by item and 0.
    renamed: BTreeMap<(usize, usize), String>,
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The item with this index.
    Item(usize),
    /// A synthetic result for a call, given by item and block.
    Missing(usize, usize),
}

/// Returns the calls of the model's messages and the results, each with the index of its item; for a result also the
/// message of the model that it follows.
fn halves(items: &[Item]) -> Vec<(usize, Half, Option<usize>)> {
    let mut found = Vec::new();
    let mut speaker = None;
    for (at, item) in items.iter().enumerate() {
        let is_result = item.role() == Role::Tool && item.is_only_result();
        if item.role() == Role::Assistant {
            speaker = Some(at);
            let calls = item.halves().into_iter().filter(|half| !half.is_result);
            found.extend(calls.map(|call| (at, call, None)));
        } else if is_result {
            found.extend(item.halves().into_iter().map(|result| (at, result, speaker)));
        }
    }
    found
}

/// Returns true if a block is a result that some program inserted for a missing one.
fn is_synthetic(block: &Block) -> bool {
    let Block::Result { error: true, .. } = block else { return false };
    let text = block.answer_text();
    text == MISSING || THEIRS.iter().any(|theirs| text.contains(theirs))
}

/// Calls `each` with the messages that a repair would send, in order. Each result is a message of its own.
pub(super) fn each_slot(items: &[Item], each: impl FnMut(Slot)) {
    Plan::of(items, each);
}

impl Plan {
    /// Plans the repair of messages in which each result is a message of its own, and calls `each` with those to send, in order.
    fn of(items: &[Item], each: impl FnMut(Slot)) -> Self {
        let halves = halves(items);
        let mut calls: Vec<Call<'_>> = Vec::new();
        // The calls of each id, in order.
        let mut by_id: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut results: Vec<(usize, &str, Option<usize>, bool)> = Vec::new();
        for (at, Half { block, id, is_result, error }, follows) in &halves {
            if *is_result {
                let is_synthetic = *error && items[*at].message().blocks.iter().any(is_synthetic);
                results.push((*at, id, *follows, is_synthetic));
            } else {
                by_id.entry(id).or_default().push(calls.len());
                calls.push(Call { item: *at, block: *block, id, result: None });
            }
        }
        let mut owners = Owners::new(&calls, by_id);
        let mut owned = vec![false; items.len()];
        for synthetic in [false, true] {
            let these = || results.iter().filter(|(.., is)| *is == synthetic);
            for &(at, id, follows, _) in these() {
                let owner = follows.and_then(|item| owners.within(id, item));
                if let Some(call) = owner {
                    owners.resolve(id, call, calls[call].item);
                    calls[call].result = Some(at);
                    owned[at] = true;
                }
            }
            for &(at, id, ..) in these() {
                if owned[at] {
                    continue;
                }
                if let Some(call) = owners.nearest(id, at) {
                    owners.resolve(id, call, calls[call].item);
                    calls[call].result = Some(at);
                    owned[at] = true;
                }
            }
        }
        let dropped = results
            .iter()
            .filter(|(at, ..)| !owned[*at])
            .map(|(at, id, ..)| {
                let is_known = owners.all.contains_key(id);
                (*at, if is_known { DUPLICATE } else { ORPHAN })
            })
            .collect();
        let mut plan = Self {
            dropped,
            moved: BTreeSet::new(),
            gone: BTreeSet::new(),
            renamed: BTreeMap::new(),
        };
        plan.lay(items, &calls, &owned, each);
        plan.rename(&calls, &owners);
        plan
    }

    /// Puts messages in order, each result after its call's message.
    fn lay(
        &mut self,
        items: &[Item],
        calls: &[Call<'_>],
        owned: &[bool],
        mut each: impl FnMut(Slot),
    ) {
        let mut calls = calls;
        // For each result that is sent: its call's message, and the index of the call in it.
        let mut order: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            if owned[at] || self.dropped.contains_key(&at) {
                continue;
            }
            let own = calls.iter().take_while(|call| call.item == at).count();
            let own = calls.split_off(..own).unwrap_or_default();
            let goes = |call: &&Call<'_>| call.result.is_none() && item.is_broken();
            let gone = own.iter().filter(goes).map(|call| (at, call.block));
            self.gone.extend(gone);
            // Thinking alone is not an answer.
            let is_left = |(block, found): (usize, &Block)| {
                !matches!(found, Block::Thinking(_)) && !self.gone.contains(&(at, block))
            };
            let is_shorter = own.iter().any(|call| goes(&call));
            if is_shorter && !item.message().blocks.iter().enumerate().any(is_left) {
                continue;
            }
            each(Slot::Item(at));
            for (nth, call) in own.iter().enumerate() {
                if let Some(result) = call.result {
                    order.insert(result, (at, nth));
                    each(Slot::Item(result));
                } else if !item.is_broken() {
                    each(Slot::Missing(at, call.block));
                }
            }
        }
        // A result is in its place if there are only results between it and its message: of other calls, which move to
        // theirs, or of earlier calls of the same message.
        let (mut last, mut next) = (None, 0);
        for at in 0..items.len() {
            match order.get(&at) {
                Some(&(owner, nth)) => {
                    let in_place = last == Some(owner) && nth >= next;
                    if in_place {
                        next = nth + 1;
                    } else {
                        self.moved.insert(at);
                    }
                }
                None if self.dropped.contains_key(&at) => {}
                None => (last, next) = (Some(at), 0),
            }
        }
    }

    /// Makes ids shared by several calls different.
    fn rename(&mut self, calls: &[Call<'_>], owners: &Owners<'_>) {
        // Long ids are truncated, which may make them equal again.
        let mut made = BTreeSet::new();
        for (id, twins) in owners.all.iter().filter(|(_, twins)| twins.len() > 1) {
            let mut n = 1;
            let mut is_first = true;
            for &twin in twins {
                let Some(call) = calls.get(twin) else { continue };
                if self.gone.contains(&(call.item, call.block)) {
                    continue;
                }
                if is_first {
                    is_first = false;
                    continue;
                }
                let name = loop {
                    n += 1;
                    let name = numbered(id, n);
                    if !owners.all.contains_key(name.as_str()) && made.insert(name.clone()) {
                        break name;
                    }
                };
                self.renamed.extend(call.result.map(|result| ((result, 0), name.clone())));
                self.renamed.insert((call.item, call.block), name);
            }
        }
    }
}

impl Plan {
    /// Returns the synthetic results of calls, by item and block.
    fn missing(&self, items: &[Item], slots: &[Slot]) -> BTreeMap<(usize, usize), Item> {
        let mut missing = BTreeMap::new();
        let mut caller: Option<(usize, Cow<'_, Message>)> = None;
        for slot in slots {
            let Slot::Missing(at, block) = *slot else { continue };
            let (_, message) = match caller.take().filter(|(of, _)| *of == at) {
                Some(same) => caller.insert(same),
                None => caller.insert((at, items[at].message())),
            };
            let result = absent(message, block, self.renamed.get(&(at, block)));
            missing.extend(result.map(|result| ((at, block), result)));
        }
        missing
    }

    /// Sets the new ids of calls and results, and removes dropped calls.
    fn mend(&self, items: &mut [Item]) {
        let mut renamed: BTreeMap<usize, Vec<(usize, &String)>> = BTreeMap::new();
        for ((at, block), name) in &self.renamed {
            renamed.entry(*at).or_default().push((*block, name));
        }
        for (at, names) in renamed {
            items[at].change(|message| {
                for (block, name) in names {
                    if let Some(Block::Call { id, .. } | Block::Result { id, .. }) =
                        message.blocks.get_mut(block)
                    {
                        id.clone_from(name);
                    }
                }
            });
        }
        let shortened: BTreeSet<usize> = self.gone.iter().map(|(at, _)| *at).collect();
        for at in shortened {
            items[at].change(|message| {
                let mut block = 0;
                message.blocks.retain(|_| {
                    block += 1;
                    !self.gone.contains(&(at, block - 1))
                });
                // An answer may not end with thinking.
                let says = |block: &Block| !matches!(block, Block::Thinking(_));
                let end = message.blocks.iter().rposition(says).map_or(0, |last| last + 1);
                message.blocks.truncate(end);
            });
            items[at].tokens = None;
        }
    }
}

/// Returns the messages to send, in order.
fn order(
    items: Vec<Item>,
    slots: Vec<Slot>,
    mut missing: BTreeMap<(usize, usize), Item>,
) -> Vec<Item> {
    let stays = |(at, slot): (usize, &Slot)| *slot == Slot::Item(at);
    if slots.len() == items.len() && slots.iter().enumerate().all(stays) {
        return items;
    }
    let mut items: Vec<Option<Item>> = items.into_iter().map(Some).collect();
    let sent = slots.into_iter().filter_map(|slot| match slot {
        Slot::Item(at) => items.get_mut(at)?.take(),
        Slot::Missing(at, block) => missing.remove(&(at, block)),
    });
    sent.collect()
}

/// Returns the n-th variant of an id, which is no longer than providers allow unless the id itself is.
fn numbered(id: &str, n: usize) -> String {
    const LONGEST: usize = 40;
    let end = format!("_{n}");
    let room = if id.len() <= LONGEST { LONGEST.saturating_sub(end.len()) } else { id.len() };
    let cut = (0..=room.min(id.len())).rev().find(|&at| id.is_char_boundary(at)).unwrap_or(0);
    format!("{}{end}", id.get(..cut).unwrap_or_default())
}

const DUPLICATE: &str = "its call has another result";
const ORPHAN: &str = "its call is not in the context";

/// The calls that still need a result.
struct Owners<'a> {
    all: BTreeMap<&'a str, Vec<usize>>,
    /// By id, the items of unresolved calls in order, each with the call's index.
    open: BTreeMap<&'a str, BTreeSet<(usize, usize)>>,
}

impl<'a> Owners<'a> {
    fn new(calls: &[Call<'a>], all: BTreeMap<&'a str, Vec<usize>>) -> Self {
        let mut open: BTreeMap<&'a str, BTreeSet<(usize, usize)>> = BTreeMap::new();
        for (n, call) in calls.iter().enumerate() {
            open.entry(call.id).or_default().insert((call.item, n));
        }
        Self { all, open }
    }

    /// Returns the first unresolved call with this id in a message.
    fn within(&self, id: &str, item: usize) -> Option<usize> {
        let open = self.open.get(id)?;
        open.range((item, 0)..(item + 1, 0)).next().map(|(_, call)| *call)
    }

    /// Returns the nearest unresolved call with this id before a place, else the nearest after it.
    fn nearest(&self, id: &str, at: usize) -> Option<usize> {
        let open = self.open.get(id)?;
        let (item, _) =
            *open.range(..(at, 0)).next_back().or_else(|| open.range((at, 0)..).next())?;
        self.within(id, item)
    }

    fn resolve(&mut self, id: &str, call: usize, item: usize) {
        if let Some(open) = self.open.get_mut(id) {
            open.remove(&(item, call));
        }
    }
}

/// Repairs messages in which each result is a message of its own.
pub fn repair(mut items: Vec<Item>, changes: &mut Vec<Change>) -> (Vec<Item>, Repaired) {
    if !items.iter().any(|item| item.has_calls() || item.has_results()) {
        return (items, Repaired::default());
    }
    let mut slots = Vec::with_capacity(items.len());
    let plan = Plan::of(&items, |slot| slots.push(slot));
    let mut repaired = Repaired { moved: plan.moved.len() as u64, ..Repaired::default() };
    // A message can have as many calls as entries, so only the first of several equal changes names all entries.
    let mut last = None;
    let mut note = |act, at: usize, why: &'static str| {
        let item: &Item = &items[at];
        let is_again = last.replace((at, act, why)) == Some((at, act, why));
        let entries = match item.entry().filter(|_| is_again) {
            Some(first) => Entries::One(first),
            None => item.entries.clone(),
        };
        changes.push(Change { step: Step::Pairs, act, entries, why: why.into() });
    };
    for (&at, &why) in &plan.dropped {
        let is_duplicate = why == DUPLICATE;
        *(if is_duplicate { &mut repaired.duplicates } else { &mut repaired.orphans }) += 1;
        note(Act::Dropped, at, why);
    }
    for &at in &plan.moved {
        note(Act::Moved, at, "it was not directly after its call");
    }
    for &(at, _) in &plan.gone {
        note(Act::Dropped, at, "the call has no result, and its message failed or was interrupted");
    }
    for &(at, _) in plan.renamed.keys() {
        note(Act::Changed, at, "another call has the same id");
    }
    let missing = plan.missing(&items, &slots);
    for &(at, _) in missing.keys() {
        repaired.added += 1;
        note(Act::Added, at, "the call has no result");
    }
    plan.mend(&mut items);
    (order(items, slots, missing), repaired)
}

/// Returns the synthetic result of a call.
fn absent(caller: &Message, block: usize, renamed: Option<&String>) -> Option<Item> {
    let Block::Call { id, name, .. } = caller.blocks.get(block)? else { return None };
    let mut message = missing();
    if let [Block::Result { id: answers, name: tool, .. }] = message.blocks.as_mut_slice() {
        renamed.unwrap_or(id).clone_into(answers);
        *tool = Some(name.clone());
    }
    message.time = caller.time;
    Some(Item::synthetic(message))
}

/// Returns the synthetic result of a call that has no id.
pub(super) fn missing() -> Message {
    Message::new(Role::Tool, vec![Block::failure(String::new(), MISSING.to_owned())])
}
