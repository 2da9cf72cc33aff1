//! Random operations on two archives: one in a folder over SQLite, with a live file that other programs append to, rewrite
//! and delete; and one in memory, which has no files and is obviously right.
//!
//! As long as nobody else writes to the live file, both give the same answers. Whatever happens, in the end the folder's
//! archive verifies, rebuilds to equal rows, its live file is its export, and no text that was ever appended is lost.

use std::{fs, io::Write, path::PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use undertext::{
    verbs::{self, Archive, OpsError, Session, SyncError},
    wire::{Draft, Speaker},
};

use crate::fixture::{self, Seeded, assert_sound, exported, lines, live, number, said, workspace};

#[derive(Clone, Debug)]
enum Op {
    User,
    Assistant,
    Note,
    Tool,
    /// So many records, of which one repeats an earlier one.
    Batch(usize, usize),
    Branch(usize),
    Switch(usize),
    Checkpoint(bool),
    Revert(usize, bool),
    Clear,
    Undo,
    UndoOne(usize),
    Redo,
    Hide(bool),
    DeleteLive,
    DeleteAside(usize),
    Outside(Outside),
}

/// What another program does to the live file.
#[derive(Clone, Copy, Debug)]
enum Outside {
    /// Appends a record and a line end.
    Record,
    /// Appends a record without a line end.
    Unended,
    /// Appends what is no record.
    Junk,
    /// Appends the beginning of a record.
    Torn,
    /// Appends white space.
    Blank,
    /// Appends to a file that was set aside, as a program does that holds it open.
    Late,
    /// Cuts the file, in place.
    Cut,
    /// Writes another file in its place.
    Replace,
    /// Puts a record before the others, in place.
    Before,
    /// Changes a byte, in place.
    Change,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => Just(Op::User),
        3 => Just(Op::Assistant),
        1 => Just(Op::Note),
        2 => Just(Op::Tool),
        2 => (1..4usize, 0..8usize).prop_map(|(count, again)| Op::Batch(count, again)),
        2 => (0..6usize).prop_map(Op::Branch),
        2 => (0..6usize).prop_map(Op::Switch),
        2 => any::<bool>().prop_map(Op::Checkpoint),
        4 => (0..8usize, any::<bool>()).prop_map(|(n, note)| Op::Revert(n, note)),
        1 => Just(Op::Clear),
        4 => Just(Op::Undo),
        2 => (1..16usize).prop_map(Op::UndoOne),
        3 => Just(Op::Redo),
        1 => any::<bool>().prop_map(Op::Hide),
        2 => Just(Op::DeleteLive),
        2 => (0..4usize).prop_map(Op::DeleteAside),
    ]
}

fn outside() -> impl Strategy<Value = Op> {
    use Outside::*;
    prop::sample::select(vec![
        Record, Record, Unended, Junk, Torn, Blank, Late, Cut, Replace, Before, Change,
    ])
    .prop_map(Op::Outside)
}

/// An archive with its session, and what was ever said in it.
struct Side {
    archive: Archive,
    session: Session,
}

