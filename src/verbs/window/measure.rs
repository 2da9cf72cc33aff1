//! Measuring a session: counts what a model sees of it, and combines that with the sizes that answers report, what changed since,
//! and the scale between the two.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    archive::At,
    context::{
        self, Item, Origin,
        measure::{Figure, Measure, Scale},
        tokens::{Counting, Encoding},
        window::{Source, Verdict, Window, is_believable},
    },
    json::Raw,
    model::{EntryNumber, EntrySet, Kind, Landmark, PlaceNumber, Position, Role, Usage},
    session::{Damages, View, ids::NEAR},
    verbs::{
        OpsError,
        window::sight::{Answer, Asked, Material, StandIns, items, seen},
    },
    wire::{Edit, Graph, Telling, Told},
};

/// A report is believed or not depending on the size of this many newest entries of a path.
pub(crate) const NEWEST: usize = 64;
/// A record with a system prompt or a list of tools has at least this many bytes.
const SHORTEST: u64 = 1_000;

/// Returns the messages of the last `limit` entries up to a position, by default the current head.
///
/// A window that is too small is refused if the user set it. One that was found in the session does not prevent reading it.
pub(crate) fn material(
    session: &At<'_>,
    position: Option<Position>,
    asked: &Asked,
    limit: usize,
    damages: &Damages,
) -> Result<Material, OpsError> {
    // A window that was asked for is checked before anything is read.
    let early = asked.resolve(&Told::default(), None, None);
    if asked.window.is_some() || early.source != Source::Default {
        guard(&early)?;
    }
    let position = position.or(session.state.position());
    let view = position.map(|at| session.view(at).gathering(damages));
    let mut found = seen(session, view.as_ref(), asked, limit)?;
    if !found.window.source.is_found() {
        guard(&found.window)?;
    }
    let model = found.model.as_deref();
    found.counting = asked.counting.unwrap_or_else(|| Counting::Exact(Encoding::of_model(model)));
    found.fresh = count(session, &mut found.items, found.counting)?;
    if let Some(view) = &view {
        found.answer = newest(session, view, &found)?;
        found.measure = measure(session, view, &mut found)?;
    }
    Ok(found)
}

/// Refuses a window that is too small to work in.
pub(crate) fn guard(window: &Window) -> Result<(), OpsError> {
    let &Window { tokens, source: by, least, .. } = window;
    match window.verdict {
        Verdict::Blocked => Err(OpsError::Window { tokens, by, least }),
        Verdict::Fine | Verdict::Warned => Ok(()),
    }
}

/// Returns the tokens of an answer and its request, if the figures are plausible.
pub(crate) fn total(usage: &Usage) -> Option<u64> {
    Some(usage.total()).filter(|total| is_believable(*total))
}

/// Returns the usage that an item reports for the context that it is in.
fn report(item: &Item) -> Option<(Usage, u64)> {
    if !item.has_usage() || item.origin == Origin::Kept {
        return None;
    }
    let usage = item.message().usage?;
    Some((usage, total(&usage)?))
}

/// Returns the number of items before the results at the end: an answer comes before the results of its calls.
fn without_results(items: &[Item]) -> usize {
    let results = items.iter().rev().take_while(|item| item.role() == Role::Tool);
    items.len() - results.count()
}

/// Returns the newest answer of a session that reports its size.
pub(crate) fn newest(
    session: &At<'_>,
    view: &View<'_>,
    found: &Material,
) -> Result<Option<Answer>, OpsError> {
    let said = found.items.iter().enumerate().rev().find_map(|(at, item)| {
        let (usage, _) = report(item)?;
        let time = item.time();
        Some(Answer { entry: item.entry()?, covered: at + 1, usage, time, is_standing: false })
    });
    let told = || {
        let (entry, usage) = found.used?;
        total(&usage)?;
        let at = found.path.iter().rposition(|of| *of == entry);
        let behind = found.path.get(at.map_or(found.path.len(), |at| at + 1)..);
        let behind: BTreeSet<EntryNumber> = behind.unwrap_or_default().iter().copied().collect();
        let is_behind = |item: &&Item| item.entry().is_some_and(|entry| behind.contains(&entry));
        let n_behind = found.items.iter().rev().take_while(is_behind).count();
        let before = found.items.get(..found.items.len() - n_behind).unwrap_or_default();
        let (covered, time) = (without_results(before), found.used_at);
        Some(Answer { entry, covered, usage, time, is_standing: false })
    };
    let answer = match said.or_else(told) {
        Some(answer) => Some(answer),
        None => last_on_path(view, found)?,
    };
    let Some(mut answer) = answer else { return Ok(None) };
    let is_before = |(entry, edit): &(EntryNumber, Edit)| match edit {
        Edit::Content(edit) => *edit < answer.entry,
        // The turns between the answer and the rollback no longer exist.
        Edit::Turns(_) => *entry < answer.entry,
        Edit::Later => true,
    };
    answer.is_standing =
        found.edits.iter().all(is_before) && !is_changed_since(session, view, answer.entry, found)?;
    Ok(Some(answer))
}

