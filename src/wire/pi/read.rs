//! Reads an entry into an envelope with its hint, and a message.
//!
//! A hint is a byte of flags and a varint: for a compaction the tag or the index of the first kept entry, for a
//! `context_edit` the tag of its target.
//!
//! A message is read as pi sends it: with the text that pi wraps around a command that the user ran, or around the summary of a
//! branch. The text around the summary of a compaction is a trait of the format.
//!
//! Invariant: nothing here depends on another entry.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;

use super::{Pi, write::System};
use crate::{
    json::{Kind as JsonKind, Raw, with_field},
    model::{
        Block, Image, Kind, Message, NameTag, Record, Role, SentAs, Source, Stop, Thinking,
        Timestamp, put_varint, take_varint,
    },
    wire::{
        Answer, Answers, Earlier, Edited, Envelope, How, Link, Piece, Read, Scene, Telling, Titled,
        Told, Write as _,
        answers::{parts, strings},
        fields::{self, json, other, shown, text},
    },
};

/// The type of a header.
const HEADER_TYPE: &str = "session";

/// It is a header.
pub(super) const HEADER: u8 = 1;
/// It is an entry of v1. Its parent is the entry before it in the file.
pub(super) const CHAINED: u8 = 2;
/// The model sees it. For an entry outside the conversation: it names the session.
pub(super) const SENT: u8 = 4;
/// The number is an index into the parsed lines, not a tag.
pub(super) const INDEX: u8 = 8;
/// It is a `context_edit` that removes its target.
pub(super) const REMOVES: u8 = 16;
/// It edits another entry.
pub(super) const EDIT: u8 = 32;
/// It is the header of a v1 file. When pi opens the file, it numbers the entries and chains them in file order, whatever their
/// parents.
pub(super) const V1: u8 = 64;
/// It names the model.
pub(super) const MODEL: u8 = 128;

/// The text that pi wraps around the summary of a compaction.
pub(super) const COMPACTED: [&str; 2] = [
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
];
/// The text that pi wraps around the summary of a reverted branch.
const LEFT: [&str; 2] = [
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
    "</summary>",
];

/// pi's names for the usage counts.
pub(super) const USAGE: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

impl Read for Pi {
    fn envelope(&self, record: Raw<'_>) -> Envelope {
        let [class, id, parent, time, message, summary] =
            record.pick(["type", "id", "parentId", "timestamp", "message", "summary"]);
        let class = class.and_then(Raw::text).unwrap_or_default();
        let [role, excluded, stop] = message.map_or([None; 3], |message| {
            message.pick(["role", "excludeFromContext", "stopReason"])
        });
        let kind = kind(&class, role, summary);
        let is_header = class == HEADER_TYPE;
        let name = id.and_then(link).filter(|_| !is_header);
        let is_chained = !is_header && name.is_none() && parent.is_none();
        let mut flags = 0;
        let mut number = None;
        if is_header {
            flags |= HEADER;
            if is_of_v1(record) {
                flags |= V1;
            }
        } else if is_chained {
            flags |= CHAINED;
        }
        if kind == Kind::Assistant || class == "model_change" {
            flags |= MODEL;
        }
        let tag = |name: Option<Raw<'_>>| Some(NameTag::of(&name.and_then(link)?).get());
        match kind {
            Kind::Meta if class == "context_edit" => {
                let [replacement, target] = record.pick(["replacement", "targetId"]);
                flags |= EDIT;
                if replacement.is_none_or(Raw::is_null) {
                    flags |= REMOVES;
                }
                number = tag(target);
            }
            Kind::Boundary => {
                let [name, index] = record.pick(["firstKeptEntryId", "firstKeptEntryIndex"]);
                number = tag(name);
                if let Some(index) = index.and_then(Raw::u64) {
                    flags |= INDEX;
                    number = Some(index);
                }
            }
            Kind::Meta if class == "session_info" => flags |= SENT,
            Kind::Meta | Kind::Opaque => {}
            // A command that the user ran only for himself, and an incomplete answer.
            _ if is_true(excluded) => {}
            Kind::Assistant if stop.and_then(Raw::text).is_some_and(|stop| is_broken(&stop)) => {}
            _ => flags |= SENT,
        }
        let mut hint = vec![flags];
        if let Some(number) = number {
            put_varint(&mut hint, number);
        }
        Envelope {
            kind,
            name,
            parent: match parent.filter(|parent| is_true(Some(*parent))).and_then(link) {
                Some(parent) if !is_header => Link::Named(parent),
                _ if is_chained => Link::Before,
                _ => Link::Root,
            },
            time: self::time(time),
            hint,
        }
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        // Taken alone, a message without text of its own must be a change to an earlier one.
        let is_later = record.get("message").is_some_and(|said| words(said).is_empty());
        let place = if is_later { Place::Later } else { Place::First };
        message(record, place).into_iter().collect()
    }

