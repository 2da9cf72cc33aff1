//! Views: a session as a graph, read from the store on demand.
//!
//! Invariant: no query costs more than about the logarithm of the session's size, once the indexes of the view are built.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    model::{
        Bulk, EntryId, EntryNumber, Facts, GenerationNumber, Kind, Landmark, LineId, Lookup,
        NameTag, Parent, PlaceNumber, Position, Record, Run, Span, Spans,
    },
    session::{
        Damages, Session, SessionError,
        graph::{
            beginning::Begins,
            content,
            names::{self, Names},
            places::Places,
            recent::AtHand,
        },
    },
    store::{NewLine, SessionKey, Store, StoreError},
    wire::{Before, Failure, Format, Graph, Path, PhysicalLine},
};

/// A byte order mark.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// The rows that a change has gathered and not yet committed.
pub(crate) struct Pending<'a> {
    pub(crate) first: EntryNumber,
    pub(crate) facts: &'a Facts,
    pub(crate) bulk: &'a Bulk,
    pub(crate) records: &'a [Record],
    pub(crate) lines: &'a [NewLine],
    pub(crate) twins: &'a BTreeSet<NameTag>,
    pub(crate) newest: &'a Lookup<NameTag, EntryNumber>,
    pub(crate) runs: Vec<Run>,
    pub(crate) names: OnceCell<BTreeMap<NameTag, Vec<EntryNumber>>>,
}

impl Pending<'_> {
    /// Returns the entries with this tag: only the newest one, unless the tag has twins.
    pub(super) fn named(&self, tag: NameTag) -> Vec<EntryNumber> {
        if !self.twins.contains(&tag) {
            let newest = self.newest.get(&tag).filter(|entry| **entry >= self.first);
            return newest.copied().into_iter().collect();
        }
        let names = self.names.get_or_init(|| {
            let mut names: BTreeMap<NameTag, Vec<EntryNumber>> = BTreeMap::new();
            let named = self.records.iter().filter_map(|record| Some((record.name?, record.n)));
            named.for_each(|(name, n)| names.entry(name).or_default().push(n));
            names
        });
        names.get(&tag).cloned().unwrap_or_default()
    }

    fn index(&self, entry: EntryNumber) -> Option<usize> {
        entry.index_from(self.first)
    }

    /// Returns the same rows with the runs of another generation.
    pub(crate) fn of(&self, generation: GenerationNumber) -> Self {
        let runs = self.bulk.runs.iter().filter(|run| run.generation == generation);
        Self { runs: runs.cloned().collect(), names: OnceCell::new(), ..*self }
    }
}

/// A session as seen from a position.
pub struct View<'a> {
    pub(crate) store: &'a dyn Store,
    /// The session; `None` if the store does not have it yet.
    pub(crate) key: Option<SessionKey>,
    pub(crate) format: &'static dyn Format,
    pub(crate) position: Position,
    /// The spans from the session's state, if it is in memory.
    pub(crate) kept: Spans,
    spans: OnceCell<Vec<Span>>,
    places: OnceCell<Places>,
    pub(super) twins: OnceCell<BTreeSet<NameTag>>,
    pub(super) names: Names,
    records: AtHand,
    pub(crate) pending: Option<Pending<'a>>,
    before: OnceCell<Box<View<'a>>>,
    pub(crate) begins: OnceCell<Begins>,
    /// The generations that continue from this one, to detect circles.
    pub(crate) behind: BTreeSet<GenerationNumber>,
    /// What to do about damaged lines.
    pub(crate) damages: Damages,
}

impl<'a> View<'a> {
    /// Makes a view. Without the spans from the session's state, every run of the generation is read.
    pub fn new(
        store: &'a dyn Store,
        session: &Session,
        position: Position,
        spans: Option<&Spans>,
    ) -> Self {
        let kept = spans.cloned().unwrap_or_default();
        Self { kept, ..Self::over(store, Some(session.key), session.format, position) }
    }

    /// Makes a view of a session that the store may not have yet.
    pub(crate) fn over(
        store: &'a dyn Store,
        key: Option<SessionKey>,
        format: &'static dyn Format,
        position: Position,
    ) -> Self {
        Self {
            store,
            key,
            format,
            position,
            kept: Spans::default(),
            spans: OnceCell::new(),
            places: OnceCell::new(),
            twins: OnceCell::new(),
            names: Names::default(),
            records: AtHand::default(),
            pending: None,
            before: OnceCell::new(),
            begins: OnceCell::new(),
            behind: BTreeSet::new(),
            damages: Damages::default(),
        }
    }

