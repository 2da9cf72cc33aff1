//! Token counts, cached by line: a line is counted once, whichever session it is in.
//!
//! New counts are returned to the caller, who passes them to [`keep_counts`]. They are a cache, not facts.

use crate::{
    archive::At,
    change,
    context::tokens::{Counting, Encoding},
    json::Raw,
    model::{EntryNumber, Message},
    store::whole_lines,
    verbs::{OpsError, window::measure::kept},
};

/// Returns the exact token counts of all messages that the agent would send, by entry. Only lines without a cached count are
/// counted.
pub fn counts(
    session: &At<'_>,
    encoding: Encoding,
) -> Result<Vec<(EntryNumber, Vec<u64>)>, OpsError> {
    let Some(position) = session.state.position() else { return Ok(Vec::new()) };
    let view = session.view(position);
    let sent = view.sending()?.sent;
    let mut known = kept(session, encoding, &sent)?;
    let unknown: Vec<EntryNumber> =
        sent.iter().copied().filter(|entry| !known.contains_key(entry)).collect();
    let mut messages: Vec<(EntryNumber, Message)> = Vec::new();
    whole_lines(session.store, session.key, &unknown, &mut |entry, line| {
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
    session: &At<'_>,
    counting: Counting,
    fresh: &[(EntryNumber, Vec<u64>)],
) -> Result<(), OpsError> {
    if let Counting::Exact(encoding) = counting
        && !fresh.is_empty()
    {
        change::cache(session.archive, |writing| {
            writing.count(session.key, encoding.rule(), fresh)
        })?;
    }
    Ok(())
}
