//! What must hold for every command that changes a session: bad input, other programs, and newer stores.

use std::ffi::OsStr;
use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::fixture::number;
use insta::assert_snapshot;
use rusqlite::{Connection, params};
use serde_json::Value;
use undertext::model::{Bulk, Operation, OperationId, OperationNumber, Tagged as _};
use undertext::store::{Access, CacheStore as _, FactStore as _, SqliteStore};

use super::attach::{Kept, claude_record};
use super::{conversation, live, store};
use crate::env::TestEnv;
use crate::needs;

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
    assert_snapshot!(env.run(&["append", "text"]), @"
    ------- stderr -------
    error: the store at $HOME/.local/share/undertext/store.db has version 99, but this undertext reads version 8
    hint: update undertext, or name another store with --store
    [exit status: 4]
    ");
    for command in ["new", "sessions", "undo", "verify", "branch", "doctor"] {
        let output = env.run(&[command]).to_string();
        assert!(output.ends_with("[exit status: 4]\n"), "{command}: {output}");
    }
    assert!(before == state());
}

#[test]
fn a_store_of_an_older_version_is_refused_with_a_way_on() {
    let env = TestEnv::new();
    conversation(&env);
    let path = store(&env).join("store.db");
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(60)).unwrap();
    file.write_all(&1_u32.to_be_bytes()).unwrap();
    drop(file);
    let before = fs::read(&path).unwrap();
    assert_snapshot!(env.run(&["append", "text"]), @"
    ------- stderr -------
    error: the store at $HOME/.local/share/undertext/store.db has version 1, but this undertext reads version 8
    hint: move the store away, then import your agents' sessions again: undertext import
    [exit status: 3]
    ");
    assert!(env.run(&["sessions"]).to_string().ends_with("[exit status: 3]\n"));
    assert!(fs::read(&path).unwrap() == before);
}

/// Adds an operation to a session of a store whose record has a field that is not known here, as a newer program would.
fn go_on_with_a_newer_program(folder: &Path) {
    crate::fixture::settle(folder);
    let store = SqliteStore::open(&folder.join("store.db"), Access::Read).unwrap();
    let (key, name) = store.names().unwrap().pop().unwrap();
    let mut state = store.state(key).unwrap();
    let newest =
        store.operations(key, number::<OperationNumber>(state.operations()).alone()).unwrap();
    // Field 99, of one byte.
    let record = [&newest[0].record[..], &[99, 1, 7]].concat();
    let n = state.next_operation();
    let mut operation = Operation::open(n, record, OperationId::default(), &[]).unwrap();
    assert_eq!(operation.unknown, [99]);
    operation.hash = operation.hash_after(state.hash(), store.id().unwrap(), &name);
    operation.entries = None;
    state.apply(&operation, &Bulk::default());
    drop(store);
    let db = Connection::open(folder.join("store.db")).unwrap();
    db.execute(
        "INSERT INTO operation (seq, session, store, n, hash, record)
         SELECT 1 + max(seq), ?1, 1, ?2, ?3, ?4 FROM operation",
        params![key.0, n.get(), operation.hash.as_bytes(), operation.record],
    )
    .unwrap();
    db.execute(
        "UPDATE card SET settled = ?2, state = ?3 WHERE session = ?1",
        params![key.0, n.get(), state.to_bytes()],
    )
    .unwrap();
}

