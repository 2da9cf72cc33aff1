//! Contexts: the request that a model would be sent, and why.

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

/// The request that a model would be sent, and its figures.
#[derive(Clone, Debug)]
pub struct Context {
    /// For which interface.
    pub shape: Shape,
    /// For which model, if one is known.
    pub model: Option<String>,
    /// The words of the session's file about the model that it was written with.
    pub told: Told,
    /// The model's window.
    pub window: Window,
    /// How tokens were counted.
    pub counting: Counting,
    /// The request.
    pub prepared: Prepared,
    /// The size of the request, as every command tells it.
    pub measured: Measured,
    /// The size of the conversation as the newest answer reports it, with an estimate of the messages since.
    pub reported: Option<u64>,
    /// How many tokens of it are the system prompt and the tools that the file holds beside the conversation.
    pub beside: u64,
    /// How many pictures are sent, and how many bytes they have in the session.
    pub pictures: (u64, u64),
    /// Where the head is.
    pub at: Option<Position>,
    /// The entries that the agent would send, of those that were looked at.
    pub sent: Vec<EntryNumber>,
    /// Whether these are all of them.
    pub is_whole: bool,
    /// The counts made for the first time: for each entry the tokens of its messages.
    pub fresh: Vec<(EntryNumber, Vec<u64>)>,
    /// The damaged entries, which are left out.
    pub damaged: Vec<Damaged>,
}

impl Context {
    /// Returns how many tokens the messages of the request are counted as.
    pub fn tokens(&self) -> u64 {
        self.prepared.tokens()
    }
}

/// Why an entry is, or is not, in a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The entry.
    pub entry: EntryId,
    /// The numbers of the messages that hold it, from 0.
    pub messages: Vec<usize>,
    /// Why, in a few words.
    pub why: String,
    /// The changes to it on the way.
    pub changes: Vec<Change>,
}

/// A context of a session, as a report.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    /// The session.
    pub session: &'a Session,
    /// The context.
    pub found: &'a Context,
    /// How near it is to its compaction.
    pub near: &'a Nearness,
    /// Whether the messages are counted, whatever models reported.
    pub is_counted: bool,
}

impl Sent<'_> {
    /// Returns how many tokens the request takes, and by whose word.
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

    /// Returns how many tokens of the request no message has: the system prompt, the tools, and all else that no record shows.
    pub fn unrecorded(&self) -> u64 {
        self.measured().tokens.saturating_sub(self.counted())
    }

    /// Returns each message with its tokens, which with [`Self::unrecorded`] add up to the size of the request. Where the
    /// messages are counted as more than that, each has its share of it.
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

    /// Returns how many tokens the messages are counted as, one by one.
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

/// A message that a model would be sent.
#[derive(Clone, Debug)]
pub struct SentMessage<'a> {
    /// Its number, from 0.
    pub n: usize,
    /// The message.
    pub item: &'a Item,
    /// The entries that it is made of.
    pub entries: Vec<EntryId>,
    /// How many tokens there are up to here.
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

/// A change to messages before they were sent.
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
