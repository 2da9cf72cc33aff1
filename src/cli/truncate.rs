//! `truncate`: cuts or clears tool results in the model's context, and drops thinking. The store keeps them whole.

use anyhow::anyhow;
use undertext::context::cut::{Bound, KEPT, Limit};
use undertext::report::{Bounded, Cached, Line, Report as _, Target};
use undertext::settings::Settings;
use undertext::verbs::{self, Asked, At, Manner, Oversized, Truncated};

use super::common::{count, counted, limit, say_written, tokens};
use super::{About, CommandError, Context, Exit, Opened, models};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units::{self, DIGITS, grouped};

/// From this width on, the tokens of each result are shown too.
const WIDE: usize = 100;

/// Shorten or clear tool results and keep the full text
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext truncate --dry-run
  undertext truncate
  undertext truncate --max-chars 20000 7c2a
  undertext truncate --older-than 20 --keep-last 3 --tool Read --thinking
  undertext truncate --to 60% --dry-run

The agent resumes with the shorter results, which say how to read the rest.
Without --max-chars, a result may fill three tenths of the window, at four
characters a token, but no more than 400,000. --older-than, --keep-last and
--tool choose results and clear them: only the command that shows them stays.
A cut invalidates the provider's cache from there on, and the command reports
how much of it.

Exit codes: 1 with --when-cold while the provider has a cache, or if --to fails")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a person types")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Size of the context window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Limit results to N characters, at least 2000
    #[arg(long, value_name = "N", conflicts_with = "window", value_parser = count::<usize>, allow_negative_numbers = true)]
    max_chars: Option<usize>,

    #[command(flatten)]
    choosing: Choosing,

    /// Drop the model's thinking, except in the newest turns
    #[arg(long)]
    thinking: bool,

    /// Cut as little as reaches 60% of the window or 40k tokens
    #[arg(long, value_name = "SIZE", value_parser = Size::read, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["max_chars", "older_than", "keep_last", "thinking"])]
    to: Option<Size>,

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

/// Which results are shortened.
#[derive(Debug, clap::Args)]
pub(super) struct Choosing {
    /// Clear only results older than the newest N turns
    #[arg(long, value_name = "N", value_parser = count::<usize>, allow_negative_numbers = true)]
    older_than: Option<usize>,

    /// Clear all but the newest N results of each tool
    #[arg(long, value_name = "N", value_parser = count::<usize>, allow_negative_numbers = true)]
    keep_last: Option<usize>,

    /// Clear only results of this tool (repeatable)
    #[arg(long = "tool", value_name = "NAME")]
    tools: Vec<String>,
}

impl Choosing {
    /// Returns the chosen results, which are cleared without a limit. Refuses a tool that was never called.
    pub(super) fn bound(
        &self,
        session: &At<'_>,
        limit: Option<Limit>,
    ) -> Result<Bound, CommandError> {
        let [older_than, keep_last] =
            [self.older_than, self.keep_last].map(Option::unwrap_or_default);
        let tools = self.tools.clone();
        let called = if tools.is_empty() { Vec::new() } else { verbs::called_tools(session)? };
        let is = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
        if let Some(tool) = tools.iter().find(|tool| !called.iter().any(|called| is(called, tool)))
        {
            let called = if called.is_empty() { "none".to_owned() } else { called.join(", ") };
            let why = anyhow!("the tool {tool} was never called in this session; called: {called}");
            return Err(CommandError::user(why));
        }
        let bound = Bound { older_than, keep_last, tools, ..Bound::default() };
        let cleared = Some(Limit::CLEARED).filter(|_| bound.is_choosing());
        Ok(Bound { limit: limit.or(cleared), ..bound })
    }
}

/// A size of the context, as it is typed: tokens, and percent of the window.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    tokens: u64,
    percent: u64,
}

impl Size {
    fn read(text: &str) -> Result<Self, String> {
        match text.strip_suffix('%').map(count) {
            None => Ok(Self { tokens: tokens(text)?, percent: 0 }),
            Some(Ok(percent @ ..=100)) => Ok(Self { tokens: 0, percent }),
            Some(_) => Err("it must be 1% to 100%, or tokens".to_owned()),
        }
    }

