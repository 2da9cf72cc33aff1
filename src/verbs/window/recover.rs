//! Recovery: makes every request to a model fit its window, with compactions, and with a truncation where that helps.
//!
//! [`crate::context::recover`] decides the steps; this file executes them on a session. A context that is due is compacted before
//! it is sent.
//!
//! Invariant: no context larger than the window is sent, so no model has to report the overflow.
//! Invariant: a compaction that times out changes nothing; the complete context from before is sent.

use std::{cell::RefCell, collections::BTreeSet};

use crate::{
    archive::{At, Workspace, busy::Busy},
    change,
    context::{
        Step,
        cut::Limit,
        event::{Cause, Event},
        machine::{self, Effect, State},
        measure::Measured,
        model::{Fault, ModelError},
        overflow::Figures,
        plan::Keep,
        recover::{self as ladder, Attempt, Large, Patient, Room},
        stages::SummaryError,
    },
    model::OperationNumber,
    report::{Compacted, Moment, Notice, Recovered, Stopped},
    verbs::{
        Asked, Bound, Compacting, Context, OpsError, oversized, truncate,
        window::{
            compact,
            context::{sendable_context, whole_context},
        },
    },
};

/// How many of the largest entries are reported.
const LARGEST: usize = 3;

/// Calls `attempt` with the context of a session, and makes the context fit if the attempt fails because of its size.
///
/// An attempt is any function that asks a model. An overflow is recovered from; any other failure is an error. If an attempt was
/// refused before this call, `refused` replaces the first one.
pub fn recover<T>(
    session: &At<'_>,
    workspace: &Workspace,
    wanted: &Compacting<'_>,
    refused: Option<ModelError>,
    attempt: &mut dyn FnMut(&Context) -> Result<T, ModelError>,
    emit: &mut dyn FnMut(&Event),
) -> Result<Recovered<T>, OpsError> {
    // Records in the live file that are not in the store yet must fit too.
    let notices = change::settle(session)?;
    let session = session.again()?;
    let first = sendable_context(&session, wanted.asked)?;
    let own = RefCell::new(Vec::new());
    let log = wanted.log.unwrap_or(&own);
    let wanted = Compacting { cause: Cause::Auto, log: Some(log), ..*wanted };
    let window = &first.window;
    let least = wanted.asked.windows.block;
    let (id, by) = (session.name.id.clone(), window.source);
    let room = Room { session: id, window: window.tokens, by, least, keep: wanted.keep };
    let pre_tokens = wanted.tokens(&first);
    let mut surgery = Surgery {
        session,
        workspace,
        wanted,
        refused,
        attempt,
        window: wanted.named.unwrap_or(window.tokens),
        scale: (1, 1),
        state: State::default(),
        before: None,
        operations: Vec::new(),
        compactions: Vec::new(),
        notices,
        tokens: pre_tokens,
        retries: Vec::new(),
        busy: None,
    };
    let mut told = |event: &Event| {
        // A compaction stores its own events.
        if matches!(
            event,
            Event::RecoveryStart { .. } | Event::RecoveryStep { .. } | Event::RecoveryEnd { .. }
        ) {
            log.borrow_mut().push(event.clone());
        }
        emit(event);
    };
    let answer = ladder::recover(&room, &mut surgery, &mut told)?;
    // In the provider's tokens if it reported a count, because the decisions used them.
    let (pre_tokens, post_tokens) = (surgery.scaled(pre_tokens), surgery.scaled(surgery.tokens));
    let Surgery { operations, compactions, window, notices, .. } = surgery;
    Ok(Recovered { answer, operations, compactions, pre_tokens, post_tokens, window, notices })
}

/// A session while it is made to fit.
struct Surgery<'a, 'w, T> {
    session: At<'a>,
    workspace: &'a Workspace,
    wanted: Compacting<'w>,
    /// The refusal of an attempt before the first one here.
    refused: Option<ModelError>,
    attempt: &'a mut dyn FnMut(&Context) -> Result<T, ModelError>,
    window: u64,
    /// The provider's count of tokens, and ours, for the same context.
    scale: (u64, u64),
    state: State,
    /// The context from before a running compaction.
    before: Option<Context>,
    operations: Vec<OperationNumber>,
    compactions: Vec<Compacted>,
    notices: Vec<Notice>,
    /// The size of the last context in tokens.
    tokens: u64,
    /// Compactions after which the attempt is repeated.
    retries: Vec<u64>,
    /// Tells other processes that an attempt is still to be repeated.
    busy: Option<Busy>,
}

