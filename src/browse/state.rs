//! The state of `browse`: keys and answers come in, effects go out.
//!
//! ```text
//! key ──> Browse ──> Effect ──> the face runs a verb ──> Answer ──> Browse ──> a buffer
//! ```
//!
//! The state is pure: it touches neither the terminal nor the store, and it never waits. It has no rule of its own about
//! sessions: what it shows are reports, and what it changes are command lines.
//!
//! Invariant: [`Effect::Run`] is only returned for `enter` in a dialog that shows what the change does.

use undertext::model::{EntryId, Kind, SessionName, Timestamp};
use undertext::report::{GraphNode, Line};

use super::data::{Answer, Effect, Graph, Report, Sessions, TurnRow};
use super::dialog::{Change, Dialog, Field, Help, Search, Text};
use super::filter::Filter;
use super::keys::{Act, Keys, Pane, TABLE};
use super::list::{Cursor, Way};
use super::matching::Texts;
use super::reader::Reader;
use crate::render::style::{Label, Span, Styles};
use crate::render::time::Zone;

/// How long a week is, in milliseconds.
const WEEK: i64 = 7 * 24 * 3_600_000;
/// Maximum number of messages that are remembered.
const MESSAGES: usize = 200;

/// Which sessions are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Scope {
    Here,
    #[default]
    All,
    Week,
}

/// How much of the screen the focused pane gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Zoom {
    #[default]
    Even,
    Larger,
    Whole,
}

/// The list of sessions and what narrows it.
#[derive(Default)]
pub(super) struct List {
    pub(super) all: Sessions,
    texts: Texts,
    /// The rows that are shown.
    pub(super) shown: Vec<usize>,
    pub(super) cursor: Cursor,
    pub(super) scope: Scope,
    pub(super) agent: Option<String>,
    pub(super) filter: Field,
    /// The conditions of the filter that do not exist.
    pub(super) unknown: Vec<String>,
}

/// The ambient values that texts depend on.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) styles: Styles,
    pub(crate) zone: Zone,
    pub(crate) now: Timestamp,
}

/// Spells a command line.
pub(crate) type Spell = Box<dyn Fn(&Line) -> String>;

/// The state of the screen.
pub(crate) struct Browse {
    pub(super) look: Look,
    pub(super) keys: Keys,
    pub(super) spell: Spell,
    /// The names of all commands.
    pub(super) commands: Vec<String>,
    pub(super) focus: Pane,
    pub(super) zoom: Zoom,
    /// The size of the screen.
    pub(super) size: (u16, u16),
    pub(super) list: List,
    /// The session that is shown or being read.
    pub(super) session: Option<SessionName>,
    pub(super) graph: Option<Graph>,
    pub(super) turns: Cursor,
    pub(super) reader: Reader,
    /// The first of two keys.
    pub(super) pending: Option<String>,
    /// True while the filter or the text to find is typed.
    pub(super) is_typing: bool,
    /// The text to find in the turns or the conversation.
    pub(super) sought: Field,
    pub(super) dialog: Option<Dialog>,
    /// What was said last.
    pub(super) message: Option<Span>,
    messages: Vec<Span>,
    /// How many turns arrived at the top since the cursor was there.
    pub(super) arrived: usize,
    jump: Option<Act>,
    origin: Option<EntryId>,
    /// The change that is being made, until its report comes.
    change: Option<Confirmed>,
    /// True after a change, until the cursor is at its place.
    is_moved: bool,
    /// The turn to go to once its session is read.
    wanted: Option<Wanted>,
    effects: Vec<Effect>,
}

/// What is done once a change was made.
#[derive(Default)]
struct Confirmed {
    /// The prompt to copy.
    prompt: Option<String>,
    resumes: bool,
    quits: bool,
}

/// A turn to go to.
struct Wanted {
    turn: Option<String>,
    entry: Option<EntryId>,
}

impl Browse {
    pub(crate) fn new(look: Look, keys: Keys, spell: Spell, commands: Vec<String>) -> Self {
        Self {
            look,
            keys,
            spell,
            commands,
            focus: Pane::Sessions,
            zoom: Zoom::Even,
            size: (0, 0),
            list: List::default(),
            session: None,
            graph: None,
            turns: Cursor::default(),
            reader: Reader::new(),
            pending: None,
            is_typing: false,
            sought: Field::default(),
            dialog: None,
            message: None,
            messages: Vec::new(),
            arrived: 0,
            jump: None,
            origin: None,
            change: None,
            is_moved: false,
            wanted: None,
            effects: Vec::new(),
        }
    }

