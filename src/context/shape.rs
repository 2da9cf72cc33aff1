//! Shapes: a prepared request as JSON for a provider.
//!
//! ```text
//! anthropic   {"system":[..], "messages":[{"role":"user"|"assistant", "content":[BLOCK]}]}
//! openai      {"messages":[{"role":"system"|"user"|"assistant"|"tool", ..}]}
//! gemini      {"systemInstruction":{"parts":[..]}, "contents":[{"role":"user"|"model", "parts":[PART]}]}
//! messages    {"messages":[{"role", "content":[BLOCK]}]}, in Anthropic's blocks, with the role `tool` for results
//! agent       like messages, with what the session's own agent sends
//! ```
//!
//! Invariant: arguments of calls are never reformatted; they are sent as in the record, digit for digit.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};

use crate::{
    context::item::Item,
    model::{Block, Image, Message, Role, SentAs, Source, Thinking},
};

/// What Gemini's documentation wants in place of a call's signature where there is none.
pub(crate) const UNSIGNED: &str = "skip_thought_signature_validator";

/// The API for which a request is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The normalised messages, valid but not merged, for no provider.
    #[default]
    Messages,
    /// Anthropic's Messages API.
    Anthropic,
    /// `OpenAI`'s Chat Completions API.
    Openai,
    /// Gemini's contents.
    Gemini,
    /// The normalised messages that the session's own agent sends.
    Agent,
}

impl Shape {
    /// Every shape that is available for any session.
    pub const ALL: [Self; 4] = [Self::Messages, Self::Anthropic, Self::Openai, Self::Gemini];

    /// Returns the name used in all output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Gemini => "gemini",
            Self::Agent => "agent",
        }
    }
}

/// A prepared request. It is serialised message by message.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    items: &'a [Item],
    shape: Shape,
}

/// Returns a prepared request, to be serialised as JSON.
pub fn request(items: &[Item], shape: Shape) -> Request<'_> {
    Request { items, shape }
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_system = |item: &&Item| item.role() == Role::System;
        let messages = self.items.iter().map(Item::message);
        let system = self.items.iter().filter(is_system).map(Item::message);
        let rest = self.items.iter().filter(|item| !is_system(item)).map(Item::message);
        let mut fields = serializer.serialize_map(None)?;
        match self.shape {
            Shape::Messages | Shape::Agent => {
                let messages = messages.map(|message| plain(&message, message.role));
                fields.serialize_entry("messages", &Each(messages))?;
            }
            Shape::Anthropic => {
                let blocks = |message: Cow<'_, Message>| all(&message, anthropic);
                fields.serialize_entry("system", &Each(system.flat_map(blocks)))?;
                let rest = rest.map(|message| match message.role {
                    Role::Assistant => plain(&message, Role::Assistant),
                    _ => plain(&message, Role::User),
                });
                fields.serialize_entry("messages", &Each(rest))?;
            }
            Shape::Openai => {
                let messages = messages.flat_map(|message| openai(&message));
                fields.serialize_entry("messages", &Each(messages))?;
            }
            Shape::Gemini => {
                let tools = tools(self.items);
                let part = |block: &Block| gemini(block, &tools);
                let mut parts = system.flat_map(|message| all(&message, part)).peekable();
                if parts.peek().is_some() {
                    let parts = object(&[("parts", list(parts))]);
                    fields.serialize_entry("systemInstruction", &parts)?;
                }
                let contents = rest.map(|message| {
                    let role = if message.role == Role::Assistant { "model" } else { "user" };
                    let message = signed(message);
                    let parts = list(message.blocks.iter().map(part));
                    object(&[("role", raw(&role)), ("parts", parts)])
                });
                fields.serialize_entry("contents", &Each(contents))?;
            }
        }
        fields.end()
    }
}

/// Returns the JSON of each of a message's blocks.
fn all(message: &Message, one: impl Fn(&Block) -> Box<RawValue>) -> Vec<Box<RawValue>> {
    message.blocks.iter().map(one).collect()
}

