//! Overlays: recent operations on top of the data of another layer.
//!
//! ```text
//! below      entries 1 ... 900, their records, checkpoints, ...
//! sheet      entries 901 ... 903 with everything that came with them; its values for the whole session (state, card, ties
//!            of a generation) replace those below
//! ```
//!
//! Invariant: no fact is in both layers: the data below ends where the sheet begins, and queries see them as one store.

mod door;
pub(super) mod laid;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use crate::{
    model::{
        Card, Checkpoint, Entry, EntryId, EntryNumber, GenerationNumber, Glance, NameTag,
        Operation, OperationNumber, Origin, Record, Run, SessionName, State, Tagged, Text, Tie,
    },
    store::{
        Commit, Covering, Derived, FileCovering, NewLine, RunsCovering, SessionKey, Sighting,
        StoreError, TakenOut,
    },
};

/// The recent operations of one session.
#[derive(Clone, Debug, Default)]
struct Sheet {
    name: SessionName,
    /// The first operation that is not in the layer below.
    first: OperationNumber,
    /// The first entry that is not in the layer below.
    first_entry: EntryNumber,
    state: State,
    /// The operations, with their numbers in the store.
    operations: Vec<(u64, Operation)>,
    entries: Vec<(Entry, Arc<Vec<u8>>)>,
    runs: Vec<(OperationNumber, Run)>,
    checkpoints: Vec<(OperationNumber, Checkpoint)>,
    /// By entry and operation.
    origins: BTreeMap<(EntryNumber, OperationNumber), Origin>,
    kept: BTreeMap<(OperationNumber, u64), Arc<Vec<u8>>>,
    records: Vec<Record>,
    twins: BTreeSet<NameTag>,
    ties: BTreeMap<GenerationNumber, Vec<Tie>>,
    card: Card,
    counts: BTreeMap<(u64, EntryNumber), Vec<u64>>,
    /// An index of its entries, built on first use.
    index: OnceLock<Index>,
}

/// The entries of a sheet by id, and by record name.
#[derive(Clone, Debug, Default)]
struct Index {
    ids: BTreeMap<EntryId, EntryNumber>,
    names: BTreeMap<NameTag, Vec<EntryNumber>>,
}

impl Index {
    fn add(&mut self, entries: &[(Entry, Arc<Vec<u8>>)], records: &[Record]) {
        self.ids.extend(entries.iter().map(|(entry, _)| (entry.id, entry.n)));
        for record in records {
            if let Some(name) = record.name {
                self.names.entry(name).or_default().push(record.n);
            }
        }
    }
}

/// The recent operations of all sessions. Cloning is cheap; transactions use it for rollbacks.
#[derive(Clone, Debug, Default)]
pub(super) struct Overlay {
    sheets: BTreeMap<SessionKey, Arc<Sheet>>,
    pub(super) sightings: BTreeMap<Vec<u8>, Sighting>,
    pub(super) glances: BTreeMap<SessionKey, Glance>,
}

impl Overlay {
    /// Returns true if there are no recent operations.
    pub(super) fn is_empty(&self) -> bool {
        self.sheets.is_empty()
    }

