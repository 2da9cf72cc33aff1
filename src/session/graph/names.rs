//! Names in a view: which entries have a name, and which of them is meant.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    json::Raw,
    model::{EntryNumber, NameTag, PlaceNumber, Span},
    session::{SessionError, View},
    store::StoreError,
    wire::{Failure, Graph as _, Link},
};

/// What was looked up by name in a view.
#[derive(Default)]
pub(super) struct Names {
    /// The last entry with each tag.
    pub(super) named: RefCell<BTreeMap<NameTag, Option<EntryNumber>>>,
    bearers: RefCell<BTreeMap<NameTag, Bearers>>,
    /// The parents that were found by name.
    pub(super) parents: RefCell<BTreeMap<EntryNumber, Option<EntryNumber>>>,
}

/// The last entry within the horizon for each name of a tag.
enum Bearers {
    /// All entries of the tag share one name.
    Alike(Option<EntryNumber>),
    /// The entries have several names.
    Apart(BTreeMap<String, EntryNumber>),
}

/// Returns the tags that several entries of the session share.
pub(crate) fn twins<'v>(view: &'v View<'_>) -> Result<&'v BTreeSet<NameTag>, StoreError> {
    if let Some(known) = view.twins.get() {
        return Ok(known);
    }
    let held = view.key.map_or(Ok(Vec::new()), |key| view.store.twins(key))?;
    let fresh = view.pending.iter().flat_map(|pending| pending.twins.iter().copied());
    Ok(view.twins.get_or_init(|| held.into_iter().chain(fresh).collect()))
}

/// Returns the last entry in this generation with the same name as `newest`, which is the newest such entry. They differ only
/// if the entries are not in the order of their numbers.
pub(crate) fn bearer(view: &View<'_>, newest: EntryNumber) -> Result<EntryNumber, SessionError> {
    let rises = |pair: &[Span]| matches!(pair, [one, next] if one.entries().end <= next.first);
    match view.record(newest)?.name {
        Some(name) if twins(view)?.contains(&name) => {
            if view.place(newest)?.is_some() && view.spans()?.windows(2).all(rises) {
                return Ok(newest);
            }
            Ok(view.named(name)?.unwrap_or(newest))
        }
        _ => Ok(newest),
    }
}

/// Returns the name of the parent in an entry's record.
pub(super) fn followed(view: &View<'_>, entry: EntryNumber) -> Result<Option<String>, Failure> {
    let line = view.line(entry)?;
    let link = Raw::object(&line).map(|record| view.format.envelope(record).parent);
    Ok(if let Some(Link::Named(name)) = link { Some(name) } else { None })
}

/// Returns the parent of an entry, given the tag of the parent's name.
pub(super) fn follows(
    view: &View<'_>,
    entry: EntryNumber,
    tag: NameTag,
) -> Result<Option<EntryNumber>, Failure> {
    if !view.names.bearers.borrow().contains_key(&tag) {
        let found = bearers_of(view, tag)?;
        view.names.bearers.borrow_mut().insert(tag, found);
    }
    Ok(match view.names.bearers.borrow().get(&tag) {
        Some(Bearers::Alike(last)) => *last,
        Some(Bearers::Apart(last)) => {
            followed(view, entry)?.and_then(|name| last.get(&name).copied())
        }
        None => None,
    })
}

/// Returns the entries of the session with this tag.
pub(crate) fn entries_of(view: &View<'_>, tag: NameTag) -> Result<Vec<EntryNumber>, StoreError> {
    let held = view.key.map(|key| view.store.named(key, tag, tag)).transpose()?;
    let mut entries = held.unwrap_or_default();
    entries.extend(view.pending.iter().flat_map(|pending| pending.named(tag)));
    Ok(entries)
}

/// Returns true if all entries within the horizon that share this tag have different names.
pub(crate) fn has_namesakes_apart(view: &View<'_>, tag: NameTag) -> Result<bool, SessionError> {
    let count = tagged(view, tag)?.len();
    Ok(match bearers_of(view, tag)? {
        Bearers::Alike(_) => count < 2,
        Bearers::Apart(last) => last.len() == count,
    })
}

/// Returns the entries with this tag within the horizon, paired with their places, in order.
pub(crate) fn tagged(
    view: &View<'_>,
    tag: NameTag,
) -> Result<Vec<(PlaceNumber, EntryNumber)>, Failure> {
    let mut tagged = Vec::new();
    for entry in entries_of(view, tag)? {
        tagged.extend(view.place(entry)?.map(|place| (place, entry)));
    }
    tagged.sort_unstable();
    Ok(tagged)
}

fn bearers_of(view: &View<'_>, tag: NameTag) -> Result<Bearers, Failure> {
    let tagged = tagged(view, tag)?;
    if let [] | [_] = tagged.as_slice() {
        return Ok(Bearers::Alike(tagged.first().map(|(_, entry)| *entry)));
    }
    // Equal tags do not prove equal names.
    let entries: Vec<EntryNumber> = tagged.into_iter().map(|(_, entry)| entry).collect();
    let mut last = BTreeMap::new();
    view.each_line(&entries, &mut |entry, line| {
        let name = Raw::object(&line).and_then(|raw| view.format.envelope(raw).name);
        last.insert(name.unwrap_or_default(), entry);
    })?;
    Ok(if last.len() > 1 {
        Bearers::Apart(last)
    } else {
        Bearers::Alike(last.into_values().next())
    })
}
