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

use undertext::model::{SessionName, Timestamp};
use undertext::report::Line;
use undertext::settings::Glyphs;

use super::compare::Compare;
use super::cursor::{Cursor, Way};
use super::data::{Answer, BranchEnd, Effect, Found, Graph, Report, text_of};
use super::dialog::{CommandLine, Dialog, Field, Help, Naming, Proposal, Search, Text};
use super::keys::{Act, Keys, Pane};
use super::layout::{Layout, Zoom};
use super::list::List;
use super::reader::{Draft, Reader, next};
use super::seek::Sought;
use super::turns::{Turns, Wanted};
use crate::render::style::{Label, Span, Styles};
use crate::render::time::Zone;

/// Maximum number of messages that are remembered.
const MESSAGES: usize = 200;

/// The ambient values that texts depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) styles: Styles,
    pub(crate) zone: Zone,
    pub(crate) now: Timestamp,
    pub(crate) glyphs: Glyphs,
}

/// Returns the words that may follow a command line, with these places if the command is about one.
pub(crate) type Candidates = dyn Fn(&str, Vec<String>) -> Vec<String>;

/// Spells a command line.
pub(crate) type Spell = Box<dyn Fn(&Line) -> String>;

/// The state of the screen.
pub(crate) struct Browse {
    pub(super) look: Look,
    pub(super) keys: Keys,
    pub(super) spell: Spell,
    pub(super) candidates: Box<Candidates>,
    pub(super) layout: Layout,
    pub(super) list: List,
    pub(super) turns: Turns,
    pub(super) reader: Reader,
    /// The width that the graph was asked for, and the place that was asked for; `None` if they must be read again.
    drawn: Option<usize>,
    read: Option<String>,
    /// What is being laid out.
    drafts: Vec<Draft>,
    /// The first of two keys.
    pub(super) pending: Option<String>,
    /// True while the filter or the text to find is typed.
    pub(super) is_typing: bool,
    /// The text to find in the turns or the conversation.
    pub(super) sought: Field,
    pub(super) dialog: Option<Dialog>,
    pub(super) out: Outbox,
    /// What the end of a branch is sought for.
    purpose: Option<Act>,
    /// The change that is being made, until its report comes.
    pub(super) change: Option<Confirmed>,
    /// True after a change, until the cursor is at its place.
    is_moved: bool,
}

/// What the state says and asks for.
#[derive(Default)]
pub(super) struct Outbox {
    effects: Vec<Effect>,
    /// What was said last.
    pub(super) message: Option<Span>,
    messages: Vec<Span>,
}

impl Outbox {
    /// Asks for something, instead of what was asked before.
    pub(super) fn ask(&mut self, effect: Effect) {
        let same =
            |other: &Effect| std::mem::discriminant(other) == std::mem::discriminant(&effect);
        if effect.is_replaced() {
            self.effects.retain(|other| !same(other));
        }
        self.effects.push(effect);
    }

    pub(super) fn ask_all(&mut self, effects: impl IntoIterator<Item = Effect>) {
        for effect in effects {
            self.ask(effect);
        }
    }

    pub(super) fn say(&mut self, label: Label, text: &str) {
        let message = (label, text.to_owned());
        self.messages.retain(|old| *old != message);
        self.keep(message.clone());
        self.message = Some(message);
    }

    /// Keeps a message for the list of all, unless it is there.
    fn keep(&mut self, message: Span) {
        if !self.messages.contains(&message) {
            self.messages.push(message);
            let old = self.messages.len().saturating_sub(MESSAGES);
            self.messages.drain(..old);
        }
    }

    fn say_nothing_contains(&mut self, text: &str) {
        self.say(Label::Dim, &format!("nothing here contains \"{text}\""));
    }
}

/// What is done once a change was made.
#[derive(Default)]
pub(super) struct Confirmed {
    /// The prompt to copy.
    prompt: Option<String>,
    resumes: bool,
    quits: bool,
}

