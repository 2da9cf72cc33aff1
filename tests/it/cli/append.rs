//! `append`: what is appended comes back as it was, all of it or nothing.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;

use super::{conversation, json, live};
use crate::env::TestEnv;

/// Returns the last record of the live file.
fn last(env: &TestEnv, session: &str) -> Value {
    let live = String::from_utf8(live(env, session)).unwrap();
    json(live.lines().last().unwrap())
}

#[test]
fn a_message_a_call_its_result_and_a_note_are_appended() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    assert_snapshot!(env.run(&["append", "Why?"]).masked(), @"
    Session entry-id  Why?  (native)
    entry-id  00e47279-7938-77eb-9c06-ac3c621b41f7
    ------- stderr -------
    Checkpoint 0 marks the start of the new turn
    ");
    assert_snapshot!(env.run(&["append", "--call", "Read", "--input", "{}"]).masked(), @"
    Session entry-id  Why?  (native)
    entry-id  00e47279-7d20-7f4d-b4a6-5c7e44ae1bff  call_7f4db4a65c7e4ad3a844ae1bff8e897e
    ");
    let result = ["append", "--result", "c2", "--error", "no such file", "--json"];
    let call = ["append", "--json", "--call", "Read", "--input", "{}", "--id", "c2"];
    assert_snapshot!(env.run(&call).masked(), @r#"{"type":"entry","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why?","format":"native","entry":"entry-id","uuid":"00e47279-8108-7b82-a1e1-39650e4558ea","operation":4,"call":"c2"}"#);
    assert_snapshot!(env.run(&result).masked(), @r#"{"type":"entry","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why?","format":"native","entry":"entry-id","uuid":"00e47279-84f0-716a-a126-74dc9ffb9450","operation":5}"#);
    let unknown = ["append", "--result", "c3", "No such call."];
    assert_snapshot!(env.run(&unknown), @r#"
    ------- stderr -------
    error: no call on the current path has the id "c3"
    hint: see the help: undertext append --help
    [exit status: 2]
    "#);
    assert_snapshot!(env.run(&["append", "--note", "All tests pass"]).masked(), @"
    Session entry-id  Why?  (native)
    entry-id  00e47279-8cc0-79ce-be96-dc4dba2b8e31
    ");
}

#[test]
fn text_and_input_are_kept_to_the_last_byte() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let odd = "a\u{0}\u{1b}[31m\u{7f}\u{9b}\u{202e}\r\n\t\"\\ 👩‍👩‍👧 \u{10ffff}\n";
    let long = odd.repeat(10_000_000 / odd.len());
    for (role, text) in [("user", odd), ("assistant", &long)] {
        env.run_with_stdin(&["append", "--role", role, "-"], text.as_bytes()).success();
        assert!(last(&env, &session)["message"]["content"] == text, "{} bytes", text.len());
    }
    let input = "{\"n\":12345678901234567890123,\n \"n\":1.0}";
    env.run(&["append", "--call", "Add", "--input", input]).success();
    let live = String::from_utf8(live(&env, &session)).unwrap();
    assert!(live.ends_with("\"input\":{\"n\":12345678901234567890123,  \"n\":1.0}}}\n"));
    env.run(&["verify"]).success();
}

#[test]
fn records_are_one_operation_and_an_invalid_one_writes_nothing() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let before = live(&env, &session);
    let record =
        |text: &str| format!(r#"{{"type":"user","message":{{"role":"user","content":"{text}"}}}}"#);
    let wrong = [record("one"), String::new(), r#"{"type":"usr"}"#.to_owned()].join("\n");
    assert_snapshot!(env.run_with_stdin(&["append"], wrong.as_bytes()), @r#"
    ------- stderr -------
    error: line 3: the record's type is "usr", but must be one of user, assistant, tool_use, tool_result, system
    hint: nothing was written; fix the line and try again
    hint: a valid line: {"role":"user","content":"What is in /w?"}
    [exit status: 2]
    "#);
    assert_snapshot!(env.run_with_stdin(&["append", "--jsonl"], b"\n{\"a\":\"\xff\"}"), @r#"
    ------- stderr -------
    error: line 2: the record is not UTF-8
    hint: nothing was written; fix the line and try again
    hint: a valid line: {"role":"user","content":"What is in /w?"}
    [exit status: 2]
    "#);
    assert!(live(&env, &session) == before);

    let many: Vec<String> = (0..1000).map(|n| record(&format!("turn {n}"))).collect();
    assert_snapshot!(env.run_with_stdin(&["append"], many.join("\n").as_bytes()).masked(), @"
    Session entry-id  Why does the build fail?  (native)
    1,000 entries, entry-id to entry-id
    ------- stderr -------
    Checkpoints 2 to 1001 mark the starts of the new turns
    ");
    assert_snapshot!(env.run(&["operations", "-n", "1"]), @"6  2001-02-03 04:05  append  1,000 entries on main");
    assert_snapshot!(env.run(&["append"]), @r"
    ------- stderr -------
    There were no records; nothing was appended
    ");
}

#[test]
fn a_record_that_is_there_already_changes_nothing() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let file = live(&env, &session);
    assert_snapshot!(env.run_with_stdin(&["append"], &file).masked(), @"
    Session entry-id  Why does the build fail?  (native)
    entry-id  00e47279-7938-77eb-9c06-ac3c621b41f7
    entry-id  00e47279-7d20-7f4d-b4a6-5c7e44ae1bff
    entry-id  00e47279-8108-7b82-a1e1-39650e4558ea
    entry-id  00e47279-84f0-716a-a126-74dc9ffb9450
    ------- stderr -------
    Already appended; nothing was changed
    ");
    assert!(live(&env, &session) == file);
    let other = String::from_utf8(file).unwrap().replace("Done.", "Not done.");
    let output = env.run_with_stdin(&["append"], other.as_bytes());
    assert_snapshot!(output, @r#"
    ------- stderr -------
    error: line 4: another record already has the uuid 00e47279-84f0-716a-a126-74dc9ffb9450
    hint: nothing was written; fix the line and try again
    hint: a valid line: {"role":"user","content":"What is in /w?"}
    [exit status: 2]
    "#);
}

#[test]
fn a_call_or_an_answer_that_no_provider_takes_is_refused() {
    let env = TestEnv::new();
    conversation(&env);
    let call = |input: &str, id: &str, tool: &str| {
        env.run(&["append", "--call", tool, "--input", input, "--id", id])
    };
    call("{}", "once", "Read").success();
    env.run(&["append", "--result", "once", "first"]).success();
    let before = env.run(&["export"]).success().stdout;
    for (refused, why) in [
        (call("5", "n", "Read"), "the arguments of a call must be a JSON object"),
        (call("[1]", "n", "Read"), "the arguments of a call must be a JSON object"),
        (call("{}", "n", " "), "the call has no tool name"),
        (call("{}", "", "Read"), "the id of the call is empty"),
        (call("{}", "once", "Read"), "a call on the current path already has the id \"once\""),
        (
            env.run(&["append", "--result", "once", "second"]),
            "the call \"once\" already has a result",
        ),
    ] {
        assert_eq!(refused.code(), Some(2), "{why}: {refused}");
        assert!(refused.stderr.contains(why), "{refused}");
    }
    assert_eq!(env.run(&["export"]).success().stdout, before);
    let words = env.run_with_stdin(&["append"], b"hello\n");
    assert!(words.stderr.contains("hint: to append it as text: undertext append -"), "{words}");
}

#[test]
fn wrong_uses_are_explained() {
    let env = TestEnv::new();
    conversation(&env);
    assert_snapshot!(env.run(&["append", "--call", "Read"]), @"
    ------- stderr -------
    error: the following required arguments were not provided: --input <JSON>
    hint: see the help: undertext append --help
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["append", "--call", "Read", "--input", "{"]), @"
    ------- stderr -------
    error: the tool's input is not JSON: EOF while parsing an object at line 1 column 1
    hint: see the help: undertext append --help
    [exit status: 2]
    ");
    assert_snapshot!(env.run_with_stdin(&["append", "-"], b"caf\xe9"), @"
    ------- stderr -------
    error: the text on stdin is not UTF-8 at byte 3; nothing was appended
    hint: see the help: undertext append --help
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["append", "--jsonl", "no-such.jsonl"]), @"
    ------- stderr -------
    error: cannot read no-such.jsonl: there is no such file or folder
    hint: see the help: undertext append --help
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["append", "text", "-s", "../../etc'; DROP TABLE entry;--\x1b"]), @r"
    ------- stderr -------
    error: there is no file or session ../../etc'; DROP TABLE entry;--\x1b
    hint: list the sessions: undertext sessions
    [exit status: 1]
    ");
}

#[test]
fn nobody_says_nothing() {
    let env = TestEnv::new();
    super::conversation(&env);
    for role in ["user", "assistant", "system"] {
        let said = env.run(&["append", "--role", role, ""]);
        assert_eq!(said.code(), Some(2), "{said}");
        let told = "error: the text is empty; nothing was appended\n";
        assert!(said.stderr.starts_with(told), "{said}");
    }
}

#[test]
fn a_session_that_takes_no_records_says_how_it_is_appended_to() {
    let env = TestEnv::new();
    let record = br#"{"type":"user","message":{"role":"user","content":"J"}}"#;
    for (name, agent) in
        [("claude-garden", None), ("codex-weather", Some("Codex")), ("pi-boat", Some("pi"))]
    {
        let file = format!("{}/examples/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let told = env.run(&["import", "--json", &file]).success().stdout;
        let session = json(told.lines().next().unwrap())["session"].as_str().unwrap().to_owned();
        let told = env.run_with_stdin(&["append", "-s", &session], record);
        let Some(agent) = agent else {
            told.success();
            continue;
        };
        assert_eq!(
            told.stderr,
            format!(
                "error: {agent}'s sessions do not take raw records; use --role, --call, --result or --note\n\
                 hint: see the help: undertext append --help\n"
            )
        );
        assert_eq!(told.code(), Some(2));
    }
}

#[test]
fn what_went_wrong_is_said_behind_what_a_tool_put_out() {
    let env = TestEnv::new();
    for name in ["claude-garden", "codex-weather", "pi-boat", "native-tools"] {
        let file = format!("{}/examples/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let told = env.run(&["import", "--json", &file]).success().stdout;
        let session = json(told.lines().next().unwrap())["session"].as_str().unwrap().to_owned();
        let call = ["append", "-s", &session, "--call", "Bash", "--input", "{}", "--id", "c9"];
        env.run(&call).success();
        let result =
            ["append", "-s", &session, "-", "--result", "c9", "--error", "linker failed", "--json"];
        let told = env.run_with_stdin(&result, b"building...").success().stdout;
        let entry = json(&told)["entry"].as_str().unwrap().to_owned();
        let shown = env.run(&["show", &entry, "--json", "-s", &session]).success().stdout;
        let shown = json(shown.lines().next().unwrap());
        assert_eq!(shown["blocks"][0]["text"], "building...\nlinker failed", "{name}: {shown:#}");
    }
}

#[test]
fn a_result_that_is_cut_names_its_tool_however_far_above_its_call_stands() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    env.run(&["append", "Build it"]).success();
    env.run(&["append", "--call", "Bash", "--input", "{}", "--id", "c9"]).success();
    let between = r#"{"type":"system","message":{"role":"system","content":"still at it"}}"#
        .to_owned()
        + "\n";
    env.run_with_stdin(&["append", "--jsonl"], between.repeat(70).as_bytes()).success();
    let long = "a line of what it put out\n".repeat(400);
    let result = ["append", "-", "--result", "c9", "--max-chars", "2000"];
    env.run_with_stdin(&result, long.as_bytes()).success();
    let told = env.run(&["audit", "--json"]).success().stdout;
    assert_eq!(json(told.lines().next().unwrap())["tool"], "Bash", "{told}");
}

#[test]
fn an_answer_and_a_call_are_stored_with_model_usage_and_metadata() {
    let env = TestEnv::new();
    env.run(&["new", "-q", "--id", "one"]).success();
    env.run(&["append", "-q", "Why?"]).success();
    let about = ["--model", "m-1", "--usage", "1200,85", "--meta", "trace=x=y", "--meta", "cost="];
    let answer = ["append", "-q", "--role", "assistant", "Because."];
    let call = ["append", "-q", "--call", "Read", "--input", "{}", "--id", "c1"];
    let usage =
        serde_json::json!({ "input": 1200, "output": 85, "cache_read": 0, "cache_write": 0 });
    for (args, kind) in [(&answer[..], "assistant"), (&call, "tool_use")] {
        env.run(&[args, &about].concat()).success();
        let record = last(&env, "one");
        assert_eq!(record["type"], kind);
        assert_eq!(record["message"]["model"], "m-1");
        assert_eq!(record["message"]["usage"]["input_tokens"], 1200);
        assert_eq!(record["meta"], serde_json::json!({ "cost": "", "trace": "x=y" }));
        let log = env.run(&["log", "--json", "-n", "1"]).success().stdout;
        for shown in [log, env.run(&["show", "HEAD", "--json"]).success().stdout] {
            let shown = json(&shown);
            assert_eq!((&shown["model"], &shown["usage"]), (&"m-1".into(), &usage), "{shown}");
            assert_eq!(shown["meta"], record["meta"], "{shown}");
        }
        // A report counts like that of an answer to `turn`.
        let status = json(&env.run(&["status", "--json"]).success().stdout);
        assert_eq!(
            (&status["context"]["counted"], &status["context"]["model"]),
            (&"reported".into(), &"m-1".into()),
            "{status}"
        );
    }
    env.run(&["append", "-q", "--result", "c1", "done"]).success();
    let plain = env.run(&["log", "--json", "-n", "1"]).success().stdout;
    assert!(!plain.contains("\"meta\"") && plain.contains("\"usage\":null"), "{plain}");
    env.run(&["verify"]).success();
}

#[test]
fn metadata_without_a_place_is_refused_and_nothing_is_written() {
    let env = TestEnv::new();
    env.run(&["new", "-q", "--id", "one"]).success();
    env.run(&["append", "-q", "Why?"]).success();
    let before = live(&env, "one");
    assert_snapshot!(env.run(&["append", "--usage", "1,2", "Why?"]), @r"
    ------- stderr -------
    error: --model, --usage and --meta are for what a model says or calls
    hint: add --role assistant, or use --call
    hint: see the help: undertext append --help
    [exit status: 2]
    ");
    for args in [
        &["--role", "user", "Why?", "--model", "m"][..],
        &["--note", "Why?", "--meta", "a=b"],
        &["--jsonl", "-", "--meta", "a=b"],
        &["--role", "assistant", "Why?", "--usage", "1"],
        &["--role", "assistant", "Why?", "--usage", "1,-2"],
        &["--role", "assistant", "Why?", "--usage", "+1,2"],
        &["--role", "assistant", "Why?", "--meta", "=b"],
        &["--call", "Read", "--input", "[]", "--model", "m"],
        &["--call", " ", "--input", "{}", "--model", "m"],
    ] {
        let refused = env.run(&[&["append"], args].concat());
        assert!(refused.to_string().contains("[exit status: 2]"), "{args:?}: {refused}");
    }
    assert_eq!(live(&env, "one"), before);
}

/// Each format has its own places.
#[test]
fn a_record_of_an_agent_gets_what_it_has_a_place_for() {
    let tried = [["--model", "m-1"], ["--usage", "1200,85"], ["--meta", "a=b"]];
    for (name, places) in [
        ("claude-garden.jsonl", [true, true, false]),
        ("pi-boat.jsonl", [true, true, false]),
        ("codex-weather.jsonl", [false, false, false]),
        (
            "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
            [false, false, false],
        ),
    ] {
        for (about, has_place) in tried.iter().zip(places) {
            let env = TestEnv::new();
            let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
            let file = env.project().join(Path::new(name).file_name().unwrap());
            fs::copy(examples.join(name), &file).unwrap();
            let before = fs::read(&file).unwrap();
            let file = file.to_str().unwrap();
            for said in [
                &["--role", "assistant", "Yes."][..],
                &["--call", "Read", "--input", "{}", "--id", "c1"],
            ] {
                let args = [&["append", "--force", "-s", file], said, &about[..]].concat();
                let done = env.run(&args);
                if !has_place {
                    assert!(done.stderr.contains("session has no place for"), "{name}: {done}");
                    assert_eq!(fs::read(file).unwrap(), before, "{name}");
                    continue;
                }
                let entry = env.run(&["log", "--json", "-n", "1", "-s", file]).success().stdout;
                let entry = json(done.success().stdout.lines().last().map_or("", |_| entry.trim()));
                match about[0] {
                    // pi goes on with its own model, so this one has another field there.
                    "--model" if name.starts_with("pi") => {
                        let written = fs::read_to_string(file).unwrap();
                        assert!(written.contains("\"responseModel\":\"m-1\""), "{entry}");
                    }
                    "--model" => assert_eq!(entry["model"], "m-1", "{name}: {entry}"),
                    _ => assert_eq!(entry["usage"]["input"], 1200, "{name}: {entry}"),
                }
            }
        }
    }
}
