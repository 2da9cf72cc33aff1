//! `search`: what was said is found wherever it stands, once, and each hit says how to see it.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};
use undertext::wire::Speaker;

use super::{Stored, conversation, json, with_examples};
use crate::env::TestEnv;

/// Returns what makes a search one for a text as it stands, unless the arguments make it one for another pattern.
fn exact(args: &[&str]) -> &'static [&'static str] {
    if args.iter().any(|arg| ["--regex", "--word"].contains(arg)) { &[] } else { &["-F"] }
}

/// Returns where each line stands that a search finds, by the words of the line.
pub(super) fn lines_found(env: &TestEnv, args: &[&str]) -> Vec<(String, String)> {
    let told = env.run(&[&["search", "--json"], exact(args), args].concat()).stdout;
    let hits = told.lines().map(json).filter(|line| line["type"] == "hit");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    hits.map(|hit| (text(&hit["text"]), text(&hit["stands"]) + &text(&hit["branch"]))).collect()
}

#[test]
fn a_hit_says_where_it_stands_and_how_to_see_it() {
    let Stored { env, archive, .. } = Stored::reverted();
    drop(archive);
    assert_snapshot!(env.run(&["search", "red"]).masked(), @"
    3 messages in 1 session

    entry-id  native  Paint the boat.  ~/project
      entry-id@0.1   user       current  Red paint is sold out.
      entry-id       assistant  reverted: main.1  Red it is.
      entry-id       user       reverted: main.1  Red.
    ------- stderr -------
    hint: open one: undertext show entry-id@0.1
    ");
    let told = env.run(&["search", "Red", "--role", "assistant", "--json"]).masked();
    assert_snapshot!(told, @r#"
    {"type":"hit","agent":"native","session":"00000001-0000-0000-0000-000000000000","title":"Paint the boat.","folder":"$HOME/project","parent":null,"entry":"entry-id","turn":1,"step":null,"stands":"branch","branch":"main.1","sub_agent":false,"time":"2001-02-03T04:05:16.000Z","role":"assistant","tool":null,"line":1,"text":"Red it is.","matches":[[0,3]],"before":[],"after":[],"places":[]}
    {"type":"searched","lines":1,"messages":1,"sessions":1,"missing":[],"more":false,"damaged":0}
    "#);
    // What a hit says to type shows it.
    let shown = env.run(&["search", "sold"]).success().stderr;
    let typed = shown.lines().find_map(|line| line.strip_prefix("hint: open one: undertext "));
    let typed = typed.unwrap();
    let typed: Vec<&str> = typed.split(' ').collect();
    assert!(env.run(&typed).success().stdout.contains("Red paint is sold out."));
}

#[test]
fn what_was_undone_or_cut_or_is_above_a_compaction_is_found() {
    let mut stored = Stored::new();
    stored.say(Speaker::User, "Sow the beans.");
    let Stored { env, archive, .. } = stored;
    drop(archive);
    env.run(&["append", "--role", "assistant", "The beans are sown."]).success();
    env.run(&["undo"]).success();
    let found = lines_found(&env, &["beans"]);
    let expected = [("The beans are sown.", "undone"), ("Sow the beans.", "current")];
    assert_eq!(found, expected.map(|(line, stands)| (line.to_owned(), stands.to_owned())));

    let answer = (1..=400).map(|n| format!("{n}: bean\n")).collect::<Vec<_>>().concat();
    env.run(&["append", "--call", "Count", "--input", "{}", "--id", "c"]).success();
    env.run_with_stdin(&["append", "--result", "c", "-"], answer.as_bytes()).success();
    env.run(&["truncate", "--max-chars", "2000"]).success();
    let found = lines_found(&env, &["bean", "--tool", "Count"]);
    let expected = |(at, line): (usize, &str)| {
        let is_shown = found.iter().filter(|(found, _)| found == line).count() == 2;
        is_shown || found.contains(&(line.to_owned(), "truncated".to_owned())) && at > 100
    };
    assert!(answer.lines().enumerate().all(expected), "{found:?}");

    let garden = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let found = lines_found(&env, &["beds", "-s", garden.to_str().unwrap()]);
    assert!(found.iter().any(|(_, stands)| stands == "compacted"), "{found:?}");
}

#[test]
fn log_and_graph_mark_what_is_looked_for() {
    let Stored { env, archive, .. } = Stored::reverted();
    drop(archive);
    assert_snapshot!(env.run(&["graph", "--grep", "red"]).masked(), @"
    entry-id  Paint the boat.                                                                3 Feb 04:05
    ◉      04:05  found  from later:  Red paint is sold out.                                   main
    │ ○      04:05  found in 2  Red.                                                           main.1
    ├─╯
    ○  @0  04:05  Paint the boat.  @1 before colours
    entry-id is at @1
    ");
    assert_snapshot!(env.run(&["log", "--grep", "BOAT"]).masked(), @"
    ------- stderr -------
    Nothing was found
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["log", "--grep", "boat", "-n", "5"]).masked(), @r"
    @0  user  entry-id  04:05
      Paint the boat.
    ");
    assert_snapshot!(env.run(&["graph", "--grep", ""]), @"
    ------- stderr -------
    error: invalid value '' for '--grep <WORDS>': the pattern is empty
    hint: see the help: undertext graph --help
    [exit status: 2]
    ");
    let nodes = env.run(&["graph", "--json", "--grep", "red"]).success().stdout;
    let found = |line: &str| json(line)["found"].as_u64().unwrap_or_default();
    assert_eq!(nodes.lines().map(found).sum::<u64>(), 3);
}

#[test]
fn what_forks_share_is_found_once_with_its_places() {
    let env = TestEnv::new();
    let garden = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let text = fs::read_to_string(garden).unwrap();
    let own = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";
    assert!(text.contains(own));
    for n in 1..=3 {
        let fork = format!("{n}{}", &own[1..]);
        let path = env.project().join(format!("{fork}.jsonl"));
        fs::write(&path, text.replace(own, &fork)).unwrap();
        env.run(&["import", "-q", path.to_str().unwrap()]).success();
    }
    let told = env.run(&["search", "--json", "-F", "Which beds"]).success().stdout;
    let hits: Vec<_> = told.lines().map(json).filter(|line| line["type"] == "hit").collect();
    assert_eq!(hits.len(), 1, "{told}");
    assert_eq!(hits[0]["places"].as_array().unwrap().len(), 2);
    let full = env.run(&["search", "-F", "--full", "Which beds"]).success().stdout;
    assert!(full.contains("and at 2 other places"), "{full}");
    let counted = env.run(&["search", "-F", "--count", "Which beds"]).success();
    assert_eq!(counted.stdout.lines().count(), 1, "{}", counted.stdout);
}

#[test]
fn what_a_newer_session_left_behind_is_shown_where_another_one_goes_on_from_it() {
    let env = TestEnv::new();
    let said = |session: &str,
                uuid: &str,
                parent: &str,
                (kind, minute): (&str, u32),
                words: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"sessionId\":\"{session}\",\"type\":\"{kind}\",\
             \"message\":{{\"role\":\"{kind}\",\"content\":\"{words}\"}},\"uuid\":\"{uuid}\",\
             \"timestamp\":\"2026-03-01T10:{minute:02}:00.000Z\"}}\n"
        )
    };
    let shared = |session: &str| {
        let question = said(session, "a", "null", ("user", 0), "Where is the heron?");
        question + &said(session, "b", "\"a\"", ("assistant", 1), "By the pond.")
    };
    let more = said("older", "c", "\"b\"", ("user", 2), "Is it asleep?");
    fs::write(env.project().join("older.jsonl"), shared("older") + &more).unwrap();
    let other = said("newer", "d", "null", ("user", 5), "Count the newts.");
    let other = other + &said("newer", "e", "\"d\"", ("assistant", 6), "Seven.");
    fs::write(env.project().join("newer.jsonl"), shared("newer") + &other).unwrap();
    env.run(&["import", "-q", "older.jsonl", "newer.jsonl"]).success();
    for indexed in [false, true] {
        if indexed {
            env.run(&["store", "index"]).success();
        }
        let found = env.run(&["search", "--json", "heron"]).success().stdout;
        let hit = json(found.lines().next().unwrap());
        assert_eq!(
            (&hit["session"], &hit["stands"]),
            (&"older".into(), &"current".into()),
            "{found}"
        );
        assert_eq!(hit["places"][0]["session"], "newer", "{found}");
        assert_eq!(hit["places"][0]["stands"], "left", "{found}");
    }
}

#[test]
fn what_a_live_file_holds_beyond_the_store_is_found() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let live = super::live_path(&env, &session);
    let grown = fs::read_to_string(&live).unwrap().replace("Done.", "It holds now.");
    let last = grown.lines().last().unwrap().replacen("\"uuid\":\"", "\"uuid\":\"later-", 1);
    let whole = fs::read_to_string(&live).unwrap() + &last + "\n";
    fs::write(&live, whole).unwrap();
    let found = lines_found(&env, &["it holds"]);
    assert_eq!(found.len(), 1);
}

#[test]
fn what_is_no_text_is_found_as_it_is_shown() {
    let env = TestEnv::new();
    let line = |n: u32, text: &[u8]| {
        let uuid = format!("aa00000{n}-0000-4000-8000-000000000000");
        let before = format!(
            r#"{{"type":"user","sessionId":"s","uuid":"{uuid}","parentUuid":null,"timestamp":"2026-03-14T09:00:0{n}.000Z","message":{{"role":"user","content":""#
        );
        [before.as_bytes(), text, b"\"}}\n"].concat()
    };
    let lines = [line(1, b"cut \xff"), line(2, br"half \ud83d of it"), line(3, b"caf\xe9s")];
    let file = env.home().join("s.jsonl");
    fs::write(&file, lines.concat()).unwrap();
    env.run(&["import", file.to_str().unwrap()]).success();
    for _indexed in [false, true] {
        for (words, expected) in [
            (&["cut \u{fffd}"][..], 1),
            (&["half \u{fffd} of"], 1),
            (&["caf\u{fffd}s"], 1),
            (&["--word", "caf\u{fffd}s"], 1),
            (&["--word", "cut \u{fffd}"], 1),
            (&["--regex", "(cut|half) [\u{fffd}x]"], 2),
            (&["\u{fffd}"], 3),
        ] {
            assert_eq!(lines_found(&env, words).len(), expected, "{words:?}");
        }
        let told =
            env.run(&["log", "--grep", "caf\u{fffd}s", file.to_str().unwrap()]).success().stdout;
        assert!(told.contains("caf\u{fffd}s"), "{told}");
        env.run(&["store", "index"]).success();
    }
}

/// Imports a session of records, as an agent names its file.
fn import(env: &TestEnv, name: &str, records: &[Value]) {
    let file = env.home().join(name);
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    env.run(&["import", file.to_str().unwrap()]).success();
}

/// Checks that these texts are found, each once, and that these others are not, without an index and with one.
fn check_found(env: &TestEnv, found: &[&str], missing: &[&str]) {
    for _indexed in [false, true] {
        for text in found {
            assert_eq!(lines_found(env, &[text]).len(), 1, "{text}");
            env.run(&["search", text]).success();
        }
        for text in missing {
            assert_eq!(lines_found(env, &[text]), [], "{text}");
        }
        env.run(&["store", "index"]).success();
    }
}

#[test]
fn what_claude_code_says_beside_the_conversation_is_found() {
    let env = TestEnv::new();
    let time = "2026-03-14T09:00:00.000Z";
    let link = |uuid: &str, class: &str, more: Value| {
        let mut link = json!({ "type": class, "uuid": uuid, "parentUuid": null, "sessionId": "s",
            "isSidechain": false, "timestamp": time });
        link.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        link
    };
    let said = |words: &str| json!({ "message": { "role": "user", "content": words } });
    let answer = json!([{ "type": "tool_result", "tool_use_id": "c", "content": "nine newts" }]);
    let new = json!({ "type": "user", "uuid": "n", "timestamp": time,
        "message": { "role": "user", "content": answer } });
    let progress = json!({ "data": { "type": "agent_progress", "prompt": "Count the pond.",
        "message": new, "normalizedMessages": [new] } });
    let title = json!({ "type": "custom-title", "customTitle": "Herons", "sessionId": "s" });
    let records = [
        link("a", "user", said("Where is the bird?")),
        title.clone(),
        json!({ "type": "ai-title", "aiTitle": "A bird by the pond", "sessionId": "s" }),
        json!({ "type": "summary", "summary": "Looking for egrets", "leafUuid": "leaf-a" }),
        json!({ "type": "last-prompt", "lastPrompt": "Is it asleep?", "sessionId": "s", "leafUuid": "leaf-a" }),
        json!({ "type": "queue-operation", "operation": "enqueue", "timestamp": time,
            "content": "and the coots", "sessionId": "s" }),
        link("p", "progress", progress),
        title,
    ];
    import(&env, "s.jsonl", &records);
    let found = ["Herons", "by the pond", "for egrets", "it asleep", "and the coots", "nine newts"];
    check_found(&env, &found, &["leaf-a", "Count the pond", "enqueue"]);
    assert_eq!(lines_found(&env, &["Herons"])[0].1, "current");
    let told = env.run(&["search", "--json", "-F", "nine newts"]).success().stdout;
    assert_eq!(json(told.lines().next().unwrap())["role"], "tool");
}

#[test]
fn what_codex_says_beside_the_conversation_and_what_it_refuses_is_found() {
    let env = TestEnv::new();
    let record = |class: &str, payload: Value| json!({ "timestamp": "2026-03-14T09:00:00.000Z", "type": class, "payload": payload });
    let event = |payload| record("event_msg", payload);
    let report = json!({ "output": "first row\nsecond \"row\"", "metadata": { "exit_code": 1 } });
    let other = json!({ "output": "third row", "error": "no disk" });
    let result = |output: &Value| {
        let output = output.to_string();
        record(
            "response_item",
            json!({ "type": "function_call_output", "call_id": "c", "output": output }),
        )
    };
    let shown = json!([{ "type": "input_text", "text": "Look at the heron." },
        { "type": "input_image", "image_url": null }]);
    let said = json!([{ "type": "output_text", "text": "It sleeps." }]);
    let records = [
        record(
            "session_meta",
            json!({ "id": "5973b6c0-94b8-487b-a530-2aeb6098ae0e", "cwd": "/w",
                "timestamp": "2026-03-14T09:00:00.000Z", "cli_version": "0.150.0" }),
        ),
        record("response_item", json!({ "type": "message", "role": "user", "content": shown })),
        record("response_item", json!({ "type": "message", "role": "assistant", "content": said })),
        event(json!({ "type": "agent_message", "message": "It sleeps." })),
        event(json!({ "type": "error", "message": "The pond is closed." })),
        event(json!({ "type": "exited_review_mode",
            "review_output": { "findings": [{ "title": "A leaky dam" }] } })),
        result(&report),
        result(&other),
    ];
    import(
        &env,
        "rollout-2026-03-14T09-00-00-5973b6c0-94b8-487b-a530-2aeb6098ae0e.jsonl",
        &records,
    );
    let found = [
        "Look at the heron.",
        "It sleeps.",
        "The pond is closed.",
        "A leaky dam",
        "second \"row\"",
        r#""error":"no disk""#,
    ];
    check_found(&env, &found, &["exit_code", "first row\\nsecond"]);
    assert_eq!(lines_found(&env, &["--regex", "^second"])[0].0, "second \"row\"");
}

#[test]
fn words_that_pi_puts_around_its_own_are_found() {
    let env = TestEnv::new();
    let entry = |id: &str, parent: Option<&str>, class: &str, more: Value| {
        let mut entry = json!({ "type": class, "id": id, "parentId": parent,
            "timestamp": "2026-03-14T09:00:00.000Z" });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    let command = json!({ "message": { "role": "bashExecution", "command": "ls pond",
        "output": "newts", "exitCode": 2 } });
    let records = [
        json!({ "type": "session", "version": 3, "id": "s", "cwd": "/w",
            "timestamp": "2026-03-14T09:00:00.000Z" }),
        entry("a", None, "message", command),
        entry("b", Some("a"), "branch_summary", json!({ "summary": "No coots.", "fromId": "x" })),
        entry("c", Some("b"), "session_info", json!({ "name": "Herons" })),
        entry("d", Some("c"), "label", json!({ "targetId": "a", "label": "an egret" })),
    ];
    import(&env, "2026-03-14T09-00-00-000Z_s.jsonl", &records);
    let found = [
        "Ran `ls pond`",
        "Command exited with code 2",
        "a branch that this conversation came back from",
        "No coots.",
        "Herons",
        "an egret",
    ];
    check_found(&env, &found, &["bashExecution"]);
}

#[test]
fn filters_leave_what_is_asked_for() {
    let env = with_examples();
    env.run(&["import", "native-tools.jsonl", "native-rewind.jsonl"]).success();
    let count = |args: &[&str]| lines_found(&env, &[&["-i", "the"], args].concat()).len();
    let all = count(&[]);
    let parts = ["user", "assistant", "tool", "system"].map(|role| count(&["--role", role]));
    assert_eq!(parts.iter().sum::<usize>(), all);
    assert!(parts[2] > 0 && parts[2] < all, "{parts:?}");
    assert_eq!(count(&["--agent", "native"]), all);
    assert_eq!(count(&["--agent", "pi"]), 0);
    assert_eq!(count(&["--folder", "/nowhere"]), 0);
    assert_eq!(count(&["--until", "1970-01-02"]), 0);
    assert_eq!(count(&["--since", "1970-01-02"]), all);
    assert_eq!(count(&["--tool", "no such tool"]), 0);
    assert!(count(&["--branch", "main"]) <= all);
    assert_eq!(count(&["-n", "0"]), all);
    assert!(count(&["-n", "1"]) < all);
    let within = ["messages", "commands", "edits", "results"].map(|part| count(&["--in", part]));
    assert!(within.iter().sum::<usize>() <= all && within[0] > 0 && within[3] > 0, "{within:?}");
    assert!(count(&["--reverted"]) < all);
    // They hold for a session that is named too.
    let listed = env.run(&["sessions", "--json"]).success().stdout;
    let session = json(listed.lines().next().unwrap())["session"].as_str().unwrap().to_owned();
    let of_it = count(&["-s", &session]);
    assert!(0 < of_it && of_it < all);
    assert_eq!(count(&["-s", &session, "--agent", "native"]), of_it);
    assert_eq!(count(&["-s", &session, "--agent", "pi"]), 0);
    assert_eq!(count(&["-s", &session, "--folder", "/nowhere"]), 0);
    assert_eq!(count(&["-s", &session, "--branch", "main"]).min(1), 1);
    for args in [
        &["search", "the", "-s", &session, "--branch", "nope"][..],
        &["search", "--count", "the", "-s", &session, "--branch", "nope"],
    ] {
        let refused = env.run(args);
        assert_eq!(refused.code(), Some(1), "{refused}");
        assert!(refused.stderr.contains("no branch"), "{refused}");
    }
}

/// Returns the lines that a person is shown, in order.
fn shown(env: &TestEnv, args: &[&str]) -> Vec<String> {
    let told = env.run(&[&["search"], args].concat()).success().stdout;
    let lines = told.lines().filter(|line| line.starts_with("  "));
    let parts = lines.map(|line| line.trim().split("  ").filter(|part| !part.is_empty()));
    parts.map(|parts| parts.last().unwrap().trim().to_owned()).collect()
}

#[test]
fn the_best_match_is_shown_first_and_the_newest_if_that_is_asked_for() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    env.run(&["append", "the log is full"]).success();
    env.run(&["append", "--call", "Read", "--input", r#"{"path":"the log"}"#, "--id", "c"])
        .success();
    env.run(&["append", "--result", "c", "a log, read"]).success();
    env.run(&["append", "--role", "assistant", "the logs are rotated"]).success();
    env.run(&["append", "--role", "assistant", "a log that is undone"]).success();
    env.run(&["undo"]).success();
    let by_relevance = [
        "the log is full",
        "the log",
        "the logs are rotated",
        "a log that is undone",
        "a log, read",
    ];
    let mut by_time = by_relevance;
    by_time.sort_by_key(|line| {
        let order = ["a log that is undone", "the logs are rotated", "a log, read", "the log"];
        order.iter().position(|other| other == line).unwrap_or(order.len())
    });
    for _indexed in [false, true] {
        // Of a session three are shown, unless more are asked for.
        assert_eq!(shown(&env, &["log"]), by_relevance[..3]);
        let all = ["log", "--per-session", "0"];
        let sorted = |more: &[&str]| shown(&env, &[&all, more].concat());
        assert_eq!(sorted(&["--sort", "relevance"]), by_relevance);
        // The text that was undone would be among the best if it stood on the current path.
        for n in 1..by_relevance.len() {
            assert_eq!(sorted(&["-n", &n.to_string()]), by_relevance[..n]);
        }
        assert_eq!(sorted(&["--sort", "time"]), by_time);
        assert_eq!(sorted(&["--sort", "time", "-n", "2"]), by_time[..2]);
        // As it stands, the newest are found first.
        let texts = lines_found(&env, &["log"]).into_iter().map(|(text, _)| text);
        assert_eq!(texts.collect::<Vec<_>>(), by_time);
        env.run(&["store", "index"]).success();
    }
    assert_snapshot!(env.run(&["search", "--sort", "size", "log"]), @"
    ------- stderr -------
    error: invalid value 'size' for '--sort <ORDER>': use relevance or time
    hint: see the help: undertext search --help
    [exit status: 2]
    ");
}

/// Returns the texts that a search by words finds, in order.
fn said(env: &TestEnv, words: &[&str]) -> Vec<String> {
    let told = env.run(&[&["search", "--json", "--per-session", "0"], words].concat()).stdout;
    let hits = told.lines().map(json).filter(|line| line["type"] == "hit");
    hits.map(|hit| hit["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn words_are_found_whatever_their_order_case_accents_endings_and_spelling() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    let [worker, city, code, files] = [
        "The retries of the webhook worker are logged",
        "Zu\u{308}rich and \u{141}\u{f3}d\u{17a} are rainy",
        "fn parseLine(HTTPServer2 a) -> snake_case",
        "\u{8bfb}\u{53d6}\u{65e5}\u{5fd7}\u{6587}\u{4ef6}",
    ];
    for text in [worker, city, code, files] {
        env.run(&["append", text]).success();
    }
    for (words, text) in [
        (&["webhook", "retry"][..], worker),
        (&["RETRYING webhooks"], worker),
        (&["the worker that logs"], worker),
        (&["\"webhook worker\""], worker),
        (&["zurich"], city),
        (&["Z\u{dc}RICH"], city),
        (&["lodz"], city),
        (&["parse line"], code),
        (&["parse_line"], code),
        (&["parseLine"], code),
        (&["parseline"], code),
        (&["http server2"], code),
        (&["case snake"], code),
        (&["\u{65e5}\u{5fd7}"], files),
        (&["\u{5fd7}"], files),
        (&["\u{6587}\u{4ef6} \u{65e5}\u{5fd7}"], files),
    ] {
        assert_eq!(said(&env, words), [text], "{words:?}");
    }
    for words in [&["\"worker webhook\""][..], &["\"webhooks worker\""]] {
        assert_eq!(said(&env, words), [""; 0], "{words:?}");
    }
}

#[test]
fn messages_with_all_words_come_first_and_what_is_missing_is_named() {
    let env = TestEnv::new();
    for text in [
        "a heron",
        "the pond and the heron in it",
        "a pond",
        "a heron at the pond",
        "the heron pond",
    ] {
        env.run(&["new"]).success();
        env.run(&["append", text]).success();
    }
    let found = said(&env, &["heron", "pond"]);
    assert_eq!(
        found[..3],
        ["the heron pond", "a heron at the pond", "the pond and the heron in it"]
    );
    assert_eq!(found.len(), 5);
    let head = |args: &[&str]| {
        let told = env.run(&[&["search"], args].concat()).success().stdout;
        told.lines().next().unwrap().to_owned()
    };
    assert_eq!(head(&["heron", "pond"]), "3 messages in 3 sessions, and 2 that have fewer");
    assert_eq!(head(&["heron", "pond", "-n", "2"]), "3 messages in 3 sessions, best 2 shown");
    assert_eq!(
        head(&["heron", "pond", "tiger"]),
        "No message has \"tiger\"; the other words: 3 messages in 3 sessions, and 2 that have fewer"
    );
    let counted = env.run(&["search", "--count", "heron", "pond"]).success();
    assert_eq!((counted.stdout.lines().count(), counted.stderr.trim()), (3, "3 messages in all"));
    assert_eq!(env.run(&["search", "-l", "heron", "pond"]).success().stdout.lines().count(), 3);
    assert_snapshot!(env.run(&["search", "hero"]), @"
    ------- stderr -------
    Nothing was found
    hint: a word that begins so: undertext search heron
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["search", "heron", "--agent", "pi"]), @"
    ------- stderr -------
    Nothing was found
    hint: without the filters, 4 sessions match: undertext search heron
    [exit status: 1]
    ");
}

#[test]
fn a_session_among_the_words_is_named_and_nothing_shows_all_of_it() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let head = &session[..8];
    let told = env.run(&["search", "symbol", head]).success().stderr;
    let hint =
        format!("hint: {head} is a session; search in it: undertext search symbol -s {head}");
    assert!(told.lines().any(|line| line == hint), "{told}");
    for n in 0..6 {
        env.run(&["append", &format!("symbol {n}")]).success();
    }
    let count = |args: &[&str]| shown(&env, &[&["symbol"], args].concat()).len();
    assert_eq!(
        (count(&[]), count(&["-n", "0"]), count(&["-n", "0", "--per-session", "2"])),
        (3, 7, 2)
    );
}

#[test]
fn an_index_that_grew_step_by_step_answers_as_one_that_was_made_at_once() {
    let env = TestEnv::new();
    let folder = env.home().join("many");
    fs::create_dir(&folder).unwrap();
    for n in 0..24 {
        let text = format!("shared {} own{n} {}", "often ".repeat(n % 5), ["even", "odd"][n % 2]);
        let path = folder.join(id(n) + ".jsonl");
        fs::write(&path, record(n, 1000 + n, None, n, &text) + "\n").unwrap();
        env.run(&["import", "-q", path.to_str().unwrap()]).success();
        env.run(&["store", "index"]).success();
    }
    let all = || {
        let asked: [&[&str]; 6] = [
            &["shared"],
            &["often", "odd"],
            &["own7"],
            &["wn1", "-F"],
            &["even", "-l"],
            &["ared", "-F", "-l"],
        ];
        asked.map(|args| env.run(&[&["search", "-n", "0"], args].concat()).success().stdout)
    };
    let step_by_step = all();
    fs::remove_file(index(&env)).unwrap();
    env.run(&["store", "index"]).success();
    assert_eq!(all(), step_by_step);
}

#[test]
fn a_part_of_the_conversation_is_searched() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    env.run(&["append", "a lynx is seen"]).success();
    let call = |name: &str, input: &str, id: &str| {
        env.run(&["append", "--call", name, "--input", input, "--id", id]).success();
        env.run(&["append", "--result", id, &format!("lynx of {id}")]).success();
    };
    call("Bash", r#"{"command":"grep lynx a.md"}"#, "c1");
    call("Write", r#"{"file_path":"a.md","content":"the lynx"}"#, "c2");
    call("Ask", r#"{"question":"which lynx"}"#, "c3");
    for (part, expected) in [
        ("messages", &["a lynx is seen"][..]),
        ("commands", &["grep lynx a.md"]),
        ("edits", &["the lynx"]),
        ("results", &["lynx of c3", "lynx of c2", "lynx of c1"]),
    ] {
        assert_eq!(said(&env, &["lynx", "--in", part, "--sort", "time"]), expected, "{part}");
    }
    env.run(&["undo"]).success();
    assert_eq!(said(&env, &["lynx", "--reverted"]), ["lynx of c3"]);
    assert_eq!(env.run(&["search", "--in", "nowhere", "lynx"]).code(), Some(2));
    // Signs alone are found as they stand.
    env.run(&["append", "a => b"]).success();
    assert_eq!(said(&env, &["=>"]), ["a => b"]);
}

#[test]
fn an_answer_that_the_agent_moved_to_a_file_is_found() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-home-ann-app");
    let results = folder.join(id(1)).join("tool-results");
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("b1.txt"), "line one\nthe kingfisher dives\n").unwrap();
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}]);
    let moved = format!(
        "<persisted-output>\nOutput too large (9KB). Full output saved to: {}\n\nPreview (first 2KB):\nline one\n",
        results.join("b1.txt").display()
    );
    let answer = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": moved}]);
    let mut lines = Vec::new();
    for (n, role, content) in
        [(1, "user", json!("run it")), (2, "assistant", call), (3, "user", answer)]
    {
        let mut line = json(&record(1, n, (n > 1).then(|| n - 1), n, ""));
        line["type"] = json!(role);
        line["message"] = json!({"role": role, "content": content});
        lines.push(line.to_string() + "\n");
    }
    fs::write(folder.join(id(1) + ".jsonl"), lines.concat()).unwrap();
    env.run(&["import", "-q"]).success();
    fs::create_dir(index(&env)).unwrap();
    for indexed in [false, true] {
        if indexed {
            fs::remove_dir(index(&env)).unwrap();
            env.run(&["store", "index"]).success();
        }
        let expected = ("the kingfisher dives".to_owned(), "current".to_owned());
        assert_eq!(lines_found(&env, &["kingfisher"]), [expected]);
        let told = env.run(&["search", "kingfishers dive", "--json"]).success().stdout;
        let hit = json(told.lines().next().unwrap());
        assert_eq!((&hit["tool"], &hit["line"]), (&"Bash".into(), &2.into()), "{told}");
    }
}

#[test]
fn a_hit_names_the_tool_that_answered_whether_one_was_asked_for_or_not() {
    let env = TestEnv::new();
    let garden = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let hits = |args: &[&str]| {
        let garden = ["search", "--json", "-s", garden.to_str().unwrap()];
        let args = [&garden, exact(args), args].concat();
        let told = env.run(&args).success().stdout;
        let hits = told.lines().map(json).filter(|line| line["type"] == "hit");
        hits.filter(|hit| hit["role"] == "tool").collect::<Vec<_>>()
    };
    let answers = hits(&["--role", "tool", "--regex", "."]);
    let tool = answers.iter().find_map(|hit| hit["tool"].as_str()).unwrap().to_owned();
    assert!(answers.iter().all(|hit| hit["tool"].is_string()), "{answers:#?}");
    let of_tool = hits(&["--role", "tool", "--tool", &tool, "--regex", "."]);
    let same: Vec<_> = answers.into_iter().filter(|hit| hit["tool"] == tool.as_str()).collect();
    assert_eq!(of_tool, same);
}

#[test]
fn a_hit_names_its_tool_wherever_in_the_session_it_stands() {
    let env = TestEnv::new();
    let record = |n: usize, role: &str, content: Value| {
        json!({
            "type": role, "uuid": format!("u{n}"), "parentUuid": n.checked_sub(1).map(|n| format!("u{n}")), "sessionId": "s",
            "isSidechain": false, "timestamp": "2026-08-01T10:00:00.000Z", "message": { "role": role, "content": content },
        })
    };
    let mut lines = String::new();
    for n in (0..200).step_by(4) {
        let call = |call: usize| json!([{ "type": "tool_use", "id": format!("c{call}"), "name": "Bash", "input": {} }]);
        let result = |call: usize| json!([{ "type": "tool_result", "tool_use_id": format!("c{call}"), "content": format!("quince {call}") }]);
        for (n, role, content) in [
            (n, "assistant", call(n)),
            (n + 1, "assistant", call(n + 1)),
            (n + 2, "user", result(n)),
            (n + 3, "user", result(n + 1)),
        ] {
            writeln!(lines, "{}", record(n, role, content)).unwrap();
        }
    }
    // The first call of all is answered last.
    let late = json!([{ "type": "tool_result", "tool_use_id": "c0", "content": "quince at last" }]);
    writeln!(lines, "{}", record(200, "user", late)).unwrap();
    let path = env.home().join("s.jsonl");
    fs::write(&path, lines).unwrap();
    env.run(&["import", "-q", path.to_str().unwrap()]).success();
    let told = env.run(&["search", "-F", "--json", "--tool", "Bash", "quince"]).success().stdout;
    assert_eq!(told.matches(r#""type":"hit""#).count(), 101);
}

#[test]
fn the_head_of_a_hit_names_its_session_alone() {
    let env = TestEnv::new();
    let (one, other) =
        ("aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002");
    let folder = env.home().join(".claude/projects/-work");
    let write = |path: &Path, id: &str, fields: &str, words: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let record = format!(
            "{{\"parentUuid\":null,{fields}\"cwd\":\"/work\",\"sessionId\":\"{id}\",\"type\":\"user\",\"message\":{{\"role\":\"user\",\
             \"content\":\"{words}\"}},\"uuid\":\"{words}\",\"timestamp\":\"2026-01-01T00:00:01.000Z\"}}\n"
        );
        fs::write(path, record).unwrap();
    };
    for (id, words) in [(one, "oak"), (other, "elm")] {
        write(&folder.join(format!("{id}.jsonl")), id, "\"isSidechain\":false,", words);
    }
    let agent = folder.join(one).join("subagents/agent-q1.jsonl");
    write(&agent, one, "\"isSidechain\":true,\"agentId\":\"q1\",", "ash");
    env.run(&["import", "-q"]).success();
    for (words, id) in
        [("oak", one.to_owned()), ("elm", other.to_owned()), ("ash", format!("{one}/q1"))]
    {
        let shown = env.run(&["search", "-F", words]).success().stdout;
        let head = shown.split_whitespace().next().unwrap();
        let log = env.run(&["log", head]).success().stdout;
        assert!(log.contains(words), "{head}: {log}");
        let told = json(&env.run(&["status", head, "--json"]).success().stdout);
        assert_eq!(told["session"], id.as_str(), "{head}");
    }
    // A session that is named is searched with its sub-agents, and hidden with them.
    let found = |args: &[&str]| env.run(&[&["search", "ash"], args].concat()).code();
    assert_eq!(
        (found(&["-s", one]), found(&["-s", other]), found(&["-s", one, "--branch", "main"])),
        (Some(0), Some(1), Some(1))
    );
    env.run(&["sessions", "--hide", one]).success();
    assert_eq!(
        (found(&[]), found(&["--hidden"]), found(&["-s", one])),
        (Some(1), Some(0), Some(0))
    );
}

#[test]
fn lines_around_a_match_are_shown_once() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    env.run(&["append", "one\ntwo\nthree mark\nfour\nfive mark\nsix\nseven"]).success();
    let told = env.run(&["search", "-F", "mark", "-C", "1"]).success().stdout;
    let lines: Vec<&str> =
        told.lines().filter(|line| line.trim_start().starts_with(char::is_numeric)).collect();
    assert_eq!(lines, ["  2  two", "  3  three mark", "  4  four", "  5  five mark", "  6  six"]);
    let told = env.run(&["search", "-F", "mark", "-C", "2"]).success().stdout;
    assert_eq!(told.matches("three mark").count(), 1);
}

#[test]
fn the_hint_for_more_repeats_what_was_typed() {
    let env = TestEnv::new();
    conversation(&env);
    let told = env.run(&["search", "-Fi", "--role", "user", "-n", "1", "-C1", "e"]).success();
    let hint =
        "hint: there may be more; show all: undertext search -Fi --role user -C1 e --number 0";
    assert_eq!(told.stderr.lines().last(), Some(hint));
    assert_eq!(env.run(&["search", "--", "-n"]).code(), Some(1));
}

#[test]
fn no_hit_acts_on_a_terminal() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    env.run(&["append", "a \u{1b}[31m bell \u{7} and\r\n\u{202e}more"]).success();
    let told = env.run(&["search", "bell", "--color", "never"]).success().stdout;
    assert!(told.contains(r"a \x1b[31m bell \x07 and"), "{told}");
    assert!(!told.contains(['\u{1b}', '\u{7}', '\r']));
}

