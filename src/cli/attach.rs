//! `attach`: makes the agent's file the live file of its session, or ends that.

use undertext::ops::{self, OpsError, SyncError};
use undertext::report::Hint;

use super::Context;
use super::error::{CommandError, Exit};
use super::words::About;

/// Let changes of a session write the agent's own file, so that the agent resumes what they say
///
/// An import attaches what lies where an agent keeps its sessions; this attaches any session file, which is taken in first
/// if it is named by its path. A file that lies elsewhere is written only once you have named it by its path on this machine:
/// here, or as the SESSION of a command that changes it. `main` then stands where the agent would resume. With --off the
/// file is left alone, by later imports too, which only read it, and what you named is forgotten.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext attach ~/.claude/projects/-home-ann-app/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl
  undertext attach 8f14e45f
  undertext attach 8f14e45f --off

JSON: one object
  {\"type\":\"attach\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"path\":PATH, \"attached\":BOOL, \"left\":the branch that keeps where main stood or null,
   \"operation\":N or null if it was so already}")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Leave the agent's file alone from now on
    #[arg(long)]
    off: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let wanted = args.about.wanted()?;
    // A file that is named is attached as it is taken in.
    let file = context.file(wanted).filter(|_| !args.off);
    let (archive, session, attached) = if let Some(file) = file {
        let mut archive = context.open_intake()?;
        let (session, attached) = ops::take_up(&mut archive, &file)?;
        context.point_at(&attached.path, &session)?;
        (archive, session, attached)
    } else {
        let (mut archive, session) = context.change(wanted)?;
        let attached = if args.off {
            let detached = ops::detach(&mut archive, &session)?;
            context.forget_file(&detached.path)?;
            detached
        } else {
            ops::attach(&mut archive, &session, None).map_err(|error| {
                let has_none = matches!(error, OpsError::Sync(SyncError::Own(_)));
                let error = CommandError::from(error);
                if has_none { error.hinted(Hint::sessions()) } else { error }
            })?
        };
        (archive, session, attached)
    };
    context.tell(&attached.notices);
    if context.answer_change((&archive, &session), &attached)? {
        return Ok(Exit::Yes);
    }
    let path = context.env.homely(&attached.path);
    let what = match attached.attached {
        _ if args.off => format!("{path} is left alone from now on"),
        true => format!("It is attached to {path}"),
        false => format!("{path} is left as it is"),
    };
    context.say(&what)?;
    if let Some(left) = &attached.left {
        context.say(&format!("main follows the file; where it stood is kept as branch {left}"))?;
    }
    Ok(Exit::Yes)
}
