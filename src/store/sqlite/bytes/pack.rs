//! Packing: compresses the bodies of consecutive lines into segments, in a second thread if there is much to do.
//!
//! ```text
//! bodies      of lines that are being added
//! full        enough for a segment: given to the compressing thread, or about to be
//! segment     zstd( lengths of the bodies, bodies ), as a row with the lengths of the lines and a checksum
//! ```
//!
//! Invariant: a body is never unreadable between the insertion of its line and that of its segment.
//! Invariant: nothing of a segment is used before its checksum was verified.

use std::{
    collections::VecDeque,
    io::Write,
    ops::Range,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use rusqlite::{Connection, Row, params};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use crate::store::sqlite::query::{each, execute, first};
use crate::{
    model::{line::LINE_MAX, put_varint, take_varint},
    store::StoreError,
};

/// How many bytes of bodies make a segment.
pub(crate) const SEGMENT: usize = 1 << 20;
/// How many bytes of bodies are worth a segment at the end of a transaction.
pub(crate) const REST: usize = SEGMENT / 4;
/// How many bodies are worth one, however short: a row takes more space than a difference.
const REST_LINES: usize = 512;
/// How many bytes make a long line, which gets a segment of its own.
pub(crate) const LONG: usize = 4 * SEGMENT;
/// The maximum size of a segment: the longest line, or several shorter ones, with their lengths.
const LARGEST: usize = LINE_MAX + LONG;
/// How many bytes of bodies may wait for the compressing thread.
const WAITING: usize = 16 << 20;
/// Level 1 would leave 5% more bytes; each level above this one costs more time than its savings are worth.
const LEVEL: i32 = 3;
/// The level for repacking, when no one is waiting: 7% smaller at four times the cost.
const LEVEL_AGAIN: i32 = 9;
/// The codec that this program writes: zstd.
const ZSTD: i64 = 1;

/// An unpacked segment.
pub(crate) struct Segment {
    pub(crate) first: i64,
    /// For each line, the range of its body and the length of the line.
    pub(crate) lines: Vec<(Range<usize>, u64)>,
    pub(crate) data: Vec<u8>,
    /// Whether it may be unpacked only partially.
    is_part: bool,
}

/// The decompressor, reused between segments.
pub(crate) type Unpacker = Option<Decoder<'static>>;

impl Segment {
    /// Returns the number after that of its last line.
    pub(crate) fn end(&self) -> i64 {
        self.first.saturating_add(i64::try_from(self.lines.len()).unwrap_or(i64::MAX))
    }

    /// Returns true if it contains a line and that part was unpacked.
    pub(crate) fn holds(&self, line: i64) -> bool {
        let index = line.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let found = index.and_then(|index| self.lines.get(index));
        found.is_some_and(|(body, _)| body.end <= self.data.len())
    }

    /// Returns true if it was unpacked completely.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_part
    }

    /// The columns that [`Segment::read`] reads.
    pub(crate) const COLUMNS: &str = "key, count, size, codec, sum, sizes, body";

    /// Reads a segment from its row, reusing the buffer of an earlier one.
    pub(crate) fn read(
        row: &Row<'_>,
        unpacker: &mut Unpacker,
        room: Vec<u8>,
    ) -> Result<Self, StoreError> {
        Self::read_up_to(row, unpacker, room, |_| None)
    }

    /// Reads a segment, unpacking only up to the last line that `wanted` selects from its numbers; all of it for `None`.
    pub(crate) fn read_up_to(
        row: &Row<'_>,
        unpacker: &mut Unpacker,
        room: Vec<u8>,
        wanted: impl FnOnce(Range<i64>) -> Option<i64>,
    ) -> Result<Self, StoreError> {
        let (first, count, size, codec) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let torn = |problem: &str| StoreError::corrupt(format!("segment {first}"), problem);
        let blob = |column| row.get_ref(column)?.as_blob().map_err(rusqlite::Error::from);
        let (sum, sizes, body) = (blob(4)?, blob(5)?, blob(6)?);
        if sum != checksum(first, [count, size, codec], sizes, body) {
            return Err(torn("its bytes do not match its checksum"));
        }
        if codec != ZSTD {
            return Err(torn(&format!("it is packed with the unknown codec {codec}")));
        }
        let unpacker = match unpacker {
            Some(unpacker) => unpacker,
            none => none.insert(decoder().map_err(failed)?),
        };
        unpacker.reinit().map_err(failed)?;
        // The recorded length bounds the output, whatever the frame claims.
        let (mut data, size) = room_for(size, room).ok_or_else(|| torn("its length is damaged"))?;
        let cannot = |error: std::io::Error| torn(&format!("it cannot be unpacked: {error}"));
        let last = wanted(first..first.saturating_add(count));
        let last = last.and_then(|last| usize::try_from(last.checked_sub(first)?).ok());
        let lines = if let Some(last) = last {
            unpack_up_to(unpacker, body, &mut data, |data| {
                let lines = Self::lines(count, sizes, data, size)?;
                Some((lines.get(last).map_or(size, |(body, _)| body.end), lines))
            })
            .map_err(cannot)?
        } else {
            let mut input = InBuffer::around(body);
            let left =
                unpacker.run(&mut input, &mut OutBuffer::around(&mut data)).map_err(cannot)?;
            if left != 0 || data.len() != size {
                return Err(torn("its length differs from the recorded one"));
            }
            Self::lines(count, sizes, &data, size)
        };
        let is_part = last.is_some();
        lines
            .map(|lines| Self { first, lines, data, is_part })
            .ok_or_else(|| torn("its lists are damaged"))
    }

    /// Reads the lists of a segment from its beginning. Returns nothing if `data` is too short.
    fn lines(
        count: i64,
        mut sizes: &[u8],
        data: &[u8],
        size: usize,
    ) -> Option<Vec<(Range<usize>, u64)>> {
        let mut header = data;
        let mut lines = Vec::with_capacity(sizes.len().min(usize::try_from(count).ok()?));
        for _ in 0..count {
            let length = usize::try_from(take_varint(&mut header)?).ok()?;
            lines.push((0..length, take_varint(&mut sizes)?));
        }
        let mut at = data.len() - header.len();
        for (body, _) in &mut lines {
            *body = at..at.checked_add(body.end)?;
            at = body.end;
        }
        (at == size && sizes.is_empty()).then_some(lines)
    }
}