    /// Begins with a session, in its turns.
    pub(crate) fn start_with(&mut self, session: SessionName) {
        self.focus = Pane::Turns;
        self.open(session);
    }

    /// Returns what was asked for since the last call.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Adapts to the size of the screen.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        if self.size != (columns, rows) {
            self.size = (columns, rows);
            self.lay_out();
        }
    }

    /// Reads the session again, after another program had the terminal.
    pub(super) fn refresh(&mut self) {
        let wide = self.turns_width().max(1);
        let session = self.session.clone();
        self.effects.extend(session.map(|session| Effect::Graph(session, wide)));
    }

    /// Asks for the graph again if it was laid out for another width.
    pub(super) fn lay_out(&mut self) {
        let wide = self.turns_width();
        let stale = self.graph.as_ref().filter(|graph| wide > 0 && graph.columns != wide);
        if let Some(session) = stale.map(|graph| graph.session.clone()) {
            self.ask(Effect::Graph(session, wide));
        }
    }

    /// Asks for something, instead of what was asked before.
    pub(super) fn ask(&mut self, effect: Effect) {
        let same =
            |other: &Effect| std::mem::discriminant(other) == std::mem::discriminant(&effect);
        if matches!(effect, Effect::Graph(..) | Effect::Read(..) | Effect::Search(_)) {
            self.effects.retain(|other| !same(other));
        }
        self.effects.push(effect);
    }

    pub(super) fn say(&mut self, label: Label, text: &str) {
        self.message = Some((label, text.to_owned()));
        self.messages.push((label, text.to_owned()));
        let old = self.messages.len().saturating_sub(MESSAGES);
        self.messages.drain(..old);
    }

    /// Returns the turns of the graph.
    pub(super) fn rows(&self) -> &[TurnRow] {
        self.graph.as_ref().map_or(&[], |graph| &graph.turns)
    }

    /// Returns the turn under the cursor.
    pub(super) fn turn(&self) -> Option<&TurnRow> {
        self.rows().get(self.turns.at)
    }

    /// Returns the row of the shown session.
    pub(super) fn session_row(&self) -> Option<&super::data::SessionRow> {
        let name = self.session.as_ref()?;
        self.list.all.rows.iter().find(|row| row.listed.name == *name)
    }

    /// Returns the word for the shown session.
    pub(super) fn word(&self) -> Option<String> {
        let word = self.graph.as_ref().map(|graph| graph.word.clone());
        word.or_else(|| self.session_row().map(|row| row.word.clone()))
    }

    /// Returns the place that commands accept, such as `82@14`.
    pub(super) fn place(&self) -> Option<String> {
        let (turn, word) = (self.turn()?, self.word()?);
        Some(if turn.has_number { format!("{word}{}", turn.place()) } else { turn.place() })
    }

    /// Returns the command line that shows what the focused pane shows.
    pub(super) fn command(&self) -> Option<String> {
        let word = self.word()?;
        let graph = || Line::new("graph").with(&word);
        let line = match (self.focus, self.turn()) {
            (Pane::Sessions, _) | (_, None) => graph(),
            (_, Some(turn)) if turn.has_number => Line::new("show").with(self.place()?),
            (_, Some(turn)) => Line::new("show").with(turn.place()).option("session", &word),
        };
        Some((self.spell)(&line))
    }

    /// Returns a command line about the shown session as a person would type it.
    fn spelled(&self, args: &[String]) -> String {
        let words = args.iter().take_while(|word| *word != "-s");
        let line =
            words.skip(1).fold(Line::new(args.first().cloned().unwrap_or_default()), Line::with);
        (self.spell)(&self.word().into_iter().fold(line, |line, word| line.option("session", word)))
    }

    /// Returns the arguments that name the shown session.
    fn about(&self) -> Option<[String; 2]> {
        let SessionName { format, id } = self.session.as_ref()?;
        Some(["-s".to_owned(), format!("{format}:{id}")])
    }
}

