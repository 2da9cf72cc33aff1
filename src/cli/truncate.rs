//! `truncate`: cuts long tool results in the model's context. The store keeps them whole.

use anyhow::anyhow;
use undertext::context::cut::{KEPT, Limit};
use undertext::report::{Bounded, Cached, Line, Report as _};
use undertext::settings::Settings;
use undertext::verbs::{self, Asked, Bound, Manner, Oversized, Truncated};

use super::common::{count, counted, limit, say_written, tokens};
use super::{About, CommandError, Context, Exit, Opened, models};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units::{self, DIGITS, grouped};

/// From this width on, the tokens of each result are shown too.
const WIDE: usize = 100;

/// Shorten long tool results and keep the full text
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext truncate --dry-run
  undertext truncate
  undertext truncate --max-chars 20000 7c2a

The agent resumes with the shorter results, which say how to read the rest.
Without --max-chars, a result may fill three tenths of the window, at four
characters a token, but no more than 400,000 characters. A cut invalidates the
provider's cache from there on, and the command reports how much of it.

Exit codes: 1 with --when-cold while the provider has a cache")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Size of the context window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Limit results to N characters, at least 2000
    #[arg(long, value_name = "N", conflicts_with = "window", value_parser = count::<usize>, allow_negative_numbers = true)]
    max_chars: Option<usize>,

    /// Write even if an agent may have the session open
    #[arg(long)]
    force: bool,

    /// Show what would be cut, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Do nothing while the provider still has a cache
    #[arg(long)]
    when_cold: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let settings = context.settings()?;
    let wanted = args.about.wanted()?;
    let mut opened =
        if args.dry_run { context.try_change(wanted)? } else { context.change(wanted)? };
    opened.archive.set_manner(Manner { force: args.force, ..context.manner() });
    let bound = bound(context, args, &settings, &opened)?;
    let session = &opened.at()?;
    let first = |found: &Truncated| found.results.first().map(|result| result.entry);
    if args.dry_run {
        let found = verbs::oversized(session, bound)?;
        let cached = verbs::cached(session, &asked(args, &settings), || Ok(first(&found)))?;
        show(context, &found.results)?;
        if let Some(cached) = cached {
            warn(context, cached);
        }
        if context.json {
            context.answer_change(&opened, &bounded(&found, bound, cached))?;
        } else {
            leave(context, bound.limit, found.edited)?;
            let count = counted(found.results.len() as u64, "result", "results");
            match found.results.as_slice() {
                [] => nothing(context, bound.limit, found.edited)?,
                _ => context.output.note(&format!("{count} would be cut; nothing was changed")),
            }
        }
        // What the change itself refuses is refused here.
        verbs::truncate(&opened.at()?, bound)?;
        return Ok(Exit::Yes);
    }
    let cached = verbs::cached(session, &asked(args, &settings), || {
        Ok(first(&verbs::oversized(session, bound)?))
    })?;
    if let Some(cached) = cached {
        warn(context, cached);
        if args.when_cold {
            context.answer_change(&opened, &bounded(&Truncated::default(), bound, Some(cached)))?;
            context.output.note("Nothing was changed, because the cache is warm");
            return Ok(Exit::No);
        }
    }
    let done = verbs::truncate(&opened.at()?, bound)?;
    context.tell(&done.done.notices);
    context.say_session(&opened.archive, &opened.session)?;
    show(context, &done.results)?;
    let report = bounded(&done, bound, cached);
    if context.json {
        context.answer_change(&opened, &report)?;
        return Ok(Exit::Yes);
    }
    leave(context, bound.limit, done.edited)?;
    let (Some(branch), Some(left)) = (&done.branch, &done.left) else {
        nothing(context, bound.limit, done.edited)?;
        return Ok(Exit::Yes);
    };
    let count = counted(done.results.len() as u64, "result is", "results are");
    let saved = match done.saved {
        saved @ 1.. if done.done.rotated.is_some() => {
            format!("; the session's file is {} shorter", units::size(saved))
        }
        _ => String::new(),
    };
    context.say(&format!("{count} cut on {branch}{saved}"))?;
    context.say(&format!("The previous state is kept as branch {left}"))?;
    say_written(context, &done.done)?;
    context.output.hints(report.hints());
    Ok(Exit::Yes)
}

