//! Queries over both layers: the data below, then the recent operations.
//!
//! Invariant: the layer below is never queried twice for one answer, and never for what the overlay knows alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use super::{Overlay, Sheet};
use crate::{
    model::{
        Card, Checkpoint, CheckpointNumber, Entry, EntryId, EntryNumber, FileNumber,
        GenerationNumber, Glance, IdPrefix, Landmark, LineId, NameTag, Operation, OperationNumber,
        Origin, Place, Record, Run, SessionName, State, StoreId, Tie, TieKind,
    },
    store::{
        ByteStore, CacheStore, Cursor, FactStore, Fault, Known, Listed, Reading, SessionFilter,
        SessionKey, Sieve, Sizes, StoreError, Total, nearest,
    },
};

/// A layer below with an overlay on top.
pub(in crate::store) struct Laid<'a> {
    /// The layer below, if there is one.
    pub(in crate::store) beneath: Option<&'a dyn Reading>,
    pub(in crate::store) over: &'a Overlay,
}

/// Returns the items with numbers in `range`; the first item has the number `first`.
fn numbered<'a, T>(
    items: &'a [T],
    first: EntryNumber,
    range: &Range<EntryNumber>,
) -> impl Iterator<Item = &'a T> + use<'a, T> {
    let at = |n: EntryNumber| usize::try_from(n.since(first)).unwrap_or(usize::MAX);
    items.iter().take(at(range.end)).skip(at(range.start))
}

impl Laid<'_> {
    fn sheet(&self, session: SessionKey) -> Option<&Sheet> {
        self.over.sheets.get(&session).map(Arc::as_ref)
    }

    /// Queries the layer below.
    pub(super) fn beneath<T: Default>(
        &self,
        ask: impl FnOnce(&dyn Reading) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.beneath.map_or_else(|| Ok(T::default()), ask)
    }

    /// Queries the layer below about a session, if it has anything of it. Refuses the key of a session that cannot exist.
    fn beneath_of<T: Default>(
        &self,
        session: SessionKey,
        ask: impl FnOnce(&dyn Reading) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.known(session)?;
        let is_all = |sheet: &Sheet| sheet.first == OperationNumber::FIRST;
        if self.sheet(session).is_some_and(is_all) { Ok(T::default()) } else { self.beneath(ask) }
    }

    /// Refuses the key of a session that cannot exist.
    fn known(&self, session: SessionKey) -> Result<(), StoreError> {
        if self.beneath.is_some() || self.sheet(session).is_some() {
            return Ok(());
        }
        Err(StoreError::corrupt("a session", format!("no session has the key {}", session.0)))
    }

    /// Queries items that are numbered like entries: first those below, then the recent ones.
    fn by_entry<T>(
        &self,
        session: SessionKey,
        range: &Range<EntryNumber>,
        beneath: impl FnOnce(&dyn Reading, Range<EntryNumber>) -> Result<Vec<T>, StoreError>,
        late: impl FnOnce(&Sheet, &mut Vec<T>),
    ) -> Result<Vec<T>, StoreError> {
        let sheet = self.sheet(session);
        let end = sheet.map_or(range.end, |sheet| range.end.min(sheet.first_entry));
        let mut found = self.beneath_of(session, |store| {
            if range.start < end { beneath(store, range.start..end) } else { Ok(Vec::new()) }
        })?;
        if let Some(sheet) = sheet {
            late(sheet, &mut found);
        }
        Ok(found)
    }
}

