//! The default store: one SQLite file in WAL mode.
//!
//! What is where: `sqlite/open.rs` finds, makes and refuses files; `sqlite/rows.rs` turns rows into facts,
//! `sqlite/add.rs` facts into rows; `sqlite/list.rs` lists sessions; `sqlite/bytes.rs` keeps lines; `sqlite/pack.rs` packs them; this file puts them
//! together.
//!
//! Invariant: a commit is one transaction with one sync. What follows it (packing lines, emptying the WAL) may fail
//! without harm and is done again later.

mod add;
mod bytes;
mod list;
mod open;
mod pack;
mod rows;

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, ffi, params};

pub use open::{Access, FORMAT_VERSION, RULES_VERSION};

use crate::{
    model::{
        Card, Checkpoint, Entry, EntryId, Facts, LineId, NameTag, Operation, OperationId, Origin,
        Position, Record, Run, SessionName, Tie,
    },
    store::{
        Commit, Derived, FactKind, Fault, Find, Listed, SessionFilter, SessionKey, Sighting, Sizes,
        Store, StoreError, Tip,
    },
};
use bytes::Bytes;

/// How many pages of WAL are let grow before they are moved into the database, for a program that stays open.
const WAL_PAGES: i32 = 1000;
/// The same for a program that ends after one command: the next one has to read them all.
const WAL_PAGES_BRIEF: i32 = 256;

/// A store in a file.
pub struct SqliteStore {
    db: Connection,
    path: PathBuf,
    access: Access,
    bytes: Bytes,
    wal_pages: Arc<AtomicI32>,
    /// Whether commits are gathered in one transaction.
    gathers: bool,
    /// Whether a commit failed in writing or syncing: what is on the disk is unknown until it is read anew.
    failed: bool,
}

impl SqliteStore {
    /// Opens the store in a file; with [`Access::Write`] it is made if it is not there.
    pub fn open(path: &Path, access: Access) -> Result<Self, StoreError> {
        let (db, wal_pages) = open::open(path, access)?;
        Ok(Self {
            db,
            path: path.to_owned(),
            access,
            bytes: Bytes::default(),
            wal_pages,
            gathers: false,
            failed: false,
        })
    }

    /// Returns where the store is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the WAL into the database when it has grown long; a reader in the way only puts it off.
    fn tidy(&mut self) -> Result<(), StoreError> {
        let limit = if self.access == Access::Brief { WAL_PAGES_BRIEF } else { WAL_PAGES };
        self.bytes.pack(&mut self.db)?;
        if self.wal_pages.load(Ordering::Relaxed) >= limit {
            let mode = if self.access == Access::Brief { "TRUNCATE" } else { "RESTART" };
            // Waiting for a reader would hold up every commit for as long as somebody reads.
            self.db.busy_timeout(Duration::ZERO)?;
            let moved =
                self.db.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(()));
            self.db.busy_timeout(open::PATIENCE)?;
            moved?;
            self.wal_pages.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Adds an operation within the transaction that is open.
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError> {
        let key = self.key(&commit.session)?;
        let newest = key.map(|key| rows::newest(&self.db, key)).transpose()?.flatten();
        let link = |n| self.entry_id(key?, n).ok().flatten();
        if let Some(fault) = commit.fault(newest.as_ref(), link) {
            return Err(fault);
        }
        let key = match key {
            Some(key) => key,
            None => add::add_session(&self.db, &commit.session)?,
        };
        let lines = self.bytes.add(&self.db, commit.lines)?;
        add::add_facts(&self.db, key, &commit.operation, &commit.facts, &lines)?;
        let (records, twins, ties) = (&commit.records, &commit.twins, &commit.ties);
        add::add_derived(&self.db, key, records, twins, ties, commit.card.as_ref())?;
        Ok(key)
    }

    fn writable(&self) -> Result<(), StoreError> {
        let path = self.path.clone();
        match self.access {
            Access::Read => Err(StoreError::ReadOnly { path }),
            _ if self.failed => Err(StoreError::Unsure { path }),
            _ => Ok(()),
        }
    }

    /// Makes what was added durable.
    fn end(&mut self) -> Result<(), StoreError> {
        let committed = self.db.prepare_cached("COMMIT")?.execute([]);
        let io = Some(rusqlite::ErrorCode::SystemIoFailure);
        self.failed = committed.as_ref().is_err_and(|error| error.sqlite_error_code() == io);
        committed?;
        Ok(())
    }

    /// Takes back all that is not durable.
    fn abandon(&mut self) {
        self.gathers = false;
        self.bytes.forget();
        self.roll_back();
    }

    fn roll_back(&self) {
        if !self.db.is_autocommit() {
            // Whatever cannot be rolled back now is rolled back when the connection closes.
            let _ = self.db.execute_batch("ROLLBACK");
        }
    }

    fn key(&self, name: &SessionName) -> Result<Option<SessionKey>, StoreError> {
        let mut find =
            self.db.prepare_cached("SELECT key FROM session WHERE format = ? AND id = ?")?;
        Ok(find.query_row([&name.format, &name.id], |row| row.get(0)).optional()?.map(SessionKey))
    }

    fn entry_id(&self, session: SessionKey, n: u64) -> Result<Option<EntryId>, StoreError> {
        let mut find =
            self.db.prepare_cached("SELECT id FROM entry WHERE session = ? AND n = ?")?;
        let id =
            find.query_row(params![session.0, n], |row| row.get::<_, [u8; 32]>(0)).optional()?;
        Ok(id.map(EntryId::new))
    }

    /// Returns the numbers up to `range.end` that a query may bind.
    fn bounds(range: &Range<u64>) -> (i64, i64) {
        (
            i64::try_from(range.start).unwrap_or(i64::MAX),
            i64::try_from(range.end).unwrap_or(i64::MAX),
        )
    }
}

impl Drop for SqliteStore {
    /// Leaves a short WAL behind: whoever opens the store next has to read it all.
    fn drop(&mut self) {
        let long = self.wal_pages.load(Ordering::Relaxed) >= WAL_PAGES_BRIEF;
        if self.access == Access::Write && long && self.db.is_autocommit() {
            let _ = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
    }
}

impl Store for SqliteStore {
    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError> {
        list::sessions(&self.db, filter)
    }

