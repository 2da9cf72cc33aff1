//! Derived rows of a session, computed from its facts and bytes, and a digest of them in the order of their keys.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    json::Raw,
    model::{
        Bulk, Card, EntryNumber, GenerationNumber, Kind, NameTag, Operation, OperationNumber,
        Parent, Position, Record, Run, State, Tagged, Tie,
    },
    session::{
        Deriver, Session, SessionError, View,
        derive::{self, Titles},
        elsewhere::is_adopted,
    },
    store::{Derived, Store, StoreError},
    wire::{Envelope, TIED},
};

/// How many lines are read at a time.
const BATCH: usize = 1024;

/// How many operations are read at a time.
const OPERATIONS: u64 = 256;

/// Returns the entries that were taken in with parts of other sessions' files.
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
    let mut card = Card::default();
    let state = fold(store, session, &mut |operation| {
        derive::see_operation(&mut card, operation, session.format);
    })?;
    let before = befores(store, session, state.entries())?;
    let adopted = adopted(store, session, &state)?;
    let is_own = |n: EntryNumber| !adopted.iter().any(|entries| entries.contains(&n));
    let mut deriver = Deriver::default();
    let mut titles = Titles::default();
    let mut failed = None;
    for batch in EntryNumber::batches(EntryNumber::FIRST..state.next_entry(), BATCH) {
        let entries: Vec<EntryNumber> = EntryNumber::each(batch).collect();
        store.lines(session.key, &entries, &mut |n, bytes| {
            let Ok(bytes) = bytes else {
                let record = lost(store, session, n);
                derive::see_entry(
                    &mut card,
                    record.kind,
                    record.time,
                    None,
                    session.format,
                    is_own(n),
                );
                failed = failed.take().or(deriver.keep(record).err());
                return;
            };
            let record = Raw::object(&bytes);
            let envelope =
                record.map_or_else(Envelope::opaque, |record| session.format.envelope(record));
            let (kind, time) = (envelope.kind, envelope.time);
            derive::see_entry(&mut card, kind, time, record, session.format, is_own(n));
            let previous = n.index().and_then(|index| before.get(index).copied().flatten());
            let added = deriver.add(n, envelope, previous, None);
            failed = failed.take().or(added.err());
            let titled = deriver.records.last().and_then(|record| session.format.titles(record));
            let has = |name| Ok(deriver.named(name, None)?.is_some());
            let seen = titled.map(|titled| titles.see(titled, record, session.format, has));
            failed = failed.take().or(seen.and_then(Result::err));
        })?;
    }
    if let Some((_, title)) = titles.best {
        card.title = Some(title);
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(Derived {
            records: deriver.records,
            twins: deriver.twins.into_iter().collect(),
            ties: ties(store, session, &state)?,
            card,
            state,
        }),
    }
}

/// Returns the record of an entry whose line is lost: as it was derived while there was a line, if that can be read.
fn lost(store: &dyn Store, session: &Session, n: EntryNumber) -> Record {
    let kept = store.records(session.key, n.alone()).ok().and_then(|mut kept| kept.pop());
    kept.unwrap_or(Record {
        n,
        kind: Kind::Opaque,
        name: None,
        parent: Parent::Root,
        time: None,
        hint: Vec::new(),
    })
}

/// Folds a session's operations into its state, and shows each.
pub(crate) fn fold(
    store: &dyn Store,
    session: &Session,
    each: &mut dyn FnMut(&Operation),
) -> Result<State, SessionError> {
    let mut state = State::default();
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
            let runs = runs.map(|(_, run)| run).collect();
            let given = operation.checkpoints.map_or(0, |given| given.count);
            // Only the last of the checkpoints is needed.
            let next = state.next_checkpoint();
            let checkpoints = store.checkpoints(session.key, next..next.plus(given))?;
            let checkpoints = checkpoints.into_iter().map(|(_, given)| given).collect();
            each(&operation);
            state.apply(&operation, &Bulk { runs, checkpoints, ..Bulk::default() });
        }
    }
}

