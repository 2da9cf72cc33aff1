//! What the user's settings leave out, before its folder is known, and of sessions that the store holds from before.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use super::{json, store};
use crate::env::TestEnv;
use crate::fixture;

/// The folder of a session of Kimi CLI that works in `/clients/acme`.
const KIMI: &str =
    ".kimi/sessions/bc369f9340a14bdc79d9f2c701845415/c0ffee00-1111-4111-8111-111111111111";

fn exclude(env: &TestEnv, folders: &str) {
    let folder = env.home().join(".config/undertext");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), format!("[exclude]\nfolders = [{folders}]\n")).unwrap();
}

fn write(env: &TestEnv, path: &str, text: &str) -> PathBuf {
    let path = env.home().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// What Claude Code writes before it says where: a title, and the whole prompt.
fn before(n: usize) -> String {
    let title = json!({ "type": "ai-title", "sessionId": "boat", "aiTitle": "The plan" });
    let prompt = json!({
        "type": "queue-operation", "operation": "enqueue", "sessionId": "boat",
        "timestamp": "2026-01-01T00:00:00.000Z", "content": "What is the secret plan?",
    });
    format!("{title}\n{}", format!("{prompt}\n").repeat(n))
}

/// Turns of Claude Code in a folder.
fn turns(folder: &str, numbers: std::ops::Range<u8>) -> String {
    let record = |n: u8| {
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        json!({
            "parentUuid": n.checked_sub(1).map(|n| format!("u{n}")), "isSidechain": false, "userType": "external",
            "cwd": folder, "sessionId": "boat", "version": "2.1.0", "type": role, "uuid": format!("u{n}"),
            "message": { "role": role, "content": format!("Part {n} of the secret plan") },
            "timestamp": format!("2026-01-01T00:00:{n:02}.000Z"),
        })
    };
    let records: Vec<String> = numbers.map(|n| record(n).to_string() + "\n").collect();
    records.concat()
}

const CLAUDE: &str = ".claude/projects/-n/boat.jsonl";

/// Imports, and returns how many sessions the store has then and what was told of those that are left out.
fn import(env: &TestEnv) -> (usize, String) {
    let told = env.run(&["import", "-v"]).success().stderr;
    let told = told.lines().filter_map(|line| line.split_once("your settings exclude it: "));
    let told = told.map(|(_, by)| by.to_owned()).collect();
    (env.run(&["sessions", "--json", "--hidden"]).success().stdout.lines().count(), told)
}

const UNKNOWN: &str = "exclude.folders excludes sessions whose folder is not known yet";

#[test]
fn settings_that_cannot_be_read_are_named_and_not_what_they_may_leave_out() {
    let env = TestEnv::new();
    write(&env, CLAUDE, &turns("/clients/acme", 0..4));
    env.run(&["import"]).success();
    write(&env, CLAUDE, &turns("/clients/acme", 0..6));
    for mistake in ["garbage [", "[window]\nblock = \"x\"\n", "[exclude]\nagents = [\"nosuch\"]\n"]
    {
        write(&env, ".config/undertext/config.toml", mistake);
        for args in [&["revert", "1", "boat", "--dry-run"][..], &["append", "-s", "boat", "More"]] {
            let refused = env.run(args);
            assert_eq!(refused.code(), Some(2), "{refused}");
            assert!(!refused.stderr.contains("exclude.agents contains claude"), "{refused}");
            assert!(!refused.stderr.contains("--off"), "{refused}");
        }
        for args in [&["log", "boat"][..], &["search", "plan"]] {
            let read = env.run(args).success();
            assert!(read.stdout.contains("plan") && !read.stdout.contains("Part 5"), "{read}");
            let what = "new records in agents' files are not shown until this is repaired";
            assert_eq!(read.stderr.matches(what).count(), 1, "{read}");
            assert!(!read.stderr.contains("hide the session"), "{read}");
        }
    }
}

/// They may lie on a disk that is not there at the moment.
#[test]
fn settings_behind_a_link_that_leads_nowhere_are_not_taken_for_none() {
    for linked in [".config", ".config/undertext", ".config/undertext/config.toml"] {
        let env = TestEnv::new();
        let link = env.home().join(linked);
        write(&env, CLAUDE, &turns("/clients/acme", 0..4));
        env.run(&["import"]).success();
        write(&env, CLAUDE, &turns("/clients/acme", 0..6));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink("/nowhere/dotfiles", &link).unwrap();
        let refused = env.run(&["import"]);
        assert_eq!(refused.code(), Some(2), "{refused}");
        let why = format!("config.toml: $HOME/{linked} is a broken link");
        assert!(refused.stderr.contains(&why), "{refused}");
        let read = env.run(&["log", "boat"]).success();
        assert!(read.stdout.contains("Part 3") && !read.stdout.contains("Part 5"), "{read}");
        assert!(read.stderr.contains(&why), "{read}");
        // A link that leads to a folder without settings leaves nothing out.
        fs::remove_file(&link).unwrap();
        env.run(&["import"]).success();
    }
}

#[test]
fn a_session_waits_until_its_folder_is_known() {
    for n in [1, 300] {
        for (folder, then) in [
            ("/clients/acme", (0, "exclude.folders contains /clients".to_owned())),
            ("/work", (1, String::new())),
        ] {
            let env = TestEnv::new();
            exclude(&env, "\"/clients\"");
            let file = write(&env, CLAUDE, &before(n));
            assert_eq!(import(&env), (0, UNKNOWN.to_owned()));
            let named = env.run(&["import", file.to_str().unwrap()]);
            assert_eq!(named.code(), Some(3), "{named}");
            write(&env, CLAUDE, &(before(n) + &turns(folder, 0..2)));
            assert_eq!(import(&env), then, "{n} {folder}");
        }
    }
    // Where no folder is left out, nothing waits.
    let env = TestEnv::new();
    write(&env, CLAUDE, &before(1));
    assert_eq!(import(&env), (1, String::new()));
}

#[test]
fn a_session_of_kimi_waits_for_the_list_of_its_folder() {
    let env = TestEnv::new();
    let list = |folder: &str| {
        let work = json!({ "path": folder, "kaos": "local", "last_session_id": null });
        write(&env, ".kimi/kimi.json", &json!({ "work_dirs": [work] }).to_string())
    };
    exclude(&env, "\"/clients\"");
    let said = "{\"role\":\"user\",\"content\":\"What is the secret plan?\"}\n";
    write(&env, &format!("{KIMI}/context.jsonl"), said);
    let waits = (0, UNKNOWN.to_owned());
    assert_eq!(import(&env), waits);
    list("/elsewhere");
    assert_eq!(import(&env), waits);
    list("/clients/acme");
    assert_eq!(import(&env), (0, "exclude.folders contains /clients".to_owned()));
    exclude(&env, "\"/client\"");
    assert_eq!(import(&env), (1, String::new()));
    // What the store knows of a session it knows without the list.
    fs::remove_file(env.home().join(".kimi/kimi.json")).unwrap();
    let grown = said.repeat(2);
    write(&env, &format!("{KIMI}/context.jsonl"), &grown);
    assert_eq!(import(&env), (1, String::new()));
    assert_eq!(env.run(&["export", "-q", "c0ff"]).success().stdout, grown);
    exclude(&env, "\"/clients\"");
    write(&env, &format!("{KIMI}/context.jsonl"), &said.repeat(3));
    assert_eq!(import(&env), (1, "exclude.folders contains /clients".to_owned()));
}

#[test]
fn a_folder_that_is_gone_behind_a_link_stays_out() {
    let env = TestEnv::new();
    let home = env.home().canonicalize().unwrap();
    fs::create_dir(home.join("real")).unwrap();
    symlink(home.join("real"), home.join("link")).unwrap();
    exclude(&env, "\"~/real\"");
    write(&env, CLAUDE, &turns(home.join("link/gone").to_str().unwrap(), 0..2));
    assert_eq!(import(&env).0, 0);
}

/// Any change of such a session, and any redaction, took in what the agent had written since, and reading showed it.
#[test]
fn what_the_store_holds_of_a_session_that_is_left_out_later_stays_as_it_is() {
    let env = TestEnv::new();
    let old = turns("/clients/acme", 0..2);
    let file = write(&env, CLAUDE, &old);
    assert_eq!(import(&env), (1, String::new()));
    exclude(&env, "\"/clients\"");
    let new = old.clone() + &turns("/clients/acme", 2..4);
    fs::write(&file, &new).unwrap();
    let held = || {
        fs::rename(&file, file.with_extension("away")).unwrap();
        let held = env.run(&["export", "-q", "boat"]).success().stdout;
        fs::rename(file.with_extension("away"), &file).unwrap();
        held
    };
    let shown = env.run(&["log", "boat"]).success();
    assert!(shown.stdout.contains("Part 1") && !shown.stdout.contains("Part 2"), "{shown}");
    assert!(shown.stderr.contains("your settings exclude the session"), "{shown}");
    for args in [["search", "-F", "Part 2"], ["search", "-F", "Part 3"]] {
        assert_eq!(env.run(&args).code(), Some(1));
    }
    let status = json(&env.run(&["status", "boat", "--json"]).success().stdout);
    assert_eq!((&status["live_state"], &status["turns"]), (&"left-out".into(), &1.into()));

    assert_eq!(env.run_with_stdin(&["redact", "--yes"], b"no such words").code(), Some(1));
    assert_eq!(held(), old);
    // What need not write the file is done.
    for args in [
        &["sessions", "--hide", "boat"][..],
        &["sessions", "--show", "boat"],
        &["checkpoint", "-s", "boat"],
        &["branch", "-s", "boat", "kept"],
    ] {
        env.run(args).success();
        assert_eq!(held(), old, "{args:?}");
    }
    for args in [
        &["append", "-s", "boat", "More"][..],
        &["revert", "-s", "boat", "0"],
        &["compact", "-s", "boat"],
        &["clear", "-s", "boat"],
    ] {
        let refused = env.run(args);
        assert_eq!(refused.code(), Some(2), "{args:?} {refused}");
        let words = "session boat was not changed: your settings exclude it (exclude.folders contains /clients)";
        assert!(refused.stderr.contains(words), "{refused}");
        assert!(refused.stderr.contains("undertext attach -s boat --off"), "{refused}");
        assert_eq!((held(), fs::read_to_string(&file).unwrap()), (old.clone(), new.clone()));
    }
    env.run(&["attach", "-s", "boat", "--off"]).success();
    env.run(&["append", "-s", "boat", "More"]).success();
    assert!(held().starts_with(&old) && !held().contains("Part 2"));
    assert_eq!(fs::read_to_string(&file).unwrap(), new);
    // Once it is not left out any more, all of it is there.
    exclude(&env, "");
    env.run(&["attach", "-s", "boat"]).success();
    assert!(env.run(&["import"]).success().stdout.contains("2 new entries"));
    assert_eq!(held(), new);
    env.run(&["verify"]).success();
}

#[test]
fn a_secret_goes_from_a_session_that_is_left_out() {
    let env = TestEnv::new();
    let file = write(&env, CLAUDE, &turns("/clients/acme", 0..2));
    import(&env);
    exclude(&env, "\"/clients\"");
    let new = turns("/clients/acme", 0..3);
    fs::write(&file, &new).unwrap();
    env.run_with_stdin(&["redact", "--yes"], b"Part 1 of the").success();
    let covered = fs::read_to_string(&file).unwrap();
    assert!(!covered.contains("Part 1 of the") && covered.len() == new.len(), "{covered}");
    assert!(covered.ends_with(&turns("/clients/acme", 2..3)));
    exclude(&env, "");
    assert!(env.run(&["import"]).success().stdout.contains("1 new entry"));
    env.run(&["verify"]).success();
}

#[test]
fn a_file_of_a_session_that_is_left_out_does_not_come_back() {
    let env = TestEnv::new();
    let file = write(&env, CLAUDE, &turns("/clients/acme", 0..2));
    import(&env);
    exclude(&env, "\"/clients\"");
    fs::remove_file(&file).unwrap();
    let refused = env.run(&["restore", "boat"]);
    assert_eq!(refused.code(), Some(2), "{refused}");
    assert!(refused.stderr.contains("exclude.folders contains /clients"), "{refused}");
    assert!(!file.exists());
}

#[test]
fn a_mended_store_takes_back_nothing_that_is_left_out() {
    let env = TestEnv::new();
    let old = turns("/clients/acme", 0..2);
    let file = write(&env, CLAUDE, &old);
    import(&env);
    fixture::settle(&store(&env));
    let (database, copy) = (store(&env).join("store.db"), env.home().join("copy"));
    fs::copy(&database, &copy).unwrap();
    env.run(&["checkpoint", "-s", "boat"]).success();
    fixture::settle(&store(&env));
    fs::copy(&copy, &database).unwrap();
    fs::write(&file, old.clone() + &turns("/clients/acme", 2..4)).unwrap();
    exclude(&env, "\"/clients\"");
    let fixed = env.run(&["doctor", "--fix", "--json"]);
    assert!(!fixed.stdout.contains("\"entries\":2,\"operation\""), "{fixed}");
    fs::remove_file(&file).unwrap();
    assert_eq!(env.run(&["export", "-q", "boat"]).success().stdout, old, "{fixed}");
}
