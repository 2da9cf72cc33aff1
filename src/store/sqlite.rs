//! The default store: one SQLite file in WAL mode that contains a journal, with a witness file next to it.
//!
//! ```text
//! small operation   one row in the journal, synced; overlaid on the tables in memory
//! settling          64 rows of the journal become rows of the tables, in a transaction that is not synced: until its pages
//!                   reach the disk with the next operation's, the disk still has the rows of the journal
//! large operation   settles the journal and adds its own rows in one transaction, synced
//! ```
//!
//! The files in `sqlite/`: `open.rs` finds, creates and refuses database files; `open_files.rs` knows which are open; `write.rs`
//! is the transaction, `journal.rs` the encoding of its rows; `query.rs` runs queries for `rows.rs` (facts) and `derived.rs`
//! (derived rows); `list.rs` lists sessions; `add.rs` adds rows; `repack.rs` compresses segments again; `check.rs` checks lines;
//! `totals.rs` sums up the content; `witness.rs` records outside the database how far the store has come, and `testimony.rs`
//! compares; `salvage.rs` copies what a damaged store still has. In `bytes/`: `lines.rs` stores lines, `entry_lines.rs` finds them by entry, `recent.rs`
//! remembers recent ones; `body.rs` encodes them, `difference.rs` as differences; `pack.rs` packs them into segments,
//! `lengths.rs` reads their lengths; `redact.rs` replaces their bytes, and `cover.rs` knows which were replaced. In `index/`:
//! `words.rs` is the word index, `seal.rs` authenticates it. This file combines them.
//!
//! Invariant: no transaction needs more than one sync. Its follow-up work (settling, packing, emptying the WAL) may fail without
//! harm and is repeated later; after a failed sync nothing more is written.
//! Invariant: no operation is both in the journal and in the tables, and no query uses more than one snapshot.

mod add;
pub(crate) mod bytes;
mod check;
mod derived;
pub(crate) mod index;
mod journal;
mod list;
mod open;
mod open_files;
mod query;
mod repack;
mod rows;
mod salvage;
mod testimony;
mod totals;
mod witness;
mod write;

