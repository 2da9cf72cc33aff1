//! What is broken on purpose, and why: promise 3 says that nothing acknowledged is lost, and a promise that was never tried
//! is a hope.
//!
//! | fault | how |
//! |---|---|
//! | a write or a sync fails, the disk is full | [`crate::vfs`] fails the n-th call, for every n |
//! | kill -9 | a child of this binary says what it has done, until it is killed at random |
//! | a change is cut short between commit and live file | the folder is put into each state by hand |
//! | a bit flips | one bit of `store.db`, in a copy, at seeded offsets |
//! | the disk is full, really; the store can be read only | a small or read-only mount in a namespace of our own |
//! | two writers | threads with archives of their own |
//!
//! Whatever happens: what was acknowledged is there, what was not is there wholly or not at all, and all is verified.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::FileExt,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;
use undertext::{
    context::{cut::Limit, plan::Keep},
    model::{CheckpointNumber, EntryNumber, OperationNumber, Timestamp},
    store::{Access, StoreError},
    verbs::{self, Archive, Bound, Compacting, Later, Notice, OpsError, Session, SyncError},
    wire::{Draft, Speaker},
};

use crate::{
    fixture::{
        self, Dice, Seeded, assert_sound, exported, lines, number, only_session, say, workspace,
    },
    needs,
    vfs::{Failure, Faults},
};

/// Asserts that each text is in some entry.
#[track_caller]
fn assert_kept(archive: &Archive, session: &Session, texts: &[String]) {
    let all = lines(archive, session).concat();
    let all = String::from_utf8_lossy(&all);
    for text in texts {
        assert!(all.contains(text.as_str()), "{text:?} was acknowledged and is lost");
    }
}

/// Does one of the things that a session consists of; `n` makes its text unlike any other.
fn step(archive: &mut Archive, session: &Session, n: u64) -> Result<String, OpsError> {
    let here = workspace();
    let text = format!("message {n}.{}", " word".repeat(usize::try_from(n % 7).unwrap() * 40));
    match n % 10 {
        4 => verbs::revert(&archive.at(session).unwrap(), &here, "1", Some(&text)).map(|_| text),
        5 => verbs::undo(&archive.at(session).unwrap(), None).map(|_| String::new()),
        6 => {
            let (name, input) = ("Bash".to_owned(), "{}".to_owned());
            let output = format!("{text}\n{}", "a line of what a tool said\n".repeat(200));
            let drafts = [
                Draft::Call { id: format!("c{n}"), name, input },
                Draft::Result { id: format!("c{n}"), output, error: None },
            ];
            verbs::append_cut(
                &archive.at(session).unwrap(),
                &here,
                &drafts,
                Some(Limit::of_chars(3_000)),
            )
            .map(|_| text)
        }
        7 => {
            let bound = Bound::of(Limit::of_chars(0));
            verbs::truncate(&archive.at(session).unwrap(), &bound).map(|_| String::new())
        }
        8 => {
            let (asked, keep) = (crate::compact::asked(32_000), Keep::Last(2));
            let wanted = Compacting { keep, ..Compacting::of(&asked, &|| Timestamp(0)) };
            verbs::compact(&archive.at(session).unwrap(), &here, &wanted, &mut |_| ())
                .map(|_| String::new())
        }
        9 => {
            let change = Later::Revert("1".to_owned(), Some(text));
            verbs::later(&archive.at(session).unwrap(), &change).map(|_| String::new())
        }
        _ => verbs::append(
            &archive.at(session).unwrap(),
            &here,
            &[Draft::Message(Speaker::User, text.clone())],
        )
        .map(|_| text),
    }
}

/// Makes an archive with a session of a few messages.
fn begun(root: &Path) -> (Archive, Session) {
    let mut archive = fixture::open(root, 1);
    let session = fixture::session(&mut archive);
    for n in 0..3 {
        say(&mut archive, &session, &format!("beginning {n}"));
    }
    (archive, session)
}

