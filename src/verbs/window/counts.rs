//! Token counts, cached by line: a line is counted once, whichever session it is in.
//!
//! New counts are returned to the caller, who passes them to [`keep_counts`]. They are a cache, not facts.

use crate::{
    archive::Archive,
    change,
    context::tokens::{Counting, Encoding},
    json::Raw,
    model::{EntryNumber, Message},
    session::{Session, View},
    store::whole_lines,
    verbs::{OpsError, window::measure::kept},
};

/// Returns the exact token counts of all messages that the agent would send, by entry. Only lines without a cached count are
/// counted.
pub fn counts(
    archive: &Archive,
    session: &Session,
    encoding: Encoding,
) -> Result<Vec<(EntryNumber, Vec<u64>)>, OpsError> {
    let tip = archive.store().state(session.key)?;
    let Some(position) = tip.position() else { return Ok(Vec::new()) };
    let view = View::new(archive.store(), session, position, Some(&tip.spans));
    let sent = view.sending()?.sent;
    let mut known = kept(archive, session, encoding, &sent)?;
    let unknown: Vec<EntryNumber> =
        sent.iter().copied().filter(|entry| !known.contains_key(entry)).collect();
    let mut messages: Vec<(EntryNumber, Message)> = Vec::new();
    whole_lines(archive.store(), session.key, &unknown, &mut |entry, line| {
        let record = Raw::object(&line);
        let said = record.map(|record| session.format.sent(record, &[])).unwrap_or_default();
        messages.extend(said.into_iter().map(|message| (entry, message)));
    })?;
    let refs: Vec<&Message> = messages.iter().map(|(_, message)| message).collect();
    let counted = Counting::Exact(encoding).messages(&refs);
    for ((entry, _), tokens) in messages.iter().zip(counted) {
        known.entry(*entry).or_default().push(tokens);
    }
    Ok(sent.into_iter().filter_map(|entry| Some((entry, known.remove(&entry)?))).collect())
}

/// Caches new counts, so that these lines are not counted again.
pub fn keep_counts(
    archive: &mut Archive,
    session: &Session,
    counting: Counting,
    fresh: &[(EntryNumber, Vec<u64>)],
) -> Result<(), OpsError> {
    if let Counting::Exact(encoding) = counting
        && !fresh.is_empty()
    {
        change::cache(archive, |writing| writing.count(session.key, encoding.rule(), fresh))?;
    }
    Ok(())
}
