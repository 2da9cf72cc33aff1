//! How a session is compacted: the request, its plan and its result.

use std::{cell::RefCell, time::Duration};

use serde_json::{Value, json};

use crate::{
    context::{
        event::{Cause, Event},
        machine,
        measure::{Measured, Word},
        model::Summarizer,
        plan::{self, Keep, Nearness, Trigger},
        visible::Visible,
    },
    model::Timestamp,
    report::Compacted,
    session::Session,
    verbs::{Asked, Context, OpsError},
};

/// A function of the caller's that is told before or after, and may fail.
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
    /// The messages that are kept.
    pub keep: Keep,
    /// Whether to compact though nothing came since the last time: the provider said that it does not fit.
    pub again: bool,
    /// The subject on which the user wants the summary to dwell.
    pub focus: Option<&'a str>,
    /// Which files a summariser is shown of those that the session names; by default none.
    pub visible: Visible<'a>,
    /// Whether a failing model is an error; else statistics and the last requests stand for a summary.
    pub strict: bool,
    /// How many tokens fit by the provider's own word, which is better than what is known of the model.
    pub named: Option<u64>,
    /// The tokens of a request in addition to the messages, such as the definitions of tools.
    pub beside: u64,
    /// The writer of the summary; left out, the extract that needs no model.
    pub by: Option<&'a dyn Summarizer>,
    /// How long it may take.
    pub limit: Duration,
    /// The clock.
    pub clock: &'a dyn Fn() -> Timestamp,
    /// Is told before anything is done, and stops it by failing.
    pub before: Option<Hook<'a>>,
    /// Is told after all is done.
    pub after: Option<Hook<'a>>,
    /// Events before it that are kept with its operation; it is empty then.
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
            named: None,
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
    /// Returns how many tokens a context has.
    pub fn tokens(&self, context: &Context) -> u64 {
        self.all(context.measured)
    }

    /// Returns a size with the tokens in addition to the messages, which only an estimate of these leaves out.
    pub(crate) fn all(&self, measured: Measured) -> u64 {
        let beside = if measured.word == Word::Estimate { self.beside } else { 0 };
        measured.tokens.saturating_add(beside)
    }

    /// Tells the user's command what is about to be compacted, which it may refuse.
    pub(crate) fn tell_before(
        &self,
        session: &Session,
        tokens: u64,
        window: u64,
        [summarised, kept]: [usize; 2],
    ) -> Result<(), OpsError> {
        let Some(before) = self.before else { return Ok(()) };
        let told = json!({
            "hook": "before_compaction", "session": session.name.id, "trigger": self.cause.as_str(),
            "tokens": tokens, "window": window, "summarised": summarised, "kept": kept,
        });
        before(&told).map_err(|why| OpsError::Hook { hook: "before_compaction", why })
    }

    /// Tells the caller's hook of a compaction that was made.
    pub(crate) fn tell_after(
        &self,
        session: &Session,
        compacted: &Compacted,
    ) -> Result<(), String> {
        let Some(after) = self.after else { return Ok(()) };
        after(&json!({
            "branch": compacted.branch,
            "trigger": self.cause.as_str(),
            "pre_tokens": compacted.pre_tokens,
            "post_tokens": compacted.post_tokens,
            "window": compacted.window,
            "summarised": compacted.parts.summarised.messages,
            "kept": compacted.parts.kept.messages,
            "model": compacted.model,
            "files": compacted.files,
            "duration_ms": compacted.duration_ms,
            "fallback": compacted.fallback,
            "hook": "after_compaction",
            "session": session.name.id,
            "operation": compacted.operation,
            "summary": compacted.text,
        }))
    }
}

/// When a context is to be compacted, whatever its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// At how many per cent of the window.
    pub percent: u64,
    /// The reserve for an answer; never more than a quarter of the window counts.
    pub reserve: u64,
}

impl Default for Rule {
    fn default() -> Self {
        let Trigger { percent, reserve, .. } = Trigger::of(0);
        Self { percent, reserve }
    }
}

impl Rule {
    /// Returns how near a context of this many tokens is.
    pub fn near(self, window: u64, tokens: u64) -> Nearness {
        Trigger { window, percent: self.percent, reserve: self.reserve }.near(tokens)
    }
}
