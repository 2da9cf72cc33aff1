//! The store's file: what it refuses, and that a file of version 1 opens for ever.
//!
//! `tests/data/v1` holds a store as version 1 wrote it, and is never written again; `make` shows how it was made.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OptionalExtension, types::Value};
use tempfile::TempDir;
use undertext::{
    model::Role,
    ops::{self, Archive},
    store::{Access, SessionFilter, SqliteStore, Store, StoreError},
    wire::Draft,
};

use crate::fixture::{self, Seeded, damage, exported, only_session, said, say, workspace};

/// Facts, with their unique keys; bytes are protected as lines.
const KEYS: [(&str, &[&[&str]]); 12] = [
    ("session", &[&["key"], &["format", "id"]]),
    ("operation", &[&["session", "n"]]),
    ("entry", &[&["session", "n"], &["session", "id"]]),
    ("file", &[&["session", "n"]]),
    ("generation", &[&["session", "n"]]),
    ("run", &[&["session", "generation", "start", "operation"]]),
    ("move", &[&["session", "branch", "operation"]]),
    ("mark", &[&["session", "name", "operation"]]),
    ("checkpoint", &[&["session", "n"]]),
    ("rotation", &[&["session", "operation", "file"]]),
    ("origin", &[&["session", "entry"]]),
    ("line", &[&["key"], &["hash"]]),
];

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/v1")
}

/// Returns a folder with a copy of the store of version 1.
fn version_1() -> TempDir {
    let folder = TempDir::new().unwrap();
    copy(&data(), folder.path());
    folder
}

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

