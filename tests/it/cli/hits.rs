//! What a search shows of what it finds: lines that fit, counts, and the command line that shows all; and what a line, and its
//! time, is.

use std::fs;

use insta::assert_snapshot;

use super::search::{id, lines_found, record};
use super::{conversation, json};
use crate::env::TestEnv;

/// Says something in a session of its own.
fn say(env: &TestEnv, text: &str) {
    env.run(&["new"]).success();
    env.run_with_stdin(&["append", "-"], text.as_bytes()).success();
}

/// Returns the lines of texts that a search shows, without what is before them.
fn lines(env: &TestEnv, args: &[&str]) -> Vec<String> {
    let told = env.run(&[&["search"], args].concat()).success().stdout;
    let texts = told.lines().filter_map(|line| {
        let (before, text) = line.strip_prefix("  ")?.split_once("  ")?;
        let is_number = before.parse::<usize>().is_ok();
        let is_short = !args.contains(&"--full");
        let short = line.split_once("  current  ").filter(|_| is_short);
        let short = short.map(|(_, text)| text.trim_start());
        if is_number { Some(text.to_owned()) } else { short.map(str::to_owned) }
    });
    texts.collect()
}

#[test]
fn the_line_that_shows_all_can_be_typed_however_the_search_was() {
    let env = TestEnv::new();
    conversation(&env);
    let store = super::store(&env);
    let store = store.to_str().unwrap();
    let typed: [(&[&str], &str); 8] = [
        (&["search", "-F", "-n", "1", "--", "e"], "search -F --number 0 -- e"),
        (&["search", "-Fin1", "E"], "search -Fi E --number 0"),
        (&["search", "-F", "-in", "1", "E"], "search -F -i E --number 0"),
        (&["search", "-n1", "the"], "search the --number 0"),
        (&["search", "--number=1", "e", "-FiC2"], "search e -FiC2 --number 0"),
        (&["search", "-wn", "1", "the"], "search -w the --number 0"),
        (
            &["--store", store, "search", "-F", "-n", "1", "--", "e"],
            "search -F --number 0 --store $STORE -- e",
        ),
        (&["-q", "--color", "never", "search", "-Fn1", "e"], ""),
    ];
    env.run(&["append", "the end"]).success();
    for (args, expected) in typed {
        let told = env.run(args).success().stderr.replace("$HOME", env.home().to_str().unwrap());
        let words = "hint: there may be more; show all: undertext ";
        let hint = told.lines().find_map(|line| line.strip_prefix(words)).unwrap_or_default();
        assert_eq!(hint.replace(store, "$STORE"), expected, "{told}");
        if !hint.is_empty() {
            let again: Vec<&str> = hint.split(' ').collect();
            let more = env.run(&again).success();
            assert!(more.stdout.len() > env.run(args).stdout.len(), "{more}");
            assert!(!more.stderr.contains("show all"), "{more}");
        }
    }
}

#[test]
fn a_count_says_of_what_it_is() {
    let env = TestEnv::new();
    for _ in 0..3 {
        say(&env, "a beam\nand a beam");
    }
    let told = |args: &[&str]| {
        let told = env.run(&[&["search", "-F", "--count", "beam"], args].concat()).success().stderr;
        told.lines().next().unwrap().to_owned()
    };
    assert_eq!(told(&[]), "6 lines in all");
    assert_eq!(told(&["-n", "2"]), "4 lines in these 2 sessions");
    assert_eq!(told(&["-n", "1"]), "2 lines in this session");
    assert_eq!(told(&["-n", "3"]), "6 lines in all");
}

#[test]
fn a_line_that_ends_as_on_windows_is_shown_with_its_match() {
    let env = TestEnv::new();
    say(&env, "disk full\r\nsecond line\r\n");
    assert_eq!(lines(&env, &["--regex", "disk.*"]), ["disk full"]);
    assert!(
        env.run(&["search", "--regex", "disk.*", "--full"]).stdout.contains("  1  disk full\n")
    );
}

#[test]
fn a_long_line_is_cut_around_its_first_match_where_no_terminal_is() {
    let env = TestEnv::new();
    let text = format!("{} a beam {}", "x".repeat(3000), "e ".repeat(100_000));
    say(&env, &text);
    let shown = lines(&env, &["-F", "beam"]).concat();
    assert!(shown.starts_with("…xxxx") && shown.contains(" a beam e e ") && shown.ends_with('…'));
    let before = "  00000000@0.0   user       current  ".len();
    assert_eq!(shown.chars().count(), 500 - before);
    assert_eq!(lines(&env, &["-F", "beam", "--full"]).concat(), text.trim_end());
    assert!(env.run(&["search", "--json", "-F", "beam"]).success().stdout.contains(&text));
    // One whose every word matches is no longer.
    assert_eq!(lines(&env, &["-F", "e"]).concat().chars().count(), 500 - before);
}

#[test]
fn a_title_that_was_cut_ends_so() {
    let env = TestEnv::new();
    let (long, short) = (format!("beam {}", "e".repeat(200)), format!("beam {}", "i".repeat(114)));
    say(&env, &long);
    say(&env, &short);
    for args in [["search", "-l", "beam"], ["search", "--count", "beam"], ["sessions", "-n", "9"]] {
        let told = env.run(&args).success().stdout;
        assert!(told.contains(&format!("{}…", &long[..120])), "{told}");
        assert!(told.contains(&short) && !told.contains(&format!("{short}…")), "{told}");
    }
}

#[test]
fn a_line_ends_before_its_line_end_whichever_that_is() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    env.run(&["append", "disk full\r\nsecond line\r\nthird"]).success();
    // A line is told with its CR.
    for (pattern, line) in
        [("disk.*", "disk full"), ("full$", "disk full"), ("d line$", "second line")]
    {
        let found = lines_found(&env, &["--regex", pattern]);
        assert_eq!(found, [(format!("{line}\r"), "current".to_owned())], "{pattern}");
    }
    assert_snapshot!(env.run(&["search", "--regex", r"full\nsecond"]).masked(), @r"
    ------- stderr -------
    error: the pattern contains a line break, but texts are searched line by line
    [exit status: 2]
    ");
    // As many lines around as there are.
    let all = env.run(&["search", "--json", "-C", "18446744073709551615", "second"]).success();
    let hit = json(all.stdout.lines().next().unwrap());
    assert_eq!(
        (&hit["before"], &hit["after"]),
        (&serde_json::json!(["disk full\r"]), &serde_json::json!(["third"]))
    );
}

#[test]
fn what_has_no_time_counts_as_said_when_its_session_was_last_active() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    let mut first = json(&record(1, 1, None, 1, "an undated harbour"));
    first.as_object_mut().unwrap().remove("timestamp");
    let text = format!("{first}\n{}", record(1, 2, Some(1), 2, "a dated one"));
    fs::write(folder.join(format!("{}.jsonl", id(1))), text).unwrap();
    env.run(&["import", "-q"]).success();
    let found = |args: &[&str]| lines_found(&env, &[&["harbour"], args].concat()).len();
    assert_eq!(found(&[]), 1);
    assert_eq!((found(&["--since", "2026-03-01"]), found(&["--until", "2026-03-01"])), (1, 0));
    assert_eq!((found(&["--since", "2026-03-02"]), found(&["--until", "2026-03-02"])), (0, 1));
    assert_eq!(found(&["--since", "2026-02-01", "--until", "2026-01-01"]), 0);
    let named = |moment: [&str; 2]| found(&["--session", &id(1), moment[0], moment[1]]);
    assert_eq!((named(["--since", "2026-03-02"]), named(["--until", "2026-03-02"])), (0, 1));
}
