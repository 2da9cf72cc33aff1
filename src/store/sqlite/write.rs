//! Writing: the transaction, and the follow-up work once it is durable.
//!
//! ```text
//! begin     take the writer lock; read the journal if another program has written in the meantime
//! add       small operations go into the journal. The first larger one, or a full journal, settles the journal, and from
//!           there on everything goes into the tables
//! commit    one sync; then the witness, and settling, packing and emptying the WAL as far as due
//! ```
//!
//! Invariant: nothing of a commit is added before it was checked against the journal and the tables, so that settling it never
//! violates a trigger.
//! Invariant: synchronous is never less than FULL when anything new is committed.

use std::{
    cell::RefMut,
    collections::{BTreeMap, btree_map},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rusqlite::{Connection, params};

use crate::store::sqlite::{
    RULES_VERSION, SqliteStore, WAL_PAGES, WAL_PAGES_BRIEF,
    add::{self, Placed},
    bytes::{cover, lines::Bytes, redact},
    journal::{self, Hashes, Journal, Row},
    open::{Access, PATIENCE},
    query::{self, Emptied, collect, execute, first},
    totals,
};
use crate::{
    model::{
        Card, Entry, EntryNumber, Glance, Record, State, Tagged as _, Tie, TieKind, put_varint,
    },
    store::{
        CacheStore, Commit, Committed, Coverings, Derived, FactStore, NewLine, SessionKey,
        Sighting, StoreError, Transaction,
        answer::Layered as _,
        overlay::{Overlay, laid::KnownOf},
    },
};

/// How long settling waits for another writer, which can settle as well.
const SETTLING_PATIENCE: Duration = Duration::from_millis(5);
/// How many times its limit the journal may grow before settling waits as long as any other writer.
const OVERFULL: u64 = 4;

/// The transaction in progress.
pub(super) struct Writing<'a> {
    store: &'a SqliteStore,
    /// Whether operations go directly into the tables. The journal is empty then.
    is_direct: bool,
    /// Whether anything was added.
    is_changed: bool,
    /// How many operations and bytes this transaction has added to the journal.
    added: (u64, u64),
    stage: Stage,
}

/// The stage of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// A part of it failed.
    Broken,
    Ended,
}

