//! Passages: the part of a conversation that a place names, from one entry to several turns.
//!
//! ```text
//! @13              the turn: its prompt and everything up to the next turn
//! @13.0 @13.4      its prompt alone, and its fourth step: an answer with its results
//! @12..@15         from the beginning of one to the end of the other
//! ..@15 @12..      from the start, and to the end of the branch
//! HEAD 3f2a91c0    one entry
//! ```
//!
//! Invariant: the entries of a passage are never on different paths. The path of the current branch is tried first, then those of
//! other branches, then those of unnamed branches.

use std::{cmp::Reverse, ops::Range};

use crate::{
    json::Raw,
    model::{EntryNumber, EntrySet, Kind, Position},
    session::{
        Damages, Session, SessionError, Stored, Target, View,
        graph::replay::Replays,
        read::{
            checkpoints::Places,
            lines,
            select::{find_place, place},
        },
    },
    wire::{self, Graph as _},
};

/// How many of the last entries of a path are read first, and the factor for each next time.
const LOOKED: usize = 64;
const MORE: usize = 4;

/// A passage of a conversation.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Its last entry.
    pub target: Target,
    /// Its entries on the path to the target, oldest first.
    pub entries: Vec<EntryNumber>,
    /// Whether it is a single entry, named as such.
    pub is_entry: bool,
}

/// A turn, a step or an entry as typed.
struct Named<'w> {
    word: &'w str,
    target: Target,
    /// Its first entry.
    entry: EntryNumber,
    /// The first origin of that entry.
    first: EntryNumber,
    /// Whether it means the whole turn, a step, or only the entry.
    extent: Extent,
}

#[derive(Clone, Copy)]
enum Extent {
    Entry,
    Turn,
    Step(usize),
}

