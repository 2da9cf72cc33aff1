//! The graph of a session: where its paths part, what stands at their ends, and what nobody named.
//!
//! The nodes are the entries on the paths of all branches, on the paths to the leaves of every generation in which a
//! branch stands, and on those of every other state of a file that was taken in. An entry that several generations hold is
//! one node; its parents are the entries that stand before it on some path. What an agent compacted into another file is
//! followed by its summary there. Condensed, a node is a stretch that begins with a turn, a boundary, a note or behind a fork:
//!
//! ```text
//! entries   u1 a1 t1 r1 u2 a2        nodes   u1 (4 entries) - u2 (2 entries)
//!                    \ u3                                   \ u3
//! ```
//!
//! Invariant: a node stands before its parents, so the answer has no cycle even where the paths do.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::{
    json::Raw,
    model::{Block, Checkpoint, Command, EntryId, Kind, Message, Position, Run, Timestamp},
    ops::{OpsError, note},
    session::{
        Kin, Session, SessionError, View,
        checkpoints::{self, Places},
        kin,
        replay::Replays,
    },
    sync::{Archive, states},
    wire::{self, Departure, Graph},
};

/// How many characters of an entry are its first words.
const WORDS: usize = 120;
/// How many ids are read at a time.
const BATCH: usize = 1024;

/// A stretch of entries, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a mark of its own, and several may be set"
)]
pub struct GraphNode {
    /// The id of its first entry that is part of the conversation.
    pub id: EntryId,
    /// The name of that entry's record.
    pub uuid: Option<String>,
    /// The id of its last entry.
    pub last: EntryId,
    /// What that entry is.
    pub kind: Kind,
    /// When it was written.
    pub time: Option<Timestamp>,
    /// Its first words.
    pub words: String,
    /// How many entries it holds.
    pub entries: u64,
    /// How many of them hide a part of what they stand for.
    pub cut: u64,
    /// The nodes that it follows, by their places in the list.
    pub parents: Vec<usize>,
    /// The checkpoint that stands before it.
    pub checkpoint: Option<u64>,
    /// The agent's own number of that checkpoint, as a selector.
    pub own: Option<String>,
    /// The checkpoints that were put at its end.
    pub marks: Vec<Checkpoint>,
    /// The branches that stand at its end.
    pub branches: Vec<String>,
    /// Whether the current branch stands at its end.
    pub is_head: bool,
    /// Whether nothing follows it and no branch stands at its end.
    pub is_unnamed: bool,
    /// How the agent left its end for another state of its file.
    pub left: Option<Departure>,
    /// Whether no path comes to it, not even that of an end that was left: a command's talk, or a record that another of its
    /// name took the place of. Only with all entries.
    pub is_aside: bool,
    /// Whether it is a message from a later state of the conversation.
    pub is_from_later: bool,
}

/// A session as a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphView {
    /// The nodes, each before its parents, the newest first.
    pub nodes: Vec<GraphNode>,
    /// The current branch.
    pub current: String,
    /// The branches that stand before the first entry.
    pub empty: Vec<String>,
    /// The branches that show what an operation wrote again, as it was before.
    pub before: BTreeMap<String, u64>,
    /// The session that it was made of.
    pub kin: Option<Kin>,
}