    fn sent(&self, record: Raw<'_>, edits: &[Edited<'_>]) -> Vec<Message> {
        let edited = match edits {
            [Edited::Later] => return Vec::new(),
            [Edited::Content(edit), ..] => edited(record, *edit).or_else(|| folded(record, edits)),
            _ => None,
        };
        let record = edited.as_deref().map_or(Some(record), Raw::object).unwrap_or(record);
        prompt(record).into_iter().chain(message(record, Place::First)).collect()
    }

    /// The last name that the user gave.
    fn titles(&self, record: &Record) -> Option<Titled> {
        let is_name = record.kind == Kind::Meta && hint(record).0 & SENT != 0;
        is_name.then_some(Titled::User)
    }

    fn title(&self, record: Raw<'_>) -> Option<String> {
        text(record, "name")
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        let Some(message) = record.get("message") else { return Answers::default() };
        let is_api = |name: &&str| text(message, "api").is_some_and(|api| api.starts_with(name));
        let said = match text(message, "role").as_deref() {
            Some("toolResult") => parts(message.get("content"), "text"),
            // The output of a command that the user ran is sent like a result, but does not name a call.
            Some("bashExecution") => parts(message.get("output"), "text"),
            // Other providers refuse a call without its reasoning.
            Some("assistant") if ["anthropic", "bedrock", "google"].iter().any(is_api) => {
                return Answers { thinking: message.get("content"), ..Answers::default() };
            }
            _ => return Answers::default(),
        };
        let texts = said.into_iter().filter_map(Piece::new).collect();
        let call = text(message, "toolCallId").unwrap_or_default();
        let beside = strings(message.get("details"));
        Answers { sent: vec![Answer { call, texts }], beside, thinking: None }
    }

    /// Returns what the agent left out, as reported by this entry.
    ///
    /// The suffix shows that `OpenClaw` truncated a text, the details that pi moved one to a file.
    fn earlier(&self, record: Raw<'_>) -> Vec<Earlier> {
        const CUT: &str = "⚠️ [Content truncated";
        const CLEARED: &str = "[compacted: tool output removed to free context]";
        if text(record, "type").as_deref() == Some("compaction") {
            let before = record.get("tokensBefore").and_then(Raw::u64);
            return vec![Earlier { tokens: (before, None), ..Earlier::new(How::Compacted) }];
        }
        if text(record, "type").as_deref() == Some("context_edit") {
            let is_removal = record.get("replacement").is_none_or(Raw::is_null);
            return vec![Earlier::new(if is_removal { How::Cleared } else { How::Edited })];
        }
        let details = record.get("message").and_then(|message| message.get("details"));
        let file = details.and_then(|details| text(details, "fullOutputPath"));
        let mut found = Vec::new();
        for answer in self.answers(record).sent {
            let call = Some(answer.call).filter(|call| !call.is_empty());
            for words in answer.texts.into_iter().map(Piece::text) {
                let is_cut = words.trim_end().lines().last().is_some_and(|last| last.contains(CUT));
                let how = if is_cut {
                    How::Cut
                } else if words.trim() == CLEARED {
                    How::Cleared
                } else {
                    continue;
                };
                found.push(Earlier { call: call.clone(), ..Earlier::new(how) });
            }
            if let Some(file) = file.clone() {
                found.push(Earlier { call, file: Some(file), ..Earlier::new(How::Filed) });
            }
        }
        found
    }

    fn tells(&self, record: &Record) -> Option<Telling> {
        self.names_model(record).then_some(Telling::Model)
    }

    /// The header, model changes and answers contain these facts.
    fn told(&self, record: Raw<'_>) -> Told {
        let said = record.get("message").unwrap_or(record);
        let model = text(said, "model").or_else(|| text(said, "modelId"));
        let scene = Scene {
            folder: text(record, "cwd"),
            model: model.clone(),
            provider: text(said, "provider"),
            ..Scene::default()
        };
        Told { model, scene, ..Told::default() }
    }
}

