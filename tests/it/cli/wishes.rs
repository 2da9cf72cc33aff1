//! Ten wishes of five kinds of newcomer, from an empty home on: each is met by one command that a newcomer would type.
//!
//! The transcripts are snapshots of a terminal of 80 columns; at 120, too, no line is wider than that.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use unicode_width::UnicodeWidthStr as _;

use super::screens::shown_at;
use crate::env::{TestEnv, masked};

/// A kind of newcomer: files of the examples with where their agents keep them, the session in question and two words of it, and
/// the day after it.
struct Kind {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    session: &'static str,
    said: &'static str,
    about: &'static str,
    next_day: &'static str,
}

const CLAUDE: (&str, &str) = (
    "claude-garden.jsonl",
    ".claude/projects/-home-ann-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl",
);
const CODEX: (&str, &str) = (
    "codex-weather.jsonl",
    ".codex/sessions/2026/08/02/rollout-2026-08-02T14-00-00-019fc000-0000-7000-8000-000000000001.jsonl",
);
const PI: (&str, &str) = (
    "pi-boat.jsonl",
    ".pi/agent/sessions/--home-ann-boat--/2026-07-04T18-00-00-000Z_5d9e0c1a-0000-4000-8000-000000000000.jsonl",
);

const KINDS: [Kind; 3] = [
    Kind {
        name: "claude",
        files: &[CLAUDE],
        session: "7c2a",
        said: "thirsty",
        about: "watering",
        // 2026-08-21 10:00 UTC
        next_day: "1787306400000",
    },
    Kind {
        name: "codex",
        files: &[CODEX],
        session: "019f",
        said: "strongest",
        about: "weather",
        // 2026-08-03 10:00 UTC
        next_day: "1785751200000",
    },
    Kind {
        name: "several",
        files: &[CLAUDE, CODEX, PI],
        session: "5d9e",
        said: "hull",
        about: "boat",
        // 2026-07-05 10:00 UTC
        next_day: "1783245600000",
    },
];

/// Returns the commands of the ten wishes, each after what is wished.
fn wishes(session: &str, said: &str, about: &str) -> Vec<(&'static str, Vec<String>)> {
    let wish = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    vec![
        ("what do I have here?", wish(&[])),
        ("what did I do yesterday?", wish(&["sessions", "yesterday"])),
        ("read turn 1", wish(&["show", "1", session])),
        ("what did I revert?", wish(&["branch", "-s", session])),
        ("why is my window full?", wish(&["context", session])),
        ("go back and tell it why", wish(&["revert", "1", session, "-m", "It will rain."])),
        ("undo that", wish(&["undo", session])),
        ("where did I say that?", wish(&["search", said])),
        ("which session was about that?", wish(&["sessions", about])),
        ("what was lost when it was compacted?", wish(&["audit", "--boundary", session])),
        ("go on there", wish(&["resume", session, "--print"])),
    ]
}

/// Returns what a terminal shows of commands, each after its wish; no line may be wider than the terminal.
fn transcript(
    env: &TestEnv,
    wishes: &[(&str, Vec<String>)],
    columns: usize,
    clock: Option<&str>,
) -> String {
    let mut text = String::new();
    for (wish, words) in wishes {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let shown = without_copies(&shown_at(env, &words, columns, "never", clock));
        // A command or a path that is to be copied is one line.
        let is_copied = |line: &str| ["  ", "cd "].iter().any(|start| line.starts_with(start));
        let wide = shown.lines().find(|line| line.width() > columns && !is_copied(line));
        assert_eq!(wide, None, "{words:?} at {columns}");
        writeln!(text, "# {wish}\n$ undertext {}\n{shown}", words.join(" ")).unwrap();
    }
    let home = env.home().canonicalize().unwrap();
    masked(&without_time(&text).replace(home.to_str().unwrap(), "$HOME"))
}

/// Hides how long an import took, and where the line breaks after that.
fn without_time(text: &str) -> String {
    let Some((before, rest)) = text.split_once("Found ") else { return text.to_owned() };
    let Some((said, after)) = rest.split_once("read.\n") else { return text.to_owned() };
    let what = said.split_once("Imported").map_or(said, |(what, _)| what);
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{before}Found {what} Imported ..\n{after}")
}

/// Returns what a terminal shows of a text that it is asked to copy in part.
fn without_copies(text: &str) -> String {
    let mut parts = text.split("\x1b]52;c;");
    let first = parts.next().unwrap().to_owned();
    let rest = parts.map(|part| part.split_once('\x07').map_or(part, |(_, rest)| rest));
    first + &rest.collect::<String>()
}

/// Returns a machine with sessions where their agents keep them.
fn machine(files: &[(&str, &str)]) -> TestEnv {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    for (example, path) in files {
        let path = env.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(examples.join(example), path).unwrap();
    }
    env
}

#[test]
fn whoever_uses_agents_needs_one_command_for_a_wish() {
    for Kind { name, files, session, said, about, next_day } in KINDS {
        let wishes = wishes(session, said, about);
        transcript(&machine(files), &wishes, 120, Some(next_day));
        let told = transcript(&machine(files), &wishes, 80, Some(next_day));
        assert_snapshot!(format!("{name}_80"), told);
    }
}

#[test]
fn whoever_writes_an_agent_needs_one_command_for_a_wish() {
    for columns in [120, 80] {
        let env = machine(&[]);
        env.run(&["new", "-q"]).success();
        for (role, words) in [
            ("user", "Why does the build fail?"),
            ("assistant", "A symbol is missing."),
            ("user", "Where is it used?"),
            ("assistant", "In main.c."),
        ] {
            let line = format!("{{\"role\":\"{role}\",\"content\":\"{words}\"}}\n");
            env.run_with_stdin(&["append", "-q"], line.as_bytes()).success();
        }
        let mut wishes = wishes("build", "symbol", "fail");
        // Its sessions are of today, have a title to be named by, and no agent to be resumed by.
        wishes.retain(|(wish, _)| !wish.starts_with("what did I do") && *wish != "go on there");
        for (_, words) in &mut wishes {
            words.iter_mut().filter(|word| *word == "build").for_each(|word| *word = "Why".into());
        }
        let told = transcript(&env, &wishes, columns, None);
        if columns == 80 {
            assert_snapshot!("own_80", told);
        }
    }
}

#[test]
fn whoever_has_no_agent_is_told_what_to_do() {
    let wishes = wishes("7c2a", "thirsty", "watering");
    let told = transcript(&machine(&[]), &wishes, 80, None);
    assert_snapshot!("nothing_80", told);
    transcript(&machine(&[]), &wishes, 120, None);
}
