//! Bytes: every line comes back as it came, however it is kept; what occurs again is kept once.

use std::{collections::BTreeSet, fs};

use crate::fixture::{number, numbers};
use undertext::{
    model::{EntryNumber, Generation, Tie, TieKind, line},
    store::{Access, ByteStore, Salvage, SessionKey, SqliteStore, Store, Whole, whole_lines},
};

use super::{
    lab::{Folder, Lab, assert_whole, commit, count, folders, line_of, over_each, settle, sifted},
    writer::Writer,
};

#[test]
fn a_cut_line_is_kept_as_the_beginning_of_the_one_that_it_was_cut_from() {
    let record = |text: &str| format!(r#"{{"uuid":"x","a":"{text}","b":"{text}"}}"#).into_bytes();
    let noise: String = (0..60_000u32)
        .map(|n| char::from(b'!' + u8::try_from(n.wrapping_mul(2_654_435_761) >> 25).unwrap() % 90))
        .map(|c| if matches!(c, '"' | '\\') { ' ' } else { c })
        .collect();
    let whole = record(&noise);
    let wholes = |cut: &[u8], whole: &[u8]| {
        let line = |bytes| line::split_unfinished(bytes).next().unwrap();
        Whole::each(&line(cut), &line(whole))
    };
    let cut = record(&(noise[..40_000].to_owned() + "[cut]"));
    over_each(|store| {
        let mut writer = Writer::new(store, "s");
        // Once the whole line lies in a segment, once it comes with the same commit.
        let key = commit(store, writer.begin()).unwrap();
        commit(store, writer.next(std::slice::from_ref(&whole), |_| {})).unwrap();
        let before = store.sizes().unwrap().kept;
        let mut next = writer.next(std::slice::from_ref(&cut), |_| {});
        next.lines[0].cut_from(wholes(&cut, &whole));
        commit(store, next).unwrap();
        let other = whole.iter().map(|&byte| if byte == b'!' { b'~' } else { byte }).collect();
        let again = [&cut[..cut.len() - 1], br#","c":1}"#].concat();
        let mut next = writer.next(&[other, again.clone()], |_| {});
        // What is said of a line and is not true changes nothing.
        next.lines[0].cut_from(wholes(&cut, &whole));
        next.lines[0].cut_from(wholes(&cut, &whole)[..1].to_vec());
        next.lines[1].cut_from(wholes(&again, &whole));
        commit(store, next).unwrap();
        let mut lines = Vec::new();
        whole_lines(store, key, &[number(3), number(4), number(6)], &mut |_, line| {
            lines.push(line);
        })
        .unwrap();
        assert!(lines == [whole.clone(), cut.clone(), again]);
        assert_whole(store);
        let sizes = store.sizes().unwrap();
        // In memory nothing is shared; the store keeps the other line once, and of the cut ones next to nothing.
        assert!(sizes.texts == 0 || sizes.kept - before < 62_000, "{sizes:?}, {before} before");
    });
}

/// Returns lines that hold long strings once and again: within a line, from line to line, and cut short of the threshold.
pub(crate) fn repetitive(seed: usize, count: usize) -> Vec<Vec<u8>> {
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
    // Without a journal, with one that is settled often, and as a store has it.
    for folder in [Folder::new(0, 0), Folder::new(3, 30_000), Folder::new(64, 1 << 20)] {
        let store = &folder.write();
        let mut writer = Writer::new(store, "s");
        let key = commit(store, writer.begin()).unwrap();
        let mut n = 2;
        for batch in batches {
            commit(store, writer.next(batch, |_| {})).unwrap();
            // The newest line of each batch at once, while its strings are at hand.
            n += batch.len() as u64;
            assert!(line_of(store, key, n) == *batch.last().unwrap());
        }
        assert_all(store, key, batches);
        let again = Folder::new(folder.rows, folder.bytes);
        let mut writer = Writer::new(&again.write(), "s");
        let mut key = None;
        for (i, batch) in batches.iter().enumerate() {
            // A new connection now and then knows no strings by heart.
            let store = again.open_for(Access::Brief).unwrap();
            if i == 0 {
                key = Some(commit(&store, writer.begin()).unwrap());
            }
            commit(&store, writer.next(batch, |_| {})).unwrap();
        }
        let key = key.unwrap();
        assert_all(&again.read(), key, batches);
        settle(&again.write());
        assert_all(&again.read(), key, batches);
        let segments = count(&again.path(), "segment");
        assert!(segments > 0 || !packed, "{segments} segments");
    }
}

pub(crate) fn assert_all(store: &dyn Store, key: SessionKey, batches: &[Vec<Vec<u8>>]) {
    let all: Vec<&Vec<u8>> = batches.iter().flatten().collect();
    let numbers: Vec<EntryNumber> = EntryNumber::each(numbers(3..3 + all.len() as u64)).collect();
    // In order, and backwards, which asks for segments in another order.
    let mut at = 0;
    whole_lines(store, key, &numbers, &mut |_, line| {
        assert!(line == *all[at], "line {at}");
        at += 1;
    })
    .unwrap();
    assert_eq!(at, all.len());
    let backwards: Vec<EntryNumber> = numbers.iter().rev().copied().collect();
    whole_lines(store, key, &backwards, &mut |n, line| {
        assert!(line == *all[n.index().unwrap() - 2]);
    })
    .unwrap();
    let lengths = store.lengths(key, number(3)..EntryNumber::ALL.end).unwrap();
    assert_eq!(lengths, all.iter().map(|line| line.len() as u64).collect::<Vec<_>>());
    assert_whole(store);
}

#[test]
fn a_repeated_string_is_kept_once_and_comes_back_everywhere() {
    let batches = [repetitive(0, 10), repetitive(5, 10), repetitive(100, 3)];
    assert_kept(&batches, false);
    for folder in folders() {
        let store = folder.write();
        let mut writer = Writer::new(&store, "s");
        commit(&store, writer.begin()).unwrap();
        for batch in &batches {
            commit(&store, writer.next(batch, |_| {})).unwrap();
        }
        settle(&store);
        let sizes = store.sizes().unwrap();
        assert!(sizes.kept * 4 < sizes.raw, "{}: {sizes:?}", folder.name());
    }
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
fn a_line_is_the_same_however_much_of_its_segment_was_read_before() {
    let unique = |n: usize| format!(r#"{{"n":{n},"x":"{} end-{n}."}}"#, format!("{n},").repeat(99));
    let lines: Vec<Vec<u8>> = (0..3000).map(|n| unique(n).into_bytes()).collect();
    for folder in folders() {
        let key = {
            let store = folder.write();
            let mut writer = Writer::new(&store, "s");
            commit(&store, writer.begin()).unwrap();
            commit(&store, writer.next(&lines, |_| {})).unwrap()
        };
        let count = lines.len() as u64;
        for first in (0..count).step_by(499) {
            // A look of its own, for which nothing is unpacked.
            let store = folder.read();
            let mut order = vec![first, first + 1, first / 2, count - 1, first, 0];
            order.retain(|n| *n < count);
            for n in order {
                let line = line_of(&store, key, 3 + n);
                assert!(line == lines[usize::try_from(n).unwrap()], "{n} after {first}");
            }
            let store = folder.read();
            assert!(line_of(&store, key, 3 + first) == lines[usize::try_from(first).unwrap()]);
            // What lies behind it in its segment is found, too.
            for n in [first, first + 1, first + 300].into_iter().filter(|n| *n < count) {
                let needle = format!("end-{n}.");
                let found = sifted(&store, key, EntryNumber::ALL, needle.as_bytes());
                assert_eq!(found, [number::<EntryNumber>(3 + n)], "{n} after {first}");
            }
        }
    }
}

#[test]
fn nothing_of_a_large_batch_is_left_unpacked() {
    let unique =
        |n: usize| format!(r#"{{"n":{n},"x":"{}"}}"#, format!("{n},").repeat(300)).into_bytes();
    for folder in folders() {
        let store = folder.write();
        let mut writer = Writer::new(&store, "s");
        let lines: Vec<Vec<u8>> = (0..700).map(unique).collect();
        commit(&store, writer.begin()).unwrap();
        commit(&store, writer.next(&repetitive(0, 3), |_| {})).unwrap();
        let key = commit(&store, writer.next(&lines, |_| {})).unwrap();
        assert_eq!(count(&folder.path(), "fresh"), 0, "{}", folder.name());
        assert_all(&store, key, &[repetitive(0, 3), lines]);
    }
}

#[test]
fn packing_joins_what_came_apart_and_takes_up_less() {
    // Words of a small language, which compress better the more of them there are.
    let line = |n: usize| {
        let word = |i: usize| ["make", "the", "linker", "find", "it"][(i * i + n / (i + 1)) % 5];
        let words: Vec<&str> = (0..60).map(word).collect();
        format!(r#"{{"n":{n},"x":"{}"}}"#, words.join(" ")).into_bytes()
    };
    let folder = Folder::new(64, 1 << 20);
    let store = folder.write();
    let mut writer = Writer::new(&store, "s");
    commit(&store, writer.begin()).unwrap();
    let batches: Vec<Vec<Vec<u8>>> =
        (0..4).map(|batch| (0..900).map(|n| line(batch * 900 + n)).collect()).collect();
    let mut key = None;
    for batch in &batches {
        key = Some(commit(&store, writer.next(batch, |_| {})).unwrap());
    }
    commit(&store, writer.next(&[b"a line that waits".to_vec()], |_| {})).unwrap();
    let (before, segments) = (store.sizes().unwrap(), count(&folder.path(), "segment"));
    // A reader in the middle sees what it saw, and another one writes.
    let reader = folder.read();
    assert_all(
        &reader,
        key.unwrap(),
        &[&batches[..], &[vec![b"a line that waits".to_vec()]]].concat(),
    );
    let mut more = Vec::new();
    store
        .pack(&mut |done, _| {
            if done > 0 && more.is_empty() {
                more = vec![b"meanwhile".to_vec()];
                commit(&folder.write(), writer.next(&more, |_| {})).unwrap();
            }
        })
        .unwrap();
    drop(reader);
    assert_eq!(more.len(), 1);
    let after = store.sizes().unwrap();
    assert_eq!((after.lines, after.texts), (before.lines + 1, before.texts));
    assert!(after.kept < before.kept && after.stored < before.stored, "{before:?} {after:?}");
    assert!(count(&folder.path(), "segment") < segments);
    let all = [&batches[..], &[vec![b"a line that waits".to_vec()], more]].concat();
    for store in [&store, &folder.read(), &folder.write()] {
        assert_all(store, key.unwrap(), &all);
    }
    // Once more packs what came since, and gives the room back that the reader held.
    store.pack(&mut |_, _| {}).unwrap();
    assert!(fs::metadata(folder.path()).unwrap().len() <= before.stored);
    assert!(store.sizes().unwrap().kept <= after.kept + 64);
}

#[test]
fn packing_leaves_what_is_damaged_as_it_is() {
    let unique =
        |n: usize| format!(r#"{{"n":{n},"x":"{}"}}"#, format!("{n},").repeat(300)).into_bytes();
    let folder = Folder::new(64, 1 << 20);
    let store = folder.write();
    let mut writer = Writer::new(&store, "s");
    commit(&store, writer.begin()).unwrap();
    let lines: Vec<Vec<u8>> = (0..3000).map(unique).collect();
    commit(&store, writer.next(&lines, |_| {})).unwrap();
    drop(store);
    let damage =
        "UPDATE segment SET body = CAST(substr(body, 1, 40) || x'00' || substr(body, 42) AS BLOB)
                  WHERE key = (SELECT key FROM segment ORDER BY key LIMIT 1 OFFSET 1)";
    assert_eq!(folder.sql().execute(damage, []).unwrap(), 1);
    let damaged = "SELECT key, body FROM segment ORDER BY key LIMIT 1 OFFSET 1";
    let row = |db: &rusqlite::Connection| -> (i64, Vec<u8>) {
        db.query_row(damaged, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let before = row(&folder.sql());
    assert_eq!(folder.write().pack(&mut |_, _| {}).unwrap(), 1);
    assert_eq!(row(&folder.sql()), before);
    let mut faults = Vec::new();
    folder.read().check(None, &mut |fault| faults.push(fault.item)).unwrap();
    assert!(faults.contains(&format!("segment {}", before.0)), "{faults:?}");
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
            let mut writer = Writer::new(store, id);
            let key = commit(store, writer.begin()).unwrap();
            commit(store, writer.next(&repetitive(0, 5), |_| {})).unwrap();
            assert_eq!(line_of(store, key, 5), repetitive(0, 5)[2]);
        }
    });
    for folder in folders() {
        let store = folder.write();
        // Some come in one operation, some in others; some have a name, and some have none.
        let mut writers = ["one", "two", "three"].map(|id| Writer::new(&store, id));
        for writer in &mut writers {
            commit(&store, writer.begin()).unwrap();
            commit(&store, writer.next(&repetitive(0, 5), |_| {})).unwrap();
            let again = [b"{}".to_vec(), b"{}".to_vec(), br#"{"uuid":"c"}"#.to_vec()];
            commit(&store, writer.next(&again, |_| {})).unwrap();
        }
        settle(&store);
        // What settles them has 40 lines of its own, and two that are there already.
        assert_eq!(store.sizes().unwrap().lines, 2 + 5 + 2 + 40, "{}", folder.name());
        assert_whole(&store);
    }
}

/// Returns the lines of a session, as a fork repeats them: the session's name is all that differs.
fn lines_of(session: &str, count: usize) -> Vec<Vec<u8>> {
    let noise = |n: usize, length: usize| -> String {
        let mut state = n as u64 + 1;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
        };
        (0..length).map(next).collect()
    };
    let line = |n: usize| {
        let (name, text, end) = (noise(n, 36), noise(n + 7000, 150 + 90 * (n % 5)), noise(n, 99));
        format!(
            r#"{{"uuid":"{name}","sessionId":"{session}","a":["{text}","{text}"],"end":"{end}"}}"#
        )
        .into_bytes()
    };
    (0..count).map(line).collect()
}

#[test]
fn a_fork_of_a_fork_takes_up_what_differs_in_it() {
    for folder in folders() {
        let mut kept = Vec::new();
        let mut held = Vec::new();
        for id in ["one", "the second session", "three"] {
            // A new connection knows no strings by heart.
            let store = folder.write();
            let mut writer = Writer::new(&store, id);
            commit(&store, writer.begin()).unwrap();
            // A fork may leave lines out, and have some of its own.
            let mut lines = lines_of(id, 900);
            if id == "three" {
                lines.drain(300..302);
                lines.splice(500..500, lines_of("own", 920).split_off(900));
            }
            let key = commit(&store, writer.next(&lines, |_| {})).unwrap();
            held.push((key, lines));
            kept.push(store.sizes().unwrap().kept);
        }
        let [first, second, third] = kept[..] else { panic!() };
        let most = first / 8;
        assert!(second - first < most && third - second < most, "{}: {kept:?}", folder.name());
        let store = folder.write();
        let all_come_back = |store: &dyn Store| {
            for (key, lines) in &held {
                assert_all(store, *key, std::slice::from_ref(lines));
            }
        };
        all_come_back(&store);
        store.pack(&mut |_, _| {}).unwrap();
        assert!(store.sizes().unwrap().kept <= third);
        all_come_back(&folder.read());
        // What is copied from a damaged store is written down alike.
        let fresh = folder.path().with_file_name("fresh.db");
        let salvage = Salvage::begin(&folder.path(), &fresh, &mut |_, _| ()).unwrap();
        salvage.finish().unwrap();
        let salvaged = SqliteStore::open(&fresh, Access::Write).unwrap();
        assert!(salvaged.sizes().unwrap().kept < third + most, "{}", folder.name());
    }
}

#[test]
fn a_sieve_lets_through_every_line_that_holds_what_is_looked_for_however_it_is_written_down() {
    for folder in folders() {
        let mut held = Vec::new();
        for id in ["one", "the second session"] {
            let store = folder.write();
            let mut writer = Writer::new(&store, id);
            commit(&store, writer.begin()).unwrap();
            let lines = lines_of(id, 300);
            let key = commit(&store, writer.next(&lines, |_| {})).unwrap();
            held.push((key, lines));
        }
        let store = folder.write();
        let all = |pass: &str| {
            for (key, lines) in &held {
                for n in (0..300).step_by(23) {
                    for (at, length) in [(3, 1), (20, 9), (60, 4), (71, 12), (90, 30), (150, 3)] {
                        let needle = lines[n].get(at..at + length).unwrap_or(b"s").to_vec();
                        if needle.contains(&b'"') {
                            continue;
                        }
                        let holds =
                            |line: &[u8]| line.windows(needle.len()).any(|part| part == needle);
                        let expected = lines.iter().filter(|line| holds(line)).count();
                        let found = sifted(&store, *key, EntryNumber::ALL, &needle);
                        let own = found.into_iter().filter(|n| n.index().unwrap() > 1).count();
                        let told = String::from_utf8_lossy(&needle);
                        assert_eq!(own, expected, "{}, {pass}: {told:?}", folder.name());
                    }
                }
            }
        };
        all("as they came");
        store.pack(&mut |_, _| {}).unwrap();
        all("packed");
    }
}

#[test]
fn a_fork_of_what_is_damaged_is_kept_whole() {
    for damage in [
        "UPDATE segment SET body = zeroblob(length(body)) WHERE key < 500",
        "DELETE FROM segment WHERE key < 500",
    ] {
        let folder = Folder::new(0, 0);
        let add = |id: &str, session: &str| {
            let store = folder.write();
            let mut writer = Writer::new(&store, id);
            commit(&store, writer.begin()).unwrap();
            let lines = lines_of(session, 900);
            (commit(&store, writer.next(&lines, |_| {})).unwrap(), lines)
        };
        let [(source, _), (fork, lines)] = ["source", "fork"].map(|id| add(id, id));
        folder.sql().execute_batch(damage).unwrap();
        let store = folder.read();
        let mut faulty = BTreeSet::new();
        store.check(None, &mut |fault| faulty.extend(fault.session)).unwrap();
        assert_eq!(faulty.into_iter().collect::<Vec<_>>(), [source, fork], "{damage}");
        let numbers: Vec<EntryNumber> = EntryNumber::each(numbers(3..3 + 900)).collect();
        let (mut read, mut lost) = (0, 0);
        store
            .lines(fork, &numbers, &mut |n, line| match line {
                Ok(line) => {
                    assert_eq!(line, lines[n.index().unwrap() - 2]);
                    read += 1;
                }
                Err(_) => lost += 1,
            })
            .unwrap();
        assert!(read > 0 && lost > 0, "{damage}: {read} read, {lost} lost");
        // The same lines in another session are kept once more where they are lost, and are then referred to.
        let (again, lines) = add("again", "fork");
        let (other, others) = add("other", "other");
        let store = folder.read();
        for (key, lines) in [(again, lines), (other, others)] {
            let mut at = 0;
            whole_lines(&store, key, &numbers, &mut |_, line| {
                assert!(line == lines[at]);
                at += 1;
            })
            .unwrap();
            assert_eq!(at, 900);
        }
        let mut faulty = BTreeSet::new();
        store.check(None, &mut |fault| faulty.extend(fault.session)).unwrap();
        assert_eq!(faulty.into_iter().collect::<Vec<_>>(), [source, fork], "{damage}");
    }
}

#[test]
fn a_fork_without_long_strings_is_found_by_what_it_says_of_itself() {
    let lines = |session: &str| -> Vec<Vec<u8>> {
        let mixed = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let line = |n| format!(r#"{{"a":{},"of":"{session}","b":{}}}"#, mixed(n), mixed(n + 9000));
        (1..=900).map(|n| line(n).into_bytes()).collect()
    };
    let tie = |kind, other: &str| Tie { kind, other: other.to_owned() };
    let beginning = tie(TieKind::Beginning, "as both begin");
    let sessions = [
        ("one", vec![beginning.clone()]),
        ("two", vec![tie(TieKind::Fork, "one")]),
        ("three", vec![tie(TieKind::Fork, "elsewhere"), beginning]),
        ("four", Vec::new()),
    ];
    for folder in folders() {
        let mut kept = vec![0];
        for (id, ties) in sessions.clone() {
            let store = folder.write();
            let mut writer = Writer::new(&store, id);
            let mut first = writer.next(&lines(id), |brought| {
                brought.facts.generations.push(Generation { n: number(1), file: None });
            });
            first.ties = vec![(number(1), ties)];
            let key = commit(&store, first).unwrap();
            store.pack(&mut |_, _| {}).unwrap();
            kept.push(store.sizes().unwrap().kept);
            assert_eq!(line_of(&store, key, 900), lines(id)[899]);
            assert_whole(&store);
        }
        let grown: Vec<u64> = kept.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let [one, two, three, four] = grown[..] else { panic!() };
        let most = one / 4;
        assert!(two < most && three < most && four > most, "{}: {grown:?}", folder.name());
    }
}
