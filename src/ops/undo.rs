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

use crate::{
    model::{Command, Operation, Position, Text},
    ops::OpsError,
    report::{OperationView, Undone},
    session::Session,
    sync::{self, Archive, SyncError, change::Change, reach::reach},
};

/// Returns the newest operations, the newest first.
pub fn operations(
    archive: &Archive,
    session: &Session,
    limit: usize,
) -> Result<Vec<OperationView>, OpsError> {
    let state = archive.store().state(session.key)?;
    let (undone, newest) = (state.undone(), state.operations());
    let from = (newest + 1).saturating_sub(u64::try_from(limit).unwrap_or(u64::MAX));
    let operations = archive.store().operations(session.key, from..newest + 1)?;
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
    let change = sync::begin(archive, session)?;
    let undone = change.tip.undone();
    let operation = match wanted {
        Some(n) => {
            let found =
                change.archive.store().operations(session.key, n..n.saturating_add(1))?.pop();
            let operation = found.ok_or(OpsError::NoOperation(n))?;
            match obstacle(&operation, &undone) {
                Some(why) => return Err(OpsError::NotUndoable { n, why }),
                None => operation,
            }
        }
        None => newest(&change, session, |operation| {
            obstacle(operation, &undone).is_none() && operation.undoes().is_none()
        })?
        .ok_or(SyncError::Nothing("undo"))?,
    };
    take_back(change, &operation, |undoes, command, left| Command::Undo { undoes, command, left })
}

/// Takes back the newest undo.
pub fn redo(archive: &mut Archive, session: &Session) -> Result<Undone, OpsError> {
    let change = sync::begin(archive, session)?;
    let undone = change.tip.undone();
    // Whatever was done after an undo ends the line of what can be redone.
    let found = newest(&change, session, |operation| match operation.command {
        Command::Undo { .. } => !undone.contains(&operation.n),
        Command::Redo { .. } | Command::Hide { .. } => false,
        _ => !operation.command.takes_in(),
    })?;
    let found = found.filter(|operation| matches!(operation.command, Command::Undo { .. }));
    let operation = found.ok_or(SyncError::Nothing("redo"))?;
    take_back(change, &operation, |undoes, command, left| Command::Redo { undoes, command, left })
}

/// Returns why an operation cannot be undone.
fn obstacle(operation: &Operation, undone: &BTreeSet<u64>) -> Option<&'static str> {
    if undone.contains(&operation.n) {
        Some("it is undone already")
    } else if operation.n == 1 {
        Some("it began the session")
    } else if operation.command.takes_in() {
        Some("it only took in what another program wrote")
    } else {
        None
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
        let operations = change.archive.store().operations(session.key, start..end)?;
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
    operation: &Operation,
    told: impl FnOnce(u64, String, Vec<Text>) -> Command,
) -> Result<Undone, OpsError> {
    let n = operation.n;
    let facts = &operation.facts;
    let mut left = Vec::new();
    for step in &facts.moves {
        let branch = step.branch.to_text();
        let now = change.branch(&branch);
        let since = came_since(step.to, now);
        match (step.from, now) {
            // A branch that the operation made is hidden, unless it was used since.
            (None, _) if since => {}
            (from, Some(now)) if since => {
                let name = change.left_name(&branch);
                change.set_branch(&name, Some(now));
                change.set_branch(&branch, from);
                left.push(name);
            }
            (from, _) => change.set_branch(&branch, from),
        }
    }
    let mut current = change.tip.current().to_owned();
    let text = |text: &Option<Text>| text.as_ref().map(Text::to_text);
    if let Some(step) = &facts.current
        && change.tip.current == text(&step.to)
        && let Some(from) = text(&step.from)
    {
        change.set_current(&from);
        current = from;
    }
    if let Some(step) = facts.live.as_ref().filter(|step| step.to == change.tip.live) {
        change.set_live(step.from);
    }
    if let Some(step) = facts.hidden.as_ref().filter(|step| step.to.is_some() == change.tip.hidden)
    {
        change.set_hidden(step.from.is_some());
    }
    let (mut rotated, mut written) = (None, None);
    let Some(target) = change.planned(&current) else {
        return Err(OpsError::NotUndoable {
            n,
            why: "without it there is no current branch; switch to another",
        });
    };
    if change.position() != Some(target) {
        let reached = reach(&mut change, target, None)?;
        change.set_branch(&current, Some(reached.position));
        (rotated, written) = (reached.aside, reached.written);
    }
    let names = left.iter().map(|left| change.branch_text(left)).collect();
    let word = operation.command.as_str();
    let outcome = sync::commit(change, told(n, word.to_owned(), names))?;
    Ok(Undone {
        operation: outcome.operation,
        undoes: n,
        command: word,
        left,
        rotated,
        written,
        notices: outcome.notices,
    })
}
