//! The reference implementation: a single overlay in memory. The tests use it as their oracle.
//!
//! On top of another store, it holds private additions to that store: what an agent wrote since, or the preview of a change.
//!
//! Invariant: nothing is ever written to the store below.

use std::{cell::RefCell, time::Duration};

use crate::{
    model::{Card, EntryNumber, Glance, State, StoreId},
    store::{
        CacheStore, Commit, Committed, Coverings, Derived, FactStore, Reading, SessionKey,
        Sighting, Store, StoreError, Transaction,
        answer::Layered,
        overlay::{
            Overlay,
            laid::{KnownOf, Laid},
        },
    },
};

/// An overlay on another store numbers its operations from here on, after all operations of that store.
const BEHIND: u64 = 1 << 62;

/// A store that lives as long as its value. A file that is shown without a store is read into one, too.
#[derive(Default)]
pub struct MemoryStore {
    id: StoreId,
    beneath: Option<Box<dyn Store>>,
    held: RefCell<Held>,
    is_open: RefCell<()>,
}

/// The content of the store.
#[derive(Clone, Debug, Default)]
struct Held {
    overlay: Overlay,
    seq: u64,
}

impl MemoryStore {
    /// Makes an empty store; its id is all zeros.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty store with an id.
    pub fn with_id(id: StoreId) -> Self {
        Self { id, ..Self::default() }
    }

    /// Makes an overlay on another store, which stays unchanged.
    pub fn over(beneath: Box<dyn Store>) -> Result<Self, StoreError> {
        let held = RefCell::new(Held { seq: BEHIND, ..Held::default() });
        Ok(Self { id: beneath.id()?, beneath: Some(beneath), held, ..Self::default() })
    }

    fn next_key(&self) -> Result<SessionKey, StoreError> {
        let newest = self.look(|laid| laid.names())?.pop();
        Ok(SessionKey(newest.map_or(0, |(key, _)| key.0 + 1)))
    }
}

impl Layered for MemoryStore {
    fn own_id(&self) -> StoreId {
        self.id
    }

    fn look<T>(
        &self,
        ask: impl FnOnce(&Laid<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let beneath = self.beneath.as_deref().map(|store| store as &dyn Reading);
        ask(&Laid { beneath, over: &self.held.borrow().overlay })
    }
}

impl Store for MemoryStore {
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        let guard = self.is_open.try_borrow_mut().map_err(|_| StoreError::Busy)?;
        let before = self.held.borrow().clone();
        Ok(Box::new(Writing { store: self, before: Some(before), _guard: guard }))
    }

    fn is_stale(&self) -> Result<bool, StoreError> {
        self.beneath.as_ref().map_or(Ok(false), |beneath| beneath.is_stale())
    }

    fn reader(&self) -> Option<Box<dyn Store>> {
        let beneath = self.beneath.as_ref().filter(|_| self.held.borrow().overlay.is_empty());
        beneath.and_then(|beneath| beneath.reader())
    }

    fn pack(&self, _: &mut dyn FnMut(u64, u64)) -> Result<u64, StoreError> {
        // Nothing is compressed in memory, and the store below is never changed.
        Ok(0)
    }

    fn purge(&self, _: Duration) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A transaction, with the previous content for a rollback.
struct Writing<'a> {
    store: &'a MemoryStore,
    before: Option<Held>,
    _guard: std::cell::RefMut<'a, ()>,
}

impl Transaction for Writing<'_> {
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError> {
        let session = self.store.session(&commit.session)?;
        let (state, card) = self.store.look(|laid| {
            let (state, card) = match session {
                Some(key) => (laid.state(key)?, laid.card(key)?),
                None => (State::default(), Card::default()),
            };
            commit.check(self.store.id, &state, &KnownOf { laid, session })?;
            Ok((state, card))
        })?;
        let key = session.map_or_else(|| self.store.next_key(), Ok)?;
        let mut held = self.store.held.borrow_mut();
        held.seq += 1;
        let seq = held.seq;
        held.overlay.add(key, seq, commit, || Ok((state, card)))?;
        Ok(key)
    }

    fn derive(&mut self, session: SessionKey, derived: &Derived) -> Result<(), StoreError> {
        self.store.look(|laid| CacheStore::state(laid, session))?;
        self.store.held.borrow_mut().overlay.derive(session, derived);
        Ok(())
    }

    fn freshened(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn sight(&mut self, sightings: &[Sighting]) -> Result<(), StoreError> {
        let seen = sightings.iter().map(|seen| (seen.path.clone(), seen.clone()));
        self.store.held.borrow_mut().overlay.sightings.extend(seen);
        Ok(())
    }

    fn glance(&mut self, glances: &[(SessionKey, Glance)]) -> Result<(), StoreError> {
        self.store.held.borrow_mut().overlay.glances.extend(glances.iter().cloned());
        Ok(())
    }

    fn unsight(&mut self, is_meant: &dyn Fn(&[u8]) -> bool) -> Result<(), StoreError> {
        self.store.held.borrow_mut().overlay.sightings.retain(|path, _| !is_meant(path));
        Ok(())
    }

    fn cover(&mut self, coverings: Coverings) -> Result<(), StoreError> {
        coverings.check(|session| self.store.state(session))?;
        let Coverings { lines, files, runs, words } = coverings;
        let mut held = self.store.held.borrow_mut();
        for words in &words {
            held.overlay.take_out(words);
        }
        files.into_iter().try_for_each(|covering| held.overlay.cover_file(covering))?;
        runs.into_iter().try_for_each(|covering| held.overlay.cover_runs(covering))?;
        lines.into_iter().try_for_each(|covering| held.overlay.cover(covering))
    }

    fn count(
        &mut self,
        session: SessionKey,
        rule: u64,
        counts: &[(EntryNumber, Vec<u64>)],
    ) -> Result<(), StoreError> {
        self.store.held.borrow_mut().overlay.count(session, rule, counts);
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<Committed, StoreError> {
        self.before = None;
        Ok(Committed::default())
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            *self.store.held.borrow_mut() = before;
        }
    }
}
