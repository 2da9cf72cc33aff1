//! `attach`: makes the agent's file the live file of its session, or detaches it.

use undertext::report::Hint;
use undertext::verbs::{self, OpsError, SyncError};

use super::{About, CommandError, Context, Exit, Opened, archive, pointed};

/// Have changes written to a session's own file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext attach ~/elsewhere/session.jsonl
  undertext attach 7c2a --off

An import attaches files in the agents' own folders. A file elsewhere is only
read until you name it by its path, here or in a command that changes it. After
--off, commands change only the store, and imports only read the file.")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Leave the file alone from now on
    #[arg(long)]
    off: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let wanted = args.about.wanted()?;
    // A named file is attached by its import.
    let file = archive::session_file(&context.env, wanted).filter(|_| !args.off);
    let (opened, attached) = if let Some(file) = file {
        let mut archive = context.open_writer()?;
        let (session, attached) = verbs::take_up(&mut archive, &file)?;
        pointed::point_at(&context.env, &attached.path, &session)?;
        (Opened { archive, session }, attached)
    } else {
        let opened = context.change(wanted)?;
        let attached = if args.off {
            let detached = verbs::detach(&opened.at()?)?;
            pointed::forget_file(&context.env, &detached.path)?;
            detached
        } else {
            verbs::attach(&opened.at()?, None).map_err(|error| {
                let has_none = matches!(error, OpsError::Sync(SyncError::Own(_)));
                let error = CommandError::from(error);
                if has_none { error.hinted(Hint::sessions()) } else { error }
            })?
        };
        (opened, attached)
    };
    context.tell(&attached.done.notices);
    context.answer_change(&opened, &attached)?;
    let path = context.env.homely(&attached.path);
    let what = match attached.attached {
        _ if args.off => format!("{path} is left alone from now on"),
        true => format!("It is attached to {path}"),
        false => format!("{path} is not followed"),
    };
    context.say(&what)?;
    if let Some(left) = &attached.left {
        context.say(&format!("main follows the file; main's old end is kept as branch {left}"))?;
    }
    Ok(Exit::Yes)
}
