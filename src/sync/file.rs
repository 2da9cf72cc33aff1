//! A live file beside its store: how it is looked at, compared, and brought to where a rotation leaves it.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Seek, SeekFrom},
    os::unix::ffi::OsStrExt,
};

use crate::{
    live::WritableFile,
    model::{Rotation, Run, State},
    session::{Session, content},
    store::{Sighting, Store},
    sync::{Archive, SyncError, sources},
};

/// Keeps how an agent's file looks now that all of it is in the store.
pub(crate) fn saw(archive: &Archive, live: &WritableFile) -> Result<(), SyncError> {
    let meta = live.open().and_then(|file| file.metadata()).map_err(failed(live))?;
    keep_sightings(archive.store.as_ref(), &[sources::sighting(live.path(), &meta)])
}

/// Keeps how files look of which all is in the store.
pub(crate) fn keep_sightings(store: &dyn Store, sightings: &[Sighting]) -> Result<(), SyncError> {
    let mut writing = store.begin()?;
    writing.sight(sightings)?;
    writing.commit()?;
    Ok(())
}

/// Returns the error of an access to a live file.
pub(crate) fn failed(live: &WritableFile) -> impl Fn(io::Error) -> SyncError + use<> {
    let path = live.path().to_owned();
    move |source| SyncError::Io { path: path.clone(), source }
}

/// Returns the rotation that the newest operation asks for, if the live file is still the old one.
///
/// An inode alone does not say so: when the old file is gone, its number may be given to a new one.
pub(crate) fn pending(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    tip: &State,
) -> Result<Option<Rotation>, SyncError> {
    let io = failed(live);
    let newest = tip.rotations.last().filter(|(operation, _)| *operation == tip.operations());
    let newest = newest.map(|(_, rotation)| rotation.clone());
    let Some((rotation, seen)) = newest.zip(live.look().map_err(&io)?) else { return Ok(None) };
    if seen.inode != rotation.inode || seen.length < rotation.length {
        return Ok(None);
    }
    let runs = archive.store.runs(session.key, rotation.old, 0)?;
    let old = content::bytes(archive.store.as_ref(), session, &runs)?;
    let found = live.read(0, Some(rotation.length)).map_err(&io)?;
    Ok(old.starts_with(&found).then_some(rotation))
}

/// Opens a live file at an offset.
pub(crate) fn from(live: &WritableFile, offset: u64) -> Result<File, SyncError> {
    let at = |mut file: File| file.seek(SeekFrom::Start(offset)).map(|_| file);
    live.open().and_then(at).map_err(failed(live))
}

/// Writes the current state under the temporary name.
pub(crate) fn write_fresh(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    tip: &State,
) -> Result<(), SyncError> {
    let io = failed(live);
    let mut fresh = live.fresh().map_err(&io)?;
    let generation = tip.position().map_or(0, |at| at.generation);
    let runs = archive.store.runs(session.key, generation, 0)?;
    content::write(archive.store.as_ref(), session, &runs, &mut |part| fresh.write(part))?;
    fresh.finish(tip.at()).map_err(io)
}

pub(crate) fn finish_rotation(
    archive: &Archive,
    session: &Session,
    live: &WritableFile,
    rotation: &Rotation,
    tip: &State,
) -> Result<(), SyncError> {
    let aside = aside_of(live, rotation)?;
    write_fresh(archive, session, live, tip)?;
    live.exchange(&aside).map_err(failed(live))
}

/// Returns the file that a rotation set aside; its name is a fact of the store.
pub(crate) fn aside_of(
    live: &WritableFile,
    rotation: &Rotation,
) -> Result<WritableFile, SyncError> {
    live.sibling(OsStr::from_bytes(&rotation.aside)).map_err(failed(live))
}

/// Returns how many bytes of a file its newest run made.
pub(crate) fn newest(archive: &Archive, session: &Session, runs: &[Run]) -> Result<u64, SyncError> {
    let last = runs.len().saturating_sub(1);
    let newest =
        content::bytes(archive.store.as_ref(), session, runs.get(last..).unwrap_or_default())?;
    Ok(newest.len() as u64)
}

pub(crate) fn is_subsequence(wanted: &[u64], found: &[u64]) -> bool {
    let mut found = found.iter();
    wanted.iter().all(|entry| found.any(|other| other == entry))
}
