//! `audit`: lists what was cut, by whom, and how much of it is hidden; with `--secrets`, lists what looks like a secret.

use std::io::Write as _;

use undertext::context::facts::{Kind, Loss};
use undertext::model::{CheckpointNumber, EntryNumber, Landmark, Resized};
use undertext::report::{Audit, Boundary, Changed, Line, Omitted, Uncovered};
use undertext::verbs::{self, Replaced};
use undertext::wire::Earlier;

use super::common::{self, counted};
use super::{About, CommandError, Context, Exit, Opened, complete, secrets, show};
use crate::render::safe;
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units::{DIGITS, compacted, grouped};

/// Maximum number of lost names listed for each kind.
const NAMED: usize = 8;

/// Show what truncation and compaction hid, or find secrets
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext audit
  undertext audit --show
  undertext audit --boundary
  undertext audit --secrets               in every session
  undertext audit --secrets 7c2a          in one session

It lists what undertext and the agent cut. Secrets are searched for in every
session, on all branches and in hidden text, and printed masked. [secrets] in
your settings lists what to ignore.

Exit codes: 1 if --show finds nothing, or if --secrets finds something or
  cannot read a session")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    /// List compactions and what their summaries lost
    #[arg(long)]
    boundary: bool,

    /// Print all hidden text, in order
    #[arg(long, conflicts_with_all = ["boundary", "all", "secrets", "rule"])]
    show: bool,

    /// List what was cut in all sessions
    #[arg(long, conflicts_with_all = ["session", "named", "boundary"])]
    all: bool,

    /// List what looks like a secret
    #[arg(long, conflicts_with_all = ["boundary", "all"])]
    secrets: bool,

    /// With --secrets, use only this rule; repeatable
    #[arg(long, value_name = "NAME", requires = "secrets", conflicts_with_all = ["boundary", "all"], value_parser = secrets::rule, add = complete::rules())]
    rule: Vec<String>,

    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    if args.all {
        return all(context);
    }
    if args.secrets {
        return secrets::run(context, args.about.wanted()?, &args.rule);
    }
    let opened = context.look(args.about.wanted()?)?;
    let session = &opened.at()?;
    if args.boundary {
        let boundaries = verbs::audit_boundaries(session)?;
        return show_boundaries(context, &boundaries);
    }
    let audit = verbs::audit(session)?;
    if args.show {
        let exit = show_hidden(context, &opened, &audit)?;
        let whole = context.tell_damaged(&audit.damaged)?;
        return Ok(if exit == Exit::Yes { whole } else { exit });
    }
    if context.answer_all(&audit.replaced)? {
        context.answer_all(&audit.earlier)?;
        context.answer(&audit.total())?;
        return context.tell_damaged(&audit.damaged);
    }
    if audit.replaced.is_empty() && audit.earlier.is_empty() {
        context.say("No results were cut in this session")?;
    } else {
        context.output.page()?;
        tell(context, &audit)?;
    }
    hint_at_boundaries(context, &opened)?;
    context.tell_damaged(&audit.damaged)
}

/// Audits every session in which something was cut.
fn all(context: &mut Context) -> Result<Exit, CommandError> {
    let archive = context.open_reader()?;
    context.output.page()?;
    let (mut n, mut damaged) = (0, Vec::new());
    for session in archive.every()? {
        let session = archive.at(&session)?;
        let mut audit = verbs::audit(&session)?;
        damaged.append(&mut audit.damaged);
        if audit.replaced.is_empty() && audit.earlier.is_empty() {
            continue;
        }
        if context.json {
            let title = archive.store().card(session.key)?.title;
            for replaced in &audit.replaced {
                context.answer(&Changed::of(&session, title.clone(), replaced))?;
            }
            for earlier in &audit.earlier {
                context.answer(&Changed::of(&session, title.clone(), earlier))?;
            }
            context.answer(&Changed::of(&session, title, &audit.total()))?;
            continue;
        }
        if n > 0 {
            writeln!(context.output)?;
        }
        n += 1;
        context.output.naming().session = Some(context.short_name(&archive, &session)?.into());
        context.say_session(&archive, &session)?;
        tell(context, &audit)?;
    }
    if n == 0 {
        context.say("No results were cut in any session")?;
    }
    context.tell_damaged(&damaged)
}

