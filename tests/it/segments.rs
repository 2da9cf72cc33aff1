//! Codex goes on in files: a change that takes its thread elsewhere begins another file and tells Codex's own index, as
//! Codex does itself. Nothing that lies there is changed, and what each file must say was seen with Codex 0.169.0: what its
//! resume sends, and what its screens list.

use std::{fs, path::PathBuf};

use chrono::FixedOffset;
use serde_json::{Value, json};
use undertext::model::Timestamp;
use undertext::report::LiveState;
use undertext::store::Access;
use undertext::verbs::{self, Ambient, Archive, Manner, OpsError, Session, SyncError, Workspace};

use crate::{
    codex::{import, live, peeked, sent},
    fixture::{Dice, Seeded, damage, say},
    rollout::{Home, Rollout, SECOND, THREAD, index, indexed, later},
    vfs::Faults,
};

const OF_TWO: &str = "rules | one | to one | two | to two";

/// A thread in Codex's folders, which Codex has listed up to some byte, or has no index at all.
struct Followed {
    home: Home,
    file: PathBuf,
    archive: Archive,
    session: Session,
}

impl Followed {
    fn new(rollout: &Rollout, listed: Option<u64>) -> Self {
        Self::at(rollout, listed, Seeded::boxed(5))
    }

    fn at(rollout: &Rollout, listed: Option<u64>, ambient: Box<dyn Ambient>) -> Self {
        let home = Home::new();
        let file = home.write(10, THREAD, rollout);
        if let Some(listed) = listed {
            index(&home.codex(), &file, listed);
        }
        let mut archive = crate::fixture::open_at(&home.0.path().join("store"), ambient);
        import(&mut archive, &[home.codex()]);
        let session = archive.every().unwrap().remove(0);
        Self { home, file, archive, session }
    }

    fn revert(&mut self, checkpoint: &str, note: Option<&str>) -> Result<(), OpsError> {
        let nowhere = Workspace::default();
        verbs::revert(&self.archive.at(&self.session).unwrap(), &nowhere, checkpoint, note)
            .map(|_| ())
    }

    fn undo(&mut self) {
        verbs::undo(&self.archive.at(&self.session).unwrap(), None).unwrap();
    }

    fn live(&self) -> PathBuf {
        live(&self.archive, &self.session)
    }

