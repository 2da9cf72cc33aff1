//! Where something is in a line, however it is spelt there, and what is written over it.

use std::ops::Range;

use super::all::said;
use crate::json::{Frame, Kind, Owner, Raw, owners};

/// How many levels of JSON escapes are searched: JSON in JSON in a record's string.
pub(crate) const LEVELS: usize = 3;
/// What replaces what was taken out, where it fits in.
const MARK: &str = "[redacted]";

/// A place in a line where a secret is.
pub(super) struct Place {
    pub(super) range: Range<usize>,
    pub(super) filling: Filling,
    /// Which of the secrets that are looked for together.
    pub(super) of: usize,
    /// Of a short secret, the frame in which it would stand by chance.
    pub(super) frame: Option<&'static Frame>,
}

/// What is written over a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Filling {
    /// A mark, and asterisks.
    Mark,
    /// What is base64 as well.
    Code,
    /// What is a number as well: its sign, its point and its exponent stay.
    Number,
}

impl Place {
    /// Returns whether it is in one of an object's strings, or is a part of a number: anything else is what the object is
    /// made of, and only looks like it.
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

    /// Returns by what places are in order.
    pub(super) fn order(&self) -> (usize, Filling, usize) {
        (self.range.start, self.filling, self.range.end)
    }

    /// Returns the first of these stretches, which are in order, that does not end before it does.
    fn next<'s>(&self, stretches: &'s [Range<usize>]) -> Option<&'s Range<usize>> {
        stretches.get(stretches.partition_point(|one| one.end < self.range.end))
    }

    /// Returns whether it is in one of these stretches, which are in order.
    pub(super) fn is_within(&self, stretches: &[Range<usize>]) -> bool {
        let next = self.next(stretches);
        next.is_some_and(|one| one.start <= self.range.start && self.range.end <= one.end)
    }
}

/// Returns the stretches of an object that tell nothing of what it is, in order; of any other line nothing.
pub(super) fn untelling(line: &[u8], frame: &Frame) -> Option<Vec<Range<usize>>> {
    let owners = owners(Raw::object(line)?, Some(frame)).into_iter();
    let telling = owners.filter(|(owner, _)| *owner == Owner::Telling);
    let mut telling: Vec<_> = telling.filter_map(|(_, value)| value.span_in(line)).collect();
    telling.push(line.len()..line.len());
    let mut from = 0;
    Some(telling.into_iter().map(|one| std::mem::replace(&mut from, one.end)..one.start).collect())
}

/// Returns a line with these places written over, which are in order, if that changes it. Those that overlap are one.
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

/// Returns the strings of a line that is a record, between their quotes, in order.
pub(super) fn strings(line: &[u8], record: Raw<'_>) -> Vec<Range<usize>> {
    let strings = said(record, None).filter(|value| value.kind() == Kind::String);
    let spans = strings.filter_map(|value| value.span_in(line));
    spans.map(|span| span.start + 1..span.end.saturating_sub(1)).collect()
}

/// Writes over bytes.
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
