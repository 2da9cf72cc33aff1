//! All help in one snapshot, `tests/pins/help.snap`: a change of the command line shows as a change of one file.
//!
//! `INSTA_UPDATE=always cargo test --test it help` writes it anew.

use std::fmt::Write as _;

use insta::{Settings, assert_snapshot};

use crate::env::TestEnv;

#[test]
fn every_command_explains_itself() {
    let env = TestEnv::new();
    let mut all = String::new();
    let mut left = vec![vec![]];
    while let Some(command) = left.pop() {
        let asked: &[&str] = if command.is_empty() { &["help", "--all"] } else { &["--help"] };
        let asked = asked.iter().map(|word| (*word).to_owned());
        let asked: Vec<String> = command.iter().cloned().chain(asked).collect();
        let help = env.run(&asked).success().stdout;
        for name in subcommands(&help).into_iter().rev() {
            left.push([command.as_slice(), &[name]].concat());
        }
        let title = [&["undertext".to_owned()], command.as_slice()].concat().join(" ");
        writeln!(all, "# {title}\n\n{help}").unwrap();
    }
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../pins");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| assert_snapshot!("help", all));
}

/// The most lines of a command's help on a terminal of 80 columns, and the most words of all help.
const LINES: usize = 40;
const WORDS: usize = 9_000;

#[test]
fn every_help_fits_a_screen() {
    let env = TestEnv::new();
    let said = |args: &[String]| {
        let output = env.command().env("COLUMNS", "80").args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let mut words = 0;
    let mut left: Vec<Vec<String>> = vec![vec![]];
    while let Some(command) = left.pop() {
        let last = if command.is_empty() { "help" } else { "--help" };
        let help = said(&[command.as_slice(), &[last.to_owned()]].concat());
        assert!(help.lines().count() <= LINES, "{command:?} has {} lines", help.lines().count());
        words += help.split_whitespace().count();
        let all = if command.is_empty() { said(&["help".into(), "--all".into()]) } else { help };
        let below = subcommands(&all).into_iter();
        left.extend(below.map(|name| [command.as_slice(), &[name]].concat()));
    }
    assert!(words <= WORDS, "{words} words");
}

#[test]
fn no_word_of_any_help_is_broken() {
    let env = TestEnv::new();
    let said = |columns: &str, args: &[&str]| {
        let output = env.command().env("COLUMNS", columns).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for name in subcommands(&said("100", &["help", "--all"])) {
        for args in [&["help", &name][..], &[&name, "-h"], &["--help"], &[]] {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            let whole = words(&said("1000", args));
            for columns in ["80", "100"] {
                assert_eq!(words(&said(columns, args)), whole, "{args:?} at {columns}");
            }
        }
    }
}

/// Returns the names that a help text lists in groups.
fn subcommands(help: &str) -> Vec<String> {
    let groups = help.lines().skip_while(|line| !matches!(*line, "Look:" | "Commands:"));
    groups
        .take_while(|line| *line != "Options:")
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}
