//! pi's format: a header, then entries that name their parents; `OpenClaw`'s sessions of 2026.2 are the same.
//!
//! ```text
//! header  type:session, version?, id, timestamp, cwd, parentSession?
//! entry   type, id, parentId|null, timestamp, and by type: message | summary, firstKeptEntryId | customType, content | ..
//! v1      no version; entries without id and parentId, a chain in file order; firstKeptEntryIndex counts parsed lines
//! ```
//!
//! The agent goes on from the last line that is no header, whatever its type. After a compaction it sends the summary,
//! then the path from the first kept entry up to the compaction, then the rest; a first kept entry that is not on the
//! path keeps nothing.
//!
//! A hint is a byte of flags and a varint: of a compaction the tag or the index of the first kept entry, of a
//! `context_edit` the tag of its target.
//!
//! Invariant: a walk ends, whatever the parents say; where they form a cycle each name means the entry before it.

#![deny(clippy::indexing_slicing)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    dag,
    json::{Kind as JsonKind, Raw},
    model::{
        Block, Image, Kind, LineId, Message, NameTag, Parent, Record, Role, Source, Stop, Thinking,
        Tie, TieKind, Timestamp, put_varint, take_varint,
    },
    wire::{
        Answer, Answers, Back, Draft, Earlier, Envelope, Failure, Format, Graph, Invalid, Link,
        Path, Repair, Setting,
        compaction::{Compaction, Lines},
        cut::{How, Piece, parts, strings},
        json, line, other, shown, string, text,
    },
};

/// The format of pi and of `OpenClaw`.
#[derive(Clone, Copy, Debug)]
pub struct Pi;

/// The type of a header.
const HEADER_TYPE: &str = "session";

/// A header.
const HEADER: u8 = 1;
/// An entry of v1: it follows the entry before it in the file.
const CHAINED: u8 = 2;
/// An entry that the model sees.
const SENT: u8 = 4;
/// The number is an index over parsed lines, not a tag.
const INDEX: u8 = 8;
/// The target of a `context_edit` is left out.
const REMOVES: u8 = 16;
/// An edit of another entry.
const EDIT: u8 = 32;

/// The type under which extensions keep what only they read, and what undertext says there.
const CUSTOM_TYPE: &str = "undertext";

/// The names under which pi says what was used.
const USAGE: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