use std::{
    cell::{Cell, RefCell},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use rusqlite::{Connection, ffi};

pub use crate::store::sqlite::index::words::{
    Document, Mark, Piece, Reach, Settled, WEIGHTS, Weight, WordIndex,
};
pub use open::{Access, FORMAT_VERSION, RULES_VERSION};
pub use salvage::{Loss, Salvage, Wanted, WantedFile};
pub use testimony::Testimony;
pub use witness::{Witness, is_witnessed};

use crate::store::sqlite::bytes::lengths;
use crate::store::sqlite::open_files::{FileId, HeldOpen, file_at};
use crate::{
    model::{DATABASE, OperationId, OperationNumber, SessionName, StoreId},
    store::{
        ByteStore, DoorStore, FactStore, Fault, SessionKey, Sighting, Store, StoreError,
        Transaction, answer::Layered, error::sound, overlay::laid::Laid,
    },
};
use journal::Journal;
use query::Emptied;
use rows::Tables;
use witness::WitnessFile;

/// How many pages the WAL may have before they are moved into the database, in a program that stays open.
const WAL_PAGES: i32 = 4000;
/// The same for a program that ends after one command: the next program must read and checksum them all, at 4,000 instructions a
/// page. Moving them takes two syncs, shared by some twenty small operations.
const WAL_PAGES_BRIEF: i32 = 48;
/// How many operations the journal may have before it is settled, in a program that stays open.
const JOURNAL_ROWS: u64 = 64;
/// The same for a program that ends after one command: the next program must read them all.
const JOURNAL_ROWS_BRIEF: u64 = 16;
/// How many bytes the journal may have before it is settled.
const JOURNAL_BYTES: u64 = 1 << 20;

/// A store in a file.
pub struct SqliteStore {
    tables: Tables,
    journal: RefCell<Journal>,
    witness: RefCell<WitnessFile>,
    path: PathBuf,
    /// The opened file, if the system reports its identity. A store that was mended since is in another file.
    file: Option<FileId>,
    /// Dropped after the tables, which own the connection.
    _held: HeldOpen,
    access: Access,
    /// How many pages the WAL had after the last commit.
    wal_pages: Arc<AtomicI32>,
    /// How many operations and bytes the journal may have.
    limits: (u64, u64),
    /// Whether a commit failed in a write or sync: what is on disk is unknown until it is read again.
    failed: Cell<bool>,
    /// Whether it was opened as one of several parallel readers.
    is_one_of_several: bool,
    /// Whether to show what comes before an unreadable row of the journal.
    is_left_torn: bool,
}

impl SqliteStore {
    /// Opens the store in a file. [`Access::Write`] creates it if it does not exist.
    pub fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let store = Self::over(open::open(path, access)?, path, access);
        if access != Access::Read
            && let Some((witnessed, newest)) = store.testimony().forgotten()?
        {
            return Err(StoreError::Forgotten { path: path.to_owned(), witnessed, newest });
        }
        Ok(store)
    }

    fn over(opened: open::Opened, path: &Path, access: Access) -> Self {
        let is_brief = access == Access::Brief;
        let mut tables = Tables::new(opened.db, opened.id, path);
        if access != Access::Read {
            tables.bytes.get_mut().expect_writes();
        }
        Self {
            tables,
            journal: RefCell::default(),
            witness: RefCell::new(WitnessFile::new(witness::path_of(path))),
            path: path.to_owned(),
            file: file_at(path),
            _held: opened.held,
            access,
            wal_pages: opened.wal_pages,
            limits: (if is_brief { JOURNAL_ROWS_BRIEF } else { JOURNAL_ROWS }, JOURNAL_BYTES),
            failed: Cell::new(false),
            is_one_of_several: false,
            is_left_torn: false,
        }
    }

    /// Shows what comes before an unreadable row of the journal and hides everything after it. Returns what is wrong with that
    /// row, if there is one. Such a store must not be written.
    pub(crate) fn leave_torn(&mut self) -> Result<Option<Fault>, StoreError> {
        self.is_left_torn = self.access == Access::Read;
        let _snapshot = self.snapshot()?;
        Ok(self.journal.borrow().torn.clone())
    }

    /// Returns true if the first operation's hash matches the store's id: with another id no hash would match.
    pub fn has_its_id(&self) -> Result<bool, StoreError> {
        let _snapshot = self.begin_look()?;
        let id = self.id()?;
        let sql = "SELECT key, format, id FROM session
                   WHERE key = (SELECT session FROM operation ORDER BY session, store, n LIMIT 1)";
        let found = query::first(self.db(), sql, [], |row| {
            Ok((SessionKey(row.get(0)?), SessionName { format: row.get(1)?, id: row.get(2)? }))
        })?;
        let Some((session, name)) = found else { return Ok(true) };
        let first = self.operations(session, OperationNumber::FIRST.alone())?.pop();
        Ok(first.is_some_and(|first| first.hash_after(None, id, &name) == first.hash))
    }

    /// Moves the WAL into the database, and syncs.
    pub(crate) fn close_log(&self) -> Result<(), StoreError> {
        query::empty_wal(self.db(), Emptied::Truncated)
    }

    /// Returns the path of the store.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the limits of the journal in operations and bytes. If either is 0, the journal is not used.
    pub fn set_journal(&mut self, rows: u64, bytes: u64) {
        self.limits = (rows, bytes);
    }

    /// Returns what its witness says about it.
    pub fn testimony(&self) -> Testimony<'_> {
        Testimony { store: self, path: witness::path_of(&self.path) }
    }

    /// Returns the newest operation: its number in the store, and its hash.
    pub fn newest(&self) -> Result<Option<(u64, OperationId)>, StoreError> {
        let _snapshot = self.snapshot()?;
        Ok(self.journal.borrow().newest)
    }

    fn db(&self) -> &Connection {
        &self.tables.db
    }

    /// Makes all reads until the result is dropped use one snapshot, including the journal.
    fn snapshot(&self) -> Result<Look<'_>, StoreError> {
        let look = self.begin_look()?;
        self.refresh()?;
        Ok(look)
    }

    fn begin_look(&self) -> Result<Look<'_>, StoreError> {
        let db = self.db();
        if !db.is_autocommit() {
            return Ok(Look(None));
        }
        db.prepare_cached("BEGIN")?.execute([])?;
        Ok(Look(Some(db)))
    }

    /// Reads the journal again if another connection has written and this one may see it.
    fn refresh(&self) -> Result<(), StoreError> {
        let known = self.journal.borrow().version;
        if known.is_some() && (self.access == Access::Read || self.tables.is_writing.get()) {
            return Ok(());
        }
        let version =
            self.db().prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if known != Some(version) {
            self.tables.standing.clear();
            if known.is_some() {
                // The other connection may have repacked lines.
                self.tables.bytes.try_borrow_mut().map_err(|_| StoreError::Busy)?.forget();
            }
            let read = Journal::read(&self.tables, version, self.is_left_torn)?;
            *self.journal.try_borrow_mut().map_err(|_| StoreError::Busy)? = read;
        }
        Ok(())
    }

    fn writable(&self) -> Result<(), StoreError> {
        let path = self.path.clone();
        match self.access {
            Access::Read => Err(StoreError::ReadOnly { path }),
            _ if self.failed.get() => Err(StoreError::Unsure { path }),
            _ if file_at(&path) != self.file => Err(StoreError::Replaced { path }),
            _ => Ok(()),
        }
    }
}

/// A read transaction, if it was begun here.
struct Look<'a>(Option<&'a Connection>);

impl Drop for Look<'_> {
    fn drop(&mut self) {
        if let Some(db) = self.0 {
            // Nothing is lost: a read transaction that cannot be ended now ends with the connection.
            let _ = db.prepare_cached("COMMIT").and_then(|mut end| end.execute([]));
        }
    }
}

