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

/// Returns where each line stands that a search finds, by the words of the line.
pub(super) fn stands(env: &TestEnv, args: &[&str]) -> Vec<(String, String)> {
    let args = [&["search", "--json"], args].concat();
    let told = env.run(&args).stdout;
    let hits = told.lines().map(json).filter(|line| line["type"] == "hit");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    hits.map(|hit| (text(&hit["text"]), text(&hit["stands"]) + &text(&hit["branch"]))).collect()
}

#[test]
fn a_hit_says_where_it_stands_and_how_to_see_it() {
    let Stored { env, archive, .. } = Stored::reverted();
    drop(archive);
    assert_snapshot!(env.run(&["search", "red"]).masked(), @r"
    entry-id  native  Paint the boat.  ~/project
    @0 user, 2001-02-03 04:05:18, on the current path
      4  Red paint is sold out.
      undertext show entry-id -s entry-id

    @1 assistant, 2001-02-03 04:05:16, on branch main.1
      1  Red it is.
      undertext show entry-id -s entry-id

    @1 user, 2001-02-03 04:05:14, on branch main.1
      1  Red.
      undertext show entry-id -s entry-id
    ");
    let told = env.run(&["search", "Red", "--role", "assistant", "--json"]).masked();
    assert_snapshot!(told, @r#"
    {"type":"hit","session":"00000001-0000-0000-0000-000000000000","agent":"native","title":"Paint the boat.","folder":"$HOME/project","parent":null,"entry":"entry-id","turn":1,"stands":"branch","branch":"main.1","sub_agent":false,"time":"2001-02-03T04:05:16.000Z","role":"assistant","tool":null,"line":1,"text":"Red it is.","matches":[[0,3]],"before":[],"after":[],"places":[]}
    {"type":"searched","lines":1,"more":false,"damaged":0}
    "#);
    // What a hit says to type shows it.
    let shown = env.run(&["search", "sold"]).success().stdout;
    let typed = shown.lines().find_map(|line| line.trim().strip_prefix("undertext ")).unwrap();
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
    let found = stands(&env, &["beans"]);
    let expected = [("The beans are sown.", "undone"), ("Sow the beans.", "current")];
    assert_eq!(found, expected.map(|(line, stands)| (line.to_owned(), stands.to_owned())));

    let answer = (1..=400).map(|n| format!("{n}: bean\n")).collect::<Vec<_>>().concat();
    env.run(&["append", "--call", "Count", "--input", "{}", "--id", "c"]).success();
    env.run_with_stdin(&["append", "--result", "c", "-"], answer.as_bytes()).success();
    env.run(&["truncate", "--max-chars", "2000"]).success();
    let found = stands(&env, &["bean", "--tool", "Count"]);
    let expected = |(at, line): (usize, &str)| {
        let is_shown = found.iter().filter(|(found, _)| found == line).count() == 2;
        is_shown || found.contains(&(line.to_owned(), "truncated".to_owned())) && at > 100
    };
    assert!(answer.lines().enumerate().all(expected), "{found:?}");

    let garden = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let found = stands(&env, &["beds", garden.to_str().unwrap()]);
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
    let told = env.run(&["search", "--json", "Which beds"]).success().stdout;
    let hits: Vec<_> = told.lines().map(json).filter(|line| line["type"] == "hit").collect();
    assert_eq!(hits.len(), 1, "{told}");
    assert_eq!(hits[0]["places"].as_array().unwrap().len(), 2);
    assert!(env.run(&["search", "Which beds"]).success().stdout.contains("and 1 more"));
    let counted = env.run(&["search", "--count", "Which beds"]).success();
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
    let found = stands(&env, &["it holds"]);
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
            assert_eq!(stands(&env, words).len(), expected, "{words:?}");
        }
        let told =
            env.run(&["log", "--grep", "caf\u{fffd}s", file.to_str().unwrap()]).success().stdout;
        assert!(told.contains("caf\u{fffd}s"), "{told}");
        env.run(&["store", "index"]).success();
    }
}

