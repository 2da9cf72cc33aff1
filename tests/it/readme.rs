//! The README and every page under `docs/`, tried as a reader would: each page on a machine of its own, the commands of its
//! `console` blocks in order.
//!
//! What follows a command is what it prints, stderr included; a line `...` matches any number of lines. A block of another
//! language that begins with `# PATH` is written to that file. Ids cover the path of the home folder, so they differ in each
//! run, but one id on a page is one id in the run.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::{env::TestEnv, needs};

/// 2026-03-14 09:00:00 UTC, in Unix milliseconds.
const START: u64 = 1_773_478_800_000;

/// The home folder in the pages.
const HOME: &str = "/home/ann";

/// `cargo run` runs the program that is already built.
const PRELUDE: &str = "cargo() { shift 2; undertext \"$@\"; }\nexec 2>&1\n";

/// Maximum size of the README, in bytes.
const LIMIT: u64 = 8 * 1024;

/// A page: the lines of its prose, and its fenced blocks, each with its language.
#[derive(Default)]
struct Page<'a> {
    prose: Vec<&'a str>,
    blocks: Vec<(&'a str, Vec<&'a str>)>,
}

/// A command, and the lines that its page shows after it.
struct Step<'a> {
    command: String,
    shown: Vec<&'a str>,
}

#[test]
fn every_command_prints_what_its_page_shows() {
    let mut commands = 0;
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        if text.contains("$ python3 ") && needs::python().is_none() {
            continue;
        }
        let steps = Page::new(&text).steps();
        commands += steps.len();
        run_page(&path, &steps);
    }
    assert!(commands > 50, "the pages show commands");
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for path in pages() {
        let text = fs::read_to_string(&path).unwrap();
        for link in Page::new(&text).links().filter(|link| !link.starts_with("https://")) {
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            let is_there = match anchor {
                "" => target.exists(),
                _ => fs::read_to_string(target).is_ok_and(|text| Page::new(&text).has(anchor)),
            };
            assert!(is_there, "{}: {link} is a broken link", path.display());
        }
    }
    assert!(links > 20, "the pages have links");
}

#[test]
fn the_readme_is_short() {
    let bytes = fs::metadata(package().join("README.md")).unwrap().len();
    assert!(bytes <= LIMIT, "README.md has {bytes} bytes of at most {LIMIT}");
}

#[test]
fn three_dots_match_any_lines() {
    assert!(matches(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["a", "..."], &["a"]));
    assert!(!matches(&["a", "...", "d"], &["a", "b"]));
    assert!(!matches(&["a"], &["a", "b"]));
}

#[test]
fn blocks_become_commands_and_files() {
    let page =
        Page::new("# A page\n```console\n$ a\nb\n$ c\n```\n[d](e#f)\n```toml\n# g.toml\nh\n```\n");
    let steps = page.steps();
    let commands: Vec<&str> = steps.iter().map(|step| step.command.as_str()).collect();
    let write = "mkdir -p $(dirname g.toml) && cat > g.toml <<'END'\n# g.toml\nh\nEND";
    assert_eq!(commands, ["a", "c", write]);
    assert_eq!(steps[0].shown, ["b"]);
    assert_eq!(page.links().collect::<Vec<_>>(), ["e#f"]);
    assert!(page.has("a-page") && !page.has("gtoml"));
}

