//! Lines: the entries of a conversation, with the checkpoints before and behind them.

use std::collections::BTreeMap;

use crate::{
    json::Raw,
    model::{
        Block, Checkpoint, CheckpointNumber, CutOff, EntryId, EntryNumber, EntrySet, Kind, Message,
        Timestamp,
    },
    session::{
        Damaged, Damages, Session, SessionError, Target, View,
        history::sub_agent::{self, SubAgent},
        read::checkpoints::{self, Places},
    },
    store::{Store, whole_lines},
    wire::{Earlier, Graph, Path, Repair},
};

/// How many entries of a long conversation are read at a time.
const BATCH: usize = 256;

/// How many tool calls the layers of a session show.
const RECENT_CALLS: usize = 10;

/// How many entries are looked through for these calls.
const RECENT_ENTRIES: usize = 200;

/// An entry of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the session.
    pub n: EntryNumber,
    /// Its id, if that can be read.
    pub id: Option<EntryId>,
    /// Its record's name.
    pub uuid: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// When it was written, by its own word.
    pub time: Option<Timestamp>,
    /// The checkpoint that comes before it.
    pub checkpoint: Option<CheckpointNumber>,
    /// The agent's own number of it, as a selector.
    pub own: Option<String>,
    /// The checkpoints that were put right behind it.
    pub marks: Vec<Checkpoint>,
    /// Its messages: empty unless it is part of the conversation, several where it represents a history.
    pub messages: Vec<Message>,
    /// The cuts in its answers of tools.
    pub cuts: Vec<CutOff>,
    /// The parts that the agent left out by itself, as its record tells.
    pub earlier: Vec<Earlier>,
    /// The damage of its record, of which then nothing else is known than what was derived from it.
    pub damage: Option<String>,
}

impl Line {
    /// Returns how many characters are hidden of the answer to a call, if it was cut.
    pub fn hidden(&self, call: &str) -> Option<u64> {
        let cuts = self.cuts.iter().filter(|cut| cut.call == call);
        cuts.map(|cut| cut.whole.saturating_sub(cut.kept)).reduce(|one, other| one + other)
    }

    /// Returns the entry as a damaged one, if it is.
    pub fn damaged(&self) -> Option<Damaged> {
        Some(Damaged { entry: self.id, problem: self.damage.clone()? })
    }
}

/// A stretch of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The entries, the first one first.
    pub lines: Vec<Line>,
    /// The sub-agents that they called, where these work in the session's own file.
    pub sub_agents: Vec<SubAgent>,
    /// The repairs that were needed to find them.
    pub repairs: Vec<Repair>,
    /// The damaged entries that were met, whether they are among these or on the way to them.
    pub damaged: Vec<Damaged>,
}

/// A conversation that may be long: its entries are known, and read as they are asked for.
pub struct Conversation<'a> {
    store: &'a dyn Store,
    session: &'a Session,
    view: View<'a>,
    places: Option<Places>,
    entries: Vec<EntryNumber>,
    repairs: Vec<Repair>,
}

impl Conversation<'_> {
    /// Hands over the entries, the first one first, some of them at a time.
    pub fn each<E: From<SessionError>>(
        &self,
        mut each: impl FnMut(&[Line]) -> Result<(), E>,
    ) -> Result<(), E> {
        for entries in self.entries.chunks(BATCH) {
            each(&self.read(entries)?)?;
        }
        Ok(())
    }

    /// Reads some of the entries.
    pub fn read(&self, entries: &[EntryNumber]) -> Result<Vec<Line>, SessionError> {
        lines_between(self.store, self.session, &self.view, self.places.as_ref(), entries)
    }

    /// Returns the damaged entries that were met so far.
    pub fn damaged(&self) -> Result<Vec<Damaged>, SessionError> {
        self.view.damages().met(self.store, self.session)
    }

    /// Reads all of it.
    fn log(self) -> Result<Log, SessionError> {
        let lines = self.read(&self.entries)?;
        let path: Vec<_> = lines.iter().filter_map(|line| Some((line.n, line.id?))).collect();
        let sub_agents = sub_agent::sub_agents(self.store, self.session, &self.view, &path)?;
        Ok(Log { lines, sub_agents, damaged: self.damaged()?, repairs: self.repairs })
    }
}

/// Returns the conversation up to a target, or up to the head of the current branch; of many entries the last `limit`.
pub fn log(
    store: &dyn Store,
    session: &Session,
    target: Option<&Target>,
    limit: usize,
) -> Result<Log, SessionError> {
    conversation(store, session, target, limit)?
        .map_or_else(|| Ok(Log::default()), Conversation::log)
}

