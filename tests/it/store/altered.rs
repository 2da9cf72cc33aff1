//! A store that others have changed: by a newer program, by who took words out, by damage, by an older copy in its place.
//!
//! Invariant: it is read as far as it can be, nothing is built upon what is not known or not whole, and whatever is wrong is
//! said.

use crate::fixture::{number, numbers};
use rusqlite::{Connection, params};
use undertext::{
    model::{
        Bulk, CheckpointNumber, Command, Operation, OperationId, OperationNumber, State, StoreId,
        Tagged, Text, put_varint,
    },
    store::{
        Access, ByteStore, CacheStore, Commit, FactStore, SessionKey, SqliteStore, Store,
        StoreError,
    },
};

use super::{
    bytes::repetitive,
    lab::{Folder, assert_whole, commit, folders, kind, line_of, settle},
    settling::{begun, patient},
    writer::{Writer, given},
};

/// Writes an operation's record, which is the newest of its session and in the tables, as a newer program does: with a field
/// more. What was made of it is made again.
fn put_newer(db: &Connection, session: SessionKey, mut before: State, newer: &Operation) {
    db.execute_batch("DROP TRIGGER operation_is_not_updated").unwrap();
    before.apply(newer, &Bulk::default());
    let changed = db
        .execute(
            "UPDATE operation SET record = ?1, hash = ?2 WHERE session = ?3 AND n = ?4",
            params![newer.record, newer.hash.as_bytes(), session.0, newer.n],
        )
        .unwrap();
    assert_eq!(changed, 1);
    let changed = db
        .execute(
            "UPDATE card SET state = ?1 WHERE session = ?2",
            params![before.to_bytes(), session.0],
        )
        .unwrap();
    assert_eq!(changed, 1);
}

/// Returns the operation of a commit with a field more.
fn newer(commit: &Commit, store: StoreId) -> Operation {
    let mut record = commit.operation.record.clone();
    put_varint(&mut record, 99);
    record.extend([3, b'n', b'e', b'w']);
    let opened = Operation::open(commit.operation.n, record, OperationId::default(), &[]).unwrap();
    let hash = opened.hash_after(commit.expected, store, &commit.session);
    Operation { hash, ..opened }
}

#[test]
fn what_a_newer_program_wrote_is_read_from_the_tables_and_nothing_is_added_to_it() {
    let folder = Folder::new(0, 0);
    let mut writer = begun(&folder, "s", 1);
    let before = writer.state.clone();
    let store = folder.write();
    let last = writer.next(&[], |brought| brought.command = Command::Clear { left: None });
    let key = commit(&store, last.clone()).unwrap();
    let newer = newer(&last, writer.store);
    put_newer(&folder.sql(), key, before, &newer);
    // The newer program would have witnessed another hash.
    std::fs::remove_file(folder.witness()).unwrap();
    for access in [Access::Read, Access::Write] {
        let store = folder.open_for(access).unwrap();
        let read = store.operations(key, numbers(3..4)).unwrap().remove(0);
        assert_eq!(read, newer);
        assert_eq!(read.unknown, [99]);
        assert_eq!(store.state(key).unwrap().unknown, Some(number(3)));
        assert_eq!(line_of(&store, key, 3), b"line of 2");
    }
    writer.state = folder.read().state(key).unwrap();
    for lines in [0, 1, 30] {
        let next = writer.clone().next(&repetitive(0, lines), |_| {});
        let refused = commit(&folder.write(), next);
        assert!(
            matches!(refused, Err(StoreError::NewerFacts { operation }) if operation == 3),
            "{refused:?}"
        );
    }
    // Another session goes on, whatever settles.
    let mut other = begun(&folder, "other", 3);
    settle(&folder.write());
    commit(&folder.write(), other.next(&[], |_| {})).unwrap();
}