impl Layered for SqliteStore {
    /// Queries the journal as an overlay on the tables, in one snapshot.
    fn look<T>(
        &self,
        ask: impl FnOnce(&Laid<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _snapshot = self.snapshot()?;
        let journal = self.journal.borrow();
        ask(&Laid { beneath: Some(&self.tables), over: &journal.overlay })
    }

    fn own_id(&self) -> StoreId {
        self.tables.id
    }

    fn seen(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError> {
        self.tables.sighting(path)
    }

    /// Checks the tables even if the journal cannot be read.
    fn check_all(
        &self,
        only: Option<SessionKey>,
        report: &mut dyn FnMut(Fault),
    ) -> Result<(), StoreError> {
        let compared = self.testimony().check(report);
        let _look = self.begin_look()?;
        match self.refresh() {
            Ok(()) => {
                let journal = self.journal.borrow();
                journal.torn.iter().cloned().for_each(&mut *report);
                let laid = Laid { beneath: Some(&self.tables), over: &journal.overlay };
                laid.check(only, report)?;
            }
            Err(error) => {
                report(Fault::of_error(error, None)?);
                self.tables.check(only, report)?;
            }
        }
        // Damage found by the comparison is reported by the other checks too.
        sound(compared).map(|_| ())
    }
}

impl Store for SqliteStore {
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        Ok(Box::new(write::Writing::begin(self)?))
    }

    fn is_stale(&self) -> Result<bool, StoreError> {
        let sql = "SELECT version FROM rules";
        let found: Option<i64> = query::first(self.db(), sql, [], |row| row.get(0))?;
        Ok(found.ok_or_else(|| StoreError::database("it has no rules"))? < RULES_VERSION)
    }

    fn reader(&self) -> Option<Box<dyn Store>> {
        // Only this connection sees its uncommitted rows. A further reader relies on the check for long lines made for the first.
        let may_be = self.is_one_of_several
            || !self.tables.is_writing.get() && !lengths::has_long_lines(self.db()).unwrap_or(true);
        let opened = may_be.then(|| open::to_read_on(&self.path).ok()).flatten()?;
        let mut reader = Self::over(opened, &self.path, Access::Read);
        (reader.is_one_of_several, reader.is_left_torn) = (true, self.is_left_torn);
        Some(Box::new(reader))
    }

    fn leave_to_check(&mut self) {
        self.tables.bytes.get_mut().is_left_to_check = true;
    }

    fn pack(&self, each: &mut dyn FnMut(u64, u64)) -> Result<u64, StoreError> {
        self.repack(each)
    }

    fn purge(&self, patience: Duration) -> Result<(), StoreError> {
        self.writable()?;
        self.apart(patience, || self.settle_journal())?.ok_or(StoreError::Busy)?;
        self.empty_log(patience)?;
        self.vacuum()?;
        self.empty_log(patience)
    }
}

impl Drop for SqliteStore {
    /// Leaves a short WAL, because the next program to open the store reads all of it, and a synced witness. A program that ends
    /// after one command waits for neither: its operations are witnessed when they are settled.
    fn drop(&mut self) {
        if self.access == Access::Write {
            let _ = self.witness.get_mut().sync();
        }
        let long = self.wal_pages.load(Ordering::Relaxed) >= WAL_PAGES_BRIEF;
        let is_sure = !self.failed.get() && self.db().is_autocommit();
        if self.access == Access::Write && long && is_sure {
            // Waiting for a reader would block every other writer.
            let _ = self.db().busy_timeout(Duration::ZERO);
            let _ = query::empty_wal(self.db(), Emptied::Truncated);
        }
    }
}

impl StoreError {
    /// Makes the error for a database that the system cannot read.
    fn unread(problem: String) -> Self {
        let source = std::io::Error::other(problem);
        Self::Io { path: PathBuf::from(DATABASE), source }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::database(error.to_string())
            }
            // A full disk also shows when the WAL's shared-memory file cannot be created or grow.
            Some(ErrorCode::SystemIoFailure)
                if matches!(
                    extended(&error),
                    Some(ffi::SQLITE_IOERR_SHMOPEN | ffi::SQLITE_IOERR_SHMSIZE)
                ) =>
            {
                Self::Full
            }
            // A file that ends too early was truncated. After any other failure the file may be intact.
            Some(ErrorCode::SystemIoFailure)
                if extended(&error) == Some(ffi::SQLITE_IOERR_SHORT_READ) =>
            {
                Self::database(error.to_string())
            }
            Some(ErrorCode::SystemIoFailure) => Self::unread(error.to_string()),
            // The message of the trigger says what the change contradicts.
            Some(ErrorCode::ConstraintViolation) => Self::Refused(error.to_string()),
            _ => match error {
                rusqlite::Error::FromSqlConversionFailure(_, _, why) => {
                    Self::database(why.to_string())
                }
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..) => {
                    Self::database("a value has a different type than its column")
                }
                // All columns and tables in queries are in the schema, so a missing one means damage.
                _ if error.to_string().starts_with("no such ") => Self::database(error.to_string()),
                _ => Self::Database(Box::new(error)),
            },
        }
    }
}

fn extended(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}
