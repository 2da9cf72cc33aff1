//! Commits a change: seals it as an operation, commits the operation, and updates the live file.
//!
//! Invariant: every check that can refuse a change runs before its commit.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
    time::Duration,
};

use crate::{
    archive::SyncError,
    change::draft::{Change, Writing, follow::Step, listing},
    files::{file, live_file::LiveFile, siblings},
    json::Raw,
    live::{Lock, WritableFile},
    model::{
        self, Card, Command, CoveredFile, CoveredRuns, EntryNumber, Facts, GenerationNumber, Move,
        NameTag, Operation, OperationNumber, Place, Position, Record, Run, Tagged, Text, Tie,
        Tombstone,
    },
    purge,
    report::{Done, Notice, Outcome},
    session::{
        Session,
        derive::{self, Said, Titles},
        graph::beginning::is_adopted,
        plan::branch_text,
    },
    store::{Commit, SessionKey, StoreError},
    wire::{TIED, Titled},
};

/// How many records to read at a time.
const BATCH: usize = 1024;

/// The facts of a redaction.
#[derive(Default)]
pub(crate) struct Buried {
    pub(crate) tombstones: Vec<Tombstone>,
    pub(crate) covered_files: Vec<CoveredFile>,
    pub(crate) covered_runs: Vec<CoveredRuns>,
}

impl Change<'_> {
    /// Commits what was gathered so far as an operation of its own, and continues with the next one.
    pub(crate) fn part(&mut self, command: Command) -> Result<(), SyncError> {
        let redacted = std::mem::take(&mut self.redacted);
        let session = self.commit(command)?.0.session;
        self.redacted = redacted;
        match &mut self.writing {
            Writing::Alone(writing) => *writing = Some(self.before.archive.store.begin()?),
            Writing::Among(gathering) => gathering.renew()?,
        }
        self.before.renew(session)?;
        self.held_twins = None;
        self.fresh_ids.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Commits the operation and updates the live file. Also returns true if no other program wrote to the file meanwhile.
    pub(crate) fn commit(&mut self, command: Command) -> Result<(Outcome, bool), SyncError> {
        if !command.takes_in() {
            refuse_if_unread(self)?;
        }
        let mut follow = std::mem::take(&mut self.follow);
        let (attached, rotated) = (follow.attached().cloned(), follow.rotated());
        let lock = refuse_to_write(self, attached.as_ref())?;
        if let Some(target) = &attached {
            let before = &self.before;
            let listed = listing::list_folder(before.archive, before.format, &before.name, target)?;
            if let Some((list, step)) = listed {
                follow.begin_with(list, step);
            }
        }
        if follow.is_empty()
            && let Some(live) = self.before.live_file().filter(|live| !live.attached)
        {
            follow = (self.before.writable_file(&live)?, Step::Stamp).into();
        }
        follow
            .prepare(self.before.at, self.before.archive.is_preview)
            .map_err(|(path, source)| SyncError::Io { path, source })?;
        let lines = std::mem::take(&mut self.redacted);
        if lines > 0 {
            self.notices.push(Notice::Redacted { lines });
        }
        // Another program may have written the redacted lines into the store's own file. They are covered there, too.
        let is_own = self.before.live_file().is_some_and(|live| !live.attached);
        let covers_own = lines > 0 && is_own && !self.before.archive.is_preview;
        if covers_own {
            purge::mark(self.before.archive)?;
        }
        let commit = sealed(self, command).inspect_err(|_| follow.abandon())?;
        let n = commit.operation.n;
        let key = write(self, commit)?;
        let mut is_gathered = false;
        if let Writing::Among(gathering) = &mut self.writing {
            is_gathered = true;
            // The bytes must be in the store before they are written to a file.
            if !follow.is_empty() {
                gathering.settle().inspect_err(|_| follow.abandon())?;
            }
        }
        let session = Session { key, name: self.before.name.clone(), format: self.before.format };
        let written = attached.as_ref().map(|target| target.path().to_owned());
        let done = Done { operation: Some(n), rotated, written, notices: Vec::new() };
        if self.before.archive.is_preview {
            let done = Done { notices: std::mem::take(&mut self.notices), ..done };
            return Ok((Outcome { session, operation: n, done }, true));
        }
        let is_alone = follow
            .carry_out(self.before.at)
            .map_err(|(path, source)| SyncError::Behind { operation: n, path, source })?;
        drop(lock);
        let is_settled = !self.notices.iter().any(|n| matches!(n, Notice::Unsettled { .. }));
        // In a shared transaction, sightings are taken after its commit.
        let target = attached.filter(|_| is_alone && !is_gathered);
        if let Err(error) = tidy_up(self, key, target.as_ref(), covers_own)
            && is_settled
        {
            self.notices.push(Notice::Unsettled { why: error.to_string() });
        }
        let done = Done { notices: std::mem::take(&mut self.notices), ..done };
        Ok((Outcome { session, operation: n, done }, is_alone))
    }

    /// Adds a redaction's operation. Touches no file.
    pub(crate) fn bury(&mut self, command: Command, buried: Buried) -> Result<(), SyncError> {
        let Buried { tombstones, covered_files, covered_runs } = buried;
        self.facts.tombstones = tombstones;
        (self.facts.covered_files, self.facts.covered_runs) = (covered_files, covered_runs);
        let commit = sealed(self, command)?;
        write(self, commit).map(drop)
    }
}

