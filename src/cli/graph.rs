//! `graph`: shows a session's branches and where they fork.

use std::io::Write as _;

use undertext::report::{Acts, EmptyBranch, Line};
use undertext::verbs::{self, Detail, Drawing, Outlined, Pattern, Prices, Spot};

use super::common::{self, counted};
use super::{About, CommandError, Context, Exit, Opened, landing, models, overview};
use crate::render::graph::{Look, Rows};
use crate::render::style::Label;
use crate::render::{safe, units};

/// Maximum width of a graph's heading.
const WIDEST: usize = 100;

/// Show turns and branches as a graph
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext graph
  undertext graph 7c2a
  undertext graph session.jsonl        a session file; nothing is imported
  undertext graph --grep linker        mark the turns that have this word

The newest turn is on top, and the first column is the current path. ◉ is where
the session is, ◆ a compaction, and ~ a new start: the model isn't sent what
came before. 2✎ counts edited files, 3$ commands, 1✗ failed calls.

Exit codes: 1 if --grep finds nothing, or an entry is damaged")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Show every entry, even if no path leads to it
    #[arg(long)]
    all: bool,

    /// Include what was undone
    #[arg(long)]
    undone: bool,

    /// Also show how long each turn took and what it cost
    #[arg(short, long)]
    verbose: bool,

    /// Mark where these words were said
    #[arg(long, value_name = "WORDS", value_parser = common::pattern)]
    grep: Option<Pattern>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let opened = context.look(args.about.wanted()?)?;
    let session = &opened.at()?;
    let detail =
        Detail { all: args.all, undone: args.undone, acts: !args.all, pattern: args.grep.as_ref() };
    let mut graph = verbs::drawing(session, detail)?;
    if graph.is_compared()? {
        // What cannot be read hides only this.
        graph.see_losses(&verbs::audit_boundaries(session).unwrap_or_default());
    }
    let mut used = None;
    if args.verbose {
        let effort = verbs::effort(session, &Prices::with(&context.settings()?.prices))?;
        graph.see_effort(&effort);
        used = units::used(&effort.all);
    }
    for branch in &graph.empty {
        let is_current = *branch == graph.current;
        context.answer(&EmptyBranch { branch, entry: (), is_current })?;
    }
    let mut found = 0;
    if context.json {
        graph.each(|node| {
            found += node.found;
            context.answer(&node).map(|_| ())
        })?;
        context.answer_all(&graph.kin)?;
        context.answer_all(&verbs::waiting(session)?)?;
        let exit = context.tell_damaged(&graph.damaged()?)?;
        return Ok(if args.grep.is_some() && found == 0 { Exit::No } else { exit });
    }
    context.output.page()?;
    say_head(context, &opened, graph.edited)?;
    if let Some(used) = used {
        context.say(&used)?;
    }
    let look = Look {
        styles: context.output.styles(),
        columns: context.output.width(),
        agent: session.format.name(),
        zone: context.env.zone,
        all: args.all,
    };
    let mut rows = Rows::of(&graph, look)?;
    rows.empty(&mut context.output)?;
    graph.each(|node| {
        found += node.found;
        Ok::<_, CommandError>(rows.row(&mut context.output, &node)?)
    })?;
    if let Some(kin) = &graph.kin {
        context.say(&common::kin_words(kin))?;
    }
    if let Some(at @ (Spot::Before(_) | Spot::At(_))) = graph.at {
        context.say(&format!("{} is {at}", landing::name_of(context, &opened)?))?;
    }
    for open in verbs::open_in(session) {
        context.output.note(&format!("Open in {open}"));
    }
    if let Some(waiting) = verbs::waiting(session)? {
        let resume = context.output.spell(&Line::about("resume"));
        context.output.note(&format!("Your next `{resume}` will offer to {waiting}"));
    }
    if context.env.terminal.stdout {
        let has = |of: fn(&Acts) -> u64| graph.acts().iter().any(|acts| of(acts) > 0);
        overview::explain_signs(
            context,
            &[
                (has(|acts| acts.edits), "✎ files edited"),
                (has(|acts| acts.commands), "$ commands"),
                (has(|acts| acts.failed), "✗ failed"),
                (graph.has_boundary()?, "◆ compaction"),
            ],
        )?;
        say_next(context, &opened, &graph)?;
    }
    let exit = context.tell_damaged(&graph.damaged()?)?;
    if args.grep.is_some() && found == 0 {
        context.output.note("Nothing was found");
        return Ok(Exit::No);
    }
    Ok(exit)
}

