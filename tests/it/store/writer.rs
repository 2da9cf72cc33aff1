//! A session as its writer knows it: commits that follow one another, put together by hand, so that they can also be put
//! together wrongly.

use std::sync::Arc;

use crate::fixture::number;
use undertext::{
    model::{
        Base, Bulk, Card, Checkpoint, Command, Container, CoveredFile, CoveredRuns, CutOff,
        Cutting, Digest, Entry, EntryId, EntryNumber, Facts, File, FileNumber, Gaps, Generation,
        GenerationNumber, Kind, LineId, MachineId, Move, NameTag, Operation, Origin, Parent, Place,
        Position, Record, Request, Rotation, Run, Running, SessionName, Sidecar, State, Step,
        StoreId, Text, Tie, TieKind, Timestamp, Tombstone, Words, line,
    },
    store::{Commit, NewLine, Store},
};

/// Makes the commits of a session.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    pub(crate) name: SessionName,
    pub(crate) store: StoreId,
    pub(crate) state: State,
    pub(crate) ids: Vec<EntryId>,
    pub(crate) running: Running,
    pub(crate) bytes: u64,
}

/// What a commit brings besides its lines.
#[derive(Debug)]
pub(crate) struct Brought {
    pub(crate) command: Command,
    pub(crate) facts: Facts,
    pub(crate) bulk: Bulk,
    pub(crate) kept: Vec<Vec<u8>>,
}

/// Returns words that a person gave.
pub(crate) fn given(text: &str) -> Text {
    // A salt is drawn; here it follows from the text, so that a test that failed fails again.
    let salt = LineId::of(text.as_bytes()).as_bytes()[..16].try_into().unwrap();
    Text::Given(Words { salt, text: text.into() })
}

/// Returns a text of undertext's own.
pub(crate) fn own(text: &str) -> Text {
    Text::Own(text.into())
}

/// Returns the place of an entry in the first generation.
pub(crate) fn place(head: u64) -> Position {
    Position { generation: number(1), head: Some(number(head)), horizon: head }
}

/// Makes the operation of a commit again of what it says and of what the commit brings.
pub(crate) fn seal_again(commit: &mut Commit, store: StoreId) {
    let old = commit.operation.clone();
    commit.operation = old.seal(commit.expected, store, &commit.session, &commit.bulk);
}

/// Makes the hash of a commit's operation again, of its record as it is.
pub(crate) fn hash_again(commit: &mut Commit, store: StoreId) {
    let operation = &commit.operation;
    commit.operation.hash = operation.hash_after(commit.expected, store, &commit.session);
}

impl Writer {
    /// Returns the writer of a session that a store does not have yet.
    pub(crate) fn new(store: &dyn Store, id: &str) -> Self {
        Self {
            name: SessionName { format: "native".into(), id: id.into() },
            store: store.id().unwrap(),
            state: State::default(),
            ids: Vec::new(),
            running: Running::EMPTY,
            bytes: 0,
        }
    }

    /// Returns the writer of a session as a store knows it, whose entries are all in the first generation.
    pub(crate) fn load(store: &dyn Store, name: &SessionName) -> Self {
        let key = store.session(name).unwrap().unwrap();
        let state = store.state(key).unwrap();
        let ids =
            store.entries(key, EntryNumber::ALL).unwrap().iter().map(|entry| entry.id).collect();
        let run = state.ends[&GenerationNumber::FIRST].clone();
        let new = Self::new(store, &name.id);
        Self { state, ids, running: run.running, bytes: run.bytes, ..new }
    }

