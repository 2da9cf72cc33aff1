//! Backups: a copy of the store that is whole, private and checked, made while others write, and put back.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use insta::assert_snapshot;
use rusqlite::Connection;

use super::{conversation, json, live_path, store};
use crate::env::TestEnv;
use crate::needs;

#[track_caller]
fn assert_private(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if path.is_dir() {
            assert_private(&path);
        }
    }
}

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
    error: store needs one of its commands: backup, index, pack, rebuild, stats
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

#[test]
fn a_backup_is_a_store_and_can_be_put_back() {
    let env = TestEnv::new();
    let session = conversation(&env);
    env.run(&["revert", "1", "-m", "Look at the flags."]).success();
    let copy = env.home().join("copy");
    let made = env.run(&["store", "backup", "../copy", "--json"]).success();
    let made = json(&made.stdout);
    assert_eq!(made["type"], "backup");
    assert_eq!((&made["sessions"], &made["files"]), (&1.into(), &2.into()), "{made}");
    assert_eq!(names(&copy), ["store.db", "store.witness", "transcripts"]);
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o700);
    assert_private(&copy);
    // It says what the store says, and can be written.
    for args in [&["log", "--json"][..], &["operations", "--json"], &["sessions", "--json"]] {
        let of_copy = env.run(&[args, &["--store", "../copy"]].concat()).success().stdout;
        assert_eq!(of_copy, env.run(args).success().stdout, "{args:?}");
    }
    let verified = env.run(&["verify", "--store", "../copy"]).success();
    assert!(!verified.stdout.contains("note:"), "{verified}");
    env.run(&["doctor", "--store", "../copy"]).success();

    // What came since is lost with the store; the backup takes its place.
    env.run(&["append", "What came since."]).success();
    fs::remove_dir_all(store(&env)).unwrap();
    let status = env.shell("sh", "cp -a ~/copy ~/.local/share/undertext").status().unwrap();
    assert!(status.success());
    let verified = env.run(&["verify"]).success();
    assert!(!verified.stdout.contains("note:"), "{verified}");
    env.run(&["append", "We go on."]).success();
    let log = env.run(&["log"]).success().stdout;
    assert!(log.contains("We go on.") && !log.contains("What came since."), "{log}");
    assert!(live_path(&env, &session).is_file());
    env.run(&["verify"]).success();
}

#[test]
fn a_backup_holds_what_lies_in_the_wal_alone() {
    let env = TestEnv::new();
    conversation(&env);
    // Nothing of it is in the database itself.
    let reader = Connection::open(store(&env).join("store.db")).unwrap();
    reader.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM rules").unwrap();
    env.run(&["append", "In the log alone."]).success();
    env.run(&["store", "backup", "../copy"]).success();
    drop(reader);
    let log = env.run(&["log", "--store", "../copy"]).success().stdout;
    assert!(log.contains("In the log alone."), "{log}");
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
                command.args(["store", "backup", &format!("../copy{n}")]).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            n += 1;
        }
        for n in 0..n {
            // No live file differs from its store, and nothing is damaged.
            let verified = env.run(&["verify", "--store", &format!("../copy{n}")]).success();
            assert!(!verified.stdout.contains("note:"), "{verified}");
        }
    });
}

