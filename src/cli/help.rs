//! `help`: the commands in groups.
//!
//! Invariant: every command stands in one group.

use std::ffi::OsString;
use std::io::Write as _;

use anyhow::anyhow;
use clap::error::ErrorKind;
use undertext::report::Line;

use super::error::{CommandError, Exit};
use super::misuse::explain_misuse;
use super::output::Output;
use super::{Context, NAME};
use crate::render::wrap::wrap;

/// The group of the commands that scripts and agents type.
const PROGRAMS: &str = "For programs";
/// The groups of the commands: a title, the commands that read, and those that may change something.
const GROUPS: [(&str, &[&str], &[&str]); 7] = [
    ("Look", &["sessions", "log", "graph", "show", "diff", "search", "status", "help"], &[]),
    (
        "Go back",
        &["checkpoints", "resume"],
        &["revert", "undo", "redo", "switch", "branch", "checkpoint"],
    ),
    ("Fit the window", &["context"], &["truncate", "compact", "clear"]),
    ("Prove", &["audit", "verify", "doctor", "operations", "rotations"], &["redact", "forget"]),
    ("In and out", &["export"], &["import", "restore"]),
    ("Set up", &["store"], &["setup", "watch", "attach", "trust"]),
    (PROGRAMS, &["completions", "man"], &["new", "append", "turn", "recover", "hook"]),
];

/// Help is not set wider than this: long lines are hard to read.
const WIDEST_HELP: usize = 100;

/// Explain undertext, or a command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext help
  undertext help revert
  undertext help --all")]
pub(crate) struct Args {
    /// The command
    command: Vec<String>,

    /// List the commands for programs too
    #[arg(short, long)]
    all: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    show(context, &args.command, args.all)
}

/// Shows the help of a command, or of the program, with all commands or the usual ones.
pub(crate) fn show(
    context: &mut Context,
    command: &[String],
    all: bool,
) -> Result<Exit, CommandError> {
    let described = (context.describe)();
    let mut names = command.iter().skip(1);
    let first = command.first().and_then(|name| described.find_subcommand(name));
    let known = |command: &clap::Command| {
        names.try_fold(command.clone(), |at, name| at.find_subcommand(name).cloned()).is_some()
    };
    if !first.is_none_or(known) {
        return Err(unknown(command));
    }
    let words = command.iter().map(String::as_str);
    let words = [NAME].into_iter().chain(words).chain(["--help"]);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let mut command = lay_out((context.describe)(), context.env.columns, all);
    match command.try_get_matches_from_mut(&words) {
        Err(answer) if answer.kind() == ErrorKind::DisplayHelp => {
            print(&mut context.output, &answer)
        }
        Err(answer) => Err(explain_misuse(&context.env, &described, &words, &answer)),
        Ok(_) => Ok(Exit::Yes),
    }
}

/// Returns the error of words that name no command.
pub(crate) fn unknown(command: &[String]) -> CommandError {
    let why = anyhow!("there is no command {:?}", command.join(" "));
    CommandError::user(why).hinted(Line::new("help").to("list the commands"))
}

/// Lays out the help of the program: its commands in groups, as wide as the terminal.
pub(crate) fn lay_out(command: clap::Command, columns: Option<usize>, all: bool) -> clap::Command {
    let width = columns.map_or(WIDEST_HELP, |columns| columns.min(WIDEST_HELP));
    let command = command.term_width(width);
    let groups = groups(&command, width, all);
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// Prints a help text.
pub(crate) fn print(output: &mut Output, answer: &clap::Error) -> Result<Exit, CommandError> {
    let text = answer.render();
    let is_coloured = output.styles().is_coloured();
    let text = if is_coloured { text.ansi().to_string() } else { text.to_string() };
    output.write_all(text.as_bytes())?;
    Ok(Exit::Yes)
}

/// Returns the commands in their groups, each with what it does.
pub(crate) fn groups(command: &clap::Command, width: usize, all: bool) -> String {
    let column = GROUPS.iter().flat_map(|(_, a, b)| a.iter().chain(*b));
    let column = column.map(|name| name.len()).max().unwrap_or(0) + 4;
    let mut lines: Vec<String> = Vec::new();
    for (title, reading, changing) in GROUPS {
        if title == PROGRAMS && !all {
            let names = [reading, changing].concat().join(", ");
            lines.push(format!("{title}: {names}\n"));
            continue;
        }
        lines.push(format!("{title}:"));
        for name in reading.iter().chain(changing) {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            for (n, line) in wrap(&about, Some(width.saturating_sub(column))).iter().enumerate() {
                let name = if n == 0 { format!("  {name}") } else { String::new() };
                lines.push(format!("{name:column$}{line}"));
            }
        }
        lines.push(String::new());
    }
    lines.join("\n")
}

/// Returns the value of an option that was typed, where the arguments cannot be understood as a whole.
pub(crate) fn typed(args: &[OsString], option: &str) -> Option<OsString> {
    let at = args.iter().position(|arg| arg.as_encoded_bytes().starts_with(option.as_bytes()))?;
    let joined = args.get(at)?.to_str()?.strip_prefix(option)?.strip_prefix('=');
    joined.map(OsString::from).or_else(|| args.get(at + 1).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let command = crate::cli::command();
        let mut commands: Vec<&str> =
            command.get_subcommands().map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, reading, changing)| [*reading, *changing].concat())
            .collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
    }
}
