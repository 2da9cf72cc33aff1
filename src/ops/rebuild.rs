//! Rebuilding: the derived rows are made anew from facts and bytes, and compared by a digest in the order of their keys.

use std::collections::BTreeMap;

use super::derive::{self, Deriver};
use crate::{
    model::{Card, Mark, NameTag, Parent, Position, Record, Run, Tie, json::Raw},
    ops::{Archive, OpsError, Session, View},
    store::{Derived, FactKind},
    wire::{Envelope, TIED},
};

/// How many lines are read at a time.
const BATCH: usize = 1024;

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
    let equal = digest(&kept(archive, session)?) == wanted;
    if !equal {
        archive.store.derive(session.key, &derived)?;
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
    Ok(archive.store.freshened()?)
}

/// Computes the derived rows of a session from its facts and bytes.
pub(super) fn derived(archive: &Archive, session: &Session) -> Result<Derived, OpsError> {
    let store = archive.store();
    let tip = store.tip(session.key)?;
    let before = befores(archive, session, tip.entries())?;
    let mut deriver = Deriver::default();
    let mut card = Card::default();
    let facts = store.facts(session.key, 0..u64::MAX, &[FactKind::Marks])?;
    let mut marks: BTreeMap<u64, Vec<Mark>> =
        facts.into_iter().map(|(n, facts)| (n, facts.marks)).collect();
    for operation in store.operations(session.key, 0..u64::MAX)? {
        derive::see_operation(
            &mut card,
            &operation,
            &marks.remove(&operation.n).unwrap_or_default(),
            session.format,
        );
    }
    let mut failed = None;
    for from in (1..=tip.entries()).step_by(BATCH) {
        let entries: Vec<u64> = (from..(from + BATCH as u64).min(tip.entries() + 1)).collect();
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
            ties: ties(archive, session, tip.generations)?,
            card,
        }),
    }
}

fn ties(
    archive: &Archive,
    session: &Session,
    generations: u64,
) -> Result<Vec<(u64, Vec<Tie>)>, OpsError> {
    let mut ties = Vec::new();
    let nowhere = Position { generation: 0, head: None, horizon: 0 };
    let mut view = View::new(archive.store(), session, nowhere, None);
    for generation in 1..=generations {
        let end = archive.store.runs(session.key, generation, 0)?.last().map_or(0, Run::end);
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
    let mut runs = archive.store.facts(session.key, 0..u64::MAX, &[FactKind::Runs])?;
    runs.sort_by_key(|(n, _)| *n);
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for run in runs.iter().flat_map(|(_, facts)| &facts.runs) {
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

/// Returns the derived rows as the store holds them.
pub(super) fn kept(archive: &Archive, session: &Session) -> Result<Derived, OpsError> {
    let store = archive.store();
    Ok(Derived {
        records: store.records(session.key, 1..u64::MAX)?,
        twins: store.twins(session.key)?,
        ties: store.ties(session.key)?,
        card: store.card(session.key)?,
    })
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
    // Nothing is added where there are none, so that stores from before there were any stay equal.
    if !derived.ties.is_empty() {
        hasher.update(format!("{:?}", derived.ties).as_bytes());
    }
    hasher.update(format!("{:?}", derived.card).as_bytes());
    *hasher.finalize().as_bytes()
}