impl Browse {
    pub(crate) fn new(look: Look, keys: Keys, spell: Spell, candidates: Box<Candidates>) -> Self {
        Self {
            look,
            keys,
            spell,
            candidates,
            layout: Layout::default(),
            list: List::default(),
            turns: Turns::default(),
            reader: Reader::new(),
            drawn: None,
            read: None,
            drafts: Vec::new(),
            pending: None,
            is_typing: false,
            sought: Field::default(),
            dialog: None,
            out: Outbox::default(),
            purpose: None,
            change: None,
            is_moved: false,
        }
    }

    /// Begins with a session, in its turns.
    pub(crate) fn start_with(&mut self, session: SessionName) {
        self.layout.focus = Pane::Turns;
        self.open(session);
    }

    /// Returns what is asked for: by keys, and by what is shown now and was not read yet.
    pub(crate) fn take_effects(&mut self) -> Vec<Effect> {
        let wide = Some(self.layout.turns_width()).filter(|wide| *wide > 0);
        if let (Some(session), Some(columns)) = (&self.turns.session, wide)
            && self.drawn != wide
        {
            self.drawn = wide;
            self.out.ask(Effect::Graph(session.clone(), columns, self.turns.is_folded));
        }
        self.out.ask_all(self.turns.missing());
        let place = self.turns.turn().map(super::data::TurnRow::place);
        if let (Some(session), Some(place)) = (&self.turns.session, place)
            && self.read.as_ref() != Some(&place)
        {
            self.out.ask(Effect::Read(session.clone(), place.clone()));
            self.read = Some(place);
        }
        let columns = self.layout.reading_width();
        let reader = self.reader.missing(columns, self.look).filter(|_| columns > 0);
        let compared = match &self.dialog {
            Some(Dialog::Compare(compare)) => compare.missing(self.layout.size.0, self.look),
            _ => Vec::new(),
        };
        let drafts: Vec<Draft> = reader.into_iter().chain(compared).collect();
        if drafts != self.drafts {
            self.out.ask(Effect::LayOut(drafts.clone()));
            self.drafts = drafts;
        }
        std::mem::take(&mut self.out.effects)
    }

    /// Adapts to the size of the screen.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.layout.size = (columns, rows);
    }

    /// Reads the session again, after another program had the terminal.
    pub(super) fn refresh(&mut self) {
        self.drawn = None;
    }

    /// Returns the command line that shows what the focused pane shows.
    pub(super) fn command(&self) -> Option<String> {
        let word = self.turns.word.as_ref()?;
        let graph = || Line::new("graph").with(word);
        let line = match (self.layout.focus, self.turns.turn()) {
            (Pane::Turns | Pane::Reading, _) if self.turns.range().is_some() => {
                Line::new("log").with(self.turns.range()?).with(word)
            }
            (Pane::Sessions, _) | (_, None) => graph(),
            (_, Some(turn)) if turn.has_number => Line::new("show").with(self.turns.place()?),
            (_, Some(turn)) => Line::new("show").with(turn.place()).option("session", word),
        };
        Some((self.spell)(&line))
    }

    /// Returns a command line about the shown session as a person would type it.
    fn spelled(&self, args: &[String]) -> String {
        let words = args.iter().take_while(|word| *word != "-s");
        let line =
            words.skip(1).fold(Line::new(args.first().cloned().unwrap_or_default()), Line::with);
        (self.spell)(&self.turns.word.iter().fold(line, |line, word| line.option("session", word)))
    }
}

