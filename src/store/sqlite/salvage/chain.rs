//! Chains: the operations of a session, those that are lost replaced by ones that say so.
//!
//! ```text
//! found     1   2   3       5   6          4 is missing, and 3 has become another
//! chain     1   2   lost    lost    5   6
//! ```
//!
//! The operation in place of a lost one has its number, and all facts that name it and can still be read: entries, runs,
//! checkpoints, origins, and as many generations and files as those that follow need before them.
//!
//! Invariant: an operation that is kept is, byte for byte, what it was.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use rusqlite::params;

use super::{Salvage, Unknown, Unplaced};
use crate::{
    model::{
        Bulk, CheckpointNumber, Command, EntryNumber, Facts, File, FileNumber, Generation,
        GenerationNumber, Named, Operation, OperationId, OperationNumber, Place, SessionName,
        Timestamp,
    },
    store::{
        FactStore, SessionKey, StoreError,
        sqlite::{add::OWN, covered, lost::LOST, query::collect},
    },
};

/// How far numbers may lie apart between which operations are lost.
const GAP: u64 = 1 << 20;

/// How many rows of a table each operation brought.
type Counts = BTreeMap<OperationNumber, u64>;

/// What is known of the operations so far.
#[derive(Default)]
struct Standing {
    before: Option<OperationId>,
    at: Timestamp,
    /// The numbers of the next entry, file, generation and checkpoint.
    entries: EntryNumber,
    files: FileNumber,
    generations: GenerationNumber,
    checkpoints: CheckpointNumber,
}

impl Salvage {
    /// Makes the operations of each session a chain without gaps.
    pub(super) fn chains(&mut self) -> Result<(), StoreError> {
        let names: Vec<(SessionKey, SessionName)> =
            self.names.iter().map(|(key, name)| (*key, name.clone())).collect();
        for (session, name) in names {
            self.chain(session, &name)?;
        }
        Ok(())
    }

    fn chain(&mut self, session: SessionKey, name: &SessionName) -> Result<(), StoreError> {
        self.drop_torn_runs(session)?;
        let found = self.operations(session)?;
        // A number that is far beyond the others is damaged itself.
        let credible = OperationNumber::FIRST.plus(found.len() as u64 + GAP);
        let (found, far): (Vec<_>, Vec<_>) = found.into_iter().partition(|by| by.n < credible);
        for by in far {
            self.drop_operation(session, by.n)?;
            self.lose(session, format!("operation {}, which is too far after the others", by.n));
        }
        let found = found.into_iter();
        let found: BTreeMap<OperationNumber, Operation> = found.map(|by| (by.n, by)).collect();
        let named = self.last_named(session)?;
        let last = found.keys().next_back().copied().unwrap_or_default();
        let last = if named.since(last) > GAP { last } else { last.max(named) };
        let origins = self.counts("origin", session)?;
        let own = self.fresh.id()?;
        let mut standing = Standing {
            entries: EntryNumber::FIRST,
            files: FileNumber::FIRST,
            generations: GenerationNumber::FIRST,
            ..Standing::default()
        };
        let mut is_broken = false;
        for n in OperationNumber::each(OperationNumber::FIRST..last.next()) {
            let kept = found.get(&n).filter(|by| {
                // Behind a lost one, the hash before is not known.
                is_broken && standing.leads_to(by)
                    || by.hash_after(standing.before, own, name) == by.hash
            });
            if let Some(by) = kept {
                // The one behind it was made with the hash of the one that was lost.
                is_broken = matches!(by.command, Command::Lost {});
                self.complete(session, by, &standing, &origins)?;
                standing.take(by);
                continue;
            }
            let later = found.range(n.next()..).map(|(_, by)| by);
            let later: Vec<&Operation> = later.filter(|by| standing.leads_to(by)).collect();
            let lost = self.lost(session, name, n, &standing, &later)?;
            self.lose(session, format!("operation {n}"));
            is_broken = true;
            standing.take(&lost);
        }
        Ok(())
    }

    /// Returns the greatest number of an operation that any fact names.
    fn last_named(&self, session: SessionKey) -> Result<OperationNumber, StoreError> {
        let mut last = OperationNumber::default();
        for table in ["run", "checkpoint", "origin"] {
            let sql = format!("SELECT ifnull(max(operation), 0) FROM {table} WHERE session = ?");
            let named: OperationNumber =
                self.db().query_row(&sql, [session.0], |row| row.get(0))?;
            last = last.max(named);
        }
        Ok(last)
    }

