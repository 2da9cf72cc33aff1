//! Salvaging: what can still be read of a damaged store, row by row, in a fresh one beside it.
//!
//! ```text
//! rows      every row of a fact that can be read, by `salvage/scan.rs`; the journal's operations are settled
//! names     those of the sessions, and the store's own id, with which the hashes of operations come out
//! loose     rows on pages to which no other page leads, if something vouches for them; the words that are lost are named
//! lines     every line whose bytes are still those of its entries' ids; the others are wanted
//! chains    an operation that is missing, or has become another, gets one in its place that says so: `lost`
//! kept      every file that an operation keeps whole; the others are wanted
//! orphans   lines that belong to no entry any more are tried where the rows of entries are lost
//! fill      a caller that finds a wanted line or file gives it back, or lines that are tried where the rows of entries are lost
//! places    where operations put their entries, where the rows that told it are lost: a caller reads it from files
//! conclude  all else that is missing has its place: an entry without an id of its own, a checkpoint that leads nowhere
//! renumber  a caller that derives the checkpoints of an operation gives them their numbers again
//! ```
//!
//! Numbers stay: sessions, operations, entries, checkpoints and generations have those that they had. The damaged store
//! is only read.
//!
//! Invariant: no row is made up: what replaces a missing one says that it is missing.

mod chain;
mod entries;
mod first_page;
mod identity;
mod kept;
mod loose;
mod numbers;
mod page;
mod places;
mod scan;
mod words;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, params, types::Value};

use super::{
    add::OWN,
    bytes::Bytes,
    covered::{self, Covered},
    journal,
    lost::LOST,
    open,
    query::{self, Emptied, collect, hash},
    rows::Tables,
    witness,
    write::{place, placed},
};
use crate::{
    model::{
        Cutting, EntryId, EntryNumber, LineId, Operation, OperationId, SessionName, Tagged, Text,
        line,
    },
    store::{Access, FactStore, NewLine, SessionKey, StoreError},
};
pub use entries::{Tried, Unknown};
pub use kept::WantedFile;
pub use places::Unplaced;
use scan::{Probes, Table};

/// A line that a store had and that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The session.
    pub session: SessionKey,
    /// The number of the entry.
    pub entry: EntryNumber,
    /// Its id, by which the line is known.
    pub id: EntryId,
    /// The id of the entry that it is linked to.
    pub link: Option<EntryId>,
    /// The line that is in its place since something was taken out of it: only that one may come back.
    pub covered: Option<LineId>,
}

/// A part of a store that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The session, if one is concerned.
    pub session: Option<SessionName>,
    /// What is lost.
    pub item: String,
}

/// A fresh store that is being filled from a damaged one.
pub struct Salvage {
    damaged: PathBuf,
    old: Connection,
    /// Where all bytes of the damaged store are, if some are out of reach in it.
    bytes: Option<Connection>,
    fresh: Tables,
    triggers: Vec<String>,
    /// The names that sessions may have, as rows and an index tell them; the row's own first.
    named: BTreeMap<SessionKey, Vec<SessionName>>,
    names: BTreeMap<SessionKey, SessionName>,
    wanted: BTreeMap<EntryId, Vec<Wanted>>,
    files: Vec<WantedFile>,
    losses: Vec<Loss>,
    unknown: Vec<Unknown>,
    unplaced: Vec<Unplaced>,
    /// The number of the newest operation that could be read.
    newest: u64,
    probes: Probes,
    /// How long a store is that holds nothing.
    least: u64,
}

/// The tables of facts that are copied as they stand: the name, the columns, and the number by which rows are found in
/// a session, or in all.
const COPIED: [(&str, &str, &str, bool); 5] = [
    ("operation", "seq, session, store, n, hash, record", "seq", false),
    (
        "run",
        "session, generation, start, operation, first, count, gaps, bytes, running, tail",
        "generation",
        true,
    ),
    (
        "checkpoint",
        "session, n, operation, generation, head, horizon, before, own, note",
        "n",
        true,
    ),
    ("origin", "session, entry, operation, origin, cut", "entry", true),
    ("kept", "session, operation, n, -line", "operation", true),
];