/// Answers.
impl Browse {
    /// Takes an answer in.
    pub(crate) fn on_answer(&mut self, answer: Answer) {
        match answer {
            Answer::Sessions(sessions) => {
                self.list.replace(sessions, self.turns.session.as_ref(), self.look);
                if self.turns.session.is_none() {
                    self.follow_list();
                }
            }
            Answer::Graph(graph) if Some(&graph.session) == self.turns.session.as_ref() => {
                self.show_graph(graph);
            }
            Answer::Rows { session, columns, first, turns } if self.turns.is_shown(&session) => {
                self.out.ask_all(self.turns.add(first, columns, turns));
                if let Some(Dialog::Change(change)) = &mut self.dialog {
                    let n = usize::try_from(change.arrived).unwrap_or(usize::MAX);
                    change.places = self.turns.newest(n);
                }
            }
            Answer::Sought { session, sought, row, end } if self.turns.is_shown(&session) => {
                self.found(&sought, row, end);
            }
            Answer::Conversation(shown) => {
                if self.turns.is_shown(&shown.session) && self.read.as_ref() == Some(&shown.place) {
                    self.reader.show(shown);
                    let prompt = self.prompt();
                    if let Some(Dialog::Change(change)) = &mut self.dialog {
                        change.see_prompt(prompt);
                    }
                }
            }
            Answer::LaidOut(draft, rows) => {
                if let Some(Dialog::Compare(compare)) = &mut self.dialog {
                    compare.lay_out(&draft, &rows);
                }
                self.reader.lay_out(draft, rows);
            }
            Answer::Whole(session, line) => {
                if self.turns.is_shown(&session) {
                    self.reader.replace(&line);
                }
            }
            Answer::Plan { args, report, open } => {
                if let Some(Dialog::Change(change)) = &mut self.dialog
                    && change.args == args
                {
                    let said = report.is_idle.then(|| report.text());
                    (change.report, change.open) = (Some(report), open);
                    if let Some(said) = said {
                        self.dialog = None;
                        self.out.say(Label::Dim, &said);
                    }
                }
            }
            Answer::Done { args, report } => self.show_done(&args, report),
            // A dialog that was opened meanwhile stays.
            Answer::Shown { .. } | Answer::Compared(_) if self.dialog.is_some() => {}
            Answer::Shown { args, report } => {
                let title = self.spelled(&args);
                self.dialog = Some(Dialog::Text(Text { title, lines: report.lines, top: 0 }));
            }
            Answer::Compared(comparison) if self.turns.is_shown(&comparison.session) => {
                self.dialog = Some(Dialog::Compare(Compare::new(comparison)));
            }
            // About another session.
            Answer::Graph(_)
            | Answer::Rows { .. }
            | Answer::Sought { .. }
            | Answer::Compared(_) => {}
            Answer::Found { words, found, total } => {
                if let Some(Dialog::Search(search)) = &mut self.dialog
                    && search.field.text == words
                {
                    search.cursor = search.cursor.min(found.len().saturating_sub(1));
                    (search.found, search.total) = (found, total);
                }
            }
            Answer::Failed(why) => self.out.say(Label::Error, &why),
        }
    }

    /// Shows the session under the cursor of the list.
    fn follow_list(&mut self) {
        if let Some(name) = self.list.name().filter(|name| !self.turns.is_shown(name)) {
            self.open(name);
        }
    }

    /// Shows another session.
    fn open(&mut self, session: SessionName) {
        let word = self.list.row_of(&session).map(|row| row.word.clone());
        self.turns.open(session, word);
        self.reader.clear();
        (self.drawn, self.read) = (None, None);
    }

    fn show_graph(&mut self, graph: Graph) {
        let was_whole = self.turns.graph.as_ref().is_none_or(|graph| graph.is_whole);
        let arrived = self.turns.replace(graph, std::mem::take(&mut self.is_moved));
        if was_whole {
            self.read = None;
        }
        if let Some(Dialog::Change(change)) = &mut self.dialog
            && arrived > 0
        {
            change.arrived += arrived;
            let args = change.args.clone();
            self.out.ask(Effect::Plan(args));
        }
        let unread = self.turns.graph.as_ref().map(|graph| graph.unread.clone());
        for why in unread.unwrap_or_default() {
            self.out.keep((Label::Error, why));
        }
        self.out.ask_all(self.turns.seek_wanted());
    }

    /// Goes to what was sought.
    fn found(&mut self, sought: &Sought, row: Option<usize>, end: Option<BranchEnd>) {
        if !self.turns.found(sought, row) {
            return;
        }
        match (sought, row) {
            (Sought::BranchEnd, _) => {
                // A dialog that was opened meanwhile stays.
                if let Some(purpose) = self.purpose.take().filter(|_| self.dialog.is_none()) {
                    self.at_branch_end(purpose, end);
                }
            }
            (Sought::Entry(_), None) => self.out.ask_all(self.turns.seek_wanted()),
            (Sought::Jump(_), None) => self.out.say(Label::Dim, "this session has none"),
            (Sought::Text(text, _), None) => self.out.say_nothing_contains(&text.clone()),
            _ => {}
        }
    }

