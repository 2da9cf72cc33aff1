//! Archives for tests: clock and chance are seeded, so that a test that failed fails again.
//!
//! Invariant: nothing here asserts anything but in [`assert_sound`], which is what every fault must leave behind.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    str::FromStr,
};

use chrono::{FixedOffset, Offset as _, Utc};
use undertext::{
    live::Writable,
    model::{Block, EntryNumber, Timestamp},
    store::{Access, SessionFilter, SqliteStore, Store as _, whole_lines},
    verbs::{self, Ambient, Archive, Layers, Session, Target, Workspace},
    wire::{self, Draft, Speaker},
};
use uuid::Uuid;

/// Returns a number of any kind.
pub(crate) fn number<N: FromStr<Err: std::fmt::Debug>>(number: u64) -> N {
    number.to_string().parse().unwrap()
}

/// Returns a range of numbers of any kind.
pub(crate) fn numbers<N: FromStr<Err: std::fmt::Debug>>(range: Range<u64>) -> Range<N> {
    number(range.start)..number(range.end)
}

/// A clock that advances by a second with every look, and ids that follow from a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeded {
    seed: u64,
    looks: u64,
    begin: Timestamp,
    zone: FixedOffset,
}

impl Seeded {
    /// Begins on 2001-02-03 04:05:06 UTC.
    pub(crate) fn boxed(seed: u64) -> Box<dyn Ambient> {
        Self::of(seed, Timestamp(981_173_106_000), Utc.fix())
    }

    /// Begins at a time, in a zone.
    pub(crate) fn of(seed: u64, begin: Timestamp, zone: FixedOffset) -> Box<dyn Ambient> {
        Box::new(Self { seed, looks: 0, begin, zone })
    }
}

impl Ambient for Seeded {
    fn now(&mut self) -> Timestamp {
        self.looks += 1;
        Timestamp(self.begin.0 + i64::try_from(self.looks).unwrap() * 1000)
    }

    fn offset(&mut self, _: Timestamp) -> FixedOffset {
        self.zone
    }

    fn uuid(&mut self) -> Uuid {
        self.looks += 1;
        let hash = undertext::model::LineId::of(format!("{} {}", self.seed, self.looks).as_bytes());
        uuid::Builder::from_random_bytes(hash.as_bytes()[..16].try_into().unwrap()).into_uuid()
    }

    /// Does not look, so that words change no time.
    fn salt(&mut self) -> [u8; 16] {
        self.looks.to_be_bytes().repeat(2).try_into().unwrap()
    }
}

/// Has a store put what its journal holds into its tables.
pub(crate) fn settle(root: &Path) {
    let mut store = SqliteStore::open(&root.join("store.db"), Access::Write).unwrap();
    store.set_journal(0, 0);
    let mut writing = store.begin().unwrap();
    writing.sight(&[]).unwrap();
    assert!(writing.commit().unwrap().unsettled.is_none());
}

/// Numbers that follow from a seed: xorshift.
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// Returns a number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Opens the archive in a folder; agents' files beside that may be written.
pub(crate) fn open(root: &Path, seed: u64) -> Archive {
    open_at(root, Seeded::boxed(seed))
}

/// Opens the archive in a folder at a time of its own.
pub(crate) fn open_at(root: &Path, ambient: Box<dyn Ambient>) -> Archive {
    let mut archive = Archive::open(root, Access::Write, ambient).unwrap();
    archive.set_writable(writable(root));
    archive
}

/// Allows every agent's files in the folder in which a store lies.
pub(crate) fn writable(root: &Path) -> Writable {
    let mut writable = Writable::default();
    for format in wire::FORMATS {
        writable.folder(format.name(), root.parent().unwrap());
    }
    writable
}

/// Makes a session.
pub(crate) fn session(archive: &mut Archive) -> Session {
    verbs::new(archive, &Layers::default(), &workspace()).unwrap().session
}

