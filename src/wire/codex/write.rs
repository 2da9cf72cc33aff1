//! Writing: items in envelopes, as the program itself writes them.

use serde_json::{Value, json};

use crate::{
    json::Raw,
    wire::{Draft, Invalid, Setting, Speaker, fields::line},
};

/// The field by which a note of undertext is known among the user's messages; Codex does not read it.
pub(super) const NOTE: &str = "undertext";

/// Writes a record.
pub(super) fn record(draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
    let message = |role: &str, kind: &str, said: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": said }] });
    let item = match draft {
        Draft::Message(Speaker::User, said) => message("user", "input_text", said),
        Draft::Message(Speaker::System, said) => message("developer", "input_text", said),
        Draft::Message(Speaker::Assistant, said) => message("assistant", "output_text", said),
        Draft::Answer(said) => message("assistant", "output_text", &said.text()),
        Draft::Note(said) => {
            let mut record =
                envelope("response_item", &message("user", "input_text", said), setting);
            if let Value::Object(fields) = &mut record {
                fields.insert(NOTE.into(), json!("note"));
            }
            return Ok(line(&record));
        }
        Draft::Call { id, name, input } => {
            if let Err(error) = serde_json::from_str::<Value>(input) {
                return Err(Invalid(format!("the tool's input is not JSON: {error}")));
            }
            json!({ "type": "function_call", "name": name, "arguments": input, "call_id": id })
        }
        Draft::Result { id, output, error } => {
            let output = error.as_ref().filter(|_| output.is_empty()).unwrap_or(output);
            json!({ "type": "function_call_output", "call_id": id, "output": output })
        }
        Draft::Record(_) => return Err(Invalid::as_it_is()),
    };
    Ok(line(&envelope("response_item", &item, setting)))
}

/// Returns a record of a type with its payload.
pub(super) fn envelope(kind: &str, payload: &Value, setting: &Setting) -> Value {
    let mut record = json!({ "timestamp": setting.time.to_string() });
    if let Value::Object(fields) = &mut record {
        let last = setting.nearby.as_deref().and_then(ordinal);
        fields.extend(last.map(|last| ("ordinal".to_owned(), json!(last.saturating_add(1)))));
        fields.insert("type".into(), json!(kind));
        fields.insert("payload".into(), payload.clone());
    }
    record
}

/// Returns the number of a record in a file that counts them.
pub(super) fn ordinal(line: &[u8]) -> Option<u64> {
    Raw::object(line)?.get("ordinal")?.u64()
}
