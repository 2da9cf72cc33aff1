//! `redact` and `forget`: what is taken out is nowhere afterwards, and all else is as it was.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use insta::assert_snapshot;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};
use serde_json::{Value, json};
use undertext::model::{EntryNumber, Record};
use undertext::verbs::{self, Archive, Cause, Machine, Wanted};

use super::{again, conversation, json, screens};
use crate::env::TestEnv;
use crate::needs;

pub(super) const SECRET: &str = "tok-9f8e7d6c/5b4a=hidden";
const ONE: &str = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";
const TWO: &str = "c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90";

/// Writes two sessions of Claude Code, of which the second one begins as the first, and one of Codex. All have the secret: as it
/// is, escaped, in JSON within JSON, in base64, and within a long text that occurs several times.
pub(super) fn sessions(env: &TestEnv) -> [PathBuf; 3] {
    let long = format!("{} {SECRET} {}", "before ".repeat(60), "behind ".repeat(60));
    let said = [
        ("user", format!("the token is {SECRET}, use it")),
        ("assistant", "tok-9f8e7d6c\\/5b4a\\u003dhidden is used".to_owned()),
        ("user", long.clone()),
        ("assistant", format!("{{\\\"token\\\":\\\"{}\\\"}}", SECRET.replace('/', "\\\\/"))),
        ("user", "dG9rLTlmOGU3ZDZjLzViNGE9aGlkZGVu".to_owned()),
        ("assistant", format!("again: {long}")),
        ("user", "and nothing of the kind".to_owned()),
    ];
    let claude = |id: &str, count: usize| {
        let mut text = String::new();
        for (n, (role, said)) in said.iter().take(count).enumerate() {
            let parent = if n == 0 { "null".to_owned() } else { format!("\"r{}\"", n - 1) };
            let record = format!(
                "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
                 \"sessionId\":\"{id}\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\
                 \"content\":\"{said}\"}},\"uuid\":\"r{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
            );
            text.push_str(&record);
        }
        let path = env.home().join(format!(".claude/projects/-work/{id}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    };
    let id = "019a0000-0000-7000-8000-000000000001";
    let mut text = format!(
        "{{\"timestamp\":\"2026-01-02T00:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{{\"id\":\"{id}\",\
         \"timestamp\":\"2026-01-02T00:00:00.000Z\",\"cwd\":\"/work\",\"originator\":\"codex_cli_rs\",\"cli_version\":\"0.90.0\",\
         \"instructions\":null,\"source\":\"cli\"}}}}\n"
    );
    for (role, said) in &said {
        let kind = if *role == "user" { "input_text" } else { "output_text" };
        let record = format!(
            "{{\"timestamp\":\"2026-01-02T00:00:01.000Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\
             \"role\":\"{role}\",\"content\":[{{\"type\":\"{kind}\",\"text\":\"{said}\"}}]}}}}\n"
        );
        text.push_str(&record);
    }
    let codex = env
        .home()
        .join(format!(".codex/sessions/2026/01/02/rollout-2026-01-02T00-00-00-{id}.jsonl"));
    fs::create_dir_all(codex.parent().unwrap()).unwrap();
    fs::write(&codex, text).unwrap();
    [claude(ONE, 7), claude(TWO, 5), codex]
}

/// Returns the files below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Returns the files below the home folder that have the secret in any spelling, as they are or in anything that zstd packed,
/// whether a row still points there or not.
pub(super) fn traces(env: &TestEnv) -> Vec<PathBuf> {
    holding(env, &[SECRET, "5b4a\\u003dhidden", "5b4a=hidden", "dG9rLTlmOGU3ZDZj", "tok-9f8e7d6c"])
}

/// Returns those that have any of these spellings.
pub(super) fn holding(env: &TestEnv, spelt: &[&str]) -> Vec<PathBuf> {
    let has = |bytes: &[u8]| {
        spelt.iter().any(|spelt| bytes.windows(spelt.len()).any(|part| part == spelt.as_bytes()))
    };
    let packed = |bytes: &[u8]| {
        let magic = [0x28, 0xb5, 0x2f, 0xfd];
        let starts = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(&magic));
        starts.into_iter().any(|at| {
            let mut text = Vec::new();
            let mut decoder = zstd::Decoder::new(&bytes[at..]).unwrap().single_frame();
            let _ = std::io::copy(&mut decoder, &mut text);
            has(&text)
        })
    };
    let mut found = below(env.home());
    found.retain(|path| {
        let bytes = fs::read(path).unwrap();
        has(&bytes) || packed(&bytes)
    });
    found
}

#[test]
fn sessions_whose_ids_begin_alike_are_told_apart() {
    let env = TestEnv::new();
    let [_, two, _] = sessions(&env);
    let id = format!("{}-x", &ONE[..8]);
    let alike = fs::read_to_string(&two).unwrap().replace(TWO, &id);
    fs::remove_file(&two).unwrap();
    fs::write(two.with_file_name(format!("{id}.jsonl")), alike).unwrap();
    env.run(&["import"]).success();
    assert_snapshot!(env.run_with_stdin(&["redact", "--dry-run"], SECRET.as_bytes()), @r"
    8f14e45f-c  6 lines  claude
    8f14e45f-x  5 lines  claude
    019a0000    6 lines  codex
    ------- stderr -------
    Nothing was changed
    ");
}

#[test]
fn a_secret_is_nowhere_afterwards_and_all_else_is_as_it_was() {
    let env = TestEnv::new();
    let files = sessions(&env);
    let before = files.each_ref().map(|path| fs::read(path).unwrap());
    env.run(&["import"]).success();
    // A branch that was left, a note, an index, and a file that was set aside have it too.
    env.run(&["revert", "1", "-m", &format!("not {SECRET}"), "-s", "8f14", "--rotate"]).success();
    env.run(&["store", "index"]).success();
    env.run(&["search", "token"]).success();
    assert!(traces(&env).len() > 4, "{:?}", traces(&env));

    assert_snapshot!(env.run_with_stdin(&["redact", "--dry-run"], SECRET.as_bytes()), @r"
    8f14e45f  7 lines  claude
    c9f0f895  5 lines  claude
    019a0000  6 lines  codex
    1 of your notes or names also contains the text
    ------- stderr -------
    Nothing was changed
    ");
    assert_snapshot!(env.run_with_stdin(&["redact"], SECRET.as_bytes()), @r"
    8f14e45f  7 lines  claude
    c9f0f895  5 lines  claude
    019a0000  6 lines  codex
    1 of your notes or names also contains the text
    ------- stderr -------
    Nothing was changed
    hint: to redact the text, pipe it in again and add --yes
    [exit status: 1]
    ");
    assert_eq!(fs::read(&files[1]).unwrap(), before[1]);
    assert_snapshot!(env.run_with_stdin(&["redact", "--yes"], format!("{SECRET}\n").as_bytes()), @"
    Redacted in 18 lines of 3 sessions; every entry keeps its id
    overwritten in ~/.claude/projects/-work/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl
    overwritten in ~/.claude/projects/-work/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl.undertext-1
    overwritten in ~/.claude/projects/-work/c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90.jsonl
    overwritten in ~/.codex/sessions/2026/01/02/rollout-2026-01-02T00-00-00-019a0000-0000-7000-8000-000000000001.jsonl
    ------- stderr -------
    hint: check that everything else is intact: undertext verify
    hint: find copies that are written elsewhere later: undertext audit --secrets
    ");
    assert_eq!(traces(&env), Vec::<PathBuf>::new());

    assert_snapshot!(env.run(&["verify"]).success(), @"Verified 3 sessions, 7 operations, 21 entries: no damage found; intact, 18 redacted");
    for (path, before) in files.iter().zip(before).skip(1) {
        // The same file, with other bytes in the place of some.
        let now = fs::read(path).unwrap();
        assert_eq!(now.len(), before.len());
        let same = now.iter().zip(&before).filter(|(now, before)| now == before).count();
        assert!(same > before.len() * 3 / 4, "{path:?}");
        assert!(
            now.split(|&byte| byte == b'\n')
                .filter(|line| !line.is_empty())
                .all(|line| { serde_json::from_slice::<serde_json::Value>(line).is_ok() })
        );
    }
    let log = env.run(&["log", "-s", "c9f0"]).success();
    assert!(log.stdout.contains("the token is [redacted]**************, use it"), "{log}");
    assert!(env.run(&["import"]).success().stdout.contains("0 new entries"));
    assert!(env.run(&["store", "rebuild"]).success().stdout.contains("equal"));
    let search = env.run(&["search", "redacted"]).success();
    assert!(search.stdout.contains("use it"), "{search}");

    // Nothing of it comes back, and the sessions go on.
    assert_snapshot!(env.run(&["undo", "-s", "c9f0"]), @"
    ------- stderr -------
    error: operation 2 cannot be undone: what it redacted is not kept anywhere
    hint: list the operations: undertext undo c9f0f895 --list
    [exit status: 2]
    ");
    env.run(&["append", "-s", "c9f0", "go on"]).success();
    env.run(&["revert", "0", "-s", "8f14"]).success();
    env.run(&["undo", "-s", "8f14"]).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    let verified = json(env.run(&["verify", "--json"]).success().stdout.lines().last().unwrap());
    assert!(verified["ok"] == true && verified["redacted"].as_u64() > Some(10), "{verified}");
    let nothing = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes());
    assert_eq!(nothing.code(), Some(1), "{nothing}");

    // A copy of what stood there before is the same session, and brings nothing back into the store.
    let store = env.home().join(".local/share/undertext");
    fs::write(&files[2], sessions_again(&env, &files[2])).unwrap();
    env.run(&["import"]).success();
    let left = traces(&env);
    assert!(!left.iter().any(|path| path.starts_with(&store)), "{left:?}");
    env.run(&["verify"]).success();
}

#[test]
fn the_hint_to_agree_keeps_all_that_was_given() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    let hint = |args: &[&str]| {
        let said = env.run(args);
        assert_eq!(said.code(), Some(1), "{said}");
        said.stderr.lines().last().unwrap().to_owned()
    };
    let reason = ["--reason", "it's private"];
    assert_snapshot!(hint(&[&["forget", "8f14"], &reason[..]].concat()), @r"hint: to redact it: undertext forget --reason 'it'\''s private' --yes -s 8f14e45f");
    assert_snapshot!(hint(&[&["redact", "HEAD", "-s", "8f14"], &reason[..]].concat()), @r"hint: to redact it: undertext redact HEAD --reason 'it'\''s private' --yes -s 8f14e45f");
}

/// Returns a file as it was before anything was taken out of it.
fn sessions_again(env: &TestEnv, path: &Path) -> Vec<u8> {
    let other = TestEnv::new();
    let [_, _, codex] = sessions(&other);
    assert_eq!(codex.strip_prefix(other.home()), path.strip_prefix(env.home()));
    fs::read(codex).unwrap()
}

#[test]
fn a_redaction_that_is_killed_at_any_time_is_done_or_not_begun() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    let all = traces(&env).len();
    let (mut done, mut none) = (0, 0);
    for step in (0..24).step_by(needs::rounds(5, 1)) {
        let mut redacting = env.command();
        redacting.args(["redact", "--yes"]).stdin(Stdio::piped());
        let mut child = redacting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), SECRET.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(step * 4));
        let _ = child.kill();
        child.wait().unwrap();
        // Any change brings it to its end.
        env.run(&["checkpoint", "-s", "c9f0"]).success();
        env.run(&["verify"]).success();
        match traces(&env).len() {
            0 => {
                done += 1;
                break;
            }
            left => {
                assert!(left >= all, "{:?}", traces(&env));
                none += 1;
            }
        }
    }
    if done == 0 {
        env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
        assert!(traces(&env).is_empty(), "{none} kills");
    }
}

#[test]
fn what_was_committed_before_a_kill_is_carried_out_by_the_next_change() {
    let env = TestEnv::new();
    let files = sessions(&env);
    let before = fs::read(&files[1]).unwrap();
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    // As if the program had been killed before it came to the files.
    fs::write(&files[1], before).unwrap();
    fs::write(env.home().join(".local/share/undertext/redacting"), "").unwrap();
    assert_eq!(traces(&env).len(), 1);
    env.run(&["checkpoint", "-s", "8f14"]).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    let log = env.run(&["graph", "-s", "c9f0"]).success();
    assert!(!log.stdout.contains("outside"), "{log}");
    env.run(&["verify"]).success();
}

/// The file of a store that names the sessions with files that are still to be covered.
const UNCOVERED: &str = ".local/share/undertext/uncovered";

#[test]
fn a_file_that_an_agent_has_open_is_left_and_covered_once_it_is_closed() {
    let env = TestEnv::new();
    let files = sessions(&env);
    again::append(&files[0], &again::said(ONE, ("r6", "r7"), &format!("again {SECRET}")));
    let older = fs::read(&files[0]).unwrap();
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    // The agent of the first session goes on in an older copy; then something is redacted in another session.
    fs::write(&files[0], older).unwrap();
    let agent = fs::OpenOptions::new().append(true).open(&files[0]).unwrap();
    let write = |parent, name, text: &str| {
        let record = again::said(ONE, (parent, name), text);
        std::io::Write::write_all(&mut &agent, record.as_bytes()).unwrap();
    };
    env.run(&["import"]).success();
    let other = "kept-elsewhere-1234567";
    env.run(&["append", "-s", "c9f0", &format!("it is {other}")]).success();
    let done = env.run_with_stdin(&["redact", "--yes"], other.as_bytes()).success();
    // The file of the first session has nothing of what is taken out now.
    assert!(!done.stderr.contains(".jsonl"), "{done}");
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("still contain redacted text"), "{doctor}");
    // What it says now is lost neither in its file nor in the store, and other changes go on.
    write("r7", "r8", "the answer of all");
    env.run(&["checkpoint", "-s", "c9f0"]).success();
    env.run(&["import"]).success();
    assert!(fs::read_to_string(&files[0]).unwrap().contains("the answer of all"));
    assert!(env.run(&["log", "-s", "8f14"]).success().stdout.contains("the answer of all"));
    assert_eq!(traces(&env), [files[0].clone()]);
    drop(agent);
    env.run(&["checkpoint", "-s", "c9f0"]).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    assert!(!env.home().join(UNCOVERED).exists());
    let log = env.run(&["graph", "-s", "8f14"]).success();
    assert!(!log.stdout.contains("outside"), "{log}");
    env.run(&["doctor"]).success();
    env.run(&["verify"]).success();
}

#[test]
fn a_file_that_cannot_be_opened_is_told_of_and_covered_once_it_can_be() {
    let env = TestEnv::new();
    let files = sessions(&env);
    // A file that is kept whole, and a second one of lines, which the session is not attached to.
    let results = files[0].with_extension("").join("tool-results");
    let result = results.join("a.txt");
    fs::create_dir_all(&results).unwrap();
    fs::write(&result, format!("the answer is {SECRET}")).unwrap();
    env.run(&["import"]).success();
    let copies = env.home().join(".claude/projects/-copies");
    let copy = copies.join(files[0].file_name().unwrap());
    fs::create_dir(&copies).unwrap();
    fs::copy(&files[0], &copy).unwrap();
    env.run(&["import"]).success();
    // A folder that is a link to itself lets nobody in, the superuser neither.
    for folder in [&copies, &results] {
        fs::rename(folder, folder.with_extension("there")).unwrap();
        std::os::unix::fs::symlink(folder.file_name().unwrap(), folder).unwrap();
    }
    let done = env.run_with_stdin(&["redact", "--yes", "--json"], SECRET.as_bytes()).said_no();
    let told = json(&done.stdout);
    for path in [&copy, &result] {
        let path = Path::new("$HOME").join(path.strip_prefix(env.home()).unwrap());
        assert!(told["left"].as_array().unwrap().contains(&json!(path)), "{done}");
    }
    assert!(env.home().join(UNCOVERED).exists());
    for folder in [&copies, &results] {
        fs::remove_file(folder).unwrap();
        fs::rename(folder.with_extension("there"), folder).unwrap();
    }
    env.run(&["checkpoint", "-s", "c9f0"]).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    assert!(!env.home().join(UNCOVERED).exists());
    env.run(&["verify"]).success();
}

#[test]
fn only_sessions_that_have_it_are_warned_of() {
    let env = TestEnv::new();
    let [one, two, three] = sessions(&env);
    env.run(&["import"]).success();
    let own = "only-in-the-third-one";
    env.run(&["append", "-s", "019a", own]).success();
    for path in [&one, &two] {
        fs::remove_file(path).unwrap();
    }
    let done = env.run_with_stdin(&["redact", "--yes"], own.as_bytes()).success();
    assert!(!done.stderr.contains("warning"), "{done}");
    fs::remove_file(three).unwrap();
    let done = env.run(&["forget", "--yes", "-s", "8f14"]).success();
    assert_snapshot!(done.stderr, @"
    warning: ~/.claude/projects/-work/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl was deleted; this is the store's copy, which is complete
    hint: to put the file back where the agent reads it: undertext restore -s 8f14e45f
    hint: check that everything else is intact: undertext verify
    ");
    env.run(&["verify"]).success();
}

/// Moves a file into a folder, which is made.
fn move_to(file: &Path, folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let there = folder.join(file.file_name().unwrap());
    fs::rename(file, &there).unwrap();
    there
}

/// Takes a live file away from where it is; the folder is one to which it may be moved.
type Away = fn(&TestEnv, &Path, &Path);

#[test]
fn a_file_that_was_set_aside_is_covered_wherever_the_live_one_is() {
    let aside = |file: &Path| file.with_extension("jsonl.undertext-1");
    let elsewhere = |env: &TestEnv| env.home().join(".claude/projects/-elsewhere");
    let ways: [(&str, Away); 6] = [
        ("it is there", |_, _, _| ()),
        ("it is left alone", |env, _, _| {
            env.run(&["attach", "--off", "-s", "8f14"]).success();
        }),
        ("it is deleted, and known to be", |env, file, _| {
            fs::remove_file(file).unwrap();
            env.run(&["import"]).success();
        }),
        ("it is deleted", |_, file, _| fs::remove_file(file).unwrap()),
        ("it is moved", |env, file, folder| {
            move_to(file, folder);
            env.run(&["import"]).success();
        }),
        ("it is another one", |env, file, folder| {
            fs::create_dir_all(folder).unwrap();
            let other = folder.join(file.file_name().unwrap());
            fs::copy(file, &other).unwrap();
            env.run(&["import"]).success();
            env.run(&["attach", other.to_str().unwrap()]).success();
        }),
    ];
    for (way, go) in ways {
        let env = TestEnv::new();
        let [file, ..] = sessions(&env);
        env.run(&["import"]).success();
        env.run(&["revert", "1", "--rotate", "-s", "8f14"]).success();
        go(&env, &file, &elsewhere(&env));
        let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
        assert_eq!(traces(&env), Vec::<PathBuf>::new(), "{way}: {done}");
        assert!(aside(&file).exists());
        let listed = env.run(&["rotations", "8f14"]).success().stdout;
        assert!(listed.contains("whole") && listed.contains("projects/-work/"), "{way}: {listed}");
        env.run(&["verify"]).success();
    }
    // Both are moved, with the folder.
    let env = TestEnv::new();
    let [file, two, _] = sessions(&env);
    env.run(&["import"]).success();
    env.run(&["revert", "1", "--rotate", "-s", "8f14"]).success();
    for file in [&file, &aside(&file), &two] {
        move_to(file, &elsewhere(&env));
    }
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    let listed = env.run(&["rotations", "8f14"]).success().stdout;
    assert!(listed.contains("whole") && listed.contains("projects/-elsewhere/"), "{listed}");
}

#[test]
fn a_file_of_kimi_that_was_set_aside_is_covered_too() {
    let env = TestEnv::new();
    let folder = env.home().join(format!(".kimi/sessions/abc/{ONE}"));
    fs::create_dir_all(&folder).unwrap();
    let prompt = "{\"role\":\"_system_prompt\",\"content\":\"p\"}\n".to_owned();
    let turns = (0..4).map(|n| {
        format!(
            "{{\"role\":\"_checkpoint\",\"id\":{n}}}\n{{\"role\":\"user\",\"content\":\"{n} {SECRET}\"}}\n"
        )
    });
    let lines: String = std::iter::once(prompt).chain(turns).collect();
    fs::write(folder.join("context.jsonl"), lines).unwrap();
    env.run(&["import"]).success();
    env.run(&["revert", "2", "-s", "8f14"]).success();
    assert!(folder.join("context_1.jsonl").exists());
    env.run(&["attach", "--off", "-s", "8f14"]).success();
    // The agent's own record of the same conversation is not covered, and told of.
    let record = folder.join("wire.jsonl");
    fs::write(&record, format!("{{\"x\":\"{SECRET}\"}}\n")).unwrap();
    let told = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).said_no();
    assert_eq!(traces(&env), std::slice::from_ref(&record));
    assert!(told.stderr.contains(&format!("{ONE}/wire.jsonl is an agent's file")), "{told}");
    // Of one that says nothing of it there is nothing to tell, unless all of the session goes.
    env.run(&["append", "-s", "8f14", "another-thing-to-hide"]).success();
    let told = env.run_with_stdin(&["redact", "--yes"], b"another-thing-to-hide").success();
    assert!(!told.stderr.contains("wire.jsonl"), "{told}");
    let told = env.run(&["forget", "-s", "8f14", "--yes"]).said_no();
    assert!(told.stderr.contains("wire.jsonl"), "{told}");
}

#[test]
fn what_a_killed_restore_left_behind_goes_and_the_doctor_finds_it() {
    let left = |env: &TestEnv| {
        let [file, two, _] = sessions(env);
        let result = two.with_extension("").join("tool-results/a.txt");
        fs::create_dir_all(result.parent().unwrap()).unwrap();
        fs::write(&result, format!("the answer is {SECRET}")).unwrap();
        env.run(&["import"]).success();
        // The session's file is gone, and so is the long answer of another one: each has its successor alone.
        let left = [&file, &result].map(|path| {
            let mut fresh = path.clone().into_os_string();
            fresh.push(".undertext-new");
            fs::rename(path, &fresh).unwrap();
            PathBuf::from(fresh)
        });
        (left, file)
    };
    let env = TestEnv::new();
    let (left_behind, file) = left(&env);
    let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new(), "{done}");
    for path in &left_behind {
        assert!(!path.exists());
        let name = path.file_name().unwrap().to_str().unwrap();
        let told = format!("{name}, left over from an interrupted change");
        assert!(done.stdout.contains(&told), "{done}");
    }
    env.run(&["restore", "--all"]).success();
    assert!(file.exists());

    let env = TestEnv::new();
    let (left_behind, _) = left(&env);
    let examined = env.run(&["doctor"]);
    assert_eq!(examined.code(), Some(1), "{examined}");
    for path in &left_behind {
        let name = path.file_name().unwrap().to_str().unwrap();
        let told = format!("{name}: it is left over from an interrupted change");
        assert!(examined.stdout.contains(&told), "{examined}");
        assert!(path.exists());
    }
    let fixed = env.run(&["doctor", "--fix"]).success();
    assert_eq!(fixed.stdout.matches("it is deleted").count(), 2, "{fixed}");
    assert!(left_behind.iter().all(|path| !path.exists()));
    env.run(&["doctor"]).success();
}

