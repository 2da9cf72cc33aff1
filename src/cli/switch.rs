//! `switch`: makes a branch the current one.

use serde_json::json;
use undertext::ops;

use super::Context;
use super::common::{self, Of, Writing};
use super::error::{CommandError, Exit};
use crate::render::json;

/// Make a branch the current one: the live file holds it from now on
///
/// The old live file is set aside, not overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext switch try-again
  undertext switch main -s 8f14e45f

JSON: one object
  {\"type\":\"switch\", \"branch\":NAME, \"entry\":ID or null at the start, \"rotated\":PATH or null, \"written\":PATH of the agent's own file or null,
   \"operation\":N or null if it was current}")]
pub(crate) struct Args {
    /// The branch
    name: String,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    of: Of,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(args.of.session.as_deref())?;
    archive.set_manner(args.writing.manner(context));
    let switched = ops::switch(&mut archive, &session, &args.name)?;
    context.tell(&switched.notices);
    let head = common::entry_id(&archive, &session, switched.position.head)?;
    let rotated = switched.rotated.as_deref();
    if context.json {
        let fields = json!({
            "branch": switched.branch,
            "entry": common::whole(head),
            "rotated": common::path(rotated),
            "written": common::path(switched.written.as_deref()),
            "operation": switched.operation,
        });
        json::line(&mut context.output, "switch", &fields)?;
    } else if switched.operation.is_none() {
        context.say(&format!("{} is the current branch already", switched.branch))?;
    } else {
        context.say(&format!("Now on branch {} at {}", switched.branch, common::short(head)))?;
        context.say_written(switched.written.as_deref(), rotated)?;
        context.output.hint("take it back: undertext undo");
    }
    Ok(Exit::Yes)
}