impl Salvage {
    /// Copies what can be read of the store in a file to a fresh one, which must not be there yet. `each` hears how many tables
    /// of sessions were read, and of how many.
    pub fn begin(
        damaged: &Path,
        fresh: &Path,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, StoreError> {
        let opened = open::open(fresh, Access::Write)?;
        let old = first_page::open(damaged, fresh)?;
        let least = length_of(fresh);
        let tables = Tables::new(opened.db, opened.id, fresh);
        let fresh = &tables.db;
        fresh.execute_batch("BEGIN IMMEDIATE")?;
        // Facts are added out of their order here, and completed later.
        let sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'";
        let triggers: Vec<(String, String)> =
            collect(fresh, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (name, _) in &triggers {
            fresh.execute_batch(&format!("DROP TRIGGER {name}"))?;
        }
        let triggers = triggers.into_iter().map(|(_, sql)| sql).collect();
        let mut salvage = Self {
            damaged: damaged.to_owned(),
            old,
            bytes: None,
            fresh: tables,
            triggers,
            named: BTreeMap::new(),
            names: BTreeMap::new(),
            wanted: BTreeMap::new(),
            files: Vec::new(),
            losses: Vec::new(),
            unknown: Vec::new(),
            unplaced: Vec::new(),
            newest: 0,
            probes: Probes::default(),
            least,
        };
        salvage.sessions()?;
        salvage.facts(each)?;
        let torn = salvage.words()?;
        salvage.journal()?;
        salvage.take_names()?;
        salvage.nameless()?;
        salvage.take_id()?;
        salvage.loose()?;
        salvage.lose_words(&torn)?;
        salvage.newest = salvage.fresh.newest()?.map_or(0, |(seq, _)| seq);
        let held = salvage.lines()?;
        salvage.chains()?;
        salvage.kept()?;
        salvage.orphans(&held)?;
        Ok(salvage)
    }

    /// Returns the lines that are wanted.
    pub fn wanted(&self) -> impl Iterator<Item = &Wanted> {
        self.wanted.values().flatten()
    }

    /// Returns whether anything is missing that files may give back.
    pub fn is_wanting(&self) -> bool {
        let is_whole = self.wanted.is_empty() && self.files.is_empty();
        !is_whole || !self.unknown.is_empty() || !self.unplaced.is_empty()
    }

    /// Returns the names of the sessions.
    pub fn sessions_found(&self) -> &BTreeMap<SessionKey, SessionName> {
        &self.names
    }

    /// Returns the operations of a session, those included that stand for lost ones.
    pub fn operations(&self, session: SessionKey) -> Result<Vec<Operation>, StoreError> {
        let rows = collect(
            self.db(),
            "SELECT n, record, hash FROM operation WHERE session = ? AND store = ? ORDER BY n",
            params![session.0, OWN],
            |row| Ok((row.get(0)?, row.get(1)?, OperationId::new(hash(row, 2)?))),
        )?;
        let open = |(n, record, hash)| Operation::open(n, record, hash, &[]).ok();
        Ok(rows.into_iter().filter_map(open).collect())
    }

    /// Returns how many operations are missing that the witness has seen, without those that others stand for.
    pub fn forgotten(&self) -> Result<u64, StoreError> {
        let own = self.fresh.id()?;
        let witness = witness::read(&witness::path_of(&self.damaged), own).ok().flatten();
        let Some(witness) = witness else { return Ok(0) };
        let is_other = witness.seq <= self.newest
            && self.fresh.hash_at(witness.seq)?.is_some_and(|hash| hash != witness.hash);
        let newest = self.fresh.newest()?.map_or(0, |(seq, _)| seq);
        Ok(witness.seq.saturating_sub(newest).max(u64::from(is_other)))
    }

    /// Returns whether nothing could be read of a store that had some operations: it has as many pages as one without any, or more.
    pub fn is_empty(&self) -> bool {
        let had_some = || {
            let witness = witness::newest(&self.damaged);
            witness.is_some_and(|witness| witness.seq > 0) || length_of(&self.damaged) > self.least
        };
        // Entries that are there tell of operations that are lost.
        self.fresh.newest().is_ok_and(|newest| newest.is_none())
            && length_of(&self.damaged) >= self.least
            && had_some()
            && first_page::has_more(&self.damaged)
    }

    /// Gives back the line of an entry, found anywhere, and returns for how many entries it was wanted.
    pub fn fill(&mut self, id: EntryId, line: &[u8]) -> Result<usize, StoreError> {
        let line_id = LineId::of(line);
        let is_it = |one: &Wanted| one.covered.is_none_or(|covered| covered == line_id);
        let wanted = self.wanted.remove(&id).unwrap_or_default();
        let (found, left): (Vec<_>, Vec<_>) = wanted.into_iter().partition(is_it);
        for Wanted { session, entry, link, .. } in &found {
            let number = self.add(line, link.is_none().then_some(&id))?;
            self.set_line(*session, *entry, number)?;
        }
        if !left.is_empty() {
            self.wanted.insert(id, left);
        }
        Ok(found.len())
    }

    /// Makes all of it durable that was found, so that what follows from it can be derived. Only checkpoints may come behind.
    pub fn conclude(&mut self) -> Result<(), StoreError> {
        for wanted in std::mem::take(&mut self.wanted).into_values().flatten() {
            let item = format!("the line of entry {:.8}", wanted.id);
            self.lose(wanted.session, item);
            self.copy_record(wanted.session, wanted.entry)?;
        }
        self.lose_files();
        self.lose_places();
        for unknown in std::mem::take(&mut self.unknown) {
            let Unknown { session, operation, missing, .. } = unknown;
            self.lose(
                session,
                format!("{} of operation {operation}", counted(missing.len(), "entry", "entries")),
            );
        }
        self.fresh.bytes.borrow_mut().settle(self.db())?;
        Ok(self.db().execute_batch("COMMIT")?)
    }

    /// Completes the fresh store, which is concluded, and returns what is lost.
    pub fn finish(self) -> Result<Vec<Loss>, StoreError> {
        self.db().execute_batch("BEGIN IMMEDIATE")?;
        for trigger in &self.triggers {
            self.db().execute_batch(trigger)?;
        }
        self.db().execute_batch("COMMIT")?;
        query::empty_wal(self.db(), Emptied::Truncated)?;
        Ok(self.losses)
    }

    fn db(&self) -> &Connection {
        &self.fresh.db
    }

    fn bytes_db(&self) -> &Connection {
        self.bytes.as_ref().unwrap_or(&self.old)
    }

    fn lose(&mut self, session: SessionKey, item: impl Into<String>) {
        let session = self.names.get(&session).cloned();
        self.losses.push(Loss { session, item: item.into() });
    }

    /// Reads the names of sessions; the index of their rows has them once more, and their cards.
    fn sessions(&mut self) -> Result<(), StoreError> {
        let mut named: BTreeMap<SessionKey, Vec<SessionName>> = BTreeMap::new();
        let places =
            [("session", "key"), ("session INDEXED BY session_name", "key"), ("card", "session")];
        for (name, key) in places {
            let columns = format!("{key}, format, id");
            let table = Table { columns: &columns, name, key, within: None };
            table.scan(&self.old, &self.probes, &mut |row| {
                let name = SessionName { format: row.get(1)?, id: row.get(2)? };
                let names = named.entry(SessionKey(row.get(0)?)).or_default();
                if !names.contains(&name) {
                    names.push(name);
                }
                Ok(())
            })?;
        }
        let firsts = named.iter().filter_map(|(key, names)| Some((*key, names.first()?.clone())));
        self.names = firsts.collect();
        self.named = named;
        Ok(())
    }

    /// Leaves out the operations of sessions whose names are lost.
    fn nameless(&mut self) -> Result<(), StoreError> {
        let nameless = "DELETE FROM operation WHERE session NOT IN (SELECT key FROM session)";
        let lost = self.db().execute(nameless, [])?;
        if lost > 0 {
            let item = format!("{lost} operations of sessions whose names are lost");
            self.losses.push(Loss { session: None, item });
        }
        Ok(())
    }

    /// Copies rows of facts as they stand, and entries with the numbers of their lines below zero until these are read.
    fn facts(&mut self, each: &mut dyn FnMut(u64, u64)) -> Result<(), StoreError> {
        let keys: Vec<SessionKey> = self.names.keys().copied().collect();
        let all = (COPIED.len() * keys.len()) as u64;
        let mut done = 0;
        let mut next = || {
            done += 1;
            each(done, all);
        };
        for (name, columns, key, is_per_session) in COPIED {
            let count = columns.split(", ").count();
            let table = Table { columns, name, key, within: None };
            if is_per_session {
                for session in &keys {
                    let within = Some(("session = ?3", session.0));
                    copy(&self.old, self.db(), &Table { within, ..table }, count, &self.probes)?;
                    next();
                }
            } else {
                copy(&self.old, self.db(), &table, count, &self.probes)?;
            }
        }
        for session in &keys {
            let table = Table {
                columns: "session, n, id, link, -line",
                name: "entry",
                key: "n",
                within: Some(("session = ?3", session.0)),
            };
            copy(&self.old, self.db(), &table, 5, &self.probes)?;
            next();
        }
        Ok(())
    }

    /// Settles the operations of the journal that can be read.
    fn journal(&mut self) -> Result<(), StoreError> {
        let mut rows = BTreeMap::new();
        let table = Table { columns: "seq, body", name: "journal", key: "seq", within: None };
        table.scan(&self.old, &self.probes, &mut |row| {
            let seq: u64 = row.get(0)?;
            let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            rows.insert(seq, journal::decode(seq, body, true)?);
            Ok(())
        })?;
        for (seq, row) in rows {
            self.settle(seq, row)?;
        }
        Ok(())
    }

    /// Settles an operation of the journal, unless it is there. Where anything that it brought is there, it was settled, and the
    /// rest of it is where it belongs: it may have been covered since.
    fn settle(&self, seq: u64, mut row: journal::Row) -> Result<(), StoreError> {
        let by = &row.commit.operation;
        let there =
            "SELECT 1 FROM operation WHERE seq = ?1 OR (session = ?2 AND store = ?3 AND n = ?4)";
        let key = params![seq, row.session.0, OWN, by.n];
        if self.db().prepare_cached(there)?.exists(key)? || !self.names.contains_key(&row.session) {
            return Ok(());
        }
        if self.has_facts_of(row.session, &row.commit)? {
            self.db().execute(
                "INSERT INTO operation (seq, session, store, n, hash, record) VALUES (?, ?, ?, ?, ?, ?)",
                params![seq, row.session.0, OWN, by.n, by.hash.as_bytes(), by.record],
            )?;
            return Ok(());
        }
        self.drop_strays(row.session, by)?;
        // The lines of the rows before it stay, whatever becomes of this one.
        self.fresh.bytes.borrow_mut().settle(self.db())?;
        self.db().execute_batch("SAVEPOINT settled")?;
        let lines = place(self.db(), &mut self.fresh.bytes.borrow_mut(), &mut row.commit)?;
        let placed = placed(row.session, seq, &row.commit, lines);
        match super::add::add_facts(self.db(), &[placed]) {
            // A row that says to be of another operation has the place of one of its own.
            Err(StoreError::Refused(_)) => {
                self.db().execute_batch("ROLLBACK TO settled")?;
                self.fresh.forget();
            }
            added => added?,
        }
        Ok(self.db().execute_batch("RELEASE settled")?)
    }

    /// Copies lines in the order in which they lie, each once; those that are not what their entries' ids say are wanted.
    /// Returns the numbers of the lines that have an entry.
    fn lines(&mut self) -> Result<BTreeSet<i64>, StoreError> {
        let all = collect(
            self.db(),
            "SELECT e.session, e.n, e.id, k.id, -e.line, k.n FROM entry e
             LEFT JOIN entry k ON k.session = e.session AND k.n = e.n - e.link
             WHERE e.line <= 0 ORDER BY -e.line",
            [],
            |row| {
                let link: Option<[u8; 32]> = row.get(3)?;
                let wanted = Wanted {
                    session: SessionKey(row.get(0)?),
                    entry: row.get(1)?,
                    id: EntryId::new(hash(row, 2)?),
                    link: link.map(EntryId::new),
                    covered: None,
                };
                let linked: Option<EntryNumber> = row.get(5)?;
                let unknown = linked.map(|link| wanted.session.unknown(link));
                let is_behind = unknown.is_some() && wanted.link == unknown;
                Ok((wanted, row.get::<_, i64>(4)?, is_behind))
            },
        )?;
        let mut held = BTreeSet::new();
        let bytes = Bytes::default();
        let mut last: Option<(i64, LineId, i64)> = None;
        let mut session = None;
        let mut covered: BTreeMap<SessionKey, Covered> = BTreeMap::new();
        for (wanted, old, is_behind) in all {
            if session.replace(wanted.session) != Some(wanted.session) {
                self.fresh.bytes.borrow_mut().begin_operation(self.db(), None)?;
            }
            let known = match covered.entry(wanted.session) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(covered::by_operations(self.db(), wanted.session)?)
                }
            };
            let entry = (wanted.entry, wanted.id);
            // Where something was taken out of a line, only what is in its place since then may come back.
            let covered = covered::in_place_of(known, entry, wanted.link);
            let is_of = |line: LineId| match covered {
                Some(covered) => line == covered,
                // The id of one that is linked to an unknown entry cannot be checked.
                None => is_behind || EntryId::of(wanted.link, line) == wanted.id,
            };
            let number = match last.filter(|(at, id, _)| *at == old && is_of(*id)) {
                Some((_, _, number)) => number,
                None => match bytes.line(self.bytes_db(), old) {
                    Ok(line) if is_of(LineId::of(&line)) => {
                        let number =
                            self.add(&line, wanted.link.is_none().then_some(&wanted.id))?;
                        last = Some((old, LineId::of(&line), number));
                        number
                    }
                    _ => LOST,
                },
            };
            self.set_line(wanted.session, wanted.entry, number)?;
            if number == LOST {
                // The line may be right, and the id be damaged.
                self.wanted.entry(wanted.id).or_default().push(Wanted { covered, ..wanted });
            } else {
                held.insert(old);
            }
        }
        Ok(held)
    }

