//! Input: keys, pastes and the mouse, for the dialog, the field or the panes, in this order.

use ratatui::crossterm::event::{
    KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};

use super::cursor::Way;
use super::data::Effect;
use super::dialog::{Dialog, Field, Naming, Outcome};
use super::keys::{self, Act, Pane};
use super::state::{Browse, Confirmed};
use super::view::{facts_of, has_filter};
use crate::render::style::Label;

/// How many rows a turn of the wheel scrolls.
const WHEEL: usize = 3;

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
        if self.layout.is_too_small() {
            // Nothing is visible that a key could be meant for.
        } else if self.dialog.is_some() {
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

    /// Takes in a text that was edited outside.
    pub(crate) fn on_edited(&mut self, text: &str) {
        if let Some(field) = self.field() {
            field.set(text);
        }
    }

    /// Returns the field that has the cursor.
    fn field(&mut self) -> Option<&mut Field> {
        match &mut self.dialog {
            Some(dialog) => dialog.field(),
            None if !self.is_typing => None,
            None if self.layout.focus == Pane::Sessions => Some(&mut self.list.filter),
            None => Some(&mut self.sought),
        }
    }

    /// Uses the text of a field that changed.
    fn field_changed(&mut self) {
        match &mut self.dialog {
            Some(Dialog::Search(search)) if search.field.text.trim().is_empty() => {
                search.found.clear();
                search.total.clear();
            }
            Some(Dialog::Search(search)) => {
                let words = search.field.text.clone();
                self.out.ask(Effect::Search(words));
            }
            Some(Dialog::Help(help)) => help.filter(self.layout.focus, &self.keys),
            Some(_) => {}
            None => self.typed(),
        }
    }

    fn on_pane_key(&mut self, key: KeyEvent) {
        let Some(name) = keys::name(key) else { return };
        if let Some(first) = self.pending.take() {
            let typed = format!("{first} {name}");
            if let Some(act) = self.keys.find(self.layout.focus, &typed) {
                self.act(act);
            }
            return;
        }
        match self.keys.find(self.layout.focus, &name) {
            Some(act) => self.act(act),
            None if self.keys.after(self.layout.focus, &name).next().is_some() => {
                self.pending = Some(name);
            }
            None => {}
        }
    }

    fn on_field_key(&mut self, key: KeyEvent) {
        match key.code {
            KeyCode::Enter if self.layout.focus == Pane::Sessions && self.list.shown.is_empty() => {
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
                if self.layout.focus == Pane::Sessions {
                    self.list.filter = Field::default();
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

    fn on_dialog_key(&mut self, key: KeyEvent) {
        let Some(dialog) = &mut self.dialog else { return };
        let page = usize::from(self.layout.size.1).saturating_sub(6).max(1);
        let candidates = |before: &str| (self.candidates)(before, self.turns.places());
        match dialog.on_key(key, page, &candidates) {
            Outcome::Stays => {}
            Outcome::Closes => self.dialog = None,
            Outcome::Confirms(next) => self.confirm(next),
            Outcome::Plans => {
                if let Some(Dialog::Change(change)) = &self.dialog {
                    let args = change.args.clone();
                    self.out.ask(Effect::Plan(args));
                }
            }
            Outcome::Compares(place) => {
                self.dialog = None;
                self.out.ask_all(self.turns.about(&["diff", &place]).map(Effect::Show));
            }
            Outcome::Edits => {
                let note = dialog.field().map(|note| note.text.clone());
                self.out.ask_all(note.map(Effect::Edit));
            }
            Outcome::Names(Naming { place, field }) => {
                self.dialog = None;
                let name = field.text.trim();
                // A name may begin with a dash.
                let named = ["--", name, &place].map(str::to_owned);
                let args = self.turns.about(&["branch"]).map(|args| [&args[..], &named].concat());
                if let Some(args) = args.filter(|_| !name.is_empty()) {
                    self.change = Some(Confirmed::default());
                    self.out.ask(Effect::Run(args));
                }
            }
            Outcome::Copies => {
                if let Dialog::Compare(compare) = dialog {
                    self.out.ask(Effect::Copy(compare.text()));
                    self.out.say(Label::Dim, "copied the pair, if your terminal allows it");
                }
            }
            Outcome::Runs(typed) => {
                self.dialog = None;
                if !typed.trim().is_empty() {
                    self.out.ask(Effect::Command(typed, self.turns.session.clone()));
                }
            }
            Outcome::Typed => self.field_changed(),
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
                dialog.scroll(way, WHEEL);
            }
            return;
        }
        let Some((pane, row)) = self.layout.pane_at(event.column, event.row) else { return };
        let heads = match pane {
            Pane::Sessions => u16::from(has_filter(self)),
            Pane::Turns => facts_of(self.layout.frame()),
            Pane::Reading => 0,
        };
        let row = row.saturating_sub(heads.into());
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
            Pane::Sessions => self.list.lines(self.look).nth(row).map(|(at, _)| at),
            Pane::Turns => self.turns.at_line(row),
            Pane::Reading => Some(self.reader.cursor.top + row),
        };
        let now = self.cursor().at;
        match at {
            Some(at) if at > now => self.step(Way::Forward, at - now),
            Some(at) if at < now => self.step(Way::Backward, now - at),
            Some(_) if pane == Pane::Reading => self.act(Act::Open),
            _ => {}
        }
    }
}
