//! Entries whose rows are lost: a line that is tried in place of each gives it an id, and the operation that brought them
//! says by its digest whether these were they.
//!
//! Lines come from the store itself, where some have no entry any more, and from the files of the session.
//!
//! Invariant: an entry gets an id only if all entries of its operation have theirs then.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::params;

use super::{Salvage, scan::Table};
use crate::{
    model::{Entry, EntryId, EntryNumber, LineId, Named, OperationNumber, Run, line},
    store::{
        FactStore, SessionKey, StoreError,
        sqlite::{bytes::Bytes, covered::Covered},
    },
};

/// How many entries may be hashed in search of the lines of all operations together.
const TRIES: usize = 8_000_000;

/// An operation whose entries are not all known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The session.
    pub session: SessionKey,
    /// The number of the operation.
    pub operation: OperationNumber,
    /// The numbers of the entries that are missing, in order.
    pub missing: Vec<EntryNumber>,
    /// The number of the first entry of the operation.
    pub(super) first: EntryNumber,
    /// What the operation says of its entries.
    pub(super) named: Named,
    /// Those of which something was taken out.
    pub(super) covered: Covered,
}

/// An entry that was found: its number, the number of the one that it is linked to, and its id.
type Found = (EntryNumber, Option<EntryNumber>, EntryId);

/// A line that is tried.
#[derive(Clone, Copy, Debug)]
pub struct Tried {
    /// Its id.
    pub id: LineId,
    /// Whether it carries a name, so that its entry is linked to none.
    pub is_named: bool,
}

impl Tried {
    /// Returns a line as it is tried.
    pub fn of(bytes: &[u8]) -> Self {
        let found = line::split(bytes, true, false).next();
        let is_named =
            found.and_then(|found| found.shape).is_some_and(|shape| shape.name.is_some());
        Self { id: LineId::of(bytes), is_named }
    }
}

impl Salvage {
    /// Returns the operations whose entries are not all known.
    pub fn unknown(&self) -> &[Unknown] {
        &self.unknown
    }

    /// Returns the runs of a session, each behind its operation.
    pub fn runs(&self, session: SessionKey) -> Result<Vec<(OperationNumber, Run)>, StoreError> {
        self.fresh.growths(session, OperationNumber::ALL)
    }

    /// Tries lines in place of the missing entries of an operation, and takes them if they are those.
    pub fn identify(
        &mut self,
        unknown: &Unknown,
        lines: &[Tried],
        bytes: &mut dyn FnMut(usize) -> Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let runs = self.runs(unknown.session)?;
        let ids = self.ids(unknown)?;
        match self.try_lines(unknown, (&runs, ids), lines)? {
            Some(found) => self.take(unknown, found, bytes),
            None => Ok(false),
        }
    }

    /// Tries lines that follow each other, each with the id of the one that it is linked to and its own, in place of all
    /// entries of an operation, and takes those that are missing if they are these. That needs no run.
    pub fn identify_in_order(
        &mut self,
        unknown: &Unknown,
        chain: &[(Option<EntryId>, EntryId)],
        bytes: &mut dyn FnMut(usize) -> Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let entries = unknown.first.onwards().zip(chain);
        let entries = entries.map(|(n, (_, id))| Entry { n, id: *id, link: None });
        if Named::entries(&entries.collect::<Vec<_>>()) != Some(unknown.named) {
            return Ok(false);
        }
        let (mut found, mut lines) = (Vec::new(), Vec::new());
        for n in &unknown.missing {
            let at = n.index_from(unknown.first).unwrap_or(usize::MAX);
            let Some(((link, id), line)) = chain.get(at).zip(bytes(at)) else { return Ok(false) };
            let before = at.checked_sub(1).and_then(|at| chain.get(at));
            let link = match link {
                Some(link) if before.is_some_and(|(_, id)| id == link) => Some(n.minus(1)),
                Some(link) => match chain.iter().take(at).rposition(|(_, id)| id == link) {
                    Some(at) => Some(unknown.first.plus(at as u64)),
                    None => match self.entry(unknown.session, link)? {
                        None => return Ok(false),
                        entry => entry,
                    },
                },
                None => None,
            };
            // Where something was taken out of a line, only what is in its place since then may come back.
            if unknown.covered.get(n).is_some_and(|(_, now)| *now != LineId::of(&line)) {
                return Ok(false);
            }
            found.push((*n, link, *id));
            lines.push(line);
        }
        self.take(unknown, found, &mut |at| lines.get(at).cloned())
    }

    /// Takes entries that were found, with their lines.
    fn take(
        &mut self,
        unknown: &Unknown,
        found: Vec<Found>,
        bytes: &mut dyn FnMut(usize) -> Option<Vec<u8>>,
    ) -> Result<bool, StoreError> {
        let lines: Option<Vec<Vec<u8>>> = (0..found.len()).map(bytes).collect();
        let Some(lines) = lines else { return Ok(false) };
        for ((n, link, id), line) in found.into_iter().zip(lines) {
            let line = self.add(&line, link.is_none().then_some(&id))?;
            self.db()
                .prepare_cached(
                    "UPDATE entry SET id = ?, link = ?, line = ? WHERE session = ? AND n = ?",
                )?
                .execute(params![
                    id.as_bytes(),
                    link.map(|link| n.since(link)),
                    line,
                    unknown.session.0,
                    n
                ])?;
        }
        self.unknown.retain(|one| one != unknown);
        for wanted in self.wanted.values_mut() {
            wanted.retain(|one| {
                one.session != unknown.session || unknown.missing.binary_search(&one.entry).is_err()
            });
        }
        Ok(true)
    }

