//! Dialogs over the screen: a change to confirm, a text, a field, the search and the help.
//!
//! Invariant: no letter is a command while a field has the cursor, and no dialog changes anything without `enter`.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::compare::Compare;
use super::cursor::Way;
use super::data::{Found, Report, TurnRow};
use super::keys::{Act, Key, Keys, Pane, TABLE};
use super::turns::Turns;
use crate::render::safe;
use crate::render::style::Span;

/// The option that keeps the turn of a revert, and how its sides are called.
const KEEP: &str = "--keep";
const BEFORE: &str = "just before";
const AFTER: &str = "just after";
/// Maximum length of a field, in characters.
const LONGEST: usize = 2_000;

/// A line that a person types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) text: String,
}

impl Field {
    /// Adds a text, as a paste does.
    pub(super) fn insert(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.text.chars().count());
        self.text.extend(safe::line(text).chars().take(room));
    }

    /// Replaces the text by one that was edited elsewhere, with its lines.
    pub(super) fn set(&mut self, text: &str) {
        self.text = safe::text(text.trim()).chars().take(LONGEST).collect();
    }

    /// Edits the text. Returns false if the key does not edit.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if is_control => self.text.clear(),
            KeyCode::Char('w') if is_control => {
                let words = self.text.trim_end();
                self.text.truncate(words.rfind(' ').map_or(0, |space| space + 1));
            }
            KeyCode::Backspace => drop(self.text.pop()),
            KeyCode::Char(c) if !is_control && !key.modifiers.contains(KeyModifiers::ALT) => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            _ => return false,
        }
        true
    }

    /// Edits the text. Returns `changed` if the key edits.
    fn edit(&mut self, key: KeyEvent, changed: Outcome) -> Outcome {
        if self.on_key(key) { changed } else { Outcome::Stays }
    }

    /// Returns as much of the end as fits.
    pub(super) fn end(&self, room: usize) -> &str {
        let starts = self.text.char_indices().map(|(at, _)| at);
        let ends = starts.map(|at| self.text.get(at..).unwrap_or_default());
        ends.into_iter().find(|end| safe::width(end) <= room).unwrap_or_default()
    }
}

/// A name for a place: a branch of this name will end there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Naming {
    pub(super) place: String,
    pub(super) field: Field,
}

/// What a key in a dialog asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stays,
    Closes,
    /// Make the change, and then perhaps do something else.
    Confirms(Option<Act>),
    /// Try the change again.
    Plans,
    /// Show how a place differs from the current one.
    Compares(String),
    /// Edit the note in an editor.
    Edits,
    /// Copy what is shown.
    Copies,
    Names(Naming),
    Runs(String),
    /// The text of a field changed.
    Typed,
    GoesToHit,
    Acts(Act),
}

/// A dialog.
#[derive(Clone, Debug)]
pub(super) enum Dialog {
    Change(Proposal),
    Text(Text),
    Compare(Compare),
    Name(Naming),
    Command(CommandLine),
    Search(Search),
    Help(Help),
}

impl Dialog {
    /// Handles a key. `page` is the height of a page in rows; `candidates` returns the words that may follow a command line.
    pub(super) fn on_key(
        &mut self,
        key: KeyEvent,
        page: usize,
        candidates: &dyn Fn(&str) -> Vec<String>,
    ) -> Outcome {
        let key = if self.field().is_some() { key } else { without_field(key) };
        match (self, key.code) {
            (_, KeyCode::Esc) | (Self::Text(_), KeyCode::Char('q') | KeyCode::Enter) => {
                Outcome::Closes
            }
            (Self::Change(change), _) => change.on_key(key),
            (Self::Compare(compare), _) if step_of(key, page).is_none() => compare.on_key(key),
            (Self::Name(naming), KeyCode::Enter) => Outcome::Names(naming.clone()),
            (Self::Command(line), KeyCode::Enter) => {
                Outcome::Runs(std::mem::take(&mut line.field.text))
            }
            (Self::Command(line), KeyCode::Tab) => {
                line.complete(candidates);
                Outcome::Stays
            }
            (Self::Command(line), _) => {
                line.offered.clear();
                line.field.edit(key, Outcome::Stays)
            }
            (Self::Name(Naming { field, .. }), _) => field.edit(key, Outcome::Stays),
            (Self::Search(search), KeyCode::Enter) => {
                if search.found.is_empty() {
                    Outcome::Stays
                } else {
                    Outcome::GoesToHit
                }
            }
            (Self::Help(help), KeyCode::Enter) => {
                help.acts.get(help.cursor).map_or(Outcome::Stays, |act| Outcome::Acts(*act))
            }
            (Self::Search(Search { field, .. }) | Self::Help(Help { field, .. }), _)
                if step_of(key, page).is_none() =>
            {
                field.edit(key, Outcome::Typed)
            }
            (dialog, _) => {
                if let Some((way, rows)) = step_of(key, page) {
                    dialog.scroll(way, rows);
                }
                Outcome::Stays
            }
        }
    }