impl Side {
    /// Carries out an operation; `n` makes its text unlike any other. Returns what a caller sees of it.
    fn run(&mut self, op: &Op, n: usize, said: &mut Vec<String>) -> Result<String, OpsError> {
        let (archive, session, here) = (&mut self.archive, &self.session, workspace());
        let mut text = |what: &str| {
            let text = format!("{what} {n} {}end", "word ".repeat(n % 3 * 40));
            said.push(text.clone());
            text
        };
        let appended = |archive: &mut Archive, drafts: &[Draft]| {
            let appended = verbs::append(&archive.at(session).unwrap(), &here, drafts)?;
            Ok(format!("{} {:?}", appended.entries.len(), appended.checkpoints))
        };
        match op {
            Op::User => appended(archive, &[Draft::Message(Speaker::User, text("user"))]),
            Op::Assistant => {
                appended(archive, &[Draft::Message(Speaker::Assistant, text("model"))])
            }
            Op::Note => appended(archive, &[Draft::Note(text("note"))]),
            Op::Tool => {
                let input = format!(r#"{{"text":"{}"}}"#, text("call"));
                let (id, output) = (format!("call-{n}"), text("result"));
                let call = Draft::Call { id: id.clone(), name: "read".into(), input };
                appended(archive, &[call, Draft::Result { id, output, error: None }])
            }
            Op::Batch(count, again) => {
                let mut drafts: Vec<Draft> = (0..*count)
                    .map(|i| record(&format!("{n}-{i}"), &text(&format!("batch{i}"))))
                    .collect();
                // Known only if that step was a batch and is not forgotten; an unknown one is simply new.
                if n > *again {
                    let earlier = n - again - 1;
                    let words = format!("batch0 {earlier} {}end", "word ".repeat(earlier % 3 * 40));
                    drafts.push(record(&format!("{earlier}-0"), &words));
                }
                appended(archive, &drafts)
            }
            Op::Branch(i) => {
                verbs::branch(&archive.at(session).unwrap(), &format!("branch-{i}"), None)
                    .map(|branched| branched.branch)
            }
            Op::Switch(i) => {
                let branches = verbs::branches(&archive.at(session).unwrap())?;
                let name = branches[i % branches.len()].branch.clone().unwrap();
                verbs::switch(&archive.at(session).unwrap(), &name).map(|branched| branched.branch)
            }
            Op::Checkpoint(note) => {
                let note = note.then(|| format!("note of {n}"));
                let number =
                    verbs::checkpoint(&archive.at(session).unwrap(), note.as_deref())?.checkpoint;
                Ok(number.to_string())
            }
            Op::Revert(i, note) => {
                let message = note.then(|| text("later"));
                verbs::revert(
                    &archive.at(session).unwrap(),
                    &here,
                    &i.to_string(),
                    message.as_deref(),
                )
                .map(|reverted| format!("{} {:?}", reverted.branch, reverted.left))
                .inspect_err(|_| {
                    if *note {
                        said.pop();
                    }
                })
            }
            Op::Clear => {
                verbs::clear(&archive.at(session).unwrap()).map(|r| format!("{:?}", r.left))
            }
            Op::Undo => verbs::undo(&archive.at(session).unwrap(), None)
                .map(|undone| undone.command.to_owned()),
            Op::UndoOne(i) => verbs::undo(&archive.at(session).unwrap(), Some(number(*i as u64)))
                .map(|undone| format!("{} {:?}", undone.command, undone.left)),
            Op::Redo => {
                verbs::redo(&archive.at(session).unwrap()).map(|undone| undone.command.to_owned())
            }
            Op::Hide(hidden) => {
                verbs::hide(&archive.at(session).unwrap(), *hidden).map(|_| String::new())
            }
            Op::DeleteLive | Op::DeleteAside(_) | Op::Outside(_) => Ok(String::new()),
        }
    }

    /// Returns everything that does not depend on files, clock or chance.
    fn seen(&self) -> Vec<String> {
        let (archive, session) = (&self.archive, &self.session);
        let mut all = vec![format!("HEAD {:?}", said(archive, session, None))];
        for verbs::ListedBranch { branch, current, .. } in
            verbs::branches(&archive.at(session).unwrap()).unwrap()
        {
            let branch = branch.unwrap();
            let target = verbs::find_place(&archive.at(session).unwrap(), &branch).unwrap();
            all.push(format!("{branch} {current} {:?}", said(archive, session, Some(&target))));
        }
        for shown in verbs::checkpoints(&archive.at(session).unwrap()).unwrap() {
            let found = shown.checkpoint;
            all.push(format!("@{} {:?} {:?} {:?}", found.n, found.place, found.note, shown.words));
        }
        for view in verbs::operations(&archive.at(session).unwrap(), usize::MAX).unwrap().shown {
            let operation = view.operation;
            all.push(format!(
                "{} {} {:?} {}",
                operation.n,
                operation.command.as_str(),
                operation.undoes(),
                view.undone
            ));
        }
        let card = verbs::status(&archive.at(session).unwrap()).unwrap().card;
        all.push(format!("{:?} {} {}", card.title, card.turns, card.hidden));
        all
    }

    /// Returns the files that were set aside and are still there.
    fn asides(&self) -> Vec<PathBuf> {
        let rotated =
            verbs::rotations(&self.archive.at(&self.session).unwrap()).unwrap().into_iter();
        rotated.map(|rotated| rotated.path).filter(|path| path.exists()).collect()
    }

    /// Writes to the live file as another program does.
    fn outside(&self, how: Outside, n: usize, said: &mut Vec<String>) {
        let path = live(&self.archive, &self.session);
        let Ok(held) = fs::read(&path) else { return };
        let mut text = || {
            said.push(format!("outside {n} "));
            said.last().unwrap().clone()
        };
        let append = |path: &PathBuf, bytes: &[u8]| {
            fs::File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
        };
        let line = |text: &str| {
            let Draft::Record(line) = record(&format!("outside-{n}"), text) else { unreachable!() };
            line
        };
        match how {
            Outside::Record => append(&path, &[&line(&text())[..], b"\n"].concat()),
            Outside::Unended => append(&path, &line(&text())),
            Outside::Junk => append(&path, format!("junk {}\r\n", text()).as_bytes()),
            Outside::Torn => append(&path, format!("{{\"torn\":\"{}", text()).as_bytes()),
            Outside::Blank => append(&path, b" \n\n"),
            Outside::Late => {
                if let Some(aside) = self.asides().last() {
                    append(aside, &[&line(&text())[..], b"\n"].concat());
                }
            }
            Outside::Cut => fs::write(&path, &held[..held.len() / 2]).unwrap(),
            Outside::Replace => {
                let other = path.with_extension("other");
                fs::write(&other, [&line(&text())[..], b"\n"].concat()).unwrap();
                fs::rename(other, &path).unwrap();
            }
            Outside::Before => {
                fs::write(&path, [&line(&text())[..], b"\n", &held[..]].concat()).unwrap();
            }
            Outside::Change => {
                let mut bytes = held;
                let middle = bytes.len() / 2;
                if let Some(byte) = bytes.get_mut(middle) {
                    *byte = if *byte == b'?' { b'!' } else { b'?' };
                }
                fs::write(&path, bytes).unwrap();
            }
        }
    }
}

fn record(uuid: &str, text: &str) -> Draft {
    let line = format!(
        r#"{{"type":"user","uuid":"{uuid}","message":{{"role":"user","content":"{text}"}}}}"#
    );
    Draft::Record(line.into_bytes())
}

/// Runs operations on both sides and checks what must hold.
fn check(ops: &[Op]) {
    let folder = TempDir::new().unwrap();
    let sides = [fixture::open(folder.path(), 7), Archive::in_memory(Seeded::boxed(7))];
    let [mut file, mut memory] = sides.map(|mut archive| {
        let session = fixture::session(&mut archive);
        Side { archive, session }
    });
    let (mut texts, mut forgotten) = (Vec::new(), Vec::new());
    // After a change from outside the one in memory knows less.
    let mut alike = true;
    let mut is_inode_free = false;
    for (n, op) in ops.iter().enumerate() {
        match op {
            Op::DeleteLive => {
                // Written again, it may get the inode that a rotation knows its old file by, and be imported once more.
                alike &= !is_inode_free;
                let _ = fs::remove_file(live(&file.archive, &file.session));
                continue;
            }
            Op::DeleteAside(i) => {
                let asides = file.asides();
                if let Some(aside) = asides.get(i % asides.len().max(1)) {
                    fs::remove_file(aside).unwrap();
                    is_inode_free = true;
                }
                continue;
            }
            Op::Outside(how) => {
                file.outside(*how, n, &mut texts);
                // Two changes from outside with nothing in between are one: the first may be gone for good.
                fixture::say(&mut file.archive, &file.session, &format!("after {n}"));
                assert_sound(&mut file.archive, &file.session);
                alike = false;
                continue;
            }
            _ => {}
        }
        let before = texts.len();
        let one = file.run(op, n, &mut texts);
        if let Err(error) = &one {
            texts.truncate(before);
            assert!(
                !matches!(
                    error,
                    OpsError::Store(_)
                        | OpsError::Sync(SyncError::Io { .. } | SyncError::Behind { .. })
                ),
                "{op:?}: {error:?}"
            );
        }
        if alike {
            let other = memory.run(op, n, &mut forgotten);
            let told = |result: Result<String, OpsError>| result.map_err(|error| error.to_string());
            assert_eq!(told(one), told(other), "step {n}, {op:?}");
            assert_eq!(file.seen(), memory.seen(), "after step {n}, {op:?}");
        }
    }
    // The next command mends whatever was done to the files.
    fixture::say(&mut file.archive, &file.session, "The end.");
    assert_sound(&mut file.archive, &file.session);
    drop(file.archive);
    let mut archive = fixture::open(folder.path(), 8);
    assert_sound(&mut archive, &file.session);
    let mut kept = lines(&archive, &file.session).concat();
    for generation in 1..=archive.store().state(file.session.key).unwrap().generations.len() as u64
    {
        // A torn end is in no entry, but in the file that held it.
        kept.extend(exported(&archive, &file.session, Some(generation)));
    }
    let kept = String::from_utf8_lossy(&kept);
    for text in texts {
        assert!(kept.contains(&text), "{text:?} is lost");
    }
}

#[test]
fn an_undo_that_would_hide_the_current_branch_is_refused() {
    let mut archive = Archive::in_memory(Seeded::boxed(1));
    let session = fixture::session(&mut archive);
    fixture::say(&mut archive, &session, "one");
    let made = verbs::branch(&archive.at(&session).unwrap(), "side", None).unwrap().done.operation;
    verbs::switch(&archive.at(&session).unwrap(), "side").unwrap();
    let refused = verbs::undo(&archive.at(&session).unwrap(), made);
    assert!(matches!(refused, Err(OpsError::NotUndoable { .. })), "{refused:?}");
    verbs::switch(&archive.at(&session).unwrap(), "main").unwrap();
    verbs::undo(&archive.at(&session).unwrap(), made).unwrap();
    assert_eq!(verbs::branches(&archive.at(&session).unwrap()).unwrap().len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::needs::rounds(6, 24), ..ProptestConfig::default() })]

    #[test]
    fn a_store_in_a_file_and_one_in_memory_give_the_same_answers(
        ops in prop::collection::vec(op(), 1..40),
    ) {
        check(&ops);
    }

    #[test]
    fn nothing_is_lost_whatever_other_programs_do_to_the_live_file(
        ops in prop::collection::vec(prop_oneof![3 => op(), 2 => outside()], 1..30),
    ) {
        check(&ops);
    }
}
