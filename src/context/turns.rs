//! Turns: puts messages into the roles and order that a provider requires.
//!
//! ```text
//! anthropic, gemini   system first, then user and assistant alternate, beginning with the user. Results count as the
//!                     user's, and so do later instructions.
//! openai              user and assistant alternate, results directly after their calls, instructions anywhere
//! messages            the records of one message are joined, nothing else
//! ```
//!
//! Invariant: no text is lost: merged messages have the blocks of both.

use std::collections::BTreeSet;

use crate::{
    context::{
        Act, Change, Item, Origin, Shape, Step,
        item::{Tag, put_in, sift},
        tokens,
    },
    model::{Block, Message, Role},
};

/// The first message if the model would speak first.
const BOOTSTRAP: &str = "[undertext: the session goes on from here]";

/// Joins the records of each of the model's messages: those with the same id, and adjacent ones.
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
        // An id that appears again elsewhere belongs to another message; the messages between may still be dropped.
        if item.id().is_some_and(|id| !is_model || !seen.insert(id)) {
            item.change(|message| message.id = None);
        }
        // The results of a message's first calls may come before its last record.
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

/// Puts messages into the order and roles that a provider requires.
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

/// Trims white space from the end of the model's last message, which may not end a request.
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

/// Returns true if two neighbours are one message to a provider.
fn are_one(before: &Item, item: &Item, shape: Shape) -> bool {
    side(before.role(), shape) == side(item.role(), shape)
        && !matches!(side(item.role(), shape), Side::System | Side::Tool)
}

/// Who speaks, as a provider distinguishes roles.
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
    // In formats without message ids each part of a message is a record; only one with a stop reason is a whole message.
    let is_part =
        before.role() == Role::Assistant && before.stop().is_none() && before.id() == item.id();
    if before.entries != item.entries && !is_part {
        note(changes, Act::Merged, item, why);
        before.origin = Origin::Merged;
    }
    absorb(before, item);
}

/// Merges two messages: the blocks of both, and the later value of fields that exist only once.
pub(super) fn absorb(before: &mut Item, item: &Item) {
    before.tokens = tokens::merged(before.tokens, item.tokens);
    before.begins_turn |= item.begins_turn;
    // Parts of one message name the same entries.
    if !before.entries.ends_with(&item.entries) {
        before.entries.extend(&item.entries);
    }
    before.join(item);
}