/// Prints what was cut in a session.
fn tell(context: &mut Context, audit: &Audit) -> Result<(), CommandError> {
    if !audit.replaced.is_empty() {
        let total = audit.total();
        let entries = counted(total.replaced, "entry", "entries");
        let Resized { before, after } = total.characters;
        let share = share(total.hidden, before);
        let said = format!(
            "{entries} cut from {} to {} characters, about {} to {} tokens; {share} is hidden but kept",
            grouped(before),
            grouped(after),
            grouped(total.tokens.before),
            grouped(total.tokens.after),
        );
        let is_any = total.replaced > 0;
        context.say(if is_any { &said } else { "All cuts were undone: nothing is cut now" })?;
        show(context, &audit.replaced)?;
        context.output.hints(audit.hints());
    }
    if !audit.earlier.is_empty() {
        if !audit.replaced.is_empty() {
            writeln!(context.output)?;
        }
        context.say("Removed by the agent itself:")?;
        let mut table = Table::new([Right, Left, Left, Right, Left, Left])
            .headed(["turn", "entry", "how", "size", "when", "file"])
            .yielding(&[4]);
        let (zone, is_narrow) = (context.env.zone, is_narrow(context));
        for Omitted { entry, turn, at, earlier } in &audit.earlier {
            let file = earlier.file.as_deref().unwrap_or_default();
            table.row([
                Cell::new(Label::Checkpoint, &numbered(*turn)),
                Cell::new(Label::Id, &format!("{entry:.DIGITS$}")),
                Cell::new(Label::Plain, earlier.how.as_str()),
                Cell::new(Label::Plain, &size(earlier)),
                Cell::new(Label::Time, &at.map(|at| zone.minute(at)).unwrap_or_default()),
                Cell::new(Label::Plain, if is_narrow { "" } else { file }),
            ]);
            if is_narrow && !file.is_empty() {
                table.note(Label::Plain, file);
            }
        }
        context.show(&table)?;
    }
    Ok(())
}

/// Formats a turn as you type it.
fn numbered(turn: Option<CheckpointNumber>) -> String {
    turn.map(|turn| format!("@{turn}")).unwrap_or_default()
}

/// Writes the heading of a text: its non-empty parts.
fn write_head(context: &mut Context, parts: &[&str]) -> Result<(), CommandError> {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    let head = safe::line(&parts.join("  ")).into_owned();
    let head = safe::clip(&head, context.output.width().unwrap_or(usize::MAX));
    let head = context.output.styles().paint(Label::Heading, &head);
    Ok(writeln!(context.output, "{head}")?)
}

/// Hints at what was summarised, if the session was compacted.
fn hint_at_boundaries(context: &mut Context, opened: &Opened) -> Result<(), CommandError> {
    let Opened { archive, session } = opened;
    if archive.store().landmark(session.key, Landmark::Boundary, EntryNumber::ALL)?.is_some() {
        let line = Line::about("audit").flag("boundary");
        context.output.hint(line.to("see what each compaction summarised"));
    }
    Ok(())
}

/// Prints all hidden texts in the order of the conversation.
fn show_hidden(
    context: &mut Context,
    opened: &Opened,
    audit: &Audit,
) -> Result<Exit, CommandError> {
    let session = &opened.at()?;
    let mut hiding: Vec<&Replaced> = audit.standing().collect();
    hiding.sort_by_key(|one| one.place);
    if hiding.is_empty() {
        context.output.note("Nothing in this session is hidden");
        hint_at_boundaries(context, opened)?;
        return Ok(Exit::No);
    }
    context.output.page()?;
    for (nth, one) in hiding.into_iter().enumerate() {
        let target = verbs::find_place(session, &one.entry.to_string())?;
        let hidden = verbs::hidden(session, &target)?;
        if context.json {
            for part in &hidden.texts {
                context.answer(&Uncovered::new(&hidden, part, part.hidden()))?;
            }
            continue;
        }
        if nth > 0 {
            writeln!(context.output)?;
        }
        let id = format!("{:.DIGITS$}", one.whole);
        let size = counted(one.hidden, "character", "characters");
        let tool = one.tool.as_deref().unwrap_or("?");
        let subject = one.subject.as_deref().unwrap_or_default();
        write_head(context, &[&numbered(one.turn), &id, tool, &size, subject])?;
        for part in &hidden.texts {
            show::write_text(context, &safe::text(part.hidden()))?;
        }
    }
    Ok(Exit::Yes)
}

