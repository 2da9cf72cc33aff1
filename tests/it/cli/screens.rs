//! Screens on a terminal: what a person reads of each agent's session, at 80 and 120 columns, with colour and without.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use insta::assert_snapshot;
use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use unicode_width::UnicodeWidthStr as _;

use crate::env::TestEnv;

/// The examples: a session of each agent, and one whose tools answered at length.
const EXAMPLES: [(&str, &str); 5] = [
    ("claude", "claude-garden.jsonl"),
    ("codex", "codex-weather.jsonl"),
    ("pi", "pi-boat.jsonl"),
    ("kimi", "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl"),
    ("native", "native-tools.jsonl"),
];

const SCREENS: [&[&str]; 8] = [
    &["log"],
    &["log", "-v"],
    &["graph"],
    &["checkpoints"],
    &["branch", "-s"],
    &["show", "HEAD", "-s"],
    &["status", "-s"],
    &["revert", "1", "--dry-run", "-s"],
];

/// The screens of a store that holds all of them.
const LISTS: [&[&str]; 6] = [
    &[],
    &["sessions"],
    &["sessions", "-v"],
    &["sessions", "--tree", "-n", "3"],
    &["operations", "--all"],
    &["store", "sizes"],
];

/// Returns a machine with the examples in its current folder.
fn machine() -> TestEnv {
    let env = TestEnv::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    crate::format::copy(&examples, &env.project());
    env
}

/// Returns the two ends of a terminal: what a person sees, and what a program writes to.
pub(super) fn terminal() -> (File, OwnedFd) {
    let host = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    // A command that inherited this end would keep the terminal open.
    fcntl_setfd(&host, FdFlags::CLOEXEC).unwrap();
    grantpt(&host).unwrap();
    unlockpt(&host).unwrap();
    let name = ptsname(&host, Vec::new()).unwrap();
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (File::from(host), terminal)
}

/// Returns what a command shows on a terminal.
fn shown(env: &TestEnv, args: &[&str], columns: usize, colour: &str) -> String {
    shown_at(env, args, columns, colour, None)
}

/// Returns what a command shows on a terminal at a moment, or at the moment of the next command.
pub(super) fn shown_at(
    env: &TestEnv,
    args: &[&str],
    columns: usize,
    colour: &str,
    clock: Option<&str>,
) -> String {
    let (mut host, terminal) = terminal();
    let mut command = env.command();
    command.envs(clock.map(|clock| ("UNDERTEXT_TEST_CLOCK", clock)));
    command
        .args(args)
        .args(["--color", colour, "--no-pager"])
        .env("COLUMNS", columns.to_string())
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(terminal.try_clone().unwrap())
        .stderr(terminal);
    let mut child = command.spawn().unwrap();
    // The terminal ends with the last process that has it open.
    drop(command);
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = host.read(&mut buffer) {
        bytes.extend_from_slice(&buffer[..n]);
    }
    child.wait().unwrap();
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

/// Returns every screen of a session, each behind its command.
fn screens(file: &str, columns: usize, colour: &str) -> String {
    let env = machine();
    all(&env, &SCREENS, &[file], columns, colour)
}

/// Returns every screen of a store that holds all examples.
fn lists(columns: usize, colour: &str) -> String {
    let env = machine();
    env.run(&["import", "-q", "."]).success();
    all(&env, &LISTS, &[], columns, colour)
}

/// Returns what each command shows on a terminal, behind the command without its last words.
fn all(env: &TestEnv, commands: &[&[&str]], last: &[&str], columns: usize, colour: &str) -> String {
    let mut text = String::new();
    for command in commands {
        let told = shown(env, &[command, last].concat(), columns, colour);
        writeln!(text, "$ undertext {}\n{told}", command.join(" ")).unwrap();
    }
    text
}

/// Returns a text without what paints it.
fn plain(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap().to_owned();
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, rest)| rest));
    first + &rest.collect::<String>()
}

#[test]
fn every_screen_fits_its_terminal_and_says_the_same_without_colour() {
    for (agent, file) in EXAMPLES {
        hold(agent, &|columns, colour| screens(file, columns, colour));
    }
    hold("lists", &lists);
}

/// Holds screens at both widths, with colour and without.
fn hold(name: &str, screens: &dyn Fn(usize, &str) -> String) {
    for columns in [80, 120] {
        let coloured = screens(columns, "always");
        let bare = screens(columns, "never");
        assert_eq!(plain(&coloured), bare, "{name} at {columns}");
        let wide = bare.lines().find(|line| line.width() > columns);
        assert_eq!(wide, None, "{name} at {columns}");
        let is_clean = |c: char| !c.is_control() || c == '\n';
        assert!(bare.chars().all(is_clean), "{name} at {columns}: {bare:?}");
        assert_snapshot!(format!("{name}_{columns}"), bare);
        let coloured = coloured.replace('\x1b', "^");
        assert_snapshot!(format!("{name}_{columns}_coloured"), coloured);
    }
}

