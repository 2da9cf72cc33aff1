//! Compaction: what it would do to a context, and what it did.

use std::path::PathBuf;

use crate::{
    context::plan::{Nearness, Nothing},
    model::{EntryId, Usage},
    report::Notice,
};

/// What a compaction would do.
#[derive(Clone, Debug)]
pub struct Planned {
    /// How near it is.
    pub near: Nearness,
    /// What it would do, or why there is nothing to do.
    pub parts: Result<Parts, Nothing>,
}

/// How many messages, and how many tokens they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Messages.
    pub messages: usize,
    /// Tokens.
    pub tokens: u64,
}

/// What becomes of the messages of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// A summary stands for them.
    pub summarised: Part,
    /// They stay.
    pub kept: Part,
    /// Earlier summaries, which the new one carries on.
    pub carried: Part,
    /// The session's own system prompt.
    pub system: Part,
}

/// What a compaction did.
#[derive(Clone, Debug, Default)]
pub struct Compacted {
    /// The operation; none if there was nothing to compact.
    pub operation: Option<u64>,
    /// Why there was nothing to compact.
    pub nothing: Option<Nothing>,
    /// The branch.
    pub branch: String,
    /// The branch that holds the state before, where the file was written anew.
    pub left: Option<String>,
    /// The entry of the summary.
    pub summary: Option<EntryId>,
    /// The summary, as a model gets it.
    pub text: String,
    /// What became of the messages.
    pub parts: Parts,
    /// How many tokens the context had.
    pub pre_tokens: u64,
    /// How many it has now.
    pub post_tokens: u64,
    /// The window.
    pub window: u64,
    /// Which files the summariser was shown.
    pub files: Vec<String>,
    /// Who wrote the summary.
    pub model: String,
    /// What that used.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// Why the summary is the fallback, if it is.
    pub fallback: Option<String>,
    /// What went wrong with what is told after.
    pub after: Option<String>,
    /// The old live file, if it was exchanged.
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<PathBuf>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}

/// What a recovery led to.
#[derive(Clone, Debug)]
pub struct Recovered<T> {
    /// What the attempt yielded.
    pub answer: T,
    /// The operations by which the session was made to fit.
    pub operations: Vec<u64>,
    /// How many tokens the context had at first.
    pub pre_tokens: u64,
    /// How many it has now.
    pub post_tokens: u64,
}