    /// Skips and gathers damaged lines; a damaged record has no messages.
    pub(crate) fn gathering(self, damages: &Damages) -> Self {
        Self { damages: damages.clone(), ..self }
    }

    /// Moves to another position and keeps the cached records.
    pub(crate) fn moved(self, position: Position) -> Self {
        Self {
            position,
            spans: OnceCell::new(),
            places: OnceCell::new(),
            names: Names::default(),
            before: OnceCell::new(),
            begins: OnceCell::new(),
            pending: self.pending.as_ref().map(|pending| pending.of(position.generation)),
            ..self
        }
    }

    /// Returns the spans of the generation within the horizon.
    pub fn spans(&self) -> Result<&[Span], StoreError> {
        if let Some(known) = self.spans.get() {
            return Ok(known);
        }
        let mut spans = Vec::new();
        let fresh = self.pending.as_ref().map_or(&[][..], |pending| &pending.runs);
        if let Some(kept) = self.kept_spans(fresh.first().map(|run| run.start)) {
            spans = kept;
            for run in fresh {
                Span::join(&mut spans, run);
            }
        } else {
            for run in self.runs_behind(0)? {
                Span::join(&mut spans, &run);
            }
        }
        for span in &mut spans {
            span.count = span.count.min(self.position.horizon.saturating_sub(span.start));
        }
        spans.retain(|span| span.count > 0);
        Ok(self.spans.get_or_init(|| spans))
    }

    /// Returns the spans from the state if they reach the horizon, or the place where new runs begin: the store may have grown
    /// since.
    fn kept_spans(&self, fresh: Option<u64>) -> Option<Vec<Span>> {
        let spans = self.kept.of(self.position.generation);
        let end = spans.last()?.end();
        (fresh == Some(end) || fresh.is_none() && self.position.horizon <= end).then_some(spans)
    }

    /// Returns true for a first generation whose entries have consecutive numbers.
    fn holds_all(&self) -> Result<bool, StoreError> {
        let goes_on =
            |pair: &[Span]| matches!(pair, [one, next] if one.entries().end == next.first);
        Ok(self.position.generation == GenerationNumber::FIRST
            && self.spans()?.windows(2).all(goes_on))
    }

    /// Returns the entries of the generation within the horizon, in order.
    pub fn sequence(&self) -> Result<Vec<EntryNumber>, StoreError> {
        Ok(self.spans()?.iter().flat_map(|span| EntryNumber::each(span.entries())).collect())
    }

    fn key(&self) -> Result<SessionKey, StoreError> {
        self.key.ok_or_else(|| StoreError::Refused("the session does not exist yet".into()))
    }

    fn places(&self) -> Result<&Places, StoreError> {
        let spans = self.spans()?;
        Ok(self.places.get_or_init(|| Places::of(spans, self.format.traits().line)))
    }

    /// Returns for each of these entries the id of its line alone, without its link.
    pub(crate) fn alone(&self, entries: &[EntryNumber]) -> Result<Vec<EntryId>, SessionError> {
        let first = self.pending.as_ref().map_or(EntryNumber::ALL.end, |pending| pending.first);
        let mut ids = Vec::with_capacity(entries.len());
        for range in EntryNumber::ranges(entries.iter().copied(), 1) {
            let held = range.start..range.end.min(first);
            if !held.is_empty() {
                ids.extend(content::alone(self.store, self.key()?, held, &self.damages)?);
            }
            for entry in EntryNumber::each(range.start.max(first)..range.end) {
                ids.push(EntryId::of(None, LineId::of(&self.line(entry)?)));
            }
        }
        Ok(ids)
    }

    /// Returns the record derived from an entry, ignoring any other record on the same physical line.
    pub(crate) fn as_derived(&self, entry: EntryNumber) -> Result<Record, Failure> {
        let fresh =
            self.pending.as_ref().and_then(|pending| pending.records.get(pending.index(entry)?));
        if let Some(record) = fresh {
            return Ok(record.clone());
        }
        Ok(self.records.get(self.store, self.key()?, entry)?)
    }

    /// Returns true if another entry is on the physical line of this one.
    fn shares_its_line(&self, entry: EntryNumber) -> Result<bool, Failure> {
        let places = self.places()?;
        if !places.has_glued() {
            return Ok(false);
        }
        let passes_over_mark = self.format.traits().line == PhysicalLine::OneRecordOrMarked;
        let is_glued = |place: PlaceNumber| {
            if place >= self.end() || !places.is_glued(place) {
                return Ok(false);
            }
            let before = self.at(place.minus(1))?.filter(|_| passes_over_mark);
            let line = before.map(|before| self.line(before)).transpose()?;
            Ok::<_, Failure>(line.is_none_or(|line| line != MARK))
        };
        let Some(place) = places.place(entry) else { return Ok(false) };
        Ok(is_glued(place)? || is_glued(place.next())?)
    }

