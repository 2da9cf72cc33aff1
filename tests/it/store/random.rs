//! Whatever comes: two connections to a store in a file, with journals of any size, and the two stores that are obviously
//! right give the same answers, within transactions and after them, kept or dropped, and when the file is opened again.

use std::mem;

use crate::fixture::number;
use proptest::{collection::vec, prelude::*, sample::select};
use undertext::{
    model::{
        Command, EntryNumber, GenerationNumber, Kind, NameTag, Origin, Parent, Tie, TieKind,
        Timestamp,
    },
    store::{
        Commit, Cursor, Derived, FactStore, MemoryStore, SessionKey, Sighting, SqliteStore, Store,
        StoreError, Transaction, whole_lines,
    },
};

use super::{
    bytes::repetitive,
    lab::{Folder, all_answers, answers, assert_same, assert_whole, kind},
    ledger::Ledger,
    writer::{Writer, seal_again},
};

const SESSIONS: [&str; 3] = ["one", "two", "two/agent"];

#[derive(Clone, Debug)]
enum Act {
    /// Writes in one transaction, by the first or the second connection, and commits it or lets it go.
    Write { by: usize, parts: Vec<Part>, keeps: bool },
    /// Opens the file again, with a journal of another size.
    Reopen(usize, u64, u64),
    /// A reader begins to look, and the one before looks a last time.
    Look,
}

#[derive(Clone, Debug)]
enum Part {
    /// Lines of these kinds, in a session.
    Lines(usize, Vec<usize>),
    /// So many lines.
    Many(usize, usize),
    /// An entry that stands in the place of another, in any order.
    Origin(usize, u64),
    /// All that a generation shows of other sessions is gone.
    Untie(usize),
    /// Facts of kinds that are rare.
    Rare(usize),
    /// Only the tail of the file changes, and an operation is undone.
    Tail(usize),
    /// An operation that was true before.
    Stale(usize),
    /// An operation with something wrong.
    Spoilt(usize, usize),
    /// All that is derived.
    Derive(usize, u8),
    /// The token counts of some entries.
    Count(usize, Vec<u64>),
    Sight(u64),
}

fn part() -> impl Strategy<Value = Part> {
    let session = 0..SESSIONS.len();
    let s = || session.clone();
    prop_oneof![
        8 => (s(), vec(0usize..9, 0..5)).prop_map(|(s, lines)| Part::Lines(s, lines)),
        1 => (s(), 15usize..40).prop_map(|(s, count)| Part::Many(s, count)),
        2 => (s(), 1u64..9).prop_map(|(s, entry)| Part::Origin(s, entry)),
        1 => s().prop_map(Part::Untie),
        2 => s().prop_map(Part::Rare),
        1 => s().prop_map(Part::Tail),
        1 => s().prop_map(Part::Stale),
        2 => (s(), 0..SPOILS.len()).prop_map(|(s, way)| Part::Spoilt(s, way)),
        1 => (s(), 0u8..3).prop_map(|(s, how)| Part::Derive(s, how)),
        1 => (s(), vec(1u64..12, 1..4)).prop_map(|(s, entries)| Part::Count(s, entries)),
        1 => (0u64..9).prop_map(Part::Sight),
    ]
}

fn limits() -> impl Strategy<Value = (u64, u64)> + Clone {
    (select(vec![0u64, 1, 2, 3, 5, 64]), select(vec![300u64, 3000, 1 << 20]))
}

fn act() -> impl Strategy<Value = Act> {
    let write = (0usize..2, vec(part(), 1..5), prop::bool::weighted(0.8));
    prop_oneof![
        8 => write.prop_map(|(by, parts, keeps)| Act::Write { by, parts, keeps }),
        1 => (0usize..2, limits()).prop_map(|(by, (rows, bytes))| Act::Reopen(by, rows, bytes)),
        1 => Just(Act::Look),
    ]
}

