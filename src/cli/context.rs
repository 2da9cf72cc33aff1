//! `context`: shows what a model would be sent, and why.

use std::collections::BTreeMap;
use std::io::Write as _;

use undertext::context::cut::Limit;
use undertext::context::history::Limits;
use undertext::context::measure::Measured;
use undertext::context::tokens::Counting;
use undertext::context::window::Verdict;
use undertext::context::{Act, Item, Origin, Shape, Step};
use undertext::model::{Block, EntryId, EntryNumber, Image, Role};
use undertext::report::{Sent, SentMessage, Treatment};
use undertext::settings::Settings;
use undertext::verbs::{self, Archive, Asked, Session};

use super::common::{capitalise, count, counted, first_line, tokens};
use super::truncate::Choosing;
use super::{About, CommandError, Context, Exit, Opened, complete, models, settings};
use crate::render::moment::Since;
use crate::render::table::{Cell, Columns, Label, Left, Right, Table};
use crate::render::units::{grouped, percent, tenths};
use crate::render::window::{self, unrecorded};

/// Maximum width of the bar that shows how full the window is.
const BAR: u64 = 20;
/// Maximum number of named entries among those treated alike.
const NAMED: usize = 3;
/// Number of listed largest messages.
const LARGEST: usize = 5;
/// Number of messages whose ids are looked up in one batch.
const TOLD: usize = 4096;

/// Show what the model is sent and what fills the window
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext context
  undertext context --as anthropic --json | head -1 | jq .request
  undertext context --explain 9c0d

An agent's session is shown as the agent sends it. For a provider's interface,
--as prepares a request that the provider accepts: every call gets its result,
roles alternate, and all changes are listed. Token counts are those that the
newest answer reports, plus an estimate of what came after it; --tokens exact
counts with the model's own encoding.")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Show the context at this place
    #[arg(long, value_name = "ENTRY", add = complete::places())]
    at: Option<String>,

    /// Form: agent, anthropic, openai, gemini or messages
    #[arg(long = "as", value_name = "SHAPE", hide_possible_values = true)]
    shape: Option<ShapeArg>,

    /// For this model [default: the last that answered]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,

    /// Kind: exact, estimate or reported
    #[arg(long, value_name = "HOW", default_value = "reported", hide_possible_values = true)]
    tokens: TokensArg,

    /// Size of the context window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_negative_numbers = true)]
    window: Option<u64>,

    /// Send at most the newest N user turns
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    turns: Option<u32>,

    /// Send at most N messages, in whole turns
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    max_messages: Option<u32>,

    /// Send at most N tokens, in whole turns
    #[arg(long, value_name = "N", value_parser = count::<u64>, allow_negative_numbers = true)]
    max_tokens: Option<u64>,

    /// Send only turns since: 12h, 7d, monday
    #[arg(long, value_name = "TIME", value_parser = Since::read)]
    since: Option<Since>,

    /// Cut each tool result to N characters
    #[arg(long, value_name = "N", value_parser = count::<u32>, allow_negative_numbers = true)]
    max_tool_result: Option<u32>,

    #[command(flatten)]
    choosing: Choosing,

    /// List every message, not only the largest
    #[arg(long)]
    all: bool,

    /// Leave images out
    #[arg(long)]
    no_images: bool,

    /// Apply your settings' limits for CHANNEL:KIND:PEER
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Say why this entry is sent or not
    #[arg(long, value_name = "ENTRY", add = complete::places())]
    explain: Option<String>,

    /// Print all settings, their values and sources
    #[arg(long, conflicts_with_all = [
        "session", "named", "at", "shape", "model", "tokens", "window", "turns", "max_messages", "max_tokens", "since",
        "max_tool_result", "older_than", "keep_last", "tools", "no_images", "key", "explain", "all",
    ])]
    settings: bool,
}

/// An interface, as it is typed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ShapeArg {
    /// As the session's own agent sends it
    Agent,
    /// Anthropic's messages
    Anthropic,
    /// OpenAI's chat completions
    Openai,
    /// Gemini's contents
    Gemini,
    /// All messages, for no provider
    Messages,
}