    fn show_done(&mut self, args: &[String], report: Report) {
        let verb = args.first().cloned().unwrap_or_default();
        let confirmed = self.change.take();
        if confirmed.as_ref().is_some_and(|confirmed| confirmed.quits) {
            self.out.ask(Effect::Quit);
        }
        if !report.is_done {
            self.out.say(Label::Error, &report.text());
            let title = format!("{verb} was refused; nothing was changed");
            self.dialog = Some(Dialog::Text(Text { title, lines: report.lines, top: 0 }));
            return;
        }
        self.is_moved = true;
        self.refresh();
        let mut lines = report.lines.iter().map(|line| text_of(line));
        let said = lines.find(|line| !line.trim().is_empty()).unwrap_or_default();
        // The line ends with the words of a turn, which the screen shows.
        let said = said.split_once(" \"").map_or(said.as_str(), |(said, _)| said);
        let mut said = vec![said.trim().to_owned()];
        let Confirmed { prompt, resumes, .. } = confirmed.unwrap_or_default();
        said.extend(prompt.is_some().then(|| "prompt copied".to_owned()));
        if ["revert", "switch", "redo"].contains(&&*verb) {
            said.extend(["o resume", "u undo"].map(str::to_owned));
        }
        self.out.ask_all(prompt.map(Effect::Copy));
        self.out.say(Label::Note, &said.join(" · "));
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
            Act::HalfDown => self.step(Way::Forward, self.cursor().page / 2),
            Act::HalfUp => self.step(Way::Backward, self.cursor().page / 2),
            Act::First => self.step(Way::Backward, usize::MAX),
            Act::Last => self.step(Way::Forward, usize::MAX),
            Act::PageDown => self.reader.page(Way::Forward),
            Act::PageUp => self.reader.page(Way::Backward),
            Act::NextTurn => self.turns.step(Way::Forward, 1),
            Act::PreviousTurn => self.turns.step(Way::Backward, 1),
            Act::Left | Act::Right | Act::NextPane => self.set_focus(self.layout.next_pane(act)),
            Act::Focus(pane) => self.set_focus(pane),
            Act::Jump(jump) => self.out.ask_all(self.turns.seek_jump(jump)),
            Act::Repeat => {
                let jump = self.turns.jump.and_then(|jump| self.turns.seek_jump(jump));
                self.out.ask_all(jump);
            }
            Act::Return => self.out.ask_all(self.turns.seek_origin()),
            Act::Open => self.open_row(),
            Act::Close if self.layout.focus == Pane::Sessions => self.quit(),
            Act::Back | Act::Close => self.back(),
            Act::Quit => self.quit(),
            Act::Suspend => self.out.ask(Effect::Suspend),
            Act::Larger | Act::Smaller => self.layout.set_zoom(act),
            Act::Range => self.turns.toggle_range(),
            Act::Detail => self.reader.fold.detail = next(self.reader.fold.detail),
            Act::Thoughts => self.reader.fold.thoughts = next(self.reader.fold.thoughts),
            Act::Files => {
                let fold = &mut self.reader.fold;
                fold.has_files_only = !fold.has_files_only;
            }
            Act::Diff => self.reader.fold.side_by_side = !self.reader.fold.side_by_side,
            Act::FoldReverted => {
                self.turns.is_folded = !self.turns.is_folded;
                self.refresh();
            }
            Act::UnfoldAll => self.reader.toggle_all(),
            Act::Find => self.is_typing = true,
            Act::FindNext => self.find(Way::Forward),
            Act::FindPrevious => self.find(Way::Backward),
            Act::Scope | Act::Agent => {
                self.list.choose(act, self.look);
                self.follow_list();
            }
            Act::SearchAll => self.dialog = Some(Dialog::Search(Search::default())),
            Act::CopyCommand | Act::CopyTurn | Act::CopyPrompt | Act::CopyPlace | Act::CopyCode => {
                self.copy(act);
            }
            Act::Revert | Act::Keep | Act::Undo | Act::Redo => {
                let change = Proposal::plan(act, &self.turns, self.prompt());
                if let Some(change) = change {
                    self.open_change(change);
                }
            }
            Act::Switch | Act::Compare => {
                if self.turns.turn().is_some() {
                    self.purpose = Some(act);
                    let at = self.turns.cursor.at;
                    self.out.ask_all(self.turns.seek(Sought::BranchEnd, at));
                }
            }
            Act::Name => {
                if let Some(turn) = self.turns.turn() {
                    let (place, field) = (turn.place(), Field::default());
                    self.dialog = Some(Dialog::Name(Naming { place, field }));
                }
            }
            Act::Lost => {
                self.out.ask_all(self.turns.about(&["audit", "--boundary"]).map(Effect::Show));
            }
            Act::Resume => self.out.ask_all(self.turns.about(&["resume"]).map(Effect::Outside)),
            Act::ResumeInWindow => {
                self.out.ask_all(self.turns.about(&["resume"]).map(Effect::Window));
            }
            Act::Command => self.dialog = Some(Dialog::Command(CommandLine::default())),
            Act::Messages => {
                let lines = self.out.messages.iter().rev().map(|said| vec![said.clone()]).collect();
                let title = "Messages of this run, newest first".to_owned();
                self.dialog = Some(Dialog::Text(Text { title, lines, top: 0 }));
            }
            Act::Help => {
                let help = Help::new(self.layout.focus, &self.keys);
                self.dialog = Some(Dialog::Help(help));
            }
        }
    }

    /// Quits, once a change that is being made has ended.
    fn quit(&mut self) {
        match &mut self.change {
            None => self.out.ask(Effect::Quit),
            Some(change) => {
                change.quits = true;
                self.out.say(Label::Dim, "this ends as soon as the change is made");
            }
        }
    }

    /// Returns the cursor of the focused pane.
    pub(super) fn cursor(&self) -> Cursor {
        match self.layout.focus {
            Pane::Sessions => self.list.cursor,
            Pane::Turns => self.turns.cursor,
            Pane::Reading => self.reader.cursor,
        }
    }

    /// Moves the cursor of the focused pane.
    pub(super) fn step(&mut self, way: Way, rows: usize) {
        let rows = rows.max(1);
        match self.layout.focus {
            Pane::Sessions => {
                let len = self.list.shown.len();
                self.list.cursor.step(way, rows, len);
                self.follow_list();
            }
            Pane::Turns => self.turns.step(way, rows),
            Pane::Reading => {
                let len = self.reader.rows().len();
                self.reader.cursor.step(way, rows, len);
            }
        }
    }

    pub(super) fn set_focus(&mut self, pane: Pane) {
        if self.layout.focus != pane {
            self.layout.focus = pane;
            (self.is_typing, self.pending) = (false, None);
        }
    }

    /// One level out.
    fn back(&mut self) {
        let is_filtered = !self.list.filter.text.is_empty();
        let focus = self.layout.focus;
        if self.out.message.take().is_some() && focus == Pane::Sessions && !is_filtered {
            return;
        }
        match focus {
            _ if self.layout.zoom != Zoom::Even => self.layout.set_zoom(Act::Smaller),
            Pane::Sessions if is_filtered => {
                self.list.filter = Field::default();
                self.list.filter(self.look);
            }
            Pane::Sessions => {}
            Pane::Turns => self.set_focus(Pane::Sessions),
            Pane::Reading => self.set_focus(Pane::Turns),
        }
    }

    /// Opens what is under the cursor.
    fn open_row(&mut self) {
        match self.layout.focus {
            Pane::Sessions if self.turns.session.is_some() => self.set_focus(Pane::Turns),
            Pane::Sessions => {}
            Pane::Turns => self.set_focus(Pane::Reading),
            Pane::Reading => {
                let opened = self.reader.toggle();
                let cut = opened.and_then(|entry| self.reader.cut_entry(entry));
                if let Some((session, entry)) = self.turns.session.clone().zip(cut) {
                    self.out.ask(Effect::Whole(session, entry));
                }
            }
        }
    }

    /// Finds the next match in the focused pane.
    fn find(&mut self, way: Way) {
        let (sought, at) = (self.sought.text.clone(), self.turns.cursor.at);
        match self.layout.focus {
            _ if sought.is_empty() => {}
            Pane::Sessions => {}
            Pane::Turns => self.out.ask_all(self.turns.seek(Sought::Text(sought, way), at)),
            Pane::Reading if self.reader.find(&sought, way) => {}
            Pane::Reading => self.out.say_nothing_contains(&sought),
        }
    }

    /// Uses what is typed so far as the filter, or finds it. The match under the cursor counts too.
    pub(super) fn typed(&mut self) {
        let sought = self.sought.text.clone();
        match self.layout.focus {
            Pane::Sessions => {
                self.list.filter(self.look);
                self.follow_list();
            }
            Pane::Turns if sought.is_empty() => {}
            Pane::Turns => {
                let before = (self.turns.cursor.at + self.turns.len()).saturating_sub(1);
                self.out.ask_all(self.turns.seek(Sought::Text(sought, Way::Forward), before));
            }
            Pane::Reading => {
                self.reader.cursor.step(Way::Backward, 1, 0);
                self.find(Way::Forward);
            }
        }
    }

    /// Returns the prompt of the turn under the cursor, if it was read.
    fn prompt(&self) -> Option<String> {
        let place = self.turns.turn().map(super::data::TurnRow::place);
        self.reader.prompt().filter(|_| self.reader.is_at(place.as_deref()))
    }

    fn copy(&mut self, act: Act) {
        let (text, what) = match act {
            Act::CopyCommand => (self.command(), "the command"),
            Act::CopyTurn => (self.reader.text(), "the turn"),
            Act::CopyPrompt => (self.prompt(), "the prompt"),
            Act::CopyCode => (self.reader.code(), "the code"),
            _ => (self.turns.place(), "the place"),
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => {
                self.out.ask(Effect::Copy(text));
                self.out.say(Label::Dim, &format!("copied {what}, if your terminal allows it"));
            }
            None => self.out.say(Label::Dim, "there is nothing to copy"),
        }
    }
}

