//! The graph of a session: where its paths part, what stands at their ends, and the ends without a name.
//!
//! The nodes are the entries on the paths of all branches, on the paths to the leaves of every generation in which a
//! branch stands, and on those of every other state of a file taken in. An entry that several generations hold is
//! one node; its parents are the entries that stand before it on some path. An agent's compaction into another file is
//! followed by its summary there, and a call by the sub-agent in the same file. Condensed, a node is a stretch that begins with a turn, a boundary, a note or behind a fork:
//! ```text
//! entries   u1 a1 t1 r1 u2 a2        nodes   u1 (4 entries) - u2 (2 entries)
//!                    \ u3                                   \ u3
//! ```
//!
//! Invariant: a node stands before its parents, so the answer has no cycle even where the paths do.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    dag::{Web, unreached},
    json::Raw,
    model::{
        Block, CheckpointNumber, EntryId, EntryNumber, EntrySet, GenerationNumber, Kind, Message,
        OperationNumber, Position, Run, first_line,
    },
    ops::{OpsError, edges::edges, note},
    report::{GraphNode, GraphView},
    search::{Pattern, Seeker},
    session::{
        Damaged, Damages, Kin, Session, SessionError, Spot, View,
        checkpoints::{self, Given, Places},
        departures::departures,
        derive, entry_ids, kin,
        replay::Replays,
        stretches::{Stretch, path_first, stretches},
        tools,
    },
    sync::{Archive, states},
    wire::{self, Departure, Graph, How},
};

/// How many characters of an entry are its first words.
const WORDS: usize = 120;
/// How many nodes are read at a time.
const BATCH: usize = 256;

/// A session as a graph, whose nodes are read as they are handed over.
pub struct Drawing<'a> {
    archive: &'a Archive,
    session: &'a Session,
    view: View<'a>,
    damages: Damages,
    places: Places,
    stretches: Vec<Stretch>,
    /// The branches that stand at an entry.
    heads: BTreeMap<EntryNumber, Vec<String>>,
    left: BTreeMap<EntryNumber, Departure>,
    asides: EntrySet,
    /// The current branch.
    pub current: String,
    /// The node at which it ends.
    pub head: Option<usize>,
    /// Where it ends, among the checkpoints.
    pub at: Option<Spot>,
    /// The newest checkpoint that stands at a node.
    pub newest: Option<CheckpointNumber>,
    /// The branches that stand before the first entry.
    pub empty: Vec<String>,
    /// The branches that show the state before an operation wrote it again.
    pub before: BTreeMap<String, OperationNumber>,
    /// The session that it was made of.
    pub kin: Option<Kin>,
}

/// What stands at a node of a graph before its entries are read.
#[derive(Clone, Copy, Debug)]
pub struct Outlined<'d> {
    /// Its place in the list, from 0.
    pub node: usize,
    /// The nodes that it follows, by their places in the list.
    pub parents: &'d [usize],
    /// The checkpoint that stands before it.
    pub checkpoint: Option<CheckpointNumber>,
    /// Whether a conversation of the session's own begins with it.
    pub is_root: bool,
}

/// Returns the graph of a session, condensed to turns or with `all` entries.
pub fn graph(archive: &Archive, session: &Session, all: bool) -> Result<GraphView, OpsError> {
    let drawing = drawing(archive, session, all, None)?;
    let mut nodes = Vec::new();
    drawing.each(|node| {
        nodes.push(node);
        Ok::<_, OpsError>(())
    })?;
    let damaged = drawing.damaged()?;
    let Drawing { current, at, empty, before, kin, .. } = drawing;
    Ok(GraphView { nodes, current, at, empty, before, kin, damaged })
}