    fn of(self, window: u64) -> u64 {
        self.tokens + window.saturating_mul(self.percent) / 100
    }
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let settings = context.settings()?;
    let wanted = args.about.wanted()?;
    let mut opened =
        if args.dry_run { context.try_change(wanted)? } else { context.change(wanted)? };
    opened.archive.set_manner(Manner { force: args.force, ..context.manner() });
    let session = &opened.at()?;
    let (ref bound, target) = match args.to {
        None => (bound(context, args, &settings, &opened)?, None),
        Some(to) => {
            let (asked, Bound { tools, .. }) =
                (asked(args, &settings), args.choosing.bound(session, None)?);
            let (target, bound) = verbs::reach(session, &asked, |window| to.of(window), &tools)?;
            (bound.ok_or_else(|| out_of_reach(target))?, Some(target))
        }
    };
    let first = |found: &Truncated| found.results.first().map(|result| result.entry);
    if args.dry_run {
        let found = verbs::oversized(session, bound)?;
        let cached = verbs::cached(session, &asked(args, &settings), || Ok(first(&found)))?;
        show(context, &found.results)?;
        if let Some(cached) = cached {
            warn(context, cached);
        }
        let report = Bounded { truncated: &found, bound, target, cached };
        if context.json {
            context.answer_change(&opened, &report)?;
        } else {
            leave(context, &report)?;
            if found.results.is_empty() {
                nothing(context, &report)?;
            } else {
                let [count, saved] = amounts(&report);
                context.output.note(&format!("{count} would be cut, {saved}; nothing was changed"));
                context.output.hints(report.hints());
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
            let nothing = &Truncated::default();
            let report = Bounded { truncated: nothing, bound, target, cached: Some(cached) };
            context.answer_change(&opened, &report)?;
            context.output.note("Nothing was changed, because the cache is warm");
            return Ok(Exit::No);
        }
    }
    let done = verbs::truncate(&opened.at()?, bound)?;
    context.tell(&done.done.notices);
    context.say_session(&opened.archive, &opened.session)?;
    show(context, &done.results)?;
    let report = Bounded { truncated: &done, bound, target, cached };
    if context.json {
        context.answer_change(&opened, &report)?;
        return Ok(Exit::Yes);
    }
    leave(context, &report)?;
    let (Some(branch), Some(left)) = (&done.branch, &done.left) else {
        nothing(context, &report)?;
        return Ok(Exit::Yes);
    };
    let [count, tokens] = amounts(&report);
    let saved = match done.saved {
        saved @ 1.. if done.done.rotated.is_some() => {
            format!("; the session's file is {} shorter", units::size(saved))
        }
        _ => String::new(),
    };
    let are = if done.results.len() == 1 { "is" } else { "are" };
    context.say(&format!("{count} {are} cut on {branch}, {tokens}{saved}"))?;
    context.say(&format!("The previous state is kept as branch {left}"))?;
    say_written(context, &done.done)?;
    context.output.hints(report.hints());
    Ok(Exit::Yes)
}

/// Returns what is cut. Results have the typed limit; without one, they are cleared if some were chosen, and otherwise have a
/// limit derived from the session's window.
fn bound(
    context: &mut Context,
    args: &Args,
    settings: &Settings,
    opened: &Opened,
) -> Result<Bound, CommandError> {
    let asked = asked(args, settings);
    let session = &opened.at()?;
    let chosen = Bound { thinking: args.thinking, ..args.choosing.bound(session, None)? };
    let is_by_window = args.max_chars.is_none() && (args.window.is_some() || !chosen.is_choosing());
    let window = is_by_window.then(|| verbs::window(session, &asked)).transpose()?;
    if let Some(window) = &window {
        models::warn_tight(context, &|_| (), session, window);
    }
    let window = window.map(|window| window.tokens);
    let typed = args.max_chars.map(limit).transpose()?;
    let limit = typed.or(window.map(Limit::of_window));
    if let Some(window) = args.window.filter(|_| limit.is_some_and(|limit| limit.chars() < KEPT)) {
        let window = counted(window, "token", "tokens");
        let why = anyhow!(
            "a window of {window} is too small: every result keeps at least {} characters",
            units::grouped(KEPT as u64)
        );
        let shown = Line::about("context").to("see the window of the session's model");
        return Err(CommandError::user(why).hinted(shown));
    }
    let limit = limit.map(|limit| limit.max(Limit::of_chars(KEPT))).or(chosen.limit);
    Ok(Bound { limit, window, ..chosen })
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

/// Returns in words how much is cut, and how many tokens that saves.
fn amounts(report: &Bounded<'_>) -> [String; 2] {
    let Truncated { results, tokens_saved, .. } = report.truncated;
    let words = if report.bound.thinking { ["entry", "entries"] } else { ["result", "results"] };
    let saved = counted(*tokens_saved, "token", "tokens");
    [counted(results.len() as u64, words[0], words[1]), format!("saving about {saved}")]
}

/// Prints what is left alone because the agent edited it or cannot resume without it, and the size of the context if it matters.
fn leave(context: &mut Context, report: &Bounded<'_>) -> Result<(), CommandError> {
    let Truncated { edited, thinking_needed, .. } = *report.truncated;
    if thinking_needed > 0 {
        let count = counted(thinking_needed, "answer keeps its", "answers keep their");
        context.say(&format!("{count} thinking: the agent cannot resume without it"))?;
    }
    if edited > 0 {
        let count = counted(edited, "result is left alone: its", "results are left alone: their");
        context.say(&format!("{count} content was edited by the agent"))?;
    }
    if let Some(Target { tokens, before, left }) = report.target {
        let [before, left, target] = [before, left, tokens].map(grouped);
        context.say(&format!("Context about {before} → {left} tokens, of {target} at most"))?;
    }
    Ok(())
}

/// Prints why nothing is cut.
fn nothing(context: &mut Context, report: &Bounded<'_>) -> Result<(), CommandError> {
    let (more, other) = if report.truncated.edited > 0 { (" else", "other ") } else { ("", "") };
    let Some(limit @ 1..) = report.bound.limit.map(Limit::chars) else {
        return context.say(&format!("Nothing{more} to cut in what was chosen"));
    };
    let chars = counted(limit as u64, "character", "characters");
    let no = format!("no {other}result in the context is longer than {chars}");
    context.say(&format!("Nothing{more} is oversized: {no}"))
}

/// Returns the error that no cut reaches a target.
fn out_of_reach(target: Target) -> CommandError {
    let (tokens, left) = (counted(target.tokens, "token", "tokens"), grouped(target.left));
    let why = anyhow!("no cut reaches {tokens}: about {left} would be left");
    CommandError::absent(why).hinted(Line::about("compact").to("summarise older messages instead"))
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
