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
        Block, Command, EntryId, EntryNumber, GenerationNumber, Kind, Message, OperationNumber,
        PlaceNumber, Position, Run,
    },
    ops::{OpsError, note},
    report::{GraphNode, GraphView},
    session::{
        Damages, Session, SessionError, View,
        checkpoints::{self, Places},
        derive, kin,
        replay::Replays,
        stretches::{Stretch, is_aside, stretches},
        tools,
    },
    sync::{Archive, states},
    wire::{self, Departure, Graph, How},
};

/// How many characters of an entry are its first words.
const WORDS: usize = 120;
/// How many ids are read at a time.
const BATCH: usize = 1024;

/// Returns the graph of a session, condensed to turns or with `all` entries.
pub fn graph(archive: &Archive, session: &Session, all: bool) -> Result<GraphView, OpsError> {
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
    let places = Places::since(archive.store(), session, EntryNumber::FIRST)?;
    let replays = Replays::of(archive.store(), session)?;
    let before: BTreeMap<String, OperationNumber> = branches
        .iter()
        .filter_map(|(name, at)| Some((name.clone(), replays.operation(*at)?)))
        .collect();
    let damages = Damages::gathered();
    let mut states = States::of(archive, session, &damages)?;
    let start = Position::default();
    let view = View::new(archive.store(), session, start, None).gathering(&damages);
    let (web, asides, view) = gather(archive, session, view, branches, &states, &replays, all)?;
    let known: BTreeSet<EntryNumber> = web.nodes.iter().copied().collect();
    let mut heads_now: BTreeMap<EntryNumber, Vec<String>> = BTreeMap::new();
    for (head, names) in heads {
        heads_now.entry(replays.last(head, &known)).or_default().extend(names);
    }
    let mut heads = heads_now;
    for names in heads.values_mut() {
        names.sort();
    }
    let ends = |entry: EntryNumber| {
        heads.contains_key(&entry)
            || !places.behind(entry).is_empty()
            || states.left.contains_key(&entry)
    };
    let stretches = stretches(&web, &view, &replays, all, ends)?;
    let mut facts = Facts::read(archive, session, &stretches, &damages)?;
    let nodes = stretches.into_iter().enumerate().map(|(node, stretch)| {
        let Stretch { said: first, last, entries, cut, cleared, parents, is_leaf, .. } = stretch;
        let branches = heads.get(&last).cloned().unwrap_or_default();
        let record = view.record(first)?;
        let checkpoint = places.before(&view, first)?;
        let said = facts.said.remove(&first).unwrap_or_default();
        let is_sub_agent = session.format.is_of_sub_agent(&record);
        Ok(GraphNode {
            node,
            id: facts.id(first)?,
            last: facts.id(last)?,
            uuid: said.uuid,
            kind: record.kind,
            time: record.time,
            words: said.words,
            damage: damages.of(first),
            is_from_later: record.kind == Kind::Note && said.is_from_later,
            entries,
            cut,
            cleared,
            tokens: said.tokens,
            parents,
            checkpoint: checkpoint.map(|checkpoint| checkpoint.n),
            own: checkpoint.and_then(|found| checkpoints::own_selector(session, found)),
            marks: places.behind(last).to_vec(),
            left: states.left.remove(&last),
            is_head: branches.contains(&current),
            is_aside: asides.contains(&first),
            is_unnamed: is_leaf
                && branches.is_empty()
                && !is_sub_agent
                && !is_aside(record.kind)
                && !asides.contains(&first),
            is_sub_agent,
            branches,
        })
    });
    let nodes = nodes.collect::<Result<_, OpsError>>()?;
    let damaged = damages.met(archive.store(), session)?;
    let at = checkpoints::standing_at(archive.store(), session)?;
    let kin = kin(archive.store(), session)?;
    Ok(GraphView { nodes, current, at, empty, before, kin, damaged })
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
            if by.first().is_some_and(|by| matches!(by.command, Command::Import { .. })) {
                states.ends.push(end);
            }
        }
        let order = states::set_aside(archive, session)?;
        for pair in order.windows(2) {
            let [old, next] = pair else { continue };
            let view = |at: &Position| View::new(archive.store(), session, *at, None);
            let look = |at| view(at).gathering(damages);
            let (old, next) = (look(old), look(next));
            let Some(departure) = session.format.departure(&old, &next)? else { continue };
            let Some(head) = session.format.head(&old)? else { continue };
            if departure == Departure::Compaction {
                let mut place = PlaceNumber::FIRST;
                while place < next.end() && next.at(place)? == old.at(place)? {
                    place = place.next();
                }
                states.followed.extend(next.at(place)?.map(|entry| (entry, head)));
            }
            states.left.insert(head, departure);
        }
        Ok(states)
    }
}

