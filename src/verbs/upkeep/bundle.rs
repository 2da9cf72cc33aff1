//! Bundles: writing sessions of an archive to one file, as a backup or for another store, and importing them.

use std::{
    fs::File,
    io::{BufReader, Write},
    path::Path,
};

use crate::{
    archive::{Archive, SyncError},
    disk::{self, Links},
    intake,
    report::{BackedUp, Brought},
    session::{Session, SessionError},
    store::{BundleError, BundleReader, BundleWriter, Fault, StoreError},
    verbs::OpsError,
};

/// The progress of a bundle: finished sessions, and all sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bundling {
    /// They are being written.
    Writing(u64, u64),
    /// They are being read back, and every hash is checked.
    Checking(u64, u64),
}

/// Writes a bundle of sessions.
pub fn bundle(
    archive: &Archive,
    sessions: &[Session],
    to: &mut dyn Write,
    each: &mut dyn FnMut(Bundling),
) -> Result<(), OpsError> {
    if let Some(torn) = archive.torn() {
        return Err(OpsError::NoBundle(format!("{}: {}", torn.item, torn.problem)));
    }
    if let Some((path, (witnessed, newest))) = archive.root().zip(archive.forgotten()) {
        let path = path.to_owned();
        return Err(StoreError::Forgotten { path, witnessed, newest }.into());
    }
    let failed = |source| SessionError::Write { source };
    let mut to = BundleWriter::new(to, archive.store().id()?).map_err(failed)?;
    for (done, session) in (0..).zip(sessions) {
        each(Bundling::Writing(done, sessions.len() as u64));
        intake::bundle::write(archive.store(), session, &mut to).map_err(|error| match error {
            SessionError::Store(StoreError::Corrupt(Fault { item, problem, .. })) => {
                OpsError::NoBundle(format!("session {}: {item}: {problem}", session.name.id))
            }
            error => error.into(),
        })?;
    }
    to.finish().map_err(failed)?.flush().map_err(failed)?;
    Ok(())
}

/// Reads a bundle, checks every hash in it, and returns its contents.
pub fn check_bundle(
    path: &Path,
    sessions: u64,
    each: &mut dyn FnMut(Bundling),
) -> Result<BackedUp, OpsError> {
    let failed = |why| OpsError::Bundle { path: path.to_owned(), why, imported: 0 };
    let mut found = BackedUp { path: path.to_owned(), ..BackedUp::default() };
    let mut from = open(path).map_err(failed)?;
    while let Some(mut of) = from.session().map_err(failed)? {
        each(Bundling::Checking(found.sessions, sessions));
        from.finish(&mut of).map_err(failed)?;
        found.sessions += 1;
        found.operations += of.operations;
        found.entries += of.state.entries();
    }
    found.bytes = path.metadata().map_err(SyncError::at(path))?.len();
    Ok(found)
}

/// Imports the sessions of a bundle and reports each. Sessions before a damaged part stay imported.
pub fn import_bundle(
    archive: &Archive,
    path: &Path,
    each: &mut dyn FnMut(Brought),
) -> Result<(), OpsError> {
    let mut imported = 0;
    let mut report = |brought: Brought| {
        imported += u64::from(brought.operations > 0);
        each(brought);
    };
    let read = match open(path) {
        Ok(mut from) => intake::bundle::import(archive, &mut from, &mut report)?,
        Err(why) => Err(why),
    };
    read.map_err(|why| OpsError::Bundle { path: path.to_owned(), why, imported })
}

fn open(path: &Path) -> Result<BundleReader<BufReader<File>>, BundleError> {
    let file = disk::open(path, Links::Follow).map_err(BundleError::Read)?;
    BundleReader::new(BufReader::new(file))
}
