//! `sessions`: lists sessions, and hides some of them from lists.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use undertext::model::{SessionName, Timestamp};
use undertext::report::{Expense, Line, ListedSession, Listing};
use undertext::store::SessionFilter;
use undertext::verbs::{self, Archive, Bond, Having, Order, Prices};

use super::common::{self, within};
use super::env::Env;
use super::{CommandError, Context, Exit, archive, complete, models, overview, pointed};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::{moment, safe, units};

/// From this width on, a row of bars shows how full the window was.
const WIDE: usize = 100;
/// Minimum width of a title that makes room for an agent and a folder.
const LEAST_TITLE: usize = 30;
/// Maximum number of bars in the row.
const BARS: usize = 8;
/// Default number of sessions shown to people.
const SHOWN: usize = 50;

/// List sessions, newest first
#[derive(Debug, clap::Args)]
#[command(aliases = ["ls", "list"], after_help = "\
Examples:
  undertext sessions
  undertext sessions --here --since yesterday
  undertext sessions retry webhook    those with both words
  undertext sessions --tree           forks and sub-agents below their session
  undertext sessions --hide 7c2a

A row shows the id, when the session was last active, its agent and title, its
turns, reverted branches (↶) and compactions (◆), how full the window was and
is, and the folder. A column that says the same in every row is left out.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a person types")]
pub(crate) struct Args {
    /// Words of the title, folder, agent or id, or a time as with --since
    #[arg(value_name = "WORD")]
    words: Vec<String>,

    /// Only sessions of this agent, such as claude
    #[arg(long, value_name = "FORMAT", value_parser = common::format, add = complete::agents())]
    agent: Option<String>,

    /// Only sessions in this folder or below it
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Only sessions in the current folder or below it
    #[arg(long, conflicts_with = "folder")]
    here: bool,

    /// Only sessions active since: 12h, 7d, monday
    #[arg(long, value_name = "TIME", value_parser = moment::Since::read, allow_hyphen_values = true)]
    since: Option<moment::Since>,

    /// Include hidden sessions
    #[arg(long)]
    hidden: bool,

    /// Only sessions with reverted turns
    #[arg(long)]
    reverted: bool,

    /// Only sessions that were compacted
    #[arg(long)]
    compacted: bool,

    /// Only sessions whose file the agent deleted
    #[arg(long)]
    deleted: bool,

    /// Include sub-agents, each below its session
    #[arg(short, long)]
    all: bool,

    /// Include sub-agents and forks, each below its session
    #[arg(long)]
    tree: bool,

    /// Show full ids, times, folders and parent sessions
    #[arg(short, long)]
    verbose: bool,

    /// List at most N; 0 lists all [default: 50]
    #[arg(short, long = "number", alias = "limit", value_name = "N", value_parser = common::number::<usize>, allow_negative_numbers = true)]
    number: Option<usize>,

    /// Hide a session from lists
    #[arg(long, value_name = "SESSION", add = complete::sessions(), conflicts_with_all = ["words", "agent", "folder", "here", "since", "hidden", "reverted", "compacted", "deleted", "all", "tree", "number"])]
    hide: Option<OsString>,

    /// Show a hidden session in lists again
    #[arg(long, value_name = "SESSION", add = complete::sessions(), conflicts_with_all = ["words", "agent", "folder", "here", "since", "hidden", "reverted", "compacted", "deleted", "all", "tree", "number", "hide"])]
    show: Option<OsString>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    match args.hide.as_ref().or(args.show.as_ref()) {
        Some(session) => hide(context, session, args.hide.is_some()),
        None => list(context, args),
    }
}

fn hide(context: &mut Context, wanted: &OsStr, hidden: bool) -> Result<Exit, CommandError> {
    let opened = context.change(Some(wanted))?;
    let concealed = verbs::hide(&opened.at()?, hidden)?;
    context.tell(&concealed.done.notices);
    if context.answer_change(&opened, &concealed)? {
        return Ok(Exit::Yes);
    }
    if concealed.done.operation.is_none() {
        let so = if hidden {
            "The session is already hidden from lists"
        } else {
            "The session is already shown in lists"
        };
        context.say(so)?;
    } else if hidden {
        context.say("The session is now hidden from lists")?;
        let name = context.short_name(&opened.archive, &opened.session)?;
        context
            .output
            .hint(Line::new("sessions").option("show", name).to("to show the session again"));
    } else {
        context.say("The session is shown in lists again")?;
    }
    Ok(Exit::Yes)
}

