//! Lines: the entries of a conversation, with the checkpoints before and after them.

use std::collections::BTreeMap;

use crate::{
    json::Raw,
    model::{
        Block, Checkpoint, CheckpointNumber, CutOff, EntryId, EntryNumber, EntrySet, Kind, Message,
        Timestamp,
    },
    session::history::lineage,
    session::{
        Damaged, Damages, SessionError, Stored, Target, View,
        history::sub_agent::{self, SubAgent},
        read::checkpoints::{self, Places},
    },
    store::whole_lines,
    wire::{Earlier, Graph, Path, Repair},
};

/// How many entries of a long conversation are read at a time.
const BATCH: usize = 256;

/// How many tool calls the layers of a session show.
const RECENT_CALLS: usize = 10;

/// How many entries are searched for these calls.
const RECENT_ENTRIES: usize = 200;

/// An entry of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the session.
    pub n: EntryNumber,
    /// Its id, if it can be read.
    pub id: Option<EntryId>,
    /// Its record's name.
    pub uuid: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// Its time, according to its record.
    pub time: Option<Timestamp>,
    /// The checkpoint before it.
    pub checkpoint: Option<CheckpointNumber>,
    /// The agent's own number for it, as a selector.
    pub own: Option<String>,
    /// The checkpoints set directly after it.
    pub marks: Vec<Checkpoint>,
    /// Its messages: empty outside of the conversation, several if it replaces a history.
    pub messages: Vec<Message>,
    /// The cuts in its tool results.
    pub cuts: Vec<CutOff>,
    /// The parts that the agent itself omitted, according to the record.
    pub earlier: Vec<Earlier>,
    /// The damage of its record. Then only what was derived from it is known.
    pub damage: Option<String>,
}

impl Line {
    /// Returns how many characters of the result of a call are hidden, if it was cut.
    pub fn hidden(&self, call: &str) -> Option<u64> {
        let cuts = self.cuts.iter().filter(|cut| cut.call == call);
        cuts.map(|cut| cut.whole.saturating_sub(cut.kept)).reduce(|one, other| one + other)
    }

    /// Returns the entry as a damaged one, if it is.
    pub fn damaged(&self) -> Option<Damaged> {
        Some(Damaged { entry: self.id, problem: self.damage.clone()? })
    }
}

/// A part of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The entries, oldest first.
    pub lines: Vec<Line>,
    /// The sub-agents that they called in the session's own file.
    pub sub_agents: Vec<SubAgent>,
    /// The repairs that were needed to find the path.
    pub repairs: Vec<Repair>,
    /// The damaged entries met, either among these or on the path to them.
    pub damaged: Vec<Damaged>,
}

/// A conversation that may be long: its entries are known and are read on demand.
pub(crate) struct Conversation<'a> {
    session: &'a Stored<'a>,
    view: View<'a>,
    places: Option<Places>,
    entries: Vec<EntryNumber>,
    repairs: Vec<Repair>,
}

impl Conversation<'_> {
    /// Passes on the entries in batches, oldest first.
    pub(crate) fn each<E: From<SessionError>>(
        &self,
        mut each: impl FnMut(Vec<Line>) -> Result<(), E>,
    ) -> Result<(), E> {
        for entries in self.entries.chunks(BATCH) {
            each(self.read(entries)?)?;
        }
        Ok(())
    }

    /// Reads some of the entries.
    pub(crate) fn read(&self, entries: &[EntryNumber]) -> Result<Vec<Line>, SessionError> {
        lines_between(self.session, &self.view, self.places.as_ref(), entries)
    }

    /// Returns the damaged entries met so far.
    pub(crate) fn damaged(&self) -> Result<Vec<Damaged>, SessionError> {
        self.view.damages.met(self.session)
    }

    /// Returns the sub-agents that some of the entries called in the session's own file.
    pub(crate) fn sub_agents(&self, lines: &[Line]) -> Result<Vec<SubAgent>, SessionError> {
        let path: Vec<_> = lines.iter().filter_map(|line| Some((line.n, line.id?))).collect();
        sub_agent::sub_agents(self.session, &self.view, &path)
    }

    fn log(self) -> Result<Log, SessionError> {
        let lines = self.read(&self.entries)?;
        let sub_agents = self.sub_agents(&lines)?;
        Ok(Log { lines, sub_agents, damaged: self.damaged()?, repairs: self.repairs })
    }
}

