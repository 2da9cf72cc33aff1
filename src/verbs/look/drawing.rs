//! The graph of a session: its forks, its branches, and the ends without a name.
//!
//! The nodes are the entries on the paths of all branches, on the paths to the leaves of every generation with a branch, and on
//! those of every other imported state of a file. An entry in several generations is one node; its parents are all entries
//! before it on any path. When an agent compacts into another file, an edge leads to its summary there; a call has an edge to
//! its sub-agent in the same file. Condensed, a node is a stretch that begins with a turn, a boundary, a note, or after a fork:
//! ```text
//! entries   u1 a1 t1 r1 u2 a2        nodes   u1 (4 entries) - u2 (2 entries)
//!                    \ u3                                   \ u3
//! ```
//!
//! Invariant: no node comes after one of its parents, so the result has no cycle even if the paths do.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    archive::At,
    context::files,
    dag::{Web, unreached},
    files::states,
    json::Raw,
    model::{
        Block, CheckpointNumber, EntryId, EntryNumber, EntrySet, GenerationNumber, Image, Kind,
        LineId, Message, OperationNumber, Position, Run, Timestamp, first_line,
    },
    report::{Acts, Boundary, Effort, Expense, GraphNode, RevertedEnd},
    search::{Pattern, Seeker, Sought},
    session::{
        Damaged, Damages, Kin, Session, SessionError, Spot, View, derive, entry_ids,
        graph::replay::Replays,
        history::{
            departures::departures,
            stretches::{Stretch, Stretches, path_first, stretches},
        },
        kin, messages,
        read::{
            checkpoints::{self, Given, Places},
            tools,
        },
    },
    verbs::{
        OpsError,
        look::{edges::edges, note},
    },
    wire::{self, Departure, Graph, How},
};

/// How many characters of an entry a node shows.
const WORDS: usize = 120;
/// How many entries before an end are searched for its last message.
const LAST: usize = 16;
/// How many nodes are read at a time.
const BATCH: usize = 256;

/// Calls are counted only in sessions of at most this many entries, because every line must be read.
const COUNTED: usize = 20_000;

/// Compactions are compared with their summaries only in sessions of at most this many entries.
const COMPARED: usize = 5_000;

/// What a drawing of a session includes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail<'a> {
    /// Every entry as a node of its own, including undone and repeated ones.
    pub all: bool,
    /// The ends that were undone.
    pub undone: bool,
    /// The number of edits and commands in each node.
    pub acts: bool,
    /// A pattern whose matches are counted.
    pub pattern: Option<&'a Pattern>,
}

/// A session as a graph. Nodes are read one batch at a time, as they are passed on.
pub struct Drawing<'a> {
    session: &'a At<'a>,
    view: View<'a>,
    pub(crate) damages: Damages,
    places: Places,
    pub(crate) stretches: Vec<Stretch>,
    /// The entries of the stretches.
    members: Vec<EntryNumber>,
    /// The acts in each stretch, if they are counted.
    acts: Vec<Acts>,
    /// What was used in each stretch, if that is known.
    spent: Vec<Expense>,
    /// How many files were edited, if edits are counted.
    pub edited: Option<u64>,
    /// How many facts each compaction lost, if that is counted.
    lost: BTreeMap<EntryId, u64>,
    /// The branches that end at each entry.
    heads: BTreeMap<EntryNumber, Vec<String>>,
    left: BTreeMap<EntryNumber, Departure>,
    asides: EntrySet,
    undone: EntrySet,
    /// The current branch.
    pub current: String,
    /// The node where it ends.
    pub head: Option<usize>,
    /// Its end, relative to the checkpoints.
    pub at: Option<Spot>,
    /// The newest checkpoint at any node.
    pub newest: Option<CheckpointNumber>,
    /// The branches that end before the first entry.
    pub empty: Vec<String>,
    /// The branches with the state from before an operation rewrote it.
    pub before: BTreeMap<String, OperationNumber>,
    /// The session it was made from.
    pub kin: Option<Kin>,
}

/// A node of a graph before its entries are read.
#[derive(Clone, Debug)]
pub struct Outlined<'d> {
    /// Its index in the list.
    pub node: usize,
    /// The indexes of its parents.
    pub parents: &'d [usize],
    /// The checkpoint before it.
    pub checkpoint: Option<CheckpointNumber>,
    /// The agent's own number of that checkpoint, as a selector.
    pub own: Option<String>,
    /// The kind of its first entry.
    pub kind: Kind,
    /// Its time.
    pub time: Option<Timestamp>,
    /// Whether it begins a conversation of the session itself, not of a sub-agent.
    pub is_root: bool,
    /// Whether it is neither on the path to the end of the current branch nor the rest of the turn there.
    pub is_off: bool,
    /// Whether it is on a reverted branch.
    pub is_reverted: bool,
}

