//! Contexts: the request that a model would receive, and why.

use super::shape::report;
use crate::{
    context::{
        self, Change, Item, Prepared, Shape,
        measure::{Measured, Word},
        plan::Nearness,
        tokens::Counting,
        window::Window,
    },
    model::{EntryId, EntryNumber, Position},
    session::{Damaged, Session},
    wire::Told,
};

/// The request that a model would receive, and its figures.
#[derive(Clone, Debug)]
pub struct Context {
    /// The interface that it is for.
    pub shape: Shape,
    /// The model that it is for, if known.
    pub model: Option<String>,
    /// What the session's file says about its model.
    pub told: Told,
    /// The model's window.
    pub window: Window,
    /// How tokens were counted.
    pub counting: Counting,
    /// The request.
    pub prepared: Prepared,
    /// The size of the request, as all commands report it.
    pub measured: Measured,
    /// The size of the conversation as reported by the newest answer, plus an estimate of the messages since.
    pub reported: Option<u64>,
    /// How many tokens of it belong to the system prompt and the tools, which the file records outside the conversation.
    pub beside: u64,
    /// The number of pictures in the request, and their bytes in the session.
    pub pictures: (u64, u64),
    /// The position of the head.
    pub at: Option<Position>,
    /// The entries that the agent would send, among those examined.
    pub sent: Vec<EntryNumber>,
    /// Whether these are all entries that it would send.
    pub is_whole: bool,
    /// The token counts computed for the first time: for each entry, those of its messages.
    pub fresh: Vec<(EntryNumber, Vec<u64>)>,
    /// The damaged entries, which are left out.
    pub damaged: Vec<Damaged>,
}

impl Context {
    /// Returns the token count of the messages in the request.
    pub fn tokens(&self) -> u64 {
        self.prepared.tokens()
    }
}

/// Why an entry is, or is not, in a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The entry.
    pub entry: EntryId,
    /// The indexes of the messages that contain it.
    pub messages: Vec<usize>,
    /// Why, in a few words.
    pub why: String,
    /// The changes to it.
    pub changes: Vec<Change>,
}

/// A context of a session, as a report.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The session.
    pub session: &'a Session,
    /// The context.
    pub found: &'a Context,
    /// How close it is to its compaction.
    pub near: &'a Nearness,
    /// Whether the messages are counted even if a model reported their size.
    pub is_counted: bool,
}

impl Sent<'_> {
    /// Returns the size of the request in tokens, and where that number comes from.
    pub fn measured(&self) -> Measured {
        if !self.is_counted {
            return self.found.measured;
        }
        let word = match self.found.counting {
            Counting::Exact(encoding) => Word::Exact(encoding),
            Counting::Estimate => Word::Estimate,
        };
        Measured { tokens: self.found.tokens().saturating_add(self.found.beside), word }
    }

    /// Returns how many tokens belong to no message: the system prompt, the tools, and everything else that no record shows.
    pub fn unrecorded(&self) -> u64 {
        self.measured().tokens.saturating_sub(self.counted())
    }

    /// Returns each message with its tokens. Together with [`Self::unrecorded`] they add up to the size of the request: if the
    /// messages are counted as more than that, each count is scaled down.
    pub fn shares(&self) -> impl Iterator<Item = (&Item, u64)> + Clone {
        let counted = u128::from(self.counted());
        let size = u128::from(self.measured().tokens).min(counted);
        let up_to = move |passed: u64| {
            let share = (u128::from(passed) * size).checked_div(counted).unwrap_or(0);
            u64::try_from(share).unwrap_or(u64::MAX)
        };
        let mut passed = 0_u64;
        self.found.prepared.items.iter().map(move |item| {
            let before = up_to(passed);
            passed = passed.saturating_add(item.tokens.unwrap_or(0));
            (item, up_to(passed) - before)
        })
    }

    /// Returns the sum of the token counts of the messages.
    fn counted(&self) -> u64 {
        self.found.prepared.items.iter().filter_map(|item| item.tokens).sum()
    }
}

report!(Sent<'_>, "context", |it| {
    session: it.session.name.id,
    as: it.found.shape.as_str(),
    model: it.found.model,
    window: it.found.window.tokens,
    source: it.found.window.source.as_str(),
    verdict: it.found.window.verdict.as_str(),
    tokens: it.measured().tokens,
    counted: it.measured().word.as_str(),
    reported: it.found.reported,
    beside: it.found.beside,
    unrecorded: it.unrecorded(),
    messages: it.found.prepared.items.len(),
    turns: it.found.prepared.limited.turns,
    kept: it.found.prepared.limited.kept,
    exceeds: it.found.prepared.limited.exceeds,
    added: it.found.prepared.repaired.added,
    duplicates: it.found.prepared.repaired.duplicates,
    orphans: it.found.prepared.repaired.orphans,
    moved: it.found.prepared.repaired.moved,
    images: it.found.pictures.0,
    image_bytes: it.found.pictures.1,
    compact_at: it.near.at,
    due: it.near.is_due,
    request: context::request(&it.found.prepared.items, it.found.shape),
});

/// A message that a model would receive.
#[derive(Clone, Debug)]
pub struct SentMessage<'a> {
    /// Its index.
    pub n: usize,
    /// The message.
    pub item: &'a Item,
    /// The entries that it is made of.
    pub entries: Vec<EntryId>,
    /// The running total of tokens, including this message.
    pub total: u64,
}

report!(SentMessage<'_>, "message", |it| {
    n: it.n,
    role: it.item.role().as_str(),
    origin: it.item.origin.as_str(),
    entries: it.entries,
    tokens: it.item.tokens.unwrap_or(0),
    total: it.total,
});

/// A change to messages before they are sent.
#[derive(Clone, Debug)]
pub struct Treatment<'a> {
    /// The change.
    pub change: &'a Change,
    /// The entries that they are made of.
    pub entries: Vec<EntryId>,
}

report!(Treatment<'_>, "change", |it| {
    step: it.change.step.as_str(),
    act: it.change.act.as_str(),
    entries: it.entries,
    why: &*it.change.why,
});

report!(Explained, "explained", |it| {
    entry: it.entry,
    messages: it.messages,
    why: it.why,
    changes: it.changes.iter().map(|change| Treatment { change, entries: vec![it.entry] }).collect::<Vec<_>>(),
});
