//! `search`: what was said in any session, by its words.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use undertext::model::{Role, SessionName};
use undertext::ops::{self, Archive, Case, Pattern, Search, Sort, Words};
use undertext::report::{Counted, FoundLine, Hit, Searched};
use undertext::store::SessionFilter;

use super::common::{self, counted};
use super::error::{CommandError, Exit};
use super::words::OneOrAll;
use super::{Context, complete};
use crate::render::style::Label;
use crate::render::units::grouped;
use crate::render::{moment, safe, search};

/// For how long a search goes on to add to the index, once it has answered.
const AFTERWARDS: Duration = Duration::from_millis(200);
/// How many texts a person is shown unless more are asked for.
const SHOWN: usize = 20;
/// The letters of the options that take a value.
const TAKING: [char; 5] = ['A', 'B', 'C', 'n', 's'];

/// Search everything said in all sessions
#[derive(Debug, clap::Args)]
#[command(
    alias = "grep",
    after_help = "\
Examples:
  undertext search 'undefined symbol'
  undertext search roof 7c2a                 in one session
  undertext search --tool Bash -E 'rm -rf? /'
  undertext search -l --here --since 7d TODO

It also finds what was reverted, undone, compacted or truncated.
Exit codes: 1 if nothing was found, or a session is damaged"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a person types")]
pub(crate) struct Args {
    /// The words to find, literally; after -- they may begin with a dash
    pattern: String,

    #[command(flatten)]
    about: OneOrAll,

    /// Match whole words
    #[arg(short, long, conflicts_with = "regex")]
    word: bool,

    /// Match a regular expression
    #[arg(short = 'E', long)]
    regex: bool,

    /// Ignore case, even if PATTERN has capitals
    #[arg(short, long)]
    ignore_case: bool,

    /// Respect case, even if PATTERN has no capitals
    #[arg(long, conflicts_with = "ignore_case")]
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

    /// Only calls of this tool and their results
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,

    /// Only this branch
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,

    /// Include hidden sessions
    #[arg(long)]
    hidden: bool,

    /// Show N lines around each match
    #[arg(short = 'C', short_aliases = ['A', 'B'], long = "context", value_name = "N", default_value_t = 0, value_parser = common::number::<usize>, allow_negative_numbers = true, conflicts_with_all = ["list", "count"])]
    around: usize,

