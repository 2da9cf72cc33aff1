//! Commits: one operation with everything it adds, and the reasons for a store to refuse it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use crate::{
    model::{
        Bulk, Card, CoveredFile, CoveredRuns, Digest, EntryId, EntryNumber, GenerationNumber,
        LineId, Lookup, NameTag, Named, Operation, OperationId, OperationNumber, Parent, Record,
        Run, SessionName, State, StoreId, Tie, Tombstone,
        line::{self, Line, TEXT_MIN},
    },
    store::{SessionKey, StoreError},
};

/// A line to store, in the order of the entries in the facts.
///
/// Invariant: its ids never differ from those of its bytes, except that the entry id of a replaced line is that of the original
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLine {
    pub(super) bytes: Vec<u8>,
    pub(super) id: LineId,
    /// The id of the original line, if it was redacted before it was stored.
    pub(super) came: Option<LineId>,
    /// The id of an entry with this line and no link.
    pub(super) alone: EntryId,
    pub(super) texts: Vec<Range<usize>>,
    /// The hashes of the texts, computed on first use.
    pub(super) text_ids: Vec<[u8; 32]>,
    /// For each text, the text that it was cut from, if known.
    pub(super) wholes: Vec<Option<Whole>>,
}

/// A text whose beginning another text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    pub(super) hash: [u8; 32],
    pub(super) size: usize,
    /// The length of the common prefix.
    pub(super) common: usize,
}

impl Whole {
    /// Returns for each long string of a line the string of the whole line that it was cut from, if it was.
    pub fn each(line: &Line<'_>, whole: &Line<'_>) -> Vec<Option<Self>> {
        let (Some(own), Some(of)) = (&line.shape, &whole.shape) else { return Vec::new() };
        if own.texts.len() != of.texts.len() {
            return Vec::new();
        }
        let pair = |(own, of): (&Range<usize>, &Range<usize>)| {
            let (cut, whole) = (line.bytes.get(own.clone())?, whole.bytes.get(of.clone())?);
            let common = cut.iter().zip(whole).take_while(|(a, b)| a == b).count();
            let is_cut = common >= TEXT_MIN && cut != whole;
            let hash = || *blake3::hash(whole).as_bytes();
            is_cut.then(|| Self { hash: hash(), size: whole.len(), common })
        };
        own.texts.iter().zip(&of.texts).map(pair).collect()
    }
}

impl NewLine {
    /// Makes a line from its bytes and the ranges of its long strings.
    pub fn new(bytes: Vec<u8>, texts: Vec<Range<usize>>) -> Self {
        let id = LineId::of(&bytes);
        let alone = EntryId::of(None, id);
        Self { bytes, id, came: None, alone, texts, text_ids: Vec::new(), wholes: Vec::new() }
    }

    /// Makes a line from bytes that were stored before.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        let found = line::split(&bytes).next();
        let whole = found.filter(|found| found.bytes.len() == bytes.len());
        let texts = whole.and_then(|whole| whole.shape).map(|shape| shape.texts);
        Self::new(bytes, texts.unwrap_or_default())
    }

    /// Makes a redacted line; `came` is the id of the original.
    pub(super) fn covering(bytes: Vec<u8>, came: LineId) -> Self {
        Self { came: Some(came), alone: EntryId::of(None, came), ..Self::of_bytes(bytes) }
    }

    /// Replaces the line with bytes of the same length. The entry keeps its id. The commit must have a tombstone for it.
    pub fn cover(&mut self, bytes: Vec<u8>) {
        self.came = self.came.or(Some(self.id));
        (self.id, self.bytes) = (LineId::of(&bytes), bytes);
        (self.text_ids, self.wholes) = (Vec::new(), Vec::new());
    }

    /// Hashes the long strings, for a store that deduplicates them.
    pub fn hash_texts(&mut self) {
        if self.text_ids.is_empty() {
            let texts = self.texts.iter().map(|text| self.bytes.get(text.clone()));
            let hash = |text: Option<&[u8]>| *blake3::hash(text.unwrap_or_default()).as_bytes();
            self.text_ids = texts.map(hash).collect();
        }
    }

    /// Sets the strings that those of this line were cut from, so that their common beginnings are not stored again.
    pub fn cut_from(&mut self, wholes: Vec<Option<Whole>>) {
        if wholes.len() == self.texts.len() {
            self.wholes = wholes;
        }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns only the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the id.
    pub fn id(&self) -> LineId {
        self.id
    }

    /// Returns the id of an entry with this line and this link.
    pub fn entry_id(&self, link: Option<EntryId>) -> EntryId {
        let came = self.came.unwrap_or(self.id);
        link.map_or(self.alone, |link| EntryId::of(Some(link), came))
    }
}

