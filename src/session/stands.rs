//! Where entries stand: on the current path, or why not.

use std::collections::BTreeMap;

use crate::{
    model::{CheckpointNumber, EntryNumber, EntrySet, Kind, OperationNumber, Position, State},
    session::{Damages, Session, SessionError, View, checkpoints::Places, replay::Replays},
    store::Store,
    wire::Graph,
};

/// Where an entry stands in its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// On the current path, and the model is sent it.
    Current,
    /// On the current path, above a compaction: the model is no longer sent it.
    Compacted,
    /// Beneath an entry of the current path that was cut.
    Truncated,
    /// On a branch that is not the current one.
    Branch(String),
    /// On no branch, since the operation that brought it was undone.
    Undone,
    /// On no branch: the agent left it behind.
    Left,
}

impl Stand {
    /// Returns the word used in every output.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Compacted => "compacted",
            Self::Truncated => "truncated",
            Self::Branch(_) => "branch",
            Self::Undone => "undone",
            Self::Left => "left",
        }
    }
}

/// An entry's standing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stands {
    pub(crate) stand: Stand,
    /// The checkpoint before the turn of which it is a part, if it is on a branch.
    pub(crate) turn: Option<CheckpointNumber>,
    /// Whether it is of a sub-agent that works in the session's own file.
    pub(crate) is_of_sub_agent: bool,
}

/// Returns where each of these entries stands.
pub(crate) fn stands(
    store: &dyn Store,
    session: &Session,
    entries: &[EntryNumber],
) -> Result<Vec<Stands>, SessionError> {
    let state = store.state(session.key)?;
    let asked: EntrySet = entries.iter().copied().collect();
    let mut found = Finding::new(store, session, &state)?;
    let mut left = asked.iter().collect::<Vec<_>>();
    if state.position().is_some() {
        found.current(&mut left)?;
    }
    for (name, position) in &state.branches {
        if !left.is_empty() && name != state.current() {
            found.branch(name, *position, &mut left)?;
        }
    }
    for entry in left {
        let is_undone = found.is_undone(entry)?;
        let stand = if is_undone { Stand::Undone } else { Stand::Left };
        found.known.insert(entry, (stand, None));
    }
    found.answer(entries)
}

/// The first entry of a turn, and the entry before it on the path.
type Turn = (EntryNumber, Option<EntryNumber>);

/// The work on a question.
struct Finding<'a> {
    store: &'a dyn Store,
    session: &'a Session,
    state: &'a State,
    replays: Replays,
    view: View<'a>,
    /// Of each entry where it stands, and the turn of which it is a part.
    known: BTreeMap<EntryNumber, (Stand, Option<Turn>)>,
}

impl<'a> Finding<'a> {
    fn new(
        store: &'a dyn Store,
        session: &'a Session,
        state: &'a State,
    ) -> Result<Self, SessionError> {
        let replays = Replays::of(store, session)?;
        let position = state.position().unwrap_or_default();
        let view = View::new(store, session, position, state.growth().cloned());
        let view = view.gathering(&Damages::gathered());
        Ok(Self { store, session, state, replays, view, known: BTreeMap::new() })
    }

    /// Finds those that stand on the current path, or beneath it.
    fn current(&mut self, left: &mut Vec<EntryNumber>) -> Result<(), SessionError> {
        let sending = self.view.sending()?;
        let sent: EntrySet = sending.sent.iter().copied().collect();
        let is_near = |entry: &EntryNumber| sent.contains(*entry);
        let path = if sending.is_all || left.iter().all(is_near) {
            sending.path
        } else {
            self.view.path(usize::MAX)?.entries
        };
        let on: EntrySet = path.iter().copied().collect();
        let mut is_above = false;
        let mut above = EntrySet::default();
        for &entry in path.iter().rev() {
            if is_above && !sent.contains(entry) {
                above.insert(entry);
            }
            is_above |= matches!(self.view.record(entry)?.kind, Kind::Boundary | Kind::Summary);
        }
        let turns = self.turns(&path, left)?;
        left.retain(|&entry| {
            let over = self.replays.last(entry, |entry| on.contains(entry));
            let stand = match on.contains(entry) {
                true if above.contains(entry) => Stand::Compacted,
                true => Stand::Current,
                false if over != entry => Stand::Truncated,
                false => return true,
            };
            let turn = turns.get(&entry).or(turns.get(&over)).copied();
            self.known.insert(entry, (stand, turn));
            false
        });
        Ok(())
    }