/// Returns the same without its words; none if there is no branch.
pub fn conversation<'a>(
    store: &'a dyn Store,
    session: &'a Session,
    target: Option<&Target>,
    limit: usize,
) -> Result<Option<Conversation<'a>>, SessionError> {
    let Some(view) = view(store, session, target)? else { return Ok(None) };
    let path = last(&view, limit)?;
    Ok(Some(spoken(store, session, view, path.entries, path.repairs)?))
}

/// Returns the last entries of the conversation on a view's path, `limit` of many.
pub(crate) fn last(view: &View<'_>, limit: usize) -> Result<Path, SessionError> {
    let mut asked = limit;
    loop {
        let (mut path, is_whole) = conversation_among(view, asked)?;
        if is_whole || path.entries.len() >= limit {
            path.entries.drain(..path.entries.len().saturating_sub(limit));
            return Ok(path);
        }
        asked = asked.saturating_mul(2);
    }
}

/// Returns those of the last `asked` entries of a view's path that are part of the conversation, and whether these are all
/// of them.
pub(crate) fn conversation_among(
    view: &View<'_>,
    asked: usize,
) -> Result<(Path, bool), SessionError> {
    let Path { entries, repairs } = view.path(asked)?;
    let is_whole = entries.len() < asked;
    let mut said = Vec::with_capacity(entries.len());
    for entry in entries {
        if view.record(entry)?.kind.is_conversation() {
            said.push(entry);
        }
    }
    Ok((Path { entries: said, repairs }, is_whole))
}

/// Returns the entries of [`log`], and the records between them that are not part of the conversation.
pub fn log_all(
    store: &dyn Store,
    session: &Session,
    target: Option<&Target>,
    limit: usize,
) -> Result<Log, SessionError> {
    let Some(view) = view(store, session, target)? else { return Ok(Log::default()) };
    let path = view.path(limit)?;
    let on_path: EntrySet = path.entries.iter().copied().collect();
    // An entry off the conversation comes after the entry of the path that it follows in the file.
    let mut asides: BTreeMap<Option<EntryNumber>, Vec<EntryNumber>> = BTreeMap::new();
    let mut before = None;
    for entry in view.lineage()? {
        if on_path.contains(entry) {
            before = Some(entry);
        } else if !view.record(entry)?.kind.is_conversation() {
            asides.entry(before).or_default().push(entry);
        }
    }
    let is_whole = path.entries.len() < limit;
    let mut entries = asides.remove(&None).filter(|_| is_whole).unwrap_or_default();
    for entry in path.entries {
        entries.push(entry);
        entries.extend(asides.remove(&Some(entry)).unwrap_or_default());
    }
    entries.drain(..entries.len().saturating_sub(limit));
    spoken(store, session, view, entries, path.repairs)?.log()
}

/// Returns some entries of the path to a target, with `all` also the records that are no part of the conversation; of many the
/// last `limit`.
pub fn log_of(
    store: &dyn Store,
    session: &Session,
    target: &Target,
    entries: &[EntryNumber],
    all: bool,
    limit: usize,
) -> Result<Log, SessionError> {
    let Some(view) = view(store, session, Some(target))? else { return Ok(Log::default()) };
    let mut said = Vec::with_capacity(entries.len());
    for &entry in entries {
        if all || view.record(entry)?.kind.is_conversation() {
            said.push(entry);
        }
    }
    said.drain(..said.len().saturating_sub(limit));
    spoken(store, session, view, said, Vec::new())?.log()
}

/// Returns the conversation of these entries.
fn spoken<'a>(
    store: &'a dyn Store,
    session: &'a Session,
    view: View<'a>,
    entries: Vec<EntryNumber>,
    repairs: Vec<Repair>,
) -> Result<Conversation<'a>, SessionError> {
    let places = places(store, session, &entries)?;
    Ok(Conversation { store, session, view, places, entries, repairs })
}

/// Returns the checkpoints next to entries.
fn places(
    store: &dyn Store,
    session: &Session,
    entries: &[EntryNumber],
) -> Result<Option<Places>, SessionError> {
    let first = entries.iter().min();
    first.map(|first| Places::since(store, session, *first)).transpose()
}

/// Returns the session as it is seen from a target, or from where the current branch is; damaged lines are gathered.
pub(crate) fn view<'a>(
    store: &'a dyn Store,
    session: &'a Session,
    target: Option<&Target>,
) -> Result<Option<View<'a>>, SessionError> {
    let tip = store.state(session.key)?;
    let position = target.map(|target| target.position).or(tip.position());
    let view = |at| View::new(store, session, at, Some(&tip.spans));
    Ok(position.map(|at| view(at).gathering(&Damages::gathered())))
}

