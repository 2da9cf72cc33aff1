//! `help`: lists the commands in groups, and shows the pages about places and options.
//!
//! Invariant: every command is in exactly one group.

use std::ffi::OsString;
use std::io::Write as _;

use anyhow::anyhow;
use clap::error::ErrorKind;
use undertext::report::Line;

use super::output::Output;
use super::{CommandError, Context, Exit, NAME, misuse, options};
use crate::render::wrap::wrap;

/// The commands that `help` describes in one line each.
const EVERYDAY: [&str; 12] = [
    "sessions", "graph", "show", "log", "search", "status", "revert", "undo", "resume", "branch",
    "context", "compact",
];
/// All commands in groups.
const GROUPS: [(&str, &[&str]); 7] = [
    (
        "Look",
        &[
            "sessions", "log", "show", "graph", "diff", "search", "status", "stats", "browse",
            "serve", "help",
        ],
    ),
    ("Go back", &["revert", "undo", "redo", "branch", "switch", "checkpoint", "resume"]),
    ("The window", &["context", "compact", "truncate", "audit"]),
    ("In and out", &["import", "export", "restore"]),
    ("Keep safe", &["verify", "redact", "forget", "doctor"]),
    ("Set up", &["setup", "watch", "trust", "store"]),
    (
        PROGRAMS,
        &[
            "new",
            "append",
            "turn",
            "recover",
            "handoff",
            "clear",
            "attach",
            "hook",
            "completions",
            "man",
        ],
    ),
];
/// The group for scripts and agents.
const PROGRAMS: &str = "For programs";
/// The page about sessions and places.
const PLACES: &str = "\
A SESSION is
  nothing            the newest session of this folder, or of a parent folder
  7c2a               the first characters of its id
  'Watering'         the first characters of its title
  boat.jsonl         a session file; commands that change it import it first
If several match, or none, a terminal shows a list to pick from.

A PLACE comes before the session:
  @3, 3              turn 3: your prompt and everything up to the next one
  @3.2               step 2 of it: an answer with its results; @3.0: the prompt
  @12..@15, @12..    a range, for log and show
  82@13              turn 13 of session 82
  HEAD, HEAD~2       where the session is, and two turns back
  main.1, 7389a7cd   the end of a branch, or the beginning of an entry's id

Numbers are never reused. revert goes to just before a turn, and to just after
any other place.
";

/// Maximum width of help; longer lines are hard to read.
const WIDEST_HELP: usize = 100;

/// Explain undertext or a command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext help revert
  undertext help options     what all commands share, and exit codes
  undertext help places      how to name sessions and turns
  undertext help --all       every command")]
pub(crate) struct Args {
    /// A command, options or places
    command: Vec<String>,

    /// Describe every command
    #[arg(short, long)]
    all: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let described = if args.all { Described::All } else { Described::Everyday };
    show(context, &args.command, described)
}

/// The commands that the program's help describes; it only names the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Described {
    Everyday,
    All,
}

/// Shows the help of a command, or of the program.
pub(crate) fn show(
    context: &mut Context,
    command: &[String],
    described: Described,
) -> Result<Exit, CommandError> {
    let page = match command {
        [page] if page == "options" => Some(options::page(width(context.env.columns))),
        [page] if page == "places" => Some(PLACES.to_owned()),
        _ => None,
    };
    if let Some(page) = page {
        let width = Some(width(context.env.columns));
        for row in page.lines().flat_map(|line| wrap(line, width)) {
            writeln!(context.output, "{row}")?;
        }
        return Ok(Exit::Yes);
    }
    let program = super::command();
    let mut names = command.iter().skip(1);
    let first = command.first().and_then(|name| program.find_subcommand(name));
    let known = |command: &clap::Command| {
        names.try_fold(command.clone(), |at, name| at.find_subcommand(name).cloned()).is_some()
    };
    if !first.is_none_or(known) {
        return Err(unknown(command));
    }
    let words = command.iter().map(String::as_str);
    let words = [NAME].into_iter().chain(words).chain(["--help"]);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let mut command = lay_out(super::command(), context.env.columns, described);
    match command.try_get_matches_from_mut(&words) {
        Err(answer) if answer.kind() == ErrorKind::DisplayHelp => {
            print(&mut context.output, &answer)
        }
        Err(answer) => Err(misuse::explain_misuse(&context.env, &program, &words, &answer)),
        Ok(_) => Ok(Exit::Yes),
    }
}

/// Returns the error for words that name no command.
pub(crate) fn unknown(command: &[String]) -> CommandError {
    let why = anyhow!("there is no command {:?}", command.join(" "));
    CommandError::user(why).hinted(Line::new("help").to("list the commands"))
}

/// Lays out the help of the program: its commands in groups, as wide as the terminal, without what all commands share.
pub(crate) fn lay_out(
    command: clap::Command,
    columns: Option<usize>,
    described: Described,
) -> clap::Command {
    let width = width(columns);
    let groups = groups(&command, width, described);
    let command = options::SHARED.iter().fold(command.term_width(width), |command, shared| {
        command.mut_arg(shared, |arg| arg.hide(true))
    });
    command
        .help_template(format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}"))
}

fn width(columns: Option<usize>) -> usize {
    columns.map_or(WIDEST_HELP, |columns| columns.min(WIDEST_HELP))
}

pub(crate) fn print(output: &mut Output, answer: &clap::Error) -> Result<Exit, CommandError> {
    let text = answer.render();
    let is_coloured = output.styles().is_coloured();
    let text = if is_coloured { text.ansi().to_string() } else { text.to_string() };
    output.write_all(text.as_bytes())?;
    Ok(Exit::Yes)
}

/// Returns the everyday commands with what they do and the others by name, or all of them in their groups.
pub(crate) fn groups(command: &clap::Command, width: usize, described: Described) -> String {
    let (mut lines, is_all) = (Vec::new(), described == Described::All);
    let column = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max();
    let column = column.unwrap_or(0) + 4;
    let describe = |name: &str, lines: &mut Vec<String>| {
        let about = command.find_subcommand(name).and_then(clap::Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        for (n, line) in wrap(&about, Some(width.saturating_sub(column))).iter().enumerate() {
            let name = if n == 0 { format!("  {name}") } else { String::new() };
            lines.push(format!("{name:column$}{line}"));
        }
    };
    if !is_all {
        lines.push("Every day:".to_owned());
        for name in EVERYDAY {
            describe(name, &mut lines);
        }
        lines.push(String::new());
    }
    for (title, names) in GROUPS {
        if is_all {
            lines.push(format!("{title}:"));
            for name in names {
                describe(name, &mut lines);
            }
            lines.push(String::new());
            continue;
        }
        let others = names.iter().filter(|name| !EVERYDAY.contains(name) && **name != "help");
        let others: Vec<&str> = others.copied().collect();
        let line = format!("{:column$}{}", format!("{title}:"), others.join(", "));
        lines.extend(wrap(&line, Some(width)));
    }
    let more = "Read on: help COMMAND, help options, help places, help --all";
    lines.extend((!is_all).then(String::new).into_iter().chain([more.to_owned()]));
    lines.join("\n")
}

/// Finds the value of an option in arguments that do not parse.
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
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut commands: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
        assert!(EVERYDAY.iter().all(|name| grouped.contains(name)));
    }
}
