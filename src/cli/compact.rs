//! `compact`: replaces older messages with a summary in the model's context. The store keeps the originals.

use undertext::context::compact::Writer;
use undertext::context::event::Cause;
use undertext::report::{Line, Report as _};
use undertext::verbs::{self, Compacting, Later, Part, Planned};

use super::common::{Delay, Writing, capitalise, counted};
use super::models::{self, Summing, kit, words_of};
use super::{About, CommandError, Context, Exit, Opened, env, later};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units::grouped;

/// Replace older messages with a summary
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext compact --dry-run
  undertext compact --keep 10 --focus 'why the parser fails'
  undertext compact --summarizer local --strict 7c2a
  undertext compact --summary - < summary.md

The agent resumes from the summary and the newest messages; undo restores the
rest. Without a provider from your settings, the summary is an extract, which
needs no model. A provider is also shown the files that the session names, if
they are in this folder or its repository. A summary ends with requests, files
and other facts that it doesn't say itself, and the command that shows the rest.")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    #[command(flatten)]
    summing: Summing,

    /// Use TEXT as the summary; - reads it from stdin
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["summarizer", "focus", "strict", "later", "dry_run"])]
    summary: Option<String>,

    /// Don't add missing facts to a written summary
    #[arg(long)]
    no_appendix: bool,

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
        say_plan(context, &mut opened, &args.summing)?;
        if !context.json {
            context.output.note("Nothing was changed");
        }
        return Ok(Exit::Yes);
    }
    if args.delay.later {
        let change = Later::Compact(words_of(&context.env, &args.summing)?);
        return later::save(context, args.about.wanted()?, &args.writing, change);
    }
    if args.summing.keeps_nothing() && context.can_ask() {
        let mut opened = context.try_change(args.about.wanted()?)?;
        if !say_plan(context, &mut opened, &args.summing)? {
            return Ok(Exit::Yes);
        }
        if !context.output.ask("Keep only a summary, and no messages?")? {
            context.output.note("Nothing was changed");
            return Ok(Exit::No);
        }
    }
    let mut opened = context.change(args.about.wanted()?)?;
    opened.archive.set_manner(args.writing.manner(context));
    let summary = match args.summary.as_deref() {
        Some("-") => Some(env::read_text("the summary")?),
        summary => summary.map(str::to_owned),
    };
    let words = Words { summary: summary.as_deref(), has_appendix: !args.no_appendix };
    let done = compact(context, &mut opened, &args.summing, cause, words);
    done.map_err(|error| {
        let words = words_of(&context.env, &args.summing).unwrap_or_default();
        later::or_later(context, error, words.into_iter().fold(Line::about("compact"), Line::with))
    })?;
    Ok(Exit::Yes)
}

/// What the user says about the text of a summary.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    /// The summary itself.
    pub(crate) summary: Option<&'a str>,
    /// Whether it gets an appendix.
    pub(crate) has_appendix: bool,
}

impl Default for Words<'_> {
    fn default() -> Self {
        Self { summary: None, has_appendix: true }
    }
}

/// Compacts a session and reports the result. Returns false if there was nothing to do.
pub(crate) fn compact(
    context: &mut Context,
    opened: &mut Opened,
    summing: &Summing,
    cause: Cause,
    words: Words<'_>,
) -> Result<bool, CommandError> {
    let settings = context.settings()?;
    let kit = kit(context, summing, &settings, opened)?;
    kit.warn(context, opened);
    let by = words.summary.map_or(kit.compacting().by, Writer::Caller);
    let wanted = Compacting { cause, by, appendix: words.has_appendix, ..kit.compacting() };
    let workspace = verbs::workspace(&context.env.current_dir);
    let run = if cause == Cause::Auto { verbs::compact_if_due } else { verbs::compact };
    let done = run(&opened.at()?, &workspace, &wanted, &mut |event| (kit.sink)(event))?;
    context.tell(&done.done.notices);
    let is_done = done.nothing.is_none();
    if context.answer_change(opened, &done)? {
        return Ok(is_done);
    }
    if let Some(why) = done.nothing {
        context.say(&capitalise(&format!("{why}; nothing was changed")))?;
        return Ok(is_done);
    }
    models::tell_compaction(context, &done)?;
    context.output.hints(done.hints());
    Ok(is_done)
}

/// Shows what a compaction would do. The archive must be one that keeps nothing. Returns false if there is nothing to do.
pub(crate) fn say_plan(
    context: &mut Context,
    opened: &mut Opened,
    summing: &Summing,
) -> Result<bool, CommandError> {
    let settings = context.settings()?;
    let kit = kit(context, summing, &settings, opened)?;
    kit.warn(context, opened);
    let wanted = kit.compacting();
    let plan = verbs::plan_compaction(&opened.at()?, &wanted)?;
    show_plan(context, &plan)?;
    if plan.nothing.is_none() && opened.archive.is_preview() {
        let workspace = verbs::workspace(&context.env.current_dir);
        verbs::try_compaction(&opened.at()?, &workspace, &wanted)?;
    }
    Ok(plan.nothing.is_none())
}

fn show_plan(context: &mut Context, plan: &Planned) -> Result<(), CommandError> {
    let near = &plan.near;
    context.answer(plan)?;
    let mut table = Table::new([Left, Right, Right]);
    let mut row = |name: &str, part: Part| {
        table.row([
            Cell::new(Label::Dim, name),
            Cell::new(Label::Plain, &grouped(part.messages as u64)),
            Cell::new(Label::Plain, &counted(part.tokens, "token", "tokens")),
        ]);
    };
    if let Some(why) = plan.nothing {
        context.say(&capitalise(&why.to_string()))?;
    } else {
        row("summarised", plan.parts.summarised);
        row("kept", plan.parts.kept);
        row("earlier summaries", plan.parts.carried);
        row("system prompt", plan.parts.system);
        context.show(&table)?;
    }
    if !plan.losses.is_empty() {
        context.say(&format!("The extract names {}", models::shares(&plan.losses)))?;
    }
    let (tokens, window) = (grouped(near.tokens), grouped(near.window));
    let near = models::describe_nearness(near);
    context.say(&format!("The context is at about {tokens} of {window} tokens; {near}"))
}