impl SqliteStore {
    fn bytes(&self) -> Result<RefMut<'_, Bytes>, StoreError> {
        self.tables.bytes.try_borrow_mut().map_err(|_| StoreError::Busy)
    }

    fn journal_mut(&self) -> Result<RefMut<'_, Journal>, StoreError> {
        self.journal.try_borrow_mut().map_err(|_| StoreError::Busy)
    }

    /// Moves the operations of the journal into the tables, within the open transaction.
    fn settle(&self) -> Result<(), StoreError> {
        let mut rows = Vec::new();
        journal::each_row(self.db(), Hashes::Computed, |seq, _, row| {
            rows.push((seq, row));
            Ok(())
        })?;
        let Some(last) = rows.last().map(|(seq, _)| *seq) else { return Ok(()) };
        self.add_to_tables(rows, None)?;
        execute(self.db(), "DELETE FROM journal WHERE seq <= ?", [last])?;
        let mut journal = self.journal_mut()?;
        (journal.overlay, journal.rows, journal.bytes) = (Overlay::default(), 0, 0);
        Ok(())
    }

    /// Adds operations to the tables, within the open transaction. `new` is a session that has none yet.
    fn add_to_tables(
        &self,
        mut rows: Vec<(u64, Row)>,
        new: Option<SessionKey>,
    ) -> Result<(), StoreError> {
        let db = self.db();
        let mut lines = Vec::with_capacity(rows.len());
        let mut grown: BTreeMap<SessionKey, (u64, u64)> = BTreeMap::new();
        let mut standing: BTreeMap<SessionKey, (State, Card)> = BTreeMap::new();
        for (_, Row { session, commit }) in &mut rows {
            let (entries, bytes) = grown.entry(*session).or_default();
            *entries += commit.lines.len() as u64;
            *bytes += commit.lines.iter().map(|line| line.bytes().len() as u64).sum::<u64>();
            lines.push(place(db, &mut *self.bytes()?, commit)?);
            let (state, card) = match standing.entry(*session) {
                btree_map::Entry::Occupied(there) => there.into_mut(),
                btree_map::Entry::Vacant(place) if new == Some(*session) => {
                    place.insert(Default::default())
                }
                btree_map::Entry::Vacant(place) => {
                    place.insert(Arc::unwrap_or_clone(self.tables.standing(*session)?))
                }
            };
            state.apply(&commit.operation, &commit.bulk);
            if let Some(shown) = commit.card.take() {
                *card = shown;
            }
        }
        let placed: Vec<Placed<'_>> = rows
            .iter()
            .zip(lines)
            .map(|((seq, row), (lines, kept))| row.placed(*seq, lines, kept))
            .collect();
        add::add_facts(db, &placed)?;
        let records: Vec<(SessionKey, &[Record])> =
            rows.iter().map(|(_, row)| (row.session, row.commit.records.as_slice())).collect();
        add::add_records(db, &records)?;
        for (_, Row { session, commit }) in &rows {
            add::add_twins_and_ties(db, *session, &commit.twins, &commit.ties)?;
            let facts = &commit.operation.facts;
            for file in &facts.files {
                add::add_places(db, *session, file.n, std::iter::once(&file.place))?;
            }
            cover::add(db, *session, &facts.tombstones)?;
        }
        for (session, standing) in standing {
            self.tables.stand(session, standing)?;
        }
        for (session, (entries, bytes)) in grown {
            totals::add(db, session, u64::from(new == Some(session)), entries, bytes)?;
        }
        Ok(())
    }

    /// Commits.
    fn end(&self) -> Result<(), StoreError> {
        let committed = self.db().prepare_cached("COMMIT")?.execute([]);
        let io = Some(rusqlite::ErrorCode::SystemIoFailure);
        if committed.as_ref().is_err_and(|error| error.sqlite_error_code() == io) {
            self.failed.set(true);
        }
        committed?;
        Ok(())
    }

    /// Rolls back uncommitted writes.
    fn roll_back(&self) {
        if !self.db().is_autocommit() {
            // If this fails, the transaction is rolled back when the connection closes.
            let _ = self.db().execute_batch("ROLLBACK");
        }
        self.tables.is_writing.set(false);
    }

    /// Forgets what was written, in memory.
    fn forget(&self) {
        self.tables.forget();
        if let Ok(mut journal) = self.journal.try_borrow_mut() {
            journal.version = None;
        }
    }

    /// Does the deferred work that is due.
    fn tidy(&self) -> Result<(), StoreError> {
        let (rows, bytes) = self.limits;
        let (held, held_bytes) = {
            let journal = self.journal.borrow();
            (journal.rows, journal.bytes)
        };
        let is_full = held > 0 && (held >= rows || held_bytes >= bytes);
        if is_full || self.bytes()?.is_due() {
            let is_overfull = held / OVERFULL > rows || held_bytes / OVERFULL > bytes;
            let patience = if is_overfull { PATIENCE } else { SETTLING_PATIENCE };
            // If another program is writing, it can do this work too.
            self.apart(patience, || {
                if is_full {
                    self.settle_journal()?;
                }
                self.bytes()?.pack(self.db())
            })?;
            if is_full {
                // Nothing waits for the witness, and the next commit writes it again.
                let _ = self.witness.borrow_mut().sync();
            }
        }
        self.empty_wal()
    }

    /// Moves the operations of the journal into the tables, with their lines.
    pub(super) fn settle_journal(&self) -> Result<(), StoreError> {
        self.settle()?;
        self.bytes()?.settle(self.db())
    }

    /// Does work in a transaction that does not sync, because it adds nothing new. Returns nothing if another program is writing.
    pub(super) fn apart<T>(
        &self,
        patience: Duration,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let db = self.db();
        db.busy_timeout(patience)?;
        db.execute_batch("PRAGMA synchronous = NORMAL")?;
        let done = match db.prepare_cached("BEGIN IMMEDIATE").and_then(|mut s| s.execute([])) {
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
            Ok(_) => {
                let done = self.refresh().and_then(|()| {
                    self.tables.is_writing.set(true);
                    let done = work()?;
                    self.end()?;
                    Ok(Some(done))
                });
                self.tables.is_writing.set(false);
                if done.is_err() {
                    self.roll_back();
                    self.forget();
                }
                done
            }
        };
        let back = db.execute_batch("PRAGMA synchronous = FULL");
        if back.is_err() || !db.is_autocommit() {
            // Commits from here on might not be durable.
            self.failed.set(true);
        }
        db.busy_timeout(PATIENCE)?;
        let done = done?;
        back?;
        Ok(done)
    }

    /// Moves a long WAL into the database. A reader in the way only delays this.
    pub(super) fn empty_wal(&self) -> Result<(), StoreError> {
        let is_brief = self.access == Access::Brief;
        let limit = if is_brief { WAL_PAGES_BRIEF } else { WAL_PAGES };
        if self.wal_pages.load(Ordering::Relaxed) < limit {
            return Ok(());
        }
        let emptied = if is_brief { Emptied::Truncated } else { Emptied::Restarted };
        // Waiting for a reader would block every commit for as long as it reads.
        self.db().busy_timeout(Duration::ZERO)?;
        // After a failed sync, a later one may succeed without the lost pages.
        let moved = self.sure(query::empty_wal(self.db(), emptied));
        self.db().busy_timeout(PATIENCE)?;
        match moved {
            Err(StoreError::Busy) => Ok(()),
            moved => moved,
        }
    }
}

