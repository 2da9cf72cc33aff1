//! Counts of entries: kept counts are read, and the rest is counted now.

use std::collections::BTreeMap;

use crate::{
    context::{
        self, Item, Origin,
        tokens::{Counting, Encoding},
    },
    model::EntryNumber,
    ops::OpsError,
    session::{Session, ids::NEAR},
    sync::Archive,
};

/// Counts items, each line once ever, and returns the counts made for the first time.
pub(super) fn count(
    archive: &Archive,
    session: &Session,
    items: &mut [Item],
    counting: Counting,
) -> Result<Vec<(EntryNumber, Vec<u64>)>, OpsError> {
    let Counting::Exact(encoding) = counting else {
        context::count(items, counting);
        return Ok(Vec::new());
    };
    let entries: Vec<EntryNumber> = items.iter().filter_map(Item::entry).collect();
    let known = kept(archive, session, encoding, &entries)?;
    let of_one_entry = |one: &Item, other: &Item| one.entry() == other.entry();
    for group in items.chunk_by_mut(of_one_entry) {
        let own = group.first().filter(|item| item.origin != Origin::Edited);
        let counts = own.and_then(Item::entry).and_then(|entry| known.get(&entry));
        if let Some(counts) = counts.filter(|counts| counts.len() == group.len()) {
            for (item, &tokens) in group.iter_mut().zip(counts) {
                item.tokens = Some(tokens);
            }
        }
    }
    // What replaces an entry's own content is not in its line.
    let is_new = |item: &Item| item.tokens.is_none() && item.origin != Origin::Edited;
    let is_new: Vec<bool> = items.iter().map(is_new).collect();
    context::count(items, counting);
    let mut fresh = Vec::new();
    let mut at = 0;
    for group in items.chunk_by(of_one_entry) {
        if is_new.get(at) == Some(&true)
            && let Some(entry) = group.first().and_then(Item::entry)
        {
            fresh.push((entry, group.iter().filter_map(|item| item.tokens).collect()));
        }
        at += group.len();
    }
    Ok(fresh)
}

/// Returns the counts that are kept of entries.
pub(super) fn kept(
    archive: &Archive,
    session: &Session,
    encoding: Encoding,
    entries: &[EntryNumber],
) -> Result<BTreeMap<EntryNumber, Vec<u64>>, OpsError> {
    let mut kept = BTreeMap::new();
    for range in EntryNumber::ranges(entries.iter().copied(), NEAR) {
        kept.extend(archive.store().counts(session.key, range, encoding.rule())?);
    }
    Ok(kept)
}
