//! Sub-agents that work in the file of their session, attached to the entries that called them.
//!
//! Invariant: no record outside the gaps between the shown entries is read, and none twice.

use std::{collections::BTreeMap, ops::Range};

use crate::{
    model::{EntryId, EntryNumber, PlaceNumber},
    session::{SessionError, Stored, View},
    wire::Graph,
};

/// A sub-agent that works in the file of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SubAgent {
    /// The entry that called the sub-agent.
    #[serde(rename = "entry")]
    pub caller: EntryId,
    /// The sub-agent's first entry.
    pub first: EntryId,
    /// The sub-agent's last entry; `log --at ID` shows its conversation.
    pub last: EntryId,
    /// How many entries the sub-agent has.
    pub entries: u64,
}

/// A sub-agent while its records are read.
struct Met {
    caller: EntryNumber,
    first: EntryNumber,
    last: EntryNumber,
    entries: u64,
}

/// Returns the sub-agents that these entries of a path called, in file order.
pub(crate) fn sub_agents(
    session: &Stored<'_>,
    view: &View<'_>,
    path: &[(EntryNumber, EntryId)],
) -> Result<Vec<SubAgent>, SessionError> {
    if !session.format.traits().has_sub_agents_within {
        return Ok(Vec::new());
    }
    let mut met: Vec<Met> = Vec::new();
    let mut of: BTreeMap<EntryNumber, usize> = BTreeMap::new();
    let mut gaps = Vec::with_capacity(path.len());
    for (n, (entry, _)) in path.iter().enumerate() {
        let Some(from) = view.place(*entry)? else { continue };
        let next = path.get(n + 1).map(|(next, _)| view.place(*next)).transpose()?.flatten();
        gaps.push(from.next()..next.unwrap_or(view.end()));
    }
    let mut callers = session.format.callers(view);
    for place in merged(gaps).into_iter().flat_map(PlaceNumber::each) {
        let Some(entry) = view.at(place)? else { continue };
        if !session.format.is_of_sub_agent(&view.record(entry)?) {
            continue;
        }
        let above = view.parent(entry)?.and_then(|parent| of.get(&parent).copied());
        if let Some(n) = above
            && let Some(one) = met.get_mut(n)
        {
            (one.last, one.entries) = (entry, one.entries + 1);
            of.insert(entry, n);
        } else if let Some(caller) = callers(entry)? {
            of.insert(entry, met.len());
            met.push(Met { caller, first: entry, last: entry, entries: 1 });
        }
    }
    let id = |entry| session.id_of(entry);
    let mut found = Vec::with_capacity(met.len());
    let ids: BTreeMap<EntryNumber, EntryId> =
        if met.is_empty() { BTreeMap::new() } else { path.iter().copied().collect() };
    for Met { caller, first, last, entries } in met {
        if let Some(&caller) = ids.get(&caller) {
            found.push(SubAgent { caller, first: id(first)?, last: id(last)?, entries });
        }
    }
    Ok(found)
}

/// Removes the overlaps of ranges and sorts them. A path that goes back in the file, to entries that a boundary keeps, crosses
/// some places twice.
fn merged(mut ranges: Vec<Range<PlaceNumber>>) -> Vec<Range<PlaceNumber>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut from = PlaceNumber::FIRST;
    for range in &mut ranges {
        range.start = range.start.max(from);
        from = from.max(range.end);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_a_path_crosses_again_are_visited_once() {
        let check = |ranges: &[(u64, u64)], expected: &[u64]| {
            let place = PlaceNumber::new;
            let ranges = ranges.iter().map(|(start, end)| place(*start)..place(*end)).collect();
            let visited: Vec<_> = merged(ranges).into_iter().flat_map(PlaceNumber::each).collect();
            assert_eq!(visited, expected);
        };
        check(&[(1, 3), (4, 6)], &[1, 2, 4, 5]);
        check(&[(2, 6), (8, 4), (4, 5), (6, 9), (1, 2)], &[1, 2, 3, 4, 5, 6, 7, 8]);
        check(&[(3, 9), (3, 4), (9, 3), (5, 7)], &[3, 4, 5, 6, 7, 8]);
        check(&[], &[]);
    }
}
