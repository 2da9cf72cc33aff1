//! A cache of unpacked segments: the next line is usually close to the ones read before.
//!
//! Invariant: no segment is returned for a line without that line, though what comes after it may not be unpacked.

use std::{ops::Range, sync::Arc};

use rusqlite::Connection;

use crate::store::StoreError;
use crate::store::sqlite::bytes::pack::{SEGMENT, Segment, Unpacker};

/// How many bytes of unpacked segments are cached.
const OPEN: usize = 12 << 20;
/// The same for a connection that writes: it reads again what it changes, which is all of most sessions.
const OPEN_TO_WRITE: usize = 2 * OPEN;
/// How many bytes of partially unpacked segments are cached: scattered reads return only to segments with strings that many lines
/// share.
const OPEN_IN_PART: usize = 4 << 20;

/// The cached segments, most recently used first.
#[derive(Default)]
pub(crate) struct Opened {
    segments: Vec<Arc<Segment>>,
    unpacker: Unpacker,
    /// The buffer of a dropped segment: allocating one each time takes nearly as long as unpacking.
    spare: Vec<u8>,
    keeps_more: bool,
    /// The lines that will be read next, in order. A segment opened for one of them is unpacked only up to the last of them.
    expected: Vec<i64>,
}

impl Opened {
    /// Caches more, for a connection that writes.
    pub(crate) fn keep_more(&mut self) {
        self.keeps_more = true;
    }

    /// Drops all segments.
    pub(crate) fn close_all(&mut self) {
        self.segments.clear();
    }

    /// Sets the lines that will be read next; empty if unknown.
    pub(crate) fn expect(&mut self, mut lines: Vec<i64>) {
        lines.sort_unstable();
        self.expected = lines;
    }

    /// Returns the segment that contains a packed line, completely unpacked.
    pub(crate) fn whole(&mut self, db: &Connection, line: i64) -> Result<Arc<Segment>, StoreError> {
        match self.at_hand(line).filter(|segment| segment.is_whole()) {
            Some(segment) => Ok(segment),
            None => self.open(db, line, |_| None),
        }
    }

    /// Like [`Self::whole`], but possibly unpacked only up to the last expected line.
    pub(crate) fn part(&mut self, db: &Connection, line: i64) -> Result<Arc<Segment>, StoreError> {
        match self.at_hand(line) {
            Some(segment) if segment.holds(line) => return Ok(segment),
            // More is needed than was expected, so unpack all of it.
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

    /// Returns the cached segment that contains a line.
    fn at_hand(&mut self, line: i64) -> Option<Arc<Segment>> {
        let holds = |segment: &Arc<Segment>| (segment.first..segment.end()).contains(&line);
        let at = self.segments.iter().position(holds)?;
        if at > 0 {
            let segment = self.segments.remove(at);
            self.segments.insert(0, segment);
        }
        self.segments.first().cloned()
    }

    /// Unpacks the segment that contains a line, as far as `wanted` says.
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
        // The new one includes what was unpacked of it before.
        self.segments.retain(|opened| opened.first != segment.first);
        self.segments.insert(0, Arc::clone(&segment));
        self.leave_some();
        Ok(segment)
    }

    /// Drops the least recently used segments that exceed the limits.
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
