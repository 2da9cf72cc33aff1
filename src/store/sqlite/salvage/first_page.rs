//! The first pages list all tables, and say how long the database is. If they are wrong, a copy of the database is read without
//! the length, or with the list of a fresh store: all stores of a version have their tables on the same pages until they are
//! vacuumed. Everything read this way is verified by its hashes as usual.

use std::{collections::VecDeque, fs, io, io::ErrorKind, os::unix::fs::FileExt, path::Path};

use rusqlite::{Connection, OpenFlags};

use crate::{
    disk::{self, Links},
    store::{
        StoreError,
        sqlite::open::{SCHEMA, beside},
    },
};

/// The length of a page.
const PAGE: usize = 4096;
/// The length of the database header, which is followed by the root page of the schema table.
const HEADER: usize = 100;

/// Opens a damaged store for reading. If its schema cannot be read, opens a corrected copy next to the fresh store instead, and
/// if that fails too, an empty store.
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

/// Opens a database and checks that its tables are listed.
fn look(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    // A damaged table is read around its damage; one that is not listed cannot be read at all.
    for table in ["session", "operation", "journal", "entry", "segment", "fresh"] {
        db.prepare(&format!("SELECT * FROM {table}"))?;
    }
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(db)
}

/// Copies a database and its WAL, without the length in its first page, or with the schema of a fresh store.
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
            // The file ends here.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => continue,
            read => read?,
        }
        if number == 1 {
            // No free pages, and no valid length: SQLite then uses the length of the file.
            for (at, byte) in [(28, 0), (32, 0), (36, 0), (92, 0xff)] {
                page.get_mut(at..at + 4).unwrap_or_default().fill(byte);
            }
            pages.extend(children(&page));
        }
        disk::write_at(&copy, &page, at)?;
    }
    Ok(())
}

/// Returns the numbers of the pages below the first one, if it is an interior page.
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
