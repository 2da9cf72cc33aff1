//! Audits: the results that were cut in a session, by whom, and how much of them is hidden.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{
    hint::{Hint, Line},
    shape::{object, report},
};
use crate::{
    context::loss::Loss,
    model::{CheckpointNumber, CutOff, EntryId, EntryNumber, OperationNumber, Resized, Timestamp},
    session::Damaged,
    wire::Earlier,
};

/// An entry that was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The operation.
    pub operation: OperationNumber,
    /// When.
    pub at: Timestamp,
    /// Its command.
    pub command: &'static str,
    /// Whether it is undone.
    pub undone: bool,
    /// How many characters a result could have.
    pub limit: Option<u64>,
    /// The window that the limit was computed from, in tokens.
    pub window: Option<u64>,
    /// The entry that is there now.
    pub entry: EntryId,
    /// The one that it replaced.
    pub origin: EntryId,
    /// The one that holds all of it, which the words in place of the rest name.
    pub whole: EntryId,
    /// Its number in the session.
    pub place: EntryNumber,
    /// The turn of which it is a part, if that is known.
    pub turn: Option<CheckpointNumber>,
    /// The tool.
    pub tool: Option<String>,
    /// What the tool read or ran, if its call says so.
    pub subject: Option<String>,
    /// About how many tokens it was, and is.
    pub tokens: Resized,
    /// The cuts in it.
    pub cuts: Vec<CutOff>,
}

impl Replaced {
    /// Returns how many characters the cut texts have, and how many are shown in their place.
    pub fn chars(&self) -> Resized {
        let mut chars = Resized::default();
        for cut in &self.cuts {
            chars += Resized { before: cut.whole, after: cut.kept + cut.suffix };
        }
        chars
    }

    /// Returns how many characters are hidden.
    pub fn hidden(&self) -> u64 {
        self.cuts.iter().map(|cut| cut.whole - cut.kept.min(cut.whole)).sum()
    }
}

/// The entries that were replaced in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// By undertext, in the order of the entries.
    pub replaced: Vec<Replaced>,
    /// By the agent, before the session was taken in.
    pub earlier: Vec<Omitted>,
    /// The entries that could not be asked for such omissions.
    pub damaged: Vec<Damaged>,
}

impl Audit {
    /// Returns the replacements in force: neither undone nor replaced again.
    pub fn standing(&self) -> impl Iterator<Item = &Replaced> {
        let done = || self.replaced.iter().filter(|one| !one.undone);
        let again: BTreeSet<EntryId> = done().map(|one| one.origin).collect();
        done().filter(move |one| !again.contains(&one.entry))
    }

    /// Returns what can be done next.
    pub fn hints(&self) -> Vec<Hint> {
        let show = |one: &Replaced| {
            let show = Line::about("show").entry(one.whole).flag("hidden");
            show.to("to read what the last cut hides")
        };
        let all = Line::about("audit").flag("show").to("to read everything that is hidden");
        let all = Some(all).filter(|_| self.standing().nth(1).is_some());
        self.standing().last().map(show).into_iter().chain(all).collect()
    }

    /// Sums up the replacements in force.
    pub fn total(&self) -> AuditTotal {
        let mut total = AuditTotal { earlier: self.earlier.len(), ..AuditTotal::default() };
        for one in self.standing() {
            total.replaced += 1;
            total.characters += one.chars();
            total.tokens += one.tokens;
            total.hidden += one.hidden();
        }
        total
    }
}

report!(Replaced, "replaced", |it| {
    operation: it.operation,
    at: it.at,
    command: it.command,
    undone: it.undone,
    limit: it.limit,
    window: it.window,
    entry: it.entry,
    origin: it.origin,
    whole: it.whole,
    turn: it.turn,
    tool: it.tool,
    subject: it.subject,
    characters: it.chars(),
    tokens: it.tokens,
    hidden: it.hidden(),
    cuts: it.cuts,
});

object!(CutOff, |it| { call: it.call, part: it.text, characters: it.whole, kept: it.kept });

/// A part that an agent left out by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omitted {
    /// The entry that tells it.
    pub entry: EntryId,
    /// The turn of which it is a part, if that is known.
    pub turn: Option<CheckpointNumber>,
    /// When that was written.
    pub at: Option<Timestamp>,
    /// The omission.
    pub earlier: Earlier,
}

report!(Omitted, "earlier", |it| {
    entry: it.entry,
    turn: it.turn,
    at: it.at,
    how: it.earlier.how.as_str(),
    call: it.earlier.call,
    size: it.earlier.size,
    tokens: it.earlier.tokens,
    file: it.earlier.file,
    trigger: it.earlier.trigger,
});

/// A compaction, and what its summary no longer names of the messages that it represents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The operation, if undertext compacted.
    pub operation: Option<OperationNumber>,
    /// The entry of the boundary.
    pub entry: Option<EntryId>,
    /// The turn after which it was made, if that is known.
    pub turn: Option<CheckpointNumber>,
    /// When, if that is known.
    pub at: Option<Timestamp>,
    /// What made it, such as `manual` or `auto`.
    pub trigger: Option<String>,
    /// How many tokens the context had before and has after, as far as that is known.
    pub tokens: (Option<u64>, Option<u64>),
    /// Whether it is undone.
    pub undone: bool,
    /// How many messages the summary represents.
    pub summarised: u64,
    /// How many stay as they are.
    pub kept: u64,
    /// Who wrote it, where that is known.
    pub model: Option<String>,
    /// Whether it is the fallback.
    pub fallback: bool,
    /// What it lost, by kinds; none if it was not checked.
    pub losses: Vec<Loss>,
    /// Whether that was taken out.
    pub is_redacted: bool,
}

impl Boundary {
    /// Returns how many things the summary no longer names.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|loss| loss.of.saturating_sub(loss.kept) as u64).sum()
    }
}

report!(Boundary, "boundary", |it| {
    operation: it.operation,
    entry: it.entry,
    turn: it.turn,
    at: it.at,
    trigger: it.trigger,
    tokens: it.tokens,
    undone: it.undone,
    summarised: it.summarised,
    kept: it.kept,
    model: it.model,
    fallback: it.fallback,
    losses: it.losses,
    redacted: it.is_redacted,
});

/// The sum of the replacements in force.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct AuditTotal {
    /// How many entries.
    pub replaced: u64,
    /// How many characters their texts had, and have.
    pub characters: Resized,
    /// About how many tokens they were, and are.
    pub tokens: Resized,
    /// How many characters are hidden.
    pub hidden: u64,
    /// How often the agent left something out by itself.
    pub earlier: usize,
}

report!(AuditTotal, "total");
