//! Opening: which file is a store, of which version, and with what settings it is read and written.
//!
//! Invariant: nothing is written before a store of another version, or a file that is not a store, is refused.

use std::{
    collections::BTreeMap,
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

use crate::store::sqlite::{
    open_files::HeldOpen,
    query::{self, Emptied, first},
    witness,
};
use crate::{
    disk::{self, Links},
    model::StoreId,
    store::StoreError,
};

/// The version of the schema, stored as `user_version`. A store of another version is refused. Nothing is released yet, so a
/// change of the tables raises it and needs no migration.
pub const FORMAT_VERSION: i64 = 8;
/// The schema of this version.
pub(super) const SCHEMA: &str = include_str!("../../../schema.sql");
/// The version of the rules for derived rows.
pub const RULES_VERSION: i64 = 17;
/// The application id of a store: "uTXT".
const APPLICATION_ID: i64 = 0x7554_5854;
/// SQLite up to 3.51.2 can corrupt a WAL database when two connections write at once.
const OLDEST_SQLITE: i32 = 3_051_003;
/// How long a program waits for another one that writes.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Why a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read one stable snapshot. Nothing is written or created.
    Read,
    /// To write for a while.
    Write,
    /// To write for one command, in a process that ends after it.
    Brief,
}

/// An opened store file.
pub(super) struct Opened {
    pub(super) db: Connection,
    /// The store's own id.
    pub(super) id: StoreId,
    /// The number of pages in its WAL after the last commit.
    pub(super) wal_pages: Arc<AtomicI32>,
    /// Dropped after the connection.
    pub(super) held: HeldOpen,
}

/// Opens a store's file. If its witness has seen a store there, a file that is not a store is a damaged store.
pub(super) fn open(path: &Path, access: Access) -> Result<Opened, StoreError> {
    match open_unless_foreign(path, access) {
        Err(StoreError::Foreign { .. }) if witness::is_witnessed(path) => {
            Err(StoreError::database("it does not begin like a store, although it was one"))
        }
        opened => opened,
    }
}

fn open_unless_foreign(path: &Path, access: Access) -> Result<Opened, StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let found = rusqlite::version();
        return Err(StoreError::Database(
            format!("SQLite {found} is too old to be trusted with a WAL").into(),
        ));
    }
    // A file that this process has open was checked before.
    let mut header = Header::InLog;
    let held = HeldOpen::of(path, || {
        header = refuse_header(path)?;
        if header == Header::Absent && access != Access::Read && !witness::is_witnessed(path) {
            // SQLite would create it readable by others. It gives the -wal and -shm files the mode of the database.
            let made = disk::open_or_make(path);
            made.map_err(StoreError::at(path))?;
        }
        Ok::<_, StoreError>(())
    })?;
    refuse_companions(path)?;
    let present = header != Header::Absent;
    if let Some(witness) = witness::newest(path).filter(|_| !present) {
        let (path, witnessed) = (path.to_owned(), witness.seq);
        return Err(StoreError::Forgotten { path, witnessed, newest: 0 });
    }
    let wal_pages = Arc::new(AtomicI32::new(0));
    if access == Access::Read {
        if !present {
            return Err(StoreError::Absent { path: path.to_owned() });
        }
        let db = open_to_read(path)?;
        return Ok(Opened { id: own_id(&db)?, db, wal_pages, held });
    }
    let has_wal = wal_of(path).exists();
    let mut db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(|error| cannot_open(error, path))?;
    // SQLite opens a file without write permission for reading, and reports it only at the first write.
    if db.is_readonly(rusqlite::MAIN_DB)? {
        return Err(StoreError::ReadOnly { path: path.to_owned() });
    }
    configure(&db)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if header == Header::Otherwise {
        log(&db)?;
    }
    if !present || version(&db, path)? != FORMAT_VERSION {
        make(&mut db, path)?;
    }
    if !has_wal {
        // New directory entries must reach the disk too: once here, instead of at each program's first commit.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        disk::sync_folder(folder).map_err(StoreError::at(folder))?;
    }
    let told = Arc::clone(&wal_pages);
    db.wal_hook(Some(move |_: &'_ mut rusqlite::hooks::Wal, n| {
        told.store(n, Ordering::Relaxed);
        Ok(())
    }))?;
    Ok(Opened { id: own_id(&db)?, db, wal_pages, held })
}

