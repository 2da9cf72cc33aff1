//! Names in a draft: which entry a name or an id refers to.

use crate::{
    archive::SyncError,
    change::draft::Change,
    model::{EntryId, EntryNumber, IdPrefix, Kind, NameTag, Position, Record},
    session::Growth,
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
        let Some(session) = &self.before.session else { return Ok(None) };
        Ok(self.before.archive.store.find(session.key, &IdPrefix::whole(&id))?.first().copied())
    }

    /// Returns the entry that has the same name as `newest` at the end of a growth; `newest` is the newest entry with that name.
    pub(crate) fn bearer(
        &mut self,
        newest: EntryNumber,
        growth: &Growth,
    ) -> Result<EntryNumber, SyncError> {
        let name = self.record_of(newest)?.and_then(|record| record.name);
        let Some(name) = name else { return Ok(newest) };
        if !self.is_twin(name)? {
            return Ok(newest);
        }
        if let Some(last) = self.bearers.last(growth, name) {
            return Ok(last);
        }
        let end = Position { generation: growth.generation, head: None, horizon: growth.entries };
        let last = self.ahead(end, growth).bearer(newest)?;
        self.bearers.keep(name, last);
        Ok(last)
    }

    /// Returns the entry that a new turn with this parent follows. If the parent is a summary, that is the last message it keeps:
    /// the kept messages come after the summary on the path, although they were written before it.
    pub(crate) fn above(
        &mut self,
        parent: EntryNumber,
        growth: &Growth,
    ) -> Result<EntryNumber, SyncError> {
        let parent = self.bearer(parent, growth)?;
        if self.record_of(parent)?.is_none_or(|record| record.kind != Kind::Summary) {
            return Ok(parent);
        }
        if let Some(last) = self.bearers.kept(growth, parent) {
            return Ok(last);
        }
        let end = Position { generation: growth.generation, head: None, horizon: growth.entries };
        let last = self.before.format.last_kept(&self.ahead(end, growth), parent)?;
        self.bearers.keep_behind(parent, last);
        Ok(last)
    }

    /// Returns true if the session has no record with this name. Then it has no entry with this line either, because an entry's
    /// id covers the name.
    pub(crate) fn is_new_name(&mut self, name: Option<NameTag>) -> Result<bool, SyncError> {
        let Some(name) = name else { return Ok(false) };
        let held =
            self.before.session.as_ref().map(|s| (self.before.archive.store.as_ref(), s.key));
        Ok(self.deriver.named(name, held)?.is_none())
    }

    /// Returns the record of an entry.
    fn record_of(&self, entry: EntryNumber) -> Result<Option<Record>, SyncError> {
        let fresh = entry.index_from(self.before.state.next_entry());
        if let Some(record) = fresh.and_then(|n| self.deriver.records.get(n)) {
            return Ok(Some(record.clone()));
        }
        let Some(session) = &self.before.session else { return Ok(None) };
        Ok(self.before.archive.store.records(session.key, entry.alone())?.pop())
    }

    /// Returns true if several entries share a name.
    fn is_twin(&mut self, name: NameTag) -> Result<bool, SyncError> {
        if self.deriver.twins.contains(&name) {
            return Ok(true);
        }
        let Some(session) = &self.before.session else { return Ok(false) };
        if self.held_twins.is_none() {
            let held = self.before.archive.store.twins(session.key)?;
            self.held_twins = Some(held.into_iter().collect());
        }
        Ok(self.held_twins.as_ref().is_some_and(|twins| twins.contains(&name)))
    }
}