    /// Finds those that stand on another branch.
    fn branch(
        &mut self,
        name: &str,
        position: Position,
        left: &mut Vec<EntryNumber>,
    ) -> Result<(), SessionError> {
        let view = View::new(self.store, self.session, position, None);
        let path = view.gathering(self.view.damages()).path(usize::MAX)?.entries;
        let on: EntrySet = path.iter().copied().collect();
        let turns = self.turns(&path, left)?;
        left.retain(|entry| {
            if on.contains(*entry) {
                let stand = Stand::Branch(name.to_owned());
                self.known.insert(*entry, (stand, turns.get(entry).copied()));
            }
            !on.contains(*entry)
        });
        Ok(())
    }

    /// Returns of these entries, and of those that were put over them, the turn of which each is a part on a path.
    fn turns(
        &self,
        path: &[EntryNumber],
        wanted: &[EntryNumber],
    ) -> Result<BTreeMap<EntryNumber, Turn>, SessionError> {
        let over = wanted.iter().map(|entry| self.replays.last(*entry, |_| true));
        let wanted: EntrySet = wanted.iter().copied().chain(over).collect();
        let (mut turns, mut waiting) = (BTreeMap::new(), Vec::new());
        for (at, &entry) in path.iter().enumerate().rev() {
            waiting.extend(wanted.contains(entry).then_some(entry));
            if !waiting.is_empty() && self.view.record(entry)?.kind == Kind::User {
                let before = at.checked_sub(1).and_then(|at| path.get(at)).copied();
                turns.extend(waiting.drain(..).map(|part| (part, (entry, before))));
            }
        }
        Ok(turns)
    }

    /// Returns whether the operation that brought an entry was undone.
    fn is_undone(&self, entry: EntryNumber) -> Result<bool, SessionError> {
        let undone = self.state.undone();
        let (mut low, mut high) = (1, self.state.operations());
        // Entries rise with the operations that brought them.
        while low < high {
            let middle = low.midpoint(high + 1);
            let n = OperationNumber::new(middle);
            let at = self.store.operations(self.session.key, n.alone())?.pop();
            match at {
                Some(at) if at.first <= entry => low = middle,
                _ => high = middle - 1,
            }
        }
        Ok(undone.contains(&OperationNumber::new(low)))
    }

    fn answer(self, entries: &[EntryNumber]) -> Result<Vec<Stands>, SessionError> {
        let turns = self.known.values().filter_map(|(_, turn)| *turn);
        let first =
            turns.map(|(turn, before)| before.map_or(turn, |before| before.min(turn))).min();
        let places = first.map(|first| Places::since(self.store, self.session, first));
        let places = places.transpose()?;
        let mut answer = Vec::with_capacity(entries.len());
        for entry in entries {
            let (stand, turn) = self.known.get(entry).cloned().unwrap_or((Stand::Left, None));
            let turn = match (&places, turn) {
                (Some(places), Some((turn, above))) => {
                    let before = places.before(&self.view, turn)?.map(|given| given.n);
                    // A checkpoint that was put there before the turn was said stands before it too.
                    let put = above.and_then(|above| places.behind(above).last());
                    before.or(put.map(|checkpoint| checkpoint.n))
                }
                _ => None,
            };
            let is_of_sub_agent = self.session.format.is_of_sub_agent(&self.view.record(*entry)?);
            answer.push(Stands { stand, turn, is_of_sub_agent });
        }
        Ok(answer)
    }
}
