//! The id of a damaged store: its row has it, the index of that row, and the witness next to it. The names of its sessions: their
//! rows have them, the index of these rows, and their cards. The hashes of operations were made with both, and say which of
//! these they are.

use std::cmp::Reverse;

use rusqlite::params;

use super::{Salvage, witness};
use crate::{
    model::{Operation, OperationId, SessionName, StoreId},
    store::{
        FactStore, SessionKey, StoreError,
        sqlite::{
            add::OWN,
            query::{collect, hash},
        },
    },
};

/// How many operations are asked for the id of a store.
const ASKED: usize = 256;
/// How many operations of a session are asked for its name.
const ASKED_OF_ONE: usize = 16;

/// An operation whose hash can be computed, behind its session and the hash before it.
type Sealed = (SessionKey, Option<OperationId>, Operation);

impl Salvage {
    /// Gives each session the name with which most hashes of its operations come out; of several the one that its row has.
    pub(super) fn take_names(&mut self) -> Result<(), StoreError> {
        let ids = self.own_ids();
        let mut taken: Vec<(usize, SessionKey, SessionName)> = Vec::new();
        for (session, names) in std::mem::take(&mut self.named) {
            let sealed = self.sealed(Some(session), ASKED_OF_ONE)?;
            let right = |name: &SessionName| {
                let right = |id: &StoreId| {
                    let is_of =
                        |(_, before, by): &&Sealed| by.hash_after(*before, *id, name) == by.hash;
                    sealed.iter().filter(is_of).count()
                };
                ids.iter().map(right).max().unwrap_or(0)
            };
            let names = names.into_iter().map(|name| (right(&name), name));
            // Of equals, the first one counts.
            let best = names.reduce(|best, one| if one.0 > best.0 { one } else { best });
            taken.extend(best.map(|(right, name)| (right, session, name)));
        }
        // Of two sessions with one name it is that one's whose operations were made with it.
        taken.sort_by_key(|(right, session, _)| (Reverse(*right), *session));
        for (_, session, name) in taken {
            self.db().execute(
                "INSERT OR IGNORE INTO session (key, format, id) VALUES (?, ?, ?)",
                params![session.0, name.format, name.id],
            )?;
            self.names.insert(session, name);
        }
        Ok(())
    }

    /// Gives the fresh store the id with which most hashes of operations come out; of several the one that the row has.
    pub(super) fn take_id(&mut self) -> Result<(), StoreError> {
        let sealed = self.sealed(None, ASKED)?;
        let mut best = (0, self.fresh.id()?);
        for (at, id) in self.own_ids().into_iter().enumerate() {
            let is_of = |(session, before, by): &&Sealed| {
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

    /// Returns operations whose hashes can be computed, of one session or of all, so many at most.
    fn sealed(&self, only: Option<SessionKey>, most: usize) -> Result<Vec<Sealed>, StoreError> {
        let of = if only.is_some() { "one.session" } else { "0" };
        let sql = format!(
            "SELECT one.session, one.n, one.record, one.hash, before.hash FROM operation one
             LEFT JOIN operation before ON before.session = one.session AND before.store = one.store
               AND before.n = one.n - 1
             WHERE {of} = ? AND one.store = ? AND (one.n = 1 OR before.hash IS NOT NULL) ORDER BY one.n LIMIT ?"
        );
        let session = only.map_or(0, |session| session.0);
        let rows = collect(self.db(), &sql, params![session, OWN, most], |row| {
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
