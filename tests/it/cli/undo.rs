//! `undo`, `redo` and `operations`: every change can be taken back, and that too.

use std::fs::File;
use std::io::Write as _;

use insta::assert_snapshot;
use rusqlite::Connection;

use super::attach::Kept;
use super::{conversation, json, live, live_path, store};
use crate::env::TestEnv;

#[test]
fn what_stands_before_the_first_turn_is_not_the_start() {
    let env = TestEnv::new();
    super::conversation(&env);
    env.run(&["revert", "0", "-m", "Try another way."]).success();
    env.run(&["append", "--role", "assistant", "As you say."]).success();
    let told = env.run(&["undo"]).success().stdout;
    assert!(told.contains(r#"is now just before @0 "Why does the build fail?""#), "{told}");
    env.run(&["undo"]).success();
    assert!(env.run(&["clear"]).success().stdout.contains(" is now at the start"));
}

#[test]
fn undo_and_redo_restore_the_live_file_to_the_byte() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let before = live(&env, &session);
    env.run(&["revert", "1", "-m", "Look at the linker."]).success();
    let reverted = live(&env, &session);
    assert_snapshot!(env.run(&["undo"]), @r#"
    e572dff8 is now at the end of @1 "Then mend it."
    Undid operation 6 (revert)
    Context about 133 → 39 tokens (<1%)
    Redo  undertext redo
    "#);
    assert!(live(&env, &session) == before);
    assert_snapshot!(env.run(&["redo"]), @r#"
    e572dff8 is now just before @1 "Then mend it."
    Redid operation 6 (revert)
    @1 (1 turn) is kept on branch main.1. Nothing is deleted.
    Context about 39 → 133 tokens (<1%)
    Undo  undertext undo --op 6
    "#);
    assert!(live(&env, &session) == reverted);
    assert_snapshot!(env.run(&["undo", "--json"]).masked(), @r#"{"type":"undo","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why does the build fail?","format":"native","operation":9,"rotated":"$HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-4","written":null,"undoes":6,"command":"revert","left":[],"before":null,"at":{"checkpoint":1,"words":"Then mend it."},"turns":[],"kept":null,"compactions":[],"tokens":{"before":133,"after":39,"window":32000},"files":[],"prompt":null,"resume":null,"dry_run":false}"#);
    assert!(live(&env, &session) == before);
    assert_snapshot!(env.run(&["operations"]), @r"
    9  2001-02-03 04:05  undo            undid 6 (revert)
    8  2001-02-03 04:05  redo            undid 7 (undo)
    7  2001-02-03 04:05  undo    undone  undid 6 (revert)
    6  2001-02-03 04:05  revert  undone  to checkpoint 1 with a note; the old end is main.1
    5  2001-02-03 04:05  append          1 entry on main
    4  2001-02-03 04:05  append          1 entry on main
    3  2001-02-03 04:05  append          1 entry on main
    2  2001-02-03 04:05  append          1 entry on main
    1  2001-02-03 04:05  new             in $HOME/project
    ");
    env.run(&["verify"]).success();
}

#[test]
fn undo_of_an_older_operation_keeps_what_came_since() {
    let env = TestEnv::new();
    let session = conversation(&env);
    assert_snapshot!(env.run(&["undo", "--op", "4"]), @r#"
    e572dff8 is now at the end of @0 "Why does the build fail?"
    Undid operation 4 (append)
    Later entries are kept on branch main.1
    Context about 39 → 23 tokens (<1%)
    Redo  undertext redo
    "#);
    assert_eq!(live(&env, &session).split(|&byte| byte == b'\n').count(), 3);
    assert_snapshot!(env.run(&["branch"]).masked(), @"
    *  main    entry-id  just now                             A symbol is missing.
       main.1  entry-id  just now  reverted, 1 turn after @0  Done.
    ");
}

#[test]
fn an_undo_without_a_number_takes_back_what_moved_the_conversation() {
    let kept = Kept::claude();
    let (env, id) = (&kept.env, "6b0a");
    env.run(&["import"]).success();
    let whole = kept.said(&[id]);
    env.run(&["revert", "1", "-s", id]).success();
    let file = kept.file.to_str().unwrap();
    // How the session is kept and what its places are called: none of these moves the conversation.
    for command in [
        &["attach", "--off", "-s", id][..],
        &["attach", file],
        &["checkpoint", "-m", "here", "-s", id],
        &["branch", "side", "HEAD", "-s", id],
        &["branch", "--rename", "side", "other", "-s", id],
        &["branch", "--hide", "other", "-s", id],
        &["sessions", "--hide", "6b0a1c52"],
    ] {
        env.run(command).success();
    }
    let undone = env.run(&["undo", "-s", id]).success();
    assert!(undone.stdout.contains("(revert)"), "{undone}");
    assert_eq!(kept.said(&[id]), whole);
    let hidden = json(&env.run(&["sessions", "--hidden", "--json"]).success().stdout);
    assert_eq!((&hidden["hidden"], &hidden["gone"]), (&true.into(), &false.into()));
    let status = json(&env.run(&["status", id, "--json"]).success().stdout);
    assert!(status["live"].is_string(), "it is attached still: {status}");
    let none = env.run(&["undo", "-s", id]);
    assert!(none.code() == Some(2) && none.stderr.contains("nothing to undo"), "{none}");
}

#[test]
fn a_restored_file_stays_attached_when_the_change_before_it_is_undone() {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    let whole = kept.said(&["6b0a"]);
    kept.env.run(&["revert", "1", "-s", "6b0a"]).success();
    std::fs::remove_file(&kept.file).unwrap();
    kept.env.run(&["import"]).success();
    kept.env.run(&["restore", "6b0a"]).success();
    let undone = kept.env.run(&["undo", "-s", "6b0a"]).success();
    assert!(undone.stdout.contains("(revert)"), "{undone}");
    assert_eq!(kept.said(&[kept.file.to_str().unwrap()]), whole);
}

/// It would have taken back the newest change in place of the one that was redone.
#[test]
fn the_hint_after_a_redo_takes_back_what_was_redone() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["undo", "--op", "4"]).success();
    let redone = env.run(&["redo"]).success();
    let hint = redone.stdout.lines().find_map(|line| line.strip_prefix("Undo  undertext "));
    let undone = env.run(&hint.unwrap().split(' ').collect::<Vec<_>>()).success();
    assert!(undone.stdout.contains("operation 4 (append)"), "{undone}");
}

#[test]
fn undo_takes_in_first_what_another_program_appended() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let mut file = File::options().append(true).open(live_path(&env, &session)).unwrap();
    writeln!(file, r#"{{"type":"user","uuid":"x","parentUuid":null,"sessionId":"{session}"}}"#)
        .unwrap();
    assert_snapshot!(env.run(&["undo"]), @r#"
    e572dff8 is now at the end of @1 "Then mend it."
    Undid operation 5 (append)
    @2 (1 turn) is kept on branch main.1. Nothing is deleted.
    Context about 0 → 32 tokens (<1%)
    Redo  undertext redo
    ------- stderr -------
    warning: imported 1 entry that another program appended to the session's file
    "#);
    assert_snapshot!(env.run(&["operations", "-n", "2", "--json"]).masked(), @r#"
    {"type":"operation","session":"e572dff8-2304-400b-856a-555ac3a4558d","operation":7,"at":"2001-02-03T04:05:11.001Z","command":"undo","detail":{"undoes":5,"command":"append","left":["main.1"]},"entries":0,"undoes":5,"hash":"entry-id","undone":false}
    {"type":"operation","session":"e572dff8-2304-400b-856a-555ac3a4558d","operation":6,"at":"2001-02-03T04:05:11.000Z","command":"catch-up","detail":{"entries":1},"entries":1,"undoes":null,"hash":"entry-id","undone":false}
    "#);
}

#[test]
fn why_the_session_cannot_be_opened_is_told_of_any_word() {
    let env = TestEnv::new();
    conversation(&env);
    crate::fixture::settle(&store(&env));
    let database = Connection::open(store(&env).join("store.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    let refused = env.run(&["undo", "boat"]);
    assert_eq!(refused.code(), Some(4), "{refused}");
    assert!(!refused.stderr.contains("neither an operation"), "{refused}");
}

#[test]
fn what_cannot_be_undone_is_refused() {
    let env = TestEnv::new();
    conversation(&env);
    assert_snapshot!(env.run(&["undo", "--op", "1"]), @"
    ------- stderr -------
    error: operation 1 cannot be undone: it created the session
    hint: list the operations: undertext undo --list
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["undo", "--op", "99"]), @"
    ------- stderr -------
    error: there is no operation 99
    hint: list the operations: undertext undo --list
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["undo", "-1"]), @"
    ------- stderr -------
    error: unexpected argument '-1' found
    hint: see the help: undertext undo --help
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["redo"]), @"
    ------- stderr -------
    error: there is nothing to redo
    hint: list the operations: undertext undo --list
    [exit status: 2]
    ");
}

#[test]
fn the_operations_of_all_sessions_are_listed_the_newest_first() {
    let env = TestEnv::new();
    let older = conversation(&env);
    env.run(&["new", "-q"]).success();
    env.run(&["append", "-q", "And the second?"]).success();
    env.run(&["checkpoint", "-q", "-s", &older]).success();
    let said = env.run(&["operations", "--all"]).success().stdout;
    let found: Vec<_> =
        said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    assert_eq!(found[0][..2], [&older[..8], "6"], "{said}");
    assert_eq!((found[0][4], found[1][4], found[2][4]), ("checkpoint", "append", "new"), "{said}");
    assert_eq!(found.len(), 8, "{said}");
    let newest = env.run(&["operations", "--all", "-n", "1", "--json"]).success().stdout;
    let newest = json(newest.lines().next().unwrap());
    assert_eq!((&newest["session"], &newest["operation"]), (&older.into(), &6.into()));
}

#[test]
fn an_undo_that_hides_a_session_says_so() {
    let env = TestEnv::new();
    let session = conversation(&env);
    env.run(&["sessions", "--hide", &session]).success();
    assert_snapshot!(env.run(&["undo", "6", "--dry-run", "-s", &session]), @"
    ------- stderr -------
    error: you named two sessions: 6, and e572dff8-2304-400b-856a-555ac3a4558d with -s
    hint: list the sessions: undertext sessions
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["undo", "6", "-s", &session]), @"
    ------- stderr -------
    error: you named two sessions: 6, and e572dff8-2304-400b-856a-555ac3a4558d with -s
    hint: list the sessions: undertext sessions
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["redo", "-s", &session]), @"
    ------- stderr -------
    error: there is nothing to redo
    hint: list the operations: undertext undo e572dff8 --list
    [exit status: 2]
    ");
}

#[test]
fn a_program_is_told_of_which_session_and_store_a_hint_is() {
    let env = TestEnv::new();
    let store = env.home().join("of its own");
    let store = store.to_str().unwrap();
    let made = env.run(&["new", "--json", "--store", store]).success();
    let id = json(&made.stdout)["session"].as_str().unwrap().to_owned();
    env.run(&["new", "-q", "--store", store]).success();
    let told = |stderr: &str| json(stderr.lines().last().unwrap());
    let refused = env.run(&["undo", "--op", "99", "--json", "-s", &id, "--store", store]);
    assert_eq!(refused.code(), Some(1), "{refused}");
    let line = &told(&refused.stderr)["hints"][0]["line"];
    assert_eq!((&line["verb"], &line["session"]), (&"undo".into(), &id[..8].into()));
    assert_eq!(line["store"], "$HOME/of its own");
    // A command that names no session is about the one at hand.
    let refused = env.run(&["undo", "--op", "99", "--json", "--store", store]);
    assert!(told(&refused.stderr)["hints"][0]["line"]["session"].is_null(), "{refused}");
}

/// The ids of sessions that began within a minute begin alike.
#[test]
fn the_operations_of_all_sessions_tell_these_apart() {
    let env = TestEnv::new();
    let weather = include_str!("../../../examples/codex-weather.jsonl");
    let ids = ["019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a", "019fc000-9999-7a30-8b52-6f0e9d8c7b6a"];
    for id in ids {
        let name = env.project().join(format!("{id}.jsonl"));
        std::fs::write(name, weather.replace(ids[0], id)).unwrap();
    }
    env.run(&["import", "-q", "."]).success();
    let said = env.run(&["operations", "--all"]).success().stdout;
    let begin = |short: &str| said.lines().filter(|line| line.starts_with(short)).count();
    assert_eq!((begin("019fc000-4  "), begin("019fc000-9  ")), (1, 1), "{said}");
}

#[test]
fn to_undo_and_redo_again_and_again_leaves_no_branch_where_nothing_came() {
    let kept = Kept::claude();
    kept.env.run(&["import", "-q"]).success();
    let listed = kept.env.run(&["sessions", "-a", "--json"]).success().stdout;
    let session = json(listed.lines().next().unwrap())["session"].as_str().unwrap().to_owned();
    kept.env.run(&["revert", "1", "-s", &session]).success();
    let reverted = kept.said(&[&session]);
    for n in 0..3 {
        for verb in ["undo", "redo"] {
            let done = json(&kept.env.run(&[verb, "-s", &session, "--json"]).success().stdout);
            assert_eq!(done["left"], serde_json::json!([]), "{verb} {n}");
        }
        assert_eq!(kept.said(&[&session]), reverted);
    }
    let branches = kept.env.run(&["branch", "--json", "-s", &session]).success().stdout;
    assert_eq!(branches.lines().count(), 2, "{branches}");
}
