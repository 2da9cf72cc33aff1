//! `compact`: replaces older messages with a summary in the model's context. The store keeps the originals.

use undertext::context::event::Cause;
use undertext::report::Line;
use undertext::verbs::Later;

use super::common::{Delay, Writing};
use super::error::{CommandError, Exit};
use super::models::Summing;
use super::words::About;
use super::{Context, compaction, later};

/// Replace older messages with a summary
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext compact --dry-run
  undertext compact --keep 10 --focus 'why the parser fails'
  undertext compact --summarizer local --strict 7c2a

The agent resumes from the summary and the newest messages; undo restores the
rest. Without a provider from your settings, the summary is an extract, which
needs no model. A provider is also shown the files that the session names, if
they are in this folder or its repository. Paths, commands and requests that a
summary fails to name are kept with it, and audit --boundary lists them.")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    #[command(flatten)]
    summing: Summing,

    /// auto compacts only if it is due
    #[arg(long, value_name = "WHO", default_value = "manual")]
    trigger: Trigger,

    /// Print only the numbers
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    writing: Writing,

    #[command(flatten)]
    delay: Delay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Trigger {
    Auto,
    Manual,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let cause = if args.trigger == Trigger::Auto { Cause::Auto } else { Cause::Manual };
    if args.dry_run {
        let mut opened = context.try_change(args.about.wanted()?)?;
        opened.archive.set_manner(args.writing.manner(context));
        compaction::say_plan(context, &mut opened, &args.summing)?;
        if !context.json {
            context.output.note("Nothing was changed");
        }
        return Ok(Exit::Yes);
    }
    if args.delay.later {
        let words = context.words_of(&args.summing)?;
        let manner = args.writing.manner(context);
        return later::save(context, args.about.wanted()?, manner, Later::Compact(words));
    }
    if args.summing.keeps_nothing() && context.can_ask() {
        let mut opened = context.try_change(args.about.wanted()?)?;
        if !compaction::say_plan(context, &mut opened, &args.summing)? {
            return Ok(Exit::Yes);
        }
        if !context.output.ask("Keep only a summary, and no messages?")? {
            context.output.note("Nothing was changed");
            return Ok(Exit::No);
        }
    }
    let mut opened = context.change(args.about.wanted()?)?;
    opened.archive.set_manner(args.writing.manner(context));
    let done = compaction::compact(context, &mut opened, &args.summing, cause);
    done.map_err(|error| {
        let words = context.words_of(&args.summing).unwrap_or_default();
        context.or_later(error, words.into_iter().fold(Line::about("compact"), Line::with))
    })?;
    Ok(Exit::Yes)
}
