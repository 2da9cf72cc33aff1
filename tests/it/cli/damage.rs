//! Damage: a reading command names what it cannot read, shows all the rest, and ends with 1; a change works where it needs
//! nothing of what is lost.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use rusqlite::Connection;

use super::{conversation, json, live_path, store};
use crate::env::TestEnv;

/// The page size of a database.
const PAGE: usize = 4096;

/// Opens the database of a machine, with all operations in its tables.
fn database(env: &TestEnv) -> Connection {
    crate::fixture::settle(&store(env));
    Connection::open(store(env).join("store.db")).unwrap()
}

/// Begins a session of two turns and takes the line of one entry away from its store.
fn damaged(n: i64) -> TestEnv {
    let env = TestEnv::new();
    conversation(&env);
    let changed = database(&env)
        .execute(
            "UPDATE fresh SET body = zeroblob(length(body))
             WHERE key = (SELECT line FROM entry WHERE n = ?)",
            [n],
        )
        .unwrap();
    assert_eq!(changed, 1);
    env
}

/// Returns what a command says, with ids in the place of which it says the same each time.
fn said(env: &TestEnv, args: &[&str]) -> String {
    let mut output = env.run(args);
    (output.stdout, output.stderr) = super::numbered(&output.stdout, &output.stderr);
    output.to_string()
}

