//! Imports session files: each becomes a session of an archive, or continues one.
//!
//! Each path is a file of its session, and each state of the file a generation. A file that only grew stays in its generation;
//! any other new state begins a new one. `main` is the position at which the agent would resume the file with the newest records.
//!
//! Invariant: a session file is never written, and an unchanged one adds nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
    path::{Path, PathBuf},
    thread,
};

use crate::{
    archive::{Archive, Skipped, SyncError, Why, skip::Failed},
    change::{
        draft::{
            Change, Writing,
            batch::{Joint, Together},
        },
        reconcile::{agent_file, catch_up},
    },
    files::{
        Source,
        deletion::{self, is_gone},
        file,
        live_file::LiveFile,
        scan::Ahead,
        siblings::{self, Shelved},
        sources::{self, Known, Met},
        states::States,
    },
    intake::{
        news::{gather, meet, with_states},
        session::{Around, take_in},
    },
    live,
    model::{SessionName, Tie, TieKind},
    report::{Imported, Notice, QuirkKind, Summary},
    session::Session,
    store::{SessionKey, Sighting, StoreError},
};

/// How many bytes of new sessions to gather in one transaction.
const BATCH: u64 = 96 << 20;
/// Nanoseconds in a day.
const DAY: i64 = 86_400_000_000_000;

/// A step of an import, passed to the caller's report.
#[derive(Debug)]
pub enum Step<'a> {
    /// A file is about to be read.
    Reading {
        /// The file.
        path: &'a Path,
        /// How many files are done.
        done: u64,
        /// How many files there are.
        total: u64,
        /// How many bytes were read so far.
        bytes: u64,
        /// How many bytes there are in files that were never read before.
        of: u64,
    },
    /// A file or folder is skipped.
    Skipped(Skipped),
    /// A session was changed.
    Imported(Imported),
    /// The agent's file of a session was deleted.
    Gone {
        /// The session.
        session: Session,
        /// The file.
        path: PathBuf,
    },
}