/// Returns the graph of a session, condensed to turns or with `all` entries.
pub fn graph(archive: &Archive, session: &Session, all: bool) -> Result<GraphView, OpsError> {
    let state = archive.store().state(session.key)?;
    let current = state.current().to_owned();
    let mut heads: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    let mut empty = Vec::new();
    let branches: Vec<(String, Position)> = state.branches.into_iter().collect();
    for (name, position) in &branches {
        match position.head {
            Some(head) => heads.entry(head).or_default().push(name.clone()),
            None => empty.push(name.clone()),
        }
    }
    let places = Places::since(archive.store(), session, 0)?;
    let replays = Replays::of(archive.store(), session)?;
    let before: BTreeMap<String, u64> = branches
        .iter()
        .filter_map(|(name, at)| Some((name.clone(), replays.operation(*at)?)))
        .collect();
    let mut states = States::of(archive, session)?;
    let start = Position { generation: 0, head: None, horizon: 0 };
    let view = View::new(archive.store(), session, start, None);
    let (web, view) = Web::collect(archive, session, view, branches, &states, &replays, all)?;
    let known: BTreeSet<u64> = web.entries.iter().copied().collect();
    let mut heads_now: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (head, names) in heads {
        heads_now.entry(replays.last(head, &known)).or_default().extend(names);
    }
    let mut heads = heads_now;
    for names in heads.values_mut() {
        names.sort();
    }
    let ends = |entry: u64| {
        heads.contains_key(&entry)
            || !places.behind(entry).is_empty()
            || states.left.contains_key(&entry)
    };
    let stretches = web.stretches(&view, &replays, all, ends)?;
    let mut facts = Facts::read(archive, session, &stretches)?;
    let nodes = stretches.into_iter().map(|stretch| {
        let Stretch { said: first, last, entries, cut, parents, is_leaf, .. } = stretch;
        let branches = heads.get(&last).cloned().unwrap_or_default();
        let record = view.record(first)?;
        let checkpoint = places.before(&view, first)?;
        let said = facts.said.remove(&first).unwrap_or_default();
        Ok(GraphNode {
            id: facts.id(first)?,
            last: facts.id(last)?,
            uuid: said.uuid,
            kind: record.kind,
            time: record.time,
            words: said.words,
            is_from_later: record.kind == Kind::Note && said.is_from_later,
            entries,
            cut,
            parents,
            checkpoint: checkpoint.map(|checkpoint| checkpoint.n),
            own: checkpoint.and_then(|found| checkpoints::own_selector(session, found)),
            marks: places.behind(last).to_vec(),
            left: states.left.remove(&last),
            is_head: branches.contains(&current),
            is_aside: web.asides.contains(&first),
            is_unnamed: is_leaf
                && branches.is_empty()
                && !is_aside(record.kind)
                && !web.asides.contains(&first),
            branches,
        })
    });
    let nodes = nodes.collect::<Result<_, OpsError>>()?;
    Ok(GraphView { nodes, current, empty, before, kin: kin(archive.store(), session)? })
}

/// The states of files that were taken in, and how the agent left those that it set aside.
#[derive(Default)]
struct States {
    /// Each by its generation's end.
    ends: Vec<Position>,
    /// How the entry was left at which a state ends that the agent set aside.
    left: BTreeMap<u64, Departure>,
    /// What follows such an end in the next file, before the entry there.
    followed: Vec<(u64, u64)>,
}

impl States {
    fn of(archive: &Archive, session: &Session) -> Result<Self, OpsError> {
        let mut states = Self::default();
        let mut rotated: BTreeMap<u64, Position> = BTreeMap::new();
        let mut live = None;
        for held in states::generations(archive, session)? {
            let end = Position { generation: held.generation, head: None, horizon: held.entries };
            let by = archive.store().operations(session.key, held.operation..held.operation + 1)?;
            if by.first().is_some_and(|by| matches!(by.command, Command::Import { .. })) {
                states.ends.push(end);
            }
            let name = held.file.as_deref().and_then(|path| path.file_name()?.to_str());
            match name.and_then(|name| session.format.rotation(name)) {
                Some(n) => {
                    rotated.insert(n, end);
                }
                None if name.is_some() && name == session.format.live_name() => live = Some(end),
                None => {}
            }
        }
        let order: Vec<Position> = rotated.into_values().chain(live).collect();
        for pair in order.windows(2) {
            let [old, next] = pair else { continue };
            let look = |at: &Position| View::new(archive.store(), session, *at, None);
            let (old, next) = (look(old), look(next));
            let Some(departure) = session.format.departure(&old, &next)? else { continue };
            let Some(head) = session.format.head(&old)? else { continue };
            if departure == Departure::Compaction {
                let mut place = 0;
                while place < next.len() && next.at(place)? == old.at(place)? {
                    place += 1;
                }
                states.followed.extend(next.at(place)?.map(|entry| (entry, head)));
            }
            states.left.insert(head, departure);
        }
        Ok(states)
    }
}

/// Entries and their edges, from all paths.
struct Web {
    /// The entries, in the order of their numbers.
    entries: Vec<u64>,
    /// The parents of each, as indices.
    parents: Vec<Vec<usize>>,
    /// How many children each has.
    children: Vec<usize>,
    /// The indices, each before its parents.
    order: Vec<usize>,
    /// The entries to which no path comes.
    asides: BTreeSet<u64>,
}

