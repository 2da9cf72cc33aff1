//! `status`: shows where a session is.

use std::io::Write as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use undertext::context::measure::{Measured, Word};
use undertext::context::plan::Nearness;
use undertext::context::window::Source;
use undertext::report::{
    Conversation, Expense, Fullness, Layered, Line, LiveState, Report as _, Standing, Status,
    Surroundings, UsedFile,
};
use undertext::settings::Settings;
use undertext::verbs::{self, At, Holder, Prices, Session};

use super::common::{self, counted};
use super::{About, CommandError, Context, Exit, archive, models};
use crate::render::safe;
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units::{self, grouped};
use crate::render::wrap::wrap;

/// Tokens are only counted in sessions of at most this many entries; `stats` has no limit.
const COUNTED: u64 = 20_000;
/// The width of the row names.
const NAMES: usize = "checkpoint  ".len();

/// Show where a session is and how full its window is
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext status
  undertext status 7c2a
  undertext status --files
  undertext status --until-idle 120

It shows the branch and the turn, how full the window is, whether an agent has
the session open, and whether a change waits for resume. --until-idle waits for
a compaction in another process, with its repeated request.

Exit codes: 1 with --until-idle if the time is over")]
pub(crate) struct Args {
    #[command(flatten)]
    about: About,

    /// Show what is recorded of system, tools and workspace
    #[arg(long)]
    layers: bool,

    /// List the files it mentions, edited ones first
    #[arg(long, conflicts_with = "layers")]
    files: bool,

    /// Wait until no process compacts it, at most this long
    #[arg(long, value_name = "SECONDS")]
    until_idle: Option<u64>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let opened = context.find(args.about.wanted()?)?;
    let session = &opened.at()?;
    let exit = wait_until_idle(context, session, args.until_idle);
    if exit == Exit::No && !context.json {
        return Ok(exit);
    }
    if args.layers {
        layers(context, session, &verbs::layers(session)?)?;
        return Ok(Exit::Yes);
    }
    // Records that only the live file has are shown, but are not operations yet.
    let operations = session.state.operations();
    let live_state = context.follow(&opened);
    let session = &opened.at()?;
    if args.files {
        return used(context, &verbs::files_used(session)?);
    }
    let status = Status { operations, live_state, ..verbs::status(session)? };
    let settings = context.settings()?;
    let full = full(session, &settings);
    if let Some((_, full)) = &full {
        models::warn_tight(context, &|_| (), session, &full.window);
    }
    let glance = verbs::known_glance(session, &models::usual(&settings));
    let reverted = glance.map(|glance| glance.reverted);
    let spent = spent(session, &settings);
    let standing = Standing::new(session, &status, full.as_ref(), reverted, spent.as_ref());
    let damaged = full.as_ref().map(|(_, full)| full.damaged.clone()).unwrap_or_default();
    if context.answer(&standing)? {
        return Ok(exit.max(context.tell_damaged(&damaged)?));
    }
    let mut table = Table::new([Left, Left]);
    let room = context.output.width().map(|width| width.saturating_sub(NAMES));
    let mut row = |name: &str, label, text: &str| {
        for (n, text) in wrap(&safe::line(text), room).iter().enumerate() {
            table.row([
                Cell::new(Label::Dim, if n == 0 { name } else { "" }),
                Cell::new(label, text),
            ]);
        }
    };
    let card = &status.card;
    row("session", Label::Id, &format!("{} ({})", session.name.id, session.name.format));
    let title = card.title.as_deref().map(|title| common::titled(Some(title)));
    row("title", Label::Plain, &title.unwrap_or_else(|| "none yet".into()));
    if let Some(folder) = &card.folder {
        row("folder", Label::Plain, folder);
    }
    if let Some(kin) = &status.kin {
        row("related", Label::Plain, &common::kin_words(kin));
    }
    if let Some(found) = &status.elsewhere {
        let words = archive::describe_elsewhere(context, &opened, found);
        row("earlier", Label::Warning, &format!("{words}; that history is not shown"));
    }
    let others = match status.branches {
        0 | 1 => String::new(),
        n => format!(", one of {n}"),
    };
    row("branch", Label::Branch, &format!("{}{others}", status.branch));
    if let Some(n @ 1..) = reverted {
        row("reverted", Label::Warning, &counted(n, "branch", "branches"));
    }
    let head = status.head.map(|head| format!("{head:.8}"));
    let head = head.as_deref().unwrap_or("before the first entry").to_owned();
    let spot = status.spot.map(|spot| format!(", {spot}")).unwrap_or_default();
    row("head", Label::Id, &format!("{head}{spot}"));
    let checkpoint = status.checkpoint.map(|n| format!("@{n} is the newest"));
    row("checkpoint", Label::Checkpoint, checkpoint.as_deref().unwrap_or("none yet"));
    row("holds", Label::Plain, &holds(&status, session.archive.root().is_some()));
    for (name, label, words) in full.iter().flat_map(|(near, full)| fullness(near, full)) {
        row(name, label, &words);
    }
    if let Some(used) = words_of_use(session, &settings, spent.as_ref()) {
        row("used", Label::Plain, &used);
    }
    for (name, time) in [("started", card.started), ("active", card.active)] {
        if let Some(time) = time {
            row(name, Label::Time, &context.env.zone.show(time));
        }
    }
    if card.hidden {
        row("hidden", Label::Warning, "hidden from lists");
    }
    for open in &status.open {
        row("open in", Label::Warning, &open.to_string());
    }
    if let Some(holder) = &status.compacting {
        row("compacting", Label::Warning, &format!("by {holder}"));
    }
    if let Some(waiting) = &status.waiting {
        let resume = context.output.spell(&Line::about("resume"));
        let words = format!("to {waiting}, at your next `{resume}`");
        row("waits", Label::Warning, &words);
    }
    for (name, label, words) in files(context, &status) {
        row(name, label, &words);
    }
    context.show(&table)?;
    context.output.hints(standing.hints());
    context.tell_damaged(&damaged)
}

