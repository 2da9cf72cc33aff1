//! Runs a verb from start to end.
//!
//! ```text
//! lock      keeps other programs from changing the archive
//! catch up  makes the session and its live file agree
//! plan      the verb looks at the session's state and returns its plan
//! prepare   builds the plan's goal and simulates a resume of it
//! commit    writes the successor of the live file safely, makes the operation durable, updates the live file
//! catch up  again, if another program wrote to the live file meanwhile
//! ```

use crate::{
    archive::{Archive, At, SyncError},
    change::{
        draft::{Change, Writing},
        goal::Goal,
        reconcile::{catch_up, comeback},
    },
    files::at::Standing,
    live::Denied,
    model::{Command, SessionName},
    purge::remainders,
    report::{Done, Outcome},
    session::plan::Plan,
    store::{Store, StoreError, Transaction},
    wire::Format,
};

/// The result of a verb.
pub(crate) struct Made<R> {
    /// What it did; no operation if the verb wanted no change.
    pub(crate) done: Done,
    /// The result of the plan's goal.
    pub(crate) reached: Option<R>,
}

/// Asks a verb for its plan, given the session's current state, and carries it out. The verb also returns an answer, and may
/// return no plan.
pub(crate) fn execute<G: Goal, T, E: From<SyncError>>(
    session: &At<'_>,
    verb: impl FnOnce(&Standing<'_>) -> Result<(T, Option<Plan<G>>), E>,
) -> Result<(T, Made<G::Reached>), E> {
    carry_out(begin(session)?, verb)
}

/// Like [`execute`], for verbs that attach another file or none. Such a verb is the way out if the live file cannot be read or
/// written, so it runs even if the session cannot catch up for that reason.
pub(crate) fn execute_uncaught<G: Goal, T, E: From<SyncError>>(
    session: &At<'_>,
    verb: impl FnOnce(&Standing<'_>) -> Result<(T, Option<Plan<G>>), E>,
) -> Result<(T, Made<G::Reached>), E> {
    let lock = session.archive.lock()?;
    let again = || session.again().map_err(SyncError::from);
    let notices = match again().and_then(|session| catch_up::catch_up(&session)) {
        Err(SyncError::Denied { .. } | SyncError::Uncaught { .. } | SyncError::Read(_)) => {
            Vec::new()
        }
        caught_up => caught_up?,
    };
    carry_out(Change::bare(&again()?)?.under(lock, notices), verb)
}

/// Creates a session with a plan, and returns it.
pub(crate) fn execute_first<G: Goal, E: From<SyncError>>(
    archive: &Archive,
    name: SessionName,
    format: &'static dyn Format,
    plan: impl FnOnce(&Standing<'_>) -> Result<Plan<G>, E>,
) -> Result<(Outcome, G::Reached), E> {
    let mut change = begin_first(archive, name, format)?;
    let plan = plan(&change.before)?;
    let (command, reached) = prepare(&mut change, plan)?;
    Ok((commit(change, command)?, reached))
}

fn carry_out<G: Goal, T, E: From<SyncError>>(
    mut change: Change<'_>,
    verb: impl FnOnce(&Standing<'_>) -> Result<(T, Option<Plan<G>>), E>,
) -> Result<(T, Made<G::Reached>), E> {
    let (answer, plan) = verb(&change.before)?;
    let Some(plan) = plan else {
        let notices = std::mem::take(&mut change.notices);
        return Ok((answer, Made { done: Done { notices, ..Done::default() }, reached: None }));
    };
    let (session, live) = (change.before.name.clone(), change.before.attached());
    let denied = |error| match error {
        SyncError::Io { path, source } if live.as_ref().is_some_and(|live| live.path == path) => {
            SyncError::Denied { session: session.id.clone(), path, why: Denied::Io(source) }
        }
        error => error,
    };
    let (command, reached) = prepare(&mut change, plan).map_err(denied)?;
    let done = commit(change, command).map_err(denied)?.done;
    Ok((answer, Made { done, reached: Some(reached) }))
}

/// Prepares a plan. The current branch moves to the position that the goal returns.
fn prepare<G: Goal>(
    change: &mut Change<'_>,
    plan: Plan<G>,
) -> Result<(Command, G::Reached), SyncError> {
    let Plan { command, mut steps, goal } = plan;
    let (reached, position) = goal.prepare(change)?;
    if let Some(position) = position {
        let current = steps.current(&change.before.state).to_owned();
        steps.set(&current, Some(position));
    }
    change.step(steps);
    Ok((command, reached))
}

/// Begins a change of a session: locks the archive, catches up, and reads the session's state.
fn begin<'a>(session: &At<'a>) -> Result<Change<'a>, SyncError> {
    let lock = session.archive.lock()?;
    let session = &comeback::follow(session.again()?)?;
    let notices = catch_up::catch_up(session)?;
    remainders::sweep(session);
    Ok(Change::bare(session)?.under(lock, notices))
}

/// Begins a change of a session that does not exist yet.
fn begin_first<'a>(
    archive: &'a Archive,
    name: SessionName,
    format: &'static dyn Format,
) -> Result<Change<'a>, SyncError> {
    let lock = archive.lock()?;
    let writing = Writing::alone(archive)?;
    Ok(Change::first(archive, name, format, writing).under(lock, Vec::new()))
}

/// Begins a change of a session that may not exist yet.
pub(crate) fn begin_or_create<'a>(
    archive: &'a Archive,
    name: SessionName,
    format: &'static dyn Format,
) -> Result<Change<'a>, SyncError> {
    match archive.session(&name)? {
        Some(session) => begin(&archive.at(&session)?),
        None => begin_first(archive, name, format),
    }
}

/// Commits a change and updates the live file.
pub(crate) fn commit(mut change: Change<'_>, command: Command) -> Result<Outcome, SyncError> {
    let (mut outcome, is_alone) = change.commit(command)?;
    if !is_alone {
        let session = change.before.archive.at(&outcome.session)?;
        outcome.done.notices.extend(catch_up::catch_up(&session)?);
    }
    Ok(outcome)
}

/// Works on a store under the archive's lock, for work that is not one operation.
pub(crate) fn exclusively<T, E: From<SyncError>>(
    archive: &Archive,
    work: impl FnOnce(&dyn Store) -> Result<T, E>,
) -> Result<T, E> {
    let _lock = archive.lock()?;
    work(archive.store())
}

/// Writes to a store's caches, which are not facts.
pub(crate) fn cache(
    archive: &Archive,
    work: impl FnOnce(&mut dyn Transaction) -> Result<(), StoreError>,
) -> Result<(), SyncError> {
    let mut writing = archive.store.begin()?;
    work(writing.as_mut())?;
    writing.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        archive::{Machine, Waiting},
        store::Access,
    };

    #[test]
    fn what_is_done_of_several_steps_keeps_others_out_until_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let [archive, mut other] = [(); 2]
            .map(|()| Archive::open(folder.path(), Access::Write, Box::new(Machine)).unwrap());
        other.set_waiting(Waiting { limit: Duration::ZERO, ..Waiting::default() });
        let is_kept_out = |other: &Archive| matches!(other.lock(), Err(SyncError::Held { .. }));
        exclusively(&archive, |_| {
            drop(archive.lock()?);
            assert!(is_kept_out(&other));
            Ok::<_, SyncError>(())
        })
        .unwrap();
        // The thread that waited in vain may still have it for a moment.
        other.set_waiting(Waiting::default());
        assert!(other.lock().is_ok());
    }
}