struct Stretch {
    /// The first entry that is part of the conversation, or the first.
    said: u64,
    last: u64,
    entries: u64,
    cut: u64,
    parents: Vec<usize>,
    is_leaf: bool,
    /// Whether it says nothing at all.
    is_bare: bool,
}

/// Folds what says nothing and leads to one stretch only into that; each stretch stands behind its parents.
fn fold_bare(stretches: &mut [Stretch], owner: &mut [usize], ends: &impl Fn(u64) -> bool) {
    let mut children = vec![0usize; stretches.len()];
    for &parent in stretches.iter().flat_map(|stretch| &stretch.parents) {
        children[parent] += 1;
    }
    let mut into: Vec<usize> = (0..stretches.len()).collect();
    for n in 0..stretches.len() {
        let mut parents = Vec::new();
        for parent in std::mem::take(&mut stretches[n].parents) {
            let folded = &mut stretches[parent];
            if children[parent] == 1 && folded.is_bare && !ends(folded.last) {
                let entries = folded.entries;
                parents.append(&mut folded.parents);
                stretches[n].entries += entries;
                into[parent] = n;
            } else {
                parents.push(parent);
            }
        }
        stretches[n].parents = parents;
    }
    // What is folded into a stretch goes where that one goes.
    for n in (0..into.len()).rev() {
        into[n] = into[into[n]];
    }
    for owner in owner {
        *owner = into[*owner];
    }
}

