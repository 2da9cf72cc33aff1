//! Ranks: the order in which matching texts are shown.
//!
//! ```text
//! words     texts with all words of the query within a page come first, and among them those with the words as typed;
//!           otherwise the BM25 score of the message decides, which is higher if the words are close together
//! voice     messages to or from the agent rank above tool calls, and those above tool results
//! stand     the current path ranks above text that is reverted, undone, truncated or on another branch
//! recency   newer texts rank above older ones, by the logarithm of their age in days
//! ```
//!
//! No clock is used: ages are relative to the newest matching text. It is most expensive to find out whether a text is on the
//! current path, so ranks are first computed as if all texts were.
//!
//! Invariant: a rank depends only on the texts, not on their order.

#![expect(clippy::cast_precision_loss, reason = "what words tell is no exact number")]

use std::cmp::Ordering;

use super::{index::Score, scan::Found};
use crate::model::{Role, Timestamp};

/// The bonus for words that are close together.
const NEAR: f32 = 1.0;
/// All words must be within this many words to count as being together.
const PAGE: usize = 200;
/// The weights of a tool call, and of a tool result or a text of the agent program.
const CALLED: f32 = 0.85;
const ANSWERED: f32 = 0.7;
/// The weight of a text that is not on the current path.
const OFF_THE_PATH: f32 = 0.7;
/// By how much the weight falls each time the age in days doubles, and its minimum.
const OLDER: f32 = 0.02;
const OLDEST: f32 = 0.75;
/// Milliseconds per day.
const DAY: u64 = 86_400_000;

/// The order in which texts are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// The best match first.
    Relevance,
    /// The newest session first, and within it the newest text.
    #[default]
    Time,
}

/// How well a text answers a query; greater is better.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rank {
    has_all: bool,
    is_phrase: bool,
    points: f32,
}

impl Rank {
    /// Returns the rank of a text on the current path, given the number of needed terms and the time of the newest text.
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

    /// Returns the rank of the text if it is not on the current path.
    pub(crate) fn off_the_path(self) -> Self {
        Self { points: self.points * OFF_THE_PATH, ..self }
    }

    /// Compares ranks so that the best comes first.
    pub(crate) fn before(self, other: Self) -> Ordering {
        let kind = |it: Self| (it.has_all, it.is_phrase);
        kind(other).cmp(&kind(self)).then(other.points.total_cmp(&self.points))
    }
}

/// Returns the weight of a text's speaker.
fn voice(found: &Found) -> f32 {
    match (found.role, found.tool.is_some() || found.call.is_some()) {
        (Role::User | Role::Assistant, false) => 1.0,
        (Role::Assistant, true) => CALLED,
        _ => ANSWERED,
    }
}

/// Returns the weight of a text's age, relative to the newest text.
fn recency(time: Option<Timestamp>, newest: Option<Timestamp>) -> f32 {
    let (Some(time), Some(newest)) = (time, newest) else { return OLDEST };
    let days = newest.0.abs_diff(time.0) / DAY;
    (1.0 - OLDER * ((days + 1) as f32).log2()).max(OLDEST)
}
