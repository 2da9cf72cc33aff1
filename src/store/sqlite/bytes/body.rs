//! Bodies: how a line is written down, with what was met before left out: strings, and what it shares with a line that
//! is nearly the same (`sqlite/difference.rs`).
//!
//! ```text
//! line as it arrived   {"message":"<long string A>","toolUseResult":"<long string A>"}
//! its body             1 reference: after 28 + |A| literal bytes, line 0 (this one), offset 12, |A| bytes
//!                      literal bytes: {"message":"<long string A>","toolUseResult":""}
//! ```
//!
//! Invariant: a reference points at literal bytes, never at another reference.

use std::ops::Range;

use crate::model::{put_varint, take_varint};

/// Where a string is: in the literal bytes of a line's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The line; in a reference, 0 is the line that refers.
    pub(crate) line: i64,
    pub(crate) at: u64,
    pub(crate) size: u64,
}

/// A body taken apart: its references, each behind the number of literal bytes before it, and the literal bytes.
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

    /// Returns where the bytes of the line stand, in order; the body is that of line `own`.
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

/// Writes the body of a line: its references, and its bytes without those that they stand for.
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
