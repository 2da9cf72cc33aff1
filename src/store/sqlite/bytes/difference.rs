//! Differences: encodes a line that is similar to another, as in forks, as its differences.
//!
//! ```text
//! the other line   {"uuid":"7","sessionId":"A","message":"..."}
//! this line        {"uuid":"7","sessionId":"B","message":"..."}
//! equal            |------------------------| |---------------|    two references; literal bytes: B
//! ```
//!
//! Invariant: no byte depends on a guess. What is not found to be equal is stored literally, so a wrong guess only costs space.

use std::ops::Range;

use memchr::memmem;

use crate::model::line::TEXT_MIN;
use crate::store::sqlite::bytes::body::{self, Place};

/// The maximum length of a difference: too short for a string that other lines could refer to.
const GAP: usize = TEXT_MIN - 1;
/// The maximum number of differences.
const GAPS: usize = 8;
/// How many equal bytes prove that the lines are in step again.
const SURE: usize = 16;
/// The minimum number of equal bytes for a reference.
const WORTH: usize = 24;
/// How many lines after the expected one are tried, because a fork may omit some.
const NEAR: i64 = 3;
/// How many consecutive lines may be dissimilar to the expected one.
const PATIENCE: u32 = 8;

/// A decoded line, and the places of its bytes in the store.
pub(crate) struct Other {
    pub(crate) bytes: Vec<u8>,
    pub(crate) places: Vec<Place>,
}

/// Returns true if lines of these lengths may be similar.
pub(crate) fn may_be_near(one: u64, other: u64) -> bool {
    one.abs_diff(other) <= (GAP * GAPS) as u64
}

/// Encodes a line as its difference from another one, if they are similar.
pub(crate) fn write(line: &[u8], other: &Other) -> Option<Vec<u8>> {
    let (mut references, mut cuts) = (Vec::new(), Vec::new());
    let (mut rest, mut equal) = (0, 0);
    let mut places = other.places.iter();
    // The current place, and the offset of its bytes in the other line.
    let (mut place, mut begin) = (places.next(), 0);
    for (mut from, stretch) in stretches(&other.bytes, line)? {
        let mut at = stretch.start;
        while at < stretch.end {
            let now = place?;
            let end = begin + usize::try_from(now.size).ok()?;
            if end <= from {
                (place, begin) = (places.next(), end);
                continue;
            }
            let size = (end - from).min(stretch.end - at);
            if size >= WORTH {
                let place = Place { at: now.at + (from - begin) as u64, size: size as u64, ..*now };
                references.push((at - rest, place));
                cuts.push(at..at + size);
                rest = at + size;
                equal += size;
            }
            (from, at) = (from + size, at + size);
        }
    }
    (equal >= line.len() / 2).then(|| body::write(&references, line, &cuts))
}

/// Returns the ranges of a line that are also in another one, each with its offset there, if the bytes between them are few.
fn stretches(other: &[u8], line: &[u8]) -> Option<Vec<(usize, Range<usize>)>> {
    let (mut from, mut at) = (0, 0);
    let mut found = Vec::new();
    loop {
        let equal = common(other.get(from..)?, line.get(at..)?);
        found.push((from, at..at + equal));
        (from, at) = (from + equal, at + equal);
        if at == line.len() {
            return Some(found);
        }
        if found.len() > GAPS {
            return None;
        }
        let Some((skipped, new)) = meet(other.get(from..)?, line.get(at..)?) else {
            return (line.len() - at <= GAP).then_some(found);
        };
        (from, at) = (from + skipped, at + new);
    }
}

/// Returns the length of the common prefix.
fn common(one: &[u8], other: &[u8]) -> usize {
    const MANY: usize = 256;
    let pairs = one.chunks_exact(MANY).zip(other.chunks_exact(MANY));
    let whole = MANY * pairs.take_while(|(one, other)| one == other).count();
    let rest = one.iter().skip(whole).zip(other.iter().skip(whole));
    whole + rest.take_while(|(one, other)| one == other).count()
}

/// Returns how many bytes to skip in each so that they are in step again.
fn meet(other: &[u8], line: &[u8]) -> Option<(usize, usize)> {
    let ahead = line.get(..line.len().min(GAP + SURE))?;
    (0..=GAP).find_map(|skipped| {
        let next = other.get(skipped..skipped + SURE)?;
        Some((skipped, memmem::find(ahead, next)?))
    })
}

/// The number of the line that the next one may be similar to: the one after the last match.
#[derive(Default)]
pub(crate) struct Guess {
    next: Option<i64>,
    /// How many lines in a row were dissimilar.
    missed: u32,
    /// The distance between the last line that shared a string with an older one, and that one.
    shared: Option<i64>,
}

