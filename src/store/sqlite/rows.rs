//! Rows: facts and bytes as stored in the tables, without the operations in the journal. `add.rs` writes rows, `derived.rs` reads
//! derived rows. Only `sqlite/` knows the names of columns.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, Row, params};

use crate::store::sqlite::{
    add::OWN,
    bytes::{cover, lengths, lines::Bytes, long_values},
    check,
    derived::Standing,
    journal, list,
    query::{bounds, collect, damaged, first, hash, tagged},
    totals,
};
use crate::{
    model::{
        Checkpoint, CheckpointNumber, Cutting, Digest, Entry, EntryId, EntryNumber, Gaps,
        GenerationNumber, IdPrefix, Operation, OperationId, OperationNumber, Origin, Position, Run,
        Running, SessionName, StoreId, Text, Words,
    },
    store::{
        ByteStore, Cursor, FactStore, Fault, SessionFilter, SessionKey, Sieve, Sizes, StoreError,
        Total,
    },
};

/// How many lines of a session are checked together.
const LINES: usize = 1024;
/// How many session names are cached.
const NAMES: usize = 1 << 12;

/// The tables.
pub(super) struct Tables {
    pub(super) db: Connection,
    pub(super) bytes: RefCell<Bytes>,
    /// Whether a write transaction is open.
    pub(super) is_writing: Cell<bool>,
    pub(super) id: StoreId,
    pub(super) path: PathBuf,
    /// Session keys by name: a session is never deleted, and never changes its key.
    keys: RefCell<BTreeMap<SessionName, SessionKey>>,
    /// The states of sessions that are written to, valid until another connection writes.
    pub(super) standing: Standing,
}

impl Tables {
    pub(super) fn new(db: Connection, id: StoreId, path: &Path) -> Self {
        Self {
            db,
            bytes: RefCell::default(),
            is_writing: Cell::new(false),
            id,
            path: path.to_owned(),
            keys: RefCell::default(),
            standing: Standing::default(),
        }
    }

    /// Drops the additions of a transaction that was rolled back.
    pub(super) fn forget(&self) {
        if let Ok(mut bytes) = self.bytes.try_borrow_mut() {
            bytes.forget();
        }
        self.keys.borrow_mut().clear();
        self.standing.clear();
    }
}

impl FactStore for Tables {
    fn id(&self) -> Result<StoreId, StoreError> {
        Ok(self.id)
    }