#[test]
fn a_place_that_is_taken_is_refused() {
    let env = TestEnv::new();
    conversation(&env);
    fs::create_dir_all(env.project().join("full/of")).unwrap();
    fs::create_dir(env.project().join("empty")).unwrap();
    fs::write(env.project().join("file"), "").unwrap();
    assert_snapshot!(env.run(&["store", "backup", "full"]), @r"
    ------- stderr -------
    error: cannot use $HOME/project/full: it is not empty; a backup needs a folder of its own
    [exit status: 2]
    ");
    let inside = store(&env).join("copy");
    let inside = inside.to_str().unwrap();
    for taken in ["file", inside, "missing/copy", "/", ".."] {
        let output = env.run(&["store", "backup", taken]).to_string();
        assert!(output.contains("error: "), "{taken}: {output}");
    }
    assert!(!store(&env).join("copy").exists());
    env.run(&["store", "backup", "empty"]).success();
    assert_eq!(names(&env.project()), ["empty", "file", "full"]);
}

#[test]
fn no_backup_takes_the_place_of_the_folder_that_one_is_in() {
    let env = TestEnv::new();
    conversation(&env);
    let (project, home) = (env.project(), env.home().to_owned());
    let inner = project.join("a b/c");
    fs::create_dir_all(&inner).unwrap();
    symlink(&inner, home.join("link")).unwrap();
    fs::create_dir(home.join("empty")).unwrap();
    symlink("empty", home.join("to-empty")).unwrap();
    let (whole, above) = (inner.to_str().unwrap(), project.join("a b/.").display().to_string());
    for place in [".", "./", "..", "../..", "../c", "../../a b/c/", "../../../link", whole, &above]
    {
        let mut command = env.command();
        let output = command.args(["store", "backup", place]).current_dir(&inner).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{place}: {said}");
        assert!(said.contains("the current folder"), "{place}: {said}");
        let hint = said.split_once(": undertext ").unwrap().1.trim().to_owned();
        let mut shell = env.shell("sh", &format!("undertext {hint} && rm -r backup-1"));
        let typed = shell.current_dir(&inner).output().unwrap();
        assert!(typed.status.success(), "{place}: {hint}: {typed:?}");
    }
    // An empty folder that a link leads to is filled, and the link stays.
    env.run(&["store", "backup", "../to-empty"]).success();
    assert!(home.join("to-empty").is_symlink() && home.join("empty/store.db").is_file());
}

#[test]
fn a_damaged_store_gives_no_backup() {
    let env = TestEnv::new();
    conversation(&env);
    crate::fixture::settle(&store(&env));
    let db = Connection::open(store(&env).join("store.db")).unwrap();
    db.execute("UPDATE fresh SET body = zeroblob(3) WHERE key = 3", []).unwrap();
    drop(db);
    assert_snapshot!(env.run(&["store", "backup", "copy"]), @r"
    ------- stderr -------
    error: the store was not copied because it is damaged: entry 3: line 3 is damaged: its length differs from the recorded one
    hint: see what is damaged: undertext verify
    hint: repair what session files still contain: undertext doctor --fix
    [exit status: 3]
    ");
    assert_eq!(names(&env.project()), [""; 0]);
}

#[test]
fn a_backup_that_is_killed_leaves_nothing_that_looks_whole() {
    let env = TestEnv::new();
    conversation(&env);
    for delay in (0..60).step_by(needs::rounds(12, 3)) {
        let to = env.home().join(format!("copy{delay}"));
        let mut command = env.command();
        command.args(["store", "backup"]).arg(&to).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() || status.signal() == Some(9));
        if to.exists() {
            env.run(&["verify", "--store", to.to_str().unwrap()]).success();
        }
        for name in names(env.home()) {
            let is_whole = name == "project" || env.home().join(&name) == to;
            let is_known = is_whole || name.starts_with('.') || name.starts_with("copy");
            assert!(is_known, "{name}");
            let is_other = name.starts_with(&format!("copy{delay}")) && !is_whole;
            assert!(!is_other || name.contains(".undertext-new-"), "{name}");
        }
    }
    // The next change deletes what is left, and the note that says where it lies.
    env.run(&["store", "backup", "../last"]).success();
    env.run(&["append", "We go on."]).success();
    let left = names(env.home()).into_iter().filter(|name| name.contains("undertext-new"));
    assert_eq!(left.collect::<Vec<_>>(), [""; 0]);
    assert_eq!(names(&env.home().join(".local/state/undertext/unfinished")), [""; 0]);
}

#[test]
fn what_is_no_file_is_left_out_of_a_backup_and_named() {
    let env = TestEnv::new();
    conversation(&env);
    fs::write(env.home().join("dotfile"), "").unwrap();
    symlink(env.home().join("dotfile"), store(&env).join("config.toml")).unwrap();
    fs::DirBuilder::new().mode(0o700).create(store(&env).join("transcripts/notes")).unwrap();
    let made = env.run(&["store", "backup", "../copy"]).success();
    assert!(made.stdout.contains("1 file and"), "{made}");
    assert_eq!(
        made.stderr.lines().filter(|line| line.starts_with("warning: ")).collect::<Vec<_>>(),
        [
            "warning: ~/.local/share/undertext/transcripts/notes is not in the backup: it is a folder, not a file",
            "warning: ~/.local/share/undertext/config.toml is not in the backup: it is a link, not a file",
        ]
    );
    assert_eq!(names(&env.home().join("copy")), ["store.db", "store.witness", "transcripts"]);
    let again = json(&env.run(&["store", "backup", "../again", "--json"]).success().stdout);
    assert_eq!(again["left_out"][1]["why"], "it is a link, not a file");
    let doctor = env.run(&["doctor"]);
    assert!(doctor.stdout.contains("transcripts/notes: it is not a file"), "{doctor}");
}

#[test]
fn a_backup_waits_for_a_change_no_longer_than_it_is_told() {
    let env = TestEnv::new();
    conversation(&env);
    let lock = fs::File::options().write(true).open(store(&env).join("lock")).unwrap();
    lock.lock().unwrap();
    let refused = env.run(&["store", "backup", "../copy", "--wait", "2"]);
    assert_eq!(refused.code(), Some(3), "{refused}");
    assert!(refused.stderr.contains("another program is changing the store"), "{refused}");
    assert!(refused.stderr.contains("waiting"), "{refused}");
    assert!(!env.home().join("copy").exists());
    drop(lock);
    env.run(&["store", "backup", "../copy", "--wait", "0"]).success();
}
