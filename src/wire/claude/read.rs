//! Reads a record into an envelope with its hint, and a message.
//!
//! A hint is a byte of flags followed by tags of names, 8 bytes each, little endian: for a block its `message.id`; for a
//! `last-prompt` the leaf that it names; for a boundary its anchor and the messages that it keeps, or, as a segment, its
//! anchor and the first and last of them. A record without flags has no hint. A pin that explicitly names no leaf has one more
//! byte, so that it counts as a signpost like pins that name one.

use super::{
    Claude,
    marks::{LOCAL, TOLD},
};
use crate::{
    json::{self, Raw},
    model::{Block, Kind, Message, NameTag, Record, Role, Stop},
    wire::{
        Answer, Answers, Earlier, Edited, Envelope, How, Link, Piece, Read, Telling, Titled, Told,
        answers::{between, parts, strings},
        anthropic,
        fields::{self, moment, shown, string, text},
    },
};

/// How deep a result within a result is read. No model gets such results; a deeper one is a block of an unknown kind.
const RESULTS: u8 = 2;

/// The model name in answers that the program made up.
pub(super) const NO_MODEL: &str = "<synthetic>";

/// The result of a background task.
pub(super) const TASK_NOTIFICATION: &str = "task-notification";

/// The classes of attachments that record the program's own setup. No message contains it.
const OF_ITSELF: [&str; 2] = [PROMPT, "session_context"];

/// The classes of other attachments that are never sent: notes on what the program did to the conversation.
const NOTES: [&str; 6] = [
    "credential_org",
    "deferred_tools_record",
    "prompt_render_point",
    "thinking_drop",
    "tool_offer_record",
    "whole_texts_withdrawn",
];

/// The class of attachment that says which results are sent truncated, with their stand-ins.
pub(super) const CUT: &str = "tool_results_cut";

/// The class of attachment with everything that is sent besides the conversation.
const PROMPT: &str = "prompt_snapshot";

/// The class of attachment that instructs a fork.
const BRIEFING: &str = "fork_briefing";

/// The class of attachment with a message that was queued while the model worked.
pub(super) const QUEUED: &str = "queued_command";

/// The texts of records without messages: type and key.
const REMARKS: [(&str, &str); 6] = [
    ("ai-title", "aiTitle"),
    ("custom-title", "customTitle"),
    ("last-prompt", "lastPrompt"),
    ("pr-link", "prUrl"),
    ("queue-operation", "content"),
    ("summary", "summary"),
];

/// The decoded hint of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hint {
    flags: u8,
    /// The tags after the flags.
    pub(super) tags: Vec<NameTag>,
}

impl Hint {
    /// It is a link of the chain.
    pub(super) const CHAIN: u8 = 1;
    /// It belongs to a sub-agent.
    pub(super) const SIDE: u8 = 2;
    /// For other records: it names the leaf to resume at, or clears it.
    pub(super) const PIN: u8 = 4;
    /// For a block: it calls a tool.
    pub(super) const CALLS: u8 = 4;
    /// For program text: the program writes it next to the conversation, which never continues from it.
    pub(super) const ASIDE: u8 = 4;
    /// For a note: program text in the user's place.
    pub(super) const META: u8 = 4;
    /// For a pin: it does not yield to descendants.
    pub(super) const EXPLICIT: u8 = 8;
    /// For a link, which cannot be an explicit pin: the model never sees it, although its kind says so.
    pub(super) const UNSENT: u8 = 8;
    /// For a boundary: its tags are an anchor and the two ends of the kept messages.
    pub(super) const SEGMENT: u8 = 16;
    /// For program text, which has no boundary's tags: the program cleared older tool results here.
    pub(super) const CLEARS: u8 = 16;
    /// For a record that is neither link nor pin: a title. It is the user's if `EXPLICIT` is set, a summary if it has a tag.
    pub(super) const TITLE: u8 = 16;
    /// The model sees it, although its kind does not say so.
    pub(super) const SENT: u8 = 32;
    /// It cannot be a head, and cannot replace a missing parent.
    pub(super) const PROGRESS: u8 = 64;
    /// It reports a command that ran in the program, or is an answer that no model gave.
    pub(super) const LOCAL: u8 = 128;

