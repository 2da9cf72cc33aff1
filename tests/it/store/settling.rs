//! What only a store in a file can be asked: what its journal holds and when that is settled, what another connection sees,
//! and what is there when it is opened again.
//!
//! Invariant: none of this shows in an answer. Whatever is settled, a session is what one in memory is.

use std::{fs, thread, time::Duration};

use crate::fixture::{Dice, number};
use undertext::model::EntryNumber;
use undertext::store::{
    Access, CacheStore, Cursor, FactStore, MemoryStore, SessionKey, SqliteStore, Store, StoreError,
    whole_lines,
};

use super::{
    bytes::repetitive,
    go_through,
    lab::{
        Folder, all_answers, answers, assert_same, assert_whole, commit, commit_all, folders,
        line_of, settle,
    },
    writer::Writer,
};

/// A journal that nothing settles but a large operation.
pub(crate) fn patient() -> Folder {
    Folder::new(1000, 1 << 30)
}

/// Returns a session of which some is in the tables, and so many operations are in the journal.
pub(crate) fn begun(folder: &Folder, id: &str, more: u64) -> Writer {
    let store = folder.write();
    let mut writer = Writer::new(&store, id);
    commit(&store, writer.begin()).unwrap();
    for _ in 0..more {
        let lines = [format!("line of {}", writer.ids.len()).into_bytes()];
        commit(&store, writer.next(&lines, |_| {})).unwrap();
    }
    writer
}

