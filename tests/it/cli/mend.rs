//! Mending: what is damaged is named, comes back where a file holds it, and says so where none does.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rusqlite::{Connection, types::FromSql};
use serde_json::Value;
use undertext::store::{Access, FactStore as _, SqliteStore};
use undertext::verbs;

use super::{conversation, json, live_path, store};
use crate::env::{CommandOutput, TestEnv};
use crate::fixture::{self, Dice};
use crate::needs;

/// A home with sessions of an agent, which the store follows, and one of the store's own.
struct Home {
    env: TestEnv,
    own: String,
}

/// A message of an agent, long enough that its text is kept apart.
fn record(session: usize, n: usize) -> String {
    let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
    let parent = if n == 0 { "null".to_owned() } else { format!("\"u{session}-{}\"", n - 1) };
    let words: Vec<String> =
        (0..60).map(|word| format!("word{}", (word * 37 + n * 11 + session) % 997)).collect();
    let words = words.join(" ");
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"cwd\":\"/work\",\"sessionId\":\"5e55{session:04}-0d1e-4f6a-9f57-3c1a1b2c3d4e\",\
         \"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"content\":\"{n} {words}\"}},\
         \"uuid\":\"u{session}-{n}\",\"timestamp\":\"2026-01-01T00:{:02}:{:02}.000Z\"}}\n",
        n / 60,
        n % 60
    )
}

impl Home {
    fn new() -> Self {
        let env = TestEnv::new();
        for session in 0..3 {
            let file = env.home().join(format!(
                ".claude/projects/-work/5e55{session:04}-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl"
            ));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let lines: String = (0..80).map(|n| record(session, n)).collect();
            fs::write(&file, lines).unwrap();
        }
        env.run(&["import"]).success();
        let own = conversation(&env);
        env.run(&["revert", "1", "-s", &own, "-m", "It was in libm."]).success();
        env.run(&["append", "-s", &own, "And now?"]).success();
        Self { env, own }
    }

    fn database(&self) -> PathBuf {
        store(&self.env).join("store.db")
    }

    /// Moves the log into the database.
    fn settle(&self) -> Connection {
        let db = Connection::open(self.database()).unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        db
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        self.env.run(args)
    }

    /// Returns what every session says, by its id.
    fn said(&self) -> BTreeMap<String, Vec<String>> {
        let mut said = BTreeMap::new();
        let listed = self.run(&["sessions", "--json", "--all"]).success().stdout;
        for line in listed.lines() {
            let Value::String(session) = json(line)["session"].clone() else { continue };
            let log = self.run(&["log", &session, "--json", "-n", "500"]).success().stdout;
            let texts = log.lines().map(|line| json(line)["blocks"].to_string());
            said.insert(session, texts.collect());
        }
        said
    }

    /// Returns how many operations of a session there are, and the numbers of its checkpoints.
    fn numbers(&self) -> (usize, Vec<u64>) {
        let operations = self.run(&["operations", &self.own, "--json"]).success().stdout;
        let listed = self.run(&["checkpoints", &self.own, "--json"]).success().stdout;
        let numbers = listed.lines().filter_map(|line| json(line)["checkpoint"].as_u64());
        (operations.lines().count(), numbers.collect())
    }
}

#[test]
fn one_bit_in_each_of_fifty_lines_comes_back_from_the_agents_files() {
    let home = Home::new();
    let said = home.said();
    let db = home.settle();
    let mut dice = Dice(7);
    let lines: Vec<(i64, Vec<u8>)> = rows(&db, "SELECT key, body FROM fresh ORDER BY key");
    let segments: i64 = db.query_row("SELECT count(*) FROM segment", [], |row| row.get(0)).unwrap();
    let mut damaged = 0;
    for (key, mut body) in lines.into_iter().take(50) {
        let at = below(&mut dice, body.len());
        body[at] ^= 1 << dice.below(8);
        damaged += db.execute("UPDATE fresh SET body = ? WHERE key = ?", (body, key)).unwrap();
    }
    assert!(damaged == 50 || segments > 0, "{damaged} of 50");
    if damaged < 50 {
        // They lie together: one bit takes them all.
        let body: Vec<u8> = db.query_row("SELECT body FROM segment", [], |row| row.get(0)).unwrap();
        let mut body = body;
        let at = below(&mut dice, body.len());
        body[at] ^= 1;
        db.execute("UPDATE segment SET body = ?", [body]).unwrap();
    }
    drop(db);
    let verified = home.run(&["verify"]);
    assert_eq!(verified.code(), Some(1), "{verified}");
    assert!(verified.stderr.contains("undertext doctor --fix"), "{verified}");
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(0), "{fixed}");
    assert!(fixed.stdout.contains("recovered from"), "{fixed}");
    home.run(&["verify"]).success();
    assert_eq!(home.said(), said);
    assert!(store(&home.env).join("damaged-1/store.db").exists());
    // The damaged one is whole where it lies, and nothing more is to be done.
    let again = home.run(&["doctor", "--fix"]).success();
    assert!(again.stdout.ends_with("is in order\n"), "{again}");
}

#[test]
fn a_page_of_zeros_takes_no_more_than_it_held() {
    let home = Home::new();
    let said = home.said();
    let db = home.settle();
    let mut roots: Vec<(String, u64)> =
        rows(&db, "SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0");
    roots.push(("sqlite_schema".to_owned(), 1));
    drop(db);
    let whole = fs::read(home.database()).unwrap();
    let witness = fs::read(store(&home.env).join("store.witness")).unwrap();
    let (live, transcript) =
        (live_path(&home.env, &home.own), fs::read(live_path(&home.env, &home.own)).unwrap());
    for (name, root) in roots {
        let _ = fs::remove_dir_all(store(&home.env).join("damaged-1"));
        for end in ["-wal", "-shm"] {
            let _ = fs::remove_file(store(&home.env).join(format!("store.db{end}")));
        }
        let page = usize::try_from(root - 1).unwrap() * 4096;
        let mut damaged = whole.clone();
        damaged[page..page + 4096].fill(0);
        fs::write(home.database(), &damaged).unwrap();
        fs::write(store(&home.env).join("store.witness"), &witness).unwrap();
        let verified = home.run(&["verify"]);
        assert_ne!(verified.code(), Some(0), "{name}: {verified}");
        let fixed = home.run(&["doctor", "--fix"]);
        assert!(matches!(fixed.code(), Some(0 | 1)), "{name}: {fixed}");
        // What no file holds is said, by name: operations whose facts are lost, and the words of persons.
        let facts = ["operation", "entry", "run", "checkpoint", "journal", "words"];
        let is_nowhere = facts.contains(&name.as_str());
        assert_eq!(fixed.stdout.contains("lost: "), is_nowhere, "{name}: {fixed}");
        assert_eq!(home.said(), said, "{name}: {fixed}");
        assert_eq!(fs::read(&live).unwrap(), transcript, "{name}");
        home.run(&["append", "-q", "-s", &home.own, "Go on."]).success();
        fs::write(&live, &transcript).unwrap();
    }
}

#[test]
fn a_log_that_is_gone_is_named_and_what_it_held_comes_back_from_the_live_file() {
    let home = Home::new();
    home.settle();
    home.run(&["append", "-q", "-s", &home.own, "One more."]).success();
    home.run(&["checkpoint", "-q", "-s", &home.own]).success();
    let said = home.said();
    let log = home.database().with_extension("db-wal");
    fs::remove_file(&log).unwrap();
    let live = fs::read(live_path(&home.env, &home.own)).unwrap();
    assert_named(&home);
    assert_eq!(fs::read(live_path(&home.env, &home.own)).unwrap(), live);
    assert_eq!(home.said()[&home.own], said[&home.own], "reading follows the live file");

    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "the checkpoint did not come back: {fixed}");
    assert!(fixed.stdout.contains("recovered from"), "{fixed}");
    assert!(fixed.stdout.contains("lost: the store's last 2 changes"), "{fixed}");
    home.run(&["verify"]).success();
    assert_eq!(home.said(), said);
    assert_eq!(fs::read(live_path(&home.env, &home.own)).unwrap(), live);
}

#[test]
fn an_older_copy_in_the_place_of_a_store_is_named() {
    let home = Home::new();
    home.settle();
    let older = fs::read(home.database()).unwrap();
    for n in 0..3 {
        home.run(&["append", "-q", "-s", &home.own, &format!("More {n}.")]).success();
    }
    home.settle();
    let said = home.said();
    fs::write(home.database(), &older).unwrap();
    assert_named(&home);
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(fixed.stdout.contains("lost: the store's last 3 changes"), "{fixed}");
    assert_eq!(home.said(), said);
    home.run(&["verify"]).success();
}

