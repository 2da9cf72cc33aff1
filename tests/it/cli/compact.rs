//! `compact`, `recover` and `turn`, as a person and a program see them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use insta::assert_snapshot;

use super::json;
use crate::env::TestEnv;
use crate::model_server::{Reply, Server};

/// A session of so many long messages.
fn talked(messages: usize) -> TestEnv {
    let env = TestEnv::new();
    env.run(&["new", "--title", "A long talk"]).success();
    let lines: Vec<String> = (0..messages)
        .map(|n| {
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            let words = format!("{n} {}", "all work and no play ".repeat(40));
            format!(r#"{{"type":"{role}","message":{{"role":"{role}","content":"{words}"}}}}"#)
        })
        .collect();
    env.run_with_stdin(&["append", "--jsonl"], lines.join("\n").as_bytes()).success();
    env
}

fn settings(env: &TestEnv, text: &str) {
    let folder = env.home().join(".config/undertext");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

fn program(env: &TestEnv, name: &str, text: &str) -> String {
    let path = env.home().join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_person_sees_the_numbers_then_what_was_done_and_takes_it_back() {
    let env = talked(20);
    assert_snapshot!(env.run(&["compact", "--dry-run"]), @"");
    assert_snapshot!(env.run(&["compact", "--keep", "3"]).masked(), @"");
    assert_snapshot!(env.run(&["compact"]), @"");
    assert_snapshot!(env.run(&["undo"]).masked(), @"");
    let context = env.run(&["context", "--json"]).success().stdout;
    assert_eq!(json(context.lines().next().unwrap())["messages"], 20);
    env.run(&["verify"]).success();
}

#[test]
fn an_automatic_compaction_waits_until_it_is_due() {
    let env = talked(20);
    assert_snapshot!(env.run(&["compact", "--trigger", "auto"]), @"It is not due, and nothing is changed");
    let args = ["compact", "--trigger", "auto", "--window", "16000", "--json", "--events"];
    settings(&env, "[compaction]\npercent = 20\n");
    let done = env.run(&args).success();
    assert_eq!(json(&done.stdout)["kept"], 4);
    let events: Vec<_> = done.stderr.lines().map(json).collect();
    assert_eq!(events[0]["event"], "compaction_start");
    assert_eq!(events[0]["trigger"], "auto");
    assert_eq!(events[1]["event"], "compaction_end");
}

#[test]
fn an_append_compacts_where_it_is_asked_to_and_due() {
    let env = talked(20);
    let said = env.run(&["append", "One more", "--compact"]).success();
    assert!(!said.stdout.contains("Compacted"), "{said}");
    settings(&env, "[window]\ndefault = 16000\n[compaction]\npercent = 20\n");
    let said = env.run(&["append", "And another", "--compact", "--json"]).success().stdout;
    let kinds: Vec<_> = said.lines().map(|line| json(line)["type"].clone()).collect();
    assert_eq!(kinds, ["entry", "compact"]);
}

#[test]
fn hooks_are_told_and_the_one_before_can_stop_it() {
    let env = talked(20);
    let log = env.home().join("log");
    let tell = program(&env, "tell", &format!("cat >> {}", log.display()));
    let stop = program(&env, "stop", "echo 'not on a Friday' >&2; exit 1");
    settings(&env, &format!("[compaction]\nbefore = \"{stop}\"\n"));
    assert_snapshot!(env.run(&["compact"]), @"");
    settings(&env, &format!("[compaction]\nbefore = \"{tell}\"\nafter = \"{tell}\"\n"));
    env.run(&["compact"]).success();
    let told = fs::read_to_string(&log).unwrap();
    assert!(told.contains("before_compaction") && told.contains("after_compaction"), "{told}");
    // One that never ends is not waited for.
    settings(&env, "[compaction]\nbefore = \"sleep 60\"\nhook_timeout = 1\n");
    env.run(&["append", "More"]).success();
    let late = env.run(&["compact"]);
    assert!(late.stderr.contains("it was not done within 1s"), "{late}");
}

#[test]
fn a_failing_summariser_falls_back_and_with_strict_changes_nothing() {
    let env = talked(20);
    let dies = program(&env, "dies", "exit 7");
    let binary = program(&env, "binary", r"printf '\000\377'");
    let empty = program(&env, "empty", "cat > /dev/null");
    let long = program(&env, "long", "yes word | head -n 60000");
    let provider = |name: &str, line: &str| format!("[provider.{name}]\nkind = \"command\"\ncommand = \"{line}\"\n");
    let all = [("dies", &dies), ("binary", &binary), ("empty", &empty), ("long", &long)];
    let text: Vec<String> = all.iter().map(|(name, line)| provider(name, line)).collect();
    settings(&env, &format!("{}[provider.slow]\nkind = \"command\"\ncommand = \"sleep 60\"\ntimeout = 1\n", text.concat()));
    for name in ["dies", "binary", "empty", "long", "slow"] {
        let failed = env.run(&["compact", "--summarizer", name, "--strict"]);
        assert!(failed.to_string().contains("[exit status: 3]") && failed.stderr.contains("nothing is changed"), "{name}: {failed}");
    }
    let done = env.run(&["compact", "--summarizer", "dies"]).masked();
    assert_snapshot!(done, @"");
    assert_snapshot!(env.run(&["compact", "--summarizer", "nobody"]), @"");
    env.run(&["verify"]).success();
}

#[test]
fn an_endpoint_writes_the_summary_and_its_key_is_kept_nowhere() {
    let env = talked(20);
    let server = Server::new(100_000);
    server.queue([Reply::Text("## Current focus\nThe parser.".to_owned())]);
    let text = format!(
        "[provider.local]\nurl = \"{}\"\nmodel = \"m-1\"\nkey_env = \"SECRET\"\n[compaction]\nsummarizer = \"local\"\n",
        server.url()
    );
    settings(&env, &text);
    assert_snapshot!(env.run(&["compact"]), @"");
    let output = env.command().env("SECRET", "sk-very-secret").args(["compact", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(server.asked()[0].headers.iter().any(|line| line.contains("sk-very-secret")));
    assert!(server.asked()[0].body.get("tools").is_none());
    let context = env.run(&["context"]).success().stdout;
    assert!(context.contains("context-summary"), "{context}");
    let store = fs::read(env.home().join(".local/share/undertext/store.db")).unwrap();
    assert!(!store.windows(14).any(|part| part == b"sk-very-secret"));
    // A page is no answer.
    env.run(&["append", "More"]).success();
    server.queue(vec![Reply::page(200, "Sign in"); 9]);
    let failed = env.command().env("SECRET", "x").args(["compact", "--strict"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("Sign in"));
}

#[test]
fn a_session_that_a_provider_refused_is_recovered() {
    let env = talked(60);
    assert_snapshot!(env.run(&["recover"]), @"");
    let said = "prompt is too long: 30000 tokens > 16000 maximum";
    assert_snapshot!(env.run(&["recover", "--error", said]), @"");
    assert_snapshot!(env.run(&["recover", "--error", "Rate limit reached"]), @"");
    assert_snapshot!(env.run(&["recover", "--window", "8000"]), @"");
    env.run(&["verify"]).success();
}

#[test]
fn a_turn_asks_a_model_and_tools_answer_it() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    let server = Server::new(100_000);
    let call = ("call_1".to_owned(), "add".to_owned(), serde_json::json!({ "a": 1, "b": 2 }));
    server.queue([Reply::Calls(vec![call.clone()]), Reply::Text("It is 3.".to_owned())]);
    settings(&env, &format!("[provider.local]\nurl = \"{}\"\nmodel = \"m-1\"\n[turn]\nprovider = \"local\"\n", server.url()));
    let tools = program(
        &env,
        "tools",
        r#"case "$(cat)" in *'"list"'*) echo '{"tools":[{"name":"add","description":"Adds.","schema":{"type":"object"}}]}';; *) echo '{"output":"3"}';; esac"#,
    );
    assert_snapshot!(env.run(&["turn", "What is 1 + 2?", "--tools", &tools]), @"");
    assert_eq!(server.asked()[0].body["tools"][0]["function"]["name"], "add");
    assert_snapshot!(env.run(&["log"]).masked(), @"");

    // Without tools the calls stay pending.
    server.queue([Reply::Calls(vec![call])]);
    let done = json(&env.run(&["turn", "And again", "--json"]).success().stdout);
    assert_eq!(done["pending"], serde_json::json!([{ "id": "call_1", "name": "add", "input": { "a": 1, "b": 2 } }]));
    assert_snapshot!(env.run(&["turn", "Hello", "--provider", "nobody"]), @"");
    server.queue(vec![Reply::Raw(401, String::new(), "{\"error\":{\"message\":\"no such key\"}}".to_owned())]);
    assert_snapshot!(env.run(&["turn", "Hello"]), @"");
    env.run(&["verify"]).success();
}