    fn lines(&self) -> Vec<Value> {
        let lines = fs::read_to_string(self.live()).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns from where the live file goes on: the number of the first record that is left out, and its offset.
    fn base(&self) -> Option<(u64, u64)> {
        let base = &self.lines()[0]["payload"]["history_base"];
        let number = |key: &str| base[key].as_u64();
        number("end_ordinal_exclusive").zip(number("end_byte_offset"))
    }

    /// Returns the kinds of the records behind the first one.
    fn kinds(&self) -> Vec<String> {
        let lines = self.lines().into_iter().skip(1);
        let kind = |line: Value| match line["type"].as_str().unwrap() {
            "event_msg" | "response_item" => {
                let payload = &line["payload"];
                payload["role"].as_str().or(payload["type"].as_str()).unwrap().to_owned()
            }
            kind => kind.to_owned(),
        };
        lines.map(kind).collect()
    }

    /// The session, its file, and Codex's index say one thing.
    fn agrees(&self, expected: &str) {
        assert_eq!(sent(&self.archive, &self.session), expected);
        assert_eq!(peeked(&self.live()), (expected.to_owned(), None), "what the file says alone");
        if self.home.codex().join("state_5.sqlite").exists() {
            assert_eq!(indexed(&self.home.codex(), THREAD), self.live(), "what Codex reads");
        }
        assert_eq!(damage(&self.archive), [""; 0]);
    }
}

fn thread(turns: &[&str]) -> Rollout {
    let mut rollout = Rollout::first(THREAD);
    for turn in turns {
        rollout.turn(turn);
    }
    rollout
}

#[test]
fn a_thread_goes_back_in_a_file_that_goes_on_from_the_old_one() {
    let two = thread(&["one", "two"]).end();
    let rollout = thread(&["one", "two", "three"]);
    let mut followed = Followed::new(&rollout, Some(rollout.end().1));
    let before = fs::read(&followed.file).unwrap();
    followed.revert("2", Some("it was the pump")).unwrap();
    let said = sent(&followed.archive, &followed.session);
    assert!(said.starts_with(&format!("{OF_TWO} | <note-from-later>")), "{said}");
    followed.agrees(&said);
    assert_eq!(followed.base(), Some(two));
    assert_eq!(followed.kinds(), ["task_started", "user", "item_completed", "task_complete"]);
    // Back at the old end nothing is left out of the old file, and the note is said again, which Codex has not listed.
    followed.undo();
    followed.agrees(&format!("{OF_TWO} | three | to three"));
    assert_eq!((followed.base(), followed.kinds()), (Some(rollout.end()), vec![]));
    verbs::redo(&followed.archive.at(&followed.session).unwrap()).unwrap();
    followed.agrees(&said);
    assert_eq!(followed.base(), Some(two));
    assert_eq!(followed.kinds(), ["task_started", "user", "item_completed", "task_complete"]);
    let ordinals: Vec<u64> =
        followed.lines().iter().map(|line| line["ordinal"].as_u64().unwrap()).collect();
    assert!(ordinals.iter().copied().eq(two.0..two.0 + 5), "{ordinals:?}");
    assert_eq!(fs::read(&followed.file).unwrap(), before);
    // What Codex adds is taken in, and a later change goes on from what it has listed since.
    let live = followed.live();
    let mut more =
        Rollout { bytes: fs::read_to_string(&live).unwrap(), next: two.0 + 5, has_ordinals: true };
    more.turn("four");
    fs::write(&live, &more.bytes).unwrap();
    index(&followed.home.codex(), &live, more.end().1);
    followed.revert("0", None).unwrap();
    followed.agrees("rules");
    followed.undo();
    followed.agrees(&format!("{said} | four | to four"));
    assert_eq!(followed.base(), Some(more.end()));
}

/// What was cut short before the file was there was told to be whole.
#[test]
fn a_change_that_is_still_to_begin_its_file_is_told_to_wait() {
    let rollout = thread(&["one", "two"]);
    let mut followed = Followed::new(&rollout, Some(rollout.end().1));
    followed.revert("1", None).unwrap();
    let live = followed.live();
    let root = followed.home.0.path().join("store");
    fs::remove_file(&live).unwrap();
    index(&followed.home.codex(), &followed.file, rollout.end().1);
    let store = rusqlite::Connection::open(root.join("store.db")).unwrap();
    store.execute("DELETE FROM sighting", []).unwrap();
    let read = Archive::open(&root, Access::Read, Seeded::boxed(7)).unwrap().preview().unwrap();
    let state = verbs::live_state(&read.at(&followed.session).unwrap()).unwrap();
    assert_eq!(state, LiveState::Pending);
    // The next change begins the file first, and goes on in that.
    say(&mut followed.archive, &followed.session, "three");
    assert!(fs::read_to_string(&live).unwrap().contains("three"));
}

#[test]
fn a_file_is_named_by_the_time_where_its_agent_runs() {
    let rollout = thread(&["one", "two"]);
    // 2030-01-01 22:30 UTC is the next day already, two hours further east.
    let begin = Timestamp(1_893_537_000_000);
    let ambient = Seeded::of(5, begin, FixedOffset::east_opt(2 * 3600).unwrap());
    let mut followed = Followed::at(&rollout, Some(rollout.end().1), ambient);
    followed.revert("1", None).unwrap();
    let live = followed.live();
    let name = live.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("rollout-2030-01-02T00-3"), "{name}");
    followed.agrees("rules | one | to one");
}

#[test]
fn nothing_of_a_turn_that_is_left_is_in_the_base() {
    let rollout = thread(&["one", "two"]);
    let followed = Followed::new(&rollout, Some(rollout.end().1));
    // The rules stand behind the first record here, so that they are in the base; a task that a base left open would be
    // listed as a turn.
    verbs::clear(&followed.archive.at(&followed.session).unwrap()).unwrap();
    followed.agrees("rules");
    assert_eq!((followed.base().unwrap().0, followed.kinds()), (2, vec![]));

    // As Codex writes them, they stand in the first task.
    let mut rollout = Rollout { bytes: String::new(), next: 0, has_ordinals: true };
    rollout.meta(THREAD, &json!({}));
    rollout.event(json!({ "type": "task_started", "turn_id": "t" }));
    rollout.item("developer", "rules");
    rollout.line("turn_context", json!({ "cwd": "/w" }));
    rollout.item("user", "one");
    rollout.item("assistant", "to one");
    rollout.event(json!({ "type": "task_complete", "turn_id": "t" }));
    let mut followed = Followed::new(&rollout, Some(rollout.end().1));
    followed.revert("0", None).unwrap();
    followed.agrees("rules");
    assert_eq!(
        (followed.base().unwrap().0, followed.kinds()),
        (1, vec!["developer".to_owned(), "turn_context".to_owned()])
    );
    followed.undo();
    followed.agrees("rules | one | to one");
    assert_eq!((followed.base(), followed.kinds()), (Some(rollout.end()), vec![]));
}

