//! Reading: the conversation of a branch, one entry, a file's bytes, and where a session stands.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{
    beside, catch_up,
    checkpoint::{self, Places},
    content, kin,
};
use crate::{
    json::Raw,
    model::{Block, Card, Checkpoint, EntryId, Kind, Message, Position, Run, State, Timestamp},
    ops::{Archive, Elsewhere, Kin, OpsError, Session, Target, View},
    wire::{Graph, Repair},
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
    /// The agent's own number of it, as a selector.
    pub own: Option<String>,
    /// The checkpoints that were put right behind it.
    pub marks: Vec<Checkpoint>,
    /// What it says: nothing unless it is part of the conversation, several messages where it stands for a history.
    pub messages: Vec<Message>,
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
    let Some(view) = view(archive, session, target)? else { return Ok(Log::default()) };
    let mut asked = limit;
    loop {
        let path = view.path(asked)?;
        let is_whole = path.entries.len() < asked;
        let mut entries = Vec::with_capacity(path.entries.len());
        for entry in path.entries {
            if !is_aside(view.record(entry)?.kind) {
                entries.push(entry);
            }
        }
        if is_whole || entries.len() >= limit {
            entries.drain(..entries.len().saturating_sub(limit));
            return Ok(Log {
                lines: lines(archive, session, &view, &entries)?,
                repairs: path.repairs,
            });
        }
        asked = asked.saturating_mul(2);
    }
}

/// Returns what [`log`] does, and the records between that are no part of the conversation.
pub fn log_all(
    archive: &Archive,
    session: &Session,
    target: Option<&Target>,
    limit: usize,
) -> Result<Log, OpsError> {
    let Some(view) = view(archive, session, target)? else { return Ok(Log::default()) };
    let path = view.path(limit)?;
    let on_path: BTreeSet<u64> = path.entries.iter().copied().collect();
    // What is aside stands behind the entry of the path that it follows in the file.
    let mut asides: BTreeMap<Option<u64>, Vec<u64>> = BTreeMap::new();
    let mut before = None;
    for entry in view.lineage()? {
        if on_path.contains(&entry) {
            before = Some(entry);
        } else if is_aside(view.record(entry)?.kind) {
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
    Ok(Log { lines: lines(archive, session, &view, &entries)?, repairs: path.repairs })
}

/// Returns whether records of a kind are no part of the conversation.
pub(super) fn is_aside(kind: Kind) -> bool {
    matches!(kind, Kind::Meta | Kind::Opaque)
}

/// Returns the session as it is seen from a target, or from where the current branch stands.
fn view<'a>(
    archive: &'a Archive,
    session: &'a Session,
    target: Option<&Target>,
) -> Result<Option<View<'a>>, OpsError> {
    let tip = archive.store.state(session.key)?;
    let position = target.map(|target| target.position).or(tip.position());
    Ok(position
        .map(|position| View::new(archive.store(), session, position, tip.growth().cloned())))
}

/// Reads entries, in this order.
pub(super) fn lines(
    archive: &Archive,
    session: &Session,
    view: &View<'_>,
    entries: &[u64],
) -> Result<Vec<Line>, OpsError> {
    let first = entries.iter().min();
    let places = first.map(|first| Places::since(archive, session, *first)).transpose()?;
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
            checkpoint: None,
            own: None,
            marks: Vec::new(),
            messages: record.map(|record| session.format.messages(record)).unwrap_or_default(),
        });
    })?;
    for line in &mut lines {
        line.kind = view.record(line.n)?.kind;
        if let Some(places) = &places {
            let before = places.before(view, line.n)?;
            line.checkpoint = before.map(|checkpoint| checkpoint.n);
            line.own = before.and_then(|found| checkpoint::own_selector(session, found));
            line.marks = places.behind(line.n).to_vec();
        }
    }
    Ok(lines)
}

