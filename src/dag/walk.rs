//! Walks along parents. A cycle is part of the result and never causes an endless loop.

use std::collections::BTreeSet;

/// The nodes from a start along its parents, beginning with the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain<N> {
    /// The nodes.
    pub nodes: Vec<N>,
    /// The node to which the last one leads back, if the walk found a cycle.
    pub cycle: Option<N>,
}

/// Follows single parents from `start` until there is none, for at most `limit` nodes.
///
/// Parents usually have smaller numbers, and every cycle has a step to a node that is not smaller, so only nodes before such
/// steps are remembered. After such a step the walk continues past the limit, because a cycle would change its result.
pub fn ancestors<N: Copy + Ord, E>(
    start: N,
    limit: usize,
    mut parent: impl FnMut(N) -> Result<Option<N>, E>,
) -> Result<Chain<N>, E> {
    let mut nodes = Vec::new();
    let mut rises = BTreeSet::new();
    let mut next = Some(start);
    while let Some(node) = next {
        if nodes.len() >= limit && rises.is_empty() {
            break;
        }
        nodes.push(node);
        next = parent(node)?;
        if next.is_some_and(|next| next >= node) && !rises.insert(node) {
            let first = nodes.iter().position(|&earlier| earlier == node).unwrap_or(0);
            nodes.truncate(nodes.len() - 1);
            let mut chain = close(nodes, first);
            chain.nodes.truncate(limit);
            return Ok(chain);
        }
    }
    nodes.truncate(limit);
    Ok(Chain { nodes, cycle: None })
}

/// Cuts a walk that went around a cycle once, so that each node occurs once.
fn close<N: Copy + Ord>(mut nodes: Vec<N>, first: usize) -> Chain<N> {
    let mut seen = BTreeSet::new();
    let again = nodes.iter().position(|node| !seen.insert(*node)).unwrap_or(nodes.len());
    let cycle = nodes.get(again).or(nodes.get(first)).copied();
    nodes.truncate(again);
    Chain { nodes, cycle }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn walk(parents: &[Option<usize>], start: usize) -> Chain<usize> {
        let parent = |node: usize| Ok::<_, Infallible>(parents[node]);
        ancestors(start, usize::MAX, parent).unwrap()
    }

    #[test]
    fn a_chain_ends_at_its_root() {
        let chain = walk(&[None, Some(0), Some(1)], 2);
        assert_eq!(chain, Chain { nodes: vec![2, 1, 0], cycle: None });
    }

    #[test]
    fn a_node_that_is_its_own_parent_ends_the_walk() {
        let chain = walk(&[Some(0), Some(0)], 1);
        assert_eq!(chain, Chain { nodes: vec![1, 0], cycle: Some(0) });
    }

    proptest! {
        #[test]
        fn a_limit_takes_the_first_nodes_of_the_walk(
            parents in proptest::collection::vec(proptest::option::of(0usize..12), 12),
            start in 0usize..12,
            limit in 0usize..14,
        ) {
            let parent = |node: usize| Ok::<_, Infallible>(parents[node]);
            let part = ancestors(start, limit, parent).unwrap();
            let whole = walk(&parents, start);
            prop_assert_eq!(&part.nodes[..], &whole.nodes[..limit.min(whole.nodes.len())]);
        }

        #[test]
        fn every_walk_ends_and_visits_no_node_twice(
            parents in proptest::collection::vec(proptest::option::of(0usize..12), 12),
            start in 0usize..12,
        ) {
            let chain = walk(&parents, start);
            let unique: BTreeSet<_> = chain.nodes.iter().collect();
            prop_assert_eq!(unique.len(), chain.nodes.len());
            for pair in chain.nodes.windows(2) {
                prop_assert_eq!(parents[pair[0]], Some(pair[1]));
            }
            let last = *chain.nodes.last().unwrap();
            prop_assert_eq!(parents[last], chain.cycle);
        }
    }
}
