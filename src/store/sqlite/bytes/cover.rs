//! Covered lines: those that were redacted according to their tombstones, and the index that recognises the original line when it
//! arrives again.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::store::sqlite::{
    bytes::long_values,
    query::{collect, execute, first},
};
use crate::{
    model::{
        Digest, EntryId, EntryNumber, Facts, LineId, Operation, OperationNumber, State, Tagged,
        Tombstone,
    },
    store::{SessionKey, StoreError},
};

/// For each entry with a tombstone, the original line and the current one.
pub(crate) type Covered = BTreeMap<EntryNumber, (LineId, LineId)>;

/// Returns the covered entries of a session according to its state.
pub(crate) fn by_state(db: &Connection, session: SessionKey) -> Result<Covered, StoreError> {
    let sql = "SELECT state FROM card WHERE session = ?";
    let state: Option<State> = first(db, sql, [session.0], |row| long_values::state(row, 0))?;
    Ok(state.map_or_else(Covered::new, |state| gather(&state.tombstones)))
}

/// Returns the covered entries of a session according to its operations.
pub(crate) fn by_operations(db: &Connection, session: SessionKey) -> Result<Covered, StoreError> {
    Ok(facts(db, session)?.flat_map(|facts| gather(&facts.tombstones)).collect())
}

/// Returns the digest of the replacement of a stored file, according to the session's operations.
pub(crate) fn file_by_operations(
    db: &Connection,
    session: SessionKey,
    file: (OperationNumber, u64),
) -> Result<Option<Digest>, StoreError> {
    let mut files = facts(db, session)?.flat_map(|facts| facts.covered_files);
    Ok(files.rfind(|one| (one.operation, one.at) == file).map(|one| one.digest))
}

/// Returns the digest of an operation's redacted runs, according to the session's operations.
pub(crate) fn runs_by_operations(
    db: &Connection,
    session: SessionKey,
    operation: OperationNumber,
) -> Result<Option<Digest>, StoreError> {
    let mut runs = facts(db, session)?.flat_map(|facts| facts.covered_runs);
    Ok(runs.rfind(|runs| runs.operation == operation).map(|runs| runs.digest))
}

/// Returns the facts of a session's operations, in order. Unreadable operations are skipped; other checks report them.
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

/// Returns true if a line is the recorded replacement of the line in an entry's id.
pub(crate) fn stands_for(
    covered: &Covered,
    n: EntryNumber,
    id: EntryId,
    link: Option<EntryId>,
    line: LineId,
) -> bool {
    in_place_of(covered, n, id, link) == Some(line)
}

/// Returns the recorded replacement of the line in an entry's id.
pub(crate) fn in_place_of(
    covered: &Covered,
    n: EntryNumber,
    id: EntryId,
    link: Option<EntryId>,
) -> Option<LineId> {
    covered.get(&n).filter(|(came, _)| EntryId::of(link, *came) == id).map(|(_, now)| *now)
}

/// Returns the entries where a line may have been redacted.
pub(crate) fn buried(
    db: &Connection,
    line: LineId,
) -> Result<Vec<(SessionKey, EntryNumber)>, StoreError> {
    let sql = "SELECT session, entry FROM buried WHERE tag = ? ORDER BY session, entry";
    collect(db, sql, [tag(line)], |row| Ok((SessionKey(row.get(0)?), row.get(1)?)))
}

/// Adds the rows with which a redacted line is recognised.
pub(crate) fn add(
    db: &Connection,
    session: SessionKey,
    tombstones: &[Tombstone],
) -> Result<(), StoreError> {
    for (entry, (came, _)) in gather(tombstones) {
        let sql = "INSERT OR IGNORE INTO buried (tag, session, entry) VALUES (?, ?, ?)";
        execute(db, sql, params![tag(came), session.0, entry])?;
    }
    Ok(())
}

/// Replaces a session's rows with those from its state.
pub(crate) fn derive(
    db: &Connection,
    session: SessionKey,
    state: &State,
) -> Result<(), StoreError> {
    execute(db, "DELETE FROM buried WHERE session = ?", [session.0])?;
    add(db, session, &state.tombstones)
}

/// Checks the rows, session by session.
pub(crate) struct Checked {
    /// How many rows exist.
    there: u64,
    /// How many the sessions should have.
    given: u64,
}

impl Checked {
    pub(crate) fn begin(db: &Connection) -> Result<Self, StoreError> {
        let there = db.query_row("SELECT count(*) FROM buried", [], |row| row.get(0))?;
        Ok(Self { there, given: 0 })
    }

    /// Returns true if a row from a session's state is missing.
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

    /// Reports superfluous rows, after all sessions were checked.
    pub(crate) fn too_many(&self) -> Option<String> {
        let (there, given) = (self.there, self.given);
        (there > given).then(|| format!("there are {there} rows, but the sessions have {given}"))
    }
}

/// Returns the digest of a file that an operation stored.
pub(crate) fn kept_digest(operation: &Operation, at: u64) -> Option<Digest> {
    let containers = operation.facts.containers.iter().map(|container| container.digest);
    let sidecars = operation.facts.sidecars.iter().map(|sidecar| sidecar.digest);
    containers.chain(sidecars).nth(usize::try_from(at).ok()?)
}

/// Returns the tag of an original line in the index.
fn tag(line: LineId) -> [u8; 6] {
    let mut tag = [0; 6];
    tag.copy_from_slice(&line.as_bytes()[..6]);
    tag
}