impl<T> Surgery<'_, '_, T> {
    /// Sends an event to the state machine and applies its effects.
    fn step(&mut self, event: machine::Event, context: Option<&Context>) -> Option<Context> {
        let (state, effects) = std::mem::take(&mut self.state).step(event);
        self.state = state;
        let mut used = None;
        for effect in effects {
            match effect {
                Effect::TakeSnapshot => self.before = context.cloned(),
                Effect::Use(machine::Snapshot::Before) => used.clone_from(&self.before),
                Effect::DropSnapshot => self.before = None,
                // There are no waiters here, and no answer has begun yet.
                Effect::Use(machine::Snapshot::Current)
                | Effect::ResetOutput
                | Effect::Release(_)
                | Effect::Abort(..) => {}
            }
        }
        used
    }

    fn look(&self) -> Result<Context, OpsError> {
        let asked = self.wanted.asked;
        let results = asked.results.as_ref().map(|_| Bound::of_window(self.window));
        whole_context(&self.session.again()?, &Asked { results, ..asked.clone() })
    }

    /// Fails if the time of the command is over. The error has the context from before a compaction until its retry has ended,
    /// and otherwise the present one.
    fn check_time(&mut self, context: &Context, before: Option<Context>) -> Result<(), OpsError> {
        if !self.wanted.left().is_zero() {
            return Ok(());
        }
        let is_idle = self.state.is_idle();
        let before =
            before.or_else(|| self.step(machine::Event::Timeout, None).filter(|_| !is_idle));
        let state = if before.is_some() { Moment::Before } else { Moment::Present };
        let context = before.as_ref().unwrap_or(context);
        let session = self.session.name.id.clone();
        Err(OpsError::Deadline(Box::new(Stopped::new(state, session, &context.prepared.items))))
    }

    /// Reports the results that are cut in a request.
    fn report_cuts(&self, context: &Context, emit: &mut dyn FnMut(&Event)) {
        let cuts = context.prepared.changes.iter().filter(|change| change.step == Step::Cut);
        let results = cuts.filter_map(|cut| cut.entries.first()).collect::<BTreeSet<_>>().len();
        if results > 0 {
            let limit = Limit::of_window(self.window).chars();
            emit(&Event::ResultsCut { session: self.session.name.id.clone(), results, limit });
        }
    }

