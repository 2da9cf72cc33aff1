//! `restore`: files of agents that were deleted are noticed, and come back where the agents read them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, SystemTime};

use insta::assert_snapshot;

use super::attach::{Kept, kimis_folder};
use super::pending::{codex, kimi};
use super::{json, newest_operation};
use crate::env::TestEnv;
use crate::needs;
use crate::rollout::{Rollout, SECOND, THREAD, write};

const SESSION: &str = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";

/// Writes a session of Claude Code where the agent keeps it, and returns its path.
fn session(env: &TestEnv, id: &str) -> PathBuf {
    let record = |n: u8, parent: &str, role: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"{id}\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\
             \"content\":\"Part {n}\"}},\"uuid\":\"{id}-{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        )
    };
    let path = env.home().join(format!(".claude/projects/-work/{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let parents: [String; 4] =
        [1, 2, 3, 4].map(|n| if n == 1 { "null".into() } else { format!("\"{id}-{}\"", n - 1) });
    let roles = ["user", "assistant", "user", "assistant"];
    let lines = (1..).zip(parents.iter().zip(roles));
    let lines = lines.map(|(n, (parent, role))| record(n, parent, role));
    fs::write(&path, lines.collect::<String>() + "{\"torn\":").unwrap();
    path
}

#[test]
fn a_deleted_file_is_noticed_and_comes_back_as_it_was() {
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(900_000_000);
    fs::File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    env.run(&["import"]).success();
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let status = env.run(&["status", "8f14"]).success();
    assert!(status.stdout.contains("was deleted by its agent or somebody else"), "{status}");
    assert!(status.stderr.contains("undertext restore -s 8f14e45f"), "{status}");
    for form in ["--print", "--json", "-q"] {
        let refused = env.run(&["resume", "8f14", form]);
        assert_eq!((refused.code(), refused.stdout.as_str()), (Some(2), ""), "{refused}");
        assert!(refused.stderr.contains("to put its deleted file back"), "{refused}");
    }
    let log = env.run(&["log", "8f14"]).success();
    assert!(log.stdout.contains("Part 4") && log.stderr.contains("was deleted"), "{log}");
    let told = json(&env.run(&["status", "8f14", "--json"]).success().stdout);
    assert!(told["gone"].as_str().unwrap().ends_with(&format!("{SESSION}.jsonl")), "{told}");

    let sessions = env.run(&["sessions"]).success();
    assert!(sessions.stdout.contains("  deleted"), "{sessions}");
    assert!(sessions.stderr.contains("undertext restore --all --dry-run"), "{sessions}");
    let listed = || json(&env.run(&["sessions", "--json"]).success().stdout)["gone"] == true;
    assert!(listed());

    assert_snapshot!(env.run(&["import"]), @"
    Imported 0 sessions (0 new): 0 new entries, 0 B
    1 session's file was deleted since the last import; the store still has all the content
    ------- stderr -------
    Claude Code: ~/.claude/projects
    hint: to put deleted files back where their agents read them: undertext restore --all
    ");
    let operations = env.run(&["operations", "8f14"]).success();
    assert!(
        operations.stdout.contains("noticed that the agent's file was deleted"),
        "{operations}"
    );
    let again = env.run(&["import"]).success();
    assert!(!again.stdout.contains("deleted"), "{again}");
    assert_eq!(json(&env.run(&["status", "8f14", "--json"]).stdout)["gone"], told["gone"]);
    assert!(listed());

    assert_snapshot!(env.run(&["restore", "8f14"]), @"
    Session 8f14e45f  Part 1  (claude)
    ~/.claude/projects/-work/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl is back
    ");
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert!(!listed());
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.mode() & 0o777, 0o600);
    // The agent would delete again what seems to be as old as before.
    let written = meta.modified().unwrap();
    assert!(written > long_ago + Duration::from_secs(86_400), "{written:?}");
    let status = env.run(&["status", "8f14"]).success();
    assert!(status.stdout.contains("agrees with the store"), "{status}");
    // The session follows the file again.
    env.run(&["append", "-s", "8f14", "And now?"]).success();
    assert!(fs::read_to_string(&path).unwrap().contains("And now?"));
    assert_eq!(env.run(&["restore", "8f14"]).code(), Some(2));
}

/// An example of each agent, where that keeps it.
const KEPT: [(&str, &str); 4] = [
    (
        "claude-garden.jsonl",
        ".claude/projects/-home-ann-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl",
    ),
    (
        "codex-weather.jsonl",
        ".codex/sessions/2026/08/02/rollout-2026-08-02T14-00-00-019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a.jsonl",
    ),
    (
        "pi-boat.jsonl",
        ".pi/agent/sessions/--boat--/2026-07-04T18-00-00-000Z_5d9e0c1a-7b42-4f38-9c60-1a2b3c4d5e6f.jsonl",
    ),
    (
        "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
        ".kimi/sessions/f00d/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
    ),
];

/// Puts an example where its agent keeps it.
fn placed(env: &TestEnv, (example, kept): (&str, &str)) -> PathBuf {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let path = env.home().join(kept);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy(examples.join(example), &path).unwrap();
    path
}

#[test]
fn an_agent_goes_on_from_where_its_session_stood_while_its_file_was_gone() {
    for (example, kept) in KEPT {
        for said in [&["said"][..], &["said", "undone"], &["undone", "said"], &["branch", "said"]] {
            let env = TestEnv::new();
            let path = placed(&env, (example, kept));
            env.run(&["import"]).success();
            let session = json(&env.run(&["sessions", "--json"]).stdout)["session"].clone();
            let session = session.as_str().unwrap();
            fs::remove_file(&path).unwrap();
            for step in said {
                match *step {
                    "said" => env.run(&["append", "-s", session, "Said meanwhile"]).success(),
                    "branch" => {
                        env.run(&["branch", "left", "-s", session]).success();
                        env.run(&["switch", "left", "-s", session]).success()
                    }
                    _ => {
                        if said[0] == "undone" {
                            env.run(&["append", "-s", session, "Not meant"]).success();
                        }
                        env.run(&["undo", "-s", session]).success()
                    }
                };
            }
            let sent = |of: &str| {
                let context = env.run(&["context", of, "--json"]).success().stdout;
                let lines = context.lines().map(json).filter(|line| line["type"] == "message");
                let counted = lines.map(|line| (line["role"].to_string(), line["tokens"].as_u64()));
                counted.collect::<Vec<_>>()
            };
            let branches = || env.run(&["branch", "-s", session]).success().stdout;
            let (before, stood) = (sent(session), branches());
            env.run(&["restore", session]).success();
            assert_eq!(sent(session), before, "{example} {said:?}");
            assert_eq!(sent(path.to_str().unwrap()), before, "{example} {said:?}: its file");
            let names = |listed: &str| {
                let named = |line: &str| line[3..].split(' ').next().map(str::to_owned);
                listed.lines().map(|line| (line.starts_with('*'), named(line))).collect::<Vec<_>>()
            };
            assert_eq!(names(&branches()), names(&stood), "{example} {said:?}");
            env.run(&["append", "-s", session, "Goes on"]).success();
            let file = sent(path.to_str().unwrap());
            assert_eq!(file, sent(session), "{example} {said:?}");
            let last = env.run(&["log", "-n", "1", path.to_str().unwrap()]).success();
            assert!(last.stdout.contains("Goes on"), "{example} {said:?}: {last}");
            env.run(&["verify"]).success();
        }
    }
}

/// A copy of an older state was taken for the agent's file, or its loss was told as none.
#[test]
fn the_file_that_the_agent_read_comes_back_whatever_copies_of_it_there_are() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for ((example, kept), copied) in KEPT.into_iter().zip([
        ".claude/projects/-home-ann-zoo",
        ".codex/archived_sessions",
        ".pi/agent/sessions/--zoo--",
        ".kimi/sessions/ffff/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c",
    ]) {
        for is_known in [false, true] {
            let env = TestEnv::new();
            let path = env.home().join(kept);
            let copy = env.home().join(copied).join(path.file_name().unwrap());
            for file in [&path, &copy] {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
            }
            let whole = fs::read(examples.join(example)).unwrap();
            let end = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
            fs::write(&path, &whole).unwrap();
            env.run(&["import"]).success();
            fs::write(&copy, &whole[..=end]).unwrap();
            if is_known {
                env.run(&["import"]).success();
            }
            fs::remove_file(&path).unwrap();
            env.run(&["import"]).success();
            let session = json(&env.run(&["sessions", "--json"]).stdout)["session"].clone();
            let session = session.as_str().unwrap();
            let status = json(&env.run(&["status", session, "--json"]).success().stdout);
            if !is_known && status["live"] != json("null") {
                // The agent's only file is the copy, and the session went on in it.
                continue;
            }
            assert_eq!(status["gone"], format!("$HOME/{kept}"), "{example}: {status}");
            env.run(&["restore", session]).success();
            assert_eq!(fs::read(&path).unwrap(), whole, "{example}");
            env.run(&["append", "-s", session, "Goes on"]).success();
            assert!(fs::read_to_string(&path).unwrap().contains("Goes on"), "{example}");
            assert_eq!(fs::read(&copy).unwrap(), &whole[..=end], "{example}");
            env.run(&["verify"]).success();
        }
    }
}

/// It was told as deleted and came back a second time, changes did not reach it, and each move left a branch.
#[test]
fn a_file_that_its_agent_put_away_is_not_gone() {
    let said = "{\"timestamp\":\"2026-08-03T10:00:00.000Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\
        \"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"And tomorrow?\"}]}}\n";
    for (folder, is_packed, more) in [
        (".codex/archived_sessions", false, ""),
        (".codex/archived_sessions", false, said),
        (".codex/sessions/2026/08/02", true, ""),
        (".codex/archived_sessions", true, ""),
    ] {
        let env = TestEnv::new();
        let path = placed(&env, KEPT[1]);
        env.run(&["import"]).success();
        let session = json(&env.run(&["sessions", "--json"]).stdout)["session"].clone();
        let session = session.as_str().unwrap();
        env.run(&["revert", "1", "-s", session]).success();
        let log = || env.run(&["log", session]).success().stdout;
        let branches = || {
            let listed = env.run(&["branch", "-s", session]).success().stdout;
            listed.lines().filter(|line| !line.contains("(no name)")).count()
        };
        let (stood, held) = (log(), branches());
        let mut whole = fs::read(&path).unwrap();
        whole.extend(more.as_bytes());
        let name = path.file_name().unwrap().to_str().unwrap();
        let ending = if is_packed { ".zst" } else { "" };
        let now = env.home().join(folder).join(format!("{name}{ending}"));
        fs::create_dir_all(now.parent().unwrap()).unwrap();
        let bytes =
            if is_packed { zstd::encode_all(&whole[..], 3).unwrap() } else { whole.clone() };
        fs::write(&now, bytes).unwrap();
        fs::remove_file(&path).unwrap();
        for is_known in [false, true] {
            let none = env.run(&["restore", "--all"]).success();
            assert!(none.stderr.contains("No agent's file was deleted"), "{folder}: {none}");
            assert_eq!(env.run(&["restore", session]).code(), Some(2), "{folder}");
            let status = env.run(&["status", session]).success();
            assert!(!status.stdout.contains("was deleted"), "{folder}: {status}");
            assert_eq!(status.stdout.contains(folder), !is_packed, "{folder}: {status}");
            assert!(!env.run(&["sessions"]).success().stdout.contains("deleted"));
            if !is_known {
                let imported = env.run(&["import"]).success();
                assert!(!imported.stdout.contains("deleted"), "{imported}");
                assert!(!imported.stderr.contains("interrupted"), "{imported}");
            }
        }
        assert!(log().starts_with(stood.trim_end()), "{folder}: {}", log());
        assert_eq!((log().contains("And tomorrow?"), branches()), (!more.is_empty(), held));
        env.run(&["append", "-s", session, "Goes on"]).success();
        env.run(&["import"]).success();
        assert!(log().contains("Goes on"), "{folder}: {}", log());
        assert!(!path.exists());
        if !is_packed {
            assert!(fs::read(&now).unwrap().starts_with(&whole), "{folder}");
            assert!(fs::read_to_string(&now).unwrap().contains("Goes on"), "{folder}");
        }
        env.run(&["verify"]).success();
    }
}

/// A change of a session just put away stayed in the store, and the next import left it.
#[test]
fn a_change_reaches_a_file_that_its_agent_put_away_since_the_last_import() {
    let env = TestEnv::new();
    let path = placed(&env, KEPT[1]);
    env.run(&["import"]).success();
    let session = json(&env.run(&["sessions", "--json"]).stdout)["session"].clone();
    let session = session.as_str().unwrap();
    let now = env.home().join(".codex/archived_sessions").join(path.file_name().unwrap());
    fs::create_dir_all(now.parent().unwrap()).unwrap();
    fs::rename(&path, &now).unwrap();
    let whole = fs::read(&now).unwrap();
    let reverted = env.run(&["revert", "1", "-s", session, "--no-import"]).success();
    assert!(reverted.stderr.contains("the session continues in "), "{reverted}");
    assert!(!reverted.stderr.contains("interrupted"), "{reverted}");
    assert!(fs::read(&now).unwrap().starts_with(&whole) && !path.exists());
    let log = |of: &str| env.run(&["log", of]).success().stdout;
    let stood = log(session);
    assert_eq!(log(now.to_str().unwrap()), stood);
    env.run(&["import"]).success();
    assert_eq!(log(session), stood);
    env.run(&["undo", "-s", session]).success();
    env.run(&["verify"]).success();
}

/// A file of which nothing is new left a branch that stood where `main` did.
#[test]
fn a_file_that_was_moved_leaves_no_branch() {
    let env = TestEnv::new();
    let path = placed(&env, KEPT[0]);
    env.run(&["import"]).success();
    let session = path.file_stem().unwrap().to_str().unwrap();
    env.run(&["revert", "1", "-s", session]).success();
    let branches = || env.run(&["branch", "-s", session]).success().stdout;
    let held = branches();
    let now = env.home().join(".claude/projects/-home-ann-zoo");
    fs::create_dir(&now).unwrap();
    fs::rename(&path, now.join(path.file_name().unwrap())).unwrap();
    env.run(&["import"]).success();
    assert_eq!(branches(), held);
}

#[test]
fn a_file_that_a_process_still_has_open_does_not_come_back_before_that_closes_it() {
    let Some(_) = needs::proc() else { return };
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    env.run(&["import"]).success();
    let open = fs::File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let refused = env.run(&["restore", "8f14"]);
    let holder = format!(" open (pid {}, ", std::process::id());
    assert!(refused.code() == Some(3) && refused.stderr.contains(&holder), "{refused}");
    let refused = env.run(&["restore", "--all"]);
    assert!(refused.code() == Some(1) && refused.stderr.contains(&holder), "{refused}");
    assert!(!path.exists());
    let insisted = env.run(&["restore", "8f14", "--force"]);
    assert!(insisted.code() == Some(3) && insisted.stderr.contains(&holder), "{insisted}");
    assert!(!path.exists());
    drop(open);
    env.run(&["restore", "8f14"]).success();
    assert!(path.exists());
}

#[test]
fn a_file_that_came_back_while_an_import_waited_is_not_noted_as_gone() {
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    env.run(&["import"]).success();
    env.run(&["attach", "8f14", "--off"]).success();
    let text = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let lock = env.home().join(".local/share/undertext/lock");
    let lock = fs::File::options().write(true).open(lock).unwrap();
    lock.lock().unwrap();
    let mut importing = env.command();
    let child = importing.args(["import", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    fs::write(&path, text).unwrap();
    drop(lock);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let summary = String::from_utf8(output.stdout).unwrap();
    assert_eq!(json(summary.lines().last().unwrap())["gone"], 0, "{summary}");
}

#[test]
fn nothing_at_its_place_is_written_over() {
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    env.run(&["import"]).success();
    fs::remove_file(&path).unwrap();
    env.run(&["import"]).success();
    for make in [
        (|path| fs::write(path, "mine").unwrap()) as fn(&PathBuf),
        |path| std::os::unix::fs::symlink("/nowhere", path).unwrap(),
        |path| fs::create_dir(path).unwrap(),
    ] {
        make(&path);
        let seen = fs::symlink_metadata(&path).unwrap();
        let refused = env.run(&["restore", "8f14"]);
        assert_ne!(refused.code(), Some(0), "{refused}");
        assert_eq!(fs::symlink_metadata(&path).unwrap().ino(), seen.ino());
        fs::remove_file(&path).or_else(|_| fs::remove_dir(&path)).unwrap();
    }
    env.run(&["restore", "8f14"]).success();
}

#[test]
fn all_files_come_back_with_their_folders_and_changes_made_meanwhile_stay() {
    let env = TestEnv::new();
    let other = "1b2c3d4e-ceea-467f-a26a-5dba2f5b6d35";
    let paths = [session(&env, SESSION), session(&env, other)];
    env.run(&["import"]).success();
    let whole = paths.each_ref().map(|path| fs::read(path).unwrap());
    fs::remove_dir_all(env.home().join(".claude/projects/-work")).unwrap();
    env.run(&["revert", "1", "-s", "8f14"]).success();
    let listed = env.run(&["restore", "--all", "--dry-run"]).success();
    assert_eq!(listed.stdout.lines().count(), 2, "{listed}");
    assert!(!paths[0].exists());
    let unknown = env.run(&["restore", "--all", "--agent", "cluade"]);
    assert_eq!(unknown.code(), Some(2), "{unknown}");
    assert!(unknown.stderr.contains("use one of native, claude, codex, pi, kimi"), "{unknown}");
    let none = env.run(&["restore", "--all", "--agent", "codex"]).success();
    assert!(none.stderr.contains("No agent's file was deleted"), "{none}");
    let restored = env.run(&["restore", "--all", "--agent", "claude"]).success();
    assert!(!restored.stdout.contains("kept as branch"), "{restored}");
    let there = paths.each_ref().map(|path| fs::read(path).unwrap());
    assert_eq!(there[1], whole[1]);
    // Behind what its agent left, it says that the session went back.
    assert!(there[0].starts_with(&whole[0]) && there[0].len() > whole[0].len());
    let log = env.run(&["log", "-n", "1", paths[0].to_str().unwrap()]).success();
    assert!(log.stdout.contains("Part 2"), "{log}");
    let none = env.run(&["restore", "--all"]).success();
    assert!(none.stderr.contains("No agent's file was deleted"), "{none}");
    env.run(&["verify"]).success();
}

#[test]
fn a_deleted_file_of_a_session_that_no_agent_resumes_comes_back_too() {
    let env = TestEnv::new();
    let name = format!("rollout-2026-01-01T00-00-00-{SESSION}.jsonl");
    let folder = env.home().join(".codex/sessions/2026/01/01");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(&name);
    let spawned = format!(
        "{{\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{SESSION}\",\
         \"cwd\":\"/work\",\"originator\":\"o\",\"cli_version\":\"0.145.0\",\"multi_agent_version\":\"v2\",\"source\":{{\"subagent\":{{\
         \"thread_spawn\":{{\"parent_thread_id\":\"019fa6e3-2df0-77e3-898a-c3a92802e636\",\"depth\":1}}}}}}}}}}\n"
    );
    let said = "{\"timestamp\":\"2026-01-01T00:00:01.000Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\
         \"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"Light the lamp.\"}]}}\n";
    fs::write(&path, spawned + said).unwrap();
    let whole = fs::read(&path).unwrap();
    env.run(&["import"]).success();
    assert_eq!(json(&env.run(&["status", "8f14", "--json"]).stdout)["live"], json("null"));
    // Where its agent moved it, it is there.
    let moved = env.home().join(".codex/archived_sessions").join(&name);
    fs::create_dir_all(moved.parent().unwrap()).unwrap();
    fs::rename(&path, &moved).unwrap();
    let imported = env.run(&["import"]).success();
    assert!(!imported.stdout.contains("deleted"), "{imported}");
    let none = env.run(&["restore", "--all"]).success();
    assert!(none.stderr.contains("No agent's file was deleted"), "{none}");
    fs::remove_file(&moved).unwrap();
    for deleted in [true, false] {
        let imported = env.run(&["import"]).success();
        assert_eq!(imported.stdout.contains("1 session's file was deleted"), deleted, "{imported}");
        let listed = env.run(&["sessions"]).success();
        assert!(listed.stdout.contains("  deleted"), "{listed}");
    }
    let restored = env.run(&["restore", "8f14"]).success();
    assert!(restored.stdout.contains("is back"), "{restored}");
    assert!(!restored.stderr.contains("warning"), "{restored}");
    let attached = env.run(&["attach", "8f14"]).success();
    assert_eq!(attached.stderr.matches("Codex resumes a sub-agent only").count(), 1, "{attached}");
    assert_eq!(fs::read(&moved).unwrap(), whole);
    assert!(!path.exists());
    assert!(!env.run(&["sessions"]).success().stdout.contains("deleted"));
    env.run(&["verify"]).success();
}

#[test]
fn a_file_that_was_emptied_or_overwritten_is_told_and_what_it_held_is_a_branch() {
    for now in [&b""[..], b"\x00\xff{\"type\": 7}\nrubbish\n"] {
        let env = TestEnv::new();
        let path = session(&env, SESSION);
        env.run(&["import"]).success();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, now).unwrap();
        let imported = env.run(&["import"]).success();
        assert!(
            imported.stderr.contains("it no longer contains a session; its old content is kept"),
            "{imported}"
        );
        assert!(imported.stderr.contains(&format!("undertext branch -s {SESSION}")), "{imported}");
        let log = env.run(&["log", "8f14"]).success();
        assert!(log.stderr.contains("Nothing has been said yet"), "{log}");
        assert!(log.stderr.contains("undertext branch -s 8f14e45f"), "{log}");
        let refused = env.run(&["restore", "8f14"]);
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.stderr.contains("undertext branch -s 8f14e45f"), "{refused}");
        let branches = env.run(&["branch", "8f14"]).success();
        assert!(
            branches.stdout.contains("main.1") && branches.stdout.contains("Part 4"),
            "{branches}"
        );
        env.run(&["switch", "main.1", "-s", "8f14"]).success();
        assert_eq!(fs::read(&path).unwrap(), whole);
        let aside = path.with_extension("jsonl.undertext-2");
        assert_eq!(fs::read(aside).unwrap(), now);
        env.run(&["verify"]).success();
    }
}

#[test]
fn the_files_that_kimi_set_aside_come_back_with_the_one_that_it_reads() {
    let env = TestEnv::new();
    let folder = env.home().join(".kimi/sessions/5d41402abc4b2a76b9719d911017c592").join(SESSION);
    fs::create_dir_all(&folder).unwrap();
    let user = |words: &str| format!("{{\"role\":\"user\",\"content\":\"{words}\"}}\n");
    let said = ["Light the lamp.", "Polish the lens.", "Close the door."].map(user);
    let files = [("context_1.jsonl", 3), ("context_2.jsonl", 2), ("context.jsonl", 1)];
    for (name, lines) in files {
        fs::write(folder.join(name), said[..lines].concat()).unwrap();
    }
    env.run(&["import"]).success();
    fs::remove_dir_all(&folder).unwrap();
    let restored = env.run(&["restore", "8f14"]).success();
    for (name, lines) in files {
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), said[..lines].concat());
    }
    assert!(restored.stdout.contains("context.jsonl is back"), "{restored}");
    // A file that is there stays, and those that are gone come back alone.
    fs::remove_file(folder.join("context.jsonl")).unwrap();
    fs::remove_file(folder.join("context_2.jsonl")).unwrap();
    fs::write(folder.join("context_1.jsonl"), "mine").unwrap();
    env.run(&["restore", "8f14"]).success();
    assert_eq!(fs::read_to_string(folder.join("context_1.jsonl")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(folder.join("context_2.jsonl")).unwrap(), said[..2].concat());
}

