//! Audits: the truncated results of a session, who truncated them, and how much is hidden.

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

/// An entry that replaced another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The operation.
    pub operation: OperationNumber,
    /// When.
    pub at: Timestamp,
    /// Its command.
    pub command: &'static str,
    /// Whether it was undone.
    pub undone: bool,
    /// The maximum number of characters of a result.
    pub limit: Option<u64>,
    /// The window that the limit was computed from, in tokens.
    pub window: Option<u64>,
    /// The current entry.
    pub entry: EntryId,
    /// The entry that it replaced.
    pub origin: EntryId,
    /// The entry with the complete text, which the suffix of the cut names.
    pub whole: EntryId,
    /// Its number in the session.
    pub place: EntryNumber,
    /// The turn that it belongs to, if known.
    pub turn: Option<CheckpointNumber>,
    /// The tool.
    pub tool: Option<String>,
    /// What the tool read or ran, if its call shows it.
    pub subject: Option<String>,
    /// The approximate token counts before and after.
    pub tokens: Resized,
    /// The cuts in it.
    pub cuts: Vec<CutOff>,
}

impl Replaced {
    /// Returns the number of characters of the truncated texts, before and after.
    pub fn chars(&self) -> Resized {
        let mut chars = Resized::default();
        for cut in &self.cuts {
            chars += Resized { before: cut.whole, after: cut.kept + cut.suffix };
        }
        chars
    }

    /// Returns the number of hidden characters.
    pub fn hidden(&self) -> u64 {
        self.cuts.iter().map(|cut| cut.whole - cut.kept.min(cut.whole)).sum()
    }
}

/// The replaced entries of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Replaced by undertext, in the order of the entries.
    pub replaced: Vec<Replaced>,
    /// Omitted by the agent, before the session was imported.
    pub earlier: Vec<Omitted>,
    /// The damaged entries, which could not be checked for such omissions.
    pub damaged: Vec<Damaged>,
}

impl Audit {
    /// Returns the replacements in effect: neither undone nor replaced again.
    pub fn standing(&self) -> impl Iterator<Item = &Replaced> {
        let done = || self.replaced.iter().filter(|one| !one.undone);
        let again: BTreeSet<EntryId> = done().map(|one| one.origin).collect();
        done().filter(move |one| !again.contains(&one.entry))
    }

    /// Returns the hints to read the hidden text.
    pub fn hints(&self) -> Vec<Hint> {
        let show = |one: &Replaced| {
            let show = Line::about("show").entry(one.whole).flag("hidden");
            show.to("to read what the last cut hides")
        };
        let all = Line::about("audit").flag("show").to("to read everything that is hidden");
        let all = Some(all).filter(|_| self.standing().nth(1).is_some());
        self.standing().last().map(show).into_iter().chain(all).collect()
    }

    /// Sums up the replacements in effect.
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

/// Something that the agent itself omitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omitted {
    /// The entry that reports it.
    pub entry: EntryId,
    /// The turn that it belongs to, if known.
    pub turn: Option<CheckpointNumber>,
    /// When that entry was written.
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

/// A compaction, and what its summary no longer mentions of the messages that it represents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The operation, if undertext made it.
    pub operation: Option<OperationNumber>,
    /// The entry of the boundary.
    pub entry: Option<EntryId>,
    /// The turn that it followed, if known.
    pub turn: Option<CheckpointNumber>,
    /// Its time, if known.
    pub at: Option<Timestamp>,
    /// What triggered it, such as `manual` or `auto`.
    pub trigger: Option<String>,
    /// The token counts of the context before and after, if known.
    pub tokens: (Option<u64>, Option<u64>),
    /// Whether it was undone.
    pub undone: bool,
    /// How many messages the summary represents.
    pub summarised: u64,
    /// How many messages were kept unchanged.
    pub kept: u64,
    /// The model that wrote the summary, if known.
    pub model: Option<String>,
    /// Whether it is the fallback.
    pub fallback: bool,
    /// What the summary lost, by kind; empty if that was not checked.
    pub losses: Vec<Loss>,
    /// Whether the summary was redacted.
    pub is_redacted: bool,
}

impl Boundary {
    /// Returns how many things the summary no longer mentions.
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

/// The sum of the replacements in effect.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct AuditTotal {
    /// The number of entries.
    pub replaced: u64,
    /// The number of characters of their texts, before and after.
    pub characters: Resized,
    /// The approximate token counts, before and after.
    pub tokens: Resized,
    /// The number of hidden characters.
    pub hidden: u64,
    /// The number of omissions by the agent.
    pub earlier: usize,
}

report!(AuditTotal, "total");
