//! The messages of an agent that accepts a result only where it is, directly after its call.
//!
//! ```text
//! session  "q"   call a (1)   call b (2)   "more" (1)   result b   result a   call c (3)   "go on"
//! sent     "q"   "more", call a (1)   ...   call b (2)   result b   "go on"
//! ```
//!
//! Recorded from Claude Code with small test files:
//!
//! - A record with only unanswered calls is dropped, including its text, once the conversation continued. It is kept in the last
//!   message, and if the last message is a result or calls after one; but not before the user's last request.
//! - The records of a message (1, 2) are sent at the place of the first, unless the user made a request between them, with
//!   the message's calls last. What the user says directly after a result is part of the answer to a call.
//! - A result that comes before its call is moved after it. Any other result is kept only if its call is in the message directly
//!   before it and has no result yet. A call with the id of an earlier call is dropped.
//! - If a message ends up without content, the agent's own text replaces it.
//!
//! Calls that are kept without a result get one in [`pairing`] as everywhere else, or the agent's own text if the messages are
//! shown as the agent sends them.
//!
//! Invariant: records are only dropped or joined; their text never changes.
//!
//! [`pairing`]: super::pairing

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    context::{
        Act, Change, Item, Origin, Step,
        item::{Tag, put_in, sift},
        packing::Half,
        pairing::Repaired,
        turns::absorb,
    },
    model::{Block, Message, Role},
};

/// The agent's text if nothing is left of a message of the user.
const NOTHING: &str = "(no content)";
/// The same for the very first message.
const ORPHANED: &str = "[Orphaned tool result removed due to conversation resume]";
/// The same for an answer of the model.
const INTERRUPTED: &str = "[Tool use interrupted]";

/// Returns the messages as such an agent sends them, given one record each. Also counts the dropped results.
pub(super) fn keep(items: Vec<Item>, changes: &mut Vec<Change>) -> (Vec<Item>, Repaired) {
    leave_misplaced(joined(items, changes), changes)
}

/// Returns the messages of the agent with all of their results, wherever these are.
pub(super) fn joined(items: Vec<Item>, changes: &mut Vec<Change>) -> Vec<Item> {
    let items = leave_unanswered(items, changes);
    let items = turn_round(items, changes);
    join(items, changes)
}

/// Inserts the agent's text for missing results. Results missing at the end come after the others.
pub(super) fn answer(items: &mut [Item], [missing, interrupted]: [&str; 2]) {
    let last = items.iter().rposition(|item| item.role() == Role::Assistant);
    let is_asked = items.iter().rposition(|item| item.role() == Role::User) > last;
    for (at, item) in items.iter_mut().enumerate() {
        if item.origin != Origin::Synthetic || !item.is_only_result() {
            continue;
        }
        let words = if is_asked || Some(at) < last { missing } else { interrupted };
        item.change(|message| {
            for block in &mut message.blocks {
                if let Block::Result { blocks, .. } = block {
                    *blocks = vec![Block::Text(words.to_owned())];
                }
            }
        });
    }
    let end = last.filter(|_| !is_asked).and_then(|last| items.get_mut(last..));
    let is_result = |item: &Item| item.role() == Role::Tool;
    for run in end.into_iter().flat_map(|end| end.chunk_by_mut(|a, b| is_result(a) && is_result(b)))
    {
        run.sort_by_key(|item| item.origin == Origin::Synthetic);
    }
}

/// Drops the records with unanswered calls if the conversation continued after them.
fn leave_unanswered(mut items: Vec<Item>, changes: &mut Vec<Change>) -> Vec<Item> {
    let answered: BTreeSet<String> = items.iter().flat_map(Item::results).collect();
    let end = items.iter().rposition(|item| item.role() != Role::System);
    let last = end.and_then(|end| items.get(end));
    let is_answered = |id: &String| answered.contains(id);
    let is_open_call = |item: &&Item| {
        let calls = calls(item);
        !calls.is_empty() && !calls.iter().any(is_answered)
    };
    // Unanswered calls at the end do not end a tool turn.
    let mut spoken = items.iter().rev().filter(|item| item.role() != Role::System);
    let is_under_way = spoken.find(|item| !is_open_call(item)).is_some_and(has_result);
    let message = last.and_then(Item::id);
    let asked = items.iter().rposition(|item| item.role() == Role::User);
    let since = asked.map_or(0, |at| at + 1);
    let mut places = 0..;
    items.retain(|item| {
        let at = places.next();
        let is_last = at == end || message.is_some() && message == item.id();
        let is_open = at.is_some_and(|at| at >= since) && (is_under_way || is_last);
        let calls = calls(item);
        let is_kept = is_open || calls.is_empty() || calls.iter().any(is_answered);
        if !is_kept {
            note(
                changes,
                Act::Dropped,
                item,
                "its calls had no results, and the conversation continued",
            );
        }
        is_kept
    });
    items
}

