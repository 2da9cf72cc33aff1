//! The head of a resume: the leaf that a pin names, or the last record of the file.
//!
//! ```text
//! b1 ─ b2 ─ r2 ─ a       a pin on r1 yields to a: both belong to the message of b1 and b2
//!  └─ r1
//! ```

use super::{
    beside::{is_beside, is_last, is_of_answer, message},
    chain::{Walk, newest_boundary},
    read::{Hint, is_aside, is_message},
};
use crate::{
    model::{EntryNumber, EntrySet, Kind, Landmark, NameTag, PlaceNumber, Record},
    wire::{Failure, Graph},
};

/// How many places before the last link are searched for a newer one.
const LATE: usize = 64;

/// Returns the entry at which a resume would continue.
pub(super) fn head(graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
    let mut walk = Walk::new(graph)?;
    let (last, side) = last(graph)?;
    let pin = newest_pin(graph, last)?;
    // Kept messages follow the summary wherever they are in the file.
    let tail = last.map(|last| walk.behind_kept(last).unwrap_or(last));
    let leaf = match &pin {
        Some(Pin { leaf: None, is_last: true, .. }) => return Ok(None),
        Some(pin) => pinned(&walk, pin, tail)?,
        None => None,
    };
    let late = match last.filter(|_| pin.is_none()) {
        Some(last) => newest_below(&walk, last)?,
        None => None,
    };
    let Some(from) = leaf.or(late).or(tail).or(side) else { return Ok(None) };
    let mut seen = EntrySet::default();
    let mut at = Some(from);
    while let Some(entry) = at.filter(|entry| seen.insert(*entry)) {
        if is_message(graph.record(entry)?.kind) {
            return Ok(Some(entry));
        }
        at = walk.named(entry)?;
    }
    if let Some(tip) = newest_tip(&walk)? {
        return Ok(Some(tip));
    }
    let mut at = Some(from);
    while let Some(entry) = at {
        if is_message(graph.record(entry)?.kind) {
            return Ok(Some(entry));
        }
        at = walk.step(entry)?;
    }
    Ok(Some(from))
}

/// Returns true if the agent can resume at an entry: the program reads it, its name is not taken by a later one, and no boundary
/// dropped it.
pub(super) fn is_in_reach(graph: &dyn Graph, entry: EntryNumber) -> Result<bool, Failure> {
    let record = graph.record(entry)?;
    let Some(place) = graph.place(entry)? else { return Ok(false) };
    Ok(is_last(graph, &record, place)?
        && !graph.is_glued(place)?
        && Walk::new(graph)?.can_be_head(entry)?)
}

/// Returns the last link of the main chain, and the last link of a side chain after it.
fn last(graph: &dyn Graph) -> Result<(Option<EntryNumber>, Option<EntryNumber>), Failure> {
    let mut side = None;
    for place in graph.end().earlier().rev() {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        if is_tail(&record) && !graph.is_glued(place)? {
            if !Hint::of(&record).has(Hint::SIDE) {
                return Ok((Some(entry), side));
            }
            side.get_or_insert(entry);
        }
    }
    Ok((None, side))
}

/// Returns true if a record is a link from which a conversation can continue.
fn is_tail(record: &Record) -> bool {
    let hint = Hint::of(record);
    hint.has(Hint::CHAIN) && !hint.has(Hint::PROGRESS) && !is_aside(record)
}

/// Returns true if the program reads a link of the main chain. It does not if a later record has the same name.
fn is_read(walk: &Walk<'_>, record: &Record, place: PlaceNumber) -> Result<bool, Failure> {
    Ok(walk.can_be_head(record.n)?
        && !walk.graph.is_glued(place)?
        && is_last(walk.graph, record, place)?)
}

struct Pin {
    leaf: Option<NameTag>,
    /// True if it is explicit and nothing was written since.
    is_last: bool,
    /// True if it was ever explicit, whatever was written since.
    was_explicit: bool,
}