/// The prefix of a name that is a number in the file. To pi, the number 1 and the text "1" are two names.
const NUMBER: &str = "number ";

/// Returns the name in a field; None if it contains none.
pub(super) fn link(value: Raw<'_>) -> Option<String> {
    match value.f64() {
        Some(number) => Some(format!("{NUMBER}{number}")),
        None => value.text().map(Cow::into_owned).filter(|name| !name.is_empty()),
    }
}

/// Returns a name as the value of a field.
pub(super) fn linked(name: &str) -> Value {
    let number = name.strip_prefix(NUMBER).and_then(|number| serde_json::from_str(number).ok());
    number.map_or_else(|| name.into(), Value::Number)
}

/// Returns true if a value is truthy in JavaScript.
fn is_true(value: Option<Raw<'_>>) -> bool {
    let Some(value) = value else { return false };
    match value.kind() {
        JsonKind::Null | JsonKind::False => false,
        JsonKind::String => value.inner().is_some_and(|text| !text.is_empty()),
        JsonKind::Number => value.f64() != Some(0.0),
        JsonKind::True | JsonKind::Object | JsonKind::Array => true,
    }
}

/// Returns a summary as JavaScript inserts it into a text.
fn summed(summary: Option<Raw<'_>>) -> String {
    summary.map_or_else(|| "undefined".to_owned(), shown)
}

/// Returns the flags and number of an entry.
pub(super) fn hint(record: &Record) -> (u8, Option<u64>) {
    let Some((&flags, mut rest)) = record.hint.split_first() else { return (0, None) };
    (flags, take_varint(&mut rest))
}

/// Returns true if a header is one of v1. Compares as JavaScript does, which converts other values to numbers.
fn is_of_v1(header: Raw<'_>) -> bool {
    let number = |version: Raw<'_>| match version.kind() {
        JsonKind::Null | JsonKind::True => Some(1.0),
        JsonKind::False => Some(0.0),
        JsonKind::String => match version.text()?.trim() {
            "" => Some(0.0),
            text => text.parse().ok(),
        },
        JsonKind::Number => version.f64(),
        JsonKind::Array | JsonKind::Object => None,
    };
    header.get("version").is_none_or(|version| number(version).is_some_and(|number| number < 2.0))
}

/// Returns true if pi drops an answer with this stop reason.
fn is_broken(stop: &str) -> bool {
    matches!(self::stop(stop), Some(Stop::Aborted | Stop::Error))
}

/// Returns true if a record is a header.
pub(super) fn header(record: Raw<'_>) -> bool {
    text(record, "type").as_deref() == Some(HEADER_TYPE)
}

fn kind(class: &str, role: Option<Raw<'_>>, summary: Option<Raw<'_>>) -> Kind {
    match class {
        "message" => match role.and_then(Raw::text).as_deref() {
            Some("user") => Kind::User,
            Some("assistant") => Kind::Assistant,
            Some("toolResult") => Kind::Result,
            Some("system") => Kind::System,
            _ => Kind::Note,
        },
        "compaction" => Kind::Boundary,
        "custom_message" => Kind::Note,
        // Without a summary nothing is sent.
        "branch_summary" if is_true(summary) => Kind::Note,
        _ => Kind::Meta,
    }
}

/// Where a message of the system is: a later one tells what changes of an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