/// Draws a session.
pub(crate) fn drawing<'a>(
    session: &'a At<'a>,
    detail: Detail<'_>,
) -> Result<Drawing<'a>, OpsError> {
    let all = detail.all;
    let damages = Damages::gathered();
    let states = States::of(session, &damages)?;
    let replays = Replays::of(session)?;
    let view = session.view(Position::default()).gathering(&damages);
    let at = session.state.position();
    let branches = session.state.branches.values().copied();
    let positions = branches.filter(|position| Some(*position) != at).collect();
    let gathered = gather(session, view, (at, positions), &states, &replays, all)?;
    let Gathered { mut paths, trunk, asides, view } = gathered;
    let mut heads = heads(session);
    if !all {
        heads = draw_once(session, &view, &trunk, &mut paths, heads)?;
    }
    let undone = undone(session)?;
    let mut edges = state_edges(session, &view, &trunk, &paths, &states)?;
    let mut nodes = paths.concat();
    if !detail.undone && !undone.is_empty() {
        let stays: EntrySet = heads.keys().copied().chain(trunk.iter().copied()).collect();
        let is_out = |entry| undone.contains(entry) && !stays.contains(entry);
        prune(&mut nodes, &mut edges, is_out);
    }
    drop((paths, trunk));
    let places = Places::since(session, EntryNumber::FIRST)?;
    let paths =
        Paths { nodes, edges, heads, view, damages, asides, undone, places, left: states.left };
    paths.draw(session, &replays, detail)
}

/// Draws the newest entries of the current path, for a first sight of a long session. Its cost depends on their number only.
pub(crate) fn recent<'a>(
    session: &'a At<'a>,
    entries: usize,
    detail: Detail<'_>,
) -> Result<Drawing<'a>, OpsError> {
    let damages = Damages::gathered();
    let view = session.view(session.state.position().unwrap_or_default()).gathering(&damages);
    let nodes = view.path(entries)?.entries;
    let edges = edges(&nodes, &[]);
    let places = Places::since(session, nodes.iter().copied().min().unwrap_or(EntryNumber::FIRST))?;
    let paths = Paths {
        nodes,
        edges,
        heads: heads(session),
        view,
        damages,
        asides: EntrySet::default(),
        undone: EntrySet::default(),
        places,
        left: BTreeMap::new(),
    };
    paths.draw(session, &Replays::of(session)?, detail)
}

/// Returns the branches that end at each entry.
fn heads(session: &At<'_>) -> BTreeMap<EntryNumber, Vec<String>> {
    let mut heads: BTreeMap<EntryNumber, Vec<String>> = BTreeMap::new();
    for (name, position) in &session.state.branches {
        if let Some(head) = position.head {
            heads.entry(head).or_default().push(name.clone());
        }
    }
    heads
}

/// The entries and edges of a drawing, before they are grouped into nodes.
struct Paths<'a> {
    nodes: Vec<EntryNumber>,
    edges: Vec<(EntryNumber, EntryNumber)>,
    heads: BTreeMap<EntryNumber, Vec<String>>,
    view: View<'a>,
    damages: Damages,
    asides: EntrySet,
    undone: EntrySet,
    places: Places,
    left: BTreeMap<EntryNumber, Departure>,
}

impl<'a> Paths<'a> {
    fn draw(
        self,
        session: &'a At<'a>,
        replays: &Replays,
        detail: Detail<'_>,
    ) -> Result<Drawing<'a>, OpsError> {
        let Self { nodes, edges, view, damages, asides, undone, places, left, .. } = self;
        let Detail { all, pattern, .. } = detail;
        let current = session.state.current().to_owned();
        let branches = session.state.branches.iter();
        let empty = branches.clone().filter(|(_, at)| at.head.is_none());
        let empty = empty.map(|(name, _)| name.clone()).collect();
        let before =
            branches.filter_map(|(name, at)| Some((name.clone(), replays.operation(*at)?)));
        let before = before.collect();
        let web = Web::new(nodes, edges);
        let is_known = |entry: EntryNumber| web.nodes.binary_search(&entry).is_ok();
        let mut heads: BTreeMap<EntryNumber, Vec<String>> = BTreeMap::new();
        for (head, names) in self.heads {
            heads.entry(replays.same(head, is_known)).or_default().extend(names);
        }
        for names in heads.values_mut() {
            names.sort();
        }
        let ends = |entry: EntryNumber| {
            heads.contains_key(&entry)
                || !places.behind(entry).is_empty()
                || left.contains_key(&entry)
        };
        let found = pattern.map(|pattern| find(session, pattern)).transpose()?;
        let found = found.unwrap_or_default();
        let plain =
            if all { EntrySet::default() } else { plain_notes(session, &view, &web.nodes)? };
        let Stretches { all: mut stretches, members } =
            stretches(web, &view, replays, &found, &plain, all, ends)?;
        let is_here = |stretch: &Stretch| {
            heads.get(&stretch.last).is_some_and(|branches| branches.contains(&current))
        };
        let head = stretches.iter().position(is_here);
        let head = head.map(|head| path_first(&mut stretches, head, |one| begins_turn(&view, one)));
        let is_counted = detail.acts && members.len() <= COUNTED;
        let counted = is_counted.then(|| count_acts(session, &stretches, &members, &damages));
        let (acts, edited) = counted.transpose()?.unwrap_or_default();
        let mut drawing = Drawing {
            session,
            view,
            damages,
            places,
            stretches,
            members,
            acts,
            spent: Vec::new(),
            lost: BTreeMap::new(),
            edited: is_counted.then_some(edited),
            heads,
            left,
            asides,
            undone,
            current,
            head,
            at: checkpoints::standing_at(session)?,
            newest: None,
            empty,
            before,
            kin: kin(session)?,
        };
        let mut newest = None;
        for stretch in &drawing.stretches {
            let marks = drawing.places.behind(stretch.last).iter().map(|mark| mark.n).max();
            newest = newest.max(marks).max(drawing.before(stretch.said)?.map(|given| given.n));
        }
        drawing.newest = newest;
        Ok(drawing)
    }
}

