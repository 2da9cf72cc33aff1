//! Codex's format: rollouts, one item a line, in order and without ids.
//!
//! ```text
//! new   {timestamp, ordinal?, type, payload}    type: session_meta, turn_context, event_msg, response_item, compacted, ..
//! old   line 1 {id, timestamp, instructions, git?}, then bare items, {record_type: state} between
//! ```
//!
//! Nothing is erased: `thread_rolled_back {num_turns}` drops the newest turns, `compacted {replacement_history}` starts
//! the context anew. A fork begins with copied history, other `session_meta` included; the first one is its own.
//!
//! ```text
//! meta  q1 a1  q2 a2  rolled_back 1  q3 a3       path of a3: meta q1 a1 rolled_back q3 a3, path of a2: meta q1 a1 q2 a2
//!              `---'  leaf: a2
//! ```
//!
//! A turn begins at a user's message or at one of another agent. What stands right before it and only prepares it
//! (fragments, developer's notes, the turn's settings) goes with it, unless it is the first turn.
//!
//! A `compacted` record stands for its whole history: its messages are the items of that history. One without, as old
//! versions wrote it, keeps the user's messages, the newest 20,000 tokens of them, and is itself the summary.
//!
//! A thread may lie in several files, `rollout-<time>-<thread>_<file>.jsonl`: going back begins another one, whose first
//! record names the file that it goes on from by `history_base`, and how many bytes of that belong to it. The newest time
//! in a name tells which file Codex reads. A fork names a file of another thread in the same way.
//!
//! ```text
//! file 1   meta q1 a1 | q2 a2        file 2   meta {history_base: file 1, up to |} q3 a3
//!          path of a3: meta q1 a1 meta q3 a3
//! ```
//!
//! A hint is a byte of flags and a varint: of a rollback how many turns, else the estimated tokens of the words.
//!
//! Invariant: a path is found from its head backwards; what lies before it is not read.

#![deny(clippy::indexing_slicing)]

mod back;
mod files;
mod read;

use serde_json::{Value, json};

use read::{
    Part, SUMMARY_PREFIX, answer, history, item_kind, item_message, omitted, part, reading, said,
    told,
};

use crate::{
    json::Raw,
    model::{Block, Kind, Message, Record, Role, Tie, TieKind, put_varint, take_varint},
    wire::{
        Answers, Back, Base, Before, Beside, Draft, Earlier, Envelope, Failure, FileName, Format,
        Graph, Invalid, Link, Path, Setting, Shelf, Telling, Told,
        compaction::{Compaction, Lines},
        cut::How,
        line, moment, string, text,
    },
};

/// The format of Codex.
#[derive(Clone, Copy, Debug)]
pub struct Codex;

/// A rollback counts it: a turn begins.
const TURN: u8 = 1;
/// It only prepares the turn that follows.
const PREPARES: u8 = 2;
/// It drops turns.
const ROLLBACK: u8 = 4;
/// The context begins anew with it.
const BASE: u8 = 8;
/// A later compaction drops it: a summary that says it is one.
const SUMMARY: u8 = 16;
/// It opens a file.
const OPENS: u8 = 32;
/// It may name the model.
const MODEL: u8 = 64;
/// It may say how much the model takes.
const WINDOW: u8 = 128;

/// Among how many first records a copied one opens the session that it was copied from.
const METAS: u64 = 4;

/// How much of the user's messages a compaction without a history keeps, in tokens.
const KEPT_TOKENS: u64 = 20_000;

/// The field by which a note of undertext is known among the user's messages; Codex does not read it.
const NOTE: &str = "undertext";

