//! Passages: the texts of a record, each with who said it.
//!
//! A call of a tool says the tool's name and each text among its arguments, as it was meant and not as JSON escapes it.

use std::borrow::Cow;

use super::pattern::Pattern;
use crate::{
    json::Raw,
    model::{Block, Message, Role},
};

/// The length in bytes from which on a text without blanks is no text that a person reads.
const DATA: usize = 1024;

/// A text of a record.
pub(super) struct Passage<'m> {
    pub(super) role: Role,
    /// The tool that is called or answers, and the id of the call.
    pub(super) tool: Option<Tool<'m>>,
    pub(super) text: Cow<'m, str>,
}

/// A tool as a passage names it.
#[derive(Clone, Copy)]
pub(super) struct Tool<'m> {
    pub(super) name: Option<&'m str>,
    pub(super) call: &'m str,
}

/// Hands over the texts of messages, in order.
pub(super) fn passages<'m>(messages: &'m [Message], each: &mut dyn FnMut(Passage<'m>)) {
    for message in messages {
        for block in &message.blocks {
            told(message.role, None, block, each);
        }
    }
}

/// Returns the lines of a text, each with the CR that may end it.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line))
}

impl Pattern {
    /// Returns whether some line of what was said in messages has a match.
    pub fn is_in(&self, messages: &[Message]) -> bool {
        let mut is_found = false;
        passages(messages, &mut |passage| {
            is_found = is_found
                || self.may_match(&passage.text)
                    && lines(&passage.text).any(|line| self.is_match(line));
        });
        is_found
    }
}

/// Returns whether a text of an agent's own is data, such as a document in base64, and no words.
fn is_data(text: &str) -> bool {
    text.len() >= DATA && !text.contains([' ', '\n'])
}

fn told<'m>(
    role: Role,
    tool: Option<Tool<'m>>,
    block: &'m Block,
    each: &mut dyn FnMut(Passage<'m>),
) {
    let mut say = |text: Cow<'m, str>| each(Passage { role, tool, text });
    match block {
        Block::Text(text) => say(Cow::Borrowed(text)),
        Block::Thinking(thinking) => say(Cow::Borrowed(&thinking.text)),
        Block::Call { id, name, input, .. } => {
            let tool = Some(Tool { name: Some(name), call: id });
            let mut say = |text| each(Passage { role, tool, text });
            say(Cow::Borrowed(name));
            texts(input, &mut say);
        }
        Block::Result { id, name, blocks, .. } => {
            let tool = Some(Tool { name: name.as_deref(), call: id });
            for block in blocks {
                told(Role::Tool, tool, block, each);
            }
        }
        Block::Other { json, .. } => {
            texts(json, &mut |text| {
                if !is_data(&text) {
                    say(text);
                }
            });
        }
        Block::Image(_) => {}
    }
}

/// Hands over the texts in a JSON value, or all of it if it is none.
fn texts<'m>(json: &'m str, say: &mut dyn FnMut(Cow<'m, str>)) {
    match Raw::value(json.as_bytes()) {
        Some(value) => inner(value, say),
        None => say(Cow::Borrowed(json)),
    }
}

fn inner<'m>(value: Raw<'m>, say: &mut dyn FnMut(Cow<'m, str>)) {
    for string in value.strings(|_| false) {
        if let Some(text) = string.text() {
            say(text);
        }
    }
}
