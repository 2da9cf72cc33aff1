//! Spans: the entries of a generation, in as few ranges as possible.
//!
//! Invariant: the stored spans of a generation equal those computed from its runs.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::{
    EntryNumber, Gaps, GenerationNumber, Malformed, Run,
    tagged::{Field, tagged},
};

/// The limit for all stored spans of a session. A span counts as one, and so does each item of its separators.
const KEPT: usize = 256;

/// Entries with consecutive numbers that are adjacent in a generation, even if several operations added them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The generation.
    pub generation: GenerationNumber,
    /// How many entries of the generation precede it.
    pub start: u64,
    /// The first entry.
    pub first: EntryNumber,
    /// How many entries.
    pub count: u64,
    /// The separators.
    pub gaps: Gaps,
}

tagged!(Span { 1: generation, 2: start, 3: first, 4: count, 5: gaps });

impl From<&Run> for Span {
    fn from(run: &Run) -> Self {
        let Run { generation, start, first, count, ref gaps, .. } = *run;
        Self { generation, start, first, count, gaps: gaps.clone() }
    }
}

impl Span {
    /// Returns how many entries the generation has up to the end of this span.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.count)
    }

    /// Returns the numbers of its entries.
    pub fn entries(&self) -> Range<EntryNumber> {
        self.first..self.first.plus(self.count)
    }

    /// Appends a run of the same generation to the spans before it, merging neighbours whose separators are all default.
    pub fn join(spans: &mut Vec<Self>, run: &Run) {
        if !spans.last_mut().is_some_and(|last| last.take(run)) && run.count > 0 {
            spans.push(run.into());
        }
    }

    /// Merges the next run if it continues this span and both have only default separators. Returns true if it did.
    fn take(&mut self, run: &Run) -> bool {
        let goes_on = self.entries().end == run.first;
        let is_one = goes_on && self.gaps.0.is_empty() && run.gaps.0.is_empty();
        self.count = self.count.saturating_add(if is_one { run.count } else { 0 });
        is_one
    }

    /// Returns how much it counts toward [`KEPT`].
    fn room(&self) -> usize {
        1 + self.gaps.0.len()
    }
}

/// The spans of those generations that have few of them, so that readers do not have to load every run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Arc<Vec<Span>>);

impl Spans {
    /// Adds the next run.
    pub(super) fn grow(&mut self, run: &Run) {
        let spans = Arc::make_mut(&mut self.0);
        let last = spans.iter_mut().rfind(|span| span.generation == run.generation);
        // Otherwise the generation's spans were dropped, or it has more than are stored.
        let is_next = run.start == last.as_ref().map_or(0, |last| last.end());
        if is_next && run.count > 0 && !last.is_some_and(|last| last.take(run)) {
            spans.push(run.into());
            while spans.iter().map(Span::room).sum::<usize>() > KEPT {
                forget_longest(spans);
            }
        }
    }

    /// Returns the spans of a generation, in order; empty if they are not stored.
    pub fn of(&self, generation: GenerationNumber) -> Vec<Span> {
        self.0.iter().filter(|span| span.generation == generation).cloned().collect()
    }
}

impl Field for Spans {
    fn put(&self, tag: u64, out: &mut Vec<u8>) {
        self.0.put(tag, out);
    }

    fn take(&mut self, payload: &[u8], unknown: &mut Vec<u64>) -> Result<(), Malformed> {
        Arc::make_mut(&mut self.0).take(payload, unknown)
    }
}

