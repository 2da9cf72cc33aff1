//! `checkpoint`: gives the place where the session stands a number.

use undertext::ops;
use undertext::report::Report as _;

use super::Context;
use super::error::{CommandError, Exit};
use super::words::About;

/// Mark the current position, to go back to it
///
/// Every turn of the user has one without asking. A number is given once and never again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext checkpoint
  undertext checkpoint -m 'before the refactoring'

JSON: one object
  {\"type\":\"checkpoint\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"checkpoint\":N, \"operation\":N or null if the place had its number}")]
pub(crate) struct Args {
    /// Say what it marks
    #[arg(short, long = "message", value_name = "NOTE", allow_hyphen_values = true)]
    message: Option<String>,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(args.about.wanted()?)?;
    let marked = ops::checkpoint(&mut archive, &session, args.message.as_deref())?;
    context.tell(&marked.notices);
    if context.answer_change((&archive, &session), &marked)? {
        return Ok(Exit::Yes);
    }
    let n = marked.checkpoint;
    let already = if marked.operation.is_none() { " stands here already" } else { "" };
    context.say(&format!("Checkpoint {n}{already}"))?;
    context.output.hints(marked.hints());
    Ok(Exit::Yes)
}