/// Returns the limit of results: the typed one, or one derived from the session's window.
fn bound(
    context: &mut Context,
    args: &Args,
    settings: &Settings,
    opened: &Opened,
) -> Result<Bound, CommandError> {
    let is_by_window = args.max_chars.is_none();
    let asked = asked(args, settings);
    let session = &opened.at()?;
    let window = is_by_window.then(|| verbs::window(session, &asked)).transpose()?;
    if let Some(window) = &window {
        models::warn_tight(context, &|_| (), session, window);
    }
    let window = window.map(|window| window.tokens);
    let typed = args.max_chars.map(limit).transpose()?;
    let limit = typed.or(window.map(Limit::of_window)).unwrap_or(Limit::of_chars(KEPT));
    if let Some(window) = args.window.filter(|_| limit.chars() < KEPT) {
        let window = counted(window, "token", "tokens");
        let why = anyhow!(
            "a window of {window} is too small: every result keeps at least {} characters",
            units::grouped(KEPT as u64)
        );
        let shown = Line::about("context").to("see the window of the session's model");
        return Err(CommandError::user(why).hinted(shown));
    }
    Ok(Bound { limit: limit.max(Limit::of_chars(KEPT)), window })
}

/// Returns the request for the session, with the typed window.
fn asked(args: &Args, settings: &Settings) -> Asked {
    Asked { window: args.window, ..models::usual(settings) }
}

/// Warns how much of the provider's cache a cut would invalidate.
fn warn(context: &mut Context, cached: Cached) {
    let until = context.env.zone.show(cached.until);
    context.output.warn(&format!(
        "the provider may have this conversation in its cache until {until}; after the first cut, it would have to read about {} tokens again",
        units::grouped(cached.tokens)
    ));
    context.output.hint(
        Line::about("truncate").flag("when-cold").to("to cut only once the cache has expired"),
    );
}

fn bounded(truncated: &Truncated, bound: Bound, cached: Option<Cached>) -> Bounded<'_> {
    Bounded { truncated, limit: bound.limit.chars(), window: bound.window, cached }
}

/// Prints how many results are left alone because the agent edited their content.
fn leave(context: &mut Context, limit: Limit, edited: u64) -> Result<(), CommandError> {
    if edited == 0 {
        return Ok(());
    }
    let count = counted(edited, "result is left alone: its", "results are left alone: their");
    let chars = counted(limit.chars() as u64, "character", "characters");
    context.say(&format!("{count} content was edited by the agent and is longer than {chars}"))
}

fn nothing(context: &mut Context, limit: Limit, edited: u64) -> Result<(), CommandError> {
    let chars = counted(limit.chars() as u64, "character", "characters");
    let (more, other) = if edited > 0 { (" else", "other ") } else { ("", "") };
    let no = format!("no {other}result in the context is longer than {chars}");
    context.say(&format!("Nothing{more} is oversized: {no}"))
}

fn show(context: &mut Context, results: &[Oversized]) -> Result<(), CommandError> {
    let mut table = Table::new([Left, Left, Right, Left, Right, Left, Left]).yielding(&[1]);
    let is_wide = context.output.width().is_none_or(|columns| columns >= WIDE);
    for result in results {
        context.answer(result)?;
        let (before, after) = (grouped(result.tokens), grouped(result.tokens_left));
        let tokens = format!(", about {before} to {after} tokens");
        table.row([
            Cell::new(Label::Id, &format!("{:.DIGITS$}", result.entry)),
            Cell::new(Label::Tool, result.tool.as_deref().unwrap_or("?")),
            Cell::new(Label::Plain, &grouped(result.characters)),
            Cell::new(Label::Dim, "to"),
            Cell::new(Label::Plain, &grouped(result.left)),
            Cell::new(Label::Dim, &format!("characters{}", if is_wide { &tokens } else { "" })),
            Cell::new(Label::Plain, result.subject.as_deref().unwrap_or_default()),
        ]);
    }
    context.show(&table)
}
