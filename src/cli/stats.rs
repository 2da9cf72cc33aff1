//! `store stats`: counts the store's contents, and measures its size.

use std::ffi::OsStr;

use undertext::verbs::{self, Stats};

use super::Context;
use super::common::counted;
use super::error::{CommandError, Exit};
use super::words::OneOrAll;
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};
use crate::render::units;

/// Show how much the store holds, by agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext store stats
  undertext store stats 7c2a

Lines and long texts that sessions share are stored once.")]
pub(crate) struct Args {
    #[command(flatten)]
    about: OneOrAll,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if let Some(wanted) = args.about.wanted()? {
        return one(context, wanted);
    }
    let archive = context.open_reader()?;
    let [left, right] = [Align::Left, Align::Right];
    let mut table = Table::new([left, right, right, right]);
    for stats in verbs::stats(&archive)? {
        if context.answer(&stats)? {
            continue;
        }
        let Stats { agent, sessions, entries, bytes } = stats;
        table.row([
            Cell::new(Label::Plain, &agent),
            Cell::new(Label::Plain, &counted(sessions, "session", "sessions")),
            Cell::new(Label::Plain, &counted(entries, "entry", "entries")),
            Cell::new(Label::Plain, &units::size(bytes)),
        ]);
    }
    let sizes = archive.store().sizes()?;
    if context.answer(&sizes)? {
        return Ok(Exit::Yes);
    }
    context.show(&table)?;
    context.say(&format!(
        "The store contains {} ({}) and {}, packed to {}\nIt takes up {} on disk",
        counted(sizes.lines, "line", "lines"),
        units::size(sizes.raw),
        counted(sizes.texts, "long text", "long texts"),
        units::size(sizes.kept),
        units::size(sizes.stored),
    ))?;
    Ok(Exit::Yes)
}

/// Counts the contents of one session.
fn one(context: &mut Context, wanted: &OsStr) -> Result<Exit, CommandError> {
    let opened = context.find(Some(wanted))?;
    context.follow(&opened);
    let session = &opened.at()?;
    let stats = verbs::stats_of(session)?;
    if context.answer(&stats)? {
        return Ok(Exit::Yes);
    }
    let counts = [
        counted(stats.turns, "turn", "turns"),
        counted(stats.entries, "entry", "entries"),
        units::size(stats.bytes),
        counted(stats.branches, "branch", "branches"),
        counted(stats.checkpoints, "checkpoint", "checkpoints"),
        counted(stats.states, "file state", "file states"),
    ];
    context.say(&format!(
        "{} ({}): {}",
        session.name.id,
        session.name.format,
        counts.join(", ")
    ))?;
    Ok(Exit::Yes)
}
