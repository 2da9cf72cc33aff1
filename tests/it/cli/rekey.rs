//! `redact --rekey`: nothing is left by which a guess at what was taken out could be tried, and all else is as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use insta::assert_snapshot;
use rusqlite::Connection;
use undertext::model::{EntryId, LineId};

use super::json;
use super::kept_out::{append, said};
use super::redact::traces;
use crate::env::TestEnv;
use crate::needs;

const ONE: &str = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";
const TWO: &str = "c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90";

/// Writes two sessions, of which one goes on from the other, and both have a PIN.
fn sessions(env: &TestEnv) -> [PathBuf; 2] {
    [ONE, TWO].map(|id| {
        let path = env.home().join(format!(".claude/projects/-work/{id}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let begin = said(id, ("", "r0"), "the PIN is 1234, keep it")
            .replace("\"parentUuid\":\"\"", "\"parentUuid\":null");
        fs::write(&path, begin).unwrap();
        for n in 1..6 {
            let parent = format!("r{}", n - 1);
            append(&path, &said(id, (&parent, &format!("r{n}")), &format!("turn {n}")));
        }
        path
    })
}

fn database(env: &TestEnv) -> PathBuf {
    env.home().join(".local/share/undertext/store.db")
}

/// Returns whether any byte of the store's files is part of a hash of a line with the PIN, or of an id that is made of it.
fn tells(store: &Path, line: &[u8]) -> bool {
    let hash = LineId::of(line);
    let id = EntryId::of(None, hash);
    let needles = [hash.as_bytes()[..6].to_vec(), id.as_bytes()[..6].to_vec()];
    fs::read_dir(store).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        let bytes = if path.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        needles.iter().any(|needle| bytes.windows(6).any(|part| part == needle))
    })
}

#[test]
fn no_hash_tells_whether_a_guess_is_right_and_all_else_is_as_it_was() {
    let env = TestEnv::new();
    let files = sessions(&env);
    let line = fs::read(&files[0]).unwrap();
    let line = line.split(|byte| *byte == b'\n').next().unwrap().to_vec();
    env.run(&["import"]).success();
    env.run(&["revert", "2", "-m", "not this way", "-s", "8f14"]).success();
    env.run(&["checkpoint", "-m", "here", "-s", "8f14"]).success();
    env.run(&["branch", "mine", "@1", "-s", "8f14"]).success();
    env.run(&["store", "index"]).success();
    let asked: [&[&str]; 3] =
        [&["checkpoints", "-s", "8f14"], &["branch", "-s", "8f14"], &["graph", "-s", "8f14"]];
    let store = database(&env).parent().unwrap().to_owned();

    // Without other ids, the one of the entry tells.
    env.run_with_stdin(&["redact", "--yes"], b"1234").success();
    assert!(!traces_of_pin(&env) && tells(&store, &line));
    let before = asked.map(|args| without_ids(&env.run(args).success().stdout));
    let operations =
        env.run(&["operations", "-s", "8f14", "--json"]).success().stdout.lines().count();

    let done = env.run(&["redact", "--rekey", "-s", "8f14", "--yes", "--json"]).success();
    let done = json(&done.stdout);
    assert_eq!(done["rekeyed"].as_array().unwrap().len(), 1, "{done}");
    env.run(&["redact", "--rekey", "-s", "c9f0", "--yes"]).success();
    assert!(!tells(&store, &line));
    assert_snapshot!(env.run(&["verify"]).success().stdout, @"Verified 2 sessions, 9 operations, 14 entries: no damage found; intact, 2 redacted");
    assert_eq!(asked.map(|args| without_ids(&env.run(args).success().stdout)), before);
    assert!(env.run(&["store", "rebuild"]).success().stdout.contains("equal"));
    assert!(env.run(&["import"]).success().stdout.contains("0 new entries"));
    let list = env.run(&["operations", "-s", "8f14", "--json"]).success().stdout;
    assert_eq!(list.lines().count(), operations + 1, "{list}");

    // The commitment is the old chain's, and can be opened with what was told.
    let told = &done["rekeyed"][0];
    let salt: Vec<u8> = (0..32)
        .step_by(2)
        .map(|at| u8::from_str_radix(&told["salt"].as_str().unwrap()[at..at + 2], 16).unwrap())
        .collect();
    let head = told["head"].as_str().unwrap();
    let head = undertext::model::OperationId::from_slice(&hex(head)).unwrap();
    let commitment =
        undertext::model::Digest::commitment(&salt.try_into().unwrap(), head).to_string();
    assert!(list.contains(&commitment), "{list}");

    // The session goes on, and other ways back are there still.
    append(&files[0], &said(ONE, ("r5", "r6"), "and on"));
    env.run(&["append", "-s", "c9f0", "go on"]).success();
    env.run(&["revert", "0", "-s", "8f14"]).success();
    env.run(&["undo", "-s", "8f14"]).success();
    env.run(&["verify"]).success();
    env.run(&["undo", "-s", "c9f0"]).success();
    let refused = env.run(&["undo", "-s", "c9f0"]);
    assert!(refused.code() == Some(2) && refused.stderr.contains("cannot be undone"), "{refused}");
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
}