/// Returns a buffer for a segment, and its length. Reuses the given buffer only if it is large enough, because growing it would
/// copy its content. Returns nothing for an impossible length.
fn room_for(size: i64, mut room: Vec<u8>) -> Option<(Vec<u8>, usize)> {
    let size = usize::try_from(size).ok().filter(|size| *size <= LARGEST)?;
    if room.capacity() < size {
        room = Vec::new();
        // Most segments are slightly longer than SEGMENT, so that a buffer of this size can be reused.
        let usual = SEGMENT + REST;
        let wanted = if (SEGMENT..usual).contains(&size) { usual } else { size };
        room.try_reserve_exact(wanted).ok()?;
    }
    room.clear();
    Some((room, size))
}

/// Returns a decoder that writes directly into the output buffer, which must not move until everything is unpacked. By default it
/// would unpack into a window of its own and copy the bytes.
fn decoder() -> std::io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::StableOutBuffer(true))?;
    Ok(decoder)
}

/// How many compressed bytes are processed at once in a partial unpack.
const STEP: usize = 16 << 10;

/// Unpacks into the buffer until `wanted` can tell from the beginning how many bytes are needed, and these are unpacked. Returns
/// nothing if `wanted` never can.
fn unpack_up_to<T>(
    unpacker: &mut Decoder<'_>,
    body: &[u8],
    data: &mut Vec<u8>,
    mut wanted: impl FnMut(&[u8]) -> Option<(usize, T)>,
) -> std::io::Result<Option<T>> {
    let mut told: Option<(usize, T)> = None;
    for step in body.chunks(STEP) {
        let mut input = InBuffer::around(step);
        while input.pos() < step.len() {
            let (read, made) = (input.pos(), data.len());
            unpacker.run(&mut input, &mut OutBuffer::around_pos(data, made))?;
            if (input.pos(), data.len()) == (read, made) {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
        }
        told = told.or_else(|| wanted(data));
        if told.as_ref().is_some_and(|(end, _)| data.len() >= *end) {
            break;
        }
    }
    Ok(told.filter(|(end, _)| data.len() >= *end).map(|(_, told)| told))
}

/// Returns the checksum of a segment's row: its numbers, the lengths of its lines, and its body.
pub(crate) fn checksum(first: i64, numbers: [i64; 3], sizes: &[u8], body: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&first.to_le_bytes());
    for number in numbers {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(&(sizes.len() as u64).to_le_bytes()).update(sizes).update(body);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    sum
}

/// The bodies of consecutive lines, in order.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Bodies {
    first: i64,
    /// The end of each body, and the length of its line.
    ends: Vec<(usize, u64)>,
    data: Vec<u8>,
}

