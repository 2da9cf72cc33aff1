//! `--later`: a change waits while an agent has the session open, and `resume` makes it.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};

use super::attach::{Kept, claude_record};
use super::pending::codex;
use super::screens::terminal;
use super::{json, newest_operation, store};
use crate::env::{CommandOutput, TestEnv};
use crate::rollout::THREAD;

const BOAT: &str = "6b0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e";
const RAFT: &str = "5c0a1c52-0d1e-4f6a-9f57-3c1a1b2c3d4e";

/// Returns a session of Claude Code that a process has open while the file lives.
fn open_boat() -> (Kept, File) {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    let held = File::open(&kept.file).unwrap();
    (kept, held)
}

fn run(kept: &Kept, args: &[&str]) -> CommandOutput {
    kept.env.run(&[args, &["-s", "6b0a"]].concat())
}

/// Returns the change that waits, as JSON has it.
fn waiting(env: &TestEnv, session: &str) -> serde_json::Value {
    json(&env.run(&["status", "--json", "-s", session]).success().stdout)["waiting"].clone()
}

#[test]
fn a_refused_change_offers_to_wait_in_a_command_that_can_be_typed() {
    let (kept, held) = open_boat();
    run(&kept, &["branch", "mine"]).success();
    run(&kept, &["checkpoint"]).success();
    let check = |args: &[&str], line: &str| {
        let refused = run(&kept, args);
        assert_eq!(refused.code(), Some(3), "{refused}");
        let found = format!("for your next `undertext resume 6b0a1c52`: {line}\n");
        assert!(refused.stderr.contains(&found), "{refused}");
    };
    check(&["revert", "1"], "undertext revert 6b0a1c52@1 --later");
    let noted = "undertext revert 6b0a1c52@0 --keep -m 'It'\\''s wood.' --later";
    check(&["revert", "--keep", "0", "-m", "It's wood."], noted);
    drop(held);
    run(&kept, &["revert", "1"]).success();
    let held = File::open(&kept.file).unwrap();
    check(&["switch", "mine"], "undertext switch mine --later -s 6b0a1c52");
    check(&["undo"], "undertext undo 6b0a1c52 --later");
    // What cannot wait offers nothing.
    for args in [&["clear"][..], &["redo"], &["append", "More."]] {
        let refused = run(&kept, args);
        assert!(!refused.stderr.contains("--later"), "{refused}");
    }
    drop(held);
}

#[test]
fn a_revert_that_waits_is_made_by_resume_once_the_agent_has_closed_it() {
    let (kept, held) = open_boat();
    let before = kept.read();
    let saved = run(&kept, &["revert", "1", "--later", "-m", "Wood is fine."]).success();
    for line in [
        "6b0a1c52 would be just before @1 \"Of steel.\"\n@1 (1 turn) would be kept on branch main.1.",
        "Your next `undertext resume 6b0a1c52` will offer to revert to just before @1 with a note\n",
        "Drop  undertext undo 6b0a1c52\n",
    ] {
        assert!(saved.stdout.contains(line), "{saved}");
    }
    for command in ["status", "graph"] {
        let said = run(&kept, &[command]).success().to_string();
        assert!(said.contains("to revert to just before @1 with a note"), "{said}");
        assert!(said.contains(&format!("(pid {}", std::process::id())), "{said}");
    }
    let found = waiting(&kept.env, "6b0a");
    assert_eq!((&found["verb"], &found["checkpoint"]), (&"revert".into(), &1.into()));
    assert_eq!((&found["note"], &found["own"]), (&"Wood is fine.".into(), &true.into()));
    // The agent still has it open.
    let refused = run(&kept, &["resume", "--apply"]);
    assert!(refused.code() == Some(3) && refused.stderr.contains(" open (pid "), "{refused}");
    assert!(!refused.stderr.contains("--later"), "{refused}");
    assert_eq!(kept.read(), before);
    drop(held);
    let applied = run(&kept, &["resume", "--apply", "--print"]).success();
    assert!(applied.stdout.ends_with(&format!("claude --resume {BOAT}\n")), "{applied}");
    assert!(!applied.stderr.contains("drops"), "{applied}");
    assert!(kept.read().starts_with(&before));
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Of wood? | Wood is fine.");
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), kept.said(&["6b0a"]));
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
    // It is made once, and the revert is undone like any other.
    run(&kept, &["resume", "--apply", "--print"]).said_no();
    run(&kept, &["undo"]).success();
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Of wood? | Of steel. | It floats.");
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
    kept.env.run(&["verify"]).success();
}

