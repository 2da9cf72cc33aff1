//! What a model sees of a session, before it becomes a request: entries as items, and what the file and the answers report about
//! the model.
//!
//! A context only grows between two compactions, so the last answer of each stretch reports its size.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    archive::At,
    context::{
        Item, Origin, Pages, Shape,
        cut::Bound,
        history::Limits,
        measure::Measure,
        tokens::Counting,
        window::{Evidence, Window, Windows, is_believable},
    },
    json::Raw,
    model::{
        Command, EntryNumber, Kind, Landmark, Message, OperationNumber, PlaceNumber, Role,
        Timestamp, Usage,
    },
    session::{Stored, View},
    verbs::{
        OpsError,
        window::compactions::{boundaries, is_said_again, said_again},
    },
    wire::{Edit, Edited, Graph, Telling, Told, Traits},
};

/// How a context is prepared.
#[derive(Clone, Debug)]
pub struct Asked {
    /// For which interface.
    pub shape: Shape,
    /// For which model; by default the one that answered last.
    pub model: Option<String>,
    /// Its window, if set by the caller.
    pub window: Option<u64>,
    /// The known windows.
    pub windows: Windows,
    /// Limits of the history.
    pub limits: Limits,
    /// Whether images are included.
    pub images: bool,
    /// Which tool results are shortened in this request; none by default.
    pub results: Option<Bound>,
    /// How tokens are counted; by default exactly, with the model's encoding.
    pub counting: Option<Counting>,
}

/// The messages of a session before they become a request.
#[derive(Clone, Debug)]
pub(crate) struct Material {
    /// The model, if known.
    pub(crate) model: Option<String>,
    /// What the session's file reports about the model.
    pub(crate) told: Told,
    /// The model's window.
    pub(crate) window: Window,
    /// How tokens were counted.
    pub(crate) counting: Counting,
    /// The messages, with counts.
    pub(crate) items: Vec<Item>,
    /// The last entries of the path to the head.
    pub(crate) path: Vec<EntryNumber>,
    /// Those that the agent would send.
    pub(crate) sent: Vec<EntryNumber>,
    /// Those whose content another record replaces, with that record.
    pub(crate) edits: Vec<(EntryNumber, Edit)>,
    /// Whether the agent would send nothing else.
    pub(crate) is_whole: bool,
    /// The entries that replace others.
    pub(crate) stand_ins: StandIns,
    /// The usage of the newest answer if a separate record reports it, with that record, and its time.
    pub(crate) used: Option<(EntryNumber, Usage)>,
    pub(crate) used_at: Option<Timestamp>,
    /// The newest answer that reports its size.
    pub(crate) answer: Option<Answer>,
    /// What is known of the conversation's size.
    pub(crate) measure: Measure,
    /// New counts, for the cache.
    pub(crate) fresh: Vec<(EntryNumber, Vec<u64>)>,
}

/// The entries that replace others.
#[derive(Clone, Debug, Default)]
pub(crate) struct StandIns {
    by_entry: BTreeMap<EntryNumber, StandIn>,
    /// Those that each repeat a whole context.
    whole: BTreeSet<EntryNumber>,
}

/// How an entry came to replace another.
#[derive(Clone, Copy, Debug)]
struct StandIn {
    by: OperationNumber,
    origin: Origin,
    /// About how many tokens more the other has.
    more: u64,
}

impl StandIns {
    /// Returns the replacements from an entry on.
    pub(crate) fn since(session: &At<'_>, first: EntryNumber) -> Result<Self, OpsError> {
        let mut by_entry = BTreeMap::new();
        let mut commands: BTreeMap<OperationNumber, Origin> = BTreeMap::new();
        for (by, of) in session.store.origins(session.key, first..EntryNumber::ALL.end)? {
            // An entry that a compaction repeated is unchanged.
            let origin = match commands.get(&by) {
                Some(origin) => *origin,
                None => match session.store.operations(session.key, by.alone())?.pop() {
                    Some(by) if matches!(by.command, Command::Compact { .. }) => Origin::Kept,
                    _ => Origin::Replayed,
                },
            };
            commands.insert(by, origin);
            let cut = of.cut.as_ref();
            let more = cut.map_or(0, |cut| cut.tokens_before.saturating_sub(cut.tokens_after));
            by_entry.insert(of.entry, StandIn { by, origin, more });
        }
        let whole = said_again(session, first)?;
        Ok(Self { by_entry, whole })
    }

