//! Segments: some agents keep a session in several files. Such an agent is moved by a new file that continues from a place in the
//! existing ones; the agent's index of sessions then names the new file.
//!
//! ```text
//! prepare   write the file under a temporary name
//! commit    commit the operation
//! follow    1 rename the file   2 make the agent's index name it, if the index still names the old file
//! ```
//!
//! If the file that the newest operation began was never seen complete, the commit was interrupted.
//!
//! Invariant: no byte of the existing files is changed.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use chrono::{NaiveDateTime, TimeDelta};

use crate::{
    archive::{At, SyncError},
    change::{
        draft::{Change, follow::Step, live::begin_live},
        goal::{reach::Reach, resume::reads},
    },
    disk,
    files::{
        deletion::{is_gone, newest},
        file::{saw, write_fresh},
        live_file::{LiveFile, length_of},
        occupancy::{agents_lock, refuse_if_loaded},
        siblings::{self, Shelved},
        sources,
    },
    live::{Index, WritableFile, is_same},
    model::{FileNumber, PlaceNumber, Position, Timestamp},
    report::Notice,
    session::{SessionError, View, graph::view, history::lineage},
    wire::{Back, Failure, FileName, Format, Graph as _, Held, Onward, Segment, Setting},
};

/// The format of the time in a file's name.
const BEGUN: &str = "%Y-%m-%dT%H-%M-%S";

/// Begins another file that continues where `back` leads. Returns the agent's position; `None` if the agent does not
/// continue in other files there, or would not read the wanted context.
pub(crate) fn begin(
    change: &mut Change<'_>,
    live: &LiveFile,
    back: &Back<'_>,
    to: Reach<'_>,
    setting: &Setting,
) -> Result<Option<Position>, SyncError> {
    let format = change.before.format;
    let index = format.home(&live.path).map(Index::of);
    // An index that cannot be read cannot be updated either.
    if index.as_ref().is_none_or(|index| index.file(&change.before.name.id).is_err()) {
        return Ok(None);
    }
    let Some(segment) = write(change, live, back, to.target, setting)? else {
        return Ok(None);
    };
    let Some(path) = next_file(change, live, setting.time) else { return Ok(None) };
    let (archive, name) = (change.before.archive, change.before.name.clone());
    let n = change.file(archive.place_of(&path));
    let file = LiveFile { n, path: path.clone(), attached: true };
    let mut growth = change.generation(Some(n));
    let mut bytes = Vec::new();
    for line in [&segment.opening].into_iter().chain(&segment.lines) {
        bytes.extend(line);
        bytes.push(b'\n');
    }
    change.is_replay = true;
    change.read_bytes(&mut growth, &bytes)?;
    let position = reads(change, &growth, to)?;
    let target = if archive.is_preview {
        // The file's folder may not exist yet, and a preview does not create it.
        archive.writable_file(&name, live)
    } else {
        let folder = archive.writable.make_folder(format.name(), &path);
        let folder = folder.map_err(|why| SyncError::denied(&name, &path, why));
        folder.and_then(|()| archive.writable_file(&name, &file))
    };
    // A live file that the user attached may be in a folder where no other file may be created.
    let (Some(position), Ok(target)) = (position, target) else {
        change.forget();
        return Ok(None);
    };
    for (&entry, origin) in growth.sequence().iter().skip(1).zip(segment.again) {
        change.stand_for(entry, origin)?;
    }
    let io = SyncError::at(target.path());
    sweep(format, &name.id, &target)?;
    let mut fresh = target.fresh().map_err(io)?;
    fresh.write(&bytes).map_err(io)?;
    begin_live(
        change,
        target,
        Step::Begin {
            fresh: Some(Box::new(fresh)),
            index,
            session: name.id,
            from: live.path.clone(),
        },
    );
    change.set_live(Some(n));
    change.grown(growth);
    Ok(Some(position))
}