/// Asserts that every operation of the store has a number, that none is in the journal and the tables both, and that there is
/// no gap.
#[track_caller]
fn assert_gapless(folder: &Folder) {
    let db = folder.sql();
    let all = "SELECT seq FROM operation UNION ALL SELECT seq FROM journal ORDER BY seq";
    let mut query = db.prepare(all).unwrap();
    let numbers: Vec<u64> =
        query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn a_session_gives_equal_answers_before_and_after_it_is_settled_and_opened_again() {
    for folder in folders() {
        let store = folder.write();
        go_through(&store, |_| {});
        let names = [Writer::new(&store, "one").name, Writer::new(&store, "two").name];
        let told = |store: &dyn Store| {
            names.iter().flat_map(|name| answers(store, name)).collect::<Vec<_>>()
        };
        let (held, all) = (told(&store), all_answers(&store));
        // From other connections, of every kind.
        for access in [Access::Read, Access::Brief, Access::Write] {
            assert_same(&all_answers(&folder.open_for(access).unwrap()), &all);
        }
        let journal = folder.in_journal();
        drop(store);
        // A close settles nothing, and neither does one who reads.
        assert_eq!(folder.in_journal(), journal);
        assert_same(&all_answers(&folder.read()), &all);
        let store = folder.write();
        assert_same(&all_answers(&store), &all);
        assert_eq!(folder.in_journal(), journal);
        assert_gapless(&folder);
        settle(&store);
        assert_eq!(folder.in_journal(), 0);
        assert_gapless(&folder);
        for store in [store, folder.write(), folder.read()] {
            assert_same(&told(&store), &held);
            assert_whole(&store);
        }
    }
}

#[test]
fn a_program_that_ends_after_one_command_leaves_a_short_log_to_the_next() {
    const PAGE: u64 = 4096 + 24;
    let folder = patient();
    let mut writer = begun(&folder, "s", 0);
    let wal = folder.path().with_file_name("store.db-wal");
    let mut most = 0;
    for n in 0..100 {
        let store = SqliteStore::open(&folder.path(), Access::Brief).unwrap();
        let line = format!("line {n} {}", "x".repeat(700)).into_bytes();
        commit(&store, writer.next(&[line], |_| {})).unwrap();
        drop(store);
        most = most.max(fs::metadata(&wal).unwrap().len() / PAGE);
    }
    assert!((32..96).contains(&most), "{most} pages");
    assert_whole(&folder.read());
}

#[test]
fn a_program_that_stays_open_leaves_no_long_log_to_the_next() {
    // A reader keeps the log from being emptied for as long as it reads.
    for is_read in [false, true] {
        let folder = patient();
        let mut writer = begun(&folder, "s", 0);
        let wal = folder.path().with_file_name("store.db-wal");
        let store = folder.write();
        let reader = folder.sql();
        if is_read {
            reader.execute_batch("BEGIN; SELECT count(*) FROM session").unwrap();
        }
        // Bytes that no compression makes fewer, and that end no line.
        let mut dice = Dice(1);
        let mut line =
            || (0..1 << 20).map(|_| 128 + u8::try_from(dice.below(128)).unwrap()).collect();
        let lines: Vec<Vec<u8>> = (0..20).map(|_| line()).collect();
        commit(&store, writer.next(&lines, |_| {})).unwrap();
        assert!(fs::metadata(&wal).unwrap().len() > 16 << 20);
        drop(reader);
        drop(store);
        assert_eq!(fs::metadata(&wal).unwrap().len(), 0, "{is_read}");
        assert_whole(&folder.read());
    }
}

#[test]
fn a_store_whose_log_another_program_took_has_one_again() {
    let folder = patient();
    let mut writer = begun(&folder, "s", 3);
    let mode = || fs::read(folder.path()).unwrap()[18..20].to_vec();
    folder.sql().query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    assert_eq!(mode(), [1, 1]);
    assert_whole(&folder.read());
    commit(&folder.write(), writer.next(&[b"more".to_vec()], |_| {})).unwrap();
    assert_eq!(mode(), [2, 2]);
    assert_whole(&folder.read());
}

#[test]
fn a_journal_is_settled_at_its_limit_and_not_before() {
    for (rows, bytes) in
        [(0, 1 << 20), (5, 0), (1, 1 << 20), (3, 1 << 20), (64, 1 << 20), (64, 4000)]
    {
        let folder = Folder::new(rows, bytes);
        let store = folder.write();
        let db = folder.sql();
        let mut writer = Writer::new(&store, "s");
        commit(&store, writer.begin()).unwrap();
        assert_eq!(folder.in_journal(), 0, "what begins a session is in the tables");
        let (mut most, mut settled) = (0, 0);
        for n in 1..140 {
            let before = folder.in_journal();
            let line = format!("line {n} {}", "x".repeat(100)).into_bytes();
            commit(&store, writer.next(&[line], |_| {})).unwrap();
            let held = folder.in_journal();
            assert!(held == before + 1 || held == 0, "{held} after {before}");
            most = most.max(held);
            settled += u64::from(held == 0);
            let size: u64 = db
                .query_row("SELECT ifnull(sum(length(body)), 0) FROM journal", [], |row| row.get(0))
                .unwrap();
            assert!(size <= bytes.max(1), "{size} bytes in a journal for {bytes}");
        }
        let unused = rows == 0 || bytes == 0;
        let is_full = if unused || rows == 1 { most == 0 } else { most > 0 && most < rows };
        assert!(is_full, "{most} of {rows} rows");
        assert!(settled > 1, "{settled} times");
        assert_gapless(&folder);
    }
}

#[test]
fn what_is_not_small_goes_into_the_tables_and_takes_with_it_what_came_before() {
    let long = |size: usize| vec![b'x'; size];
    let large: [(&str, Vec<Vec<u8>>); 3] = [
        ("many entries", (0..17).map(|n| format!("{n}").into_bytes()).collect()),
        ("a long line", vec![long(65 << 10)]),
        ("long lines", (0..16).map(|_| long(5 << 10)).collect()),
    ];
    for (what, lines) in large {
        let folder = patient();
        let mut writer = begun(&folder, "s", 5);
        assert_eq!(folder.in_journal(), 5, "{what}");
        let store = folder.write();
        let small: Vec<Vec<u8>> = (0..16).map(|n| format!("small {n}").into_bytes()).collect();
        commit(&store, writer.next(&small, |_| {})).unwrap();
        assert_eq!(folder.in_journal(), 6, "{what}");
        let key = commit(&store, writer.next(&lines, |_| {})).unwrap();
        assert_eq!(folder.in_journal(), 0, "{what}");
        assert_eq!(line_of(&store, key, writer.ids.len() as u64), *lines.last().unwrap());
        commit(&store, writer.next(&[], |_| {})).unwrap();
        assert_eq!(folder.in_journal(), 1, "{what}");
        // Another session does the same.
        commit(&store, Writer::new(&store, "other").begin()).unwrap();
        assert_eq!(folder.in_journal(), 0, "{what}");
        assert_eq!(store.state(key).unwrap(), writer.state);
        assert_whole(&store);
        assert_gapless(&folder);
    }
}

#[test]
fn small_and_large_operations_of_one_transaction_are_added_together() {
    for folder in folders() {
        let store = folder.write();
        let (mut one, mut two) = (Writer::new(&store, "one"), Writer::new(&store, "two"));
        commit_all(&store, [one.begin(), two.begin(), one.next(&[b"x".to_vec()], |_| {})]).unwrap();
        let mut commits = Vec::new();
        for n in 0..20 {
            commits.push(one.next(&repetitive(n, n % 3), |_| {}));
            commits.push(two.next(&repetitive(n, 1), |_| {}));
            if n == 13 {
                commits.push(one.next(&repetitive(n, 30), |_| {}));
            }
        }
        commit_all(&store, commits).unwrap();
        let oracle = MemoryStore::with_id(store.id().unwrap());
        for mut writer in [Writer::new(&oracle, "one"), Writer::new(&oracle, "two")] {
            let is_one = writer.name.id == "one";
            let key = commit(&oracle, writer.begin()).unwrap();
            if is_one {
                commit(&oracle, writer.next(&[b"x".to_vec()], |_| {})).unwrap();
            }
            for n in 0..20 {
                let lines = repetitive(n, if is_one { n % 3 } else { 1 });
                commit(&oracle, writer.next(&lines, |_| {})).unwrap();
                if is_one && n == 13 {
                    commit(&oracle, writer.next(&repetitive(n, 30), |_| {})).unwrap();
                }
            }
            assert_eq!(
                oracle.state(key).unwrap(),
                if is_one { one.state.clone() } else { two.state.clone() }
            );
            assert_same(&answers(&store, &writer.name), &answers(&oracle, &writer.name));
        }
        assert_gapless(&folder);
        assert_whole(&store);
    }
}

#[test]
fn what_is_laid_over_a_store_is_answered_with_it_and_never_reaches_it() {
    for folder in folders() {
        let beneath = folder.write();
        let mut writer = Writer::new(&beneath, "one");
        commit(&beneath, writer.begin()).unwrap();
        commit_all(&beneath, writer.rest()).unwrap();
        let before = all_answers(&beneath);
        drop(beneath);

        let over = MemoryStore::over(Box::new(folder.read())).unwrap();
        let oracle = folder.copy();
        let oracle = oracle.write();
        let mut twin = writer.clone();
        for n in 0..5 {
            commit(&over, writer.next(&repetitive(n, 3), |_| {})).unwrap();
            commit(&oracle, twin.next(&repetitive(n, 3), |_| {})).unwrap();
            assert_same(&answers(&over, &writer.name), &answers(&oracle, &twin.name));
        }
        // A session that lies beneath no more than the first one's later operations do.
        commit(&over, Writer::new(&over, "two").begin()).unwrap();
        commit(&oracle, Writer::new(&oracle, "two").begin()).unwrap();
        let two = Writer::new(&over, "two").name;
        assert_same(&answers(&over, &two), &answers(&oracle, &two));
        // What is not committed is gone again.
        let held = all_answers(&over);
        let mut writing = over.begin().unwrap();
        writing.add(writer.next(&repetitive(9, 1), |_| {})).unwrap();
        drop(writing);
        assert_same(&all_answers(&over), &held);
        drop(over);
        assert_same(&all_answers(&folder.read()), &before);
    }
}

#[test]
fn a_store_with_a_full_journal_is_opened_and_goes_on() {
    let folder = Folder::new(64, 1 << 20);
    let mut writer = begun(&folder, "s", 63);
    assert_eq!(folder.in_journal(), 63);
    let copy = folder.copy();
    let store = folder.write();
    let key = store.session(&writer.name).unwrap().unwrap();
    assert_eq!(store.state(key).unwrap(), writer.state);
    commit(&store, writer.next(&[b"the last".to_vec()], |_| {})).unwrap();
    assert_eq!(folder.in_journal(), 0);
    assert_eq!(store.state(key).unwrap(), writer.state);
    assert_whole(&store);
    // One whose limit is lower settles as well, and one without a journal leaves none.
    for (rows, bytes) in [(3, 1 << 20), (0, 0)] {
        let mut copy = copy.copy();
        (copy.rows, copy.bytes) = (rows, bytes);
        let mut again = begun(&patient(), "s", 63);
        again.store = copy.read().id().unwrap();
        let store = copy.write();
        let key = store.session(&writer.name).unwrap().unwrap();
        let state = store.state(key).unwrap();
        let mut writer = Writer { state, store: again.store, ..again };
        commit(&store, writer.next(&[b"the last".to_vec()], |_| {})).unwrap();
        assert_eq!(copy.in_journal(), 0);
        assert_eq!(store.state(key).unwrap(), writer.state);
        assert_whole(&store);
        assert_gapless(&copy);
    }
}

#[test]
fn an_open_transaction_is_seen_by_its_own_store_and_by_no_other() {
    for folder in folders() {
        let mut one = begun(&folder, "one", 2);
        let store = folder.write();
        let (other, before) = (folder.write(), folder.read());
        let held = all_answers(&store);
        let mut two = Writer::new(&store, "two");
        let mut writing = store.begin().unwrap();
        for lines in [repetitive(0, 1), repetitive(1, 1), repetitive(2, 30)] {
            let key = writing.add(one.next(&lines, |_| {})).unwrap();
            if two.state.newest.is_none() {
                writing.add(two.begin()).unwrap();
            }
            writing.add(two.next(&lines, |_| {})).unwrap();
            assert_eq!(store.state(key).unwrap(), one.state);
            assert_eq!(line_of(&store, key, one.ids.len() as u64), *lines.last().unwrap());
            for strange in [&other, &before, &folder.read()] {
                assert_same(&all_answers(strange), &held);
            }
        }
        let (mine, _) = store.since(None).unwrap();
        assert_eq!(mine.len(), 2);
        assert!(writing.commit().unwrap().unsettled.is_none());
        assert_same(&all_answers(&before), &held);
        let held = all_answers(&store);
        assert_same(&all_answers(&other), &held);
        assert_same(&all_answers(&folder.read()), &held);
    }
}

#[test]
fn a_reader_sees_one_snapshot_while_others_write_and_settle() {
    for folder in folders() {
        let mut writer = begun(&folder, "s", 2);
        let store = folder.write();
        let (reader, cursor) = (folder.read(), folder.read().since(None).unwrap().1);
        let held = all_answers(&reader);
        for n in 0..50 {
            let line = format!(r#"{{"n":{n},"x":"{}"}}"#, "y".repeat(2_000 + n)).into_bytes();
            commit(&store, writer.next(&[line], |_| {})).unwrap();
            if n % 20 == 7 {
                settle(&store);
            }
        }
        assert_same(&all_answers(&reader), &held);
        let key = reader.session(&writer.name).unwrap().unwrap();
        assert_eq!(line_of(&reader, key, 2), br#"{"uuid":"b"}"#);
        assert_eq!(reader.since(Some(&cursor)).unwrap().0, []);
        assert_whole(&reader);
        let later = folder.read();
        assert_eq!(later.state(key).unwrap(), writer.state);
        assert_eq!(later.state(key).unwrap().entries(), 54);
    }
}

#[test]
fn a_reader_writes_nothing() {
    for folder in folders() {
        let mut writer = begun(&folder, "s", 2);
        let reader = folder.read();
        let refused = reader.begin().err();
        assert!(matches!(refused, Some(StoreError::ReadOnly { .. })), "{refused:?}");
        // Nothing is settled either.
        let held = folder.in_journal();
        drop(reader);
        let mut reader = folder.open_for(Access::Read).unwrap();
        reader.set_journal(0, 0);
        let told = all_answers(&reader);
        drop(reader);
        assert_eq!(folder.in_journal(), held);
        let store = folder.write();
        assert_same(&all_answers(&store), &told);
        commit(&store, writer.next(&[], |_| {})).unwrap();
    }
}

#[test]
fn two_connections_take_turns_and_lose_nothing() {
    for folder in folders() {
        let stores = [folder.write(), folder.write()];
        let oracle = MemoryStore::with_id(stores[0].id().unwrap());
        let mut writers: Vec<Writer> =
            ["one", "two"].into_iter().map(|id| Writer::new(&oracle, id)).collect();
        for n in 0..40 {
            let (store, other) = (&stores[n % 2], &stores[1 - n % 2]);
            let writer = &mut writers[n / 2 % 2];
            let stale = writer.clone();
            let next = if n < 4 && writer.state.newest.is_none() {
                writer.begin()
            } else {
                writer.next(&repetitive(n, if n % 11 == 10 { 20 } else { n % 3 }), |_| {})
            };
            let key = commit(store, next.clone()).unwrap();
            commit(&oracle, next).unwrap();
            // The other one sees it at once, and does not build upon what it knew before.
            assert_eq!(other.state(key).unwrap(), writer.state);
            let refused = commit(other, stale.clone().next(&[b"late".to_vec()], |_| {}));
            assert!(matches!(refused, Err(StoreError::Conflict)), "{refused:?}");
        }
        let told = all_answers(&oracle);
        for store in &stores {
            assert_same(&all_answers(store), &told);
            assert_whole(store);
        }
        assert_gapless(&folder);
    }
}

#[test]
fn two_programs_that_write_at_once_lose_nothing() {
    for folder in
        [Folder::new(0, 0), Folder::new(1, 1 << 20), Folder::new(3, 1 << 20), Folder::new(64, 8000)]
    {
        let shared = begun(&folder, "shared", 1);
        let own = |id: &str| begun(&folder, id, 1);
        let writers = [own("a"), own("b")];
        let ends = thread::scope(|scope| {
            let threads = writers.map(|mut own| {
                let (folder, mut shared) = (&folder, shared.clone());
                scope.spawn(move || {
                    let store = folder.write();
                    let mut said = Vec::new();
                    for n in 0..40 {
                        let line = format!("{} {n}", own.name.id).into_bytes();
                        commit(&store, own.next(&repetitive(n, n % 2), |_| {})).unwrap();
                        // Both add to one session: who comes late loads it again.
                        loop {
                            let next = shared.clone().next(std::slice::from_ref(&line), |_| {});
                            match commit(&store, next) {
                                Ok(_) => break,
                                Err(StoreError::Conflict) => {
                                    shared = Writer::load(&store, &shared.name);
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                        said.push(line);
                    }
                    (own, said)
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        let store = folder.read();
        let key = store.session(&shared.name).unwrap().unwrap();
        let mut lines = Vec::new();
        let total = store.state(key).unwrap().entries();
        let all: Vec<EntryNumber> = (4..=total).map(number).collect();
        whole_lines(&store, key, &all, &mut |_, line| lines.push(line)).unwrap();
        for (own, said) in ends {
            let key = store.session(&own.name).unwrap().unwrap();
            assert_eq!(store.state(key).unwrap(), own.state);
            // Each one's lines are there, in the order in which they were acknowledged.
            let mut left = lines.iter();
            assert!(said.iter().all(|line| left.any(|there| there == line)));
        }
        assert_eq!(lines.len(), 80);
        assert_whole(&store);
        assert_gapless(&folder);
    }
}

#[test]
fn a_cursor_holds_for_other_connections_and_across_a_settling() {
    for folder in folders() {
        let mut one = begun(&folder, "one", 1);
        let (_, start) = folder.write().since(None).unwrap();
        let mut two = begun(&folder, "two", 1);
        let since = |cursor: &Cursor| {
            let mut told = Vec::new();
            for store in [folder.write(), folder.read()] {
                let (keys, cursor) = store.since(Some(cursor)).unwrap();
                let names = store.names().unwrap();
                let name =
                    |key: &SessionKey| &names.iter().find(|(held, _)| held == key).unwrap().1;
                let ids: Vec<String> = keys.iter().map(|key| name(key).id.clone()).collect();
                told.push((ids.join(" "), cursor));
            }
            assert_eq!(told[0], told[1]);
            told.remove(0)
        };
        let (told, second) = since(&start);
        assert_eq!(told, "two");
        let store = folder.write();
        commit(&store, one.next(&[b"x".to_vec()], |_| {})).unwrap();
        let (told, third) = since(&second);
        assert_eq!(told, "one");
        settle(&store);
        // What was settled is not told again; what settled it is told.
        assert_eq!(since(&third).0, "settles");
        let (told, last) = since(&second);
        assert_eq!(told, "one settles");
        commit(&store, two.next(&[], |_| {})).unwrap();
        assert_eq!(since(&last).0, "two");
        assert_eq!(since(&start).0, "one two settles");
        // A transaction that is dropped is never told.
        let (_, before) = since(&last);
        let mut writing = store.begin().unwrap();
        writing.add(one.clone().next(&[], |_| {})).unwrap();
        drop(writing);
        assert_eq!(since(&before), (String::new(), before.clone()));
        commit(&store, one.next(&[], |_| {})).unwrap();
        assert_eq!(since(&before).0, "one");
    }
}

#[test]
fn a_settling_that_fails_leaves_what_was_committed_and_says_so() {
    let folder = Folder::new(3, 1 << 20);
    let mut writer = begun(&folder, "s", 2);
    let store = folder.write();
    // The tables take nothing in for a while.
    folder
        .sql()
        .execute_batch(
            "CREATE TRIGGER no_room BEFORE INSERT ON operation BEGIN SELECT RAISE(ABORT, 'no'); END",
        )
        .unwrap();
    for n in 0..4 {
        let mut writing = store.begin().unwrap();
        let key = writing.add(writer.next(&[format!("{n}").into_bytes()], |_| {})).unwrap();
        let committed = writing.commit().unwrap();
        assert!(committed.unsettled.is_some());
        assert_eq!(folder.in_journal(), 3 + n);
        assert_eq!(store.state(key).unwrap(), writer.state);
        assert_eq!(folder.read().state(key).unwrap(), writer.state);
        assert_eq!(line_of(&store, key, writer.ids.len() as u64), format!("{n}").into_bytes());
    }
    let held = all_answers(&store);
    // What needs the tables fails, and takes nothing with it.
    let lines = repetitive(0, 30);
    commit(&store, writer.clone().next(&lines, |_| {})).unwrap_err();
    assert_same(&all_answers(&store), &held);
    assert_same(&all_answers(&folder.write()), &held);
    folder.sql().execute_batch("DROP TRIGGER no_room").unwrap();
    commit(&store, writer.next(&[], |_| {})).unwrap();
    assert_eq!(folder.in_journal(), 0);
    commit(&store, writer.next(&lines, |_| {})).unwrap();
    assert_whole(&store);
    assert_gapless(&folder);
}

#[test]
fn a_busy_store_is_settled_by_who_comes_next() {
    let folder = Folder::new(3, 1 << 20);
    let mut writer = begun(&folder, "s", 2);
    let store = folder.write();
    let other = folder.sql();
    other.busy_timeout(Duration::from_secs(30)).unwrap();
    let mut writing = store.begin().unwrap();
    writing.add(writer.next(&[], |_| {})).unwrap();
    thread::scope(|scope| {
        // Somebody waits for the store, and holds it as soon as what is committed here is durable.
        let holds = scope.spawn(move || {
            other.execute_batch("BEGIN IMMEDIATE").unwrap();
            thread::sleep(Duration::from_millis(300));
            other.execute_batch("ROLLBACK").unwrap();
        });
        thread::sleep(Duration::from_millis(100));
        // Whether it could be settled meanwhile is chance; that it is durable is not.
        let _ = writing.commit().unwrap();
        let key = folder.read().session(&writer.name).unwrap().unwrap();
        assert_eq!(folder.read().state(key).unwrap(), writer.state);
        holds.join().unwrap();
    });
    commit(&store, writer.next(&[], |_| {})).unwrap();
    assert!(folder.in_journal() <= 1);
    assert_gapless(&folder);
}

#[test]
fn a_count_of_a_transaction_that_is_dropped_is_not_kept() {
    for folder in folders() {
        // The first entries are in the tables, the last ones may be in the journal.
        let writer = begun(&folder, "s", 2);
        let store = folder.write();
        let key = store.session(&writer.name).unwrap().unwrap();
        for entries in [&[4][..], &[1, 4], &[1]] {
            let counts: Vec<_> = entries.iter().map(|n| (number(*n), vec![9])).collect();
            let mut writing = store.begin().unwrap();
            writing.count(key, 1, &counts).unwrap();
            drop(writing);
            assert_eq!(store.counts(key, EntryNumber::ALL, 1).unwrap(), [], "{counts:?}");
        }
    }
}