impl Bodies {
    /// Returns the bodies of consecutive segments.
    pub(crate) fn of(segments: &[Segment]) -> Self {
        let first = segments.first().map_or(0, |segment| segment.first);
        let mut bodies = Self { first, ..Self::default() };
        for segment in segments {
            let from = segment.lines.first().map_or(segment.data.len(), |(range, _)| range.start);
            let before = bodies.data.len();
            let ends = segment.lines.iter().map(|(range, size)| (before + range.end - from, *size));
            bodies.ends.extend(ends);
            bodies.data.extend_from_slice(segment.data.get(from..).unwrap_or_default());
        }
        bodies
    }

    /// Begins with the number of the first line.
    pub(crate) fn starting(first: i64) -> Self {
        Self { first, ..Self::default() }
    }

    fn end(&self) -> i64 {
        self.first.saturating_add(i64::try_from(self.ends.len()).unwrap_or(i64::MAX))
    }

    /// Returns a body and the length of its line.
    fn get(&self, key: i64) -> Option<(&[u8], u64)> {
        let index = usize::try_from(key.checked_sub(self.first)?).ok()?;
        let &(end, size) = self.ends.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.ends.get(before));
        Some((self.data.get(before.map_or(0, |&(end, _)| end)..end)?, size))
    }

    pub(crate) fn add(&mut self, size: u64, body: Vec<u8>) {
        if body.len() >= LONG && self.data.is_empty() {
            // Avoids copying a long line.
            self.data = body;
        } else {
            self.data.extend_from_slice(&body);
        }
        self.ends.push((self.data.len(), size));
    }

    fn all(&self) -> impl Iterator<Item = (i64, &[u8], u64)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(end, _)| end));
        (self.first..).zip(starts.zip(&self.ends)).map(|(key, (start, &(end, size)))| {
            (key, self.data.get(start..end).unwrap_or_default(), size)
        })
    }
}

/// The compressor, reused between segments.
pub(crate) struct Compressor {
    level: i32,
    context: Option<zstd::bulk::Compressor<'static>>,
    segment: Vec<u8>,
    frame: Vec<u8>,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        Self { level: LEVEL, context: None, segment: Vec::new(), frame: Vec::new() }
    }

    /// Makes a compressor for repacking.
    pub(crate) fn again() -> Self {
        Self { level: LEVEL_AGAIN, ..Self::new() }
    }

    pub(crate) fn compress(&mut self, bodies: &Bodies) -> std::io::Result<Packed> {
        self.segment.clear();
        let mut sizes = Vec::with_capacity(2 * bodies.ends.len());
        for (_, body, size) in bodies.all() {
            put_varint(&mut self.segment, body.len() as u64);
            put_varint(&mut sizes, size);
        }
        let size = self.segment.len() + bodies.data.len();
        let body = if size > LONG {
            // Use a stream: a single buffer would need the space of a long line again.
            let mut encoder = zstd::Encoder::new(Vec::new(), self.level)?;
            encoder.set_pledged_src_size(Some(size as u64))?;
            encoder.write_all(&self.segment)?;
            encoder.write_all(&bodies.data)?;
            encoder.finish()?
        } else {
            self.segment.extend_from_slice(&bodies.data);
            let context = match &mut self.context {
                Some(context) => context,
                none => none.insert(zstd::bulk::Compressor::new(self.level)?),
            };
            self.frame.clear();
            self.frame.reserve(zstd::compress_bound(size));
            context.compress_to_buffer(&self.segment, &mut self.frame)?;
            self.frame.clone()
        };
        let first = bodies.first;
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let (count, size) = (number(bodies.ends.len()), number(size));
        let sum = checksum(first, [count, size, ZSTD], &sizes, &body);
        Ok(Packed { first, count, size, sum, sizes, body })
    }
}