/// Kimi empties a session whose folder it does not list.
#[test]
fn a_file_comes_back_to_kimi_with_its_folder_in_kimis_list() {
    for is_known in [true, false] {
        let env = TestEnv::new();
        let project = env.project().canonicalize().unwrap();
        let file = kimis_folder(&env).join("context.jsonl");
        fs::write(&file, "{\"role\":\"user\",\"content\":\"Build a boat.\"}\n").unwrap();
        let list = env.home().join(".kimi/kimi.json");
        if is_known {
            let folders = serde_json::json!({ "work_dirs": [{ "path": project }] });
            fs::write(&list, folders.to_string()).unwrap();
        }
        env.run(&["import"]).success();
        let restored = |folder: &std::path::Path| {
            fs::remove_dir_all(env.home().join(".kimi")).unwrap();
            env.run(&["import"]).success();
            let told =
                env.command().current_dir(folder).args(["restore", "boat"]).output().unwrap();
            assert!(told.status.success() && file.exists());
            String::from_utf8(told.stderr).unwrap()
        };
        let is_listed = || {
            let listed = json(&fs::read_to_string(&list).unwrap());
            assert_eq!(listed["work_dirs"][0]["path"], project.to_str().unwrap());
        };
        let told = restored(env.home());
        assert_eq!(told.contains("so Kimi CLI would empty the session"), !is_known, "{told}");
        assert_eq!(list.exists(), is_known);
        if is_known {
            is_listed();
        }
        let told = restored(&env.project());
        assert!(!told.contains("would empty"), "{told}");
        is_listed();
        env.run(&["revert", "0", "-s", "boat"]).success();
        env.run(&["verify"]).success();
    }
}