#[test]
fn what_a_killed_revert_left_in_the_folder_of_another_day_goes_and_the_doctor_finds_it() {
    const LEFT: &str = "019a0000-0000-7000-8000-000000000001_11111111-2222-4333-8444-555555555555";
    let left = |env: &TestEnv| {
        let [.., file] = sessions(env);
        env.run(&["import"]).success();
        let folder = env.home().join(".codex/sessions/2026/03/04");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("rollout-2026-03-04T05-06-07-{LEFT}.jsonl.undertext-new"));
        fs::copy(file, &path).unwrap();
        // What no session of the store left is somebody else's.
        let other = path.to_str().unwrap().replace("019a0000", "019b0000");
        fs::write(&other, "{}").unwrap();
        (path, PathBuf::from(other))
    };
    let env = TestEnv::new();
    let (path, other) = left(&env);
    let name = path.file_name().unwrap().to_str().unwrap();
    let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    let told = format!("{name}, left over from an interrupted change");
    assert!(done.stdout.contains(&told), "{done}");
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    assert!(!path.exists() && other.exists());

    let env = TestEnv::new();
    let (path, other) = left(&env);
    let examined = env.run(&["doctor"]);
    assert_eq!(examined.code(), Some(1), "{examined}");
    let told = format!("{name}: it is left over from an interrupted change");
    assert!(examined.stdout.contains(&told) && path.exists(), "{examined}");
    // A file that a process is still writing is no remainder.
    let writing = File::open(&path).unwrap();
    writing.lock().unwrap();
    env.run(&["doctor", "--fix"]).success();
    env.run(&["checkpoint", "-s", "019a"]).success();
    assert!(path.exists());
    drop(writing);
    env.run(&["doctor", "--fix"]).success();
    assert!(!path.exists() && other.exists());

    let env = TestEnv::new();
    let (path, _) = left(&env);
    let writing = File::open(&path).unwrap();
    writing.lock().unwrap();
    let refused = env.run_with_stdin(&["redact", "--yes", "--json"], SECRET.as_bytes()).said_no();
    let named = json(&refused.stdout)["left"].clone();
    let named: Vec<PathBuf> = serde_json::from_value(named).unwrap();
    assert!(matches!(named.as_slice(), [only] if only.ends_with(name)), "{refused}");
    assert_eq!(traces(&env), std::slice::from_ref(&path));
    drop(writing);
    env.run(&["checkpoint", "-s", "019a"]).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    env.run(&["doctor"]).success();

    let env = TestEnv::new();
    let (path, other) = left(&env);
    env.run(&["checkpoint", "-s", "019a"]).success();
    assert!(!path.exists() && other.exists());
}