/// A segment as it is stored.
pub(crate) struct Packed {
    first: i64,
    count: i64,
    size: i64,
    sum: [u8; 8],
    sizes: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

impl Packed {
    pub(crate) fn insert(self, db: &Connection) -> Result<(), StoreError> {
        let sql = "INSERT INTO segment (key, count, size, codec, sum, sizes, body) VALUES (?, ?, ?, ?, ?, ?, ?)";
        execute(
            db,
            sql,
            params![self.first, self.count, self.size, ZSTD, self.sum, self.sizes, self.body],
        )?;
        let end = self.first + self.count;
        execute(db, "DELETE FROM fresh WHERE key < ?", [end])
    }
}

fn failed(source: std::io::Error) -> StoreError {
    StoreError::Database(Box::new(source))
}

/// Lines on their way into segments.
pub(crate) struct Packing {
    bodies: Bodies,
    /// The full bodies that are not stored yet, oldest first.
    full: VecDeque<Arc<Bodies>>,
    beside: Option<Beside>,
    compressor: Compressor,
    /// Buffers of bodies that were stored, for reuse.
    room: Vec<Vec<u8>>,
    /// Whether any segment was made.
    is_large: bool,
}

impl Packing {
    /// Begins with the lines in `fresh`.
    pub(crate) fn begin(db: &Connection) -> Result<Self, StoreError> {
        let mut packing = Self {
            bodies: Bodies { first: last_packed(db)? + 1, ..Bodies::default() },
            full: VecDeque::new(),
            beside: None,
            compressor: Compressor::new(),
            room: Vec::new(),
            is_large: false,
        };
        each(db, "SELECT key, size, body FROM fresh ORDER BY key", [], |row| {
            packing.push(db, row.get(0)?, row.get(1)?, row.get(2)?)
        })?;
        Ok(packing)
    }

    /// Packs all lines in `fresh`, however few.
    pub(crate) fn all(db: &Connection) -> Result<(), StoreError> {
        let mut packing = Self::begin(db)?;
        packing.write(db)?;
        packing.finish(db)
    }

    /// Adds the body of the next line.
    pub(crate) fn push(
        &mut self,
        db: &Connection,
        key: i64,
        size: u64,
        body: Vec<u8>,
    ) -> Result<(), StoreError> {
        if body.len() >= LONG {
            self.write(db)?;
        }
        if key != self.bodies.end() {
            // A line under the wrong number would shift all lines after it.
            let missing = format!("line {}", self.bodies.end());
            return Err(StoreError::corrupt(missing, "it is missing"));
        }
        self.bodies.add(size, body);
        if self.bodies.data.len() >= SEGMENT { self.write(db) } else { Ok(()) }
    }

    /// Returns the body of a pending line, and the length of the line.
    pub(crate) fn get(&self, key: i64) -> Option<(&[u8], u64)> {
        let full = self.full.iter().find(|bodies| bodies.first <= key && key < bodies.end());
        full.map_or(&self.bodies, |bodies| bodies).get(key)
    }

    /// Returns true if a line will be compressed together with the next one.
    pub(crate) fn gathers(&self, line: i64) -> bool {
        (self.bodies.first..self.bodies.end()).contains(&line)
    }

    /// Returns the pending lines.
    pub(crate) fn lines(&self) -> Range<i64> {
        self.full.front().map_or(self.bodies.first, |bodies| bodies.first)..self.bodies.end()
    }