    /// Reads the hint of a record.
    pub(super) fn of(record: &Record) -> Hinted<'_> {
        let (&flags, rest) = record.hint.split_first().unwrap_or((&0, &[]));
        Hinted { flags, tags: rest.as_chunks().0 }
    }

    fn bytes(&self) -> Vec<u8> {
        if self.flags == 0 {
            return Vec::new();
        }
        let tags = self.tags.iter().flat_map(|tag| tag.get().to_le_bytes());
        let clears = self.flags == Self::PIN | Self::EXPLICIT && self.tags.is_empty();
        std::iter::once(self.flags).chain(tags).chain(clears.then_some(0)).collect()
    }
}

/// The hint of a record, not yet decoded.
#[derive(Clone, Copy)]
pub(super) struct Hinted<'r> {
    flags: u8,
    tags: &'r [[u8; 8]],
}

impl Hinted<'_> {
    /// Returns true if all of these flags are set.
    pub(super) fn has(self, flags: u8) -> bool {
        self.flags & flags == flags
    }

    /// Returns the tags after the flags.
    pub(super) fn tags(self) -> impl Iterator<Item = NameTag> {
        self.tags.iter().map(|tag| NameTag::new(u64::from_le_bytes(*tag)))
    }
}

/// The top-level fields of most records, found in one pass.
struct Top<'a> {
    class: Option<Raw<'a>>,
    subtype: Option<Raw<'a>>,
    uuid: Option<Raw<'a>>,
    parent: Option<Raw<'a>>,
    timestamp: Option<Raw<'a>>,
    message: Option<Raw<'a>>,
    origin: Option<Raw<'a>>,
    is_sidechain: Option<Raw<'a>>,
    is_summary: Option<Raw<'a>>,
    is_meta: Option<Raw<'a>>,
    is_transcript_only: Option<Raw<'a>>,
    is_api_error: Option<Raw<'a>>,
    is_virtual: Option<Raw<'a>>,
}

impl<'a> Top<'a> {
    fn of(record: Raw<'a>) -> Self {
        let [class, subtype, uuid, parent, timestamp, message, origin, rest @ ..] = record.pick([
            "type",
            "subtype",
            "uuid",
            "parentUuid",
            "timestamp",
            "message",
            "origin",
            "isSidechain",
            "isCompactSummary",
            "isMeta",
            "isVisibleInTranscriptOnly",
            "isApiErrorMessage",
            "isVirtual",
        ]);
        let [is_sidechain, is_summary, is_meta, is_transcript_only, is_api_error, is_virtual] =
            rest;
        Self {
            class,
            subtype,
            uuid,
            parent,
            timestamp,
            message,
            origin,
            is_sidechain,
            is_summary,
            is_meta,
            is_transcript_only,
            is_api_error,
            is_virtual,
        }
    }
}

