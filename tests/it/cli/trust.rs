//! Stores that lie in folders: one that somebody else put there has no power, whatever it holds.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use rusqlite::Connection;
use undertext::store::{Access, SqliteStore};
use undertext::verbs::{Archive, Machine};

use super::{conversation, json};
use crate::env::TestEnv;

/// Makes a store with one session, as somebody else could, and returns its folder.
fn foreign(env: &TestEnv, name: &str) -> PathBuf {
    let made = env.home().join(name);
    let store = made.to_str().unwrap();
    env.run(&["--store", store, "new", "-q"]).success();
    env.run(&["--store", store, "append", "-q", "Theirs"]).success();
    made
}

/// Puts a copy of a store into the project, as a clone of a repository brings it.
fn plant(env: &TestEnv, store: &Path) -> PathBuf {
    let found = env.project().join(".undertext");
    fs::create_dir(&found).unwrap();
    fs::set_permissions(&found, Permissions::from_mode(0o700)).unwrap();
    copy(store, &found);
    found
}

fn copy(from: &Path, to: &Path) {
    for part in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let copied = to.join(part.file_name());
        if part.path().is_dir() {
            fs::create_dir_all(&copied).unwrap();
            fs::set_permissions(&copied, Permissions::from_mode(0o700)).unwrap();
            copy(&part.path(), &copied);
        } else {
            fs::copy(part.path(), copied).unwrap();
        }
    }
}