/// Returns the same as a drawing, which holds none of its words: for a session that may be long. A node tells how many of its
/// entries hold a pattern, if one is given.
pub fn drawing<'a>(
    archive: &'a Archive,
    session: &'a Session,
    all: bool,
    pattern: Option<&Pattern>,
) -> Result<Drawing<'a>, OpsError> {
    let state = archive.store().state(session.key)?;
    let current = state.current().to_owned();
    let mut heads: BTreeMap<EntryNumber, Vec<String>> = BTreeMap::new();
    let mut empty = Vec::new();
    let branches: Vec<(String, Position)> = state.branches.into_iter().collect();
    for (name, position) in &branches {
        match position.head {
            Some(head) => heads.entry(head).or_default().push(name.clone()),
            None => empty.push(name.clone()),
        }
    }
    let replays = Replays::of(archive.store(), session)?;
    let before: BTreeMap<String, OperationNumber> = branches
        .iter()
        .filter_map(|(name, at)| Some((name.clone(), replays.operation(*at)?)))
        .collect();
    let damages = Damages::gathered();
    let states = States::of(archive, session, &damages)?;
    let start = Position::default();
    let view = View::new(archive.store(), session, start, Some(&state.spans)).gathering(&damages);
    let at = branches.iter().find(|(name, _)| *name == current).map(|(_, at)| *at);
    let positions = branches.into_iter().map(|(_, position)| position);
    let positions = positions.filter(|position| Some(*position) != at).collect();
    let (web, asides, view) =
        gather(archive, session, view, (at, positions), &states, &replays, all)?;
    let is_known = |entry: EntryNumber| web.nodes.binary_search(&entry).is_ok();
    let mut heads_now: BTreeMap<EntryNumber, Vec<String>> = BTreeMap::new();
    for (head, names) in heads {
        heads_now.entry(replays.same(head, is_known)).or_default().extend(names);
    }
    let mut heads = heads_now;
    for names in heads.values_mut() {
        names.sort();
    }
    let left = states.left;
    let places = Places::since(archive.store(), session, EntryNumber::FIRST)?;
    let ends = |entry: EntryNumber| {
        heads.contains_key(&entry) || !places.behind(entry).is_empty() || left.contains_key(&entry)
    };
    let mut found = EntrySet::default();
    if let Some(pattern) = pattern {
        let end = archive.store().state(session.key)?.next_entry();
        let all = EntryNumber::FIRST..end;
        Seeker::new(pattern.clone()).scan(archive.store(), (session, None), all, &mut |it| {
            found.insert(it.entry);
        })?;
    }
    let mut stretches = stretches(web, &view, &replays, &found, all, ends)?;
    let is_here = |stretch: &Stretch| {
        heads.get(&stretch.last).is_some_and(|branches| branches.contains(&current))
    };
    let head = stretches.iter().position(is_here);
    let head = head.map(|head| path_first(&mut stretches, head));
    let at = checkpoints::standing_at(archive.store(), session)?;
    let kin = kin(archive.store(), session)?;
    let mut drawing = Drawing {
        archive,
        session,
        view,
        damages,
        places,
        stretches,
        heads,
        left,
        asides,
        current,
        head,
        at,
        newest: None,
        empty,
        before,
        kin,
    };
    let mut newest = None;
    for stretch in &drawing.stretches {
        let marks = drawing.places.behind(stretch.last).iter().map(|mark| mark.n).max();
        newest = newest.max(marks).max(drawing.before(stretch.said)?.map(|given| given.n));
    }
    drawing.newest = newest;
    Ok(drawing)
}