/// The redactions of a session, according to the newest facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// The lines.
    pub lines: BTreeMap<EntryNumber, Tombstone>,
    /// The runs, by operation.
    pub runs: BTreeMap<OperationNumber, CoveredRuns>,
    /// The files, by operation and index among the files that it stored.
    pub files: BTreeMap<(OperationNumber, u64), CoveredFile>,
}

impl Covered {
    /// Returns the redactions of a session in this state.
    pub fn of(state: &State) -> Self {
        Self::from_facts(
            state.tombstones.to_vec(),
            state.covered_runs.clone(),
            state.covered_files.clone(),
        )
    }

    pub(super) fn from_facts(
        lines: Vec<Tombstone>,
        runs: Vec<CoveredRuns>,
        files: Vec<CoveredFile>,
    ) -> Self {
        Self {
            lines: lines.into_iter().map(|one| (one.entry, one)).collect(),
            runs: runs.into_iter().map(|one| (one.operation, one)).collect(),
            files: files.into_iter().map(|one| ((one.operation, one.at), one)).collect(),
        }
    }

    /// Returns the redactions that concern what a session had in this state.
    #[must_use]
    pub fn within(mut self, state: &State) -> Self {
        self.lines.retain(|entry, _| *entry < state.next_entry());
        self.runs.retain(|operation, _| *operation < state.next_operation());
        self.files.retain(|(operation, _), _| *operation < state.next_operation());
        self
    }
}

/// One operation with everything it adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The session.
    pub session: SessionName,
    /// The newest operation that the caller knows; if the session has another one, that is a conflict.
    pub expected: Option<OperationId>,
    /// The operation, sealed.
    pub operation: Operation,
    /// The facts next to its record.
    pub bulk: Bulk,
    /// The lines of its entries.
    pub lines: Vec<NewLine>,
    /// The bytes of its containers, then of its sidecars.
    pub kept: Vec<Vec<u8>>,
    /// The records of its entries.
    pub records: Vec<Record>,
    /// Names that became ambiguous.
    pub twins: Vec<NameTag>,
    /// New ties of generations; they replace the old ones.
    pub ties: Vec<(GenerationNumber, Vec<Tie>)>,
    /// The new card; `None` keeps the old one.
    pub card: Option<Card>,
    /// For an operation from a bundle: the redactions of it by later operations of the session.
    pub covered: Arc<Covered>,
}

/// Bytes of the same length that replace an entry's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Covering {
    /// The session.
    pub session: SessionKey,
    /// The entry, which must have a tombstone.
    pub entry: EntryNumber,
    /// The bytes.
    pub line: Vec<u8>,
}

/// Bytes that replace a file that an operation stored whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCovering {
    /// The session.
    pub session: SessionKey,
    /// The operation.
    pub operation: OperationNumber,
    /// The index of the file among those that the operation stored.
    pub at: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Runs that replace those of an operation. They differ only in their unfinished lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunsCovering {
    /// The session.
    pub session: SessionKey,
    /// The operation.
    pub operation: OperationNumber,
    /// All its runs.
    pub runs: Vec<Run>,
}

/// The redactions of one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverings {
    /// The lines.
    pub lines: Vec<Covering>,
    /// The files stored whole.
    pub files: Vec<FileCovering>,
    /// The runs with unfinished lines.
    pub runs: Vec<RunsCovering>,
    /// The user texts.
    pub words: Vec<TakenOut>,
}