#[test]
fn what_killed_commands_left_anywhere_is_named_and_deleted_by_the_next_change() {
    let left = |env: &TestEnv| {
        sessions(env);
        env.run(&["import"]).success();
        env.run(&["store", "backup", "../copy.undertext-new-1"]).success();
        let document = env.project().join("a.md.undertext-new-1");
        fs::write(&document, SECRET).unwrap();
        let left = [env.home().join("copy.undertext-new-1"), document];
        let notes = env.home().join(".local/state/undertext/unfinished");
        for (n, path) in left.iter().enumerate() {
            fs::write(notes.join(format!("1-{n}")), path.to_str().unwrap()).unwrap();
        }
        (left, notes)
    };
    let env = TestEnv::new();
    let (paths, notes) = left(&env);
    let examined = env.run(&["doctor"]);
    assert_eq!(examined.code(), Some(1), "{examined}");
    assert_eq!(
        examined.stdout.matches("undertext-new-1: it is left over from a killed command").count(),
        2,
        "{examined}"
    );
    // It is not deleted while the process that writes it holds its note.
    let writing = File::open(notes.join("1-1")).unwrap();
    writing.lock().unwrap();
    let fixed = env.run(&["doctor", "--fix"]).success();
    assert_eq!(fixed.stdout.matches("it is deleted").count(), 1, "{fixed}");
    assert!(!paths[0].exists() && paths[1].exists());
    drop(writing);
    let told = env.run(&["checkpoint", "-s", ONE]).success();
    assert!(
        told.stderr.contains("a.md.undertext-new-1, left over from a killed command"),
        "{told}"
    );
    assert!(!paths[1].exists());
    env.run(&["doctor"]).success();

    let env = TestEnv::new();
    let (mut paths, _) = left(&env);
    paths.sort();
    let done = env.run_with_stdin(&["redact", "--yes", "--json"], SECRET.as_bytes()).success();
    let mut deleted: Vec<PathBuf> =
        serde_json::from_value(json(&done.stdout)["deleted"].clone()).unwrap();
    deleted.sort();
    let home = env.home().to_str().unwrap();
    let paths = paths.map(|path| PathBuf::from(path.to_str().unwrap().replace(home, "$HOME")));
    assert_eq!(deleted, paths, "{done}");
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
}

