//! Where something is in a line, however it is spelt, and what overwrites it.

use std::ops::Range;

use super::all::said;
use crate::json::{Frame, Kind, Owner, Raw, owners};

/// The maximum nesting of JSON escapes to search: JSON in JSON in a string of a record.
pub(crate) const LEVELS: usize = 3;
/// Replaces what was removed, if there is room.
const MARK: &str = "[redacted]";

/// The place of a secret in a line.
pub(super) struct Place {
    pub(super) range: Range<usize>,
    pub(super) filling: Filling,
    /// The index of the secret among those searched together.
    pub(super) of: usize,
    /// For a short secret, the frame of the record; in the identifying fields, a match would be a coincidence.
    pub(super) frame: Option<&'static Frame>,
}

/// What overwrites a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Filling {
    /// A mark, followed by asterisks.
    Mark,
    /// Valid base64.
    Code,
    /// A valid number: sign, point and exponent stay.
    Number,
}

impl Place {
    /// Returns true if it is in one of an object's strings, or is part of a number. Everything else belongs to the structure of
    /// the object and only looks like the secret.
    pub(super) fn fits(&mut self, line: &[u8], strings: &[Range<usize>]) -> bool {
        if self.is_within(strings) {
            return true;
        }
        let is_around =
            |one: &Range<usize>| one.start < self.range.end && self.range.start < one.end;
        let bytes = line.get(self.range.clone()).unwrap_or_default();
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let is_number = bytes.iter().all(is_part) && !self.next(strings).is_some_and(is_around);
        self.filling = Filling::Number;
        is_number
    }

    /// Returns the sort key of places.
    pub(super) fn order(&self) -> (usize, Filling, usize) {
        (self.range.start, self.filling, self.range.end)
    }

    /// Returns the first of these sorted ranges that does not end before this place does.
    fn next<'s>(&self, stretches: &'s [Range<usize>]) -> Option<&'s Range<usize>> {
        stretches.get(stretches.partition_point(|one| one.end < self.range.end))
    }

    /// Returns true if it is inside one of these sorted ranges.
    pub(super) fn is_within(&self, stretches: &[Range<usize>]) -> bool {
        let next = self.next(stretches);
        next.is_some_and(|one| one.start <= self.range.start && self.range.end <= one.end)
    }
}

/// Returns the ranges of an object outside its identifying fields, in order; none for any other line.
pub(super) fn untelling(line: &[u8], frame: &Frame) -> Option<Vec<Range<usize>>> {
    let owners = owners(Raw::object(line)?, Some(frame)).into_iter();
    let telling = owners.filter(|(owner, _)| *owner == Owner::Telling);
    let mut telling: Vec<_> = telling.filter_map(|(_, value)| value.span_in(line)).collect();
    telling.push(line.len()..line.len());
    let mut from = 0;
    Some(telling.into_iter().map(|one| std::mem::replace(&mut from, one.end)..one.start).collect())
}

/// Returns a line with these sorted places overwritten, merging those that overlap; none if nothing changes.
pub(super) fn cover(line: &[u8], mut places: Vec<Place>) -> Option<Vec<u8>> {
    if places.is_empty() {
        return None;
    }
    places.dedup_by(|next, last| {
        let is_one = next.filling == last.filling && next.range.start < last.range.end;
        if is_one {
            last.range.end = last.range.end.max(next.range.end);
        }
        is_one
    });
    let mut covered = line.to_vec();
    for Place { range, filling, .. } in places {
        fill(covered.get_mut(range).unwrap_or_default(), filling);
    }
    (covered != line).then_some(covered)
}

/// Returns the strings of a record's line, without their quotes, in order.
pub(super) fn strings(line: &[u8], record: Raw<'_>) -> Vec<Range<usize>> {
    let strings = said(record, None).filter(|value| value.kind() == Kind::String);
    let spans = strings.filter_map(|value| value.span_in(line));
    spans.map(|span| span.start + 1..span.end.saturating_sub(1)).collect()
}

/// Overwrites bytes.
pub(super) fn fill(bytes: &mut [u8], filling: Filling) {
    match filling {
        Filling::Mark => bytes.fill(b'*'),
        Filling::Code => bytes.fill(b'A'),
        Filling::Number => {
            bytes.iter_mut().filter(|byte| byte.is_ascii_digit()).for_each(|byte| *byte = b'1');
        }
    }
    if filling == Filling::Mark
        && let Some(place) = bytes.get_mut(..MARK.len())
    {
        place.copy_from_slice(MARK.as_bytes());
    }
}