/// Suggests next commands: to read a turn, preferably a reverted one, and others that fit the session.
fn say_next(
    context: &mut Context,
    opened: &Opened,
    graph: &Drawing<'_>,
) -> Result<(), CommandError> {
    let (mut newest, mut reverted) = (None, None);
    for outlined in graph.outline() {
        let Outlined { checkpoint, is_off, .. } = outlined?;
        let of = if is_off { &mut reverted } else { &mut newest };
        *of = checkpoint.max(*of);
    }
    let turn = |n, verb: &str| Line::about(verb).with(format!("@{n}"));
    let mut next = Vec::new();
    next.extend(reverted.or(newest).map(|n| ("Read one", turn(n, "show"))));
    // To change the session of a file would import it.
    let is_stored = opened.archive.root().is_some();
    next.extend(newest.filter(|_| is_stored).map(|n| ("Go back", turn(n, "revert"))));
    if graph.has_boundary()? {
        next.push(("Lost", Line::about("audit").flag("boundary")));
    }
    if verbs::undoable(&opened.at()?).is_ok() {
        next.push(("Undo", Line::about("undo")));
    }
    let next: Vec<String> = next
        .iter()
        .map(|(words, line)| format!("{words}: {}", context.output.spell(line)))
        .collect();
    let columns = context.output.width().unwrap_or(WIDEST);
    let line = next.join("     ");
    let lines = if safe::width(&line) <= columns { vec![line] } else { next };
    let fit = lines.iter().filter(|line| safe::width(line) <= columns);
    fit.for_each(|line| context.output.note(line));
    Ok(())
}

/// Says which session a view is of: its name and title, its model, when it was used, and how many files were edited.
fn say_head(
    context: &mut Context,
    opened: &Opened,
    edited: Option<u64>,
) -> Result<(), CommandError> {
    let card = opened.archive.store().card(opened.session.key)?;
    let mut facts = facts(context, opened, edited)?;
    let styles = context.output.styles();
    let columns = context.output.width().unwrap_or(WIDEST).min(WIDEST);
    let name = landing::name_of(context, opened)?;
    let room = columns.saturating_sub(safe::width(&name) + 2);
    let title = common::titled(card.title.as_deref());
    facts = safe::clip(&facts, room).into_owned();
    let title = safe::clip(&safe::line(&title), room).into_owned();
    let gap = room.saturating_sub(safe::width(&title) + safe::width(&facts));
    let (name, wide) = (styles.paint(Label::Id, &name), safe::width(&name) + 2);
    let told = styles.paint(Label::Heading, &title);
    let facts = styles.paint(Label::Dim, &facts);
    let lead = if gap >= 2 { " ".repeat(gap) } else { format!("\n{}", " ".repeat(wide)) };
    Ok(writeln!(context.output, "{name}  {told}{lead}{facts}")?)
}

/// Returns a session's model, when it was used, and how many files were edited, in a line.
pub(super) fn facts(
    context: &mut Context,
    opened: &Opened,
    edited: Option<u64>,
) -> Result<String, CommandError> {
    let session = &opened.at()?;
    let card = session.archive.store().card(session.key)?;
    // Unreadable settings hide only the model.
    let settings = context.read_settings().ok().map(|read| models::usual(&read.settings));
    let model = settings.and_then(|asked| verbs::model(session, &asked));
    let now = context.env.ambient().now();
    let times = card.started.zip(card.active);
    let times = times.map(|(from, to)| context.env.zone.span(now, from, to));
    let edited = edited.filter(|n| *n > 0).map(|n| counted(n, "file", "files"));
    let facts: Vec<String> = [model, times, edited].into_iter().flatten().collect();
    Ok(safe::line(&facts.join(" · ")).into_owned())
}
