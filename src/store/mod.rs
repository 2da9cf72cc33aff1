//! Persistence: the trait between what is known about sessions and where it is kept.
//!
//! A store holds three classes of data. **Facts** (see [`crate::model::Facts`]) arrive with an operation and never
//! change. **Bytes** are lines, addressed by content; how they are packed is the store's own affair. **Derived** rows
//! ([`Record`], twins, [`Tie`], [`Card`]) are computed by the caller, arrive with the facts and may be replaced by
//! [`Store::derive`]. A store decides nothing about sessions: it keeps what it is given, refuses what contradicts what it
//! has, and checks what it reads.
//!
//! Invariant: [`Store::commit`] is one atomic and durable step; when it returns, everything in it survives a power cut.
//! Between [`Store::gather`] and [`Store::settle`] all commits together are that step.
//! Invariant: absence is `None` or an empty answer; an error means that the store failed or is damaged.

mod error;
mod memory;
mod sqlite;

pub use error::StoreError;
pub use memory::MemoryStore;
pub use sqlite::{Access, FORMAT_VERSION, RULES_VERSION, SqliteStore};

use std::ops::Range;

use crate::model::line::TEXT_MIN;
use crate::model::{
    Card, Checkpoint, Entry, EntryId, Facts, IdPrefix, LineId, Mark, NameTag, Operation,
    OperationId, Origin, Position, Record, Run, SessionName, Tie, Timestamp,
};

/// The number under which a store knows a session; it means nothing outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey(pub i64);

/// Where a session stands: what the next operation must know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tip {
    /// The newest operation.
    pub newest: Option<Newest>,
    /// How many files there are.
    pub files: u64,
    /// How many generations there are.
    pub generations: u64,
    /// How many checkpoints have been given.
    pub checkpoints: u64,
    /// The newest checkpoint's operation and place.
    pub checkpoint: Option<(u64, Position)>,
    /// The values that are set, in the order of their names.
    pub marks: Vec<(String, String)>,
    /// Where the current branch stands.
    pub position: Option<Position>,
    /// The newest run of the generation in which the current branch stands.
    pub growth: Option<Run>,
}

/// The newest operation of a session, the token of compare-and-swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// Its number.
    pub n: u64,
    /// Its hash.
    pub hash: OperationId,
    /// When it was.
    pub at: Timestamp,
    /// How many entries there are since.
    pub entries: u64,
}

impl Tip {
    /// Returns how many operations there are.
    pub fn operations(&self) -> u64 {
        self.newest.map_or(0, |newest| newest.n)
    }

    /// Returns how many entries there are.
    pub fn entries(&self) -> u64 {
        self.newest.map_or(0, |newest| newest.entries)
    }

    /// Returns when the newest operation was.
    pub fn at(&self) -> Timestamp {
        self.newest.map_or(Timestamp::default(), |newest| newest.at)
    }

    /// Returns the hash of the newest operation.
    pub fn hash(&self) -> Option<OperationId> {
        self.newest.map(|newest| newest.hash)
    }

    /// Returns the value of a mark.
    pub fn mark(&self, name: &str) -> Option<&str> {
        self.marks.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Returns the name of the current branch.
    pub fn current(&self) -> &str {
        self.mark(Mark::CURRENT).unwrap_or("main")
    }
}

/// Which kinds of facts a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// The entries of the operations.
    Entries,
    /// Files.
    Files,
    /// Generations.
    Generations,
    /// Runs.
    Runs,
    /// Moves.
    Moves,
    /// Marks.
    Marks,
    /// Checkpoints.
    Checkpoints,
    /// Origins.
    Origins,
    /// Rotations.
    Rotations,
}

impl FactKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Entries,
        Self::Files,
        Self::Generations,
        Self::Runs,
        Self::Moves,
        Self::Marks,
        Self::Checkpoints,
        Self::Origins,
        Self::Rotations,
    ];
}

/// How an entry is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Find {
    /// By its whole id.
    Id(EntryId),
    /// By the first digits of its id.
    Prefix(IdPrefix),
    /// By the tags that its record's name may have, both included.
    Name(NameTag, NameTag),
}

