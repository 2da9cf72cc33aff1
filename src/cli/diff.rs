//! `diff`: shows how two branches differ after their fork point.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;

use anyhow::anyhow;
use undertext::model::EntryId;
use undertext::report::{self, Only, Renewed, Reworded, Same, Tally};
use undertext::verbs::{self, Diff, Difference, Line, Side};

use super::common::{counted, short};
use super::words::Noun;
use super::{About, CommandError, Context, Exit, archive, complete, shown};
use crate::render::conversation::{self, Detail, Manner};
use crate::render::diff;
use crate::render::table::{Cell, Label, Left, Right, Table};

/// Compare two branches, entries or sessions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext diff main.1                a reverted branch and the current one
  undertext diff @3 @7 --stat
  undertext diff --with 3f2a91c0       this session and its fork 3f2a91c0

Compares the paths to both places, from the point where they diverge. An entry
with the same text under another id, as in a fork, is not a change.

Exit codes: 0 if they are the same, 1 if they differ")]
pub(crate) struct Args {
    /// A turn, a branch or an entry [default: HEAD]
    #[arg(value_name = "ENTRY", add = complete::places())]
    one: Option<OsString>,

    /// What to compare it with [default: HEAD]
    #[arg(value_name = "OTHER")]
    other: Option<OsString>,

    #[command(flatten)]
    about: About,

    /// Find OTHER in this session
    #[arg(long, value_name = "SESSION", add = complete::sessions())]
    with: Option<OsString>,

    /// Print only totals
    #[arg(long)]
    stat: bool,

    /// Show long texts in full
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let nouns = [args.one.as_deref(), args.other.as_deref()];
    let least = usize::from(args.one.is_some());
    let words = context.words(Noun::Place, least..=2, &nouns, &args.about)?;
    let noun = |n: usize| words.nouns.get(n).copied().unwrap_or("HEAD");
    let opened = context.look(words.session)?;
    let session = &opened.at()?;
    let other = match &args.with {
        Some(with) => &session.archive.at(&context.session(session.archive, Some(with))?)?,
        None => session,
    };
    let one = verbs::find_place(session, noun(0)).map_err(|error| {
        let both = args.one.as_deref().zip(args.other.as_deref());
        let is_session = |word| archive::lookup(&context.env, session.archive, Some(word)).is_ok();
        match both.filter(|(one, other)| is_session(one) && is_session(other)) {
            None => CommandError::from(error),
            Some((one, other)) => {
                let line = report::Line::new("diff").option("session", one).option("with", other);
                let error = anyhow!("these are two sessions, not two places in one");
                CommandError::user(error).hinted(line.to("compare them"))
            }
        }
    })?;
    let two = verbs::find_place(other, noun(1))?;
    let found = verbs::diff((session, &one), (other, &two))?;
    let differs =
        found.rows.iter().any(|row| matches!(row, Difference::Only(..) | Difference::Changed(..)));
    let exit = if differs { Exit::No } else { Exit::Yes };
    if !context.answer(&found)? {
        context.output.page()?;
        let common = counted(found.common, "entry", "entries");
        context.say(&match found.fork {
            Some(_) => format!("{common} in common, up to {}", short(found.fork)),
            None => "Nothing in common".to_owned(),
        })?;
    }
    let told = context.tell_damaged(&found.damaged)?;
    let exit = if told == Exit::No { told } else { exit };
    if args.stat {
        count_differences(context, &found)?;
        return Ok(exit);
    }
    // An entry that only the other session has is shown from that session.
    let there = match &args.with {
        Some(_) => Some(context.short_name(session.archive, other)?.into()),
        None => context.output.naming().session.clone(),
    };
    for row in &found.rows {
        if context.json {
            tell(context, row)?;
        } else {
            show(context, row, args.full, there.as_deref())?;
        }
    }
    Ok(exit)
}

