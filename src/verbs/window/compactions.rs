//! Compactions: those that undertext made itself are distinguished from those of an agent, and from the records by which it said a
//! whole context again, as a truncation does: nothing is summarised by these.

use std::{collections::BTreeSet, ops::Range};

use crate::{
    archive::Archive,
    json::Raw,
    model::{Command, EntryNumber, Landmark, Operation, OperationNumber},
    session::{Session, added_by},
    store::{Store, StoreError, whole_lines},
    verbs::OpsError,
};

/// Returns the operations by which undertext compacted a session, or went elsewhere in it, in order.
pub(crate) fn own(archive: &Archive, session: &Session) -> Result<Vec<Operation>, OpsError> {
    let mut operations = archive.store().operations(session.key, OperationNumber::ALL)?;
    let is_own =
        |command: &Command| matches!(command, Command::Compact { .. }) || command.goes_elsewhere();
    operations.retain(|operation| is_own(&operation.command));
    Ok(operations)
}

/// Returns the one of these operations, which are in order, that added an entry.
pub(crate) fn of(operations: &[Operation], entry: EntryNumber) -> Option<&Operation> {
    let behind = operations.partition_point(|operation| operation.first <= entry);
    let last = behind.checked_sub(1).and_then(|last| operations.get(last));
    last.filter(|operation| operation.added().contains(&entry))
}

/// Returns whether an agent made a boundary, given the session's own operations: also one that undertext has said again since.
pub(crate) fn is_agents(
    archive: &Archive,
    session: &Session,
    own: &[Operation],
    boundary: EntryNumber,
) -> Result<bool, OpsError> {
    let Some(by) = of(own, boundary) else { return Ok(true) };
    if !by.command.goes_elsewhere() {
        return Ok(false);
    }
    let said = |entry: EntryNumber| -> Result<Vec<u8>, OpsError> {
        let mut said = Vec::new();
        whole_lines(archive.store(), session.key, &[entry], &mut |_, line| {
            let part = Raw::object(&line).and_then(|record| session.format.copied_part(record));
            said = part.map_or(line.as_slice(), Raw::bytes).to_vec();
        })?;
        Ok(said)
    };
    let again = said(boundary)?;
    for earlier in boundaries(archive.store(), session, EntryNumber::FIRST..boundary) {
        let earlier = earlier?;
        if of(own, earlier).is_none() && said(earlier)? == again {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the boundaries from an entry on by which undertext only said a whole context again.
pub(crate) fn said_again(
    store: &dyn Store,
    session: &Session,
    first: EntryNumber,
) -> Result<BTreeSet<EntryNumber>, StoreError> {
    let mut again = BTreeSet::new();
    // Where a file can be set aside, the state is written in its place.
    if session.format.traits().is_rotatable {
        return Ok(again);
    }
    for boundary in boundaries(store, session, first..EntryNumber::ALL.end) {
        let boundary = boundary?;
        if is_said_again(store, session, boundary)? {
            again.insert(boundary);
        }
    }
    Ok(again)
}

/// Returns whether undertext only said a whole context again by a boundary.
pub(crate) fn is_said_again(
    store: &dyn Store,
    session: &Session,
    boundary: EntryNumber,
) -> Result<bool, StoreError> {
    if session.format.traits().is_rotatable {
        return Ok(false);
    }
    let state = store.state(session.key)?;
    Ok(added_by(store, session, &state, boundary)?.is_some_and(|by| by.command.goes_elsewhere()))
}

/// Returns the boundaries among these entries, the newest first.
pub(crate) fn boundaries<'s>(
    store: &'s dyn Store,
    session: &'s Session,
    mut among: Range<EntryNumber>,
) -> impl Iterator<Item = Result<EntryNumber, StoreError>> + 's {
    std::iter::from_fn(move || {
        let found = store.landmark(session.key, Landmark::Boundary, among.clone()).transpose()?;
        // An error ends them.
        among.end = *found.as_ref().unwrap_or(&among.start);
        Some(found)
    })
}
