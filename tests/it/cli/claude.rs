//! Claude Code's sessions as people see them: titles, sub-agents in the file of their session, cleared answers.

use std::fs;
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::json;
use crate::env::TestEnv;

const SESSION: &str = "3d1c5a70-6b2e-4c1f-9a44-0c8f5b7a1e21";

fn link(n: u64, parent: Option<u64>, class: &str, content: &Value) -> Value {
    let name = |n: u64| format!("00000000-0000-4000-8000-{n:012}");
    json!({
        "parentUuid": parent.map(name), "isSidechain": false, "type": class, "userType": "external",
        "message": { "role": class, "id": format!("m{n}"), "content": content }, "uuid": name(n),
        "timestamp": format!("2026-01-01T00:00:{n:02}.000Z"), "cwd": "/work", "sessionId": SESSION,
        "version": "1.0.98",
    })
}

fn with(mut record: Value, key: &str, value: Value) -> Value {
    record[key] = value;
    record
}

fn file(env: &TestEnv, records: &[Value]) -> PathBuf {
    let path = env.project().join(format!("{SESSION}.jsonl"));
    let lines: Vec<String> = records.iter().map(|record| format!("{record}\n")).collect();
    fs::write(&path, lines.concat()).unwrap();
    path
}

fn task(id: &str, prompt: &str) -> Value {
    json!([{ "type": "tool_use", "id": id, "name": "Task", "input": { "description": "d", "prompt": prompt } }])
}

fn done(id: &str) -> Value {
    json!([{ "type": "tool_result", "tool_use_id": id, "content": "done" }])
}

