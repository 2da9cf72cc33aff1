//! `clear`: goes back to before the first entry.

use undertext::report::Cleared;
use undertext::verbs;

use super::Context;
use super::common::Moving;
use super::error::{CommandError, Exit};
use super::landing::tell_back;
use super::words::About;

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
    let mut cleared = verbs::clear(&opened.at()?)?;
    context.measure(&opened, &mut cleared.landing);
    tell_back(context, "at the start", &opened, &Cleared(&cleared), &cleared)
}
