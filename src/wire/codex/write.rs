//! Writes items in envelopes as the program does, each within a task.
//!
//! ```text
//! task_started  user  user_message  ..  task_complete       in a file that numbers its records: item_completed
//! ```
//!
//! A rollback drops whole tasks with the histories in them, and Codex lists a turn by its events.

use serde_json::{Value, json};

use super::{
    hint::TURN,
    read::{Part, item_message, part, reading},
};
use crate::{
    json::{self, Raw},
    model::{Kind, Role},
    wire::{
        Draft, Framed, Invalid, Setting, Speaker,
        fields::{line, text},
        write::with_error,
    },
};

/// The field that marks a note of undertext among the user's messages. Codex does not read it.
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
                return Err(Invalid::input(&error));
            }
            json!({ "type": "function_call", "name": name, "arguments": input, "call_id": id })
        }
        Draft::Result { id, output, error } => {
            answer(id, &with_error(output, error.as_deref()), setting)?
        }
        Draft::Checkpoint(_) | Draft::Summary(_) => return Err(Invalid::untold()),
        Draft::Record(_) => return Err(Invalid::as_it_is("Codex")),
    };
    Ok(line(&envelope("response_item", &item, setting)))
}

/// Returns the item that answers a call. Each kind of call has its own kind of result; Codex ignores any other.
fn answer(id: &str, output: &str, setting: &Setting) -> Result<Value, Invalid> {
    let call = setting.call.as_deref().and_then(Raw::object).and_then(|record| {
        let Part::Item(item) = part(record) else { return None };
        Some(item)
    });
    let class = call.and_then(|call| text(call, "type"));
    Ok(match class.as_deref() {
        Some("custom_tool_call") => {
            json!({ "type": "custom_tool_call_output", "call_id": id, "output": output })
        }
        Some("tool_search_call") => {
            let tools: Vec<Value> = serde_json::from_str(output).map_err(|_| {
                Invalid("a search for tools is answered with a list of them, as JSON".to_owned())
            })?;
            let execution = call.and_then(|call| text(call, "execution")).unwrap_or_default();
            json!({ "type": "tool_search_output", "call_id": id, "status": "completed", "execution": execution, "tools": tools })
        }
        _ => json!({ "type": "function_call_output", "call_id": id, "output": output }),
    })
}

/// Lines to append to a file, each with the ordinal it will have there.
pub(super) struct Lines {
    setting: Setting,
    /// The id of the last started task, and whether it is open.
    task: (String, bool),
    framed: Vec<Framed>,
}

impl Lines {
    pub(super) fn behind(setting: &Setting) -> Self {
        let task = (setting.uuid.clone(), false);
        Self { setting: setting.clone(), task, framed: Vec::new() }
    }

    /// Returns the lines.
    pub(super) fn into_lines(self) -> Vec<Vec<u8>> {
        self.framed.into_iter().map(|framed| framed.line).collect()
    }

    /// Adds a line as it is, but for its number.
    pub(super) fn add(&mut self, line: Vec<u8>) {
        let line = self.numbered(line);
        self.framed.push(Framed { line, is_asked: false });
    }

    /// Gives the next line its number.
    fn numbered(&mut self, line: Vec<u8>) -> Vec<u8> {
        let last = self.setting.nearby.as_deref().and_then(ordinal);
        let line = match last.map(|last| last.saturating_add(1).to_string()) {
            Some(next) => json::with_field(&line, "ordinal", next.as_bytes()).unwrap_or(line),
            None => line,
        };
        if last.is_some() {
            self.setting.nearby = Some(line.clone());
        }
        line
    }

    /// Adds an event.
    pub(super) fn event(&mut self, payload: &Value) {
        let event = line(&envelope("event_msg", payload, &self.setting));
        self.add(event);
    }