/// Returns the only session of an archive.
pub(crate) fn only_session(archive: &Archive) -> Session {
    let listed = archive.sessions(&SessionFilter::default()).unwrap();
    archive.session(&listed.first().unwrap().name).unwrap().unwrap()
}

/// Returns a workspace that depends on no machine.
pub(crate) fn workspace() -> Workspace {
    Workspace { folder: "/project".into(), ..Workspace::default() }
}

/// Appends what a user says.
pub(crate) fn say(archive: &mut Archive, session: &Session, text: &str) {
    let drafts = [Draft::Message(Speaker::User, text.to_owned())];
    verbs::append(&archive.at(session).unwrap(), &workspace(), &drafts).unwrap();
}

/// Returns the live file of a session.
pub(crate) fn live(archive: &Archive, session: &Session) -> PathBuf {
    archive.root().unwrap().join(format!("transcripts/{}.jsonl", session.name.id))
}

/// Returns the path next to a live file under which its successor is written.
pub(crate) fn successor(live: &Path) -> PathBuf {
    let mut path = live.as_os_str().to_owned();
    path.push(".undertext-new");
    path.into()
}

/// Returns the bytes of a generation, or of the current one.
pub(crate) fn exported(archive: &Archive, session: &Session, generation: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    verbs::export(&archive.at(session).unwrap(), generation.map(number), &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    })
    .unwrap();
    bytes
}

/// Returns what is said up to a target, one item an entry.
pub(crate) fn said(archive: &Archive, session: &Session, target: Option<&Target>) -> Vec<String> {
    let log = verbs::log(&archive.at(session).unwrap(), target, usize::MAX).unwrap();
    let words = |block: &Block| match block {
        Block::Text(text) => text.clone(),
        Block::Call { id, name, input, .. } => {
            format!("Call {{ id: {id:?}, name: {name:?}, input: {input:?} }}")
        }
        Block::Result { id, error, .. } => {
            let text = block.answer_text();
            format!("Result {{ id: {id:?}, text: {text:?}, error: {error} }}")
        }
        other => format!("{other:?}"),
    };
    let texts = log.lines.iter().map(|line| match line.messages.as_slice() {
        [] => format!("{:?}", line.kind),
        said => said.iter().flat_map(|message| &message.blocks).map(words).collect::<String>(),
    });
    texts.collect()
}

/// Returns the lines of all entries of a session, in order.
pub(crate) fn lines(archive: &Archive, session: &Session) -> Vec<Vec<u8>> {
    let store = archive.store();
    let all = EntryNumber::FIRST..store.state(session.key).unwrap().next_entry();
    let all: Vec<EntryNumber> = EntryNumber::each(all).collect();
    let mut lines = Vec::new();
    whole_lines(store, session.key, &all, &mut |_, line| lines.push(line)).unwrap();
    lines
}

/// Returns what a verification calls damage.
pub(crate) fn damage(archive: &Archive) -> Vec<String> {
    let mut found = Vec::new();
    verbs::verify(archive, None, &mut |told| {
        if let Some(finding) = told.found()
            && finding.kind.is_damage()
        {
            found.push(format!("{}: {}", finding.item, finding.problem));
        }
    })
    .unwrap();
    found
}

/// Asserts that nothing is damaged, that the derived rows are those of the facts, and that the live file is the export.
#[track_caller]
pub(crate) fn assert_sound(archive: &mut Archive, session: &Session) {
    assert_eq!(damage(archive), [""; 0]);
    assert!(verbs::rebuild(archive, session).unwrap().equal, "the derived rows differ");
    let found = std::fs::read(live(archive, session)).unwrap();
    let expected = exported(archive, session, None);
    assert!(
        found == expected,
        "the live file differs from the export:\n{}\n---\n{}",
        String::from_utf8_lossy(&found),
        String::from_utf8_lossy(&expected)
    );
}