fn list(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let archive = match context.open_reader() {
        Err(error) if error.is_absence() => {
            context.output.note("No sessions yet");
            context.output.hints(error.into_hints());
            return Ok(Exit::Yes);
        }
        other => other?,
    };
    let folder = args.here.then_some(Path::new(".")).or(args.folder.as_deref());
    let folder = folder.map(|folder| within(&context.env, folder));
    let now = context.env.ambient().now();
    let limit = args.number.or((!context.json).then_some(SHOWN)).filter(|number| *number > 0);
    let mut words = args.words.clone();
    let mut since = args.since;
    let mut until = None;
    if let (None, Ok(moment)) = (since, moment::Since::read(&words.join(" "))) {
        until = moment.day_end(context.env.zone, now);
        (since, words) = (Some(moment), Vec::new());
    }
    let filter = SessionFilter {
        format: args.agent.clone(),
        folder,
        since: since.map(|since| since.at(context.env.zone, now)),
        hidden: args.hidden,
        sub_agents: args.all || args.tree,
        limit,
        ..SessionFilter::default()
    };
    let order = if args.tree { Order::Tree } else { Order::Newest };
    let having = Having {
        words: words.iter().map(|word| word.to_lowercase()).collect(),
        until,
        reverted: args.reverted,
        compacted: args.compacted,
        deleted: args.deleted,
    };
    let listing = read_list(context, &archive, &filter, &having, order)?;
    let Listing { sessions, damaged, more, glances } = listing;
    let everything = SessionFilter { limit, ..SessionFilter::default() };
    let is_all = filter == everything && having == Having::default();
    let hidden = SessionFilter { hidden: true, limit: Some(1), ..SessionFilter::default() };
    let are_hidden = sessions.is_empty() && is_all && !archive.sessions(&hidden)?.is_empty();
    let is_shown = args.verbose && !context.json;
    let spent = if is_shown { Some(spent(context, &archive, &sessions)?) } else { None };
    archive::leave(archive);
    overview::keep_glances(context, &glances);
    if context.answer_all(&sessions)? {
        return context.tell_unread_sessions(&damaged);
    }
    context.output.page()?;
    if sessions.is_empty() && damaged.is_empty() {
        if are_hidden {
            context.output.note("All sessions in the store are hidden");
            context.output.hint(Line::new("sessions").flag("hidden").to("list them"));
        } else if is_all {
            context.output.note("The store has no sessions yet");
            context.output.hint(Line::new("import").to("import your agents' sessions"));
        } else {
            context.output.note("No matching sessions");
            if !words.is_empty() {
                let search = words.iter().fold(Line::new("search"), Line::with);
                context.output.hint(search.to("find what was said"));
            }
            context.output.hint(Line::new("sessions").to("list all sessions"));
        }
        return Ok(Exit::Yes);
    }
    let rows = Rows {
        sessions: &sessions,
        now,
        spent: spent.as_deref(),
        has_folders: true,
        has_heads: true,
    };
    show_sessions(context, rows)?;
    if context.env.terminal.stdout {
        overview::legend(context, &sessions.iter().collect::<Vec<_>>())?;
    }
    if more > 0 {
        let line = common::all_of("sessions", &context.env.args, &['n']);
        context.output.hint(line.to(format!("{} more; list all", units::grouped(more as u64))));
    }
    if sessions.iter().any(|listed| listed.gone) {
        let restore = Line::new("restore").flag("all").flag("dry-run");
        context.output.hint(restore.to("see which files agents deleted, and how to restore them"));
    }
    context.tell_unread_sessions(&damaged)
}

/// Returns what sessions used; `None` for one that cannot be read.
fn spent(
    context: &mut Context,
    archive: &Archive,
    sessions: &[ListedSession],
) -> Result<Vec<Option<Expense>>, CommandError> {
    let prices = Prices::with(&context.settings()?.prices);
    let spent = |listed: &ListedSession| {
        let session = archive.session(&listed.name).ok()??;
        Some(verbs::effort(&archive.at(&session).ok()?, &prices).ok()?.all)
    };
    Ok(sessions.iter().map(spent).collect())
}

