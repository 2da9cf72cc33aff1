//! Syncs: what is on the disk, and when. A power cut cannot be tried here; what can is that a file was synced when it was
//! whole, and a folder after its names had changed.

#![cfg(target_os = "linux")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use undertext::{
    verbs::{self, Archive, Manner, Session},
    wire::{Draft, Speaker},
};

use crate::{
    fixture::{self, say, workspace},
    vfs::{Synced, synced as seen},
};

/// Returns where the first of these is that holds.
#[track_caller]
fn place(seen: &[Synced], what: &str, holds: impl Fn(&Synced) -> bool) -> usize {
    let found = seen.iter().position(holds);
    found.unwrap_or_else(|| panic!("{what} was not synced: {seen:#?}"))
}

fn is_store(synced: &Synced) -> bool {
    matches!(synced, Synced::File(path, _) if path.ends_with("store.db-wal"))
}

fn is_file(path: &Path, length: u64) -> impl Fn(&Synced) -> bool {
    let wanted = Synced::File(path.to_owned(), length);
    move |synced| *synced == wanted
}

/// Returns a session of an agent's own file, and that file.
fn attached(root: &Path) -> (Archive, Session, PathBuf) {
    let file = root.join("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::copy(example, &file).unwrap();
    let mut archive = fixture::open(&root.join("store"), 1);
    let (session, _) = verbs::take_up(&mut archive, &file).unwrap();
    (archive, session, file)
}

#[test]
fn an_append_is_safe_in_the_store_before_it_is_in_an_agents_file_and_there_before_it_is_acknowledged()
 {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let (mut archive, session, file) = attached(&root);
    seen();
    say(&mut archive, &session, "What about the roses?");
    let seen = seen();
    let whole = fs::metadata(&file).unwrap().len();
    let store = place(&seen, "the store", is_store);
    let there = place(&seen, "the file", is_file(&file, whole));
    assert!(store < there, "{seen:#?}");
}

#[test]
fn a_successor_is_safe_before_the_store_says_so_and_its_name_is_before_it_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut archive = fixture::open(&root, 1);
    let session = fixture::session(&mut archive);
    for n in 0..3 {
        say(&mut archive, &session, &format!("beginning {n}"));
    }
    let live = fixture::live(&archive, &session);
    seen();
    verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", Some("back")).unwrap();
    assert_rotated(&live);
    // The same holds for an agent's file that is set aside.
    let (mut archive, session, file) = attached(&root);
    archive.set_manner(Manner { rotate: true, ..Manner::default() });
    seen();
    verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", Some("back")).unwrap();
    assert_rotated(&file);
}

/// Asserts that a file was put in the place of another: the file, its name, the store, and the exchange of the names.
#[track_caller]
fn assert_rotated(live: &Path) {
    let seen = seen();
    let whole = fs::metadata(live).unwrap().len();
    let fresh = fixture::successor(live);
    let folder = live.parent().unwrap();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let names = |is_exchanged: bool| {
        let (live, fresh) = (name(live), name(&fresh));
        move |synced: &Synced| {
            let Synced::Folder(path, names) = synced else { return false };
            let asides = names.iter().filter(|name| **name != fresh && name.starts_with(&live));
            path == folder
                && names.contains(&fresh) != is_exchanged
                && (asides.count() > 1) == is_exchanged
        }
    };
    let order = [
        place(&seen, "the successor", is_file(&fresh, whole)),
        place(&seen, "the successor's name", names(false)),
        place(&seen, "the store", is_store),
        place(&seen, "the exchange", names(true)),
    ];
    assert!(order.is_sorted(), "{order:?} {seen:#?}");
}

#[test]
fn a_new_live_file_has_a_name_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut archive = fixture::open(&root, 1);
    seen();
    let session = fixture::session(&mut archive);
    let live = fixture::live(&archive, &session);
    let name = live.file_name().unwrap().to_str().unwrap().to_owned();
    let seen = seen();
    place(
        &seen,
        "the folder",
        |synced| matches!(synced, Synced::Folder(path, names) if *path == live.parent().unwrap() && names.contains(&name)),
    );
}

#[test]
fn each_commit_is_on_the_disk_before_it_is_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    for n in 0..5 {
        seen();
        let drafts = [Draft::Message(Speaker::User, format!("message {n}"))];
        verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts).unwrap();
        place(&seen(), "the store", is_store);
    }
}

#[test]
fn sessions_that_grew_share_a_sync_and_are_whole() {
    const SESSIONS: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let sessions = [root.join("sessions")];
    fs::create_dir(&sessions[0]).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let example = fs::read_to_string(example).unwrap();
    let id = |n: usize| format!("{n:08x}-90b4-4e6f-8a53-0d1f6b7e2c40");
    let file = |n: usize| sessions[0].join(format!("{}.jsonl", id(n)));
    for n in 0..SESSIONS {
        let own = example.replace("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40", &id(n));
        fs::write(file(n), own).unwrap();
    }
    let mut archive = fixture::open(&root.join("store"), 1);
    verbs::import(&mut archive, &sessions, &sessions, &mut |_| ()).unwrap();
    for step in 0..2 {
        for n in 0..SESSIONS {
            let line = format!(
                r#"{{"type":"user","message":{{"role":"user","content":"And tomorrow?"}},"uuid":"{step}","parentUuid":null,"sessionId":"{}","timestamp":"2026-08-20T10:00:00Z"}}"#,
                id(n)
            );
            let mut whole = fs::read_to_string(file(n)).unwrap();
            whole.push_str(&(line + "\n"));
            fs::write(file(n), whole).unwrap();
        }
        seen();
        let mut reported = 0;
        let taken = verbs::import(&mut archive, &sessions, &sessions, &mut |step| {
            reported += usize::from(matches!(step, verbs::Step::Imported(_)));
        });
        let summary = taken.unwrap();
        let syncs = seen().iter().filter(|synced| is_store(synced)).count();
        assert!(syncs <= 3, "{syncs}");
        assert_eq!((reported, summary.entries), (SESSIONS, SESSIONS as u64));
    }
    // The session of each follows its file.
    let again = verbs::import(&mut archive, &sessions, &sessions, &mut |_| ()).unwrap();
    assert_eq!((again.unchanged, again.entries), (SESSIONS as u64, 0));
    let verified = verbs::verify(&archive, None, &mut |_| ()).unwrap();
    assert_eq!(verified.damaged, 0);
    for session in archive.every().unwrap() {
        let bytes = fixture::exported(&archive, &session, None);
        let own = fs::read(sessions[0].join(format!("{}.jsonl", session.name.id))).unwrap();
        assert_eq!(bytes, own);
    }
}