/// A user text to delete from an operation, or from a checkpoint that it set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenOut {
    /// The session.
    pub session: SessionKey,
    /// The operation.
    pub operation: OperationNumber,
    /// The digest of the text, as in the record.
    pub digest: Digest,
}

impl Coverings {
    /// Refuses bytes that are not in the facts of their sessions.
    pub fn check(
        &self,
        state: impl Fn(SessionKey) -> Result<State, StoreError>,
    ) -> Result<(), StoreError> {
        let sessions = self.lines.iter().map(|one| one.session);
        let sessions = sessions.chain(self.files.iter().map(|one| one.session));
        let sessions = sessions.chain(self.runs.iter().map(|one| one.session));
        let mut states = BTreeMap::new();
        for session in sessions.collect::<BTreeSet<_>>() {
            states.insert(session, state(session)?);
        }
        self.lines.iter().try_for_each(|one| one.check(states.get(&one.session)))?;
        self.files.iter().try_for_each(|one| one.check(states.get(&one.session)))?;
        self.runs.iter().try_for_each(|one| one.check(states.get(&one.session)))
    }
}

impl Covering {
    /// Refuses bytes without a matching tombstone.
    fn check(&self, state: Option<&State>) -> Result<(), StoreError> {
        let is_told = |one: &Tombstone| {
            one.covered == Some(LineId::of(&self.line)) && one.size == self.line.len() as u64
        };
        if state.and_then(|state| state.tombstones.newest(self.entry)).is_some_and(is_told) {
            return Ok(());
        }
        Err(refused("no tombstone covers the bytes that replace a line"))
    }
}

impl FileCovering {
    /// Refuses bytes that are not in the session's facts.
    fn check(&self, state: Option<&State>) -> Result<(), StoreError> {
        let told = state.and_then(|state| state.covered_file(self.operation, self.at));
        if told.is_some_and(|told| told.digest == Digest::of_bytes(&self.bytes)) {
            return Ok(());
        }
        Err(refused("no fact covers the bytes that replace a file"))
    }
}

impl RunsCovering {
    /// Refuses runs that are not in the session's facts.
    fn check(&self, state: Option<&State>) -> Result<(), StoreError> {
        let mut told = state.iter().flat_map(|state| state.covered_runs.iter().rev());
        let told = told.find(|told| told.operation == self.operation).map(|told| told.digest);
        if told.is_some() && told == Named::of(&self.runs).map(|named| named.digest) {
            return Ok(());
        }
        Err(refused("no fact covers the runs that replace others"))
    }
}

/// What a check of a commit needs to know of the session.
pub trait Known {
    /// Returns the id of an entry.
    fn entry(&self, n: EntryNumber) -> Result<Option<EntryId>, StoreError>;

    /// Returns true if an entry has this id. A store that finds duplicates on insertion may always return false.
    fn holds(&self, id: &EntryId) -> Result<bool, StoreError>;

    /// Returns the entry that an entry replaces.
    fn origin(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, StoreError>;
}

impl Commit {
    /// Refuses a commit that cannot follow a session's state. `state` is empty for a new session.
    ///
    /// Every store calls this before it adds anything, so that no mistake of a caller becomes a fact.
    pub fn check(
        &self,
        store: StoreId,
        state: &State,
        known: &dyn Known,
    ) -> Result<(), StoreError> {
        if self.expected != state.hash() {
            return Err(StoreError::Conflict);
        }
        if let Some(operation) = state.unknown {
            return Err(StoreError::NewerFacts { operation });
        }
        self.fits(state)?;
        self.is_sealed(store)?;
        self.has_lines(known)
    }