#[test]
fn what_codex_has_not_listed_is_said_again() {
    let one = thread(&["one"]).end();
    let rollout = thread(&["one", "two", "three"]);
    for (listed, base) in [(None, None), (Some(0), None), (Some(one.1 + 5), Some(one))] {
        let mut followed = Followed::new(&rollout, listed);
        followed.revert("2", None).unwrap();
        followed.agrees(OF_TWO);
        assert_eq!(followed.base(), base, "{listed:?}");
        let turns = followed.kinds().iter().filter(|kind| *kind == "user").count();
        assert_eq!(turns, if base.is_some() { 1 } else { 2 });
        followed.undo();
        followed.agrees(&format!("{OF_TWO} | three | to three"));
        // What is said again is no turn of its own.
        let checkpoints =
            verbs::checkpoints(&followed.archive.at(&followed.session).unwrap()).unwrap();
        assert_eq!(checkpoints.len(), 3);
    }
}

#[test]
fn a_rollback_in_the_file_is_left_out() {
    let mut rollout = thread(&["one", "two"]);
    let one = thread(&["one"]).end();
    rollout.event(json!({ "type": "thread_rolled_back", "num_turns": 1 }));
    rollout.turn("three");
    rollout.turn("four");
    let mut followed = Followed::new(&rollout, Some(rollout.end().1));
    followed.revert("3", None).unwrap();
    followed.agrees("rules | one | to one | three | to three");
    assert_eq!(followed.base(), Some(one));
    assert!(!followed.kinds().contains(&"thread_rolled_back".to_owned()));
}

/// Returns a thread of so many turns and then some in which anything may happen, rollbacks too.
fn rolled(before: u64, dice: &mut Dice) -> Rollout {
    let mut rollout = Rollout::first(THREAD);
    for n in 0..before {
        rollout.turn(&format!("early {}", before - n));
    }
    let mut left = 5;
    for n in 0..3 + dice.below(6) {
        match dice.below(9) {
            0 | 1 => {
                let turns = (1 + dice.below(2)).min(left);
                left -= turns;
                rollout.event(json!({ "type": "thread_rolled_back", "num_turns": turns }));
            }
            2 => {
                // Two turns in a task.
                rollout.event(json!({ "type": "task_started", "turn_id": "both" }));
                rollout.item("user", &format!("first of {n}"));
                rollout.item("user", &format!("second of {n}"));
            }
            3 => {
                let item = json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "all" }] });
                let all = json!({ "message": "", "replacement_history": [item] });
                rollout.event(json!({ "type": "task_started", "turn_id": "compact" }));
                rollout.line("compacted", all);
            }
            _ => rollout.turn(&format!("turn {n}")),
        }
    }
    rollout.turn("last");
    rollout
}

#[test]
fn a_rollback_is_left_out_of_a_long_thread_as_of_a_short_one() {
    let (mut based, mut again) = (0, 0);
    for seed in 1..=60 {
        let [short, long] = [6, 40].map(|before| {
            let mut dice = Dice(seed);
            let rollout = rolled(before, &mut dice);
            let (early, (end, bytes)) = (thread(&[]).end().0, rollout.end());
            let mut followed = Followed::new(&rollout, Some(bytes));
            let checkpoints = verbs::checkpoints(&followed.archive.at(&followed.session).unwrap());
            let last = checkpoints.unwrap().len() as u64 - 1;
            let mut told = Vec::new();
            for _ in 0..3 {
                let to = (last - dice.below(4)).to_string();
                let done = followed.revert(&to, None).is_ok();
                if done && dice.below(2) == 0 {
                    followed.undo();
                }
                let base = followed.base().filter(|(ordinal, _)| *ordinal > early);
                let sent = sent(&followed.archive, &followed.session);
                let sent = sent.rsplit("early 6").next().unwrap().to_owned();
                told.push((done, base.map(|(ordinal, _)| end - ordinal), followed.kinds(), sent));
            }
            told
        });
        based += long.iter().filter(|(_, base, ..)| base.is_some()).count();
        again +=
            long.iter().filter(|(_, base, kinds, _)| base.is_some() && kinds.len() > 4).count();
        assert_eq!(short, long, "{seed}");
    }
    assert!(based > 60 && again > 20, "{based} {again}");
}

