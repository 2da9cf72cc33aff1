//! Salvaging: copies what can still be read of a damaged store into a fresh one next to it.
//!
//! ```text
//! rows      every row of facts, by key, skipping unreadable pages; the operations of the journal are settled
//! names     of the store and of its sessions: those for which the hashes of operations match
//! words     those that match their digests
//! chains    a session keeps its operations up to the first that is missing, or whose facts do not match its record
//! lines     those that match their entries' ids; the others are wanted
//! kept      files that operations stored whole, if they match their digests; the others are wanted
//! fill      a caller that finds a wanted line or file supplies it
//! ```
//!
//! Sessions, operations, entries and checkpoints keep their numbers. The damaged store is only read.
//!
//! Invariant: no row is in the fresh store that the damaged store did not have, or that no hash verifies.

mod first_page;
mod scan;

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    fs,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, Row, params, types::Value};

use crate::store::sqlite::{
    add::OWN,
    bytes::{
        cover::{self, Covered, kept_digest},
        lines::{Bytes, LOST},
    },
    journal, open,
    query::{self, Emptied, collect, execute, first, hash},
    rows::Tables,
    witness,
    write::place,
};
use crate::{
    disk,
    model::{
        Bulk, CheckpointNumber, Digest, EntryId, EntryNumber, LineId, Operation, OperationId,
        OperationNumber, Origin, STRAYS, SessionName, StoreId, Tagged, Text,
    },
    store::{Access, FactStore, NewLine, SessionKey, StoreError},
};
use scan::{Probes, Table};

/// A line of the store that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The session.
    pub session: SessionKey,
    /// The number of the entry.
    pub entry: EntryNumber,
    /// Its id, which identifies the line.
    pub id: EntryId,
    /// The id of the entry that it is linked to.
    pub link: Option<EntryId>,
    /// If it was redacted, the id of the line that replaced it: only that one may be restored.
    pub covered: Option<LineId>,
}

/// A lost part of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The session, if it is part of one.
    pub session: Option<SessionName>,
    /// What is lost.
    pub item: String,
}

/// A stored file that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WantedFile {
    /// The session.
    pub session: SessionKey,
    /// The operation that stored it.
    pub operation: OperationNumber,
    /// Its index among the operation's files.
    pub n: u64,
    /// The digest of its bytes.
    pub digest: Digest,
}

/// A fresh store while it is filled from a damaged one.
pub struct Salvage {
    damaged: PathBuf,
    old: Connection,
    fresh: Tables,
    triggers: Vec<String>,
    names: BTreeMap<SessionKey, SessionName>,
    wanted: BTreeMap<EntryId, Vec<Wanted>>,
    files: Vec<WantedFile>,
    /// The line numbers of lost operations; negative ones are lines of the damaged store.
    strays: Vec<i64>,
    losses: Vec<Loss>,
    probes: Probes,
    /// The length of an empty store.
    least: u64,
}

/// The tables of facts to copy: the name, the columns, the key column, and whether keys are counted for each session.
/// Line numbers are negative until the line is copied.
const COPIED: [(&str, &str, &str, bool); 6] = [
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
    ("kept", "session, operation, n, line", "operation", true),
    ("entry", "session, n, id, link, line", "n", true),
];

/// The tables with facts of sessions, and the column with the number of a row's operation.
const OF_OPERATIONS: [(&str, &str); 6] = [
    ("operation", "n"),
    ("run", "operation"),
    ("checkpoint", "operation"),
    ("origin", "operation"),
    ("words", "operation"),
    ("kept", "operation"),
];

/// The numbers that a session's next operation must have.
struct Next {
    before: Option<OperationId>,
    operation: OperationNumber,
    entry: EntryNumber,
    checkpoint: CheckpointNumber,
}