#[test]
fn a_secret_can_be_taken_out_and_the_sessions_rekeyed_in_one_step() {
    let env = TestEnv::new();
    let files = sessions(&env);
    let lines = files.each_ref().map(|path| {
        let line = fs::read(path).unwrap();
        line.split(|byte| *byte == b'\n').next().unwrap().to_vec()
    });
    env.run(&["import"]).success();
    let done = env.run_with_stdin(&["redact", "--rekey", "--yes"], b"1234").success();
    assert!(done.stdout.starts_with("Redacted in 2 lines of 2 sessions\n"), "{done}");
    assert_eq!(done.stdout.matches("has new ids").count(), 2, "{done}");
    let store = database(&env).parent().unwrap().to_owned();
    assert!(!traces_of_pin(&env) && !lines.iter().any(|line| tells(&store, line)));
    assert_snapshot!(env.run(&["verify"]).success().stdout, @"Verified 2 sessions, 6 operations, 12 entries: no damage found; intact, 2 redacted");
    assert_eq!(
        Connection::open(database(&env))
            .unwrap()
            .query_row("SELECT count(*) FROM kept_out", [], |row| row.get::<_, i64>(0))
            .unwrap(),
        0
    );
    // What was forgotten can be rekeyed, too.
    env.run(&["forget", "-s", "c9f0", "--rekey", "--yes"]).success();
    env.run(&["verify"]).success();
    // A store that was copied meanwhile is not taken for one that forgot.
    env.run(&["append", "-s", "8f14", "go on"]).success();
    env.run(&["verify"]).success();
}

#[test]
fn a_rekeying_that_is_killed_at_any_time_leaves_a_whole_store() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    let mut killed = 0;
    for step in (0..16).step_by(needs::rounds(4, 1)) {
        let mut redacting = env.command();
        redacting.args(["redact", "--rekey", "--yes"]).stdin(Stdio::piped());
        let mut child = redacting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"1234").unwrap();
        std::thread::sleep(Duration::from_millis(step * 5));
        let _ = child.kill();
        killed += u32::from(!child.wait().unwrap().success());
        env.run(&["checkpoint", "-s", "c9f0"]).success();
        let verified = env.run(&["verify"]).success();
        // It was taken out, or not; the ids are others, or can be made others.
        assert_eq!(verified.stdout.contains("2 redacted"), !traces_of_pin(&env), "{verified}");
    }
    if traces_of_pin(&env) {
        env.run_with_stdin(&["redact", "--yes"], b"1234").success();
    }
    for session in ["8f14", "c9f0"] {
        let _ = env.run(&["redact", "--rekey", "-s", session, "--yes"]);
    }
    let line = said(ONE, ("", "r0"), "the PIN is 1234, keep it");
    let line = line.trim_end().replace("\"parentUuid\":\"\"", "\"parentUuid\":null");
    assert!(!tells(database(&env).parent().unwrap(), line.as_bytes()), "{killed} kills");
    env.run(&["verify"]).success();
}

#[test]
fn what_cannot_be_rekeyed_is_refused_and_nothing_is_changed() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    assert_snapshot!(env.run(&["redact", "--rekey", "-s", "8f14", "--yes"]), @r"
    ------- stderr -------
    Stdin is not read: --rekey with -s is for a session that was already redacted
    Nothing was redacted in this session
    [exit status: 1]
    ");
    env.run_with_stdin(&["redact", "--yes"], b"1234").success();
    assert_snapshot!(env.run(&["redact", "--rekey", "-s", "8f14"]), @r"
    ------- stderr -------
    Nothing was changed
    hint: to give them new ids: undertext redact --rekey --yes -s 8f14e45f
    [exit status: 1]
    ");
}

/// Returns whether any file below the home folder has the PIN.
fn traces_of_pin(env: &TestEnv) -> bool {
    let has = |path: &Path| fs::read(path).unwrap().windows(11).any(|part| part == b"PIN is 1234");
    let claude = env.home().join(".claude/projects/-work");
    let store = database(env).parent().unwrap().to_owned();
    [claude, store].iter().any(|folder| {
        fs::read_dir(folder).unwrap().any(|entry| {
            let path = entry.unwrap().path();
            path.is_file() && has(&path)
        })
    })
}

/// Returns a screen without ids of entries.
fn without_ids(screen: &str) -> String {
    let is_id = |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = screen.split_inclusive(char::is_whitespace);
    words
        .map(
            |word| {
                if is_id(word.trim()) { word.replace(word.trim(), "ID") } else { word.to_owned() }
            },
        )
        .collect()
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

#[test]
fn a_short_secret_is_no_part_of_ids_times_and_numbers() {
    let env = TestEnv::new();
    let path = env.home().join(format!(".claude/projects/-work/{ONE}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let named = "1234abcd-1234-4abc-8def-001234567890";
    let begin = said(ONE, ("", named), "the PIN is 1234, not 12345 and not x1234")
        .replace("\"parentUuid\":\"\"", "\"parentUuid\":null,\"tokens\":12345");
    let next = said(ONE, (named, "b"), "go on");
    fs::write(&path, [begin, next].concat()).unwrap();
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--rekey", "--yes"], b"1234").said_no();
    let log = env.run(&["log", "-s", "8f14"]).success();
    assert!(log.stdout.contains("the PIN is ****, not 12345 and not x1234"), "{log}");
    let file = fs::read_to_string(&path).unwrap();
    assert_eq!(file.matches(named).count(), 2, "{file}");
    assert!(file.contains("\"tokens\":12345"), "{file}");
    env.run(&["verify"]).success();
}

#[test]
fn a_session_limits_no_secret_on_stdin() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    for session in ["8f14", "nosuch"] {
        let refused = env.run_with_stdin(&["redact", "-s", session, "--yes"], b"1234");
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.stderr.contains("-s cannot limit it to one"), "{refused}");
    }
    let refused = env.run_with_stdin(&["redact", "--rekey", "-s", "8f14", "--yes"], b"1234");
    assert_eq!(refused.code(), Some(1), "{refused}");
    assert!(refused.stderr.contains("Stdin is not read"), "{refused}");
    assert!(traces_of_pin(&env));
}