/// Finishes work that can wait until the change is committed. If it fails, the next change retries it, and this change has
/// still succeeded.
fn tidy_up(
    change: &Change<'_>,
    session: SessionKey,
    target: Option<&WritableFile>,
    covers_own: bool,
) -> Result<(), SyncError> {
    let archive = change.before.archive;
    if covers_own {
        purge::finish(archive, Duration::ZERO, &mut purge::Purged::default())?;
    }
    target.map_or(Ok(()), |target| file::saw(archive, session, target))
}

/// Builds the commit: the operation and everything it adds.
fn sealed(change: &mut Change<'_>, command: Command) -> Result<Commit, SyncError> {
    let ties = ties(change)?;
    let operation = seal(change, command)?;
    let mut deriver = std::mem::take(&mut change.deriver);
    let (records, twins) =
        (std::mem::take(&mut deriver.records), std::mem::take(&mut deriver.twins));
    let card = card(change, &operation, &records)?;
    change.deriver = deriver.behind(change.before.session.is_none());
    Ok(Commit {
        session: change.before.name.clone(),
        expected: change.before.state.hash(),
        operation,
        bulk: std::mem::take(&mut change.bulk),
        lines: std::mem::take(&mut change.lines),
        kept: [std::mem::take(&mut change.kept), std::mem::take(&mut change.sidecars)].concat(),
        records,
        twins: twins.into_iter().collect(),
        ties,
        card: Some(card),
        covered: Arc::default(),
    })
}

/// Adds the operation. Commits it, unless the transaction is shared.
fn write(change: &mut Change<'_>, commit: Commit) -> Result<SessionKey, SyncError> {
    match &mut change.writing {
        Writing::Among(gathering) => Ok(gathering.add(commit)?),
        Writing::Alone(writing) => {
            let mut writing = writing.take().ok_or(StoreError::Conflict)?;
            let key = writing.add(commit)?;
            if let Some(why) = writing.commit()?.unsettled {
                change.notices.push(Notice::Unsettled { why: why.to_string() });
            }
            Ok(key)
        }
    }
}

/// Refuses to write an agent's file if the agent would not read it. The returned lock keeps the agent from opening the
/// session.
fn refuse_to_write(
    change: &Change<'_>,
    target: Option<&WritableFile>,
) -> Result<Option<Lock>, SyncError> {
    let Some(target) = target else { return Ok(None) };
    let before = &change.before;
    // When another file is begun, the agent still has the old one.
    let read = before.attached().map_or_else(|| target.path().to_owned(), |live| live.path);
    if let Some(by) = siblings::read_instead(before.format, &before.name.id, &read) {
        return Err(SyncError::Left { path: read, by });
    }
    refuse_if_not_resumed(change, &read)?;
    before.refuse_to_write(&read)
}

