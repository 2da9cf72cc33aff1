//! Appends new records at the head of the current branch, one operation for each batch.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    archive::{At, SyncError, Vain, Workspace},
    change::{
        self,
        goal::{
            add::{Add, NewRecord},
            setting::Near,
        },
    },
    context::{cut::Limit, event::Event},
    files::at::Standing,
    json::{Kind as JsonKind, Raw},
    model::{
        Block, Command, EntryId, EntryNumber, Message, NameTag, OperationNumber, Position, State,
        Usage, line,
    },
    report::{Appended, AppendedEntry},
    session::{
        Growth,
        history::origins,
        plan::{Plan, Steps, branch_text, free_name, given},
        read::tools::{self, Called},
    },
    verbs::{OpsError, window::shorten},
    wire::{Draft, Envelope, Format, Graph as _, Link, Setting, cut::CutText},
};

/// Appends records. If one is invalid, nothing is written.
pub fn append(
    session: &At<'_>,
    workspace: &Workspace,
    drafts: &[Draft],
) -> Result<Appended, OpsError> {
    append_cut(session, workspace, drafts, None)
}

/// Appends records like [`append`] and shortens tool results to a limit. The full records are stored as origins.
pub fn append_cut(
    session: &At<'_>,
    workspace: &Workspace,
    drafts: &[Draft],
    limit: Option<Limit>,
) -> Result<Appended, OpsError> {
    Ok(append_by(session, workspace, drafts, limit, By::Caller)?.0)
}

/// Who wrote the drafts.
#[derive(Clone, Copy)]
pub(crate) enum By<'e> {
    /// A caller: a record that no provider accepts is refused.
    Caller,
    /// A model: its answer is stored whatever it contains, together with the events that led to it, after the entry it answers.
    Model(&'e [Event], Option<Stood>),
}

/// The end of the context that a model received, or of what was appended since. The answer belongs after it.
#[derive(Clone, Copy)]
pub(crate) struct Stood {
    /// The position of that end.
    position: Position,
    /// The next operation.
    next: OperationNumber,
}

impl Stood {
    /// Returns the end of the current branch.
    pub(crate) fn of(state: &State) -> Option<Self> {
        Some(Self { position: state.position()?, next: state.next_operation() })
    }

