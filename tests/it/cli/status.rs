//! `status`: where a session stands.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use insta::assert_snapshot;

use super::{Stored, json, with_examples};
use crate::env::TestEnv;

#[test]
fn a_session_file_has_no_live_file() {
    let env = with_examples();
    assert_snapshot!(env.run(&["status", "native-tools.jsonl"]), @"
    session     9c2d7f34-11aa-4f6b-8d2e-6a1b0c3d4e5f (native)
    title       Why does the kettle not whistle?
    folder      /home/ann/kettle
    branch      main
    head        e91b5097, at the end of @1
    checkpoint  @1 is the newest
    holds       2 turns, 12 entries
    context     537 of 32,000 tokens; compaction due at 24,000 (23,463 to go)
                reported by the model
    used        kettle-mender-1 · 120 tokens in, 0 cached, 30 out
    started     2026-03-14 09:00:01
    active      2026-03-14 09:00:10
    ");
}

#[test]
fn a_stored_session_tells_whether_its_live_file_agrees() {
    let stored = Stored::reverted();
    assert_snapshot!(stored.run(&["status"]), @"
    session     id-00000-0000-0000-0000-000000000000 (native)
    title       Paint the boat.
    folder      $HOME/project
    branch      main, one of 2
    reverted    1 branch
    head        id-00001, at @1
    checkpoint  @1 is the newest
    holds       2 turns, 6 entries, 8 operations
    context     about 144 of 32,000 tokens; compaction due at 24,000 (23,856 to go)
    started     2001-02-03 04:05:08
    active      2001-02-03 04:05:20
    live file   ~/.local/share/undertext/transcripts/id-00000-0000-0000-0000-000000000000.jsonl
                agrees with the store
    ");
    let mut live = OpenOptions::new().append(true).open(&stored.live).unwrap();
    writeln!(live, "{{}}").unwrap();
    let behind = stored.run(&["status", "--json"]).success();
    assert!(behind.stdout.contains("\"behind\":true") && behind.stderr.is_empty(), "{behind}");
    assert_snapshot!(stored.run(&["status"]).stdout.lines().last().unwrap(), @"            the agent has written more since the last import; the new records are shown");
}

#[test]
fn layers_tell_what_a_session_knows() {
    let stored = Stored::reverted();
    assert_snapshot!(stored.run(&["status", "--layers"]), @"
    system
      os         linux
      undertext  0.2.0
      folder     $HOME/project

    session
      start  2001-02-03T04:05:08.000Z

    conversation
      turns    2
      entries  6
      active   2001-02-03T04:05:20.000Z

    tools

    workspace
      path  $HOME/project
    ");
}

#[test]
fn layers_tell_when_calls_were_made_and_how_long_they_took() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    for n in 0..12 {
        let id = format!("c{n}");
        env.run(&["append", "-q", "--call", "Bash", "--input", "{}", "--id", &id]).success();
        if n < 11 {
            env.run(&["append", "-q", "--result", &id, "done"]).success();
        }
    }
    let layers = env.run(&["status", "--layers"]).success().stdout;
    let tools = layers.split("tools\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert_eq!(tools.lines().count(), 10, "{layers}");
    let last: Vec<&str> = tools.lines().rev().take(2).collect();
    assert_snapshot!(last.join("\n"), @"
      Bash  2001-02-03 04:05:29, has no result yet
      Bash  2001-02-03 04:05:27, succeeded after 1.0 s
    ");
    let layers = env.run(&["status", "--layers", "--json"]).success().stdout;
    let tools = json(&layers)["layers"]["tools"].clone();
    assert_eq!((&tools[8]["ms"], &tools[9]["ms"]), (&1000.into(), &serde_json::Value::Null));
}

#[test]
fn layers_of_an_agents_session_are_what_its_records_tell() {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let kimi = "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl";
    let told = |name: &str| {
        let path = examples.join(name);
        let said = env.run(&["status", "--layers", "--json", path.to_str().unwrap()]).success();
        let layers = json(&said.stdout)["layers"].clone();
        let of = |pointer: &str| layers.pointer(pointer)?.as_str().map(str::to_owned);
        [
            "/system/agent",
            "/system/version",
            "/system/shell",
            "/system/folder",
            "/workspace/gitBranch",
            "/workspace/remote",
            "/session/configuration/model",
            "/session/configuration/provider",
        ]
        .map(|pointer| of(pointer).unwrap_or_default())
        .join("|")
    };
    assert_snapshot!(told("claude-garden.jsonl"), @"claude|2.1.329||/home/ann/garden|main||claude-opus-5|");
    assert_snapshot!(told("codex-weather.jsonl"), @"codex|0.169.0|bash|/home/ann/weather|main||gpt-5.6-sol|openai");
    assert_snapshot!(told("pi-boat.jsonl"), @"pi|||/home/ann/boat|||claude-sonnet-4-5|anthropic");
    assert_snapshot!(told(kimi), @"kimi|||||||");
    assert_snapshot!(told("native-tools.jsonl"), @"native|0.1.0||/home/ann/kettle|||kettle-mender-1|");
}

/// Each of these was said to be more that the agent wrote.
#[test]
fn it_says_what_is_so_of_a_live_file_that_is_not_as_the_store_left_it() {
    let env = TestEnv::new();
    let file = env.home().join(".claude/projects/-work/boat.jsonl");
    let record = |n: u8, parent: &str, role: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\
             \"sessionId\":\"boat\",\"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\
             \"content\":\"Part {n}\"}},\"uuid\":\"u{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        )
    };
    let lines = [
        record(1, "null", "user"),
        record(2, "\"u1\"", "assistant"),
        record(3, "\"u2\"", "user"),
        record(4, "\"u3\"", "assistant"),
    ];
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, lines.concat()).unwrap();
    env.run(&["import"]).success();
    env.run(&["revert", "1", "-m", "Paint it.", "-s", "boat"]).success();
    let left = fs::read_to_string(&file).unwrap();
    let told = |words: &str, name: &str| {
        let said = env.run(&["status", "boat"]).success();
        assert_eq!(said.stdout.lines().last().unwrap().trim(), words);
        let said = json(&env.run(&["status", "boat", "--json"]).success().stdout);
        assert_eq!(
            (&said["live_state"], &said["behind"]),
            (&name.into(), &(name != "same").into())
        );
    };
    told("agrees with the store", "same");
    fs::write(&file, left.clone() + &record(5, "\"u4\"", "user")).unwrap();
    told("the agent has written more since the last import; the new records are shown", "grown");
    // What is shown beyond the store is counted, and no operation of it is there yet.
    let status = json(&env.run(&["status", "boat", "--json"]).success().stdout);
    let stats = json(&env.run(&["store", "sizes", "boat", "--json"]).success().stdout);
    let operations = env.run(&["operations", "boat", "--json"]).success().stdout;
    assert_eq!(status["operations"], operations.lines().count());
    assert_eq!((&status["turns"], &status["entries"]), (&stats["turns"], &stats["entries"]));

    let rewritten = "was rewritten since the last import; its new content is shown";
    for content in [left.replace('\n', "\r\n"), lines[0].clone(), String::new()] {
        fs::write(&file, content).unwrap();
        told(rewritten, "rewritten");
    }
    // A change that the store holds and the file could not follow.
    fs::write(&file, lines.concat()).unwrap();
    told("does not have the store's newest change yet; the next change writes it", "pending");
    let said = env.run(&["verify"]).success();
    assert!(said.stdout.contains("it does not have the store's newest change yet"), "{said}");
    let unread = "cannot be read, so the store's version is shown";
    fs::remove_file(&file).unwrap();
    symlink("nowhere", &file).unwrap();
    told(unread, "unread");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    told(unread, "unread");
}
