//! Boundaries: each compaction of a session, and what its summary no longer mentions of the messages that it replaces.
//!
//! Compactions by undertext are read from its operations. Those by the agent are checked on the fly: the context before a
//! boundary is compared with the messages after it, and no result is stored.
//!
//! ```text
//! in one file      u1 a1 u2 a2 | boundary summary (kept) u3     the summary replaces the path up to the boundary
//! in two files     u1 a1 u2 a2     boundary (kept) u3           it replaces the state that was set aside
//! ```

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    archive::At,
    context::{Item, facts::Facts, plan::Piece},
    json::Raw,
    model::{Command, EntryNumber, Kind, Landmark, Message, Operation, PlaceNumber, Role, Text},
    report::Boundary,
    session::{
        Damages, Stored, View, entry_ids, graph::replay::Replays, history::departures::set_aside,
        read::lines,
    },
    verbs::{
        OpsError,
        find::members::turns_of,
        window::{
            compactions::{is_agents, own},
            sight::{StandIns, items},
        },
    },
    wire::{Departure, Graph, How},
};

/// A summary is within this many entries of its boundary.
const SUMMARY_WITHIN: usize = 8;

/// Returns the compactions of a session: those by its agent on the current path, then those by undertext.
pub fn audit_boundaries(session: &At<'_>) -> Result<Vec<Boundary>, OpsError> {
    let undone = session.state.undone();
    let operations = own(session)?;
    let replays = Replays::of(session)?;
    let is_theirs = |entry: EntryNumber| is_agents(session, &operations, replays.first(entry));
    let mut boundaries = by_agent(session, &is_theirs)?;
    let branches = &session.state.branches;
    let mut ours = Vec::new();
    for operation in operations {
        let added = operation.added();
        let Operation { n, at, command, .. } = operation;
        let Command::Compact {
            trigger,
            pre_tokens,
            post_tokens,
            summarised,
            kept,
            model,
            fallback,
            left,
            losses,
            ..
        } = command
        else {
            continue;
        };
        // The state from before is a branch, or an earlier part of the same file.
        let before = left.and_then(|left| branches.get(&*left.to_text())?.head);
        let entry = session.store.landmark(session.key, Landmark::Boundary, added)?;
        let turns = turns_of(session.store, session, before.or(entry).as_slice())?;
        let ids = entry_ids(session.store, session, &entry.into_iter().collect())?;
        let is_redacted = matches!(losses, Some(Text::Absent(_)));
        let losses = losses.map(|losses| losses.to_text());
        ours.push(Boundary {
            operation: Some(n),
            entry: ids.into_values().next(),
            turn: turns.into_values().next(),
            at: Some(at),
            trigger,
            tokens: (Some(pre_tokens), post_tokens),
            undone: undone.contains(&n),
            summarised,
            kept,
            model,
            fallback: fallback.is_some(),
            losses: losses
                .and_then(|losses| serde_json::from_str(&losses).ok())
                .unwrap_or_default(),
            is_redacted,
        });
    }
    boundaries.append(&mut ours);
    Ok(boundaries)
}

