//! The store's file: what it refuses, and what its schema holds.
//!
//! A store of any other version is refused and not touched.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension, types::Value};
use tempfile::TempDir;
use undertext::{
    model::{EntryNumber, OperationNumber},
    store::{Access, FORMAT_VERSION, FactStore, SqliteStore, StoreError},
    verbs::{self, Archive, SyncError},
    wire::{Draft, Speaker},
};

use crate::{
    fixture::{self, Seeded, damage, exported, only_session, said, say, workspace},
    store,
};

/// What the schema of every store is.
const SCHEMA: &str = include_str!("../../schema.sql");

/// Facts, with their unique keys.
const KEYS: [(&str, &[&[&str]]); 10] = [
    ("session", &[&["key"], &["format", "id"]]),
    ("store", &[&["key"], &["id"]]),
    ("operation", &[&["seq"], &["session", "store", "n"]]),
    ("journal", &[&["seq"]]),
    ("entry", &[&["session", "n"], &["session", "id"]]),
    ("run", &[&["session", "generation", "start", "operation"]]),
    ("checkpoint", &[&["session", "n"]]),
    ("origin", &[&["session", "entry", "operation"]]),
    ("words", &[&["session", "operation", "digest"]]),
    ("kept", &[&["session", "operation", "n"]]),
];

const ALL: [Access; 3] = [Access::Read, Access::Write, Access::Brief];

/// Copies what lies in a folder into another.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
}

/// Makes an archive in which a little of everything was done.
pub(crate) fn make(root: &Path) {
    let mut archive = fixture::open(root, 1);
    let session = fixture::session(&mut archive);
    let long = "a result of a tool that is long enough to be kept once, ".repeat(8);
    say(&mut archive, &session, "What lies underneath?");
    let drafts = [
        Draft::Message(Speaker::Assistant, "I look. \u{1b}[31m\u{202e}".into()),
        Draft::Call { id: "call-1".into(), name: "read".into(), input: r#"{"path":"a"}"#.into() },
        Draft::Result { id: "call-1".into(), output: long.clone(), error: None },
        Draft::Record(br#"{"type":"assistant", "uuid":"my-own", "message":{"role":"assistant","content":[{"type":"text","text":"Text."}]}}"#.to_vec()),
    ];
    verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts).unwrap();
    verbs::checkpoint(&archive.at(&session).unwrap(), Some("before the repeat")).unwrap();
    say(&mut archive, &session, &long);
    verbs::branch(&archive.at(&session).unwrap(), "kept", None).unwrap();
    verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", Some("Do not repeat."))
        .unwrap();
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    verbs::redo(&archive.at(&session).unwrap()).unwrap();
    verbs::switch(&archive.at(&session).unwrap(), "kept").unwrap();
    let live = fixture::live(&archive, &session);
    let outside = b"\r\n no record\n{\"type\":\"user\",\"uuid\":\"outside\",\"parentUuid\":\"my-own\",\"message\":{\"content\":\"From outside.\"}}\n{\"torn";
    let bytes = [fs::read(&live).unwrap(), outside.to_vec()].concat();
    fs::write(&live, bytes).unwrap();
    say(&mut archive, &session, "The end.");
    drop(archive);
    let db = Connection::open(root.join("store.db")).unwrap();
    // Small pages, because most tables have few rows.
    db.execute_batch(
        "PRAGMA journal_mode = DELETE; PRAGMA page_size = 1024; VACUUM; PRAGMA journal_mode = WAL",
    )
    .unwrap();
}

/// Makes a store's file with a row in every table of facts, some of it in the journal.
fn every_table(folder: &Path) -> PathBuf {
    let path = folder.join("store.db");
    store::fill_every_table(&path);
    path
}

#[test]
fn a_store_holds_what_was_done() {
    let folder = TempDir::new().unwrap();
    make(folder.path());
    insta::assert_snapshot!("made", everything(folder.path()));
}

/// Returns what a store holds, after a look that nothing in it is damaged. Hashes of operations are left out: they cover the
/// store's own id, which is drawn.
fn everything(root: &Path) -> String {
    let archive = Archive::open(root, Access::Read, Seeded::boxed(9)).unwrap();
    assert_eq!(damage(&archive), [""; 0]);
    let session = only_session(&archive);
    let mut told: Vec<String> = Vec::new();
    let mut tell = |name: &str, lines: Vec<String>| {
        told.push(name.to_owned());
        let short = |line: &String| line.chars().take(100).collect::<String>();
        told.extend(lines.iter().map(|line| format!("  {}", short(line).escape_debug())));
    };
    tell("session", vec![session.name.id.clone()]);
    let store = archive.store();
    let entries = store.entries(session.key, EntryNumber::ALL).unwrap();
    tell("entries", entries.iter().map(|entry| entry.id.to_string()).collect());
    let operations = store.operations(session.key, OperationNumber::ALL).unwrap();
    let word = |operation: &undertext::model::Operation| operation.command.as_str().to_owned();
    tell("operations", operations.iter().map(word).collect());
    for verbs::ListedBranch { branch, .. } in
        verbs::branches(&archive.at(&session).unwrap()).unwrap()
    {
        let branch = branch.unwrap();
        let target = verbs::find_place(&archive.at(&session).unwrap(), &branch).unwrap();
        tell(&branch, said(&archive, &session, Some(&target)));
    }
    let checkpoints = verbs::checkpoints(&archive.at(&session).unwrap()).unwrap().into_iter();
    let shown = checkpoints.map(|s| format!("{:?} {:?}", s.checkpoint, s.words));
    tell("checkpoints", shown.collect());
    let generations = 1..=store.state(session.key).unwrap().generations.len() as u64;
    let hash = |n| blake3::hash(&exported(&archive, &session, Some(n))).to_string();
    tell("exports", generations.map(hash).collect());
    let live = fs::read(fixture::live(&archive, &session)).unwrap();
    assert_eq!(exported(&archive, &session, None), live);
    told.join("\n")
}

/// Returns the parts of the schema, each by its name, without those that SQLite makes by itself.
fn parts(db: &Connection) -> Vec<(String, String, String)> {
    let sql = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
    let mut query = db.prepare(sql).unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn the_schema_of_a_store_is_what_the_file_says() {
    let folder = TempDir::new().unwrap();
    let path = every_table(folder.path());
    let db = Connection::open(&path).unwrap();
    let plain = Connection::open_in_memory().unwrap();
    plain.execute_batch(SCHEMA).unwrap();
    assert_eq!(parts(&db), parts(&plain));
    let pragma = |name: &str| -> i64 {
        db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!(pragma("user_version"), FORMAT_VERSION);
    assert_eq!(pragma("application_id"), 0x7554_5854);
    assert_eq!(
        db.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0)).unwrap(),
        "wal"
    );
}

#[test]
fn every_table_and_every_column_is_explained() {
    let mut silent = Vec::new();
    let lines: Vec<&str> = SCHEMA.lines().collect();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("CREATE TABLE"))
    {
        if !lines[at - 1].starts_with("-- ") || !line.ends_with(" (") {
            silent.push(*line);
        }
        let end = lines[at..].iter().position(|line| line.starts_with(") STRICT")).unwrap();
        assert!(end > 1, "{line}");
    }
    assert_eq!(silent, [""; 0]);
}