#[test]
fn a_sub_agent_in_the_file_of_its_session_hangs_on_its_call() {
    let env = TestEnv::new();
    let side = |n, parent, class, words: &str| {
        with(link(n, parent, class, &json!(words)), "isSidechain", json!(true))
    };
    let path = file(
        &env,
        &[
            link(1, None, "user", &json!("Build a boat.")),
            link(2, Some(1), "assistant", &task("t1", "Find wood.")),
            link(3, Some(2), "assistant", &task("t2", "Find steel.")),
            side(4, None, "user", "Find steel."),
            side(5, None, "user", "Find wood."),
            side(6, Some(4), "assistant", "Steel is in the yard."),
            side(7, Some(5), "assistant", "Wood is in the shed."),
            link(8, Some(3), "user", &done("t1")),
            link(9, Some(8), "user", &done("t2")),
            link(10, Some(9), "assistant", &json!("Both are found.")),
        ],
    );
    let path = path.to_str().unwrap();
    assert_snapshot!(env.run(&["graph", path]).success().stdout, @"
    3d1c5a70  Build a boat.                                                             1 Jan 2026 00:00
    ◉      00:00  result:  done                                                                    main
    │ ○      00:00  sub-agent:  Find wood.
    │ │ ○      00:00  sub-agent:  Find steel.
    ├───╯
    ○ │      00:00  assistant:  Task Find steel.
    ├─╯
    ○  @0  00:00  Build a boat.
    ");
    let log = env.run(&["log", path]).success().stdout;
    let agents: Vec<&str> = log.lines().filter(|line| line.contains("sub-agent")).collect();
    let [wood, steel] = agents[..] else { panic!("{log}") };
    assert!(log.find("Find wood.").unwrap() < log.find(wood).unwrap(), "{log}");
    let shown = |told: &str| {
        let read = told.strip_prefix("  sub-agent, 2 entries: undertext log ").unwrap();
        let at = read.split_once("--at ").unwrap().1.split(' ').next().unwrap();
        env.run(&["log", path, "--at", at]).success().stdout
    };
    assert!(shown(wood).contains("Wood is in the shed.") && !shown(wood).contains("boat"), "{log}");
    assert!(shown(steel).contains("Steel is in the yard."), "{log}");
    let told = env.run(&["log", "--json", path]).success().stdout;
    let told: Vec<Value> = told.lines().map(json).collect();
    let kinds: Vec<&str> = told.iter().map(|told| told["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[1..5], ["entry", "sub_agent", "entry", "sub_agent"]);
    assert_eq!((&told[2]["entry"], &told[2]["entries"]), (&told[1]["entry"], &json!(2)));
    let nodes = env.run(&["graph", "--json", path]).success().stdout;
    let nodes: Vec<Value> = nodes.lines().map(json).collect();
    assert_eq!(nodes.iter().filter(|node| node["sub_agent"] == true).count(), 2);
    assert!(nodes.iter().all(|node| node["unnamed"] == false));
}

#[test]
fn a_sub_agent_between_kept_messages_is_told_once() {
    let env = TestEnv::new();
    let boundary = json!({
        "parentUuid": null, "logicalParentUuid": link(5, None, "user", &json!(""))["uuid"], "isSidechain": false,
        "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
        "uuid": link(6, None, "user", &json!(""))["uuid"], "timestamp": "2026-01-01T00:00:06.000Z",
        "sessionId": SESSION, "compactMetadata": { "preservedMessages": {
            "anchorUuid": link(7, None, "user", &json!(""))["uuid"],
            "uuids": [link(4, None, "user", &json!(""))["uuid"], link(5, None, "user", &json!(""))["uuid"]],
        } },
    });
    let path = file(
        &env,
        &[
            link(1, None, "user", &json!("Build a boat.")),
            link(2, Some(1), "assistant", &task("t1", "Find wood.")),
            link(4, Some(2), "user", &done("t1")),
            with(link(3, None, "user", &json!("Find wood.")), "isSidechain", json!(true)),
            link(5, Some(4), "assistant", &json!("It is found.")),
            boundary,
            with(link(7, Some(6), "user", &json!("summary")), "isCompactSummary", json!(true)),
            link(8, Some(7), "user", &json!("Paint it.")),
        ],
    );
    let log = env.run(&["log", path.to_str().unwrap()]).success().stdout;
    assert_eq!(log.matches("sub-agent, 1 entry").count(), 1, "{log}");
}

/// What a compaction keeps stands behind its summary from then on, and not also where it stood before.
#[test]
fn a_branch_among_kept_messages_bends_no_path() {
    let env = TestEnv::new();
    let mut lines = Vec::new();
    for n in 0..24 {
        let above = (n > 0).then(|| n - 1);
        lines.push(match n % 4 {
            0 => link(n, above, "user", &json!(format!("Turn {n}. {}", "Plane it. ".repeat(30)))),
            1 | 2 => link(n, above, "assistant", &json!("It is plane. ".repeat(30))),
            _ => with(link(n, above, "system", &json!("")), "subtype", json!("turn_duration")),
        });
    }
    let path = file(&env, &lines);
    let shape = |graph: &str| {
        graph
            .lines()
            .skip(2)
            .map(|line| line.split("  ").next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    env.run(&["attach", path.to_str().unwrap()]).success();
    env.run(&["branch", "side", "HEAD~1", "-s", SESSION]).success();
    env.run(&["compact", "-s", SESSION]).success();
    let graph = env.run(&["graph", "-s", SESSION]).success().stdout;
    assert!(
        shape(&graph).iter().all(|arm| matches!(arm.as_str(), "◉" | "○" | "◆" | "│")),
        "{graph}"
    );
    assert!(graph.contains("  side\n") && !graph.contains("reverted"), "{graph}");
    env.run(&["undo", "-s", SESSION]).success();
    let graph = env.run(&["graph", "-s", SESSION]).success().stdout;
    assert!(!graph.contains('├'), "{graph}");
}

#[test]
fn a_sub_agent_that_no_call_of_its_turn_asked_for_hangs_on_none() {
    let env = TestEnv::new();
    let warm = with(link(5, None, "user", &json!("Warm up.")), "isSidechain", json!(true));
    let path = file(
        &env,
        &[
            link(1, None, "user", &json!("Build a boat.")),
            link(2, Some(1), "assistant", &task("t1", "Find wood.")),
            link(3, Some(2), "user", &done("t1")),
            link(4, Some(3), "user", &json!("Paint it.")),
            warm,
            link(6, Some(4), "assistant", &json!("It is blue.")),
        ],
    );
    let path = path.to_str().unwrap();
    assert!(!env.run(&["log", path]).success().stdout.contains("sub-agent"));
}

#[test]
fn an_entry_shows_every_text_by_which_it_is_found() {
    let env = TestEnv::new();
    let call = |name: &str, input: Value| json!([{ "type": "tool_use", "id": name, "name": name, "input": input }]);
    let old = "keel\nrib\nplank\nmast\nsail";
    let edit = json!({ "file_path": "/yard/boat.txt", "old_string": old, "new_string": old.replace("keel", "bilge") });
    let told = json!({ "type": "deferred_tools_delta", "addedNames": ["mcp__yard__list"], "addedLines": ["tar\nrope"] });
    let attachment = with(link(4, Some(3), "attachment", &json!("")), "attachment", told);
    let path = file(
        &env,
        &[
            link(1, None, "user", &json!("Build a boat.")),
            link(
                2,
                Some(1),
                "assistant",
                &call("Shell", json!({ "command": "make \"hull\"", "description": "Lay it" })),
            ),
            link(3, Some(2), "assistant", &call("Edit", edit)),
            attachment,
        ],
    );
    let path = path.to_str().unwrap();
    for words in [
        "Shell",
        "make \"hull\"",
        "Lay it",
        "/yard/boat",
        "bilge",
        "keel",
        "plank",
        "sail",
        "list",
        "rope",
    ] {
        let found = env.run(&["search", words, "-s", path, "--json"]).success().stdout;
        let hit = json(found.lines().next().unwrap_or_else(|| panic!("{words} is not found")));
        let entry = hit["entry"].as_str().unwrap_or_else(|| panic!("{words}: {found}")).to_owned();
        let shown = env.run(&["show", &entry, "-s", path]).success().stdout;
        assert!(shown.contains(words), "{words}: {shown}");
        let grep = ["show", &entry, "-s", path, "--grep", words];
        assert!(env.run(&grep).success().stdout.contains(words), "{words}");
    }
}

/// Two turns, a boundary that keeps the second one, its summary, and a third turn.
fn kept() -> Vec<Value> {
    let name = |n: u64| link(n, None, "user", &json!(""))["uuid"].clone();
    let kept = json!({ "anchorUuid": name(6), "headUuid": name(3), "tailUuid": name(4) });
    let boundary = with(link(5, None, "system", &json!("")), "subtype", json!("compact_boundary"));
    let boundary = with(boundary, "logicalParentUuid", name(4));
    let metadata = json!({ "trigger": "manual", "preTokens": 9, "preservedSegment": kept });
    vec![
        link(1, None, "user", &json!("Build a boat.")),
        link(2, Some(1), "assistant", &json!("It floats.")),
        link(3, Some(2), "user", &json!("Paint it.")),
        link(4, Some(3), "assistant", &json!("It is blue.")),
        with(boundary, "compactMetadata", metadata),
        with(
            link(6, Some(5), "user", &json!("A boat was built.")),
            "isCompactSummary",
            json!(true),
        ),
        link(7, Some(6), "user", &json!("Name it.")),
        link(8, Some(7), "assistant", &json!("It is called Kettle.")),
    ]
}

#[test]
fn before_the_first_turn_behind_a_summary_stands_what_it_keeps() {
    let lines: Vec<String> = kept().iter().map(|record| format!("{record}\n")).collect();
    // The file comes at once, and in steps.
    for steps in [&[8][..], &[6, 8], &[5, 6, 7, 8], &[7, 8]] {
        let env = TestEnv::new();
        let folder = env.home().join(".claude/projects/-work");
        fs::create_dir_all(&folder).unwrap();
        for step in steps {
            let live = folder.join(format!("{SESSION}.jsonl"));
            fs::write(live, lines[..*step].concat()).unwrap();
            env.run(&["import", "-q"]).success();
        }
        let sent = || env.run(&["context", "--all", SESSION]).success().stdout;
        env.run(&["revert", "@2", SESSION]).success();
        let words = |words: &str| sent().contains(words);
        assert!(words("Paint it.") && words("It is blue.") && !words("Name it."), "{}", sent());
        let status = env.run(&["checkpoints", SESSION]).success().stdout;
        assert!(status.contains("*  @2"), "{status}");
        env.run(&["undo", "-q", "-s", SESSION]).success();
        env.run(&["revert", "@2", SESSION, "-m", "Not yet."]).success();
        assert!(words("It is blue.") && words("from-later"), "{}", sent());
        env.run(&["verify"]).success();
        // The names by which messages are kept say nothing, and stay.
        let count = || sent().lines().filter(|line| line.contains(" kept ")).count();
        let before = count();
        env.run(&["forget", "--yes", SESSION]).success();
        assert_eq!((before, count()), (2, 2), "{}", sent());
    }
}

#[test]
fn where_the_program_cleared_answers_is_told_and_changes_nothing_else() {
    let env = TestEnv::new();
    let cleared = with(
        with(link(4, Some(3), "system", &json!("")), "subtype", json!("microcompact_boundary")),
        "microcompactMetadata",
        json!({ "trigger": "auto", "preTokens": 900, "tokensSaved": 300, "compactedToolIds": ["t1"] }),
    );
    let path = file(
        &env,
        &[
            link(1, None, "user", &json!("Build a boat.")),
            link(2, Some(1), "assistant", &task("t1", "Find wood.")),
            link(3, Some(2), "user", &done("t1")),
            cleared,
            link(5, Some(4), "assistant", &json!("It floats.")),
        ],
    );
    let path = path.to_str().unwrap();
    assert_snapshot!(env.run(&["graph", path]).success().stdout, @"
    3d1c5a70  Build a boat.                                                             1 Jan 2026 00:00
    ◉  @0  00:00  Build a boat.  answers cleared                                                   main
    ");
    let context = env.run(&["context", "--json", path]).success().stdout;
    assert_eq!(json(context.lines().next().unwrap())["messages"], 4);
}

#[test]
fn the_users_title_goes_before_the_agents_and_that_before_a_summary() {
    let asked = link(1, None, "user", &json!("Build a boat."));
    let leaf = "00000000-0000-4000-8000-000000000001";
    let summary =
        |words: &str, leaf: &str| json!({ "type": "summary", "summary": words, "leafUuid": leaf });
    let made = |words: &str| json!({ "type": "ai-title", "aiTitle": words, "sessionId": SESSION });
    let given =
        |words: &str| json!({ "type": "custom-title", "customTitle": words, "sessionId": SESSION });
    // At once, and record by record.
    let check = |records: &[Value], expected: &str| {
        let env = TestEnv::new();
        let path = file(&env, records);
        let title = || {
            let listed = env.run(&["sessions", "--json"]).success().stdout;
            json(listed.lines().next().unwrap())["title"].as_str().unwrap().to_owned()
        };
        env.run(&["import", path.to_str().unwrap()]).success();
        assert_eq!(title(), expected);
        let env = TestEnv::new();
        for end in records.len().min(2)..=records.len() {
            let path = file(&env, &records[..end]);
            env.run(&["import", path.to_str().unwrap()]).success();
        }
        let listed = env.run(&["sessions", "--json"]).success().stdout;
        assert_eq!(json(listed.lines().next().unwrap())["title"], expected);
        env.run(&["verify"]).success();
    };
    check(std::slice::from_ref(&asked), "Build a boat.");
    check(&[asked.clone(), summary("Of another", "elsewhere")], "Build a boat.");
    check(&[asked.clone(), summary("Boats", leaf)], "Boats");
    check(&[asked.clone(), summary("Boats", leaf), summary("Of another", "elsewhere")], "Boats");
    check(&[asked.clone(), made("Boat"), summary("Boats", leaf), made("A boat")], "A boat");
    check(&[made("Boat"), asked.clone(), given("Ark"), made("A boat")], "Ark");
    check(&[asked, given("Ark"), made("Boat"), given("The ark"), made("A boat")], "The ark");
}

#[test]
fn what_the_program_notes_of_its_own_set_up_is_not_sent() {
    let env = TestEnv::new();
    let attached = |n, parent, attachment: Value| {
        let record = with(link(n, parent, "attachment", &json!("")), "attachment", attachment);
        with(record, "message", Value::Null)
    };
    let prompt = json!({ "type": "prompt_snapshot", "systemPrompt": ["You are an agent.".repeat(900)], "tools": [] });
    let path = file(
        &env,
        &[
            link(1, None, "user", &json!("Build a boat.")),
            attached(2, Some(1), json!({ "type": "date", "date": "2026-01-01" })),
            attached(3, Some(2), prompt),
            attached(4, Some(3), json!({ "type": "session_context", "context": {} })),
            link(5, Some(4), "assistant", &json!("Of wood?")),
        ],
    );
    let told = env.run(&["context", path.to_str().unwrap(), "--json"]).success().stdout;
    let messages: Vec<Value> =
        told.lines().map(json).filter(|told| told["type"] == "message").collect();
    let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant"], "{told}");
    assert!(messages.last().unwrap()["total"].as_u64().unwrap() < 200, "{told}");
}
