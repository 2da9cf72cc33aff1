//! Where the contract is tried: every kind of store, and every question that a store answers.
//!
//! A store of another make is tried like the others: by a [`Lab`] of its own among those of [`labs`].

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use crate::fixture::{number, numbers};
use rusqlite::Connection;
use tempfile::TempDir;
use undertext::{
    model::{
        CheckpointNumber, EntryNumber, GenerationNumber, IdPrefix, Landmark, NameTag,
        OperationNumber, Place, SessionName, StoreId,
    },
    store::{
        Access, Commit, Fault, FaultKind, MemoryStore, SessionFilter, SessionKey, Sieve,
        SqliteStore, Store, StoreError, Total, Within, whole_lines,
    },
};

use super::{ledger::Ledger, writer::Writer};

/// A place where a store is, or will be.
pub(crate) trait Lab {
    /// Returns what kind of store it is.
    fn name(&self) -> String;

    /// Opens the store to write, and makes it if it is not there. What does not last is made each time.
    fn open(&self) -> Box<dyn Store>;
}

struct Memory;

impl Lab for Memory {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(MemoryStore::new())
    }
}

struct Preview;

impl Lab for Preview {
    fn name(&self) -> String {
        "memory over another store".to_owned()
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(MemoryStore::over(Box::new(MemoryStore::new())).unwrap())
    }
}

struct Outside;

impl Lab for Outside {
    fn name(&self) -> String {
        "a store made outside of the crate".to_owned()
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(Ledger::with_id(StoreId::new([1; 16])))
    }
}

/// A folder with a store in a file, whose journal holds so many operations, and so many bytes of them.
pub(crate) struct Folder {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    root: TempDir,
}

impl Folder {
    pub(crate) fn new(rows: u64, bytes: u64) -> Self {
        Self { rows, bytes, root: TempDir::new().unwrap() }
    }

    /// Returns a folder with a copy of what is in this one.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::new(self.rows, self.bytes);
        for file in fs::read_dir(self.root.path()).unwrap().map(Result::unwrap) {
            fs::copy(file.path(), copy.root.path().join(file.file_name())).unwrap();
        }
        copy
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.path().join("store.db")
    }

    /// Returns where the file is that says how far the store has come.
    pub(crate) fn witness(&self) -> PathBuf {
        self.root.path().join("store.witness")
    }

    pub(crate) fn open_for(&self, access: Access) -> Result<SqliteStore, StoreError> {
        let mut store = SqliteStore::open(&self.path(), access)?;
        store.set_journal(self.rows, self.bytes);
        Ok(store)
    }

    pub(crate) fn write(&self) -> SqliteStore {
        self.open_for(Access::Write).unwrap()
    }

    pub(crate) fn read(&self) -> SqliteStore {
        self.open_for(Access::Read).unwrap()
    }

    /// Returns a connection that is no store's.
    pub(crate) fn sql(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    /// Returns how many operations are in the journal.
    pub(crate) fn in_journal(&self) -> u64 {
        count(&self.path(), "journal")
    }
}

