//! Kimi CLI's format: `context.jsonl`, what the model sees, in order.
//!
//! ```text
//! {"role": "_system_prompt", "content"}   the last one wins
//! {"role": "_checkpoint", "id"}           numbered by the agent; a revert gives the number out again
//! {"role": "_usage", "token_count"}
//! {"role": user|assistant|tool|system, name?, content, tool_calls?, tool_call_id?}
//! ```
//!
//! Records have no ids; the whole file is the path. A revert, a D-Mail and a compaction each rotate the file: an older
//! state is another file, so nothing branches here and no way leads back by appending.
//!
//! A hint is empty, or one byte that marks a system prompt.

#![deny(clippy::indexing_slicing)]

use serde_json::{Value, json};

use crate::{
    model::{
        Block, Image, Kind, Message, Role, Thinking,
        json::{self, Raw},
    },
    wire::{
        Draft, Envelope, Failure, Format, Graph, Invalid, Link, Path, Setting, line, other, shown,
        string, text,
    },
};

/// The format of Kimi CLI.
#[derive(Clone, Copy, Debug)]
pub struct Kimi;

/// The file that the agent reads; those that it rotated have a number.
const LIVE: &str = "context.jsonl";

/// The hint of a system prompt, of which only the last counts.
const PROMPT: u8 = 1;

/// How the agent begins what it says in the user's place.
const NOTE: [&str; 2] = ["<system>", "<system-reminder>"];

/// How it begins the summary that follows a compaction.
const SUMMARY: &str = "<system>Previous context has been compacted";

