//! Items: the messages of a request, and their origins.
//!
//! Most steps only look at a few facts about each message, which are in memory; the message itself is loaded where its text or
//! blocks matter. The messages of a session are packed, because there may be millions of them.
//!
//! Invariant: the facts in memory never differ from the message.

use std::{borrow::Cow, fmt, ops::Deref, sync::Arc};

use crate::{
    context::{
        packing::{Half, Place},
        pages::{Pages, join},
    },
    model::{Block, EntryNumber, Message, Role, Stop, Timestamp},
};

/// A message of a request.
#[derive(Clone)]
pub struct Item {
    body: Body,
    facts: Facts,
    /// The session's entries that it consists of, in order; empty if it is synthetic.
    pub entries: Entries,
    /// Its origin.
    pub origin: Origin,
    /// True if a turn of the user begins with it.
    pub begins_turn: bool,
    /// The number of its tokens, including its share of the request's envelope; None until it is counted.
    pub tokens: Option<u64>,
}

/// Where the message is stored.
#[derive(Clone)]
enum Body {
    Here(Box<Message>),
    Packed(Pages, Place),
}

/// The facts about a message that steps look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    id: Option<Tag>,
    role: Role,
    stop: Option<Stop>,
    is_summary: bool,
    has: u8,
}

/// A tag that distinguishes the provider's message ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag([u8; 8]);

/// What a message may contain, one bit each.
mod has {
    pub(super) const CALLS: u8 = 1;
    pub(super) const RESULTS: u8 = 1 << 1;
    pub(super) const PICTURES: u8 = 1 << 2;
    /// A fact other than the id that only an answer of a model can have.
    pub(super) const ANSWER: u8 = 1 << 3;
    pub(super) const USAGE: u8 = 1 << 4;
    /// Only texts, none of them empty.
    pub(super) const ONLY_WORDS: u8 = 1 << 5;
    /// A single result and nothing else.
    pub(super) const ONLY_RESULT: u8 = 1 << 6;
    pub(super) const BLOCKS: u8 = 1 << 7;
}

impl Facts {
    fn of(message: &Message) -> Self {
        let Message { role, blocks, id, time: _, model, usage, stop, is_summary, meta: _ } =
            message;
        let is_call = |block: &Block| matches!(block, Block::Call { .. });
        let is_result = |block: &Block| matches!(block, Block::Result { .. });
        let is_picture = |block: &Block| matches!(block, Block::Image(_));
        let says = |block: &Block| matches!(block, Block::Text(text) if !text.trim().is_empty());
        let is_answer = model.is_some() || usage.is_some() || stop.is_some();
        let has = [
            (has::CALLS, blocks.iter().any(is_call)),
            (has::RESULTS, blocks.iter().any(is_result)),
            (has::PICTURES, message.parts().any(is_picture)),
            (has::ANSWER, is_answer),
            (has::USAGE, usage.is_some()),
            (has::ONLY_WORDS, !blocks.is_empty() && blocks.iter().all(says)),
            (has::ONLY_RESULT, blocks.len() == 1 && blocks.iter().all(is_result)),
            (has::BLOCKS, !blocks.is_empty()),
        ];
        Self {
            id: id.as_deref().map(Tag::of),
            role: *role,
            stop: *stop,
            is_summary: *is_summary,
            has: has.into_iter().filter(|(_, is)| *is).fold(0, |all, (bit, _)| all | bit),
        }
    }

    /// Returns the facts of the merged message.
    fn join(self, other: Self) -> Self {
        const EVERY: u8 = has::ONLY_WORDS | has::ONLY_RESULT;
        let only = match (self.has & has::BLOCKS, other.has & has::BLOCKS) {
            (0, _) => other.has & EVERY,
            (_, 0) => self.has & EVERY,
            _ => self.has & other.has & has::ONLY_WORDS,
        };
        Self {
            id: self.id.filter(|_| self.id == other.id),
            role: if self.role == Role::Tool { other.role } else { self.role },
            stop: other.stop.or(self.stop),
            is_summary: self.is_summary || other.is_summary,
            has: (self.has | other.has) & !EVERY | only,
        }
    }
}

