//! Dialogs over the screen: a change to confirm, a text, a field, the search and the help.
//!
//! Invariant: no letter is a command while a field has the cursor, and no dialog changes anything without `enter`.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::data::{Found, Report};
use super::keys::Act;
use crate::render::safe;
use crate::render::style::Span;

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

    /// Returns as much of the end as fits.
    pub(super) fn end(&self, room: usize) -> &str {
        let starts = self.text.char_indices().map(|(at, _)| at);
        let ends = starts.map(|at| self.text.get(at..).unwrap_or_default());
        ends.into_iter().find(|end| safe::width(end) <= room).unwrap_or_default()
    }
}

/// A dialog.
#[derive(Clone, Debug)]
pub(super) enum Dialog {
    Change(Change),
    Text(Text),
    Name(Field),
    Command(Field),
    Search(Search),
    Help(Help),
}

/// A change to confirm.
#[derive(Clone, Debug)]
pub(super) struct Change {
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
    /// The turns that arrived since it was tried, which must be confirmed again.
    pub(super) arrived: Vec<String>,
    /// True if the change can wait for the next resume.
    pub(super) may_wait: bool,
}

impl Change {
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