    /// Returns the field that has the cursor.
    pub(super) fn field(&mut self) -> Option<&mut Field> {
        match self {
            Self::Change(change) => change.note.as_mut(),
            Self::Name(Naming { field, .. }) | Self::Command(CommandLine { field, .. }) => {
                Some(field)
            }
            Self::Search(search) => Some(&mut search.field),
            Self::Help(help) => Some(&mut help.field),
            Self::Text(_) | Self::Compare(_) => None,
        }
    }

    /// Scrolls a text, or moves the cursor of a list.
    pub(super) fn scroll(&mut self, way: Way, rows: usize) {
        let (at, len) = match self {
            Self::Text(text) => (&mut text.top, text.lines.len()),
            Self::Search(search) => (&mut search.cursor, search.found.len()),
            Self::Help(help) => (&mut help.cursor, help.acts.len()),
            // Drawing limits it to the rows there are.
            Self::Compare(compare) => (&mut compare.top, usize::MAX),
            _ => return,
        };
        *at = match way {
            Way::Forward => at.saturating_add(rows).min(len.saturating_sub(1)),
            Way::Backward => at.saturating_sub(rows),
        };
    }
}

/// Returns on which side of a turn its place is. An id is a place just after its entry.
pub(super) fn side_of(place: &str) -> &'static str {
    if place.starts_with('@') { BEFORE } else { AFTER }
}

/// Returns the rows that a key moves by.
pub(super) fn step_of(key: KeyEvent, page: usize) -> Option<(Way, usize)> {
    match key.code {
        KeyCode::Down => Some((Way::Forward, 1)),
        KeyCode::Up => Some((Way::Backward, 1)),
        KeyCode::PageDown => Some((Way::Forward, page)),
        KeyCode::PageUp => Some((Way::Backward, page)),
        KeyCode::Home => Some((Way::Backward, usize::MAX)),
        KeyCode::End => Some((Way::Forward, usize::MAX)),
        _ => None,
    }
}

/// Returns the key that moves like a letter where no field has the cursor.
fn without_field(key: KeyEvent) -> KeyEvent {
    let code = match key.code {
        KeyCode::Char('j') => KeyCode::Down,
        KeyCode::Char('k') => KeyCode::Up,
        KeyCode::Char(' ') => KeyCode::PageDown,
        KeyCode::Char('g') => KeyCode::Home,
        KeyCode::Char('G') => KeyCode::End,
        code => code,
    };
    KeyEvent { code, ..key }
}

/// A command line that is typed.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandLine {
    pub(super) field: Field,
    /// The words that its last one may become.
    pub(super) offered: Vec<String>,
}

impl CommandLine {
    /// Completes the last word as far as it is unambiguous.
    fn complete(&mut self, candidates: &dyn Fn(&str) -> Vec<String>) {
        let text = &self.field.text;
        let (before, typed) = text.split_at(text.rfind(' ').map_or(0, |space| space + 1));
        let mut offered = candidates(before);
        offered.retain(|candidate| candidate.starts_with(typed));
        let Some((first, others)) = offered.split_first() else { return };
        let shared = |other: &String| {
            let both = first.chars().zip(other.chars());
            both.take_while(|(one, other)| one == other).count()
        };
        let len = others.iter().map(shared).min().unwrap_or(first.chars().count());
        let mut text: String = before.chars().chain(first.chars().take(len)).collect();
        if others.is_empty() {
            text.push(' ');
            offered.clear();
        }
        (self.field.text, self.offered) = (text, offered);
    }
}

/// A change to confirm.
#[derive(Clone, Debug, Default)]
pub(super) struct Proposal {
    pub(super) title: String,
    /// The command line that makes it.
    pub(super) args: Vec<String>,
    /// What it would do, once that was tried.
    pub(super) report: Option<Report>,
    /// The note for the model, if the change can leave one.
    pub(super) note: Option<Field>,
    /// The agent that has the session open.
    pub(super) open: Option<String>,
    /// The prompt that is copied when it is done.
    pub(super) prompt: Option<String>,
    /// How many turns arrived since it was tried, which must be confirmed again, and their places once they are known.
    pub(super) arrived: u64,
    pub(super) places: Vec<String>,
    /// True if the change can wait for the next resume.
    pub(super) may_wait: bool,
}

impl Proposal {
    /// Creates the dialog of a command line.
    pub(super) fn new(title: String, args: Vec<String>) -> Self {
        Self { title, args, may_wait: true, ..Self::default() }
    }

    /// Returns the dialog of a change of the shown session.
    pub(super) fn plan(act: Act, turns: &Turns, prompt: Option<String>) -> Option<Self> {
        let word = turns.word.as_ref()?;
        let turn = turns.turn().map(TurnRow::place);
        let (args, title) = match (act, &turn) {
            (Act::Undo, _) => (vec!["undo"], format!("Undo the last change of {word}")),
            (Act::Redo, _) => (vec!["redo"], format!("Redo the last undo of {word}")),
            (Act::Revert | Act::Keep, Some(place)) => {
                let side = if act == Act::Revert { side_of(place) } else { AFTER };
                let keep = (act == Act::Keep).then_some(KEEP);
                let args = ["revert", place].into_iter().chain(keep).collect();
                (args, format!("Revert {word} to {side} {place}"))
            }
            _ => return None,
        };
        let mut change = Self::new(title, turns.about(&args)?);
        change.note = matches!(act, Act::Revert | Act::Keep).then(Field::default);
        change.prompt = prompt.filter(|_| change.note.is_some());
        change.may_wait = act != Act::Redo;
        Some(change)
    }