impl FactStore for Laid<'_> {
    fn id(&self) -> Result<StoreId, StoreError> {
        self.beneath(|store| store.id().map(Some))?
            .ok_or_else(|| StoreError::corrupt("the store", "it has no id"))
    }

    fn names(&self) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        let mut found: BTreeMap<SessionKey, SessionName> =
            self.beneath(|store| store.names())?.into_iter().collect();
        for (key, sheet) in &self.over.sheets {
            found.entry(*key).or_insert_with(|| sheet.name.clone());
        }
        Ok(found.into_iter().collect())
    }

    fn beside(&self, name: &SessionName) -> Result<Vec<SessionName>, StoreError> {
        let mut all = self.beneath(|store| store.beside(name))?;
        all.extend(self.over.sheets.values().map(|sheet| sheet.name.clone()));
        Ok(nearest(name, all))
    }

    fn session(&self, name: &SessionName) -> Result<Option<SessionKey>, StoreError> {
        let known = self.beneath(|store| store.session(name))?;
        let mut sheets = self.over.sheets.iter();
        Ok(known.or_else(|| Some(*sheets.find(|(_, sheet)| sheet.name == *name)?.0)))
    }

    fn operations(
        &self,
        session: SessionKey,
        range: Range<OperationNumber>,
    ) -> Result<Vec<Operation>, StoreError> {
        let Some(sheet) = self.sheet(session) else {
            return self.beneath_of(session, |store| store.operations(session, range));
        };
        let end = range.end.min(sheet.first);
        let mut found = Vec::new();
        if range.start < end {
            found =
                self.beneath_of(session, |store| store.operations(session, range.start..end))?;
        }
        let at = |n: OperationNumber| usize::try_from(n.since(sheet.first)).unwrap_or(usize::MAX);
        let late = sheet.operations.iter().take(at(range.end)).skip(at(range.start));
        found.extend(late.map(|(_, operation)| operation.clone()));
        Ok(found)
    }

    fn entries(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<Entry>, StoreError> {
        self.by_entry(
            session,
            &range,
            |store, range| store.entries(session, range),
            |sheet, found| {
                let late = numbered(&sheet.entries, sheet.first_entry, &range);
                found.extend(late.map(|(entry, _)| *entry));
            },
        )
    }

    fn find(&self, session: SessionKey, prefix: &IdPrefix) -> Result<Vec<EntryNumber>, StoreError> {
        let mut found = self.beneath_of(session, |store| store.find(session, prefix))?;
        if let Some(sheet) = self.sheet(session) {
            let (low, high) = prefix.bounds();
            let mut late: Vec<EntryNumber> =
                sheet.index().ids.range(low..=high).map(|(_, n)| *n).collect();
            late.sort_unstable();
            found.extend(late);
        }
        Ok(found)
    }

    fn runs(
        &self,
        session: SessionKey,
        generation: GenerationNumber,
        from: u64,
    ) -> Result<Vec<Run>, StoreError> {
        let mut found = self.beneath_of(session, |store| store.runs(session, generation, from))?;
        if let Some(sheet) = self.sheet(session) {
            let wanted =
                |run: &&Run| run.generation == generation && (from == 0 || run.end() > from);
            found.extend(sheet.runs.iter().map(|(_, run)| run).filter(wanted).cloned());
        }
        Ok(found)
    }

    fn growths(
        &self,
        session: SessionKey,
        operations: Range<OperationNumber>,
    ) -> Result<Vec<(OperationNumber, Run)>, StoreError> {
        let mut found =
            self.beneath_of(session, |store| store.growths(session, operations.clone()))?;
        if let Some(sheet) = self.sheet(session) {
            let late = sheet.runs.iter().filter(|(n, _)| operations.contains(n));
            found.extend(late.cloned());
        }
        Ok(found)
    }

    fn checkpoints(
        &self,
        session: SessionKey,
        range: Range<CheckpointNumber>,
    ) -> Result<Vec<(OperationNumber, Checkpoint)>, StoreError> {
        let mut found =
            self.beneath_of(session, |store| store.checkpoints(session, range.clone()))?;
        if let Some(sheet) = self.sheet(session) {
            let late = sheet.checkpoints.iter().filter(|(_, given)| range.contains(&given.n));
            found.extend(late.cloned());
        }
        Ok(found)
    }

    fn origins(
        &self,
        session: SessionKey,
        entries: Range<EntryNumber>,
    ) -> Result<Vec<(OperationNumber, Origin)>, StoreError> {
        let mut found =
            self.beneath_of(session, |store| store.origins(session, entries.clone()))?;
        if let Some(sheet) = self.sheet(session).filter(|_| entries.start < entries.end) {
            let late = sheet.origins.range(
                (entries.start, OperationNumber::new(0))..(entries.end, OperationNumber::new(0)),
            );
            found.extend(late.map(|((_, operation), origin)| (*operation, origin.clone())));
            found.sort_by_key(|(operation, origin)| (origin.entry, *operation));
        }
        Ok(found)
    }

    fn since(&self, cursor: Option<&Cursor>) -> Result<(Vec<SessionKey>, Cursor), StoreError> {
        let operations = || self.over.sheets.values().flat_map(|sheet| &sheet.operations);
        let is_it = |(seq, hash)| operations().any(|(n, it)| (*n, it.hash) == (seq, hash));
        let seen = cursor.and_then(Cursor::newest).filter(|newest| is_it(*newest));
        let (mut found, beneath) = match self.beneath {
            // Everything below is older than a recent operation.
            Some(_) if seen.is_some() => (Vec::new(), Cursor::default()),
            Some(store) => store.since(cursor)?,
            None => (Vec::new(), Cursor::default()),
        };
        let seen = seen.map_or(0, |(seq, _)| seq);
        let is_new = |sheet: &Arc<Sheet>| sheet.operations.iter().any(|(seq, _)| *seq > seen);
        let late = self.over.sheets.iter().filter(|(_, sheet)| is_new(sheet));
        found.extend(late.map(|(key, _)| *key));
        found.sort_unstable();
        found.dedup();
        let newest = operations().max_by_key(|(seq, _)| *seq);
        let newest = newest.map(|(seq, newest)| Cursor::at(*seq, newest.hash));
        Ok((found, newest.unwrap_or(beneath)))
    }
}

