//! A live file compared with the store: looks at it, judges it, and finishes a rotation of it.

use std::{
    ffi::OsStr,
    fs::File,
    io::{Seek, SeekFrom},
    os::unix::ffi::OsStrExt,
};

use crate::{
    archive::{Archive, At, SyncError},
    files::{
        judge::{Known, Seen, Verdict, Whose},
        live_file::expected,
        look::Looking,
        sources,
    },
    live::WritableFile,
    model::{EntryNumber, Rotation, State},
    session::graph::content,
    store::{SessionKey, Sighting},
};

/// Stores the sighting of a live file if the store has all of it. A different length means that the agent has appended meanwhile.
pub(crate) fn saw(
    archive: &Archive,
    session: SessionKey,
    live: &WritableFile,
) -> Result<(), SyncError> {
    let held = expected(&archive.store.state(session)?);
    let meta = live.open().and_then(|file| file.metadata()).map_err(SyncError::at(live.path()))?;
    if meta.len() != held {
        return Ok(());
    }
    keep_sightings(archive, &[sources::sighting(live.path(), &meta)])
}

/// Stores the sighting of a file whose whole content is in the store.
pub(crate) fn sight(archive: &Archive, file: &WritableFile) -> Result<(), SyncError> {
    let meta = file.open().and_then(|file| file.metadata()).map_err(SyncError::at(file.path()))?;
    keep_sightings(archive, &[sources::sighting(file.path(), &meta)])
}

/// Stores the sightings of files whose whole content is in the store.
pub(crate) fn keep_sightings(archive: &Archive, sightings: &[Sighting]) -> Result<(), SyncError> {
    let mut writing = archive.store.begin()?;
    writing.sight(sightings)?;
    writing.commit()?;
    Ok(())
}

/// Returns the rotation that the newest operation asks for, whether or not it was carried out.
pub(crate) fn newest_rotation(tip: &State) -> Option<&Rotation> {
    let (operation, rotation) = tip.rotations.last()?;
    (tip.newest?.n == *operation).then_some(rotation)
}

/// Returns the newest rotation if it may not have been carried out: the live file has the inode of the file to set aside, and no
/// other file has the set-aside name. The inode alone proves nothing, because the system may have reused it.
fn open_rotation<'a>(
    live: &WritableFile,
    tip: &'a State,
    seen: Option<&Seen>,
) -> Result<Option<&'a Rotation>, SyncError> {
    let is_old = |rotation: &&Rotation| seen.is_some_and(|seen| seen.inode == rotation.inode);
    let Some(rotation) = newest_rotation(tip).filter(is_old) else { return Ok(None) };
    let aside = aside_of(live, rotation)?;
    let found = aside.look().map_err(SyncError::at(aside.path()))?;
    Ok(found.is_none_or(|found| found.inode == rotation.inode).then_some(rotation))
}

/// Returns true if the newest rotation was interrupted halfway: the old file has only its set-aside name, and the successor
/// waits.
pub(crate) fn is_only_set_aside(live: &WritableFile, tip: &State) -> Result<bool, SyncError> {
    let Some(rotation) = newest_rotation(tip) else { return Ok(false) };
    let inode = |file: &WritableFile| -> Result<Option<u64>, SyncError> {
        Ok(file.look().map_err(SyncError::at(file.path()))?.map(|seen| seen.inode))
    };
    Ok(inode(&live.successor())?.is_some()
        && inode(&aside_of(live, rotation)?)? == Some(rotation.inode))
}

pub(crate) fn verdict(
    session: &At<'_>,
    live: &WritableFile,
    whose: Whose,
    seen: Option<&Seen>,
) -> Result<Verdict, SyncError> {
    let rotation = open_rotation(live, &session.state, seen)?;
    let known = Known {
        whose,
        length: expected(&session.state),
        rotation: rotation.map(|rotation| (rotation.inode, rotation.length)),
    };
    let looking = Looking {
        session,
        generation: session.state.generation(),
        end: session.state.growth(),
        rotation,
        path: live.path(),
        open: &|offset| Ok(Box::new(from(live, offset)?)),
    };
    looking.verdict(&known, seen)
}

