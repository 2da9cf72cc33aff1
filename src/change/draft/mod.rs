//! A draft: an operation under construction, and its commit.
//!
//! ```text
//! begin   read the session's state
//! ...     gather lines, growth, moves, marks, checkpoints
//! commit  1 write the successor of the live file, if there is one, under a temporary name
//!         2 commit the operation
//!         3 append to the live file, or exchange it for the successor
//! ```
//!
//! Invariant: a growth never differs from what a reading of its file gives, because both use the same reader.

pub(crate) mod batch;
pub(crate) mod bearers;
pub(crate) mod commit;
pub(crate) mod follow;
pub(crate) mod listing;
pub(crate) mod live;
pub(crate) mod names;
pub(crate) mod tombstone;
pub(crate) mod whole_files;

pub(crate) use crate::change::draft::commit::Buried;

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Read,
    sync::Arc,
};

use crate::{
    archive::{Archive, At, SyncError},
    change::draft::{bearers::Bearers, follow::Follow},
    files::{at::Standing, scan::Scanned},
    json::Raw,
    model::{
        Bulk, Checkpoint, CheckpointNumber, Cutting, Entry, EntryId, EntryNumber, Facts,
        FileNumber, Generation, GenerationNumber, Kind, LineId, Lookup, NameTag, Origin, Parent,
        Place, Position, Run, SessionName, Step, Text, line::Line,
    },
    report::Notice,
    session::{
        Deriver, Growth, Pending, View, is_marked,
        plan::{Steps, branch_text, free_name},
    },
    store::{Commit, NewLine, SessionKey, StoreError, Transaction, Whole},
    wire::{
        Envelope, Format,
        jsonl::{Reader, Tail},
    },
};

/// An operation under construction.
pub(crate) struct Change<'a> {
    /// The session's state before the operation.
    pub(crate) before: Standing<'a>,
    pub(crate) notices: Vec<Notice>,
    /// True while turns are written again that already have checkpoints.
    pub(crate) is_replay: bool,
    pub(crate) facts: Facts,
    pub(crate) bulk: Bulk,
    lines: Vec<NewLine>,
    kept: Vec<Vec<u8>>,
    /// The bytes of sidecars, which are stored after the containers.
    sidecars: Vec<Vec<u8>>,
    /// The total size of lines and sidecars.
    pub(crate) bytes: u64,
    pub(crate) deriver: Deriver,
    bearers: Bearers,
    /// The names in the store that several entries share; loaded when first needed.
    held_twins: Option<BTreeSet<NameTag>>,
    fresh_ids: Lookup<EntryId, EntryNumber>,
    /// Redacted lines of the session: each replacement with its original.
    covered: BTreeMap<LineId, LineId>,
    /// How many of the new lines were redacted before.
    redacted: u64,
    moved: BTreeMap<String, (Option<Position>, Option<Position>)>,
    follow: Follow,
    writing: Writing<'a>,
    _lock: Option<Arc<File>>,
}

