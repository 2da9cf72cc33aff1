//! What the model sees: the messages of a session become a request that no provider rejects.
//!
//! Pure functions over the normalised view; nothing here is kept or sent. A request is a list of [`Item`]s, and each step
//! takes the list and gives it back with the [`Change`]s that it made, entries named, so that nothing vanishes unsaid.
//! [`prepare`] takes them in this order:
//!
//! ```text
//! window      is there room at all? asked before anything is read
//! sanitise    what no provider takes is mended or left out; each result is a message of its own
//! cut         if it is asked for: long results are cut, and behind the pairs all of them fitted into their share
//! limit       the newest turns stay, whole; sized as the two steps behind it will make them
//! pairs       each call has its result right behind it
//! turns       roles begin and alternate as the provider demands
//! ```
//!
//! Turns come last, and not before the limit: pair repair takes messages away, so that roles must be looked at behind it,
//! and a message merged before the limit would tie a summary, which stays, to a turn, which may go.
//!
//! Invariant: what a step says that it added, dropped, moved, merged, changed or cut, it did, and nothing else.
//! Invariant: of what was prepared each call is followed by its result, each result follows its call, nothing is empty, and
//! roles are those that the provider takes; to prepare it again changes nothing.

pub mod compact;
pub mod cut;
pub mod event;
pub mod extract;
pub mod files;
pub mod history;
pub mod machine;
pub mod model;
pub mod overflow;
pub mod pairing;
pub mod plan;
pub mod prompt;
pub mod recover;
pub mod results;
pub mod sanitize;
mod shape;
pub mod stages;
pub mod tokens;
mod turns;
pub mod visible;
pub mod window;

pub use shape::request;

use crate::model::{Message, Timestamp};
use history::{Limited, Limits};
use pairing::Repaired;
use results::Cutting;
use sanitize::Hygiene;
use tokens::Counting;

/// A message on its way to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// What is said.
    pub message: Message,
    /// The entries of the session whose words it holds, in order; none if nobody said it.
    pub entries: Vec<u64>,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether a turn of the user begins with it.
    pub begins_turn: bool,
    /// How many tokens it takes, its share of the request's form included; none until it is counted.
    pub tokens: Option<u64>,
}

impl Item {
    /// Returns a message that an entry says.
    pub fn said(message: Message, entry: u64) -> Self {
        let origin = if message.is_summary { Origin::Summary } else { Origin::Said };
        Self { message, entries: vec![entry], origin, begins_turn: false, tokens: None }
    }

    /// Returns a message that nobody said.
    pub fn synthetic(message: Message) -> Self {
        let origin = Origin::Synthetic;
        Self { message, entries: Vec::new(), origin, begins_turn: false, tokens: None }
    }

    /// Returns the first of its entries.
    pub fn entry(&self) -> Option<u64> {
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
    /// It stands for what a compaction left out.
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

/// One thing that a step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The step.
    pub step: Step,
    /// What it did.
    pub act: Act,
    /// To which entries; none if it was to what nobody said.
    pub entries: Vec<u64>,
    /// Why, in a few words, such as `its call is not in the context`.
    pub why: String,
}

/// A step of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// What no provider takes is mended or left out.
    Sanitise,
    /// Only so much of the history stays.
    Limit,
    /// Each call gets its result.
    Pairs,
    /// Roles alternate as the provider demands.
    Turns,
    /// Long results are cut for this request.
    Cut,
}

impl Step {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sanitise => "sanitise",
            Self::Limit => "limit",
            Self::Pairs => "pairs",
            Self::Turns => "turns",
            Self::Cut => "cut",
        }
    }
}

/// What can be done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// It was put in.
    Added,
    /// It was left out, or a part of it.
    Dropped,
    /// It stands elsewhere.
    Moved,
    /// It became one with another.
    Merged,
    /// It says the same in another form.
    Changed,
    /// A part of it is left out, and a mark says so.
    Cut,
}

impl Act {
    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Dropped => "dropped",
            Self::Moved => "moved",
            Self::Merged => "merged",
            Self::Changed => "changed",
            Self::Cut => "cut",
        }
    }
}

/// The interface for which a request is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// None: the normalised view itself, sound but unmerged.
    #[default]
    Messages,
    /// Anthropic's messages.
    Anthropic,
    /// `OpenAI`'s chat completions.
    Openai,
    /// Gemini's contents.
    Gemini,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 4] = [Self::Messages, Self::Anthropic, Self::Openai, Self::Gemini];

    /// Returns the word used in every output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Anthropic => "anthropic",
            Self::Openai => "openai",
            Self::Gemini => "gemini",
        }
    }
}

/// What a request is prepared for.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The interface, and what may be sent to it.
    pub hygiene: Hygiene,
    /// How much of the history.
    pub limits: Limits,
    /// How tokens are counted.
    pub counting: Counting,
}

/// A request, and what was done to make it one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The messages, in order, each with its tokens.
    pub items: Vec<Item>,
    /// What was done, in order.
    pub changes: Vec<Change>,
    /// What the limit did.
    pub limited: Limited,
    /// What pair repair did.
    pub repaired: Repaired,
}

impl Prepared {
    /// Returns how many tokens the request takes.
    pub fn tokens(&self) -> u64 {
        self.items.iter().filter_map(|item| item.tokens).sum::<u64>() + tokens::END
    }
}

/// Makes a request of messages.
pub fn prepare(items: Vec<Item>, plan: &Plan, cutting: Option<&Cutting<'_>>) -> Prepared {
    let Plan { hygiene, limits, counting } = *plan;
    let shape = hygiene.shape;
    let mut changes = Vec::new();
    let mut items = sanitize::sanitise(items, hygiene, &mut changes);
    if let Some(cutting) = cutting {
        results::cut(&mut items, cutting, &mut changes);
    }
    count(&mut items, counting);
    let missing = counting.message(&pairing::missing());
    let (items, limited) = history::limit(items, &limits, shape, missing, &mut changes);
    let (mut items, repaired) = pairing::repair(items, &mut changes);
    if let Some(cutting) = cutting {
        results::fit(&mut items, cutting, &mut changes);
    }
    let mut items = turns::validate(items, shape, &mut changes);
    count(&mut items, counting);
    Prepared { items, changes, limited, repaired }
}

/// Counts the items that are not counted yet.
pub fn count(items: &mut [Item], counting: Counting) {
    let uncounted: Vec<&Message> =
        items.iter().filter(|item| item.tokens.is_none()).map(|item| &item.message).collect();
    let mut counts = counting.messages(&uncounted).into_iter();
    for item in items.iter_mut().filter(|item| item.tokens.is_none()) {
        item.tokens = counts.next();
    }
}