#[test]
fn the_file_that_kimi_reads_is_counted_as_gone_though_one_that_it_set_aside_is_new() {
    let kept = kimi();
    kept.env.run(&["import"]).success();
    kept.env.run(&["revert", "1", "-s", "boat"]).success();
    fs::remove_file(&kept.file).unwrap();
    let told = kept.env.run(&["import", "--json"]).success().stdout;
    let summary = json(told.lines().last().unwrap());
    assert_eq!(summary["gone"], 1, "{told}");
    let again = kept.env.run(&["import", "--json"]).success().stdout;
    assert_eq!(json(again.lines().last().unwrap())["gone"], 0, "{again}");
}

/// Codex refuses to resume a thread of which an older file is missing.
#[test]
fn a_file_from_which_the_agents_goes_on_is_noticed_and_comes_back() {
    let env = TestEnv::new();
    let mut first = Rollout::first(THREAD);
    first.turn("one");
    let one = first.end();
    first.turn("two");
    let mut second = Rollout::behind(THREAD, THREAD, one, &serde_json::json!({}));
    second.turn("three");
    let folder = env.home().join(".codex/sessions/2026/08/01");
    let base = folder.join(format!("rollout-2026-08-01T10-00-00-{THREAD}.jsonl"));
    let live = folder.join(format!("rollout-2026-08-01T11-00-00-{THREAD}_{SECOND}.jsonl"));
    write(&base, first.bytes.as_bytes());
    write(&live, second.bytes.as_bytes());
    env.run(&["import"]).success();
    env.run(&["resume", "--print", "019f"]).success();
    for command in [&["restore", "019f"][..], &["restore", "--all"]] {
        fs::remove_file(&base).unwrap();
        let status = env.run(&["status", "019f"]).success();
        assert!(status.stdout.contains("continues from"), "{status}");
        assert!(status.stdout.contains("agrees with the store"), "{status}");
        let told = env.run(&["import", "--json"]).success().stdout;
        assert_eq!(
            json(told.lines().last().unwrap())["gone"],
            u8::from(command.len() == 2 && command[1] == "019f")
        );
        let refused = env.run(&["resume", "--print", "019f"]);
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.stderr.contains("undertext restore"), "{refused}");
        let told = env.run(command).success();
        assert!(told.stdout.contains("is back") && told.stderr.is_empty(), "{told}");
        assert_eq!(fs::read(&base).unwrap(), first.bytes.as_bytes());
        assert_eq!(fs::read(&live).unwrap(), second.bytes.as_bytes());
        env.run(&["resume", "--print", "019f"]).success();
        let told = json(&env.run(&["status", "019f", "--json"]).success().stdout);
        assert!(
            told["gone"].is_null() && told["live"].as_str().unwrap().contains(SECOND),
            "{told}"
        );
        env.run(&["verify"]).success();
    }
}

