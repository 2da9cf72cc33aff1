//! Places and sessions: every form of either is accepted by every command that takes one, and each change names its
//! session first.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use super::{back, conversation, json};
use crate::env::TestEnv;

/// Returns the entry at which a session stands.
fn head(env: &TestEnv, session: &[&str]) -> String {
    let status = env.run(&[&["status", "--json"], session].concat()).success().stdout;
    json(&status)["head"].as_str().unwrap_or("start").to_owned()
}

/// Returns the id of the last entry that a place leads to.
fn entry(env: &TestEnv, place: &str, session: &[&str]) -> String {
    let log = env.run(&[&["log", "--json", "--at", place], session].concat()).success().stdout;
    json(log.lines().last().unwrap())["entry"].as_str().unwrap().to_owned()
}

#[test]
fn a_revert_goes_to_any_place() {
    let env = TestEnv::new();
    conversation(&env);
    let first = back(&env, 3);
    let second = back(&env, 2);
    let uuid = env.run(&["show", &second, "--json"]).success().stdout;
    let uuid = json(&uuid)["uuid"].as_str().unwrap().to_owned();
    env.run(&["branch", "start", &first]).success();
    for place in ["1", "@1", &second, &second[..12], &uuid, "HEAD~1", "start"] {
        let expected = if place == "start" { &first } else { &second };
        let reverted = env.run(&["revert", place, "--json"]).success().stdout;
        let reverted = json(&reverted);
        assert_eq!(head(&env, &[]), *expected, "{place}");
        assert_eq!(reverted["entry"], **expected, "{place}");
        let number = ["1", "@1"].contains(&place).then_some(1);
        assert_eq!(reverted["checkpoint"], serde_json::json!(number), "{place}");
        // The old end is a branch, and what was current still is.
        let left = reverted["left"].as_str().unwrap();
        assert_ne!(entry(&env, left, &[]), *expected);
        assert_eq!(reverted["branch"], "main");
        env.run(&["undo"]).success();
    }
    env.run(&["revert", "HEAD~1"]).success();
    env.run(&["revert", "main.1"]).success();
    env.run(&["verify"]).success();
}

