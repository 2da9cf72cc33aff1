//! The native format: what undertext itself writes, one JSON object a line.
//!
//! ```text
//! uuid, parentUuid|null, sessionId, timestamp, type: user|assistant|tool_use|tool_result|system,
//! subtype?: note|checkpoint|compact_boundary, cwd, gitBranch?, version, message {role, content, model?, usage?},
//! tool? {id, name, input, signature?}, toolResult? {id, output, error?}, isCompactSummary?, compactMetadata? {..}, meta? {..}
//! ```
//!
//! A `note` is a user entry that does not come from the user: the model reads it, but it does not begin a turn. The conversation
//! continues from the last record of the file that is on a chain. A `checkpoint` tells the model the number of one.
//!
//! Invariant: fields of a record supplied by a caller keep every byte; missing fields are appended.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    dag,
    json::{self, Fields, Raw},
    model::{
        Block, EntryNumber, Kind, Message, NameTag, Parent, Role, SentAs, Stop, Thinking, Timestamp,
    },
    wire::{
        Answer, Answers, Draft, Earlier, Envelope, Failure, Files, Folder, Graph, How, Identify,
        Invalid, Layout, Link, Path, Piece, Read, Repair, Sent, Setting, Told, Traits, Walk, Write,
        answers::{parts, strings},
        anthropic,
        compaction::{Compaction, Lines},
        fields::{self, moment, shown, string, text},
        walk::settled_up_to,
        write,
    },
};

/// The native format.
#[derive(Clone, Copy, Debug)]
pub struct Native;

const TYPES: [(&str, &str); 5] = [
    ("user", "user"),
    ("assistant", "assistant"),
    ("tool_use", "assistant"),
    ("tool_result", "system"),
    ("system", "system"),
];

/// The traits of the format.
const TRAITS: Traits = Traits {
    folders: &[Folder {
        agent: "clawdcode",
        variable: None,
        usual: Some(".clawdcode"),
        sessions: "projects",
        each: None,
        annexes: &[],
    }],
    has_parents_in_file: true,
    joins_first_call: true,
    shows_checkpoints: true,
    ..Traits::named("native")
};

impl Identify for Native {
    fn traits(&self) -> &'static Traits {
        &TRAITS
    }

    fn knows(&self, record: &Fields<'_>) -> bool {
        let kind = record.text("type");
        let has = |key| record.get(key).is_some();
        kind.is_some_and(|kind| TYPES.iter().any(|(name, _)| *name == kind))
            && has("uuid")
            && has("parentUuid")
            && has("sessionId")
            && !has("isSidechain")
    }

    fn session(&self, record: Raw<'_>) -> Option<String> {
        text(record, "sessionId")
    }

    fn folder(&self, record: Raw<'_>) -> Option<String> {
        text(record, "cwd")
    }
}

impl Files for Native {}

impl Layout for Native {}

impl Read for Native {
    fn envelope(&self, record: Raw<'_>) -> Envelope {
        let [class, subtype, summary, uuid, parent, time] =
            record.pick(["type", "subtype", "isCompactSummary", "uuid", "parentUuid", "timestamp"]);
        let subtype = subtype.and_then(Raw::text);
        let is_summary = summary.and_then(Raw::bool) == Some(true);
        let kind = match class.and_then(Raw::text).as_deref() {
            Some("user") if is_summary => Kind::Summary,
            Some("user") if subtype.as_deref() == Some("note") => Kind::Note,
            Some("user") if subtype.as_deref() == Some("checkpoint") => Kind::System,
            Some("user") => Kind::User,
            Some("assistant" | "tool_use") => Kind::Assistant,
            Some("tool_result") => Kind::Result,
            Some("system") if subtype.as_deref() == Some("compact_boundary") => Kind::Boundary,
            Some("system") => Kind::System,
            _ => Kind::Meta,
        };
        Envelope {
            kind,
            name: string(uuid).filter(|name| !name.is_empty()),
            parent: string(parent).map_or(Link::Root, Link::Named),
            time: moment(time),
            hint: Vec::new(),
        }
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        message(record).into_iter().collect()
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        let content = record.get("message").and_then(|message| message.get("content"));
        let Some(result) = record.get("toolResult") else {
            return Answers { thinking: content, ..Answers::default() };
        };
        let said = ["output", "error"].into_iter().flat_map(|key| strings(result.get(key)));
        let more = parts(content, "text");
        let texts = said.chain(more).filter_map(Piece::new).collect();
        let call = text(result, "id").unwrap_or_default();
        Answers { sent: vec![Answer { call, texts }], ..Answers::default() }
    }

    fn told(&self, record: Raw<'_>) -> Told {
        Told { scene: fields::scene(record, self.traits()), ..Told::default() }
    }

