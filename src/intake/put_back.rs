//! Restores files of a session that were deleted, at the paths where the agent reads them.
//!
//! Agents delete old transcripts and the files next to them. The store has the last content of each.
//!
//! Invariant: an existing file is never overwritten, and a restored file is complete or does not exist.

use std::{cmp::Reverse, collections::BTreeSet, ffi::OsStr, io::ErrorKind, path::PathBuf};

use crate::{
    archive::{At, SyncError},
    change::{draft::listing, reconcile::catch_up},
    files::{
        at::Standing,
        deletion::{elsewhere, is_gone, lost, newest, used},
        live_file::LiveFile,
        occupancy::refuse_if_loaded,
        siblings, sources, states,
    },
    intake::sidecars::{self, Kept, is_same},
    live::{Denied, Fresh, WritableFile},
    model::{GenerationNumber, Place, Timestamp},
    report::Sidecars,
    session::graph::content,
};

/// The restored files.
#[derive(Default)]
pub(crate) struct PutBack {
    /// The files written; the one that the agent reads is the last.
    pub(crate) files: Vec<PathBuf>,
    /// Set if the agent would not accept the session there, because its list lacks the folder.
    pub(crate) unlisted: Option<SyncError>,
}

/// Writes the files of a session that were deleted; none if all exist. The file that the agent reads gets the time `at`, older
/// ones get earlier times. The caller holds the lock and attaches the file that the agent reads.
pub(crate) fn put_back(session: &At<'_>, at: Timestamp) -> Result<PutBack, SyncError> {
    catch_up::catch_up(session)?;
    let session = &session.again()?;
    let mut done = PutBack::default();
    let Some(wanted) = lost(session)? else { return Ok(done) };
    Standing::of(session)?.refuse_if_left_out(&wanted.path)?;
    let mut files = Vec::new();
    let mut names = BTreeSet::new();
    for (n, generation) in newest(&session.state).rev() {
        let place = session.state.file(n).filter(|place| !matches!(place, Place::Store(_)));
        let Some(path) = place.and_then(|place| session.archive.path_of(place)) else { continue };
        // Of a file that was moved, only the newest path counts.
        let is_newest = names.insert(path.file_name().map(OsStr::to_owned));
        // If an agent keeps a session in several files, it needs the older ones too.
        let is_part = siblings::name(session.format, &path).is_some()
            || sources::rotation(&path, session.format).is_some();
        let file = LiveFile { n, path, attached: true };
        let is_lost = || elsewhere(session, &file).is_none();
        if is_gone(&file.path) && (n == wanted.n || is_part && is_newest && is_lost()) {
            files.push((n == wanted.n, file, generation));
        }
    }
    files.reverse();
    files.sort_by_key(|(is_wanted, ..)| *is_wanted);
    for (_, file, _) in &files {
        // A process that has the deleted file open would continue to write there.
        refuse_if_loaded(session, &file.path)?;
    }
    let mut earlier = i64::try_from(files.len()).unwrap_or_default();
    for (_, file, generation) in files {
        earlier -= 1;
        let at = Timestamp(at.0 - earlier);
        let target = target(session, &file)?;
        // Do this before the file exists, because its agent may read it right away.
        match listing::finish(session, &target, session.archive.now()) {
            Err(error @ SyncError::Unlisted { .. }) => done.unlisted = Some(error),
            listed => listed?,
        }
        write(session, &target, at, generation)?;
        done.files.push(file.path);
    }
    Ok(done)
}

/// Writes the sidecars of a session that were deleted, even if its own files exist. The caller holds the lock.
pub(crate) fn put_sidecars_back(
    session: &At<'_>,
    mut at: Timestamp,
) -> Result<Sidecars, SyncError> {
    let mut all = Sidecars::default();
    let mut kept = sidecars::kept(session);
    kept.sort_by_cached_key(|kept| Reverse(used(session.archive, &kept.path).ok().flatten()));
    for kept in kept {
        if is_gone(&kept.path) {
            let bytes = kept.bytes(session)?;
            let Kept { path, sidecar, .. } = kept;
            at.0 -= 1;
            let file = LiveFile { n: sidecar.file, path, attached: true };
            install(&target(session, &file)?, at, |fresh| {
                fresh.write(&bytes).map_err(SyncError::at(&file.path))
            })?;
            all.written.push(file.path);
        } else if !is_same(&kept.path, &kept.sidecar) {
            all.others.push(kept.path);
        }
    }
    Ok(all)
}

/// Writes a file with its content in a generation.
fn write(
    session: &At<'_>,
    target: &WritableFile,
    at: Timestamp,
    generation: GenerationNumber,
) -> Result<(), SyncError> {
    install(target, at, |fresh| {
        if let Some((operation, n, _)) = states::container(&session.state, generation) {
            fresh
                .write(&session.store.kept(session.key, operation, n)?)
                .map_err(SyncError::at(target.path()))?;
        } else {
            let runs = session.store.runs(session.key, generation, 0)?;
            content::write(session, &runs, &mut |part| fresh.write(part))?;
        }
        Ok(())
    })
}

/// Returns a deleted file as one that may be written, and creates its folder.
fn target(session: &At<'_>, file: &LiveFile) -> Result<WritableFile, SyncError> {
    // "Outside" suggests that the user could name an existing file. This one was deleted, so say that.
    let gone = |error| match error {
        SyncError::Denied { session, path, why: Denied::Outside } => {
            SyncError::Denied { session, path, why: Denied::Gone }
        }
        error => error,
    };
    session
        .archive
        .writable
        .make_folder(&session.name.format, &file.path)
        .map_err(|why| gone(SyncError::denied(&session.name, &file.path, why)))?;
    session.archive.writable_file(&session.name, file).map_err(gone)
}

/// Writes a complete file at a path that does not exist. Fails if a file has appeared there meanwhile.
fn install(
    target: &WritableFile,
    at: Timestamp,
    fill: impl FnOnce(&mut Fresh) -> Result<(), SyncError>,
) -> Result<(), SyncError> {
    let io = SyncError::at(target.path());
    let mut fresh = target.fresh().map_err(io)?;
    fill(&mut fresh)?;
    fresh.finish(at).map_err(io)?;
    if target.install_new().map_err(io)? {
        Ok(())
    } else {
        Err(io(ErrorKind::AlreadyExists.into()))
    }
}
