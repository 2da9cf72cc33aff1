//! Appending: new records at the head of the current branch, one operation a batch.

use std::{collections::BTreeMap, ops::Range};

use serde_json::{Value, json};
use uuid::{Builder, Uuid};

use super::{change::Change, growth::Growth};
use crate::{
    model::{EntryId, NameTag, Position, json::Raw},
    ops::{Archive, Notice, OpsError, Session, Workspace},
    store::Find,
    wire::{Beside, Draft, Link, Setting},
};

/// What an append did.
#[derive(Clone, Debug, Default)]
pub struct Appended {
    /// The operation; none if every record was known already.
    pub operation: Option<u64>,
    /// The entries, one for each draft, in order.
    pub entries: Vec<AppendedEntry>,
    /// The checkpoints that were given to turns.
    pub checkpoints: Vec<u64>,
    /// What was noticed on the way.
    pub notices: Vec<Notice>,
}

/// An entry that an append made, or met.
#[derive(Clone, Debug)]
pub struct AppendedEntry {
    /// Its number.
    pub n: u64,
    /// Its id.
    pub id: EntryId,
    /// Its record's name, where records have one.
    pub uuid: Option<String>,
}

/// Appends records; if one is invalid, nothing is written.
pub fn append(
    archive: &mut Archive,
    session: &Session,
    workspace: &Workspace,
    drafts: &[Draft],
) -> Result<Appended, OpsError> {
    let mut change = Change::begin(archive, session, "append")?;
    let position = change.position();
    let Some(position) = position else { return Err(OpsError::Nothing("append to")) };
    let mut growth = change.growth(position.generation)?;
    let mut batch = Batch {
        parent: position.head.map(|head| change.record_name(head)).transpose()?.flatten(),
        last: None,
        fresh: BTreeMap::new(),
        count: 0,
        bytes: line_start(&growth),
    };
    let numbered = drafts.len() > 1;
    let mut met = Vec::with_capacity(drafts.len());
    for (line, draft) in (1..).zip(drafts) {
        let one = batch.add(&mut change, workspace, draft).map_err(|error| match error {
            OpsError::Invalid { line: None, why } if numbered => {
                OpsError::Invalid { line: Some(line), why }
            }
            other => other,
        })?;
        met.push(one);
    }
    if batch.count == 0 {
        let entries = batch.entries(&change, met)?;
        let notices = std::mem::take(&mut change.notices);
        return Ok(Appended { entries, notices, ..Appended::default() });
    }
    change.read(&mut growth, batch.bytes.as_slice())?;
    let last = growth.last.map(|(n, _)| n);
    // An agent may well resume elsewhere than at the last record.
    let is_attached = change.live_file()?.is_some_and(|live| live.attached);
    let head = if is_attached { change.head(&growth)? } else { last };
    let branch = change.tip.current().to_owned();
    change.set_branch(&branch, Some(Position { head, horizon: growth.entries, ..position }))?;
    let end = growth.length();
    change.grown(growth);
    let entries = batch.entries(&change, met)?;
    change.append_live(batch.bytes, end)?;
    let checkpoints = change.given();
    let outcome = change.commit(&json!({ "branch": branch }))?;
    Ok(Appended {
        operation: Some(outcome.operation),
        entries,
        checkpoints,
        notices: outcome.notices,
    })
}

/// Returns what must stand before a record so that it begins a line: a file may end with its last record.
pub(super) fn line_start(growth: &Growth) -> Vec<u8> {
    let tail = growth.tail.as_slice();
    let open = match tail.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => tail.len() > end + 1,
        None => growth.length() > 0,
    };
    if open { b"\n".to_vec() } else { Vec::new() }
}

/// Records on their way into the live file.
struct Batch {
    /// The name of the record that the next one follows.
    parent: Option<String>,
    /// The last record.
    last: Option<Vec<u8>>,
    /// Which of the new ones each record is, and where it stands in the bytes, by its name.
    fresh: BTreeMap<String, (u64, Range<usize>)>,
    /// How many there are.
    count: u64,
    bytes: Vec<u8>,
}

/// What became of a draft.
enum Met {
    /// It is new: of the new ones it has this number, from 0.
    Fresh(u64, Option<String>),
    /// A record of this name was there before.
    Known(String),
}

