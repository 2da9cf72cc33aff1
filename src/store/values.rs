//! Values: the arguments and the answers of a store.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{
        Card, EntryNumber, GenerationNumber, NameTag, OperationId, Record, SessionName, State, Tie,
        Timestamp, Tombstone,
    },
    store::StoreError,
};

/// The number under which a store knows a session; it means nothing outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey(pub i64);

/// How far someone has read the operations that a store took in; only that store can read it.
///
/// It names the newest of them by its number and its hash, so that one of another history is noticed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor(Vec<u8>);

impl Cursor {
    /// Makes a cursor of the newest operation.
    pub(super) fn at(seq: u64, hash: OperationId) -> Self {
        Self([seq.to_le_bytes().as_slice(), hash.as_bytes()].concat())
    }

    /// Returns the operation that was the newest one.
    pub(super) fn newest(&self) -> Option<(u64, OperationId)> {
        let (seq, hash) = self.0.split_first_chunk()?;
        Some((u64::from_le_bytes(*seq), OperationId::new(hash.try_into().ok()?)))
    }

    /// Makes a cursor of the bytes that a store writes in it.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes that the store wrote in it.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
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
    pub ties: Vec<(GenerationNumber, Vec<Tie>)>,
    /// The card that lists show.
    pub card: Card,
    /// Where the session is.
    pub state: State,
}

/// Folders in which sessions work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// This one.
    At(String),
    /// One of these, which may be names of the same one, and those below it.
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

/// The conditions that narrow a list of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only these.
    pub only: Option<BTreeSet<SessionKey>>,
    /// Only this format.
    pub format: Option<String>,
    /// Only sessions that work there.
    pub folder: Option<Within>,
    /// Only sessions whose id begins so.
    pub prefix: Option<String>,
    /// Only sessions whose title begins so.
    pub title: Option<String>,
    /// Only sessions that were active then or later.
    pub since: Option<Timestamp>,
    /// Also those that are hidden.
    pub hidden: bool,
    /// Also the sub-agents of sessions that are there.
    pub sub_agents: bool,
    /// At most this number, the newest.
    pub limit: Option<usize>,
}

impl SessionFilter {
    /// Returns whether a session belongs in the list; this leaves out the question of sub-agents.
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

    /// Returns whether a session of this name may belong in the list.
    pub(crate) fn may_match(&self, name: &SessionName) -> bool {
        self.format.as_ref().is_none_or(|format| *format == name.format)
            && self.prefix.as_ref().is_none_or(|prefix| name.id.starts_with(prefix))
    }
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The store's number.
    pub key: SessionKey,
    /// The name.
    pub name: SessionName,
    /// The card to show.
    pub card: Card,
}

/// Returns the names whose ids stand next to that of one, in the order of ids: of each format the one that has this id itself,
/// the last one before it and the first one behind it; of its own format also the first one behind its sub-agents, whose ids go
/// on with a slash, and none of these.
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

/// Returns where the ids of a session's sub-agents begin, and where they end.
pub(super) fn agents_of(id: &str) -> (String, String) {
    // The sign behind the slash.
    (format!("{id}/"), format!("{id}0"))
}

/// How much a store takes up.
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

/// How much is held of the sessions of a format.
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

/// A file as it was when all of it was in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Where it is.
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

/// An entry for which a line came that has another one in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    /// The session.
    pub session: SessionKey,
    /// The entry.
    pub entry: EntryNumber,
    /// The rule by which something was found in it, if one found it.
    pub rule: Option<String>,
}

impl Came {
    /// Says it of a tombstone of a session.
    pub fn of(session: SessionKey, one: &Tombstone) -> Self {
        Self { session, entry: one.entry, rule: one.rule.clone() }
    }
}

/// The outcome of a durable transaction.
#[derive(Debug, Default)]
pub struct Committed {
    /// Why work that the store puts off until more of it has gathered failed, if it did: the store tries again later,
    /// and nothing is lost by it.
    pub unsettled: Option<StoreError>,
}
