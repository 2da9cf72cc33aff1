//! Checkpoints: numbered places to go back to.

use crate::{
    model::Command,
    ops::OpsError,
    session::Session,
    sync::{self, Archive, Notice, SyncError},
};

/// Gives the place where the current branch stands a number, or returns the one it has.
pub fn checkpoint(
    archive: &mut Archive,
    session: &Session,
    note: Option<&str>,
) -> Result<(u64, Option<u64>, Vec<Notice>), OpsError> {
    if note.is_some_and(|note| note.trim().is_empty()) {
        return Err(SyncError::Invalid { line: None, why: "the note is empty".to_owned() }.into());
    }
    let mut change = sync::begin(archive, session)?;
    let Some(place) = change.position() else {
        return Err(SyncError::Nothing("put a checkpoint on").into());
    };
    if let Some(n) = change.checkpoint_at(place) {
        return match note {
            None => Ok((n, None, std::mem::take(&mut change.notices))),
            Some(_) => Err(SyncError::Unsupported(format!(
                "checkpoint {n} stands here already, and what a checkpoint says is never changed"
            ))
            .into()),
        };
    }
    let note = note.map(|note| change.given(note));
    let n = change.checkpoint(place, None, None, note);
    let outcome = sync::commit(change, Command::Checkpoint { checkpoint: n })?;
    Ok((n, Some(outcome.operation), outcome.notices))
}
