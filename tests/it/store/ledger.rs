//! A store made outside of the crate: commits as they came, and every answer by a look through all of them.
//!
//! It shows that the traits can be implemented by others. It shares no code with the stores of the crate but the check of
//! commits, so that what is wrong in their overlay shows in a comparison.

use std::{
    cell::{Cell, Ref, RefCell},
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    time::Duration,
};

use undertext::{
    model::{
        Card, Checkpoint, CheckpointNumber, Entry, EntryId, EntryNumber, FileNumber,
        GenerationNumber, Glance, IdPrefix, Landmark, LineId, NameTag, Operation, OperationNumber,
        Origin, Place, Record, Run, SessionName, State, StoreId, Tagged, Text, Tie, TieKind,
        Tombstone,
    },
    store::{
        ByteStore, CacheStore, Came, Commit, Committed, Coverings, Cursor, Derived, DoorStore,
        FactStore, Fault, FaultKind, Known, Listed, RunsCovering, SessionFilter, SessionKey, Sieve,
        Sighting, Sizes, Store, StoreError, TakenOut, Total, Transaction, Within, nearest,
    },
};

/// A store that is a list of commits.
#[derive(Default)]
pub(crate) struct Ledger {
    id: StoreId,
    held: RefCell<Held>,
    is_written: Cell<bool>,
}

#[derive(Clone, Default)]
struct Held {
    names: Vec<SessionName>,
    added: Vec<(SessionKey, Commit)>,
    derived: BTreeMap<SessionKey, Derived>,
    sightings: BTreeMap<Vec<u8>, Sighting>,
    glances: BTreeMap<SessionKey, Glance>,
    /// By session, rule and entry.
    counts: BTreeMap<(SessionKey, u64, EntryNumber), Vec<u64>>,
    /// What stands in the place of lines.
    covered: BTreeMap<(SessionKey, EntryNumber), Vec<u8>>,
    /// What stands in the place of files that are kept whole.
    covered_files: BTreeMap<(SessionKey, OperationNumber, u64), Vec<u8>>,
}

fn damaged(item: &str) -> StoreError {
    let (item, problem) = (item.to_owned(), "it is missing".to_owned());
    StoreError::Corrupt(Fault { kind: FaultKind::Thing, session: None, item, problem })
}

impl Held {
    /// Returns what `pick` takes of each commit of a session, in order.
    fn all<T>(
        &self,
        session: SessionKey,
        pick: impl Fn(&Commit) -> Vec<T>,
    ) -> Result<Vec<T>, StoreError> {
        self.derived(session)?;
        let own = self.added.iter().filter(|(key, _)| *key == session);
        Ok(own.flat_map(|(_, commit)| pick(commit)).collect())
    }

    fn derived(&self, session: SessionKey) -> Result<&Derived, StoreError> {
        self.derived.get(&session).ok_or_else(|| damaged("a session"))
    }

    /// Returns every entry of a session with its line.
    fn lines(&self, session: SessionKey) -> Result<Vec<(Entry, Vec<u8>)>, StoreError> {
        self.all(session, |commit| {
            let lines = commit.lines.iter().map(|line| line.bytes().to_vec());
            commit.bulk.entries.iter().copied().zip(lines).collect()
        })
    }

    fn session(&self, name: &SessionName) -> Option<SessionKey> {
        let at = self.names.iter().position(|held| held == name)?;
        Some(SessionKey(i64::try_from(at).unwrap()))
    }

    fn add(&mut self, commit: Commit) -> SessionKey {
        let session = self.session(&commit.session).unwrap_or_else(|| {
            self.names.push(commit.session.clone());
            SessionKey(i64::try_from(self.names.len() - 1).unwrap())
        });
        let derived = self.derived.entry(session).or_default();
        derived.state.apply(&commit.operation, &commit.bulk);
        derived.records.extend(commit.records.iter().cloned());
        derived.twins.extend(&commit.twins);
        let mut ties: BTreeMap<GenerationNumber, Vec<Tie>> =
            std::mem::take(&mut derived.ties).into_iter().collect();
        ties.extend(commit.ties.iter().cloned());
        derived.ties = ties.into_iter().collect();
        if let Some(card) = &commit.card {
            derived.card = card.clone();
        }
        self.added.push((session, commit));
        session
    }
}

