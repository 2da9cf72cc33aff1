//! Opened segments: the last ones that were looked at stay unpacked, for a line is near to those read before it.

use std::sync::Arc;

use rusqlite::Connection;

use super::pack::{SEGMENT, Segment, Unpacker};
use crate::store::StoreError;

/// How many bytes of opened segments are kept at hand.
const OPEN: usize = 12 << 20;
/// The same for a connection that writes, which reads again what it changes: all of most sessions.
const OPEN_TO_WRITE: usize = 2 * OPEN;

/// The segments at hand, the one looked at last first.
#[derive(Default)]
pub(super) struct Opened {
    segments: Vec<Arc<Segment>>,
    unpacker: Unpacker,
    /// The room of one that was left: to ask the system for room again and again takes nearly as long as to unpack.
    spare: Vec<u8>,
    keeps_more: bool,
}

impl Opened {
    /// Keeps more at hand, for a connection that writes.
    pub(super) fn keep_more(&mut self) {
        self.keeps_more = true;
    }

    /// Returns the segment in which a line lies that lies in one.
    pub(super) fn get(&mut self, db: &Connection, line: i64) -> Result<Arc<Segment>, StoreError> {
        let holds = |segment: &Arc<Segment>| (segment.first..segment.end()).contains(&line);
        if let Some(at) = self.segments.iter().position(holds) {
            if at > 0 {
                let segment = self.segments.remove(at);
                self.segments.insert(0, segment);
            }
            return Ok(Arc::clone(&self.segments[0]));
        }
        let mut find = db.prepare_cached(&format!(
            "SELECT {} FROM segment WHERE key <= ? ORDER BY key DESC LIMIT 1",
            Segment::COLUMNS
        ))?;
        let mut rows = find.query([line])?;
        let none = || StoreError::corrupt(format!("line {line}"), "it lies in no segment");
        let row = rows.next()?.ok_or_else(none)?;
        let spare = std::mem::take(&mut self.spare);
        let segment = Arc::new(Segment::read(row, &mut self.unpacker, spare)?);
        self.segments.insert(0, Arc::clone(&segment));
        self.leave_some();
        Ok(segment)
    }

    /// Leaves the segments for which there is no room, those that were looked at long ago first.
    fn leave_some(&mut self) {
        let room = if self.keeps_more { OPEN_TO_WRITE } else { OPEN };
        let mut room = room.max(self.segments.first().map_or(0, |newest| newest.data.len()));
        let does_not_fit = |segment: &mut Arc<Segment>| {
            let left = room.checked_sub(segment.data.len());
            room = left.unwrap_or(0);
            left.is_none()
        };
        let left = self.segments.extract_if(.., does_not_fit).last();
        let room = left.and_then(Arc::into_inner).map(|segment| segment.data);
        self.spare = room.filter(|room| room.capacity() <= 2 * SEGMENT).unwrap_or_default();
    }
}
