//! Compact: writes a boundary and a summary, at the end of the file or at the beginning of a successor.
//!
//! Invariant: a compaction is never written unless an agent would resume the summary, the preserved messages, and nothing else.

use crate::{
    archive::{Misread, SyncError},
    change::{
        draft::{Change, live::append_live},
        goal::{Goal, reach, setting::line_start},
    },
    json::Raw,
    model::{Block, EntryId, EntryNumber, Position, Role},
    session::Growth,
    wire::Graph,
};

/// A compaction to write.
pub(crate) struct Compaction {
    /// The position of the branch.
    pub(crate) from: Position,
    /// The lines, each with its line feed.
    pub(crate) lines: Vec<u8>,
    /// Where to write them.
    pub(crate) place: Place,
    /// How many of the preserved messages come before the summary.
    pub(crate) system: usize,
    /// The preserved messages, which an agent must read in addition to the summary.
    pub(crate) stays: Vec<(Role, Vec<Block>)>,
    /// The summary.
    pub(crate) summary: String,
}

/// Where to write a compaction.
pub(crate) enum Place {
    /// At the end of the live file.
    Behind,
    /// In a successor, after the preserved part of the old file if there is one; `again` has the entry that each line repeats.
    Successor { held: Option<Position>, again: Vec<Option<EntryNumber>> },
}

impl Goal for Compaction {
    /// The entry of the summary.
    type Reached = EntryId;

    fn prepare(self, change: &mut Change<'_>) -> Result<(EntryId, Option<Position>), SyncError> {
        let (position, summary) = match &self.place {
            Place::Behind => {
                let mut growth = change.growth(self.from.generation)?;
                let more = [line_start(&growth), self.lines.clone()].concat();
                change.read_bytes(&mut growth, &more)?;
                let (position, summary) = self.check(change, &growth)?;
                let end = growth.length();
                change.grown(growth);
                append_live(change, more, end)?;
                (position, summary)
            }
            Place::Successor { held, again } => {
                change.is_replay = held.is_none();
                let growth = reach::successor_with(change, *held, &self.lines)?;
                let (position, summary) = self.check(change, &growth)?;
                for (&entry, again) in growth.sequence().iter().zip(again) {
                    if let Some(origin) = again.filter(|origin| *origin != entry) {
                        change.stand_for(entry, origin)?;
                    }
                }
                change.grown(growth);
                (position, summary)
            }
        };
        Ok((change.id_of(summary)?, Some(position)))
    }
}

impl Compaction {
    /// Returns the position at which an agent would resume a growth, and the summary's entry. Fails unless the agent reads the
    /// summary, the preserved messages, and nothing else.
    fn check(
        &self,
        change: &Change<'_>,
        growth: &Growth,
    ) -> Result<(Position, EntryNumber), SyncError> {
        let position = change.end_of(growth)?;
        let view = change.ahead(position, growth);
        let format = change.before.format;
        if position.head.is_none() {
            return Err(SyncError::Misread(Misread::Nothing));
        }
        let mut summary = None;
        let mut found = 0;
        for entry in view.sending()?.sent {
            let line = view.line(entry)?;
            let messages = Raw::object(&line).map(|record| format.messages(record));
            for message in messages.unwrap_or_default() {
                let is_summary = message.is_summary && message.text().contains(&self.summary);
                if is_summary && summary.is_none() && found <= self.system {
                    summary = Some(entry);
                } else if self.stays.get(found).is_some_and(|(role, blocks)| {
                    (message.role, &message.blocks) == (*role, blocks)
                }) {
                    found += 1;
                } else {
                    return Err(SyncError::Misread(Misread::Otherwise));
                }
            }
        }
        match summary {
            Some(summary) if found == self.stays.len() => Ok((position, summary)),
            _ => Err(SyncError::Misread(Misread::Less)),
        }
    }
}
