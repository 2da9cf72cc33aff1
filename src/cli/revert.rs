//! `revert`: goes back to a checkpoint.

use serde_json::json;
use undertext::ops;

use super::Context;
use super::common::{Of, Writing, tell_back};
use super::error::{CommandError, Exit};

/// Go back to a checkpoint, and perhaps leave the model a note from the future
///
/// Nothing is lost: what was left is kept as a branch, and the old live file is set aside. With a message the model is
/// told that it has been further already, and reads the message.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext revert 3
  undertext revert 3 -m 'The parser is fine; look at the lexer first'
  undertext checkpoints

JSON: one object
  {\"type\":\"revert\", \"checkpoint\":N, \"branch\":NAME, \"left\":the branch that keeps what was left or null,
   \"dropped\":entries that are left behind, \"note\":ID of the note or null,
   \"rotated\":PATH of the old live file or null, \"written\":PATH of the agent's own file or null, \"operation\":N or null if nothing had to change}")]
pub(crate) struct Args {
    /// The number of the checkpoint
    #[arg(value_name = "N", allow_negative_numbers = true)]
    checkpoint: String,

    /// Leave this for the model to read
    #[arg(short, long, allow_hyphen_values = true)]
    message: Option<String>,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    of: Of,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(args.of.session.as_deref())?;
    archive.set_manner(args.writing.manner(context));
    let (wanted, message) = (args.checkpoint.as_str(), args.message.as_deref());
    let workspace = context.workspace();
    let reverted = ops::revert(&mut archive, &session, &workspace, wanted, message)?;
    let place = json!({ "checkpoint": wanted.parse::<u64>().ok() });
    tell_back(context, "revert", &format!("checkpoint {wanted}"), place, &reverted)
}
