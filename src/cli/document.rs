//! Documents: a session as a page of HTML, as Markdown or as JSON, for `export`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use undertext::model::CheckpointNumber;
use undertext::report::{Entry, Exported, Line};
use undertext::verbs::{self, Damaged, Masks, Session};

use super::common::{counted, first_line};
use super::export::{Target, write_file};
use super::{CommandError, Context, Exit, Opened, complete, models, settings};
use crate::page::chosen::{Choices, Chooser, Conversation, Facts, LeftOut, Sharing, Tools};
use crate::render::answers::Pairs;
use crate::render::markdown::{Document, Front};
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
    let card = session.archive.store().card(session.key)?;
    let target = branch.map(|name| verbs::branch_end(session, name)).transpose()?;
    let course = verbs::course(session, target.as_ref())?;
    let is_compared = session.state.entries() <= COMPARED;
    // What cannot be compared hides only the losses.
    let boundaries = is_compared.then(|| verbs::audit_boundaries(session).unwrap_or_default());
    let asked = models::usual_request(context);
    let full = verbs::fullness(session, &asked).ok();
    let said = course.lines.iter().flat_map(|line| &line.messages);
    let model = said.filter_map(|message| message.model.as_ref()).next_back().cloned();
    let times = || course.lines.iter().filter_map(|line| line.time);
    let title = card.title.as_deref().map(first_line).filter(|title| !title.is_empty());
    let current = session.state.current();
    let shown = branch.unwrap_or(current);
    let facts = Facts {
        title: title.unwrap_or("Session").to_owned(),
        id: session.name.id.clone(),
        agent: session.format.name().to_owned(),
        program: program_of(session.format),
        model,
        folder: card.folder.clone(),
        branch: Some(shown.to_owned()).filter(|name| name != undertext::model::MAIN),
        started: times().min(),
        ended: times().max(),
        window: full.map(|full| full.window.tokens),
    };
    let masking = masks.map(|mut masks| {
        masks.names = names(context, card.folder.as_deref(), masks.names);
        verbs::masking(session, masks)
    });
    let masking = masking.transpose()?;
    let damaged = course.damaged.clone();
    let chooser = Chooser::new(choices, masking.as_ref());
    let said = chooser.choose(facts, course, boundaries.unwrap_or_default());
    Ok(Reading { said, damaged })
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
    let choices = options.choices(form);
    let mut exit = Exit::Yes;
    let mut written = Vec::new();
    let mut all = Vec::new();
    for opened in sessions {
        let masks = if options.no_mask { None } else { Some(masks(context, form)?) };
        let reading = read(context, opened, &choices, options.branch.as_deref(), masks)?;
        all.push(reading);
    }
    let Some(target) = target else {
        context.output.page()?;
        for reading in &all {
            let (text, summary) = render(context, form, reading, choices.tools)?;
            context.output.write_all(text.as_bytes())?;
            summary.tell(context, options.no_mask);
            exit = exit.max(context.tell_damaged(&reading.damaged)?);
        }
        return Ok(exit);
    };
    let is_one = all.len() == 1;
    let mut listed = Vec::new();
    for (opened, reading) in sessions.iter().zip(&all) {
        let path = if is_one { target.path.to_owned() } else { beside(target.path, opened) };
        let (text, summary) = render(context, form, reading, choices.tools)?;
        if !is_one {
            listed.push((path.clone(), summary.listed.clone()));
        }
        let bytes = put(context, target, &path, text.as_bytes())?;
        context.answer(&Exported { session: &opened.session.name.id, path: &path, bytes })?;
        let name = safe::path(&path);
        context.output.note(&format!("Wrote {} to {name}", units::size(bytes)));
        summary.tell(context, options.no_mask);
        exit = exit.max(context.tell_damaged(&reading.damaged)?);
        written.push(path);
    }
    if !is_one {
        let bytes = put(context, target, target.path, index(&listed).as_bytes())?;
        let name = safe::path(target.path);
        context.output.note(&format!("Wrote an index, {}, to {name}", units::size(bytes)));
    }
    if options.review
        && let Some(first) = written.first()
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

fn put(
    context: &Context,
    target: &Target<'_>,
    path: &Path,
    text: &[u8],
) -> Result<u64, CommandError> {
    let path = context.env.current_dir.join(path);
    write_file(&path, target.force, target.leftovers, &mut |file| Ok(file.write_all(text)?))?;
    Ok(text.len() as u64)
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

/// Renders a conversation.
fn render(
    context: &Context,
    form: Form,
    reading: &Reading,
    tools: Tools,
) -> Result<(String, Summary), CommandError> {
    let Reading { said, .. } = reading;
    let summary = Summary { left_out: said.left_out, secrets: said.secrets, ..Summary::default() };
    if form == Form::Html {
        return Ok(page(context, said, tools, summary));
    }
    let mut said = said.clone();
    said.shorten(tools);
    let mut text = Vec::new();
    match form {
        Form::Json => json_lines(&mut text, &said)?,
        _ => markdown(&mut text, context, &said)?,
    }
    Ok((String::from_utf8_lossy(&text).into_owned(), summary))
}

#[cfg(not(feature = "page"))]
fn page(_: &Context, _: &Conversation, _: Tools, summary: Summary) -> (String, Summary) {
    (String::new(), summary)
}

#[cfg(feature = "page")]
fn page(
    context: &Context,
    said: &Conversation,
    tools: Tools,
    mut summary: Summary,
) -> (String, Summary) {
    use crate::page::{self, Frame, Manner, PageView};
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

fn json_lines(out: &mut dyn Write, said: &Conversation) -> io::Result<()> {
    let forks = said.reverted.iter().flat_map(|one| &one.fork.lines);
    for line in said.lines.iter().chain(forks) {
        match line.damaged() {
            Some(damaged) => json::line(out, &damaged)?,
            None => json::line(out, &Entry::from(line))?,
        }
    }
    Ok(())
}

fn markdown(out: &mut dyn Write, context: &Context, said: &Conversation) -> io::Result<()> {
    let facts = &said.facts;
    let front = Front {
        title: &facts.title,
        session: &facts.id,
        agent: &facts.agent,
        folder: facts.folder.as_deref(),
        zone: context.env.zone,
    };
    let mut document = Document::begin(out, front)?;
    let add = |document: &mut Document<'_>, lines: &[verbs::Line], out: &mut dyn Write| {
        let mut pairs = Pairs::default();
        for line in lines {
            pairs.see(line, &BTreeMap::new());
        }
        document.add(out, lines, &pairs.answers(lines))
    };
    add(&mut document, &said.lines, out)?;
    for one in said.reverted.iter().filter(|one| !one.fork.lines.is_empty()) {
        document.branch(out, "Reverted:")?;
        add(&mut document, &one.fork.lines, out)?;
    }
    document.end(out)
}
