//! `search`: finds text in any session.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use undertext::model::{Role, SessionName};
use undertext::report::{Counted, FoundLine, Hit, Line, Searched};
use undertext::store::SessionFilter;
use undertext::verbs::{self, Archive, Case, Pattern, Query, Search, Sort, Sought, Within, Words};

use super::common::{self, counted, within};
use super::{CommandError, Context, Exit, archive, complete, store};
use crate::render::style::Label;
use crate::render::units::grouped;
use crate::render::{moment, safe, search};

/// How long a search updates the index after it has answered.
const AFTERWARDS: Duration = Duration::from_millis(200);
/// Default number of results shown to a person.
const SHOWN: usize = 20;
/// Default number of results per session.
const PER_SESSION: usize = 3;
/// The letters of the options that take a value.
const TAKING: [char; 5] = ['A', 'B', 'C', 'n', 's'];

/// Search all sessions, including reverted and compacted text
#[derive(Debug, clap::Args)]
#[command(
    alias = "grep",
    after_help = "\
Examples:
  undertext search retry webhook
  undertext search --tool Bash --since '3 days ago' -E 'rm -rf? /'

Exit codes: 1 if nothing was found, or a session is damaged"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a person types")]
pub(crate) struct Args {
    /// The words to find, in any order; '"in quotes"' for a phrase
    #[arg(required = true)]
    words: Vec<String>,

    /// Only in this session: its id, title or file
    #[arg(short = 's', long = "session", value_name = "SESSION", add = complete::sessions())]
    session: Option<OsString>,

    /// Match exact text, line by line
    #[arg(short = 'F', long = "fixed-strings")]
    fixed: bool,

    /// Match exact text, whole words only
    #[arg(short, long, conflicts_with = "regex")]
    word: bool,

    /// Match a regular expression
    #[arg(short = 'E', long, conflicts_with = "fixed")]
    regex: bool,

    /// With -F, -w, -E: ignore case, even if there are capitals
    #[arg(short, long)]
    ignore_case: bool,

    /// With -F, -w, -E: respect case, even without capitals
    #[arg(long, hide = true, conflicts_with = "ignore_case")]
    case: bool,

    /// Only sessions of this agent, such as claude
    #[arg(long, value_name = "FORMAT", value_parser = common::format, add = complete::agents())]
    agent: Option<String>,

    /// Only sessions in this folder or below it
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Only sessions in the current folder or below it
    #[arg(long, conflicts_with = "folder")]
    here: bool,

    /// Only what was said since: 12h, 7d, monday
    #[arg(long, value_name = "TIME", value_parser = moment::Since::read, allow_hyphen_values = true)]
    since: Option<moment::Since>,

    /// Only what was said before this time
    #[arg(long, value_name = "TIME", value_parser = moment::Since::read, allow_hyphen_values = true)]
    until: Option<moment::Since>,

    /// Only user, assistant, tool or system; repeatable
    #[arg(long, value_name = "ROLE", value_parser = role, add = complete::among(ROLES.map(Role::as_str)))]
    role: Vec<Role>,

    /// Only messages, commands, edits or results; repeatable
    #[arg(long = "in", value_name = "PART", value_parser = part, add = complete::among(PARTS.map(|(name, _)| name)))]
    parts: Vec<Within>,

    /// Only calls of this tool, and their results
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// Only this branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// Only what was reverted, undone, or is on another branch
    #[arg(long, conflicts_with_all = ["list", "count"])]
    reverted: bool,

    /// Include hidden sessions
    #[arg(long)]
    hidden: bool,

    /// Show N lines around each match
    #[arg(short = 'C', short_aliases = ['A', 'B'], long = "context", value_name = "N", default_value_t = 0, value_parser = common::number::<usize>, allow_negative_numbers = true, conflicts_with_all = ["list", "count"])]
    around: usize,

    /// Show at most N messages of a session [default: 3]
    #[arg(long, value_name = "N", value_parser = common::number::<usize>)]
    per_session: Option<usize>,

    /// Show at most N messages; 0 shows all [default: 20]
    #[arg(short, long = "number", value_name = "N", value_parser = common::number::<usize>, allow_negative_numbers = true)]
    number: Option<usize>,

    /// By relevance or time [default: relevance]
    #[arg(long, value_name = "ORDER", value_parser = sort, add = complete::among(["relevance", "time"]), conflicts_with_all = ["list", "count"])]
    sort: Option<Sort>,

    /// List only the sessions that match
    #[arg(short, long)]
    list: bool,

    /// Count the matching lines of each session
    #[arg(long, conflicts_with = "list")]
    count: bool,

    /// Show every matching line in full
    #[arg(long, conflicts_with_all = ["list", "count"])]
    full: bool,
}

