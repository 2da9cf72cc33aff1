//! The contract of every store: each claim holds for the one in memory, for one that is made outside of the crate, and for
//! SQLite with journals of every size.
//!
//! Commits are put together by hand (`writer`), so that they can also be put together wrongly (`refused`). What lists show is
//! in `lists`; what becomes of lines, in `bytes` and, of those that are taken
//! out, in `covered`; what only a store in a file can be asked, another connection and opening it
//! again, in `settling`; what others change in it, in `altered`; what breaks it, in `faults`. `random` compares stores whatever
//! comes, and `lab` has the stores and the questions.

mod altered;
mod bundle;
mod bytes;
mod covered;
mod faults;
mod lab;
mod ledger;
mod lists;
mod random;
mod refused;
mod settling;
mod writer;

use crate::fixture::{number, numbers};
use undertext::{
    model::{
        Bulk, Card, CheckpointNumber, DayTurns, EntryId, EntryNumber, Facts, Glance, Kind,
        Landmark, LineId, NameTag, OperationNumber, Origin, Record, Running, Tagged as _, Tie,
        TieKind,
    },
    store::{
        Access, Cursor, Derived, MemoryStore, SessionFilter, SessionKey, Sighting, SqliteStore,
        Store, StoreError, whole_lines,
    },
};

use bytes::{assert_all, repetitive};
use lab::{
    all_answers, answers, assert_same, assert_whole, commit, commit_all, kind, labs, line_of,
    over_each, settle,
};
use writer::Writer;

/// Commits two entries with a run whose running hash is wrong, and which the operation's hash covers all the same.
pub(crate) fn commit_wrong_running_hash(store: &std::path::Path) {
    let store = SqliteStore::open(store, Access::Write).unwrap();
    let mut writer = Writer::new(&store, "s");
    writer.running = Running::EMPTY.then(b"x", EntryId::of(None, LineId::of(b"y")));
    commit(&store, writer.begin()).unwrap();
}

/// Makes a store with a row in every table of facts, some operations being in the journal.
pub(crate) fn fill_every_table(path: &std::path::Path) {
    let store = SqliteStore::open(path, Access::Write).unwrap();
    let mut writer = Writer::new(&store, "one");
    commit(&store, writer.begin()).unwrap();
    for next in writer.rest() {
        commit(&store, next).unwrap();
    }
    settle(&store);
    for _ in 0..3 {
        commit(&store, writer.next(&repetitive(0, 1), |_| {})).unwrap();
    }
}

/// Does a few things of every kind, each in a transaction of its own, and hands the store over after each.
fn go_through(store: &dyn Store, mut look: impl FnMut(&dyn Store)) {
    for id in ["one", "two"] {
        let mut writer = Writer::new(store, id);
        let key = commit(store, writer.begin()).unwrap();
        look(store);
        for next in writer.rest() {
            commit(store, next).unwrap();
            look(store);
        }
        let mut writing = store.begin().unwrap();
        writing
            .count(
                key,
                1,
                &[(number(1), vec![7]), (number(4), vec![300, 0]), (number(7), Vec::new())],
            )
            .unwrap();
        writing.sight(&[sighting(b"/a", 1), sighting(b"", 2)]).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        look(store);
    }
}

fn sighting(path: &[u8], length: u64) -> Sighting {
    let path = path.to_vec();
    Sighting { path, inode: u64::MAX, length, modified: -1, changed: i64::MAX }
}

#[test]
fn all_stores_give_equal_answers_to_every_question() {
    for lab in labs() {
        let store = lab.open();
        let oracle = MemoryStore::with_id(store.id().unwrap());
        let (mut told, mut expected) = (Vec::new(), Vec::new());
        go_through(store.as_ref(), |store| told.push(all_answers(store)));
        go_through(&oracle, |store| expected.push(all_answers(store)));
        for (told, expected) in told.iter().zip(&expected) {
            assert_same(told, expected);
        }
        assert_eq!(told.len(), expected.len());
        assert_whole(store.as_ref());
    }
}

#[test]
fn packing_shows_in_no_answer() {
    for lab in labs() {
        let store = lab.open();
        go_through(store.as_ref(), |store| {
            let told = all_answers(store);
            assert_eq!(store.pack(&mut |done, all| assert!(done <= all)).unwrap(), 0);
            assert_same(&all_answers(store), &told);
            assert_whole(store);
        });
    }
}

