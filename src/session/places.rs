//! Places: where each entry stands in a generation, found from its runs.

use std::{collections::BTreeMap, ops::Range};

use crate::model::{EntryNumber, PlaceNumber, Run};

/// Where the entries of a generation stand, and how.
pub(super) struct Places {
    /// Stretches that do not overlap, by their first entry: the entry behind the last, and the place of the first.
    last: BTreeMap<EntryNumber, (EntryNumber, PlaceNumber)>,
    /// The places that begin on the physical line of the one before, in order.
    glued: Vec<Range<PlaceNumber>>,
}

impl Places {
    pub(super) fn of(runs: &[Run]) -> Self {
        let mut last = BTreeMap::new();
        let mut glued = Vec::new();
        for run in runs.iter().rev() {
            let end = run.entries().end;
            // The later place in the file counts; only the part of the run that has none is added.
            let taken = last.range(..run.first).next_back();
            let mut from = taken.map_or(run.first, |(_, &(behind, _))| run.first.max(behind));
            let taken: Vec<(EntryNumber, EntryNumber)> = last
                .range(run.first..end)
                .map(|(&first, &(behind, _)): (&EntryNumber, &(EntryNumber, PlaceNumber))| {
                    (first, behind)
                })
                .collect();
            for (first, behind) in taken.into_iter().chain([(end, end)]) {
                if from < first {
                    last.insert(from, (first, PlaceNumber::new(run.start + from.since(run.first))));
                }
                from = from.max(behind);
            }
        }
        for run in runs {
            let mut place = PlaceNumber::new(run.start);
            for (count, separator) in &run.gaps.0 {
                if !separator.contains(&b'\n') {
                    glued.push(place.max(PlaceNumber::new(1))..place.plus(*count));
                }
                place = place.plus(*count);
            }
        }
        Self { last, glued }
    }

    pub(super) fn place(&self, entry: EntryNumber) -> Option<PlaceNumber> {
        let (first, (behind, place)) = self.last.range(..=entry).next_back()?;
        (entry < *behind).then(|| place.plus(entry.since(*first)))
    }

    /// Returns whether any entry begins on the physical line of the one before it.
    pub(super) fn has_glued(&self) -> bool {
        !self.glued.is_empty()
    }

    pub(super) fn is_glued(&self, place: PlaceNumber) -> bool {
        let after = self.glued.partition_point(|range| range.start <= place);
        after.checked_sub(1).and_then(|i| self.glued.get(i)).is_some_and(|at| at.contains(&place))
    }
}