/// Lets the n-th write or sync fail, for every n, until a whole run needs fewer.
#[track_caller]
fn fail_each(failure: Failure, forever: bool) {
    let growth = needs::rounds(2, 12);
    let mut n = 1;
    loop {
        let folder = TempDir::new().unwrap();
        let (archive, session) = begun(folder.path());
        drop(archive);
        let faults = Faults::arm(folder.path(), failure, n, forever);
        let (mut acknowledged, mut failed) = (Vec::new(), None);
        match Archive::open(folder.path(), Access::Brief, Seeded::boxed(2)) {
            Err(error) => failed = Some(error.into()),
            Ok(mut archive) => {
                for i in 0..10 {
                    match step(&mut archive, &session, i) {
                        Ok(text) => acknowledged.push(text),
                        Err(error) => failed = failed.or(Some(error)),
                    }
                }
                // What is there can still be read by the one to whom it happened.
                assert_kept(&archive, &session, &acknowledged);
            }
        }
        let fired = faults.fired();
        if let Some(OpsError::Store(error)) = &failed {
            let full = matches!(error, StoreError::Full);
            assert_eq!(full, failure == Failure::Full, "{failure:?} {n}: {error:?}");
        }
        drop(faults);
        let mut archive = fixture::open(folder.path(), 3);
        assert_kept(&archive, &session, &acknowledged);
        assert_eq!(fixture::damage(&archive), [""; 0], "{failure:?} {n}");
        say(&mut archive, &session, "There is room again.");
        assert_sound(&mut archive, &session);
        if !fired {
            assert!(failed.is_none(), "{failed:?}");
            break;
        }
        // The first ones one by one, then ever fewer.
        n += 1 + n / growth;
    }
    assert!(n > 8, "no more than {n} calls were tried");
}

#[test]
fn no_write_that_fails_takes_anything_acknowledged_with_it() {
    fail_each(Failure::Write, false);
}

#[test]
fn no_sync_that_fails_takes_anything_acknowledged_with_it() {
    fail_each(Failure::Sync, false);
}

#[test]
fn a_disk_that_is_full_from_some_write_on_is_said_to_be_and_takes_nothing_with_it() {
    fail_each(Failure::Full, true);
}

