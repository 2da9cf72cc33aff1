//! Loose rows: those on pages that are whole, but to which a damaged page would have led. All pages of the database are looked
//! at, and a row is known by its shape.
//!
//! ```text
//! operation            its hash, made with that of the operation before it, or that of the one behind it
//! journal, segment     their checksums
//! words                their digest, if nothing was taken out of their session since
//! fresh                the ids of the entries of its line, where lines are read
//! entry, run ...       the digest in the record of their operation, and their count
//! ```
//!
//! Invariant: a row that nothing vouches for is not taken: a page that is no longer in use may still hold some.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::ErrorKind,
    ops::Range,
};

use rusqlite::{Connection, params, params_from_iter, types::Value};

use super::{
    Salvage, copy, insert,
    page::{Cell, Field, Pages, fields},
    scan::Table,
};
use crate::{
    disk::{self, Links},
    model::{Named, Operation, OperationId, OperationNumber},
    store::{
        Commit, FactStore, SessionKey, StoreError,
        sqlite::{
            add::OWN,
            journal,
            open::{SCHEMA, beside},
            pack,
            query::{first, hash},
        },
    },
};

/// A table whose rows are known by their shape.
struct Shape {
    name: &'static str,
    /// Its columns in the order of its records.
    columns: &'static str,
    /// What each may hold: the row's number, a number, 32 bytes, bytes, a text; large letters: or nothing.
    holds: &'static str,
    /// How many columns tell a row from all others.
    key: usize,
    /// The columns with the session and with the number by which a row is looked for.
    at: (usize, usize),
}

/// The tables of facts.
const FACTS: [Shape; 7] = [
    Shape {
        name: "operation",
        columns: "seq, session, store, n, hash, record",
        holds: "#nnnhb",
        key: 5,
        at: (1, 3),
    },
    Shape { name: "journal", columns: "seq, body", holds: "#b", key: 1, at: (0, 0) },
    Shape {
        name: "entry",
        columns: "session, n, id, link, line",
        holds: "nnhNn",
        key: 2,
        at: (0, 1),
    },
    Shape {
        name: "run",
        columns: "session, generation, start, operation, first, count, gaps, bytes, running, tail",
        holds: "nnnnnnbnhb",
        key: 4,
        at: (0, 3),
    },
    Shape {
        name: "checkpoint",
        columns: "session, n, operation, generation, head, horizon, before, own, note",
        holds: "nnnnNnNTB",
        key: 2,
        at: (0, 2),
    },
    Shape {
        name: "origin",
        columns: "session, entry, operation, origin, cut",
        holds: "nnnnB",
        key: 3,
        at: (0, 2),
    },
    Shape {
        name: "words",
        columns: "session, operation, digest, salt, text",
        holds: "nnhbt",
        key: 3,
        at: (0, 1),
    },
];
/// The tables of bytes.
const BYTES: [Shape; 2] = [
    Shape {
        name: "segment",
        columns: "key, count, size, codec, sum, sizes, body",
        holds: "#nnnbbb",
        key: 1,
        at: (0, 1),
    },
    Shape { name: "fresh", columns: "key, size, body", holds: "#nb", key: 1, at: (0, 0) },
];
/// The tables whose rows an operation names by their digest.
const NAMED: [&str; 4] = ["entry", "run", "checkpoint", "origin"];

/// Where a cell is: its page, and which of that page's cells it is.
type Spot = (u32, usize);

/// What hears of a row: its table, as much of it as is on its page, its cell, and its place.
type Each<'e> =
    dyn FnMut(&'static Shape, Vec<Value>, &Cell<'_>, Spot) -> Result<(), StoreError> + 'e;