impl Format for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn knows(&self, record: Raw<'_>) -> bool {
        let has = |key| record.get(key).is_some();
        if has("uuid") || has("parentId") {
            return false;
        }
        match text(record, "type").as_deref() {
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

    fn rotates(&self) -> bool {
        // The program keeps the file open, and would go on in the one that was set aside.
        false
    }

    fn programs(&self) -> &'static [&'static str] {
        &["codex"]
    }

    /// The first `session_meta` is the file's own and names what it was made of; another one was copied with its history.
    fn ties(&self, session: &str, graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        let mut ties = Vec::new();
        let tie = |kind, other: Option<String>| {
            let other = other.filter(|other| !other.is_empty() && other != session)?;
            Some(Tie { kind, other })
        };
        for place in 0..graph.len().min(METAS) {
            let Some(entry) = graph.at(place)? else { continue };
            let line = graph.line(entry)?;
            let Some(meta) = Raw::object(&line).and_then(meta) else { continue };
            let [id, forked, parent, source, base] =
                meta.pick(["id", "forked_from_id", "parent_thread_id", "source", "history_base"]);
            let spawn = source.and_then(|source| source.get("subagent")?.get("thread_spawn"));
            let spawner = spawn.and_then(|spawn| text(spawn, "parent_thread_id"));
            ties.extend(tie(TieKind::SubAgent, string(parent).or(spawner)));
            let forked = string(forked).or_else(|| text(base?, "thread_id"));
            ties.extend(tie(TieKind::Fork, forked));
            ties.extend(tie(TieKind::Fork, string(id)));
        }
        Ok(ties)
    }

    fn base(&self, record: Raw<'_>) -> Option<Base> {
        files::base(meta(record)?)
    }

    fn file_name(&self, name: &str) -> Option<FileName> {
        files::name(name)
    }

    fn shelves(&self, file: &std::path::Path) -> Vec<Shelf> {
        files::shelves(file)
    }

    fn begins(&self, record: &Record) -> bool {
        hint(record).0 & OPENS != 0
    }

    fn replaces_all(&self, record: &Record) -> bool {
        hint(record).0 & BASE != 0
    }

    fn tells(&self, record: &Record) -> Option<Telling> {
        match hint(record).0 {
            flags if flags & MODEL != 0 => Some(Telling::Model),
            flags if flags & WINDOW != 0 => Some(Telling::Window),
            _ => None,
        }
    }

    fn told(&self, record: Raw<'_>) -> Told {
        let [class, payload] = record.pick(["type", "payload"]);
        string(class).zip(payload).map(|(class, payload)| told(&class, payload)).unwrap_or_default()
    }

    fn ordinal(&self, record: Raw<'_>) -> Option<u64> {
        record.get("ordinal")?.u64()
    }

    /// A copy gets a time of its own.
    fn kept<'a>(&self, record: Raw<'a>) -> Option<Raw<'a>> {
        meta(record).is_none().then(|| record.get("payload"))?
    }

    fn folder(&self, record: Raw<'_>) -> Option<String> {
        (text(record, "type").as_deref() == Some("session_meta"))
            .then(|| text(record.get("payload")?, "cwd"))?
    }

    fn envelope(&self, record: Raw<'_>) -> Envelope {
        let [class, payload, time, note] = record.pick(["type", "payload", "timestamp", NOTE]);
        let (mut kind, flags, number) = reading(part(record, class, payload));
        if kind == Kind::User && note.is_some() {
            kind = Kind::Note;
        }
        let mut hint = vec![flags];
        if number > 0 {
            put_varint(&mut hint, number);
        }
        Envelope { kind, name: None, parent: Link::Before, time: moment(time), hint }
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        let [class, payload, time] = record.pick(["type", "payload", "timestamp"]);
        let time = moment(time);
        match part(record, class, payload) {
            Part::Item(item) => item_message(item, time).into_iter().collect(),
            Part::Compacted(payload) => {
                if let Some(history) = history(payload) {
                    return history.items().filter_map(|item| item_message(item, time)).collect();
                }
                let summary = Block::Text(text(payload, "message").unwrap_or_default());
                vec![Message { is_summary: true, ..said(Role::User, vec![summary], time) }]
            }
            Part::Event(_) | Part::Other(_) => Vec::new(),
        }
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        let [class, payload] = record.pick(["type", "payload"]);
        let sent = match part(record, class, payload) {
            Part::Item(item) => answer(item).into_iter().collect(),
            Part::Compacted(payload) => {
                history(payload).into_iter().flat_map(Raw::items).filter_map(answer).collect()
            }
            Part::Event(_) | Part::Other(_) => Vec::new(),
        };
        Answers { sent, beside: Vec::new() }
    }

    fn tells_earlier(&self) -> bool {
        true
    }

    fn earlier(&self, record: Raw<'_>) -> Vec<Earlier> {
        let [class, payload] = record.pick(["type", "payload"]);
        let answer = match part(record, class, payload) {
            Part::Compacted(_) => return vec![Earlier::new(How::Compacted)],
            Part::Item(item) => answer(item),
            Part::Event(_) | Part::Other(_) => None,
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

    fn head(&self, graph: &dyn Graph) -> Result<Option<u64>, Failure> {
        let seen = replay(graph, graph.len(), |seen| is_conversation(seen.kind))?;
        let last =
            seen.iter().find(|seen| !seen.dropped && is_conversation(seen.kind)).or(seen.first());
        Ok(last.map(|seen| seen.entry))
    }

    fn path(&self, graph: &dyn Graph, head: u64, limit: usize) -> Result<Path, Failure> {
        let Some((graph, place)) = standing(graph, head)? else { return Ok(Path::default()) };
        let mut left = limit;
        let seen = replay(graph, place + 1, |_| {
            left = left.saturating_sub(1);
            left == 0
        })?;
        let kept = seen.into_iter().filter(|seen| !seen.dropped).map(|seen| seen.entry);
        let mut entries: Vec<u64> = kept.take(limit).collect();
        entries.reverse();
        Ok(Path { entries, repairs: Vec::new() })
    }

    fn context(&self, graph: &dyn Graph, path: &[u64]) -> Result<Vec<u64>, Failure> {
        let mut context: Vec<Record> = Vec::new();
        for &entry in path.iter().rev() {
            let record = graph.record(entry)?;
            if is_conversation(record.kind) {
                let is_base = hint(&record).0 & BASE != 0;
                context.push(record);
                if is_base {
                    break;
                }
            }
        }
        context.reverse();
        let mut sent = Vec::new();
        for record in context {
            if record.kind == Kind::Boundary && hint(&record).0 & BASE == 0 {
                sent = kept(sent);
            }
            sent.push(record);
        }
        Ok(sent.into_iter().map(|record| record.n).collect())
    }

    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<u64>, Failure> {
        let seen = replay(graph, graph.len(), |_| false)?;
        let mut leaves: Vec<u64> =
            seen.iter().filter(|seen| seen.dropped && seen.ends).map(|seen| seen.entry).collect();
        leaves.reverse();
        Ok(leaves)
    }

    fn beside(&self) -> Beside {
        Beside::Last
    }

    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
        let message = |role: &str, kind: &str, said: &str| json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": said }] });
        let item = match draft {
            Draft::Message(Role::User, said) => message("user", "input_text", said),
            Draft::Message(Role::System, said) => message("developer", "input_text", said),
            Draft::Message(Role::Assistant, said) => message("assistant", "output_text", said),
            Draft::Answer(said) => message("assistant", "output_text", &said.text()),
            Draft::Message(Role::Tool, _) => {
                return Err(Invalid("a tool's answer needs the id of its call".into()));
            }
            Draft::Note(said) => {
                let mut record =
                    record("response_item", &message("user", "input_text", said), setting);
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
            Draft::Record(_) => {
                return Err(Invalid(
                    "records can be written as they are to native sessions only".into(),
                ));
            }
        };
        Ok(line(&record("response_item", &item, setting)))
    }

    fn anew(&self, context: &[Vec<u8>], setting: &Setting) -> Option<Vec<u8>> {
        Some(back::whole(context, setting))
    }

    fn branch(
        &self,
        graph: &dyn Graph,
        back: &Back<'_>,
        setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        back::lines(graph, back, setting).map(Some)
    }

    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        [setting, _]: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        back::compaction(graph, compaction, setting).map(|line| Some(Lines::More(vec![line])))
    }
}