    fn add(&mut self, line: &[u8], id: Option<&EntryId>) -> Result<i64, StoreError> {
        let found = line::split(line, true, false).next();
        let whole = found.filter(|found| found.bytes.len() == line.len());
        let texts = whole.and_then(|whole| whole.shape).map(|shape| shape.texts);
        self.fresh.bytes.borrow_mut().add(
            self.db(),
            NewLine::new(line.to_vec(), texts.unwrap_or_default()),
            id,
        )
    }

    fn set_line(
        &self,
        session: SessionKey,
        entry: EntryNumber,
        line: i64,
    ) -> Result<(), StoreError> {
        self.db()
            .prepare_cached("UPDATE entry SET line = ? WHERE session = ? AND n = ?")?
            .execute(params![line, session.0, entry])?;
        Ok(())
    }

    /// Copies the derived record of an entry whose line is lost, by which a path still finds its way.
    fn copy_record(&self, session: SessionKey, entry: EntryNumber) -> Result<(), StoreError> {
        let sql = "SELECT session, n, kind, name, parent, time, hint FROM record WHERE session = ? AND n = ?";
        let Ok(mut find) = self.old.prepare_cached(sql) else { return Ok(()) };
        let row = find.query_row(params![session.0, entry], |row| {
            (0..7).map(|column| row.get(column)).collect::<Result<Vec<Value>, _>>()
        });
        if let Ok(values) = row {
            insert(self.db(), "record", "session, n, kind, name, parent, time, hint", values)?;
        }
        Ok(())
    }
}