    fn earlier(&self, record: Raw<'_>) -> Vec<Earlier> {
        let compacted = record.get("compactMetadata").map(|metadata| {
            let number = |key| metadata.get(key).and_then(Raw::u64);
            Earlier {
                tokens: (number("preTokens"), number("postTokens")),
                trigger: text(metadata, "trigger"),
                ..Earlier::new(How::Compacted)
            }
        });
        compacted.into_iter().collect()
    }
}

impl Walk for Native {
    fn head(&self, graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
        for place in graph.end().earlier().rev() {
            if let Some(entry) = graph.at(place)?
                && graph.record(entry)?.kind.is_conversation()
            {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    fn path(&self, graph: &dyn Graph, head: EntryNumber, limit: usize) -> Result<Path, Failure> {
        let chain = dag::ancestors(head, limit, |entry| graph.parent(entry))?;
        let mut repairs = Vec::new();
        if let Some(&first) = chain.nodes.last() {
            if chain.cycle.is_some() && chain.nodes.len() < limit {
                repairs.push(Repair { entry: first, what: "its parents form a cycle" });
            } else if graph.record(first)?.parent == Parent::Missing
                && graph.parent(first)?.is_none()
            {
                repairs.push(Repair { entry: first, what: "its parent is not in the file" });
            }
        }
        let mut entries = chain.nodes;
        entries.reverse();
        Ok(Path { entries, repairs })
    }

    fn context(&self, graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure> {
        let mut boundary = None;
        for (place, &entry) in path.iter().enumerate().rev() {
            if graph.record(entry)?.kind == Kind::Boundary {
                boundary = Some(place);
                break;
            }
        }
        let all = || Ok(Sent { entries: path.to_vec(), ..Sent::default() });
        let Some(boundary) = boundary else { return all() };
        let (before, after) = path.split_at(boundary);
        let Some(&at) = after.first() else { return all() };
        let kept = kept(&graph.line(at)?);
        let mut entries = after.get(1..2).unwrap_or_default().to_vec();
        let summary = entries.len();
        for &entry in before {
            let name = graph.record(entry)?.name;
            if name.is_some_and(|name| kept.contains(&name)) {
                entries.push(entry);
            }
        }
        let is_whole = entries.len() - summary == kept.len();
        entries.extend_from_slice(after.get(2..).unwrap_or_default());
        Ok(Sent { entries, is_whole, ..Sent::default() })
    }

    fn settled(
        &self,
        graph: &dyn Graph,
        last: &[EntryNumber],
    ) -> Result<Vec<EntryNumber>, Failure> {
        // A boundary keeps messages before it.
        settled_up_to(last, |entry| Ok(graph.record(entry)?.kind == Kind::Boundary))
    }

    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
        let mut leaves = BTreeSet::new();
        let mut parents = BTreeSet::new();
        for place in graph.end().earlier() {
            let Some(entry) = graph.at(place)? else { continue };
            if graph.record(entry)?.kind.is_conversation() {
                leaves.insert(entry);
                parents.extend(graph.parent(entry)?);
            }
        }
        Ok(leaves.difference(&parents).copied().collect())
    }
}

impl Write for Native {
    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
        let message = |role: &str, content: &str| json!({ "role": role, "content": content });
        let mut record = match draft {
            Draft::Message(speaker, content) => {
                json!({ "type": speaker.as_str(), "message": message(speaker.as_str(), content) })
            }
            Draft::Answer(said) => {
                let kind = if write::only_call(said).is_some() { "tool_use" } else { "assistant" };
                let mut record = json!({ "type": kind, "message": answer(said) });
                if !said.meta.is_empty() {
                    record["meta"] = json!(said.meta);
                }
                record
            }
            Draft::Note(content) => {
                json!({ "type": "user", "subtype": "note", "message": message("user", content) })
            }
            Draft::Summary(content) => {
                json!({ "type": "user", "message": message("user", content), "isCompactSummary": true })
            }
            Draft::Checkpoint(n) => {
                let content = write::checkpoint_text(*n);
                json!({ "type": "user", "subtype": "checkpoint", "message": message("user", &content) })
            }
            Draft::Call { id, name, input } => {
                serde_json::from_str::<serde::de::IgnoredAny>(input)
                    .map_err(|error| Invalid::input(&error))?;
                json!({
                    "type": "tool_use",
                    "message": message("assistant", ""),
                    "tool": { "id": id, "name": name, "input": null },
                })
            }
            Draft::Result { id, output, error } => {
                let mut result = json!({ "id": id, "output": output });
                if let Some(error) = error {
                    result["error"] = json!(error);
                }
                json!({ "type": "tool_result", "message": message("system", ""), "toolResult": result })
            }
            Draft::Record(line) => return complete(line, setting),
        };
        let envelope = envelope(setting);
        let Value::Object(said) = record.take() else { return Err(Invalid("no record".into())) };
        let fields = envelope.into_iter().map(|(key, value)| (key.to_owned(), value)).chain(said);
        let line = serde_json::to_vec(&fields.collect::<serde_json::Map<_, _>>())
            .map_err(|error| Invalid(error.to_string()))?;
        match draft {
            Draft::Call { id, name, input } => with_input(&line, [id, name, input], None),
            Draft::Answer(said) => match write::only_call(said) {
                Some((call, signature)) => with_input(&line, call, signature),
                None => Ok(line),
            },
            _ => Ok(line),
        }
    }

    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        [first, second]: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        let Compaction { system, kept, summary, metadata, .. } = compaction;
        let mut names = Vec::with_capacity(system.len() + kept.len());
        for said in system.iter().chain(*kept) {
            let line = graph.line(said.entry)?;
            let name = Raw::object(&line).and_then(|record| text(record, "uuid"));
            let Some(name) = name else { return Ok(None) };
            names.push(name);
        }
        let mut fields = metadata.fields();
        fields.insert("kept".to_owned(), json!(names));
        let boundary = json!({
            "type": "system", "subtype": "compact_boundary",
            "message": { "role": "system", "content": "" }, "compactMetadata": fields,
        });
        let second = Setting { parent: Some(first.uuid.clone()), ..second.clone() };
        let summary = json!({
            "type": "user", "message": { "role": "user", "content": summary }, "isCompactSummary": true,
        });
        let lines = [
            complete(boundary.to_string().as_bytes(), first)?,
            complete(summary.to_string().as_bytes(), &second)?,
        ];
        Ok(Some(Lines::More(lines.into())))
    }
}

/// Returns the message of a record, if it is part of the conversation.
fn message(record: Raw<'_>) -> Option<Message> {
    let [kind, message, timestamp, is_summary, meta] =
        record.pick(["type", "message", "timestamp", "isCompactSummary", "meta"]);
    let kind = string(kind)?;
    let [said, id, model, usage, stop] = message.map_or([None; 5], |message| {
        message.pick(["content", "id", "model", "usage", "stop_reason"])
    });
    let mut blocks: Vec<Block> = said.map(content).unwrap_or_default();
    let role = match kind.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        "tool_use" => {
            let tool = record.get("tool")?;
            let input = tool.get("input").map_or(&b"{}"[..], Raw::bytes);
            blocks.push(Block::Call {
                id: text(tool, "id").unwrap_or_default(),
                name: text(tool, "name").unwrap_or_default(),
                input: String::from_utf8_lossy(input).into_owned(),
                signature: text(tool, "signature"),
            });
            Role::Assistant
        }
        "tool_result" => {
            let result = record.get("toolResult")?;
            let error = text(result, "error");
            let output = result.get("output").map(shown).unwrap_or_default();
            let id = text(result, "id").unwrap_or_default();
            let said = write::with_error(&output, error.as_deref());
            let answer = if error.is_some() { Block::failure } else { Block::answer };
            blocks.push(answer(id, said));
            Role::Tool
        }
        _ => return None,
    };
    Some(Message {
        id: string(id),
        time: moment(timestamp),
        model: string(model),
        usage: usage.map(|used| anthropic::read_usage(used)),
        stop: string(stop).and_then(|word| stop_of(&word)),
        is_summary: is_summary.and_then(Raw::bool) == Some(true),
        // The meta field of a record from elsewhere may be anything.
        meta: meta.and_then(|it| serde_json::from_slice(it.bytes()).ok()).unwrap_or_default(),
        ..Message::new(role, blocks)
    })
}

