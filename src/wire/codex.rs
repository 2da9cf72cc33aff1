//! Codex's format: rollouts, one item a line, in order and without ids.
//!
//! ```text
//! new   {timestamp, ordinal?, type, payload}    type: session_meta, turn_context, event_msg, response_item, compacted, ..
//! old   line 1 {id, timestamp, instructions, git?}, then bare items, {record_type: state} between
//! ```
//!
//! Nothing is erased: `thread_rolled_back {num_turns}` drops the newest turns, `compacted {replacement_history}` starts
//! a new context. A fork begins with copied history, including other `session_meta`; the first one is its own.
//!
//! ```text
//! meta  q1 a1  q2 a2  rolled_back 1  q3 a3       path of a3: meta q1 a1 rolled_back q3 a3, path of a2: meta q1 a1 q2 a2
//!              `---'  leaf: a2
//! ```
//!
//! A turn begins at a message of the user or of another agent, but not at the summary of a compaction. Records directly before it
//! that only prepare it (fragments, repeated rules, the turn's settings) are part of it, except for the first turn.
//!
//! A `compacted` record represents its whole history: its messages are the items of its `replacement_history`. A record without
//! one, as old versions wrote it, keeps the newest 20,000 tokens of the user's messages, and is itself the summary.
//!
//! A rollback drops the items of turns, but it drops histories by task: a task extends from its `task_started` to the next one,
//! and counts if it contains a turn. A history in a dropped task is ignored, even if the task extends over records that
//! are not in a turn. Without any `task_started` the whole file is one task.
//!
//! ```text
//! started q1 a1 compacted q2 rolled_back 1             path: q1 a1              the history is dropped with the task of q1
//! started q1 a1 compacted started q2 rolled_back 1     path: q1 a1 compacted
//! ```
//!
//! A history with `resume_metadata` and a `window_number`, as current versions write it, is firm: Codex reads no record
//! before it, so no rollback drops it. A rollback that reaches across a firm history drops turns of the history itself, and only
//! the rest of it is sent.
//!
//! A thread may consist of several files, `rollout-<time>-<thread>_<file>.jsonl`. Going back starts another file, and its first
//! record names, in `history_base`, the file that it continues and how many bytes of that file belong to it. Codex
//! reads the file with the newest time in its name. A fork names a file of another thread in the same way.
//!
//! ```text
//! file 1   meta q1 a1 | q2 a2        file 2   meta {history_base: file 1, up to |} q3 a3
//!          path of a3: meta q1 a1 meta q3 a3
//! ```
//!
//! A hint is a byte of flags and a varint: for a rollback the number of turns, for the first record of a file why Codex does not
//! resume it, for a history whether it is firm, for a call or result which call it is and its kind, else the
//! estimated tokens of the text. One more byte says that the record is not in an envelope as Codex writes it.
//!
//! Codex skips a record in an envelope if its types reject it, and so do paths.

#![deny(clippy::indexing_slicing)]

mod back;
mod backwards;
mod failed;
mod files;
mod hint;
mod hooks;
mod images;
mod long;
mod read;
mod segment;
mod types;
mod walk;
mod write;

pub use failed::{Heading, Report, plain_output};

use std::path::{Path as FilePath, PathBuf};

use hint::{BASE, COMPLETE, MODEL, OPENS, UNFRAMED, WINDOW, hint, is_unframed};
use read::{
    Part, SUMMARY, answer, headline, history, item_kind, item_message, left_of, meta,
    of_their_kinds, omitted, part, reading, said, scene, told,
};

use crate::{
    json::{Fields, Raw},
    model::{Block, Kind, Message, PlaceNumber, Record, Role, Tie, TieKind, put_varint},
    wire::{
        Answers, Earlier, Edited, Envelope, EventField, Failure, Folder, Graph, How, Identify,
        Interface, Layout, Link, Nearby, PhysicalLine, Read, ReadTitles, Service, Telling, Told,
        Traits, Unanswered,
        fields::{moment, string, text},
    },
};

/// The beginning of what an editor adds before a request.
pub(crate) const EDITOR: &str = "# Context from my IDE setup:";
/// The line before the request itself.
pub(crate) const REQUEST: &str = "## My request for Codex:";

/// Codex's format.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

/// A copied history begins with the `session_meta` of its own session, within this many first records.
const METAS: PlaceNumber = PlaceNumber::new(4);

