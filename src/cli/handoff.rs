//! `handoff`: starts a new session for a goal, from a summary of an old one.

use anyhow::anyhow;
use undertext::verbs;

use super::common::{counted, shown};
use super::models::{self, Summing, kit};
use super::new::layers;
use super::{About, CommandError, Context, Exit};
use crate::render::units::grouped;

/// Start a new session for a goal, from a summary
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext handoff 'write the release notes'
  undertext handoff --summarizer local 'port it to Windows' 7c2a

The new session is a native one. It begins with a summary of the old session,
written for the goal, and then has the goal as its first prompt. The old session
doesn't change; the summary says how to read it.")]
pub(crate) struct Args {
    /// The goal of the new session
    #[arg(value_name = "GOAL")]
    goal: String,

    #[command(flatten)]
    about: About,

    #[command(flatten)]
    summing: Summing,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if args.goal.trim().is_empty() {
        return Err(CommandError::user(anyhow!(
            "the goal is empty; describe what the new session should do"
        )));
    }
    let settings = context.settings()?;
    let opened = context.change(args.about.wanted()?)?;
    let kit = kit(context, &args.summing, &settings, &opened)?;
    kit.warn(context, &opened);
    let workspace = verbs::workspace(&context.env.current_dir);
    let layers = layers(&context.env);
    let wanted = kit.compacting();
    let session = &opened.at()?;
    let done = verbs::hand_off(session, &workspace, &layers, &wanted, &args.goal, &mut |event| {
        (kit.sink)(event);
    })?;
    context.begun = Some((done.created.session.name.clone(), 0));
    models::tell_fallback(context, done.fallback.as_deref());
    if context.answer(&done)? {
        return Ok(Exit::Yes);
    }
    context.say_session(&opened.archive, &opened.session)?;
    context.say(&format!("New session {}", done.created.session.name.id))?;
    context.say(&format!(
        "It begins with a summary of {} in about {} tokens, and your goal",
        counted(done.summarised as u64, "message", "messages"),
        grouped(done.tokens),
    ))?;
    if let Some(live) = &done.created.live {
        context.say(&format!("Live file {}", shown(live)))?;
    }
    Ok(Exit::Yes)
}