/// Returns true if a word has the form of a turn, a step or a range, so that it cannot be an entry, a branch or a session.
pub fn is_passage(word: &str) -> bool {
    let is_end = |end: &str| end.is_empty() || end.starts_with('@') || is_number(end);
    match word.split_once("..") {
        Some((from, to)) => [from, to].iter().all(|end| is_end(end) || end.starts_with("HEAD")),
        None => word.starts_with('@') || is_number(word),
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Splits a word such as `82@13` or `82@12..@15` into the session and the place.
pub fn split_place(word: &str) -> Option<(&str, &str)> {
    let is_turn = |end: &str| {
        let numbers = end.strip_prefix('@').map(|end| end.split_once('.').unwrap_or((end, "0")));
        numbers.is_some_and(|(n, step)| is_number(n) && is_number(step))
    };
    let is_place = |place: &str| match place.split_once("..") {
        Some((from, to)) => is_turn(from) && (to.is_empty() || is_turn(to)),
        None => is_turn(place),
    };
    let mut splits = word.match_indices('@').map(|(at, _)| word.split_at(at));
    splits.find(|(session, place)| {
        let is_name = !session.is_empty() && !session.starts_with('@') && !session.ends_with("..");
        is_name && is_place(place)
    })
}

/// Finds the passage that a place names.
pub fn find_passage(session: &Stored<'_>, wanted: &str) -> Result<Passage, SessionError> {
    let replays = Replays::of(session)?;
    let named = |word| Named::of(session, &replays, word);
    let Some((from, to)) = wanted.split_once("..").filter(|_| is_passage(wanted)) else {
        let one = match named(wanted) {
            Err(SessionError::Start) => {
                let target = find_place(session, wanted)?;
                return Ok(Passage { target, entries: Vec::new(), is_entry: true });
            }
            one => one?,
        };
        if matches!(one.extent, Extent::Entry) {
            return Ok(Passage { target: one.target, entries: vec![one.entry], is_entry: true });
        }
        return Search { session, replays: &replays, from: Some(&one), to: Some(&one) }.run();
    };
    let end = |word| Some(word).filter(|word: &&str| !word.is_empty()).map(named).transpose();
    let (from, to) = (end(from)?, end(to)?);
    Search { session, replays: &replays, from: from.as_ref(), to: to.as_ref() }.run()
}

impl<'w> Named<'w> {
    fn of(session: &Stored<'_>, replays: &Replays, word: &'w str) -> Result<Self, SessionError> {
        let number = word.strip_prefix('@').unwrap_or(word);
        let (number, step) = match number.split_once('.') {
            Some((number, step)) if is_number(number) && word.starts_with('@') => {
                let none = || SessionError::NoEntry(word.to_owned());
                (number, Extent::Step(step.parse().map_err(|_| none())?))
            }
            _ => (number, Extent::Turn),
        };
        let base = if matches!(step, Extent::Step(_)) { number } else { word };
        let target = find_place(session, base)?;
        let is_turn = |turn: &EntryNumber| target.entry() != Some(*turn);
        let entry = lines::entry_of(session, &target)?.ok_or(SessionError::Start)?;
        let extent = match target.checkpoint {
            Some(_) if is_turn(&entry) => step,
            _ if matches!(step, Extent::Step(_)) => {
                return Err(SessionError::NoEntry(word.to_owned()));
            }
            _ => Extent::Entry,
        };
        Ok(Self { word, target, entry, first: replays.first(entry), extent })
    }
}

/// The search for a path with both ends of a passage. A missing end is the end of the path.
struct Search<'a> {
    session: &'a Stored<'a>,
    replays: &'a Replays,
    from: Option<&'a Named<'a>>,
    to: Option<&'a Named<'a>>,
}

impl Search<'_> {
    fn run(&self) -> Result<Passage, SessionError> {
        let (session, state) = (self.session, &self.session.state);
        let damages = Damages::gathered();
        let look = |at| session.view(at).gathering(&damages);
        // The branch where each end was found.
        let mut met = [None, None];
        let current = state.position().map(|at| (state.current(), at));
        let others = state.branches.iter().map(|(name, at)| (name.as_str(), *at));
        let others = others.filter(|(name, _)| *name != state.current());
        for (name, at) in current.into_iter().chain(others) {
            if let Some(passage) = self.on_path(&look(at), name, &mut met)? {
                return Ok(passage);
            }
        }
        let ends: Vec<&Named<'_>> = self.from.into_iter().chain(self.to).collect();
        let mut generations = Vec::new();
        for end in &ends {
            generations.push(place(session, end.entry)?.generation);
        }
        generations.sort_unstable();
        generations.dedup();
        for generation in generations.into_iter().rev() {
            let view = session.whole(generation);
            let mut paths = session.format.paths(&view)?;
            let mut leaves = Vec::new();
            for leaf in session.format.leaves(&view)? {
                leaves.push((Reverse(view.place(leaf)?), leaf));
            }
            leaves.sort_unstable();
            let mut known = EntrySet::default();
            for (_, leaf) in leaves {
                let added = wire::added(&mut paths, leaf, &mut known)?;
                let mut added = added.into_iter().map(|entry| self.replays.first(entry));
                if added.any(|entry| ends.iter().any(|end| end.first == entry)) {
                    let at = Position { head: Some(leaf), ..view.position };
                    let passage = self.on_path(&look(at), "an unnamed branch", &mut met)?;
                    if let Some(passage) = passage {
                        return Ok(passage);
                    }
                }
            }
        }
        let mut apart = Vec::new();
        for (end, branch) in [self.from, self.to].into_iter().zip(met) {
            let Some(end) = end else { continue };
            let word = end.word.to_owned();
            match branch {
                Some(branch) => apart.push((word, branch)),
                None => return Err(SessionError::NoEntry(word)),
            }
        }
        Err(SessionError::Apart { ends: apart })
    }

    /// Returns the passage if both of its ends are on a view's path.
    fn on_path(
        &self,
        view: &View<'_>,
        branch: &str,
        met: &mut [Option<String>; 2],
    ) -> Result<Option<Passage>, SessionError> {
        let mut limit = LOOKED;
        let (path, places) = loop {
            let path = view.path(limit)?.entries;
            let at = |end: Option<&Named<'_>>| {
                let is_end = |entry: &EntryNumber| {
                    end.is_some_and(|end| self.replays.first(*entry) == end.first)
                };
                path.iter().position(is_end)
            };
            let places = [at(self.from), at(self.to)];
            let is_found = self.from.is_some() && places[0].is_some();
            let is_found = is_found && (self.to.is_none() || places[1].is_some());
            if is_found || path.len() < limit {
                break (path, places);
            }
            limit = limit.saturating_mul(MORE);
        };
        for (met, place) in met.iter_mut().zip(places) {
            if met.is_none() && place.is_some() {
                *met = Some(branch.to_owned());
            }
        }
        let Some(first) = path.iter().min() else { return Ok(None) };
        let turns = Places::since(self.session, *first)?;
        let range = |end: Option<&Named<'_>>, place: Option<usize>, all: usize| match (end, place) {
            (None, _) => Ok(Some(all..all)),
            (Some(_), None) => Ok(None),
            (Some(end), Some(place)) => self.range(view, &path, &turns, end, place).map(Some),
        };
        let from = range(self.from, places[0], 0)?;
        let to = range(self.to, places[1], path.len())?;
        let (Some(from), Some(to)) = (from, to) else { return Ok(None) };
        let entries = path.get(from.start.min(to.start)..from.end.max(to.end));
        let entries = entries.unwrap_or_default().to_vec();
        let Some(&last) = entries.last() else { return Ok(None) };
        let position = Position { head: Some(last), ..view.position };
        let target = Target { position, checkpoint: None, branch: None };
        Ok(Some(Passage { target, entries, is_entry: false }))
    }

    /// Returns the range of an end's entries on a path, given the place of the first one.
    fn range(
        &self,
        view: &View<'_>,
        path: &[EntryNumber],
        turns: &Places,
        end: &Named<'_>,
        start: usize,
    ) -> Result<Range<usize>, SessionError> {
        let mut until = start + 1;
        if matches!(end.extent, Extent::Entry) {
            return Ok(start..until);
        }
        while let Some(&entry) = path.get(until) {
            if turns.is_turn(view, entry)? {
                break;
            }
            until += 1;
        }
        let Extent::Step(step) = end.extent else { return Ok(start..until) };
        let entries = path.get(start..until).unwrap_or_default();
        let lines = lines::lines(self.session, view, entries)?;
        let id = |line: &lines::Line| line.messages.first().and_then(|message| message.id.clone());
        let mut steps = steps(lines.iter().map(|line| (line.kind, id(line))));
        steps.insert(0, 0);
        let Some(&from) = steps.get(step) else {
            let turn = end.word.split_once('.').map_or(end.word, |(turn, _)| turn);
            let last = format!("{turn}.{}", steps.len() - 1);
            return Err(SessionError::NoStep { wanted: end.word.to_owned(), last });
        };
        let to = steps.get(step + 1).map_or(until, |to| start + to);
        Ok(start + from..to)
    }
}

