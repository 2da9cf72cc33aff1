//! What must hold for every command that changes a session: bad input, other programs, and newer stores.

use std::ffi::OsStr;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;

use insta::assert_snapshot;
use serde_json::Value;

use super::{conversation, live, store};
use crate::env::TestEnv;

#[test]
fn two_programs_append_to_one_session_and_nothing_is_lost() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let mut commands: Vec<_> = (0..40).map(|_| env.command()).collect();
    let (ours, theirs) = commands.split_at_mut(20);
    std::thread::scope(|scope| {
        for (name, commands) in [("a", ours), ("b", theirs)] {
            scope.spawn(move || {
                for (n, command) in commands.iter_mut().enumerate() {
                    let output = command.args(["append", &format!("{name}{n}")]).output().unwrap();
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                }
            });
        }
    });
    let live = String::from_utf8(live(&env, &session)).unwrap();
    let records: Vec<Value> = live.lines().map(super::json).collect();
    let said = |name: &str| {
        let texts = records.iter().filter_map(|record| record["message"]["content"].as_str());
        texts.filter(|text| text.starts_with(name)).map(str::to_owned).collect::<Vec<_>>()
    };
    for name in ["a", "b"] {
        assert_eq!(said(name), (0..20).map(|n| format!("{name}{n}")).collect::<Vec<_>>());
    }
    let chained = records.windows(2).all(|pair| pair[0]["uuid"] == pair[1]["parentUuid"]);
    assert!(chained, "one conversation, in one order");
    env.run(&["verify"]).success();
}

#[test]
fn a_newer_store_is_refused_before_anything_is_written() {
    let env = TestEnv::new();
    conversation(&env);
    let path = store(&env).join("store.db");
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(60)).unwrap();
    file.write_all(&99_u32.to_be_bytes()).unwrap();
    drop(file);
    let state = || {
        let mut files: Vec<_> =
            fs::read_dir(store(&env)).unwrap().map(|f| f.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (fs::read(&path).ok(), path)).collect::<Vec<_>>()
    };
    let before = state();
    assert_snapshot!(env.run(&["append", "text"]), @r"
    ------- stderr -------
    error: the store at $HOME/.local/share/undertext/store.db has version 99, and this program knows versions up to 1
    hint: update undertext, or name another store with --store
    [exit status: 4]
    ");
    for command in ["new", "sessions", "undo", "verify", "rebuild", "branch"] {
        let output = env.run(&[command]).to_string();
        assert!(output.ends_with("[exit status: 4]\n"), "{command}: {output}");
    }
    assert!(before == state());
}

#[test]
fn a_store_that_is_none_is_refused() {
    let env = TestEnv::new();
    fs::create_dir(env.project().join("store")).unwrap();
    fs::write(env.project().join("store/store.db"), "not a database").unwrap();
    assert_snapshot!(env.run(&["--store", "store", "new"]), @r"
    ------- stderr -------
    Store: ~/project/store
    error: $HOME/project/store/store.db is not an undertext store
    hint: name another folder with --store
    [exit status: 2]
    ");
    assert_eq!(fs::read_dir(env.project().join("store")).unwrap().count(), 1);
}

#[test]
fn sessions_that_cannot_be_are_refused_by_every_command() {
    let env = TestEnv::new();
    conversation(&env);
    let long = "x".repeat(100_000);
    let odd = OsStr::from_bytes(b"\xff\x1b]0;\x07");
    let before = env.run(&["operations", "--json"]).success().stdout;
    for wanted in [OsStr::new("../../x"), OsStr::new("' OR 1=1 --"), OsStr::new(&long), odd] {
        for command in ["checkpoints", "rotations", "operations", "verify", "rebuild", "clear"] {
            refused(&env.run(&[OsStr::new(command), wanted]).to_string());
        }
        for command in [
            &["undo"][..],
            &["redo"],
            &["switch", "main"],
            &["revert", "0"],
            &["checkpoint"],
            &["append", "x"],
        ] {
            let mut args: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
            args.extend([OsStr::new("-s"), wanted]);
            refused(&env.run(&args).to_string());
        }
    }
    refused(&env.run(&["clear", ""]).to_string());
    refused(&env.run(&[OsStr::new("append"), odd]).to_string());
    refused(&env.run(&[OsStr::new("branch"), odd]).to_string());
    assert_eq!(env.run(&["operations", "--json"]).success().stdout, before);
}

#[track_caller]
fn refused(output: &str) {
    assert!(output.ends_with("[exit status: 2]\n"), "{output}");
    assert!(!output.contains(['\x1b', '\x07']), "{output:?}");
}
