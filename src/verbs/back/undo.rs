//! Operations and undo. An undo restores the state before an operation. It never erases anything.

use crate::{
    archive::{Archive, At, SyncError, Vain},
    change::{
        self,
        goal::{reach::Reach, resume::is_same},
    },
    files::{at::Standing, deletion, mover::newest},
    model::{Command, Operation, OperationNumber, Position, SessionName, Text},
    report::{Done, Landing, Notice, OperationView, Undone},
    session::plan::{Plan, Steps, branch_text, take_back},
    verbs::{
        OpsError,
        back::{landing::landing, target},
    },
};

/// Operations of sessions.
#[derive(Clone, Debug, Default)]
pub struct Operations {
    /// The newest first.
    pub shown: Vec<OperationView>,
    /// Operations whose record does not match its hash.
    pub damaged: Vec<(SessionName, OperationNumber)>,
}

/// Returns the newest operations of a session, newest first.
pub fn operations(session: &At<'_>, limit: usize) -> Result<Operations, OpsError> {
    let (store, own) = (session.store, session.store.id()?);
    let (undone, next) = (session.state.undone(), session.state.next_operation());
    let from = next.minus(u64::try_from(limit).unwrap_or(u64::MAX));
    // Each hash covers the hash of the operation before.
    let mut operations = store.operations(session.key, from.minus(1)..next)?.into_iter().peekable();
    let first = operations.next_if(|operation| operation.n < from);
    let mut hash = first.map(|first| first.hash);
    let (mut sound, mut damaged) = (Vec::new(), Vec::new());
    for operation in operations {
        let is_right = operation.hash_after(hash, own, &session.name) == operation.hash;
        hash = Some(operation.hash);
        if is_right {
            sound.push(operation);
        } else {
            damaged.push((session.name.clone(), operation.n));
        }
    }
    let view = |operation: Operation| {
        // A revert may restore cut entries: they have origins too.
        let origins = match operation.origins {
            Some(_) => session.store.origins(session.key, operation.added())?,
            None => Vec::new(),
        };
        let cut = origins.iter().filter(|(_, origin)| origin.cut.is_some()).count() as u64;
        let (session, undone) = (session.name.clone(), undone.contains(&operation.n));
        Ok(OperationView { session, operation, cut, undone })
    };
    let shown: Result<_, OpsError> = sound.into_iter().rev().map(view).collect();
    Ok(Operations { shown: shown?, damaged })
}

/// Returns the newest operations of all sessions, newest first.
pub fn operations_of_all(archive: &Archive, limit: usize) -> Result<Operations, OpsError> {
    let Operations { shown: mut found, mut damaged } = Operations::default();
    let keep = |found: &mut Vec<OperationView>| {
        found.sort_by(|one, other| {
            let of = |view: &OperationView| (view.operation.at, view.operation.n);
            of(other).cmp(&of(one)).then_with(|| one.session.cmp(&other.session))
        });
        found.truncate(limit);
    };
    for session in archive.every()? {
        let of_session = operations(&archive.at(&session)?, limit)?;
        found.extend(of_session.shown);
        damaged.extend(of_session.damaged);
        // Sorting only now and then keeps the list short at little cost.
        if found.len() / 8 > limit {
            keep(&mut found);
        }
    }
    keep(&mut found);
    Ok(Operations { shown: found, damaged })
}

/// Undoes the operation with this number. Without a number, drops the waiting change, or undoes the newest operation that
/// moved the conversation.
pub fn undo(session: &At<'_>, wanted: Option<OperationNumber>) -> Result<Undone, OpsError> {
    execute(session, |before| {
        let operation = target::undoable(before, session, wanted.or(before.state.waiting))?;
        plan(before, &operation, |undoes, command, left| Command::Undo { undoes, command, left })
    })
}

/// Returns the newest operation that moved the conversation and can be undone.
pub fn undoable(session: &At<'_>) -> Result<OperationNumber, OpsError> {
    Ok(target::undoable(&Standing::of(session)?, session, None)?.n)
}

