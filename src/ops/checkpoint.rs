//! Checkpoints: numbered places to go back to.

use std::{collections::BTreeMap, ops::Range};

use serde_json::json;

use super::{change::Change, derive};
use crate::{
    model::{Checkpoint, Message, json::Raw},
    ops::{Archive, Notice, OpsError, Session},
};

/// A checkpoint as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The operation that gave it.
    pub operation: u64,
    /// The first words of the turn before which it stands.
    pub words: Option<String>,
}

/// Gives the place where the current branch stands a number, or returns the one it has.
pub fn checkpoint(
    archive: &mut Archive,
    session: &Session,
    note: Option<&str>,
) -> Result<(u64, Option<u64>, Vec<Notice>), OpsError> {
    let mut change = Change::begin(archive, session, "checkpoint")?;
    let Some(place) = change.position() else {
        return Err(OpsError::Nothing("put a checkpoint on"));
    };
    if let Some(n) = change.checkpoint_at(place)? {
        return match note {
            None => Ok((n, None, std::mem::take(&mut change.notices))),
            Some(_) => Err(OpsError::Unsupported(format!(
                "checkpoint {n} stands here already, and what a checkpoint says is never changed"
            ))),
        };
    }
    let n = change.checkpoint(place, None, note.map(str::to_owned));
    let outcome = change.commit(&json!({ "checkpoint": n }))?;
    Ok((n, Some(outcome.operation), outcome.notices))
}

/// How many checkpoints are looked at together, from the newest on.
const BATCH: u64 = 256;
/// How many an error names that found none.
const NEAREST: usize = 3;

/// Returns the checkpoints with these numbers that are not undone, each behind the operation that gave it, in order.
fn standing(
    archive: &Archive,
    session: &Session,
    range: Range<u64>,
) -> Result<Vec<(u64, Checkpoint)>, OpsError> {
    let mut given = archive.store.checkpoints(session.key, range)?;
    let undone = derive::undone(&archive.store.undos(session.key)?);
    given.retain(|(operation, _)| !undone.contains(operation));
    Ok(given)
}

/// Returns the newest checkpoint that is not undone.
pub(super) fn newest(archive: &Archive, session: &Session) -> Result<Option<Checkpoint>, OpsError> {
    let mut end = archive.store.tip(session.key)?.checkpoints;
    while end > 0 {
        let start = end.saturating_sub(BATCH);
        if let Some((_, newest)) = standing(archive, session, start..end)?.pop() {
            return Ok(Some(newest));
        }
        end = start;
    }
    Ok(None)
}

/// Returns the checkpoints that stand before or behind entries from this one on.
///
/// A checkpoint is given when its entry is there, so numbers and entries rise together: a turn before the first entry
/// ends the search.
pub(super) fn since(
    archive: &Archive,
    session: &Session,
    entry: u64,
) -> Result<Vec<Checkpoint>, OpsError> {
    let mut end = archive.store.tip(session.key)?.checkpoints;
    let mut found = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BATCH);
        let batch = standing(archive, session, start..end)?;
        let passed = batch.iter().any(|(_, c)| c.before.is_some_and(|turn| turn < entry));
        found.extend(batch.into_iter().map(|(_, checkpoint)| checkpoint));
        end = if passed { 0 } else { start };
    }
    found.sort_by_key(|checkpoint| checkpoint.n);
    Ok(found)
}

/// Returns the checkpoints that are not undone, in order.
pub fn checkpoints(archive: &Archive, session: &Session) -> Result<Vec<Shown>, OpsError> {
    shown(archive, session, standing(archive, session, 0..u64::MAX)?)
}

/// Adds to checkpoints what stands there.
fn shown(
    archive: &Archive,
    session: &Session,
    given: Vec<(u64, Checkpoint)>,
) -> Result<Vec<Shown>, OpsError> {
    let turns: Vec<u64> = given.iter().filter_map(|(_, checkpoint)| checkpoint.before).collect();
    let mut words = BTreeMap::new();
    archive.store.lines(session.key, &turns, &mut |n, line| {
        let record = Raw::object(&line);
        let messages = record.map(|record| session.format.messages(record)).unwrap_or_default();
        words.insert(n, messages.first().map(Message::text).unwrap_or_default());
    })?;
    let show = |(operation, checkpoint): (u64, Checkpoint)| {
        let words = checkpoint.before.and_then(|n| words.remove(&n));
        Shown { checkpoint, operation, words }
    };
    Ok(given.into_iter().map(show).collect())
}

/// Returns the checkpoint of a number as a person wrote it, or the nearest ones.
pub(super) fn find(
    archive: &Archive,
    session: &Session,
    wanted: &str,
) -> Result<Checkpoint, OpsError> {
    if let Ok(n) = wanted.parse::<u64>()
        && let Some((_, found)) = standing(archive, session, n..n.saturating_add(1))?.pop()
    {
        return Ok(found);
    }
    let aim = wanted.parse::<i128>().unwrap_or(i128::MAX);
    let mut nearest = standing(archive, session, 0..u64::MAX)?;
    nearest.sort_by_key(|(_, checkpoint)| i128::from(checkpoint.n).abs_diff(aim));
    nearest.truncate(NEAREST);
    nearest.sort_by_key(|(_, checkpoint)| checkpoint.n);
    let describe = |shown: Shown| {
        let words = shown.checkpoint.note.or(shown.words).unwrap_or_default();
        (shown.checkpoint.n, words)
    };
    Err(OpsError::NoCheckpoint {
        wanted: wanted.to_owned(),
        nearest: shown(archive, session, nearest)?.into_iter().map(describe).collect(),
    })
}