    /// Returns true if any entry begins on the physical line of the one before.
    pub(crate) fn has_glued(&self) -> Result<bool, StoreError> {
        Ok(self.places()?.has_glued())
    }

    /// Returns the path to the head.
    pub fn path(&self, limit: usize) -> Result<Path, SessionError> {
        match self.position.head {
            Some(head) => Ok(self.format.path(self, head, limit)?),
            None => Ok(Path::default()),
        }
    }

    /// Returns the runs of the generation that end after a place; all of them for 0.
    pub(crate) fn runs_behind(&self, from: u64) -> Result<Vec<Run>, StoreError> {
        let generation = self.position.generation;
        let held = self.key.map(|key| self.store.runs(key, generation, from)).transpose()?;
        let mut runs = held.unwrap_or_default();
        let fresh = self.pending.iter().flat_map(|pending| pending.runs.iter());
        runs.extend(fresh.filter(|run| from == 0 || run.end() > from).cloned());
        Ok(runs)
    }

    /// Returns the length of the line of each of these entries.
    pub(crate) fn lengths(&self, entries: Range<EntryNumber>) -> Result<Vec<u64>, StoreError> {
        let first = self.pending.as_ref().map_or(entries.end, |pending| pending.first);
        let held = entries.start..entries.end.min(first);
        let fresh = EntryNumber::each(entries.start.max(first)..entries.end);
        let mut lengths = Vec::new();
        if !held.is_empty() {
            lengths.extend(self.store.lengths(self.key()?, held)?);
        }
        for entry in fresh {
            let pending = self.pending.as_ref();
            let line = pending.and_then(|pending| pending.lines.get(pending.index(entry)?));
            lengths.push(line.map_or(0, |line| line.bytes().len() as u64));
        }
        Ok(lengths)
    }

    /// Returns the last landmark of a kind in a range of entries.
    fn last_landmark(
        &self,
        landmark: Landmark,
        entries: Range<EntryNumber>,
    ) -> Result<Option<EntryNumber>, Failure> {
        let first = self.pending.as_ref().map_or(EntryNumber::ALL.end, |pending| pending.first);
        for entry in EntryNumber::each(entries.start.max(first)..entries.end).rev() {
            if landmark.is(&self.record(entry)?) {
                return Ok(Some(entry));
            }
        }
        let held = entries.start..entries.end.min(first);
        Ok(if held.is_empty() { None } else { self.store.landmark(self.key()?, landmark, held)? })
    }

    /// Passes on the lines of these entries, in this order; empty for a damaged one if damage is gathered.
    pub(super) fn each_line(
        &self,
        entries: &[EntryNumber],
        each: &mut dyn FnMut(EntryNumber, Vec<u8>),
    ) -> Result<(), Failure> {
        let first = self.pending.as_ref().map_or(EntryNumber::ALL.end, |pending| pending.first);
        for alike in entries.chunk_by(|one, other| (*one < first) == (*other < first)) {
            if alike.first().is_some_and(|entry| *entry < first) {
                self.damages.each_line(self.store, self.key()?, alike, &mut |entry, line| {
                    each(entry, line.unwrap_or_default());
                })?;
            } else {
                for &entry in alike {
                    each(entry, self.line(entry)?);
                }
            }
        }
        Ok(())
    }
}

/// Returns the offset in the generation's file where this many entries end.
pub(crate) fn end_of(view: &View<'_>, entries: u64) -> Result<u64, StoreError> {
    let runs = view.runs_behind(entries.saturating_sub(1))?;
    let Some(run) = runs.iter().find(|run| run.end() >= entries) else { return Ok(0) };
    let kept = entries.saturating_sub(run.start);
    let lengths = view.lengths(run.first.plus(kept)..run.first.plus(run.count))?;
    let gaps = run.gaps.iter(run.start, run.count).skip(usize::try_from(kept).unwrap_or(0));
    let behind: u64 = gaps.map(|gap| gap.len() as u64).chain(lengths).sum();
    Ok(run.bytes.saturating_sub(behind))
}

