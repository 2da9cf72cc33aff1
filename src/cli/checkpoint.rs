//! `checkpoint`: gives the place where the session stands a number.

use serde_json::json;
use undertext::ops;

use super::Context;
use super::common::Of;
use super::error::{CommandError, Exit};
use crate::render::json;

/// Give the place where a session stands a number to go back to
///
/// Every turn of the user has one without asking. A number is given once and never again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext checkpoint
  undertext checkpoint -m 'before the refactoring'

JSON: one object
  {\"type\":\"checkpoint\", \"checkpoint\":N, \"operation\":N or null if the place had its number}")]
pub(crate) struct Args {
    /// Say what it marks
    #[arg(short, long = "message", value_name = "NOTE", allow_hyphen_values = true)]
    message: Option<String>,

    #[command(flatten)]
    of: Of,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(args.of.session.as_deref())?;
    let (n, operation, notices) = ops::checkpoint(&mut archive, &session, args.message.as_deref())?;
    context.tell(&notices);
    if context.json {
        let fields = json!({ "checkpoint": n, "operation": operation });
        json::line(&mut context.output, "checkpoint", &fields)?;
    } else {
        let already = if operation.is_none() { " stands here already" } else { "" };
        context.say(&format!("Checkpoint {n}{already}"))?;
        context.output.hint(&format!("come back to it: undertext revert {n}"));
    }
    Ok(Exit::Yes)
}