/// Stores the lines and files of a commit, and returns their line numbers.
pub(super) fn place(
    db: &Connection,
    bytes: &mut Bytes,
    commit: &mut Commit,
) -> Result<(Vec<i64>, Vec<i64>), StoreError> {
    bytes.begin_operation(db, repeated(db, commit)?)?;
    let entries = commit.bulk.entries.iter().zip(commit.lines.drain(..));
    let add = |(entry, line): (&Entry, NewLine)| {
        bytes.add(db, line, entry.link.is_none().then_some(&entry.id))
    };
    let lines = entries.map(add).collect::<Result<_, _>>()?;
    let kept =
        commit.kept.drain(..).map(|kept| bytes.add(db, NewLine::new(kept, Vec::new()), None));
    Ok((lines, kept.collect::<Result<_, _>>()?))
}

/// Returns the first line of the session that a new one may repeat: the one it declares to be a fork of, or one with the same
/// beginning.
fn repeated(db: &Connection, commit: &Commit) -> Result<Option<i64>, StoreError> {
    let is_new = commit.operation.first == EntryNumber::FIRST;
    let ties = commit.ties.iter().filter(|_| is_new).flat_map(|(_, ties)| ties);
    for Tie { kind, other } in ties {
        let session: Option<i64> = match kind {
            TieKind::Fork => {
                let sql = "SELECT key FROM session WHERE format = ? AND id = ?";
                first(db, sql, [&commit.session.format, other], |row| row.get(0))?
            }
            TieKind::Beginning => {
                let sql = "SELECT session FROM tie WHERE other = ? AND kind = ? LIMIT 1";
                first(db, sql, params![other, kind.code()], |row| row.get(0))?
            }
            TieKind::SubAgent | TieKind::Continuation => None,
        };
        let Some(session) = session else { continue };
        let sql = "SELECT line FROM entry WHERE session = ? AND n = 1";
        let line = first(db, sql, [session], |row| row.get(0))?;
        if line.is_some() {
            return Ok(line);
        }
    }
    Ok(None)
}

