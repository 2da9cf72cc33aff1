//! Covered lines: those of which bytes were taken out, as their entries' tombstones tell, and how an equal line is recognised
//! when it arrives later.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::store::sqlite::{
    bytes::long_values,
    query::{collect, first},
};
use crate::{
    model::{
        Digest, EntryId, EntryNumber, Facts, LineId, Operation, OperationNumber, State, Tagged,
        Tombstone,
    },
    store::{SessionKey, StoreError},
};

/// Of each entry with a tombstone, the line that came and the one that is there now.
pub(crate) type Covered = BTreeMap<EntryNumber, (LineId, LineId)>;

/// Returns the covered entries of a session, as its state has them.
pub(crate) fn by_state(db: &Connection, session: SessionKey) -> Result<Covered, StoreError> {
    let sql = "SELECT state FROM card WHERE session = ?";
    let state: Option<State> = first(db, sql, [session.0], |row| long_values::state(row, 0))?;
    Ok(state.map_or_else(Covered::new, |state| gather(&state.tombstones)))
}

/// Returns the covered entries of a session, as its operations have them.
pub(crate) fn by_operations(db: &Connection, session: SessionKey) -> Result<Covered, StoreError> {
    Ok(facts(db, session)?.flat_map(|facts| gather(&facts.tombstones)).collect())
}

/// Returns the digest of what replaces a file that an operation kept whole, as the session's operations have it.
pub(crate) fn file_by_operations(
    db: &Connection,
    session: SessionKey,
    file: (OperationNumber, u64),
) -> Result<Option<Digest>, StoreError> {
    let mut files = facts(db, session)?.flat_map(|facts| facts.covered_files);
    Ok(files.rfind(|one| (one.operation, one.at) == file).map(|one| one.digest))
}

/// Returns the digest of an operation's runs out of which unfinished lines were taken, as the session's operations have it.
pub(crate) fn runs_by_operations(
    db: &Connection,
    session: SessionKey,
    operation: OperationNumber,
) -> Result<Option<Digest>, StoreError> {
    let mut runs = facts(db, session)?.flat_map(|facts| facts.covered_runs);
    Ok(runs.rfind(|runs| runs.operation == operation).map(|runs| runs.digest))
}

/// Returns the facts of a session's operations, in order. Operations that cannot be read are named where they are checked.
fn facts(
    db: &Connection,
    session: SessionKey,
) -> Result<impl DoubleEndedIterator<Item = Facts> + use<>, StoreError> {
    let sql = "SELECT record FROM operation WHERE session = ? ORDER BY n";
    let records = collect(db, sql, [session.0], |row| row.get::<_, Vec<u8>>(0))?.into_iter();
    let read = |record: Vec<u8>| Operation::read(&record, &mut Vec::new()).ok();
    Ok(records.filter_map(read).map(|operation| operation.facts))
}

fn gather(tombstones: &[Tombstone]) -> Covered {
    let each = tombstones.iter().filter_map(|one| Some((one.entry, (one.line?, one.covered?))));
    each.collect()
}

/// Returns whether a line replaces the one of which an entry's id was made.
pub(crate) fn stands_for(
    covered: &Covered,
    n: EntryNumber,
    id: EntryId,
    link: Option<EntryId>,
    line: LineId,
) -> bool {
    in_place_of(covered, n, id, link) == Some(line)
}

/// Returns the line that replaces the one of which an entry's id was made.
pub(crate) fn in_place_of(
    covered: &Covered,
    n: EntryNumber,
    id: EntryId,
    link: Option<EntryId>,
) -> Option<LineId> {
    covered.get(&n).filter(|(came, _)| EntryId::of(link, *came) == id).map(|(_, now)| *now)
}

/// Returns the entries for which a line may have come that has another one in its place.
pub(crate) fn buried(
    db: &Connection,
    line: LineId,
) -> Result<Vec<(SessionKey, EntryNumber)>, StoreError> {
    let sql = "SELECT session, entry FROM buried WHERE tag = ? ORDER BY session, entry";
    collect(db, sql, [tag(line)], |row| Ok((SessionKey(row.get(0)?), row.get(1)?)))
}

/// Adds the rows by which a line that was taken out of a session is recognised.
pub(crate) fn add(
    db: &Connection,
    session: SessionKey,
    tombstones: &[Tombstone],
) -> Result<(), StoreError> {
    for (entry, (came, _)) in gather(tombstones) {
        db.prepare_cached("INSERT OR IGNORE INTO buried (tag, session, entry) VALUES (?, ?, ?)")?
            .execute(params![tag(came), session.0, entry])?;
    }
    Ok(())
}

/// Puts the rows that a session's state gives in place of those that it had.
pub(crate) fn derive(
    db: &Connection,
    session: SessionKey,
    state: &State,
) -> Result<(), StoreError> {
    db.prepare_cached("DELETE FROM buried WHERE session = ?")?.execute([session.0])?;
    add(db, session, &state.tombstones)
}

/// Checks the rows of one session after the other.
pub(crate) struct Checked {
    /// How many rows there are.
    there: u64,
    /// How many the sessions give.
    given: u64,
}

impl Checked {
    pub(crate) fn begin(db: &Connection) -> Result<Self, StoreError> {
        let there = db.query_row("SELECT count(*) FROM buried", [], |row| row.get(0))?;
        Ok(Self { there, given: 0 })
    }

    /// Returns whether a row is missing that a session's state gives.
    pub(crate) fn is_lacking(
        &mut self,
        db: &Connection,
        session: SessionKey,
        state: &State,
    ) -> Result<bool, StoreError> {
        let mut is_lacking = false;
        for (entry, (came, _)) in gather(&state.tombstones) {
            let sql = "SELECT 1 FROM buried WHERE tag = ? AND session = ? AND entry = ?";
            let found = first(db, sql, params![tag(came), session.0, entry], |_| Ok(()))?;
            self.given += 1;
            is_lacking |= found.is_none();
        }
        Ok(is_lacking)
    }

    /// Tells of too many rows, once all sessions were seen.
    pub(crate) fn too_many(&self) -> Option<String> {
        let (there, given) = (self.there, self.given);
        (there > given).then(|| format!("there are {there} rows, but the sessions have {given}"))
    }
}

/// Returns the digest of a file that an operation keeps.
pub(crate) fn kept_digest(operation: &Operation, at: u64) -> Option<Digest> {
    let containers = operation.facts.containers.iter().map(|container| container.digest);
    let sidecars = operation.facts.sidecars.iter().map(|sidecar| sidecar.digest);
    containers.chain(sidecars).nth(usize::try_from(at).ok()?)
}

/// Returns the tag under which a line that came is found.
fn tag(line: LineId) -> [u8; 6] {
    let mut tag = [0; 6];
    tag.copy_from_slice(&line.as_bytes()[..6]);
    tag
}