    /// Returns how an entry came to replace another, if it does.
    pub(crate) fn origin(&self, entry: EntryNumber) -> Option<Origin> {
        self.by_entry.get(&entry).map(|stand_in| stand_in.origin)
    }

    /// Returns true if an entry replaces another.
    pub(crate) fn holds(&self, entry: EntryNumber) -> bool {
        self.by_entry.contains_key(&entry)
    }

    /// Returns the replacements after an entry.
    pub(crate) fn behind(&self, entry: EntryNumber) -> impl Iterator<Item = EntryNumber> {
        self.by_entry.range(entry.next()..).map(|(entry, _)| *entry)
    }

    /// Returns about how many tokens more an entry had when an answer was given.
    pub(crate) fn more(&self, entry: EntryNumber, answer: EntryNumber) -> u64 {
        let Some(stand_in) = self.by_entry.get(&entry) else { return 0 };
        let is_later =
            entry > answer || self.by_entry.get(&answer).is_some_and(|a| a.by == stand_in.by);
        if is_later { stand_in.more } else { 0 }
    }
}

/// The newest answer that reports its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The entry with the report.
    pub(crate) entry: EntryNumber,
    /// How many of the items the report covers: the request and the answer itself.
    pub(crate) covered: usize,
    /// The report.
    pub(crate) usage: Usage,
    /// Its time.
    pub(crate) time: Option<Timestamp>,
    /// Whether nothing before it has changed since.
    pub(crate) is_standing: bool,
}

/// Reads the messages of the last `limit` entries of a view, or all that are sent, without counting them exactly.
pub(crate) fn seen(
    session: &At<'_>,
    view: Option<&View<'_>>,
    asked: &Asked,
    limit: usize,
) -> Result<Material, OpsError> {
    let mut found = led(view, asked, limit)?;
    if let Some(view) = view {
        let first = found.sent.iter().chain(&found.path).min();
        found.stand_ins = StandIns::since(session, first.copied().unwrap_or_default())?;
        let (sent, edits) = (&found.sent, &found.edits);
        found.items = items(session, view, sent, edits, &found.stand_ins, asked.counting)?;
    }
    let mut left = SILENT;
    let newest_first = found.items.iter().rev().filter(|item| item.role() == Role::Assistant);
    let answered = newest_by(newest_first.map(Item::message), session.format.traits(), &mut left);
    resolve(session, view, asked, answered, left, &mut found)?;
    Ok(found)
}

/// Returns the window at a view's head, reading as few messages as possible.
pub(crate) fn window(
    session: &At<'_>,
    view: Option<&View<'_>>,
    asked: &Asked,
) -> Result<Window, OpsError> {
    /// How many entries are read at a time.
    const BATCH: usize = 64;
    let mut found = led(view, asked, usize::MAX)?;
    let (mut answered, mut left) = (None, SILENT);
    for entries in found.sent.rchunks(BATCH) {
        let is_sought = answered.is_none() && left > 0;
        let Some(view) = view.filter(|_| is_sought) else { break };
        let mut said = Vec::with_capacity(entries.len());
        for &entry in entries {
            if !matches!(view.record(entry)?.kind, Kind::User | Kind::Note | Kind::Result) {
                said.push(entry);
            }
        }
        let mut messages = Vec::new();
        view.damages.lines(view.store, session.key, &said, &mut |_, line| {
            let sent = Raw::object(&line).map(|record| session.format.sent(record, &[]));
            messages.extend(sent.into_iter().flatten());
        })?;
        answered = newest_by(messages.iter().rev(), session.format.traits(), &mut left);
    }
    resolve(session, view, asked, answered, left, &mut found)?;
    Ok(found.window)
}