impl<'a> Writing<'a> {
    /// Begins to write.
    pub(super) fn begin(store: &'a SqliteStore) -> Result<Self, StoreError> {
        store.writable()?;
        if !store.db().is_autocommit() {
            return Err(StoreError::Busy);
        }
        store.db().prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let (is_direct, is_changed) = (false, false);
        let writing = Self { store, is_direct, is_changed, added: (0, 0), stage: Stage::Open };
        store.refresh()?;
        store.tables.is_writing.set(true);
        Ok(writing)
    }

    /// Refuses to continue after a failed part. SQLite rolls back on its own when the disk is full.
    fn alive(&self) -> Result<(), StoreError> {
        if self.stage != Stage::Open || self.store.db().is_autocommit() {
            return Err(StoreError::Refused("an earlier part of the transaction failed".into()));
        }
        Ok(())
    }

    /// Does a part of the work. If it fails, the transaction cannot continue.
    fn work<T>(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.alive()?;
        self.is_changed = true;
        let done = part(self);
        if done.is_err() {
            self.stage = Stage::Broken;
        }
        done
    }

    /// Sends all further operations into the tables.
    fn go_direct(&mut self) -> Result<(), StoreError> {
        if !self.is_direct {
            self.store.settle()?;
            self.is_direct = true;
        }
        Ok(())
    }

    /// Encodes an operation for the journal, if it goes there.
    fn row(&self, seq: u64, session: Option<SessionKey>, commit: &Commit) -> Option<Vec<u8>> {
        let (rows, bytes) = self.store.limits;
        let has_room = self.added.0 < rows && self.added.1 < bytes;
        let session = session.filter(|_| !self.is_direct && has_room)?;
        journal::encode(seq, session, commit)
    }
}

