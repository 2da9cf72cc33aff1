//! The options of a compaction, its hooks, and when it is due.

use std::{
    cell::RefCell,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    context::{
        compact::Writer,
        event::{Cause, Event},
        machine,
        measure::{Measured, Word},
        model::Tool,
        plan::{self, Keep, Nearness, Trigger},
        tokens::Counting,
        visible::Visible,
    },
    model::Timestamp,
    report::Compacted,
    secrets::Allowed,
    session::Session,
    verbs::{Asked, Context, OpsError},
};

/// A function of the caller that runs before or after a compaction and may fail.
pub type Hook<'a> = &'a dyn Fn(&Value) -> Result<(), String>;

/// How a session is compacted.
#[derive(Clone, Copy)]
pub struct Compacting<'a> {
    /// How to prepare its context.
    pub asked: &'a Asked,
    /// When it is due.
    pub rule: Rule,
    /// Who asked for it.
    pub cause: Cause,
    /// Which messages are kept.
    pub keep: Keep,
    /// Whether to compact even if nothing was added since the last time: the provider said that the context does not fit.
    pub again: bool,
    /// What the user wants the summary to focus on.
    pub focus: Option<&'a str>,
    /// The tools of the next request, if the caller offers any; otherwise those that the session's file names.
    pub tools: &'a [Tool],
    /// The skills that the agent can read; they have no schema.
    pub skills: &'a [Tool],
    /// Which of the files named in the session a summariser may read; none by default.
    pub visible: Visible<'a>,
    /// Whether a failing model is an error. Otherwise an extract replaces its summary.
    pub strict: bool,
    /// The window that the provider reported, which takes precedence over what is known of the model.
    pub named: Option<u64>,
    /// The tokens of a request apart from its messages, such as tool definitions.
    pub beside: u64,
    /// Who writes the summary.
    pub by: Writer<'a>,
    /// Whether a written summary gets an appendix.
    pub appendix: bool,
    /// What is not masked in it although it looks like a secret.
    pub allowed: Option<&'a Allowed>,
    /// How long it may take.
    pub limit: Duration,
    /// When the command that needs it must end.
    pub until: Option<Instant>,
    /// The clock.
    pub clock: &'a dyn Fn() -> Timestamp,
    /// Runs before anything is done; its error stops the compaction.
    pub before: Option<Hook<'a>>,
    /// Runs after everything is done.
    pub after: Option<Hook<'a>>,
    /// Earlier events to store with its operation; drained by the compaction.
    pub log: Option<&'a RefCell<Vec<Event>>>,
}

impl<'a> Compacting<'a> {
    /// Returns the defaults: asked for by a person, by the extract, keeping a fifth.
    pub fn of(asked: &'a Asked, clock: &'a dyn Fn() -> Timestamp) -> Self {
        Self {
            asked,
            rule: Rule::default(),
            cause: Cause::Manual,
            keep: plan::KEEP,
            again: false,
            focus: None,
            tools: &[],
            skills: &[],
            visible: Visible::default(),
            strict: false,
            named: None,
            beside: 0,
            by: Writer::Extract,
            appendix: true,
            allowed: None,
            limit: machine::LIMIT,
            until: None,
            clock,
            before: None,
            after: None,
            log: None,
        }
    }
}

impl Compacting<'_> {
    /// Returns how much time the command has left.
    pub fn left(&self) -> Duration {
        self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Returns the size of a context in tokens.
    pub fn tokens(&self, context: &Context) -> u64 {
        self.all(context.measured)
    }

    /// Adds the tokens apart from the messages to a size, unless it was reported and includes them.
    pub(crate) fn all(&self, measured: Measured) -> u64 {
        let beside = if measured.word == Word::Estimate { self.beside } else { 0 };
        measured.tokens.saturating_add(beside)
    }

    /// Returns the milliseconds since a time.
    pub(crate) fn elapsed(&self, begun: Timestamp) -> u64 {
        u64::try_from((self.clock)().0.saturating_sub(begun.0)).unwrap_or(0)
    }

    /// Runs the hook before a compaction, which may refuse it.
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

    /// Runs the hook after a compaction.
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
            "summarised": compacted.summarised,
            "kept": compacted.kept,
            "model": compacted.model,
            "files": compacted.files,
            "duration_ms": compacted.duration_ms,
            "fallback": compacted.fallback,
            "hook": "after_compaction",
            "session": session.name.id,
            "operation": compacted.done.operation,
            "summary": compacted.text,
        }))
    }
}

/// When a context is due for compaction, in any window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The percentage of the window.
    pub percent: u64,
    /// The tokens reserved for an answer; at most a quarter of the window counts.
    pub reserve: u64,
    /// The number of tokens from which it is due, if that is less.
    pub at: Option<u64>,
}

impl Default for Rule {
    fn default() -> Self {
        let Trigger { percent, reserve, at, .. } = Trigger::of(0);
        Self { percent, reserve, at }
    }
}

/// An estimate may be this many times too small: base64 has a token for every one and a half characters.
const MARGIN: u64 = 3;

impl Rule {
    /// Returns how near a context of this size is. In a build that cannot count exactly, a quarter is added to an estimate.
    pub fn near(self, window: u64, measured: Measured) -> Nearness {
        let Self { percent, reserve, at } = self;
        let is_vague = measured.word == Word::Estimate && !cfg!(feature = "tokens");
        let more = if is_vague { measured.tokens / 4 } else { 0 };
        let tokens = measured.tokens.saturating_add(more);
        Trigger { window, percent, reserve, at }.near(tokens)
    }

    /// Returns how to count exactly, if an estimate is too vague to say whether a compaction is due.
    pub fn exactly(self, asked: &Asked, window: u64, measured: Measured) -> Option<Asked> {
        let near = self.near(window, measured);
        let is_estimate =
            measured.word == Word::Estimate && asked.counting == Some(Counting::Estimate);
        let is_vague = is_estimate && near.tokens.saturating_mul(MARGIN) >= near.at;
        is_vague.then(|| Asked { counting: None, ..asked.clone() })
    }
}