/// Returns true if a stretch begins with a turn, a note or a compaction.
fn begins_turn(view: &View<'_>, stretch: &Stretch) -> bool {
    let kind = view.record(stretch.said).map(|record| record.kind);
    kind.is_ok_and(|kind| matches!(kind, Kind::User | Kind::Note | Kind::Boundary))
}

impl Drawing<'_> {
    /// Returns the outlines of the nodes, newest first, each before its parents.
    pub fn outline(&self) -> impl Iterator<Item = Result<Outlined<'_>, OpsError>> {
        self.stretches.iter().enumerate().map(|(node, stretch)| {
            let Stretch { said, parents, is_off, .. } = stretch;
            let record = self.view.record(*said)?;
            let given = self.before(*said)?;
            let is_aside = self.asides.contains(*said);
            let is_apart = is_aside || self.session.format.is_of_sub_agent(&record);
            Ok(Outlined {
                node,
                parents,
                checkpoint: given.map(|given| given.n),
                own: given.and_then(|given| checkpoints::own_selector(self.session, given.own?)),
                kind: record.kind,
                time: record.time,
                is_root: parents.is_empty() && !is_apart,
                is_off: *is_off && !is_apart,
                is_reverted: self.is_reverted(stretch)?,
            })
        })
    }

    /// Returns the acts in each node; empty if they are not counted.
    pub fn acts(&self) -> &[Acts] {
        &self.acts
    }

    /// Returns the names of the branches, grouped by the entry where they end.
    pub fn heads(&self) -> impl Iterator<Item = &[String]> {
        self.heads.values().map(Vec::as_slice)
    }

    /// Passes on the nodes in the order of their outlines, reading a batch at a time.
    pub fn each<E: From<OpsError>>(
        &self,
        mut each: impl FnMut(GraphNode) -> Result<(), E>,
    ) -> Result<(), E> {
        for first in (0..self.count()).step_by(BATCH) {
            self.nodes(first..first + BATCH)?.into_iter().try_for_each(&mut each)?;
        }
        Ok(())
    }

    /// Returns the number of nodes.
    pub fn count(&self) -> usize {
        self.stretches.len()
    }

    /// Reads a range of nodes, as far as there are any.
    pub fn nodes(&self, range: Range<usize>) -> Result<Vec<GraphNode>, OpsError> {
        let range = range.start.min(self.count())..range.end.min(self.count());
        let stretches = self.stretches.get(range.clone()).unwrap_or_default();
        let mut facts = Facts::read(self.session, stretches, &self.damages)?;
        range.zip(stretches).map(|(n, stretch)| self.node(n, stretch, &mut facts)).collect()
    }

    /// Returns the reverted ends, newest first.
    pub fn reverted(&self) -> Result<Vec<RevertedEnd>, OpsError> {
        let mut ends = Vec::new();
        for node in self.reverted_nodes()? {
            let end = &self.stretches[node];
            let branches = self.heads.get(&end.last).cloned().unwrap_or_default();
            let (mut turns, mut at, mut after) = (0, Some(node), None);
            while let Some(on) = at {
                let Stretch { said, is_off, parents, .. } = &self.stretches[on];
                let is_turn = self.view.record(*said)?.kind == Kind::User;
                if !is_off && is_turn {
                    after = self.before(*said)?.map(|given| given.n);
                    break;
                }
                turns += u64::from(is_turn);
                at = parents.first().copied();
            }
            let (time, words) = self.last_words(end)?;
            let entry = self.session.id_of(end.last)?;
            ends.push(RevertedEnd { branches, entry, after, turns, time, words });
        }
        Ok(ends)
    }

    /// Returns the turns and compactions of the current path with their entries, oldest first.
    pub(crate) fn turns(&self) -> Result<Vec<(Kind, &[EntryNumber])>, OpsError> {
        let mut turns = Vec::new();
        for stretch in self.stretches.iter().rev().filter(|stretch| !stretch.is_off) {
            let kind = self.view.record(stretch.said)?.kind;
            if matches!(kind, Kind::User | Kind::Boundary) {
                turns.push((kind, self.members_of(stretch)));
            }
        }
        Ok(turns)
    }

    /// Returns the start times of the turns.
    pub(crate) fn turn_times(&self) -> Result<Vec<Timestamp>, OpsError> {
        let mut times = Vec::new();
        for stretch in &self.stretches {
            let record = self.view.record(stretch.said)?;
            if record.kind == Kind::User && !self.session.format.is_of_sub_agent(&record) {
                times.extend(record.time);
            }
        }
        Ok(times)
    }

    pub(crate) fn members_of(&self, stretch: &Stretch) -> &[EntryNumber] {
        let members = stretch.members.start as usize..stretch.members.end as usize;
        self.members.get(members).unwrap_or_default()
    }

    /// Returns true if the conversation was compacted.
    pub fn has_boundary(&self) -> Result<bool, OpsError> {
        for Stretch { said, is_off, .. } in &self.stretches {
            if !is_off && self.view.record(*said)?.kind == Kind::Boundary {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if compactions should be compared with their summaries: there are some, and the session is short enough.
    pub fn is_compared(&self) -> Result<bool, OpsError> {
        Ok(self.edited.is_some() && self.members.len() <= COMPARED && self.has_boundary()?)
    }

    /// Records how many facts each compaction lost.
    pub fn see_losses(&mut self, boundaries: &[Boundary]) {
        self.lost.extend(boundaries.iter().filter_map(|one| Some((one.entry?, one.lost()))));
    }

    /// Records what each node used, by its prompts.
    pub fn see_effort(&mut self, effort: &Effort) {
        let of = |stretch: &Stretch| {
            let members = self.members_of(stretch).iter();
            let spent = members.filter_map(|entry| effort.turns.get(&Some(*entry)));
            spent.fold(Expense::default(), Expense::with)
        };
        self.spent = self.stretches.iter().map(of).collect();
    }

    /// Returns what each node used; empty if that is not known.
    pub fn spent(&self) -> &[Expense] {
        &self.spent
    }

    /// Returns the number of reverted ends.
    pub fn count_reverted(&self) -> Result<u64, OpsError> {
        Ok(self.reverted_nodes()?.len() as u64)
    }

    fn reverted_nodes(&self) -> Result<Vec<usize>, OpsError> {
        let mut nodes = Vec::new();
        for (node, stretch) in self.stretches.iter().enumerate() {
            let heads = self.heads.get(&stretch.last);
            let is_before = |branch: &String| self.before.contains_key(branch);
            let is_named =
                stretch.is_leaf && heads.is_some_and(|heads| !heads.iter().all(is_before));
            let is_reverted = stretch.is_off && !self.is_undone(stretch);
            if is_reverted && (is_named || self.is_unnamed(stretch)?) {
                nodes.push(node);
            }
        }
        Ok(nodes)
    }

    /// Returns the last message of a stretch and its time.
    fn last_words(&self, stretch: &Stretch) -> Result<(Option<Timestamp>, String), OpsError> {
        let members = self.members_of(stretch);
        let time = self.view.record(stretch.last)?.time;
        for &entry in members.iter().rev().take(LAST) {
            let record = self.view.record(entry)?;
            if matches!(record.kind, Kind::User | Kind::Note | Kind::Assistant | Kind::Summary) {
                let said = messages(self.session, entry).unwrap_or_default();
                if let Some(words) = said.iter().rev().find_map(|message| {
                    let text = message.text();
                    derive::words(&text).or_else(|| beginning(&text))
                }) {
                    return Ok((record.time.or(time), words));
                }
            }
        }
        Ok((time, String::new()))
    }

    /// Returns the end of the reverted branch that a node is on: its last entry, and the branch's name.
    pub fn reverted_end(&self, node: usize) -> Result<Option<(EntryId, Option<String>)>, OpsError> {
        let is_reverted = |node: usize| {
            self.stretches.get(node).map_or(Ok(false), |stretch| self.is_reverted(stretch))
        };
        let mut at = node;
        while is_reverted(at)? {
            let stretch = &self.stretches[at];
            let name = self.heads.get(&stretch.last).and_then(|names| names.first()).cloned();
            let mut next = None;
            // A node comes after all that follow it.
            for other in (0..at).rev().filter(|_| name.is_none()) {
                if self.stretches[other].parents.first() == Some(&at) && is_reverted(other)? {
                    next = Some(other);
                    break;
                }
            }
            match next {
                Some(next) => at = next,
                None => return Ok(Some((self.session.id_of(stretch.last)?, name))),
            }
        }
        Ok(None)
    }

    /// Returns true if a stretch is on a reverted branch.
    fn is_reverted(&self, stretch: &Stretch) -> Result<bool, OpsError> {
        let record = self.view.record(stretch.said)?;
        Ok(stretch.is_off
            && !self.is_undone(stretch)
            && !self.asides.contains(stretch.said)
            && !self.session.format.is_of_sub_agent(&record))
    }

    /// Returns the damaged entries met so far.
    pub fn damaged(&self) -> Result<Vec<Damaged>, OpsError> {
        Ok(self.damages.met(self.session)?)
    }

    /// Returns the checkpoint before an entry.
    pub(crate) fn before(&self, entry: EntryNumber) -> Result<Option<Given<'_>>, OpsError> {
        Ok(self.places.before(&self.view, entry)?)
    }

    /// Returns true if a stretch was undone and is not back on the current path.
    fn is_undone(&self, stretch: &Stretch) -> bool {
        stretch.is_off && self.undone.contains(stretch.last)
    }

    /// Returns true if a conversation ends with a stretch and no branch ends there.
    fn is_unnamed(&self, stretch: &Stretch) -> Result<bool, OpsError> {
        if !stretch.is_leaf
            || self.heads.contains_key(&stretch.last)
            || self.asides.contains(stretch.said)
        {
            return Ok(false);
        }
        let record = self.view.record(stretch.said)?;
        Ok(record.kind.is_talk() && !self.session.format.is_of_sub_agent(&record))
    }

    fn node(
        &self,
        node: usize,
        stretch: &Stretch,
        facts: &mut Facts,
    ) -> Result<GraphNode, OpsError> {
        let &Stretch { said: first, last, entries, cut, found, cleared, .. } = stretch;
        let branches = self.heads.get(&last).cloned().unwrap_or_default();
        let record = self.view.record(first)?;
        let checkpoint = self.before(first)?;
        let own = checkpoint.and_then(|found| checkpoints::own_selector(self.session, found.own?));
        let said = facts.said.remove(&first).unwrap_or_default();
        let is_sub_agent = self.session.format.is_of_sub_agent(&record);
        let is_apart = self.asides.contains(first);
        let left = self.left.get(&last);
        Ok(GraphNode {
            node,
            id: facts.id(first)?,
            last: facts.id(last)?,
            uuid: said.uuid,
            kind: record.kind,
            time: record.time,
            words: said.words,
            damage: self.damages.of(first),
            is_from_later: record.kind == Kind::Note && said.is_from_later,
            entries: u64::from(entries),
            cut: u64::from(cut),
            found: u64::from(found),
            cleared: u64::from(cleared),
            tokens_before: said.tokens.0,
            tokens_after: said.tokens.1,
            parents: stretch.parents.to_vec(),
            checkpoint: checkpoint.map(|checkpoint| checkpoint.n),
            own,
            marks: self.places.behind(last).to_vec(),
            to: left.and_then(Departure::own).map(str::to_owned),
            left: left.cloned(),
            is_head: branches.contains(&self.current),
            is_aside: is_apart,
            is_unnamed: self.is_unnamed(stretch)?,
            is_reverted: self.is_reverted(stretch)?,
            is_undone: self.is_undone(stretch),
            acts: self.acts.get(node).copied(),
            spent: self.spent.get(node).cloned(),
            lost: self.lost.get(&facts.id(first)?).copied(),
            is_sub_agent,
            branches,
        })
    }
}

/// The imported states of files, and how the agent left those that it set aside.
#[derive(Default)]
struct States {
    /// The end of each state, by generation.
    ends: Vec<Position>,
    /// For each state that the agent set aside: its last entry, and how the agent continued.
    left: BTreeMap<EntryNumber, Departure>,
    /// Pairs of the first entry in the next file and the entry at such an end.
    followed: Vec<(EntryNumber, EntryNumber)>,
}

impl States {
    fn of(session: &At<'_>, damages: &Damages) -> Result<Self, OpsError> {
        let mut states = Self::default();
        for held in states::generations(session)? {
            let end = Position { generation: held.generation, head: None, horizon: held.entries };
            let by = session.store.operations(session.key, held.operation.alone())?;
            if by.first().is_some_and(|by| by.command.takes_in()) {
                states.ends.push(end);
            }
        }
        for left in departures(session, damages)? {
            states.followed.extend(left.next.map(|next| (next, left.head)));
            states.left.insert(left.head, left.by);
        }
        Ok(states)
    }
}

/// The paths of a session.
struct Gathered<'a> {
    /// The paths of branches, current branch first, and of leaves.
    paths: Vec<Vec<EntryNumber>>,
    /// The path of the current branch.
    trunk: Vec<EntryNumber>,
    /// The entries that are on no path.
    asides: EntrySet,
    /// The view, with its caches.
    view: View<'a>,
}