/// Waits until no process compacts a session, at most so many seconds.
fn wait_until_idle(context: &mut Context, session: &At<'_>, seconds: Option<u64>) -> Exit {
    let holder = seconds.and_then(|seconds| wait(session, Duration::from_secs(seconds)));
    let Some(holder) = holder else { return Exit::Yes };
    if !context.json {
        context.output.note(&format!("It is still being compacted by {holder}"));
    }
    Exit::No
}

/// Returns what a session used, unless it is too long to count or cannot be read.
fn spent(session: &At<'_>, settings: &Settings) -> Option<Expense> {
    let is_counted = session.state.entries() <= COUNTED;
    let effort = is_counted.then(|| verbs::effort(session, &Prices::with(&settings.prices)));
    Some(effort?.ok()?.all)
}

/// Returns a session's model and what was used, in words.
fn words_of_use(session: &At<'_>, settings: &Settings, spent: Option<&Expense>) -> Option<String> {
    let used = spent.and_then(units::used)?;
    let model = verbs::model(session, &models::usual(settings)).into_iter();
    Some(model.chain([used]).collect::<Vec<_>>().join(" · "))
}

/// Returns how full the window is, and how near that is to a compaction.
fn full(session: &At<'_>, settings: &Settings) -> Option<(Nearness, Fullness)> {
    let (usual, rule) = (models::usual(settings), models::rule(settings));
    let measured = |full: &Fullness| Measured { tokens: full.tokens, word: full.word };
    let mut full = verbs::fullness(session, &usual).ok()?;
    if let Some(exact) = rule.exactly(&usual, full.window.tokens, measured(&full)) {
        full = verbs::fullness(session, &exact).ok()?;
    }
    Some((rule.near(full.window.tokens, measured(&full)), full))
}

/// Waits until no process compacts a session. Returns the process that still does when the time is over.
fn wait(session: &At<'_>, limit: Duration) -> Option<Holder> {
    /// How often to look.
    const PAUSE: Duration = Duration::from_millis(50);
    let begun = Instant::now();
    while let Some(holder) = session.compacting() {
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Some(holder);
        }
        thread::sleep(PAUSE.min(left));
    }
    None
}

/// Describes how much a session contains and, in a store, how often it was changed.
fn holds(status: &Status, is_stored: bool) -> String {
    let turns = counted(status.card.turns, "turn", "turns");
    let mut parts = vec![turns, counted(status.entries, "entry", "entries")];
    if is_stored {
        parts.push(counted(status.operations, "operation", "operations"));
    }
    if is_stored && status.sidecars > 0 {
        let files = counted(status.sidecars, "file", "files");
        parts.push(format!("{files} stored alongside"));
    }
    parts.join(", ")
}

