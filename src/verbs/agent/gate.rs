//! The gate of a session that several threads of a program share. While one thread compacts the session, the others wait until
//! the conversation is whole again, time out and use the snapshot from before, or leave.
//!
//! [`crate::context::machine`] decides what happens. This file drives it with a lock and a clock.

use std::{
    collections::BTreeMap,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::{
    context::machine::{Effect, Event, Reason, Run, State, Waiter},
    model::{Message, SessionName},
};

/// A conversation as it was before a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The session it belongs to.
    pub session: SessionName,
    /// Its last messages, oldest first.
    pub messages: Vec<Message>,
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The conversation is whole and can be read now.
    Whole,
    /// The wait timed out; this is the conversation from before the compaction.
    GivenUp(Arc<Snapshot>),
    /// Another thread made the waiter leave.
    Left,
    /// The session was closed.
    Closed,
}

/// A gate. Clones share it, one for each thread.
#[derive(Clone, Default)]
pub struct Gate(Arc<Shared>);

#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    turned: Condvar,
}

#[derive(Default)]
struct Inner {
    machine: State,
    runs: Run,
    waiters: Waiter,
    snapshot: Option<Arc<Snapshot>>,
    /// The results for waiters that have not picked them up yet: released (`None`) or aborted.
    told: BTreeMap<Waiter, Option<Reason>>,
}

impl Inner {
    /// Applies an event. `before` is the current conversation, passed when a compaction begins.
    fn step(&mut self, event: Event, before: Option<Snapshot>) {
        let (machine, effects) = std::mem::take(&mut self.machine).step(event);
        self.machine = machine;
        let mut before = before;
        for effect in effects {
            match effect {
                Effect::TakeSnapshot => self.snapshot = before.take().map(Arc::new),
                Effect::DropSnapshot => self.snapshot = None,
                Effect::Release(waiter) => {
                    self.told.insert(waiter, None);
                }
                Effect::Abort(waiter, reason) => {
                    self.told.insert(waiter, Some(reason));
                }
                // This driver never retries a turn and never continues from a state.
                Effect::ResetOutput | Effect::Use(_) => {}
            }
        }
    }
}

/// A running compaction. Dropping it releases the waiters.
pub(crate) struct Running {
    gate: Gate,
    run: Run,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.gate.step(Event::End { run: self.run, will_retry: false }, None);
    }
}

/// A place among the waiters. Dropping it leaves.
pub struct Ticket {
    gate: Gate,
    waiter: Waiter,
}

impl Ticket {
    /// Returns the number with which other threads can make this waiter leave.
    pub fn number(&self) -> Waiter {
        self.waiter
    }