/// Refuses a record that replaces the whole conversation if a part of the conversation cannot be read.
fn refuse_if_unread(change: &Change<'_>) -> Result<(), SyncError> {
    let replaces = |record: &Record| change.before.format.replaces_all(record);
    if !change.deriver.records.iter().any(replaces) {
        return Ok(());
    }
    change.before.refuse_without_past()
}

/// Refuses to write a file that the agent would not resume.
fn refuse_if_not_resumed(change: &Change<'_>, path: &Path) -> Result<(), SyncError> {
    let current = change.facts.current.as_ref().and_then(|step| step.to.as_ref());
    let current = current.map_or_else(|| change.before.state.current().to_owned(), Text::to_text);
    let position = match change.moved.get(&current) {
        Some((_, to)) => *to,
        None => change.before.state.branches.get(&current).copied(),
    };
    let Some(position) = position else { return Ok(()) };
    let why = change.look(position).unresumed()?;
    why.map_or(Ok(()), |why| {
        Err(SyncError::OutOfReach { path: path.to_owned(), why: why.to_owned() })
    })
}

/// Drops the waiting change if a command moves the session elsewhere; a file that changes does not drop it.
fn dropped(
    change: &mut Change<'_>,
    command: &Command,
    facts: &Facts,
) -> Option<model::Step<OperationNumber>> {
    let state = &change.before.state;
    let operation = state.waiting?;
    let current = facts.current.as_ref().and_then(|step| step.to.as_ref()).map(Text::to_text);
    let current = current.as_deref().unwrap_or(state.current());
    let moved = facts.moves.iter().find(|step| step.branch.to_text() == current);
    let end = moved.map_or_else(|| state.branches.get(current).copied(), |step| step.to);
    if command.takes_in() || !command.moves() && end == state.position() {
        return None;
    }
    change.notices.push(Notice::Dropped { operation });
    Some(model::Step { from: Some(operation), to: None })
}

fn seal(change: &mut Change<'_>, mut command: Command) -> Result<Operation, SyncError> {
    let moved = std::mem::take(&mut change.moved).into_iter().filter(|(_, (from, to))| from != to);
    let step = |(branch, (from, to)): (String, _)| {
        let branch = branch_text(&branch);
        Move { branch, from, to }
    };
    let moves = moved.map(step).collect();
    let mut facts = std::mem::take(&mut change.facts);
    facts.moves = moves;
    if facts.waiting.is_none() {
        facts.waiting = dropped(change, &command, &facts);
    }
    let archive = change.before.archive;
    // Equal texts get the same salt, so that they still have equal digests after their words are redacted.
    let (known, mut drawn) = (&change.before.state.salts, BTreeMap::new());
    let mut salt = |text: &mut Text| {
        let Some(words) = text.words() else { return };
        let draw = || *drawn.entry(words.text.clone()).or_insert_with(|| archive.salt());
        let salt = known.get(&words.text).copied().unwrap_or_else(draw);
        text.salt(|| salt);
    };
    Tagged::texts(&mut command, &mut salt);
    Tagged::texts(&mut facts, &mut salt);
    change.bulk.checkpoints.iter_mut().filter_map(|given| given.note.as_mut()).for_each(salt);
    facts.sort();
    change.bulk.sort();
    let (n, at, first) =
        (change.before.state.next_operation(), change.before.at, change.before.state.next_entry());
    let (store, before) = (change.before.archive.store.id()?, change.before.state.hash());
    let operation = Operation { n, at, command, first, facts, ..Operation::default() };
    Ok(operation.seal(before, store, &change.before.name, &change.bulk))
}