/// A way of counting, as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum TokensArg {
    /// As the model counts, or as gpt-4 does if that is unknown
    Exact,
    /// A rough estimate
    Estimate,
    /// As the newest answer reports, with an estimate of what came after it
    Reported,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if args.settings {
        return settings::show(context);
    }
    let settings = context.settings()?;
    let opened = context.look(args.about.wanted()?)?;
    let session = &opened.at()?;
    let at = args.at.as_deref().map(|at| verbs::find_passage(session, at)).transpose()?;
    let at = at.map(|part| part.target);
    let asked = read_request(context, args, &settings, &opened)?;
    let rule = models::rule(&settings);
    let mut found = verbs::context(session, at.as_ref(), &asked)?;
    let is_counted = args.tokens != TokensArg::Reported;
    if let Some(exact) = rule.exactly(&asked, found.window.tokens, found.measured) {
        found = verbs::context(session, at.as_ref(), &exact)?;
        found.measured = found.counted();
    }
    let window = &found.window;
    let near = rule.near(window.tokens, found.measured);
    let measured = if is_counted { found.counted() } else { found.measured };
    let sent = Sent::new(session, &found, measured, &near);
    models::warn_tight(context, &|_| (), session, window);
    if window.verdict == Verdict::Blocked {
        let (tokens, least) = (counted(window.tokens, "token", "tokens"), grouped(window.least));
        let giver = window.source.giver();
        let small = format!("a window of {tokens}{giver} is too small for a turn");
        context.output.warn(&format!("{small}: the minimum is {least}"));
    }
    if found.prepared.limited.exceeds {
        context.output.warn("the newest turn alone exceeds the requested size; it is kept whole");
    }
    if let Some(entry) = &args.explain {
        explain(context, &opened, &found, entry)?;
    } else if context.json {
        tell_programs(context, session.archive, &sent)?;
    } else {
        tell_people(context, session.archive, &sent, args.all)?;
    }
    let exit = context.tell_damaged(&found.damaged)?;
    keep_counts(context, opened.archive, &opened.session, &found);
    Ok(exit)
}

/// Builds the request from the command line, with the settings as defaults.
fn read_request(
    context: &Context,
    args: &Args,
    settings: &Settings,
    opened: &Opened,
) -> Result<Asked, CommandError> {
    let usual = models::limits(settings, args.key.as_deref(), opened)?;
    let size = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
    let now = context.env.ambient().now();
    let limit = args.max_tool_result.map(|limit| Limit::of_chars(size(limit)));
    let results = args.choosing.bound(&opened.at()?, limit)?;
    Ok(Asked {
        shape: match args.shape {
            Some(ShapeArg::Anthropic) => Shape::Anthropic,
            Some(ShapeArg::Openai) => Shape::Openai,
            Some(ShapeArg::Gemini) => Shape::Gemini,
            Some(ShapeArg::Messages) => Shape::Messages,
            None if opened.session.format.traits().programs.is_empty() => Shape::Messages,
            Some(ShapeArg::Agent) | None => Shape::Agent,
        },
        model: args.model.clone(),
        window: args.window,
        windows: models::windows(settings),
        limits: Limits {
            turns: args.turns.map(size).or(usual.turns),
            messages: args.max_messages.map(size).or(usual.messages),
            tokens: args.max_tokens.or(usual.tokens),
            since: args.since.map(|since| since.at(context.env.zone, now)),
        },
        images: !args.no_images,
        results: Some(results).filter(|results| results.limit.is_some()),
        counting: (args.tokens != TokensArg::Exact).then_some(Counting::Estimate),
    })
}

/// Stores the token counts. If the store cannot be written, the next command counts again.
fn keep_counts(context: &mut Context, archive: Archive, session: &Session, found: &verbs::Context) {
    let is_stored = archive.root().is_some();
    drop(archive);
    if is_stored
        && !found.fresh.is_empty()
        && let Ok(archive) = context.open_writer()
        && let Ok(session) = archive.at(session)
    {
        let _ = verbs::keep_counts(&session, found.counting, &found.fresh);
    }
}

