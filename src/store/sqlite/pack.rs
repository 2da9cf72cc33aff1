//! Packing: bodies of consecutive lines become compressed segments, beside the thread that inserts if there is much to do.
//!
//! ```text
//! bodies      of lines that are being added
//! full        a segment's worth of them: with the thread that compresses, or about to be
//! segment     zstd( lengths of the bodies, bodies ), a row
//! ```
//!
//! Invariant: a body can be read at every moment between its line's insertion and its segment's.

use std::{
    collections::VecDeque,
    io::{Read, Write},
    ops::Range,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    model::{put_varint, take_varint},
    store::StoreError,
};

/// How many bytes of bodies make a segment.
pub(super) const SEGMENT: usize = 1 << 20;
/// How many bytes of bodies may wait to be compressed by another thread.
const WAITING: usize = 16 << 20;
/// Import is bound by the work, not the bytes: a twentieth more of them than at level 3.
const LEVEL: i32 = 1;

/// Bodies that were packed together.
pub(super) struct Segment {
    pub(super) first: i64,
    pub(super) bodies: Vec<Range<usize>>,
    pub(super) data: Vec<u8>,
}

impl Segment {
    pub(super) fn read(first: i64, count: u64, size: u64, body: &[u8]) -> Result<Self, StoreError> {
        let torn = |problem: &str| StoreError::corrupt(format!("segment {first}"), problem);
        let size = usize::try_from(size).map_err(|_| torn("its length is damaged"))?;
        let mut data = Vec::new();
        // Decoding is bounded by the recorded length, whatever the frame claims.
        zstd::Decoder::new(body)
            .and_then(|decoder| decoder.take(size as u64 + 1).read_to_end(&mut data))
            .map_err(|error| torn(&format!("it cannot be unpacked: {error}")))?;
        if data.len() != size {
            return Err(torn("its length is not what it was"));
        }
        let mut header = data.as_slice();
        let mut lengths = Vec::new();
        for _ in 0..count {
            let length = take_varint(&mut header).and_then(|length| usize::try_from(length).ok());
            lengths.push(length.ok_or_else(|| torn("its list of lengths is damaged"))?);
        }
        let mut at = size - header.len();
        let bodies = lengths.into_iter().map(|length| {
            let start = at;
            at = at.saturating_add(length);
            start..at
        });
        let bodies = bodies.collect();
        if at == size {
            Ok(Self { first, bodies, data })
        } else {
            Err(torn("its bodies do not fill it"))
        }
    }
}

/// Bodies of consecutive lines, in order.
#[derive(Default)]
struct Bodies {
    first: i64,
    /// Where each ends.
    ends: Vec<usize>,
    data: Vec<u8>,
}

impl Bodies {
    fn end(&self) -> i64 {
        self.first.saturating_add(i64::try_from(self.ends.len()).unwrap_or(i64::MAX))
    }

    fn get(&self, key: i64) -> Option<&[u8]> {
        let index = usize::try_from(key.checked_sub(self.first)?).ok()?;
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before));
        self.data.get(start.copied().unwrap_or(0)..end)
    }

    fn add(&mut self, body: Vec<u8>) {
        if body.len() >= 4 * SEGMENT && self.data.is_empty() {
            // A long line is not copied once more.
            self.data = body;
        } else {
            self.data.extend_from_slice(&body);
        }
        self.ends.push(self.data.len());
    }

    fn all(&self) -> impl Iterator<Item = (i64, &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends).map(|(start, &end)| start..end);
        (self.first..).zip(ranges.map(|range| self.data.get(range).unwrap_or_default()))
    }
}

/// What compresses, kept from segment to segment.
struct Compressor {
    context: Option<zstd::bulk::Compressor<'static>>,
    segment: Vec<u8>,
    frame: Vec<u8>,
}

impl Compressor {
    fn new() -> Self {
        Self { context: None, segment: Vec::new(), frame: Vec::new() }
    }

    fn compress(&mut self, bodies: &Bodies) -> std::io::Result<Packed> {
        self.segment.clear();
        for (_, body) in bodies.all() {
            put_varint(&mut self.segment, body.len() as u64);
        }
        let size = self.segment.len() + bodies.data.len();
        let body = if size > 4 * SEGMENT {
            // A stream, because all of it in one piece would be a long line once more.
            let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
            encoder.set_pledged_src_size(Some(size as u64))?;
            encoder.write_all(&self.segment)?;
            encoder.write_all(&bodies.data)?;
            encoder.finish()?
        } else {
            self.segment.extend_from_slice(&bodies.data);
            let context = match &mut self.context {
                Some(context) => context,
                none => none.insert(zstd::bulk::Compressor::new(LEVEL)?),
            };
            self.frame.clear();
            self.frame.reserve(zstd::compress_bound(size));
            context.compress_to_buffer(&self.segment, &mut self.frame)?;
            self.frame.clone()
        };
        Ok(Packed { first: bodies.first, end: bodies.end(), size: size as u64, body })
    }
}

