//! Writes records exactly as the program does.

use serde_json::{Map, Value, json};

use super::{
    Claude, head, marks,
    read::{self, NO_MODEL},
};
use crate::{
    json::{self, Raw},
    model::{Kind, Message, Stop},
    wire::{
        Back, Draft, Failure, Graph, Invalid, Setting, Speaker, Write, anthropic,
        compaction::{Compaction, Lines},
        fields::text,
        write,
    },
};

impl Write for Claude {
    fn own_words(&self, text: &str) -> [usize; 2] {
        marks::own_words(text)
    }

    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
        match draft {
            Draft::Message(Speaker::User, words) => Ok(link("user", &asked(words), setting)),
            Draft::Note(words) => {
                let line = link("user", &asked(words), setting);
                json::with_field(&line, "subtype", b"\"note\"")
                    .ok_or_else(|| Invalid("it is not a JSON object".into()))
            }
            Draft::Message(Speaker::Assistant, words) => Ok(link(
                "assistant",
                &answer(&json!({ "type": "text", "text": words }), None, setting),
                setting,
            )),
            Draft::Answer(said) => {
                let block = match write::only_call(said) {
                    Some(([id, name, input], _)) => call_block(id, name, input)?,
                    None => json!({ "type": "text", "text": said.text() }),
                };
                Ok(link("assistant", &answer(&block, Some(said), setting), setting))
            }
            Draft::Message(Speaker::System, _) => {
                Err(Invalid("Claude Code has no message of this role".into()))
            }
            Draft::Call { id, name, input } => {
                let block = call_block(id, name, input)?;
                let said =
                    more_of(&block, setting).unwrap_or_else(|| answer(&block, None, setting));
                Ok(link("assistant", &said, setting))
            }
            Draft::Result { id, output, error } => {
                let words = write::with_error(output, error.as_deref());
                let block = json!({
                    "tool_use_id": id, "type": "tool_result", "content": words, "is_error": error.is_some(),
                });
                Ok(link("user", &json!({ "role": "user", "content": [block] }), setting))
            }
            Draft::Checkpoint(_) | Draft::Summary(_) => Err(Invalid::untold()),
            Draft::Record(line) => complete(line, setting),
        }
    }

    fn branch(
        &self,
        graph: &dyn Graph,
        back: &Back<'_>,
        setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        if let Some(to) = back.to
            && (back.note.is_some() || read::is_message(graph.record(to)?.kind))
            && !head::is_in_reach(graph, to)?
        {
            return Ok(None);
        }
        // The agent can resume only at a message, and no message directly follows a boundary yet.
        let mut leaf = None;
        for &entry in back.path.iter().rev() {
            let kind = graph.record(entry)?.kind;
            if kind == Kind::Boundary {
                break;
            }
            if read::is_message(kind) {
                if !head::is_in_reach(graph, entry)? {
                    return Ok(None);
                }
                let line = graph.line(entry)?;
                leaf = Raw::object(&line).and_then(|record| text(record, "uuid"));
                break;
            }
        }
        let mut lines = Vec::new();
        let mut pin = Map::new();
        pin.insert("type".into(), json!("last-prompt"));
        if let Some(note) = back.note {
            lines.push(self.write(&Draft::Note(note.to_owned()), setting)?);
            pin.insert("lastPrompt".into(), json!(note.chars().take(200).collect::<String>()));
            pin.insert("leafUuid".into(), json!(setting.uuid));
        } else {
            pin.insert("leafUuid".into(), json!(leaf));
        }
        pin.insert("explicit".into(), json!(true));
        pin.insert("sessionId".into(), json!(setting.session));
        lines.push(Value::Object(pin).to_string().into_bytes());
        Ok(Some(lines))
    }

    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        [first, second]: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        let mut kept = Vec::new();
        for said in compaction.system.iter().chain(compaction.kept) {
            let line = graph.line(said.entry)?;
            let Some(name) = Raw::object(&line).and_then(|record| text(record, "uuid")) else {
                return Ok(None);
            };
            kept.push(name);
        }
        let mut fields = compaction.metadata.fields();
        if !kept.is_empty() {
            let messages = json!({ "anchorUuid": second.uuid, "uuids": kept, "allUuids": kept });
            fields.insert("preservedMessages".to_owned(), messages);
        }
        let boundary = json!({
            "parentUuid": null, "logicalParentUuid": first.parent, "isSidechain": false, "type": "system",
            "subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": false,
            "timestamp": first.time.to_string(), "uuid": first.uuid, "level": "info",
            "compactMetadata": fields,
        });
        let said = json!({
            "parentUuid": first.uuid, "isSidechain": false, "type": "user", "message": asked(compaction.summary),
            "isVisibleInTranscriptOnly": true, "isCompactSummary": true, "uuid": second.uuid,
            "timestamp": second.time.to_string(),
        });
        // Without the pin, a resume would continue at the summary, next to the kept messages.
        let pin = json!({
            "type": "last-prompt", "leafUuid": kept.last().unwrap_or(&second.uuid), "explicit": true,
            "sessionId": first.session,
        });
        let with = |record: Value, setting: &Setting| {
            let Value::Object(mut record) = record else { return Vec::new() };
            record.extend(envelope(setting));
            Value::Object(record).to_string().into_bytes()
        };
        let lines = vec![with(boundary, first), with(said, second), pin.to_string().into_bytes()];
        Ok(Some(Lines::More(lines)))
    }
}

