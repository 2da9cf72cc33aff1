//! Derived values: the formats make them of lines, so that paths are found without reading the lines again.
//!
//! Invariant: a record is a function of its line and of the entries with smaller numbers, so that a later line never
//! changes an earlier record, and `rebuild` makes the same ones.

use std::{fmt, ops::Deref, sync::Arc};

use crate::model::{EntryNumber, NameTag, Timestamp, tagged::tagged};

/// The kind of an entry, for paths, turns and graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A user's message: a turn begins.
    User,
    /// A message to the model in the user's place that begins no turn.
    Note,
    /// The model's words or calls.
    Assistant,
    /// A tool's answer.
    Result,
    /// Words of the program in the conversation.
    System,
    /// Where a compaction cut the context.
    Boundary,
    /// The summary after a boundary.
    Summary,
    /// A record that is no part of the conversation.
    Meta,
    /// A line that is no record.
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

    /// Returns whether records of this kind are part of the conversation.
    pub fn is_conversation(self) -> bool {
        !matches!(self, Self::Meta | Self::Opaque)
    }

    /// Returns whether records of this kind are part of the conversation, and more than words of the program in it.
    pub fn is_talk(self) -> bool {
        self.is_conversation() && self != Self::System
    }

    /// Returns the number under which it is stored.
    pub fn code(self) -> u8 {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or(0, |(_, code, _)| *code)
    }

    /// Returns the kind stored under a number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, c, _)| *c == code).map(|(kind, ..)| *kind)
    }

    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(.., word)| word)
    }
}

/// The edge from a record to the one it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parent {
    /// It follows nothing.
    Root,
    /// It follows the newest entry of the named record that has a smaller number.
    Entry(EntryNumber),
    /// It names a record that no entry with a smaller number holds.
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
    /// The edge to the record that it follows.
    pub parent: Parent,
    /// When it was written, by its own word.
    pub time: Option<Timestamp>,
    /// Other data for its format's path rule, in a form of the format's own. More than a byte of it makes a record that is no part
    /// of the conversation a signpost.
    pub hint: HintBytes,
}

/// The bytes of a hint. Walks hand records on again and again: the few bytes that most hints have lie in the record, those of a
/// longer one are shared.
#[derive(Clone)]
pub struct HintBytes(Kept);

#[derive(Clone)]
enum Kept {
    Few { len: u8, bytes: [u8; FEW] },
    Many(Arc<[u8]>),
}

/// How many bytes take no more room than a reference to those that are shared.
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
    /// Returns whether it is a signpost: it is no part of the conversation, but may say where a path goes.
    pub fn is_signpost(&self) -> bool {
        self.kind == Kind::Meta && self.hint.len() > 1
    }
}

/// A record that is found among many others at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landmark {
    /// A boundary.
    Boundary,
    /// A boundary that names what it keeps.
    Keeper,
    /// A signpost.
    Signpost,
}

impl Landmark {
    /// Returns whether a record is one.
    pub fn is(self, record: &Record) -> bool {
        match self {
            Self::Boundary => record.kind == Kind::Boundary,
            Self::Keeper => record.kind == Kind::Boundary && record.hint.len() > 1,
            Self::Signpost => record.is_signpost(),
        }
    }
}

/// A tie to another session, as a state of a file shows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tie {
    /// Its kind.
    pub kind: TieKind,
    /// The agent's id of the other session; of a beginning, its hash.
    pub other: String,
}

/// A kind of tie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TieKind {
    /// It begins as others may: which of them was first, their entries tell.
    Beginning,
    /// It says that it was made of a part of the other.
    Fork,
    /// It is a sub-agent of the other.
    SubAgent,
    /// It goes on under the other's id.
    Continuation,
}

impl TieKind {
    const ALL: [(Self, u8); 4] =
        [(Self::Beginning, 1), (Self::Fork, 2), (Self::SubAgent, 3), (Self::Continuation, 4)];

    /// Returns the number under which it is stored.
    pub fn code(self) -> u8 {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or(0, |(_, code)| *code)
    }

    /// Returns the kind stored under a number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, c)| *c == code).map(|(kind, _)| *kind)
    }
}

/// The card of a session: the values that lists show.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Card {
    /// The user's title, else the agent's, else the first words of the first turn.
    pub title: Option<String>,
    /// The folder in which the session works.
    pub folder: Option<String>,
    /// The time of the first record, or of the operation that made the session; nothing, if none is known.
    pub started: Option<Timestamp>,
    /// The time of the newest record or operation; nothing, if none is known.
    pub active: Option<Timestamp>,
    /// How many turns have begun in files of its own, those left out that undertext said again.
    pub turns: u64,
    /// Whether lists leave it out.
    pub hidden: bool,
}

impl Card {
    /// How many characters a title has at most; the rest of one that is longer is not kept here.
    pub const TITLE: usize = 120;
}

/// What lists show of the whole of a session, beyond its card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Glance {
    /// After how many operations it was made.
    pub operations: u64,
    /// How many ends were reverted.
    pub reverted: u64,
    /// How often it was compacted.
    pub compactions: u64,
    /// How many tokens the model's next request has, if that is known.
    pub tokens: Option<u64>,
    /// How many the model takes.
    pub window: Option<u64>,
    /// How many tokens the requests had along the current path, at most [`Glance::SAMPLES`] of them; 0 is a compaction.
    pub context: Vec<u64>,
    /// How many turns began on which day.
    pub days: Vec<DayTurns>,
}

impl Glance {
    /// How many requests it samples.
    pub const SAMPLES: usize = 24;
}

/// How many turns began on a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayTurns {
    /// The day, counted from 1970 in UTC.
    pub day: u64,
    /// How many.
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