/// Returns the model of the newest answer that names one. Gives up after `left` answers without a name: older ones say nothing
/// about the model with which the session continues.
fn newest_by<M: Borrow<Message>>(
    newest_first: impl Iterator<Item = M>,
    format: &Traits,
    left: &mut usize,
) -> Option<String> {
    for answer in newest_first.filter(|message| message.borrow().role == Role::Assistant) {
        *left = left.checked_sub(1)?;
        if let Some(model) = answerer(answer.borrow(), format) {
            return Some(model);
        }
    }
    None
}

/// How many of the newest answers may name no model before the search ends.
const SILENT: usize = 256;
/// How many more entries of a path are read than those that are sent.
const MORE: usize = 1024;

/// Finds the last `limit` entries of a view, or all that are sent, and what they report about the model.
fn led(view: Option<&View<'_>>, asked: &Asked, limit: usize) -> Result<Material, OpsError> {
    let mut found = Material {
        model: None,
        told: Told::default(),
        window: asked.resolve(&Told::default(), None, None),
        counting: Counting::Estimate,
        items: Vec::new(),
        path: Vec::new(),
        sent: Vec::new(),
        edits: Vec::new(),
        is_whole: true,
        stand_ins: StandIns::default(),
        used: None,
        used_at: None,
        answer: None,
        measure: Measure::default(),
        fresh: Vec::new(),
    };
    if let Some(view) = view {
        let is_limited = limit < usize::MAX;
        let sending = if is_limited { view.sending_of(limit)? } else { view.sending()? };
        (found.path, found.sent, found.is_whole) = (sending.path, sending.sent, sending.is_whole);
        found.edits = sending.edits;
        // Entries before a compaction may still report the size of its context.
        if found.is_whole && !sending.is_all {
            let more = found.path.len().saturating_mul(2).saturating_add(MORE);
            found.path = view.path(more)?.entries;
        }
        told(view, &mut found)?;
    }
    Ok(found)
}

/// Resolves model and window, given the model of the last answer and how many more answers could have been silent.
fn resolve(
    session: &At<'_>,
    view: Option<&View<'_>>,
    asked: &Asked,
    answered: Option<String>,
    left: usize,
    found: &mut Material,
) -> Result<(), OpsError> {
    // Without any answer yet, as after a clear, the session continues with the model it had.
    if let Some(view) = view.filter(|_| found.is_whole && left == SILENT) {
        let newest = newest(session, view)?;
        found.told.model = found.told.model.take().or(newest.model);
        found.told.window = found.told.window.or(newest.window);
    }
    let told = &found.told;
    // A separate record about the model describes the answers after it, or belongs to the newest one.
    let by = told.model.clone().or(answered);
    found.window = asked.resolve(told, by.as_deref(), None);
    found.model = asked.model.clone().or(by);
    if let Some(view) = view.filter(|_| found.window.source.yields()) {
        let largest = largest(session, view, found.model.as_deref())?;
        found.window = asked.resolve(told, found.model.as_deref(), largest);
    }
    Ok(())
}

impl Asked {
    /// Returns the window, given what the session's file reports, the model of the last answer, and the largest request answered.
    pub(crate) fn resolve(&self, told: &Told, by: Option<&str>, answered: Option<u64>) -> Window {
        let model = self.model.as_deref().or(by).or(told.model.as_deref());
        // The file describes the model that it was written with.
        let is_told = self.model.is_none() || self.model == told.model;
        let file = told.window.filter(|_| is_told);
        self.windows.resolve(self.window, Evidence { file, model, answered })
    }
}