/// Answers.
impl Browse {
    /// Takes an answer in.
    pub(crate) fn on_answer(&mut self, answer: Answer) {
        match answer {
            Answer::Sessions(sessions) => self.show_sessions(sessions),
            Answer::Graph(graph) => self.show_graph(graph),
            Answer::Turns { session, turns, is_whole } => {
                if let Some(graph) = self.graph.as_mut().filter(|graph| graph.session == session) {
                    graph.turns.extend(turns);
                    graph.is_whole = is_whole;
                    self.go_to_wanted();
                }
            }
            Answer::Conversation(shown) => {
                let is_it = self.turn().is_some_and(|turn| turn.place() == shown.place);
                if is_it && Some(&shown.session) == self.session.as_ref() {
                    self.reader.show(shown);
                }
            }
            Answer::Whole(session, line) => {
                if Some(session) == self.session {
                    self.reader.replace(&line);
                }
            }
            Answer::Plan { args, report, open } => self.show_plan(&args, report, open),
            Answer::Done { args, report } => self.show_done(&args, report),
            Answer::Shown { args, report } => {
                let title = self.spelled(&args);
                self.dialog = Some(Dialog::Text(Text { title, lines: report.lines, top: 0 }));
            }
            Answer::Found { words, found, total } => {
                if let Some(Dialog::Search(search)) = &mut self.dialog
                    && search.field.text == words
                {
                    search.cursor = search.cursor.min(found.len().saturating_sub(1));
                    (search.found, search.total) = (found, total);
                }
            }
            Answer::Failed(why) => self.say(Label::Error, &why),
        }
    }

    fn show_sessions(&mut self, sessions: Sessions) {
        let is_first = self.list.all.rows.is_empty();
        let selected = self.list_name();
        self.list.texts = Texts::default();
        for (n, row) in sessions.rows.iter().enumerate() {
            let id = row.listed.name.id.as_str();
            for text in [&row.title, &row.folder, id, &row.listed.name.format] {
                self.list.texts.add(n, text);
            }
        }
        if is_first && self.session.is_none() && sessions.rows.iter().any(|row| row.is_here) {
            self.list.scope = Scope::Here;
        }
        self.list.all = sessions;
        self.narrow();
        let name = if is_first { self.session.clone() } else { selected };
        self.put_list_cursor(name.as_ref());
        if self.session.is_none() {
            self.follow_list();
        }
    }

    /// Returns the session under the cursor of the list.
    fn list_name(&self) -> Option<SessionName> {
        let row = *self.list.shown.get(self.list.cursor.at)?;
        self.list.all.rows.get(row).map(|row| row.listed.name.clone())
    }

    fn put_list_cursor(&mut self, name: Option<&SessionName>) {
        let is_it = |row: &usize| {
            self.list.all.rows.get(*row).is_some_and(|row| Some(&row.listed.name) == name)
        };
        let at = self.list.shown.iter().position(is_it);
        self.list.cursor.at = at.unwrap_or(self.list.cursor.at);
        self.list.cursor.limit(self.list.shown.len());
    }

    /// Finds the rows that the scope, the agent and the filter admit.
    fn narrow(&mut self) {
        let Look { zone, now, .. } = self.look;
        let filter = Filter::parse(&self.list.filter.text, zone, now);
        let all = &self.list.all.rows;
        let mut found = self.list.texts.find(&filter.words, all.len());
        let is_admitted = |row: &usize| {
            let Some(row) = all.get(*row) else { return false };
            let is_in_scope = match self.list.scope {
                Scope::Here => row.is_here,
                Scope::All => true,
                Scope::Week => row.listed.card.active >= Some(Timestamp(now.0 - WEEK)),
            };
            let of_agent = |agent: &String| *agent == row.listed.name.format;
            is_in_scope && self.list.agent.as_ref().is_none_or(of_agent) && filter.admits(row)
        };
        found.retain(is_admitted);
        self.list.unknown = filter.unknown;
        self.list.shown = found;
        self.list.cursor.limit(self.list.shown.len());
    }

    /// Shows the session under the cursor of the list.
    fn follow_list(&mut self) {
        if let Some(name) = self.list_name().filter(|name| Some(name) != self.session.as_ref()) {
            self.open(name);
        }
    }

    /// Shows another session.
    fn open(&mut self, session: SessionName) {
        self.session = Some(session.clone());
        self.graph = None;
        self.reader.clear();
        (self.turns, self.arrived, self.origin) = (Cursor::default(), 0, None);
        let wide = self.turns_width().max(1);
        self.ask(Effect::Graph(session, wide));
    }

