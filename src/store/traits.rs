//! The traits that every store implements.

use std::{collections::BTreeMap, ops::Range, time::Duration};

use crate::{
    model::{
        Card, Checkpoint, CheckpointNumber, Entry, EntryNumber, FileNumber, GenerationNumber,
        Glance, IdPrefix, Landmark, LineId, NameTag, Operation, OperationNumber, Origin, Place,
        Record, Run, SessionName, State, StoreId, Tie,
    },
    store::{
        Came, Commit, Committed, Coverings, Cursor, Derived, Fault, Listed, SessionFilter,
        SessionKey, Sieve, Sighting, Sizes, StoreError, Total,
    },
};

/// The facts of a store.
pub trait FactStore {
    /// Returns the store's own id.
    fn id(&self) -> Result<StoreId, StoreError>;

    /// Returns the names of all sessions.
    fn names(&self) -> Result<Vec<(SessionKey, SessionName)>, StoreError>;

    /// Returns the names next to one, like [`nearest`](crate::store::nearest) among all names.
    fn beside(&self, name: &SessionName) -> Result<Vec<SessionName>, StoreError>;

    /// Returns the session with this name.
    fn session(&self, name: &SessionName) -> Result<Option<SessionKey>, StoreError>;

    /// Returns the operations with these numbers, in order.
    fn operations(
        &self,
        session: SessionKey,
        range: Range<OperationNumber>,
    ) -> Result<Vec<Operation>, StoreError>;