#[test]
fn the_conversation_shows_a_damaged_entry_in_its_place() {
    let env = damaged(3);
    assert_snapshot!(said(&env, &["log"]), @"
    @0  user  id-00000  04:05
      Why does the build fail?

    assistant  id-00001  04:05
      A symbol is missing.

    @1  user  id-00002  04:05
      damaged: its line does not match its id

    assistant  id-00003  04:05
      Done.
    ------- stderr -------
    hint: repair what session files still contain: undertext doctor --fix
    [exit status: 1]
    ");
}

#[test]
fn an_entry_of_which_the_id_is_lost_is_named_without_one() {
    let env = damaged(3);
    database(&env)
        .execute_batch("DROP TRIGGER entry_is_not_deleted; DELETE FROM entry WHERE n = 3")
        .unwrap();
    for args in [&["log"][..], &["context"], &["export", "--leave-damaged", "-o", "rest.jsonl"]] {
        let said = env.run(args).to_string();
        assert!(said.contains("it has no line") && !said.contains("00000000"), "{said}");
        assert!(said.ends_with("[exit status: 1]\n"), "{said}");
    }
    let said = env.run(&["log", "--json"]).stdout;
    let named = said.lines().map(json).find(|line| line["type"] == "damaged").unwrap();
    assert!(named["entry"].is_null(), "{named}");
}

/// Damaged entries are shown, so they count as much as others do.
#[test]
fn the_newest_entries_are_as_many_as_were_asked_for() {
    let env = damaged(3);
    let sql = "UPDATE fresh SET body = zeroblob(length(body))";
    assert_eq!(database(&env).execute(sql, []).unwrap(), 4);
    for (count, shown) in [("1", 1), ("2", 2), ("0", 4)] {
        let said = env.run(&["log", "-n", count]);
        assert_eq!(said.stdout.matches("damaged: ").count(), shown, "{said}");
        let said = env.run(&["log", "-n", count, "--json"]);
        assert_eq!(said.stdout.matches("\"damaged\"").count(), shown, "{said}");
    }
}

#[test]
fn every_reader_names_a_damaged_entry_and_goes_on() {
    let env = damaged(3);
    for args in [
        &["show", "@1"][..],
        &["graph"],
        &["checkpoints"],
        &["context", "--window", "100000"],
        &["status"],
        &["export", "--leave-damaged", "-o", "rest.jsonl"],
    ] {
        let output = env.run(args);
        let text = output.to_string();
        assert!(text.contains("damaged: "), "{args:?}: {text}");
        assert!(text.contains("doctor --fix"), "{args:?}: {text}");
        assert!(text.ends_with("[exit status: 1]\n"), "{args:?}: {text}");
    }
    let rest = fs::read_to_string(env.project().join("rest.jsonl")).unwrap();
    assert_eq!(rest.lines().count(), 3);
    assert!(rest.contains("Done.") && !rest.contains("Then mend it."), "{rest}");
}

#[test]
fn programs_get_an_object_of_its_kind_for_a_damaged_entry() {
    let env = damaged(3);
    for args in [&["log"][..], &["show", "@1"], &["graph"], &["checkpoints"], &["context"]] {
        let output = env.run(&[args, &["--json"]].concat());
        let objects: Vec<_> = output.stdout.lines().map(json).collect();
        let named: Vec<_> = objects.iter().filter(|object| object["type"] == "damaged").collect();
        assert_eq!(named.len(), 1, "{args:?}: {}", output.stdout);
        assert_eq!(named[0]["entry"].as_str().unwrap().len(), 64, "{args:?}");
        assert!(named[0]["problem"].as_str().is_some_and(|problem| !problem.is_empty()));
        assert!(output.to_string().ends_with("[exit status: 1]\n"), "{args:?}");
    }
    let log = env.run(&["log", "--json"]).stdout;
    let kinds: Vec<_> = log.lines().map(|line| json(line)["type"].clone()).collect();
    assert_eq!(kinds, ["entry", "entry", "damaged", "entry"]);
}

#[test]
fn a_file_is_written_whole_or_not_at_all_unless_told() {
    let env = damaged(3);
    for args in [&["export", "-o", "whole.jsonl"][..], &["export"]] {
        let output = env.run(args).to_string();
        assert!(
            output.contains("\nerror: the session was not written: 1 of its entries is damaged"),
            "{output}"
        );
        assert!(output.contains("undertext export --leave-damaged"), "{output}");
        assert!(output.ends_with("[exit status: 3]\n"), "{output}");
    }
    assert!(!env.project().join("whole.jsonl").exists());
}

#[test]
fn sides_are_compared_behind_a_damaged_entry() {
    let env = damaged(3);
    env.run(&["branch", "other"]).success();
    env.run(&["revert", "0", "-m", "Look elsewhere."]).success();
    let output = env.run(&["diff", "other", "HEAD"]).to_string();
    assert!(output.contains("Done.") && output.contains("Look elsewhere."), "{output}");
    assert!(output.contains("is damaged: "), "{output}");
    env.run(&["audit"]).success();
}

#[test]
fn a_change_needs_only_the_lines_that_it_reads() {
    let env = damaged(1);
    // The live file is whole, and what is lost is far above the place of these changes.
    env.run(&["append", "Thank you."]).success();
    env.run(&["checkpoint"]).success();
    env.run(&["branch", "here"]).success();
    // A model is never asked with a part of the conversation missing.
    let output = env.run(&["compact", "--keep", "1"]).to_string();
    assert!(output.contains("is damaged") && output.contains("doctor --fix"), "{output}");
    assert!(output.ends_with("[exit status: 3]\n"), "{output}");
}

#[test]
fn a_damaged_entry_is_found_by_the_name_of_its_record() {
    let env = TestEnv::new();
    conversation(&env);
    let log = env.run(&["log", "--json"]).success().stdout;
    let third = json(log.lines().nth(2).unwrap());
    database(&env).execute("UPDATE fresh SET body = zeroblob(3) WHERE key = 3", []).unwrap();
    let output = env.run(&["show", third["uuid"].as_str().unwrap()]).to_string();
    assert!(output.contains(third["entry"].as_str().unwrap()), "{output}");
    assert!(output.ends_with("[exit status: 1]\n"), "{output}");
}

#[test]
fn one_damaged_session_leaves_the_others_listed() {
    let env = TestEnv::new();
    let first = conversation(&env);
    let second = conversation(&env);
    database(&env)
        .execute("UPDATE card SET title = CAST(x'ff' AS TEXT) WHERE id = ?", [&first])
        .unwrap();
    let output = env.run(&["sessions"]).to_string();
    assert!(output.contains(second.get(..8).unwrap()), "{output}");
    assert!(output.contains(&format!("session {first} (native) is damaged: ")), "{output}");
    assert!(output.ends_with("[exit status: 1]\n"), "{output}");
    let named = env.run(&["sessions", "--json"]).stdout;
    let named: Vec<_> = named.lines().map(json).filter(|it| it["type"] == "damaged").collect();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0]["session"], first.as_str());
    // A command that names no session takes the newest that can be read.
    env.run(&["log"]).success();
    env.run(&["log", &second]).success();
}

