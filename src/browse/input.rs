//! Input: keys, pastes and the mouse, for the dialog, the field or the panes, in this order.

use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use super::data::Effect;
use super::dialog::{Change, Dialog, Field};
use super::keys::{self, Act, Pane};
use super::list::Way;
use super::state::Browse;

/// How many rows a turn of the wheel scrolls.
const WHEEL: usize = 3;

/// What a key does to a dialog.
enum Outcome {
    Stays,
    Closes,
    Confirms(Option<Act>),
    Plans,
    Names(String),
    Runs(String),
    Searches,
    GoesToHit,
    Filters,
    Acts(Act),
}

impl Browse {
    /// Handles a key.
    pub(crate) fn on_key(&mut self, key: KeyEvent) {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        // These two work everywhere.
        match key.code {
            KeyCode::Char('c') if is_control => return self.act(Act::Quit),
            KeyCode::Char('z') if is_control => return self.act(Act::Suspend),
            _ => {}
        }
        if self.dialog.is_some() {
            self.on_dialog_key(key);
        } else if self.is_typing {
            self.on_field_key(key);
        } else {
            self.on_pane_key(key);
        }
    }

    /// Handles a pasted text.
    pub(crate) fn on_paste(&mut self, text: &str) {
        if let Some(field) = self.field() {
            field.insert(text);
            self.field_changed();
        }
    }

    /// Returns the field that has the cursor.
    pub(super) fn field(&mut self) -> Option<&mut Field> {
        match &mut self.dialog {
            Some(Dialog::Change(change)) => change.note.as_mut(),
            Some(Dialog::Name(field) | Dialog::Command(field)) => Some(field),
            Some(Dialog::Search(search)) => Some(&mut search.field),
            Some(Dialog::Help(help)) => Some(&mut help.field),
            Some(Dialog::Text(_)) => None,
            None if !self.is_typing => None,
            None if self.focus == Pane::Sessions => Some(&mut self.list.filter),
            None => Some(&mut self.sought),
        }
    }

    fn field_changed(&mut self) {
        match &self.dialog {
            Some(Dialog::Search(search)) => {
                let words = search.field.text.clone();
                self.search(words);
            }
            Some(Dialog::Help(_)) => self.filter_help(),
            Some(_) => {}
            None => self.typed(),
        }
    }

    fn on_pane_key(&mut self, key: KeyEvent) {
        let Some(name) = keys::name(key) else { return };
        if let Some(first) = self.pending.take() {
            let typed = format!("{first} {name}");
            if let Some(act) = self.keys.find(self.focus, &typed) {
                self.act(act);
            }
            return;
        }
        match self.keys.find(self.focus, &name) {
            Some(act) => self.act(act),
            None if self.keys.after(self.focus, &name).next().is_some() => {
                self.pending = Some(name);
            }
            None => {}
        }
    }

