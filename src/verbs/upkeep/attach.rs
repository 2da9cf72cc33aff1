//! Attaching: makes a file that an agent reads the live file of a session, so that changes of the session are written to it.
//!
//! Invariant: attaching and detaching never write a file.

use std::path::{Path, PathBuf};

use crate::{
    archive::{Archive, At, SyncError, Vain},
    change::{self, goal::Stay, reconcile::comeback},
    files::{
        at::Standing,
        deletion,
        live_file::{LiveFile, live_file},
        mover::{last_live, was_moved},
        siblings, sources,
        states::newest_time,
    },
    intake,
    live::is_same,
    model::{Command, FileNumber, GenerationNumber, MAIN, Step},
    report::{Attached, Done, Notice},
    session::{
        Session,
        plan::{Plan, Steps, branch_text},
    },
    verbs::OpsError,
};

/// Makes a file the live file of its session: `file`, or by default the one imported last. A file that its agent cannot resume is
/// not attached.
pub fn attach(session: &At<'_>, file: Option<&Path>) -> Result<Attached, OpsError> {
    let (mut attached, mut made) = change::execute_uncaught(session, |before| {
        let (n, path, generation) = wanted_file(before, file)?;
        let mut attached = Attached { path, attached: true, left: None, done: Done::default() };
        if before.state.live == Some(n) {
            return Ok((attached, None));
        }
        let position = before.end_of(generation)?;
        if let Some(view) = before.view(position)
            && let Some(why) = view.unresumed()?
        {
            attached.attached = false;
            attached.done.notices.push(Notice::Unresumed { why });
            return Ok((attached, None));
        }
        let mut steps =
            Steps { live: Some(Step { from: before.state.live, to: Some(n) }), ..Steps::default() };
        let old = before.state.branches.get(MAIN).copied();
        if let Some(old) = old.filter(|old| *old != position)
            && was_moved(before, MAIN)?
        {
            attached.left = Some(steps.leave(&before.state, MAIN, old));
        }
        steps.set(MAIN, Some(position));
        steps.current = (before.state.current() != MAIN).then(|| MAIN.to_owned());
        let left = attached.left.as_deref().map(branch_text);
        let command = Command::Attach { file: Some(n), left };
        Ok::<_, OpsError>((attached, Some(Plan { command, steps, goal: Stay })))
    })?;
    made.done.notices.extend(attached.done.notices);
    // An earlier notice may report the same reason.
    made.done.notices.dedup();
    attached.done = made.done;
    Ok(attached)
}

/// Returns the file to attach, with its number and its newest generation.
fn wanted_file(
    before: &Standing<'_>,
    file: Option<&Path>,
) -> Result<(FileNumber, PathBuf, GenerationNumber), SyncError> {
    let (format, state) = (before.format, &before.state);
    if let Some(live) = before.live_file().filter(|live| !live.attached) {
        return Err(SyncError::Own(live.path));
    }
    let is_wanted = |path: &Path| match file {
        Some(file) => file == path,
        None => !sources::is_set_aside(path, format) && path.is_file(),
    };
    let found = deletion::newest(state).filter_map(|(n, generation)| {
        let path = before.archive.path_of(state.file(n)?)?;
        is_wanted(&path).then_some((n, path, generation))
    });
    let found: Vec<(FileNumber, PathBuf, GenerationNumber)> = found.collect();
    let is_only = found.len() == 1;
    let session = before.session.as_ref();
    let last = session.map(|session| last_live(before.store(), session.key, state)).transpose()?;
    let mut best = None;
    for (n, path, generation) in found {
        // A copy of an older state may be anywhere, so files are compared by their newest record; a single one needs no
        // comparison.
        let view = if is_only { None } else { before.view(before.end_of(generation)?) };
        let time = view.map(|view| newest_time(&view)).transpose()?.flatten();
        let rank = (siblings::name(format, &path), last.flatten() == Some(n), time, generation);
        if best.as_ref().is_none_or(|(best, _)| *best < rank) {
            best = Some((rank, (n, path, generation)));
        }
    }
    let Some((_, (n, path, generation))) = best else {
        // The agent's own file may exist in compressed form.
        let last = last.flatten().zip(before.opened().ok());
        let put_away = last.and_then(|(n, at)| deletion::elsewhere(&at, &at.file(n)?));
        return Err(match put_away.filter(|_| file.is_none()) {
            Some(path) => SyncError::Compressed(path),
            None => SyncError::Nothing(Vain::Attach),
        });
    };
    let live = LiveFile { n, path, attached: true };
    before.writable_file(&live)?;
    let path = live.path;
    if let Some(by) = siblings::successor(format, &path) {
        return Err(SyncError::Left { path, by });
    }
    if sources::length(&path).is_ok_and(|length| length.is_none()) {
        return Err(SyncError::Compressed(path));
    }
    Ok((n, path, generation))
}

