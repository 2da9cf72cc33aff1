//! Changes: the acts of a step, and the entries that they concern.

use std::sync::Arc;

use super::Entries;

/// One act of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The step.
    pub step: Step,
    /// The act.
    pub act: Act,
    /// The entries that it concerns; empty if it concerns a message that nobody said.
    pub entries: Entries,
    /// Why, in a few words, such as `its call is not in the context`. Changes for the same reason can share the text.
    pub why: Arc<str>,
}

/// A step of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Content that no provider takes is mended or left out.
    Sanitise,
    /// Only a part of the history stays.
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

/// The acts on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// It was put in.
    Added,
    /// It was left out, or a part of it.
    Dropped,
    /// It is elsewhere.
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
