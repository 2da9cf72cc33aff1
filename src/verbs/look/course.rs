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
        Conversation, Damaged, Line, SessionError, SubAgent, Target, View, conversation,
        find_place, log, read::lines,
    },
    verbs::{
        OpsError,
        look::drawing::{Detail, Drawing, drawing},
    },
    wire::Graph as _,
};

/// A session as it went. The entries of its path are read on demand.
pub struct Course<'a> {
    session: &'a At<'a>,
    path: Option<Conversation<'a>>,
    /// The reverted branches, in the order of their places on the path.
    pub forks: Vec<Fork>,
    /// The damaged entries that were met at the beginning.
    damaged: Vec<Damaged>,
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

/// Returns the course of a session, or of one of its branches, which then has no forks.
pub fn course<'a>(session: &'a At<'a>, branch: Option<&Target>) -> Result<Course<'a>, OpsError> {
    let mut course = Course { session, path: None, forks: Vec::new(), damaged: Vec::new() };
    if branch.is_some() {
        course.path = conversation(session, branch, usize::MAX)?;
        return Ok(course);
    }
    let Some(view) = lines::view(session, None) else { return Ok(course) };
    let drawing = drawing(session, Detail::default())?;
    let split = split(&drawing, &session.state.branches)?;
    for (after, branches, entries) in split.forks {
        let lines = lines::lines(session, &view, &own(&view, &entries)?)?;
        if !lines.is_empty() {
            course.forks.push(Fork { after, branches, lines });
        }
    }
    course.damaged = drawing.damaged()?;
    let path = own(&view, &split.path)?;
    course.path = Some(lines::spoken(session, view, path, Vec::new())?);
    Ok(course)
}

impl Course<'_> {
    /// Passes on the entries of the path in batches, oldest first.
    pub fn each<E: From<SessionError>>(
        &self,
        each: impl FnMut(Vec<Line>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.path.as_ref().map_or(Ok(()), |path| path.each(each))
    }

    /// Reads some of these entries.
    pub fn read(&self, entries: &[EntryNumber]) -> Result<Vec<Line>, SessionError> {
        self.path.as_ref().map_or_else(|| Ok(Vec::new()), |path| path.read(entries))
    }

    /// Reads the sub-agents that entries of the path called in the session's file, each with its conversation.
    pub fn sub_agents(&self, lines: &[Line]) -> Result<Vec<(SubAgent, Vec<Line>)>, OpsError> {
        let Some(path) = &self.path else { return Ok(Vec::new()) };
        let mut read = Vec::new();
        for agent in path.sub_agents(lines)? {
            let lines = find_place(self.session, &agent.last.to_string()).and_then(|target| {
                let limit = usize::try_from(agent.entries).unwrap_or(usize::MAX);
                log(self.session, Some(&target), limit)
            });
            match lines {
                Ok(log) => read.push((agent, log.lines)),
                // A sub-agent that cannot be read hides only itself.
                Err(SessionError::NoEntry(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(read)
    }

    /// Returns the damaged entries met so far.
    pub fn damaged(&self) -> Result<Vec<Damaged>, OpsError> {
        let mut damaged = self.damaged.clone();
        for found in self.path.as_ref().map_or_else(|| Ok(Vec::new()), Conversation::damaged)? {
            if !damaged.contains(&found) {
                damaged.push(found);
            }
        }
        Ok(damaged)
    }
}

/// Returns those of the entries that are part of the session's own conversation, once each.
fn own(view: &View<'_>, entries: &[EntryNumber]) -> Result<Vec<EntryNumber>, OpsError> {
    let mut said = Vec::with_capacity(entries.len());
    let mut known = EntrySet::default();
    for &entry in entries {
        let record = view.record(entry)?;
        let is_own = !view.format.is_of_sub_agent(&record);
        if record.kind.is_conversation() && is_own && !known.contains(entry) {
            known.insert(entry);
            said.push(entry);
        }
    }
    Ok(said)
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