#[test]
fn every_table_of_facts_has_its_keys_here() {
    let (_, facts) = SCHEMA.split_once("Part 1: facts\n").unwrap();
    let (facts, bytes) = facts.split_once("Part 2: bytes\n").unwrap();
    let tables = |sql: &str| -> BTreeSet<String> {
        let named = sql.lines().filter_map(|line| line.strip_prefix("CREATE TABLE "));
        named.map(|rest| rest.split(' ').next().unwrap().to_owned()).collect()
    };
    let known: BTreeSet<String> = KEYS.iter().map(|(table, _)| (*table).to_owned()).collect();
    assert_eq!(tables(facts), known);
    // What is made anew or packed again has no triggers; it can be put right by whoever has the facts.
    assert!(!bytes.contains("CREATE TRIGGER"));
    assert!(tables(bytes).len() > 5);
}

#[test]
fn no_fact_can_be_updated_deleted_or_replaced() {
    let folder = TempDir::new().unwrap();
    let db = Connection::open(every_table(folder.path())).unwrap();
    for (table, uniques) in KEYS {
        let types: Vec<(String, String)> = db
            .prepare(&format!("SELECT name, type FROM pragma_table_info('{table}')"))
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let columns: Vec<String> = types.iter().map(|(name, _)| name.clone()).collect();
        let count = |db: &Connection| -> (i64, i64) {
            db.query_row(&format!("SELECT count(*), total_changes() FROM {table}"), [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap()
        };
        let held = count(&db);
        assert!(held.0 > 0, "{table} has rows to try");
        let aborts = |sql: &str| {
            let error = db.execute_batch(sql).expect_err(sql).to_string();
            assert!(error.contains("append-only"), "{sql}: {error}");
            assert_eq!(count(&db), held, "{sql}");
        };
        aborts(&format!("DELETE FROM {table}"));
        for (column, kind) in &types {
            let other = match kind.as_str() {
                "BLOB" => "zeroblob(32)",
                "TEXT" => "'x'",
                _ => "1000",
            };
            aborts(&format!("UPDATE {table} SET {column} = {other}"));
            aborts(&format!("UPDATE OR REPLACE {table} SET {column} = {other}"));
            // Even by what it is.
            aborts(&format!("UPDATE {table} SET {column} = {column}"));
        }
        for unique in uniques {
            // A row that is equal in this key and, if it can be, different in all else.
            let fresh: Vec<String> = columns
                .iter()
                .map(|column| {
                    if unique.contains(&column.as_str()) {
                        return column.clone();
                    }
                    format!(
                        "CASE typeof({column}) WHEN 'blob' THEN randomblob(length({column})) WHEN 'text' THEN 'x' WHEN 'null' THEN NULL ELSE {next} END",
                        // An operation's number has to follow, lest it be refused for that.
                        next = if column == "seq" {
                            "(SELECT 1 + max(seq) FROM operation)"
                        } else {
                            "1000000"
                        }
                    )
                })
                .collect();
            for verb in ["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "REPLACE"] {
                for values in [fresh.join(", "), columns.join(", ")] {
                    aborts(&format!("{verb} INTO {table} SELECT {values} FROM {table} LIMIT 1"));
                }
            }
            let update = "ON CONFLICT DO UPDATE SET";
            let (column, values) = (&columns[0], columns.join(", "));
            aborts(&format!(
                "INSERT INTO {table} SELECT {values} FROM {table} WHERE true {update} {column} = {column}"
            ));
        }
    }
}

#[test]
fn an_operation_leaves_the_journal_only_for_the_tables() {
    let folder = TempDir::new().unwrap();
    let db = Connection::open(every_table(folder.path())).unwrap();
    let number = |sql: &str| -> i64 { db.query_row(sql, [], |row| row.get(0)).unwrap() };
    let (first, last) =
        (number("SELECT min(seq) FROM journal"), number("SELECT max(seq) FROM journal"));
    assert!(first < last);
    let aborts = |sql: String| {
        let error = db.execute_batch(&sql).expect_err(&sql).to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    };
    for seq in first..=last {
        aborts(format!("DELETE FROM journal WHERE seq = {seq}"));
    }
    // What comes next follows without a gap, in the journal and in the tables.
    let row = |seq: i64| format!("INSERT INTO journal (seq, body) VALUES ({seq}, x'00')");
    for seq in [-1, 0, 1, first - 1, first, last, last + 2, i64::MAX] {
        aborts(row(seq));
        aborts(row(seq).replace("INSERT", "INSERT OR REPLACE"));
    }
    let operation = |seq: i64| {
        format!(
            "INSERT INTO operation (seq, session, store, n, hash, record)
             VALUES ({seq}, 1, 1, 1000 + {seq}, zeroblob(32), x'00')"
        )
    };
    for seq in [first - 1, first + 1, last + 1] {
        aborts(operation(seq));
    }
    db.execute_batch(&operation(first)).unwrap();
    aborts("DELETE FROM journal".into());
    db.execute_batch(&format!("DELETE FROM journal WHERE seq = {first}")).unwrap();
    aborts(row(first));
    for seq in first + 1..=last {
        db.execute_batch(&operation(seq)).unwrap();
    }
    db.execute_batch("DELETE FROM journal").unwrap();
    // The numbers go on where the tables end.
    aborts(row(last));
    db.execute_batch(&row(last + 1)).unwrap();
}

#[test]
fn each_store_draws_an_id_of_its_own_and_keeps_it() {
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let ids = folders.each_ref().map(|folder| {
        let path = every_table(folder.path());
        let ids = ALL.map(|access| SqliteStore::open(&path, access).unwrap().id().unwrap());
        assert_eq!(ids[0], ids[1]);
        assert_eq!(ids[1], ids[2]);
        ids[0]
    });
    assert_ne!(ids[0], ids[1]);
}

/// Returns what lies in a folder: each path with its bytes.
fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            all.extend(snapshot(&entry));
        } else {
            all.push((entry.clone(), fs::read(&entry).unwrap()));
        }
    }
    all.sort();
    all
}