/// Returns the newest pin after the newest boundary. Pins before it on the same leaf make it explicit. `tail` is the last link of
/// the main chain.
fn newest_pin(graph: &dyn Graph, tail: Option<EntryNumber>) -> Result<Option<Pin>, Failure> {
    let place_of = |entry: Option<EntryNumber>| entry.map_or(Ok(None), |entry| graph.place(entry));
    let boundary = place_of(newest_boundary(graph)?)?;
    let tail = place_of(tail)?;
    let mut before = graph.end();
    let mut newest: Option<Pin> = None;
    while let Some((place, entry)) = graph.landmark(Landmark::Signpost, before)? {
        if Some(place) < boundary {
            break;
        }
        before = place;
        let record = graph.record(entry)?;
        let hint = Hint::of(&record);
        if !hint.has(Hint::PIN) || graph.is_glued(place)? {
            continue;
        }
        let leaf = hint.tags().next();
        let pin = newest.get_or_insert(Pin { leaf, is_last: false, was_explicit: false });
        if pin.leaf != leaf {
            break;
        }
        pin.was_explicit |= hint.has(Hint::EXPLICIT);
        pin.is_last |= hint.has(Hint::EXPLICIT) && Some(place) > tail;
        if pin.leaf.is_none() || pin.was_explicit && (pin.is_last || Some(place) < tail) {
            break;
        }
    }
    Ok(newest)
}

/// Returns the leaf of a pin unless the pin yields to the last link.
fn pinned(
    walk: &Walk<'_>,
    pin: &Pin,
    tail: Option<EntryNumber>,
) -> Result<Option<EntryNumber>, Failure> {
    let Some(leaf) = pin.leaf.map_or(Ok(None), |leaf| walk.graph.named(leaf))? else {
        return Ok(None);
    };
    if !walk.can_be_head(leaf)? {
        return Ok(None);
    }
    let holds = pin.is_last
        || !gives_way(walk, leaf, tail, !pin.was_explicit)?
            && (walk.behind_kept(leaf).is_none() || is_tip(walk, leaf)?);
    Ok(holds.then_some(leaf))
}

/// Returns true if the path of the last link, without repairs, contains the leaf or the leaf's batch of calls.
fn gives_way(
    walk: &Walk<'_>,
    leaf: EntryNumber,
    tail: Option<EntryNumber>,
    by_batch: bool,
) -> Result<bool, Failure> {
    let graph = walk.graph;
    let block = if by_batch { batch(walk, leaf)? } else { None };
    let of = block.map_or(Ok(None), |block| Ok::<_, Failure>(message(&graph.record(block)?)))?;
    // The blocks above the block with the call, and the entries they caused.
    let mut above = EntrySet::default();
    let mut at = block.filter(|_| of.is_some()).map_or(Ok(None), |block| walk.named(block))?;
    while let Some(entry) = at {
        let record = graph.record(entry)?;
        let is_its = message(&record) == of || message(&record).is_none() && is_of_answer(&record);
        if !is_its || !above.insert(entry) {
            break;
        }
        at = walk.named(entry)?;
    }
    let (mut seen, mut at) = (EntrySet::default(), tail);
    let (mut is_near, mut is_result) = (false, false);
    while let Some(entry) = at.filter(|entry| seen.insert(*entry)) {
        let record = graph.record(entry)?;
        let is_block = block == Some(entry);
        // Several calls in one record have their results next to each other.
        if entry == leaf || of.is_some() && is_block && (is_near || is_result) {
            return Ok(true);
        }
        let its = of.is_some() && message(&record) == of;
        if its && !is_block && Hint::of(&record).has(Hint::CALLS) {
            if above.contains(entry) {
                return Ok(true);
            }
            is_near = true;
        } else if !its && !is_of_answer(&record) {
            is_near = false;
        }
        is_result = record.kind == Kind::Result;
        at = walk.named(entry)?;
    }
    Ok(false)
}