/// Returns what a record says that opens a session.
fn meta(record: Raw<'_>) -> Option<Raw<'_>> {
    (text(record, "type").as_deref() == Some("session_meta")).then(|| record.get("payload"))?
}

/// Returns the file of a session in which an entry stands, of those that lead to the end of a graph, and its place there.
fn standing(graph: &dyn Graph, entry: u64) -> Result<Option<(&dyn Graph, u64)>, Failure> {
    let mut graph = graph;
    loop {
        if let Some(place) = graph.place(entry)? {
            return Ok(Some((graph, place)));
        }
        let Before::File(before) = graph.before()? else { return Ok(None) };
        graph = before;
    }
}

/// An entry as a replay that runs backwards meets it.
struct Seen {
    entry: u64,
    kind: Kind,
    /// Whether a rollback dropped it.
    dropped: bool,
    /// Whether it is the last of the conversation before a rollback.
    ends: bool,
}

/// The records before a place, the last one first, on through all files that lead there.
struct Backwards<'g> {
    graph: &'g dyn Graph,
    end: u64,
    /// Whether something that cannot be read stands before the first one.
    is_cut_short: bool,
}

impl Backwards<'_> {
    fn next(&mut self) -> Result<Option<Record>, Failure> {
        loop {
            while self.end > 0 {
                self.end -= 1;
                if let Some(entry) = self.graph.at(self.end)? {
                    return self.graph.record(entry).map(Some);
                }
            }
            match self.graph.before()? {
                Before::File(before) => (self.graph, self.end) = (before, before.len()),
                Before::Nothing => return Ok(None),
                Before::Unread => {
                    self.is_cut_short = true;
                    return Ok(None);
                }
            }
        }
    }
}

