//! Pairs: each call is followed by its result, and each result by nobody else's.
//!
//! ```text
//! said       call a   call b   "wait"   result b   result x   call a   result a   result a   result a*
//! sent       call a   result a*   call b   result b   "wait"   call a   result a
//!                     late        moved               x: orphan         the second a: duplicate
//! ```
//!
//! Owners are found in this order, real results before synthetic ones: a result belongs to the first unresolved call with
//! its id in the message that it follows; else to the nearest unresolved one before it; else to the nearest behind it. A
//! result without an owner is a duplicate if some call has its id, else an orphan. An agent's words in the place
//! of a missing result are recognised, so that a late real one takes its place.
//!
//! A call without a result gets a synthetic one; if its message failed or was broken off it goes instead, because nobody
//! knows whether it was said to its end. Ids that more than one call has are made different, because providers demand it.
//!
//! The repair known from the field counts a result as moved that stood in its place, does not count a duplicate next to
//! its twin, and drops real results of a message that failed; here the four figures are true and owned results stay.
//!
//! Invariant: to repair a repaired request changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    context::{Act, Change, Item, Step},
    model::{Block, Message, Role, Stop},
};

/// The words in the place of a missing result.
const MISSING: &str = "[undertext: the result of this call is missing in the session]";
/// The words of others in that place.
const THEIRS: [&str; 2] = [
    "missing tool result in session history; inserted synthetic error result",
    "[Tool result missing due to internal error]",
];

/// The figures of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Synthetic results that were put in.
    pub added: u64,
    /// Results that were left out because their call has another one.
    pub duplicates: u64,
    /// Results that were left out because nobody called for them.
    pub orphans: u64,
    /// Results that stood elsewhere than right behind their call's message.
    pub moved: u64,
}

/// A call and its result.
struct Call<'a> {
    item: usize,
    block: usize,
    id: &'a str,
    /// The item with its result.
    result: Option<usize>,
}

/// The fate of each message: found without touching any, so that it also tells the form of a part of the history.
pub(super) struct Plan {
    /// The messages to send, in order.
    pub(super) slots: Vec<Slot>,
    /// For each item, why it is not sent, if it is a result that is not.
    dropped: BTreeMap<usize, &'static str>,
    /// The results that stand elsewhere now.
    moved: BTreeSet<usize>,
    /// The calls that go.
    gone: BTreeSet<(usize, usize)>,
    /// The new ids of calls, by item and block, and of results, by item and 0.
    renamed: BTreeMap<(usize, usize), String>,
}

/// A message in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The item of this number.
    Item(usize),
    /// A synthetic result of a call of the item of this number, at this block.
    Missing(usize, usize),
}

/// Returns whether a block is a result that some program put in the place of a missing one.
fn is_synthetic(block: &Block) -> bool {
    let Block::Result { error: true, .. } = block else { return false };
    let text = block.answer_text();
    text == MISSING || THEIRS.iter().any(|theirs| text.contains(theirs))
}

/// Returns the result of a message that is nothing else.
fn result(message: &Message) -> Option<(&str, &Block)> {
    match message.blocks.as_slice() {
        [block @ Block::Result { id, .. }] if message.role == Role::Tool => Some((id, block)),
        _ => None,
    }
}

/// Returns whether a message of the model failed or was broken off.
fn is_broken(message: &Message) -> bool {
    matches!(message.stop, Some(Stop::Error | Stop::Aborted))
}

