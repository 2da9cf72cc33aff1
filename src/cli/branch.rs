//! `branch`: lists, creates, renames and hides branches.

use std::ffi::{OsStr, OsString};

use undertext::model::CheckpointNumber;
use undertext::report::{Branched, Line, ListedBranch, Report as _, RevertedEnd};
use undertext::verbs;

use super::words::{Noun, text};
use super::{About, CommandError, Context, Exit, Opened, common, complete};
use crate::render::safe;
use crate::render::table::{Cell, Label, Left, Table};

/// List branches, or create, rename and hide one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext branch
  undertext branch try-again              at the current position
  undertext branch before-the-fix @3
  undertext branch --rename main.1 wrong-turn
  undertext branch --hide wrong-turn -s 7c2a

Creating a branch does not switch to it. Hiding a branch removes only its name.
If the first word looks like an id or a path, it names the session.")]
pub(crate) struct Args {
    /// Create a branch with this name
    name: Option<OsString>,

    /// Where the branch ends [default: HEAD]
    #[arg(value_name = "ENTRY", requires = "name", add = complete::places())]
    entry: Option<OsString>,

    /// Rename a branch
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with_all = ["name", "entry"], add = complete::branches())]
    rename: Vec<OsString>,

    /// Hide a branch from lists
    #[arg(long, value_name = "NAME", conflicts_with_all = ["name", "entry", "rename"], add = complete::branches())]
    hide: Option<OsString>,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if let [old, new] = args.rename.as_slice() {
        return rename(context, args.about.wanted()?, text(old)?, text(new)?);
    }
    if let Some(name) = &args.hide {
        return hide(context, args.about.wanted()?, text(name)?);
    }
    let (name, entry) = (args.name.as_deref(), args.entry.as_deref());
    let Some(first) = name else { return list(context, args.about.wanted()?) };
    if let Some((name, entry)) = args.about.behind(context, first, entry) {
        return match name {
            None => list(context, Some(first)),
            Some(name) => make(context, Some(first), text(name)?, entry.map(text).transpose()?),
        };
    }
    let words = context.words(Noun::Place, 0..=1, &[entry], &args.about)?;
    make(context, words.session, text(first)?, words.nouns.first().copied())
}

fn list(context: &mut Context, wanted: Option<&OsStr>) -> Result<Exit, CommandError> {
    let opened = context.look(wanted)?;
    let session = &opened.at()?;
    let mut branches = verbs::branches(session)?;
    let ends = verbs::reverted_ends(session)?;
    for listed in &mut branches {
        let is_of = |end: &&RevertedEnd| end.branches.iter().any(|name| listed.is_named(name));
        if let Some(end) = ends.iter().find(is_of) {
            (listed.reverted, listed.after, listed.turns) = (true, end.after, Some(end.turns));
        }
    }
    let unnamed = ends.into_iter().filter(|end| end.branches.is_empty());
    branches.extend(unnamed.map(ListedBranch::unnamed));
    if context.answer_all(&branches)? {
        return Ok(Exit::Yes);
    }
    let now = context.env.ambient().now();
    let age = |time| context.env.zone.age(now, time);
    let mut table = Table::new([Left; 6]);
    for listed in &branches {
        let name = listed.branch.as_ref().map(|name| Cell::new(Label::Branch, name));
        let parting = parting(listed.after, listed.turns);
        table.row([
            Cell::new(Label::Head, if listed.current { "*" } else { "" }),
            name.unwrap_or_else(|| Cell::new(Label::Dim, "(no name)")),
            Cell::new(Label::Id, &common::short(listed.entry)),
            Cell::new(Label::Time, &listed.time.map(age).unwrap_or_default()),
            Cell::new(Label::Warning, &parting),
            Cell::new(Label::Plain, listed.words.as_deref().unwrap_or_default()),
        ]);
    }
    context.show(&table)?;
    let unnamed = branches.iter().find(|listed| listed.branch.is_none());
    if let Some(entry) = unnamed.and_then(|listed| listed.entry) {
        let line = Line::about("branch").with("NAME").entry(entry);
        let told = format!("Name one: {}", context.output.spell(&line));
        if context.output.width().is_none_or(|columns| safe::width(&told) <= columns) {
            context.output.note(&told);
        }
    }
    Ok(Exit::Yes)
}

/// Describes what a reverted branch has beyond the current path.
fn parting(after: Option<CheckpointNumber>, turns: Option<u64>) -> String {
    let Some(turns) = turns else { return String::new() };
    let turns = common::counted(turns, "turn", "turns");
    let after = after.map(|after| format!(" after @{after}"));
    format!("reverted, {turns}{}", after.unwrap_or_default())
}

fn make(
    context: &mut Context,
    wanted: Option<&OsStr>,
    name: &str,
    entry: Option<&str>,
) -> Result<Exit, CommandError> {
    let opened = context.change(wanted)?;
    let session = &opened.at()?;
    let target = entry.map(|entry| verbs::find_place(session, entry)).transpose()?;
    let made = verbs::branch(session, name, target.as_ref())?;
    let words = format!("Made branch {name} at {}", common::short(made.entry));
    tell(context, &opened, &made, &words)
}

fn rename(
    context: &mut Context,
    wanted: Option<&OsStr>,
    old: &str,
    new: &str,
) -> Result<Exit, CommandError> {
    let opened = context.change(wanted)?;
    let renamed = verbs::rename_branch(&opened.at()?, old, new)?;
    tell(context, &opened, &renamed, &format!("Renamed {old} to {new}"))
}

fn hide(context: &mut Context, wanted: Option<&OsStr>, name: &str) -> Result<Exit, CommandError> {
    let opened = context.change(wanted)?;
    let hidden = verbs::hide_branch(&opened.at()?, name)?;
    let end = common::short(hidden.entry);
    tell(context, &opened, &hidden, &format!("Hid {name}, which ends at {end}"))
}

/// Reports what was done to a branch.
fn tell(
    context: &mut Context,
    opened: &Opened,
    done: &Branched,
    words: &str,
) -> Result<Exit, CommandError> {
    context.tell(&done.done.notices);
    if context.answer_change(opened, done)? {
        return Ok(Exit::Yes);
    }
    context.say(words)?;
    context.output.hints(done.hints());
    Ok(Exit::Yes)
}
