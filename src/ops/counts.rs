//! Counts of tokens, kept by the line, so that a line is counted once, whichever session it is in.
//!
//! What was counted for the first time is returned to the caller, who has [`keep_counts`] put it into the store: that is a
//! cache and no fact.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    context::{
        self, Item,
        tokens::{Counting, Encoding},
    },
    json::Raw,
    model::Message,
    ops::OpsError,
    session::{self, Session, View},
    sync::{self, Archive},
};

/// Returns the exact tokens of the messages of every entry that the agent would send, each line counted once ever: what is
/// kept is read, and only lines that have no count are.
pub fn counts(
    archive: &Archive,
    session: &Session,
    encoding: Encoding,
) -> Result<Vec<(u64, Vec<u64>)>, OpsError> {
    let tip = archive.store().state(session.key)?;
    let Some(position) = tip.position() else { return Ok(Vec::new()) };
    let view = View::new(archive.store(), session, position, tip.growth().cloned());
    let sent = session.format.context(&view, &view.path(usize::MAX)?.entries)?;
    let mut known = kept(archive, session, encoding, &sent)?;
    let unknown: Vec<u64> =
        sent.iter().copied().filter(|entry| !known.contains_key(entry)).collect();
    let mut messages: Vec<(u64, Message)> = Vec::new();
    archive.store().lines(session.key, &unknown, &mut |entry, line| {
        let record = Raw::object(&line);
        let said = record.map(|record| session.format.messages(record)).unwrap_or_default();
        messages.extend(said.into_iter().map(|message| (entry, message)));
    })?;
    let refs: Vec<&Message> = messages.iter().map(|(_, message)| message).collect();
    let counted = Counting::Exact(encoding).messages(&refs);
    for ((entry, _), tokens) in messages.iter().zip(counted) {
        known.entry(*entry).or_default().push(tokens);
    }
    Ok(sent.into_iter().filter_map(|entry| Some((entry, known.remove(&entry)?))).collect())
}

/// Keeps what was counted for the first time, so that it is not counted again.
pub fn keep_counts(
    archive: &mut Archive,
    session: &Session,
    counting: Counting,
    fresh: &[(u64, Vec<u64>)],
) -> Result<(), OpsError> {
    if let Counting::Exact(encoding) = counting
        && !fresh.is_empty()
    {
        sync::cache(archive, |writing| writing.count(session.key, encoding.rule(), fresh))?;
    }
    Ok(())
}

/// Counts items, each line once ever, and returns what was counted for the first time.
pub(super) fn count(
    archive: &Archive,
    session: &Session,
    items: &mut [Item],
    counting: Counting,
) -> Result<Vec<(u64, Vec<u64>)>, OpsError> {
    let Counting::Exact(encoding) = counting else {
        context::count(items, counting);
        return Ok(Vec::new());
    };
    let entries: Vec<u64> = items.iter().filter_map(Item::entry).collect();
    let known = kept(archive, session, encoding, &entries)?;
    let of_one_entry = |one: &Item, other: &Item| one.entry() == other.entry();
    for group in items.chunk_by_mut(of_one_entry) {
        let counts = group.first().and_then(Item::entry).and_then(|entry| known.get(&entry));
        if let Some(counts) = counts.filter(|counts| counts.len() == group.len()) {
            for (item, &tokens) in group.iter_mut().zip(counts) {
                item.tokens = Some(tokens);
            }
        }
    }
    let is_new: Vec<bool> = items.iter().map(|item| item.tokens.is_none()).collect();
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

/// Returns the counts that are kept of entries.
fn kept(
    archive: &Archive,
    session: &Session,
    encoding: Encoding,
    entries: &[u64],
) -> Result<BTreeMap<u64, Vec<u64>>, OpsError> {
    /// So few entries between are read along: a question costs more than they do.
    const NEAR: u64 = 64;
    let mut kept = BTreeMap::new();
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for range in session::ranges(entries) {
        match ranges.last_mut() {
            Some(last) if (last.end..last.end + NEAR).contains(&range.start) => {
                last.end = range.end;
            }
            _ => ranges.push(range),
        }
    }
    for range in ranges {
        kept.extend(archive.store().counts(session.key, range, encoding.rule())?);
    }
    Ok(kept)
}
