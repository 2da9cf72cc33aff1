//! Repairs or drops content that no provider accepts: empty messages, malformed calls, ids in a form that is refused,
//! thinking that may not be sent again, images that cannot be seen.
//!
//! Afterwards each message has one of these forms, which every later step relies on:
//!
//! ```text
//! system      texts
//! user        texts, images                         an unknown block is kept only where it is understood
//! assistant   texts, thinking, calls                all records of one message together
//! tool        one result: texts, images
//! ```
//!
//! A block of an unknown kind is kept in the shape `messages`, and in Anthropic's if it is one of Anthropic's own;
//! otherwise it is dropped. Thinking is kept only where it can go back: in `messages` always, in Anthropic's shape if it is a
//! signed block of that API, in chat completions if it came from a field or an item of OpenAI's APIs. Gemini's contents cannot
//! contain it.
//!
//! Invariant: sanitising a sanitised request changes nothing.

use std::sync::Arc;

use serde_json::value::RawValue;

use crate::{
    context::{Act, Change, Entries, Item, Shape, Step, sendable, turns},
    json,
    model::{Block, Image, Message, Role, SentAs, Source, Stop, Thinking},
};

/// The requirements for messages.
#[derive(Clone, Copy, Debug)]
pub struct Hygiene {
    /// The provider's API.
    pub shape: Shape,
    /// True if images are sent.
    pub images: bool,
    /// The API of the session's own agent, if it has only one: all thinking comes from there.
    pub maker: Option<Shape>,
}

/// Replaces an image that was requested to be dropped.
const UNSENT: &str = "[a picture that is left out of this request]";
/// Replaces an image that the session does not contain.
const ELSEWHERE: &str = "[a picture that is not in the session]";
/// Replaces an image where none is allowed.
const MISPLACED: &str = "[a picture]";
/// Replaces a tool's empty result.
const NOTHING: &str = "(no output)";
/// How many of the last changes are compared with the next one.
const ALTERNATING: usize = 16;
/// The maximum length of a tool's name.
const NAME: usize = 64;
/// The maximum length of a call's id.
const ID: usize = 40;

/// Repairs messages, or drops them.
pub fn sanitise(items: Vec<Item>, hygiene: Hygiene, changes: &mut Vec<Change>) -> Vec<Item> {
    let mut items = split(turns::records(items, changes));
    items.retain_mut(|item| {
        hygiene.mend(item, changes);
        item.has_blocks()
    });
    // A left-out message may have parted others that belong together.
    turns::join(items, Shape::Messages, changes)
}

/// Collects the changes of one message.
struct Notes<'a> {
    entries: &'a Entries,
    /// True if anything was changed.
    is_touched: bool,
    /// True if something was rewritten without changing its meaning.
    is_rewritten: bool,
    changes: &'a mut Vec<Change>,
}

impl Notes<'_> {
    fn add(&mut self, act: Act, why: impl Into<Arc<str>>) {
        self.is_touched = true;
        let entries = self.entries.clone();
        let change = Change { step: Step::Sanitise, act, entries, why: why.into() };
        // A change to many parts of one message is reported once, even if several such changes alternate.
        if !self.changes.iter().rev().take(ALTERNATING).any(|last| *last == change) {
            self.changes.push(change);
        }
    }
}

/// Splits messages so that each result is a message of its own, followed by the rest.
pub(super) fn split(items: Vec<Item>) -> Vec<Item> {
    if items.iter().all(is_one) {
        return items;
    }
    let parts = |item| if is_one(&item) { vec![item] } else { parts(&item) };
    items.into_iter().flat_map(parts).collect()
}

/// Returns true if a message is a single result or contains none, and has no field that only an answer of a model has.
fn is_one(item: &Item) -> bool {
    let is_whole = match item.role() {
        Role::Tool => item.is_only_result() && !item.begins_turn && !item.is_summary(),
        _ => !item.has_results(),
    };
    is_whole && (item.role() == Role::Assistant || !item.has_answer_facts())
}

