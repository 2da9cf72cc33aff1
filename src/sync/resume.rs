//! Resuming, simulated: the context that an agent would send, before anything is written for it.
//!
//! Invariant: nothing is changed here.

use crate::{
    json::Raw,
    model::{Block, EntryId, EntryNumber, Position, Role},
    session::{Growth, View},
    sync::{SyncError, Workspace, change::Change},
    wire::{Format, Graph},
};

/// A note that is said where the live file is brought.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Note<'a> {
    pub(crate) words: &'a str,
    pub(crate) workspace: &'a Workspace,
}

/// The context that an agent would send at a position.
pub(crate) struct Context {
    pub(crate) position: Position,
    pub(crate) entries: Vec<EntryNumber>,
    /// The id that each line has by itself.
    lines: Vec<EntryId>,
}

impl Context {
    /// Returns the context at a position of a view.
    pub(crate) fn of(
        change: &Change<'_>,
        view: &View<'_>,
        position: Position,
    ) -> Result<Self, SyncError> {
        let entries = match position.head {
            Some(head) => {
                let path = change.before.format.path(view, head, usize::MAX)?.entries;
                change.before.format.context(view, &path)?
            }
            None => Vec::new(),
        };
        Ok(Self { position, lines: view.alone(&entries)?, entries })
    }
}

/// Returns the messages of entries, whatever their records look like.
fn says(
    format: &dyn Format,
    view: &View<'_>,
    entries: &[EntryNumber],
) -> Result<Vec<(Role, Vec<Block>)>, SyncError> {
    let mut said = Vec::new();
    for &entry in entries {
        let line = view.line(entry)?;
        let messages = Raw::object(&line).map(|record| format.messages(record)).unwrap_or_default();
        said.extend(messages.into_iter().map(|message| (message.role, message.blocks)));
    }
    Ok(said)
}

/// Returns where an agent stands that resumes a growth, if it reads the context that is wanted, and a note behind it.
pub(crate) fn reads(
    change: &Change<'_>,
    growth: &Growth,
    wanted: &Context,
    note: Option<Note<'_>>,
) -> Result<Option<Position>, SyncError> {
    let head = change.head(growth)?;
    let position = Position { generation: growth.generation, head, horizon: growth.entries };
    let view = change.ahead(position, growth);
    let mut found = Context::of(change, &view, position)?;
    if let Some(note) = note {
        found.lines.pop();
        let last = found.entries.pop();
        let said = says(change.before.format, &view, &last.into_iter().collect::<Vec<_>>())?;
        let is_note =
            |block: &Block| matches!(block, Block::Text(text) if text.contains(note.words));
        if !said.iter().any(|(_, blocks)| blocks.iter().any(is_note)) {
            return Ok(None);
        }
    }
    if found.lines == wanted.lines {
        return Ok(Some(position));
    }
    let there = says(change.before.format, &change.look(wanted.position), &wanted.entries)?;
    Ok((says(change.before.format, &view, &found.entries)? == there).then_some(position))
}