/// Opens a store's file again, for a thread that reads adjacent data.
pub(super) fn to_read_on(path: &Path) -> Result<Opened, StoreError> {
    let opened = open(path, Access::Read)?;
    opened.db.execute_batch("PRAGMA cache_size = -2000")?;
    Ok(opened)
}

/// Returns the id that was drawn when the store was created.
fn own_id(db: &Connection) -> Result<StoreId, StoreError> {
    let found = first(db, "SELECT id FROM store WHERE key = 1", [], |row| row.get(0))?;
    found.map(StoreId::new).ok_or_else(|| StoreError::corrupt("store", "it has no id"))
}

fn open_to_read(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let look = |db: Connection| {
        configure(&db)?;
        if version(&db, path)? == 0 {
            return Err(StoreError::Absent { path: path.to_owned() });
        }
        db.execute_batch("BEGIN; SELECT version FROM rules")?;
        Ok(db)
    };
    // Open by a URI with a parameter for SQLite.
    let told = |what: &str| {
        let uri = format!("file:{}?{what}", escape_uri(path));
        look(Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?)
    };
    let first = Connection::open_with_flags(path, flags).map_err(StoreError::from).and_then(look);
    let wal_is_empty = || fs::metadata(wal_of(path)).map_or(0, |meta| meta.len()) == 0;
    match first {
        // A WAL database needs its companion files even for reading. Where they cannot be created and the WAL is empty, open it
        // as immutable.
        Err(StoreError::Database(_) | StoreError::Io { .. } | StoreError::ReadOnly { .. })
            if wal_is_empty() =>
        {
            told("immutable=1")
        }
        // A needed file cannot be created in a read-only folder, and the contents of the WAL must not be ignored.
        Err(error) if is_unopened(&error) && !beside(path, "-shm").exists() => {
            let why = "undertext needs this file to read the newest changes in store.db-wal, but cannot create it there: copy the folder to a place where you can write";
            let source = std::io::Error::other(why);
            Err(StoreError::Io { path: beside(path, "-shm"), source })
        }
        // The disk has no room for the WAL's index, which is built in memory if its file is declared read-only.
        Err(StoreError::Full) => told("readonly_shm=1"),
        other => other,
    }
}

/// Returns true if SQLite reports that it cannot open a file that it needs.
fn is_unopened(error: &StoreError) -> bool {
    match error {
        StoreError::ReadOnly { .. } => true,
        StoreError::Database(why) => {
            let why =
                why.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
            why == Some(rusqlite::ErrorCode::CannotOpen)
        }
        _ => false,
    }
}

fn wal_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// Returns the path of a companion file of a database.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
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
    // One query plan for all bound values; otherwise new values would prepare the statement again.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.set_prepared_statement_cache_capacity(128);
    Ok(())
}

/// Switches the store to WAL mode, on which durability relies. Another program may have changed the mode.
fn log(db: &Connection) -> Result<(), StoreError> {
    let mode: String = db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(StoreError::Database(
        format!("SQLite cannot keep a WAL there: its journal mode is {mode}").into(),
    ))
}

/// What is at the path of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    /// Nothing, or an empty file.
    Absent,
    /// A store in WAL mode.
    InLog,
    /// A store in another journal mode.
    Otherwise,
}

