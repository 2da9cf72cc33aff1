//! Truncation: which tool results are truncated, and how much that saves.

use std::path::PathBuf;

use super::{
    hint::{Hint, Line},
    notice::Notice,
    shape::report,
};
use crate::model::{EntryId, OperationNumber, Resized, Timestamp};

/// A result that is truncated, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oversized {
    /// The entry on the path.
    pub entry: EntryId,
    /// The entry with the complete result.
    pub origin: EntryId,
    /// The tool, if its call was found nearby.
    pub tool: Option<String>,
    /// What the tool read or ran, if its call shows it.
    pub subject: Option<String>,
    /// Its length in characters, before and after.
    pub chars: Resized,
    /// Its approximate token count, before and after.
    pub tokens: Resized,
}

/// The result of a truncation.
#[derive(Clone, Debug, Default)]
pub struct Truncated {
    /// The operation; none if nothing was oversized.
    pub operation: Option<OperationNumber>,
    /// The branch.
    pub branch: String,
    /// The branch that preserves the previous state.
    pub left: Option<String>,
    /// The results.
    pub results: Vec<Oversized>,
    /// How many other results exceed the limit only because edits replaced theirs; they were left alone.
    pub edited: u64,
    /// How many bytes shorter the session's file is, or would be if there were one.
    pub saved: u64,
    /// The old live file, if it was rotated.
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<PathBuf>,
    /// The notices of the change.
    pub notices: Vec<Notice>,
}

report!(Oversized, "result", |it| {
    entry: it.entry,
    origin: it.origin,
    tool: it.tool,
    subject: it.subject,
    characters: it.chars.before,
    left: it.chars.after,
    tokens: it.tokens.before,
    tokens_left: it.tokens.after,
});

/// The part of a conversation that the provider may still have in its cache and that would have to be sent again after a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Cached {
    /// Its approximate token count.
    pub tokens: u64,
    /// When the cache expires.
    pub until: Timestamp,
}

/// A truncation, with the limit for its results.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<'a> {
    /// The truncation.
    pub truncated: &'a Truncated,
    /// The maximum number of characters of a result.
    pub limit: usize,
    /// The window that the limit was computed from, in tokens.
    pub window: Option<u64>,
    /// The cached part that it invalidates.
    pub cached: Option<Cached>,
}

report!(Bounded<'_>, "truncate", |it| {
    operation: it.truncated.operation,
    limit: it.limit,
    window: it.window,
    results: it.truncated.results.len(),
    edited: it.truncated.edited,
    branch: it.truncated.left.is_some().then_some(&it.truncated.branch),
    left: it.truncated.left,
    saved: it.truncated.saved,
    cached: it.cached,
    rotated: it.truncated.rotated.as_ref().map(|path| path.to_string_lossy()),
    written: it.truncated.written.as_ref().map(|path| path.to_string_lossy()),
}, hints: |it| {
    let audit = || Line::about("audit").to("to see what was cut");
    it.truncated.left.as_ref().map(|_| [audit(), Hint::undo()]).into_iter().flatten()
});
