//! Compaction: its effect on a context, as planned and as made.

use serde::Serialize;

use super::{
    done::Done,
    notice::Notice,
    session::Created,
    shape::{report, some_text},
};
use crate::model::hint::{Hint, Line};
use crate::{
    context::{
        facts::Loss,
        plan::{Nearness, Nothing},
    },
    model::{EntryId, OperationNumber, Usage},
};

/// The effect that a compaction would have.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// How close the context is to it.
    #[serde(flatten)]
    pub near: Nearness,
    /// Why there is nothing to compact.
    #[serde(serialize_with = "some_text")]
    pub nothing: Option<Nothing>,
    /// The parts of the context.
    #[serde(flatten)]
    pub parts: Parts,
    /// What an extract would lose.
    pub losses: Vec<Loss>,
}

/// A number of messages, and their tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The number of messages.
    pub messages: usize,
    /// The number of tokens.
    pub tokens: u64,
}

/// The parts of a context in a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Debug, Default, Serialize)]
pub struct Compacted {
    /// What the change did.
    #[serde(flatten)]
    pub done: Done,
    /// Why there was nothing to compact.
    #[serde(serialize_with = "some_text")]
    pub nothing: Option<Nothing>,
    /// The branch.
    pub branch: String,
    /// The branch that keeps the previous state, if the file was rewritten.
    pub left: Option<String>,
    /// The entry with the summary.
    pub summary: Option<EntryId>,
    /// The summary, as the model sees it.
    #[serde(skip)]
    pub text: String,
    /// How many messages were summarised.
    pub summarised: usize,
    /// How many messages were kept.
    pub kept: usize,
    /// How many earlier summaries went into the new one.
    pub carried: usize,
    /// How many tokens the context had before.
    pub pre_tokens: u64,
    /// How many tokens the context has now.
    pub post_tokens: u64,
    /// The size of the model's context window in tokens.
    pub window: u64,
    /// The files that the model was shown.
    pub files: Vec<String>,
    /// The model, or other source, that wrote the summary.
    pub model: Option<String>,
    /// The token usage of that model.
    #[serde(skip)]
    pub usage: Usage,
    /// How long the compaction took, in milliseconds.
    pub duration_ms: u64,
    /// If a model should have written the summary but didn't, the reason.
    pub fallback: Option<String>,
    /// What the summary lost.
    pub losses: Vec<Loss>,
    /// The error of the hook that runs afterwards, if it failed.
    #[serde(skip)]
    pub after: Option<String>,
}

/// The result of a handoff: the new session.
#[derive(Clone, Debug, Serialize)]
pub struct HandedOff {
    /// The new session.
    #[serde(flatten)]
    pub created: Created,
    /// How many messages of the old session the summary stands for.
    pub summarised: usize,
    /// The size of the summary in tokens.
    pub tokens: u64,
    /// The model, or other source, that wrote the summary.
    pub model: String,
    /// If a model should have written the summary but didn't, the reason.
    pub fallback: Option<String>,
}

/// The result of a recovery.
#[derive(Clone, Debug, Serialize)]
pub struct Recovered<T> {
    /// The return value of the attempt.
    #[serde(skip)]
    pub answer: T,
    /// The numbers of the compactions and truncations that `recover` made.
    pub operations: Vec<OperationNumber>,
    /// The compactions among them.
    #[serde(skip)]
    pub compactions: Vec<Compacted>,
    /// How many tokens the context had before.
    pub pre_tokens: u64,
    /// How many tokens the context has now.
    pub post_tokens: u64,
    /// The size of the model's context window, as named by the provider if it named one.
    pub window: u64,
    /// The notices of all changes.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

report!(Planned, "plan");

report!(HandedOff, "handoff");

report!(Compacted, "compact", hints: |it| {
    let context = || Line::about("context").to("to see what a model would be sent");
    it.done.operation.map(|_| [context(), Hint::undo()]).into_iter().flatten()
});

report!(Recovered<()>, "recover", hints: |it| [if it.operations.is_empty() {
    let help = Line::new("recover").flag("help");
    help.to("if a provider refused the request, pass its message with --error")
} else {
    Line::about("undo").to("to undo the last operation")
}]);