#[test]
fn what_a_revert_was_to_is_recorded() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["branch", "end"]).success();
    assert_snapshot!(env.run(&["revert", "HEAD~1"]).masked(), @"
    entry-id is now at HEAD~1 (entry-id)
    @1 (1 turn) is kept on branch main.1. Nothing is deleted.
    Context about 39 → 23 tokens (<1%)
    Undo  undertext undo
    ");
    assert_snapshot!(env.run(&["revert", "end", "-m", "Go on."]).masked(), @"
    entry-id is now at end, with the note after it
    Left the model a note (entry entry-id)
    Context about 23 → 145 tokens (<1%)
    Undo  undertext undo
    ");
    assert_snapshot!(env.run(&["revert", "@0"]).masked(), @r#"
    entry-id is now just before @0 "Why does the build fail?"
    @0, @1 (2 turns) are kept on branch main.2. Nothing is deleted.
    Context about 145 → 0 tokens (0%)
    Your prompt @0, to send again or change:
      Why does the build fail?
    Undo  undertext undo
    "#);
    assert_snapshot!(env.run(&["operations", "-n", "3"]).masked(), @"
    9  2001-02-03 04:05  revert  to checkpoint 0; the old end is main.2
    8  2001-02-03 04:05  revert  to branch end with a note
    7  2001-02-03 04:05  revert  to entry entry-id; the old end is main.1
    ");
}

#[test]
fn an_empty_note_is_refused() {
    let env = TestEnv::new();
    conversation(&env);
    let before = env.run(&["operations", "--json"]).success().stdout;
    assert_snapshot!(env.run(&["revert", "1", "-m", ""]), @"
    ------- stderr -------
    error: the note is empty; leave out -m to go back without one
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["checkpoint", "-m", " \n"]), @"
    ------- stderr -------
    error: the note is empty; leave out -m to mark the place without one
    [exit status: 2]
    ");
    assert_eq!(env.run(&["operations", "--json"]).success().stdout, before);
}

#[test]
fn an_agent_resumes_from_any_place() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (example, file) in [
        ("claude-garden.jsonl", ".claude/projects/-g/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl"),
        ("codex-weather.jsonl", ".codex/sessions/2026/08/20/rollout-weather.jsonl"),
        ("pi-boat.jsonl", ".pi/agent/sessions/--boat--/boat.jsonl"),
        (
            "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
            ".kimi/sessions/f00d/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
        ),
    ] {
        let env = TestEnv::new();
        let path = env.home().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(examples.join(example), &path).unwrap();
        let path = path.to_str().unwrap();
        env.run(&["attach", path]).success();
        let id = json(env.run(&["sessions", "--json"]).success().stdout.lines().next().unwrap());
        let session = ["-s", id["session"].as_str().unwrap()];
        // A turn is a place for every agent; its last checkpoint tells where one is.
        let checkpoints =
            env.run(&[&["checkpoints", "--json"], &session[..]].concat()).success().stdout;
        let last = json(checkpoints.lines().last().unwrap());
        let place = last["entry"].as_str().unwrap().to_owned();
        env.run(&[&["branch", "there", &place], &session[..]].concat()).success();
        for place in [&place[..], &place[..12], "there"] {
            let said =
                |what: &[&str]| env.run(&[&["log", "--json"], what].concat()).success().stdout;
            let expected = said(&[&["--at", place], &session[..]].concat());
            let reverted = env.run(&[&["revert", place], &session[..]].concat());
            assert!(
                reverted.stdout.contains("Resume  undertext resume"),
                "{example} {place}: {reverted}"
            );
            // The agent's own file alone says the same as the store does of that place.
            let texts = |log: &str| {
                let blocks = log.lines().map(|line| json(line)["blocks"].clone());
                blocks.filter(|blocks| blocks != &serde_json::json!([])).collect::<Vec<_>>()
            };
            assert_eq!(texts(&said(&[path])), texts(&expected), "{example} {place}");
            env.run(&[&["undo"], &session[..]].concat()).success();
            assert_eq!(texts(&said(&[path])), texts(&said(&session)), "{example} {place}");
        }
        env.run(&["verify"]).success();
    }
}

#[test]
fn a_session_is_named_in_either_way_by_every_command() {
    let env = TestEnv::new();
    let older = conversation(&env);
    env.run(&["branch", "kept", "HEAD~1"]).success();
    // What is undone below is done here.
    env.run(&["append", "-q", "Go on."]).success();
    env.run(&["append", "-q", "And on."]).success();
    env.run(&["new", "-q"]).success();
    env.run(&["append", "-q", "Another one."]).success();
    let short = &older[..8];
    let commands: [&[&str]; 25] = [
        &["log"],
        &["graph"],
        &["status"],
        &["context"],
        &["export"],
        &["audit"],
        &["checkpoints"],
        &["rotations"],
        &["operations"],
        &["verify"],
        &["store", "sizes"],
        &["store", "rebuild"],
        &["show", "HEAD"],
        &["show", "kept"],
        &["diff", "kept"],
        &["diff", "@0", "kept"],
        &["branch"],
        &["checkpoint"],
        &["truncate", "--dry-run"],
        &["compact", "--dry-run"],
        &["revert", "kept"],
        &["undo"],
        &["redo"],
        &["switch", "kept"],
        &["clear"],
    ];
    for command in commands {
        for named in [vec!["-s", short], vec![short], vec![short, "-s", short]] {
            let json_of = |args: &[&str]| env.run(&[args, &["--json"]].concat());
            let said = json_of(&[command, &named].concat());
            assert!(!said.to_string().contains("error:"), "{command:?} {named:?}: {said}");
            let name = said.stdout.lines().next().map(serde_json::from_str::<serde_json::Value>);
            if let Some(Ok(line)) = name
                && let Some(session) = line.get("session").and_then(|session| session.as_str())
            {
                assert_eq!(session, older, "{command:?} {named:?}");
            }
        }
    }
    for (place, session) in [("main", short), (short, "main")] {
        let shown = env.run(&["show", place, session, "--json"]).success().stdout;
        assert_eq!(json(&shown)["entry"], entry(&env, "main", &["-s", short]).as_str());
    }
    let made = env.run(&["branch", "made", "@0", short, "--json"]).success().stdout;
    assert_eq!(json(&made)["session"], older.as_str());
    let made = env.run(&["branch", short, "made-too", "@0", "--json"]).success().stdout;
    assert_eq!(json(&made)["session"], older.as_str());
    let appended = env.run(&["append", "Hello", short, "--json"]).success().stdout;
    assert_eq!(json(&appended)["session"], older.as_str());
}

#[test]
fn of_two_words_that_can_be_read_in_two_ways_the_place_comes_first() {
    let env = TestEnv::new();
    let sessions: Vec<String> = ["one", "two"]
        .into_iter()
        .map(|title| {
            let made = env.run(&["new", "--json"]).success().stdout;
            env.run(&["append", "-q", title]).success();
            env.run(&["branch", "one"]).success();
            env.run(&["branch", "two"]).success();
            json(&made)["session"].as_str().unwrap().to_owned()
        })
        .collect();
    // Either word is a branch in the session of the other's title.
    let shown = env.run(&["show", "one", "two"]).success().stdout;
    assert_eq!(shown, env.run(&["show", "one", "-s", &sessions[1]]).success().stdout);
    assert_snapshot!(env.run(&["revert", "nowhere", "one", "-s", "two"]), @"
    ------- stderr -------
    error: you named two sessions: one, and two with -s
    hint: list the sessions: undertext sessions
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["log", "one", "-s", "two"]), @"
    ------- stderr -------
    error: you named two sessions: one, and two with -s
    hint: list the sessions: undertext sessions
    [exit status: 2]
    ");
    let short = &sessions[0][..8];
    let alone = env.run(&["revert", short]).to_string();
    assert!(
        alone.contains(&format!("{short} is a session; name a place in that session")),
        "{alone}"
    );
    assert!(alone.contains(&format!("undertext log --checkpoints -s {short}\n")), "{alone}");
}

#[test]
fn an_id_whose_beginning_has_digits_alone_is_no_number() {
    let env = TestEnv::new();
    let session = "11111111-90b4-4e6f-8a53-0d1f6b7e2c40";
    let record = |uuid: &str, parent: &str, words: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{uuid}\",\"parentUuid\":{parent},\"sessionId\":\"{session}\",\
             \"message\":{{\"role\":\"user\",\"content\":\"{words}\"}}}}\n"
        )
    };
    let lines = [record("a", "null", "Water the leeks"), record("b", "\"a\"", "And the beans")];
    let file = env.home().join(format!("{session}.jsonl"));
    fs::write(&file, lines.concat()).unwrap();
    env.run(&["import", file.to_str().unwrap()]).success();
    for args in [
        &["show", "HEAD", "11111111"] as &[&str],
        &["show", "11111111", "HEAD"],
        &["revert", "1", "11111111"],
        &["undo", "11111111"],
    ] {
        env.run(args).success();
    }
    let none = env.run(&["undo", "--op", "7", "11111111"]);
    assert!(none.stderr.contains("there is no operation 7"), "{none}");
}

