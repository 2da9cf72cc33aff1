//! Going elsewhere by appending: turns are rolled back, and items that are to be read again are said again.
//!
//! ```text
//! the file  q1 a1 q2 a2               to a1:       rolled_back 1
//!                                     into a turn: rolled_back 1, q2
//! the file  q1 a1 q2 a2 rolled_back 1 to a2:       q2 a2
//! ```
//!
//! Where a compaction without a history lies between, no rollback brings back the items that it left out: the context
//! is put in its place as a whole, by a `compacted` record with a history.

use serde_json::json;

use super::{
    hint::{BASE, PREPARES, TURN, hint, is_conversation, prepares},
    read::{Part, SUMMARY_PREFIX, history, item_message, part},
    walk,
    write::{self, ordinal},
};
use crate::{
    json::{self, Raw},
    model::{EntryNumber, Kind},
    wire::{
        Back, Draft, Failure, Graph, Setting,
        compaction::{self, Compaction},
        fields::{line, text},
    },
};

/// Returns the lines that take the agent to the end of a path, and say a note there.
pub(super) fn lines(
    graph: &dyn Graph,
    back: &Back<'_>,
    setting: &Setting,
) -> Result<Vec<Vec<u8>>, Failure> {
    let stood = match back.from {
        Some(from) => walk::path(graph, from, usize::MAX)?.entries,
        None => Vec::new(),
    };
    let mut setting = setting.clone();
    let mut lines = Vec::new();
    let say = |lines: &mut Vec<Vec<u8>>, setting: &mut Setting, line: Vec<u8>| {
        if setting.nearby.as_deref().and_then(ordinal).is_some() {
            setting.nearby = Some(line.clone());
        }
        lines.push(line);
    };
    if let Some((turns, again)) = forth(&said(graph, &stood)?, &said(graph, back.path)?) {
        if turns > 0 {
            let payload = json!({ "type": "thread_rolled_back", "num_turns": turns });
            let rollback = line(&write::envelope("event_msg", &payload, &setting));
            say(&mut lines, &mut setting, rollback);
        }
        for entry in again {
            let again = numbered(graph.line(entry)?, &setting);
            say(&mut lines, &mut setting, again);
        }
    } else {
        let context = walk::context(graph, back.path)?;
        let context = context.into_iter().map(|entry| graph.line(entry));
        let whole = whole(&context.collect::<Result<Vec<_>, _>>()?, &setting);
        say(&mut lines, &mut setting, whole);
    }
    if let Some(note) = back.note {
        lines.push(write::record(&Draft::Note(note.to_owned()), &setting)?);
    }
    Ok(lines)
}

/// Returns a line that is said again, with the number that it has in its new place.
fn numbered(line: Vec<u8>, setting: &Setting) -> Vec<u8> {
    let next = setting.nearby.as_deref().and_then(ordinal).map(|last| last.saturating_add(1));
    let next = next.filter(|_| ordinal(&line).is_some());
    let counted = next.and_then(|n| json::with_field(&line, "ordinal", n.to_string().as_bytes()));
    counted.unwrap_or(line)
}

/// An entry of the conversation, or one that prepares a turn.
struct Said {
    entry: EntryNumber,
    is_turn: bool,
    prepares: bool,
    /// Whether it is a compaction that leaves things out for good.
    leaves_out: bool,
}

fn said(graph: &dyn Graph, path: &[EntryNumber]) -> Result<Vec<Said>, Failure> {
    let mut found = Vec::new();
    for &entry in path {
        let record = graph.record(entry)?;
        let (flags, _) = hint(&record);
        if is_conversation(record.kind) || flags & PREPARES != 0 {
            found.push(Said {
                entry,
                is_turn: flags & TURN != 0,
                prepares: prepares(record.kind, flags),
                leaves_out: record.kind == Kind::Boundary && flags & BASE == 0,
            });
        }
    }
    Ok(found)
}