/// Reads what the records of a path, and those directly after it, last report about the model.
fn told(view: &View<'_>, found: &mut Material) -> Result<(), OpsError> {
    /// The search ends after this many silent records.
    const ASKED: usize = 64;
    let (mut models, mut figures) = (ASKED, ASKED);
    let mut behind = Vec::new();
    let mut place = found.path.last().map_or(Ok(None), |head| view.place(*head))?;
    while let Some(entry) = place.map_or(Ok(None), |place| view.at(place.next()))? {
        let record = view.record(entry)?;
        if record.kind.is_conversation() {
            break;
        }
        // A record with a name is on the path itself or on another one.
        behind.extend(record.name.is_none().then_some(entry));
        place = place.map(PlaceNumber::next);
    }
    let told = &mut found.told;
    for &entry in behind.iter().rev().chain(found.path.iter().rev()) {
        let record = view.record(entry)?;
        let left = match view.format.tells(&record) {
            Some(Telling::Model) if told.model.is_none() => &mut models,
            Some(Telling::Figures) if told.window.is_none() || found.used.is_none() => &mut figures,
            _ => continue,
        };
        if *left == 0 {
            continue;
        }
        *left -= 1;
        let line = view.line(entry)?;
        let this = Raw::object(&line).map(|record| view.format.told(record)).unwrap_or_default();
        told.model = told.model.take().or(this.model);
        told.window = told.window.or(this.window);
        if let Some(usage) = this.usage.filter(|_| found.used.is_none()) {
            (found.used, found.used_at) = (Some((entry, usage)), record.time);
        }
        if told.model.is_some() && told.window.is_some() && found.used.is_some() {
            break;
        }
    }
    Ok(())
}

/// Returns the number of items before the conversation: the system prompt, and summaries.
pub(crate) fn front(items: &[Item]) -> usize {
    let is_front = |item: &&Item| item.is_summary() || item.role() == Role::System;
    items.iter().take_while(is_front).count()
}

/// Reads entries as items, with edits applied, and counts them if an estimate is wanted.
pub(crate) fn items(
    session: &Stored<'_>,
    view: &View<'_>,
    entries: &[EntryNumber],
    edits: &[(EntryNumber, Edit)],
    stand_ins: &StandIns,
    counting: Option<Counting>,
) -> Result<Vec<Item>, OpsError> {
    let estimate = counting.filter(|counting| *counting == Counting::Estimate);
    let pages = Pages::default();
    let mut items: Vec<Item> = Vec::with_capacity(entries.len());
    let mut replacing = BTreeMap::new();
    for (_, edit) in edits {
        if let &Edit::Content(other) = edit {
            replacing.insert(other, view.line(other)?);
        }
    }
    let mut edits_of: BTreeMap<EntryNumber, Vec<Edit>> = BTreeMap::new();
    for &(entry, edit) in edits {
        edits_of.entry(entry).or_default().push(edit);
    }
    let whole = entries.iter().find(|entry| stand_ins.whole.contains(entry));
    let whole = whole.map(|&entry| Ok::<_, OpsError>((entry, kept_in(session, view, entry)?)));
    let whole = whole.transpose()?;
    let origin_within = |entry: EntryNumber, item: &Item| match &whole {
        Some((again, kept)) if *again == entry && !holds(kept, &item.message()) => Origin::Replayed,
        _ => Origin::Kept,
    };
    view.damages.lines(view.store, session.key, entries, &mut |entry, line| {
        let record = Raw::object(&line);
        let edits = edits_of.get(&entry).into_iter().flatten().filter_map(|edit| match edit {
            Edit::Content(other) => Raw::object(replacing.get(other)?).map(Edited::Content),
            Edit::Turns(turns) => Some(Edited::Turns(*turns)),
            Edit::Later => Some(Edited::Later),
        });
        let edits: Vec<Edited<'_>> = edits.collect();
        let is_edited = edits.iter().any(|edit| !matches!(edit, Edited::Later));
        let messages = record.map(|record| session.format.sent(record, &edits)).unwrap_or_default();
        let is_history = messages.len() > 1;
        items.extend(messages.into_iter().map(|message| {
            let tokens = estimate.map(|estimate| estimate.message(&message));
            let mut item = Item::said(message, entry).packed(&pages);
            item.tokens = tokens;
            let is_within = is_history && item.origin == Origin::Said;
            item.begins_turn = is_within && item.role() == Role::User;
            if is_edited && item.origin == Origin::Said {
                item.origin = Origin::Edited;
            } else if is_within {
                item.origin = origin_within(entry, &item);
            } else if item.origin == Origin::Said {
                item.origin = stand_ins.origin(entry).unwrap_or(Origin::Said);
            }
            item
        }));
    })?;
    // Earlier files of a session may be imported later, so compare places, not numbers, with the summary.
    let order = |entry: EntryNumber| -> Result<(Option<PlaceNumber>, EntryNumber), OpsError> {
        Ok((view.place(entry)?, entry))
    };
    let summary = items.iter().rfind(|item| item.is_summary()).and_then(Item::entry);
    let summary = summary.map(order).transpose()?;
    for item in &mut items {
        let Some(entry) = item.entry() else { continue };
        let kind = view.record(entry)?.kind;
        if item.origin != Origin::Kept && kind != Kind::Boundary {
            item.begins_turn = !item.is_summary() && kind == Kind::User;
        }
        if item.origin == Origin::Said && summary.is_some() && Some(order(entry)?) < summary {
            item.origin = Origin::Kept;
        }
    }
    Ok(items)
}

