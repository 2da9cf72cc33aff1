//! Items: messages on their way to a model, and where they come from.
//!
//! A step looks at a few facts of each message, which are in memory; the message itself is asked for where its words or
//! its blocks count. The messages of a session are packed, because there may be a million of them.
//!
//! Invariant: the facts in memory are those of the message.

use std::{borrow::Cow, fmt, ops::Deref, sync::Arc};

use crate::{
    context::{
        packing::{Half, Place},
        pages::{Pages, join},
    },
    model::{Block, EntryNumber, Message, Role, Stop, Timestamp},
};

/// A message on its way to a model.
#[derive(Clone)]
pub struct Item {
    body: Body,
    facts: Facts,
    /// The entries of the session whose words it holds, in order; empty if nobody said it.
    pub entries: Entries,
    /// Where it comes from.
    pub origin: Origin,
    /// Whether a turn of the user begins with it.
    pub begins_turn: bool,
    /// How many tokens it takes, its share of the request's form included; none until it is counted.
    pub tokens: Option<u64>,
}

/// Where the message of an item is.
#[derive(Clone)]
enum Body {
    Here(Box<Message>),
    Packed(Pages, Place),
}

/// The facts of a message that steps look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    id: Option<Tag>,
    role: Role,
    stop: Option<Stop>,
    is_summary: bool,
    has: u8,
}

/// A tag by which a provider's ids of messages are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag([u8; 8]);

/// What a message may have, a bit each.
mod has {
    pub(super) const CALLS: u8 = 1;
    pub(super) const RESULTS: u8 = 1 << 1;
    pub(super) const PICTURES: u8 = 1 << 2;
    /// A fact but its id that only an answer of a model has.
    pub(super) const ANSWER: u8 = 1 << 3;
    pub(super) const USAGE: u8 = 1 << 4;
    /// Nothing but texts, each of which says something.
    pub(super) const ONLY_WORDS: u8 = 1 << 5;
    /// A result, and nothing else.
    pub(super) const ONLY_RESULT: u8 = 1 << 6;
    pub(super) const BLOCKS: u8 = 1 << 7;
}

impl Facts {
    fn of(message: &Message) -> Self {
        let Message { role, blocks, id, time: _, model, usage, stop, is_summary } = message;
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

    /// Returns the facts of the message that these two become.
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
    /// Returns a message of an entry.
    pub fn said(message: Message, entry: EntryNumber) -> Self {
        Self::of(message, Entries::One(entry))
    }

    /// Returns a message that nobody said.
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

    /// Returns another message of the same entries, which is not counted.
    pub(super) fn part(&self, message: Message, begins_turn: bool) -> Self {
        let (entries, origin) = (self.entries.clone(), self.origin);
        self.beside(Self { origin, begins_turn, ..Self::of(message, entries) })
    }

    /// Packs another item where this one is packed, if it is.
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
                // What was put in comes out.
                let found = pages.message(*place);
                Cow::Owned(found.unwrap_or_else(|| Message::new(self.facts.role, Vec::new())))
            }
        }
    }

    /// Returns the calls and the results of the message.
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

    /// Returns the ids of the calls that the message answers.
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

    /// Changes the message.
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Message) -> T) -> T {
        let mut message = self.message().into_owned();
        let done = change(&mut message);
        self.set(message);
        done
    }

    /// Puts another message in place of its own.
    pub(super) fn set(&mut self, message: Message) {
        let Self { body, facts, .. } = self.beside(Self::of(message, Entries::default()));
        (self.body, self.facts) = (body, facts);
    }

    /// Joins another message to its own: the blocks of both, and the later word for what exists only once.
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

    /// Returns whether it represents the messages that a compaction left out.
    pub fn is_summary(&self) -> bool {
        self.facts.is_summary
    }

    /// Returns how the answer ended.
    pub(super) fn stop(&self) -> Option<Stop> {
        self.facts.stop
    }

    /// Returns whether it failed or was broken off.
    pub(super) fn is_broken(&self) -> bool {
        matches!(self.facts.stop, Some(Stop::Error | Stop::Aborted))
    }

    /// Returns the tag of the provider's id of it.
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

    /// Returns whether it has a fact that only an answer of a model has.
    pub(super) fn has_answer_facts(&self) -> bool {
        self.facts.id.is_some() || self.facts.has & has::ANSWER > 0
    }

    /// Returns whether it reports the tokens that the model used.
    pub(crate) fn has_usage(&self) -> bool {
        self.facts.has & has::USAGE > 0
    }

    /// Returns whether it has nothing but texts, each of which says something.
    pub(super) fn is_only_words(&self) -> bool {
        self.facts.has & has::ONLY_WORDS > 0
    }

    /// Returns whether it has a result, and nothing else.
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

/// The entries of an item: most have one, which takes no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Entries {
    /// None.
    #[default]
    None,
    /// One alone.
    One(EntryNumber),
    /// Several, which copies share: each part and each change of a message has all of its entries.
    Several(Arc<Vec<EntryNumber>>),
}

impl Entries {
    /// Adds entries behind these.
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

/// Takes items one by one, in the memory that they are in; `take` says whether an item stays behind those that stay before it.
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

/// Puts items among others, each before the one of the number that stands with it; they are in the order of these.
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

/// Where a message of a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// It was said, and is where it was said.
    Said,
    /// It represents messages that a compaction left out.
    Summary,
    /// It was said before a compaction, which kept it.
    Kept,
    /// It represents an entry that was changed: a replay.
    Replayed,
    /// The agent put other content in place of what was said there, or took a part of it back.
    Edited,
    /// Nobody said it; the request needs it.
    Synthetic,
    /// Several messages that a provider wants as one.
    Merged,
}

impl Origin {
    /// Returns the word used in every output.
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
