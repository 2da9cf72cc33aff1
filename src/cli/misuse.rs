//! Errors for arguments that do not parse, in our own words: what is wrong, and what to type next.
//!
//! A word or option of git or another program is answered with the help for our equivalent command.
//!
//! Invariant: the command suggested for an unknown one never changes a session.

use std::ffi::OsString;

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use undertext::report::{Hint, Line};
use undertext::settings::distance;

use super::CommandError;
use super::env::Env;

/// Maximum edit distance of a typing mistake; 1 for short words.
const SLIP: usize = 2;
/// Minimum length at which the beginning of a command is recognised.
const LEAST: usize = 3;
/// Commands that change nothing and need no further words.
const PLAIN: [&str; 5] = ["sessions", "log", "graph", "stats", "status"];
/// Words shorter than this are short.
const LONG: usize = 5;

/// The words and options of other programs.
const FOREIGN: &str = include_str!("misuse.txt");

/// Returns the error for arguments that do not parse, with hints.
pub(crate) fn explain_misuse(
    env: &Env,
    all: &clap::Command,
    args: &[OsString],
    answer: &clap::Error,
) -> CommandError {
    let unknown = said(answer, ContextKind::InvalidSubcommand).concat();
    let end = args.iter().position(|arg| !unknown.is_empty() && *arg == *unknown);
    let verb = verb(all, args.get(..end.unwrap_or(args.len())).unwrap_or(args));
    let name = verb.join(" ");
    if answer.kind() == ErrorKind::InvalidSubcommand {
        let within = all.find_subcommand(&name).map(|group| (name.as_str(), group));
        let (name, group) = within.unwrap_or(("", all));
        return unknown_command(env, name, group, &unknown);
    }
    let is_missing = matches!(
        answer.kind(),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_missing && let Some(group) = all.find_subcommand(&name) {
        let error = anyhow!("{name} needs one of its commands: {}", names(group).join(", "));
        return CommandError::user(error).hinted(help(&verb));
    }
    let mut hints: Vec<Hint> = Vec::new();
    if answer.kind() == ErrorKind::UnknownArgument {
        let wrong = said(answer, ContextKind::InvalidArg).concat();
        hints.extend(foreign_option(&name, &wrong));
        let near = said(answer, ContextKind::SuggestedArg).into_iter();
        let bare = |word: &str| word.trim_start_matches('-').to_owned();
        let near: Vec<String> = near.filter(|other| is_slip(&bare(&wrong), &bare(other))).collect();
        if !near.is_empty() && hints.is_empty() {
            hints.push(format!("perhaps you mean {}", near.join(" or ")).into());
        }
    }
    hints.push(help(&verb));
    hints.into_iter().fold(CommandError::user(anyhow!("{}", words(answer))), CommandError::hinted)
}

/// Returns clap's message in one line.
fn words(answer: &clap::Error) -> String {
    let text = answer.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Returns a piece of the context of clap's error.
fn said(answer: &clap::Error, kind: ContextKind) -> Vec<String> {
    match answer.get(kind) {
        Some(ContextValue::String(word)) => vec![word.clone()],
        Some(ContextValue::Strings(words)) => words.clone(),
        _ => Vec::new(),
    }
}

/// Returns the typed command: its name, after its group's name if it has one.
fn verb(all: &clap::Command, args: &[OsString]) -> Vec<String> {
    let mut at = all;
    let mut verb = Vec::new();
    for word in args.iter().skip(1).filter_map(|word| word.to_str()) {
        if let Some(command) = at.find_subcommand(word) {
            verb.push(command.get_name().to_owned());
            at = command;
        }
    }
    verb
}

/// Returns the hint at a command's help.
fn help(verb: &[String]) -> Hint {
    let words = "see the help";
    match verb {
        [] => Line::new("help").to(words),
        [first, rest @ ..] => {
            let line = rest.iter().fold(Line::new(first), Line::with);
            line.flag("help").to(words)
        }
    }
}

/// Returns the names of a group's visible commands.
fn names(group: &clap::Command) -> Vec<String> {
    let visible = group.get_subcommands().filter(|command| !command.is_hide_set());
    visible.map(|command| command.get_name().to_owned()).collect()
}

/// Returns true if a word comes from another program or is a mistyped command.
pub(crate) fn is_known(all: &clap::Command, word: &str) -> bool {
    let lower = word.to_lowercase();
    let near = || names(all).iter().any(|name| is_slip(&lower, name));
    foreign().any(|foreign| foreign.has(None, &lower)) || near()
}

/// Returns the error of a word that is no command, of the program or of one of its groups.
fn unknown_command(env: &Env, name: &str, group: &clap::Command, word: &str) -> CommandError {
    if !name.is_empty() {
        let error =
            anyhow!("{name} has no command {word:?}; its commands are {}", names(group).join(", "));
        return CommandError::user(error).hinted(help(&[name.to_owned()]));
    }
    let path = env.current_dir.join(word);
    let what = if word.contains('/') && !path.exists() { "command or file" } else { "command" };
    let error = CommandError::user(anyhow!("there is no {what} {word:?}"));
    let lower = word.to_lowercase();
    let known = foreign().filter(|foreign| foreign.has(None, &lower));
    let mut hints: Vec<Hint> = known.map(|foreign| foreign.hint()).collect();
    if hints.is_empty() {
        let begins = |name: &String| lower.len() >= LEAST && name.starts_with(&lower);
        let is_near = |name: &String| is_slip(&lower, name) || begins(name);
        let near = names(group).into_iter().filter(is_near);
        let rest = env.args.iter().skip_while(|arg| *arg != word).skip(1);
        let is_option = |arg: &OsString| arg.as_encoded_bytes().starts_with(b"-");
        let rest: Vec<_> = if rest.clone().any(is_option) { Vec::new() } else { rest.collect() };
        let line = |name: String| {
            if !PLAIN.contains(&name.as_str()) {
                return Line::new("help").with(name);
            }
            rest.iter().fold(Line::new(name), Line::with)
        };
        hints.extend(near.map(|name| line(name).to("perhaps you mean")));
    }
    if !word.is_empty() && path.is_dir() {
        let folder = Line::new("sessions").option("folder", word);
        hints.push(folder.to("to list the sessions that work in that folder"));
        let found = Line::new("import").with(word).flag("dry-run");
        hints.push(found.to("to list the session files in that folder"));
    }
    if hints.is_empty() && !word.is_empty() && !word.contains('/') {
        hints.push(Line::new("search").with(word).to("search for that text"));
    }
    hints.push(Line::new("help").to("list the commands"));
    hints.into_iter().fold(error, CommandError::hinted)
}

/// Returns the hint for an option of another program.
fn foreign_option(verb: &str, option: &str) -> Option<Hint> {
    let number = option.strip_prefix('-').filter(|n| !n.is_empty());
    if let Some(n) = number.filter(|n| n.bytes().all(|byte| byte.is_ascii_digit()))
        && verb == "log"
    {
        return Some(Line::new(verb).with("-n").with(n).to("to see the last entries"));
    }
    foreign().find(|foreign| foreign.has(Some(verb), option)).map(|foreign| foreign.hint())
}

/// What other programs call by these words.
struct Foreign {
    /// The command that these options are typed with; `None` for words.
    of: Option<&'static str>,
    words: Vec<&'static str>,
    purpose: &'static str,
    line: Vec<&'static str>,
}

impl Foreign {
    fn has(&self, of: Option<&str>, word: &str) -> bool {
        self.of == of && self.words.contains(&word)
    }

    fn hint(&self) -> Hint {
        let (verb, rest) = self.line.split_first().unwrap_or((&"help", &[]));
        rest.iter().fold(Line::new(*verb), Line::with).to(self.purpose)
    }
}

fn foreign() -> impl Iterator<Item = Foreign> {
    FOREIGN.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (words, rest) = line.split_once(" | ")?;
        let (purpose, line) = rest.split_once(" | ")?;
        let [mut words, line] = [words, line].map(|words| words.split(' ').collect::<Vec<_>>());
        let has_options = words.get(1).is_some_and(|word| word.starts_with('-'));
        let of = has_options.then(|| words.remove(0));
        Some(Foreign { of, words, purpose, line })
    })
}