/// Makes a store with a row in every table of facts.
fn make(root: &Path) {
    let mut archive = fixture::open(root, 1);
    let session = fixture::session(&mut archive);
    let long = "a result of a tool that is long enough to be kept once, ".repeat(8);
    say(&mut archive, &session, "What lies underneath?");
    let drafts = [
        Draft::Message(Role::Assistant, "I look. \u{1b}[31m\u{202e}".into()),
        Draft::Call { id: "call-1".into(), name: "read".into(), input: r#"{"path":"a"}"#.into() },
        Draft::Result { id: "call-1".into(), output: long.clone(), error: None },
        Draft::Record(br#"{"type":"assistant", "uuid":"my-own", "message":{"role":"assistant","content":[{"type":"text","text":"Text."}]}}"#.to_vec()),
    ];
    ops::append(&mut archive, &session, &workspace(), &drafts).unwrap();
    ops::checkpoint(&mut archive, &session, Some("before the repeat")).unwrap();
    say(&mut archive, &session, &long);
    ops::branch(&mut archive, &session, "kept", None).unwrap();
    ops::revert(&mut archive, &session, &workspace(), "1", Some("Do not repeat.")).unwrap();
    ops::undo(&mut archive, &session, None).unwrap();
    ops::redo(&mut archive, &session).unwrap();
    ops::switch(&mut archive, &session, "kept").unwrap();
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

#[test]
fn a_store_of_version_1_opens_for_ever() {
    let folder = version_1();
    insta::assert_snapshot!("v1", everything(folder.path()));
}

#[test]
fn a_store_made_today_holds_what_version_1_holds() {
    let folder = TempDir::new().unwrap();
    make(folder.path());
    // An operation that rotates covers the inode of a file, and each later one covers that operation.
    let alike = |root: &Path| {
        let all = everything(root);
        let (before, _) = all.split_once("  revert ").unwrap();
        let (_, behind) = all.split_once("\nkept\n").unwrap();
        format!("{before}{behind}")
    };
    assert_eq!(alike(folder.path()), alike(version_1().path()));
}

/// Returns what a store holds, after a look that nothing in it is damaged.
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
    let entries = store.entries(session.key, 0..u64::MAX).unwrap();
    tell("entries", entries.iter().map(|entry| entry.id.to_string()).collect());
    let operations = store.operations(session.key, 0..u64::MAX).unwrap();
    tell("operations", operations.iter().map(|o| format!("{} {}", o.command, o.hash)).collect());
    for (branch, _) in ops::branches(&archive, &session).unwrap().0 {
        let target = ops::find_entry(&archive, &session, &branch).unwrap();
        tell(&branch, said(&archive, &session, Some(&target)));
    }
    let checkpoints = ops::checkpoints(&archive, &session).unwrap().into_iter();
    let shown = checkpoints.map(|s| format!("{:?} {:?}", s.checkpoint, s.words));
    tell("checkpoints", shown.collect());
    let generations = 1..=store.tip(session.key).unwrap().generations;
    let hash = |n| blake3::hash(&exported(&archive, &session, Some(n))).to_string();
    tell("exports", generations.map(hash).collect());
    let live = fs::read(fixture::live(&archive, &session)).unwrap();
    assert_eq!(exported(&archive, &session, None), live);
    told.join("\n")
}

#[test]
fn a_store_of_version_1_goes_on() {
    let folder = version_1();
    let mut archive = fixture::open(folder.path(), 9);
    let session = only_session(&archive);
    say(&mut archive, &session, "One more.");
    ops::revert(&mut archive, &session, &workspace(), "0", None).unwrap();
    ops::undo(&mut archive, &session, None).unwrap();
    fixture::assert_sound(&mut archive, &session);
    assert_eq!(said(&archive, &session, None).last().unwrap(), "One more.");
}

#[test]
fn a_store_of_version_1_gets_the_cache_of_token_counts() {
    let folder = version_1();
    Connection::open(folder.path().join("store.db"))
        .unwrap()
        .execute_batch("DROP TABLE IF EXISTS count")
        .unwrap();
    let mut archive = fixture::open(folder.path(), 9);
    let session = only_session(&archive);
    let asked = crate::context::asked_exactly();
    let first = ops::context(&archive, &session, None, &asked).unwrap();
    assert!(!first.fresh.is_empty());
    ops::keep_counts(&mut archive, &session, first.counting, &first.fresh).unwrap();
    let second = ops::context(&archive, &session, None, &asked).unwrap();
    assert_eq!((second.fresh, second.prepared), (Vec::new(), first.prepared));
    assert_eq!(damage(&archive), [""; 0]);
}

#[test]
fn no_fact_and_no_line_can_be_updated_deleted_or_replaced() {
    let folder = version_1();
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    db.execute_batch("INSERT INTO origin VALUES (1, 2, 5, 1)").unwrap();
    for (table, uniques) in KEYS {
        let columns: Vec<String> = db
            .prepare(&format!("SELECT name FROM pragma_table_info('{table}')"))
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
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
        for column in &columns {
            let other = format!(
                "CASE typeof({column}) WHEN 'blob' THEN zeroblob(32) WHEN 'text' THEN 'x' ELSE 1000 END"
            );
            aborts(&format!("UPDATE {table} SET {column} = {other}"));
            aborts(&format!("UPDATE OR REPLACE {table} SET {column} = {other}"));
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
                        "CASE typeof({column}) WHEN 'blob' THEN randomblob(32) WHEN 'text' THEN 'x' WHEN 'null' THEN NULL ELSE 1000000 END"
                    )
                })
                .collect();
            for verb in ["INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE", "REPLACE"] {
                for values in [fresh.join(", "), columns.join(", ")] {
                    aborts(&format!("{verb} INTO {table} SELECT {values} FROM {table} LIMIT 1"));
                }
            }
        }
    }
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

