//! Bodies: the encoding of a line without what is already stored: repeated strings, and what it shares with a similar line
//! (`bytes/difference.rs`).
//!
//! ```text
//! line as it arrived   {"message":"<long string A>","toolUseResult":"<long string A>"}
//! its body             1 reference: after 28 + |A| literal bytes, line 0 (this one), offset 12, |A| bytes
//!                      literal bytes: {"message":"<long string A>","toolUseResult":""}
//! ```
//!
//! Invariant: a reference never points at another reference, only at literal bytes.

use std::ops::Range;

use crate::model::{put_varint, take_varint};

/// The place of a string in the literal bytes of a line's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line. In a reference, 0 means the referring line itself.
    pub(crate) line: i64,
    pub(crate) at: u64,
    pub(crate) size: u64,
}

/// A decoded body: its references, each with the number of literal bytes since the one before, and the literal bytes.
pub(crate) struct Parts<'a> {
    pub(crate) references: Vec<(usize, Place)>,
    pub(crate) literal: &'a [u8],
}

impl<'a> Parts<'a> {
    pub(crate) fn read(mut body: &'a [u8]) -> Option<Self> {
        let count = take_varint(&mut body)?;
        let mut references = Vec::new();
        for _ in 0..count {
            let gap = usize::try_from(take_varint(&mut body)?).ok()?;
            let line = i64::try_from(take_varint(&mut body)?).ok()?;
            let (at, size) = (take_varint(&mut body)?, take_varint(&mut body)?);
            references.push((gap, Place { line, at, size }));
        }
        Some(Self { references, literal: body })
    }

    /// Returns the places of the line's bytes, in order. `own` is the number of the line.
    pub(crate) fn places(&self, own: i64) -> Option<Vec<Place>> {
        let mut places = Vec::with_capacity(2 * self.references.len() + 1);
        let mut at = 0;
        for (gap, place) in &self.references {
            let line = if place.line == 0 { own } else { place.line };
            let size = *gap as u64;
            places.extend([Place { line: own, at, size }, Place { line, ..*place }]);
            at += size;
        }
        let size = (self.literal.len() as u64).checked_sub(at)?;
        places.push(Place { line: own, at, size });
        Some(places)
    }

    /// Returns the bytes at a place in this body.
    pub(crate) fn slice(&self, place: Place) -> Option<&'a [u8]> {
        let at = usize::try_from(place.at).ok()?;
        self.literal.get(at..at.checked_add(usize::try_from(place.size).ok()?)?)
    }
}

/// Encodes a line: its references, then its bytes without those in `cuts`.
pub(crate) fn write(references: &[(usize, Place)], line: &[u8], cuts: &[Range<usize>]) -> Vec<u8> {
    let cut: usize = cuts.iter().map(ExactSizeIterator::len).sum();
    let mut body = Vec::with_capacity(line.len() - cut + 8 + 12 * references.len());
    put_varint(&mut body, references.len() as u64);
    for (gap, place) in references {
        put_varint(&mut body, *gap as u64);
        put_varint(&mut body, place.line.cast_unsigned());
        put_varint(&mut body, place.at);
        put_varint(&mut body, place.size);
    }
    let mut rest = 0;
    for cut in cuts {
        body.extend_from_slice(line.get(rest..cut.start).unwrap_or_default());
        rest = cut.end;
    }
    body.extend_from_slice(line.get(rest..).unwrap_or_default());
    body
}