/// The rows of a list, and what they show.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) sessions: &'a [ListedSession],
    pub(crate) now: Timestamp,
    /// Print whole ids and times, each session's origin and what it used below its row, if that was counted.
    pub(crate) spent: Option<&'a [Option<Expense>]>,
    /// Show each session's folder.
    pub(crate) has_folders: bool,
    /// Show column headings.
    pub(crate) has_heads: bool,
}

/// Returns the sessions that pass a filter, with the ones open in an agent marked.
pub(crate) fn read_list(
    context: &mut Context,
    archive: &Archive,
    filter: &SessionFilter,
    having: &Having,
    order: Order,
) -> Result<Listing, CommandError> {
    let mut listing = verbs::list(archive, filter, having, order, &models::usual_request(context))?;
    let open = verbs::open_sessions(&pointed::agent_folders(&context.env));
    for listed in &mut listing.sessions {
        let SessionName { format, id } = &listed.name;
        listed.open = open.iter().any(|open| open.format == format && open.session == *id);
    }
    Ok(listing)
}

/// Prints a list of sessions for people. Omits each column in which all rows are equal.
pub(crate) fn show_sessions(context: &mut Context, rows: Rows<'_>) -> Result<(), CommandError> {
    let Rows { sessions, now, .. } = rows;
    let is_wide = context.output.columns() >= WIDE || context.output.width().is_none();
    let folders = folders(context, sessions);
    // The ids of parent sessions appear next to their own, so short ids must be distinct among both.
    let kin = sessions.iter().filter_map(|listed| listed.kin.as_ref());
    let ids = sessions.iter().map(|listed| listed.name.id.as_str());
    let ids: Vec<&str> = ids.chain(kin.map(|kin| kin.session.as_str())).collect();
    let short: BTreeMap<&str, String> = ids.iter().copied().zip(common::short_ids(&ids)).collect();
    let mut table =
        Table::new([Left, Left, Right, Left, Left, Right, Left, Left, Left, Right, Left, Left])
            .yielding(&[10, 8, 4, 3])
            .keeping(4);
    let heads =
        ["", "ID", "ACTIVE", "AGENT", "TITLE", "TURNS", "", "", "CONTEXT", "", "FOLDER", ""];
    if rows.has_heads {
        table = table.headed(heads);
    }
    let differ = |of: &dyn Fn(usize) -> String| {
        sessions.len() < 2 || (1..sessions.len()).any(|n| of(n) != of(0))
    };
    let has_agents =
        differ(&|n| sessions.get(n).map(|it| it.name.format.clone()).unwrap_or_default());
    // On a narrow terminal, titles matter more.
    let is_narrow = rows.has_heads && context.output.width().is_some_and(|width| width < WIDE);
    let has_folders =
        rows.has_folders && !is_narrow && differ(&|n| folders.get(n).cloned().unwrap_or_default());
    // A long title leaves room for the columns that distinguish sessions.
    let tenths = if has_agents && has_folders { 3 } else { 4 };
    let has_room = context.output.width().filter(|_| has_agents || has_folders);
    let longest = has_room.map_or(usize::MAX, |width| (width * tenths / 10).max(LEAST_TITLE));
    for (at, (listed, folder)) in sessions.iter().zip(&folders).enumerate() {
        let ListedSession { name, card, kin, reverted, compactions, .. } = listed;
        let shown = |id: &str| short.get(id).map(String::as_str).unwrap_or_default();
        let kin = kin.as_ref().map(|kin| (kin.bond, shown(&kin.session)));
        let label = if card.hidden { Label::Dim } else { Label::Plain };
        let age = card.active.map(|active| context.env.zone.age(now, active)).unwrap_or_default();
        let age = age.strip_suffix(" ago").unwrap_or(&age);
        let above = |sign: char, n: u64| if n > 0 { format!("{sign}{n}") } else { String::new() };
        let (bars, share) = fullness(&listed.context, listed.tokens, listed.window);
        let only = |shown: bool, text: &str| if shown { text.to_owned() } else { String::new() };
        let state = match listed {
            ListedSession { gone: true, .. } => "deleted",
            ListedSession { open: true, .. } => "open",
            _ if card.hidden => "hidden",
            _ => "",
        };
        table.row([
            Cell::new(Label::Head, if listed.open { "●" } else { "" }),
            Cell::new(Label::Id, shown(&name.id)),
            Cell::new(Label::Time, age),
            Cell::new(Label::Dim, &only(has_agents, &name.format)),
            Cell::new(label, &safe::clip(&title(listed, kin), longest)),
            Cell::new(label, &card.turns.to_string()),
            Cell::new(Label::Warning, &above('↶', *reverted)),
            Cell::new(Label::Boundary, &above('◆', *compactions)),
            Cell::new(Label::Dim, &only(is_wide, &bars)),
            Cell::new(label, &share),
            Cell::new(Label::Dim, &only(has_folders, folder)),
            Cell::new(Label::Head, state),
        ]);
        if let Some(spent) = rows.spent {
            let spent = spent.get(at).and_then(Option::as_ref);
            for more in more_of(&context.env, listed, spent) {
                table.note(Label::Dim, &more);
            }
        }
    }
    context.show(&table)
}

