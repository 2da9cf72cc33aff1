//! `verify`, `rebuild` and `doctor`: what is wrong is found, and told apart from what is merely odd.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use insta::assert_snapshot;
use rusqlite::Connection;

use super::{conversation, json, live, live_path, store};
use crate::env::TestEnv;

#[test]
fn what_is_odd_in_a_file_is_a_note_as_the_import_named_it() {
    let env = TestEnv::new();
    let record = |uuid: &str, parent: &str, words: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"sessionId\":\"odd\",\"type\":\"user\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{words}\"}},\"uuid\":\"{uuid}\",\
             \"timestamp\":\"2026-03-01T10:00:00.000Z\"}}"
        )
    };
    let lines = [
        record("a", "\"gone\"", "One."),
        format!("{{\"torn\":{}", record("b", "\"a\"", "Two.")),
        record("b", "\"a\"", "Two, again."),
        record("c", "\"b\"", "Three."),
    ];
    std::fs::write(env.project().join("odd.jsonl"), lines.join("\n") + "\n").unwrap();
    assert_snapshot!(env.run(&["import", "-v", "odd.jsonl"]), @"
    $HOME/project/odd.jsonl:2: not a JSON object
    $HOME/project/odd.jsonl:2: a second record on the same line
    $HOME/project/odd.jsonl:1: its parent is not in the file
    $HOME/project/odd.jsonl:3: an earlier record has the same id
    Imported 1 session (1 new): 5 new entries, 676 B
    Worked around damage in agents' files, which were not changed: 1 joined line, 1 broken parent link
    Noted: 1 line that is not a JSON object, 1 repeated record
    ");
    assert_snapshot!(env.run(&["verify"]), @"
    Verified 1 session, 1 operation, 5 entries: no damage found
    ------- stderr -------
    hint: 4 oddities in agents' files, without damage; to see them: undertext verify --verbose
    ");
}

#[test]
fn a_sound_store_is_verified() {
    let env = TestEnv::new();
    conversation(&env);
    assert_snapshot!(env.run(&["verify"]), @"Verified 1 session, 5 operations, 4 entries: no damage found");
    assert_snapshot!(env.run(&["verify", "--json"]), @r#"{"type":"verified","ok":true,"sessions":1,"operations":5,"entries":4,"damaged":0,"notes":0,"unread":0,"redacted":0,"lost":0}"#);
    assert_snapshot!(env.run(&["verify", "no such session"]), @r#"
    ------- stderr -------
    error: no session matches "no such session"
    hint: list the sessions: undertext sessions
    hint: import your agents' sessions: undertext import
    [exit status: 1]
    "#);
}

#[test]
fn damage_is_told_from_notes() {
    let env = TestEnv::new();
    let session = conversation(&env);
    env.run(&["revert", "1"]).success();
    let aside = format!("{}.undertext-1", live_path(&env, &session).display());
    let mut held = fs::File::options().append(true).open(&aside).unwrap();
    writeln!(held, r#"{{"type":"system","uuid":"late","parentUuid":null}}"#).unwrap();
    assert_snapshot!(env.run(&["verify"]), @r"
    note: e572dff8-2304-400b-856a-555ac3a4558d: $HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-1: it was set aside and has grown since; the next change imports the rest
    Verified 1 session, 6 operations, 4 entries: no damage found
    ");
    assert_snapshot!(env.run(&["checkpoint"]), @"
    Session e572dff8  Why does the build fail?  (native)
    Checkpoint 2
    ------- stderr -------
    warning: another program wrote 1 entry to $HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-1 after that file was renamed; the new entries are on branch main.1
    hint: to come back to this checkpoint: undertext revert 2
    ");
    assert_snapshot!(env.run(&["verify"]), @"Verified 1 session, 8 operations, 5 entries: no damage found");
    fs::remove_file(&aside).unwrap();
    assert_snapshot!(env.run(&["verify"]), @r"
    note: e572dff8-2304-400b-856a-555ac3a4558d: $HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-1: it was set aside and has been deleted since
    Verified 1 session, 8 operations, 5 entries: no damage found
    ");
    fs::write(&aside, "something else\n").unwrap();
    assert_snapshot!(env.run(&["verify", "--json"]), @r#"
    {"type":"finding","severity":"damage","session":"e572dff8-2304-400b-856a-555ac3a4558d","item":"$HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-1","problem":"it was set aside and has been changed since; the store has its old content"}
    {"type":"verified","ok":false,"sessions":1,"operations":8,"entries":5,"damaged":1,"notes":0,"unread":0,"redacted":0,"lost":0}
    [exit status: 1]
    "#);
}

#[test]
fn derived_rows_are_made_anew() {
    let env = TestEnv::new();
    conversation(&env);
    let equal = env.run(&["store", "rebuild", "--json"]).success();
    crate::fixture::settle(&store(&env));
    Connection::open(store(&env).join("store.db"))
        .unwrap()
        .execute_batch("UPDATE record SET kind = 5 WHERE n = 2")
        .unwrap();
    assert_snapshot!(env.run(&["verify"]), @"
    damage: e572dff8-2304-400b-856a-555ac3a4558d: derived rows: they do not match the facts
    Verified 1 session, 5 operations, 4 entries: 1 thing is damaged
    ------- stderr -------
    hint: to rebuild the derived rows from the facts: undertext store rebuild
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["store", "rebuild"]).masked(), @"e572dff8-2304-400b-856a-555ac3a4558d  rebuilt  4 records  entry-id");
    env.run(&["verify"]).success();
    assert_eq!(env.run(&["store", "rebuild", "--json"]).success().stdout, equal.stdout);
    assert_snapshot!(equal.masked(), @r#"{"type":"rebuilt","session":"e572dff8-2304-400b-856a-555ac3a4558d","equal":true,"records":4,"digest":"entry-id"}"#);
}

#[test]
fn a_session_that_no_list_shows_is_found() {
    let env = TestEnv::new();
    conversation(&env);
    crate::fixture::settle(&store(&env));
    let db = Connection::open(store(&env).join("store.db")).unwrap();
    db.execute_batch("DELETE FROM card").unwrap();
    assert_snapshot!(env.run(&["verify"]), @"
    damage: e572dff8-2304-400b-856a-555ac3a4558d: derived rows: they do not match the facts
    Verified 1 session, 5 operations, 4 entries: 1 thing is damaged
    ------- stderr -------
    hint: to rebuild the derived rows from the facts: undertext store rebuild
    [exit status: 1]
    ");
    env.run(&["store", "rebuild"]).success();
    env.run(&["verify"]).success();
    assert!(env.run(&["sessions"]).success().stdout.contains("Why does the build fail?"));
}

#[test]
fn a_store_that_cannot_be_opened_is_damage_too() {
    let env = TestEnv::new();
    conversation(&env);
    let path = store(&env).join("store.db");
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..200].fill(0xff);
    fs::write(&path, bytes).unwrap();
    assert_snapshot!(env.run(&["verify", "--json"]), @r#"
    {"type":"finding","severity":"damage","session":null,"item":"store.db","problem":"store.db is damaged: database disk image is malformed"}
    {"type":"verified","ok":false,"sessions":0,"operations":0,"entries":0,"damaged":1,"notes":0,"unread":0,"redacted":0,"lost":0}
    [exit status: 1]
    "#);
}

#[test]
fn the_doctor_mends_modes_and_remainders() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let in_order = env.run(&["doctor"]);
    assert_snapshot!(in_order, @"$HOME/.local/share/undertext is in order");
    let before = live(&env, &session);
    fs::set_permissions(live_path(&env, &session), Permissions::from_mode(0o644)).unwrap();
    let remainder = format!("{}.undertext-new", live_path(&env, &session).display());
    fs::write(&remainder, "half").unwrap();
    fs::set_permissions(&remainder, Permissions::from_mode(0o600)).unwrap();
    assert_snapshot!(env.run(&["doctor"]), @r"
    $HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl: its mode is 0644: other users can access it
    $HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-new: it is left over from an interrupted change
    ------- stderr -------
    hint: to repair what can be repaired: undertext doctor --fix
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["doctor", "--fix", "--json"]), @r#"
    {"type":"ailment","path":"$HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl","problem":"its mode is 0644: other users can access it","cure":"mode","cured":true}
    {"type":"ailment","path":"$HOME/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-new","problem":"it is left over from an interrupted change","cure":"delete","cured":true}
    {"type":"examined","ok":true,"path":"$HOME/.local/share/undertext"}
    "#);
    assert_snapshot!(env.run(&["doctor", "--fix"]), @"$HOME/.local/share/undertext is in order");
    assert!(!fs::exists(remainder).unwrap());
    assert!(live(&env, &session) == before);
}

/// A folder that was named by mistake keeps its modes, and nothing of it is listed.
#[test]
fn the_doctor_leaves_a_folder_alone_that_is_no_store() {
    let env = TestEnv::new();
    let script = env.project().join("run.sh");
    fs::write(&script, "true\n").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    for path in [&script, &env.project()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    for fix in [&[][..], &["--fix"]] {
        let said = env.run(&[&["doctor", "--store", "."], fix].concat());
        assert_eq!((said.code(), said.stdout.as_str()), (Some(1), ""), "{said}");
        assert!(said.stderr.contains("error: there is no store"), "{said}");
        assert!(!said.stderr.contains("--fix"), "{said}");
        assert_eq!((mode(&script), mode(&env.project())), (0o755, 0o755));
        let names = fs::read_dir(env.project()).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["run.sh"]);
    }
    // Nor does a command make a store among what is there.
    for command in [&["new"][..], &["store", "index"], &["append", "Hi."]] {
        let said = env.run(&[command, &["--store", "."]].concat());
        assert!(matches!(said.code(), Some(1 | 2)), "{said}");
        assert!(
            said.stderr.contains("hint: with --store, name a folder that has a store"),
            "{said}"
        );
        assert_eq!(fs::read_dir(env.project()).unwrap().count(), 1, "{said}");
    }
    // In one that came to hold other files, these keep their modes.
    fs::remove_file(&script).unwrap();
    env.run(&["--store", ".", "new"]).success();
    fs::write(&script, "true\n").unwrap();
    let database = env.project().join("store.db");
    for (path, open) in [(&script, 0o755), (&env.project(), 0o755), (&database, 0o644)] {
        fs::set_permissions(path, Permissions::from_mode(open)).unwrap();
    }
    env.run(&["doctor", "--fix", "--store", "."]).success();
    assert_eq!((mode(&script), mode(&env.project()), mode(&database)), (0o755, 0o755, 0o600));
    // The witness of a store tells that there was one.
    conversation(&env);
    fs::remove_file(store(&env).join("store.db")).unwrap();
    assert_eq!(env.run(&["doctor"]).code(), Some(1));
}

#[test]
fn what_a_search_writes_belongs_to_the_store() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["search", "build"]).success();
    let seal = store(&env).join("search.seal");
    for (path, open, wanted) in [(store(&env), 0o777, 0o700), (seal, 0o644, 0o600)] {
        fs::set_permissions(&path, Permissions::from_mode(open)).unwrap();
        let said = env.run(&["doctor"]);
        assert_eq!(said.code(), Some(1), "{said}");
        assert!(said.stdout.contains(&format!("its mode is {open:04o}")), "{said}");
        env.run(&["doctor", "--fix"]).success();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, wanted);
    }
}

/// Whoever is sent to the doctor because a store cannot be reached is told why.
#[test]
fn the_doctor_tells_of_modes_that_keep_out_who_owns_the_store() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let (folder, mode) =
        (store(&env), |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777);
    let paths = [
        (folder.join("store.db"), 0o600),
        (folder.join("lock"), 0o600),
        (live_path(&env, &session), 0o600),
        (folder.join("transcripts"), 0o700),
        (folder.clone(), 0o700),
    ];
    for (path, wanted) in paths {
        for strict in [0o000, 0o400, 0o500] {
            fs::set_permissions(&path, Permissions::from_mode(strict)).unwrap();
            let said = env.run(&["doctor"]);
            assert_eq!(said.code(), Some(1), "{said}");
            let told = format!("its mode is {strict:04o}: undertext cannot read and write it");
            assert!(said.stdout.contains(&told), "{said}");
            assert!(said.stderr.contains("undertext doctor --fix"), "{said}");
            let said = env.run(&["doctor", "--fix"]).success();
            assert!(said.stdout.contains(&format!("{told}; it is {wanted:04o} now")), "{said}");
            assert_eq!(mode(&path), wanted);
            env.run(&["doctor"]).success();
        }
    }
    // A file of the user's own that undertext only reads may be as strict as the user likes.
    fs::write(folder.join("config.toml"), "").unwrap();
    fs::set_permissions(folder.join("config.toml"), Permissions::from_mode(0o400)).unwrap();
    env.run(&["doctor"]).success();
    // What was put in the place of a store is no store in order.
    fs::remove_file(folder.join("store.witness")).unwrap();
    fs::write(
        folder.join("store.db"),
        "something else, and long enough to be looked at\n".repeat(99),
    )
    .unwrap();
    let said = env.run(&["doctor"]);
    assert_eq!(said.code(), Some(1), "{said}");
    assert!(said.stdout.contains("store.db: it is not an undertext store"), "{said}");
}

#[test]
fn the_cuts_of_all_sessions_are_told_behind_their_names() {
    let env = TestEnv::new();
    assert_eq!(env.run(&["audit", "--all"]).code(), Some(1), "there is no store");
    let older = conversation(&env);
    let said = env.run(&["audit", "--all"]).success().stdout;
    assert_eq!(said, "No results were cut in any session\n");
    let long = "a line of a long result\n".repeat(300);
    for session in [&[][..], &["-s", &older]] {
        if session.is_empty() {
            env.run(&["new", "-q"]).success();
        }
        let run = |args: &[&str]| env.run(&[args, session].concat()).success();
        run(&["append", "-q", "Read it."]);
        run(&[
            "append",
            "-q",
            "--call",
            "Read",
            "--input",
            "{\"file_path\":\"a.txt\"}",
            "--id",
            "c",
        ]);
        run(&["append", "-q", "--result", "c", &long, "--max-chars", "2000"]);
    }
    let said = env.run(&["audit", "--all"]).success();
    assert_eq!(said.stdout.matches("Session ").count(), 2, "{said}");
    assert_eq!(said.stdout.matches("a.txt").count(), 2, "{said}");
    let told = env.run(&["audit", "--all", "--json"]).success().stdout;
    let told: Vec<_> = told.lines().map(json).collect();
    let kinds: Vec<_> = told.iter().map(|told| told["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["replaced", "total", "replaced", "total"]);
    assert_eq!(told[0]["session"], older);
    assert!(told.iter().all(|told| told["title"].is_string() && told["format"] == "native"));
}

#[test]
fn a_compaction_of_ones_own_is_not_said_to_be_the_agents() {
    let env = TestEnv::new();
    let id = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";
    let folder = env.home().join(".claude/projects/-home-ann-garden");
    fs::create_dir_all(&folder).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::copy(example, folder.join(format!("{id}.jsonl"))).unwrap();
    env.run(&["import", "-q"]).success();
    let before = env.run(&["audit", id]).success().stdout;
    env.run(&["compact", "-q", "--keep", "1", "-s", id]).success();
    assert_eq!(env.run(&["audit", id]).success().stdout, before);
    let told = super::with_examples().run(&["audit", "native-rewind.jsonl"]).success();
    assert!(
        told.stdout.contains("No results were cut") && told.stderr.contains("--boundary"),
        "{told}"
    );
}