/// Creates a store in an empty file.
fn make(db: &mut Connection, path: &Path) -> Result<(), StoreError> {
    log(db)?;
    let transaction = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    // Another program may have created it in the meantime.
    if version(&transaction, path)? == 0 {
        transaction.execute_batch(SCHEMA)?;
        transaction.execute("INSERT INTO rules (version) VALUES (?)", [RULES_VERSION])?;
        transaction.execute(
            "INSERT INTO store (key, id) VALUES (1, ?)",
            [uuid::Uuid::new_v4().into_bytes()],
        )?;
        transaction.execute_batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))?;
        transaction.execute_batch(&format!("PRAGMA user_version = {FORMAT_VERSION}"))?;
    }
    transaction.commit()?;
    // Now the header is in the file itself, where the next program reads it without opening a database. A reader of an older
    // state delays that, and then the next program opens the database instead.
    match query::empty_wal(db, Emptied::Truncated) {
        Err(StoreError::Busy) => Ok(()),
        emptied => emptied,
    }
}

/// Returns the tables, indexes and triggers that are missing or changed, and unknown triggers: these could let facts change, or
/// rows be misread.
pub(super) fn altered(db: &Connection) -> Result<Vec<(String, &'static str)>, StoreError> {
    let parts = |db: &Connection| -> rusqlite::Result<BTreeMap<String, String>> {
        let mut query =
            db.prepare("SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
        query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let made = Connection::open_in_memory()?;
    made.execute_batch(SCHEMA)?;
    let (made, found) = (parts(&made)?, parts(db)?);
    let compare = |(name, sql): (&String, &String)| match found.get(name) {
        None => Some((name.clone(), "it is missing")),
        Some(other) if other != sql => Some((name.clone(), "it was changed")),
        Some(_) => None,
    };
    let is_strange = |name: &&String| name.starts_with("trigger ") && !made.contains_key(*name);
    let strange = found.keys().filter(is_strange);
    let strange = strange.map(|name| (name.clone(), "it does not belong to a store"));
    Ok(made.iter().filter_map(compare).chain(strange).collect())
}

/// Checks the first bytes of the file, and returns what it contains.
fn refuse_header(path: &Path) -> Result<Header, StoreError> {
    let mut header = Vec::new();
    match disk::open(path, Links::Refuse) {
        Ok(file) => file.take(100).read_to_end(&mut header).map_err(StoreError::at(path))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Header::Absent),
        Err(error) => return Err(StoreError::at(path)(error)),
    };
    let number = |at: usize| {
        let bytes = header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        i64::from(bytes.map_or(0, u32::from_be_bytes))
    };
    if header.is_empty() {
        return Ok(Header::Absent);
    }
    if !header.starts_with(b"SQLite format 3\0") {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    // SQLite would report these only as unknown or as not writable.
    let ways = header.get(18..20).unwrap_or_default();
    let is_sound = number(44) <= 4 && number(56) <= 1 && ways.iter().all(|way| *way <= 2);
    if !is_sound && number(68) == APPLICATION_ID {
        return Err(StoreError::database("its header is not that of a store"));
    }
    // Nothing was ever created in a database without a schema version: its creation was interrupted.
    let empty = number(40) == 0;
    refuse_version(path, number(60), number(68), empty)?;
    let is_in_log = header.get(18..20) == Some(&[2, 2]);
    Ok(if is_in_log { Header::InLog } else { Header::Otherwise })
}

/// Refuses companions of the database that are not files, because SQLite would follow a link and write to its target. They are
/// not opened: closing them would release the locks of this process's other connections.
fn refuse_companions(path: &Path) -> Result<(), StoreError> {
    for end in ["-wal", "-shm", "-journal"] {
        let path = beside(path, end);
        disk::look(&path).map_err(StoreError::at(&path))?;
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
    let (path, found) = (path.to_owned(), version);
    match found {
        0 | FORMAT_VERSION => Ok(()),
        FORMAT_VERSION.. => Err(StoreError::Newer { path, found, known: FORMAT_VERSION }),
        _ => Err(StoreError::Old { path, found, known: FORMAT_VERSION }),
    }
}

/// Returns the version according to the database, including newer headers in the WAL.
fn version(db: &Connection, path: &Path) -> Result<i64, StoreError> {
    let number = |pragma| db.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let version = number("PRAGMA user_version").map_err(|error| cannot_open(error, path))?;
    // A database with a version is not empty.
    let empty = version == 0 && number("SELECT count(*) FROM sqlite_schema")? == 0;
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