/// Returns the last `limit` entries of the conversation up to a target, by default the current head.
pub fn log(
    session: &Stored<'_>,
    target: Option<&Target>,
    limit: usize,
) -> Result<Log, SessionError> {
    conversation(session, target, limit)?.map_or_else(|| Ok(Log::default()), Conversation::log)
}

/// Like [`log`], without reading the entries yet. Returns nothing if there is no branch.
pub(crate) fn conversation<'a>(
    session: &'a Stored<'a>,
    target: Option<&Target>,
    limit: usize,
) -> Result<Option<Conversation<'a>>, SessionError> {
    let Some(view) = view(session, target) else { return Ok(None) };
    let path = last(&view, limit)?;
    Ok(Some(spoken(session, view, path.entries, path.repairs)?))
}

/// Returns the last `limit` entries of the conversation on a view's path.
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

/// Returns the last `asked` entries of a view's path that are part of the conversation, and whether these are all.
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

/// Returns the entries of [`log`], and the records outside of the conversation between them.
pub fn log_all(
    session: &Stored<'_>,
    target: Option<&Target>,
    limit: usize,
) -> Result<Log, SessionError> {
    let Some(view) = view(session, target) else { return Ok(Log::default()) };
    let path = view.path(limit)?;
    let on_path: EntrySet = path.entries.iter().copied().collect();
    // A record outside of the conversation goes after the entry of the path that precedes it in the file.
    let mut asides: BTreeMap<Option<EntryNumber>, Vec<EntryNumber>> = BTreeMap::new();
    let mut before = None;
    for entry in lineage::lineage(&view)? {
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
    spoken(session, view, entries, path.repairs)?.log()
}

/// Like [`log`], of some entries on the path to a target.
pub fn log_of(
    session: &Stored<'_>,
    target: &Target,
    entries: &[EntryNumber],
    limit: usize,
) -> Result<Log, SessionError> {
    let Some(view) = view(session, Some(target)) else { return Ok(Log::default()) };
    let mut said = Vec::with_capacity(entries.len());
    for &entry in entries {
        if view.record(entry)?.kind.is_conversation() {
            said.push(entry);
        }
    }
    log_all_of(session, target, &said, limit)
}

/// Like [`log_all`], of some entries on the path to a target.
pub fn log_all_of(
    session: &Stored<'_>,
    target: &Target,
    entries: &[EntryNumber],
    limit: usize,
) -> Result<Log, SessionError> {
    let Some(view) = view(session, Some(target)) else { return Ok(Log::default()) };
    let last = entries.get(entries.len().saturating_sub(limit)..).unwrap_or_default();
    spoken(session, view, last.to_vec(), Vec::new())?.log()
}

/// Returns the conversation with these entries.
pub(crate) fn spoken<'a>(
    session: &'a Stored<'a>,
    view: View<'a>,
    entries: Vec<EntryNumber>,
    repairs: Vec<Repair>,
) -> Result<Conversation<'a>, SessionError> {
    let places = places(session, &entries)?;
    Ok(Conversation { session, view, places, entries, repairs })
}

/// Returns the checkpoints next to entries.
fn places(session: &Stored<'_>, entries: &[EntryNumber]) -> Result<Option<Places>, SessionError> {
    let first = entries.iter().min();
    first.map(|first| Places::since(session, *first)).transpose()
}

/// Returns a view from a target, by default the current head. Damaged lines are gathered.
pub(crate) fn view<'a>(session: &'a Stored<'a>, target: Option<&Target>) -> Option<View<'a>> {
    let position = target.map(|target| target.position).or(session.state.position());
    position.map(|at| session.view(at).gathering(&Damages::gathered()))
}