    /// Waits until the conversation is whole, for at most `limit`.
    pub fn wait(self, limit: Duration) -> Waited {
        let shared = &self.gate.0;
        let waits = |inner: &mut Inner| !inner.told.contains_key(&self.waiter);
        let waited = shared.turned.wait_timeout_while(self.gate.lock(), limit, waits);
        let (mut inner, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match inner.told.remove(&self.waiter) {
            Some(None) => Waited::Whole,
            Some(Some(Reason::Left)) => Waited::Left,
            // No event here times out all waiters: each waiter has its own limit.
            Some(Some(Reason::TimedOut | Reason::Closed)) => Waited::Closed,
            // No result yet: a compaction is still running, and its snapshot is available.
            None => inner.snapshot.clone().map_or(Waited::Whole, Waited::GivenUp),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut inner = self.gate.lock();
        inner.step(Event::Leave(self.waiter), None);
        inner.told.remove(&self.waiter);
    }
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, event: Event, before: Option<Snapshot>) {
        self.lock().step(event, before);
        self.0.turned.notify_all();
    }

    /// Begins a compaction of a conversation that is still whole.
    pub(crate) fn begin(&self, before: Snapshot) -> Running {
        let mut inner = self.lock();
        inner.runs += 1;
        let run = inner.runs;
        inner.step(Event::Start(run), Some(before));
        Running { gate: self.clone(), run }
    }

    /// Queues for a whole conversation.
    pub fn ask(&self) -> Ticket {
        let mut inner = self.lock();
        inner.waiters += 1;
        let waiter = inner.waiters;
        inner.step(Event::Wait(waiter), None);
        Ticket { gate: self.clone(), waiter }
    }

    /// Waits until the conversation is whole, for at most `limit`.
    pub fn wait(&self, limit: Duration) -> Waited {
        self.ask().wait(limit)
    }

    /// Makes one waiter leave.
    pub fn leave(&self, waiter: Waiter) {
        self.step(Event::Leave(waiter), None);
    }

    /// Aborts all waiters because the session is closed.
    pub fn close(&self) {
        self.step(Event::Close, None);
    }

    /// Returns the number of waiters.
    pub fn n_waiters(&self) -> usize {
        self.lock().machine.n_waiters()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Longer than any test waits, so that a busy machine changes nothing.
    const LONG: Duration = Duration::from_secs(600);

    fn before() -> Snapshot {
        let session = SessionName { format: "native".to_owned(), id: "s".to_owned() };
        Snapshot { session, messages: Vec::new() }
    }

    /// Waits until this number of threads wait.
    fn until(gate: &Gate, waiters: usize) {
        while gate.n_waiters() != waiters {
            thread::yield_now();
        }
    }

    #[test]
    fn nobody_waits_where_nothing_is_under_way() {
        assert_eq!(Gate::default().wait(Duration::ZERO), Waited::Whole);
    }

    #[test]
    fn all_that_wait_are_released_when_the_compaction_ends() {
        let gate = Gate::default();
        let running = gate.begin(before());
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..8).map(|_| scope.spawn(|| gate.wait(LONG))).collect();
            until(&gate, 8);
            drop(running);
            for waited in waiting {
                assert_eq!(waited.join().unwrap(), Waited::Whole);
            }
        });
        assert_eq!(gate.wait(Duration::ZERO), Waited::Whole);
    }

    #[test]
    fn who_gives_up_has_what_was_before_and_the_others_wait_on() {
        let gate = Gate::default();
        let running = gate.begin(before());
        thread::scope(|scope| {
            let patient = scope.spawn(|| gate.wait(LONG));
            until(&gate, 1);
            assert_eq!(gate.wait(Duration::from_millis(1)), Waited::GivenUp(Arc::new(before())));
            assert_eq!(gate.n_waiters(), 1);
            drop(running);
            assert_eq!(patient.join().unwrap(), Waited::Whole);
        });
    }

    #[test]
    fn one_that_is_told_to_leave_leaves_alone() {
        let gate = Gate::default();
        let running = gate.begin(before());
        thread::scope(|scope| {
            let (leaving, staying) = (gate.ask(), gate.ask());
            let number = leaving.number();
            let leaving = scope.spawn(|| leaving.wait(LONG));
            let staying = scope.spawn(|| staying.wait(LONG));
            gate.leave(number);
            assert_eq!(leaving.join().unwrap(), Waited::Left);
            drop(gate.ask());
            assert_eq!(gate.n_waiters(), 1, "a ticket that is dropped waits no longer");
            drop(running);
            assert_eq!(staying.join().unwrap(), Waited::Whole);
        });
    }

    #[test]
    fn a_session_that_is_closed_sends_all_away() {
        let gate = Gate::default();
        let running = gate.begin(before());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait(LONG));
            until(&gate, 1);
            gate.close();
            assert_eq!(waiting.join().unwrap(), Waited::Closed);
        });
        // A late word of the ended compaction changes nothing.
        drop(running);
        assert_eq!(gate.wait(Duration::ZERO), Waited::Whole);
    }

    #[test]
    fn a_compaction_that_panics_releases_those_that_wait() {
        let gate = Gate::default();
        let (copy, running) = (gate.clone(), gate.begin(before()));
        let failed = thread::spawn(move || {
            let _running = running;
            until(&copy, 1);
            panic!("a summariser may do anything");
        });
        assert_eq!(gate.wait(LONG), Waited::Whole);
        assert!(failed.join().is_err());
    }
}
