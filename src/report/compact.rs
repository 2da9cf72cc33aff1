//! Compaction: its effect on a context, before and after it is made.

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
    /// How near it is.
    pub near: Nearness,
    /// The parts of the context, or why there is nothing to do.
    pub parts: Result<Parts, Nothing>,
    /// What the extract would no longer name of the messages that it would stand for.
    pub losses: Vec<Loss>,
}

/// How many messages, and how many tokens they have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Messages.
    pub messages: usize,
    /// Tokens.
    pub tokens: u64,
}

/// The parts into which a compaction divides a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// A summary replaces them.
    pub summarised: Part,
    /// They stay.
    pub kept: Part,
    /// Earlier summaries, which the new one carries on.
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
    /// The branch that holds the state before, where the file was rewritten.
    pub left: Option<String>,
    /// The entry of the summary.
    pub summary: Option<EntryId>,
    /// The summary, as a model gets it.
    pub text: String,
    /// The parts of the context.
    pub parts: Parts,
    /// How many tokens the context had.
    pub pre_tokens: u64,
    /// How many it has now.
    pub post_tokens: u64,
    /// The window.
    pub window: u64,
    /// Which files the summariser was shown.
    pub files: Vec<String>,
    /// The writer of the summary.
    pub model: String,
    /// The writer's usage.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// Why the summary is the fallback, if it is.
    pub fallback: Option<String>,
    /// What the summary no longer names of the messages that it represents.
    pub losses: Vec<Loss>,
    /// The error of the hook that is told after, if it failed.
    pub after: Option<String>,
    /// The old live file, if it was exchanged.
    pub rotated: Option<PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<PathBuf>,
    /// The notices of the change.
    pub notices: Vec<Notice>,
}

/// The result of a recovery.
#[derive(Clone, Debug)]
pub struct Recovered<T> {
    /// The answer that the attempt yielded.
    pub answer: T,
    /// The operations by which the session was made to fit.
    pub operations: Vec<OperationNumber>,
    /// The compactions among them.
    pub compactions: Vec<Compacted>,
    /// How many tokens the context had at first.
    pub pre_tokens: u64,
    /// How many it has now.
    pub post_tokens: u64,
    /// The window, by the provider's word if it named one.
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
