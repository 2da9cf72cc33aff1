//! Recovers lost operations from the store's own live files.
//!
//! A live file is ahead of its store if it has the stamp of a later operation or a different length than expected. The session
//! then continues from the file, and its previous state is kept as a branch. A live file without a session becomes a session.
//! Agents' files are not handled here: their new lines are imported as usual.
//!
//! Invariant: no byte of a live file is changed, because nothing else has the lost operations.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    archive::{Archive, SyncError},
    change::draft::Writing,
    change::{draft::Change, reconcile::catch_up::is_left_out},
    disk,
    files::{
        file::is_subsequence,
        live_file::{self, expected},
        sources,
    },
    live,
    model::{Command, EntryNumber, FileNumber, MAIN, Position, State, TRANSCRIPTS},
    report::TakenBack,
    session::{Session, plan::branch_text},
    store::{Loss, StoreError},
};

/// Imports what the store's own live files have of operations that the store lost.
///
/// A session for which this fails does not stop the others; it is returned with the reason.
pub(crate) fn take_back(archive: &Archive) -> Result<(Vec<TakenBack>, Vec<Loss>), SyncError> {
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    let _lock = archive.lock()?;
    for session in archive.every()? {
        match take_back_one(archive, &session) {
            Ok(one) => taken.extend(one),
            Err(error) if is_of_machine(&error) => return Err(error),
            Err(error) => left.push(Loss {
                session: Some(session.name.clone()),
                item: format!("what the session's file may have beyond the store: {error}"),
            }),
        }
    }
    for path in strays(archive)? {
        match begin(archive, &path) {
            Ok(one) => taken.extend(one),
            Err(error) if is_of_machine(&error) => return Err(error),
            Err(error) => {
                let item = format!("the content of {}: {error}", path.display());
                left.push(Loss { session: None, item });
            }
        }
    }
    Ok((taken, left))
}

/// Returns true if the error would also stop every other session.
fn is_of_machine(error: &SyncError) -> bool {
    matches!(error, SyncError::Store(StoreError::Io { .. } | StoreError::Full | StoreError::Busy))
}

fn take_back_one(archive: &Archive, session: &Session) -> Result<Option<TakenBack>, SyncError> {
    let session = archive.at(session)?;
    let tip = &session.state;
    let live = session.live_file().filter(|live| !live.attached);
    let Some(live) = live.filter(|live| !is_left_out(&session, live)) else {
        return Ok(None);
    };
    let seen = live::look(&live.path).ok().flatten();
    if seen.is_none_or(|seen| !live_file::is_ahead(&seen, tip) && seen.length == expected(tip)) {
        return Ok(None);
    }
    follow(&mut Change::bare(&session)?, &live.path, live.n).map(Some)
}

/// Returns the store's own live files that belong to no session.
pub(crate) fn strays(archive: &Archive) -> Result<Vec<PathBuf>, SyncError> {
    let mut strays = Vec::new();
    for path in transcripts(archive)? {
        if archive.store.files(&archive.place_in(&path))?.is_empty() {
            strays.push(path);
        }
    }
    Ok(strays)
}

/// Returns all of the store's own live files.
fn transcripts(archive: &Archive) -> Result<Vec<PathBuf>, SyncError> {
    let Some(folder) = archive.root().map(|root| root.join(TRANSCRIPTS)) else {
        return Ok(Vec::new());
    };
    let io = SyncError::at(&folder);
    let mut paths = Vec::new();
    for entry in disk::found(fs::read_dir(&folder)).map_err(io)?.into_iter().flatten() {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|end| end == "jsonl") && !live::is_aside(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Moves a session to the state of its live file.
fn follow(change: &mut Change<'_>, path: &Path, file: FileNumber) -> Result<TakenBack, SyncError> {
    let first = change.before.state.next_entry();
    let position = change.before.position();
    let view = position.and_then(|position| change.before.view(position));
    // If it is damaged, keep it as a branch.
    let held = view.map_or(Some(Vec::new()), |view| view.sequence().ok());
    let (taken, found) = read(change, path, file)?;
    let goes_on = held.is_some_and(|held| is_subsequence(&held, &found));
    let branch = change.before.state.current().to_owned();
    for aside in asides(path, &change.before.state).map_err(SyncError::at(path))? {
        let below = change.before.archive.place_in(&aside);
        let file = change.file(below);
        let (taken, _) = read(change, &aside, file)?;
        change.leave(&branch, Some(taken));
    }
    let left = position.filter(|_| !goes_on).map(|at| change.leave(&branch, Some(at)));
    change.set_branch(&branch, Some(taken));
    let entries = change.next_entry().since(first);
    let kept = left.as_deref().map(branch_text);
    let (outcome, _) = change.commit(Command::CatchUp { entries, branch: None, left: kept })?;
    let session = change.before.name.id.clone();
    Ok(TakenBack { session, path: path.to_owned(), entries, operation: outcome.operation, left })
}

/// Reads a file as a new generation. Returns the position at its end and its entries in order.
fn read(
    change: &mut Change<'_>,
    path: &Path,
    file: FileNumber,
) -> Result<(Position, Vec<EntryNumber>), SyncError> {
    let mut growth = change.generation(Some(file));
    change.read(&mut growth, sources::open(path, 0).map_err(SyncError::at(path))?)?;
    let taken = change.end_of(&growth)?;
    let found = growth.sequence();
    change.grown(growth);
    Ok((taken, found))
}

/// Returns the files set aside next to one of the store's own live files that the store does not know about.
fn asides(live: &Path, tip: &State) -> io::Result<Vec<PathBuf>> {
    let (Some(folder), Some(name)) = (live.parent(), live.file_name()) else {
        return Ok(Vec::new());
    };
    if folder.file_name() != Some(OsStr::new(TRANSCRIPTS)) {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_known = |known: &[u8]| path.file_name().is_some_and(|name| name.as_bytes() == known);
        let is_of = path.file_stem() == Some(name);
        if is_of
            && live::is_aside(&path)
            && !tip.rotations.iter().any(|(_, by)| is_known(&by.aside))
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Creates a session for a live file that has none.
fn begin(archive: &Archive, path: &Path) -> Result<Option<TakenBack>, SyncError> {
    let Ok((format, name)) = sources::identify(path) else { return Ok(None) };
    let place = archive.place_in(path);
    let mut change = match archive.session(&name)? {
        Some(session) => Change::bare(&archive.at(&session)?)?,
        None => Change::first(archive, name, format, Writing::alone(archive)?),
    };
    let file = change.file(place);
    if change.before.state.position().is_none() {
        change.set_current(MAIN);
    }
    change.set_live(Some(file));
    follow(&mut change, path, file).map(Some)
}