impl Drawing<'_> {
    /// Returns the outlines of the nodes, each before its parents, the newest first.
    pub fn outline(&self) -> impl Iterator<Item = Result<Outlined<'_>, OpsError>> {
        self.stretches.iter().enumerate().map(|(node, Stretch { said, parents, .. })| {
            let checkpoint = self.before(*said)?.map(|given| given.n);
            let is_sub_agent = || {
                Ok::<_, OpsError>(self.session.format.is_of_sub_agent(&self.view.record(*said)?))
            };
            let is_root = parents.is_empty() && !self.asides.contains(*said) && !is_sub_agent()?;
            Ok(Outlined { node, parents, checkpoint, is_root })
        })
    }

    /// Hands over the nodes in the order of their outlines; a few of them are read at a time.
    pub fn each<E: From<OpsError>>(
        &self,
        mut each: impl FnMut(GraphNode) -> Result<(), E>,
    ) -> Result<(), E> {
        for (batch, stretches) in self.stretches.chunks(BATCH).enumerate() {
            let mut facts = Facts::read(self.archive, self.session, stretches, &self.damages)?;
            for (n, stretch) in stretches.iter().enumerate() {
                each(self.node(batch * BATCH + n, stretch, &mut facts)?)?;
            }
        }
        Ok(())
    }

    /// Returns the damaged entries that were met so far.
    pub fn damaged(&self) -> Result<Vec<Damaged>, OpsError> {
        Ok(self.damages.met(self.archive.store(), self.session)?)
    }

    /// Returns the checkpoint that stands before an entry.
    fn before(&self, entry: EntryNumber) -> Result<Option<Given<'_>>, OpsError> {
        Ok(self.places.before(&self.view, entry)?)
    }

    fn node(
        &self,
        node: usize,
        stretch: &Stretch,
        facts: &mut Facts,
    ) -> Result<GraphNode, OpsError> {
        let &Stretch { said: first, last, entries, cut, found, cleared, is_leaf, .. } = stretch;
        let branches = self.heads.get(&last).cloned().unwrap_or_default();
        let record = self.view.record(first)?;
        let checkpoint = self.before(first)?;
        let own = checkpoint.and_then(|found| checkpoints::own_selector(self.session, found.own?));
        let said = facts.said.remove(&first).unwrap_or_default();
        let is_sub_agent = self.session.format.is_of_sub_agent(&record);
        let is_apart = self.asides.contains(first);
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
            tokens: said.tokens,
            parents: stretch.parents.to_vec(),
            checkpoint: checkpoint.map(|checkpoint| checkpoint.n),
            own,
            marks: self.places.behind(last).to_vec(),
            left: self.left.get(&last).cloned(),
            is_head: branches.contains(&self.current),
            is_aside: is_apart,
            is_unnamed: is_leaf
                && branches.is_empty()
                && !is_sub_agent
                && record.kind.is_talk()
                && !is_apart,
            is_sub_agent,
            branches,
        })
    }
}

/// The states of files that were taken in, and how the agent left those that it set aside.
#[derive(Default)]
struct States {
    /// Each by its generation's end.
    ends: Vec<Position>,
    /// How the agent left the entry at the end of a state that it set aside.
    left: BTreeMap<EntryNumber, Departure>,
    /// What follows such an end in the next file, before the entry there.
    followed: Vec<(EntryNumber, EntryNumber)>,
}

impl States {
    fn of(archive: &Archive, session: &Session, damages: &Damages) -> Result<Self, OpsError> {
        let mut states = Self::default();
        for held in states::generations(archive, session)? {
            let end = Position { generation: held.generation, head: None, horizon: held.entries };
            let by = archive.store().operations(session.key, held.operation.alone())?;
            if by.first().is_some_and(|by| by.command.takes_in()) {
                states.ends.push(end);
            }
        }
        let tip = archive.store().state(session.key)?;
        for left in departures(archive.store(), session, &tip, damages)? {
            states.followed.extend(left.next.map(|next| (next, left.head)));
            states.left.insert(left.head, left.by);
        }
        Ok(states)
    }
}

