//! Opened segments: the last ones that were looked at stay unpacked, for a line is near to those read before it.
//!
//! Invariant: a segment that is handed out for a line holds it, though what is behind it may not be unpacked.

use std::{ops::Range, sync::Arc};

use rusqlite::Connection;

use crate::store::StoreError;
use crate::store::sqlite::bytes::pack::{SEGMENT, Segment, Unpacker};

/// How many bytes of opened segments are kept in memory.
const OPEN: usize = 12 << 20;
/// The same for a connection that writes, which reads again what it changes: all of most sessions.
const OPEN_TO_WRITE: usize = 2 * OPEN;
/// How many bytes of those that were opened in part: who reads a line here and there comes back only to those with the texts
/// that many lines share.
const OPEN_IN_PART: usize = 4 << 20;

/// The segments in memory, the one looked at last first.
#[derive(Default)]
pub(crate) struct Opened {
    segments: Vec<Arc<Segment>>,
    unpacker: Unpacker,
    /// The room of one that was left: to ask the system for room again and again takes nearly as long as to unpack.
    spare: Vec<u8>,
    keeps_more: bool,
    /// The lines that are about to be read, in order: of a segment that is opened for one of them the rest stays packed.
    expected: Vec<i64>,
}

impl Opened {
    /// Keeps more in memory, for a connection that writes.
    pub(crate) fn keep_more(&mut self) {
        self.keeps_more = true;
    }

    /// Leaves all segments.
    pub(crate) fn close_all(&mut self) {
        self.segments.clear();
    }

    /// Says which lines are about to be read; none, if that is not known.
    pub(crate) fn expect(&mut self, mut lines: Vec<i64>) {
        lines.sort_unstable();
        self.expected = lines;
    }

    /// Returns the segment in which a line is that is in one.
    pub(crate) fn whole(&mut self, db: &Connection, line: i64) -> Result<Arc<Segment>, StoreError> {
        match self.at_hand(line).filter(|segment| segment.is_whole()) {
            Some(segment) => Ok(segment),
            None => self.open(db, line, |_| None),
        }
    }

    /// Returns the same, of which no more may be unpacked than the lines that are expected to be read.
    pub(crate) fn part(&mut self, db: &Connection, line: i64) -> Result<Arc<Segment>, StoreError> {
        match self.at_hand(line) {
            Some(segment) if segment.holds(line) => return Ok(segment),
            // More of it is wanted than was expected, and more yet may be.
            Some(_) => return self.open(db, line, |_| None),
            None => {}
        }
        let expected = std::mem::take(&mut self.expected);
        let last = |lines: Range<i64>| {
            let behind = expected.partition_point(|line| *line < lines.end);
            let last = behind.checked_sub(1).and_then(|at| expected.get(at))?;
            Some(line.max(*last))
        };
        let segment = self.open(db, line, last);
        self.expected = expected;
        segment
    }

    /// Returns a segment with a line that was opened before.
    fn at_hand(&mut self, line: i64) -> Option<Arc<Segment>> {
        let holds = |segment: &Arc<Segment>| (segment.first..segment.end()).contains(&line);
        let at = self.segments.iter().position(holds)?;
        if at > 0 {
            let segment = self.segments.remove(at);
            self.segments.insert(0, segment);
        }
        self.segments.first().cloned()
    }

    /// Opens the segment in which a line is, as far as is wanted.
    fn open(
        &mut self,
        db: &Connection,
        line: i64,
        wanted: impl FnOnce(Range<i64>) -> Option<i64>,
    ) -> Result<Arc<Segment>, StoreError> {
        let mut find = db.prepare_cached(&format!(
            "SELECT {} FROM segment WHERE key <= ? ORDER BY key DESC LIMIT 1",
            Segment::COLUMNS
        ))?;
        let mut rows = find.query([line])?;
        let none = || StoreError::corrupt(format!("line {line}"), "it is not in any segment");
        let row = rows.next()?.ok_or_else(none)?;
        let spare = std::mem::take(&mut self.spare);
        let segment = Arc::new(Segment::read_up_to(row, &mut self.unpacker, spare, wanted)?);
        // What was opened of it before is in this one.
        self.segments.retain(|opened| opened.first != segment.first);
        self.segments.insert(0, Arc::clone(&segment));
        self.leave_some();
        Ok(segment)
    }

    /// Leaves the segments for which there is no room, those that were looked at long ago first.
    fn leave_some(&mut self) {
        let newest = self.segments.first().map_or(0, |newest| newest.data.len());
        let mut room = newest.max(if self.keeps_more { OPEN_TO_WRITE } else { OPEN });
        let mut room_in_part = newest.max(OPEN_IN_PART);
        let does_not_fit = |segment: &mut Arc<Segment>| {
            let room = if segment.is_whole() { &mut room } else { &mut room_in_part };
            let left = room.checked_sub(segment.data.len());
            *room = left.unwrap_or(0);
            left.is_none()
        };
        let left = self.segments.extract_if(.., does_not_fit).last();
        let room = left.and_then(Arc::into_inner).map(|segment| segment.data);
        self.spare = room.filter(|room| room.capacity() <= 2 * SEGMENT).unwrap_or_default();
    }
}