#[test]
fn a_codex_thread_is_reverted_by_resume_too() {
    let kept = codex();
    let env = &kept.env;
    env.run(&["import"]).success();
    let held = File::open(&kept.file).unwrap();
    env.run(&["revert", "1", "--later", "-m", "Not so.", "-s", THREAD]).success();
    drop(held);
    let before = kept.read();
    let resumed = env.run(&["resume", "--apply", "--json", THREAD]).success().stdout;
    let [reverted, resume] = [0, 1].map(|n| json(resumed.lines().nth(n).unwrap()));
    assert_eq!((&reverted["type"], &reverted["checkpoint"]), (&"revert".into(), &1.into()));
    assert_eq!((&resume["type"], &resume["waiting"]), (&"resume".into(), &json("null")));
    assert!(kept.said(&[THREAD]).ends_with("| Not so."), "{}", kept.said(&[THREAD]));
    assert!(kept.read() != before);
}

#[test]
fn without_a_terminal_a_resume_shows_the_change_and_starts_nothing() {
    let (kept, held) = open_boat();
    run(&kept, &["revert", "1", "--later"]).success();
    drop(held);
    let before = (kept.read(), newest_operation(&kept.env, BOAT));
    let resumed = run(&kept, &["resume"]).said_no();
    assert!(resumed.stdout.contains("@1 (1 turn) would be kept on branch main.1"), "{resumed}");
    for option in ["--apply", "--drop"] {
        let line = format!("undertext resume 6b0a1c52 {option}\n");
        assert!(resumed.stderr.contains(&line), "{resumed}");
    }
    let printed = run(&kept, &["resume", "--print"]).success();
    assert!(printed.stderr.contains("A change is waiting: revert to just before @1"), "{printed}");
    let found = json(&run(&kept, &["resume", "--json"]).success().stdout);
    assert_eq!(found["waiting"]["checkpoint"], 1);
    assert_eq!((kept.read(), newest_operation(&kept.env, BOAT)), before);
    let dropped = run(&kept, &["resume", "--drop", "--print"]).success();
    assert!(
        dropped.stdout.contains("6b0a1c52 no longer has this change waiting: revert"),
        "{dropped}"
    );
    assert_eq!((kept.read(), waiting(&kept.env, "6b0a")), (before.0, json("null")));
}

#[test]
fn another_change_that_waits_replaces_the_first() {
    let (kept, _held) = open_boat();
    run(&kept, &["revert", "1", "--later"]).success();
    let replaced = run(&kept, &["revert", "--keep", "0", "--later"]).success();
    let found = "This replaces the change that was waiting: revert to just before @1\n";
    assert!(replaced.stdout.contains(found), "{replaced}");
    assert!(replaced.stdout.contains("to revert to just after @0\n"), "{replaced}");
    let found = json(&run(&kept, &["revert", "0", "--later", "--json"]).success().stdout);
    assert_eq!((&found["type"], &found["waiting"]["checkpoint"]), (&"later".into(), &0.into()));
    assert_eq!(found["replaced"]["options"], json("[\"--keep\"]"));
    let undone = run(&kept, &["undo"]).success();
    assert!(
        undone.stdout.contains("no longer has this change waiting: revert to just before @0"),
        "{undone}"
    );
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
}

#[test]
fn undo_drops_what_waits_and_redo_has_it_wait_again() {
    let (kept, held) = open_boat();
    drop(held);
    run(&kept, &["revert", "1"]).success();
    let held = File::open(&kept.file).unwrap();
    let before = kept.read();
    run(&kept, &["switch", "main.1", "--later"]).success();
    let found = waiting(&kept.env, "6b0a");
    assert_eq!(found["branch"], "main.1");
    // An agent has it open, and its file is not concerned.
    run(&kept, &["undo"]).success();
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
    let again = run(&kept, &["redo"]).success();
    assert!(
        again.stdout.contains("6b0a1c52 has this change waiting again: switch to main.1\n"),
        "{again}"
    );
    assert_eq!(waiting(&kept.env, "6b0a"), found);
    run(&kept, &["undo"]).success();
    assert_eq!(kept.read(), before);
    // An operation that no longer has anything wait cannot be undone.
    let n = found["operation"].to_string();
    let past = run(&kept, &["undo", "--op", &n]);
    assert!(past.code() == Some(2) && past.stderr.contains("already undone"), "{past}");
    drop(held);
    run(&kept, &["undo"]).success();
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Of wood? | Of steel. | It floats.");
    kept.env.run(&["verify"]).success();
}

