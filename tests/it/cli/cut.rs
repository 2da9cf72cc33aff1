//! Tool results that are cut: what is shown, what lies under it, and that nothing is lost.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use super::{back, json, live, search::lines_found};
use crate::env::TestEnv;

/// Returns an answer of many lines.
fn long(lines: usize) -> String {
    (1..=lines).map(|n| format!("{n}: some \"words\" of a tool\n")).collect::<Vec<_>>().concat()
}

/// Returns the last record of a live file.
fn last(env: &TestEnv, session: &str) -> Value {
    let live = String::from_utf8(live(env, session)).unwrap();
    json(live.lines().last().unwrap())
}

/// Begins a session whose one tool result was cut as it was appended; returns its id and the result's.
fn appended(env: &TestEnv, text: &str) -> (String, String) {
    let made = json(&env.run(&["new", "--json"]).success().stdout);
    env.run(&["append", "-q", "Look."]).success();
    env.run(&["append", "-q", "--call", "Bash", "--input", "{}", "--id", "c"]).success();
    let args = ["append", "--json", "--result", "c", "--max-chars", "3000", "-"];
    let said = json(&env.run_with_stdin(&args, text.as_bytes()).success().stdout);
    (made["session"].as_str().unwrap().to_owned(), said["uuid"].as_str().unwrap().to_owned())
}

#[test]
fn an_answer_that_is_cut_as_it_is_appended_is_kept_whole() {
    let env = TestEnv::new();
    let text = long(300);
    let (session, uuid) = appended(&env, &text);
    let output = last(&env, &session)["toolResult"]["output"].as_str().unwrap().to_owned();
    let (shown, suffix) = output.split_once("\n[undertext: ").unwrap();
    assert!(text.starts_with(shown));

    let show = |flag: &str| env.run(&["show", &uuid, flag]).success().stdout;
    assert_eq!(format!("{shown}{}", show("--hidden")), text);
    assert!(show("--original").ends_with(&text));
    // The words in the suffix are a command that works anywhere.
    let command = suffix.split('`').nth(1).unwrap();
    let args: Vec<&str> = command.split(' ').skip(1).collect();
    assert_eq!(env.run(&args).success().stdout, show("--hidden"));
    let mut whole = env.run(&args[..args.len() - 1]).success().stdout;
    assert!(whole.split_off(whole.len() - text.len()) == text);
    env.run(&["verify"]).success();
    env.run(&["store", "rebuild"]).success();
    env.run(&["verify"]).success();

    env.run(&["undo"]).success();
    assert_eq!(last(&env, &session)["type"], "tool_use");
    env.run(&["redo"]).success();
    assert_eq!(last(&env, &session)["toolResult"]["output"], output);
}

#[test]
fn a_record_that_was_cut_is_known_when_it_comes_again() {
    let env = TestEnv::new();
    let (session, uuid) = appended(&env, &long(300));
    let record = serde_json::json!({ "uuid": uuid, "type": "tool_result",
        "toolResult": { "id": "c", "output": long(300) } });
    let again = env.run_with_stdin(&["append", "--jsonl"], record.to_string().as_bytes());
    assert!(again.success().stderr.contains("Already appended"));
    assert_eq!(live(&env, &session).split(|&byte| byte == b'\n').count(), 4);
}

