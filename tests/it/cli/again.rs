//! Redacted lines that arrive again: equal ones are covered, others are found by the next search.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::redact::{SECRET, sessions, traces};
use crate::env::TestEnv;

/// Takes in three sessions, and takes the secret out of them.
fn redacted(env: &TestEnv) -> [PathBuf; 3] {
    let files = sessions(env);
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    assert_eq!(traces(env), Vec::<PathBuf>::new());
    files
}

/// Returns a record of Claude Code in which something is said.
pub(super) fn said(id: &str, (parent, name): (&str, &str), said: &str) -> String {
    format!(
        "{{\"parentUuid\":\"{parent}\",\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
         \"sessionId\":\"{id}\",\"version\":\"2.1.0\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\
         \"content\":{}}},\"uuid\":\"{name}\",\"timestamp\":\"2026-01-01T00:01:00.000Z\"}}\n",
        serde_json::to_string(said).unwrap()
    )
}

pub(super) fn append(path: &Path, text: &str) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

/// Returns the files of the store that have the secret.
fn in_the_store(env: &TestEnv) -> Vec<PathBuf> {
    let store = env.home().join(".local/share/undertext");
    traces(env).into_iter().filter(|path| path.starts_with(&store)).collect()
}

#[test]
fn a_copy_of_redacted_lines_is_covered_and_a_forked_one_is_found_by_the_next_search() {
    let env = TestEnv::new();
    let old = {
        let other = TestEnv::new();
        let files = sessions(&other);
        files.map(|path| fs::read_to_string(path).unwrap())
    };
    redacted(&env);
    let copies = env.home().join("copies");
    fs::create_dir_all(&copies).unwrap();
    let one = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";
    fs::write(copies.join(format!("{one}.jsonl")), &old[0]).unwrap();
    fs::write(
        copies.join("rollout-2026-01-02T00-00-00-019a0000-0000-7000-8000-000000000001.jsonl"),
        &old[2],
    )
    .unwrap();
    let folder = copies.display().to_string();
    env.run(&["import", &folder]).success();
    assert_eq!(in_the_store(&env), Vec::<PathBuf>::new());
    assert!(env.run(&["import", &folder]).success().stdout.contains("0 new entries"));
    env.run(&["verify"]).success();
    // Each record of this one names another session, so no line of it equals a redacted one.
    let fork = "45c48cce-2e2d-4fbd-8a0f-0e2f1c5a9d11";
    fs::write(copies.join(format!("{fork}.jsonl")), old[0].replace(one, fork)).unwrap();
    env.run(&["import", &folder]).success();
    assert!(!in_the_store(&env).is_empty());
    let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes());
    assert!(done.stdout.contains("of 1 session; "), "{done}");
    assert_eq!(in_the_store(&env), Vec::<PathBuf>::new());
    let log = env.run(&["log", "-s", "45c4"]).success();
    assert!(log.stdout.contains("the token is [redacted]**************, use it"), "{log}");
    env.run(&["verify"]).success();
}

#[test]
fn lines_of_a_forgotten_session_are_known_wherever_they_come() {
    let env = TestEnv::new();
    let files = sessions(&env);
    let old = fs::read_to_string(&files[2]).unwrap();
    env.run(&["import"]).success();
    env.run(&["forget", "-s", "019a", "--yes"]).success();
    assert!(!fs::read_to_string(&files[2]).unwrap().contains("nothing of the kind"));
    // Another session begins as the forgotten one did: its first record is its own, the others are those that are known.
    let other = "019b0000-0000-7000-8000-000000000002";
    let path = files[2].with_file_name(format!("rollout-2026-01-02T00-00-00-{other}.jsonl"));
    fs::write(&path, old.replace("019a0000-0000-7000-8000-000000000001", other)).unwrap();
    env.run(&["import"]).success();
    let log = env.run(&["log", "-s", "019b"]).success();
    assert!(!log.stdout.contains("nothing of the kind") && !log.stdout.contains("use it"), "{log}");
    env.run(&["verify"]).success();
}

#[test]
fn a_list_of_names_brings_nothing_back_and_is_named() {
    let stdin = SECRET.as_bytes();
    for args in [&["redact", "--yes"][..], &["forget", "019a", "--yes"]] {
        let env = TestEnv::new();
        let [_, _, codex] = sessions(&env);
        let list = env.home().join(".codex/session_index.jsonl");
        let id = "019a0000-0000-7000-8000-000000000001";
        let named = serde_json::json!({ "id": id, "thread_name": format!("name {SECRET}") });
        fs::write(&list, format!("{named}\n")).unwrap();
        let typed =
            serde_json::json!({ "session_id": id, "ts": 1, "text": format!("it is {SECRET}") });
        fs::write(env.home().join(".codex/history.jsonl"), format!("{typed}\n")).unwrap();
        env.run(&["import"]).success();
        assert!(env.run(&["sessions"]).success().stdout.contains("name tok-"));
        let done = env.run_with_stdin(args, stdin).said_no();
        for name in ["session_index.jsonl", "history.jsonl"] {
            assert!(done.stderr.contains(&format!("{name} is an agent's file")), "{done}");
        }
        env.run(&["import"]).success();
        assert!(!env.run(&["sessions"]).success().stdout.contains("name tok-"));
        assert!(!traces(&env).contains(&codex));
        env.run(&["verify"]).success();
    }
}
