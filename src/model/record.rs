//! Derived values: formats compute them from lines, so that paths are found without reading the lines again.
//!
//! Invariant: a record depends only on its line and on the entries with smaller numbers. So a later line never changes an earlier
//! record, and `rebuild` reproduces the same records.

use std::{fmt, ops::Deref, sync::Arc};

use crate::model::{EntryNumber, NameTag, Timestamp, tagged::tagged};

/// The kind of an entry, for paths, turns and graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A message of the user, which starts a turn.
    User,
    /// A message to the model that is not from the user.
    Note,
    /// A message of the model: text or tool calls.
    Assistant,
    /// The result of a tool call.
    Result,
    /// A message of the agent program within the conversation.
    System,
    /// The place where a compaction cut the context.
    Boundary,
    /// The summary of a compaction.
    Summary,
    /// The agent's own bookkeeping, which is no part of the conversation.
    Meta,
    /// A line that undertext cannot read as a record.
    Opaque,
}

impl Kind {
    const ALL: [(Self, u8, &'static str); 9] = [
        (Self::User, 1, "user"),
        (Self::Note, 2, "note"),
        (Self::Assistant, 3, "assistant"),
        (Self::Result, 4, "result"),
        (Self::System, 5, "system"),
        (Self::Boundary, 6, "boundary"),
        (Self::Summary, 7, "summary"),
        (Self::Meta, 8, "meta"),
        (Self::Opaque, 9, "opaque"),
    ];

    /// Returns true if records of this kind are part of the conversation.
    pub fn is_conversation(self) -> bool {
        !matches!(self, Self::Meta | Self::Opaque)
    }

    /// Returns true if records of this kind are part of the conversation and not just words of the agent program.
    pub fn is_talk(self) -> bool {
        self.is_conversation() && self != Self::System
    }

    /// Returns the number that represents it in the store.
    pub fn code(self) -> u8 {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or(0, |(_, code, _)| *code)
    }

    /// Returns the kind that a number in the store represents.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, c, _)| *c == code).map(|(kind, ..)| *kind)
    }

    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(.., word)| word)
    }
}

/// The edge from a record to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// It has no parent.
    Root,
    /// The newest entry with a smaller number that has the parent's name.
    Entry(EntryNumber),
    /// No entry with a smaller number has the parent's name.
    Missing,
}

/// The values derived from one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The entry's number.
    pub n: EntryNumber,
    /// Its kind.
    pub kind: Kind,
    /// The record's own name, as a tag.
    pub name: Option<NameTag>,
    /// The edge to its parent.
    pub parent: Parent,
    /// The time in the record.
    pub time: Option<Timestamp>,
    /// Other data for the format's path rule, encoded by the format. A record outside the conversation is a signpost if this is
    /// longer than one byte.
    pub hint: HintBytes,
}

/// The bytes of a hint. Records are copied often while walking a graph, so short hints are stored inline and long ones are
/// shared.
#[derive(Clone)]
pub struct HintBytes(Kept);

#[derive(Clone)]
enum Kept {
    Few { len: u8, bytes: [u8; FEW] },
    Many(Arc<[u8]>),
}

/// The number of bytes that fit inline without taking more space than a shared reference.
const FEW: usize = 22;

impl Deref for HintBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kept::Few { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Kept::Many(bytes) => bytes,
        }
    }
}

impl<B: AsRef<[u8]>> From<B> for HintBytes {
    fn from(hint: B) -> Self {
        let hint = hint.as_ref();
        let mut bytes = [0; FEW];
        let few = bytes.get_mut(..hint.len()).zip(u8::try_from(hint.len()).ok());
        let Some((room, len)) = few else { return Self(Kept::Many(hint.into())) };
        room.copy_from_slice(hint);
        Self(Kept::Few { len, bytes })
    }
}

impl Default for HintBytes {
    fn default() -> Self {
        Self::from([])
    }
}

impl PartialEq for HintBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for HintBytes {}

impl fmt::Debug for HintBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Record {
    /// Returns the record of an entry about which nothing is known.
    pub(crate) fn opaque(n: EntryNumber) -> Self {
        let (name, parent, time) = (None, Parent::Root, None);
        Self { n, kind: Kind::Opaque, name, parent, time, hint: HintBytes::default() }
    }