    /// Returns true if the current branch still continues from here, however it grew; false if another command moved the session.
    fn is_led_to(self, before: &Standing<'_>) -> Result<bool, OpsError> {
        let (Some(now), Some(session)) = (before.position(), &before.session) else {
            return Ok(false);
        };
        let since = before.store().operations(session.key, self.next..OperationNumber::ALL.end)?;
        let moves = |command: &Command| match command {
            Command::Truncate { .. } => false,
            Command::Unknown { .. } => true,
            command => command.goes_elsewhere() || command.takes_in(),
        };
        let Some(head) = self.position.head.filter(|_| self.position.head != now.head) else {
            return Ok(true);
        };
        if !since.iter().any(|operation| moves(&operation.command)) {
            return Ok(true);
        }
        // Entries after it on the path are new, or belong to a branch that existed before.
        let first = since.first().map_or_else(EntryNumber::default, |operation| operation.first);
        let came = before.state.next_entry().index_from(first).unwrap_or(usize::MAX);
        let Some(view) = before.view(now) else { return Ok(false) };
        let session = before.opened()?;
        let origin = origins::first(&session, head)?;
        for entry in view.path(came.saturating_add(1))?.entries {
            if entry == head || origins::first(&session, entry)? == origin {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Appends records like [`append_cut`] and returns where they end. If the session was moved while a model answered, its records
/// go to the branch that leads to the entry they answer, or to a new branch.
pub(crate) fn append_by(
    session: &At<'_>,
    workspace: &Workspace,
    drafts: &[Draft],
    limit: Option<Limit>,
    by: By<'_>,
) -> Result<(Appended, Option<Stood>), OpsError> {
    let (batch, made) =
        change::execute(session, |before| plan(before, workspace, drafts, limit, by))?;
    let added = made.reached;
    let entries = added.as_ref().map(|added| added.entries.as_slice()).unwrap_or_default();
    let is_cut = entries.iter().zip(&batch.cut).filter(|(_, is_cut)| **is_cut);
    let cut = is_cut.map(|((_, id), _)| *id).collect();
    let entry = |met: Met| match met {
        Met::Fresh(at, uuid) => {
            let (n, id) = entries.get(at).copied().unwrap_or_default();
            AppendedEntry { n, id, uuid }
        }
        Met::Known(n, id, uuid) => AppendedEntry { n, id, uuid: Some(uuid) },
    };
    let appended = Appended {
        entries: batch.met.into_iter().map(entry).collect(),
        aside: batch.aside,
        checkpoints: added.as_ref().map(|added| added.checkpoints.clone()).unwrap_or_default(),
        cut,
        done: made.done,
    };
    let stood = added
        .zip(appended.done.operation)
        .map(|(added, operation)| Stood { position: added.position, next: operation.next() });
    Ok((appended, stood))
}

/// Returns the outcome of each draft, and a plan to append them if at least one is new.
fn plan(
    before: &Standing<'_>,
    workspace: &Workspace,
    drafts: &[Draft],
    limit: Option<Limit>,
    by: By<'_>,
) -> Result<(Batch, Option<Plan<Add>>), OpsError> {
    let mut position = before.position().ok_or(SyncError::Nothing(Vain::Append))?;
    let mut aside = None;
    if let By::Model(_, Some(stood)) = by
        && !stood.is_led_to(before)?
    {
        position = stood.position;
        aside = Some(branch_of(&before.state, position));
    }
    let parent = position.head.map(|head| before.record_name(head)).transpose()?.flatten();
    let near = before.near(Some(position))?;
    let mut batch = Batch { at: Some(position), parent, near, ..Batch::default() };
    for (line, draft) in (1..).zip(drafts) {
        let checked = match by {
            By::Caller => batch.check(before, draft),
            By::Model(..) => Ok(()),
        };
        let added = checked.and_then(|()| batch.add(before, workspace, draft, by));
        added.map_err(|error| match error {
            OpsError::Sync(SyncError::Invalid { line: None, why }) if drafts.len() > 1 => {
                SyncError::Invalid { line: Some(line), why }.into()
            }
            other => other,
        })?;
    }
    if batch.lines.is_empty() {
        return Ok((batch, None));
    }
    batch.frame(before);
    let records = match limit {
        Some(limit) => batch.cut_to(before, before.growth(position.generation)?, limit)?,
        None => batch.lines.iter().cloned().map(NewRecord::whole).collect(),
    };
    batch.cut = records.iter().map(|record| record.whole.is_some()).collect();
    let limit = limit.filter(|_| batch.cut.contains(&true)).map(|limit| limit.chars() as u64);
    let branch = branch_text(aside.as_deref().unwrap_or_else(|| before.state.current()));
    let events = match by {
        By::Model(events, _) if !events.is_empty() => Some(given(&json!(events).to_string())),
        By::Model(..) | By::Caller => None,
    };
    let command = Command::Append { branch, limit, events };
    let follows = !drafts.iter().any(|draft| matches!(draft, Draft::Record(_)));
    batch.aside.clone_from(&aside);
    let goal = Add { records, follows, aside: aside.map(|branch| (branch, position)) };
    Ok((batch, Some(Plan { command, steps: Steps::default(), goal })))
}

/// Returns a branch other than the current one that ends at a position, or a free name for a new one.
fn branch_of(state: &State, position: Position) -> String {
    let mut branches = state.branches.iter().filter(|(name, _)| *name != state.current());
    let ends_there = branches.find(|(_, at)| at.head == position.head && position.head.is_some());
    ends_there.map_or_else(
        || free_name(state.current(), |name| state.branches.contains_key(name)),
        |(name, _)| name.clone(),
    )
}

/// Drafts while they are turned into records.
#[derive(Default)]
struct Batch {
    /// The position after which the records are appended.
    at: Option<Position>,
    /// The branch that gets them, if it is not the current one.
    aside: Option<String>,
    /// The name of the record that is the parent of the next one.
    parent: Option<String>,
    /// The setting of the first record.
    setting: Option<Setting>,
    /// The index of each new record, by name.
    fresh: BTreeMap<String, usize>,
    /// The nearby record whose fields the next one copies.
    near: Near,
    /// The index of the new record with each drafted call, by call id.
    calls: BTreeMap<String, usize>,
    /// The tool of each call for which a result was drafted, by call id.
    tools: BTreeMap<String, String>,
    /// The lines of the new records.
    lines: Vec<Vec<u8>>,
    /// Which of them were shortened.
    cut: Vec<bool>,
    /// The outcome of each draft.
    met: Vec<Met>,
}

/// The outcome of a draft.
enum Met {
    /// It is new: its index among the new records, from 0.
    Fresh(usize, Option<String>),
    /// The session already had an entry whose record has this name.
    Known(EntryNumber, EntryId, String),
}

impl Batch {
    /// Refuses calls and results that no provider accepts, because an agent could not continue a session that contains them.
    fn check(&self, before: &Standing<'_>, draft: &Draft) -> Result<(), OpsError> {
        let invalid = |why: String| Err(invalid(why));
        match draft {
            Draft::Call { id, name, input } => self.check_call(before, id, name, input),
            Draft::Answer(said) => said.blocks.iter().try_for_each(|block| match block {
                Block::Call { id, name, input, .. } => self.check_call(before, id, name, input),
                _ => Ok(()),
            }),
            Draft::Result { id, .. }
                if self.tools.contains_key(id) || self.is_answered(before, id)? =>
            {
                invalid(format!("the call {id:?} already has a result"))
            }
            _ => Ok(()),
        }
    }

    fn check_call(
        &self,
        before: &Standing<'_>,
        id: &str,
        name: &str,
        input: &str,
    ) -> Result<(), OpsError> {
        let is_known = || {
            let is_drafted = self.calls.contains_key(id);
            Ok::<_, OpsError>(is_drafted || self.near(before, id, tools::CALL_WITHIN)?.is_some())
        };
        Err(invalid(if name.trim().is_empty() {
            "the call has no tool name".to_owned()
        } else if is_other_value(input) {
            "the arguments of a call must be a JSON object, such as {\"path\":\"a.rs\"}".to_owned()
        } else if id.trim().is_empty() {
            "the id of the call is empty".to_owned()
        } else if is_known()? {
            format!("a call on the current path already has the id {id:?}")
        } else {
            return Ok(());
        }))
    }

    fn add(
        &mut self,
        before: &Standing<'_>,
        workspace: &Workspace,
        draft: &Draft,
        by: By<'_>,
    ) -> Result<(), OpsError> {
        let mut setting = before.setting_near(workspace, self.parent.clone(), &self.near);
        self.setting.get_or_insert_with(|| setting.clone());
        match draft {
            Draft::Call { id, .. } => {
                self.calls.insert(id.clone(), self.lines.len());
            }
            Draft::Result { id, .. } => {
                let Some(called) = self.called(before, id)? else {
                    return Err(invalid(format!("no call on the current path has the id {id:?}")));
                };
                self.tools.insert(id.clone(), called.tool.clone());
                (setting.tool, setting.call) = (Some(called.tool), Some(called.line));
            }
            _ => {}
        }
        let line = before.format.write(draft, &setting).map_err(|error| invalid(error.0))?;
        let Some(record) = Raw::object(&line).filter(|_| !line.contains(&b'\n')) else {
            return Err(invalid("a record must be one line of JSON".into()));
        };
        if let (Draft::Answer(said), By::Caller) = (draft, by) {
            check_metadata(before.format, said, &setting, &line)?;
        }
        let Envelope { name, parent, kind, .. } = before.format.envelope(record);
        if let (Draft::Record(given), Some(name)) = (draft, &name) {
            if let Some((known, met)) = self.known(before, name)? {
                if !agrees(given, &known) {
                    return Err(invalid(format!("another record already has the uuid {name}")));
                }
                self.met.push(met);
                return Ok(());
            }
            if let Link::Named(parent) = &parent
                && !self.fresh.contains_key(parent)
                && named(before, parent)?.is_none()
            {
                return Err(invalid(format!("the record's parent {parent} is unknown")));
            }
        }
        let at = self.lines.len();
        if let Some(name) = &name {
            self.fresh.insert(name.clone(), at);
        }
        self.near.pass(before.format, &line, kind);
        self.lines.push(line);
        // A record without a name cannot be a parent.
        if name.is_some() {
            self.parent.clone_from(&name);
        }
        self.met.push(Met::Fresh(at, name));
        Ok(())
    }

    /// Wraps the lines in the records that the agent writes around a turn.
    fn frame(&mut self, before: &Standing<'_>) {
        let Some(setting) = self.setting.take() else { return };
        let framed = before.format.framed(std::mem::take(&mut self.lines), &setting);
        let asked = framed.iter().enumerate().filter(|(_, framed)| framed.is_asked);
        let asked: Vec<usize> = asked.map(|(at, _)| at).collect();
        for met in &mut self.met {
            if let Met::Fresh(at, _) = met {
                *at = asked.get(*at).copied().unwrap_or(*at);
            }
        }
        self.lines = framed.into_iter().map(|framed| framed.line).collect();
    }

    /// Returns the line of the record that already has this name, as it was first written, and its outcome.
    fn known(&self, before: &Standing<'_>, name: &str) -> Result<Option<(Vec<u8>, Met)>, OpsError> {
        if let Some(&at) = self.fresh.get(name) {
            let line = self.lines.get(at).cloned().unwrap_or_default();
            return Ok(Some((line, Met::Fresh(at, Some(name.to_owned())))));
        }
        let Some(n) = named(before, name)? else { return Ok(None) };
        let session = before.opened()?;
        let first = origins::first(&session, n)?;
        let met = Met::Known(n, before.id_of(n)?, name.to_owned());
        Ok(Some((before.line(first)?, met)))
    }

    /// Returns the call with this id from the new records or the current path.
    fn called(&self, before: &Standing<'_>, call: &str) -> Result<Option<Called>, OpsError> {
        if let Some(line) = self.calls.get(call).and_then(|at| self.lines.get(*at)) {
            return Ok(tools::called(before.format, line, call));
        }
        // A call is usually close to its result; one that was refused may be further away.
        for within in [tools::CALL_WITHIN, usize::MAX] {
            if let Some(called) = self.near(before, call, within)? {
                return Ok(Some(called));
            }
        }
        Ok(called(before.format, &self.lines, call))
    }

    /// Returns the records with tool results shortened to a limit, with the ids that they will get at the end of a growth.
    fn cut_to(
        &self,
        before: &Standing<'_>,
        mut growth: Growth,
        limit: Limit,
    ) -> Result<Vec<NewRecord>, OpsError> {
        let id_of = |growth: &Growth, line: &[u8]| {
            line::split_unfinished(line).next().map(|line| growth.id_of(&line))
        };
        let mut records = Vec::with_capacity(self.lines.len());
        for (at, line) in self.lines.iter().enumerate() {
            let shortened = id_of(&growth, line).and_then(|id| {
                shorten::shorten(&before.name.id, before.format, line, id, limit, &|_| true)
            });
            let record = match shortened {
                Some((shortened, sizes)) => {
                    let tool = self.tool(before, at, &shortened.cuts)?;
                    let cutting = shorten::cutting(tool, &shortened.cuts, sizes.tokens);
                    NewRecord { line: shortened.line, whole: Some((line.clone(), cutting)) }
                }
                None => NewRecord::whole(line.clone()),
            };
            growth.last = id_of(&growth, &record.line).map(|id| (EntryNumber::default(), id));
            records.push(record);
        }
        Ok(records)
    }

    /// Returns the tool whose result in record `at` was shortened. If a caller wrote the record itself, the call is in an earlier
    /// new record or near the end of the branch.
    fn tool(
        &self,
        before: &Standing<'_>,
        at: usize,
        cuts: &[CutText],
    ) -> Result<Option<String>, OpsError> {
        let Some(call) = cuts.first().map(|cut| cut.call.as_str()) else { return Ok(None) };
        if let Some(tool) = self.tools.get(call) {
            return Ok(Some(tool.clone()));
        }
        let above = self.lines.get(..at).unwrap_or_default();
        let called = match called(before.format, above, call) {
            None => self.near(before, call, tools::CALL_WITHIN)?,
            fresh => fresh,
        };
        Ok(called.map(|called| called.tool))
    }

    /// Returns the call with this id from the last entries of the path.
    fn near(
        &self,
        before: &Standing<'_>,
        call: &str,
        within: usize,
    ) -> Result<Option<Called>, OpsError> {
        let view = self.at.and_then(|position| before.view(position));
        let Some(view) = view else { return Ok(None) };
        let path = view.path(within)?.entries;
        Ok(tools::call(&view, before.format, &path, call)?)
    }

    /// Returns true if one of the last entries of the path answers the call with this id.
    fn is_answered(&self, before: &Standing<'_>, call: &str) -> Result<bool, OpsError> {
        let view = self.at.and_then(|position| before.view(position));
        let Some(view) = view else { return Ok(false) };
        for &entry in view.path(tools::CALL_WITHIN)?.entries.iter().rev() {
            let line = view.line(entry)?;
            let messages = Raw::object(&line).map(|record| before.format.messages(record));
            for block in messages.into_iter().flatten().flat_map(|message| message.blocks) {
                match block {
                    Block::Result { id, .. } if id == call => return Ok(true),
                    // The agent may have used this id for an earlier call.
                    Block::Call { id, .. } if id == call => return Ok(false),
                    _ => {}
                }
            }
        }
        Ok(false)
    }
}

fn invalid(why: String) -> OpsError {
    OpsError::Sync(SyncError::Invalid { line: None, why })
}

/// Refuses an answer whose record has no place for its metadata: without it, the agent's record would be the same.
fn check_metadata(
    format: &dyn Format,
    said: &Message,
    setting: &Setting,
    line: &[u8],
) -> Result<(), OpsError> {
    // Counts of zero are the same as none.
    let usage = said.usage.filter(|usage| *usage == Usage::default());
    let without = [
        ("the name of a model", Message { model: None, ..said.clone() }),
        ("token counts", Message { usage, ..said.clone() }),
        ("other metadata", Message { meta: BTreeMap::new(), ..said.clone() }),
    ];
    for (what, other) in without.into_iter().filter(|(_, other)| other != said) {
        if format.write(&Draft::Answer(Box::new(other)), setting).is_ok_and(|it| it == line) {
            let why = format!("a record of a {} session has no place for {what}", format.name());
            return Err(invalid(why));
        }
    }
    Ok(())
}

/// Returns true if a text is a JSON value other than an object.
fn is_other_value(json: &str) -> bool {
    Raw::value(json.as_bytes()).is_some_and(|value| value.kind() != JsonKind::Object)
}

/// Returns the call with this id from the newest line that has it.
fn called(format: &dyn Format, lines: &[Vec<u8>], call: &str) -> Option<Called> {
    lines.iter().rev().find_map(|line| tools::called(format, line, call))
}

/// Returns the newest entry whose record has this name.
fn named(before: &Standing<'_>, name: &str) -> Result<Option<EntryNumber>, OpsError> {
    let Some(session) = &before.session else { return Ok(None) };
    let tag = NameTag::of(name);
    for n in before.store().named(session.key, tag, tag)?.into_iter().rev() {
        if before.record_name(n)?.as_deref() == Some(name) {
            return Ok(Some(n));
        }
    }
    Ok(None)
}

/// Returns true if another record has every field of this one with an equal value.
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
