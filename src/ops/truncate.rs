//! Truncation: the current branch again in a new generation, its oversized tool results cut.
//!
//! ```text
//! old generation   u1 a1 R1 a2 u2 R2     main.1 stays here
//! new generation   u1 a1 r1 a2 u2 r2     main: r1 and r2 name R1 and R2 as their origins; all else are the same entries
//! ```
//!
//! A record that names itself keeps its name, so that whatever refers to it does so still. Where records have no names, an
//! entry's id covers the one before it: what follows a cut are the same lines as new entries, which name the old ones.
//!
//! Invariant: the context has the same messages before and after, in the same order; only texts of results are shorter.

use std::{collections::BTreeMap, path::PathBuf};

use crate::{
    context::cut::Limit,
    live::{Fresh, WritableFile},
    model::{Command, Kind, Position, line},
    ops::{OpsError, shorten},
    report::{Oversized, Truncated},
    session::{
        Session, SessionError, View, origins, ranges,
        tools::{self, CALL_WITHIN},
    },
    store::Store,
    sync::{
        self, Archive, SyncError, Workspace,
        change::Change,
        live_file::LiveFile,
        setting::{line_start, setting},
    },
    wire::{Graph, cut::Shortened},
};

/// How many lines are read at a time.
const BATCH: u64 = 256;

/// Up to where results are let grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// How many characters one may have.
    pub limit: Limit,
    /// The window that the limit was made of, in tokens.
    pub window: Option<u64>,
}

/// A result that is cut, or would be, and what it is cut to.
struct Found {
    oversized: Oversized,
    n: u64,
    first: u64,
    shortened: Shortened,
}

/// Returns the results on the current context that are over a limit, in order.
pub fn oversized(
    archive: &Archive,
    session: &Session,
    bound: Bound,
) -> Result<Vec<Oversized>, OpsError> {
    let tip = archive.store().state(session.key)?;
    let Some(position) = tip.position() else { return Ok(Vec::new()) };
    let view = View::new(archive.store(), session, position, tip.growth().cloned());
    Ok(reported(find(archive.store(), session, &view, bound.limit)?))
}

/// Cuts the results on the current context that are over a limit; what they were stays under them.
pub fn truncate(
    archive: &mut Archive,
    session: &Session,
    bound: Bound,
) -> Result<Truncated, OpsError> {
    let mut change = sync::begin(archive, session)?;
    let branch = change.tip.current().to_owned();
    let mut truncated = Truncated { branch: branch.clone(), ..Truncated::default() };
    let Some(from) = change.position() else {
        truncated.notices = std::mem::take(&mut change.notices);
        return Ok(truncated);
    };
    let found = match change.view(from) {
        Some(view) => find(change.archive.store(), session, &view, bound.limit)?,
        None => Vec::new(),
    };
    if found.is_empty() {
        truncated.notices = std::mem::take(&mut change.notices);
        return Ok(truncated);
    }
    let before = change.growth(from.generation)?.length();
    let replayed = if let Some(live) =
        change.live_file().filter(|live| live.attached && !session.format.traits().is_rotatable)
    {
        restate(&mut change, session, &live, from, &found)?
    } else {
        replay(&mut change, session, from, &found)?
    };
    let left = change.left_name(&branch);
    change.set_branch(&left, Some(from));
    change.set_branch(&branch, Some(replayed.position));
    for one in &found {
        let entry = replayed.entries.get(&one.n).copied().unwrap_or(one.n);
        let Oversized { tool, tokens, .. } = &one.oversized;
        let cutting = shorten::cutting(tool.clone(), &one.shortened.cuts, *tokens);
        change.cut(entry, cutting);
    }
    let command = Command::Truncate {
        branch: change.branch_text(&branch),
        left: Some(change.branch_text(&left)),
        window: bound.window,
        limit: bound.limit.chars() as u64,
    };
    let outcome = sync::commit(change, command)?;
    Ok(Truncated {
        operation: Some(outcome.operation),
        branch,
        left: Some(left),
        results: reported(found),
        saved: before.saturating_sub(replayed.length),
        rotated: replayed.aside,
        written: replayed.written,
        notices: outcome.notices,
    })
}