fn asked(words: &str) -> Value {
    json!({ "role": "user", "content": words })
}

/// Returns a message of the model with one block: with its metadata, or as the program writes an answer that it made up.
fn answer(block: &Value, said: Option<&Message>, setting: &Setting) -> Value {
    let model = said.and_then(|said| said.model.as_deref()).unwrap_or(NO_MODEL);
    let usage = said.and_then(|said| said.usage).unwrap_or_default();
    let stop = match said.and_then(|said| said.stop) {
        Some(stop @ (Stop::Length | Stop::Paused | Stop::Refused)) => stop,
        _ => Stop::End,
    };
    json!({
        "id": setting.uuid, "type": "message", "role": "assistant", "model": model, "content": [block],
        "stop_reason": stop.word(), "stop_sequence": null, "usage": anthropic::usage(&usage),
    })
}

/// Returns the block of a call.
fn call_block(id: &str, name: &str, input: &str) -> Result<Value, Invalid> {
    let input: Value = serde_json::from_str(input).map_err(|error| Invalid::input(&error))?;
    Ok(json!({ "type": "tool_use", "id": id, "name": name, "input": input }))
}

/// Adds another block to the answer whose record the new one follows, if it follows one: Claude Code writes the blocks of an
/// answer as records with the same message id, and sends a result only to the message directly before it.
fn more_of(block: &Value, setting: &Setting) -> Option<Value> {
    let nearby = Raw::object(setting.nearby.as_deref()?)?;
    let is_answer = text(nearby, "type")? == "assistant"
        && nearby.get("isApiErrorMessage").and_then(Raw::bool) != Some(true)
        && text(nearby, "uuid") == setting.parent;
    let message =
        nearby.get("message").filter(|message| is_answer && text(*message, "id").is_some())?;
    let mut message: Map<String, Value> = serde_json::from_slice(message.bytes()).ok()?;
    message.insert("content".to_owned(), json!([block]));
    Some(message.into())
}

fn link(class: &str, message: &Value, setting: &Setting) -> Vec<u8> {
    let said = json!({
        "parentUuid": setting.parent, "isSidechain": false, "type": class, "message": message,
        "uuid": setting.uuid, "timestamp": setting.time.to_string(),
    });
    let Value::Object(mut record) = said else { return Vec::new() };
    record.extend(envelope(setting));
    Value::Object(record).to_string().into_bytes()
}

/// Returns the fields that every record repeats, copied from the nearby record where it has them.
fn envelope(setting: &Setting) -> Vec<(String, Value)> {
    let nearby = setting.nearby.as_deref().and_then(Raw::object);
    let said = |key| nearby.and_then(|nearby| text(nearby, key));
    let mut fields = vec![
        ("userType", said("userType").or_else(|| Some("external".into()))),
        ("entrypoint", said("entrypoint")),
        ("cwd", said("cwd").or_else(|| Some(setting.folder.clone()))),
        ("sessionId", Some(setting.session.clone())),
        ("version", said("version").or_else(|| Some("2.1.0".into()))),
        ("gitBranch", said("gitBranch").or_else(|| setting.git_branch.clone())),
    ];
    fields.retain(|(_, value)| value.is_some());
    fields.into_iter().map(|(key, value)| (key.to_owned(), json!(value))).collect()
}

/// Fills in the missing fields of a record on the chain. Any other record stays as it is.
fn complete(line: &[u8], setting: &Setting) -> Result<Vec<u8>, Invalid> {
    let (record, class) = write::asked(line)?;
    match class.as_str() {
        "user" | "assistant" => write::check_message(record.get("message"), &class)?,
        "system" | "attachment" | "progress" => {}
        _ => return Ok(line.to_vec()),
    }
    write::check_session(record, setting)?;
    let mut fields = vec![
        ("parentUuid".to_owned(), json!(setting.parent)),
        ("isSidechain".to_owned(), json!(false)),
        ("uuid".to_owned(), json!(setting.uuid)),
        ("timestamp".to_owned(), json!(setting.time.to_string())),
    ];
    fields.extend(envelope(setting));
    write::filled(record, &fields)
}
