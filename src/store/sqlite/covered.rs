//! Covered lines: those of which bytes were taken out, as their entries' tombstones tell.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::{
    long,
    query::{collect, first},
};
use crate::{
    model::{EntryId, EntryNumber, LineId, Operation, State, Tagged, Tombstone},
    store::{SessionKey, StoreError},
};

/// Of each entry with a tombstone, the line that came and the one that stands there now.
pub(super) type Covered = BTreeMap<EntryNumber, (LineId, LineId)>;

/// Returns the covered entries of a session, as its state has them.
pub(super) fn by_state(db: &Connection, session: SessionKey) -> Result<Covered, StoreError> {
    let sql = "SELECT state FROM card WHERE session = ?";
    let state: Option<State> = first(db, sql, [session.0], |row| long::state(row, 0))?;
    Ok(state.map_or_else(Covered::new, |state| gather(&state.tombstones)))
}

/// Returns the covered entries of a session, as its operations have them.
pub(super) fn by_operations(db: &Connection, session: SessionKey) -> Result<Covered, StoreError> {
    let mut covered = Covered::new();
    let sql = "SELECT record FROM operation WHERE session = ? ORDER BY n";
    for record in collect(db, sql, [session.0], |row| row.get::<_, Vec<u8>>(0))? {
        // One that cannot be read is named where operations are checked.
        let read: Result<Operation, _> = Tagged::read(&record, &mut Vec::new());
        covered.extend(read.iter().flat_map(|operation| gather(&operation.facts.tombstones)));
    }
    Ok(covered)
}

fn gather(tombstones: &[Tombstone]) -> Covered {
    let each = tombstones.iter().filter_map(|one| Some((one.entry, (one.line?, one.covered?))));
    each.collect()
}

/// Returns whether a line stands in the place of the one of which an entry's id was made.
pub(super) fn stands_for(
    covered: &Covered,
    (n, id): (EntryNumber, EntryId),
    link: Option<EntryId>,
    line: LineId,
) -> bool {
    let found = covered.get(&n);
    found.is_some_and(|(came, now)| *now == line && EntryId::of(link, *came) == id)
}
