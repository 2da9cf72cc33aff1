//! The README, run as a reader would run it: one machine, every `console` block in order, each line that begins with `$ `.
//!
//! What follows a command is what it says, stderr included; a line `...` stands for any number of lines. Ids cover the path of
//! the home folder, so they differ in each run, but one id in the README is one id in the run.

use std::{collections::BTreeMap, fs, path::Path};

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
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for (n, (command, shown)) in (0..).zip(transcript) {
        let said = said(&env, n, command);
        let is_whole = !shown.contains(&"...");
        for (one, other) in ids(&shown.join("\n")).zip(ids(&said)).filter(|_| is_whole) {
            let known = named.entry(one.to_owned()).or_insert_with(|| other.to_owned());
            assert_eq!(known, other, "$ {command}\n{said}\nand {one} was another id before");
        }
        let (shown, found) = (masked(&shown.join("\n")), masked(said.trim_end()));
        let matched = matches(&lines(&shown), &lines(&found));
        assert!(matched, "$ {command}\n{said}\nand the README says\n{shown}");
    }
}

#[test]
fn every_link_within_the_repository_leads_somewhere() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(package.join("README.md")).unwrap();
    let is_kept = |c: &char| c.is_alphanumeric() || " -".contains(*c);
    let anchor = |title: &str| {
        title.chars().filter(is_kept).collect::<String>().to_lowercase().replace(' ', "-")
    };
    let titles = readme.lines().filter(|line| line.starts_with('#'));
    let anchors: Vec<String> =
        titles.map(|line| anchor(line.trim_start_matches('#').trim())).collect();
    let links: Vec<&str> =
        readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(links.len() > 3);
    for link in links.iter().filter(|link| !link.starts_with("https://")) {
        let is_there = match link.strip_prefix('#') {
            Some(name) => anchors.iter().any(|anchor| anchor == name),
            None => package.join(link).exists(),
        };
        assert!(is_there, "{link} leads nowhere");
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

/// Returns whether a word is an id, or the beginning of one.
fn is_id(word: &str) -> bool {
    matches!(word.len(), 8 | 12 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the ids in a text, in their order.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| is_id(word))
}

/// Returns a text with all ids alike.
fn masked(text: &str) -> String {
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
