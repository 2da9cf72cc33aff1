//! `clear`: goes back to before the first entry.

use undertext::verbs;

use super::common::Moving;
use super::landing::{self, Moved};
use super::{About, CommandError, Context, Exit};

/// Go back to before the first message
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext clear
  undertext clear 7c2a

The agent starts over. The whole conversation is kept as a branch.")]
pub(crate) struct Args {
    #[command(flatten)]
    moving: Moving,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let opened = args.moving.begin(context, args.about.wanted()?)?;
    let cleared = verbs::clear(&opened.at()?)?;
    landing::tell(context, &opened, Moved::Cleared(cleared))
}
