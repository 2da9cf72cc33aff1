//! Totals: the number and size of sessions by format, updated as operations reach the tables.
//!
//! Invariant: a total never differs from a count of all sessions, so it can be recomputed at any time.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use crate::store::sqlite::{
    bytes::lines::Bytes,
    query::{collect, each, execute},
};
use crate::store::{SessionKey, StoreError, Total};

/// Adds the growth of a session, and the number of new sessions.
pub(super) fn add(
    db: &Connection,
    session: SessionKey,
    sessions: u64,
    entries: u64,
    bytes: u64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO total (format, sessions, entries, bytes)
         SELECT format, ?2, ?3, ?4 FROM session WHERE key = ?1
         ON CONFLICT (format) DO UPDATE SET sessions = sessions + excluded.sessions,
           entries = entries + excluded.entries, bytes = bytes + excluded.bytes";
    execute(db, sql, params![session.0, sessions, entries, bytes])
}

/// Returns the totals by format.
pub(super) fn read(db: &Connection) -> Result<Vec<Total>, StoreError> {
    let sql = "SELECT format, sessions, entries, bytes FROM total ORDER BY format";
    collect(db, sql, [], |row| {
        Ok(Total {
            format: row.get(0)?,
            sessions: row.get(1)?,
            entries: row.get(2)?,
            bytes: row.get(3)?,
        })
    })
}

/// Counts all sessions. A damaged or lost line counts as empty.
pub(super) fn count(db: &Connection, bytes: &Bytes) -> Result<Vec<Total>, StoreError> {
    let mut totals: BTreeMap<String, Total> = BTreeMap::new();
    let mut formats = BTreeMap::new();
    each(db, "SELECT key, format FROM session", [], |row| {
        let (key, format): (i64, String) = (row.get(0)?, row.get(1)?);
        let total = totals.entry(format.clone()).or_default();
        total.format.clone_from(&format);
        total.sessions += 1;
        formats.insert(key, format);
        Ok(())
    })?;
    each(db, "SELECT session, line FROM entry ORDER BY session, n", [], |row| {
        let format = formats.get(&row.get::<_, i64>(0)?);
        let Some(total) = format.and_then(|format| totals.get_mut(format)) else { return Ok(()) };
        total.entries += 1;
        total.bytes += match bytes.size_of(db, row.get(1)?) {
            Err(StoreError::Corrupt { .. }) => 0,
            size => size?,
        };
        Ok(())
    })?;
    Ok(totals.into_values().collect())
}

/// Replaces the totals by a count.
pub(super) fn sum_up(db: &Connection, bytes: &Bytes) -> Result<(), StoreError> {
    let counted = count(db, bytes)?;
    db.execute("DELETE FROM total", [])?;
    let mut add = db.prepare_cached("INSERT INTO total VALUES (?, ?, ?, ?)")?;
    for Total { format, sessions, entries, bytes } in counted {
        add.execute(params![format, sessions, entries, bytes])?;
    }
    Ok(())
}
