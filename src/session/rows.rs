//! Derived rows of a session: computes them from facts and bytes, and compares them with those in the store.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    json::Raw,
    model::{
        Bulk, Card, CheckpointNumber, EntryNumber, EntrySet, GenerationNumber, Operation,
        OperationNumber, Position, Record, Run, State, Tie,
    },
    session::{
        Deriver, Session, SessionError, View,
        derive::{self, Said, Titles},
        graph::beginning::is_adopted,
    },
    store::{Derived, Store, StoreError, sound},
    wire::{Envelope, TIED},
};

/// How many lines are read at a time.
const BATCH: usize = 1024;

/// How many operations are read at a time.
const OPERATIONS: u64 = 256;

/// Returns the entries that were imported with parts of other sessions' files.
fn adopted(
    store: &dyn Store,
    session: &Session,
    state: &State,
) -> Result<Vec<Range<EntryNumber>>, SessionError> {
    let mut entries = Vec::new();
    for (_, generation) in &state.generations {
        if generation.file.and_then(|file| state.file(file)).is_some_and(is_adopted) {
            let runs = store.runs(session.key, generation.n, 0)?;
            entries.extend(runs.iter().map(Run::entries));
        }
    }
    Ok(entries)
}

/// Computes the derived rows of a session from its facts and bytes.
pub(crate) fn derived(store: &dyn Store, session: &Session) -> Result<Derived, SessionError> {
    let mut records = Vec::new();
    let rest = derive(store, session, &mut |batch| {
        records.extend(batch);
        Ok(())
    })?;
    Ok(Derived { records, ..rest })
}

/// Computes records from the facts and bytes of a session and passes them on in batches. Returns the other derived rows.
fn derive(
    store: &dyn Store,
    session: &Session,
    each: &mut dyn FnMut(Vec<Record>) -> Result<(), StoreError>,
) -> Result<Derived, SessionError> {
    let mut card = Card::default();
    let mut again = EntrySet::default();
    let state = fold(store, session, &mut |_, operation, _| {
        derive::see_operation(&mut card, operation, session.format);
        if operation.command.says_again() {
            again.extend(EntryNumber::each(operation.added()));
        }
        Ok(())
    })?;
    let befores = Befores::of(store, session, &state)?;
    let adopted = adopted(store, session, &state)?;
    let said = |n: EntryNumber| match adopted.iter().any(|entries| entries.contains(&n)) {
        _ if again.contains(n) => Said::Again,
        true => Said::Elsewhere,
        false => Said::New,
    };
    let mut deriver = Deriver::default();
    let mut titles = Titles::default();
    let mut failed = None;
    for batch in EntryNumber::batches(EntryNumber::FIRST..state.next_entry(), BATCH) {
        let entries: Vec<EntryNumber> = EntryNumber::each(batch).collect();
        store.lines(session.key, &entries, &mut |n, bytes| {
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(StoreError::Corrupt { .. }) => {
                    let kept = lost(store, session, n).map_err(SessionError::from);
                    let kept = kept.and_then(|record| {
                        let (kind, time) = (record.kind, record.time);
                        let format = session.format;
                        derive::see_entry(&mut card, kind, time, None, format, said(n));
                        deriver.take(record, None)
                    });
                    failed = failed.take().or(kept.err());
                    return;
                }
                Err(error) => {
                    failed = failed.take().or(Some(error.into()));
                    return;
                }
            };
            let record = Raw::object(&bytes);
            let envelope =
                record.map_or_else(Envelope::opaque, |record| session.format.envelope(record));
            let (kind, time) = (envelope.kind, envelope.time);
            derive::see_entry(&mut card, kind, time, record, session.format, said(n));
            let added = deriver.add(n, envelope, befores.before(n), None);
            failed = failed.take().or(added.err());
            let titled = deriver.records.last().and_then(|record| session.format.titles(record));
            let has = |name| Ok(deriver.named(name, None)?.is_some());
            let seen = titled.map(|titled| titles.see(titled, record, session.format, has));
            failed = failed.take().or(seen.and_then(Result::err));
        })?;
        each(std::mem::take(&mut deriver.records))?;
    }
    if let Some((_, title)) = titles.best {
        card.title = Some(title);
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(Derived {
            records: Vec::new(),
            twins: deriver.twins.into_iter().collect(),
            ties: ties(store, session, &state)?,
            card,
            state,
        }),
    }
}

/// Returns the record of an entry with a lost line: the derived record in the store, if it can be read.
fn lost(store: &dyn Store, session: &Session, n: EntryNumber) -> Result<Record, StoreError> {
    let kept = match store.records(session.key, n.alone()) {
        Err(StoreError::Corrupt { .. }) => None,
        kept => kept?.pop(),
    };
    Ok(kept.unwrap_or_else(|| Record::opaque(n)))
}

