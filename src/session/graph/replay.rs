//! Replays: generations that were rewritten with some entries replaced.
//!
//! ```text
//! generation 1   u1 R1 u2     a checkpoint before u2 was set here: head R1, horizon 2
//! generation 2   u1 r1 u2     it is mapped to the same place: head r1, horizon 2
//! ```
//!
//! Invariant: a replay never has more or fewer entries than its original, so places in both correspond.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::{Command, EntryNumber, OperationNumber, Position},
    session::{SessionError, Stored},
    wire::Graph,
};

/// The replays of a session that were not undone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replays {
    /// The entry that each entry replaces.
    origins: BTreeMap<EntryNumber, EntryNumber>,
    /// The entries that replace each entry; an entry rewritten on two branches has one on each.
    successors: BTreeMap<EntryNumber, Vec<EntryNumber>>,
    /// The entries that were cut.
    pub(crate) cut: BTreeSet<EntryNumber>,
    /// Each rewritten position and its new one, with the operation that rewrote it.
    moves: Vec<(OperationNumber, Position, Position)>,
}

impl Replays {
    /// Gathers the replays of a session. Without any, this costs one query.
    pub(crate) fn of(session: &Stored<'_>) -> Result<Self, SessionError> {
        let found = session.store.origins(session.key, EntryNumber::ALL)?;
        let mut replays = Self::default();
        if found.is_empty() {
            return Ok(replays);
        }
        let undone = session.state.undone();
        let standing: BTreeSet<OperationNumber> =
            found.iter().map(|(n, _)| *n).filter(|n| !undone.contains(n)).collect();
        for (n, origin) in found {
            replays.origins.insert(origin.entry, origin.origin);
            if standing.contains(&n) {
                replays.successors.entry(origin.origin).or_default().push(origin.entry);
                replays.cut.extend(origin.cut.is_some().then_some(origin.entry));
            }
        }
        for n in standing {
            let Some(operation) = session.store.operations(session.key, n.alone())?.pop() else {
                continue;
            };
            if matches!(operation.command, Command::Truncate { .. }) {
                let moves = operation.facts.moves.into_iter();
                replays.moves.extend(moves.filter_map(|step| Some((n, step.from?, step.to?))));
            }
        }
        Ok(replays)
    }

    /// Returns true if no entry replaces another.
    pub(crate) fn is_empty(&self) -> bool {
        self.origins.is_empty()
    }

    /// Returns the first entry that this one replaces, or itself.
    pub(crate) fn first(&self, entry: EntryNumber) -> EntryNumber {
        let mut at = entry;
        // A damaged store may have a circle of origins; the loop must still end.
        for _ in 0..=self.origins.len() {
            let Some(&origin) = self.origins.get(&at) else { break };
            at = origin;
        }
        at
    }

    /// Returns the lowest number among this entry, the later ones, and the entries that those replace: a rewritten entry has a
    /// higher number than its original.
    pub(crate) fn reach(&self, entry: EntryNumber) -> EntryNumber {
        let behind = self.origins.range(entry..).map(|(again, _)| self.first(*again));
        behind.fold(entry, EntryNumber::min)
    }

    /// Returns the last entry accepted by `among` that replaces this one, or this one.
    pub(crate) fn last(
        &self,
        entry: EntryNumber,
        among: impl Fn(EntryNumber) -> bool,
    ) -> EntryNumber {
        let over = |entry: EntryNumber| self.successors.get(&entry).into_iter().flatten().copied();
        let (mut waiting, mut met) = (over(entry).collect::<Vec<_>>(), BTreeSet::new());
        while let Some(at) = waiting.pop() {
            if met.insert(at) {
                waiting.extend(over(at));
            }
        }
        met.into_iter().rev().find(|at| among(*at)).unwrap_or(entry)
    }

    /// Returns the last entry accepted by `among` that is a version of the same record as this one, or this one.
    pub(crate) fn same(
        &self,
        entry: EntryNumber,
        among: impl Fn(EntryNumber) -> bool,
    ) -> EntryNumber {
        let last = self.last(self.first(entry), &among);
        if among(last) { last } else { entry }
    }

    /// Returns the operation that rewrote a position.
    pub(crate) fn operation(&self, at: Position) -> Option<OperationNumber> {
        self.moves.iter().find(|(_, from, _)| *from == at).map(|(n, ..)| *n)
    }

    /// Maps a place through the replays. A place in the current generation stays as it is.
    pub(crate) fn follow(
        &self,
        session: &Stored<'_>,
        place: Position,
    ) -> Result<Position, SessionError> {
        let current = session.state.position().map(|at| at.generation);
        let mut place = place;
        for (_, from, to) in &self.moves {
            if Some(place.generation) == current
                || place.generation != from.generation
                || to.generation == from.generation
                || place.horizon > from.horizon
            {
                continue;
            }
            let look = |at: &Position| session.view(*at);
            let at = place.head.map(|head| look(from).place(head)).transpose()?.flatten();
            let head = at.map(|at| look(to).at(at)).transpose()?.flatten();
            if place.head.is_some() != head.is_some() {
                continue;
            }
            place = Position { generation: to.generation, head, horizon: place.horizon };
        }
        Ok(place)
    }
}
