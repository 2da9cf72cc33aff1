//! Imports the files of one session: compares each with its stored state and reads on from there.
//!
//! Invariant: an unreadable file is reported by its index, and the others are imported without it. A file that becomes unreadable
//! at some line is imported up to there.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use memchr::memchr_iter;

use crate::{
    archive::{Archive, SyncError, Why, skip::Failed},
    change::{
        draft::{Change, Writing, batch::Joint, tombstone, whole_files},
        execute::{begin_or_create, commit},
    },
    files::{
        Source,
        deletion::is_gone,
        judge::Verdict,
        live_file::{length_of, live_file},
        mover::{is_detached, is_to_be_kept},
        numbers::{Numbers, lines_before},
        scan::{Ahead, Lines},
        siblings::{self, Shelved},
        sources,
        states::{States, judged, newest_time},
    },
    intake::{
        adopt::adopt,
        sidecars::{self, Taken},
    },
    live::is_same,
    model::{
        Command, EntryNumber, FileNumber, GenerationNumber, MAIN, OperationNumber, PlaceNumber,
        Position, Run, Running, State,
    },
    report::{Imported, Notice, Oddity, Quirk},
    session::{Growth, history::oddities, plan::given},
    store::Sighting,
    wire::{
        FileName, Graph,
        jsonl::{ReadError, Tail},
    },
};

/// How many bytes of new lines to gather before committing them as a part.
const PART: u64 = 64 << 20;
/// How many new lines to gather before committing a part: short lines take more memory than their bytes.
const PART_LINES: usize = 1 << 15;

/// The end of a file that was read.
struct End {
    generation: GenerationNumber,
    entries: u64,
    length: u64,
    running: Running,
    /// The physical line numbers of the entries that were read.
    lines: Numbers,
}

/// The import of one session's files.
struct Intake<'a> {
    change: Change<'a>,
    /// Files read ahead by another thread.
    ahead: Option<&'a Ahead>,
    states: States,
    /// The folders whose files become live files.
    attach: &'a [PathBuf],
    ends: BTreeMap<FileNumber, End>,
    /// True if a compressed file changed but its content did not, or if a deleted file exists again.
    is_met_again: bool,
    /// True if a part of another session's file was adopted.
    adopted: bool,
    /// True if a line was read that the session already has.
    met: bool,
    files: u64,
    /// How many entries catching up imported.
    entries: u64,
    /// How many sidecars were new or changed.
    sidecars: u64,
    bytes: u64,
    oddities: Vec<Oddity>,
}

/// What the files of one session need from the import.
pub(crate) struct Around<'a, 's> {
    /// The folders whose files become live files.
    pub(crate) attach: &'a [PathBuf],
    pub(crate) shelved: &'s mut Shelved,
    /// Receives the sightings of sidecars.
    pub(crate) sightings: &'s mut Vec<Sighting>,
}