/// The traits of the format.
const TRAITS: Traits = Traits {
    folders: &[
        Folder {
            agent: "Codex",
            variable: Some("CODEX_HOME"),
            usual: Some(".codex"),
            sessions: "sessions",
            each: None,
            annexes: &[],
        },
        Folder {
            agent: "Codex",
            variable: Some("CODEX_HOME"),
            usual: Some(".codex"),
            sessions: "archived_sessions",
            each: None,
            annexes: &[],
        },
    ],
    programs: &["codex"],
    service: Some(Service { argument: "--listen", stop: "codex app-server daemon stop" }),
    // The program keeps the file open and would continue writing to the file that was set aside.
    is_rotatable: false,
    has_names: false,
    line: PhysicalLine::OneRecord,
    omissions: &[Kind::Result, Kind::Boundary, Kind::System, Kind::Note],
    nearby: Nearby::Last,
    interface: Some(Interface::Openai),
    unanswered: Some(Unanswered::Answer { words: "aborted", is_error: false, is_by_turn: false }),
    summary_opening: SUMMARY,
    takes_records: false,
    remarks: read::remarks,
    hooks: Some(&hooks::CodexHooks),
    event: Some(EventField::Session("thread-id")),
    ..Traits::named("codex")
};

impl Identify for Codex {
    fn traits(&self) -> &'static Traits {
        &TRAITS
    }

    fn knows(&self, record: &Fields<'_>) -> bool {
        let has = |key| record.get(key).is_some();
        if has("uuid") || has("parentId") {
            return false;
        }
        match record.text("type").as_deref() {
            Some(_) if has("payload") => has("timestamp"),
            Some(kind) => {
                item_kind(kind, record.get("role"), record.get("content")) != Kind::Meta
                    && !has("message")
            }
            None => has("record_type") || has("id") && has("instructions"),
        }
    }

    fn session(&self, record: Raw<'_>) -> Option<String> {
        match text(record, "type").as_deref() {
            Some("session_meta") => text(record.get("payload")?, "id"),
            None if record.get("instructions").is_some() => text(record, "id"),
            _ => None,
        }
    }

    fn folder(&self, record: Raw<'_>) -> Option<String> {
        (text(record, "type").as_deref() == Some("session_meta"))
            .then(|| text(record.get("payload")?, "cwd"))?
    }

    /// The first `session_meta` is the file's own and names its origin; any other was copied with its history.
    fn ties(&self, session: &str, graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        let mut ties = Vec::new();
        let tie = |kind, other: Option<String>| {
            let other = other.filter(|other| !other.is_empty() && other != session)?;
            Some(Tie { kind, other })
        };
        for place in graph.end().min(METAS).earlier() {
            let Some(entry) = graph.at(place)? else { continue };
            let line = graph.line(entry)?;
            let Some(meta) = Raw::object(&line).and_then(meta) else { continue };
            let [id, forked, parent, source, base] =
                meta.pick(["id", "forked_from_id", "parent_thread_id", "source", "history_base"]);
            // If the first record is another session's, this is a part of that session's file and reveals no ties of this one.
            if place == PlaceNumber::FIRST && string(id).is_some_and(|id| id != session) {
                return Ok(ties);
            }
            let spawn = source.and_then(|source| source.get("subagent")?.get("thread_spawn"));
            let spawner = spawn.and_then(|spawn| text(spawn, "parent_thread_id"));
            ties.extend(tie(TieKind::SubAgent, string(parent).or(spawner)));
            let forked = string(forked).or_else(|| text(base?, "thread_id"));
            ties.extend(tie(TieKind::Fork, forked));
            ties.extend(tie(TieKind::Fork, string(id)));
        }
        Ok(ties)
    }

    fn ordinal(&self, record: Raw<'_>) -> Option<u64> {
        record.get("ordinal")?.u64()
    }

    /// A copy gets a new time.
    fn copied_part<'a>(&self, record: Raw<'a>) -> Option<Raw<'a>> {
        meta(record).is_none().then(|| record.get("payload"))?
    }
}

impl Layout for Codex {
    fn opens_file(&self, record: &Record) -> bool {
        hint(record).0 & OPENS != 0
    }

    fn unresumed(&self, first: Option<&Record>) -> Option<&'static str> {
        let first = first?;
        let (flags, number) = hint(first);
        files::unresumed(flags, number, is_unframed(first))
    }

    fn title_list(&self, file: &FilePath) -> Option<(PathBuf, ReadTitles)> {
        Some((files::home(file)?.join("session_index.jsonl"), |_, held| {
            let lines = held.split(|byte| *byte == b'\n').filter_map(Raw::object);
            let titled = |line| Some([text(line, "id")?, text(line, "thread_name")?]);
            lines.filter_map(titled).collect()
        }))
    }
}