    /// Compacts. Returns whether that was done, was pointless, or timed out.
    fn try_compact(
        &mut self,
        wanted: &Compacting<'_>,
        context: &Context,
        will_retry: bool,
        emit: &mut dyn FnMut(&Event),
    ) -> Result<Tried, OpsError> {
        let session = self.session.again()?;
        if will_retry && self.busy.is_none() {
            self.busy = session.mark_busy();
        }
        let run = session.state.next_operation().get();
        self.step(machine::Event::Start(run), Some(context));
        let wanted = Compacting { limit: wanted.limit.min(wanted.left()), ..*wanted };
        let made = compact::compact(&session, self.workspace, &wanted, emit);
        match made {
            Err(OpsError::Summary { error: SummaryError::TimedOut { .. }, .. }) => {
                let before = self.step(machine::Event::Timeout, None);
                Ok(Tried::TimedOut(Box::new(before.unwrap_or_else(|| context.clone()))))
            }
            made => {
                let is_made = made.as_ref().is_ok_and(|made| made.done.operation.is_some());
                self.step(machine::Event::End { run, will_retry: will_retry && is_made }, None);
                if will_retry && is_made {
                    self.retries.push(run);
                }
                match made {
                    Ok(mut made) => {
                        self.operations.extend(made.done.operation);
                        Notice::add(std::mem::take(&mut made.done.notices), &mut self.notices);
                        if !is_made {
                            return Ok(Tried::Nothing);
                        }
                        self.compactions.push(made);
                        Ok(Tried::Compacted)
                    }
                    Err(OpsError::Summary { strict: false, .. }) => Ok(Tried::Nothing),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Converts a count of ours to the provider's tokens.
    fn scaled(&self, tokens: u64) -> u64 {
        let (used, counted) = self.scale;
        let scaled = u128::from(tokens) * u128::from(used) / u128::from(counted);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// Adopts a provider's figures in place of what was known and counted.
    fn learn(&mut self, error: &ModelError) {
        let Fault::Overflow { figures, .. } = &error.fault else { return };
        if let Some(limit) = figures.window() {
            // A window that the caller asked for is never exceeded.
            self.window = self.wanted.asked.window.map_or(limit, |asked| asked.min(limit));
            self.wanted.named = Some(self.window);
        }
        if let Some(used) = figures.used.filter(|used| *used > 0) {
            self.scale = (used, self.tokens.max(1));
        }
    }

    fn bound(&self) -> Bound {
        Bound::of_window(self.window)
    }
}

/// The outcome of a compaction.
enum Tried {
    Compacted,
    Nothing,
    /// It timed out; this is the context from before.
    TimedOut(Box<Context>),
}

impl<T> Patient for Surgery<'_, '_, T> {
    type Answer = T;
    type Error = OpsError;

    fn attempt(&mut self, emit: &mut dyn FnMut(&Event)) -> Result<T, Attempt<OpsError>> {
        let mut context = self.look().map_err(Attempt::Other)?;
        if let Some(error) = self.refused.take() {
            self.tokens = self.wanted.tokens(&context);
            self.learn(&error);
            return Err(Attempt::Model { error, compacted: false });
        }
        let mut compacted = false;
        let tokens = self.scaled(self.wanted.tokens(&context));
        let measured = Measured { tokens, ..context.measured };
        if self.wanted.rule.near(self.window, measured).is_due {
            let wanted = self.wanted;
            match self.try_compact(&wanted, &context, false, emit).map_err(Attempt::Other)? {
                Tried::Compacted => {
                    compacted = true;
                    context = self.look().map_err(Attempt::Other)?;
                }
                Tried::Nothing => {}
                Tried::TimedOut(before) => {
                    self.check_time(&context, Some((*before).clone())).map_err(Attempt::Other)?;
                    context = *before;
                }
            }
        }
        self.tokens = self.wanted.tokens(&context);
        let tokens = self.scaled(self.tokens);
        let answer = if tokens > self.window {
            let figures = Figures { used: Some(tokens), limit: Some(self.window) };
            // No provider was asked, so there is no message from one.
            let said = String::new();
            let model = context.model.clone().unwrap_or_else(|| "the model".to_owned());
            Err(ModelError { model, fault: Fault::Overflow { said, figures } })
        } else {
            context.window.tokens = self.window;
            self.report_cuts(&context, emit);
            let answer = (self.attempt)(&context);
            if let Err(error) = &answer {
                self.check_time(&context, None).map_err(Attempt::Other)?;
                self.learn(error);
            }
            answer
        };
        for run in std::mem::take(&mut self.retries) {
            self.step(machine::Event::Retried(run), None);
        }
        answer.map_err(|error| Attempt::Model { error, compacted })
    }

    fn compact(&mut self, keep: Keep, emit: &mut dyn FnMut(&Event)) -> Result<bool, OpsError> {
        let context = self.look()?;
        let wanted = Compacting { keep, again: true, ..self.wanted };
        let tried = self.try_compact(&wanted, &context, true, emit)?;
        if let Tried::TimedOut(before) = &tried {
            self.check_time(&context, Some((**before).clone()))?;
        }
        Ok(matches!(tried, Tried::Compacted))
    }

    fn can_truncate(&self) -> Result<bool, OpsError> {
        Ok(!oversized(&self.session.again()?, &self.bound())?.results.is_empty())
    }

    fn truncate(&mut self) -> Result<bool, OpsError> {
        let truncated = truncate(&self.session, &self.bound())?;
        self.operations.extend(truncated.done.operation);
        Notice::add(truncated.done.notices, &mut self.notices);
        Ok(truncated.done.operation.is_some())
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn largest(&self) -> Vec<Large> {
        let Ok(context) = self.look() else { return Vec::new() };
        let mut items: Vec<_> = context.prepared.items.iter().collect();
        items.sort_by_key(|item| std::cmp::Reverse(item.tokens));
        let large = |item: &&crate::context::Item| {
            let entry = item.entry()?;
            let held = self.session.store.entries(self.session.key, entry.alone()).ok()?;
            Some(Large {
                entry: format!("{:.8}", held.first()?.id),
                what: item.role().as_str().to_owned(),
                tokens: item.tokens.unwrap_or(0),
            })
        };
        items.iter().filter_map(large).take(LARGEST).collect()
    }
}
