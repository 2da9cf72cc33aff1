//! Sieves: which lines may hold something that is looked for, told from bytes as a store keeps them.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

/// Where some bytes have what is looked for.
type Find = dyn Fn(&[u8]) -> Option<Range<usize>> + Send + Sync;

/// Lets lines through that may hold something, by bytes of which each such line has some.
///
/// Invariant: what it finds has no quotation mark in it, so that a string of a line can be judged wherever it is, and
/// once for all lines that have it.
pub struct Sieve {
    /// The searches, each of which is enough to let a line through.
    finds: Vec<Box<Find>>,
    /// What was found in lines that lie together, by the number of the first one.
    judged: Mutex<BTreeMap<i64, Arc<[Verdict]>>>,
}

/// What is known of a line without those that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may hold it.
    Held,
    /// Not by its own bytes, but by strings that these lines have.
    Through(Box<[i64]>),
    /// It must be put together to be judged.
    Apart,
}

impl fmt::Debug for Sieve {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sieve").finish_non_exhaustive()
    }
}

impl Sieve {
    /// Makes a sieve of searches for bytes without a quotation mark among them, each of which is enough to let a line through.
    pub fn new<F: Fn(&[u8]) -> Option<Range<usize>> + Send + Sync + 'static>(
        finds: impl IntoIterator<Item = F>,
    ) -> Self {
        let boxed = |find| -> Box<Find> { Box::new(find) };
        Self { finds: finds.into_iter().map(boxed).collect(), judged: Mutex::default() }
    }

    /// Makes one that lets everything through.
    pub fn open() -> Self {
        Self::new([|bytes: &[u8]| Some(0..bytes.len())])
    }

    /// Returns whether these bytes may hold it.
    pub fn passes(&self, bytes: &[u8]) -> bool {
        self.finds.iter().any(|find| find(bytes).is_some())
    }

    /// Says of each of these stretches, which lie in order, whether it may hold it. All of them are searched in one go.
    pub(super) fn each_passes(&self, bytes: &[u8], stretches: &[Range<usize>]) -> Vec<bool> {
        let mut passed = vec![false; stretches.len()];
        for find in &self.finds {
            search_each(find, bytes, stretches, &mut passed);
        }
        passed
    }

    /// Returns what is known of a line, if those that it lies with were judged.
    pub(super) fn verdict(&self, line: i64) -> Option<Verdict> {
        let judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, verdicts) = judged.range(..=line).next_back()?;
        verdicts.get(usize::try_from(line.checked_sub(*first)?).ok()?).cloned()
    }

    /// Keeps what was found in lines that lie together.
    pub(super) fn keep(&self, first: i64, verdicts: Vec<Verdict>) {
        let mut judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
        judged.insert(first, verdicts.into());
    }
}

/// Notes of each stretch whether a search finds something within it.
fn search_each(find: &Find, bytes: &[u8], stretches: &[Range<usize>], passed: &mut [bool]) {
    let from = |from: usize| -> Option<Range<usize>> {
        let at = find(bytes.get(from..)?)?;
        Some(from + at.start..from + at.end)
    };
    let mut found = from(0);
    for (stretch, passed) in stretches.iter().zip(passed) {
        // What begins before a stretch and ends in it may hide what begins in it.
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