impl Web {
    /// Gathers the paths of branches and leaves; the view is handed back with what it has read.
    fn collect<'a>(
        archive: &'a Archive,
        session: &'a Session,
        mut view: View<'a>,
        branches: Vec<(String, Position)>,
        states: &States,
        replays: &Replays,
        all: bool,
    ) -> Result<(Self, View<'a>), OpsError> {
        let mut paths: Vec<Vec<u64>> = Vec::new();
        let mut whole = BTreeSet::new();
        let mut generations: BTreeMap<u64, Vec<Position>> = BTreeMap::new();
        for (_, position) in branches {
            generations.entry(position.generation).or_default().push(position);
        }
        for (generation, positions) in generations {
            let runs = archive.store().runs(session.key, generation, 0)?;
            let horizon = runs.last().map_or(0, Run::end);
            let mut known = BTreeSet::new();
            // What lies behind a horizon can lead elsewhere, so only paths with the same one share.
            for position in positions.iter().filter(|position| position.horizon != horizon) {
                view = view.moved(*position);
                paths.push(view.path(usize::MAX)?.entries);
            }
            view = view.moved(Position { generation, head: None, horizon });
            let heads = positions.iter().filter(|position| position.horizon == horizon);
            if heads.clone().next().is_some() {
                whole.insert(generation);
            }
            let mut found = session.format.paths(&view)?;
            let heads = heads.filter_map(|position| position.head);
            for head in heads.chain(session.format.leaves(&view)?) {
                paths.push(wire::added(&mut found, head, &mut known)?);
            }
        }
        // Other states of files add what no path has come to yet.
        let mut known: BTreeSet<u64> = paths.iter().flatten().copied().collect();
        for end in states.ends.iter().filter(|end| !whole.contains(&end.generation)) {
            view = view.moved(*end);
            let mut found = session.format.paths(&view)?;
            let head = session.format.head(&view)?;
            for leaf in head.into_iter().chain(session.format.leaves(&view)?) {
                if !known.contains(&leaf) {
                    paths.push(wire::added(&mut found, leaf, &mut known)?);
                }
            }
        }
        let mut asides = BTreeSet::new();
        if all {
            for end in &states.ends {
                view = view.moved(*end);
                let mut met = Vec::new();
                for entry in view.sequence()? {
                    if !known.contains(&entry) && is_message(&view, session, entry)? {
                        known.insert(entry);
                        met.push(entry);
                    }
                }
                paths.extend(unreached(&met, &mut known, |entry| view.parent(entry))?);
                known.extend(&met);
                asides.extend(met);
            }
        }
        // What was written again is one node, whichever of its entries a path comes to.
        if !replays.is_empty() {
            let among: BTreeSet<u64> = paths.iter().flatten().copied().collect();
            for entry in paths.iter_mut().flatten() {
                *entry = replays.last(*entry, &among);
            }
        }
        let pairs = paths.iter().flat_map(|path| path.iter().zip(path.iter().skip(1)));
        let mut edges: Vec<(u64, u64)> = pairs.map(|(above, entry)| (*entry, *above)).collect();
        let followed: BTreeSet<u64> = states.followed.iter().map(|(entry, _)| *entry).collect();
        edges.retain(|(child, _)| !followed.contains(child));
        edges.extend(states.followed.iter().filter(|(child, _)| known.contains(child)));
        Ok((Self { asides, ..Self::new(paths.concat(), edges) }, view))
    }

    fn new(mut entries: Vec<u64>, mut edges: Vec<(u64, u64)>) -> Self {
        entries.sort_unstable();
        entries.dedup();
        edges.sort_unstable();
        edges.dedup();
        let mut web = Self {
            parents: vec![Vec::new(); entries.len()],
            children: vec![0; entries.len()],
            order: Vec::with_capacity(entries.len()),
            asides: BTreeSet::new(),
            entries,
        };
        for (child, parent) in edges {
            let index = |entry| web.entries.binary_search(&entry).ok();
            if let (Some(child), Some(parent)) = (index(child), index(parent)) {
                web.parents[child].push(parent);
                web.children[parent] += 1;
            }
        }
        web.sort();
        web
    }

    /// Finds an order in which the newest entry comes as soon as all its children have come; edges that close a cycle are
    /// cut.
    fn sort(&mut self) {
        let mut left = self.children.clone();
        let mut place = vec![None; self.entries.len()];
        let mut ready: BinaryHeap<usize> =
            (0..left.len()).filter(|&index| left[index] == 0).collect();
        let mut stuck = (0..left.len()).rev();
        // Where only cycles are left, the newest of their entries comes first.
        while let Some(index) = ready.pop().or_else(|| stuck.find(|&index| place[index].is_none()))
        {
            if place[index].is_some() {
                continue;
            }
            place[index] = Some(self.order.len());
            self.order.push(index);
            for &parent in &self.parents[index] {
                left[parent] = left[parent].saturating_sub(1);
                if left[parent] == 0 {
                    ready.push(parent);
                }
            }
        }
        for (index, parents) in self.parents.iter_mut().enumerate() {
            parents.retain(|&parent| {
                let goes_back = place[parent] <= place[index];
                self.children[parent] -= usize::from(goes_back);
                !goes_back
            });
        }
    }

    /// Folds what follows a turn into it.
    fn stretches(
        &self,
        view: &View<'_>,
        replays: &Replays,
        all: bool,
        ends: impl Fn(u64) -> bool,
    ) -> Result<Vec<Stretch>, OpsError> {
        // Which stretch an entry belongs to, the oldest first.
        let mut owner = vec![0; self.entries.len()];
        let mut stretches: Vec<Stretch> = Vec::new();
        for &index in self.order.iter().rev() {
            let entry = self.entries[index];
            let kind = view.record(entry)?.kind;
            let begins = all || matches!(kind, Kind::User | Kind::Boundary | Kind::Note);
            let is_end = |index: usize| ends(self.entries[index]);
            // What tells nothing and stands behind an end goes with it, and ends nothing itself.
            let trails = |parent: usize| is_aside(kind) && is_end(parent) && !is_end(index);
            let before = match self.parents[index].as_slice() {
                [parent] if !begins && self.children[*parent] == 1 => {
                    Some(*parent).filter(|parent| !is_end(*parent) || trails(*parent))
                }
                _ => None,
            };
            owner[index] = before.map_or(stretches.len(), |parent| owner[parent]);
            let is_leaf = self.children[index] == 0;
            if let Some(stretch) = stretches.get_mut(owner[index]) {
                if !(before.is_some_and(trails) || is_aside(kind) && ends(stretch.last)) {
                    stretch.last = entry;
                }
                stretch.is_leaf = is_leaf;
                stretch.entries += 1;
                stretch.is_bare &= is_bare(kind);
                stretch.cut += u64::from(replays.cut.contains(&entry));
                if !is_aside(kind) && is_aside(view.record(stretch.said)?.kind) {
                    stretch.said = entry;
                }
                continue;
            }
            let parents = self.parents[index].iter().map(|&parent| owner[parent]).collect();
            stretches.push(Stretch {
                said: entry,
                last: entry,
                entries: 1,
                cut: u64::from(replays.cut.contains(&entry)),
                parents,
                is_leaf,
                is_bare: is_bare(kind) && !all,
            });
        }
        fold_bare(&mut stretches, &mut owner, &ends);
        // A stretch stands where its last entry does, so that the newest end is on top.
        let mut place = vec![None; stretches.len()];
        let mut taken = 0;
        for &index in &self.order {
            if place[owner[index]].is_none() {
                place[owner[index]] = Some(taken);
                taken += 1;
            }
        }
        for stretch in &mut stretches {
            stretch.parents = stretch.parents.iter().filter_map(|&parent| place[parent]).collect();
            stretch.parents.sort_unstable();
            stretch.parents.dedup();
        }
        let placed = place.into_iter().zip(stretches);
        let mut placed: Vec<_> = placed.filter(|(place, _)| place.is_some()).collect();
        placed.sort_by_key(|(place, _)| *place);
        Ok(placed.into_iter().map(|(_, stretch)| stretch).collect())
    }
}

