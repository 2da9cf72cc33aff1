//! Names in a draft: which entry a name or an id refers to.

use crate::{
    archive::SyncError,
    change::draft::Change,
    model::{EntryId, EntryNumber, IdPrefix, Kind, NameTag, Record},
    session::{Growth, graph::names},
};

impl Change<'_> {
    /// Returns the id of an entry.
    pub(crate) fn id_of(&self, entry: EntryNumber) -> Result<EntryId, SyncError> {
        let fresh = entry.index_from(self.before.state.next_entry());
        match fresh.and_then(|i| self.bulk.entries.get(i)) {
            Some(entry) => Ok(entry.id),
            None => self.before.id_of(entry),
        }
    }

    /// Returns the stored entry with this id.
    pub(crate) fn held(&self, id: EntryId) -> Result<Option<EntryNumber>, SyncError> {
        let Some((store, session)) = self.before.stored() else { return Ok(None) };
        Ok(store.find(session, &IdPrefix::whole(&id))?.first().copied())
    }
}

/// Returns the entry that has the same name as `newest` at the end of a growth; `newest` is the newest entry with that name.
pub(crate) fn bearer(
    change: &mut Change<'_>,
    newest: EntryNumber,
    growth: &Growth,
) -> Result<EntryNumber, SyncError> {
    let name = record_of(change, newest)?.and_then(|record| record.name);
    let Some(name) = name else { return Ok(newest) };
    if !is_twin(change, name)? {
        return Ok(newest);
    }
    if let Some(last) = change.bearers.last(growth, name) {
        return Ok(last);
    }
    let last = names::bearer(&change.ahead(growth.position(None), growth), newest)?;
    change.bearers.keep(name, last);
    Ok(last)
}

/// Returns the entry that a new turn with this parent follows. If the parent is a summary, that is the last message it keeps:
/// the kept messages come after the summary on the path, although they were written before it.
pub(crate) fn above(
    change: &mut Change<'_>,
    parent: EntryNumber,
    growth: &Growth,
) -> Result<EntryNumber, SyncError> {
    let parent = bearer(change, parent, growth)?;
    if record_of(change, parent)?.is_none_or(|record| record.kind != Kind::Summary) {
        return Ok(parent);
    }
    if let Some(last) = change.bearers.kept(growth, parent) {
        return Ok(last);
    }
    let view = change.ahead(growth.position(None), growth);
    let last = change.before.format.last_kept(&view, parent)?;
    drop(view);
    change.bearers.keep_behind(parent, last);
    Ok(last)
}

/// Returns true if the session has no record with this name. Then it has no entry with this line either, because an entry's
/// id covers the name.
pub(crate) fn is_new_name(
    change: &mut Change<'_>,
    name: Option<NameTag>,
) -> Result<bool, SyncError> {
    let Some(name) = name else { return Ok(false) };
    Ok(change.deriver.named(name, change.before.stored())?.is_none())
}

/// Returns the record of an entry.
fn record_of(change: &Change<'_>, entry: EntryNumber) -> Result<Option<Record>, SyncError> {
    let fresh = entry.index_from(change.before.state.next_entry());
    if let Some(record) = fresh.and_then(|n| change.deriver.records.get(n)) {
        return Ok(Some(record.clone()));
    }
    let Some((store, session)) = change.before.stored() else { return Ok(None) };
    Ok(store.records(session, entry.alone())?.pop())
}

/// Returns true if several entries share a name.
fn is_twin(change: &mut Change<'_>, name: NameTag) -> Result<bool, SyncError> {
    if change.deriver.twins.contains(&name) {
        return Ok(true);
    }
    let Some((store, session)) = change.before.stored() else { return Ok(false) };
    let twins = match &mut change.held_twins {
        Some(twins) => twins,
        none => none.insert(store.twins(session)?.into_iter().collect()),
    };
    Ok(twins.contains(&name))
}
