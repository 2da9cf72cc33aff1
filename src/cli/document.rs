//! Documents: a session as a page of HTML, as Markdown or as JSON, for `export`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use undertext::model::{Block, CheckpointNumber, EntrySet};
use undertext::report::{Entry, Expense, Exported, Line};
use undertext::verbs::{self, At, Damaged, Masking, Masks, Prices, Session};

use super::common::{counted, first_line};
use super::export::{Target, write_file};
use super::{CommandError, Context, Exit, Opened, complete, models, settings};
use crate::page::chosen::{
    Choices, Chooser, Conversation, Facts, LeftOut, Sharing, Tools, prompt, with_tools,
};
use crate::render::answers::Pairs;
use crate::render::markdown::{Document, Front};
use crate::render::time::Zone;
use crate::render::{json, safe, units};

/// Compactions are compared with their summaries only in sessions of at most this many entries.
const COMPARED: u64 = 20_000;
/// Names of users and machines that tell nothing.
const COMMON: [&str; 12] = [
    "root",
    "user",
    "admin",
    "host",
    "home",
    "localhost",
    "test",
    "dev",
    "runner",
    "ubuntu",
    "debian",
    "vagrant",
];

/// What is in a document.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Options {
    /// Write a document: html, markdown or json [default: by FILE's name]
    #[arg(long = "as", value_name = "FORM", conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"], hide_possible_values = true)]
    form: Option<Form>,

    /// Document: a branch instead of the current one
    #[arg(long, value_name = "NAME", conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"], add = complete::branches())]
    branch: Option<String>,

    /// Document: from this turn
    #[arg(long, value_name = "@N", value_parser = turn, conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"])]
    from: Option<CheckpointNumber>,

    /// Document: up to and including this turn
    #[arg(long, value_name = "@N", value_parser = turn, conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"])]
    to: Option<CheckpointNumber>,

    /// Document: none, short or full [default: short in html]
    #[arg(long, value_name = "HOW", value_parser = tools, conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"])]
    tools: Option<Tools>,

    /// Document: with the model's thinking
    #[arg(long, conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"])]
    thinking: bool,

    /// Document: with reverted turns
    #[arg(long, conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list", "branch", "from", "to"])]
    reverted: bool,

    /// Document: with pictures
    #[arg(long, conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"])]
    images: bool,

    /// Document: without masks
    #[arg(long, conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"])]
    no_mask: bool,

    /// Open the page, with what was masked or left out marked
    #[arg(long, requires = "out", conflicts_with_all = ["generation", "file", "container", "leave_damaged", "list"])]
    review: bool,
}

/// The form of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// A page in one file, which loads nothing
    Html,
    /// Markdown, with calls and results in fences
    #[value(alias = "md")]
    Markdown,
    /// Entries as JSON Lines
    Json,
}

/// Parses the number of a turn, such as `@7`.
fn turn(word: &str) -> Result<CheckpointNumber, String> {
    super::common::number(word.strip_prefix('@').unwrap_or(word))
}

fn tools(word: &str) -> Result<Tools, String> {
    match word {
        "none" => Ok(Tools::None),
        "short" => Ok(Tools::Short),
        "full" => Ok(Tools::Full),
        _ => Err("it must be none, short or full".to_owned()),
    }
}

impl Options {
    /// Returns the form to write, if it is a document.
    pub(super) fn form(&self, out: Option<&Path>) -> Result<Option<Form>, CommandError> {
        let ending = out.and_then(|out| out.extension()?.to_str());
        let by_name = match ending {
            Some("html" | "htm") => Some(Form::Html),
            Some("md" | "markdown") => Some(Form::Markdown),
            _ => None,
        };
        let form = self.form.or(by_name);
        let Self { branch, from, to, tools, thinking, reverted, images, no_mask, review, .. } =
            self;
        let is_chosen = branch.is_some() || from.is_some() || to.is_some() || tools.is_some();
        if form.is_none() && (is_chosen || *thinking || *reverted || *images || *no_mask || *review)
        {
            let page = Line::about("export").option("out", "session.html");
            return Err(CommandError::user(anyhow!("a session's own file is written as it is"))
                .hinted("choose a form with --as html, markdown or json")
                .hinted(page.to("write a page")));
        }
        if form == Some(Form::Html) && cfg!(not(feature = "page")) {
            return Err(CommandError::user(anyhow!("this program was built without pages")));
        }
        if *review && form != Some(Form::Html) {
            return Err(CommandError::user(anyhow!("only a page can be reviewed")));
        }
        Ok(form)
    }