#[test]
fn a_newer_store_is_refused_and_not_touched() {
    let folder = version_1();
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    db.execute_batch("PRAGMA user_version = 2; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(db);
    let held = snapshot(folder.path());
    for access in [Access::Read, Access::Write, Access::Brief] {
        let refused = SqliteStore::open(&folder.path().join("store.db"), access).err();
        assert!(
            matches!(refused, Some(StoreError::Newer { found: 2, known: 1, .. })),
            "{refused:?}"
        );
        let refused = Archive::open(folder.path(), access, Seeded::boxed(1)).err();
        assert!(matches!(refused, Some(ops::OpsError::Store(StoreError::Newer { .. }))));
        assert_eq!(snapshot(folder.path()), held);
    }
}

#[test]
fn a_store_whose_newer_version_is_still_in_its_wal_is_refused() {
    let folder = version_1();
    let path = folder.path().join("store.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 2").unwrap();
    for access in [Access::Read, Access::Write, Access::Brief] {
        let refused = SqliteStore::open(&path, access).err();
        assert!(matches!(refused, Some(StoreError::Newer { .. })), "{access:?}: {refused:?}");
    }
}

#[test]
fn a_file_that_is_no_store_is_refused_and_not_touched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let others: [fn(&Path); 4] = [
        |path| Connection::open(path).unwrap().execute_batch("PRAGMA user_version = 7").unwrap(),
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
        for access in [Access::Read, Access::Write, Access::Brief] {
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
    let folder = version_1();
    drop(fixture::open(folder.path(), 1));
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    let plans = [
        (
            "SELECT n FROM entry WHERE session = ?1 AND id BETWEEN ?2 AND ?3
               AND substr(id, 1, 6) BETWEEN substr(?2, 1, 6) AND substr(?3, 1, 6)",
            "entry_id",
        ),
        ("SELECT n FROM record WHERE session = ? AND name BETWEEN ? AND ?", "record_name"),
        (
            "SELECT n FROM record WHERE session = ? AND n >= ? AND n < ? AND kind = 6 ORDER BY n DESC LIMIT 1",
            "record_boundary",
        ),
        (
            "SELECT DISTINCT key, format, id FROM tie JOIN session ON key = session
             WHERE other = ? AND kind = ? AND +format = ? ORDER BY format, id",
            "tie_other",
        ),
        ("SELECT key, id FROM session WHERE format = ? AND id >= ? ORDER BY id", "session_name"),
        ("SELECT format FROM session WHERE format > ? ORDER BY format LIMIT 1", "session_name"),
        (
            "SELECT key FROM line WHERE substr(hash, 1, 6) = substr(?1, 1, 6) AND hash = ?1",
            "line_hash",
        ),
        ("SELECT key FROM session WHERE format = ? AND id = ?", "session_name"),
        (
            "SELECT n, undoes FROM operation WHERE session = ? AND undoes IS NOT NULL ORDER BY n",
            "operation_undoes",
        ),
        (
            "SELECT to_generation FROM move WHERE session = ? AND branch = ? ORDER BY operation DESC LIMIT 1",
            "PRIMARY KEY",
        ),
        ("SELECT line, at, size FROM text WHERE tag = ?", "PRIMARY KEY"),
        // What the guards of the append-only tables ask.
        (
            "SELECT 1 FROM entry WHERE session = ?1 AND id = ?2
               AND substr(id, 1, 6) BETWEEN substr(?2, 1, 6) AND substr(?2, 1, 6)",
            "entry_id",
        ),
    ];
    for (sql, index) in plans {
        let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let parameters = vec![Value::Null; query.parameter_count()];
        let plan: Vec<String> = query
            .query_map(rusqlite::params_from_iter(parameters), |row| row.get(3))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert!(plan.iter().all(|step| !step.contains("SCAN")), "{sql}: {plan:?}");
        assert!(plan.iter().any(|step| step.contains(index)), "{sql}: {plan:?}");
    }
    let answer: Option<i64> = db
        .query_row("SELECT n FROM entry WHERE session = 1 AND n = 1", [], |row| row.get(0))
        .optional()
        .unwrap();
    assert_eq!(answer, Some(1));
}

/// Derived tables that version 1 did not have are made when it is opened to be written, and are empty until then.
#[test]
fn a_store_of_version_1_gets_the_derived_tables_and_indexes_that_came_later() {
    let folder = version_1();
    let path = folder.path().join("store.db");
    let has_later = || {
        let db = Connection::open(&path).unwrap();
        let count = "SELECT count(*) FROM sqlite_schema WHERE name IN ('tie', 'tie_other', 'record_boundary')";
        db.query_row(count, [], |row| row.get::<_, u64>(0)).unwrap()
    };
    assert_eq!(has_later(), 0);
    let ties = |access| {
        let store = SqliteStore::open(&path, access).unwrap();
        let sessions = store.sessions(&SessionFilter::default()).unwrap();
        assert!(!sessions.is_empty());
        sessions.iter().map(|listed| store.ties(listed.key).unwrap().len()).sum::<usize>()
    };
    assert_eq!(ties(Access::Read), 0);
    assert_eq!(has_later(), 0);
    assert_eq!(ties(Access::Write), 0);
    assert_eq!(has_later(), 3);
}
