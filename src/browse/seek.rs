//! Searching the rows of a graph: what is sought, and which rows match.
//!
//! The state holds only the rows near its cursor, so the face that has all of them searches.

use undertext::model::{EntryId, Kind};
use undertext::report::GraphNode;

use super::cursor::Way;
use super::data::TurnRow;

/// What is sought in the rows of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sought {
    /// The next row of a kind, around the end.
    Jump(Jump),
    /// The next or previous row with a text, ignoring case, around the end.
    Text(String, Way),
    /// The row of an entry.
    Entry(EntryId),
    /// The row of a turn, such as `@14`.
    Turn(String),
    /// The end of the reverted branch that `from` is on.
    BranchEnd,
}

/// A kind of row to go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Jump {
    Compaction,
    Reverted,
    Failure,
    Edit,
    Note,
    Question,
}

impl Jump {
    /// Returns true if a node is of this kind.
    pub(crate) fn is_at(self, node: &GraphNode) -> bool {
        let acts = node.acts.unwrap_or_default();
        match self {
            Self::Compaction => node.kind == Kind::Boundary,
            Self::Reverted => node.is_reverted,
            Self::Failure => acts.failed > 0,
            Self::Edit => acts.edits > 0,
            Self::Note => node.kind == Kind::Note || node.is_from_later,
            Self::Question => node.kind == Kind::User && node.words.contains(['?', '？']),
        }
    }
}

impl Sought {
    /// Returns true if a row is sought.
    pub(crate) fn is_at(&self, row: &TurnRow) -> bool {
        match self {
            Self::Jump(jump) => jump.is_at(&row.node),
            Self::Text(text, _) => row.text().to_lowercase().contains(&text.to_lowercase()),
            Self::Entry(entry) => row.node.id == *entry,
            Self::Turn(turn) => row.has_number && row.place() == *turn,
            Self::BranchEnd => false,
        }
    }

    /// Returns the rows to look at, the one after `from` first, in the search's direction and around the end.
    pub(crate) fn order(&self, len: usize, from: usize) -> impl Iterator<Item = usize> + use<> {
        let is_backward = matches!(self, Self::Text(_, Way::Backward));
        (1..=len).map(move |n| if is_backward { from + len - n } else { from + n } % len)
    }
}