#[test]
fn what_is_hidden_is_read_in_parts() {
    let env = TestEnv::new();
    let (_, uuid) = appended(&env, &long(112));
    let show = |args: &[&str]| env.run(&[&["show", uuid.as_str()], args].concat());
    assert_snapshot!(show(&["--hidden", "--lines", "2:3"]), @r#"
    105: some "words" of a tool
    106: some "words" of a tool
    "#);
    assert_snapshot!(show(&["--hidden", "--grep", "^11[0-2]:"]), @r#"
    7:110: some "words" of a tool
    8:111: some "words" of a tool
    9:112: some "words" of a tool
    "#);
    assert_snapshot!(show(&["--hidden", "--grep", "112", "--json"]), @r#"{"type":"line","line":9,"text":"112: some \"words\" of a tool"}"#);
    assert_snapshot!(show(&["--original", "--grep", "^9?9:"]), @r#"
    9:9: some "words" of a tool
    99:99: some "words" of a tool
    "#);
    assert_snapshot!(show(&["--hidden", "--grep", "nowhere"]), @"
    ------- stderr -------
    Nothing was found
    [exit status: 1]
    ");
    assert_snapshot!(show(&["--grep", "("]), @"
    ------- stderr -------
    error: invalid value '(' for '--grep <PATTERN>': invalid regular expression: unclosed group
    hint: see the help: undertext show --help
    [exit status: 2]
    ");
    let told = json(&show(&["--hidden", "--json", "--lines", "1"]).success().stdout);
    assert_eq!(told["text"], "104: some \"words\" of a tool\n");
    assert_eq!((told["shown"].as_u64(), told["hidden"].as_u64()), (Some(2776), Some(252)));
    let marked = show(&["--diff"]).success().stdout;
    // Three lines stand around what is hidden, and the words in its place are the text's own.
    let first: Vec<&str> = marked.lines().take(6).collect();
    let said = |n: u32| format!("{n}: some \"words\" of a tool");
    let around = [101, 102, 103].map(|n| format!(" {}", said(n)));
    assert_eq!(first[1..4], around);
    assert_eq!((first[0], first[4]), ("@@ -101,12 +101,5 @@", &*format!("-{}", said(104))));
    assert!(marked.contains(&format!("\n-{}\n+\n+[undertext: 252 of 3028", said(112))), "{marked}");
    assert_eq!(marked.lines().count(), 1 + 3 + 9 + 2);
}

#[test]
fn nothing_is_hidden_of_an_entry_that_is_whole() {
    let env = TestEnv::new();
    appended(&env, "short");
    assert_snapshot!(env.run(&["show", "HEAD", "--hidden"]), @"
    ------- stderr -------
    Nothing in this entry is hidden
    [exit status: 1]
    ");
    let original = env.run(&["show", "HEAD", "--original"]).success();
    assert_eq!(original.stdout, env.run(&["show", "HEAD"]).success().stdout);
}

/// Begins a session of two turns, each with a call of Bash and its result, and returns its id.
fn session(env: &TestEnv, results: [&str; 2]) -> String {
    let made = json(&env.run(&["new", "--json"]).success().stdout);
    for (n, result) in results.iter().enumerate() {
        let call = format!("c{n}");
        env.run(&["append", "-q", "Look."]).success();
        env.run(&["append", "-q", "--call", "Bash", "--input", "{}", "--id", &call]).success();
        env.run_with_stdin(&["append", "-q", "--result", &call, "-"], result.as_bytes()).success();
        env.run(&["append", "-q", "--role", "assistant", "I see."]).success();
    }
    made["session"].as_str().unwrap().to_owned()
}

/// The session's file is as long as before where only the store is changed.
#[test]
fn a_file_that_is_not_written_is_not_called_shorter() {
    let env = TestEnv::new();
    let garden = include_str!("../../../examples/claude-garden.jsonl");
    // Up to its compaction, with a long result.
    let lines = garden.split_inclusive('\n');
    let garden: String = lines.take_while(|line| !line.contains("compact_boundary")).collect();
    let garden = garden.replace(r"1\tleeks: thirsty\n", &r"1\tleeks: thirsty\n".repeat(600));
    let file = env.project().join("session.jsonl");
    fs::write(&file, &garden).unwrap();
    env.run(&["import", "--detached", "session.jsonl"]).success();
    let said = env.run(&["truncate", "--max-chars", "2000", "-s", "7c2a51de"]).success();
    assert!(
        said.stdout.contains("\n1 result is cut on main, saving about 2,012 tokens\n"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(file).unwrap(), garden);
}

#[test]
fn oversized_results_are_cut_in_place_and_undo_restores_them() {
    let env = TestEnv::new();
    let id = session(&env, [&long(300), &long(2_000)]);
    let before = live(&env, &id);
    let log = || env.run(&["log", "--full", "--json"]).success().stdout;
    let whole = log();
    assert_snapshot!(env.run(&["truncate", "--max-chars", "20000", "--dry-run"]).masked(), @"
    entry-id  Bash  56,893  to  19,992  characters, about 14,224 to 4,998 tokens
    ------- stderr -------
    1 result would be cut, saving about 9,226 tokens; nothing was changed
    ");
    assert_eq!(live(&env, &id), before);
    assert_snapshot!(env.run(&["truncate", "--max-chars", "20000"]).masked(), @"
    Session entry-id  Look.  (native)
    entry-id  Bash  56,893  to  19,992  characters, about 14,224 to 4,998 tokens
    1 result is cut on main, saving about 9,226 tokens; the session's file is 40.7 kB shorter
    The previous state is kept as branch main.1
    The previous file is kept as ~/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-1
    ------- stderr -------
    hint: to see what was cut: undertext audit
    hint: to undo: undertext undo
    ");
    let cut: Vec<Value> = log().lines().map(json).collect();
    for (cut, whole) in cut.iter().zip(whole.lines().map(json)) {
        // Another entry under the same name; all else is the same.
        let is_cut = cut["entry"] != whole["entry"];
        assert_eq!(is_cut, cut["blocks"] != whole["blocks"]);
        assert_eq!(cut["uuid"], whole["uuid"]);
        assert_eq!(cut["checkpoint"], whole["checkpoint"]);
    }
    assert_eq!(
        cut.iter().filter(|line| whole.contains(line["entry"].as_str().unwrap())).count(),
        7
    );
    env.run(&["verify"]).success();
    env.run(&["store", "rebuild"]).success();
    env.run(&["verify"]).success();
    assert!(live(&env, &id).len() < 40_000);

    assert_snapshot!(env.run(&["truncate", "--max-chars", "20000"]), @"
    Session e572dff8  Look.  (native)
    Nothing is oversized: no result in the context is longer than 20,000 characters
    ");
    env.run(&["append", "-q", "Go on."]).success();
    env.run(&["undo"]).success();
    env.run(&["undo"]).success();
    assert_eq!(live(&env, &id), before);
    assert_eq!(log(), whole);
}

/// Begins a session of turns with a call and its result each, and returns its id. The results are all different.
fn turns(env: &TestEnv, tools: &[&str]) -> String {
    let made = json(&env.run(&["new", "--json"]).success().stdout);
    for (n, tool) in tools.iter().enumerate() {
        let call = format!("c{n}");
        let text = format!("Turn {n}\n{}", long(100));
        env.run(&["append", "-q", "Look."]).success();
        env.run(&["append", "-q", "--call", tool, "--input", "{}", "--id", &call]).success();
        env.run_with_stdin(&["append", "-q", "--result", &call, "-"], text.as_bytes()).success();
    }
    made["session"].as_str().unwrap().to_owned()
}

/// Returns for each result of a session's live file whether it is cleared.
fn cleared(env: &TestEnv, id: &str) -> Vec<bool> {
    let live = String::from_utf8(live(env, id)).unwrap();
    let results = live.lines().map(json).filter(|record| record["type"] == "tool_result");
    let output = |record: Value| record["toolResult"]["output"].as_str().unwrap().to_owned();
    results.map(output).map(|output| output.starts_with("\n[undertext: ")).collect()
}

#[test]
fn old_results_of_a_tool_are_cleared_and_undo_restores_them() {
    let env = TestEnv::new();
    let id = turns(&env, &["Read", "Bash", "Read", "Read", "Read"]);
    let before = live(&env, &id);
    let tried = env.run(&[
        "truncate",
        "--older-than",
        "1",
        "--keep-last",
        "2",
        "--tool",
        "read",
        "--dry-run",
    ]);
    assert_snapshot!(tried.masked(), @"
    entry-id  Read  2,699  to  218  characters, about 675 to 55 tokens
    entry-id  Read  2,699  to  218  characters, about 675 to 55 tokens
    ------- stderr -------
    2 results would be cut, saving about 1,240 tokens; nothing was changed
    ");
    assert_eq!(live(&env, &id), before);
    assert_snapshot!(env.run(&["truncate", "--older-than", "1", "--keep-last", "2", "--tool", "read"]).masked(), @"
    Session entry-id  Look.  (native)
    entry-id  Read  2,699  to  218  characters, about 675 to 55 tokens
    entry-id  Read  2,699  to  218  characters, about 675 to 55 tokens
    2 results are cut on main, saving about 1,240 tokens; the session's file is 5.5 kB shorter
    The previous state is kept as branch main.1
    The previous file is kept as ~/.local/share/undertext/transcripts/e572dff8-2304-400b-856a-555ac3a4558d.jsonl.undertext-1
    ------- stderr -------
    hint: to see what was cut: undertext audit
    hint: to undo: undertext undo
    ");
    assert_eq!(cleared(&env, &id), [true, false, true, false, false]);
    // What was cleared is not cleared again, and a limit does not bring it back.
    assert_snapshot!(env.run(&["truncate", "--keep-last", "2", "--tool", "Read"]), @"
    Session e572dff8  Look.  (native)
    Nothing to cut in what was chosen
    ");
    env.run(&["truncate", "-q", "--max-chars", "2000"]).success();
    assert_eq!(cleared(&env, &id), [true, false, true, false, false]);
    let audited: Vec<Value> =
        env.run(&["audit", "--json"]).success().stdout.lines().map(json).collect();
    let hiding = audited.iter().filter(|one| one["type"] == "replaced" && one["limit"] == 0);
    for (entry, turn) in hiding.map(|one| one["entry"].as_str().unwrap()).zip([0, 2]) {
        let whole = format!("Turn {turn}\n{}", long(100));
        assert_eq!(env.run(&["show", entry, "--hidden"]).success().stdout, whole);
        assert!(env.run(&["show", entry, "--original"]).success().stdout.ends_with(&whole));
    }
    env.run(&["verify"]).success();
    env.run(&["store", "rebuild"]).success();
    env.run(&["verify"]).success();
    env.run(&["undo"]).success();
    env.run(&["undo"]).success();
    assert_eq!(live(&env, &id), before);

    env.run(&["truncate", "-q", "--older-than", "2"]).success();
    assert_eq!(cleared(&env, &id), [true, true, true, false, false]);
    env.run(&["undo", "-q"]).success();
    env.run(&["truncate", "-q", "--keep-last", "1"]).success();
    assert_eq!(cleared(&env, &id), [true, false, true, true, false]);
}

#[test]
fn old_results_are_cleared_for_one_request() {
    let env = TestEnv::new();
    let id = turns(&env, &["Read", "Bash", "Read"]);
    let before = live(&env, &id);
    let tokens = |args: &[&str]| {
        let said = env.run(&[&["context", "--json"], args].concat()).success().stdout;
        json(said.lines().next().unwrap())["tokens"].as_u64().unwrap()
    };
    let all = tokens(&[]);
    let (one, two) = (tokens(&["--keep-last", "1"]), tokens(&["--older-than", "1"]));
    assert!(two < one && one < all, "{two} {one} {all}");
    assert_eq!(tokens(&["--older-than", "1", "--tool", "Bash"]), one);
    assert_eq!(tokens(&["--older-than", "3"]), all);
    assert_eq!(live(&env, &id), before);
}

/// Writes a session of Claude Code with thinking in each of its turns, and returns the path of its file.
fn thinking(env: &TestEnv) -> std::path::PathBuf {
    let id = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";
    let mut lines: Vec<String> = Vec::new();
    for turn in 0..3 {
        let thought = "Hm. ".repeat(200);
        let blocks = [
            serde_json::json!({ "type": "thinking", "thinking": thought, "signature": "s" }),
            serde_json::json!({ "type": "text", "text": format!("Answer {turn}.") }),
        ];
        let asked = serde_json::json!({ "role": "user", "content": "Look." });
        let mut messages = vec![("user", asked)];
        for block in blocks {
            messages.push((
                "assistant",
                serde_json::json!({ "role": "assistant", "id": format!("msg_{turn}"),
                "model": "claude-opus-5", "type": "message", "content": [block] }),
            ));
        }
        for (kind, message) in messages {
            let name = |n: usize| format!("cc000000-0000-4000-8000-{n:012}");
            let parent = lines.len().checked_sub(1).map(name);
            let record = serde_json::json!({ "parentUuid": parent, "isSidechain": false, "type": kind,
                "message": message, "uuid": name(lines.len()), "timestamp": "2026-08-20T09:00:07.107Z",
                "cwd": "/home/ann/garden", "sessionId": id, "version": "2.1.329" });
            lines.push(record.to_string() + "\n");
        }
    }
    let path = env.home().join(format!(".claude/projects/-home-ann-garden/{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, lines.concat()).unwrap();
    env.run(&["import"]).success();
    path
}

#[test]
fn thinking_is_dropped_except_in_the_newest_turn_and_undo_restores_it() {
    let env = TestEnv::new();
    let path = thinking(&env);
    let before = fs::read_to_string(&path).unwrap();
    assert_snapshot!(env.run(&["truncate", "--thinking", "7c2a"]).masked(), @"
    Session entry-id  Look.  (claude)
    entry-id  thinking  800  to  0  characters, about 200 to 0 tokens
    entry-id  thinking  800  to  0  characters, about 200 to 0 tokens
    2 entries are cut on main, saving about 400 tokens; the session's file is 1.6 kB shorter
    The previous state is kept as branch main.1
    The agent resumes from ~/.claude/projects/-home-ann-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl
    The previous file is kept as ~/.claude/projects/-home-ann-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl.undertext-1
    ------- stderr -------
    hint: to see what was cut: undertext audit entry-id
    hint: to undo: undertext undo entry-id
    ");
    let after = fs::read_to_string(&path).unwrap();
    for (n, (before, after)) in before.lines().zip(after.lines()).enumerate() {
        let mut expected = json(before);
        if [1, 4].contains(&n) {
            expected["message"]["content"] = serde_json::json!([]);
        }
        assert_eq!(json(after), expected);
    }
    let sent = env.run(&["context", "--as", "anthropic", "--json", "7c2a"]).success().stdout;
    assert_eq!(sent.matches("Answer ").count(), 3, "{sent}");
    assert_eq!(sent.matches(r#""type":"thinking""#).count(), 1, "{sent}");
    assert_snapshot!(env.run(&["audit", "7c2a"]).masked(), @"
    2 entries cut from 1,600 to 0 characters, about 400 to 0 tokens; 100% is hidden but kept
    turn  entry     tool      characters  shown  hidden  op  by        when
      @0  entry-id  thinking         800      0    100%   2  truncate  2001-02-03 04:05
      @1  entry-id  thinking         800      0    100%   2  truncate  2001-02-03 04:05
    ------- stderr -------
    hint: to read what the last cut hides: undertext show entry-id --hidden -s entry-id
    hint: to read everything that is hidden: undertext audit entry-id --show
    ");
    let entry = "cc000000-0000-4000-8000-000000000001";
    let hidden = env.run(&["show", entry, "--hidden", "-s", "7c2a"]).success().stdout;
    assert_eq!(hidden, "Hm. ".repeat(200));
    assert!(
        env.run(&["show", entry, "--original", "-s", "7c2a"]).success().stdout.contains("Hm. Hm.")
    );
    assert_snapshot!(env.run(&["truncate", "--thinking", "7c2a"]).masked(), @"
    Session entry-id  Look.  (claude)
    Nothing to cut in what was chosen
    ");
    env.run(&["verify"]).success();
    env.run(&["undo", "7c2a"]).success();
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn thinking_that_an_agent_needs_stays() {
    let env = TestEnv::new();
    let record = |kind: &str, payload: Value| {
        serde_json::json!({ "timestamp": "2026-08-01T10:00:00.000Z", "type": kind, "payload": payload }).to_string() + "\n"
    };
    let said = |role: &str, kind: &str, text: &str| serde_json::json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] });
    let reasoning =
        serde_json::json!({ "type": "reasoning", "summary": [], "encrypted_content": "e" });
    let mut lines = vec![record(
        "session_meta",
        serde_json::json!({ "id": "019d0000-0000-7000-8000-000000000001" }),
    )];
    for _ in 0..2 {
        lines.push(record("response_item", said("user", "input_text", "Look.")));
        lines.push(record("response_item", reasoning.clone()));
        lines.push(record("response_item", said("assistant", "output_text", "I see.")));
    }
    fs::write(env.project().join("codex.jsonl"), lines.concat()).unwrap();
    env.run(&["import", "-q", "--detached", "codex.jsonl"]).success();
    assert_snapshot!(env.run(&["truncate", "--thinking", "-s", "019d"]), @"
    Session 019d0000  Look.  (codex)
    1 answer keeps its thinking: the agent cannot resume without it
    Nothing to cut in what was chosen
    ");
    let report = json(
        env.run(&["truncate", "--thinking", "--json", "-s", "019d"]).success().stdout.trim_end(),
    );
    assert_eq!(
        (&report["results"], &report["thinking_needed"]),
        (&serde_json::json!(0), &serde_json::json!(1))
    );
}

#[test]
fn a_target_is_reached_by_the_cut_that_loses_least() {
    let env = TestEnv::new();
    let id = turns(&env, &["Read", "Bash", "Read", "Read"]);
    let before = live(&env, &id);
    let all = env.run(&["context", "--json"]).success().stdout;
    let all = json(all.lines().next().unwrap())["tokens"].as_u64().unwrap();
    assert_snapshot!(env.run(&["truncate", "--to", "7%", "--dry-run"]).masked(), @"
    entry-id  Read  2,699  to  218  characters, about 675 to 55 tokens
    Context about 2,818 → 2,198 tokens, of 2,240 at most
    ------- stderr -------
    1 result would be cut, saving about 620 tokens; nothing was changed
    hint: to do this: undertext truncate --older-than 3
    ");
    let tried = env.run(&["truncate", "--to", "7%", "--dry-run", "--json"]).success().stdout;
    let tried = json(tried.lines().last().unwrap());
    assert_eq!(
        (&tried["older_than"], &tried["target"]["before"]),
        (&serde_json::json!(3), &all.into())
    );
    assert_eq!(live(&env, &id), before);
    // The command that it names does the same.
    let done = env.run(&["truncate", "--older-than", "3", "--json"]).success().stdout;
    assert_eq!(json(done.lines().last().unwrap())["tokens_saved"], tried["tokens_saved"]);
    let cut = live(&env, &id);
    env.run(&["undo", "-q"]).success();
    env.run(&["truncate", "--to", "2240", "-q"]).success();
    assert_eq!(live(&env, &id), cut);
    let left = env.run(&["context", "--json"]).success().stdout;
    let left = json(left.lines().next().unwrap())["tokens"].as_u64().unwrap();
    assert_eq!(tried["target"]["left"].as_u64(), Some(left));
    assert!(left <= 2_240 && left < all, "{left} of {all}");
    env.run(&["undo", "-q"]).success();
    assert_snapshot!(env.run(&["truncate", "--to", "99%"]), @"
    Session e572dff8  Look.  (native)
    Context about 2,818 → 2,818 tokens, of 31,680 at most
    Nothing to cut in what was chosen
    ");
    assert_snapshot!(env.run(&["truncate", "--to", "10", "--dry-run"]), @"
    ------- stderr -------
    error: no cut reaches 10 tokens: about 1,578 would be left
    hint: summarise older messages instead: undertext compact
    [exit status: 1]
    ");
    assert_eq!(live(&env, &id), before);
}

#[test]
fn a_choice_that_makes_no_sense_is_refused_or_explained() {
    let env = TestEnv::new();
    turns(&env, &["Read", "Bash"]);
    for args in [
        &["--older-than", "x"][..],
        &["--older-than", "0"],
        &["--keep-last", "-1"],
        &["--to", "0%"],
        &["--to", "101%"],
        &["--to", "%"],
        &["--to", "0"],
        &["--to", "50%", "--max-chars", "3000"],
        &["--to", "50%", "--older-than", "3"],
        &["--to", "50%", "--thinking"],
    ] {
        let refused = env.run(&[&["truncate"], args].concat());
        assert_eq!(refused.code(), Some(2), "{refused}");
    }
    assert_snapshot!(env.run(&["truncate", "--to", "0%"]), @"
    ------- stderr -------
    error: invalid value '0%' for '--to <SIZE>': it must be 1% to 100%, or tokens
    hint: see the help: undertext truncate --help
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["truncate", "--tool", "Read", "--tool", "Edit"]), @"
    ------- stderr -------
    error: the tool Edit was never called in this session; called: Bash, Read
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["context", "--tool", "Edit"]), @"
    ------- stderr -------
    error: the tool Edit was never called in this session; called: Bash, Read
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["truncate", "--older-than", "2"]), @"
    Session e572dff8  Look.  (native)
    Nothing to cut in what was chosen
    ");
    assert_snapshot!(env.run(&["truncate", "--thinking"]), @"
    Session e572dff8  Look.  (native)
    Nothing to cut in what was chosen
    ");
}

#[test]
fn a_replay_of_a_replay_keeps_the_chain_of_origins() {
    let env = TestEnv::new();
    let text = long(2_000);
    session(&env, ["short", &text]);
    env.run(&["truncate", "-q", "--max-chars", "30000"]).success();
    env.run(&["truncate", "-q", "--max-chars", "9000"]).success();
    let result = &back(&env, 1);
    let hidden = env.run(&["show", result, "--hidden"]).success().stdout;
    assert!(text.ends_with(&hidden));
    let shown = json(&env.run(&["show", result, "--json"]).success().stdout);
    let shown = shown["blocks"][0]["text"]
        .as_str()
        .unwrap()
        .split("\n[undertext")
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(shown + &hidden, text);
    let original = json(&env.run(&["show", result, "--original", "--json"]).success().stdout);
    assert_eq!(original["blocks"][0]["text"], *text);
    env.run(&["verify"]).success();
}

#[test]
fn a_limit_that_is_no_limit_is_refused_or_explained() {
    let env = TestEnv::new();
    session(&env, ["", &"x".repeat(400_000)]);
    for window in ["0", "-1", "x"] {
        let refused = env.run(&["truncate", "--window", window]);
        assert!(refused.to_string().ends_with("[exit status: 2]\n"), "{refused}");
    }
    assert_snapshot!(env.run(&["truncate", "--window", "18446744073709551615"]), @"
    Session e572dff8  Look.  (native)
    Nothing is oversized: no result in the context is longer than 400,000 characters
    ");
    assert_snapshot!(env.run(&["truncate", "--max-chars", "1999"]), @"
    ------- stderr -------
    error: a limit of 1,999 characters is too small: the minimum is 2,000; nothing was changed
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["truncate", "--window", "1000"]), @"
    ------- stderr -------
    error: a window of 1,000 tokens is too small: every result keeps at least 2,000 characters
    hint: see the window of the session's model: undertext context
    [exit status: 2]
    ");
}

#[test]
fn an_audit_tells_what_was_cut_by_whom_and_where() {
    let env = TestEnv::new();
    session(&env, [&long(300), &long(2_000)]);
    assert_snapshot!(env.run(&["audit"]), @"No results were cut in this session");
    let call = ["append", "-q", "--call", "Bash", "--input", "{}", "--id", "more"];
    env.run(&call).success();
    let args = ["append", "-q", "--result", "more", "--max-chars", "5000", "-"];
    env.run_with_stdin(&args, long(400).as_bytes()).success();
    env.run(&["truncate", "-q", "--window", "10000"]).success();
    env.run(&["truncate", "-q", "--max-chars", "4000"]).success();
    env.run(&["undo"]).success();
    assert_snapshot!(env.run(&["audit"]).masked(), @"
    2 entries cut from 67,985 to 16,967 characters, about 16,997 to 4,242 tokens; 75% is hidden but kept
    turn  entry     tool  characters   shown  hidden  op  by                when
      @1  entry-id  Bash      11,092   4,983     57%  11  append            2001-02-03 04:05
      @1  entry-id  Bash      56,893  11,984     79%  12  truncate          2001-02-03 04:05
      @0  entry-id  Bash       8,292   3,974     54%  13  truncate  undone  2001-02-03 04:05
      @1  entry-id  Bash      56,893   3,976     93%  13  truncate  undone  2001-02-03 04:05
      @1  entry-id  Bash      11,092   3,975     66%  13  truncate  undone  2001-02-03 04:05
    ------- stderr -------
    hint: to read what the last cut hides: undertext show entry-id --hidden
    hint: to read everything that is hidden: undertext audit --show
    ");
    let told: Vec<Value> =
        env.run(&["audit", "--json"]).success().stdout.lines().map(json).collect();
    for one in told.iter().filter(|one| one["type"] == "replaced") {
        let hidden =
            json(&env.run(&["show", one["entry"].as_str().unwrap(), "--hidden", "--json"]).stdout);
        assert_eq!(hidden["hidden"], one["hidden"]);
        assert_eq!(hidden["shown"], one["cuts"][0]["kept"]);
        // The cut text names the same entry.
        let whole = one["whole"].as_str().unwrap();
        let cut = env.run(&["show", one["entry"].as_str().unwrap()]).success().stdout;
        assert!(cut.contains(&format!("undertext show {} ", &whole[..12])), "{cut}");
        assert_eq!(hidden["origin"], whole);
    }
    assert_snapshot!(told.last().unwrap(), @r#"{"type":"total","replaced":2,"characters":[67985,16967],"tokens":[16997,4242],"hidden":51457,"earlier":0}"#);
}

#[test]
fn all_that_is_hidden_is_printed_in_the_order_in_which_it_was_said() {
    let env = TestEnv::new();
    session(&env, [&long(300), &long(2_000)]);
    let none = env.run(&["audit", "--show"]);
    assert_eq!((none.code(), none.stdout.as_str()), (Some(1), ""), "{none}");
    // The second turn is cut first.
    env.run(&["truncate", "-q", "--max-chars", "20000"]).success();
    env.run(&["truncate", "-q", "--max-chars", "4000"]).success();
    let told: Vec<Value> =
        env.run(&["audit", "--json"]).success().stdout.lines().map(json).collect();
    let turns: Vec<&Value> =
        told.iter().filter(|one| one["type"] == "replaced").map(|one| &one["turn"]).collect();
    assert_eq!(turns, [1, 0, 1]);
    let shown = env.run(&["audit", "--show"]).success().stdout;
    let heads: Vec<&str> = shown.lines().filter(|line| line.starts_with('@')).collect();
    let heads: Vec<&str> = heads.iter().map(|head| head.get(14..).unwrap()).collect();
    assert_eq!(heads, ["Bash  4,536 characters", "Bash  53,137 characters"], "{shown}");
    let hidden: Vec<Value> =
        env.run(&["audit", "--show", "--json"]).success().stdout.lines().map(json).collect();
    assert_eq!(hidden.len(), 2);
    for one in &hidden {
        assert_eq!(one["type"], "hidden");
        assert!(shown.contains(one["text"].as_str().unwrap()), "{one}");
    }
    env.run(&["undo", "-q"]).success();
    assert_eq!(env.run(&["audit", "--show"]).success().stdout.matches('@').count(), 1);
}

#[test]
fn where_all_that_was_cut_is_undone_no_sum_is_told() {
    let env = TestEnv::new();
    session(&env, [&long(300), &long(2_000)]);
    env.run(&["truncate", "-q", "--max-chars", "4000"]).success();
    env.run(&["undo"]).success();
    let audited = env.run(&["audit"]).success();
    assert!(audited.stdout.starts_with("All cuts were undone: nothing is cut now\n"), "{audited}");
}

#[test]
fn what_agents_cut_before_is_told_apart() {
    let env = TestEnv::new();
    let result = |id: &str, text: &str| {
        serde_json::json!({ "parentUuid": null, "isSidechain": false, "type": "user", "uuid": id, "sessionId": "s",
            "timestamp": "2026-08-01T10:00:00.000Z", "cwd": "/w", "version": "2", "message": { "role": "user",
            "content": [{ "tool_use_id": "c", "type": "tool_result", "content": text }] } })
    };
    let claude = [
        result(
            "a",
            "<persisted-output>\nOutput too large (98.1KB). Full output saved to: /w/out.txt\n\nPreview",
        ),
        result("b", "[Old tool result content cleared]"),
        result("c", "a text that quotes <persisted-output>"),
        serde_json::json!({ "parentUuid": null, "isSidechain": false, "type": "system", "subtype": "compact_boundary",
            "uuid": "d", "sessionId": "s", "timestamp": "2026-08-01T10:00:00.000Z",
            "compactMetadata": { "trigger": "auto", "preTokens": 155_000 } }),
        serde_json::json!({ "parentUuid": null, "isSidechain": false, "type": "system", "subtype": "microcompact_boundary",
            "uuid": "e", "sessionId": "s", "timestamp": "2026-08-01T10:00:00.000Z",
            "microcompactMetadata": { "preTokens": 10_000, "tokensSaved": 2_000 } }),
    ];
    let lines: Vec<String> = claude.iter().map(|line| format!("{line}\n")).collect();
    fs::write(env.project().join("claude.jsonl"), lines.concat()).unwrap();
    assert_snapshot!(env.run(&["audit", "claude.jsonl"]).masked(), @"
    Removed by the agent itself:
    entry     how                           size  when              file
    entry-id  file                        98.1KB  2026-08-01 10:00  /w/out.txt
    entry-id  cleared                             2026-08-01 10:00
    entry-id  compaction          155,000 tokens  2026-08-01 10:00
    entry-id  cleared     10,000 to 8,000 tokens  2026-08-01 10:00
    ------- stderr -------
    hint: see what each compaction summarised: undertext audit claude.jsonl --boundary
    ");

    let output = |text: &str| {
        serde_json::json!({ "timestamp": "2026-08-01T10:00:00.000Z", "type": "response_item",
            "payload": { "type": "function_call_output", "call_id": "c", "output": text } })
    };
    let codex = [
        serde_json::json!({ "timestamp": "2026-08-01T10:00:00.000Z", "type": "session_meta", "payload": { "id": "s" } }),
        output("head…5709 tokens truncated…tail"),
        output("head\n[... omitted 12 of 268 lines ...]\ntail"),
        output("[... omitted 0 of 38 lines ...] and … tokens truncated…"),
        serde_json::json!({ "timestamp": "2026-08-01T10:00:00.000Z", "type": "compacted", "payload": { "message": "m" } }),
    ];
    let lines: Vec<String> = codex.iter().map(|line| format!("{line}\n")).collect();
    fs::write(env.project().join("codex.jsonl"), lines.concat()).unwrap();
    assert_snapshot!(env.run(&["audit", "codex.jsonl"]).masked(), @"
    Removed by the agent itself:
    entry     how                    size  when
    entry-id  cut             5709 tokens  2026-08-01 10:00
    entry-id  cut         12 of 268 lines  2026-08-01 10:00
    entry-id  compaction                   2026-08-01 10:00
    ------- stderr -------
    hint: see what each compaction summarised: undertext audit codex.jsonl --boundary
    ");

    let entry = |id: &str, text: &str, details: Value| {
        serde_json::json!({ "type": "message", "id": id, "parentId": null, "timestamp": "2026-08-01T10:00:00.000Z",
            "message": { "role": "toolResult", "toolCallId": "c", "toolName": "bash", "details": details,
                "content": [{ "type": "text", "text": text }] } })
    };
    let pi = [
        serde_json::json!({ "type": "session", "version": 3, "id": "s", "timestamp": "2026-08-01T10:00:00.000Z", "cwd": "/w" }),
        entry(
            "a",
            "head\n\n⚠️ [Content truncated — original was too large for the model's context window.]",
            Value::Null,
        ),
        entry("b", "tail", serde_json::json!({ "fullOutputPath": "/tmp/pi.log" })),
        serde_json::json!({ "type": "compaction", "id": "d", "parentId": "b", "timestamp": "2026-08-01T10:00:00.000Z",
            "summary": "s", "firstKeptEntryId": "b", "tokensBefore": 9_000 }),
    ];
    let lines: Vec<String> = pi.iter().map(|line| format!("{line}\n")).collect();
    fs::write(env.project().join("pi.jsonl"), lines.concat()).unwrap();
    assert_snapshot!(env.run(&["audit", "pi.jsonl"]).masked(), @"
    Removed by the agent itself:
    entry     how                 size  when              file
    entry-id  cut                       2026-08-01 10:00
    entry-id  file                      2026-08-01 10:00  /tmp/pi.log
    entry-id  compaction  9,000 tokens  2026-08-01 10:00
    ------- stderr -------
    hint: see what each compaction summarised: undertext audit pi.jsonl --boundary
    ");
}

#[test]
fn checkpoints_and_the_graph_follow_a_replay() {
    let env = TestEnv::new();
    let id = session(&env, [&long(2_000), "short"]);
    env.run(&["truncate", "-q", "--max-chars", "9000"]).success();
    let graph = env.run(&["graph"]).success().stdout;
    let graph: Vec<&str> = graph.lines().map(|line| line.split_once("  ").unwrap().1).collect();
    assert_eq!(graph.len(), 3, "{graph:?}");
    assert!(graph[2].ends_with("Look.  1 cut"), "{graph:?}");
    assert!(
        graph[1].contains("main.1 is where it was before operation 10")
            && graph[1].ends_with("main, main.1"),
        "{graph:?}"
    );

    // A checkpoint that was given before stands in what was written again.
    let cut = live(&env, &id).len();
    env.run(&["revert", "1", "-q"]).success();
    assert!(live(&env, &id).len() < cut);
    let shown = json(&env.run(&["show", &back(&env, 1), "--json"]).success().stdout);
    assert!(shown["blocks"][0]["text"].as_str().unwrap().contains("[undertext: "));
    env.run(&["undo", "-q"]).success();
    env.run(&["undo", "--op", "10", "-q"]).success();
    env.run(&["revert", "1", "-q"]).success();
    assert!(live(&env, &id).len() > 50_000, "undone, it is not followed");
    env.run(&["verify"]).success();
}

#[test]
fn a_result_that_was_cut_on_two_branches_is_beneath_both_and_one_node() {
    let env = TestEnv::new();
    session(&env, [&long(2_000), "short"]);
    env.run(&["truncate", "-q", "--max-chars", "9000"]).success();
    env.run(&["switch", "main.1", "-q"]).success();
    env.run(&["truncate", "-q", "--max-chars", "12000"]).success();
    for branch in ["main", "main.1.1", "main.1"] {
        env.run(&["switch", branch, "-q"]).success();
        let found = lines_found(&env, &["1999: some"]);
        let expected = if branch == "main.1.1" { "current" } else { "truncated" };
        let [(_, stand)] = found.as_slice() else { unreachable!("{branch}: {found:?}") };
        assert_eq!(stand, expected, "{branch}");
        let graph = env.run(&["graph", "--all"]).success().stdout;
        assert_eq!(graph.matches("result:").count(), 2, "{branch}\n{graph}");
        assert_eq!(graph.matches("1 cut").count(), 1, "{branch}\n{graph}");
    }
}

#[test]
fn entries_without_names_keep_their_checkpoints_in_a_replay() {
    let env = TestEnv::new();
    let turn = |n: u32, text: &str| {
        [
            serde_json::json!({ "role": "_checkpoint", "id": n }),
            serde_json::json!({ "role": "user", "content": format!("Turn {n}.") }),
            serde_json::json!({ "role": "assistant", "content": "", "tool_calls": [{ "type": "function",
                "id": format!("c{n}"), "function": { "name": "Shell", "arguments": "{}" } }] }),
            serde_json::json!({ "role": "tool", "content": text, "tool_call_id": format!("c{n}") }),
        ]
    };
    let records = [turn(0, "short"), turn(1, &long(2_000)), turn(2, "short"), turn(3, "short")];
    let lines: Vec<String> = records.iter().flatten().map(|line| format!("{line}\n")).collect();
    let folder = env.project().join("abc");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("context.jsonl"), lines.concat()).unwrap();
    env.run(&["import", "-q", "abc/context.jsonl"]).success();
    let checkpoints = || -> Vec<(Value, Value)> {
        let log = env.run(&["log", "--json", "abc"]).success().stdout;
        let lines = log.lines().map(json).filter(|line| line["kind"] == "user");
        lines.map(|line| (line["checkpoint"].clone(), line["own"].clone())).collect()
    };
    let before = checkpoints();
    assert_eq!(before.len(), 4);
    env.run(&["truncate", "-q", "--max-chars", "9000", "abc"]).success();
    assert_eq!(checkpoints(), before);
    assert_eq!(env.run(&["graph", "abc"]).success().stdout.matches("1 cut").count(), 1);
    // What is behind it was moved along, and is no cut.
    let listed = env.run(&["operations", "abc"]).success().stdout;
    assert!(listed.contains(" 1 result cut on main;"), "{listed}");
    env.run(&["revert", "3", "-q", "-s", "abc"]).success();
    assert_eq!(checkpoints(), before[..3]);
    let log = env.run(&["log", "--full", "abc"]).success().stdout;
    assert!(log.contains("[undertext: "), "{log}");
    env.run(&["verify"]).success();
    env.run(&["store", "rebuild"]).success();
}
