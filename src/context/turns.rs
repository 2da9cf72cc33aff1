//! Turns: messages in the roles and in the order that a provider demands.
//!
//! ```text
//! anthropic, gemini   system first, then user and assistant in turn; the first of them is the user's. A result is the
//!                     user's, and so are instructions that come later.
//! openai              user and assistant in turn, results right behind their calls, instructions anywhere
//! messages            the records of one message are one, and nothing more
//! ```
//!
//! Invariant: no word is lost: merged messages have the blocks of both.

use std::collections::BTreeSet;

use crate::{
    context::{Act, Change, Item, Origin, Shape, Step, tokens},
    model::{Block, Message, Role, Stop},
};

/// The words that stand first where the model would speak first.
const BOOTSTRAP: &str = "[undertext: the session goes on from here]";

/// Puts the records of each of the model's messages together again: those of one id, and those that stand side by side.
pub(super) fn records(items: Vec<Item>, changes: &mut Vec<Change>) -> Vec<Item> {
    let mut joined: Vec<Item> = Vec::with_capacity(items.len());
    let mut open: Option<usize> = None;
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for mut item in items {
        let is_model = item.message.role == Role::Assistant;
        let at = open.filter(|&at| {
            let before = joined.get(at).map(|before| &before.message);
            before.is_some_and(|before| {
                is_model && before.id.is_some() && before.id == item.message.id
            })
        });
        if let Some(before) = at.and_then(|at| joined.get_mut(at)) {
            absorb(before, item);
            continue;
        }
        // An id that comes again elsewhere is of another message; the messages between may yet go.
        item.message.id = item.message.id.filter(|id| is_model && seen.insert(id.clone()));
        // The answers to a message's first calls may come before its last record.
        if is_model {
            open = Some(joined.len());
        } else if item.message.role != Role::Tool {
            open = None;
        }
        joined.push(item);
    }
    join(joined, false, changes)
}

/// Joins the model's messages that follow each other; one that failed or was broken off stays alone unless `all`.
pub(super) fn join(items: Vec<Item>, all: bool, changes: &mut Vec<Change>) -> Vec<Item> {
    let is_broken = |message: &Message| matches!(message.stop, Some(Stop::Error | Stop::Aborted));
    let mut joined: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        match joined.last_mut() {
            Some(before)
                if before.message.role == Role::Assistant
                    && item.message.role == Role::Assistant
                    && (all || !is_broken(&before.message) && !is_broken(&item.message)) =>
            {
                merge(before, item, "the model said them without a break", changes);
            }
            _ => joined.push(item),
        }
    }
    joined
}

/// Puts messages in the order and the roles that a provider demands.
pub(super) fn validate(items: Vec<Item>, shape: Shape, changes: &mut Vec<Change>) -> Vec<Item> {
    let items = join(items, shape != Shape::Messages, changes);
    if shape == Shape::Messages {
        return items;
    }
    let mut valid: Vec<Item> = Vec::with_capacity(items.len());
    let mut has_begun = false;
    for mut item in items {
        if shape != Shape::Openai && has_begun && item.message.role == Role::System {
            item.message.role = Role::User;
            note(changes, Act::Changed, &item, "instructions in the middle go in the user's place");
        }
        if shape != Shape::Openai && !has_begun && item.message.role == Role::Assistant {
            let words = vec![Block::Text(BOOTSTRAP.to_owned())];
            note(changes, Act::Added, &item, "the first message is the user's");
            valid.push(Item::synthetic(Message::new(Role::User, words)));
        }
        has_begun |= item.message.role != Role::System;
        match valid.last_mut() {
            Some(before) if are_one(before, &item, shape) => {
                merge(before, item, "two of the user's without an answer between", changes);
            }
            _ => valid.push(item),
        }
    }
    valid
}

/// Returns whether two neighbours are one message to a provider.
fn are_one(before: &Item, item: &Item, shape: Shape) -> bool {
    side(before.message.role, shape) == side(item.message.role, shape)
        && !matches!(side(item.message.role, shape), Side::System | Side::Tool)
}

/// Who speaks, as a provider tells roles apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    System,
    User,
    Model,
    /// Each result is a message.
    Tool,
}

pub(super) fn side(role: Role, shape: Shape) -> Side {
    match role {
        Role::System => Side::System,
        Role::Tool if matches!(shape, Shape::Openai | Shape::Messages) => Side::Tool,
        Role::User | Role::Tool => Side::User,
        Role::Assistant => Side::Model,
    }
}

fn note(changes: &mut Vec<Change>, act: Act, item: &Item, why: &str) {
    let entries = item.entries.clone();
    changes.push(Change { step: Step::Turns, act, entries, why: why.to_owned() });
}

fn merge(before: &mut Item, item: Item, why: &str, changes: &mut Vec<Change>) {
    // Formats without ids for messages have a record for each part of one; only an ended part is a message.
    let is_part = before.message.role == Role::Assistant
        && before.message.stop.is_none()
        && before.message.id == item.message.id;
    if before.entries != item.entries && !is_part {
        note(changes, Act::Merged, &item, why);
        before.origin = Origin::Merged;
    }
    absorb(before, item);
}

/// Makes two messages one: the blocks of both, and the later word for fields that exist only once.
pub(super) fn absorb(before: &mut Item, item: Item) {
    let Item { message, entries, begins_turn, tokens, .. } = item;
    let message = *message;
    before.tokens = tokens::merged(before.tokens, tokens);
    before.begins_turn |= begins_turn;
    // Parts of one message name the same entries.
    if !before.entries.ends_with(&entries) {
        before.entries.extend(entries);
    }
    let own = &mut before.message;
    if own.role == Role::Tool {
        own.role = message.role;
    }
    own.blocks.extend(message.blocks);
    // A joint message has no one's id.
    own.id = own.id.take().filter(|id| message.id.as_ref() == Some(id));
    // A turn is as old as the user's request.
    own.time = if begins_turn { message.time } else { own.time.or(message.time) };
    own.model = message.model.or(own.model.take());
    own.usage = message.usage.or(own.usage);
    own.stop = message.stop.or(own.stop);
    own.is_summary |= message.is_summary;
}
