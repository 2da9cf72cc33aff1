//! Picking: a person at a terminal picks a session if a word does not find one, or a turn if `revert` names none.
//!
//! Invariant: no picker opens for a program. stdin and stderr must be terminals that understand escape sequences, without JSON or
//! quiet mode.
//! Invariant: a pick has the same effect as typing its word. Picking itself writes nothing.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::Context as _;
use undertext::model::{Block, Kind, Message, SessionName, Timestamp};
use undertext::store::{Listed, SessionFilter};
use undertext::verbs::{self, Archive, Detail, GraphNode, Line, Session, SessionError};

use super::common::{self, counted, within};
use super::env::Env;
use super::revert::{Side, no_place};
use super::{CommandError, Context, Opened, pointed};
use crate::browse::{self, Picker, Piece, Preview, Row};
use crate::render::call::Caller;
use crate::render::style::Label;
use crate::render::time::Zone;
use crate::render::units::DIGITS;
use crate::render::{answers, harness};

/// Commands that programs call, even if they have a terminal.
const CALLED: [&str; 2] = ["completions", "hook"];
/// Commands that take a text, so that a word that finds no session may be part of that text.
const WITH_TEXT: [&str; 4] = ["append", "checkpoint", "search", "turn"];
/// Width of the folder column.
const FOLDER: usize = 16;
/// Number of last entries that a session's preview searches for the last answer, and number of turns it shows.
const LAST: usize = 16;
const TURNS: usize = 4;
/// Number of entries that a turn's preview reads, and number of lines it shows of each text.
const FIRST: usize = 24;
const LINES: usize = 10;

/// Returns true if a person can be asked to pick something.
pub(crate) fn may_pick(context: &Context) -> bool {
    let env = &context.env;
    let takes_sequences = env.variable("TERM").is_some() && !env.is_dumb;
    let is_person = env.terminal.stdin && env.terminal.stderr && takes_sequences;
    let is_program = context.json || context.output.is_quiet() || CALLED.contains(&&*context.verb);
    is_person && !is_program && browse::has_room()
}

/// Lets a person pick a session if a word finds none or several. Returns `None` if nobody can be asked.
pub(super) fn pick_session(
    context: &mut Context,
    archive: &Archive,
    wanted: Option<&OsStr>,
    error: &SessionError,
) -> Result<Option<Session>, CommandError> {
    let word: Option<OsString> = wanted.map(OsStr::to_owned);
    if let Some((_, name)) = context.picked.as_ref().filter(|(picked, _)| *picked == word) {
        return Ok(archive.session(name)?);
    }
    if archive.root().is_none() || !may_pick(context) {
        return Ok(None);
    }
    let (why, query) = match error {
        SessionError::NoSessionHere(folder) => {
            (format!("there is no session in {}", context.env.homely(folder)), "")
        }
        SessionError::NoSession(_) if WITH_TEXT.contains(&&*context.verb) => return Ok(None),
        SessionError::NoSession(word) => (format!("there is no session {word:?}"), &**word),
        error => (error.to_string(), ""),
    };
    // Previews overlay what live files have beyond the store. An archive that is about to be changed must not have that
    // overlay.
    let root = context.root()?;
    let reader = context.reader(&root)?;
    let sessions = match error {
        SessionError::AmbiguousSession { matches, .. } => matches.clone(),
        _ => all_sessions(&context.env, &reader)?,
    };
    if sessions.is_empty() {
        return Ok(None);
    }
    let (zone, now) = (context.env.zone, context.env.ambient().now());
    let homely = |folder: &String| context.env.homely(folder.as_ref());
    let folder_of = |listed: &Listed| listed.card.folder.as_ref().map(homely).unwrap_or_default();
    let folders: Vec<String> = sessions.iter().map(folder_of).collect();
    let open = verbs::open_sessions(&pointed::agent_folders(&context.env));
    let open = |name: &SessionName| {
        open.iter().any(|open| open.format == name.format && open.session == name.id)
    };
    let rows = session_rows(&sessions, &folders, &open, zone, now);
    let mut preview = |n: usize| {
        let found = sessions.get(n).zip(folders.get(n));
        let shown = found.map(|(listed, folder)| show_session(&reader, listed, folder, zone));
        shown.unwrap_or_default()
    };
    let prompt = format!("{}: which session? ({why})", context.verb);
    let picked = pick(context, &prompt, rows, query, &mut preview)?;
    let picked = sessions.get(picked).map(|listed| listed.name.clone());
    let session = picked.as_ref().map(|name| archive.session(name)).transpose()?.flatten();
    context.picked = picked.map(|name| (word, name));
    Ok(session)
}