/// Moves results that come before their calls after them.
fn turn_round(items: Vec<Item>, changes: &mut Vec<Change>) -> Vec<Item> {
    let mut called: BTreeMap<String, usize> = BTreeMap::new();
    for (at, item) in items.iter().enumerate() {
        for id in calls(item) {
            called.entry(id).or_insert(at);
        }
    }
    let mut behind: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, item) in items.iter().enumerate().filter(|(_, item)| item.is_only_result()) {
        let call = item.results().next().and_then(|id| called.get(&id).copied());
        if let Some(call) = call.filter(|call| *call > at) {
            note(changes, Act::Moved, item, "it came before its call");
            behind.insert(at, call);
        }
    }
    if behind.is_empty() {
        return items;
    }
    let mut early: BTreeMap<usize, Vec<Item>> = BTreeMap::new();
    let mut turned = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        if let Some(call) = behind.get(&at) {
            early.entry(*call).or_default().push(item);
            continue;
        }
        turned.push(item);
        turned.extend(early.remove(&at).unwrap_or_default());
    }
    turned
}

/// Joins the records of each message at the place of the first one, with its calls last.
fn join(mut items: Vec<Item>, changes: &mut Vec<Change>) -> Vec<Item> {
    // The messages that may still continue.
    let mut open: BTreeMap<Tag, usize> = BTreeMap::new();
    let (mut is_asked, mut is_answered) = (false, false);
    sift(&mut items, |joined, item| {
        match item.role() {
            Role::System => {}
            Role::User | Role::Tool => {
                is_asked = true;
                is_answered |= has_result(item);
            }
            Role::Assistant => {
                if is_asked && !is_answered {
                    open.clear();
                }
                (is_asked, is_answered) = (false, false);
                let first = item.id().and_then(|id| open.get(&id)).copied();
                if let Some(before) = first.and_then(|first| joined.get_mut(first)) {
                    absorb(before, item);
                    return false;
                }
                open.extend(item.id().map(|id| (id, joined.len())));
            }
        }
        true
    });
    for item in items.iter_mut().filter(|item| item.has_calls()) {
        let is_call = |block: &Block| matches!(block, Block::Call { .. });
        if !item.message().blocks.is_sorted_by_key(is_call) {
            item.change(|message| message.blocks.sort_by_key(is_call));
            note(changes, Act::Changed, item, "the calls of an answer come last");
        }
    }
    items
}

/// Drops calls with the id of an earlier one, and results that are not directly after their call's message.
fn leave_misplaced(mut items: Vec<Item>, changes: &mut Vec<Change>) -> (Vec<Item>, Repaired) {
    let mut repaired = Repaired::default();
    let mut known: BTreeSet<String> = BTreeSet::new();
    // The unanswered calls of the last answer; whether there was an answer; and a message that was emptied, unless
    // another one is next to it or the result of a call is put there.
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut has_answer = false;
    let mut emptied: Option<Item> = None;
    let mut says = false;
    let mut replaced = Vec::new();
    sift(&mut items, |kept, item| {
        match item.role() {
            Role::System => {}
            Role::Assistant => {
                let alone = emptied.take().filter(|_| !says && open.is_empty());
                replaced.extend(alone.map(|item| (kept.len(), replacement(item, has_answer))));
                (says, has_answer) = (false, true);
                open.clear();
                let mut is_new = |id: String| known.insert(id.clone()) && open.insert(id);
                let repeated = blocks(item, |half| !half.is_result && !is_new(half.id));
                if !repeated.is_empty() {
                    note(changes, Act::Dropped, item, "an earlier call has the same id");
                    take_out(item, &repeated);
                    if !item.has_blocks() {
                        let words = Block::Text(INTERRUPTED.to_owned());
                        item.change(|message| message.blocks.push(words));
                    }
                }
            }
            Role::User | Role::Tool => {
                let mut why = None;
                let misplaced = blocks(item, |half| {
                    let is_misplaced = half.is_result && !open.remove(&half.id);
                    if is_misplaced {
                        let is_second = known.contains(&half.id);
                        *(if is_second {
                            &mut repaired.duplicates
                        } else {
                            &mut repaired.orphans
                        }) += 1;
                        why = Some(if is_second { LATE } else { ORPHAN });
                    }
                    is_misplaced
                });
                if let Some(why) = why {
                    note(changes, Act::Dropped, item, why);
                    take_out(item, &misplaced);
                }
                if why.is_some() && !item.has_blocks() {
                    emptied.get_or_insert_with(|| item.clone());
                    return false;
                }
                says = true;
            }
        }
        true
    });
    let alone = emptied.take().filter(|_| !says && open.is_empty());
    replaced.extend(alone.map(|item| (items.len(), replacement(item, has_answer))));
    (put_in(items, replaced), repaired)
}

