//! Settled entries: the path before such an entry never changes, whatever is written after it.
//!
//! ```text
//! file   u1 a1 u2 a2 u3 (parent a1) a3
//!        u2 is not settled, because u3 comes later and its parent a1 comes earlier; u1 and u3 are
//! path   u1 a1 [boundary] S u2 a2 u3 a3
//!        u1 is settled too: it is above the boundary, and before u2 and a2, which the boundary keeps
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{
    beside::message,
    chain::{Boundary, Kept, newest_boundary},
};
use crate::{
    model::{EntryNumber, EntrySet, Kind, PlaceNumber},
    wire::{Failure, Graph},
};

/// Returns which of the last entries of a path are settled: turns and answers of the model that begin after the newest boundary,
/// or above the boundary and everything that it keeps; and the boundary itself. No later record in the file may have a parent
/// before a settled entry.
pub(super) fn settled(
    graph: &dyn Graph,
    last: &[EntryNumber],
) -> Result<Vec<EntryNumber>, Failure> {
    let boundary = newest_boundary(graph)?;
    let kept = Kept::find(graph)?;
    let is_kept = |entry: EntryNumber| kept.as_ref().is_some_and(|kept| kept.holds(entry));
    let stands = boundary.map_or(Ok(None), |boundary| graph.place(boundary))?;
    let mut behind = stands.unwrap_or(PlaceNumber::FIRST);
    let mut above = above(graph, last, boundary, behind)?;
    if let Some(kept) = &kept {
        let on_path = last.iter().rev().take_while(|entry| Some(**entry) != kept.anchor);
        let mut passed = 0;
        for entry in on_path.filter(|entry| kept.holds(**entry)) {
            above.end = above.end.min(graph.place(*entry)?.unwrap_or(PlaceNumber::FIRST));
            passed += 1;
        }
        // The walk skips kept messages above the boundary only if the path already contains them after the summary.
        if passed < kept.len() {
            behind = kept.begin(graph)?.unwrap_or(graph.end());
            above.end = above.start;
        }
    }
    let answers = answers(graph, last)?;
    // Entries after a settled one on the path must also come after it in the file.
    let mut candidates = BTreeMap::new();
    let mut least = graph.end();
    let mut is_above = false;
    for &entry in last.iter().rev() {
        let Some(place) = graph.place(entry)? else { return Ok(Vec::new()) };
        let begins = graph.record(entry)?.kind == Kind::User || answers.contains(entry);
        let begins = begins && !is_kept(entry);
        // If the file contains all earlier entries, no missing parent can still be replaced.
        let holds_all = entry.get() == place.get() + 1;
        let is_there = place >= behind || is_above && above.contains(&place);
        if place < least && is_there && holds_all && (begins || boundary == Some(entry)) {
            candidates.insert(place, entry);
        }
        if !is_kept(entry) {
            least = least.min(place);
        }
        is_above |= boundary == Some(entry);
    }
    let Some(&first) = candidates.keys().next() else { return Ok(Vec::new()) };
    let mut settled = Vec::new();
    // The earliest parent of the records from here on. Kept messages are counted separately.
    let (mut least, mut least_kept) = (graph.end(), graph.end());
    for place in PlaceNumber::each(first..graph.end()).rev() {
        let Some(entry) = graph.at(place)? else { continue };
        if candidates.get(&place) == Some(&entry) {
            let is_boundary = boundary == Some(entry);
            if least >= place && (is_boundary || least_kept >= place) {
                settled.push(entry);
            }
        }
        if let Some(parent) = graph.parent(entry)?
            && let Some(above) = graph.place(parent)?
        {
            let least = if is_kept(parent) { &mut least_kept } else { &mut least };
            *least = (*least).min(above);
        }
    }
    settled.reverse();
    Ok(settled)
}

/// Returns the places before the newest boundary where paths are the same as if an older boundary were still the newest: the path
/// goes through that one, and has above it everything that it keeps.
fn above(
    graph: &dyn Graph,
    last: &[EntryNumber],
    newest: Option<EntryNumber>,
    before: PlaceNumber,
) -> Result<Range<PlaceNumber>, Failure> {
    let Some(older) = Boundary::before(graph, before)? else {
        return Ok(PlaceNumber::FIRST..before);
    };
    let mut places = older.place.next()..before;
    let nowhere = before..before;
    let end = last.iter().position(|entry| Some(*entry) == newest);
    let start = last.iter().position(|entry| *entry == older.record.n);
    let (Some(start), Some(end)) = (start, end) else { return Ok(nowhere) };
    let Some(between) = last.get(start + 1..end) else { return Ok(nowhere) };
    for &entry in between {
        if !graph.place(entry)?.is_some_and(|place| places.contains(&place)) {
            return Ok(nowhere);
        }
    }
    if let Some(kept) = older.kept(graph)? {
        let until: EntrySet = last.iter().take(start).copied().collect();
        if !kept.entries().all(|entry| until.contains(entry)) {
            return Ok(nowhere);
        }
        places.start = kept.begin(graph)?.unwrap_or(before);
    }
    Ok(places)
}

/// Returns the first blocks of the model's answers, except the first answer, which may have begun before these entries.
fn answers(graph: &dyn Graph, last: &[EntryNumber]) -> Result<EntrySet, Failure> {
    let mut found = EntrySet::default();
    let mut begun = BTreeSet::new();
    for &entry in last {
        if let Some(answer) = message(&graph.record(entry)?)
            && begun.insert(answer)
            && begun.len() > 1
        {
            found.insert(entry);
        }
    }
    Ok(found)
}