/// Reads entries from before a place backwards until one that is kept is enough, or to the beginning.
fn replay(
    graph: &dyn Graph,
    end: u64,
    mut enough: impl FnMut(&Seen) -> bool,
) -> Result<Vec<Seen>, Failure> {
    let mut seen: Vec<Seen> = Vec::new();
    // How many turns are still to be dropped.
    let mut pending = 0u64;
    // Where in `seen` what precedes the last dropped turn or rollback begins: it all returns if no turn precedes it.
    let mut since = None;
    let mut trims = false;
    let mut ends = false;
    let mut files = Backwards { graph, end, is_cut_short: false };
    while let Some(record) = files.next()? {
        let (entry, kind) = (record.n, record.kind);
        let (flags, number) = hint(&record);
        if kind == Kind::Opaque {
            continue;
        }
        let is_turn = flags & TURN != 0;
        let mut dropped = pending > 0;
        if flags & ROLLBACK != 0 {
            pending = pending.saturating_add(number);
            ends |= number > 0;
        } else if is_turn && pending > 0 {
            pending -= 1;
            trims = pending == 0;
        } else if trims && prepares(kind, flags) {
            dropped = true;
        } else if is_conversation(kind) {
            trims = false;
        }
        let is_leaf = ends && is_conversation(kind);
        ends &= !is_leaf;
        let one = Seen { entry, kind, dropped, ends: is_leaf };
        let is_enough = !dropped && enough(&one);
        seen.push(one);
        if is_turn {
            since = dropped.then_some(seen.len());
        } else if flags & ROLLBACK != 0 {
            since = since.or(Some(seen.len()));
        }
        if is_enough {
            return Ok(seen);
        }
    }
    // What cannot be read has turns too.
    if let Some(since) = since.filter(|_| !files.is_cut_short) {
        // A history that was put in the place of another goes for good.
        for one in seen.iter_mut().skip(since).filter(|one| one.kind != Kind::Boundary) {
            one.dropped = false;
        }
    }
    Ok(seen)
}

/// Returns what a compaction without a history keeps: the newest of the user's messages.
fn kept(sent: Vec<Record>) -> Vec<Record> {
    let mut left = KEPT_TOKENS;
    let mut kept = Vec::new();
    for record in sent.into_iter().rev() {
        let (flags, tokens) = hint(&record);
        let is_base = flags & BASE != 0;
        let is_users =
            record.kind == Kind::User || record.kind == Kind::Boundary && flags & SUMMARY == 0;
        if is_base || is_users && left > 0 {
            left = left.saturating_sub(tokens);
            kept.push(record);
        }
    }
    kept.reverse();
    kept
}

fn hint(record: &Record) -> (u8, u64) {
    let Some((&flags, mut rest)) = record.hint.split_first() else { return (0, 0) };
    (flags, take_varint(&mut rest).unwrap_or(0))
}

fn is_conversation(kind: Kind) -> bool {
    !matches!(kind, Kind::Meta | Kind::Opaque)
}

fn prepares(kind: Kind, flags: u8) -> bool {
    flags & PREPARES != 0 || matches!(kind, Kind::Note | Kind::System) && flags & TURN == 0
}

fn record(kind: &str, payload: &Value, setting: &Setting) -> Value {
    let mut record = json!({ "timestamp": setting.time.to_string() });
    if let Value::Object(fields) = &mut record {
        let last = setting.beside.as_deref().and_then(ordinal);
        fields.extend(last.map(|last| ("ordinal".to_owned(), json!(last.saturating_add(1)))));
        fields.insert("type".into(), json!(kind));
        fields.insert("payload".into(), payload.clone());
    }
    record
}

/// Returns the number of a record in a file that counts them.
fn ordinal(line: &[u8]) -> Option<u64> {
    Raw::object(line)?.get("ordinal")?.u64()
}