    /// Returns the entries with these numbers, in order.
    fn entries(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<Entry>, StoreError>;

    /// Returns the numbers of the entries whose ids begin with a prefix, in order.
    fn find(&self, session: SessionKey, prefix: &IdPrefix) -> Result<Vec<EntryNumber>, StoreError>;

    /// Returns the runs of a generation that end after `from`, in order; for 0 also those without entries.
    fn runs(
        &self,
        session: SessionKey,
        generation: GenerationNumber,
        from: u64,
    ) -> Result<Vec<Run>, StoreError>;

    /// Returns the runs added by `operations`, paired with their operation, sorted by operation and generation.
    fn growths(
        &self,
        session: SessionKey,
        operations: Range<OperationNumber>,
    ) -> Result<Vec<(OperationNumber, Run)>, StoreError>;

    /// Returns the checkpoints with these numbers, paired with the operation that set them, in order.
    fn checkpoints(
        &self,
        session: SessionKey,
        range: Range<CheckpointNumber>,
    ) -> Result<Vec<(OperationNumber, Checkpoint)>, StoreError>;

    /// Returns the origins of these entries, paired with the operation that replaced them, in order. An undone and redone
    /// replacement appears once for each operation.
    fn origins(
        &self,
        session: SessionKey,
        entries: Range<EntryNumber>,
    ) -> Result<Vec<(OperationNumber, Origin)>, StoreError>;

    /// Returns the sessions with operations since a cursor, by key, and a new cursor. Without a cursor, or with one from another
    /// history (of a transaction that was rolled back, or of a store that was restored), returns all sessions.
    fn since(&self, cursor: Option<&Cursor>) -> Result<(Vec<SessionKey>, Cursor), StoreError>;
}

/// The bytes of a store.
pub trait ByteStore {
    /// Passes on the lines of these entries, in this order, each verified against its entry's id, or the [`StoreError::Corrupt`]
    /// of a damaged or missing one.
    fn lines(
        &self,
        session: SessionKey,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError>;

    /// Passes on the lines of these entries that pass a sieve, in order, each verified as by [`ByteStore::lines`]. May pass on
    /// further lines. Passes on the error of each damaged line.
    fn sift(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        sieve: &Sieve,
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError>;

    /// Returns the length of the line of each of these entries, in order.
    fn lengths(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<u64>, StoreError>;

    /// Returns a file that an operation stored whole. `at` counts its containers, then its sidecars, from 0.
    fn kept(
        &self,
        session: SessionKey,
        operation: OperationNumber,
        at: u64,
    ) -> Result<Vec<u8>, StoreError>;

    /// Reports every fault of the bytes and of the store's own structure, and never stops at the first. With a session, reads no
    /// bytes of other sessions.
    fn check(
        &self,
        only: Option<SessionKey>,
        report: &mut dyn FnMut(Fault),
    ) -> Result<(), StoreError>;

    /// Returns the sizes of the store.
    fn sizes(&self) -> Result<Sizes, StoreError>;

    /// Returns the totals of each format, by name.
    fn totals(&self) -> Result<Vec<Total>, StoreError>;

    /// Counts the sessions that match a filter, ignoring its limit, by format.
    fn tally(&self, filter: &SessionFilter) -> Result<BTreeMap<String, u64>, StoreError>;
}

/// The rows and caches that can be rebuilt from facts and bytes.
pub trait CacheStore {
    /// Returns the state of a session.
    fn state(&self, session: SessionKey) -> Result<State, StoreError>;

    /// Returns the card of a session, which lists show.
    fn card(&self, session: SessionKey) -> Result<Card, StoreError>;

    /// Returns the sessions that lists show, newest first.
    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError>;

    /// Returns the sessions with a file at this place, each with the file's number, in order.
    fn files(
        &self,
        place: &Place,
    ) -> Result<Vec<(SessionKey, SessionName, FileNumber)>, StoreError>;

    /// Returns the records of the entries with these numbers, in order.
    fn records(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<Record>, StoreError>;

    /// Returns the entries whose records have a tag from `low` to `high`, in order.
    fn named(
        &self,
        session: SessionKey,
        low: NameTag,
        high: NameTag,
    ) -> Result<Vec<EntryNumber>, StoreError>;

    /// Returns the last landmark of a kind among these entries.
    fn landmark(
        &self,
        session: SessionKey,
        landmark: Landmark,
        range: Range<EntryNumber>,
    ) -> Result<Option<EntryNumber>, StoreError>;

    /// Returns the names that belong to several entries.
    fn twins(&self, session: SessionKey) -> Result<Vec<NameTag>, StoreError>;

    /// Returns the ties of each generation that has any, in order.
    fn ties(&self, session: SessionKey) -> Result<Vec<(GenerationNumber, Vec<Tie>)>, StoreError>;

    /// Returns the sessions of a format that have a tie, by name, except `besides`.
    fn tied(
        &self,
        format: &str,
        tie: &Tie,
        besides: Option<SessionKey>,
    ) -> Result<Vec<(SessionKey, SessionName)>, StoreError>;

    /// Returns the cached glances of these sessions. They may be out of date.
    fn glances(&self, sessions: &[SessionKey]) -> Result<Vec<(SessionKey, Glance)>, StoreError>;

    /// Returns the cached token counts of these entries under a rule: for each entry the counts of its messages, in order.
    fn counts(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        rule: u64,
    ) -> Result<Vec<(EntryNumber, Vec<u64>)>, StoreError>;
}

/// Whether an incoming file or line is new, or was redacted before.
pub trait DoorStore {
    /// Returns the places of all files of sessions, without duplicates, sorted by their encoding.
    fn places(&self) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Returns the cached sighting of the file with this path. Without one, the file must be compared.
    fn sighting(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError>;

    /// Returns an entry that had this line before it was redacted, if there is one.
    fn buried(&self, line: LineId) -> Result<Option<Came>, StoreError>;
}

/// All queries of a store.
pub trait Reading: FactStore + ByteStore + CacheStore + DoorStore {}

impl<T: FactStore + ByteStore + CacheStore + DoorStore> Reading for T {}

/// Storage for facts, bytes and derived rows.
pub trait Store: Reading + Send {
    /// Begins to write. Only one transaction can be open at a time. Until it ends no one else changes anything, so data read in
    /// the meantime stays valid.
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError>;

    /// Returns true if derived rows were made under older rules than this program's. Rows under newer rules are left alone.
    fn is_stale(&self) -> Result<bool, StoreError>;

    /// Opens another reader of the same store, for another thread. Returns nothing if the store allows only one, or has lines so
    /// long that only one should be in memory.
    fn reader(&self) -> Option<Box<dyn Store>>;

    /// Stops verifying lines against their entries' ids, for work that counts only if a check of the same lines finds no fault.
    fn leave_to_check(&mut self) {}

    /// Compresses all lines as small as possible, while other programs can continue. Reports how many lines of how many are done.
    /// Returns how many parts are damaged and were not changed.
    fn pack(&self, each: &mut dyn FnMut(u64, u64)) -> Result<u64, StoreError>;

    /// Removes all traces of redacted bytes from the disk, including empty pages and the log. Waits up to `patience` for readers
    /// of an older state.
    fn purge(&self, patience: Duration) -> Result<(), StoreError>;
}

/// A write in progress. Dropping it without [`Transaction::commit`] rolls it back.
pub trait Transaction {
    /// Adds an operation. Returns [`StoreError::Conflict`] if the session has newer operations. A refused operation adds nothing,
    /// and the transaction can continue.
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError>;

    /// Replaces all derived rows of a session.
    fn derive(&mut self, session: SessionKey, derived: &Derived) -> Result<(), StoreError>;

    /// Records that the derived rows of all sessions now follow this program's rules, and recomputes the totals.
    fn freshened(&mut self) -> Result<(), StoreError>;

    /// Stores sightings, replacing earlier ones of the same path.
    fn sight(&mut self, sightings: &[Sighting]) -> Result<(), StoreError>;

    /// Forgets the sightings of the files with these paths.
    fn unsight(&mut self, is_meant: &dyn Fn(&[u8]) -> bool) -> Result<(), StoreError>;

    /// Caches glances of sessions.
    fn glance(&mut self, glances: &[(SessionKey, Glance)]) -> Result<(), StoreError>;

    /// Replaces lines that have new tombstones with bytes of the same length, and files that are stored whole, and deletes user
    /// texts. All entries and files that share a body must be named. Nothing of the old bytes remains. The caller must derive the
    /// rows of the sessions.
    fn cover(&mut self, coverings: Coverings) -> Result<(), StoreError>;

    /// Caches token counts of entries.
    fn count(
        &mut self,
        session: SessionKey,
        rule: u64,
        counts: &[(EntryNumber, Vec<u64>)],
    ) -> Result<(), StoreError>;

    /// Makes everything durable.
    fn commit(self: Box<Self>) -> Result<Committed, StoreError>;
}

/// Passes on the lines of these entries, in this order. A damaged or missing one is an error.
pub fn whole_lines(
    store: &(impl ByteStore + ?Sized),
    session: SessionKey,
    entries: &[EntryNumber],
    each: &mut dyn FnMut(EntryNumber, Vec<u8>),
) -> Result<(), StoreError> {
    let mut damaged = None;
    store.lines(session, entries, &mut |entry, line| match line {
        Ok(line) if damaged.is_none() => each(entry, line),
        Ok(_) => {}
        Err(error) => damaged = damaged.take().or(Some(error)),
    })?;
    damaged.map_or(Ok(()), Err)
}
