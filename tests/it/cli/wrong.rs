//! Wrong calls: lines that a person types by mistake, each in a shell, with its exit code and its whole answer.
//!
//! The calls stand in groups, each on a machine of its own; all answers stand in one snapshot.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Output, Stdio};

use insta::assert_snapshot;
use rusqlite::Connection;

use super::calls::{GROUPS, Group, Machine};
use super::{conversation, json, pipe, store};
use crate::env::TestEnv;

/// An answer has at most this many lines: what is wrong, and two or three next steps.
const LONGEST: usize = 4;

fn make(machine: Machine) -> TestEnv {
    match machine {
        Machine::Project => project(),
        Machine::Twins => twins(),
        Machine::Bare => TestEnv::new(),
        Machine::Newer => newer(),
        Machine::Foreign => foreign(),
        Machine::Unset => unset(),
    }
}

/// Returns a machine with a session in a project, one of Claude Code, and files that hold no session.
fn project() -> TestEnv {
    let env = TestEnv::new();
    claude(&env, "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40");
    conversation(&env);
    for args in [
        ["revert", "-q", "1"].as_slice(),
        &["append", "-q", "What about tests?"],
        &["append", "-q", "--call", "Read", "--input", "{}", "--id", "call"],
    ] {
        env.run(args).success();
    }
    let project = env.project();
    fs::create_dir(project.join("folder")).unwrap();
    pipe(&project.join("pipe"));
    for (name, bytes) in [
        ("notes.txt", b"Nothing.\n".as_slice()),
        ("empty.jsonl", b""),
        ("binary.jsonl", b"\x00\xff\xfe\n\x80"),
        ("broken.jsonl", b"{\"type\":\"user\", broken\n"),
    ] {
        fs::write(project.join(name), bytes).unwrap();
    }
    env
}

/// Takes in a session of Claude Code, under an id.
fn claude(env: &TestEnv, id: &str) {
    let folder = env.home().join(".claude/projects/-garden");
    fs::create_dir_all(&folder).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let text = fs::read_to_string(example).unwrap();
    let text = text.replace("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40", id);
    fs::write(folder.join(format!("{id}.jsonl")), text).unwrap();
    env.run(&["import", "-q"]).success();
}

/// Returns a machine with two sessions whose ids begin alike, of one title.
fn twins() -> TestEnv {
    let env = TestEnv::new();
    claude(&env, "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40");
    claude(&env, "7c2a51de-1111-4e6f-8a53-0d1f6b7e2c40");
    env
}

fn newer() -> TestEnv {
    let env = project();
    crate::fixture::settle(&store(&env));
    let database = Connection::open(store(&env).join("store.db")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    env
}

fn foreign() -> TestEnv {
    let env = TestEnv::new();
    fs::create_dir_all(store(&env)).unwrap();
    fs::write(store(&env).join("store.db"), "no store".repeat(1000)).unwrap();
    env
}

fn unset() -> TestEnv {
    let env = project();
    let folder = env.home().join(".config/undertext");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "[window]\nblock = 3\ndefault = \"big\"\n").unwrap();
    env
}

/// Types a line.
fn type_line(env: &TestEnv, line: &str) -> Output {
    env.shell("sh", line).stdin(Stdio::null()).output().unwrap()
}

/// Returns what is in the store and in the project.
fn contents(env: &TestEnv) -> (String, usize) {
    let held = env.run(&["operations", "--all", "-n", "0", "--json"]).stdout;
    (held, fs::read_dir(env.project()).unwrap().count())
}

/// Returns what an answer says, with the home as it is called.
fn shown(env: &TestEnv, bytes: &[u8]) -> String {
    let home = env.home().canonicalize().unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.replace(home.to_str().unwrap(), "$HOME")
}

/// Returns a text in which what stands between two others is left out.
fn masked(text: &str, before: &str, behind: &str) -> String {
    let Some((head, rest)) = text.split_once(before) else { return text.to_owned() };
    let (_, tail) = rest.split_once(behind).unwrap();
    format!("{head}{before}..{behind}{tail}")
}

