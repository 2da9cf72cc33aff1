//! The pieces of a search, shared out to threads: ranges of entries, or candidates from the word index.

use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicBool},
};

use crate::{model::EntryNumber, search::Likely, verbs::find::members::Member};

/// How many entries form a piece, and how many if the first match is enough.
const PIECE: usize = 2048;
const FEW: usize = 16;

/// A part of the search in one session of a group.
pub(crate) struct Piece {
    pub(crate) group: usize,
    pub(crate) member: usize,
    pub(crate) part: Part,
    /// Set once the session has a match, if one match is enough.
    pub(crate) is_met: Option<Arc<AtomicBool>>,
}

/// How a part of a session is searched.
pub(crate) enum Part {
    /// Every entry in the range.
    Range(Range<EntryNumber>),
    /// The entries that may match according to the word index.
    Likely(Vec<EntryNumber>),
}

/// Returns the pieces of the search, group by group, each session from its newest entries on.
pub(crate) fn pieces(
    groups: &[Vec<Member>],
    mut likely: Option<Likely>,
    stops_at_first: bool,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for (group, members) in groups.iter().enumerate() {
        for (member, Member { session, held, indexed, .. }) in members.iter().enumerate() {
            let is_met = stops_at_first.then(Arc::<AtomicBool>::default);
            let from = if likely.is_some() { *indexed } else { EntryNumber::FIRST };
            let mut all =
                likely.as_mut().and_then(|all| all.remove(&session.key)).unwrap_or_default();
            all.retain(|entry| entry < indexed);
            let together = if stops_at_first { FEW } else { PIECE };
            // Every group has at least one piece, so that its end is noticed.
            let mut parts = vec![Part::Range(*held..*held)];
            parts.extend(all.chunks(together).map(|chunk| Part::Likely(chunk.to_vec())));
            parts.extend(EntryNumber::batches(from..*held, PIECE).map(Part::Range));
            let piece = |part| Piece { group, member, part, is_met: is_met.clone() };
            pieces.extend(parts.into_iter().rev().map(piece));
        }
    }
    pieces
}
