//! `attach`: makes the agent's file the live file of its session, or ends that.

use std::ffi::OsString;

use serde_json::json;
use undertext::ops;

use super::Context;
use super::common;
use super::error::{CommandError, Exit};
use crate::render::json;

/// Let changes of a session write the agent's own file, so that the agent resumes what they say
///
/// An import attaches what lies where an agent keeps its sessions; this attaches any session file, which is taken in first
/// if it is named by its path. A file that lies elsewhere is written only once you have named it by its path on this machine:
/// here, or as the SESSION of a command that changes it. `main` then stands where the agent would resume. With --off the
/// file is left alone, and what you named is forgotten.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext attach ~/.claude/projects/-home-ann-app/8f14e45f-ceea-467f-a26a-5dba2f5b6d35.jsonl
  undertext attach 8f14e45f
  undertext attach 8f14e45f --off

JSON: one object
  {\"type\":\"attach\", \"session\":ID, \"path\":PATH, \"attached\":BOOL, \"left\":the branch that keeps where main stood or null,
   \"operation\":N or null if it was so already}")]
pub(crate) struct Args {
    /// A session file, or a session by its id, its beginning, or its title; left out, the newest of this folder
    #[arg(value_name = "SESSION")]
    session: Option<OsString>,

    /// Leave the agent's file alone from now on
    #[arg(long)]
    off: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let wanted = args.session.as_deref();
    let file = wanted.map(|wanted| context.env.current_dir.join(wanted));
    let (session, attached) = if let Some(file) = file.filter(|file| !args.off && file.is_file()) {
        let (session, attached) = ops::take_up(&mut context.writer()?, &file)?;
        context.point_at(&attached.path, &session)?;
        (session, attached)
    } else {
        let (mut archive, session) = context.change(wanted)?;
        let attached = if args.off {
            let detached = ops::detach(&mut archive, &session)?;
            context.forget_file(&detached.path)?;
            detached
        } else {
            ops::attach(&mut archive, &session, None)?
        };
        (session, attached)
    };
    context.tell(&attached.notices);
    if context.json {
        let fields = json!({
            "session": session.name.id,
            "path": common::path(Some(&attached.path)),
            "attached": !args.off,
            "left": attached.left,
            "operation": attached.operation,
        });
        json::line(&mut context.output, "attach", &fields)?;
        return Ok(Exit::Yes);
    }
    let path = context.env.homely(&attached.path);
    let what = if args.off {
        format!("Session {} leaves {path} alone from now on", session.name.id)
    } else {
        format!("Session {} is attached to {path}", session.name.id)
    };
    context.say(&what)?;
    if let Some(left) = &attached.left {
        context.say(&format!("main follows the file; where it stood is branch {left}"))?;
    }
    Ok(Exit::Yes)
}
