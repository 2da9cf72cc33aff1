//! Rekeying: the chain of a session as it would be if its lines had come as they are now. Nothing in it is made of bytes that
//! were taken out, so that no id tells whether a guess at them is right.
//!
//! ```text
//! entries       the ids of the lines that stand there now
//! runs          the running hashes of these, without unfinished lines that were finished later
//! files         the digests of the bytes that are kept now
//! tombstones    the entries, sizes and rules alone; nothing is known any more by which it would be kept out
//! references    to an entry by its id lead to the same entry
//! operations    sealed again, one after the other
//! ```
//!
//! Invariant: all numbers stay, and with them every path, branch and checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{
        Bulk, CheckpointNumber, Command, EntryId, EntryNumber, Facts, GenerationNumber, LineId,
        Operation, OperationNumber, Running, State, Tombstone,
    },
    session::{Session, SessionError},
    store::{Store, whole_lines},
};

/// How many lines are read together.
const BATCH: usize = 256;

/// The new ids of entries, each by the old one.
pub(crate) type NewIds = BTreeMap<EntryId, EntryId>;

/// Returns the ids that are others of a session's entries if they are made of the lines that it has now; nothing if two entries
/// would have the same.
pub(crate) fn new_ids(
    store: &dyn Store,
    session: &Session,
    state: &State,
) -> Result<Option<NewIds>, SessionError> {
    let mut ids = NewIds::new();
    // The ids of the entries so far: the links lead back.
    let mut all: Vec<EntryId> = Vec::new();
    for batch in EntryNumber::batches(EntryNumber::FIRST..state.next_entry(), BATCH) {
        let entries = store.entries(session.key, batch.clone())?;
        let numbers: Vec<EntryNumber> = EntryNumber::each(batch).collect();
        let mut lines = BTreeMap::new();
        whole_lines(store, session.key, &numbers, &mut |n, line| {
            lines.insert(n, LineId::of(&line));
        })?;
        for entry in entries {
            let link = entry.link.and_then(|link| all.get(link.index()?)).copied();
            let line = lines.get(&entry.n).copied().unwrap_or_default();
            let id = EntryId::of(link, line);
            all.push(id);
            if id != entry.id {
                ids.insert(entry.id, id);
            }
        }
    }
    let different: BTreeSet<&EntryId> = all.iter().collect();
    Ok((different.len() == all.len()).then_some(ids))
}

/// Returns a session's operations, each with what it added, under new ids of its own entries and of others' to which it refers.
pub(crate) fn rekeyed(
    store: &dyn Store,
    session: &Session,
    state: &State,
    ids: &NewIds,
) -> Result<Vec<(Operation, Bulk)>, SessionError> {
    let key = session.key;
    let own = store.id()?;
    let (mut chain, mut before) = (Vec::new(), None);
    let mut running: BTreeMap<GenerationNumber, Running> = BTreeMap::new();
    let mut added: BTreeMap<OperationNumber, Bulk> = BTreeMap::new();
    for (by, run) in store.growths(key, OperationNumber::ALL)? {
        added.entry(by).or_default().runs.push(run);
    }
    for (by, given) in store.checkpoints(key, CheckpointNumber::ALL)? {
        added.entry(by).or_default().checkpoints.push(given);
    }
    for (by, origin) in store.origins(key, EntryNumber::ALL)? {
        added.entry(by).or_default().origins.push(origin);
    }
    let all = OperationNumber::FIRST..state.next_operation();
    for operation in store.operations(key, all)? {
        let n = operation.n;
        let mut bulk = added.remove(&n).unwrap_or_default();
        bulk.entries = store.entries(key, operation.added())?;
        for entry in &mut bulk.entries {
            entry.id = new_id(ids, entry.id);
        }
        for run in &mut bulk.runs {
            let is_last = state.ends.get(&run.generation) == Some(run);
            let hash = running.entry(run.generation).or_insert(Running::EMPTY);
            let mut separators = run.gaps.iter(run.start, run.count);
            for batch in EntryNumber::batches(run.entries(), BATCH) {
                for entry in store.entries(key, batch)? {
                    let separator = separators.next().unwrap_or_default();
                    *hash = hash.then(separator, new_id(ids, entry.id));
                }
            }
            run.running = *hash;
            // An unfinished line that was finished later may have had what its entry has no more.
            if !is_last && !run.tail.trim_ascii().is_empty() {
                run.tail.clear();
            }
        }
        let facts = facts(state, n, operation.facts.clone(), ids);
        let mut command = operation.command.clone();
        refer(&mut command, ids);
        let place = (n, operation.at, operation.first);
        let sealed = Operation::seal((own, &session.name), before, place, command, facts, &bulk);
        before = Some(sealed.hash);
        chain.push((sealed, bulk));
    }
    Ok(chain)
}

/// Returns facts without anything in them that is made of what was taken out.
fn facts(state: &State, by: OperationNumber, mut facts: Facts, ids: &NewIds) -> Facts {
    for tombstone in &mut facts.tombstones {
        let Tombstone { entry, size, rule, .. } = std::mem::take(tombstone);
        *tombstone = Tombstone { entry, size, rule, line: None, covered: None };
    }
    let containers = facts.containers.iter_mut().map(|one| (&mut one.digest, &mut one.size));
    let sidecars = facts.sidecars.iter_mut().map(|one| (&mut one.digest, &mut one.size));
    for (at, (digest, size)) in (0..).zip(containers.chain(sidecars)) {
        if let Some(covered) = state.covered_file(by, at) {
            (*digest, *size) = (covered.digest, covered.size);
        }
    }
    facts.covered_files.clear();
    facts.covered_runs.clear();
    facts.kept_out.clear();
    for base in &mut facts.bases {
        base.entry = base.entry.map(|entry| new_id(ids, entry));
    }
    if let Some(request) = &mut facts.request {
        request.entry = request.entry.map(|entry| new_id(ids, entry));
    }
    facts
}

/// Has a command refer to entries by their new ids.
fn refer(command: &mut Command, ids: &NewIds) {
    if let Command::Revert { entry: Some(entry), .. } = command {
        *entry = new_id(ids, *entry);
    }
}

fn new_id(ids: &NewIds, id: EntryId) -> EntryId {
    ids.get(&id).copied().unwrap_or(id)
}