/// Imports the session files at and below these paths. Files below a folder in `attach` become live files, and deleted live files
/// there are recorded as deleted.
///
/// A file that cannot be read is reported and skipped, and so are the files of a damaged session. Only a failure of the store
/// ends the import.
pub fn import(
    archive: &mut Archive,
    paths: &[PathBuf],
    attach: &[PathBuf],
    report: &mut dyn FnMut(Step<'_>),
) -> Result<Summary, SyncError> {
    // An agent's folder that does not exist any more has nothing to read. Its former files are recorded as deleted below.
    let is_meant = |path: &&PathBuf| !(attach.contains(path) && is_gone(path));
    let there: Vec<PathBuf> = paths.iter().filter(is_meant).cloned().collect();
    let attach = real(attach);
    let mut shelved = Shelved::default();
    let met = meet(archive, &there, &mut shelved);
    let mut summary = take(archive, met, &attach, shelved, report)?;
    let paths = real(paths);
    let is_meant = |file: &Path| {
        let all = [paths.as_slice(), &attach];
        all.iter().all(|all| all.iter().any(|path| file.starts_with(path)))
    };
    for session in archive.every()? {
        note_loss(archive, session, &is_meant, &mut summary, report)?;
    }
    Ok(summary)
}

/// Imports changed session files from the folders `attach`, given by their real paths, like [`import`]. Live files among `gone`
/// are recorded as deleted.
pub fn import_changed(
    archive: &mut Archive,
    changed: &[PathBuf],
    gone: &[PathBuf],
    attach: &[PathBuf],
    report: &mut dyn FnMut(Step<'_>),
) -> Result<Summary, SyncError> {
    let attach = real(attach);
    let mut shelved = Shelved::default();
    let met = with_states(changed, &mut shelved).into_iter().filter_map(Met::there).collect();
    let met = sources::with_keepers(met);
    let mut summary = take(archive, met, &attach, shelved, report)?;
    for path in gone {
        for (key, name, _) in archive.store().files(&archive.place_of(path))? {
            let session = Session::from_store(key, name)?;
            note_loss(archive, session, &|file| file == path, &mut summary, report)?;
        }
    }
    Ok(summary)
}

/// Returns the session files at and below these paths that have something new for the archive, and how many have nothing new.
/// Writes nothing: files whose content the archive has are imported into a preview to find out.
pub fn news(
    archive: Archive,
    paths: &[PathBuf],
    attach: &[PathBuf],
    report: &mut dyn FnMut(Skipped),
) -> Result<(Vec<Source>, u64), SyncError> {
    let archive = archive.preview()?;
    let (attach, mut shelved) = (real(attach), Shelved::default());
    let met = meet(&archive, paths, &mut shelved);
    let found = gather(&archive, met, report)?;
    let mut groups = found.groups;
    let is_known = |group: &Vec<Source>| group.iter().all(|source| source.known == Known::All);
    let known: Vec<_> = groups.iter().filter(|group| is_known(group)).cloned().collect();
    let mut changed = BTreeMap::new();
    let mut step = |step: Step<'_>| match step {
        Step::Skipped(skipped) => report(skipped),
        Step::Imported(it) => _ = changed.insert(it.session.name, it.files),
        Step::Reading { .. } | Step::Gone { .. } => {}
    };
    let taking = Taking::new(&archive, &attach, shelved, &known, found.summary, &mut step);
    let mut unchanged = taking.all(known, None)?.unchanged;
    groups.retain(|group| {
        let known = group.first().filter(|_| is_known(group));
        let files = known.and_then(|source| changed.get(&source.session));
        // What is listed is not counted as well.
        let counted = files.map_or(0, |files| (group.len() as u64).saturating_sub(*files));
        unchanged = unchanged.saturating_sub(counted);
        known.is_none() || files.is_some()
    });
    Ok((groups.concat(), unchanged))
}

/// Imports the files that were found.
fn take(
    archive: &Archive,
    met: Vec<Met>,
    attach: &[PathBuf],
    shelved: Shelved,
    report: &mut dyn FnMut(Step<'_>),
) -> Result<Summary, SyncError> {
    let mut found = gather(archive, met, &mut |skipped| report(Step::Skipped(skipped)))?;
    for group in &mut found.groups {
        // Rotated files first, oldest first; other files by the time they were begun.
        group.sort_by_cached_key(|source| {
            let begun = siblings::name(source.format, &source.path);
            (source.rotation().is_none(), source.rotation(), begun)
        });
    }
    // Sessions of one day are stored next to each other, so reading the newest sessions first is fast. Within a day they stay in
    // folder order, because sessions of one project share most lines.
    let day = |source: &Source| source.sighting.modified.div_euclid(DAY);
    found.groups.sort_by_cached_key(|group| group.iter().map(day).max());
    let new = found.groups.iter().flatten().filter(|source| source.known == Known::Nothing);
    let new = new.map(|source| (source.path.clone(), source.format)).collect();
    let mut taking = Taking::new(archive, attach, shelved, &found.groups, found.summary, report);
    taking.sightings = found.sightings;
    let summary = thread::scope(|scope| {
        let ahead = Ahead::begin(scope, new);
        taking.all(found.groups, Some(&ahead))
    })?;
    found.lists.keep(archive)?;
    Ok(summary)
}

/// Resolves links in these paths, also of folders that do not exist any more.
fn real(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter_map(|path| live::real(path).ok()).collect()
}

/// Records that the agent's file of a session, or one that it continues from, was deleted, if `is_meant` accepts it.
fn note_loss(
    archive: &Archive,
    session: Session,
    is_meant: &dyn Fn(&Path) -> bool,
    summary: &mut Summary,
    report: &mut dyn FnMut(Step<'_>),
) -> Result<(), SyncError> {
    let look = || {
        let session = match archive.at(&session) {
            // Nothing of it is needed here, and `verify` reports it.
            Err(StoreError::Corrupt { .. }) => return Ok(None),
            session => session?,
        };
        let state = &session.state;
        let is_news = |live: &LiveFile| {
            is_meant(&live.path) && (state.live == Some(live.n) || !state.gone.contains(&live.n))
        };
        Ok::<_, SyncError>(deletion::lost(&session)?.filter(is_news).map(|live| (live, session)))
    };
    if look()?.is_none() {
        return Ok(());
    }
    let _lock = archive.lock()?;
    // Another program may have restored the file, or recorded the loss, before the lock was free.
    let Some((live, opened)) = look()? else { return Ok(()) };
    let noted = if opened.state.live == Some(live.n) {
        catch_up::catch_up(&opened)
    } else {
        agent_file::record_loss(&opened, &live).map(|notice| vec![notice])
    };
    match noted {
        Err(error) if error.is_damage() || matches!(error, SyncError::Uncaught { .. }) => {
            let (path, why) = (live.path, Why::Denied(Box::new(error)));
            summary.leave_out(&path, &why)?;
            report(Step::Skipped(Skipped { path, why, asked: true }));
        }
        notices => {
            if notices?.iter().any(|notice| matches!(notice, Notice::Gone { .. })) {
                summary.gone += 1;
                report(Step::Gone { session, path: live.path });
            }
        }
    }
    Ok(())
}

/// An import in progress. New sessions and sessions that only grew share a transaction.
struct Taking<'a> {
    archive: &'a Archive,
    /// The folders whose files become live files.
    attach: &'a [PathBuf],
    shelved: Shelved,
    report: &'a mut dyn FnMut(Step<'_>),
    summary: Summary,
    total: u64,
    /// How many bytes the new files have.
    of: u64,
    done: u64,
    sightings: Vec<Sighting>,
    /// Changed sessions of agents that keep a session in several files. Their forks may lack a part of them.
    changed: Vec<SessionName>,
    /// Sessions already counted: a fork may be imported again after its parent.
    counted: BTreeSet<SessionKey>,
    /// Sessions in the open transaction, to be reported after its commit.
    gathered: Vec<Imported>,
    open: Together<'a>,
}

impl<'a> Taking<'a> {
    fn new(
        archive: &'a Archive,
        attach: &'a [PathBuf],
        shelved: Shelved,
        groups: &[Vec<Source>],
        summary: Summary,
        report: &'a mut dyn FnMut(Step<'_>),
    ) -> Self {
        let new = groups.iter().flatten().filter(|source| source.known == Known::Nothing);
        Self {
            archive,
            attach,
            shelved,
            report,
            summary,
            total: groups.iter().map(|group| group.len() as u64).sum(),
            of: new.map(|source| source.bytes).sum(),
            done: 0,
            sightings: Vec::new(),
            changed: Vec::new(),
            counted: BTreeSet::new(),
            gathered: Vec::new(),
            open: Together::new(archive),
        }
    }

    fn all(
        mut self,
        groups: Vec<Vec<Source>>,
        ahead: Option<&Ahead>,
    ) -> Result<Summary, SyncError> {
        let taken = groups.into_iter().try_for_each(|group| self.group(group, ahead));
        let taken = taken.and_then(|()| self.forks());
        // Whole sessions stay imported, whatever failed after them. The failure has already rolled back its own transaction.
        let settled = self.end_transaction();
        taken.and(settled)?;
        Ok(self.summary)
    }

    /// Imports the files of a session. A file that cannot be read is skipped.
    fn group(&mut self, mut group: Vec<Source>, ahead: Option<&Ahead>) -> Result<(), SyncError> {
        let mut is_apart = false;
        while let Some(first) = group.first().cloned() {
            let grown = if is_apart { None } else { self.prepare(&group)? };
            is_apart = grown.is_some();
            let (done, total, of, read) = (self.done, self.total, self.of, self.summary.bytes);
            let report = &mut *self.report;
            let mut before =
                |path: &Path, n| report(Step::Reading { path, done, total, bytes: read + n, of });
            let gathers = self.open.is_open();
            let joint = match grown {
                Some((session, notices)) => {
                    let mut change =
                        Change::of(&self.archive.at(&session)?, Writing::Among(&mut self.open))?;
                    change.notices = notices;
                    Joint::Grown(Box::new(change))
                }
                None if gathers => Joint::New(&mut self.open),
                None => Joint::Alone,
            };
            let mut around = Around {
                attach: self.attach,
                shelved: &mut self.shelved,
                sightings: &mut self.sightings,
            };
            match take_in(self.archive, &group, &mut around, ahead, joint, &mut before) {
                Ok(imported) => {
                    let changed = imported.as_ref().map_or(0, |imported| imported.files);
                    self.summary.unchanged += group.len() as u64 - changed;
                    self.done += group.len() as u64;
                    // Without a sighting, a file that could not be read to its end is read again by the next import.
                    let is_unread = |source: &Source| {
                        let mut odd = imported.iter().flat_map(|imported| &imported.oddities);
                        odd.any(|odd| odd.kind == QuirkKind::Unreadable && odd.path == source.path)
                    };
                    let whole = group.drain(..).filter(|source| !is_unread(source));
                    self.sightings.extend(whole.map(|source| source.sighting));
                    if imported.is_some() && siblings::name(first.format, &first.path).is_some() {
                        self.changed.push(first.session.clone());
                    }
                    self.gathered.extend(imported);
                    let bytes: u64 = self.gathered.iter().map(|imported| imported.bytes).sum();
                    if !gathers || bytes >= BATCH {
                        self.end_transaction()?;
                    }
                }
                // Damage in one session does not affect the others.
                Err(Failed::Verb(error)) if error.is_damage() && !gathers => {
                    let whys = iter::once(Why::Denied(Box::new(error)));
                    let whys = whys.chain(iter::repeat_with(|| Why::Along));
                    for (source, why) in group.drain(..).zip(whys) {
                        self.leave_out(source.path, why)?;
                    }
                }
                // Retry alone; a second failure is reported.
                Err(Failed::Verb(error)) if is_apart => {
                    self.end_transaction().map_err(|_| error)?;
                }
                Err(Failed::Verb(error)) => {
                    self.open.undo();
                    self.gathered.clear();
                    self.sightings.clear();
                    return Err(error);
                }
                // The other files are imported without it.
                Err(Failed::File(n, why)) => {
                    let path = group.remove(n).path;
                    self.leave_out(path, why)?;
                }
            }
        }
        Ok(())
    }

    /// Skips a file that was to be imported.
    fn leave_out(&mut self, path: PathBuf, why: Why) -> Result<(), SyncError> {
        self.done += 1;
        self.summary.leave_out(&path, &why)?;
        self.summary.files -= 1;
        (self.report)(Step::Skipped(Skipped { path, why, asked: true }));
        Ok(())
    }

    /// Imports what the forks of changed sessions lacked.
    fn forks(&mut self) -> Result<(), SyncError> {
        while let Some(parent) = self.changed.pop() {
            self.end_transaction()?;
            let tie = Tie { kind: TieKind::Fork, other: parent.id };
            for (key, name) in self.archive.store().tied(&parent.format, &tie, None)? {
                let session = Session::from_store(key, name)?;
                let files = match lacking(self.archive, &session) {
                    // A damaged fork still lacks it.
                    Err(error) if error.is_damage() => continue,
                    files => files?,
                };
                let source = |path: PathBuf| {
                    let meta = path.metadata().ok()?;
                    Some(Source::of(path, &meta, session.format, session.name.clone()))
                };
                let files = files.into_iter().filter_map(source).filter(|source| {
                    let Source { session, format, path, .. } = source;
                    self.archive.exclusion(session, *format, Some(path)).is_none()
                });
                // The user did not name these files, so they are not counted.
                let Summary { files: counted, unchanged, .. } = self.summary;
                let (done, files) = (self.done, files.collect::<Vec<_>>());
                self.summary.files += files.len() as u64;
                self.group(files, None)?;
                self.done = done;
                (self.summary.files, self.summary.unchanged) = (counted, unchanged);
            }
        }
        Ok(())
    }

    /// Decides how a session is imported. A new session joins the open transaction. If a session has only grown, imports what its
    /// agent appended and returns the session and its notices. Any other session gets its own transaction, because its live file
    /// has to follow.
    fn prepare(&mut self, group: &[Source]) -> Result<Option<(Session, Vec<Notice>)>, SyncError> {
        let [first, others @ ..] = group else { return Ok(None) };
        let has_base = || siblings::base(first.format, &first.path).is_some();
        let is_grown = first.known == Known::Grown && others.is_empty();
        let is_new = self.archive.session(&first.session)?.is_none();
        if (is_new || is_grown && !has_base()) && self.archive.root.is_some() {
            if !self.open.is_open() {
                self.open.begin()?;
            }
            // Another program may have created the session before we had the lock.
            match self.archive.session(&first.session)? {
                None => return Ok(None),
                Some(session) if is_grown => {
                    let opened = self.archive.at(&session)?;
                    match agent_file::gather(&opened, &first.path, &mut self.open) {
                        Ok(Some(notices)) => return Ok(Some((session, notices))),
                        Ok(None) => {}
                        // Retried in its own transaction.
                        Err(error) => self.end_transaction().map_err(|_| error)?,
                    }
                }
                Some(_) => {}
            }
        } else if is_new {
            return Ok(None);
        }
        self.end_transaction()?;
        Ok(None)
    }

    /// Commits the open transaction, if there is one, and reports its sessions.
    fn end_transaction(&mut self) -> Result<(), SyncError> {
        let settled = self.open.end();
        if settled.is_err() {
            self.gathered.clear();
            self.sightings.clear();
        }
        settled?;
        for imported in self.gathered.drain(..) {
            self.summary.sessions += u64::from(self.counted.insert(imported.session.key));
            self.summary.see(&imported);
            let gone = imported.notices.iter().filter_map(|notice| match notice {
                Notice::Gone { path, to: None } => Some(path.clone()),
                _ => None,
            });
            let (session, gone) = (imported.session.clone(), gone.collect::<Vec<_>>());
            (self.report)(Step::Imported(imported));
            for path in gone {
                self.summary.gone += 1;
                (self.report)(Step::Gone { session: session.clone(), path });
            }
        }
        if !self.sightings.is_empty() {
            file::keep_sightings(self.archive, &self.sightings)?;
            self.sightings.clear();
        }
        Ok(())
    }
}

/// Returns the files of a session whose history is incomplete, in any order; none if it is complete.
fn lacking(archive: &Archive, session: &Session) -> Result<Vec<PathBuf>, SyncError> {
    let session = archive.at(session)?;
    let view = session.state.position().map(|at| session.view(at));
    let lacks = view.map(|view| view.elsewhere()).transpose()?.flatten().is_some();
    Ok(if lacks { States::of(archive, &session.state).paths() } else { Vec::new() })
}

impl Summary {
    fn see(&mut self, imported: &Imported) {
        self.entries += imported.entries;
        self.sidecars += imported.sidecars;
        self.bytes += imported.bytes;
        for oddity in &imported.oddities {
            *self.oddities.entry(oddity.kind).or_default() += oddity.lines;
        }
    }
}