/// Returns how many rows a table has.
pub(crate) fn count(path: &Path, table: &str) -> u64 {
    let db = Connection::open(path).unwrap();
    db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

impl Lab for Folder {
    fn name(&self) -> String {
        format!("a file with a journal of {} operations or {} bytes", self.rows, self.bytes)
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(self.write())
    }
}

/// Returns folders for stores whose journals are of every size that makes a difference: none at all, one that is settled by
/// each operation, by some of them, and by nothing but a large one. A test that fails has printed which one it tries.
pub(crate) fn folders() -> impl Iterator<Item = Folder> {
    const MEGABYTE: u64 = 1 << 20;
    let sizes =
        [(0, 0), (0, MEGABYTE), (1, 600), (3, 600), (3, MEGABYTE), (64, 600), (64, MEGABYTE)];
    let folders = sizes.into_iter().map(|(rows, bytes)| Folder::new(rows, bytes));
    folders.inspect(|folder| tell(&folder.name()))
}

#[expect(clippy::print_stdout, reason = "a test that fails shows what it has printed")]
fn tell(name: &str) {
    println!("{name}");
}

/// Returns a place for each kind of store.
pub(crate) fn labs() -> impl Iterator<Item = Box<dyn Lab>> {
    let others: [Box<dyn Lab>; 3] = [Box::new(Memory), Box::new(Preview), Box::new(Outside)];
    let others = others.into_iter().inspect(|lab| tell(&lab.name()));
    others.chain(folders().map(|folder| -> Box<dyn Lab> { Box::new(folder) }))
}

/// Tries a claim on an empty store of each kind.
pub(crate) fn over_each(claim: impl Fn(&dyn Store)) {
    for lab in labs() {
        claim(lab.open().as_ref());
    }
}

/// Adds one operation and makes it durable.
pub(crate) fn commit(store: &dyn Store, commit: Commit) -> Result<SessionKey, StoreError> {
    commit_all(store, [commit])
}

/// Adds operations and makes them durable together.
pub(crate) fn commit_all(
    store: &dyn Store,
    commits: impl IntoIterator<Item = Commit>,
) -> Result<SessionKey, StoreError> {
    let mut writing = store.begin()?;
    let mut key = None;
    for commit in commits {
        key = Some(writing.add(commit)?);
    }
    let committed = writing.commit()?;
    assert!(committed.unsettled.is_none(), "{committed:?}");
    Ok(key.expect("something is added"))
}

/// Settles what is in the journal, if there is one: adds an operation that is too large for it to a session of its own.
pub(crate) fn settle(store: &dyn Store) {
    let lines: Vec<Vec<u8>> = (0..40).map(|n| format!("line {n}").into_bytes()).collect();
    let mut writer = Writer::new(store, "settles");
    let name = writer.name.clone();
    if store.session(&name).unwrap().is_none() {
        commit_all(store, [writer.begin(), writer.next(&lines, |_| {})]).unwrap();
    } else {
        let many = store.names().unwrap().len();
        let mut writer = Writer::new(store, &format!("settles {many}"));
        commit_all(store, [writer.begin(), writer.next(&lines, |_| {})]).unwrap();
    }
}

/// Returns an error's kind.
pub(crate) fn kind(error: &StoreError) -> &'static str {
    match error {
        StoreError::Conflict => "conflict",
        StoreError::Refused(_) => "refused",
        StoreError::Corrupt { .. } => "corrupt",
        StoreError::NewerFacts { .. } => "newer facts",
        StoreError::ReadOnly { .. } => "read only",
        StoreError::Busy => "busy",
        _ => "other",
    }
}

/// Returns a line, or the kind of the error.
fn line(store: &dyn Store, key: SessionKey, n: u64) -> Result<Vec<u8>, &'static str> {
    let mut found = Vec::new();
    whole_lines(store, key, &[number(n)], &mut |_, line| found = line)
        .map_err(|error| kind(&error))?;
    Ok(found)
}

pub(crate) fn line_of(store: &dyn Store, key: SessionKey, n: u64) -> Vec<u8> {
    line(store, key, n).unwrap()
}

/// Asserts that a check finds nothing, and that the totals are what counting gives.
#[track_caller]
pub(crate) fn assert_whole(store: &dyn Store) {
    let mut faults: Vec<Fault> = Vec::new();
    store.check(None, &mut |fault| faults.push(fault)).unwrap();
    // A power cut can tear the witness, which the next change writes again.
    faults.retain(|fault| fault.kind != FaultKind::Witness);
    assert_eq!(faults, []);
    let mut counted: BTreeMap<String, Total> = BTreeMap::new();
    for (key, name) in store.names().unwrap() {
        let entries = store.state(key).unwrap().entries();
        let lengths = store.lengths(key, numbers::<EntryNumber>(0..u64::MAX)).unwrap();
        let total = counted.entry(name.format.clone()).or_default();
        *total = Total {
            format: name.format,
            sessions: total.sessions + 1,
            entries: total.entries + entries,
            bytes: total.bytes + lengths.iter().sum::<u64>(),
        };
    }
    assert_eq!(store.totals().unwrap(), counted.into_values().collect::<Vec<_>>());
}

/// Asserts that two lists of answers are equal, by the first that is not, from where it differs.
#[track_caller]
pub(crate) fn assert_same(one: &[String], other: &[String]) {
    let first = one.iter().zip(other).find(|(one, other)| one != other);
    if let Some((one, other)) = first {
        let chars = one.chars().zip(other.chars());
        let alike = chars.take_while(|(a, b)| a == b).count().saturating_sub(60);
        let short = |text: &str| {
            let start = text.chars().take(40).chain(" ... ".chars());
            start.chain(text.chars().skip(alike).take(400)).collect::<String>()
        };
        panic!("\n{}\n{}", short(one), short(other));
    }
    assert_eq!(one.len(), other.len());
}