impl Tag {
    fn of(id: &str) -> Self {
        let hash = blake3::hash(id.as_bytes());
        Self(std::array::from_fn(|at| hash.as_bytes()[at]))
    }
}

impl Item {
    /// Makes an item of an entry's message.
    pub fn said(message: Message, entry: EntryNumber) -> Self {
        Self::of(message, Entries::One(entry))
    }

    /// Makes an item that does not come from an entry.
    pub fn synthetic(message: Message) -> Self {
        Self { origin: Origin::Synthetic, ..Self::of(message, Entries::default()) }
    }

    fn of(message: Message, entries: Entries) -> Self {
        let facts = Facts::of(&message);
        let origin = if message.is_summary { Origin::Summary } else { Origin::Said };
        let body = Body::Here(Box::new(message));
        Self { body, facts, entries, origin, begins_turn: false, tokens: None }
    }

    /// Packs its message.
    #[must_use]
    pub(crate) fn packed(mut self, pages: &Pages) -> Self {
        if let Body::Here(message) = &self.body {
            self.body = Body::Packed(pages.clone(), pages.put(message));
        }
        self
    }

    /// Returns another message of the same entries, not yet counted.
    pub(super) fn part(&self, message: Message, begins_turn: bool) -> Self {
        let (entries, origin) = (self.entries.clone(), self.origin);
        self.beside(Self { origin, begins_turn, ..Self::of(message, entries) })
    }

    /// Packs another item into the pages of this one, if this one is packed.
    fn beside(&self, other: Self) -> Self {
        match &self.body {
            Body::Here(_) => other,
            Body::Packed(pages, _) => other.packed(pages),
        }
    }

    /// Returns the message.
    pub fn message(&self) -> Cow<'_, Message> {
        match &self.body {
            Body::Here(message) => Cow::Borrowed(message),
            Body::Packed(pages, place) => {
                // What was stored can always be loaded.
                let found = pages.message(*place);
                Cow::Owned(found.unwrap_or_else(|| Message::new(self.facts.role, Vec::new())))
            }
        }
    }

    /// Returns the calls and results in the message.
    pub(super) fn halves(&self) -> Vec<Half> {
        match &self.body {
            _ if !self.has_calls() && !self.has_results() => Vec::new(),
            Body::Here(message) => Half::of(&message.blocks),
            Body::Packed(pages, place) => pages.halves(*place).unwrap_or_default(),
        }
    }

    /// Returns the ids of the calls in the message.
    pub(super) fn calls(&self) -> impl Iterator<Item = String> {
        self.halves().into_iter().filter(|half| !half.is_result).map(|half| half.id)
    }

    /// Returns the ids of the calls whose results are in the message.
    pub(super) fn results(&self) -> impl Iterator<Item = String> {
        self.halves().into_iter().filter(|half| half.is_result).map(|half| half.id)
    }

    /// Returns the message alone.
    pub(crate) fn into_message(self) -> Message {
        match self.body {
            Body::Here(message) => *message,
            Body::Packed(..) => self.message().into_owned(),
        }
    }

    /// Edits the message.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Message) -> T) -> T {
        let mut message = self.message().into_owned();
        let done = change(&mut message);
        self.set(message);
        done
    }

    /// Replaces the message.
    pub(super) fn set(&mut self, message: Message) {
        let Self { body, facts, .. } = self.beside(Self::of(message, Entries::default()));
        (self.body, self.facts) = (body, facts);
    }

    /// Merges another message into this one: the blocks of both, and the later value of fields that exist only once.
    pub(super) fn join(&mut self, other: &Self) {
        let begins_turn = other.begins_turn;
        match &mut self.body {
            Body::Here(own) => join(own, other.message().into_owned(), begins_turn),
            Body::Packed(pages, place) => {
                let second = match &other.body {
                    Body::Packed(theirs, second) if pages.are(theirs) => *second,
                    _ => pages.put(&other.message()),
                };
                *place = pages.join([*place, second], begins_turn);
            }
        }
        self.facts = self.facts.join(other.facts);
    }

    /// Returns who speaks.
    pub fn role(&self) -> Role {
        self.facts.role
    }

    /// Returns true if it is the summary of a compaction.
    pub fn is_summary(&self) -> bool {
        self.facts.is_summary
    }

    /// Returns the stop reason of the answer.
    pub(super) fn stop(&self) -> Option<Stop> {
        self.facts.stop
    }

    /// Returns true if the answer failed or was aborted.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.facts.stop, Some(Stop::Error | Stop::Aborted))
    }

    /// Returns the tag of the provider's message id.
    pub(super) fn id(&self) -> Option<Tag> {
        self.facts.id
    }

    pub(super) fn has_calls(&self) -> bool {
        self.facts.has & has::CALLS > 0
    }

    pub(super) fn has_results(&self) -> bool {
        self.facts.has & has::RESULTS > 0
    }

    pub(super) fn has_pictures(&self) -> bool {
        self.facts.has & has::PICTURES > 0
    }

    pub(super) fn has_blocks(&self) -> bool {
        self.facts.has & has::BLOCKS > 0
    }

    /// Returns true if it has a fact that only an answer of a model can have.
    pub(super) fn has_answer_facts(&self) -> bool {
        self.facts.id.is_some() || self.facts.has & has::ANSWER > 0
    }

    /// Returns true if it reports usage.
    pub(crate) fn has_usage(&self) -> bool {
        self.facts.has & has::USAGE > 0
    }

    /// Returns true if it contains only texts, none of them empty.
    pub(super) fn is_only_words(&self) -> bool {
        self.facts.has & has::ONLY_WORDS > 0
    }

    /// Returns true if it contains a single result and nothing else.
    pub(super) fn is_only_result(&self) -> bool {
        self.facts.has & has::ONLY_RESULT > 0
    }

    /// Returns the first of its entries.
    pub fn entry(&self) -> Option<EntryNumber> {
        self.entries.first().copied()
    }

    /// Returns when it was said.
    pub fn time(&self) -> Option<Timestamp> {
        self.message().time
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        let told =
            |item: &Self| (item.entries.to_vec(), item.origin, item.begins_turn, item.tokens);
        told(self) == told(other) && self.message() == other.message()
    }
}

