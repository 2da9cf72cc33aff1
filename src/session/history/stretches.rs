//! Stretches: entries of a graph that are shown as one node, because no fork separates them.

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use crate::{
    dag::{Few, Web},
    model::{EntryNumber, EntrySet, Kind},
    session::{SessionError, View, graph::replay::Replays},
    wire::Graph,
};

/// Consecutive entries that are shown as one node. There may be a million of a single entry each, so the struct is kept as small
/// as the web's own data for an entry.
pub(crate) struct Stretch {
    /// The first entry that is part of the conversation, or else the first.
    pub(crate) said: EntryNumber,
    pub(crate) last: EntryNumber,
    pub(crate) entries: u32,
    pub(crate) cut: u32,
    /// How many of its entries match the pattern.
    pub(crate) found: u32,
    /// How many times the agent cleared older tool results in it.
    pub(crate) cleared: u32,
    pub(crate) parents: Few,
    pub(crate) is_leaf: bool,
    /// Whether it tells the model nothing.
    pub(crate) is_bare: bool,
    /// Whether it is neither on the path to the end of the current branch nor after it.
    pub(crate) is_off: bool,
    /// Its entries, as a range of [`Stretches::members`].
    pub(crate) members: Range<u32>,
}

/// The stretches of a graph.
pub(crate) struct Stretches {
    /// Newest first, each before its parents.
    pub(crate) all: Vec<Stretch>,
    /// The entries of all stretches, grouped by stretch.
    pub(crate) members: Vec<EntryNumber>,
}

/// Returns the stretches of a web. The entries after a turn are part of it. `plain` has the notes that an agent wrote by itself,
/// which begin no stretch.
pub(crate) fn stretches(
    web: Web<EntryNumber>,
    view: &View<'_>,
    replays: &Replays,
    found: &EntrySet,
    plain: &EntrySet,
    all: bool,
    ends: impl Fn(EntryNumber) -> bool,
) -> Result<Stretches, SessionError> {
    // The stretch of each entry; the oldest entries come first.
    let mut owner = vec![0; web.nodes.len()];
    let mut stretches: Vec<Stretch> = Vec::new();
    for &index in web.order.iter().rev() {
        let entry = web.nodes[index];
        let record = view.record(entry)?;
        let kind = record.kind;
        let cleared = u32::from(view.format.clears(&record));
        let is_plain = plain.contains(entry);
        let begins = all || !is_plain && matches!(kind, Kind::User | Kind::Boundary | Kind::Note);
        let is_bare = !all && (is_plain || !kind.is_talk());
        // A record outside of the conversation after an end joins its stretch, but does not become the end of it.
        let trails = !kind.is_talk() && !ends(entry);
        let before = match *web.parents[index] {
            [parent] if !begins && web.children[parent] == 1 => {
                Some(parent).filter(|parent| trails || !ends(stretches[owner[*parent]].last))
            }
            _ => None,
        };
        owner[index] = before.map_or(stretches.len(), |parent| owner[parent]);
        let is_leaf = web.children[index] == 0;
        if let Some(stretch) = stretches.get_mut(owner[index]) {
            if !ends(stretch.last) {
                stretch.last = entry;
            }
            stretch.is_leaf = is_leaf;
            stretch.entries += 1;
            stretch.is_bare &= is_bare;
            stretch.cut += u32::from(replays.cut.contains(&entry));
            stretch.found += u32::from(found.contains(entry));
            stretch.cleared += cleared;
            if kind.is_talk() && !view.record(stretch.said)?.kind.is_talk() {
                stretch.said = entry;
            }
            continue;
        }
        let parents = web.parents[index].iter().map(|&parent| owner[parent]).collect();
        stretches.push(Stretch {
            said: entry,
            last: entry,
            entries: 1,
            cut: u32::from(replays.cut.contains(&entry)),
            found: u32::from(found.contains(entry)),
            cleared,
            parents,
            is_leaf,
            is_bare,
            is_off: false,
            members: 0..0,
        });
    }
    fold_bare(&mut stretches, &mut owner, &ends);
    // A stretch is sorted by its last entry, so the newest end is on top.
    let mut place = vec![FOLDED; stretches.len()];
    let mut taken = 0;
    for &index in &web.order {
        if place[owner[index]] == FOLDED {
            place[owner[index]] = taken;
            taken += 1;
        }
    }
    let members = members(&web, &owner, &mut stretches);
    drop((web, owner));
    for stretch in &mut stretches {
        let mut parents: Vec<usize> = stretch.parents.iter().map(|&parent| place[parent]).collect();
        parents.retain(|parent| *parent != FOLDED);
        parents.sort_unstable();
        parents.dedup();
        stretch.parents = parents.into_iter().collect();
    }
    let mut places = place.iter();
    stretches.retain(|_| places.next().is_some_and(|place| *place != FOLDED));
    place.retain(|place| *place != FOLDED);
    permute(&mut stretches, &mut place);
    Ok(Stretches { all: stretches, members })
}

