//! Appending: new records at the head of the current branch, one operation a batch.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{
    context::{cut::Limit, event::Event},
    json::Raw,
    model::{Command, EntryId, NameTag, Position, line},
    ops::{OpsError, shorten},
    report::{Appended, AppendedEntry},
    session::{Growth, Session, SessionError, origins, tools},
    sync::{
        self, Archive, SyncError, Workspace,
        change::Change,
        setting::{line_start, setting},
    },
    wire::{Draft, Link, Nearby, cut::CutText},
};

/// Appends records; if one is invalid, nothing is written.
pub fn append(
    archive: &mut Archive,
    session: &Session,
    workspace: &Workspace,
    drafts: &[Draft],
) -> Result<Appended, OpsError> {
    append_cut(archive, session, workspace, drafts, None)
}

/// Appends records as [`append`] does, and cuts what tools answered to a limit; the whole records are kept as origins.
pub fn append_cut(
    archive: &mut Archive,
    session: &Session,
    workspace: &Workspace,
    drafts: &[Draft],
    limit: Option<Limit>,
) -> Result<Appended, OpsError> {
    append_told(archive, session, workspace, drafts, limit, &[])
}

/// Appends records as [`append_cut`] does, and keeps with the operation what happened on the way to them.
pub(super) fn append_told(
    archive: &Archive,
    session: &Session,
    workspace: &Workspace,
    drafts: &[Draft],
    limit: Option<Limit>,
    events: &[Event],
) -> Result<Appended, OpsError> {
    let mut change = sync::begin(archive, session)?;
    let position = change.position();
    let Some(position) = position else { return Err(SyncError::Nothing("append to").into()) };
    let mut growth = change.growth(position.generation)?;
    let mut batch = Batch {
        parent: position.head.map(|head| change.record_name(head)).transpose()?.flatten(),
        fresh: BTreeMap::new(),
        calls: BTreeSet::new(),
        lines: Vec::new(),
        start: line_start(&growth),
    };
    let numbered = drafts.len() > 1;
    let mut met = Vec::with_capacity(drafts.len());
    for (line, draft) in (1..).zip(drafts) {
        let one = batch.add(&mut change, workspace, draft).map_err(|error| match error {
            OpsError::Sync(SyncError::Invalid { line: None, why }) if numbered => {
                SyncError::Invalid { line: Some(line), why }.into()
            }
            other => other,
        })?;
        met.push(one);
    }
    if batch.lines.is_empty() {
        let entries = batch.entries(&change, met)?;
        let notices = std::mem::take(&mut change.notices);
        return Ok(Appended { entries, notices, ..Appended::default() });
    }
    let (bytes, cut) = batch.write(&mut change, &mut growth, limit)?;
    let cut: Vec<EntryId> = cut.into_iter().map(|n| change.id_of(n)).collect::<Result<_, _>>()?;
    let last = growth.last.map(|(n, _)| n);
    // An agent may well resume elsewhere than at the last record.
    let is_attached = change.live_file().is_some_and(|live| live.attached);
    let head = if is_attached { change.head(&growth)? } else { last };
    let branch = change.tip.current().to_owned();
    change.set_branch(&branch, Some(Position { head, horizon: growth.entries, ..position }));
    let end = growth.length();
    change.grown(growth);
    let entries = batch.entries(&change, met)?;
    change.append_live(bytes, end)?;
    let checkpoints = change.checkpoints();
    let limit = limit.filter(|_| !cut.is_empty()).map(|limit| limit.chars() as u64);
    let branch = change.branch_text(&branch);
    let events = (!events.is_empty()).then(|| change.given(&json!(events).to_string()));
    let outcome = sync::commit(change, Command::Append { branch, limit, events })?;
    Ok(Appended {
        operation: Some(outcome.operation),
        entries,
        checkpoints,
        cut,
        notices: outcome.notices,
    })
}

/// Records on their way into the live file.
struct Batch {
    /// The name of the record that the next one follows.
    parent: Option<String>,
    /// Where each record stands among the new ones, by its name.
    fresh: BTreeMap<String, usize>,
    /// The calls that were drafted.
    calls: BTreeSet<String>,
    /// The new records, and which entries they became.
    lines: Vec<(Vec<u8>, u64)>,
    /// What must stand before the first of them.
    start: Vec<u8>,
}