pub(crate) fn from(live: &WritableFile, offset: u64) -> Result<File, SyncError> {
    let at = |mut file: File| file.seek(SeekFrom::Start(offset)).map(|_| file);
    live.open().and_then(at).map_err(SyncError::at(live.path()))
}

/// Writes the current state to a temporary file.
pub(crate) fn write_fresh(session: &At<'_>, live: &WritableFile) -> Result<(), SyncError> {
    let io = SyncError::at(live.path());
    let mut fresh = live.fresh().map_err(io)?;
    let generation = session.state.generation();
    let runs = session.store.runs(session.key, generation, 0)?;
    content::write(session, &runs, &mut |part| fresh.write(part))?;
    fresh.finish(session.state.at()).map_err(io)
}

/// Carries out the rotation that the newest operation asks for: writes the successor and exchanges the files.
pub(crate) fn finish_rotation(session: &At<'_>, live: &WritableFile) -> Result<(), SyncError> {
    let Some(rotation) = newest_rotation(&session.state) else { return Ok(()) };
    let aside = aside_of(live, rotation)?;
    write_fresh(session, live)?;
    live.exchange(&aside).map_err(SyncError::at(live.path()))
}

/// Returns the file that a rotation set aside. Its name is a fact in the store.
pub(crate) fn aside_of(
    live: &WritableFile,
    rotation: &Rotation,
) -> Result<WritableFile, SyncError> {
    live.sibling(OsStr::from_bytes(&rotation.aside)).map_err(SyncError::at(live.path()))
}

pub(crate) fn is_subsequence(wanted: &[EntryNumber], found: &[EntryNumber]) -> bool {
    let mut found = found.iter();
    wanted.iter().all(|entry| found.any(|other| other == entry))
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write as _};

    use super::*;
    use crate::{archive::Machine, files::live_file::live_file, intake::import, store::Access};

    #[test]
    #[expect(clippy::disallowed_methods, reason = "an agent writes its own file")]
    fn what_the_agent_appends_behind_a_commit_is_not_taken_for_seen() {
        let folder = tempfile::tempdir().unwrap();
        let (sessions, file) = (folder.path().join("s"), folder.path().join("s/s.jsonl"));
        let line = |n: u32| {
            format!(
                r#"{{"type":"user","uuid":"u{n}","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:0{n}.000Z","cwd":"/w","version":"2.1.0","message":{{"role":"user","content":"{n}"}}}}"#
            ) + "\n"
        };
        fs::create_dir(&sessions).unwrap();
        fs::write(&file, line(1)).unwrap();
        let store = folder.path().join("store");
        let mut archive = Archive::open(&store, Access::Write, Box::new(Machine)).unwrap();
        let folders = [sessions];
        archive.writable.file(file.canonicalize().unwrap());
        import(&mut archive, &folders, &folders, &mut |_| ()).unwrap();
        let session = archive.every().unwrap().remove(0);
        let state = archive.store.state(session.key).unwrap();
        let live = live_file(&archive, &state).unwrap();
        let target = archive.writable_file(&session.name, &live).unwrap();
        let place = target.path().as_os_str().as_bytes().to_vec();
        let vouched = || archive.store.sighting(&place).unwrap();
        saw(&archive, session.key, &target).unwrap();
        let seen = vouched();
        fs::File::options()
            .append(true)
            .open(&file)
            .unwrap()
            .write_all(line(2).as_bytes())
            .unwrap();
        saw(&archive, session.key, &target).unwrap();
        assert_eq!(vouched(), seen);
        assert_eq!(import(&mut archive, &folders, &folders, &mut |_| ()).unwrap().entries, 1);
    }
}
