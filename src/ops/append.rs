//! Appending: new records at the head of the current branch, one operation a batch.

use std::collections::BTreeMap;

use serde_json::{Value, json};

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
        let mut known = Appended { notices: change.notices.clone(), ..Appended::default() };
        for uuid in names {
            let n = named(&change, &uuid)?.ok_or_else(|| OpsError::NoEntry(uuid.clone()))?;
            known.entries.push(AppendedEntry { n, id: change.id_of(n)?, uuid });
        }
        return Ok(known);
    }
    change.read(&mut growth, batch.bytes.as_slice())?;
    let head = growth.last.map(|(n, _)| n);
    let branch = change.tip.current().to_owned();
    change.set_branch(&branch, Some(Position { head, horizon: growth.entries, ..position }))?;
    let end = growth.length();
    change.grown(growth);
    change.append_live(batch.bytes, end)?;
    let mut fresh: BTreeMap<String, u64> = BTreeMap::new();
    for n in change.added() {
        fresh.extend(change.record_name(n)?.map(|name| (name, n)));
    }
    let mut entries = Vec::with_capacity(names.len());
    for uuid in names {
        let n = match fresh.get(&uuid) {
            Some(n) => *n,
            None => named(&change, &uuid)?.ok_or_else(|| OpsError::NoEntry(uuid.clone()))?,
        };
        entries.push(AppendedEntry { n, id: change.id_of(n)?, uuid });
    }
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

struct Batch {
    /// The name of the record that the next one follows.
    parent: Option<String>,
    /// The records of this batch by their names.
    fresh: BTreeMap<String, Vec<u8>>,
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
                Some(line) => Some(line.clone()),
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
        self.bytes.extend_from_slice(&line);
        self.bytes.push(b'\n');
        self.fresh.insert(name.clone(), line);
        self.parent = Some(name.clone());
        Ok(name)
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
        uuid: change.archive.ambient.uuid().to_string(),
        time: change.at,
        folder: workspace.folder.clone(),
        git_branch: workspace.git_branch.clone(),
    }
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
