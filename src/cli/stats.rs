//! `stats`: the tokens that sessions used, and what they cost, as a table or as a picture.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use chrono::{Days, NaiveDate};
use undertext::model::Timestamp;
use undertext::report::{Expense, Line, Page, Spending, Spent};
use undertext::store::SessionFilter;
use undertext::verbs::{self, By, Period, Prices, Row};

use super::common::{self, counted, within};
use super::env::Env;
use super::words::ONE_OR_ALL;
use super::{About, CommandError, Context, Exit, archive, export};
use crate::render::chart::{self, Chart};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units::{self, dollars, rounded};
use crate::render::{moment, safe};

/// Default number of groups shown to people: four weeks of days.
const SHOWN: usize = 28;
/// Number of days in the row of bars.
const DAYS: u64 = 28;
/// Width of a group's bar.
const BAR: u64 = 8;
/// Progress is shown if counting takes longer than this.
const SILENT: Duration = Duration::from_millis(500);
/// Longest name of a group.
const LONGEST: usize = 32;

/// Show the tokens that sessions used and what they cost
#[derive(Debug, clap::Args)]
#[command(mut_arg("session", |arg| arg.help(ONE_OR_ALL)), after_help = "\
Examples:
  undertext stats                     by day, the newest first
  undertext stats --by model --since 30d
  undertext stats --svg usage.svg     a year as a picture
  undertext stats 7c2a                one session and its sub-agents

Each answer counts once, however many forks and resumed sessions repeat it.
Sub-agents and hidden sessions count. Costs are list prices without surcharges;
set other prices under [prices] in your settings.")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// How to group
    #[arg(long, value_enum, default_value = "day", value_name = "GROUP")]
    by: Group,

    /// Only answers since: 12h, 7d, monday
    #[arg(long, value_name = "TIME", value_parser = moment::Since::read, allow_hyphen_values = true)]
    since: Option<moment::Since>,

    /// Only answers before: yesterday, 2026-11-01
    #[arg(long, value_name = "TIME", value_parser = moment::Since::read, allow_hyphen_values = true)]
    until: Option<moment::Since>,

    /// Only sessions in the current folder or below it
    #[arg(long)]
    here: bool,

    /// Show at most N groups; 0 shows all [default: 28]
    #[arg(short, long = "number", value_name = "N", value_parser = common::number::<usize>, allow_negative_numbers = true)]
    number: Option<usize>,

    /// Write a picture to FILE
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "svg")]
    force: bool,
}

/// How answers are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    Day,
    Agent,
    Model,
    Folder,
    Session,
}

impl Group {
    fn by(self) -> By {
        match self {
            Self::Day => By::Day,
            Self::Agent => By::Agent,
            Self::Model => By::Model,
            Self::Folder => By::Folder,
            Self::Session => By::Session,
        }
    }
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let wanted = args.about.wanted()?;
    let (archive, session) = match archive::find_or_all(context, wanted) {
        Err(error) if wanted.is_none() && error.is_absence() => {
            context.output.note("No sessions yet");
            context.output.hints(error.into_hints());
            return Ok(Exit::Yes);
        }
        found => found?,
    };
    let (zone, now) = (context.env.zone, context.env.ambient().now());
    let prices = Prices::with(&context.settings()?.prices);
    let since = args.since.map(|since| since.at(zone, now));
    let filter = SessionFilter {
        folder: args.here.then(|| within(&context.env, Path::new("."))),
        since,
        ..SessionFilter::default()
    };
    let day = |time: Timestamp| zone.moment(time).date();
    let until = args.until.map(|until| until.at(zone, now));
    let period = Period { since, until, day: &day };
    let (output, begun) = (&mut context.output, Instant::now());
    let (rows, unread) =
        verbs::spending(&archive, &filter, session.as_ref(), &period, &mut |done, all| {
            if begun.elapsed() >= SILENT {
                output.steps("counting", done, all);
            }
        })?;
    archive::leave(archive);
    let all = verbs::sum(&rows, &prices);
    if let Some(file) = &args.svg {
        draw(context, args, file, &rows, &prices, day(now))?;
        return context.tell_unread_sessions(&unread);
    }
    let groups = verbs::grouped(&rows, args.by.by(), &prices);
    if context.json {
        let (prices, priced) = (prices.source.clone(), prices.date.clone());
        context.answer(&Spending { expense: all, prices, priced })?;
        context.answer_all(&groups)?;
        return context.tell_unread_sessions(&unread);
    }
    if rows.is_empty() {
        context.output.note("No answers with token counts");
        return context.tell_unread_sessions(&unread);
    }
    context.output.page()?;
    say_total(context, &all)?;
    if args.by == Group::Day && context.env.terminal.stdout {
        weeks(context, &groups, day(now))?;
    }
    context.say("")?;
    show(context, args, &groups, &all)?;
    context.say("")?;
    say_prices(context, &rows, &prices, &all)?;
    context.tell_unread_sessions(&unread)
}

