//! The door: what was taken out of the store is kept out of what comes later. A line that has some of it is covered before it
//! becomes an entry, which has the id that the line gives it; what undertext itself would write is refused.
//!
//! ```text
//! a line that was taken out, anywhere     the line that is in its place there
//! a line with a secret that was           the line with the secret covered, under a tombstone
//! an unfinished line with one             left where it is until it is finished
//! ```
//!
//! Invariant: a covered line is read as the same record, but for what it says.

use std::{cell::RefCell, rc::Rc};

use crate::{
    cover::Guard,
    json::Raw,
    model::LineId,
    store::{Came, KeptOut, NewLine, Store, StoreError, whole_lines},
    sync::SyncError,
    wire::{Envelope, Format},
};

/// The door of an archive, as it was when it was asked for last.
#[derive(Default)]
pub(crate) struct Doors(RefCell<Option<(KeptOut, Rc<Guard>)>>);

/// What is kept out of a store.
#[derive(Clone)]
pub(crate) struct Door {
    guard: Rc<Guard>,
    has_lines: bool,
}

/// How a line comes in.
pub(crate) enum Entering {
    /// Nothing of it is kept out.
    AsItIs,
    /// Something of it is, which makes it the record that it is, and cannot be covered.
    Fixed,
    /// Other bytes stand in its place.
    Covered {
        bytes: Vec<u8>,
        envelope: Envelope,
        /// The rule by which they were found when they were taken out.
        rule: Option<String>,
    },
}

impl Doors {
    /// Returns what is kept out of a store; the caller holds the archive's lock.
    pub(crate) fn door(&self, store: &dyn Store) -> Result<Door, StoreError> {
        let kept_out = store.kept_out()?;
        let has_lines = kept_out.has_lines;
        let mut held = self.0.borrow_mut();
        let guard = match &*held {
            Some((known, guard)) if *known == kept_out => Rc::clone(guard),
            _ => {
                let guard = Rc::new(Guard::new(&kept_out.secrets));
                *held = Some((kept_out, Rc::clone(&guard)));
                guard
            }
        };
        Ok(Door { guard, has_lines })
    }
}

impl Door {
    /// Returns how a line comes in.
    pub(crate) fn cover(
        &self,
        store: &dyn Store,
        line: &NewLine,
        (format, envelope): (&dyn Format, &Envelope),
    ) -> Result<Entering, SyncError> {
        let taken_out = if self.has_lines { found(store, line.id())? } else { None };
        let covered = taken_out.or_else(|| self.guard.cover(line.bytes()));
        let Some((bytes, rule)) = covered else { return Ok(Entering::AsItIs) };
        let record = Raw::object(&bytes);
        let fresh = record.map_or_else(Envelope::opaque, |record| format.envelope(record));
        Ok(if fresh.frame() == envelope.frame() {
            Entering::Covered { bytes, envelope: fresh, rule }
        } else {
            Entering::Fixed
        })
    }

    /// Refuses bytes that undertext itself would write, if they have something that was taken out.
    pub(crate) fn refuse(&self, bytes: &[u8]) -> Result<(), SyncError> {
        if self.guard.is_in(bytes) { Err(SyncError::KeptOut) } else { Ok(()) }
    }

    /// Returns whether an unfinished line has something that was taken out, or may end within it.
    pub(crate) fn keeps_out_unfinished(&self, line: &[u8]) -> bool {
        self.guard.is_in(line) || self.guard.may_cut(line)
    }

    /// Returns whether bytes have something that was taken out.
    pub(crate) fn keeps_out(&self, bytes: &[u8]) -> bool {
        self.guard.is_in(bytes)
    }
}

/// Bytes with something covered, and the rule by which it was found.
type CoveredBytes = (Vec<u8>, Option<String>);

/// Returns the line that replaces one that came elsewhere.
fn found(store: &dyn Store, line: LineId) -> Result<Option<CoveredBytes>, SyncError> {
    let Some(Came { session, entry, rule }) = store.buried(line)? else { return Ok(None) };
    let mut bytes = Vec::new();
    whole_lines(store, session, &[entry], &mut |_, line| bytes = line)?;
    Ok(Some((bytes, rule)))
}