/// Reads entries, in this order. A damaged one has no messages if the view gathers damage.
pub(crate) fn lines(
    session: &Stored<'_>,
    view: &View<'_>,
    entries: &[EntryNumber],
) -> Result<Vec<Line>, SessionError> {
    lines_between(session, view, places(session, entries)?.as_ref(), entries)
}

/// Like [`lines`], with the checkpoints next to the entries.
fn lines_between(
    session: &Stored<'_>,
    view: &View<'_>,
    places: Option<&Places>,
    entries: &[EntryNumber],
) -> Result<Vec<Line>, SessionError> {
    let mut ids: BTreeMap<EntryNumber, EntryId> = BTreeMap::new();
    for range in EntryNumber::ranges(entries.iter().copied(), 1) {
        ids.extend(
            session.store.entries(session.key, range)?.into_iter().map(|entry| (entry.n, entry.id)),
        );
    }
    let wanted: EntrySet = entries.iter().copied().collect();
    let mut cuts: BTreeMap<EntryNumber, Vec<CutOff>> = BTreeMap::new();
    if let (Some(first), Some(last)) = (entries.iter().min(), entries.iter().max()) {
        for (_, origin) in session.store.origins(session.key, *first..last.next())? {
            let cut = origin.cut.filter(|_| wanted.contains(origin.entry));
            cuts.extend(cut.map(|cut| (origin.entry, cut.texts)));
        }
    }
    let mut lines = Vec::with_capacity(entries.len());
    view.damages.each_line(session.store, session.key, entries, &mut |n, line| {
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
            damage: view.damages.of(n),
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

/// Returns the entry that a target shows; for a checkpoint before a turn, the turn.
pub fn entry_of(
    session: &Stored<'_>,
    target: &Target,
) -> Result<Option<EntryNumber>, SessionError> {
    let turns = checkpoints::turns(session, target.checkpoint.iter())?;
    let turn = turns.into_iter().next().flatten();
    // A target that was moved from the checkpoint's place means its own entry.
    let turn = turn.filter(|_| {
        target.checkpoint.as_ref().is_some_and(|found| found.place.head == target.entry())
    });
    Ok(turn.or(target.entry()))
}

/// Returns the messages of an entry.
pub fn messages(session: &Stored<'_>, entry: EntryNumber) -> Result<Vec<Message>, SessionError> {
    let mut messages = Vec::new();
    whole_lines(session.store, session.key, &[entry], &mut |_, line| {
        messages.extend(
            Raw::object(&line).into_iter().flat_map(|record| session.format.messages(record)),
        );
    })?;
    Ok(messages)
}

/// A recent tool call.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RecentCall {
    /// The tool.
    #[serde(rename = "tool")]
    pub name: String,
    /// The id of the call.
    pub id: String,
    /// Whether the call succeeded; `null` if it has no result yet.
    pub succeeded: Option<bool>,
    /// The time of the record with the call.
    pub time: Option<Timestamp>,
    /// The time from the call to its result in milliseconds, if both times are known.
    pub ms: Option<u64>,
}

/// Returns the last tool calls of the current branch.
pub(crate) fn recent_calls(session: &Stored<'_>) -> Result<Vec<RecentCall>, SessionError> {
    let mut calls: Vec<RecentCall> = Vec::new();
    for line in log(session, None, RECENT_ENTRIES)?.lines {
        let time = line.time;
        for block in line.messages.into_iter().flat_map(|message| message.blocks) {
            match block {
                Block::Call { id, name, .. } => {
                    calls.push(RecentCall { name, id, succeeded: None, time, ms: None });
                }
                Block::Result { id, error, .. } => {
                    if let Some(call) = calls.iter_mut().rev().find(|call| call.id == id) {
                        call.succeeded = Some(!error);
                        let span = |(from, to): (Timestamp, Timestamp)| to.0.checked_sub(from.0);
                        call.ms =
                            call.time.zip(time).and_then(span).and_then(|ms| ms.try_into().ok());
                    }
                }
                _ => {}
            }
        }
    }
    Ok(calls.split_off(calls.len().saturating_sub(RECENT_CALLS)))
}