macro_rules! told {
    ($all:ident, $store:ident.$ask:ident($($with:expr),*)) => {
        $all.push(format!(
            "{}{:?}: {:?}",
            stringify!($ask),
            ($(&$with,)*),
            $store.$ask($($with),*).map_err(|error| kind(&error)),
        ))
    };
}

/// Returns every answer that a store gives about a session, as text in which no number of the store's own occurs. Token
/// counts are left out: a store may have lost them, because they are a cache.
pub(crate) fn answers(store: &dyn Store, name: &SessionName) -> Vec<String> {
    let key = store.session(name).unwrap().unwrap_or_else(|| panic!("{name:?} is not there"));
    let keyless = |all: Vec<String>| {
        let wanted = format!("{key:?}");
        all.into_iter().map(|text| text.replace(&wanted, "key")).collect()
    };
    let mut all = Vec::new();
    told!(all, store.state(key));
    told!(all, store.card(key));
    told!(all, store.twins(key));
    told!(all, store.ties(key));
    let state = store.state(key).unwrap();
    let total = state.entries();
    let end = total + 1;
    for range in
        [0..u64::MAX, 0..0, 1..2, 2..4, 3..3, end - 1..end + 5, end + 6..end + 9, 1..end - 1]
    {
        told!(all, store.operations(key, numbers::<OperationNumber>(range.clone())));
        told!(all, store.growths(key, numbers::<OperationNumber>(range.clone())));
        told!(all, store.entries(key, numbers::<EntryNumber>(range.clone())));
        told!(all, store.records(key, numbers::<EntryNumber>(range.clone())));
        told!(all, store.checkpoints(key, numbers::<CheckpointNumber>(range.clone())));
        told!(all, store.origins(key, numbers::<EntryNumber>(range.clone())));
        for landmark in [Landmark::Boundary, Landmark::Signpost] {
            told!(all, store.landmark(key, landmark, numbers::<EntryNumber>(range.clone())));
        }
        told!(all, store.lengths(key, numbers::<EntryNumber>(range.clone())));
        for needle in [&b"again"[..], b"new-", b"x", b"nowhere"] {
            all.push(format!("sifted: {:?}", sifted(store, key, numbers(range.clone()), needle)));
        }
    }
    for generation in (0..state.generations.len() as u64 + 2).map(GenerationNumber::new) {
        for from in 0..total.min(12) + 2 {
            told!(all, store.runs(key, generation, from));
        }
    }
    for operation in 0..state.operations() + 2 {
        for at in 0..4 {
            told!(all, store.kept(key, number::<OperationNumber>(operation), at));
        }
    }
    for n in (0..total.min(40) + 2).chain([u64::MAX]) {
        all.push(format!("line {n}: {:?}", line(store, key, n)));
    }
    // In turns from the beginning and the end, and one twice.
    let mixed: Vec<EntryNumber> =
        (1..=total).flat_map(|n| [n, end - n]).take(60).map(number).collect();
    let mut lines = Vec::new();
    whole_lines(store, key, &mixed, &mut |n, line| lines.push((n, line))).unwrap();
    all.push(format!("lines: {lines:?}"));
    for entry in store.entries(key, EntryNumber::ALL).unwrap().iter().take(40) {
        for digits in [1, 2, 11, 12, 13, 64] {
            let prefix = IdPrefix::parse(&entry.id.to_string()[..digits]).unwrap();
            told!(all, store.find(key, &prefix));
        }
        told!(all, store.find(key, &IdPrefix::whole(&entry.id)));
    }
    let mut names: BTreeSet<(NameTag, NameTag)> =
        ["a", "b", "none", "f81d4fae-7dec-41d0-8765-00a0c91e6bf6", "f81d4fae", "f"]
            .map(NameTag::bounds)
            .into();
    let records = store.records(key, EntryNumber::ALL).unwrap();
    names.extend(records.iter().filter_map(|record| record.name).take(20).map(|name| (name, name)));
    let (low, high) = (NameTag::new(0), NameTag::new(i64::MAX.cast_unsigned()));
    names.extend([(low, high), (high, low)]);
    for (low, high) in names {
        told!(all, store.named(key, low, high));
    }
    keyless(all)
}

