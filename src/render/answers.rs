//! Answers: which results are shown beneath their calls, and which entries say nothing to a reader.

use std::collections::{BTreeMap, BTreeSet};

use undertext::model::{Block, EntryId, Kind, Message};
use undertext::ops::Line;

use super::harness;

/// Returns the blocks of an entry.
pub(crate) fn blocks(line: &Line) -> impl Iterator<Item = &Block> {
    line.messages.iter().flat_map(Message::parts)
}

/// The results that are shown beneath their calls.
#[derive(Default)]
pub(crate) struct Answers<'a> {
    /// By their calls' ids.
    pub(crate) by_call: BTreeMap<&'a str, (&'a Line, &'a Block)>,
    /// The entries that hold nothing else.
    pub(crate) lines: BTreeSet<EntryId>,
}

impl<'a> Answers<'a> {
    /// Pairs calls with the results behind them.
    pub(crate) fn of(lines: &'a [Line], beneath: &BTreeMap<EntryId, Vec<String>>) -> Self {
        let mut answers = Self::default();
        let mut calls: BTreeSet<&str> = BTreeSet::new();
        for line in lines {
            let mut found = Vec::new();
            let mut is_answer = line.kind == Kind::Result && is_plain(line, beneath);
            for block in line.messages.iter().flat_map(|message| &message.blocks) {
                match block {
                    Block::Call { id, .. } => drop(calls.insert(id)),
                    // Where several calls or results share an id, the first of each belong together.
                    Block::Result { id, .. } if calls.remove(id.as_str()) => {
                        found.push((id.as_str(), (line, block)));
                    }
                    _ => is_answer = false,
                }
            }
            if is_answer && !found.is_empty() {
                answers.by_call.extend(found);
                answers.lines.insert(line.id);
            }
        }
        answers
    }
}

/// Returns whether an entry has nothing before it, behind it or beneath it.
pub(crate) fn is_plain(line: &Line, beneath: &BTreeMap<EntryId, Vec<String>>) -> bool {
    let is_marked = line.checkpoint.is_some() || !line.marks.is_empty();
    !is_marked && line.damage.is_none() && !beneath.contains_key(&line.id)
}

/// Returns whether an entry is a record of the agent's own, which says nothing to a reader.
pub(crate) fn is_own(line: &Line) -> bool {
    let is_empty = |block: &Block| match block {
        Block::Text(text) => text.trim().is_empty(),
        Block::Thinking(thinking) => thinking.is_redacted || thinking.text.trim().is_empty(),
        Block::Other { .. } => true,
        _ => false,
    };
    let text = || line.messages.iter().map(Message::text).collect::<String>();
    match line.kind {
        _ if blocks(line).all(is_empty) => line.kind != Kind::Boundary,
        Kind::System => !harness::is_remark(&text()),
        Kind::Note => blocks(line).all(|b| matches!(b, Block::Text(_))) && harness::is_own(&text()),
        _ => false,
    }
}