#[test]
fn a_redaction_that_a_reader_of_the_store_holds_up_says_no_until_it_is_done() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    let store = env.home().join(".local/share/undertext");
    let reader = rusqlite::Connection::open(store.join("store.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM rules").unwrap();
    let redact = |json: &[&str]| {
        let args = [&["redact", "--yes", "--wait", "0"], json].concat();
        env.run_with_stdin(&args, SECRET.as_bytes())
    };
    for _ in 0..2 {
        let done = redact(&["--json"]);
        assert_eq!(done.code(), Some(1), "{done}");
        let (done, folder) = (json(&done.stdout), "$HOME/.local/share/undertext/store.db");
        assert_eq!(done["in_log"], true, "{done}");
        assert_eq!(done["left"], json!([folder, format!("{folder}-wal")]), "{done}");
        let done = redact(&[]);
        assert_eq!(done.code(), Some(1), "{done}");
        assert!(
            done.stderr.contains("store.db-wal still contains the text: another program"),
            "{done}"
        );
    }
    let examined = env.run(&["doctor"]);
    assert_eq!(examined.code(), Some(1), "{examined}");
    assert!(examined.stdout.contains("store.db: it or its log still contains"), "{examined}");
    drop(reader);
    env.run(&["checkpoint", "-s", ONE]).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    env.run(&["doctor"]).success();
}

#[test]
fn a_file_that_its_agent_moved_meanwhile_is_covered_where_it_is() {
    for is_packed in [false, true] {
        let env = TestEnv::new();
        let [.., file] = sessions(&env);
        env.run(&["import"]).success();
        let there = if is_packed {
            let packed = zstd::encode_all(fs::read(&file).unwrap().as_slice(), 3).unwrap();
            let there = file.with_extension("jsonl.zst");
            fs::write(&there, packed).unwrap();
            fs::remove_file(&file).unwrap();
            there
        } else {
            move_to(&file, &env.home().join(".codex/archived_sessions"))
        };
        let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
        assert_eq!(traces(&env), Vec::<PathBuf>::new(), "{done}");
        assert!(there.exists() && !done.stderr.contains("was deleted"), "{done}");
        env.run(&["verify"]).success();
    }
}

#[test]
fn what_is_left_out_next_to_a_session_is_told_of_and_its_name_is_in_no_row() {
    let env = TestEnv::new();
    let name = "tok-9f8e7d6c-hidden";
    let [file, ..] = sessions(&env);
    let text = fs::read_to_string(&file).unwrap().replace("nothing of the kind", name);
    fs::write(&file, text).unwrap();
    let results = file.with_extension("").join("tool-results");
    fs::create_dir_all(&results).unwrap();
    let long = fs::File::create(results.join(format!("{name}.txt"))).unwrap();
    long.set_len((64 << 20) + 1).unwrap();
    let outside = env.home().join("outside.txt");
    fs::write(&outside, name).unwrap();
    std::os::unix::fs::symlink(&outside, results.join("link.txt")).unwrap();
    fs::write(results.join("other.txt"), "nothing").unwrap();
    env.run(&["import"]).success();
    let store = env.home().join(".local/share/undertext/store.db");
    let sighted = || -> Vec<String> {
        let db = rusqlite::Connection::open(&store).unwrap();
        let mut paths = db.prepare("SELECT CAST(path AS TEXT) FROM sighting").unwrap();
        let paths = paths.query_map([], |row| row.get(0)).unwrap();
        paths.map(Result::unwrap).filter(|path: &String| path.contains(name)).collect()
    };
    assert_eq!(sighted().len(), 1);
    let done = env.run_with_stdin(&["redact", "--yes"], name.as_bytes()).said_no();
    for told in
        [format!("{name}.txt is an agent's file"), "link.txt could not be searched".to_owned()]
    {
        assert!(done.stderr.contains(&told), "{done}");
    }
    assert!(!done.stderr.contains("other.txt"), "{done}");
    assert_eq!(sighted(), Vec::<String>::new());
}

/// Nobody told of it: it was taken for one that this store has set aside, and covers.
#[test]
fn a_file_that_another_store_set_aside_is_told_of_if_it_has_it() {
    let env = TestEnv::new();
    let [file, ..] = sessions(&env);
    env.run(&["import"]).success();
    env.run(&["revert", "1", "--rotate", "-s", ONE]).success();
    fs::remove_dir_all(env.home().join(".local/share/undertext")).unwrap();
    env.run(&["import"]).success();
    let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).said_no();
    assert!(done.stderr.contains(&format!("{ONE}.jsonl.undertext-1 is an agent's file")), "{done}");
    let aside = file.with_extension("jsonl.undertext-1");
    assert!(fs::read_to_string(aside).unwrap().contains(SECRET));
}

#[test]
fn what_lies_under_the_name_of_a_session_is_told_of_if_it_has_it() {
    let env = TestEnv::new();
    let [file, ..] = sessions(&env);
    let (home, own) = (env.home().join(".claude"), file.with_extension(""));
    let here = |path: &Path, said: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, said).unwrap();
    };
    for (path, said) in [
        (own.join("session-memory/summary.md"), SECRET),
        (own.join("session-memory/more/deep.md"), SECRET),
        (home.join(format!("todos/{ONE}-agent-{ONE}.json")), SECRET),
        (home.join(format!("debug/{ONE}.txt")), SECRET),
        (home.join(format!("usage-data/facets/{ONE}.json")), SECRET),
        (home.join("usage-data/report.html"), SECRET),
        (
            home.join("history.jsonl"),
            &format!("{{\"display\":\"it is {SECRET}\",\"sessionId\":\"{ONE}\"}}\n"),
        ),
        (home.join(format!("tasks/{ONE}/1.json")), SECRET),
        (home.join(format!("todos/{ONE}-agent-other.json")), "nothing"),
        (own.join("session-memory/other.md"), "nothing"),
        (file.with_file_name(format!("{ONE}.jsonl.old.txt")), SECRET),
        (
            file.with_file_name("sessions-index.json"),
            &format!("[{{\"sessionId\":\"{ONE}\"}}, \"{SECRET}\"]"),
        ),
    ] {
        here(&path, said);
    }
    // A sub-agent's file is that of a session of its own.
    let agent = again::said(ONE, ("", "s0"), &format!("its agent says {SECRET}")).replace(
        "\"parentUuid\":\"\",\"isSidechain\":false",
        "\"parentUuid\":null,\"isSidechain\":true,\"agentId\":\"a1\"",
    );
    here(&own.join("subagents/agent-a1.jsonl"), &agent);
    env.run(&["import"]).success();
    let done = env.run_with_stdin(&["redact", "--yes", "--json"], SECRET.as_bytes()).said_no();
    let beside = |done: &str| -> Vec<String> {
        let told = json(done);
        let paths = told["beside"].as_array().unwrap().iter();
        paths.map(|path| path.as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
    };
    let (todo, facet) = (format!("{ONE}-agent-{ONE}.json"), format!("{ONE}.json"));
    let (debug, old) = (format!("{ONE}.txt"), format!("{ONE}.jsonl.old.txt"));
    assert_eq!(
        beside(&done.stdout),
        [
            &debug,
            "deep.md",
            "summary.md",
            &old,
            "sessions-index.json",
            "1.json",
            &todo,
            &facet,
            "report.html"
        ]
        .map(String::from)
    );
    assert_eq!(traces(&env).len(), 9);
    // What is forgotten may stand in any of them; it goes from its sub-agents too.
    let done = env.run(&["forget", "-s", "8f14", "--yes", "--json"]).said_no();
    assert_eq!(beside(&done.stdout).len(), 10);
    assert!(env.run(&["search", "its agent says"]).stdout.is_empty());
    assert!(!fs::read_to_string(own.join("subagents/agent-a1.jsonl")).unwrap().contains("says"));
    env.run(&["verify"]).success();
}

