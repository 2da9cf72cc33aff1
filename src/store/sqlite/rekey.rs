//! Rekeying: the rows of a session's facts get the ids and hashes of another chain with the same numbers.
//!
//! Invariant: no row is added or goes, and nothing but ids, hashes, records and unfinished lines changes.

use rusqlite::{Connection, params};

use super::{SqliteStore, add::OWN, long, query::first, witness};
use crate::store::{Chain, SessionKey, StoreError};

/// The triggers that guard the rows, each with its table.
const GUARDS: [&str; 3] =
    ["operation_is_not_updated", "entry_is_not_updated", "run_is_not_updated"];

impl SqliteStore {
    /// Puts a chain in place of a session's, within the transaction that is open: with redacting, the one way in which rows
    /// of facts change.
    pub(super) fn rekey(&self, session: SessionKey, chain: &Chain) -> Result<(), StoreError> {
        // It knows one of the hashes that go, and would tell of damage if this ended before it is written again.
        let forgotten = self.witness.borrow_mut().forget();
        forgotten.map_err(StoreError::at(&witness::path_of(&self.path)))?;
        put(self.db(), session, chain)?;
        self.tables.forget_standing();
        Ok(())
    }
}

/// Puts the ids and hashes of a chain in place of those that a session has.
fn put(db: &Connection, session: SessionKey, chain: &Chain) -> Result<(), StoreError> {
    let mut guards = Vec::new();
    for guard in GUARDS {
        let sql = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?";
        guards.extend(first(db, sql, [guard], |row| row.get::<_, String>(0))?);
        db.execute_batch(&format!("DROP TRIGGER IF EXISTS {guard}"))?;
    }
    for (operation, bulk) in chain {
        let row = params![operation.hash.as_bytes(), operation.record, session.0, OWN, operation.n];
        let sql =
            "UPDATE operation SET hash = ?, record = ? WHERE session = ? AND store = ? AND n = ?";
        one(db.prepare_cached(sql)?.execute(row)?)?;
        for entry in &bulk.entries {
            let sql = "UPDATE entry SET id = ? WHERE session = ? AND n = ?";
            one(db.prepare_cached(sql)?.execute(params![
                entry.id.as_bytes(),
                session.0,
                entry.n
            ])?)?;
        }
        for run in &bulk.runs {
            let sql = "UPDATE run SET running = ?, tail = ?
                       WHERE session = ? AND generation = ? AND start = ? AND operation = ?";
            one(db.prepare_cached(sql)?.execute(params![
                run.running.as_bytes(),
                long::pack(&run.tail)?,
                session.0,
                run.generation,
                run.start,
                operation.n
            ])?)?;
        }
    }
    for guard in guards {
        db.execute_batch(&guard)?;
    }
    Ok(())
}

/// Refuses a chain that has other numbers than the rows.
fn one(rows: usize) -> Result<(), StoreError> {
    if rows == 1 {
        Ok(())
    } else {
        Err(StoreError::Refused("a row to rekey is missing".to_owned()))
    }
}
