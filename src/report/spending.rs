//! Spending: tokens and what they cost.

use std::collections::BTreeMap;

use serde::Serialize;

use super::shape::report;
use crate::model::{EntryNumber, Timestamp, Usage};

/// What sessions used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Expense {
    /// The number of sessions.
    pub sessions: u64,
    /// The number of turns with an answer.
    pub turns: u64,
    /// The number of answers that report their tokens.
    pub requests: u64,
    /// The tokens.
    pub usage: Usage,
    /// The cost in millionths of a dollar; `null` if no model's price is known.
    pub cost: Option<u64>,
    /// How many of the tokens have no price and are not part of the cost.
    pub unpriced: u64,
    /// The time of the first answer.
    pub first: Option<Timestamp>,
    /// The time of the last answer.
    pub last: Option<Timestamp>,
}

impl Expense {
    /// Returns the sum with what other turns of the session used.
    #[must_use]
    pub fn with(mut self, other: &Self) -> Self {
        self.sessions = self.sessions.max(other.sessions);
        self.turns += other.turns;
        self.requests += other.requests;
        self.usage.add(&other.usage);
        self.cost = self.cost.into_iter().chain(other.cost).reduce(u64::saturating_add);
        self.unpriced = self.unpriced.saturating_add(other.unpriced);
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
        self
    }
}

/// What a session used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// All of it, with its sub-agents. What it shares with the session that it was forked from counts too.
    pub all: Expense,
    /// What each turn used, by the prompt before the answers. Sub-agents with files of their own do not count.
    pub turns: BTreeMap<Option<EntryNumber>, Expense>,
}

/// What all sessions used, each answer once: copies in forks and resumed sessions do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spending {
    /// What they used.
    #[serde(flatten)]
    pub expense: Expense,
    /// The source of the prices.
    pub prices: String,
    /// The date of the prices.
    pub priced: String,
}

report!(Spending, "spending");

/// What a group of sessions used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spent {
    /// How groups are made: by `day`, `agent`, `model`, `folder` or `session`.
    pub by: &'static str,
    /// The day, agent, model, folder or session; `null` if unknown.
    pub name: Option<String>,
    /// The title, if it is a session.
    pub title: Option<String>,
    /// What it used.
    #[serde(flatten)]
    pub expense: Expense,
}

report!(Spent, "spent");
