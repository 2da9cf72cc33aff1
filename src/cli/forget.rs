//! `forget`: takes out what a whole session says.

use anyhow::anyhow;
use undertext::ops::Wanted;
use undertext::report::Line;

use super::Context;
use super::error::{CommandError, Exit};
use super::redact::{Consent, carry_out};
use super::words::About;

/// Take out all that a session says, for ever; its entries, dates and branches stay, without a word in them
///
/// What stays of an entry is what it is and where it belongs, which its agent needs: ids, times, types, names of models and tools, its folder
/// and its git branch, and numbers of the agent's own, such as tokens. Of what a tool was asked for and answered no key and no number stays.
///
/// So is what its sub-agents say. Lines that other sessions share with it, such as its forks, are taken out there too, and are listed before you are asked. Of a note
/// that the agent itself made, the opening stays by which it is known for one. See redact for what is written over and what is not
/// looked through. This cannot be undone, so the session must be named.
#[derive(Debug, clap::Args)]
#[command(mut_arg("session", |arg| arg.help("The session: an id or its beginning, a title, or a session file")), after_help = "\
Examples:
  undertext forget 8f14e45f --dry-run
  undertext forget 8f14e45f --reason 'the client asked for it'

Exit codes: 1 if nothing was changed because nobody agreed, or if it remains somewhere, which is named

JSON: the object of redact")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let Some(wanted) = args.about.wanted()? else {
        let error = anyhow!("name the session that is to be forgotten");
        return Err(CommandError::user(error).hinted(Line::new("sessions").to("list them")));
    };
    let (archive, session) = context.look(Some(wanted))?;
    if archive.root().is_none() {
        let error = anyhow!("a session file that is not in the store cannot be forgotten");
        return Err(CommandError::user(error).hinted("delete the file"));
    }
    let line = Line::about("forget");
    carry_out(context, archive, &Wanted::Session(&session), &args.consent, Some(line))
}
