//! The library's interfaces to models: a summariser and a chat model. Plain data in and out, and one error type.
//!
//! Invariant: a request for a summary has no field for tools, so a summariser cannot be offered any.

use std::{fmt, time::Duration};

use crate::{
    context::overflow::Figures,
    model::{Message, Stop, Usage},
};

/// A model that writes summaries.
pub trait Summarizer {
    /// Returns its name for a summary's metadata and for errors.
    fn name(&self) -> &str;

    /// Returns the size of its window in tokens, if known.
    fn window(&self) -> Option<u64> {
        None
    }

    /// Answers a prompt.
    fn summarize(&self, request: &SummaryRequest) -> Result<Written, ModelError>;
}

/// A model that answers a conversation.
pub trait ChatModel {
    /// Returns its name for errors.
    fn name(&self) -> &str;

    /// Returns the model's message: thinking, text, calls, usage and stop reason. Reports the words of a streamed answer as they
    /// come.
    fn answer(
        &self,
        request: &ChatRequest<'_>,
        heard: &mut dyn FnMut(Heard<'_>),
    ) -> Result<Message, ModelError>;
}

/// A part of a streamed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// The next words of the text.
    Words(&'a str),
    /// The words so far are void, because the request is repeated.
    Void,
}

/// A request for a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRequest {
    /// The system prompt.
    pub system: String,
    /// The material and the instructions.
    pub prompt: String,
    /// The maximum number of tokens of the answer.
    pub max_tokens: u64,
    /// The time limit, in addition to the model's own.
    pub limit: Duration,
}

/// A summariser's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The text.
    pub text: String,
    /// The name of the model that answered, as it reports it.
    pub model: Option<String>,
    /// Its usage.
    pub usage: Option<Usage>,
    /// The stop reason, if known.
    pub stop: Option<Stop>,
}

/// A request to a chat model: a context that was prepared for it.
#[derive(Clone, Copy, Debug)]
pub struct ChatRequest<'a> {
    /// The session's own system prompt.
    pub system: &'a str,
    /// The conversation.
    pub messages: &'a [Message],
    /// The tools that it may call.
    pub tools: &'a [Tool],
    /// The maximum number of tokens of the answer.
    pub max_tokens: u64,
    /// The time limit of the request with its repetitions.
    pub limit: Duration,
}

/// A tool that a chat model may call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON schema of its arguments.
    pub schema: String,
}

/// The failure of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{model}: {fault}")]
pub struct ModelError {
    /// The model's name.
    pub model: String,
    /// The fault.
    pub fault: Fault,
}

/// A fault of a model, classified by what a caller can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The request exceeds the window. Send less.
    Overflow {
        /// The model's error message.
        said: String,
        /// The figures in it.
        figures: Figures,
    },
    /// A rate limit. Repeat the same request later.
    RateLimited {
        /// The model's error message.
        said: String,
        /// When to repeat it, if the answer says so.
        after: Option<Duration>,
    },
    /// The request, the key or the account must be changed first.
    Refused {
        /// The model's error message.
        said: String,
        /// The HTTP status, if there is one.
        status: Option<u16>,
    },
    /// The key would be sent to another computer as plain text.
    Exposed,
    /// The server cannot be reached, is broken, or closed the connection. Repeat the same request later.
    Unreachable {
        /// What failed.
        said: String,
        /// When to repeat it, if the answer says so.
        after: Option<Duration>,
    },
    /// There was no answer in time.
    TimedOut {
        /// The time limit.
        limit: Duration,
    },
    /// There was an answer, but not one of a model.
    BadAnswer {
        /// What was wrong with it.
        said: String,
    },
    /// The model declined to answer.
    Declined {
        /// Its message.
        said: String,
    },
    /// The model's answer was empty.
    Silent {
        /// True if it reached the token limit before it wrote anything, as models that think may do.
        was_cut: bool,
    },
}

impl Fault {
    /// Returns true if the same request may succeed later.
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