/// Gathers the paths of branches and leaves.
fn gather<'a>(
    session: &'a At<'a>,
    mut view: View<'a>,
    (at, branches): (Option<Position>, Vec<Position>),
    states: &States,
    replays: &Replays,
    all: bool,
) -> Result<Gathered<'a>, OpsError> {
    let mut paths: Vec<Vec<EntryNumber>> = Vec::new();
    let mut whole = BTreeSet::new();
    let mut trunk = Vec::new();
    let mut generations: BTreeMap<GenerationNumber, Vec<Position>> = BTreeMap::new();
    for position in at.into_iter().chain(branches) {
        generations.entry(position.generation).or_default().push(position);
    }
    for (generation, positions) in generations {
        let runs = session.store.runs(session.key, generation, 0)?;
        let horizon = runs.last().map_or(0, Run::end);
        let mut known = EntrySet::default();
        // Entries after a horizon may change the path, so only heads with the same horizon share one.
        for position in positions.iter().filter(|position| position.horizon != horizon) {
            view = view.moved(*position);
            paths.push(view.path(usize::MAX)?.entries);
            if at == Some(*position) {
                trunk = paths.last().cloned().unwrap_or_default();
            }
        }
        view = view.moved(Position { generation, head: None, horizon });
        let heads = positions.iter().filter(|position| position.horizon == horizon);
        if heads.clone().next().is_some() {
            whole.insert(generation);
        }
        let mut found = session.format.paths(&view)?;
        let heads = heads.filter_map(|position| position.head);
        for head in heads.chain(session.format.leaves(&view)?) {
            let is_first = known.is_empty();
            paths.push(wire::added(&mut found, head, &mut known)?);
            if is_first && at == Some(Position { generation, head: Some(head), horizon }) {
                trunk = paths.last().cloned().unwrap_or_default();
            }
        }
    }
    // Other states of files add only entries that are on no path yet.
    let mut known: EntrySet = paths.iter().flatten().copied().collect();
    for end in states.ends.iter().filter(|end| !whole.contains(&end.generation)) {
        view = view.moved(*end);
        let mut found = session.format.paths(&view)?;
        let head = session.format.head(&view)?;
        for leaf in head.into_iter().chain(session.format.leaves(&view)?) {
            if !known.contains(leaf) {
                paths.push(wire::added(&mut found, leaf, &mut known)?);
            }
        }
    }
    let mut asides = EntrySet::default();
    if all {
        for end in &states.ends {
            view = view.moved(*end);
            let mut met = Vec::new();
            for entry in view.sequence()? {
                if !known.contains(entry) && is_message(&view, session, entry)? {
                    known.insert(entry);
                    met.push(entry);
                }
            }
            let is_known = |entry| known.contains(entry);
            paths.extend(unreached(&met, is_known, |entry| view.parent(entry))?);
            asides.extend(met);
        }
    }
    // A record that was written again is one node, whichever of its entries is on a path.
    if !replays.is_empty() {
        let among: EntrySet = paths.iter().flatten().copied().collect();
        for entry in paths.iter_mut().flatten().chain(&mut trunk) {
            *entry = replays.same(*entry, |entry| among.contains(entry));
        }
    }
    Ok(Gathered { paths, trunk, asides, view })
}