#[test]
fn a_fact_of_every_kind_comes_back() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let mut commits = vec![writer.begin()];
        commits.extend(writer.rest());
        let mut kinds = Facts::default();
        for next in commits {
            let key = commit(store, next.clone()).unwrap();
            let n = next.operation.n;
            let operation = store.operations(key, n.alone()).unwrap().remove(0);
            assert_eq!(operation, next.operation);
            let bulk = Bulk {
                entries: store.entries(key, operation.added()).unwrap(),
                runs: store
                    .growths(key, n.alone())
                    .unwrap()
                    .into_iter()
                    .map(|(_, run)| run)
                    .collect(),
                checkpoints: of(n, store.checkpoints(key, CheckpointNumber::ALL).unwrap()),
                origins: of(n, store.origins(key, EntryNumber::ALL).unwrap()),
            };
            assert_eq!(bulk, next.bulk);
            for (at, bytes) in (0..).zip(&next.kept) {
                assert_eq!(store.kept(key, n, at).unwrap(), *bytes);
            }
            assert_eq!(store.records(key, operation.added()).unwrap(), next.records);
            let facts = operation.facts;
            kinds.files.extend(facts.files);
            kinds.generations.extend(facts.generations);
            kinds.moves.extend(facts.moves);
            kinds.current = facts.current.or(kinds.current);
            kinds.live = facts.live.or(kinds.live);
            kinds.hidden = facts.hidden.or(kinds.hidden);
            kinds.rotations.extend(facts.rotations);
            kinds.containers.extend(facts.containers);
            kinds.sidecars.extend(facts.sidecars);
            kinds.gone.extend(facts.gone);
            kinds.bases.extend(facts.bases);
            kinds.request = facts.request.or(kinds.request);
            kinds.waiting = facts.waiting.or(kinds.waiting);
            kinds.tombstones.extend(facts.tombstones);
            kinds.covered_files.extend(facts.covered_files);
            kinds.title = facts.title.or(kinds.title);
            kinds.folder = facts.folder.or(kinds.folder);
            kinds.covered_runs.extend(facts.covered_runs);
        }
        // A kind that is new has to be among these.
        let Facts {
            files,
            generations,
            moves,
            current,
            live,
            hidden,
            rotations,
            containers,
            sidecars,
            gone,
            bases,
            request,
            waiting,
            tombstones,
            title,
            covered_files,
            folder,
            covered_runs,
        } = kinds;
        assert!(!files.is_empty() && !generations.is_empty() && !moves.is_empty());
        assert!(current.is_some() && live.is_some() && hidden.is_some() && !rotations.is_empty());
        assert!(!containers.is_empty() && !sidecars.is_empty() && !gone.is_empty());
        assert!(!bases.is_empty() && request.is_some() && waiting.is_some());
        assert!(!tombstones.is_empty() && title.is_some() && folder.is_some());
        assert!(!covered_files.is_empty() && !covered_runs.is_empty());
    });
}

fn of<T>(operation: OperationNumber, all: Vec<(OperationNumber, T)>) -> Vec<T> {
    all.into_iter().filter(|(n, _)| *n == operation).map(|(_, fact)| fact).collect()
}

#[test]
fn a_state_is_the_fold_of_all_operations() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        for next in writer.clone().rest() {
            commit(store, next).unwrap();
        }
        writer.rest();
        assert_eq!(store.state(key).unwrap(), writer.state);
    });
}

#[test]
fn origins_are_told_in_the_order_of_their_entries() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        commit(store, writer.next(&repetitive(0, 5), |_| {})).unwrap();
        for entries in [vec![6], vec![3, 7], vec![2], vec![4, 5]] {
            let origins = entries.iter().map(|&entry| Origin {
                entry: number(entry),
                origin: number(1),
                cut: None,
            });
            commit(store, writer.next(&[], |brought| brought.bulk.origins.extend(origins)))
                .unwrap();
        }
        let told = |range| {
            let origins = store.origins(key, range).unwrap().into_iter();
            origins
                .map(|(operation, origin)| (origin.entry.get(), operation.get()))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(EntryNumber::ALL), [(2, 5), (3, 4), (4, 6), (5, 6), (6, 3), (7, 4)]);
        assert_eq!(told(numbers(3..6)), [(3, 4), (4, 6), (5, 6)]);
        // What was taken back and is done again says so again, in the place of the same entry and of no other.
        let again = |origin| {
            let mut next = writer.clone();
            let commit = next.next(&[], |brought| {
                brought.bulk.origins.push(Origin { entry: number(4), origin, cut: None });
            });
            (next, commit)
        };
        commit(store, again(number(2)).1).unwrap_err();
        let (next, done) = again(number(1));
        writer = next;
        commit(store, done).unwrap();
        assert_eq!(told(numbers(4..5)), [(4, 6), (4, 7)]);
        settle(store);
        assert_eq!(told(numbers(4..5)), [(4, 6), (4, 7)]);
        commit(store, writer.next(&[], |_| {})).unwrap();
    });
}

