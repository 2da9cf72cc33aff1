//! Rebuilding: the derived rows are made anew from facts and bytes, and compared by a digest in the order of their keys.

use std::collections::BTreeMap;

use super::derive::{self, Deriver};
use crate::{
    json::Raw,
    model::{Bulk, Card, NameTag, Operation, Parent, Position, Record, Run, State, Tagged, Tie},
    ops::{Archive, OpsError, Session, View},
    store::{Derived, StoreError},
    wire::{Envelope, TIED},
};

/// How many lines are read at a time.
const BATCH: usize = 1024;
/// How many operations are read at a time.
const OPERATIONS: u64 = 256;

/// What a rebuild found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// How many records there are.
    pub records: u64,
    /// Whether the rows were equal already.
    pub equal: bool,
    /// The digest of the rows as they are now.
    pub digest: [u8; 32],
}

/// Makes the derived rows of a session anew and replaces those that are not equal.
pub fn rebuild(archive: &mut Archive, session: &Session) -> Result<Rebuilt, OpsError> {
    let _lock = archive.lock()?;
    let derived = derived(archive, session)?;
    let wanted = digest(&derived);
    let equal = kept(archive, session)?.as_ref().map(digest) == Some(wanted);
    if !equal {
        let mut writing = archive.store.begin()?;
        writing.derive(session.key, &derived)?;
        writing.commit()?;
    }
    Ok(Rebuilt { records: derived.records.len() as u64, equal, digest: wanted })
}

/// Makes the derived rows of all sessions anew, such as those that an older version of the program has left.
pub fn rebuild_all(archive: &mut Archive) -> Result<(), OpsError> {
    for (key, name) in archive.store.names()? {
        // What a newer version has taken in stays as that made it.
        if let Ok(session) = Archive::known(key, name) {
            rebuild(archive, &session)?;
        }
    }
    let mut writing = archive.store.begin()?;
    writing.freshened()?;
    writing.commit()?;
    Ok(())
}

/// Computes the derived rows of a session from its facts and bytes.
pub(super) fn derived(archive: &Archive, session: &Session) -> Result<Derived, OpsError> {
    let store = archive.store();
    let mut card = Card::default();
    let state = fold(archive, session, &mut |operation| {
        derive::see_operation(&mut card, operation, session.format);
    })?;
    let before = befores(archive, session, state.entries())?;
    let mut deriver = Deriver::default();
    let mut failed = None;
    let end = state.entries() + 1;
    for from in (1..end).step_by(BATCH) {
        let entries: Vec<u64> = (from..(from + BATCH as u64).min(end)).collect();
        store.lines(session.key, &entries, &mut |n, bytes| {
            let record = Raw::object(&bytes);
            let envelope =
                record.map_or_else(Envelope::opaque, |record| session.format.envelope(record));
            derive::see_entry(&mut card, envelope.kind, envelope.time, record, session.format);
            let index = usize::try_from(n - 1).unwrap_or(usize::MAX);
            let added = deriver.add(n, envelope, before.get(index).copied().flatten(), None);
            failed = failed.take().or(added.err());
        })?;
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(Derived {
            records: deriver.records,
            twins: deriver.twins.into_iter().collect(),
            ties: ties(archive, session, &state)?,
            card,
            state,
        }),
    }
}

/// Folds a session's operations into its state, and shows each.
pub(super) fn fold(
    archive: &Archive,
    session: &Session,
    each: &mut dyn FnMut(&Operation),
) -> Result<State, OpsError> {
    let store = archive.store();
    let mut state = State::default();
    loop {
        let range = state.operations() + 1..state.operations() + 1 + OPERATIONS;
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
            // The last of the checkpoints says all that is asked of them.
            let checkpoints = state.checkpoints..state.checkpoints + given;
            let checkpoints = store.checkpoints(session.key, checkpoints)?;
            let checkpoints = checkpoints.into_iter().map(|(_, given)| given).collect();
            each(&operation);
            state.apply(&operation, &Bulk { runs, checkpoints, ..Bulk::default() });
        }
    }
}

fn ties(
    archive: &Archive,
    session: &Session,
    state: &State,
) -> Result<Vec<(u64, Vec<Tie>)>, OpsError> {
    let mut ties = Vec::new();
    let nowhere = Position { generation: 0, head: None, horizon: 0 };
    let mut view = View::new(archive.store(), session, nowhere, None);
    for generation in 1..=state.generations.len() as u64 {
        let end = state.ends.get(&generation).map_or(0, Run::end);
        view = view.moved(Position { generation, head: None, horizon: end.min(TIED) });
        ties.push((generation, derive::ties(session.format, &session.name, &view)?));
    }
    ties.retain(|(_, ties)| !ties.is_empty());
    Ok(ties)
}

/// Returns, for each entry, the entry before it in the file in which it was met first.
fn befores(
    archive: &Archive,
    session: &Session,
    entries: u64,
) -> Result<Vec<Option<u64>>, OpsError> {
    let mut before = vec![None; usize::try_from(entries).unwrap_or(0)];
    let mut met = vec![false; before.len()];
    let runs = archive.store.growths(session.key, 0..u64::MAX)?;
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, run) in &runs {
        for entry in run.first..run.first + run.count {
            let index = usize::try_from(entry.saturating_sub(1)).unwrap_or(usize::MAX);
            let previous = last.insert(run.generation, entry);
            if let (Some(before), Some(met)) = (before.get_mut(index), met.get_mut(index))
                && !*met
            {
                (*before, *met) = (previous, true);
            }
        }
    }
    // What lies in no generation knows it by its link alone.
    for (index, _) in met.iter().enumerate().filter(|(_, met)| !**met) {
        let n = index as u64 + 1;
        let entry = archive.store.entries(session.key, n..n + 1)?;
        if let (Some(before), [entry]) = (before.get_mut(index), entry.as_slice()) {
            *before = entry.link;
        }
    }
    Ok(before)
}

/// Returns the derived rows as the store holds them, unless they are damaged.
pub(super) fn kept(archive: &Archive, session: &Session) -> Result<Option<Derived>, OpsError> {
    let (store, key) = (archive.store(), session.key);
    let read = || {
        Ok(Derived {
            records: store.records(key, 1..u64::MAX)?,
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
pub(super) fn digest(derived: &Derived) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let number = |hasher: &mut blake3::Hasher, value: Option<u64>| {
        hasher.update(&[u8::from(value.is_some())]).update(&value.unwrap_or(0).to_le_bytes());
    };
    for record in &derived.records {
        let Record { n, kind, name, parent, time, hint } = record;
        hasher.update(&n.to_le_bytes()).update(&[kind.code()]);
        number(&mut hasher, name.map(NameTag::get));
        number(
            &mut hasher,
            match parent {
                Parent::Root => None,
                Parent::Missing => Some(0),
                Parent::Entry(n) => Some(*n),
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
        bytes(&generation.to_le_bytes());
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
