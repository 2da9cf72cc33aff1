//! `compact`: puts a summary in the place of what was said, and keeps the rest.

use undertext::context::event::Cause;
use undertext::ops::Later;
use undertext::report::Line;

use super::common::{Delay, Writing};
use super::error::{CommandError, Exit};
use super::models::Summing;
use super::words::About;
use super::{Context, compaction, later};

/// Put a summary in the place of what was said, and keep the newest messages
///
/// Nothing is lost: the agent resumes from the summary and what is kept, all else stays readable above it, and `undo`
/// restores it. The summary is an extract unless a provider of the settings is to write it. With nothing new since the
/// last time, nothing is done. Paths, commands, numbers, last requests and identifiers that a summary no longer names are kept
/// with it, and `audit --boundary` lists them; --dry-run counts them for the extract.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext compact --dry-run
  undertext compact --keep 10 --focus 'the parser, and why it fails'
  undertext compact --summarizer local --strict 3f2a91c0
  undertext undo

Settings: [compaction] and [provider.NAME] in config.toml; every key, explained: undertext context --settings.
The commands before and after are told as JSON on stdin; before stops it by failing.

JSON: one object
  {\"type\":\"compact\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"operation\":N or null if nothing is changed, \"nothing\":why there was nothing to do or null,
   \"branch\":NAME, \"left\":NAME of the branch with the state before, where the file is written again, or null,
   \"summary\":ID or null, \"summarised\":MESSAGES, \"kept\":MESSAGES, \"carried\":earlier summaries in it N,
   \"pre_tokens\":N, \"post_tokens\":N, \"window\":N, \"files\":[PATH], \"model\":NAME or null, \"duration_ms\":N,
   \"fallback\":why no model wrote it though one should have, or null, \"losses\":[LOSS], \"rotated\":PATH or null, \"written\":PATH or null}
and with --dry-run
  {\"type\":\"plan\", \"tokens\":N, \"window\":N, \"at\":N tokens it is due, \"left\":N until then, \"due\":BOOL,
   \"nothing\":TEXT or null, \"summarised\":PART, \"kept\":PART, \"carried\":PART, \"system\":PART,
   \"losses\":[LOSS] of the extract}
PART is {\"messages\":N, \"tokens\":N}. LOSS is what the summary no longer names of the messages that it stands for:
{\"kind\":\"paths\", \"commands\", \"numbers\", \"requests\" or \"identifiers\", \"of\":N, \"kept\":N, \"lost\":[TEXT]}. With --events, one object an event on stderr, tagged with its \"event\".")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    #[command(flatten)]
    summing: Summing,

    /// Say who asks: auto does nothing until it is due
    #[arg(long, value_name = "WHO", default_value = "manual")]
    trigger: Trigger,

    /// Only show the numbers
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
        let (mut archive, session) = context.look_ahead(args.about.wanted()?)?;
        archive.set_manner(args.writing.manner(context));
        compaction::say_plan(context, (&mut archive, &session), &args.summing)?;
        if !context.json {
            context.output.note("Nothing is changed");
        }
        return Ok(Exit::Yes);
    }
    if args.delay.later {
        let words = context.words_of(&args.summing)?;
        let manner = args.writing.manner(context);
        return later::save(context, args.about.wanted()?, manner, Later::Compact(words));
    }
    if args.summing.keeps_nothing() && context.can_ask() {
        let (mut archive, session) = context.look_ahead(args.about.wanted()?)?;
        if !compaction::say_plan(context, (&mut archive, &session), &args.summing)? {
            return Ok(Exit::Yes);
        }
        if !context.output.ask("Keep no message as it is, only a summary?")? {
            context.output.note("Nothing is changed");
            return Ok(Exit::No);
        }
    }
    let (mut archive, session) = context.change(args.about.wanted()?)?;
    archive.set_manner(args.writing.manner(context));
    let done = compaction::compact(context, (&mut archive, &session), &args.summing, cause);
    done.map_err(|error| {
        let words = context.words_of(&args.summing).unwrap_or_default();
        context.or_later(error, words.into_iter().fold(Line::about("compact"), Line::with))
    })?;
    Ok(Exit::Yes)
}