impl Plan {
    /// Plans the repair of messages, each of whose results is a message of its own.
    pub(super) fn of(items: &[Item]) -> Self {
        let mut calls: Vec<Call<'_>> = Vec::new();
        // The calls with an id, in order; those of each message; the message that each item follows.
        let mut by_id: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut results: Vec<(usize, &str, bool)> = Vec::new();
        let mut follows: Vec<Option<usize>> = Vec::with_capacity(items.len());
        let mut speaker = None;
        for (at, item) in items.iter().enumerate() {
            follows.push(speaker);
            if item.message.role == Role::Assistant {
                speaker = Some(at);
                for (block, found) in item.message.blocks.iter().enumerate() {
                    if let Block::Call { id, .. } = found {
                        by_id.entry(id).or_default().push(calls.len());
                        calls.push(Call { item: at, block, id, result: None });
                    }
                }
            } else if let Some((id, block)) = result(&item.message) {
                results.push((at, id, is_synthetic(block)));
            }
        }
        let mut owners = Owners::new(&calls, by_id);
        let mut owned = vec![false; items.len()];
        for synthetic in [false, true] {
            let these = || results.iter().filter(|(_, _, is)| *is == synthetic);
            for &(at, id, _) in these() {
                let owner = follows[at].and_then(|item| owners.within(id, item));
                if let Some(call) = owner {
                    owners.resolve(id, call, calls[call].item);
                    calls[call].result = Some(at);
                    owned[at] = true;
                }
            }
            for &(at, id, _) in these() {
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
            .map(|(at, id, _)| {
                let is_known = owners.all.contains_key(id);
                (*at, if is_known { DUPLICATE } else { ORPHAN })
            })
            .collect();
        let mut plan = Self {
            slots: Vec::with_capacity(items.len()),
            dropped,
            moved: BTreeSet::new(),
            gone: BTreeSet::new(),
            renamed: BTreeMap::new(),
        };
        plan.lay(items, &calls, &owned);
        plan.rename(&calls, &owners);
        plan
    }

    /// Puts messages in order, each result behind its call's message.
    fn lay(&mut self, items: &[Item], calls: &[Call<'_>], owned: &[bool]) {
        let mut calls = calls.iter().peekable();
        let mut order: Vec<Option<(usize, usize)>> = vec![None; items.len()];
        for (at, item) in items.iter().enumerate() {
            if owned[at] || self.dropped.contains_key(&at) {
                continue;
            }
            self.slots.push(Slot::Item(at));
            let mut sent = 0;
            while let Some(call) = calls.next_if(|call| call.item == at) {
                sent += 1;
                match call.result {
                    Some(result) => {
                        order[result] = Some((at, sent));
                        self.slots.push(Slot::Item(result));
                    }
                    None if is_broken(&item.message) => {
                        self.gone.insert((at, call.block));
                    }
                    None => self.slots.push(Slot::Missing(at, call.block)),
                }
            }
            let mut blocks = item.message.blocks.iter().enumerate();
            // Thinking alone is not an answer.
            let is_left = |(block, found): (usize, &Block)| {
                !matches!(found, Block::Thinking(_)) && !self.gone.contains(&(at, block))
            };
            if sent > 0 && !blocks.any(is_left) {
                self.slots.pop();
            }
        }
        // A result stands in its place if between it and its message are only results: of other calls, which go to
        // theirs, or of earlier calls of the same message.
        let mut last = None;
        let mut latest = 0;
        for (at, order) in order.into_iter().enumerate() {
            match order {
                Some((owner, nth)) => {
                    let in_place = last == Some(owner) && nth > latest;
                    if in_place {
                        latest = nth;
                    } else {
                        self.moved.insert(at);
                    }
                }
                None if self.dropped.contains_key(&at) => {}
                None => (last, latest) = (Some(at), 0),
            }
        }
    }

    /// Makes ids different that several calls have.
    fn rename(&mut self, calls: &[Call<'_>], owners: &Owners<'_>) {
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
                    if !owners.all.contains_key(name.as_str()) {
                        break name;
                    }
                };
                self.renamed.extend(call.result.map(|result| ((result, 0), name.clone())));
                self.renamed.insert((call.item, call.block), name);
            }
        }
    }
}

/// Returns the n-th form of an id, which is no longer than providers allow if the id is not.
fn numbered(id: &str, n: usize) -> String {
    const LONGEST: usize = 40;
    let end = format!("_{n}");
    let room = if id.len() <= LONGEST { LONGEST.saturating_sub(end.len()) } else { id.len() };
    let cut = (0..=room.min(id.len())).rev().find(|&at| id.is_char_boundary(at)).unwrap_or(0);
    format!("{}{end}", id.get(..cut).unwrap_or_default())
}

const DUPLICATE: &str = "its call has another result";
const ORPHAN: &str = "its call is not in the context";

/// The calls that still want a result.
struct Owners<'a> {
    all: BTreeMap<&'a str, Vec<usize>>,
    /// By id, the items of unresolved calls in order, each with the call's number.
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

