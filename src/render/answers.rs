//! Answers: decides which results are shown under their calls, and which entries are not shown to a reader.

use std::collections::BTreeMap;

use undertext::model::{Block, EntryId, EntryNumber, EntrySet, Kind, Message};
use undertext::verbs::Line;

use super::harness;

pub(crate) fn blocks(line: &Line) -> impl Iterator<Item = &Block> {
    line.messages.iter().flat_map(Message::parts)
}

/// The position of a block: its entry, and its index among the entry's blocks.
type At = (EntryNumber, usize);

/// Pairs calls with the results shown under them, entry by entry.
///
/// Call ids may repeat within an answer and later, so calls are identified by position.
#[derive(Default)]
pub(crate) struct Pairs {
    /// Calls without a result so far, in order, by id. Each comes with the number of its answer.
    open: BTreeMap<String, Vec<(usize, At)>>,
    /// The number of the model's answers that have ended.
    answers: usize,
    /// The position of each call's result, by the call's position.
    by_call: BTreeMap<At, At>,
    /// The entries that consist only of such results.
    lines: EntrySet,
}

impl Pairs {
    /// Pairs calls with the results in the next entry.
    pub(crate) fn see(&mut self, line: &Line, beneath: &BTreeMap<EntryId, Vec<String>>) {
        let said = || line.messages.iter().flat_map(|message| &message.blocks);
        let mut found = Vec::new();
        let mut is_answer = line.kind == Kind::Result
            && is_plain(line, beneath)
            && said().all(|block| matches!(block, Block::Result { .. }));
        for (nth, block) in blocks(line).enumerate() {
            match block {
                Block::Call { id, .. } => {
                    let call = (self.answers, (line.n, nth));
                    self.open.entry(id.clone()).or_default().push(call);
                }
                Block::Result { id, .. } => match self.take(id) {
                    Some(call) => found.push((call, (line.n, nth))),
                    None => is_answer = false,
                },
                _ => {}
            }
        }
        if matches!(line.kind, Kind::Result | Kind::User) {
            self.answers += 1;
        }
        if is_answer && !found.is_empty() {
            self.by_call.extend(found);
            self.lines.insert(line.n);
        }
    }

    /// Removes and returns the call that the next result of this id answers: the first one of the newest answer that has any.
    fn take(&mut self, id: &str) -> Option<At> {
        let open = self.open.get_mut(id)?;
        let (newest, _) = *open.last()?;
        let first = open.iter().position(|(answer, _)| *answer == newest)?;
        let (_, call) = open.remove(first);
        if open.is_empty() {
            self.open.remove(id);
        }
        Some(call)
    }

    /// Returns the entries with the results of the calls in these entries.
    pub(crate) fn wanted(&self, lines: &[Line]) -> Vec<EntryNumber> {
        let calls =
            lines.iter().flat_map(|line| self.by_call.range((line.n, 0)..=(line.n, usize::MAX)));
        calls.map(|(_, (entry, _))| *entry).collect::<EntrySet>().iter().collect()
    }

    /// Returns the results in these entries.
    pub(crate) fn answers<'a>(&'a self, lines: &'a [Line]) -> Answers<'a> {
        let held = lines.iter().filter(|line| self.lines.contains(line.n));
        let held = held.map(|line| (line.n, (line, blocks(line).collect()))).collect();
        Answers { by_call: &self.by_call, held, lines: &self.lines }
    }
}

/// The results shown under their calls.
pub(crate) struct Answers<'a> {
    by_call: &'a BTreeMap<At, At>,
    /// The entries that contain the results, with their blocks.
    held: BTreeMap<EntryNumber, (&'a Line, Vec<&'a Block>)>,
    /// The entries that consist only of such results.
    pub(crate) lines: &'a EntrySet,
}

impl<'a> Answers<'a> {
    /// Returns the result of the call at this block of an entry, and the entry that contains it.
    pub(crate) fn of(&self, line: &Line, nth: usize) -> Option<(&'a Line, &'a Block)> {
        let (entry, at) = self.by_call.get(&(line.n, nth))?;
        let (held, blocks) = self.held.get(entry)?;
        Some((held, blocks.get(*at)?))
    }
}

/// Returns true if nothing is shown before, after or under an entry: no checkpoint, mark, damage or remark.
pub(crate) fn is_plain(line: &Line, beneath: &BTreeMap<EntryId, Vec<String>>) -> bool {
    let is_marked = line.checkpoint.is_some() || !line.marks.is_empty();
    !is_marked && line.damage.is_none() && !line.id.is_some_and(|id| beneath.contains_key(&id))
}

/// Returns true if an entry is a record for the agent's own use, with nothing for a reader.
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
