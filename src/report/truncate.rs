//! Truncation: which tool results are truncated, and how much that saves.

use serde::Serialize;

use super::{
    done::Done,
    shape::{count, report},
};
use crate::model::hint::{Hint, Line};
use crate::model::{EntryId, Timestamp};

/// A result that is truncated, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Oversized {
    /// The entry on the path.
    pub entry: EntryId,
    /// The entry that contains the whole result.
    pub origin: EntryId,
    /// The tool, if its call was found nearby.
    pub tool: Option<String>,
    /// The file that the tool read, or the command that it ran.
    pub subject: Option<String>,
    /// The size of the result in characters before the cut.
    pub characters: u64,
    /// The size of the result in characters after the cut.
    pub left: u64,
    /// The approximate number of its tokens before the cut.
    pub tokens: u64,
    /// The approximate number of its tokens after the cut.
    pub tokens_left: u64,
}

/// The result of a truncation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Truncated {
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
    /// How many results were shortened, or would be.
    #[serde(serialize_with = "count")]
    pub results: Vec<Oversized>,
    /// How many results are too long only because they were edited; these are not cut.
    pub edited: u64,
    /// The current branch; `null` if nothing was changed.
    pub branch: Option<String>,
    /// The branch that keeps the previous state.
    pub left: Option<String>,
    /// By how many bytes the session's file got shorter, or would if there were one.
    pub saved: u64,
}

report!(Oversized, "result");

/// The part of a conversation that the provider may still have in its cache and that would have to be sent again after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cached {
    /// Its approximate token count.
    pub tokens: u64,
    /// When the cache expires.
    pub until: Timestamp,
}

/// A truncation, with the limit for its results.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bounded<'a> {
    /// The truncation.
    #[serde(flatten)]
    pub truncated: &'a Truncated,
    /// How many characters a result may have.
    pub limit: usize,
    /// The window from which the limit was computed, in tokens.
    pub window: Option<u64>,
    /// What would have to be sent to the provider again.
    pub cached: Option<Cached>,
}

report!(Bounded<'_>, "truncate", hints: |it| {
    let audit = || Line::about("audit").to("to see what was cut");
    it.truncated.left.as_ref().map(|_| [audit(), Hint::undo()]).into_iter().flatten()
});
