//! Adding: writes facts and derived rows to the tables.
//!
//! A statement that fires a trigger needs a savepoint, with copies of the pages that it touches. So the rows of such a table are
//! added by as few statements as possible, across operations.

use rusqlite::{CachedStatement, Connection, ToSql, params};

use crate::store::sqlite::{
    bytes::{cover, long_values},
    query::execute,
};
use crate::{
    model::{
        Bulk, Card, FileNumber, GenerationNumber, NameTag, Operation, Parent, Place, Record,
        SessionName, State, Tagged, Tie,
    },
    store::{Derived, SessionKey, StoreError},
};

/// How many rows one statement adds if there are enough.
const MANY: usize = 32;
/// The store's own chain: `store.key`.
pub(super) const OWN: i64 = 1;

/// An operation ready to be written, with the numbers of its lines and of its stored files.
pub(super) struct Placed<'a> {
    pub(super) session: SessionKey,
    pub(super) seq: u64,
    pub(super) operation: &'a Operation,
    pub(super) bulk: &'a Bulk,
    pub(super) lines: Vec<i64>,
    pub(super) kept: Vec<i64>,
}

/// A row whose columns are bound in order.
struct Row<'a, 's> {
    statement: &'a mut CachedStatement<'s>,
    column: usize,
}

impl Row<'_, '_> {
    /// Sets the next column.
    fn set(&mut self, value: impl ToSql) -> rusqlite::Result<&mut Self> {
        self.column += 1;
        self.statement.raw_bind_parameter(self.column, value)?;
        Ok(self)
    }
}

/// Adds rows to a table. `what` is the name of the table with its columns, `left` the number of rows.
fn add_all<T>(
    db: &Connection,
    what: &str,
    mut left: usize,
    mut rows: impl Iterator<Item = T>,
    set: impl Fn(&mut Row<'_, '_>, T) -> rusqlite::Result<()>,
) -> Result<(), StoreError> {
    let columns = what.matches(',').count() + 1;
    while left > 0 {
        let count = if left >= MANY { MANY } else { 1 };
        let values = format!("({})", vec!["?"; columns].join(","));
        let sql = format!("INSERT INTO {what} VALUES {}", vec![values; count].join(","));
        let mut statement = db.prepare_cached(&sql)?;
        while left >= count {
            let mut row = Row { statement: &mut statement, column: 0 };
            for values in rows.by_ref().take(count) {
                set(&mut row, values)?;
            }
            statement.raw_execute()?;
            left -= count;
        }
    }
    Ok(())
}

pub(super) fn add_session(db: &Connection, name: &SessionName) -> Result<SessionKey, StoreError> {
    execute(db, "INSERT INTO session (format, id) VALUES (?, ?)", [&name.format, &name.id])?;
    Ok(SessionKey(db.last_insert_rowid()))
}