fn length_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |meta| meta.len())
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Copies the rows of a table that can be read; the columns have as many values as `count` says.
fn copy(
    old: &Connection,
    fresh: &Connection,
    table: &Table<'_>,
    count: usize,
    probes: &Probes,
) -> Result<(), StoreError> {
    let columns = table.columns.replace("-line", "line");
    let names: Vec<&str> = table.columns.split(", ").collect();
    // A row with a value that none of its column may have is damaged, and would hinder the reading of its session.
    let is_wrong = |(value, name): (&Value, &&str)| match value {
        // No number of a fact is negative.
        Value::Integer(number) => *number != 0 && (*number < 0) != name.starts_with('-'),
        Value::Blob(bytes) if *name == "cut" => Cutting::read(bytes, &mut Vec::new()).is_err(),
        Value::Blob(bytes) if *name == "note" => Text::read(bytes, &mut Vec::new()).is_err(),
        _ => false,
    };
    table.scan(old, probes, &mut |row| {
        let values = (0..count).map(|column| row.get(column));
        let values: Vec<Value> = values.collect::<Result<_, _>>()?;
        if values.iter().zip(&names).any(is_wrong) {
            return Ok(());
        }
        insert(fresh, table.name, &columns, values)
    })?;
    Ok(())
}

fn insert(
    fresh: &Connection,
    table: &str,
    columns: &str,
    values: Vec<Value>,
) -> Result<(), StoreError> {
    let marks = vec!["?"; values.len()].join(", ");
    let sql = format!("INSERT OR IGNORE INTO {table} ({columns}) VALUES ({marks})");
    match fresh.prepare_cached(&sql)?.execute(rusqlite::params_from_iter(values)) {
        // A row with values that no row of its table may have is damaged.
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
        {
            Ok(())
        }
        done => Ok(done.map(|_| ())?),
    }
}
