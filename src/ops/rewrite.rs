//! Rewriting: the live file is brought to another position by a rotation.
//!
//! The successor holds the position's generation up to the horizon, byte for byte, if the agent would resume it at the
//! position's head; else the entries of the path alone, one a line.

use std::path::PathBuf;

use super::{
    change::{Change, Growth},
    content,
};
use crate::{
    live::{self, Fresh},
    model::{Gaps, Position, Run},
    ops::OpsError,
};

/// Where a change has brought the live file.
#[derive(Debug)]
pub(super) struct Rewritten {
    /// The new position.
    pub(super) position: Position,
    /// How many entries were taken over.
    pub(super) kept: u64,
    /// The old file, if there is a live file.
    pub(super) aside: Option<PathBuf>,
}

/// Brings the live file to a position, with more bytes behind it; the caller moves the branch.
pub(super) fn rewrite(
    change: &mut Change<'_>,
    target: Position,
    more: &[u8],
) -> Result<Rewritten, OpsError> {
    let (runs, whole) = runs_of(change, target)?;
    let live = change.live_file()?;
    let mut growth = change.generation(live.as_ref().map(|(file, _)| *file));
    let tail = tail(change, target, &runs, whole);
    place(change, &mut growth, &runs)?;
    growth.end(tail.clone());
    let kept = growth.entries;
    let from = change.tip.position.map_or(0, |at| at.generation);
    let mut fresh = None;
    if let Some((_, path)) = &live {
        let io = |source| OpsError::Io { path: path.clone(), source };
        let mut file = Fresh::begin(path).map_err(io)?;
        // What the live file begins with already is copied by the file system.
        if begins_with(change, from, &runs)?
            && live::read(path, growth.bytes, Some(growth.length())).map_err(io)? == tail
        {
            file.copy(path, growth.length()).map_err(io)?;
        } else if let Some(session) = &change.session {
            let mut runs = runs;
            if let Some(last) = runs.last_mut() {
                last.tail = tail;
            }
            content::write(change.archive.store.as_ref(), session, &runs, &mut |part| {
                file.write(part)
            })?;
        }
        file.write(more).map_err(io)?;
        fresh = Some(file);
    }
    change.read(&mut growth, more)?;
    let head = if more.is_empty() { target.head } else { growth.last.map(|(n, _)| n) };
    let position = Position { generation: growth.generation, head, horizon: growth.entries };
    change.grown(growth);
    let aside = match (live, fresh) {
        (Some(live), Some(fresh)) => {
            Some(change.exchange_live(live, fresh, (from, position.generation))?)
        }
        _ => None,
    };
    Ok(Rewritten { position, kept, aside })
}

/// Returns whether a generation begins with the same entries behind the same separators.
fn begins_with(change: &Change<'_>, generation: u64, runs: &[Run]) -> Result<bool, OpsError> {
    let horizon = runs.last().map_or(0, Run::end);
    let Some(view) = change.view(Position { generation, head: None, horizon }) else {
        return Ok(false);
    };
    let held = view.runs()?;
    let same = |(a, b): (&Run, &Run)| {
        (a.start, a.first, a.count) == (b.start, b.first, b.count) && a.gaps == b.gaps
    };
    Ok(held.len() == runs.len() && held.iter().zip(runs).all(same))
}

/// Returns the runs that the successor holds, and whether they are a generation's own.
fn runs_of(change: &Change<'_>, target: Position) -> Result<(Vec<Run>, bool), OpsError> {
    let Some(view) = change.view(target) else { return Ok((Vec::new(), true)) };
    if target.horizon == 0 || change.format.head(&view)? == target.head {
        return Ok((view.runs()?.to_vec(), true));
    }
    let mut runs: Vec<Run> = Vec::new();
    for (start, entry) in (0..).zip(view.path(usize::MAX)?.entries) {
        match runs.last_mut() {
            Some(run) if run.first + run.count == entry => run.count += 1,
            _ => runs.push(Run {
                generation: target.generation,
                start,
                first: entry,
                count: 1,
                gaps: Gaps::default(),
                bytes: 0,
                running: crate::model::Running::EMPTY,
                tail: Vec::new(),
            }),
        }
    }
    Ok((runs, false))
}

/// Returns what follows the last entry: the generation's own tail at its end, else a line end.
fn tail(change: &Change<'_>, target: Position, runs: &[Run], whole: bool) -> Vec<u8> {
    let Some(last) = runs.last() else { return Vec::new() };
    let newest = change.tip.growth.as_ref().filter(|run| run.generation == target.generation);
    let ended = newest.map_or(last.end() == target.horizon && !last.tail.is_empty(), |run| {
        run.end() == target.horizon
    });
    let own = newest.map_or(&last.tail, |run| &run.tail);
    if whole && ended && !own.is_empty() { own.clone() } else { b"\n".to_vec() }
}

fn place(change: &Change<'_>, growth: &mut Growth, runs: &[Run]) -> Result<(), OpsError> {
    let Some(session) = &change.session else { return Ok(()) };
    for run in runs {
        let range = run.first..run.first + run.count;
        let entries = change.archive.store.entries(session.key, range.clone())?;
        let lines = change.archive.store.line_ids(session.key, range)?;
        let separators = run.gaps.iter(run.start, run.count);
        for ((entry, (_, length)), separator) in entries.iter().zip(lines).zip(separators) {
            growth.place(entry.n, entry.id, separator, length);
        }
    }
    Ok(())
}