/// Parses the stop reason of an answer.
fn stop_of(word: &str) -> Option<Stop> {
    match word {
        "aborted" => Some(Stop::Aborted),
        "error" => Some(Stop::Error),
        word => Stop::of_word(word),
    }
}

/// Returns a message of a model: its texts and thinking in their order, and its metadata.
fn answer(said: &Message) -> Value {
    let block = |block: &Block| match block {
        Block::Text(text) => Some(json!({ "type": "text", "text": text })),
        Block::Thinking(Thinking {
            signature: Some(data),
            is_redacted: true,
            sent_as: SentAs::Block,
            ..
        }) => Some(json!({ "type": "redacted_thinking", "data": data })),
        Block::Thinking(Thinking { text, signature, sent_as, .. }) => {
            let mut block = json!({ "type": "thinking", "thinking": text, "signature": signature });
            if *sent_as != SentAs::Block {
                block["sent_as"] = json!(sent_as.as_str());
            }
            Some(block)
        }
        _ => None,
    };
    let has_thoughts = said.blocks.iter().any(|block| matches!(block, Block::Thinking(_)));
    let content = if has_thoughts {
        said.blocks.iter().filter_map(block).collect()
    } else {
        json!(said.text())
    };
    let mut message = json!({ "role": "assistant", "content": content });
    if let Some(model) = &said.model {
        message["model"] = json!(model);
    }
    if let Some(usage) = &said.usage {
        message["usage"] = anthropic::usage(usage);
    }
    if let Some(stop) = said.stop {
        message["stop_reason"] = json!(stop.word());
    }
    message
}