#[test]
fn another_store_that_has_it_is_told_of() {
    let env = TestEnv::new();
    let [file, ..] = sessions(&env);
    env.run(&["import", file.to_str().unwrap()]).success();
    let other = env.home().join("other");
    let other = other.to_str().unwrap();
    env.run(&["import", "--store", other, file.to_str().unwrap()]).success();
    let done =
        env.run_with_stdin(&["redact", "--yes", "--store", other], SECRET.as_bytes()).said_no();
    assert!(done.stderr.contains("another of your stores, "), "{done}");
    assert!(done.stderr.contains("pipe it into `undertext redact --store "), "{done}");
    // The other sessions, which this store has not imported, have it too.
    let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).said_no();
    assert!(!done.stderr.contains("another of your stores"), "{done}");
    assert_eq!(done.stderr.matches("is an agent's file").count(), 2, "{done}");
}

#[test]
fn what_openclaw_keeps_next_to_a_session_is_told_of_if_it_has_it() {
    let env = TestEnv::new();
    let folder = env.home().join(".openclaw/agents/main/sessions");
    fs::create_dir_all(&folder).unwrap();
    let header = format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{ONE}\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"cwd\":\"/work\"}}\n"
    );
    let said = format!(
        "{{\"type\":\"message\",\"id\":\"a1b2c3d4\",\"parentId\":null,\"timestamp\":\"2026-01-01T00:00:01Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"{SECRET}\"}}}}\n"
    );
    fs::write(folder.join(format!("{ONE}.jsonl")), header + &said).unwrap();
    let kept = [format!("{ONE}.jsonl.bak-12-1767225600000"), "sessions.json".to_owned()];
    for name in &kept {
        fs::write(folder.join(name), SECRET).unwrap();
    }
    env.run(&["import"]).success();
    let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).said_no();
    for name in &kept {
        assert!(done.stderr.contains(&format!("{name} is an agent's file")), "{done}");
    }
}

#[test]
fn what_stands_where_nothing_can_be_covered_keeps_nothing_else_from_being_taken_out() {
    let env = TestEnv::new();
    let [key, named] =
        ["R2kq8vTz0LmXw5YbN3cJ7dHs9fGaPe1uVi4o", "Z9yX8wV7uT6sR5qP4oN3mL2kJ1iH0gF9eD8c"];
    let folder = env.home().join(".claude/projects/-work");
    fs::create_dir_all(&folder).unwrap();
    let root = |line: String| line.replace("\"parentUuid\":\"\"", "\"parentUuid\":null");
    let one = root(again::said(ONE, ("", "r0"), &format!("the key is ghp_{key}")));
    let two = root(again::said(TWO, ("", &format!("ghp_{named}")), "a name that looks like a key"));
    fs::write(folder.join(format!("{ONE}.jsonl")), one).unwrap();
    fs::write(folder.join(format!("{TWO}.jsonl")), two).unwrap();
    env.run(&["import"]).success();
    let remains = "the text remains in the key fields of entry 1 of session c9f0f895";
    let planned = env.run(&["redact", "--found", "--dry-run"]).success();
    assert!(planned.stdout.contains("8f14e45f  1 line  claude"), "{planned}");
    assert!(planned.stderr.contains(remains), "{planned}");
    let done = env.run(&["redact", "--found", "--yes", "--json"]).said_no();
    let done = json(&done.stdout);
    assert_eq!((&done["lines"], done["fixed"].as_array().unwrap().len()), (&json!(1), 1), "{done}");
    assert_eq!(holding(&env, &[key]), Vec::<PathBuf>::new());
    let nothing = env.run(&["redact", "--found", "--yes"]).said_no();
    assert!(nothing.stderr.contains(remains), "{nothing}");
    assert!(nothing.stderr.contains("Nothing can be redacted"), "{nothing}");
    // What else says it is covered, in the same record too.
    let both = again::said(TWO, (&format!("ghp_{named}"), "r2"), &format!("it is ghp_{named}"));
    again::append(&folder.join(format!("{TWO}.jsonl")), &both);
    env.run(&["import"]).success();
    let done = env.run_with_stdin(&["redact", "--yes"], named.as_bytes()).said_no();
    assert!(done.stdout.contains("Redacted in 1 line of 1 session"), "{done}");
    assert!(done.stderr.contains("the key fields of 2 entries of session c9f0f895"), "{done}");
    let log = env.run(&["log", "-s", "c9f0"]).success();
    assert!(log.stdout.contains("it is ghp_[redacted]"), "{log}");
    env.run(&["verify"]).success();
}

#[test]
fn a_secret_is_read_from_stdin_however_a_program_writes_text() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    env.run_with_stdin(&["append", "-q", "-"], b"one secret-9x\ntwo secret-9x").success();
    for (said, title) in [
        ("one secret-9x\r\ntwo secret-9x\r\n", Value::Null),
        ("\u{feff}two secret-9x\r\n", json!("one secret-9x")),
        ("\u{feff}one secret-9x\ntwo secret-9x", Value::Null),
    ] {
        let plan = env.run_with_stdin(&["redact", "--dry-run", "--json"], said.as_bytes());
        let told = json(&plan.stdout);
        // A title that has a part of it is not shown.
        let shown = (&told["lines"], &told["sessions"][0]["title"]);
        assert_eq!(shown, (&json!(1), &title), "{plan}");
    }
}

#[test]
fn an_older_copy_that_was_put_back_is_covered_by_the_next_redaction() {
    let env = TestEnv::new();
    let [path, ..] = sessions(&env);
    env.run(&["import", "-q"]).success();
    let older = fs::read(&path).unwrap();
    let redact = || env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes());
    redact().success();
    let covered = fs::read(&path).unwrap();
    assert_eq!(redact().code(), Some(1), "nothing is left to cover");
    fs::write(&path, &older).unwrap();
    env.run(&["import", "-q"]).success();
    let told = redact().success();
    assert!(told.stderr.contains("that text was overwritten"), "{told}");
    assert!(fs::read(&path).unwrap() == covered);
    env.run(&["verify"]).success();
}

#[test]
fn a_redaction_that_was_cut_short_blocks_nothing_where_a_file_is_gone_or_not_to_be_written() {
    let env = TestEnv::new();
    let files = sessions(&env);
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    let mark = env.home().join(".local/share/undertext/redacting");
    // A folder of the agent is gone as a whole.
    fs::write(&mark, "").unwrap();
    fs::remove_dir_all(files[2].parent().unwrap()).unwrap();
    env.run(&["checkpoint", "-s", "c9f0"]).success();
    assert!(!mark.exists() && !env.home().join(UNCOVERED).exists());
    // Something else lies where a file was.
    fs::write(&mark, "").unwrap();
    let aside = env.home().join("aside");
    fs::rename(&files[0], &aside).unwrap();
    std::os::unix::fs::symlink(&aside, &files[0]).unwrap();
    env.run(&["checkpoint", "-s", "c9f0"]).success();
    assert!(!mark.exists() && env.home().join(UNCOVERED).exists());
    fs::remove_file(&files[0]).unwrap();
    fs::rename(&aside, &files[0]).unwrap();
    env.run(&["checkpoint", "-s", "c9f0"]).success();
    assert!(!env.home().join(UNCOVERED).exists());
    env.run(&["verify"]).success();
}

#[test]
fn what_came_to_a_file_that_is_not_followed_is_told_of() {
    let env = TestEnv::new();
    let [file, ..] = sessions(&env);
    env.run(&["import"]).success();
    let own = env.home().join(".config/undertext/config.toml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(own, "[exclude]\nfolders = [\"/work\"]\n").unwrap();
    let newer = again::said(ONE, ("r6", "r7"), &format!("again {SECRET}"));
    let text = fs::read_to_string(&file).unwrap() + &newer;
    fs::write(&file, text).unwrap();
    let done = env.run_with_stdin(&["redact", "--yes", "--json"], SECRET.as_bytes()).said_no();
    let told = json(&done.stdout);
    let has = |key: &str| {
        let paths = told[key].as_array().unwrap();
        paths.iter().any(|path| path.as_str().unwrap().ends_with(&format!("{ONE}.jsonl")))
    };
    assert!(has("left") && !has("covered"), "{done}");
    assert_eq!(traces(&env), [file]);
}

#[test]
fn a_folder_that_is_not_looked_through_is_named() {
    let env = TestEnv::new();
    let [file, ..] = sessions(&env);
    env.run(&["import"]).success();
    let elsewhere = env.home().join("elsewhere");
    fs::create_dir_all(elsewhere.join(ONE)).unwrap();
    fs::write(elsewhere.join(ONE).join("notes"), SECRET).unwrap();
    let home = file.ancestors().nth(3).unwrap();
    std::os::unix::fs::symlink(&elsewhere, home.join("file-history")).unwrap();
    let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).said_no();
    assert!(done.stderr.contains("file-history could not be searched"), "{done}");
    let again = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes());
    assert!(again.stderr.contains("file-history could not be searched"), "{again}");
}

