//! Shared transactions: many changes that are committed together under one lock.

use std::{fs::File, sync::Arc};

use crate::{
    archive::{Archive, SyncError},
    change::draft::{Change, Gathering},
    store::{Commit, SessionKey, StoreError, Transaction},
};

/// After how many bytes to commit.
const MANY: u64 = 64 << 20;
/// Approximate size of a change's rows, in addition to its lines.
const ROWS: u64 = 16 << 10;

/// The transaction that the import of a session belongs to.
pub(crate) enum Joint<'a> {
    /// Its own transaction.
    Alone,
    /// A shared transaction; the session is new.
    New(&'a mut dyn Gathering),
    /// A shared transaction; the session's only file has grown, and its new lines were imported before this change.
    Grown(Box<Change<'a>>),
}

/// A shared transaction for new sessions and sessions that grew; it may be closed.
pub(crate) struct Together<'a> {
    archive: &'a Archive,
    writing: Option<Box<dyn Transaction + 'a>>,
    /// The size of its changes: lines, stored files, and rows.
    bytes: u64,
    /// The archive's lock, while the transaction is open.
    lock: Option<Arc<File>>,
}

impl Gathering for Together<'_> {
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError> {
        let lines = commit.lines.iter().map(|line| line.bytes().len());
        let kept = commit.kept.iter().map(Vec::len);
        self.bytes += ROWS + lines.chain(kept).sum::<usize>() as u64;
        self.writing()?.add(commit)
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
    /// Returns a closed transaction.
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

    /// Returns the transaction. Fails if it is closed.
    pub(crate) fn writing(&mut self) -> Result<&mut Box<dyn Transaction + 'a>, StoreError> {
        self.writing.as_mut().ok_or(StoreError::Conflict)
    }

    /// Returns true if the transaction is open.
    pub(crate) fn is_open(&self) -> bool {
        self.writing.is_some()
    }

    /// Commits the added changes and releases the lock.
    pub(crate) fn end(&mut self) -> Result<(), StoreError> {
        let ended = self.commit();
        self.lock = None;
        ended
    }

    /// Rolls back the added changes that are not committed.
    pub(crate) fn undo(&mut self) {
        (self.writing, self.bytes) = (None, 0);
        self.lock = None;
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.bytes = 0;
        self.writing.take().map_or(Ok(()), |writing| writing.commit().map(drop))
    }
}