#[test]
fn what_a_newer_program_wrote_is_read_from_the_journal_and_settled_as_it_is() {
    let folder = patient();
    let mut writer = begun(&folder, "s", 2);
    let store = folder.write();
    let last = writer.next(&[], |brought| brought.command = Command::Clear { left: None });
    let key = commit(&store, last.clone()).unwrap();
    drop(store);
    // The row as a newer program writes it: another record and hash, and the checksum of that.
    let db = folder.sql();
    let (seq, body): (u64, Vec<u8>) = db
        .query_row("SELECT seq, body FROM journal ORDER BY seq DESC LIMIT 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let newer = newer(&last, writer.store);
    let part = |operation: &Operation| {
        let mut part = operation.hash.as_bytes().to_vec();
        put_varint(&mut part, operation.record.len() as u64);
        part.extend(&operation.record);
        part
    };
    let old = part(&last.operation);
    let content = &body[..body.len() - 8];
    let at = content.windows(old.len()).position(|part| part == old).unwrap();
    let mut content = [&content[..at], &part(&newer), &content[at + old.len()..]].concat();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seq.to_le_bytes()).update(&content);
    content.extend(&hasher.finalize().as_bytes()[..8]);
    db.execute_batch("DROP TRIGGER journal_is_not_updated").unwrap();
    db.execute("UPDATE journal SET body = ? WHERE seq = ?", params![content, seq]).unwrap();
    std::fs::remove_file(folder.witness()).unwrap();
    let look = || {
        for access in [Access::Read, Access::Write] {
            let store = folder.open_for(access).unwrap();
            assert_eq!(store.operations(key, numbers(4..5)).unwrap().remove(0), newer);
            assert_eq!(store.state(key).unwrap().unknown, Some(number(4)));
            assert_eq!(line_of(&store, key, 3), b"line of 2");
        }
        let mut writer = writer.clone();
        writer.state = folder.read().state(key).unwrap();
        let refused = commit(&folder.write(), writer.next(&[], |_| {}));
        assert!(
            matches!(refused, Err(StoreError::NewerFacts { operation }) if operation == 4),
            "{refused:?}"
        );
    };
    look();
    assert_eq!(folder.in_journal(), 3);
    settle(&folder.write());
    assert_eq!(folder.in_journal(), 0);
    look();
}

#[test]
fn a_row_of_the_journal_that_is_damaged_is_said_to_be() {
    let folder = patient();
    let writer = begun(&folder, "s", 3);
    let name = writer.name;
    let db = folder.sql();
    db.execute_batch("DROP TRIGGER journal_is_not_updated").unwrap();
    let body: Vec<u8> =
        db.query_row("SELECT body FROM journal WHERE seq = 3", [], |row| row.get(0)).unwrap();
    for at in (0..body.len()).step_by(7) {
        let mut bad = body.clone();
        bad[at] ^= 4;
        db.execute("UPDATE journal SET body = ? WHERE seq = 3", [&bad]).unwrap();
        for access in [Access::Read, Access::Write] {
            // Nothing is passed over in silence: either the store is not opened, or it answers nothing.
            let refused = folder.open_for(access).and_then(|store| {
                let key = store.session(&name)?.expect("a session");
                store.state(key)
            });
            assert_eq!(refused.as_ref().map_err(kind).err(), Some("corrupt"), "{at}: {refused:?}");
        }
        if let Ok(store) = folder.open_for(Access::Read) {
            let mut faults = Vec::new();
            store.check(None, &mut |fault| faults.push(fault)).unwrap();
            assert!(!faults.is_empty(), "{at}");
        }
    }
    db.execute("UPDATE journal SET body = ? WHERE seq = 3", [&body]).unwrap();
    let key = folder.read().session(&name).unwrap().unwrap();
    assert_eq!(folder.write().state(key).unwrap(), writer.state);
}

#[test]
fn words_that_were_taken_out_leave_the_chain_as_it_is() {
    let folder = patient();
    let mut writer = begun(&folder, "s", 0);
    let store = folder.write();
    for next in writer.rest() {
        commit(&store, next).unwrap();
    }
    let key = store.session(&writer.name).unwrap().unwrap();
    // Words come back from the journal, and from the tables.
    let whole = store.operations(key, OperationNumber::ALL).unwrap();
    settle(&store);
    drop(store);
    assert_eq!(folder.in_journal(), 0);
    let given_words = |all: &[Operation]| -> Vec<String> {
        let words = all.iter().flat_map(|operation| operation.words(&Bulk::default()));
        words.map(|words| words.text).collect()
    };
    let store = folder.read();
    assert_eq!(store.operations(key, OperationNumber::ALL).unwrap(), whole);
    assert_eq!(given_words(&whole), ["é", "Not so.", "é", "mine", "later", "A title", "/work"]);
    let notes = |store: &SqliteStore| -> Vec<Option<Text>> {
        let given = store.checkpoints(key, CheckpointNumber::ALL).unwrap();
        given.into_iter().map(|(_, checkpoint)| checkpoint.note).collect()
    };
    assert!(notes(&store).contains(&Some(given("n\0"))));
    drop(store);

    let copy = folder.copy();
    let db = copy.sql();
    db.execute_batch("DROP TRIGGER words_are_not_deleted; DELETE FROM words").unwrap();
    for access in [Access::Read, Access::Write] {
        let store = copy.open_for(access).unwrap();
        let bare = store.operations(key, OperationNumber::ALL).unwrap();
        assert_eq!(given_words(&bare), [""; 0]);
        let mut before = None;
        for (bare, whole) in bare.iter().zip(&whole) {
            assert_eq!((&bare.record, bare.hash), (&whole.record, whole.hash));
            let hash = bare.hash_after(before, store.id().unwrap(), &writer.name);
            assert_eq!(hash, whole.hash);
            before = Some(hash);
        }
        // Where they stood, it shows that they were taken out; the rest stands as it was.
        let moved = &bare[1].facts.moves[1].branch;
        assert!(moved.to_text().starts_with("removed-"), "{moved:?}");
        assert_eq!(bare[1].facts.moves[0].branch, Text::Own("main".into()));
        let note = notes(&store).into_iter().flatten().map(|note| note.to_text());
        let note = note.filter(|note| note.starts_with("removed-"));
        assert_eq!(note.count(), 2);
        assert_eq!(bare.len(), whole.len());
    }
    // The session goes on.
    let store = copy.write();
    commit(&store, writer.next(&[b"on".to_vec()], |_| {})).unwrap();
    assert_eq!(line_of(&store, key, writer.ids.len() as u64), b"on");
}