#[test]
fn of_a_file_that_its_agent_compressed_is_said_how_the_session_follows_it_again() {
    let kept = codex();
    kept.env.run(&["import"]).success();
    let plain = kept.read();
    let packed = kept.file.with_extension("jsonl.zst");
    fs::write(&packed, zstd::encode_all(plain.as_bytes(), 3).unwrap()).unwrap();
    fs::remove_file(&kept.file).unwrap();
    let told = kept.env.run(&["import"]).success();
    assert!(told.stderr.contains("the agent compressed the session's file as"), "{told}");
    assert!(!told.to_string().contains("deleted"), "{told}");
    let refused = kept.env.run(&["attach", "-s", "019f"]);
    assert_eq!(refused.code(), Some(2));
    assert!(refused.stderr.contains(".jsonl.zst is compressed"), "{refused}");
    assert!(refused.stderr.contains("hint: decompress the file with the agent"), "{refused}");
    fs::remove_file(&packed).unwrap();
    fs::write(&kept.file, &plain).unwrap();
    kept.env.run(&["import"]).success();
    let status = kept.env.run(&["status", "019f"]).success();
    assert!(status.stdout.contains("agrees with the store"), "{status}");
}

/// The newest file that was taken in is the one that the revert set aside: it came back alone, and as the live one.
#[test]
fn what_a_command_set_aside_is_not_taken_for_the_file_that_the_agent_reads() {
    let env = TestEnv::new();
    let path = env.home().join(KEPT[3].1);
    let folder = path.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    fs::copy(examples.join(KEPT[3].0), &path).unwrap();
    env.run(&["import"]).success();
    let session = folder.file_name().unwrap().to_str().unwrap();
    env.run(&["revert", "1", "-s", session]).success();
    env.run(&["import"]).success();
    let names = ["context.jsonl", "context_1.jsonl"];
    let kept = names.map(|name| fs::read(folder.join(name)).unwrap());
    let log = || env.run(&["log", session]).success().stdout;
    let stood = log();
    for is_noticed in [false, true] {
        fs::remove_dir_all(folder).unwrap();
        if is_noticed {
            env.run(&["import"]).success();
        }
        env.run(&["restore", session]).success();
        assert_eq!(names.map(|name| fs::read(folder.join(name)).unwrap()), kept);
        assert_eq!(log(), stood);
    }
    env.run(&["append", "-s", session, "Goes on"]).success();
    assert!(fs::read_to_string(&path).unwrap().contains("Goes on"));
    env.run(&["verify"]).success();
}