#[test]
fn filters_leave_what_is_asked_for() {
    let env = with_examples();
    env.run(&["import", "native-tools.jsonl", "native-rewind.jsonl"]).success();
    let count = |args: &[&str]| stands(&env, &[&["-i", "the"], args].concat()).len();
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
    // They hold for a session that is named too.
    let listed = env.run(&["sessions", "--json"]).success().stdout;
    let session = json(listed.lines().next().unwrap())["session"].as_str().unwrap().to_owned();
    let of_it = count(&[&session]);
    assert!(0 < of_it && of_it < all);
    assert_eq!(count(&[&session, "--agent", "native"]), of_it);
    assert_eq!(count(&[&session, "--agent", "pi"]), 0);
    assert_eq!(count(&[&session, "--folder", "/nowhere"]), 0);
    assert_eq!(count(&[&session, "--branch", "main"]).min(1), 1);
    for args in [
        &["search", "the", &session, "--branch", "nope"][..],
        &["search", "--count", "the", &session, "--branch", "nope"],
    ] {
        let refused = env.run(args);
        assert_eq!(refused.code(), Some(1), "{refused}");
        assert!(refused.stderr.contains("no branch"), "{refused}");
    }
}

/// Returns the lines that a person is shown, in order.
fn shown(env: &TestEnv, args: &[&str]) -> Vec<String> {
    let told = env.run(&[&["search"], args].concat()).success().stdout;
    let lines = told.lines().filter_map(|line| line.trim_start().split_once("  "));
    let lines = lines.filter(|(n, _)| n.parse::<usize>().is_ok());
    lines.map(|(_, line)| line.to_owned()).collect()
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
        assert_eq!(shown(&env, &["log"]), by_relevance);
        assert_eq!(shown(&env, &["log", "--sort", "relevance"]), by_relevance);
        // The text that was undone would be among the best if it stood on the current path.
        for n in 1..by_relevance.len() {
            assert_eq!(shown(&env, &["log", "-n", &n.to_string()]), by_relevance[..n]);
        }
        assert_eq!(shown(&env, &["log", "--sort", "time"]), by_time);
        assert_eq!(shown(&env, &["log", "--sort", "time", "-n", "2"]), by_time[..2]);
        // Programs read all of them, the newest first.
        let texts = |args: &[&str]| -> Vec<String> {
            stands(&env, args).into_iter().map(|(text, _)| text).collect()
        };
        assert_eq!(texts(&["log"]), by_time);
        assert_eq!(texts(&["log", "--sort", "relevance"]), by_relevance);
        env.run(&["store", "index"]).success();
    }
    assert_snapshot!(env.run(&["search", "--sort", "size", "log"]), @"
    ------- stderr -------
    error: invalid value 'size' for '--sort <ORDER>': use relevance or time
    hint: see the help: undertext search --help
    [exit status: 2]
    ");
}

#[test]
fn a_hit_names_the_tool_that_answered_whether_one_was_asked_for_or_not() {
    let env = TestEnv::new();
    let garden = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let hits = |args: &[&str]| {
        let args = [&["search", "--json"], args, &[garden.to_str().unwrap()]].concat();
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
    let told = env.run(&["search", "--json", "--tool", "Bash", "quince"]).success().stdout;
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
        let shown = env.run(&["search", words]).success().stdout;
        let head = shown.split_whitespace().next().unwrap();
        let log = env.run(&["log", head]).success().stdout;
        assert!(log.contains(words), "{head}: {log}");
        let told = json(&env.run(&["status", head, "--json"]).success().stdout);
        assert_eq!(told["session"], id.as_str(), "{head}");
    }
    // A session that is named is searched with its sub-agents, and hidden with them.
    let found = |args: &[&str]| env.run(&[&["search", "ash"], args].concat()).code();
    assert_eq!(
        (found(&[one]), found(&[other]), found(&[one, "--branch", "main"])),
        (Some(0), Some(1), Some(1))
    );
    env.run(&["sessions", "--hide", one]).success();
    assert_eq!((found(&[]), found(&["--hidden"]), found(&[one])), (Some(1), Some(0), Some(0)));
}

#[test]
fn lines_around_a_match_are_shown_once() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    env.run(&["append", "one\ntwo\nthree mark\nfour\nfive mark\nsix\nseven"]).success();
    let told = env.run(&["search", "mark", "-C", "1"]).success().stdout;
    let lines: Vec<&str> =
        told.lines().filter(|line| line.trim_start().starts_with(char::is_numeric)).collect();
    assert_eq!(lines, ["  2  two", "  3  three mark", "  4  four", "  5  five mark", "  6  six"]);
    let told = env.run(&["search", "mark", "-C", "2"]).success().stdout;
    assert_eq!(told.matches("three mark").count(), 1);
}