/// Reads entries, in this order; a damaged one is there without its messages, if the view goes on behind it.
pub(crate) fn lines(
    store: &dyn Store,
    session: &Session,
    view: &View<'_>,
    entries: &[EntryNumber],
) -> Result<Vec<Line>, SessionError> {
    lines_between(store, session, view, places(store, session, entries)?.as_ref(), entries)
}

/// Does the same with the checkpoints in memory that stand next to them.
fn lines_between(
    store: &dyn Store,
    session: &Session,
    view: &View<'_>,
    places: Option<&Places>,
    entries: &[EntryNumber],
) -> Result<Vec<Line>, SessionError> {
    let mut ids: BTreeMap<EntryNumber, EntryId> = BTreeMap::new();
    for range in EntryNumber::ranges(entries.iter().copied(), 1) {
        ids.extend(store.entries(session.key, range)?.into_iter().map(|entry| (entry.n, entry.id)));
    }
    let wanted: EntrySet = entries.iter().copied().collect();
    let mut cuts: BTreeMap<EntryNumber, Vec<CutOff>> = BTreeMap::new();
    if let (Some(first), Some(last)) = (entries.iter().min(), entries.iter().max()) {
        for (_, origin) in store.origins(session.key, *first..last.next())? {
            let cut = origin.cut.filter(|_| wanted.contains(origin.entry));
            cuts.extend(cut.map(|cut| (origin.entry, cut.texts)));
        }
    }
    let mut lines = Vec::with_capacity(entries.len());
    view.damages().each_line(store, session.key, entries, &mut |n, line| {
        let record = line.as_deref().and_then(Raw::object);
        let envelope = record.map(|record| session.format.envelope(record));
        lines.push(Line {
            n,
            id: ids.get(&n).copied(),
            uuid: envelope.as_ref().and_then(|envelope| envelope.name.clone()),
            kind: Kind::Opaque,
            time: envelope.and_then(|envelope| envelope.time),
            checkpoint: None,
            own: None,
            marks: Vec::new(),
            messages: record.map(|record| session.format.messages(record)).unwrap_or_default(),
            cuts: cuts.remove(&n).unwrap_or_default(),
            earlier: record.map(|record| session.format.earlier(record)).unwrap_or_default(),
            damage: view.damages().of(n),
        });
    })?;
    for line in &mut lines {
        let record = view.record(line.n)?;
        line.kind = record.kind;
        if line.damage.is_some() {
            line.time = record.time;
        }
        if let Some(places) = places {
            let before = places.before(view, line.n)?;
            line.checkpoint = before.map(|checkpoint| checkpoint.n);
            line.own = before.and_then(|found| checkpoints::own_selector(session, found.own?));
            line.marks = places.behind(line.n).to_vec();
        }
    }
    Ok(lines)
}

/// Returns the entry that a target shows; of a checkpoint that comes before a turn, the turn.
pub fn entry_of(
    store: &dyn Store,
    session: &Session,
    target: &Target,
) -> Result<Option<EntryNumber>, SessionError> {
    let turns = checkpoints::turns(store, session, target.checkpoint.iter())?;
    let turn = turns.into_iter().next().flatten();
    // Entries before the checkpoint are counted from its place.
    let turn = turn.filter(|_| {
        target.checkpoint.as_ref().is_some_and(|found| found.place.head == target.entry())
    });
    Ok(turn.or(target.entry()))
}

/// Returns the messages of an entry.
pub fn messages(
    store: &dyn Store,
    session: &Session,
    entry: EntryNumber,
) -> Result<Vec<Message>, SessionError> {
    let mut messages = Vec::new();
    whole_lines(store, session.key, &[entry], &mut |_, line| {
        messages.extend(
            Raw::object(&line).into_iter().flat_map(|record| session.format.messages(record)),
        );
    })?;
    Ok(messages)
}

/// A recent call of a tool.
#[derive(Clone, Debug)]
pub struct RecentCall {
    /// The tool.
    pub name: String,
    /// The call's id.
    pub id: String,
    /// Whether it succeeded; `None` while it has no result.
    pub succeeded: Option<bool>,
}

/// Returns the last tool calls of the current branch.
pub(crate) fn recent_calls(
    store: &dyn Store,
    session: &Session,
) -> Result<Vec<RecentCall>, SessionError> {
    let mut calls: Vec<RecentCall> = Vec::new();
    for line in log(store, session, None, RECENT_ENTRIES)?.lines {
        for block in line.messages.into_iter().flat_map(|message| message.blocks) {
            match block {
                Block::Call { id, name, .. } => {
                    calls.push(RecentCall { name, id, succeeded: None });
                }
                Block::Result { id, error, .. } => {
                    if let Some(call) = calls.iter_mut().rev().find(|call| call.id == id) {
                        call.succeeded = Some(!error);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(calls.split_off(calls.len().saturating_sub(RECENT_CALLS)))
}
