//! Going back to a checkpoint or an entry, with an optional note for the model, or to before the first entry.

use crate::{
    archive::{At, SyncError, Workspace},
    change::{
        self,
        goal::{
            reach::Reach,
            resume::{Note, is_same, leads_on},
        },
    },
    files::at::Standing,
    model::{Command, Position, Request, Text},
    report::Reverted,
    session::history::lineage,
    session::plan::{Plan, Steps, branch_text, given},
    verbs::{
        OpsError,
        back::{
            landing::landing,
            target::{Back, check_note, named},
        },
        look::note::from_later,
    },
};

/// Goes back. A message tells the model that the conversation had been further ahead.
pub fn revert<'w>(
    session: &At<'_>,
    workspace: &Workspace,
    back: impl Into<Back<'w>>,
    message: Option<&str>,
) -> Result<Reverted, OpsError> {
    let back = back.into();
    check_note(message)?;
    let words = message.map(from_later);
    let note = words.as_deref().map(|words| Note { words, prompt: None, workspace });
    go_back(session, |before| {
        let place = back.find(&before.opened()?)?;
        let Request { checkpoint, entry, branch, .. } = named(before, &place)?;
        let message = message.map(given);
        let command = |left| Command::Revert { checkpoint, entry, branch, message, left };
        let (mut reverted, plan) = plan(before, place.position, note, command)?;
        reverted.checkpoint = checkpoint;
        Ok((reverted, plan))
    })
}

/// Goes back to before the first turn, or before the first entry unless the agent always sends what comes before it.
pub fn clear(session: &At<'_>) -> Result<Reverted, OpsError> {
    go_back(session, |before| {
        before.refuse_without_past()?;
        plan(before, start(before)?, None, |left| Command::Clear { left })
    })
}

/// Returns where a session starts over: its current position if there is nothing to clear.
fn start(before: &Standing<'_>) -> Result<Position, SyncError> {
    let generation = before.state.generation();
    let nothing = Position { generation, ..Position::default() };
    let Some(from) = before.position() else { return Ok(nothing) };
    let Some(view) = before.view(from) else { return Ok(nothing) };
    let path = before.path(from)?;
    let Some(entry) = before.format.start(&view, &path)? else { return Ok(nothing) };
    let start = lineage::ending_at(&view, entry)?.unwrap_or(nothing);
    Ok(if before.path(start)? == path { from } else { start })
}

pub(crate) fn go_back<'a>(
    session: &At<'_>,
    verb: impl FnOnce(&Standing<'_>) -> Result<(Reverted, Option<Plan<Reach<'a>>>), OpsError>,
) -> Result<Reverted, OpsError> {
    let ((mut reverted, from), made) = change::execute(session, |before| {
        let (reverted, plan) = verb(before)?;
        Ok::<_, OpsError>(((reverted, before.position()), plan))
    })?;
    if let Some(reached) = made.reached {
        reverted.note = reached.entry.filter(|_| reached.has_note);
        (reverted.entry, reverted.dropped) = (reached.entry, reached.dropped);
    }
    reverted.done = made.done;
    reverted.landing = landing(session, from, reverted.checkpoint);
    if let (Some(kept), Some(left)) = (&mut reverted.landing.kept, &reverted.left) {
        kept.branch = Some(left.clone());
    }
    Ok(reverted)
}

/// Plans to go back to a position. The branch moves there, and a second branch preserves the old end unless the path to the
/// target continues from it.
pub(crate) fn plan<'a>(
    before: &Standing<'_>,
    target: Position,
    note: Option<Note<'a>>,
    command: impl FnOnce(Option<Text>) -> Command,
) -> Result<(Reverted, Option<Plan<Reach<'a>>>), OpsError> {
    let from = before.position();
    let branch = before.state.current().to_owned();
    let entry = from.and_then(|from| from.head).map(|head| before.id_of(head)).transpose()?;
    let mut reverted = Reverted { entry, branch, ..Reverted::default() };
    let stays = from.map_or(Ok(false), |from| is_same(before, from, target))?;
    if stays && note.is_none() {
        return Ok((reverted, None));
    }
    let mut steps = Steps::default();
    if let Some(from) = from.filter(|_| !stays) {
        if leads_on(before, from, target)? {
            // An end that the branch continues from needs no name, and neither does one that the branch returns to.
            if note.is_none() {
                steps.take_up(&before.state, target);
            }
        } else {
            reverted.left = Some(steps.leave(&before.state, &reverted.branch, from));
        }
    }
    let command = command(reverted.left.as_deref().map(branch_text));
    Ok((reverted, Some(Plan { command, steps, goal: Reach { target, note } })))
}
