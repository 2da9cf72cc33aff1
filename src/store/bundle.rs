//! Bundles: sessions with their lines, facts and operations in one file, all verified by hash.
//!
//! ```text
//! undertext bundle 1\n     then one zstd stream of frames
//!
//! frame       length (4 bytes, little-endian), kind, payload, BLAKE3( previous hash, kind, payload )
//! item        frames of one kind; all but the last have PART bytes
//!
//! store       its id, which the hashes of the operations cover
//! session     format, id, number of operations, its redactions
//!   operation   number, hash, record, words, entries, runs, checkpoints, origins
//!   lines       of the operation's entries, in order, about PART bytes together
//!   kept        a file that the operation stored whole
//! end         number of sessions
//! ```
//!
//! Lines, runs and files are in their current state, although a later operation may have redacted them. So the newest tombstones
//! come first, and are compared with those of the operations at the end of the session.
//!
//! Invariant: the reader never returns a commit that does not follow the one before it by the rules of every store, under the id
//! of the store it comes from. No input makes the reader panic, or use more memory than its content unpacks to.

use std::{
    io::{self, BufRead, Read, Write},
    sync::Arc,
};

use zstd::{Decoder, Encoder};

use crate::{
    disk,
    model::{
        Bulk, EntryId, EntryNumber, Operation, Record, SessionName, State, StoreId, line::LINE_MAX,
    },
    store::{
        Commit, Covered, Known, NewLine, StoreError,
        encoding::{In, Out},
    },
};

/// The first bytes of every bundle, before its version number.
const MAGIC: &[u8] = b"undertext bundle ";
/// The version.
const VERSION: u64 = 1;
/// The maximum payload of a frame in bytes.
const PART: usize = 1 << 20;
/// The maximum size of an item, and of all lines of an operation, in bytes.
const LARGEST: usize = 2 * LINE_MAX;
/// The binary logarithm of the zstd window; a reader needs that much memory.
const WINDOW: u32 = 24;

const STORE: u8 = 1;
const SESSION: u8 = 2;
const OPERATION: u8 = 3;
const LINES: u8 = 4;
const KEPT: u8 = 5;
const END: u8 = 6;

/// Why a bundle cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file is not a bundle.
    #[error("it is not a bundle")]
    Foreign,
    /// A newer program wrote it.
    #[error("it was written by a newer version of undertext: {0}")]
    Newer(String),
    /// Its end is missing.
    #[error("it is cut short")]
    Short,
    /// Its bytes have changed.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The file system failed.
    #[error("{}", disk::words(.0))]
    Read(io::Error),
}

impl From<io::Error> for BundleError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Short,
            _ if error.raw_os_error().is_some() => Self::Read(error),
            _ => Self::Damaged("it cannot be unpacked".to_owned()),
        }
    }
}

/// Returns true if these are the first bytes of a bundle, of any version.
pub fn is_bundle(beginning: &[u8]) -> bool {
    beginning.starts_with(MAGIC)
}

fn hash_after(before: [u8; 32], kind: u8, payload: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(&before).update(&[kind]).update(payload).finalize().as_bytes()
}

/// Writes a bundle.
pub struct BundleWriter<W: Write> {
    to: Encoder<'static, W>,
    hash: [u8; 32],
    sessions: u64,
    /// The lines that were not written yet.
    lines: Out,
}

impl<W: Write> BundleWriter<W> {
    /// Begins a bundle with sessions of a store.
    pub fn new(mut to: W, store: StoreId) -> io::Result<Self> {
        to.write_all(MAGIC)?;
        writeln!(to, "{VERSION}")?;
        let mut to = Encoder::new(to, 0)?;
        to.long_distance_matching(true)?;
        to.window_log(WINDOW)?;
        let mut begun = Self { to, hash: [0; 32], sessions: 0, lines: Out(Vec::new()) };
        begun.item(STORE, store.as_bytes())?;
        Ok(begun)
    }

    /// Begins a session, given its newest state. All its operations must follow.
    pub fn session(&mut self, name: &SessionName, state: &State) -> io::Result<()> {
        self.flush()?;
        self.sessions += 1;
        let mut out = Out(Vec::new());
        out.bytes(name.format.as_bytes()).bytes(name.id.as_bytes()).number(state.operations());
        let Covered { lines, runs, files } = Covered::of(state);
        out.list(&lines.into_values().collect::<Vec<_>>(), Out::tagged);
        out.list(&runs.into_values().collect::<Vec<_>>(), Out::tagged);
        out.list(&files.into_values().collect::<Vec<_>>(), Out::tagged);
        self.item(SESSION, &out.0)
    }