    /// Returns the next commit, with these lines and whatever `more` makes of it; the writer goes on from there.
    pub(crate) fn next(&mut self, lines: &[Vec<u8>], more: impl FnOnce(&mut Brought)) -> Commit {
        let first = self.ids.len() as u64 + 1;
        let n = self.state.operations() + 1;
        let command = Command::Append { branch: own("main"), limit: Some(n), events: None };
        let (facts, bulk) = (Facts::default(), Bulk::default());
        let mut brought = Brought { command, facts, bulk, kept: Vec::new() };
        let (mut new, mut records) = (Vec::new(), Vec::new());
        for bytes in lines {
            let shape = line::split(bytes).next().and_then(|line| line.shape);
            let name = shape.as_ref().and_then(|shape| shape.name.clone());
            let n = self.ids.len() as u64 + 1;
            let link = (name.is_none() && n > 1).then_some(n - 1);
            let before = link.map(|_| *self.ids.last().unwrap());
            let id = EntryId::of(before, LineId::of(bytes));
            self.running = self.running.then(Gaps::usual(n - 1), id);
            self.bytes += bytes.len() as u64 + u64::from(n > 1);
            self.ids.push(id);
            brought.bulk.entries.push(Entry { n: number(n), id, link: link.map(number) });
            records.push(Record {
                n: number(n),
                kind: if n.is_multiple_of(4) { Kind::Boundary } else { Kind::User },
                name: name.map(|span| NameTag::of(&String::from_utf8_lossy(&bytes[span]))),
                parent: match n % 5 {
                    3 => Parent::Missing,
                    _ => link.map_or(Parent::Root, |link| Parent::Entry(number(link))),
                },
                time: (!n.is_multiple_of(3)).then(|| Timestamp(i64::try_from(n).unwrap() - 2)),
                hint: if n.is_multiple_of(2) { [1, 2].into() } else { [].into() },
            });
            new.push(NewLine::new(
                bytes.clone(),
                shape.map(|shape| shape.texts).unwrap_or_default(),
            ));
        }
        if !lines.is_empty() {
            brought.bulk.runs.push(Run {
                generation: number(1),
                start: first - 1,
                first: number(first),
                count: lines.len() as u64,
                gaps: Gaps::default(),
                bytes: self.bytes,
                running: self.running,
                tail: b"\n".to_vec(),
            });
        }
        more(&mut brought);
        let Brought { command, mut facts, mut bulk, kept } = brought;
        facts.sort();
        bulk.sort();
        let at = Timestamp(i64::try_from(n).unwrap() * 1000);
        let expected = self.state.hash();
        let operation = Operation {
            n: number(n),
            at,
            first: number(first),
            command,
            facts,
            ..Operation::default()
        };
        let operation = operation.seal(expected, self.store, &self.name, &bulk);
        self.state.apply(&operation, &bulk);
        Commit {
            session: self.name.clone(),
            expected,
            kept,
            lines: new,
            records,
            twins: vec![NameTag::new(n)],
            ties: vec![(number(1), vec![Tie { kind: TieKind::Beginning, other: format!("b{n}") }])],
            card: Some(Card {
                title: Some(self.name.id.clone()),
                folder: Some("/project".into()),
                started: Some(Timestamp(1)),
                active: Some(at),
                turns: self.ids.len() as u64,
                hidden: self.state.hidden,
            }),
            operation,
            bulk,
            covered: Arc::default(),
        }
    }

