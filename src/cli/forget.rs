//! `forget`: redacts the text of a whole session.

use anyhow::anyhow;
use undertext::report::Line;
use undertext::verbs::Wanted;

use super::redact::{Consent, carry_out};
use super::{About, CommandError, Context, Exit, Opened};

/// Overwrite everything a session says, permanently
#[derive(Debug, clap::Args)]
#[command(mut_arg("session", |arg| arg.help("The session's id, title or file")), after_help = "\
Examples:
  undertext forget 7c2a --dry-run
  undertext forget 7c2a --reason 'the client asked for it'

What its sub-agents say is overwritten too, and lines that forks share with it.
Ids, times, tool names and branches stay, because the agent needs them. This
can't be undone. docs/secrets.md says what is not covered.

Exit codes: 1 if nobody agreed, or if text remains somewhere")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let Some(wanted) = args.about.wanted()? else {
        let error = anyhow!("name the session to forget");
        return Err(CommandError::user(error).hinted(Line::new("sessions").to("list them")));
    };
    let Opened { archive, session } = context.look(Some(wanted))?;
    if archive.root().is_none() {
        let error = anyhow!("a session file that is not in the store cannot be forgotten");
        return Err(CommandError::user(error).hinted("delete the file"));
    }
    let line = Line::about("forget");
    carry_out(context, archive, &Wanted::Session(&session), &args.consent, Some(line))
}