impl Graph for View<'_> {
    fn end(&self) -> PlaceNumber {
        PlaceNumber::new(self.position.horizon)
    }

    fn at(&self, place: PlaceNumber) -> Result<Option<EntryNumber>, Failure> {
        if place >= self.end() {
            return Ok(None);
        }
        let place = place.get();
        let spans = self.spans()?;
        let after = spans.partition_point(|span| span.start <= place);
        let span = after.checked_sub(1).and_then(|i| spans.get(i));
        let span = span.filter(|span| place < span.end());
        Ok(span.map(|span| span.first.plus(place - span.start)))
    }

    fn record(&self, entry: EntryNumber) -> Result<Record, Failure> {
        let mut record = self.as_derived(entry)?;
        if self.format.traits().line != PhysicalLine::Records && self.shares_its_line(entry)? {
            record.kind = Kind::Opaque;
        }
        Ok(record)
    }

    fn parent(&self, entry: EntryNumber) -> Result<Option<EntryNumber>, Failure> {
        if let Some(found) = self.names.parents.borrow().get(&entry) {
            return Ok(*found);
        }
        let record = self.record(entry)?;
        let twins = names::twins(self)?;
        let tag = match record.parent {
            Parent::Root => return Ok(None),
            Parent::Entry(parent) => match self.record(parent)?.name {
                Some(name) if twins.contains(&name) => name,
                // Only an entry that an agent wrote into another state of its file can have a parent that is not in this one.
                _ if !self.format.traits().has_parents_in_file && !self.holds_all()? => {
                    let is_apart = self.place(parent)?.is_none() && self.place(entry)?.is_some();
                    return Ok((!is_apart).then_some(parent));
                }
                _ => return Ok(Some(parent)),
            },
            Parent::Missing => match names::followed(self, entry)? {
                Some(name) => NameTag::of(&name),
                None => return Ok(None),
            },
        };
        let found = names::follows(self, entry, tag)?;
        self.names.parents.borrow_mut().insert(entry, found);
        Ok(found)
    }

    fn line(&self, entry: EntryNumber) -> Result<Vec<u8>, Failure> {
        let fresh =
            self.pending.as_ref().and_then(|pending| pending.lines.get(pending.index(entry)?));
        if let Some(line) = fresh {
            return Ok(line.bytes().to_vec());
        }
        let mut found = Vec::new();
        self.damages.lines(self.store, self.key()?, &[entry], &mut |_, line| found = line)?;
        Ok(found)
    }

    fn place(&self, entry: EntryNumber) -> Result<Option<PlaceNumber>, Failure> {
        Ok(self.places()?.place(entry))
    }

    fn named(&self, name: NameTag) -> Result<Option<EntryNumber>, Failure> {
        if let Some(found) = self.names.named.borrow().get(&name) {
            return Ok(*found);
        }
        let last = names::tagged(self, name)?.last().map(|(_, entry)| *entry);
        self.names.named.borrow_mut().insert(name, last);
        Ok(last)
    }

    fn bears(&self, record: &Record) -> Result<bool, Failure> {
        match record.name {
            Some(name) if names::twins(self)?.contains(&name) => {
                Ok(self.named(name)? == Some(record.n))
            }
            // The name is unique.
            Some(_) => Ok(self.place(record.n)?.is_some()),
            None => Ok(true),
        }
    }

    fn landmark(
        &self,
        landmark: Landmark,
        before: PlaceNumber,
    ) -> Result<Option<(PlaceNumber, EntryNumber)>, Failure> {
        let before = before.get();
        let spans = self.spans()?;
        let begun = spans.partition_point(|span| span.start < before);
        for span in spans.iter().take(begun).rev() {
            let end = span.first.plus(span.count.min(before - span.start));
            if let Some(entry) = self.last_landmark(landmark, span.first..end)? {
                return Ok(Some((PlaceNumber::new(span.start + entry.since(span.first)), entry)));
            }
        }
        Ok(None)
    }

    fn is_glued(&self, place: PlaceNumber) -> Result<bool, Failure> {
        Ok(place < self.end() && self.places()?.is_glued(place))
    }

    fn bytes(&self) -> Result<u64, Failure> {
        let horizon = self.position.horizon;
        let runs = self.runs_behind(horizon.saturating_sub(1))?;
        match runs.last() {
            // After the last run there is only an incomplete line.
            Some(last) if last.end() <= horizon => Ok(last.length()),
            _ => Ok(end_of(self, horizon)?),
        }
    }

    fn before(&self) -> Result<Before<'_>, Failure> {
        Ok(match self.begins()? {
            Begins::Here => Before::Nothing,
            Begins::Elsewhere(_) => Before::Unread,
            Begins::At(position) => {
                Before::File(&**self.before.get_or_init(|| Box::new(self.base(*position))))
            }
        })
    }
}