/// Returns the edges along the paths, and those between files or to sub-agents.
fn state_edges(
    session: &Session,
    view: &View<'_>,
    trunk: &[EntryNumber],
    paths: &[Vec<EntryNumber>],
    states: &States,
) -> Result<Vec<(EntryNumber, EntryNumber)>, OpsError> {
    let known: EntrySet = paths.iter().flatten().copied().collect();
    let mut edges = edges(trunk, paths);
    let mut firsts: Vec<EntryNumber> =
        paths.iter().filter_map(|path| path.first()).copied().collect();
    firsts.sort_unstable();
    let mut callers = session.format.callers(view);
    for first in firsts {
        let caller = callers(first)?;
        edges.extend(caller.filter(|caller| known.contains(*caller)).map(|caller| (first, caller)));
    }
    let followed: EntrySet = states.followed.iter().map(|(entry, _)| *entry).collect();
    edges.retain(|(child, _)| !followed.contains(*child));
    edges.extend(states.followed.iter().filter(|(child, _)| known.contains(*child)));
    Ok(edges)
}

/// Maps entries to the last entry with the same line that undertext appended to the current path. Where an agent's file can only
/// grow, an undo repeats what a revert removed.
fn repeats(
    session: &At<'_>,
    trunk: &[EntryNumber],
) -> Result<BTreeMap<EntryNumber, EntryNumber>, OpsError> {
    let mut again = EntrySet::default();
    if !session.format.traits().is_rotatable {
        for operation in session.store.operations(session.key, OperationNumber::ALL)? {
            if operation.command.goes_elsewhere() {
                again.extend(EntryNumber::each(operation.added()));
            }
        }
    }
    let said: Vec<EntryNumber> =
        trunk.iter().copied().filter(|entry| again.contains(*entry)).collect();
    let mut lines: BTreeMap<LineId, EntryNumber> = BTreeMap::new();
    session.store.lines(session.key, &said, &mut |entry, line| {
        let line = line.map(|line| LineId::of(&line));
        lines.extend(line.ok().map(|line| (line, entry)));
    })?;
    let mut repeats = BTreeMap::new();
    if !lines.is_empty() {
        let trunk: EntrySet = trunk.iter().copied().collect();
        let all = EntryNumber::each(EntryNumber::FIRST..session.state.next_entry());
        let all: Vec<EntryNumber> = all.filter(|entry| !trunk.contains(*entry)).collect();
        session.store.lines(session.key, &all, &mut |entry, line| {
            let last = line.ok().and_then(|line| lines.get(&LineId::of(&line)));
            repeats.extend(last.map(|last| (entry, *last)));
        })?;
    }
    Ok(repeats)
}