/// Returns the history of the compaction whose summary is in a context that undertext repeated.
fn kept_in(
    session: &Stored<'_>,
    view: &View<'_>,
    again: EntryNumber,
) -> Result<Vec<Message>, OpsError> {
    let said = |entry: EntryNumber| -> Result<Vec<Message>, OpsError> {
        let line = view.line(entry)?;
        Ok(Raw::object(&line).map(|record| session.format.messages(record)).unwrap_or_default())
    };
    let Some(summary) = said(again)?.into_iter().rfind(|message| message.is_summary) else {
        return Ok(Vec::new());
    };
    for boundary in boundaries(session, EntryNumber::FIRST..again) {
        let boundary = boundary?;
        if is_said_again(session, boundary)? {
            continue;
        }
        let history = said(boundary)?;
        if holds(&history, &summary) {
            return Ok(history);
        }
    }
    Ok(Vec::new())
}

/// Returns true if one of the messages has the role and content of another.
fn holds(messages: &[Message], other: &Message) -> bool {
    messages.iter().any(|one| (one.role, &one.blocks) == (other.role, &other.blocks))
}

/// How many ends of stretches are read, newest first.
const ENDS: usize = 8;
/// How many entries before the end of a stretch are searched for its last answer.
const WITHIN: u64 = 64;

/// Returns the size in tokens of the largest request that this model, or any, has answered: before the newest boundaries, and at
/// the ends of branches.
pub(crate) fn largest(
    session: &At<'_>,
    view: &View<'_>,
    model: Option<&str>,
) -> Result<Option<u64>, OpsError> {
    let head = session.state.position().and_then(|position| position.head);
    let heads: BTreeSet<EntryNumber> =
        session.state.branches.values().filter_map(|position| position.head).collect();
    // The current branch is always included, however many branches there are.
    let heads =
        head.into_iter().chain(heads.into_iter().rev().filter(|other| Some(*other) != head));
    let mut ends: Vec<EntryNumber> = heads.take(ENDS).map(EntryNumber::next).collect();
    let mut end = EntryNumber::ALL.end;
    for _ in 0..ENDS {
        let Some(boundary) =
            session.store.landmark(session.key, Landmark::Boundary, EntryNumber::FIRST..end)?
        else {
            break;
        };
        ends.push(boundary);
        end = boundary;
    }
    let mut largest = None;
    for end in ends {
        largest = largest.max(last_before(view, end, model)?);
    }
    Ok(largest)
}