impl Eq for Item {}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("message", &self.message())
            .field("entries", &&*self.entries)
            .field("origin", &self.origin)
            .field("begins_turn", &self.begins_turn)
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

/// The entries of an item. A single entry, the usual case, needs no allocation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Entries {
    /// None.
    #[default]
    None,
    /// One alone.
    One(EntryNumber),
    /// Several. Copies share them, because each part and each change of a message has all its entries.
    Several(Arc<Vec<EntryNumber>>),
}

impl Entries {
    /// Appends entries.
    pub(super) fn extend(&mut self, more: &[EntryNumber]) {
        match (&mut *self, more) {
            (_, []) => {}
            (Self::None, [one]) => *self = Self::One(*one),
            (Self::None, several) => *self = Self::Several(Arc::new(several.to_vec())),
            (Self::One(first), more) => {
                *self = Self::Several(Arc::new([&[*first], more].concat()));
            }
            (Self::Several(entries), more) => Arc::make_mut(entries).extend_from_slice(more),
        }
    }
}

impl Deref for Entries {
    type Target = [EntryNumber];

    fn deref(&self) -> &[EntryNumber] {
        match self {
            Self::None => &[],
            Self::One(entry) => std::slice::from_ref(entry),
            Self::Several(entries) => entries,
        }
    }
}

/// Filters items in place. `take` gets the items kept so far and the next one, and returns true to keep it.
pub(super) fn sift(items: &mut Vec<Item>, mut take: impl FnMut(&mut [Item], &mut Item) -> bool) {
    let mut kept = 0;
    for at in 0..items.len() {
        items.swap(kept, at);
        let (before, rest) = items.split_at_mut(kept);
        if rest.first_mut().is_some_and(|item| take(before, item)) {
            kept += 1;
        }
    }
    items.truncate(kept);
}

