//! Checkpoints: numbered places to go back to.

use serde_json::json;

use super::{change::Change, derive};
use crate::{
    model::{Checkpoint, json::Raw},
    ops::{Archive, Notice, OpsError, Session},
    store::FactKind,
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

/// Returns the checkpoints that are not undone, each behind the operation that gave it, in order.
pub(super) fn given(
    archive: &Archive,
    session: &Session,
) -> Result<Vec<(u64, Checkpoint)>, OpsError> {
    let undone = derive::undone(&archive.store.undos(session.key)?);
    let facts = archive.store.facts(session.key, 0..u64::MAX, &[FactKind::Checkpoints])?;
    let standing = facts.into_iter().filter(|(n, _)| !undone.contains(n));
    let given = standing.flat_map(|(n, facts)| {
        facts.checkpoints.into_iter().map(move |checkpoint| (n, checkpoint))
    });
    Ok(given.collect())
}

/// Returns the checkpoints that are not undone, in order.
pub fn checkpoints(archive: &Archive, session: &Session) -> Result<Vec<Shown>, OpsError> {
    let given = given(archive, session)?.into_iter();
    let mut shown: Vec<Shown> =
        given.map(|(operation, checkpoint)| Shown { checkpoint, operation, words: None }).collect();
    let turns: Vec<u64> = shown.iter().filter_map(|shown| shown.checkpoint.before).collect();
    let mut words = std::collections::BTreeMap::new();
    archive.store.lines(session.key, &turns, &mut |n, line| {
        let message = Raw::object(&line).and_then(|record| session.format.message(record));
        words.insert(n, message.map(|message| message.text()).unwrap_or_default());
    })?;
    for shown in &mut shown {
        shown.words = shown.checkpoint.before.and_then(|n| words.remove(&n));
    }
    Ok(shown)
}

/// Returns the checkpoint of a number as a person wrote it, or the nearest ones.
pub(super) fn find(
    archive: &Archive,
    session: &Session,
    wanted: &str,
) -> Result<Checkpoint, OpsError> {
    let all = checkpoints(archive, session)?;
    let number: Option<u64> = wanted.parse().ok();
    if let Some(found) = all.iter().find(|shown| Some(shown.checkpoint.n) == number) {
        return Ok(found.checkpoint.clone());
    }
    let aim = wanted.parse::<i128>().unwrap_or(i128::MAX);
    let mut nearest: Vec<&Shown> = all.iter().collect();
    nearest.sort_by_key(|shown| i128::from(shown.checkpoint.n).abs_diff(aim));
    nearest.truncate(3);
    nearest.sort_by_key(|shown| shown.checkpoint.n);
    let describe = |shown: &Shown| {
        let words =
            shown.checkpoint.note.clone().or_else(|| shown.words.clone()).unwrap_or_default();
        (shown.checkpoint.n, words)
    };
    Err(OpsError::NoCheckpoint {
        wanted: wanted.to_owned(),
        nearest: nearest.into_iter().map(describe).collect(),
    })
}
