//! Taking back: a store that has forgotten operations takes in what its live files still hold of them.
//!
//! A live file is ahead of its store if it was stamped with a later operation, or holds what the store does not know. For each
//! operation that may be one of the session's, one that says `lost` takes its number, and a checkpoint that leads nowhere
//! takes one of its numbers, so that no number that a person may have noted is given again. Then the session goes on where
//! the live file is; where the store was before stays as a branch. A live file without a session becomes one. Where a
//! session has a hole in the middle, since an operation there is lost, the live file may still hold what belongs into it.
//!
//! ```text
//! an agent's file that has only grown    no more operations than new lines: each of those that may be lost took in one or wrote one
//! any other                              as many as the store has forgotten
//! ```
//!
//! A witness may claim any number, so there is a limit to both.
//!
//! Invariant: no byte of a live file is changed: nothing else holds the lost operations.

use std::{
    ffi::OsStr,
    fs,
    io::{self, ErrorKind},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    live,
    model::{
        Command, Entry, EntryNumber, FileNumber, Kind, MAIN, Position, Run, SessionName, State,
        TRANSCRIPTS,
    },
    report::TakenBack,
    session::{
        Session, View,
        plan::{Steps, branch_text},
    },
    store::StoreError,
    sync::{
        Archive, SyncError,
        catch_up::is_left_out,
        change::Change,
        file::is_subsequence,
        held::judged,
        judge::Verdict,
        live_file::{self, expected, live_file},
        sources,
        together::Together,
    },
    wire::{Format, jsonl::Reader},
};

/// What could not be taken back: of which session, and why.
pub(crate) type Left = (Option<SessionName>, String);

/// How many operations a session may have lost.
const MOST: u64 = 1000;

/// Takes in what live files hold of the operations that a store has forgotten; its witness says that there are at most this
/// many. One that the witness does not know of shows by a stamp alone.
///
/// Sessions of which this fails keep no other from it; they are returned with the reason.
pub(crate) fn take_back(
    archive: &Archive,
    forgotten: u64,
) -> Result<(Vec<TakenBack>, Vec<Left>), SyncError> {
    let (mut taken, mut left) = (Vec::new(), Vec::new());
    let lost = forgotten.clamp(1, MOST);
    let _lock = archive.lock()?;
    for session in archive.every()? {
        match take_back_one(archive, &session, forgotten, lost) {
            Ok(one) => taken.extend(one),
            Err(error) if is_of_machine(&error) => return Err(error),
            Err(error) => left.push((
                Some(session.name.clone()),
                format!("what the session's file may have beyond the store: {error}"),
            )),
        }
    }
    for path in strays(archive)? {
        match begin(archive, &path, lost) {
            Ok(one) => taken.extend(one),
            Err(error) if is_of_machine(&error) => return Err(error),
            Err(error) => left.push((None, format!("the content of {}: {error}", path.display()))),
        }
    }
    Ok((taken, left))
}

/// Returns whether the next session would fail as well.
fn is_of_machine(error: &SyncError) -> bool {
    matches!(error, SyncError::Store(StoreError::Io { .. } | StoreError::Full | StoreError::Busy))
}

fn take_back_one(
    archive: &Archive,
    session: &Session,
    forgotten: u64,
    lost: u64,
) -> Result<Option<TakenBack>, SyncError> {
    let tip = archive.store.state(session.key)?;
    if tip.position().is_none() {
        stand(archive, session, &tip)?;
    }
    let tip = archive.store.state(session.key)?;
    let has_hole = has_hole(archive, session)?;
    let live = live_file(archive, &tip).filter(|live| match live::look(&live.path) {
        Ok(Some(seen)) => {
            let is_ahead = !live.attached && live_file::is_ahead(&seen, &tip);
            has_hole || is_ahead || forgotten > 0 && seen.length != expected(&tip)
        }
        _ => false,
    });
    let Some(live) = live.filter(|live| !is_left_out(archive, session, live)) else {
        return Ok(None);
    };
    let held = Held::of(&live.path, session.format)?;
    // An operation that made a hole has its place already.
    let lost = if has_hole && forgotten == 0 { 0 } else { lost };
    let lost = match tip.position().filter(|_| live.attached) {
        Some(at) => {
            let state = (at.generation, tip.growth());
            match judged(archive, session, state, &live.path) {
                Ok(Verdict::Grown) => {
                    let known = tip.growth().map_or(0, Run::end);
                    lost.min(held.lines.saturating_sub(known))
                }
                _ => lost,
            }
        }
        None => lost,
    };
    lose(archive, &session.name, session.format, (lost, held.turns))?;
    let mut change = Change::bare(archive, session)?;
    follow(&mut change, &live.path, live.n).map(Some)
}

/// Returns whether entries are lost of the state of the file in which a session is: behind some that are known, or before.
pub(crate) fn has_hole(archive: &Archive, session: &Session) -> Result<bool, SyncError> {
    let (store, key) = (&archive.store, session.key);
    let Some(position) = store.state(key)?.position() else { return Ok(false) };
    let mut place = 0;
    for run in store.runs(key, position.generation, 0)? {
        let is_lost = |entry: &Entry| key.has_lost(entry);
        if run.start != place || store.entries(key, run.entries())?.iter().any(is_lost) {
            return Ok(true);
        }
        place = run.end();
    }
    Ok(false)
}

/// Returns the live files below the store's folder that no session has.
pub(crate) fn strays(archive: &Archive) -> Result<Vec<PathBuf>, SyncError> {
    let mut strays = Vec::new();
    for path in transcripts(archive)? {
        if archive.store.files(&archive.place_in(&path))?.is_empty() {
            strays.push(path);
        }
    }
    Ok(strays)
}

