//! Audits: the truncated results of a session, who truncated them, and how much is hidden.

use std::collections::BTreeSet;

use serde::Serialize;

use super::shape::{named, report};
use crate::model::hint::{Hint, Line};
use crate::{
    context::facts::Loss,
    model::{CheckpointNumber, CutOff, EntryId, EntryNumber, OperationNumber, Resized, Timestamp},
    session::Damaged,
    wire::{Earlier, How},
};

/// An entry that replaced another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replaced {
    /// The operation that replaced it.
    pub operation: OperationNumber,
    /// The time of the operation.
    pub at: Timestamp,
    /// The command of the operation.
    pub command: &'static str,
    /// Whether the operation was undone.
    pub undone: bool,
    /// How many characters a result was allowed to have.
    pub limit: Option<u64>,
    /// The window from which that limit was computed, in tokens.
    pub window: Option<u64>,
    /// The new entry.
    pub entry: EntryId,
    /// The entry that was replaced.
    pub origin: EntryId,
    /// The entry that contains the whole text.
    pub whole: EntryId,
    /// Its number in the session.
    #[serde(skip)]
    pub place: EntryNumber,
    /// The turn that it belongs to, if known.
    pub turn: Option<CheckpointNumber>,
    /// The tool.
    pub tool: Option<String>,
    /// The file that the tool read, or the command that it ran.
    pub subject: Option<String>,
    /// The size of the cut texts in characters, before and after.
    pub characters: Resized,
    /// The approximate token counts, before and after.
    pub tokens: Resized,
    /// The number of hidden characters.
    pub hidden: u64,
    /// The texts that were cut.
    pub cuts: Vec<CutOff>,
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
            total.characters += one.characters;
            total.tokens += one.tokens;
            total.hidden += one.hidden;
        }
        total
    }
}

report!(Replaced, "replaced");

/// Something that the agent itself omitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Omitted {
    /// The entry that reports it.
    pub entry: EntryId,
    /// The turn that it belongs to, if known.
    pub turn: Option<CheckpointNumber>,
    /// When that entry was written.
    pub at: Option<Timestamp>,
    /// The omission.
    #[serde(flatten)]
    pub earlier: Earlier,
}

report!(Omitted, "earlier");

/// A compaction, and what its summary no longer mentions of the messages that it represents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Boundary {
    /// The operation that compacted; `null` if the agent itself compacted.
    pub operation: Option<OperationNumber>,
    /// The entry of the boundary.
    pub entry: Option<EntryId>,
    /// The turn that it followed, if known.
    pub turn: Option<CheckpointNumber>,
    /// The time of the compaction, if known.
    pub at: Option<Timestamp>,
    /// What triggered it, such as `manual` or `auto`.
    pub trigger: Option<String>,
    /// The size of the context in tokens before and after, if known.
    pub tokens: (Option<u64>, Option<u64>),
    /// Whether the operation was undone.
    pub undone: bool,
    /// How many messages the summary represents.
    pub summarised: u64,
    /// How many messages were kept unchanged.
    pub kept: u64,
    /// The model that wrote the summary, if known.
    pub model: Option<String>,
    /// Whether a model should have written the summary but didn't.
    pub fallback: bool,
    /// What the summary lost; empty if that was not checked.
    pub losses: Vec<Loss>,
    /// Whether the losses were redacted.
    #[serde(rename = "redacted")]
    pub is_redacted: bool,
}

impl Boundary {
    /// Returns how many things the summary no longer mentions.
    pub fn lost(&self) -> u64 {
        self.losses.iter().map(|loss| loss.of.saturating_sub(loss.kept) as u64).sum()
    }
}

report!(Boundary, "boundary");

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

named!(How);
