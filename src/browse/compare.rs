//! The dialog that compares a reverted branch with what replaced it, turn by turn.

use std::collections::BTreeMap;

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use undertext::model::{Block, Message};
use undertext::verbs::Line;

use super::data::{Comparison, text_of};
use super::dialog::Outcome;
use super::keys::Act;
use super::reader::{Fold, lay_out};
use super::state::Look;
use crate::render::call::Caller;
use crate::render::style::Span;

/// A comparison: the turns of each side, and the pair that is shown.
#[derive(Clone, Debug)]
pub(super) struct Compare {
    sides: [Vec<Vec<Line>>; 2],
    folder: Option<String>,
    at: usize,
    /// The first row shown.
    pub(super) top: usize,
    has_files_only: bool,
}

impl Compare {
    pub(super) fn new(comparison: Comparison) -> Self {
        let sides = comparison.sides.map(|lines| {
            let mut turns: Vec<Vec<Line>> = Vec::new();
            for line in lines {
                match turns.last_mut().filter(|_| line.checkpoint.is_none()) {
                    Some(turn) => turn.push(line),
                    None => turns.push(vec![line]),
                }
            }
            turns
        });
        Self { sides, folder: comparison.folder, at: 0, top: 0, has_files_only: false }
    }

    pub(super) fn on_key(&mut self, key: KeyEvent) -> Outcome {
        let last = self.sides.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1);
        match key.code {
            KeyCode::Char('J') => (self.at, self.top) = (last.min(self.at + 1), 0),
            KeyCode::Char('K') => (self.at, self.top) = (self.at.saturating_sub(1), 0),
            KeyCode::Char('f') => self.has_files_only = !self.has_files_only,
            KeyCode::Char('b') => return Outcome::Acts(Act::Switch),
            KeyCode::Char('y') => return Outcome::Copies,
            KeyCode::Char('q') => return Outcome::Closes,
            _ => {}
        }
        Outcome::Stays
    }

    /// Returns which turns are compared.
    pub(super) fn title(&self) -> String {
        let [reverted, now] = self.sides.each_ref().map(|turns| range(turns));
        format!("Compare: reverted {reverted} ⇄ {now} that replaced them")
    }

    /// Returns which of the pairs is shown.
    pub(super) fn position(&self) -> String {
        let pairs = self.sides.iter().map(Vec::len).max().unwrap_or(0);
        format!("{} of {pairs}", pairs.min(self.at + 1))
    }

    /// Returns the rows of both sides of the pair, from the first one shown.
    pub(super) fn rows(&mut self, width: usize, look: Look) -> [Vec<Vec<Span>>; 2] {
        let rows = [0, 1].map(|side: usize| self.side(side, width, look));
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        self.top = self.top.min(longest.saturating_sub(1));
        rows.map(|rows| rows.into_iter().skip(self.top).collect())
    }

    fn side(&self, side: usize, width: usize, look: Look) -> Vec<Vec<Span>> {
        let turn = self.sides.get(side).and_then(|turns| turns.get(self.at));
        let mut lines = turn.cloned().unwrap_or_default();
        let mut fold = Fold::TITLES;
        if self.has_files_only {
            lines.retain(|line| line.messages.iter().flat_map(Message::parts).any(is_edit));
            fold = Fold::SHORT;
        }
        let folder = self.folder.as_deref();
        let rows = lay_out(&lines, &BTreeMap::new(), folder, width, look, fold);
        rows.into_iter().map(|row| row.spans).collect()
    }

    /// Returns the text of the pair.
    pub(super) fn text(&self, look: Look) -> String {
        let side = |side| {
            let rows = self.side(side, usize::from(u16::MAX), look);
            rows.iter().map(|row| text_of(row)).collect::<Vec<_>>().join("\n")
        };
        [side(0), side(1)].join("\n\n")
    }
}

/// Returns true if a block is a call that edits a file.
fn is_edit(block: &Block) -> bool {
    let Block::Call { name, input, .. } = block else { return false };
    !Caller { name, folder: None, whole: false }.say(input).body.is_empty()
}

/// Returns the places of the first and the last turn.
fn range(turns: &[Vec<Line>]) -> String {
    let place = |turn: Option<&Vec<Line>>| {
        turn.and_then(|turn| turn.first()?.checkpoint).map(|n| format!("@{n}"))
    };
    let (first, last) = (place(turns.first()), place(turns.last()).filter(|_| turns.len() > 1));
    first.into_iter().chain(last).collect::<Vec<_>>().join("–")
}