/// Returns how many turns are to be dropped and which entries are to be said again; None if dropping turns does not do.
fn forth(stood: &[Said], wanted: &[Said]) -> Option<(u64, Vec<EntryNumber>)> {
    let same = stood.iter().zip(wanted).take_while(|(a, b)| a.entry == b.entry);
    let mut common = same.count();
    let at = |n: usize| stood.get(n);
    if common < stood.len() {
        // Whole turns are dropped, with what prepares the first of them.
        let begins = |n: usize| stood.iter().take(n + 1).rposition(|said| said.is_turn);
        let rest = stood.iter().skip(common).find(|said| !said.prepares);
        if rest.is_some_and(|said| !said.is_turn) {
            common = begins(common).unwrap_or(0);
        }
        while common > 0 && at(common - 1).is_some_and(|said| said.prepares) {
            common -= 1;
        }
    }
    let dropped = stood.get(common..).unwrap_or_default();
    if dropped.iter().any(|said| said.leaves_out) {
        return None;
    }
    let turns = dropped.iter().filter(|said| said.is_turn).count() as u64;
    if turns == 0 && dropped.iter().any(|said| !said.prepares) {
        return None;
    }
    let again = wanted.get(common..).unwrap_or_default().iter().map(|said| said.entry);
    Some((turns, again.collect()))
}

/// Writes a record that puts a context in the place of all before it.
pub(super) fn whole(context: &[Vec<u8>], setting: &Setting) -> Vec<u8> {
    let items: Vec<Vec<u8>> = context.iter().flat_map(|line| items_of(line)).collect();
    compacted("", &items, setting)
}

/// Writes a record that puts a summary, and the kept messages, in the place of all before it.
pub(super) fn compaction(
    graph: &dyn Graph,
    compaction: &Compaction<'_>,
    setting: &Setting,
) -> Result<Vec<u8>, Failure> {
    let mut items = Vec::new();
    let add = |items: &mut Vec<Vec<u8>>, said: &[compaction::Said]| -> Result<(), Failure> {
        for said in said {
            // Items that say nothing are no messages.
            let line = graph.line(said.entry)?;
            let says = |item: &Vec<u8>| {
                Raw::object(item).is_some_and(|item| item_message(item, None).is_some())
            };
            items.extend(items_of(&line).into_iter().filter(says).nth(said.nth));
        }
        Ok(())
    };
    add(&mut items, compaction.system)?;
    let summary = format!("{SUMMARY_PREFIX}.\n{}", compaction.summary);
    items.push(asked(&summary));
    add(&mut items, compaction.kept)?;
    Ok(compacted(&summary, &items, setting))
}

/// Returns the items that a record carries, or stands for.
fn items_of(line: &[u8]) -> Vec<Vec<u8>> {
    let Some(record) = Raw::object(line) else { return Vec::new() };
    let [class, payload] = record.pick(["type", "payload"]);
    match part(record, class, payload) {
        Part::Item(item) => vec![item.bytes().to_vec()],
        Part::Compacted(payload) => match history(payload) {
            Some(history) => history.items().map(|item| item.bytes().to_vec()).collect(),
            None => vec![asked(&text(payload, "message").unwrap_or_default())],
        },
        Part::Event(_) | Part::Other(_) => Vec::new(),
    }
}

fn asked(words: &str) -> Vec<u8> {
    let content = json!([{ "type": "input_text", "text": words }]);
    line(&json!({ "type": "message", "role": "user", "content": content }))
}

fn compacted(message: &str, items: &[Vec<u8>], setting: &Setting) -> Vec<u8> {
    let payload = json!({ "message": message });
    let empty = line(&write::envelope("compacted", &payload, setting));
    let history = [&b"["[..], &items.join(&b","[..]), b"]"].concat();
    let payload = json::with_field(&line(&payload), "replacement_history", &history);
    let filled = payload.and_then(|payload| json::with_field(&empty, "payload", &payload));
    filled.unwrap_or(empty)
}
