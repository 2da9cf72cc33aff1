//! The index of words: whatever state it is in, and whoever writes meanwhile, a search finds the same.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use undertext::store::{Access, FactStore as _, Reach, SqliteStore, WordIndex};

use super::{conversation, json};
use crate::env::TestEnv;
use crate::needs;

/// The id of the session that is an example of Claude Code's.
const GARDEN: &str = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";

/// Returns the text of that session.
fn garden() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::read_to_string(path).unwrap()
}

/// Takes in a session from where its agent keeps it, and returns its file.
fn attached(env: &TestEnv) -> PathBuf {
    let folder = env.home().join(".claude/projects/-home-ann-garden");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{GARDEN}.jsonl"));
    fs::write(&path, garden()).unwrap();
    env.run(&["import", "-q"]).success();
    path
}

/// Returns how many lines a search finds.
fn found(env: &TestEnv, words: &str) -> usize {
    let told = env.run(&["search", "-F", "--json", words]).stdout;
    told.lines().map(json).filter(|line| line["type"] == "hit").count()
}

/// Brings the index up to date, and returns how many entries that added.
fn index(env: &TestEnv) -> u64 {
    let told = json(&env.run(&["store", "index", "--json"]).success().stdout);
    assert_eq!(told["whole"], true, "{told}");
    told["entries"].as_u64().unwrap()
}

/// Opens the index as a database.
fn database(env: &TestEnv) -> rusqlite::Connection {
    rusqlite::Connection::open(super::store(env).join("search.db")).unwrap()
}

#[test]
fn what_comes_after_the_index_was_whole_is_found() {
    let env = TestEnv::new();
    let live = attached(&env);
    conversation(&env);
    assert_ne!(index(&env), 0);
    assert_eq!(index(&env), 0);
    assert_eq!((found(&env, "marigold"), found(&env, "Which beds")), (0, 1));
    // The agent goes on, which no operation tells of yet.
    let last = garden().lines().rfind(|line| line.contains("Which beds")).unwrap().to_owned();
    let last =
        last.replace("Which beds", "Which marigold").replacen("\"uuid\":\"c", "\"uuid\":\"d", 1);
    let mut file = OpenOptions::new().append(true).open(&live).unwrap();
    writeln!(file, "{last}").unwrap();
    assert_eq!(found(&env, "marigold"), 1);
    env.run(&["import", "-q"]).success();
    assert_eq!(found(&env, "marigold"), 1);
    // The search before has brought the index along.
    assert_eq!(index(&env), 0);
    assert_eq!(found(&env, "marigold"), 1);
    // A change without an entry is not forgotten: the session is attached no longer, and its file says nothing.
    env.run(&["attach", "--off", "-q", GARDEN]).success();
    env.run(&["append", "-q", "a note of a peony"]).success();
    assert_eq!(found(&env, "peony"), 1);
    assert_eq!((found(&env, "marigold"), found(&env, "symbol")), (1, 1));
}

#[test]
fn a_search_leaves_the_same_index_as_the_command_for_it() {
    let env = TestEnv::new();
    attached(&env);
    conversation(&env);
    let reaches = |env: &TestEnv| {
        let root = super::store(env);
        let store = SqliteStore::open(&root.join("store.db"), Access::Read).unwrap();
        let index = WordIndex::open(&root, store.id().unwrap()).unwrap().unwrap();
        (index.settled().unwrap(), index.reaches().unwrap())
    };
    index(&env);
    let by_command = reaches(&env);
    fs::remove_file(super::store(&env).join("search.db")).unwrap();
    // Each search adds for a while only, in which a busy machine may not come to the end.
    let comes_to_it = || {
        assert_eq!(found(&env, "Which beds"), 1);
        reaches(&env) == by_command
    };
    assert!((0..100).any(|_| comes_to_it()), "{:?} is not {by_command:?}", reaches(&env));
}

