//! Where something is in a line, however it is spelt there, and what is written over it.

use std::ops::Range;

use super::text::Text;
use crate::json::{Frame, Owner, Raw, owners};

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
}

/// What is written over a secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    fn fits(&mut self, line: &[u8], strings: &[Range<usize>]) -> bool {
        let string = strings.get(strings.partition_point(|one| one.end < self.range.end));
        if string.is_some_and(|one| one.start <= self.range.start && self.range.end <= one.end) {
            return true;
        }
        let is_around =
            |one: &Range<usize>| one.start < self.range.end && self.range.start < one.end;
        let bytes = line.get(self.range.clone()).unwrap_or_default();
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let is_number = bytes.iter().all(is_part) && !string.is_some_and(is_around);
        self.filling = Filling::Number;
        is_number
    }
}

impl Place {
    /// Returns by what places are in order.
    fn order(&self) -> (usize, Filling, usize) {
        (self.range.start, self.filling, self.range.end)
    }

    /// Returns whether it is in one of these stretches, which are in order.
    pub(super) fn is_within(&self, stretches: &[Range<usize>]) -> bool {
        let stretch = stretches.get(stretches.partition_point(|one| one.end < self.range.end));
        stretch.is_some_and(|one| one.start <= self.range.start && self.range.end <= one.end)
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

/// A spelling that was found in a text: what is sure to be its own, and how many characters around that are partly so.
pub(super) struct Spelt {
    pub(super) range: Range<usize>,
    pub(super) filling: Filling,
    pub(super) before: usize,
    pub(super) after: usize,
    /// Which of the secrets that are looked for together.
    pub(super) of: usize,
}

/// Sees a spelling that was found in a text.
pub(super) type See<'s> = dyn FnMut(Spelt) + 's;
/// Finds the spellings in a text.
type Find<'f> = dyn FnMut(&[u8], &mut See<'_>) + 'f;

/// Returns where spellings are in a line, in order: in its bytes, in these as they read without escapes, and so on. `find`
/// is asked about each text.
pub(super) fn places(line: &[u8], find: &mut Find<'_>) -> Vec<Place> {
    let mut found = Vec::new();
    let mut look = |text: &Text| {
        find(&text.bytes, &mut |spelt: Spelt| {
            let Spelt { range, filling, before, after, of } = spelt;
            let is_code = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
            let end = (range.end + after).min(text.bytes.len());
            let rest = text.bytes.get(range.end..end).unwrap_or_default();
            let more = rest.iter().take_while(is_code).count();
            let whole = range.start.saturating_sub(before)..range.end + more;
            found.push(Place { range: text.raw(whole), filling, of });
        });
    };
    let mut text = Text { bytes: line.to_vec(), from: None };
    for level in 0..=LEVELS {
        look(&text);
        if level == LEVELS || !text.bytes.contains(&b'\\') {
            break;
        }
        let next = text.unescaped();
        if next.bytes.len() == text.bytes.len() {
            // No backslash in it is an escape.
            break;
        }
        text = next;
    }
    if let Some(strings) = strings(line) {
        found.retain_mut(|place| place.fits(line, &strings));
    }
    found.sort_by_key(Place::order);
    found
}

/// Returns a line with these places written over, if that changes it. Those that overlap are one.
pub(super) fn cover(line: &[u8], mut places: Vec<Place>) -> Option<Vec<u8>> {
    if places.is_empty() {
        return None;
    }
    places.sort_by_key(Place::order);
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

/// Returns the strings of an object between their quotes, in order; of any other line nothing.
fn strings(line: &[u8]) -> Option<Vec<Range<usize>>> {
    Raw::object(line)?;
    let (mut spans, mut open, mut at) = (Vec::new(), None, 0);
    while let Some(byte) = line.get(at) {
        match (byte, open) {
            (b'\\', Some(_)) => at += 1,
            (b'"', None) => open = Some(at + 1),
            (b'"', Some(start)) => {
                spans.push(start..at);
                open = None;
            }
            _ => {}
        }
        at += 1;
    }
    Some(spans)
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
