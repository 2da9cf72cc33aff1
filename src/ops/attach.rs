//! Attaching: the file that an agent reads becomes a session's live file, so that what changes the session writes it.
//!
//! Invariant: attaching and detaching write no file.

use std::path::Path;

use crate::{
    model::{Command, Position, Run},
    ops::{OpsError, Step, import},
    report::Attached,
    session::Session,
    sync::{
        self, Archive, SyncError, beside, change::MAIN, live_file::LiveFile, moved::was_moved,
        sources,
    },
};

/// Makes a file of a session its live file: this one, or the one that was taken in last.
pub fn attach(
    archive: &mut Archive,
    session: &Session,
    file: Option<&Path>,
) -> Result<Attached, OpsError> {
    let mut change = sync::begin_to_attach(archive, session)?;
    if let Some(live) = change.live_file().filter(|live| !live.attached) {
        return Err(SyncError::Unsupported(format!(
            "the live file of this session is the store's own, {}",
            live.path.display()
        ))
        .into());
    }
    let is_wanted = |path: &Path| match file {
        Some(file) => file == path,
        None => sources::rotation(path, session.format).is_none() && path.is_file(),
    };
    let tip = &change.tip;
    let generations = tip.generations.iter();
    let found = generations
        .filter_map(|(_, generation)| {
            let n = generation.file?;
            let path = change.archive.path_of(tip.file(n)?)?;
            is_wanted(&path).then_some((n, path, generation.n))
        })
        .max_by_key(|(_, path, generation)| (beside::name(session.format, path), *generation));
    let Some((n, path, generation)) = found else {
        return Err(SyncError::Nothing("attach: no file of the session is there").into());
    };
    let live = LiveFile { n, path, attached: true };
    change.writable_file(&live)?;
    let path = live.path;
    if let Some(by) = beside::successor(session.format, &path) {
        return Err(SyncError::Left { path, by }.into());
    }
    if sources::length(&path).is_ok_and(|length| length.is_none()) {
        return Err(SyncError::Unsupported(format!("{} is compressed", path.display())).into());
    }
    let mut attached =
        Attached { operation: None, path, left: None, notices: change.notices.clone() };
    if change.tip.live == Some(n) {
        return Ok(attached);
    }
    let runs = change.archive.store().runs(session.key, generation, 0)?;
    let horizon = runs.last().map_or(0, Run::end);
    let mut position = Position { generation, head: None, horizon };
    position.head = session.format.head(&change.look(position))?;
    let old = change.branch(MAIN);
    if old != Some(position) && was_moved(&change, MAIN)? {
        let name = change.left_name(MAIN);
        change.set_branch(&name, old);
        attached.left = Some(name);
    }
    change.set_branch(MAIN, Some(position));
    if change.tip.current() != MAIN {
        change.set_current(MAIN);
    }
    change.set_live(Some(n));
    let left = attached.left.as_ref().map(|left| change.branch_text(left));
    let outcome = sync::commit(change, Command::Attach { file: Some(n), left })?;
    (attached.operation, attached.notices) = (Some(outcome.operation), outcome.notices);
    Ok(attached)
}

/// Takes in a session file, makes it the live file of its session, and returns that session. Who names the file points at it:
/// it may be written while the archive is open.
pub fn take_up(archive: &mut Archive, path: &Path) -> Result<(Session, Attached), OpsError> {
    let io = |source| SyncError::Io { path: path.to_owned(), source };
    let path = path.canonicalize().map_err(io)?;
    archive.writable.file(path.clone());
    let mut skipped = None;
    let mut notices = Vec::new();
    let paths = [path.clone()];
    import(archive, &paths, &paths, &mut |step| match step {
        Step::Skipped(found) => skipped = Some(found.why),
        Step::Imported(imported) => notices.extend(imported.notices),
        Step::Reading { .. } => {}
    })?;
    if let Some(why) = skipped {
        return Err(why.of(&path).into());
    }
    let holders = archive.store().files(&archive.place_of(&path))?;
    let Some((key, name, _)) = holders.into_iter().next_back() else {
        return Err(SyncError::NoFormat(path).into());
    };
    let session = Session::known(key, name)?;
    let mut attached = attach(archive, &session, Some(&path))?;
    attached.notices.splice(0..0, notices);
    Ok((session, attached))
}

/// Lets a session go on without the agent's file, which stays as it is.
pub fn detach(archive: &mut Archive, session: &Session) -> Result<Attached, OpsError> {
    let mut change = sync::begin_to_attach(archive, session)?;
    let Some(live) = change.live_file().filter(|live| live.attached) else {
        return Err(SyncError::Nothing("detach").into());
    };
    change.set_live(None);
    let outcome = sync::commit(change, Command::Attach { file: None, left: None })?;
    Ok(Attached {
        operation: Some(outcome.operation),
        path: live.path,
        left: None,
        notices: outcome.notices,
    })
}