/// Lists the files that a conversation names.
fn used(context: &mut Context, files: &[UsedFile]) -> Result<Exit, CommandError> {
    if context.answer_all(files)? {
        return Ok(Exit::Yes);
    }
    if files.is_empty() {
        context.output.note("The conversation names no files");
        return Ok(Exit::Yes);
    }
    context.output.page()?;
    let mut table = Table::new([Right, Right, Right, Left]);
    table = table.headed(["EDITS", "MENTIONS", "LAST", "FILE"]);
    for file in files {
        let turn = file.turn.map(|turn| format!("@{turn}")).unwrap_or_default();
        let edits = if file.edits > 0 { grouped(file.edits) } else { String::new() };
        table.row([
            Cell::new(Label::Note, &edits),
            Cell::new(Label::Dim, &grouped(file.mentions)),
            Cell::new(Label::Checkpoint, &turn),
            Cell::new(Label::Plain, &context.env.homely(Path::new(&file.path))),
        ]);
    }
    context.show(&table)?;
    Ok(Exit::Yes)
}

/// Returns the rows about how full the window is.
fn fullness(near: &Nearness, full: &Fullness) -> Vec<(&'static str, Label, String)> {
    let (tokens, window) = (grouped(near.tokens), grouped(near.window));
    let about = match (full.is_least, full.word) {
        (true, _) => "at least ",
        (_, Word::Reported) => "",
        _ => "about ",
    };
    let near = models::describe_nearness(near);
    let mut rows =
        vec![("context", Label::Plain, format!("{about}{tokens} of {window} tokens; {near}"))];
    if matches!(full.word, Word::Reported | Word::Scaled) {
        rows.push(("", Label::Dim, full.word.words().to_owned()));
    }
    if matches!(full.window.source, Source::File | Source::Answered) {
        let model = full.model.as_deref().unwrap_or("unknown model");
        rows.push(("", Label::Dim, format!("by {}, {model}", full.window.source.words())));
    }
    rows
}

/// Returns the rows about the agent's file, and about a deleted file that it continues.
fn files(context: &Context, status: &Status) -> Vec<(&'static str, Label, String)> {
    let mut rows = Vec::new();
    let is_live_gone = status.live.is_none() || status.live == status.gone;
    if let Some(gone) = &status.gone {
        let which = if is_live_gone { "live file" } else { "continues from" };
        rows.push((which, Label::Plain, context.env.homely(gone)));
        let deleted = "was deleted by its agent or somebody else; the store has all the content";
        rows.push(("", Label::Warning, deleted.to_owned()));
    }
    if let Some(live) = &status.live
        && (!is_live_gone || status.gone.is_none())
    {
        rows.push(("live file", Label::Plain, context.env.homely(live)));
        let label = match status.live_state {
            LiveState::Same | LiveState::Grown => Label::Plain,
            _ => Label::Warning,
        };
        rows.push(("", label, status.live_state.words().to_owned()));
    }
    rows
}

fn layers(
    context: &mut Context,
    session: &Session,
    layers: &Surroundings,
) -> Result<(), CommandError> {
    if context.answer(&Layered { session: &session.name.id, layers })? {
        return Ok(());
    }
    let Conversation { turns, entries, active } = layers.conversation;
    let said = [
        ("turns", turns.to_string()),
        ("entries", entries.to_string()),
        ("active", active.map(|active| active.to_string()).unwrap_or_default()),
    ];
    let said = said.map(|(key, value)| (key.to_owned(), value)).into();
    let calls = layers.tools.iter().map(|call| {
        let outcome = match call.succeeded {
            Some(true) => "succeeded",
            Some(false) => "failed",
            None => "has no result yet",
        };
        let took = call.ms.map(|ms| format!(" after {}.{} s", ms / 1000, ms % 1000 / 100));
        let time = call.time.map(|time| format!("{}, ", context.env.zone.show(time)));
        let words = format!("{}{outcome}{}", time.unwrap_or_default(), took.unwrap_or_default());
        (call.name.clone(), words)
    });
    let layers = [
        ("system", fields(layers.system.as_ref())),
        ("session", fields(layers.session.as_ref())),
        ("conversation", said),
        ("tools", calls.collect()),
        ("workspace", fields(layers.workspace.as_ref())),
    ];
    let styles = context.output.styles();
    for (n, (name, rows)) in layers.into_iter().enumerate() {
        if n > 0 {
            writeln!(context.output)?;
        }
        writeln!(context.output, "{}", styles.paint(Label::Heading, name))?;
        let mut table = Table::new([Left, Left]);
        for (key, value) in rows {
            table
                .row([Cell::new(Label::Dim, &format!("  {key}")), Cell::new(Label::Plain, &value)]);
        }
        context.show(&table)?;
    }
    Ok(())
}

/// Returns the fields that are set in a recorded layer.
fn fields(layer: Option<&Value>) -> Vec<(String, String)> {
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let fields = layer.and_then(Value::as_object).into_iter().flatten();
    let set = fields.filter(|(_, value)| !value.is_null());
    set.map(|(key, value)| (key.clone(), words(value))).collect()
}
