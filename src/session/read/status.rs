//! Whether entries are on the current path, and if not, why.

use std::{cell::OnceCell, collections::BTreeMap, rc::Rc};

use crate::{
    model::{CheckpointNumber, EntryNumber, EntrySet, Kind, Parent, Position},
    session::{
        Damages, SessionError, Stored, View,
        graph::replay::Replays,
        history::departures::{Left, departures},
        read::{checkpoints::Places, passage::step_of},
    },
    wire::Graph,
};

/// Where an entry is in its session.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stand {
    /// The text is on the current path, and is sent to the model.
    Current,
    /// The text is on the current path, and a compaction hides it from the model.
    Compacted,
    /// A truncation hides the text.
    Truncated,
    /// The text is on a branch other than the current one.
    Branch(#[serde(skip)] String),
    /// The text was added by an operation that was undone.
    Undone,
    /// The text was reverted by the agent, and is on no named branch.
    Left,
    /// The place is unknown because the session is damaged.
    Unknown,
}

/// Where an entry is, with its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stands {
    pub(crate) stand: Stand,
    /// The checkpoint before its turn, if it is on a branch.
    pub(crate) turn: Option<CheckpointNumber>,
    /// Its step within the turn, if requested and if it is on the current path.
    pub(crate) step: Option<usize>,
    /// Whether it belongs to a sub-agent in the session's own file.
    pub(crate) is_of_sub_agent: bool,
}

/// How precisely a place is wanted. Finding the step within a turn costs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Turn,
    Step,
}

/// Returns where each of these entries is.
pub(crate) fn stands(
    session: &Stored<'_>,
    entries: &[EntryNumber],
    precision: Precision,
) -> Result<Vec<Stands>, SessionError> {
    let asked: EntrySet = entries.iter().copied().collect();
    let mut found = Finding::new(session)?;
    let mut left = asked.iter().collect::<Vec<_>>();
    if session.state.position().is_some() {
        found.current(&mut left)?;
    }
    for (name, position) in &session.state.branches {
        if !left.is_empty() && name != session.state.current() {
            found.branch(name, *position, &mut left)?;
        }
    }
    for entry in left {
        let is_undone = found.is_undone(entry)?;
        let record = found.view.record(entry)?;
        // A record without a parent, such as a title, belongs to every path.
        let is_of_all = record.kind == Kind::Meta && record.parent == Parent::Root;
        let stand = match is_undone {
            true => Stand::Undone,
            false if is_of_all => Stand::Current,
            false => Stand::Left,
        };
        found.known.insert(entry, (stand, None));
    }
    found.answer(entries, precision)
}

/// The first entry of a turn, and the entry before it on the path.
type Turn = (EntryNumber, Option<EntryNumber>);

/// What was found while walking back on a path.
struct Met {
    /// The part of the path that was read, and the set of its entries.
    path: Vec<EntryNumber>,
    on: EntrySet,
    /// The turn of each wanted entry.
    turns: BTreeMap<EntryNumber, Turn>,
    /// The wanted entries before a boundary or a summary.
    passed: EntrySet,
}

/// How many entries are read beyond the wanted ones, to find the beginning of their turn.
const LOOKED: usize = 64;
/// The factor for reading more if that was not enough.
const MORE: usize = 4;

/// The state of one lookup.
struct Finding<'a> {
    session: &'a Stored<'a>,
    replays: Replays,
    view: View<'a>,
    /// How the agent left the files that it set aside; loaded on first use.
    departures: OnceCell<Rc<[Left]>>,
    /// The end of the current path, with the turns of the entries found on it.
    path: Vec<EntryNumber>,
    /// Where each entry is, and its turn.
    known: BTreeMap<EntryNumber, (Stand, Option<Turn>)>,
}

impl<'a> Finding<'a> {
    fn new(session: &'a Stored<'a>) -> Result<Self, SessionError> {
        let replays = Replays::of(session)?;
        let view = session.view(session.state.position().unwrap_or_default());
        let view = view.gathering(&Damages::gathered());
        let (departures, path, known) = (OnceCell::new(), Vec::new(), BTreeMap::new());
        Ok(Self { session, replays, view, departures, path, known })
    }

    /// Finds the entries on the current path, or replaced by one on it.
    fn current(&mut self, left: &mut Vec<EntryNumber>) -> Result<(), SessionError> {
        let met = self.meet(&self.view, left)?;
        // Only entries before a boundary or a summary may be no longer sent.
        let sent: EntrySet = if met.passed.is_empty() {
            EntrySet::default()
        } else {
            self.view.sending()?.sent.into_iter().collect()
        };
        left.retain(|&entry| {
            let over = self.replays.last(entry, |entry| met.on.contains(entry));
            let stand = match met.on.contains(entry) {
                true if met.passed.contains(entry) && !sent.contains(entry) => Stand::Compacted,
                true => Stand::Current,
                false if over != entry => Stand::Truncated,
                false => return true,
            };
            let turn = met.turns.get(&entry).or(met.turns.get(&over)).copied();
            self.known.insert(entry, (stand, turn));
            false
        });
        self.path = met.path;
        self.above(met.on, &Stand::Compacted, left)
    }

    /// Finds the entries on another branch.
    fn branch(
        &mut self,
        name: &str,
        position: Position,
        left: &mut Vec<EntryNumber>,
    ) -> Result<(), SessionError> {
        let view = self.session.view(position);
        let stand = Stand::Branch(name.to_owned());
        let met = self.meet(&view.gathering(&self.view.damages), left)?;
        self.settle(&met, &stand, left);
        self.above(met.on, &stand, left)
    }

