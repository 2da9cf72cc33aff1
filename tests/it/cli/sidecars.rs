//! Sidecars: what an agent keeps next to a session's file comes in with it, and goes back with it.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use insta::assert_snapshot;
use rusqlite::Connection;
use rustix::fs::{CWD, FileType, Mode};
use serde_json::Value;

use super::{json, store};
use crate::env::{CommandOutput, TestEnv};
use crate::needs;

const SESSION: &str = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";

/// Writes records of Claude Code, the last of which names a path, and returns where.
fn session(env: &TestEnv, turns: usize, named: &str) -> PathBuf {
    let folder = env.home().join(".claude/projects/-work");
    let path = folder.join(format!("{SESSION}.jsonl"));
    write(&path, records(SESSION, turns, named).as_bytes());
    path
}

fn records(id: &str, turns: usize, named: &str) -> String {
    let record = |n: usize| {
        let parent = if n == 1 { "null".to_owned() } else { format!("\"{id}-{}\"", n - 1) };
        let role = if n % 2 == 1 { "user" } else { "assistant" };
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"{id}\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\
             \"content\":\"<persisted-output> Full output saved to: {named}\"}},\"toolUseResult\":{{\
             \"persistedOutputPath\":\"{named}\"}},\"uuid\":\"{id}-{n}\",\"timestamp\":\"2026-01-01T00:00:00.{n:03}Z\"}}\n"
        )
    };
    (1..=2 * turns).map(record).collect()
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Returns where a sidecar lies.
fn result(env: &TestEnv, name: &str) -> PathBuf {
    env.home().join(format!(".claude/projects/-work/{SESSION}/tool-results/{name}"))
}

fn import(env: &TestEnv) -> Value {
    let output = env.run(&["import", "--json"]).success();
    json(output.stdout.lines().last().unwrap())
}

/// Returns how many sidecars an import takes in.
fn taken(env: &TestEnv) -> u64 {
    import(env)["sidecars"].as_u64().unwrap()
}

fn verified(env: &TestEnv) -> CommandOutput {
    env.run(&["verify"])
}

