//! The traits that each store has.

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

    /// Returns the names that stand next to one, as [`nearest`](crate::store::nearest) does of all.
    fn beside(&self, name: &SessionName) -> Result<Vec<SessionName>, StoreError>;

    /// Returns the session of this name.
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

    /// Returns the numbers of the entries whose ids begin so, in order.
    fn find(&self, session: SessionKey, prefix: &IdPrefix) -> Result<Vec<EntryNumber>, StoreError>;

    /// Returns the runs of a generation that end behind `from`, in order; from 0 on, those without entries too.
    fn runs(
        &self,
        session: SessionKey,
        generation: GenerationNumber,
        from: u64,
    ) -> Result<Vec<Run>, StoreError>;

    /// Returns the runs that the operations with these numbers added, each behind its operation: by operation, then by
    /// generation, in order.
    fn growths(
        &self,
        session: SessionKey,
        operations: Range<OperationNumber>,
    ) -> Result<Vec<(OperationNumber, Run)>, StoreError>;

    /// Returns the checkpoints with these numbers, each behind the operation that gave it, in order.
    fn checkpoints(
        &self,
        session: SessionKey,
        range: Range<CheckpointNumber>,
    ) -> Result<Vec<(OperationNumber, Checkpoint)>, StoreError>;

    /// Returns the origins of the entries with these numbers, each behind the operation that replaced it, in order;
    /// one that was taken back and done again is there once for each operation.
    fn origins(
        &self,
        session: SessionKey,
        entries: Range<EntryNumber>,
    ) -> Result<Vec<(OperationNumber, Origin)>, StoreError>;

    /// Returns the sessions that took in an operation since a cursor was given, in the order of their keys, and a cursor for
    /// the next time; without one, all sessions, as with one of another history: of a transaction that was dropped, or of a store
    /// that was put back.
    fn since(&self, cursor: Option<&Cursor>) -> Result<(Vec<SessionKey>, Cursor), StoreError>;
}