/// A line to be kept, in the order of the facts' entries.
///
/// Invariant: the id is that of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewLine {
    bytes: Vec<u8>,
    id: LineId,
    texts: Vec<Range<usize>>,
    /// The hashes of the texts, once they were asked for.
    text_ids: Vec<[u8; 32]>,
    /// For each of these strings what it was cut from, if that is known.
    wholes: Vec<Option<Whole>>,
}

/// A string of which another one holds the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole {
    hash: [u8; 32],
    size: usize,
    /// How many bytes both begin with.
    common: usize,
}

impl NewLine {
    /// Makes a line of its bytes and of where its long strings lie in them.
    pub fn new(bytes: Vec<u8>, texts: Vec<Range<usize>>) -> Self {
        Self { id: LineId::of(&bytes), bytes, texts, text_ids: Vec::new(), wholes: Vec::new() }
    }

    /// Hashes the long strings, which a store that keeps them once asks for.
    pub fn hash_texts(&mut self) {
        if self.text_ids.is_empty() {
            let texts = self.texts.iter().map(|text| self.bytes.get(text.clone()));
            let hash = |text: Option<&[u8]>| *blake3::hash(text.unwrap_or_default()).as_bytes();
            self.text_ids = texts.map(hash).collect();
        }
    }

    /// Says from which line this one was made by cutting strings, so that what is left of them need not be kept again.
    pub fn cut_from(&mut self, whole: &[u8], texts: &[Range<usize>]) {
        if texts.len() != self.texts.len() {
            return;
        }
        let pair = |(own, whole): (Option<&[u8]>, Option<&[u8]>)| {
            let (own, whole) = (own?, whole?);
            let common = own.iter().zip(whole).take_while(|(a, b)| a == b).count();
            let is_cut = common >= TEXT_MIN && own != whole;
            is_cut.then(|| Whole {
                hash: *blake3::hash(whole).as_bytes(),
                size: whole.len(),
                common,
            })
        };
        let own = self.texts.iter().map(|text| self.bytes.get(text.clone()));
        let wholes = texts.iter().map(|text| whole.get(text.clone()));
        self.wholes = own.zip(wholes).map(pair).collect();
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the id.
    pub fn id(&self) -> LineId {
        self.id
    }
}

/// The derived rows of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Derived {
    /// One for each entry, in order.
    pub records: Vec<Record>,
    /// The names that more than one entry has, or that were missing when they were first referred to.
    pub twins: Vec<NameTag>,
    /// Of each generation that has any, its ties, in order.
    pub ties: Vec<(u64, Vec<Tie>)>,
    /// What lists show.
    pub card: Card,
}

/// One operation with all that it brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The session.
    pub session: SessionName,
    /// The newest operation that the caller knows of; another one is a conflict.
    pub expected: Option<OperationId>,
    /// The operation, sealed.
    pub operation: Operation,
    /// Its facts.
    pub facts: Facts,
    /// The lines of its entries.
    pub lines: Vec<NewLine>,
    /// The records of its entries.
    pub records: Vec<Record>,
    /// Names that have become twins.
    pub twins: Vec<NameTag>,
    /// The ties of generations, in the place of those that they had.
    pub ties: Vec<(u64, Vec<Tie>)>,
    /// What lists show of the session from now on; none leaves it as it is.
    pub card: Option<Card>,
}

impl Commit {
    /// Returns why this cannot follow what a session holds, if it cannot.
    ///
    /// Every store asks before it adds anything, so that no fault of a caller becomes a fact.
    fn fault(
        &self,
        newest: Option<&Newest>,
        link: impl Fn(u64) -> Option<EntryId>,
    ) -> Option<StoreError> {
        if self.expected != newest.map(|newest| newest.hash) {
            return Some(StoreError::Conflict);
        }
        let refused = |why: &str| Some(StoreError::Refused(why.to_owned()));
        let operation = &self.operation;
        if operation.n != newest.map_or(1, |newest| newest.n + 1) {
            return refused("the operation's number does not follow");
        }
        let entries = &self.facts.entries;
        if operation.first != newest.map_or(1, |newest| newest.entries + 1)
            || operation.count != entries.len() as u64
        {
            return refused("the operation's entries do not follow");
        }
        if self.lines.len() != entries.len() || self.records.len() != entries.len() {
            return refused("an entry has no line or no record");
        }
        for ((n, entry), line) in (operation.first..).zip(entries).zip(&self.lines) {
            let before = match entry.link {
                None => None,
                Some(at) if at >= n => return refused("an entry is linked to a later one"),
                Some(at) => match at.checked_sub(operation.first) {
                    Some(new) => {
                        usize::try_from(new).ok().and_then(|i| entries.get(i)).map(|e| e.id)
                    }
                    None => link(at),
                },
            };
            if entry.n != n
                || entry.link.is_some() != before.is_some()
                || entry.id != EntryId::of(before, line.id)
            {
                return refused("an entry's id is not that of its line");
            }
        }
        if operation.hash != operation.seal(self.expected, &self.session, &self.facts) {
            return refused("the operation's hash does not cover it");
        }
        None
    }
}