    fn on_field_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Enter if self.focus == Pane::Sessions && self.list.shown.is_empty() => {
                // Nothing is called that; it may have been said.
                self.is_typing = false;
                let words = std::mem::take(&mut self.list.filter).text;
                self.typed();
                self.act(Act::SearchAll);
                self.on_paste(&words);
            }
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                if let Some(field) = self.field_of_pane() {
                    *field = Field::default();
                    self.typed();
                }
            }
            KeyCode::Down => self.step(Way::Forward, 1),
            KeyCode::Up => self.step(Way::Backward, 1),
            _ => {
                if self.field().is_some_and(|field| field.on_key(key)) {
                    self.field_changed();
                }
            }
        }
    }

    fn field_of_pane(&mut self) -> Option<&mut Field> {
        (self.focus == Pane::Sessions).then_some(&mut self.list.filter)
    }

    fn on_dialog_key(&mut self, key: KeyEvent) {
        let Some(mut dialog) = self.dialog.take() else { return };
        let outcome = if key.code == KeyCode::Esc {
            Outcome::Closes
        } else {
            let page = usize::from(self.size.1).saturating_sub(6).max(1);
            dialog_key(&mut dialog, key, page, &self.commands)
        };
        if !matches!(outcome, Outcome::Closes) {
            self.dialog = Some(dialog);
        }
        match outcome {
            Outcome::Stays | Outcome::Closes => {}
            Outcome::Confirms(next) => self.confirm(next),
            Outcome::Plans => {
                if let Some(Dialog::Change(change)) = &self.dialog {
                    let args = change.args.clone();
                    self.ask(Effect::Plan(args));
                }
            }
            Outcome::Names(name) => {
                self.dialog = None;
                self.name(&name);
            }
            Outcome::Runs(typed) => {
                self.dialog = None;
                if !typed.trim().is_empty() {
                    let session = self.session.clone();
                    self.ask(Effect::Command(typed, session));
                }
            }
            Outcome::Searches | Outcome::Filters => self.field_changed(),
            Outcome::GoesToHit => {
                if let Some(Dialog::Search(search)) = &self.dialog
                    && let Some(found) = search.found.get(search.cursor).cloned()
                {
                    self.go_to_found(found);
                }
            }
            Outcome::Acts(act) => {
                self.dialog = None;
                self.act(act);
            }
        }
    }

    fn search(&mut self, words: String) {
        if words.trim().is_empty() {
            if let Some(Dialog::Search(search)) = &mut self.dialog {
                search.found.clear();
                search.total.clear();
            }
        } else {
            self.ask(Effect::Search(words));
        }
    }

    /// Handles the mouse: a click moves the cursor, the wheel scrolls the pane under it.
    pub(crate) fn on_mouse(&mut self, event: MouseEvent) {
        let way = match event.kind {
            MouseEventKind::ScrollDown => Some(Way::Forward),
            MouseEventKind::ScrollUp => Some(Way::Backward),
            MouseEventKind::Down(MouseButton::Left) => None,
            _ => return,
        };
        if let Some(dialog) = &mut self.dialog {
            if let Some(way) = way {
                scroll_dialog(dialog, way, WHEEL);
            }
            return;
        }
        let Some((pane, row)) = self.pane_at(event.column, event.row) else { return };
        self.set_focus(pane);
        match way {
            Some(way) if pane == Pane::Reading => {
                let len = self.reader.rows().len();
                self.reader.cursor.scroll(way, WHEEL, len);
            }
            Some(way) => self.step(way, WHEEL),
            None => self.click(pane, row),
        }
    }

    /// Moves the cursor of a pane to one of its visible rows.
    fn click(&mut self, pane: Pane, row: usize) {
        let at = match pane {
            Pane::Sessions => Some(self.list.cursor.top + row),
            Pane::Turns => self.turn_at_line(row),
            Pane::Reading => Some(self.reader.cursor.top + row),
        };
        let now = match pane {
            Pane::Sessions => self.list.cursor.at,
            Pane::Turns => self.turns.at,
            Pane::Reading => self.reader.cursor.at,
        };
        match at {
            Some(at) if at > now => self.step(Way::Forward, at - now),
            Some(at) if at < now => self.step(Way::Backward, now - at),
            Some(_) if pane == Pane::Reading => self.act(Act::Open),
            _ => {}
        }
    }
}

