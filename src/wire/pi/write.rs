//! Writing: entries as pi itself writes them.

use serde_json::{Value, json};

use crate::{
    model::Message,
    wire::{Draft, Invalid, Setting, Speaker, fields::line},
};

/// The type under which extensions keep what only they read, and what undertext says there.
pub(super) const CUSTOM_TYPE: &str = "undertext";

/// Writes an entry.
pub(super) fn record(draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
    let millis = setting.time.0;
    let words = |words: &str| json!([{ "type": "text", "text": words }]);
    let message = match draft {
        Draft::Message(Speaker::User, said) => {
            json!({ "role": "user", "content": words(said), "timestamp": millis })
        }
        Draft::Message(Speaker::Assistant, said) => assistant(&words(said), millis, None),
        Draft::Answer(said) => assistant(&words(&said.text()), millis, Some(said)),
        Draft::Message(Speaker::System, said) => {
            json!({ "role": "system", "content": said, "timestamp": millis })
        }
        Draft::Note(said) => {
            let fields = json!({ "customType": CUSTOM_TYPE, "content": said, "display": true });
            return Ok(line(&entry("custom_message", fields, setting)));
        }
        Draft::Call { id, name, input } => {
            let arguments: Value = serde_json::from_str(input)
                .map_err(|error| Invalid(format!("the tool's input is not JSON: {error}")))?;
            assistant(
                &json!([{ "type": "toolCall", "id": id, "name": name, "arguments": arguments }]),
                millis,
                None,
            )
        }
        Draft::Result { id, output, error } => json!({
            "role": "toolResult",
            "toolCallId": id,
            "toolName": "unknown",
            "content": words(error.as_ref().filter(|_| output.is_empty()).unwrap_or(output)),
            "isError": error.is_some(),
            "timestamp": millis,
        }),
        Draft::Record(_) => return Err(Invalid::as_it_is()),
    };
    Ok(line(&entry("message", json!({ "message": message }), setting)))
}

/// Returns an entry of a type, with its fields.
pub(super) fn entry(kind: &str, fields: Value, setting: &Setting) -> Value {
    let mut record = json!({
        "type": kind,
        "id": setting.uuid,
        "parentId": setting.parent,
        "timestamp": setting.time.to_string(),
    });
    if let (Value::Object(record), Value::Object(fields)) = (&mut record, fields) {
        record.extend(fields);
    }
    record
}

/// Returns an assistant's message with every field that pi reads from one.
pub(super) fn assistant(content: &Value, millis: i64, said: Option<&Message>) -> Value {
    let model = said.and_then(|said| said.model.as_deref()).unwrap_or(CUSTOM_TYPE);
    let used = said.and_then(|said| said.usage).unwrap_or_default();
    let total = [used.input, used.output, used.cache_read, used.cache_write].iter().sum::<u64>();
    json!({
        "role": "assistant",
        "content": content,
        "api": CUSTOM_TYPE,
        "provider": CUSTOM_TYPE,
        "model": model,
        "usage": {
            "input": used.input, "output": used.output,
            "cacheRead": used.cache_read, "cacheWrite": used.cache_write, "totalTokens": total,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
        },
        "stopReason": "stop",
        "timestamp": millis,
    })
}