/// Groups the entries of a web by stretch, oldest first, and sets each stretch's range.
fn members(web: &Web<EntryNumber>, owner: &[usize], stretches: &mut [Stretch]) -> Vec<EntryNumber> {
    for owner in owner {
        stretches[*owner].members.end += 1;
    }
    let mut taken = 0;
    for stretch in stretches.iter_mut() {
        let count = stretch.members.end;
        stretch.members = taken..taken;
        taken += count;
    }
    let mut members = vec![EntryNumber::FIRST; owner.len()];
    for &index in web.order.iter().rev() {
        let end = &mut stretches[owner[index]].members.end;
        members[*end as usize] = web.nodes[index];
        *end += 1;
    }
    members
}

/// The order of stretches: those that were not reverted first.
const KEPT: u8 = 0;
const LATER: u8 = 1;
const OTHER: u8 = 2;

/// Moves the stretches on the path to `head`, and the rest of its turn, before those on other branches and of later turns.
/// Returns the new index of `head`. Each stretch stays before its parents.
pub(crate) fn path_first(
    stretches: &mut [Stretch],
    head: usize,
    begins_turn: impl Fn(&Stretch) -> bool,
) -> usize {
    let mut children = vec![0_u32; stretches.len()];
    for &parent in stretches.iter().flat_map(|stretch| stretch.parents.iter()) {
        children[parent] += 1;
    }
    // Rank: the head's path and the rest of its turn; later turns after it; the others.
    let mut rank = vec![OTHER; stretches.len()];
    rank[head] = KEPT;
    for n in (0..head).rev() {
        let above = stretches[n].parents.iter().map(|parent| rank[*parent]).min();
        rank[n] = match above {
            Some(KEPT) if !begins_turn(&stretches[n]) => KEPT,
            Some(KEPT | LATER) => LATER,
            _ => OTHER,
        };
    }
    let mut at = Some(head);
    while let Some(on) = at {
        rank[on] = KEPT;
        at = stretches[on].parents.first().copied();
    }
    let free = (0..stretches.len()).filter(|n| children[*n] == 0);
    let mut next: BinaryHeap<_> = free.map(|n| Reverse((rank[n], n))).collect();
    let mut place = vec![0; stretches.len()];
    let mut taken = 0;
    while let Some(Reverse((_, n))) = next.pop() {
        place[n] = taken;
        taken += 1;
        for &parent in stretches[n].parents.iter() {
            children[parent] -= 1;
            if children[parent] == 0 {
                next.push(Reverse((rank[parent], parent)));
            }
        }
    }
    for (n, stretch) in stretches.iter_mut().enumerate() {
        let mut parents: Vec<usize> = stretch.parents.iter().map(|&parent| place[parent]).collect();
        parents.sort_unstable();
        stretch.parents = parents.into_iter().collect();
        stretch.is_off = rank[n] != KEPT;
    }
    let head = place[head];
    permute(stretches, &mut place);
    head
}

/// Moves each stretch to its place.
fn permute(stretches: &mut [Stretch], place: &mut [usize]) {
    for n in 0..stretches.len() {
        while place[n] != n {
            let there = place[n];
            stretches.swap(n, there);
            place.swap(n, there);
        }
    }
}

/// The place of a stretch that was folded into another one.
const FOLDED: usize = usize::MAX;

