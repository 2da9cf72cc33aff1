//! `redo`: takes an undo back.

use undertext::ops;

use super::Context;
use super::common::{Of, Writing, tell_undone};
use super::error::{CommandError, Exit};

/// Do again what the newest undo took back
///
/// What was done after an undo, other than taking in what another program wrote, ends what can be redone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext redo
  undertext redo -s 8f14e45f

JSON: one object
  {\"type\":\"redo\", \"operation\":N, \"undoes\":the number of the undo, \"command\":\"undo\",
   \"left\":[branches that keep what had come since], \"rotated\":PATH of the old live file or null, \"written\":PATH of the agent's own file or null}")]
pub(crate) struct Args {
    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    of: Of,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(args.of.session.as_deref())?;
    archive.set_manner(args.writing.manner(context));
    let redone = ops::redo(&mut archive, &session)?;
    tell_undone(context, "redo", "undo", &redone)
}