    fn show_graph(&mut self, graph: Graph) {
        if Some(&graph.session) != self.session.as_ref() {
            return;
        }
        let id = self.turn().map(|turn| turn.node.id);
        let is_moved = std::mem::take(&mut self.is_moved);
        let was_newest = is_moved || self.turns.at == 0 || self.is_at_head();
        let before = self.graph.replace(graph);
        let newest = before.as_ref().and_then(|graph| graph.turns.first()).map(|row| row.node.id);
        let at = |id: Option<EntryId>| self.rows().iter().position(|row| Some(row.node.id) == id);
        let arrived = newest.and_then(|_| at(newest)).unwrap_or(0);
        let (same, head) = (at(id), self.head());
        let is_new = arrived > 0;
        if is_new && !is_moved {
            self.warn_of_arrivals(arrived);
        }
        self.turns.at = match same {
            Some(same) if !(is_moved || was_newest && is_new) => same,
            _ => head,
        };
        self.arrived = if was_newest { 0 } else { self.arrived + arrived };
        self.turns.limit(self.rows().len());
        self.go_to_wanted();
        self.read();
        self.lay_out();
    }

    fn head(&self) -> usize {
        self.rows().iter().position(|row| row.node.is_head).unwrap_or(0)
    }

    fn is_at_head(&self) -> bool {
        self.turn().is_some_and(|turn| turn.node.is_head)
    }

    /// Goes to the turn that a search found.
    fn go_to_wanted(&mut self) {
        let Some(Wanted { turn, entry }) = &self.wanted else { return };
        let is_it = |row: &TurnRow| {
            Some(row.node.id) == *entry || row.has_number && Some(row.place()) == *turn
        };
        if let Some(at) = self.rows().iter().position(is_it) {
            self.wanted = None;
            self.turns.at = at;
            self.read();
        }
    }

    /// Asks for the conversation of the turn under the cursor.
    fn read(&mut self) {
        let place = self.turn().map(TurnRow::place);
        if let Some((session, place)) = self.session.clone().zip(place) {
            self.ask(Effect::Read(session, place));
        }
    }

    /// Makes a dialog ask again if turns arrived since it was opened.
    fn warn_of_arrivals(&mut self, arrived: usize) {
        let rows = self.rows().iter().take(arrived).filter(|row| row.has_number);
        let places: Vec<String> = rows.map(TurnRow::place).collect();
        if let Some(Dialog::Change(change)) = &mut self.dialog
            && !places.is_empty()
        {
            change.arrived.extend(places);
            let args = change.args.clone();
            self.ask(Effect::Plan(args));
        }
    }

    fn show_plan(&mut self, args: &[String], report: Report, open: Option<String>) {
        if let Some(Dialog::Change(change)) = &mut self.dialog
            && change.args == args
        {
            change.report = Some(report);
            change.open = open;
        }
    }

    fn show_done(&mut self, args: &[String], report: Report) {
        let text =
            |line: &Vec<Span>| line.iter().map(|(_, text)| text.as_str()).collect::<String>();
        let verb = args.first().cloned().unwrap_or_default();
        let confirmed = self.change.take();
        if confirmed.as_ref().is_some_and(|confirmed| confirmed.quits) {
            self.effects.push(Effect::Quit);
        }
        if !report.is_done {
            self.say(Label::Error, &report.lines.iter().map(text).collect::<Vec<_>>().join(" "));
            let title = format!("{verb} was refused; nothing was changed");
            self.dialog = Some(Dialog::Text(Text { title, lines: report.lines, top: 0 }));
            return;
        }
        self.is_moved = true;
        let mut lines = report.lines.iter().map(text);
        let said = lines.find(|line| !line.trim().is_empty()).unwrap_or_default();
        // The line ends with the words of a turn, which the screen shows.
        let said = said.split_once(" \"").map_or(said.as_str(), |(said, _)| said);
        let mut said = vec![said.trim().to_owned()];
        let Confirmed { prompt, resumes, .. } = confirmed.unwrap_or_default();
        said.extend(prompt.is_some().then(|| "prompt copied".to_owned()));
        if ["revert", "switch", "redo"].contains(&&*verb) {
            said.extend(["o resume", "u undo"].map(str::to_owned));
        }
        self.effects.extend(prompt.map(Effect::Copy));
        self.say(Label::Note, &said.join(" · "));
        if resumes {
            self.act(Act::Resume);
        }
    }
}

