//! Shelf: an agent moved its file to another of its folders, and the session continues there.
//!
//! Invariant: no file is written and nothing is imported here. The caller catches up with the file at its new path.

use std::path::PathBuf;

use crate::{
    archive::{At, SyncError},
    change::{draft::Change, goal::reach::again},
    files::{
        deletion::{elsewhere, is_gone},
        judge::Verdict,
        live_file::LiveFile,
        sources,
        states::judged,
    },
    model::{Command, Position, Run},
};

/// Returns the path to which an agent moved the live file of a session, if the file there continues the stored state and may be
/// the live file.
pub(crate) fn place(session: &At<'_>, live: &LiveFile) -> Option<PathBuf> {
    let path = Some(live).filter(|live| live.attached && is_gone(&live.path));
    let path = path.and_then(|live| elsewhere(session, live))?;
    let agent = session.format.name();
    let is_agents =
        session.archive.writable.agents_file(&session.archive.disk, agent, &path).is_ok();
    let is_plain = sources::length(&path).is_ok_and(|length| length.is_some());
    let goes_on = || {
        let judged = judged(session, session.state.generation(), session.state.growth(), &path);
        matches!(judged, Ok(Verdict::Same | Verdict::Grown))
    };
    (is_agents && is_plain && goes_on()).then_some(path)
}

/// Makes the moved file the live file, and returns its path.
pub(crate) fn follow(session: &At<'_>, live: &LiveFile) -> Result<Option<PathBuf>, SyncError> {
    let found = place(session, live).zip(session.state.position());
    let Some((path, position)) = found else { return Ok(None) };
    let mut change = Change::bare(session)?;
    let place = session.archive.place_of(&path);
    let n = match change.held_file(&place) {
        Some((n, _)) => n,
        None => change.file(place),
    };
    let whole = Position { horizon: session.state.growth().map_or(0, Run::end), ..position };
    let growth = again(&mut change, whole, Some(n))?;
    let moved = growth.position(position.head);
    change.grown(growth);
    change.set_branch(session.state.current(), Some(moved));
    change.set_live(Some(n));
    change.commit(Command::CatchUp { entries: 0, branch: None, left: None })?;
    Ok(Some(path))
}
