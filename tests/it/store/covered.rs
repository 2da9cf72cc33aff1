//! Covered lines: bytes are taken out of lines that several sessions and texts share, and all else comes back as it came.

use std::time::Duration;

use crate::fixture::number;
use undertext::{
    model::{CoveredRuns, EntryNumber, LineId, Named, OperationNumber, Tombstone},
    store::{Covering, Coverings, RunsCovering, SessionKey, Store, StoreError, whole_lines},
};

use super::{
    bytes::repetitive,
    lab::{Folder, assert_whole, commit, over_each},
    writer::{Brought, Writer},
};

const SECRET: &str = "hunter-is-not-a-password";

/// Returns lines of which every third has the secret, in a long text that several have and in a short one.
fn lines(seed: usize) -> Vec<Vec<u8>> {
    let shared = format!("{}{SECRET}{}", "a word of it ".repeat(40), " and more".repeat(30));
    let mut lines = repetitive(seed, 30);
    for (n, line) in lines.iter_mut().enumerate() {
        if n % 3 == 0 {
            let named = format!(
                r#"{{"uuid":"{seed}-{n}","t":"{shared}","s":"<{SECRET}>","u":"{shared}"}}"#
            );
            *line = named.into_bytes();
        }
    }
    lines
}

fn covered(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8(line.to_vec()).unwrap();
    text.replace(SECRET, &"*".repeat(SECRET.len())).into_bytes()
}

fn all(store: &dyn Store, session: SessionKey) -> Vec<Vec<u8>> {
    let entries: Vec<EntryNumber> =
        store.entries(session, EntryNumber::ALL).unwrap().iter().map(|entry| entry.n).collect();
    let mut found = Vec::new();
    whole_lines(store, session, &entries, &mut |_, line| found.push(line)).unwrap();
    found
}

/// Takes the secret out of sessions, in one transaction.
fn cover(store: &dyn Store, writers: &mut [(Writer, SessionKey)]) -> Result<(), StoreError> {
    let mut writing = store.begin()?;
    let mut coverings = Vec::new();
    for (writer, session) in writers {
        let mut tombstones = Vec::new();
        for (n, line) in (1..).zip(all(store, *session)) {
            let now = covered(&line);
            if now != line {
                tombstones.push(Tombstone {
                    entry: number(n),
                    size: line.len() as u64,
                    line: Some(LineId::of(&line)),
                    covered: Some(LineId::of(&now)),
                    rule: None,
                });
                coverings.push(Covering { session: *session, entry: number(n), line: now });
            }
        }
        writing.add(writer.next(&[], |brought| brought.facts.tombstones = tombstones))?;
    }
    writing.cover(Coverings { lines: coverings, ..Coverings::default() })?;
    writing.commit().map(drop)
}

#[test]
fn a_secret_goes_from_all_lines_that_share_it_and_the_rest_stays() {
    over_each(|store| {
        let mut writers = Vec::new();
        for (id, seed) in [("one", 0), ("two", 0), ("three", 7)] {
            let mut writer = Writer::new(store, id);
            let mut key = commit(store, writer.begin()).unwrap();
            for part in lines(seed).chunks(11) {
                key = commit(store, writer.next(part, |_| {})).unwrap();
            }
            writers.push((writer, key));
        }
        let before: Vec<_> = writers.iter().map(|(_, key)| all(store, *key)).collect();
        let ids = |key| store.entries(key, EntryNumber::ALL).unwrap();
        let ids_before: Vec<_> = writers.iter().map(|(_, key)| ids(*key)).collect();
        cover(store, &mut writers).unwrap();
        store.purge(Duration::ZERO).unwrap();
        for (((_, key), before), ids_before) in writers.iter().zip(before).zip(ids_before) {
            let expected: Vec<_> = before.iter().map(|line| covered(line)).collect();
            assert!(all(store, *key) == expected);
            assert_eq!(ids(*key), ids_before);
        }
        assert_whole(store);
        // What comes later is kept as ever, also what was covered elsewhere.
        let (writer, key) = &mut writers[0];
        let more = repetitive(100, 5);
        commit(store, writer.next(&more, |_| {})).unwrap();
        assert!(all(store, *key).ends_with(&more));
        store.pack(&mut |_, _| {}).unwrap();
        assert!(all(store, *key).ends_with(&more));
        assert_whole(store);
    });
}

