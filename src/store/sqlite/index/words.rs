//! The word index: the entries that contain each word, and its weight in them. It is a separate file next to the store, derived
//! from it: deleting or damaging it makes searches slower and does nothing else.
//!
//! ```text
//! store     the id of the store, and the operation up to which everything is indexed, except what the settings exclude;
//!           during an update, the last session that is up to date, and the earlier operation up to which the others are
//! reach     the first entry of a session that is not indexed, the newest operation at that time, and the length of its live file
//! piece     consecutive entries of a session; each entry is a document with a number
//! segment   the words of some documents, with higher document numbers than in all earlier segments
//! block     part of a segment: consecutive words in order, each with its list of documents
//! ```
//!
//! A list is a sequence of varints: the distance of a document from the one before it, with the weight of the word in the lowest
//! bits. A new segment absorbs the ones before it until one is at least twice as long, so there are few. A long segment stays as
//! it is.
//!
//! An index that another program wrote to is not used; see `seal.rs`. Only a commit writes to the file itself, and seals it;
//! closing an index leaves the contents of the WAL there.
//!
//! Invariant: no entry counts as indexed before its words are in the index.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs,
    io::ErrorKind,
    ops::{Range, RangeInclusive},
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, config::DbConfig, params};

use crate::store::sqlite::{
    index::seal,
    open::beside,
    query::{self, Emptied, execute, hash},
};
use crate::{
    disk,
    model::{
        EntryNumber, Lookup, OperationId, OperationNumber, StoreId, WORDS, put_varint, take_varint,
    },
    store::{Cursor, SessionKey, Store, StoreError},
};

/// The version of the index, stored as `user_version`. An index of another version is built again.
const VERSION: i64 = 7;
/// The application id of a word index: "uTXW".
const APPLICATION_ID: i64 = 0x7554_5857;
/// How many low bits of a list's varints are the weight.
const WEIGHT_BITS: u32 = 4;
/// About how many bytes of words, and of lists, a block has.
const WORDS_OF_BLOCK: usize = 8 << 10;
const LISTS_OF_BLOCK: usize = 64 << 10;
/// How many bytes are gathered before they become a segment.
const HELD: usize = 16 << 20;
/// A segment with at least this many bytes is never merged.
const LONG: usize = 8 << 20;
/// How long to wait for another program that has locked the index.
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
  CREATE TABLE piece (
    first   INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    entry   INTEGER NOT NULL,
    count   INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE segment (
    n    INTEGER PRIMARY KEY,
    size INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE block (
    n       INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL,
    first   TEXT NOT NULL,
    words   TEXT NOT NULL,
    lists   BLOB NOT NULL
  ) STRICT;
  CREATE INDEX block_first ON block (segment, first);";

/// The number of a document: an entry in the index.
pub type Document = u64;

/// The weight of a word in a document, from 1 to [`WEIGHTS`].
pub type Weight = u8;

/// The maximum weight.
pub const WEIGHTS: Weight = (1 << WEIGHT_BITS) - 1;

/// Consecutive entries of a session with consecutive document numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The document of its first entry.
    pub first: Document,
    /// The session.
    pub session: SessionKey,
    /// Its entries.
    pub entries: Range<EntryNumber>,
}

impl Piece {
    /// Returns true if it contains a document.
    pub fn has(&self, document: Document) -> bool {
        let count = self.entries.end.since(self.entries.start);
        (self.first..self.first + count).contains(&document)
    }
}

/// How much of a store an index covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The operations that it covers.
    pub cursor: Cursor,
    /// A digest of the settings' exclusions.
    pub kept_out: Vec<u8>,
    /// If it covers only some sessions so far: the last of them, and the operation up to which the others are covered, if known.
    pub part: Option<(SessionKey, Option<Cursor>)>,
}

impl Settled {
    /// Returns the sessions that may have something missing, and the operation up to which that is known.
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

/// How much of a session an index covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The first entry that is not in it.
    pub next: EntryNumber,
    /// The newest operation at that time, and its hash.
    pub operation: (OperationNumber, OperationId),
    /// What was known of its live file at that time.
    pub mark: Mark,
}