#[test]
fn what_lies_next_to_a_session_comes_in_with_it_and_goes_back() {
    let env = TestEnv::new();
    let path = session(&env, 2, "elsewhere");
    let claude = env.home().join(".claude");
    let agent = path.with_extension("").join("subagents/agent-a1.jsonl");
    write(&agent, records("agent-a1", 1, "nowhere").as_bytes());
    let files = [
        (result(&env, "bytes.txt"), b"\0\xff said\r\n\0".to_vec()),
        (result(&env, "empty.txt"), Vec::new()),
        (result(&env, "session.txt"), records("another", 2, "nowhere").into_bytes()),
        (result(&env, "long.txt"), b"said again and again\n".repeat(1 << 16)),
        (claude.join(format!("file-history/{SESSION}/0123abcd@v1")), b"fn main() {}\n".to_vec()),
        (claude.join(format!("image-cache/{SESSION}/1.png")), b"\x89PNG\r\n\x1a\n".to_vec()),
        (path.with_extension("").join("custom-title.json"), b"{\"customTitle\":\"T\"}".to_vec()),
        (path.with_file_name("memory").join("MEMORY.md"), b"noted".to_vec()),
        (agent.with_file_name("agent-a1.meta.json"), b"{\"agentType\":\"a\"}".to_vec()),
    ];
    for (path, bytes) in &files {
        write(path, bytes);
    }
    // These belong to no session.
    write(&claude.join("file-history/another/0123abcd@v1"), b"other");
    assert_snapshot!(env.run(&["import"]), @"
    Imported 2 sessions (2 new): 6 new entries, 2.3 kB
    Also imported 9 files stored alongside sessions, such as long tool results
    ------- stderr -------
    Claude Code: ~/.claude/projects
    ");
    let status = env.run(&["status", "-s", SESSION]).success();
    assert!(status.stdout.contains("operation, 8 files stored alongside"), "{status}");
    assert_snapshot!(env.run(&["import"]), @"
    Imported 0 sessions (0 new): 0 new entries, 0 B; 2 files are unchanged
    ------- stderr -------
    Claude Code: ~/.claude/projects
    ");
    assert_eq!(taken(&env), 0);

    for (path, _) in &files {
        fs::remove_file(path).unwrap();
    }
    fs::remove_dir(result(&env, "")).unwrap();
    fs::remove_dir_all(claude.join("file-history")).unwrap();
    let listed = env.run(&["restore", "--all", "--dry-run"]).success();
    assert_eq!(listed.stdout.lines().count(), files.len(), "{listed}");
    assert_snapshot!(env.run(&["restore", "8f14e45f"]), @"
    Session 8f14e45f  Full output saved to: elsewhere  (claude)
    8 files next to it are restored
    ");
    let listed = env.run(&["restore", "--all", "--json"]).success();
    assert_eq!(json(&listed.stdout)["sidecars"].as_array().unwrap().len(), 1, "{listed}");
    for (path, bytes) in &files {
        assert_eq!(fs::read(path).unwrap(), *bytes, "{}", path.display());
        assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    }
    assert!(!claude.join("file-history/another").exists());
    // What was put back is as it was.
    assert_eq!(taken(&env), 0);
    verified(&env).success();
}

#[test]
fn a_changed_one_is_held_once_more_and_the_newest_goes_back() {
    let env = TestEnv::new();
    let path = session(&env, 1, "elsewhere");
    let file = result(&env, "a.txt");
    write(&file, b"one");
    assert_eq!(taken(&env), 1);
    write(&file, b"two!");
    assert_eq!(taken(&env), 1);
    // Another file with the same bytes is nothing new.
    fs::remove_file(&file).unwrap();
    write(&file, b"two!");
    assert_eq!(taken(&env), 0);
    // It was read once more only to see that.
    let operations = || env.run(&["operations", "8f14", "--json"]).success().stdout.lines().count();
    assert_eq!(operations(), 2);
    fs::remove_file(&path).unwrap();
    fs::remove_file(&file).unwrap();
    env.run(&["restore", "8f14"]).success();
    assert_eq!(fs::read(&file).unwrap(), b"two!");
    assert_eq!(fs::read_to_string(&path).unwrap(), records(SESSION, 1, "elsewhere"));

    // Nothing that lies in its place is written over.
    write(&file, b"mine");
    let left = env.run(&["restore", "8f14"]).success();
    assert!(left.stderr.contains("a.txt has changed since the agent wrote it"), "{left}");
    fs::remove_file(&file).unwrap();
    symlink("/nowhere", &file).unwrap();
    env.run(&["restore", "8f14"]).success();
    assert_eq!(fs::read_link(&file).unwrap(), Path::new("/nowhere"));
    verified(&env).success();
}

#[test]
fn no_link_no_pipe_and_no_path_in_a_record_leads_to_a_file() {
    let env = TestEnv::new();
    let secret = env.home().join(".ssh/id_ed25519");
    write(&secret, b"the key itself");
    let path = session(&env, 1, secret.to_str().unwrap());
    write(&result(&env, "a.txt"), b"said");
    symlink(&secret, result(&env, "link.txt")).unwrap();
    let pipe = result(&env, "pipe.txt");
    rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // A folder that is a link leads nowhere too.
    let history = env.home().join(".claude/file-history");
    fs::create_dir_all(&history).unwrap();
    symlink(env.home().join(".ssh"), history.join(SESSION)).unwrap();
    let summary = import(&env);
    assert_eq!((&summary["sidecars"], &summary["oddities"]["left-out"]), (&1.into(), &3.into()));

    // A folder that is named like an agent's, elsewhere, is not one.
    let copy = env.home().join("copy/projects/-work").join(path.file_name().unwrap());
    write(&copy, records(SESSION, 2, "/etc/shadow").as_bytes());
    write(&env.home().join(format!("copy/file-history/{SESSION}/x@v1")), b"the key itself");
    env.run(&["import", copy.to_str().unwrap()]).success();

    crate::fixture::settle(&store(&env));
    let db = Connection::open(store(&env).join("store.db")).unwrap();
    let kept: u64 = db.query_row("SELECT count(*) FROM kept", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 1);
}

#[test]
fn a_folder_that_cannot_be_looked_through_is_named() {
    let env = TestEnv::new();
    session(&env, 1, "elsewhere");
    let folder = result(&env, "a.txt").parent().unwrap().to_owned();
    fs::create_dir_all(folder.parent().unwrap()).unwrap();
    let elsewhere = env.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &folder).unwrap();
    // One apart from the session leads out of all folders of the agent, and one leads nowhere.
    for (apart, to) in [("file-history", "elsewhere"), ("image-cache", "nowhere")] {
        let folder = env.home().join(".claude").join(apart);
        fs::create_dir(&folder).unwrap();
        symlink(env.home().join(to), folder.join(SESSION)).unwrap();
    }
    let told = env.run(&["import", "-v"]).success();
    let is = "it is a folder next to the session that is a link or cannot be listed";
    for folder in
        ["tool-results", &format!("file-history/{SESSION}"), &format!("image-cache/{SESSION}")]
    {
        assert!(told.stdout.contains(&format!("{folder}: {is}")), "{told}");
    }
}

#[test]
fn what_is_too_long_or_too_much_is_left_out_and_named() {
    let env = TestEnv::new();
    session(&env, 1, "elsewhere");
    let long = result(&env, "0-long.txt");
    write(&long, b"");
    fs::File::options().write(true).open(&long).unwrap().set_len((64 << 20) + 1).unwrap();
    for n in 0..1002 {
        write(&result(&env, &format!("{n:04}.txt")), n.to_string().as_bytes());
    }
    let told = env.run(&["import", "-v"]).success();
    assert!(told.stdout.contains("0-long.txt: it is next to the session and is longer"), "{told}");
    assert!(
        told.stdout.contains("1001.txt: the store already has 1,000 files next to the session"),
        "{told}"
    );
    assert!(told.stdout.contains("1,000 files stored alongside sessions"), "{told}");
    assert!(told.stdout.contains("3 files next to their sessions left out"), "{told}");
    assert_eq!(taken(&env), 0);
    // A file that is held may change.
    write(&result(&env, "0007.txt"), b"changed");
    assert_eq!(taken(&env), 1);
}

#[test]
fn an_excluded_session_brings_nothing_next_to_it() {
    let env = TestEnv::new();
    session(&env, 1, "elsewhere");
    write(&result(&env, "a.txt"), b"said");
    let settings = env.home().join(".config/undertext/config.toml");
    write(&settings, format!("exclude.sessions = [\"{SESSION}\"]\n").as_bytes());
    assert_eq!(import(&env)["left_out"]["excluded"], 1);
    assert_eq!(env.run(&["sessions", "--json"]).stdout, "");
    let file = result(&env, "a.txt");
    assert_eq!(env.run(&["import", file.to_str().unwrap()]).code(), Some(3));
    assert_eq!(env.run(&["sessions", "--json"]).stdout, "");
}

#[test]
fn a_file_next_to_a_session_leads_to_it() {
    let env = TestEnv::new();
    session(&env, 1, "elsewhere");
    let file = result(&env, "a.txt");
    write(&file, b"said");
    let found = env.run(&["import", "--json", file.to_str().unwrap()]).success();
    assert_eq!(json(found.stdout.lines().next().unwrap())["session"], SESSION);
    assert_eq!(json(found.stdout.lines().last().unwrap())["sidecars"], 1);
    // It cannot become the session's own.
    let refused = env.run(&["attach", file.to_str().unwrap()]);
    assert_eq!(refused.code(), Some(2), "{refused}");
}

#[test]
fn a_damaged_one_is_named_and_a_backup_has_them_all() {
    let env = TestEnv::new();
    let path = session(&env, 1, "elsewhere");
    let file = result(&env, "a.txt");
    write(&file, b"said");
    assert_eq!(taken(&env), 1);
    env.run(&["store", "backup", "all.bundle"]).success();
    crate::fixture::settle(&store(&env));
    let db = Connection::open(store(&env).join("store.db")).unwrap();
    let changed = db.execute(
        "UPDATE fresh SET body = zeroblob(length(body)) WHERE key = (SELECT line FROM kept)",
        [],
    );
    assert_eq!(changed.unwrap(), 1);
    drop(db);
    let named = verified(&env);
    assert_eq!(named.code(), Some(1), "{named}");
    assert!(named.to_string().contains("kept file 0 of operation 1"), "{named}");
    fs::remove_file(&file).unwrap();
    // What is damaged is not written.
    assert_ne!(env.run(&["restore", "8f14"]).code(), Some(0));
    assert!(path.exists() && !file.exists());
    fs::remove_dir_all(store(&env)).unwrap();
    env.run(&["import", "all.bundle"]).success();
    env.run(&["restore", "8f14"]).success();
    assert_eq!(fs::read(&file).unwrap(), b"said");
}

#[test]
fn the_settings_of_a_session_of_kimi_come_in_and_go_back_with_it() {
    let env = TestEnv::new();
    let folder = env.home().join(".kimi/sessions/5d41402abc4b2a76b9719d911017c592").join(SESSION);
    write(&folder.join("context.jsonl"), b"{\"role\":\"user\",\"content\":\"Light the lamp.\"}\n");
    write(&folder.join("state.json"), b"{\"approval\":{\"yolo\":false}}");
    write(&folder.join("notes.txt"), b"mine");
    assert_eq!(taken(&env), 1);
    assert_eq!(taken(&env), 0);
    fs::remove_dir_all(&folder).unwrap();
    env.run(&["restore", "8f14"]).success();
    assert_eq!(fs::read(folder.join("state.json")).unwrap(), b"{\"approval\":{\"yolo\":false}}");
    assert!(folder.join("context.jsonl").exists() && !folder.join("notes.txt").exists());
}

#[test]
fn an_import_and_a_restore_that_are_killed_leave_whole_files_or_none() {
    let env = TestEnv::new();
    session(&env, 2, "elsewhere");
    let files: Vec<PathBuf> = (0..40).map(|n| result(&env, &format!("{n}.txt"))).collect();
    let bytes = |n: usize| format!("line {n} of what a tool said\n").repeat(4000).into_bytes();
    let killed = |command: &str, pause: u64| {
        let mut program = env.command();
        let quiet =
            program.args([command, "8f14"].iter().take(1 + usize::from(command != "import")));
        let quiet = quiet.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = quiet.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(pause));
        let _ = child.kill();
        child.wait().unwrap();
    };
    let step = needs::rounds(15, 4);
    import(&env);
    for (n, file) in files.iter().enumerate() {
        write(file, &bytes(n));
    }
    for pause in (0..60).step_by(step) {
        killed("import", pause);
        assert_eq!(verified(&env).code(), Some(0), "{pause}");
    }
    import(&env);
    for pause in (0..60).step_by(step) {
        fs::remove_dir_all(result(&env, "")).unwrap();
        killed("restore", pause);
        for (n, file) in files.iter().enumerate() {
            assert!(!file.exists() || fs::read(file).unwrap() == bytes(n), "{pause} {n}");
        }
        // The leftover of one that was cut short is nobody's.
        assert_eq!(taken(&env), 0);
        assert!(matches!(env.run(&["restore", "8f14"]).code(), Some(0 | 2)));
        for (n, file) in files.iter().enumerate() {
            assert_eq!(fs::read(file).unwrap(), bytes(n), "{pause} {n}");
        }
    }
    verified(&env).success();
}

/// Returns a line of what a person typed.
fn typed(session: &str, at: u64, words: &str) -> String {
    format!(
        "{{\"display\":\"{words}\",\"pastedContents\":{{}},\"timestamp\":{at},\"project\":\"/work\",\"sessionId\":\"{session}\"}}\n"
    )
}

#[test]
fn what_sessions_share_comes_back_as_it_was_last_without_what_belongs_to_none() {
    let env = TestEnv::new();
    let other = "1b2c3d4e-ceea-467f-a26a-5dba2f5b6d35";
    let first = session(&env, 1, "elsewhere");
    let second = first.with_file_name(format!("{other}.jsonl"));
    write(&second, records(other, 1, "nowhere").as_bytes());
    let secret = "44444444-ceea-467f-a26a-5dba2f5b6d35";
    let left_out = first.with_file_name(format!("{secret}.jsonl"));
    write(&left_out, records(secret, 1, "nowhere").as_bytes());
    let settings = env.home().join(".config/undertext/config.toml");
    write(&settings, format!("exclude.sessions = [\"{secret}\"]\n").as_bytes());
    let claude = env.home().join(".claude");
    let (history, memory) =
        (claude.join("history.jsonl"), first.with_file_name("memory").join("MEMORY.md"));
    let one = [typed(SESSION, 10, "one"), typed(other, 20, "two"), typed(SESSION, 30, "three")];
    write(
        &history,
        (one.concat()
            + &typed(secret, 31, "hidden")
            + &typed("unknown", 32, "gone")
            + "not JSON\n")
            .as_bytes(),
    );
    write(&memory, b"old");
    assert_eq!(taken(&env), 3);
    assert_eq!(taken(&env), 0);
    // Only what changed is held once more: by the session that it belongs to, or by any of the project.
    let more = typed(other, 40, "four");
    let whole = fs::read_to_string(&history).unwrap() + &more;
    write(&history, (whole + "{\"half\":").as_bytes());
    assert_eq!(taken(&env), 1);
    write(&memory, b"new");
    write(&second, records(other, 2, "nowhere").as_bytes());
    env.run(&["import", second.to_str().unwrap()]).success();
    for wanted in [&["restore", "8f14"][..], &["restore", "1b2c"], &["restore", "--all"]] {
        fs::remove_dir_all(&claude).unwrap();
        env.run(wanted).success();
        assert_eq!(fs::read_to_string(&history).unwrap(), one.concat() + &more, "{wanted:?}");
        let back = fs::read_to_string(&memory).ok();
        // The first session of the folder has looked after it so far, and the second one changed it.
        assert!(back.is_none_or(|back| back == "new"), "{wanted:?}");
    }
    assert_eq!(fs::read(&memory).unwrap(), b"new");
    // What is there is left alone, and never named.
    write(&history, b"mine");
    write(&memory, b"mine");
    fs::remove_file(&first).unwrap();
    let restored = env.run(&["restore", "8f14"]).success();
    assert!(!restored.stderr.contains("left alone"), "{restored}");
    assert_eq!([fs::read(&history).unwrap(), fs::read(&memory).unwrap()], [b"mine", b"mine"]);
    verified(&env).success();
}

#[test]
fn what_a_person_typed_is_taken_out_with_the_rest() {
    let env = TestEnv::new();
    session(&env, 1, "elsewhere");
    let history = env.home().join(".claude/history.jsonl");
    write(&history, typed(SESSION, 10, "the key is hunter2hunter2").as_bytes());
    assert_eq!(taken(&env), 1);
    fs::remove_file(&history).unwrap();
    let redacted = env.run_with_stdin(&["redact", "--yes"], b"hunter2hunter2");
    assert!(redacted.code() == Some(0), "{redacted}");
    env.run(&["restore", "8f14"]).success();
    let back = fs::read_to_string(&history).unwrap();
    assert!(back.contains("the key is") && !back.contains("hunter2"), "{back}");
    // A list that only looks like the agent's is not read.
    let copy = env.home().join(format!("copy/projects/-work/{SESSION}.jsonl"));
    write(&copy, records(SESSION, 2, "nowhere").as_bytes());
    write(&env.home().join("copy/history.jsonl"), typed(SESSION, 10, "elsewhere").as_bytes());
    let imported = env.run(&["import", "--json", copy.to_str().unwrap()]).success();
    assert_eq!(json(imported.stdout.lines().last().unwrap())["sidecars"], 0);
}
