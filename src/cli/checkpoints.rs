//! `checkpoints`: lists the places to go back to.

use undertext::model::Text;
use undertext::ops;

use super::Context;
use super::common;
use super::error::{CommandError, Exit};
use super::words::About;
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};

/// List the checkpoints of a session, each with its number, the entry it stands behind, and what comes next
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext checkpoints
  undertext checkpoints 8f14e45f
  undertext checkpoints session.jsonl --json

JSON: one object a checkpoint
  {\"type\":\"checkpoint\", \"checkpoint\":N, \"entry\":ID that it stands behind or null at the start,
   \"before\":ID of the turn that it was given for or null, \"words\":the turn's TEXT or null,
   \"note\":TEXT or null, \"own\":the agent's own number, such as kimi:3, or null, \"operation\":N}
and of each such turn that is damaged
  {\"type\":\"damaged\", \"entry\":ID, \"problem\":TEXT}")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (archive, session) = context.look(args.about.wanted()?)?;
    context.output.page()?;
    let mut table = Table::new([Align::Right, Align::Left, Align::Left]);
    let mut damaged = Vec::new();
    for shown in ops::checkpoints(archive.store(), &session)? {
        damaged.extend(shown.damaged());
        if context.answer(&shown)? {
            continue;
        }
        let checkpoint = &shown.checkpoint;
        let note = checkpoint.note.as_ref().map(Text::to_text);
        let (label, words) = match (&note, &shown.words) {
            (Some(note), _) => (Label::Note, note.as_str()),
            (None, None) if shown.damage.is_some() => (Label::Error, "damaged"),
            (None, words) => (Label::Plain, words.as_deref().unwrap_or_default()),
        };
        let own = shown.own.as_deref().map(|own| format!("  {own}")).unwrap_or_default();
        let number = format!("{}{own}", checkpoint.n);
        table.row([
            Cell::new(Label::Checkpoint, &number),
            Cell::new(Label::Id, &common::short(shown.entry)),
            Cell::new(label, common::first_line(words)),
        ]);
    }
    context.show(&table)?;
    context.tell_damaged(&damaged)
}