/// Returns an entry and the bytes of its line; of a checkpoint that stands before a turn, the turn.
pub fn show(
    archive: &Archive,
    session: &Session,
    target: &Target,
) -> Result<Option<(Line, Vec<u8>)>, OpsError> {
    let Some(entry) = entry_of(archive, session, target)? else { return Ok(None) };
    let view = View::new(archive.store(), session, target.position, None);
    let Some(line) = lines(archive, session, &view, &[entry])?.pop() else { return Ok(None) };
    let mut bytes = Vec::new();
    archive.store.lines(session.key, &[entry], &mut |_, found| bytes = found)?;
    Ok(Some((line, bytes)))
}

/// Returns the entry that a target shows; of a checkpoint that stands before a turn, the turn.
pub(super) fn entry_of(
    archive: &Archive,
    session: &Session,
    target: &Target,
) -> Result<Option<u64>, OpsError> {
    let turns = checkpoint::turns(archive, session, target.checkpoint.iter())?;
    let turn = turns.into_iter().next().flatten();
    // Entries before the checkpoint are counted from its place.
    let turn = turn.filter(|_| {
        target.checkpoint.as_ref().is_some_and(|found| found.place.head == target.entry())
    });
    Ok(turn.or(target.entry()))
}

/// Returns what an entry says.
pub fn messages(
    archive: &Archive,
    session: &Session,
    entry: u64,
) -> Result<Vec<Message>, OpsError> {
    let mut messages = Vec::new();
    archive.store.lines(session.key, &[entry], &mut |_, line| {
        messages.extend(
            Raw::object(&line).into_iter().flat_map(|record| session.format.messages(record)),
        );
    })?;
    Ok(messages)
}

/// Returns the compressed file that held a generation: its operation, its place among what that kept, and its size.
fn container(tip: &State, generation: u64) -> Option<(u64, u64, u64)> {
    let mut newest = tip.containers.iter().rev();
    let found = newest.find(|(.., container)| container.generation == generation);
    found.map(|(operation, at, container)| (*operation, *at, container.size))
}

/// Returns the generation that a file's name selects: of several states of a file the newest.
pub fn generation_of(archive: &Archive, session: &Session, file: &Path) -> Result<u64, OpsError> {
    let held = generations(archive, session)?;
    let named = |held: &Held| held.file.as_deref().is_some_and(|path| path.ends_with(file));
    let mut found: BTreeMap<&Path, u64> = BTreeMap::new();
    for held in held.iter().filter(|held| named(held)) {
        found.extend(held.file.as_deref().map(|path| (path, held.generation)));
    }
    let exact = found.get(file).copied();
    match (exact, found.len()) {
        (Some(generation), _) => Ok(generation),
        (None, 1) => Ok(found.into_values().next().unwrap_or_default()),
        _ => {
            let among: BTreeSet<PathBuf> = held.into_iter().filter_map(|held| held.file).collect();
            Err(OpsError::NoFile { wanted: file.to_owned(), among: among.into_iter().collect() })
        }
    }
}

/// Writes the bytes of a generation, or of the one in which the current branch stands, and returns how many they are.
pub fn export(
    archive: &Archive,
    session: &Session,
    generation: Option<u64>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    let tip = archive.store.state(session.key)?;
    let generation = generation.or(tip.position().map(|at| at.generation)).unwrap_or(0);
    let newest = tip.generations.len() as u64;
    if generation == 0 || generation > newest {
        return Err(OpsError::NoGeneration { wanted: generation, newest });
    }
    let runs = archive.store.runs(session.key, generation, 0)?;
    content::write(archive.store(), session, &runs, each)
}

/// Writes the compressed file that held a generation, or the one in which the current branch stands, as it lay on the disk,
/// and returns how many bytes it has.
pub fn export_container(
    archive: &Archive,
    session: &Session,
    generation: Option<u64>,
    each: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<u64, OpsError> {
    let tip = archive.store.state(session.key)?;
    let generation = generation.or(tip.position().map(|at| at.generation)).unwrap_or(0);
    let container = container(&tip, generation);
    let (operation, at, size) = container.ok_or(OpsError::NoContainer { generation })?;
    let bytes = archive.store.kept(session.key, operation, at)?;
    each(&bytes).map_err(|source| OpsError::Write { source })?;
    Ok(size)
}

/// A state of a file that a session holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub generation: u64,
    /// The file, wherever it is now; none if the session was changed without one.
    pub file: Option<PathBuf>,
    /// How many entries it has.
    pub entries: u64,
    /// How many bytes.
    pub bytes: u64,
    /// The operation that began it.
    pub operation: u64,
    /// How many bytes the compressed file has that held it.
    pub container: Option<u64>,
    /// Whether the current branch stands in it.
    pub is_current: bool,
}