/// Refuses a file if its session continues in another file that exists. Naming such a file in a command does not make the session
/// continue in it; attaching does.
pub fn check_live(archive: &Archive, path: &Path) -> Result<(), OpsError> {
    // Importing it reports why it cannot be read.
    let Ok(path) = path.canonicalize() else { return Ok(()) };
    let held = archive.store().files(&archive.place_of(&path))?.pop();
    let name = match held {
        Some((_, name, _)) => name,
        None => match sources::identify(&path) {
            Ok((_, name)) => name,
            Err(_) => return Ok(()),
        },
    };
    let Some(session) = archive.session(&name)? else { return Ok(()) };
    let live = live_file(archive, &archive.store().state(session.key)?);
    let Some(live) =
        live.filter(|live| !is_same(&live.path, &path) && !deletion::is_gone(&live.path))
    else {
        return Ok(());
    };
    let successor = siblings::read_instead(session.format, &name.id, &live.path);
    if successor.is_some_and(|successor| is_same(&successor, &path)) {
        return Ok(());
    }
    Err(SyncError::Another { path, session: name.id, live: live.path }.into())
}

/// Imports a session file, attaches it to its session, and returns the session. Naming the file is permission to write it while
/// the archive is open.
pub fn take_up(archive: &mut Archive, path: &Path) -> Result<(Session, Attached), OpsError> {
    let path = path.canonicalize().map_err(SyncError::at(path))?;
    archive.writable.file(path.clone());
    let mut skipped = None;
    let mut notices = Vec::new();
    let paths = [path.clone()];
    intake::import(archive, &paths, &paths, &mut |step| match step {
        intake::Step::Skipped(found) if found.path == path => skipped = Some(found.why),
        intake::Step::Imported(imported) => notices.extend(imported.notices),
        // Another unreadable file of the session is no reason to refuse this one.
        intake::Step::Skipped(_) | intake::Step::Reading { .. } | intake::Step::Gone { .. } => {}
    })?;
    if let Some(why) = skipped {
        return Err(why.of(&path).into());
    }
    let holders = archive.store().files(&archive.place_of(&path))?;
    let Some((key, name, _)) = holders.into_iter().next_back() else {
        return Err(SyncError::NoFormat(path).into());
    };
    let session = Session::from_store(key, name)?;
    let mut attached = attach(&archive.at(&session)?, Some(&path))?;
    attached.done.notices.splice(0..0, notices);
    Ok((session, attached))
}

/// Detaches the agent's file from a session. The file stays as it is.
pub fn detach(session: &At<'_>) -> Result<Attached, OpsError> {
    change::exclusively(session.archive, |_| comeback::follow(session.again()?))?;
    let (path, made) = change::execute_uncaught(session, |before| {
        let live = before.attached().ok_or(SyncError::Nothing(Vain::Detach))?;
        let steps =
            Steps { live: Some(Step { from: before.state.live, to: None }), ..Steps::default() };
        let command = Command::Attach { file: None, left: None };
        Ok::<_, OpsError>((live.path, Some(Plan { command, steps, goal: Stay })))
    })?;
    Ok(Attached { path, attached: false, left: None, done: made.done })
}