    /// Returns a first commit that begins a session as `new` does, with two named records.
    pub(crate) fn begin(&mut self) -> Commit {
        let lines = [br#"{"uuid":"a"}"#.to_vec(), br#"{"uuid":"b"}"#.to_vec()];
        self.next(&lines, |brought| {
            let facts = &mut brought.facts;
            let path = b"transcripts/\xff.jsonl".to_vec();
            facts.files.push(File { n: number(1), place: Place::Store(path) });
            facts.generations.push(Generation { n: number(1), file: Some(number(1)) });
            facts.moves.push(Move { branch: own("main"), from: None, to: Some(place(2)) });
            facts.current = Some(Step { from: None, to: Some(own("main")) });
            facts.live = Some(Step { from: None, to: Some(number(1)) });
            brought.command = Command::New { about: own(r#"{"session":{}}"#) };
        })
    }

    /// Returns four more commits, which hold a fact of every kind.
    pub(crate) fn rest(&mut self) -> Vec<Commit> {
        let more = [
            br#"{"uuid":"a","again":1}"#.to_vec(),
            b"no object".to_vec(),
            b"no object".to_vec(),
            br#"{"uuid":"f81d4fae-7dec-41d0-8765-00a0c91e6bf6"}"#.to_vec(),
        ];
        let grown = self.next(&more, |brought| {
            let main = Move { branch: own("main"), from: Some(place(2)), to: Some(place(6)) };
            let other = Move { branch: given("é"), from: None, to: Some(place(1)) };
            brought.facts.moves.extend([main, other]);
            let before = Position { head: None, ..place(0) };
            brought.bulk.checkpoints.extend([
                Checkpoint {
                    n: number(0),
                    place: before,
                    before: Some(number(1)),
                    own: Some("x".into()),
                    note: Some(own("")),
                },
                Checkpoint {
                    n: number(1),
                    place: place(3),
                    before: None,
                    own: Some(String::new()),
                    note: Some(given("n\0")),
                },
            ]);
        });
        let turned = self.next(&[], |brought| {
            let (facts, bulk) = (&mut brought.facts, &mut brought.bulk);
            facts.files.push(File { n: number(2), place: Place::default() });
            facts.generations.push(Generation { n: number(2), file: None });
            bulk.runs.push(Run {
                generation: number(2),
                start: 0,
                first: number(4),
                count: 2,
                gaps: Gaps(vec![(2, b"\r\n".to_vec())]),
                bytes: 7,
                running: Running::EMPTY,
                tail: Vec::new(),
            });
            facts.moves.push(Move { branch: given("é"), from: Some(place(1)), to: None });
            facts.hidden = Some(Step { from: None, to: Some(1) });
            bulk.origins.push(Origin { entry: number(3), origin: number(1), cut: None });
            facts.rotations.push(Rotation {
                file: number(1),
                aside: b"\xfe".to_vec(),
                old: number(1),
                new: number(2),
                inode: u64::MAX,
                length: 9,
            });
            brought.command = Command::Revert {
                checkpoint: Some(number(0)),
                entry: None,
                branch: None,
                message: Some(given("Not so.")),
                left: Some(own("main.1")),
            };
        });
        let torn = self.next(&[], |brought| {
            brought.facts.hidden = Some(Step { from: Some(1), to: None });
            // Only the tail changed.
            brought.bulk.runs.push(Run {
                generation: number(1),
                start: 6,
                first: number(0),
                count: 0,
                gaps: Gaps::default(),
                bytes: 99,
                running: Running::EMPTY,
                tail: b"{\"torn".to_vec(),
            });
            brought.command = Command::Undo {
                undoes: number(3),
                command: "revert".into(),
                left: vec![own("main.2")],
            };
        });
        vec![grown, turned, torn, self.rare()]
    }

    /// Returns a commit with the kinds of facts that no command makes yet, and with the rest of the others.
    pub(crate) fn rare(&mut self) -> Commit {
        let (n, file) = (self.state.operations() + 1, self.state.files.len() as u64);
        let (entry, checkpoint) = (self.ids.len() as u64 + 1, self.state.checkpoints);
        let generation = self.state.generations.len() as u64 + 1;
        let line = format!("rare {n}").into_bytes();
        self.next(&[line], |brought| {
            let machine = MachineId::new(n << 60);
            brought
                .facts
                .generations
                .push(Generation { n: number(generation), file: Some(number(file + 1)) });
            let kept =
                [b"\x28\xb5\x2f\xfd no frame".to_vec(), Vec::new(), b"a long answer".to_vec()];
            let told = |bytes: &Vec<u8>| (Digest::of_bytes(bytes), bytes.len() as u64);
            let [(one, a), (two, b), (three, c)] = [&kept[0], &kept[1], &kept[2]].map(told);
            let facts = &mut brought.facts;
            facts.files.extend([
                File {
                    n: number(file + 1),
                    place: Place::Home(machine, b".agent/s.jsonl.zst".to_vec()),
                },
                File { n: number(file + 2), place: Place::Path(machine, b"/tmp/\xff".to_vec()) },
            ]);
            facts.containers.push(Container {
                generation: number(generation),
                digest: one,
                size: a,
            });
            facts.sidecars.extend([
                Sidecar { file: number(file + 2), digest: two, size: b },
                Sidecar { file: number(file + 1), digest: three, size: c },
            ]);
            facts.gone.extend([file + 1, 1].map(FileNumber::new));
            facts.bases.push(Base {
                generation: number(generation),
                format: "codex".into(),
                id: "other".into(),
                entry: Some(EntryId::new([7; 32])),
            });
            facts.request = Some(Request {
                verb: "revert".into(),
                checkpoint: Some(number(1)),
                entry: Some(EntryId::new([8; 32])),
                branch: Some(given("mine")),
                operation: Some(number(1)),
                note: Some(given("later")),
                options: vec![own("--keep")],
                machine: Some(machine),
            });
            facts.waiting = Some(Step { from: None, to: Some(number(n)) });
            facts.tombstones.push(Tombstone { entry: number(2), size: 12, ..Tombstone::default() });
            facts.title = Some(given("A title"));
            facts.folder = Some(given("/work"));
            let (operation, rule) = (number(n), Some("a-rule".into()));
            facts.covered_files.push(CoveredFile { operation, at: 2, digest: two, size: b, rule });
            facts.covered_runs.push(CoveredRuns { operation, digest: two, ..Default::default() });
            facts.current = Some(Step { from: Some(own("main")), to: Some(given("mine")) });
            facts.live = Some(Step { from: Some(number(1)), to: None });
            facts.moves.push(Move { branch: given("mine"), from: None, to: Some(place(2)) });
            brought.kept.extend(kept);
            brought.bulk.checkpoints.push(Checkpoint {
                n: number(checkpoint),
                place: place(2),
                before: None,
                own: None,
                note: Some(given(&format!("before {n}"))),
            });
            brought.bulk.origins.push(Origin {
                entry: number(entry),
                origin: number(2),
                cut: Some(Cutting {
                    tool: Some("read".into()),
                    tokens_before: 900,
                    tokens_after: 100,
                    texts: vec![CutOff {
                        call: "c".into(),
                        text: 0,
                        whole: 3600,
                        kept: 400,
                        suffix: 9,
                    }],
                }),
            });
            brought.command = Command::Compact {
                branch: given("mine"),
                trigger: Some("auto".into()),
                pre_tokens: 1000,
                post_tokens: None,
                window: 2000,
                summarised: 3,
                kept: 1,
                model: Some("m".into()),
                duration_ms: Some(0),
                fallback: None,
                left: None,
                events: Some(own("[]")),
                files: Some(own("")),
                losses: None,
            };
        })
    }
}
