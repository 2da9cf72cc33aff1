//! The index of words: in which entries each word is, and how much it tells of them. It is a file of its own next to the store,
//! derived from it: whoever deletes it, or damages it, makes searches slower and nothing else.
//!
//! ```text
//! store     of which store it is, and up to which of its operations all is in it but for what the settings keep out: of the
//!           sessions up to one, while the others are taken in, which are as an earlier operation left them
//! reach     up to which entry of a session the index is, after which operation that was so, and how long its live file was then
//! piece     entries of a session that lie together; each entry is a document, which is known by its number
//! segment   the words of some documents, all of which come behind those of the segments before it
//! block     of a segment: words that follow each other, sorted, and for each of them its list: the documents that have it
//! ```
//!
//! A list is a row of varints: how far a document is behind the one before it, and in the lowest bits the weight of the word in it.
//! A segment takes in those before it until one is at least twice as long, so that there are few; a long one stays as it is.
//!
//! An index that was written to by another hand is no index: `seal.rs` tells. Only a commit writes to the file itself, and seals
//! it; whoever closes an index leaves what is in the log there.
//!
//! Invariant: the words of an entry are there before it counts as reached.

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
    query::{self, Emptied, hash},
};
use crate::{
    disk,
    model::{
        EntryNumber, Lookup, OperationId, OperationNumber, StoreId, WORDS, put_varint, take_varint,
    },
    store::{Cursor, SessionKey, Store, StoreError},
};

/// The version of the index, kept as `user_version`; one of another version is made again.
const VERSION: i64 = 7;
/// Marks a file as an index of words: "uTXW".
const APPLICATION_ID: i64 = 0x7554_5857;
/// How many bits of a document's step in a list are the weight.
const WEIGHT_BITS: u32 = 4;
/// How many bytes of words, and of lists, a block has about.
const WORDS_OF_BLOCK: usize = 8 << 10;
const LISTS_OF_BLOCK: usize = 64 << 10;
/// How many bytes are added before they become a segment.
const HELD: usize = 16 << 20;
/// How many bytes a segment has that takes in no others any more, and is taken in by none.
const LONG: usize = 8 << 20;
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

/// The number of a document: an entry that is in an index.
pub type Document = u64;

/// How much a word tells of a document, from 1 to [`WEIGHTS`].
pub type Weight = u8;

/// The greatest weight.
pub const WEIGHTS: Weight = (1 << WEIGHT_BITS) - 1;

/// Entries of a session that are documents one behind the other.
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
    /// Returns whether a document is of it.
    pub fn has(&self, document: Document) -> bool {
        let count = self.entries.end.since(self.entries.start);
        (self.first..self.first + count).contains(&document)
    }
}

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
    fresh: Fresh,
}

/// What was added since the last segment was made.
#[derive(Default)]
struct Fresh {
    /// The number behind that of the last document.
    documents: Document,
    lists: Lookup<String, List>,
    size: usize,
}

/// The documents that have a word.
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

/// Hands over the documents of a list.
fn read_list(mut list: &[u8], each: &mut dyn FnMut(Document, Weight)) {
    let mut document = 0;
    while let Some(step) = take_varint(&mut list) {
        document += step >> WEIGHT_BITS;
        each(document, u8::try_from(step & u64::from(WEIGHTS)).unwrap_or(WEIGHTS));
    }
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
        let index = Self { db, path, fresh: Fresh::default() };
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

    /// Returns the number behind that of the last document.
    pub fn documents(&self) -> Result<Document, StoreError> {
        let sql = "SELECT first + count FROM piece ORDER BY first DESC LIMIT 1";
        Ok(self.db.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    /// Returns the piece of a document.
    pub fn piece(&self, document: Document) -> Result<Piece, StoreError> {
        let sql = "SELECT first, session, entry, count FROM piece WHERE first <= ? ORDER BY first DESC LIMIT 1";
        let piece = self.db.prepare_cached(sql)?.query_row([document], |row| {
            let entry: EntryNumber = row.get(2)?;
            let (first, session) = (row.get(0)?, SessionKey(row.get(1)?));
            Ok(Piece { first, session, entries: entry..entry.plus(row.get(3)?) })
        });
        piece.map_err(StoreError::from)
    }

    /// Hands over the documents that have certain words, block by block: of the words of a block, each between line ends, those
    /// are chosen by `chosen`, which is given all and says which by their places. Only blocks are looked at that have words from
    /// one to another.
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

    /// Begins to add, unless another program adds.
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

    /// Adds entries of a session, with the words of those that have any, and the weight of each word.
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
        self.db.prepare_cached("INSERT INTO piece VALUES (?, ?, ?, ?)")?.execute(params![
            *documents,
            session.0,
            entries.start,
            count
        ])?;
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

    /// Makes a segment of what was added, and of the segments before it that are not much longer.
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
        self.flush()?;
        self.db.execute_batch("COMMIT")?;
        // What stays in the log while another program seals is taken along by the next commit.
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
