//! Compaction: its effect on a context, as planned and as made.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    hint::{Hint, Line},
    notice::Notice,
    shape::report,
};
use crate::{
    context::{
        loss::Loss,
        plan::{Nearness, Nothing},
    },
    model::{EntryId, OperationNumber, Usage},
};

/// The effect that a compaction would have.
#[derive(Clone, Debug)]
pub struct Planned {
    /// How close the context is to it.
    pub near: Nearness,
    /// The parts of the context, or why there is nothing to do.
    pub parts: Result<Parts, Nothing>,
    /// What the extract would no longer mention of the messages that it would represent.
    pub losses: Vec<Loss>,
}

/// A number of messages, and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Messages.
    pub messages: usize,
    /// Tokens.
    pub tokens: u64,
}

/// The parts of a context in a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The messages that the summary replaces.
    pub summarised: Part,
    /// The messages that are kept.
    pub kept: Part,
    /// Earlier summaries, which the new one incorporates.
    pub carried: Part,
    /// The session's own system prompt.
    pub system: Part,
}

/// The result of a compaction.
#[derive(Clone, Debug, Default)]
pub struct Compacted {
    /// The operation; none if there was nothing to compact.
    pub operation: Option<OperationNumber>,
    /// Why there was nothing to compact.
    pub nothing: Option<Nothing>,
    /// The branch.
    pub branch: String,
    /// The branch that preserves the previous state, if the file was rewritten.
    pub left: Option<String>,
    /// The entry of the summary.
    pub summary: Option<EntryId>,
    /// The summary, as the model sees it.
    pub text: String,
    /// The parts of the context.
    pub parts: Parts,
    /// How many tokens the context had before.
    pub pre_tokens: u64,
    /// How many tokens it has now.
    pub post_tokens: u64,
    /// The context window.
    pub window: u64,
    /// The files that were shown to the summariser.
    pub files: Vec<String>,
    /// The model that wrote the summary.
    pub model: String,
    /// The token usage of that model.
    pub usage: Usage,
    /// How long the compaction took.
    pub duration_ms: u64,
    /// Why the summary is only the fallback, if it is.
    pub fallback: Option<String>,
    /// What the summary no longer mentions of the messages that it represents.
    pub losses: Vec<Loss>,
    /// The error of the hook that runs afterwards, if it failed.
    pub after: Option<String>,
    /// The old live file, if it was rotated.
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<PathBuf>,
    /// The notices of the change.
    pub notices: Vec<Notice>,
}

/// The result of a recovery.
#[derive(Clone, Debug)]
pub struct Recovered<T> {
    /// The return value of the attempt.
    pub answer: T,
    /// The operations that made the session fit.
    pub operations: Vec<OperationNumber>,
    /// The compactions among them.
    pub compactions: Vec<Compacted>,
    /// How many tokens the context had before.
    pub pre_tokens: u64,
    /// How many tokens it has now.
    pub post_tokens: u64,
    /// The context window, as named by the provider if it named one.
    pub window: u64,
    /// The notices of all changes.
    pub notices: Vec<Notice>,
}

report!(Planned, "plan", |it| {
    tokens: it.near.tokens,
    window: it.near.window,
    at: it.near.at,
    left: it.near.left,
    due: it.near.is_due,
    nothing: it.parts.err().map(|why| why.to_string()),
    summarised: it.parts.unwrap_or_default().summarised,
    kept: it.parts.unwrap_or_default().kept,
    carried: it.parts.unwrap_or_default().carried,
    system: it.parts.unwrap_or_default().system,
    losses: it.losses,
});

report!(Compacted, "compact", |it| {
    operation: it.operation,
    nothing: it.nothing.map(|why| why.to_string()),
    branch: it.branch,
    left: it.left,
    summary: it.summary,
    summarised: it.parts.summarised.messages,
    kept: it.parts.kept.messages,
    carried: it.parts.carried.messages,
    pre_tokens: it.pre_tokens,
    post_tokens: it.post_tokens,
    window: it.window,
    files: it.files,
    model: (!it.model.is_empty()).then_some(&it.model),
    duration_ms: it.duration_ms,
    fallback: it.fallback,
    losses: it.losses,
    rotated: it.rotated.as_ref().map(|path| path.to_string_lossy()),
    written: it.written.as_ref().map(|path| path.to_string_lossy()),
}, hints: |it| {
    let context = || Line::about("context").to("to see what a model would be sent");
    it.operation.map(|_| [context(), Hint::undo()]).into_iter().flatten()
});

report!(Recovered<()>, "recover", |it| {
    operations: it.operations,
    pre_tokens: it.pre_tokens,
    post_tokens: it.post_tokens,
    window: it.window,
}, hints: |it| [if it.operations.is_empty() {
    let help = Line::new("recover").flag("help");
    help.to("if a provider refused the request, pass its message with --error")
} else {
    Line::about("undo").to("to undo the last operation")
}]);
