//! `compact`, `recover` and `turn`, as a person and a program see them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use insta::assert_snapshot;

use super::attach::{Kept, claude_record};
use super::json;
use crate::env::TestEnv;
use crate::model_server::{Reply, Server};

/// The session that is talked.
const TALK: &str = "e572dff8-2304-400b-856a-555ac3a4558d";

/// A session of so many long messages.
pub(super) fn talked(messages: usize) -> TestEnv {
    let env = TestEnv::new();
    env.run(&["new"]).success();
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

/// Says enough for another compaction.
fn more(env: &TestEnv) {
    for n in 0..12 {
        env.run(&["append", &format!("{n} {}", "all play and no work ".repeat(40))]).success();
    }
}

pub(super) fn settings(env: &TestEnv, text: &str) {
    let folder = env.home().join(".config/undertext");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

pub(super) fn program(env: &TestEnv, name: &str, text: &str) -> String {
    let path = env.home().join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A file of Codex as its old versions wrote it.
#[test]
fn why_only_the_store_is_changed_is_said_once() {
    let env = TestEnv::new();
    let id = "019a0000-0000-7000-8000-000000000001";
    let at = "2026-01-02T00:00:00.000Z";
    let mut lines = vec![serde_json::json!({"id": id, "timestamp": at, "instructions": null})];
    for n in 0..20 {
        let (role, kind) =
            if n % 2 == 0 { ("user", "input_text") } else { ("assistant", "output_text") };
        let text = format!("{n} {}", "all work and no play ".repeat(40));
        let content = serde_json::json!([{"type": kind, "text": text}]);
        lines.push(serde_json::json!({"type": "message", "role": role, "content": content}));
    }
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>().concat();
    let folder = env.home().join(".codex/sessions/2026/01/02");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("rollout-2026-01-02T00-00-00-{id}.jsonl")), text).unwrap();
    env.run(&["import"]).success();
    let said = env.run(&["compact", "-s", id]).success();
    assert_eq!(said.stderr.matches("only the store was changed").count(), 1, "{said}");
}

#[test]
fn a_dry_run_finds_no_gain_where_a_compaction_finds_none() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    for said in ["hi", "yo", "again"] {
        env.run(&["append", said]).success();
    }
    let no_gain = "a summary would not be shorter than what it replaces";
    for args in [&["compact"][..], &["compact", "--dry-run"]] {
        let run = env.run(args);
        assert!((run.stdout.clone() + &run.stderr).contains(no_gain), "{args:?}: {run}");
    }
}

