//! The index of words: in which entries each word is. It is a file of its own next to the store, derived from it: whoever
//! deletes it, or damages it, makes searches slower and nothing else.
//!
//! ```text
//! store     of which store it is, and up to which of its operations all is in it but for what the settings keep out: of the
//!           sessions up to one, while the others are taken in, which are as an earlier operation left them
//! reach     up to which entry of a session the index is, after which operation that was so, and how long its live file was then
//! words     an FTS5 table without content: a row for each entry that has words, numbered by session and entry
//! lexicon   all words, as a few sorted lists, among which parts of words are looked for
//! ```
//!
//! FTS5 does not notice each bit that flips in what it reads, and an entry that it does not tell of would not be found. An index
//! that was written to by another hand is therefore no index: `seal.rs` tells. Only a commit writes to the file itself, and seals
//! it; whoever closes an index leaves what is in the log there.
//!
//! Invariant: the words of an entry are there before it counts as reached.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    io::{ErrorKind, Read as _},
    ops::Range,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, config::DbConfig, params};

use super::{
    open::beside,
    query::{self, Emptied, hash},
    seal,
};
use crate::{
    disk,
    model::{EntryNumber, OperationId, OperationNumber, StoreId, WORDS},
    store::{Cursor, SessionKey, Store, StoreError},
};

/// The version of the index, kept as `user_version`; one of another version is made again.
const VERSION: i64 = 5;
/// Marks a file as an index of words: "uTXW".
const APPLICATION_ID: i64 = 0x7554_5857;
/// How many bits of a row's number tell the entry.
const ENTRY_BITS: u32 = 32;
/// How much of the words that come together FTS5 holds before it writes them down, in bytes.
const HELD: i64 = 16 << 20;
/// How much of a list of words is read at once, in bytes.
const PIECE: usize = 128 << 10;
/// How long is waited for another program that has the index for itself.
const PATIENCE: Duration = Duration::from_millis(100);

const SCHEMA: &str = "
  CREATE TABLE store (id BLOB NOT NULL, cursor BLOB, kept_out BLOB, upto INTEGER, earlier BLOB) STRICT;
  CREATE TABLE reach (
    session   INTEGER PRIMARY KEY,
    next      INTEGER NOT NULL,
    operation INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    length    INTEGER,
    path      BLOB
  ) STRICT;
  CREATE TABLE lexicon (
    n    INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT;
  CREATE VIRTUAL TABLE words USING fts5 (w, content='', detail='none', columnsize=0, tokenize='ascii');";

/// How far an index has come in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Up to which of its operations.
    pub cursor: Cursor,
    /// What the settings kept out.
    pub kept_out: Vec<u8>,
    /// If only of some sessions: the last of them, and up to which operation all is there of those behind it, if that is known.
    pub part: Option<(SessionKey, Option<Cursor>)>,
}

impl Settled {
    /// Returns the sessions of which something may be missing, and up to which operation that is known.
    pub fn missing(&self, store: &dyn Store) -> Result<(BTreeSet<SessionKey>, Cursor), StoreError> {
        let (changed, cursor) = store.since(Some(&self.cursor))?;
        let mut missing: BTreeSet<SessionKey> = changed.into_iter().collect();
        if let Some((last, earlier)) = &self.part {
            let (behind, _) = store.since(earlier.as_ref())?;
            missing.extend(behind.into_iter().filter(|session| session > last));
        }
        Ok((missing, cursor))
    }
}

/// How far an index has come in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The first entry that is not in it.
    pub next: EntryNumber,
    /// The newest operation at that time, and its hash.
    pub operation: (OperationNumber, OperationId),
    /// What told then of its live file.
    pub mark: Mark,
}

/// What tells, as long as a session takes in no operation, whether its live file goes beyond it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It has none.
    Nothing,
    /// If it has another length.
    File {
        /// Where it is.
        path: PathBuf,
        /// How long it was.
        length: u64,
    },
    /// Only the session's state tells.
    Unknown,
}

/// An index of words.
pub struct WordIndex {
    db: Connection,
    path: PathBuf,
    /// The words that were added since the last commit.
    fresh: BTreeSet<String>,
}

