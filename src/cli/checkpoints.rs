//! `checkpoints`: lists the places you can go back to.

use std::ffi::OsStr;

use undertext::model::Text;
use undertext::report::Hint;
use undertext::verbs::{self, Spot};

use super::{About, CommandError, Context, Exit, common, landing};
use crate::render::table::{Cell, Label, Left, Right, Table};

/// List the turns and checkpoints of a session
#[derive(Debug, clap::Args)]
#[command(
    hide = true,
    after_help = "\
Examples:
  undertext log --checkpoints
  undertext log --checkpoints -n 20

A star marks where the session is."
)]
pub(crate) struct Args {
    /// List at most the newest N; 0 lists all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 0, value_parser = common::number::<usize>, allow_negative_numbers = true)]
    number: usize,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    list(context, args.about.wanted()?, args.number)
}

/// Lists the newest checkpoints of a session; all of them if `number` is 0.
pub(super) fn list(
    context: &mut Context,
    wanted: Option<&OsStr>,
    number: usize,
) -> Result<Exit, CommandError> {
    let opened = context.look(wanted)?;
    let session = &opened.at()?;
    let wanted = if number == 0 { usize::MAX } else { number };
    context.output.page()?;
    let now = context.env.ambient().now();
    let zone = context.env.zone;
    let at = verbs::standing_at(session)?;
    let is_at = |n| at.is_some_and(|at| at.checkpoint() == n);
    let mut table = Table::new([Left, Right, Left, Left, Left, Left]);
    let (mut damaged, mut is_any, mut is_nowhere) = (Vec::new(), false, false);
    verbs::each_checkpoint(session, wanted, |shown| {
        is_any = true;
        damaged.extend(shown.damaged());
        if context.answer(&shown)? {
            return Ok(());
        }
        let checkpoint = &shown.checkpoint;
        let note = checkpoint.note.as_ref().map(Text::to_text);
        let said =
            shown.words.as_ref().map(|text| verbs::words(text).unwrap_or_else(|| text.clone()));
        let (label, words) = match (&note, &shown.words) {
            (Some(note), _) => (Label::Note, note.trim()),
            (None, None) if shown.damage.is_some() => (Label::Error, "damaged"),
            (None, _) => (Label::Plain, common::first_line(said.as_deref().unwrap_or_default())),
        };
        let place = if shown.is_nowhere() {
            is_nowhere = true;
            Cell::new(Label::Error, "damaged")
        } else {
            Cell::new(Label::Id, &common::short(shown.before.or(shown.entry)))
        };
        let time = shown.time.map(|time| zone.age(now, time)).unwrap_or_default();
        table.row([
            Cell::new(Label::Head, if is_at(checkpoint.n) { "*" } else { "" }),
            Cell::new(Label::Checkpoint, &format!("@{}", checkpoint.n)),
            Cell::new(Label::Checkpoint, shown.own.as_deref().unwrap_or_default()),
            place,
            Cell::new(Label::Time, &time),
            Cell::new(label, words),
        ]);
        Ok::<_, CommandError>(())
    })?;
    if !is_any {
        context.output.note("Nothing to go back to: there are no checkpoints yet");
    }
    context.show(&table)?;
    if let Some(before @ Spot::Before(_)) = at {
        let name = landing::name_of(context, &opened)?;
        context.say(&format!("{name} is {before}"))?;
    }
    if is_nowhere && damaged.is_empty() {
        context.output.warn("the entry before a checkpoint cannot be read");
        context.output.hint(Hint::mend());
        return Ok(Exit::No);
    }
    context.tell_damaged(&damaged)
}