    /// Returns the entries that lines make, each with its link, if they are those that the operation names.
    fn try_lines(
        &self,
        unknown: &Unknown,
        (runs, mut ids): (&[(OperationNumber, Run)], BTreeMap<EntryNumber, EntryId>),
        lines: &[Tried],
    ) -> Result<Option<Vec<Found>>, StoreError> {
        let mut found = Vec::with_capacity(lines.len());
        for (n, line) in unknown.missing.iter().zip(lines) {
            // Where something was taken out of a line, only what is in its place since then may come back.
            let came = match unknown.covered.get(n) {
                Some((came, now)) if *now == line.id => *came,
                Some(_) => return Ok(None),
                None => line.id,
            };
            let link = before(runs, *n).filter(|_| !line.is_named);
            let linked = match link {
                Some(link) if !ids.contains_key(&link) => {
                    let there = self.fresh.entries(unknown.session, link.alone())?;
                    there.first().map(|entry| entry.id)
                }
                link => link.and_then(|link| ids.get(&link).copied()),
            };
            let id = EntryId::of(linked, came);
            ids.insert(*n, id);
            found.push((*n, link, id));
        }
        let entries = ids.iter().map(|(n, id)| Entry { n: *n, id: *id, link: None });
        let entries: Vec<Entry> = entries.collect();
        Ok((Named::entries(&entries) == Some(unknown.named)).then_some(found))
    }

    /// Returns the ids of the operation's entries that are known.
    fn ids(&self, unknown: &Unknown) -> Result<BTreeMap<EntryNumber, EntryId>, StoreError> {
        let numbers = unknown.first..unknown.first.plus(unknown.named.count);
        let mut ids: BTreeMap<EntryNumber, EntryId> = BTreeMap::new();
        for entry in self.fresh.entries(unknown.session, numbers)? {
            ids.insert(entry.n, entry.id);
        }
        ids.retain(|n, _| unknown.missing.binary_search(n).is_err());
        Ok(ids)
    }

    /// Tries the lines of the damaged store that belong to no entry any more, where they follow each other.
    pub(super) fn orphans(&mut self, held: &BTreeSet<i64>) -> Result<(), StoreError> {
        if self.unknown.is_empty() {
            return Ok(());
        }
        let mut keys = BTreeSet::new();
        for (columns, name) in [("key, count", "segment"), ("key, 1", "fresh")] {
            let table = Table { columns, name, key: "key", within: None };
            table.scan(self.bytes_db(), &self.probes, &mut |row| {
                let (first, count): (i64, i64) = (row.get(0)?, row.get(1)?);
                keys.extend(
                    (first..first.saturating_add(count.min(1 << 24)))
                        .filter(|key| !held.contains(key)),
                );
                Ok(())
            })?;
        }
        let bytes = Bytes::default();
        let read =
            |key: &i64| bytes.line(self.bytes_db(), *key).ok().map(|line| (*key, Tried::of(&line)));
        let (keys, lines): (Vec<i64>, Vec<Tried>) = keys.iter().filter_map(read).unzip();
        let mut next = 0;
        let all = self.unknown.clone();
        let mut left = TRIES;
        for (at, unknown) in all.iter().enumerate() {
            let count = unknown.missing.len();
            let runs = self.runs(unknown.session)?;
            let ids = self.ids(unknown)?;
            // Each has its part of the tries that those before it left, and each try hashes all its entries.
            let cost = count + ids.len() + 1;
            let tries = left / (all.len() - at) / cost;
            // They lie in the order in which they came.
            let starts = (next..lines.len()).chain(0..next).take(tries);
            for start in starts {
                let Some(tried) = lines.get(start..start + count) else { continue };
                left = left.saturating_sub(cost);
                if self.try_lines(unknown, (&runs, ids.clone()), tried)?.is_none() {
                    continue;
                }
                let old: Vec<Option<Vec<u8>>> = keys
                    .iter()
                    .skip(start)
                    .take(count)
                    .map(|key| bytes.line(self.bytes_db(), *key).ok())
                    .collect();
                self.identify(unknown, tried, &mut |at| old.get(at).cloned().flatten())?;
                next = start + count;
                break;
            }
        }
        Ok(())
    }
}

/// Returns the entry before another one in the generation in which it was met first.
fn before(runs: &[(OperationNumber, Run)], n: EntryNumber) -> Option<EntryNumber> {
    let (_, run) = runs.iter().find(|(_, run)| run.entries().contains(&n))?;
    if n > run.first {
        return Some(n.minus(1));
    }
    let is_before = |other: &&(OperationNumber, Run)| {
        other.1.generation == run.generation && other.1.count > 0 && other.1.end() == run.start
    };
    runs.iter().find(is_before).and_then(|(_, other)| other.last())
}