/// Looks up the ids of a small batch of entries.
fn ids<'a>(
    archive: &Archive,
    session: &Session,
    entries: impl Iterator<Item = &'a EntryNumber>,
) -> Result<BTreeMap<EntryNumber, EntryId>, CommandError> {
    Ok(verbs::entry_ids(archive.store(), session, &entries.copied().collect())?)
}

fn named(ids: &BTreeMap<EntryNumber, EntryId>, entries: &[EntryNumber]) -> Vec<EntryId> {
    entries.iter().filter_map(|entry| ids.get(entry)).copied().collect()
}

fn short(ids: &BTreeMap<EntryNumber, EntryId>, entry: EntryNumber) -> String {
    ids.get(&entry).map_or("?".to_owned(), |id| format!("{id:.8}"))
}

fn tell_programs(
    context: &mut Context,
    archive: &Archive,
    sent: &Sent<'_>,
) -> Result<(), CommandError> {
    context.answer(sent)?;
    let prepared = &sent.found.prepared;
    let (mut n, mut total) = (0, 0);
    for items in prepared.items.chunks(TOLD) {
        let ids = ids(archive, sent.session, items.iter().flat_map(|item| item.entries.iter()))?;
        for item in items {
            let (role, origin, tokens) = (item.role(), item.origin, item.tokens.unwrap_or(0));
            total += tokens;
            let entries = named(&ids, &item.entries);
            context.answer(&SentMessage { n, role, origin, entries, tokens, total })?;
            n += 1;
        }
    }
    for changes in prepared.changes.chunks(TOLD) {
        let ids = ids(archive, sent.session, changes.iter().flat_map(|change| &*change.entries))?;
        for change in changes {
            let entries = named(&ids, &change.entries);
            context.answer(&Treatment::new(change, entries))?;
        }
    }
    Ok(())
}

/// A row of the list: a message, or the tokens that belong to no message.
#[derive(Clone, Copy)]
struct Row<'a> {
    item: Option<&'a Item>,
    tokens: u64,
    /// The running total of tokens, this row included.
    total: u64,
}

/// Returns a row for the tokens that belong to no message, then one per message. The rows add up to the size of the request.
fn rows<'a>(sent: &'a Sent<'_>) -> impl Iterator<Item = Row<'a>> + Clone {
    let unrecorded = Some((None, sent.unrecorded)).filter(|(_, tokens)| *tokens > 0);
    let messages = sent.shares().map(|(item, tokens)| (Some(item), tokens));
    let mut total = 0;
    unrecorded.into_iter().chain(messages).map(move |(item, tokens)| {
        total += tokens;
        Row { item, tokens, total }
    })
}

/// Returns the largest messages, largest first.
fn largest<'a>(sent: &'a Sent<'_>) -> Vec<Row<'a>> {
    let mut largest = Vec::new();
    for row in rows(sent).filter(|row| row.item.is_some()) {
        largest.push(row);
        largest.sort_by_key(|row| std::cmp::Reverse(row.tokens));
        largest.truncate(LARGEST);
    }
    largest
}