#[test]
fn a_change_that_moves_the_session_drops_what_waits_and_what_others_write_does_not() {
    let (kept, held) = open_boat();
    run(&kept, &["revert", "1", "--later"]).success();
    drop(held);
    kept.append(&claude_record(5, 4, "user", "Paint it."));
    kept.append(&claude_record(6, 5, "assistant", "Red."));
    kept.env.run(&["import"]).success();
    run(&kept, &["branch", "mine"]).success();
    run(&kept, &["checkpoint"]).success();
    assert_eq!(waiting(&kept.env, "6b0a")["checkpoint"], 1);
    assert!(kept.said(&["6b0a"]).ends_with("Paint it. | Red."));
    // What would move is planned again.
    let shown = run(&kept, &["resume"]).said_no();
    assert!(shown.stdout.contains("@1, @2 (2 turns) would be kept on branch main.1"), "{shown}");
    let reverted = run(&kept, &["revert", "2"]).success();
    let found = "warning: this drops the waiting change (operation 2)\n";
    assert!(reverted.stderr.contains(found), "{reverted}");
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
    // To undo that does not have it wait again.
    let undone = run(&kept, &["undo"]).success();
    assert!(!undone.stderr.contains("drops"), "{undone}");
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
    kept.env.run(&["store", "rebuild"]).success();
}

#[test]
fn an_undo_and_a_compaction_wait_with_what_they_were_asked_for() {
    let (kept, held) = open_boat();
    drop(held);
    run(&kept, &["revert", "1"]).success();
    let reverted = newest_operation(&kept.env, BOAT);
    let held = File::open(&kept.file).unwrap();
    run(&kept, &["undo", "--later"]).success();
    assert_eq!(waiting(&kept.env, "6b0a")["undoes"].to_string(), reverted);
    // It is not taken for what is to be undone.
    let again = run(&kept, &["undo", "--later"]).success();
    assert!(again.stdout.contains(&format!("was waiting: undo operation {reverted}\n")), "{again}");
    drop(held);
    run(&kept, &["resume", "--apply", "--print"]).success();
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Of wood? | Of steel. | It floats.");
    for n in (5u8..20).step_by(2) {
        let words = "The hull of the boat is welded from plates of steel. ".repeat(40);
        kept.append(&claude_record(n, n - 1, "user", &words).replace("00:0", "01:0"));
        kept.append(&claude_record(n + 1, n, "assistant", &words).replace("00:0", "01:0"));
    }
    let saved = run(&kept, &["compact", "--keep", "2", "--focus", "the hull", "--later"]).success();
    assert!(saved.stderr.contains("No agent has the session open"), "{saved}");
    assert_eq!(waiting(&kept.env, "6b0a")["options"], json("[\"--keep=2\",\"--focus=the hull\"]"));
    let before = kept.read();
    let compacted = run(&kept, &["resume", "--apply", "--print"]).success();
    assert!(compacted.stdout.contains("kept 2 messages"), "{compacted}");
    assert!(kept.read().len() > before.len() && kept.read().contains("compact_boundary"));
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
}

#[test]
fn a_place_that_is_not_there_is_refused_and_one_that_went_can_be_dropped() {
    let (kept, held) = open_boat();
    let refused = run(&kept, &["revert", "9", "--later"]);
    assert!(refused.code() == Some(1) && refused.stderr.contains("no checkpoint"), "{refused}");
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
    drop(held);
    run(&kept, &["branch", "mine"]).success();
    run(&kept, &["switch", "mine", "--later"]).success();
    run(&kept, &["branch", "--hide", "mine"]).success();
    let shown = run(&kept, &["resume"]).said_no();
    assert!(shown.stderr.contains("warning: the change can no longer be made: "), "{shown}");
    assert!(shown.stderr.contains("--drop") && !shown.stderr.contains("--apply"), "{shown}");
    assert_eq!(run(&kept, &["resume", "--apply"]).code(), Some(1));
    run(&kept, &["resume", "--drop", "--print"]).success();
    assert_eq!(waiting(&kept.env, "6b0a"), json("null"));
}