#[test]
fn an_id_that_reads_like_a_place_names_its_session() {
    let env = TestEnv::new();
    let folder = env.home().join(".pi/agent/sessions/--w--");
    fs::create_dir_all(&folder).unwrap();
    for (n, id) in ["1", "42", "HEAD", "@3", "a~1"].into_iter().enumerate() {
        let at = format!("2026-01-01T00:00:{n:02}.000Z");
        let lines = format!(
            "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"{at}\",\"cwd\":\"/w\"}}\n\
             {{\"type\":\"message\",\"id\":\"a{n}\",\"parentId\":null,\"timestamp\":\"{at}\",\"message\":{{\"role\":\"user\",\
             \"content\":[{{\"type\":\"text\",\"text\":\"findme of {id}.\"}}],\"timestamp\":5}}}}\n"
        );
        fs::write(folder.join(format!("2026-01-01T00-00-00-000Z_{n}.jsonl")), lines).unwrap();
    }
    env.run(&["import"]).success();
    for id in ["1", "42", "HEAD", "@3", "a~1"] {
        let words = format!("findme of {id}.");
        let named = env.run(&["log", "-s", id]).success();
        assert!(named.stdout.contains(&words), "{id}: {named}");
        // The command that search prints leads there.
        let found = env.run(&["search", "-F", &words]).success().stderr;
        let line = found.lines().find(|line| line.contains("undertext show ")).unwrap();
        let command = line.trim_start().trim_start_matches("> ").to_owned();
        let command = command.split_at(command.find("undertext ").unwrap()).1;
        let shown = env.shell("sh", command).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains(&words), "{id}: {command}: {shown}");
    }
    // A number may be the beginning of an id, but where a place must stand it is a checkpoint.
    let begun = env.run(&["log", "-s", "4"]).success();
    assert!(begun.stdout.contains("findme of 42."), "{begun}");
    let none = env.run(&["log", "-s", "7"]);
    assert!(none.stderr.contains("7 is a number, not a session"), "{none}");
    assert!(!env.run(&["show", "1", "-s", "42"]).stdout.contains("of 1."));
}