/// What is read of the entries that stretches begin and end with.
struct Facts {
    ids: BTreeMap<u64, EntryId>,
    said: BTreeMap<u64, Said>,
}

#[derive(Default)]
struct Said {
    uuid: Option<String>,
    words: String,
    is_from_later: bool,
}

impl Facts {
    fn read(archive: &Archive, session: &Session, stretches: &[Stretch]) -> Result<Self, OpsError> {
        let mut firsts: Vec<u64> = stretches.iter().map(|stretch| stretch.said).collect();
        firsts.sort_unstable();
        let mut wanted: Vec<u64> = stretches.iter().map(|stretch| stretch.last).collect();
        wanted.extend_from_slice(&firsts);
        wanted.sort_unstable();
        wanted.dedup();
        let mut ids = BTreeMap::new();
        for batch in wanted.chunks(BATCH) {
            let (Some(first), Some(last)) = (batch.first(), batch.last()) else { continue };
            for entry in archive.store().entries(session.key, *first..last + 1)? {
                if batch.binary_search(&entry.n).is_ok() {
                    ids.insert(entry.n, entry.id);
                }
            }
        }
        let mut said = BTreeMap::new();
        archive.store().lines(session.key, &firsts, &mut |n, line| {
            let record = Raw::object(&line);
            let uuid = record.and_then(|record| session.format.envelope(record).name);
            let messages = record.map(|record| session.format.messages(record)).unwrap_or_default();
            let text = messages.first().map(Message::text).unwrap_or_default();
            let later = note::said_from_later(&text).map(str::to_owned);
            let later = later.or_else(|| session.format.mail(record?));
            let words = match &later {
                Some(later) => first_line(later),
                None => messages.iter().find_map(words),
            };
            let words = words.unwrap_or_default();
            said.insert(n, Said { uuid, words, is_from_later: later.is_some() });
        })?;
        Ok(Self { ids, said })
    }

    fn id(&self, entry: u64) -> Result<EntryId, OpsError> {
        let id = self.ids.get(&entry).copied();
        Ok(id.ok_or_else(|| SessionError::NoEntry(entry.to_string()))?)
    }
}

/// Returns whether an entry holds words of the user, the model or a tool, though its record may lack what a link needs.
fn is_message(view: &View<'_>, session: &Session, entry: u64) -> Result<bool, OpsError> {
    Ok(match view.record(entry)?.kind {
        Kind::Meta => {
            let line = view.line(entry)?;
            Raw::object(&line).is_some_and(|record| !session.format.messages(record).is_empty())
        }
        kind => !is_aside(kind) && kind != Kind::Boundary,
    })
}