#[test]
fn a_wrong_call_is_answered_in_plain_words_with_a_next_step_and_changes_nothing() {
    let mut all = String::new();
    for Group { title, machine, exit, calls } in GROUPS {
        let env = make(machine);
        writeln!(all, "# {title}: exit code {exit}\n").unwrap();
        let before = contents(&env);
        for call in calls {
            let output = type_line(&env, call);
            let error = shown(&env, &output.stderr);
            let said = shown(&env, &output.stdout) + &error;
            let code = output.status.code();
            // What is not there is no wrong use.
            let is_absent = exit == 2 && code == Some(1);
            let exit = if is_absent { 1 } else { exit };
            assert_eq!(code, Some(exit), "{call}: {said}");
            let said = if is_absent { format!("(exit code 1) {said}") } else { said };
            // The id of an entry covers the path of the home folder, and each change of the store has a version.
            let said = masked(&said, "HEAD (", ")");
            let said = masked(&said, "this undertext reads version ", "\n");
            writeln!(all, "$ {call}\n{said}").unwrap();
            check_words(call, exit, &error);
            if exit != 0 {
                check_json(&env, call, exit, &error);
            }
        }
        assert_eq!(contents(&env), before, "{title}: something is changed");
    }
    assert_snapshot!("calls", all);
}

/// Returns the command lines that an answer hints at.
fn hinted(said: &str) -> impl Iterator<Item = String> {
    let hints = said.lines().filter(|line| line.starts_with("hint: "));
    hints.filter_map(|hint| Some(format!("undertext {}", hint.split_once(": undertext ")?.1)))
}

#[test]
fn every_hint_after_a_wrong_call_works_when_it_is_typed() {
    let mut failed = Vec::new();
    for Group { title, machine, calls, .. } in GROUPS {
        let mut env = make(machine);
        let before = contents(&env);
        let mut typed = BTreeSet::new();
        for call in calls {
            let output = type_line(&env, call);
            let said = String::from_utf8(output.stderr).unwrap();
            // What is too short to be shrunk stays so for who insists.
            let hints = hinted(&said)
                .filter(|hint| !hint.ends_with("--insist") && !hint.ends_with(" PATH"));
            for hint in hints.filter(|hint| typed.insert(hint.clone())) {
                // A hint that ends with `-` reads what is typed to it, as a text or as a record.
                let record = r#"{"type":"user","message":{"role":"user","content":"Go on."}}"#;
                let output = type_line(&env, &format!("echo '{record}' | {hint}"));
                let answer = shown(&env, &output.stderr);
                let works = matches!(output.status.code(), Some(0 | 1));
                if !works || answer.contains("error: ") {
                    failed.push(format!("{title}: {call}\n  hints at {hint}\n  {answer}"));
                }
                if contents(&env) != before {
                    env = make(machine);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// Holds that an answer is short, in no words of another program, and says what to type next.
fn check_words(call: &str, exit: i32, error: &str) {
    for foreign in [
        "invalid digit",
        "to pass '",
        "try '--help'",
        "tip:",
        "unrecognized",
        "out of range",
        "os error",
        "caused by",
        "Usage:",
        "struct ",
        "u64",
    ] {
        assert!(!error.contains(foreign), "{call}: {error}");
    }
    if exit != 0 {
        let lines = error.lines().skip_while(|line| !line.starts_with("error: ")).count();
        assert!((1..=LONGEST).contains(&lines), "{call}: {error}");
        let has_next = error.contains("\nhint: ") || error.contains("; ");
        assert!(has_next, "{call} says no next step: {error}");
    }
}

/// Holds that a program is told the same as one object.
fn check_json(env: &TestEnv, call: &str, exit: i32, error: &str) {
    let output = type_line(env, &call.replacen("undertext", "undertext --json", 1));
    assert_eq!(output.status.code(), Some(exit), "{call} --json");
    let told = shown(env, &output.stderr);
    let objects: Vec<&str> = told.lines().filter(|line| line.starts_with('{')).collect();
    let [object] = objects.as_slice() else { panic!("{call} --json: {told}") };
    let object = json(object);
    assert_eq!((&object["type"], object["exit"].as_i64()), (&"error".into(), Some(exit.into())));
    let first = object["error"].as_str().unwrap();
    assert!(error.contains(&format!("error: {first}")), "{call} --json: {told}");
    let hints = error.lines().filter(|line| line.starts_with("hint: ")).count();
    assert_eq!(object["hints"].as_array().unwrap().len(), hints, "{call} --json: {told}");
    assert!(!told.contains("hint: ") && !told.contains("error: "), "{call} --json: {told}");
}