/// Replaces repeated entries by their repeats, on paths and in heads. A record outside of the conversation that follows a
/// repeated entry is dropped from paths, unless a branch ends there.
fn draw_once(
    session: &At<'_>,
    view: &View<'_>,
    trunk: &[EntryNumber],
    paths: &mut [Vec<EntryNumber>],
    heads: BTreeMap<EntryNumber, Vec<String>>,
) -> Result<BTreeMap<EntryNumber, Vec<String>>, OpsError> {
    let again = repeats(session, trunk)?;
    if again.is_empty() {
        return Ok(heads);
    }
    for path in paths {
        let (mut drawn, mut is_repeated) = (Vec::with_capacity(path.len()), false);
        for &entry in path.iter() {
            let last = again.get(&entry).copied();
            let is_beside =
                is_repeated && !view.record(entry)?.kind.is_talk() && !heads.contains_key(&entry);
            is_repeated = last.is_some() || is_beside;
            if last.is_some() || !is_beside {
                drawn.push(last.unwrap_or(entry));
            }
        }
        *path = drawn;
    }
    let mut now: BTreeMap<EntryNumber, Vec<String>> = BTreeMap::new();
    for (head, names) in heads {
        now.entry(again.get(&head).copied().unwrap_or(head)).or_default().extend(names);
    }
    Ok(now)
}