#[test]
fn what_is_no_pattern_or_finds_nothing_says_so() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["search", "word"]), @"
    ------- stderr -------
    No sessions yet
    hint: import sessions from elsewhere: undertext import PATH
    hint: start a session for your own agent: undertext new
    [exit status: 1]
    ");
    assert!(!super::store(&env).exists());
    conversation(&env);
    assert_snapshot!(env.run(&["search", "word"]), @r"
    ------- stderr -------
    Nothing was found
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["search", ""]), @r"
    ------- stderr -------
    error: the pattern is empty
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["search", "a\nb"]), @"
    ------- stderr -------
    Nothing was found
    hint: a word that begins so: undertext search build
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["search", "--regex", "a(b"]), @r"
    ------- stderr -------
    error: invalid regular expression: unclosed group
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["search", "--regex", "((a{999}){999}){999}"]), @"
    ------- stderr -------
    error: the pattern is too large
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["search", "--role", "nobody", "word"]), @"
    ------- stderr -------
    error: invalid value 'nobody' for '--role <ROLE>': use user, assistant, tool or system
    hint: see the help: undertext search --help
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["search", "-w", "--regex", "word"]), @"
    ------- stderr -------
    error: the argument '--word' cannot be used with '--regex'
    hint: see the help: undertext search --help
    [exit status: 2]
    ");
    let long = (0..10_000).map(|n| format!("word{n} ")).collect::<Vec<_>>().concat();
    assert_eq!(env.run(&["search", &long]).code(), Some(1));
    assert_eq!(env.run(&["search", "-F", &long[..8000]]).code(), Some(1));
    assert_eq!(env.run(&["search", "-F", &"word ".repeat(20_000)]).code(), Some(2));
    assert_eq!(env.run(&["search", &"word ".repeat(20_000)]).code(), Some(1));
    assert_eq!(env.run(&["search", &"word".repeat(30_000)]).code(), Some(1));
    let bytes = OsStr::from_bytes(b"wo\xffrd");
    let told = env.run(&[OsStr::new("search"), bytes]);
    assert_snapshot!(told, @"
    ------- stderr -------
    error: invalid UTF-8 was detected in one or more arguments
    hint: see the help: undertext search --help
    [exit status: 2]
    ");
}