impl ByteStore for Laid<'_> {
    fn tally(&self, filter: &SessionFilter) -> Result<BTreeMap<String, u64>, StoreError> {
        let mut tally = self.beneath(|store| store.tally(filter))?;
        let among = |only: BTreeSet<SessionKey>| {
            let wanted = filter.only.as_ref();
            let only = only.into_iter().filter(|key| wanted.is_none_or(|all| all.contains(key)));
            SessionFilter { only: Some(only.collect()), limit: None, ..filter.clone() }
        };
        // The cards of recent sessions replace those below.
        let recent = among(self.over.sheets.keys().copied().collect());
        for listed in self.beneath(|store| store.sessions(&recent))? {
            tally.entry(listed.name.format).and_modify(|count| *count -= 1);
        }
        for listed in self.sessions(&recent)? {
            *tally.entry(listed.name.format).or_default() += 1;
        }
        tally.retain(|_, count| *count > 0);
        Ok(tally)
    }

    fn lines(
        &self,
        session: SessionKey,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError> {
        self.known(session)?;
        let sheet = self.sheet(session);
        let late = |n: EntryNumber| sheet.and_then(|sheet| sheet.entry(n));
        let mut rest = entries;
        while let Some((&n, more)) = rest.split_first() {
            if let Some((_, line)) = late(n) {
                each(n, Ok(line.to_vec()));
                rest = more;
                continue;
            }
            let end = rest.iter().position(|n| late(*n).is_some()).unwrap_or(rest.len());
            let (held, more) = rest.split_at(end);
            if let Some(store) = self.beneath {
                store.lines(session, held, each)?;
            } else {
                for &n in held {
                    each(n, Err(StoreError::corrupt(format!("entry {n}"), "it has no line")));
                }
            }
            rest = more;
        }
        Ok(())
    }

    fn sift(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        sieve: &Sieve,
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError> {
        let sheet = self.sheet(session);
        let end = sheet.map_or(range.end, |sheet| range.end.min(sheet.first_entry));
        self.beneath_of(session, |store| {
            if range.start >= end {
                return Ok(());
            }
            store.sift(session, range.start..end, sieve, each)
        })?;
        for (entry, line) in sheet.iter().flat_map(|sheet| &sheet.entries) {
            if range.contains(&entry.n) && sieve.passes(line) {
                each(entry.n, Ok(line.to_vec()));
            }
        }
        Ok(())
    }

    fn lengths(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<u64>, StoreError> {
        self.by_entry(
            session,
            &range,
            |store, range| store.lengths(session, range),
            |sheet, found| {
                let late = numbered(&sheet.entries, sheet.first_entry, &range);
                found.extend(late.map(|(_, line)| line.len() as u64));
            },
        )
    }

    fn totals(&self) -> Result<Vec<Total>, StoreError> {
        let beneath = self.beneath(|store| store.totals())?.into_iter();
        let mut totals: BTreeMap<String, Total> =
            beneath.map(|total| (total.format.clone(), total)).collect();
        for sheet in self.over.sheets.values() {
            let format = sheet.name.format.clone();
            let none = Total { format: format.clone(), ..Total::default() };
            let total = totals.entry(format).or_insert(none);
            total.sessions += u64::from(sheet.first == OperationNumber::FIRST);
            total.entries += sheet.entries.len() as u64;
            total.bytes += sheet.entries.iter().map(|(_, line)| line.len() as u64).sum::<u64>();
        }
        Ok(totals.into_values().collect())
    }

    fn kept(
        &self,
        session: SessionKey,
        operation: OperationNumber,
        at: u64,
    ) -> Result<Vec<u8>, StoreError> {
        if let Some(bytes) = self.sheet(session).and_then(|sheet| sheet.kept.get(&(operation, at)))
        {
            return Ok(bytes.to_vec());
        }
        self.beneath_of(session, |store| store.kept(session, operation, at).map(Some))?.ok_or_else(
            || StoreError::corrupt(format!("operation {operation}"), "it has no such file"),
        )
    }

    fn check(
        &self,
        only: Option<SessionKey>,
        report: &mut dyn FnMut(Fault),
    ) -> Result<(), StoreError> {
        match only {
            Some(session) if self.sheet(session).is_some() => {
                self.beneath_of(session, |store| store.check(only, report))?;
            }
            _ => self.beneath(|store| store.check(only, report))?,
        }
        let mut sheets =
            self.over.sheets.iter().filter(|(key, _)| only.is_none_or(|it| it == **key));
        sheets.try_for_each(|(key, sheet)| {
            for (entry, line) in &sheet.entries {
                let link = match entry.link {
                    Some(n) => self.entries(*key, n.alone())?.first().map(|entry| entry.id),
                    None => None,
                };
                let line = LineId::of(line);
                let covered = sheet.state.covered(entry.n).filter(|(_, now)| *now == line);
                if EntryId::of(link, covered.map_or(line, |(came, _)| came)) != entry.id {
                    let problem = "its line does not match its id";
                    report(Fault::of(Some(*key), format!("entry {}", entry.n), problem));
                }
            }
            Ok(())
        })
    }

    fn sizes(&self) -> Result<Sizes, StoreError> {
        let mut sizes = self.beneath(|store| store.sizes())?;
        for sheet in self.over.sheets.values() {
            let raw: u64 = sheet.entries.iter().map(|(_, line)| line.len() as u64).sum();
            sizes.lines += sheet.entries.len() as u64;
            sizes.raw += raw;
            sizes.kept += raw;
            if self.beneath.is_none() {
                sizes.stored += raw;
            }
        }
        Ok(sizes)
    }
}

impl CacheStore for Laid<'_> {
    fn state(&self, session: SessionKey) -> Result<State, StoreError> {
        match self.sheet(session) {
            Some(sheet) => Ok(sheet.state.clone()),
            None => self.beneath_of(session, |store| store.state(session)),
        }
    }

    fn card(&self, session: SessionKey) -> Result<Card, StoreError> {
        match self.sheet(session) {
            Some(sheet) => Ok(sheet.card.clone()),
            None => self.beneath_of(session, |store| store.card(session)),
        }
    }

    fn sessions(&self, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError> {
        // Recent sessions may displace as many sessions listed below.
        let limit = filter.limit.map(|limit| limit.saturating_add(self.over.sheets.len()));
        let wider = SessionFilter { limit, ..filter.clone() };
        let mut found = self.beneath(|store| store.sessions(&wider))?;
        found.retain(|listed| self.sheet(listed.key).is_none());
        for (key, sheet) in &self.over.sheets {
            let listed = Listed { key: *key, name: sheet.name.clone(), card: sheet.card.clone() };
            if filter.matches(&listed) && (filter.sub_agents || !is_sub_agent(self, &listed)?) {
                found.push(listed);
            }
        }
        found.sort_by_key(|listed| std::cmp::Reverse((listed.card.active, listed.key)));
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    fn files(
        &self,
        place: &Place,
    ) -> Result<Vec<(SessionKey, SessionName, FileNumber)>, StoreError> {
        let mut found = self.beneath(|store| store.files(place))?;
        found.retain(|(key, ..)| self.sheet(*key).is_none());
        for (key, sheet) in &self.over.sheets {
            let files = FileNumber::FIRST
                .onwards()
                .zip(&sheet.state.files)
                .filter(|(_, file)| *file == place);
            found.extend(files.map(|(n, _)| (*key, sheet.name.clone(), n)));
        }
        found.sort_by_key(|(key, _, n)| (*key, *n));
        Ok(found)
    }

    fn records(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
    ) -> Result<Vec<Record>, StoreError> {
        self.by_entry(
            session,
            &range,
            |store, range| store.records(session, range),
            |sheet, found| {
                found.extend(numbered(&sheet.records, sheet.first_entry, &range).cloned());
            },
        )
    }

    fn named(
        &self,
        session: SessionKey,
        low: NameTag,
        high: NameTag,
    ) -> Result<Vec<EntryNumber>, StoreError> {
        let mut found = self.beneath_of(session, |store| store.named(session, low, high))?;
        if let Some(sheet) = self.sheet(session).filter(|_| low <= high) {
            found.extend(sheet.index().names.range(low..=high).flat_map(|(_, entries)| entries));
            found.sort_unstable();
        }
        Ok(found)
    }

    fn landmark(
        &self,
        session: SessionKey,
        landmark: Landmark,
        range: Range<EntryNumber>,
    ) -> Result<Option<EntryNumber>, StoreError> {
        self.known(session)?;
        let mut end = range.end;
        if let Some(sheet) = self.sheet(session) {
            let late: Vec<&Record> = numbered(&sheet.records, sheet.first_entry, &range).collect();
            if let Some(record) = late.iter().rfind(|record| landmark.is(record)) {
                return Ok(Some(record.n));
            }
            end = end.min(sheet.first_entry);
        }
        if range.start < end {
            let beneath = range.start..end;
            return self.beneath_of(session, |store| store.landmark(session, landmark, beneath));
        }
        Ok(None)
    }

    fn twins(&self, session: SessionKey) -> Result<Vec<NameTag>, StoreError> {
        let mut found = self.beneath_of(session, |store| store.twins(session))?;
        if let Some(sheet) = self.sheet(session).filter(|sheet| !sheet.twins.is_empty()) {
            found.extend(&sheet.twins);
            found.sort_unstable();
            found.dedup();
        }
        Ok(found)
    }

    fn ties(&self, session: SessionKey) -> Result<Vec<(GenerationNumber, Vec<Tie>)>, StoreError> {
        let mut found = self.beneath_of(session, |store| store.ties(session))?;
        if let Some(sheet) = self.sheet(session).filter(|sheet| !sheet.ties.is_empty()) {
            let mut ties: BTreeMap<GenerationNumber, Vec<Tie>> = found.into_iter().collect();
            ties.extend(sheet.ties.clone());
            ties.retain(|_, ties| !ties.is_empty());
            found = ties.into_iter().collect();
        }
        Ok(found)
    }

    fn tied(
        &self,
        format: &str,
        tie: &Tie,
        besides: Option<SessionKey>,
    ) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
        let mut found = self.beneath(|store| store.tied(format, tie, besides))?;
        found.retain(|(key, _)| self.sheet(*key).is_none());
        for (key, sheet) in self.over.sheets.iter().filter(|(_, s)| s.name.format == format) {
            if Some(*key) != besides && self.ties(*key)?.iter().any(|it| it.1.contains(tie)) {
                found.push((*key, sheet.name.clone()));
            }
        }
        found.sort_by(|(_, a), (_, b)| a.cmp(b));
        Ok(found)
    }

    fn glances(&self, sessions: &[SessionKey]) -> Result<Vec<(SessionKey, Glance)>, StoreError> {
        let mut found: BTreeMap<SessionKey, Glance> =
            self.beneath(|store| store.glances(sessions))?.into_iter().collect();
        let own = |key: &SessionKey| Some((*key, self.over.glances.get(key)?.clone()));
        found.extend(sessions.iter().filter_map(own));
        Ok(found.into_iter().collect())
    }

    fn counts(
        &self,
        session: SessionKey,
        range: Range<EntryNumber>,
        rule: u64,
    ) -> Result<Vec<(EntryNumber, Vec<u64>)>, StoreError> {
        self.by_entry(
            session,
            &range,
            |store, range| store.counts(session, range, rule),
            |sheet, found| {
                let late = numbered(&sheet.entries, sheet.first_entry, &range);
                let known =
                    |n: EntryNumber| sheet.counts.get(&(rule, n)).map(|tokens| (n, tokens.clone()));
                found.extend(late.filter_map(|(entry, _)| known(entry.n)));
            },
        )
    }
}

/// Returns true if a session is a sub-agent of an existing session.
fn is_sub_agent(store: &Laid<'_>, listed: &Listed) -> Result<bool, StoreError> {
    for (_, ties) in store.ties(listed.key)? {
        for tie in ties.into_iter().filter(|tie| tie.kind == TieKind::SubAgent) {
            let parent = SessionName { format: listed.name.format.clone(), id: tie.other };
            if store.session(&parent)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A session while a commit is checked.
pub(in crate::store) struct KnownOf<'a> {
    pub(in crate::store) laid: &'a Laid<'a>,
    pub(in crate::store) session: Option<SessionKey>,
}

impl Known for KnownOf<'_> {
    fn entry(&self, n: EntryNumber) -> Result<Option<EntryId>, StoreError> {
        let Some(session) = self.session else { return Ok(None) };
        Ok(self.laid.entries(session, n.alone())?.first().map(|entry| entry.id))
    }

    fn holds(&self, id: &EntryId) -> Result<bool, StoreError> {
        let Some(session) = self.session else { return Ok(false) };
        Ok(!self.laid.find(session, &IdPrefix::whole(id))?.is_empty())
    }

    fn origin(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, StoreError> {
        let Some(session) = self.session else { return Ok(None) };
        let found = self.laid.origins(session, entry.alone())?;
        Ok(found.first().map(|(_, origin)| origin.origin))
    }
}