/// Keys.
impl Browse {
    /// Does what keys do.
    pub(super) fn act(&mut self, act: Act) {
        match act {
            Act::Down => self.step(Way::Forward, 1),
            Act::Up => self.step(Way::Backward, 1),
            Act::HalfDown => self.step(Way::Forward, self.page() / 2),
            Act::HalfUp => self.step(Way::Backward, self.page() / 2),
            Act::First => self.step(Way::Backward, usize::MAX),
            Act::Last => self.step(Way::Forward, usize::MAX),
            Act::PageDown | Act::PageUp => self.page_reading(act),
            Act::NextTurn => self.step_turn(Way::Forward, 1),
            Act::PreviousTurn => self.step_turn(Way::Backward, 1),
            Act::Left | Act::Right | Act::NextPane => self.turn_focus(act),
            Act::Sessions => self.set_focus(Pane::Sessions),
            Act::Turns => self.set_focus(Pane::Turns),
            Act::Reading => self.set_focus(Pane::Reading),
            Act::NextCompaction
            | Act::NextReverted
            | Act::NextFailure
            | Act::NextEdit
            | Act::NextNote
            | Act::NextQuestion => self.jump(act),
            Act::Repeat => self.jump.into_iter().for_each(|act| self.jump(act)),
            Act::Return => self.return_to_origin(),
            Act::Open => self.open_row(),
            Act::Close if self.focus == Pane::Sessions => self.quit(),
            Act::Back | Act::Close => self.back(),
            Act::Quit => self.quit(),
            Act::Suspend => self.effects.push(Effect::Suspend),
            Act::Larger | Act::Smaller => self.set_zoom(act),
            Act::Detail => self.reader.set_detail(),
            Act::Thoughts => self.reader.set_thoughts(),
            Act::UnfoldAll => self.reader.toggle_all(),
            Act::Find => self.is_typing = true,
            Act::FindNext => self.find(Way::Forward),
            Act::FindPrevious => self.find(Way::Backward),
            Act::Scope | Act::Agent => self.set_scope(act),
            Act::SearchAll => self.dialog = Some(Dialog::Search(Search::default())),
            Act::CopyCommand | Act::CopyTurn | Act::CopyPrompt | Act::CopyPlace => self.copy(act),
            Act::Revert | Act::Keep | Act::Undo | Act::Redo | Act::Switch => self.plan(act),
            Act::Name => {
                if self.session.is_some() {
                    self.dialog = Some(Dialog::Name(Field::default()));
                }
            }
            Act::Compare | Act::Lost => self.show(act),
            Act::Resume => {
                let about = self.about();
                let args = about.map(|about| [&["resume".to_owned()], &about[..]].concat());
                self.effects.extend(args.map(Effect::Outside));
            }
            Act::Command => self.dialog = Some(Dialog::Command(Field::default())),
            Act::Messages => {
                let lines = self.messages.iter().rev().map(|said| vec![said.clone()]).collect();
                let title = "Messages of this run, newest first".to_owned();
                self.dialog = Some(Dialog::Text(Text { title, lines, top: 0 }));
            }
            Act::Help => {
                self.dialog = Some(Dialog::Help(Help::default()));
                self.filter_help();
            }
        }
    }

    /// Quits, once a change that is being made has ended.
    fn quit(&mut self) {
        match &mut self.change {
            None => self.effects.push(Effect::Quit),
            Some(change) => {
                change.quits = true;
                self.say(Label::Dim, "this ends as soon as the change is made");
            }
        }
    }

    /// Finds the rows of the help that the filter matches.
    pub(super) fn filter_help(&mut self) {
        let Some(Dialog::Help(help)) = &mut self.dialog else { return };
        let sought = help.field.text.to_lowercase();
        let rows = TABLE.iter().filter(|row| row.panes.contains(&self.focus));
        let has = |row: &&super::keys::Key| {
            row.words.to_lowercase().contains(&sought)
                || self.keys.of(row).contains(&sought.as_str())
        };
        help.acts = rows.filter(has).map(|row| row.act).collect();
        help.cursor = help.cursor.min(help.acts.len().saturating_sub(1));
    }

    fn page(&self) -> usize {
        match self.focus {
            Pane::Sessions => self.list.cursor.page,
            Pane::Turns => self.turns.page,
            Pane::Reading => self.reader.cursor.page,
        }
    }