/// Returns entries to which no path comes, each behind the nearest entry above it that was known when it was met.
///
/// They are known by now, and unknown in the end: the last one met comes first, so that a way over what it does not know
/// holds for all that were met before it, and is gone once. A way that leads into a circle leads nowhere.
fn unreached<E>(
    met: &[u64],
    known: &mut BTreeSet<u64>,
    parent: impl Fn(u64) -> Result<Option<u64>, E>,
) -> Result<Vec<Vec<u64>>, E> {
    let mut above: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    let mut paths = Vec::with_capacity(met.len());
    for &entry in met.iter().rev() {
        known.remove(&entry);
        let mut passed = BTreeSet::new();
        let mut at = Some(entry);
        while let Some(unknown) = at.filter(|at| !known.contains(at)) {
            at = match above.get(&unknown) {
                _ if !passed.insert(unknown) => None,
                Some(known) => *known,
                None => parent(unknown)?,
            };
        }
        above.extend(passed.into_iter().map(|unknown| (unknown, at)));
        paths.push(at.into_iter().chain([entry]).collect());
    }
    Ok(paths)
}

/// Returns whether records of a kind are nothing that the model is told.
fn is_bare(kind: Kind) -> bool {
    matches!(kind, Kind::Meta | Kind::Opaque)
}

/// Returns whether records of a kind tell nothing of a conversation.
fn is_aside(kind: Kind) -> bool {
    matches!(kind, Kind::Meta | Kind::Opaque | Kind::System)
}

