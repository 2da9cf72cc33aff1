//! `store rebuild`: rebuilds the derived rows.

use undertext::verbs;

use super::common::counted;
use super::error::{CommandError, Exit};
use super::words::OneOrAll;
use super::{Context, Opened};
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};
use crate::render::units::DIGITS;

/// Recompute the store's indexes and compare them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext store rebuild
  undertext store rebuild 7c2a")]
pub(crate) struct Args {
    #[command(flatten)]
    about: OneOrAll,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let wanted = args.about.wanted()?;
    let (mut archive, sessions) = if wanted.is_some() {
        let Opened { archive, session } = context.change(wanted)?;
        (archive, vec![session])
    } else {
        let archive = context.open_existing()?;
        let sessions = archive.every()?;
        (archive, sessions)
    };
    let sides = [Align::Left, Align::Left, Align::Right, Align::Left];
    let mut table = Table::new(sides).yielding(&[0]);
    for (done, session) in (0..).zip(&sessions) {
        context.output.steps("rebuilding", done, sessions.len() as u64);
        let rebuilt = verbs::rebuild(&mut archive, session)?;
        if context.answer(&rebuilt)? {
            continue;
        }
        let (label, equal) =
            if rebuilt.equal { (Label::Plain, "equal") } else { (Label::Warning, "rebuilt") };
        table.row([
            Cell::new(Label::Id, &session.name.id),
            Cell::new(label, equal),
            Cell::new(Label::Plain, &counted(rebuilt.records, "record", "records")),
            Cell::new(Label::Dim, &format!("{:.DIGITS$}", rebuilt.digest)),
        ]);
    }
    if wanted.is_none() {
        verbs::sum_up(&mut archive)?;
    }
    context.show(&table)?;
    Ok(Exit::Yes)
}
