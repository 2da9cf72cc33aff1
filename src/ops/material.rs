//! What a model sees of a session before a request is made of it: its entries become items, counted.
//!
//! Counts that had to be made for it are returned with it.

use std::collections::BTreeMap;

use crate::{
    context::{
        Item, Origin, Shape,
        cut::Limit,
        history::Limits,
        tokens::{self, Counting, Encoding},
        window::{Source, Verdict, Window, Windows},
    },
    json::Raw,
    model::{Command, EntryNumber, Kind, Message, OperationNumber, PlaceNumber, Position, Role},
    ops::{OpsError, counted::count},
    session::{Damages, Session, View},
    sync::Archive,
    wire::{Telling, Told},
};

/// How a context is asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// For which interface.
    pub shape: Shape,
    /// For which model; left out, the one that answered last.
    pub model: Option<String>,
    /// Its window, if it is to be this one.
    pub window: Option<u64>,
    /// The known windows.
    pub windows: Windows,
    /// How much of the history.
    pub limits: Limits,
    /// Whether pictures are sent.
    pub images: bool,
    /// How many characters a tool's result may have in this request; left out, as many as it has.
    pub results: Option<Limit>,
    /// How tokens are counted; left out, exactly, as the model counts.
    pub counting: Option<Counting>,
}

/// The messages of a session before a request is made of them.
#[derive(Clone, Debug)]
pub(super) struct Material {
    /// For which model, if one is known.
    pub(super) model: Option<String>,
    /// What the session's file says of the model.
    pub(super) told: Told,
    /// The model's window.
    pub(super) window: Window,
    /// How tokens were counted.
    pub(super) counting: Counting,
    /// The messages, counted.
    pub(super) items: Vec<Item>,
    /// The entries that led to the head.
    pub(super) path: Vec<EntryNumber>,
    /// Those of them that the agent would send.
    pub(super) sent: Vec<EntryNumber>,
    /// The tokens of the conversation by the newest answer's word, as a request has it.
    pub(super) reported: Option<u64>,
    /// The counts made for the first time.
    pub(super) fresh: Vec<(EntryNumber, Vec<u64>)>,
}

/// Returns the messages of the last `limit` entries that led to a position, or to where the current branch stands.
pub(super) fn material(
    archive: &Archive,
    session: &Session,
    position: Option<Position>,
    asked: &Asked,
    limit: usize,
    damages: &Damages,
) -> Result<Material, OpsError> {
    // A window that was asked for decides alone, before anything is read.
    let early = asked.resolve(&Told::default(), None);
    if asked.window.is_some() || early.source != Source::Default {
        guard(&early)?;
    }
    let tip = archive.store().state(session.key)?;
    let view = position.or(tip.position());
    let look = |at| View::new(archive.store(), session, at, tip.growth().cloned());
    let view = view.map(|at| look(at).gathering(damages));
    let mut found = seen(archive, session, view.as_ref(), asked, limit)?;
    guard(&found.window)?;
    let model = found.model.as_deref();
    found.counting = asked.counting.unwrap_or_else(|| Counting::Exact(Encoding::of_model(model)));
    found.fresh = count(archive, session, &mut found.items, found.counting)?;
    let mut reported = reported(&found.items);
    if let (Some(view), Some((answer, _))) = (&view, reported)
        && found.path.len() >= limit
        && is_changed_since(archive, session, view, answer)?
    {
        reported = None;
    }
    found.reported = reported.map(|(_, tokens)| tokens);
    Ok(found)
}

/// Returns how many tokens there are by a model's own word, unless that is far from what was counted: some agents write
/// figures that stand for none.
pub(super) fn believed(reported: Option<u64>, counted: u64) -> u64 {
    reported.filter(|reported| *reported >= counted / 2).unwrap_or(counted)
}

/// Reads the messages of the last `limit` entries that a view leads to; nothing is counted.
pub(super) fn seen(
    archive: &Archive,
    session: &Session,
    view: Option<&View<'_>>,
    asked: &Asked,
    limit: usize,
) -> Result<Material, OpsError> {
    let (mut path, mut sent, mut items) = (Vec::new(), Vec::new(), Vec::new());
    let mut told = Told::default();
    if let Some(view) = view {
        path = view.path(limit)?.entries;
        told = self::told(view, &path)?;
        sent = session.format.context(view, &path)?;
        items = self::items(archive, session, view, &sent)?;
    }
    let named = |message: &Message| message.model.clone().filter(|name| !name.starts_with('<'));
    let answered = items.iter().rev().find_map(|item| named(&item.message));
    let window = asked.resolve(&told, answered.as_deref());
    Ok(Material {
        model: asked.model.clone().or(answered).or_else(|| told.model.clone()),
        told,
        window,
        counting: Counting::Estimate,
        items,
        path,
        sent,
        reported: None,
        fresh: Vec::new(),
    })
}

/// Refuses a window that is too small.
fn guard(window: &Window) -> Result<(), OpsError> {
    match window.verdict {
        Verdict::Blocked => Err(OpsError::Window { tokens: window.tokens, least: window.least }),
        Verdict::Fine | Verdict::Warned => Ok(()),
    }
}

impl Asked {
    /// Returns the window, given what the session's file says of its model, and which model answered last.
    fn resolve(&self, told: &Told, answered: Option<&str>) -> Window {
        let model = self.model.as_deref().or(answered).or(told.model.as_deref());
        // What the file says is true of the model that it was written with.
        let is_told = self.model.is_none() || self.model == told.model;
        self.windows.resolve(self.window, told.window.filter(|_| is_told), model)
    }
}