/// Folds each bare stretch with a single child into that child. Each stretch must come after its parents.
fn fold_bare(stretches: &mut [Stretch], owner: &mut [usize], ends: &impl Fn(EntryNumber) -> bool) {
    let mut children = vec![0usize; stretches.len()];
    for &parent in stretches.iter().flat_map(|stretch| stretch.parents.iter()) {
        children[parent] += 1;
    }
    let mut into: Vec<usize> = (0..stretches.len()).collect();
    for n in 0..stretches.len() {
        let mut parents = Vec::new();
        for parent in std::mem::take(&mut stretches[n].parents).iter().copied() {
            let folded = &mut stretches[parent];
            if children[parent] == 1 && folded.is_bare && !ends(folded.last) {
                let (entries, cleared, found) = (folded.entries, folded.cleared, folded.found);
                parents.extend_from_slice(&std::mem::take(&mut folded.parents));
                stretches[n].entries += entries;
                stretches[n].cleared += cleared;
                stretches[n].found += found;
                into[parent] = n;
            } else {
                parents.push(parent);
            }
        }
        stretches[n].parents = parents.into_iter().collect();
    }
    // Resolve chains: a folded stretch goes where its target goes.
    for n in (0..into.len()).rev() {
        into[n] = into[into[n]];
    }
    for owner in owner {
        *owner = into[*owner];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A stretch of one entry.
    fn one(n: EntryNumber) -> Stretch {
        Stretch {
            said: n,
            last: n,
            entries: 1,
            cut: 0,
            found: 0,
            cleared: 0,
            parents: Few::default(),
            is_leaf: false,
            is_bare: false,
            is_off: false,
            members: 0..0,
        }
    }

    proptest! {
        #[test]
        fn a_bare_stretch_goes_into_the_only_one_that_follows_it(
            stretches in proptest::collection::vec(
                (proptest::collection::btree_set(0usize..40, 0..3), any::<bool>(), any::<bool>()),
                1..40,
            ),
        ) {
            let stretch = |(n, (parents, is_bare, _)): (usize, &(BTreeSet<usize>, bool, bool))| {
                let parents = parents.iter().copied().filter(|parent| *parent < n).collect();
                let n = EntryNumber::new(n as u64);
                let is_bare = *is_bare;
                Stretch { parents, is_bare, ..one(n) }
            };
            let before: Vec<Stretch> = stretches.iter().enumerate().map(stretch).collect();
            let mut after: Vec<Stretch> = stretches.iter().enumerate().map(stretch).collect();
            let mut owner: Vec<usize> = (0..before.len()).collect();
            let is_end = |n: usize| stretches[n].2;
            let ends = |n: EntryNumber| is_end(usize::try_from(n.get()).unwrap());
            fold_bare(&mut after, &mut owner, &ends);
            let children = |n: usize| -> Vec<usize> {
                (0..before.len()).filter(|child| before[*child].parents.contains(&n)).collect()
            };
            for (n, owner) in owner.iter().enumerate() {
                // Where it goes, one step after the other.
                let mut into = n;
                while let ([child], true, false) =
                    (children(into).as_slice(), before[into].is_bare, is_end(into))
                {
                    into = *child;
                }
                prop_assert_eq!(*owner, into);
            }
            for n in (0..before.len()).filter(|n| owner[*n] == *n) {
                let within: Vec<usize> = (0..before.len()).filter(|m| owner[*m] == n).collect();
                prop_assert_eq!(after[n].entries as usize, within.len());
                let above = within.iter().flat_map(|m| before[*m].parents.iter());
                let above: BTreeSet<usize> = above.copied().filter(|m| owner[*m] != n).collect();
                prop_assert_eq!(after[n].parents.iter().copied().collect::<BTreeSet<_>>(), above);
            }
        }
    }

    proptest! {
        #[test]
        fn a_path_comes_first_and_each_stretch_before_its_parents(
            above in proptest::collection::vec(proptest::collection::btree_set(1usize..9, 0..3), 1..40),
            head: proptest::sample::Index,
        ) {
            let all = above.len();
            let stretch = |(n, above): (usize, &BTreeSet<usize>)| {
                let parents = above.iter().map(|by| n + by).filter(|parent| *parent < all).collect();
                let n = EntryNumber::new(n as u64);
                Stretch { parents, ..one(n) }
            };
            let mut stretches: Vec<Stretch> = above.iter().enumerate().map(stretch).collect();
            let before = stretches.len();
            let named = |stretches: &[Stretch]| -> BTreeSet<(EntryNumber, BTreeSet<EntryNumber>)> {
                let above = |one: &Stretch| one.parents.iter().map(|n| stretches[*n].said).collect();
                stretches.iter().map(|one| (one.said, above(one))).collect()
            };
            let (head, edges) = (head.index(all), named(&stretches));
            let said = stretches[head].said;
            let begins_turn = |one: &Stretch| one.said.get().is_multiple_of(3);
            let now = path_first(&mut stretches, head, begins_turn);
            prop_assert_eq!((stretches.len(), stretches[now].said), (before, said));
            prop_assert_eq!(named(&stretches), edges);
            let is_behind = |(n, one): (usize, &Stretch)| one.parents.iter().all(|parent| *parent > n);
            prop_assert!(stretches.iter().enumerate().all(is_behind));
            // Only what follows it comes before the head, and only the rest of its turn was not reverted.
            let mut follows = BTreeSet::from([now]);
            for n in (0..now).rev() {
                prop_assert!(stretches[n].parents.iter().any(|parent| follows.contains(parent)));
                prop_assert!(stretches[n].is_off || !begins_turn(&stretches[n]));
                follows.insert(n);
            }
        }
    }

    #[test]
    fn many_bare_stretches_are_folded_in_one_pass() {
        // A root, and 100,000 bare stretches behind it that all lead to the last one.
        let count = 100_000;
        let bare = |parents: Vec<usize>| Stretch {
            parents: parents.into_iter().collect(),
            is_bare: true,
            ..one(EntryNumber::default())
        };
        let mut stretches = vec![bare(Vec::new())];
        stretches.extend((0..count).map(|_| bare(vec![0])));
        stretches.push(bare((1..=count).collect()));
        let mut owner: Vec<usize> = (0..stretches.len()).collect();
        fold_bare(&mut stretches, &mut owner, &|_| false);
        assert_eq!(stretches.last().unwrap().entries as usize, 1 + count);
        assert!(owner[1..].iter().all(|owner| *owner == count + 1));
    }
}