#[test]
fn what_a_newer_program_wrote_is_read_and_nothing_is_added_to_it() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        commit(store, writer.next(&[b"x".to_vec()], |_| {})).unwrap();
        // A session in which an operation is not known altogether, as a store says that has read it.
        let state = undertext::model::State { unknown: Some(number(2)), ..writer.state.clone() };
        let derived = Derived {
            records: store.records(key, EntryNumber::ALL).unwrap(),
            twins: store.twins(key).unwrap(),
            ties: store.ties(key).unwrap(),
            card: store.card(key).unwrap(),
            state,
        };
        let mut writing = store.begin().unwrap();
        writing.derive(key, &derived).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        let held = all_answers(store);
        for lines in [1, 30] {
            let lines: Vec<Vec<u8>> = (0..lines).map(|n| format!("{n}").into_bytes()).collect();
            let refused = commit(store, writer.clone().next(&lines, |_| {})).unwrap_err();
            assert!(
                matches!(refused, StoreError::NewerFacts { operation } if operation == 2),
                "{refused}"
            );
        }
        assert_same(&all_answers(store), &held);
        // Another session goes on.
        let mut other = Writer::new(store, "other");
        commit(store, other.begin()).unwrap();
        commit(store, other.next(&[b"x".to_vec()], |_| {})).unwrap();
    });
}

#[test]
fn a_transaction_that_is_dropped_leaves_nothing_and_the_next_one_works() {
    over_each(|store| {
        let mut one = Writer::new(store, "one");
        let key = commit(store, one.begin()).unwrap();
        commit(store, one.next(&repetitive(0, 3), |_| {})).unwrap();
        let mut writing = store.begin().unwrap();
        writing.count(key, 1, &[(number(1), vec![7])]).unwrap();
        writing.sight(&[sighting(b"/a", 1)]).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        let held = all_answers(store);
        let lines: Vec<Vec<u8>> = repetitive(3, 30);
        for many in [&lines[..1], &lines] {
            let mut gone = one.clone();
            let mut other = Writer::new(store, "other");
            let mut writing = store.begin().unwrap();
            writing.add(gone.next(many, |_| {})).unwrap();
            let born = writing.add(other.begin()).unwrap();
            writing.add(gone.rare()).unwrap();
            writing.add(other.next(many, |_| {})).unwrap();
            writing
                .count(key, 1, &[(number(1), vec![9]), (number(2), vec![9]), (number(6), vec![9])])
                .unwrap();
            writing.count(born, 1, &[(number(1), vec![9])]).unwrap();
            writing.sight(&[sighting(b"/a", 2), sighting(b"/b", 2)]).unwrap();
            let records = store.records(key, EntryNumber::ALL).unwrap();
            let derived = Derived { records, ..Derived::default() };
            writing.derive(key, &derived).unwrap();
            writing.freshened().unwrap();
            drop(writing);
            assert_same(&all_answers(store), &held);
            assert_whole(store);
        }
        // The numbers and the lines that were taken are free again.
        let mut other = Writer::new(store, "other");
        let added =
            [one.next(&lines, |_| {}), other.begin(), one.rare(), other.next(&lines, |_| {})];
        commit_all(store, added).unwrap();
        assert_eq!(line_of(store, key, 35), lines[29]);
        assert_whole(store);
    });
}

