//! Many changes that become durable together: the transaction and the lock that they share.

use std::{fs::File, sync::Arc};

use crate::{
    archive::{Archive, SyncError},
    change::draft::{Change, Gathering},
    store::{Commit, Coverings, Derived, SessionKey, StoreError, Transaction},
};

/// How many bytes are worth a sync.
const MANY: u64 = 64 << 20;
/// How many bytes of rows a change brings besides its lines, about.
const ROWS: u64 = 16 << 10;

/// The transaction to which an import of a session belongs.
pub(crate) enum Joint<'a> {
    /// One of its own.
    Alone,
    /// One in which others are gathered too: the session is new.
    New(&'a mut dyn Gathering),
    /// The same: the only file of the session has grown, and that was imported before this change.
    Grown(Box<Change<'a>>),
}

/// The transaction in which new sessions, and those that grew, are gathered, if one is open.
pub(crate) struct Together<'a> {
    archive: &'a Archive,
    writing: Option<Box<dyn Transaction + 'a>>,
    /// How many bytes its changes have: their lines, their kept files, and rows.
    bytes: u64,
    /// The archive's lock, while it is open.
    lock: Option<Arc<File>>,
}

impl Gathering for Together<'_> {
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError> {
        let lines = commit.lines.iter().map(|line| line.bytes().len());
        let kept = commit.kept.iter().map(Vec::len);
        self.bytes += ROWS + lines.chain(kept).sum::<usize>() as u64;
        self.writing.as_mut().ok_or(StoreError::Conflict)?.add(commit)
    }

    fn settle(&mut self) -> Result<(), StoreError> {
        self.commit()?;
        self.open()
    }

    fn renew(&mut self) -> Result<(), StoreError> {
        if self.bytes >= MANY { self.settle() } else { Ok(()) }
    }
}

impl<'a> Together<'a> {
    /// Returns one that is not open.
    pub(crate) fn new(archive: &'a Archive) -> Self {
        Self { archive, writing: None, bytes: 0, lock: None }
    }

    /// Locks the archive and opens a transaction.
    pub(crate) fn begin(&mut self) -> Result<(), SyncError> {
        self.lock = self.archive.lock()?;
        Ok(self.open()?)
    }

    /// Opens a transaction for a caller that holds the archive's lock.
    pub(crate) fn open(&mut self) -> Result<(), StoreError> {
        self.writing = Some(self.archive.store.begin()?);
        Ok(())
    }

    /// Puts other bytes in place of lines and files, and takes words out.
    pub(crate) fn cover(&mut self, coverings: Coverings) -> Result<(), StoreError> {
        self.writing.as_mut().ok_or(StoreError::Conflict)?.cover(coverings)
    }

    /// Forgets the sightings of files.
    pub(crate) fn unsight(&mut self, is_meant: &dyn Fn(&[u8]) -> bool) -> Result<(), StoreError> {
        self.writing.as_mut().ok_or(StoreError::Conflict)?.unsight(is_meant)
    }

    /// Replaces all derived rows of a session.
    pub(crate) fn derive(
        &mut self,
        session: SessionKey,
        derived: &Derived,
    ) -> Result<(), StoreError> {
        self.writing.as_mut().ok_or(StoreError::Conflict)?.derive(session, derived)
    }

    /// Returns whether a transaction is open.
    pub(crate) fn is_open(&self) -> bool {
        self.writing.is_some()
    }

    /// Makes the added changes durable, and lets go of the lock.
    pub(crate) fn end(&mut self) -> Result<(), StoreError> {
        let ended = self.commit();
        self.lock = None;
        ended
    }

    /// Takes back the added changes that are not durable.
    pub(crate) fn undo(&mut self) {
        (self.writing, self.bytes) = (None, 0);
        self.lock = None;
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.bytes = 0;
        self.writing.take().map_or(Ok(()), |writing| writing.commit().map(drop))
    }
}