    /// Moves the cursor of the focused pane.
    pub(super) fn step(&mut self, way: Way, rows: usize) {
        let rows = rows.max(1);
        match self.focus {
            Pane::Sessions => {
                let len = self.list.shown.len();
                go(&mut self.list.cursor, way, rows, len);
                self.follow_list();
            }
            Pane::Turns => self.step_turn(way, rows),
            Pane::Reading => {
                let len = self.reader.rows().len();
                go(&mut self.reader.cursor, way, rows, len);
            }
        }
    }

    fn step_turn(&mut self, way: Way, rows: usize) {
        let (before, len) = (self.turns.at, self.rows().len());
        go(&mut self.turns, way, rows, len);
        self.moved_from(before);
    }

    /// Reads the turn under the cursor if the cursor moved.
    fn moved_from(&mut self, before: usize) {
        if self.turns.at == 0 {
            self.arrived = 0;
        }
        if self.turns.at != before {
            self.read();
        }
    }

    fn page_reading(&mut self, act: Act) {
        let rows = self.reader.cursor.page.saturating_sub(1).max(1);
        let way = if act == Act::PageDown { Way::Forward } else { Way::Backward };
        let len = self.reader.rows().len();
        self.reader.cursor.scroll(way, rows, len);
    }

    pub(super) fn set_focus(&mut self, pane: Pane) {
        let is_other = self.focus != pane;
        self.focus = pane;
        if is_other {
            (self.is_typing, self.pending) = (false, None);
            self.lay_out();
        }
    }

    fn turn_focus(&mut self, act: Act) {
        let panes = Pane::ALL;
        let at = panes.iter().position(|pane| *pane == self.focus).unwrap_or(0);
        let next = match act {
            Act::Left => at.saturating_sub(1),
            Act::Right => (at + 1).min(panes.len() - 1),
            _ => (at + 1) % panes.len(),
        };
        self.set_focus(panes.get(next).copied().unwrap_or_default());
    }

    fn set_zoom(&mut self, act: Act) {
        self.zoom = match (act, self.zoom) {
            (Act::Larger, Zoom::Even) | (Act::Smaller, Zoom::Whole) => Zoom::Larger,
            (Act::Larger, _) => Zoom::Whole,
            _ => Zoom::Even,
        };
        self.lay_out();
    }

    fn set_scope(&mut self, act: Act) {
        let name = self.list_name();
        if act == Act::Scope {
            self.list.scope = match self.list.scope {
                Scope::Here => Scope::All,
                Scope::All => Scope::Week,
                Scope::Week => Scope::Here,
            };
        } else {
            let rows = self.list.all.rows.iter();
            let mut agents: Vec<String> = rows.map(|row| row.listed.name.format.clone()).collect();
            agents.sort();
            agents.dedup();
            let next = agents.into_iter().find(|agent| Some(agent) > self.list.agent.as_ref());
            self.list.agent = next;
        }
        self.narrow();
        self.put_list_cursor(name.as_ref());
        self.follow_list();
    }

    /// One level out.
    fn back(&mut self) {
        let is_filtered = !self.list.filter.text.is_empty();
        if self.message.take().is_some() && self.focus == Pane::Sessions && !is_filtered {
            return;
        }
        match self.focus {
            _ if self.zoom != Zoom::Even => self.set_zoom(Act::Smaller),
            Pane::Sessions if is_filtered => {
                let name = self.list_name();
                self.list.filter = Field::default();
                self.narrow();
                self.put_list_cursor(name.as_ref());
            }
            Pane::Sessions => {}
            Pane::Turns => self.set_focus(Pane::Sessions),
            Pane::Reading => self.set_focus(Pane::Turns),
        }
    }

    /// Opens what is under the cursor.
    fn open_row(&mut self) {
        match self.focus {
            Pane::Sessions if self.session.is_some() => self.set_focus(Pane::Turns),
            Pane::Sessions => {}
            Pane::Turns => self.set_focus(Pane::Reading),
            Pane::Reading => {
                let opened = self.reader.toggle();
                let cut = opened.and_then(|entry| self.reader.cut_entry(entry));
                if let Some((session, entry)) = self.session.clone().zip(cut) {
                    self.ask(Effect::Whole(session, entry));
                }
            }
        }
    }