/// Returns the first words of a message, or what stands in their place.
fn words(message: &Message) -> Option<String> {
    let instead = |block: &Block| match block {
        Block::Text(text) => first_line(text),
        Block::Thinking(thinking) => first_line(&thinking.text),
        Block::Result { .. } => first_line(&block.answer_text()),
        Block::Call { name, input, .. } => first_line(&format!("{name} {input}")),
        Block::Image(_) => Some("[image]".to_owned()),
        Block::Other { name, .. } => first_line(name),
    };
    first_line(&message.text()).or_else(|| message.parts().find_map(instead))
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(WORDS).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(entries: &[u64], edges: &[(u64, u64)]) -> Vec<u64> {
        let web = Web::new(entries.to_vec(), edges.to_vec());
        web.order.iter().map(|&index| web.entries[index]).collect()
    }

    #[test]
    fn children_come_before_their_parents_and_the_newest_first() {
        assert_eq!(order(&[1, 2, 3, 4], &[(2, 1), (3, 1), (4, 2)]), [4, 3, 2, 1]);
        // A replayed entry has a greater number than those that follow it.
        assert_eq!(order(&[1, 2, 3, 9], &[(2, 1), (3, 2), (9, 1), (3, 9)]), [3, 9, 2, 1]);
    }

    #[test]
    fn a_cycle_between_generations_is_cut() {
        let web = Web::new(vec![1, 2, 3], vec![(2, 1), (1, 2), (3, 2)]);
        assert_eq!(web.order, [2, 1, 0]);
        assert_eq!(web.parents, [vec![], vec![0], vec![1]]);
        assert_eq!(web.children, [1, 1, 0]);
    }

    #[test]
    fn a_cycle_alone_has_a_beginning() {
        let web = Web::new(vec![1, 2], vec![(2, 1), (1, 2)]);
        assert_eq!(web.order, [1, 0]);
        assert_eq!(web.parents, [vec![], vec![0]]);
    }

    /// The same by its definition: each looks for itself, and is known to those behind it.
    fn by_definition(met: &[u64], known: &BTreeSet<u64>, parents: &[Option<u64>]) -> Vec<Vec<u64>> {
        let parent = |entry: u64| parents[usize::try_from(entry).unwrap()];
        let mut known = known.clone();
        let mut paths = Vec::new();
        for &entry in met {
            let mut passed = BTreeSet::from([entry]);
            let mut above = parent(entry);
            while let Some(at) = above.filter(|at| !known.contains(at)) {
                above = if passed.insert(at) { parent(at) } else { None };
            }
            paths.push(above.into_iter().chain([entry]).collect());
            known.insert(entry);
        }
        paths
    }

    proptest! {
        #[test]
        fn what_no_path_comes_to_stands_behind_what_was_known(
            parents in proptest::collection::vec(proptest::option::of(0u64..24), 24),
            known in proptest::collection::btree_set(0u64..24, 0..8),
            met in Just((0..24).collect::<Vec<u64>>()).prop_shuffle(),
            skipped in proptest::collection::btree_set(0u64..24, 0..8),
        ) {
            let met: Vec<u64> = met
                .into_iter()
                .filter(|entry| !known.contains(entry) && !skipped.contains(entry))
                .collect();
            let mut all: BTreeSet<u64> = known.iter().chain(&met).copied().collect();
            let parent = |entry: u64| {
                Ok::<_, std::convert::Infallible>(parents[usize::try_from(entry).unwrap()])
            };
            let mut found = unreached(&met, &mut all, parent).unwrap();
            found.reverse();
            prop_assert_eq!(found, by_definition(&met, &known, &parents));
            prop_assert_eq!(all, known);
        }

        #[test]
        fn a_bare_stretch_goes_into_the_only_one_that_follows_it(
            stretches in proptest::collection::vec(
                (proptest::collection::btree_set(0usize..40, 0..3), any::<bool>(), any::<bool>()),
                1..40,
            ),
        ) {
            let stretch = |(n, (parents, is_bare, _)): (usize, &(BTreeSet<usize>, bool, bool))| {
                let parents = parents.iter().copied().filter(|parent| *parent < n).collect();
                let n = n as u64;
                let is_bare = *is_bare;
                Stretch { said: n, last: n, entries: 1, cut: 0, parents, is_leaf: false, is_bare }
            };
            let before: Vec<Stretch> = stretches.iter().enumerate().map(stretch).collect();
            let mut after: Vec<Stretch> = stretches.iter().enumerate().map(stretch).collect();
            let mut owner: Vec<usize> = (0..before.len()).collect();
            let is_end = |n: u64| stretches[usize::try_from(n).unwrap()].2;
            fold_bare(&mut after, &mut owner, &is_end);
            let children = |n: usize| -> Vec<usize> {
                (0..before.len()).filter(|child| before[*child].parents.contains(&n)).collect()
            };
            for (n, owner) in owner.iter().enumerate() {
                // Where it goes, one step after the other.
                let mut into = n;
                while let ([child], true, false) =
                    (children(into).as_slice(), before[into].is_bare, is_end(into as u64))
                {
                    into = *child;
                }
                prop_assert_eq!(*owner, into);
            }
            for n in (0..before.len()).filter(|n| owner[*n] == *n) {
                let within: Vec<usize> = (0..before.len()).filter(|m| owner[*m] == n).collect();
                prop_assert_eq!(after[n].entries, within.len() as u64);
                let above = within.iter().flat_map(|m| &before[*m].parents);
                let above: BTreeSet<usize> = above.copied().filter(|m| owner[*m] != n).collect();
                prop_assert_eq!(after[n].parents.iter().copied().collect::<BTreeSet<_>>(), above);
            }
        }
    }

    #[test]
    fn ways_over_what_is_not_known_are_gone_once() {
        // Each stands before the one that it follows, so that the first one met has the longest way.
        let count = 200_000;
        let met: Vec<u64> = (0..count).collect();
        let mut known: BTreeSet<u64> = (0..=count).collect();
        let asked = std::cell::Cell::new(0);
        let parent = |entry: u64| {
            asked.set(asked.get() + 1);
            Ok::<_, std::convert::Infallible>(Some(entry + 1))
        };
        let found = unreached(&met, &mut known, parent).unwrap();
        assert_eq!(found.last(), Some(&vec![count, 0]));
        assert_eq!(asked.get(), count);
    }

    #[test]
    fn many_bare_stretches_are_folded_in_one_pass() {
        // A root, and 100,000 bare stretches behind it that all lead to the last one.
        let count = 100_000;
        let bare = |parents| Stretch {
            said: 0,
            last: 0,
            entries: 1,
            cut: 0,
            parents,
            is_leaf: false,
            is_bare: true,
        };
        let mut stretches = vec![bare(Vec::new())];
        stretches.extend((0..count).map(|_| bare(vec![0])));
        stretches.push(bare((1..=count).collect()));
        let mut owner: Vec<usize> = (0..stretches.len()).collect();
        fold_bare(&mut stretches, &mut owner, &|_| false);
        assert_eq!(stretches.last().unwrap().entries, 1 + count as u64);
        assert!(owner[1..].iter().all(|owner| *owner == count + 1));
    }
}