impl Format for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn knows(&self, record: Raw<'_>) -> bool {
        let has = |key| record.get(key).is_some();
        match text(record, "type").as_deref() {
            Some("session") => has("id") && has("timestamp") && has("cwd"),
            Some(_) if has("uuid") || has("payload") => false,
            Some("message") => has("message") && has("timestamp") && has("id") == has("parentId"),
            Some(_) => has("id") && has("parentId") && has("timestamp"),
            None => false,
        }
    }

    fn session(&self, record: Raw<'_>) -> Option<String> {
        header(record).then(|| text(record, "id"))?
    }

    fn begins(&self, record: &Record) -> bool {
        hint(record).0 & HEADER != 0
    }

    fn programs(&self) -> &'static [&'static str] {
        &["pi", "openclaw"]
    }

    /// A header may name the file that its session was made of; an entry that is copied keeps its line.
    fn ties(&self, _session: &str, graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        let mut ties = Vec::new();
        for place in 0..graph.len() {
            let Some(entry) = graph.at(place)? else { continue };
            let line = graph.line(entry)?;
            let Some(record) = Raw::object(&line) else { continue };
            if !header(record) {
                let other = LineId::of(&line).to_string();
                ties.push(Tie { kind: TieKind::Beginning, other });
                break;
            }
            let source = text(record, "parentSession").or_else(|| text(record, "branchedFrom"));
            if let Some(other) = source.as_deref().and_then(session_in).filter(|_| place == 0) {
                ties.push(Tie { kind: TieKind::Fork, other: other.to_owned() });
            }
        }
        Ok(ties)
    }

    fn folder(&self, record: Raw<'_>) -> Option<String> {
        header(record).then(|| text(record, "cwd"))?
    }

    fn envelope(&self, record: Raw<'_>) -> Envelope {
        let [class, id, parent, time, message, summary] =
            record.pick(["type", "id", "parentId", "timestamp", "message", "summary"]);
        let class = class.and_then(Raw::text).unwrap_or_default();
        let [role, excluded] =
            message.map_or([None; 2], |message| message.pick(["role", "excludeFromContext"]));
        let kind = kind(&class, role, summary);
        let is_header = class == HEADER_TYPE;
        let name = string(id).filter(|name| !name.is_empty() && !is_header);
        let is_chained = !is_header && name.is_none() && parent.is_none();
        let mut flags = 0;
        let mut number = None;
        if is_header {
            flags |= HEADER;
        } else if is_chained {
            flags |= CHAINED;
        }
        let tag = |name| string(name).map(|name| NameTag::of(&name).get());
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
            Kind::Meta | Kind::Opaque => {}
            // A command that the user ran for himself only.
            _ if excluded.and_then(Raw::bool) == Some(true) => {}
            _ => flags |= SENT,
        }
        let mut hint = vec![flags];
        if let Some(number) = number {
            put_varint(&mut hint, number);
        }
        Envelope {
            kind,
            name,
            parent: match parent.and_then(Raw::text) {
                Some(parent) if !is_header && !parent.is_empty() => {
                    Link::Named(parent.into_owned())
                }
                _ if is_chained => Link::Before,
                _ => Link::Root,
            },
            time: self::time(time),
            hint,
        }
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        message(record).into_iter().collect()
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        let Some(message) = record.get("message") else { return Answers::default() };
        let said = match text(message, "role").as_deref() {
            Some("toolResult") => parts(message.get("content"), "text"),
            // What the user had run himself is sent like an answer, and names no call.
            Some("bashExecution") => parts(message.get("output"), "text"),
            _ => return Answers::default(),
        };
        let texts = said.into_iter().filter_map(Piece::new).collect();
        let call = text(message, "toolCallId").unwrap_or_default();
        Answers { sent: vec![Answer { call, texts }], beside: strings(message.get("details")) }
    }

    fn tells_earlier(&self) -> bool {
        true
    }

    /// What `OpenClaw` cut is told by its suffix, what pi put into a file by the details.
    fn earlier(&self, record: Raw<'_>) -> Vec<Earlier> {
        const CUT: &str = "⚠️ [Content truncated";
        const CLEARED: &str = "[compacted: tool output removed to free context]";
        if text(record, "type").as_deref() == Some("compaction") {
            let before = record.get("tokensBefore").and_then(Raw::u64);
            return vec![Earlier { tokens: (before, None), ..Earlier::new(How::Compacted) }];
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

    fn head(&self, graph: &dyn Graph) -> Result<Option<u64>, Failure> {
        before(graph, graph.len())
    }

    fn path(&self, graph: &dyn Graph, head: u64, limit: usize) -> Result<Path, Failure> {
        let mut chain = dag::ancestors(head, limit, |entry| parent(graph, entry))?;
        let mut repairs = Vec::new();
        if let (Some(back), Some(&entry)) = (chain.cycle, chain.nodes.last()) {
            let what =
                if back == entry { "it is its own parent" } else { "its parents form a cycle" };
            repairs.push(Repair { entry, what });
            // Edges to smaller numbers only cannot close a cycle.
            chain = dag::ancestors(head, limit, |entry| {
                Ok::<_, Failure>(match graph.record(entry)?.parent {
                    Parent::Entry(earlier) => Some(earlier),
                    Parent::Root | Parent::Missing => None,
                })
            })?;
        } else if let Some(&first) = chain.nodes.last()
            && graph.record(first)?.parent == Parent::Missing
            && parent(graph, first)?.is_none()
        {
            repairs.push(Repair { entry: first, what: "its parent is missing" });
        }
        let mut entries = chain.nodes;
        entries.reverse();
        Ok(Path { entries, repairs })
    }

    fn context(&self, graph: &dyn Graph, path: &[u64]) -> Result<Vec<u64>, Failure> {
        let records =
            path.iter().map(|&entry| graph.record(entry)).collect::<Result<Vec<_>, _>>()?;
        let mut edits = BTreeMap::new();
        for record in &records {
            if let (flags, Some(target)) = hint(record)
                && flags & EDIT != 0
            {
                edits.insert(NameTag::new(target), flags & REMOVES != 0);
            }
        }
        let is_sent = |record: &&Record| {
            let is_removed =
                record.name.and_then(|name| edits.get(&name)).copied().unwrap_or(false);
            hint(record).0 & SENT != 0 && !is_removed
        };
        let boundary = records.iter().rposition(|record| record.kind == Kind::Boundary);
        let (before, after) = records.split_at(boundary.unwrap_or(0));
        let mut context = Vec::new();
        if let Some(boundary) = after.first().filter(|_| boundary.is_some()) {
            context.push(boundary.n);
            let first = first_kept(graph, boundary)?;
            let start = before.iter().position(|record| first.is(record)).unwrap_or(before.len());
            context.extend(before.iter().skip(start).filter(is_sent).map(|record| record.n));
        }
        context.extend(after.iter().filter(is_sent).map(|record| record.n));
        Ok(context)
    }

    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<u64>, Failure> {
        let mut leaves = BTreeSet::new();
        let mut continued = BTreeSet::new();
        let mut passed: BTreeMap<u64, Option<u64>> = BTreeMap::new();
        for place in 0..graph.len() {
            let Some(entry) = graph.at(place)? else { continue };
            if !is_conversation(&graph.record(entry)?) {
                continue;
            }
            leaves.insert(entry);
            // Records that are no conversation may stand between; each is passed once.
            let mut between = Vec::new();
            let mut next = parent(graph, entry)?;
            while let Some(above) = next {
                if is_conversation(&graph.record(above)?) {
                    break;
                }
                if let Some(&known) = passed.get(&above) {
                    next = known;
                    break;
                }
                passed.insert(above, None);
                between.push(above);
                next = parent(graph, above)?;
            }
            for above in between {
                passed.insert(above, next);
            }
            continued.extend(next.filter(|&above| above != entry));
        }
        if let Some(head) = self.head(graph)? {
            for entry in self.path(graph, head, usize::MAX)?.entries {
                leaves.remove(&entry);
            }
        }
        Ok(leaves.difference(&continued).copied().collect())
    }

    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
        let millis = setting.time.0;
        let words = |words: &str| json!([{ "type": "text", "text": words }]);
        let message = match draft {
            Draft::Message(Role::User, said) => {
                json!({ "role": "user", "content": words(said), "timestamp": millis })
            }
            Draft::Message(Role::Assistant, said) => assistant(&words(said), millis, None),
            Draft::Answer(said) => assistant(&words(&said.text()), millis, Some(said)),
            Draft::Message(Role::System, said) => {
                json!({ "role": "system", "content": said, "timestamp": millis })
            }
            Draft::Message(Role::Tool, _) => {
                return Err(Invalid("a tool's answer needs the id of its call".into()));
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
            Draft::Record(_) => {
                return Err(Invalid(
                    "records can be written as they are to native sessions only".into(),
                ));
            }
        };
        Ok(line(&entry("message", json!({ "message": message }), setting)))
    }

    fn branch(
        &self,
        graph: &dyn Graph,
        back: &Back<'_>,
        setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        let stands = back.from.map(|from| graph.record(from)).transpose()?;
        if stands.is_some_and(|record| hint(&record).0 & CHAINED != 0) {
            // pi numbers and chains these anew, whatever an entry says.
            return Ok(None);
        }
        Ok(Some(vec![match back.note {
            Some(note) => self.write(&Draft::Note(note.to_owned()), setting)?,
            None => line(&entry("custom", json!({ "customType": CUSTOM_TYPE }), setting)),
        }]))
    }

    fn keeps_apart(&self) -> bool {
        false
    }

    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        [setting, _]: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        let Compaction { from, kept, summary, metadata, .. } = compaction;
        if hint(&graph.record(*from)?).0 & CHAINED != 0 {
            // pi numbers these anew, whatever names them.
            return Ok(None);
        }
        // What is no entry before it keeps nothing.
        let mut first = Some(setting.uuid.clone());
        if let Some(said) = kept.first() {
            let line = graph.line(said.entry)?;
            first = Raw::object(&line).and_then(|record| text(record, "id"));
        }
        let Some(first) = first else { return Ok(None) };
        let fields = json!({
            "summary": summary,
            "firstKeptEntryId": first,
            "tokensBefore": metadata.pre_tokens,
            "details": { CUSTOM_TYPE: metadata.fields() },
            // The details are not of pi's own shape.
            "fromHook": true,
        });
        Ok(Some(Lines::More(vec![line(&entry("compaction", fields, setting))])))
    }
}