/// Returns the message of an entry, if it is part of the conversation; one of the system as it is at its place.
fn message(record: Raw<'_>, place: Place) -> Option<Message> {
    let said = |role, blocks| {
        Some(Message { time: time(record.get("timestamp")), ..Message::new(role, blocks) })
    };
    match text(record, "type")?.as_str() {
        "message" => {}
        "compaction" => {
            let words = summed(record.get("summary"));
            let summary = said(Role::User, vec![Block::Text(words)])?;
            return Some(Message { is_summary: true, ..summary });
        }
        "branch_summary" => {
            let summary = record.get("summary").filter(|summary| is_true(Some(*summary)));
            return said(Role::User, vec![left(&summed(Some(summary?)))]);
        }
        "custom_message" => {
            let written = record.get("content").filter(|content| !content.is_null());
            return said(Role::User, written.map(content).unwrap_or_default());
        }
        _ => return None,
    }
    let message = record.get("message")?;
    let written = message.get("content").filter(|content| !content.is_null());
    let mut blocks = written.map(content).unwrap_or_default();
    let role = match text(message, "role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system") => {
            blocks = vec![Block::Text(system(message, place))];
            Role::System
        }
        Some("toolResult") => {
            blocks = vec![Block::Result {
                id: text(message, "toolCallId").unwrap_or_default(),
                name: text(message, "toolName"),
                blocks,
                error: message.get("isError").and_then(Raw::bool) == Some(true),
            }];
            Role::Tool
        }
        Some("bashExecution") => {
            blocks = vec![Block::Text(command(message))];
            Role::User
        }
        Some("branchSummary") => {
            blocks = vec![left(&summed(message.get("summary")))];
            Role::User
        }
        Some("compactionSummary") => {
            blocks = vec![Block::Text(summed(message.get("summary")))];
            Role::User
        }
        _ => Role::User,
    };
    Some(Message {
        time: time(message.get("timestamp")).or_else(|| time(record.get("timestamp"))),
        model: text(message, "model"),
        usage: message.get("usage").map(|used| fields::usage(used, USAGE)),
        stop: text(message, "stopReason").and_then(|word| stop(&word)),
        is_summary: text(message, "role").as_deref() == Some("compactionSummary"),
        ..Message::new(role, blocks)
    })
}

/// Returns the system prompt in a compaction.
fn prompt(record: Raw<'_>) -> Option<Message> {
    let message =
        record.get("systemMessage").filter(|message| message.kind() == JsonKind::Object)?;
    let is_boundary = text(record, "type").as_deref() == Some("compaction");
    is_boundary.then(|| Message {
        time: time(record.get("timestamp")),
        ..Message::new(Role::System, vec![Block::Text(system(message, Place::First))])
    })
}