/// Writes one row per message, reading messages in batches.
fn write_rows<'a>(
    context: &mut Context,
    archive: &Archive,
    sent: &Sent<'_>,
    rows: &(impl Iterator<Item = Row<'a>> + Clone),
    bar_width: u64,
) -> Result<(), CommandError> {
    let window = sent.found.window.tokens;
    let each = |each: &mut dyn FnMut(&[Cell; 7]) -> Result<(), CommandError>| {
        let mut rows = rows.clone().peekable();
        while rows.peek().is_some() {
            let rows: Vec<Row<'_>> = rows.by_ref().take(TOLD).collect();
            let entries = rows.iter().filter_map(|row| row.item?.entries.first());
            let ids = ids(archive, sent.session, entries)?;
            for Row { item, tokens, total } in rows {
                let id = item.and_then(Item::entry).map(|entry| short(&ids, entry));
                let words = item.map_or_else(|| unrecorded(sent).to_owned(), first_words);
                let cell = |label, text: &str| Cell::new(label, text);
                let role = item.map(|item| cell(role_label(item), item.role().as_str()));
                let origin = |item: &Item| cell(origin_label(item.origin), item.origin.as_str());
                let none = || cell(Label::Plain, "");
                let bar_label = if total > window { Label::Error } else { Label::Dim };
                each(&[
                    role.unwrap_or_else(none),
                    cell(Label::Id, &id.unwrap_or_default()),
                    item.map_or_else(none, origin),
                    cell(Label::Plain, &grouped(tokens)),
                    cell(Label::Dim, &percent(tenths(tokens, window))),
                    cell(bar_label, &bar(total, window.max(1), bar_width)),
                    cell(Label::Plain, &words),
                ])?;
            }
        }
        Ok(())
    };
    let sides = [Left, Left, Left, Right, Right, Left, Left];
    let heads = ["role", "entry", "origin", "tokens", "window", "up to here", ""];
    let mut columns = Columns::new(sides).yielding(&[4, 2]).headed(heads);
    let (styles, width) = (context.output.styles(), context.output.width());
    each(&mut |cells| {
        columns.measure(cells);
        Ok(())
    })?;
    let columns = columns.within(width);
    columns.head(&mut context.output, styles)?;
    each(&mut |cells| Ok(columns.row(&mut context.output, styles, cells)?))
}

fn tell_people(
    context: &mut Context,
    archive: &Archive,
    sent: &Sent<'_>,
    all: bool,
) -> Result<(), CommandError> {
    let prepared = &sent.found.prepared;
    context.output.page()?;
    if prepared.items.is_empty() {
        context.output.note("Nothing would be sent to a model");
    }
    tell_size(context, sent)?;
    let (styles, width) = (context.output.styles(), context.output.width());
    if sent.measured.tokens > 0 {
        writeln!(context.output)?;
        window::write(&mut context.output, sent, styles, width)?;
        writeln!(context.output)?;
    }
    let n = prepared.items.len();
    // A list that is only a little longer is shown whole.
    if all || n <= 2 * LARGEST {
        write_rows(context, archive, sent, &rows(sent), bar_width(width))?;
    } else {
        let largest = largest(sent);
        let shown = largest.iter().map(|row| row.tokens).sum::<u64>();
        let others = sent.measured.tokens - sent.unrecorded - shown;
        context.say(&format!("The {LARGEST} largest of {} messages:", grouped(n as u64)))?;
        write_rows(context, archive, sent, &largest.into_iter(), 0)?;
        let (others, more) = (
            counted(others, "token", "tokens"),
            counted((n - LARGEST) as u64, "more message totals", "more messages total"),
        );
        context.say(&format!("{more} {others}; --all lists them"))?;
    }
    if !prepared.changes.is_empty() {
        writeln!(context.output)?;
    }
    // Equal treatments share one row, with their count and their first entries.
    let mut alike: BTreeMap<(Step, Act, &str), (usize, Vec<EntryNumber>)> = BTreeMap::new();
    for change in &prepared.changes {
        let key = (change.step, change.act, &*change.why);
        let (count, named) = alike.entry(key).or_default();
        *count += change.entries.len().min(1);
        named.extend(change.entries.first().filter(|_| *count <= NAMED));
    }
    let ids = ids(archive, sent.session, alike.values().flat_map(|(_, named)| named))?;
    let mut table = Table::new([Left, Left, Right, Left]);
    for ((step, act, why), (count, named)) in alike {
        let mut shown: Vec<String> = named.iter().map(|&entry| short(&ids, entry)).collect();
        if count > NAMED {
            shown.push("...".to_owned());
        }
        table.row([
            Cell::new(Label::Dim, step.as_str()),
            Cell::new(Label::Warning, act.as_str()),
            Cell::new(Label::Plain, &count.max(1).to_string()),
            Cell::new(Label::Plain, &format!("{why}: {}", shown.join(" "))),
        ]);
    }
    context.show(&table)
}

