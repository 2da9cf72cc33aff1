//! Repacking: compresses segments again as small as possible, a few at a time, and returns the freed space to the disk.
//!
//! Invariant: no segment is replaced before its replacement was read back and compared, in the same transaction.
//! Invariant: a segment that cannot be read is never changed.

use std::time::Duration;

use rusqlite::{Connection, params};

use crate::store::StoreError;
use crate::store::sqlite::{
    SqliteStore,
    bytes::pack::{Bodies, Compressor, LONG, Packing, SEGMENT, Segment, Unpacker, last_packed},
    open::PATIENCE,
};

/// How many bytes of bodies are repacked in one transaction; other programs can write between two.
const TOGETHER: usize = 16 << 20;
/// The database is vacuumed if more than one in this many pages is empty.
const EMPTY: u64 = 20;

impl SqliteStore {
    /// Repacks all lines and returns the space to the disk, while other programs can continue. Returns the number of damaged
    /// segments. Each step stays even if a later one fails.
    pub(super) fn repack(&self, each: &mut dyn FnMut(u64, u64)) -> Result<u64, StoreError> {
        self.writable()?;
        let db = self.db();
        let step = |work: &mut dyn FnMut() -> Result<(), StoreError>| {
            self.apart(PATIENCE, work)?.ok_or(StoreError::Busy)?;
            self.empty_wal()
        };
        step(&mut || {
            self.settle_journal()?;
            Packing::all(db)
        })?;
        let last = last_packed(db)?;
        let mut repacking = Repacking::new(db);
        while repacking.next <= last {
            each(repacking.next.unsigned_abs() - 1, last.unsigned_abs());
            step(&mut || repacking.go_on())?;
        }
        each(last.unsigned_abs(), last.unsigned_abs());
        // The cached segments no longer match rows.
        self.tables.forget();
        let number = |sql| db.query_row(sql, [], |row| row.get::<_, u64>(0));
        let is_loose = number("PRAGMA freelist_count")? * EMPTY > number("PRAGMA page_count")?;
        if repacking.is_smaller || is_loose {
            self.vacuum()?;
        }
        match self.empty_log(Duration::ZERO) {
            // A reader may block this for long; the next writer can do it.
            Err(StoreError::Busy) => {}
            emptied => emptied?,
        }
        Ok(repacking.damaged)
    }

    /// Moves the WAL into the database and truncates it. Waits up to `patience` for readers of an older state.
    pub(super) fn empty_log(&self, patience: Duration) -> Result<(), StoreError> {
        self.db().busy_timeout(patience)?;
        let closed = self.sure(self.close_log());
        self.db().busy_timeout(PATIENCE)?;
        closed
    }

    /// Rewrites the database, so that no page still contains deleted bytes.
    pub(super) fn vacuum(&self) -> Result<(), StoreError> {
        let db = self.db();
        // SQLite's copy has the size of the database, which may exceed the memory.
        db.execute_batch("PRAGMA temp_store = FILE")?;
        let written = db.execute_batch("VACUUM");
        db.execute_batch("PRAGMA temp_store = MEMORY")?;
        self.sure(written.map_err(StoreError::from))
    }

    /// After a failed write or sync, prevents all further writes.
    pub(super) fn sure(&self, done: Result<(), StoreError>) -> Result<(), StoreError> {
        if matches!(done, Err(StoreError::Io { .. })) {
            self.failed.set(true);
        }
        done
    }
}

/// The state of repacking.
struct Repacking<'a> {
    db: &'a Connection,
    compressor: Compressor,
    unpacker: Unpacker,
    /// The first line that was not repacked yet.
    next: i64,
    /// Segments that will be merged, and their stored size.
    group: Vec<Segment>,
    stored: usize,
    is_smaller: bool,
    damaged: u64,
}

impl<'a> Repacking<'a> {
    fn new(db: &'a Connection) -> Self {
        let (compressor, group) = (Compressor::again(), Vec::new());
        let (unpacker, next, stored) = (None, 1, 0);
        Self { db, compressor, unpacker, next, group, stored, is_smaller: false, damaged: 0 }
    }

    /// Repacks the next segments.
    fn go_on(&mut self) -> Result<(), StoreError> {
        let mut bytes = 0;
        let mut find = self.db.prepare_cached(
            "SELECT key, count, length(body) FROM segment WHERE key >= ? ORDER BY key LIMIT 1",
        )?;
        while bytes < TOGETHER {
            let mut rows = find.query([self.next])?;
            let Some(row) = rows.next()? else {
                self.next = i64::MAX;
                break;
            };
            let (key, count, stored): (i64, i64, usize) = (row.get(0)?, row.get(1)?, row.get(2)?);
            drop(rows);
            self.next = key.saturating_add(count.max(1));
            match self.read(key) {
                Ok(segment) => {
                    bytes += segment.data.len();
                    self.join(segment, stored)?;
                }
                Err(StoreError::Corrupt { .. }) => {
                    self.damaged += 1;
                    self.pack()?;
                }
                Err(error) => return Err(error),
            }
        }
        self.pack()
    }

    fn read(&mut self, key: i64) -> Result<Segment, StoreError> {
        let sql = format!("SELECT {} FROM segment WHERE key = ?", Segment::COLUMNS);
        let mut find = self.db.prepare_cached(&sql)?;
        let mut rows = find.query([key])?;
        let gone = || StoreError::corrupt(format!("segment {key}"), "it is missing");
        Segment::read(rows.next()?.ok_or_else(gone)?, &mut self.unpacker, Vec::new())
    }

    /// Adds a segment to the group if it is adjacent and not too large; otherwise packs the group and begins the next.
    fn join(&mut self, segment: Segment, stored: usize) -> Result<(), StoreError> {
        let size: usize = self.group.iter().map(|segment| segment.data.len()).sum();
        let end = self.group.last().map(Segment::end);
        if size >= SEGMENT || segment.data.len() >= LONG || end != Some(segment.first) {
            self.pack()?;
        }
        self.group.push(segment);
        self.stored += stored;
        Ok(())
    }

    /// Replaces the group by one segment, if that is smaller.
    fn pack(&mut self) -> Result<(), StoreError> {
        let stored = std::mem::take(&mut self.stored);
        let group = std::mem::take(&mut self.group);
        let Some(first) = group.first().map(|segment| segment.first) else { return Ok(()) };
        let bodies = Bodies::of(&group);
        let packed = self.compressor.compress(&bodies);
        let packed = packed.map_err(|source| StoreError::Database(Box::new(source)))?;
        if packed.body.len() >= stored {
            return Ok(());
        }
        let mut delete = self.db.prepare_cached("DELETE FROM segment WHERE key = ?")?;
        for segment in &group {
            delete.execute(params![segment.first])?;
        }
        packed.insert(self.db)?;
        if Bodies::of(&[self.read(first)?]) != bodies {
            let problem = "repacking changed its content";
            return Err(StoreError::corrupt(format!("segment {first}"), problem));
        }
        self.is_smaller = true;
        Ok(())
    }
}
