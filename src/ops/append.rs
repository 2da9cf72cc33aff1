//! Appending: new records at the head of the current branch, one operation a batch.

use std::{collections::BTreeMap, ops::Range};

use serde_json::{Value, json};
use uuid::{Builder, Uuid};

use super::change::Change;
use crate::{
    model::{EntryId, NameTag, Position, json::Raw},
    ops::{Archive, Notice, OpsError, Session, Workspace},
    store::Find,
    wire::{Draft, Link, Setting},
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

/// An entry that an append named.
#[derive(Clone, Debug)]
pub struct AppendedEntry {
    /// Its number.
    pub n: u64,
    /// Its id.
    pub id: EntryId,
    /// Its record's name.
    pub uuid: String,
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
        fresh: BTreeMap::new(),
        bytes: line_start(&growth.tail),
    };
    let numbered = drafts.len() > 1;
    let mut names = Vec::with_capacity(drafts.len());
    for (line, draft) in (1..).zip(drafts) {
        let name = batch.add(&mut change, workspace, draft).map_err(|error| match error {
            OpsError::Invalid { line: None, why } if numbered => {
                OpsError::Invalid { line: Some(line), why }
            }
            other => other,
        })?;
        names.push(name);
    }
    if batch.fresh.is_empty() {
        let entries = batch.entries(&change, names)?;
        let notices = std::mem::take(&mut change.notices);
        return Ok(Appended { entries, notices, ..Appended::default() });
    }
    change.read(&mut growth, batch.bytes.as_slice())?;
    let head = growth.last.map(|(n, _)| n);
    let branch = change.tip.current().to_owned();
    change.set_branch(&branch, Some(Position { head, horizon: growth.entries, ..position }))?;
    let end = growth.length();
    change.grown(growth);
    let entries = batch.entries(&change, names)?;
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

/// Returns what must stand before a record so that it begins a line.
pub(super) fn line_start(tail: &[u8]) -> Vec<u8> {
    let open = tail
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(tail, |end| tail.get(end + 1..).unwrap_or_default());
    let at_start = tail.is_empty() || (tail.contains(&b'\n') && open.is_empty());
    if at_start { Vec::new() } else { b"\n".to_vec() }
}

/// Records on their way into the live file.
struct Batch {
    /// The name of the record that the next one follows.
    parent: Option<String>,
    /// Where each record stands among the new ones, and in the bytes, by its name.
    fresh: BTreeMap<String, (u64, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Batch {
    /// Adds a draft and returns its record's name.
    fn add(
        &mut self,
        change: &mut Change<'_>,
        workspace: &Workspace,
        draft: &Draft,
    ) -> Result<String, OpsError> {
        let invalid = |why: String| OpsError::Invalid { line: None, why };
        let setting = setting(change, workspace, self.parent.clone());
        let line = change.format.write(draft, &setting).map_err(|error| invalid(error.0))?;
        let Some(record) = Raw::object(&line).filter(|_| !line.contains(&b'\n')) else {
            return Err(invalid("it is not one line of JSON".into()));
        };
        let envelope = change.format.envelope(record);
        let name = envelope.name.unwrap_or_default();
        if let Draft::Record(given) = draft {
            let known = match self.fresh.get(&name) {
                Some((_, at)) => self.bytes.get(at.clone()).map(<[u8]>::to_vec),
                None => known(change, &name)?,
            };
            if let Some(known) = known {
                if !agrees(given, &known) {
                    return Err(invalid(format!("another record has the uuid {name}")));
                }
                return Ok(name);
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
        self.fresh.insert(name.clone(), (self.fresh.len() as u64, start..self.bytes.len()));
        self.bytes.push(b'\n');
        self.parent = Some(name.clone());
        Ok(name)
    }

    /// Returns the entries of these names, once the bytes are read: the last entries of the change are the new records.
    fn entries(
        &self,
        change: &Change<'_>,
        names: Vec<String>,
    ) -> Result<Vec<AppendedEntry>, OpsError> {
        let first = change.entries() + 1 - self.fresh.len() as u64;
        let entry = |uuid: String| {
            let n = match self.fresh.get(&uuid) {
                Some((place, _)) => first + place,
                None => named(change, &uuid)?.ok_or_else(|| OpsError::NoEntry(uuid.clone()))?,
            };
            Ok(AppendedEntry { n, id: change.id_of(n)?, uuid })
        };
        names.into_iter().map(entry).collect()
    }
}

/// Returns where and when a record is written that follows `parent`.
pub(super) fn setting(
    change: &mut Change<'_>,
    workspace: &Workspace,
    parent: Option<String>,
) -> Setting {
    Setting {
        session: change.name.id.clone(),
        parent,
        uuid: record_name(change).to_string(),
        time: change.at,
        folder: workspace.folder.clone(),
        git_branch: workspace.git_branch.clone(),
        beside: None,
    }
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