#[test]
fn a_long_thread_goes_back_at_the_cost_of_a_short_one() {
    for rolled in [false, true] {
        let kept = [200, 5_000].map(|turns| {
            let mut rollout = Rollout::first(THREAD);
            for n in 0..turns {
                rollout.turn(&n.to_string());
            }
            if rolled {
                rollout.event(json!({ "type": "thread_rolled_back", "num_turns": 2 }));
            }
            for n in 0..3 {
                rollout.turn(&format!("late {n}"));
            }
            let followed = Followed::new(&rollout, Some(rollout.end().1));
            let Followed { home, archive, .. } = followed;
            drop(archive);
            let store = home.0.path().join("store");
            let db = rusqlite::Connection::open(store.join("store.db")).unwrap();
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            (store, home)
        });
        let [few, many] = [&kept[0], &kept[1]].map(|(store, _)| {
            let watch = Faults::none(store);
            let mut archive = crate::fixture::open(store, 6);
            let session = archive.every().unwrap().remove(0);
            let nowhere = Workspace::default();
            let before = live(&archive, &session);
            verbs::revert(&archive.at(&session).unwrap(), &nowhere, "HEAD~2", None).unwrap();
            assert_ne!(live(&archive, &session), before);
            verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
            verbs::redo(&archive.at(&session).unwrap()).unwrap();
            say(&mut archive, &session, "and on");
            watch.reads()
        });
        // A tree that holds more is a level or two higher, and what is said again behind a rollback is spread over it. To look
        // through all records reads 100 pages.
        assert!(many <= few + 72, "{rolled}: {few} pages, then {many}");
    }
}

#[test]
fn a_base_that_is_not_as_the_session_holds_it_is_not_gone_on_from() {
    let rollout = thread(&["one", "two", "three"]);
    let mut followed = Followed::new(&rollout, Some(rollout.end().1));
    followed.revert("2", None).unwrap();
    fs::remove_file(&followed.file).unwrap();
    followed.revert("1", None).unwrap();
    assert_eq!(
        (sent(&followed.archive, &followed.session).as_str(), followed.base()),
        ("rules | one | to one", None)
    );
    followed.agrees("rules | one | to one");
}

#[test]
fn a_file_outside_of_codexs_folders_is_appended_to() {
    let rollout = thread(&["one", "two"]);
    let home = Home::new();
    let file = home.codex().with_file_name(format!("rollout-2026-08-01T10-00-00-{THREAD}.jsonl"));
    fs::write(&file, &rollout.bytes).unwrap();
    let mut archive = crate::fixture::open(&home.0.path().join("store"), 5);
    let session = verbs::take_up(&mut archive, &file).unwrap().0;
    verbs::revert(&archive.at(&session).unwrap(), &Workspace::default(), "1", None).unwrap();
    assert_eq!(live(&archive, &session), file);
    assert!(fs::read_to_string(&file).unwrap().contains("thread_rolled_back"));
}

#[test]
fn going_back_and_forth_by_appending_says_each_time_as_much_again() {
    let mut rollout = thread(&["one"]);
    let usage = json!({ "type": "token_count", "info": null });
    rollout.event(usage.clone());
    rollout.turn("two");
    rollout.event(usage);
    let home = Home::new();
    let file = home.codex().with_file_name(format!("rollout-2026-08-01T10-00-00-{THREAD}.jsonl"));
    fs::write(&file, &rollout.bytes).unwrap();
    let mut archive = crate::fixture::open(&home.0.path().join("store"), 5);
    let session = verbs::take_up(&mut archive, &file).unwrap().0;
    let lines = || fs::read_to_string(&file).unwrap().lines().count();
    let mut more = Vec::new();
    for _ in 0..5 {
        let before = lines();
        verbs::revert(&archive.at(&session).unwrap(), &Workspace::default(), "1", None).unwrap();
        assert_eq!(peeked(&file).0, "rules | one | to one");
        verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
        assert_eq!(peeked(&file).0, OF_TWO);
        more.push(lines() - before);
    }
    assert!(more.windows(2).all(|pair| pair[0] == pair[1]), "{more:?}");
}

