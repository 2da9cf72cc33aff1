//! Targets of a change: a place to go back to, or an operation to undo.

use crate::{
    archive::{At, SyncError, Vain},
    files::{at::Standing, mover::newest},
    model::{Command, Operation, OperationNumber, Request},
    session::{
        Session, Target, find_place,
        plan::{branch_text, obstacle},
        read::checkpoints,
    },
    verbs::OpsError,
};

/// Where a revert goes.
#[derive(Clone, Copy, Debug)]
pub enum Back<'w> {
    /// To just before a checkpoint, or to just after an entry.
    To(&'w str),
    /// To just before the turn that follows this one on the current path.
    Keeping(&'w str),
}

impl<'w, S: AsRef<str> + ?Sized> From<&'w S> for Back<'w> {
    fn from(wanted: &'w S) -> Self {
        Self::To(wanted.as_ref())
    }
}

impl Back<'_> {
    pub(crate) fn find(self, session: &At<'_>) -> Result<Target, OpsError> {
        let wanted = match self {
            Self::To(wanted) => return Ok(find_place(session, wanted)?),
            Self::Keeping(wanted) => wanted,
        };
        let kept = find_place(session, wanted)?.checkpoint;
        let kept = kept.ok_or_else(|| OpsError::NotKept {
            wanted: wanted.to_owned(),
            why: "it is not a turn",
        })?;
        let refused = |why| OpsError::NotKept { wanted: format!("@{}", kept.n), why };
        let next = checkpoints::next_turn(session, kept.n)?.map_err(refused)?;
        Ok(find_place(session, &next.to_string())?)
    }
}

/// Refuses a blank note.
pub(crate) fn check_note(note: Option<&str>) -> Result<(), SyncError> {
    let is_empty = note.is_some_and(|note| note.trim().is_empty());
    let why = || "the note is empty; leave out -m to go back without one".to_owned();
    if is_empty { Err(SyncError::Invalid { line: None, why: why() }) } else { Ok(()) }
}

/// Names a place by something permanent: the number of a checkpoint, or else an entry, and the branch that ends there.
pub(crate) fn named(before: &Standing<'_>, place: &Target) -> Result<Request, SyncError> {
    let checkpoint = place.checkpoint.as_ref().map(|checkpoint| checkpoint.n);
    let head = place.position.head.filter(|_| checkpoint.is_none());
    let entry = head.map(|head| before.id_of(head)).transpose()?;
    // A place before the end of a branch is stored as an entry even if you named the branch.
    let is_end = |branch: &&String| before.state.branches.get(*branch) == Some(&place.position);
    let branch = place.branch.as_ref().filter(is_end).map(|branch| branch_text(branch));
    Ok(Request { checkpoint, entry, branch, ..Request::default() })
}

/// Returns an operation that can be undone: the one with this number, or the newest that moved the conversation.
pub(crate) fn undoable(
    before: &Standing<'_>,
    session: &Session,
    wanted: Option<OperationNumber>,
) -> Result<Operation, OpsError> {
    let undone = before.state.undone();
    let is_meant = |operation: &Operation| {
        let command = &operation.command;
        command.is_final() || command.moves() && obstacle(operation, &undone).is_none()
    };
    let operation = match wanted {
        Some(n) => {
            let found = before.store().operations(session.key, n.alone())?.pop();
            found.ok_or(OpsError::NoOperation(n))?
        }
        None => newest(before.store(), session.key, &before.state, is_meant)?
            .ok_or(SyncError::Nothing(Vain::Undo))?,
    };
    let is_past = matches!(operation.command, Command::Later { .. })
        && before.state.waiting != Some(operation.n);
    let past = is_past.then_some("the change that this operation saved is no longer waiting");
    match obstacle(&operation, &undone).or(past) {
        Some(why) => Err(OpsError::NotUndoable { n: operation.n, why }),
        None => Ok(operation),
    }
}
