//! `undo`: takes an operation back.

use undertext::ops;

use super::Context;
use super::common::{Of, Writing, tell_undone};
use super::error::{CommandError, Exit};

/// Take back the newest operation, or the one of a number
///
/// What the operation moved goes back to where it was, the live file too. What has come since is kept as a branch.
/// Nothing is erased: an undo is an operation itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext undo
  undertext undo 7
  undertext operations

JSON: one object
  {\"type\":\"undo\", \"operation\":N, \"undoes\":N, \"command\":the command of that operation,
   \"left\":[branches that keep what had come since], \"rotated\":PATH of the old live file or null, \"written\":PATH of the agent's own file or null}")]
pub(crate) struct Args {
    /// The number of the operation
    #[arg(value_name = "OP", allow_negative_numbers = true)]
    operation: Option<u64>,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    of: Of,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(args.of.session.as_deref())?;
    archive.set_manner(args.writing.manner(context));
    let undone = ops::undo(&mut archive, &session, args.operation)?;
    tell_undone(context, "undo", "redo", &undone)
}
