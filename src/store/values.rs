//! Values: the arguments and results of a store's queries.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{
        Card, EntryNumber, GenerationNumber, NameTag, OperationId, Record, SessionName, State, Tie,
        Timestamp, Tombstone,
    },
    store::StoreError,
};

/// The key of a session in a store; meaningless outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey(pub i64);

/// How far someone has read the operations of a store; meaningful only to that store.
///
/// It names the newest operation by number and hash, so that another history is noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor(Vec<u8>);

impl Cursor {
    /// Makes a cursor at the newest operation.
    pub(super) fn at(seq: u64, hash: OperationId) -> Self {
        Self([seq.to_le_bytes().as_slice(), hash.as_bytes()].concat())
    }

    /// Returns the operation that was the newest.
    pub(super) fn newest(&self) -> Option<(u64, OperationId)> {
        let (seq, hash) = self.0.split_first_chunk()?;
        Some((u64::from_le_bytes(*seq), OperationId::new(hash.try_into().ok()?)))
    }

    /// Makes a cursor from its bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The derived rows of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Derived {
    /// One for each entry, in order.
    pub records: Vec<Record>,
    /// The names that several entries have, or that were referenced before they were defined.
    pub twins: Vec<NameTag>,
    /// The ties of each generation that has any, in order.
    pub ties: Vec<(GenerationNumber, Vec<Tie>)>,
    /// The card that lists show.
    pub card: Card,
    /// The state of the session.
    pub state: State,
}

/// Folders of sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// Exactly this one.
    At(String),
    /// One of these, which may be names of the same folder, or a folder below.
    Below(Vec<String>),
}

impl Within {
    fn admits(&self, folder: &str) -> bool {
        match self {
            Self::At(at) => folder == at,
            Self::Below(all) => all.iter().any(|at| {
                let rest = folder.strip_prefix(at.as_str());
                rest.is_some_and(|it| it.is_empty() || at.ends_with('/') || it.starts_with('/'))
            }),
        }
    }
}

/// The conditions of a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only these.
    pub only: Option<BTreeSet<SessionKey>>,
    /// Only this format.
    pub format: Option<String>,
    /// Only sessions that work in these folders.
    pub folder: Option<Within>,
    /// Only sessions with an id that begins with this.
    pub prefix: Option<String>,
    /// Only sessions with a title that begins with this.
    pub title: Option<String>,
    /// Only sessions active at this time or later.
    pub since: Option<Timestamp>,
    /// Also hidden sessions.
    pub hidden: bool,
    /// Also sub-agents of existing sessions.
    pub sub_agents: bool,
    /// At most this many, the newest.
    pub limit: Option<usize>,
}

impl SessionFilter {
    /// Returns true if a session matches, apart from the condition on sub-agents.
    pub(crate) fn matches(&self, listed: &Listed) -> bool {
        let Card { folder, title, hidden, .. } = &listed.card;
        let works_there =
            |within: &Within| folder.as_deref().is_some_and(|folder| within.admits(folder));
        let begins_so =
            |with: &String| title.as_deref().is_some_and(|title| title.starts_with(with.as_str()));
        (self.hidden || !hidden)
            && self.only.as_ref().is_none_or(|only| only.contains(&listed.key))
            && self.folder.as_ref().is_none_or(works_there)
            && self.title.as_ref().is_none_or(begins_so)
            && self.since.is_none_or(|since| Some(since) <= listed.card.active)
            && self.may_match(&listed.name)
    }

    /// Returns true if a session with this name may match.
    pub(crate) fn may_match(&self, name: &SessionName) -> bool {
        self.format.as_ref().is_none_or(|format| *format == name.format)
            && self.prefix.as_ref().is_none_or(|prefix| name.id.starts_with(prefix))
    }
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key in the store.
    pub key: SessionKey,
    /// Its name.
    pub name: SessionName,
    /// Its card.
    pub card: Card,
}

/// Returns the names whose ids are next to that of `one` in sort order. In each format: the name with the same id, the last one
/// before it and the first one after it. In its own format also the first one after its sub-agents, whose ids continue with a
/// slash, and none of these.
pub fn nearest(
    one: &SessionName,
    names: impl IntoIterator<Item = SessionName>,
) -> Vec<SessionName> {
    let (agents, behind) = agents_of(&one.id);
    let mut found: BTreeMap<(String, u8), SessionName> = BTreeMap::new();
    for name in names {
        let part = match name.id.as_str() {
            id if id < one.id.as_str() => 0,
            id if id == one.id => 1,
            id if name.format != one.format || id < agents.as_str() => 2,
            id if id < behind.as_str() => continue,
            _ => 3,
        };
        let is_nearer =
            |held: &SessionName| if part == 0 { held.id < name.id } else { name.id < held.id };
        let place = (name.format.clone(), part);
        if found.get(&place).is_none_or(is_nearer) {
            found.insert(place, name);
        }
    }
    found.into_values().collect()
}

/// Returns the bounds of the ids of a session's sub-agents.
pub(super) fn agents_of(id: &str) -> (String, String) {
    // '0' is the character after the slash.
    (format!("{id}/"), format!("{id}0"))
}

/// The sizes of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Sizes {
    /// The number of lines.
    pub lines: u64,
    /// The uncompressed size of all lines, in bytes.
    pub raw: u64,
    /// How many strings of 256 bytes or more the store has; each is stored once.
    pub texts: u64,
    /// The size of the packed lines and texts, in bytes.
    pub kept: u64,
    /// The total size of the store, in bytes.
    pub stored: u64,
}

/// The totals of a format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// The format's name.
    pub format: String,
    /// How many sessions.
    pub sessions: u64,
    /// How many entries they have.
    pub entries: u64,
    /// The bytes of the entries' lines as they arrived.
    pub bytes: u64,
}

/// A file as it was when all of its content was in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Its path.
    pub path: Vec<u8>,
    /// Its inode.
    pub inode: u64,
    /// Its length.
    pub length: u64,
    /// When its content was last changed, in nanoseconds.
    pub modified: i64,
    /// When anything about it was last changed, in nanoseconds.
    pub changed: i64,
}

/// An entry whose original line was redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// The session.
    pub session: SessionKey,
    /// The entry.
    pub entry: EntryNumber,
    /// The rule that found the secret, if one did.
    pub rule: Option<String>,
}

impl Came {
    /// Makes it from a tombstone of a session.
    pub fn of(session: SessionKey, one: &Tombstone) -> Self {
        Self { session, entry: one.entry, rule: one.rule.clone() }
    }
}

/// The outcome of a durable transaction.
#[derive(Debug, Default)]
pub struct Committed {
    /// The error of deferred follow-up work, if it failed. The store tries again later, and nothing is lost.
    pub unsettled: Option<StoreError>,
}
