//! `context`: what a model would be sent.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use super::{Stored, json, with_examples};
use crate::env::TestEnv;

#[test]
fn a_person_sees_each_message_and_what_was_done() {
    let env = with_examples();
    let shown = env.run(&["context", "native-rewind.jsonl", "--as", "anthropic", "--turns", "1"]);
    assert_snapshot!(shown, @"
    2 messages, 49 tokens (estimate): 0.1% of a window of 32,000 (default, unknown model)
    Compaction due at 24,000 (23,951 to go)
    1 of 2 turns are kept

    ················································································

                       messages  tokens  window
    ▒  request format                 2    0.0%
    ◆  summary                1      27    0.0%
    ▓  assistant              1      20    0.1%
    ·  free                      31,951   99.9%

    role       entry     origin  tokens  window  up to here
                                      2    0.0%  █░░░░░░░░░░░░░░░░░░░  request format
    user       5dc4d20a  merged      27    0.0%  █░░░░░░░░░░░░░░░░░░░  Ann wants a clock that chimes the hours. The movement is designed.
    assistant  2d77fc52  said        20    0.0%  █░░░░░░░░░░░░░░░░░░░  Roman numerals, with IIII instead of IV, as clockmakers do.

    limit  dropped  3  it is older than the newest turn: dd44b48d 4b20ea40 06d61b5e
    turns  merged   1  two user messages without an answer between them: 26da59e7
    ");
    assert!(!env.home().join(".local").exists(), "nothing was written");
}

/// Returns the tokens of a line of a table, if it is one: the number before the percent.
fn tokens(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| word.ends_with('%'))?;
    words[at - 1].replace(',', "").parse().ok()
}

#[test]
fn the_rows_add_up_to_the_size_of_the_request() {
    let env = TestEnv::new();
    let garden = include_str!("../../../examples/claude-garden.jsonl");
    let check = |input: u64, word: &str| {
        let report = format!("\"usage\":{{\"input_tokens\":{input}}},\"was\":");
        let text = garden.replace("\"usage\":", &report);
        assert_ne!(text, garden);
        fs::write(env.project().join("garden.jsonl"), text).unwrap();
        let json = env.run(&["context", "garden.jsonl", "--json"]).success().stdout;
        let json: Vec<_> = json.lines().map(super::json).collect();
        let size = json[0]["tokens"].as_u64().unwrap();
        assert_eq!(json[0]["counted"], word);
        let counted: u64 = json
            .iter()
            .filter(|it| it["type"] == "message")
            .map(|it| it["tokens"].as_u64().unwrap())
            .sum();
        let unrecorded = json[0]["unrecorded"].as_u64().unwrap();
        assert_eq!(unrecorded, size.saturating_sub(counted));
        let told = env.run(&["context", "garden.jsonl", "--all"]).success().stdout;
        let (parts, rows) = told.split_once("\nrole ").unwrap();
        let (parts, free) = parts.rsplit_once("\n·").unwrap();
        let sum = |text: &str| text.lines().skip(1).filter_map(tokens).sum::<u64>();
        assert_eq!((sum(parts), sum(rows)), (size, size), "{told}");
        assert_eq!(sum(parts) + tokens(free).unwrap(), json[0]["window"], "{told}");
        assert_eq!(told.contains("tools, unrecorded"), unrecorded > 0, "{told}");
        (size, counted)
    };
    let (size, counted) = check(50_000, "reported");
    assert!(size > counted);
    // A model may report less than the messages are counted as.
    let (size, counted) = check(counted * 3 / 4, "reported");
    assert!(size < counted, "{size} {counted}");
}

#[test]
fn a_long_session_shows_its_largest_messages_and_counts_the_others() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    let record = |n| serde_json::json!({ "type": "user", "message": { "role": "user", "content": "word ".repeat(n) } });
    let lines: Vec<String> = (1..=30).map(|n| record(n).to_string()).collect();
    env.run_with_stdin(&["append", "-q"], lines.join("\n").as_bytes()).success();
    let told = env.run(&["context"]).success().stdout;
    let rows: Vec<u64> =
        told.lines().filter(|line| line.starts_with("user ")).filter_map(tokens).collect();
    assert_eq!(rows, [43, 42, 40, 39, 38], "{told}");
    // With the five and the request format it is all: 745.
    assert!(
        told.starts_with("30 messages, 745 tokens ")
            && told.ends_with("25 more messages total 541 tokens; --all lists them\n"),
        "{told}"
    );
    let all = env.run(&["context", "--all"]).success().stdout;
    assert_eq!(all.lines().filter(|line| line.starts_with("user ")).count(), 30, "{all}");
}

