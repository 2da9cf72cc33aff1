//! Opening: which file is a store, of which version, and with what settings it is read and written.
//!
//! Invariant: a store that is newer, or a file that is none, is refused before anything is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{
    disk::{self, Links},
    store::StoreError,
};

/// The version of parts 1 and 2 of the schema, kept as `user_version`.
pub const FORMAT_VERSION: i64 = 1;
/// The version of the rules by which derived rows are made.
pub const RULES_VERSION: i64 = 3;
/// Marks a file as a store: "uTXT".
const APPLICATION_ID: i64 = 0x7554_5854;
/// SQLite up to 3.51.2 can corrupt a WAL database when two connections write at once.
const OLDEST_SQLITE: i32 = 3_051_003;
/// For how long a program waits for another one that writes.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
const SCHEMA: &str = include_str!("../../../schema.sql");

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read one stable snapshot; nothing is written or made.
    Read,
    /// To write for a while.
    Write,
    /// To write one command's worth, in a process that ends after it.
    Brief,
}

/// Opens a store's file and returns the connection, with the number of pages in its WAL as commits tell it.
pub(super) fn open(
    path: &Path,
    access: Access,
) -> Result<(Connection, Arc<AtomicI32>), StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let found = rusqlite::version();
        return Err(StoreError::Database(
            format!("SQLite {found} is too old to be trusted with a WAL").into(),
        ));
    }
    let present = refuse_header(path)?;
    refuse_companions(path)?;
    let pages = Arc::new(AtomicI32::new(0));
    if access == Access::Read {
        if !present {
            return Err(StoreError::Absent { path: path.to_owned() });
        }
        return Ok((open_to_read(path)?, pages));
    }
    if !present {
        // SQLite would make the file readable by others; it gives its companions the mode of the file itself.
        let made = disk::open_or_make(path);
        made.map_err(|source| StoreError::Io { path: path.to_owned(), source })?;
    }
    let has_wal = wal_of(path).exists();
    let mut db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(|error| cannot_open(error, path))?;
    // SQLite opens what it may not write to read it, and says so only when something is written.
    if db.is_readonly(rusqlite::MAIN_DB)? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    configure(&db)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if !present || version(&db, path)? == 0 {
        create(&mut db)?;
    }
    for statement in missing(&db)? {
        // Another program may make it meanwhile.
        let [table, index] = ["CREATE TABLE ", "CREATE INDEX "].map(|begin| {
            statement.strip_prefix(begin).map(|rest| format!("{begin}IF NOT EXISTS {rest}"))
        });
        db.execute_batch(&table.or(index).unwrap_or_default())?;
    }
    if !has_wal {
        // The names of new files have to reach the disk too, once and not with each first commit of a program.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        disk::sync_folder(folder)
            .map_err(|source| StoreError::Io { path: folder.to_owned(), source })?;
    }
    let told = Arc::clone(&pages);
    db.wal_hook(Some(move |_: &'_ mut rusqlite::hooks::Wal, n| {
        told.store(n, Ordering::Relaxed);
        Ok(())
    }))?;
    Ok((db, pages))
}

fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let look = |db: Connection| {
        configure(&db)?;
        if version(&db, path)? == 0 {
            return Err(StoreError::Absent { path: path.to_owned() });
        }
        for statement in missing(&db)? {
            if let Some(table) = statement.strip_prefix("CREATE TABLE ") {
                db.execute_batch(&format!("CREATE TEMP TABLE {table}"))?;
            }
        }
        db.execute_batch("BEGIN; SELECT count(*) FROM rules")?;
        Ok(db)
    };
    let first = Connection::open_with_flags(path, flags).map_err(StoreError::from).and_then(look);
    let wal_is_empty = || fs::metadata(wal_of(path)).map_or(0, |meta| meta.len()) == 0;
    match first {
        // A WAL database needs companion files even to be read; where none can be made and none is needed, say so.
        Err(StoreError::Database(_) | StoreError::ReadOnly { .. }) if wal_is_empty() => {
            let uri = format!("file:{}?immutable=1", escape_uri(path));
            look(Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?)
        }
        other => other,
    }
}

/// Returns where the WAL of a database lies.
fn wal_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn escape_uri(path: &Path) -> String {
    use std::{fmt::Write, os::unix::ffi::OsStrExt};
    path.as_os_str().as_bytes().iter().fold(String::new(), |mut uri, &byte| {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
        uri
    })
}

fn configure(db: &Connection) -> Result<(), StoreError> {
    db.busy_timeout(PATIENCE)?;
    db.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16000;
         PRAGMA temp_store = MEMORY",
    )?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // One plan a statement, whatever is bound: otherwise each new value prepares it anew.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// What makes the table of token counts in a store that was made without it.