const ROLES: [Role; 4] = [Role::User, Role::Assistant, Role::Tool, Role::System];

/// Parses a speaker.
fn role(text: &str) -> Result<Role, String> {
    let found = ROLES.into_iter().find(|role| role.as_str() == text);
    found.ok_or_else(|| "use user, assistant, tool or system".to_owned())
}

/// The searchable parts of a conversation.
const PARTS: [(&str, Within); 4] = [
    ("messages", Within::Messages),
    ("commands", Within::Commands),
    ("edits", Within::Edits),
    ("results", Within::Results),
];

/// Parses a part of a conversation.
fn part(text: &str) -> Result<Within, String> {
    let found = PARTS.iter().find(|(name, _)| *name == text).map(|(_, part)| *part);
    found.ok_or_else(|| "use messages, commands, edits or results".to_owned())
}

/// Parses the sort order.
fn sort(text: &str) -> Result<Sort, String> {
    match text {
        "relevance" => Ok(Sort::Relevance),
        "time" => Ok(Sort::Time),
        _ => Err("use relevance or time".to_owned()),
    }
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let sought = args.sought().map_err(CommandError::user)?;
    let is_of_words = matches!(sought, Sought::Words(_));
    let wanted = args.session.as_deref();
    let (archive, session) = match archive::find_or_all(context, wanted) {
        Err(error) if wanted.is_none() && error.is_absence() => {
            context.answer(&Searched::default())?;
            context.output.note("No sessions yet");
            context.output.hints(error.into_hints());
            return Ok(Exit::No);
        }
        opened => opened?,
    };
    let folder = args.here.then_some(Path::new(".")).or(args.folder.as_deref());
    let folder = folder.map(|folder| within(&context.env, folder));
    let now = context.env.ambient().now();
    let moment = |at: moment::Since| at.at(context.env.zone, now);
    let since = args.since.map(moment);
    let is_list = args.list || args.count;
    let is_short = !is_list && (is_of_words || !context.json);
    let number = args.number.or(is_short.then_some(SHOWN));
    let is_cut = is_short && session.is_none() && number != Some(0);
    let per_session = args.per_session.or(is_cut.then_some(PER_SESSION));
    let search = Search {
        sought,
        sessions: SessionFilter {
            format: args.agent.clone(),
            folder,
            since,
            hidden: args.hidden,
            ..SessionFilter::default()
        },
        session,
        branch: args.branch.clone(),
        roles: args.role.clone(),
        parts: args.parts.clone(),
        tool: args.tool.clone(),
        since,
        until: args.until.map(moment),
        around: args.around,
        limit: number.filter(|number| *number > 0),
        per_session: per_session.filter(|number| *number > 0).unwrap_or(usize::MAX),
        is_list: args.list,
        is_reverted: args.reverted,
        sort: args.sort.unwrap_or(Sort::Relevance),
    };
    if is_of_words && archive.root().is_some() {
        // Otherwise each search would have to read everything that is not indexed.
        store::bring_index_along(context, &archive, &|| true);
    }
    context.output.page()?;
    let mut printed = Printed::default();
    let searched = if args.list || args.count {
        verbs::count(&archive, &search, |counted| {
            printed.sessions += 1;
            tell_count(context, &archive, counted, args)
        })?
    } else {
        verbs::search(&archive, &search, |searched, hit| {
            if printed.session.is_none() {
                head(context, searched)?;
            }
            tell(context, &archive, hit, args, &mut printed)
        })?
    };
    if searched.lines == 0 && !context.json {
        say_near(context, &archive, &search, args)?;
    }
    // The last word may have been meant as a session.
    if let Some(word) = searched.nowhere.last().filter(|_| !context.json)
        && archive::lookup(&context.env, &archive, Some(word.as_ref())).is_ok()
    {
        let words = args.words.iter().filter(|other| *other != word);
        let line = words.fold(Line::new("search"), Line::with).option("session", word);
        context.output.hint(line.to(format!("{word} is a session; search in it")));
    }
    let exit = end(context, &searched, printed, args)?;
    if !is_of_words && archive.root().is_some() && !searched.is_indexed {
        drop(archive);
        context.output.flush()?;
        store::index_for(context, AFTERWARDS);
    }
    Ok(exit)
}

impl Args {
    /// Returns true if an option limits what is searched.
    fn has_filters(&self) -> bool {
        let Self { agent, folder, here, since, until, role, parts, tool, branch, reverted, .. } =
            self;
        let one = agent.is_some() || folder.is_some() || tool.is_some() || branch.is_some();
        let period = since.is_some() || until.is_some();
        one || period || *here || *reverted || !(role.is_empty() && parts.is_empty())
    }

