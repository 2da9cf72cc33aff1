//! Answers for a store that overlays other data: every query is answered from both layers.
//!
//! Such a store provides `look`, which queries both layers in one snapshot, and answers four queries itself: `own_id`, `seen`,
//! `glanced` and `check_all`.

/// Answers one query.
macro_rules! answer {
    ($store:ident, id) => {
        $store.own_id()
    };
    ($store:ident, sighting, $path:ident) => {
        $store.seen($path)
    };
    ($store:ident, glances, $sessions:ident) => {
        $store.glanced($sessions)
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
    ($trait:ident for $store:ty { $(fn $question:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+ }) => {
        impl $crate::store::traits::$trait for $store {
            $(fn $question(&self, $($argument: $type),*) -> Result<$answer, $crate::store::StoreError> {
                $crate::store::answer::answer!(self, $question $(, $argument)*)
            })+
        }
    };
}

/// Implements all traits for reading.
macro_rules! answer_by_look {
    ($store:ty) => {
        $crate::store::answer::answers!(FactStore for $store {
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
        });
        $crate::store::answer::answers!(ByteStore for $store {
            fn lines(session: SessionKey, entries: &[EntryNumber], each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>)) -> ();
            fn sift(session: SessionKey, range: Range<EntryNumber>, sieve: &Sieve, each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>)) -> ();
            fn lengths(session: SessionKey, range: Range<EntryNumber>) -> Vec<u64>;
            fn kept(session: SessionKey, operation: OperationNumber, at: u64) -> Vec<u8>;
            fn check(only: Option<SessionKey>, report: &mut dyn FnMut(Fault)) -> ();
            fn sizes() -> Sizes;
            fn totals() -> Vec<Total>;
            fn tally(filter: &SessionFilter) -> BTreeMap<String, u64>;
        });
        $crate::store::answer::answers!(CacheStore for $store {
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
        });
        $crate::store::answer::answers!(DoorStore for $store {
            fn places() -> Vec<Vec<u8>>;
            fn sighting(path: &[u8]) -> Option<Sighting>;
            fn buried(line: LineId) -> Option<Came>;
        });
    };
}

pub(super) use {answer, answer_by_look, answers};
