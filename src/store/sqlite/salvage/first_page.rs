//! The first pages say where all tables are, and how long the database is. If that is wrong, a copy of the database is read
//! without the length, or with the list of a fresh store: all stores of a version have their tables in the same places, until
//! they are written again in order. What is read through it is checked by its hashes like everything else.

use std::{collections::VecDeque, fs, io, io::ErrorKind, os::unix::fs::FileExt, path::Path};

use rusqlite::{Connection, OpenFlags};

use crate::{
    disk::{self, Links},
    store::{
        StoreError,
        sqlite::open::{SCHEMA, beside},
    },
};

/// How long a page is.
const PAGE: usize = 4096;
/// How long the header of a database is, which is followed by the first page of the list of tables.
const HEADER: usize = 100;

/// Opens a damaged store to read it. If its list of tables cannot be read, a copy next to the fresh store is opened instead, and
/// if that cannot be read either, a store without content.
pub(super) fn open(damaged: &Path, fresh: &Path) -> Result<Connection, StoreError> {
    match look(damaged) {
        Err(StoreError::Corrupt { .. } | StoreError::Database(_)) => {}
        opened => return opened,
    }
    let copy = fresh.with_file_name("copy.db");
    for template in [damaged, fresh].into_iter().filter(|_| damaged.exists()) {
        copy_with(damaged, &copy, template).map_err(StoreError::at(&copy))?;
        if let Ok(db) = look(&copy) {
            return Ok(db);
        }
    }
    let db = Connection::open_in_memory()?;
    db.execute_batch(SCHEMA)?;
    Ok(db)
}

/// Opens a database in which the names of sessions can be looked up.
fn look(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    // A damaged table is read around its damage; one that is not listed is not there at all.
    for table in ["session", "operation", "journal", "entry", "segment", "fresh"] {
        db.prepare(&format!("SELECT * FROM {table}"))?;
    }
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(db)
}

/// Copies a database and its log, without what its first page says of its length, or with the list of tables of a fresh one.
fn copy_with(damaged: &Path, copy: &Path, template: &Path) -> io::Result<()> {
    for end in ["", "-wal", "-shm"] {
        let to = beside(copy, end);
        match fs::remove_file(&to) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if end != "-shm" && beside(damaged, end).exists() {
            let mut from = disk::open(&beside(damaged, end), Links::Refuse)?;
            io::copy(&mut from, &mut disk::make(&to)?)?;
        }
    }
    let (copy, template) = (disk::open_or_make(copy)?, disk::open(template, Links::Refuse)?);
    let mut pages = VecDeque::from([1]);
    while let Some(number) = pages.pop_front() {
        let at = (u64::from(number) - 1) * PAGE as u64;
        let mut page = [0; PAGE];
        match template.read_exact_at(&mut page, at) {
            // Cut short here.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => continue,
            read => read?,
        }
        if number == 1 {
            // No pages are free, and the length is not known: without a valid one, SQLite asks the file.
            for (at, byte) in [(28, 0), (32, 0), (36, 0), (92, 0xff)] {
                page.get_mut(at..at + 4).unwrap_or_default().fill(byte);
            }
            pages.extend(children(&page));
        }
        disk::write_at(&copy, &page, at)?;
    }
    Ok(())
}

/// Returns the numbers of the pages below the first one, if it leads to any.
fn children(page: &[u8]) -> Vec<u32> {
    let number = |at: usize, length: usize| {
        let bytes = page.get(at..at + length).unwrap_or_default();
        bytes.iter().fold(0, |number: u32, byte| number << 8 | u32::from(*byte))
    };
    if number(HEADER, 1) != 5 {
        return Vec::new();
    }
    let cells = (0..number(HEADER + 3, 2) as usize).map(|n| number(HEADER + 12 + 2 * n, 2));
    let below = cells.map(|cell| number(cell as usize, 4));
    below.chain([number(HEADER + 8, 4)]).filter(|page| *page > 1).collect()
}