/// Prints the size of the whole context.
fn tell_size(context: &mut Context, sent: &Sent<'_>) -> Result<(), CommandError> {
    let found = sent.found;
    let (prepared, window) = (&found.prepared, &found.window);
    let Measured { tokens, word } = sent.measured;
    let percent = percent(tenths(tokens, window.tokens));
    let messages = counted(prepared.items.len() as u64, "message", "messages");
    let model = found.model.as_deref().unwrap_or("unknown model");
    context.say(&format!(
        "{messages}, {} ({}): {percent} of a window of {} ({}, {model})",
        counted(tokens, "token", "tokens"),
        word.words(),
        grouped(window.tokens),
        window.source.words(),
    ))?;
    if found.measured.word != word {
        let Measured { tokens, word } = found.measured;
        let tokens = counted(tokens, "token", "tokens");
        context.say(&format!("{tokens} ({})", word.words()))?;
    }
    if found.beside > 0 {
        context.say(&format!(
            "About {} of these tokens are the system prompt and tools in the file",
            grouped(found.beside)
        ))?;
    }
    context.say(&capitalise(&models::describe_nearness(sent.near)))?;
    let (turns, kept) = (prepared.limited.turns, prepared.limited.kept);
    if kept < turns {
        context.say(&format!("{kept} of {} are kept", counted(turns as u64, "turn", "turns")))?;
    }
    if found.images > 0 {
        let pictures = counted(found.images, "picture", "pictures");
        let size = crate::render::units::size(found.image_bytes);
        context.say(&format!("{pictures}, {size}"))?;
    }
    Ok(())
}

fn role_label(item: &Item) -> Label {
    match item.role() {
        Role::System => Label::Heading,
        Role::User => Label::User,
        Role::Assistant => Label::Assistant,
        Role::Tool => Label::Tool,
    }
}

fn origin_label(origin: Origin) -> Label {
    match origin {
        Origin::Said => Label::Dim,
        Origin::Summary | Origin::Kept => Label::Boundary,
        Origin::Replayed | Origin::Edited | Origin::Merged => Label::Note,
        Origin::Synthetic => Label::Warning,
    }
}

/// Returns the width of the bar that leaves room for a message's words.
fn bar_width(terminal: Option<usize>) -> u64 {
    match terminal {
        Some(..80) => 0,
        Some(80..100) => BAR / 2,
        _ => BAR,
    }
}

/// Draws how full the window is.
fn bar(total: u64, window: u64, width: u64) -> String {
    let full = total.saturating_mul(width).div_ceil(window).min(width);
    (0..width).map(|at| if at < full { '█' } else { '░' }).collect()
}

/// Returns the first words of a message, or a placeholder.
fn first_words(item: &Item) -> String {
    const MOST: usize = 200;
    let message = item.message();
    let said = message.parts().find_map(|block| match block {
        Block::Text(text) => Some(first_line(text).to_owned()).filter(|line| !line.is_empty()),
        Block::Result { .. } => Some(first_line(&block.answer_text()).to_owned()),
        Block::Call { name, input, .. } => Some(format!("{name} {input}")),
        Block::Image(_) => Some(Image::WORDS.to_owned()),
        Block::Other { name, .. } => Some(format!("[{name}]")),
        Block::Thinking(_) => None,
    });
    said.unwrap_or_default().chars().take(MOST).collect()
}

fn explain(
    context: &mut Context,
    opened: &Opened,
    found: &verbs::Context,
    wanted: &str,
) -> Result<(), CommandError> {
    let session = &opened.at()?;
    let target = verbs::find_place(session, wanted)?;
    let Some(entry) = verbs::entry_of(session, &target)? else {
        context.output.note(&format!("There is no entry at {wanted}"));
        return Ok(());
    };
    let explained = verbs::explain(session, found, entry)?;
    context.answer(&explained)?;
    let short = format!("{:.8}", explained.entry);
    match explained.messages.as_slice() {
        [] => context.say(&format!("{short} is not sent: {}", explained.why))?,
        at => {
            let at: Vec<String> = at.iter().map(|at| (at + 1).to_string()).collect();
            let of = found.prepared.items.len();
            let at = at.join(" and ");
            context.say(&format!("{short} is sent in message {at} of {of}: {}", explained.why))?;
        }
    }
    for change in &explained.changes {
        context.say(&format!(
            "  {} {}: {}",
            change.step.as_str(),
            change.act.as_str(),
            change.why
        ))?;
    }
    Ok(())
}
