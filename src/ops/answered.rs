//! Answers: the size of the largest request to which a model answered in a session, and which model answered last.
//!
//! Between two compactions a context only grows, so that the last answer of each stretch tells its size.

use std::collections::BTreeSet;

use crate::{
    context::window::is_believable,
    json::Raw,
    model::{EntryNumber, Kind, Landmark, Message, Usage},
    ops::OpsError,
    session::{Session, View},
    sync::Archive,
    wire::{Graph, Telling, Told, Traits},
};

/// How many ends of stretches are looked at, the newest first.
const ENDS: usize = 8;
/// How many entries before the end of a stretch are looked through for its last answer.
const WITHIN: u64 = 64;

/// Returns how many tokens the largest request had to which a model answered, or any model if none is named: before the
/// newest boundaries, and at the ends of the branches.
pub(super) fn largest(
    archive: &Archive,
    session: &Session,
    view: &View<'_>,
    model: Option<&str>,
) -> Result<Option<u64>, OpsError> {
    let tip = archive.store().state(session.key)?;
    let head = tip.position().and_then(|position| position.head);
    let heads: BTreeSet<EntryNumber> =
        tip.branches.values().filter_map(|position| position.head).collect();
    // However many branches there are, the current one is among them.
    let heads =
        head.into_iter().chain(heads.into_iter().rev().filter(|other| Some(*other) != head));
    let mut ends: Vec<EntryNumber> = heads.take(ENDS).map(EntryNumber::next).collect();
    let mut end = EntryNumber::ALL.end;
    for _ in 0..ENDS {
        let Some(boundary) =
            archive.store().landmark(session.key, Landmark::Boundary, EntryNumber::FIRST..end)?
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

/// Returns what the newest entries of a session tell of the model that answered last, on whichever branch they are.
pub(super) fn newest(
    archive: &Archive,
    session: &Session,
    view: &View<'_>,
) -> Result<Told, OpsError> {
    let tip = archive.store().state(session.key)?;
    let head = tip.branches.values().filter_map(|position| position.head).max();
    let end = head.map(EntryNumber::next).unwrap_or_default();
    let mut newest = Told::default();
    for entry in EntryNumber::each(end.minus(WITHIN)..end).rev() {
        let record = view.record(entry)?;
        let tells = view.format().tells(&record);
        let may_tell = matches!(tells, Some(Telling::Model | Telling::Figures));
        if !may_tell && record.kind != Kind::Assistant || view.format().is_of_sub_agent(&record) {
            continue;
        }
        let line = view.line(entry)?;
        let Some(record) = Raw::object(&line) else { continue };
        let told = view.format().told(record);
        let traits = view.format().traits();
        let by = || view.format().messages(record).iter().find_map(|said| answerer(said, traits));
        newest.model = newest.model.or(told.model).or_else(by);
        newest.window = newest.window.or(told.window);
        if newest.model.is_some() && newest.window.is_some() {
            break;
        }
    }
    Ok(newest)
}

/// Returns the model that an answer says it is from, unless that is the format's name for none.
pub(super) fn answerer(answer: &Message, format: &Traits) -> Option<String> {
    answer.model.clone().filter(|name| format.is_model(name))
}

/// Returns the size of the request of the last answer before an entry.
fn last_before(
    view: &View<'_>,
    end: EntryNumber,
    model: Option<&str>,
) -> Result<Option<u64>, OpsError> {
    for entry in EntryNumber::each(end.minus(WITHIN)..end).rev() {
        let record = view.record(entry)?;
        let tells = view.format().tells(&record) == Some(Telling::Figures);
        if !tells && record.kind != Kind::Assistant || view.format().is_of_sub_agent(&record) {
            continue;
        }
        let line = view.line(entry)?;
        let Some(record) = Raw::object(&line) else { continue };
        let size = |usage: &Usage| Some(usage.asked()).filter(|tokens| is_believable(*tokens));
        let mut messages = view.format().messages(record).into_iter();
        let said = messages.find_map(|message| Some((message.model, size(&message.usage?)?)));
        let told = || Some((None, size(&view.format().told(record).usage?)?));
        if let Some((by, tokens)) = said.or_else(told) {
            let is_its = by.is_none() || model.is_none() || by.as_deref() == model;
            return Ok(Some(tokens).filter(|_| is_its));
        }
    }
    Ok(None)
}
