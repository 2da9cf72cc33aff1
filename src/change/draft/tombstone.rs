//! Redacted lines that are read again, for example from an older copy of a file. They are recognised by their ids.

use crate::{
    archive::SyncError,
    change::draft::Change,
    json::Raw,
    model::{EntryNumber, Tombstone},
    session::Growth,
    store::{Came, NewLine, whole_lines},
    wire::Envelope,
};

/// Ends a growth with the bytes after its last line. If those were redacted, they are not stored; they are read again once
/// they are a complete line.
pub(crate) fn end(change: &Change<'_>, growth: &mut Growth, tail: Vec<u8>) {
    let is_held = tail.is_empty() || !change.before.state.has_taken_out(&tail);
    growth.end(if is_held { tail } else { Vec::new() });
}

/// Replaces a new line that was redacted before with its redacted form.
pub(crate) fn cover_again(
    change: &mut Change<'_>,
    n: EntryNumber,
    line: &mut NewLine,
    envelope: &mut Envelope,
) -> Result<(), SyncError> {
    let (store, came) = (change.before.store(), line.id());
    let Some(Came { session, entry, rule }) = store.buried(came)? else { return Ok(()) };
    let mut bytes = Vec::new();
    whole_lines(store, session, &[entry], &mut |_, line| bytes = line)?;
    let record = Raw::object(&bytes);
    *envelope = record.map_or_else(Envelope::opaque, |it| change.before.format.envelope(it));
    let size = bytes.len() as u64;
    line.cover(bytes);
    let (line, covered) = (Some(came), Some(line.id()));
    change.facts.tombstones.push(Tombstone { entry: n, size, line, covered, rule });
    change.redacted += 1;
    Ok(())
}