/// Returns the indexes of the blocks whose calls and results match.
fn blocks(item: &Item, mut is: impl FnMut(Half) -> bool) -> BTreeSet<usize> {
    item.halves().into_iter().filter_map(|half| Some(half.block).filter(|_| is(half))).collect()
}

/// Removes blocks from a message.
fn take_out(item: &mut Item, blocks: &BTreeSet<usize>) {
    let mut numbers = 0..;
    item.change(|message| {
        message.blocks.retain(|_| !numbers.next().is_some_and(|n| blocks.contains(&n)));
    });
    item.tokens = None;
}

/// Returns the agent's text as a replacement for a message of the user.
fn replacement(mut item: Item, has_answer: bool) -> Item {
    let words = if has_answer { NOTHING } else { ORPHANED };
    let words = vec![Block::Text(words.to_owned())];
    item.change(|message| {
        *message = Message { time: message.time, ..Message::new(Role::User, words) };
    });
    item
}

const LATE: &str = "its call is not in the answer right before it, or has another result";
const ORPHAN: &str = "its call is not in the context";

/// Returns the ids of the calls in an answer.
fn calls(item: &Item) -> Vec<String> {
    if item.role() == Role::Assistant { item.calls().collect() } else { Vec::new() }
}

fn has_result(item: &Item) -> bool {
    item.role() != Role::Assistant && item.has_results()
}

