//! Kimi CLI's format: `context.jsonl`, which contains what the model sees, in order.
//!
//! ```text
//! {"role": "_system_prompt", "content"}   the last one wins
//! {"role": "_checkpoint", "id"}           numbered by the agent; after a revert, numbers are used again
//! {"role": "_usage", "token_count"}
//! {"role": user|assistant|tool|system, name?, content, tool_calls?, tool_call_id?}
//! ```
//!
//! Records have no ids; the whole file is the path. A line ends with LF, CRLF or CR, as in Python's text mode. A revert, a
//! D-Mail, a compaction and a clear each rotate the file. Older states are in other files, so nothing branches within a file, and
//! appending cannot go back. The beginning of the next file shows why the file was rotated:
//!
//! ```text
//! compaction  prompt, checkpoint 0, the message that previous context has been compacted
//! revert to N the lines before the first checkpoint N; then N again as soon as the agent continues
//! D-Mail      the same, then a message of the agent from its future self
//! clear       no conversation
//! ```
//!
//! A revert to the first checkpoint and a clear produce the same file.
//!
//! A hint is empty, or one byte that marks a system prompt.

#![deny(clippy::indexing_slicing)]

mod files;
mod schema;

use std::path::{Path as FilePath, PathBuf};

use files::{LIVE, STATE, SUB_AGENTS};
use serde_json::{Value, json};

use crate::{
    json::{self, Fields, Raw},
    model::{
        Block, EntryNumber, Image, Kind, LineId, Message, PlaceNumber, Record, Role, SentAs,
        Thinking, Tie, TieKind, Usage,
    },
    wire::{
        Answer, Answers, Departure, Draft, Envelope, EventField, Failure, Files, Folder, Graph,
        Identify, Invalid, Link, Path, PhysicalLine, Piece, Read, Sent, Setting, Telling, Told,
        Traits, Unanswered, Walk, Write,
        answers::parts,
        compaction::{Compaction, Lines, Said},
        fields::{self, line, other, shown, string, text},
        identify::tie_of_sub_agent,
        layout::resuming,
        unread::is_beside_kimi_code,
        walk::settled_up_to,
        write,
    },
};

/// The format of Kimi CLI.
#[derive(Clone, Copy, Debug)]
pub struct Kimi;

/// The hint of a system prompt. Only the last one is sent.
const PROMPT: u8 = 1;

/// The beginning of a note in the user's place, by the agent or undertext.
const NOTE_START: &str = "<system>";

/// The beginnings of texts that the agent puts in the user's place.
const NOTE: [&str; 2] = [NOTE_START, "<system-reminder>"];

/// The beginning of the summary after a compaction.
const SUMMARY: &str = "<system>Previous context has been compacted";

/// The beginning of a D-Mail. The message of the future self comes after the first blank line.
const MAIL: &str = "<system>You just got a D-Mail from your future self.";

/// The end of a text that the agent puts in the user's place.
const NOTE_END: &str = "</system>";

/// Files that the agent keeps next to its sessions: the displayed output, which grows with each turn, and the settings.
const ASIDE: [&str; 2] = ["wire.jsonl", STATE];

/// The traits of the format.
const TRAITS: Traits = Traits {
    folders: &[Folder {
        agent: "Kimi CLI",
        variable: Some("KIMI_SHARE_DIR"),
        usual: Some(".kimi"),
        sessions: "sessions",
        each: None,
        annexes: &[],
    }],
    programs: &["kimi", "kimi-cli"],
    ended: Some(
        "Kimi CLI is no longer maintained, and since 1.52 it does not resume sessions: use an older version; \
         undertext does not read its successor, kimi-code, yet",
    ),
    live_name: Some(LIVE),
    has_names: false,
    has_times: false,
    line: PhysicalLine::OneRecordOfAnyEnd,
    has_checkpoints: true,
    joins_calls: true,
    unanswered: Some(Unanswered::Nothing),
    note_opening: NOTE_START,
    takes_records: false,
    event: Some(EventField::Session("session_id")),
    ..Traits::named("kimi")
};