/// Gathers the paths of branches and leaves, and the entries to which no path comes; the view is handed back with what it has
/// read.
fn gather<'a>(
    archive: &'a Archive,
    session: &'a Session,
    mut view: View<'a>,
    branches: Vec<(String, Position)>,
    states: &States,
    replays: &Replays,
    all: bool,
) -> Result<(Web<EntryNumber>, BTreeSet<EntryNumber>, View<'a>), OpsError> {
    let mut paths: Vec<Vec<EntryNumber>> = Vec::new();
    let mut whole = BTreeSet::new();
    let mut generations: BTreeMap<GenerationNumber, Vec<Position>> = BTreeMap::new();
    for (_, position) in branches {
        generations.entry(position.generation).or_default().push(position);
    }
    for (generation, positions) in generations {
        let runs = archive.store().runs(session.key, generation, 0)?;
        let horizon = runs.last().map_or(0, Run::end);
        let mut known = BTreeSet::new();
        // Entries behind a horizon can lead elsewhere, so only paths with the same one share.
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
    // Other states of files add the entries to which no path has come yet.
    let mut known: BTreeSet<EntryNumber> = paths.iter().flatten().copied().collect();
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
    // A record that was written again is one node, whichever of its entries a path comes to.
    if !replays.is_empty() {
        let among: BTreeSet<EntryNumber> = paths.iter().flatten().copied().collect();
        for entry in paths.iter_mut().flatten() {
            *entry = replays.last(*entry, &among);
        }
    }
    let pairs = paths.iter().flat_map(|path| path.iter().zip(path.iter().skip(1)));
    let mut edges: Vec<(EntryNumber, EntryNumber)> =
        pairs.map(|(above, entry)| (*entry, *above)).collect();
    for &first in paths.iter().filter_map(|path| path.first()) {
        let caller = session.format.caller(&view, first)?;
        edges.extend(caller.filter(|caller| known.contains(caller)).map(|caller| (first, caller)));
    }
    let followed: BTreeSet<EntryNumber> = states.followed.iter().map(|(entry, _)| *entry).collect();
    edges.retain(|(child, _)| !followed.contains(child));
    edges.extend(states.followed.iter().filter(|(child, _)| known.contains(child)));
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
        let mut wanted: Vec<EntryNumber> = stretches.iter().map(|stretch| stretch.last).collect();
        wanted.extend_from_slice(&firsts);
        wanted.sort_unstable();
        wanted.dedup();
        let mut ids = BTreeMap::new();
        for batch in wanted.chunks(BATCH) {
            let (Some(first), Some(last)) = (batch.first(), batch.last()) else { continue };
            for entry in archive.store().entries(session.key, *first..last.next())? {
                if batch.binary_search(&entry.n).is_ok() {
                    ids.insert(entry.n, entry.id);
                }
            }
        }
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
                Some(later) => first_line(later),
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
        kind => !is_aside(kind) && kind != Kind::Boundary,
    })
}

/// Returns the first words of a message, or the label in their place.
fn words(message: &Message) -> Option<String> {
    let instead = |block: &Block| match block {
        Block::Text(text) => first_line(text),
        Block::Thinking(thinking) => first_line(&thinking.text),
        Block::Result { .. } => first_line(&block.answer_text()),
        Block::Call { name, input, .. } => {
            first_line(&format!("{name} {}", tools::subject(input).unwrap_or_default()))
        }
        Block::Image(_) => Some("[image]".to_owned()),
        Block::Other { name, .. } => first_line(name),
    };
    let text = message.text();
    let said = derive::words(&text).or_else(|| first_line(&text));
    said.or_else(|| message.parts().find_map(instead))
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(WORDS).collect())
}