    /// Keeps the prompt for a revert that was asked for before its turn was read.
    pub(super) fn see_prompt(&mut self, prompt: Option<String>) {
        if self.note.is_some() {
            self.prompt = self.prompt.take().or(prompt);
        }
    }

    /// Returns the command line that makes the change, or saves it while an agent has the session open.
    pub(super) fn command(&self) -> Vec<String> {
        let mut args = self.args.clone();
        if let Some(note) = self.note.as_ref().filter(|note| !note.text.trim().is_empty()) {
            args.push(format!("--message={}", note.text.trim()));
        }
        if self.is_delayed() {
            args.push("--later".to_owned());
        }
        args
    }

    fn on_key(&mut self, key: KeyEvent) -> Outcome {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if key.code == KeyCode::Tab && self.can_keep() {
            self.toggle_keep();
            return Outcome::Plans;
        }
        let unreached = self.unreached().map(str::to_owned);
        match (key.code, &mut self.note) {
            (KeyCode::Enter, _) if unreached.is_some() => {
                unreached.map_or(Outcome::Stays, Outcome::Compares)
            }
            (KeyCode::Enter, _) => self.confirm(None),
            (KeyCode::Char('o'), _) if is_control => self.confirm(Some(Act::Resume)),
            (KeyCode::Char('r'), _) if is_control => Outcome::Plans,
            (KeyCode::Char('g'), Some(_)) if is_control => Outcome::Edits,
            (_, Some(note)) => note.edit(key, Outcome::Stays),
            (_, None) => Outcome::Stays,
        }
    }

    /// Confirms the change, if it is known what it does. Turns that arrived were shown; the next key confirms them.
    fn confirm(&mut self, next: Option<Act>) -> Outcome {
        let can_be_made = self.report.as_ref().is_some_and(|report| report.is_done);
        match std::mem::take(&mut self.arrived) {
            0 if can_be_made => Outcome::Confirms(next),
            _ => Outcome::Stays,
        }
    }

    /// Returns the place that was refused because the agent would resume something else.
    pub(super) fn unreached(&self) -> Option<&str> {
        self.report.as_ref().filter(|report| report.is_out_of_reach)?;
        self.args.get(1).map(String::as_str).filter(|place| *place != "-s")
    }

    /// Returns true if the turn itself can be kept or not.
    pub(super) fn can_keep(&self) -> bool {
        self.note.is_some() && self.args.get(1).is_some_and(|place| place.starts_with('@'))
    }

    pub(super) fn keeps(&self) -> bool {
        self.args.iter().any(|arg| arg == KEEP)
    }

    /// Keeps the turn too, or no longer.
    fn toggle_keep(&mut self) {
        let (from, to) = if self.keeps() {
            self.args.retain(|arg| arg != KEEP);
            (AFTER, BEFORE)
        } else {
            self.args.insert(2, KEEP.to_owned());
            (BEFORE, AFTER)
        };
        self.title = self.title.replacen(from, to, 1);
        self.report = None;
    }

    /// Returns true if the change is saved for the next resume.
    pub(super) fn is_delayed(&self) -> bool {
        self.open.is_some() && self.may_wait
    }
}

/// A text to read.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) title: String,
    pub(super) lines: Vec<Vec<Span>>,
    pub(super) top: usize,
}

/// The search of all sessions.
#[derive(Clone, Debug, Default)]
pub(super) struct Search {
    pub(super) field: Field,
    pub(super) found: Vec<Found>,
    /// How many there are, in words.
    pub(super) total: String,
    pub(super) cursor: usize,
}

/// The list of keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Help {
    pub(super) field: Field,
    pub(super) cursor: usize,
    /// What the rows do.
    pub(super) acts: Vec<Act>,
}

impl Help {
    /// Creates the list of a pane's keys.
    pub(super) fn new(pane: Pane, keys: &Keys) -> Self {
        let mut help = Self::default();
        help.filter(pane, keys);
        help
    }

    /// Finds the keys of a pane that the filter matches.
    pub(super) fn filter(&mut self, pane: Pane, keys: &Keys) {
        let sought = self.field.text.to_lowercase();
        let has = |row: &&Key| {
            row.words.to_lowercase().contains(&sought) || keys.of(row).contains(&sought.as_str())
        };
        let rows = TABLE.iter().filter(|row| row.panes.contains(&pane)).filter(has);
        self.acts = rows.map(|row| row.act).collect();
        self.cursor = self.cursor.min(self.acts.len().saturating_sub(1));
    }
}
