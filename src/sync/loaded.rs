//! Loaded: a process that has an agent's session in memory keeps the file of it from being written, because it would not see
//! what is written, and go on from what it knows.

use std::path::Path;

use crate::{
    live,
    session::Session,
    sync::{Archive, SyncError},
};

/// Refuses to write an agent's file whose session a process has loaded, unless the caller insists.
pub(crate) fn refuse_if_loaded(
    archive: &Archive,
    session: &Session,
    path: &Path,
) -> Result<(), SyncError> {
    if archive.manner.force {
        return Ok(());
    }
    let folder = archive.store.card(session.key)?.folder;
    let folder = folder.as_deref().map(Path::new);
    let holders = live::holders(path, folder, session.format.traits());
    let holders = holders.map_err(SyncError::at(path))?;
    if holders.is_empty() {
        return Ok(());
    }
    Err(SyncError::Loaded { path: path.to_owned(), holders, is_final: false })
}
