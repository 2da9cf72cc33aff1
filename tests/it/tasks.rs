//! Codex's tasks: a rollback drops whole ones, with the histories in them. Whatever is done to a session, its file says by
//! itself what is shown, as seen from the rules by which Codex 0.169.0 resumed such files.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use undertext::{
    context::{cut::Limit, plan::Keep},
    model::Timestamp,
    verbs::{self, Archive, Bound, Compacting, Notice, Session, Workspace},
    wire::{Draft, Speaker},
};

use crate::{
    codex::{live, peeked, sent},
    fixture::damage,
    rollout::{Home, Rollout, THREAD},
};

/// A session of a thread that its agent reads.
struct Played {
    _home: Home,
    archive: Archive,
    session: Session,
    /// What was sent before each change that is not undone.
    before: Vec<String>,
}

impl Played {
    /// Begins in the folders of Codex, where a thread goes on in files, or in another one.
    fn new(rollout: &Rollout, in_codex: bool) -> Self {
        let home = Home::new();
        let file = home.write(10, THREAD, rollout);
        let mut folder = home.codex();
        if !in_codex {
            folder = home.codex().with_file_name("copies");
            fs::create_dir(&folder).unwrap();
            fs::rename(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
        let mut archive = crate::fixture::open(&home.0.path().join("store"), 5);
        let folders = std::slice::from_ref(&folder);
        verbs::import(&mut archive, folders, folders, &mut |_| ()).unwrap();
        let session = archive.every().unwrap().remove(0);
        Self { _home: home, archive, session, before: Vec::new() }
    }

    fn file(&self) -> PathBuf {
        live(&self.archive, &self.session)
    }

    fn sent(&self) -> String {
        sent(&self.archive, &self.session)
    }

    /// Does one thing, and holds what is then shown against the file.
    fn play(&mut self, step: &str) {
        let before = self.sent();
        let (archive, session) = (&mut self.archive, &self.session);
        let nowhere = Workspace::default();
        match step {
            "append" => {
                let more = Draft::Message(Speaker::User, "more".into());
                drop(verbs::append(&archive.at(session).unwrap(), &nowhere, &[more]).unwrap());
            }
            "compact" => {
                let (asked, clock) = (crate::compact::asked(32_000), || Timestamp(0));
                let of = Compacting::of(&asked, &clock);
                let wanted = Compacting { keep: Keep::Last(1), again: true, ..of };
                let done =
                    verbs::compact(&archive.at(session).unwrap(), &nowhere, &wanted, &mut |_| ())
                        .unwrap();
                assert!(done.nothing.is_none(), "{:?}", done.nothing);
            }
            "truncate" => {
                let bound = Bound::of(Limit::of_chars(10_000));
                drop(verbs::truncate(&archive.at(session).unwrap(), &bound).unwrap());
            }
            "clear" => drop(verbs::clear(&archive.at(session).unwrap()).unwrap()),
            "undo" => drop(verbs::undo(&archive.at(session).unwrap(), None).unwrap()),
            checkpoint => {
                drop(
                    verbs::revert(
                        &archive.at(session).unwrap(),
                        &nowhere,
                        checkpoint,
                        Some("later"),
                    )
                    .unwrap(),
                );
            }
        }
        if step == "undo" {
            assert_eq!(Some(self.sent()), self.before.pop(), "{step}");
        } else {
            // Only results are cut, which are no words.
            assert!(step == "truncate" || self.sent() != before, "{step}: {before}");
            self.before.push(before);
        }
        assert_eq!(peeked(&self.file()), (self.sent(), None), "{step}");
        assert_eq!(damage(&self.archive), [""; 0]);
    }
}

fn thread(turns: usize, has_ordinals: bool) -> Rollout {
    let mut rollout = Rollout { has_ordinals, ..Rollout::first(THREAD) };
    rollout.bytes.clear();
    rollout.next = 0;
    rollout.meta(THREAD, &json!({}));
    rollout.item("developer", "rules");
    for turn in ["one", "two", "three"].into_iter().take(turns) {
        rollout.turn(turn);
        rollout.long_answer();
        rollout.item("assistant", "done");
    }
    rollout
}

#[test]
fn what_a_file_says_by_itself_is_shown_after_every_change() {
    for (has_ordinals, in_codex) in [(true, true), (true, false), (false, true)] {
        for turns in [1, 3] {
            for steps in [
                &["append", "undo"][..],
                &["compact", "append", "undo", "undo"],
                &["truncate", "append", "undo", "undo"],
                &["clear", "append", "undo", "undo"],
                &["0", "append", "undo", "undo"],
                &["append", "undo", "compact", "undo", "append", "undo"],
                &["append", "compact", "clear", "undo", "undo", "undo"],
            ] {
                let mut played = Played::new(&thread(turns, has_ordinals), in_codex);
                for step in steps {
                    played.play(step);
                }
            }
        }
    }
}

#[test]
fn a_history_in_the_middle_of_the_last_turn_stays_when_a_later_message_is_taken_back() {
    let mut rollout = thread(1, false);
    rollout.event(json!({ "type": "task_started", "turn_id": "two" }));
    rollout.item("user", "two");
    let history = json!([{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "sum" }] }]);
    rollout.line("compacted", json!({ "message": "", "replacement_history": history }));
    rollout.item("assistant", "to two");
    for in_codex in [true, false] {
        let mut played = Played::new(&rollout, in_codex);
        assert_eq!(played.sent(), "sum | to two");
        for step in ["append", "undo", "append", "0", "undo", "undo"] {
            played.play(step);
        }
    }
}