/// Returns the last answer before the newest boundary of a path. Answers after the boundary may be kept copies.
fn last_on_path(view: &View<'_>, found: &Material) -> Result<Option<Answer>, OpsError> {
    let mut left = NEWEST;
    let mut end = found.path.len();
    for (at, &entry) in found.path.iter().enumerate().rev() {
        if view.record(entry)?.kind == Kind::Boundary {
            end = at;
            break;
        }
    }
    for &entry in found.path.iter().take(end).rev() {
        let record = view.record(entry)?;
        let is_answer = record.kind == Kind::Assistant && !view.format.is_of_sub_agent(&record);
        if !is_answer || found.stand_ins.origin(entry) == Some(Origin::Kept) {
            continue;
        }
        let line = view.line(entry)?;
        let messages = Raw::object(&line).map(|record| view.format.messages(record));
        for message in messages.unwrap_or_default() {
            if let Some(usage) = message.usage.filter(|usage| total(usage).is_some()) {
                let time = message.time;
                return Ok(Some(Answer { entry, covered: 0, usage, time, is_standing: false }));
            }
        }
        left -= 1;
        if left == 0 {
            break;
        }
    }
    Ok(None)
}

/// Returns true if a compaction or a cut after an answer changed the context that it reported on.
fn is_changed_since(
    session: &At<'_>,
    view: &View<'_>,
    answer: EntryNumber,
    found: &Material,
) -> Result<bool, OpsError> {
    let stand_ins = &found.stand_ins;
    if stand_ins.holds(answer) {
        return Ok(true);
    }
    let stands = view.place(answer)?;
    let mut end = EntryNumber::ALL.end;
    let path = LazyCell::new(|| found.path.iter().copied().collect::<EntrySet>());
    while let Some(boundary) =
        session.store.landmark(session.key, Landmark::Boundary, answer.next()..end)?
    {
        // After a revert, a boundary in the file may be off the path.
        let is_on_path = || !found.is_whole || path.contains(boundary);
        if view.place(boundary)? > stands && is_on_path() {
            return Ok(true);
        }
        end = boundary;
    }
    for entry in stand_ins.behind(answer) {
        if view.place(entry)?.is_some_and(|place| Some(place) < stands) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Measures a session by its newest answer. The scale to reported sizes is computed only if the path is complete.
pub(crate) fn measure(
    session: &At<'_>,
    view: &View<'_>,
    found: &mut Material,
) -> Result<Measure, OpsError> {
    let is_whole = found.is_whole;
    let beside = if is_whole { beside(view, &found.path, found.counting)? } else { 0 };
    let mut measure = Measure { beside, ..Measure::default() };
    let Some(answer) = found.answer else { return Ok(measure) };
    let Some(reported) = total(&answer.usage) else { return Ok(measure) };
    let (before, since) = found.items.split_at(answer.covered.min(found.items.len()));
    let tokens_of = |items: &[Item]| items.iter().filter_map(|item| item.tokens).sum::<u64>();
    if answer.is_standing {
        let near = found.path.len().saturating_sub(NEWEST);
        let near: BTreeSet<_> = found.path.get(near..).unwrap_or_default().iter().collect();
        let is_near = |item: &&Item| item.entry().is_some_and(|entry| near.contains(&entry));
        let estimated = before.iter().filter(is_near).filter_map(|item| item.tokens).sum();
        if !(Figure { estimated, reported }).is_believable() {
            return Ok(measure);
        }
        measure.reported = Some(reported.saturating_add(tokens_of(since)));
    }
    if !is_whole {
        return Ok(measure);
    }
    let figures = if answer.is_standing {
        figures(before, &answer, beside, &found.stand_ins)
    } else {
        let at = found.path.iter().rposition(|entry| *entry == answer.entry);
        let path = found.path.get(..at.map_or(found.path.len(), |at| at + 1)).unwrap_or_default();
        let then = session.format.context(view, path)?;
        let stand_ins =
            StandIns::since(session, then.entries.iter().copied().min().unwrap_or_default())?;
        let (sent, edits, counting) = (&then.entries, &then.edits, Some(found.counting));
        let mut then = items(session, view, sent, edits, &stand_ins, counting)?;
        found.fresh.extend(count(session, &mut then, found.counting)?);
        if found.used.is_some_and(|(entry, _)| entry == answer.entry) {
            then.truncate(without_results(&then));
        }
        figures(&then, &answer, beside, &stand_ins)
    };
    let [first, newest] = figures;
    measure.scale = Some(Scale::of(first, newest)).filter(|_| newest.is_believable());
    Ok(measure)
}

/// Returns the first and the newest size that answers reported, given the items up to the newest answer.
fn figures(items: &[Item], answer: &Answer, beside: u64, stand_ins: &StandIns) -> [Figure; 2] {
    let mut estimated = beside;
    let mut first = None;
    for item in items {
        let more = item.entry().map_or(0, |entry| stand_ins.more(entry, answer.entry));
        estimated = estimated.saturating_add(item.tokens.unwrap_or(0)).saturating_add(more);
        if first.is_none()
            && let Some((_, reported)) = report(item)
        {
            first = Some(Figure { estimated, reported });
        }
    }
    let newest = Figure { estimated, reported: total(&answer.usage).unwrap_or(0) };
    [first.unwrap_or(newest), newest]
}

/// Counts the system prompt and the tools in records of a path that are not messages.
fn beside(view: &View<'_>, path: &[EntryNumber], counting: Counting) -> Result<u64, OpsError> {
    let mut openings = Vec::new();
    view.climb(&mut |view| {
        openings.extend(view.at(PlaceNumber::FIRST)?.filter(|first| !path.contains(first)));
        Ok(())
    })?;
    let mut candidates = Vec::new();
    for &entry in openings.iter().rev().chain(path) {
        if view.format.tells(&view.record(entry)?) == Some(Telling::Setup) {
            candidates.push(entry);
        }
    }
    let mut long = Vec::new();
    for range in EntryNumber::ranges(candidates.iter().copied(), NEAR) {
        let lengths = view.lengths(range.clone())?;
        let of = EntryNumber::each(range).zip(lengths);
        long.extend(of.filter(|(_, length)| *length >= SHORTEST).map(|(entry, _)| entry));
    }
    let long: BTreeSet<EntryNumber> = long.into_iter().collect();
    let (mut system, mut tools) = (None, None);
    for entry in candidates.into_iter().rev().filter(|entry| long.contains(entry)) {
        let line = view.line(entry)?;
        let told = Raw::object(&line).map(|record| view.format.told(record)).unwrap_or_default();
        system = system.or(told.system);
        tools = tools.or(told.tools);
        if system.is_some() && tools.is_some() {
            break;
        }
    }
    let count = |text: Option<String>| text.map_or(0, |text| counting.text(&text));
    Ok(count(system).saturating_add(count(tools)))
}

/// Counts items with the help of cached counts, and returns the new counts.
pub(crate) fn count(
    session: &At<'_>,
    items: &mut [Item],
    counting: Counting,
) -> Result<Vec<(EntryNumber, Vec<u64>)>, OpsError> {
    let Counting::Exact(encoding) = counting else {
        context::count(items, counting);
        return Ok(Vec::new());
    };
    let entries: Vec<EntryNumber> = items.iter().filter_map(Item::entry).collect();
    let known = kept(session, encoding, &entries)?;
    let of_one_entry = |one: &Item, other: &Item| one.entry() == other.entry();
    for group in items.chunk_by_mut(of_one_entry) {
        let own = group.first().filter(|item| item.origin != Origin::Edited);
        let counts = own.and_then(Item::entry).and_then(|entry| known.get(&entry));
        if let Some(counts) = counts.filter(|counts| counts.len() == group.len()) {
            for (item, &tokens) in group.iter_mut().zip(counts) {
                item.tokens = Some(tokens);
            }
        }
    }
    // Edited content comes from another record, so it is not cached under this line.
    let is_new = |item: &Item| item.tokens.is_none() && item.origin != Origin::Edited;
    let is_new: Vec<bool> = items.iter().map(is_new).collect();
    context::count(items, counting);
    let mut fresh = Vec::new();
    let mut at = 0;
    for group in items.chunk_by(of_one_entry) {
        if is_new.get(at) == Some(&true)
            && let Some(entry) = group.first().and_then(Item::entry)
        {
            fresh.push((entry, group.iter().filter_map(|item| item.tokens).collect()));
        }
        at += group.len();
    }
    Ok(fresh)
}

/// Returns the cached counts of entries.
pub(crate) fn kept(
    session: &At<'_>,
    encoding: Encoding,
    entries: &[EntryNumber],
) -> Result<BTreeMap<EntryNumber, Vec<u64>>, OpsError> {
    let mut kept = BTreeMap::new();
    for range in EntryNumber::ranges(entries.iter().copied(), NEAR) {
        kept.extend(session.store.counts(session.key, range, encoding.rule())?);
    }
    Ok(kept)
}