/// What a list of sessions is narrowed by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only this format.
    pub format: Option<String>,
    /// Only sessions that work in this folder.
    pub folder: Option<String>,
    /// Only sessions whose id begins so.
    pub prefix: Option<String>,
    /// Only sessions with this title.
    pub title: Option<String>,
    /// Only sessions that were active then or later.
    pub since: Option<Timestamp>,
    /// Also those that are hidden.
    pub hidden: bool,
    /// Also the sub-agents of sessions that are there.
    pub sub_agents: bool,
    /// The newest so many.
    pub limit: Option<usize>,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The store's number.
    pub key: SessionKey,
    /// The name.
    pub name: SessionName,
    /// What to show.
    pub card: Card,
}

/// Something wrong that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The session, if one is concerned.
    pub session: Option<SessionKey>,
    /// What is damaged, such as `entry 12` or `segment 3`.
    pub item: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What a store takes up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// How many lines there are.
    pub lines: u64,
    /// The bytes of all lines as they arrived.
    pub raw: u64,
    /// The bytes of all lines as they are kept.
    pub kept: u64,
    /// How many long strings were met first in some line.
    pub texts: u64,
    /// The bytes of the whole store.
    pub stored: u64,
}

/// A file as it was when all of it was in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Where it lies.
    pub path: Vec<u8>,
    /// Its inode.
    pub inode: u64,
    /// Its length.
    pub length: u64,
    /// When its content was changed, in nanoseconds.
    pub modified: i64,
    /// When anything about it was changed, in nanoseconds.
    pub changed: i64,
}

/// A place where facts, bytes and derived rows are kept.
pub trait Store: Send {
    /// Returns the sessions that lists show, the newest first.
    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError>;

    /// Returns the names of all sessions, by the facts alone.
    fn names(&self) -> Result<Vec<(SessionKey, SessionName)>, StoreError>;

    /// Returns the store's own id: the hash of its first operation, which no other store has.
    fn id(&self) -> Result<Option<OperationId>, StoreError>;

    /// Returns the session of this name.
    fn session(&self, name: &SessionName) -> Result<Option<SessionKey>, StoreError>;

    /// Returns where a session stands.
    fn tip(&self, session: SessionKey) -> Result<Tip, StoreError>;