/// Returns the index of a machine's store.
fn index(env: &TestEnv) -> std::path::PathBuf {
    super::store(env).join("search.db")
}

/// Breaks an index.
type Breaking = fn(&Path);

#[test]
fn no_state_of_the_index_changes_what_is_found() {
    let env = with_examples();
    env.run(&["import", "native-tools.jsonl", "native-rewind.jsonl"]).success();
    conversation(&env);
    let words = ["the", "build", "steam", "ea", "e", "→", "missing", "nowhere at all"];
    let found = || words.map(|word| lines_found(&env, &["-i", word, "-n", "0"]));
    let expected = found();
    assert!(expected.iter().take(4).all(|found| !found.is_empty()));
    assert!(index(&env).is_file(), "a search makes the index");
    assert_eq!(found(), expected);
    assert_snapshot!(env.run(&["store", "index"]), @"The index is up to date; 0 entries added");
    assert_snapshot!(env.run(&["store", "index", "--json"]), @r#"{"type":"index","entries":0,"whole":true}"#);
    let sql = |path: &Path, sql: &str| {
        rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
    };
    let breakings: [(&str, Breaking); 9] = [
        ("deleted", |index| fs::remove_file(index).unwrap()),
        ("empty", |index| fs::write(index, b"").unwrap()),
        ("no database", |index| {
            fs::write(index, b"not what it was, and long enough to be read".repeat(300)).unwrap();
        }),
        ("half", |index| {
            let bytes = fs::read(index).unwrap();
            fs::write(index, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("torn", |index| {
            let mut bytes = fs::read(index).unwrap();
            bytes.iter_mut().skip(8192).for_each(|byte| *byte ^= 0x5a);
            fs::write(index, bytes).unwrap();
        }),
        ("of another version", |index| {
            let db = rusqlite::Connection::open(index).unwrap();
            db.pragma_update(None, "user_version", 99).unwrap();
        }),
        ("of another store", |index| {
            let db = rusqlite::Connection::open(index).unwrap();
            db.execute("UPDATE store SET id = zeroblob(16)", []).unwrap();
        }),
        ("of another history", |index| {
            let db = rusqlite::Connection::open(index).unwrap();
            db.execute("UPDATE reach SET hash = zeroblob(32)", []).unwrap();
        }),
        ("without its tables", |index| {
            let db = rusqlite::Connection::open(index).unwrap();
            db.execute_batch("DROP TABLE piece; DROP TABLE block;").unwrap();
        }),
    ];
    for (state, breaking) in breakings {
        for end in ["-wal", "-shm"] {
            let mut name = index(&env).into_os_string();
            name.push(end);
            let _ = fs::remove_file(name);
        }
        env.run(&["store", "index"]).success();
        sql(&index(&env), "PRAGMA wal_checkpoint(TRUNCATE)");
        breaking(&index(&env));
        assert_eq!(found(), expected, "{state}");
        let mended = env.run(&["store", "index", "--json"]).success().stdout;
        assert_eq!(json(&mended)["whole"], true, "{state}");
        assert_eq!(found(), expected, "{state}, and mended");
    }
    // A folder in its place, which no search clears away.
    fs::remove_file(index(&env)).unwrap();
    fs::create_dir(index(&env)).unwrap();
    assert_eq!(found(), expected);
    assert_eq!(env.run(&["store", "index"]).code(), Some(3));
}

/// Returns the id of the session, or of the record, with a number.
pub(super) fn id(n: usize) -> String {
    format!("{n:08}-0000-4000-8000-000000000000")
}

/// Returns a record of Claude Code in which a person says something, at a minute counted from 1 March.
pub(super) fn record(
    session: usize,
    uuid: usize,
    parent: Option<usize>,
    minute: usize,
    text: &str,
) -> String {
    let (day, hour) = (1 + minute / 1440, minute / 60 % 24);
    serde_json::json!({
        "parentUuid": parent.map(id), "isSidechain": false, "userType": "external",
        "cwd": "/home/ann/app", "sessionId": id(session), "version": "2.0.0", "type": "user",
        "message": {"role": "user", "content": text}, "uuid": id(uuid),
        "timestamp": format!("2026-03-{day:02}T{hour:02}:{:02}:00.000Z", minute % 60),
    })
    .to_string()
}

#[test]
fn what_few_of_many_sessions_say_is_told_as_without_an_index() {
    let env = TestEnv::new();
    let folder = env.home().join("many");
    fs::create_dir(&folder).unwrap();
    for n in 0..100 {
        let first = if n == 90 { 1010 } else { 1000 + n };
        let mut lines = vec![record(n, first, None, first - 1000, "plain words")];
        // 90 begins as 10 does, and goes on without the fish.
        let more = match n {
            10 | 50 => Some("the zebrafish swims"),
            90 => Some("the pond is still"),
            _ => None,
        };
        lines.extend(more.map(|text| record(n, 2000 + n, Some(first), n, text)));
        fs::write(folder.join(id(n) + ".jsonl"), lines.join("\n") + "\n").unwrap();
    }
    env.run(&["import", folder.to_str().unwrap()]).success();
    let all = || {
        let asked: [&[&str]; 8] = [
            &["-F"],
            &["-F", "-n", "1"],
            &["-F", "--count"],
            &["-F", "-l"],
            &[],
            &["--sort", "time"],
            &["--count"],
            &["-l"],
        ];
        asked.map(|args| env.run(&[&["search", "zebrafish"], args].concat()).success().stdout)
    };
    fs::create_dir(index(&env)).unwrap();
    let expected = all();
    // What shares a history with the newest session is told first.
    let (before, behind) = (expected[0].find(&id(10)[..8]), expected[0].find(&id(50)[..8]));
    assert!(before.unwrap() < behind.unwrap(), "{}", expected[0]);
    fs::remove_dir(index(&env)).unwrap();
    env.run(&["store", "index"]).success();
    assert_eq!(all(), expected);
    // A session that says it later is found before the index has it.
    env.run(&["append", "another zebrafish", "-s", &id(70)]).success();
    assert_eq!(lines_found(&env, &["zebrafish"]).len(), 3);
    assert_eq!(lines_found(&env, &["zebrafish"]).len(), 3);
}

#[test]
fn what_most_of_many_sessions_say_is_told_as_without_an_index() {
    const COUNT: usize = 3_300;
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-home-ann-app");
    fs::create_dir_all(&folder).unwrap();
    let path = |n: usize| folder.join(id(n) + ".jsonl");
    for n in 0..COUNT {
        // The newest begins as an old one does; few of the newest say what many others say.
        let first = if n == COUNT - 1 { 10_007 } else { 10_000 + n };
        let mut lines = vec![record(n, first, None, 1, "the pond")];
        let words = if n % 6 == 0 { "the zebrafish swims" } else { "nothing stirs" };
        lines.push(record(n, 20_000 + n, Some(first), 2 + n, &format!("{words} in pond {n}")));
        let common = if n < 600 { "the heron waits" } else { "nothing waits" };
        lines.push(record(n, 30_000 + n, Some(20_000 + n), 2 + n, common));
        fs::write(path(n), lines.join("\n") + "\n").unwrap();
    }
    env.run(&["import", "-q"]).success();
    let all = || {
        let asked: [&[&str]; 7] = [
            &["pond"],
            &["in pond", "-n", "203"],
            &["pond", "-n", "150"],
            &["pond", "--folder", "/home/ann/app"],
            &["zebrafish"],
            &["heron"],
            &["pond", "--sort", "time", "-n", "30"],
        ];
        asked.map(|args| env.run(&[&["search"], args].concat()).stdout)
    };
    fs::create_dir(index(&env)).unwrap();
    let mut expected = all();
    fs::remove_dir(index(&env)).unwrap();
    env.run(&["store", "index"]).success();
    assert_eq!(all(), expected);
    // Two old ones go on, which no operation tells of yet; by its own word, one did so long ago.
    for (n, minute, words) in [(3, 20_000, "the pond is a lake now"), (5, 8, "more in pond 5")] {
        let more = record(n, 40_000, Some(30_000 + n), minute, words);
        let held = fs::read_to_string(path(n)).unwrap();
        fs::write(path(n), held + &more + "\n").unwrap();
    }
    let told = all();
    assert_ne!(told, expected);
    fs::remove_file(index(&env)).unwrap();
    fs::create_dir(index(&env)).unwrap();
    expected = all();
    assert_eq!(told, expected);
    assert!(expected[0].contains("the pond is a lake now"));
}

#[test]
fn an_index_that_is_being_written_hinders_no_search() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["store", "index"]).success();
    let db = rusqlite::Connection::open(index(&env)).unwrap();
    db.execute_batch("BEGIN IMMEDIATE; DELETE FROM block;").unwrap();
    env.run(&["append", "a word that is new"]).success();
    assert_eq!(lines_found(&env, &["symbol"]).len(), 1);
    assert_eq!(lines_found(&env, &["word that"]).len(), 1);
    assert_snapshot!(env.run(&["store", "index"]), @"Another program is updating the index");
    db.execute_batch("ROLLBACK").unwrap();
    assert_eq!(json(&env.run(&["store", "index", "--json"]).stdout)["whole"], true);
    // One that is being made is not made again.
    drop(db);
    fs::remove_file(index(&env)).unwrap();
    let seal = fs::File::open(super::store(&env).join("search.seal")).unwrap();
    seal.lock().unwrap();
    assert_eq!(lines_found(&env, &["symbol"]).len(), 1);
    assert_snapshot!(env.run(&["store", "index"]), @"Another program is updating the index");
    assert!(!index(&env).exists());
    drop(seal);
    assert_eq!(json(&env.run(&["store", "index", "--json"]).stdout)["whole"], true);
}

#[test]
fn what_came_after_the_index_in_another_history_is_found() {
    let env = TestEnv::new();
    conversation(&env);
    let before = env.home().join("before");
    let copy = |from: &Path, to: &Path| crate::format::copy(from, to);
    fs::create_dir(&before).unwrap();
    copy(&super::store(&env), &before);
    env.run(&["append", "the first history"]).success();
    env.run(&["store", "index"]).success();
    let kept = fs::read(index(&env)).unwrap();
    let wal = fs::read(super::store(&env).join("search.db-wal")).unwrap_or_default();
    fs::remove_dir_all(super::store(&env)).unwrap();
    fs::create_dir(super::store(&env)).unwrap();
    copy(&before, &super::store(&env));
    fs::write(index(&env), kept).unwrap();
    fs::write(super::store(&env).join("search.db-wal"), wal).unwrap();
    env.run(&["append", "the second history"]).success();
    assert_eq!(lines_found(&env, &["second"]).len(), 1);
    assert_eq!(lines_found(&env, &["first"]).len(), 0);
    assert_eq!(lines_found(&env, &["second"]).len(), 1);
}

#[test]
fn a_damaged_session_hides_nothing_of_the_others() {
    let env = TestEnv::new();
    let damaged = conversation(&env);
    conversation(&env);
    assert_eq!(lines_found(&env, &["symbol"]).len(), 2);
    let db = rusqlite::Connection::open(super::store(&env).join("store.db")).unwrap();
    let sql = "UPDATE card SET state = zeroblob(9) WHERE id = ?";
    assert_eq!(db.execute(sql, [&damaged]).unwrap(), 1);
    let told = env.run(&["search", "symbol"]);
    assert_eq!(told.code(), Some(1));
    assert_eq!(told.stdout.matches("A symbol is missing.").count(), 1, "{told}");
    assert!(told.stderr.contains(&damaged), "{told}");
}

#[test]
fn what_a_session_with_a_damaged_path_says_is_found_and_it_is_named() {
    let env = TestEnv::new();
    let damaged = conversation(&env);
    conversation(&env);
    // What waits in the journal is settled, so that its rows can be damaged.
    env.run(&["store", "pack"]).success();
    let db = rusqlite::Connection::open(super::store(&env).join("store.db")).unwrap();
    let sql = "DELETE FROM record WHERE session = (SELECT key FROM session WHERE id = ?)";
    assert_ne!(db.execute(sql, [&damaged]).unwrap(), 0);
    for _indexed in [false, true] {
        let told = env.run(&["search", "symbol"]);
        assert_eq!(told.code(), Some(1));
        assert_eq!(told.stdout.matches("A symbol is missing.").count(), 2, "{told}");
        assert_eq!(told.stdout.matches("  damaged  ").count(), 1, "{told}");
        assert!(told.stderr.contains(&damaged), "{told}");
        let mut found = lines_found(&env, &["symbol"]);
        found.sort();
        assert_eq!([found[0].1.as_str(), found[1].1.as_str()], ["current", "unknown"]);
        assert_eq!(lines_found(&env, &["symbol", "--branch", "main"]).len(), 1);
        env.run(&["store", "index"]).success();
    }
}

#[test]
fn a_store_that_may_not_be_written_is_searched() {
    let env = TestEnv::new();
    conversation(&env);
    let copy = env.home().join("copy");
    let copy = copy.to_str().unwrap();
    env.run(&["store", "backup", "all.bundle"]).success();
    env.run(&["import", "all.bundle", "--store", copy]).success();
    let mode = |mode| {
        fs::set_permissions(copy, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(0o500);
    let found = lines_found(&env, &["symbol", "--store", copy]);
    mode(0o700);
    assert_eq!(found.len(), 1);
}