/// Splits a message.
fn parts(item: &Item) -> Vec<Item> {
    let mut message = item.message().into_owned();
    let blocks = std::mem::take(&mut message.blocks);
    // Only an answer of a model keeps the model's own fields.
    let part = |role, blocks, begins_turn| {
        let message = match role {
            Role::Assistant => Message { blocks, ..message.clone() },
            role => Message {
                time: message.time,
                is_summary: message.is_summary && role != Role::Tool,
                ..Message::new(role, blocks)
            },
        };
        item.part(message, begins_turn)
    };
    let rest_role = if message.role == Role::Tool { Role::User } else { message.role };
    let (results, rest): (Vec<Block>, Vec<Block>) =
        blocks.into_iter().partition(|block| matches!(block, Block::Result { .. }));
    // A tool result does not begin a turn of the user.
    let mut parts: Vec<Item> =
        results.into_iter().map(|result| part(Role::Tool, vec![result], false)).collect();
    if !rest.is_empty() || parts.is_empty() {
        // The model speaks before results, the user after them.
        let at = if rest_role == Role::Assistant { 0 } else { parts.len() };
        parts.insert(at, part(rest_role, rest, item.begins_turn));
    }
    // If it remains one message, its token count is still valid.
    if let [one] = parts.as_mut_slice() {
        one.tokens = item.tokens;
    }
    parts
}

impl Hygiene {
    /// Returns true if a provider restricts names, ids and blocks. What an agent sends is not changed.
    fn has_rules(self) -> bool {
        !matches!(self.shape, Shape::Messages | Shape::Agent)
    }

    /// Repairs a message.
    fn mend(self, item: &mut Item, changes: &mut Vec<Change>) {
        // Text is accepted everywhere.
        if item.is_only_words() {
            return;
        }
        let entries = item.entries.clone();
        let mut notes =
            Notes { entries: &entries, is_touched: false, is_rewritten: false, changes };
        let mut message = item.message().into_owned();
        self.message(&mut message, &mut notes);
        let Notes { is_touched, is_rewritten, .. } = notes;
        if is_touched || is_rewritten {
            item.set(message);
        }
        if is_touched {
            item.tokens = None;
        }
    }

    fn message(self, message: &mut Message, notes: &mut Notes<'_>) {
        let blocks = std::mem::take(&mut message.blocks);
        // The kept blocks are collected in place.
        let blocks = blocks.into_iter().filter_map(|block| match message.role {
            Role::Tool => Some(self.result(block, notes)),
            role => self.block(block, role, notes),
        });
        message.blocks = blocks.collect();
        if message.role == Role::Assistant && !message.blocks.is_empty() {
            let says = |block: &Block| !matches!(block, Block::Thinking(_));
            match message.blocks.iter().rposition(says) {
                None => {
                    notes.add(Act::Dropped, "it is only thinking");
                    message.blocks.clear();
                }
                Some(last) if self.has_rules() && last + 1 < message.blocks.len() => {
                    notes.add(Act::Dropped, "thinking at the end of an answer");
                    message.blocks.truncate(last + 1);
                }
                Some(_) => {}
            }
        }
        if message.blocks.is_empty() && !notes.is_touched {
            let is_broken = matches!(message.stop, Some(Stop::Error | Stop::Aborted));
            let why = if is_broken {
                "it was interrupted before the first word"
            } else {
                "it has no content"
            };
            notes.add(Act::Dropped, why);
        }
    }