/// Returns the compactions by the agent.
fn by_agent(
    session: &At<'_>,
    is_theirs: &dyn Fn(EntryNumber) -> Result<bool, OpsError>,
) -> Result<Vec<Boundary>, OpsError> {
    let (format, damages) = (session.format, Damages::gathered());
    let mut found = Vec::new();
    let order = set_aside(&session.state, format);
    let look = |at| session.view(at).gathering(&damages);
    for pair in order.windows(2) {
        let [old, next] = pair else { continue };
        let (old, next) = (look(*old), look(*next));
        if format.departure(&old, &next)? != Some(Departure::Compaction) {
            continue;
        }
        let (Some(left), Some(head)) = (format.head(&old)?, format.head(&next)?) else { continue };
        let before = format.path(&old, left, usize::MAX)?.entries;
        let path = format.path(&next, head, usize::MAX)?.entries;
        let before = context(session, &old, &before)?;
        for at in boundaries(&next, &path, is_theirs)?.into_iter().take(1) {
            found.extend(checked(session, &before, &next, &path, at, true)?);
        }
    }
    if let Some(view) = lines::view(session, None) {
        let path = view.path(usize::MAX)?.entries;
        // A boundary at the beginning of a file was already found together with the file before it.
        let known: BTreeSet<EntryNumber> = found.iter().map(|(entry, _)| *entry).collect();
        for at in boundaries(&view, &path, is_theirs)? {
            if path.get(at).is_none_or(|entry| known.contains(entry)) {
                continue;
            }
            // An entry that a later compaction keeps is still found at its original place.
            let before = match at.checked_sub(1).and_then(|last| path.get(last)) {
                Some(&last) => {
                    let end = path.get(at).map_or(Ok(None), |entry| view.place(*entry))?;
                    let then = until(&view, session, last, end);
                    let path = format.path(&then, last, usize::MAX)?.entries;
                    context(session, &then, &path)?
                }
                None => Vec::new(),
            };
            found.extend(checked(session, &before, &view, &path, at, false)?);
        }
    }
    let entries: Vec<EntryNumber> = found.iter().map(|(entry, _)| *entry).collect();
    let turns = turns_of(session.store, session, &entries)?;
    let ids = entry_ids(session.store, session, &entries.into_iter().collect())?;
    let named = |(entry, boundary)| {
        let (entry, turn) = (ids.get(&entry).copied(), turns.get(&entry).copied());
        Boundary { entry, turn, ..boundary }
    };
    Ok(found.into_iter().map(named).collect())
}

/// Returns the indexes of the agent's boundaries on a path.
fn boundaries(
    view: &View<'_>,
    path: &[EntryNumber],
    is_theirs: &dyn Fn(EntryNumber) -> Result<bool, OpsError>,
) -> Result<Vec<usize>, OpsError> {
    let mut found = Vec::new();
    for (at, entry) in path.iter().enumerate() {
        if view.record(*entry)?.kind == Kind::Boundary && is_theirs(*entry)? {
            found.push(at);
        }
    }
    Ok(found)
}

/// Returns what the agent sends of a path.
fn context(
    session: &Stored<'_>,
    view: &View<'_>,
    path: &[EntryNumber],
) -> Result<Vec<Item>, OpsError> {
    let sent = session.format.context(view, path)?;
    items(session, view, &sent.entries, &sent.edits, &StandIns::default(), None)
}

/// Checks the summary after the boundary `path[at]` against the context before it. Returns nothing without a summary, as when the
/// agent only cleared the context.
fn checked<'a>(
    session: &'a Stored<'a>,
    before: &[Item],
    view: &View<'a>,
    path: &[EntryNumber],
    at: usize,
    is_anew: bool,
) -> Result<Option<(EntryNumber, Boundary)>, OpsError> {
    let Some(&entry) = path.get(at) else { return Ok(None) };
    let near = path.get(at..path.len().min(at + SUMMARY_WITHIN)).unwrap_or_default();
    let mut said = Vec::new();
    for &entry in near {
        said.extend(items(session, view, &[entry], &[], &StandIns::default(), None)?);
        if said.iter().any(Item::is_summary) {
            break;
        }
    }
    let Some(summary) = said.iter().rfind(|item| item.is_summary()).and_then(Item::entry) else {
        return Ok(None);
    };
    let mut head = summary;
    if is_anew {
        let behind = path.iter().position(|entry| *entry == summary).unwrap_or(at) + 1;
        let behind = path.get(behind..).unwrap_or_default();
        head = said_again(session, before, view, behind)?.unwrap_or(summary);
    }
    let at_place = view.place(entry)?;
    let end = view.place(head)?.map(PlaceNumber::next);
    let then = until(view, session, head, end);
    let head = if is_anew { head } else { session.format.last_kept(&then, summary)? };
    let after = context(session, &then, &session.format.path(&then, head, usize::MAX)?.entries)?;
    let mut above = BTreeSet::new();
    for entry in after.iter().filter_map(Item::entry) {
        if view.place(entry)?.is_some_and(|place| Some(place) < at_place) {
            above.insert(entry);
        }
    }
    let gone = gone(before, &after, &above);
    // A summary also replaces the summaries before it.
    let earlier: Vec<Cow<'_, Message>> =
        before.iter().filter(|item| item.is_summary()).map(Item::message).collect();
    let earlier = earlier.iter().map(|message| (message, false));
    let messages = gone.iter().map(|(message, begins_turn)| (message, *begins_turn));
    let pieces: Vec<Piece<'_>> = earlier
        .chain(messages)
        .map(|(message, is_request)| Piece { message, tokens: 0, is_kept: false, is_request })
        .collect();
    let summary: Vec<String> =
        said.iter().filter(|item| item.is_summary()).map(|item| item.message().text()).collect();
    let summary = summary.concat();
    // An encrypted summary cannot be checked.
    let losses = match summary.trim() {
        "" => Vec::new(),
        summary => Facts::of(&pieces.iter().collect::<Vec<_>>()).check(summary).losses(),
    };
    let line = view.line(entry)?;
    let told = Raw::object(&line).map(|record| session.format.earlier(record));
    let told = told.into_iter().flatten().find(|earlier| earlier.how == How::Compacted);
    let boundary = Boundary {
        operation: None,
        entry: None,
        turn: None,
        at: view.record(entry)?.time,
        tokens: told.as_ref().map_or((None, None), |told| told.tokens),
        trigger: told.and_then(|told| told.trigger),
        undone: false,
        summarised: gone.len() as u64,
        kept: after.iter().filter(|item| is_said(item)).count() as u64,
        model: None,
        fallback: false,
        losses,
        is_redacted: false,
    };
    Ok(Some((entry, boundary)))
}