    /// Goes to the next turn of a kind, around the end.
    fn jump(&mut self, act: Act) {
        let is_it = |node: &GraphNode| {
            let acts = node.acts.unwrap_or_default();
            match act {
                Act::NextCompaction => node.kind == Kind::Boundary,
                Act::NextReverted => node.is_reverted,
                Act::NextFailure => acts.failed > 0,
                Act::NextEdit => acts.edits > 0,
                Act::NextNote => node.kind == Kind::Note || node.is_from_later,
                _ => node.kind == Kind::User && node.words.contains(['?', '？']),
            }
        };
        let (len, before) = (self.rows().len(), self.turns.at);
        let mut others = (1..=len).map(|n| (before + n) % len);
        let is_at = |at: &usize| self.rows().get(*at).is_some_and(|row| is_it(&row.node));
        let found = others.find(is_at);
        self.jump = Some(act);
        match found {
            Some(at) => {
                self.origin = self.turn().map(|turn| turn.node.id);
                self.turns.at = at;
                self.moved_from(before);
            }
            None => self.say(Label::Dim, "this session has none"),
        }
    }

    fn return_to_origin(&mut self) {
        let before = self.turns.at;
        let at = self.rows().iter().position(|row| Some(row.node.id) == self.origin);
        if let Some(at) = at {
            self.origin = self.turn().map(|turn| turn.node.id);
            self.turns.at = at;
            self.moved_from(before);
        }
    }

    /// Finds the next match in the focused pane.
    fn find(&mut self, way: Way) {
        let sought = self.sought.text.clone();
        let before = self.turns.at;
        let is_found = match self.focus {
            Pane::Sessions => return,
            Pane::Turns => {
                let texts: Vec<String> = self.rows().iter().map(row_text).collect();
                self.turns.find(&texts, &sought, way)
            }
            Pane::Reading => self.reader.find(&sought, way),
        };
        if !is_found && !sought.is_empty() {
            self.say(Label::Dim, &format!("nothing here contains \"{sought}\""));
        }
        self.moved_from(before);
    }

    /// Uses what is typed so far as the filter, or finds it.
    pub(super) fn typed(&mut self) {
        if self.focus == Pane::Sessions {
            let name = self.list_name();
            self.narrow();
            self.list.cursor = Cursor { at: 0, top: 0, ..self.list.cursor };
            if self.list.filter.text.is_empty() {
                self.put_list_cursor(name.as_ref());
            }
            return self.follow_list();
        }
        // The match under the cursor counts too.
        match self.focus {
            Pane::Turns => self.turns.at = self.turns.at.saturating_sub(1),
            _ => self.reader.cursor.up(1),
        }
        self.find(Way::Forward);
    }

    fn copy(&mut self, act: Act) {
        let (text, what) = match act {
            Act::CopyCommand => (self.command(), "the command"),
            Act::CopyTurn => (Some(self.reader.texts().join("\n")), "the turn"),
            Act::CopyPrompt => (self.reader.prompt(), "the prompt"),
            _ => (self.place(), "the place"),
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => {
                self.effects.push(Effect::Copy(text));
                self.say(Label::Dim, &format!("copied {what}, if your terminal allows it"));
            }
            None => self.say(Label::Dim, "there is nothing to copy"),
        }
    }
}

/// Changes.
impl Browse {
    /// Opens the dialog of a change, and asks what it would do.
    fn plan(&mut self, act: Act) {
        let (Some(about), Some(word)) = (self.about(), self.word()) else { return };
        let turn = self.turn().map(TurnRow::place);
        let (args, title) = match (act, turn) {
            (Act::Undo, _) => (vec!["undo".to_owned()], format!("Undo the last change of {word}")),
            (Act::Redo, _) => (vec!["redo".to_owned()], format!("Redo the last undo of {word}")),
            (Act::Revert | Act::Keep, Some(place)) => {
                let keep = (act == Act::Keep).then(|| "--keep".to_owned());
                // An id is a place to go to just after.
                let is_before = act == Act::Revert && place.starts_with('@');
                let side = if is_before { "before" } else { "after" };
                let title = format!("Revert {word} to just {side} {place}");
                (["revert".to_owned(), place].into_iter().chain(keep).collect(), title)
            }
            (Act::Switch, Some(_)) => match self.end_of_branch() {
                Some((end, Some(name))) => (
                    vec!["switch".to_owned(), name.clone()],
                    format!("Switch {word} to {name}, up to {end}"),
                ),
                Some((end, None)) => {
                    let title = format!("Go to the reverted end {end} of {word}");
                    (vec!["revert".to_owned(), end], title)
                }
                None => return self.say(Label::Dim, "this turn is on the current branch"),
            },
            _ => return,
        };
        let can_note = matches!(act, Act::Revert | Act::Keep);
        let prompt = (act == Act::Revert).then(|| self.reader.prompt()).flatten();
        let args = [args, about.to_vec()].concat();
        self.dialog = Some(Dialog::Change(Change {
            title,
            args: args.clone(),
            report: None,
            note: can_note.then(Field::default),
            open: None,
            prompt,
            arrived: Vec::new(),
            may_wait: act != Act::Redo,
        }));
        self.ask(Effect::Plan(args));
    }

