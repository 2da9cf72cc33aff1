//! The first page, and those that it leads to, say where all tables are. Where they cannot be read, a copy of the database
//! gets another list of tables, which is put together from what its pages hold.
//!
//! ```text
//! listed    a page with rows of the old list: it is still there if only the pages above it are damaged
//! usual     where a store of this version has its tables when it is made, or when it is written in order
//! none      a table without a page: an empty one
//! ```
//!
//! Invariant: a table is read from a page on only if that looks like one of the table's.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind, Read as _},
    os::unix::fs::FileExt,
    path::Path,
};

use rusqlite::{Connection, OpenFlags, params};

use super::{
    super::{
        open::{SCHEMA, beside},
        query::{self, Emptied, collect},
    },
    page::{Field, Likeness, PAGE, Pages},
};
use crate::{
    disk::{self, Links},
    store::StoreError,
};

/// How long the header of a database is: the first page of the list of tables begins behind it.
const HEADER: usize = 100;
/// The tables without which nothing of a store can be read.
const NEEDED: [&str; 12] = [
    "session",
    "store",
    "operation",
    "journal",
    "entry",
    "run",
    "checkpoint",
    "origin",
    "words",
    "kept",
    "segment",
    "fresh",
];

/// A table of a store of this version.
struct Table {
    name: String,
    sql: String,
    columns: usize,
    root: u32,
}

impl Table {
    fn likeness(&self, pages: &Pages<'_>, root: u32) -> Option<Likeness> {
        pages.likeness(root, !self.sql.ends_with("WITHOUT ROWID"), self.columns)
    }
}

/// Opens a damaged store to read it; if its list of tables is damaged, a copy of it, made next to the fresh store.
pub(super) fn open(damaged: &Path, fresh: &Path) -> Result<Connection, StoreError> {
    if !damaged.exists() {
        // Nothing is left of it but what lies around it.
        return empty();
    }
    match look(damaged) {
        Err(StoreError::Corrupt { .. } | StoreError::Database(_)) => {}
        opened => return opened,
    }
    let copy = fresh.with_file_name("copy.db");
    let io = StoreError::at(&copy);
    copy_of(damaged, &copy).map_err(io)?;
    let log = beside(&copy, "-wal");
    if let Err(error) = copy_of(&beside(damaged, "-wal"), &log)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(io(error));
    }
    empty_log(&copy, fresh)?;
    match list_again(&copy, fresh).and_then(|()| look(&copy)) {
        Err(StoreError::Corrupt { .. } | StoreError::Database(_)) => empty(),
        opened => opened,
    }
}

/// Returns whether a database has anything but zeros behind its first page; one that cannot be read may have.
pub(super) fn has_more(database: &Path) -> bool {
    let mut page = vec![0; PAGE];
    let mut look = || -> io::Result<bool> {
        let mut file = disk::open(database, Links::Refuse)?;
        file.read_exact(&mut page)?;
        loop {
            match file.read(&mut page)? {
                0 => return Ok(false),
                n if page.iter().take(n).any(|byte| *byte != 0) => return Ok(true),
                _ => {}
            }
        }
    };
    look().unwrap_or(true)
}

/// Opens a database that has a list of tables, and all that are needed in it.
fn look(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table'";
    let names: Vec<String> = collect(&db, sql, [], |row| row.get(0))?;
    match NEEDED.iter().find(|needed| !names.iter().any(|name| name == **needed)) {
        Some(needed) => Err(StoreError::corrupt(format!("table {needed}"), "it is missing")),
        None => Ok(db),
    }
}

/// Returns a store of which nothing can be read.
fn empty() -> Result<Connection, StoreError> {
    let db = Connection::open_in_memory()?;
    db.execute_batch(SCHEMA)?;
    Ok(db)
}

fn copy_of(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = disk::open(from, Links::Refuse)?;
    io::copy(&mut from, &mut disk::make(to)?)?;
    Ok(())
}

fn open_to_write(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(path, flags)?)
}

/// Moves the log of the copy into the database, so that all pages lie there.
fn empty_log(copy: &Path, fresh: &Path) -> Result<(), StoreError> {
    write_first_page(copy, fresh)?;
    let moved = open_to_write(copy).and_then(|db| {
        // SQLite looks for a log with the first read.
        db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        query::empty_wal(&db, Emptied::Truncated)
    });
    if matches!(moved, Err(StoreError::Full | StoreError::Io { .. })) {
        return moved;
    }
    // What is left of a log that cannot be read would hide the page that is written now.
    for end in ["-wal", "-shm"] {
        let path = beside(copy, end);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(StoreError::Io { path, source });
            }
            _ => {}
        }
    }
    write_first_page(copy, fresh)
}

