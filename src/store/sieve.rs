//! Sieves: decide from stored bytes which lines may match a search.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

/// Finds a match in some bytes.
type Find = dyn Fn(&[u8]) -> Option<Range<usize>> + Send + Sync;

/// Passes the lines that may match, by bytes that every matching line contains.
///
/// Invariant: no match contains a quotation mark. So a string of a line can be judged on its own, once for all lines that share
/// it.
pub struct Sieve {
    /// The searches. A line passes if any of them matches.
    finds: Vec<Box<Find>>,
    /// The verdicts on adjacent lines, by the number of the first one.
    judged: Mutex<BTreeMap<i64, Arc<[Verdict]>>>,
}

/// The verdict on a line, without the lines that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may match.
    Held,
    /// Its own bytes do not match, but it has strings from these lines.
    Through(Box<[i64]>),
    /// It must be decoded to be judged.
    Apart,
}

impl fmt::Debug for Sieve {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sieve").finish_non_exhaustive()
    }
}

impl Sieve {
    /// Makes a sieve from searches whose matches contain no quotation mark. A line passes if any of them matches.
    pub fn new<F: Fn(&[u8]) -> Option<Range<usize>> + Send + Sync + 'static>(
        finds: impl IntoIterator<Item = F>,
    ) -> Self {
        let boxed = |find| -> Box<Find> { Box::new(find) };
        Self { finds: finds.into_iter().map(boxed).collect(), judged: Mutex::default() }
    }

    /// Makes a sieve that passes everything.
    pub fn open() -> Self {
        Self::new([|bytes: &[u8]| Some(0..bytes.len())])
    }

    /// Returns true if these bytes may match.
    pub fn passes(&self, bytes: &[u8]) -> bool {
        self.finds.iter().any(|find| find(bytes).is_some())
    }

    /// Returns for each of these ranges, which must be in order, whether it may match. All of them are searched in one pass.
    pub(super) fn each_passes(&self, bytes: &[u8], stretches: &[Range<usize>]) -> Vec<bool> {
        let mut passed = vec![false; stretches.len()];
        for find in &self.finds {
            search_each(find, bytes, stretches, &mut passed);
        }
        passed
    }

    /// Returns the verdict on a line, if its segment was judged.
    pub(super) fn verdict(&self, line: i64) -> Option<Verdict> {
        let judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, verdicts) = judged.range(..=line).next_back()?;
        verdicts.get(usize::try_from(line.checked_sub(*first)?).ok()?).cloned()
    }

    /// Stores the verdicts on adjacent lines.
    pub(super) fn keep(&self, first: i64, verdicts: Vec<Verdict>) {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        judged.insert(first, verdicts.into());
    }
}

/// Sets `passed` for each range that contains a match.
fn search_each(find: &Find, bytes: &[u8], stretches: &[Range<usize>], passed: &mut [bool]) {
    let from = |from: usize| -> Option<Range<usize>> {
        let at = find(bytes.get(from..)?)?;
        Some(from + at.start..from + at.end)
    };
    let mut found = from(0);
    for (stretch, passed) in stretches.iter().zip(passed) {
        // A match that begins before a range and ends in it may hide one that begins in it.
        if found.as_ref().is_some_and(|at| at.start < stretch.start) {
            found = from(stretch.start);
        }
        let Some(at) = &found else { return };
        *passed |= if at.start < stretch.end && at.end > stretch.end {
            bytes.get(stretch.clone()).is_some_and(|stretch| find(stretch).is_some())
        } else {
            at.end <= stretch.end && !stretch.is_empty()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_judged_each_by_itself() {
        let find = |needle: &'static [u8]| {
            move |bytes: &[u8]| {
                let at = bytes.windows(needle.len()).position(|window| window == needle)?;
                Some(at..at + needle.len())
            }
        };
        let check = |needle: &'static [u8], parts: &[&[u8]], expected: &[bool]| {
            let bytes = parts.concat();
            let mut end = 0;
            let stretches: Vec<_> = parts
                .iter()
                .map(|part| {
                    end += part.len();
                    end - part.len()..end
                })
                .collect();
            let sieve = Sieve::new([find(needle)]);
            assert_eq!(sieve.each_passes(&bytes, &stretches), expected, "{parts:?}");
        };
        check(b"aa", &[b"xa", b"aab", b"b"], &[false, true, false]);
        check(b"aa", &[b"xa", b"ab", b"aa"], &[false, false, true]);
        check(b"aa", &[b"aaa", b"aab"], &[true, true]);
        check(b"aa", &[b"baa", b"", b"aa", b"x"], &[true, false, true, false]);
        check(b"aba", &[b"abxab", b"aba"], &[false, true]);
        check(b"aba", &[b"aba", b"ba"], &[true, false]);
    }
}
