//! `redo`: undoes an undo.

use undertext::ops;
use undertext::report::Redone;

use super::Context;
use super::common::Moving;
use super::error::{CommandError, Exit};
use super::landing::{landed, tell_undone};
use super::words::About;

/// Redo what was undone last
///
/// What was done after an undo, other than taking in what another program wrote, ends what can be redone.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!("\
Examples:
  undertext redo
  undertext redo 8f14e45f

JSON: one object
  {\"type\":\"redo\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"operation\":N, \"undoes\":the number of the undo, \"command\":\"undo\",
   \"left\":[branches that keep what came after it], \"rotated\":PATH of the previous live file or null,
   \"written\":PATH of the agent's own file or null", landed!()))]
pub(crate) struct Args {
    #[command(flatten)]
    moving: Moving,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = args.moving.begin(context, args.about.wanted()?)?;
    let was_hidden = archive.store().card(session.key)?.hidden;
    let mut redone = ops::redo(&mut archive, &session)?;
    context.measure(&archive, &session, &mut redone.landing);
    tell_undone(context, (&archive, &session), &Redone(&redone), (&redone, was_hidden))
}
