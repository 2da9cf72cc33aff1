//! Answers of a store that overlays recent operations on other data: every query is answered from both layers.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    model::{
        Card, Checkpoint, CheckpointNumber, Entry, EntryNumber, FileNumber, GenerationNumber,
        Glance, IdPrefix, Landmark, LineId, NameTag, Operation, OperationNumber, Origin, Place,
        Record, Run, SessionName, State, StoreId, Tie,
    },
    store::{
        ByteStore, CacheStore, Came, Cursor, DoorStore, FactStore, Fault, Listed, SessionFilter,
        SessionKey, Sieve, Sighting, Sizes, StoreError, Total, overlay::laid::Laid,
    },
};

/// A store with two layers.
pub(super) trait Layered {
    /// Returns the store's own id.
    fn own_id(&self) -> StoreId;

    /// Queries both layers in one snapshot.
    fn look<T>(
        &self,
        ask: impl FnOnce(&Laid<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError>;

    /// Answers [`DoorStore::sighting`].
    fn seen(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError> {
        self.look(|laid| laid.sighting(path))
    }

    /// Answers [`ByteStore::check`].
    fn check_all(
        &self,
        only: Option<SessionKey>,
        report: &mut dyn FnMut(Fault),
    ) -> Result<(), StoreError> {
        self.look(|laid| laid.check(only, report))
    }
}

/// Answers one query.
macro_rules! answer {
    ($store:ident, id) => {
        Ok($store.own_id())
    };
    ($store:ident, sighting, $path:ident) => {
        $store.seen($path)
    };
    ($store:ident, check, $only:ident, $report:ident) => {
        $store.check_all($only, $report)
    };
    ($store:ident, $question:ident $(, $argument:ident)*) => {
        $store.look(|laid| laid.$question($($argument),*))
    };
}

/// Implements one trait.
macro_rules! answers {
    ($trait:ident $(fn $question:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        impl<S: Layered> $trait for S {
            $(fn $question(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
                answer!(self, $question $(, $argument)*)
            })+
        }
    };
}

answers! { FactStore
    fn id() -> StoreId;
    fn names() -> Vec<(SessionKey, SessionName)>;
    fn beside(name: &SessionName) -> Vec<SessionName>;
    fn session(name: &SessionName) -> Option<SessionKey>;
    fn operations(session: SessionKey, range: Range<OperationNumber>) -> Vec<Operation>;
    fn entries(session: SessionKey, range: Range<EntryNumber>) -> Vec<Entry>;
    fn find(session: SessionKey, prefix: &IdPrefix) -> Vec<EntryNumber>;
    fn runs(session: SessionKey, generation: GenerationNumber, from: u64) -> Vec<Run>;
    fn growths(session: SessionKey, operations: Range<OperationNumber>) -> Vec<(OperationNumber, Run)>;
    fn checkpoints(session: SessionKey, range: Range<CheckpointNumber>) -> Vec<(OperationNumber, Checkpoint)>;
    fn origins(session: SessionKey, entries: Range<EntryNumber>) -> Vec<(OperationNumber, Origin)>;
    fn since(cursor: Option<&Cursor>) -> (Vec<SessionKey>, Cursor);
}

answers! { ByteStore
    fn lines(session: SessionKey, entries: &[EntryNumber], each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>)) -> ();
    fn sift(session: SessionKey, range: Range<EntryNumber>, sieve: &Sieve, each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>)) -> ();
    fn lengths(session: SessionKey, range: Range<EntryNumber>) -> Vec<u64>;
    fn kept(session: SessionKey, operation: OperationNumber, at: u64) -> Vec<u8>;
    fn check(only: Option<SessionKey>, report: &mut dyn FnMut(Fault)) -> ();
    fn sizes() -> Sizes;
    fn totals() -> Vec<Total>;
    fn tally(filter: &SessionFilter) -> BTreeMap<String, u64>;
}

answers! { CacheStore
    fn state(session: SessionKey) -> State;
    fn card(session: SessionKey) -> Card;
    fn sessions(filter: &SessionFilter) -> Vec<Listed>;
    fn files(place: &Place) -> Vec<(SessionKey, SessionName, FileNumber)>;
    fn records(session: SessionKey, range: Range<EntryNumber>) -> Vec<Record>;
    fn named(session: SessionKey, low: NameTag, high: NameTag) -> Vec<EntryNumber>;
    fn landmark(session: SessionKey, landmark: Landmark, range: Range<EntryNumber>) -> Option<EntryNumber>;
    fn twins(session: SessionKey) -> Vec<NameTag>;
    fn ties(session: SessionKey) -> Vec<(GenerationNumber, Vec<Tie>)>;
    fn tied(format: &str, tie: &Tie, besides: Option<SessionKey>) -> Vec<(SessionKey, SessionName)>;
    fn glances(sessions: &[SessionKey]) -> Vec<(SessionKey, Glance)>;
    fn counts(session: SessionKey, range: Range<EntryNumber>, rule: u64) -> Vec<(EntryNumber, Vec<u64>)>;
}

answers! { DoorStore
    fn places() -> Vec<Vec<u8>>;
    fn sighting(path: &[u8]) -> Option<Sighting>;
    fn buried(line: LineId) -> Option<Came>;
}