/// Returns the sessions' folders, shortened to fit.
fn folders(context: &Context, sessions: &[ListedSession]) -> Vec<String> {
    let folder = |listed: &ListedSession| {
        let folder = listed.card.folder.as_deref().unwrap_or_default();
        let shown = context.env.homely(Path::new(folder));
        match context.output.width() {
            Some(width) => common::end_of(&shown, (width / 7).clamp(11, 36)),
            None => shown,
        }
    };
    sessions.iter().map(folder).collect()
}

/// Returns the details that have no room in a session's row.
fn more_of(env: &Env, listed: &ListedSession, spent: Option<&Expense>) -> Vec<String> {
    let ListedSession { card, kin, .. } = listed;
    let show = |time| env.zone.show(time);
    let folder = card.folder.as_ref().map(|folder| env.homely(Path::new(folder)));
    let kin = kin.as_ref().map(common::kin_words);
    let times = card.started.zip(card.active);
    let times = times.map(|(from, to)| format!("{} to {}", show(from), show(to)));
    let parts = [times, folder, kin];
    let parts = parts.into_iter().flatten().collect::<Vec<_>>().join("  ");
    [listed.name.id.clone(), parts].into_iter().chain(spent.and_then(units::used)).collect()
}

/// Draws how full the window was along a session's path as a row of bars, and formats how full it is now.
pub(super) fn fullness(
    samples: &[u64],
    tokens: Option<u64>,
    window: Option<u64>,
) -> (String, String) {
    let Some(window) = window.filter(|window| *window > 0) else { return Default::default() };
    let buckets = samples.len().min(BARS);
    let bar = |bucket: usize| {
        let [from, to] = [bucket, bucket + 1].map(|n| n * samples.len() / buckets);
        let of = samples.get(from..to).unwrap_or_default();
        if of.contains(&0) { '◆' } else { units::bar(of.last().copied().unwrap_or(0), window) }
    };
    let bars = (0..buckets).map(bar).collect();
    let share = tokens.map(|tokens| units::share(tokens, window));
    (bars, share.unwrap_or_default())
}

/// Returns a session's title with brief notes. A related session is named by its short id.
fn title(listed: &ListedSession, kin: Option<(Bond, &str)>) -> String {
    let ListedSession { card, sub_agents, depth, .. } = listed;
    let indent = depth.checked_sub(1).map(|depth| format!("{}└ ", "  ".repeat(depth)));
    let indent = indent.unwrap_or_default();
    let title = common::titled(card.title.as_deref());
    let mut notes = Vec::new();
    if *sub_agents > 0 {
        notes.push(common::counted(*sub_agents, "sub-agent", "sub-agents"));
    }
    if let Some((bond, session)) = kin {
        notes.push(format!("{} {session}", bond.words()));
    }
    let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
    format!("{indent}{title}{notes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_the_share_of_the_window_and_compactions() {
        let check = |context: &[u64], tokens, expected: (&str, &str)| {
            let (bars, share) = fullness(context, tokens, Some(200));
            assert_eq!((bars.as_str(), share.as_str()), expected);
        };
        check(&[], None, ("", ""));
        check(&[10, 100, 200, 0, 30], Some(142), ("▁▄█◆▂", "71%"));
        check(&[25; 24], Some(0), ("▁▁▁▁▁▁▁▁", "0%"));
        check(&[1000], Some(1000), ("█", "500%"));
    }
}
