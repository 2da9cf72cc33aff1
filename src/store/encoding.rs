//! The encoding shared by the journal and bundles: varints, lengths, and an operation with its facts.
//!
//! A number is a varint. A list is its length and its items; bytes are their length and themselves.
//!
//! Invariant: decoding never uses more memory than the bytes that exist, whatever they claim.

use crate::model::{
    Bulk, Entry, EntryId, EntryNumber, Operation, OperationId, OperationNumber, Tagged, Text,
    Words, put_varint, take_varint,
};

/// The bytes being written.
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        put_varint(&mut self.0, number);
        self
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64).raw(bytes)
    }

    pub(super) fn tagged(&mut self, value: &impl Tagged) {
        self.bytes(&value.to_bytes());
    }

    pub(super) fn maybe(&mut self, number: Option<u64>) -> &mut Self {
        self.list(number.as_slice(), |out, number| {
            out.number(*number);
        });
        self
    }

    pub(super) fn list<T>(&mut self, items: &[T], mut put: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            put(self, item);
        }
    }

    /// Writes an operation without the facts next to its record.
    pub(super) fn operation(&mut self, operation: &Operation, bulk: &Bulk) {
        self.number(operation.n.get()).raw(operation.hash.as_bytes()).bytes(&operation.record);
        self.list(&operation.words(bulk), |out, words| {
            out.raw(&words.salt).bytes(words.text.as_bytes());
        });
    }

    pub(super) fn entry(&mut self, entry: &Entry) {
        self.raw(entry.id.as_bytes()).number(entry.link.map_or(0, |link| entry.n.since(link)));
    }

    /// Writes the facts next to an operation's record, without its entries.
    pub(super) fn growth(&mut self, bulk: &Bulk) {
        self.list(&bulk.runs, Self::tagged);
        self.list(&bulk.checkpoints, Self::tagged);
        self.list(&bulk.origins, Self::tagged);
    }
}

/// The bytes still to be read.
pub(super) struct In<'a>(pub(super) &'a [u8]);

impl<'a> In<'a> {
    pub(super) fn number(&mut self) -> Option<u64> {
        take_varint(&mut self.0)
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    pub(super) fn raw<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    pub(super) fn tagged<T: Tagged>(&mut self) -> Option<T> {
        let mut unknown = Vec::new();
        T::read(self.bytes()?, &mut unknown).ok().filter(|_| unknown.is_empty())
    }

    pub(super) fn list<T>(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        (0..self.number()?).map(|_| take(self)).collect()
    }

    /// Reads an operation, with the texts in it and in its checkpoints.
    pub(super) fn operation(&mut self) -> Option<(Operation, Vec<Words>)> {
        let n = OperationNumber::new(self.number()?);
        let (hash, record) = (OperationId::new(self.raw()?), self.bytes()?.to_vec());
        let words = self.list(|from| Some(Words { salt: from.raw()?, text: from.text()? }))?;
        Some((Operation::open(n, record, hash, &words).ok()?, words))
    }

    pub(super) fn entry(&mut self, n: EntryNumber) -> Option<Entry> {
        let (id, link) = (EntryId::new(self.raw()?), self.number()?);
        let link =
            if link == 0 { None } else { Some(EntryNumber::new(n.get().checked_sub(link)?)) };
        Some(Entry { n, id, link })
    }

    /// Reads the facts next to an operation's record, given its texts and entries.
    pub(super) fn growth(&mut self, words: &[Words], entries: Vec<Entry>) -> Option<Bulk> {
        let (runs, mut checkpoints) = (self.list(In::tagged)?, self.list(In::tagged)?);
        for checkpoint in &mut checkpoints {
            Tagged::texts(checkpoint, &mut |text: &mut Text| text.fill(words));
        }
        Some(Bulk { entries, runs, checkpoints, origins: self.list(In::tagged)? })
    }
}