/// Returns the lines that hold a needle among those that a sieve for it lets through.
pub(crate) fn sifted(
    store: &dyn Store,
    key: SessionKey,
    range: Range<EntryNumber>,
    needle: &[u8],
) -> Vec<EntryNumber> {
    let needle = needle.to_vec();
    let find = move |bytes: &[u8]| -> Option<Range<usize>> {
        let at = bytes.windows(needle.len()).position(|window| window == needle)?;
        Some(at..at + needle.len())
    };
    let mut found = Vec::new();
    let sieve = Sieve::new([find.clone()]);
    store
        .sift(key, range, &sieve, &mut |n, line| {
            found.extend(find(&line.unwrap()).is_some().then_some(n));
        })
        .unwrap();
    found
}

/// Returns every answer that a store gives, as text.
pub(crate) fn all_answers(store: &dyn Store) -> Vec<String> {
    let names = store.names().unwrap();
    let named = |key: SessionKey| {
        &names.iter().find(|(held, _)| *held == key).expect("a key of a session").1
    };
    let mut all = vec![format!("{:?}", names.iter().map(|(_, name)| name).collect::<Vec<_>>())];
    told!(all, store.id());
    told!(all, store.is_stale());
    let mut places = BTreeSet::from([Place::default(), Place::Store(b"nowhere".to_vec())]);
    let mut ties = Vec::new();
    for (key, name) in &names {
        all.push(format!("{name:?}"));
        assert_eq!(store.session(name).unwrap(), Some(*key));
        all.extend(answers(store, name));
        places.extend(store.state(*key).unwrap().files);
        ties.extend(store.ties(*key).unwrap().into_iter().flat_map(|(_, ties)| ties));
    }
    for place in &places {
        let found = store.files(place).unwrap().into_iter();
        let found: Vec<_> = found.map(|(key, name, n)| (named(key).clone(), name, n)).collect();
        all.push(format!("files {place:?}: {found:?}"));
    }
    ties.sort();
    ties.dedup();
    for tie in &ties {
        for format in ["native", "claude", ""] {
            let found = store.tied(format, tie, None).unwrap().into_iter();
            let found: Vec<_> = found.map(|(key, name)| (named(key).clone(), name)).collect();
            all.push(format!("tied {format} {tie:?}: {found:?}"));
        }
    }
    for filter in filters() {
        let listed = store.sessions(&filter).unwrap().into_iter();
        let listed: Vec<_> = listed.map(|l| (named(l.key).clone(), l.name, l.card)).collect();
        all.push(format!("{filter:?}: {listed:?}"));
    }
    for path in [&b"/a"[..], b"/b", b""] {
        told!(all, store.sighting(path));
    }
    let (since, _) = store.since(None).unwrap();
    all.push(format!("since: {:?}", since.into_iter().map(named).collect::<Vec<_>>()));
    let unknown = SessionName { format: "native".into(), id: "' OR 1".into() };
    told!(all, store.session(&unknown));
    all
}

/// Returns what lists may be narrowed by.
fn filters() -> Vec<SessionFilter> {
    let text = |text: &str| Some(text.to_owned());
    vec![
        SessionFilter::default(),
        SessionFilter { limit: Some(1), ..SessionFilter::default() },
        SessionFilter { limit: Some(0), ..SessionFilter::default() },
        SessionFilter { limit: Some(2), hidden: true, ..SessionFilter::default() },
        SessionFilter { prefix: text("t"), ..SessionFilter::default() },
        SessionFilter { prefix: text("%"), ..SessionFilter::default() },
        SessionFilter { title: text("one"), ..SessionFilter::default() },
        SessionFilter { folder: Some(Within::Below(vec!["/".into()])), ..SessionFilter::default() },
        SessionFilter { folder: Some(Within::At("/project".into())), ..SessionFilter::default() },
        SessionFilter {
            folder: Some(Within::Below(vec!["/project".into()])),
            ..SessionFilter::default()
        },
        SessionFilter {
            folder: Some(Within::Below(vec!["/proj".into(), "/project".into()])),
            ..SessionFilter::default()
        },
        SessionFilter { title: text("on"), ..SessionFilter::default() },
        SessionFilter {
            since: Some(undertext::model::Timestamp(3000)),
            sub_agents: true,
            ..SessionFilter::default()
        },
        SessionFilter { format: text("native"), hidden: true, ..SessionFilter::default() },
        SessionFilter { format: text("pi"), sub_agents: true, ..SessionFilter::default() },
    ]
}