fn ties(
    store: &dyn Store,
    session: &Session,
    state: &State,
) -> Result<Vec<(GenerationNumber, Vec<Tie>)>, SessionError> {
    let mut ties = Vec::new();
    let nowhere = Position::default();
    let mut view = View::new(store, session, nowhere, None);
    for generation in state.next_generation().earlier() {
        let end = state.ends.get(&generation).map_or(0, Run::end);
        view = view.moved(Position { generation, head: None, horizon: end.min(TIED) });
        match derive::ties(session.format, &session.name, &view) {
            // A beginning that is lost ties the generation to nothing.
            Err(SessionError::Store(StoreError::Corrupt { .. })) => {}
            found => ties.push((generation, found?)),
        }
    }
    ties.retain(|(_, ties)| !ties.is_empty());
    Ok(ties)
}

/// Returns, for each entry, the entry before it in the file in which it was met first.
fn befores(
    store: &dyn Store,
    session: &Session,
    entries: u64,
) -> Result<Vec<Option<EntryNumber>>, SessionError> {
    let mut before = vec![None; usize::try_from(entries).unwrap_or(0)];
    let mut met = vec![false; before.len()];
    let runs = store.growths(session.key, OperationNumber::ALL)?;
    let mut last: BTreeMap<GenerationNumber, EntryNumber> = BTreeMap::new();
    for (_, run) in &runs {
        for entry in EntryNumber::each(run.entries()) {
            let index = entry.index().unwrap_or(usize::MAX);
            let previous = last.insert(run.generation, entry);
            if let (Some(before), Some(met)) = (before.get_mut(index), met.get_mut(index))
                && !*met
            {
                (*before, *met) = (previous, true);
            }
        }
    }
    // An entry in no generation knows the one before it by its link alone.
    for (index, _) in met.iter().enumerate().filter(|(_, met)| !**met) {
        let n = EntryNumber::FIRST.plus(index as u64);
        let entry = store.entries(session.key, n.alone())?;
        if let (Some(before), [entry]) = (before.get_mut(index), entry.as_slice()) {
            *before = entry.link;
        }
    }
    Ok(before)
}

/// Returns the derived rows as the store holds them, unless they are damaged.
pub(crate) fn read_stored(
    store: &dyn Store,
    session: &Session,
) -> Result<Option<Derived>, SessionError> {
    let key = session.key;
    let read = || {
        Ok(Derived {
            records: store.records(key, EntryNumber::ALL)?,
            twins: store.twins(key)?,
            ties: store.ties(key)?,
            card: store.card(key)?,
            state: store.state(key)?,
        })
    };
    match read() {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        kept => Ok(Some(kept?)),
    }
}

/// Returns the digest of derived rows.
pub(crate) fn digest(derived: &Derived) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let number = |hasher: &mut blake3::Hasher, value: Option<u64>| {
        hasher.update(&[u8::from(value.is_some())]).update(&value.unwrap_or(0).to_le_bytes());
    };
    for record in &derived.records {
        let Record { n, kind, name, parent, time, hint } = record;
        hasher.update(&n.get().to_le_bytes()).update(&[kind.code()]);
        number(&mut hasher, name.map(NameTag::get));
        number(
            &mut hasher,
            match parent {
                Parent::Root => None,
                Parent::Missing => Some(0),
                Parent::Entry(n) => Some(n.get()),
            },
        );
        number(&mut hasher, time.map(|time| time.0.cast_unsigned()));
        hasher.update(&(hint.len() as u64).to_le_bytes()).update(hint);
    }
    for twin in &derived.twins {
        hasher.update(&twin.get().to_le_bytes());
    }
    let mut bytes = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    };
    for (generation, ties) in &derived.ties {
        bytes(&generation.get().to_le_bytes());
        for tie in ties {
            bytes(&[tie.kind.code()]);
            bytes(tie.other.as_bytes());
        }
    }
    let Card { title, folder, started, active, turns, hidden } = &derived.card;
    for text in [title, folder] {
        bytes(&[u8::from(text.is_some())]);
        bytes(text.as_deref().unwrap_or_default().as_bytes());
    }
    bytes(&started.0.to_le_bytes());
    bytes(&active.0.to_le_bytes());
    bytes(&turns.to_le_bytes());
    bytes(&[u8::from(*hidden)]);
    bytes(&derived.state.to_bytes());
    *hasher.finalize().as_bytes()
}