/// Rows of facts that the fresh store has not, by their table, their session and their number.
type Rows = BTreeMap<(&'static str, i64, i64), Vec<Vec<Value>>>;

impl Shape {
    /// Returns the values of a record, if it is one of this table; texts as bytes, which may end on another page.
    fn values(&self, row: i64, fields: &[Field<'_>]) -> Option<Vec<Value>> {
        let is_as_long = fields.len() == self.holds.len();
        let values = fields.iter().zip(self.holds.chars()).filter(|_| is_as_long);
        let values: Option<Vec<Value>> = values.map(|(field, is)| value(row, *field, is)).collect();
        values.filter(|values| !values.is_empty())
    }

    fn number(values: &[Value], at: usize) -> i64 {
        match values.get(at) {
            Some(Value::Integer(number)) => *number,
            _ => 0,
        }
    }
}

fn value(row: i64, field: Field<'_>, is: char) -> Option<Value> {
    Some(match (field, is) {
        (Field::Other, '#') => Value::Integer(row),
        (Field::Number(number), 'n' | 'N') => Value::Integer(number),
        (Field::Bytes(bytes, 32), 'h') | (Field::Bytes(bytes, _), 'b' | 'B' | 't' | 'T') => {
            Value::Blob(bytes.to_vec())
        }
        (Field::Other, 'N' | 'B' | 'T') => Value::Null,
        _ => return None,
    })
}

/// Hands over each row of some tables that is on any page.
fn each_row(
    pages: &Pages<'_>,
    shapes: &'static [Shape],
    each: &mut Each<'_>,
) -> Result<(), StoreError> {
    for number in pages.numbers.clone() {
        let Some(page) = pages.page(number) else { continue };
        for (at, cell) in page.cells().enumerate() {
            let Some(cell) = cell else { continue };
            let Some(found) = cell.fields() else { continue };
            let row =
                shapes.iter().find_map(|shape| Some((shape, shape.values(cell.row, &found)?)));
            if let Some((shape, values)) = row {
                each(shape, values, &cell, (number, at))?;
            }
        }
    }
    Ok(())
}

/// Returns all of a row.
fn whole(pages: &Pages<'_>, shape: &Shape, cell: &Cell<'_>) -> Option<Vec<Value>> {
    let mut values = shape.values(cell.row, &fields(&pages.whole(cell)?)?)?;
    for (value, is) in values.iter_mut().zip(shape.holds.chars()) {
        if let (Value::Blob(bytes), 't' | 'T') = (&mut *value, is) {
            *value = Value::Text(String::from_utf8(std::mem::take(bytes)).ok()?);
        }
    }
    Some(values)
}

impl Salvage {
    /// Takes the loose rows that something vouches for.
    pub(super) fn loose(&mut self) -> Result<(), StoreError> {
        let open = |path| match disk::open(path, Links::Refuse) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(StoreError::at(path)(error)),
        };
        let Some(file) = open(&self.damaged)? else { return Ok(()) };
        let log: Option<File> = open(&beside(&self.damaged, "-wal"))?;
        let mut pages = Pages::of(&file).map_err(StoreError::at(&self.damaged))?;
        if let Some(log) = &log {
            pages = pages.with_log(log);
        }
        let rows = self.loose_facts(&pages)?;
        self.loose_operations(&rows)?;
        self.loose_journal(&rows)?;
        let words = ("words", i64::MIN, i64::MIN)..=("words", i64::MAX, i64::MAX);
        self.loose_words(rows.range(words).flat_map(|(_, rows)| rows))?;
        self.loose_named(&rows)?;
        self.bytes = self.loose_bytes(&pages)?;
        Ok(())
    }

    /// Returns the rows of facts that the fresh store has not.
    fn loose_facts(&self, pages: &Pages<'_>) -> Result<Rows, StoreError> {
        let mut rows = Rows::new();
        each_row(pages, &FACTS, &mut |shape, values, cell, _| {
            // What is settled is in the table of operations.
            let table = if shape.name == "journal" { "operation" } else { shape.name };
            let columns = shape.columns.split(", ").take(shape.key);
            let is_it: Vec<String> = columns.map(|column| format!("{column} = ?")).collect();
            let sql = format!("SELECT 1 FROM {table} WHERE {}", is_it.join(" AND "));
            let key = params_from_iter(values.iter().take(shape.key));
            if self.db().prepare_cached(&sql)?.exists(key)? {
                return Ok(());
            }
            if let Some(values) = whole(pages, shape, cell) {
                let (session, n) = shape.at;
                let session = Shape::number(&values, session);
                let session = if shape.name == "journal" { 0 } else { session };
                let at = (shape.name, session, Shape::number(&values, n));
                let rows = rows.entry(at).or_default();
                if !rows.contains(&values) {
                    rows.push(values);
                }
            }
            Ok(())
        })?;
        Ok(rows)
    }

    fn loose_operations(&self, rows: &Rows) -> Result<(), StoreError> {
        let own = self.fresh.id()?;
        let all = ("operation", i64::MIN, i64::MIN)..=("operation", i64::MAX, i64::MAX);
        for ((table, session, n), found) in rows.range(all) {
            let key = SessionKey(*session);
            let Some(name) = self.names.get(&key) else { continue };
            let there =
                "SELECT n, record, hash FROM operation WHERE session = ? AND store = ? AND n = ?";
            let there = first(self.db(), there, params![session, OWN, n], |row| {
                let hash = OperationId::new(hash(row, 2)?);
                Ok(Operation::open(row.get(0)?, row.get(1)?, hash, &[]).ok())
            })?;
            if let Some(there) = there.flatten()
                && self.follows(key, &there)?.unwrap_or(true)
            {
                continue;
            }
            let next = rows.get(&(*table, *session, n.saturating_add(1))).into_iter().flatten();
            let next: Vec<Operation> = next.filter_map(|row| opened(row)).collect();
            for row in found {
                let Some(by) = opened(row) else { continue };
                let leads_on = || {
                    next.iter().any(|next| next.hash_after(Some(by.hash), own, name) == next.hash)
                };
                if self.follows(key, &by)?.unwrap_or_else(leads_on) {
                    self.db().execute(
                        "DELETE FROM operation WHERE session = ? AND store = ? AND n = ?",
                        params![session, OWN, n],
                    )?;
                    let columns = "seq, session, store, n, hash, record";
                    insert(self.db(), table, columns, row.clone())?;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns whether the hash of an operation is made with the one before it; nothing if that is not there.
    fn follows(&self, session: SessionKey, by: &Operation) -> Result<Option<bool>, StoreError> {
        let Some(name) = self.names.get(&session) else { return Ok(Some(false)) };
        let mut before = None;
        if by.n > OperationNumber::FIRST {
            let sql = "SELECT hash FROM operation WHERE session = ? AND store = ? AND n = ?";
            let key = params![session.0, OWN, by.n.minus(1)];
            before = first(self.db(), sql, key, |row| hash(row, 0))?.map(OperationId::new);
            if before.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(by.hash_after(before, self.fresh.id()?, name) == by.hash))
    }

    fn loose_journal(&mut self, rows: &Rows) -> Result<(), StoreError> {
        for ((_, _, seq), found) in rows.range(("journal", 0, 0)..=("journal", 0, i64::MAX)) {
            for row in found {
                let [_, Value::Blob(body)] = row.as_slice() else { continue };
                let seq = seq.cast_unsigned();
                let Ok(row) = journal::decode(seq, body, true) else { continue };
                let by = &row.commit.operation;
                // A checksum vouches for it where the operation before it is lost.
                if !self.follows(row.session, by)?.unwrap_or(true) {
                    continue;
                }
                self.settle(seq, row)?;
            }
        }
        Ok(())
    }

    /// Returns whether any of the facts is there that an operation of the journal brought. A row that only says to be of it was read
    /// from the pages of another table, or is damaged.
    pub(super) fn has_facts_of(
        &self,
        session: SessionKey,
        commit: &Commit,
    ) -> Result<bool, StoreError> {
        let (by, bulk) = (&commit.operation, &commit.bulk);
        let entries = self.fresh.entries(session, by.added())?;
        let mut is_there = entries.iter().any(|entry| {
            bulk.entries.iter().any(|brought| (brought.n, brought.id) == (entry.n, entry.id))
        });
        let found = self.facts_of(session, by.n).unwrap_or_default();
        is_there |= found.runs.iter().any(|run| bulk.runs.contains(run));
        is_there |= found.origins.iter().any(|origin| bulk.origins.contains(origin));
        is_there |= found.checkpoints.iter().any(|one| {
            bulk.checkpoints.iter().any(|given| (given.n, &given.place) == (one.n, &one.place))
        });
        let has = |table: &str| -> Result<bool, StoreError> {
            let sql = format!("SELECT 1 FROM {table} WHERE session = ? AND operation = ?");
            Ok(self.db().prepare_cached(&sql)?.exists(params![session.0, by.n])?)
        };
        // Nothing else tells of one that brought nothing else.
        let is_all = bulk.entries.is_empty() && bulk.runs.is_empty() && bulk.checkpoints.is_empty();
        Ok(is_there || is_all && (has("words")? || has("kept")?))
    }

    /// Leaves out rows that stand where those of an operation belong.
    pub(super) fn drop_strays(
        &self,
        session: SessionKey,
        by: &Operation,
    ) -> Result<(), StoreError> {
        for table in ["run", "checkpoint", "origin", "words", "kept"] {
            let sql = format!("DELETE FROM {table} WHERE session = ? AND operation = ?");
            self.db().prepare_cached(&sql)?.execute(params![session.0, by.n])?;
        }
        let sql = "DELETE FROM entry WHERE session = ? AND n >= ? AND n < ?";
        let Range { start, end } = by.added();
        self.db().prepare_cached(sql)?.execute(params![session.0, start, end])?;
        Ok(())
    }

    /// Takes the rows that operations name, if they then have as many, and those of their digest.
    fn loose_named(&self, rows: &Rows) -> Result<(), StoreError> {
        for shape in FACTS.iter().filter(|shape| NAMED.contains(&shape.name)) {
            let all = (shape.name, i64::MIN, i64::MIN)..=(shape.name, i64::MAX, i64::MAX);
            let sessions: BTreeSet<i64> =
                rows.range(all).map(|((_, session, _), _)| *session).collect();
            for session in sessions.into_iter().map(SessionKey) {
                for by in self.operations(session)? {
                    let numbers = match shape.name {
                        "entry" => by.added().start.get()..by.added().end.get(),
                        _ => by.n.get()..by.n.next().get(),
                    };
                    let found = rows_of(rows, shape.name, session, &numbers);
                    if found.is_empty() || self.is_named(shape.name, session, &by)? {
                        continue;
                    }
                    self.db().execute_batch("SAVEPOINT loose")?;
                    for row in found {
                        insert(self.db(), shape.name, shape.columns, row)?;
                    }
                    if !self.is_named(shape.name, session, &by)? {
                        self.db().execute_batch("ROLLBACK TO loose")?;
                    }
                    self.db().execute_batch("RELEASE loose")?;
                }
            }
        }
        Ok(())
    }

    /// Returns whether an operation has all rows of a table that it names.
    fn is_named(
        &self,
        table: &str,
        session: SessionKey,
        by: &Operation,
    ) -> Result<bool, StoreError> {
        let named = match table {
            "entry" => {
                let entries = self.fresh.entries(session, by.added());
                entries.map(|entries| Named::entries(&entries) == by.entries)
            }
            "run" => {
                let bulk = self.facts_of(session, by.n);
                bulk.and_then(|bulk| self.are_runs_of(session, by, &bulk.runs))
            }
            _ => self.facts_of(session, by.n).map(|bulk| match table {
                "checkpoint" => Named::checkpoints(&bulk.checkpoints) == by.checkpoints,
                _ => Named::origins(&bulk.origins) == by.origins,
            }),
        };
        match named {
            Err(StoreError::Corrupt { .. }) => Ok(false),
            named => named,
        }
    }

    /// Returns another database with all bytes, if some of them are loose.
    fn loose_bytes(&self, pages: &Pages<'_>) -> Result<Option<Connection>, StoreError> {
        let mut held = Spans::default();
        for (columns, name) in [("key, count", "segment"), ("key, 1", "fresh")] {
            let table = Table { columns, name, key: "key", within: None };
            table.scan(&self.old, &self.probes, &mut |row| {
                held.add(row.get(0)?, row.get(1)?);
                Ok(())
            })?;
        }
        let mut loose = Vec::new();
        each_row(pages, &BYTES, &mut |shape, values, _, spot| {
            let count = if shape.name == "fresh" { 1 } else { Shape::number(&values, shape.at.1) };
            let key = Shape::number(&values, 0);
            if key > 0 && count > 0 && !held.meets(key, count) {
                loose.push((std::cmp::Reverse(count), key, spot));
            }
            Ok(())
        })?;
        if loose.is_empty() {
            return Ok(None);
        }
        let path = self.fresh.path.with_file_name("bytes.db");
        let made = disk::open_or_make(&path);
        made.map_err(StoreError::at(&path))?;
        let all = Connection::open(&path)?;
        all.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
        all.execute_batch(SCHEMA)?;
        all.execute_batch("BEGIN")?;
        for Shape { columns, name, .. } in &BYTES {
            let table = Table { columns, name, key: "key", within: None };
            copy(&self.old, &all, &table, columns.split(", ").count(), &self.probes)?;
        }
        // Lines that lie together come first: where one of them lay alone before is no longer in use.
        loose.sort_unstable();
        for (std::cmp::Reverse(count), key, (number, at)) in loose {
            let Some(page) = pages.page(number).filter(|_| !held.meets(key, count)) else {
                continue;
            };
            let Some(cell) = page.cells().nth(at).flatten() else { continue };
            let row = BYTES.iter().find_map(|shape| Some((shape, whole(pages, shape, &cell)?)));
            // One that is damaged would keep the others out that have its lines.
            if let Some((shape, values)) = row.filter(|(_, values)| is_vouched_for(values)) {
                insert(&all, shape.name, shape.columns, values)?;
                held.add(key, count);
            }
        }
        all.execute_batch("COMMIT")?;
        Ok(Some(all))
    }
}

/// Returns whether the checksum of a segment is that of its bytes; a row with a line alone has none.
fn is_vouched_for(values: &[Value]) -> bool {
    match values {
        [key, count, size, codec, Value::Blob(sum), Value::Blob(sizes), Value::Blob(body)] => {
            let numbers = [key, count, size, codec].map(|number| match number {
                Value::Integer(number) => *number,
                _ => 0,
            });
            let [key, numbers @ ..] = numbers;
            pack::checksum(key, numbers, sizes, body) == sum.as_slice()
        }
        _ => true,
    }
}

/// Returns the operation in a row.
fn opened(row: &[Value]) -> Option<Operation> {
    let [_, _, Value::Integer(OWN), Value::Integer(n), Value::Blob(hash), Value::Blob(record)] =
        row
    else {
        return None;
    };
    let n = OperationNumber::new(u64::try_from(*n).ok()?);
    Operation::open(n, record.clone(), OperationId::from_slice(hash)?, &[]).ok()
}

/// Returns the rows of a table with some numbers; the lines of entries are those of the damaged store.
fn rows_of(
    rows: &Rows,
    table: &'static str,
    session: SessionKey,
    numbers: &Range<u64>,
) -> Vec<Vec<Value>> {
    let bound = |n: u64| (table, session.0, i64::try_from(n).unwrap_or(i64::MAX));
    if numbers.start >= numbers.end {
        return Vec::new();
    }
    let found = rows.range(bound(numbers.start)..bound(numbers.end));
    let mut found: Vec<Vec<Value>> = found.flat_map(|(_, rows)| rows).cloned().collect();
    if table == "entry" {
        for line in found.iter_mut().filter_map(|row| row.last_mut()) {
            if let Value::Integer(number) = line {
                *line = Value::Integer(number.saturating_neg());
            }
        }
    }
    found
}

/// Stretches of numbers of lines.
#[derive(Default)]
struct Spans(BTreeMap<i64, i64>);

impl Spans {
    fn add(&mut self, first: i64, count: i64) {
        let count = self.0.get(&first).copied().unwrap_or(0).max(count);
        self.0.insert(first, count);
    }

    /// Returns whether a stretch has a number that is among these.
    fn meets(&self, first: i64, count: i64) -> bool {
        let last = self.0.range(..first.saturating_add(count)).next_back();
        last.is_some_and(|(start, count)| start.saturating_add(*count) > first)
    }
}