impl Guess {
    /// Returns the lines to try, all of them before another one.
    pub(crate) fn lines(&self, before: i64) -> Range<i64> {
        self.next.map_or(0..0, |next| next..before.min(next.saturating_add(NEAR)))
    }

    /// Records that a line shares a string with an older one. Returns true if the two may be similar: the last such pair was
    /// about as far apart.
    pub(crate) fn is_shared(&mut self, line: i64, older: i64) -> bool {
        let distance = line.saturating_sub(older);
        let before = self.shared.replace(distance);
        before.is_some_and(|before| before.abs_diff(distance) < NEAR.unsigned_abs())
    }

    /// Expects the next line to be similar to this one.
    pub(crate) fn expect(&mut self, line: i64) {
        (self.next, self.missed) = (Some(line), 0);
    }

    /// Records the line that the last one was similar or equal to.
    pub(crate) fn found(&mut self, line: i64) {
        self.expect(line.saturating_add(1));
    }

    /// Records that the last line was similar to none.
    pub(crate) fn missed(&mut self) {
        self.missed += 1;
        if self.missed > PATIENCE {
            self.next = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::sqlite::bytes::body::Parts;

    /// Reads a line back from its body, and the other line's literal bytes.
    fn read(body: &[u8], literal: &[u8]) -> Vec<u8> {
        let parts = Parts::read(body).unwrap();
        let mut line = Vec::new();
        let mut rest = parts.literal;
        for (gap, place) in parts.references {
            let (before, behind) = rest.split_at(gap);
            line.extend_from_slice(before);
            rest = behind;
            let at = usize::try_from(place.at).unwrap();
            line.extend_from_slice(&literal[at..at + usize::try_from(place.size).unwrap()]);
        }
        [line, rest.to_vec()].concat()
    }

    /// Returns a line whose bytes stand in several places, the later ones first.
    fn scattered(bytes: &[u8], ends: &[usize]) -> (Other, Vec<u8>) {
        let (mut places, mut literal, mut rest) = (Vec::new(), Vec::new(), bytes);
        for &size in ends.iter().chain([&bytes.len()]) {
            let (part, behind) = rest.split_at(size.min(rest.len()));
            places.push((part, behind.len() as u64));
            rest = behind;
        }
        let places = places
            .into_iter()
            .map(|(part, at)| Place { line: 7, at, size: part.len() as u64 })
            .collect::<Vec<_>>();
        let mut from = bytes.len();
        for place in places.iter().rev() {
            let size = usize::try_from(place.size).unwrap();
            literal.extend_from_slice(&bytes[from - size..from]);
            from -= size;
        }
        (Other { bytes: bytes.to_vec(), places }, literal)
    }

    proptest! {
        #[test]
        fn a_line_comes_back_from_its_difference_to_any_other(
            parts in prop::collection::vec("[a-c]{0,80}", 1..8),
            own in prop::collection::vec(prop::option::of("[a-d]{0,60}"), 8),
            ends in prop::collection::vec(0usize..90, 0..5),
        ) {
            let other = parts.concat().into_bytes();
            let line: String = parts
                .iter()
                .zip(own)
                .flat_map(|(part, own)| own.unwrap_or_else(|| part.clone()).chars().collect::<Vec<_>>())
                .collect();
            let (other, literal) = scattered(&other, &ends);
            if let Some(body) = write(line.as_bytes(), &other) {
                prop_assert_eq!(read(&body, &literal), line.as_bytes());
            }
        }
    }

    #[test]
    fn a_record_of_another_session_is_kept_as_its_name() {
        let record = |session: &str| {
            format!(r#"{{"uuid":"7","sessionId":"{session}","message":"{}"}}"#, "words ".repeat(99))
        };
        let (one, literal) = scattered(record("a-session").as_bytes(), &[300]);
        let line = record("another one, whose id is longer");
        let body = write(line.as_bytes(), &one).unwrap();
        assert_eq!(read(&body, &literal), line.as_bytes());
        assert!(body.len() < 70, "{} bytes", body.len());
        // What was put in front or behind, or left out, differs little too.
        for line in [&line[40..], &line[..500], &(line.clone() + &"new".repeat(80))] {
            let body = write(line.as_bytes(), &one).unwrap();
            assert_eq!(read(&body, &literal), line.as_bytes());
        }
        // A long string may be met again, and is kept as one; other lines are nothing like it.
        for line in [line + &"new".repeat(90), "other words ".repeat(60), String::new()] {
            assert_eq!(write(line.as_bytes(), &one).map_or(0, |body| body.len() - 1), 0);
        }
    }
}