/// Undoes the newest undo.
pub fn redo(session: &At<'_>) -> Result<Undone, OpsError> {
    execute(session, |before| {
        let undone = before.state.undone();
        // Any other operation after an undo ends the sequence that can be redone.
        let found =
            newest(before.store(), session.key, &before.state, |operation| {
                match operation.command {
                    Command::Undo { .. } => !undone.contains(&operation.n),
                    Command::Redo { .. } | Command::Hide { .. } => false,
                    _ => !operation.command.takes_in(),
                }
            })?;
        let found = found.filter(|operation| matches!(operation.command, Command::Undo { .. }));
        let operation = found.ok_or(SyncError::Nothing(Vain::Redo))?;
        plan(before, &operation, |undoes, command, left| Command::Redo { undoes, command, left })
    })
}

type Planned = (Undone, Option<Plan<Option<Reach<'static>>>>);

fn execute(
    session: &At<'_>,
    verb: impl FnOnce(&Standing<'_>) -> Result<Planned, OpsError>,
) -> Result<Undone, OpsError> {
    let ((mut undone, from), mut made) = change::execute(session, |before| {
        let (undone, plan) = verb(before)?;
        Ok::<_, OpsError>(((undone, before.position()), plan))
    })?;
    made.done.notices.splice(0..0, undone.done.notices);
    undone.done = made.done;
    undone.landing = landing(session, from, None);
    Ok(undone)
}

/// Plans to undo an operation.
fn plan(
    before: &Standing<'_>,
    operation: &Operation,
    command: impl FnOnce(OperationNumber, String, Vec<Text>) -> Command,
) -> Result<Planned, OpsError> {
    let n = operation.n;
    let (mut steps, mut left) =
        take_back(&before.state, operation, |to, now| is_same(before, to, now))?;
    if matches!(operation.command, Command::Branch { .. }) && steps == Steps::default() {
        return Err(OpsError::NotUndoable {
            n,
            why: "the branch that it created has been used since",
        });
    }
    if let Some(end) = end_of_attached(before, &steps)?
        && steps.position(&before.state) != Some(end)
    {
        let current = steps.current(&before.state).to_owned();
        // An end that the file continues from needs no name.
        let stood = steps.position(&before.state);
        let stood = match stood.and_then(|stood| stood.head) {
            Some(head) if !before.path(end)?.contains(&head) => stood,
            _ => None,
        };
        left.extend(stood.map(|stood| steps.leave(&before.state, &current, stood)));
        steps.set(&current, Some(end));
    }
    let Some(target) = steps.position(&before.state) else {
        let why = "it created the current branch; switch to another first";
        return Err(OpsError::NotUndoable { n, why });
    };
    // A file that is detached or attached again is not written.
    let is_elsewhere = before.position() != Some(target) && steps.live.is_none();
    let goal = is_elsewhere.then_some(Reach { target, note: None });
    let is_let_go = steps.live.as_ref().is_some_and(|live| live.to.is_none());
    let let_go = before.attached().filter(|_| is_let_go);
    let notices = let_go.into_iter().map(|live| Notice::Detached { path: live.path }).collect();
    let word = operation.command.as_str();
    let names = left.iter().map(|left| branch_text(left)).collect();
    let hidden = steps.hidden;
    let plan = Plan { command: command(n, word.to_owned(), names), steps, goal };
    let undone = Undone {
        undoes: n,
        original: operation.undoes().unwrap_or(n),
        command: word,
        left,
        hidden,
        landing: Landing::default(),
        done: Done { notices, ..Done::default() },
    };
    Ok((undone, Some(plan)))
}

/// Returns the end of the agent's file that these steps attach again. The agent may have continued in it.
fn end_of_attached(before: &Standing<'_>, steps: &Steps) -> Result<Option<Position>, SyncError> {
    let Some(n) = steps.live.as_ref().and_then(|live| live.to) else { return Ok(None) };
    let held = deletion::newest(&before.state).find(|(file, _)| *file == n);
    held.map(|(_, generation)| before.end_of(generation)).transpose()
}
