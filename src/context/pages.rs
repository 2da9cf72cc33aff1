//! Pages: packed messages, one after another, so that millions of them take little memory.
//!
//! Once there are many, each full page is compressed. A message that a step changed is appended again, so
//! reading messages in order jumps between pages.
//!
//! Invariant: a stored message is never altered.

use std::{
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    context::packing::{
        Half, Outline, Place, Record, put_joined, put_message, take_outline, take_record,
    },
    model::{Message, Role},
};

/// The size from which a page is full, in bytes.
const FULL: usize = 64 << 10;
/// How many full pages stay uncompressed, so that any conversation a model can be sent is read without decompressing.
const PLAIN: usize = 256;
/// The compression level: the fastest.
const LEVEL: i32 = 1;
/// How many pages to cache decompressed. Reading in order jumps between the pages to which a few steps appended their changes.
const AT_HAND: usize = 8;

/// Messages that are packed until they are needed. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Pages(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    full: Vec<Page>,
    /// The page that is being filled.
    open: Vec<u8>,
    /// The most recently read pages, latest first: number and bytes.
    unpacked: Vec<(usize, Vec<u8>)>,
    packer: Option<zstd::bulk::Compressor<'static>>,
    unpacker: Option<zstd::bulk::Decompressor<'static>>,
}

enum Page {
    Plain(Box<[u8]>),
    Packed { bytes: Box<[u8]>, length: usize },
}

impl Pages {
    /// Stores a message.
    pub(super) fn put(&self, message: &Message) -> Place {
        self.add(|out| put_message(message, out))
    }

    /// Merges two messages, in constant time. `begins_turn` is that of the second.
    pub(super) fn join(&self, places: [Place; 2], begins_turn: bool) -> Place {
        self.add(|out| put_joined(places, begins_turn, out))
    }

    /// Returns the message at a place.
    pub(super) fn message(&self, at: Place) -> Option<Message> {
        let mut held = self.held();
        let mut whole: Option<Message> = None;
        let mut left = vec![(at, false)];
        while let Some((at, begins_turn)) = left.pop() {
            match (held.record(at)?, &mut whole) {
                (Record::Joined([first, second], begins), _) => {
                    left.extend([(second, begins), (first, begins_turn)]);
                }
                (Record::Message(message), Some(whole)) => join(whole, message, begins_turn),
                (Record::Message(message), none) => *none = Some(message),
            }
        }
        whole
    }

    /// Returns only the calls and results of the message at a place.
    pub(super) fn halves(&self, at: Place) -> Option<Vec<Half>> {
        let mut held = self.held();
        let mut all = Vec::new();
        let mut before = 0;
        let mut left = vec![at];
        while let Some(at) = left.pop() {
            match take_outline(&mut held.bytes(at)?)? {
                Outline::Joined([first, second]) => left.extend([second, first]),
                Outline::Blocks(count, halves) => {
                    let placed = |half: Half| Half { block: before + half.block, ..half };
                    all.extend(halves.into_iter().map(placed));
                    before += count;
                }
            }
        }
        Some(all)
    }

    fn add(&self, put: impl FnOnce(&mut Vec<u8>)) -> Place {
        let number = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let mut held = self.held();
        let page = NonZeroU32::MIN.saturating_add(number(held.full.len()));
        let start = number(held.open.len());
        put(&mut held.open);
        if held.open.len() >= FULL {
            held.close();
        }
        Place { page, start }
    }