#[test]
fn the_witness_is_the_newest_operation_and_nobody_waits_for_it() {
    for folder in folders() {
        let store = folder.write();
        assert_eq!(store.testimony().witness().unwrap(), None);
        let mut writer = Writer::new(&store, "s");
        let told = |store: &SqliteStore| {
            store
                .testimony()
                .witness()
                .unwrap()
                .map(|witness| (witness.seq, witness.hash, witness.store))
        };
        let id = store.id().unwrap();
        for n in 1..9 {
            let next = if n == 1 { writer.begin() } else { writer.next(&[], |_| {}) };
            let hash = next.operation.hash;
            commit(&store, next).unwrap();
            assert_eq!(told(&store), Some((n, hash, id)));
            assert_eq!(store.newest().unwrap(), Some((n, hash)));
        }
        let held = told(&store);
        let mut writing = store.begin().unwrap();
        writing.add(writer.clone().next(&[], |_| {})).unwrap();
        drop(writing);
        assert_eq!(told(&store), held);
        drop(store);
        let path = folder.witness();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 128);
        // Without one, and with one that is no witness, all goes on.
        for bytes in [None, Some(b"no witness".to_vec()), Some(vec![0; 128])] {
            std::fs::remove_file(&path).unwrap();
            if let Some(bytes) = bytes {
                std::fs::write(&path, bytes).unwrap();
            }
            let reader = folder.read();
            assert_eq!(told(&reader), None);
            assert_whole(&reader);
            let store = folder.write();
            let next = writer.next(&[], |_| {});
            let hash = next.operation.hash;
            commit(&store, next).unwrap();
            assert_eq!(told(&store).unwrap().1, hash);
            assert_whole(&store);
        }
    }
}

#[test]
fn a_store_that_has_forgotten_its_newest_operations_is_behind_its_witness() {
    let folder = patient();
    let mut writer = begun(&folder, "s", 2);
    let old = folder.copy();
    let store = folder.write();
    commit(&store, writer.next(&[], |_| {})).unwrap();
    drop(store);
    std::fs::copy(folder.witness(), old.witness()).unwrap();
    for (folder, is_whole) in [(&folder, true), (&old, false)] {
        let store = folder.read();
        let (newest, _) = store.newest().unwrap().unwrap();
        let witness = store.testimony().witness().unwrap().unwrap();
        assert_eq!(witness.seq == newest, is_whole);
        assert_eq!(witness.seq > newest, !is_whole);
        assert_eq!(store.testimony().forgotten().unwrap().is_none(), is_whole);
        let mut faults = Vec::new();
        store.check(None, &mut |fault| faults.push(fault.item)).unwrap();
        assert_eq!(faults.is_empty(), is_whole, "{faults:?}");
        // It is read, and nothing is built upon what is left of it.
        for access in [Access::Write, Access::Brief] {
            let refused = folder.open_for(access).err();
            let is_refused =
                matches!(refused, Some(StoreError::Forgotten { witnessed: 4, newest: 3, .. }));
            assert_eq!(is_refused, !is_whole, "{refused:?}");
        }
    }
    // One that is whole, and was not opened since, is behind its own file by nothing; an older witness says nothing.
    std::fs::copy(old.witness(), folder.witness()).unwrap();
    commit(&folder.write(), writer.next(&[], |_| {})).unwrap();
    std::fs::copy(old.witness(), folder.witness()).unwrap();
    assert_eq!(folder.write().testimony().forgotten().unwrap(), None);
}

#[test]
fn totals_that_are_not_what_counting_gives_are_said_to_be_and_made_again() {
    let folder = Folder::new(0, 0);
    let _ = begun(&folder, "s", 3);
    let (store, db) = (folder.write(), folder.sql());
    assert_whole(&store);
    for change in ["UPDATE total SET bytes = bytes + 1", "DELETE FROM total"] {
        db.execute_batch(change).unwrap();
        let mut faults = Vec::new();
        store.check(None, &mut |fault| faults.push(fault.item)).unwrap();
        assert_eq!(faults, ["the totals"], "{change}");
        let mut writing = store.begin().unwrap();
        writing.freshened().unwrap();
        writing.commit().unwrap();
        assert_whole(&store);
    }
}