/// Returns a folder with a store that says it has this version.
fn of_version(version: i64) -> TempDir {
    let folder = TempDir::new().unwrap();
    make(folder.path());
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    db.execute_batch(&format!("PRAGMA user_version = {version}; PRAGMA wal_checkpoint(TRUNCATE)"))
        .unwrap();
    folder
}

/// Asserts that a store is refused, in whatever way it is opened, and that nothing of its folder is changed by that.
#[track_caller]
fn assert_refused(folder: &Path, is_right: fn(&StoreError) -> bool) {
    let held = snapshot(folder);
    for access in ALL {
        let refused = SqliteStore::open(&folder.join("store.db"), access).err();
        assert!(refused.as_ref().is_some_and(is_right), "{access:?}: {refused:?}");
        assert_eq!(snapshot(folder), held);
        let refused = Archive::open(folder, access, Seeded::boxed(1)).err();
        let Some(SyncError::Store(refused)) = refused else { panic!("{access:?}: {refused:?}") };
        assert!(is_right(&refused), "{access:?}: {refused:?}");
        assert_eq!(snapshot(folder), held);
    }
}

#[test]
fn a_store_of_an_older_version_is_refused_and_not_touched() {
    for version in 1..FORMAT_VERSION {
        let folder = of_version(version);
        assert_refused(
            folder.path(),
            |refused| matches!(refused, StoreError::Old { known: FORMAT_VERSION, path, .. } if path.ends_with("store.db")),
        );
    }
    // What is not told by the file's name but by what is in it: one that version 1 made itself.
    let folder = TempDir::new().unwrap();
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA application_id = 0x75545854; PRAGMA user_version = 1;
         CREATE TABLE session (key INTEGER PRIMARY KEY, format TEXT NOT NULL, id TEXT NOT NULL) STRICT;
         CREATE TABLE line (key INTEGER PRIMARY KEY, hash BLOB NOT NULL) STRICT;
         PRAGMA wal_checkpoint(TRUNCATE)",
    )
    .unwrap();
    drop(db);
    assert_refused(folder.path(), |refused| matches!(refused, StoreError::Old { found: 1, .. }));
}

