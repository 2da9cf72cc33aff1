//! Compactions: those that undertext made itself, which are told apart from those of an agent.

use crate::{
    model::{Command, EntryNumber, Operation, OperationNumber},
    ops::OpsError,
    session::Session,
    sync::Archive,
};

/// Returns the operations by which undertext compacted a session, in order.
pub(super) fn own(archive: &Archive, session: &Session) -> Result<Vec<Operation>, OpsError> {
    let mut operations = archive.store().operations(session.key, OperationNumber::ALL)?;
    operations.retain(|operation| matches!(operation.command, Command::Compact { .. }));
    Ok(operations)
}

/// Returns whether one of these operations, which are in order, added an entry.
pub(super) fn is_of(operations: &[Operation], entry: EntryNumber) -> bool {
    let behind = operations.partition_point(|operation| operation.first <= entry);
    let last = behind.checked_sub(1).and_then(|last| operations.get(last));
    last.is_some_and(|operation| operation.added().contains(&entry))
}