    /// Returns true if it is a signpost: a record outside the conversation that may redirect a path.
    pub fn is_signpost(&self) -> bool {
        self.kind == Kind::Meta && self.hint.len() > 1
    }
}

/// A kind of record that is looked up across a whole session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landmark {
    /// A boundary.
    Boundary,
    /// A boundary that names the records it keeps.
    Keeper,
    /// A signpost.
    Signpost,
}

impl Landmark {
    /// Returns true if `record` is one.
    pub fn is(self, record: &Record) -> bool {
        match self {
            Self::Boundary => record.kind == Kind::Boundary,
            Self::Keeper => record.kind == Kind::Boundary && record.hint.len() > 1,
            Self::Signpost => record.is_signpost(),
        }
    }
}

/// A link to another session, as found in one state of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tie {
    /// Its kind.
    pub kind: TieKind,
    /// The agent's id of the other session; for a common beginning, its hash.
    pub other: String,
}

/// A kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TieKind {
    /// It begins like the other; the entries show which session was first.
    Beginning,
    /// It declares that it was forked from part of the other.
    Fork,
    /// It is a sub-agent of the other.
    SubAgent,
    /// It continues under the other's id.
    Continuation,
}

impl TieKind {
    const ALL: [(Self, u8); 4] =
        [(Self::Beginning, 1), (Self::Fork, 2), (Self::SubAgent, 3), (Self::Continuation, 4)];

    /// Returns the number that represents it in the store.
    pub fn code(self) -> u8 {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or(0, |(_, code)| *code)
    }

    /// Returns the kind that a number in the store represents.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, c)| *c == code).map(|(kind, _)| *kind)
    }
}

/// The card of a session: the values that lists show.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Card {
    /// The user's title of the session, or else the agent's, or else the beginning of the first turn.
    pub title: Option<String>,
    /// The working folder of the session.
    pub folder: Option<String>,
    /// The time of the first record, or of the operation that created the session; `null` if unknown.
    pub started: Option<Timestamp>,
    /// The time of the newest record or operation; `null` if unknown.
    pub active: Option<Timestamp>,
    /// How many turns began in the session's own files, without those that undertext only repeated.
    pub turns: u64,
    /// Whether lists hide the session.
    pub hidden: bool,
}

impl Card {
    /// The maximum length of a title in characters; the rest is cut off.
    pub const TITLE: usize = 120;
}

/// Statistics of a whole session that lists show in addition to its card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// The number of operations that it covers.
    pub operations: u64,
    /// The number of reverted ends.
    pub reverted: u64,
    /// The number of compactions.
    pub compactions: u64,
    /// The token count of the next request, if known.
    pub tokens: Option<u64>,
    /// The size of the model's context window in tokens.
    pub window: Option<u64>,
    /// The token counts of requests along the current path, at most [`Glance::SAMPLES`]; a 0 marks a compaction.
    pub context: Vec<u64>,
    /// The number of turns per day.
    pub days: Vec<DayTurns>,
}

impl Glance {
    /// The maximum number of samples.
    pub const SAMPLES: usize = 24;
}

/// The number of turns that began on one day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayTurns {
    /// Days since 1970-01-01, UTC.
    pub day: u64,
    /// The number of turns.
    pub turns: u64,
}

tagged!(Glance {
    1: operations,
    2: reverted,
    3: compactions,
    4: tokens,
    5: window,
    6: context,
    7: days,
});

tagged!(DayTurns { 1: day, 2: turns });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_its_bytes_however_many_they_are() {
        for len in [0, 1, FEW - 1, FEW, FEW + 1, 300] {
            let bytes: Vec<u8> = (0..=250).cycle().take(len).collect();
            let hint = HintBytes::from(&bytes);
            assert_eq!(*hint, *bytes, "{len}");
            assert_eq!(hint.clone(), hint, "{len}");
            assert_ne!(hint, HintBytes::from([bytes, vec![0]].concat()), "{len}");
        }
        let one = size_of::<HintBytes>();
        assert_eq!(one, size_of::<(usize, Arc<[u8]>)>(), "few bytes take no more room");
    }
}