    /// Returns the greatest number of a generation that a run names.
    fn last_generation(&self, session: SessionKey) -> Result<GenerationNumber, StoreError> {
        let sql = "SELECT ifnull(max(generation), 0) FROM run WHERE session = ?";
        Ok(self.db().query_row(sql, [session.0], |row| row.get(0))?)
    }

    /// Puts an operation in place of one that is lost.
    fn lost(
        &mut self,
        session: SessionKey,
        name: &SessionName,
        n: OperationNumber,
        standing: &Standing,
        later: &[&Operation],
    ) -> Result<Operation, StoreError> {
        self.drop_operation(session, n)?;
        let first = standing.entries;
        if later.is_empty() {
            self.drop_unknown_runs(session, n)?;
        }
        let end = match later.first() {
            Some(next) => next.first,
            // Runs tell of entries whose rows are lost, next to others.
            None => self.number(
                "SELECT max((SELECT ifnull(max(n), 0) + 1 FROM entry WHERE session = ?1),
                            (SELECT ifnull(max(first + count), 1) FROM run WHERE session = ?1))",
                session,
            )?,
        };
        let known = end;
        let end = end.min(first.plus(GAP));
        if known > end {
            let item = format!("{} entries from {end} on, which are too many", known.since(end));
            self.lose(session, item);
        }
        // All that is missing before the next one that is there is taken for a part of the first lost one.
        let mut begun = later.iter().filter_map(|by| by.facts.generations.first());
        let generations = match begun.next() {
            Some(next) => next.n,
            None => self.last_generation(session)?.next().min(standing.generations.plus(GAP)),
        };
        let mut met = later.iter().filter_map(|by| by.facts.files.first());
        let live = later.iter().filter_map(|by| by.facts.live.as_ref()?.to).max();
        let files = met.next().map(|next| next.n).or(live.map(FileNumber::next));
        let files = standing.files..files.unwrap_or(standing.files);
        if later.is_empty() {
            self.drop_stray_facts(session, n, (end, generations))?;
        }
        let Bulk { checkpoints, .. } = self.facts_of(session, n)?;
        let near = |given: &CheckpointNumber| given.since(standing.checkpoints) < GAP;
        let own = checkpoints.iter().map(|given| given.n.next());
        let given = own.chain(self.first_checkpoint(session, later)?).filter(near).max();
        let given = given.unwrap_or(standing.checkpoints);
        let facts = Facts {
            files: FileNumber::each(files).map(|n| File { n, place: Place::default() }).collect(),
            generations: GenerationNumber::each(standing.generations..generations)
                .map(|n| Generation { n, file: None })
                .collect(),
            ..Facts::default()
        };
        self.place_entries(session, first..end.max(first))?;
        self.place_checkpoints(session, n, standing.checkpoints..given)?;
        let entries = self.fresh.entries(session, first..end.max(first))?;
        let bulk = Bulk { entries, ..self.facts_of(session, n)? };
        let by = Operation::seal(
            (self.fresh.id()?, name),
            standing.before,
            (n, standing.at, first),
            Command::Lost {},
            facts,
            &bulk,
        );
        self.db()
            .prepare_cached(
                "INSERT INTO operation (seq, session, store, n, hash, record)
                 VALUES ((SELECT ifnull(max(seq), 0) + 1 FROM operation), ?, ?, ?, ?, ?)",
            )?
            .execute(params![session.0, OWN, n, by.hash.as_bytes(), by.record])?;
        Ok(by)
    }

    fn drop_operation(&self, session: SessionKey, n: OperationNumber) -> Result<(), StoreError> {
        self.db()
            .prepare_cached("DELETE FROM operation WHERE session = ? AND store = ? AND n = ?")?
            .execute(params![session.0, OWN, n])?;
        Ok(())
    }

    /// Leaves out the runs of operations from this one on, which are all lost, if nothing is known of their entries: these come
    /// back as others when a file is taken in.
    fn drop_unknown_runs(&self, session: SessionKey, n: OperationNumber) -> Result<(), StoreError> {
        self.db().execute(
            "DELETE FROM run WHERE session = ?1 AND operation >= ?2 AND NOT EXISTS
               (SELECT 1 FROM entry WHERE session = ?1 AND n >= first AND n < first + count)",
            params![session.0, n],
        )?;
        Ok(())
    }

    /// Has checkpoints of operations from this one on, which are all lost, lead nowhere if they are at entries or in generations
    /// that are not there, and leaves out which of these entries stood for others: their numbers will be those of others.
    fn drop_stray_facts(
        &self,
        session: SessionKey,
        n: OperationNumber,
        (entries, generations): (EntryNumber, GenerationNumber),
    ) -> Result<(), StoreError> {
        self.db().execute(
            "UPDATE checkpoint SET generation = 0, head = NULL, horizon = 0, before = NULL, own = NULL, note = NULL
             WHERE session = ?1 AND operation >= ?2 AND (head >= ?3 OR before >= ?3 OR generation >= ?4)",
            params![session.0, n, entries, generations],
        )?;
        self.db().execute(
            "DELETE FROM origin WHERE session = ?1 AND operation >= ?2 AND (entry >= ?3 OR origin >= ?3)",
            params![session.0, n, entries],
        )?;
        Ok(())
    }

    /// Returns the number of the first checkpoint that operations gave which follow each other, if rows of any of them tell it.
    fn first_checkpoint(
        &self,
        session: SessionKey,
        later: &[&Operation],
    ) -> Result<Option<CheckpointNumber>, StoreError> {
        let sql = "SELECT min(n) FROM checkpoint WHERE session = ? AND operation = ?";
        let (mut passed, mut before) = (0, None);
        for by in later {
            if before.is_some_and(|before: OperationNumber| before.next() != by.n) {
                break;
            }
            let key = params![session.0, by.n];
            let first: Option<u64> =
                self.db().prepare_cached(sql)?.query_row(key, |row| row.get(0))?;
            if let Some(first) = first {
                return Ok(first.checked_sub(passed).map(CheckpointNumber::new));
            }
            passed += by.checkpoints.map_or(0, |given| given.count);
            before = Some(by.n);
        }
        Ok(None)
    }

    /// Gives a place to the facts of an operation that can no longer be read.
    fn complete(
        &mut self,
        session: SessionKey,
        by: &Operation,
        standing: &Standing,
        origins: &Counts,
    ) -> Result<(), StoreError> {
        let mut missing = self.place_entries(session, by.added())?;
        if Named::entries(&self.fresh.entries(session, by.added())?) != by.entries {
            // An id may be damaged, and its line then is not found by it.
            missing = self.without_lines(session, by.added())?;
        }
        if let Some(named) = by.entries.filter(|_| !missing.is_empty()) {
            let (operation, first) = (by.n, by.first);
            let mut covered = covered::by_operations(self.db(), session)?;
            covered.retain(|n, _| missing.binary_search(n).is_ok());
            self.unknown.push(Unknown { session, operation, missing, first, named, covered });
        }
        let given = by.checkpoints.map_or(0, |given| given.count);
        let places = standing.checkpoints..standing.checkpoints.plus(given);
        self.place_checkpoints(session, by.n, places)?;
        let runs = self.fresh.growths(session, by.n.alone())?.into_iter().map(|(_, run)| run);
        if !self.are_runs_of(session, by, &runs.collect::<Vec<_>>())? {
            let next = standing.generations.plus(by.facts.generations.len() as u64);
            let one = Unplaced { session, operation: by.clone(), next };
            self.unplaced.push(one.clone());
            self.place_grown(&one)?;
        }
        let has = origins.get(&by.n).copied().unwrap_or(0);
        if has != by.origins.map_or(0, |origins| origins.count) {
            self.lose(session, format!("which entries operation {} replaced", by.n));
        }
        Ok(())
    }

    /// Gives a place to entries without rows, one that says nothing of them, and returns which these are.
    fn place_entries(
        &mut self,
        session: SessionKey,
        numbers: Range<EntryNumber>,
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let there: BTreeSet<EntryNumber> =
            self.fresh.entries(session, numbers.clone())?.iter().map(|entry| entry.n).collect();
        let missing: Vec<EntryNumber> =
            EntryNumber::each(numbers).filter(|n| !there.contains(n)).collect();
        for n in &missing {
            self.db()
                .prepare_cached(
                    "INSERT INTO entry (session, n, id, link, line) VALUES (?, ?, ?, NULL, ?)",
                )?
                .execute(params![session.0, n, session.unknown(*n).as_bytes(), LOST])?;
        }
        Ok(missing)
    }

    /// Returns the entries whose lines are lost.
    fn without_lines(
        &self,
        session: SessionKey,
        numbers: Range<EntryNumber>,
    ) -> Result<Vec<EntryNumber>, StoreError> {
        collect(
            self.db(),
            "SELECT n FROM entry WHERE session = ? AND n >= ? AND n < ? AND line = ? ORDER BY n",
            params![session.0, numbers.start, numbers.end, LOST],
            |row| row.get(0),
        )
    }

    fn place_checkpoints(
        &mut self,
        session: SessionKey,
        operation: OperationNumber,
        numbers: Range<CheckpointNumber>,
    ) -> Result<usize, StoreError> {
        let mut lost = 0;
        for n in CheckpointNumber::each(numbers) {
            lost += self
                .db()
                .prepare_cached(
                    "INSERT OR IGNORE INTO checkpoint (session, n, operation, generation, horizon) VALUES (?, ?, ?, 0, 0)",
                )?
                .execute(params![session.0, n, operation])?;
        }
        Ok(lost)
    }

    /// Returns the runs, checkpoints and origins that an operation brought and that can be read.
    pub(super) fn facts_of(
        &self,
        session: SessionKey,
        n: OperationNumber,
    ) -> Result<Bulk, StoreError> {
        // They lie next to each other, and those of others may be many.
        let span = |table: &str, key: &str| {
            let sql = format!(
                "SELECT ifnull(min({key}), 0), ifnull(max({key}) + 1, 0) FROM {table}
                 WHERE session = ? AND operation = ?"
            );
            self.db().prepare_cached(&sql)?.query_row(params![session.0, n], |row| {
                Ok::<(u64, u64), _>((row.get(0)?, row.get(1)?))
            })
        };
        let runs = self.fresh.growths(session, n.alone())?;
        let (from, to) = span("checkpoint", "n")?;
        let numbers = CheckpointNumber::new(from)..CheckpointNumber::new(to);
        let mut checkpoints = self.fresh.checkpoints(session, numbers)?;
        checkpoints.retain(|(by, _)| *by == n);
        let (from, to) = span("origin", "entry")?;
        let numbers = EntryNumber::new(from)..EntryNumber::new(to);
        let mut origins = self.fresh.origins(session, numbers)?;
        origins.retain(|(by, _)| *by == n);
        Ok(Bulk {
            entries: Vec::new(),
            runs: runs.into_iter().map(|(_, run)| run).collect(),
            checkpoints: checkpoints.into_iter().map(|(_, given)| given).collect(),
            origins: origins.into_iter().map(|(_, origin)| origin).collect(),
        })
    }

    /// Returns how many rows of a table each operation brought.
    fn counts(&self, table: &str, session: SessionKey) -> Result<Counts, StoreError> {
        let sql =
            format!("SELECT operation, count(*) FROM {table} WHERE session = ? GROUP BY operation");
        let rows = collect(self.db(), &sql, [session.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.into_iter().collect())
    }

    fn number(&self, sql: &str, session: SessionKey) -> Result<EntryNumber, StoreError> {
        Ok(self.db().query_row(sql, [session.0], |row| row.get(0))?)
    }
}

impl Standing {
    /// Returns whether an operation may come some operations later: damaged numbers lead far away.
    fn leads_to(&self, by: &Operation) -> bool {
        let near = |from: u64, to: u64| (from..=from.saturating_add(GAP)).contains(&to);
        let given = by.checkpoints.map_or(0, |given| given.count);
        let generation = by.facts.generations.first();
        let file = by.facts.files.first();
        near(self.entries.get(), by.first.get())
            && by.count() <= GAP
            && given <= GAP
            && generation.is_none_or(|begun| near(self.generations.get(), begun.n.get()))
            && file.is_none_or(|met| near(self.files.get(), met.n.get()))
    }

    fn take(&mut self, by: &Operation) {
        (self.before, self.at) = (Some(by.hash), by.at);
        self.entries = by.added().end;
        self.files = self.files.plus(by.facts.files.len() as u64);
        self.generations = self.generations.plus(by.facts.generations.len() as u64);
        self.checkpoints = self.checkpoints.plus(by.checkpoints.map_or(0, |given| given.count));
    }
}
