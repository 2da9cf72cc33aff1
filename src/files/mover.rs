//! Finds out who moved a branch or the live file: a command, or another program that the session followed.

use crate::{
    archive::SyncError,
    files::at::Standing,
    model::{Command, FileNumber, Operation, OperationNumber, Position, State},
    store::{SessionKey, Store, StoreError},
};

/// How many operations to read at a time, newest first.
const BATCH: u64 = 32;

/// Returns true if following a file to `to` should keep the branch's current position under another name: a command put it there,
/// or the file is empty now.
pub(crate) fn is_to_be_kept(
    before: &Standing<'_>,
    branch: &str,
    to: Position,
) -> Result<bool, SyncError> {
    let stood = before.state.branches.get(branch).and_then(|at| at.head);
    // An agent that starts a new file leaves the previous state in another file.
    let is_emptied = to.head.is_none() && before.format.traits().live_name.is_none();
    Ok(stood.is_some() && is_emptied || was_moved(before, branch)?)
}

/// Returns true if a command put the branch where it is, rather than a change of the file.
pub(crate) fn was_moved(before: &Standing<'_>, branch: &str) -> Result<bool, SyncError> {
    let Some((store, session)) = before.stored() else { return Ok(false) };
    let by = newest(store, session, &before.state, |by| {
        by.facts.moves.iter().any(|step| step.branch.to_text() == branch)
    })?;
    Ok(by.is_some_and(|by| is_of_a_person(&by.command)))
}

/// Returns true if a person detached the session from its live file, rather than the file being lost. Its agent's files are left
/// alone then.
pub(crate) fn is_detached(before: &Standing<'_>) -> Result<bool, SyncError> {
    let stored = before.stored().filter(|_| before.state.live.is_none());
    let Some((store, session)) = stored else { return Ok(false) };
    let by = newest(store, session, &before.state, attaches)?;
    Ok(by.is_some_and(|by| !by.command.takes_in()))
}

/// Returns the live file of a session, or the last one it had.
pub(crate) fn last_live(
    store: &dyn Store,
    session: SessionKey,
    state: &State,
) -> Result<Option<FileNumber>, StoreError> {
    if state.live.is_some() {
        return Ok(state.live);
    }
    let step = newest(store, session, state, attaches)?.and_then(|by| by.facts.live);
    Ok(step.and_then(|step| step.to.or(step.from)))
}

/// Returns true if an operation set, changed or removed the live file.
fn attaches(by: &Operation) -> bool {
    by.facts.live.is_some()
}

/// Returns true if a command chooses the session's position, rather than following a file.
pub(crate) fn is_of_a_person(command: &Command) -> bool {
    !command.takes_in() && !matches!(command, Command::Attach { .. })
}

/// Returns the newest operation that `is_wanted` accepts.
pub(crate) fn newest(
    store: &dyn Store,
    session: SessionKey,
    state: &State,
    is_wanted: impl Fn(&Operation) -> bool,
) -> Result<Option<Operation>, StoreError> {
    let mut end = state.next_operation();
    while end > OperationNumber::FIRST {
        let start = end.minus(BATCH);
        let operations = store.operations(session, start..end)?;
        if let Some(found) = operations.into_iter().rev().find(&is_wanted) {
            return Ok(Some(found));
        }
        end = start;
    }
    Ok(None)
}
