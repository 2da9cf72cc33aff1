//! Unfinished lines, as they are read while an agent writes or after it was cut short: what is taken out goes from them too.

use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::Value;

use super::again::{append, said};
use super::json;
use super::redact::holding;
use crate::env::TestEnv;

const ONE: &str = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";
const TWO: &str = "c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90";
const KEY: &str = "ghp_R2kq8vTz0LmXw5YbN3cJ7dHs9fGaPe1uVi4o";
/// What is to be nowhere afterwards.
const WORDS: [&str; 3] = ["Quartermain", "R2kq8v", "ZWJ1bG9u"];

/// Writes a session of Claude Code whose last line ends before some words, and takes it in; returns its file, and the rest of the line.
fn cut_before(env: &TestEnv, id: &str, end: &str) -> (PathBuf, String) {
    let first = said(id, ("", &format!("{id}-1")), "hello")
        .replace("\"parentUuid\":\"\"", "\"parentUuid\":null");
    let words = format!("the client is Zebulon Quartermain, the key {KEY} and some more");
    let second = said(id, (&format!("{id}-1"), &format!("{id}-2")), &words);
    let (begun, rest) = second.split_at(second.find(end).unwrap());
    let path = env.home().join(format!(".claude/projects/-work/{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, format!("{first}{begun}")).unwrap();
    env.run(&["import"]).success();
    (path, rest.to_owned())
}

/// Runs a command that takes something out, with the key on stdin.
fn take_out(env: &TestEnv, args: &[&str]) {
    env.run_with_stdin(&[args, &["--yes"]].concat(), KEY.as_bytes()).success();
}

#[track_caller]
fn assert_intact(env: &TestEnv, what: &str) {
    let verified = env.run(&["verify"]).success();
    assert!(verified.stdout.contains("no damage found"), "{what}: {verified}");
}

const SECRET: &[&str] = &["redact"];
const FOUND: &[&str] = &["redact", "--found"];
const ENTRY: &[&str] = &["redact", "HEAD", "-s", "8f14"];
const FORGET: &[&str] = &["forget", "-s", "8f14"];

#[test]
fn what_was_read_unfinished_goes_with_the_line_that_it_became() {
    // A line that ends within the key has no whole one.
    for end in [" Quartermain,", "GaPe1uVi4o", " and some", " more"] {
        for args in [SECRET, FOUND, ENTRY, FORGET] {
            let env = TestEnv::new();
            let (path, rest) = cut_before(&env, ONE, end);
            append(&path, &rest);
            env.run(&["import"]).success();
            let length = fs::metadata(&path).unwrap().len();
            take_out(&env, args);
            let is_secret = args == SECRET || args == FOUND;
            let gone = if is_secret { &WORDS[1..] } else { &WORDS };
            let what = format!("{args:?} {end}");
            assert_eq!(holding(&env, gone), Vec::<PathBuf>::new(), "{what}");
            assert_eq!(fs::metadata(&path).unwrap().len(), length, "{what}");
            assert_intact(&env, &what);
            env.run(&["store", "rebuild"]).success();
            append(&path, &said(ONE, ("8f14e45f-ceea-467f-a26a-5dba2f5b6d35-2", "c"), "on and on"));
            assert!(env.run(&["log", "-s", "8f14"]).stdout.contains("on and on"), "{what}");
            env.run(&["import"]).success();
            assert_intact(&env, &what);
        }
    }
}

#[test]
fn a_line_that_is_never_finished_goes_from_the_store_and_from_its_file() {
    for end in ["GaPe1uVi4o", " and some"] {
        for args in [SECRET, FORGET] {
            let env = TestEnv::new();
            let (path, _) = cut_before(&env, ONE, end);
            let length = fs::metadata(&path).unwrap().len();
            take_out(&env, args);
            let what = format!("{args:?} {end}");
            assert_eq!(holding(&env, &WORDS), Vec::<PathBuf>::new(), "{what}");
            assert_eq!(fs::metadata(&path).unwrap().len(), length, "{what}");
            env.run(&["import"]).success();
            assert_intact(&env, &what);
            // The agent goes on right where it was cut short.
            append(&path, &said(ONE, ("8f14e45f-ceea-467f-a26a-5dba2f5b6d35-1", "c"), "on and on"));
            assert!(env.run(&["log", "-s", "8f14"]).stdout.contains("on and on"), "{what}");
            env.run(&["import"]).success();
            assert_intact(&env, &what);
        }
    }
}

#[test]
fn a_line_with_a_secret_keeps_nothing_from_being_taken_out_of_other_sessions() {
    for args in [SECRET, FOUND] {
        let env = TestEnv::new();
        let (path, rest) = cut_before(&env, ONE, " more");
        append(&path, &rest);
        cut_before(&env, TWO, " and some");
        take_out(&env, args);
        assert_eq!(holding(&env, &WORDS[1..]), Vec::<PathBuf>::new(), "{args:?}");
        assert_intact(&env, "");
    }
}

#[test]
fn an_unfinished_line_that_an_older_copy_brings_back_does_not_come_in_again() {
    let env = TestEnv::new();
    let (path, rest) = cut_before(&env, ONE, " and some");
    let whole = fs::read(&path).unwrap();
    take_out(&env, FORGET);
    fs::write(&path, whole).unwrap();
    env.run(&["import"]).success();
    assert_eq!(holding(&env, &WORDS), std::slice::from_ref(&path));
    assert_intact(&env, "");
    let again = env.run_with_stdin(&["redact", "--yes"], KEY.as_bytes());
    assert!(again.stderr.contains("that text was overwritten"), "{again}");
    assert_eq!(holding(&env, &WORDS), Vec::<PathBuf>::new());
    // What comes behind it is none of what was forgotten.
    append(&path, &rest);
    env.run(&["import"]).success();
    assert_intact(&env, "");
}

#[test]
fn the_audit_looks_at_lines_that_were_read_unfinished() {
    let env = TestEnv::new();
    let (path, rest) = cut_before(&env, ONE, " and some");
    assert_snapshot!(env.run(&["audit", "--secrets"]), @"
    github-pat
    Zebulon Quartermain, the key gh••••••4o  8f14e45f  in an unfinished line that operation 1 read

    ------- stderr -------
    1 thing that looks like a secret in 1 session
    hint: see what would be redacted: undertext redact --found --dry-run
    [exit status: 1]
    ");
    append(&path, &rest);
    let told = env.run(&["audit", "--secrets", "--json"]);
    let found: Vec<Value> = told.stdout.lines().map(json).collect();
    let places = found[0]["places"].as_array().unwrap();
    let unfinished: Vec<&Value> = places.iter().map(|place| &place["unfinished"]).collect();
    assert_eq!(unfinished, [false, true], "{told}");
    assert_snapshot!(env.run(&["redact", "--found", "--dry-run"]), @"
    found by github-pat
    8f14e45f  1 line  claude  hello
    1 unfinished line also contains the text
    ------- stderr -------
    Nothing was changed
    ");
    assert_snapshot!(env.run(&["redact", "--found", "--yes"]), @r"
    Redacted in 1 line of 1 session and of 1 unfinished line; every entry keeps its id
    overwritten in ~/.claude/projects/-work/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl
    ------- stderr -------
    warning: session 8f14e45f-ceea-467f-a26a-5dba2f5b6d35: imported 1 entry that another program appended to the session's file
    hint: check that everything else is intact: undertext verify
    hint: find copies that are written elsewhere later: undertext audit --secrets
    ");
    assert_eq!(env.run(&["audit", "--secrets"]).code(), Some(0));
}

#[test]
fn a_damaged_store_is_mended_without_what_was_taken_out_of_unfinished_lines() {
    let env = TestEnv::new();
    let (path, rest) = cut_before(&env, ONE, " and some");
    append(&path, &rest);
    take_out(&env, FORGET);
    let store = env.home().join(".local/share/undertext/store.db");
    let db = rusqlite::Connection::open(&store).unwrap();
    db.execute_batch("UPDATE card SET state = x'00'").unwrap();
    drop(db);
    env.run(&["doctor", "--fix"]).success();
    let verified = env.run(&["verify"]).success();
    assert!(verified.stdout.contains("intact, "), "{verified}");
    assert!(!verified.stdout.contains("lost"), "{verified}");
}