impl Salvage {
    /// Copies what can be read of a store into a fresh file, which must not exist yet. Reports to `each` how many tables of
    /// sessions were read, and of how many.
    pub fn begin(
        damaged: &Path,
        fresh: &Path,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<Self, StoreError> {
        let opened = open::open(fresh, Access::Write)?;
        query::empty_wal(&opened.db, Emptied::Truncated)?;
        let old = first_page::open(damaged, fresh)?;
        let least = length_of(fresh);
        let tables = Tables::new(opened.db, opened.id, fresh);
        let fresh = &tables.db;
        fresh.execute_batch("BEGIN IMMEDIATE")?;
        // Facts are added out of order here.
        let sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'";
        let triggers: Vec<(String, String)> =
            collect(fresh, sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (name, _) in &triggers {
            fresh.execute_batch(&format!("DROP TRIGGER {name}"))?;
        }
        let mut salvage = Self {
            damaged: damaged.to_owned(),
            old,
            fresh: tables,
            triggers: triggers.into_iter().map(|(_, sql)| sql).collect(),
            names: BTreeMap::new(),
            wanted: BTreeMap::new(),
            files: Vec::new(),
            strays: Vec::new(),
            losses: Vec::new(),
            probes: Probes::default(),
            least,
        };
        let named = salvage.sessions()?;
        salvage.facts(&named, each)?;
        salvage.journal(&named)?;
        salvage.take_names(named)?;
        let torn = salvage.words()?;
        salvage.chains()?;
        salvage.lose_words(torn)?;
        salvage.lines()?;
        salvage.kept()?;
        Ok(salvage)
    }

    /// Returns the wanted lines.
    pub fn wanted(&self) -> impl Iterator<Item = &Wanted> {
        self.wanted.values().flatten()
    }

    /// Returns the wanted files.
    pub fn wanted_files(&self) -> &[WantedFile] {
        &self.files
    }

    /// Returns the names of the sessions.
    pub fn sessions_found(&self) -> &BTreeMap<SessionKey, SessionName> {
        &self.names
    }

    /// Returns the operations of a session.
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

    /// Returns how many operations are missing that the witness has seen.
    pub fn forgotten(&self) -> Result<u64, StoreError> {
        let witness = witness::read(&witness::path_of(&self.damaged), self.fresh.id()?);
        let Some(witness) = witness.ok().flatten() else { return Ok(0) };
        let newest = journal::newest(self.db())?.map_or(0, |(seq, _)| seq);
        let is_other =
            journal::hash_at(self.db(), witness.seq)?.is_some_and(|hash| hash != witness.hash);
        Ok(witness.seq.saturating_sub(newest).max(u64::from(is_other)))
    }

    /// Returns true if no session could be read although the store had some: it is longer than an empty one, or its witness says
    /// so.
    pub fn is_empty(&self) -> bool {
        let length = length_of(&self.damaged);
        let had_some = || {
            let witness = witness::newest(&self.damaged);
            witness.is_some_and(|witness| witness.seq > 0) || length > self.least
        };
        let knows_none = self.losses.iter().all(|loss| loss.session.is_none());
        self.names.is_empty() && knows_none && length >= self.least && had_some()
    }

    /// Supplies the line of an entry, found elsewhere. Returns how many entries wanted it.
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

    /// Supplies a file, and returns how many operations wanted it.
    pub fn fill_file(&mut self, bytes: &[u8]) -> Result<usize, StoreError> {
        let digest = Digest::of_bytes(bytes);
        let (found, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.files).into_iter().partition(|file| file.digest == digest);
        self.files = left;
        for file in &found {
            self.keep(file, Some(bytes.to_vec()))?;
        }
        Ok(found.len())
    }

    /// Writes the readable lines of lost operations to a file.
    pub fn write_strays(&mut self, path: &Path) -> Result<(), StoreError> {
        if self.strays.is_empty() {
            return Ok(());
        }
        let io = StoreError::at(path);
        let mut file = None;
        let bytes = Bytes::default();
        let mut count = 0;
        for line in std::mem::take(&mut self.strays) {
            let found = match line {
                ..0 => bytes.line(&self.old, -line),
                _ => self.fresh.bytes.borrow().line(self.db(), line),
            };
            if let Ok(mut found) = found {
                found.push(b'\n');
                let file = match &mut file {
                    Some(file) => file,
                    none => none.insert(BufWriter::new(disk::make(path).map_err(&io)?)),
                };
                file.write_all(&found).map_err(&io)?;
                count += 1;
            }
        }
        let Some(file) = file else { return Ok(()) };
        let file = file.into_inner().map_err(|error| io(error.into_error()))?;
        file.sync_all().map_err(io)?;
        let item =
            format!("the places of {count} lines, which are in {STRAYS} beside the damaged store");
        self.losses.push(Loss { session: None, item });
        Ok(())
    }

    /// Makes the fresh store durable and returns what is lost. Its derived rows must still be computed.
    pub fn finish(mut self) -> Result<Vec<Loss>, StoreError> {
        for wanted in std::mem::take(&mut self.wanted).into_values().flatten() {
            self.lose(wanted.session, format!("the line of entry {:.8}", wanted.id));
            self.copy_record(wanted.session, wanted.entry)?;
        }
        for WantedFile { session, operation, n, .. } in std::mem::take(&mut self.files) {
            self.lose(session, format!("file {n} that operation {operation} kept"));
        }
        self.fresh.bytes.borrow_mut().settle(self.db())?;
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

    fn lose(&mut self, session: SessionKey, item: impl Into<String>) {
        let session = self.names.get(&session).cloned();
        self.losses.push(Loss { session, item: item.into() });
    }

    /// Returns the possible names of each session, from its row, the index and its card.
    fn sessions(&self) -> Result<BTreeMap<SessionKey, Vec<SessionName>>, StoreError> {
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
        Ok(named)
    }

    /// Copies rows of facts.
    fn facts(
        &self,
        named: &BTreeMap<SessionKey, Vec<SessionName>>,
        each: &mut dyn FnMut(u64, u64),
    ) -> Result<(), StoreError> {
        let all = (COPIED.len() * named.len()) as u64;
        let mut done = 0;
        for (name, columns, key, is_per_session) in COPIED {
            let read = columns.replace(" line", " -max(line, 0)");
            let count = columns.split(", ").count();
            let copy = |within| {
                let table = Table { columns: &read, name, key, within };
                table.scan(&self.old, &self.probes, &mut |row| {
                    let values = (0..count).map(|column| row.get(column));
                    insert(self.db(), name, columns, values.collect::<Result<_, _>>()?)
                })
            };
            if !is_per_session {
                copy(None)?;
            }
            for session in named.keys() {
                if is_per_session {
                    copy(Some(("session = ?3", session.0)))?;
                }
                done += 1;
                each(done, all);
            }
        }
        // No operation has a negative number.
        self.db().execute("DELETE FROM operation WHERE seq < 1", [])?;
        Ok(())
    }

    /// Settles the readable operations of the journal.
    fn journal(&self, named: &BTreeMap<SessionKey, Vec<SessionName>>) -> Result<(), StoreError> {
        let mut rows = BTreeMap::new();
        let table = Table { columns: "seq, body", name: "journal", key: "seq", within: None };
        table.scan(&self.old, &self.probes, &mut |row| {
            let seq: u64 = row.get(0)?;
            let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            rows.insert(seq, journal::decode(seq, body, journal::Hashes::Computed)?);
            Ok(())
        })?;
        rows.retain(|_, row| named.contains_key(&row.session));
        for (seq, row) in rows {
            self.settle(seq, row)?;
        }
        Ok(())
    }

    /// Settles an operation of the journal, unless its number is taken.
    fn settle(&self, seq: u64, mut row: journal::Row) -> Result<(), StoreError> {
        // The lines of the rows before it stay, whatever happens to this one.
        self.fresh.bytes.borrow_mut().settle(self.db())?;
        self.db().execute_batch("SAVEPOINT settled")?;
        let (lines, kept) = place(self.db(), &mut self.fresh.bytes.borrow_mut(), &mut row.commit)?;
        let placed = row.placed(seq, lines, kept);
        match crate::store::sqlite::add::add_facts(self.db(), &[placed]) {
            Err(StoreError::Refused(_)) => {
                self.db().execute_batch("ROLLBACK TO settled")?;
                self.fresh.forget();
            }
            added => added?,
        }
        Ok(self.db().execute_batch("RELEASE settled")?)
    }

    /// Chooses the store's id and each session's name so that the hashes of first operations match. Drops sessions for which no
    /// name matches.
    fn take_names(
        &mut self,
        named: BTreeMap<SessionKey, Vec<SessionName>>,
    ) -> Result<(), StoreError> {
        let sql = "SELECT session, record, hash FROM operation WHERE store = ? AND n = 1";
        let firsts = collect(self.db(), sql, [OWN], |row| {
            let (record, id) = (row.get(1)?, OperationId::new(hash(row, 2)?));
            Ok((SessionKey(row.get(0)?), Operation::open(OperationNumber::FIRST, record, id, &[])))
        })?;
        let firsts: BTreeMap<SessionKey, Operation> =
            firsts.into_iter().filter_map(|(session, by)| Some((session, by.ok()?))).collect();
        let is_right = |id: StoreId, session: &SessionKey, name: &SessionName| {
            firsts.get(session).is_some_and(|by| by.hash_after(None, id, name) == by.hash)
        };
        let count = |id: StoreId| {
            let is_named = |(session, names): &(&SessionKey, &Vec<SessionName>)| {
                names.iter().any(|name| is_right(id, session, name))
            };
            named.iter().filter(is_named).count()
        };
        let ids = self.own_ids();
        // The first of equally good ids wins.
        let best = ids.into_iter().rev().max_by_key(|id| count(*id));
        if let Some(id) = best {
            let sql = "UPDATE store SET id = ? WHERE key = ?";
            self.db().execute(sql, params![id.as_bytes(), OWN])?;
            self.fresh.id = id;
        }
        for (session, mut names) in named {
            let right = names.iter().position(|name| is_right(self.fresh.id, &session, name));
            if let Some(at) = right {
                let name = names.swap_remove(at);
                self.db().execute(
                    "INSERT INTO session (key, format, id) VALUES (?, ?, ?)",
                    params![session.0, name.format, name.id],
                )?;
                self.names.insert(session, name);
            } else {
                let item = "all operations".to_owned();
                self.losses.push(Loss { session: names.into_iter().next(), item });
            }
        }
        for (table, _) in OF_OPERATIONS.into_iter().chain([("entry", "")]) {
            let nameless =
                format!("DELETE FROM {table} WHERE session NOT IN (SELECT key FROM session)");
            self.db().execute(&nameless, [])?;
        }
        Ok(())
    }

    /// Returns the possible ids of the store, from its row, the index and the witness.
    fn own_ids(&self) -> Vec<StoreId> {
        let read = |from: &str| {
            let sql = format!("SELECT id FROM {from} WHERE key = ?");
            self.old.query_row(&sql, [OWN], |row| row.get(0)).ok().map(StoreId::new)
        };
        let mut seen = witness::read_all(&witness::path_of(&self.damaged)).unwrap_or_default();
        seen.sort_by_key(|witness| std::cmp::Reverse(witness.seq));
        let seen = seen.into_iter().map(|witness| witness.store);
        [read("store"), read("store INDEXED BY store_id")]
            .into_iter()
            .flatten()
            .chain(seen)
            .collect()
    }

    /// Copies the user texts that match their digests, and returns the sessions that have lost some.
    fn words(&self) -> Result<Vec<SessionKey>, StoreError> {
        let columns = "session, operation, digest, salt, CAST(text AS BLOB)";
        let mut torn = Vec::new();
        for session in self.names.keys() {
            let within = Some(("session = ?3", session.0));
            let table = Table { columns, name: "words", key: "operation", within };
            let mut are_right = true;
            let is_whole = table.scan(&self.old, &self.probes, &mut |row| {
                are_right &= add_words(self.db(), row)?;
                Ok(())
            })?;
            torn.extend((!is_whole || !are_right).then_some(*session));
        }
        Ok(torn)
    }

    /// Reports the operations of these sessions with lost texts.
    fn lose_words(&mut self, torn: Vec<SessionKey>) -> Result<(), StoreError> {
        for session in torn {
            let mut lost = BTreeSet::new();
            let mut name = |n: OperationNumber, text: &mut Text| {
                lost.extend(matches!(text, Text::Absent(_)).then_some(n));
            };
            for mut by in self.fresh.operations(session, OperationNumber::ALL)? {
                let n = by.n;
                by.texts(&mut |text| name(n, text));
            }
            for (n, mut given) in self.fresh.checkpoints(session, CheckpointNumber::ALL)? {
                given.texts(&mut |text| name(n, text));
            }
            for n in lost {
                self.lose(session, format!("text of operation {n}, unless it was redacted"));
            }
        }
        Ok(())
    }

    /// Ends each session before its first missing or damaged operation.
    fn chains(&mut self) -> Result<(), StoreError> {
        let names = self.names.clone();
        for (session, name) in names {
            let mut lost = None;
            // A later redaction can be what makes an earlier operation valid. If it was cut, the earlier one must be cut too.
            while let Some((first, last)) = self.cut(session, &name)? {
                lost = Some((first, lost.map_or(last, |(_, last)| last)));
            }
            let Some((first, last)) = lost else { continue };
            let item = match (first, last) {
                (OperationNumber::FIRST, _) => "all operations".to_owned(),
                (first, last) if first >= last => format!("operation {first}"),
                (first, last) => format!("operations {first} to {last}"),
            };
            self.lose(session, item);
            if first == OperationNumber::FIRST {
                self.db().execute("DELETE FROM session WHERE key = ?", [session.0])?;
                self.names.remove(&session);
            }
        }
        Ok(())
    }

    /// Deletes all facts from the first damaged operation on, and returns the range of the deleted operations.
    fn cut(
        &mut self,
        session: SessionKey,
        name: &SessionName,
    ) -> Result<Option<(OperationNumber, OperationNumber)>, StoreError> {
        let mut next = Next {
            before: None,
            operation: OperationNumber::FIRST,
            entry: EntryNumber::FIRST,
            checkpoint: CheckpointNumber::FIRST,
        };
        let mut origins: BTreeMap<OperationNumber, Vec<Origin>> = BTreeMap::new();
        // If they cannot be read, no operation has the origins that its record covers.
        for (n, origin) in self.fresh.origins(session, EntryNumber::ALL).unwrap_or_default() {
            origins.entry(n).or_default().push(origin);
        }
        for by in self.operations(session)? {
            let origins = origins.remove(&by.n).unwrap_or_default();
            if !self.is_whole(session, name, &next, &by, origins).or_else(refuse_damaged)? {
                break;
            }
            next = Next {
                before: Some(by.hash),
                operation: by.n.next(),
                entry: by.added().end,
                checkpoint: next.checkpoint.plus(by.checkpoints.map_or(0, |given| given.count)),
            };
        }
        let mut last: Option<OperationNumber> = None;
        for (table, column) in OF_OPERATIONS {
            let sql =
                format!("SELECT max({column}) FROM {table} WHERE session = ? AND {column} >= ?");
            let key = params![session.0, next.operation];
            last = last.max(self.db().query_row(&sql, key, |row| row.get(0))?);
            let sql = format!("DELETE FROM {table} WHERE session = ? AND {column} >= ?");
            self.db().execute(&sql, key)?;
        }
        let sql = "SELECT line FROM entry WHERE session = ? AND n >= ? ORDER BY n";
        let strays: Vec<i64> =
            collect(self.db(), sql, params![session.0, next.entry], |row| row.get(0))?;
        self.strays.extend(strays);
        for (table, n) in [("entry", next.entry.get()), ("checkpoint", next.checkpoint.get())] {
            let sql = format!("DELETE FROM {table} WHERE session = ? AND n >= ?");
            self.db().execute(&sql, params![session.0, n])?;
        }
        Ok(last.map(|last| (next.operation, last)))
    }

    /// Returns true if an operation follows the one before it and has all facts that its record covers.
    fn is_whole(
        &self,
        session: SessionKey,
        name: &SessionName,
        next: &Next,
        by: &Operation,
        origins: Vec<Origin>,
    ) -> Result<bool, StoreError> {
        let follows = by.n == next.operation
            && by.first == next.entry
            && by.hash_after(next.before, self.fresh.id, name) == by.hash;
        if !follows {
            return Ok(false);
        }
        let given = by.checkpoints.map_or(0, |given| given.count);
        let numbers = next.checkpoint..next.checkpoint.plus(given);
        let runs = self.fresh.growths(session, by.n.alone())?.into_iter();
        let checkpoints = self.fresh.checkpoints(session, numbers)?.into_iter();
        let bulk = Bulk {
            entries: self.fresh.entries(session, by.added())?,
            runs: runs.map(|(_, run)| run).collect(),
            checkpoints: checkpoints.map(|(_, checkpoint)| checkpoint).collect(),
            origins,
        };
        if by.names(&bulk, None) {
            return Ok(true);
        }
        let covered = cover::runs_by_operations(self.db(), session, by.n)?;
        Ok(by.names(&bulk, covered))
    }

    /// Copies each line once, in storage order. Lines that do not match their entries' ids are wanted.
    fn lines(&mut self) -> Result<(), StoreError> {
        let all = collect(
            self.db(),
            "SELECT e.session, e.n, e.id, k.id, -e.line FROM entry e
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
                Ok((wanted, row.get::<_, i64>(4)?))
            },
        )?;
        let bytes = Bytes::default();
        let mut last: Option<(i64, LineId, i64)> = None;
        let mut session = None;
        let mut covered: BTreeMap<SessionKey, Covered> = BTreeMap::new();
        for (wanted, old) in all {
            if session.replace(wanted.session) != Some(wanted.session) {
                self.fresh.bytes.borrow_mut().begin_operation(self.db(), None)?;
            }
            let known = match covered.entry(wanted.session) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(cover::by_operations(self.db(), wanted.session)?)
                }
            };
            // If a line was redacted, only its replacement may be restored.
            let covered = cover::in_place_of(known, wanted.entry, wanted.id, wanted.link);
            let is_of = |line: LineId| match covered {
                Some(covered) => line == covered,
                None => EntryId::of(wanted.link, line) == wanted.id,
            };
            let number = match last.filter(|(at, id, _)| *at == old && is_of(*id)) {
                Some((_, _, number)) => number,
                None => match bytes.line(&self.old, old) {
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
                self.wanted.entry(wanted.id).or_default().push(Wanted { covered, ..wanted });
            }
        }
        Ok(())
    }

    /// Copies the files that operations stored whole. Unreadable ones are wanted.
    pub(super) fn kept(&mut self) -> Result<(), StoreError> {
        let keys: Vec<SessionKey> = self.names.keys().copied().collect();
        let bytes = Bytes::default();
        for session in keys {
            for by in self.operations(session)? {
                let count = by.facts.containers.len() + by.facts.sidecars.len();
                for n in 0..count as u64 {
                    let operation = by.n;
                    let known = cover::file_by_operations(self.db(), session, (operation, n))?;
                    let Some(digest) = known.or_else(|| kept_digest(&by, n)) else { continue };
                    let file = WantedFile { session, operation, n, digest };
                    let line = self.row_of(&file)?;
                    if line.is_some_and(|line| line > 0) {
                        continue;
                    }
                    let found = line.and_then(|line| bytes.line(&self.old, -line).ok());
                    let found = found.filter(|found| {
                        let found = Digest::of_bytes(found);
                        found == digest || Some(found) == kept_digest(&by, n)
                    });
                    if found.is_none() {
                        self.files.push(file);
                    }
                    self.keep(&file, found)?;
                }
            }
        }
        self.db().execute("DELETE FROM kept WHERE line < 0", [])?;
        Ok(())
    }

    /// Returns the number of a file's line, negative if the line is still in the damaged store.
    fn row_of(&self, file: &WantedFile) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT line FROM kept WHERE session = ? AND operation = ? AND n = ?";
        let key = params![file.session.0, file.operation, file.n];
        first(self.db(), sql, key, |row| row.get(0))
    }

