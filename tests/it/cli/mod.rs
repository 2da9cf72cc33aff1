//! Commands as transcripts, a file for each or for those that belong together.

mod append;
mod audit;
mod branch;
mod checkpoint;
mod faults;
mod revert;
mod sessions;
mod undo;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::env::TestEnv;

/// Begins a session of two turns and returns its id.
fn conversation(env: &TestEnv) -> String {
    let made = json(&env.run(&["new", "--json"]).success().stdout);
    for (role, text) in [
        ("user", "Why does the build fail?"),
        ("assistant", "A symbol is missing."),
        ("user", "Then mend it."),
        ("assistant", "Done."),
    ] {
        env.run(&["append", "-q", "--role", role, text]).success();
    }
    made["session"].as_str().unwrap().to_owned()
}

/// Returns the one JSON line of an output.
#[track_caller]
fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// Returns the folder of the store.
fn store(env: &TestEnv) -> PathBuf {
    env.home().join(".local/share/undertext")
}

/// Returns the bytes of a session's live file.
fn live(env: &TestEnv, session: &str) -> Vec<u8> {
    fs::read(live_path(env, session)).unwrap()
}

fn live_path(env: &TestEnv, session: &str) -> PathBuf {
    store(env).join("transcripts").join(format!("{session}.jsonl"))
}