/// Imports the files of one session, in order, with its sidecars.
pub(crate) fn take_in<'a>(
    archive: &'a Archive,
    group: &[Source],
    around: &mut Around<'a, '_>,
    ahead: Option<&'a Ahead>,
    joint: Joint<'a>,
    reading: &mut dyn FnMut(&Path, u64),
) -> Result<Option<Imported>, Failed> {
    let Some(first) = group.first() else { return Ok(None) };
    let name = first.session.clone();
    let is_grown = matches!(joint, Joint::Grown(..));
    let change = match joint {
        Joint::New(gathering) => {
            Change::first(archive, name, first.format, Writing::Among(gathering))
        }
        Joint::Grown(change) => *change,
        Joint::Alone => match begin_or_create(archive, name, first.format) {
            Err(error @ (SyncError::Denied { .. } | SyncError::Uncaught { .. })) => {
                return Err(Failed::File(0, Why::Denied(Box::new(error))));
            }
            // The live file cannot be read further.
            Err(SyncError::Read(error)) => return Err(Failed::File(0, error.into())),
            change => change?,
        },
    };
    let (new, first) = (change.before.session.is_none(), change.next_entry());
    let states = States::of(archive, &change.before.state);
    let mut intake = Intake {
        change,
        ahead,
        states,
        attach: around.attach,
        ends: BTreeMap::new(),
        is_met_again: false,
        adopted: false,
        met: false,
        files: 0,
        entries: 0,
        sidecars: 0,
        bytes: 0,
        oddities: Vec::new(),
    };
    for (n, source) in group.iter().enumerate().filter(|_| !is_grown) {
        reading(&source.path, intake.bytes);
        intake.adopted |= adopt(&mut intake.change, &source.path, around.shelved)?;
        intake.file(source, reading).map_err(|failed| match failed {
            Failed::File(_, why) => Failed::File(n, why),
            failed @ Failed::Verb(_) => failed,
        })?;
    }
    for source in group {
        intake.sidecars(source, around.sightings)?;
    }
    let has_records = !intake.ends.is_empty() || intake.is_met_again || intake.adopted;
    let is_told = intake.folder(group)?;
    let caught_up = intake.caught_up();
    // The live file counts if it is among these files.
    let live = intake.change.before.state.live.filter(|_| caught_up.is_some());
    let is_live = |source: &Source| live.is_some() && intake.states.file(&source.path) == live;
    let followed = u64::from(group.iter().any(is_live));
    if !has_records && intake.sidecars == 0 {
        let taken = caught_up.and_then(|operation| intake.only(operation, followed));
        if is_told {
            intake.change.commit(Command::CatchUp { entries: 0, branch: None, left: None })?;
        }
        return Ok(taken);
    }
    let left = if has_records { intake.follow()? } else { None };
    let Intake { mut change, files, entries: known, sidecars, bytes, oddities, .. } = intake;
    let rests = oddities.iter().filter(|oddity| oddity.kind.ends_reading());
    change.notices.extend(rests.map(|oddity| Notice::Unread {
        path: oddity.path.clone(),
        line: oddity.line.unwrap_or_default(),
        why: oddity.what,
    }));
    let entries = known + change.next_entry().since(first);
    let left = left.or_else(|| change.notices.iter().find_map(Notice::left));
    let outcome = commit(change, Command::Import { files: files + sidecars, part: false })?;
    Ok(Some(Imported {
        session: outcome.session,
        new,
        operation: outcome.operation,
        files: (files + followed).min(group.len() as u64),
        sidecars,
        entries,
        bytes,
        left,
        oddities,
        notices: outcome.done.notices,
    }))
}

