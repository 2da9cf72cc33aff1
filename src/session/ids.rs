//! Ids: maps entry numbers to ids, and finds the operation that added an entry.

use std::collections::BTreeMap;

use crate::{
    model::{EntryId, EntryNumber, EntrySet, Operation, OperationNumber},
    session::{Session, SessionError, Stored},
    store::{Store, StoreError},
};

/// Numbers that are at most this far apart are read in one query.
pub(crate) const NEAR: u64 = 64;

impl Stored<'_> {
    /// Returns the id of an entry, if a number is given and the entry exists.
    pub fn entry_id(&self, entry: Option<EntryNumber>) -> Result<Option<EntryId>, StoreError> {
        let Some(n) = entry else { return Ok(None) };
        let found = self.store.entries(self.key, n.alone())?;
        Ok(found.first().map(|entry| entry.id))
    }

    /// Returns the id of an entry that must exist.
    pub fn id_of(&self, entry: EntryNumber) -> Result<EntryId, SessionError> {
        let found = self.entry_id(Some(entry))?;
        found.ok_or_else(|| SessionError::NoEntry(entry.to_string()))
    }

    /// Returns the operation that added an entry.
    pub fn added_by(&self, entry: EntryNumber) -> Result<Option<Operation>, StoreError> {
        let (mut from, mut to) = (0, self.state.operations());
        let mut found = None;
        // Entry numbers increase with operations.
        while from < to {
            let middle = from.midpoint(to);
            let n = OperationNumber::FIRST.plus(middle);
            match self.store.operations(self.key, n.alone())?.pop() {
                Some(operation) if operation.first <= entry => {
                    from = middle + 1;
                    found = Some(operation);
                }
                _ => to = middle,
            }
        }
        Ok(found.filter(|operation| operation.added().contains(&entry)))
    }
}

/// Returns the ids of entries, and possibly of others between them.
pub fn entry_ids(
    store: &dyn Store,
    session: &Session,
    wanted: &EntrySet,
) -> Result<BTreeMap<EntryNumber, EntryId>, SessionError> {
    let mut ids = BTreeMap::new();
    for range in EntryNumber::ranges(wanted.iter(), NEAR) {
        let entries = store.entries(session.key, range)?;
        ids.extend(entries.into_iter().map(|entry| (entry.n, entry.id)));
    }
    Ok(ids)
}