#[test]
fn an_index_that_cannot_be_read_leaves_the_old_way() {
    let rollout = thread(&["one", "two"]);
    let mut followed = Followed::new(&rollout, None);
    fs::write(followed.home.codex().join("state_5.sqlite"), "no database").unwrap();
    followed.revert("1", None).unwrap();
    assert_eq!(followed.live(), followed.file);
    assert_eq!(peeked(&followed.file).0, "rules | one | to one");
}

#[test]
fn a_thread_that_is_loaded_is_refused_by_codexs_own_lock() {
    let rollout = thread(&["one", "two"]);
    let mut followed = Followed::new(&rollout, Some(rollout.end().1));
    let lock = followed.home.codex().join(format!("thread-writer-locks/{THREAD}.lock"));
    let held = fs::File::create(&lock).unwrap();
    held.lock().unwrap();
    let before = fs::read_dir(followed.file.parent().unwrap()).unwrap().count();
    let refused = followed.revert("1", None);
    assert!(matches!(refused, Err(OpsError::Sync(SyncError::Loaded { .. }))), "{refused:?}");
    followed.agrees(OF_TWO);
    assert_eq!(fs::read_dir(followed.file.parent().unwrap()).unwrap().count(), before);
    followed.archive.set_manner(Manner { force: true, ..Manner::default() });
    let refused = followed.revert("1", None);
    assert!(matches!(refused, Err(OpsError::Sync(SyncError::Loaded { .. }))), "{refused:?}");
    followed.agrees(OF_TWO);
    drop(held);
    // A lock that nobody holds any more says nothing, and is taken away with the change.
    followed.archive.set_manner(Manner::default());
    followed.revert("1", None).unwrap();
    followed.agrees("rules | one | to one");
    followed.undo();
    followed.agrees(OF_TWO);
    assert!(!lock.exists());
}

#[test]
fn a_session_follows_codex_to_the_file_that_its_index_names() {
    let one = thread(&["one"]).end();
    let rollout = thread(&["one", "two"]);
    let mut followed = Followed::new(&rollout, Some(rollout.end().1));
    followed.revert("1", None).unwrap();
    let ours = followed.live();
    // Codex goes back to the old file, though it is older by its name, and then on in one of its own.
    index(&followed.home.codex(), &followed.file, rollout.end().1);
    let refused = followed.revert("0", None);
    assert!(
        matches!(&refused, Err(OpsError::Sync(SyncError::Left { path, by })) if *path == ours && *by == followed.file),
        "{refused:?}"
    );
    let mut grown = rollout.clone();
    grown.turn("three");
    fs::write(&followed.file, &grown.bytes).unwrap();
    import(&mut followed.archive, &[followed.home.codex()]);
    followed.agrees(&format!("{OF_TWO} | three | to three"));
    assert_eq!(followed.live(), followed.file);
    let mut own = Rollout::behind(THREAD, THREAD, one, &json!({}));
    own.turn("five");
    let own = followed.home.write(9, &later(SECOND), &own);
    index(&followed.home.codex(), &own, 0);
    import(&mut followed.archive, &[followed.home.codex()]);
    followed.agrees("rules | one | to one | five | to five");
    // What was left stays: by the session, as branches.
    let branches = verbs::branches(&followed.archive.at(&followed.session).unwrap()).unwrap();
    assert!(branches.len() >= 2, "{branches:?}");
}

/// Returns a thread of tasks and turns in which anything may be missing, with an event of some type behind its first record: a
/// rollback there finds no turn to drop, and no history is in its task.
/// The session waited for the file that somebody deleted.
#[test]
fn a_session_follows_codex_back_to_an_older_file_when_the_newest_one_is_deleted() {
    let rollout = thread(&["one", "two", "three"]);
    for is_named in [true, false] {
        let mut followed = Followed::new(&rollout, Some(rollout.end().1));
        followed.revert("2", None).unwrap();
        fs::remove_file(followed.live()).unwrap();
        if is_named {
            index(&followed.home.codex(), &followed.file, rollout.end().1);
        }
        let mut more = thread(&["one", "two", "three"]);
        more.turn("four");
        fs::write(&followed.file, &more.bytes).unwrap();
        let folder = followed.home.codex();
        import(&mut followed.archive, &[folder]);
        assert_eq!(followed.live(), followed.file);
        let all = format!("{OF_TWO} | three | to three | four | to four");
        assert_eq!(sent(&followed.archive, &followed.session), all);
        assert_eq!(peeked(&followed.file), (all, None));
        assert_eq!(damage(&followed.archive), [""; 0]);
    }
}