/// Lets a person pick a turn, and returns its place.
pub(super) fn pick_place(
    context: &mut Context,
    wanted: Option<&OsStr>,
    side: Side,
) -> Result<String, CommandError> {
    let opened = context.find(wanted)?;
    context.follow(&opened);
    let turns = Turns::of(verbs::graph(&opened.at()?, Detail::default())?.nodes);
    let (zone, now) = (context.env.zone, context.env.ambient().now());
    let rows = turns.rows(zone, now);
    if rows.is_empty() {
        return Err(no_place());
    }
    let mut preview = |n: usize| turns.show(&opened, n, side).unwrap_or_default();
    let title = opened.archive.store().card(opened.session.key)?.title;
    let title = common::titled(title.as_deref());
    let prompt = match side {
        Side::Before => format!("revert to just before which turn? ({title})"),
        Side::After => format!("revert to just after which turn? ({title})"),
    };
    let picked = pick(context, &prompt, rows, "", &mut preview)?;
    turns.place(picked).ok_or_else(no_place)
}

fn pick(
    context: &mut Context,
    prompt: &str,
    rows: Vec<Row>,
    query: &str,
    preview: &mut dyn FnMut(usize) -> Preview,
) -> Result<usize, CommandError> {
    let mut picker = Picker::new(prompt, rows, query, context.output.lend()?);
    let picked = browse::pick(&mut picker, preview).context("cannot draw on the terminal")?;
    picked.ok_or_else(|| {
        context.output.note("Nothing picked");
        CommandError::declined()
    })
}

/// Returns all sessions, newest first; those of this folder come before the others.
fn all_sessions(env: &Env, archive: &Archive) -> Result<Vec<Listed>, CommandError> {
    let mut all = archive.sessions(&SessionFilter::default())?;
    let folder = Some(within(env, Path::new(".")));
    let here = SessionFilter { folder, ..SessionFilter::default() };
    let here: BTreeSet<_> = archive.sessions(&here)?.iter().map(|listed| listed.key).collect();
    all.sort_by_key(|listed| !here.contains(&listed.key));
    Ok(all)
}

fn session_rows(
    sessions: &[Listed],
    folders: &[String],
    is_open: &dyn Fn(&SessionName) -> bool,
    zone: Zone,
    now: Timestamp,
) -> Vec<Row> {
    let rows = sessions.iter().zip(folders).map(|(listed, folder)| {
        let Listed { name, card, .. } = listed;
        Row::new(&common::titled(card.title.as_deref()))
            .before(Label::Head, if is_open(name) { "●" } else { "" })
            .before(Label::Id, &common::beginning(&name.id, DIGITS))
            .before(Label::Time, &age(card.active, zone, now))
            .after(Label::Dim, &name.format)
            .after(Label::Dim, &common::end_of(folder, FOLDER))
            .found_by(&name.id)
            .found_by(&name.format)
            .found_by(folder)
    });
    rows.collect()
}

/// Formats an age briefly.
fn age(time: Option<Timestamp>, zone: Zone, now: Timestamp) -> String {
    let age = time.map(|time| zone.age(now, time)).unwrap_or_default();
    age.strip_suffix(" ago").unwrap_or(&age).to_owned()
}

/// Previews a session: its title, where and when it was, and its last turns.
fn show_session(archive: &Archive, listed: &Listed, folder: &str, zone: Zone) -> Preview {
    let Listed { name, card, .. } = listed;
    let times = card.started.zip(card.active);
    let times = times.map(|(from, to)| format!("{} to {}", zone.minute(from), zone.minute(to)));
    let turns = counted(card.turns, "turn", "turns");
    let facts = [folder, &name.format, &times.unwrap_or_default(), &turns, &name.id];
    let facts: Vec<&str> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    let mut shown = vec![
        Piece::new(Label::Heading, &common::titled(card.title.as_deref())),
        Piece::new(Label::Dim, &facts.join(" · ")),
    ];
    // Unreadable data is omitted here; a command that reads the session reports it.
    let opened = archive.session(name).ok().flatten().and_then(|it| archive.at(&it).ok());
    let Some(session) = opened else { return shown };
    let _is_grown = verbs::follow(&session);
    let Ok(session) = session.again() else { return shown };
    let last = verbs::log(&session, None, LAST).map(|log| log.lines).unwrap_or_default();
    let answers = last.iter().rev().take_while(|line| line.kind != Kind::User);
    let mut answers = answers.filter(|line| line.kind == Kind::Assistant);
    let mut answer = answers.find_map(|line| said(&line.messages));
    let turns = verbs::newest_checkpoints(&session, TURNS).unwrap_or_default();
    for words in turns.iter().rev().filter_map(|turn| turn.words.as_deref()) {
        let prompt = common::first_line(words).to_owned();
        let prompt = verbs::words(words).unwrap_or(prompt);
        shown.push(Piece::new(Label::Plain, ""));
        shown.push(Piece::new(Label::User, &format!("you  {prompt}")));
        shown.extend(answer.take().map(|text| Piece::new(Label::Plain, &text)));
    }
    shown
}