impl<'a> Page<'a> {
    fn new(text: &'a str) -> Self {
        let mut page = Self::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            match line.strip_prefix("```") {
                Some(language) => {
                    let block = lines.by_ref().take_while(|line| *line != "```").collect();
                    page.blocks.push((language, block));
                }
                None => page.prose.push(line),
            }
        }
        page
    }

    /// Returns what a reader does: runs each command, and writes each block that names its file.
    fn steps(&self) -> Vec<Step<'a>> {
        let mut steps: Vec<Step<'a>> = Vec::new();
        for (language, block) in &self.blocks {
            if *language == "console" {
                for line in block {
                    match line.strip_prefix("$ ") {
                        Some(command) => {
                            steps.push(Step { command: command.to_owned(), shown: Vec::new() });
                        }
                        None => steps.last_mut().unwrap().shown.push(*line),
                    }
                }
            } else if let Some(path) = block.first().and_then(|line| named_file(line)) {
                let content = block.join("\n");
                let command =
                    format!("mkdir -p $(dirname {path}) && cat > {path} <<'END'\n{content}\nEND");
                steps.push(Step { command, shown: Vec::new() });
            }
        }
        steps
    }

    fn links(&self) -> impl Iterator<Item = &'a str> {
        let links = |line: &&'a str| line.split("](").skip(1).collect::<Vec<&'a str>>();
        self.prose.iter().flat_map(links).filter_map(|rest| rest.split(')').next())
    }

    /// Returns whether a heading has this anchor, as GitHub makes it.
    fn has(&self, anchor: &str) -> bool {
        let is_kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let titles = self.prose.iter().filter(|line| line.starts_with('#'));
        titles.map(|line| line.trim_start_matches('#').trim()).any(|title| {
            let kept: String = title.chars().filter(is_kept).collect();
            kept.to_lowercase().replace(' ', "-") == anchor
        })
    }
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the README and the pages under `docs/`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![package().join("README.md")];
    let mut folders = vec![package().join("docs")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Returns the path in a block's first line, if that is `# PATH`.
fn named_file(line: &str) -> Option<&str> {
    line.strip_prefix("# ").filter(|path| path.contains('.') && !path.contains(' '))
}

fn run_page(path: &Path, steps: &[Step<'_>]) {
    let env = TestEnv::new();
    let examples = env.project().join("examples");
    fs::create_dir(&examples).unwrap();
    crate::format::copy(&package().join("examples"), &examples);
    let mut ids_here: BTreeMap<String, String> = BTreeMap::new();
    for (n, step) in (0..).zip(steps) {
        let printed = run(&env, n, &step.command);
        let (shown, place) = (step.shown.join("\n"), path.display());
        let command = &step.command;
        let is_whole = !step.shown.contains(&"...");
        for (one, other) in ids(&shown).zip(ids(&printed)).filter(|_| is_whole) {
            let known = ids_here.entry(one.to_owned()).or_insert_with(|| other.to_owned());
            assert_eq!(
                known, other,
                "{place}: $ {command}\n{printed}\n{one} was another id before"
            );
        }
        let (masked_shown, masked_printed) = (masked(&shown), masked(printed.trim_end()));
        let is_same = matches(&lines(&masked_shown), &lines(&masked_printed));
        assert!(is_same, "{place}: $ {command}\n{printed}\nand the page shows\n{shown}");
    }
}

/// Runs the n-th command and returns what it prints on both streams.
fn run(env: &TestEnv, n: u64, command: &str) -> String {
    let mut shell = env.shell("bash", &format!("{PRELUDE}{command}"));
    shell.env("UNDERTEXT_TEST_CLOCK", (START + 1000 * n).to_string());
    let output = shell.output().unwrap();
    String::from_utf8(output.stdout).unwrap().replace(env.home().to_str().unwrap(), HOME)
}

/// Returns whether a word is an id, or the beginning of one.
fn is_id(word: &str) -> bool {
    matches!(word.len(), 8 | 12 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the ids in a text, in order.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| is_id(word))
}

/// Returns a text with every id replaced by the same word.
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

fn matches(shown: &[&str], printed: &[&str]) -> bool {
    match (shown, printed) {
        ([], []) => true,
        (["...", rest @ ..], _) => (0..=printed.len()).any(|n| matches(rest, &printed[n..])),
        ([first, shown @ ..], [other, printed @ ..]) => first == other && matches(shown, printed),
        _ => false,
    }
}