/// Returns the entries that match a pattern.
fn find(session: &At<'_>, pattern: &Pattern) -> Result<EntrySet, OpsError> {
    let mut found = EntrySet::default();
    let all = EntryNumber::FIRST..session.state.next_entry();
    let seeker = Seeker::new(Sought::Pattern(pattern.clone()));
    seeker.scan(session.store, session, None, all, &mut |it| {
        found.insert(it.entry);
    })?;
    Ok(found)
}

/// Returns the entries added by undone operations.
fn undone(session: &At<'_>) -> Result<EntrySet, OpsError> {
    let mut undone = EntrySet::default();
    for n in session.state.undone() {
        let by = session.store.operations(session.key, n.alone())?.pop();
        undone.extend(by.into_iter().flat_map(|by| EntryNumber::each(by.added())));
    }
    Ok(undone)
}

/// Removes ends from a web, repeatedly, as long as `is_meant` selects them.
fn prune(
    nodes: &mut Vec<EntryNumber>,
    edges: &mut Vec<(EntryNumber, EntryNumber)>,
    is_meant: impl Fn(EntryNumber) -> bool,
) {
    let mut parents: BTreeMap<EntryNumber, Vec<EntryNumber>> = BTreeMap::new();
    let mut children: BTreeMap<EntryNumber, usize> = BTreeMap::new();
    edges.sort_unstable();
    edges.dedup();
    for (child, parent) in edges.iter() {
        parents.entry(*child).or_default().push(*parent);
        *children.entry(*parent).or_default() += 1;
    }
    let is_end = |entry: &EntryNumber, children: &BTreeMap<EntryNumber, usize>| {
        is_meant(*entry) && children.get(entry).is_none_or(|children| *children == 0)
    };
    let mut out = EntrySet::default();
    let mut waiting: Vec<EntryNumber> =
        nodes.iter().copied().filter(|entry| is_end(entry, &children)).collect();
    while let Some(entry) = waiting.pop() {
        if !out.insert(entry) {
            continue;
        }
        for parent in parents.get(&entry).into_iter().flatten() {
            children.entry(*parent).and_modify(|children| *children -= 1);
            if is_end(parent, &children) {
                waiting.push(*parent);
            }
        }
    }
    nodes.retain(|entry| !out.contains(*entry));
    edges.retain(|(child, _)| !out.contains(*child));
}

/// Returns the notes that an agent wrote by itself. A note from a later state of the conversation was written by a person.
fn plain_notes(
    session: &At<'_>,
    view: &View<'_>,
    nodes: &[EntryNumber],
) -> Result<EntrySet, OpsError> {
    let mut notes = Vec::new();
    for &entry in nodes {
        let record = view.record(entry)?;
        if record.kind == Kind::Note && !session.format.is_of_sub_agent(&record) {
            notes.push(entry);
        }
    }
    let mut plain = EntrySet::default();
    session.store.lines(session.key, &notes, &mut |entry, line| {
        let line = line.unwrap_or_default();
        if Raw::object(&line).is_some_and(|record| later(session, record).is_none()) {
            plain.insert(entry);
        }
    })?;
    Ok(plain)
}

/// Returns the message that a record brings from a later state of the conversation.
fn later(session: &Session, record: Raw<'_>) -> Option<String> {
    let text = session.format.messages(record).first().map(Message::text).unwrap_or_default();
    let opening = session.format.traits().note_opening;
    let later = note::said_from_later(&text, opening).map(str::to_owned);
    later.or_else(|| session.format.mail(record))
}

