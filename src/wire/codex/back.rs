//! Goes back by appending: rolls back turns, and repeats items that should be read again.
//!
//! ```text
//! the file  q1 a1 q2 a2               to a1:       rolled_back 1
//!                                     into a turn: rolled_back 1, q2
//! the file  q1 a1 q2 a2 rolled_back 1 to a2:       q2 a2
//! ```
//!
//! A rollback also drops whole tasks with the histories in them. If that would drop too much, a `compacted` record with a
//! history, in a task of its own, replaces everything before it with the wanted context.

use std::collections::BTreeSet;

use serde_json::json;

use super::{
    Codex,
    hint::{BASE, OPENS, ROLLBACK, TURN, hint, prepares},
    read::{Part, SUMMARY, history, item_message, left_of, own_words, part},
    segment, walk,
    write::{self, Lines},
};
use crate::{
    json::{self, Raw},
    model::{EntryNumber, Kind, Record},
    wire::{
        Back, Draft, Edit, Failure, Framed, Graph, Invalid, Onward, Segment, Setting, Write,
        compaction::{self, Compaction},
        fields::{line, text},
    },
};

impl Write for Codex {
    fn own_words(&self, text: &str) -> [usize; 2] {
        own_words(text)
    }

    fn replaces_all(&self, record: &Record) -> bool {
        hint(record).0 & BASE != 0
    }

    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
        write::record(draft, setting)
    }

    fn framed(&self, records: Vec<Vec<u8>>, setting: &Setting) -> Vec<Framed> {
        write::turns(records, setting)
    }

    /// Writes the lines that replace everything before them with a context, and add a note after it.
    fn whole_context(
        &self,
        context: &[(Vec<u8>, Option<Edit>)],
        note: Option<&str>,
        setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Invalid> {
        let items = context.iter().flat_map(|(line, edit)| match edit {
            Some(Edit::Turns(turns)) => {
                let items = Raw::object(line).map(|record| left_of(record, *turns));
                items.into_iter().flatten().map(|item| item.bytes().to_vec()).collect()
            }
            Some(Edit::Content(_) | Edit::Later) | None => items_of(line),
        });
        let items: Vec<Vec<u8>> = items.collect();
        let mut lines = compacted("", &items, setting);
        if let Some(note) = note {
            lines.note(note, setting)?;
        }
        Ok(Some(lines.into_lines()))
    }

    /// Returns the lines that move the agent to the end of a path by rolling back turns, and add a note there; None if no number of
    /// turns achieves that.
    fn branch(
        &self,
        graph: &dyn Graph,
        back: &Back<'_>,
        setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        // Entries after the head that are not part of the conversation are already there.
        let stood = [back.stood, &walk::behind(graph, back.from)?].concat();
        let Some((turns, again)) = forth(&said(graph, &stood)?, &said(graph, back.path)?) else {
            return Ok(None);
        };
        let mut lines = Lines::behind(setting);
        if turns > 0 {
            lines.event(&json!({ "type": "thread_rolled_back", "num_turns": turns }));
        }
        for entry in again {
            lines.add(graph.line(entry)?);
        }
        if let Some(note) = back.note {
            lines.note(note, setting)?;
        }
        Ok(Some(lines.into_lines()))
    }

    fn segment(&self, onward: &Onward<'_>, setting: &Setting) -> Result<Option<Segment>, Failure> {
        segment::lines(onward, setting)
    }

    /// Writes the lines that replace everything before them with a summary and the kept messages.
    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        [setting, _]: &[Setting; 2],
    ) -> Result<Option<compaction::Lines>, Failure> {
        let mut items = Vec::new();
        let add = |items: &mut Vec<Vec<u8>>, said: &[compaction::Said]| -> Result<(), Failure> {
            for said in said {
                // Items without content are not messages.
                let line = graph.line(said.entry)?;
                let says = |item: &Vec<u8>| {
                    Raw::object(item).is_some_and(|item| item_message(item, None).is_some())
                };
                items.extend(items_of(&line).into_iter().filter(says).nth(said.nth));
            }
            Ok(())
        };
        add(&mut items, compaction.system)?;
        let summary = format!("{SUMMARY}{}", compaction.summary);
        items.push(asked(&summary));
        add(&mut items, compaction.kept)?;
        let lines = compacted(&summary, &items, setting).into_lines();
        Ok(Some(compaction::Lines::More(lines)))
    }
}