/// Returns the first line of the texts.
fn said(messages: &[Message]) -> Option<String> {
    let texts = messages.iter().map(Message::text);
    let mut lines = texts.map(|text| common::first_line(&harness::unwrap(&text)).to_owned());
    lines.find(|line| !line.is_empty())
}

/// The turns of a session, newest first, and their graph.
struct Turns {
    nodes: Vec<GraphNode>,
    /// The first node of each turn.
    begin: Vec<usize>,
    /// The nodes of the current path, from its end to its start.
    path: Vec<usize>,
}

impl Turns {
    fn of(nodes: Vec<GraphNode>) -> Self {
        let mut begin: Vec<usize> =
            nodes.iter().filter(|node| node.checkpoint.is_some()).map(|node| node.node).collect();
        begin.sort_by_key(|n| std::cmp::Reverse(nodes.get(*n).and_then(|node| node.checkpoint)));
        let head = nodes.iter().find(|node| node.is_head).map(|node| node.node);
        let path = ancestors(&nodes, head).collect();
        Self { nodes, begin, path }
    }

    fn turn(&self, n: usize) -> Option<&GraphNode> {
        self.nodes.get(*self.begin.get(n)?)
    }

    fn place(&self, n: usize) -> Option<String> {
        Some(format!("@{}", self.turn(n)?.checkpoint?))
    }

    fn rows(&self, zone: Zone, now: Timestamp) -> Vec<Row> {
        let turns = (0..self.begin.len()).filter_map(|n| Some((self.turn(n)?, self.place(n)?)));
        let rows = turns.map(|(turn, place)| {
            let is_reverted = !self.path.contains(&turn.node);
            Row::new(&turn.words)
                .before(Label::Checkpoint, &place)
                .before(Label::Time, &age(turn.time, zone, now))
                .after(Label::Dim, if is_reverted { "reverted" } else { "" })
                .found_by(&place)
        });
        rows.collect()
    }

    /// Returns how many turns leave the current path when a turn is reverted to.
    fn moving(&self, turn: &GraphNode, side: Side) -> usize {
        let from = match side {
            Side::Before => turn.parents.first().copied(),
            Side::After => Some(turn.node),
        };
        let stays = ancestors(&self.nodes, from)
            .find_map(|node| self.path.iter().position(|on_path| *on_path == node));
        let moving = self.path.iter().take(stays.unwrap_or(self.path.len()));
        moving.filter(|node| self.begin.contains(node)).count()
    }

    /// Returns what a person knows a turn by: its prompt and the beginning of the answer, and how many turns move.
    fn show(&self, opened: &Opened, n: usize, side: Side) -> Option<Preview> {
        let (turn, place) = (self.turn(n)?, self.place(n)?);
        let moving = match self.moving(turn, side) {
            0 => "no turn moves".to_owned(),
            1 => "1 turn moves to a branch".to_owned(),
            moving => format!("{moving} turns move to a branch"),
        };
        let side = if side == Side::Before { "before" } else { "after" };
        let mut shown = vec![Piece::new(Label::Heading, &format!("Just {side} {place}: {moving}"))];
        let mut follows_call = false;
        for line in beginning(opened, &place).unwrap_or_default() {
            let (label, speaker) = match line.kind {
                Kind::User => (Label::User, "you  "),
                _ => (Label::Plain, ""),
            };
            for block in line.messages.iter().flat_map(Message::parts) {
                let (text, is_call) = match block {
                    Block::Text(text) => {
                        (format!("{speaker}{}", harness::unwrap(text).trim()), false)
                    }
                    Block::Call { name, input, .. } => {
                        let title = Caller { name, folder: None, whole: false }.say(input).title;
                        (format!("▸ {}", common::first_line(&title)), true)
                    }
                    _ => continue,
                };
                if !(follows_call && is_call) {
                    shown.push(Piece::new(Label::Plain, ""));
                }
                shown.extend(text.lines().take(LINES).map(|line| Piece::new(label, line)));
                follows_call = is_call;
            }
        }
        Some(shown)
    }
}

/// Returns the first entries of a turn that say something.
fn beginning(opened: &Opened, place: &str) -> Option<Vec<Line>> {
    let session = &opened.at().ok()?;
    let passage = verbs::find_passage(session, place).ok()?;
    let entries = passage.entries.get(..FIRST).unwrap_or(&passage.entries);
    let log = verbs::log_of(session, &passage.target, entries, FIRST);
    let lines = log.ok()?.lines.into_iter();
    Some(lines.filter(|line| !answers::is_own(line)).collect())
}

/// Iterates over a node and its ancestors along its path.
fn ancestors(nodes: &[GraphNode], from: Option<usize>) -> impl Iterator<Item = usize> {
    let next = |node: &usize| nodes.get(*node)?.parents.first().copied();
    std::iter::successors(from, next)
}