    /// Writes the next operation. Its lines must follow, then the files that it stored whole.
    pub fn operation(&mut self, operation: &Operation, bulk: &Bulk) -> io::Result<()> {
        self.flush()?;
        let mut out = Out(Vec::new());
        out.operation(operation, bulk);
        out.list(&bulk.entries, Out::entry);
        out.growth(bulk);
        self.item(OPERATION, &out.0)
    }

    /// Writes the line of the next entry.
    pub fn line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.lines.0.len() + line.len() > PART {
            self.flush()?;
        }
        self.lines.bytes(line);
        Ok(())
    }

    /// Writes the next file that was stored whole.
    pub fn kept(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.item(KEPT, bytes)
    }

    /// Ends the bundle and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        let mut out = Out(Vec::new());
        out.number(self.sessions);
        self.item(END, &out.0)?;
        self.to.finish()
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.lines.0.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.lines.0);
        self.item(LINES, &lines)
    }

    fn item(&mut self, kind: u8, payload: &[u8]) -> io::Result<()> {
        let whole = payload.chunks_exact(PART);
        // The last part is empty if the previous one is full.
        let last = whole.remainder();
        for part in whole.chain([last]) {
            self.hash = hash_after(self.hash, kind, part);
            self.to.write_all(&u32::try_from(part.len()).unwrap_or_default().to_le_bytes())?;
            self.to.write_all(&[kind])?;
            self.to.write_all(part)?;
            self.to.write_all(&self.hash)?;
        }
        Ok(())
    }
}

/// A session of a bundle while it is read.
#[derive(Debug)]
pub struct Bundled {
    /// Its name.
    pub name: SessionName,
    /// How many operations the bundle has of it.
    pub operations: u64,
    /// Its redactions.
    pub covered: Arc<Covered>,
    /// Its state after the operations read so far.
    pub state: State,
    /// The ids of the entries read so far.
    ids: Vec<EntryId>,
}

impl Known for Bundled {
    fn entry(&self, n: EntryNumber) -> Result<Option<EntryId>, StoreError> {
        Ok(n.index().and_then(|index| self.ids.get(index)).copied())
    }

    fn holds(&self, _: &EntryId) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn origin(&self, _: EntryNumber) -> Result<Option<EntryNumber>, StoreError> {
        Ok(None)
    }
}

/// Reads a bundle.
pub struct BundleReader<R: BufRead> {
    from: Decoder<'static, R>,
    hash: [u8; 32],
    store: StoreId,
    sessions: u64,
}

impl<R: BufRead> BundleReader<R> {
    /// Opens a bundle.
    pub fn new(mut from: R) -> Result<Self, BundleError> {
        let mut first = Vec::new();
        (&mut from).take(64).read_until(b'\n', &mut first).map_err(BundleError::Read)?;
        let rest = first.strip_prefix(MAGIC).ok_or(BundleError::Foreign)?;
        let version = rest.strip_suffix(b"\n").ok_or(BundleError::Short)?;
        let version = str::from_utf8(version).ok().and_then(|version| version.parse().ok());
        match version.ok_or(BundleError::Foreign)? {
            VERSION => {}
            newer => return Err(BundleError::Newer(format!("version {newer}"))),
        }
        let from = Decoder::with_buffer(from)?;
        let mut begun = Self { from, hash: [0; 32], store: StoreId::default(), sessions: 0 };
        let store = begun.item(STORE)?;
        let store = <[u8; 16]>::try_from(store.as_slice()).map_err(|_| unreadable("store"))?;
        begun.store = StoreId::new(store);
        Ok(begun)
    }

    /// Returns the next session. Read all operations of a session before you request the next one.
    pub fn session(&mut self) -> Result<Option<Bundled>, BundleError> {
        let (kind, payload) = self.any()?;
        let mut from = In(&payload);
        match kind {
            SESSION => {
                self.sessions += 1;
                Ok(Some(read_session(&mut from).ok_or_else(|| unreadable("session"))?))
            }
            END if from.number() == Some(self.sessions) && from.0.is_empty() => {
                match self.from.read(&mut [0])? {
                    0 => Ok(None),
                    _ => Err(BundleError::Damaged("something follows its end".to_owned())),
                }
            }
            _ => Err(unreadable("session")),
        }
    }