/// Folds a session's operations into its state. `each` gets each operation with the state before it, and may correct its bulk.
pub(crate) fn fold(
    store: &dyn Store,
    session: &Session,
    each: &mut dyn FnMut(&State, &Operation, &mut Bulk) -> Result<(), SessionError>,
) -> Result<State, SessionError> {
    let (mut state, mut checkpoint) = (State::default(), CheckpointNumber::FIRST);
    loop {
        let next = state.next_operation();
        let range = next..next.plus(OPERATIONS);
        let operations = store.operations(session.key, range.clone())?;
        if operations.is_empty() {
            return Ok(state);
        }
        let mut growths = store.growths(session.key, range)?.into_iter().peekable();
        for operation in operations {
            let n = operation.n;
            let runs = std::iter::from_fn(|| growths.next_if(|(by, _)| *by <= n));
            let runs = runs.filter(|(by, _)| *by == n).map(|(_, run)| run).collect();
            // After lost checkpoints, numbers follow the counts in the operations, not the checkpoints that exist.
            let given = operation.checkpoints.map_or(0, |given| given.count);
            let places = checkpoint..checkpoint.plus(given);
            checkpoint = places.end;
            let checkpoints = match given {
                0 => Vec::new(),
                _ => store.checkpoints(session.key, places)?,
            };
            let checkpoints = checkpoints.into_iter().map(|(_, given)| given).collect();
            let mut bulk = Bulk { runs, checkpoints, ..Bulk::default() };
            each(&state, &operation, &mut bulk)?;
            state.apply(&operation, &bulk);
        }
    }
}

fn ties(
    store: &dyn Store,
    session: &Session,
    state: &State,
) -> Result<Vec<(GenerationNumber, Vec<Tie>)>, SessionError> {
    let mut ties = Vec::new();
    let mut view = View::new(store, session, Position::default(), Some(&state.spans));
    for generation in state.next_generation().earlier() {
        let end = state.ends.get(&generation).map_or(0, Run::end);
        view = view.moved(Position { generation, head: None, horizon: end.min(TIED) });
        match derive::ties(session.format, &session.name, &view) {
            // A lost beginning gives the generation no ties.
            Err(SessionError::Store(StoreError::Corrupt { .. })) => {}
            found => ties.push((generation, found?)),
        }
    }
    ties.retain(|(_, ties)| !ties.is_empty());
    Ok(ties)
}

/// For each entry, the entry before it in the file where it was first read.
struct Befores {
    /// The entries for which that is not the entry with the preceding number.
    others: BTreeMap<EntryNumber, Option<EntryNumber>>,
}

impl Befores {
    fn of(store: &dyn Store, session: &Session, state: &State) -> Result<Self, SessionError> {
        let mut others = BTreeMap::new();
        let mut met = vec![false; usize::try_from(state.entries()).unwrap_or(0)];
        let mut last: BTreeMap<GenerationNumber, EntryNumber> = BTreeMap::new();
        for (_, run) in store.growths(session.key, OperationNumber::ALL)? {
            let Some(end) = run.last() else { continue };
            let mut before = last.insert(run.generation, end);
            for entry in EntryNumber::each(run.entries()) {
                let previous = before.replace(entry);
                let index = entry.index().unwrap_or(usize::MAX);
                if let Some(met) = met.get_mut(index)
                    && !std::mem::replace(met, true)
                    && previous.is_none_or(|previous| previous.next() != entry)
                {
                    others.insert(entry, previous);
                }
            }
        }
        // An entry outside of any generation has only its link.
        for (index, _) in met.iter().enumerate().filter(|(_, met)| !**met) {
            let n = EntryNumber::FIRST.plus(index as u64);
            if let [entry] = store.entries(session.key, n.alone())?.as_slice() {
                others.insert(n, entry.link);
            }
        }
        Ok(Self { others })
    }

    fn before(&self, entry: EntryNumber) -> Option<EntryNumber> {
        let next = || (entry > EntryNumber::FIRST).then(|| entry.minus(1));
        self.others.get(&entry).copied().unwrap_or_else(next)
    }
}

/// Returns whether the derived rows in a store equal those computed from its facts and bytes, or nothing if the rows in the store
/// are damaged. Only a part of them is in memory at a time.
pub(crate) fn are_right(
    store: &dyn Store,
    session: &Session,
) -> Result<Option<bool>, SessionError> {
    let mut equal = Some(true);
    let rest = derive(store, session, &mut |records| {
        let same = sound(has_records(store, session, &records))?;
        equal = equal.zip(same).map(|(before, same)| before && same);
        Ok(())
    })?;
    Ok(equal.zip(holds(store, session, &rest)?).map(|(records, rest)| records && rest))
}

/// Returns whether a store has these derived rows of a session, or nothing if its own are damaged.
pub(crate) fn holds(
    store: &dyn Store,
    session: &Session,
    derived: &Derived,
) -> Result<Option<bool>, StoreError> {
    let key = session.key;
    let compare = || {
        let mut equal = true;
        for records in derived.records.chunks(BATCH) {
            equal &= has_records(store, session, records)?;
        }
        let behind_all = derived.state.next_entry()..EntryNumber::ALL.end;
        equal &= store.records(key, behind_all)?.is_empty();
        equal &= store.twins(key)? == derived.twins;
        equal &= store.ties(key)? == derived.ties;
        equal &= store.card(key)? == derived.card;
        Ok(equal & (store.state(key)? == derived.state))
    };
    sound(compare())
}

fn has_records(
    store: &dyn Store,
    session: &Session,
    records: &[Record],
) -> Result<bool, StoreError> {
    let Some((first, last)) = records.first().zip(records.last()) else { return Ok(true) };
    Ok(store.records(session.key, first.n..last.n.next())? == records)
}
