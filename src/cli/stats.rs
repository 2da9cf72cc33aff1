//! `stats`: how much the store holds, and what it takes up.

use serde_json::json;
use undertext::ops::{self, Stats};

use super::Context;
use super::common::counted;
use super::error::{CommandError, Exit};
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};
use crate::render::{json, units};

/// Count what the store holds, by agent, and what it takes up
///
/// A line is stored once, however many sessions share it, and so is each string of 256 bytes or more.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext stats
  undertext stats --json

JSON: one object an agent, then one for the store
  {\"type\":\"agent\", \"agent\":NAME, \"sessions\":N, \"entries\":N, \"bytes\":N}
  {\"type\":\"store\", \"lines\":N, \"raw\":BYTES of these lines, \"texts\":N, \"kept\":BYTES packed, \"stored\":BYTES in all}")]
pub(crate) struct Args {}

pub(crate) fn run(context: &mut Context, _: &Args) -> Result<Exit, CommandError> {
    let archive = context.reader()?;
    let [left, right] = [Align::Left, Align::Right];
    let mut table = Table::new([left, right, right, right]);
    for (agent, Stats { sessions, entries, bytes }) in ops::stats(&archive)? {
        if context.json {
            let fields =
                json!({ "agent": agent, "sessions": sessions, "entries": entries, "bytes": bytes });
            json::line(&mut context.output, "agent", &fields)?;
        }
        table.row([
            Cell::new(Label::Plain, &agent),
            Cell::new(Label::Plain, &counted(sessions, "session", "sessions")),
            Cell::new(Label::Plain, &counted(entries, "entry", "entries")),
            Cell::new(Label::Plain, &units::size(bytes)),
        ]);
    }
    let sizes = archive.store().sizes()?;
    if context.json {
        let fields = json!({
            "lines": sizes.lines,
            "raw": sizes.raw,
            "texts": sizes.texts,
            "kept": sizes.kept,
            "stored": sizes.stored,
        });
        json::line(&mut context.output, "store", &fields)?;
        return Ok(Exit::Yes);
    }
    context.show(&table)?;
    context.say(&format!(
        "The store: {} of {}, with {}, packed to {}; {} in all",
        counted(sizes.lines, "line", "lines"),
        units::size(sizes.raw),
        counted(sizes.texts, "long text", "long texts"),
        units::size(sizes.kept),
        units::size(sizes.stored),
    ))?;
    Ok(Exit::Yes)
}