#[test]
fn a_witness_that_claims_any_number_of_changes_is_believed_only_so_far() {
    let home = Home::new();
    home.settle();
    let older = fs::read(home.database()).unwrap();
    home.run(&["append", "-q", "-s", &home.own, "One more."]).success();
    home.settle();
    fs::write(home.database(), &older).unwrap();
    // Each slot: the store, a number, a hash, and a checksum of these.
    let path = store(&home.env).join("store.witness");
    let mut witness = fs::read(&path).unwrap();
    for slot in witness.chunks_exact_mut(64) {
        slot[16..24].copy_from_slice(&(u64::MAX - 7).to_le_bytes());
        let key = b"undertext witness 1\0\0\0\0\0\0\0\0\0\0\0\0\0";
        let sum = blake3::keyed_hash(key, &slot[..56]);
        slot[56..].copy_from_slice(&sum.as_bytes()[..8]);
    }
    fs::write(&path, &witness).unwrap();
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(home.said()[&home.own].iter().any(|said| said.contains("One more.")), "{fixed}");
    home.run(&["verify"]).success();
    home.run(&["append", "-q", "-s", &home.own, "And more."]).success();
}

#[test]
fn without_a_witness_the_stamp_of_the_live_file_tells() {
    let home = Home::new();
    home.settle();
    // A time of whole seconds would say nothing.
    let append = ["append", "-q", "-s", &home.own, "One more."];
    let mut command = home.env.command();
    command.args(append).env("UNDERTEXT_TEST_CLOCK", "1900000000007");
    assert!(command.status().unwrap().success());
    let said = home.said();
    fs::remove_file(home.database().with_extension("db-wal")).unwrap();
    fs::remove_file(store(&home.env).join("store.witness")).unwrap();
    let verified = home.run(&["verify"]);
    assert_eq!(verified.code(), Some(1), "{verified}");
    assert!(verified.to_string().contains("the store has lost"), "{verified}");
    let refused = home.run(&["append", "-q", "-s", &home.own, "And more."]);
    assert_eq!(refused.code(), Some(3), "{refused}");
    assert!(refused.stderr.contains("has lost a change"), "{refused}");
    home.run(&["doctor", "--fix"]).success();
    assert_eq!(home.said(), said);
}

#[test]
fn a_database_that_is_gone_is_not_begun_anew() {
    let home = Home::new();
    let said = home.said();
    home.settle();
    fs::remove_file(home.database()).unwrap();
    let refused = home.run(&["new"]);
    assert_eq!(refused.code(), Some(3), "{refused}");
    assert!(refused.stderr.contains("has lost changes"), "{refused}");
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(fixed.stdout.contains("recovered from"), "{fixed}");
    assert!(fixed.stdout.contains("lost: the store's last"), "{fixed}");
    assert!(fixed.stderr.contains("undertext import"), "{fixed}");
    assert_eq!(home.said()[&home.own], said[&home.own]);
    home.run(&["import"]).success();
    assert_eq!(home.said(), said);
}

#[test]
fn a_live_file_without_a_session_is_named_and_becomes_one() {
    let home = Home::new();
    let stray = live_path(&home.env, "01a2061f-a6e8-7556-b618-52123624a023");
    let text = String::from_utf8(fs::read(live_path(&home.env, &home.own)).unwrap()).unwrap();
    fs::write(&stray, text.replace(&home.own, "01a2061f-a6e8-7556-b618-52123624a023")).unwrap();
    let verified = home.run(&["verify"]);
    assert_eq!(verified.code(), Some(1), "{verified}");
    assert!(
        verified.to_string().contains("the file of a session that the store has lost"),
        "{verified}"
    );
    home.run(&["doctor", "--fix"]).success();
    let said = home.said();
    assert_eq!(said["01a2061f-a6e8-7556-b618-52123624a023"], said[&home.own]);
    home.run(&["verify"]).success();
}

#[test]
fn every_flip_of_the_log_that_drops_an_operation_is_named() {
    let home = Home::new();
    home.settle();
    // In the middle of them the journal is settled, and the log, which is long then, is emptied.
    for n in 0..20 {
        home.run(&["append", "-q", "-s", &home.own, &format!("More {n}.")]).success();
    }
    let log = home.database().with_extension("db-wal");
    let whole = fs::read(&log).unwrap();
    assert!(whole.len() > 4 * 4096, "{} bytes", whole.len());
    let newest = newest(&home.database());
    let mut dice = Dice(11);
    let mut dropped = 0;
    for _ in 0..100 {
        let mut flipped = whole.clone();
        let at = below(&mut dice, flipped.len());
        flipped[at] ^= 1 << dice.below(8);
        fs::write(&log, &flipped).unwrap();
        let _ = fs::remove_file(home.database().with_extension("db-shm"));
        if newest_or(&home.database()) == Some(newest) {
            continue;
        }
        dropped += 1;
        let verified = home.run(&["verify"]);
        assert_eq!(verified.code(), Some(1), "byte {at}: {verified}");
        assert!(verified.to_string().contains("damage"), "byte {at}: {verified}");
    }
    assert!(dropped > 20, "{dropped} of 100 dropped anything");
}

#[test]
fn a_program_that_has_the_damaged_store_open_writes_no_more_to_it() {
    let home = Home::new();
    let db = home.settle();
    let archive = fixture::open(&store(&home.env), 3);
    let session = archive.every().unwrap().into_iter().find(|session| session.name.id == home.own);
    let session = session.unwrap();
    let body: Vec<u8> =
        db.query_row("SELECT body FROM fresh LIMIT 1", [], |row| row.get(0)).unwrap();
    db.execute("UPDATE fresh SET body = ? WHERE key = 1", [&body[1..]]).unwrap();
    drop(db);
    home.run(&["doctor", "--fix"]).success();
    let refused = verbs::checkpoint(&archive.at(&session).unwrap(), None).unwrap_err();
    assert!(refused.to_string().contains("was replaced while this command"), "{refused}");
    drop(archive);
    let archive = fixture::open(&store(&home.env), 3);
    verbs::checkpoint(&archive.at(&session).unwrap(), None).unwrap();
}

#[test]
fn a_mending_that_is_killed_leaves_a_store_that_can_be_mended() {
    let home = Home::new();
    let said = home.said();
    let db = home.settle();
    let body: Vec<u8> =
        db.query_row("SELECT body FROM fresh LIMIT 1", [], |row| row.get(0)).unwrap();
    db.execute("UPDATE fresh SET body = ? WHERE key = 1", [&body[1..]]).unwrap();
    drop(db);
    home.run(&["append", "-q", "-s", &home.own, "In the log."]).success();
    let folder = store(&home.env);
    let copy = home.env.home().join("copy");
    copy_folder(&folder, &copy);
    // How long a mending takes, in steps of which each kill cuts off more.
    for step in (0..40_u64).step_by(needs::rounds(8, 1)) {
        fs::remove_dir_all(&folder).unwrap();
        copy_folder(&copy, &folder);
        let mut mending = home.env.command();
        mending.args(["doctor", "--fix"]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut mending = mending.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(step * 5));
        let _ = mending.kill();
        mending.wait().unwrap();
        let fixed = home.run(&["doctor", "--fix"]);
        assert!(matches!(fixed.code(), Some(0)), "step {step}: {fixed}");
        home.run(&["verify"]).success();
        let mut found = home.said();
        let own = found.get_mut(&home.own).unwrap();
        assert!(own.pop().unwrap().contains("In the log."), "step {step}");
        assert_eq!(found, said, "step {step}");
    }
}

#[test]
fn a_mending_that_is_killed_before_the_store_has_its_own_witness_is_finished() {
    let home = Home::new();
    drop(home.settle());
    let folder = store(&home.env);
    let witness = folder.join("store.witness");
    home.run(&["append", "-q", "-s", &home.own, "In the log."]).success();
    let ahead = fs::read(&witness).unwrap();
    // The log is lost, and a live file gives the words back as another change.
    fs::write(folder.join("store.db-wal"), b"").unwrap();
    assert!(matches!(home.run(&["doctor", "--fix"]).code(), Some(0 | 1)));
    home.run(&["verify"]).success();
    let own = fs::read(&witness).unwrap();
    assert!(own != ahead);
    let is_forgetful = || home.run(&["append", "-s", &home.own, "More."]).code() == Some(3);
    fs::write(&witness, &ahead).unwrap();
    assert!(is_forgetful());
    fs::create_dir(folder.join("mending")).unwrap();
    fs::write(folder.join("mending/store.witness"), &own).unwrap();
    home.run(&["doctor", "--fix"]).success();
    assert!(!folder.join("mending").exists());
    assert!(!is_forgetful());
    home.run(&["verify"]).success();
}

