//! The course of a session: the entries of its current path, and the reverted branches at the places where they fork.
//!
//! ```text
//! path     u1 a1 u2 a2 ─┬─ u5 a5        fork   after a2: u3 a3 u4 a4
//!                       └─ u3 a3 u4 a4
//! ```
//!
//! Invariant: no entry is in two places, and a fork of a fork comes right after it, at the same place of the path.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    archive::At,
    model::{EntryNumber, EntrySet, Position},
    session::{
        Damaged, Damages, SessionError, SubAgent, Target, View, find_place,
        history::sub_agent,
        log,
        read::lines::{self, Line, Log},
    },
    verbs::{
        OpsError,
        look::drawing::{Detail, Drawing, drawing},
    },
    wire::Graph as _,
};

/// A session as it went.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// The entries of the path, oldest first.
    pub lines: Vec<Line>,
    /// The reverted branches, in the order of their places on the path.
    pub forks: Vec<Fork>,
    /// The sub-agents that work in the session's file, each with its conversation.
    pub sub_agents: Vec<(SubAgent, Vec<Line>)>,
    /// The damaged entries.
    pub damaged: Vec<Damaged>,
}

/// A reverted branch, from the fork on.
#[derive(Clone, Debug)]
pub struct Fork {
    /// The last entry of the path before it; `None` before the first.
    pub after: Option<EntryNumber>,
    /// Its names.
    pub branches: Vec<String>,
    /// Its entries, oldest first.
    pub lines: Vec<Line>,
}

/// Reads the course of a session, or of one of its branches, which then has no forks.
pub fn course(session: &At<'_>, branch: Option<&Target>) -> Result<Course, OpsError> {
    if let Some(target) = branch {
        let Log { lines, sub_agents, damaged, .. } = log(session, Some(target), usize::MAX)?;
        return Course { lines, damaged, ..Course::default() }.with_agents(session, sub_agents);
    }
    let damages = Damages::gathered();
    let Some(view) = lines::view(session, None) else { return Ok(Course::default()) };
    let view = view.gathering(&damages);
    let drawing = drawing(session, Detail::default())?;
    let split = split(&drawing, &session.state.branches)?;
    let reader = Reader { session, view: &view, drawing: &drawing };
    let lines = reader.read(&split.path)?;
    let mut forks = Vec::new();
    for (after, branches, entries) in split.forks {
        let lines = reader.read(&entries)?;
        if !lines.is_empty() {
            forks.push(Fork { after, branches, lines });
        }
    }
    let path: Vec<_> = lines.iter().filter_map(|line| Some((line.n, line.id?))).collect();
    let sub_agents = sub_agent::sub_agents(session, &view, &path)?;
    let mut damaged = drawing.damaged()?;
    for found in damages.met(session)? {
        if !damaged.contains(&found) {
            damaged.push(found);
        }
    }
    Course { lines, forks, sub_agents: Vec::new(), damaged }.with_agents(session, sub_agents)
}

impl Course {
    /// Reads the conversations of sub-agents.
    fn with_agents(mut self, session: &At<'_>, agents: Vec<SubAgent>) -> Result<Self, OpsError> {
        for agent in agents {
            let read = find_place(session, &agent.last.to_string());
            let read = read.and_then(|target| {
                let limit = usize::try_from(agent.entries).unwrap_or(usize::MAX);
                log(session, Some(&target), limit)
            });
            match read {
                Ok(log) => self.sub_agents.push((agent, log.lines)),
                // A sub-agent that cannot be read hides only itself.
                Err(SessionError::NoEntry(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self)
    }
}

/// A fork before its entries are read: the entry of the path before it, its branches, and its entries.
type Unread = (Option<EntryNumber>, Vec<String>, Vec<EntryNumber>);

/// The entries of a session, divided.
struct Split {
    path: Vec<EntryNumber>,
    forks: Vec<Unread>,
}

fn split(drawing: &Drawing<'_>, branches: &BTreeMap<String, Position>) -> Result<Split, OpsError> {
    let stretches = &drawing.stretches;
    let mut off = Vec::with_capacity(stretches.len());
    for outlined in drawing.outline() {
        off.push(outlined?.is_off);
    }
    let is_reverted = |n: usize| off.get(n) == Some(&true);
    let mut path = Vec::new();
    // How much of the path comes before each stretch's fork, the oldest stretch first.
    let mut places: BTreeMap<usize, usize> = BTreeMap::new();
    let mut continued = BTreeSet::new();
    for (n, stretch) in stretches.iter().enumerate().rev() {
        if !stretch.is_off {
            path.extend_from_slice(drawing.members_of(stretch));
            places.insert(n, path.len());
        } else if is_reverted(n) {
            let parent = stretch.parents.first();
            places.insert(n, parent.and_then(|parent| places.get(parent)).copied().unwrap_or(0));
            continued.extend(parent.copied().filter(|parent| is_reverted(*parent)));
        }
    }
    let mut heads: BTreeMap<EntryNumber, Vec<&String>> = BTreeMap::new();
    for (name, at) in branches.iter().filter(|(name, _)| !drawing.before.contains_key(*name)) {
        heads.entry(at.head.unwrap_or_default()).or_default().push(name);
    }
    let mut forks: Vec<(usize, Unread)> = Vec::new();
    let mut taken = BTreeSet::new();
    // The oldest ends first: a later one that shares its beginning is a fork of it.
    for end in (0..stretches.len()).rev().filter(|n| is_reverted(*n) && !continued.contains(n)) {
        let (mut chain, mut at) = (Vec::new(), Some(end));
        while let Some(n) = at.filter(|n| is_reverted(*n) && taken.insert(*n)) {
            chain.push(n);
            at = stretches.get(n).and_then(|stretch| stretch.parents.first()).copied();
        }
        let chain: Vec<_> = chain.into_iter().rev().filter_map(|n| stretches.get(n)).collect();
        let entries = chain.iter().flat_map(|one| drawing.members_of(one)).copied();
        let entries: Vec<EntryNumber> = entries.collect();
        let names = entries.iter().filter_map(|entry| heads.get(entry)).flatten().copied();
        let names = names.cloned();
        let place = places.get(&end).copied().unwrap_or(0);
        let after = place.checked_sub(1).and_then(|last| path.get(last)).copied();
        forks.push((place, (after, names.collect(), entries)));
    }
    forks.sort_by_key(|(place, _)| *place);
    Ok(Split { path, forks: forks.into_iter().map(|(_, fork)| fork).collect() })
}

/// Reads entries with the numbers of their turns.
struct Reader<'a> {
    session: &'a At<'a>,
    view: &'a View<'a>,
    drawing: &'a Drawing<'a>,
}

impl Reader<'_> {
    /// Reads those of the entries that are part of the session's own conversation.
    fn read(&self, entries: &[EntryNumber]) -> Result<Vec<Line>, OpsError> {
        let mut said = Vec::with_capacity(entries.len());
        let mut known = EntrySet::default();
        for &entry in entries {
            let record = self.view.record(entry)?;
            let is_own = !self.session.format.is_of_sub_agent(&record);
            if record.kind.is_conversation() && is_own && !known.contains(entry) {
                known.insert(entry);
                said.push(entry);
            }
        }
        let mut lines = lines::lines(self.session, self.view, &said)?;
        for line in &mut lines {
            line.checkpoint = self.drawing.before(line.n)?.map(|given| given.n);
        }
        Ok(lines)
    }
}
