//! Turns: what a model said, and which calls wait for an answer.

use crate::{model::Usage, report::Notice};

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

/// What a turn led to.
#[derive(Clone, Debug, Default)]
pub struct Turned {
    /// What the model said last.
    pub said: String,
    /// Calls that nobody answered.
    pub pending: Vec<Call>,
    /// How often the model was asked.
    pub steps: usize,
    /// How many calls were answered.
    pub answered: usize,
    /// What the model used, all requests together.
    pub usage: Usage,
    /// How many tokens the context has now, and how many fit.
    pub tokens: u64,
    /// The window.
    pub window: u64,
    /// The operations, the oldest first.
    pub operations: Vec<u64>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}
