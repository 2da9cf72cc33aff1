//! Reading: the conversation of a branch, one entry, a file's bytes, and where a session stands.

use std::{collections::BTreeMap, io};

use super::{catch_up, checkpoint, content};
use crate::{
    model::{Block, Card, EntryId, Kind, Message, Position, Timestamp, json::Raw},
    ops::{Archive, OpsError, Session, Target, View},
    wire::Repair,
};

/// How many tool calls the layers of a session show.
const RECENT_CALLS: usize = 10;
/// How many entries are looked through for them.
const RECENT_ENTRIES: usize = 200;

/// An entry of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the session.
    pub n: u64,
    /// Its id.
    pub id: EntryId,
    /// Its record's name.
    pub uuid: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// When it was written, by its own word.
    pub time: Option<Timestamp>,
    /// The checkpoint that stands before it.
    pub checkpoint: Option<u64>,
    /// What it says, if it is part of the conversation.
    pub message: Option<Message>,
}

/// A stretch of a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The entries, the first one first.
    pub lines: Vec<Line>,
    /// What had to be mended to find them.
    pub repairs: Vec<Repair>,
}

/// Returns the conversation up to a target, or up to the head of the current branch; of many entries the last `limit`.
pub fn log(
    archive: &Archive,
    session: &Session,
    target: Option<&Target>,
    limit: usize,
) -> Result<Log, OpsError> {
    let tip = archive.store.tip(session.key)?;
    let Some(position) = target.map(|target| target.position).or(tip.position) else {
        return Ok(Log::default());
    };
    let view = View::new(archive.store(), session, position, tip.growth);
    let path = view.path(limit)?;
    Ok(Log { lines: lines(archive, session, &view, &path.entries)?, repairs: path.repairs })
}

/// Reads entries, in this order.
fn lines(
    archive: &Archive,
    session: &Session,
    view: &View<'_>,
    entries: &[u64],
) -> Result<Vec<Line>, OpsError> {
    use crate::wire::Graph;
    let mut before: BTreeMap<u64, u64> = BTreeMap::new();
    if !entries.is_empty() {
        for shown in checkpoint::given(archive, session)? {
            before.extend(shown.1.before.map(|entry| (entry, shown.1.n)));
        }
    }
    let mut ids: BTreeMap<u64, EntryId> = BTreeMap::new();
    for range in super::view::ranges(entries) {
        ids.extend(
            archive.store.entries(session.key, range)?.into_iter().map(|entry| (entry.n, entry.id)),
        );
    }
    let mut lines = Vec::with_capacity(entries.len());
    archive.store.lines(session.key, entries, &mut |n, line| {
        let record = Raw::object(&line);
        let envelope = record.map(|record| session.format.envelope(record));
        lines.push(Line {
            n,
            id: ids.get(&n).copied().unwrap_or(EntryId::new([0; 32])),
            uuid: envelope.as_ref().and_then(|envelope| envelope.name.clone()),
            kind: Kind::Opaque,
            time: envelope.and_then(|envelope| envelope.time),
            checkpoint: before.get(&n).copied(),
            message: record.and_then(|record| session.format.message(record)),
        });
    })?;
    for line in &mut lines {
        line.kind = view.record(line.n)?.kind;
    }
    Ok(lines)
}

/// Returns an entry and the bytes of its line.
pub fn show(
    archive: &Archive,
    session: &Session,
    target: &Target,
) -> Result<Option<(Line, Vec<u8>)>, OpsError> {
    let Some(entry) = target.entry() else { return Ok(None) };
    let view = View::new(archive.store(), session, target.position, None);
    let Some(line) = lines(archive, session, &view, &[entry])?.pop() else { return Ok(None) };
    let mut bytes = Vec::new();
    archive.store.lines(session.key, &[entry], &mut |_, found| bytes = found)?;
    Ok(Some((line, bytes)))
}

/// Returns what an entry says.
pub fn message(
    archive: &Archive,
    session: &Session,
    entry: u64,
) -> Result<Option<Message>, OpsError> {
    let mut message = None;
    archive.store.lines(session.key, &[entry], &mut |_, line| {
        message = Raw::object(&line).and_then(|record| session.format.message(record));
    })?;
    Ok(message)
}

/// Writes the bytes of a generation, or of the one in which the current branch stands, and returns how many they are.
pub fn export(
    archive: &Archive,
    session: &Session,
    generation: Option<u64>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    let tip = archive.store.tip(session.key)?;
    let generation = generation.or(tip.position.map(|at| at.generation)).unwrap_or(0);
    if generation == 0 || generation > tip.generations {
        return Err(OpsError::NoGeneration { wanted: generation, newest: tip.generations });
    }
    let runs = archive.store.runs(session.key, generation, 0)?;
    content::write(archive.store(), session, &runs, each)
}

/// Where a session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What lists show of it.
    pub card: Card,
    /// The current branch.
    pub branch: String,
    /// Where it stands.
    pub position: Option<Position>,
    /// The id of its head.
    pub head: Option<EntryId>,
    /// How many branches there are.
    pub branches: u64,
    /// How many entries there are.
    pub entries: u64,
    /// How many operations there are.
    pub operations: u64,
    /// The newest checkpoint that is not undone.
    pub checkpoint: Option<u64>,
    /// The live file.
    pub live: Option<std::path::PathBuf>,
    /// Whether the live file and the store do not agree, so that the next change begins by catching up.
    pub behind: bool,
}

/// Returns where a session stands.
pub fn status(archive: &Archive, session: &Session) -> Result<Status, OpsError> {
    let tip = archive.store.tip(session.key)?;
    let head = tip.position.and_then(|at| at.head);
    let head = head.map(|head| archive.store.entries(session.key, head..head + 1)).transpose()?;
    Ok(Status {
        card: archive.store.card(session.key)?,
        branch: tip.current().to_owned(),
        position: tip.position,
        head: head.and_then(|found| found.first().map(|entry| entry.id)),
        branches: archive.store.branches(session.key)?.len() as u64,
        entries: tip.entries(),
        operations: tip.operations(),
        checkpoint: checkpoint::given(archive, session)?.last().map(|(_, checkpoint)| checkpoint.n),
        live: catch_up::live_file(archive, session, &tip)?.map(|(_, path)| path),
        behind: catch_up::is_behind(archive, session, &tip)?,
    })
}

/// A tool call of late.
pub(super) struct RecentCall {
    pub(super) name: String,
    pub(super) id: String,
    /// Whether it succeeded; none while it has no result.
    pub(super) succeeded: Option<bool>,
}

/// Returns the last tool calls of the current branch.
pub(super) fn recent_calls(
    archive: &Archive,
    session: &Session,
) -> Result<Vec<RecentCall>, OpsError> {
    let mut calls: Vec<RecentCall> = Vec::new();
    for line in log(archive, session, None, RECENT_ENTRIES)?.lines {
        for block in line.message.map(|message| message.blocks).unwrap_or_default() {
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