impl Identify for Kimi {
    fn traits(&self) -> &'static Traits {
        &TRAITS
    }

    fn knows(&self, record: &Fields<'_>) -> bool {
        let has = |key| record.get(key).is_some();
        match record.text("role").as_deref() {
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

    /// The name of the file's folder; for a sub-agent, after the session's id.
    fn session_of(
        &self,
        file: &FilePath,
        _records: &[Raw<'_>],
        _mentions: &dyn Fn(&[u8]) -> bool,
    ) -> Option<String> {
        files::session_of(file)
    }

    fn folder(&self, _record: Raw<'_>) -> Option<String> {
        None
    }

    fn accompanies(&self, file: &FilePath) -> bool {
        let name = file.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| ASIDE.contains(&name)) && !is_beside_kimi_code(file)
    }

    /// Sessions that begin with the same lines up to and including the first answer of the model were once one session.
    fn ties(&self, session: &str, graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        if let Some(tie) = tie_of_sub_agent(session) {
            return Ok(vec![tie]);
        }
        let mut begin = Vec::new();
        for place in graph.end().earlier() {
            let Some(entry) = graph.at(place)? else { continue };
            let line = graph.line(entry)?;
            begin.extend_from_slice(&line);
            begin.push(b'\n');
            let role = Raw::object(&line).and_then(|record| text(record, "role"));
            if role.as_deref() == Some("assistant") {
                let other = LineId::of(&begin).to_string();
                return Ok(vec![Tie { kind: TieKind::Beginning, other }]);
            }
        }
        Ok(Vec::new())
    }
}

impl Files for Kimi {
    fn is_file_of(&self, file: &FilePath, session: &str) -> bool {
        let folder = file.parent().and_then(FilePath::file_name);
        file.ends_with(LIVE) && folder.is_some_and(|folder| folder == session)
    }

    fn sub_agents(&self, file: &FilePath) -> Option<PathBuf> {
        Some(file.with_file_name(SUB_AGENTS))
    }

    fn resume(&self, session: &str, _file: &FilePath) -> Option<Vec<String>> {
        resuming(["kimi", "--session"], session)
    }
}

impl Read for Kimi {
    fn envelope(&self, record: Raw<'_>) -> Envelope {
        let [role, content] = record.pick(["role", "content"]);
        let role = role.and_then(Raw::text);
        // Kimi ignores a prompt of another type.
        let is_prompt = role.as_deref() == Some("_system_prompt")
            && content.is_some_and(|content| content.text().is_some());
        let kind = match role.as_deref() {
            Some("user" | "assistant" | "tool" | "system") if !schema::accepts(record) => {
                Kind::Meta
            }
            Some("user") => {
                let words = content.and_then(first_words).unwrap_or_default();
                let words = words.trim_start();
                if words.starts_with(SUMMARY) {
                    Kind::Boundary
                } else if write::checkpoint_number(words).is_some() {
                    Kind::System
                } else if NOTE.iter().any(|tag| words.starts_with(tag)) {
                    Kind::Note
                } else {
                    Kind::User
                }
            }
            Some("assistant") => Kind::Assistant,
            Some("tool") => Kind::Result,
            Some("system") => Kind::System,
            _ if is_prompt => Kind::System,
            _ => Kind::Meta,
        };
        let hint = if is_prompt { vec![PROMPT] } else { Vec::new() };
        Envelope { kind, name: None, parent: Link::Before, time: None, hint }
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        message(record).into_iter().collect()
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        if text(record, "role").as_deref() != Some("tool") {
            return Answers::default();
        }
        let texts = parts(record.get("content"), "text").into_iter().filter_map(Piece::new);
        let call = text(record, "tool_call_id").unwrap_or_default();
        // The provider refuses a call without its reasoning.
        Answers { sent: vec![Answer { call, texts: texts.collect() }], ..Answers::default() }
    }

    fn checkpoint(&self, record: Raw<'_>) -> Option<String> {
        (text(record, "role").as_deref() == Some("_checkpoint"))
            .then(|| record.get("id").filter(|id| id.u64().is_some()).map(shown))?
    }

    fn tells(&self, record: &Record) -> Option<Telling> {
        (record.kind == Kind::Meta).then_some(Telling::Figures)
    }

    fn told(&self, record: Raw<'_>) -> Told {
        let is_usage = text(record, "role").as_deref() == Some("_usage");
        let tokens = record.get("token_count").and_then(Raw::u64).filter(|_| is_usage);
        let usage = tokens.map(|input| Usage { input, ..Usage::default() });
        Told { usage, ..Told::default() }
    }

    fn mail(&self, record: Raw<'_>) -> Option<String> {
        let words = record.get("content").and_then(first_words)?;
        let (_, said) = words.strip_prefix(MAIL)?.split_once("\n\n")?;
        Some(said.trim_end().strip_suffix(NOTE_END).unwrap_or(said).trim().to_owned())
    }
}

impl Walk for Kimi {
    fn head(&self, graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
        for place in graph.end().earlier().rev() {
            if let Some(entry) = graph.at(place)?
                && graph.record(entry)?.kind != Kind::Opaque
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn path(&self, graph: &dyn Graph, head: EntryNumber, limit: usize) -> Result<Path, Failure> {
        let mut entries = Vec::new();
        let end = graph.place(head)?.map_or(PlaceNumber::FIRST, PlaceNumber::next);
        for place in end.earlier().rev() {
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

    fn context(&self, graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure> {
        let mut context = Vec::new();
        let mut prompt = None;
        for &entry in path {
            let record = graph.record(entry)?;
            if record.hint.first() == Some(&PROMPT) {
                prompt = Some(entry);
            } else if record.kind.is_conversation() {
                context.push(entry);
            }
        }
        let entries = prompt.into_iter().chain(context).collect();
        Ok(Sent { entries, ..Sent::default() })
    }

    fn settled(
        &self,
        graph: &dyn Graph,
        last: &[EntryNumber],
    ) -> Result<Vec<EntryNumber>, Failure> {
        // Only the last prompt is sent.
        settled_up_to(last, |entry| Ok(graph.record(entry)?.hint.first() == Some(&PROMPT)))
    }

    fn leaves(&self, _graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
        Ok(Vec::new())
    }

    fn departure(&self, old: &dyn Graph, next: &dyn Graph) -> Result<Option<Departure>, Failure> {
        let mut shared = PlaceNumber::FIRST;
        while shared < old.end().min(next.end()) && old.at(shared)? == next.at(shared)? {
            shared = shared.next();
        }
        let talk = first_talk(next)?;
        if let Some((place, Kind::Boundary)) = talk
            && place >= shared
        {
            return Ok(Some(Departure::Compaction));
        }
        let mut to = None;
        for place in old.end().min(shared.next()).earlier().rev() {
            let Some(entry) = old.at(place)? else { continue };
            if old.record(entry)?.kind == Kind::Meta
                && let Some(own) = Raw::object(&old.line(entry)?).and_then(|r| self.checkpoint(r))
            {
                to = Some((place, own));
                break;
            }
        }
        let Some((marker, own)) = to else { return Ok(Some(Departure::Clear)) };
        // A D-Mail comes after the repeated checkpoint and its announcement to the model.
        for place in PlaceNumber::each(marker.max(shared)..next.end().min(marker.plus(3))) {
            let Some(entry) = next.at(place)? else { continue };
            if next.record(entry)?.kind == Kind::Note
                && Raw::object(&next.line(entry)?).and_then(|r| self.mail(r)).is_some()
            {
                return Ok(Some(Departure::Mail(own)));
            }
        }
        let keeps = first_talk(old)?.is_some_and(|(place, _)| place < marker);
        Ok(Some(if keeps { Departure::Revert(own) } else { Departure::Clear }))
    }
}

impl Write for Kimi {
    fn own_words(&self, text: &str) -> [usize; 2] {
        if write::checkpoint_number(text).is_some() {
            return [text.len(), 0];
        }
        fields::marked(text, NOTE.into_iter().chain([SUMMARY, MAIL]).map(|mark| (mark, "")))
    }

    fn write(&self, draft: &Draft, _setting: &Setting) -> Result<Vec<u8>, Invalid> {
        Ok(line(&match draft {
            Draft::Message(speaker, said) => json!({ "role": speaker.as_str(), "content": said }),
            Draft::Answer(said) => return answer(said),
            Draft::Note(said) => {
                json!({ "role": "user", "content": format!("{NOTE_START}{said}{NOTE_END}") })
            }
            Draft::Call { id, name, input } => {
                json!({ "role": "assistant", "content": [], "tool_calls": [call(id, name, input)?] })
            }
            Draft::Result { id, output, error } => {
                let content = match error {
                    Some(error) => format!("<system>ERROR: {error}</system>{output}"),
                    None => output.clone(),
                };
                json!({ "role": "tool", "content": content, "tool_call_id": id })
            }
            Draft::Checkpoint(n) => return Ok(internal("_checkpoint", "id", *n)),
            Draft::Summary(_) | Draft::Record(_) => return Err(Invalid::as_it_is("Kimi CLI")),
        }))
    }

    /// Like the program itself: the whole file is written again, and checkpoint numbers start over.
    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        _settings: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        let Compaction { system, kept, summary, metadata, .. } = compaction;
        let part = |text: &str| json!({ "type": "text", "text": text });
        let content =
            [part(&format!("{SUMMARY}. Here is the compaction output:{NOTE_END}")), part(summary)];
        let front = [
            internal("_checkpoint", "id", 0),
            line(&json!({ "role": "user", "content": content })),
        ];
        let back = internal("_usage", "token_count", metadata.post_tokens);
        let copy = |said: &Said| Ok((graph.line(said.entry)?, Some(said.entry)));
        let own = |line| Ok((line, None));
        let lines = system.iter().map(copy).chain(front.map(own));
        let lines = lines.chain(kept.iter().map(copy)).chain([own(back)]);
        let (lines, again) = lines.collect::<Result<Vec<_>, Failure>>()?.into_iter().unzip();
        Ok(Some(Lines::Anew { lines, again }))
    }
}

/// Writes a model's answer with all its calls, because results must follow the message with their calls.
fn answer(said: &Message) -> Result<Vec<u8>, Invalid> {
    let calls = said.blocks.iter().filter_map(|block| match block {
        Block::Call { id, name, input, .. } => Some(call(id, name, input)),
        _ => None,
    });
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    let words = said.text();
    Ok(line(&match calls.as_slice() {
        [] => json!({ "role": "assistant", "content": words }),
        _ if words.is_empty() => json!({ "role": "assistant", "content": [], "tool_calls": calls }),
        _ => json!({ "role": "assistant", "content": words, "tool_calls": calls }),
    }))
}

fn call(id: &str, name: &str, input: &str) -> Result<Value, Invalid> {
    if let Err(error) = serde_json::from_str::<Value>(input) {
        return Err(Invalid::input(&error));
    }
    let function = json!({ "name": name, "arguments": input });
    Ok(json!({ "type": "function", "id": id, "function": function }))
}

/// Returns a record that is not a message, as the program writes it.
fn internal(role: &str, key: &str, number: u64) -> Vec<u8> {
    format!(r#"{{"role": "{role}", "{key}": {number}}}"#).into_bytes()
}

/// Returns the place and kind of the first message of the conversation. The program's own texts before it do not count.
fn first_talk(graph: &dyn Graph) -> Result<Option<(PlaceNumber, Kind)>, Failure> {
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        let kind = graph.record(entry)?.kind;
        if kind.is_talk() {
            return Ok(Some((place, kind)));
        }
    }
    Ok(None)
}

/// Returns the first text of a message's content.
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
        // The only sign that a tool failed is the beginning of its first text.
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
            // Only Anthropic's thinking has a signature there.
            sent_as: match part.get("encrypted").and_then(Raw::text) {
                Some(_) => SentAs::Block,
                None => SentAs::Content,
            },
        }),
        Some("image_url") => {
            let url = part.get("image_url").and_then(|image| text(image, "url"));
            Block::Image(Image::at(&url.unwrap_or_default(), part.bytes().len()))
        }
        _ => other(part),
    };
    content.items().map(block).collect()
}
