//! How a session is compacted, what that would do, and what it did.

use std::{cell::RefCell, path::PathBuf, time::Duration};

use serde_json::Value;

use crate::{
    context::{
        event::{Cause, Event},
        machine,
        model::Summarizer,
        plan::{self, Keep, Nearness, Nothing, Trigger},
        visible::Visible,
    },
    model::{EntryId, Timestamp, Usage},
    ops::{Asked, Context, context::believed},
    sync::Notice,
};

/// Something of the caller's that is told before or after, and may fail.
pub type Hook<'a> = &'a dyn Fn(&Value) -> Result<(), String>;

/// How a session is compacted.
#[derive(Clone, Copy)]
pub struct Compacting<'a> {
    /// How its context is asked for.
    pub asked: &'a Asked,
    /// When it is due.
    pub rule: Rule,
    /// Who asks.
    pub cause: Cause,
    /// What is kept.
    pub keep: Keep,
    /// Whether to compact though nothing came since the last time: the provider said that it does not fit.
    pub again: bool,
    /// What the user wants the summary to dwell on.
    pub focus: Option<&'a str>,
    /// Which files a summariser is shown of those that the session names; by default none.
    pub visible: Visible<'a>,
    /// Whether a failing model is an error; else statistics and the last requests stand for a summary.
    pub strict: bool,
    /// How many tokens a request has beside the messages, such as the definitions of tools.
    pub beside: u64,
    /// Who writes the summary; left out, the extract that needs no model.
    pub by: Option<&'a dyn Summarizer>,
    /// How long it may take.
    pub limit: Duration,
    /// The clock.
    pub clock: &'a dyn Fn() -> Timestamp,
    /// Is told before anything is done, and stops it by failing.
    pub before: Option<Hook<'a>>,
    /// Is told after all is done.
    pub after: Option<Hook<'a>>,
    /// What happened before it and is kept with its operation; it is empty then.
    pub log: Option<&'a RefCell<Vec<Event>>>,
}

impl<'a> Compacting<'a> {
    /// Returns the usual way: by the extract, a fifth is kept, because a person asks.
    pub fn of(asked: &'a Asked, clock: &'a dyn Fn() -> Timestamp) -> Self {
        Self {
            asked,
            rule: Rule::default(),
            cause: Cause::Manual,
            keep: plan::KEEP,
            again: false,
            focus: None,
            visible: Visible::default(),
            strict: false,
            beside: 0,
            by: None,
            limit: machine::LIMIT,
            clock,
            before: None,
            after: None,
            log: None,
        }
    }
}

impl Compacting<'_> {
    /// Returns how many tokens a context has: what the model reported where it did.
    pub fn tokens(&self, context: &Context) -> u64 {
        believed(context.reported, context.tokens().saturating_add(self.beside))
    }
}

/// When a context is to be compacted, whatever its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// At how many per cent of the window.
    pub percent: u64,
    /// How much is reserved for an answer; never more than a quarter of the window counts.
    pub reserve: u64,
}

impl Default for Rule {
    fn default() -> Self {
        let Trigger { percent, reserve, .. } = Trigger::of(0);
        Self { percent, reserve }
    }
}

impl Rule {
    /// Returns how near a context of so many tokens is.
    pub fn near(self, window: u64, tokens: u64) -> Nearness {
        Trigger { window, percent: self.percent, reserve: self.reserve }.near(tokens)
    }
}

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