#[test]
fn a_store_that_lies_in_a_folder_is_named_and_not_used() {
    let env = TestEnv::new();
    conversation(&env);
    plant(&env, &foreign(&env, "theirs"));
    let listed = env.run(&["log", "-n", "1"]).success();
    assert_snapshot!(listed.stderr, @"
    warning: ~/project/.undertext is not used: you have not trusted it on this machine; if you know where it comes from: undertext trust $HOME/project/.undertext
    ");
    assert!(listed.stdout.contains("Done."), "the user's own store is read: {listed}");
    env.run(&["append", "-q", "Mine"]).success();
    assert!(env.run(&["log", "-n", "1"]).success().stdout.contains("Mine"));
}

#[test]
fn import_takes_sessions_into_the_users_own_store_beside_an_empty_folder() {
    let env = TestEnv::new();
    let found = env.project().join(".undertext");
    fs::create_dir(&found).unwrap();
    let folder = env.home().join(".claude/projects/-garden");
    fs::create_dir_all(&folder).unwrap();
    fs::copy("examples/claude-garden.jsonl", folder.join("garden.jsonl")).unwrap();
    let imported = env.run(&["import"]).success();
    assert!(imported.stderr.contains("~/project/.undertext is not used"), "{imported}");
    assert_eq!(fs::read_dir(&found).unwrap().count(), 0);
    assert!(super::store(&env).join("store.db").exists());
}

#[test]
fn a_folder_gets_a_store_that_is_trusted_private_and_ignored() {
    let env = TestEnv::new();
    let made = env.run(&["new", "--here"]).success().masked();
    assert!(made.stderr.contains("Store: ~/project/.undertext"), "{made}");
    let found = env.project().join(".undertext");
    assert_eq!(fs::metadata(&found).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::read_to_string(found.join(".gitignore")).unwrap(), "*\n");
    // Below it and again it is the same store, which is named because it is not the user's own.
    let below = env.project().join("src/deep");
    fs::create_dir_all(&below).unwrap();
    let output = env.command().current_dir(&below).arg("sessions").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "Store: ~/project/.undertext\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    env.run(&["new", "--here", "-q"]).success();
    assert_eq!(env.run(&["sessions"]).success().stdout.lines().count(), 3);
    assert!(!super::store(&env).exists());
    env.run(&["doctor"]).success();
}

#[test]
fn another_store_in_the_place_of_a_trusted_one_is_strange() {
    let env = TestEnv::new();
    let theirs = foreign(&env, "theirs");
    let strange = |how: &str| {
        let read = env.run(&["sessions"]).success();
        assert_eq!(read.stdout, "", "{how}");
        assert!(
            read.stderr.contains("it is not the store that you trusted there"),
            "{how}: {read}"
        );
    };
    let here = || env.run(&["new", "--here", "-q"]).success();
    let found = env.project().join(".undertext");

    here();
    fs::rename(&found, env.home().join("aside")).unwrap();
    plant(&env, &theirs);
    strange("another folder");
    fs::remove_dir_all(&found).unwrap();

    here();
    let database = found.join("store.db");
    fs::copy(theirs.join("store.db"), found.join("fresh")).unwrap();
    fs::rename(found.join("fresh"), &database).unwrap();
    strange("another database in the folder");
    fs::remove_dir_all(&found).unwrap();

    here();
    for part in ["store.db", "store.db-wal"] {
        fs::write(found.join(part), fs::read(theirs.join(part)).unwrap_or_default()).unwrap();
    }
    let _ = fs::remove_file(found.join("store.db-shm"));
    strange("other bytes in the same files");
    fs::remove_dir_all(&found).unwrap();

    here();
    let settled = Connection::open(theirs.join("store.db")).unwrap();
    settled.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(settled);
    let id: Vec<u8> = {
        let db = Connection::open(&database).unwrap();
        db.query_row("SELECT id FROM store", [], |row| row.get(0)).unwrap()
    };
    fs::write(&database, fs::read(theirs.join("store.db")).unwrap()).unwrap();
    for part in ["store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(found.join(part));
    }
    let db = Connection::open(&database).unwrap();
    let unguarded =
        "DROP TRIGGER store_is_not_updated; DROP TRIGGER journal_is_not_lost; DELETE FROM journal";
    db.execute_batch(unguarded).unwrap();
    assert_eq!(db.execute("UPDATE store SET id = ? WHERE key = 1", [id]).unwrap(), 1);
    drop(db);
    strange("other changes under the same id");
}

/// A checkout writes over what git does not track: the folder and the database stay the ones that they were.
#[test]
fn what_a_checkout_brings_into_a_trusted_store_makes_it_strange() {
    for part in ["store.db-wal", "store.witness", "search.db", "transcripts/x.jsonl"] {
        let env = TestEnv::new();
        env.run(&["new", "--here", "-q"]).success();
        let brought = env.project().join(".undertext").join(part);
        fs::File::options().append(true).create(true).open(&brought).unwrap();
        fs::set_permissions(&brought, Permissions::from_mode(0o644)).unwrap();
        let read = env.run(&["sessions"]).success();
        assert_eq!(read.stdout, "", "{part}");
        let told = format!("{part} is readable by others, so undertext did not create it");
        assert!(read.stderr.contains(&told), "{part}: {read}");
        assert!(read.stderr.contains("undertext trust"), "{part}: {read}");
        // A person writes settings, and to trust the store says that the rest is theirs, too.
        fs::write(env.project().join(".undertext/config.toml"), "").unwrap();
        env.run(&["trust"]).success();
        assert_ne!(env.run(&["sessions"]).success().stdout, "", "{part}");
        assert_eq!(
            fs::metadata(&brought).map_or(0o600, |meta| meta.permissions().mode() & 0o777),
            0o600
        );
    }
}

#[test]
fn parts_that_are_links_or_odd_make_a_trusted_store_strange() {
    let env = TestEnv::new();
    env.run(&["new", "--here", "-q"]).success();
    let found = env.project().join(".undertext");
    let secret = env.home().join("secret.toml");
    fs::write(&secret, "[window]\nblock = 1\n").unwrap();
    let says = |what: &str| {
        let read = env.run(&["sessions"]).success();
        assert!(read.stdout.is_empty() && read.stderr.contains(what), "{what}: {read}");
    };
    symlink(&secret, found.join("config.toml")).unwrap();
    says("config.toml is a link");
    fs::remove_file(found.join("config.toml")).unwrap();
    let transcript = found.join("transcripts/x.jsonl");
    symlink(env.home().join(".bashrc"), &transcript).unwrap();
    says("transcripts/x.jsonl is a link");
    fs::remove_file(&transcript).unwrap();
    fs::set_permissions(&found, Permissions::from_mode(0o755)).unwrap();
    says("other users can access its files");
    // To trust it closes it.
    env.run(&["trust"]).success();
    assert_eq!(env.run(&["sessions"]).success().stdout.lines().count(), 2);
    fs::rename(&found, env.home().join("moved")).unwrap();
    symlink(env.home().join("moved"), &found).unwrap();
    says("it is a link");
}

#[test]
fn trust_is_given_listed_and_taken_away() {
    let env = TestEnv::new();
    let found = plant(&env, &foreign(&env, "theirs"));
    assert_snapshot!(env.run(&["trust"]).success(), @"
    ~/project/.undertext is trusted on this machine
    ------- stderr -------
    hint: to stop trusting it: undertext trust --off $HOME/project/.undertext
    ");
    assert!(env.run(&["log", "-n", "1", "--at", "HEAD", "theirs"]).stderr.contains("no session"));
    assert_eq!(env.run(&["sessions"]).success().stdout.lines().count(), 2);
    assert_snapshot!(env.run(&["trust", "--list"]).success(), @"~/project/.undertext");
    let listed = json(&env.run(&["trust", "--list", "--json"]).success().stdout);
    assert_eq!((&listed["used"], &listed["problem"]), (&true.into(), &serde_json::Value::Null));
    fs::rename(&found, env.home().join("gone")).unwrap();
    assert!(
        env.run(&["trust", "--list"]).success().stdout.contains("not used: it cannot be inspected")
    );
    assert_snapshot!(env.run(&["trust", "--off", "."]).success(), @"~/project/.undertext is no longer trusted");
    assert_snapshot!(env.run(&["trust", "--off", "."]), @"
    ~/project/.undertext was not trusted anyway
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["trust", "--list"]).success(), @"
    ------- stderr -------
    You have not trusted any stores
    ");
}

#[test]
fn what_is_no_store_is_not_trusted() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["trust"]), @"
    ------- stderr -------
    error: there is no .undertext at or above this folder
    hint: make one: undertext new --here
    [exit status: 2]
    ");
    let found = env.project().join(".undertext");
    fs::create_dir(&found).unwrap();
    assert_snapshot!(env.run(&["trust", "."]), @"
    ------- stderr -------
    error: $HOME/project/.undertext cannot be trusted: it contains no store
    hint: list the stores that you trust: undertext trust --list
    hint: make a store in this folder: undertext new --here
    [exit status: 2]
    ");
    env.run(&["new", "--here", "-q"]).success();
    fs::remove_dir_all(&found).unwrap();
    fs::create_dir(&found).unwrap();
    fs::write(found.join("config.toml"), "").unwrap();
    assert_snapshot!(env.run(&["new", "--here"]), @"
    ------- stderr -------
    error: $HOME/project/.undertext already exists, and it contains no store
    hint: remove it first, or make the store in another folder
    [exit status: 2]
    ");
}

#[test]
fn a_stores_settings_run_send_and_read_nothing() {
    let env = TestEnv::new();
    env.run(&["new", "--here", "-q"]).success();
    for n in 0..8 {
        env.run(&["append", "-q", &format!("A request, the {n}th")]).success();
        env.run(&["append", "-q", "--role", "assistant", "An answer"]).success();
    }
    let mark = env.home().join("ran");
    let ran = format!("touch '{}'", mark.display());
    let text = format!(
        "[compaction]\nbefore = \"{ran}\"\nafter = \"{ran}\"\noutside = true\nkeep = \"2\"\n\
         summarizer = \"p\"\n[turn]\nprovider = \"p\"\ntools = \"{ran}\"\n\
         [provider.p]\nkind = \"command\"\ncommand = \"{ran}\"\nurl = \"http://127.0.0.1:1\"\nkey_env = \"HOME\"\n"
    );
    let store = env.project().join(".undertext");
    fs::write(store.join("config.toml"), text).unwrap();
    let compacted = env.run(&["compact"]).success();
    let told = "config.toml may not set compaction.before, compaction.after, compaction.outside, \
                compaction.summarizer, turn.provider, turn.tools, provider.p.kind, provider.p.command, provider.p.url, provider.p.key_env: ";
    assert_eq!(compacted.stderr.matches(told).count(), 1, "{compacted}");
    let asked = env.run(&["turn", "Go on"]);
    assert!(asked.to_string().contains("[exit status: 2]"), "{asked}");
    // Nor does a store that is named by hand bring settings with power.
    let named = ["--store", store.to_str().unwrap(), "compact", "--summarizer", "p"];
    assert!(env.run(&named).stderr.contains("may not set"));
    assert!(!mark.exists(), "a command of the store's settings was run");
}

#[test]
fn settings_are_shown_with_their_source() {
    let env = TestEnv::new();
    env.run(&["new", "--here", "-q"]).success();
    let own = env.home().join(".config/undertext");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("config.toml"), "[window]\nblock = 12000\n[provider.mine]\nmodel = 'm'\n")
        .unwrap();
    let store = env.project().join(".undertext/config.toml");
    fs::write(store, "[compaction]\nbefore = 'id'\npercent = 70\n").unwrap();
    let shown = env.run(&["context", "--settings"]).success().stdout;
    for line in [
        "block = 12000  # [$HOME/.config/undertext/config.toml, line 2] a smaller",
        "percent = 70  # [$HOME/project/.undertext/config.toml, line 3] it is due",
        "warn = 32000  # [default] a smaller",
        "[provider.mine]\nmodel = \"m\"  # [$HOME/.config/undertext/config.toml, line 4]",
        "# Ignored: compaction.before [$HOME/project/.undertext/config.toml, line 2]",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    let lines = env.run(&["context", "--settings", "--json"]).success().stdout;
    let refused: Vec<_> = lines.lines().map(json).filter(|line| line["taken"] == false).collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(
        (&refused[0]["key"], &refused[0]["source"]),
        (&"compaction.before".into(), &"store".into())
    );
}

#[test]
fn what_cannot_be_trusted_is_not_hinted_to_be() {
    let env = TestEnv::new();
    conversation(&env);
    let found = env.project().join(".undertext");
    let warned = || env.run(&["log", "-n", "1"]).success().stderr;
    symlink(foreign(&env, "theirs"), &found).unwrap();
    assert_snapshot!(warned(), @"warning: ~/project/.undertext is not used: it is a link, not a store's folder");
    assert_snapshot!(env.run(&["new", "--here"]), @"
    ------- stderr -------
    error: $HOME/project/.undertext already exists, and it is a link, not a store's folder
    hint: remove it first, or make the store in another folder
    [exit status: 2]
    ");
    fs::remove_file(&found).unwrap();
    fs::write(&found, "notes").unwrap();
    assert_snapshot!(warned(), @"warning: ~/project/.undertext is not used: it is not a store's folder");
    assert_eq!(env.run(&["trust"]).code(), Some(2));
    fs::remove_file(&found).unwrap();
    plant(&env, &env.home().join("theirs"));
    symlink("/etc/passwd", found.join("config.toml")).unwrap();
    assert_snapshot!(warned(), @"warning: ~/project/.undertext is not used: config.toml is a link, and a store has no links");
}

/// A store in a folder is mended by what is typed there, and stays the one that is used.
#[test]
fn a_store_that_was_mended_is_still_trusted() {
    let dropped_trigger = |database: &Path| {
        let db = Connection::open(database).unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        db.execute_batch("DROP TRIGGER entry_is_not_updated").unwrap();
    };
    let torn_first_page = |database: &Path| {
        let db = Connection::open(database).unwrap();
        db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        drop(db);
        let mut bytes = fs::read(database).unwrap();
        bytes[100..112].fill(0xff);
        fs::write(database, bytes).unwrap();
    };
    let empty_header = |database: &Path| {
        dropped_trigger(database);
        let mut bytes = fs::read(database).unwrap();
        bytes[..100].fill(0);
        fs::write(database, bytes).unwrap();
    };
    let cut_short = |database: &Path| {
        dropped_trigger(database);
        let mending = database.with_file_name("mending");
        fs::create_dir(&mending).unwrap();
        fs::set_permissions(&mending, Permissions::from_mode(0o700)).unwrap();
        fs::write(mending.join("store.db"), "not yet one").unwrap();
    };
    let damages = [
        ("a trigger", &dropped_trigger as &dyn Fn(&Path)),
        ("the first page", &torn_first_page),
        ("the header", &empty_header),
        ("a mending that was cut short", &cut_short),
    ];
    for (what, damage) in damages {
        let env = TestEnv::new();
        conversation(&env);
        env.run(&["new", "--here", "-q"]).success();
        env.run(&["append", "-q", "In the folder"]).success();
        let found = env.project().join(".undertext");
        damage(&found.join("store.db"));
        for _ in 0..2 {
            let fixed = env.run(&["doctor", "--fix"]);
            assert_eq!(fixed.code(), Some(0), "{what}: {fixed}");
            assert!(fixed.stderr.contains("Store: ~/project/.undertext"), "{what}: {fixed}");
        }
        assert!(found.join("damaged-1/store.db").exists(), "{what}");
        assert!(!found.join("mending").exists(), "{what}");
        let listed = env.run(&["sessions"]).success();
        assert!(listed.stdout.contains("In the folder"), "{what}: {listed}");
        assert_eq!(listed.stderr, "Store: ~/project/.undertext\n", "{what}");
        env.run(&["append", "-q", "Still there"]).success();
        assert!(env.run(&["log", "-n", "1"]).success().stdout.contains("Still there"), "{what}");
        env.run(&["verify"]).success();
        // What was not trusted is not trusted by its mending.
        env.run(&["trust", "--off"]).success();
        dropped_trigger(&found.join("store.db"));
        env.run(&["doctor", "--fix", "--store", found.to_str().unwrap()]).success();
        let read = env.run(&["sessions"]).success();
        assert!(read.stderr.contains("you have not trusted it"), "{what}: {read}");
        env.run(&["trust"]).success();
        assert!(env.run(&["sessions"]).success().stdout.contains("In the folder"), "{what}");
    }
}

#[test]
fn a_new_store_of_a_folder_is_made_again_where_making_it_was_cut_short() {
    let stages: [fn(&Path); 5] = [
        |_| {},
        |folder| fs::write(folder.join(".gitignore"), "").unwrap(),
        |folder| fs::write(folder.join("store.db"), "").unwrap(),
        |folder| drop(SqliteStore::open(&folder.join("store.db"), Access::Write).unwrap()),
        |folder| drop(Archive::open(folder, Access::Write, Box::new(Machine)).unwrap()),
    ];
    let begun = |stage: &dyn Fn(&Path)| {
        let env = TestEnv::new();
        let folder = env.project().join(".undertext");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        stage(&folder);
        for part in fs::read_dir(&folder).unwrap().map(|part| part.unwrap().path()) {
            let mode = if part.is_dir() { 0o700 } else { 0o600 };
            fs::set_permissions(part, Permissions::from_mode(mode)).unwrap();
        }
        env
    };
    for (n, stage) in stages.into_iter().enumerate() {
        let env = begun(&stage);
        let made = env.run(&["new", "--here"]);
        assert_eq!(made.code(), Some(0), "{n}: {made}");
        assert_eq!(env.run(&["sessions", "--json"]).success().stdout.lines().count(), 1, "{n}");
    }
    // A store in which something was done, or that brings settings, is somebody's.
    let strange: [fn(&Path); 2] = [
        |folder| fs::write(folder.join("config.toml"), "").unwrap(),
        |folder| drop(crate::fixture::session(&mut crate::fixture::open(folder, 1))),
    ];
    for (n, stage) in strange.into_iter().enumerate() {
        let refused = begun(&stage).run(&["new", "--here"]);
        assert_eq!(refused.code(), Some(2), "{n}: {refused}");
    }
}