/// Inserts items, each before the item with the paired index. The pairs are sorted by index.
pub(super) fn put_in(items: Vec<Item>, more: Vec<(usize, Item)>) -> Vec<Item> {
    if more.is_empty() {
        return items;
    }
    let mut all = Vec::with_capacity(items.len() + more.len());
    let mut more = more.into_iter().peekable();
    for (at, item) in items.into_iter().enumerate() {
        while let Some((_, new)) = more.next_if(|(before, _)| *before <= at) {
            all.push(new);
        }
        all.push(item);
    }
    all.extend(more.map(|(_, new)| new));
    all
}

/// The origin of a message in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The message is sent as it was recorded.
    Said,
    /// The message is the summary of a compaction.
    Summary,
    /// A compaction kept the message.
    Kept,
    /// The message replaces an entry that was changed.
    Replayed,
    /// The agent replaced the message's content, or removed part of it.
    Edited,
    /// Undertext added the message, because the request needs it.
    Synthetic,
    /// Several messages were joined, because the provider wants them as one.
    Merged,
}

impl Origin {
    /// Returns the name used in all output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Said => "said",
            Self::Summary => "summary",
            Self::Kept => "kept",
            Self::Replayed => "replayed",
            Self::Edited => "edited",
            Self::Synthetic => "synthetic",
            Self::Merged => "merged",
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::context::packing::tests::any_message;

    proptest! {
        #[test]
        fn the_facts_at_hand_are_those_of_the_message(
            first in any_message(),
            more in prop::collection::vec((any_message(), any::<[bool; 2]>()), 0..4),
        ) {
            let pages = Pages::default();
            let said = |message: &Message| Item::said(message.clone(), EntryNumber::FIRST);
            let (mut here, mut packed) = (said(&first), said(&first).packed(&pages));
            for (message, [begins_turn, is_packed]) in more {
                let mut next = said(&message);
                next.begins_turn = begins_turn;
                let next = if is_packed { next.packed(&pages) } else { next };
                here.join(&next);
                packed.join(&next);
            }
            prop_assert_eq!(here.facts, Facts::of(&here.message()));
            prop_assert_eq!(packed.facts, Facts::of(&packed.message()));
            prop_assert_eq!(&here, &packed);
            for item in [&mut here, &mut packed] {
                item.change(|message| message.blocks.truncate(1));
                prop_assert_eq!(item.facts, Facts::of(&item.message()));
            }
            prop_assert_eq!(here, packed);
        }
    }

    fn numbered(numbers: &[u64]) -> Vec<Item> {
        let message = || Message::new(Role::User, Vec::new());
        numbers.iter().map(|&n| Item::said(message(), EntryNumber::new(n))).collect()
    }

    fn numbers(items: &[Item]) -> Vec<u64> {
        items.iter().filter_map(Item::entry).map(EntryNumber::get).collect()
    }

    #[test]
    fn an_item_is_small_because_there_may_be_a_million() {
        assert!(size_of::<Item>() <= 64, "{}", size_of::<Item>());
    }

    #[test]
    fn items_that_go_are_seen_behind_those_that_stay() {
        let mut items = numbered(&[1, 2, 3, 4, 5, 6]);
        let mut seen = Vec::new();
        sift(&mut items, |before, item| {
            seen.push((numbers(before), item.entry().unwrap().get()));
            item.entry().unwrap().get() % 3 > 0
        });
        assert_eq!(numbers(&items), [1, 2, 4, 5]);
        assert_eq!(seen[5], (vec![1, 2, 4, 5], 6));
        assert_eq!(seen[3], (vec![1, 2], 4));
    }

    #[test]
    fn items_are_put_before_others_in_order() {
        let more = [0, 0, 2, 3].into_iter().zip(numbered(&[10, 11, 12, 13])).collect();
        assert_eq!(numbers(&put_in(numbered(&[1, 2, 3]), more)), [10, 11, 1, 2, 12, 3, 13]);
        assert_eq!(numbers(&put_in(numbered(&[1]), Vec::new())), [1]);
    }
}