    fn names(&self) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        let mut query =
            self.db.prepare_cached("SELECT key, format, id FROM session ORDER BY key")?;
        let rows = query.query_map([], |row| {
            let name = SessionName { format: row.get(1)?, id: row.get(2)? };
            Ok((SessionKey(row.get(0)?), name))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn id(&self) -> Result<Option<OperationId>, StoreError> {
        rows::first_operation(&self.db)
    }

    fn session(&self, name: &SessionName) -> Result<Option<SessionKey>, StoreError> {
        self.key(name)
    }

    fn tip(&self, session: SessionKey) -> Result<Tip, StoreError> {
        rows::tip(&self.db, session)
    }

    fn operations(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<Operation>, StoreError> {
        rows::operations(&self.db, session, Self::bounds(&range))
    }

    fn undos(&self, session: SessionKey) -> Result<Vec<(u64, u64)>, StoreError> {
        let mut query = self.db.prepare_cached(
            "SELECT n, undoes FROM operation WHERE session = ? AND undoes IS NOT NULL ORDER BY n",
        )?;
        let rows = query.query_map([session.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn facts(
        &self,
        session: SessionKey,
        range: Range<u64>,
        kinds: &[FactKind],
    ) -> Result<Vec<(u64, Facts)>, StoreError> {
        rows::facts(&self.db, session, Self::bounds(&range), kinds)
    }

    fn checkpoints(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<(u64, Checkpoint)>, StoreError> {
        rows::checkpoints(&self.db, session, Self::bounds(&range))
    }

    fn origins(
        &self,
        session: SessionKey,
        entries: Range<u64>,
    ) -> Result<Vec<(u64, Origin)>, StoreError> {
        rows::origins(&self.db, session, Self::bounds(&entries))
    }

    fn branches(&self, session: SessionKey) -> Result<Vec<(String, Position)>, StoreError> {
        rows::branches(&self.db, session)
    }

    fn files(&self, path: &[u8]) -> Result<Vec<(SessionKey, SessionName, u64)>, StoreError> {
        let mut query = self.db.prepare_cached(
            "SELECT key, format, id, n FROM file JOIN session ON key = session WHERE path = ? ORDER BY key, n",
        )?;
        let files = query.query_map([path], |row| {
            let name = SessionName { format: row.get(1)?, id: row.get(2)? };
            Ok((SessionKey(row.get(0)?), name, row.get(3)?))
        })?;
        Ok(files.collect::<Result<_, _>>()?)
    }

    fn runs(
        &self,
        session: SessionKey,
        generation: u64,
        from: u64,
    ) -> Result<Vec<Run>, StoreError> {
        rows::runs(&self.db, session, generation, from)
    }

    fn entries(&self, session: SessionKey, range: Range<u64>) -> Result<Vec<Entry>, StoreError> {
        rows::entries(&self.db, session, Self::bounds(&range))
    }

    fn line_ids(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<(LineId, u64)>, StoreError> {
        rows::line_ids(&self.db, session, Self::bounds(&range))
    }

    fn find(&self, session: SessionKey, find: &Find) -> Result<Vec<u64>, StoreError> {
        rows::find(&self.db, session, find)
    }

    fn lines(
        &self,
        session: SessionKey,
        entries: &[u64],
        each: &mut dyn FnMut(u64, Vec<u8>),
    ) -> Result<(), StoreError> {
        let look = self.db.is_autocommit().then(|| self.db.unchecked_transaction()).transpose()?;
        self.bytes.lines(&self.db, session, entries, each)?;
        look.map_or(Ok(()), |look| Ok(look.finish()?))
    }

    fn records(&self, session: SessionKey, range: Range<u64>) -> Result<Vec<Record>, StoreError> {
        rows::records(&self.db, session, Self::bounds(&range))
    }

    fn boundary(&self, session: SessionKey, range: Range<u64>) -> Result<Option<u64>, StoreError> {
        rows::boundary(&self.db, session, Self::bounds(&range))
    }

    fn twins(&self, session: SessionKey) -> Result<Vec<NameTag>, StoreError> {
        let mut query =
            self.db.prepare_cached("SELECT name FROM twin WHERE session = ? ORDER BY name")?;
        let names = query.query_map([session.0], |row| Ok(NameTag::new(row.get(0)?)))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    fn ties(&self, session: SessionKey) -> Result<Vec<(u64, Vec<Tie>)>, StoreError> {
        rows::ties(&self.db, session)
    }

    fn tied(&self, format: &str, tie: &Tie) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        list::tied(&self.db, format, tie)
    }

    fn card(&self, session: SessionKey) -> Result<Card, StoreError> {
        let mut query = self.db.prepare_cached(
            "SELECT title, folder, started, active, turns, hidden FROM card WHERE session = ?",
        )?;
        Ok(query.query_row([session.0], |row| rows::card(row, 0)).optional()?.unwrap_or_default())
    }

    fn hold(&self) -> Result<(), StoreError> {
        if self.db.is_autocommit() {
            self.db.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        }
        Ok(())
    }

    fn release(&self) {
        if self.access != Access::Read && !self.gathers {
            self.roll_back();
        }
    }

    fn commit(&mut self, commit: Commit) -> Result<SessionKey, StoreError> {
        self.writable()?;
        self.hold()?;
        let ends = !self.gathers;
        let added = self.add(commit).and_then(|key| {
            if ends {
                self.end()?;
            }
            Ok(key)
        });
        let key = added.inspect_err(|_| self.abandon())?;
        if ends {
            // The operation is safe; packing and emptying the WAL are housekeeping that the next commit does again.
            let _ = self.tidy();
        }
        Ok(key)
    }

    fn gather(&mut self) -> Result<(), StoreError> {
        self.writable()?;
        self.hold()?;
        self.gathers = true;
        self.bytes.gather(&self.db).inspect_err(|_| self.gathers = false)
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        if !std::mem::take(&mut self.gathers) {
            return Ok(());
        }
        let settled = self.bytes.settle(&self.db).and_then(|()| self.end());
        settled.inspect_err(|_| self.abandon())?;
        let _ = self.tidy();
        Ok(())
    }

    fn is_stale(&self) -> Result<bool, StoreError> {
        let mut query = self.db.prepare_cached("SELECT version FROM rules")?;
        Ok(query.query_row([], |row| row.get::<_, i64>(0))? != RULES_VERSION)
    }

    fn freshened(&mut self) -> Result<(), StoreError> {
        self.db.execute("UPDATE rules SET version = ?", [RULES_VERSION])?;
        Ok(())
    }

    fn derive(&mut self, session: SessionKey, derived: &Derived) -> Result<(), StoreError> {
        let transaction =
            rusqlite::Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        for table in ["record", "twin", "tie"] {
            transaction.execute(&format!("DELETE FROM {table} WHERE session = ?"), [session.0])?;
        }
        add::add_derived(
            &transaction,
            session,
            &derived.records,
            &derived.twins,
            &derived.ties,
            Some(&derived.card),
        )?;
        Ok(transaction.commit()?)
    }

    fn sighting(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError> {
        let mut query = self.db.prepare_cached(
            "SELECT inode, length, modified, changed FROM sighting WHERE path = ?",
        )?;
        let sighting = query.query_row([path], |row| {
            Ok(Sighting {
                path: path.to_owned(),
                inode: row.get::<_, i64>(0)?.cast_unsigned(),
                length: row.get(1)?,
                modified: row.get(2)?,
                changed: row.get(3)?,
            })
        });
        Ok(sighting.optional()?)
    }

    fn sight(&mut self, sightings: &[Sighting]) -> Result<(), StoreError> {
        // While the store is held, they go with the next commit; without one they are only compared again.
        let alone = self.db.is_autocommit();
        self.hold()?;
        let mut keep = self.db.prepare_cached(
            "INSERT OR REPLACE INTO sighting (path, inode, length, modified, changed) VALUES (?, ?, ?, ?, ?)",
        )?;
        for seen in sightings {
            let inode = seen.inode.cast_signed();
            keep.execute(params![seen.path, inode, seen.length, seen.modified, seen.changed])?;
        }
        drop(keep);
        if alone { self.end() } else { Ok(()) }
    }

    fn counts(
        &self,
        session: SessionKey,
        range: Range<u64>,
        rule: u64,
    ) -> Result<Vec<(u64, Vec<u64>)>, StoreError> {
        if !open::has_counts(&self.db)? {
            return Ok(Vec::new());
        }
        rows::counts(&self.db, session, Self::bounds(&range), rule)
    }

    fn keep_counts(
        &mut self,
        session: SessionKey,
        rule: u64,
        counts: &[(u64, Vec<u64>)],
    ) -> Result<(), StoreError> {
        if self.access == Access::Read {
            return Err(StoreError::ReadOnly { path: self.path.clone() });
        }
        let transaction =
            rusqlite::Transaction::new_unchecked(&self.db, TransactionBehavior::Immediate)?;
        // Stores that are older than this cache get it when it is first filled.
        if !open::has_counts(&transaction)? {
            transaction.execute_batch(open::COUNTS)?;
        }
        rows::keep_counts(&transaction, session, rule, counts)?;
        Ok(transaction.commit()?)
    }

    fn check(&self, report: &mut dyn FnMut(Fault)) -> Result<(), StoreError> {
        let mut fault = |item: &str, problem: String| {
            report(Fault { session: None, item: item.to_owned(), problem });
        };
        let mut integrity = self.db.prepare("PRAGMA integrity_check")?;
        let mut rows = integrity.query([])?;
        while let Some(row) = rows.next()? {
            let problem: String = row.get(0)?;
            if problem != "ok" {
                fault("store.db", problem);
            }
        }
        for (name, problem) in open::altered(&self.db)? {
            fault(&name, problem.to_owned());
        }
        bytes::check(&self.db, &self.path, &mut fault)
    }

    fn sizes(&self) -> Result<Sizes, StoreError> {
        bytes::sizes(&self.db)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::corrupt("store.db", error.to_string())
            }
            // A full disk also shows when the companion of the WAL cannot be made or grow.
            Some(ErrorCode::SystemIoFailure)
                if matches!(
                    extended(&error),
                    Some(ffi::SQLITE_IOERR_SHMOPEN | ffi::SQLITE_IOERR_SHMSIZE)
                ) =>
            {
                Self::Full
            }
            _ => match error {
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::Utf8Error(..) => Self::corrupt("store.db", error.to_string()),
                _ => Self::Database(Box::new(error)),
            },
        }
    }
}

fn extended(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

/// Reads a column that holds 32 bytes.
fn hash(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<[u8; 32]> {
    row.get(column)
}

/// Reads a column that holds an operation's hash.
fn operation_id(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<OperationId> {
    Ok(OperationId::new(hash(row, column)?))
}