#[test]
fn a_page_of_cards_that_is_gone_leaves_the_sessions_of_other_pages() {
    let env = TestEnv::new();
    for _ in 0..40 {
        env.run(&["new", "-q"]).success();
    }
    let db = database(&env);
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'card'";
    let root: usize = db.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(db);
    let path = store(&env).join("store.db");
    let mut bytes = fs::read(&path).unwrap();
    // The root is an inner page: its cells begin with the numbers of the leaves.
    let page = &bytes[(root - 1) * PAGE..root * PAGE];
    assert_eq!(page[0], 5);
    let cell = usize::from(u16::from_be_bytes([page[14], page[15]]));
    let leaf = u32::from_be_bytes(page[cell..cell + 4].try_into().unwrap()) as usize;
    bytes[(leaf - 1) * PAGE..leaf * PAGE].fill(0);
    fs::write(&path, bytes).unwrap();
    let output = env.run(&["sessions", "--json"]);
    let listed: Vec<_> = output.stdout.lines().map(json).collect();
    let of = |kind: &str| listed.iter().filter(|it| it["type"] == kind).count();
    assert_eq!(of("session") + of("damaged"), 40, "{output}");
    assert!(of("session") > 20 && of("damaged") > 0, "{output}");
    assert!(output.to_string().ends_with("[exit status: 1]\n"));
}