impl WordIndex {
    /// Returns where the index of a store is, by the store's folder.
    pub fn path(root: &Path) -> PathBuf {
        root.join(WORDS)
    }

    /// Opens the index of a store, if it is there, of this version, and as it was left.
    pub fn open(root: &Path, store: StoreId) -> Result<Option<Self>, StoreError> {
        let path = Self::path(root);
        if seal::holds(&path).unwrap_or(false) { Self::of(path, store) } else { Ok(None) }
    }

    fn of(path: PathBuf, store: StoreId) -> Result<Option<Self>, StoreError> {
        let db = connect(&path)?;
        let pragma = |name| db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0));
        if (pragma("application_id")?, pragma("user_version")?) != (APPLICATION_ID, VERSION) {
            return Ok(None);
        }
        let id: [u8; 16] = db.query_row("SELECT id FROM store", [], |row| row.get(0))?;
        let index = Self { db, path, fresh: BTreeSet::new() };
        Ok((StoreId::new(id) == store).then_some(index))
    }

    /// Makes the index of a store in place of whatever is there; nothing, while another program makes it or writes to it.
    pub fn make(root: &Path, store: StoreId) -> Result<Option<Self>, StoreError> {
        let path = Self::path(root);
        let is_made = seal::renew(&path, || {
            remove(&files(&path))?;
            disk::open_or_make(&path).map_err(StoreError::at(&path))?;
            let mut db = connect(&path)?;
            let making = db.transaction()?;
            making.execute_batch(SCHEMA)?;
            making.execute("INSERT INTO store (id) VALUES (?)", [store.as_bytes()])?;
            making.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", [HELD])?;
            making.pragma_update(None, "application_id", APPLICATION_ID)?;
            making.pragma_update(None, "user_version", VERSION)?;
            making.commit()?;
            empty_log(&db)
        })?;
        if is_made { Self::of(path, store) } else { Ok(None) }
    }

    /// Deletes the index of a store, if there is one.
    pub fn remove(root: &Path) -> Result<(), StoreError> {
        let path = Self::path(root);
        remove(&[seal::path(&path)])?;
        remove(&files(&path))
    }

    /// Holds what it has now: what other programs add from then on is not seen.
    pub fn hold(&self) -> Result<(), StoreError> {
        // A transaction begins to see with the first thing that it reads.
        self.db.execute_batch("BEGIN; SELECT id FROM store")?;
        Ok(())
    }

    /// Returns how far the index has come in each session.
    pub fn reaches(&self) -> Result<BTreeMap<SessionKey, Reach>, StoreError> {
        let mut find = self.db.prepare_cached(REACHES)?;
        Ok(find.query_map([], reach)?.collect::<Result<_, _>>()?)
    }

    /// Returns how far it has come in these.
    pub fn reaches_of(
        &self,
        sessions: &BTreeSet<SessionKey>,
    ) -> Result<BTreeMap<SessionKey, Reach>, StoreError> {
        let mut find = self.db.prepare_cached(&format!("{REACHES} WHERE session = ?"))?;
        let mut found = BTreeMap::new();
        for session in sessions {
            found.extend(find.query_row([session.0], reach).optional()?);
        }
        Ok(found)
    }

    /// Returns how far it has come in those that may have grown without an operation.
    pub fn reaches_of_live(&self) -> Result<BTreeMap<SessionKey, Reach>, StoreError> {
        let live = format!("{REACHES} WHERE length IS NULL OR path IS NOT NULL");
        let mut find = self.db.prepare_cached(&live)?;
        Ok(find.query_map([], reach)?.collect::<Result<_, _>>()?)
    }

    /// Hands over lists that together have every word, each word between line ends.
    pub fn lexicon(&self, each: &mut dyn FnMut(&str)) -> Result<(), StoreError> {
        let corrupt = || StoreError::corrupt("the index", "a list of words cannot be read");
        let mut find = self.db.prepare_cached("SELECT n FROM lexicon")?;
        let lists: Vec<i64> = find.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        // A list may be long: it is read piece by piece, each of which ends where a word does.
        let mut piece = Vec::with_capacity(PIECE);
        for n in lists {
            let mut list = self.db.blob_open("main", "lexicon", "body", n, true)?;
            piece.clear();
            loop {
                let room = (PIECE - piece.len()) as u64;
                if (&mut list).take(room).read_to_end(&mut piece).map_err(|_| corrupt())? == 0 {
                    break;
                }
                let end = piece.iter().rposition(|byte| *byte == b'\n').ok_or_else(corrupt)?;
                let words = piece.get(..=end).and_then(|piece| std::str::from_utf8(piece).ok());
                each(words.ok_or_else(corrupt)?);
                piece.drain(..end);
            }
        }
        Ok(())
    }

    /// Returns the entries that have one word of each of these lists, the newest first: among some of a session or all, and no
    /// more than `limit`.
    pub fn entries(
        &self,
        words: &[Vec<String>],
        among: Option<(SessionKey, Range<EntryNumber>)>,
        limit: usize,
    ) -> Result<Vec<(SessionKey, EntryNumber)>, StoreError> {
        let either = |words: &Vec<String>| {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            format!("({})", quoted.join(" OR "))
        };
        let query = words.iter().map(either).collect::<Vec<_>>().join(" AND ");
        let (from, to) = among.map_or((0, i64::MAX), |(session, among)| {
            (row_of(session, among.start), row_of(session, among.end))
        });
        let mut find = self.db.prepare_cached(
            "SELECT rowid FROM words WHERE words MATCH ? AND rowid >= ? AND rowid < ?
             ORDER BY rowid DESC LIMIT ?",
        )?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = find.query_map(params![query, from, to, limit], |row| {
            let row: i64 = row.get(0)?;
            let entry = row.cast_unsigned() & u64::from(u32::MAX);
            Ok((SessionKey(row >> ENTRY_BITS), EntryNumber::new(entry)))
        })?;
        Ok(found.collect::<Result<_, _>>()?)
    }

    /// Begins to add, unless another program adds.
    pub fn begin(&mut self) -> Result<bool, StoreError> {
        match self.db.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => Ok(true),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Adds an entry with its words, each once.
    pub fn add(
        &mut self,
        session: SessionKey,
        entry: EntryNumber,
        words: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let mut add = self.db.prepare_cached("INSERT INTO words (rowid, w) VALUES (?, ?)")?;
        let mut joined = String::with_capacity(16 * words.len());
        for word in words {
            joined.push_str(word);
            joined.push(' ');
            if !self.fresh.contains(word) {
                self.fresh.insert(word.clone());
            }
        }
        add.execute(params![row_of(session, entry), joined])?;
        Ok(())
    }

    /// Says how far it has come in a session.
    pub fn reach(&mut self, session: SessionKey, reach: &Reach) -> Result<(), StoreError> {
        let (operation, hash) = reach.operation;
        let (length, path) = match &reach.mark {
            Mark::Nothing => (Some(0), None),
            Mark::File { path, length } => (Some(*length), Some(path.as_os_str().as_bytes())),
            Mark::Unknown => (None, None),
        };
        self.db
            .prepare_cached("INSERT OR REPLACE INTO reach VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![session.0, reach.next, operation, hash.as_bytes(), length, path])?;
        Ok(())
    }

    /// Returns how far it has come in the store, if that is known.
    pub fn settled(&self) -> Result<Option<Settled>, StoreError> {
        let sql = "SELECT cursor, kept_out, upto, earlier FROM store";
        let settled = self.db.query_row(sql, [], |row| {
            let found: (Option<Vec<u8>>, Option<Vec<u8>>) = (row.get(0)?, row.get(1)?);
            let (last, earlier): (Option<i64>, Option<Vec<u8>>) = (row.get(2)?, row.get(3)?);
            let part = last.map(|last| (SessionKey(last), earlier.map(Cursor::new)));
            let settled =
                |(cursor, kept_out)| Settled { cursor: Cursor::new(cursor), kept_out, part };
            Ok(found.0.zip(found.1).map(settled))
        })?;
        Ok(settled)
    }

    /// Says so.
    pub fn settle(&self, settled: &Settled) -> Result<(), StoreError> {
        let Settled { cursor, kept_out, part } = settled;
        let last = part.as_ref().map(|(last, _)| last.0);
        let earlier = part.as_ref().and_then(|(_, earlier)| earlier.as_ref().map(Cursor::as_bytes));
        let sql = "UPDATE store SET cursor = ?, kept_out = ?, upto = ?, earlier = ?";
        let mut settle = self.db.prepare_cached(sql)?;
        settle.execute(params![cursor.as_bytes(), kept_out, last, earlier])?;
        Ok(())
    }

    /// Keeps what was added.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        let mut list = std::mem::take(&mut self.fresh);
        // A list takes those before it in until one is at least twice as long, so that there are few.
        let mut size = size_of(&list);
        loop {
            let last =
                "SELECT n, body FROM lexicon WHERE n = (SELECT max(n) FROM lexicon) AND size < ?";
            let found = self.db.prepare_cached(last)?.query_row([size.saturating_mul(2)], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
            });
            let Some((n, body)) = found.optional()? else { break };
            list.extend(body.split_terminator('\n').skip(1).map(str::to_owned));
            size = size_of(&list);
            self.db.prepare_cached("DELETE FROM lexicon WHERE n = ?")?.execute([n])?;
        }
        if !list.is_empty() {
            let mut body = String::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
            for word in &list {
                body.push('\n');
                body.push_str(word);
            }
            body.push('\n');
            self.db
                .prepare_cached("INSERT INTO lexicon (size, body) VALUES (?, ?)")?
                .execute(params![size, body])?;
        }
        self.db.execute_batch("COMMIT")?;
        // What stays in the log while another program seals is taken along by the next commit.
        seal::renew(&self.path, || empty_log(&self.db))?;
        Ok(())
    }
}

