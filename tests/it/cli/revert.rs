//! `revert`, `clear` and `rotations`: going back loses nothing.

use std::fs;

use insta::assert_snapshot;

use super::attach::Kept;
use super::pending::codex;
use super::{conversation, json, live, live_path, store};
use crate::env::TestEnv;

#[test]
fn revert_keeps_what_was_left_and_says_where() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let before = live(&env, &session);
    assert_snapshot!(env.run(&["revert", "1"]), @r#"
    e572dff8 is now just before @1 "Then mend it."
    @1 (1 turn) is kept on branch main.1. Nothing is deleted.
    Context about 39 → 23 tokens (<1%)
    Your prompt @1, to send again or change:
      Then mend it.
    Undo  undertext undo
    "#);
    let kept = live(&env, &session);
    assert!(before.starts_with(&kept) && kept.len() < before.len());
    assert_snapshot!(env.run(&["branch"]).masked(), @"
    *  main    entry-id  just now                             A symbol is missing.
       main.1  entry-id  just now  reverted, 1 turn after @0  Done.
    ");
    assert_snapshot!(env.run(&["revert", "1"]), @"e572dff8 is already just before @1; nothing was changed");
    let aside = format!("{}.undertext-1", live_path(&env, &session).display());
    assert!(fs::read(aside).unwrap() == before);
}

#[test]
fn revert_keep_keeps_the_turn_and_takes_back_the_next() {
    let env = TestEnv::new();
    conversation(&env);
    let told = json(&env.run(&["revert", "--keep", "@0", "--dry-run", "--json"]).success().stdout);
    assert_eq!(told["before"]["checkpoint"], 1);
    assert_eq!((&told["turns"], &told["prompt"]), (&[1].into(), &"Then mend it.".into()));
    let plain = env.run(&["revert", "1", "--dry-run"]).success();
    let kept = env.run(&["revert", "--keep", "@0", "--dry-run"]).success();
    assert_eq!(kept.stdout, plain.stdout);
    assert_snapshot!(env.run(&["revert", "--keep", "1"]), @"
    ------- stderr -------
    error: cannot use --keep with @1: no turn follows it
    hint: to go back to @1 itself, leave out --keep: undertext revert @1
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["revert", "--keep", "main"]), @"
    ------- stderr -------
    error: cannot use --keep with main: it is not a turn
    hint: to go back to main itself, leave out --keep: undertext revert main
    [exit status: 2]
    ");
    // A turn on another branch has no next one here.
    env.run(&["revert", "--keep", "0"]).success();
    env.run(&["append", "Or link it."]).success();
    assert_snapshot!(env.run(&["revert", "--keep", "1"]), @"
    ------- stderr -------
    error: cannot use --keep with @1: it is not on the current branch
    hint: to go back to @1 itself, leave out --keep: undertext revert @1
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["revert", "--keep", "0"]), @r#"
    e572dff8 is now just before @2 "Or link it."
    @2 (1 turn) is kept on branch main.2. Nothing is deleted.
    Context about 31 → 23 tokens (<1%)
    Your prompt @2, to send again or change:
      Or link it.
    Undo  undertext undo
    "#);
}

#[test]
fn every_command_says_that_the_session_is_just_before_a_turn() {
    let env = TestEnv::new();
    conversation(&env);
    let check = |place: &str| {
        for command in ["graph", "status", "checkpoints"] {
            let said = env.run(&[command]).success().stdout;
            assert!(said.contains(place), "{command}: {said}");
        }
        let already = env.run(&["revert", place.trim_start_matches("just before ")]).success();
        assert!(already.stdout.contains(&format!("is already {place}")), "{already}");
    };
    env.run(&["revert", "1"]).success();
    check("just before @1");
    assert_eq!(json(&env.run(&["status", "--json"]).success().stdout)["before"], 1);
    // Two turns begin there: the one that was named is meant.
    env.run(&["append", "Or link it."]).success();
    assert_eq!(json(&env.run(&["status", "--json"]).success().stdout)["before"], json("null"));
    env.run(&["revert", "2"]).success();
    check("just before @2");
    // What was said to a note is not before the turn any more.
    env.run(&["revert", "1", "-m", "Link libm."]).success();
    let status = || env.run(&["status"]).success().stdout;
    assert!(status().contains(", just before @1"), "{}", status());
    env.run(&["append", "--role", "assistant", "I do."]).success();
    assert!(status().contains(", at @1\n"), "{}", status());
    env.run(&["revert", "0"]).success();
    check("just before @0");
}

#[test]
fn a_prompt_is_shown_whole_and_never_acts_on_the_terminal() {
    let env = TestEnv::new();
    conversation(&env);
    let long = "very ".repeat(40);
    env.run(&["append", &format!("One.\n\n  Two \u{1b}]52;c;eA==\u{7}{long}")]).success();
    let dry = env.run(&["revert", "2", "--dry-run"]).success().stdout;
    assert!(
        dry.contains("would be just before @2") && dry.contains("would be kept on branch main.1")
    );
    assert!(dry.contains("\nYour prompt @2, to send again or change:\n  One.\n\n    Two"), "{dry}");
    assert!(dry.contains(long.trim_end()) && !dry.contains(['\u{1b}', '\u{7}']), "{dry}");
    let told = json(&env.run(&["revert", "2", "--json"]).success().stdout);
    let prompt = told["prompt"].as_str().unwrap();
    assert!(prompt.starts_with("One.\n\n  Two \u{1b}]52"), "{told}");
    let undone = json(&env.run(&["undo", "--json"]).success().stdout);
    assert_eq!((&undone["prompt"], &undone["turns"]), (&json("null"), &json("[]")));
    let redone = json(&env.run(&["redo", "--json"]).success().stdout);
    assert_eq!((&redone["prompt"], &redone["turns"]), (&json("null"), &[2].into()));
    assert_eq!(redone["before"]["checkpoint"], 2);
}

#[test]
fn a_message_reaches_the_model_as_a_note_from_later() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let reverted = env.run(&["revert", "1", "-m", "Look at the linker.", "--json"]).success();
    assert_snapshot!(reverted.masked(), @r#"{"type":"revert","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why does the build fail?","format":"native","checkpoint":1,"entry":"entry-id","branch":"main","left":"main.1","dropped":2,"note":"entry-id","operation":6,"rotated":"$HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-1","written":null,"before":{"checkpoint":1,"words":"Then mend it."},"at":{"checkpoint":0,"words":"Why does the build fail?"},"turns":[1],"kept":{"branch":"main.1","first":1,"last":1,"turns":1},"compactions":[],"tokens":{"before":39,"after":133,"window":32000},"files":[],"prompt":"Then mend it.","resume":null,"dry_run":false}"#);
    let live = String::from_utf8(live(&env, &session)).unwrap();
    let note = json(live.lines().last().unwrap());
    assert_eq!((&note["type"], &note["subtype"]), (&"user".into(), &"note".into()));
    assert!(note["message"]["content"].as_str().unwrap().contains("Look at the linker."));
}

#[test]
fn an_entry_is_no_branch_and_the_note_is_not_the_place() {
    let env = TestEnv::new();
    conversation(&env);
    assert_snapshot!(env.run(&["revert", "HEAD~1", "-m", "Look at the linker."]).masked(), @"
    entry-id is now at HEAD~1, with the note after it
    Left the model a note (entry entry-id)
    @1 (1 turn) is kept on branch main.1. Nothing is deleted.
    Context about 39 → 133 tokens (<1%)
    Undo  undertext undo
    ");
    let told = env.run(&["operations", "-n", "1"]).masked().to_string();
    assert!(told.contains("to entry entry-id with a note; the old end is main.1"), "{told}");
    env.run(&["revert", "main.1"]).success();
    let told = env.run(&["operations", "-n", "1"]).success().stdout;
    assert!(told.contains("to branch main.1; the old end is main.2"), "{told}");
}

/// Each time there and back left two names more.
#[test]
fn back_and_forth_on_one_line_leaves_no_name() {
    let env = TestEnv::new();
    conversation(&env);
    let names = || {
        let listed = env.run(&["branch", "--json"]).success().stdout;
        listed.lines().map(|line| json(line)["branch"].clone()).collect::<Vec<_>>()
    };
    let said = || env.run(&["log"]).success().stdout;
    let before = said();
    for place in ["1", "0"] {
        env.run(&["revert", place]).success();
        assert_eq!(names(), ["main", "main.1"]);
        env.run(&["revert", "main.1"]).success();
        assert_eq!((names(), said()), (vec!["main".into()], before.clone()));
    }
    env.run(&["undo"]).success();
    assert_eq!(names(), ["main", "main.1"]);
    env.run(&["redo"]).success();
    assert_eq!((names(), said()), (vec!["main".into()], before.clone()));
    // Where something was said meanwhile, each of the two has a name.
    env.run(&["revert", "1"]).success();
    env.run(&["append", "Or not."]).success();
    env.run(&["revert", "main.1"]).success();
    assert_eq!(names(), ["main", "main.1", "main.2"]);
    // A name that a person gave stays.
    env.run(&["branch", "mine"]).success();
    env.run(&["revert", "0"]).success();
    env.run(&["revert", "mine"]).success();
    assert!(names().contains(&"mine".into()));
    env.run(&["verify"]).success();
}

#[test]
fn a_checkpoint_that_is_not_there_changes_nothing() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let state = || (live(&env, &session), fs::read(store(&env).join("store.db-wal")).unwrap());
    let before = state();
    assert_snapshot!(env.run(&["revert", "7"]), @r#"
    ------- stderr -------
    error: no checkpoint matches "7"
    hint: the nearest are @0 "Why does the build fail?", @1 "Then mend it."
    hint: list the checkpoints: undertext log --checkpoints
    [exit status: 1]
    "#);
    assert_snapshot!(env.run(&["revert", "-1"]), @r#"
    ------- stderr -------
    error: no checkpoint matches "-1"
    hint: the nearest are @0 "Why does the build fail?", @1 "Then mend it."
    hint: list the checkpoints: undertext log --checkpoints
    [exit status: 1]
    "#);
    assert_snapshot!(env.run(&["revert", "1; DROP TABLE entry"]), @r#"
    ------- stderr -------
    error: no entry matches "1; DROP TABLE entry"
    hint: list the entries with their ids: undertext log
    [exit status: 1]
    "#);
    assert!(before == state());
    assert_eq!(fs::read_dir(store(&env).join("transcripts")).unwrap().count(), 1);
}

#[test]
fn to_go_where_a_session_stands_is_no_change_though_lines_took_it_there() {
    for (kept, session) in [(Kept::claude(), "6b0a"), (Kept::pi(), "boat"), (codex(), "019f")] {
        kept.env.run(&["import"]).success();
        let all = kept.said(&[session]);
        for first in ["1", "0"] {
            let change = |command: &[&str]| {
                let told = kept.env.run(&[command, &["--json", "-s", session]].concat()).success();
                json(&told.stdout)["operation"].is_u64()
            };
            assert!(change(&["revert", first]));
            let (file, branches) =
                (kept.read(), kept.env.run(&["branch", "-s", session]).success());
            assert!(!change(&["revert", first]), "{session}");
            assert!(first == "1" || !change(&["clear"]), "{session}");
            assert_eq!(kept.read(), file);
            let again = kept.env.run(&["branch", "-s", session]).success();
            assert_eq!(again.stdout, branches.stdout);
            // With a note something is said.
            assert!(change(&["revert", first, "-m", "Of ice."]));
            kept.env.run(&["undo", "-s", session]).success();
            kept.env.run(&["undo", "-s", session]).success();
            assert_eq!(kept.said(&[session]), all);
        }
        kept.env.run(&["verify"]).success();
    }
}

#[test]
fn clear_begins_anew_and_rotations_are_checked() {
    let env = TestEnv::new();
    let session = conversation(&env);
    assert_snapshot!(env.run(&["clear"]), @"
    e572dff8 is now at the start
    @0, @1 (2 turns) are kept on branch main.1. Nothing is deleted.
    Context about 39 → 0 tokens (0%)
    Undo  undertext undo
    ");
    assert!(live(&env, &session).is_empty());
    assert_snapshot!(env.run(&["clear", "--json"]), @r#"{"type":"clear","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why does the build fail?","format":"native","checkpoint":null,"entry":null,"branch":"main","left":null,"dropped":0,"note":null,"operation":null,"rotated":null,"written":null,"before":{"checkpoint":0,"words":"Why does the build fail?"},"at":null,"turns":[],"kept":null,"compactions":[],"tokens":null,"files":[],"prompt":null,"resume":null,"dry_run":false}"#);
    env.run(&["undo"]).success();
    env.run(&["revert", "0"]).success();

    let aside = |n: u32| format!("{}.undertext-{n}", live_path(&env, &session).display());
    fs::write(aside(1), "something else\n").unwrap();
    fs::remove_file(aside(3)).unwrap();
    let rotations = env.run(&["rotations", "--json"]).success().stdout;
    let states: Vec<_> = rotations
        .lines()
        .map(|line| {
            let line = json(line);
            format!("{} {} {}", line["operation"], line["command"], line["state"])
        })
        .collect();
    assert_snapshot!(states.join("\n"), @r#"
    6 "clear" "changed"
    7 "undo" "whole"
    8 "revert" "deleted"
    "#);
    let shown = env.run(&["rotations"]).success().stdout;
    assert!(shown.starts_with("6  clear   changed"), "{shown}");
}

/// The agent says "No conversation found" about such a file.
#[test]
fn a_claude_file_without_a_message_has_no_resume_line() {
    let kept = Kept::claude();
    let env = &kept.env;
    env.run(&["import"]).success();
    for command in [&["revert", "0", "--rotate"][..], &["clear", "--rotate"]] {
        let typed = [command, &["-s", "6b0a"]].concat();
        let reverted = env.run(&typed).success();
        assert!(!reverted.stdout.contains("Resume  "), "{reverted}");
        assert!(reverted.stdout.contains("its file has no messages"), "{reverted}");
        assert!(reverted.stdout.contains("Undo  undertext undo 6b0a1c52"), "{reverted}");
        let refused = env.run(&["resume", "--print", "6b0a"]);
        assert_eq!((refused.code(), refused.stdout.as_str()), (Some(2), ""), "{refused}");
        assert!(refused.stderr.contains("has no messages"), "{refused}");
        assert!(refused.stderr.contains(": undertext branch -s 6b0a1c52"), "{refused}");
        env.run(&["undo", "-s", "6b0a"]).success();
        env.run(&["resume", "--print", "6b0a"]).success();
        let told = env.run(&[&typed[..], &["--json"]].concat()).success();
        assert!(json(&told.stdout)["resume"].is_null(), "{told}");
        env.run(&["undo", "-s", "6b0a"]).success();
    }
    // A note is a message, and a file that only grew holds what was said before.
    for command in [&["revert", "0", "--rotate", "-m", "Of oak."][..], &["revert", "0"]] {
        let reverted = env.run(&[command, &["-s", "6b0a"]].concat()).success();
        assert!(reverted.stdout.contains("Resume  "), "{reverted}");
        env.run(&["undo", "-s", "6b0a"]).success();
    }
    let kept = Kept::pi();
    kept.env.run(&["import"]).success();
    let reverted = kept.env.run(&["revert", "0", "--rotate", "-s", "boat"]).success();
    assert!(reverted.stdout.contains("Resume  "), "{reverted}");
}

#[test]
fn a_resume_line_of_kimi_says_that_kimi_cli_has_ended() {
    let kept = super::pending::kimi();
    kept.env.run(&["import"]).success();
    let (revert, resume) = (["revert", "1", "-s", "boat"], ["resume", "boat", "--print"]);
    let lines = [(&revert[..], "Resume  undertext resume boat"), (&resume, "kimi --session boat")];
    for (command, line) in lines {
        let said = kept.env.run(command).success();
        assert!(said.stdout.contains(line), "{said}");
        assert!(said.stderr.contains("is no longer maintained"), "{said}");
    }
    let claude = Kept::claude();
    claude.env.run(&["import"]).success();
    let said = claude.env.run(&["revert", "1", "-s", "6b0a"]).success();
    assert!(said.stdout.contains("Resume  ") && said.stderr.is_empty(), "{said}");
}