/// Returns the states of files that a session holds, in order.
pub fn generations(archive: &Archive, session: &Session) -> Result<Vec<Held>, OpsError> {
    let tip = archive.store.state(session.key)?;
    let current = tip.position().map(|at| at.generation);
    let mut held = Vec::with_capacity(tip.generations.len());
    for (operation, generation) in &tip.generations {
        let end = tip.ends.get(&generation.n);
        let path = generation.file.and_then(|file| archive.path_of(tip.file(file)?));
        let aside = tip.rotations.iter().find(|(_, rotation)| rotation.old == generation.n);
        held.push(Held {
            generation: generation.n,
            file: path.map(|path| match aside {
                Some((_, aside)) => path.with_file_name(OsStr::from_bytes(&aside.aside)),
                None => path,
            }),
            entries: end.map_or(0, Run::end),
            bytes: end.map_or(0, |run| run.bytes + run.tail.len() as u64),
            operation: *operation,
            container: container(&tip, generation.n).map(|(.., size)| size),
            is_current: Some(generation.n) == current,
        });
    }
    Ok(held)
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
    /// The session that it was made of.
    pub kin: Option<Kin>,
    /// Where its history begins, if it cannot be read there.
    pub elsewhere: Option<Elsewhere>,
    /// The live file.
    pub live: Option<PathBuf>,
    /// Whether the live file and the store do not agree, so that the next change begins by catching up.
    pub behind: bool,
}

/// Returns where a session stands.
pub fn status(archive: &Archive, session: &Session) -> Result<Status, OpsError> {
    let tip = archive.store.state(session.key)?;
    let head = tip.position().and_then(|at| at.head);
    let head = head.map(|head| archive.store.entries(session.key, head..head + 1)).transpose()?;
    Ok(Status {
        card: archive.store.card(session.key)?,
        branch: tip.current().to_owned(),
        position: tip.position(),
        head: head.and_then(|found| found.first().map(|entry| entry.id)),
        branches: tip.branches.len() as u64,
        entries: tip.entries(),
        operations: tip.operations(),
        checkpoint: checkpoint::newest(archive, session)?.map(|checkpoint| checkpoint.n),
        kin: kin::kin(archive, session)?,
        elsewhere: elsewhere(archive, session)?,
        live: catch_up::live_file(archive, &tip).map(|live| live.path),
        behind: catch_up::is_behind(archive, &tip)?,
    })
}

/// Returns where the history of the current branch begins, if it cannot be read there.
pub fn elsewhere(archive: &Archive, session: &Session) -> Result<Option<Elsewhere>, OpsError> {
    view(archive, session, None)?.map_or(Ok(None), |view| view.elsewhere())
}

/// Returns the file in which the agent goes on in the place of the live file, or of a file that is shown as it is.
pub fn left_for(archive: &Archive, session: &Session) -> Result<Option<PathBuf>, OpsError> {
    let shown = if archive.root().is_some() {
        let live = catch_up::live_file(archive, &archive.store.state(session.key)?);
        live.filter(|live| live.attached).map(|live| live.path)
    } else {
        let held = generations(archive, session)?;
        held.into_iter().find(|held| held.is_current).and_then(|held| held.file)
    };
    Ok(shown.and_then(|path| beside::successor(session.format, &path)))
}

/// Returns whether the live file and the store do not agree, so that the next change begins by catching up.
pub fn is_behind(archive: &Archive, session: &Session) -> Result<bool, OpsError> {
    catch_up::is_behind(archive, &archive.store.state(session.key)?)
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