fn show_boundaries(context: &mut Context, boundaries: &[Boundary]) -> Result<Exit, CommandError> {
    if context.answer_all(boundaries)? {
        return Ok(Exit::Yes);
    }
    if boundaries.is_empty() {
        context.say("This session has no compactions")?;
        return Ok(Exit::Yes);
    }
    context.output.page()?;
    for (nth, one) in boundaries.iter().enumerate() {
        if nth > 0 {
            writeln!(context.output)?;
        }
        let place = match (one.operation, one.entry) {
            (Some(n), _) => format!("operation {n}"),
            (None, Some(entry)) => format!("{entry:.DIGITS$}"),
            (None, None) => "?".to_owned(),
        };
        let at = one.at.map(|at| context.env.zone.minute(at)).unwrap_or_default();
        let tokens = compacted(one.tokens).unwrap_or_default();
        write_head(context, &[&numbered(one.turn), &place, &at, &tokens])?;
        let by = match one.operation {
            Some(_) => one.model.as_deref().unwrap_or("?"),
            None => "the agent",
        };
        let trigger = one.trigger.as_ref().map(|trigger| format!(" ({trigger})"));
        let fallback = if one.fallback { ", a fallback" } else { "" };
        let undone = if one.undone { ", undone" } else { "" };
        context.say(&format!(
            "  {} summarised by {by}{}{fallback}, {} kept{undone}",
            counted(one.summarised, "message", "messages"),
            trigger.unwrap_or_default(),
            one.kept,
        ))?;
        if one.is_redacted {
            context.say("  The list of what the summary lost was redacted")?;
        } else if one.losses.is_empty() {
            context.say("  The summary cannot be checked: it is empty or encrypted, or the messages named nothing")?;
        }
        for loss in &one.losses {
            say_loss(context, loss)?;
        }
    }
    if let Some(turn) = boundaries.iter().rev().find_map(|one| one.turn) {
        let all = Line::about("log").with(format!("@0..@{turn}"));
        context.output.hint(all.to("read the turns before the newest compaction"));
    }
    Ok(Exit::Yes)
}

/// Prints what a summary lost of one kind: the most frequent names, with a line for each request.
fn say_loss(context: &mut Context, loss: &Loss) -> Result<(), CommandError> {
    let (kind, lost) = (loss.kind.as_str(), loss.of.saturating_sub(loss.kept));
    if lost == 0 {
        return context.say(&format!("  {kind}: all {} are in the summary", loss.of));
    }
    let names = loss.lost.iter().map(|name| common::first_line(name).to_owned());
    let mut names: Vec<String> = names.take(NAMED).collect();
    let more = lost.saturating_sub(names.len());
    names.extend((more > 0).then(|| format!("{more} more")));
    let head = format!("  {kind}: {lost} of {} lost", loss.of);
    if loss.kind == Kind::Requests {
        context.say(&head)?;
        return names.iter().try_for_each(|name| context.say(&format!("    {name}")));
    }
    context.say(&format!("{head}: {}", names.join(", ")))
}

fn show(context: &mut Context, replaced: &[Replaced]) -> Result<(), CommandError> {
    let sides = [Right, Left, Left, Right, Right, Right, Right, Left, Left, Left, Left];
    let heads =
        ["turn", "entry", "tool", "characters", "shown", "hidden", "op", "by", "", "when", "what"];
    let mut table = Table::new(sides).headed(heads).yielding(&[7, 9]);
    let is_narrow = is_narrow(context);
    for one in replaced {
        let Resized { before, after } = one.characters;
        let tool = one.tool.as_deref().unwrap_or("?");
        let subject = one.subject.as_deref().unwrap_or_default();
        let (beside, last) = if is_narrow { ("", "") } else { (tool, subject) };
        table.row([
            Cell::new(Label::Checkpoint, &numbered(one.turn)),
            Cell::new(Label::Id, &format!("{:.DIGITS$}", one.whole)),
            Cell::new(Label::Tool, beside),
            Cell::new(Label::Plain, &grouped(before)),
            Cell::new(Label::Plain, &grouped(after)),
            Cell::new(Label::Plain, &share(one.hidden, before)),
            Cell::new(Label::Id, &one.operation.to_string()),
            Cell::new(Label::Dim, one.command),
            Cell::new(Label::Warning, if one.undone { "undone" } else { "" }),
            Cell::new(Label::Time, &context.env.zone.minute(one.at)),
            Cell::new(Label::Plain, last),
        ]);
        if is_narrow {
            table.note(Label::Tool, format!("{tool}  {subject}").trim_end());
        }
    }
    context.show(&table)
}

/// From this width on, a row has room for what its tool read or ran and for a file.
const WIDE: usize = 110;

/// Returns true if a table puts the last column of each row on its own line.
fn is_narrow(context: &Context) -> bool {
    context.output.width().is_some_and(|width| width < WIDE)
}

/// Returns `part` as a percentage of `whole`.
fn share(part: u64, whole: u64) -> String {
    format!("{}%", (u128::from(part) * 100).checked_div(u128::from(whole)).unwrap_or(0))
}

/// Describes how much was hidden, as far as it is known.
fn size(one: &Earlier) -> String {
    match (&one.size, one.tokens) {
        (Some(size), _) => size.clone(),
        (None, (Some(before), Some(after))) => {
            format!("{} to {} tokens", grouped(before), grouped(after))
        }
        (None, (Some(before), None)) => counted(before, "token", "tokens"),
        _ => String::new(),
    }
}
