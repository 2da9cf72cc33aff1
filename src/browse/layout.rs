//! The layout of the screen: which pane has the focus, and where everything is.
//!
//! ```text
//! 110 columns and more              60 to 109: sessions are a screen of their own
//!  head                              head
//! ─ 1 Sessions ┬─ 2 Turns ─────     ─ Turns ──────────
//!              │                     …
//!              ├─ 3 @14 ───────     ─ @14 ────────────
//!              │                     …
//! ─────────────┴───────────────      $ command
//!  $ command                         keys
//!  status
//!  keys
//! ```

use ratatui::layout::{Position, Rect};

use super::canvas::after;
use super::keys::{Act, Pane};

/// From this width on, all panes are shown.
const WIDE: u16 = 110;
/// Minimum size: columns and rows.
pub(super) const LEAST: (u16, u16) = (60, 16);
/// The share of the width that the sessions take, in percent.
const LEFT: u16 = 31;

/// How much of the screen the focused pane gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Zoom {
    #[default]
    Even,
    Larger,
    Whole,
}

/// What the places of all panes follow from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout {
    /// The size of the screen.
    pub(super) size: (u16, u16),
    pub(super) focus: Pane,
    pub(super) zoom: Zoom,
}

/// Where everything is. A pane's first row is its title; a pane that is not shown is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    pub(super) head: Rect,
    pub(super) sessions: Rect,
    pub(super) turns: Rect,
    pub(super) reading: Rect,
    pub(super) rule: Rect,
    pub(super) command: Rect,
    pub(super) status: Rect,
    pub(super) keys: Rect,
    pub(super) is_wide: bool,
}

impl Layout {
    pub(super) fn is_too_small(self) -> bool {
        self.size.0 < LEAST.0 || self.size.1 < LEAST.1
    }

    pub(super) fn frame(self) -> Frame {
        let (width, height) = self.size;
        let row = |y: u16| Rect { x: 0, y, width, height: 1 };
        let is_wide = width >= WIDE;
        let below = if is_wide { 4 } else { 2 };
        let body = Rect { x: 0, y: 1, width, height: height.saturating_sub(1 + below) };
        let mut frame = Frame {
            head: row(0),
            keys: row(height.saturating_sub(1)),
            is_wide,
            ..Frame::default()
        };
        if is_wide {
            frame.rule = row(body.bottom());
            frame.command = row(body.bottom() + 1);
            frame.status = row(body.bottom() + 2);
        } else {
            frame.command = row(body.bottom());
        }
        let whole = self.zoom == Zoom::Whole;
        match self.focus {
            Pane::Sessions if whole || !is_wide => frame.sessions = body,
            Pane::Turns if whole => frame.turns = body,
            Pane::Reading if whole => frame.reading = body,
            focus => {
                let larger = self.zoom == Zoom::Larger;
                let mut right = body;
                if is_wide {
                    let share = if larger && focus == Pane::Sessions { 50 } else { LEFT };
                    frame.sessions = Rect { width: width * share / 100, ..body };
                    right = after(body, usize::from(frame.sessions.width) + 1);
                }
                let share = match (larger, focus) {
                    (true, Pane::Turns) => 70,
                    (true, Pane::Reading) => 25,
                    _ => 48,
                };
                let above = (right.height * share / 100).max(4);
                frame.turns = Rect { height: above, ..right };
                frame.reading = Rect {
                    y: right.y + above,
                    height: right.height.saturating_sub(above),
                    ..right
                };
            }
        }
        frame
    }

    /// Returns the width of the turns' rows; 0 if they are not shown.
    pub(super) fn turns_width(self) -> usize {
        if self.is_too_small() {
            return 0;
        }
        let frame = self.frame();
        // On a narrow screen the pane is as wide as the screen, whatever is shown now.
        let pane = if frame.turns.is_empty() && !frame.is_wide { frame.head } else { frame.turns };
        usize::from(pane.width).saturating_sub(2)
    }

    /// Returns the width of the conversation's rows; 0 if they are not shown.
    pub(super) fn reading_width(self) -> usize {
        usize::from(self.frame().reading.width).saturating_sub(2)
    }

    /// Returns the pane at a cell, and the row below its title.
    pub(super) fn pane_at(self, x: u16, y: u16) -> Option<(Pane, usize)> {
        let frame = self.frame();
        let panes = [
            (Pane::Sessions, frame.sessions),
            (Pane::Turns, frame.turns),
            (Pane::Reading, frame.reading),
        ];
        let mut panes = panes.into_iter().filter(|(_, area)| area.contains(Position { x, y }));
        let (pane, area) = panes.next()?;
        Some((pane, usize::from((y - area.y).saturating_sub(1))))
    }

    /// Returns the pane that a key goes to.
    pub(super) fn next_pane(self, act: Act) -> Pane {
        let panes = Pane::ALL;
        let at = panes.iter().position(|pane| *pane == self.focus).unwrap_or(0);
        let next = match act {
            Act::Left => at.saturating_sub(1),
            Act::Right => (at + 1).min(panes.len() - 1),
            _ => (at + 1) % panes.len(),
        };
        panes.get(next).copied().unwrap_or_default()
    }

    pub(super) fn set_zoom(&mut self, act: Act) {
        self.zoom = match (act, self.zoom) {
            (Act::Larger, Zoom::Even) | (Act::Smaller, Zoom::Whole) => Zoom::Larger,
            (Act::Larger, _) => Zoom::Whole,
            _ => Zoom::Even,
        };
    }
}
