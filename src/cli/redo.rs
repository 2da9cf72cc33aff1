//! `redo`: undoes an undo.

use undertext::report::Redone;
use undertext::verbs;

use super::Context;
use super::common::Moving;
use super::error::{CommandError, Exit};
use super::landing::tell_undone;
use super::words::About;

/// Redo what was undone last
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext redo
  undertext redo 7c2a

After another change, an undo can't be redone any more. Importing what an agent
wrote doesn't count as a change.")]
pub(crate) struct Args {
    #[command(flatten)]
    moving: Moving,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let opened = args.moving.begin(context, args.about.wanted()?)?;
    let mut redone = verbs::redo(&opened.at()?)?;
    context.measure(&opened, &mut redone.landing);
    tell_undone(context, &opened, &Redone(&redone), &redone)
}
