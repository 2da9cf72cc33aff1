//! Ranks: which of several texts is shown first.
//!
//! ```text
//! words     those that have all words of a query within a page, then those that have them as they were typed
//!           what the words tell of the message by BM25, more if they are near each other
//! voice     what was said to the agent or by it, before what a tool was called with, before what it answered
//! stand     on the current path before what was left, undone, cut, or is on another branch
//! recency   the newest text before those of yesterday, of a month or of a year ago, by the logarithm of the days
//! ```
//!
//! Nothing comes from a clock: a text is as old as the newest of them makes it. Where a text stands costs most to find out, so
//! that the rank is told first as if all stood on their current paths.
//!
//! Invariant: ranks depend on the texts alone, not on their order.

#![expect(clippy::cast_precision_loss, reason = "what words tell is no exact number")]

use std::cmp::Ordering;

use super::{index::Score, scan::Found};
use crate::model::{Role, Timestamp};

/// How much words count that stand next to each other, besides the words.
const NEAR: f32 = 1.0;
/// Within how many words of a text all that are looked for must be to count as being there together.
const PAGE: usize = 200;
/// How much a text counts that a tool was called with, and what a tool or the agent itself said.
const CALLED: f32 = 0.85;
const ANSWERED: f32 = 0.7;
/// How much a text counts that is not on the current path.
const OFF_THE_PATH: f32 = 0.7;
/// How much less a text counts whenever its days double, and how little at least.
const OLDER: f32 = 0.02;
const OLDEST: f32 = 0.75;
/// How many milliseconds a day has.
const DAY: u64 = 86_400_000;

/// In which order texts are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The best match first.
    Relevance,
    /// The newest session first, and in it the newest text.
    #[default]
    Time,
}

/// How well a text answers a query; the greatest rank is the best.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rank {
    has_all: bool,
    is_phrase: bool,
    points: f32,
}

impl Rank {
    /// Returns the rank of a text that is on the current path, given how many words are looked for, and the time of the newest.
    pub(crate) fn of(
        found: &Found,
        score: Score,
        needed: usize,
        newest: Option<Timestamp>,
    ) -> Self {
        let nearness = &found.nearness;
        let has_all = nearness.terms == needed && nearness.within <= PAGE;
        let near = if nearness.terms > 1 {
            1.0 + NEAR * nearness.terms as f32 / nearness.within.max(nearness.terms) as f32
        } else {
            1.0
        };
        let points = score.points * near * voice(found) * recency(found.time, newest);
        Self { has_all, is_phrase: nearness.is_phrase, points }
    }

    /// Returns the rank of the text elsewhere.
    pub(crate) fn off_the_path(self) -> Self {
        Self { points: self.points * OFF_THE_PATH, ..self }
    }

    /// Compares ranks: the best first.
    pub(crate) fn before(self, other: Self) -> Ordering {
        let kind = |it: Self| (it.has_all, it.is_phrase);
        kind(other).cmp(&kind(self)).then(other.points.total_cmp(&self.points))
    }
}

/// Returns how much it counts who said a text.
fn voice(found: &Found) -> f32 {
    match (found.role, found.tool.is_some() || found.call.is_some()) {
        (Role::User | Role::Assistant, false) => 1.0,
        (Role::Assistant, true) => CALLED,
        _ => ANSWERED,
    }
}

/// Returns how much it counts how old a text is next to the newest one.
fn recency(time: Option<Timestamp>, newest: Option<Timestamp>) -> f32 {
    let (Some(time), Some(newest)) = (time, newest) else { return OLDEST };
    let days = newest.0.abs_diff(time.0) / DAY;
    (1.0 - OLDER * ((days + 1) as f32).log2()).max(OLDEST)
}