/// An entry that can be repeated.
struct Said {
    entry: EntryNumber,
    kind: Kind,
    flags: u8,
}

impl Said {
    fn is_conversation(&self) -> bool {
        self.kind.is_conversation()
    }

    fn is_turn(&self) -> bool {
        self.is_conversation() && self.flags & TURN != 0
    }

    fn prepares(&self) -> bool {
        prepares(self.kind, self.flags)
    }

    /// Returns true for a compaction that drops messages without a replacement.
    fn leaves_out(&self) -> bool {
        self.kind == Kind::Boundary && self.flags & BASE == 0
    }
}

fn said(graph: &dyn Graph, path: &[EntryNumber]) -> Result<Vec<Said>, Failure> {
    let mut found = Vec::new();
    for &entry in path {
        let record = graph.record(entry)?;
        let (flags, _) = hint(&record);
        if record.kind != Kind::Opaque && flags & (ROLLBACK | OPENS) == 0 {
            found.push(Said { entry, kind: record.kind, flags });
        }
    }
    Ok(found)
}

/// Returns how many turns to roll back and which entries to repeat; None if rolling back does not work.
fn forth(stood: &[Said], wanted: &[Said]) -> Option<(u64, Vec<EntryNumber>)> {
    let same = stood.iter().zip(wanted).take_while(|(a, b)| a.entry == b.entry);
    let common = same.count();
    let (mut turns, mut from, mut stays) = (0, common, 0);
    let goes = stood.get(common..)?;
    if goes.iter().any(Said::is_conversation) {
        // Whole turns are dropped, with the records that prepare the first of them.
        let first =
            goes.iter().position(|said| said.is_conversation() && !said.prepares())? + common;
        let turn = stood.get(..=first)?.iter().rposition(Said::is_turn)?;
        let dropped = stood.get(turn..)?;
        if dropped.iter().any(Said::leaves_out) {
            return None;
        }
        turns = dropped.iter().filter(|said| said.is_turn()).count() as u64;
        let above = stood.get(..turn)?;
        let prepared = above.iter().rev().take_while(|said| said.prepares()).count();
        from = common.min(turn - prepared);
        // The part of the conversation before the first turn is never dropped.
        if !above.iter().any(Said::is_turn) {
            stays = turn.min(common);
        }
    }
    let again = wanted.iter().enumerate().skip(from);
    let again = again.filter(|(n, said)| *n >= stays || !said.is_conversation());
    let only_prepares = |said: &Said| said.prepares() && !said.is_conversation();
    // Never start a task without content. A rollback leaves what prepared the turns that it drops, so of several records of a kind
    // only the last one is repeated; else their number would double each time.
    let again = again.rev().map(|(_, said)| said).skip_while(|said| only_prepares(said));
    let (mut repeated, mut prepared) = (Vec::new(), BTreeSet::new());
    for said in again {
        if !only_prepares(said) {
            prepared.clear();
        } else if !prepared.insert(said.flags) {
            continue;
        }
        repeated.push(said.entry);
    }
    repeated.reverse();
    Some((turns, repeated))
}

/// Returns the items of a record, or of the history it represents.
fn items_of(line: &[u8]) -> Vec<Vec<u8>> {
    let Some(record) = Raw::object(line) else { return Vec::new() };
    match part(record) {
        Part::Item(item) => vec![item.bytes().to_vec()],
        Part::Compacted(payload) => match history(payload) {
            Some(history) => history.items().map(|item| item.bytes().to_vec()).collect(),
            None => vec![asked(&text(payload, "message").unwrap_or_default())],
        },
        Part::Event(_) | Part::Other(_) | Part::Refused => Vec::new(),
    }
}

fn asked(words: &str) -> Vec<u8> {
    let content = json!([{ "type": "input_text", "text": words }]);
    line(&json!({ "type": "message", "role": "user", "content": content }))
}

fn compacted(message: &str, items: &[Vec<u8>], setting: &Setting) -> Lines {
    let mut lines = Lines::behind(setting);
    lines.start();
    let payload = json!({ "message": message });
    let empty = line(&write::envelope("compacted", &payload, setting));
    let history = [&b"["[..], &items.join(&b","[..]), b"]"].concat();
    let payload = json::with_field(&line(&payload), "replacement_history", &history);
    let filled = payload.and_then(|payload| json::with_field(&empty, "payload", &payload));
    lines.add(filled.unwrap_or(empty));
    lines.complete();
    lines
}
