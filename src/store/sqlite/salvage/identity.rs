//! The id of a damaged store: its row has it, the index of that row, and the witness next to it. The hashes of its operations
//! were made with it, and say which of these it is.

use rusqlite::params;

use super::{Salvage, witness};
use crate::{
    model::{Operation, OperationId, StoreId},
    store::{
        FactStore, SessionKey, StoreError,
        sqlite::{
            add::OWN,
            query::{collect, hash},
        },
    },
};

/// How many operations are asked.
const ASKED: usize = 256;

impl Salvage {
    /// Gives the fresh store the id with which most hashes of operations come out; of several the one that the row has.
    pub(super) fn take_id(&mut self) -> Result<(), StoreError> {
        let sealed = self.sealed()?;
        let mut best = (0, self.fresh.id()?);
        for (at, id) in self.own_ids().into_iter().enumerate() {
            let is_of = |(session, before, by): &&(SessionKey, Option<OperationId>, Operation)| {
                let name = self.names.get(session);
                name.is_some_and(|name| by.hash_after(*before, id, name) == by.hash)
            };
            let right = sealed.iter().filter(is_of).count();
            if at == 0 || right > best.0 {
                best = (right, id);
            }
        }
        let (_, own) = best;
        self.db().execute("UPDATE store SET id = ? WHERE key = ?", params![own.as_bytes(), OWN])?;
        self.fresh.id = own;
        Ok(())
    }

    /// Returns the ids that the damaged store may have.
    fn own_ids(&self) -> Vec<StoreId> {
        let read = |from: &str| {
            let sql = format!("SELECT id FROM {from} WHERE key = ?");
            self.old.query_row(&sql, [OWN], |row| row.get(0)).ok().map(StoreId::new)
        };
        let mut ids: Vec<StoreId> =
            [read("store"), read("store INDEXED BY store_id")].into_iter().flatten().collect();
        let mut seen = witness::read_all(&witness::path_of(&self.damaged)).unwrap_or_default();
        seen.sort_by_key(|witness| std::cmp::Reverse(witness.seq));
        ids.extend(seen.into_iter().map(|witness| witness.store));
        ids
    }

    /// Returns operations whose hashes can be computed, each behind its session and the hash before it.
    fn sealed(&self) -> Result<Vec<(SessionKey, Option<OperationId>, Operation)>, StoreError> {
        let sql = "SELECT one.session, one.n, one.record, one.hash, before.hash FROM operation one
             LEFT JOIN operation before ON before.session = one.session AND before.store = one.store
               AND before.n = one.n - 1
             WHERE one.store = ? AND (one.n = 1 OR before.hash IS NOT NULL) ORDER BY one.n LIMIT ?";
        let rows = collect(self.db(), sql, params![OWN, ASKED], |row| {
            let own = OperationId::new(hash(row, 3)?);
            let before: Option<[u8; 32]> = row.get(4)?;
            let by = Operation::open(row.get(1)?, row.get(2)?, own, &[]);
            Ok((SessionKey(row.get(0)?), before.map(OperationId::new), by.ok()))
        })?;
        Ok(rows
            .into_iter()
            .filter_map(|(session, before, by)| Some((session, before, by?)))
            .collect())
    }
}
