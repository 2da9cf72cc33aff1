//! Who moved a branch: a command, or another program that the session followed.

use crate::{
    model::{Command, OperationNumber, Position},
    sync::{SyncError, standing::Standing},
};

/// How many operations are looked at together, from the newest on.
const BATCH: u64 = 32;

/// Returns whether the place where a branch stands is to be kept under another name when it follows a file to a position: a
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

/// Returns whether a command, and no other program, put a branch where it stands.
pub(crate) fn was_moved(before: &Standing<'_>, branch: &str) -> Result<bool, SyncError> {
    let Some(session) = &before.session else { return Ok(false) };
    let mut end = before.state.next_operation();
    while end > OperationNumber::FIRST {
        let start = end.minus(BATCH);
        for by in before.store().operations(session.key, start..end)?.iter().rev() {
            if by.facts.moves.iter().any(|step| step.branch.to_text() == branch) {
                return Ok(is_of_a_person(&by.command));
            }
        }
        end = start;
    }
    Ok(false)
}

/// Returns whether a command says where a session is to stand, and does not only follow a file.
pub(crate) fn is_of_a_person(command: &Command) -> bool {
    !command.takes_in() && !matches!(command, Command::Attach { .. })
}