pub(super) const COUNTS: &str = "CREATE TABLE count (
  line   INTEGER NOT NULL,
  rule   INTEGER NOT NULL,
  tokens BLOB NOT NULL,
  PRIMARY KEY (line, rule)
) STRICT, WITHOUT ROWID;";

/// Returns whether the table of token counts is there.
pub(super) fn has_counts(db: &Connection) -> Result<bool, StoreError> {
    let mut find = db.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'count')",
    )?;
    Ok(find.query_row([], |row| row.get(0))?)
}

fn create(db: &mut Connection) -> Result<(), StoreError> {
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another program may have made it meanwhile.
    let made: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if made == 0 {
        transaction.execute_batch(SCHEMA)?;
        transaction.execute("INSERT INTO rules (version) VALUES (?)", [RULES_VERSION])?;
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FORMAT_VERSION}"
        ))?;
    }
    transaction.commit()?;
    // The header is now where the next program looks for it without opening a database.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

/// Returns the statements that make the derived tables and indexes which a store of an older program lacks: what is
/// derived can be made anew, so they change no version.
fn missing(db: &Connection) -> Result<Vec<String>, StoreError> {
    let mut query = db.prepare("SELECT name FROM sqlite_schema")?;
    let names: BTreeSet<String> =
        query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let (_, derived) = SCHEMA.split_once("Part 3: derived\n").unwrap_or_default();
    let is_code = |line: &&str| !line.starts_with("--");
    let derived = derived.lines().filter(is_code).collect::<Vec<_>>().join("\n");
    let lacks = |statement: &&str| {
        let name = statement.split_whitespace().nth(2);
        name.is_some_and(|name| !names.contains(name))
    };
    let statements = derived.split(";\n").map(str::trim);
    Ok(statements.filter(lacks).map(str::to_owned).collect())
}

/// Returns the triggers that are not there, or not as they were made: without them facts could be changed.
pub(super) fn altered(db: &Connection) -> Result<Vec<(String, &'static str)>, StoreError> {
    let triggers = |db: &Connection| -> rusqlite::Result<BTreeMap<String, String>> {
        let mut query = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")?;
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let made = Connection::open_in_memory()?;
    made.execute_batch(SCHEMA)?;
    let found = triggers(db)?;
    let compare = |(name, sql): (String, String)| match found.get(&name) {
        None => Some((format!("trigger {name}"), "it is not there")),
        Some(other) if *other != sql => Some((format!("trigger {name}"), "it was changed")),
        Some(_) => None,
    };
    Ok(triggers(&made)?.into_iter().filter_map(compare).collect())
}

/// Looks at the first bytes of the file and returns whether it holds anything.
fn refuse_header(path: &Path) -> Result<bool, StoreError> {
    let mut header = Vec::new();
    match disk::open(path, Links::Refuse) {
        Ok(file) => file
            .take(100)
            .read_to_end(&mut header)
            .map_err(|source| StoreError::Io { path: path.to_owned(), source })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(StoreError::Io { path: path.to_owned(), source }),
    };
    let number = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        i64::from(bytes.map_or(0, u32::from_be_bytes))
    };
    if header.is_empty() {
        return Ok(false);
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    // Nothing was ever made in a database whose schema has no version: its making was cut short.
    let empty = number(40) == 0;
    refuse_version(path, number(60), number(68), empty).map(|()| true)
}

/// Refuses files beside the database that are none: SQLite would follow a link there, and write where it leads. They are not
/// opened, because closing them would end the locks that another connection of this process has on them.
fn refuse_companions(path: &Path) -> Result<(), StoreError> {
    for end in ["-wal", "-shm", "-journal"] {
        let path = beside(path, end);
        disk::look(&path).map_err(|source| StoreError::Io { path, source })?;
    }
    Ok(())
}

fn refuse_version(
    path: &Path,
    version: i64,
    application: i64,
    empty: bool,
) -> Result<(), StoreError> {
    let ours = application == APPLICATION_ID || (application == 0 && version == 0 && empty);
    if !ours {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if version > FORMAT_VERSION {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found: version,
            known: FORMAT_VERSION,
        });
    }
    Ok(())
}

/// Returns the version as the database itself tells it, newer headers in the WAL included.
fn version(db: &Connection, path: &Path) -> Result<i64, StoreError> {
    let number = |pragma| db.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let version = number("PRAGMA user_version").map_err(|error| cannot_open(error, path))?;
    let empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    refuse_version(path, version, number("PRAGMA application_id")?, empty)?;
    Ok(version)
}

fn cannot_open(error: rusqlite::Error, path: &Path) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            rusqlite::ErrorCode::ReadOnly
            | rusqlite::ErrorCode::CannotOpen
            | rusqlite::ErrorCode::PermissionDenied,
        ) => StoreError::ReadOnly { path: path.to_owned() },
        _ => error.into(),
    }
}
