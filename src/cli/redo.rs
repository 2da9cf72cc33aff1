//! `redo`: undoes an undo.

use undertext::verbs;

use super::common::Moving;
use super::landing::{self, Moved};
use super::{About, CommandError, Context, Exit};

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
    let redone = verbs::redo(&opened.at()?)?;
    landing::tell(context, &opened, Moved::Redone(redone))
}
