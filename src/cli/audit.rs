//! `audit`: what was cut, by whom, and how much of it is hidden.

use std::io::Write as _;

use serde_json::json;
use undertext::ops::{self, Replaced};
use undertext::wire::{Earlier, How};

use super::Context;
use super::common::{DIGITS, counted};
use super::env;
use super::error::{CommandError, Exit};
use super::hint::Line;
use super::words::About;
use crate::render::json;
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};

/// Show what was cut in a session, when, by whom, and how much of it is hidden
///
/// Entries that undertext replaced are kept whole, and `show --hidden` prints what they hide. What an
/// agent had cut, compacted or put into files before the session was taken in is listed apart, as far as its records tell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext audit
  undertext audit --json session.jsonl

JSON: one object an entry that was replaced, in order
  {\"type\":\"replaced\", \"operation\":N, \"at\":TIME, \"command\":NAME, \"undone\":BOOL, \"limit\":CHARACTERS,
   \"window\":TOKENS or null, \"entry\":ID, \"origin\":ID of what it replaced, \"tool\":NAME or null,
   \"characters\":[before, after], \"tokens\":[about, before and after], \"hidden\":CHARACTERS,
   \"cuts\":[{\"call\":ID, \"part\":N of the text in the answer, from 0, \"characters\":N, \"kept\":N}]}
one of what was left out before
  {\"type\":\"earlier\", \"entry\":ID, \"at\":TIME or null, \"how\":\"file\", \"cut\", \"compaction\" or \"cleared\",
   \"call\":ID or null, \"size\":as the record has it or null, \"tokens\":[before or null, after or null],
   \"file\":PATH that holds it or null}
and the sum of what stands: what is neither undone nor replaced again
  {\"type\":\"total\", \"replaced\":N, \"characters\":[before, after], \"tokens\":[before, after], \"hidden\":CHARACTERS,
   \"earlier\":N}")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let (archive, session) = context.look(args.about.wanted()?)?;
    let audit = ops::audit(&archive, &session)?;
    let mut total = Total::default();
    for one in audit.standing() {
        total.add(one);
    }
    if context.json {
        for one in &audit.replaced {
            tell(context, one)?;
        }
        for (entry, at, one) in &audit.earlier {
            let fields = json!({
                "entry": entry.to_string(),
                "at": at.map(|at| at.to_string()),
                "how": how(one.how),
                "call": one.call,
                "size": one.size,
                "tokens": one.tokens,
                "file": one.file,
            });
            json::line(&mut context.output, "earlier", &fields)?;
        }
        let fields = json!({
            "replaced": total.entries,
            "characters": total.chars,
            "tokens": total.tokens,
            "hidden": total.hidden,
            "earlier": audit.earlier.len(),
        });
        json::line(&mut context.output, "total", &fields)?;
        return Ok(Exit::Yes);
    }
    if audit.replaced.is_empty() && audit.earlier.is_empty() {
        context.say("Nothing was cut in this session")?;
        return Ok(Exit::Yes);
    }
    context.output.page()?;
    show(context, &audit.replaced)?;
    if !audit.replaced.is_empty() {
        let entries = counted(total.entries, "entry", "entries");
        let ((before, after), share) = (total.chars, share(total.hidden, total.chars.0));
        context.say(&format!(
            "{entries} cut from {before} to {after} characters, about {} to {} tokens; {share} is hidden, and kept",
            total.tokens.0, total.tokens.1
        ))?;
        if let Some(one) = audit.standing().last() {
            let show = Line::about("show").with(format!("{:.DIGITS$}", one.entry)).with("--hidden");
            context.output.hint(show.to("to read what the last one hides"));
        }
    }
    if !audit.earlier.is_empty() {
        if !audit.replaced.is_empty() {
            writeln!(context.output)?;
        }
        context.say("Cut by the agent before import:")?;
        let [left, right] = [Align::Left, Align::Right];
        let mut table = Table::new([left, left, left, right, left]);
        for (entry, at, one) in &audit.earlier {
            table.row([
                Cell::new(Label::Id, &format!("{entry:.DIGITS$}")),
                Cell::new(Label::Time, &at.map(env::local).unwrap_or_default()),
                Cell::new(Label::Plain, how(one.how)),
                Cell::new(Label::Plain, &size(one)),
                Cell::new(Label::Plain, one.file.as_deref().unwrap_or_default()),
            ]);
        }
        context.show(&table)?;
    }
    Ok(Exit::Yes)
}

#[derive(Default)]
struct Total {
    entries: u64,
    chars: (u64, u64),
    tokens: (u64, u64),
    hidden: u64,
}

impl Total {
    fn add(&mut self, one: &Replaced) {
        let (before, after) = one.chars();
        self.entries += 1;
        self.chars = (self.chars.0 + before, self.chars.1 + after);
        self.tokens = (self.tokens.0 + one.tokens.0, self.tokens.1 + one.tokens.1);
        self.hidden += one.hidden();
    }
}

fn tell(context: &mut Context, one: &Replaced) -> Result<(), CommandError> {
    let cut = |cut: &undertext::model::CutOff| json!({ "call": cut.call, "part": cut.text, "characters": cut.whole, "kept": cut.kept });
    let fields = json!({
        "operation": one.operation,
        "at": one.at.to_string(),
        "command": one.command,
        "undone": one.undone,
        "limit": one.limit,
        "window": one.window,
        "entry": one.entry.to_string(),
        "origin": one.origin.to_string(),
        "tool": one.tool,
        "characters": one.chars(),
        "tokens": one.tokens,
        "hidden": one.hidden(),
        "cuts": one.cuts.iter().map(cut).collect::<Vec<_>>(),
    });
    Ok(json::line(&mut context.output, "replaced", &fields)?)
}

fn show(context: &mut Context, replaced: &[Replaced]) -> Result<(), CommandError> {
    let [left, right] = [Align::Left, Align::Right];
    let mut table = Table::new([right, left, left, left, left, right, left, right, left]);
    for one in replaced {
        let (before, after) = one.chars();
        let places: Vec<String> = one.cuts.iter().map(|cut| cut.kept.to_string()).collect();
        let undone = if one.undone { ", undone" } else { "" };
        let limit = one.limit.map_or_else(String::new, |limit| format!(", limit {limit}"));
        table.row([
            Cell::new(Label::Id, &one.operation.to_string()),
            Cell::new(Label::Time, &env::local(one.at)),
            Cell::new(Label::Plain, one.command),
            Cell::new(Label::Id, &format!("{:.DIGITS$}", one.entry)),
            Cell::new(Label::Tool, one.tool.as_deref().unwrap_or("?")),
            Cell::new(Label::Plain, &before.to_string()),
            Cell::new(Label::Dim, &format!("to {after}")),
            Cell::new(Label::Plain, &share(one.hidden(), before)),
            Cell::new(Label::Dim, &format!("hidden, cut at {}{limit}{undone}", places.join(", "))),
        ]);
    }
    context.show(&table)
}

/// Returns a part of a whole in hundredths.
fn share(part: u64, whole: u64) -> String {
    format!("{}%", (u128::from(part) * 100).checked_div(u128::from(whole)).unwrap_or(0))
}

fn how(how: How) -> &'static str {
    match how {
        How::Filed => "file",
        How::Cut => "cut",
        How::Compacted => "compaction",
        How::Cleared => "cleared",
    }
}

/// Returns how much was left out, as far as it is known.
fn size(one: &Earlier) -> String {
    match (&one.size, one.tokens) {
        (Some(size), _) => size.clone(),
        (None, (Some(before), Some(after))) => format!("{before} to {after} tokens"),
        (None, (Some(before), None)) => format!("{before} tokens"),
        _ => String::new(),
    }
}