#[test]
fn what_was_in_an_agents_folder_comes_back_when_all_of_that_is_gone() {
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    let kept = env.home().join(format!(".claude/file-history/{SESSION}/a@v1"));
    let answer = path.with_extension("").join("tool-results/long.txt");
    for file in [&kept, &answer] {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "kept").unwrap();
    }
    let other = env.home().join(".openclaw/agents/main/sessions/boat.jsonl");
    fs::create_dir_all(other.parent().unwrap()).unwrap();
    fs::write(
        &other,
        "{\"type\":\"session\",\"version\":3,\"id\":\"boat\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/work\"}\n",
    )
    .unwrap();
    env.run(&["import"]).success();
    let whole = fs::read(&path).unwrap();
    fs::remove_dir_all(env.home().join(".claude")).unwrap();
    fs::remove_dir_all(env.home().join(".openclaw")).unwrap();

    assert_snapshot!(env.run(&["import"]), @"
    Imported 0 sessions (0 new): 0 new entries, 0 B
    2 sessions' files were deleted since the last import; the store still has all the content
    ------- stderr -------
    No agent keeps sessions on this machine. None of these folders exists:
      Claude Code: ~/.claude/projects
      Codex: ~/.codex/sessions
      Codex: ~/.codex/archived_sessions
      pi: ~/.pi/agent/sessions
      OpenClaw: ~/.openclaw/agents
      Kimi CLI: ~/.kimi/sessions
      clawdcode: ~/.clawdcode/projects
    To import sessions from elsewhere, name their folder
    hint: to put deleted files back where their agents read them: undertext restore --all
    ");
    let again = env.run(&["import"]).success();
    assert!(!again.stdout.contains("deleted"), "{again}");
    let listed = env.run(&["restore", "--all", "--dry-run"]).success();
    assert_eq!(listed.stdout.lines().count(), 4, "{listed}");
    env.run(&["restore", "--all"]).success();
    assert_eq!(fs::read(&path).unwrap(), whole);
    assert!(kept.exists() && answer.exists() && other.exists());
}