    fn choices(&self, form: Form) -> Choices {
        let tools = if form == Form::Html { Tools::Short } else { Tools::Full };
        Choices {
            thinking: self.thinking,
            reverted: self.reverted,
            images: self.images,
            tools: self.tools.unwrap_or(tools),
            from: self.from,
            to: self.to,
            sharing: if self.no_mask { Sharing::Local } else { Sharing::Shared },
        }
    }
}

/// A conversation that was read, with its damaged entries.
pub(super) struct Reading {
    pub(super) said: Conversation,
    pub(super) damaged: Vec<Damaged>,
}

/// Reads a session as its reader gets it.
pub(super) fn read(
    context: &mut Context,
    opened: &Opened,
    choices: &Choices,
    branch: Option<&str>,
    masks: Option<Masks>,
) -> Result<Reading, CommandError> {
    let session = &opened.at()?;
    let target = branch.map(|name| verbs::branch_end(session, name)).transpose()?;
    let mut course = verbs::course(session, target.as_ref())?;
    let mut lines = Vec::new();
    course.each(|mut read| {
        lines.append(&mut read);
        Ok::<_, CommandError>(())
    })?;
    let sub_agents = course.sub_agents(&lines)?;
    let is_compared = session.state.entries() <= COMPARED;
    // What cannot be compared hides only the losses.
    let boundaries = is_compared.then(|| verbs::audit_boundaries(session).unwrap_or_default());
    let asked = models::usual_request(context);
    let full = verbs::fullness(session, &asked).ok();
    let said = lines.iter().flat_map(|line| &line.messages);
    let model = said.filter_map(|message| message.model.as_ref()).next_back().cloned();
    let times = || lines.iter().filter_map(|line| line.time);
    let shown = branch.unwrap_or(session.state.current());
    let facts = Facts {
        model,
        branch: Some(shown.to_owned()).filter(|name| name != undertext::model::MAIN),
        started: times().min(),
        ended: times().max(),
        window: full.map(|full| full.window.tokens),
        ..facts(session)?
    };
    let masking = masks.map(|masks| masking(context, session, masks)).transpose()?;
    let damaged = course.damaged()?;
    let forks = std::mem::take(&mut course.forks);
    let chooser = Chooser::new(choices, masking.as_ref());
    let boundaries = boundaries.unwrap_or_default();
    let mut said = chooser.choose(facts, lines, forks, sub_agents, boundaries);
    said.effort = verbs::effort(session, &Prices::with(&context.settings()?.prices))?;
    if choices.from.is_some() || choices.to.is_some() {
        said.effort.all = Expense::default();
    }
    Ok(Reading { said, damaged })
}

/// Returns what the head of every document says.
fn facts(session: &At<'_>) -> Result<Facts, CommandError> {
    let card = session.archive.store().card(session.key)?;
    let title = card.title.as_deref().map(first_line).filter(|title| !title.is_empty());
    Ok(Facts {
        title: title.unwrap_or("Session").to_owned(),
        id: session.name.id.clone(),
        agent: session.format.name().to_owned(),
        program: program_of(session.format),
        folder: card.folder,
        ..Facts::default()
    })
}

/// Returns what is masked in a session.
fn masking(context: &Context, session: &At<'_>, mut masks: Masks) -> Result<Masking, CommandError> {
    let card = session.archive.store().card(session.key)?;
    masks.names = names(context, card.folder.as_deref(), masks.names);
    Ok(verbs::masking(session, masks)?)
}

/// Returns the agent of a format as people call it.
fn program_of(format: &dyn undertext::wire::Format) -> String {
    let is_its = |agent: &&str| agent.to_lowercase().starts_with(format.name());
    let names = format.traits().folders.iter().map(|folder| folder.agent);
    names.into_iter().find(is_its).unwrap_or(format.name()).to_owned()
}

