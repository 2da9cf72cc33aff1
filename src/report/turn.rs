//! Turns: the model's text, and the calls that are waiting for a result.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{
    compact::Compacted,
    notice::Notice,
    shape::{named, report},
};
use crate::context::{self, Item, Shape};
use crate::model::hint::Line;
use crate::model::{OperationNumber, Stop, Usage};

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// The id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments of the call, as a string if they are not valid JSON.
    #[serde(serialize_with = "input")]
    pub input: String,
}

fn input<S: Serializer>(input: &str, to: S) -> Result<S::Ok, S::Error> {
    serde_json::from_str(input).unwrap_or_else(|_| Value::from(input)).serialize(to)
}

/// The result of a turn.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Turned {
    /// The model's last words.
    pub said: String,
    /// Why the model stopped; `null` if the provider doesn't say.
    pub stop: Option<Stop>,
    /// The calls without a result.
    pub pending: Vec<Call>,
    /// Whether the conversation already ended with the prompt, so that it was not added again.
    #[serde(skip)]
    pub is_repeated: bool,
    /// The branch with the answer, if another command changed the session's position meanwhile.
    #[serde(rename = "branch")]
    pub aside: Option<String>,
    /// How often the model was asked.
    pub steps: usize,
    /// How many calls got a result.
    pub answered: usize,
    /// The tokens used by all requests together.
    pub usage: Usage,
    /// How often the model sent itself a message to an earlier checkpoint.
    pub dmails: usize,
    /// What the model would be asked next, if the deadline ended the turn.
    pub stopped: Option<Stopped>,
    /// How many tokens the context has now.
    pub tokens: u64,
    /// The size of the model's context window in tokens.
    pub window: u64,
    /// The operations, oldest first.
    pub operations: Vec<OperationNumber>,
    /// The compactions among them.
    #[serde(skip)]
    pub compactions: Vec<Compacted>,
    /// The notices of the change.
    #[serde(skip)]
    pub notices: Vec<Notice>,
}

/// A conversation at the end of a deadline.
#[derive(Clone, Debug, Serialize)]
pub struct Stopped {
    /// Which state of the session this is.
    pub state: Moment,
    /// The session.
    pub session: String,
    /// The messages, as `context --json` shows them.
    #[serde(rename = "messages")]
    pub request: Value,
}

/// A state of a session at the end of a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// From before the compaction that was in progress, or whose retry was.
    Before,
    /// The present one.
    Present,
}

impl Stopped {
    /// Makes it from the items of a context.
    pub(crate) fn new(state: Moment, session: String, items: &[Item]) -> Self {
        let request = serde_json::to_value(context::request(items, Shape::Messages));
        let messages = request.unwrap_or_default().get_mut("messages").map(Value::take);
        Self { state, session, request: messages.unwrap_or_default() }
    }
}

report!(Turned, "turn", hints: |it| {
    let answer = |call: &Call| {
        let append = Line::about("append").option("result", &call.id).with("-");
        append.to(format!("to answer {} from stdin", call.name))
    };
    let go_on = |branch: &String| Line::about("switch").with(branch).to("to continue on that branch");
    it.aside.iter().map(go_on).chain(it.pending.iter().map(answer))
});

named!(Stop);
