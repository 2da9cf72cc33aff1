//! The contract of every store: each claim holds for the one in memory, which is obviously right, and for SQLite.
//!
//! Commits are put together by hand here, so that they can also be put together wrongly.

use std::collections::BTreeSet;

use tempfile::TempDir;
use undertext::{
    model::{
        Card, Checkpoint, Entry, EntryId, Facts, File, Gaps, Generation, IdPrefix, Kind, LineId,
        Mark, Move, NameTag, Operation, OperationId, Origin, Parent, Position, Record, Rotation,
        Run, Running, SessionName, Tie, TieKind, Timestamp, line,
    },
    store::{
        Access, Commit, Derived, FactKind, Find, MemoryStore, NewLine, SessionFilter, SessionKey,
        SqliteStore, Store, StoreError,
    },
};

/// Commits two entries with a run whose running hash is wrong, and which the operation's hash covers all the same.
pub(crate) fn commit_wrong_running_hash(store: &std::path::Path) {
    let mut writer = Writer::new("s");
    writer.running = Running::EMPTY.then(b"x", EntryId::of(None, LineId::of(b"y")));
    let mut store = SqliteStore::open(store, Access::Write).unwrap();
    store.commit(writer.begin()).unwrap();
}

/// A session as its writer knows it: makes the commits that follow one another.
struct Writer {
    name: SessionName,
    before: Option<OperationId>,
    n: u64,
    ids: Vec<EntryId>,
    running: Running,
    bytes: u64,
}

impl Writer {
    fn new(id: &str) -> Self {
        Self {
            name: SessionName { format: "native".into(), id: id.into() },
            before: None,
            n: 0,
            ids: Vec::new(),
            running: Running::EMPTY,
            bytes: 0,
        }
    }

    /// Returns the next commit, with these lines and whatever `more` adds to its facts; the writer goes on from it.
    fn next(&mut self, lines: &[Vec<u8>], more: impl FnOnce(&mut Facts)) -> Commit {
        let first = self.ids.len() as u64 + 1;
        let mut facts = Facts::default();
        let (mut new, mut records) = (Vec::new(), Vec::new());
        for bytes in lines {
            let shape = line::split(bytes, true, false).next().and_then(|line| line.shape);
            let name = shape.as_ref().and_then(|shape| shape.name.clone());
            let n = self.ids.len() as u64 + 1;
            let link = (name.is_none() && n > 1).then_some(n - 1);
            let before = link.map(|_| *self.ids.last().unwrap());
            let id = EntryId::of(before, LineId::of(bytes));
            self.running = self.running.then(Gaps::usual(n - 1), id);
            self.bytes += bytes.len() as u64 + u64::from(n > 1);
            self.ids.push(id);
            facts.entries.push(Entry { n, id, link });
            records.push(Record {
                n,
                kind: if n.is_multiple_of(4) { Kind::Boundary } else { Kind::User },
                name: name.map(|span| NameTag::of(&String::from_utf8_lossy(&bytes[span]))),
                parent: link.map_or(Parent::Root, Parent::Entry),
                time: Some(Timestamp(i64::try_from(n).unwrap())),
                hint: if n.is_multiple_of(2) { vec![1, 2] } else { Vec::new() },
            });
            new.push(NewLine::new(
                bytes.clone(),
                shape.map(|shape| shape.texts).unwrap_or_default(),
            ));
        }
        if !lines.is_empty() {
            facts.runs.push(Run {
                generation: 1,
                start: first - 1,
                first,
                count: lines.len() as u64,
                gaps: Gaps::default(),
                bytes: self.bytes,
                running: self.running,
                tail: b"\n".to_vec(),
            });
        }
        more(&mut facts);
        facts.sort();
        self.n += 1;
        let mut operation = Operation {
            n: self.n,
            at: Timestamp(i64::try_from(self.n).unwrap() * 1000),
            command: "append".into(),
            detail: "{}".into(),
            undoes: (self.n > 2).then_some(self.n - 1),
            first,
            count: lines.len() as u64,
            hash: OperationId::new([0; 32]),
        };
        operation.hash = operation.seal(self.before, &self.name, &facts);
        let expected = self.before.replace(operation.hash);
        Commit {
            session: self.name.clone(),
            expected,
            facts,
            lines: new,
            records,
            twins: vec![NameTag::new(self.n)],
            ties: vec![(1, vec![Tie { kind: TieKind::Beginning, other: format!("b{}", self.n) }])],
            card: Some(Card {
                title: Some(self.name.id.clone()),
                folder: Some("/project".into()),
                started: Timestamp(1),
                active: operation.at,
                turns: self.ids.len() as u64,
                hidden: false,
            }),
            operation,
        }
    }