impl Transaction for Writing<'_> {
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError> {
        self.alive()?;
        let store = self.store;
        let session = store.session(&commit.session)?;
        let state = store.look(|laid| {
            let state = session.map_or_else(|| Ok(State::default()), |key| laid.state(key))?;
            commit.check(store.tables.id, &state, &KnownOf { laid, session })?;
            Ok(state)
        })?;
        let newest = store.journal.borrow().newest;
        let seq = newest.map_or(1, |(seq, _)| seq + 1);
        let hash = commit.operation.hash;
        self.work(|writing| {
            let key = if let Some((key, row)) = session.zip(writing.row(seq, session, &commit)) {
                let sql = "INSERT INTO journal (seq, body) VALUES (?, ?)";
                execute(store.db(), sql, params![seq, row])?;
                let mut journal = store.journal_mut()?;
                journal
                    .overlay
                    .add(key, seq, commit, || Ok((state, store.tables.standing(key)?.1.clone())))?;
                let bytes = row.len() as u64;
                (journal.rows, journal.bytes) = (journal.rows + 1, journal.bytes + bytes);
                writing.added = (writing.added.0 + 1, writing.added.1 + bytes);
                key
            } else {
                writing.go_direct()?;
                let key =
                    session.map_or_else(|| add::add_session(store.db(), &commit.session), Ok)?;
                let new = session.is_none().then_some(key);
                store.add_to_tables(vec![(seq, Row { session: key, commit })], new)?;
                key
            };
            store.journal_mut()?.newest = Some((seq, hash));
            Ok(key)
        })
    }

    fn derive(&mut self, session: SessionKey, derived: &Derived) -> Result<(), StoreError> {
        self.work(|writing| {
            writing.go_direct()?;
            let before = writing.store.tables.standing(session)?;
            writing.store.tables.standing.clear();
            add::derive(writing.store.db(), session, &before.0, derived)
        })
    }

    fn freshened(&mut self) -> Result<(), StoreError> {
        self.work(|writing| {
            let tables = &writing.store.tables;
            execute(&tables.db, "UPDATE rules SET version = ?", [RULES_VERSION])?;
            tables.db.execute("DELETE FROM glance", [])?;
            totals::sum_up(&tables.db, &tables.bytes.borrow())
        })
    }

    fn sight(&mut self, sightings: &[Sighting]) -> Result<(), StoreError> {
        self.work(|writing| {
            let db = writing.store.db();
            let mut keep = db.prepare_cached(
                "INSERT OR REPLACE INTO sighting (path, inode, length, modified, changed) VALUES (?, ?, ?, ?, ?)",
            )?;
            for seen in sightings {
                let inode = seen.inode.cast_signed();
                keep.execute(params![seen.path, inode, seen.length, seen.modified, seen.changed])?;
            }
            Ok(())
        })
    }

    fn glance(&mut self, glances: &[(SessionKey, Glance)]) -> Result<(), StoreError> {
        self.work(|writing| {
            let db = writing.store.db();
            let mut keep =
                db.prepare_cached("INSERT OR REPLACE INTO glance (session, glance) VALUES (?, ?)")?;
            for (session, glance) in glances {
                keep.execute(params![session.0, glance.to_bytes()])?;
            }
            Ok(())
        })
    }

    fn unsight(&mut self, is_meant: &dyn Fn(&[u8]) -> bool) -> Result<(), StoreError> {
        self.work(|writing| {
            let db = writing.store.db();
            let paths: Vec<Vec<u8>> =
                collect(db, "SELECT path FROM sighting", [], |row| row.get(0))?;
            for path in paths.iter().filter(|path| is_meant(path)) {
                execute(db, "DELETE FROM sighting WHERE path = ?", [path])?;
            }
            Ok(())
        })
    }

    fn cover(&mut self, coverings: Coverings) -> Result<(), StoreError> {
        self.work(|writing| {
            writing.go_direct()?;
            let store = writing.store;
            coverings.check(|session| Ok(store.tables.standing(session)?.0.clone()))?;
            redact::take_out(store.db(), &coverings.words)?;
            redact::cover_runs(store.db(), &coverings.runs)?;
            store.bytes()?.cover(store.db(), coverings)
        })
    }

    fn count(
        &mut self,
        session: SessionKey,
        rule: u64,
        counts: &[(EntryNumber, Vec<u64>)],
    ) -> Result<(), StoreError> {
        self.work(|writing| {
            // Counts of entries in the journal are stored in memory only, as long as the entries are in the journal.
            if !writing.store.journal_mut()?.overlay.count(session, rule, counts) {
                return Ok(());
            }
            let mut keep = writing.store.db().prepare_cached(
                "INSERT OR REPLACE INTO count (line, rule, tokens)
                 SELECT line, ?, ? FROM entry WHERE session = ? AND n = ?",
            )?;
            for (n, tokens) in counts {
                let mut packed = Vec::new();
                for &tokens in tokens {
                    put_varint(&mut packed, tokens);
                }
                keep.execute(params![rule, packed, session.0, n])?;
            }
            Ok(())
        })
    }

    fn commit(mut self: Box<Self>) -> Result<Committed, StoreError> {
        self.alive()?;
        let store = self.store;
        if !self.is_changed {
            return Ok(Committed::default());
        }
        if self.is_direct {
            store.bytes()?.settle(store.db())?;
        }
        store.end()?;
        self.stage = Stage::Ended;
        store.tables.is_writing.set(false);
        if let Some(newest) = store.journal.borrow().newest {
            store.witness.borrow_mut().bear(store.own_id(), newest);
        }
        // The commit is durable whatever happens to this work.
        Ok(Committed { unsettled: store.tidy().err() })
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.stage != Stage::Ended {
            self.store.roll_back();
            if self.is_changed {
                self.store.forget();
            }
        }
    }
}
