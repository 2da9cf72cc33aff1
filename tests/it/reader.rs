//! Reading for programs that stay open: pages, and what becomes of them as the session goes on.

use undertext::{
    model::Message,
    ops::{self, Archive, Machine, Reader, Renewed, Session},
    wire::{Draft, Speaker},
};

use crate::fixture::{self, workspace};

fn say(archive: &mut Archive, session: &Session, words: impl IntoIterator<Item = usize>) {
    let drafts = words.into_iter().map(|n| Draft::Message(Speaker::User, format!("word {n}")));
    let drafts: Vec<Draft> = drafts.collect();
    ops::append(archive, session, &workspace(), &drafts).unwrap();
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
    ops::branch(&mut archive, &session, "side", None).unwrap();
    assert_eq!(renew(&mut reader, &archive), Renewed::Same, "a branch was made");
    assert_eq!(renew(&mut side, &archive), Renewed::Moved, "the branch is there now");
    ops::revert(&mut archive, &session, &workspace(), "4", None).unwrap();
    assert_eq!(renew(&mut reader, &archive), Renewed::Moved);
    assert_eq!(page(&mut reader, &archive, 0, 100), words(0..4));
    assert_eq!(page(&mut side, &archive, 0, 100), words(0..13));
    assert_eq!(renew(&mut side, &archive), Renewed::Same, "it stays where it stood");
}
