//! The compaction state machine: state, event and effects as data.
//!
//! A compaction may be in flight, and each finished one may have left a pending retry of the turn that overflowed. Callers
//! that need a whole conversation wait until neither is the case. The machine decides who is released and which snapshot
//! is used; its driver does the rest, keeps the clock and sends an [`Event::Timeout`] after [`LIMIT`].
//!
//! ```text
//!            start                    end, to be retried
//!   idle ------------> in flight ------------------------> retry pending
//!    ^                  |   ^                                |    |
//!    |  end, all done   |   |            start               |    | retried
//!    +------------------+   +--------------------------------+    |
//!    +------------------------------------------------------------+
//! ```
//!
//! The driver gives each run a number and never reuses it, so a late event of a run that timed out has no effect.
//!
//! Invariant: no waiter is notified twice, and none is forgotten. Invariant: an idle machine has no waiter, no
//! pending retry and no snapshot.

use std::{collections::BTreeSet, time::Duration};

/// The time limit of a compaction, including its retries.
pub const LIMIT: Duration = Duration::from_secs(180);

/// The number of a compaction.
pub type Run = u64;

/// The number of a waiter.
pub type Waiter = u64;

/// The compactions and retries in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    in_flight: Option<Run>,
    retries: BTreeSet<Run>,
    waiters: BTreeSet<Waiter>,
    has_snapshot: bool,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A compaction starts.
    Start(Run),
    /// A compaction ended, successfully or not.
    End {
        /// The compaction.
        run: Run,
        /// True if the turn that needed it is retried.
        will_retry: bool,
    },
    /// The turn that was retried after this compaction is finished.
    Retried(Run),
    /// Somebody waits for the conversation to be whole.
    Wait(Waiter),
    /// Somebody no longer waits.
    Leave(Waiter),
    /// The time limit is reached.
    Timeout,
    /// The session is closed.
    Close,
}

/// An effect: what the driver must do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Take a snapshot of the context before anything changes.
    TakeSnapshot,
    /// Discard the output of the turn so far; the retry produces it again.
    ResetOutput,
    /// Tell a waiter that the conversation is whole.
    Release(Waiter),
    /// Tell a waiter that the conversation did not become whole.
    Abort(Waiter, Reason),
    /// Continue with this snapshot.
    Use(Snapshot),
    /// Discard the snapshot.
    DropSnapshot,
}

/// Why a waiter is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It left.
    Left,
    /// The time limit was reached.
    TimedOut,
    /// The session was closed.
    Closed,
}

/// Which version of the context to continue with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snapshot {
    /// The state from before the compaction.
    Before,
    /// The present state.
    Current,
}