#[test]
fn one_transaction_is_open_at_a_time() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let mut writing = store.begin().unwrap();
        assert_eq!(kind(&store.begin().err().unwrap()), "busy");
        // The one that is open does not mind.
        writing.add(writer.begin()).unwrap();
        assert_eq!(kind(&store.begin().err().unwrap()), "busy");
        assert!(writing.commit().unwrap().unsettled.is_none());
        drop(store.begin().unwrap());
        let key = commit(store, writer.next(&[b"x".to_vec()], |_| {})).unwrap();
        assert_eq!(line_of(store, key, 3), b"x");
    });
}

#[test]
fn a_transaction_with_nothing_in_it_changes_nothing() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        commit(store, writer.begin()).unwrap();
        let (held, (_, cursor)) = (all_answers(store), store.since(None).unwrap());
        assert!(store.begin().unwrap().commit().unwrap().unsettled.is_none());
        assert_same(&all_answers(store), &held);
        assert_eq!(store.since(Some(&cursor)).unwrap(), (Vec::new(), cursor));
    });
}

#[test]
fn several_operations_become_durable_together_and_are_read_meanwhile() {
    let unique =
        |n: usize| format!(r#"{{"n":{n},"x":"{}"}}"#, format!("{n},").repeat(300)).into_bytes();
    let batches = [repetitive(0, 20), (0..2500).map(unique).collect(), repetitive(3, 20)];
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let mut small = Writer::new(store, "small");
        let mut writing = store.begin().unwrap();
        let key = writing.add(writer.begin()).unwrap();
        let other = writing.add(small.begin()).unwrap();
        for (n, batch) in (0u64..).zip(&batches) {
            let lines = repetitive(7, 2);
            writing.add(small.next(&lines, |_| {})).unwrap();
            assert_eq!(line_of(store, other, 4 + 2 * n), lines[1]);
            assert_eq!(writing.add(writer.next(batch, |_| {})).unwrap(), key);
            // Lists, names and places are those of the moment as well.
            assert_eq!(store.state(key).unwrap(), writer.state);
            let listed = store.sessions(&SessionFilter::default()).unwrap();
            assert_eq!(listed.len(), 2);
            assert_eq!(store.files(&writer.state.files[0]).unwrap().len(), 2);
            assert!(store.places().unwrap().contains(&writer.state.files[0].to_bytes()));
        }
        assert_eq!(line_of(store, key, 4), batches[0][1]);
        assert_eq!(line_of(store, key, 1500), batches[1][1500 - 23]);
        assert!(writing.commit().unwrap().unsettled.is_none());
        assert_all(store, key, &batches);
        assert_eq!(store.operations(other, OperationNumber::ALL).unwrap().len(), 4);
    });
}

