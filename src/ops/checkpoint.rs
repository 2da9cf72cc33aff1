//! Checkpoints: numbered places to go back to.

use crate::{
    model::Command,
    ops::OpsError,
    session::{
        Session,
        plan::{Plan, Steps, given},
    },
    sync::{self, Archive, Notice, SyncError, goal::Stay},
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
    let (n, done) = sync::execute(archive, session, |before| {
        let Some(place) = before.position() else {
            return Err(SyncError::Nothing("put a checkpoint on"));
        };
        match (before.state.checkpoint_at(place), note) {
            (Some(n), None) => Ok((n, None)),
            (Some(n), Some(_)) => Err(SyncError::Unsupported(format!(
                "checkpoint {n} stands here already, and what a checkpoint says is never changed"
            ))),
            (None, note) => {
                let n = before.state.checkpoints;
                let checkpoint = Some((place, note.map(given)));
                let steps = Steps { checkpoint, ..Steps::default() };
                let command = Command::Checkpoint { checkpoint: n };
                Ok((n, Some(Plan { command, steps, goal: Stay })))
            }
        }
    })?;
    Ok((n, done.operation, done.notices))
}