    /// Starts a task.
    pub(super) fn start(&mut self) {
        let n = self.framed.len();
        // Each task of an operation needs its own name.
        self.task =
            (if n == 0 { self.setting.uuid.clone() } else { renamed(&self.setting.uuid, n) }, true);
        self.event(&json!({ "type": "task_started", "turn_id": self.task.0 }));
    }

    /// Completes the task, if one is open.
    pub(super) fn complete(&mut self) {
        if std::mem::take(&mut self.task.1) {
            self.event(&json!({ "type": "task_complete", "turn_id": self.task.0, "last_agent_message": null }));
        }
    }

    /// Adds a note in a task of its own.
    pub(super) fn note(&mut self, words: &str, setting: &Setting) -> Result<(), Invalid> {
        let note = record(&Draft::Note(words.to_owned()), setting)?;
        self.start();
        self.say(note);
        self.complete();
        Ok(())
    }

    /// Adds a record of the conversation with the event that Codex lists.
    fn say(&mut self, record: Vec<u8>) {
        let message = Raw::object(&record).and_then(|record| {
            let Part::Item(item) = part(record) else { return None };
            let is_message =
                item.get("type").is_some_and(|kind| kind.text().as_deref() == Some("message"));
            is_message.then(|| item_message(item, None))?
        });
        let listed = message.and_then(|message| self.listed(message.role, &message.text()));
        let line = self.numbered(record);
        self.framed.push(Framed { line, is_asked: true });
        if let Some(event) = listed {
            self.event(&event);
        }
    }

    /// Returns the event that Codex lists for a message.
    fn listed(&self, role: Role, words: &str) -> Option<Value> {
        let (legacy, kind, content) = match role {
            Role::User => (
                "user_message",
                "UserMessage",
                json!({ "type": "text", "text": words, "text_elements": [] }),
            ),
            Role::Assistant => {
                ("agent_message", "AgentMessage", json!({ "type": "Text", "text": words }))
            }
            Role::System | Role::Tool => return None,
        };
        if self.setting.nearby.as_deref().and_then(ordinal).is_none() {
            let mut event = json!({ "type": legacy, "message": words });
            if let (Role::User, Value::Object(fields)) = (role, &mut event) {
                fields.extend(
                    ["images", "local_images", "text_elements"]
                        .map(|key| (key.to_owned(), json!([]))),
                );
            }
            return Some(event);
        }
        let id = renamed(&self.setting.uuid, self.framed.len());
        let item = json!({ "type": kind, "id": id, "content": [content] });
        Some(
            json!({ "type": "item_completed", "thread_id": self.setting.session, "turn_id": self.task.0, "item": item }),
        )
    }
}

/// Returns a name derived from that of an operation by the number of a line.
fn renamed(uuid: &str, n: usize) -> String {
    let (rest, last) = uuid.split_at_checked(uuid.len().saturating_sub(4)).unwrap_or((uuid, ""));
    let last = u16::from_str_radix(last, 16)
        .unwrap_or(0)
        .wrapping_add(u16::try_from(n % 65_536).unwrap_or(0));
    format!("{rest}{last:04x}")
}

/// Returns records with the events of their turns: each message of the user starts a task.
pub(super) fn turns(records: Vec<Vec<u8>>, setting: &Setting) -> Vec<Framed> {
    let mut lines = Lines::behind(setting);
    let mut is_begun = false;
    for record in records {
        let (kind, flags) = Raw::object(&record).map_or((Kind::Opaque, 0), |record| {
            let (kind, flags, _) = reading(part(record));
            (kind, flags)
        });
        let is_turn = kind.is_conversation() && flags & TURN != 0;
        if is_turn && is_begun {
            lines.complete();
        }
        if !lines.task.1 {
            lines.start();
            is_begun = false;
        }
        is_begun |= kind != Kind::System;
        lines.say(record);
    }
    lines.complete();
    lines.framed
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

/// Returns the ordinal of a record, if the file numbers its records.
pub(super) fn ordinal(line: &[u8]) -> Option<u64> {
    Raw::object(line)?.get("ordinal")?.u64()
}
