//! Lists are current: what began since the last import is imported before sessions are listed or named.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::{conversation, json, store};
use crate::env::TestEnv;

const FOLDER: &str = ".claude/projects/-work";

/// Writes a session of Claude Code, as the agent would, and returns its file.
fn begin(env: &TestEnv, session: &str, words: &str) -> PathBuf {
    let record = |n: u8, parent: &str, role: &str, words: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"{session}\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\
             \"content\":\"{words}\"}},\"uuid\":\"{session}-{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        )
    };
    let path = env.home().join(FOLDER).join(format!("{session}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let first = format!("\"{session}-1\"");
    fs::write(&path, record(1, "null", "user", words) + &record(2, &first, "assistant", "Done."))
        .unwrap();
    path
}

#[test]
fn a_session_that_began_since_is_listed_found_and_changed_without_an_import() {
    let env = TestEnv::new();
    begin(&env, "5ea0b0a7", "Mend the boat.");
    let first = env.run(&[""; 0]).success();
    assert!(first.stdout.contains("Mend the boat."), "{first}");
    let told = "Found 1 session of Claude Code (";
    assert!(first.stderr.contains(told), "{first}");
    assert!(first.stderr.contains("your agents' files were only read."), "{first}");
    let again = env.run(&["sessions"]).success();
    assert!(again.stdout.contains("Mend the boat.") && again.stderr.is_empty(), "{again}");
    for (session, verb) in [
        ("1ea0b0a7", "sessions"),
        ("2ea0b0a7", "log"),
        ("3ea0b0a7", "graph"),
        ("4ea0b0a7", "show"),
        ("6ea0b0a7", "checkpoint"),
        ("7ea0b0a7", "revert"),
        ("8ea0b0a7", "search"),
    ] {
        begin(&env, session, &format!("Of {verb}"));
        let args: &[&str] = match verb {
            "sessions" => &["sessions"],
            "search" => &["search", "Of search"],
            "show" => &["show", "@0", session],
            "revert" => &["revert", "@0", session],
            "checkpoint" => &["checkpoint", "-s", session],
            verb => &[verb, session],
        };
        let done = env.run(args).success();
        assert!(done.stderr.contains("1 new session, imported in "), "{verb}: {done}");
    }
}

#[test]
fn only_the_users_own_store_takes_in_what_is_new_and_only_where_it_is_wanted() {
    let env = TestEnv::new();
    conversation(&env);
    begin(&env, "5ea0b0a7", "Mend the boat.");
    let is_listed = |args: &[&str]| env.run(args).stdout.contains("Mend the boat.");
    env.run(&["--store", "other", "new"]).success();
    assert!(!is_listed(&["--store", "other", "sessions"]));
    let mut command = env.command();
    let named = command.arg("sessions").env("UNDERTEXT_STORE", env.project().join("other"));
    let named = String::from_utf8(named.output().unwrap().stdout).unwrap();
    assert!(!named.contains("Mend the boat."), "{named}");
    for verb in [&["append", "-q", "More."][..], &["verify"], &["doctor"], &["store", "sizes"]] {
        env.run(verb).success();
    }
    assert!(!is_listed(&["sessions", "--no-import"]));
    let settings = env.home().join(".config/undertext");
    fs::create_dir_all(&settings).unwrap();
    fs::write(settings.join("config.toml"), "[import]\nauto = false\n").unwrap();
    assert!(!is_listed(&["sessions"]));
    // A file that is named is read as it lies there.
    fs::remove_file(settings.join("config.toml")).unwrap();
    let file = begin(&env, "6ea0b0a7", "Paint it.");
    let read = env.run(&["log", file.to_str().unwrap()]).success();
    assert!(!read.stderr.contains("imported"), "{read}");
    assert!(!is_listed(&["sessions", "--no-import"]));
    assert!(is_listed(&["sessions"]));
}

#[test]
fn a_list_goes_on_with_what_the_store_has_where_nothing_can_be_imported() {
    let env = TestEnv::new();
    conversation(&env);
    begin(&env, "5ea0b0a7", "Mend the boat.");
    let lock = File::options().write(true).open(store(&env).join("lock")).unwrap();
    lock.lock().unwrap();
    let busy = env.run(&["sessions"]).success();
    assert!(busy.stdout.contains("Why does the build fail?"), "{busy}");
    assert!(busy.stderr.contains("1 new session file is not imported: "), "{busy}");
    drop(lock);
    let folder = env.home().join(FOLDER);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    env.run(&["sessions"]).success();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let listed = env.run(&["sessions", "--json"]).success();
    assert!(listed.stdout.lines().any(|line| json(line)["session"] == "5ea0b0a7"), "{listed}");
}

#[test]
fn what_is_no_session_is_looked_at_once_until_it_changes() {
    let env = TestEnv::new();
    begin(&env, "5ea0b0a7", "Mend the boat.");
    let other = env.home().join(FOLDER).join("notes.jsonl");
    fs::write(&other, "no session\n").unwrap();
    env.run(&["sessions"]).success();
    let mark = env.home().join(".local/state/undertext/looked");
    let looked = || fs::metadata(&mark).unwrap().modified().unwrap();
    let first = looked();
    env.run(&["sessions"]).success();
    assert_eq!(looked(), first);
    let session = fs::read(begin(&env, "6ea0b0a7", "Paint it.")).unwrap();
    fs::remove_file(env.home().join(FOLDER).join("6ea0b0a7.jsonl")).unwrap();
    fs::write(&other, session).unwrap();
    let listed = env.run(&["sessions"]).success();
    assert!(listed.stdout.contains("Paint it."), "{listed}");
    // Another store has seen none of them.
    fs::remove_dir_all(store(&env)).unwrap();
    let listed = env.run(&["sessions"]).success();
    assert!(listed.stdout.contains("Mend the boat."), "{listed}");
}