    /// Returns the last entry of the reverted branch under the cursor, and the branch's name.
    fn end_of_branch(&self) -> Option<(String, Option<String>)> {
        let mut at = self.turn().filter(|turn| turn.node.is_reverted)?;
        loop {
            let name = at.node.branches.first().cloned();
            let next = self.rows().iter().rfind(|row| {
                row.node.is_reverted && row.node.parents.first() == Some(&at.node.node)
            });
            match next.filter(|_| name.is_none()) {
                Some(next) => at = next,
                None => return Some((format!("{:.8}", at.node.last), name)),
            }
        }
    }

    /// Makes the change of the dialog, if what it does is known.
    pub(super) fn confirm(&mut self, resumes: Option<Act>) {
        let Some(Dialog::Change(change)) = &mut self.dialog else { return };
        let can_be_made = change.report.as_ref().is_some_and(|report| report.is_done);
        if !change.arrived.is_empty() {
            // What arrived was shown; the next key confirms it.
            change.arrived.clear();
            return;
        }
        if !can_be_made {
            return;
        }
        let args = change.command();
        let is_now = !change.is_delayed();
        let prompt = change.prompt.take().filter(|_| is_now);
        let resumes = is_now && resumes.is_some();
        self.change = Some(Confirmed { prompt, resumes, quits: false });
        self.dialog = None;
        self.say(Label::Dim, &format!("{} …", self.spelled(&args)));
        self.effects.push(Effect::Run(args));
    }

    /// Shows the report of a command that only reads.
    fn show(&mut self, act: Act) {
        let Some(about) = self.about() else { return };
        let args = match act {
            Act::Lost => vec!["audit".to_owned(), "--boundary".to_owned()],
            _ => match self.end_of_branch() {
                Some((end, name)) => vec!["diff".to_owned(), name.unwrap_or(end)],
                None => {
                    return self.say(Label::Dim, "c compares a reverted turn; g r goes to one");
                }
            },
        };
        self.effects.push(Effect::Show([args, about.to_vec()].concat()));
    }

    /// Gives the session's current place a name.
    pub(super) fn name(&mut self, name: &str) {
        let about = self.about().filter(|_| !name.trim().is_empty());
        if let Some(about) = about {
            let args = ["checkpoint".to_owned(), format!("--message={}", name.trim())];
            self.change = Some(Confirmed::default());
            self.effects.push(Effect::Run([&args[..], &about].concat()));
        }
    }

    /// Shows the turn that the search found.
    pub(super) fn go_to_found(&mut self, found: super::data::Found) {
        let super::data::Found { session, entry, turn, .. } = found;
        self.wanted = Some(Wanted { turn, entry });
        self.dialog = None;
        if !self
            .list
            .shown
            .iter()
            .any(|row| self.list.all.rows.get(*row).is_some_and(|row| row.listed.name == session))
        {
            (self.list.scope, self.list.agent) = (Scope::All, None);
            self.list.filter = Field::default();
            self.narrow();
        }
        self.put_list_cursor(Some(&session));
        if Some(&session) == self.session.as_ref() {
            self.go_to_wanted();
        } else {
            self.open(session);
        }
        self.set_focus(Pane::Reading);
    }
}

/// Moves a cursor by rows.
fn go(cursor: &mut Cursor, way: Way, rows: usize, len: usize) {
    match way {
        Way::Forward => cursor.down(rows, len),
        Way::Backward => cursor.up(rows),
    }
}

/// Returns the text of a turn's row.
fn row_text(row: &TurnRow) -> String {
    row.lines.iter().flatten().map(|(_, text)| text.as_str()).collect()
}