/// Returns the step of its turn that an entry belongs to, if the path contains the beginning of the turn.
pub(crate) fn step_of(
    view: &View<'_>,
    session: &Session,
    turns: &Places,
    path: &[EntryNumber],
    entry: EntryNumber,
) -> Result<Option<usize>, SessionError> {
    let Some(at) = path.iter().rposition(|it| *it == entry) else { return Ok(None) };
    let mut from = at;
    while !turns.is_turn(view, path[from])? {
        let Some(before) = from.checked_sub(1) else { return Ok(None) };
        from = before;
    }
    // Tool results, the largest part of most turns, need not be read.
    let mut parts = Vec::new();
    for entry in &path[from..=at] {
        let kind = view.record(*entry)?.kind;
        let line = if kind == Kind::Assistant { view.line(*entry)? } else { Vec::new() };
        let messages = Raw::object(&line).map(|record| session.format.messages(record));
        parts.push((kind, messages.into_iter().flatten().next().and_then(|message| message.id)));
    }
    Ok(Some(steps(parts).len()))
}

/// Returns where the answers of a turn begin, given the kinds of its entries and the ids of their messages. An answer may consist
/// of several entries, with results between them.
pub fn steps(parts: impl IntoIterator<Item = (Kind, Option<String>)>) -> Vec<usize> {
    let mut steps = Vec::new();
    let (mut answer, mut is_behind) = (None, false);
    for (at, (kind, id)) in parts.into_iter().enumerate() {
        if kind == Kind::Assistant {
            let is_same = match (&id, &answer) {
                (Some(id), Some(answer)) => id == answer,
                _ => is_behind,
            };
            if !is_same || steps.is_empty() {
                steps.push(at);
            }
            answer = id;
        }
        is_behind = kind == Kind::Assistant || is_behind && !kind.is_talk();
    }
    steps
}
