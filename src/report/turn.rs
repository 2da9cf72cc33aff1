//! Turns: the words of a model, and the calls that wait for an answer.

use serde_json::Value;

use super::{
    compact::Compacted,
    hint::Line,
    notice::Notice,
    shape::{object, report},
};
use crate::model::{OperationNumber, Stop, Usage};

/// A call of a tool.
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
    /// The model's last words.
    pub said: String,
    /// How its last answer ended, if it said that.
    pub stop: Option<Stop>,
    /// Calls that nobody answered.
    pub pending: Vec<Call>,
    /// Whether the prompt stood at the end already, and was not said again.
    pub is_repeated: bool,
    /// The branch that has what was said last, if another command changed the session's position meanwhile.
    pub aside: Option<String>,
    /// How often the model was asked.
    pub steps: usize,
    /// How many calls were answered.
    pub answered: usize,
    /// The model's usage, all requests together.
    pub usage: Usage,
    /// How many tokens the context has now, and how many fit.
    pub tokens: u64,
    /// The window.
    pub window: u64,
    /// The operations, the oldest first.
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