#[test]
fn a_folder_that_begins_with_a_dash_is_no_option_of_cd() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    for (n, cwd, to) in
        [(1, "-P", "cd -- -P && "), (2, "/w", "cd /w && "), (3, "- x", "cd -- '- x' && ")]
    {
        let id = format!("9c2d7f3{n}-11aa-4f6b-8d2e-6a1b0c3d4e5f");
        let line = format!(
            "{{\"parentUuid\":null,\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"{cwd}\",\"sessionId\":\"{id}\",\
             \"version\":\"2.1.0\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"hi\"}},\
             \"uuid\":\"u\",\"timestamp\":\"2026-02-01T10:00:00.000Z\"}}\n"
        );
        fs::write(folder.join(format!("{id}.jsonl")), line).unwrap();
        env.run(&["import"]).success();
        let printed = env.run(&["resume", "--print", &id]).success().stdout;
        assert!(printed.starts_with(to), "{cwd}: {printed}");
    }
}

#[test]
fn ids_that_two_formats_share_are_told_apart_by_the_format() {
    let env = TestEnv::new();
    let id = conversation(&env);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let garden = fs::read_to_string(examples.join("claude-garden.jsonl")).unwrap();
    let garden = garden.replace("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40", &id);
    fs::write(env.project().join(format!("{id}.jsonl")), garden).unwrap();
    env.run(&["import", "."]).success();
    fs::remove_file(env.project().join(format!("{id}.jsonl"))).unwrap();
    assert_snapshot!(env.run(&["log", &id]), @r#"
    ------- stderr -------
    error: "e572dff8-2304-400b-856a-555ac3a4558d" matches 2 sessions
    hint: type more characters of one of these:
      claude:e572dff8-2304-400b-856a-555ac3a4558d  2026-08-20  /home/ann/garden  Watering the beds
      native:e572dff8-2304-400b-856a-555ac3a4558d  just now    ~/project         Why does the build fai…
    [exit status: 2]
    "#);
    let said = env.run(&["checkpoint", &format!("claude:{}", &id[..8])]).success().to_string();
    assert!(said.contains(&format!("-s claude:{id}\n")), "{said}");
    assert!(said.starts_with(&format!("Session claude:{id}  Watering")), "{said}");
    assert!(said.lines().next().unwrap().chars().count() <= 80, "{said}");
    env.run(&["log", &format!("native:{}", &id[..8])]).success();
}

#[test]
fn the_line_that_names_a_session_is_short_and_safe() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    let title = format!("\u{1b}]0;x\u{7} 日本語 {}\nsecond line", "long ".repeat(40));
    let said = env.run(&["append", &title]).success();
    let line = said.stdout.lines().next().unwrap();
    assert_snapshot!(line, @r"Session e572dff8  \x1b]0;x\x07 日本語 long long long long long long l…  (native)");
    let quiet = env.run(&["append", "-q", "More."]).success().stdout;
    assert_eq!(quiet.lines().count(), 1, "{quiet}");
    let batch = "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"a\"}}\n".repeat(3);
    let said = env.run_with_stdin(&["append"], batch.as_bytes()).success().stdout;
    assert_eq!(said.matches("Session ").count(), 1, "{said}");
    assert!(said.starts_with("Session "), "{said}");
}

#[test]
fn programs_are_told_which_session_was_changed() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let commands: [&[&str]; 16] = [
        &["append", "Go on."],
        &["checkpoint"],
        &["branch", "made"],
        &["switch", "made"],
        &["switch", "main"],
        &["revert", "0"],
        &["undo"],
        &["redo"],
        &["undo"],
        &["clear"],
        &["undo"],
        &["truncate"],
        &["compact", "--keep", "1"],
        &["recover"],
        &["sessions", "--hide", &session],
        &["sessions", "--show", &session],
    ];
    for command in commands {
        let said = env.run(&[command, &["--json"]].concat()).success().stdout;
        let told = json(said.lines().last().unwrap());
        assert_eq!(told["session"], session.as_str(), "{command:?}");
        assert_eq!(told["title"], "Why does the build fail?", "{command:?}");
        assert_eq!(told["format"], "native", "{command:?}");
    }
}

#[test]
fn a_number_of_the_computer_that_cannot_be_read_is_told_of() {
    let env = TestEnv::new();
    conversation(&env);
    assert!(env.run(&["doctor"]).success().stdout.ends_with("is in order\n"));
    fs::write(env.home().join(".local/state/undertext/machine"), "x\n").unwrap();
    let why = "cannot read this computer's number: $HOME/.local/state/undertext/machine does not begin with a number";
    for reading in ["status", "log", "sessions"] {
        let told = env.run(&[reading]).success();
        assert_eq!(told.stderr.matches(why).count(), 1, "{reading}: {told}");
    }
    let refused = env.run(&["append", "More."]);
    assert!(
        refused.stderr.contains("cannot save this computer's number")
            || refused.stderr.contains(why),
        "{refused}"
    );
    let examined = env.run(&["doctor"]);
    assert!(examined.stdout.contains(why), "{examined}");
    assert_eq!(examined.code(), Some(1));
}