    /// Makes a segment of the gathered bodies.
    fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        if self.bodies.ends.is_empty() {
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_large, true) {
            self.beside = Beside::begin();
        }
        let mut data = self.room.pop().unwrap_or_default();
        data.clear();
        let next = Bodies { first: self.bodies.end(), ends: Vec::new(), data };
        let bodies = std::mem::replace(&mut self.bodies, next);
        let Some(beside) = &self.beside else {
            let packed = self.compressor.compress(&bodies).map_err(failed)?;
            self.keep_room(bodies);
            return packed.insert(db);
        };
        let bodies = Arc::new(bodies);
        beside.give(&bodies)?;
        self.full.push_back(bodies);
        while let Some(beside) = &self.beside {
            let waiting: usize = self.full.iter().map(|bodies| bodies.data.len()).sum();
            let is_over = waiting > WAITING;
            let Some(packed) = (if is_over { beside.wait() } else { beside.ready() })? else {
                break;
            };
            if let Some(bodies) = self.full.pop_front().and_then(Arc::into_inner) {
                self.keep_room(bodies);
            }
            packed.insert(db)?;
        }
        Ok(())
    }

    fn keep_room(&mut self, bodies: Bodies) {
        if bodies.data.capacity() <= LONG {
            self.room.push(bodies.data);
        }
    }

    /// Waits for the segments being compressed. Packs the rest too if it is worth a segment.
    pub(crate) fn finish(mut self, db: &Connection) -> Result<(), StoreError> {
        let Bodies { ends, data, .. } = &self.bodies;
        if self.is_large || data.len() >= REST || ends.len() >= REST_LINES {
            // A single segment is compressed faster here than by starting a thread.
            self.is_large = true;
            self.write(db)?;
        }
        while let Some(beside) = self.beside.as_ref().filter(|_| !self.full.is_empty()) {
            let Some(packed) = beside.wait()? else { break };
            self.full.pop_front();
            packed.insert(db)?;
        }
        let mut leave =
            db.prepare_cached("INSERT OR IGNORE INTO fresh (key, size, body) VALUES (?, ?, ?)")?;
        for (key, body, size) in self.bodies.all() {
            leave.execute(params![key, size, body])?;
        }
        Ok(())
    }
}

/// A thread that compresses.
struct Beside {
    give: Option<SyncSender<Arc<Bodies>>>,
    take: Receiver<std::io::Result<Packed>>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Starts the thread, if the system allows it.
    fn begin() -> Option<Self> {
        // WAITING limits the bodies; this bound only needs to be large enough to never block.
        let bound = WAITING / SEGMENT + 2;
        let (give, given) = sync_channel::<Arc<Bodies>>(bound);
        let (made, take) = sync_channel(bound);
        let work = move || {
            let mut compressor = Compressor::new();
            for bodies in given {
                let packed = compressor.compress(&bodies);
                // Drop them first, so that the receiver of the segment can reuse their buffer.
                drop(bodies);
                if made.send(packed).is_err() {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("pack".into()).spawn(work).ok()?;
        Some(Self { give: Some(give), take, thread: Some(thread) })
    }

    fn give(&self, bodies: &Arc<Bodies>) -> Result<(), StoreError> {
        let given = self.give.as_ref().map(|give| give.send(Arc::clone(bodies)));
        given.and_then(Result::ok).ok_or_else(|| failed(std::io::Error::other("packing ended")))
    }

    /// Returns the next segment if one is ready.
    fn ready(&self) -> Result<Option<Packed>, StoreError> {
        self.take.try_recv().ok().transpose().map_err(failed)
    }

    /// Waits for the next segment, and returns it.
    fn wait(&self) -> Result<Option<Packed>, StoreError> {
        self.take.recv().ok().transpose().map_err(failed)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.give = None;
        while self.take.recv().is_ok() {}
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the number of the last line in a segment, or 0.
pub(crate) fn last_packed(db: &Connection) -> Result<i64, StoreError> {
    let sql = "SELECT key + count - 1 FROM segment ORDER BY key DESC LIMIT 1";
    Ok(first(db, sql, [], |row| row.get(0))?.unwrap_or(0))
}

/// Returns the number of the newest line, or 0 for an empty store.
pub(crate) fn last_line(db: &Connection) -> Result<i64, StoreError> {
    match first(db, "SELECT key FROM fresh ORDER BY key DESC LIMIT 1", [], |row| row.get(0))? {
        Some(last) => Ok(last),
        None => last_packed(db),
    }
}
