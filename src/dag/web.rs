//! Webs: nodes and edges, sorted so that each node comes before its parents.

use std::collections::BinaryHeap;

use super::Few;

/// Nodes and the edges to their parents, without cycles.
#[derive(Debug)]
pub struct Web<N> {
    /// The nodes in ascending order.
    pub nodes: Vec<N>,
    /// The parents of each node, as indexes.
    pub parents: Vec<Few>,
    /// The number of children of each node.
    pub children: Vec<usize>,
    /// The indexes, each before those of its parents.
    pub order: Vec<usize>,
}

impl<N: Copy + Ord> Web<N> {
    /// Builds a web from nodes and from edges of child and parent. An edge that closes a cycle is removed.
    pub fn new(mut nodes: Vec<N>, mut edges: Vec<(N, N)>) -> Self {
        nodes.sort_unstable();
        nodes.dedup();
        edges.sort_unstable();
        edges.dedup();
        let mut web = Self {
            parents: vec![Few::default(); nodes.len()],
            children: vec![0; nodes.len()],
            order: Vec::with_capacity(nodes.len()),
            nodes,
        };
        for (child, parent) in edges {
            let index = |node| web.nodes.binary_search(&node).ok();
            if let (Some(child), Some(parent)) = (index(child), index(parent)) {
                web.parents[child].push(parent);
                web.children[parent] += 1;
            }
        }
        web.sort();
        web
    }

    /// Computes an order in which each node comes after all its children, newest first. Edges that close a cycle are removed.
    fn sort(&mut self) {
        let mut left = self.children.clone();
        let mut place = vec![None; self.nodes.len()];
        let mut ready: BinaryHeap<usize> =
            (0..left.len()).filter(|&index| left[index] == 0).collect();
        let mut stuck = (0..left.len()).rev();
        // If only cycles remain, the newest of their nodes comes next.
        while let Some(index) = ready.pop().or_else(|| stuck.find(|&index| place[index].is_none()))
        {
            if place[index].is_some() {
                continue;
            }
            place[index] = Some(self.order.len());
            self.order.push(index);
            for &parent in self.parents[index].iter() {
                left[parent] = left[parent].saturating_sub(1);
                if left[parent] == 0 {
                    ready.push(parent);
                }
            }
        }
        for (index, parents) in self.parents.iter_mut().enumerate() {
            let goes_back = |parent: usize| place[parent] <= place[index];
            for &parent in parents.iter().filter(|parent| goes_back(**parent)) {
                self.children[parent] -= 1;
            }
            if parents.iter().any(|parent| goes_back(*parent)) {
                *parents = parents.iter().copied().filter(|parent| !goes_back(*parent)).collect();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(nodes: &[u64], edges: &[(u64, u64)]) -> Vec<u64> {
        let web = Web::new(nodes.to_vec(), edges.to_vec());
        web.order.iter().map(|&index| web.nodes[index]).collect()
    }

    fn parents(web: &Web<u64>) -> Vec<Vec<usize>> {
        web.parents.iter().map(|parents| parents.to_vec()).collect()
    }

    #[test]
    fn children_come_before_their_parents_and_the_newest_first() {
        assert_eq!(order(&[1, 2, 3, 4], &[(2, 1), (3, 1), (4, 2)]), [4, 3, 2, 1]);
        // A replayed node has a greater number than those that follow it.
        assert_eq!(order(&[1, 2, 3, 9], &[(2, 1), (3, 2), (9, 1), (3, 9)]), [3, 9, 2, 1]);
    }

    #[test]
    fn a_cycle_between_generations_is_cut() {
        let web = Web::new(vec![1, 2, 3], vec![(2, 1), (1, 2), (3, 2)]);
        assert_eq!(web.order, [2, 1, 0]);
        assert_eq!(parents(&web), [vec![], vec![0], vec![1]]);
        assert_eq!(web.children, [1, 1, 0]);
    }

    #[test]
    fn a_cycle_alone_has_a_beginning() {
        let web = Web::new(vec![1, 2], vec![(2, 1), (1, 2)]);
        assert_eq!(web.order, [1, 0]);
        assert_eq!(parents(&web), [vec![], vec![0]]);
    }
}