    /// Adds a checked commit; `seq` is the operation's number in the store.
    ///
    /// `beneath` returns state and card from the layer below, for a session without a sheet.
    pub(super) fn add(
        &mut self,
        key: SessionKey,
        seq: u64,
        commit: Commit,
        beneath: impl FnOnce() -> Result<(State, Card), StoreError>,
    ) -> Result<(), StoreError> {
        let sheet = match self.sheets.entry(key) {
            std::collections::btree_map::Entry::Occupied(there) => there.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let (state, card) = beneath()?;
                place.insert(Arc::new(Sheet::new(commit.session.clone(), state, card)))
            }
        };
        Arc::make_mut(sheet).add(seq, commit);
        Ok(())
    }

    /// Replaces the derived rows of a session that exists only in this layer.
    pub(super) fn derive(&mut self, key: SessionKey, derived: &Derived) {
        if let Some(sheet) = self.sheets.get_mut(&key) {
            let sheet = Arc::make_mut(sheet);
            sheet.index = OnceLock::new();
            sheet.records.clone_from(&derived.records);
            sheet.twins = derived.twins.iter().copied().collect();
            sheet.ties.clear();
            sheet.tie(derived.ties.clone());
            (sheet.card, sheet.state) = (derived.card.clone(), derived.state.clone());
        }
    }

    /// Replaces the line of a recent entry.
    pub(super) fn cover(&mut self, covering: Covering) -> Result<(), StoreError> {
        let sheet = self.sheets.get_mut(&covering.session).map(Arc::make_mut);
        let held = sheet.and_then(|sheet| {
            sheet.counts.retain(|(_, n), _| *n != covering.entry);
            let at = covering.entry.index_from(sheet.first_entry)?;
            sheet.entries.get_mut(at)
        });
        let (_, line) =
            held.ok_or_else(|| StoreError::Refused("it is in the layer below".to_owned()))?;
        *line = Arc::new(covering.line);
        Ok(())
    }

    /// Replaces a file that a recent operation stored whole.
    pub(super) fn cover_file(&mut self, covering: FileCovering) -> Result<(), StoreError> {
        let sheet = self.sheets.get_mut(&covering.session).map(Arc::make_mut);
        let at = (covering.operation, covering.at);
        let held = sheet.and_then(|sheet| sheet.kept.get_mut(&at));
        *held.ok_or_else(|| StoreError::Refused("it is in the layer below".to_owned()))? =
            Arc::new(covering.bytes);
        Ok(())
    }

    /// Replaces the runs of a recent operation.
    pub(super) fn cover_runs(&mut self, covering: RunsCovering) -> Result<(), StoreError> {
        let refused = || StoreError::Refused("it is in the layer below".to_owned());
        let sheet = self.sheets.get_mut(&covering.session).map(Arc::make_mut);
        let sheet = sheet.ok_or_else(refused)?;
        for run in covering.runs {
            let place = (covering.operation, run.generation, run.start);
            let is_it = |(by, held): &&mut (OperationNumber, Run)| {
                (*by, held.generation, held.start) == place
            };
            sheet.runs.iter_mut().find(is_it).ok_or_else(refused)?.1 = run;
        }
        Ok(())
    }

    /// Deletes a user text from a recent operation and its checkpoints.
    pub(super) fn take_out(&mut self, words: &TakenOut) {
        let Some(sheet) = self.sheets.get_mut(&words.session).map(Arc::make_mut) else { return };
        let mut forget = |text: &mut Text| {
            if text.words().is_some_and(|found| found.digest() == words.digest) {
                text.forget();
            }
        };
        for (_, operation) in &mut sheet.operations {
            if operation.n == words.operation {
                Tagged::texts(operation, &mut forget);
            }
        }
        let given = sheet.checkpoints.iter_mut().filter(|(n, _)| *n == words.operation);
        given.filter_map(|(_, given)| given.note.as_mut()).for_each(forget);
    }

    /// Stores the token counts of recent entries. Returns true if there are counts for other entries.
    pub(super) fn count(
        &mut self,
        key: SessionKey,
        rule: u64,
        counts: &[(EntryNumber, Vec<u64>)],
    ) -> bool {
        let Some(sheet) = self.sheets.get_mut(&key) else { return !counts.is_empty() };
        let mut others = false;
        for (n, tokens) in counts {
            if sheet.entry(*n).is_some() {
                Arc::make_mut(sheet).counts.insert((rule, *n), tokens.clone());
            } else {
                others = true;
            }
        }
        others
    }
}

impl Sheet {
    fn new(name: SessionName, state: State, card: Card) -> Self {
        Self {
            name,
            first: state.next_operation(),
            first_entry: state.next_entry(),
            state,
            card,
            ..Self::default()
        }
    }

    fn add(&mut self, seq: u64, commit: Commit) {
        let Commit { operation, bulk, lines, kept, records, twins, ties, card, .. } = commit;
        self.state.apply(&operation, &bulk);
        let n = operation.n;
        self.operations.push((seq, operation));
        let lines = lines.into_iter().map(|line| Arc::new(NewLine::into_bytes(line)));
        let added: Vec<_> = bulk.entries.into_iter().zip(lines).collect();
        if let Some(index) = self.index.get_mut() {
            index.add(&added, &records);
        }
        self.entries.extend(added);
        self.records.extend(records);
        self.runs.extend(bulk.runs.into_iter().map(|run| (n, run)));
        self.checkpoints.extend(bulk.checkpoints.into_iter().map(|given| (n, given)));
        self.origins.extend(bulk.origins.into_iter().map(|origin| ((origin.entry, n), origin)));
        self.kept.extend((0..).zip(kept).map(|(at, bytes)| ((n, at), Arc::new(bytes))));
        self.twins.extend(twins);
        self.tie(ties);
        if let Some(card) = card {
            self.card = card;
        }
    }

    fn tie(&mut self, ties: Vec<(GenerationNumber, Vec<Tie>)>) {
        for (generation, mut ties) in ties {
            ties.sort();
            ties.dedup();
            self.ties.insert(generation, ties);
        }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let mut index = Index::default();
            index.add(&self.entries, &self.records);
            index
        })
    }

    fn entry(&self, n: EntryNumber) -> Option<&(Entry, Arc<Vec<u8>>)> {
        self.entries.get(n.index_from(self.first_entry)?)
    }
}