#[test]
fn a_firm_history_is_never_rolled_back() {
    for is_firm in [true, false] {
        let mut rollout = thread(2, false);
        rollout.event(json!({ "type": "task_started", "turn_id": "c" }));
        let asked = |words: &str| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": words }] });
        let mut compacted = json!({ "message": "", "replacement_history": [asked("one"), asked("two"), asked("sum")] });
        if is_firm {
            compacted["window_number"] = json!(1);
            compacted["resume_metadata"] = json!({});
        }
        rollout.line("compacted", compacted);
        rollout.event(json!({ "type": "task_complete", "turn_id": "c" }));
        rollout.turn("three");
        let mut played = Played::new(&rollout, true);
        assert_eq!(played.sent(), "one | two | sum | three | to three");
        let begin = rollout.bytes.len();
        for step in ["1", "undo", "0", "undo", "2", "undo"] {
            played.play(step);
        }
        let written = fs::read_to_string(played.file()).unwrap().split_off(begin);
        let first: Value = serde_json::from_str(written.lines().next().unwrap()).unwrap();
        let is_rolled_back = first["payload"]["type"] == "thread_rolled_back";
        // Codex reads nothing before a firm one.
        assert_eq!(is_rolled_back, !is_firm, "{first}");
    }
}

#[test]
fn a_rollback_reaches_into_a_firm_history() {
    let asked = |words: &str| json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": words }] });
    let fragment = "<environment_context>here</environment_context>";
    let history = [asked("one"), asked("two"), asked(fragment), asked("sum"), asked(fragment)];
    let fragment = format!(" | {fragment}");
    // A rollback of one turn takes what prepared it along; one of more turns than there are leaves what stood before the first.
    for (n_turns, left) in [
        (0, format!("one | two{fragment} | sum{fragment} | three | to three")),
        (1, format!("one | two{fragment} | sum")),
        (2, "one | two".to_owned()),
        (3, "one".to_owned()),
        (9, String::new()),
    ] {
        for in_codex in [true, false] {
            let mut rollout = thread(2, false);
            rollout.event(json!({ "type": "task_started", "turn_id": "c" }));
            let window = json!({ "message": "", "replacement_history": history, "window_number": 1, "resume_metadata": {} });
            rollout.line("compacted", window);
            rollout.event(json!({ "type": "task_complete", "turn_id": "c" }));
            rollout.turn("three");
            rollout.event(json!({ "type": "thread_rolled_back", "num_turns": n_turns }));
            let mut played = Played::new(&rollout, in_codex);
            assert_eq!(played.sent(), left, "{n_turns}");
            for step in ["append", "undo", "2", "undo", "append", "2", "append", "undo", "undo"] {
                played.play(step);
            }
        }
    }
}

