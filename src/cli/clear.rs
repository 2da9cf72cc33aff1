//! `clear`: goes back to before the first entry.

use serde_json::json;
use undertext::ops;

use super::Context;
use super::common::{About, Writing, tell_back};
use super::error::{CommandError, Exit};

/// Go back to before the first entry: the agent begins anew
///
/// Nothing is lost: what was left is kept as a branch, and the old live file is set aside.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext clear
  undertext clear 8f14e45f

JSON: one object
  {\"type\":\"clear\", \"branch\":NAME, \"left\":the branch that keeps what was left or null,
   \"dropped\":entries that are left behind, \"note\":null,
   \"rotated\":PATH of the old live file or null, \"written\":PATH of the agent's own file or null, \"operation\":N or null if nothing had to change}")]
pub(crate) struct Args {
    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(args.about.session.as_deref())?;
    archive.set_manner(args.writing.manner(context));
    let workspace = context.workspace();
    let cleared = ops::clear(&mut archive, &session, &workspace)?;
    tell_back(context, "clear", "the start", json!({}), &cleared)
}