/// Returns true for items that a compaction keeps or summarises.
fn is_said(item: &Item) -> bool {
    !item.is_summary() && item.role() != Role::System
}

/// Returns a view of the session as if it ended at `end`, with `head` as its head.
fn until<'a>(
    view: &View<'a>,
    session: &'a Stored<'a>,
    head: EntryNumber,
    end: Option<PlaceNumber>,
) -> View<'a> {
    let mut position = view.position;
    position.head = Some(head);
    position.horizon = end.map_or(position.horizon, PlaceNumber::get);
    View::new(view.store, session, position, Some(&view.kept)).gathering(&view.damages)
}

/// Returns the last entry after a summary that repeats the end of the context before it, in an agent that begins a new file.
fn said_again(
    session: &Stored<'_>,
    before: &[Item],
    view: &View<'_>,
    behind: &[EntryNumber],
) -> Result<Option<EntryNumber>, OpsError> {
    let words = |item: &Item| (item.role(), item.message().text());
    let before: Vec<(Role, String)> = before.iter().map(words).collect();
    let mut again = Vec::new();
    for &entry in behind {
        if again.len() >= before.len() {
            break;
        }
        let items = items(session, view, &[entry], &[], &StandIns::default(), None)?;
        again.extend(items.iter().map(|item| (entry, words(item))));
    }
    let most = again.len().min(before.len());
    let is_end = |n: &usize| {
        let again = again.iter().take(*n).map(|(_, words)| words);
        again.eq(before.iter().skip(before.len() - n))
    };
    let n = (1..=most).rev().find(is_end);
    Ok(n.and_then(|n| again.get(n - 1)).map(|(entry, _)| *entry))
}

/// Returns the messages of a context that are missing after a compaction. `above` has the entries before the boundary that
/// remain. A message repeated after the boundary cancels one equal message, the last one first.
fn gone<'i>(
    before: &'i [Item],
    after: &[Item],
    above: &BTreeSet<EntryNumber>,
) -> Vec<(Cow<'i, Message>, bool)> {
    let mut again: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let is_above = |item: &Item| item.entry().is_some_and(|entry| above.contains(&entry));
    for item in after.iter().filter(|item| is_said(item) && !is_above(item)) {
        *again.entry((item.role().as_str(), item.message().text())).or_default() += 1;
    }
    let mut gone = Vec::new();
    for item in before.iter().rev().filter(|item| is_said(item) && !is_above(item)) {
        let message = item.message();
        match again.get_mut(&(item.role().as_str(), message.text())) {
            Some(left) if *left > 0 => *left -= 1,
            _ => gone.push((message, item.begins_turn)),
        }
    }
    gone.reverse();
    gone
}