#[test]
fn what_settings_kept_out_is_added_when_they_let_it_in() {
    let env = TestEnv::new();
    conversation(&env);
    let session = conversation(&env);
    let settings = env.home().join(".config/undertext/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, format!("[exclude]\nsessions = [{session:?}]\n")).unwrap();
    assert_eq!(index(&env), 4);
    assert_eq!((index(&env), found(&env, "symbol")), (0, 2));
    fs::remove_file(&settings).unwrap();
    assert_eq!(index(&env), 4);
    assert_eq!((index(&env), found(&env, "symbol")), (0, 2));
}

#[test]
fn a_bit_that_flips_in_the_index_hides_nothing() {
    let env = TestEnv::new();
    conversation(&env);
    let words = ["symbol", "ymbo", "build"];
    let all = || words.map(|word| found(&env, word));
    let expected = all();
    assert!(expected.iter().all(|found| *found > 0));
    index(&env);
    let path = super::store(&env).join("search.db");
    // Where the word stands, and around it; and here and there in all of the file.
    let bytes = fs::read(&path).unwrap();
    let stands = bytes.windows(3).enumerate().filter(|(_, bytes)| *bytes == b"bol");
    let around = stands.flat_map(|(at, _)| at - 2..at + 8);
    let all_over = (0..bytes.len()).step_by(4_999);
    for at in around.chain(all_over).collect::<Vec<_>>() {
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 0x04;
        fs::write(&path, bytes).unwrap();
        assert_eq!(all(), expected, "a bit of byte {at}");
        assert_eq!(index(&env), 0, "the search made it again");
    }
}

#[test]
fn what_is_left_in_the_log_of_the_index_stays_in_it() {
    let env = TestEnv::new();
    conversation(&env);
    index(&env);
    let path = super::store(&env).join("search.db");
    let before = fs::read(&path).unwrap();
    let reader = database(&env);
    reader
        .set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM block;").unwrap();
    env.run(&["append", "a word that is new"]).success();
    assert_eq!(index(&env), 1);
    // The reader needs the file as it was, as if the writer had been killed before it wrote to it.
    assert_eq!(fs::read(&path).unwrap(), before);
    drop(reader);
    assert_eq!((found(&env, "word that"), index(&env)), (1, 0));
    assert_eq!(fs::read(&path).unwrap(), before);
    env.run(&["append", "another word"]).success();
    assert_eq!((index(&env), index(&env)), (1, 0));
    assert_ne!(fs::read(&path).unwrap(), before);
    let log = super::store(&env).join("search.db-wal");
    assert!(!log.exists(), "the one that closes it last leaves no empty log");
}

#[test]
fn a_search_while_another_program_imports_finds_all_that_was_there() {
    let env = TestEnv::new();
    conversation(&env);
    let folder = env.home().join("forks");
    fs::create_dir(&folder).unwrap();
    for n in 0..40 {
        let fork = format!("{n:08}{}", &GARDEN[8..]);
        let text = garden().replace(GARDEN, &fork).replace("cc0000", &format!("{n:06}"));
        fs::write(folder.join(format!("{fork}.jsonl")), text).unwrap();
    }
    let mut import = env.command();
    let import = import.args(["import", "-q"]).arg(&folder);
    let mut import = import.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (mut before, mut is_over) = (0, false);
    while !is_over {
        is_over = import.try_wait().unwrap().is_some();
        let told = env.run(&["search", "--json", "beds"]);
        assert!(told.code() == Some(0) || before == 0 && told.code() == Some(1), "{told}");
        let now = told.stdout.lines().filter(|line| line.contains(r#""type":"hit""#)).count();
        assert!(now >= before, "{now} after {before}");
        before = now;
        assert_eq!(found(&env, "symbol"), 1);
    }
    assert!(import.wait().unwrap().success());
    let expected = found(&env, "beds");
    index(&env);
    assert_eq!(found(&env, "beds"), expected);
    assert!(expected >= before && expected > 0);
}

/// Searches, and has the index made, on a disk that becomes full.
fn fill_the_disk(root: &Path) {
    let env = TestEnv::new();
    conversation(&env);
    let copy = root.join("store");
    let copy = copy.to_str().unwrap();
    env.run(&["store", "backup", "all.bundle"]).success();
    env.run(&["import", "all.bundle", "--store", copy]).success();
    // The newest of it is in the WAL alone, of which no index is left on the disk.
    env.run(&["append", "--store", copy, "The last word."]).success();
    fs::remove_file(root.join("store/store.db-shm")).unwrap();
    let ballast = root.join("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let search = |words: &str| env.run(&["search", "-F", "--json", "--store", copy, words]);
    for words in ["symbol", "ymbo", "mend", "last word"] {
        assert_eq!(search(words).success().stdout.matches(r#""type":"hit""#).count(), 1);
    }
    assert_eq!(env.run(&["store", "index", "--store", copy]).code(), Some(3));
    assert_eq!(search("symbol").success().stdout.matches(r#""type":"hit""#).count(), 1);
    drop(file);
    fs::remove_file(ballast).unwrap();
    env.run(&["store", "index", "--store", copy]).success();
    assert_eq!(search("symbol").success().stdout.matches(r#""type":"hit""#).count(), 1);
    needs::tell_parent("did it");
}

#[test]
fn a_full_disk_hinders_no_search() {
    if let Some(root) = needs::child() {
        return fill_the_disk(&root);
    }
    let Some(namespaces) = needs::namespaces() else { return };
    let script = "mount -t tmpfs -o size=4m t /mnt
        UNDERTEXT_TEST_CHILD=/mnt $CHILD_BINARY --exact --nocapture \
            cli::indexed::a_full_disk_hinders_no_search";
    assert!(namespaces.run(script, Path::new("/")).contains("did it"));
}

#[test]
fn an_index_that_was_begun_to_be_asked_answers_as_it_was_then() {
    let env = TestEnv::new();
    conversation(&env);
    index(&env);
    let root = super::store(&env);
    let store = SqliteStore::open(&root.join("store.db"), Access::Read).unwrap();
    let open = || WordIndex::open(&root, store.id().unwrap()).unwrap().unwrap();
    let (asked, mut added) = (open(), open());
    asked.hold().unwrap();
    let reaches = added.reaches().unwrap();
    let (session, reach) = reaches.iter().next().unwrap();
    let having = |index: &WordIndex| {
        let mut having = Vec::new();
        let words = "marigold"..="marigold";
        let chosen =
            &mut |words: &str| if words.contains("\nmarigold\n") { vec![0] } else { Vec::new() };
        index
            .find(&words, chosen, &mut |document, weight| having.push((document, weight)))
            .unwrap();
        having
    };
    assert!(added.begin().unwrap());
    let document = added.documents().unwrap();
    let (next, words) = (reach.next, vec![("marigold".to_owned(), 5)]);
    added.add(*session, &(next..next.next()), &[(next, words)]).unwrap();
    added.reach(*session, &Reach { next: reach.next.next(), ..reach.clone() }).unwrap();
    added.commit().unwrap();
    assert_eq!(having(&added), [(document, 5)]);
    let piece = added.piece(document).unwrap();
    assert_eq!((piece.session, piece.entries.start), (*session, next));
    // Neither the entry nor that it was reached.
    assert_eq!(having(&asked), []);
    assert_eq!(asked.reaches().unwrap(), reaches);
}

#[test]
fn each_search_tells_of_what_is_damaged() {
    let env = TestEnv::new();
    attached(&env);
    env.run(&["store", "pack"]).success();
    let path = super::store(&env).join("store.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    let sql = "UPDATE segment SET sum = zeroblob(8)";
    assert_ne!(db.execute(sql, []).unwrap(), 0);
    fs::remove_file(env.home().join(format!(".claude/projects/-home-ann-garden/{GARDEN}.jsonl")))
        .unwrap();
    let damaged =
        || json(env.run(&["search", "-F", "--json", "beds"]).stdout.lines().last().unwrap());
    let first = damaged();
    assert_ne!(first["damaged"], 0, "{first}");
    for _indexed in 0..2 {
        let _damaged = env.run(&["store", "index"]);
        assert_eq!(damaged()["damaged"], first["damaged"]);
    }
}

#[test]
fn a_session_that_its_file_alone_tells_to_be_active_is_not_too_old() {
    let env = TestEnv::new();
    let live = attached(&env);
    let last = garden().lines().rfind(|line| line.contains("Which beds")).unwrap().to_owned();
    let mut last = json(&last.replace("Which beds", "Which marigold"));
    last["uuid"] = "d1000000-0000-4000-8000-000000000000".into();
    last["timestamp"] = "2026-11-20T10:00:00.000Z".into();
    let mut file = OpenOptions::new().append(true).open(&live).unwrap();
    let before = ["sessions", "--json", "--since", "2026-11-19"];
    assert_eq!(env.run(&before).stdout.matches(GARDEN).count(), 0);
    writeln!(file, "{last}").unwrap();
    for _indexed in 0..2 {
        let told = env.run(&["search", "--json", "--since", "2026-11-19", "marigold"]).success();
        assert_eq!(told.stdout.matches(r#""type":"hit""#).count(), 1);
        assert_eq!(env.run(&before).success().stdout.matches(GARDEN).count(), 1);
        let other = ["sessions", "--json", "--since", "2026-11-21"];
        assert_eq!(env.run(&other).stdout.matches(GARDEN).count(), 0);
        index(&env);
    }
}