/// Writes a first page with an empty list of tables.
fn write_first_page(copy: &Path, fresh: &Path) -> Result<(), StoreError> {
    let write = || -> io::Result<()> {
        let mut page = vec![0; PAGE];
        let header = page.get_mut(..HEADER).unwrap_or_default();
        disk::open(fresh, Links::Refuse)?.read_exact_at(header, 0)?;
        // No pages are free, and the length is not known: without a valid one, SQLite asks the file.
        for (at, bytes) in [(28, [0; 4]), (32, [0; 4]), (36, [0; 4]), (92, [0xff; 4])] {
            page.get_mut(at..at + 4).unwrap_or_default().copy_from_slice(&bytes);
        }
        // A page for rows, which has none: its content begins at its end.
        let rows = [13, 0, 0, 0, 0, 0x10, 0, 0];
        page.get_mut(HEADER..HEADER + 8).unwrap_or_default().copy_from_slice(&rows);
        disk::write_at(&disk::open_or_make(copy)?, &page, 0)
    };
    write().map_err(StoreError::at(copy))
}

/// Puts the list of tables together and writes it into the copy.
fn list_again(copy: &Path, fresh: &Path) -> Result<(), StoreError> {
    let tables = tables(fresh)?;
    let roots = roots(copy, fresh, &tables)?;
    let db = open_to_write(copy)?;
    db.execute_batch("PRAGMA writable_schema = ON; BEGIN")?;
    for table in &tables {
        match roots.get(&table.name) {
            Some(root) => {
                db.execute(
                    "INSERT INTO sqlite_schema VALUES ('table', ?1, ?1, ?2, ?3)",
                    params![table.name, root, table.sql],
                )?;
            }
            None => db.execute_batch(&table.sql)?,
        }
    }
    Ok(db.execute_batch("COMMIT")?)
}

/// Returns the tables of a store, as it lists them.
fn tables(store: &Path) -> Result<Vec<Table>, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let sql = "SELECT s.name, s.sql, (SELECT count(*) FROM pragma_table_info(s.name)), s.rootpage
               FROM sqlite_schema s WHERE s.type = 'table'";
    collect(&Connection::open_with_flags(store, flags)?, sql, [], |row| {
        Ok(Table { name: row.get(0)?, sql: row.get(1)?, columns: row.get(2)?, root: row.get(3)? })
    })
}

/// Returns the page at which each table begins, as far as there is one.
fn roots(copy: &Path, fresh: &Path, tables: &[Table]) -> Result<BTreeMap<String, u32>, StoreError> {
    let file = disk::open(copy, Links::Refuse).map_err(StoreError::at(copy))?;
    let pages = Pages::of(&file).map_err(StoreError::at(copy))?;
    let mut roots = listed(&pages, tables);
    if tables.iter().all(|table| roots.contains_key(&table.name)) {
        return Ok(roots);
    }
    // Where a store that was written in order has its tables, one shows that holds nothing.
    let ordered = fresh.with_file_name("ordered.db");
    let mut layouts = vec![self::tables(fresh)?];
    if let Some(place) = ordered.to_str()
        && open_to_write(fresh)?.execute("VACUUM INTO ?", [place]).is_ok()
    {
        layouts.push(self::tables(&ordered)?);
    }
    let score = |layout: &&Vec<Table>| -> usize {
        let one = |table: &Table| match roots.get(&table.name) {
            Some(root) => usize::from(*root == table.root) * 2,
            None => table.likeness(&pages, table.root).map_or(0, |like| 1 + like as usize),
        };
        layout.iter().map(one).sum()
    };
    let usual = layouts.iter().max_by_key(score);
    let usual: Vec<(String, u32)> = usual
        .into_iter()
        .flatten()
        .filter(|table| table.likeness(&pages, table.root).is_some())
        .map(|table| (table.name.clone(), table.root))
        .collect();
    for (name, root) in usual {
        if !roots.values().any(|other| *other == root) {
            roots.entry(name).or_insert(root);
        }
    }
    Ok(roots)
}

/// Returns where rows of the old list, on whatever page they lie, say that tables begin.
fn listed(pages: &Pages<'_>, tables: &[Table]) -> BTreeMap<String, u32> {
    let mut found: BTreeMap<String, (Likeness, u32)> = BTreeMap::new();
    for page in pages.numbers.clone().filter_map(|number| pages.page(number)) {
        for row in page.rows() {
            let [
                Field::Bytes(b"table", _),
                Field::Bytes(name, _),
                Field::Bytes(..),
                Field::Number(root),
                Field::Bytes(sql, _),
            ] = row[..]
            else {
                continue;
            };
            let table = tables.iter().find(|table| table.name.as_bytes() == name);
            let is_of = |table: &&Table| table.sql.as_bytes().starts_with(sql) && !sql.is_empty();
            let Some(table) = table.filter(is_of) else { continue };
            let Ok(root) = u32::try_from(root) else { continue };
            if let Some(like) = table.likeness(pages, root) {
                let best = found.entry(table.name.clone()).or_insert((like, root));
                *best = (*best).max((like, root));
            }
        }
    }
    found.into_iter().map(|(name, (_, root))| (name, root)).collect()
}
