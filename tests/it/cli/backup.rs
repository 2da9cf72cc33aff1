//! Bundles: sessions in one file, as a backup or for another store, and their import.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use insta::assert_snapshot;
use rusqlite::Connection;

use super::{conversation, json, live, live_path, store};
use crate::env::{CommandOutput, TestEnv};
use crate::fixture::Dice;
use crate::needs;

const SECRET: &str = "hunter2hunter2";

/// Returns the names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_group_without_its_command_says_which_there_are() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["store"]), @"
    ------- stderr -------
    error: store needs one of its commands: backup, index, pack, rebuild, sizes
    hint: see the help: undertext store --help
    [exit status: 2]
    ");
    let wrong = env.run(&["store", "backup"]);
    assert!(wrong.stderr.contains("undertext store backup --help"), "{wrong}");
}

#[test]
fn a_store_that_is_packed_says_what_it_said() {
    let env = TestEnv::new();
    let none = env.run(&["store", "pack"]);
    assert_eq!(none.code(), Some(1), "{none}");
    assert!(none.stderr.contains("import"), "{none}");
    assert!(!store(&env).exists());
    let session = conversation(&env);
    let log = env.run(&["log", &session, "--json"]).success().stdout;
    let packed = env.run(&["store", "pack"]).success();
    assert!(packed.stdout.starts_with("Packed "), "{packed}");
    let packed = json(&env.run(&["store", "pack", "--json"]).success().stdout);
    assert_eq!((&packed["type"], &packed["damaged"]), (&"packed".into(), &0.into()), "{packed}");
    assert_eq!(env.run(&["log", &session, "--json"]).success().stdout, log);
    env.run(&["verify"]).success();
}

/// Fills a home with sessions of every sort, and returns the newest native one.
fn sessions(env: &TestEnv) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let folder = env.home().join(".claude/projects/-work");
    fs::create_dir_all(folder.join("7c2a51de-0f1b-4a5e-9d37-3f6a1b2c4d5e/tool-results")).unwrap();
    for file in fs::read_dir(examples).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
        }
    }
    let record = |id: &str, n: usize, more: &str| {
        format!(
            "{{\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/work\",\"sessionId\":\"{id}\",\
             \"version\":\"2.1.0\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\
             \"{more}\"}},\"uuid\":\"{id}-{n}\",\"timestamp\":\"2026-01-01T00:00:00.000Z\"}}\n"
        )
    };
    let id = "8f14e45f-ceea-467f-a26a-5dba2f5b6d35";
    let results = folder.join(id).join("tool-results");
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("a.txt"), "a long answer\n".repeat(100)).unwrap();
    let tail = "{\"half\":";
    let words = record(id, 1, "say it") + &record(id, 2, "and again") + tail;
    fs::write(folder.join(format!("{id}.jsonl")), words).unwrap();
    env.run(&["import"]).success();
    let secret = conversation(env);
    env.run(&["append", "-s", &secret, &format!("The key is {SECRET}.")]).success();
    env.run_with_stdin(&["redact", "--yes"], SECRET.as_bytes()).success();
    let session = conversation(env);
    env.run(&["revert", "1", "-s", &session, "-m", "Look at the flags."]).success();
    env.run(&["undo", "-s", &session]).success();
    env.run(&["redo", "-s", &session]).success();
    env.run(&["append", "-s", &session, "We go on."]).success();
    session
}

/// Returns what a store says of all its sessions, without the hashes of operations.
fn all(env: &TestEnv, store: &Path) -> Vec<String> {
    let store = store.to_str().unwrap();
    let mut said = Vec::new();
    let ids = env.run(&["sessions", "--all", "-n", "0", "--json", "--store", store]).success();
    for session in ids.stdout.lines().map(json) {
        let id = format!(
            "{}:{}",
            session["agent"].as_str().unwrap(),
            session["session"].as_str().unwrap()
        );
        for command in [
            &["log", "--json"][..],
            &["graph", "--json"],
            &["operations", "--json"],
            &["log", "--checkpoints", "--json"],
        ] {
            let args = [command, &["--store", store, "-s", &id, "--no-import"]].concat();
            let answer = env.run(&args).success().stdout;
            let without = |line: &str| line.split("\"hash\":").next().unwrap().to_owned();
            said.extend(answer.lines().map(without));
        }
    }
    said
}

/// Returns the store of another machine.
fn other(env: &TestEnv) -> PathBuf {
    env.home().join("other")
}

fn import(env: &TestEnv, bundle: &str) -> CommandOutput {
    env.run(&["import", bundle, "--store", "../other"])
}

#[track_caller]
fn verify(env: &TestEnv) {
    env.run(&["verify", "--store", "../other"]).success();
}

