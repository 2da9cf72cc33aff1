//! Compactions in flight, so that other processes see them: a lock file in the store's folder for each session that is being
//! compacted. A process that dies loses the lock.

use std::{
    fs::{self, File},
    path::PathBuf,
};

use crate::{
    archive::{At, Holder, holder::holder},
    disk::{self, IfHeld, Links},
    model::COMPACTING,
};

/// Marks a session as being compacted until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Drop for Busy {
    fn drop(&mut self) {
        // A file that stays is not locked, so it says nothing.
        let _ = fs::remove_file(&self.path);
    }
}

impl At<'_> {
    fn busy_file(&self) -> Option<PathBuf> {
        let root = self.archive.root.as_ref()?;
        Some(root.join(format!("{COMPACTING}{}", self.session.key.0)))
    }

    /// Marks the session as being compacted, unless it is already. A mark that cannot be made stops nothing.
    pub(crate) fn mark_busy(&self) -> Option<Busy> {
        let path = self.busy_file()?;
        let file = self.archive.disk.lock(&path, IfHeld::GiveUp).ok().flatten()?;
        Some(Busy { path, _file: file })
    }

    /// Returns the process that compacts the session, or is about to repeat a request after that; none if no process does.
    pub fn compacting(&self) -> Option<Holder> {
        let path = self.busy_file()?;
        let file = disk::open(&path, Links::Refuse).ok()?;
        disk::is_locked(&file).then(|| holder(&path).unwrap_or_default())
    }
}