    fn block(self, block: Block, role: Role, notes: &mut Notes<'_>) -> Option<Block> {
        match block {
            Block::Text(text) if text.trim().is_empty() => {
                notes.add(Act::Dropped, "an empty text");
                None
            }
            Block::Thinking(thinking) => {
                if role != Role::Assistant {
                    notes.add(Act::Dropped, "thinking that does not come from a model");
                    return None;
                }
                self.thinking(thinking, notes).map(Block::Thinking)
            }
            Block::Call { .. } if role != Role::Assistant => {
                notes.add(Act::Dropped, "a call that does not come from a model");
                None
            }
            Block::Call { id, name, input, signature } => {
                self.call(id, name, &input, signature, notes)
            }
            Block::Image(image) if role == Role::User => Some(self.image(image, notes)),
            Block::Image(_) => {
                notes.add(Act::Changed, "a picture is not allowed there, so it is named in text");
                Some(Block::Text(MISPLACED.to_owned()))
            }
            Block::Other { name, json } => {
                let is_known = match self.shape {
                    Shape::Messages | Shape::Agent => true,
                    Shape::Anthropic => is_anthropic(&name, role),
                    Shape::Openai | Shape::Gemini => false,
                };
                if !is_known {
                    notes.add(
                        Act::Dropped,
                        format!("a block of the kind {name}, which is not known there"),
                    );
                }
                is_known.then(|| Block::Other { name, json: self.json(json, notes) })
            }
            block => Some(block),
        }
    }

    fn thinking(self, thinking: Thinking, notes: &mut Notes<'_>) -> Option<Thinking> {
        let signed = thinking.signature.as_ref().is_some_and(|signature| !signature.is_empty());
        let is_empty = thinking.text.is_empty() && !signed;
        let is_block = thinking.sent_as == SentAs::Block;
        let is_foreign = !is_block || self.maker.is_some_and(|maker| maker != Shape::Anthropic);
        let why = match self.shape {
            _ if is_empty => "empty thinking",
            Shape::Gemini => "thinking, which is not allowed there",
            Shape::Openai if is_block => "thinking, which is not allowed there",
            Shape::Anthropic if is_foreign => "thinking by another vendor's model",
            Shape::Anthropic if !signed => "thinking without a signature",
            _ => return Some(thinking),
        };
        notes.add(Act::Dropped, why);
        None
    }

    fn call(
        self,
        id: String,
        name: String,
        input: &str,
        signature: Option<String>,
        notes: &mut Notes<'_>,
    ) -> Option<Block> {
        if id.is_empty() || name.is_empty() {
            let what = if id.is_empty() { "id" } else { "name" };
            notes.add(Act::Dropped, format!("a call without {what}"));
            return None;
        }
        let Ok(json) =
            serde_json::from_str::<&RawValue>(if input.is_empty() { "{}" } else { input })
        else {
            notes.add(Act::Dropped, "a call whose arguments are not JSON");
            return None;
        };
        notes.is_rewritten |= json.get() != input;
        let input = if !self.has_rules() && !input.is_empty() || json.get().starts_with('{') {
            json.get().to_owned()
        } else {
            notes.add(Act::Changed, "arguments that are not an object are wrapped in one");
            format!("{{\"input\":{}}}", json.get())
        };
        let input = self.json(input, notes);
        let is_known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name = if self.has_rules() && (name.len() > NAME || !name.chars().all(is_known)) {
            notes.add(Act::Changed, "the name of a tool, in a form that is accepted");
            name.chars().take(NAME).map(|c| if is_known(c) { c } else { '_' }).collect()
        } else {
            name
        };
        let id = self.id(&id).map_or(id, |taken| {
            notes.add(Act::Changed, CHANGED_ID);
            taken
        });
        Some(Block::Call { id, name, input, signature })
    }

    /// Returns JSON that goes into the request verbatim, in a form that can be parsed.
    fn json(self, json: String, notes: &mut Notes<'_>) -> String {
        match json::mended(&json).filter(|_| self.has_rules()) {
            Some(readable) => {
                notes.add(Act::Changed, "invalid JSON is repaired");
                readable
            }
            None => json,
        }
    }

    /// Returns a valid form of an id; None if it is valid already. Different ids remain different.
    fn id(self, id: &str) -> Option<String> {
        // Only some of the compatible endpoints accept more, which is not worth the risk.
        let is_known = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !self.has_rules() || id.len() <= ID && id.chars().all(is_known) {
            return None;
        }
        let hash = blake3::hash(id.as_bytes()).to_hex();
        let words: String = id.chars().filter(|c| is_known(*c)).take(ID - 17).collect();
        Some(format!("{words}_{}", hash.get(..16).unwrap_or_default()))
    }

