//! Turns: the model's text, and the calls that are waiting for a result.

use serde_json::Value;

use super::{
    compact::Compacted,
    hint::Line,
    notice::Notice,
    shape::{object, report},
};
use crate::model::{OperationNumber, Stop, Usage};

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments, as JSON.
    pub input: String,
}

/// The result of a turn.
#[derive(Clone, Debug, Default)]
pub struct Turned {
    /// The model's last text.
    pub said: String,
    /// Why the model stopped, if it said so.
    pub stop: Option<Stop>,
    /// Calls without a result.
    pub pending: Vec<Call>,
    /// Whether the conversation already ended with the prompt, so that it was not added again.
    pub is_repeated: bool,
    /// The branch that has the new entries, if another command moved the session meanwhile.
    pub aside: Option<String>,
    /// The number of requests to the model.
    pub steps: usize,
    /// The number of calls that got a result.
    pub answered: usize,
    /// The model's token usage in all requests.
    pub usage: Usage,
    /// How many tokens the context has now.
    pub tokens: u64,
    /// The context window.
    pub window: u64,
    /// The operations, oldest first.
    pub operations: Vec<OperationNumber>,
    /// The compactions among them.
    pub compactions: Vec<Compacted>,
    /// The notices of the change.
    pub notices: Vec<Notice>,
}

report!(Turned, "turn", |it| {
    said: it.said,
    stop: it.stop.map(Stop::as_str),
    pending: it.pending,
    branch: it.aside,
    steps: it.steps,
    answered: it.answered,
    usage: it.usage,
    tokens: it.tokens,
    window: it.window,
    operations: it.operations,
}, hints: |it| {
    let answer = |call: &Call| {
        let append = Line::about("append").option("result", &call.id).with("-");
        append.to(format!("to answer {} from stdin", call.name))
    };
    let go_on = |branch: &String| Line::about("switch").with(branch).to("to continue on that branch");
    it.aside.iter().map(go_on).chain(it.pending.iter().map(answer))
});

object!(Call, |it| {
    id: it.id,
    name: it.name,
    input: serde_json::from_str(&it.input).unwrap_or_else(|_| Value::from(&*it.input)),
});
