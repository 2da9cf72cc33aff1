//! `setup`: makes agents call undertext when a session changes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use undertext::report::{Calling, Line, Report as _, SetUp, SettingUp};
use undertext::verbs::{self, Setup};
use undertext::wire::discover::{self, HookFile, User};
use undertext::wire::{self, Call};

use super::{CommandError, Context, Exit, hook};
use crate::render::diff;
use crate::render::table::{Cell, Label, Left, Table};

/// Have an agent save every turn as it happens
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext setup
  undertext setup claude
  undertext setup pi --off --dry-run

You see how the agent's settings would change before they do. From its next
start on, the agent calls undertext without waiting for it. If you remove
undertext, the agent keeps working. --off removes exactly what was added.

Exit codes: 1 if nobody agreed, or a call that you extended was left in place")]
pub(crate) struct Args {
    /// claude, codex or pi [default: list them]
    #[arg(value_parser = agent, add = super::complete::callers())]
    agent: Option<String>,

    /// Remove the call again
    #[arg(long, requires = "agent")]
    off: bool,

    /// Show the change, and don't make it
    #[arg(short = 'n', long, requires = "agent")]
    dry_run: bool,

    /// Don't ask
    #[arg(short, long, requires = "agent")]
    yes: bool,
}

/// Parses the name of an agent or of its format. The command itself rejects agents that cannot call programs.
fn agent(text: &str) -> Result<String, String> {
    let callers: Vec<&str> = discover::callers().collect();
    let mut agents = discover::agents();
    let is_known =
        wire::by_name(text).is_some() || agents.any(|agent| agent.eq_ignore_ascii_case(text));
    is_known.then(|| text.to_owned()).ok_or_else(|| format!("use one of {}", callers.join(", ")))
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let Some(agent) = args.agent.as_deref() else { return list(context) };
    let list = || Line::new("setup").to("list the agents that can be set up here");
    let Some(place) = places(context).into_iter().find(|place| place.format.name() == agent) else {
        if discover::callers().any(|caller| caller == agent) {
            let error = anyhow!("HOME is not set, so the settings of {agent} are unknown");
            return Err(CommandError::user(error));
        }
        let error = anyhow!("{agent} cannot run a program when it writes a session");
        let watch = Line::new("watch").to("import its sessions as they are written");
        return Err(CommandError::user(error).hinted(watch).hinted(list()));
    };
    if !place.home.is_dir() {
        let home = context.env.homely(&place.home);
        let error = anyhow!("{} was never used here: there is no {home}", place.agent);
        return Err(CommandError::user(error).hinted(list()));
    }
    let call = if args.off { None } else { Some(call(context, &place)?) };
    let change = verbs::setup(&place, call.as_ref())?;
    let path = context.env.homely(&place.path);
    let agent = place.agent;
    if let Some(field) = change.hindrance.filter(|_| !args.off) {
        context
            .output
            .warn(&format!("{} runs no programs while {field} is set in {path}", place.agent));
    }
    let is_left = args.off && change.is_altered;
    if is_left {
        let words = "still calls undertext through a line that was edited: remove that line from";
        context.output.warn(&format!("{agent} {words} {path} by hand"));
    }
    let (name, file, installed) = (place.format.name(), &*place.path, !args.off || is_left);
    let report = |change| {
        let changed = change == SettingUp::Made;
        SetUp { agent: name, path: file, installed, changed, change }
    };
    if !change.is_change() {
        let words = match (args.off, is_left) {
            (true, true) => String::new(),
            (true, false) => format!("{agent} does not call undertext: {path}"),
            (false, _) => match change.hindrance {
                Some(field) => silenced(agent, field),
                None => format!("{agent} already calls undertext: {path}"),
            },
        };
        return conclude(context, args, &report(SettingUp::Needless), &words);
    }
    show(context, &path, &change)?;
    if let Some(copy) = &change.copy {
        let copy = context.env.homely(copy);
        context.output.note(&format!("{path} was edited: a copy of it is kept as {copy}"));
    }
    if args.dry_run {
        context.output.note("Nothing was changed");
        return conclude(context, args, &report(SettingUp::Planned), "");
    }
    let question = format!("Change {path}?");
    if !(args.yes || context.can_ask() && context.output.ask(&question)?) {
        context.output.note("Nothing was changed");
        conclude(context, args, &report(SettingUp::Declined), "")?;
        if !context.env.terminal.stdin || context.json {
            let line = Line::new("setup").with(place.format.name());
            let line = if args.off { line.flag("off") } else { line };
            context.output.hint(line.flag("yes").to("to make the change"));
        }
        return Ok(Exit::No);
    }
    // A change must not be made before the user could read about it.
    context.output.flush()?;
    change.carry_out(context.env.ambient().now())?;
    context.done = Some(format!("{path} was written"));
    let does = match (args.off, is_left) {
        (true, true) => "calls undertext only through that line",
        (true, false) => "no longer calls undertext",
        (false, _) => "calls undertext",
    };
    let words = match change.hindrance.filter(|_| !args.off) {
        Some(field) => silenced(agent, field),
        None => format!("{agent} {does} from its next start on"),
    };
    conclude(context, args, &report(SettingUp::Made), &words)
}