    fn names(&self) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        collect(&self.db, "SELECT key, format, id FROM session ORDER BY key", [], |row| {
            Ok((SessionKey(row.get(0)?), SessionName { format: row.get(1)?, id: row.get(2)? }))
        })
    }

    fn beside(&self, name: &SessionName) -> Result<Vec<SessionName>, StoreError> {
        list::beside(&self.db, name)
    }

    fn session(&self, name: &SessionName) -> Result<Option<SessionKey>, StoreError> {
        if let Some(key) = self.keys.borrow().get(name) {
            return Ok(Some(*key));
        }
        let found = first(
            &self.db,
            "SELECT key FROM session WHERE format = ? AND id = ?",
            [&name.format, &name.id],
            |row| row.get(0).map(SessionKey),
        )?;
        if let Some(key) = found {
            let mut keys = self.keys.borrow_mut();
            if keys.len() >= NAMES {
                keys.clear();
            }
            keys.insert(name.clone(), key);
        }
        Ok(found)
    }

    fn operations(
        &self,
        session: SessionKey,
        range: Range<OperationNumber>,
    ) -> Result<Vec<Operation>, StoreError> {
        let (from, to) = bounds(&range);
        let words = words(&self.db, session, from, to)?;
        let rows = collect(
            &self.db,
            "SELECT n, record, hash FROM operation
             WHERE session = ? AND store = ? AND n >= ? AND n < ? ORDER BY n",
            params![session.0, OWN, from, to],
            |row| Ok((row.get(0)?, row.get(1)?, OperationId::new(hash(row, 2)?))),
        )?;
        let open = |(n, record, hash)| {
            let words = words.get(&n).map(Vec::as_slice).unwrap_or_default();
            Operation::open(n, record, hash, words)
                .map_err(|malformed| StoreError::corrupt(format!("operation {n}"), malformed.0))
        };
        rows.into_iter().map(open).collect()
    }

    fn entries(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<Entry>, StoreError> {
        let (from, to) = bounds(&range);
        collect(
            &self.db,
            "SELECT n, id, n - link FROM entry WHERE session = ? AND n >= ? AND n < ? ORDER BY n",
            params![session.0, from, to],
            |row| Ok(Entry { n: row.get(0)?, id: EntryId::new(hash(row, 1)?), link: row.get(2)? }),
        )
    }

    /// Sorted here: an ORDER BY would make the planner walk the whole session.
    fn find(&self, session: SessionKey, prefix: &IdPrefix) -> Result<Vec<EntryNumber>, StoreError> {
        let (low, high) = prefix.bounds();
        let (low, high) = (low.as_bytes(), high.as_bytes());
        let mut found = if low == high {
            collect(
                &self.db,
                "SELECT n FROM entry INDEXED BY entry_id
                 WHERE substr(id, 1, 6) = substr(?2, 1, 6) AND session = ?1 AND id = ?2",
                params![session.0, low],
                |row| row.get(0),
            )?
        } else {
            // The index covers all sessions: with few digits, scanning the session itself is faster.
            let sql = if low.get(..2) == high.get(..2) {
                "SELECT n FROM entry INDEXED BY entry_id WHERE +session = ?1 AND id BETWEEN ?2 AND ?3
                   AND substr(id, 1, 6) BETWEEN substr(?2, 1, 6) AND substr(?3, 1, 6)"
            } else {
                "SELECT n FROM entry WHERE session = ?1 AND id BETWEEN ?2 AND ?3"
            };
            collect(&self.db, sql, params![session.0, low, high], |row| row.get(0))?
        };
        found.sort_unstable();
        Ok(found)
    }

    fn runs(
        &self,
        session: SessionKey,
        generation: GenerationNumber,
        from: u64,
    ) -> Result<Vec<Run>, StoreError> {
        let mut runs = collect(
            &self.db,
            "SELECT generation, start, first, count, gaps, bytes, running, tail FROM run
             WHERE session = ?1 AND generation = ?2 AND start >= ifnull(
               (SELECT start FROM run WHERE session = ?1 AND generation = ?2 AND start <= ?3 ORDER BY start DESC LIMIT 1), 0)
             ORDER BY start, operation",
            params![session.0, generation, from],
            |row| run(row, 0),
        )?;
        runs.retain(|run| from == 0 || run.end() > from);
        Ok(runs)
    }

    fn growths(
        &self,
        session: SessionKey,
        operations: Range<OperationNumber>,
    ) -> Result<Vec<(OperationNumber, Run)>, StoreError> {
        let (from, to) = bounds(&operations);
        // Reading all rows in table order is faster; the + keeps the planner from using the index.
        let operation = if from <= 1 && to == i64::MAX { "+operation" } else { "operation" };
        let mut found = collect(
            &self.db,
            &format!(
                "SELECT operation, generation, start, first, count, gaps, bytes, running, tail
                 FROM run WHERE session = ? AND {operation} >= ? AND {operation} < ?"
            ),
            params![session.0, from, to],
            |row| Ok((row.get(0)?, run(row, 1)?)),
        )?;
        found.sort_by_key(|(operation, run)| (*operation, run.generation, run.start));
        Ok(found)
    }

    fn checkpoints(
        &self,
        session: SessionKey,
        range: Range<CheckpointNumber>,
    ) -> Result<Vec<(OperationNumber, Checkpoint)>, StoreError> {
        let (from, to) = bounds(&range);
        let mut found: Vec<(OperationNumber, Checkpoint)> = collect(
            &self.db,
            "SELECT operation, n, generation, head, horizon, before, own, note FROM checkpoint
             WHERE session = ? AND n >= ? AND n < ? ORDER BY n",
            params![session.0, from, to],
            |row| {
                let given = Checkpoint {
                    n: row.get(1)?,
                    place: Position {
                        generation: row.get(2)?,
                        head: row.get(3)?,
                        horizon: row.get(4)?,
                    },
                    before: row.get(5)?,
                    own: row.get(6)?,
                    note: if row.get_ref(7)? == rusqlite::types::ValueRef::Null {
                        None
                    } else {
                        Some(tagged(row, 7)?)
                    },
                };
                Ok((row.get(0)?, given))
            },
        )?;
        // Few of them have a user text.
        for (operation, given) in &mut found {
            if let Some(note @ Text::Absent(_)) = &mut given.note {
                let (from, to) = bounds(&operation.alone());
                let words = words(&self.db, session, from, to)?.remove(operation);
                note.fill(&words.unwrap_or_default());
            }
        }
        Ok(found)
    }

    fn origins(
        &self,
        session: SessionKey,
        entries: Range<EntryNumber>,
    ) -> Result<Vec<(OperationNumber, Origin)>, StoreError> {
        let (from, to) = bounds(&entries);
        collect(
            &self.db,
            "SELECT operation, entry, origin, cut FROM origin
             WHERE session = ? AND entry >= ? AND entry < ? ORDER BY entry, operation",
            params![session.0, from, to],
            |row| {
                let cut: Option<Cutting> = if row.get_ref(3)? == rusqlite::types::ValueRef::Null {
                    None
                } else {
                    Some(tagged(row, 3)?)
                };
                Ok((row.get(0)?, Origin { entry: row.get(1)?, origin: row.get(2)?, cut }))
            },
        )
    }

    fn since(&self, cursor: Option<&Cursor>) -> Result<(Vec<SessionKey>, Cursor), StoreError> {
        let seen = match cursor.and_then(Cursor::newest) {
            Some((seq, hash)) if journal::hash_at(&self.db, seq)? == Some(hash) => seq,
            _ => 0,
        };
        // Sorted here: an ORDER BY would make the planner walk all operations.
        let mut found: Vec<i64> = if seen == 0 {
            collect(&self.db, "SELECT key FROM session", [], |row| row.get(0))?
        } else {
            collect(
                &self.db,
                "SELECT session FROM operation NOT INDEXED WHERE seq > ?",
                [bounds(&(seen..seen)).0],
                |row| row.get(0),
            )?
        };
        found.sort_unstable();
        found.dedup();
        let newest = journal::newest(&self.db)?.map(|(seq, hash)| Cursor::at(seq, hash));
        let cursor = newest.unwrap_or_default();
        Ok((found.into_iter().map(SessionKey).collect(), cursor))
    }
}