/// Returns what the newest entries of a session, on any branch, report about the model that answered last.
pub(crate) fn newest(session: &At<'_>, view: &View<'_>) -> Result<Told, OpsError> {
    let head = session.state.branches.values().filter_map(|position| position.head).max();
    let end = head.map(EntryNumber::next).unwrap_or_default();
    let mut newest = Told::default();
    for entry in EntryNumber::each(end.minus(WITHIN)..end).rev() {
        let record = view.record(entry)?;
        let tells = view.format.tells(&record);
        let may_tell = matches!(tells, Some(Telling::Model | Telling::Figures));
        if !may_tell && record.kind != Kind::Assistant || view.format.is_of_sub_agent(&record) {
            continue;
        }
        let line = view.line(entry)?;
        let Some(record) = Raw::object(&line) else { continue };
        let told = view.format.told(record);
        let traits = view.format.traits();
        let by = || view.format.messages(record).iter().find_map(|said| answerer(said, traits));
        newest.model = newest.model.or(told.model).or_else(by);
        newest.window = newest.window.or(told.window);
        if newest.model.is_some() && newest.window.is_some() {
            break;
        }
    }
    Ok(newest)
}

/// Returns the model that an answer names, unless it is the format's placeholder for none.
pub(crate) fn answerer(answer: &Message, format: &Traits) -> Option<String> {
    answer.model.clone().filter(|name| format.is_model(name))
}

/// Returns the request size of the last answer before an entry.
fn last_before(
    view: &View<'_>,
    end: EntryNumber,
    model: Option<&str>,
) -> Result<Option<u64>, OpsError> {
    for entry in EntryNumber::each(end.minus(WITHIN)..end).rev() {
        let record = view.record(entry)?;
        let tells = view.format.tells(&record) == Some(Telling::Figures);
        if !tells && record.kind != Kind::Assistant || view.format.is_of_sub_agent(&record) {
            continue;
        }
        let line = view.line(entry)?;
        let Some(record) = Raw::object(&line) else { continue };
        let size = |usage: &Usage| Some(usage.asked()).filter(|tokens| is_believable(*tokens));
        let mut messages = view.format.messages(record).into_iter();
        let said = messages.find_map(|message| Some((message.model, size(&message.usage?)?)));
        let told = || Some((None, size(&view.format.told(record).usage?)?));
        if let Some((by, tokens)) = said.or_else(told) {
            let is_its = by.is_none() || model.is_none() || by.as_deref() == model;
            return Ok(Some(tokens).filter(|_| is_its));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FORMATS;

    #[test]
    fn the_newest_answer_that_names_a_model_is_sought_among_as_many_as_may_be_silent() {
        let said = |role: Role, model: Option<&str>| Message {
            model: model.map(str::to_owned),
            ..Message::new(role, Vec::new())
        };
        let mut formats = FORMATS.into_iter();
        let has_name = |format: &Traits| format.no_model.is_some();
        let format = formats.find(|format| has_name(format.traits())).unwrap().traits();
        let check = |silent: usize, read: usize, found: Option<&str>| {
            let mut newest_first = Vec::new();
            for n in 0..silent {
                newest_first.push(said(Role::Assistant, format.no_model.filter(|_| n % 2 == 0)));
                newest_first.push(said(Role::User, Some("no-answer")));
            }
            newest_first.push(said(Role::Assistant, Some("newest")));
            newest_first.push(said(Role::Assistant, Some("older")));
            // However many of them are read at a time.
            let (mut left, mut answered) = (SILENT, None);
            for part in newest_first.chunks(read) {
                answered = answered.or_else(|| newest_by(part.iter(), format, &mut left));
            }
            assert_eq!(answered.as_deref(), found, "{silent} silent, {read} at a time");
        };
        for read in [1, 64, usize::MAX] {
            check(0, read, Some("newest"));
            check(SILENT - 1, read, Some("newest"));
            check(SILENT, read, None);
        }
        // Any other name is that of a model, however it is spelt.
        let named = [said(Role::Assistant, Some("<local>"))];
        assert_eq!(newest_by(named.iter(), format, &mut 1).as_deref(), Some("<local>"));
    }
}