    /// Returns the next operation of a session with its facts, lines and files, but without derived rows.
    pub fn commit(&mut self, of: &mut Bundled) -> Result<Option<Commit>, BundleError> {
        if of.state.operations() == of.operations {
            if Covered::of(&of.state) != *of.covered {
                return Err(wrong(of, "the redactions of its operations are others"));
            }
            return Ok(None);
        }
        let payload = self.item(OPERATION)?;
        let read = read_operation(&mut In(&payload), of.state.next_entry());
        let (operation, bulk) = read.ok_or_else(|| wrong(of, "an operation cannot be read"))?;
        if !operation.unknown.is_empty() {
            let what = format!("operation {} of session {}", operation.n, of.name.id);
            return Err(BundleError::Newer(what));
        }
        let (lines, kept) = (self.lines(of, &bulk)?, self.kept(&operation)?);
        let commit = Commit {
            session: of.name.clone(),
            expected: of.state.hash(),
            records: bulk.entries.iter().map(|entry| Record::opaque(entry.n)).collect(),
            operation,
            bulk,
            lines,
            kept,
            twins: Vec::new(),
            ties: Vec::new(),
            card: None,
            covered: Arc::clone(&of.covered),
        };
        commit.check(self.store, &of.state, of).map_err(|error| wrong(of, &error.to_string()))?;
        of.ids.extend(commit.bulk.entries.iter().map(|entry| entry.id));
        of.state.apply(&commit.operation, &commit.bulk);
        Ok(Some(commit))
    }

    /// Reads the rest of a session.
    pub fn finish(&mut self, of: &mut Bundled) -> Result<(), BundleError> {
        while self.commit(of)?.is_some() {}
        Ok(())
    }

    fn lines(&mut self, of: &Bundled, bulk: &Bulk) -> Result<Vec<NewLine>, BundleError> {
        let (mut lines, mut size) = (Vec::new(), 0);
        let mut entries = bulk.entries.iter().peekable();
        while entries.peek().is_some() {
            let payload = self.item(LINES)?;
            size += payload.len();
            let mut from = In(&payload);
            while !from.0.is_empty() {
                let line = from.bytes().filter(|_| size <= LARGEST).zip(entries.next());
                let (line, entry) = line.ok_or_else(|| wrong(of, "its lines cannot be read"))?;
                let came = of.covered.lines.get(&entry.n).and_then(|one| one.line);
                lines.push(match came {
                    Some(came) => NewLine::covering(line.to_vec(), came),
                    None => NewLine::of_bytes(line.to_vec()),
                });
            }
        }
        Ok(lines)
    }

    fn kept(&mut self, operation: &Operation) -> Result<Vec<Vec<u8>>, BundleError> {
        let facts = &operation.facts;
        (0..facts.containers.len() + facts.sidecars.len()).map(|_| self.item(KEPT)).collect()
    }

    fn item(&mut self, wanted: u8) -> Result<Vec<u8>, BundleError> {
        match self.any()? {
            (kind, payload) if kind == wanted => Ok(payload),
            _ => Err(BundleError::Damaged("its parts are out of order".to_owned())),
        }
    }

    fn any(&mut self) -> Result<(u8, Vec<u8>), BundleError> {
        let (mut payload, mut before) = (Vec::new(), None);
        loop {
            let (mut length, mut kind, mut hash) = ([0; 4], [0], [0; 32]);
            self.from.read_exact(&mut length)?;
            self.from.read_exact(&mut kind)?;
            let (length, [kind]) = (u32::from_le_bytes(length) as usize, kind);
            let start = payload.len();
            if length > PART || start + length > LARGEST || before.is_some_and(|it| it != kind) {
                return Err(BundleError::Damaged("a part of it has a wrong length".to_owned()));
            }
            payload.resize(start + length, 0);
            let part = payload.get_mut(start..).unwrap_or_default();
            self.from.read_exact(part)?;
            self.from.read_exact(&mut hash)?;
            self.hash = hash_after(self.hash, kind, part);
            if self.hash != hash {
                return Err(BundleError::Damaged("a hash does not match".to_owned()));
            }
            if length < PART {
                return Ok((kind, payload));
            }
            before = Some(kind);
        }
    }
}

fn read_session(from: &mut In<'_>) -> Option<Bundled> {
    let name = SessionName { format: from.text()?, id: from.text()? };
    let operations = from.number()?;
    let (lines, runs, files) =
        (from.list(In::tagged)?, from.list(In::tagged)?, from.list(In::tagged)?);
    let covered = Arc::new(Covered::from_facts(lines, runs, files));
    let (state, ids) = (State::default(), Vec::new());
    from.0.is_empty().then_some(Bundled { name, operations, covered, state, ids })
}

fn read_operation(from: &mut In<'_>, first: EntryNumber) -> Option<(Operation, Bulk)> {
    let (operation, words) = from.operation()?;
    let mut next = first.onwards();
    let entries = from.list(|from| from.entry(next.next()?))?;
    let bulk = from.growth(&words, entries)?;
    from.0.is_empty().then_some((operation, bulk))
}

fn unreadable(part: &str) -> BundleError {
    BundleError::Damaged(format!("a {part} cannot be read"))
}

fn wrong(of: &Bundled, why: &str) -> BundleError {
    BundleError::Damaged(format!("session {}: {why}", of.name.id))
}