/// What is wrong with an operation, whatever it brings.
const SPOILS: [fn(&mut Commit); 8] = [
    |c| c.operation.at = Timestamp(c.operation.at.0 + 1),
    |c| c.expected = None,
    |c| c.operation.n = c.operation.n.next(),
    |c| c.operation.first = c.operation.first.next(),
    |c| drop(c.lines.pop()),
    |c| c.kept.push(Vec::new()),
    |c| c.bulk.origins.push(Origin { entry: number(1), origin: number(1), cut: None }),
    |c| {
        if let Some(record) = c.records.first_mut() {
            record.parent = Parent::Entry(record.n);
        }
    },
];

/// Returns a line of a kind: named or not, long or short, one that comes again and again or one that is new.
fn line(kind: usize, n: usize) -> Vec<u8> {
    match kind {
        0..3 => format!(r#"{{"uuid":"again-{kind}"}}"#).into_bytes(),
        3 => b"no object".to_vec(),
        4 => format!(r#"{{"uuid":"new-{n}"}}"#).into_bytes(),
        5 => repetitive(n % 3, 1).remove(0),
        6 => repetitive(n, 1).remove(0),
        7 => format!(r#"{{"x":"{}"}}"#, format!("{n} ").repeat(30_000)).into_bytes(),
        _ => vec![b'x', 0xff, u8::try_from(n % 251).unwrap()],
    }
}

/// The tokens that a line has: they depend on nothing else.
fn tokens(line: &[u8]) -> Vec<u64> {
    vec![line.len() as u64, line.first().copied().unwrap_or_default().into()]
}

/// The stores that are compared: the connection that writes, and those that are right.
struct Sides {
    folder: Folder,
    files: [SqliteStore; 2],
    memory: MemoryStore,
    ledger: Ledger,
    writers: Vec<Writer>,
    /// How far each store was read.
    cursors: Vec<Cursor>,
    /// Numbers that make lines new.
    n: usize,
}

impl Sides {
    fn new((rows, bytes): (u64, u64), other: (u64, u64)) -> Self {
        let folder = Folder::new(rows, bytes);
        let mut files = [folder.write(), folder.write()];
        files[1].set_journal(other.0, other.1);
        let id = files[0].id().unwrap();
        let (memory, ledger) = (MemoryStore::with_id(id), Ledger::with_id(id));
        let writers = SESSIONS.map(|id| Writer::new(&memory, id)).into();
        let mut sides = Self { folder, files, memory, ledger, writers, cursors: Vec::new(), n: 0 };
        sides.cursors = sides.stores().map(|store| store.since(None).unwrap().1).into();
        sides
    }

    fn stores(&self) -> [&dyn Store; 4] {
        [&self.memory, &self.ledger, &self.files[0], &self.files[1]]
    }

    /// Writes parts in one transaction of the memory, of the ledger and of one connection.
    fn write(&mut self, by: usize, parts: &[Part], keeps: bool) {
        let mut writers = mem::take(&mut self.writers);
        let before = writers.clone();
        {
            let stores: [&dyn Store; 3] = [&self.memory, &self.ledger, &self.files[by]];
            let mut open = stores.map(|store| store.begin().unwrap());
            for part in parts {
                self.n += 7;
                do_part(part, self.n, &mut writers, &stores, &mut open);
                // Who writes sees it, and nobody else.
                let name = &writers[touched(part)].name;
                if self.memory.session(name).unwrap().is_some() {
                    assert_same(&answers(stores[2], name), &answers(&self.memory, name));
                }
            }
            for writing in open {
                if keeps {
                    assert!(writing.commit().unwrap().unsettled.is_none());
                }
            }
        }
        self.writers = if keeps { writers } else { before };
    }

    /// Asserts that all stores tell the same sessions that took something in since they were asked last.
    fn assert_cursors(&mut self) {
        let told = (0..4).map(|at| {
            let store = self.stores()[at];
            let (keys, cursor) = store.since(Some(&self.cursors[at])).unwrap();
            let names = store.names().unwrap();
            let name =
                |key: &SessionKey| names.iter().find(|(held, _)| held == key).unwrap().1.id.clone();
            (keys.iter().map(name).collect::<Vec<_>>(), cursor)
        });
        let (told, cursors): (Vec<_>, Vec<_>) = told.unzip();
        assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
        self.cursors = cursors;
    }

    /// Asserts that token counts, where they are known, are those of the lines.
    fn assert_counts(&self) {
        for store in self.stores() {
            for (key, _) in store.names().unwrap() {
                for (n, counted) in store.counts(key, EntryNumber::ALL, 1).unwrap() {
                    let mut found = Vec::new();
                    whole_lines(store, key, &[n], &mut |_, line| found = line).unwrap();
                    assert_eq!(counted, tokens(&found));
                }
            }
        }
    }
}

/// Returns the session that a part is about.
fn touched(part: &Part) -> usize {
    match part {
        Part::Lines(s, _)
        | Part::Many(s, _)
        | Part::Origin(s, _)
        | Part::Untie(s)
        | Part::Rare(s)
        | Part::Tail(s)
        | Part::Stale(s)
        | Part::Spoilt(s, _)
        | Part::Derive(s, _)
        | Part::Count(s, _) => *s,
        Part::Sight(_) => 0,
    }
}

/// Does a part of a transaction in each store, and asserts that all say the same of it.
fn do_part(
    part: &Part,
    n: usize,
    writers: &mut [Writer],
    stores: &[&dyn Store],
    open: &mut [Box<dyn Transaction + '_>],
) {
    let s = touched(part);
    if writers[s].state.newest.is_none() && !matches!(part, Part::Stale(_) | Part::Sight(_)) {
        let mut begun = writers[s].begin();
        if SESSIONS[s].ends_with("agent") {
            let tie = Tie { kind: TieKind::SubAgent, other: SESSIONS[n % 2].into() };
            begun.ties.push((number(1), vec![tie]));
        }
        assert_eq!(add(&begun, open), Ok(()));
    }
    let writer = &mut writers[s];
    let before = writer.clone();
    let added = match part {
        Part::Lines(_, kinds) => {
            let lines: Vec<Vec<u8>> =
                (0..).zip(kinds).map(|(at, kind)| line(*kind, n + at)).collect();
            add(&writer.next(&lines, |_| {}), open)
        }
        Part::Many(_, count) => {
            let lines: Vec<Vec<u8>> = (0..*count).map(|at| line(6 + at % 3 * 2, n + at)).collect();
            add(&writer.next(&lines, |_| {}), open)
        }
        Part::Origin(_, entry) => {
            let origin = Origin { entry: number(*entry), origin: number(1), cut: None };
            add(&writer.next(&[], |brought| brought.bulk.origins.push(origin)), open)
        }
        Part::Untie(_) => {
            let next = writer.next(&[line(0, n)], |_| {});
            add(&Commit { ties: vec![(number(1), Vec::new())], card: None, ..next }, open)
        }
        Part::Rare(_) => add(&writer.rare(), open),
        Part::Tail(_) => {
            let undoes = number(writer.state.operations());
            let mut next = writer.clone().next(&[], |_| {});
            let end = writer.state.ends[&GenerationNumber::FIRST].clone();
            next = writer.next(&[], |brought| {
                let run =
                    undertext::model::Run { start: end.end(), first: number(0), count: 0, ..end };
                // A second one at the same place of the same generation is no new place.
                brought.bulk.runs.push(undertext::model::Run { tail: vec![b'{'; n % 9], ..run });
                brought.command =
                    Command::Undo { undoes, command: "append".into(), left: Vec::new() };
                brought.facts.clone_from(&next.operation.facts);
            });
            add(&next, open)
        }
        Part::Stale(_) => {
            // The operation that begins the session: where that is not there yet, it does begin.
            let mut first = Writer::new(stores[0], SESSIONS[s]);
            let told = add(&first.begin(), open);
            if writer.state.newest.is_none() {
                assert_eq!(told, Ok(()));
                *writer = first;
            } else {
                assert_eq!(told, Err("conflict"));
            }
            return;
        }
        Part::Spoilt(_, way) => {
            let mut bad = writer.next(&[line(4, n), line(3, n)], |_| {});
            SPOILS[*way](&mut bad);
            if *way > 0 {
                seal_again(&mut bad, writer.store);
            }
            add(&bad, open)
        }
        Part::Derive(_, how) => {
            for (store, writing) in stores.iter().zip(open) {
                let key = store.session(&writer.name).unwrap().unwrap();
                writing.derive(key, &derived(*store, key, *how)).unwrap();
            }
            Ok(())
        }
        Part::Count(_, entries) => {
            for (store, writing) in stores.iter().zip(open) {
                let key = store.session(&writer.name).unwrap().unwrap();
                let mut counts = Vec::new();
                for n in entries.iter().filter(|n| **n <= writer.ids.len() as u64) {
                    whole_lines(*store, key, &[number(*n)], &mut |n, line| {
                        counts.push((n, tokens(&line)));
                    })
                    .unwrap();
                }
                writing.count(key, 1, &counts).unwrap();
            }
            Ok(())
        }
        Part::Sight(length) => {
            let path = if length % 2 == 0 { b"/a".to_vec() } else { b"/b".to_vec() };
            let seen = Sighting { path, inode: *length, length: *length, modified: 3, changed: -3 };
            for writing in open {
                writing.sight(std::slice::from_ref(&seen)).unwrap();
            }
            Ok(())
        }
    };
    if added.is_err() {
        *writer = before;
    }
}

/// Adds a commit to each transaction, and returns what all of them say of it.
fn add(commit: &Commit, open: &mut [Box<dyn Transaction + '_>]) -> Result<(), &'static str> {
    let mut told: Vec<Result<(), StoreError>> = Vec::new();
    for writing in open {
        told.push(writing.add(commit.clone()).map(|_| ()));
    }
    let kinds: Vec<_> = told.iter().map(|told| told.as_ref().copied().map_err(kind)).collect();
    assert!(kinds.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
    kinds[0]
}

/// Returns derived rows of a session that are others than those that a store has.
fn derived(store: &dyn Store, key: SessionKey, how: u8) -> Derived {
    let mut records = store.records(key, EntryNumber::ALL).unwrap();
    for record in &mut records {
        if record.n.get() % 3 == u64::from(how) {
            record.kind = Kind::Boundary;
            record.name = Some(NameTag::of("derived"));
            record.hint = [&record.hint, &[how][..]].concat().into();
        }
    }
    let mut card = store.card(key).unwrap();
    card.title = Some(format!("derived {how}"));
    card.hidden = how == 2;
    Derived {
        records,
        twins: vec![NameTag::new(how.into())],
        ties: vec![(number(1), vec![Tie { kind: TieKind::Continuation, other: "two".into() }])],
        card,
        state: store.state(key).unwrap(),
    }
}

fn check(one: (u64, u64), other: (u64, u64), acts: &[Act]) {
    let mut sides = Sides::new(one, other);
    let mut look: Option<(SqliteStore, Vec<String>)> = None;
    for act in acts {
        match act {
            Act::Write { by, parts, keeps } => {
                sides.write(*by, parts, *keeps);
                for name in sides.writers.iter().map(|writer| &writer.name) {
                    if sides.memory.session(name).unwrap().is_none() {
                        continue;
                    }
                    let told = answers(&sides.memory, name);
                    assert_same(&answers(&sides.files[1 - by], name), &told);
                }
                sides.assert_cursors();
            }
            Act::Reopen(by, rows, bytes) => {
                sides.files[*by] = sides.folder.write();
                sides.files[*by].set_journal(*rows, *bytes);
            }
            Act::Look => {
                let reader = sides.folder.read();
                let told = all_answers(&reader);
                if let Some((reader, told)) = look.replace((reader, told)) {
                    assert_same(&all_answers(&reader), &told);
                }
            }
        }
    }
    let told = all_answers(&sides.memory);
    assert_same(&all_answers(&sides.ledger), &told);
    sides.assert_counts();
    for file in [&sides.files[0], &sides.files[1], &sides.folder.read(), &sides.folder.write()] {
        assert_same(&all_answers(file), &told);
        assert_whole(file);
    }
    if let Some((reader, told)) = look {
        assert_same(&all_answers(&reader), &told);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::needs::rounds(8, 32), max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_a_file_gives_the_answers_of_one_in_memory_whatever_comes(
        one in limits(), other in limits(), acts in vec(act(), 1..12),
    ) {
        check(one, other, &acts);
    }
}