/// The transaction that a change belongs to.
pub(crate) enum Writing<'a> {
    /// Its own transaction; `None` once it is committed.
    Alone(Option<Box<dyn Transaction + 'a>>),
    /// A transaction that commits many changes together.
    Among(&'a mut dyn Gathering),
}

impl<'a> Writing<'a> {
    /// Begins a transaction for one change.
    pub(crate) fn alone(archive: &'a Archive) -> Result<Self, StoreError> {
        Ok(Self::Alone(Some(archive.store.begin()?)))
    }
}

/// A transaction that commits many changes together.
pub(crate) trait Gathering {
    /// Adds an operation.
    fn add(&mut self, commit: Commit) -> Result<SessionKey, StoreError>;

    /// Commits the operations added so far and begins a new transaction.
    fn settle(&mut self) -> Result<(), StoreError>;

    /// Does the same if enough bytes were added.
    fn renew(&mut self) -> Result<(), StoreError>;
}

impl<'a> Change<'a> {
    /// Begins an operation of a session that has caught up. The caller holds the lock.
    pub(crate) fn of(session: &At<'a>, writing: Writing<'a>) -> Result<Self, SyncError> {
        Ok(Self::with(Standing::of(session)?, writing))
    }

    /// Begins an operation of its own of a session that has caught up. The caller holds the lock.
    pub(crate) fn bare(session: &At<'a>) -> Result<Self, SyncError> {
        Self::of(session, Writing::alone(session.archive)?)
    }

    /// Begins the first operation of a session. The caller holds the lock.
    pub(crate) fn first(
        archive: &'a Archive,
        name: SessionName,
        format: &'static dyn Format,
        writing: Writing<'a>,
    ) -> Self {
        Self::with(Standing::nowhere(archive, name, format), writing)
    }

    /// Keeps the archive's lock until the change ends, and begins with the notices of catching up.
    pub(crate) fn under(self, lock: Option<Arc<File>>, notices: Vec<Notice>) -> Self {
        Self { _lock: lock, notices, ..self }
    }

    fn with(before: Standing<'a>, writing: Writing<'a>) -> Self {
        Self {
            covered: before.state.coverings(),
            before,
            notices: Vec::new(),
            is_replay: false,
            facts: Facts::default(),
            bulk: Bulk::default(),
            lines: Vec::new(),
            kept: Vec::new(),
            sidecars: Vec::new(),
            bytes: 0,
            deriver: Deriver::default(),
            bearers: Bearers::default(),
            held_twins: None,
            fresh_ids: Lookup::default(),
            redacted: 0,
            moved: BTreeMap::new(),
            follow: Follow::default(),
            writing,
            _lock: None,
        }
    }

    /// Adds a plan's changes of the session's state.
    pub(crate) fn step(&mut self, steps: Steps) {
        for (branch, to) in steps.branches {
            self.set_branch(&branch, to);
        }
        if let Some(branch) = steps.current {
            self.set_current(&branch);
        }
        // If the goal has set the live file, that takes precedence.
        if let Some(live) = steps.live.filter(|_| self.facts.live.is_none()) {
            self.set_live(live.to);
        }
        if let Some(hidden) = steps.hidden {
            let yes = |hidden: bool| hidden.then_some(1);
            let from = yes(self.before.state.hidden);
            self.facts.hidden = Some(Step { from, to: yes(hidden) });
        }
        if let Some(request) = steps.request {
            let to = Some(self.before.state.next_operation());
            self.facts.waiting = Some(Step { from: self.before.state.waiting, to });
            self.facts.request = Some(request);
        } else {
            self.facts.waiting = steps.waiting;
        }
        if let Some((place, note)) = steps.checkpoint {
            self.checkpoint(place, None, None, note);
        }
    }

    /// Returns the number of the next entry, after those of this change.
    pub(crate) fn next_entry(&self) -> EntryNumber {
        self.before.state.next_entry().plus(self.bulk.entries.len() as u64)
    }

    /// Adds a file to the session.
    pub(crate) fn file(&mut self, place: Place) -> FileNumber {
        let n = self.before.state.next_file().plus(self.facts.files.len() as u64);
        self.facts.files.push(crate::model::File { n, place });
        n
    }

    /// Returns the number of the file at a place, and how many of its bytes the session has.
    pub(crate) fn held_file(&self, place: &Place) -> Option<(FileNumber, u64)> {
        let files = FileNumber::FIRST.onwards().zip(&self.before.state.files);
        let new = self.facts.files.iter().map(|file| (file.n, &file.place));
        let (n, _) = files.chain(new).find(|(_, known)| *known == place)?;
        let stored = self.before.state.generations.iter().map(|(_, generation)| generation);
        let of_file = stored.chain(&self.facts.generations).filter(|one| one.file == Some(n));
        let generation = of_file.map(|generation| generation.n).max()?;
        Some((n, self.length_of(generation)))
    }

    /// Begins a generation.
    pub(crate) fn generation(&mut self, file: Option<FileNumber>) -> Growth {
        let n = self.before.state.next_generation().plus(self.facts.generations.len() as u64);
        self.facts.generations.push(Generation { n, file });
        Growth::empty(n)
    }

    /// Returns a generation's end, including lines that this change added, to append to.
    pub(crate) fn growth(&self, generation: GenerationNumber) -> Result<Growth, SyncError> {
        let fresh = self.bulk.runs.iter().rev().find(|run| run.generation == generation);
        match fresh {
            None => self.before.growth(generation),
            Some(run) => match run.last() {
                None => self.before.grown_to(run),
                Some(last) => Ok(Growth::at(run, Some((last, self.id_of(last)?)))),
            },
        }
    }

    /// Returns the last `limit` entries up to a position's head, as the agent reads them.
    pub(crate) fn path(
        &self,
        position: Position,
        limit: usize,
    ) -> Result<Vec<EntryNumber>, SyncError> {
        let Some(head) = position.head else { return Ok(Vec::new()) };
        Ok(self.before.format.path(&self.look(position), head, limit)?.entries)
    }

    /// Returns the position at which the agent would resume a growth that has not ended.
    pub(crate) fn end_of(&self, growth: &Growth) -> Result<Position, SyncError> {
        let head = self.before.format.head(&self.ahead(growth.position(None), growth))?;
        Ok(growth.position(head))
    }

    /// Returns a view of the stored session and the growths that this change has ended.
    pub(crate) fn look(&self, position: Position) -> View<'_> {
        let is_there = |run: &&Run| run.generation == position.generation;
        self.gathered(position, self.bulk.runs.iter().filter(is_there).cloned().collect())
    }

    /// Returns a view of the stored session and a growth that has not ended.
    pub(crate) fn ahead(&self, position: Position, growth: &Growth) -> View<'_> {
        self.gathered(position, growth.runs())
    }

    fn gathered(&self, position: Position, runs: Vec<Run>) -> View<'_> {
        let key = self.before.session.as_ref().map(|session| session.key);
        let mut view = View::over(self.before.store(), key, self.before.format, position);
        view.kept = self.before.state.spans.clone();
        view.pending = Some(Pending {
            first: self.before.state.next_entry(),
            facts: &self.facts,
            bulk: &self.bulk,
            records: &self.deriver.records,
            lines: &self.lines,
            twins: &self.deriver.twins,
            newest: &self.deriver.names,
            runs,
            names: OnceCell::new(),
        });
        view
    }

    /// Reads bytes that will be written to the live file into a growth. New lines become entries.
    pub(crate) fn read_bytes(
        &mut self,
        growth: &mut Growth,
        bytes: &[u8],
    ) -> Result<(), SyncError> {
        self.read_with(growth, |tail| Reader::resume(bytes, tail).expecting(bytes.len()))
    }

    /// Reads a stream to its end into a growth. New lines become entries.
    pub(crate) fn read(&mut self, growth: &mut Growth, stream: impl Read) -> Result<(), SyncError> {
        self.read_with(growth, |tail| Reader::resume(stream, tail))
    }

    fn read_with<R: Read>(
        &mut self,
        growth: &mut Growth,
        reader: impl FnOnce(Tail) -> Reader<R>,
    ) -> Result<(), SyncError> {
        let tail =
            Tail { bytes: std::mem::take(&mut growth.tail), offset: growth.bytes, number: 1 };
        let before = tail.bytes.clone();
        let mut reader = reader(tail);
        while let Some(located) = reader.next_line()? {
            self.take(growth, &located.line)?;
        }
        let tail = reader.into_tail().bytes;
        growth.tail = before;
        tombstone::end(self, growth, tail);
        Ok(())
    }

    /// Appends a line to a growth and returns its entry.
    pub(crate) fn take(
        &mut self,
        growth: &mut Growth,
        line: &Line<'_>,
    ) -> Result<EntryNumber, SyncError> {
        self.put(growth, Scanned::of(line, 0, self.before.format))
    }

    /// Appends a scanned line to a growth and returns its entry.
    pub(crate) fn put(
        &mut self,
        growth: &mut Growth,
        new: Scanned,
    ) -> Result<EntryNumber, SyncError> {
        let link = growth.last.filter(|_| !new.is_named);
        let link_id = link.map(|(_, id)| id);
        let covered = self.covered.get(&new.line.id()).map(|came| EntryId::of(link_id, *came));
        // A redacted line is the same entry as its original, if the session has that entry.
        let held = covered.map(|id| self.held(id)).transpose()?.flatten();
        let covered = covered.filter(|_| held.is_some());
        let id = covered.unwrap_or_else(|| new.line.entry_id(link_id));
        let (length, name, kind) =
            (new.line.bytes().len() as u64, new.envelope.tag(), new.envelope.kind);
        // An entry linked to the newest one must be new, except in a session whose store has lost entries.
        let is_new = self.before.session.is_none()
            && link.is_some_and(|(last, _)| last.next() == self.next_entry());
        let spelt = name.filter(|_| new.is_spelt);
        let known = match self.fresh_ids.get(&id).copied().filter(|_| !is_new) {
            None if covered.is_none() && (is_new || names::is_new_name(self, spelt)?) => None,
            None => self.held(id)?,
            known => known,
        };
        let n = match known {
            Some(n) => n,
            None => self.add(id, link.map(|(n, _)| n), new.line, new.envelope, growth)?,
        };
        growth.place(n, id, &new.separator, length);
        self.bearers.see(growth, n, name, kind, &self.deriver.twins);
        Ok(n)
    }

    /// Adds a line that belongs to no generation, because another line will take its place at the end of a growth.
    pub(crate) fn aside(
        &mut self,
        growth: &Growth,
        line: &Line<'_>,
    ) -> Result<EntryNumber, SyncError> {
        let mut beside = growth.clone();
        // Only a line without a name needs the entry before it: its id is linked to that entry.
        if line.shape.as_ref().is_some_and(|shape| shape.name.is_some()) {
            beside.last = None;
        }
        self.take(&mut beside, line)
    }

    /// Records that an entry replaces `origin`. If the same line was stored before as the replacement of another entry, that
    /// origin stays.
    pub(crate) fn stand_for(
        &mut self,
        entry: EntryNumber,
        origin: EntryNumber,
    ) -> Result<(), SyncError> {
        let next = self.before.state.next_entry();
        if let Some((store, session)) = self.before.stored().filter(|_| entry < next) {
            let held = store.origins(session, entry.alone())?;
            if held.iter().any(|(_, held)| held.origin != origin) {
                return Ok(());
            }
        }
        self.bulk.origins.push(Origin { entry, origin, cut: None });
        Ok(())
    }

    /// Records that an entry replaces `origin`, which strings of the original its own strings were cut from, and what was cut.
    pub(crate) fn replace(
        &mut self,
        entry: EntryNumber,
        origin: EntryNumber,
        wholes: Vec<Option<Whole>>,
        cut: Cutting,
    ) -> Result<(), SyncError> {
        self.stand_for(entry, origin)?;
        if let Some(origin) = self.bulk.origins.iter_mut().find(|origin| origin.entry == entry) {
            origin.cut = Some(cut);
        }
        let fresh = entry.index_from(self.before.state.next_entry());
        if let Some(line) = fresh.and_then(|i| self.lines.get_mut(i)) {
            line.cut_from(wholes);
        }
        Ok(())
    }

    fn add(
        &mut self,
        id: EntryId,
        link: Option<EntryNumber>,
        mut line: NewLine,
        mut envelope: Envelope,
        growth: &Growth,
    ) -> Result<EntryNumber, SyncError> {
        let n = self.next_entry();
        tombstone::cover_again(self, n, &mut line, &mut envelope)?;
        let kind = envelope.kind;
        let held = self.before.stored();
        self.deriver.add(n, envelope, growth.last.map(|(n, _)| n), held)?;
        self.bulk.entries.push(Entry { n, id, link });
        let own = Some(self.before.format)
            .filter(|format| format.traits().has_checkpoints && kind == Kind::Meta);
        let own = own.and_then(|format| format.checkpoint(Raw::object(line.bytes())?));
        self.bytes += line.bytes().len() as u64;
        self.lines.push(line);
        self.fresh_ids.insert(id, n);
        let is_place = own.is_some() || kind == Kind::User && !follows_a_mark(self, growth)?;
        if is_place && !self.is_replay {
            let parent = self.deriver.records.last().and_then(|record| match record.parent {
                Parent::Entry(parent) => Some(parent),
                Parent::Root | Parent::Missing => None,
            });
            let head = parent.map(|parent| names::above(self, parent, growth)).transpose()?;
            let place = growth.position(head);
            if checkpoint_at(self, place).is_none() {
                self.checkpoint(place, Some(n), own, None);
            }
        }
        Ok(n)
    }

    /// Adds a checkpoint with the next number.
    fn checkpoint(
        &mut self,
        place: Position,
        before: Option<EntryNumber>,
        own: Option<String>,
        note: Option<Text>,
    ) {
        let n = self.before.state.next_checkpoint().plus(self.bulk.checkpoints.len() as u64);
        self.bulk.checkpoints.push(Checkpoint { n, place, before, own, note });
    }

    /// Returns the checkpoints that this change adds.
    pub(crate) fn checkpoints(&self) -> Vec<CheckpointNumber> {
        self.bulk.checkpoints.iter().map(|checkpoint| checkpoint.n).collect()
    }

    /// Discards all lines read and generations begun, so that another attempt can start.
    pub(crate) fn forget(&mut self) {
        self.bulk.entries.clear();
        self.bulk.origins.clear();
        self.facts.files.clear();
        self.facts.generations.clear();
        self.facts.tombstones.clear();
        self.bulk.checkpoints.clear();
        self.lines.clear();
        self.deriver = Deriver::default();
        self.bearers = Bearers::default();
        self.fresh_ids.clear();
        self.bytes = 0;
        self.is_replay = false;
    }

    /// Ends a growth: its runs become facts.
    pub(crate) fn grown(&mut self, growth: Growth) {
        self.bulk.runs.extend(growth.finish());
    }

    /// Moves a branch.
    pub(crate) fn set_branch(&mut self, branch: &str, to: Option<Position>) {
        let from = self
            .moved
            .get(branch)
            .map_or_else(|| self.before.state.branches.get(branch).copied(), |(from, _)| *from);
        self.moved.insert(branch.to_owned(), (from, to));
    }

    /// Returns a name for the old end of a branch: the branch's name with the first free number.
    pub(crate) fn left_name(&self, branch: &str) -> String {
        free_name(branch, |name| {
            self.moved.contains_key(name) || self.before.state.branches.contains_key(name)
        })
    }

    /// Keeps the old end of a branch under a name of its own, and returns that name.
    pub(crate) fn leave(&mut self, branch: &str, at: Option<Position>) -> String {
        let name = self.left_name(branch);
        self.set_branch(&name, at);
        name
    }

    /// Makes another branch the current one.
    pub(crate) fn set_current(&mut self, branch: &str) {
        let from = self.before.state.current.as_ref().map(|from| branch_text(from));
        self.facts.current = Some(Step { from, to: Some(branch_text(branch)) });
    }

    /// Sets the live file, or detaches the session from it.
    pub(crate) fn set_live(&mut self, file: Option<FileNumber>) {
        self.facts.live = Some(Step { from: self.before.state.live, to: file });
    }
}

/// Returns true if the agent's own checkpoint is at the end of a growth. That checkpoint then counts for the next turn.
fn follows_a_mark(change: &Change<'_>, growth: &Growth) -> Result<bool, SyncError> {
    let Some((last, _)) = growth.last.filter(|_| change.before.format.traits().has_checkpoints)
    else {
        return Ok(false);
    };
    Ok(is_marked(&change.ahead(growth.position(None), growth), last)?)
}

/// Returns the newest checkpoint if it is at this place and not undone.
fn checkpoint_at(change: &Change<'_>, place: Position) -> Option<CheckpointNumber> {
    match change.bulk.checkpoints.last() {
        Some(newest) => (newest.place == place).then_some(newest.n),
        None => change.before.state.checkpoint_at(place),
    }
}