/// Returns the path for another file of the session. Its name has a later time than all others.
fn next_file(change: &Change<'_>, live: &LiveFile, at: Timestamp) -> Option<PathBuf> {
    let (archive, format) = (change.before.archive, change.before.format);
    let own = siblings::name(format, &live.path)?;
    let is_own = |name: &FileName| name.session == own.session;
    let there = siblings::since(format, &live.path, &own.begun, &is_own);
    let places = change.before.state.files.iter().filter_map(|place| archive.path_of(place));
    let known = places.filter_map(|path| siblings::name(format, &path)).filter(is_own);
    let newest = there.into_iter().map(|(name, _)| name).chain(known).map(|name| name.begun).max();
    let behind = newest.and_then(|begun| NaiveDateTime::parse_from_str(&begun, BEGUN).ok());
    let behind = behind.and_then(|begun| begun.checked_add_signed(TimeDelta::seconds(1)));
    let now = at.utc().with_timezone(&archive.offset(at)).naive_local();
    let begun = behind.map_or(now, |behind| behind.max(now)).format(BEGUN).to_string();
    let id = archive.uuid().to_string();
    format.next_file(&live.path, &FileName { begun, id, session: own.session })
}

/// Builds the file that moves the agent to where `back` leads. It continues from as much of the other files as the agent has
/// listed.
fn write(
    change: &Change<'_>,
    live: &LiveFile,
    back: &Back<'_>,
    target: Position,
    setting: &Setting,
) -> Result<Option<Segment>, SyncError> {
    let format = change.before.format;
    let index = format.home(&live.path).map(Index::of);
    let horizon = change.before.growth(target.generation)?.entries;
    let view = change.look(Position { horizon, ..target });
    let then = change.look(target);
    let files = || -> Result<Vec<Held>, Failure> {
        let mut files = Vec::new();
        view.climb(&mut |view| {
            files.push(held(change, index.as_ref(), live, view)?);
            Ok(())
        })?;
        files.reverse();
        Ok(files)
    };
    let offset = |file: usize, place: PlaceNumber| -> Result<u64, Failure> {
        let mut ends = Vec::new();
        view.climb(&mut |view| {
            ends.push(view.position);
            Ok(())
        })?;
        let position = ends.iter().rev().nth(file);
        let end = position
            .map(|position| view::end_of(&view.base(*position), place.get()))
            .transpose()?;
        Ok(end.map_or(0, |end| end + 1))
    };
    let stands = Position { horizon: u64::MAX, ..change.before.position().unwrap_or_default() };
    let stands = change.look(stands);
    let opening = match stands.at(PlaceNumber::FIRST)? {
        Some(first) => stands.line(first)?,
        None => Vec::new(),
    };
    let onward = Onward {
        graph: &view,
        back,
        opening: &opening,
        then: &then,
        files: &files,
        offset: &offset,
    };
    Ok(format.segment(&onward, setting)?)
}

/// Returns how much of a file another one may continue from: what is on disk as the session has it, and what the agent has
/// listed.
fn held(
    change: &Change<'_>,
    index: Option<&Index>,
    live: &LiveFile,
    view: &View<'_>,
) -> Result<Held, SessionError> {
    let nothing = Held { id: String::new(), held: PlaceNumber::FIRST };
    let (archive, format, state) =
        (change.before.archive, change.before.format, &change.before.state);
    let Position { generation, horizon, .. } = view.position;
    let Some(place) = state.file_of(generation).and_then(|file| state.file(file)) else {
        return Ok(nothing);
    };
    let path = Path::new(OsStr::from_bytes(place.path()));
    let Some(name) = siblings::name(format, path) else { return Ok(nothing) };
    let file = match archive.path_of(place).filter(|path| !is_gone(path)) {
        Some(file) => Some(file),
        None => Shelved::default().find(format, &live.path, &name.id).map(|(_, file)| file.clone()),
    };
    let listed = index.and_then(|index| index.listed(&name.id).ok()).unwrap_or(0);
    let length = length_of(state.ends.get(&generation));
    let within = lineage::entries_within(view, listed.min(length).saturating_sub(1))?.unwrap_or(0);
    let within = PlaceNumber::new(within.min(horizon));
    let Some(file) = file.filter(|_| within > PlaceNumber::FIRST) else {
        return Ok(Held { id: name.id, ..nothing });
    };
    let Some(last) = view.at(within.minus(1))? else { return Ok(nothing) };
    let line = [view.line(last)?, b"\n".to_vec()].concat();
    let from = (view::end_of(view, within.get())? + 1).saturating_sub(line.len() as u64);
    let mut there = Vec::new();
    let read = sources::open(&file, from)
        .and_then(|file| file.take(line.len() as u64).read_to_end(&mut there));
    let is_there = read.is_ok() && there == line;
    Ok(Held { id: name.id, held: if is_there { within } else { PlaceNumber::FIRST } })
}

