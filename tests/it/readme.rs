//! The README, run as a reader would run it: one machine, every `console` block in order, each line that begins with `$ `.
//!
//! What follows a command is what it says, stderr included; a line `...` stands for any number of lines. Ids are not
//! compared, because they cover the path of the home folder.

use std::{fs, path::Path};

use crate::env::TestEnv;

/// 2026-03-14 09:00:00 UTC, in Unix milliseconds.
const START: u64 = 1_773_478_800_000;

/// The home folder of the README.
const HOME: &str = "/home/ann";

/// A command runs as it is installed, and not as cargo would build it.
const PRELUDE: &str = "cargo() { shift 2; undertext \"$@\"; }\nexec 2>&1\n";

#[test]
fn every_transcript_is_what_happens() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let env = TestEnv::new();
    let examples = env.project().join("examples");
    fs::create_dir(&examples).unwrap();
    crate::format::copy(&package.join("examples"), &examples);
    let readme = fs::read_to_string(package.join("README.md")).unwrap();
    let transcript = transcript(&readme);
    assert!(transcript.len() > 10, "the README shows commands");
    for (n, (command, shown)) in (0..).zip(transcript) {
        let said = said(&env, n, command);
        let (shown, found) = (masked(&shown.join("\n")), masked(said.trim_end()));
        let matched = matches(&lines(&shown), &lines(&found));
        assert!(matched, "$ {command}\n{said}\nand the README says\n{shown}");
    }
}

#[test]
fn three_dots_stand_for_any_lines() {
    assert!(matches(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["a", "..."], &["a"]));
    assert!(!matches(&["a", "...", "d"], &["a", "b"]));
    assert!(!matches(&["a"], &["a", "b"]));
}

/// Returns the commands of all blocks, each with what it is said to print.
fn transcript(readme: &str) -> Vec<(&str, Vec<&str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut is_inside = false;
    for line in readme.lines() {
        match (is_inside, line.strip_prefix("$ ")) {
            (false, _) => is_inside = line == "```console",
            (true, _) if line == "```" => is_inside = false,
            (true, Some(command)) => commands.push((command, Vec::new())),
            (true, None) => commands.last_mut().unwrap().1.push(line),
        }
    }
    commands
}

/// Runs the n-th command and returns what it says on both streams.
fn said(env: &TestEnv, n: u64, command: &str) -> String {
    let mut shell = env.shell("bash", &format!("{PRELUDE}{command}"));
    shell.env("UNDERTEXT_TEST_CLOCK", (START + 1000 * n).to_string());
    let output = shell.output().unwrap();
    let home = env.home().canonicalize().unwrap();
    let said = String::from_utf8(output.stdout).unwrap().replace(home.to_str().unwrap(), HOME);
    said.replace(env.home().to_str().unwrap(), HOME)
}

/// Returns a text with all ids alike.
fn masked(text: &str) -> String {
    let is_id = |word: &str| {
        matches!(word.len(), 8 | 12 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()).map(|word| {
        let (stem, end) =
            word.split_at(word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).len());
        if is_id(stem) { format!("ID{end}") } else { word.to_owned() }
    });
    words.collect()
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

fn matches(shown: &[&str], found: &[&str]) -> bool {
    match (shown, found) {
        ([], []) => true,
        (["...", rest @ ..], _) => (0..=found.len()).any(|n| matches(rest, &found[n..])),
        ([first, shown @ ..], [other, found @ ..]) => first == other && matches(shown, found),
        _ => false,
    }
}