#[test]
fn what_comes_next_to_a_session_again_is_covered_by_the_next_redaction() {
    let env = TestEnv::new();
    let [file, ..] = sessions(&env);
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    let result = file.with_extension("").join("tool-results/x.txt");
    fs::create_dir_all(result.parent().unwrap()).unwrap();
    fs::write(&result, format!("long {SECRET}")).unwrap();
    env.run(&["import"]).success();
    let again = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    assert!(again.stdout.contains("tool-results/x.txt"), "{again}");
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
}

#[test]
fn a_message_goes_from_the_records_that_say_it_again() {
    let env = TestEnv::new();
    let [_, two, codex] = sessions(&env);
    let event = |message: &str| {
        let payload = json!({ "type": "user_message", "message": message, "images": [] });
        json!({ "timestamp": "2026-01-02T00:00:02.000Z", "type": "event_msg", "payload": payload })
    };
    let said = ["and nothing of the kind", "and nothing of the kind, you say"];
    let events = said.map(|said| format!("{}\n", event(said)));
    fs::write(&codex, fs::read_to_string(&codex).unwrap() + &events.concat()).unwrap();
    env.run(&["import"]).success();
    env.run(&["redact", "@3", "-s", "019a", "--yes"]).success();
    let text = fs::read_to_string(&codex).unwrap();
    assert_eq!(text.matches("nothing of the kind").count(), 1, "{text}");
    assert!(text.contains("nothing of the kind, you say"), "{text}");
    assert_eq!(fs::read_to_string(&two).unwrap().matches("[redacted]").count(), 0);
    env.run(&["verify"]).success();
    assert!(env.run(&["import"]).success().stdout.contains("0 new entries"));
}

