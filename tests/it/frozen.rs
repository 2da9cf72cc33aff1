//! Stores of released versions, which open for ever: `tests/data/vN` holds one that version N made, in which a little of
//! everything was done, and `answers.txt` what that version said of it.
//!
//! Invariant: neither is ever made again. An answer may gain keys, and loses none.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use undertext::{
    ops::{Archive, Machine},
    store::Access,
};

use crate::env::TestEnv;
use crate::format::copy;

/// The versions that were released.
const RELEASED: [&str; 1] = ["v2"];

/// Returns the folder of what a version made.
fn made(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(version)
}

/// Returns a machine with a copy of a version's store, which is its user's own.
fn opened(version: &str) -> TestEnv {
    let env = TestEnv::new();
    let store = env.home().join(".local/share/undertext");
    fs::create_dir_all(&store).unwrap();
    copy(&made(version), &store);
    fs::remove_file(store.join("answers.txt")).unwrap();
    env
}

/// Asserts that an answer says all that another one did.
#[track_caller]
fn assert_says(said: &Value, wanted: &Value, line: &str) {
    match (said, wanted) {
        (Value::Object(said), Value::Object(wanted)) => {
            for (key, wanted) in wanted {
                let said = said.get(key);
                assert!(said.is_some(), "{line}: {key} is gone");
                assert_says(said.unwrap(), wanted, &format!("{line}: {key}"));
            }
        }
        (Value::Array(said), Value::Array(wanted)) => {
            assert_eq!(said.len(), wanted.len(), "{line}");
            for (said, wanted) in said.iter().zip(wanted) {
                assert_says(said, wanted, line);
            }
        }
        _ => assert_eq!(said, wanted, "{line}"),
    }
}

#[test]
fn a_store_of_every_released_version_says_what_it_said() {
    for version in RELEASED {
        let env = opened(version);
        let answers = fs::read_to_string(made(version).join("answers.txt")).unwrap();
        let mut asked = 0;
        for block in answers.split("$ undertext ").filter(|block| !block.is_empty()) {
            let (line, wanted) = block.split_once('\n').unwrap();
            let (wanted, exit) = wanted.rsplit_once("[exit code: ").unwrap();
            let output = env.command().args(line.split(' ')).output().unwrap();
            assert_eq!(output.status.code().unwrap().to_string(), exit.trim_end_matches("]\n"));
            asked += 1;
            if line.starts_with("export") {
                let hash = blake3::hash(&output.stdout);
                let told = format!("[{} bytes, {hash}]\n", output.stdout.len());
                assert_eq!(told, wanted, "{line}");
                continue;
            }
            let said = String::from_utf8(output.stdout).unwrap();
            // Up to 0.2.0 it meant that none are shown.
            if line == "operations --all -n 0 --json" && wanted.is_empty() {
                assert!(!said.is_empty());
                continue;
            }
            assert_eq!(said.lines().count(), wanted.lines().count(), "{line}");
            for (said, wanted) in said.lines().zip(wanted.lines()) {
                let read = |text| serde_json::from_str::<Value>(text).unwrap();
                assert_says(&read(said), &read(wanted), line);
            }
        }
        assert!(asked > 20, "{asked}");
    }
}

#[test]
fn how_far_it_has_come_is_told_while_rows_of_an_older_version_are_made_again() {
    for version in RELEASED {
        let env = opened(version);
        let store = env.home().join(".local/share/undertext");
        let mut told = Vec::new();
        let mut open = || {
            let mut tell = |done, all| told.push((done, all));
            Archive::open_telling(&store, Access::Write, Box::new(Machine), &mut tell).unwrap();
            std::mem::take(&mut told)
        };
        let first = open();
        let all = first.len() as u64;
        assert!(all > 1);
        assert_eq!(first, (0..all).map(|done| (done, all)).collect::<Vec<_>>());
        assert_eq!(open(), []);
    }
}

#[test]
fn a_store_of_every_released_version_is_whole_and_goes_on() {
    for version in RELEASED {
        let env = opened(version);
        let store = env.home().join(".local/share/undertext");
        let before = fs::read(store.join("store.db")).unwrap();
        let told = env.run(&["verify"]).success().stdout;
        assert!(told.contains("an older version made them"), "{told}");
        assert!(fs::read(store.join("store.db")).unwrap() == before, "to read it changed it");
        let native = env.run(&["sessions", "--agent", "native", "--json"]).success().stdout;
        let native: Value = serde_json::from_str(native.trim()).unwrap();
        let native = native["session"].as_str().unwrap();
        let entries = || {
            let told = env.run(&["store", "stats", "--json"]).success().stdout;
            let told = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            told.filter_map(|told| told["entries"].as_u64()).sum::<u64>()
        };
        let held = entries();
        env.run(&["append", "-q", "-s", native, "And on."]).success();
        assert_eq!(entries(), held + 1, "what an older version did not sum up");
        env.run(&["revert", "1", "-s", native]).success();
        env.run(&["undo", "-s", native]).success();
        env.run(&["store", "pack"]).success();
        env.run(&["store", "rebuild"]).success();
        env.run(&["verify"]).success();
        let copy = env.home().join("copy");
        env.run(&["store", "backup", copy.to_str().unwrap()]).success();
    }
}