/// Returns the text of a message of the system: its content, and its sections by their names. A later one tells of each
/// section what becomes of it.
fn system(message: Raw<'_>, place: Place) -> String {
    let mut parts = vec![words(message)];
    let sections = message.get("sections").filter(|sections| sections.kind() == JsonKind::Object);
    // If a name occurs several times, the last section wins, in the place of the first. Names that were overwritten may be equal.
    let mut places = BTreeMap::new();
    for (name, section) in sections.into_iter().flat_map(Raw::fields) {
        let said = if place == Place::Later {
            update(name, section)
        } else {
            section.text().map(Cow::into_owned).unwrap_or_default()
        };
        let at = *places.entry(name).or_insert(parts.len());
        match parts.get_mut(at) {
            Some(part) => *part = said,
            None => parts.push(said),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n")
}

/// Returns what a later system message says about a section. `name` is the raw JSON string without its quotes.
fn update(name: &[u8], section: Raw<'_>) -> String {
    let quoted = [b"\"", name, b"\""].concat();
    let name = Raw::scanned(&quoted).text().unwrap_or_default();
    if section.is_null() {
        format!("Removed system prompt section \"{name}\".")
    } else {
        format!("Updated system prompt section \"{name}\":\n\n{}", shown(section))
    }
}

/// Returns the text of a system message without its sections.
pub(super) fn words(message: Raw<'_>) -> String {
    let said = message.get("content").filter(|content| !content.is_null());
    Message::new(Role::System, said.map(content).unwrap_or_default()).text()
}

/// Returns an entry with its content replaced by an edit. An edit without content leaves nothing.
fn edited(record: Raw<'_>, edit: Raw<'_>) -> Option<Vec<u8>> {
    let content = edit.get("replacement")?.get("content").map_or(&b"[]"[..], Raw::bytes);
    if text(record, "type").as_deref() == Some("custom_message") {
        return with_field(record.bytes(), "content", content);
    }
    let message = record.get("message")?;
    let is_editable = ["user", "assistant", "toolResult", "custom", "hookMessage"]
        .contains(&text(message, "role").unwrap_or_default().as_str());
    let message = is_editable.then(|| with_field(message.bytes(), "content", content))??;
    with_field(record.bytes(), "message", &message)
}

/// Returns a record whose system prompt includes the changes of later records.
fn folded(record: Raw<'_>, later: &[Edited<'_>]) -> Option<Vec<u8>> {
    let mut system = System::default();
    system.see(record.bytes());
    for edit in later {
        if let Edited::Content(later) = edit {
            system.see(later.bytes());
        }
    }
    let key = if text(record, "type")? == "compaction" { "systemMessage" } else { "message" };
    with_field(record.bytes(), key, system.message(Value::Null)?.to_string().as_bytes())
}

/// Returns the summary of a reverted branch, with the text that pi wraps around it.
fn left(summary: &str) -> Block {
    let [before, behind] = LEFT;
    Block::Text([before, summary, behind].concat())
}

/// Returns a command that the user ran, as pi shows it to the model.
fn command(message: Raw<'_>) -> String {
    let command = text(message, "command").unwrap_or_default();
    let output = text(message, "output").filter(|output| !output.is_empty());
    let output = output.map_or_else(|| "(no output)".into(), |said| format!("```\n{said}\n```"));
    let is = |key| is_true(message.get(key));
    let code = message.get("exitCode").filter(|code| !code.is_null()).map(shown);
    let ended = match code.filter(|code| code != "0") {
        _ if is("cancelled") => "\n\n(command cancelled)".to_owned(),
        Some(code) => format!("\n\nCommand exited with code {code}"),
        None => String::new(),
    };
    let file = text(message, "fullOutputPath").filter(|_| is("truncated"));
    let cut = file.map(|file| format!("\n\n[Output truncated. Full output: {file}]"));
    format!("Ran `{command}`\n{output}{ended}{}", cut.unwrap_or_default())
}

/// Parses the stop reason of an answer.
fn stop(word: &str) -> Option<Stop> {
    Some(match word {
        "stop" => Stop::End,
        "length" => Stop::Length,
        "toolUse" => Stop::Calls,
        "aborted" => Stop::Aborted,
        "error" => Stop::Error,
        _ => return None,
    })
}

/// Returns the form of a thought: pi stores the name of its field as its signature, or the item itself.
fn sent_as(signature: Option<&str>) -> SentAs {
    match signature {
        Some("reasoning_content") => SentAs::Content,
        Some("reasoning" | "reasoning_text") => SentAs::Plain,
        Some(item) if item.starts_with('{') => SentAs::Item,
        _ => SentAs::Block,
    }
}

fn content(content: Raw<'_>) -> Vec<Block> {
    if content.kind() != JsonKind::Array {
        return vec![Block::Text(shown(content))];
    }
    let block = |item: Raw<'_>| match text(item, "type").as_deref() {
        Some("text") => Block::Text(text(item, "text").unwrap_or_default()),
        Some("thinking") => Block::Thinking(Thinking {
            text: text(item, "thinking").unwrap_or_default(),
            signature: text(item, "thinkingSignature"),
            is_redacted: item.get("redacted").and_then(Raw::bool) == Some(true),
            sent_as: sent_as(text(item, "thinkingSignature").as_deref()),
        }),
        Some("toolCall") => Block::Call {
            id: text(item, "id").unwrap_or_default(),
            name: text(item, "name").unwrap_or_default(),
            input: item.get("arguments").map_or_else(|| "{}".into(), json),
            signature: text(item, "thoughtSignature"),
        },
        Some("image") => Block::Image(Image {
            bytes: item.bytes().len(),
            media: text(item, "mimeType"),
            source: text(item, "data").map_or(Source::Elsewhere, Source::Data),
        }),
        _ => other(item),
    };
    content.items().map(block).collect()
}

/// Parses a time, either RFC 3339 or milliseconds.
fn time(value: Option<Raw<'_>>) -> Option<Timestamp> {
    let value = value?;
    match value.text() {
        Some(text) => Timestamp::parse(&text),
        None => value.u64().and_then(|millis| i64::try_from(millis).ok()).map(Timestamp),
    }
}
