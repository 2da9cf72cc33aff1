//! Tells apart the boundaries of a session: compactions by undertext, compactions by an agent, and records with which undertext
//! repeated a whole context, as a truncation does, without summarising anything.

use std::{collections::BTreeSet, ops::Range};

use crate::{
    archive::At,
    json::Raw,
    model::{Command, EntryNumber, Landmark, Operation, OperationNumber},
    session::Stored,
    store::{StoreError, whole_lines},
    verbs::OpsError,
};

/// Returns the operations with which undertext compacted or moved a session, in order.
pub(crate) fn own(session: &At<'_>) -> Result<Vec<Operation>, OpsError> {
    let mut operations = session.store.operations(session.key, OperationNumber::ALL)?;
    let is_own =
        |command: &Command| matches!(command, Command::Compact { .. }) || command.goes_elsewhere();
    operations.retain(|operation| is_own(&operation.command));
    Ok(operations)
}

/// Returns the operation that added an entry. The operations must be in order.
pub(crate) fn of(operations: &[Operation], entry: EntryNumber) -> Option<&Operation> {
    let behind = operations.partition_point(|operation| operation.first <= entry);
    let last = behind.checked_sub(1).and_then(|last| operations.get(last));
    last.filter(|operation| operation.added().contains(&entry))
}

/// Returns true if an agent made a boundary, even if undertext has repeated it since. `own` has the session's operations.
pub(crate) fn is_agents(
    session: &At<'_>,
    own: &[Operation],
    boundary: EntryNumber,
) -> Result<bool, OpsError> {
    let Some(by) = of(own, boundary) else { return Ok(true) };
    if !by.command.goes_elsewhere() {
        return Ok(false);
    }
    let said = |entry: EntryNumber| -> Result<Vec<u8>, OpsError> {
        let mut said = Vec::new();
        whole_lines(session.store, session.key, &[entry], &mut |_, line| {
            let part = Raw::object(&line).and_then(|record| session.format.copied_part(record));
            said = part.map_or(line.as_slice(), Raw::bytes).to_vec();
        })?;
        Ok(said)
    };
    let again = said(boundary)?;
    for earlier in boundaries(session, EntryNumber::FIRST..boundary) {
        let earlier = earlier?;
        if of(own, earlier).is_none() && said(earlier)? == again {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the boundaries from an entry on with which undertext only repeated a context.
pub(crate) fn said_again(
    session: &Stored<'_>,
    first: EntryNumber,
) -> Result<BTreeSet<EntryNumber>, StoreError> {
    let mut again = BTreeSet::new();
    // Formats whose files can be set aside never need such records.
    if session.format.traits().is_rotatable {
        return Ok(again);
    }
    for boundary in boundaries(session, first..EntryNumber::ALL.end) {
        let boundary = boundary?;
        if is_said_again(session, boundary)? {
            again.insert(boundary);
        }
    }
    Ok(again)
}

/// Returns true if a boundary is a context that undertext only repeated.
pub(crate) fn is_said_again(
    session: &Stored<'_>,
    boundary: EntryNumber,
) -> Result<bool, StoreError> {
    if session.format.traits().is_rotatable {
        return Ok(false);
    }
    Ok(session.added_by(boundary)?.is_some_and(|by| by.command.goes_elsewhere()))
}

/// Returns the boundaries among these entries, newest first.
pub(crate) fn boundaries<'s>(
    session: &'s Stored<'s>,
    mut among: Range<EntryNumber>,
) -> impl Iterator<Item = Result<EntryNumber, StoreError>> + 's {
    std::iter::from_fn(move || {
        let found =
            session.store.landmark(session.key, Landmark::Boundary, among.clone()).transpose()?;
        // After an error the range is empty.
        among.end = *found.as_ref().unwrap_or(&among.start);
        Some(found)
    })
}
