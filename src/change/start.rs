//! Starting the agent in a session: the command that resumes it, and the change that waits for that.

use crate::{
    archive::{At, SyncError},
    change::reconcile::catch_up::catch_up,
    files::deletion::{is_gone, lost_base},
    model::{EntryNumber, MachineId},
    report::{Notice, Resume, Waiting},
};

/// Makes the store and the live file agree, so that the agent resumes the state that the newest command set.
pub fn settle(session: &At<'_>) -> Result<Vec<Notice>, SyncError> {
    let _lock = session.archive.lock()?;
    catch_up(&session.again()?)
}

/// Returns the command that starts a session's agent in it, if the agent would resume the session.
pub fn resume(session: &At<'_>) -> Result<Option<Resume>, SyncError> {
    let Some(live) = session.attached() else {
        return Ok(None);
    };
    // In a preview the file may exist only in the preview.
    if is_gone(&live.path) && !session.archive.is_preview {
        return Ok(None);
    }
    if lost_base(session)?.is_some() {
        return Ok(None);
    }
    if let Some(at) = session.state.position()
        && session.view(at).unresumed()?.is_some()
    {
        return Ok(None);
    }
    if is_unsaid(session)? {
        return Ok(None);
    }
    let command = session.format.resume(&session.name.id, &live.path);
    let folder = session.store.card(session.key)?.folder.map(Into::into);
    Ok(command.map(|command| Resume { folder, command }))
}

/// Returns the change that is waiting, if there is one.
pub fn waiting(session: &At<'_>) -> Result<Option<Waiting>, SyncError> {
    let Some(operation) = session.state.waiting else { return Ok(None) };
    let found = session.store.operations(session.key, operation.alone())?.pop();
    let here = session.archive.here().machine;
    let waiting = found.and_then(|found| found.facts.request).map(|request| {
        let is_own = here != MachineId::default() && request.machine == Some(here);
        Waiting { operation, request, is_own }
    });
    Ok(waiting)
}

/// Returns true if the live file has no message and the agent does not resume such a file.
pub fn is_unsaid(session: &At<'_>) -> Result<bool, SyncError> {
    let Some(at) = session.state.position().filter(|_| session.state.live.is_some()) else {
        return Ok(false);
    };
    if !session.format.traits().resumes_messages_only {
        return Ok(false);
    }
    let view = session.whole(at.generation);
    // The first message is usually near the beginning of a file, so this loop ends early.
    for entry in view.spans()?.iter().flat_map(|span| EntryNumber::each(span.entries())) {
        let record = view.as_derived(entry)?;
        if record.kind.is_conversation() && !session.format.is_of_sub_agent(&record) {
            return Ok(false);
        }
    }
    Ok(true)
}
