//! Changes: what each step did, and to which entries.

use std::sync::Arc;

use super::Entries;

/// One action of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The step.
    pub step: Step,
    /// The action.
    pub act: Act,
    /// The affected entries; empty if the message does not come from an entry.
    pub entries: Entries,
    /// Why, in a few words, such as `its call is not in the context`. Changes for the same reason can share the text.
    pub why: Arc<str>,
}

/// A step of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Content that no provider accepts is repaired or dropped.
    Sanitise,
    /// Only a part of the history is sent.
    Limit,
    /// Each call gets its result.
    Pairs,
    /// Roles alternate as the provider demands.
    Turns,
    /// Long results are truncated for this request.
    Cut,
}

impl Step {
    /// Returns the name used in all output.
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

/// An action on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// It was inserted.
    Added,
    /// It, or a part of it, was dropped.
    Dropped,
    /// It was moved.
    Moved,
    /// It was merged with another message.
    Merged,
    /// Its form changed, but not its meaning.
    Changed,
    /// A part of it was dropped, and a mark says so.
    Cut,
}

impl Act {
    /// Returns the name used in all output.
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