impl State {
    /// Returns true if no compaction or retry is in progress.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_none() && self.retries.is_empty()
    }

    /// Returns the number of waiters.
    pub fn n_waiters(&self) -> usize {
        self.waiters.len()
    }

    /// Returns the state after an event, and the effects in order.
    #[must_use]
    pub fn step(mut self, event: Event) -> (Self, Vec<Effect>) {
        let mut effects = Vec::new();
        match event {
            Event::Start(run) => {
                // The first snapshot of a busy period is used. A later one would show a state that is still to be retried.
                if !self.has_snapshot {
                    self.has_snapshot = true;
                    effects.push(Effect::TakeSnapshot);
                }
                self.in_flight = Some(run);
            }
            Event::End { run, will_retry } if self.in_flight == Some(run) => {
                self.in_flight = None;
                if will_retry {
                    self.retries.insert(run);
                    effects.push(Effect::ResetOutput);
                }
                self.settle(&mut effects);
            }
            // A retried turn may have started a compaction of its own, so its end alone does not release waiters.
            Event::Retried(run) if self.retries.remove(&run) => self.settle(&mut effects),
            Event::End { .. } | Event::Retried(_) => {}
            Event::Wait(waiter) if self.is_idle() => effects.push(Effect::Release(waiter)),
            Event::Wait(waiter) => {
                self.waiters.insert(waiter);
            }
            Event::Leave(waiter) => {
                if self.waiters.remove(&waiter) {
                    effects.push(Effect::Abort(waiter, Reason::Left));
                }
            }
            Event::Timeout => {
                let whole = if self.has_snapshot && !self.is_idle() {
                    Snapshot::Before
                } else {
                    Snapshot::Current
                };
                effects.push(Effect::Use(whole));
                self.stop(Reason::TimedOut, &mut effects);
            }
            Event::Close => self.stop(Reason::Closed, &mut effects),
        }
        (self, effects)
    }

    /// Releases all waiters if nothing is in progress.
    fn settle(&mut self, effects: &mut Vec<Effect>) {
        if self.is_idle() {
            effects.extend(std::mem::take(&mut self.waiters).into_iter().map(Effect::Release));
            self.forget(effects);
        }
    }

    /// Aborts all compactions and retries in progress.
    fn stop(&mut self, reason: Reason, effects: &mut Vec<Effect>) {
        self.in_flight = None;
        self.retries.clear();
        let waiters = std::mem::take(&mut self.waiters).into_iter();
        effects.extend(waiters.map(|waiter| Effect::Abort(waiter, reason)));
        self.forget(effects);
    }

    fn forget(&mut self, effects: &mut Vec<Effect>) {
        if std::mem::take(&mut self.has_snapshot) {
            effects.push(Effect::DropSnapshot);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Runs events and returns where they lead and what the last one asked for.
    fn after(events: &[Event]) -> (State, Vec<Effect>) {
        events.iter().fold((State::default(), Vec::new()), |(state, _), event| state.step(*event))
    }

    #[test]
    fn who_waits_is_released_when_the_last_retry_is_over() {
        let end = Event::End { run: 1, will_retry: true };
        let (state, effects) = after(&[Event::Wait(7)]);
        assert_eq!((state.n_waiters(), effects), (0, vec![Effect::Release(7)]), "idle: at once");

        let (state, effects) = after(&[Event::Start(1), Event::Wait(7), end]);
        assert_eq!((state.n_waiters(), effects), (1, vec![Effect::ResetOutput]));
        let (state, effects) = state.step(Event::Retried(1));
        assert_eq!(effects, [Effect::Release(7), Effect::DropSnapshot]);
        assert_eq!(state, State::default());
    }

    #[test]
    fn a_retry_that_compacts_again_releases_nobody_before_that_is_done() {
        let end = Event::End { run: 1, will_retry: true };
        let (state, effects) =
            after(&[Event::Start(1), Event::Wait(7), end, Event::Start(2), Event::Retried(1)]);
        assert_eq!(effects, []);
        let (_, effects) = state.step(Event::End { run: 2, will_retry: false });
        assert_eq!(effects, [Effect::Release(7), Effect::DropSnapshot]);
    }

    #[test]
    fn a_timeout_while_compacting_yields_the_snapshot_from_before() {
        let (state, effects) = after(&[Event::Start(1), Event::Wait(7), Event::Timeout]);
        let abort = Effect::Abort(7, Reason::TimedOut);
        assert_eq!(effects, [Effect::Use(Snapshot::Before), abort, Effect::DropSnapshot]);
        assert_eq!(state, State::default());
        let (state, effects) = state.step(Event::End { run: 1, will_retry: true });
        assert_eq!((state, effects), (State::default(), vec![]), "its end comes too late");
    }

    #[test]
    fn a_timeout_while_a_retry_is_pending_yields_the_snapshot_from_before() {
        let end = Event::End { run: 1, will_retry: true };
        let (_, effects) = after(&[Event::Start(1), end, Event::Timeout]);
        assert_eq!(effects, [Effect::Use(Snapshot::Before), Effect::DropSnapshot]);
    }

    #[test]
    fn a_timeout_without_a_compaction_yields_the_current_state() {
        assert_eq!(after(&[Event::Timeout]).1, [Effect::Use(Snapshot::Current)]);
        let end = Event::End { run: 1, will_retry: false };
        let (_, effects) = after(&[Event::Start(1), end, Event::Timeout]);
        assert_eq!(effects, [Effect::Use(Snapshot::Current)]);
    }

    #[test]
    fn who_leaves_is_told_and_no_longer_waits() {
        let (_, effects) = after(&[Event::Start(1), Event::Wait(7), Event::Leave(7)]);
        assert_eq!(effects, [Effect::Abort(7, Reason::Left)]);
        let (_, effects) = after(&[Event::Start(1), Event::Wait(7), Event::Close]);
        assert_eq!(effects, [Effect::Abort(7, Reason::Closed), Effect::DropSnapshot]);
    }

    fn event() -> impl Strategy<Value = Event> {
        let run = 0..4_u64;
        prop_oneof![
            3 => run.clone().prop_map(Event::Start),
            3 => (run.clone(), any::<bool>())
                .prop_map(|(run, will_retry)| Event::End { run, will_retry }),
            3 => run.prop_map(Event::Retried),
            // Whether it waits is decided below, where each gets a number of its own.
            4 => Just(Event::Wait(0)),
            1 => (0..8_u64).prop_map(Event::Leave),
            1 => Just(Event::Timeout),
            1 => Just(Event::Close),
        ]
    }

    proptest! {
        #[test]
        fn nobody_is_lost_or_told_twice(events in prop::collection::vec(event(), 0..40)) {
            let mut state = State::default();
            let mut asked = BTreeSet::new();
            let mut told = BTreeSet::new();
            let mut kept = false;
            for event in events {
                let event = match event {
                    Event::Wait(_) => Event::Wait(asked.len() as u64),
                    other => other,
                };
                if let Event::Wait(waiter) = event {
                    asked.insert(waiter);
                }
                let busy = !state.is_idle();
                let effects;
                (state, effects) = state.step(event);
                for effect in effects {
                    match effect {
                        Effect::Release(waiter) => {
                            prop_assert!(told.insert(waiter), "told twice: {waiter}");
                            prop_assert!(state.is_idle(), "released while busy");
                        }
                        Effect::Abort(waiter, _) => {
                            prop_assert!(told.insert(waiter), "told twice: {waiter}");
                        }
                        Effect::TakeSnapshot => prop_assert!(!std::mem::replace(&mut kept, true)),
                        Effect::DropSnapshot => prop_assert!(std::mem::take(&mut kept)),
                        Effect::Use(snapshot) => {
                            prop_assert_eq!(snapshot == Snapshot::Before, busy);
                            prop_assert!(kept || snapshot == Snapshot::Current);
                        }
                        Effect::ResetOutput => {}
                    }
                }
                prop_assert!(told.is_subset(&asked));
                prop_assert_eq!(state.n_waiters(), asked.len() - told.len(), "someone is lost");
                if state.is_idle() {
                    prop_assert_eq!(&state, &State::default());
                }
            }
            let (state, effects) = state.step(Event::Close);
            prop_assert_eq!(state, State::default());
            let aborted = effects.iter().filter(|effect| matches!(effect, Effect::Abort(..)));
            prop_assert_eq!(aborted.count() + told.len(), asked.len());
        }
    }
}