#[test]
fn a_backup_brings_every_session_to_another_store() {
    let env = TestEnv::new();
    let session = sessions(&env);
    let made = env.run(&["store", "backup", "../all.bundle", "--json"]).success();
    let made = json(&made.stdout);
    assert_eq!(made["type"], "backup");
    let path = env.home().join("all.bundle");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(made["bytes"], fs::metadata(&path).unwrap().len());
    assert!(!fs::read(&path).unwrap().windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));

    let listed = env.run(&["import", "../all.bundle", "--store", "../other", "-n"]).success();
    assert_eq!(made["sessions"], listed.stdout.lines().count(), "{listed}");
    assert!(!other(&env).exists());
    import(&env, "../all.bundle").success();
    verify(&env);
    assert_eq!(all(&env, &other(&env)), all(&env, &store(&env)));
    let file = other(&env).join(format!("transcripts/{session}.jsonl"));
    assert_eq!(fs::read(&file).unwrap(), live(&env, &session));

    let again = env.run(&["import", "../all.bundle", "--store", "../other", "--json"]).success();
    assert!(again.stdout.lines().all(|line| json(line)["state"] == "same"), "{again}");
    // An import that ended before it wrote the live file is finished by the next one.
    fs::remove_file(&file).unwrap();
    assert!(import(&env, "../all.bundle").success().stdout.contains("0 sessions"));
    assert_eq!(fs::read(&file).unwrap(), live(&env, &session));

    // What came since is added, and the live file follows.
    env.run(&["revert", "1", "-s", &session]).success();
    env.run(&["append", "-s", &session, "Another way."]).success();
    env.run(&["append", "-s", &session, "And on."]).success();
    env.run(&["export", "-o", "one.bundle", &session]).success();
    let grown = import(&env, "one.bundle").success();
    assert!(grown.stdout.contains("1 session (0 new): "), "{grown}");
    verify(&env);
    assert_eq!(all(&env, &other(&env)), all(&env, &store(&env)));
    assert_eq!(fs::read(&file).unwrap(), live(&env, &session));
    // An older bundle changes nothing.
    import(&env, "../all.bundle").success();
    assert_eq!(all(&env, &other(&env)), all(&env, &store(&env)));
}

#[test]
fn a_store_that_is_lost_comes_back_from_its_backup() {
    let env = TestEnv::new();
    let session = conversation(&env);
    env.run(&["store", "backup", "../all.bundle"]).success();
    let said = all(&env, &store(&env));
    fs::remove_dir_all(store(&env)).unwrap();
    env.run(&["import", "../all.bundle"]).success();
    assert_eq!(all(&env, &store(&env)), said);
    assert!(live_path(&env, &session).is_file());
    env.run(&["append", "We go on."]).success();
    env.run(&["verify"]).success();
}

#[test]
fn a_session_that_differs_is_refused_and_the_others_come() {
    let env = TestEnv::new();
    let (first, second) = (conversation(&env), conversation(&env));
    env.run(&["export", "-o", "a.bundle", &first]).success();
    import(&env, "a.bundle").success();
    env.run(&["append", "-s", &first, "--store", "../other", "There."]).success();
    env.run(&["append", "-s", &first, "Here."]).success();
    let before = all(&env, &other(&env));
    env.run(&["store", "backup", "b.bundle"]).success();
    let refused = import(&env, "b.bundle");
    assert_eq!(refused.code(), Some(3), "{refused}");
    let why = format!("session native:{first} is not imported: its operation 6 differs");
    assert!(refused.stderr.contains(&why), "{refused}");
    verify(&env);
    let after = all(&env, &other(&env));
    assert!(before.iter().all(|line| after.contains(line)));
    assert!(other(&env).join(format!("transcripts/{second}.jsonl")).is_file());
    // Nor does an import delete what is here.
    env.run_with_stdin(&["redact", "--yes"], b"A symbol is missing").success();
    env.run(&["export", "-o", "c.bundle", &second]).success();
    let refused = import(&env, "c.bundle");
    assert!(refused.stderr.contains("an import deletes nothing"), "{refused}");
    assert_eq!((refused.code(), all(&env, &other(&env))), (Some(3), after));
}

#[test]
fn a_bundle_that_is_cut_or_changed_is_an_error_and_leaves_the_store_whole() {
    let env = TestEnv::new();
    conversation(&env);
    conversation(&env);
    env.run(&["store", "backup", "whole.bundle"]).success();
    let whole = fs::read(env.project().join("whole.bundle")).unwrap();
    let bad = env.project().join("bad.bundle");
    let mut random = Dice(7);
    for n in 0..needs::rounds(12, 40) {
        let length = usize::try_from(random.below(whole.len() as u64)).unwrap();
        fs::write(&bad, &whole[..length]).unwrap();
        let cut = import(&env, "bad.bundle");
        assert!(matches!(cut.code(), Some(2 | 3)), "{length}: {cut}");
        assert!(cut.stderr.contains("cannot read"), "{length}: {cut}");
        let mut bytes = whole.clone();
        bytes[length] ^= 1 << (n % 8);
        fs::write(&bad, bytes).unwrap();
        let changed = import(&env, "bad.bundle");
        assert!(matches!(changed.code(), Some(0 | 2 | 3 | 4)), "{length}: {changed}");
    }
    import(&env, "whole.bundle").success();
    verify(&env);
    assert_eq!(all(&env, &other(&env)), all(&env, &store(&env)));
}