/// The entry from which on a compaction keeps what lies above it.
enum FirstKept {
    Named(NameTag),
    Entry(u64),
    Nothing,
}

impl FirstKept {
    fn is(&self, record: &Record) -> bool {
        match *self {
            Self::Named(name) => record.name == Some(name),
            Self::Entry(entry) => record.n == entry,
            Self::Nothing => false,
        }
    }
}

fn first_kept(graph: &dyn Graph, boundary: &Record) -> Result<FirstKept, Failure> {
    let (flags, Some(number)) = hint(boundary) else { return Ok(FirstKept::Nothing) };
    if flags & INDEX == 0 {
        return Ok(FirstKept::Named(NameTag::new(number)));
    }
    let mut left = number;
    for place in 0..graph.len() {
        let Some(entry) = graph.at(place)? else { continue };
        match graph.record(entry)?.kind {
            Kind::Opaque => {}
            _ if left == 0 => return Ok(FirstKept::Entry(entry)),
            _ => left -= 1,
        }
    }
    Ok(FirstKept::Nothing)
}

/// Returns the entry that an entry follows: for those without ids the nearest one before that is no header.
fn parent(graph: &dyn Graph, entry: u64) -> Result<Option<u64>, Failure> {
    if hint(&graph.record(entry)?).0 & CHAINED == 0 {
        return graph.parent(entry);
    }
    graph.place(entry)?.map_or(Ok(None), |place| before(graph, place))
}

