//! Contexts: the request that a model would receive, and why.

use serde::Serialize;

use super::shape::{id, report, through};
use crate::{
    context::{
        self, Act, Change, Item, Origin, Prepared, Request, Shape, Step,
        measure::{Measured, Word},
        plan::Nearness,
        tokens::Counting,
        window::Window,
    },
    model::{EntryId, EntryNumber, Position, Role},
    session::{Damaged, Session},
    wire::Told,
};

/// The request that a model would receive, and its figures.
#[derive(Clone, Debug, Serialize)]
pub struct Context {
    /// The interface that the request is for.
    #[serde(rename = "as")]
    pub shape: Shape,
    /// The model that the request is for, if known.
    pub model: Option<String>,
    /// What the session's file says about its model.
    #[serde(skip)]
    pub told: Told,
    /// The model's window.
    #[serde(flatten)]
    pub window: Window,
    /// How tokens were counted.
    #[serde(skip)]
    pub counting: Counting,
    /// The size of the request, as all commands report it.
    #[serde(skip)]
    pub measured: Measured,
    /// The size of the conversation as reported by the newest answer, plus an estimate of the messages since.
    pub reported: Option<u64>,
    /// About how many tokens the system prompt and the tool definitions have that the session's file contains.
    pub beside: u64,
    /// The request.
    #[serde(flatten)]
    pub prepared: Prepared,
    /// The number of images in the request.
    pub images: u64,
    /// The size of these images in the session, in bytes.
    pub image_bytes: u64,
    /// The position of the head.
    #[serde(skip)]
    pub at: Option<Position>,
    /// The entries that the agent would send, among those examined.
    #[serde(skip)]
    pub sent: Vec<EntryNumber>,
    /// Whether these are all entries that it would send.
    #[serde(skip)]
    pub is_whole: bool,
    /// The token counts computed for the first time: for each entry, those of its messages.
    #[serde(skip)]
    pub fresh: Vec<(EntryNumber, Vec<u64>)>,
    /// The damaged entries, which are left out.
    #[serde(skip)]
    pub damaged: Vec<Damaged>,
}

impl Context {
    /// Returns the token count of the messages in the request.
    pub fn tokens(&self) -> u64 {
        self.prepared.tokens()
    }

    /// Returns the size of the request by counting its messages, even if a model reported their size.
    pub fn counted(&self) -> Measured {
        let word = match self.counting {
            Counting::Exact(encoding) => Word::Exact(encoding),
            Counting::Estimate => Word::Estimate,
        };
        Measured { tokens: self.tokens().saturating_add(self.beside), word }
    }
}

/// A context of a session, as a report.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sent<'a> {
    /// The session.
    #[serde(serialize_with = "id")]
    pub session: &'a Session,
    /// The context.
    #[serde(flatten)]
    pub found: &'a Context,
    /// The size of the request, and where that number comes from.
    #[serde(flatten)]
    pub measured: Measured,
    /// How many of the `tokens` belong to no message: the system prompt, tool definitions, and everything that no record shows.
    pub unrecorded: u64,
    /// The number of messages.
    pub messages: usize,
    /// How close it is to its compaction.
    #[serde(flatten, serialize_with = "through::<Due, Nearness, _>")]
    pub near: &'a Nearness,
    /// The request that would be sent to the provider.
    pub request: Request<'a>,
}

/// When a compaction is due, as a report.
#[derive(Serialize)]
pub(super) struct Due {
    /// The number of tokens at which a compaction is due.
    compact_at: u64,
    /// Whether a compaction is due now.
    due: bool,
}

impl From<&Nearness> for Due {
    fn from(near: &Nearness) -> Self {
        Self { compact_at: near.at, due: near.is_due }
    }
}

impl<'a> Sent<'a> {
    /// Returns the report on a context of this size.
    pub fn new(
        session: &'a Session,
        found: &'a Context,
        measured: Measured,
        near: &'a Nearness,
    ) -> Self {
        Self {
            session,
            found,
            measured,
            unrecorded: measured.tokens.saturating_sub(sum(found)),
            messages: found.prepared.items.len(),
            near,
            request: context::request(&found.prepared.items, found.shape),
        }
    }

    /// Returns each message with its tokens. Together with `unrecorded` they add up to the size of the request: if the messages are
    /// counted as more than that, each count is scaled down.
    pub fn shares(&self) -> impl Iterator<Item = (&'a Item, u64)> + Clone {
        let counted = u128::from(sum(self.found));
        let size = u128::from(self.measured.tokens).min(counted);
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
}

/// Returns the sum of the token counts of the messages.
fn sum(found: &Context) -> u64 {
    found.prepared.items.iter().filter_map(|item| item.tokens).sum()
}

report!(Sent<'_>, "context");

/// A message that a model would receive.
#[derive(Clone, Debug, Serialize)]
pub struct SentMessage {
    /// The index of the message, from 0.
    pub n: usize,
    /// The role of the message.
    pub role: Role,
    /// Where the message comes from.
    pub origin: Origin,
    /// The entries that the message is made of.
    pub entries: Vec<EntryId>,
    /// The number of tokens in the message.
    pub tokens: u64,
    /// The number of tokens up to and including this message.
    pub total: u64,
}

report!(SentMessage, "message");

/// A change to messages before they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Treatment {
    /// The step that made the change.
    pub step: Step,
    /// What the step did.
    pub act: Act,
    /// The entries that the changed messages are made of.
    pub entries: Vec<EntryId>,
    /// The reason for the change.
    pub why: String,
}

impl Treatment {
    /// Returns a change to the messages that are made of these entries.
    pub fn new(change: &Change, entries: Vec<EntryId>) -> Self {
        Self { step: change.step, act: change.act, entries, why: change.why.to_string() }
    }
}

report!(Treatment, "change");

/// Why an entry is, or is not, in a context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The entry.
    pub entry: EntryId,
    /// The indexes of the messages that contain the entry.
    pub messages: Vec<usize>,
    /// Why the entry is, or is not, in the context.
    pub why: String,
    /// The changes to the entry.
    pub changes: Vec<Treatment>,
}

report!(Explained, "explained");