#[test]
fn the_hint_for_more_repeats_what_was_typed() {
    let env = TestEnv::new();
    conversation(&env);
    let told = env.run(&["search", "-i", "--role", "user", "-n", "1", "-C1", "e"]).success();
    let hint =
        "hint: there may be more; show all: undertext search -i --role user -C1 e --number 0";
    assert_eq!(told.stderr.trim_end(), hint);
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
    assert_snapshot!(env.run(&["search", "a\nb"]), @r"
    ------- stderr -------
    error: the pattern contains a line break, but texts are searched line by line
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["search", "--regex", "a(b"]), @r"
    ------- stderr -------
    error: invalid regular expression: unclosed group
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["search", "--regex", "((a{999}){999}){999}"]), @r"
    ------- stderr -------
    error: the pattern has 997002999 alternatives at once, and at most 1000 are supported: use fewer alternatives or repetitions
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
    assert_eq!(env.run(&["search", &"word ".repeat(20_000)]).code(), Some(2));
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
    let found = || words.map(|word| stands(&env, &["-i", word, "-n", "0"]));
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
            db.execute_batch("DROP TABLE lexicon; DROP TABLE words;").unwrap();
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
        let asked: [&[&str]; 5] =
            [&[], &["--sort", "time"], &["-n", "1", "--sort", "time"], &["--count"], &["-l"]];
        asked.map(|args| env.run(&[&["search", "zebrafish"], args].concat()).success().stdout)
    };
    fs::create_dir(index(&env)).unwrap();
    let expected = all();
    // What shares a history with the newest session is told first.
    let (before, behind) = (expected[1].find(&id(10)[..8]), expected[1].find(&id(50)[..8]));
    assert!(before.unwrap() < behind.unwrap(), "{}", expected[1]);
    fs::remove_dir(index(&env)).unwrap();
    env.run(&["store", "index"]).success();
    assert_eq!(all(), expected);
    // A session that says it later is found before the index has it.
    env.run(&["append", "another zebrafish", "-s", &id(70)]).success();
    assert_eq!(stands(&env, &["zebrafish"]).len(), 3);
    assert_eq!(stands(&env, &["zebrafish"]).len(), 3);
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
    db.execute_batch("BEGIN IMMEDIATE; DELETE FROM lexicon;").unwrap();
    env.run(&["append", "a word that is new"]).success();
    assert_eq!(stands(&env, &["symbol"]).len(), 1);
    assert_eq!(stands(&env, &["word that"]).len(), 1);
    assert_snapshot!(env.run(&["store", "index"]), @"Another program is updating the index");
    db.execute_batch("ROLLBACK").unwrap();
    assert_eq!(json(&env.run(&["store", "index", "--json"]).stdout)["whole"], true);
    // One that is being made is not made again.
    drop(db);
    fs::remove_file(index(&env)).unwrap();
    let seal = fs::File::open(super::store(&env).join("search.seal")).unwrap();
    seal.lock().unwrap();
    assert_eq!(stands(&env, &["symbol"]).len(), 1);
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
    assert_eq!(stands(&env, &["second"]).len(), 1);
    assert_eq!(stands(&env, &["first"]).len(), 0);
    assert_eq!(stands(&env, &["second"]).len(), 1);
}

#[test]
fn a_damaged_session_hides_nothing_of_the_others() {
    let env = TestEnv::new();
    let damaged = conversation(&env);
    conversation(&env);
    assert_eq!(stands(&env, &["symbol"]).len(), 2);
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
        assert_eq!(told.stdout.matches("in a damaged session").count(), 1, "{told}");
        assert!(told.stderr.contains(&damaged), "{told}");
        let mut found = stands(&env, &["symbol"]);
        found.sort();
        assert_eq!([found[0].1.as_str(), found[1].1.as_str()], ["current", "unknown"]);
        assert_eq!(stands(&env, &["symbol", "--branch", "main"]).len(), 1);
        env.run(&["store", "index"]).success();
    }
}

#[test]
fn a_store_that_may_not_be_written_is_searched() {
    let env = TestEnv::new();
    conversation(&env);
    let copy = env.home().join("copy");
    let copy = copy.to_str().unwrap();
    env.run(&["store", "backup", copy]).success();
    let mode = |mode| {
        fs::set_permissions(copy, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(0o500);
    let found = stands(&env, &["symbol", "--store", copy]);
    mode(0o700);
    assert_eq!(found.len(), 1);
}
