//! The edges of a graph: from each entry of a path to the one before it.
//!
//! ```text
//! trunk     a b [B S] c d        a compaction keeps c and d, and moves them after its summary
//! another   a c b d e            the state before: e is a child of d, and no edge leads from b through c to a
//! ```
//!
//! Invariant: no edge of another path connects two entries of the trunk, and no path that leaves the trunk returns to it at or
//! before the place where it left. So other paths close no cycle with the trunk.

use std::collections::BTreeMap;

use crate::model::{EntryNumber, EntrySet};

/// Returns the edges of paths. The trunk, the whole path of the current branch, is one of them.
pub(crate) fn edges(
    trunk: &[EntryNumber],
    paths: &[Vec<EntryNumber>],
) -> Vec<(EntryNumber, EntryNumber)> {
    let on_trunk: EntrySet = trunk.iter().copied().collect();
    let mut edges: Vec<_> = pairs(trunk).map(|(above, entry)| (entry, above)).collect();
    let mut places = BTreeMap::new();
    for path in paths.iter().filter(|path| path.as_slice() != trunk) {
        if path.iter().filter(|entry| on_trunk.contains(**entry)).nth(1).is_some()
            && places.is_empty()
        {
            places = trunk.iter().copied().zip(0_usize..).collect();
        }
        let place = |entry| places.get(&entry).copied();
        // The last entry before this one that is on the trunk.
        let mut behind = None;
        for (above, entry) in pairs(path) {
            let is_above = on_trunk.contains(above);
            behind = if is_above { place(above) } else { behind };
            let goes_on = || behind.is_none_or(|behind| Some(behind) < place(entry));
            if !on_trunk.contains(entry) || (!is_above && goes_on()) {
                edges.push((entry, above));
            }
        }
    }
    edges
}

fn pairs(path: &[EntryNumber]) -> impl Iterator<Item = (EntryNumber, EntryNumber)> {
    path.iter().copied().zip(path.iter().copied().skip(1))
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test stops at the first surprise")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dag::Web;

    fn path(numbers: &[u64]) -> Vec<EntryNumber> {
        numbers.iter().copied().map(EntryNumber::new).collect()
    }

    fn check(trunk: &[u64], other: &[u64], more: &[(u64, u64)]) {
        let expected = trunk.windows(2).map(|pair| (pair[1], pair[0])).chain(more.iter().copied());
        let expected: Vec<_> =
            expected.map(|(n, m)| (EntryNumber::new(n), EntryNumber::new(m))).collect();
        let trunk = path(trunk);
        assert_eq!(edges(&trunk, &[path(other), trunk.clone()]), expected, "{other:?}");
    }

    #[test]
    fn what_goes_along_the_trunk_or_against_it_is_left_out() {
        check(&[1, 2, 8, 9, 3, 4], &[1, 3, 2, 4, 5], &[(5, 4)]);
        check(&[1, 2, 3, 4], &[1, 2, 8, 9, 3, 5], &[(8, 2), (9, 8), (3, 9), (5, 3)]);
        // A summary behind all of it that what it keeps is put behind.
        check(&[1, 2, 3, 4], &[1, 4, 8, 9, 2], &[(8, 4), (9, 8)]);
        check(&[], &[1, 2], &[(2, 1)]);
        check(&[1], &[3, 1, 2], &[(1, 3), (2, 1)]);
    }

    proptest! {
        #[test]
        fn they_close_no_cycle_with_the_trunk(
            trunk in Just((1..12).collect::<Vec<u64>>()).prop_shuffle(),
            other in Just((1..20).collect::<Vec<u64>>()).prop_shuffle(),
            length in 1..20_usize,
        ) {
            let (trunk, other) = (path(&trunk), path(&other[..length]));
            let edges = edges(&trunk, &[trunk.clone(), other.clone()]);
            let web = Web::new([trunk.clone(), other].concat(), edges.clone());
            let kept: usize = web.parents.iter().map(|parents| parents.iter().count()).sum();
            prop_assert_eq!(kept, edges.len());
            prop_assert!(trunk.windows(2).all(|pair| edges.contains(&(pair[1], pair[0]))));
        }
    }
}
