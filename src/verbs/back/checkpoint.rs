//! Checkpoints: numbered places to go back to.

use crate::{
    archive::{At, SyncError, Vain, Workspace},
    change::{
        self,
        goal::{
            Stay,
            add::{Add, NewRecord},
        },
    },
    files::at::Standing,
    json::Raw,
    model::{Block, CheckpointNumber, Command, Kind, Position},
    report::Marked,
    session::plan::{Plan, Steps, branch_text, given},
    verbs::OpsError,
    wire::{Draft, Graph as _, checkpoint_number},
};

/// How many checkpoints are read at once, newest first.
const BATCH: u64 = 32;

/// Numbers the current position, or returns the number it already has.
pub fn checkpoint(session: &At<'_>, note: Option<&str>) -> Result<Marked, OpsError> {
    if note.is_some_and(|note| note.trim().is_empty()) {
        let why = "the note is empty; leave out -m to mark the place without one".to_owned();
        return Err(SyncError::Invalid { line: None, why }.into());
    }
    let (n, made) = change::execute(session, |before| {
        let Some(place) = before.position() else {
            return Err(SyncError::Nothing(Vain::Checkpoint));
        };
        match (number_at(before, place)?, note) {
            (Some(n), None) => Ok((n, None)),
            (Some(n), Some(_)) => Err(SyncError::Marked(n)),
            (None, note) => {
                let n = before.state.next_checkpoint();
                let checkpoint = Some((place, note.map(given)));
                let steps = Steps { checkpoint, ..Steps::default() };
                let command = Command::Checkpoint { checkpoint: n };
                Ok((n, Some(Plan { command, steps, goal: Stay })))
            }
        }
    })?;
    Ok(Marked { checkpoint: n, shown: None, done: made.done })
}

/// Numbers the current position and writes the number where the model sees it, unless the last message already does.
pub fn tell_checkpoint(session: &At<'_>, workspace: &Workspace) -> Result<Marked, OpsError> {
    let ((n, shown), made) = change::execute(session, |before| {
        let Some(place) = before.position() else {
            return Err(SyncError::Nothing(Vain::Checkpoint));
        };
        let next = before.state.next_checkpoint();
        let has_own = before.format.traits().has_checkpoints;
        if let Some(shown) = last_shown(before, place)? {
            let n = if has_own { next.minus(1) } else { CheckpointNumber::FIRST.plus(shown) };
            return Ok(((n, shown), None));
        }
        let known = number_at(before, place)?.filter(|_| !has_own);
        let (n, mut steps) = (known.unwrap_or(next), Steps::default());
        let (shown, drafts) = if has_own {
            let own = next_own(before, place)?;
            (own, vec![Draft::Checkpoint(own), Draft::Note(format!("CHECKPOINT {own}"))])
        } else {
            steps.checkpoint = known.is_none().then_some((place, None));
            (n.get(), vec![Draft::Checkpoint(n.get())])
        };
        let lines = before.write(workspace, place, &drafts)?;
        let records = lines.into_iter().map(NewRecord::whole).collect();
        let branch = branch_text(before.state.current());
        let command = Command::Append { branch, limit: None, events: None };
        let goal = Add { records, follows: true, aside: None };
        Ok(((n, shown), Some(Plan { command, steps, goal })))
    })?;
    Ok(Marked { checkpoint: n, shown: Some(shown), done: made.done })
}

/// Returns the number that the last message tells the model, if it does nothing else.
fn last_shown(before: &Standing<'_>, place: Position) -> Result<Option<u64>, SyncError> {
    let Some(head) = place.head else { return Ok(None) };
    let line = before.line(head)?;
    let messages = Raw::object(&line).map(|record| before.format.messages(record));
    let mut blocks = messages.into_iter().flatten().flat_map(|message| message.blocks);
    Ok(blocks.find_map(|block| match block {
        Block::Text(text) => checkpoint_number(&text),
        _ => None,
    }))
}

/// Returns the number that an agent's own next checkpoint gets.
fn next_own(before: &Standing<'_>, place: Position) -> Result<u64, SyncError> {
    let Some(view) = before.view(place) else { return Ok(0) };
    for at in view.end().earlier().rev() {
        let Some(entry) = view.at(at)? else { continue };
        if view.record(entry)?.kind == Kind::Meta
            && let Some(own) = Raw::object(&view.line(entry)?)
                .and_then(|record| before.format.checkpoint(record)?.parse::<u64>().ok())
        {
            return Ok(own + 1);
        }
    }
    Ok(0)
}

/// Returns the number of a place. Numbers increase along a generation, so the search stops at the first checkpoint of this
/// generation with a lower horizon.
fn number_at(
    before: &Standing<'_>,
    place: Position,
) -> Result<Option<CheckpointNumber>, SyncError> {
    let Some(session) = &before.session else { return Ok(None) };
    let undone = before.state.undone();
    let mut end = before.state.next_checkpoint();
    while end > CheckpointNumber::FIRST {
        let start = end.minus(BATCH);
        let given = before.store().checkpoints(session.key, start..end)?;
        for (_, given) in given.into_iter().rev().filter(|(by, _)| !undone.contains(by)) {
            if given.place == place {
                return Ok(Some(given.n));
            }
            let at = given.place;
            if at.generation == place.generation && at.horizon < place.horizon {
                return Ok(None);
            }
        }
        end = start;
    }
    Ok(None)
}