#[test]
fn a_damaged_row_of_the_journal_hides_nothing_any_more_when_it_is_mended() {
    let home = Home::new();
    let said = home.said();
    for which in ["min", "max"] {
        let db = home.settle();
        let sql = format!(
            "DROP TRIGGER journal_is_not_updated;
             UPDATE journal SET body = zeroblob(length(body)) WHERE seq = (SELECT {which}(seq) FROM journal)"
        );
        db.execute_batch(&sql).unwrap();
        drop(db);
        let listed = home.run(&["sessions"]);
        assert_eq!(listed.code(), Some(1), "{listed}");
        assert!(listed.stdout.contains("5e550000"), "{listed}");
        assert!(listed.stderr.contains("is damaged") && listed.stderr.contains("doctor --fix"));
        let refused = home.run(&["append", "-s", &home.own, "Go on."]);
        assert_eq!(refused.code(), Some(3), "{refused}");
        // What the row held is lost, but for what live files hold.
        assert!(matches!(home.run(&["doctor", "--fix"]).code(), Some(0 | 1)));
        let listed = home.run(&["sessions", "--json", "--all"]).success().stdout;
        assert!(said.keys().all(|session| listed.contains(session.as_str())), "{listed}");
        home.run(&["append", "-s", &home.own, "We go on."]).success();
    }
}

/// Writes so many lines of the first agent's session and takes them in.
fn grow(home: &Home, lines: usize) {
    fs::write(agents_file(home, 0), (0..lines).map(|n| record(0, n)).collect::<String>()).unwrap();
    home.run(&["import"]).success();
}

/// Damages the row of the journal that so many others follow.
fn damage_row(home: &Home, behind: usize) {
    let db = home.settle();
    let sql = format!(
        "DROP TRIGGER journal_is_not_updated;
         UPDATE journal SET body = zeroblob(length(body))
         WHERE seq = (SELECT seq FROM journal ORDER BY seq DESC LIMIT 1 OFFSET {behind})"
    );
    db.execute_batch(&sql).unwrap();
}

#[test]
fn what_an_operation_in_the_middle_brought_comes_back_from_the_live_file() {
    let home = Home::new();
    fixture::settle(&store(&home.env));
    for lines in [82, 84, 86] {
        grow(&home, lines);
    }
    let said = home.said();
    damage_row(&home, 1);
    let read = home.run(&["log", "5e550000", "--json", "-n", "500"]);
    assert_eq!((read.code(), read.stdout.lines().count()), (Some(1), 86), "{read}");
    let verified = home.run(&["verify"]);
    assert_eq!(verified.code(), Some(1), "{verified}");
    assert!(!verified.to_string().contains("another program"), "{verified}");
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(fixed.stdout.contains("4 entries of 1 session imported from"), "{fixed}");
    assert!(fixed.stdout.contains("lost: operations 3 to 4 of session 5e550000"), "{fixed}");
    assert_eq!(home.said(), said);
    home.run(&["verify"]).success();
    // That is all that there is to do.
    let again = home.run(&["doctor", "--fix"]).success();
    assert!(again.stdout.ends_with("is in order\n"), "{again}");
}

#[test]
fn a_session_that_cannot_be_read_at_all_is_not_one_in_which_nothing_was_said() {
    let home = Home::new();
    fixture::settle(&store(&home.env));
    let fresh = conversation(&home.env);
    fs::remove_file(live_path(&home.env, &fresh)).unwrap();
    let journal: usize =
        home.settle().query_row("SELECT count(*) FROM journal", [], |row| row.get(0)).unwrap();
    damage_row(&home, journal - 1);
    let read = home.run(&["log", &fresh]);
    assert_eq!(read.code(), Some(1), "{read}");
    assert!(read.stderr.contains("the session is damaged"), "{read}");
    assert!(read.stderr.contains("undertext doctor --fix"), "{read}");
    assert!(!read.stderr.contains("Nothing has been said"), "{read}");
}

#[test]
fn rows_that_only_say_to_be_of_an_operation_of_the_journal_do_not_keep_it_out() {
    let home = Home::new();
    fixture::settle(&store(&home.env));
    for lines in [82, 84, 86] {
        grow(&home, lines);
    }
    let said = home.said();
    let db = home.settle();
    db.execute_batch(
        "INSERT INTO kept (session, operation, n, line) SELECT key, 2, 0, 1 FROM session WHERE id LIKE '5e550000%';
         INSERT INTO checkpoint (session, n, operation, generation, horizon)
         SELECT key, 700, 3, 1, 5 FROM session WHERE id LIKE '5e550000%'",
    )
    .unwrap();
    drop(db);
    damage_first_page(&home.database());
    fs::remove_file(agents_file(&home, 0)).unwrap();
    let fixed = home.run(&["doctor", "--fix"]);
    assert!(fixed.stdout.contains("Repaired: "), "{fixed}");
    assert_eq!(home.said(), said, "{fixed}");
}

#[test]
fn a_header_or_a_table_that_is_damaged_leads_to_no_dead_end() {
    let home = Home::new();
    fixture::settle(&store(&home.env));
    let said = home.said();
    drop(home.settle());
    let whole = fs::read(home.database()).unwrap();
    let flipped = |at: usize, to: u8| {
        let mut bytes = whole.clone();
        bytes[at] = to;
        fs::write(home.database(), bytes).unwrap();
    };
    let drop_table = |table: &str| {
        let db = Connection::open(home.database()).unwrap();
        db.execute_batch(&format!("DROP TABLE {table}")).unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    };
    let cases: [(&str, &dyn Fn()); 5] = [
        ("schema format", &|| flipped(47, 0x44)),
        ("way of writing", &|| flipped(18, 0x82)),
        ("encoding", &|| flipped(59, 3)),
        ("store", &|| drop_table("store")),
        ("rules", &|| drop_table("rules")),
    ];
    for (what, damage) in cases {
        for name in ["store.db-wal", "store.db-shm"] {
            let _ = fs::remove_file(store(&home.env).join(name));
        }
        fs::write(home.database(), &whole).unwrap();
        damage();
        let fixed = home.run(&["doctor", "--fix"]);
        assert!(matches!(fixed.code(), Some(0 | 1)), "{what}: {fixed}");
        assert_eq!(home.said(), said, "{what}: {fixed}");
        home.run(&["checkpoint", "-q", "-s", &home.own]).success();
        let _ = fs::remove_dir_all(store(&home.env).join("damaged-1"));
    }
}

#[test]
fn a_checkpoint_behind_an_entry_that_is_damaged_does_not_stand_at_the_start() {
    let home = Home::new();
    fixture::settle(&store(&home.env));
    let db = home.settle();
    db.execute_batch(
        "DROP TRIGGER entry_is_not_deleted;
         DELETE FROM entry WHERE (session, n) IN
             (SELECT session, head FROM checkpoint WHERE head IS NOT NULL ORDER BY session, n LIMIT 1)",
    )
    .unwrap();
    drop(db);
    let listed = home.run(&["checkpoints", "5e550000"]);
    assert_eq!(listed.code(), Some(1), "{listed}");
    assert_eq!(listed.stdout.matches("  damaged  ").count(), 1, "{listed}");
    assert!(listed.stderr.contains("doctor --fix"), "{listed}");
}

#[test]
fn whatever_is_damaged_every_session_is_there_afterwards() {
    let home = Home::new();
    let said = home.said();
    drop(home.settle());
    let whole = fs::read(home.database()).unwrap();
    let witness = fs::read(store(&home.env).join("store.witness")).unwrap();
    let live = live_path(&home.env, &home.own);
    let transcript = fs::read(&live).unwrap();
    let mut dice = Dice(13);
    let mut mended = 0;
    for round in 0..60 {
        let _ = fs::remove_dir_all(store(&home.env).join("damaged-1"));
        for end in ["-wal", "-shm"] {
            let _ = fs::remove_file(store(&home.env).join(format!("store.db{end}")));
        }
        let mut damaged = whole.clone();
        for _ in 0..=dice.below(3) {
            let (at, length) = (below(&mut dice, damaged.len()), below(&mut dice, 64) + 1);
            let end = (at + length).min(damaged.len());
            damaged[at..end].fill_with(|| u8::try_from(dice.below(256)).unwrap());
        }
        fs::write(home.database(), &damaged).unwrap();
        fs::write(store(&home.env).join("store.witness"), &witness).unwrap();
        let fixed = home.run(&["doctor", "--fix"]);
        assert_eq!(fs::read(&live).unwrap(), transcript, "round {round}");
        if matches!(fixed.code(), Some(2 | 4)) {
            // The version was hit, and a version that is not known is refused.
            continue;
        }
        assert!(matches!(fixed.code(), Some(0 | 1)), "round {round}: {fixed}");
        let verified = home.run(&["verify"]);
        assert!(matches!(verified.code(), Some(0 | 1)), "round {round}: {verified}");
        let listed = home.run(&["sessions", "--json", "--all"]);
        assert_eq!(listed.code(), Some(0), "round {round}: {fixed}{verified}{listed}");
        let listed = listed.stdout;
        let missing = said.keys().find(|session| !listed.contains(session.as_str()));
        assert_eq!(missing, None, "round {round}: {fixed}");
        if fixed.code() == Some(0) {
            mended += 1;
            assert_eq!(home.said(), said, "round {round}: {fixed}");
        }
    }
    assert!(mended > 40, "{mended} of 60 came back whole");
}

