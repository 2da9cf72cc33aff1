//! Operations, and taking them back.
//!
//! An undo restores what an operation moved from; nothing is erased by it:
//!
//! ```text
//! append    main:  A -> B        undo    main:  B -> A'       A' has the content of A in a file of its own
//! revert    main:  B -> A        undo    main:  A -> B'       and main.1, which the revert made, is hidden
//!           main.1: . -> B               main.1: B -> .
//! append    main:  A -> B
//! append    main:  B -> C        undo of the first           main: C -> A', and main.1: . -> C keeps what came since
//! ```

use std::collections::BTreeSet;

use serde_json::json;

use super::{change::Change, derive, reach::reach};
use crate::{
    model::{Mark, Operation, Position},
    ops::{Archive, Notice, OpsError, Session},
    store::FactKind,
};

/// An operation as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationView {
    /// The operation.
    pub operation: Operation,
    /// Whether it is undone.
    pub undone: bool,
}

/// What an undo or a redo did.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The operation.
    pub operation: u64,
    /// The operation that it took back.
    pub undoes: u64,
    /// The command of that operation.
    pub command: String,
    /// The branches that hold what had come since.
    pub left: Vec<String>,
    /// The old live file, if it was exchanged.
    pub rotated: Option<std::path::PathBuf>,
    /// The agent's own file, if it was written.
    pub written: Option<std::path::PathBuf>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}

/// Returns the newest operations, the newest first.
pub fn operations(
    archive: &Archive,
    session: &Session,
    limit: usize,
) -> Result<Vec<OperationView>, OpsError> {
    let undone = derive::undone(&archive.store.undos(session.key)?);
    let newest = archive.store.tip(session.key)?.operations();
    let from = (newest + 1).saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX));
    let operations = archive.store.operations(session.key, from..newest + 1)?;
    let view =
        |operation: Operation| OperationView { undone: undone.contains(&operation.n), operation };
    Ok(operations.into_iter().rev().map(view).collect())
}

/// Takes back the newest operation that can be, or the one of this number.
pub fn undo(
    archive: &mut Archive,
    session: &Session,
    wanted: Option<u64>,
) -> Result<Undone, OpsError> {
    let change = Change::begin(archive, session, "undo")?;
    let undone = derive::undone(&change.archive.store.undos(session.key)?);
    let operation = match wanted {
        Some(n) => {
            let found = change.archive.store.operations(session.key, n..n.saturating_add(1))?.pop();
            let operation = found.ok_or(OpsError::NoOperation(n))?;
            match obstacle(&operation, &undone) {
                Some(why) => return Err(OpsError::NotUndoable { n, why }),
                None => operation,
            }
        }
        None => newest(&change, session, |operation| {
            obstacle(operation, &undone).is_none()
                && !matches!(operation.command.as_str(), "undo" | "redo")
        })?
        .ok_or(OpsError::Nothing("undo"))?,
    };
    take_back(change, session, &operation)
}

/// Takes back the newest undo.
pub fn redo(archive: &mut Archive, session: &Session) -> Result<Undone, OpsError> {
    let change = Change::begin(archive, session, "redo")?;
    let undone = derive::undone(&change.archive.store.undos(session.key)?);
    // Whatever was done after an undo ends the line of what can be redone.
    let found = newest(&change, session, |operation| match operation.command.as_str() {
        "redo" | "catch-up" | "import" | "hide" => false,
        "undo" => !undone.contains(&operation.n),
        _ => true,
    })?;
    match found {
        Some(operation) if operation.command == "undo" => take_back(change, session, &operation),
        _ => Err(OpsError::Nothing("redo")),
    }
}

/// Returns why an operation cannot be undone.
fn obstacle(operation: &Operation, undone: &BTreeSet<u64>) -> Option<&'static str> {
    match operation.command.as_str() {
        _ if undone.contains(&operation.n) => Some("it is undone already"),
        _ if operation.n == 1 => Some("it began the session"),
        "import" | "catch-up" => Some("it only took in what another program wrote"),
        _ => None,
    }
}

/// Looks for an operation from the newest on.
fn newest(
    change: &Change<'_>,
    session: &Session,
    wanted: impl Fn(&Operation) -> bool,
) -> Result<Option<Operation>, OpsError> {
    let mut end = change.number();
    while end > 1 {
        let start = end.saturating_sub(32).max(1);
        let operations = change.archive.store.operations(session.key, start..end)?;
        if let Some(found) = operations.into_iter().rev().find(&wanted) {
            return Ok(Some(found));
        }
        end = start;
    }
    Ok(None)
}

/// Returns whether a branch was moved on from where an operation left it. An undo and its redo bring it back to the same
/// entries in another generation.
fn came_since(left: Option<Position>, now: Option<Position>) -> bool {
    match (left, now) {
        (Some(left), Some(now)) if left.generation != now.generation => left.head != now.head,
        (left, now) => left != now,
    }
}

fn take_back(
    mut change: Change<'_>,
    session: &Session,
    operation: &Operation,
) -> Result<Undone, OpsError> {
    let n = operation.n;
    change.undo_of(n);
    let kinds = [FactKind::Moves, FactKind::Marks];
    let facts =
        change.archive.store.facts(session.key, n..n + 1, &kinds)?.pop().map(|(_, facts)| facts);
    let facts = facts.unwrap_or_default();
    let mut left = Vec::new();
    for step in &facts.moves {
        let now = change.branch(&step.branch)?;
        let since = came_since(step.to, now);
        match (step.from, now) {
            // A branch that the operation made is hidden, unless it was used since.
            (None, _) if since => {}
            (from, Some(now)) if since => {
                let name = change.left_name(&step.branch)?;
                change.set_branch(&name, Some(now))?;
                change.set_branch(&step.branch, from)?;
                left.push(name);
            }
            (from, _) => change.set_branch(&step.branch, from)?,
        }
    }
    let mut current = change.tip.current().to_owned();
    for mark in &facts.marks {
        if change.tip.mark(&mark.name) == mark.to.as_deref() {
            change.mark(&mark.name, mark.from.as_deref());
            if let (Mark::CURRENT, Some(from)) = (mark.name.as_str(), &mark.from) {
                current.clone_from(from);
            }
        }
    }
    let (mut rotated, mut written) = (None, None);
    let Some(target) = change.planned(&current)? else {
        return Err(OpsError::NotUndoable {
            n,
            why: "without it there is no current branch; switch to another",
        });
    };
    if change.tip.position != Some(target) {
        let reached = reach(&mut change, target, None)?;
        change.set_branch(&current, Some(reached.position))?;
        (rotated, written) = (reached.aside, reached.written);
    }
    let detail = json!({ "command": operation.command, "left": left });
    let outcome = change.commit(&detail)?;
    Ok(Undone {
        operation: outcome.operation,
        undoes: n,
        command: operation.command.clone(),
        left,
        rotated,
        written,
        notices: outcome.notices,
    })
}