/// Returns the nearest entry before a place that is no header.
fn before(graph: &dyn Graph, place: u64) -> Result<Option<u64>, Failure> {
    for place in (0..place).rev() {
        if let Some(entry) = graph.at(place)? {
            let record = graph.record(entry)?;
            if record.kind != Kind::Opaque && hint(&record).0 & HEADER == 0 {
                return Ok(Some(entry));
            }
        }
    }
    Ok(None)
}

fn hint(record: &Record) -> (u8, Option<u64>) {
    let Some((&flags, mut rest)) = record.hint.split_first() else { return (0, None) };
    (flags, take_varint(&mut rest))
}

/// Returns the id of the session in a file that its path names: what stands behind the time.
fn session_in(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    let id = stem.rsplit_once('_').map_or(stem, |(_, id)| id);
    (!id.is_empty()).then_some(id)
}

fn header(record: Raw<'_>) -> bool {
    text(record, "type").as_deref() == Some(HEADER_TYPE)
}

fn is_conversation(record: &Record) -> bool {
    !matches!(record.kind, Kind::Meta | Kind::Opaque)
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
        "branch_summary"
            if summary.and_then(Raw::text).is_some_and(|summary| !summary.is_empty()) =>
        {
            Kind::Note
        }
        _ => Kind::Meta,
    }
}

fn message(record: Raw<'_>) -> Option<Message> {
    let said = |role, blocks| {
        Some(Message { time: time(record.get("timestamp")), ..Message::new(role, blocks) })
    };
    match text(record, "type")?.as_str() {
        "message" => {}
        "compaction" => {
            let summary = said(Role::User, vec![Block::Text(text(record, "summary")?)])?;
            return Some(Message { is_summary: true, ..summary });
        }
        "branch_summary" => {
            let summary = text(record, "summary").filter(|summary| !summary.is_empty())?;
            return said(Role::User, vec![Block::Text(summary)]);
        }
        "custom_message" => {
            return said(Role::User, record.get("content").map(content).unwrap_or_default());
        }
        _ => return None,
    }
    let message = record.get("message")?;
    let mut blocks = message.get("content").map(content).unwrap_or_default();
    let role = match text(message, "role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
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
            let command = text(message, "command").unwrap_or_default();
            let output = text(message, "output").unwrap_or_default();
            blocks.push(Block::Text(format!("Ran `{command}`\n```\n{output}\n```")));
            Role::User
        }
        Some("branchSummary" | "compactionSummary") => {
            blocks.extend(text(message, "summary").map(Block::Text));
            Role::User
        }
        _ => Role::User,
    };
    Some(Message {
        time: time(message.get("timestamp")).or_else(|| time(record.get("timestamp"))),
        model: text(message, "model"),
        usage: message.get("usage").map(|used| super::usage(used, USAGE)),
        stop: text(message, "stopReason").and_then(|word| Stop::parse(&word)),
        is_summary: text(message, "role").as_deref() == Some("compactionSummary"),
        ..Message::new(role, blocks)
    })
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

/// Reads a moment, as RFC 3339 or in milliseconds.
fn time(value: Option<Raw<'_>>) -> Option<Timestamp> {
    let value = value?;
    match value.text() {
        Some(text) => Timestamp::parse(&text),
        None => value.u64().and_then(|millis| i64::try_from(millis).ok()).map(Timestamp),
    }
}

fn entry(kind: &str, fields: Value, setting: &Setting) -> Value {
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
fn assistant(content: &Value, millis: i64, said: Option<&Message>) -> Value {
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