fn tell(context: &mut Context, row: &Difference) -> Result<(), CommandError> {
    match row {
        Difference::Same(entries) => {
            context.answer(&Same { entries: *entries })?;
        }
        Difference::Only(side, line) => {
            context.answer(&Only { side: *side, line: report::Entry::from(line) })?;
        }
        Difference::Renewed(pairs) => {
            for &(one, other) in pairs {
                context.answer(&Renewed { one, other })?;
            }
        }
        Difference::Changed(one, other) => {
            let diff = diff::unified(&text(one), &text(other), diff::AROUND);
            context.answer(&Reworded { one: one.id, other: other.id, diff })?;
        }
    }
    Ok(())
}

fn text(line: &Line) -> String {
    conversation::whole(&line.messages)
}

fn show(
    context: &mut Context,
    row: &Difference,
    full: bool,
    there: Option<&OsStr>,
) -> Result<(), CommandError> {
    let styles = context.output.styles();
    let mut naming = context.output.naming().clone();
    if matches!(row, Difference::Only(Side::Other, _)) {
        naming.session = there.map(OsStr::to_owned);
    }
    let spell = |line: &report::Line| naming.spell(line);
    let columns = context.output.width().map(|columns| columns.saturating_sub(1));
    let detail = if full { Detail::Full } else { Detail::Short };
    let manner = Manner { columns, detail, ..shown::manner(context, None, &spell) };
    match row {
        Difference::Same(n) => {
            let same = format!("= {} on both sides", counted(*n, "entry", "entries"));
            writeln!(context.output, "{}", styles.paint(Label::Dim, &same))?;
        }
        Difference::Only(side, line) => diff::entry(&mut context.output, line, *side, manner)?,
        Difference::Renewed(pairs) => {
            let stretch = |side: fn(&(EntryId, EntryId)) -> EntryId| {
                let ends = [pairs.first(), pairs.last().filter(|_| pairs.len() > 1)];
                let ids = ends.into_iter().flatten().map(|pair| format!("{:.8}", side(pair)));
                ids.collect::<Vec<_>>().join(" to ")
            };
            let (one, other) = (stretch(|pair| pair.0), stretch(|pair| pair.1));
            let count = counted(pairs.len() as u64, "entry has", "entries have");
            let renewed = format!("= {count} the same text: {one}, on the other side {other}");
            writeln!(context.output, "{}", styles.paint(Label::Dim, &renewed))?;
        }
        Difference::Changed(one, other) => {
            diff::changed(&mut context.output, one, other, manner)?;
        }
    }
    Ok(())
}

fn count_differences(context: &mut Context, found: &Diff) -> Result<(), CommandError> {
    let mut tally = Tally::default();
    for row in &found.rows {
        match row {
            Difference::Same(n) => tally.same += n,
            Difference::Renewed(pairs) => tally.renewed += pairs.len() as u64,
            Difference::Changed(..) => tally.changed += 1,
            Difference::Only(side, line) => {
                let Tally { one, other, .. } = &mut tally;
                let counts = if *side == Side::One { one } else { other };
                counts.entries += 1;
                counts.characters += text(line).chars().count() as u64;
            }
        }
    }
    context.answer(&tally)?;
    let Tally { same, renewed, changed, one, other } = tally;
    let mut table = Table::new([Left, Right, Right]);
    let mut row = |name: &str, entries: u64, characters: Option<u64>| {
        let characters = characters.map(|n| counted(n, "character", "characters"));
        table.row([
            Cell::new(Label::Plain, name),
            Cell::new(Label::Plain, &counted(entries, "entry", "entries")),
            Cell::new(Label::Plain, &characters.unwrap_or_default()),
        ]);
    };
    row("on the first side only", one.entries, Some(one.characters));
    row("on the other side only", other.entries, Some(other.characters));
    row("changed", changed, None);
    row("same text, different entries", renewed, None);
    row("the same", same, None);
    context.show(&table)
}