#[test]
fn what_stands_before_the_first_turn_stays() {
    let mut played = Played::new(&thread(3, true), true);
    played.play("clear");
    assert_eq!(played.sent(), "rules");
    let written = fs::read(played.file()).unwrap();
    let again = verbs::clear(&played.archive.at(&played.session).unwrap()).unwrap();
    assert_eq!((again.done.operation, fs::read(played.file()).unwrap()), (None, written));
}

#[test]
fn a_message_stands_in_a_task_and_is_said_to_codex_lists() {
    for (has_ordinals, [asked, answered]) in [
        (true, ["item_completed UserMessage", "item_completed AgentMessage"]),
        (false, ["user_message", "agent_message"]),
    ] {
        let mut played = Played::new(&thread(1, has_ordinals), true);
        let begin = fs::read(played.file()).unwrap().len();
        let say = |speaker, words: &str| Draft::Message(speaker, words.into());
        let drafts =
            [say(Speaker::User, "q"), say(Speaker::Assistant, "a"), say(Speaker::User, "r")];
        let (archive, session) = (&mut played.archive, &played.session);
        let appended =
            verbs::append(&archive.at(session).unwrap(), &Workspace::default(), &drafts).unwrap();
        assert_eq!((appended.entries.len(), appended.checkpoints.len()), (3, 2));
        let more = fs::read_to_string(played.file()).unwrap().split_off(begin);
        let lines: Vec<Value> =
            more.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kinds: Vec<String> = lines
            .iter()
            .map(|line| {
                let payload = &line["payload"];
                let which = [&payload["role"], &payload["item"]["type"]].map(word).concat();
                format!("{} {which}", word(&payload["type"])).trim().to_owned()
            })
            .collect();
        let (start, end) = ("task_started", "task_complete");
        let [q, a] = ["message user", "message assistant"];
        assert_eq!(kinds, [start, q, asked, a, answered, end, start, q, asked, end]);
        let ids: Vec<String> = lines.iter().map(|line| word(&line["payload"]["turn_id"])).collect();
        assert!(ids[0] == ids[5] && ids[6] == ids[9] && ids[0] != ids[6], "{ids:?}");
        assert_eq!(peeked(&played.file()).0, played.sent());
    }
}

#[test]
fn what_codex_does_not_resume_is_changed_in_the_store_only() {
    let mut sub_agent = Rollout { bytes: String::new(), next: 0, has_ordinals: false };
    let spawn = json!({ "parent_thread_id": "p", "depth": 1 });
    let source = json!({ "subagent": { "thread_spawn": spawn } });
    sub_agent.meta(THREAD, &json!({ "multi_agent_version": "v2", "source": source }));
    let mut odd = Rollout { bytes: String::new(), next: 0, has_ordinals: false };
    odd.meta(THREAD, &json!({ "history_mode": "default" }));
    for rollout in [&mut sub_agent, &mut odd] {
        rollout.turn("one");
        rollout.turn("two");
    }
    let item = |role: &str, words: &str| {
        let content = json!([{ "type": "input_text", "text": words }]);
        json!({ "type": "message", "role": role, "content": content }).to_string() + "\n"
    };
    let head =
        json!({ "id": THREAD, "timestamp": "2025-08-01T10:00:00.000Z", "instructions": null });
    let said = [item("user", "one"), item("assistant", "to one"), item("user", "two")].concat();
    let old = Rollout { bytes: format!("{head}\n{said}"), next: 0, has_ordinals: false };
    for rollout in [sub_agent, odd, old] {
        let mut played = Played::new(&rollout, true);
        let (archive, session) = (&mut played.archive, &played.session);
        assert_eq!(verbs::status(&archive.at(session).unwrap()).unwrap().live, None);
        let back =
            verbs::revert(&archive.at(session).unwrap(), &Workspace::default(), "1", None).unwrap();
        assert!(
            matches!(back.done.notices[..], [Notice::Unresumed { .. }]),
            "{:?}",
            back.done.notices
        );
        assert_eq!(back.done.written, None);
        assert_eq!(sent(archive, session), "one | to one");
        let attached = verbs::attach(&archive.at(session).unwrap(), None).unwrap();
        assert!(!attached.attached && attached.done.operation.is_none(), "{attached:?}");
        assert_eq!(fs::read_to_string(played.file()).unwrap(), rollout.bytes);
    }
}