/// Finishes an interrupted commit that began another file. Returns a notice if there was one.
///
/// If the agent has continued in the old file meanwhile, the agent stays there.
pub(crate) fn finish(session: &At<'_>, live: &LiveFile) -> Result<Option<Notice>, SyncError> {
    let Some((n, path)) = unfinished(session, live)? else { return Ok(None) };
    let named = siblings::named(session.format, &session.name.id, &live.path);
    if is_gone(&live.path) || named.is_some_and(|named| is_same(&named, &path)) {
        refuse_if_loaded(session, &path)?;
    }
    let denied = |why| SyncError::denied(&session.name, &live.path, why);
    session.archive.writable.make_folder(&session.name.format, &live.path).map_err(denied)?;
    let target = session.archive.writable_file(&session.name, live)?;
    let io = SyncError::at(target.path());
    if is_gone(&live.path) {
        write_fresh(session, &target)?;
        target.install_new().map_err(io)?;
    }
    let known =
        newest(&session.state).find(|(file, _)| *file == n).map(|(_, generation)| generation);
    let known = known.map(|generation| length_of(session.state.ends.get(&generation)));
    let there = match sources::length(&path) {
        Err(error) if disk::is_absent(&error) => None,
        length => length.map_err(SyncError::at(&path))?,
    };
    if let Some(index) = session.format.home(&live.path).map(Index::of)
        && (there.is_none() || there == known)
    {
        let _lock = agents_lock(session, &live.path)?;
        index.exchange(&session.name.id, &path, &live.path).map_err(io)?;
    }
    saw(session.archive, session.key, &target)?;
    Ok(Some(Notice::Finished { path: live.path.clone() }))
}

/// Deletes the temporary files of changes that were never committed, if the agent keeps a session in several files.
pub(crate) fn sweep(
    format: &dyn Format,
    session: &str,
    file: &WritableFile,
) -> Result<(), SyncError> {
    if format.home(file.path()).is_none() {
        return Ok(());
    }
    let is_own = |name: &str| format.file_name(name).is_some_and(|name| name.session == session);
    file.sweep_beside(&is_own).map_err(SyncError::at(file.path()))
}

/// Returns the file from which the newest operation moved the agent to the live file, if the live file was never seen complete.
pub(crate) fn unfinished(
    session: &At<'_>,
    live: &LiveFile,
) -> Result<Option<(FileNumber, PathBuf)>, SyncError> {
    let Some(newest) = session.state.newest.filter(|_| live.attached) else { return Ok(None) };
    let begun = session.state.generations.iter().rfind(|(_, of)| of.file == Some(live.n));
    if begun.is_none_or(|(by, _)| *by != newest.n)
        || session.store.sighting(live.path.as_os_str().as_bytes())?.is_some()
    {
        return Ok(None);
    }
    let operation = session.store.operations(session.key, newest.n.alone())?.pop();
    // An operation that follows the agent to another file writes none.
    let operation = operation.filter(|operation| !operation.command.takes_in());
    let step = operation.and_then(|operation| operation.facts.live);
    let from = step.filter(|step| step.to == Some(live.n)).and_then(|step| step.from);
    Ok(from.and_then(|from| Some((from, session.archive.path_of(session.state.file(from)?)?))))
}