/// Returns true if a word is a mistyped form of another.
fn is_slip(word: &str, other: &str) -> bool {
    let least = word.chars().count().min(other.chars().count());
    distance(word, other) <= if least < LONG { 1 } else { SLIP }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_from_another_word() {
        assert!(is_slip("revrt", "revert") && is_slip("snhow", "show"));
        assert!(!is_slip("tag", "log") && !is_slip("cat", "man"));
    }

    #[test]
    fn every_hint_for_a_foreign_word_is_a_command_that_changes_nothing() {
        let all = crate::cli::command();
        let reading = [
            "help",
            "log",
            "sessions",
            "graph",
            "show",
            "stats",
            "status",
            "context",
            "store",
            "audit",
            "doctor",
            "verify",
            "--version",
        ];
        assert_eq!(foreign().count(), 50);
        for Foreign { of, words, line, .. } in foreign() {
            let [first, rest @ ..] = line.as_slice() else { unreachable!("a line has words") };
            assert!(
                reading.contains(first)
                    || ["branch", "diff"].contains(first)
                    || line == ["undo", "--list"],
                "{line:?}"
            );
            let helped = rest.iter().try_fold(&all, |at, name| at.find_subcommand(name));
            assert!(*first != "help" || helped.is_some(), "{line:?}");
            let known = words.iter().find(|word| all.find_subcommand(word).is_some());
            assert_eq!(known, None);
            assert!(of.is_none_or(|of| all.find_subcommand(of).is_some()), "{of:?}");
        }
    }
}