    /// Finds the entries before the beginning of a path: a boundary at the beginning of a file follows the end of the file it
    /// replaces.
    fn above(
        &mut self,
        mut on: EntrySet,
        stand: &Stand,
        left: &mut Vec<EntryNumber>,
    ) -> Result<(), SessionError> {
        for file in self.departures(left)?.iter().rev() {
            if left.is_empty() || !file.next.is_some_and(|next| on.contains(next)) {
                continue;
            }
            let view = self.session.view(file.at);
            let met = self.meet(&view.gathering(&self.view.damages), left)?;
            self.settle(&met, stand, left);
            on.extend(met.on.iter());
        }
        Ok(())
    }

    /// Returns how the agent left the files that it set aside, or nothing if no entries are left to find.
    fn departures(&self, left: &[EntryNumber]) -> Result<Rc<[Left]>, SessionError> {
        if left.is_empty() {
            return Ok(Rc::default());
        }
        if let Some(known) = self.departures.get() {
            return Ok(known.clone());
        }
        let found = departures(self.session, &self.view.damages)?;
        Ok(self.departures.get_or_init(|| found.into()).clone())
    }

    /// Records the entries found and removes them from `left`.
    fn settle(&mut self, met: &Met, stand: &Stand, left: &mut Vec<EntryNumber>) {
        left.retain(|entry| {
            let is_met = met.on.contains(*entry);
            if is_met {
                self.known.insert(*entry, (stand.clone(), met.turns.get(entry).copied()));
            }
            !is_met
        });
    }

    /// Returns how much of a path to read for these entries: if the session only grew, the oldest is as far from the end of the
    /// path as from the newest entry.
    fn behind(&self, wanted: &[EntryNumber]) -> usize {
        let oldest = wanted.iter().min().copied().unwrap_or_default();
        let behind = self.session.state.next_entry().since(oldest);
        usize::try_from(behind).unwrap_or(usize::MAX).saturating_add(LOOKED)
    }

    /// Walks back on a path until all of these entries, or their replacements, are found with their turns; to the beginning if
    /// one is not on it.
    fn meet(&self, view: &View<'_>, wanted: &[EntryNumber]) -> Result<Met, SessionError> {
        let mut limit = self.behind(wanted);
        loop {
            let path = view.path(limit)?.entries;
            let is_all = path.len() < limit;
            if let Some(met) = self.meet_on(view, path, wanted, is_all)? {
                return Ok(met);
            }
            limit = limit.saturating_mul(MORE);
        }
    }

    /// Returns what was found on the end of a path, or nothing if more of it is needed.
    fn meet_on(
        &self,
        view: &View<'_>,
        path: Vec<EntryNumber>,
        wanted: &[EntryNumber],
        is_all: bool,
    ) -> Result<Option<Met>, SessionError> {
        let on: EntrySet = path.iter().copied().collect();
        let over = |entry: &EntryNumber| {
            let is_on = on.contains(*entry);
            if is_on { *entry } else { self.replays.last(*entry, |entry| on.contains(entry)) }
        };
        let overs: EntrySet = wanted.iter().map(over).collect();
        let is_met = overs.iter().all(|entry| on.contains(entry));
        if !is_all && !is_met {
            return Ok(None);
        }
        let mut met = Met { path, on, turns: BTreeMap::new(), passed: EntrySet::default() };
        let (mut waiting, mut is_passed) = (Vec::new(), false);
        let mut left = overs.iter().filter(|entry| met.on.contains(*entry)).count();
        for (at, &entry) in met.path.iter().enumerate().rev() {
            if overs.contains(entry) {
                left -= 1;
                waiting.push(entry);
                if is_passed {
                    met.passed.insert(entry);
                }
            }
            let kind = view.record(entry)?.kind;
            if kind == Kind::User && !waiting.is_empty() {
                let before = at.checked_sub(1).and_then(|at| met.path.get(at)).copied();
                if before.is_none() && !is_all {
                    return Ok(None);
                }
                met.turns.extend(waiting.drain(..).map(|part| (part, (entry, before))));
            }
            if left == 0 && waiting.is_empty() {
                return Ok(Some(met));
            }
            is_passed |= matches!(kind, Kind::Boundary | Kind::Summary);
        }
        Ok(is_all.then_some(met))
    }

    /// Returns true if the operation that added an entry was undone.
    fn is_undone(&self, entry: EntryNumber) -> Result<bool, SessionError> {
        let by = self.session.added_by(entry)?;
        Ok(by.is_some_and(|by| self.session.state.undone().contains(&by.n)))
    }

    fn answer(
        self,
        entries: &[EntryNumber],
        precision: Precision,
    ) -> Result<Vec<Stands>, SessionError> {
        let turns = self.known.values().filter_map(|(_, turn)| *turn);
        let first =
            turns.map(|(turn, before)| before.map_or(turn, |before| before.min(turn))).min();
        let places = first.map(|first| Places::since(self.session, first));
        let places = places.transpose()?;
        let mut answer = Vec::with_capacity(entries.len());
        for entry in entries {
            let (stand, turn) = self.known.get(entry).cloned().unwrap_or((Stand::Left, None));
            let step = match (&places, turn) {
                (Some(turns), Some(_)) if precision == Precision::Step => {
                    step_of(&self.view, self.session, turns, &self.path, *entry)?
                }
                _ => None,
            };
            let turn = match (&places, turn) {
                (Some(places), Some((turn, above))) => {
                    let before = places.before(&self.view, turn)?.map(|given| given.n);
                    // A checkpoint set there before the turn was written comes before it too.
                    let put = above.and_then(|above| places.behind(above).last());
                    before.or(put.map(|checkpoint| checkpoint.n))
                }
                _ => None,
            };
            let is_of_sub_agent = self.session.format.is_of_sub_agent(&self.view.record(*entry)?);
            answer.push(Stands { stand, turn, step, is_of_sub_agent });
        }
        Ok(answer)
    }
}