#[test]
fn a_newer_store_is_refused_and_not_touched() {
    for version in [FORMAT_VERSION + 1, i64::from(i32::MAX)] {
        let folder = of_version(version);
        assert_refused(folder.path(), |refused| {
            matches!(refused, StoreError::Newer { known: FORMAT_VERSION, .. })
        });
    }
}

#[test]
fn progress_is_reported_while_rows_of_older_rules_are_made_again() {
    let folder = TempDir::new().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    for _ in 0..3 {
        let session = fixture::session(&mut archive);
        say(&mut archive, &session, "Hello.");
    }
    drop(archive);
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    db.execute_batch("UPDATE rules SET version = 1").unwrap();
    drop(db);
    let open = || {
        let mut reported = Vec::new();
        let mut report = |done, all| reported.push((done, all));
        Archive::open_telling(folder.path(), Access::Write, Seeded::boxed(2), &mut report).unwrap();
        reported
    };
    assert_eq!(open(), [(0, 3), (1, 3), (2, 3)]);
    assert_eq!(open(), []);
}

#[test]
fn a_store_whose_version_is_still_in_its_wal_is_refused() {
    for (version, is_newer) in [(FORMAT_VERSION + 1, true), (FORMAT_VERSION - 1, false), (1, false)]
    {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let path = folder.path().join("store.db");
        let db = Connection::open(&path).unwrap();
        let sql = format!("PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = {version}");
        db.execute_batch(&sql).unwrap();
        for access in ALL {
            let refused = SqliteStore::open(&path, access).err();
            let is_right = match refused {
                Some(StoreError::Newer { .. }) => is_newer,
                Some(StoreError::Old { .. }) => !is_newer,
                _ => false,
            };
            assert!(is_right, "{access:?}: {refused:?}");
        }
    }
}