/// Returns the messages of entries. An unreadable entry has none.
pub(crate) fn said(
    session: &At<'_>,
    entries: &[EntryNumber],
    damages: &Damages,
) -> Result<Vec<Message>, OpsError> {
    let mut said: Vec<Message> = Vec::new();
    damages.lines(session.store, session.key, entries, &mut |_, line| {
        let record = Raw::object(&line);
        said.extend(record.into_iter().flat_map(|record| session.format.messages(record)));
    })?;
    Ok(said)
}

/// Counts the acts in each stretch, and the files edited in any of them.
fn count_acts(
    session: &At<'_>,
    stretches: &[Stretch],
    members: &[EntryNumber],
    damages: &Damages,
) -> Result<(Vec<Acts>, u64), OpsError> {
    let folder = session.store.card(session.key)?.folder;
    let (mut acts, mut edited) = (vec![Acts::default(); stretches.len()], BTreeSet::new());
    for (acts, stretch) in acts.iter_mut().zip(stretches) {
        let range = stretch.members.start as usize..stretch.members.end as usize;
        let mut said = said(session, members.get(range).unwrap_or_default(), damages)?;
        acts.failed = files::drop_failed(&mut said);
        for message in &mut said {
            message.blocks.retain(|block| match block {
                Block::Call { input, .. } => {
                    acts.commands += u64::from(tools::is_command(input));
                    true
                }
                _ => false,
            });
        }
        for named in files::named(&said, folder.as_deref(), None) {
            acts.edits += named.n_changes;
            if named.n_changes > 0 {
                edited.insert(named.path);
            }
        }
    }
    Ok((acts, edited.len() as u64))
}

/// Details of the first and last entries of stretches.
struct Facts {
    ids: BTreeMap<EntryNumber, EntryId>,
    said: BTreeMap<EntryNumber, Said>,
}

#[derive(Default)]
struct Said {
    uuid: Option<String>,
    tokens: (Option<u64>, Option<u64>),
    words: String,
    is_from_later: bool,
}

impl Facts {
    fn read(session: &At<'_>, stretches: &[Stretch], damages: &Damages) -> Result<Self, OpsError> {
        let mut firsts: Vec<EntryNumber> = stretches.iter().map(|stretch| stretch.said).collect();
        firsts.sort_unstable();
        let lasts = stretches.iter().map(|stretch| stretch.last);
        let wanted: EntrySet = lasts.chain(firsts.iter().copied()).collect();
        let ids = entry_ids(session.store, session, &wanted)?;
        let mut said = BTreeMap::new();
        damages.lines(session.store, session.key, &firsts, &mut |n, line| {
            let record = Raw::object(&line);
            let uuid = record.and_then(|record| session.format.envelope(record).name);
            let messages = record.map(|record| session.format.messages(record)).unwrap_or_default();
            let later = record.and_then(|record| later(session, record));
            let words = match &later {
                Some(later) => beginning(later),
                None => record
                    .and_then(|record| session.format.headline(record))
                    .or_else(|| messages.iter().find_map(words)),
            };
            let words = words.unwrap_or_default();
            let earlier = record.map(|record| session.format.earlier(record)).unwrap_or_default();
            let compacted = earlier.into_iter().find(|earlier| earlier.how == How::Compacted);
            let tokens = compacted.map_or((None, None), |compacted| compacted.tokens);
            said.insert(n, Said { uuid, tokens, words, is_from_later: later.is_some() });
        })?;
        Ok(Self { ids, said })
    }

    fn id(&self, entry: EntryNumber) -> Result<EntryId, OpsError> {
        let id = self.ids.get(&entry).copied();
        Ok(id.ok_or_else(|| SessionError::NoEntry(entry.to_string()))?)
    }
}

/// Returns true if an entry has a message of the user, the model or a tool, even if its record lacks a link.
fn is_message(view: &View<'_>, session: &Session, entry: EntryNumber) -> Result<bool, OpsError> {
    Ok(match view.record(entry)?.kind {
        Kind::Meta => {
            let line = view.line(entry)?;
            Raw::object(&line).is_some_and(|record| !session.format.messages(record).is_empty())
        }
        kind => kind.is_talk() && kind != Kind::Boundary,
    })
}

/// Returns the beginning of a message, or a label for a message without text.
fn words(message: &Message) -> Option<String> {
    let instead = |block: &Block| match block {
        Block::Text(text) => beginning(text),
        Block::Thinking(thinking) => beginning(&thinking.text),
        Block::Result { .. } => beginning(&block.answer_text()),
        Block::Call { name, input, .. } => {
            beginning(&format!("{name} {}", tools::subject(input).unwrap_or_default()))
        }
        Block::Image(_) => Some(Image::WORDS.to_owned()),
        Block::Other { name, .. } => beginning(name),
    };
    let text = message.text();
    let said = derive::words(&text).or_else(|| beginning(&text));
    said.or_else(|| message.parts().find_map(instead))
}

/// Returns the beginning of the first line of a text.
fn beginning(text: &str) -> Option<String> {
    Some(first_line(text)?.chars().take(WORDS).collect())
}