/// Returns what the records of a path, and those that stand right behind it, say last of the model that they are for.
fn told(view: &View<'_>, path: &[EntryNumber]) -> Result<Told, OpsError> {
    use crate::wire::Graph as _;
    /// After this many silent records the search ends.
    const ASKED: usize = 64;
    let mut told = Told::default();
    let (mut models, mut windows) = (ASKED, ASKED);
    let mut behind = Vec::new();
    let mut place = path.last().map_or(Ok(None), |head| view.place(*head))?;
    while let Some(entry) = place.map_or(Ok(None), |place| view.at(place.next()))? {
        if !matches!(view.record(entry)?.kind, Kind::Meta | Kind::Opaque) {
            break;
        }
        behind.push(entry);
        place = place.map(PlaceNumber::next);
    }
    for &entry in behind.iter().rev().chain(path.iter().rev()) {
        let left = match view.format().tells(&view.record(entry)?) {
            Some(Telling::Model) if told.model.is_none() => &mut models,
            Some(Telling::Window) if told.window.is_none() => &mut windows,
            _ => continue,
        };
        if *left == 0 {
            continue;
        }
        *left -= 1;
        let line = view.line(entry)?;
        let found = Raw::object(&line).map(|record| view.format().told(record)).unwrap_or_default();
        told = Told { model: told.model.or(found.model), window: told.window.or(found.window) };
        if told.model.is_some() && told.window.is_some() {
            break;
        }
    }
    Ok(told)
}

/// Returns how many items there are before the conversation began: the system prompt, and summaries.
pub(super) fn front(items: &[Item]) -> usize {
    let is_front = |item: &&Item| item.message.is_summary || item.message.role == Role::System;
    items.iter().take_while(is_front).count()
}

/// Reads entries as items.
fn items(
    archive: &Archive,
    session: &Session,
    view: &View<'_>,
    entries: &[EntryNumber],
) -> Result<Vec<Item>, OpsError> {
    use crate::wire::Graph as _;
    let mut replayed: BTreeMap<EntryNumber, Origin> = BTreeMap::new();
    let mut commands: BTreeMap<OperationNumber, Origin> = BTreeMap::new();
    let first = entries.iter().copied().min().unwrap_or(EntryNumber::ALL.end);
    for (n, origin) in archive.store().origins(session.key, first..EntryNumber::ALL.end)? {
        // An entry that a compaction said again is as it was.
        let is = match commands.get(&n) {
            Some(is) => *is,
            None => match archive.store().operations(session.key, n.alone())?.pop() {
                Some(by) if matches!(by.command, Command::Compact { .. }) => Origin::Kept,
                _ => Origin::Replayed,
            },
        };
        commands.insert(n, is);
        replayed.insert(origin.entry, is);
    }
    let mut items: Vec<Item> = Vec::with_capacity(entries.len());
    view.damages().lines(archive.store(), session.key, entries, &mut |entry, line| {
        let record = Raw::object(&line);
        let messages = record.map(|record| session.format.sent(record)).unwrap_or_default();
        let is_history = messages.len() > 1;
        items.extend(messages.into_iter().map(|message| {
            let mut item = Item::said(message, entry);
            if is_history && item.origin == Origin::Said {
                item.origin = Origin::Kept;
                item.begins_turn = item.message.role == Role::User;
            } else if item.origin == Origin::Said {
                item.origin = replayed.get(&entry).copied().unwrap_or(Origin::Said);
            }
            item
        }));
    })?;
    // Earlier files of a session may have come later, so that numbers do not tell what stands above a summary.
    let order = |entry: EntryNumber| -> Result<(Option<PlaceNumber>, EntryNumber), OpsError> {
        Ok((view.place(entry)?, entry))
    };
    let summary = items.iter().rfind(|item| item.message.is_summary).and_then(Item::entry);
    let summary = summary.map(order).transpose()?;
    for item in &mut items {
        let Some(entry) = item.entry() else { continue };
        if item.origin != Origin::Kept {
            item.begins_turn = !item.message.is_summary && view.record(entry)?.kind == Kind::User;
        }
        if item.origin == Origin::Said && summary.is_some() && Some(order(entry)?) < summary {
            item.origin = Origin::Kept;
        }
    }
    Ok(items)
}

/// Returns the newest answer, and how many tokens the conversation has by its word, with those since by count.
///
/// An answer that a compaction kept, or that came before a result was cut, spoke of messages that have changed.
fn reported(items: &[Item]) -> Option<(EntryNumber, u64)> {
    let (at, tokens) = tokens::reported(items.iter().map(|item| &item.message))?;
    let changed = items.iter().filter(|i| matches!(i.origin, Origin::Summary | Origin::Replayed));
    let changed = changed.filter_map(Item::entry).max();
    let answer = items.get(at)?;
    if answer.origin == Origin::Kept || answer.entry() < changed {
        return None;
    }
    let since = items.iter().skip(at + 1);
    let since = since.filter_map(|item| item.tokens).sum::<u64>();
    Some((answer.entry()?, tokens + since))
}

/// Returns whether a compaction or a cut came behind an answer, and may have changed what it spoke of.
fn is_changed_since(
    archive: &Archive,
    session: &Session,
    view: &View<'_>,
    answer: EntryNumber,
) -> Result<bool, OpsError> {
    use crate::wire::Graph as _;
    let mut end = EntryNumber::ALL.end;
    while let Some(boundary) = archive.store().boundary(session.key, answer.next()..end)? {
        if view.place(boundary)?.is_some() {
            return Ok(true);
        }
        end = boundary;
    }
    for (_, origin) in archive.store().origins(session.key, answer.next()..EntryNumber::ALL.end)? {
        if view.place(origin.entry)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