/// Another computer has another number, and so has another account.
#[test]
fn what_was_asked_for_elsewhere_is_made_only_after_a_question() {
    let (kept, held) = open_boat();
    run(&kept, &["revert", "1", "--later"]).success();
    drop(held);
    let before = kept.read();
    let machine = kept.env.home().join(".local/state/undertext/machine");
    fs::write(&machine, "12345\n").unwrap();
    assert_eq!(waiting(&kept.env, "6b0a")["own"], false);
    let refused = run(&kept, &["resume", "--apply"]).said_no();
    assert!(
        refused.stderr.contains("you did not request this change on this computer"),
        "{refused}"
    );
    assert_eq!(kept.read(), before);
    assert_eq!(waiting(&kept.env, "6b0a")["checkpoint"], 1);
}

#[test]
fn a_fork_does_not_inherit_what_waits() {
    let (kept, _held) = open_boat();
    run(&kept, &["revert", "1", "--later"]).success();
    let fork = kept.file.with_file_name(format!("{RAFT}.jsonl"));
    let text = kept.read().replace(&format!("\"sessionId\":\"{BOAT}\""), &format!(
        "\"sessionId\":\"{RAFT}\",\"forkedFrom\":{{\"sessionId\":\"{BOAT}\",\"messageUuid\":\"u1\"}}"
    ));
    fs::write(&fork, text).unwrap();
    kept.env.run(&["import"]).success();
    assert_eq!(waiting(&kept.env, "5c0a"), json("null"));
    assert_eq!(waiting(&kept.env, "6b0a")["checkpoint"], 1);
}

#[test]
fn a_note_that_waits_can_be_redacted_and_is_then_not_sent() {
    let (kept, held) = open_boat();
    let secret = "tok-9f8e7d6c/5b4a=hidden";
    run(&kept, &["revert", "1", "--later", "-m", &format!("Use {secret}.")]).success();
    drop(held);
    kept.env.run_with_stdin(&["redact", "--yes"], secret.as_bytes()).success();
    let found = waiting(&kept.env, "6b0a")["note"].to_string();
    assert!(found.contains("removed-"), "{found}");
    let files = fs::read_dir(store(&kept.env)).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.filter(|file| file.is_file()).collect();
    assert!(files.iter().any(|file| file.ends_with("store.db")));
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let is_there = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!is_there, "{}", file.display());
    }
    let before = kept.read();
    assert_eq!(run(&kept, &["resume", "--apply"]).code(), Some(2));
    assert_eq!(kept.read(), before);
    kept.env.run(&["verify"]).success();
}

/// Answers the question of a resume on a terminal, and returns what it showed and its exit code.
fn answered(kept: &Kept, answers: &str) -> (String, Option<i32>) {
    let (mut host, terminal) = terminal();
    let bin = kept.env.home().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let agent = bin.join("claude");
    fs::write(&agent, "#!/bin/sh\necho started \"$@\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&agent, mode).unwrap();
    let mut command = kept.env.command();
    command.args(["resume", "-s", "6b0a"]).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    command.stdin(terminal.try_clone().unwrap()).stdout(Stdio::piped()).stderr(terminal);
    let mut child: Child = command.spawn().unwrap();
    drop(command);
    host.write_all(answers.as_bytes()).unwrap();
    let mut shown = String::new();
    child.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    let code = child.wait().unwrap().code();
    (shown, code)
}

#[test]
fn on_a_terminal_the_answer_decides() {
    let (kept, held) = open_boat();
    let work = kept.read().replace("\"/work\"", &format!("{:?}", kept.env.project()));
    drop(held);
    fs::write(&kept.file, work).unwrap();
    kept.env.run(&["import"]).success();
    let whole = "Build a boat. | Of wood? | Of steel. | It floats.";
    let (started, waits) = (format!("started --resume {BOAT}\n"), || waiting(&kept.env, "6b0a"));
    run(&kept, &["revert", "1", "--later"]).success();
    for cancelled in ["c\n", "\n?\nc\n", "\u{4}"] {
        let (shown, code) = answered(&kept, cancelled);
        assert!(code == Some(1) && !shown.contains("started"), "{cancelled:?}: {shown}");
    }
    let (shown, code) = answered(&kept, "s\n");
    assert!(code == Some(0) && shown.ends_with(&started), "{shown}");
    assert_eq!((waits()["checkpoint"].clone(), kept.said(&["6b0a"])), (1.into(), whole.to_owned()));
    let (shown, _) = answered(&kept, "d\n");
    assert!(shown.ends_with(&started) && waits().is_null(), "{shown}");
    run(&kept, &["revert", "1", "--later"]).success();
    let (shown, _) = answered(&kept, "x\na\n");
    assert!(shown.ends_with(&started) && waits().is_null(), "{shown}");
    assert_eq!(kept.said(&["6b0a"]), "Build a boat. | Of wood?");
}
