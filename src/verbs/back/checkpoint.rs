//! Checkpoints: numbered places to go back to.

use crate::{
    archive::{At, SyncError, Vain},
    change::{self, goal::Stay},
    files::at::Standing,
    model::{CheckpointNumber, Command, Position},
    report::Marked,
    session::plan::{Plan, Steps, given},
    verbs::OpsError,
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
    Ok(Marked { checkpoint: n, done: made.done })
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