impl Format for Kimi {
    fn name(&self) -> &'static str {
        "kimi"
    }

    fn knows(&self, record: Raw<'_>) -> bool {
        let has = |key| record.get(key).is_some();
        match text(record, "role").as_deref() {
            Some("_system_prompt" | "_checkpoint" | "_usage") => true,
            Some("user" | "assistant" | "tool" | "system") => {
                has("content") && !has("type") && !has("uuid")
            }
            _ => false,
        }
    }

    fn session(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    /// The folder of the file, behind the session's if it is a sub-agent's.
    fn session_of(
        &self,
        file: &std::path::Path,
        _records: &[Raw<'_>],
        _mentions: &dyn Fn(&[u8]) -> bool,
    ) -> Option<String> {
        let name = file.file_name()?.to_str()?;
        if name != LIVE && self.rotation(name).is_none() {
            return None;
        }
        let word = |path: Option<&std::path::Path>| {
            Some(path?.file_name()?.to_string_lossy().into_owned())
        };
        let folder = file.parent()?;
        let id = word(Some(folder))?;
        match folder.parent() {
            Some(above) if above.ends_with("subagents") => {
                Some(format!("{}/{id}", word(above.parent())?))
            }
            _ => Some(id),
        }
    }

    fn rotation(&self, name: &str) -> Option<u64> {
        name.strip_prefix("context_")?.strip_suffix(".jsonl")?.parse().ok()
    }

    fn folder(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    fn envelope(&self, record: Raw<'_>) -> Envelope {
        let [role, content] = record.pick(["role", "content"]);
        let role = role.and_then(Raw::text);
        let kind = match role.as_deref() {
            Some("user") => {
                let words = content.and_then(first_words).unwrap_or_default();
                let words = words.trim_start();
                if words.starts_with(SUMMARY) {
                    Kind::Summary
                } else if NOTE.iter().any(|tag| words.starts_with(tag)) {
                    Kind::Note
                } else {
                    Kind::User
                }
            }
            Some("assistant") => Kind::Assistant,
            Some("tool") => Kind::Result,
            Some("system" | "_system_prompt") => Kind::System,
            _ => Kind::Meta,
        };
        let is_prompt = role.as_deref() == Some("_system_prompt");
        let hint = if is_prompt { vec![PROMPT] } else { Vec::new() };
        Envelope { kind, name: None, parent: Link::Before, time: None, hint }
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        message(record).into_iter().collect()
    }

    fn checkpoint(&self, record: Raw<'_>) -> Option<String> {
        (text(record, "role").as_deref() == Some("_checkpoint"))
            .then(|| record.get("id").map(shown))?
    }

    fn head(&self, graph: &dyn Graph) -> Result<Option<u64>, Failure> {
        for place in (0..graph.len()).rev() {
            if let Some(entry) = graph.at(place)?
                && graph.record(entry)?.kind != Kind::Opaque
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn path(&self, graph: &dyn Graph, head: u64, limit: usize) -> Result<Path, Failure> {
        let mut entries = Vec::new();
        let end = graph.place(head)?.map_or(0, |place| place + 1);
        for place in (0..end).rev() {
            if entries.len() >= limit {
                break;
            }
            if let Some(entry) = graph.at(place)?
                && graph.record(entry)?.kind != Kind::Opaque
            {
                entries.push(entry);
            }
        }
        entries.reverse();
        Ok(Path { entries, repairs: Vec::new() })
    }

    fn context(&self, graph: &dyn Graph, path: &[u64]) -> Result<Vec<u64>, Failure> {
        let mut context = Vec::new();
        let mut prompt = None;
        for &entry in path {
            let record = graph.record(entry)?;
            if record.hint.first() == Some(&PROMPT) {
                prompt = Some(entry);
            } else if !matches!(record.kind, Kind::Meta | Kind::Opaque) {
                context.push(entry);
            }
        }
        Ok(prompt.into_iter().chain(context).collect())
    }

    fn leaves(&self, _graph: &dyn Graph) -> Result<Vec<u64>, Failure> {
        Ok(Vec::new())
    }

    fn write(&self, draft: &Draft, _setting: &Setting) -> Result<Vec<u8>, Invalid> {
        Ok(line(&match draft {
            Draft::Message(role @ (Role::User | Role::Assistant | Role::System), said) => {
                json!({ "role": role.as_str(), "content": said })
            }
            Draft::Message(Role::Tool, _) => {
                return Err(Invalid("a tool's answer needs the id of its call".into()));
            }
            Draft::Note(said) => {
                json!({ "role": "user", "content": format!("<system>{said}</system>") })
            }
            Draft::Call { id, name, input } => {
                if let Err(error) = serde_json::from_str::<Value>(input) {
                    return Err(Invalid(format!("the tool's input is not JSON: {error}")));
                }
                let function = json!({ "name": name, "arguments": input });
                json!({
                    "role": "assistant",
                    "content": [],
                    "tool_calls": [{ "type": "function", "id": id, "function": function }],
                })
            }
            Draft::Result { id, output, error } => {
                let content = match error {
                    Some(error) => format!("<system>ERROR: {error}</system>{output}"),
                    None => output.clone(),
                };
                json!({ "role": "tool", "content": content, "tool_call_id": id })
            }
            Draft::Record(_) => {
                return Err(Invalid(
                    "records can be written as they are to native sessions only".into(),
                ));
            }
        }))
    }
}

/// Returns the text with which a message's content begins.
fn first_words(content: Raw<'_>) -> Option<String> {
    if content.kind() == json::Kind::Array {
        return content.items().find_map(|part| text(part, "text"));
    }
    string(Some(content))
}

fn message(record: Raw<'_>) -> Option<Message> {
    let role = match text(record, "role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        "system" | "_system_prompt" => Role::System,
        _ => return None,
    };
    let mut blocks = record.get("content").map(content).unwrap_or_default();
    if role == Role::Tool {
        // A tool that failed says so in the first words of its answer; nothing else in the record does.
        let mut texts = blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text),
            _ => None,
        });
        let error = texts.next().is_some_and(|first| first.starts_with("<system>ERROR"));
        let id = text(record, "tool_call_id").unwrap_or_default();
        blocks = vec![Block::Result { id, name: text(record, "name"), blocks, error }];
    }
    let is_summary = role == Role::User
        && matches!(blocks.first(), Some(Block::Text(text)) if text.trim_start().starts_with(SUMMARY));
    for call in record.get("tool_calls").into_iter().flat_map(Raw::items) {
        let function = call.get("function");
        blocks.push(Block::Call {
            id: text(call, "id").unwrap_or_default(),
            name: function.and_then(|function| text(function, "name")).unwrap_or_default(),
            input: function
                .and_then(|function| function.get("arguments"))
                .map(shown)
                .unwrap_or_default(),
            signature: None,
        });
    }
    Some(Message { is_summary, ..Message::new(role, blocks) })
}

fn content(content: Raw<'_>) -> Vec<Block> {
    if content.is_null() {
        return Vec::new();
    }
    if content.kind() != json::Kind::Array {
        return vec![Block::Text(shown(content))];
    }
    let block = |part: Raw<'_>| match text(part, "type").as_deref() {
        Some("text") => Block::Text(text(part, "text").unwrap_or_default()),
        Some("think") => Block::Thinking(Thinking {
            text: text(part, "think").unwrap_or_default(),
            signature: text(part, "encrypted"),
            is_redacted: false,
        }),
        Some("image_url") => {
            let url = part.get("image_url").and_then(|image| text(image, "url"));
            Block::Image(Image::at(&url.unwrap_or_default(), part.bytes().len()))
        }
        _ => other(part),
    };
    content.items().map(block).collect()
}