#[test]
fn pages_of_which_some_are_those_of_an_earlier_time_are_mended() {
    let home = Home::new();
    home.settle();
    let older = fs::read(home.database()).unwrap();
    // The journal is settled meanwhile, so that a page of then holds what now stands in the tables too.
    for n in 0..24 {
        home.run(&["append", "-q", "-s", &home.own, &format!("More {n}.")]).success();
        home.run(&["checkpoint", "-q", "-s", &home.own]).success();
    }
    let db = home.settle();
    let journal = root_of(&db, "journal") / 4096;
    drop(db);
    let said = home.said();
    let newer = fs::read(home.database()).unwrap();
    let page = |n: usize| n * 4096..(n + 1) * 4096;
    let differs = |n: &usize| older[page(*n)] != newer[page(*n)];
    let pages: Vec<usize> = (0..older.len() / 4096).filter(differs).collect();
    let pairs = pages.iter().filter(|n| **n != journal).map(|n| vec![journal, *n]);
    let mut dice = Dice(23);
    let some: Vec<Vec<usize>> =
        (0..20).map(|_| pages.iter().copied().filter(|_| dice.below(2) == 0).collect()).collect();
    let copy = home.env.home().join("copy");
    copy_folder(&store(&home.env), &copy);
    for stale in pairs.chain(some) {
        fs::remove_dir_all(store(&home.env)).unwrap();
        copy_folder(&copy, &store(&home.env));
        let mut mixed = newer.clone();
        for n in &stale {
            mixed[page(*n)].copy_from_slice(&older[page(*n)]);
        }
        fs::write(home.database(), mixed).unwrap();
        let fixed = home.run(&["doctor", "--fix"]);
        assert!(matches!(fixed.code(), Some(0 | 1)), "pages {stale:?}: {fixed}");
        home.run(&["verify"]).success();
        assert_eq!(home.said()[&home.own], said[&home.own], "pages {stale:?}: {fixed}");
    }
}

#[test]
fn a_mending_cut_short_behind_the_log_gives_it_back_whoever_read_meanwhile() {
    // What was done when it was cut short, and what then lies in the log's place.
    for (done, then) in [(0, "nothing"), (1, "nothing"), (2, "nothing"), (2, "empty"), (2, "other")]
    {
        let home = Home::new();
        home.settle();
        home.run(&["append", "-q", "-s", &home.own, "One more."]).success();
        home.run(&["checkpoint", "-q", "-s", &home.own]).success();
        let (numbers, said) = (home.numbers(), home.said());
        let (root, kept) = (store(&home.env), store(&home.env).join("damaged-1"));
        let log = fs::read(root.join("store.db-wal")).unwrap();
        assert!(log.len() > 4096, "{} bytes", log.len());
        // The change of places, as far as it came.
        fs::create_dir(&kept).unwrap();
        for name in ["store.db", "store.db-wal", "store.witness"].iter().take(done * 3) {
            fs::hard_link(root.join(name), kept.join(name)).unwrap();
        }
        if done == 2 {
            fs::remove_file(root.join("store.db-wal")).unwrap();
            let _ = fs::remove_file(root.join("store.db-shm"));
        }
        match then {
            "empty" => {
                home.run(&["sessions"]).success();
                assert_eq!(fs::metadata(root.join("store.db-wal")).unwrap().len(), 0);
            }
            "other" => fs::write(root.join("store.db-wal"), &log[..log.len() / 2]).unwrap(),
            _ => {}
        }
        let fixed = home.run(&["doctor", "--fix"]);
        if then == "other" {
            assert_eq!(fs::read(kept.join("store.db-wal")).unwrap(), log, "{fixed}");
            continue;
        }
        assert_eq!(fixed.code(), Some(0), "{done} {then}: {fixed}");
        assert!(!kept.exists(), "{done} {then}: {fixed}");
        home.run(&["verify"]).success();
        assert_eq!((home.numbers(), home.said()), (numbers, said), "{done} {then}");
    }
}

/// Damages the head of the first page, which leads to the list of tables.
fn damage_first_page(database: &Path) {
    let mut bytes = fs::read(database).unwrap();
    bytes[100..112].fill(0xff);
    fs::write(database, bytes).unwrap();
}

#[test]
fn a_store_of_which_nothing_can_be_read_is_not_replaced_by_an_empty_one() {
    let home = Home::new();
    home.settle();
    let said = home.said();
    let mut bytes = fs::read(home.database()).unwrap();
    bytes[100..].fill(0xff);
    fs::write(home.database(), &bytes).unwrap();
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(fixed.stdout.contains("none of its operations can be read"), "{fixed}");
    assert!(!fixed.stderr.contains("doctor --fix"), "{fixed}");
    assert_eq!(fs::read(home.database()).unwrap(), bytes);
    assert_eq!(home.run(&["verify"]).code(), Some(1));
    // The way that it names leads out.
    fs::rename(home.database(), home.env.home().join("elsewhere.db")).unwrap();
    let _ = fs::remove_file(home.database().with_extension("db-wal"));
    assert_eq!(home.run(&["doctor", "--fix"]).code(), Some(1));
    home.run(&["import"]).success();
    assert_eq!(home.said(), said);
    home.run(&["verify"]).success();
}

#[test]
fn a_store_cut_short_anywhere_is_mended_and_what_is_lost_is_said() {
    let home = Home::new();
    home.settle();
    let said = home.said();
    for packed in [false, true] {
        if packed {
            home.run(&["store", "pack"]).success();
        }
        let whole = fs::read(home.database()).unwrap();
        let witness = fs::read(store(&home.env).join("store.witness")).unwrap();
        let live = live_path(&home.env, &home.own);
        let transcript = fs::read(&live).unwrap();
        let pages = whole.len() / 4096;
        for length in [1, 4096, 8192, 4096 * 7, 65536, 131_072, pages * 2048, (pages - 2) * 4096] {
            let _ = fs::remove_dir_all(store(&home.env).join("damaged-1"));
            for end in ["-wal", "-shm"] {
                let _ = fs::remove_file(store(&home.env).join(format!("store.db{end}")));
            }
            fs::write(home.database(), &whole[..length]).unwrap();
            fs::write(store(&home.env).join("store.witness"), &witness).unwrap();
            let fixed = home.run(&["doctor", "--fix"]);
            assert!(matches!(fixed.code(), Some(0 | 1)), "{length}: {fixed}");
            assert!(fixed.stdout.contains("Repaired: "), "{length}: {fixed}");
            assert!(!store(&home.env).join("mending").exists(), "{length}: {fixed}");
            home.run(&["import"]).success();
            let now = home.said();
            assert!(said.iter().all(|(id, said)| now.get(id) == Some(said)), "{length}: {fixed}");
            // The agents' files hold all lines: those that are not where they were are there again.
            home.run(&["verify"]).success();
            let again = home.run(&["doctor", "--fix"]).success();
            assert!(again.stdout.ends_with("is in order\n"), "{length}: {again}");
            fs::write(&live, &transcript).unwrap();
            fs::write(home.database(), &whole).unwrap();
        }
        for end in ["-wal", "-shm"] {
            let _ = fs::remove_file(store(&home.env).join(format!("store.db{end}")));
        }
        fs::write(store(&home.env).join("store.witness"), &witness).unwrap();
    }
}

/// Returns the lines of a rollout of Codex, whose records have no names.
fn rollout(session: usize, turns: usize) -> Vec<String> {
    let line = |n: usize, kind: &str, payload: Value| {
        let time = format!("2026-01-01T00:{:02}:{:02}.000Z", n / 60, n % 60);
        serde_json::json!({ "timestamp": time, "type": kind, "payload": payload }).to_string()
    };
    let id = format!("5e55{session:04}-0d1e-4f6a-9f57-3c1a1b2c3d4e");
    let mut lines = vec![line(0, "session_meta", serde_json::json!({ "id": id, "cwd": "/work" }))];
    for n in 1..=turns {
        for (role, kind) in [("user", "input_text"), ("assistant", "output_text")] {
            let words: Vec<String> = (0..60)
                .map(|word| format!("word{}", (word * 41 + n * 13 + session) % 997))
                .collect();
            let text = format!("{role} {n} {}", words.join(" "));
            let content = serde_json::json!([{ "type": kind, "text": text }]);
            let message =
                serde_json::json!({ "type": "message", "role": role, "content": content });
            lines.push(line(n, "response_item", message));
        }
    }
    lines
}

