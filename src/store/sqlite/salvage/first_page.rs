//! The first page, and those that it leads to, say where all tables are. Damaged ones are replaced, in a copy, by those of a
//! fresh store: all stores of a version are made by the same statements, so that their tables begin at the same pages.

use std::{
    fs::File,
    io::{self, ErrorKind},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};

use crate::{
    disk::{self, Links},
    store::StoreError,
};

/// How long a page is: SQLite's default, which no store changes.
const PAGE: usize = 4096;
/// How long the header of a database is: the first page of the list of tables begins behind it.
const HEADER: usize = 100;
/// How a page begins that only leads to others.
const INTERIOR: u8 = 5;
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
    let from = disk::open(fresh, Links::Refuse)?;
    let to: File = disk::open_or_make(copy)?;
    let mut page = vec![0; PAGE];
    from.read_exact_at(&mut page, 0)?;
    let below = below(&page);
    disk::write_at(&to, &page, 0)?;
    // The fresh store's length is not that of the copy: without a valid one, SQLite asks the file.
    disk::write_at(&to, &[0xff; 4], VALID_FOR)?;
    for number in below {
        let at = u64::from(number).saturating_sub(1) * PAGE as u64;
        from.read_exact_at(&mut page, at)?;
        disk::write_at(&to, &page, at)?;
    }
    Ok(())
}

/// Returns the pages that hold the rest of the list of tables, as the first page names them.
fn below(first: &[u8]) -> Vec<u32> {
    let number = |at: usize| first.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    let short = |at: usize| first.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes);
    if first.get(HEADER) != Some(&INTERIOR) {
        return Vec::new();
    }
    let cells = usize::from(short(HEADER + 3).unwrap_or(0));
    let cell = |n: usize| number(usize::from(short(HEADER + 12 + 2 * n)?));
    (0..cells).filter_map(cell).chain(number(HEADER + 8)).collect()
}