    /// Returns a first commit that begins a session as `new` does, with two named records.
    fn begin(&mut self) -> Commit {
        let lines = [br#"{"uuid":"a"}"#.to_vec(), br#"{"uuid":"b"}"#.to_vec()];
        self.next(&lines, |facts| {
            facts.files.push(File { n: 1, path: b"transcripts/\xff.jsonl".to_vec() });
            facts.generations.push(Generation { n: 1, file: Some(1) });
            facts.moves.push(Move { branch: "main".into(), from: None, to: Some(place(2)) });
            facts.marks.push(Mark {
                name: Mark::CURRENT.into(),
                from: None,
                to: Some("main".into()),
            });
        })
    }

    /// Returns three more commits, which hold a fact of every kind.
    fn rest(&mut self) -> Vec<Commit> {
        let mut commits = Vec::new();
        let more = [
            br#"{"uuid":"a","again":1}"#.to_vec(),
            b"no object".to_vec(),
            b"no object".to_vec(),
            br#"{"uuid":"f81d4fae-7dec-41d0-8765-00a0c91e6bf6"}"#.to_vec(),
        ];
        commits.push(self.next(&more, |facts| {
            facts.moves.push(Move {
                branch: "main".into(),
                from: Some(place(2)),
                to: Some(place(6)),
            });
            facts.moves.push(Move { branch: "é".into(), from: None, to: Some(place(1)) });
            facts.checkpoints.push(Checkpoint {
                n: 0,
                place: Position { head: None, ..place(0) },
                before: Some(1),
                own: Some("x".into()),
                note: None,
            });
            facts.checkpoints.push(Checkpoint {
                n: 1,
                place: place(3),
                before: None,
                own: None,
                note: Some("n\0".into()),
            });
        }));
        commits.push(self.next(&[], |facts| {
            facts.files.push(File { n: 2, path: Vec::new() });
            facts.generations.push(Generation { n: 2, file: None });
            facts.runs.push(Run {
                generation: 2,
                start: 0,
                first: 4,
                count: 2,
                gaps: Gaps(vec![(2, b"\r\n".to_vec())]),
                bytes: 7,
                running: Running::EMPTY,
                tail: Vec::new(),
            });
            facts.moves.push(Move { branch: "é".into(), from: Some(place(1)), to: None });
            facts.marks.push(Mark {
                name: Mark::HIDDEN.into(),
                from: None,
                to: Some("yes".into()),
            });
            facts.origins.push(Origin { entry: 3, origin: 1 });
            facts.rotations.push(Rotation {
                file: 1,
                aside: b"\xfe".to_vec(),
                old: 1,
                new: 2,
                inode: u64::MAX,
                length: 9,
            });
        }));
        commits.push(self.next(&[], |facts| {
            facts.marks.push(Mark {
                name: Mark::HIDDEN.into(),
                from: Some("yes".into()),
                to: None,
            });
            // Only the tail changed.
            facts.runs.push(Run {
                generation: 1,
                start: 6,
                first: 0,
                count: 0,
                gaps: Gaps::default(),
                bytes: 99,
                running: Running::EMPTY,
                tail: b"{\"torn".to_vec(),
            });
        }));
        commits
    }
}

fn place(head: u64) -> Position {
    Position { generation: 1, head: Some(head), horizon: head }
}

/// Runs a check over an empty store of each kind.
fn over_each(check: impl Fn(&mut dyn Store)) {
    check(&mut MemoryStore::new());
    let folder = TempDir::new().unwrap();
    check(&mut SqliteStore::open(&folder.path().join("store.db"), Access::Write).unwrap());
}

/// Returns every answer that a store gives about a session, as text.
fn answers(store: &dyn Store, key: SessionKey, names: &[&str]) -> Vec<String> {
    let mut all = vec![
        format!("{:?}", store.tip(key).unwrap()),
        format!("{:?}", store.branches(key).unwrap()),
        format!("{:?}", store.undos(key).unwrap()),
        format!("{:?}", store.twins(key).unwrap()),
        format!("{:?}", store.ties(key).unwrap()),
        format!("{:?}", store.card(key).unwrap()),
        format!("{:?}", store.facts(key, 0..u64::MAX, &[]).unwrap()),
    ];
    for kind in FactKind::ALL {
        all.push(format!("{:?}", store.facts(key, 0..u64::MAX, &[kind]).unwrap()));
    }
    all.push(format!("{:?}", store.facts(key, 2..4, &FactKind::ALL).unwrap()));
    let total = store.tip(key).unwrap().entries();
    for range in [0..u64::MAX, 0..0, 1..2, 2..4, 3..3, total..total + 5, total + 7..total + 9] {
        all.push(format!("{:?}", store.operations(key, range.clone()).unwrap()));
        all.push(format!("{:?}", store.entries(key, range.clone()).unwrap()));
        all.push(format!("{:?}", store.records(key, range.clone()).unwrap()));
        all.push(format!("{:?}", store.origins(key, range.clone()).unwrap()));
        all.push(format!("{:?}", store.boundary(key, range.clone()).unwrap()));
        all.push(format!("{:?}", store.line_ids(key, range).unwrap()));
    }
    for generation in 0..4 {
        for from in 0..total.min(20) + 2 {
            all.push(format!("{:?}", store.runs(key, generation, from).unwrap()));
        }
    }
    for entry in store.entries(key, 0..u64::MAX).unwrap() {
        all.push(format!("{:?}", store.find(key, &Find::Id(entry.id)).unwrap()));
        for digits in [1, 2, 11, 12, 13, 64] {
            let prefix = IdPrefix::parse(&entry.id.to_string()[..digits]).unwrap();
            all.push(format!("{:?}", store.find(key, &Find::Prefix(prefix)).unwrap()));
        }
    }
    for name in names {
        let (low, high) = NameTag::bounds(name);
        all.push(format!("{:?}", store.find(key, &Find::Name(low, high)).unwrap()));
    }
    all
}

fn line_of(store: &dyn Store, key: SessionKey, n: u64) -> Vec<u8> {
    let mut found = Vec::new();
    store.lines(key, &[n], &mut |_, line| found = line).unwrap();
    found
}

#[test]
fn both_stores_give_equal_answers_to_every_question() {
    let folder = TempDir::new().unwrap();
    let mut stores: [Box<dyn Store>; 2] = [
        Box::new(MemoryStore::new()),
        Box::new(SqliteStore::open(&folder.path().join("store.db"), Access::Write).unwrap()),
    ];
    let told = stores.each_mut().map(|store| {
        let mut all = Vec::new();
        let names = ["a", "b", "none", "f81d4fae-7dec-41d0-8765-00a0c91e6bf6", "f81d4fae", "f"];
        for id in ["one", "two"] {
            let mut writer = Writer::new(id);
            let key = store.commit(writer.begin()).unwrap();
            for commit in writer.rest() {
                store.commit(commit).unwrap();
            }
            all.extend(answers(store.as_ref(), key, &names));
            for n in 1..=6 {
                all.push(format!("{:?}", line_of(store.as_ref(), key, n)));
            }
        }
        let lists = [
            SessionFilter::default(),
            SessionFilter { limit: Some(1), ..SessionFilter::default() },
            SessionFilter { limit: Some(0), ..SessionFilter::default() },
            SessionFilter { prefix: Some("t".into()), ..SessionFilter::default() },
            SessionFilter { prefix: Some("%".into()), ..SessionFilter::default() },
            SessionFilter { title: Some("one".into()), ..SessionFilter::default() },
            SessionFilter { folder: Some("/".into()), ..SessionFilter::default() },
            SessionFilter {
                format: Some("native".into()),
                hidden: true,
                ..SessionFilter::default()
            },
        ];
        for filter in &lists {
            let listed = store.sessions(filter).unwrap().into_iter();
            all.push(format!("{:?}", listed.map(|l| (l.name, l.card)).collect::<Vec<_>>()));
        }
        let unknown = SessionName { format: "native".into(), id: "' OR 1".into() };
        all.push(format!("{:?}", store.session(&unknown).unwrap()));
        all
    });
    for (memory, sqlite) in told[0].iter().zip(&told[1]) {
        assert_eq!(memory, sqlite);
    }
    assert_eq!(told[0].len(), told[1].len());
}

#[test]
fn the_beginning_of_an_id_is_compared_as_it_is_written() {
    const HIGHEST: char = char::MAX;
    let ids = [
        "a".to_owned(),
        "ab".into(),
        "aB".into(),
        "a%c".into(),
        "a_c".into(),
        "a*c".into(),
        "a\0c".into(),
        "b".into(),
        "ä".into(),
        "äb".into(),
        "日本".into(),
        format!("a{HIGHEST}"),
        format!("a{HIGHEST}b"),
        format!("{HIGHEST}{HIGHEST}"),
        "a\u{d7ff}x".into(),
        "a\u{e000}x".into(),
    ];
    let mut prefixes: BTreeSet<String> =
        ["", "x", "A", "%", "_", "*", "?", "[a]", "\0"].map(Into::into).into();
    for id in &ids {
        prefixes.extend(id.char_indices().map(|(at, c)| id[..at + c.len_utf8()].to_owned()));
    }
    over_each(|store| {
        for (n, id) in ids.iter().enumerate() {
            let mut writer = Writer::new(id);
            writer.name.format = ["claude", "native", "pi"][n % 3].to_owned();
            store.commit(writer.begin()).unwrap();
        }
        for prefix in &prefixes {
            let list = |format: Option<&str>, limit| {
                let (format, prefix) = (format.map(str::to_owned), Some(prefix.clone()));
                let filter = SessionFilter { format, prefix, limit, ..SessionFilter::default() };
                let listed = store.sessions(&filter).unwrap().into_iter();
                listed.map(|listed| listed.name.id).collect::<Vec<_>>()
            };
            // All are equally old, and of those the one that came last is the newest.
            let begins = |id: &&String| id.starts_with(prefix);
            let expected: Vec<String> = ids.iter().rev().filter(begins).cloned().collect();
            assert_eq!(list(None, None), expected, "{prefix:?}");
            assert_eq!(list(None, Some(1)), expected[..expected.len().min(1)], "{prefix:?}");
            let natives = ids.iter().skip(1).step_by(3).rev().filter(begins);
            assert_eq!(list(Some("native"), None), natives.cloned().collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_tie_finds_the_sessions_of_a_format_that_have_it() {
    over_each(|store| {
        for (n, id) in ["d", "a", "c", "b"].into_iter().enumerate() {
            let mut writer = Writer::new(id);
            writer.name.format = if n == 2 { "pi" } else { "native" }.to_owned();
            let mut commit = writer.begin();
            let tie = |other: &str| Tie { kind: TieKind::Fork, other: other.into() };
            commit.ties = vec![(1, vec![tie("o"), tie(id)]), (2, vec![tie("o")])];
            store.commit(commit).unwrap();
        }
        let tied = |format, kind, other: &str| {
            let tied = store.tied(format, &Tie { kind, other: other.into() }).unwrap();
            tied.into_iter().map(|(_, name)| name.id).collect::<Vec<_>>()
        };
        assert_eq!(tied("native", TieKind::Fork, "o"), ["a", "b", "d"]);
        assert_eq!(tied("pi", TieKind::Fork, "o"), ["c"]);
        assert_eq!(tied("native", TieKind::Fork, "d"), ["d"]);
        assert_eq!(tied("native", TieKind::Beginning, "o"), [""; 0]);
        assert_eq!(tied("native", TieKind::Fork, "%"), [""; 0]);
    });
}

#[test]
fn a_commit_on_a_stale_tip_is_a_conflict_and_adds_nothing() {
    over_each(|store| {
        let mut writer = Writer::new("s");
        let key = store.commit(writer.begin()).unwrap();
        let first = writer.before;
        let mine = writer.next(&[b"mine".to_vec()], |_| {});
        let mut other = Writer { before: first, n: 1, ids: writer.ids[..2].to_vec(), ..writer };
        let theirs = other.next(&[b"theirs".to_vec()], |_| {});
        store.commit(theirs.clone()).unwrap();
        let held = answers(store, key, &[]);
        for stale in [mine, theirs, Writer::new("s").begin()] {
            assert!(matches!(store.commit(stale), Err(StoreError::Conflict)));
        }
        assert_eq!(answers(store, key, &[]), held);
        assert_eq!(line_of(store, key, 3), b"theirs");
    });
}

#[test]
fn a_commit_that_does_not_fit_together_is_refused_and_adds_nothing() {
    type Break = fn(&mut Commit);
    let ways: [(&str, Break); 12] = [
        ("a number that does not follow", |c| c.operation.n += 1),
        ("a first entry that does not follow", |c| c.operation.first += 1),
        ("a wrong count", |c| c.operation.count += 1),
        ("another hash", |c| c.operation.hash = OperationId::new([7; 32])),
        ("another time", |c| c.operation.at = Timestamp(5)),
        ("another detail", |c| c.operation.detail = "{ }".into()),
        ("a fact that the hash does not cover", |c| {
            c.facts.origins.push(Origin { entry: 3, origin: 1 });
        }),
        ("an entry with another id", |c| c.facts.entries[0].id = EntryId::new([1; 32])),
        ("an entry with another number", |c| c.facts.entries[0].n = 9),
        ("an entry that is linked to itself", |c| c.facts.entries[0].link = Some(3)),
        ("a line too few", |c| c.lines.clear()),
        ("a record too few", |c| c.records.clear()),
    ];
    over_each(|store| {
        let mut writer = Writer::new("s");
        let key = store.commit(writer.begin()).unwrap();
        let held = answers(store, key, &[]);
        let good = writer.next(&[b"x".to_vec()], |_| {});
        for (what, way) in &ways {
            let mut bad = good.clone();
            way(&mut bad);
            // The hash is made right again where it is not the point, so that it hides nothing.
            if !matches!(*what, "another hash" | "another time" | "another detail")
                && !what.starts_with("a fact")
            {
                bad.operation.hash = bad.operation.seal(bad.expected, &bad.session, &bad.facts);
            }
            let refused = store.commit(bad);
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{what}: {refused:?}");
            assert_eq!(answers(store, key, &[]), held, "{what}");
        }
        store.commit(good).unwrap();
    });
}

#[test]
fn a_session_that_is_refused_at_its_birth_is_not_there() {
    over_each(|store| {
        let mut bad = Writer::new("s").begin();
        bad.operation.hash = OperationId::new([7; 32]);
        store.commit(bad).unwrap_err();
        let name = SessionName { format: "native".into(), id: "s".into() };
        assert_eq!(store.session(&name).unwrap(), None);
        assert!(store.sessions(&SessionFilter::default()).unwrap().is_empty());
    });
}

#[test]
fn derived_rows_are_replaced_and_facts_are_not() {
    over_each(|store| {
        let mut writer = Writer::new("s");
        let key = store.commit(writer.begin()).unwrap();
        let tip = store.tip(key).unwrap();
        let mut records = store.records(key, 0..u64::MAX).unwrap();
        records[1].kind = Kind::Note;
        records[1].name = Some(NameTag::of("new"));
        let card = Card { title: None, ..Card::default() };
        let tie = Tie { kind: TieKind::SubAgent, other: "t".into() };
        let ties = vec![(2, vec![tie.clone()])];
        let derived = Derived { records, twins: vec![NameTag::new(3)], ties, card };
        store.derive(key, &derived).unwrap();
        assert_eq!(store.records(key, 0..u64::MAX).unwrap(), derived.records);
        assert_eq!(store.twins(key).unwrap(), derived.twins);
        assert_eq!(store.ties(key).unwrap(), derived.ties);
        let name = SessionName { format: "native".into(), id: "s".into() };
        assert_eq!(store.tied("native", &tie).unwrap(), [(key, name)]);
        assert!(store.tied("claude", &tie).unwrap().is_empty());
        assert_eq!(store.card(key).unwrap(), derived.card);
        assert_eq!(store.tip(key).unwrap(), tip);
        let tag = NameTag::of("new");
        assert_eq!(store.find(key, &Find::Name(tag, tag)).unwrap(), [2]);
    });
}

#[test]
fn a_sub_agent_is_listed_when_asked_for_or_when_its_session_is_not_there() {
    over_each(|store| {
        let listed = |store: &dyn Store, sub_agents| {
            let filter = SessionFilter { sub_agents, ..SessionFilter::default() };
            store.sessions(&filter).unwrap().into_iter().map(|listed| listed.name.id).collect()
        };
        let ids = |found: Vec<String>| found.join(" ");
        let mut agent = Writer::new("s/agent");
        let tie = Tie { kind: TieKind::SubAgent, other: "s".into() };
        store.commit(Commit { ties: vec![(1, vec![tie])], ..agent.begin() }).unwrap();
        assert_eq!(ids(listed(store, false)), "s/agent");
        store.commit(Writer::new("s").begin()).unwrap();
        assert_eq!(ids(listed(store, false)), "s");
        assert_eq!(ids(listed(store, true)), "s s/agent");
        // Ties take the place of those that the generation had.
        store.commit(Commit { ties: vec![(1, Vec::new())], ..agent.next(&[], |_| {}) }).unwrap();
        assert_eq!(ids(listed(store, false)), "s/agent s");
    });
}

#[test]
fn token_counts_are_kept_by_the_line_and_the_rule() {
    over_each(|store| {
        let mut one = Writer::new("one");
        let mut other = Writer::new("other");
        let key = store.commit(one.begin()).unwrap();
        let twin = store.commit(other.begin()).unwrap();
        assert_eq!(store.counts(key, 0..u64::MAX, 1).unwrap(), []);
        let counts = [(1, vec![7]), (2, vec![300, 0])];
        store.keep_counts(key, 1, &counts).unwrap();
        store.keep_counts(key, 1, &counts[..1]).unwrap();
        assert_eq!(store.counts(key, 0..u64::MAX, 1).unwrap(), counts);
        assert_eq!(store.counts(key, 2..3, 1).unwrap(), counts[1..]);
        assert_eq!(store.counts(key, 0..u64::MAX, 2).unwrap(), []);
        // The same lines in another session.
        assert_eq!(store.counts(twin, 0..u64::MAX, 1).unwrap(), counts);
    });
}

#[test]
fn a_cut_line_is_kept_as_the_beginning_of_the_one_that_it_was_cut_from() {
    let record = |text: &str| format!(r#"{{"uuid":"x","a":"{text}","b":"{text}"}}"#).into_bytes();
    let noise: String = (0..60_000u32)
        .map(|n| char::from(b'!' + u8::try_from(n.wrapping_mul(2_654_435_761) >> 25).unwrap() % 90))
        .map(|c| if matches!(c, '"' | '\\') { ' ' } else { c })
        .collect();
    let whole = record(&noise);
    let shape = line::split(&whole, false, false).next().unwrap().shape.unwrap();
    let cut = record(&(noise[..40_000].to_owned() + "[cut]"));
    over_each(|store| {
        let mut writer = Writer::new("s");
        // Once the whole line lies in a segment, once it comes with the same commit.
        let key = store.commit(writer.begin()).unwrap();
        store.commit(writer.next(std::slice::from_ref(&whole), |_| {})).unwrap();
        let before = store.sizes().unwrap().kept;
        let mut commit = writer.next(std::slice::from_ref(&cut), |_| {});
        commit.lines[0].cut_from(&whole, &shape.texts);
        store.commit(commit).unwrap();
        let other = whole.iter().map(|&byte| if byte == b'!' { b'~' } else { byte }).collect();
        let again = [&cut[..cut.len() - 1], br#","c":1}"#].concat();
        let mut commit = writer.next(&[other, again.clone()], |_| {});
        // What is said of a line and is not true changes nothing.
        commit.lines[0].cut_from(&record("other"), &shape.texts);
        commit.lines[0].cut_from(&whole, &shape.texts[..1]);
        commit.lines[1].cut_from(&whole, &shape.texts);
        store.commit(commit).unwrap();
        let mut lines = Vec::new();
        store.lines(key, &[3, 4, 6], &mut |_, line| lines.push(line)).unwrap();
        assert!(lines == [whole.clone(), cut.clone(), again]);
        let mut faults = Vec::new();
        store.check(&mut |fault| faults.push(fault)).unwrap();
        assert_eq!(faults, []);
        let sizes = store.sizes().unwrap();
        // In memory nothing is shared; the store keeps the other line once, and of the cut ones next to nothing.
        assert!(sizes.texts == 0 || sizes.kept - before < 62_000, "{sizes:?}, {before} before");
    });
}

/// Returns lines that hold long strings once and again: within a line, from line to line, and cut short of the threshold.
fn repetitive(seed: usize, count: usize) -> Vec<Vec<u8>> {
    let text = |n: usize, length: usize| -> String {
        (0..length)
            .map(|i| char::from(b'a' + u8::try_from((i * 7 + n * 13 + i / 26) % 26).unwrap()))
            .collect()
    };
    let line = |n: usize| {
        let n = n + seed;
        let (own, shared) = (text(n, 200 + n % 300), text(n % 5, 2000));
        format!(
            r#"{{"n":{n},"message":"{own}","a":["{shared}","{own}"],"b":{{"c":"{shared}\u0041"}}}}"#
        )
        .into_bytes()
    };
    (0..count).map(line).collect()
}

/// Adds batches of lines and asserts that each line comes back, from the same connection and from a new one.
fn assert_kept(batches: &[Vec<Vec<u8>>], packed: bool) {
    over_each(|store| {
        let mut writer = Writer::new("s");
        let key = store.commit(writer.begin()).unwrap();
        let mut n = 2;
        for batch in batches {
            store.commit(writer.next(batch, |_| {})).unwrap();
            // The newest line of each batch at once, while its strings are at hand.
            n += batch.len() as u64;
            assert!(line_of(store, key, n) == *batch.last().unwrap());
        }
        assert_all(store, key, batches);
    });
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let mut writer = Writer::new("s");
    let mut key = None;
    for (i, batch) in batches.iter().enumerate() {
        // A new connection now and then knows no strings by heart.
        let mut store = SqliteStore::open(&path, Access::Brief).unwrap();
        if i == 0 {
            key = Some(store.commit(writer.begin()).unwrap());
        }
        store.commit(writer.next(batch, |_| {})).unwrap();
    }
    let key = key.unwrap();
    let store = SqliteStore::open(&path, Access::Read).unwrap();
    assert_all(&store, key, batches);
    let db = rusqlite::Connection::open(&path).unwrap();
    let segments: i64 = db.query_row("SELECT count(*) FROM segment", [], |row| row.get(0)).unwrap();
    assert_eq!(segments > 0, packed, "{segments} segments");
}

fn assert_all(store: &dyn Store, key: SessionKey, batches: &[Vec<Vec<u8>>]) {
    let all: Vec<&Vec<u8>> = batches.iter().flatten().collect();
    let numbers: Vec<u64> = (3..3 + all.len() as u64).collect();
    // In order, and backwards, which asks for segments in another order.
    let mut at = 0;
    store
        .lines(key, &numbers, &mut |_, line| {
            assert!(line == *all[at], "line {at}");
            at += 1;
        })
        .unwrap();
    assert_eq!(at, all.len());
    let backwards: Vec<u64> = numbers.iter().rev().copied().collect();
    store
        .lines(key, &backwards, &mut |n, line| {
            assert!(line == *all[usize::try_from(n).unwrap() - 3]);
        })
        .unwrap();
    let lengths: Vec<u64> =
        store.line_ids(key, 3..u64::MAX).unwrap().into_iter().map(|(_, length)| length).collect();
    assert_eq!(lengths, all.iter().map(|line| line.len() as u64).collect::<Vec<_>>());
    let mut faults = Vec::new();
    store.check(&mut |fault| faults.push(fault)).unwrap();
    assert_eq!(faults, []);
}

#[test]
fn a_repeated_string_is_kept_once_and_comes_back_everywhere() {
    let batches = [repetitive(0, 10), repetitive(5, 10), repetitive(100, 3)];
    assert_kept(&batches, false);
    let folder = TempDir::new().unwrap();
    let mut store = SqliteStore::open(&folder.path().join("store.db"), Access::Write).unwrap();
    let mut writer = Writer::new("s");
    store.commit(writer.begin()).unwrap();
    for batch in &batches {
        store.commit(writer.next(batch, |_| {})).unwrap();
    }
    let sizes = store.sizes().unwrap();
    assert!(sizes.kept * 4 < sizes.raw, "{sizes:?}");
}

#[test]
fn lines_are_packed_when_single_appends_cross_the_threshold() {
    let text =
        |n: usize| format!(r#"{{"n":{n},"x":"{}"}}"#, format!("{n} ").repeat(4000)).into_bytes();
    let batches: Vec<Vec<Vec<u8>>> = (0..200).map(|n| vec![text(n)]).collect();
    assert_kept(&batches, true);
}

#[test]
fn lines_are_packed_when_one_batch_crosses_the_threshold() {
    let unique =
        |n: usize| format!(r#"{{"n":{n},"x":"{}"}}"#, format!("{n},").repeat(300)).into_bytes();
    let batches = [
        repetitive(0, 20),
        (0..2500).map(unique).collect(),
        repetitive(3, 20),
        (2400..4000).map(unique).chain(repetitive(0, 20)).collect(),
    ];
    assert_kept(&batches, true);
}

#[test]
fn a_line_of_megabytes_comes_back() {
    let long = |c: &str, size: usize| format!(r#"{{"x":"{}"}}"#, c.repeat(size)).into_bytes();
    let noise: Vec<u8> =
        (0..1_500_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let batches = [
        vec![long("a", 3 << 20)],
        vec![b"short".to_vec(), long("a", 3 << 20), long("b", (1 << 20) + 1), noise.clone()],
        vec![b"short again".to_vec()],
        vec![[&noise[1..], b"x"].concat(), Vec::from(&b"\xff\x00"[..])],
    ];
    assert_kept(&batches, true);
}

#[test]
fn equal_lines_in_two_sessions_are_kept_once() {
    over_each(|store| {
        for id in ["one", "two"] {
            let mut writer = Writer::new(id);
            let key = store.commit(writer.begin()).unwrap();
            store.commit(writer.next(&repetitive(0, 5), |_| {})).unwrap();
            assert_eq!(line_of(store, key, 5), repetitive(0, 5)[2]);
        }
        assert_eq!(store.sizes().unwrap().lines, 7);
    });
}

#[test]
fn a_reader_sees_one_snapshot_while_others_write() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let mut store = SqliteStore::open(&path, Access::Write).unwrap();
    let mut writer = Writer::new("s");
    let key = store.commit(writer.begin()).unwrap();
    let reader = SqliteStore::open(&path, Access::Read).unwrap();
    let held = answers(&reader, key, &["a"]);
    for n in 0..100 {
        let line = format!(r#"{{"n":{n},"x":"{}"}}"#, "y".repeat(20_000 + n)).into_bytes();
        store.commit(writer.next(&[line], |_| {})).unwrap();
    }
    assert_eq!(answers(&reader, key, &["a"]), held);
    assert_eq!(line_of(&reader, key, 2), br#"{"uuid":"b"}"#);
    let later = SqliteStore::open(&path, Access::Read).unwrap();
    assert_eq!(later.tip(key).unwrap().entries(), 102);
}

#[test]
fn a_reader_commits_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let mut writer = Writer::new("s");
    SqliteStore::open(&path, Access::Write).unwrap().commit(writer.begin()).unwrap();
    let mut reader = SqliteStore::open(&path, Access::Read).unwrap();
    let refused = reader.commit(writer.next(&[b"x".to_vec()], |_| {}));
    assert!(matches!(refused, Err(StoreError::ReadOnly { .. })), "{refused:?}");
}

#[test]
fn gathered_commits_become_durable_together_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let open = || SqliteStore::open(&path, Access::Write).unwrap();
    let sessions = |store: &dyn Store| store.names().unwrap().len();
    let unique =
        |n: usize| format!(r#"{{"n":{n},"x":"{}"}}"#, format!("{n},").repeat(300)).into_bytes();
    let batches = [repetitive(0, 20), (0..2500).map(unique).collect(), repetitive(3, 20)];
    let gather = |store: &mut SqliteStore, id: &str| {
        let mut writer = Writer::new(id);
        store.gather().unwrap();
        let key = store.commit(writer.begin()).unwrap();
        for batch in &batches {
            store.commit(writer.next(batch, |_| {})).unwrap();
        }
        // What is on its way can be read here, and nowhere else.
        assert_eq!(line_of(store, key, 4), batches[0][1]);
        assert_eq!(line_of(store, key, 1500), batches[1][1500 - 23]);
        assert_eq!(sessions(&SqliteStore::open(&path, Access::Read).unwrap()), 0);
        key
    };

    let mut store = open();
    gather(&mut store, "dropped");
    drop(store);
    assert_eq!(sessions(&open()), 0);

    let mut store = open();
    gather(&mut store, "refused");
    let mut stranger = Writer::new("refused");
    let refused = store.commit(stranger.begin());
    assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
    store.settle().unwrap();
    assert_eq!(sessions(&store), 0);

    let key = gather(&mut store, "kept");
    store.settle().unwrap();
    let all = batches.clone();
    assert_all(&store, key, &all);
    assert_all(&SqliteStore::open(&path, Access::Read).unwrap(), key, &all);
    // What another program adds meanwhile is found when the next ones are gathered.
    let mut other = open();
    let mut writer = Writer::new("other");
    other.commit(writer.begin()).unwrap();
    other.commit(writer.next(&repetitive(50, 20), |_| {})).unwrap();
    store.gather().unwrap();
    let mut writer = Writer::new("last");
    let key = store.commit(writer.begin()).unwrap();
    store.commit(writer.next(&repetitive(50, 20), |_| {})).unwrap();
    store.settle().unwrap();
    assert_all(&store, key, &[repetitive(50, 20)]);
}