#[test]
fn a_person_sees_the_numbers_then_what_was_done_and_takes_it_back() {
    let env = talked(20);
    assert_snapshot!(env.run(&["compact", "--dry-run"]), @"
    summarised         16  3,456 tokens
    kept                4    864 tokens
    earlier summaries   0      0 tokens
    system prompt       0      0 tokens
    The extract names 8 of 8 requests
    The context is at about 4,322 of 32,000 tokens; compaction due at 24,000 (19,678 to go)
    ------- stderr -------
    Nothing was changed
    ");
    assert_snapshot!(env.run(&["compact", "--keep", "3"]).masked(), @"
    Session entry-id  0 all work and no play all work and no play all wor…  (native)
    Compacted main: summarised 17 messages, kept 3 messages
    The context went from about 4,322 to 967 tokens in a 32,000-token window
    ------- stderr -------
    hint: to see what a model would be sent: undertext context
    hint: to undo: undertext undo
    ");
    assert_snapshot!(env.run(&["compact"]), @r"
    Session e572dff8  0 all work and no play all work and no play all wor…  (native)
    Nothing to compact: there have been no new messages since the last compaction; nothing was changed
    ");
    assert_snapshot!(env.run(&["undo"]).masked(), @r#"
    entry-id is now at the end of @9 "18 all work and no play all work and no play…"
    Undid operation 3 (compact)
    Context about 967 → 4k tokens (13%): the compaction at 04:05 is undone too.
    Redo  undertext redo
    "#);
    let context = env.run(&["context", "--json"]).success().stdout;
    assert_eq!(json(context.lines().next().unwrap())["messages"], 20);
    env.run(&["verify"]).success();
}

#[test]
fn an_automatic_compaction_waits_until_it_is_due() {
    let env = talked(20);
    assert_snapshot!(env.run(&["compact", "--trigger", "auto"]), @r"
    Session e572dff8  0 all work and no play all work and no play all wor…  (native)
    Compaction is not due yet; nothing was changed
    ");
    let done = json(&env.run(&["compact", "--trigger", "auto", "--json"]).success().stdout);
    let fields = ["type", "operation", "nothing", "branch", "window"].map(|key| done[key].clone());
    assert_eq!(
        serde_json::json!(fields),
        serde_json::json!(["compact", null, "compaction is not due yet", "main", 32_000])
    );
    assert!(done["pre_tokens"] == done["post_tokens"] && done["pre_tokens"] != 0, "{done}");
    let args = ["compact", "--trigger", "auto", "--window", "16000", "--json", "--events"];
    settings(&env, "[compaction]\npercent = 20\n");
    let done = env.run(&args).success();
    assert_eq!(json(&done.stdout)["kept"], 4);
    let events = done.stderr.lines().filter(|line| line.starts_with('{'));
    let events: Vec<_> = events.map(json).collect();
    assert_eq!(events[0]["event"], "window_tight");
    assert_eq!(events[1]["event"], "compaction_start");
    assert_eq!(events[1]["trigger"], "auto");
    assert_eq!(events[2]["event"], "compaction_end");
}

/// A session grows by more than half its window in its live file, which the store has not taken in.
#[test]
fn what_the_live_file_holds_beyond_the_store_is_taken_in_before_its_size_is_judged() {
    for command in [&["compact", "--trigger", "auto"][..], &["recover"]] {
        let env = talked(2);
        let live = super::live_path(&env, TALK);
        let mut lines = fs::read_to_string(&live).unwrap();
        let mut record = json(lines.lines().last().unwrap());
        for n in 0..40 {
            record["parentUuid"] = record["uuid"].clone();
            record["uuid"] = format!("00000000-0000-4000-8000-{n:012}").into();
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            record["type"] = role.into();
            record["message"]["role"] = role.into();
            lines += &record.to_string();
            lines.push('\n');
        }
        fs::write(&live, lines).unwrap();
        settings(&env, "[compaction]\npercent = 20\n");
        let done = env.run(&[command, &["--window", "16000", "--json"]].concat()).success();
        let done = json(done.stdout.lines().last().unwrap());
        assert!(done["pre_tokens"].as_u64() > Some(6_000), "{done}");
        assert!(done["post_tokens"].as_u64() < done["pre_tokens"].as_u64(), "{done}");
    }
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
    assert_snapshot!(env.run(&["compact"]), @"
    ------- stderr -------
    error: nothing was changed: a command in your settings refused the compaction: not on a Friday
    hint: the setting is compaction.before in config.toml
    [exit status: 3]
    ");
    settings(&env, &format!("[compaction]\nbefore = \"{tell}\"\nafter = \"{tell}\"\n"));
    env.run(&["compact"]).success();
    let told = fs::read_to_string(&log).unwrap();
    assert!(told.contains("before_compaction") && told.contains("after_compaction"), "{told}");
    // One that never ends is not waited for.
    settings(&env, "[compaction]\nbefore = \"sleep 60\"\nhook_timeout = 1\n");
    more(&env);
    let late = env.run(&["compact"]);
    assert!(late.stderr.contains("it did not finish within 1s"), "{late}");
}

#[test]
fn a_failing_summariser_falls_back_and_with_strict_changes_nothing() {
    let env = talked(20);
    let dies = program(&env, "dies", "exit 7");
    let binary = program(&env, "binary", r"printf '\000\377'");
    let empty = program(&env, "empty", "cat > /dev/null");
    let long = program(&env, "long", "yes word | head -n 60000");
    let provider = |name: &str, line: &str| {
        format!("[provider.{name}]\nkind = \"command\"\ncommand = \"{line}\"\n")
    };
    let all = [("dies", &dies), ("binary", &binary), ("empty", &empty), ("long", &long)];
    let text: Vec<String> = all.iter().map(|(name, line)| provider(name, line)).collect();
    settings(
        &env,
        &format!(
            "{}[provider.slow]\nkind = \"command\"\ncommand = \"sleep 60\"\ntimeout = 1\n",
            text.concat()
        ),
    );
    for name in ["dies", "binary", "empty", "long", "slow"] {
        let failed = env.run(&["compact", "--summarizer", name, "--strict"]);
        assert!(
            failed.to_string().contains("[exit status: 3]")
                && failed.stderr.contains("nothing was changed"),
            "{name}: {failed}"
        );
    }
    let done = env.run(&["compact", "--summarizer", "dies"]).masked();
    assert_snapshot!(done, @"
    Session entry-id  0 all work and no play all work and no play all wor…  (native)
    Compacted main: summarised 14 messages, kept 6 messages
    The context went from about 4,322 to 1,632 tokens in a 32,000-token window
    ------- stderr -------
    warning: no model wrote a summary: dies: the request failed: exit code 7
    Used an extract instead
    hint: to see what a model would be sent: undertext context
    hint: to undo: undertext undo
    ");
    assert_snapshot!(env.run(&["compact", "--summarizer", "nobody"]), @r#"
    ------- stderr -------
    error: the settings have no provider "nobody"
    hint: available: binary, dies, empty, long, slow
    hint: set one in config.toml; see all settings explained: undertext context --settings
    [exit status: 2]
    "#);
    env.run(&["verify"]).success();
}

/// It was asked, for minutes and for money, and only then the file was found in use.
#[test]
fn no_model_is_asked_for_a_summary_that_cannot_be_written() {
    let kept = Kept::claude();
    let env = &kept.env;
    for n in 5..9 {
        let role = if n % 2 == 1 { "user" } else { "assistant" };
        kept.append(&claude_record(n, n - 1, role, &format!("{n} {}", "planks ".repeat(400))));
    }
    env.run(&["import"]).success();
    let asked = env.home().join("asked");
    let command = program(env, "writes", &format!("touch {}; echo A boat.", asked.display()));
    settings(env, &format!("[provider.writes]\nkind = \"command\"\ncommand = \"{command}\"\n"));
    let compact = ["compact", "--summarizer", "writes", "--keep", "1", "-s", "6b0a"];
    let dry = [&compact[..], &["--dry-run"]].concat();
    let held = fs::File::open(&kept.file).unwrap();
    let refused = env.run(&compact);
    assert!(refused.stderr.contains(" open (pid "), "{refused}");
    assert!(refused.to_string().contains("[exit status: 3]"), "{refused}");
    // What would be done is of use while the agent runs.
    assert!(env.run(&dry).success().stdout.contains("summarised"));
    assert!(!asked.exists());
    drop(held);
    env.run(&compact).success();
    assert!(asked.exists());
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
    assert_snapshot!(env.run(&["compact"]), @"
    ------- stderr -------
    error: the key of provider.local is not set
    hint: put it into the environment, as SECRET
    [exit status: 2]
    ");
    let output =
        env.command().env("SECRET", "sk-very-secret").args(["compact", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(server.asked()[0].headers.iter().any(|line| line.contains("sk-very-secret")));
    assert!(server.asked()[0].body.get("tools").is_none());
    let context = env.run(&["context"]).success().stdout;
    assert!(context.contains("context-summary"), "{context}");
    let store = fs::read(env.home().join(".local/share/undertext/store.db")).unwrap();
    assert!(!store.windows(14).any(|part| part == b"sk-very-secret"));
    // A page is no answer.
    more(&env);
    server.queue(vec![Reply::page(200, "Sign in"); 9]);
    let failed = env.command().env("SECRET", "x").args(["compact", "--strict"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("Sign in"));
}

#[test]
fn a_tight_window_is_warned_of_wherever_one_is_used() {
    let env = talked(4);
    let provider =
        "[provider.x]\nkind = \"command\"\ncommand = \"echo Yes.\"\n[turn]\nprovider = \"x\"\n";
    let check = |args: &[&str], size: &str| {
        settings(&env, &format!("{provider}[window]\ndefault = {size}\n"));
        let run = env.run(args);
        run.stderr.matches("is tight; at least 32,000 is better").count()
    };
    for args in [
        &["context"][..],
        &["status"],
        &["truncate"],
        &["truncate", "--dry-run"],
        &["compact", "--dry-run"],
        &["compact"],
        &["compact", "--trigger", "auto"],
        &["recover"],
        &["append", "Hello.", "--compact"],
        &["turn", "Hello?"],
        &["turn", "Hello?", "--json"],
    ] {
        assert_eq!((check(args, "31999"), check(args, "32000")), (1, 0), "{args:?}");
    }
    settings(&env, &format!("{provider}[window]\ndefault = 16000\n"));
    for args in
        [&["turn", "Well?", "--events"][..], &["compact", "--events"], &["recover", "--events"]]
    {
        let told = env.run(args).stderr;
        let event = told.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        assert!(event.starts_with(r#"{"event":"window_tight","session":""#), "{args:?}: {told}");
        assert!(event.ends_with(r#","window":16000,"enough":32000}"#), "{args:?}: {told}");
    }
}

#[test]
fn a_session_that_a_provider_refused_is_recovered() {
    let env = talked(60);
    assert_snapshot!(env.run(&["recover"]), @"
    Session e572dff8  0 all work and no play all work and no play all wor…  (native)
    The context fits: about 12,962 of 32,000 tokens; nothing was changed
    ------- stderr -------
    hint: if a provider refused the request, pass its message with --error: undertext recover --help
    ");
    let said = "prompt is too long: 30000 tokens > 16000 maximum";
    assert_snapshot!(env.run(&["recover", "--error", said]), @"
    Session e572dff8  0 all work and no play all work and no play all wor…  (native)
    The context went from about 30,000 to 6,739 tokens in a 16,000-token window
    Recorded as operation 3
    ------- stderr -------
    hint: to undo the last operation: undertext undo
    ");
    assert_snapshot!(env.run(&["recover", "--error", "Rate limit reached"]), @"
    ------- stderr -------
    error: the text of --error does not look like an overflow
    hint: the provider only asks you to wait: the session fits
    hint: to shrink the context anyway: undertext recover --error 'Rate limit reached' --insist
    [exit status: 2]
    ");
    let named = env.run(&["recover", "--error", "Rate limit reached", "-s", "e572"]).to_string();
    assert!(named.contains("--insist -s e572dff8"), "{named}");
    assert_snapshot!(env.run(&["recover", "--window", "8000"]), @"
    ------- stderr -------
    error: a window of 8000 tokens is too small: the minimum is 16000
    hint: set another window with --window, or lower window.block in config.toml; see all settings explained: undertext context --settings
    [exit status: 2]
    ");
    env.run(&["verify"]).success();
}

#[test]
fn a_turn_asks_a_model_and_tools_answer_it() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    let server = Server::new(100_000);
    let call = ("call_1".to_owned(), "add".to_owned(), serde_json::json!({ "a": 1, "b": 2 }));
    server.queue([Reply::Calls(vec![call.clone()]), Reply::Text("It is 3.".to_owned())]);
    settings(
        &env,
        &format!(
            "[provider.local]\nurl = \"{}\"\nmodel = \"m-1\"\n[turn]\nprovider = \"local\"\n",
            server.url()
        ),
    );
    let tools = program(
        &env,
        "tools",
        r#"case "$(cat)" in *'"list"'*) echo '{"tools":[{"name":"add","description":"Adds.","schema":{"type":"object"}}]}';; *) echo '{"output":"3"}';; esac"#,
    );
    assert_snapshot!(env.run(&["turn", "What is 1 + 2?", "--tools", &tools]), @"
    Session e572dff8  What is 1 + 2?  (native)
    It is 3.
    ------- stderr -------
    2 requests, 1 call; the context is at about 194 of 32,000 tokens
    ");
    assert_eq!(server.asked()[0].body["tools"][0]["function"]["name"], "add");
    let log = env.run(&["log"]).success().stdout;
    assert!(log.contains("add  a=1  b=2") && log.contains("It is 3."), "{log}");

    // Without tools the calls stay pending.
    server.queue([Reply::Calls(vec![call])]);
    let done = json(&env.run(&["turn", "And again", "--json"]).success().stdout);
    assert_eq!(
        done["pending"],
        serde_json::json!([{ "id": "call_1", "name": "add", "input": { "a": 1, "b": 2 } }])
    );
    assert_snapshot!(env.run(&["turn", "Hello", "--provider", "nobody"]), @r#"
    ------- stderr -------
    error: the settings have no provider "nobody"
    hint: available: local
    hint: set one in config.toml; see all settings explained: undertext context --settings
    [exit status: 2]
    "#);
    server.queue(vec![Reply::Raw(
        401,
        String::new(),
        "{\"error\":{\"message\":\"no such key\"}}".to_owned(),
    )]);
    assert_snapshot!(env.run(&["turn", "Hello"]), @"
    ------- stderr -------
    error: m-1 at 127.0.0.1: the request failed with status 401: no such key
    hint: check the provider's settings in config.toml; see all settings explained: undertext context --settings
    hint: the messages so far are kept; to continue from them: undertext turn
    [exit status: 3]
    ");
    let done = json(&env.run(&["turn", "--json"]).success().stdout);
    assert_eq!(done["said"], "Done.");
    assert_eq!(env.run(&["log"]).success().stdout.matches("Hello").count(), 1);
    assert_snapshot!(env.run(&["turn"]), @"
    ------- stderr -------
    error: there is nothing to continue: the model has already answered
    hint: give a PROMPT
    [exit status: 2]
    ");
    env.run(&["verify"]).success();
}

/// Settings of a command that answers everything with this message.
fn answering(env: &TestEnv, message: &str) -> String {
    let file = env.project().join("answer.json");
    fs::write(&file, message).unwrap();
    let line = format!("cat >/dev/null; cat {}", file.display());
    let provider = format!("[provider.mine]\nkind = \"command\"\ncommand = \"{line}\"\n");
    settings(env, &format!("{provider}[turn]\nsteps = 1\n"));
    program(
        env,
        "tools",
        r#"case "$(cat)" in *'"list"'*) echo '{"tools":[{"name":"echo"}]}';; *) echo '{"output":"3"}';; esac"#,
    )
}

#[test]
fn a_call_whose_arguments_are_no_value_is_answered_with_an_error() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    for input in [r#"{"n":1e999}"#, r#"{"a":"\ud83d"}"#, &deep] {
        let env = TestEnv::new();
        env.run(&["new"]).success();
        let function = serde_json::json!({ "name": "echo", "arguments": input });
        let calls = serde_json::json!([{ "id": "s", "function": function }]);
        let message = serde_json::json!({ "content": "ok", "tool_calls": calls });
        let tools = answering(&env, &message.to_string());
        for (args, answered) in [(&["turn", "Hi"][..], 0), (&["turn"], 1), (&["turn"], 1)] {
            let args = [args, &["--provider", "mine", "--tools", &tools, "--json"]].concat();
            let done = json(&env.run(&args).success().stdout);
            assert_eq!(done["answered"], answered, "{input}: {done}");
        }
        let log = env.run(&["export"]).success().stdout;
        assert!(log.contains("the arguments are not JSON: "), "{input}: {log}");
    }
}

#[test]
fn half_of_a_character_costs_no_answer_and_no_output() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    let function = serde_json::json!({ "name": "list", "arguments": "{}" });
    let calls = serde_json::json!([{ "id": "s", "function": function }]);
    let message = serde_json::json!({ "content": "CUT", "tool_calls": calls });
    let tools = answering(&env, &message.to_string().replace("CUT", r"a \ud83d b"));
    let prints = r#"read asked
case "$asked" in
*'"list"}'*) echo '{"tools":[{"name":"list"}]}' ;;
*) printf '%s' '{"output": "caf\udce9.txt"}' ;;
esac"#;
    program(&env, "tools", prints);
    for args in [&["turn", "Hi"][..], &["turn"]] {
        env.run(&[args, &["--provider", "mine", "--tools", &tools]].concat()).success();
    }
    let log = env.run(&["export"]).success().stdout;
    assert!(log.contains("caf\u{fffd}.txt") && log.contains("a \u{fffd} b"), "{log}");
}

#[test]
fn an_answer_that_is_not_at_its_end_is_told_as_such() {
    for (reason, stop, note) in [
        ("stop", "end", ""),
        ("length", "length", "The answer was cut off at its length limit\n"),
        ("content_filter", "refused", "The model refused to finish its answer\n"),
        ("pause_turn", "paused", "The model paused in the middle of its answer\n"),
    ] {
        let env = TestEnv::new();
        env.run(&["new"]).success();
        let message = serde_json::json!({ "content": "Half of it" });
        let choice = serde_json::json!({ "message": message, "finish_reason": reason });
        answering(&env, &serde_json::json!({ "choices": [choice] }).to_string());
        let args = ["turn", "Hi", "--provider", "mine"];
        let told = env.run(&args).success().stderr;
        assert_eq!(told, format!("{note}1 request; the context is at about 16 of 32,000 tokens\n"));
        assert_eq!(
            json(&env.run(&[&args[..], &["--json"]].concat()).success().stdout)["stop"],
            stop
        );
    }
}

#[test]
fn a_tool_that_prints_no_answer_has_failed() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    let function = serde_json::json!({ "name": "echo", "arguments": "{}" });
    let calls = serde_json::json!([{ "id": "s", "function": function }]);
    let message = serde_json::json!({ "content": "ok", "tool_calls": calls });
    answering(&env, &serde_json::json!({ "choices": [{ "message": message }] }).to_string());
    let prints = r#"case "$(cat)" in *'"list"'*) echo '{"tools":[{"name":"echo"}]}';; *) echo '{"result":"3"}';; esac"#;
    let tools = program(&env, "prints", prints);
    for args in [&["turn", "Hi"][..], &["turn"]] {
        env.run(&[args, &["--provider", "mine", "--tools", &tools]].concat()).success();
    }
    let log = env.run(&["log"]).success().stdout;
    assert!(log.contains("it printed neither \"output\" nor \"error\""), "{log}");
}

#[test]
fn a_turn_that_failed_says_how_to_go_on_as_it_was_begun() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    let tools = answering(&env, "");
    assert_eq!(
        env.run(&["turn", "Hi", "--provider", "mine", "--tools", &tools]).stderr,
        "error: mine: unusable answer: not a JSON object: no reason was given\n\
             hint: check the provider's settings in config.toml; see all settings explained: undertext context --settings\n\
             hint: the messages so far are kept; to continue from them: undertext turn --provider mine --tools $HOME/tools\n"
    );
    settings(&env, "[provider.mine]\nkind = \"command\"\ncommand = \"tee; exit 1\"\n");
    let told = env.run(&["turn", "--provider", "mine"]).stderr;
    assert!(told.starts_with("error: mine: the request failed: exit code 1\n"), "{told}");
}

#[test]
fn a_recovery_is_told_by_the_count_by_which_it_was_judged() {
    let env = talked(100);
    let said = "prompt is too long: 90000 tokens > 16384 maximum";
    let done = json(&env.run(&["recover", "--error", said, "--json"]).success().stdout);
    let figure = |key: &str| done[key].as_u64().unwrap();
    assert_eq!((figure("pre_tokens"), figure("window")), (90_000, 16_384));
    assert!((1_000..16_384).contains(&figure("post_tokens")), "{done}");
}

/// What `compact` tells of a compaction, a recovery and a turn tell too.
#[test]
fn a_recovery_and_a_turn_tell_what_failed_and_what_another_program_wrote() {
    let hooked = "[compaction]\nafter = \"exit 7\"\n[provider.dies]\nkind = \"command\"\ncommand = \"exit 7\"\n";
    let failed = "warning: after_compaction failed: `exit 7` ended with 7\n";
    let env = talked(60);
    settings(&env, hooked);
    let live = env.home().join(format!(".local/share/undertext/transcripts/{TALK}.jsonl"));
    let text = fs::read_to_string(&live).unwrap();
    let last = json(text.lines().last().unwrap())["uuid"].clone();
    let more = serde_json::json!({
        "type": "user", "uuid": "0190-more", "parentUuid": last, "sessionId": TALK,
        "message": { "role": "user", "content": "One more." },
    });
    fs::write(&live, format!("{text}{more}\n")).unwrap();
    let said = "prompt is too long: 30000 tokens > 16000 maximum";
    let done = env.run(&["recover", "--error", said, "--summarizer", "dies"]).success();
    assert!(done.stdout.contains("Recorded as operation 4\n"), "{done}");
    for told in [
        "warning: imported 1 entry that another program appended to the session's file\n",
        "warning: no model wrote a summary: ",
        failed,
    ] {
        assert!(done.stderr.contains(told), "{told}: {done}");
    }

    let env = talked(60);
    let message = serde_json::json!({ "content": "Done." });
    answering(&env, &serde_json::json!({ "choices": [{ "message": message }] }).to_string());
    let provider = fs::read_to_string(env.home().join(".config/undertext/config.toml")).unwrap();
    settings(&env, &format!("{hooked}[window]\ndefault = 16000\n{provider}"));
    let done = env.run(&["turn", "Hi", "--provider", "mine"]).success();
    assert!(done.stderr.contains(failed), "{done}");
}

#[test]
fn a_recovery_keeps_as_much_as_it_is_told_to() {
    let env = talked(60);
    let said = "prompt is too long: 40000 tokens > 32000 maximum";
    env.run(&["recover", "--keep", "2", "--error", said]).success();
    let context = env.run(&["context", "--json"]).success().stdout;
    assert_eq!(json(context.lines().next().unwrap())["messages"], 3);
}

#[test]
fn a_person_who_insists_has_a_session_shrunk_by_any_words() {
    let env = talked(60);
    let said = "das passt nicht hinein: 90000 Zeichen";
    let done = env.run(&["recover", "--error", said, "--insist", "--json"]).success();
    assert!(!json(&done.stdout)["operations"].as_array().unwrap().is_empty(), "{done}");
    assert_eq!(env.run(&["recover", "--error", said]).code(), Some(2));
    env.run(&["verify"]).success();
}

/// A summary that is good enough and forgets numbers and names.
const FORGETS: &str = "## Request and intent\nAll work and no play, and something was to be mended in parse.rs.\n\
                       ## Current focus\nplay\n## Errors and fixes\nnone";

#[test]
fn what_a_summary_lost_is_counted_before_and_listed_after() {
    let env = talked(18);
    for said in ["Mend /w/src/parse.rs, see E0308 on port 8080.", "And build_all in lib.rs too."] {
        env.run(&["append", said]).success();
    }
    more(&env);
    let plan = env.run(&["compact", "--dry-run", "--keep", "3"]).success().stdout;
    assert!(
        plan.contains("The extract names 20 of 20 requests, 1 of 1 paths, 1 of 1 numbers"),
        "{plan}"
    );
    let forgets = program(&env, "forgets", &format!("cat > /dev/null; echo '{FORGETS}'"));
    settings(&env, &format!("[provider.f]\nkind = \"command\"\ncommand = \"{forgets}\"\n"));
    assert_snapshot!(env.run(&["audit", "--boundary"]), @"This session has no compactions");
    let done = env.run(&["compact", "--summarizer", "f", "--keep", "3", "--no-appendix"]);
    let done = done.success().stdout;
    assert!(done.contains("0 of 1 numbers, 0 of 2 identifiers"), "{done}");
    let audit = env.run(&["audit", "--boundary"]).success().stdout;
    for line in [
        "paths: all 1 are in the summary",
        "numbers: 1 of 1 lost: ",
        "on port 8080",
        "identifiers: 2 of 2 lost: ",
        "E0308",
        "build_all",
    ] {
        assert!(audit.contains(line), "{line}: {audit}");
    }
    let told = json(&env.run(&["audit", "--boundary", "--json"]).success().stdout);
    assert_eq!(
        (told["type"].as_str(), told["losses"][0]["kind"].as_str()),
        (Some("boundary"), Some("requests"))
    );
    // It says what made it, behind which turn, and what it did to the context.
    let status = json(&env.run(&["status", "--json"]).success().stdout);
    assert_eq!(
        (&told["trigger"], &told["turn"]),
        (&"manual".into(), &status["checkpoint"]),
        "{told} {status}"
    );
    let [before, after] = [0, 1].map(|n| told["tokens"][n].as_u64().unwrap());
    assert!(
        done.contains(&format!(
            "went from about {} to ",
            format_args!("{},{:03}", before / 1000, before % 1000)
        )) && before > after,
        "{done} {told}"
    );
    // What names it goes as a whole, and does not count as nothing.
    env.run_with_stdin(&["redact", "--yes"], b"build_all").success();
    let audit = env.run(&["audit", "--boundary"]).success().stdout;
    assert!(audit.contains("lost was redacted") && !audit.contains("Nothing"), "{audit}");
    let told = json(&env.run(&["audit", "--boundary", "--json"]).success().stdout);
    assert_eq!((&told["losses"], &told["redacted"]), (&serde_json::json!([]), &true.into()));
}

#[test]
fn the_size_that_the_end_of_a_compaction_tells_is_the_one_that_status_tells() {
    let env = talked(40);
    let done = env.run(&["compact", "--events", "--json"]).success();
    let end =
        done.stderr.lines().map(json).find(|event| event["event"] == "compaction_end").unwrap();
    let status = json(&env.run(&["status", "--json"]).success().stdout);
    assert_eq!(end["post_tokens"], status["context"]["tokens"]);
    assert_eq!(json(&done.stdout)["post_tokens"], end["post_tokens"]);
}

#[test]
fn an_agents_own_compactions_are_checked_as_they_are_read() {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let kimi = "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c";
    let told = |name: &str| {
        let path = examples.join(name);
        env.run(&["audit", "--boundary", path.to_str().unwrap()]).success().stdout
    };
    assert_snapshot!(told("claude-garden.jsonl"), @"
    @2  df0df268  2026-08-20 09:01  1,630 → 210 tokens
      11 messages summarised by the agent (manual), 0 kept
      requests: 1 of 2 lost
        Which beds need water today? The notes are in beds.md, the rain in rain.csv.
      paths: 1 of 2 lost: /home/ann/garden/beds.md
    ");
    assert_snapshot!(told("pi-boat.jsonl"), @"
    @2  0fc116e4  2026-07-04 18:01  260 tokens before
      4 messages summarised by the agent, 2 kept
      requests: 1 of 1 lost
        How much paint does the hull take?
      paths: 1 of 1 lost: hull.txt
    ");
    assert_snapshot!(told("native-rewind.jsonl"), @"
    @4  d14b0989  2026-03-14 09:00  1,200 → 300 tokens
      4 messages summarised by the agent (manual), 2 kept
      requests: all 2 are in the summary
    ");
    assert_snapshot!(told("codex-weather.jsonl"), @"This session has no compactions");
    assert_snapshot!(told(kimi), @"This session has no compactions");
}

#[test]
fn a_prompt_that_is_a_session_is_refused() {
    let env = talked(2);
    settings(
        &env,
        "[provider.x]\nkind = \"command\"\ncommand = \"cat\"\n[turn]\nprovider = \"x\"\n",
    );
    let id = json(env.run(&["sessions", "--json"]).success().stdout.lines().next().unwrap());
    let id = id["session"].as_str().unwrap().to_owned();
    for word in [&id[..], &id[..8]] {
        let refused = env.run(&["turn", word]);
        assert_eq!(refused.code(), Some(2), "{refused}");
        assert!(refused.stderr.contains("`turn` takes a PROMPT here"), "{refused}");
        assert!(refused.stderr.contains(&format!("undertext turn -s {word}")), "{refused}");
    }
}
