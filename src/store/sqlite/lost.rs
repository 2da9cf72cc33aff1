//! Lost entries: those of which nothing is known but that they were there, by an id that says so. No file gives them back:
//! what held their ids is lost with them.

use rusqlite::Connection;

use super::{bytes::LOST, query::hash};
use crate::{
    model::{EntryId, EntryNumber},
    store::{LOST_LINE, SessionKey, StoreError, UNKNOWN_ENTRY},
};

/// Returns the id of an entry of which nothing is known.
pub(super) fn id_of(session: SessionKey, n: EntryNumber) -> EntryId {
    let name = format!("lost entry {n} of session {}", session.0);
    EntryId::new(*blake3::hash(name.as_bytes()).as_bytes())
}

/// Returns the problem of an entry without a line.
pub(super) fn problem(session: SessionKey, n: EntryNumber, id: EntryId) -> &'static str {
    if id == id_of(session, n) { UNKNOWN_ENTRY } else { LOST_LINE }
}

/// Returns whether a line is lost that a file may give back.
pub(super) fn has_lines(db: &Connection) -> Result<bool, StoreError> {
    let mut query = db.prepare("SELECT session, n, id FROM entry WHERE line = ?")?;
    let mut rows = query.query([LOST])?;
    while let Some(row) = rows.next()? {
        let id = EntryId::new(hash(row, 2)?);
        if problem(SessionKey(row.get(0)?), row.get(1)?, id) == LOST_LINE {
            return Ok(true);
        }
    }
    Ok(false)
}