impl ByteStore for Tables {
    fn tally(&self, filter: &SessionFilter) -> Result<BTreeMap<String, u64>, StoreError> {
        list::tally(&self.db, filter)
    }

    fn lines(
        &self,
        session: SessionKey,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError> {
        self.bytes.borrow().lines(&self.db, session, entries, each)
    }

    fn sift(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        sieve: &Sieve,
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError> {
        self.bytes.borrow().sift(&self.db, session, range, sieve, each)
    }

    fn lengths(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<u64>, StoreError> {
        let (from, to) = bounds(&range);
        let lines: Vec<i64> = collect(
            &self.db,
            "SELECT line FROM entry WHERE session = ? AND n >= ? AND n < ? ORDER BY n",
            params![session.0, from, to],
            |row| row.get(0),
        )?;
        let bytes = self.bytes.borrow();
        lines.into_iter().map(|line| bytes.size_of(&self.db, line)).collect()
    }

    fn kept(
        &self,
        session: SessionKey,
        operation: OperationNumber,
        at: u64,
    ) -> Result<Vec<u8>, StoreError> {
        let item = || format!("operation {operation}");
        let line = first(
            &self.db,
            "SELECT line FROM kept WHERE session = ? AND operation = ? AND n = ?",
            params![session.0, operation, bounds(&(at..at)).0],
            |row| row.get(0),
        )?;
        let wanted = self.operations(session, operation.alone())?;
        let wanted = wanted.first().and_then(|operation| cover::kept_digest(operation, at));
        let (Some(line), Some(wanted)) = (line, wanted) else {
            return Err(StoreError::corrupt(item(), "it has no such file"));
        };
        let bytes = self.bytes.borrow().line(&self.db, line)?;
        let found = Digest::of_bytes(&bytes);
        let is_covered = || -> Result<bool, StoreError> {
            let standing = self.standing(session)?;
            Ok(standing.0.covered_file(operation, at).is_some_and(|file| file.digest == found))
        };
        if found == wanted || is_covered()? {
            Ok(bytes)
        } else {
            Err(StoreError::corrupt(item(), "a file that it keeps has changed"))
        }
    }

    fn check(
        &self,
        only: Option<SessionKey>,
        report: &mut dyn FnMut(Fault),
    ) -> Result<(), StoreError> {
        // Caches must not hide what is on disk, except for uncommitted rows, which only this connection sees.
        let fresh = RefCell::default();
        let bytes = if self.is_writing.get() { &self.bytes } else { &fresh }.borrow();
        let Some(session) = only else {
            let path = (!self.is_writing.get()).then_some(&*self.path);
            return check::check(&self.db, &bytes, path, report);
        };
        check::structure(&self.db, only, report)?;
        let mut tell = |error: StoreError| Fault::of_error(error, only).map(&mut *report);
        let end: u64 = first(
            &self.db,
            "SELECT ifnull(max(n), 0) FROM entry WHERE session = ?",
            [session.0],
            |row| row.get(0),
        )?
        .unwrap_or(0);
        let all = EntryNumber::FIRST..EntryNumber::FIRST.plus(end);
        for batch in EntryNumber::batches(all, LINES) {
            let entries: Vec<EntryNumber> = EntryNumber::each(batch).collect();
            let mut damaged = Vec::new();
            bytes.lines(&self.db, session, &entries, &mut |_, line| damaged.extend(line.err()))?;
            damaged.into_iter().try_for_each(&mut tell)?;
        }
        let sql = "SELECT operation, n FROM kept WHERE session = ? ORDER BY operation, n";
        let kept = collect(&self.db, sql, [session.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (operation, n) in kept {
            self.kept(session, operation, n).map(drop).or_else(&mut tell)?;
        }
        Ok(())
    }

    fn sizes(&self) -> Result<Sizes, StoreError> {
        lengths::sizes(&self.db)
    }

    fn totals(&self) -> Result<Vec<Total>, StoreError> {
        totals::read(&self.db)
    }
}

fn run(row: &Row<'_>, at: usize) -> rusqlite::Result<Run> {
    let torn = || damaged(at + 4, "the separators of a run are damaged");
    Ok(Run {
        generation: row.get(at)?,
        start: row.get(at + 1)?,
        first: row.get(at + 2)?,
        count: row.get(at + 3)?,
        gaps: Gaps::decode(row.get_ref(at + 4)?.as_blob()?).ok_or_else(torn)?,
        bytes: row.get(at + 5)?,
        running: Running::new(hash(row, at + 6)?),
        tail: long_values::read(row, at + 7)?.into_owned(),
    })
}

/// Returns the user texts of operations.
fn words(
    db: &Connection,
    session: SessionKey,
    from: i64,
    to: i64,
) -> Result<BTreeMap<OperationNumber, Vec<Words>>, StoreError> {
    let all = collect(
        db,
        "SELECT operation, salt, text FROM words
         WHERE session = ? AND operation >= ? AND operation < ?",
        params![session.0, from, to],
        |row| Ok((row.get(0)?, Words { salt: row.get(1)?, text: row.get(2)? })),
    )?;
    let mut words: BTreeMap<OperationNumber, Vec<Words>> = BTreeMap::new();
    for (operation, given) in all {
        words.entry(operation).or_default().push(given);
    }
    Ok(words)
}