/// Returns the names to mask: of this user and machine, and of the user whose folder a session is in.
fn names(
    context: &Context,
    folder: Option<&str>,
    mut names: Vec<(String, &'static str)>,
) -> Vec<(String, &'static str)> {
    if names.is_empty() {
        return names;
    }
    names.clear();
    let home = context.env.home.as_ref().and_then(|home| home.to_str());
    names.extend(home.filter(|home| home.len() > 1).map(|home| (home.to_owned(), "~")));
    let of_folder = folder.and_then(|folder| {
        let below = ["/home/", "/Users/"].iter().find_map(|home| folder.strip_prefix(home))?;
        below.split('/').next()
    });
    let users = context.env.user.as_deref().into_iter().chain(of_folder);
    let hosts = context.env.host.as_deref().into_iter();
    let all = users.map(|name| (name, "user")).chain(hosts.map(|name| (name, "host")));
    let all = all.filter(|(name, _)| name.len() > 2 && !COMMON.contains(name));
    names.extend(all.map(|(name, mark)| (name.to_owned(), mark)));
    names
}

/// Returns what a document of this form masks.
fn masks(context: &mut Context, form: Form) -> Result<Masks, CommandError> {
    let masks = settings::masks(context)?;
    if form != Form::Html {
        return Ok(masks);
    }
    // A page is meant for others. That there are names says that they are masked.
    let names = vec![(String::new(), "")];
    Ok(Masks { homes: true, emails: true, is_marked: true, names, ..masks })
}

/// Writes a document of one session, or pages of several with an index.
pub(super) fn export(
    context: &mut Context,
    options: &Options,
    form: Form,
    sessions: &[Opened],
    target: Option<&Target<'_>>,
) -> Result<Exit, CommandError> {
    match sessions {
        [opened] if form != Form::Html => plain(context, options, form, opened, target),
        _ => pages(context, options, sessions, target),
    }
}

/// Writes a session as Markdown or JSON, without holding all of it.
fn plain(
    context: &mut Context,
    options: &Options,
    form: Form,
    opened: &Opened,
    target: Option<&Target<'_>>,
) -> Result<Exit, CommandError> {
    let session = &opened.at()?;
    let choices = options.choices(form);
    let masks = if options.no_mask { None } else { Some(masks(context, form)?) };
    let masking = masks.map(|masks| masking(context, session, masks)).transpose()?;
    let mut chooser = Chooser::new(&choices, masking.as_ref());
    let zone = context.env.zone;
    let mut damaged = Vec::new();
    let mut write = |out: &mut dyn Write| {
        damaged = entries(out, session, options.branch.as_deref(), form, zone, &mut chooser)?;
        Ok(())
    };
    let Some(target) = target else {
        context.output.page()?;
        write(&mut context.output)?;
        Summary::of(&chooser).tell(context, options.no_mask);
        return context.tell_damaged(&damaged);
    };
    let bytes = put(context, target, target.path, &mut write)?;
    context.answer(&Exported { session: &session.name.id, path: target.path, bytes })?;
    let name = safe::path(target.path);
    context.output.note(&format!("Wrote {} to {name}", units::size(bytes)));
    Summary::of(&chooser).tell(context, options.no_mask);
    context.tell_damaged(&damaged)
}

/// Writes pages.
fn pages(
    context: &mut Context,
    options: &Options,
    sessions: &[Opened],
    target: Option<&Target<'_>>,
) -> Result<Exit, CommandError> {
    let choices = options.choices(Form::Html);
    let mut exit = Exit::Yes;
    let mut listed = Vec::new();
    for opened in sessions {
        let masks = if options.no_mask { None } else { Some(masks(context, Form::Html)?) };
        let reading = read(context, opened, &choices, options.branch.as_deref(), masks)?;
        let (text, summary) = page(context, &reading.said, choices.tools);
        let Some(target) = target else {
            context.output.page()?;
            context.output.write_all(text.as_bytes())?;
            summary.tell(context, options.no_mask);
            exit = exit.max(context.tell_damaged(&reading.damaged)?);
            continue;
        };
        let is_one = sessions.len() == 1;
        let path = if is_one { target.path.to_owned() } else { beside(target.path, opened) };
        let bytes = put(context, target, &path, &mut |file| Ok(file.write_all(text.as_bytes())?))?;
        context.answer(&Exported { session: &opened.session.name.id, path: &path, bytes })?;
        let name = safe::path(&path);
        context.output.note(&format!("Wrote {} to {name}", units::size(bytes)));
        summary.tell(context, options.no_mask);
        exit = exit.max(context.tell_damaged(&reading.damaged)?);
        listed.push((path, summary.listed));
    }
    if let Some(target) = target.filter(|_| listed.len() > 1) {
        let index = index(&listed);
        let write = &mut |file: &mut dyn Write| Ok(file.write_all(index.as_bytes())?);
        let bytes = put(context, target, target.path, write)?;
        let name = safe::path(target.path);
        context.output.note(&format!("Wrote an index, {}, to {name}", units::size(bytes)));
    }
    if options.review
        && let Some((first, _)) = listed.first()
    {
        review(context, first);
    }
    Ok(exit)
}

/// Returns the name of a session's page next to the index.
fn beside(index: &Path, opened: &Opened) -> PathBuf {
    let stem = index.file_stem().map(OsString::from).unwrap_or_default();
    let mut name = stem;
    name.push(format!("-{}", file_name(&opened.session)));
    name.push(".html");
    index.with_file_name(name)
}

/// Returns a session's id as part of a file's name.
fn file_name(session: &Session) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    session.name.id.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

/// Writes a file, and returns its size.
fn put(
    context: &Context,
    target: &Target<'_>,
    path: &Path,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<(), CommandError>,
) -> Result<u64, CommandError> {
    let path = context.env.current_dir.join(path);
    write_file(&path, target.force, target.leftovers, write)?;
    Ok(fs::metadata(&path)?.len())
}

/// Opens a page in the browser, with what was masked marked.
fn review(context: &mut Context, path: &Path) {
    let path = context.env.current_dir.join(path);
    let url = format!("file://{}#review", path.display());
    if !super::env::open_in_browser(&url) {
        context.output.note(&format!("To review it, open {}", safe::line(&url)));
    }
}

/// What was written.
#[derive(Default)]
struct Summary {
    left_out: LeftOut,
    secrets: u64,
    /// What was masked: its kind, how often, and where.
    masked: Vec<(String, u64, String)>,
    listed: Listed,
}

#[cfg(feature = "page")]
type Listed = Option<std::rc::Rc<crate::page::Listed>>;
#[cfg(not(feature = "page"))]
type Listed = Option<()>;

impl Summary {
    fn of(chooser: &Chooser<'_>) -> Self {
        let (left_out, secrets) = chooser.done();
        Self { left_out, secrets, ..Self::default() }
    }

    fn tell(&self, context: &mut Context, no_mask: bool) {
        let left = left_out(&self.left_out);
        if !left.is_empty() {
            context.output.note(&format!("Left out: {}", left.join(", ")));
        }
        if self.masked.is_empty() && self.secrets > 0 && !no_mask {
            let masked = counted(self.secrets, "secret is", "secrets are");
            context.output.note(&format!("{masked} masked; --no-mask shows them"));
        }
        for (kind, count, places) in &self.masked {
            context.output.note(&format!(
                "Masked: {kind}, {}, in {places}",
                counted(*count, "place", "places")
            ));
        }
    }
}

/// Returns what was left out, in words.
fn left_out(left: &LeftOut) -> Vec<String> {
    let parts = [
        (left.turns, "reverted turn", "reverted turns"),
        (left.thoughts, "thought", "thoughts"),
        (left.images, "picture", "pictures"),
        (left.private, "environment or key file", "environments or key files"),
        (left.outside, "turn outside of the range", "turns outside of the range"),
    ];
    let parts = parts.into_iter().filter(|(n, ..)| *n > 0);
    parts.map(|(n, one, many)| counted(n, one, many)).collect()
}

#[cfg(not(feature = "page"))]
fn page(_: &Context, _: &Conversation, _: Tools) -> (String, Summary) {
    (String::new(), Summary::default())
}

#[cfg(feature = "page")]
fn page(context: &Context, said: &Conversation, tools: Tools) -> (String, Summary) {
    use crate::page::{self, Frame, Manner, PageView};
    let mut summary =
        Summary { left_out: said.left_out, secrets: said.secrets, ..Summary::default() };
    let view = PageView::new(said, Manner { tools, zone: context.env.zone });
    let mut secrets = 0;
    for (kind, (count, turns)) in &view.ink.found {
        let is_name = ["home folder", "user name", "host name", "e-mail"].contains(&kind.as_str());
        secrets += if is_name { 0 } else { *count };
        summary.masked.push((kind.clone(), *count, page::places(turns)));
    }
    let mut foot = vec![format!("undertext {}", env!("CARGO_PKG_VERSION")), said.facts.id.clone()];
    let mut left = left_out(&said.left_out);
    if secrets > 0 {
        foot.push(format!("{} masked", counted(secrets, "secret", "secrets")));
    }
    if !left.is_empty() {
        let last = left.pop().unwrap_or_default();
        let words = if left.is_empty() { last } else { format!("{} and {last}", left.join(", ")) };
        foot.push(format!("{words} left out by the author"));
    }
    summary.listed = Some(std::rc::Rc::new(page::listed("", &view)));
    (page::conversation(said, &view, &Frame { foot, ..Frame::default() }), summary)
}

#[cfg(not(feature = "page"))]
fn index(_: &[(PathBuf, Listed)]) -> String {
    String::new()
}

#[cfg(feature = "page")]
fn index(listed: &[(PathBuf, Listed)]) -> String {
    use crate::page::{self, Frame};
    let rows = listed.iter().filter_map(|(path, row)| {
        let link = path.file_name()?.to_str()?;
        Some(row.as_ref()?.with_link(link))
    });
    let foot = vec![format!("undertext {}", env!("CARGO_PKG_VERSION"))];
    page::index(&rows.collect::<Vec<_>>(), &Frame { foot, ..Frame::default() })
}

/// Writes the entries of a session, a batch at a time: a first pass pairs calls with results, a second one writes. Returns the
/// damaged entries.
fn entries(
    out: &mut dyn Write,
    session: &At<'_>,
    branch: Option<&str>,
    form: Form,
    zone: Zone,
    chooser: &mut Chooser<'_>,
) -> Result<Vec<Damaged>, CommandError> {
    let target = branch.map(|name| verbs::branch_end(session, name)).transpose()?;
    let mut course = verbs::course(session, target.as_ref())?;
    let reverted = chooser.forks(std::mem::take(&mut course.forks));
    let (mut pairs, mut chosen, mut first) = (Pairs::default(), EntrySet::default(), None);
    course.each(|lines| {
        for line in lines.iter().filter(|line| chooser.has(line)) {
            pairs.see(line, &BTreeMap::new());
            chosen.insert(line.n);
            first = first.take().or_else(|| prompt(line));
        }
        Ok::<_, CommandError>(())
    })?;
    let facts = chooser.facts(facts(session)?, first);
    let front = Front {
        title: &facts.title,
        session: &facts.id,
        agent: &facts.agent,
        folder: facts.folder.as_deref(),
        zone,
    };
    let Choices { tools, thinking, .. } = *chooser.choices;
    let mut document = match form {
        Form::Json => None,
        _ => Some(Document::begin(out, front)?),
    };
    let nested = pairs.answers(&[]).lines;
    course.each(|lines| {
        let mut masked = |line| with_tools(chooser.line(line), tools);
        let lines = lines.into_iter().filter(|line| chosen.contains(line.n));
        let Some(document) = &mut document else {
            return Ok::<_, CommandError>(json_lines(out, lines.map(masked), thinking)?);
        };
        // A result is read with its call.
        let lines: Vec<_> =
            lines.filter(|line| !nested.contains(line.n)).map(&mut masked).collect();
        let answers = course.read(&pairs.wanted(&lines))?;
        let answers: Vec<_> = answers.into_iter().map(masked).collect();
        Ok(document.add(out, &lines, &pairs.answers(&answers))?)
    })?;
    for one in reverted.into_iter().filter(|one| !one.fork.lines.is_empty()) {
        let lines = one.fork.lines.into_iter().map(|line| with_tools(line, tools));
        let Some(document) = &mut document else {
            json_lines(out, lines, thinking)?;
            continue;
        };
        let lines: Vec<_> = lines.collect();
        let mut pairs = Pairs::default();
        for line in &lines {
            pairs.see(line, &BTreeMap::new());
        }
        document.branch(out, "Reverted:")?;
        document.add(out, &lines, &pairs.answers(&lines))?;
    }
    if let Some(document) = document {
        document.end(out)?;
    }
    Ok(course.damaged()?)
}

fn json_lines(
    out: &mut dyn Write,
    lines: impl Iterator<Item = verbs::Line>,
    thinking: bool,
) -> io::Result<()> {
    for mut line in lines {
        let is_kept = |block: &Block| thinking || !matches!(block, Block::Thinking(_));
        line.messages.iter_mut().for_each(|message| message.blocks.retain(is_kept));
        match line.damaged() {
            Some(damaged) => json::line(out, &damaged)?,
            None => json::line(out, &Entry::from(&line))?,
        }
    }
    Ok(())
}