/// Returns the store's own live files, those that have a session or not.
fn transcripts(archive: &Archive) -> Result<Vec<PathBuf>, SyncError> {
    let Some(folder) = archive.root().map(|root| root.join(TRANSCRIPTS)) else {
        return Ok(Vec::new());
    };
    let io = SyncError::at(&folder);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(io)?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|end| end == "jsonl") && !live::is_aside(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// What a file holds.
#[derive(Default)]
struct Held {
    lines: u64,
    /// How many of them are turns of the user.
    turns: u64,
}

impl Held {
    fn of(path: &Path, format: &dyn Format) -> Result<Self, SyncError> {
        let mut reader = Reader::new(sources::open(path, 0).map_err(SyncError::at(path))?);
        let mut held = Self::default();
        while let Some(located) = reader.next_line()? {
            let kind = located.line.record().map(|record| format.envelope(record).kind);
            held.lines += 1;
            held.turns += u64::from(kind == Some(Kind::User));
        }
        Ok(held)
    }
}

/// Takes the numbers of lost operations of a session, each of which may have given a checkpoint; the last one, one for each turn.
/// They become durable together.
fn lose(
    archive: &Archive,
    name: &SessionName,
    format: &'static dyn Format,
    (operations, turns): (u64, u64),
) -> Result<(), SyncError> {
    let mut together = Together::new(archive);
    together.open()?;
    let mut change = match archive.session(name)? {
        Some(session) => Change::also(archive, &session, &mut together)?,
        None => Change::among(archive, name.clone(), format, &mut together),
    };
    let given = change.before.state.checkpoints;
    for n in 1..=operations {
        let last = if n == operations { turns.saturating_sub(given) } else { 0 };
        for _ in 0..=last {
            let checkpoint = Some((Position::default(), None));
            change.step(Steps { checkpoint, ..Steps::default() });
        }
        change.part(Command::Lost {})?;
    }
    drop(change);
    Ok(together.end()?)
}

/// Lets a session whose branches are lost stand at the end of its newest generation.
fn stand(archive: &Archive, session: &Session, tip: &State) -> Result<(), SyncError> {
    let Some(end) = tip.ends.values().next_back() else { return Ok(()) };
    let mut change = Change::bare(archive, session)?;
    let growth = change.growth(end.generation)?;
    let head = change.head(&growth)?;
    let position = Position { generation: end.generation, head, horizon: growth.entries };
    change.set_branch(MAIN, Some(position));
    change.set_current(MAIN);
    change.commit(Command::CatchUp { entries: 0, branch: None, left: None })?;
    Ok(())
}

/// Lets a session stand where its live file is.
fn follow(change: &mut Change<'_>, path: &Path, file: FileNumber) -> Result<TakenBack, SyncError> {
    let first = change.before.state.next_entry();
    let position = change.position();
    let held = match (&change.before.session, position) {
        (Some(session), Some(position)) => {
            let spans = Some(&change.before.state.spans);
            // One that is damaged stays as a branch.
            View::new(change.before.store(), session, position, spans).sequence().ok()
        }
        _ => Some(Vec::new()),
    };
    let (taken, found) = read(change, path, file)?;
    let goes_on = held.is_some_and(|held| is_subsequence(&held, &found));
    let branch = change.before.state.current().to_owned();
    for aside in asides(path, &change.before.state).map_err(SyncError::at(path))? {
        let below = change.before.archive.place_in(&aside);
        let file = change.file(below);
        let (taken, _) = read(change, &aside, file)?;
        let left = change.left_name(&branch);
        change.set_branch(&left, Some(taken));
    }
    let left = position.filter(|_| !goes_on).map(|position| {
        let left = change.left_name(&branch);
        change.set_branch(&left, Some(position));
        left
    });
    change.set_branch(&branch, Some(taken));
    let entries = change.next_entry().since(first);
    let kept = left.as_deref().map(branch_text);
    let (outcome, _) = change.commit(Command::CatchUp { entries, branch: None, left: kept })?;
    let session = change.before.name.id.clone();
    Ok(TakenBack { session, path: path.to_owned(), entries, operation: outcome.operation, left })
}

/// Reads a file as a new generation, and returns where it ends and its entries in order.
fn read(
    change: &mut Change<'_>,
    path: &Path,
    file: FileNumber,
) -> Result<(Position, Vec<EntryNumber>), SyncError> {
    let mut growth = change.generation(Some(file));
    change.read(&mut growth, sources::open(path, 0).map_err(SyncError::at(path))?)?;
    let head = change.head(&growth)?;
    let taken = Position { generation: growth.generation, head, horizon: growth.entries };
    let found = growth.sequence();
    change.grown(growth);
    Ok((taken, found))
}

/// Returns the files that were set aside of a live file of the store's own and of which the store does not know.
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

/// Makes a session of a live file that has none.
fn begin(archive: &Archive, path: &Path, lost: u64) -> Result<Option<TakenBack>, SyncError> {
    let Ok((format, name)) = sources::identify(path) else { return Ok(None) };
    let place = archive.place_in(path);
    lose(archive, &name, format, (lost, Held::of(path, format)?.turns))?;
    let mut change = match archive.session(&name)? {
        Some(session) => Change::bare(archive, &session)?,
        None => Change::first(archive, name, format)?,
    };
    let file = change.file(place);
    if change.before.state.position().is_none() {
        change.set_current(MAIN);
    }
    change.set_live(Some(file));
    follow(&mut change, path, file).map(Some)
}