#[test]
fn a_file_that_is_no_store_is_refused_and_not_touched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let others: [fn(&Path); 4] = [
        |path| Connection::open(path).unwrap().execute_batch("PRAGMA user_version = 8").unwrap(),
        |path| {
            Connection::open(path)
                .unwrap()
                .execute_batch("PRAGMA application_id = 5; CREATE TABLE mine (x)")
                .unwrap();
        },
        |path| Connection::open(path).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap(),
        |path| fs::write(path, "a letter to my aunt").unwrap(),
    ];
    for other in others {
        let _ = fs::remove_file(&path);
        other(&path);
        let held = snapshot(folder.path());
        for access in ALL {
            let refused = SqliteStore::open(&path, access).err();
            assert!(matches!(refused, Some(StoreError::Foreign { .. })), "{access:?}: {refused:?}");
            assert_eq!(snapshot(folder.path()), held);
        }
    }
}

#[test]
fn a_store_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("store");
    let mut archive = fixture::open(&root, 1);
    let session = fixture::session(&mut archive);
    say(&mut archive, &session, "secret");
    let mut left = vec![root];
    while let Some(path) = left.pop() {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        if path.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn questions_asked_all_the_time_follow_an_index() {
    let folder = TempDir::new().unwrap();
    let db = Connection::open(every_table(folder.path())).unwrap();
    let plans = [
        ("SELECT key FROM session WHERE format = ? AND id = ?", "session_name"),
        ("SELECT key, id FROM session WHERE format = ? AND id >= ? ORDER BY id", "session_name"),
        ("SELECT format FROM session WHERE format > ? ORDER BY format LIMIT 1", "session_name"),
        ("SELECT hash FROM operation WHERE session = ? AND store = 1 AND n = ?", "operation_chain"),
        ("SELECT session FROM operation WHERE seq > ?", "PRIMARY KEY"),
        ("SELECT seq, body FROM journal WHERE seq > ? ORDER BY seq", "PRIMARY KEY"),
        ("SELECT id FROM entry WHERE session = ? AND n >= ? AND n < ? ORDER BY n", "PRIMARY KEY"),
        (
            "SELECT line FROM entry WHERE substr(id, 1, 6) = substr(?1, 1, 6) AND id = ?1",
            "entry_id",
        ),
        // What the guard of the append-only table asks.
        (
            "SELECT 1 FROM entry WHERE substr(id, 1, 6) = substr(?2, 1, 6) AND session = ?1 AND id = ?2",
            "entry_id",
        ),
        (
            "SELECT start FROM run WHERE session = ? AND operation >= ? AND operation < ?",
            "run_operation",
        ),
        ("SELECT n FROM record WHERE session = ? AND name BETWEEN ? AND ?", "record_name"),
        (
            "SELECT n FROM record WHERE session = ? AND n >= ? AND n < ? AND kind = 6 ORDER BY n DESC LIMIT 1",
            "record_boundary",
        ),
        (
            "SELECT n FROM record WHERE session = ? AND n >= ? AND n < ?
             AND kind = 8 AND length(hint) > 1 ORDER BY n DESC LIMIT 1",
            "record_signpost",
        ),
        (
            "SELECT key, format, id FROM tie JOIN session ON key = session
             WHERE other = ? AND kind = ? AND +format = ?",
            "tie_other",
        ),
        ("SELECT session, file FROM place WHERE place = ?", "PRIMARY KEY"),
        ("SELECT session FROM card ORDER BY active DESC LIMIT 1", "card_active"),
        ("SELECT state FROM card WHERE session = ?", "PRIMARY KEY"),
        ("SELECT line, at, size FROM text WHERE tag = ?", "PRIMARY KEY"),
        ("SELECT line FROM tag WHERE tag = ?", "PRIMARY KEY"),
        ("SELECT body FROM segment WHERE key <= ? ORDER BY key DESC LIMIT 1", "PRIMARY KEY"),
        ("SELECT tokens FROM count WHERE line = ? AND rule = ?", "PRIMARY KEY"),
    ];
    for (sql, index) in plans {
        let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = vec![Value::Null; query.parameter_count()];
        let plan: Vec<String> = query
            .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let is_walk = |step: &String| step.contains("SCAN") && !step.contains(index);
        assert!(!plan.iter().any(is_walk), "{sql}: {plan:?}");
        assert!(plan.iter().any(|step| step.contains(index)), "{sql}: {plan:?}");
    }
    let answer: Option<i64> = db
        .query_row("SELECT n FROM entry WHERE session = 1 AND n = 1", [], |row| row.get(0))
        .optional()
        .unwrap();
    assert_eq!(answer, Some(1));
}