    /// Returns the nearest unresolved call with this id before a place, else the nearest behind it.
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

/// Repairs messages, each of whose results is a message of its own.
pub fn repair(items: Vec<Item>, changes: &mut Vec<Change>) -> (Vec<Item>, Repaired) {
    let plan = Plan::of(&items);
    let mut repaired = Repaired { moved: plan.moved.len() as u64, ..Repaired::default() };
    let mut note = |act, item: &Item, why: &str| {
        let (step, entries) = (Step::Pairs, item.entries.clone());
        changes.push(Change { step, act, entries, why: why.to_owned() });
    };
    for (&at, &why) in &plan.dropped {
        let is_duplicate = why == DUPLICATE;
        *(if is_duplicate { &mut repaired.duplicates } else { &mut repaired.orphans }) += 1;
        note(Act::Dropped, &items[at], why);
    }
    for &at in &plan.moved {
        note(Act::Moved, &items[at], "it did not stand right behind its call");
    }
    for &(at, _) in &plan.gone {
        note(
            Act::Dropped,
            &items[at],
            "the call has no result, and its message failed or was broken off",
        );
    }
    for &(at, _) in plan.renamed.keys() {
        note(Act::Changed, &items[at], "another call has the same id");
    }
    let mut items: Vec<Option<Item>> = items.into_iter().map(Some).collect();
    let missing: BTreeMap<(usize, usize), Item> = plan
        .slots
        .iter()
        .filter_map(
            |slot| if let Slot::Missing(at, block) = *slot { Some((at, block)) } else { None },
        )
        .filter_map(|(at, block)| {
            let item = items.get(at)?.as_ref()?;
            let id = plan.renamed.get(&(at, block));
            Some(((at, block), absent(item, block, id)?))
        })
        .collect();
    for &(at, _) in missing.keys() {
        repaired.added += 1;
        if let Some(Some(item)) = items.get(at) {
            note(Act::Added, item, "the call has no result");
        }
    }
    for ((at, block), name) in plan.renamed {
        if let Some(Some(item)) = items.get_mut(at)
            && let Some(Block::Call { id, .. } | Block::Result { id, .. }) =
                item.message.blocks.get_mut(block)
        {
            *id = name;
        }
    }
    let shortened: BTreeSet<usize> = plan.gone.iter().map(|(at, _)| *at).collect();
    for at in shortened {
        if let Some(Some(item)) = items.get_mut(at) {
            let mut block = 0;
            item.message.blocks.retain(|_| {
                block += 1;
                !plan.gone.contains(&(at, block - 1))
            });
            // An answer may not end with thinking.
            let says = |block: &Block| !matches!(block, Block::Thinking(_));
            let end = item.message.blocks.iter().rposition(says).map_or(0, |last| last + 1);
            item.message.blocks.truncate(end);
            item.tokens = None;
        }
    }
    let mut missing = missing;
    let sent = plan.slots.into_iter().filter_map(|slot| match slot {
        Slot::Item(at) => items.get_mut(at)?.take(),
        Slot::Missing(at, block) => missing.remove(&(at, block)),
    });
    (sent.collect(), repaired)
}

/// Returns the synthetic result of a call.
fn absent(item: &Item, block: usize, renamed: Option<&String>) -> Option<Item> {
    let Block::Call { id, name, .. } = item.message.blocks.get(block)? else { return None };
    let mut message = missing();
    if let [Block::Result { id: answers, name: tool, .. }] = message.blocks.as_mut_slice() {
        renamed.unwrap_or(id).clone_into(answers);
        *tool = Some(name.clone());
    }
    message.time = item.message.time;
    Some(Item::synthetic(message))
}

/// Returns the synthetic result of a call that has no id.
pub(super) fn missing() -> Message {
    Message::new(Role::Tool, vec![Block::answer(String::new(), MISSING.to_owned(), true)])
}
