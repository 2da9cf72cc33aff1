//! `clear`: goes back to before the first entry.

use undertext::ops;
use undertext::report::Cleared;

use super::Context;
use super::common::Moving;
use super::error::{CommandError, Exit};
use super::landing::{landed, tell_back};
use super::words::About;

/// Go back to before the first entry, from where the agent starts over
///
/// Nothing is lost: the old end is kept as a branch, and the previous live file under another name.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!("\
Examples:
  undertext clear
  undertext clear 8f14e45f

JSON: one object
  {\"type\":\"clear\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"branch\":NAME,
   \"left\":the branch that keeps the old end or null, \"dropped\":entries that are only there, \"note\":null,
   \"rotated\":PATH of the previous live file or null, \"written\":PATH of the agent's own file or null, \"operation\":N or null if nothing had to change", landed!()))]
pub(crate) struct Args {
    #[command(flatten)]
    moving: Moving,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = args.moving.begin(context, args.about.wanted()?)?;
    let mut cleared = ops::clear(&mut archive, &session)?;
    context.measure(&archive, &session, &mut cleared.landing);
    tell_back(context, "at the start", (&archive, &session), &Cleared(&cleared), &cleared)
}
