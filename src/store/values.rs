//! Values: what a store is asked, given and answers with.

use crate::{
    model::{Card, NameTag, Record, SessionName, State, Tie, Timestamp},
    store::StoreError,
};

/// The number under which a store knows a session; it means nothing outside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey(pub i64);

/// How far someone has read what a store took in; only that store knows what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor(Vec<u8>);

impl Cursor {
    /// Makes a cursor of what a store writes in it.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns what the store wrote in it.
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
    pub ties: Vec<(u64, Vec<Tie>)>,
    /// What lists show.
    pub card: Card,
    /// Where the session stands.
    pub state: State,
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

impl SessionFilter {
    /// Returns whether a session belongs in the list, but for its being a sub-agent.
    pub(super) fn matches(&self, listed: &Listed) -> bool {
        let wanted = |filter: &Option<String>, value: Option<&str>| {
            filter.as_deref().is_none_or(|filter| Some(filter) == value)
        };
        (self.hidden || !listed.card.hidden)
            && wanted(&self.format, Some(&listed.name.format))
            && wanted(&self.folder, listed.card.folder.as_deref())
            && wanted(&self.title, listed.card.title.as_deref())
            && self.since.is_none_or(|since| since <= listed.card.active)
            && self.prefix.as_deref().is_none_or(|prefix| listed.name.id.starts_with(prefix))
    }
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

/// What became of a transaction that is durable.
#[derive(Debug, Default)]
pub struct Committed {
    /// Why what the store puts off until there is more of it could not be done, if it was tried: it is tried again later, and
    /// nothing is lost by it.
    pub unsettled: Option<StoreError>,
}
