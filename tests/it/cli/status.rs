//! `status`: where a session stands.

use std::fs::OpenOptions;
use std::io::Write as _;
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
    branch      main, the only one
    head        e91b5097
    checkpoint  @1 is the newest
    holds       2 turns, 12 entries
    context     537 tokens of 32,000; auto-compacts at 24,000 (23,463 to go)
                reported by the model
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
    head        id-00001
    checkpoint  @1 is the newest
    holds       2 turns, 6 entries, 8 operations
    context     about 144 tokens of 32,000; auto-compacts at 24,000 (23,856 to go)
    started     2001-02-03 04:05:08
    active      2001-02-03 04:05:20
    live file   $HOME/.local/share/undertext/transcripts/id-00000-0000-0000-0000-000000000000.jsonl
                agrees with the store
    ");
    let mut live = OpenOptions::new().append(true).open(&stored.live).unwrap();
    writeln!(live, "{{}}").unwrap();
    let behind = stored.run(&["status", "--json"]).success();
    assert!(behind.stdout.contains("\"behind\":true") && behind.stderr.is_empty(), "{behind}");
    assert_snapshot!(stored.run(&["status"]).stdout.lines().last().unwrap(), @"            the agent wrote more since the last import, which is shown");
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