impl Intake<'_> {
    /// Counts what catching up with the live file imported, and notes oddities in it. Returns the operation that did it.
    fn caught_up(&mut self) -> Option<OperationNumber> {
        let taken_in: Vec<_> = self.change.notices.iter().filter_map(Notice::taken_in).collect();
        let (operation, _) = taken_in.last().copied()?;
        let rewritten = self.change.notices.iter().find_map(|notice| match notice {
            Notice::Followed { path, is_rewritten: true, .. } => Some(path.clone()),
            _ => None,
        });
        if let Some(path) = rewritten {
            self.odd(&path, None, Quirk::Rewritten);
        }
        let before = &self.change.before;
        let end = before.state.growth().cloned();
        if let (Some(end), Some(live)) = (end, live_file(before.archive, &before.state)) {
            self.bytes += end.bytes;
            if !end.tail.trim_ascii().is_empty() {
                // Report it even if its lines cannot be counted any more.
                let number = lines_before(&live.path, end.bytes).map_or(1, |lines| lines + 1);
                self.torn(&live.path, &end.tail, number);
            }
        }
        self.entries += taken_in.iter().map(|(_, n)| n).sum::<u64>();
        Some(operation)
    }

    /// Returns the result of an import that consists only of what catching up imported.
    fn only(&mut self, operation: OperationNumber, files: u64) -> Option<Imported> {
        Some(Imported {
            session: self.change.before.session.clone()?,
            new: false,
            operation,
            files,
            sidecars: 0,
            entries: self.entries,
            bytes: self.bytes,
            left: self.change.notices.iter().find_map(Notice::left),
            oddities: std::mem::take(&mut self.oddities),
            notices: std::mem::take(&mut self.change.notices),
        })
    }

    /// Notes an oddity, or extends the previous one if this line follows it directly.
    fn odd(&mut self, path: &Path, line: Option<u64>, quirk: Quirk) {
        let odd = Oddity::new(path, line, quirk);
        if let Some(last) = self.oddities.last_mut()
            && (last.kind, last.what) == (odd.kind, odd.what)
            && last.line.map(|first| first + last.lines) == line
            && line.is_some()
            && last.path == path
        {
            last.lines += 1;
            return;
        }
        self.oddities.push(odd);
    }

    /// Imports one file, unless it is unchanged.
    fn file(&mut self, source: &Source, reading: &mut dyn FnMut(&Path, u64)) -> Result<(), Failed> {
        let path = &source.path;
        let known = self.states.file(path);
        let held = known.and_then(|file| self.states.newest(file));
        let verdict = match (&self.change.before.session, held) {
            (Some(session), Some((generation, end))) => {
                Some(judged(&self.change.before.archive.at(session)?, generation, end, path)?)
            }
            _ => None,
        };
        let held = held.map(|(generation, _)| generation);
        let file = known.unwrap_or_else(|| {
            let place = self.change.before.archive.place_of(path);
            self.change.file(place)
        });
        let mut growth = match (verdict, held) {
            (Some(Verdict::Same), held) => {
                let is_repacked = held.map(|it| self.contain(path, it)).transpose()?;
                if is_repacked == Some(true) || self.is_back(file)? {
                    (self.files, self.is_met_again) = (self.files + 1, true);
                }
                return Ok(());
            }
            (Some(Verdict::Grown), Some(generation)) => self.change.growth(generation)?,
            (verdict, _) => {
                if verdict.is_some() {
                    self.odd(path, None, Quirk::Rewritten);
                }
                self.change.generation(Some(file))
            }
        };
        self.states.files.insert(file, path.clone());
        let (begin, odd) = (growth.length(), self.oddities.len());
        let separate = growth.bytes;
        let lines = self.lines(path, &mut growth, reading);
        // Line numbers count from where reading began. The bytes before are read again only if a line is reported.
        let is_told = self.oddities.len() > odd || lines.is_err();
        let before = if is_told { lines_before(path, separate).unwrap_or(0) } else { 0 };
        for oddity in self.oddities.iter_mut().skip(odd) {
            oddity.line = oddity.line.map(|line| line + before);
        }
        let lines = lines.map_err(|failed| failed.behind(before))?;
        self.files += 1;
        self.bytes += growth.length() - begin;
        let (generation, entries) = (growth.generation, growth.entries);
        let (length, running) = (growth.length(), growth.running);
        self.change.grown(growth);
        self.contain(path, generation)?;
        self.ends.insert(file, End { generation, entries, length, running, lines });
        Ok(())
    }

    /// Imports the new or changed sidecars next to one of the session's files.
    fn sidecars(&mut self, source: &Source, seen: &mut Vec<Sighting>) -> Result<(), Failed> {
        for found in sidecars::changed(self.change.before.archive, source)? {
            match found.take(&mut self.change)? {
                Taken::Held { seen: sighting, is_new } => {
                    seen.push(sighting);
                    self.sidecars += u64::from(is_new);
                }
                Taken::LeftOut { seen: sighting, why } => {
                    seen.extend(sighting);
                    self.odd(&found.path, None, Quirk::LeftOut(why));
                }
            }
            if self.change.bytes >= PART {
                self.begin();
                self.change.part(Command::Import { files: 1, part: true })?;
            }
        }
        Ok(())
    }

    /// Stores the compressed form of a compressed file. Returns true if it is new.
    fn contain(&mut self, path: &Path, generation: GenerationNumber) -> Result<bool, Failed> {
        match sources::container(path).map_err(|error| Failed::File(0, error.into()))? {
            None => Ok(false),
            Some(Ok(bytes)) => Ok(whole_files::contain(&mut self.change, generation, bytes)),
            Some(Err(_)) => {
                self.odd(path, None, Quirk::Unkept);
                Ok(false)
            }
        }
    }

    /// Reads a file from the end of a growth on. Returns the physical line number of each entry.
    fn lines(
        &mut self,
        path: &Path,
        growth: &mut Growth,
        reading: &mut dyn FnMut(&Path, u64),
    ) -> Result<Numbers, Failed> {
        let unreadable = |why: Why| Failed::File(0, why);
        let begin = growth.length();
        let format = self.change.before.format;
        // Only a file that is imported from its beginning was read ahead.
        let number =
            self.ahead.and_then(|ahead| Some((ahead, ahead.number(path).filter(|_| begin == 0)?)));
        let tail = Tail { bytes: growth.tail.clone(), offset: growth.bytes, number: 1 };
        let mut reader = match number {
            Some((ahead, n)) => Lines::ahead(path, ahead, n, format),
            None => Lines::behind(path, tail, format).map_err(unreadable)?,
        };
        let mut lines = Numbers::default();
        loop {
            let chunk = match reader.next() {
                Ok(chunk) => chunk,
                // The lines read so far are new and are kept.
                Err(why) if lines.count() > 0 => {
                    let last = lines.get(lines.count() - 1).unwrap_or_default();
                    let (line, quirk) = match why {
                        Why::Lines(ReadError::TooLong { number, .. }) => (number, Quirk::TooLong),
                        _ => (last + 1, Quirk::Unreadable),
                    };
                    self.odd(path, Some(line), quirk);
                    tombstone::end(&self.change, growth, Vec::new());
                    return Ok(lines);
                }
                Err(why) => return Err(unreadable(why)),
            };
            if chunk.is_empty() {
                break;
            }
            for new in chunk {
                lines.push(new.number);
                if !new.is_object {
                    self.odd(path, Some(new.number), Quirk::Opaque);
                } else if new.is_glued {
                    self.odd(path, Some(new.number), Quirk::Glued);
                }
                let next = self.change.next_entry();
                self.met |= self.change.put(growth, new)? < next;
            }
            if self.change.bytes >= PART || self.change.bulk.entries.len() >= PART_LINES {
                growth.tail = Vec::new();
                self.change.grown(growth.part());
                self.begin();
                self.change.part(Command::Import { files: 1, part: true })?;
                reading(path, self.bytes + growth.bytes.saturating_sub(begin));
            }
        }
        let tail = reader.into_tail();
        self.torn(path, &tail.bytes, tail.number);
        tombstone::end(&self.change, growth, tail.bytes);
        Ok(lines)
    }

    /// Notes that a file ends within a record, if its tail, which begins on line `number`, has part of one.
    fn torn(&mut self, path: &Path, tail: &[u8], number: u64) {
        let torn = tail.trim_ascii_start();
        if !torn.is_empty() {
            let blank = tail.get(..tail.len() - torn.len()).unwrap_or_default();
            let number = number + memchr_iter(b'\n', blank).count() as u64;
            self.odd(path, Some(number), Quirk::Torn);
        }
    }

    /// Sets the session's working folder from the agent's list of folders, if the store does not know it. Returns true if it did.
    fn folder(&mut self, group: &[Source]) -> Result<bool, SyncError> {
        let before = &self.change.before;
        if let Some(session) = &before.session
            && before.archive.store.card(session.key)?.folder.is_some()
        {
            return Ok(false);
        }
        let mut files = group.iter();
        let folder = files.find_map(|file| sources::listed_folder(file.format, &file.path));
        let Some(folder) = folder else { return Ok(false) };
        self.change.facts.folder = Some(given(&folder));
        Ok(true)
    }

    /// Makes `main` the current branch of a new session.
    fn begin(&mut self) {
        if self.change.before.state.next_operation() == 1 {
            self.change.set_current(MAIN);
        }
    }

    /// Moves `main` to where the agent would resume. If a command had moved it, keeps its old position as a branch and returns
    /// the name of that branch.
    fn follow(&mut self) -> Result<Option<String>, SyncError> {
        self.begin();
        // A session with a live file follows that file, until its agent continues in another one.
        let live =
            self.change.before.state.live.filter(|live| self.states.files.contains_key(live));
        if live.is_some_and(|live| !self.is_left(live)) {
            return Ok(None);
        }
        let heads = self.heads()?;
        let Some((file, mut position)) = self.newest()? else { return Ok(None) };
        position.head = match heads.get(&file) {
            Some(head) => *head,
            None => self.change.before.format.head(&self.change.look(position))?,
        };
        let old = self.change.before.state.branches.get(MAIN).copied();
        let is_kept = self.is_kept(old, position)?;
        let ended = self.ends.get(&file).map(|end| (end.length, end.running));
        if is_detached(&self.change.before)? {
            // The user detached the file and has moved `main` since: leave it there.
            if is_kept {
                return Ok(None);
            }
        } else if self.is_attached(file, position)? {
            self.change.set_live(Some(file));
            let path = self.states.files.get(&file).map(PathBuf::as_path);
            self.change.notices.iter_mut().for_each(|notice| notice.go_on(path));
            if self.change.before.state.current() != MAIN
                && self.change.before.state.next_operation() > OperationNumber::FIRST
            {
                self.change.set_current(MAIN);
            }
        } else if live.is_some() {
            self.change.set_live(None);
        } else if is_kept
            && ended.is_some_and(|(length, running)| self.states.had(file, length, running))
        {
            // The file adds nothing.
            return Ok(None);
        }
        let left = is_kept.then(|| self.change.leave(MAIN, old));
        self.change.set_branch(MAIN, Some(position));
        Ok(left)
    }

    /// Returns true if the position of `main` has to be kept under a name when it follows a file. False if it was at the end of a
    /// file that this one continues.
    fn is_kept(&self, old: Option<Position>, to: Position) -> Result<bool, SyncError> {
        let before = &self.change.before;
        if old == Some(to) || !is_to_be_kept(before, MAIN, to)? {
            return Ok(false);
        }
        let Some(Position { generation, head: Some(head), horizon }) = old else { return Ok(true) };
        let ended = before.state.ends.get(&generation).map(Run::end) == Some(horizon);
        let is_at_end = ended && before.state.file_of(generation).is_some();
        let goes_on = is_at_end && self.change.path(to, usize::MAX)?.contains(&head);
        Ok(to.head != Some(head) && !goes_on)
    }

    /// Returns true if a deleted file exists again and the session continues in no other file.
    fn is_back(&self, file: FileNumber) -> Result<bool, SyncError> {
        let State { gone, live, .. } = &self.change.before.state;
        if live.is_some() || !gone.contains(&file) || is_detached(&self.change.before)? {
            return Ok(false);
        }
        match self.newest()? {
            Some((newest, position)) if newest == file => self.is_attached(file, position),
            _ => Ok(false),
        }
    }

    /// Returns true if a file should become the live file: it is where its agent reads it, it is not compressed, and the agent
    /// resumes it.
    fn is_attached(&self, file: FileNumber, position: Position) -> Result<bool, SyncError> {
        let Some(path) = self.states.files.get(&file) else { return Ok(false) };
        Ok(self.is_agents(path)
            && sources::length(path).is_ok_and(|length| length.is_some())
            && self.change.look(position).unresumed()?.is_none())
    }

    /// Returns true if a file is where its agent reads it.
    fn is_agents(&self, path: &Path) -> bool {
        let (archive, format) = (self.change.before.archive, self.change.before.format);
        self.attach.iter().any(|folder| path.starts_with(folder))
            && archive.writable.agents_file(&archive.disk, format.name(), path).is_ok()
            && !sources::is_set_aside(path, format)
    }

    /// Returns the session's file that the agent's own index names.
    fn named(&self) -> Option<FileNumber> {
        let (format, session) = (self.change.before.format, &self.change.before.name.id);
        // A single file is the one that the agent reads, whatever an index says.
        let mut paths = self.states.files.values().filter(|_| self.states.files.len() > 1);
        let path = paths.find(|path| self.is_agents(path))?;
        let named = siblings::named(format, session, path)?;
        self.states.files.iter().find(|(_, path)| is_same(path, &named)).map(|(n, _)| *n)
    }

    /// Returns true if the agent has moved on from the session's live file: its index names another file or, if it names none, a
    /// newer file exists.
    fn is_left(&self, live: FileNumber) -> bool {
        if let Some(named) = self.named() {
            return named != live;
        }
        let name = |path: &Path| siblings::name(self.change.before.format, path);
        let live = self.states.files.get(&live).and_then(|live| name(live));
        let Some(live) = live else { return false };
        let is_later = |name: FileName| name.session == live.session && name > live;
        let mut others = self.states.files.values().filter(|path| !is_gone(path));
        others.any(|path| name(path).is_some_and(is_later) && self.is_agents(path))
    }

    /// Returns the head at which the agent would resume each file that was read. Notes as oddities each repair on the path and
    /// each record that repeats another.
    fn heads(&mut self) -> Result<BTreeMap<FileNumber, Option<EntryNumber>>, SyncError> {
        let (mut heads, mut odd) = (BTreeMap::new(), Vec::new());
        for (&file, end) in &self.ends {
            let (generation, horizon) = (end.generation, end.entries);
            let view = self.change.look(Position { generation, head: None, horizon });
            let head = self.change.before.format.head(&view)?;
            heads.insert(file, head);
            let fresh = usize::try_from(end.lines.count()).unwrap_or(usize::MAX);
            let first = horizon - end.lines.count();
            let mut found = Vec::new();
            if let Some(head) = head {
                for repair in self.change.before.format.path(&view, head, fresh)?.repairs {
                    found.extend(
                        view.place(repair.entry)?.map(|place| (place, Quirk::Mended(repair.what))),
                    );
                }
            }
            // A repeated name is either a twin or an entry that was known before.
            if !self.change.deriver.twins.is_empty() || self.met {
                let places = oddities::repeated(&view)?.into_iter();
                found.extend(places.map(|place| (place, Quirk::Repeated)));
            }
            let line = |place: PlaceNumber| end.lines.get(place.get().checked_sub(first)?);
            let Some(path) = self.states.files.get(&file) else { continue };
            odd.extend(
                found.into_iter().filter_map(|(place, quirk)| {
                    Some(Oddity::new(path, Some(line(place)?), quirk))
                }),
            );
        }
        self.oddities.extend(odd);
        Ok(heads)
    }

    /// Returns the file that `main` follows, and its newest state. Compares files by, in this order: not rotated, exists, named
    /// by the agent's index, begun last according to its name, can become the live file, newest record, length, running hash.
    fn newest(&self) -> Result<Option<(FileNumber, Position)>, SyncError> {
        let (named, mut states) = (self.named(), Vec::new());
        for (&file, path) in &self.states.files {
            let (generation, entries, length, running) = match self.ends.get(&file) {
                Some(end) => (end.generation, end.entries, end.length, end.running),
                None => match self.states.newest(file) {
                    Some((generation, Some(end))) => {
                        (generation, end.end(), length_of(Some(end)), end.running)
                    }
                    _ => continue,
                },
            };
            let is_live = !sources::is_set_aside(path, self.change.before.format);
            let is_there = !is_gone(path);
            let begun = siblings::name(self.change.before.format, path);
            let position = Position { generation, head: None, horizon: entries };
            let is_named = named == Some(file);
            let rank = (is_live, is_there, is_named, begun, self.is_attached(file, position)?);
            states.push((rank, length, running, file, position));
        }
        let only = states.len() == 1;
        let mut best = None;
        for (rank, length, running, file, position) in states {
            let time = if only { None } else { newest_time(&self.change.look(position))? };
            let rank = (rank, time, length, running);
            if best.as_ref().is_none_or(|(best, _)| *best < rank) {
                best = Some((rank, (file, position)));
            }
        }
        Ok(best.map(|(_, found)| found))
    }
}
