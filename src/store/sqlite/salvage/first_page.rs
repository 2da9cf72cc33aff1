//! The first page: it says where all tables are. A damaged one is replaced, in a copy, by that of a fresh store: all stores of a
//! version are made by the same statements, so that their tables begin at the same pages.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};

use crate::{
    disk::{self, Links},
    store::StoreError,
};

/// How long a page is: SQLite's default, which no store changes.
const PAGE: u64 = 4096;
/// Where a database says for which number of changes its own length is valid.
const VALID_FOR: u64 = 92;

/// Opens a damaged store to read it; if its first page is damaged, a copy of it, made next to the fresh store.
pub(super) fn open(damaged: &Path, fresh: &Path) -> Result<Connection, StoreError> {
    let look = |path: &Path| -> Result<Connection, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = Connection::open_with_flags(path, flags)?;
        db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(db)
    };
    if !damaged.exists() {
        // Nothing is left of it but what lies around it.
        return Ok(Connection::open_in_memory()?);
    }
    match look(damaged) {
        Err(StoreError::Corrupt { .. }) => {}
        opened => return opened,
    }
    let copy = fresh.with_file_name("copy.db");
    let io = |source| StoreError::Io { path: copy.clone(), source };
    copy_of(damaged, &copy).map_err(io)?;
    if let Err(error) = copy_of(&log_of(damaged), &log_of(&copy))
        && error.kind() != ErrorKind::NotFound
    {
        return Err(io(error));
    }
    replace(&copy, fresh).map_err(io)?;
    look(&copy)
}

fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

fn copy_of(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = disk::open(from, Links::Refuse)?;
    io::copy(&mut from, &mut disk::make(to)?)?;
    Ok(())
}

fn replace(copy: &Path, fresh: &Path) -> io::Result<()> {
    let mut page = Vec::new();
    disk::open(fresh, Links::Refuse)?.take(PAGE).read_to_end(&mut page)?;
    let file: File = disk::open_or_make(copy)?;
    disk::write_at(&file, &page, 0)?;
    // The fresh store's length is not that of the copy: without a valid one, SQLite asks the file.
    disk::write_at(&file, &[0xff; 4], VALID_FOR)
}
