//! Copies: the database as it is at one moment, in a new file, while others write.
//!
//! Invariant: a copy holds what the WAL holds, has a witness next to it, and is open to no other user.

use std::path::Path;

use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};

use super::{
    Access, SqliteStore,
    witness::{self, Witness, WitnessFile},
};
use crate::{disk, store::StoreError};

/// How many pages are copied before it is told how far the copy has come.
const PAGES: i32 = 1024;

impl SqliteStore {
    /// Copies the database, as it is at the moment that this store looks at, into a new file, and tells how many of how many
    /// pages are there. A store opened to read looks at one moment for as long as it lives.
    pub fn copy(&self, to: &Path, each: &mut dyn FnMut(u64, u64)) -> Result<(), StoreError> {
        let _look = self.snapshot()?;
        disk::make(to).map_err(StoreError::at(to))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut copy = Connection::open_with_flags(to, flags)?;
        let backup = Backup::new(self.db(), &mut copy)?;
        loop {
            let step = backup.step(PAGES)?;
            let progress = backup.progress();
            let pages = |n| u64::try_from(n).unwrap_or(0);
            each(pages(progress.pagecount - progress.remaining), pages(progress.pagecount));
            match step {
                StepResult::Done => break,
                StepResult::More => {}
                _ => return Err(StoreError::Busy),
            }
        }
        drop(backup);
        copy.close().map_err(|(_, error)| error)?;
        // The witness of the original may have seen more than this moment.
        let copy = Self::open(to, Access::Read)?;
        if let Some((seq, hash)) = copy.newest()? {
            let path = witness::path_of(to);
            let mut file = WitnessFile::new(path.clone());
            let written = file.write(&Witness { store: copy.own_id()?, seq, hash });
            written.and_then(|()| file.sync()).map_err(StoreError::at(&path))?;
        }
        Ok(())
    }
}