    fn keep(&self, file: &WantedFile, bytes: Option<Vec<u8>>) -> Result<(), StoreError> {
        let line = match bytes {
            Some(bytes) => {
                let line = NewLine::new(bytes, Vec::new());
                self.fresh.bytes.borrow_mut().add(self.db(), line, None)?
            }
            None => LOST,
        };
        let sql = "INSERT OR REPLACE INTO kept (session, operation, n, line) VALUES (?, ?, ?, ?)";
        execute(self.db(), sql, params![file.session.0, file.operation, file.n, line])
    }

    fn add(&mut self, line: &[u8], id: Option<&EntryId>) -> Result<i64, StoreError> {
        self.fresh.bytes.borrow_mut().add(self.db(), NewLine::of_bytes(line.to_vec()), id)
    }

    fn set_line(
        &self,
        session: SessionKey,
        entry: EntryNumber,
        line: i64,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE entry SET line = ? WHERE session = ? AND n = ?";
        execute(self.db(), sql, params![line, session.0, entry])
    }

    /// Copies the derived record of an entry with a lost line, so that paths can still be followed through it.
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

/// Turns an unreadable row into a mismatch.
fn refuse_damaged(error: StoreError) -> Result<bool, StoreError> {
    match error {
        StoreError::Corrupt { .. } => Ok(false),
        error => Err(error),
    }
}

/// Copies a user text, if it matches its digest.
fn add_words(fresh: &Connection, row: &Row<'_>) -> Result<bool, StoreError> {
    let salt: Option<[u8; 16]> = row.get(3).ok();
    let text: Option<Vec<u8>> = row.get(4).ok();
    let text = text.and_then(|text| String::from_utf8(text).ok());
    let (Some(salt), Some(text)) = (salt, text) else { return Ok(false) };
    let digest = Digest::of_words(&salt, &text);
    if row.get(2).ok() != Some(*digest.as_bytes()) {
        return Ok(false);
    }
    let values = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, Value::Text(text)];
    insert(fresh, "words", "session, operation, digest, salt, text", values.into())?;
    Ok(true)
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
        // A row that violates a constraint is damaged.
        Err(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
        {
            Ok(())
        }
        done => Ok(done.map(|_| ())?),
    }
}