fn say_total(context: &mut Context, all: &Expense) -> Result<(), CommandError> {
    let Expense { sessions, turns, requests, usage, .. } = all;
    let (zone, now) = (context.env.zone, context.env.ambient().now());
    let span = all.first.zip(all.last).map(|(first, last)| zone.span(now, first, last));
    let facts = [
        Some(cost_of(all, cents(all.cost))),
        Some(counted(*sessions, "session", "sessions")),
        Some(counted(*turns, "turn", "turns")),
        Some(counted(*requests, "request", "requests")),
        Some(format!("{} tokens", rounded(usage.total()))),
        span,
    ];
    context.say(&facts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

/// Returns what is compared by bars: costs, or tokens if no price is known.
fn weight(expense: &Expense, all: &Expense) -> u64 {
    if all.cost.is_some() { expense.cost.unwrap_or(0) } else { expense.usage.total() }
}

/// Draws the last four weeks as a row of bars.
fn weeks(context: &mut Context, days: &[Spent], today: NaiveDate) -> Result<(), CommandError> {
    let is_priced = days.iter().any(|day| day.expense.cost.is_some());
    let weight =
        |day: NaiveDate| {
            let found = days.iter().find(|it| it.name.as_ref() == Some(&day.to_string()));
            found.map_or(0, |Spent { expense, .. }| {
                if is_priced { expense.cost.unwrap_or(0) } else { expense.usage.total() }
            })
        };
    let days = (0..DAYS).rev().filter_map(|back| today.checked_sub_days(Days::new(back)));
    let weights: Vec<u64> = days.map(weight).collect();
    let most = weights.iter().copied().max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    let bars: String = weights.iter().map(|it| units::bar(*it, most)).collect();
    let most = if is_priced { dollars(cents(Some(most))) } else { rounded(most) };
    context.say(&format!("4 weeks  {bars}  at most {most} a day"))
}

/// Prints the table. Costs are rounded so that the rows add up to the total.
fn show(
    context: &mut Context,
    args: &Args,
    groups: &[Spent],
    all: &Expense,
) -> Result<(), CommandError> {
    let number = args.number.unwrap_or(SHOWN);
    let shown = if number == 0 { groups.len() } else { number.min(groups.len()) };
    let (shown, rest) = groups.split_at_checked(shown).unwrap_or((groups, &[]));
    let most = shown.iter().map(|it| weight(&it.expense, all)).max().unwrap_or(0);
    let name = match args.by {
        Group::Day => "DAY",
        Group::Agent => "AGENT",
        Group::Model => "MODEL",
        Group::Folder => "FOLDER",
        Group::Session => "SESSION",
    };
    let heads = [name, "", "COST", "INPUT", "CACHED", "OUTPUT", "TURNS", "SESSIONS", "TITLE"];
    let sides = [Left, Left, Right, Right, Right, Right, Right, Right, Left];
    let mut table = Table::new(sides).headed(heads).yielding(&[1, 0]).keeping(0);
    let ids: Vec<&str> = shown.iter().map(|it| it.name.as_deref().unwrap_or_default()).collect();
    let ids = common::short_ids(&ids);
    let mut sum = 0_u64;
    let mut row = |label, name: &str, title: &str, expense: &Expense| {
        let before = cents(Some(sum));
        sum = sum.saturating_add(expense.cost.unwrap_or(0));
        let bar = if context.env.terminal.stdout && groups.len() > 1 && label != Label::Dim {
            bar(weight(expense, all), most)
        } else {
            String::new()
        };
        let usage = &expense.usage;
        let sessions = if args.by == Group::Session { 0 } else { expense.sessions };
        let figure = |n: u64| if n == 0 { String::new() } else { rounded(n) };
        table.row([
            Cell::new(label, &safe::clip(name, LONGEST)),
            Cell::new(Label::Dim, &bar),
            Cell::new(Label::Plain, &cost_of(expense, cents(Some(sum)) - before)),
            Cell::new(Label::Plain, &rounded(usage.input.saturating_add(usage.cache_write))),
            Cell::new(Label::Plain, &figure(usage.cache_read)),
            Cell::new(Label::Plain, &rounded(usage.output)),
            Cell::new(Label::Plain, &units::grouped(expense.turns)),
            Cell::new(Label::Plain, &figure(sessions)),
            Cell::new(Label::Plain, title),
        ]);
    };
    for (Spent { name, title, expense, .. }, id) in shown.iter().zip(&ids) {
        let (label, name) = match (args.by, name.as_deref()) {
            (_, None) => (Label::Plain, "unknown".to_owned()),
            (Group::Session, Some(_)) => (Label::Id, id.clone()),
            (Group::Folder, Some(folder)) => {
                let folder = context.env.homely(Path::new(folder));
                (Label::Plain, common::end_of(&folder, LONGEST))
            }
            (_, Some(name)) => (Label::Plain, name.to_owned()),
        };
        let title = title.as_deref().map(|title| common::titled(Some(title))).unwrap_or_default();
        row(label, &name, &title, expense);
    }
    if !rest.is_empty() {
        let mut others = Expense::default();
        for Spent { expense, .. } in rest {
            others.usage.add(&expense.usage);
            others.turns += expense.turns;
            others.unpriced = others.unpriced.saturating_add(expense.unpriced);
            others.cost = match (others.cost, expense.cost) {
                (Some(one), Some(other)) => Some(one.saturating_add(other)),
                (one, other) => one.or(other),
            };
        }
        row(Label::Dim, &format!("{} more", units::grouped(rest.len() as u64)), "", &others);
    }
    context.show(&table)?;
    if !rest.is_empty() {
        let line = common::all_of("stats", &context.env.args, &['n', 's']);
        context.output.hint(line.to("show all"));
    }
    Ok(())
}

/// Rounds millionths of a dollar to cents.
fn cents(cost: Option<u64>) -> u64 {
    cost.unwrap_or(0).saturating_add(5_000) / 10_000
}

/// Formats a cost; a plus means that more has no price.
fn cost_of(expense: &Expense, cents: u64) -> String {
    match expense.cost {
        None => "no price".to_owned(),
        Some(_) if expense.unpriced > 0 => format!("{}+", dollars(cents)),
        Some(_) => dollars(cents),
    }
}

/// Draws a horizontal bar in eighths of a column.
fn bar(part: u64, whole: u64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = units::tenths(part, whole) * BAR * 8 / 1_000;
    let eighths = eighths.max(u64::from(part > 0));
    let [full, rest] = [eighths / 8, eighths % 8].map(|n| usize::try_from(n).unwrap_or(0));
    "█".repeat(full) + PARTS.get(rest).copied().unwrap_or_default()
}

/// Says where the prices are from and which models have none.
fn say_prices(
    context: &mut Context,
    rows: &[Row],
    prices: &Prices,
    all: &Expense,
) -> Result<(), CommandError> {
    let Prices { source, date, .. } = prices;
    context.say(&format!(
        "Estimated from list prices ({source}, {date}), without surcharges. Yours go under [prices] in your settings."
    ))?;
    if all.unpriced > 0 {
        let unpriced: Vec<Row> =
            rows.iter().filter(|row| has_no_price(row, prices)).cloned().collect();
        let models = verbs::grouped(&unpriced, By::Model, prices).into_iter();
        let models = models.map(|it| it.name.unwrap_or_else(|| "unknown models".to_owned()));
        let models = models.take(5).collect::<Vec<_>>().join(", ");
        let tokens = rounded(all.unpriced);
        context.say(&format!("No price for {tokens} tokens: {models}."))?;
        let settings = Line::new("context").flag("settings");
        context.output.hint(settings.to("see how to set a price, under [prices]"));
    }
    Ok(())
}

fn has_no_price(row: &Row, prices: &Prices) -> bool {
    row.model.as_ref().is_none_or(|model| prices.cost(model, &row.usage).is_none())
}

/// Writes the picture.
fn draw(
    context: &mut Context,
    args: &Args,
    file: &Path,
    rows: &[Row],
    prices: &Prices,
    today: NaiveDate,
) -> Result<(), CommandError> {
    if rows.is_empty() {
        let why = anyhow!("no answers with token counts; nothing was written");
        return Err(CommandError::user(why));
    }
    let picture = picture(&context.env, rows, prices, today);
    let path = context.env.current_dir.join(file);
    let leftovers = archive::leftovers(&context.env);
    export::write_file(&path, args.force, leftovers.as_ref(), &mut |out| {
        Ok(out.write_all(picture.as_bytes())?)
    })?;
    context.answer(&Page { path: file })?;
    let size = units::size(picture.len() as u64);
    context.output.note(&format!("Wrote {size} to {}", safe::path(file)));
    Ok(())
}

/// Returns the picture of rows.
fn picture(env: &Env, rows: &[Row], prices: &Prices, today: NaiveDate) -> String {
    let home = |folder: &str| common::end_of(&env.homely(Path::new(folder)), chart::NAME);
    let mut folders = verbs::grouped(rows, By::Folder, prices);
    for group in &mut folders {
        group.name = group.name.as_deref().map(home);
    }
    chart::draw(&Chart {
        all: verbs::sum(rows, prices),
        days: verbs::grouped(rows, By::Day, prices),
        groups: vec![
            ("Agents", verbs::grouped(rows, By::Agent, prices)),
            ("Models", verbs::grouped(rows, By::Model, prices)),
            ("Folders", folders),
        ],
        today,
        source: format!("list prices ({}, {})", prices.source, prices.date),
    })
}

/// Returns the picture of all sessions, and how many sessions could not be read. Without token counts there is no picture.
#[cfg(feature = "serve")]
pub(super) fn picture_of_all(
    context: &mut Context,
    archive: &verbs::Archive,
) -> Result<(Option<String>, u64), CommandError> {
    let prices = Prices::with(&context.settings()?.prices);
    let (zone, now) = (context.env.zone, context.env.ambient().now());
    let day = |time: Timestamp| zone.moment(time).date();
    let period = Period { since: None, until: None, day: &day };
    let filter = SessionFilter::default();
    let (rows, unread) = verbs::spending(archive, &filter, None, &period, &mut |_, _| ())?;
    let picture = (!rows.is_empty()).then(|| picture(&context.env, &rows, &prices, day(now)));
    Ok((picture, unread.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share_and_never_empty() {
        let check = |part, whole, expected: &str| assert_eq!(bar(part, whole), expected);
        check(0, 8, "");
        check(1, 1_000_000, "▏");
        check(8, 8, "████████");
        check(4, 8, "████");
        check(u64::MAX, u64::MAX, "████████");
        check(1, 0, "▏");
    }
}