/// What the ledger knows of a session that a commit is checked against.
struct Own<'a>(&'a Held, Option<SessionKey>);

impl Own<'_> {
    fn all<T>(&self, pick: impl Fn(&Commit) -> Vec<T>) -> Result<Vec<T>, StoreError> {
        self.1.map_or_else(|| Ok(Vec::new()), |session| self.0.all(session, pick))
    }
}

impl Known for Own<'_> {
    fn entry(&self, n: EntryNumber) -> Result<Option<EntryId>, StoreError> {
        let entries = self.all(|commit| commit.bulk.entries.clone())?;
        Ok(entries.iter().find(|entry| entry.n == n).map(|entry| entry.id))
    }

    fn holds(&self, id: &EntryId) -> Result<bool, StoreError> {
        let entries = self.all(|commit| commit.bulk.entries.clone())?;
        Ok(entries.iter().any(|entry| entry.id == *id))
    }

    fn origin(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, StoreError> {
        let origins = self.all(|commit| commit.bulk.origins.clone())?;
        Ok(origins.iter().find(|origin| origin.entry == entry).map(|origin| origin.origin))
    }
}

impl Ledger {
    /// Makes an empty one with an id.
    pub(crate) fn with_id(id: StoreId) -> Self {
        Self { id, ..Self::default() }
    }

    fn held(&self) -> Ref<'_, Held> {
        self.held.borrow()
    }
}

impl FactStore for Ledger {
    fn id(&self) -> Result<StoreId, StoreError> {
        Ok(self.id)
    }

    fn names(&self) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        let names = self.held().names.clone();
        Ok((0..).map(SessionKey).zip(names).collect())
    }

    fn beside(&self, name: &SessionName) -> Result<Vec<SessionName>, StoreError> {
        Ok(nearest(name, self.held().names.iter().cloned()))
    }

    fn session(&self, name: &SessionName) -> Result<Option<SessionKey>, StoreError> {
        Ok(self.held().session(name))
    }

    fn operations(
        &self,
        session: SessionKey,
        range: Range<OperationNumber>,
    ) -> Result<Vec<Operation>, StoreError> {
        let mut all = self.held().all(session, |commit| vec![commit.operation.clone()])?;
        all.retain(|operation| range.contains(&operation.n));
        Ok(all)
    }

    fn entries(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut all = self.held().all(session, |commit| commit.bulk.entries.clone())?;
        all.retain(|entry| range.contains(&entry.n));
        Ok(all)
    }

    fn find(&self, session: SessionKey, prefix: &IdPrefix) -> Result<Vec<EntryNumber>, StoreError> {
        let mut all = self.entries(session, EntryNumber::ALL)?;
        all.retain(|entry| prefix.matches(&entry.id));
        Ok(all.iter().map(|entry| entry.n).collect())
    }

    fn runs(
        &self,
        session: SessionKey,
        generation: GenerationNumber,
        from: u64,
    ) -> Result<Vec<Run>, StoreError> {
        let mut all = self.held().all(session, |commit| commit.bulk.runs.clone())?;
        all.retain(|run| run.generation == generation && (from == 0 || run.end() > from));
        Ok(all)
    }

    fn growths(
        &self,
        session: SessionKey,
        operations: Range<OperationNumber>,
    ) -> Result<Vec<(OperationNumber, Run)>, StoreError> {
        let mut all = self.held().all(session, |commit| {
            commit.bulk.runs.iter().map(|run| (commit.operation.n, run.clone())).collect()
        })?;
        all.retain(|(n, _)| operations.contains(n));
        Ok(all)
    }

    fn checkpoints(
        &self,
        session: SessionKey,
        range: Range<CheckpointNumber>,
    ) -> Result<Vec<(OperationNumber, Checkpoint)>, StoreError> {
        let mut all = self.held().all(session, |commit| {
            commit
                .bulk
                .checkpoints
                .iter()
                .map(|given| (commit.operation.n, given.clone()))
                .collect()
        })?;
        all.retain(|(_, given)| range.contains(&given.n));
        Ok(all)
    }

    fn origins(
        &self,
        session: SessionKey,
        entries: Range<EntryNumber>,
    ) -> Result<Vec<(OperationNumber, Origin)>, StoreError> {
        let mut all = self.held().all(session, |commit| {
            commit.bulk.origins.iter().map(|origin| (commit.operation.n, origin.clone())).collect()
        })?;
        all.retain(|(_, origin)| entries.contains(&origin.entry));
        all.sort_by_key(|(_, origin)| origin.entry);
        Ok(all)
    }

    fn since(&self, cursor: Option<&Cursor>) -> Result<(Vec<SessionKey>, Cursor), StoreError> {
        let held = self.held();
        let at = |n: usize| {
            let newest = n.checked_sub(1).map(|last| held.added[last].1.operation.hash);
            let hash = newest.map(|hash| hash.as_bytes().to_vec()).unwrap_or_default();
            Cursor::new([n.to_string().into_bytes(), hash].concat())
        };
        // One that was given after no operation of this history tells everything.
        let seen = (1..=held.added.len()).find(|n| cursor == Some(&at(*n))).unwrap_or(0);
        let new: BTreeSet<SessionKey> = held.added.iter().skip(seen).map(|(key, _)| *key).collect();
        let cursor = at(held.added.len());
        Ok((new.into_iter().collect(), cursor))
    }
}