fn reported(found: Vec<Found>) -> Vec<Oversized> {
    found.into_iter().map(|one| one.oversized).collect()
}

/// Finds what is over a limit in the context of a view's head.
fn find(
    store: &dyn Store,
    session: &Session,
    view: &View<'_>,
    limit: Limit,
) -> Result<Vec<Found>, OpsError> {
    let path = view.path(usize::MAX)?.entries;
    let context = session.format.context(view, &path)?;
    let mut found = Vec::new();
    for range in ranges(&context) {
        let lengths = store.lengths(session.key, range.clone())?;
        for (n, length) in range.zip(lengths) {
            // A character takes a byte or more.
            if length > limit.chars() as u64 && may_answer(view.record(n)?.kind) {
                found.extend(look(store, session, (view, &path), n, limit)?);
            }
        }
    }
    Ok(found)
}

/// Returns whether a record of a kind can hold what a tool answered.
fn may_answer(kind: Kind) -> bool {
    matches!(kind, Kind::Result | Kind::Note | Kind::User | Kind::Boundary)
}

/// Looks whether an entry is over a limit.
fn look(
    store: &dyn Store,
    session: &Session,
    (view, path): (&View<'_>, &[u64]),
    n: u64,
    limit: Limit,
) -> Result<Option<Found>, OpsError> {
    let first = origins::first(store, session, n)?;
    let id = |n: u64| {
        let found = store.entries(session.key, n..n + 1)?;
        found.first().map(|entry| entry.id).ok_or_else(|| SessionError::NoEntry(n.to_string()))
    };
    let origin = id(first)?;
    let shorten =
        |line: &[u8]| shorten::shorten(&session.name.id, session.format, line, origin, limit);
    let mut own = Vec::new();
    store.lines(session.key, &[n], &mut |_, line| own = line)?;
    let Some(mut found) = shorten(&own) else { return Ok(None) };
    // What was cut already is cut anew from the whole, so that each cut text is a beginning of it.
    if first != n {
        let mut whole = Vec::new();
        store.lines(session.key, &[first], &mut |_, line| whole = line)?;
        let Some(anew) = shorten(&whole).filter(|(anew, _)| anew.line != own) else {
            return Ok(None);
        };
        found = anew;
    }
    let (shortened, sizes) = found;
    let call = shortened.cuts.first().map(|cut| cut.call.as_str()).unwrap_or_default();
    let place = path.iter().rposition(|entry| *entry == n).unwrap_or(path.len());
    let above = path.get(place.saturating_sub(CALL_WITHIN)..place).unwrap_or_default();
    let oversized = Oversized {
        entry: id(n)?,
        origin,
        tool: tools::tool(view, session.format, above, call)?,
        chars: sizes.chars,
        tokens: sizes.tokens,
    };
    Ok(Some(Found { oversized, n, first, shortened }))
}

/// A branch that was written again.
struct Replayed {
    position: Position,
    /// The new entry of each that another one stands for now.
    entries: BTreeMap<u64, u64>,
    /// How long the file is.
    length: u64,
    /// The old live file, if it was exchanged.
    aside: Option<PathBuf>,
    /// The agent's own file, if it is written.
    written: Option<PathBuf>,
}

/// Writes the generation of the current branch again, with other lines in the place of some.
fn replay(
    change: &mut Change<'_>,
    session: &Session,
    from: Position,
    found: &[Found],
) -> Result<Replayed, OpsError> {
    let cuts: BTreeMap<u64, &Found> = found.iter().map(|one| (one.n, one)).collect();
    let live = change.live_file();
    change.is_replay = true;
    let mut growth = change.generation(live.as_ref().map(|live| live.n));
    let tail = change.growth(from.generation)?.tail;
    let runs = match change.view(from) {
        Some(view) => view.runs()?.to_vec(),
        None => Vec::new(),
    };
    let mut writer = match &live {
        Some(live) => Some(Copy::begin(&change.writable_file(live)?)?),
        None => None,
    };
    let mut entries = BTreeMap::new();
    for run in &runs {
        let mut separators = run.gaps.iter(run.start, run.count);
        let end = run.first + run.count;
        let mut next = run.first;
        while next < end {
            let batch = next..end.min(next + BATCH);
            next = batch.end;
            let held = change.archive.store().entries(session.key, batch.clone())?;
            let lengths = change.archive.store().lengths(session.key, batch)?;
            for (entry, length) in held.into_iter().zip(lengths) {
                let separator = separators.next().unwrap_or_default();
                if let Some(cut) = cuts.get(&entry.n) {
                    let mut whole = Vec::new();
                    let store = &change.archive.store();
                    store.lines(session.key, &[cut.first], &mut |_, line| whole = line)?;
                    let n = change.take(&mut growth, &line_of(&cut.shortened.line, separator))?;
                    change.replace(n, entry.n, &line_of(&whole, b""));
                    entries.insert(entry.n, n);
                    if let Some(writer) = &mut writer {
                        writer.keep(separator.len() as u64);
                        writer.put(&cut.shortened.line, length)?;
                    }
                    continue;
                }
                let stays = entry.link.is_none() || entry.link == growth.last.map(|(n, _)| n);
                if stays {
                    growth.place(entry.n, entry.id, separator, length);
                } else {
                    let mut line = Vec::new();
                    let store = &change.archive.store();
                    store.lines(session.key, &[entry.n], &mut |_, found| line = found)?;
                    let n = change.take(&mut growth, &line_of(&line, separator))?;
                    change.stand_for(n, entry.n);
                    entries.insert(entry.n, n);
                }
                if let Some(writer) = &mut writer {
                    writer.keep(separator.len() as u64 + length);
                }
            }
        }
    }
    if cuts.keys().any(|n| !entries.contains_key(n)) {
        return Err(SyncError::Unsupported(
            "a result lies in an earlier file of the session; nothing is changed".into(),
        )
        .into());
    }
    if let Some(writer) = &mut writer {
        writer.keep(tail.len() as u64);
    }
    growth.end(tail);
    let head = from.head.map(|head| entries.get(&head).copied().unwrap_or(head));
    let position = Position { generation: growth.generation, head, horizon: growth.entries };
    let length = growth.length();
    change.grown(growth);
    if !is_same(change, from, position, &entries)? {
        return Err(SyncError::Unsupported(
            "the agent would read another context in the new file; nothing is changed".into(),
        )
        .into());
    }
    let written = live.as_ref().filter(|live| live.attached).map(|live| live.path.clone());
    let aside = match (live, writer) {
        (Some(live), Some(writer)) => {
            let generations = (from.generation, position.generation);
            Some(change.exchange_live(&live, writer.finish()?, generations)?)
        }
        _ => None,
    };
    Ok(Replayed { position, entries, length, aside, written })
}

/// Returns whether an agent that resumes what was written again reads the same entries, but for those that stand for others.
fn is_same(
    change: &Change<'_>,
    from: Position,
    position: Position,
    entries: &BTreeMap<u64, u64>,
) -> Result<bool, OpsError> {
    let context = |position: Position| -> Result<Vec<u64>, OpsError> {
        let view = change.look(position);
        let path = view.path(usize::MAX)?.entries;
        Ok(change.format.context(&view, &path)?)
    };
    if change.format.head(&change.look(position))? != position.head {
        return Ok(false);
    }
    let wanted =
        context(from)?.into_iter().map(|entry| entries.get(&entry).copied().unwrap_or(entry));
    Ok(wanted.eq(context(position)?))
}

/// Appends the whole context with the results cut, for an agent whose file cannot be set aside; the cut results
/// themselves lie in no generation.
fn restate(
    change: &mut Change<'_>,
    session: &Session,
    live: &LiveFile,
    from: Position,
    found: &[Found],
) -> Result<Replayed, OpsError> {
    let cuts: BTreeMap<u64, &Found> = found.iter().map(|one| (one.n, one)).collect();
    let mut lines = Vec::new();
    if let Some(view) = change.view(from) {
        let path = view.path(usize::MAX)?.entries;
        for entry in session.format.context(&view, &path)? {
            lines.push(match cuts.get(&entry) {
                Some(cut) => cut.shortened.line.clone(),
                None => view.line(entry)?,
            });
        }
    }
    let setting = setting(change, &Workspace::default(), None)?;
    let record = session.format.whole_context(&lines, &setting);
    let why =
        "its agent reads no record that puts a whole context in the place of another".to_owned();
    let record = record.ok_or_else(|| SyncError::OutOfReach { path: live.path.clone(), why })?;
    let mut growth = change.growth(from.generation)?;
    let mut entries = BTreeMap::new();
    for one in found {
        let mut whole = Vec::new();
        change.archive.store().lines(session.key, &[one.first], &mut |_, line| whole = line)?;
        let n = change.aside(&growth, &line_of(&one.shortened.line, b""))?;
        change.replace(n, one.n, &line_of(&whole, b""));
        entries.insert(one.n, n);
    }
    let mut more = line_start(&growth);
    more.extend(record);
    more.push(b'\n');
    change.read_bytes(&mut growth, &more)?;
    let head = change.head(&growth)?;
    if head != growth.last.map(|(n, _)| n) {
        let why = "it would not go on from a context that is said anew".to_owned();
        return Err(SyncError::OutOfReach { path: live.path.clone(), why }.into());
    }
    let position = Position { generation: growth.generation, head, horizon: growth.entries };
    let length = growth.length();
    change.grown(growth);
    change.append_live(more, length)?;
    Ok(Replayed { position, entries, length, aside: None, written: Some(live.path.clone()) })
}

/// Returns a line of which the bytes are known to be all.
fn line_of<'a>(bytes: &'a [u8], separator: &'a [u8]) -> line::Line<'a> {
    let object = line::split(bytes, false, false).next();
    let shape = object.filter(|line| line.bytes.len() == bytes.len()).and_then(|line| line.shape);
    line::Line { separator, bytes, shape, glued: false }
}

/// The successor of a live file, most of which is copied from it.
struct Copy {
    fresh: Fresh,
    /// The part of the live file that is still to be copied.
    from: u64,
    length: u64,
}

impl Copy {
    fn begin(live: &WritableFile) -> Result<Self, OpsError> {
        let fresh = live.fresh().map_err(|source| io(live, source))?;
        Ok(Self { fresh, from: 0, length: 0 })
    }

    /// Keeps the next bytes.
    fn keep(&mut self, length: u64) {
        self.length += length;
    }

    /// Puts others in the place of the next bytes.
    fn put(&mut self, bytes: &[u8], instead_of: u64) -> Result<(), OpsError> {
        self.flush()?;
        self.fresh.write(bytes).map_err(|source| io(self.fresh.live(), source))?;
        self.from += instead_of;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), OpsError> {
        let copied = self.fresh.copy(self.from, self.length);
        copied.map_err(|source| io(self.fresh.live(), source))?;
        self.from += std::mem::take(&mut self.length);
        Ok(())
    }

    fn finish(mut self) -> Result<Fresh, OpsError> {
        self.flush()?;
        Ok(self.fresh)
    }
}

fn io(live: &WritableFile, source: std::io::Error) -> OpsError {
    SyncError::Io { path: live.path().to_owned(), source }.into()
}
