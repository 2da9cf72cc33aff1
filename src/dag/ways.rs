//! Paths from unreached nodes up to known nodes.

use std::collections::{BTreeMap, BTreeSet};

/// Returns a path for each node in `met`, last node first: the nearest known node above it, if there is one, then the node
/// itself.
///
/// The nodes in `met` are known at first, and unknown once they were processed, from the last to the first. So a way over unknown
/// nodes is walked once and holds for all nodes processed later. A way that ends in a cycle has no known node.
pub fn unreached<N: Copy + Ord, E>(
    met: &[N],
    is_known: impl Fn(N) -> bool,
    parent: impl Fn(N) -> Result<Option<N>, E>,
) -> Result<Vec<Vec<N>>, E> {
    let mut looked = BTreeSet::new();
    let mut above: BTreeMap<N, Option<N>> = BTreeMap::new();
    let mut paths = Vec::with_capacity(met.len());
    for &node in met.iter().rev() {
        looked.insert(node);
        let mut passed = BTreeSet::new();
        let mut at = Some(node);
        let is_known = |node: &N| is_known(*node) && !looked.contains(node);
        while let Some(unknown) = at.filter(|at| !is_known(at)) {
            at = match above.get(&unknown) {
                _ if !passed.insert(unknown) => None,
                Some(known) => *known,
                None => parent(unknown)?,
            };
        }
        above.extend(passed.into_iter().map(|unknown| (unknown, at)));
        paths.push(at.into_iter().chain([node]).collect());
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same by its definition: each looks for itself, and is known to those behind it.
    fn by_definition(met: &[u64], known: &BTreeSet<u64>, parents: &[Option<u64>]) -> Vec<Vec<u64>> {
        let parent = |entry: u64| parents[usize::try_from(entry).unwrap()];
        let mut known = known.clone();
        let mut paths = Vec::new();
        for &entry in met {
            let mut passed = BTreeSet::from([entry]);
            let mut above = parent(entry);
            while let Some(at) = above.filter(|at| !known.contains(at)) {
                above = if passed.insert(at) { parent(at) } else { None };
            }
            paths.push(above.into_iter().chain([entry]).collect());
            known.insert(entry);
        }
        paths
    }

    proptest! {
        #[test]
        fn what_no_path_comes_to_stands_behind_what_was_known(
            parents in proptest::collection::vec(proptest::option::of(0u64..24), 24),
            known in proptest::collection::btree_set(0u64..24, 0..8),
            met in Just((0..24).collect::<Vec<u64>>()).prop_shuffle(),
            skipped in proptest::collection::btree_set(0u64..24, 0..8),
        ) {
            let met: Vec<u64> = met
                .into_iter()
                .filter(|entry| !known.contains(entry) && !skipped.contains(entry))
                .collect();
            let all: BTreeSet<u64> = known.iter().chain(&met).copied().collect();
            let parent = |entry: u64| {
                Ok::<_, std::convert::Infallible>(parents[usize::try_from(entry).unwrap()])
            };
            let mut found = unreached(&met, |node| all.contains(&node), parent).unwrap();
            found.reverse();
            prop_assert_eq!(found, by_definition(&met, &known, &parents));
        }
    }

    #[test]
    fn ways_over_what_is_not_known_are_gone_once() {
        // Each comes before the one that it follows, so that the first one met has the longest way.
        let count = 200_000;
        let met: Vec<u64> = (0..count).collect();
        let asked = std::cell::Cell::new(0);
        let parent = |entry: u64| {
            asked.set(asked.get() + 1);
            Ok::<_, std::convert::Infallible>(Some(entry + 1))
        };
        let found = unreached(&met, |node| node <= count, parent).unwrap();
        assert_eq!(found.last(), Some(&vec![count, 0]));
        assert_eq!(asked.get(), count);
    }
}