#[test]
fn the_files_of_sub_agents_come_back_with_their_session() {
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    let agent = path.with_extension("").join("subagents/agent-q1.jsonl");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let of_agent = "\"isSidechain\":true,\"agentId\":\"q1\"";
    fs::write(
        &agent,
        text.replace("\"isSidechain\":false", of_agent).replace("\"uuid\":\"8", "\"uuid\":\"9"),
    )
    .unwrap();
    env.run(&["import"]).success();
    let whole = [&path, &agent].map(|path| fs::read(path).unwrap());
    for gone in [&[&path, &agent][..], &[&agent]] {
        for path in gone {
            fs::remove_file(path).unwrap();
        }
        let listed = env.run(&["restore", SESSION, "-n"]).success();
        assert_eq!(listed.stdout.lines().count(), gone.len(), "{listed}");
        let restored = env.run(&["restore", SESSION]).success();
        assert!(restored.stdout.contains("agent-q1.jsonl is back"), "{restored}");
        assert_eq!([&path, &agent].map(|path| fs::read(path).unwrap()), whole);
        assert_eq!(env.run(&["restore", SESSION]).code(), Some(2));
    }
    // One that cannot come back is told, and hinders not its session.
    fs::remove_file(&path).unwrap();
    fs::remove_dir_all(agent.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(env.home(), agent.parent().unwrap()).unwrap();
    let restored = env.run(&["restore", SESSION]);
    assert!(restored.code() == Some(1) && path.exists(), "{restored}");
    assert!(restored.stderr.contains("could not be put back"), "{restored}");
}

/// It was told as one that could not be put back, though it was there again.
#[test]
fn a_compressed_file_comes_back_and_is_no_live_file() {
    let env = TestEnv::new();
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let plain = fs::read(example.join("examples/codex-weather.jsonl")).unwrap();
    let whole = zstd::encode_all(&plain[..], 3).unwrap();
    let name = "rollout-2026-08-20T09-00-00-019f3c52-77aa-7a10-9c3e-2d4b8e6f1a05.jsonl.zst";
    let path = env.home().join(".codex/sessions/2026/08/20").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, &whole).unwrap();
    env.run(&["import"]).success();
    let again = |args: &[&str]| {
        fs::remove_file(&path).unwrap();
        env.run(&["import"]).success();
        let restored = env.run(args).success();
        assert_eq!(fs::read(&path).unwrap(), whole);
        env.run(&["verify"]).success();
        restored
    };
    let told = json(&again(&["restore", "--all", "--json"]).stdout);
    let of = |path: &serde_json::Value| path.as_str().unwrap().ends_with(".jsonl.zst");
    assert!(told["type"] == "restore" && of(&told["path"]) && of(&told["files"][0]), "{told}");
    let id = told["session"].as_str().unwrap();
    assert_snapshot!(again(&["restore", id]), @"
    Session 019fc000  When was the wind strongest?  (codex)
    ~/.codex/sessions/2026/08/20/rollout-2026-08-20T09-00-00-019f3c52-77aa-7a10-9c3e-2d4b8e6f1a05.jsonl.zst is back
    ------- stderr -------
    warning: changes to the session are not written to its file: $HOME/.codex/sessions/2026/08/20/rollout-2026-08-20T09-00-00-019f3c52-77aa-7a10-9c3e-2d4b8e6f1a05.jsonl.zst is compressed, so undertext cannot keep the session in sync with it
    ");
    assert_eq!(env.run(&["restore", id]).code(), Some(2), "it is there");
}

#[test]
fn a_folder_that_only_a_variable_names_is_not_made() {
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    let moved = env.home().join("claude");
    fs::rename(env.home().join(".claude"), &moved).unwrap();
    let run = |args: &[&str]| {
        let output = env.command().env("CLAUDE_CONFIG_DIR", &moved).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run(&["import"]).0, Some(0));
    fs::remove_dir_all(&moved).unwrap();
    let (code, told) = run(&["restore", "8f14"]);
    assert!(code == Some(3) && !moved.exists(), "{told}");
    assert!(told.contains("create the folder and try again"), "{told}");
    let export = told.lines().find_map(|line| line.split_once("undertext export ")).unwrap().1;
    let words: Vec<&str> = ["export"].into_iter().chain(export.split(' ')).collect();
    assert_eq!(run(&words).0, Some(0), "{told}");
    assert!(env.project().join(path.file_name().unwrap()).exists());
    fs::create_dir_all(moved.join("projects")).unwrap();
    assert_eq!(run(&["restore", "8f14"]).0, Some(0));
    assert!(moved.join("projects/-work").join(path.file_name().unwrap()).exists());
}

#[test]
fn a_file_that_was_named_comes_back_with_its_folder() {
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    let file = env.home().join("elsewhere/a.jsonl");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::rename(&path, &file).unwrap();
    env.run(&["attach", file.to_str().unwrap()]).success();
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
    env.run(&["restore", "8f14"]).success();
    assert!(file.exists());
}

#[test]
fn a_folder_that_leads_elsewhere_is_not_written() {
    let env = TestEnv::new();
    let path = session(&env, SESSION);
    env.run(&["import"]).success();
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let elsewhere = env.home().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, path.parent().unwrap()).unwrap();
    let refused = env.run(&["restore", "8f14"]);
    assert_ne!(refused.code(), Some(0), "{refused}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn the_doctor_tells_which_agent_deletes_sessions_and_how_it_keeps_them() {
    let env = TestEnv::new();
    session(&env, SESSION);
    env.run(&["import"]).success();
    let told = "put \"cleanupPeriodDays\": 36500 into ~/.claude/settings.json";
    let doctor = || env.run(&["doctor"]).success().stdout;
    assert!(doctor().contains("for 30 days") && doctor().contains(told), "{}", doctor());
    let settings = env.home().join(".claude/settings.json");
    for (text, days) in
        [("{\"cleanupPeriodDays\": 90}", 90), ("{", 30), ("{\"cleanupPeriodDays\": \"x\"}", 30)]
    {
        fs::write(&settings, text).unwrap();
        assert!(doctor().contains(&format!("for {days} days")), "{}", doctor());
    }
    // Settings were read only if nothing stood around them, not even the end of their last line.
    let long = "{\"cleanupPeriodDays\": 36500}";
    for text in [long, &format!("{long}\n"), &format!(" \r\n{long}"), &format!("\u{feff}{long}\n")]
    {
        fs::write(&settings, text).unwrap();
        assert!(!doctor().contains("deletes"), "{text:?}: {}", doctor());
    }
}

/// The session went on without its file in silence.
#[test]
fn an_undo_of_a_restore_tells_that_the_file_is_let_go_and_how_it_is_attached_again() {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    fs::remove_file(&kept.file).unwrap();
    kept.env.run(&["import"]).success();
    kept.env.run(&["restore", "6b0a"]).success();
    let attaching = newest_operation(&kept.env, "6b0a");
    let undone = kept.env.run(&["undo", "--op", &attaching, "-s", "6b0a"]).success();
    assert!(
        undone
            .stderr
            .contains("jsonl is left alone from now on; the session continues without the file"),
        "{undone}"
    );
    assert!(undone.stderr.contains("undertext attach -s 6b0a1c52"), "{undone}");
    kept.env.run(&["attach", "-s", "6b0a1c52"]).success();
    kept.env.run(&["append", "--note", "Of oak.", "-s", "6b0a"]).success();
    assert!(kept.read().contains("Of oak."));
}

/// An agent's "continue" takes the newest file: it went on in the session that was restored last.
#[test]
fn restored_files_are_in_the_order_of_their_last_use_and_not_newer_than_one_used_later() {
    let env = TestEnv::new();
    // By their names, and by the records in them, they are in another order.
    let ids: Vec<String> = [3, 1, 4, 2, 5].map(|n| format!("{n}{}", &SESSION[1..])).into();
    let paths: Vec<PathBuf> = ids.iter().map(|id| session(&env, id)).collect();
    let sidecars = ["b", "a", "c"].map(|name| {
        let path = paths[2].with_extension("").join("tool-results").join(name);
        write(&path, name.as_bytes());
        path
    });
    let used = SystemTime::UNIX_EPOCH + Duration::from_secs(900_000_000);
    let written = |path: &PathBuf| fs::metadata(path).unwrap().modified().unwrap();
    for (n, path) in (0..).zip(paths.iter().chain(&sidecars)) {
        let at = used + Duration::from_secs(3600 * n);
        fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
    }
    env.run(&["import"]).success();
    let clock = SystemTime::UNIX_EPOCH + Duration::from_secs(981_173_106);
    // First the session used last is still there, and then it is gone too.
    for there in [4, 5] {
        let kept = clock - Duration::from_secs(4 * 86_400);
        paths[there..].iter().for_each(|path| {
            fs::File::options().write(true).open(path).unwrap().set_modified(kept).unwrap();
        });
        env.run(&["import"]).success();
        let whole: Vec<_> = paths[..there].iter().map(|path| fs::read(path).unwrap()).collect();
        paths[..there].iter().chain(&sidecars).for_each(|path| fs::remove_file(path).unwrap());
        env.run(&["restore", "--all"]).success();
        let back: Vec<_> = paths[..there].iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(back, whole);
        for files in [&paths[..], &sidecars] {
            let times: Vec<_> = files.iter().map(written).collect();
            assert!(times.is_sorted_by(|one, other| one < other), "{times:?}");
            // The agent would delete what seems to be old.
            let oldest = clock - Duration::from_secs(5 * 86_400);
            assert!(times.iter().all(|time| *time > oldest), "{times:?}");
        }
        if there == 5 {
            let oldest = clock - Duration::from_secs(60);
            assert!(paths.iter().all(|path| written(path) > oldest));
        }
    }
    env.run(&["verify"]).success();
}

#[test]
fn a_file_whose_name_leaves_no_room_for_a_mark_comes_back_and_is_changed() {
    let env = TestEnv::new();
    let (example, kept) = KEPT[2];
    let name = format!("{}.jsonl", "é".repeat(124));
    let path = placed(&env, (example, kept)).with_file_name(name);
    fs::rename(env.home().join(kept), &path).unwrap();
    env.run(&["import"]).success();
    let session = json(&env.run(&["sessions", "--json"]).stdout)["session"].clone();
    let session = session.as_str().unwrap();
    let whole = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    env.run(&["restore", session]).success();
    assert_eq!(fs::read(&path).unwrap(), whole);
    env.run(&["revert", "1", "-s", session]).success();
    env.run(&["append", "-s", session, "Goes on"]).success();
    assert!(fs::read_to_string(&path).unwrap().contains("Goes on"));
    let again = env.run(&["import", "--json"]).success().stdout;
    assert_eq!(json(again.lines().last().unwrap())["entries"], 0, "{again}");
    env.run(&["verify"]).success();
}