impl Batch {
    /// Adds a draft.
    fn add(
        &mut self,
        change: &mut Change<'_>,
        workspace: &Workspace,
        draft: &Draft,
    ) -> Result<Met, OpsError> {
        let invalid = |why: String| OpsError::Invalid { line: None, why };
        let mut setting = setting(change, workspace, self.parent.clone())?;
        if change.format.beside() == Beside::Last {
            setting.beside = self.last.take().or(setting.beside);
        }
        let line = change.format.write(draft, &setting).map_err(|error| invalid(error.0))?;
        let Some(record) = Raw::object(&line).filter(|_| !line.contains(&b'\n')) else {
            return Err(invalid("it is not one line of JSON".into()));
        };
        let envelope = change.format.envelope(record);
        let name = envelope.name;
        if let (Draft::Record(given), Some(name)) = (draft, &name) {
            let known = match self.fresh.get(name) {
                Some((_, at)) => self.bytes.get(at.clone()).map(<[u8]>::to_vec),
                None => known(change, name)?,
            };
            if let Some(known) = known {
                if !agrees(given, &known) {
                    return Err(invalid(format!("another record has the uuid {name}")));
                }
                return Ok(match self.fresh.get(name) {
                    Some((n, _)) => Met::Fresh(*n, Some(name.clone())),
                    None => Met::Known(name.clone()),
                });
            }
            if let Link::Named(parent) = &envelope.parent
                && !self.fresh.contains_key(parent)
                && named(change, parent)?.is_none()
            {
                return Err(invalid(format!("its parent {parent} is not known")));
            }
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&line);
        let n = self.count;
        if let Some(name) = &name {
            self.fresh.insert(name.clone(), (n, start..self.bytes.len()));
        }
        self.bytes.push(b'\n');
        self.count += 1;
        (self.parent, self.last) = (name.clone(), Some(line));
        Ok(Met::Fresh(n, name))
    }

    /// Returns the entries of drafts, once the bytes are read: the last entries of the change are the new records.
    fn entries(&self, change: &Change<'_>, met: Vec<Met>) -> Result<Vec<AppendedEntry>, OpsError> {
        let first = change.entries() + 1 - self.count;
        let entry = |met: Met| {
            let (n, uuid) = match met {
                Met::Fresh(n, name) => (first + n, name),
                Met::Known(name) => {
                    let n = named(change, &name)?.ok_or_else(|| OpsError::NoEntry(name.clone()))?;
                    (n, Some(name))
                }
            };
            Ok(AppendedEntry { n, id: change.id_of(n)?, uuid })
        };
        met.into_iter().map(entry).collect()
    }
}

/// Returns where and when a record is written that follows `parent`; an agent's record is written like the one before it.
pub(super) fn setting(
    change: &mut Change<'_>,
    workspace: &Workspace,
    parent: Option<String>,
) -> Result<Setting, OpsError> {
    let mut beside = None;
    let near = match (change.format.beside(), change.position()) {
        (Beside::Nothing, _) | (_, None) => None,
        (Beside::Head, Some(at)) => at.head,
        (Beside::Last, Some(at)) => change.growth(at.generation)?.last.map(|(n, _)| n),
    };
    if let (Some(session), Some(near)) = (&change.session, near) {
        change.archive.store.lines(session.key, &[near], &mut |_, line| beside = Some(line))?;
    }
    Ok(Setting {
        session: change.name.id.clone(),
        parent,
        uuid: record_name(change).to_string(),
        time: change.at,
        folder: workspace.folder.clone(),
        git_branch: workspace.git_branch.clone(),
        beside,
    })
}

/// Returns a fresh name of a record: names that follow the time keep an index of them compact.
fn record_name(change: &mut Change<'_>) -> Uuid {
    let mut random = [0; 10];
    // Bytes 6 and 8 of a random uuid hold its version and variant; these are chance alone.
    let chance = change.archive.ambient.uuid().into_bytes();
    random[..6].copy_from_slice(&chance[..6]);
    random[6..].copy_from_slice(&chance[9..13]);
    Builder::from_unix_timestamp_millis(change.at.0.unsigned_abs(), &random).into_uuid()
}

/// Returns the newest entry whose record has this name.
fn named(change: &Change<'_>, name: &str) -> Result<Option<u64>, OpsError> {
    let Some(session) = &change.session else { return Ok(None) };
    let tag = NameTag::of(name);
    for n in change.archive.store.find(session.key, &Find::Name(tag, tag))?.into_iter().rev() {
        if change.record_name(n)?.as_deref() == Some(name) {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

fn known(change: &Change<'_>, name: &str) -> Result<Option<Vec<u8>>, OpsError> {
    let (Some(n), Some(session)) = (named(change, name)?, &change.session) else { return Ok(None) };
    let mut line = Vec::new();
    change.archive.store.lines(session.key, &[n], &mut |_, found| line = found)?;
    Ok(Some(line))
}

/// Returns whether every field of a record stands with the same value in another.
fn agrees(given: &[u8], known: &[u8]) -> bool {
    if given == known {
        return true;
    }
    let read = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    match (read(given), read(known)) {
        (Some(Value::Object(given)), Some(Value::Object(known))) => {
            given.iter().all(|(key, value)| known.get(key) == Some(value))
        }
        _ => false,
    }
}