/// How to tell whether the live file has more than a session without new operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// There is no live file.
    Nothing,
    /// It has more if its length differs.
    File {
        /// The path of the file.
        path: PathBuf,
        /// Its length.
        length: u64,
    },
    /// Only the session's state can tell.
    Unknown,
}

/// A word index.
pub struct WordIndex {
    db: Connection,
    path: PathBuf,
    fresh: Fresh,
}

/// What was added since the last segment was made.
#[derive(Default)]
struct Fresh {
    /// The number after the last document.
    documents: Document,
    lists: Lookup<String, List>,
    size: usize,
}

/// The documents with a word.
#[derive(Default)]
struct List {
    bytes: Vec<u8>,
    last: Document,
}

impl List {
    fn push(&mut self, document: Document, weight: Weight) {
        let step = document - self.last;
        put_varint(&mut self.bytes, step << WEIGHT_BITS | u64::from(weight));
        self.last = document;
    }
}

/// Passes on the documents of a list.
fn read_list(mut list: &[u8], each: &mut dyn FnMut(Document, Weight)) {
    let mut document = 0;
    while let Some(step) = take_varint(&mut list) {
        document += step >> WEIGHT_BITS;
        each(document, u8::try_from(step & u64::from(WEIGHTS)).unwrap_or(WEIGHTS));
    }
}

impl WordIndex {
    /// Returns the path of a store's index, given the store's folder.
    pub fn path(root: &Path) -> PathBuf {
        root.join(WORDS)
    }

