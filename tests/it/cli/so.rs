//! Errors say what is so: what was done, what could not be read or written, and who is in the way.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rusqlite::Connection;

use super::{conversation, json, live_path, store};
use crate::env::TestEnv;
use crate::needs;

/// How long anything is waited for: what hangs fails its own test.
const PATIENCE: Duration = Duration::from_secs(300);

fn settings(env: &TestEnv, text: &str) {
    let folder = env.home().join(".config/undertext");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// Returns what a script for the shell says on stderr, and how it ends.
fn told(env: &TestEnv, script: &str) -> (String, Option<i32>) {
    let output = env.shell("sh", script).output().unwrap();
    (String::from_utf8(output.stderr).unwrap(), output.status.code())
}

#[test]
fn a_change_whose_answer_cannot_be_written_is_said_to_be_made() {
    let env = TestEnv::new();
    let session = conversation(&env);
    for (command, n) in [("append 'Once.'", 6), ("append 'Twice.'", 7), ("checkpoint", 8)] {
        let (stderr, code) = told(&env, &format!("undertext {command} > /dev/full"));
        let name = command.split(' ').next().unwrap();
        let made =
            format!("error: the change was made: operation {n} ({name}) of session {session}\n");
        assert!(stderr.contains(&made), "{command}: {stderr}");
        assert!(stderr.contains("caused by: cannot write the output\n"), "{command}: {stderr}");
        assert_eq!(code, Some(5), "{command}");
    }
    let (stderr, code) = told(&env, "undertext new > /dev/full");
    assert!(stderr.contains("the change was made: operation 1 (new) of session "), "{stderr}");
    assert_eq!(code, Some(5));
    // What changed nothing is an error like any other.
    for command in ["log", "undo 99 --help", "branch"] {
        let (stderr, code) = told(&env, &format!("undertext {command} -s {session} > /dev/full"));
        assert!(!stderr.contains("is made"), "{command}: {stderr}");
        assert_eq!(code, Some(3), "{command}: {stderr}");
    }
    // Each is there once.
    let log = env.run(&["log", &session]).success().stdout;
    assert_eq!((log.matches("Once.").count(), log.matches("Twice.").count()), (1, 1));
}

#[test]
fn a_change_of_more_than_a_session_is_said_to_be_made_too() {
    let env = TestEnv::new();
    let file = env.project().join("session.jsonl");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::copy(example, file).unwrap();
    fs::create_dir(env.home().join(".claude")).unwrap();
    for (command, made) in [
        ("import session.jsonl", "1 session is up to date in the store"),
        ("setup claude --yes --json", "~/.claude/settings.json was written"),
        ("store backup ../copy.bundle", "../copy.bundle was written"),
        ("store pack", "the store is packed"),
        ("forget --yes -s 7c2a", "redacted in "),
    ] {
        let (stderr, code) = told(&env, &format!("undertext {command} > /dev/full"));
        assert!(stderr.contains(&format!("the change was made: {made}")), "{command}: {stderr}");
        assert_eq!(code, Some(5), "{command}: {stderr}");
    }
    // What changed nothing is an error like any other, and so is what nobody could be shown before.
    let settings = env.home().join(".claude/settings.json");
    let before = fs::read(&settings).unwrap();
    for command in ["import session.jsonl", "setup claude --off --yes"] {
        let (stderr, code) = told(&env, &format!("undertext {command} > /dev/full"));
        assert!(!stderr.contains("is made"), "{command}: {stderr}");
        assert_eq!(code, Some(3), "{command}: {stderr}");
    }
    assert_eq!(fs::read(settings).unwrap(), before);
}

#[test]
fn a_store_that_may_not_be_read_is_not_called_absent() {
    let Some(other) = needs::other_user() else { return };
    let env = TestEnv::new();
    conversation(&env);
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    open(env.home(), 0o755);
    open(&env.project(), 0o755);
    for folder in [".local", ".local/share"] {
        open(&env.home().join(folder), 0o755);
    }
    for closed in [store(&env), store(&env).parent().unwrap().to_owned()] {
        open(&closed, 0o700);
        for command in ["log", "sessions", "append", "undo", "verify", "doctor"] {
            let mut run = env.command();
            run.arg(command).uid(other).gid(other);
            if command == "append" {
                run.arg("text");
            }
            let output = run.output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(!stderr.contains("there is no store"), "{command}: {stderr}");
            assert!(stderr.contains("ermission denied"), "{command}: {stderr}");
            assert_eq!(output.status.code(), Some(3), "{command}: {stderr}");
        }
    }
}

#[test]
fn a_key_goes_to_another_computer_in_secret_or_by_leave() {
    let env = TestEnv::new();
    conversation(&env);
    let provider = |url: &str, more: &str| {
        settings(
            &env,
            &format!(
                "[provider.p]\nurl = '{url}'\nmodel = 'm'\nkey_env = 'P_KEY'\nretries = 0\n\
                 timeout = 300\n{more}\n"
            ),
        );
        let mut command = env.command();
        command.env("P_KEY", "secret").args(["turn", "Hello", "--provider", "p"]);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let refused = provider("http://models.example/v1", "");
    assert_snapshot!(refused, @r"
    error: provider.p would send its key to http://models.example/v1 unencrypted
    hint: use an https:// address
    hint: or set insecure = true in [provider.p] of config.toml
    ");
    for (url, more) in [
        ("http://localhost:1/v1", ""),
        ("http://127.0.0.1:1/v1", ""),
        ("http://[::1]:1/v1", ""),
        ("http://0.0.0.0:1/v1", "insecure = true"),
    ] {
        let said = provider(url, more);
        assert!(!said.contains("unencrypted"), "{url}: {said}");
    }
}

#[test]
fn certificates_that_cannot_be_read_are_told_of_and_no_others_are_trusted() {
    let env = TestEnv::new();
    conversation(&env);
    settings(
        &env,
        "[provider.p]\nurl = 'https://127.0.0.1:1/v1'\nmodel = 'm'\nretries = 0\ntimeout = 300\n",
    );
    let asked = |roots: &OsStr| {
        let mut command = env.command();
        command.env("SSL_CERT_FILE", roots).args(["turn", "Hello", "--provider", "p"]);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    assert_snapshot!(asked(OsStr::new("company.pem")), @r"
    error: SSL_CERT_FILE names company.pem, which cannot be read: there is no such file or folder
    hint: undertext does not fall back to other certificates; name a readable file, or unset SSL_CERT_FILE
    ");
    let told = asked(OsStr::from_bytes(b"c\xff.pem"));
    assert!(told.starts_with("error: SSL_CERT_FILE names "), "{told}");
    // Of a file with a part that cannot be read the rest would be trusted, and that part not.
    let certificate =
        |text: &str| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
    let path = env.home().join("half.pem");
    fs::write(&path, certificate("AAAA") + &certificate("!")).unwrap();
    let told = asked(path.as_os_str());
    assert!(told.contains("cannot read the certificates to trust"), "{told}");
    // An empty name is no name.
    assert!(!asked(OsStr::new("")).contains("SSL_CERT_FILE"));
}

#[test]
fn derived_rows_of_newer_rules_are_left_alone() {
    let env = TestEnv::new();
    conversation(&env);
    crate::fixture::settle(&store(&env));
    let db = Connection::open(store(&env).join("store.db")).unwrap();
    db.execute_batch("UPDATE rules SET version = 1000; UPDATE record SET hint = x'ff'").unwrap();
    assert_eq!(env.run(&["log"]).success().stderr, "");
    env.run(&["append", "We go on."]).success();
    let one = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(one("SELECT version FROM rules"), 1000);
    assert_eq!(one("SELECT count(*) FROM record WHERE hint = x'ff'"), 4);
}

#[test]
fn too_few_descriptors_are_an_error_and_no_reason_to_leave_a_file_out() {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for n in 0..3 {
        let folder = env.project().join(format!("in/{n}"));
        fs::create_dir_all(&folder).unwrap();
        for name in ["claude-garden", "pi-boat", "codex-weather"] {
            let name = format!("{name}.jsonl");
            fs::copy(examples.join(&name), folder.join(&name)).unwrap();
        }
    }
    let mut failed = 0;
    for limit in 3..40 {
        let (stderr, code) =
            told(&env, &format!("ulimit -n {limit}; exec undertext import in --store s{limit}"));
        assert!(code != Some(0) || !stderr.contains("skipped"), "{limit}: {stderr}");
        failed += u32::from(code != Some(0));
    }
    assert!((1..30).contains(&failed), "{failed}");
}

#[test]
fn what_a_summariser_started_ends_with_the_program() {
    let Some(proc) = needs::proc() else { return };
    // A hang-up may be ignored by whoever runs this.
    for signal in ["TERM", "KILL"] {
        let env = TestEnv::new();
        env.run(&["new", "-q"]).success();
        for n in 0..12 {
            env.run(&["append", &format!("{n} {}", "all play ".repeat(40))]).success();
        }
        let pids = env.home().join("pids");
        let line = format!("sleep 300 & echo $! $$ > {}; wait", pids.display());
        settings(&env, &format!("[provider.slow]\nkind = 'command'\ncommand = '{line}'\n"));
        let mut command = env.command();
        let mut child = command.args(["compact", "--summarizer", "slow"]).spawn().unwrap();
        let begun = Instant::now();
        let started = loop {
            let text = fs::read_to_string(&pids).unwrap_or_default();
            if text.ends_with('\n') {
                break text;
            }
            assert!(begun.elapsed() < PATIENCE, "the summariser did not start");
            thread::sleep(Duration::from_millis(10));
        };
        let pid = child.id();
        assert!(env.shell("sh", &format!("kill -{signal} {pid}")).status().unwrap().success());
        assert!(!child.wait().unwrap().success());
        let is_alive = |pid: &str| {
            // A process that has ended and was not waited for is a zombie.
            let stat = fs::read_to_string(proc.join(pid).join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
        };
        let begun = Instant::now();
        while started.split_whitespace().any(is_alive) {
            assert!(begun.elapsed() < PATIENCE, "{signal}: {started} go on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn a_link_that_leads_nowhere_is_in_the_way_of_no_rotation() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let live = live_path(&env, &session);
    let aside = |n| live.with_file_name(format!("{session}.jsonl.undertext-{n}"));
    symlink("nowhere", aside(1)).unwrap();
    env.run(&["revert", "1"]).success();
    assert!(aside(1).is_symlink() && aside(2).is_file());
    env.run(&["undo"]).success();
    assert!(aside(3).is_file());
    let rotations = env.run(&["rotations", "--json"]).success().stdout;
    assert!(rotations.lines().all(|line| json(line)["state"] == "whole"), "{rotations}");
    env.run(&["verify"]).success();
}

#[test]
fn who_waits_for_another_program_is_told_for_whom_and_not_for_ever() {
    let Some(_) = needs::proc() else { return };
    let env = TestEnv::new();
    conversation(&env);
    let lock = fs::File::options().write(true).open(store(&env).join("lock")).unwrap();
    lock.lock().unwrap();
    let holder = format!("process {} (", std::process::id());
    let output = env.run(&["append", "text", "--wait", "2"]);
    assert!(output.stderr.contains(&format!("waiting for {holder}")), "{output}");
    let error = format!("share/undertext (waited 2 s): {holder}");
    assert!(output.stderr.contains(&error), "{output}");
    assert!(output.stderr.contains("hint: try again, or wait longer with --wait SECONDS\n"));
    assert!(output.to_string().ends_with("[exit status: 3]\n"), "{output}");
    // Reading does not wait, and who does not want to wait does not.
    env.run(&["log"]).success();
    let output = env.run(&["append", "text", "--wait", "0"]).to_string();
    assert!(output.contains("(waited 0 s): ") && !output.contains("waiting for"), "{output}");
    // Once the other is done, a change that waits goes on.
    let mut waiting = env.command();
    waiting.args(["append", "In turn.", "--wait", "300"]).stderr(Stdio::piped());
    let mut child = waiting.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("waiting for") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it does not wait");
    }
    drop(lock);
    assert!(child.wait().unwrap().success());
    assert!(env.run(&["log"]).success().stdout.contains("In turn."));
}

#[test]
fn a_change_that_is_said_to_have_failed_was_not_made() {
    let env = TestEnv::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let id = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";
    let file = env.home().join(format!(".claude/projects/-work/{id}.jsonl"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::copy(example, &file).unwrap();
    env.run(&["import"]).success();
    let known = || {
        let operations = env.run(&["operations", "-s", id, "--json"]).success().stdout;
        (operations.lines().count(), fs::read_to_string(&file).unwrap().lines().count())
    };
    let (mut made, mut failed) = (0, 0);
    // No file grows beyond so many blocks of the shell: as on a full disk, each step fails in turn.
    for blocks in (150..330).step_by(12) {
        let (operations, lines) = known();
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; undertext append -s {id} 'Once.'");
        let (stderr, code) = told(&env, &script);
        let is_made = code == Some(0);
        let (more, longer) = known();
        assert_eq!((more > operations, longer > lines), (is_made, is_made), "{blocks}: {stderr}");
        (made, failed) = (made + usize::from(is_made), failed + usize::from(!is_made));
    }
    assert!(made > 0 && failed > 0, "{made} were made, and {failed} failed");
}
