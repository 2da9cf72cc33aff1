//! Writes entries exactly as pi does.

use serde_json::{Map, Value, json};

use super::read::{USAGE, linked, words};
use crate::{
    json::Raw,
    model::{Block, Message, Stop, Usage},
    wire::{
        Draft, Invalid, Setting, Speaker,
        fields::{self, line, text},
        write::with_error,
    },
};

/// The type of entries that only extensions read. undertext writes its own entries with it.
pub(super) const CUSTOM_TYPE: &str = "undertext";

/// Writes an entry.
pub(super) fn record(draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
    let millis = setting.time.0;
    let words = |words: &str| json!([{ "type": "text", "text": words }]);
    let message = match draft {
        Draft::Message(Speaker::User, said) => {
            json!({ "role": "user", "content": words(said), "timestamp": millis })
        }
        Draft::Message(Speaker::Assistant, said) => assistant(&words(said), setting, None),
        Draft::Answer(said) => assistant(&answered(said)?, setting, Some(said)),
        Draft::Message(Speaker::System, said) => {
            json!({ "role": "system", "content": said, "timestamp": millis })
        }
        Draft::Note(said) => {
            let fields = json!({ "customType": CUSTOM_TYPE, "content": said, "display": true });
            return Ok(line(&entry("custom_message", fields, setting)));
        }
        Draft::Call { id, name, input } => {
            assistant(&json!([call(id, name, input)?]), setting, None)
        }
        Draft::Result { id, output, error } => json!({
            "role": "toolResult",
            "toolCallId": id,
            "toolName": setting.tool.as_deref().unwrap_or("unknown"),
            "content": words(&with_error(output, error.as_deref())),
            "isError": error.is_some(),
            "timestamp": millis,
        }),
        Draft::Checkpoint(_) | Draft::Summary(_) => return Err(Invalid::untold()),
        Draft::Record(_) => return Err(Invalid::as_it_is("pi")),
    };
    Ok(line(&entry("message", json!({ "message": message }), setting)))
}

/// The system prompt, accumulated as pi does from all system messages: text is appended, sections and tools are set by name.
#[derive(Default)]
pub(super) struct System {
    words: Vec<String>,
    sections: Map<String, Value>,
    tools: Map<String, Value>,
    is_said: bool,
}

impl System {
    /// Adds a line, if it is a system message or a compaction with the whole prompt.
    pub(super) fn see(&mut self, line: &[u8]) {
        let Some(record) = Raw::object(line) else { return };
        let message = match text(record, "type").as_deref() {
            Some("compaction") => record.get("systemMessage"),
            _ => record.get("message"),
        };
        let is_system = |message: &Raw<'_>| text(*message, "role").as_deref() == Some("system");
        let Some(message) = message.filter(is_system) else { return };
        self.is_said = true;
        self.words.extend(Some(words(message)).filter(|words| !words.is_empty()));
        let read = |key| {
            let field = message.get(key).map(Raw::bytes).unwrap_or_default();
            serde_json::from_slice::<Value>(field).unwrap_or_default()
        };
        if let Value::Object(sections) = read("sections") {
            set(&mut self.sections, sections);
        }
        for (key, is_there) in [("toolsRemoved", false), ("toolsAdded", true)] {
            let Value::Array(tools) = read(key) else { continue };
            let named = tools.into_iter().filter_map(|tool| {
                let name = tool.get("name")?.as_str()?.to_owned();
                Some((name, if is_there { tool } else { Value::Null }))
            });
            set(&mut self.tools, named);
        }
    }

    /// Returns a single message with the whole prompt; None if there was no system message.
    pub(super) fn message(self, time: Value) -> Option<Value> {
        let mut message = json!({ "role": "system", "content": self.words.join("\n\n") });
        let fields = message.as_object_mut().filter(|_| self.is_said)?;
        if !self.sections.is_empty() {
            fields.insert("sections".to_owned(), self.sections.into());
        }
        if !self.tools.is_empty() {
            let tools: Vec<Value> = self.tools.into_iter().map(|(_, tool)| tool).collect();
            fields.insert("toolsAdded".to_owned(), tools.into());
        }
        fields.insert("timestamp".to_owned(), time);
        Some(message)
    }
}

