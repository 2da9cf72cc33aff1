//! Truncation: which tool results are truncated, and how much that saves.

use serde::Serialize;

use super::{
    done::Done,
    shape::{count, report},
};
use crate::context::cut::Bound;
use crate::model::hint::{Hint, Line};
use crate::model::{EntryId, Timestamp};

/// A result that is truncated, or would be, or thinking that is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Oversized {
    /// The entry on the path.
    pub entry: EntryId,
    /// The entry that contains the whole result.
    pub origin: EntryId,
    /// The tool, if its call was found nearby; `thinking` for thinking.
    pub tool: Option<String>,
    /// The file that the tool read, or the command that it ran.
    pub subject: Option<String>,
    /// Whether it is thinking.
    pub thinking: bool,
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
    /// How many entries keep their thinking because the agent cannot resume without it.
    pub thinking_needed: u64,
    /// About how many tokens that saves.
    pub tokens_saved: u64,
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

/// The size that a context should have, and the size that a truncation gives it, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Target {
    /// The size that it should have at most.
    #[serde(rename = "to")]
    pub tokens: u64,
    /// Its size before the truncation.
    pub before: u64,
    /// Its approximate size after the truncation.
    pub left: u64,
}

/// A truncation, with the limit for its results.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bounded<'a> {
    /// The truncation.
    #[serde(flatten)]
    pub truncated: &'a Truncated,
    /// What is cut.
    #[serde(flatten)]
    pub bound: &'a Bound,
    /// The target, if there was one.
    pub target: Option<Target>,
    /// What would have to be sent to the provider again.
    pub cached: Option<Cached>,
}

report!(Bounded<'_>, "truncate", hints: |it| match it.truncated.left {
    Some(_) => vec![Line::about("audit").to("to see what was cut"), Hint::undo()],
    None if it.target.is_some() && !it.truncated.results.is_empty() => {
        vec![line(it.bound).to("to do this")]
    }
    None => Vec::new(),
});

/// Returns the command that cuts this.
fn line(bound: &Bound) -> Line {
    let numbers = [("older-than", bound.older_than), ("keep-last", bound.keep_last)];
    let numbers = numbers.into_iter().filter(|(_, n)| *n > 0);
    let line = Line::about("truncate");
    let line = numbers.fold(line, |line, (name, n)| line.option(name, n.to_string()));
    let line = bound.tools.iter().fold(line, |line, tool| line.option("tool", tool));
    if bound.thinking { line.flag("thinking") } else { line }
}
