//! Who moved a branch, or the live file: a command, or another program that the session followed.

use crate::{
    archive::SyncError,
    files::at::Standing,
    model::{Command, FileNumber, Operation, OperationNumber, Position, State},
    store::{SessionKey, Store, StoreError},
};

/// How many operations are looked at together, from the newest on.
const BATCH: u64 = 32;

/// Returns true if the current place of a branch is to be kept under another name when it follows a file to a position: a
/// command put it there, or nothing is said in the file any more.
pub(crate) fn is_to_be_kept(
    before: &Standing<'_>,
    branch: &str,
    to: Position,
) -> Result<bool, SyncError> {
    let stood = before.state.branches.get(branch).and_then(|at| at.head);
    // Where an agent starts a new file, the state before it is in another one.
    let is_emptied = to.head.is_none() && before.format.traits().live_name.is_none();
    Ok(stood.is_some() && is_emptied || was_moved(before, branch)?)
}

/// Returns whether a command, and no other program, put a branch where it is.
pub(crate) fn was_moved(before: &Standing<'_>, branch: &str) -> Result<bool, SyncError> {
    let Some(session) = &before.session else { return Ok(false) };
    let by = newest(before.store(), session.key, &before.state, |by| {
        by.facts.moves.iter().any(|step| step.branch.to_text() == branch)
    })?;
    Ok(by.is_some_and(|by| is_of_a_person(&by.command)))
}

/// Returns whether a person, and no loss of the file, took its live file from a session: its agent's files are left alone.
pub(crate) fn is_detached(before: &Standing<'_>) -> Result<bool, SyncError> {
    let Some(session) = before.session.as_ref().filter(|_| before.state.live.is_none()) else {
        return Ok(false);
    };
    let by = newest(before.store(), session.key, &before.state, attaches)?;
    Ok(by.is_some_and(|by| !by.command.takes_in()))
}

/// Returns the live file of a session, or the one that it had last.
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

/// Returns whether an operation gave a session another live file, or took it away.
fn attaches(by: &Operation) -> bool {
    by.facts.live.is_some()
}

/// Returns whether a command says where a session is to stand, and does not only follow a file.
pub(crate) fn is_of_a_person(command: &Command) -> bool {
    !command.takes_in() && !matches!(command, Command::Attach { .. })
}

/// Looks for an operation from the newest on.
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