/// Changes.
impl Browse {
    fn open_change(&mut self, change: Proposal) {
        self.out.ask(Effect::Plan(change.args.clone()));
        self.dialog = Some(Dialog::Change(change));
    }

    /// Switches to the end of a reverted branch, or compares it with the current one.
    fn at_branch_end(&mut self, purpose: Act, end: Option<BranchEnd>) {
        let Some(end) = end else {
            return self.out.say(Label::Dim, "b and c are for a reverted turn; g r goes to one");
        };
        let BranchEnd { last, name } = end;
        let word = self.turns.word.as_deref().unwrap_or_default();
        let (title, args) = match (purpose, &name) {
            (Act::Compare, _) => {
                let session = self.turns.session.clone();
                return self.out.ask_all(session.map(|session| Effect::Compare(session, last)));
            }
            (_, Some(name)) => (format!("Switch {word} to {name}, up to {last}"), ["switch", name]),
            (_, None) => (format!("Go to the reverted end {last} of {word}"), ["revert", &last]),
        };
        if let Some(args) = self.turns.about(&args) {
            self.open_change(Proposal::new(title, args));
        }
    }

    /// Makes the change of the dialog.
    pub(super) fn confirm(&mut self, next: Option<Act>) {
        let Some(Dialog::Change(change)) = self.dialog.take() else { return };
        let args = change.command();
        let is_now = !change.is_delayed();
        let prompt = change.prompt.clone().filter(|_| is_now && !change.keeps());
        let resumes = is_now && next.is_some();
        self.change = Some(Confirmed { prompt, resumes, quits: false });
        self.out.say(Label::Dim, &format!("{} …", self.spelled(&args)));
        self.out.ask(Effect::Run(args));
    }

    /// Shows the turn that the search found.
    pub(super) fn go_to_found(&mut self, found: Found) {
        let Found { session, entry, turn, .. } = found;
        self.dialog = None;
        self.list.reveal(&session, self.look);
        if !self.turns.is_shown(&session) {
            self.open(session);
        }
        self.turns.wanted = Some(Wanted { turn, entry });
        self.out.ask_all(self.turns.seek_wanted());
        self.set_focus(Pane::Reading);
    }
}