#[test]
fn a_pager_is_told_to_show_colours_unless_its_user_says_otherwise() {
    let env = machine();
    let pager = r#"cat >/dev/null; printf '%s' "[$LESS|$LV]""#;
    for (less, expected) in [(None, "[FRX|-c]"), (Some("-i"), "[-i|-c]")] {
        let (mut host, terminal) = terminal();
        let mut command = env.command();
        command.args(["log", "native-tools.jsonl"]).env("PAGER", pager).stdin(Stdio::null());
        command.env("PATH", "/usr/bin:/bin").stdout(terminal.try_clone().unwrap()).stderr(terminal);
        command.envs(less.map(|set| ("LESS", set)));
        assert!(command.status().unwrap().success());
        drop(command);
        let mut said = [0; 64];
        let n = host.read(&mut said).unwrap();
        assert_eq!(String::from_utf8_lossy(&said[..n]), expected);
    }
}

#[test]
fn what_is_listed_fits_a_narrow_terminal_too() {
    let env = machine();
    let folder = env.home().join(".claude/projects/-home-ann-a-folder-of-a-name-that-fills-a-line");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl");
    std::fs::copy(env.project().join("claude-garden.jsonl"), &path).unwrap();
    env.run(&["import", "-q"]).success();
    env.run(&["import", "-q", "."]).success();
    std::fs::remove_file(path).unwrap();
    env.run(&["import", "-q"]).success();
    // A dry run lists what is not in the store yet.
    let copy = "a-copy-of-a-name-that-fills-a-line-and-goes-on-beyond-it.jsonl";
    std::fs::copy(env.project().join("claude-garden.jsonl"), env.project().join(copy)).unwrap();
    let made = env.run(&["new", "--json"]).success().stdout;
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let native = made["session"].as_str().unwrap();
    let call =
        ["--call", "a_tool_of_a_long_name", "--input", "{\"path\":\"src/lib.rs\"}", "--id", "c"];
    env.run(&["append", "-q", "Look."]).success();
    env.run(&[&["append", "-q"], &call[..]].concat()).success();
    let long = "a line of what a tool said\n".repeat(400);
    env.run_with_stdin(&["append", "-q", "--result", "c", "-"], long.as_bytes()).success();
    env.run(&["truncate", "-q", "--max-chars", "2000"]).success();
    assert!(env.run(&["audit"]).success().stdout.contains("1 entry cut from 10,800 to "));
    let call = ["--call", "Bash", "--input", "{\"command\":\"cat src/lib.rs\"}", "--id", "d"];
    env.run(&[&["append", "-q"], &call[..]].concat()).success();
    env.run_with_stdin(&["append", "-q", "--result", "d", "-"], long.as_bytes()).success();
    let listed: [&[&str]; 13] = [
        &["truncate", "--dry-run", "--max-chars", "2000", "-s", native],
        &["context", "-s", native],
        &["context", "-s", "7c2a51de", "--as", "anthropic", "--turns", "1"],
        &["audit", "-s", native],
        &["audit", "--all"],
        &["search", "--count", "the"],
        &["search", "-l", "the"],
        &["import", "--dry-run", "."],
        &["restore", "--all", "--dry-run"],
        &["store", "rebuild"],
        &["sessions"],
        &["sessions", "--tree", "-v"],
        &["operations", "--all"],
    ];
    for columns in [60, 80, 120] {
        for args in listed {
            let told = shown(&env, &[args, &["-q"]].concat(), columns, "never");
            // A warning is a sentence, and may name a path or a command that must stay whole.
            let listed = || told.lines().filter(|line| !line.starts_with("warning: "));
            assert!(listed().count() > 0, "{args:?}");
            let wide = listed().find(|line| line.width() > columns);
            assert_eq!(wide, None, "{args:?} at {columns}:\n{told}");
        }
    }
}

#[test]
fn the_bare_program_fits_a_terminal() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-w");
    std::fs::create_dir_all(&folder).unwrap();
    let garden = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let garden = std::fs::read_to_string(garden).unwrap();
    for n in 0..24 {
        let id = format!("{n:08x}-90b4-4e6f-8a53-0d1f6b7e2c40");
        let place =
            if n % 2 == 0 { env.project().to_str().unwrap().to_owned() } else { "/w".to_owned() };
        let own = garden.replace("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40", &id);
        let own = own.replace("/home/ann/garden", &place).replace("2026-08-20", "2001-02-02");
        std::fs::write(folder.join(format!("{id}.jsonl")), own).unwrap();
    }
    for (columns, most) in [(80, 26), (120, 23), (60, 26)] {
        // The first time it also says what it imported.
        let told = shown(&env, &[], columns, "never");
        assert!(told.lines().count() <= most, "{told}");
        let wide = told.lines().find(|line| line.width() > columns);
        assert_eq!(wide, None, "at {columns}:\n{told}");
        for part in ["24 sessions: claude 24", "4 weeks", "12 sessions", "… 7 more", "Elsewhere"]
        {
            assert!(told.contains(part), "{part}:\n{told}");
        }
    }
}