impl Read for Claude {
    fn envelope(&self, record: Raw<'_>) -> Envelope {
        let top = Top::of(record);
        let name = string(top.uuid).filter(|name| !name.is_empty());
        let time = moment(top.timestamp);
        let class = top.class.and_then(Raw::text).unwrap_or_default();
        let subtype = top.subtype.and_then(Raw::text);
        let is_link =
            matches!(&*class, "user" | "assistant" | "system" | "attachment" | "progress");
        if !is_link || name.is_none() {
            // The program looks up only links by name, so no other record may take the name of a link.
            return Envelope {
                kind: Kind::Meta,
                name: None,
                parent: Link::Root,
                time,
                hint: off_chain(record, &class).bytes(),
            };
        }
        let mut hint = Hint { flags: Hint::CHAIN, ..Hint::default() };
        if is_true(top.is_sidechain) {
            hint.flags |= Hint::SIDE;
        }
        if is_true(top.is_virtual) {
            hint.flags |= Hint::UNSENT;
        }
        let mut parent = string(top.parent);
        let kind = match &*class {
            "user" => {
                let (kind, is_local) = user(&top);
                if is_local {
                    hint.flags |= Hint::LOCAL;
                }
                if kind == Kind::Note && is_true(top.is_meta) {
                    hint.flags |= Hint::META;
                }
                kind
            }
            "assistant" => {
                let [id, model, content] = top
                    .message
                    .map_or([None; 3], |message| message.pick(["id", "model", "content"]));
                hint.tags.extend(tag(id));
                if content.into_iter().flat_map(Raw::items).any(|item| is(item, "tool_use")) {
                    hint.flags |= Hint::CALLS;
                }
                if model.and_then(Raw::text).as_deref() == Some(NO_MODEL) {
                    let is_error = is_true(top.is_api_error);
                    hint.flags |= Hint::LOCAL | if is_error { Hint::UNSENT } else { 0 };
                }
                Kind::Assistant
            }
            "system" if subtype.as_deref() == Some("compact_boundary") => {
                let [metadata, above] = record.pick(["compactMetadata", "logicalParentUuid"]);
                if let Some(metadata) = metadata {
                    kept(metadata, &mut hint);
                }
                parent = string(above).or(parent);
                Kind::Boundary
            }
            "system" => {
                match subtype.as_deref() {
                    Some("local_command") => {
                        let is_shown_only = is_true(record.get("isDisplayOnly"));
                        hint.flags |= Hint::LOCAL | if is_shown_only { 0 } else { Hint::SENT };
                    }
                    Some("microcompact_boundary") => hint.flags |= Hint::CLEARS,
                    Some("file_snapshot") => hint.flags |= Hint::ASIDE,
                    _ => {}
                }
                Kind::System
            }
            "attachment" => {
                let class =
                    record.get("attachment").and_then(|attachment| text(attachment, "type"));
                let class = class.as_deref().unwrap_or_default();
                hint.flags |= noted(class);
                if class == QUEUED { Kind::Note } else { Kind::System }
            }
            _ => {
                hint.flags |= Hint::PROGRESS;
                Kind::Meta
            }
        };
        Envelope {
            kind,
            name,
            parent: parent.map_or(Link::Root, Link::Named),
            time,
            hint: hint.bytes(),
        }
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        self::message(record).into_iter().collect()
    }