impl ByteStore for Ledger {
    fn tally(&self, filter: &SessionFilter) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut tally = BTreeMap::new();
        for listed in self.sessions(&SessionFilter { limit: None, ..filter.clone() })? {
            *tally.entry(listed.name.format).or_default() += 1;
        }
        Ok(tally)
    }

    fn lines(
        &self,
        session: SessionKey,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError> {
        let all = self.held().lines(session)?;
        let covered = self.held().covered.clone();
        for &n in entries {
            if let Some(line) = covered.get(&(session, n)) {
                each(n, Ok(line.clone()));
                continue;
            }
            let linked =
                |n: EntryNumber| all.iter().find(|(entry, _)| entry.n == n).map(|(e, _)| e.id);
            let found = all.iter().find(|(entry, _)| entry.n == n);
            let whole = found.filter(|(entry, line)| {
                EntryId::of(entry.link.and_then(linked), LineId::of(line)) == entry.id
            });
            each(n, whole.map(|(_, line)| line.clone()).ok_or_else(|| damaged("a line")));
        }
        Ok(())
    }

    fn sift(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        sieve: &Sieve,
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError> {
        let mut all = self.held().lines(session)?;
        all.retain(|(entry, line)| range.contains(&entry.n) && sieve.passes(line));
        let entries: Vec<EntryNumber> = all.iter().map(|(entry, _)| entry.n).collect();
        self.lines(session, &entries, each)
    }

    fn lengths(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<u64>, StoreError> {
        let mut all = self.held().lines(session)?;
        all.retain(|(entry, _)| range.contains(&entry.n));
        Ok(all.iter().map(|(_, line)| line.len() as u64).collect())
    }

    fn kept(
        &self,
        session: SessionKey,
        operation: OperationNumber,
        at: u64,
    ) -> Result<Vec<u8>, StoreError> {
        if let Some(bytes) = self.held().covered_files.get(&(session, operation, at)) {
            return Ok(bytes.clone());
        }
        let all = self.held().all(session, |commit| {
            let numbered = (0..).zip(&commit.kept);
            numbered.map(|(at, bytes)| ((commit.operation.n, at), bytes.clone())).collect()
        })?;
        let found = all.into_iter().find(|(place, _)| *place == (operation, at));
        found.map(|(_, bytes)| bytes).ok_or_else(|| damaged("a kept file"))
    }

    fn check(&self, _: Option<SessionKey>, _: &mut dyn FnMut(Fault)) -> Result<(), StoreError> {
        Ok(())
    }

    fn sizes(&self) -> Result<Sizes, StoreError> {
        let held = self.held();
        let lines = held.added.iter().flat_map(|(_, commit)| &commit.lines);
        let raw = lines.clone().map(|line| line.bytes().len() as u64).sum();
        let lines = lines.count() as u64;
        Ok(Sizes { lines, raw, kept: raw, texts: 0, stored: raw })
    }

    fn totals(&self) -> Result<Vec<Total>, StoreError> {
        let mut totals: BTreeMap<String, Total> = BTreeMap::new();
        for (key, name) in self.names()? {
            let lengths = self.lengths(key, EntryNumber::FIRST..EntryNumber::new(u64::MAX))?;
            let total = totals.entry(name.format.clone()).or_default();
            total.format = name.format;
            total.sessions += 1;
            total.entries += lengths.len() as u64;
            total.bytes += lengths.iter().sum::<u64>();
        }
        Ok(totals.into_values().collect())
    }
}

impl DoorStore for Ledger {
    fn sighting(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError> {
        Ok(self.held().sightings.get(path).cloned())
    }

    fn places(&self) -> Result<Vec<Vec<u8>>, StoreError> {
        let mut places = Vec::new();
        for (key, _) in self.names()? {
            let files = self.held().all(key, |commit| commit.operation.facts.files.clone())?;
            places.extend(files.iter().map(|file| file.place.to_bytes()));
        }
        places.sort();
        places.dedup();
        Ok(places)
    }

    fn buried(&self, line: LineId) -> Result<Option<Came>, StoreError> {
        let held = self.held();
        let mut came = held.derived.iter().filter_map(|(key, derived)| {
            let all = &derived.state.tombstones;
            let came = |one: &&Tombstone| one.line == Some(line) && one.covered.is_some();
            let entry = all.iter().find(came)?.entry;
            let newest = all.iter().rev().find(|one| one.entry == entry)?;
            Some(Came { session: *key, entry, rule: newest.rule.clone() })
        });
        Ok(came.next())
    }
}

impl CacheStore for Ledger {
    fn state(&self, session: SessionKey) -> Result<State, StoreError> {
        Ok(self.held().derived(session)?.state.clone())
    }

    fn card(&self, session: SessionKey) -> Result<Card, StoreError> {
        Ok(self.held().derived(session)?.card.clone())
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError> {
        let names = self.names()?;
        let mut listed = Vec::new();
        for (key, name) in &names {
            let card = self.card(*key)?;
            let ties = self.ties(*key)?;
            let is_sub_agent = ties.iter().flat_map(|(_, ties)| ties).any(|tie| {
                let parent = SessionName { format: name.format.clone(), id: tie.other.clone() };
                tie.kind == TieKind::SubAgent && names.iter().any(|(_, name)| *name == parent)
            });
            let equal = |wanted: &Option<String>, value: Option<&String>| {
                wanted.is_none() || wanted.as_ref() == value
            };
            let folder = card.folder.as_deref();
            let is_there = match &filter.folder {
                None => true,
                Some(Within::At(at)) => folder == Some(at),
                Some(Within::Below(all)) => folder.is_some_and(|folder| {
                    all.iter().any(|at| std::path::Path::new(folder).starts_with(at))
                }),
            };
            let begins = |title: &String| card.title.as_ref().is_some_and(|t| t.starts_with(title));
            if equal(&filter.format, Some(&name.format))
                && is_there
                && filter.title.as_ref().is_none_or(begins)
                && filter.prefix.as_ref().is_none_or(|prefix| name.id.starts_with(prefix))
                && filter.since.is_none_or(|since| card.active >= Some(since))
                && (filter.hidden || !card.hidden)
                && (filter.sub_agents || !is_sub_agent)
            {
                listed.push(Listed { key: *key, name: name.clone(), card });
            }
        }
        listed.sort_by_key(|listed| Reverse((listed.card.active, listed.key)));
        listed.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(listed)
    }

    fn files(
        &self,
        place: &Place,
    ) -> Result<Vec<(SessionKey, SessionName, FileNumber)>, StoreError> {
        let mut found = Vec::new();
        for (key, name) in self.names()? {
            let files = self.held().all(key, |commit| commit.operation.facts.files.clone())?;
            let here = files.into_iter().filter(|file| file.place == *place);
            found.extend(here.map(|file| (key, name.clone(), file.n)));
        }
        Ok(found)
    }

    fn records(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<Record>, StoreError> {
        let mut all = self.held().derived(session)?.records.clone();
        all.retain(|record| range.contains(&record.n));
        Ok(all)
    }

    fn named(
        &self,
        session: SessionKey,
        low: NameTag,
        high: NameTag,
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let all = self.records(session, EntryNumber::ALL)?;
        let named = all.iter().filter(|r| r.name.is_some_and(|name| low <= name && name <= high));
        Ok(named.map(|record| record.n).collect())
    }

    fn landmark(
        &self,
        session: SessionKey,
        landmark: Landmark,
        range: Range<EntryNumber>,
    ) -> Result<Option<EntryNumber>, StoreError> {
        let mut all = self.records(session, range)?;
        all.retain(|record| landmark.is(record));
        Ok(all.last().map(|record| record.n))
    }

    fn twins(&self, session: SessionKey) -> Result<Vec<NameTag>, StoreError> {
        let twins: BTreeSet<NameTag> =
            self.held().derived(session)?.twins.iter().copied().collect();
        Ok(twins.into_iter().collect())
    }

    fn ties(&self, session: SessionKey) -> Result<Vec<(GenerationNumber, Vec<Tie>)>, StoreError> {
        let mut all = self.held().derived(session)?.ties.clone();
        all.retain(|(_, ties)| !ties.is_empty());
        all.sort_by_key(|(generation, _)| *generation);
        for (_, ties) in &mut all {
            ties.sort();
            ties.dedup();
        }
        Ok(all)
    }

    fn tied(
        &self,
        format: &str,
        tie: &Tie,
        besides: Option<SessionKey>,
    ) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        let mut found = Vec::new();
        for (key, name) in self.names()? {
            let ties = self.ties(key)?;
            if Some(key) != besides
                && name.format == format
                && ties.iter().any(|(_, ties)| ties.contains(tie))
            {
                found.push((key, name));
            }
        }
        found.sort_by(|(_, a), (_, b)| a.cmp(b));
        Ok(found)
    }

    fn glances(&self, sessions: &[SessionKey]) -> Result<Vec<(SessionKey, Glance)>, StoreError> {
        let held = self.held();
        let known = |key: &SessionKey| Some((*key, held.glances.get(key)?.clone()));
        Ok(sessions.iter().filter_map(known).collect())
    }

    fn counts(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        rule: u64,
    ) -> Result<Vec<(EntryNumber, Vec<u64>)>, StoreError> {
        let held = self.held();
        held.derived(session)?;
        let own = held
            .counts
            .iter()
            .filter(|((key, under, n), _)| (*key, *under) == (session, rule) && range.contains(n));
        Ok(own.map(|((.., n), tokens)| (*n, tokens.clone())).collect())
    }
}

impl Store for Ledger {
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        if self.is_written.replace(true) {
            return Err(StoreError::Busy);
        }
        Ok(Box::new(Page { ledger: self, before: Some(self.held().clone()) }))
    }

    fn is_stale(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn reader(&self) -> Option<Box<dyn Store>> {
        None
    }

    fn pack(&self, _: &mut dyn FnMut(u64, u64)) -> Result<u64, StoreError> {
        Ok(0)
    }

    fn purge(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What is being written, and what to go back to.
struct Page<'a> {
    ledger: &'a Ledger,
    before: Option<Held>,
}

impl Transaction for Page<'_> {
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError> {
        let mut held = self.ledger.held.borrow_mut();
        let session = held.session(&commit.session);
        let state = session.and_then(|key| held.derived.get(&key)).map(|d| d.state.clone());
        commit.check(self.ledger.id, &state.unwrap_or_default(), &Own(&held, session))?;
        Ok(held.add(commit))
    }

    fn derive(&mut self, session: SessionKey, derived: &Derived) -> Result<(), StoreError> {
        let mut held = self.ledger.held.borrow_mut();
        held.derived(session)?;
        held.derived.insert(session, derived.clone());
        Ok(())
    }

    fn freshened(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn sight(&mut self, sightings: &[Sighting]) -> Result<(), StoreError> {
        let seen = sightings.iter().map(|seen| (seen.path.clone(), seen.clone()));
        self.ledger.held.borrow_mut().sightings.extend(seen);
        Ok(())
    }

    fn glance(&mut self, glances: &[(SessionKey, Glance)]) -> Result<(), StoreError> {
        self.ledger.held.borrow_mut().glances.extend(glances.iter().cloned());
        Ok(())
    }

    fn unsight(&mut self, is_meant: &dyn Fn(&[u8]) -> bool) -> Result<(), StoreError> {
        self.ledger.held.borrow_mut().sightings.retain(|path, _| !is_meant(path));
        Ok(())
    }

    fn cover(&mut self, coverings: Coverings) -> Result<(), StoreError> {
        let mut held = self.ledger.held.borrow_mut();
        coverings.check(|session| Ok(held.derived(session)?.state.clone()))?;
        let Coverings { lines, files, runs, words } = coverings;
        for covering in lines {
            held.covered.insert((covering.session, covering.entry), covering.line);
        }
        for covering in files {
            let place = (covering.session, covering.operation, covering.at);
            held.covered_files.insert(place, covering.bytes);
        }
        for RunsCovering { session, operation, runs } in runs {
            let mut own = held.added.iter_mut().filter(|(key, _)| *key == session);
            let added = own.find(|(_, commit)| commit.operation.n == operation);
            added.unwrap().1.bulk.runs = runs;
        }
        for TakenOut { session, operation, digest } in &words {
            let own = held.added.iter_mut().filter(|(key, _)| key == session);
            let mut forget = |text: &mut Text| {
                if text.words().is_some_and(|found| found.digest() == *digest) {
                    text.forget();
                }
            };
            for (_, commit) in own.filter(|(_, commit)| commit.operation.n == *operation) {
                Tagged::texts(&mut commit.operation, &mut forget);
                let given = commit.bulk.checkpoints.iter_mut();
                given.filter_map(|given| given.note.as_mut()).for_each(&mut forget);
            }
        }
        Ok(())
    }

    fn count(
        &mut self,
        session: SessionKey,
        rule: u64,
        counts: &[(EntryNumber, Vec<u64>)],
    ) -> Result<(), StoreError> {
        let counts = counts.iter().map(|(n, tokens)| ((session, rule, *n), tokens.clone()));
        self.ledger.held.borrow_mut().counts.extend(counts);
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<Committed, StoreError> {
        self.before = None;
        Ok(Committed::default())
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            *self.ledger.held.borrow_mut() = before;
        }
        self.ledger.is_written.set(false);
    }
}