#[test]
fn what_grew_again_and_again_is_taken_in_after_its_store_was_cut_short() {
    let home = Home { env: TestEnv::new(), own: String::new() };
    let folder = home.env.home().join(".codex/sessions/2026/01/01");
    fs::create_dir_all(&folder).unwrap();
    let file = |session: usize| {
        let id = format!("5e55{session:04}-0d1e-4f6a-9f57-3c1a1b2c3d4e");
        folder.join(format!("rollout-2026-01-01T00-00-00-{id}.jsonl"))
    };
    for part in 0..3 {
        for session in 0..4 {
            // One is of a program that ends its lines with CR LF.
            let end = if session == 3 { "\r\n" } else { "\n" };
            let new =
                rollout(session, (part + 1) * 12).split_off(usize::from(part > 0) + part * 24);
            // It goes behind what was written into the file since.
            let mut grown = File::options().append(true).create(true).open(file(session)).unwrap();
            grown.write_all((new.join(end) + end).as_bytes()).unwrap();
        }
        home.run(&["import"]).success();
        home.run(&["revert", "1", "-s", "5e550001"]).success();
        home.run(&["revert", "2", "-s", "5e550002"]).success();
        home.run(&["undo", "-s", "5e550002"]).success();
    }
    home.settle();
    let said = home.said();
    let whole = fs::read(home.database()).unwrap();
    let witness = fs::read(store(&home.env).join("store.witness")).unwrap();
    let files: Vec<Vec<u8>> = (0..4).map(|session| fs::read(file(session)).unwrap()).collect();
    let pages = whole.len() / 4096;
    for part in 1..12 {
        let length = pages * part / 12 * 4096;
        fs::write(home.database(), &whole[..length]).unwrap();
        for left in ["store.db-wal", "store.db-shm"] {
            let _ = fs::remove_file(store(&home.env).join(left));
        }
        let _ = fs::remove_dir_all(store(&home.env).join("damaged-1"));
        fs::write(store(&home.env).join("store.witness"), &witness).unwrap();
        for (session, bytes) in files.iter().enumerate() {
            fs::write(file(session), bytes).unwrap();
        }
        // Of a session whose file is gone, only lines count as damage whose ids are known: a file may bring these.
        let is_gone = part % 2 == 0;
        if is_gone {
            fs::remove_file(file(0)).unwrap();
        }
        let fixed = home.run(&["doctor", "--fix"]);
        assert!(fixed.stdout.contains("Repaired: "), "{length}: {fixed}");
        home.run(&["import"]).success();
        let now = home.said();
        let verified = home.run(&["verify"]);
        let mut damage = verified.stdout.lines().filter(|line| line.starts_with("damage: "));
        let is_sought = |line: &str| is_gone && line.ends_with(": its line is lost");
        assert!(damage.all(is_sought), "{length}: {verified}");
        for session in said.keys().skip(usize::from(is_gone)) {
            assert!(now.contains_key(session), "{length}: {session}");
            home.run(&["verify", "-s", session]).success();
            let lines = rollout(session[4..8].parse().unwrap(), 36);
            let shown =
                home.run(&["search", "-F", "word", "-s", session, "-n", "0", "--json"]).success();
            assert!(shown.stdout.lines().count() >= lines.len() - 1, "{length}: {session}");
        }
        if verified.code() == Some(0) {
            assert!(home.run(&["doctor", "--fix"]).success().stdout.ends_with("is in order\n"));
        }
    }
}

/// Returns a home in which a file lies next to a session, and that file.
fn home_with_a_kept_file() -> (Home, PathBuf) {
    let home = Home::new();
    let folder = home
        .env
        .home()
        .join(".claude/projects/-work/5e550000-0d1e-4f6a-9f57-3c1a1b2c3d4e/tool-results");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("long.txt");
    fs::write(&file, "what a tool answered\n".repeat(500)).unwrap();
    home.run(&["import"]).success();
    (home, file)
}

/// Damages all lines, which lie together.
fn damage_lines(home: &Home) {
    home.run(&["store", "pack"]).success();
    let db = home.settle();
    let kept: i64 = db.query_row("SELECT count(*) FROM kept", [], |row| row.get(0)).unwrap();
    let damaged = db.execute("UPDATE segment SET body = zeroblob(length(body))", []).unwrap();
    assert!(kept == 1 && damaged > 0, "{kept} files, {damaged} segments");
}

#[test]
fn a_kept_file_comes_back_from_where_the_agent_has_it() {
    let (home, file) = home_with_a_kept_file();
    damage_lines(&home);
    assert_eq!(home.run(&["verify"]).code(), Some(1));
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(0), "{fixed}");
    // Each file is named once, whatever came back from it.
    let came: Vec<(&str, &str)> =
        fixed.stdout.lines().filter_map(|line| line.split_once(" recovered from ")).collect();
    let paths: BTreeSet<&str> = came.iter().map(|(_, path)| *path).collect();
    assert_eq!(paths.len(), came.len(), "{fixed}");
    let is_whole = |(what, path): &(&str, &str)| {
        path.ends_with("long.txt") && *what == "  a whole file of session 5e550000"
    };
    assert!(came.iter().any(is_whole), "{fixed}");
    home.run(&["verify"]).success();
    fs::remove_file(&file).unwrap();
    home.run(&["restore", "5e550000"]).success();
    assert_eq!(fs::read_to_string(&file).unwrap(), "what a tool answered\n".repeat(500));
}

#[test]
fn what_one_mending_could_not_find_the_next_one_looks_for_again() {
    let (home, file) = home_with_a_kept_file();
    damage_lines(&home);
    let agents = home.env.home().join(".claude/projects/-work");
    let session = agents.join("5e550001-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl");
    let away = home.env.home().join("away");
    fs::create_dir(&away).unwrap();
    fs::rename(&file, away.join("file")).unwrap();
    fs::rename(&session, away.join("session")).unwrap();
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(fixed.stdout.contains("lost: file 0 that operation"), "{fixed}");
    // As long as something is missing, the doctor says so.
    let looked = home.run(&["doctor"]);
    assert_eq!(looked.code(), Some(1), "{looked}");
    assert!(looked.stdout.contains("it has lost lines"), "{looked}");
    let again = home.run(&["doctor", "--fix"]);
    assert!(again.stdout.contains("no file contains what was lost"), "{again}");
    assert!(!again.stderr.contains("doctor --fix"), "{again}");
    fs::rename(away.join("file"), &file).unwrap();
    fs::rename(away.join("session"), &session).unwrap();
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(0), "{fixed}");
    home.run(&["verify"]).success();
    assert!(home.run(&["doctor"]).success().stdout.ends_with("is in order\n"));
}

#[test]
fn a_kept_file_whose_operation_is_lost_leaves_its_place_to_the_next_one() {
    let (home, file) = home_with_a_kept_file();
    crate::fixture::settle(&store(&home.env));
    let db = home.settle();
    let by: u64 = db.query_row("SELECT operation FROM kept", [], |row| row.get(0)).unwrap();
    db.execute_batch(
        "DROP TRIGGER operation_is_not_deleted;
         DELETE FROM operation WHERE (session, n) IN (SELECT session, operation FROM kept);
         VACUUM",
    )
    .unwrap();
    drop(db);
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(fixed.stdout.contains("lost: operation 2 of session 5e550000"), "{fixed}");
    home.run(&["import"]).success();
    home.run(&["verify"]).success();
    let operations = home.run(&["operations", "5e550000", "--json"]).success().stdout;
    assert_eq!(operations.lines().count() as u64, by, "{operations}");

    // Such a place that was left there goes, too.
    crate::fixture::settle(&store(&home.env));
    let left = "INSERT INTO kept SELECT session, operation + 1, 0, 0 FROM kept LIMIT 1";
    home.settle().execute_batch(left).unwrap();
    assert_eq!(home.run(&["verify"]).code(), Some(1));
    home.run(&["doctor", "--fix"]);
    home.run(&["verify"]).success();
    fs::remove_file(&file).unwrap();
    home.run(&["restore", "5e550000"]).success();
    assert_eq!(fs::read_to_string(&file).unwrap(), "what a tool answered\n".repeat(500));
}

/// Copies a store's folder.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            File::options().write(true).open(&to).unwrap().set_modified(modified).unwrap();
        }
    }
}

/// Returns where a table begins in a database.
fn root_of(db: &Connection, table: &str) -> usize {
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?";
    let page: u64 = db.query_row(sql, [table], |row| row.get(0)).unwrap();
    usize::try_from(page - 1).unwrap() * 4096
}

