//! Looking ahead: a dry run says what its change then does, and readers show what an agent wrote since. Neither leaves a trace.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use md5::{Digest as _, Md5};
use serde_json::{Value, json as value};

use super::json;
use crate::env::TestEnv;

/// The examples, where their agents keep them.
const KEPT: [(&str, &str); 4] = [
    ("claude-garden.jsonl", ".claude/projects/-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl"),
    ("codex-weather.jsonl", ".codex/sessions/2026/08/20/rollout-2026-08-20T09-00-00-weather.jsonl"),
    ("pi-boat.jsonl", ".pi/agent/sessions/--boat--/boat.jsonl"),
    ("kimi-lighthouse", ".kimi/sessions"),
];

/// Returns a home in which an agent's session lies and is taken in.
fn home(example: &str, place: &str) -> TestEnv {
    let env = TestEnv::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example);
    let to = env.home().join(place);
    if from.is_dir() {
        // Kimi CLI resumes what lies in a folder that is called after the one in which it works.
        let folder = Md5::digest(env.project().to_str().unwrap());
        let hex: Vec<String> = folder.iter().map(|byte| format!("{byte:02x}")).collect();
        let to = to.join(hex.concat());
        fs::create_dir_all(&to).unwrap();
        crate::format::copy(&from, &to);
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
    env.run(&["import"]).success();
    env
}

/// Returns every file below a folder, but for the one by which processes share an open database.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut left = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                left.push(path);
            } else if !path.ends_with("store.db-shm") && !path.ends_with("undertext/looked") {
                found.push((path.clone(), fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn an_undo_tells_which_branch_keeps_what_it_left() {
    // What Codex says again has no checkpoint of its own.
    for (example, place) in KEPT.into_iter().filter(|(example, _)| !example.starts_with("codex")) {
        let env = home(example, place);
        let session = json(&env.run(&["sessions", "--json"]).success().stdout)["session"].clone();
        let session = session.as_str().unwrap();
        for args in [&["revert", "1"][..], &["revert", "main.1"]] {
            env.run(&[args, &["-s", session]].concat()).success();
        }
        let undone = env.run(&["undo", "-s", session]).success();
        assert!(undone.stdout.contains("on branch main.1"), "{example}: {undone}");
    }
}

#[test]
fn a_turn_before_the_head_is_another_one() {
    let (example, place) = KEPT[0];
    let env = home(example, place);
    let shown = |which: &str| env.run(&["show", which, "7c2a"]).success().stdout;
    assert!(shown("HEAD").contains("Only for the beans"));
    assert_ne!(shown("HEAD~1"), shown("HEAD"));
    assert_eq!(shown("HEAD~"), shown("HEAD~1"));
    assert_ne!(shown("HEAD~2"), shown("HEAD~1"));
}

#[test]
fn a_dry_run_says_what_the_change_then_does_and_leaves_no_trace() {
    for (example, place) in KEPT {
        let env = home(example, place);
        let told = |args: &[&str]| -> Value {
            let said = env.run(&[args, &["--json"]].concat()).success().stdout;
            let mut told = json(said.lines().next().unwrap());
            // Where a file begins, or a record, its name is drawn.
            for drawn in ["entry", "note", "dry_run", "written", "rotated"] {
                told.as_object_mut().unwrap().remove(drawn);
            }
            told
        };
        let session =
            json(env.run(&["sessions", "--json"]).success().stdout.lines().next().unwrap());
        let session = session["session"].as_str().unwrap();
        let changes: [&[&str]; 5] = [
            &["revert", "1", "-m", "Look again."],
            &["switch", "main.1"],
            &["undo"],
            &["redo"],
            &["clear"],
        ];
        for change in changes {
            let change = [change, &["-s", session]].concat();
            // What the change before this one has set aside is looked at once.
            env.run(&["sessions"]).success();
            let before = files(env.home());
            let dry = told(&[&change[..], &["--dry-run"]].concat());
            let said = env.run(&[&change[..], &["--dry-run"]].concat()).success().stdout;
            assert!(said.contains("Nothing was changed: this was a dry run"), "{said}");
            assert!(!said.contains("Undo  "), "{said}");
            assert!(files(env.home()) == before, "{example} {change:?}");
            assert_eq!(dry, told(&change), "{example} {change:?}");
            assert!(files(env.home()) != before, "{example} {change:?}");
        }
    }
}

#[test]
fn a_dry_run_on_a_file_that_no_store_has_makes_none() {
    let env = TestEnv::new();
    let file = env.home().join("garden.jsonl");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl"), &file)
        .unwrap();
    let before = files(env.home());
    let file = file.to_str().unwrap();
    let said = env.run(&["revert", "2", file, "--dry-run"]).success().stdout;
    assert!(said.contains("would be just before @2"), "{said}");
    assert!(files(env.home()) == before);
    env.run(&["new"]).success();
    let before = files(env.home());
    assert_eq!(env.run(&["revert", "2", file, "--dry-run"]).success().stdout, said);
    assert!(files(env.home()) == before);
}

#[test]
fn what_an_agent_wrote_since_is_read_before_anything_takes_it_in() {
    let (example, place) = KEPT[0];
    let env = home(example, place);
    let mut live = OpenOptions::new().append(true).open(env.home().join(place)).unwrap();
    let held = fs::read_to_string(env.home().join(place)).unwrap();
    let records: Vec<Value> = held.lines().map(json).collect();
    let newest = |is: &dyn Fn(&Value) -> bool| records.iter().rfind(|record| is(record)).unwrap();
    let mut record = newest(&|record| record["message"]["content"].is_string()).clone();
    let leaf = newest(&|record| record["uuid"].is_string());
    record["parentUuid"] = leaf["uuid"].clone();
    record["uuid"] = value!("c0ffee00-0000-4000-8000-000000000001");
    record["message"]["content"] = value!("And the roses?");
    record["timestamp"] = value!("2026-08-20T10:00:00.000Z");
    writeln!(live, "{record}").unwrap();
    drop(live);
    let before = files(env.home());
    let said = |args: &[&str]| env.run(args).success().stdout;
    assert!(said(&["log", "-n", "1", "-s", "7c2a"]).contains("And the roses?"));
    assert!(said(&["graph", "-s", "7c2a"]).contains("And the roses?"));
    assert!(said(&["checkpoints", "-s", "7c2a"]).contains("And the roses?"));
    assert!(said(&["context", "-s", "7c2a"]).len() > 1);
    assert!(said(&["status", "-s", "7c2a"]).contains("the new records are shown"));
    let listed = json(said(&["sessions", "--json"]).lines().next().unwrap());
    assert_eq!(listed["active"], "2026-08-20T10:00:00.000Z");
    let operations = said(&["operations", "--json", "-s", "7c2a"]);
    assert_eq!(operations.lines().count(), 1, "it is not taken in");
    let dry = said(&["revert", "4", "--dry-run", "-s", "7c2a"]);
    assert!(dry.contains("And the roses?"), "{dry}");
    assert!(files(env.home()) == before);
}