#[test]
fn without_a_tombstone_no_line_is_covered() {
    over_each(|store| {
        let mut writer = Writer::new(store, "one");
        let key = commit(store, writer.begin()).unwrap();
        commit(store, writer.next(&lines(0), |_| {})).unwrap();
        let before = all(store, key);
        let line = covered(&before[2]);
        let mut writing = store.begin().unwrap();
        let covering = Covering { session: key, entry: number(3), line };
        assert!(matches!(
            writing.cover(Coverings { lines: vec![covering], ..Coverings::default() }),
            Err(StoreError::Refused(_))
        ));
        drop(writing);
        assert!(all(store, key) == before);
    });
}

#[test]
fn an_unfinished_line_goes_from_its_run_and_no_other_run_does() {
    over_each(|store| {
        let mut writer = Writer::new(store, "one");
        commit(store, writer.begin()).unwrap();
        // One that is long is packed.
        for tail in [format!("\n{{\"t\":\"{SECRET}"), format!("\n{{{}", SECRET.repeat(99))] {
            let end = |brought: &mut Brought| {
                brought.bulk.runs.last_mut().unwrap().tail = tail.into_bytes();
            };
            commit(store, writer.next(&repetitive(1, 2), end)).unwrap();
        }
        let all = OperationNumber::ALL;
        let key = commit(store, writer.next(&repetitive(2, 2), |_| {})).unwrap();
        let before = store.growths(key, all.clone()).unwrap();
        let mut expected = before.clone();
        let (mut facts, mut runs) = (Vec::new(), Vec::new());
        for (operation, run) in expected.iter_mut().filter(|(_, run)| run.unfinished().is_some()) {
            let lines = vec![LineId::of(run.unfinished().unwrap())];
            run.tail.clear();
            let (operation, digest) =
                (*operation, Named::of(std::slice::from_ref(run)).unwrap().digest);
            facts.push(CoveredRuns { operation, digest, lines });
            runs.push(RunsCovering { session: key, operation, runs: vec![run.clone()] });
        }
        assert_eq!(facts.len(), 2);
        let coverings = || Coverings { runs: runs.clone(), ..Coverings::default() };
        let mut writing = store.begin().unwrap();
        assert!(matches!(writing.cover(coverings()), Err(StoreError::Refused(_))));
        drop(writing);
        assert_eq!(store.growths(key, all.clone()).unwrap(), before);
        let mut writing = store.begin().unwrap();
        writing.add(writer.next(&[], |brought| brought.facts.covered_runs = facts)).unwrap();
        writing.cover(coverings()).unwrap();
        writing.commit().unwrap();
        assert_eq!(store.growths(key, all).unwrap(), expected);
        assert_whole(store);
    });
}

#[test]
fn no_session_that_shares_a_line_is_left_out() {
    let folder = Folder::new(64, 1 << 20);
    let store = folder.write();
    let mut writers: Vec<_> = ["one", "two"]
        .into_iter()
        .map(|id| {
            let mut writer = Writer::new(&store, id);
            commit(&store, writer.begin()).unwrap();
            let key = commit(&store, writer.next(&lines(0), |_| {})).unwrap();
            (writer, key)
        })
        .collect();
    let before = all(&store, writers[1].1);
    let refused = cover(&store, &mut writers[..1]);
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    assert!(all(&store, writers[1].1) == before);
    assert_whole(&store);
}

#[test]
fn what_another_connection_laid_out_anew_is_not_referred_to_where_it_lay() {
    let folder = Folder::new(0, 0);
    let (one, other) = (folder.write(), folder.write());
    let [early, late] = ["early ", "late "].map(|word| word.repeat(80));
    let said = |text: &str| format!(r#"{{"t":"{text}"}}"#).into_bytes();
    let both = format!(r#"{{"a":"{early}","s":"<{SECRET}>","t":"{late}"}}"#).into_bytes();
    let mut writer = Writer::new(&one, "one");
    commit(&one, writer.begin()).unwrap();
    let key = commit(&one, writer.next(&[said(&early), both], |_| {})).unwrap();
    let mut writers = [(writer, key)];
    cover(&other, &mut writers).unwrap();
    other.purge(Duration::ZERO).unwrap();
    // It has by heart where the late text lay, behind a mere reference to the early one.
    let [(mut writer, _)] = writers;
    commit(&one, writer.next(&[said(&late)], |_| {})).unwrap();
    for store in [&one, &other, &folder.read()] {
        assert!(all(store, key).ends_with(&[said(&late)]));
        assert_whole(store);
    }
}