impl Read for Codex {
    fn envelope(&self, record: Raw<'_>) -> Envelope {
        let [payload, time, note, ordinal] =
            record.pick(["payload", "timestamp", write::NOTE, "ordinal"]);
        let (mut kind, flags, mut number) = reading(part(record));
        if flags & OPENS != 0 {
            number = payload.map_or(0, files::refusal);
        }
        if flags & BASE != 0 && ordinal.is_some() {
            number |= COMPLETE;
        }
        if kind == Kind::User && note.is_some() {
            kind = Kind::Note;
        }
        let mut hint = vec![flags];
        let is_framed = types::is_framed(record);
        if number > 0 || !is_framed {
            put_varint(&mut hint, number);
        }
        if !is_framed {
            hint.push(UNFRAMED);
        }
        Envelope { kind, name: None, parent: Link::Before, time: moment(time), hint }
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        let time = moment(record.get("timestamp"));
        match part(record) {
            Part::Item(item) => item_message(item, time).into_iter().collect(),
            Part::Compacted(payload) => {
                if let Some(history) = history(payload) {
                    return history.items().filter_map(|item| item_message(item, time)).collect();
                }
                let summary = Block::Text(text(payload, "message").unwrap_or_default());
                vec![Message { is_summary: true, ..said(Role::User, vec![summary], time) }]
            }
            Part::Event(_) | Part::Other(_) | Part::Refused => Vec::new(),
        }
    }

    /// Drops empty parts of a result, and results in a history whose call is of another kind; truncates long results; replaces
    /// images that are not sent with text.
    fn sent(&self, record: Raw<'_>, edits: &[Edited<'_>]) -> Vec<Message> {
        let items = match (edits, part(record)) {
            ([Edited::Turns(turns)], _) => Some(left_of(record, *turns)),
            (_, Part::Compacted(payload)) => history(payload).map(|items| items.items().collect()),
            _ => None,
        };
        let is_history = items.is_some();
        let mut messages = items.map_or_else(
            || self.messages(record),
            |items| {
                let time = moment(record.get("timestamp"));
                let items = of_their_kinds(items).into_iter();
                items.filter_map(|item| item_message(item, time)).collect()
            },
        );
        for message in &mut messages {
            images::leave_out(&mut message.blocks);
        }
        let blocks = messages.iter_mut().flat_map(|message| &mut message.blocks);
        for block in blocks {
            let Block::Result { blocks, .. } = block else { continue };
            if blocks.len() > 1 {
                blocks.retain(|part| !matches!(part, Block::Text(text) if text.is_empty()));
            }
            if !is_history {
                long::cut(blocks);
            }
        }
        messages
    }

    fn headline(&self, record: Raw<'_>) -> Option<String> {
        let Part::Item(item) = part(record) else { return None };
        headline(item)
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        let sent = match part(record) {
            Part::Item(item) => answer(item).into_iter().collect(),
            Part::Compacted(payload) => {
                history(payload).into_iter().flat_map(Raw::items).filter_map(answer).collect()
            }
            Part::Event(_) | Part::Other(_) | Part::Refused => Vec::new(),
        };
        // The provider refuses a call without the reasoning before it.
        Answers { sent, ..Answers::default() }
    }

    fn earlier(&self, record: Raw<'_>) -> Vec<Earlier> {
        let answer = match part(record) {
            Part::Compacted(_) => return vec![Earlier::new(How::Compacted)],
            Part::Item(item) => answer(item),
            Part::Event(_) | Part::Other(_) | Part::Refused => None,
        };
        let Some(answer) = answer else { return Vec::new() };
        let told = answer.texts.iter().filter_map(|piece| omitted(&piece.text()));
        told.map(|size| Earlier {
            call: Some(answer.call.clone()),
            size: Some(size),
            ..Earlier::new(How::Cut)
        })
        .collect()
    }

    fn tells(&self, record: &Record) -> Option<Telling> {
        match hint(record).0 {
            flags if flags & MODEL != 0 => Some(Telling::Model),
            flags if flags & WINDOW != 0 => Some(Telling::Figures),
            flags if flags & OPENS != 0 => Some(Telling::Setup),
            _ => None,
        }
    }

    fn told(&self, record: Raw<'_>) -> Told {
        let [class, payload] = record.pick(["type", "payload"]);
        let told = string(class).zip(payload).map(|(class, payload)| told(&class, payload));
        Told { scene: scene(record), ..told.unwrap_or_default() }
    }
}