    /// Refuses numbers that are out of sequence.
    fn fits(&self, state: &State) -> Result<(), StoreError> {
        let operation = &self.operation;
        let (facts, bulk) = (&operation.facts, &self.bulk);
        if operation.n != state.next_operation() {
            return Err(refused("the operation's number is out of sequence"));
        }
        if operation.first != state.next_entry() {
            return Err(refused("the operation's entries are out of sequence"));
        }
        let entries = bulk.entries.iter().map(|entry| entry.n);
        follow(entries, operation.first.onwards(), "entries")?;
        let checkpoints = bulk.checkpoints.iter().map(|checkpoint| checkpoint.n);
        follow(checkpoints, state.next_checkpoint().onwards(), "checkpoints")?;
        let files = facts.files.iter().map(|file| file.n);
        follow(files, state.next_file().onwards(), "files")?;
        let generations = facts.generations.iter().map(|generation| generation.n);
        follow(generations, state.next_generation().onwards(), "generations")?;
        let records = self.records.iter().map(|record| record.n);
        follow(records, operation.first.onwards(), "records")?;
        if self.numbers().any(|number| i64::try_from(number).is_err()) {
            return Err(refused("a number is greater than a store can hold"));
        }
        let begun = state.next_generation().plus(facts.generations.len() as u64);
        let (mut last, mut ends) = (None, BTreeMap::new());
        for run in &bulk.runs {
            let place = Some((run.generation, run.start));
            let end = ends.get(&run.generation).copied();
            let end = end.or_else(|| state.ends.get(&run.generation).map(Run::end)).unwrap_or(0);
            if place <= last
                || run.generation < GenerationNumber::FIRST
                || run.generation >= begun
                || run.start != end
            {
                return Err(refused("a run does not follow the one before it"));
            }
            last = place;
            ends.insert(run.generation, run.end());
        }
        if !bulk.origins.is_sorted_by_key(|origin| origin.entry) {
            return Err(refused("the origins are not in the order of their entries"));
        }
        let end = state.next_entry().plus(bulk.entries.len() as u64);
        let is_there = |entry: EntryNumber| (EntryNumber::FIRST..end).contains(&entry);
        let mut runs = bulk.runs.iter().filter_map(|run| Some([run.first, run.last()?])).flatten();
        let mut origins = bulk.origins.iter().flat_map(|origin| [origin.entry, origin.origin]);
        if !runs.all(is_there) || !origins.all(is_there) {
            return Err(refused("a fact refers to a missing entry"));
        }
        Ok(())
    }