/// Gathers the paths of branches, of the current one first, and of leaves, and the entries to which no path comes; the view is
/// handed back with what it has read.
fn gather<'a>(
    archive: &'a Archive,
    session: &'a Session,
    mut view: View<'a>,
    (at, branches): (Option<Position>, Vec<Position>),
    states: &States,
    replays: &Replays,
    all: bool,
) -> Result<(Web<EntryNumber>, EntrySet, View<'a>), OpsError> {
    let mut paths: Vec<Vec<EntryNumber>> = Vec::new();
    let mut whole = BTreeSet::new();
    let mut trunk = Vec::new();
    let mut generations: BTreeMap<GenerationNumber, Vec<Position>> = BTreeMap::new();
    for position in at.into_iter().chain(branches) {
        generations.entry(position.generation).or_default().push(position);
    }
    for (generation, positions) in generations {
        let runs = archive.store().runs(session.key, generation, 0)?;
        let horizon = runs.last().map_or(0, Run::end);
        let mut known = EntrySet::default();
        // Entries behind a horizon can lead elsewhere, so only paths with the same one share.
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
    // Other states of files add the entries to which no path has come yet.
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
    // A record that was written again is one node, whichever of its entries a path comes to.
    if !replays.is_empty() {
        let among: EntrySet = paths.iter().flatten().copied().collect();
        for entry in paths.iter_mut().flatten().chain(&mut trunk) {
            *entry = replays.same(*entry, |entry| among.contains(entry));
        }
    }
    let mut edges = edges(&trunk, &paths);
    let mut firsts: Vec<EntryNumber> =
        paths.iter().filter_map(|path| path.first()).copied().collect();
    firsts.sort_unstable();
    let mut callers = session.format.callers(&view);
    for first in firsts {
        let caller = callers(first)?;
        edges.extend(caller.filter(|caller| known.contains(*caller)).map(|caller| (first, caller)));
    }
    drop(callers);
    let followed: EntrySet = states.followed.iter().map(|(entry, _)| *entry).collect();
    edges.retain(|(child, _)| !followed.contains(*child));
    edges.extend(states.followed.iter().filter(|(child, _)| known.contains(*child)));
    Ok((Web::new(paths.concat(), edges), asides, view))
}

/// Facts of the entries that stretches begin and end with.
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
    fn read(
        archive: &Archive,
        session: &Session,
        stretches: &[Stretch],
        damages: &Damages,
    ) -> Result<Self, OpsError> {
        let mut firsts: Vec<EntryNumber> = stretches.iter().map(|stretch| stretch.said).collect();
        firsts.sort_unstable();
        let lasts = stretches.iter().map(|stretch| stretch.last);
        let wanted: EntrySet = lasts.chain(firsts.iter().copied()).collect();
        let ids = entry_ids(archive.store(), session, &wanted)?;
        let mut said = BTreeMap::new();
        damages.lines(archive.store(), session.key, &firsts, &mut |n, line| {
            let record = Raw::object(&line);
            let uuid = record.and_then(|record| session.format.envelope(record).name);
            let messages = record.map(|record| session.format.messages(record)).unwrap_or_default();
            let text = messages.first().map(Message::text).unwrap_or_default();
            let opening = session.format.traits().note_opening;
            let later = note::said_from_later(&text, opening).map(str::to_owned);
            let later = later.or_else(|| session.format.mail(record?));
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

/// Returns whether an entry holds words of the user, the model or a tool, though its record may lack what a link needs.
fn is_message(view: &View<'_>, session: &Session, entry: EntryNumber) -> Result<bool, OpsError> {
    Ok(match view.record(entry)?.kind {
        Kind::Meta => {
            let line = view.line(entry)?;
            Raw::object(&line).is_some_and(|record| !session.format.messages(record).is_empty())
        }
        kind => kind.is_talk() && kind != Kind::Boundary,
    })
}

/// Returns the first words of a message, or the label in their place.
fn words(message: &Message) -> Option<String> {
    let instead = |block: &Block| match block {
        Block::Text(text) => beginning(text),
        Block::Thinking(thinking) => beginning(&thinking.text),
        Block::Result { .. } => beginning(&block.answer_text()),
        Block::Call { name, input, .. } => {
            beginning(&format!("{name} {}", tools::subject(input).unwrap_or_default()))
        }
        Block::Image(_) => Some("[image]".to_owned()),
        Block::Other { name, .. } => beginning(name),
    };
    let text = message.text();
    let said = derive::words(&text).or_else(|| beginning(&text));
    said.or_else(|| message.parts().find_map(instead))
}

/// Returns the beginning of a text.
fn beginning(text: &str) -> Option<String> {
    Some(first_line(text)?.chars().take(WORDS).collect())
}
