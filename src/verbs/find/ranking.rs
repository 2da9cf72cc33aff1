//! Selects the best of some texts. Finding the place of a text is the expensive part, so places are resolved only for texts
//! that would be among the best if they were on their current paths.
//!
//! ```text
//! asked      A B C       the best three, assuming that they are on the current path
//! known      A   C D     B was reverted, so D, which ranked after it, may be better
//! reported   A C D
//! ```
//!
//! Invariant: the result never differs from what resolving every place would give.

use std::{cmp::Reverse, collections::BTreeMap};

use crate::{
    model::EntryNumber,
    report::{Hit, UnreadSession},
    search::Rank,
    session::{Stand, read::status::Precision},
    store::Store,
    verbs::{
        OpsError,
        find::{
            hits::{Text, hits},
            members::Member,
            threads::Readers,
        },
    },
};

/// A text, the group of sessions that has it, and its rank if it is on the current path.
pub(crate) struct InGroup {
    pub(crate) group: usize,
    pub(crate) text: Text,
    pub(crate) rank: Rank,
}

impl InGroup {
    /// Returns the group, the member and the entry of its first place.
    pub(crate) fn at(&self) -> (usize, usize, EntryNumber) {
        let (member, entry) = self.text.at.first().copied().unwrap_or_default();
        (self.group, member, entry)
    }
}

/// Which texts are wanted.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// How many.
    pub(crate) hits: usize,
    /// How many from each session.
    pub(crate) of_session: usize,
    /// Whether to exclude those on the current path.
    pub(crate) off_the_path: bool,
}

/// What is known about the place of a text.
enum Known {
    Nothing,
    /// It no longer exists anywhere.
    Nowhere,
    At(Hit),
}

/// Returns the best texts by rank, best first.
pub(crate) fn best(
    readers: &mut Readers<'_>,
    groups: &[Vec<Member>],
    texts: &[InGroup],
    wanted: Wanted,
    damaged: &mut Vec<UnreadSession>,
) -> Result<Vec<Hit>, OpsError> {
    let mut known: Vec<Known> = texts.iter().map(|_| Known::Nothing).collect();
    loop {
        let mut order: Vec<(usize, Rank)> = (0..).zip(texts.iter().map(|text| text.rank)).collect();
        order.retain(|(n, _)| !matches!(known.get(*n), Some(Known::Nowhere)));
        for (n, rank) in &mut order {
            if matches!(known.get(*n), Some(Known::At(hit)) if !is_current(hit)) {
                *rank = rank.off_the_path();
            }
        }
        let time = |n: usize| Reverse(texts.get(n).and_then(|text| text.text.found.time));
        order.sort_by(|(n, one), (m, other)| {
            one.before(*other).then_with(|| time(*n).cmp(&time(*m)))
        });
        let mut of_session: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut order: Vec<usize> = order.into_iter().map(|(n, _)| n).collect();
        order.retain(|n| {
            let at = texts.get(*n).map_or((0, 0), |text| (text.at().0, text.at().1));
            let of_session = of_session.entry(at).or_default();
            *of_session += 1;
            *of_session <= wanted.of_session
        });
        order.truncate(wanted.hits);
        let is_unknown = |n: &&usize| matches!(known.get(**n), Some(Known::Nothing));
        let mut asked: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for n in order.iter().filter(is_unknown) {
            asked.entry(texts.get(*n).map_or(0, |text| text.group)).or_default().push(*n);
        }
        if asked.is_empty() {
            let hit =
                |n: usize| match known.get_mut(n).map(|at| std::mem::replace(at, Known::Nowhere)) {
                    Some(Known::At(hit)) => Some(hit),
                    _ => None,
                };
            return Ok(order.into_iter().filter_map(hit).collect());
        }
        let asked: Vec<(usize, Vec<usize>)> = asked.into_iter().collect();
        for (n, hit) in stand(readers, groups, texts, &asked, damaged)? {
            if let Some(known) = known.get_mut(n) {
                let is_meant = |hit: &Hit| !(wanted.off_the_path && is_current(hit));
                *known = hit.filter(is_meant).map_or(Known::Nowhere, Known::At);
            }
        }
    }
}

/// Resolves these texts to hits, paired with their index.
fn stand(
    readers: &mut Readers<'_>,
    groups: &[Vec<Member>],
    texts: &[InGroup],
    asked: &[(usize, Vec<usize>)],
    damaged: &mut Vec<UnreadSession>,
) -> Result<Vec<(usize, Option<Hit>)>, OpsError> {
    let look = |store: &dyn Store, (group, asked): &(usize, Vec<usize>)| {
        let members = groups.get(*group).map(Vec::as_slice).unwrap_or_default();
        let mut damaged = Vec::new();
        let texts = asked.iter().filter_map(|n| texts.get(*n)).map(|text| text.text.clone());
        let hits = hits(store, members, texts.collect(), Precision::Step, &mut damaged)?;
        Ok::<_, OpsError>((asked.clone(), hits, damaged))
    };
    let mut answers = Vec::with_capacity(asked.len());
    each_of(readers, groups, asked, &look, &mut |answer| answers.push(answer));
    let mut found = Vec::new();
    for answer in answers {
        let (asked, hits, named) = answer?;
        found.extend(asked.into_iter().zip(hits));
        damaged.extend(named);
    }
    Ok(found)
}

/// The index of a group of sessions, and what is asked of it.
pub(crate) type Asked<A> = (usize, A);

/// Runs work on groups of sessions in several threads. Groups with live files ahead of the store run on this thread alone,
/// which is the only one that sees the overlay.
pub(crate) fn each_of<A: Sync, T: Send>(
    readers: &mut Readers<'_>,
    groups: &[Vec<Member>],
    asked: &[Asked<A>],
    work: &(dyn Fn(&dyn Store, &Asked<A>) -> T + Sync),
    each: &mut dyn FnMut(T),
) {
    let is_grown =
        |asked: &&Asked<A>| groups.get(asked.0).into_iter().flatten().any(|member| member.is_grown);
    let (grown, held): (Vec<_>, Vec<_>) = asked.iter().partition(is_grown);
    let shared = |store: &dyn Store, n: usize| held.get(n).map(|asked| work(store, asked));
    readers.in_order(held.len(), &shared, &mut |answer| answer.into_iter().for_each(&mut *each));
    for asked in grown {
        each(work(readers.laid(), asked));
    }
}

/// Returns true if the place where a hit is shown is on the current path.
pub(crate) fn is_current(hit: &Hit) -> bool {
    let stand = hit.places.first().map(|place| &place.stand);
    matches!(stand, Some(Stand::Current | Stand::Compacted))
}