#[test]
fn a_damaged_session_keeps_an_import_from_no_other() {
    let env = TestEnv::new();
    let file = |id: &str| env.home().join(format!(".claude/projects/-work/{id}.jsonl"));
    let say = |id: &str, n: u8| {
        let parent = if n == 1 { "null".to_owned() } else { format!("\"{id}{}\"", n - 1) };
        let record = format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"{id}\",\"version\":\"2.1.0\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\
             \"content\":\"Part {n}\"}},\"uuid\":\"{id}{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        );
        fs::create_dir_all(file(id).parent().unwrap()).unwrap();
        let mut file = fs::File::options().create(true).append(true).open(file(id)).unwrap();
        file.write_all(record.as_bytes()).unwrap();
    };
    for id in ["boat", "kite", "gone"] {
        say(id, 1);
    }
    env.run(&["import"]).success();
    let changed = database(&env)
        .execute_batch(
            "DROP TRIGGER operation_is_not_updated;
             UPDATE operation SET record = x'00' WHERE session IN
                 (SELECT key FROM session WHERE id IN ('boat', 'gone'));
             UPDATE card SET state = x'00' WHERE session = (SELECT key FROM session WHERE id = 'boat')",
        )
        .is_ok();
    assert!(changed);
    fs::remove_file(file("gone")).unwrap();
    for id in ["boat", "kite"] {
        say(id, 2);
    }
    say("tree", 1);
    assert_snapshot!(said(&env, &["import"]), @"
    Imported 2 sessions (1 new): 2 new entries, 680 B
    1 session's file was deleted since the last import; the store still has all the content
    ------- stderr -------
    Claude Code: ~/.claude/projects
    warning: skipped $HOME/.claude/projects/-work/boat.jsonl: its session cannot be changed: store.db is damaged: a number is truncated
    hint: to put deleted files back where their agents read them: undertext restore --all
    hint: repair what session files still contain: undertext doctor --fix
    ");
    let listed = env.run(&["sessions", "--json"]).stdout;
    assert!(listed.contains("tree"), "{listed}");
    assert!(env.run(&["log", "-s", "kite"]).success().stdout.contains("Part 2"));
}

/// Writes a session of Claude Code of some turns, the first of which has no parent.
fn turns(env: &TestEnv, numbers: &[u8]) {
    let id = "boat";
    let lines = numbers.iter().map(|n| {
        let parent = if *n == 1 { "null".to_owned() } else { format!("\"{id}{}\"", n - 1) };
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"{id}\",\"version\":\"2.1.0\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\
             \"content\":\"Part {n} is here\"}},\"uuid\":\"{id}{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        )
    });
    let file = env.home().join(format!(".claude/projects/-work/{id}.jsonl"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, lines.collect::<String>()).unwrap();
}

/// Takes the line of one entry of the only session away from the store.
fn lose(env: &TestEnv, n: i64) {
    let lost = "UPDATE fresh SET body = zeroblob(length(body))
                WHERE key = (SELECT line FROM entry WHERE n = ?)";
    assert_eq!(database(env).execute(lost, [n]).unwrap(), 1);
}

#[test]
fn a_session_with_a_lost_line_is_followed_on() {
    let env = TestEnv::new();
    turns(&env, &[1, 2, 3]);
    env.run(&["import"]).success();
    // The agent wrote its file again without a line, and the store has lost that one.
    turns(&env, &[1, 3]);
    lose(&env, 2);
    let fixed = env.run(&["doctor", "--fix"]);
    assert!(fixed.stdout.contains("lost: the line of entry"), "{fixed}");
    turns(&env, &[1, 3, 4]);
    env.run(&["import"]).success();
    assert!(env.run(&["log", "-s", "boat"]).stdout.contains("Part 4 is here"));
    // A file that was away meanwhile, and has the line that is lost, is the same one.
    fs::remove_file(env.home().join(".claude/projects/-work/boat.jsonl")).unwrap();
    lose(&env, 1);
    assert_eq!(env.run(&["doctor", "--fix"]).code(), Some(1));
    turns(&env, &[1, 3, 4]);
    let same = env.run(&["import"]).success();
    assert!(same.stdout.contains("0 new entries") && !same.stdout.contains("rewritten"), "{same}");
}

#[test]
fn an_import_says_how_the_damage_is_mended_that_keeps_it_from_a_session() {
    let env = TestEnv::new();
    turns(&env, &[1, 2, 3]);
    env.run(&["import"]).success();
    lose(&env, 1);
    turns(&env, &[1, 2, 3, 4]);
    assert_snapshot!(env.run(&["import"]), @r"
    ------- stderr -------
    Claude Code: ~/.claude/projects
    warning: skipped $HOME/.claude/projects/-work/boat.jsonl: its session cannot be changed: entry 1 is damaged: its line does not match its id
    error: nothing could be imported
    hint: repair what session files still contain: undertext doctor --fix
    [exit status: 3]
    ");
    let fixed = env.run(&["doctor", "--fix"]).success();
    assert!(fixed.stdout.contains("1 entry of 1 session imported from"), "{fixed}");
}

#[test]
fn who_looks_through_sessions_names_one_whose_file_cannot_be_read() {
    let env = TestEnv::new();
    turns(&env, &[1, 2]);
    env.run(&["import"]).success();
    let file = env.home().join(".claude/projects/-work/boat.jsonl");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    for args in [&["search", "Part"][..], &["audit", "--secrets"]] {
        let said = env.run(args).to_string();
        let named = "session boat (claude) is shown as stored: its file cannot be read: ";
        assert!(said.contains(named) && !said.contains("doctor"), "{said}");
        assert!(said.ends_with("[exit status: 1]\n"), "{said}");
        let said = env.run(&[args, &["--json"]].concat()).stdout;
        let named: Vec<_> = said.lines().map(json).filter(|it| it["type"] == "unread").collect();
        assert_eq!(named.len(), 1, "{said}");
        assert_eq!(named[0]["session"], "boat");
    }
}

#[test]
fn a_line_that_is_lost_keeps_no_other_one_from_being_covered() {
    let env = TestEnv::new();
    turns(&env, &[1, 2, 3]);
    env.run(&["import"]).success();
    env.run_with_stdin(&["redact", "--yes"], b"Part 2 is here").success();
    turns(&env, &[1, 3]);
    lose(&env, 2);
    let fixed = env.run(&["doctor", "--fix"]);
    assert!(fixed.stdout.contains("lost: the line of entry"), "{fixed}");
    let taken = env.run_with_stdin(&["redact", "--yes"], b"Part 3 is here").success();
    assert!(!taken.stderr.contains("still contains the text"), "{taken}");
    let file = fs::read_to_string(env.home().join(".claude/projects/-work/boat.jsonl")).unwrap();
    assert!(file.contains("Part 1") && !file.contains("Part 3"), "{file}");
}

/// Puts an older state of the database in the place of the newest one, which its witness has seen.
fn forget_the_newest_change(env: &TestEnv) {
    let db = database(env);
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(db);
    let path = store(env).join("store.db");
    let older = fs::read(&path).unwrap();
    env.run(&["append", "-q", "This will be lost."]).success();
    crate::fixture::settle(&store(env));
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(store(env).join(format!("store.db{end}")));
    }
    fs::write(path, older).unwrap();
}

#[test]
fn every_reader_says_once_that_changes_are_missing() {
    let env = TestEnv::new();
    let session = conversation(&env);
    forget_the_newest_change(&env);
    for args in [
        &["log"][..],
        &["show", "@0"],
        &["graph"],
        &["sessions"],
        &["sessions", "--json"],
        &["status"],
        &["checkpoints"],
        &["branch"],
        &["operations", "--all"],
        &["context"],
        &["search", "build"],
        &["audit"],
        &["store", "sizes"],
        &["export", &session],
    ] {
        let output = env.run(args);
        assert_eq!(
            output.stderr.matches("the store has lost changes").count(),
            1,
            "{args:?}: {output}"
        );
        assert!(output.stderr.contains("undertext doctor --fix"), "{args:?}: {output}");
    }
}

#[test]
fn a_missing_or_damaged_witness_is_named_until_changes_or_the_doctor_write_it_again() {
    let env = TestEnv::new();
    conversation(&env);
    let witness = store(&env).join("store.witness");
    let whole = fs::read(&witness).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (bytes, problem) in [
        (None, "it is missing"),
        (Some(vec![0; 128]), "it is missing"),
        (Some(flipped(20)), "part of it is damaged"),
        (Some(flipped(90)), "part of it is damaged"),
    ] {
        match bytes {
            Some(bytes) => fs::write(&witness, bytes).unwrap(),
            None => fs::remove_file(&witness).unwrap(),
        }
        let verified = env.run(&["verify"]);
        let named = format!("note: store.witness: {problem}");
        assert!(verified.stdout.contains(&named), "{verified}");
        let looked = env.run(&["doctor"]);
        assert_eq!(looked.code(), Some(1), "{looked}");
        assert!(looked.stdout.contains(&format!("store.witness: {problem}")), "{looked}");
        if problem == "it is missing" {
            env.run(&["doctor", "--fix"]).success();
        } else {
            for _ in 0..2 {
                env.run(&["append", "-q", "Go on."]).success();
            }
        }
        assert!(!env.run(&["verify"]).success().stdout.contains("store.witness"));
        env.run(&["doctor"]).success();
    }
}

/// Changes a file, whose length and time stay.
fn change_in_place(path: &Path, change: impl FnOnce(&mut [u8])) {
    let time = fs::metadata(path).unwrap().modified().unwrap();
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn the_doctor_calls_nothing_in_order_that_verify_names() {
    let transcripts = |env: &TestEnv| store(env).join("transcripts");
    let flip = |bytes: &mut [u8]| bytes[30] ^= 1;
    let damages: [fn(&TestEnv, &str) -> PathBuf; 4] = [
        |env, session| live_path(env, session),
        |env, session| {
            env.run(&["revert", "1"]).success();
            live_path(env, session).with_extension("jsonl.undertext-1")
        },
        |env, _| store(env).join("transcripts/11111111-1111-4111-8111-111111111111.jsonl"),
        |env, _| {
            database(env).execute("UPDATE fresh SET body = zeroblob(length(body))", []).unwrap();
            store(env).join("store.db")
        },
    ];
    for (n, damage) in damages.into_iter().enumerate() {
        let env = TestEnv::new();
        let session = conversation(&env);
        assert!(fs::exists(transcripts(&env)).unwrap());
        let path = damage(&env, &session);
        match n {
            0 | 1 => change_in_place(&path, flip),
            2 => fs::write(&path, "").unwrap(),
            _ => {}
        }
        let named = format!("{}: ", path.strip_prefix(env.home()).unwrap().display());
        assert_eq!(env.run(&["verify"]).code(), Some(1), "{n}");
        // What is damaged in the store itself comes back from the live file.
        let looks: &[&[&str]] =
            if n == 3 { &[&["doctor"]] } else { &[&["doctor"], &["doctor", "--fix"], &["doctor"]] };
        for args in looks {
            let looked = env.run(args);
            assert_eq!(looked.code(), Some(1), "{n} {args:?}: {looked}");
            assert!(looked.stdout.contains(&named), "{n} {args:?}: {looked}");
            assert!(!looked.stdout.contains("in order"), "{n} {args:?}: {looked}");
        }
    }
}

#[test]
fn zeros_in_the_place_of_the_last_bytes_of_a_live_file_are_seen_and_written_again() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let path = live_path(&env, &session);
    let whole = fs::read(&path).unwrap();
    change_in_place(&path, |bytes| {
        let from = bytes.len() - 40;
        bytes[from..].fill(0);
    });
    let told = env.run(&["status"]);
    assert!(!told.stdout.contains("agrees with the store"), "{told}");
    env.run(&["append", "-q", "Go on."]).success();
    let now = fs::read(&path).unwrap();
    assert!(now.starts_with(&whole) && now.len() > whole.len() && !now.contains(&0));
    env.run(&["verify"]).success();
    env.run(&["doctor"]).success();
}

#[test]
fn operations_leaves_out_a_record_that_its_hash_does_not_cover() {
    let env = TestEnv::new();
    conversation(&env);
    let shown = |args: &[&str]| {
        let output = env.run(&[&["operations", "--json"], args].concat());
        let numbers: Vec<u64> =
            output.stdout.lines().filter_map(|line| json(line)["operation"].as_u64()).collect();
        (numbers, output)
    };
    assert_eq!(shown(&[]).0, [5, 4, 3, 2, 1]);
    let db = database(&env);
    db.execute_batch("DROP TRIGGER operation_is_not_updated").unwrap();
    // The time in the record: its other fields stay as they are.
    let mut record: Vec<u8> =
        db.query_row("SELECT record FROM operation WHERE n = 3", [], |row| row.get(0)).unwrap();
    let sound = undertext::model::Operation::open(
        undertext::model::OperationNumber::new(3),
        record.clone(),
        undertext::model::OperationId::default(),
        &[],
    );
    let at = sound.unwrap().at;
    let changed = (0..record.len()).find(|place| {
        record[*place] ^= 1;
        let opened = undertext::model::Operation::open(
            undertext::model::OperationNumber::new(3),
            record.clone(),
            undertext::model::OperationId::default(),
            &[],
        );
        if opened.is_ok_and(|opened| opened.at != at) {
            return true;
        }
        record[*place] ^= 1;
        false
    });
    assert!(changed.is_some());
    db.execute("UPDATE operation SET record = ? WHERE n = 3", [record]).unwrap();
    drop(db);
    for args in [&[][..], &["--all"]] {
        let (numbers, output) = shown(args);
        assert_eq!(numbers, [5, 4, 2, 1], "{output}");
        assert_eq!(output.code(), Some(1), "{output}");
        assert!(output.stderr.contains("warning: operation 3 of session"), "{output}");
    }
    assert_eq!(shown(&["-n", "2"]).1.code(), Some(0));
}

#[test]
fn a_clock_before_1970_hinders_no_command() {
    let env = TestEnv::new();
    for args in [&["new"][..], &["append", "Hello."], &["sessions"], &["log"], &["verify"]] {
        let output = env.command().args(args).env("UNDERTEXT_TEST_CLOCK", "-86400500").output();
        let output = output.unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
}