/// Adds the facts of operations.
pub(super) fn add_facts(db: &Connection, all: &[Placed<'_>]) -> Result<(), StoreError> {
    add_all(
        db,
        "operation (seq, session, store, n, hash, record)",
        all.len(),
        all.iter(),
        |row, Placed { seq, session, operation, .. }| {
            row.set(seq)?.set(session.0)?.set(OWN)?.set(operation.n)?;
            row.set(operation.hash.as_bytes())?.set(&operation.record)?;
            Ok(())
        },
    )?;
    add_all(
        db,
        "entry (session, n, id, link, line)",
        all.iter().map(|placed| placed.bulk.entries.len()).sum(),
        all.iter().flat_map(|placed| {
            placed.bulk.entries.iter().zip(&placed.lines).map(|pair| (placed.session.0, pair))
        }),
        |row, (session, (entry, line))| {
            let link = entry.link.map(|link| entry.n.since(link));
            row.set(session)?.set(entry.n)?.set(entry.id.as_bytes())?.set(link)?.set(line)?;
            Ok(())
        },
    )?;
    add_growth(db, all)?;
    for Placed { session, operation, bulk, kept, .. } in all {
        for words in operation.words(bulk) {
            let sql =
                "INSERT INTO words (session, operation, digest, salt, text) VALUES (?, ?, ?, ?, ?)";
            execute(
                db,
                sql,
                params![session.0, operation.n, words.digest().as_bytes(), words.salt, words.text],
            )?;
        }
        for (at, line) in kept.iter().enumerate() {
            let sql = "INSERT INTO kept (session, operation, n, line) VALUES (?, ?, ?, ?)";
            execute(db, sql, params![session.0, operation.n, at, line])?;
        }
    }
    Ok(())
}

/// Adds the runs, checkpoints and origins of operations.
pub(super) fn add_growth(db: &Connection, all: &[Placed<'_>]) -> Result<(), StoreError> {
    add_all(
        db,
        "run (session, generation, start, operation, first, count, gaps, bytes, running, tail)",
        all.iter().map(|placed| placed.bulk.runs.len()).sum(),
        all.iter().flat_map(|placed| placed.bulk.runs.iter().map(move |run| (placed, run))),
        |row, (placed, run)| {
            row.set(placed.session.0)?.set(run.generation)?.set(run.start)?;
            row.set(placed.operation.n)?.set(run.first)?.set(run.count)?.set(run.gaps.encode())?;
            row.set(run.bytes)?.set(run.running.as_bytes())?.set(long_values::pack(&run.tail)?)?;
            Ok(())
        },
    )?;
    add_all(
        db,
        "checkpoint (session, n, operation, generation, head, horizon, before, own, note)",
        all.iter().map(|placed| placed.bulk.checkpoints.len()).sum(),
        all.iter()
            .flat_map(|placed| placed.bulk.checkpoints.iter().map(move |given| (placed, given))),
        |row, (placed, given)| {
            let place = given.place;
            row.set(placed.session.0)?.set(given.n)?.set(placed.operation.n)?;
            row.set(place.generation)?.set(place.head)?.set(place.horizon)?.set(given.before)?;
            row.set(&given.own)?.set(given.note.as_ref().map(Tagged::to_bytes))?;
            Ok(())
        },
    )?;
    add_all(
        db,
        "origin (session, entry, operation, origin, cut)",
        all.iter().map(|placed| placed.bulk.origins.len()).sum(),
        all.iter()
            .flat_map(|placed| placed.bulk.origins.iter().map(move |origin| (placed, origin))),
        |row, (placed, origin)| {
            row.set(placed.session.0)?.set(origin.entry)?.set(placed.operation.n)?;
            row.set(origin.origin)?.set(origin.cut.as_ref().map(Tagged::to_bytes))?;
            Ok(())
        },
    )
}

/// Adds the records of several sessions.
pub(super) fn add_records(
    db: &Connection,
    all: &[(SessionKey, &[Record])],
) -> Result<(), StoreError> {
    add_all(
        db,
        "record (session, n, kind, name, parent, time, hint)",
        all.iter().map(|(_, records)| records.len()).sum(),
        all.iter().flat_map(|(key, records)| records.iter().map(move |record| (key.0, record))),
        |row, (session, record)| {
            let parent = match record.parent {
                Parent::Root => None,
                Parent::Missing => Some(0),
                Parent::Entry(parent) => {
                    Some(record.n.get().wrapping_sub(parent.get()).cast_signed())
                }
            };
            row.set(session)?.set(record.n)?.set(record.kind.code())?;
            row.set(record.name.map(NameTag::get))?.set(parent)?;
            row.set(record.time.map(|time| time.0))?;
            row.set(Some(&*record.hint).filter(|hint| !hint.is_empty()))?;
            Ok(())
        },
    )
}

/// Adds names that became ambiguous, and replaces the ties of generations.
pub(super) fn add_twins_and_ties(
    db: &Connection,
    session: SessionKey,
    twins: &[NameTag],
    ties: &[(GenerationNumber, Vec<Tie>)],
) -> Result<(), StoreError> {
    for twin in twins {
        let sql = "INSERT OR IGNORE INTO twin (session, name) VALUES (?, ?)";
        execute(db, sql, params![session.0, twin.get()])?;
    }
    for (generation, ties) in ties {
        let sql = "DELETE FROM tie WHERE session = ? AND generation = ?";
        execute(db, sql, params![session.0, generation])?;
        for Tie { kind, other } in ties {
            let sql =
                "INSERT OR IGNORE INTO tie (session, generation, kind, other) VALUES (?, ?, ?, ?)";
            execute(db, sql, params![session.0, generation, kind.code(), other])?;
        }
    }
    Ok(())
}

/// Adds the places of a session's files, numbered from `first` on.
pub(super) fn add_places<'a>(
    db: &Connection,
    session: SessionKey,
    first: FileNumber,
    places: impl Iterator<Item = &'a Place>,
) -> Result<(), StoreError> {
    for (file, place) in first.onwards().zip(places) {
        let sql = "INSERT OR IGNORE INTO place (place, session, file) VALUES (?, ?, ?)";
        execute(db, sql, params![place.to_bytes(), session.0, file])?;
    }
    Ok(())
}

/// Writes the card and the state of a session.
pub(super) fn put_card(
    db: &Connection,
    session: SessionKey,
    card: &Card,
    state: &State,
) -> Result<(), StoreError> {
    let sql = "INSERT OR REPLACE INTO card
           (session, format, id, title, folder, started, active, turns, hidden, settled, state)
         SELECT key, format, id, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM session WHERE key = ?1";
    execute(
        db,
        sql,
        params![
            session.0,
            card.title,
            card.folder,
            card.started.unwrap_or_default().0,
            card.active.unwrap_or_default().0,
            card.turns,
            card.hidden,
            state.operations(),
            long_values::pack(&state.to_bytes())?
        ],
    )
}

/// Replaces all derived rows of a session. `before` is the state that the old rows were derived from.
pub(super) fn derive(
    db: &Connection,
    session: SessionKey,
    before: &State,
    derived: &Derived,
) -> Result<(), StoreError> {
    for table in ["record", "twin", "tie"] {
        execute(db, &format!("DELETE FROM {table} WHERE session = ?"), [session.0])?;
    }
    for place in &before.files {
        let sql = "DELETE FROM place WHERE place = ? AND session = ?";
        execute(db, sql, params![place.to_bytes(), session.0])?;
    }
    add_records(db, &[(session, &derived.records)])?;
    add_twins_and_ties(db, session, &derived.twins, &derived.ties)?;
    add_places(db, session, FileNumber::FIRST, derived.state.files.iter())?;
    cover::derive(db, session, &derived.state)?;
    put_card(db, session, &derived.card, &derived.state)
}
