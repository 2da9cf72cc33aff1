//! The dialog that compares a reverted branch with what replaced it, turn by turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent};
use undertext::verbs::Line;

use super::data::{Comparison, Conversation};
use super::dialog::Outcome;
use super::keys::Act;
use super::reader::{Draft, Fold, Pages};
use super::state::Look;
use crate::render::conversation::{Detail, Row};

/// From this width on, two turns are side by side.
const SIDE_BY_SIDE: u16 = 72;
/// The columns that the box around them takes.
const BOX: u16 = 6;

/// A comparison: the turns of each side, and the pair that is shown.
#[derive(Clone, Debug)]
pub(super) struct Compare {
    sides: [Vec<Arc<Conversation>>; 2],
    pages: [Pages; 2],
    at: usize,
    /// The first row shown.
    pub(super) top: usize,
    fold: Fold,
}

impl Compare {
    pub(super) fn new(comparison: Comparison) -> Self {
        let Comparison { session, sides, folder } = comparison;
        let sides = sides.map(|lines| {
            let turns = lines.chunk_by(|_, next| next.checkpoint.is_none());
            let turn = |lines: &[Line]| Conversation {
                session: session.clone(),
                place: String::new(),
                lines: lines.to_vec(),
                beneath: BTreeMap::new(),
                folder: folder.clone(),
            };
            turns.map(|lines| Arc::new(turn(lines))).collect()
        });
        let fold = Fold::new(Detail::Titles);
        Self { sides, pages: Default::default(), at: 0, top: 0, fold }
    }

    pub(super) fn on_key(&mut self, key: KeyEvent) -> Outcome {
        let last = self.sides.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1);
        match key.code {
            KeyCode::Char('J') => (self.at, self.top) = (last.min(self.at + 1), 0),
            KeyCode::Char('K') => (self.at, self.top) = (self.at.saturating_sub(1), 0),
            KeyCode::Char('f') => {
                let is_whole = self.fold.has_files_only;
                self.fold = Fold::new(if is_whole { Detail::Titles } else { Detail::Short });
                self.fold.has_files_only = !is_whole;
            }
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

    /// Returns what must be laid out on a screen of a width.
    pub(super) fn missing(&self, screen: u16, look: Look) -> Vec<Draft> {
        let columns = usize::from(width_of_side(screen.saturating_sub(BOX)));
        let draft = |(turns, pages): (&Vec<Arc<Conversation>>, &Pages)| {
            let (shown, fold) = (Arc::clone(turns.get(self.at)?), self.fold.clone());
            pages.missing(Draft { shown, columns, look, fold })
        };
        self.sides.iter().zip(&self.pages).filter_map(draft).collect()
    }

    /// Shows the rows of a side of the pair.
    pub(super) fn lay_out(&mut self, draft: &Draft, rows: &[Row]) {
        for (turns, pages) in self.sides.iter().zip(&mut self.pages) {
            if turns.get(self.at).is_some_and(|turn| Arc::ptr_eq(turn, &draft.shown)) {
                pages.replace(draft.clone(), rows.to_vec());
            }
        }
    }

    /// Returns the rows of both sides of the pair, from the first one shown.
    pub(super) fn rows(&mut self) -> [&[Row]; 2] {
        let (sides, at) = (&self.sides, self.at);
        let rows = [0, 1].map(|side: usize| -> &[Row] {
            let turn = sides.get(side).and_then(|turns| turns.get(at));
            let pages = self.pages.get(side);
            let pages = pages.filter(|pages| turn.is_some_and(|turn| pages.are_of(turn)));
            pages.map_or(&[], |pages| &pages.rows)
        });
        let longest = rows.iter().map(|rows| rows.len()).max().unwrap_or(0);
        self.top = self.top.min(longest.saturating_sub(1));
        rows.map(|rows| rows.get(self.top..).unwrap_or_default())
    }

    /// Returns the text of the pair.
    pub(super) fn text(&self) -> String {
        let [one, other] = self.pages.each_ref();
        let texts = one.texts().chain([String::new()]).chain(other.texts());
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Returns the width of each side in a box; all of it if they are one below the other.
pub(super) fn width_of_side(inside: u16) -> u16 {
    if inside >= SIDE_BY_SIDE { (inside - 3) / 2 } else { inside }
}

/// Returns the places of the first and the last turn.
fn range(turns: &[Arc<Conversation>]) -> String {
    let place = |turn: Option<&Arc<Conversation>>| {
        turn.and_then(|turn| turn.lines.first()?.checkpoint).map(|n| format!("@{n}"))
    };
    let (first, last) = (place(turns.first()), place(turns.last()).filter(|_| turns.len() > 1));
    first.into_iter().chain(last).collect::<Vec<_>>().join("–")
}