#[test]
fn a_store_whose_id_is_damaged_finds_it_by_its_operations() {
    for (what, problem) in [("empty", "it has no id"), ("flipped", "does not match its id")] {
        let home = Home::new();
        fixture::settle(&store(&home.env));
        let db = home.settle();
        let (said, numbers) = (home.said(), home.numbers());
        let id: Vec<u8> = db.query_row("SELECT id FROM store", [], |row| row.get(0)).unwrap();
        let root = root_of(&db, "store");
        drop(db);
        let mut bytes = fs::read(home.database()).unwrap();
        let page = &mut bytes[root..root + 4096];
        if what == "empty" {
            page[3..5].fill(0);
        } else {
            let at = page.windows(16).position(|part| part == id).unwrap();
            page[at + 5] ^= 1;
        }
        fs::write(home.database(), bytes).unwrap();
        let looked = home.run(&["doctor"]);
        assert_eq!(looked.code(), Some(1), "{what}: {looked}");
        assert!(looked.stdout.contains(problem), "{what}: {looked}");
        assert!(looked.stderr.contains("undertext doctor --fix"), "{what}: {looked}");
        let fixed = home.run(&["doctor", "--fix"]);
        assert_eq!(fixed.code(), Some(0), "{what}: {fixed}");
        home.run(&["verify"]).success();
        assert_eq!((home.said(), home.numbers()), (said, numbers), "{what}");
        home.run(&["undo", "-s", &home.own]).success();
    }
}

#[test]
fn a_session_whose_name_is_damaged_has_it_again_by_its_operations() {
    let id = "5e550001-0d1e-4f6a-9f57-3c1a1b2c3d4e";
    // Where the name is damaged, and what it is then: it may be that of another session.
    for (wheres, becomes) in [
        (&["session"][..], "5e551001-0d1e-4f6a-9f57-3c1a1b2c3d4e"),
        (&["session"], "5e550000-0d1e-4f6a-9f57-3c1a1b2c3d4e"),
        (&["session"], "5e550002-0d1e-4f6a-9f57-3c1a1b2c3d4e"),
        (&["session", "session_name"], "5e551001-0d1e-4f6a-9f57-3c1a1b2c3d4e"),
        (&["session", "card"], "5e550002-0d1e-4f6a-9f57-3c1a1b2c3d4e"),
        (&["session_name"], "5e551001-0d1e-4f6a-9f57-3c1a1b2c3d4e"),
        (&["card"], "5e550000-0d1e-4f6a-9f57-3c1a1b2c3d4e"),
    ] {
        let home = Home::new();
        let db = home.settle();
        let said = home.said();
        let pages = wheres.iter().map(|table| root_of(&db, table)).collect::<Vec<_>>();
        drop(db);
        let mut bytes = fs::read(home.database()).unwrap();
        for at in pages {
            let page = &mut bytes[at..at + 4096];
            let is_it = |part: &[u8]| part == id.as_bytes();
            let found = page.windows(id.len()).rposition(is_it).unwrap();
            page[found..found + id.len()].copy_from_slice(becomes.as_bytes());
        }
        fs::write(home.database(), bytes).unwrap();
        assert_eq!(home.run(&["verify"]).code(), Some(1), "{wheres:?} {becomes}");
        let fixed = home.run(&["doctor", "--fix"]);
        assert_eq!(fixed.code(), Some(0), "{wheres:?} {becomes}: {fixed}");
        assert!(!fixed.stdout.contains("lost: "), "{wheres:?} {becomes}: {fixed}");
        home.run(&["verify"]).success();
        home.run(&["import"]).success();
        assert_eq!(home.said(), said, "{wheres:?} {becomes}: {fixed}");
    }
}

#[test]
fn a_database_in_the_place_of_another_stores_is_named_and_left_alone() {
    let home = Home::new();
    home.settle();
    let other = TestEnv::new();
    conversation(&other);
    let said = home.said();
    let own = fs::read(home.database()).unwrap();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        let there = store(&home.env).join(name);
        let _ = fs::remove_file(&there);
        if let Ok(bytes) = fs::read(store(&other).join(name)) {
            fs::write(there, bytes).unwrap();
        }
    }
    let swapped = fs::read(home.database()).unwrap();
    for command in [&["verify"][..], &["doctor"], &["doctor", "--fix"], &["doctor", "--fix"]] {
        let named = home.run(command);
        assert_eq!(named.code(), Some(1), "{command:?}: {named}");
        assert!(named.stdout.contains("it belongs to a different store"), "{command:?}: {named}");
        assert!(!named.stdout.contains("in order"), "{command:?}: {named}");
    }
    assert_eq!(fs::read(home.database()).unwrap(), swapped);
    // The ways that the doctor names lead out: the other one is put back, or the witness goes.
    let witness = store(&home.env).join("store.witness");
    let seen = fs::read(&witness).unwrap();
    fs::remove_file(&witness).unwrap();
    let missing = home.run(&["doctor"]);
    assert!(missing.stdout.contains("store.witness: it is missing"), "{missing}");
    fs::write(&witness, seen).unwrap();
    for name in ["store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(store(&home.env).join(name));
    }
    fs::write(home.database(), own).unwrap();
    home.run(&["verify"]).success();
    assert_eq!(home.said(), said);
}

#[test]
fn what_lies_in_the_way_is_named_with_its_path_and_moved_by_a_person() {
    let nothing: &dyn Fn(&Path) = &|path| {
        let _ = fs::remove_dir_all(path);
        let _ = fs::remove_file(path);
    };
    let folder: &dyn Fn(&Path) = &|path| {
        nothing(path);
        fs::create_dir(path).unwrap();
    };
    let file: &dyn Fn(&Path) = &|path| {
        nothing(path);
        fs::write(path, "").unwrap();
    };
    let link: &dyn Fn(&Path) = &|path| {
        nothing(path);
        std::os::unix::fs::symlink("/nowhere", path).unwrap();
    };
    for (name, put) in [
        ("lock", folder),
        ("lock", link),
        ("watched", folder),
        ("mending", file),
        ("transcripts", file),
        ("search.db", folder),
        ("uncovered", folder),
        ("store.witness", folder),
    ] {
        let home = Home::new();
        let path = store(&home.env).join(name);
        let kept = home.env.home().join("kept");
        let _ = fs::rename(&path, &kept);
        put(&path);
        for command in [&["doctor"][..], &["doctor", "--fix"]] {
            let told = home.run(command);
            assert_eq!(told.code(), Some(1), "{name}: {told}");
            let line = format!("/undertext/{name}: it is ");
            let lines = told.stdout.lines().filter(|told| told.contains(&line));
            let lines: Vec<&str> = lines.collect();
            assert!(
                matches!(lines.as_slice(), [line] if line.ends_with("Move it away")),
                "{name}: {told}"
            );
            assert!(!told.stdout.contains("in order"), "{name}: {told}");
            assert_eq!(told.stdout.matches("undertext-new").count(), 0, "{name}: {told}");
        }
        let more = home.run(&["append", "-q", "-s", &home.own, "More."]);
        let named = more.stderr.contains(&format!("/undertext/{name}"));
        assert!(more.code() == Some(0) || named, "{name}: {more}");
        nothing(&path);
        let _ = fs::rename(&kept, &path);
        home.run(&["doctor", "--fix"]).success();
        home.run(&["append", "-q", "-s", &home.own, "Now."]).success();
    }
}

#[test]
fn a_list_of_what_is_still_to_be_covered_that_cannot_be_read_may_name_any_session() {
    for list in [&b"\xff\xfe99"[..], b"one\n2", b"-\n"] {
        let home = Home::new();
        let path = store(&home.env).join("uncovered");
        fs::write(&path, list).unwrap();
        home.run(&["append", "-q", "-s", &home.own, "More."]).success();
        assert!(!path.exists(), "{list:?}");
        home.run(&["doctor", "--fix"]).success();
    }
}

#[test]
fn a_header_of_zeros_is_damage_because_the_witness_has_seen_a_store() {
    let home = Home::new();
    home.settle();
    let said = home.said();
    let mut bytes = fs::read(home.database()).unwrap();
    bytes[..100].fill(0);
    fs::write(home.database(), bytes).unwrap();
    let verified = home.run(&["verify"]);
    assert_eq!(verified.code(), Some(1), "{verified}");
    assert!(verified.stderr.contains("undertext doctor --fix"), "{verified}");
    let refused = home.run(&["append", "-q", "-s", &home.own, "More."]);
    assert_eq!(refused.code(), Some(3), "{refused}");
    let named = home.run(&["doctor"]);
    let line = named.stdout.lines().find(|line| line.contains("store.db")).unwrap();
    assert_eq!(line.matches("store.db").count(), 1, "{named}");
    home.run(&["doctor", "--fix"]).success();
    assert_eq!(home.said(), said);
}