    /// Returns the numbers in its rows that nothing else bounds.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let runs = self.bulk.runs.iter().flat_map(|run| {
            let ends = [run.start.saturating_add(run.count), run.entries().end.get()];
            [run.generation.get(), run.bytes].into_iter().chain(ends)
        });
        let checkpoints = self.bulk.checkpoints.iter().flat_map(|checkpoint| {
            let place = checkpoint.place;
            let entries = [place.head, checkpoint.before].map(|entry| entry.map(EntryNumber::get));
            entries.into_iter().chain([Some(place.generation.get()), Some(place.horizon)])
        });
        let origins = self.bulk.origins.iter().flat_map(|origin| [origin.entry, origin.origin]);
        let origins = origins.map(EntryNumber::get);
        let names = self.records.iter().filter_map(|record| record.name).chain(self.twins.clone());
        let turns = self.card.iter().map(|card| card.turns);
        let ties = self.ties.iter().map(|(generation, _)| generation.get());
        runs.chain(checkpoints.flatten())
            .chain(origins)
            .chain(names.map(NameTag::get))
            .chain(turns)
            .chain(ties)
    }

    /// Refuses a record or a hash that does not cover the operation and its facts.
    fn is_sealed(&self, store: StoreId) -> Result<(), StoreError> {
        let operation = &self.operation;
        let n = operation.n;
        let runs = self.covered.runs.get(&n).map(|runs| runs.digest);
        if !operation.names(&self.bulk, runs)
            || operation.hash != operation.hash_after(self.expected, store, &self.session)
        {
            return Err(refused("the operation's hash does not cover it"));
        }
        // The encoding is canonical: a record that decodes to this operation is its encoding.
        let words = operation.words(&self.bulk);
        let read = Operation::open(operation.n, operation.record.clone(), operation.hash, &words);
        if !read.is_ok_and(|read| read == *operation) {
            return Err(refused("the operation does not decode to what was encoded"));
        }
        let facts = &operation.facts;
        let containers = facts.containers.iter().map(|kept| (kept.digest, kept.size));
        let sidecars = facts.sidecars.iter().map(|kept| (kept.digest, kept.size));
        let found = self.kept.iter().map(|bytes| (Digest::of_bytes(bytes), bytes.len() as u64));
        let kept = (0..).zip(containers.chain(sidecars)).map(|(at, kept)| {
            self.covered.files.get(&(n, at)).map_or(kept, |file| (file.digest, file.size))
        });
        if kept.eq(found) {
            Ok(())
        } else {
            Err(refused("the bytes of a kept file do not match its digest"))
        }
    }

    /// Refuses entries that already exist, or whose ids do not match their lines.
    fn has_lines(&self, known: &dyn Known) -> Result<(), StoreError> {
        let (entries, first) = (&self.bulk.entries, self.operation.first);
        let tombstones = self.operation.facts.tombstones.iter().map(|one| (one.entry, one));
        let tombstones: BTreeMap<EntryNumber, &Tombstone> = tombstones.collect();
        if self.lines.len() != entries.len() || self.records.len() != entries.len() {
            return Err(refused("an entry must have exactly one line and one record"));
        }
        for (n, record) in first.onwards().zip(&self.records) {
            if let Parent::Entry(parent) = record.parent
                && !(EntryNumber::FIRST..n).contains(&parent)
            {
                return Err(refused("a record's parent does not come before it"));
            }
        }
        for ((n, entry), line) in first.onwards().zip(entries).zip(&self.lines) {
            let before = match entry.link {
                None => None,
                Some(at) if at >= n => {
                    return Err(refused("an entry is linked to a later one"));
                }
                Some(at) => match at.index_from(first) {
                    Some(new) => entries.get(new).map(|entry| entry.id),
                    None => known.entry(at)?,
                },
            };
            if entry.link.is_some() != before.is_some() || entry.id != line.entry_id(before) {
                return Err(refused("an entry's id does not match its line"));
            }
            let is_told = |one: &&Tombstone| {
                let lines = (one.line, one.covered) == (line.came, Some(line.id));
                lines && one.size == line.bytes.len() as u64
            };
            let tombstone = self.covered.lines.get(&n).or_else(|| tombstones.get(&n).copied());
            if line.came.is_some() && tombstone.is_none_or(|one| !is_told(&one)) {
                return Err(refused("no tombstone covers a replaced line"));
            }
            // An entry that is linked to the newest one, or to a new one, must be new.
            let is_new = entry.link.is_some_and(|link| link.next() >= first);
            if !is_new && known.holds(&entry.id)? {
                return Err(refused("this entry already exists"));
            }
        }
        let mut ids = Lookup::default();
        if entries.iter().any(|entry| ids.insert(entry.id, ()).is_some()) {
            return Err(refused("an entry appears twice"));
        }
        let mut replaced = BTreeSet::new();
        for origin in &self.bulk.origins {
            let is_new = origin.entry >= first;
            let held = if is_new { None } else { known.origin(origin.entry)? };
            let held = held.filter(|held| *held != origin.origin);
            if !replaced.insert(origin.entry) || held.is_some() {
                return Err(refused("an entry replaces two"));
            }
        }
        Ok(())
    }
}

/// Refuses numbers other than the wanted ones.
fn follow<N: PartialEq>(
    numbers: impl Iterator<Item = N>,
    wanted: impl Iterator<Item = N>,
    what: &str,
) -> Result<(), StoreError> {
    if wanted.zip(numbers).all(|(wanted, n)| wanted == n) {
        return Ok(());
    }
    Err(refused(&format!("the numbers of its {what} are out of sequence")))
}

fn refused(why: &str) -> StoreError {
    StoreError::Refused(why.to_owned())
}