/// A list whose items are created while it is serialised.
struct Each<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Each<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// Returns a value's JSON.
fn raw<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    // Serialising strings, numbers and lists of JSON cannot fail.
    to_raw_value(value).unwrap_or_default()
}

/// Returns JSON verbatim, or as a string if it is not JSON.
fn verbatim(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap_or_else(|_| raw(json))
}

fn object(fields: &[(&str, Box<RawValue>)]) -> Box<RawValue> {
    raw(&Fields(fields))
}

/// JSON fields that are written verbatim.
struct Fields<'a>(&'a [(&'a str, Box<RawValue>)]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

fn list(values: impl Iterator<Item = Box<RawValue>>) -> Box<RawValue> {
    raw(&values.collect::<Vec<_>>())
}

/// Returns a message with its content as blocks.
fn plain(message: &Message, role: Role) -> Box<RawValue> {
    let content = list(message.blocks.iter().map(anthropic));
    object(&[("role", raw(role.as_str())), ("content", content)])
}

fn anthropic(block: &Block) -> Box<RawValue> {
    match block {
        Block::Text(text) => object(&[("type", raw("text")), ("text", raw(text))]),
        Block::Thinking(thinking) if thinking.is_redacted => {
            raw(&json!({ "type": "redacted_thinking", "data": thinking.signature }))
        }
        Block::Thinking(thinking) => raw(&match &thinking.signature {
            Some(signature) => {
                json!({ "type": "thinking", "thinking": thinking.text, "signature": signature })
            }
            None => json!({ "type": "thinking", "thinking": thinking.text }),
        }),
        Block::Call { id, name, input, .. } => object(&[
            ("type", raw("tool_use")),
            ("id", raw(id)),
            ("name", raw(name)),
            ("input", verbatim(input)),
        ]),
        Block::Result { id, blocks, error, .. } => {
            let mut fields = vec![
                ("type", raw("tool_result")),
                ("tool_use_id", raw(id)),
                ("content", list(blocks.iter().map(anthropic))),
            ];
            if *error {
                fields.push(("is_error", raw(&true)));
            }
            object(&fields)
        }
        Block::Image(image) => raw(&json!({ "type": "image", "source": match &image.source {
            Source::Data(data) => {
                json!({ "type": "base64", "media_type": media(image), "data": data })
            }
            Source::Url(url) => json!({ "type": "url", "url": url }),
            Source::Elsewhere => Value::Null,
        } })),
        Block::Other { json, .. } => verbatim(json),
    }
}

fn media(image: &Image) -> &str {
    image.media.as_deref().unwrap_or("image/png")
}

/// Returns the messages of chat completions for a message: one for each result.
fn openai(message: &Message) -> Vec<Box<RawValue>> {
    let role = message.role.as_str();
    match message.role {
        Role::Tool => message.blocks.iter().filter_map(answer).collect(),
        Role::System => vec![raw(&json!({ "role": role, "content": message.text() }))],
        Role::User => {
            let is_text = |block: &Block| matches!(block, Block::Text(_));
            if message.blocks.iter().all(is_text) {
                return vec![raw(&json!({ "role": role, "content": message.text() }))];
            }
            let parts = message.blocks.iter().filter_map(|block| match block {
                Block::Text(text) => Some(json!({ "type": "text", "text": text })),
                Block::Image(image) => {
                    let url = match &image.source {
                        Source::Data(data) => format!("data:{};base64,{data}", media(image)),
                        Source::Url(url) => url.clone(),
                        Source::Elsewhere => return None,
                    };
                    Some(json!({ "type": "image_url", "image_url": { "url": url } }))
                }
                _ => None,
            });
            vec![raw(&json!({ "role": role, "content": parts.collect::<Vec<_>>() }))]
        }
        Role::Assistant => {
            let text = message.text();
            let calls: Vec<Value> = message
                .blocks
                .iter()
                .filter_map(|block| match block {
                    Block::Call { id, name, input, .. } => Some(json!({
                        "id": id,
                        "type": "function",
                        "function": { "name": name, "arguments": input },
                    })),
                    _ => None,
                })
                .collect();
            let mut said = json!({ "role": role, "content": text });
            if text.is_empty() {
                said["content"] = Value::Null;
            }
            for (field, value) in reasoning(message) {
                said[field] = value;
            }
            if !calls.is_empty() {
                said["tool_calls"] = Value::Array(calls);
            }
            vec![raw(&said)]
        }
    }
}

/// Returns the reasoning of a message in the fields in which chat completions take it back. Text goes back with calls only:
/// some providers demand it there, and none needs it elsewhere.
pub(crate) fn reasoning(message: &Message) -> BTreeMap<&'static str, Value> {
    let mut fields: BTreeMap<&'static str, Value> = BTreeMap::new();
    let has_calls = message.blocks.iter().any(|block| matches!(block, Block::Call { .. }));
    for block in &message.blocks {
        let Block::Thinking(Thinking { text, signature, sent_as, .. }) = block else { continue };
        let field = sent_as.as_str();
        match sent_as {
            SentAs::Content | SentAs::Plain if has_calls => match fields.get_mut(field) {
                Some(Value::String(all)) => *all = format!("{all}\n{text}"),
                _ => drop(fields.insert(field, text.as_str().into())),
            },
            SentAs::Details => {
                let details = signature.as_deref().and_then(|all| serde_json::from_str(all).ok());
                let Some(Value::Array(details)) = details else { continue };
                if let Value::Array(all) = fields.entry(field).or_insert_with(|| json!([])) {
                    all.extend(details);
                }
            }
            _ => {}
        }
    }
    fields
}

fn answer(block: &Block) -> Option<Box<RawValue>> {
    let Block::Result { id, .. } = block else { return None };
    let text = block.answer_text();
    Some(raw(&json!({ "role": "tool", "tool_call_id": id, "content": text })))
}

/// Returns the tools that calls name, by the ids of the calls.
fn tools(items: &[Item]) -> BTreeMap<String, String> {
    let mut tools = BTreeMap::new();
    for item in items.iter().filter(|item| item.has_calls() && item.role() != Role::System) {
        let message = item.message().into_owned();
        tools.extend(message.blocks.into_iter().filter_map(|block| match block {
            Block::Call { id, name, .. } => Some((id, name)),
            _ => None,
        }));
    }
    tools
}

/// Gives the first call of a message a signature if it has none, because Gemini refuses a call without one.
fn signed(mut message: Cow<'_, Message>) -> Cow<'_, Message> {
    let first = message.blocks.iter().position(|block| matches!(block, Block::Call { .. }));
    if let Some(at) = first
        && matches!(message.blocks.get(at), Some(Block::Call { signature: None, .. }))
        && let Some(Block::Call { signature, .. }) = message.to_mut().blocks.get_mut(at)
    {
        *signature = Some(UNSIGNED.to_owned());
    }
    message
}

fn gemini(block: &Block, tools: &BTreeMap<String, String>) -> Box<RawValue> {
    match block {
        Block::Text(text) => raw(&json!({ "text": text })),
        Block::Call { id, name, input, signature } => {
            let call = [("id", raw(id)), ("name", raw(name)), ("args", verbatim(input))];
            let mut fields = vec![("functionCall", object(&call))];
            if let Some(signature) = signature {
                fields.push(("thoughtSignature", raw(signature)));
            }
            object(&fields)
        }
        Block::Result { id, name, error, .. } => {
            let tool = tools.get(id).or(name.as_ref()).map_or("unknown", String::as_str);
            let key = if *error { "error" } else { "output" };
            let response = json!({ key: block.answer_text() });
            raw(&json!({ "functionResponse": { "id": id, "name": tool, "response": response } }))
        }
        Block::Image(image) => raw(&match &image.source {
            Source::Data(data) => {
                json!({ "inlineData": { "mimeType": media(image), "data": data } })
            }
            Source::Url(url) => {
                json!({ "fileData": { "mimeType": media(image), "fileUri": url } })
            }
            Source::Elsewhere => Value::Null,
        }),
        Block::Thinking(thinking) => raw(&json!({ "text": thinking.text, "thought": true })),
        Block::Other { json, .. } => verbatim(json),
    }
}