/// Drops the spans of the generation that counts most; of several, the oldest.
fn forget_longest(spans: &mut Vec<Span>) {
    let mut rooms: BTreeMap<GenerationNumber, usize> = BTreeMap::new();
    for span in &*spans {
        *rooms.entry(span.generation).or_default() += span.room();
    }
    let longest = rooms.into_iter().rev().max_by_key(|(_, room)| *room);
    spans.retain(|span| longest.is_none_or(|(longest, _)| span.generation != longest));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a growth adds: the generation, the entry at which it begins unless it goes on, how many, and a separator other than
    /// the usual one.
    type Grown = (u64, Option<u64>, u64, Option<&'static [u8]>);

    fn runs(grown: &[Grown]) -> Vec<Run> {
        let mut ends: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let run = |(generation, begin, count, separator): &Grown| {
            let (start, next) = ends.get(generation).copied().unwrap_or((0, 1));
            let first = EntryNumber::new(begin.unwrap_or(next));
            ends.insert(*generation, (start + count, first.plus(*count).get()));
            let mut gaps = Gaps::default();
            for place in 0..*count {
                let usual = Gaps::usual(start + place);
                gaps.push(place, start + place, separator.unwrap_or(usual));
            }
            let generation = GenerationNumber::new(*generation);
            Run { generation, start, first, count: *count, gaps, ..Run::default() }
        };
        grown.iter().map(run).collect()
    }

    fn spans(runs: &[Run]) -> Spans {
        let mut spans = Spans::default();
        for run in runs {
            spans.grow(run);
        }
        spans
    }

    /// Returns the numbers and separators of the entries of a generation, in order.
    fn entries<'a>(spans: impl IntoIterator<Item = &'a Span>) -> Vec<(u64, u64, Vec<u8>)> {
        let each = |span: &'a Span| {
            let gaps = span.gaps.iter(span.start, span.count).map(<[u8]>::to_vec);
            (span.start..).zip(EntryNumber::each(span.entries())).zip(gaps)
        };
        let told = spans.into_iter().flat_map(each);
        told.map(|((place, entry), gap)| (place, entry.get(), gap)).collect()
    }

    proptest! {
        #[test]
        fn spans_tell_the_same_as_runs(
            grown in proptest::collection::vec(
                (
                    1u64..4,
                    proptest::option::weighted(0.2, 1u64..50),
                    0u64..4,
                    proptest::option::weighted(0.2, Just(&b"\r\n"[..])),
                ),
                0..60,
            ),
        ) {
            let runs = runs(&grown);
            let kept = spans(&runs);
            for generation in (1..4).map(GenerationNumber::new) {
                let of: Vec<Span> =
                    runs.iter().filter(|run| run.generation == generation).map(Span::from).collect();
                prop_assert_eq!(entries(&kept.of(generation)), entries(&of));
                let mut joined = Vec::new();
                let of = runs.iter().filter(|run| run.generation == generation);
                of.for_each(|run| Span::join(&mut joined, run));
                prop_assert_eq!(kept.of(generation), joined);
            }
        }
    }

    #[test]
    fn a_generation_that_only_went_on_is_one_span() {
        let grown: Vec<Grown> = (0..1000).map(|_| (1, None, 2, None)).collect();
        let kept = spans(&runs(&grown)).of(GenerationNumber::new(1));
        assert_eq!(kept.iter().map(|span| span.count).collect::<Vec<_>>(), [2000]);
    }

    #[test]
    fn counts_that_no_file_has_do_not_overflow() {
        let run = |start, first| Run { start, first, count: u64::MAX - 1, ..Run::default() };
        let first = run(0, EntryNumber::new(1));
        let mut kept = spans(&[first.clone(), run(first.end(), first.entries().end)]);
        kept.grow(&run(u64::MAX, EntryNumber::new(u64::MAX)));
        assert_eq!(
            kept.of(GenerationNumber::default()).iter().map(Span::end).max(),
            Some(u64::MAX)
        );
    }

    #[test]
    fn the_generation_with_most_spans_is_not_kept_and_never_comes_back() {
        let plain = |generation| (generation, None, 1, None);
        let apart = (0..300).map(|n| (2, Some(1000 - 2 * n), 1, None));
        let grown: Vec<Grown> =
            [plain(1)].into_iter().chain(apart).chain([plain(1), plain(2), plain(3)]).collect();
        let kept = spans(&runs(&grown));
        let of = |generation| kept.of(GenerationNumber::new(generation)).len();
        assert_eq!([of(1), of(2), of(3)], [1, 0, 1]);
    }
}
