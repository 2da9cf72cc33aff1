//! `help`, and the answer of the bare program: the commands in groups, the sessions of this folder, and the next steps.
//!
//! Invariant: every command stands in one group.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::anyhow;
use clap::error::ErrorKind;
use undertext::ops::{self, Archive, Order};
use undertext::report::{Line, Listing};
use undertext::store::{SessionFilter, Within};

use super::error::{CommandError, Exit};
use super::misuse::explain_misuse;
use super::output::Output;
use super::{Context, NAME, common};
use crate::render::{safe, wrap::wrap};

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
/// How many sessions the bare program shows.
const SHOWN: usize = 8;

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
    let described = (context.describe)();
    let mut names = args.command.iter().skip(1);
    let first = args.command.first().and_then(|name| described.find_subcommand(name));
    let known = |command: &clap::Command| {
        names.try_fold(command.clone(), |at, name| at.find_subcommand(name).cloned()).is_some()
    };
    if !first.is_none_or(known) {
        let why = anyhow!("there is no command {:?}", args.command.join(" "));
        return Err(CommandError::user(why).hinted(Line::new("help").to("list the commands")));
    }
    let words = args.command.iter().map(String::as_str);
    let words = [NAME].into_iter().chain(words).chain(["--help"]);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let mut command = lay_out((context.describe)(), context.env.columns, args.all);
    match command.try_get_matches_from_mut(&words) {
        Err(answer) if answer.kind() == ErrorKind::DisplayHelp => {
            print(&mut context.output, &answer)
        }
        Err(answer) => Err(explain_misuse(&context.env, &described, &words, &answer)),
        Ok(_) => Ok(Exit::Yes),
    }
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

/// Shows the sessions of this folder, or else all, and what to type next.
pub(crate) fn overview(context: &mut Context) -> Result<Exit, CommandError> {
    let archive = match context.open_reader() {
        Err(error) if error.is_absence() => return welcome(context),
        opened => opened?,
    };
    let (filter, folder) = nearest(context, &archive)?;
    let limit = (!context.json).then_some(SHOWN);
    let shown = SessionFilter { limit, ..filter.clone() };
    let Listing { sessions, damaged, more } = ops::list(&archive, &shown, Order::Newest)?;
    if context.answer_all(&sessions)? {
        return context.tell_unread_sessions(&damaged);
    }
    if sessions.is_empty() && damaged.is_empty() {
        return welcome(context);
    }
    let title = folder.as_ref().map(|folder| format!("Sessions in {}", context.env.homely(folder)));
    context.say(title.as_deref().unwrap_or("Sessions of all folders"))?;
    writeln!(context.output)?;
    let now = context.env.ambient().now();
    context.show_sessions(&sessions, now, false)?;
    writeln!(context.output)?;
    let mut steps = Vec::new();
    if more > 0 {
        let line = Line::new("sessions");
        let line = match folder {
            Some(folder) if folder == context.env.current_dir => line.flag("here"),
            Some(folder) => line.option("folder", folder),
            None => line,
        };
        steps.push((line, format!("list {} more", common::count_more(more))));
    }
    // Without a name, a command takes the newest session of this folder, or of one above it.
    let newest = sessions.first().map(|listed| &listed.name);
    if let Some(newest) = newest.map(|name| archive.session(name)).transpose()?.flatten() {
        let taken = context.session(&archive, None).ok();
        if taken.is_none_or(|taken| taken.key != newest.key) {
            context.output.naming().session = Some(context.short_name(&archive, &newest)?.into());
        }
        steps.push((Line::about("graph"), "see the turns and branches of the newest".to_owned()));
        steps.push((Line::about("checkpoints"), "list the turns to go back to".to_owned()));
    }
    steps.push((Line::new("help"), "list all commands".to_owned()));
    show_steps(context, &steps)?;
    context.tell_unread_sessions(&damaged)
}

/// Returns the filter for the sessions of the current folder and those below it, or else of the nearest folder above that has
/// any, or else for all; of a folder, also which it is.
pub(crate) fn nearest(
    context: &Context,
    archive: &Archive,
) -> Result<(SessionFilter, Option<PathBuf>), CommandError> {
    for (n, folder) in context.env.current_dir.ancestors().enumerate() {
        let name = folder.to_string_lossy().into_owned();
        let at = if n == 0 { Within::Below(vec![name.clone()]) } else { Within::At(name.clone()) };
        let any = SessionFilter { folder: Some(at), limit: Some(1), ..SessionFilter::default() };
        if !archive.sessions(&any)?.is_empty() {
            let below = Some(Within::Below(vec![name]));
            let filter = SessionFilter { folder: below, ..SessionFilter::default() };
            return Ok((filter, Some(folder.to_owned())));
        }
    }
    Ok((SessionFilter::default(), None))
}

/// Says what undertext is, where it has no sessions yet.
fn welcome(context: &mut Context) -> Result<Exit, CommandError> {
    let about = (context.describe)().get_about().map(ToString::to_string).unwrap_or_default();
    context.say(&format!("{about}\n\nIt has no sessions yet.\n"))?;
    let steps = [
        (Line::new("import"), "take in the sessions of your agents"),
        (Line::new("help"), "list all commands"),
    ];
    show_steps(context, &steps.map(|(line, words)| (line, words.to_owned())))?;
    Ok(Exit::Yes)
}

fn show_steps(context: &mut Context, steps: &[(Line, String)]) -> Result<(), CommandError> {
    let lines: Vec<String> = steps.iter().map(|(line, _)| context.output.spell(line)).collect();
    let column = lines.iter().map(|line| safe::width(line)).max().unwrap_or(0) + 2;
    for (line, (_, words)) in lines.iter().zip(steps) {
        let room = " ".repeat(column.saturating_sub(safe::width(line)));
        writeln!(context.output, "  {line}{room}{words}")?;
    }
    Ok(())
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