    fn sent(&self, record: Raw<'_>, edits: &[Edited<'_>]) -> Vec<Message> {
        super::sent::message(record, edits).into_iter().collect()
    }

    fn titles(&self, record: &Record) -> Option<Titled> {
        let hint = Hint::of(record);
        let is_title = record.kind == Kind::Meta && !hint.has(Hint::CHAIN) && hint.has(Hint::TITLE);
        is_title.then(|| match hint.tags().next() {
            Some(leaf) => Titled::Summary(leaf),
            None if hint.has(Hint::EXPLICIT) => Titled::User,
            None => Titled::Agent,
        })
    }

    fn title(&self, record: Raw<'_>) -> Option<String> {
        self::title(record)
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        let content = || record.get("message").and_then(|message| message.get("content"));
        let beside = || strings(record.get("toolUseResult"));
        let sent = || results(record).collect();
        match text(record, "type").as_deref() {
            Some("user") => Answers { sent: sent(), beside: beside(), thinking: None },
            // The program joins the records of a message, so one of them may be empty.
            Some("assistant") => Answers { thinking: content(), ..Answers::default() },
            _ => Answers::default(),
        }
    }

    /// Some program text looks like a description of the setup.
    fn tells(&self, record: &Record) -> Option<Telling> {
        let hint = Hint::of(record);
        let is_sent = hint.has(Hint::SENT) || hint.has(Hint::SIDE);
        let is_setup = record.kind == Kind::System && hint.has(Hint::CHAIN) && !is_sent;
        is_setup.then_some(Telling::Setup)
    }

    fn told(&self, record: Raw<'_>) -> Told {
        Told { scene: fields::scene(record, &super::TRAITS), ..self::told(record) }
    }

    /// Returns what the program left out, as reported by this record: results moved to files, cleared results, compactions.
    fn earlier(&self, record: Raw<'_>) -> Vec<Earlier> {
        match text(record, "type").as_deref() {
            Some("system") => compacted(record).into_iter().collect(),
            Some("user") => results(record)
                .flat_map(|Answer { call, texts }| {
                    texts.into_iter().filter_map(move |piece| omitted(piece, &call))
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the hint of a record that is not on the chain.
fn off_chain(record: Raw<'_>, class: &str) -> Hint {
    let mut hint = Hint::default();
    match class {
        "last-prompt" => pin(record, &mut hint),
        _ if title(record).is_none() => {}
        "custom-title" => hint.flags |= Hint::TITLE | Hint::EXPLICIT,
        "ai-title" => hint.flags |= Hint::TITLE,
        "summary" => {
            if let Some(leaf) = tag(record.get("leafUuid")) {
                hint.flags |= Hint::TITLE;
                hint.tags.push(leaf);
            }
        }
        _ => {}
    }
    hint
}

/// Returns the flags of an attachment of this class.
fn noted(class: &str) -> u8 {
    match class {
        CUT => Hint::CLEARS,
        BRIEFING => Hint::SENT | Hint::ASIDE,
        _ if OF_ITSELF.contains(&class) || NOTES.contains(&class) => 0,
        _ => Hint::SENT,
    }
}

/// Returns true if a record is a link that the program writes next to the conversation.
pub(super) fn is_aside(record: &Record) -> bool {
    record.kind == Kind::System && Hint::of(record).has(Hint::ASIDE)
}

/// Returns true if a record is a message queued while the model worked.
pub(super) fn is_queued(record: &Record) -> bool {
    record.kind == Kind::Note && Hint::of(record).has(Hint::SENT)
}

/// Returns the system prompt and tools that the program recorded in order to send them again, or how long an answer is cached.
fn told(record: Raw<'_>) -> Told {
    /// Tokens written to the one-hour cache.
    const HOUR: &str = "ephemeral_1h_input_tokens";
    let usage = record.get("message").and_then(|message| message.get("usage"));
    if let Some(written) = usage.and_then(|usage| usage.get("cache_creation")) {
        let is_hour = written.get(HOUR).and_then(Raw::u64).is_some_and(|tokens| tokens > 0);
        return Told { cached_for: is_hour.then_some(3_600), ..Told::default() };
    }
    let attachment = record.get("attachment");
    let [class, system, tools] =
        attachment.map_or([None; 3], |noted| noted.pick(["type", "systemPrompt", "tools"]));
    if string(class).as_deref() != Some(PROMPT) {
        return Told::default();
    }
    let texts: Vec<String> = system.into_iter().flat_map(Raw::items).map(shown).collect();
    let system = (!texts.is_empty()).then(|| texts.join("\n"));
    Told { system, tools: tools.map(fields::json), ..Told::default() }
}

/// Returns the title in a record.
fn title(record: Raw<'_>) -> Option<String> {
    let key = match text(record, "type")?.as_str() {
        "custom-title" => "customTitle",
        "ai-title" => "aiTitle",
        "summary" => "summary",
        _ => return None,
    };
    text(record, key).filter(|title| !title.trim().is_empty())
}

/// Returns the message of a record, if it is part of the conversation.
pub(super) fn message(record: Raw<'_>) -> Option<Message> {
    let [class, message, timestamp, api_error, is_summary] =
        record.pick(["type", "message", "timestamp", "isApiErrorMessage", "isCompactSummary"]);
    let [content, id, model, usage, stop] = message.map_or([None; 5], |message| {
        message.pick(["content", "id", "model", "usage", "stop_reason"])
    });
    let (role, blocks) = match string(class)?.as_str() {
        "user" => {
            let blocks = content.map(blocks).unwrap_or_default();
            let is_answer = blocks.iter().any(|block| matches!(block, Block::Result { .. }));
            (if is_answer { Role::Tool } else { Role::User }, blocks)
        }
        "assistant" => (Role::Assistant, content.map(blocks).unwrap_or_default()),
        "system" => {
            let is_sent = text(record, "subtype").as_deref() == Some("local_command");
            let role = if is_sent { Role::User } else { Role::System };
            (role, record.get("content").map(blocks).unwrap_or_default())
        }
        "attachment" => {
            let attachment = record.get("attachment")?;
            let class = text(attachment, "type").unwrap_or_default();
            if class == QUEUED {
                (Role::User, attachment.get("prompt").map(blocks).unwrap_or_default())
            } else {
                (Role::System, vec![Block::Other { name: class, json: fields::json(attachment) }])
            }
        }
        _ => return None,
    };
    let failed = is_true(api_error).then_some(Stop::Error);
    Some(Message {
        id: string(id),
        time: moment(timestamp),
        model: string(model),
        usage: usage.map(|used| anthropic::read_usage(used)),
        stop: failed.or_else(|| Stop::of_word(&string(stop)?)),
        is_summary: is_true(is_summary),
        ..Message::new(role, blocks)
    })
}

/// Returns the texts of a record outside the conversation; for a sub-agent's progress, the new message in it.
pub(super) fn remarks(record: Raw<'_>) -> Vec<Message> {
    let message = record.get("data").and_then(|data| message(data.get("message")?));
    message.map_or_else(|| fields::remarks(record, &REMARKS), |message| vec![message])
}

/// Returns the tool results that are sent.
fn results(record: Raw<'_>) -> impl Iterator<Item = Answer<'_>> {
    let content = record.get("message").and_then(|message| message.get("content"));
    let results = content.into_iter().flat_map(Raw::items).filter(|item| is(*item, "tool_result"));
    results.map(|item| Answer {
        call: text(item, "tool_use_id").unwrap_or_default(),
        texts: parts(item.get("content"), "text").into_iter().filter_map(Piece::new).collect(),
    })
}

/// Returns the omission that a boundary reports.
fn compacted(record: Raw<'_>) -> Option<Earlier> {
    let number = |of, key| record.get(of).and_then(|of| of.get(key)).and_then(Raw::u64);
    match text(record, "subtype").as_deref()? {
        "compact_boundary" => {
            let of = "compactMetadata";
            let tokens = (number(of, "preTokens"), number(of, "postTokens"));
            let trigger = record.get(of).and_then(|of| text(of, "trigger"));
            Some(Earlier { tokens, trigger, ..Earlier::new(How::Compacted) })
        }
        "microcompact_boundary" => {
            let of = "microcompactMetadata";
            let (before, saved) = (number(of, "preTokens"), number(of, "tokensSaved"));
            let after = before.zip(saved).map(|(before, saved)| before.saturating_sub(saved));
            Some(Earlier { tokens: (before, after), ..Earlier::new(How::Cleared) })
        }
        _ => None,
    }
}

/// Returns the omission that the text of a result reports.
fn omitted(piece: Piece<'_>, call: &str) -> Option<Earlier> {
    const FILED: &str = "<persisted-output>";
    const CLEARED: &str = "[Old tool result content cleared]";
    // Most results are complete and long, and the beginning is enough to see that. After much white space, the whole text is
    // needed.
    let head = piece.string.head(1 << 10)?;
    let is_enough = head.trim_start().len() > 2 * CLEARED.len();
    let text = if is_enough { head } else { piece.text().into() };
    let told = |how| Earlier { call: Some(call.to_owned()), ..Earlier::new(how) };
    if text.trim_start().starts_with(FILED) {
        let whole = piece.text();
        return Some(Earlier {
            size: between(&whole, "too large (", ")").map(str::to_owned),
            file: between(&whole, "saved to: ", "\n").map(str::to_owned),
            ..told(How::Filed)
        });
    }
    text.trim_start().starts_with(CLEARED).then(|| told(How::Cleared))
}

/// Returns true if a head can be an entry of this kind.
pub(super) fn is_message(kind: Kind) -> bool {
    matches!(kind, Kind::User | Kind::Note | Kind::Assistant | Kind::Result | Kind::Summary)
}

/// Returns true if a content item is of this type.
pub(super) fn is(item: Raw<'_>, class: &str) -> bool {
    text(item, "type").as_deref() == Some(class)
}

/// Returns true if a field is `true`.
pub(super) fn is_true(value: Option<Raw<'_>>) -> bool {
    value.and_then(Raw::bool) == Some(true)
}

fn tag(name: Option<Raw<'_>>) -> Option<NameTag> {
    string(name).filter(|name| !name.is_empty()).map(|name| NameTag::of(&name))
}

/// Reads a pin: a name pins, an explicit null clears, anything else is ignored.
fn pin(record: Raw<'_>, hint: &mut Hint) {
    let [explicit, leaf] = record.pick(["explicit", "leafUuid"]);
    let name = tag(leaf);
    let is_explicit = is_true(explicit);
    if name.is_some() || is_explicit && leaf.is_some_and(Raw::is_null) {
        hint.flags |= Hint::PIN;
        if is_explicit {
            hint.flags |= Hint::EXPLICIT;
        }
    }
    hint.tags.extend(name);
}

fn kept(metadata: Raw<'_>, hint: &mut Hint) {
    if let Some(messages) = metadata.get("preservedMessages")
        && let Some(anchor) = tag(messages.get("anchorUuid"))
    {
        let names = messages.get("uuids").into_iter().flat_map(Raw::items).filter_map(Raw::text);
        hint.tags = std::iter::once(anchor).chain(names.map(|name| NameTag::of(&name))).collect();
    } else if let Some(segment) = metadata.get("preservedSegment")
        && let [Some(anchor), Some(head), Some(tail)] =
            segment.pick(["anchorUuid", "headUuid", "tailUuid"]).map(tag)
    {
        hint.flags |= Hint::SEGMENT;
        hint.tags = vec![anchor, head, tail];
    }
}

/// Returns the kind of a user record, and whether it only reports a command.
///
/// Only a request of a person to the model begins a turn. The subtype `note` is undertext's own; the program ignores it. A
/// command that is a prompt begins with its message, a command that runs in the program with its name.
fn user(top: &Top<'_>) -> (Kind, bool) {
    if is_true(top.is_summary) {
        return (Kind::Summary, false);
    }
    let content = top.message.and_then(|message| message.get("content"));
    let items = || content.into_iter().flat_map(Raw::items);
    if items().any(|item| is(item, "tool_result")) {
        return (Kind::Result, false);
    }
    let first = content
        .and_then(Raw::text)
        .or_else(|| items().find(|item| is(*item, "text"))?.get("text")?.text());
    let first = first.as_deref().map(str::trim_start);
    let begins =
        |with: &[&str]| first.is_some_and(|first| with.iter().any(|with| first.starts_with(with)));
    let is_local = begins(&LOCAL);
    let origin = top.origin.and_then(|origin| text(origin, "kind"));
    let is_asked = content
        .is_some_and(|content| matches!(content.kind(), json::Kind::String | json::Kind::Array))
        && ![top.is_meta, top.is_sidechain, top.is_transcript_only].into_iter().any(is_true)
        && origin.as_deref() != Some(TASK_NOTIFICATION)
        && top.subtype.and_then(Raw::text).as_deref() != Some("note")
        && !is_local
        && !begins(&TOLD);
    (if is_asked { Kind::User } else { Kind::Note }, is_local)
}

fn blocks(content: Raw<'_>) -> Vec<Block> {
    blocks_within(content, RESULTS)
}

/// Reads blocks. Results among them may contain further results, up to `results` levels deep.
fn blocks_within(content: Raw<'_>, results: u8) -> Vec<Block> {
    if content.kind() != json::Kind::Array {
        return if content.is_null() { Vec::new() } else { vec![Block::Text(shown(content))] };
    }
    content.items().map(|item| block(item, results)).collect()
}

fn block(item: Raw<'_>, results: u8) -> Block {
    let field = |key| text(item, key).unwrap_or_default();
    match text(item, "type").as_deref() {
        Some("tool_use") => Block::Call {
            id: field("id"),
            name: field("name"),
            input: item.get("input").map_or_else(|| "{}".to_owned(), shown),
            signature: None,
        },
        Some("tool_result") if results > 0 => Block::Result {
            id: field("tool_use_id"),
            name: None,
            blocks: item
                .get("content")
                .map(|content| blocks_within(content, results - 1))
                .unwrap_or_default(),
            error: is_true(item.get("is_error")),
        },
        _ => anthropic::block(item),
    }
}