#[test]
fn derived_rows_are_replaced_and_facts_are_not() {
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        let mut other = Writer::new(store, "other");
        let beside = commit(store, other.begin()).unwrap();
        for next in [writer.rare(), writer.next(&repetitive(0, 2), |_| {}), other.rare()] {
            commit(store, next).unwrap();
        }
        let untouched = answers(store, &other.name);
        let facts = |store: &dyn Store| {
            let all = answers(store, &writer.name);
            let derived = ["records", "named", "card", "twins", "ties", "landmark"];
            let is_fact = |told: &String| !derived.iter().any(|kind| told.starts_with(kind));
            all.into_iter().filter(is_fact).collect::<Vec<_>>()
        };
        let held = facts(store);
        let mut records = store.records(key, EntryNumber::ALL).unwrap();
        records[1].kind = Kind::Note;
        records[1].name = Some(NameTag::of("new"));
        records[0].name = None;
        records[3] = Record { kind: Kind::Meta, hint: [9, 9].into(), ..records[3].clone() };
        records[4] = Record { kind: Kind::Boundary, hint: [9].into(), ..records[4].clone() };
        let card = Card { title: None, ..Card::default() };
        let tie = Tie { kind: TieKind::SubAgent, other: "t".into() };
        let ties = vec![(number(2), vec![tie.clone()])];
        let state = store.state(key).unwrap();
        let derived = Derived { records, twins: vec![NameTag::new(3)], ties, card, state };
        let mut writing = store.begin().unwrap();
        writing.derive(key, &derived).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        assert_eq!(store.records(key, EntryNumber::ALL).unwrap(), derived.records);
        assert_eq!(store.twins(key).unwrap(), derived.twins);
        assert_eq!(store.ties(key).unwrap(), derived.ties);
        assert_eq!(store.tied("native", &tie, None).unwrap(), [(key, writer.name.clone())]);
        assert!(store.tied("claude", &tie, None).unwrap().is_empty());
        assert_eq!(store.card(key).unwrap(), derived.card);
        for (landmark, n) in [(Landmark::Boundary, 5), (Landmark::Signpost, 4)] {
            let found = store.landmark(key, landmark, EntryNumber::ALL).unwrap();
            assert_eq!(found, Some(number(n)), "{landmark:?}");
        }
        let named = |name| store.named(key, NameTag::of(name), NameTag::of(name)).unwrap();
        assert_eq!((named("new"), named("a"), named("b")), (vec![number(2)], vec![], vec![]));
        assert_same(&facts(store), &held);
        assert_same(&answers(store, &other.name), &untouched);
        // What comes next stands behind what was replaced.
        commit(store, writer.next(&[br#"{"uuid":"new"}"#.to_vec()], |_| {})).unwrap();
        assert_eq!(named("new"), [2, 6]);
        assert_eq!(store.records(key, numbers(0..6)).unwrap(), derived.records[..5]);
        assert_eq!(store.records(beside, EntryNumber::ALL).unwrap().len(), 3);
    });
}

#[test]
fn token_counts_are_kept_by_the_entry_and_the_rule() {
    over_each(|store| {
        let mut one = Writer::new(store, "one");
        let mut other = Writer::new(store, "other");
        let key = commit(store, one.begin()).unwrap();
        let twin = commit(store, other.begin()).unwrap();
        commit(store, one.next(&[b"late".to_vec()], |_| {})).unwrap();
        assert_eq!(store.counts(key, EntryNumber::ALL, 1).unwrap(), []);
        let counts = [(number(1), vec![7]), (number(2), vec![300, 0]), (number(3), Vec::new())];
        let count = |counts: &[(EntryNumber, Vec<u64>)]| {
            let mut writing = store.begin().unwrap();
            writing.count(key, 1, counts).unwrap();
            // Who writes sees it.
            let there = store.counts(key, EntryNumber::ALL, 1).unwrap();
            assert!(counts.iter().all(|counted| there.contains(counted)), "{there:?}");
            assert!(writing.commit().unwrap().unsettled.is_none());
        };
        count(&counts);
        count(&counts[..1]);
        assert_eq!(store.counts(key, EntryNumber::ALL, 1).unwrap(), counts);
        assert_eq!(store.counts(key, numbers(2..3), 1).unwrap(), counts[1..2]);
        assert_eq!(store.counts(key, EntryNumber::ALL, 2).unwrap(), []);
        // The same lines in another session may be known by it, and are no others.
        let known = store.counts(twin, EntryNumber::ALL, 1).unwrap();
        assert!(known.is_empty() || known == counts[..2], "{known:?}");
        // A newer count takes the place of one that was kept.
        count(&[(number(2), vec![301])]);
        assert_eq!(store.counts(key, numbers(2..3), 1).unwrap(), [(number(2), vec![301])]);
    });
}

#[test]
fn a_glance_takes_the_place_of_the_one_before() {
    over_each(|store| {
        let keep = |glances: &[(SessionKey, Glance)]| {
            let mut writing = store.begin().unwrap();
            writing.glance(glances).unwrap();
            assert!(writing.commit().unwrap().unsettled.is_none());
        };
        let days = vec![DayTurns { day: 20_000, turns: 3 }];
        let glance = |reverted| Glance {
            operations: 7,
            reverted,
            tokens: Some(10),
            context: vec![5, 0, 9],
            days: days.clone(),
            ..Glance::default()
        };
        let [one, other, none] = [3, 4, 5].map(SessionKey);
        keep(&[(one, glance(1)), (other, glance(2))]);
        keep(&[(one, glance(9))]);
        let found = store.glances(&[one, none, other]).unwrap();
        assert_eq!(found, [(one, glance(9)), (other, glance(2))]);
        assert_eq!(store.glances(&[]).unwrap(), []);
    });
}

#[test]
fn a_sighting_takes_the_place_of_the_one_before() {
    over_each(|store| {
        let sight = |seen: &[Sighting]| {
            let mut writing = store.begin().unwrap();
            writing.sight(seen).unwrap();
            assert!(writing.commit().unwrap().unsettled.is_none());
        };
        assert_eq!(store.sighting(b"/a").unwrap(), None);
        let odd = sighting(b"/\xff\0", 3);
        sight(&[sighting(b"/a", 1), odd.clone()]);
        sight(&[sighting(b"/a", 2), sighting(b"/b", 2)]);
        assert_eq!(store.sighting(b"/a").unwrap(), Some(sighting(b"/a", 2)));
        assert_eq!(store.sighting(b"/\xff\0").unwrap(), Some(odd));
        assert_eq!(store.sighting(b"/").unwrap(), None);
        let mut writing = store.begin().unwrap();
        writing.unsight(&|path| path.starts_with(b"/a")).unwrap();
        assert!(writing.commit().unwrap().unsettled.is_none());
        assert_eq!(store.sighting(b"/a").unwrap(), None);
        assert_eq!(store.sighting(b"/b").unwrap(), Some(sighting(b"/b", 2)));
    });
}

#[test]
fn a_cursor_tells_each_session_that_took_something_in_once() {
    over_each(|store| {
        let ids = |keys: &[SessionKey]| {
            let names = store.names().unwrap();
            let id = |key: &SessionKey| &names.iter().find(|(held, _)| held == key).unwrap().1.id;
            keys.iter().map(id).cloned().collect::<String>()
        };
        let since = |cursor: &Cursor| {
            let (keys, cursor) = store.since(Some(cursor)).unwrap();
            (ids(&keys), cursor)
        };
        let (none, start) = store.since(None).unwrap();
        assert_eq!(none, []);
        assert_eq!(since(&start), (String::new(), start.clone()));
        let mut writers: Vec<Writer> =
            ["a", "b", "c"].into_iter().map(|id| Writer::new(store, id)).collect();
        for writer in &mut writers {
            commit(store, writer.begin()).unwrap();
        }
        let (told, first) = since(&start);
        assert_eq!(told, "abc");
        let mut next = |at: usize, lines| {
            let lines = repetitive(at, lines);
            commit(store, writers[at].next(&lines, |_| {})).unwrap();
        };
        next(2, 1);
        next(0, 1);
        next(2, 1);
        let (told, second) = since(&first);
        assert_eq!(told, "ac");
        assert_eq!(since(&second).0, "");
        // A large one settles what is small and came before; nothing is told again for that.
        next(1, 0);
        let (told, third) = since(&second);
        assert_eq!(told, "b");
        next(1, 30);
        assert_eq!(since(&third).0, "b");
        next(0, 0);
        let (told, last) = since(&third);
        assert_eq!(told, "ab");
        assert_eq!(since(&last).0, "");
        // Earlier cursors tell all that came behind them, and none tells everything.
        assert_eq!(since(&first).0, "abc");
        assert_eq!(since(&start).0, "abc");
        assert_eq!(ids(&store.since(None).unwrap().0), "abc");
        // What is written down and read again is the same cursor.
        assert_eq!(since(&Cursor::new(third.as_bytes().to_vec())).0, "ab");
        // One of another history, or of none, tells everything.
        let mut other = third.as_bytes().to_vec();
        *other.last_mut().unwrap() ^= 1;
        assert_eq!(since(&Cursor::new(other)).0, "abc");
        assert_eq!(since(&Cursor::new(third.as_bytes()[..8].to_vec())).0, "abc");
    });
}

#[test]
fn a_session_that_is_not_there_is_no_answer() {
    over_each(|store| {
        commit(store, Writer::new(store, "s").begin()).unwrap();
        let nobody = SessionKey(4711);
        let all = 0..u64::MAX;
        let refused = [
            store.state(nobody).err(),
            store.card(nobody).err(),
            store.kept(nobody, number(1), 0).err(),
            whole_lines(store, nobody, &[number(1)], &mut |_, _| ()).err(),
        ];
        for error in refused {
            assert_eq!(error.as_ref().map(kind), Some("corrupt"), "{error:?}");
        }
        // A store may list nothing of it, or say that it does not know it; nothing else.
        let listed = [
            store.operations(nobody, numbers(all.clone())).map(|found| found.len()),
            store.entries(nobody, numbers(all.clone())).map(|found| found.len()),
            store.checkpoints(nobody, numbers(all)).map(|found| found.len()),
            store.ties(nobody).map(|found| found.len()),
        ];
        for found in listed {
            assert!(matches!(found, Ok(0) | Err(StoreError::Corrupt { .. })), "{found:?}");
        }
    });
}