/// The bytes of a store.
pub trait ByteStore {
    /// Hands over the lines of these entries, in this order, each checked against its entry's id; of a line that is
    /// damaged or missing, the [`StoreError::Corrupt`] that says so.
    fn lines(
        &self,
        session: SessionKey,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError>;

    /// Hands over the lines of the entries with these numbers that a sieve lets through, in order, each checked as by
    /// [`ByteStore::lines`]; it may let through others too. In the place of each line that is damaged it hands over the error.
    fn sift(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        sieve: &Sieve,
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError>;

    /// Returns how many bytes the lines of the entries with these numbers have, in order.
    fn lengths(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<u64>, StoreError>;

    /// Returns the bytes of a file that an operation kept whole: `at` counts its containers, then its sidecars, from 0.
    fn kept(
        &self,
        session: SessionKey,
        operation: OperationNumber,
        at: u64,
    ) -> Result<Vec<u8>, StoreError>;

    /// Reports every fault of the bytes and of the store's own structure, and never stops at the first. With a session, it reads
    /// no bytes of other sessions.
    fn check(
        &self,
        only: Option<SessionKey>,
        report: &mut dyn FnMut(Fault),
    ) -> Result<(), StoreError>;

    /// Returns how much the store takes up.
    fn sizes(&self) -> Result<Sizes, StoreError>;

    /// Returns how much is held of the sessions of each format, by its name.
    fn totals(&self) -> Result<Vec<Total>, StoreError>;

    /// Counts the sessions that a filter lets through, whatever its limit, by their formats.
    fn tally(&self, filter: &SessionFilter) -> Result<BTreeMap<String, u64>, StoreError>;
}

/// The rows and caches that can be rebuilt from facts and bytes.
pub trait CacheStore {
    /// Returns the state of a session.
    fn state(&self, session: SessionKey) -> Result<State, StoreError>;

    /// Returns the card of a session, which lists show.
    fn card(&self, session: SessionKey) -> Result<Card, StoreError>;

    /// Returns the sessions that lists show, the newest first.
    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError>;

    /// Returns the sessions that have a file at this place, each with the file's number, in order.
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

    /// Returns the entries whose records may have a name, in order: those with a tag from `low` to `high`.
    fn named(
        &self,
        session: SessionKey,
        low: NameTag,
        high: NameTag,
    ) -> Result<Vec<EntryNumber>, StoreError>;

    /// Returns the last of the entries with these numbers that is a landmark of a kind.
    fn landmark(
        &self,
        session: SessionKey,
        landmark: Landmark,
        range: Range<EntryNumber>,
    ) -> Result<Option<EntryNumber>, StoreError>;

    /// Returns the names that stand for more than one entry.
    fn twins(&self, session: SessionKey) -> Result<Vec<NameTag>, StoreError>;

    /// Returns the ties of the generations that have any, in order.
    fn ties(&self, session: SessionKey) -> Result<Vec<(GenerationNumber, Vec<Tie>)>, StoreError>;

    /// Returns the sessions of a format that have a tie, in the order of their names, without the one that is told of.
    fn tied(
        &self,
        format: &str,
        tie: &Tie,
        besides: Option<SessionKey>,
    ) -> Result<Vec<(SessionKey, SessionName)>, StoreError>;

    /// Returns what is known of these sessions at a glance, as far as anything is. It is a cache: an older one may be returned.
    fn glances(&self, sessions: &[SessionKey]) -> Result<Vec<(SessionKey, Glance)>, StoreError>;

    /// Returns the token counts that are kept of the entries with these numbers, under a rule: for each entry those of its
    /// messages, in order. It is a cache: without it, they are counted.
    fn counts(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        rule: u64,
    ) -> Result<Vec<(EntryNumber, Vec<u64>)>, StoreError>;
}

/// Whether an incoming file or line is new, or was redacted before.
pub trait DoorStore {
    /// Returns where the files of all sessions lie, each once and in the order of the bytes that a place is written as.
    fn places(&self) -> Result<Vec<Vec<u8>>, StoreError>;

    /// Returns the last sighting of the file with this path. It is a cache: without it, the file is compared.
    fn sighting(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError>;

    /// Returns an entry for which this line came, and which has another one in its place, if any session has one.
    fn buried(&self, line: LineId) -> Result<Option<Came>, StoreError>;
}

/// Answers all questions about what is kept.
pub trait Reading: FactStore + ByteStore + CacheStore + DoorStore {}

impl<T: FactStore + ByteStore + CacheStore + DoorStore> Reading for T {}

/// A place where facts, bytes and derived rows are kept.
pub trait Store: Reading + Send {
    /// Begins to write. Until the transaction ends nobody else changes anything, so that data read meanwhile holds
    /// when it is built upon; only one is open at a time.
    fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError>;

    /// Returns whether derived rows were made under older rules than this program's; those of newer rules are left alone.
    fn is_stale(&self) -> Result<bool, StoreError>;

    /// Returns another look at the same store, with which another thread reads; nothing if this is the only one, or if its
    /// lines are so long that only one is to be in memory.
    fn reader(&self) -> Option<Box<dyn Store>>;

    /// Compares no line with its entry's id any more, for work that counts only if a check of the same lines finds no fault.
    fn leave_to_check(&mut self) {}

    /// Keeps all lines in as little room as it can, while other programs go on; tells how many lines of how many are done,
    /// and returns how many parts are damaged and stay as they are.
    fn pack(&self, each: &mut dyn FnMut(u64, u64)) -> Result<u64, StoreError>;

    /// Leaves nothing on the disk of bytes that were taken out, in no empty page and in no log; waits so long for who reads an
    /// older state.
    fn purge(&self, patience: Duration) -> Result<(), StoreError>;
}

/// A write in progress. Dropped without [`Transaction::commit`], it leaves nothing behind.
pub trait Transaction {
    /// Adds an operation, or refuses it as a [`StoreError::Conflict`] when the session has moved on. One that is refused has
    /// added nothing, and the transaction can go on.
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError>;

    /// Replaces all derived rows of a session.
    fn derive(&mut self, session: SessionKey, derived: &Derived) -> Result<(), StoreError>;

    /// Says that the derived rows of all sessions are made under this program's rules now, and makes the sums over them again.
    fn freshened(&mut self) -> Result<(), StoreError>;

    /// Keeps sightings, each in place of an earlier one of its path.
    fn sight(&mut self, sightings: &[Sighting]) -> Result<(), StoreError>;

    /// Forgets the sightings of the files with these paths.
    fn unsight(&mut self, is_meant: &dyn Fn(&[u8]) -> bool) -> Result<(), StoreError>;

    /// Keeps what is known of sessions at a glance.
    fn glance(&mut self, glances: &[(SessionKey, Glance)]) -> Result<(), StoreError>;

    /// Puts other bytes in place of lines, the same number, for which tombstones were added, and of files that are kept
    /// whole. Each entry and each file that has one of these bodies is named, and what was there is kept nowhere. Takes words
    /// out, too. The caller derives the rows of the sessions.
    fn cover(&mut self, coverings: Coverings) -> Result<(), StoreError>;

    /// Keeps token counts of entries.
    fn count(
        &mut self,
        session: SessionKey,
        rule: u64,
        counts: &[(EntryNumber, Vec<u64>)],
    ) -> Result<(), StoreError>;

    /// Makes all of it durable.
    fn commit(self: Box<Self>) -> Result<Committed, StoreError>;
}

/// Hands over the lines of these entries, in this order; the first one that is damaged or missing is an error.
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