/// Sets values by name. A null removes the value of that name.
fn set(values: &mut Map<String, Value>, new: impl IntoIterator<Item = (String, Value)>) {
    for (name, value) in new {
        if value.is_null() {
            values.shift_remove(&name);
        } else {
            values.insert(name, value);
        }
    }
}

/// Returns an entry of a type, with its fields.
pub(super) fn entry(kind: &str, fields: Value, setting: &Setting) -> Value {
    let time = setting.time.to_string();
    let mut record = if setting.is_nameless {
        json!({ "type": kind, "timestamp": time })
    } else {
        let parent = setting.parent.as_deref().map(linked);
        json!({ "type": kind, "id": setting.uuid, "parentId": parent, "timestamp": time })
    };
    if let (Value::Object(record), Value::Object(fields)) = (&mut record, fields) {
        record.extend(fields);
    }
    record
}

/// Returns the content of a model's answer: its text and its calls in one message, because pi inserts a result of its own
/// after each message with a call that has no result before the next message.
fn answered(said: &Message) -> Result<Value, Invalid> {
    let words = said.text();
    let is_silent = words.is_empty();
    let mut content = vec![json!({ "type": "text", "text": words })];
    for block in &said.blocks {
        if let Block::Call { id, name, input, .. } = block {
            content.push(call(id, name, input)?);
        }
    }
    if is_silent && content.len() > 1 {
        content.remove(0);
    }
    Ok(content.into())
}

fn call(id: &str, name: &str, input: &str) -> Result<Value, Invalid> {
    let arguments: Value = serde_json::from_str(input).map_err(|error| Invalid::input(&error))?;
    Ok(json!({ "type": "toolCall", "id": id, "name": name, "arguments": arguments }))
}

/// Returns an assistant message with every field that pi reads.
///
/// pi continues with the model that the last answer names, and computes the context size from that answer's usage. Both are
/// copied from the session's last answer.
fn assistant(content: &Value, setting: &Setting, said: Option<&Message>) -> Value {
    let nearby = setting.nearby.as_deref().and_then(Raw::object);
    let last = nearby.map(|record| record.get("message").unwrap_or(record));
    let of_last = |key: &str| last.and_then(|last| text(last, key));
    let answered = said.and_then(|said| said.model.clone());
    let model = of_last("model").or_else(|| of_last("modelId")).or_else(|| answered.clone());
    let own = || CUSTOM_TYPE.to_owned();
    let used = said.and_then(|said| said.usage);
    let Usage { input, output, cache_read, cache_write } = used.unwrap_or_default();
    let total = match used {
        Some(used) => used.total(),
        None => context_tokens(content, setting, last),
    };
    let is_call = |block: &Value| block.get("type").is_some_and(|kind| kind == "toolCall");
    let has_calls = content.as_array().is_some_and(|blocks| blocks.iter().any(is_call));
    let stop = match said.and_then(|said| said.stop) {
        _ if has_calls => "toolUse",
        Some(Stop::Length) => "length",
        _ => "stop",
    };
    let mut message = json!({
        "role": "assistant",
        "content": content,
        "api": of_last("api").unwrap_or_else(own),
        "provider": of_last("provider").unwrap_or_else(own),
        "model": model.clone().unwrap_or_else(own),
        "usage": {
            "input": input, "output": output,
            "cacheRead": cache_read, "cacheWrite": cache_write, "totalTokens": total,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
        },
        "stopReason": stop,
        "timestamp": setting.time.0,
    });
    let by = answered.filter(|by| model.as_ref() != Some(by));
    if let (Value::Object(fields), Some(by)) = (&mut message, by) {
        fields.insert("responseModel".to_owned(), by.into());
    }
    message
}

/// Returns the size of the context in tokens including an answer without usage: the size according to the last answer plus a
/// quarter of the bytes since.
fn context_tokens(content: &Value, setting: &Setting, last: Option<Raw<'_>>) -> u64 {
    let usage = last.and_then(|last| last.get("usage")).filter(|_| setting.since.is_some());
    let told = usage.map_or(0, |usage| {
        let total = usage.get("totalTokens").and_then(Raw::u64).filter(|total| *total > 0);
        total.unwrap_or_else(|| fields::usage(usage, USAGE).total())
    });
    let bytes = content.to_string().len() as u64 + setting.since.unwrap_or_default();
    told.saturating_add(bytes.div_ceil(4))
}
