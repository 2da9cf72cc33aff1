//! Places: the place of each entry in a generation, computed from its spans.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    model::{EntryNumber, PlaceNumber, Span},
    wire::PhysicalLine,
};

/// The places of the entries of a generation.
pub(crate) struct Places {
    /// Non-overlapping ranges by first entry: the entry after the last, and the place of the first.
    last: BTreeMap<EntryNumber, (EntryNumber, PlaceNumber)>,
    /// The places that begin on the physical line of the one before, in order.
    glued: Vec<Range<PlaceNumber>>,
}

impl Places {
    pub(crate) fn of(spans: &[Span], line: PhysicalLine) -> Self {
        let mut last = BTreeMap::new();
        let mut glued = Vec::new();
        for span in spans.iter().rev() {
            let end = span.entries().end;
            // A later place in the file takes precedence; add only entries that have no place yet.
            let taken = last.range(..span.first).next_back();
            let mut from = taken.map_or(span.first, |(_, &(behind, _))| span.first.max(behind));
            let taken: Vec<(EntryNumber, EntryNumber)> = last
                .range(span.first..end)
                .map(|(&first, &(behind, _)): (&EntryNumber, &(EntryNumber, PlaceNumber))| {
                    (first, behind)
                })
                .collect();
            for (first, behind) in taken.into_iter().chain([(end, end)]) {
                if from < first {
                    last.insert(
                        from,
                        (first, PlaceNumber::new(span.start + from.since(span.first))),
                    );
                }
                from = from.max(behind);
            }
        }
        for span in spans {
            let mut place = PlaceNumber::new(span.start);
            for (count, separator) in &span.gaps.0 {
                if line.joins(separator) {
                    glued.push(place.max(PlaceNumber::new(1))..place.plus(*count));
                }
                place = place.plus(*count);
            }
        }
        Self { last, glued }
    }

    pub(crate) fn place(&self, entry: EntryNumber) -> Option<PlaceNumber> {
        let (first, (behind, place)) = self.last.range(..=entry).next_back()?;
        (entry < *behind).then(|| place.plus(entry.since(*first)))
    }

    /// Returns true if any entry begins on the physical line of the one before it.
    pub(crate) fn has_glued(&self) -> bool {
        !self.glued.is_empty()
    }

    pub(crate) fn is_glued(&self, place: PlaceNumber) -> bool {
        let after = self.glued.partition_point(|range| range.start <= place);
        after.checked_sub(1).and_then(|i| self.glued.get(i)).is_some_and(|at| at.contains(&place))
    }
}