/// Returns the message for a hook that exists, but that a field in the agent's settings disables.
fn silenced(agent: &str, field: &str) -> String {
    format!("{agent} is set up, and calls undertext once {field} is no longer set")
}

fn show(context: &mut Context, path: &str, change: &Setup) -> Result<(), CommandError> {
    if context.json {
        return Ok(());
    }
    let [before, after] = [&change.before, &change.after]
        .map(|text| String::from_utf8_lossy(text.as_deref().unwrap_or_default()).into_owned());
    let is = match (&change.before, &change.after) {
        (None, _) => ", which will be created",
        (_, None) => ", which will be deleted",
        _ => "",
    };
    context.say(&format!("{path}{is}"))?;
    let styles = context.output.styles();
    Ok(diff::write(&mut context.output, &before, &after, styles)?)
}

fn conclude(
    context: &mut Context,
    args: &Args,
    report: &SetUp<'_>,
    words: &str,
) -> Result<Exit, CommandError> {
    let exit = if args.off && report.installed { Exit::No } else { Exit::Yes };
    if context.answer(report)? {
        return Ok(exit);
    }
    if !words.is_empty() {
        context.say(words)?;
    }
    if report.change == SettingUp::Made && !args.off {
        if let Some(queue) = hook::queue(context) {
            let log = context.env.homely(&queue.log_path());
            context.output.note(&format!("{log} lists what was imported and what was skipped"));
        }
        context.output.hints(report.hints());
    }
    Ok(exit)
}

/// Returns how this user's agents call programs.
pub(crate) fn callings(context: &Context) -> Vec<Calling> {
    let places = places(context).into_iter().filter(|place| place.home.is_dir());
    // If this program's path is unknown, hooks cannot be recognised.
    places.filter_map(|place| Some(verbs::calling(&place, &call(context, &place).ok()?))).collect()
}

fn list(context: &mut Context) -> Result<Exit, CommandError> {
    let mut table = Table::new([Left, Left, Left]).yielding(&[1]);
    let mut hints = Vec::new();
    let mut places = places(context);
    places.retain(|place| place.home.is_dir());
    for place in &places {
        let calling = verbs::calling(place, &call(context, place)?);
        if context.answer(&calling)? {
            continue;
        }
        let state = match &calling {
            Calling { problem: Some(problem), .. } => problem,
            Calling { current: true, .. } => "calls undertext",
            Calling { installed: true, .. } => "calls undertext in another way",
            Calling { .. } => "does not call undertext",
        };
        table.row([
            Cell::new(Label::Plain, calling.agent),
            Cell::new(Label::Plain, state),
            Cell::new(Label::Plain, &context.env.homely(&calling.path)),
        ]);
        hints.extend(calling.hints());
    }
    if places.is_empty() && !context.json {
        context.output.note("No agent that can run programs has been used on this machine");
    }
    context.show(&table)?;
    context.output.hints(hints);
    Ok(Exit::Yes)
}

/// Returns the settings files where this user's agents configure their hooks.
fn places(context: &Context) -> Vec<HookFile> {
    let variable = |name: &str| {
        let folder = context.env.variable(name).map(Path::new);
        folder.map(|folder| context.env.current_dir.join(folder))
    };
    let home = context.env.home.as_deref();
    discover::hook_files(&User { home, variable: Box::new(variable) })
}

/// Returns the command line that calls this program, with the folders as they are set now.
fn call(context: &Context, place: &HookFile) -> Result<Call, CommandError> {
    let text = |path: PathBuf| {
        let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
        let error = || {
            anyhow!(
                "{} cannot be written into settings: its name is not printable UTF-8",
                super::common::shown(&path)
            )
        };
        text.map(str::to_owned).ok_or_else(|| CommandError::user(error()))
    };
    let program = context.env.program().context("cannot find this program")?;
    let variables = context.env.handed_on(place.variable).into_iter();
    let variables = variables.map(|(name, value)| Ok((name.to_owned(), text(value.into())?)));
    let variables = variables.collect::<Result<_, CommandError>>()?;
    Ok(Call { program: text(program)?, variables })
}