    fn sought(&self) -> Result<Sought, verbs::Unfit> {
        let words = self.words.join(" ");
        let case = match (self.ignore_case, self.case) {
            (true, _) => Case::Ignored,
            (_, true) => Case::Told,
            _ => Case::Smart,
        };
        let manner = match (self.word, self.regex, self.fixed) {
            (true, ..) => Words::Word,
            (_, true, _) => Words::Regex,
            (_, _, true) => Words::Literal,
            _ => return sought_of(&words, case),
        };
        Pattern::new(&words, manner, case).map(Sought::Pattern)
    }
}

/// Returns what typed words look for: messages with these words.
pub(super) fn sought_of(words: &str, case: Case) -> Result<Sought, verbs::Unfit> {
    match Query::new(words) {
        // A query of punctuation has no words, so it is searched literally.
        Err(verbs::Unfit::Empty) if !words.is_empty() => {
            Pattern::new(words, Words::Literal, case).map(Sought::Pattern)
        }
        query => query.map(Sought::Words),
    }
}

/// Returns a session's shortest name that commands accept. For a file searched directly, returns the session's id.
fn short_name(
    context: &Context,
    archive: &Archive,
    name: &SessionName,
) -> Result<String, CommandError> {
    match archive.session(name)?.filter(|_| archive.root().is_some()) {
        Some(session) => context.short_name(archive, &session),
        None => Ok(name.id.clone()),
    }
}

/// What a search has printed.
#[derive(Default)]
struct Printed {
    /// The session of the last printed result, and its short name.
    session: Option<(SessionName, String)>,
    /// The command that shows the first result.
    first: Option<Line>,
    /// How many sessions were listed or counted.
    sessions: u64,
}

/// Prints the number of results above them.
fn head(context: &mut Context, searched: &Searched) -> Result<(), CommandError> {
    let Some(messages) = searched.messages.filter(|_| !context.json) else { return Ok(()) };
    let quoted = |words: &[String]| {
        let words: Vec<_> = words.iter().map(|word| format!("\"{}\"", safe::line(word))).collect();
        words.join(", ")
    };
    let all = format!(
        "{} in {}",
        counted(messages, "message", "messages"),
        counted(searched.sessions.unwrap_or_default(), "session", "sessions")
    );
    let found = match (searched.nowhere.as_slice(), searched.missing.as_slice()) {
        ([], []) => all,
        ([], missing) => format!(
            "No message has all words; the best one lacks {}; with most of them: {all}",
            quoted(missing)
        ),
        (nowhere, _) => format!("No message has {}; the other words: {all}", quoted(nowhere)),
    };
    let shown = match searched.lines {
        shown if shown < messages => format!(", best {} shown", grouped(shown)),
        shown if shown > messages => format!(", and {} that have fewer", grouped(shown - messages)),
        _ => String::new(),
    };
    let line = context.output.styles().paint(Label::Dim, &format!("{found}{shown}"));
    Ok(writeln!(context.output, "{line}\n")?)
}

/// Prints a result.
fn tell(
    context: &mut Context,
    archive: &Archive,
    hit: &Hit,
    args: &Args,
    printed: &mut Printed,
) -> Result<(), CommandError> {
    let Some(place) = hit.places.first() else { return Ok(()) };
    if context.json {
        let Hit { time, role, lines, places, .. } = hit;
        let (tool, places) = (hit.tool.as_deref(), places.get(1..).unwrap_or_default());
        for line in lines {
            context.answer(&FoundLine { place, time: *time, role: *role, tool, line, places })?;
        }
        return Ok(());
    }
    let is_next = printed.session.as_ref().is_none_or(|(session, _)| *session != place.session);
    let is_short = args.around == 0 && !args.full;
    if printed.session.is_some() && (is_next || !is_short) {
        writeln!(context.output)?;
    }
    if is_next {
        let id = short_name(context, archive, &place.session)?;
        // A file searched directly keeps the name it was given.
        if archive.root().is_some() {
            context.output.naming().session = Some(id.clone().into());
        }
        let title = common::titled(place.title.as_deref());
        let folder = place.folder.as_deref().map(|folder| context.env.homely(Path::new(folder)));
        let folder = folder.map(|folder| format!("  {folder}")).unwrap_or_default();
        let styles = context.output.styles();
        let (title, shown) = (safe::line(&title).into_owned(), safe::line(&id).into_owned());
        let agent = &place.session.format;
        let width = context.output.width().unwrap_or(usize::MAX);
        let room = width.saturating_sub(safe::width(&shown) + agent.len() + 4);
        writeln!(
            context.output,
            "{}  {}  {}",
            styles.paint(Label::Id, &shown),
            styles.paint(Label::Dim, agent),
            styles.paint(Label::Heading, &safe::clip(&format!("{title}{folder}"), room)),
        )?;
        printed.session = Some((place.session.clone(), id));
    }
    let look = search::Look {
        styles: context.output.styles(),
        zone: context.env.zone,
        width: context.output.width(),
        full: args.full,
    };
    let id = printed.session.as_ref().map(|(_, id)| id.as_str()).unwrap_or_default();
    let word = place.step().map(|step| format!("{id}{step}"));
    if printed.first.is_none() {
        let show = Line::new("show");
        printed.first = match (&word, place.entry) {
            (Some(word), _) => Some(show.with(word)),
            (None, entry) => entry.map(|entry| show.entry(entry).option("session", id)),
        };
    }
    let word = word.unwrap_or_else(|| common::short(place.entry));
    let word = safe::line(&word);
    let output = &mut context.output;
    Ok(if is_short {
        search::line(output, hit, &word, look)
    } else {
        search::lines(output, hit, &word, look)
    }?)
}