fn dialog_key(dialog: &mut Dialog, key: KeyEvent, page: usize, commands: &[String]) -> Outcome {
    match dialog {
        Dialog::Change(change) => change_key(change, key),
        Dialog::Text(_) => {
            let (way, rows) = match key.code {
                KeyCode::Char('j') | KeyCode::Down => (Way::Forward, 1),
                KeyCode::Char('k') | KeyCode::Up => (Way::Backward, 1),
                KeyCode::Char(' ') | KeyCode::PageDown => (Way::Forward, page),
                KeyCode::PageUp => (Way::Backward, page),
                KeyCode::Char('G') | KeyCode::End => (Way::Forward, usize::MAX),
                KeyCode::Char('g') | KeyCode::Home => (Way::Backward, usize::MAX),
                KeyCode::Char('q') | KeyCode::Enter => return Outcome::Closes,
                _ => return Outcome::Stays,
            };
            scroll_dialog(dialog, way, rows);
            Outcome::Stays
        }
        Dialog::Name(field) => match key.code {
            KeyCode::Enter => Outcome::Names(std::mem::take(&mut field.text)),
            _ => edits(field, key, Outcome::Stays),
        },
        Dialog::Command(field) => match key.code {
            KeyCode::Enter => Outcome::Runs(std::mem::take(&mut field.text)),
            KeyCode::Tab => {
                complete(field, commands);
                Outcome::Stays
            }
            _ => edits(field, key, Outcome::Stays),
        },
        Dialog::Search(search) => {
            let last = search.found.len().saturating_sub(1);
            match key.code {
                KeyCode::Enter => return Outcome::GoesToHit,
                KeyCode::Down => search.cursor = last.min(search.cursor + 1),
                KeyCode::Up => search.cursor = search.cursor.saturating_sub(1),
                KeyCode::PageDown => search.cursor = last.min(search.cursor + page / 2),
                KeyCode::PageUp => search.cursor = search.cursor.saturating_sub(page / 2),
                _ => return edits(&mut search.field, key, Outcome::Searches),
            }
            Outcome::Stays
        }
        Dialog::Help(help) => {
            let last = help.acts.len().saturating_sub(1);
            match key.code {
                KeyCode::Enter => {
                    let act = help.acts.get(help.cursor);
                    return act.map_or(Outcome::Stays, |act| Outcome::Acts(*act));
                }
                KeyCode::Down => help.cursor = last.min(help.cursor + 1),
                KeyCode::Up => help.cursor = help.cursor.saturating_sub(1),
                KeyCode::PageDown => help.cursor = last.min(help.cursor + page),
                KeyCode::PageUp => help.cursor = help.cursor.saturating_sub(page),
                _ => return edits(&mut help.field, key, Outcome::Filters),
            }
            Outcome::Stays
        }
    }
}

fn change_key(change: &mut Change, key: KeyEvent) -> Outcome {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match (key.code, &mut change.note) {
        (KeyCode::Enter, _) => Outcome::Confirms(None),
        (KeyCode::Char('o'), _) if is_control => Outcome::Confirms(Some(Act::Resume)),
        (KeyCode::Char('r'), _) if is_control => Outcome::Plans,
        (_, Some(note)) => edits(note, key, Outcome::Stays),
        (_, None) => Outcome::Stays,
    }
}

/// Edits a field. Returns `changed` if it changed.
fn edits(field: &mut Field, key: KeyEvent, changed: Outcome) -> Outcome {
    if field.on_key(key) { changed } else { Outcome::Stays }
}

/// Completes the first word of a command line as far as it is unambiguous.
fn complete(field: &mut Field, commands: &[String]) {
    let typed = field.text.clone();
    let mut matching = commands.iter().filter(|command| command.starts_with(&typed));
    let Some(first) = matching.next() else { return };
    let shared = |one: &str, other: &str| {
        one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
    };
    let (mut len, mut is_alone) = (first.chars().count(), true);
    for other in matching {
        (len, is_alone) = (len.min(shared(first, other)), false);
    }
    field.text = first.chars().take(len).collect();
    if is_alone {
        field.text.push(' ');
    }
}

fn scroll_dialog(dialog: &mut Dialog, way: Way, rows: usize) {
    match (dialog, way) {
        (Dialog::Text(text), Way::Forward) => {
            text.top = text.top.saturating_add(rows).min(text.lines.len().saturating_sub(1));
        }
        (Dialog::Text(text), Way::Backward) => text.top = text.top.saturating_sub(rows),
        (Dialog::Search(search), Way::Forward) => {
            let last = search.found.len().saturating_sub(1);
            search.cursor = last.min(search.cursor.saturating_add(rows));
        }
        (Dialog::Search(search), Way::Backward) => {
            search.cursor = search.cursor.saturating_sub(rows);
        }
        _ => {}
    }
}
