//! Truncation: which results of tools are cut, and how much that saves.

use std::path::PathBuf;

use super::{
    hint::{Hint, Line},
    notice::Notice,
    shape::report,
};
use crate::model::{EntryId, OperationNumber, Resized, Timestamp};

/// A result that is cut, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oversized {
    /// The entry that is on the path.
    pub entry: EntryId,
    /// The entry that holds all of it.
    pub origin: EntryId,
    /// The tool, if its call is near.
    pub tool: Option<String>,
    /// What the tool read or ran, if its call says so.
    pub subject: Option<String>,
    /// How many characters it has, and how many it would have.
    pub chars: Resized,
    /// About how many tokens.
    pub tokens: Resized,
}

/// The result of a truncation.
#[derive(Clone, Debug, Default)]
pub struct Truncated {
    /// The operation; none if nothing was oversized.
    pub operation: Option<OperationNumber>,
    /// The branch.
    pub branch: String,
    /// The branch that holds the state before.
    pub left: Option<String>,
    /// The results.
    pub results: Vec<Oversized>,
    /// How many others are oversized only with what edits put in place of theirs, and are left alone.
    pub edited: u64,
    /// By how many bytes the session's file is shorter, or would be if there were one.
    pub saved: u64,
    /// The old live file, if it was exchanged.
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

/// The part of a conversation that its provider may still have cached, and would be sent again behind a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Cached {
    /// About how many tokens.
    pub tokens: u64,
    /// Until when.
    pub until: Timestamp,
}

/// A truncation, and the limit of its results.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<'a> {
    /// The truncation.
    pub truncated: &'a Truncated,
    /// How many characters a result may have.
    pub limit: usize,
    /// The window that the limit was computed from, in tokens.
    pub window: Option<u64>,
    /// The cached part that it costs.
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