/// What became of a draft.
enum Met {
    /// It is new: of the new ones it has this number, from 0.
    Fresh(usize, Option<String>),
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
        let invalid = |why: String| OpsError::Sync(SyncError::Invalid { line: None, why });
        match draft {
            Draft::Call { id, .. } => {
                self.calls.insert(id.clone());
            }
            Draft::Result { id, .. } if !self.is_called(change, id)? => {
                return Err(invalid(format!("no call on the current path has the id {id:?}")));
            }
            _ => {}
        }
        let mut setting = setting(change, workspace, self.parent.clone())?;
        if change.format.traits().nearby == Nearby::Last {
            let last = self.lines.last().map(|(line, _)| line.clone());
            setting.nearby = last.or(setting.nearby);
        }
        let line = change.format.write(draft, &setting).map_err(|error| invalid(error.0))?;
        let Some(record) = Raw::object(&line).filter(|_| !line.contains(&b'\n')) else {
            return Err(invalid("it is not one line of JSON".into()));
        };
        let envelope = change.format.envelope(record);
        let name = envelope.name;
        if let (Draft::Record(given), Some(name)) = (draft, &name) {
            let known = match self.fresh.get(name) {
                Some(at) => self.lines.get(*at).map(|(line, _)| line.clone()),
                None => known(change, name)?,
            };
            if let Some(known) = known {
                if !agrees(given, &known) {
                    return Err(invalid(format!("another record has the uuid {name}")));
                }
                return Ok(match self.fresh.get(name) {
                    Some(at) => Met::Fresh(*at, Some(name.clone())),
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
        let at = self.lines.len();
        if let Some(name) = &name {
            self.fresh.insert(name.clone(), at);
        }
        self.lines.push((line, 0));
        self.parent.clone_from(&name);
        Ok(Met::Fresh(at, name))
    }

    /// Returns whether a call of this id stands among the new records, or on the current path.
    fn is_called(&self, change: &Change<'_>, call: &str) -> Result<bool, OpsError> {
        if self.calls.contains(call) {
            return Ok(true);
        }
        // A call stands shortly before its result; what is refused may well take longer.
        if let Some(view) = change.position().and_then(|position| change.view(position)) {
            for within in [tools::CALL_WITHIN, usize::MAX] {
                let path = view.path(within)?.entries;
                if tools::tool(&view, change.format, &path, call)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(self.lines.iter().any(|(line, _)| {
            let messages = Raw::object(line).map(|record| change.format.messages(record));
            tools::called(&messages.unwrap_or_default(), call).is_some()
        }))
    }

    /// Adds the records at the end of a growth, and returns the bytes by which the file grows and the entries that were cut.
    fn write(
        &mut self,
        change: &mut Change<'_>,
        growth: &mut Growth,
        limit: Option<Limit>,
    ) -> Result<(Vec<u8>, Vec<u64>), OpsError> {
        let mut bytes = Vec::new();
        let mut shortened = Vec::new();
        let mut part = std::mem::take(&mut self.start);
        for at in 0..self.lines.len() {
            let (before, rest) = self.lines.split_at_mut(at);
            let Some((line, n)) = rest.first_mut() else { break };
            let whole = line::split(line, false, false).next();
            let id = whole.as_ref().map(|whole| growth.id_of(whole));
            let cut = limit.zip(id).and_then(|(limit, id)| {
                shorten::shorten(&change.name.id, change.format, line, id, limit)
            });
            let origin = match (&whole, &cut) {
                (Some(whole), Some(_)) => Some((change.aside(growth, whole)?, whole)),
                _ => None,
            };
            part.extend_from_slice(cut.as_ref().map_or(line.as_slice(), |(cut, _)| &cut.line));
            part.push(b'\n');
            change.read_bytes(growth, &part)?;
            bytes.append(&mut part);
            *n = growth.last.map_or(0, |(n, _)| n);
            if let (Some((origin, whole)), Some((cut, sizes))) = (origin, &cut) {
                change.replace(*n, origin, whole);
                let tool = tool(change, before, &cut.cuts)?;
                change.cut(*n, shorten::cutting(tool, &cut.cuts, sizes.tokens));
                shortened.push(*n);
            }
        }
        Ok((bytes, shortened))
    }

    /// Returns the entries of drafts, once the records are added.
    fn entries(&self, change: &Change<'_>, met: Vec<Met>) -> Result<Vec<AppendedEntry>, OpsError> {
        let entry = |met: Met| {
            let (n, uuid) = match met {
                Met::Fresh(at, name) => (self.lines.get(at).map_or(0, |(_, n)| *n), name),
                Met::Known(name) => {
                    let n =
                        named(change, &name)?.ok_or_else(|| SessionError::NoEntry(name.clone()))?;
                    (n, Some(name))
                }
            };
            Ok(AppendedEntry { n, id: change.id_of(n)?, uuid })
        };
        met.into_iter().map(entry).collect()
    }
}

/// Returns the tool whose answer was cut: its call stands among the records before it, or near the end of the branch.
fn tool(
    change: &Change<'_>,
    before: &[(Vec<u8>, u64)],
    cuts: &[CutText],
) -> Result<Option<String>, OpsError> {
    let Some(call) = cuts.first().map(|cut| cut.call.as_str()) else { return Ok(None) };
    let fresh = before.iter().rev().find_map(|(line, _)| {
        let record = Raw::object(line)?;
        tools::called(&change.format.messages(record), call)
    });
    match (fresh, change.position().and_then(|position| change.view(position))) {
        (None, Some(view)) => {
            let path = view.path(tools::CALL_WITHIN)?.entries;
            Ok(tools::tool(&view, change.format, &path, call)?)
        }
        (fresh, _) => Ok(fresh),
    }
}

/// Returns the newest entry whose record has this name.
fn named(change: &Change<'_>, name: &str) -> Result<Option<u64>, OpsError> {
    let Some(session) = &change.session else { return Ok(None) };
    let tag = NameTag::of(name);
    for n in change.archive.store().named(session.key, tag, tag)?.into_iter().rev() {
        if change.record_name(n)?.as_deref() == Some(name) {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

fn known(change: &Change<'_>, name: &str) -> Result<Option<Vec<u8>>, OpsError> {
    let (Some(n), Some(session)) = (named(change, name)?, &change.session) else { return Ok(None) };
    let mut line = Vec::new();
    // A record that was cut is known as it came.
    let n = origins::first(change.archive.store(), session, n)?;
    change.archive.store().lines(session.key, &[n], &mut |_, found| line = found)?;
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