#[test]
fn what_a_newer_program_wrote_in_a_session_is_read_on_and_not_changed() {
    let env = TestEnv::new();
    conversation(&env);
    go_on_with_a_newer_program(&store(&env));
    for command in ["log", "graph", "status", "checkpoints", "operations", "sessions", "context"] {
        env.run(&[command]).success();
    }
    assert_snapshot!(env.run(&["append", "text"]), @r"
    ------- stderr -------
    error: operation 6 of the session was written by a newer version of undertext
    hint: update undertext, or name another store with --store
    [exit status: 4]
    ");
    for change in ["undo", "clear", "checkpoint", "compact"] {
        let output = env.run(&[change]).to_string();
        assert!(output.ends_with("[exit status: 4]\n"), "{change}: {output}");
    }
    // Other sessions of the store go on.
    env.run(&["new"]).success();
    env.run(&["append", "text"]).success();
}

#[test]
fn a_store_that_has_forgotten_is_noticed_and_not_changed() {
    let env = TestEnv::new();
    conversation(&env);
    let folder = store(&env);
    crate::fixture::settle(&folder);
    let keep = |to: &str| fs::copy(folder.join("store.db"), env.home().join(to)).unwrap();
    Connection::open(folder.join("store.db"))
        .unwrap()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    keep("older.db");
    env.run(&["append", "What came since."]).success();
    // An older copy is put in the place of the database, and what belongs to the newer one goes.
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(folder.join(format!("store.db{end}")));
    }
    fs::copy(env.home().join("older.db"), folder.join("store.db")).unwrap();
    assert_snapshot!(env.run(&["append", "text"]), @"
    ------- stderr -------
    error: the store at $HOME/.local/share/undertext/store.db has lost changes: it had 6, but has only 5 now
    hint: to see what this means and what you can do: undertext doctor
    hint: to recover lost changes from session files: undertext doctor --fix
    [exit status: 3]
    ");
    assert_snapshot!(env.run(&["verify"]), @r"
    damage: store.witness: it has seen change 6, but the store has only 5
    damage: e572dff8-2304-400b-856a-555ac3a4558d: $HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl: it has records that the store has lost
    Verified 1 session, 5 operations, 4 entries: 2 things are damaged
    ------- stderr -------
    hint: to repair what can be repaired: undertext doctor --fix
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["doctor"]), @"
    $HOME/.local/share/undertext/store.db: it has lost changes: store.witness saw 6, but it has only 5 now. If you have a newer copy of the store, put it back, with its -wal file; otherwise, session files may still contain what was lost
    ------- stderr -------
    hint: to repair what can be repaired: undertext doctor --fix
    [exit status: 1]
    ");
    env.run(&["log"]).success();
    // Who means to go on from there says so.
    fs::remove_file(folder.join("store.witness")).unwrap();
    env.run(&["append", "text"]).success();
}

#[test]
fn a_store_that_is_none_is_refused() {
    let env = TestEnv::new();
    fs::create_dir(env.project().join("store")).unwrap();
    fs::write(env.project().join("store/store.db"), "not a database").unwrap();
    assert_snapshot!(env.run(&["--store", "store", "new"]), @"
    ------- stderr -------
    Store: ~/project/store
    error: $HOME/project/store/store.db is not an undertext store
    hint: check the store's folder: undertext doctor --store store
    hint: or name another folder with --store
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
    // A path that leads out of the project, and stays in the home of this test.
    for wanted in [OsStr::new("../x"), OsStr::new("' OR 1=1 --"), OsStr::new(&long), odd] {
        for command in ["checkpoints", "rotations", "operations", "verify", "clear"] {
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
    // What is not there is 1, and what cannot be is 2.
    assert!(
        ["[exit status: 1]\n", "[exit status: 2]\n"].iter().any(|end| output.ends_with(end)),
        "{output}"
    );
    assert!(!output.contains(['\x1b', '\x07']), "{output:?}");
}

#[test]
fn a_file_that_may_not_be_written_is_found_out_before_anything_is_changed() {
    let Some(namespaces) = needs::namespaces() else { return };
    let env = TestEnv::new();
    let file =
        env.home().join(".claude/projects/-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::copy(example, &file).unwrap();
    env.run(&["import"]).success();
    let (home, path, program) =
        (env.home().display(), file.display(), env!("CARGO_BIN_EXE_undertext"));
    let script = format!(
        "mount --bind {path} {path}; mount -o remount,ro,bind {path}
         export HOME={home}; cd {home}
         {program} append -s 7c2a51de 'more words' 2>&1 || echo exit $?
         {program} revert 1 -m 'not so' -s 7c2a51de 2>&1 || echo exit $?
         {program} revert 1 -m 'not so' -s 7c2a51de --dry-run 2>&1 || echo exit $?"
    );
    let told = namespaces.run(&script, env.home());
    assert_eq!(told.matches("exit 3").count(), 3, "{told}");
    // A dry run says what the change itself does.
    let refused: Vec<&str> = told.split("exit 3").map(str::trim).collect();
    assert_eq!(refused[1], refused[2], "{told}");
    assert!(!told.contains("is kept"), "{told}");
    let operations = env.run(&["operations", "-s", "7c2a51de"]).success();
    assert_eq!(operations.stdout.lines().count(), 1, "{operations}");
}

/// They said that all was well, and the change then failed, for a compaction only once its summary was there.
#[test]
fn a_dry_run_of_a_truncation_or_a_compaction_refuses_what_the_change_would() {
    let Some(namespaces) = needs::namespaces() else { return };
    let kept = Kept::claude();
    let long = "planks and nails ".repeat(400);
    kept.append(&claude_record(5, 4, "user", &long));
    kept.append(&claude_record(6, 5, "assistant", &long));
    let call =
        "[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{\"command\":\"ls\"}}]";
    kept.append(&claude_record(7, 6, "assistant", "CALL").replace("\"CALL\"", call));
    let result =
        format!("[{{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":\"{long}\"}}]");
    kept.append(&claude_record(8, 7, "user", "RESULT").replace("\"RESULT\"", &result));
    let env = &kept.env;
    env.run(&["import"]).success();
    let folder = kept.file.parent().unwrap();
    let held = kept.read();
    let changes = ["truncate --max-chars 2000 -s 6b0a", "compact --keep 1 -s 6b0a"];
    for change in changes {
        let words: Vec<&str> = change.split(' ').chain(["--dry-run"]).collect();
        env.run(&words).success();
    }
    assert_eq!((kept.read(), fs::read_dir(folder).unwrap().count()), (held, 1));
    let (home, folder, program) =
        (env.home().display(), folder.display(), env!("CARGO_BIN_EXE_undertext"));
    for change in changes {
        let script = format!(
            "mount --bind {folder} {folder}; mount -o remount,ro,bind {folder}
             export HOME={home}; cd {home}
             {program} {change} --dry-run 2>&1 || echo exit $?
             {program} {change} 2>&1 || echo exit $?"
        );
        let told = namespaces.run(&script, env.home());
        let refused: Vec<&str> = told.split("exit 3").map(str::trim).collect();
        assert_eq!(refused.len(), 3, "{told}");
        assert!(refused[0].contains("read-only file system"), "{told}");
        assert!(refused[0].ends_with(refused[1]) && !refused[1].is_empty(), "{told}");
    }
    let operations = env.run(&["operations", "-s", "6b0a"]).success();
    assert_eq!(operations.stdout.lines().count(), 1, "{operations}");
}

#[test]
#[cfg(target_os = "linux")]
fn commands_answer_in_12_mb() {
    let env = TestEnv::new();
    conversation(&env);
    for command in
        ["sessions", "search build", "log", "graph", "audit", "verify", "doctor", "append -q More."]
    {
        // Of data. The code of a program that is not optimised takes 60 MB more.
        let line = format!("ulimit -d 12288; undertext {command}");
        let output = env.shell("sh", &line).output().unwrap();
        assert!(output.status.success(), "{command}: {output:?}");
    }
}