    /// Show at most N texts; 0 shows all [default: 20]
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

/// Who speaks.
const ROLES: [Role; 4] = [Role::User, Role::Assistant, Role::Tool, Role::System];

/// Reads who speaks.
fn role(text: &str) -> Result<Role, String> {
    let found = ROLES.into_iter().find(|role| role.as_str() == text);
    found.ok_or_else(|| "use user, assistant, tool or system".to_owned())
}

/// Reads in which order texts are shown.
fn sort(text: &str) -> Result<Sort, String> {
    match text {
        "relevance" => Ok(Sort::Relevance),
        "time" => Ok(Sort::Time),
        _ => Err("use relevance or time".to_owned()),
    }
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let pattern = args.pattern().map_err(CommandError::user)?;
    let wanted = args.about.wanted()?;
    let (archive, session) = match wanted {
        Some(_) => {
            let (archive, session) = context.find(wanted)?;
            (archive, Some(session))
        }
        None => match context.open_reader() {
            Err(error) if error.is_absence() => {
                context.answer(&Searched::default())?;
                context.output.note("No sessions yet");
                context.output.hints(error.into_hints());
                return Ok(Exit::No);
            }
            other => (other?, None),
        },
    };
    let folder = context.within(args.here, args.folder.as_deref());
    let now = context.env.ambient().now();
    let moment = |at: moment::Since| at.at(context.env.zone, now);
    let since = args.since.map(moment);
    let is_for_people = !context.json && !args.list && !args.count;
    let number = args.number.or(is_for_people.then_some(SHOWN));
    let search = Search {
        pattern,
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
        tool: args.tool.clone(),
        since,
        until: args.until.map(moment),
        around: args.around,
        limit: number.filter(|number| *number > 0),
        sort: args.sort.unwrap_or(if is_for_people { Sort::Relevance } else { Sort::Time }),
    };
    if !context.json {
        context.output.page()?;
    }
    let mut sessions = 0;
    let searched = if args.list || args.count {
        ops::count(&archive, &search, |counted| {
            sessions += 1;
            tell_count(context, &archive, counted, args)
        })?
    } else {
        let mut before = None;
        ops::search(&archive, &search, |hit| tell(context, &archive, hit, args, &mut before))?
    };
    let exit = end(context, &searched, sessions, args)?;
    if archive.root().is_some() && !searched.is_indexed {
        drop(archive);
        context.output.flush()?;
        context.index_for(AFTERWARDS);
    }
    Ok(exit)
}

impl Args {
    fn pattern(&self) -> Result<Pattern, ops::Unfit> {
        let manner = match (self.word, self.regex) {
            (true, _) => Words::Word,
            (_, true) => Words::Regex,
            _ => Words::Literal,
        };
        let case = match (self.ignore_case, self.case) {
            (true, _) => Case::Ignored,
            (_, true) => Case::Told,
            _ => Case::Smart,
        };
        Pattern::new(&self.pattern, manner, case)
    }
}

/// Returns a session's shortest name that commands take; of a file that is searched as it is, the session's id.
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

/// Tells of a text in which something was found.
fn tell(
    context: &mut Context,
    archive: &Archive,
    hit: &Hit,
    args: &Args,
    before: &mut Option<SessionName>,
) -> Result<(), CommandError> {
    let Some(place) = hit.places.first() else { return Ok(()) };
    if context.json {
        for line in &hit.lines {
            context.answer(&FoundLine { hit, line })?;
        }
        return Ok(());
    }
    let is_next = before.as_ref() != Some(&place.session);
    if before.is_some() {
        writeln!(context.output)?;
    }
    if is_next {
        let id = short_name(context, archive, &place.session)?;
        // A file that is searched as it is was named so.
        if archive.root().is_some() {
            context.output.naming().session = Some(id.clone().into());
        }
        let title = common::titled(place.title.as_deref());
        let folder = place.folder.as_deref().map(|folder| context.env.homely(Path::new(folder)));
        let folder = folder.map(|folder| format!("  {folder}")).unwrap_or_default();
        let styles = context.output.styles();
        let (title, id) = (safe::line(&title).into_owned(), safe::line(&id).into_owned());
        let agent = &place.session.format;
        let width = context.output.width().unwrap_or(usize::MAX);
        let room = width.saturating_sub(safe::width(&id) + agent.len() + 4);
        writeln!(
            context.output,
            "{}  {}  {}",
            styles.paint(Label::Id, &id),
            styles.paint(Label::Dim, agent),
            styles.paint(Label::Heading, &safe::clip(&format!("{title}{folder}"), room)),
        )?;
        *before = Some(place.session.clone());
    }
    let look = search::Look {
        styles: context.output.styles(),
        zone: context.env.zone,
        width: context.output.width(),
        full: args.full,
    };
    let command = place.show().map(|line| context.output.spell(&line));
    let other = hit.places.get(1).filter(|other| other.session != place.session);
    let other = other.map(|other| short_name(context, archive, &other.session)).transpose()?;
    Ok(search::hit(&mut context.output, hit, (command.as_deref(), other.as_deref()), look)?)
}

/// Tells how many lines of a session were found.
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

/// Tells how a search ended; `sessions` is the number of those whose lines it counted.
fn end(
    context: &mut Context,
    searched: &Searched,
    sessions: u64,
    args: &Args,
) -> Result<Exit, CommandError> {
    let exit = context.tell_unread_sessions(&searched.unread)?;
    let exit = if searched.lines > 0 { exit } else { Exit::No };
    if context.answer(searched)? {
        return Ok(exit);
    }
    if searched.lines == 0 {
        context.output.note("Nothing was found");
    } else if args.count {
        let lines = counted(searched.lines, "line", "lines");
        let among = match (searched.has_more, sessions) {
            (false, _) => "in all".to_owned(),
            (true, 1) => "in this session".to_owned(),
            (true, _) => format!("in these {} sessions", grouped(sessions)),
        };
        context.output.note(&format!("{lines} {among}"));
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