/// A segment as it is stored.
struct Packed {
    first: i64,
    end: i64,
    size: u64,
    body: Vec<u8>,
}

impl Packed {
    fn insert(self, db: &Connection) -> Result<(), StoreError> {
        db.prepare_cached("INSERT INTO segment VALUES (?, ?, ?, ?)")?.execute(params![
            self.first,
            self.end - self.first,
            self.size,
            self.body
        ])?;
        db.prepare_cached("DELETE FROM fresh WHERE key < ?")?.execute([self.end])?;
        Ok(())
    }
}

fn failed(source: std::io::Error) -> StoreError {
    StoreError::Database(Box::new(source))
}

/// Lines on their way into segments.
pub(super) struct Packing {
    bodies: Bodies,
    /// What is full and no row yet, the first one first.
    full: VecDeque<Arc<Bodies>>,
    beside: Option<Beside>,
    compressor: Compressor,
    /// Room in which bodies lay that are in segments now: given back, it would have to be asked for again.
    room: Vec<Vec<u8>>,
}

impl Packing {
    /// Takes up the lines that lie inline.
    pub(super) fn begin(db: &Connection) -> Result<Self, StoreError> {
        let bodies = Bodies { first: first_inline(db)?, ..Bodies::default() };
        let (full, compressor) = (VecDeque::new(), Compressor::new());
        let mut packing = Self { bodies, full, beside: None, compressor, room: Vec::new() };
        let mut query = db.prepare_cached("SELECT key, body FROM fresh ORDER BY key")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            packing.push(db, row.get(0)?, row.get(1)?)?;
        }
        Ok(packing)
    }

    /// Has another thread compress from now on.
    pub(super) fn beside(mut self) -> Self {
        self.beside = Beside::begin();
        self
    }

    /// Adds the body of the next line.
    pub(super) fn push(
        &mut self,
        db: &Connection,
        key: i64,
        body: Vec<u8>,
    ) -> Result<(), StoreError> {
        if body.len() >= 4 * SEGMENT {
            self.write(db)?;
        }
        if self.bodies.ends.is_empty() {
            self.bodies.first = key;
        }
        self.bodies.add(body);
        if self.bodies.data.len() >= SEGMENT { self.write(db) } else { Ok(()) }
    }

    /// Returns the body of a line that is on its way.
    pub(super) fn get(&self, key: i64) -> Option<&[u8]> {
        let full = self.full.iter().find(|bodies| bodies.first <= key && key < bodies.end());
        full.map_or(&self.bodies, |bodies| bodies).get(key)
    }

    /// Makes a segment of what has gathered.
    pub(super) fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        if self.bodies.ends.is_empty() {
            return Ok(());
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
            let Some(packed) = beside.take(is_over)? else { break };
            if let Some(bodies) = self.full.pop_front().and_then(Arc::into_inner) {
                self.keep_room(bodies);
            }
            packed.insert(db)?;
        }
        Ok(())
    }

    fn keep_room(&mut self, bodies: Bodies) {
        if bodies.data.capacity() <= 4 * SEGMENT {
            self.room.push(bodies.data);
        }
    }

    /// Waits for what is compressed, and leaves what makes no segment inline.
    pub(super) fn finish(mut self, db: &Connection) -> Result<(), StoreError> {
        while let Some(beside) = self.beside.as_ref().filter(|_| !self.full.is_empty()) {
            let Some(packed) = beside.take(true)? else { break };
            self.full.pop_front();
            packed.insert(db)?;
        }
        let mut leave = db.prepare_cached("INSERT OR IGNORE INTO fresh VALUES (?, ?)")?;
        for (key, body) in self.bodies.all() {
            leave.execute(params![key, body])?;
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
    /// Begins a thread, if the system lets us.
    fn begin() -> Option<Self> {
        // What waits is bounded by its bytes; these only must not hold up either side.
        let bound = WAITING / SEGMENT + 2;
        let (give, given) = sync_channel::<Arc<Bodies>>(bound);
        let (made, take) = sync_channel(bound);
        let work = move || {
            let mut compressor = Compressor::new();
            for bodies in given {
                let packed = compressor.compress(&bodies);
                // Whoever takes the segment takes the room of its bodies too.
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

    /// Returns the next segment, if there is one or it is waited for.
    fn take(&self, wait: bool) -> Result<Option<Packed>, StoreError> {
        let next = if wait { self.take.recv().ok() } else { self.take.try_recv().ok() };
        next.transpose().map_err(failed)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.give = None;
        while self.take.recv().is_ok() {}
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns the key behind the last line that lies in a segment.
fn first_inline(db: &Connection) -> Result<i64, StoreError> {
    let mut last =
        db.prepare_cached("SELECT key + count FROM segment ORDER BY key DESC LIMIT 1")?;
    Ok(last.query_row([], |row| row.get(0)).optional()?.unwrap_or(1))
}