    /// Opens the index of a store, if it exists, has this version, and matches its seal.
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
        let index = Self { db, path, fresh: Fresh::default() };
        Ok((StoreId::new(id) == store).then_some(index))
    }

    /// Creates the index of a store, replacing any existing one. Returns nothing while another program creates it or writes to
    /// it.
    pub fn make(root: &Path, store: StoreId) -> Result<Option<Self>, StoreError> {
        let path = Self::path(root);
        let is_made = seal::renew(&path, || {
            remove(&files(&path))?;
            disk::open_or_make(&path).map_err(StoreError::at(&path))?;
            let mut db = connect(&path)?;
            let making = db.transaction()?;
            making.execute_batch(SCHEMA)?;
            making.execute("INSERT INTO store (id) VALUES (?)", [store.as_bytes()])?;
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

    /// Takes a snapshot: what other programs add from now on is not visible.
    pub fn hold(&self) -> Result<(), StoreError> {
        // A transaction's snapshot begins with its first read.
        self.db.execute_batch("BEGIN; SELECT id FROM store")?;
        Ok(())
    }

    /// Returns the reach in each session.
    pub fn reaches(&self) -> Result<BTreeMap<SessionKey, Reach>, StoreError> {
        let mut find = self.db.prepare_cached(REACHES)?;
        Ok(find.query_map([], reach)?.collect::<Result<_, _>>()?)
    }

    /// Returns the reaches in these sessions.
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

    /// Returns the reaches in sessions that may have grown without an operation.
    pub fn reaches_of_live(&self) -> Result<BTreeMap<SessionKey, Reach>, StoreError> {
        let live = format!("{REACHES} WHERE length IS NULL OR path IS NOT NULL");
        let mut find = self.db.prepare_cached(&live)?;
        Ok(find.query_map([], reach)?.collect::<Result<_, _>>()?)
    }

    /// Returns the number after the last document.
    pub fn documents(&self) -> Result<Document, StoreError> {
        let sql = "SELECT first + count FROM piece ORDER BY first DESC LIMIT 1";
        Ok(self.db.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    /// Returns the piece that contains a document.
    pub fn piece(&self, document: Document) -> Result<Piece, StoreError> {
        let sql = "SELECT first, session, entry, count FROM piece WHERE first <= ? ORDER BY first DESC LIMIT 1";
        let piece = self.db.prepare_cached(sql)?.query_row([document], |row| {
            let entry: EntryNumber = row.get(2)?;
            let (first, session) = (row.get(0)?, SessionKey(row.get(1)?));
            Ok(Piece { first, session, entries: entry..entry.plus(row.get(3)?) })
        });
        piece.map_err(StoreError::from)
    }

    /// Passes on the documents with certain words, block by block. `chosen` gets all words of a block, each between line ends,
    /// and returns the indexes of those it selects. Only blocks with words in the range `words` are read.
    pub fn find(
        &self,
        words: &RangeInclusive<&str>,
        chosen: &mut dyn FnMut(&str) -> Vec<usize>,
        each: &mut dyn FnMut(Document, Weight),
    ) -> Result<(), StoreError> {
        let mut segments = self.db.prepare_cached("SELECT n FROM segment")?;
        let mut blocks = self.db.prepare_cached(
            "SELECT n, words FROM block WHERE segment = ?1 AND first <= ?3 AND first >=
             (SELECT coalesce(max(first), '') FROM block WHERE segment = ?1 AND first <= ?2)",
        )?;
        let mut lists = self.db.prepare_cached("SELECT lists FROM block WHERE n = ?")?;
        let mut segments = segments.query([])?;
        while let Some(row) = segments.next()? {
            let segment: i64 = row.get(0)?;
            let mut blocks = blocks.query(params![segment, words.start(), words.end()])?;
            while let Some(row) = blocks.next()? {
                let corrupt = || StoreError::corrupt("the index", "a list cannot be read");
                let text = row.get_ref(1)?.as_str().map_err(|_| corrupt())?;
                let chosen = chosen(text);
                if chosen.is_empty() {
                    continue;
                }
                lists.query_row([row.get::<_, i64>(0)?], |row| {
                    let all = Lists(row.get_ref(0)?.as_blob()?);
                    let mut chosen = chosen.iter().peekable();
                    for (n, list) in all.enumerate() {
                        if chosen.next_if_eq(&&n).is_some() {
                            read_list(list, each);
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Begins to add, unless another program is adding.
    pub fn begin(&mut self) -> Result<bool, StoreError> {
        match self.db.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => {}
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.fresh = Fresh { documents: self.documents()?, ..Fresh::default() };
        Ok(true)
    }

    /// Adds entries of a session, with their words and the weight of each word.
    pub fn add(
        &mut self,
        session: SessionKey,
        entries: &Range<EntryNumber>,
        words: &[(EntryNumber, Vec<(String, Weight)>)],
    ) -> Result<(), StoreError> {
        let Fresh { documents, lists, size } = &mut self.fresh;
        let count = entries.end.since(entries.start);
        if count == 0 {
            return Ok(());
        }
        let sql = "INSERT INTO piece VALUES (?, ?, ?, ?)";
        execute(&self.db, sql, params![*documents, session.0, entries.start, count])?;
        for (entry, words) in words {
            let document = *documents + entry.since(entries.start);
            for (word, weight) in words {
                *size += 2;
                if let Some(list) = lists.get_mut(word) {
                    list.push(document, *weight);
                } else {
                    let mut list = List::default();
                    list.push(document, *weight);
                    *size += word.len();
                    lists.insert(word.clone(), list);
                }
            }
        }
        *documents += count;
        if *size < HELD { Ok(()) } else { self.flush() }
    }

    /// Makes a segment of what was added, merged with the last segments that are not much longer.
    fn flush(&mut self) -> Result<(), StoreError> {
        let fresh = Fresh { documents: self.fresh.documents, ..Fresh::default() };
        let Fresh { mut lists, mut size, .. } = std::mem::replace(&mut self.fresh, fresh);
        if lists.len() == 0 {
            return Ok(());
        }
        let last =
            "SELECT n, size FROM segment WHERE size < ? AND n = (SELECT max(n) FROM segment)";
        let mut last = self.db.prepare_cached(last)?;
        let mut blocks =
            self.db.prepare_cached("SELECT words, lists FROM block WHERE segment = ?")?;
        while let Some((n, taken)) = last
            .query_row([LONG.min(size.saturating_mul(2))], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?
        {
            let (n, taken): (i64, usize) = (n, taken);
            let mut found = blocks.query([n])?;
            while let Some(row) = found.next()? {
                let (words, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
                for (word, bytes) in words.trim_matches('\n').split('\n').zip(Lists(&bytes)) {
                    let mut list = List { bytes: bytes.to_vec(), last: 0 };
                    read_list(bytes, &mut |document, _| list.last = document);
                    let word = word.to_owned();
                    if let Some(newer) = lists.get_mut(&word) {
                        read_list(&newer.bytes, &mut |document, weight| {
                            list.push(document, weight);
                        });
                        *newer = list;
                    } else {
                        lists.insert(word, list);
                    }
                }
            }
            self.db.execute("DELETE FROM block WHERE segment = ?", [n])?;
            self.db.execute("DELETE FROM segment WHERE n = ?", [n])?;
            size += taken;
        }
        let n = "INSERT INTO segment (size) VALUES (?) RETURNING n";
        let n: i64 = self.db.prepare_cached(n)?.query_row([size], |row| row.get(0))?;
        let mut keep = self.db.prepare_cached(
            "INSERT INTO block (segment, first, words, lists) VALUES (?, ?, ?, ?)",
        )?;
        let (mut words, mut bytes) = ("\n".to_owned(), Vec::new());
        let mut lists = lists.sorted().into_iter().peekable();
        while let Some((word, list)) = lists.next() {
            words.push_str(&word);
            words.push('\n');
            put_varint(&mut bytes, list.bytes.len() as u64);
            bytes.extend(&list.bytes);
            let is_full = words.len() >= WORDS_OF_BLOCK || bytes.len() >= LISTS_OF_BLOCK;
            if is_full || lists.peek().is_none() {
                keep.execute(params![n, words.lines().nth(1), words, bytes])?;
                words.truncate(1);
                bytes.clear();
            }
        }
        Ok(())
    }

    /// Sets the reach in a session.
    pub fn reach(&mut self, session: SessionKey, reach: &Reach) -> Result<(), StoreError> {
        let (operation, hash) = reach.operation;
        let (length, path) = match &reach.mark {
            Mark::Nothing => (Some(0), None),
            Mark::File { path, length } => (Some(*length), Some(path.as_os_str().as_bytes())),
            Mark::Unknown => (None, None),
        };
        let sql = "INSERT OR REPLACE INTO reach VALUES (?, ?, ?, ?, ?, ?)";
        let row = params![session.0, reach.next, operation, hash.as_bytes(), length, path];
        execute(&self.db, sql, row)
    }

    /// Returns how much of the store is covered, if known.
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

    /// Sets how much of the store is covered.
    pub fn settle(&self, settled: &Settled) -> Result<(), StoreError> {
        let Settled { cursor, kept_out, part } = settled;
        let last = part.as_ref().map(|(last, _)| last.0);
        let earlier = part.as_ref().and_then(|(_, earlier)| earlier.as_ref().map(Cursor::as_bytes));
        let sql = "UPDATE store SET cursor = ?, kept_out = ?, upto = ?, earlier = ?";
        let mut settle = self.db.prepare_cached(sql)?;
        settle.execute(params![cursor.as_bytes(), kept_out, last, earlier])?;
        Ok(())
    }

    /// Commits what was added.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        self.flush()?;
        self.db.execute_batch("COMMIT")?;
        // If another program is sealing, the WAL stays, and the next commit moves it too.
        seal::renew(&self.path, || empty_log(&self.db))?;
        Ok(())
    }
}

/// The lists of a block.
struct Lists<'b>(&'b [u8]);

impl<'b> Iterator for Lists<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        let length = usize::try_from(take_varint(&mut self.0)?).ok()?;
        let (list, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(list)
    }
}

impl Drop for WordIndex {
    fn drop(&mut self) {
        // SQLite would move the WAL into the file, which would then no longer match its seal.
        let log = fs::symlink_metadata(beside(&self.path, "-wal"));
        let is_left = log.is_ok_and(|log| log.len() > 0);
        let _ = self.db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, is_left);
    }
}

/// Moves an index's WAL into its file, as far as no reader needs it.
fn empty_log(db: &Connection) -> Result<(), StoreError> {
    // A search may read for long: the next commit moves the rest.
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

/// Deletes these files if they exist.
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

fn connect(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(PATIENCE)?;
    // What is not on disk yet can be built again. Only sealing writes to the file itself.
    db.execute_batch(
        "PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
         PRAGMA wal_autocheckpoint = 0; PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF;",
    )?;
    Ok(db)
}
