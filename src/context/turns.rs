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
    context::{
        Act, Change, Item, Origin, Shape, Step,
        item::{Tag, put_in, sift},
        tokens,
    },
    model::{Block, Message, Role},
};

/// The words that stand first where the model would speak first.
const BOOTSTRAP: &str = "[undertext: the session goes on from here]";

/// Puts the records of each of the model's messages together again: those of one id, and those that stand side by side.
pub(super) fn records(mut items: Vec<Item>, changes: &mut Vec<Change>) -> Vec<Item> {
    let mut open: Option<usize> = None;
    let mut seen: BTreeSet<Tag> = BTreeSet::new();
    sift(&mut items, |joined, item| {
        let is_model = item.role() == Role::Assistant;
        let before = open.and_then(|at| joined.get_mut(at));
        let is_part =
            |before: &&mut Item| is_model && before.id().is_some() && before.id() == item.id();
        if let Some(before) = before.filter(is_part) {
            absorb(before, item);
            return false;
        }
        // An id that comes again elsewhere is of another message; the messages between may yet go.
        if item.id().is_some_and(|id| !is_model || !seen.insert(id)) {
            item.change(|message| message.id = None);
        }
        // The answers to a message's first calls may come before its last record.
        if is_model {
            open = Some(joined.len());
        } else if item.role() != Role::Tool {
            open = None;
        }
        true
    });
    join(items, Shape::Messages, changes)
}

/// Joins the model's messages that follow each other; as messages, one that failed or was broken off stays alone.
pub(super) fn join(mut items: Vec<Item>, shape: Shape, changes: &mut Vec<Change>) -> Vec<Item> {
    let all = shape != Shape::Messages;
    sift(&mut items, |joined, item| match joined.last_mut() {
        Some(before)
            if before.role() == Role::Assistant
                && item.role() == Role::Assistant
                && (all || !before.is_broken() && !item.is_broken()) =>
        {
            merge(before, item, "they belong to one answer of the model", changes);
            false
        }
        _ => true,
    });
    items
}

/// Puts messages in the order and the roles that a provider demands.
pub(super) fn validate(items: Vec<Item>, shape: Shape, changes: &mut Vec<Change>) -> Vec<Item> {
    let mut items = join(items, shape, changes);
    if shape == Shape::Messages {
        return items;
    }
    let mut has_begun = false;
    let mut first = None;
    sift(&mut items, |valid, item| {
        if shape != Shape::Openai && has_begun && item.role() == Role::System {
            item.change(|message| message.role = Role::User);
            note(changes, Act::Changed, item, "a later system message is sent as the user's");
        }
        if shape != Shape::Openai && !has_begun && item.role() == Role::Assistant {
            let words = vec![Block::Text(BOOTSTRAP.to_owned())];
            note(changes, Act::Added, item, "the first message must be the user's");
            first = Some((valid.len(), Item::synthetic(Message::new(Role::User, words))));
        }
        has_begun |= item.role() != Role::System;
        match valid.last_mut() {
            Some(before) if are_one(before, item, shape) => {
                merge(before, item, "two user messages without an answer between them", changes);
                false
            }
            _ => true,
        }
    });
    let mut items = put_in(items, first.into_iter().collect());
    if let Some(last) = items.last_mut().filter(|_| shape == Shape::Anthropic) {
        trim(last, changes);
    }
    items
}

/// Takes the white space from the end of the model's last words, which may not end a request.
fn trim(last: &mut Item, changes: &mut Vec<Change>) {
    let is_trimmed = |text: &str| text.trim_end().len() == text.len();
    match last.message().blocks.last() {
        Some(Block::Text(text)) if last.role() == Role::Assistant && !is_trimmed(text) => {}
        _ => return,
    }
    last.change(|message| {
        if let Some(Block::Text(text)) = message.blocks.last_mut() {
            text.truncate(text.trim_end().len());
        }
    });
    note(changes, Act::Changed, last, "the white space at the end of the request is left out");
}

/// Returns whether two neighbours are one message to a provider.
fn are_one(before: &Item, item: &Item, shape: Shape) -> bool {
    side(before.role(), shape) == side(item.role(), shape)
        && !matches!(side(item.role(), shape), Side::System | Side::Tool)
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
    changes.push(Change { step: Step::Turns, act, entries, why: why.into() });
}

fn merge(before: &mut Item, item: &Item, why: &str, changes: &mut Vec<Change>) {
    // Formats without ids for messages have a record for each part of one; only an ended part is a message.
    let is_part =
        before.role() == Role::Assistant && before.stop().is_none() && before.id() == item.id();
    if before.entries != item.entries && !is_part {
        note(changes, Act::Merged, item, why);
        before.origin = Origin::Merged;
    }
    absorb(before, item);
}

/// Makes two messages one: the blocks of both, and the later word for fields that exist only once.
pub(super) fn absorb(before: &mut Item, item: &Item) {
    before.tokens = tokens::merged(before.tokens, item.tokens);
    before.begins_turn |= item.begins_turn;
    // Parts of one message name the same entries.
    if !before.entries.ends_with(&item.entries) {
        before.entries.extend(&item.entries);
    }
    before.join(item);
}
