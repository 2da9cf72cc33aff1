//! Adding: records are written at the end of the current branch, in the generation that the live file holds.
//!
//! Invariant: a record that was cut stands for the whole one, which lies in no generation.

use crate::{
    model::{CheckpointNumber, Cutting, EntryId, EntryNumber, Position, line},
    sync::{SyncError, change::Change, goal::Goal, setting::line_start},
};

/// Records to add, in order.
pub(crate) struct Add {
    pub(crate) records: Vec<NewRecord>,
}

/// A record to add.
pub(crate) struct NewRecord {
    /// Its line.
    pub(crate) line: Vec<u8>,
    /// The whole line and its cutting, if the line above is a cut one.
    pub(crate) whole: Option<(Vec<u8>, Cutting)>,
}

impl NewRecord {
    /// Returns a record that is not cut.
    pub(crate) fn whole(line: Vec<u8>) -> Self {
        Self { line, whole: None }
    }
}

/// The result of an addition.
#[derive(Default)]
pub(crate) struct Added {
    /// The entries, in the order of the records.
    pub(crate) entries: Vec<(EntryNumber, EntryId)>,
    /// The checkpoints that were given to turns.
    pub(crate) checkpoints: Vec<CheckpointNumber>,
}

impl Goal for Add {
    type Reached = Added;

    fn prepare(self, change: &mut Change<'_>) -> Result<(Added, Option<Position>), SyncError> {
        let Some(position) = change.position() else { return Err(SyncError::Nothing("append to")) };
        let mut growth = change.growth(position.generation)?;
        let mut part = line_start(&growth);
        let mut bytes = Vec::new();
        let mut entries = Vec::with_capacity(self.records.len());
        for record in self.records {
            let whole = record.whole.as_ref();
            let whole = whole.and_then(|(whole, cut)| {
                Some((line::split(whole, false, false).next()?, cut.clone()))
            });
            let origin = match &whole {
                Some((whole, _)) => Some(change.aside(&growth, whole)?),
                None => None,
            };
            part.extend_from_slice(&record.line);
            part.push(b'\n');
            change.read_bytes(&mut growth, &part)?;
            bytes.append(&mut part);
            let entry = growth.last.unwrap_or_default();
            if let (Some(origin), Some((whole, cut))) = (origin, whole) {
                change.replace(entry.0, origin, &whole)?;
                change.cut(entry.0, cut);
            }
            entries.push(entry);
        }
        // An agent may well resume elsewhere than at the last record.
        let head = match change.before.attached() {
            Some(_) => change.head(&growth)?,
            None => growth.last.map(|(n, _)| n),
        };
        let position = Position { head, horizon: growth.entries, ..position };
        let end = growth.length();
        change.grown(growth);
        change.append_live(bytes, end)?;
        Ok((Added { entries, checkpoints: change.checkpoints() }, Some(position)))
    }
}
