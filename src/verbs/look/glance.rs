//! Glances: cached figures about whole sessions, so that lists need not read them.
//!
//! A glance is computed when a list or an import first needs it, and stays in the store's cache until the session changes.
//!
//! ```text
//! current path    u u u B u u      context    12k 40k 71k 0 9k 21k      a sample of each turn; 0 is a compaction
//! ```

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    archive::At,
    json::Raw,
    model::{DayTurns, EntryNumber, Glance, Kind},
    session::graph::replay::Replays,
    verbs::{
        OpsError,
        look::drawing::{Detail, Drawing, drawing},
        window::{
            compactions::{boundaries, is_said_again, of, own},
            measure::total,
            request::full_enough,
            sight::Asked,
        },
    },
};

/// How many entries before the end of a turn are searched for an answer that reports the size of its request.
const LOOKED: usize = 8;
/// A session with a line of more bytes than this is not read for its glance.
const LONGEST: u64 = 4 << 20;
/// A day in milliseconds.
const DAY: i64 = 86_400_000;

/// Computes the glance of a session.
pub(crate) fn glance(session: &At<'_>, asked: &Asked) -> Result<Glance, OpsError> {
    let drawing = drawing(session, Detail::default())?;
    let lengths =
        session.store.lengths(session.key, EntryNumber::FIRST..session.state.next_entry())?;
    let is_long = lengths.into_iter().any(|length| length > LONGEST);
    // A session with such a long line is counted without reading its messages.
    let (full, context) = if is_long {
        (None, Vec::new())
    } else {
        (full_enough(session, asked), context(session, &drawing)?)
    };
    Ok(Glance {
        operations: session.state.operations(),
        reverted: drawing.count_reverted()?,
        compactions: compactions(session)?,
        tokens: full.as_ref().map(|full| full.tokens),
        window: full.as_ref().map(|full| full.window.tokens),
        context,
        days: days(&drawing)?,
    })
}

/// Counts the compactions of a session. A rewritten one counts once; an undone one, or a context that undertext repeated, does
/// not count.
fn compactions(session: &At<'_>) -> Result<u64, OpsError> {
    let (_store, undone) = (session.store, session.state.undone());
    let operations = if undone.is_empty() { Vec::new() } else { own(session)? };
    let is_undone = |boundary| {
        let found = of(&operations, boundary);
        found.is_some_and(|operation| undone.contains(&operation.n))
    };
    let (mut found, mut replays) = (BTreeSet::new(), None);
    for boundary in boundaries(session, EntryNumber::FIRST..session.state.next_entry()) {
        let boundary = boundary?;
        if replays.is_none() {
            replays = Some(Replays::of(session)?);
        }
        if !is_undone(boundary) && !is_said_again(session, boundary)? {
            found.extend(replays.as_ref().map(|replays| replays.first(boundary)));
        }
    }
    Ok(found.len() as u64)
}

/// Samples the sizes of the requests along the current path, in tokens.
fn context(session: &At<'_>, drawing: &Drawing<'_>) -> Result<Vec<u64>, OpsError> {
    let turns: Vec<(Kind, &[EntryNumber])> = drawing.turns()?;
    let mut samples = Vec::new();
    let buckets = turns.len().min(Glance::SAMPLES);
    for bucket in 0..buckets {
        let [from, to] = [bucket, bucket + 1].map(|n| n * turns.len() / buckets);
        let of = turns.get(from..to).unwrap_or_default();
        if of.iter().any(|(kind, _)| *kind == Kind::Boundary) {
            samples.push(0);
            continue;
        }
        for (_, members) in of.iter().rev() {
            if let Some(tokens) = request(session, members)? {
                samples.push(tokens);
                break;
            }
        }
    }
    Ok(samples)
}

/// Returns the size of the last request of a turn in tokens, as its answer reports it.
fn request(session: &At<'_>, members: &[EntryNumber]) -> Result<Option<u64>, OpsError> {
    for &entry in members.iter().rev().take(LOOKED) {
        let record = session.store.records(session.key, entry.alone())?.pop();
        if record.is_none_or(|record| record.kind != Kind::Assistant) {
            continue;
        }
        let mut found = None;
        session.store.lines(session.key, &[entry], &mut |_, line| {
            let line = line.unwrap_or_default();
            let said = Raw::object(&line).map(|record| session.format.messages(record));
            let usage = said.into_iter().flatten().filter_map(|message| message.usage);
            found = usage.filter_map(|usage| total(&usage)).next_back();
        })?;
        if found.is_some() {
            return Ok(found.filter(|tokens| *tokens > 0));
        }
    }
    Ok(None)
}

/// Counts the turns by the day on which they began.
fn days(drawing: &Drawing<'_>) -> Result<Vec<DayTurns>, OpsError> {
    let mut days: BTreeMap<u64, u64> = BTreeMap::new();
    for time in drawing.turn_times()? {
        if let Ok(day) = u64::try_from(time.0.div_euclid(DAY)) {
            *days.entry(day).or_default() += 1;
        }
    }
    Ok(days.into_iter().map(|(day, turns)| DayTurns { day, turns }).collect())
}