#[test]
fn a_line_of_which_something_was_taken_out_comes_back_as_it_is_since() {
    for (rows_too, as_it_came) in [(false, false), (true, false), (false, true)] {
        let home = Home::new();
        fixture::settle(&store(&home.env));
        let before = home.env.home().join("before.db");
        let before = format!("ATTACH '{}' AS before", before.display());
        let db = home.settle();
        db.execute_batch(&before).unwrap();
        for table in ["segment", "fresh"] {
            let sql = format!("CREATE TABLE before.{table} AS SELECT * FROM main.{table}");
            db.execute_batch(&sql).unwrap();
        }
        drop(db);
        let taken_out = home.env.run_with_stdin(&["redact", "--yes"], b"word37 word74").success();
        fixture::settle(&store(&home.env));
        let said = home.said();
        let db = home.settle();
        if as_it_came {
            // What was there before is there again, and something else is damaged.
            db.execute_batch(&before).unwrap();
            for table in ["segment", "fresh"] {
                let sql = format!("INSERT OR REPLACE INTO {table} SELECT * FROM before.{table}");
                assert!(db.execute(&sql, []).is_ok(), "{table}");
            }
            db.execute_batch("DROP TRIGGER run_is_not_deleted; DELETE FROM run").unwrap();
        }
        for table in ["segment", "fresh"].iter().filter(|_| !as_it_came) {
            db.execute(&format!("UPDATE {table} SET body = zeroblob(length(body))"), []).unwrap();
        }
        if rows_too {
            db.execute_batch("DROP TRIGGER entry_is_not_deleted; DELETE FROM entry").unwrap();
        }
        drop(db);
        let verified = home.run(&["verify"]);
        assert_eq!(verified.code(), Some(1), "{taken_out}{verified}");
        let fixed = home.run(&["doctor", "--fix"]);
        assert_eq!(fixed.code(), Some(i32::from(rows_too || as_it_came)), "{rows_too}: {fixed}");
        home.run(&["verify"]).success();
        assert_eq!(home.said(), said, "{rows_too}");
        assert!(!format!("{:?}", home.said()).contains("word37 word74"), "{rows_too}");
    }
}

#[test]
fn entries_that_one_operation_took_from_several_files_come_back_from_these() {
    let env = TestEnv::new();
    let name = "6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c";
    place_kimi(&env);
    env.run(&["import"]).success();
    fixture::settle(&store(&env));
    let log = env.run(&["log", name, "--json"]).success().stdout;
    let db = Connection::open(store(&env).join("store.db")).unwrap();
    let generations: u64 =
        db.query_row("SELECT count(DISTINCT generation) FROM run", [], |row| row.get(0)).unwrap();
    assert!(generations > 1, "{generations}");
    db.execute_batch(
        "DROP TRIGGER entry_is_not_deleted; DELETE FROM entry;
         UPDATE segment SET body = zeroblob(length(body));
         UPDATE fresh SET body = zeroblob(length(body));
         PRAGMA wal_checkpoint(TRUNCATE)",
    )
    .unwrap();
    drop(db);
    let fixed = env.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    env.run(&["verify"]).success();
    assert_eq!(env.run(&["log", name, "--json"]).success().stdout, log);
}

#[test]
fn words_that_are_not_those_of_their_digest_are_left_out_and_named() {
    let home = Home::new();
    fixture::settle(&store(&home.env));
    let db = home.settle();
    let words: Vec<(u64, Vec<u8>)> =
        rows(&db, "SELECT operation, digest FROM words WHERE text = 'It was in libm.'");
    let [(operation, digest)] = &words[..] else { panic!("{words:?}") };
    db.execute_batch("DROP TRIGGER words_are_not_updated").unwrap();
    let sql = "UPDATE words SET text = 'It was in libn.' WHERE digest = ?";
    assert_eq!(db.execute(sql, [digest]).unwrap(), 1);
    drop(db);
    assert_eq!(home.run(&["verify"]).code(), Some(1));
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(fixed.stdout.contains(&format!("lost: text of operation {operation}")), "{fixed}");
    home.run(&["verify"]).success();
    assert!(home.run(&["doctor"]).success().stdout.ends_with("is in order\n"));
}

#[test]
fn a_value_that_cannot_be_read_costs_no_more_than_its_row() {
    let tables =
        [("origin", "cut"), ("checkpoint", "note"), ("run", "gaps"), ("operation", "record")];
    for (table, column) in tables {
        let home = Home::new();
        cut_a_result(&home);
        fixture::settle(&store(&home.env));
        let sessions = home.said().len();
        let db = home.settle();
        db.execute_batch(&format!("DROP TRIGGER {table}_is_not_updated")).unwrap();
        let damaged = db.execute(&format!("UPDATE {table} SET {column} = x'8000'"), []).unwrap();
        assert!(damaged > 0, "{table}");
        drop(db);
        assert_eq!(home.run(&["verify"]).code(), Some(1), "{table}");
        let fixed = home.run(&["doctor", "--fix"]);
        assert!(fixed.stdout.contains("Repaired: "), "{table}: {fixed}");
        // Each of them can be read.
        assert_eq!(home.said().len(), sessions, "{table}: {fixed}");
    }
}

/// Adds notes to the store's own session, and damages a page with words.
fn damage_words(home: &Home, note: &str, page: impl Fn(&[u8], usize) -> usize) {
    for n in 0..12 {
        home.run(&["append", "-q", "-s", &home.own, &format!("Turn {n}")]).success();
        home.run(&["checkpoint", "-s", &home.own, "-m", &format!("{n} {note}")]).success();
    }
    fixture::settle(&store(&home.env));
    let db = home.settle();
    let root = root_of(&db, "words");
    drop(db);
    let mut damaged = fs::read(home.database()).unwrap();
    assert_eq!(damaged[root], 2);
    let page = page(&damaged, root);
    damaged[page..page + 4096].fill(0);
    fs::write(home.database(), damaged).unwrap();
}

#[test]
fn words_on_a_page_that_is_lost_are_named() {
    let home = Home::new();
    damage_words(&home, "A note.".repeat(100).as_str(), |pages, root| {
        let number = |at: usize, count: usize| {
            pages[at..at + count].iter().fold(0, |number, byte| number << 8 | usize::from(*byte))
        };
        (number(root + number(root + 12, 2), 4) - 1) * 4096
    });
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    let lost = fixed.stdout.lines().filter(|line| line.contains("lost: text of operation"));
    let lost = lost.count();
    assert!(lost > 0, "{fixed}");
    home.run(&["verify"]).success();
}

/// A row of words.
type Words = (i64, i64, Vec<u8>, Vec<u8>, String);

#[test]
fn words_that_were_taken_out_do_not_come_back_from_a_page_that_is_no_longer_in_use() {
    for whole in [false, true] {
        let home = Home::new();
        let note = "The word is heliotrope-and-gentian.";
        home.run(&["checkpoint", "-s", &home.own, "-m", note]).success();
        fixture::settle(&store(&home.env));
        let db = home.settle();
        let mut query = db.prepare("SELECT * FROM words").unwrap();
        let words = query.query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        });
        let words: Vec<Words> = words.unwrap().map(Result::unwrap).collect();
        assert!(words.iter().any(|(.., text)| text == note), "{words:?}");
        drop(query);
        drop(db);
        if whole {
            home.run(&["forget", &home.own, "--yes"]).success();
        } else {
            home.env.run_with_stdin(&["redact", "--yes"], b"heliotrope-and-gentian").success();
        }
        fixture::settle(&store(&home.env));
        let db = home.settle();
        db.execute_batch(
            "CREATE TABLE stray (session INTEGER, operation INTEGER, digest BLOB, salt BLOB, text TEXT,
               PRIMARY KEY (session, operation, digest)) WITHOUT ROWID;
             DROP TRIGGER run_is_not_deleted; DELETE FROM run",
        )
        .unwrap();
        for row in words {
            db.execute("INSERT INTO stray VALUES (?, ?, ?, ?, ?)", row).unwrap();
        }
        drop(db);
        let fixed = home.run(&["doctor", "--fix"]);
        assert!(fixed.stdout.contains("Repaired: "), "{fixed}");
        assert!(!fixed.stdout.contains("text of operation"), "{fixed}");
        let texts: Vec<(i64, String)> = rows(&home.settle(), "SELECT operation, text FROM words");
        assert!(!texts.iter().any(|(_, text)| text == note), "{texts:?}");
    }
}

