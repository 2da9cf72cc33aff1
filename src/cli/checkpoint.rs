//! `checkpoint`: numbers the session's current place.

use undertext::report::Report as _;
use undertext::verbs;

use super::{About, CommandError, Context, Exit};

/// Mark the current position
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext checkpoint
  undertext checkpoint -m 'before the refactoring'
  undertext checkpoint --tell          the model reads CHECKPOINT 7

Every user turn gets a checkpoint automatically. Numbers are never reused.
log --checkpoints lists them, and revert goes back to one.")]
pub(crate) struct Args {
    /// Name the position
    #[arg(short, long = "message", value_name = "NOTE", allow_hyphen_values = true)]
    message: Option<String>,

    /// Also write the number where the model sees it
    #[arg(long, conflicts_with = "message")]
    tell: bool,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let opened = context.change(args.about.wanted()?)?;
    let marked = if args.tell {
        let workspace = verbs::workspace(&context.env.current_dir);
        verbs::tell_checkpoint(&opened.at()?, &workspace)?
    } else {
        verbs::checkpoint(&opened.at()?, args.message.as_deref())?
    };
    context.tell(&marked.done.notices);
    if context.answer_change(&opened, &marked)? {
        return Ok(Exit::Yes);
    }
    let n = marked.checkpoint;
    let already = if marked.done.operation.is_none() { " is already here" } else { "" };
    let shown = marked.shown.filter(|shown| *shown != n.get());
    let shown =
        shown.map_or_else(String::new, |shown| format!(", which the model sees as {shown}"));
    context.say(&format!("Checkpoint {n}{already}{shown}"))?;
    context.output.hints(marked.hints());
    Ok(Exit::Yes)
}