/// It lay there twice then, packed and plain.
#[test]
fn an_older_file_that_codex_compressed_does_not_come_back_with_a_newer_one() {
    let rollout = thread(&["one", "two", "three"]);
    let mut followed = Followed::new(&rollout, Some(rollout.end().1));
    followed.revert("2", None).unwrap();
    let live = followed.live();
    let packed = followed.file.with_extension("jsonl.zst");
    let bytes = fs::read(&followed.file).unwrap();
    fs::write(packed, zstd::encode_all(&bytes[..], 3).unwrap()).unwrap();
    fs::remove_file(&followed.file).unwrap();
    let folder = followed.home.codex();
    import(&mut followed.archive, &[folder]);
    fs::remove_file(&live).unwrap();
    let restored = verbs::restore(&followed.archive.at(&followed.session).unwrap()).unwrap();
    assert_eq!(restored.files, [live]);
    assert!(!followed.file.exists());
}

fn wild(dice: &mut Dice, event: &str) -> Rollout {
    let mut rollout = Rollout { bytes: String::new(), next: 0, has_ordinals: true };
    rollout.meta(THREAD, &json!({}));
    rollout.event(json!({ "type": event, "num_turns": 1 }));
    let mut is_started = false;
    for n in 0..2 + dice.below(7) {
        let words = format!("words {n}");
        if dice.below(6) > 0 {
            is_started = true;
            rollout.event(json!({ "type": "task_started", "turn_id": words }));
        }
        if dice.below(3) > 0 {
            rollout.line("turn_context", json!({ "cwd": "/w" }));
        }
        if dice.below(5) == 0 {
            rollout.item("developer", "rules");
        }
        if dice.below(8) == 0 {
            rollout.bytes += "no record\n";
        }
        if dice.below(8) > 0 {
            rollout.item("user", &words);
            if dice.below(2) == 0 {
                rollout.event(json!({ "type": "item_completed", "turn_id": words }));
            }
        }
        if dice.below(4) > 0 {
            rollout.item("assistant", &format!("to {words}"));
        }
        if dice.below(9) == 0 && is_started {
            let item = json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "all" }] });
            rollout.line("compacted", json!({ "message": "", "replacement_history": [item] }));
        }
        if dice.below(4) > 0 {
            rollout.event(json!({ "type": "task_complete", "turn_id": words }));
        }
    }
    rollout
}

#[test]
fn a_thread_without_a_rollback_goes_on_as_one_whose_rollback_drops_nothing() {
    // A rollback has its whole path read; the other event has the same length, and says nothing.
    let events = ["thread_rolled_back", "thread_looked_back"];
    let (mut based, mut again) = (0, 0);
    for seed in 1..=60 {
        let [rolled, plain] = events.map(|event| {
            let mut dice = Dice(seed);
            let rollout = wild(&mut dice, event);
            let length = rollout.end().1;
            let listed = match dice.below(4) {
                0 => None,
                1 => Some(dice.below(length)),
                _ => Some(length),
            };
            let mut followed = Followed::new(&rollout, listed);
            let checkpoints = verbs::checkpoints(&followed.archive.at(&followed.session).unwrap());
            let count = checkpoints.unwrap().len() as u64;
            let mut told = Vec::new();
            for _ in 0..3 {
                let to = dice.below(count.max(1)).to_string();
                let note = (dice.below(3) == 0).then_some("a note");
                let done = followed.revert(&to, note).is_ok();
                if done && dice.below(2) == 0 {
                    followed.undo();
                }
                let kinds = followed.kinds();
                let kinds = kinds.into_iter().filter(|kind| !events.contains(&kind.as_str()));
                let base = followed.base().map(|(_, bytes)| bytes);
                let sent = sent(&followed.archive, &followed.session);
                told.push((done, base, kinds.collect::<Vec<_>>(), sent));
            }
            told
        });
        based += plain.iter().filter(|(done, base, ..)| *done && base.is_some()).count();
        again +=
            plain.iter().filter(|(_, base, kinds, _)| base.is_none() && kinds.len() > 2).count();
        assert_eq!(plain, rolled, "{seed}");
    }
    assert!(based > 20 && again > 20, "{based} {again}");
}