#[test]
fn a_machine_gets_the_request_as_it_would_be_sent() {
    let env = with_examples();
    let args = ["context", "native-tools.jsonl", "--json", "--tokens", "exact", "--as"];
    let request = |shape| {
        let shown = env.run(&[&args[..], &[shape]].concat()).success().stdout;
        let first = json(shown.lines().next().unwrap());
        assert_eq!((&first["type"], &first["as"]), (&"context".into(), &shape.into()));
        assert_eq!(first["counted"], "o200k_base");
        assert_eq!(
            shown.lines().filter(|line| json(line)["type"] == "message").count(),
            first["messages"]
        );
        first["request"].clone()
    };
    assert_eq!(request("anthropic")["system"][0]["text"], "You mend kettles.");
    assert_eq!(request("openai")["messages"][0]["role"], "system");
    assert_eq!(request("gemini")["contents"][0]["role"], "user");
    assert_eq!(request("messages")["messages"][0]["role"], "system");
}

#[test]
fn an_entry_is_explained() {
    let env = with_examples();
    let explain =
        |entry| env.run(&["context", "native-rewind.jsonl", "--turns", "1", "--explain", entry]);
    assert_snapshot!(explain("2d77fc52"), @"2d77fc52 is sent in message 3 of 3: it is on the path to the head");
    assert_snapshot!(explain("5dc4d20a"), @"5dc4d20a is sent in message 1 of 3: it is the summary of what was compacted");
    assert_snapshot!(explain("@4"), @"
    dd44b48d is not sent: limit: it is older than the newest turn
      limit dropped: it is older than the newest turn
    ");
    // A place before a checkpoint is the one that `show` shows.
    for place in ["@4", "@4~1", "@2~1"] {
        let shown = env.run(&["show", place, "native-rewind.jsonl", "--json"]).success().stdout;
        let entry = json(shown.lines().next().unwrap())["entry"].as_str().unwrap()[..8].to_owned();
        assert!(explain(place).stdout.starts_with(&entry), "{place}: {shown}");
    }
    assert_snapshot!(explain("@0"), @"004000d2 is not sent: a compaction dropped it, or the agent does not send such records");
}

#[test]
fn a_small_window_is_refused_and_a_tight_one_warned_of() {
    let env = with_examples();
    let with = |window| env.run(&["context", "native-rewind.jsonl", "-q", "--window", window]);
    assert_snapshot!(with("15999"), @"
    ------- stderr -------
    error: a window of 15999 tokens is too small: the minimum is 16000
    hint: set another window with --window, or lower window.block in config.toml; see all settings explained: undertext context --settings
    [exit status: 2]
    ");
    assert_snapshot!(with("16000").stderr, @"warning: a window of 16,000 tokens is tight; at least 32,000 is better");
}

#[test]
fn a_small_window_of_the_session_itself_hinders_nobody_from_reading_it() {
    let env = TestEnv::new();
    let weather = include_str!("../../../examples/codex-weather.jsonl");
    let small = weather.replace("\"model_context_window\":258400", "\"model_context_window\":1000");
    assert_ne!(small, weather);
    fs::write(env.project().join("weather.jsonl"), small).unwrap();
    let shown = env.run(&["context", "weather.jsonl"]).success();
    assert_snapshot!(shown.stderr, @"warning: a window of 1,000 tokens, set in the session's file, is too small for a turn: the minimum is 16,000");
    assert!(shown.stdout.contains(" of a window of 1,000 (the session's file, "), "{shown}");
    assert!(env.run(&["status", "weather.jsonl"]).success().stdout.contains(" of 1,000 tokens; "));
    env.run(&["import", "-q", "weather.jsonl"]).success();
    let listed = json(&env.run(&["sessions", "--json"]).success().stdout);
    let id = listed["session"].as_str().unwrap();
    let compacted = env.run(&["compact", "-s", id]);
    // What would be refused is not promised either.
    let planned = env.run(&["compact", "--dry-run", "-s", id]);
    assert_eq!(planned.to_string(), compacted.to_string());
    assert_snapshot!(compacted, @"
    ------- stderr -------
    error: a window of 1000 tokens, set in the session's file, is too small: the minimum is 16000
    hint: set another window with --window, or lower window.block in config.toml; see all settings explained: undertext context --settings
    [exit status: 2]
    ");
}

#[test]
fn a_cleared_session_has_the_window_that_it_had() {
    let env = TestEnv::new();
    let weather = include_str!("../../../examples/codex-weather.jsonl");
    let garden = include_str!("../../../examples/claude-garden.jsonl");
    // It answered to more than the window of a model of which nothing is known.
    let garden = garden.replace("\"input_tokens\":", "\"input_tokens\":90000,\"was\":");
    for (name, agent, text) in
        [("weather.jsonl", "codex", weather), ("garden.jsonl", "claude", &garden)]
    {
        fs::write(env.project().join(name), text).unwrap();
        env.run(&["import", "-q", name]).success();
        let sessions = env.run(&["sessions", "--json", "--agent", agent]).success().stdout;
        let id = json(sessions.lines().next().unwrap())["session"].as_str().unwrap().to_owned();
        let known = || {
            let context = json(&env.run(&["status", "--json", "-s", &id]).success().stdout);
            let context = &context["context"];
            (context["window"].clone(), context["source"].clone(), context["model"].clone())
        };
        let before = known();
        env.run(&["clear", "-q", "-s", &id]).success();
        assert_eq!(known(), before, "{name}");
        let told = env.run(&["context", "-s", &id]).success();
        let is_nothing = told.stdout.starts_with("0 messages, 0 tokens (estimate): 0.0% of ");
        assert_eq!(is_nothing, told.stderr.contains("Nothing would be sent to a model"), "{told}");
    }
}

#[test]
fn settings_are_the_users_and_the_stores() {
    let env = with_examples();
    let settings = |folder: &str, text: &str| {
        let folder = env.home().join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    };
    let window = || {
        let shown = env.run(&["context", "native-tools.jsonl", "--json"]);
        let first = shown.stdout.lines().next().map(json);
        (first.map(|first| (first["window"].clone(), first["source"].clone())), shown.stderr)
    };
    settings(".config/undertext", "[models.kettle]\nwindow = 50000\n[window]\nwarn = 20000\n");
    assert_eq!(window(), (Some((50_000.into(), "models".into())), String::new()));
    settings(".local/share/undertext", "[window]\ncap = 20000\nblok = 1\n");
    let (found, warned) = window();
    assert_eq!(found, Some((20_000.into(), "cap".into())));
    assert_snapshot!(warned, @"warning: $HOME/.local/share/undertext/config.toml, line 3: unknown key window.blok; the nearest is window.block");
    // Who looks at the settings is told too, and that nothing is taken from it.
    for json in [&[][..], &["--json"]] {
        let shown = env.run(&[&["context", "--settings"], json].concat()).success();
        assert_eq!(shown.stderr, warned);
        if !json.is_empty() {
            let blok = shown.stdout.lines().map(super::json).find(|it| it["key"] == "window.blok");
            assert_eq!(blok.unwrap()["taken"], false);
            assert_eq!(shown.stdout.matches("\"taken\":true").count(), 3, "{shown}");
        }
    }
    settings(".local/share/undertext", "[limits]\nturns = \"ten\"\n");
    assert_snapshot!(env.run(&["context", "native-tools.jsonl"]), @r#"
    ------- stderr -------
    error: $HOME/.local/share/undertext/config.toml, line 2: limits.turns cannot be "ten": it must be a whole number, 0 or more
    hint: see all settings explained: undertext context --settings
    [exit status: 2]
    "#);
    let example = env.run(&["context", "--settings"]).success().stdout;
    assert!(example.contains("# [channels.telegram]"));
}

#[test]
fn a_channel_may_have_fewer_turns() {
    let env = with_examples();
    let folder = env.home().join(".config/undertext");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "[channels.telegram]\ndirect = 1\n").unwrap();
    let kept = |key: &str| {
        let shown = env.run(&["context", "native-rewind.jsonl", "--json", "--key", key]).success();
        json(shown.stdout.lines().next().unwrap())["kept"].clone()
    };
    assert_eq!(kept("agent:main:telegram:dm:4711:thread:2"), 1);
    assert_eq!(kept("agent:main:telegram:group:4711"), 2);
    // Any key is one, and an unknown one has no limit.
    for key in ["agent:main:main", "main", "", "agent:main:telegram:nobody:4711"] {
        assert_eq!(kept(key), 2, "{key}");
    }
    // A session that was set up with a key needs none.
    let id =
        env.run(&["new", "--json", "--configure", "key=telegram:direct:4711"]).success().stdout;
    let id = json(&id)["session"].as_str().unwrap().to_owned();
    for text in ["one", "two", "three"] {
        env.run(&["append", "-q", text]).success();
    }
    let shown = env.run(&["context", &id, "--json"]).success().stdout;
    assert_eq!(json(shown.lines().next().unwrap())["kept"], 1);
}

/// Without `--key`, the key is in the agent's own list of sessions.
#[test]
fn the_key_of_an_openclaw_session_is_the_one_in_its_list() {
    let env = TestEnv::new();
    let sessions = env.home().join(".openclaw/agents/main/sessions");
    let own = env.home().join(".config/undertext");
    for folder in [&sessions, &own] {
        fs::create_dir_all(folder).unwrap();
    }
    fs::write(own.join("config.toml"), "[channels.telegram]\ndirect = 1\n").unwrap();
    let (id, file) = ("5d9e0c1a-7b42-4f38-9c60-1a2b3c4d5e6f", sessions.join("pi-boat.jsonl"));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pi-boat.jsonl");
    fs::copy(example, &file).unwrap();
    let kept = |args: &[&str]| {
        let shown = env.run(&[&["context", "--json"], args].concat()).success().stdout;
        json(shown.lines().next().unwrap())["kept"].clone()
    };
    assert_eq!(kept(&[id]), 2);
    let entry =
        |id: &str, updated: u64| serde_json::json!({ "sessionId": id, "updatedAt": updated });
    let list = |list: &str| fs::write(sessions.join("sessions.json"), list).unwrap();
    // It was the main session before the chat; the newest entry is another session's.
    let entries = serde_json::json!({
        "agent:main:main": entry(id, 5),
        "agent:main:telegram:direct:4711": entry(id, 6),
        "agent:main:cron:1": entry("another", 7),
    });
    list(&entries.to_string());
    for session in [id, file.to_str().unwrap()] {
        assert_eq!(kept(&[session]), 1, "{session}");
        assert_eq!(kept(&[session, "--key", "agent:main:main"]), 2, "{session}");
    }
    for broken in ["", "[]", "{\"agent:main:main\":1}", "{\"a\":{\"sessionId\":7}}"] {
        list(broken);
        assert_eq!(kept(&[id]), 2, "{broken}");
    }
}

#[test]
fn what_a_revert_left_is_not_sent_and_exact_counts_are_kept() {
    let stored = Stored::reverted();
    let exact = || stored.env.run(&["context", "--tokens", "exact"]).success();
    let first = exact();
    assert!(!first.stdout.contains("Red it is."));
    assert_eq!(exact().stdout, first.stdout);
    let verified = stored.env.run(&["verify"]).success();
    assert!(!verified.stdout.contains("damage:"), "{verified}");
}

#[test]
fn an_empty_session_is_sent_as_nothing() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    assert_snapshot!(env.run(&["context"]), @"
    0 messages, 0 tokens (estimate): 0.0% of a window of 32,000 (default, unknown model)
    Compaction due at 24,000 (24,000 to go)
    ------- stderr -------
    Nothing would be sent to a model
    ");
}

#[test]
fn results_are_cut_for_one_request_and_stay_in_the_session() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    env.run(&["append", "-q", "Count."]).success();
    env.run(&["append", "-q", "--call", "Bash", "--input", "{}", "--id", "c"]).success();
    let numbers = (1..4000).map(|n| n.to_string()).collect::<Vec<_>>().join("\n");
    env.run_with_stdin(&["append", "-q", "--result", "c", "-"], numbers.as_bytes()).success();
    let whole = env.run(&["context"]).success().stdout;
    let cut = env.run(&["context", "--max-tool-result", "3000"]).success().stdout;
    assert!(cut.contains("it has more than 3000 characters"), "{cut}");
    assert!(cut.contains("3 messages, 781 tokens") && whole.contains("3 messages, 4,7"), "{whole}");
    assert_snapshot!(env.run(&["context", "--max-tool-result", "0"]), @"
    ------- stderr -------
    error: invalid value '0' for '--max-tool-result <N>': it must be a whole number, 1 or more
    hint: see the help: undertext context --help
    [exit status: 2]
    ");
    let large = env.run(&["context", "--max-tool-result", "18446744073709551615"]).stderr;
    assert!(large.contains("the number is too large"), "{large}");
    let shown = env.run(&["show", "HEAD"]).success().stdout;
    assert!(shown.contains("\n3999"));
}

#[test]
fn settings_that_cannot_be_read_say_why() {
    let env = TestEnv::new();
    let path = env.home().join(".config/undertext/config.toml");
    fs::create_dir_all(&path).unwrap();
    let shown = env.run(&["context", "--settings"]).success();
    let why = "warning: cannot read the settings in $HOME/.config/undertext/config.toml: it is a folder, not a file\n";
    assert_eq!(shown.stderr, why);
}
