//! The change of a session that waits until the session is resumed.

use crate::{
    model::MachineId,
    report::Waiting,
    session::Session,
    sync::{Archive, SyncError},
};

/// Returns the change that waits, if one does.
pub fn waiting(archive: &Archive, session: &Session) -> Result<Option<Waiting>, SyncError> {
    let store = archive.store();
    let Some(operation) = store.state(session.key)?.waiting else { return Ok(None) };
    let found = store.operations(session.key, operation.alone())?.pop();
    let here = archive.here().machine;
    let waiting = found.and_then(|found| found.facts.request).map(|request| {
        let is_own = here != MachineId::default() && request.machine == Some(here);
        Waiting { operation, request, is_own }
    });
    Ok(waiting)
}
