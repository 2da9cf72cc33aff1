//! Models as the library sees them: a summariser and a chat model, plain data in and out, and one error.
//!
//! Invariant: a request for a summary has no place for tools; none can be offered to a summariser.

use std::{fmt, time::Duration};

use crate::{
    context::overflow::Figures,
    model::{Message, Stop, Usage},
};

/// A writer of summaries.
pub trait Summarizer {
    /// Returns the name that is in a summary's metadata and in errors.
    fn name(&self) -> &str;

    /// Returns how many tokens it takes, if that is known.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Answers a prompt.
    fn summarize(&self, request: &SummaryRequest) -> Result<Written, ModelError>;
}

/// A model that answers a conversation.
pub trait ChatModel {
    /// Returns the name that is in errors.
    fn name(&self) -> &str;

    /// Returns the model's message: its words and calls, its usage, how it ended.
    fn answer(&self, request: &ChatRequest<'_>) -> Result<Message, ModelError>;
}

/// A request for a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRequest {
    /// The words about the task.
    pub system: String,
    /// The material and the instructions.
    pub prompt: String,
    /// The most tokens of the answer.
    pub max_tokens: u64,
    /// How long it may take, whatever its own limit is.
    pub limit: Duration,
}

/// A summariser's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Its words.
    pub text: String,
    /// The model that answered, by its own word.
    pub model: Option<String>,
    /// Its usage.
    pub usage: Option<Usage>,
    /// How it ended, if that is known.
    pub stop: Option<Stop>,
}

/// A request to a chat model: a context that was prepared for it.
#[derive(Clone, Copy, Debug)]
pub struct ChatRequest<'a> {
    /// The session's own system prompt.
    pub system: &'a str,
    /// The conversation.
    pub messages: &'a [Message],
    /// The tools that may be called.
    pub tools: &'a [Tool],
    /// The most tokens of the answer.
    pub max_tokens: u64,
}

/// A tool that a chat model may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: String,
}

/// A model's failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {fault}")]
pub struct ModelError {
    /// The model's name.
    pub model: String,
    /// The fault.
    pub fault: Fault,
}

/// A fault of a model, by what a caller can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Less must be sent.
    Overflow {
        /// The model's words.
        said: String,
        /// The figures in it.
        figures: Figures,
    },
    /// The same may be asked later.
    RateLimited {
        /// The model's words.
        said: String,
        /// The time after which to ask, if the answer names one.
        after: Option<Duration>,
    },
    /// The request, the key or the account must be changed first.
    Refused {
        /// The model's words.
        said: String,
        /// The status, if there is one.
        status: Option<u16>,
    },
    /// The key would pass other computers as plain text.
    Exposed,
    /// The server is not there, is broken, or went away; the same may be asked later.
    Unreachable {
        /// The fault in words.
        said: String,
        /// The time after which to ask, if the answer names one.
        after: Option<Duration>,
    },
    /// No answer came in time.
    TimedOut {
        /// How long it had.
        limit: Duration,
    },
    /// It answered, but not as a model does.
    BadAnswer {
        /// The fault in words.
        said: String,
    },
    /// The model itself would not answer.
    Declined {
        /// Its words.
        said: String,
    },
    /// The model said nothing.
    Silent {
        /// Whether the room for its answer ran out before it said anything: models that think spend it on that.
        was_cut: bool,
    },
}

impl Fault {
    /// Whether the same request may pass later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::RateLimited { .. } | Self::Unreachable { .. } | Self::TimedOut { .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow { said, .. } => write!(out, "the request is too long: {said}"),
            Self::RateLimited { said, after: None } => write!(out, "too many requests: {said}"),
            Self::RateLimited { said, after: Some(after) } => {
                write!(out, "too many requests; try again in {} s: {said}", after.as_secs())
            }
            Self::Refused { said, status: None } | Self::Declined { said } => {
                write!(out, "the request failed: {said}")
            }
            Self::Refused { said, status: Some(status) } => {
                write!(out, "the request failed with status {status}: {said}")
            }
            Self::Exposed => out.write_str("request not sent: the key would be unencrypted"),
            Self::Unreachable { said, after: None } => write!(out, "cannot be reached: {said}"),
            Self::Unreachable { said, after: Some(after) } => {
                write!(out, "cannot be reached; try again in {} s: {said}", after.as_secs())
            }
            Self::TimedOut { limit } => write!(out, "no answer within {limit:.0?}"),
            Self::BadAnswer { said } => write!(out, "unusable answer: {said}"),
            Self::Silent { was_cut: true } => {
                out.write_str("the model reached its output token limit before producing any text")
            }
            Self::Silent { was_cut: false } => out.write_str("the answer is empty"),
        }
    }
}
