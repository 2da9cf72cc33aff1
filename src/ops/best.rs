//! The best of the newest texts. Where a text is costs most to find out, so that it is asked of those only that are
//! among the best if they stand on their current paths.
//!
//! ```text
//! asked      A B C       the best three, wherever they stand
//! known      A   C D     B was left: D, which was behind it, may be better
//! told       A C D
//! ```
//!
//! Invariant: what is told is what it would be if all were asked.

use std::{cmp::Reverse, collections::BTreeMap, ops::Range};

use crate::{
    model::Role,
    ops::{
        OpsError,
        hits::{Text, hits},
        members::Member,
        several::Readers,
    },
    report::{Hit, UnreadSession},
    search::{FoundLine, Weighed, off_the_path, ranks},
    session::Stand,
    store::Store,
};

/// A text, and the group of sessions in which it was found.
pub(super) type InGroup = (usize, Text);

/// What is known of where a text is.
enum Known {
    Nothing,
    /// It is nowhere any more.
    Nowhere,
    At(Hit),
}

/// Returns the best of these texts, up to the number wanted, the best one first.
pub(super) fn best(
    readers: &mut Readers<'_>,
    groups: &[Vec<Member>],
    texts: &[InGroup],
    wanted: usize,
    damaged: &mut Vec<UnreadSession>,
) -> Result<Vec<Hit>, OpsError> {
    let ranks = ranks(&texts.iter().map(|(_, text)| weighed(text)).collect::<Vec<_>>());
    let mut known: Vec<Known> = texts.iter().map(|_| Known::Nothing).collect();
    loop {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.retain(|n| !matches!(known.get(*n), Some(Known::Nowhere)));
        order.sort_by_key(|n| {
            let rank = ranks.get(*n).copied().unwrap_or(0);
            let rank = match known.get(*n) {
                Some(Known::At(hit)) if !is_current(hit) => off_the_path(rank),
                _ => rank,
            };
            Reverse((rank, texts.get(*n).and_then(|(_, text)| text.found.time)))
        });
        order.truncate(wanted);
        let is_unknown = |n: &&usize| matches!(known.get(**n), Some(Known::Nothing));
        let mut asked: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for n in order.iter().filter(is_unknown) {
            asked.entry(texts.get(*n).map_or(0, |(group, _)| *group)).or_default().push(*n);
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
                *known = hit.map_or(Known::Nowhere, Known::At);
            }
        }
    }
}

/// Returns these texts of groups as hits, each behind its number.
fn stand(
    readers: &mut Readers<'_>,
    groups: &[Vec<Member>],
    texts: &[InGroup],
    asked: &[(usize, Vec<usize>)],
    damaged: &mut Vec<UnreadSession>,
) -> Result<Vec<(usize, Option<Hit>)>, OpsError> {
    let members = |group: &usize| groups.get(*group).map(Vec::as_slice).unwrap_or_default();
    let is_grown = |group: &usize| members(group).iter().any(|member| member.is_grown);
    let look = |store: &dyn Store, (group, asked): &(usize, Vec<usize>)| {
        let mut damaged = Vec::new();
        let texts = asked.iter().filter_map(|n| texts.get(*n)).map(|(_, text)| text.clone());
        let hits = hits(store, members(group), texts.collect(), &mut damaged)?;
        Ok::<_, OpsError>((asked.clone(), hits, damaged))
    };
    let (grown, held): (Vec<_>, Vec<_>) = asked.iter().partition(|(group, _)| is_grown(group));
    let mut answers = Vec::with_capacity(asked.len());
    let work = |store: &dyn Store, n: usize| held.get(n).map(|asked| look(store, asked));
    readers.in_order(held.len(), &work, &mut |answer| answers.extend(answer));
    answers.extend(grown.into_iter().map(|asked| look(readers.laid(), asked)));
    let mut found = Vec::new();
    for answer in answers {
        let (asked, hits, named) = answer?;
        found.extend(asked.into_iter().zip(hits));
        damaged.extend(named);
    }
    Ok(found)
}

/// Returns whether the place at which a hit is shown is on the current path.
fn is_current(hit: &Hit) -> bool {
    let stand = hit.places.first().map(|place| &place.stand);
    matches!(stand, Some(Stand::Current | Stand::Compacted))
}

/// Returns what the rank of a text is made of.
fn weighed(text: &Text) -> Weighed<'_> {
    let found = &text.found;
    Weighed {
        lines: found.lines.iter().map(matched).collect(),
        role: found.role,
        is_of_tool: found.tool.is_some() || found.role == Role::Tool,
        time: found.time,
    }
}

/// Returns a line and where its matches are.
fn matched(line: &FoundLine) -> (&str, &[Range<usize>]) {
    (&line.line, &line.matches)
}