#[test]
fn an_entry_goes_with_its_long_texts_and_a_session_with_all_that_it_says() {
    let env = TestEnv::new();
    let files = sessions(&env);
    env.run(&["import"]).success();
    let entry = env.run(&["redact", "@1", "-s", "8f14", "--yes", "--reason", "a letter"]).success();
    assert_snapshot!(entry, @"
    Redacted in 5 lines of 3 sessions; every entry keeps its id
    overwritten in ~/.claude/projects/-work/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl
    overwritten in ~/.claude/projects/-work/c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90.jsonl
    overwritten in ~/.codex/sessions/2026/01/02/rollout-2026-01-02T00-00-00-019a0000-0000-7000-8000-000000000001.jsonl
    ------- stderr -------
    hint: check that everything else is intact: undertext verify
    hint: find copies that are written elsewhere later: undertext audit --secrets
    ");
    for path in &files {
        let text = fs::read_to_string(path).unwrap();
        assert!(!text.contains("before before"), "{text}");
        assert!(text.contains("the token is"), "{text}");
    }
    assert!(env.run(&["operations", "-s", "8f14"]).success().stdout.contains(": a letter"));

    assert_snapshot!(env.run(&["forget", "8f14", "--dry-run"]), @r"
    8f14e45f  6 lines  claude
    2 of your notes and names also contain the text
    ------- stderr -------
    Nothing was changed
    ");
    assert_snapshot!(env.run(&["forget", "8f14", "--yes", "--reason", "asked for"]), @"
    Redacted in 6 lines of 1 session; every entry keeps its id
    overwritten in ~/.claude/projects/-work/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl
    ------- stderr -------
    hint: check that everything else is intact: undertext verify
    ");
    let text = fs::read_to_string(&files[0]).unwrap();
    for said in ["the token is", "again: ", "nothing of the kind", "hidden"] {
        assert!(!text.contains(said), "{text}");
    }
    assert!(
        text.contains("\"uuid\":\"r6\"") && text.contains("2026-01-01T00:00:06.000Z"),
        "{text}"
    );
    env.run(&["verify"]).success();
    assert!(env.run(&["log", "-s", "8f14"]).success().stdout.contains("redacted"));
    assert!(fs::read_to_string(&files[2]).unwrap().contains("the token is"));
}

/// Returns what each entry of the only session of some files is, and how many turns begin in them, before all that they say is
/// taken out and after.
fn kinds_around_forgetting(files: &[PathBuf]) -> [(Vec<Record>, u64); 2] {
    let mut archive = Archive::in_memory(Box::new(Machine));
    verbs::import(&mut archive, files, files, &mut |_| ()).unwrap();
    let kinds = |archive: &Archive| {
        let mut kinds = (Vec::new(), 0);
        for session in archive.every().unwrap() {
            kinds.0.extend(archive.store().records(session.key, EntryNumber::ALL).unwrap());
            kinds.1 += archive.store().card(session.key).unwrap().turns;
        }
        kinds
    };
    let before = kinds(&archive);
    for session in archive.every().unwrap() {
        verbs::redact(&mut archive, &Wanted::Session(&session), Cause::default(), &[]).unwrap();
    }
    [before, kinds(&archive)]
}

#[test]
fn what_is_forgotten_stays_the_kind_that_it_was() {
    let env = TestEnv::new();
    let claude = |n: u32, words: &str| {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"u{}\"", n - 1) };
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"sessionId\":\"s\",\"type\":\"user\",\"message\":\
             {{\"role\":\"user\",\"content\":\"{words}\"}},\"uuid\":\"u{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        )
    };
    let codex = |role: &str, words: &str| {
        format!(
            "{{\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"type\":\"response_item\",\"payload\":{{\"type\":\"message\",\
             \"role\":\"{role}\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{words}\"}}]}}}}\n"
        )
    };
    let kimi = |words: &str| format!("{{\"role\":\"user\",\"content\":\"{words}\"}}\n");
    let meta = "{\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"s\",\"cwd\":\"/w\"}}\n";
    let sessions = [
        (
            "s.jsonl",
            [
                claude(0, "Water the beans."),
                claude(1, "[Request interrupted by user for tool use]"),
                claude(2, "\\n<command-name>/clear</command-name>"),
                claude(3, "Go on."),
            ]
            .concat(),
            2,
        ),
        (
            "rollout-2026-01-01T00-00-00-s.jsonl",
            [
                meta.to_owned(),
                codex("developer", "<permissions instructions>\\nnone"),
                codex(
                    "user",
                    "<environment_context>\\n  <cwd>/garden</cwd>\\n</environment_context>\\n",
                ),
                codex("user", "Water the beans."),
            ]
            .concat(),
            1,
        ),
        (
            "context.jsonl",
            [
                kimi("<system>CHECKPOINT 0</system>"),
                kimi("Water the beans."),
                kimi("<system>Previous context has been compacted. Beans.</system>"),
                kimi("<system-reminder>Be brief.</system-reminder>"),
            ]
            .concat(),
            1,
        ),
    ];
    for (name, text, turns) in sessions {
        let path = env.project().join(name);
        fs::write(&path, &text).unwrap();
        let [before, after] = kinds_around_forgetting(&[path]);
        assert_eq!(before.1, turns, "{name}");
        assert_eq!(after, before, "{name}");
    }
}

#[test]
fn what_is_forgotten_of_real_sessions_stays_the_kind_that_it_was() {
    let Some(corpus) = needs::corpus() else { return };
    for path in corpus.sessions() {
        let [before, after] = kinds_around_forgetting(std::slice::from_ref(&path));
        let kinds = |(records, turns): (Vec<Record>, u64)| {
            let kinds = records.into_iter().map(|one| (one.n, one.kind, one.parent, one.time));
            (kinds.collect::<Vec<_>>(), turns)
        };
        assert_eq!(kinds(after), kinds(before), "{path:?}");
    }
}

#[test]
fn the_state_that_kimi_keeps_of_a_session_goes_on_without_its_words() {
    let env = TestEnv::new();
    let folder = env.home().join(".kimi/sessions/w/k");
    fs::create_dir_all(&folder).unwrap();
    let call = |arguments: &str| {
        let function = json!({ "name": "Shell", "arguments": arguments });
        let call = json!({ "type": "function", "id": "t", "function": function });
        json!({ "role": "assistant", "content": [], "tool_calls": [call] }).to_string()
    };
    let said = [call(r#"{"wait": null, "all": true}"#), call("{\"n\": [false, 12]}\n")];
    fs::write(folder.join("context.jsonl"), said.join("\n") + "\n").unwrap();
    let state = r#"{
  "version": 1,
  "approval": {"yolo": true, "afk": false, "auto_approve_actions": ["run command"]},
  "additional_dirs": ["/garden"],
  "custom_title": "My beans",
  "title_generated": true,
  "plan_session_id": "6f1d2c3b-4a59",
  "plan_slug": "black-widow",
  "archived_at": 5.25,
  "wire_mtime": null,
  "todos": [{"title": "buy milk", "status": "in_progress"}]
}
"#;
    fs::write(folder.join("state.json"), state).unwrap();
    env.run(&["import"]).success();
    env.run(&["forget", "k", "--yes"]).success();
    let covered = fs::read_to_string(folder.join("state.json")).unwrap();
    let expected = state
        .replace("run command", "[redacted]*")
        .replace("/garden", "*******")
        .replace("My beans", "********")
        .replace("buy milk", "********");
    assert_eq!(covered, expected);
    let lines = fs::read_to_string(folder.join("context.jsonl")).unwrap();
    let calls = [r#"{\"****\": null, \"***\": true}"#, r#"{\"*\": [false, 11]}\n"#];
    for (line, arguments) in lines.lines().zip(calls) {
        assert!(line.contains(&format!(r#""arguments":"{arguments}""#)), "{line}");
    }
    // Another time there is nothing to take out.
    let again = env.run(&["forget", "k", "--yes"]);
    assert!(!again.stdout.contains("overwritten in"), "{again}");
    assert_eq!(fs::read_to_string(folder.join("state.json")).unwrap(), covered);
    assert_eq!(fs::read_to_string(folder.join("context.jsonl")).unwrap(), lines);
    env.run(&["verify"]).success();
}

#[test]
fn what_is_kept_whole_is_covered_where_it_lies_and_in_the_store() {
    let env = TestEnv::new();
    let files = sessions(&env);
    let result = files[0].with_extension("").join("tool-results/a.txt");
    fs::create_dir_all(result.parent().unwrap()).unwrap();
    fs::write(&result, format!("the answer is {SECRET}")).unwrap();
    env.run(&["import"]).success();
    let redacted = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    assert!(redacted.stdout.contains("overwritten in ~/.claude/projects/-work/8f14e45f-ceea-467f-a26a-5dba2f5b6d35/tool-results/a.txt"), "{redacted}");
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    let covered = fs::read_to_string(&result).unwrap();
    assert!(covered.starts_with("the answer is [redacted]"), "{covered}");
    env.run(&["verify"]).success();
    assert!(env.run(&["import"]).success().stdout.contains("0 new entries"));
    // It comes back with restore as it is now, and what is written there again is redacted again.
    fs::remove_file(&result).unwrap();
    env.run(&["restore", "-s", "8f14"]).success();
    assert_eq!(fs::read_to_string(&result).unwrap(), covered);
    fs::write(&result, format!("once more {SECRET}")).unwrap();
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    assert_eq!(traces(&env), Vec::<PathBuf>::new());
    env.run(&["verify"]).success();
    assert!(env.run(&["store", "rebuild"]).success().stdout.contains("equal"));
}

#[test]
fn a_file_that_several_sessions_keep_goes_from_all_of_them_with_one() {
    let env = TestEnv::new();
    let files = sessions(&env);
    let history =
        |id: &str, name: &str| env.home().join(".claude/file-history").join(id).join(name);
    let last = fs::read_to_string(&files[0]).unwrap().lines().last().unwrap().to_owned();
    let (same, line) = ("the same file, in two sessions\n", last.as_str());
    for (id, name, text) in
        [(ONE, "a@v1", same), (ONE, "a@v2", same), (TWO, "b@v1", same), (TWO, "c@v1", line)]
    {
        fs::create_dir_all(history(id, name).parent().unwrap()).unwrap();
        fs::write(history(id, name), text).unwrap();
    }
    env.run(&["import"]).success();
    assert_snapshot!(env.run(&["forget", "8f14", "--dry-run"]).success(), @r"
    8f14e45f  7 lines  claude
    ~/.claude/file-history/8f14e45f-ceea-467f-a26a-5dba2f5b6d35/a@v1 also contains the text
    ~/.claude/file-history/8f14e45f-ceea-467f-a26a-5dba2f5b6d35/a@v2 also contains the text
    ~/.claude/file-history/c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90/b@v1 also contains the text
    ~/.claude/file-history/c9f0f895-fb98-4b91-8f2a-3c5b6d7e8f90/c@v1 also contains the text
    ------- stderr -------
    Nothing was changed
    ");
    env.run(&["forget", "8f14", "--yes"]).success();
    for (id, name) in [(ONE, "a@v1"), (ONE, "a@v2"), (TWO, "b@v1")] {
        let covered = fs::read_to_string(history(id, name)).unwrap();
        assert_eq!(covered, format!("[redacted]{}", "*".repeat(same.len() - 10)));
    }
    let covered = fs::read_to_string(history(TWO, "c@v1")).unwrap();
    assert_eq!(Some(covered.as_str()), fs::read_to_string(&files[0]).unwrap().lines().last());
    env.run(&["verify"]).success();
    env.run(&["forget", "c9f0", "--yes"]).success();
    env.run(&["verify"]).success();
    assert!(env.run(&["import"]).success().stdout.contains("0 new entries"));
}

#[test]
fn a_reason_that_says_it_is_refused_before_anything_is_changed() {
    let env = TestEnv::new();
    let files = sessions(&env);
    env.run(&["import"]).success();
    let before = fs::read(&files[0]).unwrap();
    let reason = format!("leaked {SECRET}");
    for how in [&["--dry-run"][..], &["--yes"]] {
        let args = [&["redact", "--reason", &reason], how].concat();
        let refused = env.run_with_stdin(&args, SECRET.as_bytes());
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.stderr.contains("the reason contains the text"), "{refused}");
    }
    assert_eq!(fs::read(&files[0]).unwrap(), before);
    assert!(!env.run(&["operations", "-s", "8f14"]).success().stdout.contains("redact"));
}

#[test]
fn a_compressed_file_is_covered_as_far_as_it_can_be_read() {
    for cut in [0, 40] {
        let env = TestEnv::new();
        let files = sessions(&env);
        let lines = fs::read(&files[2]).unwrap();
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            encoder.write_all(line).unwrap();
            encoder.flush().unwrap();
        }
        let whole = encoder.finish().unwrap();
        fs::remove_file(&files[2]).unwrap();
        fs::write(files[2].with_extension("jsonl.zst"), &whole[..whole.len() - cut]).unwrap();
        let imported = env.run(&["import"]).success();
        assert_eq!(
            imported.stdout.contains("1 file that cannot be read to its end"),
            cut > 0,
            "{imported}"
        );
        // It is looked through for what is nowhere, and covered for what is there.
        let nothing = env.run_with_stdin(&["redact", "--yes"], b"what nobody ever said");
        assert!(nothing.stderr.contains("Found nothing to redact in the store"), "{nothing}");
        let done = env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
        assert!(done.stdout.contains("overwritten in ~/.codex/sessions/2026/01/02/"), "{done}");
        assert_eq!(traces(&env), Vec::<PathBuf>::new());
        env.run(&["verify"]).success();
        assert!(env.run(&["import"]).success().stdout.contains("0 new entries"));
    }
}

#[test]
fn a_line_that_was_lost_keeps_nothing_from_being_taken_out_elsewhere() {
    let env = TestEnv::new();
    let files = sessions(&env);
    env.run(&["import"]).success();
    env.run(&["append", "-s", "c9f0", "this one has a-secret-of-its-own"]).success();
    let lines = fs::read_to_string(&files[0]).unwrap();
    let kept: String = lines.split_inclusive('\n').take(6).collect();
    fs::write(&files[0], kept).unwrap();
    let store = env.home().join(".local/share/undertext/store.db");
    let db = rusqlite::Connection::open(&store).unwrap();
    let lines = "SELECT entry.line FROM entry JOIN session ON key = session WHERE session.id = ? AND n IN (6, 7)";
    db.execute(&format!("UPDATE fresh SET body = x'0011' WHERE key IN ({lines})"), [ONE]).unwrap();
    drop(db);
    let mended = env.run(&["doctor", "--fix"]);
    assert!(mended.stdout.contains("lost: the line of entry"), "{mended}");
    let done = env.run_with_stdin(&["redact", "--yes"], b"a-secret-of-its-own").success();
    assert!(done.stdout.starts_with("Redacted in 1 line of 1 session"), "{done}");
}

#[test]
fn a_very_long_secret_is_taken_out_too() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    let long = "0123456789abcdefghijklmnopqrstuvwxyz".repeat(1_700);
    env.run(&["append", "-s", "c9f0", &format!("it is {long}.")]).success();
    let done = env.run_with_stdin(&["redact", "--yes"], long.as_bytes()).success();
    assert!(done.stdout.starts_with("Redacted in 1 line of 1 session"), "{done}");
    env.run(&["verify"]).success();
}

#[test]
fn a_damaged_store_is_mended_with_what_was_taken_out_of_it() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    let store = env.home().join(".local/share/undertext/store.db");
    let db = rusqlite::Connection::open(&store).unwrap();
    db.execute_batch("DROP TRIGGER run_is_not_updated; UPDATE card SET state = x'00'").unwrap();
    drop(db);
    env.run(&["doctor", "--fix"]).success();
    let verified = env.run(&["verify"]).success();
    assert!(verified.stdout.contains("intact, "), "{verified}");
    // What was set aside goes with the next thing that is taken out: it may have it.
    let aside = env.home().join(".local/share/undertext/damaged-1");
    assert!(aside.exists());
    // So does what a mending made that was cut short.
    let unfinished = env.home().join(".local/share/undertext/mending");
    fs::create_dir(&unfinished).unwrap();
    fs::copy(aside.join("store.db"), unfinished.join("store.db")).unwrap();
    let dry = env.run_with_stdin(&["redact", "--dry-run"], b"nothing of the kind").success();
    assert!(dry.stdout.contains("damaged-1, a damaged store") && aside.exists(), "{dry}");
    let done = env.run_with_stdin(&["redact", "--yes"], b"nothing of the kind").success();
    assert!(done.stdout.contains("deleted ~/.local/share/undertext/damaged-1"), "{done}");
    assert!(done.stdout.contains("deleted ~/.local/share/undertext/mending"), "{done}");
    assert!(!aside.exists() && !unfinished.exists());
    assert!(env.run(&["log", "-s", "c9f0"]).success().stdout.contains("[redacted]"));
}

#[test]
fn wrong_use_changes_nothing() {
    let env = TestEnv::new();
    let files = sessions(&env);
    assert_snapshot!(env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()), @"
    ------- stderr -------
    error: no sessions yet: found none in ~/.claude/projects, ~/.codex/sessions, ~/.codex/archived_sessions, ~/.pi/agent/sessions, ~/.openclaw/agents, ~/.kimi/sessions, ~/.clawdcode/projects
    hint: import sessions from elsewhere: undertext import PATH
    hint: start a session for your own agent: undertext new
    [exit status: 1]
    ");
    env.run(&["import"]).success();
    let before = fs::read(&files[0]).unwrap();
    assert_snapshot!(env.run_with_stdin(&["redact", "--yes"], b""), @r"
    ------- stderr -------
    error: there is no secret on stdin
    hint: see the help: undertext redact --help
    [exit status: 2]
    ");
    assert_snapshot!(env.run_with_stdin(&["redact", "--yes"], b"tok"), @r"
    ------- stderr -------
    error: text to redact must have at least 4 bytes: shorter text would match everywhere
    hint: include some of the text around it, exactly as it appears there
    [exit status: 2]
    ");
    assert_snapshot!(env.run_with_stdin(&["redact", "--yes"], b"\xff\xfe\xfd\xfc"), @r"
    ------- stderr -------
    error: the secret on stdin is not UTF-8
    [exit status: 2]
    ");
    // A name by which records refer to each other cannot be covered.
    let named = env.run_with_stdin(&["redact", "--yes"], ONE.as_bytes());
    assert_ne!(named.code(), Some(0), "{named}");
    let unnamed = env.run(&["forget", "--yes"]);
    assert!(unnamed.stderr.contains("name the session") && unnamed.code() == Some(2), "{unnamed}");
    assert_snapshot!(env.run(&["redact", "deadbeef", "-s", "8f14"]), @r#"
    ------- stderr -------
    error: no entry matches "deadbeef"
    hint: list the entries with their ids: undertext log 8f14e45f
    hint: to redact some text, type it when asked, or pipe it in: undertext redact
    hint: what you typed is in your shell's history now
    [exit status: 1]
    "#);
    assert_eq!(fs::read(&files[0]).unwrap(), before);
    env.run(&["verify"]).success();
}

#[test]
fn only_words_are_activity() {
    let env = TestEnv::new();
    let [one, ..] = sessions(&env);
    env.run(&["import"]).success();
    let listed = || {
        let told = env.run(&["sessions", "--json"]).success().stdout;
        let each = |line| {
            let told = json(line);
            (told["session"].to_string(), told["active"].to_string())
        };
        told.lines().map(each).collect::<Vec<_>>()
    };
    let before = listed();
    assert_eq!(before.len(), 3);
    let words = env.home().join("words");
    fs::write(&words, SECRET).unwrap();
    let in_2033 = |args: &[&str]| {
        let mut command = env.command();
        command.env("UNDERTEXT_TEST_CLOCK", "2000000000000").args(args);
        let output = command.stdin(fs::File::open(&words).unwrap()).output().unwrap();
        assert!(output.status.success(), "{args:?}");
    };
    let one = one.to_str().unwrap();
    in_2033(&["redact", "--yes"]);
    fs::remove_file(one).unwrap();
    in_2033(&["restore", "-s", "8f14"]);
    assert!(Path::new(one).exists());
    in_2033(&["attach", "--off", "-s", "8f14"]);
    in_2033(&["attach", one]);
    in_2033(&["revert", "1", "-s", "c9f0", "-m", "It rains."]);
    in_2033(&["undo", "c9f0"]);
    in_2033(&["compact", "--keep", "0", "c9f0"]);
    assert_eq!(listed(), before);
    in_2033(&["append", "-s", "c9f0", "It rained."]);
    assert!(listed()[0].0.contains("c9f0"), "{:?}", listed());
}

#[test]
fn branches_whose_names_were_taken_out_stay_what_they_were() {
    let env = TestEnv::new();
    let id = conversation(&env);
    let listed = || -> Vec<Value> {
        env.run(&["branch", "--json"]).success().stdout.lines().map(json).collect()
    };
    let branches = || {
        let of = |line: Value| (line["current"] == true, line["entry"].to_string());
        let mut found: Vec<(bool, String)> = listed().into_iter().map(of).collect();
        found.sort();
        found
    };
    env.run(&["branch", "again", "@1"]).success();
    env.run(&["switch", "again"]).success();
    env.run(&["append", "--role", "user", "And once more."]).success();
    let before = branches();
    assert_eq!(before.len(), 2);
    env.run_with_stdin(&["redact", "--yes"], b"again").success();
    assert_eq!(branches(), before);
    let current = listed().into_iter().find(|line| line["current"] == true).unwrap();
    let removed = current["branch"].as_str().unwrap();
    assert!(removed.starts_with("removed-"), "{removed}");

    // Such a name can be used, and is taken out no second time.
    env.run(&["switch", "main"]).success();
    env.run(&["switch", removed]).success();
    env.run(&["append", "--role", "user", "And another time."]).success();
    let before = branches();
    env.run(&["forget", &id, "--yes"]).success();
    assert_eq!(branches(), before);
}

/// Asks a person for a secret at a terminal, until `end` ends that. Returns whether the terminal shows what is typed then and
/// afterwards, what it showed, and how the command ended.
fn typed(env: &TestEnv, end: impl FnOnce(&mut File, &Child)) -> ([bool; 2], String, ExitStatus) {
    let (mut host, terminal) = screens::terminal();
    let mut command = env.command();
    command.args(["redact", "--dry-run"]).env("NO_COLOR", "1").stdin(terminal.try_clone().unwrap());
    command.stdout(terminal.try_clone().unwrap()).stderr(terminal.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let read = |host: &mut File| {
        let mut buffer = [0; 4096];
        let n = host.read(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..n]).into_owned()
    };
    let mut said = String::new();
    while !said.contains("then Enter.") {
        said.push_str(&read(&mut host));
    }
    let shows = || tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHO);
    let then = shows();
    end(&mut host, &child);
    let ended = child.wait().unwrap();
    let shows = [then, shows()];
    File::from(terminal).write_all(b"(end)").unwrap();
    while !said.ends_with("(end)") {
        said.push_str(&read(&mut host));
    }
    (shows, said, ended)
}

#[test]
fn a_secret_is_typed_unseen_and_the_terminal_is_as_before() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    let (shows, said, ended) =
        typed(&env, |host, _| host.write_all(format!("{SECRET}\n").as_bytes()).unwrap());
    assert!(ended.success() && !said.contains(SECRET), "{said}");
    assert!(said.contains("Nothing was changed"), "{said}");
    assert_eq!(shows, [false, true]);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let (shows, said, ended) = typed(&env, |_, child| {
            kill_process(Pid::from_child(child), signal).unwrap();
        });
        assert_eq!((shows, ended.signal()), ([false, true], Some(signal.as_raw())), "{said}");
    }
}

#[test]
fn a_long_secret_is_typed_whole_and_one_that_the_terminal_cuts_off_is_refused() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    let long = "0123456789abcdef".repeat(60);
    // Another line has only its beginning.
    for said in [&long[..], &long[..long.len() - 16]] {
        env.run(&["append", "-s", "c9f0", &format!("it is {said}.")]).success();
    }
    let ask = |secret: &str| {
        let (_, said, ended) =
            typed(&env, |host, _| host.write_all(format!("{secret}\n").as_bytes()).unwrap());
        (said, ended.code())
    };
    let (said, code) = ask(&long);
    assert!(said.contains("1 line  claude") && code == Some(0), "{said}");
    let (said, code) = ask(&"x".repeat(5000));
    assert!(said.contains("bytes of a line, so the secret may have been cut off"), "{said}");
    assert_eq!(code, Some(2));
    let (said, code) = ask("");
    assert!(said.contains("there is no secret on stdin") && code == Some(2), "{said}");
}

/// What a terminal takes of a line is read to its end, so that a question is not answered by the rest.
#[test]
#[cfg(target_os = "linux")]
fn a_secret_as_long_as_a_terminal_takes_is_read_whole() {
    let env = TestEnv::new();
    sessions(&env);
    env.run(&["import"]).success();
    let long = "0123456789abcdef".repeat(250);
    for said in [&long[..], &long[..1024]] {
        env.run(&["append", "-s", "c9f0", &format!("it is {said}.")]).success();
    }
    let (_, said, ended) =
        typed(&env, |host, _| host.write_all(format!("{long}\n").as_bytes()).unwrap());
    assert!(said.contains("1 line  claude") && ended.success(), "{said}");
}