/// Paths on Linux need not be text.
#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_no_text_is_told_to_programs_as_text() {
    let env = TestEnv::new();
    let folder = env.home().join(OsStr::from_bytes(b"sto\xffre"));
    let store = folder.as_os_str();
    let run = |args: &[&str]| {
        let args = args.iter().map(OsStr::new).chain([OsStr::new("--store"), store]);
        env.run(&args.collect::<Vec<_>>())
    };
    run(&["new"]).success();
    run(&["append", "How deep is the lake?"]).success();
    fs::remove_file(folder.join("store.db")).unwrap();
    let fixed = run(&["doctor", "--fix", "--json"]);
    let mended = fixed.stdout.lines().map(json).find(|line| line["type"] == "mended").unwrap();
    let path = mended["taken_back"][0]["path"].as_str().unwrap().to_owned();
    assert!(path.contains("sto\u{fffd}re/transcripts/"), "{fixed}");
}

/// Puts an example session of Kimi CLI where that keeps it, with the states that it set aside.
fn place_kimi(env: &TestEnv) {
    let name = "6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c";
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/kimi-lighthouse").join(name);
    let folder = env.home().join(".kimi/sessions/0123456789abcdef0123456789abcdef").join(name);
    copy_folder(&example, &folder);
}

#[test]
fn a_session_keeps_what_was_before_the_first_row_that_is_lost() {
    for (table, which) in [
        ("checkpoint", "TRUE"),
        ("checkpoint", "note IS NOT NULL"),
        ("run", "TRUE"),
        ("run", "generation > 1"),
        ("run", "operation > 1"),
        ("origin", "TRUE"),
        ("operation", "n > 1"),
        ("entry", "n % 7 = 3"),
    ] {
        let home = Home::new();
        place_kimi(&home.env);
        // One that its agent wrote again, and one that goes back and grows further.
        let lines: Vec<String> = (0..80).map(|n| record(0, n)).collect();
        let shorter = [&lines[..20], &lines[30..60]].concat().concat();
        fs::write(agents_file(&home, 0), shorter).unwrap();
        home.run(&["import"]).success();
        home.run(&["append", "-q", "-s", "5e550001", "What of the other?"]).success();
        cut_a_result(&home);
        home.run(&["append", "-q", "-s", "5e550002", "And then?"]).success();
        home.run(&["checkpoint", "-s", &home.own, "-m", "Before the tests."]).success();
        home.run(&["revert", "1", "-s", &home.own]).success();
        home.run(&["append", "-q", "-s", &home.own, "Once more."]).success();
        fixture::settle(&store(&home.env));
        let said = home.said();
        let db = home.settle();
        db.execute_batch(&format!("DROP TRIGGER {table}_is_not_deleted")).unwrap();
        let sql = format!("SELECT DISTINCT session, 0 FROM {table} WHERE {which}");
        let hit: Vec<(i64, i64)> = rows(&db, &sql);
        let names: Vec<(i64, String)> = rows(&db, "SELECT key, id FROM session");
        let whole = names.iter().filter(|(key, _)| hit.iter().all(|(session, _)| session != key));
        let whole: Vec<&String> = whole.map(|(_, id)| id).collect();
        let deleted = db.execute(&format!("DELETE FROM {table} WHERE {which}"), []).unwrap();
        assert!(deleted > 0, "{table}, {which}");
        drop(db);
        let operations = |id: &String| home.run(&["operations", id, "--json"]).stdout;
        let before: Vec<String> = whole.iter().map(|id| operations(id)).collect();
        assert_eq!(home.run(&["verify"]).code(), Some(1), "{table}, {which}");
        let fixed = home.run(&["doctor", "--fix"]);
        assert_eq!(fixed.code(), Some(1), "{table}, {which}: {fixed}");
        home.run(&["verify"]).success();
        for (id, now) in home.said().into_iter().filter(|(id, _)| !id.starts_with("5e550002")) {
            assert_eq!(now, said[&id], "{table}, {which}, {id}: {fixed}");
        }
        // What a file no longer holds is kept beside.
        let kept = fs::read_to_string(store(&home.env).join("damaged-1/lines.jsonl"));
        let long = "word ".repeat(2000);
        let is_lost = fixed.stdout.contains("all operations of session 5e550002");
        assert!(!is_lost || kept.unwrap().contains(&long), "{table}: {fixed}");
        let after: Vec<String> = whole.iter().map(|id| operations(id)).collect();
        assert_eq!(after, before, "{table}, {which}: {fixed}");
    }
}

/// Returns the file of an agent's session.
fn agents_file(home: &Home, session: usize) -> PathBuf {
    let name = format!("5e55{session:04}-0d1e-4f6a-9f57-3c1a1b2c3d4e.jsonl");
    home.env.home().join(".claude/projects/-work").join(name)
}

/// Has a session with a result that is cut.
fn cut_a_result(home: &Home) {
    let long = "word ".repeat(2000);
    let result =
        format!("{{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":\"{long}\"}}");
    let cut = record(2, 80)
        .replace("\"content\":\"80 ", &format!("\"content\":[{result}],\"was\":\"80 "));
    let text = fs::read_to_string(agents_file(home, 2)).unwrap();
    fs::write(agents_file(home, 2), text + &cut).unwrap();
    home.run(&["import"]).success();
    home.run(&["truncate", "-s", "5e550002", "--max-chars", "2000"]).success();
}

#[test]
fn lines_come_back_from_agents_files_of_which_no_operation_tells_any_more() {
    let home = Home::new();
    place_kimi(&home.env);
    home.run(&["import"]).success();
    home.run(&["revert", "3", "-s", "5e550001"]).success();
    fixture::settle(&store(&home.env));
    let said = home.said();
    let db = home.settle();
    db.execute_batch(
        "DROP TRIGGER operation_is_not_deleted; DELETE FROM operation;
         UPDATE segment SET body = zeroblob(length(body));
         UPDATE fresh SET body = zeroblob(length(body));
         VACUUM",
    )
    .unwrap();
    drop(db);
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    assert!(fixed.stdout.contains("lost: all operations of session"), "{fixed}");
    assert!(!fixed.stdout.contains("lost: the line"), "{fixed}");
    home.run(&["import"]).success();
    home.run(&["verify"]).success();
    assert_eq!(home.said(), said, "{fixed}");
}

#[test]
fn entries_that_no_run_tells_of_are_found_where_their_lines_follow_each_other() {
    let home = Home::new();
    place_kimi(&home.env);
    home.run(&["import"]).success();
    home.run(&["append", "-q", "-s", "5e550001", "What of the other?"]).success();
    fixture::settle(&store(&home.env));
    let said = home.said();
    let db = home.settle();
    db.execute_batch(
        "DROP TRIGGER entry_is_not_deleted; DELETE FROM entry;
         DROP TRIGGER run_is_not_deleted; DELETE FROM run;
         UPDATE segment SET body = zeroblob(length(body));
         UPDATE fresh SET body = zeroblob(length(body));",
    )
    .unwrap();
    drop(db);
    let fixed = home.run(&["doctor", "--fix"]);
    assert_eq!(fixed.code(), Some(1), "{fixed}");
    home.run(&["verify"]).success();
    assert_eq!(home.said(), said, "{fixed}");
}

/// Checks that every command that changes something refuses, and that verify and doctor say why.
#[track_caller]
fn assert_named(home: &Home) {
    let own = home.own.as_str();
    for command in [
        &["append", "-s", own, "x"][..],
        &["revert", "0", "-s", own],
        &["undo", "-s", own],
        &["checkpoint", "-s", own],
        &["branch", "other", "-s", own],
        &["truncate", "-s", own, "--max-chars", "100"],
        &["new"],
        &["import"],
    ] {
        let refused = home.run(command);
        assert_eq!(refused.code(), Some(3), "{command:?}: {refused}");
        assert!(refused.stderr.contains("has lost changes"), "{command:?}: {refused}");
        assert!(refused.stderr.contains("doctor --fix"), "{command:?}: {refused}");
    }
    for command in ["verify", "doctor"] {
        let named = home.run(&[command]);
        assert_eq!(named.code(), Some(1), "{command}: {named}");
        assert!(named.to_string().contains("witness"), "{command}: {named}");
        assert!(!named.to_string().contains("another program"), "{command}: {named}");
    }
}

/// Returns the pairs that a query finds.
fn rows<A: FromSql, B: FromSql>(db: &Connection, sql: &str) -> Vec<(A, B)> {
    let mut query = db.prepare(sql).unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Returns an index below a length.
fn below(dice: &mut Dice, length: usize) -> usize {
    usize::try_from(dice.below(length as u64)).unwrap()
}

fn newest(path: &Path) -> u64 {
    newest_or(path).unwrap()
}

/// Returns the number of the newest operation of a store, if it can be read.
fn newest_or(path: &Path) -> Option<u64> {
    let store = SqliteStore::open(path, Access::Read).ok()?;
    store.names().ok()?;
    store.newest().ok()?.map(|(seq, _)| seq)
}