/// Returns the ties of the generations whose beginnings grew.
fn ties(change: &Change<'_>) -> Result<Vec<(GenerationNumber, Vec<Tie>)>, SyncError> {
    let mut ends: BTreeMap<GenerationNumber, u64> = BTreeMap::new();
    for run in change.bulk.runs.iter().filter(|run| run.start < TIED) {
        let end = ends.entry(run.generation).or_default();
        *end = (*end).max(run.end().min(TIED));
    }
    let mut ties = Vec::new();
    for (generation, horizon) in ends {
        let view = change.look(Position { generation, head: None, horizon });
        ties.push((generation, derive::ties(change.before.format, &change.before.name, &view)?));
    }
    Ok(ties)
}

fn card(change: &Change<'_>, operation: &Operation, records: &[Record]) -> Result<Card, SyncError> {
    let stored = change.before.stored();
    let card = stored.map(|(store, session)| store.card(session)).transpose()?;
    let mut card = card.unwrap_or_default();
    derive::see_operation(&mut card, operation, change.before.format);
    let mut titles = Titles::default();
    let is_summary =
        |record: &Record| matches!(change.before.format.titles(record), Some(Titled::Summary(_)));
    let sums_up = records.iter().any(is_summary);
    let is_adopted = |run: &&Run| place_of(change, operation, run).is_some_and(is_adopted);
    let adopted: Vec<_> = change.bulk.runs.iter().filter(is_adopted).collect();
    let mut names: BTreeSet<NameTag> = BTreeSet::new();
    for (record, line) in records.iter().zip(&change.lines) {
        let titled = change.before.format.titles(record);
        // The line itself is needed only for a title, or if the card lacks its title or folder.
        let raw = (card.title.is_none() || card.folder.is_none() || titled.is_some())
            .then(|| Raw::object(line.bytes()))
            .flatten();
        let said = match adopted.iter().any(|run| run.entries().contains(&record.n)) {
            _ if operation.command.says_again() => Said::Again,
            true => Said::Elsewhere,
            false => Said::New,
        };
        derive::see_entry(&mut card, record.kind, record.time, raw, change.before.format, said);
        if let Some(titled) = titled {
            titles.see(titled, raw, change.before.format, |name| {
                let Some((store, session)) = stored.filter(|_| !names.contains(&name)) else {
                    return Ok(names.contains(&name));
                };
                Ok(!store.named(session, name, name)?.is_empty())
            })?;
        }
        if sums_up {
            names.extend(record.name);
        }
    }
    if let Some((titled, title)) = titles.best
        && card.title.as_ref() != Some(&title)
        && !has_better(change, titled)?
    {
        card.title = Some(title);
    }
    Ok(card)
}

/// Returns the place of the file of a run that this operation adds.
fn place_of<'p>(change: &'p Change<'_>, operation: &'p Operation, run: &Run) -> Option<&'p Place> {
    let (facts, state) = (&operation.facts, &change.before.state);
    let begun = facts.generations.iter().find(|generation| generation.n == run.generation);
    let file = begun.map_or_else(|| state.file_of(run.generation), |begun| begun.file)?;
    let met = facts.files.iter().find(|met| met.n == file).map(|met| &met.place);
    met.or_else(|| state.file(file))
}

/// Returns true if the session has a title that ranks higher.
fn has_better(change: &Change<'_>, than: Titled) -> Result<bool, SyncError> {
    let stored = change.before.stored().filter(|_| than != Titled::User);
    let Some((store, session)) = stored else { return Ok(false) };
    // Agents repeat their titles, so the newest records are the most likely to have one.
    let entries = EntryNumber::FIRST..change.before.state.next_entry();
    let batches: Vec<_> = EntryNumber::batches(entries, BATCH).collect();
    for batch in batches.into_iter().rev() {
        let records = store.records(session, batch)?;
        let mut titles = records.iter().filter_map(|record| change.before.format.titles(record));
        if titles.any(|titled| titled.rank() > than.rank()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if an agent's file may be written now.
pub(crate) fn may_write(change: &Change<'_>, live: &LiveFile) -> bool {
    change.before.writable_file(live).is_ok_and(|target| {
        refuse_to_write(change, Some(&target)).is_ok() && target.may_append().is_ok()
    })
}
