//! Items: messages on their way to a model, and where they come from.

use crate::model::{EntryNumber, Message, Timestamp};

/// A message on its way to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The message itself, which does not move with its item.
    pub message: Box<Message>,
    /// The entries of the session whose words it holds, in order; empty if nobody said it.
    pub entries: Vec<EntryNumber>,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether a turn of the user begins with it.
    pub begins_turn: bool,
    /// How many tokens it takes, its share of the request's form included; none until it is counted.
    pub tokens: Option<u64>,
}

impl Item {
    /// Returns a message of an entry.
    pub fn said(message: Message, entry: EntryNumber) -> Self {
        let origin = if message.is_summary { Origin::Summary } else { Origin::Said };
        let message = Box::new(message);
        Self { message, entries: vec![entry], origin, begins_turn: false, tokens: None }
    }

    /// Returns a message that nobody said.
    pub fn synthetic(message: Message) -> Self {
        let (message, origin) = (Box::new(message), Origin::Synthetic);
        Self { message, entries: Vec::new(), origin, begins_turn: false, tokens: None }
    }

    /// Returns the first of its entries.
    pub fn entry(&self) -> Option<EntryNumber> {
        self.entries.first().copied()
    }

    /// Returns when it was said.
    pub fn time(&self) -> Option<Timestamp> {
        self.message.time
    }
}

/// Where a message of a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It was said, and stands where it was said.
    Said,
    /// It stands for messages that a compaction left out.
    Summary,
    /// It was said before a compaction, which kept it.
    Kept,
    /// It stands for an entry that was changed: a replay.
    Replayed,
    /// Nobody said it; the request needs it.
    Synthetic,
    /// Several messages that a provider wants as one.
    Merged,
}

impl Origin {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Said => "said",
            Self::Summary => "summary",
            Self::Kept => "kept",
            Self::Replayed => "replayed",
            Self::Synthetic => "synthetic",
            Self::Merged => "merged",
        }
    }
}
