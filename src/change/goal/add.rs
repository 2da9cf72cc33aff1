//! Add: writes records at the end of the current branch, in the generation of the live file, or in a generation without a file.
//! Records for another branch always go to a generation without a file.
//!
//! Invariant: a generation of a file that is not written contains nothing except the file.
//! Invariant: a cut record replaces the whole record, which belongs to no generation.
//! Invariant: an agent's own file is never written unless a resume of the new content reads the records after all earlier
//! messages.

use crate::{
    archive::{SyncError, Vain, Workspace},
    change::{
        draft::{Change, live::append_live},
        goal::{Goal, reach::again, setting::line_start},
    },
    files::{file::is_subsequence, live_file::LiveFile},
    json::Raw,
    model::{CheckpointNumber, Cutting, EntryId, EntryNumber, Kind, Position, line},
    session::history::lineage,
    session::{Growth, history::ends::ends},
    store::Whole,
    wire::{Back, Graph},
};

/// Records to add, in order.
pub(crate) struct Add {
    pub(crate) records: Vec<NewRecord>,
    /// True if each record follows the one before it. A record written by a caller may name another parent.
    pub(crate) follows: bool,
    /// The branch to add to and the position to continue from, if not the current branch.
    pub(crate) aside: Option<(String, Position)>,
}

/// A record to add.
pub(crate) struct NewRecord {
    /// Its line.
    pub(crate) line: Vec<u8>,
    /// The whole line and its cutting, if `line` is a cut one.
    pub(crate) whole: Option<(Vec<u8>, Cutting)>,
}

impl NewRecord {
    /// Returns a record that is not cut.
    pub(crate) fn whole(line: Vec<u8>) -> Self {
        Self { line, whole: None }
    }
}

/// The result of adding records.
pub(crate) struct Added {
    /// The new position of the branch.
    pub(crate) position: Position,
    /// The entries, in the order of the records.
    pub(crate) entries: Vec<(EntryNumber, EntryId)>,
    /// The checkpoints that the new turns got.
    pub(crate) checkpoints: Vec<CheckpointNumber>,
}

impl Goal for Add {
    type Reached = Added;

    fn prepare(self, change: &mut Change<'_>) -> Result<(Added, Option<Position>), SyncError> {
        let aside = self.aside;
        let position = aside.as_ref().map(|(_, from)| *from).or_else(|| change.before.position());
        let Some(position) = position else {
            return Err(SyncError::Nothing(Vain::Append));
        };
        let state = &change.before.state;
        let is_of_file = state.live.is_none() && state.file_of(position.generation).is_some();
        let mut growth = if aside.is_some() || is_of_file {
            again(change, position, None)?
        } else {
            change.growth(position.generation)?
        };
        let mut part = line_start(&growth);
        let mut bytes = Vec::new();
        let mut entries = Vec::with_capacity(self.records.len());
        let last = self.records.last().and_then(|record| Raw::object(&record.line));
        let last = last.and_then(|record| change.before.format.envelope(record).name);
        for record in self.records {
            let whole = record.whole.as_ref();
            let whole = whole.and_then(|(whole, cut)| {
                Some((line::split_unfinished(whole).next()?, cut.clone()))
            });
            let origin = match &whole {
                Some((whole, _)) => Some(change.aside(&growth, whole)?),
                None => None,
            };
            part.extend_from_slice(&record.line);
            part.push(b'\n');
            change.read_bytes(&mut growth, &part)?;
            bytes.append(&mut part);
            let entry = growth.last.unwrap_or_default();
            if let (Some(origin), Some((whole, cut))) = (origin, whole) {
                let line = line::split_unfinished(&record.line).next();
                let wholes = line.map(|line| Whole::each(&line, &whole)).unwrap_or_default();
                change.replace(entry.0, origin, wholes, cut)?;
            }
            entries.push(entry);
        }
        let position = match change.before.attached().filter(|_| aside.is_none()) {
            Some(_) if !self.follows => change.end_of(&growth)?,
            Some(live) => {
                let added = said(change, &growth, position, &entries)?;
                if !reads(change, &growth, position, &added)? {
                    let more = bring(change, &live, &mut growth, position, &added, last)?;
                    bytes.extend(more);
                }
                change.end_of(&growth)?
            }
            None => growth.position(growth.last.map(|(n, _)| n)),
        };
        let end = growth.length();
        change.grown(growth);
        let added = Added { position, entries, checkpoints: change.checkpoints() };
        if let Some((branch, _)) = aside {
            change.set_branch(&branch, Some(position));
            return Ok((added, None));
        }
        append_live(change, bytes, end)?;
        Ok((added, Some(position)))
    }
}

/// Returns the new entries that are messages, without the metadata that the agent writes around a turn.
fn said(
    change: &Change<'_>,
    growth: &Growth,
    from: Position,
    entries: &[(EntryNumber, EntryId)],
) -> Result<Vec<EntryNumber>, SyncError> {
    let view = change.ahead(Position { horizon: growth.entries, ..from }, growth);
    let mut said = Vec::new();
    for (n, _) in entries {
        if view.record(*n)?.kind != Kind::Meta {
            said.push(*n);
        }
    }
    Ok(said)
}

/// Returns true if an agent that resumes a growth reads the new entries after everything on the path to the old head.
fn reads(
    change: &Change<'_>,
    growth: &Growth,
    from: Position,
    added: &[EntryNumber],
) -> Result<bool, SyncError> {
    let Some(head) = change.end_of(growth)?.head else { return Ok(added.is_empty()) };
    let position = Position { head: Some(head), horizon: growth.entries, ..from };
    let view = change.ahead(position, growth);
    let path = |limit| Ok::<_, SyncError>(change.before.format.path(&view, head, limit)?.entries);
    let mut wanted: Vec<EntryNumber> = from.head.into_iter().collect();
    wanted.extend(added);
    if path(wanted.len())? == wanted {
        return Ok(true);
    }
    // Metadata records may come between them.
    let behind = from.head.map_or(Ok(None), |head| lineage::since(&view, head))?.unwrap_or(0);
    if is_subsequence(&wanted, &path(usize::try_from(behind).unwrap_or(usize::MAX))?) {
        return Ok(true);
    }
    // Other records may come between them. Then compare the ends of both paths.
    let [found, mut wanted] = ends(&view, &change.look(from))?;
    wanted.extend(added);
    Ok(is_subsequence(&wanted, &found))
}

/// Appends the lines that bring the agent to the last new entry, and returns them. Needed if it would resume elsewhere.
fn bring(
    change: &mut Change<'_>,
    live: &LiveFile,
    growth: &mut Growth,
    from: Position,
    added: &[EntryNumber],
    name: Option<String>,
) -> Result<Vec<u8>, SyncError> {
    let head = change.end_of(growth)?.head;
    let setting = change.before.setting_in_folder(&Workspace::default(), name)?;
    let to = added.last().copied();
    let view = change.ahead(Position { head, horizon: growth.entries, ..from }, growth);
    let [stood, path] = ends(&view, &change.look(from))?;
    let path = [path, added.to_vec()].concat();
    let back = Back { from: head, to, stood: &stood, path: &path, note: None };
    let lines = change.before.format.branch(&view, &back, &setting)?.unwrap_or_default();
    let more: Vec<u8> =
        lines.into_iter().flat_map(|line| [line, b"\n".to_vec()].concat()).collect();
    change.read_bytes(growth, &more)?;
    if reads(change, growth, from, added)? {
        return Ok(more);
    }
    let why = "the agent would not read the new messages after the earlier ones".to_owned();
    Err(SyncError::OutOfReach { path: live.path.clone(), why })
}
