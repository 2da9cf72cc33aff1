//! Reading for programs that stay open: pages, and what becomes of them as the session goes on.

use undertext::{
    model::Message,
    verbs::{self, Archive, Handle, Machine, Reader, Renewed, Session},
    wire::{Draft, Speaker},
};

use crate::fixture::{self, workspace};

fn say(archive: &mut Archive, session: &Session, words: impl IntoIterator<Item = usize>) {
    let drafts = words.into_iter().map(|n| Draft::Message(Speaker::User, format!("word {n}")));
    let drafts: Vec<Draft> = drafts.collect();
    verbs::append(&archive.at(session).unwrap(), &workspace(), &drafts).unwrap();
}

fn page(reader: &mut Reader, archive: &Archive, skipped: usize, count: usize) -> Vec<String> {
    let lines = reader.page(archive.store(), skipped, count).unwrap();
    lines.iter().flat_map(|line| &line.messages).map(Message::text).collect()
}

fn words(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| format!("word {n}")).collect()
}

#[test]
fn pages_together_are_the_conversation() {
    let mut archive = Archive::in_memory(Box::new(Machine));
    let session = fixture::session(&mut archive);
    say(&mut archive, &session, 0..500);
    for size in [1, 7, 64, 65, 499, 500, 501] {
        let mut reader = Reader::new(&session, None);
        reader.renew(archive.store()).unwrap();
        let (mut all, mut skipped) = (Vec::new(), 0);
        loop {
            let mut found = page(&mut reader, &archive, skipped, size);
            if found.is_empty() {
                break;
            }
            skipped += found.len();
            found.append(&mut all);
            all = found;
        }
        assert_eq!(all, words(0..500), "pages of {size}");
    }
    let mut reader = Reader::new(&session, None);
    assert_eq!(page(&mut reader, &archive, 0, 10), [""; 0], "nothing before it is renewed");
    reader.renew(archive.store()).unwrap();
    assert_eq!(page(&mut reader, &archive, 490, 100), words(0..10));
    assert_eq!(page(&mut reader, &archive, 500, 1), [""; 0]);
}

#[test]
fn a_reader_says_what_became_of_its_conversation() {
    let mut archive = Archive::in_memory(Box::new(Machine));
    let session = fixture::session(&mut archive);
    say(&mut archive, &session, 0..10);
    let (mut reader, mut side) = (Reader::new(&session, None), Reader::new(&session, Some("side")));
    let renew = |reader: &mut Reader, archive: &Archive| reader.renew(archive.store()).unwrap();
    assert_eq!(renew(&mut reader, &archive), Renewed::Moved);
    assert_eq!(page(&mut reader, &archive, 0, 3), words(7..10));
    assert_eq!(renew(&mut reader, &archive), Renewed::Same);
    say(&mut archive, &session, 10..13);
    assert_eq!(page(&mut reader, &archive, 0, 3), words(7..10), "it shows what it saw");
    assert_eq!(renew(&mut reader, &archive), Renewed::Grown(3));
    assert_eq!(page(&mut reader, &archive, 0, 100), words(0..13));
    verbs::branch(&archive.at(&session).unwrap(), "side", None).unwrap();
    assert_eq!(renew(&mut reader, &archive), Renewed::Same, "a branch was made");
    assert_eq!(renew(&mut side, &archive), Renewed::Moved, "the branch is there now");
    verbs::revert(&archive.at(&session).unwrap(), &workspace(), "4", None).unwrap();
    assert_eq!(renew(&mut reader, &archive), Renewed::Moved);
    assert_eq!(page(&mut reader, &archive, 0, 100), words(0..4));
    assert_eq!(page(&mut side, &archive, 0, 100), words(0..13));
    assert_eq!(renew(&mut side, &archive), Renewed::Same, "it stays where it stood");
}

#[test]
fn a_handle_returns_more_than_it_keeps_at_hand() {
    for count in [799, 800, 801] {
        let mut archive = Archive::in_memory(Box::new(Machine));
        let session = fixture::session(&mut archive);
        say(&mut archive, &session, 0..count);
        let mut handle = Handle::new(archive, session, workspace());
        assert_eq!(handle.messages(1).unwrap().len(), 1);
        let all: Vec<String> = handle.messages(900).unwrap().iter().map(Message::text).collect();
        assert_eq!(all, words(0..count), "{count}");
    }
}

#[test]
fn a_handle_forgets_what_another_program_takes_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    let secret = "hunter2secret-01234";
    let drafts = [secret, "word 1"].map(|it| Draft::Message(Speaker::User, it.to_owned()));
    verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts).unwrap();
    let log = verbs::log(&archive.at(&session).unwrap(), None, 10).unwrap();
    let mut handle = Handle::new(archive, session, workspace());
    let texts = |all: &[Message]| all.iter().map(Message::text).collect::<Vec<String>>();
    assert_eq!(texts(&handle.messages(10).unwrap()), [secret, "word 1"]);
    assert_eq!(texts(&handle.said(log.lines[0].n).unwrap()), [secret]);
    let mut other = fixture::open(folder.path(), 2);
    verbs::redact(&mut other, &verbs::Wanted::Secret(secret), verbs::Cause::default(), &[])
        .unwrap();
    for said in [handle.said(log.lines[0].n).unwrap(), handle.messages(10).unwrap()] {
        assert!(texts(&said)[0].starts_with("[redacted]"), "{said:?}");
    }
}