/// Prints the number of matching lines of a session.
fn tell_count(
    context: &mut Context,
    archive: &Archive,
    found: &Counted,
    args: &Args,
) -> Result<(), CommandError> {
    if context.answer(found)? {
        return Ok(());
    }
    let id = short_name(context, archive, &found.session)?;
    let title = safe::line(&common::titled(found.title.as_deref())).into_owned();
    let styles = context.output.styles();
    let (id, agent) = (safe::line(&id).into_owned(), &found.session.format);
    let lines = if args.count { format!("{:>6}  ", found.lines) } else { String::new() };
    let taken = lines.len() + safe::width(&id) + agent.len() + "    ".len();
    let room = context.output.width().map_or(usize::MAX, |width| width.saturating_sub(taken));
    let (id, agent) = (styles.paint(Label::Id, &id), styles.paint(Label::Dim, agent));
    Ok(writeln!(context.output, "{lines}{id}  {agent}  {}", safe::clip(&title, room))?)
}

/// Reports that nothing was found, and suggests what is near: the search without filters, or words with the same beginning.
fn say_near(
    context: &mut Context,
    archive: &Archive,
    search: &Search,
    args: &Args,
) -> Result<(), CommandError> {
    context.output.note("Nothing was found");
    let sessions = SessionFilter { hidden: args.hidden, ..SessionFilter::default() };
    let plain = Search {
        sessions,
        branch: None,
        roles: Vec::new(),
        parts: Vec::new(),
        tool: None,
        since: None,
        until: None,
        is_list: true,
        is_reverted: false,
        ..search.clone()
    };
    let mut sessions = 0;
    if args.has_filters() {
        verbs::count(archive, &plain, |_| {
            sessions += 1;
            Ok::<_, CommandError>(())
        })?;
    }
    if sessions > 0 {
        let manners = [(args.fixed, "fixed-strings"), (args.word, "word"), (args.regex, "regex")];
        let manners = manners.into_iter().filter(|(is_given, _)| *is_given);
        let line = manners.fold(Line::about("search"), |line, (_, name)| line.flag(name));
        let line = args.words.iter().fold(line, Line::with);
        let found = counted(sessions, "session", "sessions");
        context.output.hint(line.to(format!("without the filters, {found} match")));
    } else {
        for word in verbs::near(archive, &search.sought) {
            context.output.hint(Line::new("search").with(word).to("a word that begins so"));
        }
    }
    Ok(())
}

/// Ends the answer: the count, how to see one result or all, and what is damaged.
fn end(
    context: &mut Context,
    searched: &Searched,
    printed: Printed,
    args: &Args,
) -> Result<Exit, CommandError> {
    let exit = context.tell_unread_sessions(&searched.unread)?;
    let exit = if searched.lines > 0 { exit } else { Exit::No };
    if context.answer(searched)? {
        return Ok(exit);
    }
    if args.count && searched.lines > 0 {
        let (one, many) =
            if searched.messages.is_some() { ("message", "messages") } else { ("line", "lines") };
        let lines = counted(searched.lines, one, many);
        let among = match (searched.has_more, printed.sessions) {
            (false, _) => "in all".to_owned(),
            (true, 1) => "in this session".to_owned(),
            (true, sessions) => format!("in these {} sessions", grouped(sessions)),
        };
        context.output.note(&format!("{lines} {among}"));
    }
    if let Some(first) = printed.first {
        context.output.hint(first.to("open one"));
    }
    if searched.has_more {
        let line = common::all_of("search", &context.env.args, &TAKING);
        context.output.hint(line.to("there may be more; show all"));
    }
    if searched.damaged > 0 {
        let entries = counted(searched.damaged, "entry is", "entries are");
        context.output.warn(&format!("{entries} damaged and could not be searched"));
        context.output.hints(undertext::report::Report::hints(searched));
    }
    Ok(exit)
}