    /// Repairs a result.
    fn result(self, block: Block, notes: &mut Notes<'_>) -> Block {
        let Block::Result { id, name, blocks, error } = block else { return block };
        // An error is text; an image in it would be refused.
        let takes_all = self.shape == Shape::Anthropic && !error;
        let mut kept = Vec::with_capacity(blocks.len());
        for block in blocks {
            match block {
                // The empty result is reported below.
                Block::Text(text) if text.trim().is_empty() => notes.is_touched = true,
                Block::Text(text) => kept.push(Block::Text(text)),
                Block::Image(image) if !self.has_rules() || takes_all => {
                    kept.push(self.image(image, notes));
                }
                Block::Image(_) => {
                    notes.add(
                        Act::Changed,
                        "a picture is not allowed there, so it is named in text",
                    );
                    kept.push(Block::Text(MISPLACED.to_owned()));
                }
                Block::Other { name, json } => {
                    let stays = match self.shape {
                        Shape::Messages | Shape::Agent => true,
                        Shape::Anthropic => {
                            takes_all && matches!(name.as_str(), "document" | "search_result")
                        }
                        Shape::Openai | Shape::Gemini => false,
                    };
                    if stays {
                        kept.push(Block::Other { name, json: self.json(json, notes) });
                    } else {
                        // It is a tool's result, so the model can read it as it is.
                        notes.add(
                            Act::Changed,
                            format!("a block of the kind {name} in a result is sent as text"),
                        );
                        kept.push(Block::Text(json));
                    }
                }
                // A result cannot contain any other block.
                Block::Thinking(_) | Block::Call { .. } | Block::Result { .. } => {
                    notes.add(Act::Dropped, "a block that cannot be part of a result");
                }
            }
        }
        // An agent sends it empty.
        if kept.is_empty() && self.shape != Shape::Agent {
            notes.add(Act::Changed, "an empty result is marked as empty");
            kept.push(Block::Text(NOTHING.to_owned()));
        }
        let id = self.id(&id).map_or(id, |taken| {
            notes.add(Act::Changed, CHANGED_ID);
            taken
        });
        Block::Result { id, name, blocks: kept, error }
    }

    fn image(self, image: Image, notes: &mut Notes<'_>) -> Block {
        if !self.images {
            notes.add(Act::Cut, "a picture is left out, as asked");
            return Block::Text(UNSENT.to_owned());
        }
        let is_empty = matches!(&image.source, Source::Data(at) | Source::Url(at) if at.is_empty());
        if image.source == Source::Elsewhere || is_empty {
            notes.add(Act::Changed, "a picture that is not in the session is named in text");
            return Block::Text(ELSEWHERE.to_owned());
        }
        if !self.has_rules() {
            return Block::Image(image);
        }
        match sendable::picture(&image, self.shape) {
            Ok(other) => {
                notes.is_rewritten |= other.is_some();
                Block::Image(other.unwrap_or(image))
            }
            Err(words) => {
                notes.add(
                    Act::Changed,
                    "a picture of a kind that is not accepted there is named in text",
                );
                Block::Text(words)
            }
        }
    }
}

const CHANGED_ID: &str = "the id of a call, in a form that is accepted";

/// Returns true if Anthropic's API knows a kind of block in this role.
fn is_anthropic(name: &str, role: Role) -> bool {
    match role {
        Role::User => matches!(name, "document" | "search_result" | "container_upload"),
        _ => false,
    }
}

/// Returns the number of images and how many bytes they take in their records.
pub fn pictures(items: &[Item]) -> (u64, u64) {
    let count = |(n, bytes), block: &Block| match block {
        Block::Image(image) => (n + 1, bytes + image.bytes as u64),
        _ => (n, bytes),
    };
    let with_pictures = items.iter().filter(|item| item.has_pictures());
    with_pictures.fold((0, 0), |all, item| item.message().parts().fold(all, count))
}
