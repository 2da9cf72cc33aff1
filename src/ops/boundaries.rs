//! Boundaries: each compaction of a session, and what its summary no longer names of the messages that it stands for.
//!
//! Those by undertext are told by their operations. Those by the agent itself are checked as they are read: the context in front
//! of a boundary is compared with the words behind it, and nothing of it is kept.
//!
//! ```text
//! in one file      u1 a1 u2 a2 | boundary summary (kept) u3     the path up to the boundary is what the summary stands for
//! in two files     u1 a1 u2 a2     boundary (kept) u3           the state that was set aside is
//! ```

use std::{borrow::Cow, collections::BTreeSet};

use crate::{
    context::{Item, loss::Check, plan::Piece},
    model::{Command, EntryNumber, Kind, Message, Operation, Role, Text},
    ops::{
        OpsError,
        compactions::{is_agents, own},
        seen::{StandIns, items},
    },
    report::Boundary,
    session::{Damages, Session, View, departures::set_aside, entry_ids, lines, replay::Replays},
    sync::Archive,
    wire::{Departure, Graph},
};

/// How far behind its boundary a summary stands at most.
const SUMMARY_WITHIN: usize = 8;

/// Returns each compaction of a session: those by its agent on the way to where the current branch stands, then those by
/// undertext.
pub fn audit_boundaries(archive: &Archive, session: &Session) -> Result<Vec<Boundary>, OpsError> {
    let undone = archive.store().state(session.key)?.undone();
    let operations = own(archive, session)?;
    let replays = Replays::of(archive.store(), session)?;
    let is_theirs =
        |entry: EntryNumber| is_agents(archive, session, &operations, replays.first(entry));
    let mut boundaries = by_agent(archive, session, &is_theirs)?;
    let mut ours = Vec::new();
    for Operation { n, at, command, .. } in operations {
        let Command::Compact { summarised, kept, model, fallback, losses, .. } = command else {
            continue;
        };
        let is_redacted = matches!(losses, Some(Text::Absent(_)));
        let losses = losses.map(|losses| losses.to_text());
        ours.push(Boundary {
            operation: Some(n),
            entry: None,
            at: Some(at),
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

/// Returns the compactions by the agent itself.
fn by_agent(
    archive: &Archive,
    session: &Session,
    is_theirs: &dyn Fn(EntryNumber) -> Result<bool, OpsError>,
) -> Result<Vec<Boundary>, OpsError> {
    let (format, damages) = (session.format, Damages::gathered());
    let mut found = Vec::new();
    let state = archive.store().state(session.key)?;
    let order = set_aside(&state, format);
    let view = |at| View::new(archive.store(), session, at, Some(&state.spans));
    let look = |at| view(at).gathering(&damages);
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
            found.extend(checked(session, &before, &next, &path, at)?);
        }
    }
    if let Some(view) = lines::view(archive.store(), session, None)? {
        let path = view.path(usize::MAX)?.entries;
        // A boundary that begins a file was found with the file before it.
        let known: BTreeSet<EntryNumber> = found.iter().map(|(entry, _)| *entry).collect();
        for at in boundaries(&view, &path, is_theirs)? {
            if path.get(at).is_none_or(|entry| known.contains(entry)) {
                continue;
            }
            let before = context(session, &view, path.get(..at).unwrap_or_default())?;
            found.extend(checked(session, &before, &view, &path, at)?);
        }
    }
    let entries = found.iter().map(|(entry, _)| *entry).collect();
    let ids = entry_ids(archive.store(), session, &entries)?;
    let named = |(entry, boundary)| Boundary { entry: ids.get(&entry).copied(), ..boundary };
    Ok(found.into_iter().map(named).collect())
}

/// Returns the places on a path of the boundaries that the agent made.
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
    session: &Session,
    view: &View<'_>,
    path: &[EntryNumber],
) -> Result<Vec<Item>, OpsError> {
    let sent = session.format.context(view, path)?;
    items(session, view, (&sent.entries, &sent.edits), &StandIns::default(), None)
}

/// Checks the summary behind the boundary at a place of a path against the context in front of it; where the agent only
/// cleared something, there is no summary.
fn checked(
    session: &Session,
    before: &[Item],
    view: &View<'_>,
    path: &[EntryNumber],
    at: usize,
) -> Result<Option<(EntryNumber, Boundary)>, OpsError> {
    let Some(&entry) = path.get(at) else { return Ok(None) };
    let near = path.get(at..path.len().min(at + SUMMARY_WITHIN)).unwrap_or_default();
    let mut said = Vec::new();
    for &entry in near {
        said.extend(items(session, view, (&[entry], &[]), &StandIns::default(), None)?);
        if said.iter().any(Item::is_summary) {
            break;
        }
    }
    let Some(end) = said.iter().rev().find(|item| item.is_summary()).and_then(Item::entry) else {
        return Ok(None);
    };
    let mut end = path.iter().position(|entry| *entry == end).unwrap_or(at);
    // What the agent keeps stands above the boundary in the file, or is said again behind the summary.
    let place = view.place(entry)?;
    let words: BTreeSet<String> = before.iter().map(|item| item.message().text()).collect();
    while let Some(&next) = path.get(end + 1) {
        let again = items(session, view, (&[next], &[]), &StandIns::default(), None)?;
        let is_again = again.iter().all(|item| words.contains(&item.message().text()));
        if !is_again && view.place(next)? >= place {
            break;
        }
        end += 1;
    }
    let after = context(session, view, path.get(..=end).unwrap_or_default())?;
    let is_said = |item: &&Item| !item.is_summary() && item.role() != Role::System;
    let kept: BTreeSet<String> =
        after.iter().filter(is_said).map(|item| item.message().text()).collect();
    let messages = before.iter().filter(is_said).map(|item| (item.message(), item.begins_turn));
    let gone: Vec<(Cow<'_, Message>, bool)> =
        messages.filter(|(message, _)| !kept.contains(&message.text())).collect();
    // It stands for the summaries before it too.
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
    // A summary that only the provider can read is not checked.
    let losses = match summary.trim() {
        "" => Vec::new(),
        summary => Check::of(summary, &pieces.iter().collect::<Vec<_>>()).losses(),
    };
    let boundary = Boundary {
        operation: None,
        entry: None,
        at: view.record(entry)?.time,
        undone: false,
        summarised: gone.len() as u64,
        kept: after.iter().filter(is_said).count() as u64,
        model: None,
        fallback: false,
        losses,
        is_redacted: false,
    };
    Ok(Some((entry, boundary)))
}