fn note(changes: &mut Vec<Change>, act: Act, item: &Item, why: &str) {
    let entries = item.entries.clone();
    changes.push(Change { step: Step::Pairs, act, entries, why: why.into() });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::EntryNumber;

    /// Reads a word for each record: `q` of the user, `=A` a result, `1:said/+A` words and a call of message 1.
    fn items(said: &str) -> Vec<Item> {
        let of = |(n, word): (EntryNumber, &str)| {
            let message = match (word.split_once(':'), word.strip_prefix('=')) {
                (Some((id, parts)), _) => {
                    let blocks = parts.split('/').map(|part| match part.strip_prefix('+') {
                        Some(id) => Block::Call {
                            id: id.to_owned(),
                            name: "Read".to_owned(),
                            input: "{}".to_owned(),
                            signature: None,
                        },
                        None => Block::Text(part.to_owned()),
                    });
                    let id = Some(id.to_owned()).filter(|id| !id.is_empty());
                    Message { id, ..Message::new(Role::Assistant, blocks.collect()) }
                }
                (_, Some(id)) => {
                    let result = Block::answer(id.to_owned(), "out".to_owned());
                    Message::new(Role::Tool, vec![result])
                }
                _ => Message::new(Role::User, vec![Block::Text(word.to_owned())]),
            };
            Item::said(message, n)
        };
        EntryNumber::FIRST.onwards().zip(said.split(' ')).map(of).collect()
    }

    fn shown(items: &[Item]) -> String {
        let block = |block: &Block| match block {
            Block::Call { id, .. } => format!("+{id}"),
            Block::Result { id, .. } => format!("={id}"),
            Block::Text(text) => text.clone(),
            _ => String::new(),
        };
        let item = |item: &Item| {
            let message = item.message();
            let blocks: Vec<String> = message.blocks.iter().map(block).collect();
            let id = message.id.as_ref().map_or(String::new(), |id| format!("{id}:"));
            id + &blocks.join("/")
        };
        items.iter().map(item).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check(said: &str, expected: &str) {
        let (kept, _) = keep(items(said), &mut Vec::new());
        assert_eq!(shown(&kept), expected);
    }

    #[test]
    fn a_call_that_nothing_answered_goes_once_the_conversation_went_on() {
        check("q 1:said 1:+A", "q 1:said/+A");
        check("q 1:said 1:+A q2", "q 1:said q2");
        // With the words of its record.
        check("q 1:said/+A", "q 1:said/+A");
        check("q 1:said/+A q2", "q q2");
        check("q 1:said 1:+A 1:+B =A q2", "q 1:said/+A =A q2");
        check("q 1:+A/+B =A q2", "q 1:+A/+B =A q2");
        // At the end the last message stays, and behind a result the turn.
        check("q 1:+A 1:+B", "q 1:+A/+B");
        check("q 1:+A 2:+B", "q 2:+B");
        check("q 1:+A q2 1:+B", "q q2 1:+B");
        check("q 1:+A 2:+B =B", "q 1:+A 2:+B =B");
        check("q 1:+A q2 2:+B =B", "q q2 2:+B =B");
        check("q 1:+A 1:+B =A 2:text", "q 1:+A =A 2:text");
        // A call behind a result leaves the turn open.
        check("q 1:+A 1:+B =B 2:+C", "q 1:+A/+B =B 2:+C");
        check("q 1:+A 2:+B =B 3:+C", "q 1:+A 2:+B =B 3:+C");
        check("q 1:+A 2:+B =B 3:+C 4:+D", "q 1:+A 2:+B =B 3:+C 4:+D");
        check("q 1:+A 2:+B =B 3:text 3:+C", "q 2:+B =B 3:text/+C");
        check("q 1:+A 2:+B =B q2 3:+C", "q 2:+B =B q2 3:+C");
    }

    #[test]
    fn the_records_of_a_message_stand_where_its_first_one_does_with_its_calls_last() {
        check("q 1:one 2:two 1:more 2:end q2", "q 1:one/more 2:two/end q2");
        check("q 1:+A =A 1:more 1:+B =B 2:end", "q 1:more/+A/+B =A =B 2:end");
        check("q 1:t1/+A/t2/+B =A =B 2:end", "q 1:t1/t2/+A/+B =A =B 2:end");
        check("q 1:one q2 1:more q3", "q 1:one q2 1:more q3");
        // Words behind a result part nothing.
        check("q 1:+A =A q2 1:+B =B 2:end", "q 1:+A/+B =A q2 =B 2:end");
        // Records without a message's id are messages of their own.
        check("q :+A =A :+B =B", "q +A =A +B =B");
    }

    #[test]
    fn a_result_stands_right_behind_its_calls_message_or_goes() {
        check("q 1:+A 2:+B =B =A 3:end", "q 1:+A 2:+B =B 3:end");
        check("q 1:+A 2:+B 1:+C =A =B =C 3:end", "q 1:+A/+C 2:+B =B 3:end");
        check("q 1:+A =A 2:+B 1:+C =C =B 3:end", "q 1:+A/+C =A 2:+B =B 3:end");
        check("q 1:+A q2 =A 3:end", "q 1:+A q2 =A 3:end");
        check("q =A 1:+A 2:end", "q 1:+A =A 2:end");
        check("q 1:+A =A =A 2:end", "q 1:+A =A 2:end");
        check("q 1:said =Z q2 2:end", "q 1:said q2 2:end");
        check("q =Z 2:end", "q 2:end");
    }

    #[test]
    fn a_missing_result_is_told_in_the_agents_words_and_one_at_the_end_in_others() {
        let answered = |said: &str| {
            let mut items = items(said);
            for item in &mut items {
                if item.results().any(|id| id.starts_with('-')) {
                    item.origin = Origin::Synthetic;
                }
            }
            answer(&mut items, ["missing", "interrupted"]);
            let told = |item: &Item| match item.message().blocks.first() {
                Some(block @ Block::Result { id, .. }) => format!("{id}:{}", block.answer_text()),
                _ => item.message().text(),
            };
            items.iter().map(told).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(answered("q 1:said =-A =B"), "q said B:out -A:interrupted");
        assert_eq!(answered("q 1:said =-A =B 2:end"), "q said -A:missing B:out end");
        assert_eq!(answered("q 1:said =-A =B q2"), "q said -A:missing B:out q2");
    }

    #[test]
    fn the_agents_words_stand_where_nothing_is_left() {
        check("q 1:+A 2:hm =A 3:end", "q 1:+A 2:hm (no content) 3:end");
        check("q 1:said =Z 2:end", "q 1:said (no content) 2:end");
        check("q 1:+A =Z", "q 1:+A");
        check(
            "=Z 1:said q 2:end",
            "[Orphaned tool result removed due to conversation resume] 1:said q 2:end",
        );
        check(
            "q 1:+A =A q2 2:+A =A 3:end",
            "q 1:+A =A q2 2:[Tool use interrupted] (no content) 3:end",
        );
    }
}