impl Drop for WordIndex {
    fn drop(&mut self) {
        // SQLite would write what is in the log to the file itself, which is not sealed then.
        let log = fs::symlink_metadata(beside(&self.path, "-wal"));
        let is_left = log.is_ok_and(|log| log.len() > 0);
        let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, is_left);
    }
}

/// Writes what is in an index's log to its file, as far as no reader needs it as it is.
fn empty_log(db: &Connection) -> Result<(), StoreError> {
    // A search may read for long: the next commit takes along what is left.
    db.busy_timeout(Duration::ZERO)?;
    let emptied = query::empty_wal(db, Emptied::Truncated);
    db.busy_timeout(PATIENCE)?;
    match emptied {
        Err(StoreError::Busy) => Ok(()),
        emptied => emptied,
    }
}

/// Returns an index's own files.
fn files(index: &Path) -> [PathBuf; 3] {
    [index.to_owned(), beside(index, "-wal"), beside(index, "-shm")]
}

/// Deletes those of some files that are there.
fn remove(files: &[PathBuf]) -> Result<(), StoreError> {
    for path in files {
        match fs::remove_file(path) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(StoreError::at(path)(source));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The rows that [`reach`] reads.
const REACHES: &str = "SELECT session, next, operation, hash, length, path FROM reach";

fn reach(row: &Row<'_>) -> rusqlite::Result<(SessionKey, Reach)> {
    let operation = (row.get(2)?, OperationId::new(hash(row, 3)?));
    let mark = match (row.get(4)?, row.get::<_, Option<Vec<u8>>>(5)?) {
        (None, _) => Mark::Unknown,
        (Some(_), None) => Mark::Nothing,
        (Some(length), Some(path)) => Mark::File { path: OsString::from_vec(path).into(), length },
    };
    Ok((SessionKey(row.get(0)?), Reach { next: row.get(1)?, operation, mark }))
}

/// Returns how many bytes a list takes up.
fn size_of(list: &BTreeSet<String>) -> i64 {
    let size: usize = list.iter().map(|word| word.len() + 1).sum();
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Returns the number of an entry's row.
fn row_of(session: SessionKey, entry: EntryNumber) -> i64 {
    let entry = u32::try_from(entry.get()).unwrap_or(u32::MAX);
    session.0 << ENTRY_BITS | i64::from(entry)
}

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(PATIENCE)?;
    // What is not written to the disk yet can be made again. Only what seals the file writes to it.
    db.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         PRAGMA wal_autocheckpoint = 0; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;",
    )?;
    Ok(db)
}
