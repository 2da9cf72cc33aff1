//! What a verification finds of live files and of lines: as much as there is, and nothing that only follows from it.

use std::{
    fs::{self, File},
    path::Path,
    time::SystemTime,
};

use rusqlite::Connection;
use tempfile::TempDir;
use undertext::{
    context::cut::Limit,
    store::Access,
    verbs::{self, Archive, Bound, Session},
    wire::Draft,
};

use crate::fixture::{self, Seeded, damage, say, workspace};

/// Returns what a verification says, the folder of the store left out.
fn told(archive: &Archive) -> Vec<(&'static str, String)> {
    let root = format!("{}/", archive.root().unwrap().display());
    let mut told = Vec::new();
    verbs::verify(archive, None, &mut |seen| {
        if let Some(finding) = seen.found() {
            let said = format!("{}: {}", finding.item.replace(&root, ""), finding.problem);
            told.push((finding.kind.severity(), said));
        }
    })
    .unwrap();
    told
}

/// Makes a session with a long result, which is cut if that is asked for: then the file holds a newer entry among older ones.
fn begun(folder: &Path, is_cut: bool) -> (Archive, Session) {
    let mut archive = fixture::open(folder, 1);
    let session = fixture::session(&mut archive);
    say(&mut archive, &session, "one");
    let (id, name, input) = ("c1".to_owned(), "Read".to_owned(), "{}".to_owned());
    let drafts = [
        Draft::Call { id: id.clone(), name, input },
        Draft::Result { id, output: "a line of what a tool said\n".repeat(200), error: None },
    ];
    verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts).unwrap();
    for text in ["two", "three"] {
        say(&mut archive, &session, text);
    }
    if is_cut {
        let bound = Bound::of(Limit::of_chars(0));
        assert!(
            verbs::truncate(&archive.at(&session).unwrap(), &bound)
                .unwrap()
                .done
                .operation
                .is_some()
        );
        say(&mut archive, &session, "four");
    } else {
        // A branch that was left stands in the store before what the file goes on with.
        verbs::revert(&archive.at(&session).unwrap(), &workspace(), "2", Some("four")).unwrap();
    }
    (archive, session)
}

/// Writes other bytes into a file that keeps the time at which it was changed last.
fn write(path: &Path, bytes: &[u8], modified: SystemTime) {
    fs::write(path, bytes).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn a_live_file_is_compared_whole_in_whatever_order_the_store_has_its_lines() {
    for is_cut in [false, true] {
        let folder = TempDir::new().unwrap();
        let (archive, session) = begun(folder.path(), is_cut);
        let live = fixture::live(&archive, &session);
        let (whole, modified) =
            (fs::read(&live).unwrap(), live.metadata().unwrap().modified().unwrap());
        assert_eq!(told(&archive), []);
        // One byte of each line, and of the end between two lines.
        for at in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
            let mut other = whole.clone();
            other[at] ^= 1;
            write(&live, &other, modified);
            let found = told(&archive);
            let [("damage", said)] = found.as_slice() else { panic!("{at}: {found:?}") };
            assert!(said.ends_with("although its length and time are the same"), "{at}: {said}");
        }
        for other in [[whole.as_slice(), b"{}"].concat(), whole[..whole.len() - 9].to_vec()] {
            write(&live, &other, modified);
            let found = told(&archive);
            let [("note", said)] = found.as_slice() else { panic!("{found:?}") };
            assert!(said.ends_with("the next change imports the new version"), "{said}");
        }
        fs::remove_file(&live).unwrap();
        let found = told(&archive);
        assert!(matches!(found.as_slice(), [("note", _)]), "{found:?}");
        write(&live, &whole, modified);
        assert_eq!(told(&archive), []);
    }
}

#[test]
fn a_store_that_cannot_be_compared_with_its_witness_is_told_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, session) = begun(folder.path(), false);
    let reader = Archive::open(folder.path(), Access::Read, Seeded::boxed(2)).unwrap();
    say(&mut writer, &session, "more");
    assert_eq!(told(&reader), []);
    // An open store stays readable; it is opened again only when the witness is newer than what it sees.
    fs::rename(folder.path().join("store.db"), folder.path().join("other")).unwrap();
    let told = told(&reader);
    assert!(told.iter().any(|(_, said)| said.contains("has lost changes")), "{told:?}");
}

#[test]
fn a_line_that_was_changed_is_all_the_damage_though_its_record_would_be_another() {
    let folder = TempDir::new().unwrap();
    let (archive, _) = begun(folder.path(), false);
    drop(archive);
    fixture::settle(folder.path());
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    let change = "UPDATE fresh SET body = CAST(replace(CAST(body AS TEXT), '2001-02-03', '2001-02-04') AS BLOB)
                  WHERE instr(body, CAST('\"two\"' AS BLOB)) > 0";
    assert_eq!(db.execute(change, []).unwrap(), 1);
    drop(db);
    let archive = fixture::open(folder.path(), 2);
    assert_eq!(damage(&archive), ["entry 4: its id does not match its link and line"]);
}

#[test]
fn checkpoints_behind_one_that_is_lost_are_read() {
    let folder = TempDir::new().unwrap();
    let (archive, session) = begun(folder.path(), false);
    let last = archive.store().state(session.key).unwrap().checkpoint;
    drop(archive);
    fixture::settle(folder.path());
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    let lose = "DROP TRIGGER checkpoint_is_not_deleted; DELETE FROM checkpoint WHERE n = 0";
    db.execute_batch(lose).unwrap();
    drop(db);
    let mut archive = fixture::open(folder.path(), 2);
    let trigger = "trigger checkpoint_is_not_deleted: it is missing";
    let lost = "operation 2: its facts do not match its record";
    let derived = "derived rows: they do not match the facts";
    assert_eq!(damage(&archive), [trigger, lost, derived]);
    verbs::rebuild(&mut archive, &session).unwrap();
    assert_eq!(archive.store().state(session.key).unwrap().checkpoint, last);
    assert_eq!(damage(&archive), [trigger, lost]);
}