#[test]
fn a_bundle_of_a_newer_version_is_refused() {
    let env = TestEnv::new();
    fs::write(env.project().join("new.bundle"), "undertext bundle 2\nand more").unwrap();
    fs::write(env.project().join("no.bundle"), "something else").unwrap();
    assert_snapshot!(env.run(&["import", "new.bundle"]), @"
    ------- stderr -------
    error: cannot read $HOME/project/new.bundle: it was written by a newer version of undertext: version 2; nothing was imported from it
    hint: update undertext
    [exit status: 4]
    ");
    assert_snapshot!(env.run(&["import", "no.bundle"]), @"
    ------- stderr -------
    error: cannot read $HOME/project/no.bundle: it is not a bundle; nothing was imported from it
    hint: see what can be imported: undertext import --help
    [exit status: 2]
    ");
}

#[test]
fn a_file_that_is_there_is_replaced_only_when_asked() {
    let env = TestEnv::new();
    conversation(&env);
    fs::write(env.project().join("a.bundle"), "mine").unwrap();
    assert_snapshot!(env.run(&["store", "backup", "a.bundle"]), @"
    ------- stderr -------
    error: $HOME/project/a.bundle already exists
    hint: replace it with --force
    [exit status: 2]
    ");
    env.run(&["store", "backup", "a.bundle", "--force"]).success();
    let inside = store(&env).join("a.bundle");
    assert_eq!(env.run(&["store", "backup", inside.to_str().unwrap()]).code(), Some(2));
    assert_eq!(env.run(&["store", "backup", ".."]).code(), Some(2));
    assert_eq!(names(&env.project()), ["a.bundle"]);
}

#[test]
fn a_damaged_store_gives_no_backup() {
    let env = TestEnv::new();
    conversation(&env);
    crate::fixture::settle(&store(&env));
    let db = Connection::open(store(&env).join("store.db")).unwrap();
    db.execute("UPDATE fresh SET body = zeroblob(3) WHERE key = 3", []).unwrap();
    drop(db);
    assert_snapshot!(env.run(&["store", "backup", "a.bundle"]), @"
    ------- stderr -------
    error: the bundle was not written because the store is damaged: session e572dff8-2304-400b-856a-555ac3a4558d: line 3: its length differs from the recorded one
    hint: see what is damaged: undertext verify
    hint: repair what session files still contain: undertext doctor --fix
    [exit status: 3]
    ");
    assert_eq!(names(&env.project()), [""; 0]);
}

#[test]
fn a_backup_is_whole_while_others_write() {
    let env = TestEnv::new();
    conversation(&env);
    thread::scope(|scope| {
        let writer = |name: &'static str| {
            let mut commands: Vec<_> = (0..15).map(|_| env.command()).collect();
            scope.spawn(move || {
                for (n, command) in commands.iter_mut().enumerate() {
                    let output = command.args(["append", &format!("{name}{n}")]).output().unwrap();
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                }
            })
        };
        let writers = [writer("a"), writer("b")];
        let mut n = 0;
        while n < 3 || writers.iter().any(|writer| !writer.is_finished()) {
            let mut command = env.command();
            let output =
                command.args(["store", "backup", &format!("{n}.bundle")]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            n += 1;
        }
        // Each goes on from the one before.
        for n in 0..n {
            import(&env, &format!("{n}.bundle")).success();
        }
        verify(&env);
    });
}

#[test]
fn a_backup_or_an_import_that_is_killed_leaves_sessions_whole_or_absent() {
    let env = TestEnv::new();
    let session = sessions(&env);
    env.run(&["store", "backup", "../all.bundle"]).success();
    let whole = all(&env, &store(&env));
    for delay in (0..120).step_by(needs::rounds(40, 10)) {
        for args in [
            &["store", "backup", "a.bundle"][..],
            &["import", "../all.bundle", "--store", "../other"],
        ] {
            let mut command = env.command();
            command.args(args).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().unwrap();
            thread::sleep(Duration::from_millis(delay));
            let _ = child.kill();
            child.wait().unwrap();
        }
        if env.project().join("a.bundle").exists() {
            env.run(&["import", "a.bundle", "--store", "../other"]).success();
            fs::remove_file(env.project().join("a.bundle")).unwrap();
        }
        // A store that is not made yet has no session.
        let verified = env.run(&["verify", "--store", "../other"]);
        if !verified.stderr.contains("there is no store") {
            assert_eq!(verified.code(), Some(0), "{verified}");
            let found = all(&env, &other(&env));
            assert!(found.iter().all(|line| whole.contains(line)), "{delay}");
        }
        import(&env, "../all.bundle").success();
        assert_eq!(all(&env, &other(&env)), whole, "{delay}");
        let file = other(&env).join(format!("transcripts/{session}.jsonl"));
        assert_eq!(fs::read(&file).unwrap(), live(&env, &session), "{delay}");
        fs::remove_dir_all(other(&env)).unwrap();
    }
    let left = names(&env.project()).into_iter().filter(|name| name.contains("undertext-new"));
    assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
}