    /// Returns true if both are the same pages.
    pub(super) fn are(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Merges two messages: the blocks of both, and the later value of fields that exist only once.
pub(super) fn join(own: &mut Message, message: Message, begins_turn: bool) {
    if own.role == Role::Tool {
        own.role = message.role;
    }
    own.blocks.extend(message.blocks);
    // A merged message keeps an id only if both have it.
    own.id = own.id.take().filter(|id| message.id.as_ref() == Some(id));
    // The time of a turn is that of the user's request.
    own.time = if begins_turn { message.time } else { own.time.or(message.time) };
    own.model = message.model.or(own.model.take());
    own.usage = message.usage.or(own.usage);
    own.stop = message.stop.or(own.stop);
    own.is_summary |= message.is_summary;
}

impl Held {
    fn record(&mut self, at: Place) -> Option<Record> {
        take_record(&mut self.bytes(at)?)
    }

    /// Returns the bytes of a page from an offset on.
    fn bytes(&mut self, at: Place) -> Option<&[u8]> {
        let bytes = self.page(usize::try_from(at.page.get() - 1).ok()?)?;
        bytes.get(usize::try_from(at.start).ok()?..)
    }

    /// Appends the open page to the full ones.
    fn close(&mut self) {
        let bytes = std::mem::take(&mut self.open);
        let packed = if self.full.len() < PLAIN { None } else { self.pack(&bytes) };
        self.full.push(match packed {
            Some(packed) => Page::Packed { bytes: packed.into(), length: bytes.len() },
            None => Page::Plain(bytes.into()),
        });
    }

    /// Compresses a page; None if that fails.
    fn pack(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.packer.is_none() {
            self.packer = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        self.packer.as_mut()?.compress(bytes).ok()
    }

    /// Returns the bytes of a page, decompressed.
    fn page(&mut self, number: usize) -> Option<&[u8]> {
        match self.full.get(number) {
            None => Some(&self.open),
            Some(Page::Plain(bytes)) => Some(bytes),
            Some(Page::Packed { bytes, length }) => {
                if let Some(at) = self.unpacked.iter().position(|(of, _)| *of == number) {
                    self.unpacked[..=at].rotate_right(1);
                } else {
                    if self.unpacker.is_none() {
                        self.unpacker = zstd::bulk::Decompressor::new().ok();
                    }
                    let unpacked = self.unpacker.as_mut()?.decompress(bytes, *length).ok()?;
                    self.unpacked.insert(0, (number, unpacked));
                    self.unpacked.truncate(AT_HAND);
                }
                self.unpacked.first().map(|(_, bytes)| bytes.as_slice())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{context::packing::tests::any_message, model::Block};

    proptest! {
        #[test]
        fn a_message_comes_out_as_it_was_put_in(messages in prop::collection::vec(any_message(), 0..8)) {
            let pages = Pages::default();
            let places: Vec<Place> = messages.iter().map(|one| pages.put(one)).collect();
            for (&at, message) in places.iter().zip(&messages).rev() {
                prop_assert_eq!(pages.message(at), Some(message.clone()));
            }
        }

        #[test]
        fn messages_that_became_one_come_out_as_one(
            parts in prop::collection::vec((any_message(), any::<bool>()), 1..5),
            more in prop::collection::vec((any_message(), any::<bool>()), 1..5),
        ) {
            let pages = Pages::default();
            let joined = |parts: &[(Message, bool)]| {
                let mut places = parts.iter().map(|(one, begins)| (pages.put(one), *begins));
                let first = places.next().unwrap();
                places.fold(first, |(one, begun), (next, begins)| {
                    (pages.join([one, next], begins), begun || begins)
                })
            };
            let (first, (second, begins)) = (joined(&parts), joined(&more));
            let all = pages.join([first.0, second], begins);
            let halves = pages.halves(all);
            let mut messages = parts.into_iter().chain(more);
            let mut whole = messages.next().unwrap().0;
            messages.for_each(|(message, begins)| join(&mut whole, message, begins));
            prop_assert_eq!(halves, Some(Half::of(&whole.blocks)));
            prop_assert_eq!(pages.message(all), Some(whole));
        }
    }

    #[test]
    fn the_pages_of_a_long_conversation_are_compressed_and_read_in_any_order() {
        let pages = Pages::default();
        let said = |n: usize| {
            let words = format!("{n} {}", "word ".repeat(20_000));
            Message::new(Role::User, vec![Block::Text(words)])
        };
        let places: Vec<Place> = (0..PLAIN + 8).map(|n| pages.put(&said(n))).collect();
        let held: usize = pages.held().full.iter().map(Page::length).sum();
        assert!(held < (PLAIN + 1) * 100_100, "{held}");
        for n in [PLAIN + 7, 0, PLAIN + 1, PLAIN, PLAIN + 7] {
            assert_eq!(pages.message(places[n]), Some(said(n)), "{n}");
        }
    }

    impl Page {
        fn length(&self) -> usize {
            match self {
                Self::Plain(bytes) | Self::Packed { bytes, .. } => bytes.len(),
            }
        }
    }
}