    /// Returns the operations with these numbers, in order.
    fn operations(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<Operation>, StoreError>;

    /// Returns the operations that undo another, each with the one that it undoes, in order.
    fn undos(&self, session: SessionKey) -> Result<Vec<(u64, u64)>, StoreError>;

    /// Returns, for each operation with one of these numbers, its facts of these kinds, in order.
    fn facts(
        &self,
        session: SessionKey,
        range: Range<u64>,
        kinds: &[FactKind],
    ) -> Result<Vec<(u64, Facts)>, StoreError>;

    /// Returns the checkpoints with these numbers, each behind the operation that gave it, in order.
    fn checkpoints(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<(u64, Checkpoint)>, StoreError>;

    /// Returns the origins of the entries with these numbers, each behind the operation that replaced it, in order.
    fn origins(
        &self,
        session: SessionKey,
        entries: Range<u64>,
    ) -> Result<Vec<(u64, Origin)>, StoreError>;

    /// Returns where every branch stands, hidden ones left out, in the order of their names.
    fn branches(&self, session: SessionKey) -> Result<Vec<(String, Position)>, StoreError>;

    /// Returns the sessions that have a file with this path, each with the file's number, in order.
    fn files(&self, path: &[u8]) -> Result<Vec<(SessionKey, SessionName, u64)>, StoreError>;

    /// Returns the runs of a generation that end behind `from`, in order.
    fn runs(&self, session: SessionKey, generation: u64, from: u64)
    -> Result<Vec<Run>, StoreError>;

    /// Returns the entries with these numbers, in order.
    fn entries(&self, session: SessionKey, range: Range<u64>) -> Result<Vec<Entry>, StoreError>;

    /// Returns the ids and the lengths of the lines of the entries with these numbers, in order.
    fn line_ids(
        &self,
        session: SessionKey,
        range: Range<u64>,
    ) -> Result<Vec<(LineId, u64)>, StoreError>;

    /// Returns the numbers of the entries that match, in order; by name they are candidates.
    fn find(&self, session: SessionKey, find: &Find) -> Result<Vec<u64>, StoreError>;

    /// Hands over the lines of these entries, in this order, each checked against its entry's id.
    fn lines(
        &self,
        session: SessionKey,
        entries: &[u64],
        each: &mut dyn FnMut(u64, Vec<u8>),
    ) -> Result<(), StoreError>;

    /// Returns the records of the entries with these numbers, in order.
    fn records(&self, session: SessionKey, range: Range<u64>) -> Result<Vec<Record>, StoreError>;

    /// Returns the last of the entries with these numbers that is a boundary.
    fn boundary(&self, session: SessionKey, range: Range<u64>) -> Result<Option<u64>, StoreError>;

    /// Returns the names that stand for more than one entry.
    fn twins(&self, session: SessionKey) -> Result<Vec<NameTag>, StoreError>;

    /// Returns the ties of the generations that have any, in order.
    fn ties(&self, session: SessionKey) -> Result<Vec<(u64, Vec<Tie>)>, StoreError>;

    /// Returns the sessions of a format that have a tie, in the order of their names.
    fn tied(&self, format: &str, tie: &Tie) -> Result<Vec<(SessionKey, SessionName)>, StoreError>;

    /// Returns what lists show of a session.
    fn card(&self, session: SessionKey) -> Result<Card, StoreError>;

    /// Keeps other programs from changing anything until the next commit, or until [`Store::release`]: what is read
    /// meanwhile holds when it is built upon.
    fn hold(&self) -> Result<(), StoreError>;

    /// Ends what [`Store::hold`] began, if nothing was committed.
    fn release(&self);

    /// Adds an operation, or refuses it as a [`StoreError::Conflict`] when the session has moved on.
    fn commit(&mut self, commit: Commit) -> Result<SessionKey, StoreError>;

    /// Has the commits that follow become durable together, with [`Store::settle`]: all of them or none.
    ///
    /// Until then only this store shows them, and other programs wait. A commit that fails takes all of them back.
    fn gather(&mut self) -> Result<(), StoreError>;

    /// Ends what [`Store::gather`] began: what was committed since is durable.
    fn settle(&mut self) -> Result<(), StoreError>;

    /// Returns whether derived rows were made under other rules than these.
    fn is_stale(&self) -> Result<bool, StoreError>;

    /// Says that all derived rows are made under these rules now.
    fn freshened(&mut self) -> Result<(), StoreError>;

    /// Replaces all derived rows of a session.
    fn derive(&mut self, session: SessionKey, derived: &Derived) -> Result<(), StoreError>;

    /// Returns the last sighting of the file with this path. It is a cache: without it, the file is compared.
    fn sighting(&self, path: &[u8]) -> Result<Option<Sighting>, StoreError>;

    /// Keeps sightings, each in the place of an earlier one of its path.
    fn sight(&mut self, sightings: &[Sighting]) -> Result<(), StoreError>;

    /// Returns the token counts that are kept of the entries with these numbers, under a rule: for each entry those of its
    /// messages, in order. It is a cache, by the line: without it, they are counted.
    fn counts(
        &self,
        session: SessionKey,
        range: Range<u64>,
        rule: u64,
    ) -> Result<Vec<(u64, Vec<u64>)>, StoreError>;

    /// Keeps token counts of entries.
    fn keep_counts(
        &mut self,
        session: SessionKey,
        rule: u64,
        counts: &[(u64, Vec<u64>)],
    ) -> Result<(), StoreError>;

    /// Reports every fault of the bytes and of the store's own structure, and never stops at the first.
    fn check(&self, report: &mut dyn FnMut(Fault)) -> Result<(), StoreError>;

    /// Returns what the store takes up.
    fn sizes(&self) -> Result<Sizes, StoreError>;
}