/// Changes a session until the process is killed.
fn go_on(root: &Path) {
    let mut archive = Archive::open(root, Access::Write, Box::new(verbs::Machine)).unwrap();
    archive.set_writable(fixture::writable(root));
    let session = only_session(&archive);
    let from = archive.store().state(session.key).unwrap().operations() * 1000;
    for n in 0.. {
        let text = step(&mut archive, &session, from + n).unwrap();
        needs::tell_parent(&format!("did {text}"));
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_a_writer_is_killed_at_any_moment() {
    if let Some(root) = needs::child() {
        return go_on(&root);
    }
    let folder = TempDir::new().unwrap();
    let (archive, session) = begun(folder.path());
    drop(archive);
    let test = "nothing_acknowledged_is_lost_when_a_writer_is_killed_at_any_moment";
    kill_often(test, folder.path(), &session, |archive| {
        say(archive, &session, "The next command.");
        assert_sound(archive, &session);
        let rotations = verbs::rotations(&archive.at(&session).unwrap()).unwrap();
        assert!(rotations.iter().all(|rotated| rotated.state == verbs::RotatedState::Whole));
        assert!(!fixture::successor(&fixture::live(archive, &session)).exists());
    });
}

#[test]
fn an_agents_file_is_what_the_store_says_when_its_writer_is_killed_at_any_moment() {
    if let Some(root) = needs::child() {
        return go_on(&root);
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::copy(example, &file).unwrap();
    let store = folder.path().join("store");
    let mut archive = fixture::open(&store, 1);
    let (session, _) = verbs::take_up(&mut archive, &file).unwrap();
    drop(archive);
    let test = "an_agents_file_is_what_the_store_says_when_its_writer_is_killed_at_any_moment";
    kill_often(test, &store, &session, |archive| {
        say(archive, &session, "The next command.");
        assert_eq!(fixture::damage(archive), [""; 0]);
        assert!(exported(archive, &session, None) == fs::read(&file).unwrap());
        let (peeked, alone) = verbs::peek(&file, Seeded::boxed(6)).unwrap();
        let there = fixture::said(&peeked, &alone, None);
        assert_eq!(fixture::said(archive, &session, None), there);
        assert!(!fixture::successor(&file).exists());
    });
}

/// Lets a child of a test work on a session and kills it, often; every fourth time it looks at what is there.
#[track_caller]
fn kill_often(test: &str, root: &Path, session: &Session, mut look: impl FnMut(&mut Archive)) {
    let mut dice = Dice(0x5eed);
    let mut acknowledged = Vec::new();
    let rounds = needs::rounds(8, 40);
    for round in 0..rounds {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([&format!("crash::{test}"), "--exact", "--nocapture"])
            .env(needs::CHILD, root)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut told = String::new();
        // It does a few things more each time, and is killed at some moment of the next one, whose length nobody knows.
        let wanted = 1 + dice.below(9);
        while told.lines().filter(|line| line.starts_with("did ")).count() as u64 <= wanted {
            assert!(output.read_line(&mut told).unwrap() > 0, "the child ended by itself");
        }
        std::thread::sleep(Duration::from_micros(dice.below(9_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        output.read_to_string(&mut told).unwrap();
        // The last line may be cut short: only what ended was acknowledged.
        let whole = told.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let done = whole.lines().filter_map(|line| line.strip_prefix("did "));
        acknowledged.extend(done.map(str::to_owned));
        if round % 4 == 3 {
            let mut archive = fixture::open(root, 5);
            assert_kept(&archive, session, &acknowledged);
            look(&mut archive);
        }
    }
    assert!(acknowledged.len() >= 2 * rounds, "{}", acknowledged.len());
}

#[test]
fn an_append_that_did_not_reach_the_live_file_is_finished_by_the_next_command() {
    // Cut within each byte of the newest operation's record, from nothing of it to all but its line end.
    let folder = TempDir::new().unwrap();
    let (mut archive, session) = begun(folder.path());
    let live = fixture::live(&archive, &session);
    let before = fs::metadata(&live).unwrap().len();
    say(&mut archive, &session, "the newest");
    assert_is_finished(folder.path(), &session, &live, before);
}

#[test]
fn an_append_of_cut_results_that_did_not_reach_the_file_is_finished_by_the_next_command() {
    // What is cut is put aside between the records, so that their numbers are not those that follow each other.
    let drafts: Vec<Draft> = (0..3)
        .flat_map(|n| {
            let (id, name, output) = (format!("cut{n}"), "Read".to_owned(), "word ".repeat(2_000));
            let call = Draft::Call { id: id.clone(), name, input: "{}".to_owned() };
            [call, Draft::Result { id, output, error: None }]
        })
        .collect();
    let cut = |archive: &mut Archive, session: &Session| {
        verbs::append_cut(
            &archive.at(session).unwrap(),
            &workspace(),
            &drafts,
            Some(Limit::of_chars(3_000)),
        )
        .unwrap();
    };
    let folder = TempDir::new().unwrap();
    let (mut archive, session) = begun(folder.path());
    let live = fixture::live(&archive, &session);
    let before = fs::metadata(&live).unwrap().len();
    cut(&mut archive, &session);
    assert_is_finished(folder.path(), &session, &live, before);
    for agent in ["claude", "codex", "pi", "kimi"] {
        let folder = TempDir::new().unwrap();
        let (mut archive, session) = crate::compact::taken_up(folder.path(), agent, 2);
        let live = fs::read_dir(folder.path().join("s")).unwrap().next().unwrap().unwrap().path();
        let before = fs::metadata(&live).unwrap().len();
        cut(&mut archive, &session);
        assert_is_finished(&folder.path().join("store"), &session, &live, before);
    }
}

/// Asserts that the newest operation is carried out by the next command wherever in its bytes the live file was cut.
fn assert_is_finished(root: &Path, session: &Session, live: &Path, before: u64) {
    let whole = fs::read(live).unwrap();
    let step = usize::try_from((whole.len() as u64 - before) / 16).unwrap();
    for cut in (before..whole.len() as u64).step_by(step).chain([whole.len() as u64 - 1]) {
        let copy = TempDir::new().unwrap();
        copy_store(root, copy.path());
        let archive = fixture::open(copy.path(), 4);
        let inner = live.strip_prefix(root);
        let live = inner.map_or(live.to_owned(), |inner| copy.path().join(inner));
        fs::write(&live, &whole[..usize::try_from(cut).unwrap()]).unwrap();
        let notices =
            verbs::checkpoint(&archive.at(session).unwrap(), Some("next")).unwrap().done.notices;
        assert!(matches!(notices.as_slice(), [Notice::Finished { .. }]), "at {cut}: {notices:?}");
        assert!(fs::read(&live).unwrap() == whole, "at {cut}");
        assert!(exported(&archive, session, None) == whole, "at {cut}");
        assert_eq!(fixture::damage(&archive), [""; 0], "at {cut}");
    }
}

/// Copies a store that nobody writes to, its WAL included.
fn copy_store(from: &Path, to: &Path) {
    fs::create_dir_all(to.join("transcripts")).unwrap();
    for part in ["store.db", "store.db-wal"] {
        if from.join(part).exists() {
            fs::copy(from.join(part), to.join(part)).unwrap();
        }
    }
    for entry in fs::read_dir(from.join("transcripts")).into_iter().flatten().map(Result::unwrap) {
        fs::copy(entry.path(), to.join("transcripts").join(entry.file_name())).unwrap();
    }
}

/// How far a rotation came before it was cut short.
#[derive(Clone, Copy, Debug)]
enum Came {
    /// The operation is committed, and nothing else.
    Committed,
    /// The same, and the temporary file is gone.
    WithoutFresh,
    /// The old file has its new name too.
    Linked,
    /// The old file has its new name only, where no file can have two.
    Moved,
    /// The exchange is made, and a temporary file of another change is left.
    Leftover,
}

#[test]
fn a_rotation_that_was_cut_short_is_finished_by_the_next_command() {
    for came in [Came::Committed, Came::WithoutFresh, Came::Linked, Came::Moved, Came::Leftover] {
        let folder = TempDir::new().unwrap();
        let (mut archive, session) = begun(folder.path());
        let live = fixture::live(&archive, &session);
        let old = fs::read(&live).unwrap();
        verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", Some("back")).unwrap();
        let new = fs::read(&live).unwrap();
        let aside = verbs::rotations(&archive.at(&session).unwrap()).unwrap().pop().unwrap().path;
        let fresh = fixture::successor(&live);
        // Back to what the folder was before, file by file: the old file keeps its inode under every name.
        let undo_install = || {
            fs::rename(&live, &fresh).unwrap();
            fs::hard_link(&aside, &live).unwrap();
        };
        match came {
            Came::Committed => {
                undo_install();
                fs::remove_file(&aside).unwrap();
            }
            Came::WithoutFresh => {
                undo_install();
                fs::remove_file(&aside).unwrap();
                fs::remove_file(&fresh).unwrap();
            }
            Came::Linked => undo_install(),
            Came::Moved => fs::rename(&live, &fresh).unwrap(),
            Came::Leftover => fs::write(&fresh, "half a fi").unwrap(),
        }
        say(&mut archive, &session, "next");
        assert_sound(&mut archive, &session);
        assert!(fs::read(&live).unwrap().starts_with(&new), "{came:?}");
        assert!(fs::read(&aside).unwrap() == old, "{came:?}");
        let states = verbs::rotations(&archive.at(&session).unwrap()).unwrap();
        assert!(
            states.iter().all(|rotated| rotated.state == verbs::RotatedState::Whole),
            "{came:?}"
        );
        verbs::revert(&archive.at(&session).unwrap(), &workspace(), "0", None).unwrap();
        assert!(!fresh.exists(), "{came:?}");
        assert_sound(&mut archive, &session);
    }
}

#[test]
fn a_successor_whose_operation_was_never_committed_is_only_a_leftover() {
    let folder = TempDir::new().unwrap();
    let (mut archive, session) = begun(folder.path());
    let live = fixture::live(&archive, &session);
    fs::write(fixture::successor(&live), "half a file").unwrap();
    let found = verbs::doctor(folder.path()).unwrap();
    assert!(
        found
            .iter()
            .any(|ailment| ailment.path.ends_with(fixture::successor(&live).file_name().unwrap()))
    );
    say(&mut archive, &session, "next");
    assert_sound(&mut archive, &session);
}

#[test]
fn what_was_appended_during_a_rotation_that_was_cut_short_joins_the_branch_that_was_left() {
    let folder = TempDir::new().unwrap();
    let (mut archive, session) = begun(folder.path());
    let live = fixture::live(&archive, &session);
    let left = verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", None)
        .unwrap()
        .left
        .unwrap();
    let aside = verbs::rotations(&archive.at(&session).unwrap()).unwrap().pop().unwrap().path;
    fs::rename(&aside, &live).unwrap();
    let late = br#"{"type":"user","uuid":"late","parentUuid":null,"message":{"role":"user","content":"late words"}}"#;
    fs::File::options().append(true).open(&live).unwrap().write_all(late).unwrap();
    say(&mut archive, &session, "next");
    assert_sound(&mut archive, &session);
    let target = verbs::find_place(&archive.at(&session).unwrap(), &left).unwrap();
    assert_eq!(fixture::said(&archive, &session, Some(&target)).last().unwrap(), "late words");
    assert_eq!(fixture::said(&archive, &session, None).last().unwrap(), "next");
}

#[test]
fn a_new_file_that_got_the_inode_of_a_rotated_one_is_not_taken_for_it() {
    let folder = TempDir::new().unwrap();
    let (mut archive, session) = begun(folder.path());
    let live = fixture::live(&archive, &session);
    verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", None).unwrap();
    let aside = verbs::rotations(&archive.at(&session).unwrap()).unwrap().pop().unwrap().path;
    fs::write(&aside, "what another program wrote in its place\n".repeat(100)).unwrap();
    fs::rename(&aside, &live).unwrap();
    let drafts = [Draft::Message(Speaker::User, "next".into())];
    let appended = verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts).unwrap();
    assert!(
        matches!(appended.done.notices.as_slice(), [Notice::SetAside { .. }]),
        "{:?}",
        appended.done.notices
    );
    assert_kept(&archive, &session, &["what another program wrote in its place".into()]);
    assert_sound(&mut archive, &session);
}

/// Returns everything that can be asked of an archive, or how it failed.
fn everything(root: &Path) -> Result<Vec<String>, String> {
    fn failed(error: impl std::fmt::Debug) -> String {
        format!("{error:?}")
    }
    let archive = Archive::open(root, Access::Read, Seeded::boxed(1)).map_err(failed)?;
    let filter = undertext::store::SessionFilter { hidden: true, ..Default::default() };
    let mut all = Vec::new();
    for listed in archive.sessions(&filter).map_err(failed)? {
        all.push(format!("{listed:?}"));
        let Some(session) = archive.session(&listed.name).map_err(failed)? else {
            return Err("a session that is listed is not there".into());
        };
        let (store, key) = (archive.store(), session.key);
        let gone = |error: StoreError| format!("{error:?}");
        let state = store.state(key).map_err(gone)?;
        all.push(format!("{state:?}"));
        all.push(format!("{:?}", store.operations(key, OperationNumber::ALL).map_err(gone)?));
        all.push(format!("{:?}", store.growths(key, OperationNumber::ALL).map_err(gone)?));
        all.push(format!("{:?}", store.checkpoints(key, CheckpointNumber::ALL).map_err(gone)?));
        all.push(format!("{:?}", store.origins(key, EntryNumber::ALL).map_err(gone)?));
        all.push(format!("{:?}", store.entries(key, EntryNumber::ALL).map_err(gone)?));
        all.push(format!("{:?}", store.records(key, EntryNumber::ALL).map_err(gone)?));
        all.push(format!("{:?}", store.twins(key).map_err(gone)?));
        for generation in 1..=state.generations.len() as u64 {
            let each = &mut |part: &[u8]| {
                all.push(format!("{part:?}"));
                Ok(())
            };
            verbs::export(&archive.at(&session).unwrap(), Some(number(generation)), each)
                .map_err(failed)?;
        }
        for entry in store.entries(key, EntryNumber::ALL).map_err(gone)? {
            let found =
                store.find(key, &undertext::model::IdPrefix::whole(&entry.id)).map_err(gone)?;
            all.push(format!("{found:?}"));
            let target = verbs::find_place(&archive.at(&session).unwrap(), &entry.id.to_string());
            all.push(format!("{:?}", target.map_err(failed)?));
        }
        for record in store.records(key, EntryNumber::ALL).map_err(gone)? {
            let Some(tag) = record.name else { continue };
            all.push(format!("{:?}", store.named(key, tag, tag).map_err(gone)?));
        }
    }
    Ok(all)
}

#[test]
fn a_flipped_bit_is_found_or_changes_nothing_that_can_be_read() {
    let folder = TempDir::new().unwrap();
    crate::format::make(folder.path());
    let path = folder.path().join("store.db");
    let good = fs::read(&path).unwrap();
    let whole = everything(folder.path()).unwrap();
    let mut dice = Dice(0xf11b);
    let (mut found, mut without_effect, mut unseen) = (0, 0, Vec::new());
    let rounds = needs::rounds(60, 300);
    for _ in 0..rounds {
        let at = dice.below(good.len() as u64);
        let bit = dice.below(8);
        let byte = good[usize::try_from(at).unwrap()] ^ (1 << bit);
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.write_at(&[byte], at).unwrap();
        let verified = Archive::open(folder.path(), Access::Read, Seeded::boxed(1))
            .map_err(OpsError::from)
            .and_then(|archive| {
                let mut damage = 0;
                verbs::verify(&archive, None, &mut |told| {
                    if let Some(finding) = told.found() {
                        damage += u32::from(finding.kind.is_damage());
                    }
                })?;
                Ok(damage)
            });
        if verified.is_err() || verified.is_ok_and(|damage| damage > 0) {
            found += 1;
        } else if everything(folder.path()).as_ref() == Ok(&whole) {
            without_effect += 1;
        } else {
            unseen.push((at, bit));
        }
        file.write_at(&good[usize::try_from(at).unwrap()..=usize::try_from(at).unwrap()], at)
            .unwrap();
        for companion in ["store.db-wal", "store.db-shm"] {
            let _ = fs::remove_file(folder.path().join(companion));
        }
    }
    println!("{found} found, {without_effect} without effect");
    assert_eq!(unseen, [], "not found: (offset, bit)");
    assert!(found > rounds / 4, "{found} found, {without_effect} without effect");
    assert_eq!(everything(folder.path()).unwrap(), whole);
}

/// Appends until the disk is full, and makes room again.
fn fill_the_disk(root: &Path) {
    let ballast = root.join("ballast");
    fs::write(&ballast, vec![1; 300_000]).unwrap();
    let store = root.join("store");
    let (archive, session) = begun(&store);
    let mut acknowledged = Vec::new();
    let failed = loop {
        let n = acknowledged.len();
        let noise: Vec<String> =
            (0..400).map(|i| format!("{:x}", (n + 7) * (i + 13) * 2_654_435_761)).collect();
        let noise = noise.concat();
        let text = format!("message {n} {noise}");
        let drafts = [Draft::Message(Speaker::User, text.clone())];
        match verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts) {
            // What the live file had no room for is in the store, and that is where it is looked for below.
            Ok(_) | Err(OpsError::Sync(SyncError::Behind { .. })) => acknowledged.push(text),
            Err(error) => break error,
        }
    };
    assert!(matches!(&failed, OpsError::Store(StoreError::Full)) || is_full(&failed), "{failed:?}");
    assert_kept(&archive, &session, &acknowledged);
    drop(archive);
    let archive = Archive::open(&store, Access::Read, Seeded::boxed(2)).unwrap();
    assert_kept(&archive, &session, &acknowledged);
    assert_eq!(fixture::damage(&archive), [""; 0]);
    drop(archive);
    fs::remove_file(ballast).unwrap();
    let mut archive = fixture::open(&store, 3);
    say(&mut archive, &session, "There is room again.");
    assert_kept(&archive, &session, &acknowledged);
    assert_sound(&mut archive, &session);
    needs::tell_parent("did it");
}

fn is_full(error: &OpsError) -> bool {
    matches!(error, OpsError::Sync(SyncError::Io { source, .. }) if source.kind() == std::io::ErrorKind::StorageFull)
}

#[test]
fn a_full_disk_is_said_to_be_full_and_everything_stays_readable() {
    if let Some(root) = needs::child() {
        return fill_the_disk(&root);
    }
    let Some(namespaces) = needs::namespaces() else { return };
    let script = "mount -t tmpfs -o size=2m t /mnt
        UNDERTEXT_TEST_CHILD=/mnt $CHILD_BINARY --exact --nocapture \
            crash::a_full_disk_is_said_to_be_full_and_everything_stays_readable";
    assert!(namespaces.run(script, Path::new("/")).contains("did it"));
}

/// Reads a store and tries to write to it.
fn only_read(root: &Path) {
    let archive = Archive::open(root, Access::Read, Seeded::boxed(2)).unwrap();
    let session = only_session(&archive);
    assert_eq!(fixture::said(&archive, &session, None).len(), 3);
    assert_eq!(fixture::damage(&archive), [""; 0]);
    assert_eq!(
        exported(&archive, &session, None),
        fs::read(fixture::live(&archive, &session)).unwrap()
    );
    for access in [Access::Write, Access::Brief] {
        let refused = Archive::open(root, access, Seeded::boxed(2)).err();
        assert!(
            matches!(refused, Some(SyncError::Store(StoreError::ReadOnly { .. }))),
            "{refused:?}"
        );
    }
    needs::tell_parent("did it");
}

#[test]
fn a_store_that_can_only_be_read_is_read_and_nothing_is_made() {
    if let Some(root) = needs::child() {
        return only_read(&root);
    }
    let Some(namespaces) = needs::namespaces() else { return };
    let folder = TempDir::new().unwrap();
    let script = "mount --bind $STORE /mnt; mount -o remount,ro,bind /mnt
        UNDERTEXT_TEST_CHILD=/mnt $CHILD_BINARY --exact --nocapture \
            crash::a_store_that_can_only_be_read_is_read_and_nothing_is_made";
    // With what is newest in the WAL, as a program leaves it that was killed; and without, as one that came to its end.
    for emptied in [false, true] {
        let root = folder.path().join(if emptied { "emptied" } else { "killed" });
        let (archive, _) = begun(&root);
        drop(archive);
        if emptied {
            let db = rusqlite::Connection::open(root.join("store.db")).unwrap();
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            drop(db);
            let _ = fs::remove_file(root.join("store.db-wal"));
            let _ = fs::remove_file(root.join("store.db-shm"));
        }
        let names = |root: &Path| -> BTreeSet<_> {
            fs::read_dir(root).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        let held = names(&root);
        assert!(namespaces.run(script, &root).contains("did it"));
        assert_eq!(names(&root), held);
    }
}

#[test]
fn two_writers_of_one_session_lose_nothing_and_keep_their_order() {
    let folder = TempDir::new().unwrap();
    let (archive, session) = begun(folder.path());
    let root = folder.path();
    let reader = Archive::open(root, Access::Read, Seeded::boxed(9)).unwrap();
    let write = |who: u64| {
        let mut archive = fixture::open(root, who);
        for n in 0..200 {
            say(&mut archive, &session, &format!("writer {who} message {n}"));
        }
    };
    std::thread::scope(|scope| {
        let writers = [11, 12].map(|who| scope.spawn(move || write(who)));
        // What one looks at does not change under one's eyes.
        while writers.iter().any(|writer| !writer.is_finished()) {
            assert_eq!(fixture::said(&reader, &session, None).len(), 3);
        }
    });
    drop(archive);
    let mut archive = fixture::open(folder.path(), 13);
    let said = fixture::said(&archive, &session, None);
    assert_eq!(said.len(), 403);
    for who in [11, 12] {
        let prefix = format!("writer {who} ");
        let own: Vec<&String> = said.iter().filter(|text| text.starts_with(&prefix)).collect();
        let wanted: Vec<String> = (0..200).map(|n| format!("{prefix}message {n}")).collect();
        assert_eq!(own, wanted.iter().collect::<Vec<_>>());
    }
    assert_sound(&mut archive, &session);
}