/// Inserts a call's input into its record unparsed: numbers may exceed any type, and keys may repeat.
fn with_input(
    line: &[u8],
    [id, name, input]: [&str; 3],
    signature: Option<&str>,
) -> Result<Vec<u8>, Invalid> {
    // Outside of strings a line break is only white space, and inside of strings JSON does not allow one.
    let input = input.trim().replace(['\n', '\r'], " ");
    let signature = signature.map(|signature| format!(r#","signature":{}"#, json!(signature)));
    let (id, name, signature) = (json!(id), json!(name), signature.unwrap_or_default());
    let tool = format!(r#"{{"id":{id},"name":{name},"input":{input}{signature}}}"#);
    json::with_fields(line, &[("tool", tool.as_bytes())])
        .ok_or_else(|| Invalid("the tool's input is not JSON".into()))
}

/// Checks a record supplied by a caller and fills in missing fields.
fn complete(line: &[u8], setting: &Setting) -> Result<Vec<u8>, Invalid> {
    let invalid = |why: &str| Err(Invalid(why.to_owned()));
    let (record, kind) = write::asked(line)?;
    let Some((_, role)) = TYPES.iter().find(|(name, _)| *name == kind) else {
        let names = TYPES.map(|(name, _)| name).join(", ");
        return Err(Invalid(format!("the record's type is {kind:?}, but must be one of {names}")));
    };
    for key in ["uuid", "sessionId", "timestamp", "cwd", "gitBranch", "version", "subtype"] {
        if record.get(key).is_some_and(|value| value.text().is_none_or(|text| text.is_empty())) {
            return Err(Invalid(format!("the record's {key} is empty or not a string")));
        }
    }
    if record.get("parentUuid").is_some_and(|value| !value.is_null() && value.text().is_none()) {
        return invalid("the record's parentUuid is neither a string nor null");
    }
    if text(record, "timestamp").is_some_and(|time| Timestamp::parse(&time).is_none()) {
        return invalid("the record's timestamp is not an RFC 3339 time");
    }
    write::check_session(record, setting)?;
    let mut fields = envelope(setting);
    let message = record.get("message");
    if message.is_none() && matches!(kind.as_str(), "tool_use" | "tool_result") {
        fields.push(("message", json!({ "role": role, "content": "" })));
    } else {
        write::check_message(message, role)?;
    }
    let required = match kind.as_str() {
        "tool_use" => &["tool", "id", "name"][..],
        "tool_result" => &["toolResult", "id"],
        _ => &[],
    };
    if let [part, keys @ ..] = required {
        let Some(part_value) = record.get(part) else {
            return Err(Invalid(format!("the record has no {part}")));
        };
        if let Some(key) = keys.iter().find(|key| text(part_value, key).is_none()) {
            return Err(Invalid(format!("the record's {part} has no {key}")));
        }
    }
    write::filled(record, &fields)
}

/// Returns the fields of the envelope.
fn envelope(setting: &Setting) -> Vec<(&'static str, Value)> {
    let mut fields = vec![
        ("uuid", json!(setting.uuid)),
        ("parentUuid", json!(setting.parent)),
        ("sessionId", json!(setting.session)),
        ("timestamp", json!(setting.time.to_string())),
        ("cwd", json!(setting.folder)),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
    ];
    if let Some(branch) = &setting.git_branch {
        fields.push(("gitBranch", json!(branch)));
    }
    fields
}

/// Returns the names of the entries that a boundary keeps.
fn kept(boundary: &[u8]) -> BTreeSet<NameTag> {
    let record = Raw::object(boundary);
    let kept = record.and_then(|record| record.get("compactMetadata")?.get("kept"));
    let names = kept.into_iter().flat_map(Raw::items).filter_map(Raw::text);
    names.map(|name| NameTag::of(&name)).collect()
}

fn content(content: Raw<'_>) -> Vec<Block> {
    if content.kind() != json::Kind::Array {
        let words = shown(content);
        return if words.is_empty() { Vec::new() } else { vec![Block::Text(words)] };
    }
    content.items().map(anthropic::block).collect()
}
