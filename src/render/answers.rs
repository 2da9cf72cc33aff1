//! Answers: which results are shown beneath their calls, and which entries say nothing to a reader.

use std::collections::{BTreeMap, BTreeSet};

use undertext::model::{Block, EntryId, EntryNumber, EntrySet, Kind, Message};
use undertext::ops::Line;

use super::harness;

/// Returns the blocks of an entry.
pub(crate) fn blocks(line: &Line) -> impl Iterator<Item = &Block> {
    line.messages.iter().flat_map(Message::parts)
}

/// Which calls have their results shown beneath them, gathered entry by entry.
#[derive(Default)]
pub(crate) struct Pairs {
    /// The calls that no result was met for.
    open: BTreeSet<String>,
    /// The entry that holds the result of each call, by the call's id.
    by_call: BTreeMap<String, EntryNumber>,
    /// The entries that hold nothing else.
    lines: EntrySet,
}

impl Pairs {
    /// Pairs calls with the results in the entry behind them.
    pub(crate) fn see(&mut self, line: &Line, beneath: &BTreeMap<EntryId, Vec<String>>) {
        let mut found = Vec::new();
        let mut is_answer = line.kind == Kind::Result && is_plain(line, beneath);
        for block in line.messages.iter().flat_map(|message| &message.blocks) {
            match block {
                Block::Call { id, .. } => drop(self.open.insert(id.clone())),
                // Where several calls or results share an id, the first of each belong together.
                Block::Result { id, .. } if self.open.remove(id) => found.push(id),
                _ => is_answer = false,
            }
        }
        if is_answer && !found.is_empty() {
            self.by_call.extend(found.into_iter().map(|id| (id.clone(), line.n)));
            self.lines.insert(line.n);
        }
    }

    /// Returns the entries that hold the results of the calls in these entries.
    pub(crate) fn wanted(&self, lines: &[Line]) -> Vec<EntryNumber> {
        let calls = lines.iter().flat_map(blocks).filter_map(|block| match block {
            Block::Call { id, .. } => self.by_call.get(id),
            _ => None,
        });
        calls.copied().collect::<EntrySet>().iter().collect()
    }

    /// Returns the results in these entries.
    pub(crate) fn answers<'a>(&'a self, lines: &'a [Line]) -> Answers<'a> {
        let mut by_call = BTreeMap::new();
        for line in lines.iter().filter(|line| self.lines.contains(line.n)) {
            for block in line.messages.iter().flat_map(|message| &message.blocks) {
                if let Block::Result { id, .. } = block
                    && self.by_call.get(id) == Some(&line.n)
                {
                    by_call.insert(id.as_str(), (line, block));
                }
            }
        }
        Answers { by_call, lines: &self.lines }
    }
}

/// The results that are shown beneath their calls.
pub(crate) struct Answers<'a> {
    /// By their calls' ids.
    pub(crate) by_call: BTreeMap<&'a str, (&'a Line, &'a Block)>,
    /// The entries that hold nothing else.
    pub(crate) lines: &'a EntrySet,
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
