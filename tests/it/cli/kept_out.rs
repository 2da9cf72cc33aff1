//! What was taken out of the store is kept out of it, however it comes again.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use super::json;
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
fn what_an_agent_says_again_is_covered_as_it_is_taken_in() {
    let env = TestEnv::new();
    let files = redacted(&env);
    let one = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";
    append(&files[0], &said(one, ("r6", "r7"), &format!("once more: {SECRET}")));
    append(&files[0], &said(one, ("r7", "r8"), "and dG9rLTlmOGU3ZDZjLzViNGE9aGlkZGVu in base64"));
    assert_snapshot!(env.run(&["checkpoint", "-s", "8f14"]).success(), @r"
    Session 8f14e45f  the token is [redacted]**************, use it  (claude)
    Checkpoint 6
    ------- stderr -------
    warning: 2 new lines contain redacted text; the store leaves that text out, but the file still contains it
    warning: imported 2 entries that another program appended to the session's file
    hint: to come back to this checkpoint: undertext revert 6 -s 8f14e45f
    ");
    assert_eq!(in_the_store(&env), Vec::<PathBuf>::new());
    let log = env.run(&["log", "-s", "8f14"]).success();
    assert!(log.stdout.contains("once more: [redacted]"), "{log}");
    assert!(!log.stdout.contains(SECRET), "{log}");
    // The file is the one that is known, and what comes behind is read from there on.
    append(&files[0], &said(one, ("r8", "r9"), "nothing of it"));
    let caught_up = env.run(&["checkpoint", "-s", "8f14"]).success();
    assert!(!caught_up.stderr.contains("rewritten"), "{caught_up}");
    assert!(env.run(&["import"]).success().stdout.contains("0 new entries"));
    assert!(!env.run(&["graph", "-s", "8f14"]).success().stdout.contains("outside"));
    let verified = json(env.run(&["verify", "--json"]).success().stdout.lines().last().unwrap());
    assert_eq!((&verified["ok"], &verified["redacted"]), (&true.into(), &19.into()), "{verified}");
    assert!(env.run(&["store", "rebuild"]).success().stdout.contains("equal"));
}

/// A hash of a short one could be tried, so none is kept.
#[test]
fn a_short_secret_is_said_not_to_be_kept_out() {
    let env = TestEnv::new();
    super::conversation(&env);
    for (secret, is_kept_out) in [("hunter2", false), ("hunter23", true)] {
        env.run(&["append", &format!("it is {secret}.")]).success();
        let planned = env.run_with_stdin(&["redact", "--dry-run", "--json"], secret.as_bytes());
        assert_eq!(super::json(&planned.success().stdout)["kept_out"], is_kept_out);
        let said = env.run_with_stdin(&["redact", "--yes"], secret.as_bytes()).success();
        assert_eq!(said.stderr.contains("is not kept out of later imports"), !is_kept_out);
        let again = env.run(&["append", &format!("it was {secret}.")]);
        assert_eq!(again.code(), Some(if is_kept_out { 2 } else { 0 }), "{again}");
    }
}

#[test]
fn another_session_that_says_it_brings_it_back_as_little_as_a_copy_of_the_old_one() {
    let env = TestEnv::new();
    let old = {
        let other = TestEnv::new();
        let files = sessions(&other);
        files.map(|path| fs::read_to_string(path).unwrap())
    };
    redacted(&env);
    let copies = env.home().join("copies");
    fs::create_dir_all(&copies).unwrap();
    // The same sessions as they were, one under another id, and an unfinished line.
    let third = "45c48cce-2e2d-4fbd-8a0f-0e2f1c5a9d11";
    let renamed = old[0].replace("8f14e45f-ceea-467f-a26a-5dba2f5b6d35", third);
    fs::write(copies.join("8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl"), &old[0]).unwrap();
    fs::write(
        copies.join("rollout-2026-01-02T00-00-00-019a0000-0000-7000-8000-000000000001.jsonl"),
        &old[2],
    )
    .unwrap();
    fs::write(copies.join(format!("{third}.jsonl")), format!("{renamed}{{\"torn\":\"{SECRET}"))
        .unwrap();
    let copies = copies.display().to_string();
    env.run(&["import", &copies]).success();
    assert_eq!(in_the_store(&env), Vec::<PathBuf>::new());
    let log = env.run(&["log", "-s", "45c4"]).success();
    assert!(log.stdout.contains("the token is [redacted]**************, use it"), "{log}");
    assert!(env.run(&["import", &copies]).success().stdout.contains("0 new entries"));
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
fn a_list_of_names_brings_nothing_back_and_is_told_of() {
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
            assert!(done.stderr.contains(&format!("{name} is stored next to")), "{done}");
        }
        env.run(&["import"]).success();
        assert!(!env.run(&["sessions"]).success().stdout.contains("name tok-"));
        assert!(!traces(&env).contains(&codex));
        env.run(&["verify"]).success();
    }
}

#[test]
fn undertext_itself_writes_nothing_that_was_taken_out() {
    let env = TestEnv::new();
    let files = redacted(&env);
    let before = fs::read(&files[1]).unwrap();
    assert_snapshot!(env.run(&["append", "-s", "c9f0", &format!("use {SECRET}")]), @r"
    ------- stderr -------
    error: nothing was written: the text contains something that was redacted or forgotten
    hint: leave that part out and try again: what was redacted or forgotten cannot be written again
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["revert", "0", "-s", "c9f0", "-m", &format!("not {SECRET}")]), @r"
    ------- stderr -------
    error: nothing was written: the text contains something that was redacted or forgotten
    hint: leave that part out and try again: what was redacted or forgotten cannot be written again
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["checkpoint", "-s", "c9f0", "-m", &format!("not {SECRET}")]), @r"
    ------- stderr -------
    error: nothing was written: the text contains something that was redacted or forgotten
    hint: leave that part out and try again: what was redacted or forgotten cannot be written again
    [exit status: 2]
    ");
    assert_eq!(fs::read(&files[1]).unwrap(), before);
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    env.run(&["append", "-s", "c9f0", "use another one"]).success();
    env.run(&["verify"]).success();
}