/// Returns the block with the call that a leaf belongs to: the leaf itself, the block of a result, or the block above program
/// text after either.
fn batch(walk: &Walk<'_>, leaf: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
    let mut seen = EntrySet::default();
    let mut noted = None;
    let mut at = Some(leaf);
    while let Some(entry) = at.filter(|entry| seen.insert(*entry)) {
        let record = walk.graph.record(entry)?;
        if !is_beside(&record) {
            let block = if record.kind == Kind::Result { walk.named(entry)? } else { Some(entry) };
            let is_noted = record.kind == Kind::Result || noted != Some(false);
            let Some(block) = block.filter(|_| is_noted) else { return Ok(None) };
            let record = walk.graph.record(block)?;
            let calls = record.kind == Kind::Assistant && Hint::of(&record).has(Hint::CALLS);
            return Ok(calls.then_some(block));
        }
        noted = Some(Hint::of(&record).has(Hint::SENT));
        at = walk.named(entry)?;
    }
    Ok(None)
}

/// Returns true if no other message follows a message.
fn is_tip(walk: &Walk<'_>, leaf: EntryNumber) -> Result<bool, Failure> {
    let graph = walk.graph;
    if !is_message(graph.record(leaf)?.kind) {
        return Ok(false);
    }
    for place in graph.end().earlier().rev() {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        if is_message(record.kind)
            && is_read(walk, &record, place)?
            && walk.named(entry)? == Some(leaf)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the newest descendant of the last link if that link was written late or twice: earlier links are newer, or as new
/// and follow it, and there is no pin.
fn newest_below(walk: &Walk<'_>, last: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
    let graph = walk.graph;
    let Some(place) = graph.place(last)?.filter(|_| walk.behind_kept(last).is_none()) else {
        return Ok(None);
    };
    let time = graph.record(last)?.time;
    let mut is_late = false;
    for place in place.earlier().rev().take(LATE) {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        let is_newer =
            record.time > time || record.time == time && walk.named(entry)? == Some(last);
        is_late |= is_newer && is_tail(&record) && is_read(walk, &record, place)?;
    }
    if !is_late || has_pin(graph)? {
        return Ok(None);
    }
    let mut below: EntrySet = [last].into_iter().collect();
    let mut seen = EntrySet::default();
    let mut newest = None;
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        if !is_read(walk, &record, place)? {
            continue;
        }
        let mut stretch = Vec::new();
        let mut at = Some(entry);
        while let Some(entry) = at.filter(|entry| !below.contains(*entry) && seen.insert(*entry)) {
            stretch.push(entry);
            at = walk.named(entry)?;
        }
        if at.is_some_and(|at| below.contains(at)) {
            below.extend(stretch);
            let found = (record.time, entry);
            if entry != last && newest.is_none_or(|(time, _)| found.0 >= time) {
                newest = Some(found);
            }
        }
    }
    Ok(newest.map(|(_, entry)| entry))
}

/// Returns true if the file has a pin.
fn has_pin(graph: &dyn Graph) -> Result<bool, Failure> {
    let mut before = graph.end();
    while let Some((place, entry)) = graph.landmark(Landmark::Signpost, before)? {
        if Hint::of(&graph.record(entry)?).has(Hint::PIN) {
            return Ok(true);
        }
        before = place;
    }
    Ok(false)
}

/// Returns the newest message at the end of a branch.
fn newest_tip(walk: &Walk<'_>) -> Result<Option<EntryNumber>, Failure> {
    let graph = walk.graph;
    let (mut followed, mut answered) = (EntrySet::default(), EntrySet::default());
    let mut links = Vec::new();
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        let record = graph.record(entry)?;
        if !is_read(walk, &record, place)? {
            continue;
        }
        links.push(entry);
        if let Some(above) = walk.named(entry)? {
            followed.insert(above);
            if is_message(record.kind) {
                answered.insert(above);
            }
        }
    }
    let mut seen = EntrySet::default();
    let mut newest = None;
    for link in links.into_iter().filter(|link| !followed.contains(*link)) {
        let mut at = Some(link);
        while let Some(entry) = at.filter(|entry| seen.insert(*entry)) {
            let record = graph.record(entry)?;
            if is_message(record.kind) {
                if !answered.contains(entry) && newest.is_none_or(|(time, _)| record.time > time) {
                    newest = Some((record.time, entry));
                }
                break;
            }
            at = walk.named(entry)?;
        }
    }
    Ok(newest.map(|(_, entry)| entry))
}
